/*
 * energy_total - add up the energy of particles (in whole quanta) over all blocks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define COUNT 300
#define BLOCK 64

struct particle {
    unsigned char kind; /* seven bytes of padding follow */
    double speed;
    float mass; /* and four here */
};

__global__ void setup(struct particle *particles, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    particles[i].kind = (unsigned char)(i % 3);
    particles[i].speed = (double)(i % 11);
    particles[i].mass = (float)(2 + i % 4);
}

/* Copies whole particles, word by word, with their padding. */
__global__ void reverse(uint2 *out, const uint2 *in, int count)
{
    int words = sizeof(struct particle) / sizeof(uint2);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count * words)
        out[(count - 1 - i / words) * words + i % words] = in[i];
}

__global__ void energy(unsigned long long *total, const struct particle *particles, int count)
{
    __shared__ unsigned int quanta;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        quanta = 0;
    __syncthreads();
    if (i < count && particles[i].kind != 1)
        atomicAdd(&quanta,
                  (unsigned int)(particles[i].mass * particles[i].speed * particles[i].speed));
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned long long mine = quanta;
#ifdef WRONG
        unsigned long long before = *total; /* FAULT-OTHER: race */
        *total = before + mine;             /* FAULT: race */
#else
        atomicAdd(total, mine);
#endif
    }
}

int main(void)
{
    unsigned long long host[2];
    unsigned long long *totals;
    struct particle *particles, *reversed;
    int blocks = (COUNT + BLOCK - 1) / BLOCK;
    int words = COUNT * sizeof(struct particle) / sizeof(uint2);

    MUST(cudaMalloc(&totals, sizeof(host)));
    MUST(cudaMalloc(&particles, COUNT * sizeof(struct particle)));
    MUST(cudaMalloc(&reversed, COUNT * sizeof(struct particle)));
    MUST(cudaMemset(totals, 0, sizeof(host)));
    setup<<<blocks, BLOCK>>>(particles, COUNT);
    reverse<<<(words + 127) / 128, 128>>>((uint2 *)reversed, (const uint2 *)particles, COUNT);
    energy<<<blocks, BLOCK>>>(totals, particles, COUNT);
    energy<<<2, BLOCK>>>(totals + 1, reversed, 100);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, totals, sizeof(host), cudaMemcpyDeviceToHost));
    printf("energy_total %llu %llu\n", host[0], host[1]);
    MUST(cudaFree(reversed));
    MUST(cudaFree(particles));
    MUST(cudaFree(totals));
    return 0;
}
