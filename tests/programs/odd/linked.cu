// Two files of device code linked into one (-rdc=true), and kernels that start kernels.
#include <cstdio>
#include <cstdlib>
#include "linked_part/part.h"

enum { COUNT = 200 };

static void check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        printf("%s: %s\n", what, cudaGetErrorString(error));
        exit(1);
    }
}

static __device__ int own = 100;
static __global__ void own_kernel(int *data)
{
    data[threadIdx.x] = scale(table[threadIdx.x % 4]) + offset + own;
    next_number();
}

// Behind itself: copies the sorted numbers when all is sorted.
__global__ void sort_all(int *data, int *copy, int count)
{
    sort_run<<<1, 1>>>(data, count);
    cudaMemcpyAsync(copy, data, count * sizeof *data, cudaMemcpyDeviceToDevice, cudaStreamTailLaunch);
}

int main()
{
    int *data, *copy, host[COUNT], counter, sum = 0;
    check(cudaMalloc(&data, sizeof host), "cudaMalloc");
    check(cudaMalloc(&copy, sizeof host), "cudaMalloc");
    own_kernel<<<1, 32>>>(data);
    check(cudaGetLastError(), "own_kernel");
    check(cudaMemcpy(host, data, 32 * sizeof *host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d %d %d %d\n", host[0], host[1], host[2], host[3]); // 7 x table + 1000 + 100
    check(cudaMemcpyFromSymbol(&counter, header_counter, sizeof counter), "cudaMemcpyFromSymbol");
    printf("counter %d\n", counter); // of both files
    part_run(data);
    add_constant<5><<<1, 32>>>(data);
    check(cudaMemcpy(host, data, 32 * sizeof *host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("%d %d\n", host[0], host[31]); // 7 + 5 + 5
    for (int i = 0; i < COUNT; i++)
        host[i] = (i * 7919 + 13) % 1009;
    check(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    sort_all<<<1, 1>>>(data, copy, COUNT);
    check(cudaGetLastError(), "sort_all");
    check(cudaDeviceSynchronize(), "sort_all");
    check(cudaMemcpy(host, copy, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (int i = 1; i < COUNT; i++)
        sum += host[i - 1] > host[i];
    printf("%d out of order, %d to %d\n", sum, host[0], host[COUNT - 1]);
    return sum != 0;
}
