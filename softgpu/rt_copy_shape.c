/* Copies of two and three dimensions. */
#include <string.h>

#include "softgpu/rt_array.h"
#include "softgpu/rt_copy.h"

bool rt_memory_types(enum cudaMemcpyKind kind, CUmemorytype *to, CUmemorytype *from)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        *to = *from = CU_MEMORYTYPE_HOST;
        return true;
    case cudaMemcpyHostToDevice:
        *to = CU_MEMORYTYPE_DEVICE;
        *from = CU_MEMORYTYPE_HOST;
        return true;
    case cudaMemcpyDeviceToHost:
        *to = CU_MEMORYTYPE_HOST;
        *from = CU_MEMORYTYPE_DEVICE;
        return true;
    case cudaMemcpyDeviceToDevice:
        *to = *from = CU_MEMORYTYPE_DEVICE;
        return true;
    case cudaMemcpyDefault:
        *to = *from = CU_MEMORYTYPE_UNIFIED;
        return true;
    }
    return false;
}

static CUresult shape_2d(CUDA_MEMCPY2D *c, void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                         size_t height, enum cudaMemcpyKind kind)
{
    *c = (CUDA_MEMCPY2D){.srcHost = src,
                         .srcDevice = rt_address(src),
                         .srcPitch = spitch,
                         .dstHost = dst,
                         .dstDevice = rt_address(dst),
                         .dstPitch = dpitch,
                         .WidthInBytes = width,
                         .Height = height};
    if (!rt_memory_types(kind, &c->dstMemoryType, &c->srcMemoryType))
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    return width > dpitch || width > spitch ? (CUresult)cudaErrorInvalidPitchValue : CUDA_SUCCESS;
}

static cudaError_t copy_2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                           enum cudaMemcpyKind kind, bool per_thread)
{
    CUDA_MEMCPY2D c;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = shape_2d(&c, dst, dpitch, src, spitch, width, height, kind);
    if (result == CUDA_SUCCESS && width && height)
        result = (per_thread ? driver.cuMemcpy2DUnaligned_v2_ptds : driver.cuMemcpy2DUnaligned_v2)(&c);
    return rt_end(result);
}

static cudaError_t copy_2d_async(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                                 enum cudaMemcpyKind kind, cudaStream_t stream, bool per_thread)
{
    CUDA_MEMCPY2D c;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = shape_2d(&c, dst, dpitch, src, spitch, width, height, kind);
    if (result == CUDA_SUCCESS && width && height)
        result = (per_thread ? driver.cuMemcpy2DAsync_v2_ptsz : driver.cuMemcpy2DAsync_v2)(&c, stream);
    return rt_end(result);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    return copy_2d(dst, dpitch, src, spitch, width, height, kind, false);
}

cudaError_t cudaMemcpy2D_ptds(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind)
{
    return copy_2d(dst, dpitch, src, spitch, width, height, kind, true);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_2d_async(dst, dpitch, src, spitch, width, height, kind, stream, false);
}

cudaError_t cudaMemcpy2DAsync_ptsz(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                   size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_2d_async(dst, dpitch, src, spitch, width, height, kind, stream, true);
}

/* Bytes of an element of an array. */
static CUresult element_of(cudaArray_t array, size_t *bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult result = driver.cuArray3DGetDescriptor_v2(&d, (CUarray)array);
    if (result != CUDA_SUCCESS)
        return result;
    struct cudaChannelFormatDesc f = rt_channel_desc(d.Format, d.NumChannels);
    *bytes = (size_t)(f.x + f.y + f.z + f.w) / 8;
    return CUDA_SUCCESS;
}

