/* rendezvous.cu - kernels of two streams that wait for each other, as those of a collective do: whoever lets one end before the
 * other begins makes them wait for ever. */
#include <cstdio>

#define ROUNDS 12

__global__ void meet(volatile int *mine, volatile int *theirs, int round, float *out)
{
    out[threadIdx.x] = round;
    if (threadIdx.x == 0) {
        __threadfence();
        *mine = round;
        while (*theirs < round)
            ;
    }
}

int main()
{
    int *flags;
    float *out[2], host[32];
    cudaStream_t streams[2];

    if (cudaMalloc(&flags, 2 * sizeof *flags) || cudaMemset(flags, 0, 2 * sizeof *flags) || cudaDeviceSynchronize())
        return 2;
    for (int i = 0; i < 2; i++)
        if (cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) || cudaMalloc(&out[i], sizeof host))
            return 2;
    for (int round = 1; round <= ROUNDS; round++)
        for (int i = 0; i < 2; i++)
            meet<<<1, 32, 0, streams[i]>>>(&flags[i], &flags[1 - i], round, out[i]);
    for (int i = 0; i < 2; i++)
        if (cudaStreamSynchronize(streams[i]) || cudaMemcpy(host, out[i], sizeof host, cudaMemcpyDeviceToHost))
            return 1;
    printf("%g\n", host[31]);
    return 0;
}
