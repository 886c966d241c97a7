/*
 * gamma_table - tone curve by table; the table has room for 256 levels, 200 of them are in use.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define ROOM   256
#define LEVELS 200
#define PIXELS 999

__global__ void build(unsigned short *table, int levels)
{
    int level = blockIdx.x * blockDim.x + threadIdx.x;
    if (level < levels)
        table[level] = (unsigned short)(level * level / 3);
}

__global__ void paint(unsigned char *pixels, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        pixels[i] = (unsigned char)(i * 53);
}

__global__ void tone(unsigned short *out, const unsigned char *pixels, const unsigned short *table,
                     int count, int levels)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        int level = pixels[i];
#ifdef WRONG
        out[i] = table[min(level, ROOM - 1)]; /* FAULT: uninitialised-read */
#else
        out[i] = table[min(level, levels - 1)];
#endif
    }
}

int main(void)
{
    static unsigned short host[PIXELS];
    unsigned short *table, *active, *out;
    unsigned char *pixels;

    MUST(cudaMalloc(&table, ROOM * sizeof(unsigned short)));
    MUST(cudaMalloc(&active, ROOM * sizeof(unsigned short)));
    MUST(cudaMalloc(&pixels, PIXELS));
    MUST(cudaMalloc(&out, PIXELS * sizeof(unsigned short)));
    build<<<2, 128>>>(table, LEVELS);
    /* The whole table is handed over, also the part that is not in use. */
    MUST(cudaMemcpy(active, table, ROOM * sizeof(unsigned short), cudaMemcpyDeviceToDevice));
    paint<<<8, 128>>>(pixels, PIXELS);
    tone<<<3, 96>>>(out, pixels, active, PIXELS, LEVELS);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
    unsigned int hash = 0;
    for (int i = 0; i < PIXELS; i++)
        hash = 31 * hash + host[i];
    printf("gamma_table %u %u\n", (unsigned int)host[5], hash);
    MUST(cudaFree(out));
    MUST(cudaFree(pixels));
    MUST(cudaFree(active));
    MUST(cudaFree(table));
    return 0;
}
