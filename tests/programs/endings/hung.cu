/* Returns from main while a kernel never ends, behind others that have been looked at and one that has not. */
#include <cstdio>

#include <cuda_runtime.h>

__global__ void add(int *p, int n, int v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] += v;
}

__global__ void spin(volatile int *p)
{
    while (!*p) {
    }
}

int main()
{
    int *p;
    if (cudaMalloc(&p, 400) != cudaSuccess || cudaMemset(p, 0, 400) != cudaSuccess)
        return 99;
    for (int i = 0; i < 50; i++)
        add<<<1, 100>>>(p, 100, 0);
    if (cudaDeviceSynchronize() != cudaSuccess)
        return 99;
    spin<<<1, 1>>>(p);
    add<<<1, 100>>>(p, 100, 0);
    puts("the end");
    return 2;
}
