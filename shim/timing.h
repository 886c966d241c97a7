/* timing.h - device times of launches, by pairs of events of ours around them. An upper bound: host gaps count in. */
#ifndef SHIM_TIMING_H
#define SHIM_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/track.h"

struct timing_slot {
    struct timing_pair *pair; /* NULL: this launch is not timed */
    struct tracked_stream *stream;
};

void timing_begin(struct timing_slot *slot, struct tracked_kernel *kernel, struct tracked_stream *stream, uint64_t seq);
void timing_end(struct timing_slot *slot, bool launched);
void timing_collect(void); /* takes in the pairs that are complete */

struct device_work;
/* The launches whose times have not been taken in, oldest first: for a look from another thread, which may ask about
 * them as long as their context lives. Asking again is harmless; nothing is taken in. */
struct timing_pending {
    struct timing_pair *pair;
    struct tracked_stream *stream;
    uint64_t seq, tsc; /* of the launch */
};
unsigned timing_pending(struct device_work *work, struct timing_pending *out, unsigned limit);
enum timing_state { TIMING_DONE, TIMING_BEGUN, TIMING_NOT_BEGUN, TIMING_UNKNOWN };
enum timing_state timing_ask(const struct timing_pending *pending);

void timing_prepare(struct device_work *work); /* the context is current and ours to wait in */

#endif
