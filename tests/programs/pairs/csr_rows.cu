/*
 * csr_rows - sparse matrix times vector; the matrix has one start per row and no closing entry.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define ROWS    75
#define COLUMNS 40

__global__ void make_vector(float *x, int count)
{
    int i = threadIdx.x;
    if (i < count)
        x[i] = 0.5f * (float)(i % 7) - 1.0f;
}

__global__ void spmv(float *y, int *seen, const int *starts, const int *columns,
                     const float *values, const float *x, int rows, int nonzeros)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    int begin = starts[row];
#ifdef WRONG
    int end = min(starts[row + 1], nonzeros); /* FAULT: out-of-bounds-read */
#else
    int end = row + 1 < rows ? starts[row + 1] : nonzeros;
#endif
    float sum = 0.0f;
    for (int k = begin; k < end; k++)
        sum += values[k] * x[columns[k]];
    if (end > begin)
        *seen = 1; /* every row that is not empty writes the same word */
    y[row] = sum;
}

int main(void)
{
    static int starts[ROWS], columns[ROWS * 5];
    static float values[ROWS * 5], y[ROWS];
    int nonzeros = 0, *seen, *d_starts, *d_columns;
    float *x, *d_values, *d_y;

    for (int row = 0; row < ROWS; row++) {
        starts[row] = nonzeros;
        for (int k = 0; k < (row * 3 + 2) % 6; k++, nonzeros++) {
            columns[nonzeros] = (row * 11 + k * 7) % COLUMNS;
            values[nonzeros] = (float)(1 + (row + k) % 4);
        }
    }
    MUST(cudaMallocManaged(&x, COLUMNS * sizeof(float)));
    MUST(cudaMallocManaged(&seen, sizeof(int)));
    MUST(cudaMalloc(&d_starts, sizeof(starts)));
    MUST(cudaMalloc(&d_columns, nonzeros * sizeof(int)));
    MUST(cudaMalloc(&d_values, nonzeros * sizeof(float)));
    MUST(cudaMalloc(&d_y, sizeof(y)));
    *seen = 0;
    MUST(cudaMemcpy(d_starts, starts, sizeof(starts), cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(d_columns, columns, nonzeros * sizeof(int), cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(d_values, values, nonzeros * sizeof(float), cudaMemcpyHostToDevice));
    make_vector<<<1, 64>>>(x, COLUMNS);
    spmv<<<2, 32>>>(d_y, seen, d_starts, d_columns, d_values, x, 50, starts[50]);
    spmv<<<3, 32>>>(d_y, seen, d_starts, d_columns, d_values, x, ROWS, nonzeros);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(y, d_y, sizeof(y), cudaMemcpyDeviceToHost));
    float sum = 0.0f;
    for (int row = 0; row < ROWS; row++)
        sum += y[row];
    printf("csr_rows %.2f %.2f %d\n", sum, y[ROWS - 1], *seen);
    MUST(cudaFree(d_y));
    MUST(cudaFree(d_values));
    MUST(cudaFree(d_columns));
    MUST(cudaFree(d_starts));
    MUST(cudaFree(seen));
    MUST(cudaFree(x));
    return 0;
}
