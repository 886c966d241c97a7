/* wrap_stream.c - streams, events, and the program's waiting. */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/health.h"
#include "shim/progress.h"
#include "shim/record.h"
#include "shim/sentinel.h"
#include "shim/track.h"

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuStreamCreate))
        return PASS(cuStreamCreate, HOOK_cuStreamCreate)(phStream, Flags);
    call_begin(&call);
    CUresult result = REAL(cuStreamCreate, HOOK_cuStreamCreate)(phStream, Flags);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_stream_created(*phStream, Flags);
    return call_leave(&call, result);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuStreamCreateWithPriority))
        return PASS(cuStreamCreateWithPriority, HOOK_cuStreamCreateWithPriority)(phStream, flags, priority);
    call_begin(&call);
    CUresult result = REAL(cuStreamCreateWithPriority, HOOK_cuStreamCreateWithPriority)(phStream, flags, priority);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_stream_created(*phStream, flags);
    return call_leave(&call, result);
}

static CUresult stream_destroy(enum hook hook, CUstream handle)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuStreamDestroy_v2, hook)(handle);
    bool created = handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD;
    struct tracked_stream *stream = created ? track_stream(handle, false, false) : NULL;
    if (stream) {
        health_look(stream);
        progress_stream_ends(stream);
        stream = track_stream_take(handle);
        sentinel_lookers_leave();
    }
    call_begin(&call);
    CUresult result = REAL(cuStreamDestroy_v2, hook)(handle);
    call_end(&call);
    if (stream) {
        if (result == CUDA_SUCCESS && device_capture_ended(stream)) /* it ends with the stream that it began in */
            record_order(&call, CAP_ORDER_CAPTURE_END, 0, stream->id);
        track_stream_taken(stream, result == CUDA_SUCCESS);
    }
    return call_leave(&call, result);
}

CUresult cuStreamDestroy(CUstream hStream)
{
    return stream_destroy(HOOK_cuStreamDestroy, hStream);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
    return stream_destroy(HOOK_cuStreamDestroy_v2, hStream);
}

static void record_event_op(const struct call *call, enum cap_event_op op, uint32_t event, uint32_t stream)
{
    struct cap_event_op_record *record = capture_record(CAP_EVENT_OP, sizeof *record, call->seq, call->tsc);
    if (!record)
        return;
    record->op = op;
    record->event = event;
    record->stream = stream;
    capture_commit(record);
}

static CUresult stream_wait(enum hook hook, CUstream handle, CUevent event, unsigned int flags)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuStreamWaitEvent, hook)(handle, event, flags);
    bool per_thread = hook_kind(hook) == HOOK_PER_THREAD;
    uint32_t stream = track_stream_known_id(handle, per_thread); /* before: who waits for it may go on at once */
    if (stream)
        record_event_op(&call, CAP_EVENT_STREAM_WAIT, track_event(event, NULL), stream);
    call_begin(&call);
    CUresult result = REAL(cuStreamWaitEvent, hook)(handle, event, flags);
    call_end(&call);
    if (!stream && result == CUDA_SUCCESS)
        record_event_op(&call, CAP_EVENT_STREAM_WAIT, track_event(event, NULL), track_stream_id(handle, per_thread));
    return call_leave(&call, result);
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    return stream_wait(HOOK_cuStreamWaitEvent, hStream, hEvent, Flags);
}

CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    return stream_wait(HOOK_cuStreamWaitEvent_ptsz, hStream, hEvent, Flags);
}

static CUresult stream_synchronize(enum hook hook, CUstream handle)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuStreamSynchronize, hook)(handle);
    struct tracked_stream *stream = track_stream(handle, hook_kind(hook) == HOOK_PER_THREAD, false);
    if (stream)
        health_before_sync(stream);
    struct cap_sync *record = record_sync(&call, CAP_SYNC_STREAM, stream ? stream->id : 0);
    call_begin(&call);
    CUresult result = REAL(cuStreamSynchronize, hook)(handle);
    call_end(&call);
    record_sync_done(record, &call, result);
    health_after_sync(result);
    return call_leave(&call, result);
}

CUresult cuStreamSynchronize(CUstream hStream)
{
    return stream_synchronize(HOOK_cuStreamSynchronize, hStream);
}

CUresult cuStreamSynchronize_ptsz(CUstream hStream)
{
    return stream_synchronize(HOOK_cuStreamSynchronize_ptsz, hStream);
}

static CUresult stream_query(enum hook hook, CUstream handle)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuStreamQuery, hook)(handle);
    call_begin(&call);
    CUresult result = REAL(cuStreamQuery, hook)(handle);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        record_order(&call, CAP_ORDER_STREAM_DONE, 0, track_stream_id(handle, hook_kind(hook) == HOOK_PER_THREAD));
    health_poll();
    return call_leave(&call, result);
}

CUresult cuStreamQuery(CUstream hStream)
{
    return stream_query(HOOK_cuStreamQuery, hStream);
}

CUresult cuStreamQuery_ptsz(CUstream hStream)
{
    return stream_query(HOOK_cuStreamQuery_ptsz, hStream);
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuEventCreate))
        return PASS(cuEventCreate, HOOK_cuEventCreate)(phEvent, Flags);
    call_begin(&call);
    CUresult result = REAL(cuEventCreate, HOOK_cuEventCreate)(phEvent, Flags);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_event_created(*phEvent, Flags);
    return call_leave(&call, result);
}

