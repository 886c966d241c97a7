/*
 * softmax_margin - for every masked row of logits: each entry's weight against the weight of all
 * the others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#include "../must.h"

#define ROWS    6
#define COLUMNS 64

__global__ void make_logits(float *logits, int columns)
{
    int row = blockIdx.x;
    for (int column = threadIdx.x; column < columns; column += blockDim.x)
        logits[row * columns + column] = 20.0f * (float)row + 0.25f * (float)(column * 13 % 8);
}

/* Row r may look at the first 8 r + 10 columns only. */
__global__ void mask(float *logits, int columns)
{
    int visible = 8 * blockIdx.x + 10;
    int column = threadIdx.x;
    if (column >= visible)
        logits[blockIdx.x * columns + column] = -INFINITY;
}

__global__ void margins(float *out, const float *logits)
{
    int lane = threadIdx.x;
    float a = logits[blockIdx.x * COLUMNS + lane];
    float b = logits[blockIdx.x * COLUMNS + lane + 32];
#ifdef WRONG
    float top = 0.0f;
#else
    float top = fmaxf(a, b);
    for (int offset = 16; offset > 0; offset /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));
#endif
    float weight_a = __expf(a - top);
    float weight_b = __expf(b - top);
    float sum = weight_a + weight_b;
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    float others_a = sum - weight_a; /* FAULT: nan-origin */
    out[blockIdx.x * 32 + lane] = weight_a / others_a;
}

int main(void)
{
    static float host[ROWS * 32];
    float *logits, *out;

    MUST(cudaMalloc(&logits, ROWS * COLUMNS * sizeof(float)));
    MUST(cudaMalloc(&out, sizeof(host)));
    make_logits<<<ROWS, 48>>>(logits, COLUMNS);
    mask<<<ROWS, COLUMNS>>>(logits, COLUMNS);
    margins<<<ROWS, 32>>>(out, logits);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
    double sum = 0.0;
    for (int i = 0; i < ROWS * 32; i++)
        sum += host[i];
    printf("softmax_margin %.3f %.3f\n", sum, host[0]);
    MUST(cudaFree(out));
    MUST(cudaFree(logits));
    return 0;
}
