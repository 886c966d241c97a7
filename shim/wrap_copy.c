/* wrap_copy.c - copies in one dimension, and between contexts. Shapes with more dimensions are in wrap_copy_shape.c.
 *
 * Records of copies whose arguments come by value are written before the real call, so that a copy that never returns
 * is seen.
 */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/copy.h"

struct copy_call {
    struct call call;
    struct cap_copy facts, *record;
    CUstream stream;
};

static bool begin(struct copy_call *c, enum hook hook, enum cap_copy_kind kind, uint64_t target, uint64_t source,
                  size_t bytes, CUstream stream, bool asynchronous)
{
    if (!call_enter(&c->call, hook))
        return false;
    c->facts = (struct cap_copy){.target = target, .source = source, .width = bytes, .height = 1, .depth = 1};
    c->facts.kind = kind;
    c->facts.asynchronous = asynchronous;
    c->stream = stream;
    c->record = copy_record(&c->call, &c->facts, stream);
    copy_before(&c->call, &c->facts, stream);
    call_begin(&c->call);
    return true;
}

static CUresult finish(struct copy_call *c, CUresult result)
{
    call_end(&c->call);
    copy_done(c->record, &c->call, result, &c->facts, c->stream);
    return call_leave(&c->call, result);
}

/* A function and its form for a thread's own default stream. Of what is recorded, addresses come as numbers. */
#define FORM(name, function, kind, target, source, stream, asynchronous, parameters, ...)                              \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        struct copy_call c;                                                                                            \
        if (!begin(&c, HOOK_##name, kind, target, source, ByteCount, stream, asynchronous))                            \
            return PASS(function, HOOK_##name)(__VA_ARGS__);                                                           \
        return finish(&c, REAL(function, HOOK_##name)(__VA_ARGS__));                                                   \
    }
#define COPY(function, own_stream, ...)                                                                                \
    FORM(function, function, __VA_ARGS__)                                                                              \
    FORM(function##own_stream, function, __VA_ARGS__)

COPY(cuMemcpy, _ptds, CAP_COPY_UNIFIED, dst, src, NULL, false, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
     dst, src, ByteCount)
COPY(cuMemcpyAsync, _ptsz, CAP_COPY_UNIFIED, dst, src, hStream, true,
     (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream), dst, src, ByteCount, hStream)
COPY(cuMemcpyHtoD_v2, _ptds, CAP_COPY_HTOD, dst, (uint64_t)(uintptr_t)src, NULL, false,
     (CUdeviceptr dst, const void *src, size_t ByteCount), dst, src, ByteCount)
COPY(cuMemcpyDtoH_v2, _ptds, CAP_COPY_DTOH, (uint64_t)(uintptr_t)dst, src, NULL, false,
     (void *dst, CUdeviceptr src, size_t ByteCount), dst, src, ByteCount)
COPY(cuMemcpyDtoD_v2, _ptds, CAP_COPY_DTOD, dst, src, NULL, false, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
     dst, src, ByteCount)
COPY(cuMemcpyHtoDAsync_v2, _ptsz, CAP_COPY_HTOD, dst, (uint64_t)(uintptr_t)src, hStream, true,
     (CUdeviceptr dst, const void *src, size_t ByteCount, CUstream hStream), dst, src, ByteCount, hStream)
COPY(cuMemcpyDtoHAsync_v2, _ptsz, CAP_COPY_DTOH, (uint64_t)(uintptr_t)dst, src, hStream, true,
     (void *dst, CUdeviceptr src, size_t ByteCount, CUstream hStream), dst, src, ByteCount, hStream)
COPY(cuMemcpyDtoDAsync_v2, _ptsz, CAP_COPY_DTOD, dst, src, hStream, true,
     (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream), dst, src, ByteCount, hStream)
COPY(cuMemcpyPeer, _ptds, CAP_COPY_DTOD, dst, src, NULL, false,
     (CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext, size_t ByteCount), dst, dstContext,
     src, srcContext, ByteCount)
COPY(cuMemcpyPeerAsync, _ptsz, CAP_COPY_DTOD, dst, src, hStream, true,
     (CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext, size_t ByteCount, CUstream hStream),
     dst, dstContext, src, srcContext, ByteCount, hStream)

/* With arrays: the array's side has no address; its handle stands there, plus the offset. */
COPY(cuMemcpyDtoA_v2, _ptds, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst + dstOffset, src, NULL, false,
     (CUarray dst, size_t dstOffset, CUdeviceptr src, size_t ByteCount), dst, dstOffset, src, ByteCount)
COPY(cuMemcpyAtoD_v2, _ptds, CAP_COPY_ARRAY, dst, (uint64_t)(uintptr_t)src + srcOffset, NULL, false,
     (CUdeviceptr dst, CUarray src, size_t srcOffset, size_t ByteCount), dst, src, srcOffset, ByteCount)
COPY(cuMemcpyHtoA_v2, _ptds, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst + dstOffset, (uint64_t)(uintptr_t)src, NULL,
     false, (CUarray dst, size_t dstOffset, const void *src, size_t ByteCount), dst, dstOffset, src, ByteCount)
COPY(cuMemcpyAtoH_v2, _ptds, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst, (uint64_t)(uintptr_t)src + srcOffset, NULL,
     false, (void *dst, CUarray src, size_t srcOffset, size_t ByteCount), dst, src, srcOffset, ByteCount)
COPY(cuMemcpyHtoAAsync_v2, _ptsz, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst + dstOffset, (uint64_t)(uintptr_t)src,
     hStream, true, (CUarray dst, size_t dstOffset, const void *src, size_t ByteCount, CUstream hStream), dst,
     dstOffset, src, ByteCount, hStream)
COPY(cuMemcpyAtoHAsync_v2, _ptsz, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst, (uint64_t)(uintptr_t)src + srcOffset,
     hStream, true, (void *dst, CUarray src, size_t srcOffset, size_t ByteCount, CUstream hStream), dst, src, srcOffset,
     ByteCount, hStream)