static CUresult event_destroy(enum hook hook, CUevent event)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuEventDestroy_v2, hook)(event);
    uint32_t flags, id = track_event_take(event, &flags);
    call_begin(&call);
    CUresult result = REAL(cuEventDestroy_v2, hook)(event);
    call_end(&call);
    if (id)
        track_event_taken(event, id, flags, result == CUDA_SUCCESS);
    return call_leave(&call, result);
}

CUresult cuEventDestroy(CUevent hEvent)
{
    return event_destroy(HOOK_cuEventDestroy, hEvent);
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
    return event_destroy(HOOK_cuEventDestroy_v2, hEvent);
}

static void event_recorded(const struct call *call, CUevent event, CUstream handle)
{
    uint32_t flags = 0, id = track_event(event, &flags);
    struct tracked_stream *stream = track_stream(handle, hook_kind(call->hook) == HOOK_PER_THREAD, true);
    record_event_op(call, CAP_EVENT_RECORD, id, stream ? stream->id : 0);
    if (stream && id && !(flags & CU_EVENT_DISABLE_TIMING) && !device_stream_captures(stream))
        track_timing_event(stream, event, id, flags);
}

static CUresult event_record(enum hook hook, CUevent event, CUstream handle)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuEventRecord, hook)(event, handle);
    call_begin(&call);
    CUresult result = REAL(cuEventRecord, hook)(event, handle);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        event_recorded(&call, event, handle);
    return call_leave(&call, result);
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return event_record(HOOK_cuEventRecord, hEvent, hStream);
}

CUresult cuEventRecord_ptsz(CUevent hEvent, CUstream hStream)
{
    return event_record(HOOK_cuEventRecord_ptsz, hEvent, hStream);
}

static CUresult event_record_flags(enum hook hook, CUevent event, CUstream handle, unsigned int flags)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuEventRecordWithFlags, hook)(event, handle, flags);
    call_begin(&call);
    CUresult result = REAL(cuEventRecordWithFlags, hook)(event, handle, flags);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        event_recorded(&call, event, handle);
    return call_leave(&call, result);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    return event_record_flags(HOOK_cuEventRecordWithFlags, hEvent, hStream, flags);
}

CUresult cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    return event_record_flags(HOOK_cuEventRecordWithFlags_ptsz, hEvent, hStream, flags);
}

CUresult cuEventSynchronize(CUevent hEvent)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuEventSynchronize))
        return PASS(cuEventSynchronize, HOOK_cuEventSynchronize)(hEvent);
    struct cap_sync *record = record_sync(&call, CAP_SYNC_EVENT, track_event(hEvent, NULL));
    call_begin(&call);
    CUresult result = REAL(cuEventSynchronize, HOOK_cuEventSynchronize)(hEvent);
    call_end(&call);
    record_sync_done(record, &call, result);
    health_after_event(result);
    return call_leave(&call, result);
}

CUresult cuEventQuery(CUevent hEvent)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuEventQuery))
        return PASS(cuEventQuery, HOOK_cuEventQuery)(hEvent);
    call_begin(&call);
    CUresult result = REAL(cuEventQuery, HOOK_cuEventQuery)(hEvent);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        record_order(&call, CAP_ORDER_EVENT_DONE, track_event(hEvent, NULL), 0);
    health_poll();
    return call_leave(&call, result);
}

/* Two events have a time between them only when both are complete. */
#define ELAPSED(name)                                                                                                  \
    CUresult name(float *pMilliseconds, CUevent hStart, CUevent hEnd)                                                  \
    {                                                                                                                  \
        struct call call;                                                                                              \
        if (!call_enter(&call, HOOK_##name))                                                                           \
            return PASS(name, HOOK_##name)(pMilliseconds, hStart, hEnd);                                               \
        call_begin(&call);                                                                                             \
        CUresult result = REAL(name, HOOK_##name)(pMilliseconds, hStart, hEnd);                                        \
        call_end(&call);                                                                                               \
        if (result == CUDA_SUCCESS) {                                                                                  \
            record_order(&call, CAP_ORDER_EVENT_DONE, track_event(hStart, NULL), 0);                                   \
            call.seq = capture_next_seq();                                                                             \
            record_order(&call, CAP_ORDER_EVENT_DONE, track_event(hEnd, NULL), 0);                                     \
        }                                                                                                              \
        return call_leave(&call, result);                                                                              \
    }
ELAPSED(cuEventElapsedTime)
ELAPSED(cuEventElapsedTime_v2)

CUresult cuCtxSynchronize(void)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuCtxSynchronize))
        return PASS(cuCtxSynchronize, HOOK_cuCtxSynchronize)();
    const struct tracked_context *context = track_current_context();
    health_before_sync(NULL);
    struct cap_sync *record = record_sync(&call, CAP_SYNC_CONTEXT, context ? context->id : 0);
    call_begin(&call);
    CUresult result = REAL(cuCtxSynchronize, HOOK_cuCtxSynchronize)();
    call_end(&call);
    record_sync_done(record, &call, result);
    health_after_sync(result);
    return call_leave(&call, result);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuCtxSynchronize_v2))
        return PASS(cuCtxSynchronize_v2, HOOK_cuCtxSynchronize_v2)(ctx);
    const struct tracked_context *context = track_current_context();
    bool current = context && (!ctx || context->handle == ctx);
    if (current) /* only the current context can be given work */
        health_before_sync(NULL);
    struct cap_sync *record = record_sync(&call, CAP_SYNC_CONTEXT, current ? context->id : 0);
    call_begin(&call);
    CUresult result = REAL(cuCtxSynchronize_v2, HOOK_cuCtxSynchronize_v2)(ctx);
    call_end(&call);
    record_sync_done(record, &call, result);
    health_after_sync(result);
    return call_leave(&call, result);
}
