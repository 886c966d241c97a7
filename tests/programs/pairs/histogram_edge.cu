/*
 * histogram_edge - histogram of samples in [0, 1] and its running sum.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define SAMPLES 1000
#define BINS    37

__constant__ float range[2];

__global__ void make_samples(float *samples, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        samples[i] = (float)(i * 13 % 101) / 100.0f;
}

__global__ void histogram(unsigned int *bins, const float *samples, int count, int bin_count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        float place = (samples[i] - range[0]) / (range[1] - range[0]);
        int bin = (int)(place * (float)bin_count);
#ifdef WRONG
        atomicAdd(&bins[bin], 1u); /* FAULT: out-of-bounds-write */
#else
        atomicAdd(&bins[min(bin, bin_count - 1)], 1u);
#endif
    }
}

__global__ void running_sum(unsigned int *below, const unsigned int *bins, int bin_count)
{
    int b = threadIdx.x;
    if (b >= bin_count)
        return;
    unsigned int sum = 0;
    for (const unsigned int *p = bins; p <= bins + b; p++)
        sum += *p;
    below[b] = sum;
}

int main(void)
{
    unsigned int host[BINS];
    float limits[2] = {0.0f, 1.0f};
    float *samples;
    unsigned int *bins, *below;

    MUST(cudaMemcpyToSymbol(range, limits, sizeof(limits)));
    MUST(cudaMalloc(&samples, SAMPLES * sizeof(float)));
    MUST(cudaMalloc(&bins, BINS * sizeof(unsigned int)));
    MUST(cudaMalloc(&below, BINS * sizeof(unsigned int)));
    MUST(cudaMemset(bins, 0, BINS * sizeof(unsigned int)));
    make_samples<<<8, 128>>>(samples, SAMPLES);
    histogram<<<3, 96>>>(bins, samples, SAMPLES, BINS);
    running_sum<<<1, 64>>>(below, bins, BINS);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, below, sizeof(host), cudaMemcpyDeviceToHost));
    printf("histogram_edge %u %u %u\n", host[0], host[BINS / 2], host[BINS - 1]);
    MUST(cudaFree(below));
    MUST(cudaFree(bins));
    MUST(cudaFree(samples));
    return 0;
}
