/*
 * tile_pipeline - matrix times vector; tiles of the vector pass through two shared buffers with one
 * barrier per tile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define TILE    96
#define ROWS    (2 * TILE)
#define COLUMNS 500

__global__ void make_matrix(float *a, int rows, int columns)
{
    int row = blockIdx.x;
    for (int column = threadIdx.x; column < columns; column += blockDim.x)
        a[row * columns + column] = (float)((row + 3 * column) % 8);
}

__global__ void make_vector(float *x, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] = (float)(i % 5) - 1.0f;
}

__global__ void matvec(float *y, const float *__restrict__ a, const float *__restrict__ x,
                       int columns)
{
    __shared__ float buffer[2][TILE];
    int t = threadIdx.x;
    int row = blockIdx.x * TILE + t;
    float sum = 0.0f;
    for (int tile = 0; tile * TILE < columns; tile++) {
        int first = tile * TILE;
        int width = min(TILE, columns - first);
#ifdef WRONG
        int slot = (tile >> 1) & 1;
#else
        int slot = tile & 1;
#endif
        if (t < width)
            buffer[slot][t] = x[first + t]; /* FAULT: race */
        __syncthreads();
        for (int k = 0; k < width; k++)
            sum += a[row * columns + first + k] * buffer[slot][k]; /* FAULT-OTHER: race */
    }
    y[row] = sum;
}

int main(void)
{
    static float host[ROWS];
    float *a, *x, *y;

    MUST(cudaMalloc(&a, ROWS * COLUMNS * sizeof(float)));
    MUST(cudaMalloc(&x, COLUMNS * sizeof(float)));
    MUST(cudaMalloc(&y, ROWS * sizeof(float)));
    make_matrix<<<ROWS, 64>>>(a, ROWS, COLUMNS);
    make_vector<<<4, 128>>>(x, COLUMNS);
    matvec<<<ROWS / TILE, TILE>>>(y, a, x, COLUMNS);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, y, sizeof(host), cudaMemcpyDeviceToHost));
    double sum = 0.0;
    for (int i = 0; i < ROWS; i++)
        sum += host[i] * (double)(1 + i % 7);
    printf("tile_pipeline %.1f %.1f\n", sum, host[ROWS - 1]);
    MUST(cudaFree(y));
    MUST(cudaFree(x));
    MUST(cudaFree(a));
    return 0;
}
