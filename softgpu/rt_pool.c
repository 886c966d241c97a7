/* Stream-ordered allocation. Properties and attributes have the driver's layout and numbers. */
#include "softgpu/rt.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "passed on as it is");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "passed on as it is");
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "passed on as it is");

static cudaError_t malloc_async(void **devPtr, size_t size, cudaStream_t hStream, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result =
            (per_thread ? driver.cuMemAllocAsync_ptsz : driver.cuMemAllocAsync)((CUdeviceptr *)devPtr, size, hStream);
    return rt_end(result);
}

cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    return malloc_async(devPtr, size, hStream, false);
}

cudaError_t cudaMallocAsync_ptsz(void **devPtr, size_t size, cudaStream_t hStream)
{
    return malloc_async(devPtr, size, hStream, true);
}

static cudaError_t free_async(void *devPtr, cudaStream_t hStream, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuMemFreeAsync_ptsz : driver.cuMemFreeAsync)(rt_address(devPtr), hStream);
    return rt_end(result);
}

cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    return free_async(devPtr, hStream, false);
}

cudaError_t cudaFreeAsync_ptsz(void *devPtr, cudaStream_t hStream)
{
    return free_async(devPtr, hStream, true);
}

static cudaError_t malloc_from_pool_async(void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream,
                                          bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuMemAllocFromPoolAsync_ptsz
                             : driver.cuMemAllocFromPoolAsync)((CUdeviceptr *)ptr, size, memPool, stream);
    return rt_end(result);
}

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
    return malloc_from_pool_async(ptr, size, memPool, stream, false);
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream)
{
    return malloc_from_pool_async(ptr, size, memPool, stream, true);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolCreate(memPool, (const CUmemPoolProps *)poolProps);
    return rt_end(result);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolDestroy(memPool);
    return rt_end(result);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolTrimTo(memPool, minBytesToKeep);
    return rt_end(result);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolSetAttribute(memPool, (CUmemPool_attribute)attr, value);
    return rt_end(result);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolGetAttribute(memPool, (CUmemPool_attribute)attr, value);
    return rt_end(result);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList, size_t count)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolSetAccess(memPool, (const CUmemAccessDesc *)descList, count);
    return rt_end(result);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t memPool,
                                 struct cudaMemLocation *location)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolGetAccess((CUmemAccess_flags *)flags, memPool, (CUmemLocation *)location);
    return rt_end(result);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetDefaultMemPool(memPool, device);
    return rt_end(result);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetMemPool(memPool, device);
    return rt_end(result);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceSetMemPool(device, memPool);
    return rt_end(result);
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location,
                                     enum cudaMemAllocationType type)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemGetDefaultMemPool(memPool, (CUmemLocation *)location, (CUmemAllocationType)type);
    return rt_end(result);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *memPool, struct cudaMemLocation *location, enum cudaMemAllocationType type)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemGetMemPool(memPool, (CUmemLocation *)location, (CUmemAllocationType)type);
    return rt_end(result);
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type, cudaMemPool_t memPool)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemSetMemPool((CUmemLocation *)location, (CUmemAllocationType)type, memPool);
    return rt_end(result);
}
