/* wrap_set.c - memory sets of every width and shape. */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/sentinel.h"
#include "shim/stack.h"
#include "shim/track.h"

struct set_call {
    struct call call;
    struct cap_set *record;
    struct tracked_stream *stream; /* NULL: not known before the call */
    CUstream handle;
    bool captured; /* into a graph: it is not made now */
    bool asynchronous;
};

static bool begin(struct set_call *c, enum hook hook, CUdeviceptr target, size_t pitch, uint32_t value,
                  uint32_t value_bytes, size_t width, size_t height, CUstream stream, bool asynchronous)
{
    if (!call_enter(&c->call, hook))
        return false;
    c->record = NULL;
    uint32_t stack = stack_sampled();
    c->stream = track_stream(stream, hook_kind(hook) == HOOK_PER_THREAD, false);
    c->handle = stream;
    c->asynchronous = asynchronous;
    c->captured = c->stream && device_stream_captures(c->stream);
    struct cap_set *r = c->record = c->captured ? NULL : capture_record(CAP_SET, sizeof *r, c->call.seq, c->call.tsc);
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
    if (!c->stream && result == CUDA_SUCCESS)
        c->stream = track_stream(c->handle, hook_kind(c->call.hook) == HOOK_PER_THREAD, true);
    if (c->record) {
        c->record->stream = c->stream ? c->stream->id : 0;
        __atomic_store_n(&c->record->call_ns, call_real_ns(&c->call), __ATOMIC_RELAXED);
        __atomic_store_n(&c->record->result, (int32_t)result, __ATOMIC_RELAXED);
    }
    if (result == CUDA_SUCCESS && !c->captured)
        sentinel_after_write(c->stream, c->call.seq, !c->asynchronous);
    return call_leave(&c->call, result);
}

/* A function and its form for a thread's own default stream. `pitch`, `width` and `height` are those that are recorded.
 */
#define FORM(name, function, bits, pitch, width, height, stream, asynchronous, parameters, ...)                        \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        struct set_call c;                                                                                             \
        if (!begin(&c, HOOK_##name, dst, pitch, value, (bits) / 8, width, height, stream, asynchronous))               \
            return PASS(function, HOOK_##name)(__VA_ARGS__);                                                           \
        return finish(&c, REAL(function, HOOK_##name)(__VA_ARGS__));                                                   \
    }
#define SET(function, own_stream, ...)                                                                                 \
    FORM(function, function, __VA_ARGS__)                                                                              \
    FORM(function##own_stream, function, __VA_ARGS__)
#define SETS(bits, type)                                                                                               \
    SET(cuMemsetD##bits##_v2, _ptds, bits, 0, count, 1, NULL, false, (CUdeviceptr dst, type value, size_t count), dst, \
        value, count)                                                                                                  \
    SET(cuMemsetD##bits##Async, _ptsz, bits, 0, count, 1, hStream, true,                                               \
        (CUdeviceptr dst, type value, size_t count, CUstream hStream), dst, value, count, hStream)                     \
    SET(cuMemsetD2D##bits##_v2, _ptds, bits, pitch, width, height, NULL, false,                                        \
        (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height), dst, pitch, value, width, height)    \
    SET(cuMemsetD2D##bits##Async, _ptsz, bits, pitch, width, height, hStream, true,                                    \
        (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, CUstream hStream), dst, pitch, value, \
        width, height, hStream)

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned int)
