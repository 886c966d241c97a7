/*
 * scan_steps - running sums inside blocks, in dynamic shared memory, with the blocks' sums added
 * afterwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define BLOCK  200
#define BLOCKS 3
#define COUNT  (BLOCK * BLOCKS)

__global__ void make_values(int *values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] = i % 9 + 1;
}

__global__ void scan_block(int *sums, const int *values)
{
    extern __shared__ int scan[];
    int t = threadIdx.x;
    int i = blockIdx.x * blockDim.x + t;
    scan[t] = values[i];
    __syncthreads();
    for (int distance = 1; distance < blockDim.x; distance *= 2) {
        int before = t >= distance ? scan[t - distance] : 0; /* FAULT-OTHER: race */
#ifndef WRONG
        __syncthreads();
#endif
        scan[t] += before; /* FAULT: race */
        __syncthreads();
    }
    sums[i] = scan[t];
}

/* Block b adds the last sums of the blocks before it; it writes only its own part and reads others'
 * old values. */
__global__ void add_offsets(int *out, const int *sums)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int offset = 0;
    for (int b = 0; b < blockIdx.x; b++)
        offset += sums[(b + 1) * blockDim.x - 1];
    out[i] = sums[i] + offset;
}

int main(void)
{
    int *values, *sums, *out;

    MUST(cudaMallocManaged(&out, COUNT * sizeof(int)));
    MUST(cudaMalloc(&values, COUNT * sizeof(int)));
    MUST(cudaMalloc(&sums, COUNT * sizeof(int)));
    make_values<<<5, 128>>>(values, COUNT);
    scan_block<<<BLOCKS, BLOCK, BLOCK * sizeof(int)>>>(sums, values);
    add_offsets<<<BLOCKS, BLOCK>>>(out, sums);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    printf("scan_steps %d %d %d\n", out[0], out[BLOCK], out[COUNT - 1]);
    MUST(cudaFree(sums));
    MUST(cudaFree(values));
    MUST(cudaFree(out));
    return 0;
}
