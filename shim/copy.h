/* copy.h - what the wrappers of copies and sets share. */
#ifndef SHIM_COPY_H
#define SHIM_COPY_H

#include <opsdebug/capture.h>

#include "shim/call.h"

/* Writes a CAP_COPY with the facts (its head, stream, stack, times are filled here). */
struct cap_copy *copy_record(const struct call *call, const struct cap_copy *facts, CUstream stream);
/* A synchronous copy waits for the device: that is a moment to look at redzones. */
void copy_before(const struct call *call, const struct cap_copy *facts, CUstream stream);
/* `record` may be NULL; `facts` and `stream` are those of copy_record. */
void copy_done(struct cap_copy *record, const struct call *call, CUresult result, const struct cap_copy *facts,
               CUstream stream);

/* What of a box is recorded. */
struct cap_copy copy_shape_3d(const CUDA_MEMCPY3D *box);

#endif
