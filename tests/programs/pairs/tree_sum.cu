/*
 * tree_sum - block sums by a tree in shared memory, the last 64 values by shuffles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define BLOCK  256
#define BLOCKS 3
#define COUNT  700

__global__ void make_values(float *values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] = (float)(i % 31) + 0.5f;
}

__global__ void tree_sum(float *sums, const float *values, int count)
{
    __shared__ float tree[BLOCK];
    int t = threadIdx.x;
    int i = blockIdx.x * BLOCK + t;
    tree[t] = i < count ? values[i] : 0.0f;
    __syncthreads();
    for (int half = BLOCK / 2; half >= 32; half /= 2) {
        if (t < half) {
            float other = tree[t + half]; /* FAULT-OTHER: race */
            tree[t] = tree[t] + other;    /* FAULT: race */
        }
#ifndef WRONG
        __syncthreads();
#endif
    }
    if (t < 32) { /* one warp is left: no block barrier from here on */
        float sum = tree[t];
        for (int offset = 16; offset >= 4; offset /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, offset);
        tree[t] = sum;
        __syncwarp();
        if (t == 0)
            sums[blockIdx.x] = tree[0] + tree[1] + tree[2] + tree[3];
    }
}

int main(void)
{
    float host[BLOCKS + 1];
    float *values, *sums;

    MUST(cudaMalloc(&values, COUNT * sizeof(float)));
    MUST(cudaMalloc(&sums, sizeof(host)));
    make_values<<<7, 100>>>(values, COUNT);
    tree_sum<<<BLOCKS, BLOCK>>>(sums, values, COUNT);
    tree_sum<<<1, BLOCK>>>(sums + BLOCKS, sums, BLOCKS);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, sums, sizeof(host), cudaMemcpyDeviceToHost));
    printf("tree_sum %.2f %.2f\n", host[0], host[BLOCKS]);
    MUST(cudaFree(sums));
    MUST(cudaFree(values));
    return 0;
}
