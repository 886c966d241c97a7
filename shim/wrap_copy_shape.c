/* wrap_copy_shape.c - copies of rectangles and boxes. A driver that has a context reads their descriptors first of all,
 * so with a context they are recorded before the real call, as flat copies are; without one nothing is read.
 */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/copy.h"
#include "shim/track.h"

/* The first byte of one side. An array's side has no address: its handle stands there. */
static uint64_t start(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array, size_t x, size_t y,
                      size_t z, size_t pitch, size_t height)
{
    uint64_t inside = x + y * pitch + z * pitch * height;
    if (type == CU_MEMORYTYPE_HOST)
        return (uint64_t)(uintptr_t)host + inside;
    if (type == CU_MEMORYTYPE_ARRAY)
        return (uint64_t)(uintptr_t)array;
    return device + inside;
}

static enum cap_copy_kind kind_of(CUmemorytype target, CUmemorytype source)
{
    if (target == CU_MEMORYTYPE_ARRAY || source == CU_MEMORYTYPE_ARRAY)
        return CAP_COPY_ARRAY;
    if (target == CU_MEMORYTYPE_HOST && source == CU_MEMORYTYPE_DEVICE)
        return CAP_COPY_DTOH;
    if (target == CU_MEMORYTYPE_DEVICE && source == CU_MEMORYTYPE_HOST)
        return CAP_COPY_HTOD;
    if (target == CU_MEMORYTYPE_DEVICE && source == CU_MEMORYTYPE_DEVICE)
        return CAP_COPY_DTOD;
    return CAP_COPY_UNIFIED;
}

static struct cap_copy shape_2d(const CUDA_MEMCPY2D *c)
{
    struct cap_copy facts = {.width = c->WidthInBytes, .height = c->Height, .depth = 1};
    facts.target =
        start(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, 0, c->dstPitch, 0);
    facts.source =
        start(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, 0, c->srcPitch, 0);
    facts.target_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
    facts.source_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    facts.kind = kind_of(c->dstMemoryType, c->srcMemoryType);
    return facts;
}

struct cap_copy copy_shape_3d(const CUDA_MEMCPY3D *c)
{
    struct cap_copy facts = {.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
    facts.target = start(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, c->dstZ,
                         c->dstPitch, c->dstHeight);
    facts.source = start(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, c->srcZ,
                         c->srcPitch, c->srcHeight);
    facts.target_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
    facts.source_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    facts.target_slice_pitch = facts.target_pitch * (c->dstHeight ? c->dstHeight : c->Height);
    facts.source_slice_pitch = facts.source_pitch * (c->srcHeight ? c->srcHeight : c->Height);
    facts.kind = kind_of(c->dstMemoryType, c->srcMemoryType);
    return facts;
}

static struct cap_copy shape_peer(const CUDA_MEMCPY3D_PEER *c)
{
    struct cap_copy facts = {.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
    facts.target = start(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, c->dstZ,
                         c->dstPitch, c->dstHeight);
    facts.source = start(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, c->srcZ,
                         c->srcPitch, c->srcHeight);
    facts.target_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
    facts.source_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    facts.target_slice_pitch = facts.target_pitch * (c->dstHeight ? c->dstHeight : c->Height);
    facts.source_slice_pitch = facts.source_pitch * (c->srcHeight ? c->srcHeight : c->Height);
    facts.kind = kind_of(c->dstMemoryType, c->srcMemoryType);
    return facts;
}

/* A function and its form for a thread's own default stream; `shape` says what of it is recorded. */
#define FORM(name, function, shape, stream, asynchronously, parameters, ...)                                           \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        struct call call;                                                                                              \
        if (!call_enter(&call, HOOK_##name))                                                                           \
            return PASS(function, HOOK_##name)(__VA_ARGS__);                                                           \
        bool readable = pCopy && track_current_context();                                                              \
        struct cap_copy facts = {0}, *record = NULL;                                                                   \
        if (readable) {                                                                                                \
            facts = shape(pCopy);                                                                                      \
            facts.asynchronous = asynchronously;                                                                       \
            record = copy_record(&call, &facts, stream);                                                               \
            copy_before(&call, &facts, stream);                                                                        \
        }                                                                                                              \
        call_begin(&call);                                                                                             \
        CUresult result = REAL(function, HOOK_##name)(__VA_ARGS__);                                                    \
        call_end(&call);                                                                                               \
        if (readable)                                                                                                  \
            copy_done(record, &call, result, &facts, stream);                                                          \
        return call_leave(&call, result);                                                                              \
    }
#define COPY(function, type, shape)                                                                                    \
    FORM(function, function, shape, NULL, false, (const type *pCopy), pCopy)                                           \
    FORM(function##_ptds, function, shape, NULL, false, (const type *pCopy), pCopy)
#define COPY_ASYNC(function, type, shape)                                                                              \
    FORM(function, function, shape, hStream, true, (const type *pCopy, CUstream hStream), pCopy, hStream)              \
    FORM(function##_ptsz, function, shape, hStream, true, (const type *pCopy, CUstream hStream), pCopy, hStream)

COPY(cuMemcpy2D_v2, CUDA_MEMCPY2D, shape_2d)
COPY(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, shape_2d)
COPY(cuMemcpy3D_v2, CUDA_MEMCPY3D, copy_shape_3d)
COPY(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, shape_peer)
COPY_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, shape_2d)
COPY_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_shape_3d)
COPY_ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, shape_peer)
