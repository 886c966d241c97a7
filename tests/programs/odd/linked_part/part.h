// What linked.cu and linked_part/part.cu share.
#ifndef PART_H
#define PART_H
#include <cuda_runtime.h>

inline __device__ int header_counter = 0; // one for the whole program
__device__ inline int next_number()
{
    return atomicAdd(&header_counter, 1);
}
template <int N> __global__ void add_constant(int *data)
{
    data[threadIdx.x] += N;
}

extern __device__ int table[4];
extern __constant__ int offset;
__device__ int scale(int x);
__global__ void sort_run(int *data, int count);
void part_run(int *data);
#endif
