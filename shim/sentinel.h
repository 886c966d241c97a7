/* sentinel.h - redzones around device allocations: planning, filling, looking at them on the device, in stream order.
 *
 * The pattern is a function of the allocation's id and the absolute address: the 16-bit word at even address A is
 * 0x7FFF with bit (A / 2) mod 32 of the id as its sign, which is NaN in every float format. A look is a small kernel of
 * ours in the program's own stream that writes what it saw into a slot of mapped host memory; nothing here makes the
 * host wait.
 */
#ifndef SHIM_SENTINEL_H
#define SHIM_SENTINEL_H

#include "shim/deadline.h"
#include "shim/alloc_table.h"
#include "shim/device_work.h"
#include "shim/track.h"

struct sentinel_plan {
    uint32_t head, tail;
};
/* How much room an allocation of `bytes` gets before and behind; the sizes are 0 when there will be no redzone.
 * `context`: NULL for the current one. */
struct sentinel_plan sentinel_plan(uint32_t kind, uint64_t bytes, struct tracked_context *context);

/* Fills the redzones of `a` (its id is set) and waits for it, on a stream of ours. False: a has none now. */
bool sentinel_fill(struct allocation *a);
/* The same in the order of `stream`, without waiting. */
bool sentinel_fill_on(struct allocation *a, struct tracked_stream *stream);

/* A copy or a set wrote to device memory. `stream` may be NULL. `waited`: the host has waited for it. */
void sentinel_after_write(struct tracked_stream *stream, uint64_t seq, bool waited);
/* `chained`: it depends programmatically on the one before, so another may follow: no look between the two. */
void sentinel_after_launch(struct tracked_stream *stream, uint64_t seq, bool chained);
void sentinel_before_sync(struct tracked_stream *stream); /* NULL: all streams of the current context */
/* Where the kernel that looks could not be loaded: all of the context's work is complete, so copies tell the same. */
void sentinel_after_sync(struct device_work *work);
/* The redzones of `a`, before it is freed. In the order of `stream`, or (NULL) now, after all work that may still use
 * it. */
void sentinel_before_free(const struct allocation *a, struct tracked_stream *stream);
void sentinel_harvest(void);                     /* takes in the slots that are complete */
void sentinel_wait(struct deadline deadline);    /* for the looks of the current context */
bool sentinel_at_exit(struct deadline deadline); /* looks, and waits for the looks; false: they did not come */
/* `a` has left the table and is about to be freed: returns when nobody is looking at its redzones any more. A look that
 * was launched at memory that is gone would fault, or put the pattern into somebody else's. */
void sentinel_forgotten(const struct allocation *a);
/* The same for memory of the host, whose free need not wait for the device: what the device has not come to soon leaves
 * it out. */
void sentinel_forgotten_by_host(const struct allocation *a);
/* The same before it is freed in the order of `stream` (NULL: of one that is unknown), without waiting for other
 * streams: looks that they have not come to leave it out. */
void sentinel_forgotten_on(const struct allocation *a, const struct tracked_stream *stream);
void sentinel_lookers_leave(void); /* waits until nobody is on the way to launch a look that was begun before */
/* Around collecting redzones from the table and launching the look at them. */
void sentinel_look_begins(void);
void sentinel_look_ends(void);

/* For the memory the program sees. */
uint32_t sentinel_word(uint32_t id, uint64_t address); /* the aligned 32-bit word at `address` */

#endif
