/* Events. An event names the operation that its last record put into a stream. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/capture.h"
#include "softgpu/event.h"
#include "softgpu/ipc.h"

enum { FLAGS_KNOWN = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS };

CUresult event_from(CUevent handle, struct event **out)
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

struct op *event_newest(struct event *e)
{
    engine_lock();
    struct op *op = op_ref(e->record);
    engine_unlock();
    return op;
}

struct op *event_make_record(struct event *e)
{
    return e->ipc ? ipc_record(e->ipc) : op_new(sizeof(struct op), NULL, NULL);
}

/* Whether all that was recorded has been reached, by other processes, too. */
static bool all_reached(struct event *e)
{
    if (e->ipc)
        return ipc_done(e->ipc);
    struct op *op = event_newest(e);
    bool done = !op || atomic_load(&op->done);
    op_unref(op);
    return done;
}

/* An operation that waits for what was recorded so far. NULL: out of memory. */
static struct op *make_wait(struct context *context, struct event *e)
{
    if (e->ipc)
        return ipc_wait(context, e->ipc);
    struct op *record = event_newest(e), *wait = op_new(sizeof *wait, NULL, NULL);
    if (wait && !op_after(wait, record)) {
        op_unref(wait);
        wait = NULL;
    }
    op_unref(record);
    return wait;
}

void event_set_record(struct event *e, struct op *marker)
{
    engine_lock();
    struct op *before = e->record;
    e->record = op_ref(marker);
    engine_unlock();
    op_unref(before);
}

/* `page` and `fd` are taken over: of an event that other processes see. */
static CUresult new_event(struct context *c, unsigned flags, struct share_label *page, int fd, CUevent *out)
{
    struct event *e = calloc(1, sizeof *e);
    if (e && page)
        e->ipc = ipc_event_new(page);
    if (!e || (page && !e->ipc) || !handle_add(e, HANDLE_EVENT)) {
        if (page && !(e && e->ipc))
            munmap(page, SHARE_LABEL_BYTES);
        if (e)
            ipc_event_unref(e->ipc);
        if (fd >= 0)
            close(fd);
        free(e);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    e->context = c;
    e->flags = flags;
    e->fd = fd;
    *out = (CUevent)e;
    return CUDA_SUCCESS;
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
    struct share_label *label = NULL;
    int fd = Flags & CU_EVENT_INTERPROCESS ? share_create(SHARE_EVENT, c->device, 0, &label) : -1;
    if (Flags & CU_EVENT_INTERPROCESS && fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return new_event(c, Flags, label, fd, phEvent);
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
    capture_forget(e);
    CUresult error = context_error(e->context);
    ipc_event_unref(e->ipc);
    if (e->fd >= 0)
        close(e->fd);
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
        result = event_from(hEvent, &e);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->context != e->context)
        return CUDA_ERROR_INVALID_HANDLE;
    bool captured;
    result = capture_enter(s, false, &captured);
    if (result == CUDA_SUCCESS && captured)
        return capture_record(s, e, flags & CU_EVENT_RECORD_EXTERNAL);
    if (result == CUDA_SUCCESS && flags & CU_EVENT_RECORD_EXTERNAL)
        result = CUDA_ERROR_INVALID_VALUE; /* only while capturing */
    if (result != CUDA_SUCCESS)
        return result;
    capture_forget(e);
    struct op *marker = event_make_record(e);
    if (!marker)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = engine_submit(s, marker);
    if (result == CUDA_SUCCESS)
        event_set_record(e, marker);
    op_unref(marker);
    return result;
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
    CUresult result = event_from(hEvent, &e);
    if (result == CUDA_SUCCESS)
        result = capture_event(e);
    if (result == CUDA_SUCCESS)
        result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    bool done = all_reached(e);
    CUresult error = context_error(e->context);
    return error != CUDA_SUCCESS ? error : done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent hEvent)
{
    struct event *e;
    CUresult result = event_from(hEvent, &e);
    if (result == CUDA_SUCCESS)
        result = capture_event(e);
    if (result == CUDA_SUCCESS)
        result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (e->ipc) {
        result = ipc_synchronize(e->context, e->ipc);
    } else {
        struct op *op = event_newest(e);
        result = engine_wait(op);
        op_unref(op);
    }
    if (result != CUDA_SUCCESS)
        return result;
    context_flush(e->context);
    return context_error(e->context);
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
    struct event *start, *end;
    CUresult result = event_from(hStart, &start);
    if (result == CUDA_SUCCESS)
        result = event_from(hEnd, &end);
    if (result == CUDA_SUCCESS)
        result = capture_event(start);
    if (result == CUDA_SUCCESS)
        result = capture_event(end);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pMilliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (start->context != end->context || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    struct op *from = event_newest(start), *to = event_newest(end);
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
        result = event_from(hEvent, &e);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    bool captured;
    if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_INVALID_VALUE;
    result = capture_wait(s, e, Flags & CU_EVENT_WAIT_EXTERNAL, &captured);
    if (result != CUDA_SUCCESS || captured || all_reached(e))
        return result;
    struct op *wait = make_wait(s->context, e);
    return wait ? engine_submit_and_forget(s, wait) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
    return cuStreamWaitEvent(per_thread(hStream), hEvent, Flags);
}

/* ---- between processes ------------------------------------------------------------------------------------------ */

CUresult cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
    struct event *e;
    CUresult result = event_from(event, &e);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pHandle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!e->ipc || e->fd < 0) /* made without CU_EVENT_INTERPROCESS, or another process's */
        return CUDA_ERROR_INVALID_HANDLE;
    struct share_handle h = {.magic = (uint32_t)ipc_event_label(e->ipc)->magic,
                             .kind = SHARE_EVENT,
                             .pid = getpid(),
                             .fd = e->fd,

                             .id = ipc_event_label(e->ipc)->id};
    memset(pHandle, 0, sizeof *pHandle);
    memcpy(pHandle, &h, sizeof h);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
    struct context *c;
    struct share_handle h;
    struct share_label label;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!phEvent)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&h, &handle, sizeof h);
    if (h.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* handles are for other processes */
    int fd = h.kind == SHARE_EVENT ? share_open(&h, &label) : -1;
    if (fd < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    struct share_label *page = mmap(NULL, SHARE_LABEL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return CUDA_ERROR_MAP_FAILED;
    return new_event(c, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS, page, -1, phEvent);
}

/* ---- of whole contexts ------------------------------------------------------------------------------------------ */

CUresult cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
    struct context *c;
    struct event *e;
    CUresult result = context_from(hCtx, &c);
    if (result == CUDA_SUCCESS)
        result = event_from(hEvent, &e);
    if (result == CUDA_SUCCESS && e->context != c)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = capture_query_context(c);
    if (result != CUDA_SUCCESS)
        return result;
    capture_forget(e);
    struct op *marker = event_make_record(e);
    result = marker ? engine_gather(c, marker) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        result = engine_submit_aside(c, marker);
    if (result == CUDA_SUCCESS)
        event_set_record(e, marker);
    op_unref(marker);
    return result;
}

CUresult cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
    struct context *c;
    struct event *e;
    CUresult result = context_from(hCtx, &c);
    if (result == CUDA_SUCCESS)
        result = event_from(hEvent, &e);
    if (result == CUDA_SUCCESS)
        result = capture_query_context(c);
    if (result == CUDA_SUCCESS)
        result = capture_event(e);
    if (result != CUDA_SUCCESS)
        return result;
    struct op *wait = make_wait(c, e);
    result = wait ? engine_submit_aside(c, wait) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        engine_set_gate(c, wait);
    op_unref(wait);
    return result;
}
