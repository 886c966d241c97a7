/* plugin.cu - all of a program's CUDA calls, in a library that comes and goes. Built twice, under two NAMEs. */
#include <cstdio>

#ifndef NAME
#define NAME first
#endif
#define JOIN(a, b)  JOIN_(a, b)
#define JOIN_(a, b) a##b

__global__ void JOIN(NAME, _kernel)(float *out)
{
    out[threadIdx.x] = 2.0f * threadIdx.x;
}

extern "C" __attribute__((noinline)) float JOIN(NAME, _stage)(void)
{
    float *out, host[32] = {0};
    if (cudaMalloc(&out, sizeof host))
        return -1;
    void *arguments[] = {&out};
    if (cudaLaunchKernel((const void *)JOIN(NAME, _kernel), 1, 32, arguments, 0, 0)) /* what <<<>>> was before CUDA 13 */
        return -2;
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    cudaFree(out);
    return host[31];
}

extern "C" float plugin_run(void)
{
    return JOIN(NAME, _stage)() + 1.0f;
}
