/*
 * versine_window - the window (1 - cos x) / x^2 at small angles, applied to a signal.
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#include "../must.h"

#define COUNT 250

__global__ void make_window(float *window, int count, float step)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float x = step * (float)(i + 1);
#ifdef WRONG
    float cosine = cosf(x);
    float rise = 1.0f - cosine; /* FAULT: approximation */
#else
    float sine = sinf(0.5f * x);
    float rise = 2.0f * sine * sine;
#endif
    window[i] = rise / (x * x);
}

__global__ void make_signal(float *signal, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        signal[i] = (float)(i % 6) - 2.5f;
}

__global__ void apply(float *signal, const float *window, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        signal[i] *= window[i];
}

int main(void)
{
    static float host[COUNT];
    float *window, *signal;

    MUST(cudaMalloc(&window, sizeof(host)));
    MUST(cudaMalloc(&signal, sizeof(host)));
    make_window<<<4, 64>>>(window, COUNT, 0.0005f);
    make_signal<<<2, 128>>>(signal, COUNT);
    apply<<<2, 128>>>(signal, window, COUNT);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, signal, sizeof(host), cudaMemcpyDeviceToHost));
    printf("versine_window %.3f %.3f %.3f\n", host[0], host[1], host[COUNT - 1]);
    MUST(cudaFree(signal));
    MUST(cudaFree(window));
    return 0;
}
