/*
 * stencil_halo - five-point smoothing through a shared tile with a halo on both sides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define BLOCK  128
#define RADIUS 2
#define COUNT  (5 * BLOCK)

__global__ void wave(float *data, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        data[i] = (float)((i * 37) % 64) * 0.125f;
}

__global__ void smooth(float *out, const float *in, int count)
{
    __shared__ float tile[BLOCK + 2 * RADIUS];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    tile[t + RADIUS] = in[i];
    if (t < RADIUS) {
        tile[t] = in[max(i - RADIUS, 0)];
#ifdef WRONG
        tile[t + BLOCK + RADIUS] = in[i + BLOCK]; /* FAULT: out-of-bounds-read */
#else
        tile[t + BLOCK + RADIUS] = in[min(i + BLOCK, count - 1)];
#endif
    }
    __syncthreads();
    float sum = 0.0f;
    for (int k = -RADIUS; k <= RADIUS; k++)
        sum += tile[t + RADIUS + k];
    out[i] = sum * 0.2f;
}

int main(void)
{
    float *a, *b, *out_host, *out_device;

    MUST(cudaMalloc(&a, COUNT * sizeof(float)));
    MUST(cudaMalloc(&b, COUNT * sizeof(float)));
    MUST(cudaHostAlloc(&out_host, COUNT * sizeof(float), cudaHostAllocMapped));
    MUST(cudaHostGetDevicePointer((void **)&out_device, out_host, 0));
    wave<<<6, 120>>>(a, COUNT);
    smooth<<<COUNT / BLOCK, BLOCK>>>(b, a, COUNT);
    smooth<<<COUNT / BLOCK, BLOCK>>>(out_device, b, COUNT);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    double sum = 0.0;
    for (int i = 0; i < COUNT; i++)
        sum += out_host[i];
    printf("stencil_halo %.4f %.4f %.4f\n", sum, out_host[0], out_host[COUNT - 1]);
    MUST(cudaFreeHost(out_host));
    MUST(cudaFree(b));
    MUST(cudaFree(a));
    return 0;
}
