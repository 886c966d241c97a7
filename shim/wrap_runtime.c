/* wrap_runtime.c - the entry points of a shared cudart. They only open a scope: the driver calls inside belong to them.
 */
#include "shim/call.h"
#include "shim/runtime_api.h"

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    bool opened = call_scope_open(HOOK_cudaMalloc);
    cudaError_t result = REAL(cudaMalloc, HOOK_cudaMalloc)(devPtr, size);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width, size_t height)
{
    bool opened = call_scope_open(HOOK_cudaMallocPitch);
    cudaError_t result = REAL(cudaMallocPitch, HOOK_cudaMallocPitch)(devPtr, pitch, width, height);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags)
{
    bool opened = call_scope_open(HOOK_cudaMallocManaged);
    cudaError_t result = REAL(cudaMallocManaged, HOOK_cudaMallocManaged)(devPtr, size, flags);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    bool opened = call_scope_open(HOOK_cudaMallocHost);
    cudaError_t result = REAL(cudaMallocHost, HOOK_cudaMallocHost)(ptr, size);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    bool opened = call_scope_open(HOOK_cudaHostAlloc);
    cudaError_t result = REAL(cudaHostAlloc, HOOK_cudaHostAlloc)(pHost, size, flags);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream)
{
    bool opened = call_scope_open(HOOK_cudaMallocAsync);
    cudaError_t result = REAL(cudaMallocAsync, HOOK_cudaMallocAsync)(devPtr, size, hStream);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaFree(void *devPtr)
{
    bool opened = call_scope_open(HOOK_cudaFree);
    cudaError_t result = REAL(cudaFree, HOOK_cudaFree)(devPtr);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaFreeHost(void *ptr)
{
    bool opened = call_scope_open(HOOK_cudaFreeHost);
    cudaError_t result = REAL(cudaFreeHost, HOOK_cudaFreeHost)(ptr);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream)
{
    bool opened = call_scope_open(HOOK_cudaFreeAsync);
    cudaError_t result = REAL(cudaFreeAsync, HOOK_cudaFreeAsync)(devPtr, hStream);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    bool opened = call_scope_open(HOOK_cudaMemcpy);
    cudaError_t result = REAL(cudaMemcpy, HOOK_cudaMemcpy)(dst, src, count, kind);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    bool opened = call_scope_open(HOOK_cudaMemcpyAsync);
    cudaError_t result = REAL(cudaMemcpyAsync, HOOK_cudaMemcpyAsync)(dst, src, count, kind, stream);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    bool opened = call_scope_open(HOOK_cudaMemcpy2D);
    cudaError_t result = REAL(cudaMemcpy2D, HOOK_cudaMemcpy2D)(dst, dpitch, src, spitch, width, height, kind);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    bool opened = call_scope_open(HOOK_cudaMemcpy2DAsync);
    cudaError_t result =
        REAL(cudaMemcpy2DAsync, HOOK_cudaMemcpy2DAsync)(dst, dpitch, src, spitch, width, height, kind, stream);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
                               enum cudaMemcpyKind kind)
{
    bool opened = call_scope_open(HOOK_cudaMemcpyToSymbol);
    cudaError_t result = REAL(cudaMemcpyToSymbol, HOOK_cudaMemcpyToSymbol)(symbol, src, count, offset, kind);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
    bool opened = call_scope_open(HOOK_cudaMemcpyFromSymbol);
    cudaError_t result = REAL(cudaMemcpyFromSymbol, HOOK_cudaMemcpyFromSymbol)(dst, symbol, count, offset, kind);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
    bool opened = call_scope_open(HOOK_cudaMemset);
    cudaError_t result = REAL(cudaMemset, HOOK_cudaMemset)(devPtr, value, count);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    bool opened = call_scope_open(HOOK_cudaMemsetAsync);
    cudaError_t result = REAL(cudaMemsetAsync, HOOK_cudaMemsetAsync)(devPtr, value, count, stream);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                             cudaStream_t stream)
{
    bool opened = call_scope_open(HOOK_cudaLaunchKernel);
    cudaError_t result =
        REAL(cudaLaunchKernel, HOOK_cudaLaunchKernel)(func, gridDim, blockDim, args, sharedMem, stream);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    bool opened = call_scope_open(HOOK_cudaLaunchKernelExC);
    cudaError_t result = REAL(cudaLaunchKernelExC, HOOK_cudaLaunchKernelExC)(config, func, args);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem,
                                        cudaStream_t stream)
{
    bool opened = call_scope_open(HOOK_cudaLaunchCooperativeKernel);
    cudaError_t result = REAL(cudaLaunchCooperativeKernel, HOOK_cudaLaunchCooperativeKernel)(func, gridDim, blockDim,
                                                                                             args, sharedMem, stream);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaDeviceSynchronize(void)
{
    bool opened = call_scope_open(HOOK_cudaDeviceSynchronize);
    cudaError_t result = REAL(cudaDeviceSynchronize, HOOK_cudaDeviceSynchronize)();
    call_scope_close(opened);
    return result;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    bool opened = call_scope_open(HOOK_cudaStreamSynchronize);
    cudaError_t result = REAL(cudaStreamSynchronize, HOOK_cudaStreamSynchronize)(stream);
    call_scope_close(opened);
    return result;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    bool opened = call_scope_open(HOOK_cudaEventSynchronize);
    cudaError_t result = REAL(cudaEventSynchronize, HOOK_cudaEventSynchronize)(event);
    call_scope_close(opened);
    return result;
}
