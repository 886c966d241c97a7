/* silent_store.cu - compaction in place: a block may store again the value that is there, while its neighbour reads it. */
#include <cstdio>

#define COUNT 512

__global__ void mark_runs(int *values, int *starts)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int left = i ? values[i - 1] : -1, own = values[i];

    __syncthreads();
    starts[i] = own != left;
    if (own != left)
        values[i] = own;
}

int main()
{
    int host[COUNT], *values, *starts;

    for (int i = 0; i < COUNT; i++)
        host[i] = i / 3;
    if (cudaMalloc(&values, sizeof host) || cudaMalloc(&starts, sizeof host))
        return 2;
    cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
    mark_runs<<<4, COUNT / 4>>>(values, starts);
    cudaMemcpy(host, starts, sizeof host, cudaMemcpyDeviceToHost);
    int runs = 0;
    for (int i = 0; i < COUNT; i++)
        runs += host[i];
    printf("%d\n", runs);
    return runs != (COUNT + 2) / 3;
}
