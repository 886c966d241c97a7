/* Events. An event names the operation that its last record put into a stream. */
#include <stdlib.h>

#include "softgpu/context.h"

enum { FLAGS_KNOWN = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS };

struct event {
    struct context *context;
    unsigned flags;
    struct op *record; /* under the engine's lock: reference to the marker, NULL when never recorded */
};

static CUresult enter_event(CUevent handle, struct event **out)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle_of(handle) != HANDLE_EVENT)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct event *)handle;
    if (!atomic_load(&(*out)->context->alive))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return CUDA_SUCCESS;
}

static struct op *newest_record(struct event *e)
{
    engine_lock();
    struct op *op = op_ref(e->record);
    engine_unlock();
    return op;
}

/* Takes over the reference. */
static void set_record(struct event *e, struct op *marker)
{
    engine_lock();
    struct op *before = e->record;
    e->record = marker;
    engine_unlock();
    op_unref(before);
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!phEvent || (Flags & ~(unsigned)FLAGS_KNOWN) ||
        ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_EVENT_INTERPROCESS)
        return log_unsupported_part("cuEventCreate", "CU_EVENT_INTERPROCESS");
    struct event *e = calloc(1, sizeof *e);
    if (!e || !handle_add(e, HANDLE_EVENT)) {
        free(e);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    e->context = c;
    e->flags = Flags;
    *phEvent = (CUevent)e;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle_remove(hEvent, HANDLE_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    struct event *e = (struct event *)hEvent;
    op_unref(e->record);
    CUresult error = context_error(e->context);
    free(e);
    return error;
}

CUresult cuEventDestroy(CUevent hEvent)
{
    return cuEventDestroy_v2(hEvent);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    struct context *c;
    struct event *e;
    struct stream *s;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = enter_event(hEvent, &e);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE; /* only while capturing */
    if (s->context != e->context)
        return CUDA_ERROR_INVALID_HANDLE;
    struct op *marker = op_new(sizeof *marker, NULL, NULL);
    if (!marker)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = engine_submit(s, marker);
    if (result != CUDA_SUCCESS) {
        op_unref(marker);
        return result;
    }
    set_record(e, marker);
    return CUDA_SUCCESS;
}

CUresult cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags)
{
    return cuEventRecordWithFlags(hEvent, per_thread(hStream), flags);
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
    return cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult cuEventRecord_ptsz(CUevent hEvent, CUstream hStream)
{
    return cuEventRecordWithFlags(hEvent, per_thread(hStream), 0);
}

CUresult cuEventQuery(CUevent hEvent)
{
    struct event *e;
    CUresult result = enter_event(hEvent, &e);
    if (result != CUDA_SUCCESS)
        return result;
    struct op *op = newest_record(e);
    bool done = !op || atomic_load(&op->done);
    op_unref(op);
    CUresult error = context_error(e->context);
    return error != CUDA_SUCCESS ? error : done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent hEvent)
{
    struct event *e;
    CUresult result = enter_event(hEvent, &e);
    if (result != CUDA_SUCCESS)
        return result;
    struct op *op = newest_record(e);
    result = engine_wait(op);
    op_unref(op);
    if (result != CUDA_SUCCESS)
        return result;
    context_flush(e->context);
    return context_error(e->context);
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    struct event *start, *end;
    CUresult result = enter_event(hStart, &start);
    if (result == CUDA_SUCCESS)
        result = enter_event(hEnd, &end);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pMilliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (start->context != end->context || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    struct op *from = newest_record(start), *to = newest_record(end);
    CUresult error = context_error(start->context);
    if (!from || !to)
        result = CUDA_ERROR_INVALID_HANDLE; /* never recorded */
    else if (error != CUDA_SUCCESS)
        result = error;
    else if (!atomic_load(&from->done) || !atomic_load(&to->done))
        result = CUDA_ERROR_NOT_READY;
    else
        *pMilliseconds = (float)(((double)to->finished_ns - (double)from->finished_ns) / 1e6);
    op_unref(from);
    op_unref(to);
    return result;
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    struct context *c;
    struct event *e;
    struct stream *s;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = enter_event(hEvent, &e);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    struct op *record = newest_record(e);
    if (!record || atomic_load(&record->done)) {
        op_unref(record);
        return CUDA_SUCCESS;
    }
    struct op *wait = op_new(sizeof *wait, NULL, NULL);
    if (!wait || !op_after(wait, record)) {
        op_unref(wait);
        op_unref(record);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    op_unref(record);
    return engine_submit_and_forget(s, wait);
}

CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    return cuStreamWaitEvent(per_thread(hStream), hEvent, Flags);
}

/* ---- of whole contexts ------------------------------------------------------------------------------------------ */

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct context *c;
    struct event *e;
    CUresult result = context_from(hCtx, &c);
    if (result == CUDA_SUCCESS)
        result = enter_event(hEvent, &e);
    if (result == CUDA_SUCCESS && e->context != c)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result != CUDA_SUCCESS)
        return result;
    struct op *marker = op_new(sizeof *marker, NULL, NULL);
    result = marker ? engine_gather(c, marker) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = engine_submit_aside(c, marker);
    if (result == CUDA_SUCCESS)
        set_record(e, op_ref(marker));
    op_unref(marker);
    return result;
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    struct context *c;
    struct event *e;
    CUresult result = context_from(hCtx, &c);
    if (result == CUDA_SUCCESS)
        result = enter_event(hEvent, &e);
    if (result != CUDA_SUCCESS)
        return result;
    struct op *record = newest_record(e), *wait = op_new(sizeof *wait, NULL, NULL);
    if (!wait || !op_after(wait, record))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else
        result = engine_submit_aside(c, wait);
    if (result == CUDA_SUCCESS)
        engine_set_gate(c, wait);
    op_unref(wait);
    op_unref(record);
    return result;
}
