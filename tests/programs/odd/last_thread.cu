/* last_thread.cu - main leaves by pthread_exit(); the process ends when its last thread ends, and nobody else may hold it. */
#include <cstdio>
#include <pthread.h>
#include <unistd.h>

__global__ void fill(float *out)
{
    out[threadIdx.x] = 2.0f * threadIdx.x;
}

static void *work(void *)
{
    float *out, host[32];

    usleep(100000);
    if (cudaMalloc(&out, sizeof host))
        return nullptr;
    fill<<<1, 32>>>(out);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    printf("%g\n", host[31]);
    fflush(stdout);
    return nullptr;
}

int main()
{
    pthread_t thread;

    if (pthread_create(&thread, nullptr, work, nullptr))
        return 2;
    pthread_exit(nullptr);
}
