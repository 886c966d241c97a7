/* Ends at once when a synchronising call came back after a fault: at_once near|far abort|_exit|kill. */
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#include <cuda_runtime.h>

__global__ void add(int *p, int n, int v)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] += v;
}

__global__ void beyond(int *p, int n)
{
    p[n + threadIdx.x] = 7; /* FAULT: beyond */
}

int main(int argc, char **argv)
{
    const char *where = argc > 1 ? argv[1] : "near", *how = argc > 2 ? argv[2] : "abort";
    int *p;
    if (cudaMalloc(&p, 400) != cudaSuccess || cudaMemset(p, 0, 400) != cudaSuccess)
        return 99;
    for (int i = 0; i < 200; i++)
        add<<<1, 100>>>(p, 100, 1);
    if (cudaDeviceSynchronize() != cudaSuccess)
        return 99;
    beyond<<<1, 2>>>(p, strcmp(where, "far") == 0 ? 1 << 29 : 100);
    cudaDeviceSynchronize();
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    _exit(5);
}
