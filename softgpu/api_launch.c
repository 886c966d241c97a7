/* Launches in all their forms, and functions of the host in streams. */
#include "softgpu/capture.h"
#include "softgpu/launch.h"

static CUresult capture(CUfunction f, struct stream *stream, const struct launch *launch,
                        const CUlaunchAttribute *attributes, unsigned count)
{
    const CUlaunchAttribute cooperative = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                                .kernel = {.func = f,
                                           .gridDimX = launch->grid[0],
                                           .gridDimY = launch->grid[1],
                                           .gridDimZ = launch->grid[2],
                                           .blockDimX = launch->block[0],
                                           .blockDimY = launch->block[1],
                                           .blockDimZ = launch->block[2],
                                           .sharedMemBytes = launch->dynamic_shared,
                                           .kernelParams = launch->params,
                                           .extra = launch->extra}};
    if (!count && launch->cooperative)
        return capture_add(stream, &params, &cooperative, 1);
    return capture_add(stream, &params, attributes, count);
}

static CUresult submit(CUfunction f, CUstream hStream, const struct launch *launch, const CUlaunchAttribute *attributes,
                       unsigned attribute_count)
{
    struct context *c;
    struct function *function;
    struct stream *stream;
    bool captured;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &stream);
    if (result == CUDA_SUCCESS)
        result = function_from(f, stream->context, &function);
    if (result == CUDA_SUCCESS)
        result = capture_enter(stream, false, &captured);
    if (result == CUDA_SUCCESS && captured)
        return capture(f, stream, launch, attributes, attribute_count);
    return result == CUDA_SUCCESS ? launch_submit(c, function, stream, launch) : result;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
    struct launch launch = {.grid = {gridDimX, gridDimY, gridDimZ},
                            .block = {blockDimX, blockDimY, blockDimZ},
                            .dynamic_shared = sharedMemBytes,
                            .params = kernelParams,
                            .extra = extra};
    return submit(f, hStream, &launch, NULL, 0);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                             unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
    return cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                          per_thread(hStream), kernelParams, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream, void **kernelParams)
{
    struct launch launch = {.grid = {gridDimX, gridDimY, gridDimZ},
                            .block = {blockDimX, blockDimY, blockDimZ},
                            .dynamic_shared = sharedMemBytes,
                            .params = kernelParams,
                            .cooperative = true};
    return submit(f, hStream, &launch, NULL, 0);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                        void **kernelParams)
{
    return cuLaunchCooperativeKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes,
                                     per_thread(hStream), kernelParams);
}

/* Attributes that change only how fast something is are accepted; those that would change what a kernel does are not.
 */
static CUresult apply_attribute(const CUlaunchAttribute *a, struct launch *launch)
{
    switch ((int)a->id) {
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        launch->cooperative = a->value.cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (a->value.clusterDim.x == 1 && a->value.clusterDim.y == 1 && a->value.clusterDim.z == 1)
            return CUDA_SUCCESS;
        return log_unsupported_part("cuLaunchKernelEx", "cluster dimension");
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: /* may overlap, need not */
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return CUDA_SUCCESS;
    default:
        return log_unsupported_part("cuLaunchKernelEx", "launch attribute");
    }
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction f, bool own_default, void **kernelParams,
                          void **extra)
{
    struct context *c;
    CUresult result = enter_context(&c); /* without a context nothing is read */
    if (result != CUDA_SUCCESS)
        return result;
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    struct launch launch = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                            .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                            .dynamic_shared = config->sharedMemBytes,
                            .params = kernelParams,
                            .extra = extra};
    if (config->numAttrs && !config->attrs)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        result = apply_attribute(&config->attrs[i], &launch);
        if (result != CUDA_SUCCESS)
            return result;
    }
    return submit(f, own_default ? per_thread(config->hStream) : config->hStream, &launch, config->attrs,
                  config->numAttrs);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    return launch_ex(config, f, false, kernelParams, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    return launch_ex(config, f, true, kernelParams, extra);
}

/* ---- functions of the host -------------------------------------------------------------------------------------- */

struct host_op {
    struct op op;
    CUhostFn function;
    CUstreamCallback callback;
    CUstream stream;
    struct context *context;
    void *data;
};

static void run_host(struct op *op)
{
    struct host_op *h = (struct host_op *)op;
    if (h->callback)
        context_flush(h->context); /* documented: what kernels before it printed comes first */
    engine_callback(true);
    if (h->function)
        h->function(h->data);
    else if (h->callback)
        h->callback(h->stream, context_error(h->context), h->data);
    engine_callback(false);
}

static CUresult submit_host(CUstream hStream, CUhostFn function, CUstreamCallback callback, void *data)
{
    struct context *c;
    struct stream *stream;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &stream);
    bool captured = false;
    if (result == CUDA_SUCCESS && function)
        result = capture_enter(stream, false, &captured);
    if (result == CUDA_SUCCESS && captured) {
        CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {function, data}};
        return capture_add(stream, &params, NULL, 0);
    }
    if (result != CUDA_SUCCESS)
        return result;
    struct host_op *h = op_new(sizeof *h, run_host, NULL);
    if (!h)
        return CUDA_ERROR_OUT_OF_MEMORY;
    h->function = function;
    h->callback = callback;
    h->stream = hStream;
    h->context = stream->context;
    h->data = data;
    h->op.bound = true;
    h->op.always =
        callback != NULL; /* a stream callback is told of the error, a host function is not called after one */
    return engine_submit_and_forget(stream, &h->op);
}

CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
    return fn ? submit_host(hStream, fn, NULL, userData) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchHostFunc_ptsz(CUstream hStream, CUhostFn fn, void *userData)
{
    return cuLaunchHostFunc(per_thread(hStream), fn, userData);
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
    return callback && !flags ? submit_host(hStream, NULL, callback, userData) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags)
{
    return cuStreamAddCallback(per_thread(hStream), callback, userData, flags);
}
