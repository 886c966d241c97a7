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
    copy_before(&c->call, stream, asynchronous);
    call_begin(&c->call);
    return true;
}

static CUresult finish(struct copy_call *c, CUresult result)
{
    call_end(&c->call);
    copy_done(c->record, &c->call, result, &c->facts, c->stream);
    return call_leave(&c->call, result);
}

static CUresult copy_unified(enum hook hook, CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_UNIFIED, dst, src, ByteCount, NULL, false))
        return PASS(cuMemcpy, hook)(dst, src, ByteCount);
    return finish(&c, REAL(cuMemcpy, hook)(dst, src, ByteCount));
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_unified(HOOK_cuMemcpy, dst, src, ByteCount);
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_unified(HOOK_cuMemcpy_ptds, dst, src, ByteCount);
}

static CUresult copy_unified_async(enum hook hook, CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_UNIFIED, dst, src, ByteCount, hStream, true))
        return PASS(cuMemcpyAsync, hook)(dst, src, ByteCount, hStream);
    return finish(&c, REAL(cuMemcpyAsync, hook)(dst, src, ByteCount, hStream));
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_unified_async(HOOK_cuMemcpyAsync, dst, src, ByteCount, hStream);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_unified_async(HOOK_cuMemcpyAsync_ptsz, dst, src, ByteCount, hStream);
}

static CUresult copy_htod(enum hook hook, CUdeviceptr dst, const void *src, size_t ByteCount)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_HTOD, dst, (uint64_t)(uintptr_t)src, ByteCount, NULL, false))
        return PASS(cuMemcpyHtoD_v2, hook)(dst, src, ByteCount);
    return finish(&c, REAL(cuMemcpyHtoD_v2, hook)(dst, src, ByteCount));
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t ByteCount)
{
    return copy_htod(HOOK_cuMemcpyHtoD_v2, dst, src, ByteCount);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t ByteCount)
{
    return copy_htod(HOOK_cuMemcpyHtoD_v2_ptds, dst, src, ByteCount);
}

static CUresult copy_dtoh(enum hook hook, void *dst, CUdeviceptr src, size_t ByteCount)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_DTOH, (uint64_t)(uintptr_t)dst, src, ByteCount, NULL, false))
        return PASS(cuMemcpyDtoH_v2, hook)(dst, src, ByteCount);
    return finish(&c, REAL(cuMemcpyDtoH_v2, hook)(dst, src, ByteCount));
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_dtoh(HOOK_cuMemcpyDtoH_v2, dst, src, ByteCount);
}

CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_dtoh(HOOK_cuMemcpyDtoH_v2_ptds, dst, src, ByteCount);
}

static CUresult copy_dtod(enum hook hook, CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_DTOD, dst, src, ByteCount, NULL, false))
        return PASS(cuMemcpyDtoD_v2, hook)(dst, src, ByteCount);
    return finish(&c, REAL(cuMemcpyDtoD_v2, hook)(dst, src, ByteCount));
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_dtod(HOOK_cuMemcpyDtoD_v2, dst, src, ByteCount);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
    return copy_dtod(HOOK_cuMemcpyDtoD_v2_ptds, dst, src, ByteCount);
}

static CUresult copy_htodasync(enum hook hook, CUdeviceptr dst, const void *src, size_t ByteCount, CUstream hStream)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_HTOD, dst, (uint64_t)(uintptr_t)src, ByteCount, hStream, true))
        return PASS(cuMemcpyHtoDAsync_v2, hook)(dst, src, ByteCount, hStream);
    return finish(&c, REAL(cuMemcpyHtoDAsync_v2, hook)(dst, src, ByteCount, hStream));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t ByteCount, CUstream hStream)
{
    return copy_htodasync(HOOK_cuMemcpyHtoDAsync_v2, dst, src, ByteCount, hStream);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t ByteCount, CUstream hStream)
{
    return copy_htodasync(HOOK_cuMemcpyHtoDAsync_v2_ptsz, dst, src, ByteCount, hStream);
}

