/* poison.h - new device memory is filled with a pattern, so that reading what was never written shows (POISON=on). */
#ifndef SHIM_POISON_H
#define SHIM_POISON_H

#include "shim/alloc_table.h"
#include "shim/device_work.h"

/* NaN as fp64, fp32, fp16 and bf16; neither what arithmetic makes nor the pattern of redzones or of freed memory. */
enum { POISON_PATTERN = 0xFFFBFFFBu };

/* Fills `a` and waits for it, on a stream of ours: nothing of the program's can come before. */
void poison_fill(const struct allocation *a);
/* The same in the order of `stream`, without waiting. */
void poison_fill_on(const struct allocation *a, struct tracked_stream *stream);

#endif
