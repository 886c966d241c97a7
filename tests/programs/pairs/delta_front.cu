/*
 * delta_front - differences between neighbours of a time series that may continue an earlier one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define HISTORY 16
#define COUNT   201

__global__ void series(double *x, int count, double start)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] = start + 0.25 * (double)(i * i % 23);
}

/* With history, x[-1] belongs to the caller as well: the sample before the first one. */
__global__ void delta(double *out, const double *x, int count, int has_history)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
#ifdef WRONG
    double before = x[i - 1]; /* FAULT: out-of-bounds-read */
#else
    double before = i > 0 || has_history ? x[i - 1] : 0.0;
#endif
    out[i] = x[i] - before;
}

int main(void)
{
    static double host[2 * COUNT];
    double *slab, *history, *current, *fresh, *out;

    /* Two arrays carved out of one allocation: 16 old samples, then the current ones. */
    MUST(cudaMalloc(&slab, (HISTORY + COUNT) * sizeof(double)));
    MUST(cudaMalloc(&fresh, COUNT * sizeof(double)));
    MUST(cudaMalloc(&out, 2 * COUNT * sizeof(double)));
    history = slab;
    current = slab + HISTORY;
    series<<<1, 32>>>(history, HISTORY, 100.0);
    series<<<2, 128>>>(current, COUNT, 50.0);
    series<<<2, 128>>>(fresh, COUNT, 10.0);
    delta<<<2, 128>>>(out, current, COUNT, 1);
    delta<<<3, 96>>>(out + COUNT, fresh, COUNT, 0);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
    printf("delta_front %.2f %.2f %.2f\n", host[0], host[COUNT], host[2 * COUNT - 1]);
    MUST(cudaFree(out));
    MUST(cudaFree(fresh));
    MUST(cudaFree(slab));
    return 0;
}
