/* Returns from main while threads go on: each launches, copies, allocates, frees and waits, until a call fails. */
#include <chrono>
#include <thread>

#include <cuda_runtime.h>

constexpr int THREADS = 12, VALUES = 1 << 12;
constexpr int PROCESS_MS = 20;

__global__ void add(int *p, int v)
{
    p[blockIdx.x * blockDim.x + threadIdx.x] += v;
}

static bool one_round(int *kept, cudaStream_t stream)
{
    int *passing, first;
    add<<<VALUES / 128, 128, 0, stream>>>(kept, 1);
    if (cudaGetLastError() != cudaSuccess || cudaMallocAsync(&passing, VALUES * sizeof *passing, stream) != cudaSuccess)
        return false;
    cudaMemcpyAsync(passing, kept, VALUES * sizeof *kept, cudaMemcpyDeviceToDevice, stream);
    add<<<VALUES / 128, 128, 0, stream>>>(passing, 1);
    cudaFreeAsync(passing, stream);
    cudaMemcpyAsync(&first, kept, sizeof first, cudaMemcpyDeviceToHost, stream);
    return cudaStreamSynchronize(stream) == cudaSuccess;
}

static void work()
{
    cudaStream_t stream;
    int *kept;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaMalloc(&kept, VALUES * sizeof *kept) != cudaSuccess ||
        cudaMemsetAsync(kept, 0, VALUES * sizeof *kept, stream) != cudaSuccess)
        return;
    while (one_round(kept, stream)) {
    }
}

int main()
{
    for (int i = 0; i < THREADS; i++)
        std::thread(work).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(PROCESS_MS));
    return 0;
}