/* Where an array takes part, its positions and the extent count its elements. */
static CUresult take_arrays(CUDA_MEMCPY3D *c, const struct cudaMemcpy3DParms *p)
{
    size_t from = 1, to = 1;
    CUresult result = p->srcArray ? element_of(p->srcArray, &from) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && p->dstArray)
        result = element_of(p->dstArray, &to);
    if (result != CUDA_SUCCESS)
        return result;
    if (p->srcArray && p->dstArray && from != to)
        return CUDA_ERROR_INVALID_VALUE;
    c->srcXInBytes *= from;
    c->dstXInBytes *= to;
    c->WidthInBytes *= from > to ? from : to;
    if (p->srcArray) {
        c->srcMemoryType = CU_MEMORYTYPE_ARRAY;
        c->srcArray = (CUarray)p->srcArray;
    }
    if (p->dstArray) {
        c->dstMemoryType = CU_MEMORYTYPE_ARRAY;
        c->dstArray = (CUarray)p->dstArray;
    }
    return CUDA_SUCCESS;
}

CUresult rt_copy_params(CUDA_MEMCPY3D *c, const struct cudaMemcpy3DParms *p)
{
    if (!p || (p->srcArray && p->srcPtr.ptr) || (p->dstArray && p->dstPtr.ptr))
        return CUDA_ERROR_INVALID_VALUE;
    *c = (CUDA_MEMCPY3D){.srcXInBytes = p->srcPos.x,
                         .srcY = p->srcPos.y,
                         .srcZ = p->srcPos.z,
                         .srcHost = p->srcPtr.ptr,
                         .srcDevice = rt_address(p->srcPtr.ptr),
                         .srcPitch = p->srcPtr.pitch,
                         .srcHeight = p->srcPtr.ysize,
                         .dstXInBytes = p->dstPos.x,
                         .dstY = p->dstPos.y,
                         .dstZ = p->dstPos.z,
                         .dstHost = p->dstPtr.ptr,
                         .dstDevice = rt_address(p->dstPtr.ptr),
                         .dstPitch = p->dstPtr.pitch,
                         .dstHeight = p->dstPtr.ysize,
                         .WidthInBytes = p->extent.width,
                         .Height = p->extent.height,
                         .Depth = p->extent.depth};
    if (!rt_memory_types(p->kind, &c->dstMemoryType, &c->srcMemoryType))
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    return take_arrays(c, p);
}

static bool empty(struct cudaExtent e)
{
    return !e.width || !e.height || !e.depth;
}

static bool is_host(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_HOST;
}

