/* Contexts and the primary context. */
#include "softgpu/capture.h"
#include "softgpu/memory.h"
#include "softgpu/pool.h"

enum { FLAGS_KNOWN = CU_CTX_FLAGS_MASK };

static bool bad_device(CUdevice dev)
{
    return !device_exists(dev);
}

/* ---- primary context -------------------------------------------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    struct context *c = context_primary((unsigned)dev);
    engine_lock();
    bool first = c->retains++ == 0;
    engine_unlock();
    if (first)
        context_revive(c);
    *pctx = (CUcontext)c;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (bad_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    struct context *c = context_primary((unsigned)dev);
    engine_lock();
    bool held = c->retains > 0, last = c->retains == 1;
    c->retains -= held;
    engine_unlock();
    if (!held)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (last && state_exiting())
        context_finish(c);
    else if (last)
        context_teardown(c);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
    return cuDevicePrimaryCtxRelease_v2(dev);
}

/* Tears the context down whatever holds it; who still holds it finds it fresh. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (bad_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    struct context *c = context_primary((unsigned)dev);
    if (atomic_load(&c->alive)) {
        context_teardown(c);
        pool_reset(c->device);
    }
    engine_lock();
    bool held = c->retains > 0;
    engine_unlock();
    if (held)
        context_revive(c);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
    return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (bad_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned)FLAGS_KNOWN)
        return CUDA_ERROR_INVALID_VALUE;
    context_primary((unsigned)dev)->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (bad_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    struct context *c = context_primary((unsigned)dev);
    if (flags)
        *flags = c->flags;
    if (active)
        *active = atomic_load(&c->alive);
    return CUDA_SUCCESS;
}

/* ---- creation and the stack ------------------------------------------------------------------------------------- */

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!pctx || (flags & ~(unsigned)FLAGS_KNOWN))
        return CUDA_ERROR_INVALID_VALUE;
    if (bad_device(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    struct context *c = context_create(flags, (unsigned)dev);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pctx = (CUcontext)c;
    return context_push(c);
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
    return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
                        CUdevice dev)
{
    if (numParams)
        return paramsArray ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : CUDA_ERROR_INVALID_VALUE;
    return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
    if (ctxCreateParams && ctxCreateParams->numExecAffinityParams)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (ctxCreateParams && ctxCreateParams->cigParams)
        return log_unsupported_part("cuCtxCreate_v4", "shared graphics context");
    return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!ctx || handle_of(ctx) != HANDLE_CONTEXT || ((struct context *)ctx)->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct context *c = (struct context *)ctx;
    bool was_alive = atomic_exchange(&c->alive, false);
    if (!was_alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context_teardown(c);
    if (context_current() == c)
        context_pop();
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
    return cuCtxDestroy_v2(ctx);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!ctx || handle_of(ctx) != HANDLE_CONTEXT)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context_push((struct context *)ctx);
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
    return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct context *c = context_pop();
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (pctx)
        *pctx = (CUcontext)c;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
    return cuCtxPopCurrent_v2(pctx);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (ctx && handle_of(ctx) != HANDLE_CONTEXT)
        return CUDA_ERROR_INVALID_CONTEXT;
    return context_set_current((struct context *)ctx);
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = (CUcontext)context_current();
    return CUDA_SUCCESS;
}

/* Another use of the current context, to be ended by cuCtxDetach; the last one to end destroys it. */
CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pctx || flags)
        return CUDA_ERROR_INVALID_VALUE;
    engine_lock();
    c->attached++;
    engine_unlock();
    *pctx = (CUcontext)c;
    return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (!c)
        return result;
    if (ctx != (CUcontext)c)
        return CUDA_ERROR_INVALID_CONTEXT; /* it must be current */
    engine_lock();
    bool last = !c->attached;
    c->attached -= !last;
    engine_unlock();
    return last ? cuCtxDestroy_v2(ctx) : CUDA_SUCCESS;
}

/* ---- queries and settings --------------------------------------------------------------------------------------- */

CUresult cuCtxGetDevice(CUdevice *device)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (!c)
        return result;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = (CUdevice)c->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
    struct context *c;
    CUresult result = context_from(ctx, &c);
    if (!c)
        return result;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = (CUdevice)c->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (!c)
        return result;
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = c->flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (!c)
        return result;
    if (flags & ~(unsigned)FLAGS_KNOWN)
        return CUDA_ERROR_INVALID_VALUE;
    c->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
    struct context *c;
    CUresult result = context_from(ctx, &c);
    if (!c)
        return result;
    if (!ctxId)
        return CUDA_ERROR_INVALID_VALUE;
    *ctxId = c->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
    struct context *c;
    CUresult result = context_from(ctx, &c);
    if (!c)
        return result;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = 3020; /* of all contexts with 64-bit addresses, whatever the driver's version */
    return CUDA_SUCCESS;
}

/* No context is limited to some of the multiprocessors. */
CUresult cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    return pExecAffinity && type == CU_EXEC_AFFINITY_TYPE_SM_COUNT ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
                                                                   : CUDA_ERROR_INVALID_VALUE;
}

static CUresult synchronize(struct context *c)
{
    CUresult result = capture_query_context(c);
    if (result == CUDA_SUCCESS)
        result = engine_wait_context(c);
    if (result != CUDA_SUCCESS)
        return result;
    context_flush(c);
    pool_trim_idle();
    return context_error(c);
}

CUresult cuCtxSynchronize(void)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (!c)
        return result;
    return synchronize(c);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
    struct context *c;
    CUresult result = context_from(ctx, &c);
    return c && atomic_load(&c->alive) ? synchronize(c) : result;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if ((unsigned)limit >= LIMIT_COUNT)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    context_lock();
    bool late = limit == CU_LIMIT_MALLOC_HEAP_SIZE && c->heap; /* kernels have blocks in it */
    if (!late)
        c->limits[limit] = value;
    context_unlock();
    return late ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pvalue)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= LIMIT_COUNT)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *pvalue = c->limits[limit];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    c->cache_config = config;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pconfig)
        return CUDA_ERROR_INVALID_VALUE;
    *pconfig = c->cache_config;
    return CUDA_SUCCESS;
}

/* Bank width cannot be set on any device since Kepler: accepted and without effect there, too. */
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS && (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
        result = CUDA_ERROR_INVALID_VALUE;
    return result;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pConfig)
        return CUDA_ERROR_INVALID_VALUE;
    *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (leastPriority)
        *leastPriority = 0;
    if (greatestPriority)
        *greatestPriority = -5;
    return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    struct context *c;
    return enter_context(&c);
}
