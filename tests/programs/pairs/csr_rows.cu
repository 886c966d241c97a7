/*
 * csr_rows - sparse matrix times vector; the matrix has one start per row and no closing entry.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define CHECK(call) check(call, #call)

static void check(cudaError_t status, const char *call)
{
    if (status != cudaSuccess) {
        printf("%s: %s\n", call, cudaGetErrorString(status));
        exit(1);
    }
}

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
    CHECK(cudaMallocManaged(&x, COLUMNS * sizeof(float)));
    CHECK(cudaMallocManaged(&seen, sizeof(int)));
    CHECK(cudaMalloc(&d_starts, sizeof(starts)));
    CHECK(cudaMalloc(&d_columns, nonzeros * sizeof(int)));
    CHECK(cudaMalloc(&d_values, nonzeros * sizeof(float)));
    CHECK(cudaMalloc(&d_y, sizeof(y)));
    *seen = 0;
    CHECK(cudaMemcpy(d_starts, starts, sizeof(starts), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_columns, columns, nonzeros * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_values, values, nonzeros * sizeof(float), cudaMemcpyHostToDevice));
    make_vector<<<1, 64>>>(x, COLUMNS);
    spmv<<<2, 32>>>(d_y, seen, d_starts, d_columns, d_values, x, 50, starts[50]);
    spmv<<<3, 32>>>(d_y, seen, d_starts, d_columns, d_values, x, ROWS, nonzeros);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(y, d_y, sizeof(y), cudaMemcpyDeviceToHost));
    float sum = 0.0f;
    for (int row = 0; row < ROWS; row++)
        sum += y[row];
    printf("csr_rows %.2f %.2f %d\n", sum, y[ROWS - 1], *seen);
    CHECK(cudaFree(d_y));
    CHECK(cudaFree(d_values));
    CHECK(cudaFree(d_columns));
    CHECK(cudaFree(d_starts));
    CHECK(cudaFree(seen));
    CHECK(cudaFree(x));
    return 0;
}
