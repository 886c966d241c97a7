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

/* A function and its form for a thread's own default stream, by one that takes the hook first. */
#define FORMS(function, own_stream, helper, parameters, ...)                                                           \
    CUresult function parameters                                                                                       \
    {                                                                                                                  \
        return helper(HOOK_##function, __VA_ARGS__);                                                                   \
    }                                                                                                                  \
    CUresult function##own_stream parameters                                                                           \
    {                                                                                                                  \
        return helper(HOOK_##function##own_stream, __VA_ARGS__);                                                       \
    }

#define SETS(bits, type)                                                                                               \
    static CUresult set_d##bits(enum hook hook, CUdeviceptr dst, type value, size_t count)                             \
    {                                                                                                                  \
        struct set_call c;                                                                                             \
        if (!begin(&c, hook, dst, 0, value, (bits) / 8, count, 1, NULL, false))                                        \
            return PASS(cuMemsetD##bits##_v2, hook)(dst, value, count);                                                \
        return finish(&c, REAL(cuMemsetD##bits##_v2, hook)(dst, value, count));                                        \
    }                                                                                                                  \
    FORMS(cuMemsetD##bits##_v2, _ptds, set_d##bits, (CUdeviceptr dst, type value, size_t count), dst, value, count)    \
                                                                                                                       \
    static CUresult set_d##bits##_async(enum hook hook, CUdeviceptr dst, type value, size_t count, CUstream hStream)   \
    {                                                                                                                  \
        struct set_call c;                                                                                             \
        if (!begin(&c, hook, dst, 0, value, (bits) / 8, count, 1, hStream, true))                                      \
            return PASS(cuMemsetD##bits##Async, hook)(dst, value, count, hStream);                                     \
        return finish(&c, REAL(cuMemsetD##bits##Async, hook)(dst, value, count, hStream));                             \
    }                                                                                                                  \
    FORMS(cuMemsetD##bits##Async, _ptsz, set_d##bits##_async,                                                          \
          (CUdeviceptr dst, type value, size_t count, CUstream hStream), dst, value, count, hStream)                   \
                                                                                                                       \
    static CUresult set_d2d##bits(enum hook hook, CUdeviceptr dst, size_t pitch, type value, size_t width,             \
                                  size_t height)                                                                       \
    {                                                                                                                  \
        struct set_call c;                                                                                             \
        if (!begin(&c, hook, dst, pitch, value, (bits) / 8, width, height, NULL, false))                               \
            return PASS(cuMemsetD2D##bits##_v2, hook)(dst, pitch, value, width, height);                               \
        return finish(&c, REAL(cuMemsetD2D##bits##_v2, hook)(dst, pitch, value, width, height));                       \
    }                                                                                                                  \
    FORMS(cuMemsetD2D##bits##_v2, _ptds, set_d2d##bits,                                                                \
          (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height), dst, pitch, value, width, height)  \
                                                                                                                       \
    static CUresult set_d2d##bits##_async(enum hook hook, CUdeviceptr dst, size_t pitch, type value, size_t width,     \
                                          size_t height, CUstream hStream)                                             \
    {                                                                                                                  \
        struct set_call c;                                                                                             \
        if (!begin(&c, hook, dst, pitch, value, (bits) / 8, width, height, hStream, true))                             \
            return PASS(cuMemsetD2D##bits##Async, hook)(dst, pitch, value, width, height, hStream);                    \
        return finish(&c, REAL(cuMemsetD2D##bits##Async, hook)(dst, pitch, value, width, height, hStream));            \
    }                                                                                                                  \
    FORMS(cuMemsetD2D##bits##Async, _ptsz, set_d2d##bits##_async,                                                      \
          (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, CUstream hStream), dst, pitch,      \
          value, width, height, hStream)

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
