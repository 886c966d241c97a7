/*
 * compact_front - keep the bytes above a threshold, in order: count, scan, scatter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define COUNT 251
#define BLOCK 256

__global__ void make_keys(unsigned char *keys, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        keys[i] = (unsigned char)(i * 89 + 130);
}

/* position[i]: how many kept bytes lie before i; position[count]: how many there are. */
__global__ void positions(int *position, const unsigned char *keys, int count, int threshold)
{
    __shared__ int scan[BLOCK];
    int t = threadIdx.x;
    int keep = t < count && keys[t] > threshold;
    scan[t] = keep;
    __syncthreads();
    for (int distance = 1; distance < BLOCK; distance *= 2) {
        int before = t >= distance ? scan[t - distance] : 0;
        __syncthreads();
        scan[t] += before;
        __syncthreads();
    }
    if (t <= count)
        position[t] = scan[t] - keep;
}

__global__ void scatter(unsigned char *kept, const unsigned char *keys, const int *position,
                        int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count || position[i + 1] == position[i])
        return;
#ifdef WRONG
    kept[position[i] - 1] = keys[i]; /* FAULT: out-of-bounds-write */
#else
    kept[position[i + 1] - 1] = keys[i];
#endif
}

__global__ void digest(unsigned int *result, const unsigned char *kept, const int *position,
                       int count)
{
    unsigned int hash = 7;
    const unsigned char *end = kept + position[count];
    for (const unsigned char *p = kept; p < end; p++)
        hash = 31 * hash + *p;
    result[0] = hash;
    result[1] = (unsigned int)(end - kept);
}

int main(void)
{
    unsigned int host[2];
    unsigned char *keys, *kept;
    int *position;
    unsigned int *result;

    MUST(cudaMalloc(&keys, COUNT));
    MUST(cudaMalloc(&position, (COUNT + 1) * sizeof(int)));
    MUST(cudaMalloc(&kept, COUNT));
    MUST(cudaMalloc(&result, sizeof(host)));
    MUST(cudaMemset(kept, 0, COUNT));
    make_keys<<<4, 64>>>(keys, COUNT);
    positions<<<1, BLOCK>>>(position, keys, COUNT, 100);
    scatter<<<3, 96>>>(kept, keys, position, COUNT);
    digest<<<1, 1>>>(result, kept, position, COUNT);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, result, sizeof(host), cudaMemcpyDeviceToHost));
    printf("compact_front %u %u\n", host[0], host[1]);
    MUST(cudaFree(result));
    MUST(cudaFree(kept));
    MUST(cudaFree(position));
    MUST(cudaFree(keys));
    return 0;
}
