/* wrap_context.c - cuInit and contexts. */
#include "shim/call.h"
#include "shim/driver.h"
#include "shim/health.h"
#include "shim/progress.h"
#include "shim/track.h"

CUresult cuInit(unsigned int Flags)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuInit))
        return PASS(cuInit, HOOK_cuInit)(Flags);
    call_begin(&call);
    CUresult result = REAL(cuInit, HOOK_cuInit)(Flags);
    call_end(&call);
    return call_leave(&call, result);
}

static void made_current(CUresult result)
{
    if (result == CUDA_SUCCESS)
        health_context();
}

static void made(CUresult result, const CUcontext *context)
{
    if (result == CUDA_SUCCESS && context)
        track_context_given(*context, true);
    made_current(result);
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuCtxCreate_v2))
        return PASS(cuCtxCreate_v2, HOOK_cuCtxCreate_v2)(pctx, flags, dev);
    call_begin(&call);
    CUresult result = REAL(cuCtxCreate_v2, HOOK_cuCtxCreate_v2)(pctx, flags, dev);
    call_end(&call);
    made(result, pctx);
    return call_leave(&call, result);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                        CUdevice dev)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuCtxCreate_v3))
        return PASS(cuCtxCreate_v3, HOOK_cuCtxCreate_v3)(pctx, paramsArray, numParams, flags, dev);
    call_begin(&call);
    CUresult result = REAL(cuCtxCreate_v3, HOOK_cuCtxCreate_v3)(pctx, paramsArray, numParams, flags, dev);
    call_end(&call);
    made(result, pctx);
    return call_leave(&call, result);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuCtxCreate_v4))
        return PASS(cuCtxCreate_v4, HOOK_cuCtxCreate_v4)(pctx, ctxCreateParams, flags, dev);
    call_begin(&call);
    CUresult result = REAL(cuCtxCreate_v4, HOOK_cuCtxCreate_v4)(pctx, ctxCreateParams, flags, dev);
    call_end(&call);
    made(result, pctx);
    return call_leave(&call, result);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuCtxSetCurrent))
        return PASS(cuCtxSetCurrent, HOOK_cuCtxSetCurrent)(ctx);
    call_begin(&call);
    CUresult result = REAL(cuCtxSetCurrent, HOOK_cuCtxSetCurrent)(ctx);
    call_end(&call);
    made_current(result);
    return call_leave(&call, result);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuCtxPushCurrent_v2))
        return PASS(cuCtxPushCurrent_v2, HOOK_cuCtxPushCurrent_v2)(ctx);
    call_begin(&call);
    CUresult result = REAL(cuCtxPushCurrent_v2, HOOK_cuCtxPushCurrent_v2)(ctx);
    call_end(&call);
    made_current(result);
    return call_leave(&call, result);
}

/* A last look at a context that is about to end, in whatever thread and with whatever context current. */
static void tear_down(struct tracked_context *context)
{
    if (!context)
        return;
    if (track_current_context() == context) {
        health_before_teardown(context);
    } else if (driver.cuCtxPushCurrent_v2 && driver.cuCtxPopCurrent_v2 &&
               driver.cuCtxPushCurrent_v2(context->handle) == CUDA_SUCCESS) {
        CUcontext popped;
        health_before_teardown(context);
        driver.cuCtxPopCurrent_v2(&popped);
    }
    progress_context_ends(context); /* from now on nobody asks in it */
}

static CUresult context_destroy(enum hook hook, CUcontext handle)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuCtxDestroy_v2, hook)(handle);
    struct tracked_context *context = track_known_context(handle);
    tear_down(context);
    call_begin(&call);
    CUresult result = REAL(cuCtxDestroy_v2, hook)(handle);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_context_gone(context); /* this one, not who has its handle by now */
    progress_context_stays(context);
    return call_leave(&call, result);
}

CUresult cuCtxDestroy(CUcontext ctx)
{
    return context_destroy(HOOK_cuCtxDestroy, ctx);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    return context_destroy(HOOK_cuCtxDestroy_v2, ctx);
}

/* Gives up one use of the context; whether it was the last one shows in that it is current no longer. */
CUresult cuCtxDetach(CUcontext ctx)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuCtxDetach))
        return PASS(cuCtxDetach, HOOK_cuCtxDetach)(ctx);
    struct tracked_context *before = track_current_context();
    bool was_current = before && before->handle == ctx;
    if (was_current)
        tear_down(before);
    call_begin(&call);
    CUresult result = REAL(cuCtxDetach, HOOK_cuCtxDetach)(ctx);
    call_end(&call);
    CUcontext now = NULL;
    if (result == CUDA_SUCCESS && was_current && driver.cuCtxGetCurrent &&
        driver.cuCtxGetCurrent(&now) == CUDA_SUCCESS && now != ctx)
        track_context_gone(before);
    progress_context_stays(was_current ? before : NULL);
    return call_leave(&call, result);
}

/* The primary contexts by device, as the driver gave them out. Programs release and reset them with none current, or
 * one of their own. */
enum { DEVICES_MAX = 64 };
static CUcontext primaries[DEVICES_MAX]; /* atomic */

static struct tracked_context *primary_of(CUdevice device)
{
    return device >= 0 && device < DEVICES_MAX
               ? track_known_context(__atomic_load_n(&primaries[device], __ATOMIC_ACQUIRE))
               : NULL;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuDevicePrimaryCtxRetain))
        return PASS(cuDevicePrimaryCtxRetain, HOOK_cuDevicePrimaryCtxRetain)(pctx, dev);
    call_begin(&call);
    CUresult result = REAL(cuDevicePrimaryCtxRetain, HOOK_cuDevicePrimaryCtxRetain)(pctx, dev);
    call_end(&call);
    if (result == CUDA_SUCCESS && pctx && dev >= 0 && dev < DEVICES_MAX) {
        track_context_given(*pctx, false);
        __atomic_store_n(&primaries[dev], *pctx, __ATOMIC_RELEASE);
    }
    return call_leave(&call, result);
}

static CUresult primary_release(enum hook hook, CUdevice device)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuDevicePrimaryCtxRelease, hook)(device);
    struct tracked_context *context = primary_of(device);
    tear_down(context);
    call_begin(&call);
    CUresult result = REAL(cuDevicePrimaryCtxRelease, hook)(device);
    call_end(&call);
    unsigned flags = 0;
    int active = 1;
    if (result == CUDA_SUCCESS && context && driver.cuDevicePrimaryCtxGetState &&
        driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active)
        track_context_gone(context);
    progress_context_stays(context);
    return call_leave(&call, result);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return primary_release(HOOK_cuDevicePrimaryCtxRelease, dev);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    return primary_release(HOOK_cuDevicePrimaryCtxRelease_v2, dev);
}

static CUresult primary_reset(enum hook hook, CUdevice device)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuDevicePrimaryCtxReset, hook)(device);
    struct tracked_context *context = primary_of(device);
    tear_down(context);
    call_begin(&call);
    CUresult result = REAL(cuDevicePrimaryCtxReset, hook)(device);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_context_gone(context);
    progress_context_stays(context);
    return call_leave(&call, result);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
    return primary_reset(HOOK_cuDevicePrimaryCtxReset, dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    return primary_reset(HOOK_cuDevicePrimaryCtxReset_v2, dev);
}
