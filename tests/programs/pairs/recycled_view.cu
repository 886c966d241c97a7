/*
 * recycled_view - a filter keeps a view of the samples it saw last; their storage is given back and
 * asked for again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define COUNT 333

struct view {
    float *samples;
    int count;
};

__global__ void record(float *samples, int count, float start)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        samples[i] = start + (float)(i % 17);
}

/* Renews the samples in the view, if the view has any. */
__global__ void blend(struct view old, const float *current, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && i < old.count)
        old.samples[i] = 0.5f * current[i]; /* FAULT: use-after-free */
}

__global__ void total(float *result, const float *samples, int count)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++)
        sum += samples[i];
    *result = sum;
}

int main(void)
{
    float host[2];
    float *samples, *result, *fresh;
    struct view last;

    MUST(cudaMalloc(&result, sizeof(host)));
    MUST(cudaMalloc(&samples, COUNT * sizeof(float)));
    MUST(cudaMalloc(&last.samples, COUNT * sizeof(float)));
    last.count = COUNT;
    record<<<3, 128>>>(samples, COUNT, 1.0f);
    blend<<<3, 128>>>(last, samples, COUNT);
    total<<<1, 1>>>(result, last.samples, COUNT);
    MUST(cudaDeviceSynchronize());
    MUST(cudaFree(last.samples));
#ifndef WRONG
    last.count = 0; /* the pointer stays, nobody follows it */
#endif
    MUST(cudaMalloc(&fresh, COUNT * sizeof(float)));
    record<<<3, 128>>>(fresh, COUNT, 100.0f);
    blend<<<3, 128>>>(last, samples, COUNT);
    total<<<1, 1>>>(result + 1, fresh, COUNT);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, result, sizeof(host), cudaMemcpyDeviceToHost));
    printf("recycled_view %.1f %.1f\n", host[0], host[1]);
    MUST(cudaFree(fresh));
    MUST(cudaFree(samples));
    MUST(cudaFree(result));
    return 0;
}
