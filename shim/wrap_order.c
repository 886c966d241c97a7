/* wrap_order.c - what orders work beside events and waiting: functions of the host in a stream, events of whole
 * contexts, semaphores of other interfaces, events shared with other processes. The analyzer must know of each, or it
 * would call work unordered that is not.
 */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/host_function.h"
#include "shim/record.h"
#include "shim/track.h"

#define NO_STREAM                  0
#define STREAM(handle, own_stream) track_stream_id(handle, own_stream)

#define ORDER(symbol, op, stream, parameters, ...)                                                                     \
    WRAP_AFTER_SUCCESS(symbol, symbol, record_order(&call, op, 0, stream), parameters, __VA_ARGS__)
#define ORDER_BOTH(symbol, op, parameters, ...)                                                                        \
    ORDER(symbol, op, STREAM(hStream, false), parameters, __VA_ARGS__)                                                 \
    ORDER(symbol##_ptsz, op, STREAM(hStream, true), parameters, __VA_ARGS__)

static CUresult called(struct call *call, CUresult result, struct host_function *f, CUstream stream, bool own_stream)
{
    if (result == CUDA_SUCCESS)
        record_order(call, CAP_ORDER_HOST_FUNCTION, 0, STREAM(stream, own_stream));
    else
        host_function_refused(f);
    return call_leave(call, result);
}

static CUresult launch_function(enum hook hook, bool own_stream, CUstream stream, CUhostFn fn, void *data)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuLaunchHostFunc, hook)(stream, fn, data);
    struct host_function *f = host_function_new(&call, stream, own_stream, (void *)fn, data);
    call_begin(&call);
    CUresult result = REAL(cuLaunchHostFunc, hook)(stream, f ? host_function_called : fn, f ? f : data);
    call_end(&call);
    return called(&call, result, f, stream, own_stream);
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    return launch_function(HOOK_cuLaunchHostFunc, false, hStream, fn, userData);
}

CUresult cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void *userData)
{
    return launch_function(HOOK_cuLaunchHostFunc_ptsz, true, hStream, fn, userData);
}

static CUresult add_callback(enum hook hook, bool own_stream, CUstream stream, CUstreamCallback callback, void *data,
                             unsigned int flags)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuStreamAddCallback, hook)(stream, callback, data, flags);
    struct host_function *f = host_function_new(&call, stream, own_stream, (void *)callback, data);
    call_begin(&call);
    CUresult result =
        REAL(cuStreamAddCallback, hook)(stream, f ? host_function_called_back : callback, f ? f : data, flags);
    call_end(&call);
    return called(&call, result, f, stream, own_stream);
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
    return add_callback(HOOK_cuStreamAddCallback, false, hStream, callback, userData, flags);
}

CUresult cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
    return add_callback(HOOK_cuStreamAddCallback_ptsz, true, hStream, callback, userData, flags);
}

ORDER_BOTH(cuSignalExternalSemaphoresAsync, CAP_ORDER_FOREIGN,
           (const CUexternalSemaphore *extSemArray, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray,
            unsigned int numExtSems, CUstream hStream),
           extSemArray, paramsArray, numExtSems, hStream)
ORDER_BOTH(cuWaitExternalSemaphoresAsync, CAP_ORDER_FOREIGN,
           (const CUexternalSemaphore *extSemArray, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray,
            unsigned int numExtSems, CUstream hStream),
           extSemArray, paramsArray, numExtSems, hStream)
ORDER(cuCtxRecordEvent, CAP_ORDER_FOREIGN, NO_STREAM, (CUcontext hCtx, CUevent hEvent), hCtx, hEvent)
ORDER(cuCtxWaitEvent, CAP_ORDER_FOREIGN, NO_STREAM, (CUcontext hCtx, CUevent hEvent), hCtx, hEvent)
ORDER(cuGreenCtxRecordEvent, CAP_ORDER_FOREIGN, NO_STREAM, (CUgreenCtx hCtx, CUevent hEvent), hCtx, hEvent)
ORDER(cuGreenCtxWaitEvent, CAP_ORDER_FOREIGN, NO_STREAM, (CUgreenCtx hCtx, CUevent hEvent), hCtx, hEvent)
ORDER(cuIpcGetEventHandle, CAP_ORDER_FOREIGN, NO_STREAM, (CUipcEventHandle * pHandle, CUevent event), pHandle, event)

/* Its handle may have been that of an event which went with its context. */
static void opened(const struct call *call, CUevent event)
{
    uint32_t flags;
    (void)track_event_take(event, &flags);
    record_order(call, CAP_ORDER_FOREIGN, 0, NO_STREAM);
}

WRAP_AFTER_SUCCESS(cuIpcOpenEventHandle, cuIpcOpenEventHandle, opened(&call, *phEvent),
                   (CUevent * phEvent, CUipcEventHandle handle), phEvent, handle)
