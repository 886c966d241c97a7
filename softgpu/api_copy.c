/* Copies. Each is a box of bytes (copy.h); the variants _ptds and _ptsz mean the thread's own stream by a null stream.
 */
#include <string.h>

#include "softgpu/array.h"
#include "softgpu/copy.h"

static CUmemorytype memory_type(enum copy_side side)
{
    return side == COPY_HOST ? CU_MEMORYTYPE_HOST : side == COPY_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
}

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
    const CUDA_MEMCPY3D params = {.srcMemoryType = memory_type(from_side),
                                  .srcHost = (const void *)(uintptr_t)from,
                                  .srcDevice = from,
                                  .dstMemoryType = memory_type(to_side),
                                  .dstHost = (void *)(uintptr_t)to,
                                  .dstDevice = to,
                                  .WidthInBytes = bytes,
                                  .Height = 1,
                                  .Depth = 1};
    return copy_submit(c, stream, &params, &box, wait);
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

/* Addresses say where their memory is; the contexts are checked all the same. */
static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                          CUstream stream)
{
    struct context *peer;
    CUresult result = to_context && from_context ? context_from(to_context, &peer) : CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS)
        result = context_from(from_context, &peer);
    return result == CUDA_SUCCESS ? copy_line(to, COPY_DEVICE, from, COPY_DEVICE, bytes, stream, false) : result;
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                      size_t ByteCount)
{
    return copy_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, NULL);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                           size_t ByteCount)
{
    return copy_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, CU_STREAM_PER_THREAD);
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
    return copy_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    return copy_peer(dstDevice, dstContext, srcDevice, srcContext, ByteCount, per_thread(hStream));
}

/* ---- two and three dimensions ----------------------------------------------------------------------------------- */

/* One end of a pitched copy. */
struct end {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z, pitch, height;
};

/* An array has its own pitches; the copy must lie inside. */
static CUresult array_end(struct end *e, const struct copy_box *box, uint64_t *address, enum copy_side *side)
{
    const struct array *a = array_from(e->array);
    if (!a)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!array_box(a, e->x, e->y, e->z, box->width, box->height, box->depth, address))
        return CUDA_ERROR_INVALID_VALUE;
    *side = COPY_DEVICE;
    e->pitch = a->row_bytes;
    e->height = a->height;
    return CUDA_SUCCESS;
}

static CUresult end_address(struct end *e, const struct copy_box *box, uint64_t *address, enum copy_side *side)
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
        return array_end(e, box, address, side);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address += (e->z * e->height + e->y) * e->pitch + e->x;
    return CUDA_SUCCESS;
}

/* The box between two ends. */
static CUresult box_between(struct end to, struct end from, struct copy_box *box)
{
    CUresult result = end_address(&to, box, &box->to, &box->to_side);
    if (result == CUDA_SUCCESS)
        result = end_address(&from, box, &box->from, &box->from_side);
    if (result != CUDA_SUCCESS)
        return result;
    box->to_pitch = to.pitch ? to.pitch : box->width;
    box->from_pitch = from.pitch ? from.pitch : box->width;
    if (box->to_pitch < box->width + to.x || box->from_pitch < box->width + from.x)
        return CUDA_ERROR_INVALID_VALUE;
    box->to_slice = box->to_pitch * (to.height ? to.height : box->height);
    box->from_slice = box->from_pitch * (from.height ? from.height : box->height);
    return CUDA_SUCCESS;
}

static bool bad_3d(const CUDA_MEMCPY3D *p)
{
    return !p || p->srcLOD || p->dstLOD || p->reserved0 || p->reserved1;
}

CUresult copy_box_of(const CUDA_MEMCPY3D *p, struct copy_box *box)
{
    if (bad_3d(p))
        return CUDA_ERROR_INVALID_VALUE;
    struct end to = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes,
                     p->dstY,          p->dstZ,    p->dstPitch,  p->dstHeight};
    struct end from = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes,
                       p->srcY,          p->srcZ,    p->srcPitch,  p->srcHeight};
    *box = (struct copy_box){.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
    return box_between(to, from, box);
}

static CUresult copy_params(const CUDA_MEMCPY3D *params, CUstream stream, bool wait)
{
    struct context *c;
    struct copy_box box;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = copy_box_of(params, &box);
    return result == CUDA_SUCCESS ? copy_submit(c, stream, params, &box, wait) : result;
}

static CUresult copy_pitched(struct end to, struct end from, size_t width, size_t height, size_t depth, CUstream stream,
                             bool wait)
{
    const CUDA_MEMCPY3D params = {.srcXInBytes = from.x,
                                  .srcY = from.y,
                                  .srcMemoryType = from.type,
                                  .srcHost = from.host,
                                  .srcDevice = from.device,
                                  .srcArray = from.array,
                                  .srcPitch = from.pitch,
                                  .dstXInBytes = to.x,
                                  .dstY = to.y,
                                  .dstMemoryType = to.type,
                                  .dstHost = (void *)to.host,
                                  .dstDevice = to.device,
                                  .dstArray = to.array,
                                  .dstPitch = to.pitch,
                                  .WidthInBytes = width,
                                  .Height = height,
                                  .Depth = depth};
    return copy_params(&params, stream, wait);
}

