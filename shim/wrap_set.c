/* wrap_set.c - memory sets of every width and shape. */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/capture_write.h"
#include "shim/sentinel.h"
#include "shim/stack.h"
#include "shim/track.h"

struct set_call {
    struct call call;
    struct cap_set *record;
    struct tracked_stream *stream;
};

static bool begin(struct set_call *c, enum hook hook, CUdeviceptr target, size_t pitch, uint32_t value,
                  uint32_t value_bytes, size_t width, size_t height, CUstream stream, bool asynchronous)
{
    if (!call_enter(&c->call, hook))
        return false;
    uint32_t stack = stack_here();
    c->stream = track_stream(stream, hook_kind(hook) == HOOK_PER_THREAD, true);
    struct cap_set *r = c->record = capture_record(CAP_SET, sizeof *r, c->call.seq, c->call.tsc);
    if (r) {
        r->target = target;
        r->width = (uint64_t)width * value_bytes;
        r->height = height;
        r->pitch = pitch;
        r->value = value;
        r->value_bytes = value_bytes;
        r->stream = c->stream ? c->stream->id : 0;
        r->asynchronous = asynchronous;
        r->stack = stack;
        capture_commit(r);
    }
    call_begin(&c->call);
    return true;
}

static CUresult finish(struct set_call *c, CUresult result)
{
    call_end(&c->call);
    if (c->record) {
        __atomic_store_n(&c->record->call_ns, call_real_ns(&c->call), __ATOMIC_RELAXED);
        __atomic_store_n(&c->record->result, (int32_t)result, __ATOMIC_RELAXED);
    }
    if (result == CUDA_SUCCESS)
        sentinel_after_write(c->stream, c->call.seq);
    return call_leave(&c->call, result);
}

static CUresult set_d8(enum hook hook, CUdeviceptr dst, unsigned char value, size_t count)
{
    struct set_call c;
    if (!begin(&c, hook, dst, 0, value, 1, count, 1, NULL, false))
        return PASS(cuMemsetD8_v2, hook)(dst, value, count);
    return finish(&c, REAL(cuMemsetD8_v2, hook)(dst, value, count));
}

CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count)
{
    return set_d8(HOOK_cuMemsetD8_v2, dst, value, count);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst, unsigned char value, size_t count)
{
    return set_d8(HOOK_cuMemsetD8_v2_ptds, dst, value, count);
}

static CUresult set_d8async(enum hook hook, CUdeviceptr dst, unsigned char value, size_t count, CUstream hStream)
{
    struct set_call c;
    if (!begin(&c, hook, dst, 0, value, 1, count, 1, hStream, true))
        return PASS(cuMemsetD8Async, hook)(dst, value, count, hStream);
    return finish(&c, REAL(cuMemsetD8Async, hook)(dst, value, count, hStream));
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream hStream)
{
    return set_d8async(HOOK_cuMemsetD8Async, dst, value, count, hStream);
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char value, size_t count, CUstream hStream)
{
    return set_d8async(HOOK_cuMemsetD8Async_ptsz, dst, value, count, hStream);
}

static CUresult set_d2d8(enum hook hook, CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                         size_t height)
{
    struct set_call c;
    if (!begin(&c, hook, dst, pitch, value, 1, width, height, NULL, false))
        return PASS(cuMemsetD2D8_v2, hook)(dst, pitch, value, width, height);
    return finish(&c, REAL(cuMemsetD2D8_v2, hook)(dst, pitch, value, width, height));
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return set_d2d8(HOOK_cuMemsetD2D8_v2, dst, pitch, value, width, height);
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height)
{
    return set_d2d8(HOOK_cuMemsetD2D8_v2_ptds, dst, pitch, value, width, height);
}

static CUresult set_d2d8async(enum hook hook, CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                              size_t height, CUstream hStream)
{
    struct set_call c;
    if (!begin(&c, hook, dst, pitch, value, 1, width, height, hStream, true))
        return PASS(cuMemsetD2D8Async, hook)(dst, pitch, value, width, height, hStream);
    return finish(&c, REAL(cuMemsetD2D8Async, hook)(dst, pitch, value, width, height, hStream));
}

CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
                           CUstream hStream)
{
    return set_d2d8async(HOOK_cuMemsetD2D8Async, dst, pitch, value, width, height, hStream);
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
                                CUstream hStream)
{
    return set_d2d8async(HOOK_cuMemsetD2D8Async_ptsz, dst, pitch, value, width, height, hStream);
}

static CUresult set_d16(enum hook hook, CUdeviceptr dst, unsigned short value, size_t count)
{
    struct set_call c;
    if (!begin(&c, hook, dst, 0, value, 2, count, 1, NULL, false))
        return PASS(cuMemsetD16_v2, hook)(dst, value, count);
    return finish(&c, REAL(cuMemsetD16_v2, hook)(dst, value, count));
}

CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count)
{
    return set_d16(HOOK_cuMemsetD16_v2, dst, value, count);
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst, unsigned short value, size_t count)
{
    return set_d16(HOOK_cuMemsetD16_v2_ptds, dst, value, count);
}

