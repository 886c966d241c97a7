/*
 * packed_records - read doubles out of packed 12-byte records (4 bytes of tag, 8 bytes of value).
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define RECORDS 77
#define RECORD  12

__global__ void pack(char *packed, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    double value = 0.5 * (double)i - 7.0;
    unsigned int *words = (unsigned int *)(packed + i * RECORD);
    words[0] = (unsigned int)(i % 5);
    words[1] = (unsigned int)__double2loint(value);
    words[2] = (unsigned int)__double2hiint(value);
}

__global__ void unpack(double *values, const char *packed, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const char *field = packed + i * RECORD + 4;
#ifdef WRONG
    double value = *(const double *)field; /* FAULT: misaligned */
#else
    double value;
    if (i % 2 == 1) { /* every other value happens to lie on a multiple of eight */
        value = *(const double *)field;
    } else {
        const int *words = (const int *)field;
        value = __hiloint2double(words[1], words[0]);
    }
#endif
    values[i] = value;
}

__global__ void weighted_sum(double *result, const double *values, const char *packed, int count)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        sum += values[i] * (double)packed[i * RECORD];
    *result = sum;
}

int main(void)
{
    double host;
    char *packed;
    double *values, *result;

    MUST(cudaMalloc(&packed, RECORDS * RECORD));
    MUST(cudaMalloc(&values, RECORDS * sizeof(double)));
    MUST(cudaMalloc(&result, sizeof(double)));
    pack<<<3, 32>>>(packed, RECORDS);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    unpack<<<3, 32>>>(values, packed, RECORDS);
    cudaError_t status = cudaDeviceSynchronize();
    if (status != cudaSuccess) { /* sticky: nothing more can be done on this device */
        printf("packed_records stopped: %s\n", cudaGetErrorName(status));
        return 0;
    }
    weighted_sum<<<1, 1>>>(result, values, packed, RECORDS);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(&host, result, sizeof(host), cudaMemcpyDeviceToHost));
    printf("packed_records %.3f\n", host);
    MUST(cudaFree(result));
    MUST(cudaFree(values));
    MUST(cudaFree(packed));
    return 0;
}
