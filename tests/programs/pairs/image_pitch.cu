/*
 * image_pitch - shade a pitched 16-bit image, sum its rows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#include "../must.h"

#define WIDTH  75
#define HEIGHT 21

__global__ void shade(unsigned short *image, size_t pitch, int width, int height, int level)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    unsigned short value = (unsigned short)(level + 3 * x + 7 * y);
#ifdef WRONG
    image[y * pitch + x] = value; /* FAULT: out-of-bounds-write */
#else
    unsigned short *row = (unsigned short *)((char *)image + y * pitch);
    row[x] = value;
#endif
}

/* One thread per row; walks to the end of the row by pointer. */
__global__ void row_sums(unsigned int *sums, const char *image, size_t pitch, int width, int height)
{
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= height)
        return;
    const unsigned short *p = (const unsigned short *)(image + y * pitch);
    const unsigned short *end = p + width;
    unsigned int sum = 0;
    while (p != end)
        sum += *p++;
    sums[y] = sum;
}

int main(void)
{
    unsigned int host[2 * HEIGHT];
    unsigned int *sums;
    char *copy;
    unsigned short *image;
    size_t pitch;
    dim3 block(32, 4);
    dim3 grid((WIDTH + 31) / 32, (HEIGHT + 3) / 4);

    MUST(cudaMalloc(&sums, sizeof(host)));
    MUST(cudaMallocPitch(&image, &pitch, WIDTH * sizeof(unsigned short), HEIGHT));
    MUST(cudaMalloc(&copy, pitch * HEIGHT));
    MUST(cudaMemset2D(image, pitch, 0, WIDTH * sizeof(unsigned short), HEIGHT));
    shade<<<grid, block>>>(image, pitch, WIDTH, HEIGHT, 100);
    row_sums<<<1, HEIGHT>>>(sums, (const char *)image, pitch, WIDTH, HEIGHT);
    /* The whole storage goes across, with the never written bytes between the rows. */
    MUST(cudaMemcpy(copy, image, pitch * HEIGHT, cudaMemcpyDeviceToDevice));
    row_sums<<<1, HEIGHT>>>(sums + HEIGHT, copy, pitch, WIDTH, HEIGHT);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, sums, sizeof(host), cudaMemcpyDeviceToHost));
    unsigned int total = 0;
    for (int i = 0; i < 2 * HEIGHT; i++)
        total = 31 * total + host[i];
    printf("image_pitch %u %u %u\n", host[0], host[HEIGHT - 1], total);
    MUST(cudaFree(copy));
    MUST(cudaFree(image));
    MUST(cudaFree(sums));
    return 0;
}