static CUresult set_d16async(enum hook hook, CUdeviceptr dst, unsigned short value, size_t count, CUstream hStream)
{
    struct set_call c;
    if (!begin(&c, hook, dst, 0, value, 2, count, 1, hStream, true))
        return PASS(cuMemsetD16Async, hook)(dst, value, count, hStream);
    return finish(&c, REAL(cuMemsetD16Async, hook)(dst, value, count, hStream));
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream hStream)
{
    return set_d16async(HOOK_cuMemsetD16Async, dst, value, count, hStream);
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst, unsigned short value, size_t count, CUstream hStream)
{
    return set_d16async(HOOK_cuMemsetD16Async_ptsz, dst, value, count, hStream);
}

static CUresult set_d2d16(enum hook hook, CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                          size_t height)
{
    struct set_call c;
    if (!begin(&c, hook, dst, pitch, value, 2, width, height, NULL, false))
        return PASS(cuMemsetD2D16_v2, hook)(dst, pitch, value, width, height);
    return finish(&c, REAL(cuMemsetD2D16_v2, hook)(dst, pitch, value, width, height));
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return set_d2d16(HOOK_cuMemsetD2D16_v2, dst, pitch, value, width, height);
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height)
{
    return set_d2d16(HOOK_cuMemsetD2D16_v2_ptds, dst, pitch, value, width, height);
}

static CUresult set_d2d16async(enum hook hook, CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                               size_t height, CUstream hStream)
{
    struct set_call c;
    if (!begin(&c, hook, dst, pitch, value, 2, width, height, hStream, true))
        return PASS(cuMemsetD2D16Async, hook)(dst, pitch, value, width, height, hStream);
    return finish(&c, REAL(cuMemsetD2D16Async, hook)(dst, pitch, value, width, height, hStream));
}

CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
                            CUstream hStream)
{
    return set_d2d16async(HOOK_cuMemsetD2D16Async, dst, pitch, value, width, height, hStream);
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
                                 CUstream hStream)
{
    return set_d2d16async(HOOK_cuMemsetD2D16Async_ptsz, dst, pitch, value, width, height, hStream);
}

static CUresult set_d32(enum hook hook, CUdeviceptr dst, unsigned int value, size_t count)
{
    struct set_call c;
    if (!begin(&c, hook, dst, 0, value, 4, count, 1, NULL, false))
        return PASS(cuMemsetD32_v2, hook)(dst, value, count);
    return finish(&c, REAL(cuMemsetD32_v2, hook)(dst, value, count));
}

CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t count)
{
    return set_d32(HOOK_cuMemsetD32_v2, dst, value, count);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst, unsigned int value, size_t count)
{
    return set_d32(HOOK_cuMemsetD32_v2_ptds, dst, value, count);
}

static CUresult set_d32async(enum hook hook, CUdeviceptr dst, unsigned int value, size_t count, CUstream hStream)
{
    struct set_call c;
    if (!begin(&c, hook, dst, 0, value, 4, count, 1, hStream, true))
        return PASS(cuMemsetD32Async, hook)(dst, value, count, hStream);
    return finish(&c, REAL(cuMemsetD32Async, hook)(dst, value, count, hStream));
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream hStream)
{
    return set_d32async(HOOK_cuMemsetD32Async, dst, value, count, hStream);
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst, unsigned int value, size_t count, CUstream hStream)
{
    return set_d32async(HOOK_cuMemsetD32Async_ptsz, dst, value, count, hStream);
}

static CUresult set_d2d32(enum hook hook, CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
                          size_t height)
{
    struct set_call c;
    if (!begin(&c, hook, dst, pitch, value, 4, width, height, NULL, false))
        return PASS(cuMemsetD2D32_v2, hook)(dst, pitch, value, width, height);
    return finish(&c, REAL(cuMemsetD2D32_v2, hook)(dst, pitch, value, width, height));
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height)
{
    return set_d2d32(HOOK_cuMemsetD2D32_v2, dst, pitch, value, width, height);
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height)
{
    return set_d2d32(HOOK_cuMemsetD2D32_v2_ptds, dst, pitch, value, width, height);
}

static CUresult set_d2d32async(enum hook hook, CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
                               size_t height, CUstream hStream)
{
    struct set_call c;
    if (!begin(&c, hook, dst, pitch, value, 4, width, height, hStream, true))
        return PASS(cuMemsetD2D32Async, hook)(dst, pitch, value, width, height, hStream);
    return finish(&c, REAL(cuMemsetD2D32Async, hook)(dst, pitch, value, width, height, hStream));
}

CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
                            CUstream hStream)
{
    return set_d2d32async(HOOK_cuMemsetD2D32Async, dst, pitch, value, width, height, hStream);
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
                                 CUstream hStream)
{
    return set_d2d32async(HOOK_cuMemsetD2D32Async_ptsz, dst, pitch, value, width, height, hStream);
}
