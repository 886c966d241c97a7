/* Allocations. */
#include <string.h>

#include "softgpu/rt.h"

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && !devPtr)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return rt_end(result);
    *devPtr = NULL;
    return rt_end(size ? driver.cuMemAlloc_v2((CUdeviceptr *)devPtr, size) : CUDA_SUCCESS);
}

cudaError_t cudaFree(void *devPtr)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && devPtr)
        result = driver.cuMemFree_v2(rt_address(devPtr));
    return rt_end(result);
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = devPtr ? driver.cuMemAllocManaged((CUdeviceptr *)devPtr, size, flags) : CUDA_ERROR_INVALID_VALUE;
    return rt_end(result);
}

cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && (!devPtr || !pitch))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return rt_end(result);
    if (!width || !height) {
        *devPtr = NULL;
        *pitch = 0;
        return cudaSuccess;
    }
    return rt_end(driver.cuMemAllocPitch_v2((CUdeviceptr *)devPtr, pitch, width, height, 4));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent)
{
    if (!pitchedDevPtr || (extent.depth && extent.height > SIZE_MAX / extent.depth))
        return rt_fail(cudaErrorInvalidValue);
    struct cudaPitchedPtr p = {.xsize = extent.width, .ysize = extent.height};
    cudaError_t error = cudaMallocPitch(&p.ptr, &p.pitch, extent.width, extent.height * extent.depth);
    if (error == cudaSuccess)
        *pitchedDevPtr = p;
    return error;
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemHostAlloc(pHost, size, flags);
    return rt_end(result);
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemHostAlloc(ptr, size, 0);
    return rt_end(result);
}

cudaError_t cudaFreeHost(void *ptr)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && ptr)
        result = driver.cuMemFreeHost(ptr);
    return rt_end(result);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemHostRegister_v2(ptr, size, flags);
    return rt_end(result);
}

cudaError_t cudaHostUnregister(void *ptr)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemHostUnregister(ptr);
    return rt_end(result);
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost, unsigned int flags)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemHostGetDevicePointer_v2((CUdeviceptr *)pDevice, pHost, flags);
    return rt_end(result);
}

cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemHostGetFlags(pFlags, pHost);
    return rt_end(result);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemGetInfo_v2(free, total);
    return rt_end(result);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    unsigned type = 0, managed = 0;
    int device = 0;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = NULL;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *values[] = {&type, &managed, &device, &device_pointer, &host_pointer};
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result =
            attributes ? driver.cuPointerGetAttributes(5, names, values, rt_address(ptr)) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return rt_end(result);
    memset(attributes, 0, sizeof *attributes);
    attributes->type = managed                        ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                       : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                      : cudaMemoryTypeUnregistered;
    attributes->device = device;
    attributes->devicePointer = rt_pointer(device_pointer);
    attributes->hostPointer = host_pointer;
    return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void *devPtr, size_t count, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    CUmemLocation place = {.type = (CUmemLocationType)location.type, .id = location.id};
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemAdvise_v2(rt_address(devPtr), count, (CUmem_advise)advice, place);
    return rt_end(result);
}

static cudaError_t prefetch(const void *devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
                            cudaStream_t stream, bool per_thread)
{
    CUmemLocation place = {.type = (CUmemLocationType)location.type, .id = location.id};
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuMemPrefetchAsync_v2_ptsz
                             : driver.cuMemPrefetchAsync_v2)(rt_address(devPtr), count, place, flags, stream);
    return rt_end(result);
}

cudaError_t cudaMemPrefetchAsync(const void *devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream)
{
    return prefetch(devPtr, count, location, flags, stream, false);
}

cudaError_t cudaMemPrefetchAsync_ptsz(const void *devPtr, size_t count, struct cudaMemLocation location,
                                      unsigned int flags, cudaStream_t stream)
{
    return prefetch(devPtr, count, location, flags, stream, true);
}