/* The direction that the two ends mean. An end that is an array is on the device. */
static enum cudaMemcpyKind kind_of(CUmemorytype to, CUmemorytype from)
{
    if (to == CU_MEMORYTYPE_UNIFIED || from == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (is_host(from))
        return is_host(to) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return is_host(to) ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

static struct cudaPitchedPtr pitched(CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch,
                                     size_t width, size_t height)
{
    if (type == CU_MEMORYTYPE_ARRAY)
        return (struct cudaPitchedPtr){0};
    return (struct cudaPitchedPtr){is_host(type) ? (void *)host : rt_pointer(device), pitch, width, height};
}

CUresult rt_copy_params_back(struct cudaMemcpy3DParms *out, const CUDA_MEMCPY3D *p)
{
    size_t from = 1, to = 1;
    bool from_array = p->srcMemoryType == CU_MEMORYTYPE_ARRAY, to_array = p->dstMemoryType == CU_MEMORYTYPE_ARRAY;
    CUresult result = from_array ? element_of((cudaArray_t)p->srcArray, &from) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && to_array)
        result = element_of((cudaArray_t)p->dstArray, &to);
    if (result != CUDA_SUCCESS)
        return result;
    *out = (struct cudaMemcpy3DParms){
        .srcArray = from_array ? (cudaArray_t)p->srcArray : NULL,
        .srcPos = {p->srcXInBytes / from, p->srcY, p->srcZ},
        .srcPtr = pitched(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcPitch, p->WidthInBytes, p->srcHeight),
        .dstArray = to_array ? (cudaArray_t)p->dstArray : NULL,
        .dstPos = {p->dstXInBytes / to, p->dstY, p->dstZ},
        .dstPtr = pitched(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstPitch, p->WidthInBytes, p->dstHeight),
        .extent = {p->WidthInBytes / (from > to ? from : to), p->Height, p->Depth},
        .kind = kind_of(p->dstMemoryType, p->srcMemoryType),
    };
    return CUDA_SUCCESS;
}

static cudaError_t copy_3d(const struct cudaMemcpy3DParms *p, bool per_thread)
{
    CUDA_MEMCPY3D c;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = rt_copy_params(&c, p);
    if (result == CUDA_SUCCESS && !empty(p->extent))
        result = (per_thread ? driver.cuMemcpy3D_v2_ptds : driver.cuMemcpy3D_v2)(&c);
    return rt_end(result);
}

static cudaError_t copy_3d_async(const struct cudaMemcpy3DParms *p, cudaStream_t stream, bool per_thread)
{
    CUDA_MEMCPY3D c;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = rt_copy_params(&c, p);
    if (result == CUDA_SUCCESS && !empty(p->extent))
        result = (per_thread ? driver.cuMemcpy3DAsync_v2_ptsz : driver.cuMemcpy3DAsync_v2)(&c, stream);
    return rt_end(result);
}

/* Peer copies have the parameters of plain ones on a device, and a context at each end. */
static CUresult peer_params(CUDA_MEMCPY3D_PEER *out, const struct cudaMemcpy3DPeerParms *p)
{
    _Static_assert(sizeof(CUDA_MEMCPY3D) == sizeof(CUDA_MEMCPY3D_PEER), "contexts are where words are reserved");
    CUDA_MEMCPY3D plain;
    CUcontext from, to;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    const struct cudaMemcpy3DParms parms = {.srcArray = p->srcArray,
                                            .srcPos = p->srcPos,
                                            .srcPtr = p->srcPtr,
                                            .dstArray = p->dstArray,
                                            .dstPos = p->dstPos,
                                            .dstPtr = p->dstPtr,
                                            .extent = p->extent,
                                            .kind = cudaMemcpyDeviceToDevice};
    CUresult result = rt_enter_two(p->dstDevice, p->srcDevice, &to, &from);
    if (result == CUDA_SUCCESS)
        result = rt_copy_params(&plain, &parms);
    if (result == CUDA_SUCCESS) {
        memcpy(out, &plain, sizeof *out);
        out->srcContext = from;
        out->dstContext = to;
    }
    return result;
}

static cudaError_t copy_3d_peer(const struct cudaMemcpy3DPeerParms *p, bool per_thread)
{
    CUDA_MEMCPY3D_PEER c;
    CUresult result = peer_params(&c, p);
    if (result == CUDA_SUCCESS && !empty(p->extent))
        result = (per_thread ? driver.cuMemcpy3DPeer_ptds : driver.cuMemcpy3DPeer)(&c);
    return rt_end(result);
}

static cudaError_t copy_3d_peer_async(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream, bool per_thread)
{
    CUDA_MEMCPY3D_PEER c;
    CUresult result = peer_params(&c, p);
    if (result == CUDA_SUCCESS && !empty(p->extent))
        result = (per_thread ? driver.cuMemcpy3DPeerAsync_ptsz : driver.cuMemcpy3DPeerAsync)(&c, stream);
    return rt_end(result);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
    return copy_3d(p, false);
}

cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms *p)
{
    return copy_3d(p, true);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    return copy_3d_async(p, stream, false);
}

cudaError_t cudaMemcpy3DAsync_ptsz(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    return copy_3d_async(p, stream, true);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
    return copy_3d_peer(p, false);
}

cudaError_t cudaMemcpy3DPeer_ptds(const struct cudaMemcpy3DPeerParms *p)
{
    return copy_3d_peer(p, true);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
    return copy_3d_peer_async(p, stream, false);
}

cudaError_t cudaMemcpy3DPeerAsync_ptsz(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
    return copy_3d_peer_async(p, stream, true);
}
