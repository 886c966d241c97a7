/*
 * stored_variance - batch normalisation with stored statistics; some stored variances were rounded
 * to just below zero.
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#include "../must.h"

#define CHANNELS 21
#define LENGTH   50

__global__ void make_input(float *x, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        x[i] = 0.125f * (float)(i * 11 % 40) - 2.0f;
}

__global__ void channel_scales(float *scales, const float *variances, int channels, float epsilon)
{
    int c = threadIdx.x;
    if (c >= channels)
        return;
    float variance = variances[c];
#ifdef WRONG
    float deviation = sqrtf(variance); /* FAULT: nan-origin */
#else
    float deviation = sqrtf(fmaxf(variance, 0.0f));
#endif
    scales[c] = 1.0f / (deviation + epsilon);
}

__global__ void normalise(float *x, const float *means, const float *scales, int length)
{
    int c = blockIdx.x;
    int i = threadIdx.x;
    if (i < length)
        x[c * length + i] = (x[c * length + i] - means[c]) * scales[c];
}

int main(void)
{
    static float host[CHANNELS * LENGTH];
    float means[CHANNELS], variances[CHANNELS];
    float *x, *d_means, *d_variances, *scales;

    for (int c = 0; c < CHANNELS; c++) {
        means[c] = 0.25f * (float)(c % 4);
        variances[c] = 0.5f + (float)(c % 6);
    }
    variances[7] = 0.0f;
    variances[11] =
        -3.0e-8f; /* a constant channel, by E[x * x] - E[x] * E[x] in the exporting program */
    variances[16] = 1.0e-41f; /* below the normal numbers */
    MUST(cudaMalloc(&x, sizeof(host)));
    MUST(cudaMalloc(&d_means, sizeof(means)));
    MUST(cudaMalloc(&d_variances, sizeof(variances)));
    MUST(cudaMalloc(&scales, CHANNELS * sizeof(float)));
    MUST(cudaMemcpy(d_means, means, sizeof(means), cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(d_variances, variances, sizeof(variances), cudaMemcpyHostToDevice));
    make_input<<<9, 128>>>(x, CHANNELS * LENGTH);
    channel_scales<<<1, 32>>>(scales, d_variances, CHANNELS, 1.0e-3f);
    normalise<<<CHANNELS, 64>>>(x, d_means, scales, LENGTH);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, x, sizeof(host), cudaMemcpyDeviceToHost));
    double sum = 0.0;
    for (int i = 0; i < CHANNELS * LENGTH; i++)
        sum += host[i];
    printf("stored_variance %.2f %.4f\n", sum, host[CHANNELS * LENGTH - 1]);
    MUST(cudaFree(scales));
    MUST(cudaFree(d_variances));
    MUST(cudaFree(d_means));
    MUST(cudaFree(x));
    return 0;
}
