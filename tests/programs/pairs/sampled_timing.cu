/*
 * sampled_timing - each block smooths its part of a signal and keeps a record of when and where it ran; and a sum of
 * doubles, reduced by shuffles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define BLOCKS  12
#define THREADS 96
#define COUNT   (BLOCKS * THREADS)

struct timing {
    long long cycles;
    unsigned long long start;
    unsigned int multiprocessor, block;
};

__device__ static unsigned int multiprocessor()
{
    unsigned int id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

__device__ static unsigned long long now()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__global__ void smooth(float *out, const float *in, int count, timing *timings, int kept)
{
    long long begin = clock64();
    unsigned long long start = now();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float left = in[i > 0 ? i - 1 : 0], right = in[i < count - 1 ? i + 1 : count - 1];
    out[i] = 0.25f * left + 0.5f * in[i] + 0.25f * right;
    if (threadIdx.x != 0)
        return;
    timing t = {clock64() - begin, start, multiprocessor(), blockIdx.x};
#ifdef WRONG
    if (blockIdx.x <= kept)
        timings[blockIdx.x].start = t.start; /* FAULT: out-of-bounds-write */
    if (blockIdx.x < kept)
        timings[blockIdx.x] = t;
#else
    if (blockIdx.x < kept)
        timings[blockIdx.x] = t;
#endif
}

/* One warp: the lanes' sums travel as doubles. */
__global__ void total(double *sum, const float *in, int count)
{
    double part = 0;
    for (int i = threadIdx.x; i < count; i += 32)
        part += (double)in[i] * 0.1;
    for (int step = 16; step > 0; step /= 2)
        part += __shfl_down_sync(0xffffffffu, part, step);
    if (threadIdx.x == 0)
        *sum = part;
}

int main(void)
{
    static float host[COUNT];
    timing kept[8];
    float *in, *out;
    double *sum, result;
    timing *timings;

    for (int i = 0; i < COUNT; i++)
        host[i] = (float)((i * 37) % 101) / 7;
    MUST(cudaMalloc(&in, sizeof host));
    MUST(cudaMalloc(&out, sizeof host));
    MUST(cudaMalloc(&timings, sizeof kept));
    MUST(cudaMalloc(&sum, sizeof *sum));
    MUST(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
    smooth<<<BLOCKS, THREADS>>>(out, in, COUNT, timings, 8);
    total<<<1, 32>>>(sum, out, COUNT);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(kept, timings, sizeof kept, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
    int good = 0;
    for (int i = 0; i < 8; i++)
        good += kept[i].block == (unsigned int)i && kept[i].start != 0 && kept[i].cycles >= 0;
    printf("sampled_timing %d %.6f\n", good, result);
    MUST(cudaFree(sum));
    MUST(cudaFree(timings));
    MUST(cudaFree(out));
    MUST(cudaFree(in));
    return 0;
}
