/*
 * channel_spread - mean and variance per channel of samples that lie far away from zero.
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#include "../must.h"

#define CHANNELS 7
#define SAMPLES  300

__global__ void make_samples(float *x, int samples)
{
    int channel = blockIdx.x;
    for (int i = threadIdx.x; i < samples; i += blockDim.x)
        x[channel * samples + i] =
            4000.0f + 50.0f * (float)channel + 0.0625f * (float)(i * 29 % 33);
}

__device__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

__global__ void moments(float *means, float *variances, const float *x, int samples)
{
    const float *channel = x + blockIdx.x * samples;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < samples; i += 32)
        sum += channel[i];
    float mean = warp_sum(sum) / (float)samples;
    for (int i = threadIdx.x; i < samples; i += 32) {
#ifdef WRONG
        float value = channel[i];
#else
        float value = channel[i] - mean; /* cancels as well, but loses nothing */
#endif
        squares += value * value;
    }
    float variance = warp_sum(squares) / (float)samples;
#ifdef WRONG
    variance = variance - mean * mean; /* FAULT: approximation */
#endif
    if (threadIdx.x == 0) {
        means[blockIdx.x] = mean;
        variances[blockIdx.x] = variance;
    }
}

__global__ void spread(float *out, const float *variances, int channels)
{
    int c = threadIdx.x;
    if (c < channels)
        out[c] = sqrtf(fmaxf(variances[c], 0.0f));
}

int main(void)
{
    float host[CHANNELS];
    float *x, *means, *variances, *out;

    MUST(cudaMalloc(&x, CHANNELS * SAMPLES * sizeof(float)));
    MUST(cudaMalloc(&means, CHANNELS * sizeof(float)));
    MUST(cudaMalloc(&variances, CHANNELS * sizeof(float)));
    MUST(cudaMalloc(&out, CHANNELS * sizeof(float)));
    make_samples<<<CHANNELS, 64>>>(x, SAMPLES);
    moments<<<CHANNELS, 32>>>(means, variances, x, SAMPLES);
    spread<<<1, 32>>>(out, variances, CHANNELS);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
    printf("channel_spread %.3f %.3f\n", host[0], host[CHANNELS - 1]);
    MUST(cudaFree(out));
    MUST(cudaFree(variances));
    MUST(cudaFree(means));
    MUST(cudaFree(x));
    return 0;
}
