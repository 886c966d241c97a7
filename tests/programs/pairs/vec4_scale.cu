/*
 * vec4_scale - scale and bias an array whose length is no multiple of four, four elements at a
 * time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define COUNT 1002

__global__ void fill_ramp(float *data, int count, float step)
{
    const float *end = data + count;
    for (float *p = data + blockIdx.x * blockDim.x + threadIdx.x; p < end;
         p += gridDim.x * blockDim.x)
        *p = step * (float)(p - data);
}

__global__ void scale_bias(float *__restrict__ out, const float *__restrict__ in, int count,
                           float scale, float bias)
{
    int vectors = (count + 3) / 4;
    for (int v = blockIdx.x * blockDim.x + threadIdx.x; v < vectors; v += gridDim.x * blockDim.x) {
        int first = 4 * v;
        int left = count - first;
        float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (left >= 4) {
            value = *(const float4 *)(in + first);
        } else {
            value.x = in[first];
            if (left > 1)
                value.y = in[first + 1];
            if (left > 2)
                value.z = in[first + 2];
        }
        value.x = value.x * scale + bias;
        value.y = value.y * scale + bias;
        value.z = value.z * scale + bias;
        value.w = value.w * scale + bias;
#ifdef WRONG
        *(float4 *)(out + first) = value; /* FAULT: out-of-bounds-write */
#else
        if (left >= 4) {
            *(float4 *)(out + first) = value;
            continue;
        }
        out[first] = value.x;
        if (left > 1)
            out[first + 1] = value.y;
        if (left > 2)
            out[first + 2] = value.z;
#endif
    }
}

int main(void)
{
    static float host[COUNT];
    float *in, *middle, *out;

    MUST(cudaMalloc(&in, COUNT * sizeof(float)));
    MUST(cudaMalloc(&middle, 1000 * sizeof(float)));
    MUST(cudaMalloc(&out, COUNT * sizeof(float)));
    fill_ramp<<<3, 64>>>(in, COUNT, 0.25f);
    scale_bias<<<2, 96>>>(middle, in, 1000, 2.0f, 1.0f);
    scale_bias<<<2, 96>>>(out, in, COUNT, 0.5f, -3.0f);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, out, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0.0;
    for (int i = 0; i < COUNT; i++)
        sum += host[i];
    MUST(cudaMemcpy(host, middle, 1000 * sizeof(float), cudaMemcpyDeviceToHost));
    printf("vec4_scale %.3f %.3f\n", sum, host[999]);
    MUST(cudaFree(out));
    MUST(cudaFree(middle));
    MUST(cudaFree(in));
    return 0;
}
