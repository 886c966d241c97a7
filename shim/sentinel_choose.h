/* sentinel_choose.h - which redzones a look looks at.
 *
 * Few: all of them. With more than SENTINEL_LOOK_MAX allocations a look would hold up every launch, so it takes those
 * that the stream's launches since the look before it were given (their arguments point there), and a part of the
 * others, in turn by address; at exit all others follow. The window of a damage says how long ago its redzone was
 * looked at.
 */
#ifndef SHIM_SENTINEL_CHOOSE_H
#define SHIM_SENTINEL_CHOOSE_H

#include "shim/alloc_table.h"
#include "shim/device_work.h"

enum { SENTINEL_LOOK_MAX = 4096 };

struct sentinel_choice {
    struct allocation *found; /* owned; copies */
    uint32_t count, capacity;
    bool all; /* nothing that the stream may look at was left out */
};

/* `must`: an allocation to be among them, NULL: none. */
void sentinel_choose(struct tracked_stream *stream, const struct allocation *must, struct sentinel_choice *out);
/* From `*cursor` on, at most SENTINEL_LOOK_MAX; `*cursor` moves, and is 0 when the end was reached. */
void sentinel_choose_next(struct tracked_stream *stream, uint64_t *cursor, struct sentinel_choice *out);
/* Only those that copies may look at: not of pools. */
void sentinel_choose_for_copies(struct device_work *work, struct sentinel_choice *out);

/* A launch of the stream got these arguments. Costs nothing while looks take all. */
void sentinel_touched(struct tracked_stream *stream, const uint8_t *arguments, uint32_t bytes);

#endif
