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

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuCtxCreate_v2))
        return PASS(cuCtxCreate_v2, HOOK_cuCtxCreate_v2)(pctx, flags, dev);
    call_begin(&call);
    CUresult result = REAL(cuCtxCreate_v2, HOOK_cuCtxCreate_v2)(pctx, flags, dev);
    call_end(&call);
    made_current(result);
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
    made_current(result);
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
    made_current(result);
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

static void tear_down(CUcontext handle)
{
    struct tracked_context *context = track_context(handle);
    if (!context)
        return;
    progress_context_ends(context);
    health_before_teardown(context);
}

static CUresult context_destroy(enum hook hook, CUcontext handle)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuCtxDestroy_v2, hook)(handle);
    const struct tracked_context *current = track_current_context();
    if (current && current->handle == handle) /* only then can it be asked */
        tear_down(handle);
    else
        progress_context_ends(track_known_context(handle));
    call_begin(&call);
    CUresult result = REAL(cuCtxDestroy_v2, hook)(handle);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        track_context_gone(handle);
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
        tear_down(ctx);
    call_begin(&call);
    CUresult result = REAL(cuCtxDetach, HOOK_cuCtxDetach)(ctx);
    call_end(&call);
    CUcontext now = NULL;
    if (result == CUDA_SUCCESS && was_current && driver.cuCtxGetCurrent &&
        driver.cuCtxGetCurrent(&now) == CUDA_SUCCESS && now != ctx)
        track_context_gone(ctx);
    progress_context_stays(was_current ? before : NULL);
    return call_leave(&call, result);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuDevicePrimaryCtxRetain))
        return PASS(cuDevicePrimaryCtxRetain, HOOK_cuDevicePrimaryCtxRetain)(pctx, dev);
    call_begin(&call);
    CUresult result = REAL(cuDevicePrimaryCtxRetain, HOOK_cuDevicePrimaryCtxRetain)(pctx, dev);
    call_end(&call);
    return call_leave(&call, result);
}

/* The primary context of a device, when we know it. Primary and created ones are told apart by the driver only, so: the
 * one that is current now, if it belongs to the device. That is what a program has when it releases or resets. */
static struct tracked_context *current_of_device(CUdevice device)
{
    struct tracked_context *context = track_current_context();
    return context && context->device == (uint32_t)device ? context : NULL;
}

static CUresult primary_release(enum hook hook, CUdevice device)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuDevicePrimaryCtxRelease, hook)(device);
    struct tracked_context *context = current_of_device(device);
    CUcontext handle = context ? context->handle : NULL;
    if (context) {
        progress_context_ends(context);
        health_before_teardown(context);
    }
    call_begin(&call);
    CUresult result = REAL(cuDevicePrimaryCtxRelease, hook)(device);
    call_end(&call);
    unsigned flags = 0;
    int active = 1;
    if (result == CUDA_SUCCESS && handle && driver.cuDevicePrimaryCtxGetState &&
        driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active)
        track_context_gone(handle);
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
    struct tracked_context *context = current_of_device(device);
    CUcontext handle = context ? context->handle : NULL;
    if (context) {
        progress_context_ends(context);
        health_before_teardown(context);
    }
    call_begin(&call);
    CUresult result = REAL(cuDevicePrimaryCtxReset, hook)(device);
    call_end(&call);
    if (result == CUDA_SUCCESS && handle)
        track_context_gone(handle);
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
