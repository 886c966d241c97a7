/*
 * normalise_rows - turn rows of counts into shares; one row has no counts at all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define ROWS    9
#define COLUMNS 33
#define EMPTY   4

__global__ void make_counts(float *counts, int rows, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * columns)
        counts[i] = i / columns == EMPTY ? 0.0f : (float)(i * 7 % 10);
}

__global__ void row_totals(float *totals, const float *counts, int columns)
{
    int row = blockIdx.x;
    float sum = 0.0f;
    for (int column = threadIdx.x; column < columns; column += 32)
        sum += counts[row * columns + column];
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x == 0)
        totals[row] = sum;
}

__global__ void shares(float *out, const float *counts, const float *totals, int rows, int columns)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns)
        return;
    float total = totals[i / columns];
#ifdef WRONG
    out[i] = counts[i] / total; /* FAULT: nan-origin */
#else
    float share = counts[i] / total; /* 0 / 0 in the empty row, thrown away in the next line */
    out[i] = total > 0.0f ? share : 0.0f;
#endif
}

int main(void)
{
    static float host[ROWS * COLUMNS];
    float *counts, *totals, *out;

    MUST(cudaMalloc(&counts, sizeof(host)));
    MUST(cudaMalloc(&totals, ROWS * sizeof(float)));
    MUST(cudaMalloc(&out, sizeof(host)));
    make_counts<<<5, 64>>>(counts, ROWS, COLUMNS);
    row_totals<<<ROWS, 32>>>(totals, counts, COLUMNS);
    shares<<<5, 64>>>(out, counts, totals, ROWS, COLUMNS);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
    float sum = 0.0f;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        sum += host[i];
    printf("normalise_rows %.4f %.5f\n", sum, host[1]);
    MUST(cudaFree(out));
    MUST(cudaFree(totals));
    MUST(cudaFree(counts));
    return 0;
}