/* Between two places on the device the host does not wait. */
static bool on_device(CUmemorytype type)
{
    return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY;
}

static bool host_waits(CUmemorytype to, CUmemorytype from)
{
    return !on_device(to) || !on_device(from);
}

/* Without a context nothing is read. */
static CUresult enter_copy(const void *params)
{
    struct context *c;
    CUresult result = enter_context(&c);
    return result == CUDA_SUCCESS && !params ? CUDA_ERROR_INVALID_VALUE : result;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool sync)
{
    CUresult result = enter_copy(p);
    if (result != CUDA_SUCCESS)
        return result;
    struct end to = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstXInBytes, p->dstY, 0,
                     p->dstPitch,      0};
    struct end from = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcXInBytes, p->srcY, 0,
                       p->srcPitch,      0};
    return copy_pitched(to, from, p->WidthInBytes, p->Height, 1, stream,
                        sync && host_waits(p->dstMemoryType, p->srcMemoryType));
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool sync)
{
    CUresult result = enter_copy(p);
    return result == CUDA_SUCCESS ? copy_params(p, stream, sync && host_waits(p->dstMemoryType, p->srcMemoryType))
                                  : result;
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool sync)
{
    struct context *peer;
    CUresult result = enter_copy(p);
    if (result != CUDA_SUCCESS)
        return result;
    if ((p->srcContext && context_from(p->srcContext, &peer) != CUDA_SUCCESS) ||
        (p->dstContext && context_from(p->dstContext, &peer) != CUDA_SUCCESS))
        return CUDA_ERROR_INVALID_CONTEXT;
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

/* ---- a line of an array ----------------------------------------------------------------------------------------- */

/* Bytes of the first row: these functions are for arrays of one dimension. */
static struct end line_of(CUarray array, size_t offset)
{
    return (struct end){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x = offset};
}

static struct end device_line(CUdeviceptr address)
{
    return (struct end){.type = CU_MEMORYTYPE_DEVICE, .device = address};
}

static struct end host_line(const void *host)
{
    return (struct end){.type = CU_MEMORYTYPE_HOST, .host = host};
}

CUresult cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_pitched(line_of(dstArray, dstOffset), device_line(srcDevice), ByteCount, 1, 1, NULL, false);
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
    return copy_pitched(line_of(dstArray, dstOffset), device_line(srcDevice), ByteCount, 1, 1, CU_STREAM_PER_THREAD,
                        false);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy_pitched(device_line(dstDevice), line_of(srcArray, srcOffset), ByteCount, 1, 1, NULL, false);
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy_pitched(device_line(dstDevice), line_of(srcArray, srcOffset), ByteCount, 1, 1, CU_STREAM_PER_THREAD,
                        false);
}

CUresult cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
    return copy_pitched(line_of(dstArray, dstOffset), host_line(srcHost), ByteCount, 1, 1, NULL, true);
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
    return copy_pitched(line_of(dstArray, dstOffset), host_line(srcHost), ByteCount, 1, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy_pitched(host_line(dstHost), line_of(srcArray, srcOffset), ByteCount, 1, 1, NULL, true);
}

CUresult cuMemcpyAtoH_v2_ptds(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy_pitched(host_line(dstHost), line_of(srcArray, srcOffset), ByteCount, 1, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy_pitched(line_of(dstArray, dstOffset), line_of(srcArray, srcOffset), ByteCount, 1, 1, NULL, false);
}

CUresult cuMemcpyAtoA_v2_ptds(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
    return copy_pitched(line_of(dstArray, dstOffset), line_of(srcArray, srcOffset), ByteCount, 1, 1,
                        CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
                              CUstream hStream)
{
    return copy_pitched(line_of(dstArray, dstOffset), host_line(srcHost), ByteCount, 1, 1, hStream, false);
}

CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
                                   CUstream hStream)
{
    return copy_pitched(line_of(dstArray, dstOffset), host_line(srcHost), ByteCount, 1, 1, per_thread(hStream), false);
}

CUresult cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream)
{
    return copy_pitched(host_line(dstHost), line_of(srcArray, srcOffset), ByteCount, 1, 1, hStream, false);
}

CUresult cuMemcpyAtoHAsync_v2_ptsz(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
                                   CUstream hStream)
{
    return copy_pitched(host_line(dstHost), line_of(srcArray, srcOffset), ByteCount, 1, 1, per_thread(hStream), false);
}
