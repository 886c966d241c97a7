/* Batches of copies, prefetches and discards, and what is known of a managed range. Attributes, operands and locations
 * have the driver's layout. */
#include "softgpu/rt.h"

#define SAME_SIZE(ours, drivers)        _Static_assert(sizeof(ours) == sizeof(drivers), "passed on as it is")
#define SAME_PLACE(ours, a, drivers, b) _Static_assert(offsetof(ours, a) == offsetof(drivers, b), "passed on as it is")
SAME_SIZE(struct cudaMemcpyAttributes, CUmemcpyAttributes);
SAME_PLACE(struct cudaMemcpyAttributes, dstLocHint, CUmemcpyAttributes, dstLocHint);
SAME_PLACE(struct cudaMemcpyAttributes, flags, CUmemcpyAttributes, flags);
SAME_SIZE(struct cudaMemcpy3DOperand, CUmemcpy3DOperand);
SAME_PLACE(struct cudaMemcpy3DOperand, op.ptr.layerHeight, CUmemcpy3DOperand, op.ptr.layerHeight);
SAME_PLACE(struct cudaMemcpy3DOperand, op.ptr.locHint, CUmemcpy3DOperand, op.ptr.locHint);
SAME_PLACE(struct cudaMemcpy3DOperand, op.array.offset, CUmemcpy3DOperand, op.array.offset);
SAME_SIZE(struct cudaMemcpy3DBatchOp, CUDA_MEMCPY3D_BATCH_OP);
SAME_PLACE(struct cudaMemcpy3DBatchOp, extent, CUDA_MEMCPY3D_BATCH_OP, extent);
SAME_PLACE(struct cudaMemcpy3DBatchOp, flags, CUDA_MEMCPY3D_BATCH_OP, flags);
SAME_SIZE(struct cudaMemLocation, CUmemLocation);

/* Each function for the legacy and for the thread's own default stream; work is on the driver's function `call`. */
#define BATCH_FORM(name, function, parameters, arguments)                                                              \
    cudaError_t name parameters                                                                                        \
    {                                                                                                                  \
        CUresult result = rt_enter();                                                                                  \
        return rt_end(result == CUDA_SUCCESS ? driver.function arguments : result);                                    \
    }
#define BATCH(name, function, parameters, arguments)                                                                   \
    BATCH_FORM(name, function, parameters, arguments)                                                                  \
    BATCH_FORM(name##_ptsz, function##_ptsz, parameters, arguments)

BATCH(cudaMemcpyBatchAsync, cuMemcpyBatchAsync_v2,
      (void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
       struct cudaMemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, cudaStream_t stream),
      ((CUdeviceptr *)dsts, (CUdeviceptr *)srcs, (size_t *)sizes, count, (CUmemcpyAttributes *)attrs, attrsIdxs,
       numAttrs, stream))
BATCH(cudaMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_v2,
      (size_t numOps, struct cudaMemcpy3DBatchOp *opList, unsigned long long flags, cudaStream_t stream),
      (numOps, (CUDA_MEMCPY3D_BATCH_OP *)opList, flags, stream))
BATCH(cudaMemPrefetchBatchAsync, cuMemPrefetchBatchAsync,
      (void **dptrs, size_t *sizes, size_t count, struct cudaMemLocation *prefetchLocs, size_t *prefetchLocIdxs,
       size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream),
      ((CUdeviceptr *)dptrs, sizes, count, (CUmemLocation *)prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
       stream))
BATCH(cudaMemDiscardBatchAsync, cuMemDiscardBatchAsync,
      (void **dptrs, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t stream),
      ((CUdeviceptr *)dptrs, sizes, count, flags, stream))
BATCH(cudaMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync,
      (void **dptrs, size_t *sizes, size_t count, struct cudaMemLocation *prefetchLocs, size_t *prefetchLocIdxs,
       size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream),
      ((CUdeviceptr *)dptrs, sizes, count, (CUmemLocation *)prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags,
       stream))

cudaError_t cudaMemRangeGetAttribute(void *data, size_t dataSize, enum cudaMemRangeAttribute attribute,
                                     const void *devPtr, size_t count)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result =
            driver.cuMemRangeGetAttribute(data, dataSize, (CUmem_range_attribute)attribute, rt_address(devPtr), count);
    return rt_end(result);
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *dataSizes, enum cudaMemRangeAttribute *attributes,
                                      size_t numAttributes, const void *devPtr, size_t count)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemRangeGetAttributes(data, dataSizes, (CUmem_range_attribute *)attributes, numAttributes,
                                                rt_address(devPtr), count);
    return rt_end(result);
}