static CUresult copy_dtohasync(enum hook hook, void *dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_DTOH, (uint64_t)(uintptr_t)dst, src, ByteCount, hStream, true))
        return PASS(cuMemcpyDtoHAsync_v2, hook)(dst, src, ByteCount, hStream);
    return finish(&c, REAL(cuMemcpyDtoHAsync_v2, hook)(dst, src, ByteCount, hStream));
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_dtohasync(HOOK_cuMemcpyDtoHAsync_v2, dst, src, ByteCount, hStream);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_dtohasync(HOOK_cuMemcpyDtoHAsync_v2_ptsz, dst, src, ByteCount, hStream);
}

static CUresult copy_dtodasync(enum hook hook, CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_DTOD, dst, src, ByteCount, hStream, true))
        return PASS(cuMemcpyDtoDAsync_v2, hook)(dst, src, ByteCount, hStream);
    return finish(&c, REAL(cuMemcpyDtoDAsync_v2, hook)(dst, src, ByteCount, hStream));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_dtodasync(HOOK_cuMemcpyDtoDAsync_v2, dst, src, ByteCount, hStream);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
    return copy_dtodasync(HOOK_cuMemcpyDtoDAsync_v2_ptsz, dst, src, ByteCount, hStream);
}

static CUresult copy_peer(enum hook hook, CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext,
                          size_t ByteCount)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_DTOD, dst, src, ByteCount, NULL, false))
        return PASS(cuMemcpyPeer, hook)(dst, dstContext, src, srcContext, ByteCount);
    return finish(&c, REAL(cuMemcpyPeer, hook)(dst, dstContext, src, srcContext, ByteCount));
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext, size_t ByteCount)
{
    return copy_peer(HOOK_cuMemcpyPeer, dst, dstContext, src, srcContext, ByteCount);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext,
                           size_t ByteCount)
{
    return copy_peer(HOOK_cuMemcpyPeer_ptds, dst, dstContext, src, srcContext, ByteCount);
}

static CUresult copy_peerasync(enum hook hook, CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src,
                               CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_DTOD, dst, src, ByteCount, hStream, true))
        return PASS(cuMemcpyPeerAsync, hook)(dst, dstContext, src, srcContext, ByteCount, hStream);
    return finish(&c, REAL(cuMemcpyPeerAsync, hook)(dst, dstContext, src, srcContext, ByteCount, hStream));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext,
                           size_t ByteCount, CUstream hStream)
{
    return copy_peerasync(HOOK_cuMemcpyPeerAsync, dst, dstContext, src, srcContext, ByteCount, hStream);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext,
                                size_t ByteCount, CUstream hStream)
{
    return copy_peerasync(HOOK_cuMemcpyPeerAsync_ptsz, dst, dstContext, src, srcContext, ByteCount, hStream);
}

/* With arrays: the array's side has no address; its handle stands there, plus the offset. */

static CUresult copy_dtoa(enum hook hook, CUarray dst, size_t dstOffset, CUdeviceptr src, size_t ByteCount)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst + dstOffset, src, ByteCount, NULL, false))
        return PASS(cuMemcpyDtoA_v2, hook)(dst, dstOffset, src, ByteCount);
    return finish(&c, REAL(cuMemcpyDtoA_v2, hook)(dst, dstOffset, src, ByteCount));
}

CUresult cuMemcpyDtoA_v2(CUarray dst, size_t dstOffset, CUdeviceptr src, size_t ByteCount)
{
    return copy_dtoa(HOOK_cuMemcpyDtoA_v2, dst, dstOffset, src, ByteCount);
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray dst, size_t dstOffset, CUdeviceptr src, size_t ByteCount)
{
    return copy_dtoa(HOOK_cuMemcpyDtoA_v2_ptds, dst, dstOffset, src, ByteCount);
}

static CUresult copy_atod(enum hook hook, CUdeviceptr dst, CUarray src, size_t srcOffset, size_t ByteCount)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_ARRAY, dst, (uint64_t)(uintptr_t)src + srcOffset, ByteCount, NULL, false))
        return PASS(cuMemcpyAtoD_v2, hook)(dst, src, srcOffset, ByteCount);
    return finish(&c, REAL(cuMemcpyAtoD_v2, hook)(dst, src, srcOffset, ByteCount));
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t srcOffset, size_t ByteCount)
{
    return copy_atod(HOOK_cuMemcpyAtoD_v2, dst, src, srcOffset, ByteCount);
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr dst, CUarray src, size_t srcOffset, size_t ByteCount)
{
    return copy_atod(HOOK_cuMemcpyAtoD_v2_ptds, dst, src, srcOffset, ByteCount);
}

