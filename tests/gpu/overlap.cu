/* overlap.cu - how long two streams of spinning kernels take, in units of what one takes: "two" with equal kernels, "side" with
 * a side stream of many short ones beside a long one. */
#include <chrono>
#include <cstdio>

__global__ void spin(long long cycles, float *out)
{
    const long long begin = clock64();
    while (clock64() - begin < cycles)
        ;
    *out = 1.0f;
}

static double run(int streams_used, int launches, long long cycles, cudaStream_t *streams, float **out)
{
    cudaDeviceSynchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < launches; i++)
        for (int s = 0; s < streams_used; s++)
            spin<<<1, 1, 0, streams[s]>>>(cycles, out[s]);
    cudaDeviceSynchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int main()
{
    cudaStream_t streams[2];
    float *out[2];
    for (int s = 0; s < 2; s++)
        if (cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking) || cudaMalloc(&out[s], sizeof(float)))
            return 2;
    run(2, 20, 1000, streams, out); /* first launches load the module, and are looked at more */
    const double one = run(1, 20, 5000000, streams, out), two = run(2, 20, 5000000, streams, out);
    printf("two %.3f\n", two / one);
    cudaDeviceSynchronize();
    const auto begin = std::chrono::steady_clock::now();
    spin<<<1, 1, 0, streams[0]>>>(100000000, out[0]);
    for (int i = 0; i < 20; i++)
        spin<<<1, 1, 0, streams[1]>>>(5000000, out[1]);
    cudaDeviceSynchronize();
    printf("side %.3f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / one);
    return cudaGetLastError() != cudaSuccess;
}
