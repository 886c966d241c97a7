/* one_stream.cu - eight threads launch into one stream. The stream puts their work in some order; the sum does not depend on it. */
#include <cstdio>
#include <thread>
#include <vector>

#define THREADS  8
#define LAUNCHES 50
#define COUNT    100

__global__ void increase(int *values, int amount)
{
    if (threadIdx.x < COUNT)
        values[threadIdx.x] += amount;
}

static void worker(cudaStream_t stream, int *values, int amount)
{
    for (int i = 0; i < LAUNCHES; i++)
        increase<<<1, 128, 0, stream>>>(values, amount);
}

int main()
{
    int *values, host[COUNT];
    cudaStream_t stream;
    std::vector<std::thread> threads;

    if (cudaMalloc(&values, sizeof host) || cudaMemset(values, 0, sizeof host) || cudaStreamCreate(&stream))
        return 2;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(worker, stream, values, i + 1);
    for (std::thread &thread : threads)
        thread.join();
    if (cudaStreamSynchronize(stream) || cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost))
        return 2;
    printf("%d %d\n", host[0], host[COUNT - 1]);
    return host[0] != LAUNCHES * THREADS * (THREADS + 1) / 2;
}
