/* Fills with bytes. */
#include "softgpu/rt.h"

static CUresult fill_line(void *devPtr, int value, size_t count, cudaStream_t stream, bool async, bool per_thread)
{
    CUdeviceptr to = rt_address(devPtr);
    unsigned char byte = (unsigned char)value;
    if (!count)
        return CUDA_SUCCESS;
    if (async)
        return (per_thread ? driver.cuMemsetD8Async_ptsz : driver.cuMemsetD8Async)(to, byte, count, stream);
    return (per_thread ? driver.cuMemsetD8_v2_ptds : driver.cuMemsetD8_v2)(to, byte, count);
}

static CUresult fill_rows(CUdeviceptr to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream,
                          bool async, bool per_thread)
{
    unsigned char byte = (unsigned char)value;
    if (!width || !height)
        return CUDA_SUCCESS;
    if (async)
        return (per_thread ? driver.cuMemsetD2D8Async_ptsz : driver.cuMemsetD2D8Async)(to, pitch, byte, width, height,
                                                                                       stream);
    return (per_thread ? driver.cuMemsetD2D8_v2_ptds : driver.cuMemsetD2D8_v2)(to, pitch, byte, width, height);
}

static CUresult fill_slices(struct cudaPitchedPtr p, int value, struct cudaExtent e, cudaStream_t stream, bool async,
                            bool per_thread)
{
    /* Slices that follow each other without rows between them are one tall one. */
    if (p.ysize == e.height)
        return fill_rows(rt_address(p.ptr), p.pitch, value, e.width, e.height * e.depth, stream, async, per_thread);
    CUresult result = CUDA_SUCCESS;
    for (size_t z = 0; z < e.depth && result == CUDA_SUCCESS; z++)
        result = fill_rows(rt_address(p.ptr) + z * p.ysize * p.pitch, p.pitch, value, e.width, e.height, stream, async,
                           per_thread);
    return result;
}

static cudaError_t memset_1d(void *devPtr, int value, size_t count, cudaStream_t stream, bool async, bool per_thread)
{
    CUresult result = rt_enter();
    return rt_end(result == CUDA_SUCCESS ? fill_line(devPtr, value, count, stream, async, per_thread) : result);
}

static cudaError_t memset_2d(void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream,
                             bool async, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = fill_rows(rt_address(devPtr), pitch, value, width, height, stream, async, per_thread);
    return rt_end(result);
}

static cudaError_t memset_3d(struct cudaPitchedPtr p, int value, struct cudaExtent extent, cudaStream_t stream,
                             bool async, bool per_thread)
{
    CUresult result = rt_enter();
    return rt_end(result == CUDA_SUCCESS ? fill_slices(p, value, extent, stream, async, per_thread) : result);
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
    return memset_1d(devPtr, value, count, NULL, false, false);
}

cudaError_t cudaMemset_ptds(void *devPtr, int value, size_t count)
{
    return memset_1d(devPtr, value, count, NULL, false, true);
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    return memset_1d(devPtr, value, count, stream, true, false);
}

cudaError_t cudaMemsetAsync_ptsz(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    return memset_1d(devPtr, value, count, stream, true, true);
}

cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
    return memset_2d(devPtr, pitch, value, width, height, NULL, false, false);
}

cudaError_t cudaMemset2D_ptds(void *devPtr, size_t pitch, int value, size_t width, size_t height)
{
    return memset_2d(devPtr, pitch, value, width, height, NULL, false, true);
}

cudaError_t cudaMemset2DAsync(void *devPtr, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream)
{
    return memset_2d(devPtr, pitch, value, width, height, stream, true, false);
}

cudaError_t cudaMemset2DAsync_ptsz(void *devPtr, size_t pitch, int value, size_t width, size_t height,
                                   cudaStream_t stream)
{
    return memset_2d(devPtr, pitch, value, width, height, stream, true, true);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent)
{
    return memset_3d(pitchedDevPtr, value, extent, NULL, false, false);
}

cudaError_t cudaMemset3D_ptds(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent)
{
    return memset_3d(pitchedDevPtr, value, extent, NULL, false, true);
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent,
                              cudaStream_t stream)
{
    return memset_3d(pitchedDevPtr, value, extent, stream, true, false);
}

cudaError_t cudaMemset3DAsync_ptsz(struct cudaPitchedPtr pitchedDevPtr, int value, struct cudaExtent extent,
                                   cudaStream_t stream)
{
    return memset_3d(pitchedDevPtr, value, extent, stream, true, true);
}
