/* snapshot.h - copies of the memory that a launch's arguments reach, taken in stream order before and after it.
 *
 * Copies go into pinned staging memory; a progress mark behind them says when they are complete, also when the device
 * dies later. Complete ones are hashed, stored and recorded by the blob helper. Thread-safe.
 */
#ifndef SHIM_SNAPSHOT_H
#define SHIM_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#include <opsdebug/capture.h>

#include "shim/deadline.h"
#include "shim/options.h"
#include "shim/track.h"

/* In place of `when`: what a mark of the program's asks for; the "launch" is then the mark, see CAP_VALUE. */
#define SNAPSHOT_OF_MARK ((enum cap_snapshot_when)(CAP_AFTER + 1))

enum snapshot_choice { SNAPSHOT_NONE, SNAPSHOT_TAKE, SNAPSHOT_OVER_BUDGET };
struct snapshot_result {
    bool taken;    /* at least one copy was enqueued, or nothing is reachable */
    bool left_out; /* something was not copied: budget or memory */
};

/* What costs nothing to ask; false: no launch of this kernel gets any. */
static inline bool snapshot_possible(const struct tracked_kernel *kernel)
{
    return options.snapshots_first || __atomic_load_n(&kernel->armed, __ATOMIC_RELAXED);
}
/* Whether this launch (which is counted here) gets snapshots. `stream` NULL: nothing may be enqueued now. `in_pair`:
 * the program's timing events are around it, and what is enqueued would count into its measurement; see docs/shim.md.
 */
enum snapshot_choice snapshot_choose(struct tracked_kernel *kernel, uint32_t config, struct tracked_stream *stream,
                                     bool in_pair);
struct snapshot_result snapshot_take(enum cap_snapshot_when when, uint64_t launch_seq, struct tracked_kernel *kernel,
                                     struct tracked_stream *stream, const uint8_t *arguments, uint32_t bytes);
/* The same of these allocations, each there once. */
struct snapshot_result snapshot_take_found(enum cap_snapshot_when when, uint64_t launch_seq,
                                           struct tracked_stream *stream, const struct allocation *found,
                                           uint32_t count);

void snapshot_poll(void);                       /* hands complete ones over */
void snapshot_device_lost(void);                /* what is complete is handed over, the rest dropped */
bool snapshot_finish(struct deadline deadline); /* waits for those of the device; false: some did not come */
/* Returns when it is not being copied any more, or after a while. Before memory goes that the driver takes away without
 * waiting for the device: a program can know in ways of its own that its kernels are done with it. */
void snapshot_leave(const struct allocation *a);
void snapshot_drop_context(const struct tracked_context *context); /* it is gone: what never completed is dropped */

#endif
