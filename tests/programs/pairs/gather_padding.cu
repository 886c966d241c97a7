/*
 * gather_padding - look up embedding rows by token and pool them; the padding token is the first
 * number past the vocabulary.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define VOCABULARY 50
#define WIDTH      24
#define TOKENS     41

__global__ void make_table(float *table, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        table[i] = (float)(i % 19) - 9.0f;
}

__global__ void gather(float *out, const float *__restrict__ table, const int *__restrict__ tokens,
                       int vocabulary)
{
    int token = tokens[blockIdx.x];
    const float *row =
        table + token * WIDTH; /* for the padding token: one past the end of the table */
#ifdef WRONG
    float value = row[threadIdx.x]; /* FAULT: out-of-bounds-read */
#else
    float value = token < vocabulary ? row[threadIdx.x] : 0.0f;
#endif
    out[blockIdx.x * WIDTH + threadIdx.x] = value;
}

__global__ void pool(float *mean, const float *rows, int count)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++)
        sum += rows[i * WIDTH + threadIdx.x];
    mean[threadIdx.x] = sum / (float)count;
}

int main(void)
{
    int tokens[TOKENS];
    float mean[WIDTH];
    float *table, *rows, *d_mean;
    int *d_tokens;

    for (int i = 0; i < TOKENS; i++)
        tokens[i] = i * 17 % VOCABULARY;
    tokens[TOKENS - 2] = VOCABULARY - 1;
    tokens[TOKENS - 1] = VOCABULARY; /* padding */
    MUST(cudaMalloc(&d_tokens, sizeof(tokens)));
    MUST(cudaMalloc(&table, VOCABULARY * WIDTH * sizeof(float)));
    MUST(cudaMalloc(&rows, TOKENS * WIDTH * sizeof(float)));
    MUST(cudaMalloc(&d_mean, sizeof(mean)));
    MUST(cudaMemcpy(d_tokens, tokens, sizeof(tokens), cudaMemcpyHostToDevice));
    make_table<<<10, 128>>>(table, VOCABULARY * WIDTH);
    gather<<<TOKENS, WIDTH>>>(rows, table, d_tokens, VOCABULARY);
    pool<<<1, WIDTH>>>(d_mean, rows, TOKENS);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(mean, d_mean, sizeof(mean), cudaMemcpyDeviceToHost));
    printf("gather_padding %.5f %.5f\n", mean[0], mean[WIDTH - 1]);
    MUST(cudaFree(d_mean));
    MUST(cudaFree(rows));
    MUST(cudaFree(table));
    MUST(cudaFree(d_tokens));
    return 0;
}
