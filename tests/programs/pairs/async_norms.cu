/*
 * async_norms - scale the rows of two matrices by the norms of the first; the norms live in
 * stream-ordered memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#include "../must.h"

#define ROWS    9
#define COLUMNS 45

__global__ void fill(float *matrix, int count, int step)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        matrix[i] = (float)(i * step % 13) + 1.0f;
}

__global__ void row_norms(float *norms, const float *matrix)
{
    int lane = threadIdx.x;
    float sum = 0.0f;
    for (int column = lane; column < COLUMNS; column += 32)
        sum += fabsf(matrix[blockIdx.x * COLUMNS + column]);
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    norms[blockIdx.x] = sum; /* every lane stores the same sum */
}

__global__ void scale_rows(float *matrix, const float *norms)
{
    int row = blockIdx.x;
    float norm = norms[row]; /* FAULT: use-after-free */
    for (int column = threadIdx.x; column < COLUMNS; column += blockDim.x)
        matrix[row * COLUMNS + column] /= norm;
}

int main(void)
{
    static float host[2 * ROWS * COLUMNS];
    float *a, *b, *norms;
    cudaStream_t stream;

    MUST(cudaStreamCreate(&stream));
    MUST(cudaMalloc(&a, 2 * ROWS * COLUMNS * sizeof(float)));
    b = a + ROWS * COLUMNS;
    MUST(cudaMallocAsync(&norms, ROWS * sizeof(float), stream));
    fill<<<4, 128, 0, stream>>>(a, ROWS * COLUMNS, 5);
    fill<<<4, 128, 0, stream>>>(b, ROWS * COLUMNS, 7);
    row_norms<<<ROWS, 32, 0, stream>>>(norms, a);
    scale_rows<<<ROWS, 32, 0, stream>>>(a, norms);
#ifdef WRONG
    MUST(cudaFreeAsync(norms, stream));
    scale_rows<<<ROWS, 32, 0, stream>>>(b, norms);
#else
    scale_rows<<<ROWS, 32, 0, stream>>>(b, norms);
    MUST(cudaFreeAsync(norms,
                        stream)); /* the launch above may still run: the stream keeps the order */
#endif
    MUST(cudaGetLastError());
    MUST(cudaMemcpyAsync(host, a, sizeof(host), cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    double sum = 0.0;
    for (int i = 0; i < 2 * ROWS * COLUMNS; i++)
        sum += host[i] * (double)(1 + i % 5);
    printf("async_norms %.4f\n", sum);
    MUST(cudaFree(a));
    MUST(cudaStreamDestroy(stream));
    return 0;
}