static CUresult copy_htoa(enum hook hook, CUarray dst, size_t dstOffset, const void *src, size_t ByteCount)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst + dstOffset, (uint64_t)(uintptr_t)src, ByteCount,
               NULL, false))
        return PASS(cuMemcpyHtoA_v2, hook)(dst, dstOffset, src, ByteCount);
    return finish(&c, REAL(cuMemcpyHtoA_v2, hook)(dst, dstOffset, src, ByteCount));
}

CUresult cuMemcpyHtoA_v2(CUarray dst, size_t dstOffset, const void *src, size_t ByteCount)
{
    return copy_htoa(HOOK_cuMemcpyHtoA_v2, dst, dstOffset, src, ByteCount);
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray dst, size_t dstOffset, const void *src, size_t ByteCount)
{
    return copy_htoa(HOOK_cuMemcpyHtoA_v2_ptds, dst, dstOffset, src, ByteCount);
}

static CUresult copy_atoh(enum hook hook, void *dst, CUarray src, size_t srcOffset, size_t ByteCount)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst, (uint64_t)(uintptr_t)src + srcOffset, ByteCount,
               NULL, false))
        return PASS(cuMemcpyAtoH_v2, hook)(dst, src, srcOffset, ByteCount);
    return finish(&c, REAL(cuMemcpyAtoH_v2, hook)(dst, src, srcOffset, ByteCount));
}

CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t srcOffset, size_t ByteCount)
{
    return copy_atoh(HOOK_cuMemcpyAtoH_v2, dst, src, srcOffset, ByteCount);
}

CUresult cuMemcpyAtoH_v2_ptds(void *dst, CUarray src, size_t srcOffset, size_t ByteCount)
{
    return copy_atoh(HOOK_cuMemcpyAtoH_v2_ptds, dst, src, srcOffset, ByteCount);
}

static CUresult copy_htoaasync(enum hook hook, CUarray dst, size_t dstOffset, const void *src, size_t ByteCount,
                               CUstream hStream)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst + dstOffset, (uint64_t)(uintptr_t)src, ByteCount,
               hStream, true))
        return PASS(cuMemcpyHtoAAsync_v2, hook)(dst, dstOffset, src, ByteCount, hStream);
    return finish(&c, REAL(cuMemcpyHtoAAsync_v2, hook)(dst, dstOffset, src, ByteCount, hStream));
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t dstOffset, const void *src, size_t ByteCount, CUstream hStream)
{
    return copy_htoaasync(HOOK_cuMemcpyHtoAAsync_v2, dst, dstOffset, src, ByteCount, hStream);
}

CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray dst, size_t dstOffset, const void *src, size_t ByteCount, CUstream hStream)
{
    return copy_htoaasync(HOOK_cuMemcpyHtoAAsync_v2_ptsz, dst, dstOffset, src, ByteCount, hStream);
}

static CUresult copy_atohasync(enum hook hook, void *dst, CUarray src, size_t srcOffset, size_t ByteCount,
                               CUstream hStream)
{
    struct copy_call c;
    if (!begin(&c, hook, CAP_COPY_ARRAY, (uint64_t)(uintptr_t)dst, (uint64_t)(uintptr_t)src + srcOffset, ByteCount,
               hStream, true))
        return PASS(cuMemcpyAtoHAsync_v2, hook)(dst, src, srcOffset, ByteCount, hStream);
    return finish(&c, REAL(cuMemcpyAtoHAsync_v2, hook)(dst, src, srcOffset, ByteCount, hStream));
}

CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t srcOffset, size_t ByteCount, CUstream hStream)
{
    return copy_atohasync(HOOK_cuMemcpyAtoHAsync_v2, dst, src, srcOffset, ByteCount, hStream);
}

CUresult cuMemcpyAtoHAsync_v2_ptsz(void *dst, CUarray src, size_t srcOffset, size_t ByteCount, CUstream hStream)
{
    return copy_atohasync(HOOK_cuMemcpyAtoHAsync_v2_ptsz, dst, src, srcOffset, ByteCount, hStream);
}
