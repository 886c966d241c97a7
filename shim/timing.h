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
void timing_prepare(struct device_work *work); /* the context is current and ours to wait in */

#endif
