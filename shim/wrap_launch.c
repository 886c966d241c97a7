/* wrap_launch.c - every way to launch a kernel. */
#include "shim/call.h"
#include "shim/launch.h"
#include "shim/track.h"

static CUresult launch_kernel(enum hook hook, CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                              unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                              unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                              void **kernelParams, void **extra)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuLaunchKernel, hook)(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                                          sharedMemBytes, hStream, kernelParams, extra);
    struct launch launch;
    struct launch_request request = {
        .function = (uint64_t)(uintptr_t)f,
        .grid = {gridDimX, gridDimY, gridDimZ},
        .block = {blockDimX, blockDimY, blockDimZ},
        .dynamic_shared_bytes = sharedMemBytes,
        .stream = hStream,
        .per_thread = hook_kind(hook) == HOOK_PER_THREAD,
        .kernel_params = kernelParams,
        .extra = extra,
    };
    launch_before(&launch, &call, &request);
    call_begin(&call);
    CUresult result = REAL(cuLaunchKernel, hook)(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                                                 sharedMemBytes, hStream, kernelParams, extra);
    call_end(&call);
    launch_after(&launch, result);
    return call_leave(&call, result);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                        unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                        unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
    return launch_kernel(HOOK_cuLaunchKernel, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                         sharedMemBytes, hStream, kernelParams, extra);
}

CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                             unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                             unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
    return launch_kernel(HOOK_cuLaunchKernel_ptsz, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                         sharedMemBytes, hStream, kernelParams, extra);
}

static void read_attributes(const CUlaunchConfig *config, struct launch_request *request)
{
    for (unsigned i = 0; config->attrs && i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        switch ((int)a->id) {
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
            break;
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            if (a->value.cooperative)
                request->flags |= CAP_CONFIG_COOPERATIVE;
            break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            request->flags |= CAP_CONFIG_CLUSTER;
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            request->chained = a->value.programmaticStreamSerializationAllowed != 0;
            request->flags |= CAP_CONFIG_ATTRIBUTES;
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
            request->chained = true;
            request->flags |= CAP_CONFIG_ATTRIBUTES;
            break;
        default:
            request->flags |= CAP_CONFIG_ATTRIBUTES;
        }
    }
}

static CUresult launch_ex(enum hook hook, const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    struct call call;
    if (!config || !call_enter(&call, hook))
        return PASS(cuLaunchKernelEx, hook)(config, f, kernelParams, extra);
    if (!track_current_context()) { /* refused before it is read */
        call_begin(&call);
        CUresult refused = REAL(cuLaunchKernelEx, hook)(config, f, kernelParams, extra);
        call_end(&call);
        return call_leave(&call, refused);
    }
    struct launch launch;
    struct launch_request request = {
        .function = (uint64_t)(uintptr_t)f,
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .dynamic_shared_bytes = config->sharedMemBytes,
        .stream = config->hStream,
        .per_thread = hook_kind(hook) == HOOK_PER_THREAD,
        .kernel_params = kernelParams,
        .extra = extra,
    };
    bool known = track_kernel(request.function) != NULL;
    if (known) /* else it may be no kernel, and the attributes garbage */
        read_attributes(config, &request);
    launch_before(&launch, &call, &request);
    call_begin(&call);
    CUresult result = REAL(cuLaunchKernelEx, hook)(config, f, kernelParams, extra);
    call_end(&call);
    if (!known && result == CUDA_SUCCESS)
        read_attributes(config, &request);
    launch_after(&launch, result);
    return call_leave(&call, result);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    return launch_ex(HOOK_cuLaunchKernelEx, config, f, kernelParams, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    return launch_ex(HOOK_cuLaunchKernelEx_ptsz, config, f, kernelParams, extra);
}

static CUresult launch_cooperative(enum hook hook, CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                   unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                   void **kernelParams)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuLaunchCooperativeKernel, hook)(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                                                     sharedMemBytes, hStream, kernelParams);
    struct launch launch;
    struct launch_request request = {
        .function = (uint64_t)(uintptr_t)f,
        .grid = {gridDimX, gridDimY, gridDimZ},
        .block = {blockDimX, blockDimY, blockDimZ},
        .dynamic_shared_bytes = sharedMemBytes,
        .flags = CAP_CONFIG_COOPERATIVE,
        .stream = hStream,
        .per_thread = hook_kind(hook) == HOOK_PER_THREAD,
        .kernel_params = kernelParams,
    };
    launch_before(&launch, &call, &request);
    call_begin(&call);
    CUresult result = REAL(cuLaunchCooperativeKernel, hook)(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
                                                            blockDimZ, sharedMemBytes, hStream, kernelParams);
    call_end(&call);
    launch_after(&launch, result);
    return call_leave(&call, result);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                                   unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream, void **kernelParams)
{
    return launch_cooperative(HOOK_cuLaunchCooperativeKernel, f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY,
                              blockDimZ, sharedMemBytes, hStream, kernelParams);
}

CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                        unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
                                        unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
                                        void **kernelParams)
{
    return launch_cooperative(HOOK_cuLaunchCooperativeKernel_ptsz, f, gridDimX, gridDimY, gridDimZ, blockDimX,
                              blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams);
}

/* The forms of CUDA before 4.0: shape and arguments were set on the function before. Arguments are not followed. */
CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuFuncSetBlockShape))
        return PASS(cuFuncSetBlockShape, HOOK_cuFuncSetBlockShape)(hfunc, x, y, z);
    call_begin(&call);
    CUresult result = REAL(cuFuncSetBlockShape, HOOK_cuFuncSetBlockShape)(hfunc, x, y, z);
    call_end(&call);
    struct tracked_kernel *kernel = result == CUDA_SUCCESS ? track_kernel((uint64_t)(uintptr_t)hfunc) : NULL;
    if (kernel) {
        kernel->block[0] = (uint32_t)x;
        kernel->block[1] = (uint32_t)y;
        kernel->block[2] = (uint32_t)z;
    }
    return call_leave(&call, result);
}

static void old_request(struct launch_request *request, CUfunction f, int width, int height, CUstream stream)
{
    const struct tracked_kernel *kernel = track_kernel((uint64_t)(uintptr_t)f);
    *request = (struct launch_request){.function = (uint64_t)(uintptr_t)f,
                                       .grid = {(uint32_t)width, (uint32_t)height, 1},
                                       .stream = stream,
                                       .no_arguments = true};
    for (int i = 0; i < 3 && kernel; i++)
        request->block[i] = kernel->block[i];
}

CUresult cuLaunch(CUfunction f)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLaunch))
        return PASS(cuLaunch, HOOK_cuLaunch)(f);
    struct launch launch;
    struct launch_request request;
    old_request(&request, f, 1, 1, NULL);
    launch_before(&launch, &call, &request);
    call_begin(&call);
    CUresult result = REAL(cuLaunch, HOOK_cuLaunch)(f);
    call_end(&call);
    launch_after(&launch, result);
    return call_leave(&call, result);
}

CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLaunchGrid))
        return PASS(cuLaunchGrid, HOOK_cuLaunchGrid)(f, grid_width, grid_height);
    struct launch launch;
    struct launch_request request;
    old_request(&request, f, grid_width, grid_height, NULL);
    launch_before(&launch, &call, &request);
    call_begin(&call);
    CUresult result = REAL(cuLaunchGrid, HOOK_cuLaunchGrid)(f, grid_width, grid_height);
    call_end(&call);
    launch_after(&launch, result);
    return call_leave(&call, result);
}

CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuLaunchGridAsync))
        return PASS(cuLaunchGridAsync, HOOK_cuLaunchGridAsync)(f, grid_width, grid_height, hStream);
    struct launch launch;
    struct launch_request request;
    old_request(&request, f, grid_width, grid_height, hStream);
    launch_before(&launch, &call, &request);
    call_begin(&call);
    CUresult result = REAL(cuLaunchGridAsync, HOOK_cuLaunchGridAsync)(f, grid_width, grid_height, hStream);
    call_end(&call);
    launch_after(&launch, result);
    return call_leave(&call, result);
}
