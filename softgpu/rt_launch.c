/* Launches. */
#include "softgpu/rt.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- the configuration of <<<...>>>, pushed by the caller and popped by the stub, per thread -------------------- */

enum { NESTING = 64 };
struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};
static _Thread_local struct configuration stack[NESTING];
static _Thread_local unsigned depth;

unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                    cudaStream_t stream);

EXPORT unsigned __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st *stream)
{
    if (depth == NESTING)
        return 1;
    stack[depth++] = (struct configuration){gridDim, blockDim, sharedMem, stream};
    return 0;
}

EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *gridDim, dim3 *blockDim, size_t *sharedMem, void *stream)
{
    if (!depth)
        return rt_fail(cudaErrorMissingConfiguration);
    const struct configuration *c = &stack[--depth];
    *gridDim = c->grid;
    *blockDim = c->block;
    *sharedMem = c->shared;
    *(cudaStream_t *)stream = c->stream;
    return cudaSuccess;
}

/* ---- launching -------------------------------------------------------------------------------------------------- */

static bool bad_dimensions(dim3 grid, dim3 block)
{
    int threads = 1024;
    driver.cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
    return !grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z || grid.x > 2147483647 || grid.y > 65535 ||
           grid.z > 65535 || (uint64_t)block.x * block.y > (uint64_t)threads ||
           (uint64_t)block.x * block.y * block.z > (uint64_t)threads || block.z > 64;
}

/* The runtime has a code of its own for bad dimensions where the driver says invalid value. */
static CUresult configuration_error(CUresult result, dim3 grid, dim3 block)
{
    return result == CUDA_ERROR_INVALID_VALUE && bad_dimensions(grid, block) ? (CUresult)cudaErrorInvalidConfiguration
                                                                             : result;
}

static CUresult launch(CUkernel kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream,
                       bool per_thread)
{
    if (shared > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = (per_thread ? driver.cuLaunchKernel_ptsz : driver.cuLaunchKernel)(
        (CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream, args, NULL);
    return configuration_error(result, grid, block);
}

static cudaError_t launch_handle(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                                 cudaStream_t stream, bool per_thread)
{
    CUresult result = rt_enter();
    if (result != CUDA_SUCCESS)
        return rt_end(result);
    /* The stub got no kernel before: what went wrong then is the thread's last error and stays it. */
    if (!kernel)
        return rt_fail(cudaPeekAtLastError() != cudaSuccess ? cudaPeekAtLastError() : cudaErrorInvalidDeviceFunction);
    return rt_end(launch((CUkernel)kernel, grid, block, args, shared, stream, per_thread));
}

EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                      cudaStream_t stream)
{
    return launch_handle(kernel, gridDim, blockDim, args, sharedMem, stream, false);
}

EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args,
                                           size_t sharedMem, cudaStream_t stream)
{
    return launch_handle(kernel, gridDim, blockDim, args, sharedMem, stream, true);
}

static cudaError_t launch_function(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                                   cudaStream_t stream, bool per_thread)
{
    CUkernel kernel;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = rt_kernel(func, &kernel);
    return rt_end(result == CUDA_SUCCESS ? launch(kernel, grid, block, args, shared, stream, per_thread) : result);
}

cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                             cudaStream_t stream)
{
    return launch_function(func, gridDim, blockDim, args, sharedMem, stream, false);
}

cudaError_t cudaLaunchKernel_ptsz(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                  cudaStream_t stream)
{
    return launch_function(func, gridDim, blockDim, args, sharedMem, stream, true);
}

CUresult rt_launch_config(const cudaLaunchConfig_t *config, CUlaunchConfig *out)
{
    _Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "attributes are passed on as they are");
    if (!config || config->dynamicSmemBytes > UINT32_MAX || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUlaunchConfig){
        .gridDimX = config->gridDim.x,
        .gridDimY = config->gridDim.y,
        .gridDimZ = config->gridDim.z,
        .blockDimX = config->blockDim.x,
        .blockDimY = config->blockDim.y,
        .blockDimZ = config->blockDim.z,
        .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
        .hStream = config->stream,
        .attrs = (CUlaunchAttribute *)config->attrs,
        .numAttrs = config->numAttrs,
    };
    return CUDA_SUCCESS;
}

static cudaError_t launch_ex(const cudaLaunchConfig_t *config, const void *func, void **args, bool per_thread)
{
    CUkernel kernel;
    CUlaunchConfig c;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = rt_launch_config(config, &c);
    if (result == CUDA_SUCCESS)
        result = rt_kernel(func, &kernel);
    if (result != CUDA_SUCCESS)
        return rt_end(result);
    result = (per_thread ? driver.cuLaunchKernelEx_ptsz : driver.cuLaunchKernelEx)(&c, (CUfunction)kernel, args, NULL);
    return rt_end(configuration_error(result, config->gridDim, config->blockDim));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    return launch_ex(config, func, args, false);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    return launch_ex(config, func, args, true);
}

static cudaError_t launch_cooperative(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                                      cudaStream_t stream, bool per_thread)
{
    CUkernel kernel;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && shared > UINT32_MAX)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = rt_kernel(func, &kernel);
    if (result != CUDA_SUCCESS)
        return rt_end(result);
    result = (per_thread ? driver.cuLaunchCooperativeKernel_ptsz : driver.cuLaunchCooperativeKernel)(
        (CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream, args);
    return rt_end(configuration_error(result, grid, block));
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                        cudaStream_t stream)
{
    return launch_cooperative(func, gridDim, blockDim, args, sharedMem, stream, false);
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void *func, dim3 gridDim, dim3 blockDim, void **args,
                                             size_t sharedMem, cudaStream_t stream)
{
    return launch_cooperative(func, gridDim, blockDim, args, sharedMem, stream, true);
}

static cudaError_t host_function(cudaStream_t stream, cudaHostFn_t fn, void *userData, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuLaunchHostFunc_ptsz : driver.cuLaunchHostFunc)(stream, fn, userData);
    return rt_end(result);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    return host_function(stream, fn, userData, false);
}

cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t fn, void *userData)
{
    return host_function(stream, fn, userData, true);
}
