/*
 * growth_rate - exact growth per step, (e^r - 1) / r, for very small rates, and the growth of
 * several accounts with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>

#include "../must.h"

#define RATES    190
#define ACCOUNTS 37

__global__ void make_rates(float *rates, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        rates[i] = 1.0e-6f * (float)(i % 95 + 1) * (i < 95 ? 1.0f : -1.0f);
}

__device__ float relative_growth(float rate)
{
#ifdef WRONG
    float power = expf(rate);
    float growth = power - 1.0f; /* FAULT: approximation */
#else
    float growth = expm1f(rate);
#endif
    return growth / rate;
}

__global__ void growths(float *out, const float *rates, int count)
{
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        out[i] = relative_growth(rates[i]);
}

__global__ void accounts(float *balances, const float *growth, int count, int rates)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float balance = 100.0f;
    for (int k = i; k < rates; k += count)
        balance *= growth[k];
    balances[i] = balance;
}

int main(void)
{
    float host[ACCOUNTS];
    float *rates, *growth, *balances;

    MUST(cudaMalloc(&rates, RATES * sizeof(float)));
    MUST(cudaMalloc(&growth, RATES * sizeof(float)));
    MUST(cudaMalloc(&balances, sizeof(host)));
    make_rates<<<3, 64>>>(rates, RATES);
    growths<<<1, 96>>>(growth, rates, RATES);
    accounts<<<2, 32>>>(balances, growth, ACCOUNTS, RATES);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, balances, sizeof(host), cudaMemcpyDeviceToHost));
    printf("growth_rate %.3f %.3f\n", host[0], host[ACCOUNTS - 1]);
    MUST(cudaFree(balances));
    MUST(cudaFree(growth));
    MUST(cudaFree(rates));
    return 0;
}
