/*
 * gemm_beta - C = alpha A B + beta C in two slices of K; the first call has beta 0 and a C that
 * nobody has written yet.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define M 20
#define N 28
#define K 24

__global__ void fill(float *data, int count, int step)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        data[i] = 0.25f * (float)(i * step % 9) - 1.0f;
}

__global__ void gemm(float *c, const float *a, const float *b, int from, int to, float alpha,
                     float beta)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= N || row >= M)
        return;
    float sum = 0.0f;
    for (int k = from; k < to; k++)
        sum += a[row * K + k] * b[k * N + column];
    int i = row * N + column;
#ifdef WRONG
    c[i] = alpha * sum + beta * c[i]; /* FAULT: uninitialised-read */
#else
    float old = 0.0f;
    if (beta != 0.0f)
        old = c[i];
    c[i] = alpha * sum + beta * old;
#endif
}

int main(void)
{
    static float host[M * N];
    float *slab, *a, *b, *c;
    dim3 block(16, 4);
    dim3 grid((N + 15) / 16, (M + 3) / 4);

    MUST(cudaMalloc(&slab, (M * K + K * N) * sizeof(float))); /* A and B side by side */
    MUST(cudaMalloc(&c, M * N * sizeof(float)));
    a = slab;
    b = a + M * K;
    fill<<<(M * K + K * N + 127) / 128, 128>>>(slab, M * K + K * N, 5);
    gemm<<<grid, block>>>(c, a, b, 0, K / 2, 2.0f, 0.0f);
    gemm<<<grid, block>>>(c, a, b, K / 2, K, 2.0f, 1.0f);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, c, sizeof(host), cudaMemcpyDeviceToHost));
    double sum = 0.0;
    for (int i = 0; i < M * N; i++)
        sum += host[i] * (double)(1 + i % 3);
    printf("gemm_beta %.4f %.4f\n", sum, host[M * N - 1]);
    MUST(cudaFree(c));
    MUST(cudaFree(slab));
    return 0;
}
