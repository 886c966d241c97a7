/*
 * warp_partials - sum of an array: shuffles inside the warp, a shared slot per warp, and the last
 * block to finish adds up the blocks' results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define WARPS  5
#define SLOTS  8
#define BLOCKS 3
#define COUNT  1111

__device__ unsigned int finished;

__global__ void make_values(int *values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] = i * 7 % 50 - 20;
}

__global__ void sum_all(int *result, volatile int *block_sums, const int *values, int count)
{
    __shared__ int slots[SLOTS];
    __shared__ bool last;
    int lane = threadIdx.x % 32;
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        sum += values[i];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0)
        slots[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
#ifdef WRONG
        sum = lane < SLOTS ? slots[lane] : 0; /* FAULT: uninitialised-read */
#else
        sum = lane < WARPS ? slots[lane] : 0;
#endif
        for (int offset = 4; offset > 0; offset /= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, offset);
    }
    if (threadIdx.x == 0) {
        block_sums[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int total = 0;
        for (unsigned int b = 0; b < gridDim.x; b++)
            total += block_sums[b];
        *result = total;
    }
}

int main(void)
{
    int host[2];
    int *values, *block_sums, *result;

    MUST(cudaMalloc(&values, COUNT * sizeof(int)));
    MUST(cudaMalloc(&block_sums, BLOCKS * sizeof(int)));
    MUST(cudaMalloc(&result, sizeof(host)));
    make_values<<<9, 128>>>(values, COUNT);
    sum_all<<<BLOCKS, 32 * WARPS>>>(result, block_sums, values, COUNT);
    sum_all<<<BLOCKS - 1, 32 * WARPS>>>(result + 1, block_sums, values, 500);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, result, sizeof(host), cudaMemcpyDeviceToHost));
    printf("warp_partials %d %d\n", host[0], host[1]);
    MUST(cudaFree(result));
    MUST(cudaFree(block_sums));
    MUST(cudaFree(values));
    return 0;
}
