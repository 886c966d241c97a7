/* rt_copy.h - parameters of copies: the runtime's as the driver's, and back. */
#ifndef SOFTGPU_RT_COPY_H
#define SOFTGPU_RT_COPY_H

#include "softgpu/rt.h"

/* Where the two ends lie, by the direction that the caller names. False: there is no such direction. */
bool rt_memory_types(enum cudaMemcpyKind kind, CUmemorytype *to, CUmemorytype *from);
CUresult rt_copy_params(CUDA_MEMCPY3D *out, const struct cudaMemcpy3DParms *params);
CUresult rt_copy_params_back(struct cudaMemcpy3DParms *out, const CUDA_MEMCPY3D *params);
/* Address of `count` bytes at `offset` in a variable. */
CUresult rt_symbol_range(const void *symbol, size_t count, size_t offset, void **address);

#endif
