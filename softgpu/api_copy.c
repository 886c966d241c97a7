/* Copies. Each is a box of bytes (copy.h); the variants _ptds and _ptsz mean the thread's own stream by a null stream.
 */
#include <string.h>

#include "softgpu/copy.h"

static CUresult copy_line(uint64_t to, enum copy_side to_side, uint64_t from, enum copy_side from_side, size_t bytes,
                          CUstream stream, bool wait)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    struct copy_box box = {.width = bytes,
                           .height = 1,
                           .depth = 1,
                           .to = to,
                           .from = from,
                           .to_pitch = bytes,
                           .from_pitch = bytes,
                           .to_side = to_side,
                           .from_side = from_side};
    return copy_submit(c, stream, &box, wait);
}

/* ---- one dimension ---------------------------------------------------------------------------------------------- */

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return copy_line(dstDevice, COPY_DEVICE, (uintptr_t)srcHost, COPY_HOST, ByteCount, NULL, true);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
    return copy_line(dstDevice, COPY_DEVICE, (uintptr_t)srcHost, COPY_HOST, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_line((uintptr_t)dstHost, COPY_HOST, srcDevice, COPY_DEVICE, ByteCount, NULL, true);
}

CUresult cuMemcpyDtoH_v2_ptds(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_line((uintptr_t)dstHost, COPY_HOST, srcDevice, COPY_DEVICE, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_line(dstDevice, COPY_DEVICE, srcDevice, COPY_DEVICE, ByteCount, NULL, false);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_line(dstDevice, COPY_DEVICE, srcDevice, COPY_DEVICE, ByteCount, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_line(dst, COPY_ANY, src, COPY_ANY, ByteCount, NULL, true);
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_line(dst, COPY_ANY, src, COPY_ANY, ByteCount, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                      size_t ByteCount)
{
    return copy_line(dstDevice, COPY_DEVICE, srcDevice, COPY_DEVICE, ByteCount, NULL, false);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                           size_t ByteCount)
{
    return copy_line(dstDevice, COPY_DEVICE, srcDevice, COPY_DEVICE, ByteCount, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
    return copy_line(dstDevice, COPY_DEVICE, (uintptr_t)srcHost, COPY_HOST, ByteCount, hStream, false);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
    return copy_line(dstDevice, COPY_DEVICE, (uintptr_t)srcHost, COPY_HOST, ByteCount, per_thread(hStream), false);
}

CUresult cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    return copy_line((uintptr_t)dstHost, COPY_HOST, srcDevice, COPY_DEVICE, ByteCount, hStream, false);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    return copy_line((uintptr_t)dstHost, COPY_HOST, srcDevice, COPY_DEVICE, ByteCount, per_thread(hStream), false);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    return copy_line(dstDevice, COPY_DEVICE, srcDevice, COPY_DEVICE, ByteCount, hStream, false);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
    return copy_line(dstDevice, COPY_DEVICE, srcDevice, COPY_DEVICE, ByteCount, per_thread(hStream), false);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_line(dst, COPY_ANY, src, COPY_ANY, ByteCount, hStream, false);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_line(dst, COPY_ANY, src, COPY_ANY, ByteCount, per_thread(hStream), false);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                           size_t ByteCount, CUstream hStream)
{
    return copy_line(dstDevice, COPY_DEVICE, srcDevice, COPY_DEVICE, ByteCount, hStream, false);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    return copy_line(dstDevice, COPY_DEVICE, srcDevice, COPY_DEVICE, ByteCount, per_thread(hStream), false);
}

/* ---- two and three dimensions ----------------------------------------------------------------------------------- */

/* One end of a pitched copy. Arrays are not supported: their storage has no address. */
struct end {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    size_t x, y, z, pitch, height;
};

static CUresult end_address(const struct end *e, uint64_t *address, enum copy_side *side)
{
    switch (e->type) {
    case CU_MEMORYTYPE_HOST:
        *address = (uintptr_t)e->host;
        *side = COPY_HOST;
        break;
    case CU_MEMORYTYPE_DEVICE:
        *address = e->device;
        *side = COPY_DEVICE;
        break;
    case CU_MEMORYTYPE_UNIFIED:
        *address = e->device;
        *side = COPY_ANY;
        break;
    case CU_MEMORYTYPE_ARRAY:
        return log_unsupported_part("cuMemcpy2D, cuMemcpy3D", "arrays");
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address += (e->z * e->height + e->y) * e->pitch + e->x;
    return CUDA_SUCCESS;
}

static CUresult copy_pitched(struct end to, struct end from, size_t width, size_t height, size_t depth, CUstream stream,
                             bool wait)
{
    struct context *c;
    struct copy_box box = {.width = width, .height = height, .depth = depth};
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = end_address(&to, &box.to, &box.to_side);
    if (result == CUDA_SUCCESS)
        result = end_address(&from, &box.from, &box.from_side);
    if (result != CUDA_SUCCESS)
        return result;
    box.to_pitch = to.pitch ? to.pitch : width;
    box.from_pitch = from.pitch ? from.pitch : width;
    if (box.to_pitch < width + to.x || box.from_pitch < width + from.x)
        return CUDA_ERROR_INVALID_VALUE;
    box.to_slice = box.to_pitch * (to.height ? to.height : height);
    box.from_slice = box.from_pitch * (from.height ? from.height : height);
    return copy_submit(c, stream, &box, wait);
}

/* Between two places on the device the host does not wait. */
static bool host_waits(CUmemorytype to, CUmemorytype from)
{
    return to != CU_MEMORYTYPE_DEVICE || from != CU_MEMORYTYPE_DEVICE;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool sync)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    struct end to = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, 0, p->dstPitch, 0};
    struct end from = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, 0, p->srcPitch, 0};
    return copy_pitched(to, from, p->WidthInBytes, p->Height, 1, stream,
                        sync && host_waits(p->dstMemoryType, p->srcMemoryType));
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool sync)
{
    if (!p || p->srcLOD || p->dstLOD || p->reserved0 || p->reserved1)
        return CUDA_ERROR_INVALID_VALUE;
    struct end to = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes,
                     p->dstY,          p->dstZ,    p->dstPitch,  p->dstHeight};
    struct end from = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes,
                       p->srcY,          p->srcZ,    p->srcPitch,  p->srcHeight};
    return copy_pitched(to, from, p->WidthInBytes, p->Height, p->Depth, stream,
                        sync && host_waits(p->dstMemoryType, p->srcMemoryType));
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool sync)
{
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    /* The two differ only in that the reserved words hold contexts. */
    _Static_assert(sizeof(CUDA_MEMCPY3D) == sizeof(CUDA_MEMCPY3D_PEER), "layout of peer copies");
    CUDA_MEMCPY3D plain;
    memcpy(&plain, p, sizeof plain);
    plain.reserved0 = plain.reserved1 = NULL;
    return copy_3d(&plain, stream, sync);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *pCopy)
{
    return copy_2d(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_2d(pCopy, hStream, false);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
    return copy_2d(pCopy, per_thread(hStream), false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
    return copy_3d(pCopy, NULL, true);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *pCopy)
{
    return copy_3d(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy_3d(pCopy, hStream, false);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
    return copy_3d(pCopy, per_thread(hStream), false);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *pCopy)
{
    return copy_3d_peer(pCopy, NULL, true);
}

CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *pCopy)
{
    return copy_3d_peer(pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    return copy_3d_peer(pCopy, hStream, false);
}

CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
    return copy_3d_peer(pCopy, per_thread(hStream), false);
}
