/* memop.h - stream memory operations: a stream writes a word of memory, or waits until one fulfils a condition.
 *
 * A batch is one operation. While it waits its stream stands still and nothing else does: kernels, copies, the host and
 * other streams may bring the value. The word is read with the order that makes visible what was written before it.
 */
#ifndef SOFTGPU_MEMOP_H
#define SOFTGPU_MEMOP_H

#include "softgpu/context.h"

enum { MEMOP_LIMIT = 255 }; /* operations in a batch */

/* CUDA_ERROR_INVALID_VALUE for a bad number, kind, flag or address; `old` takes what only the first version of the
 * interface allowed, and refuses what came with the second. */
CUresult memop_check(const CUstreamBatchMemOpParams *params, unsigned count, bool old);
/* The operation of a batch that was checked, for a stream of `context`. */
CUresult memop_make(struct context *context, const CUstreamBatchMemOpParams *params, unsigned count, struct op **out);

#endif
