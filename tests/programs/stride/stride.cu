/* Two kernels whose results are right and whose accesses are not what a device likes: a column read from rows, and a tile
 * of shared memory turned without a spare column. With no FAULT_ they are side by side, and padded. */
#include <cstdio>
#include <cuda_runtime.h>

enum { COUNT = 4096, STEP = 64, TILE = 32, TILES = 8 };

__global__ void double_column(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
#ifdef FAULT_STRIDED
    float v = in[(size_t)i * STEP]; /* FAULT: sectors */
#else
    float v = in[i];
#endif
    out[i] = v + v;
}

__global__ void turn_tiles(const float *in, float *out)
{
#ifdef FAULT_STRIDED
    __shared__ float tile[TILE][TILE];
#else
    __shared__ float tile[TILE][TILE + 1];
#endif
    size_t first = (size_t)blockIdx.x * TILE * TILE;
    tile[threadIdx.y][threadIdx.x] = in[first + threadIdx.y * TILE + threadIdx.x];
    __syncthreads();
    float v = tile[threadIdx.x][threadIdx.y]; /* FAULT: bank-conflicts */
    out[first + threadIdx.y * TILE + threadIdx.x] = v;
}

static int check(const char *what, bool ok)
{
    if (!ok)
        fprintf(stderr, "%s: wrong\n", what);
    return ok ? 0 : 1;
}

int main()
{
    const size_t elements = (size_t)COUNT * STEP, tiles = (size_t)TILES * TILE * TILE;
    float *host = new float[elements], *result = new float[tiles], *in, *out;
    for (size_t i = 0; i < elements; i++)
        host[i] = (float)(i % 1000);
    if (cudaMalloc((void **)&in, elements * sizeof *in) || cudaMalloc((void **)&out, tiles * sizeof *out) ||
        cudaMemcpy(in, host, elements * sizeof *in, cudaMemcpyHostToDevice))
        return 2;
    int failed = 0;
    double_column<<<COUNT / 256, 256>>>(in, out, COUNT);
    if (cudaMemcpy(result, out, COUNT * sizeof *out, cudaMemcpyDeviceToHost))
        return 2;
    for (int i = 0; i < COUNT; i++) {
#ifdef FAULT_STRIDED
        float v = host[(size_t)i * STEP];
#else
        float v = host[i];
#endif
        failed |= check("double_column", result[i] == v + v);
    }
    turn_tiles<<<TILES, dim3(TILE, TILE)>>>(in, out);
    if (cudaMemcpy(result, out, tiles * sizeof *out, cudaMemcpyDeviceToHost))
        return 2;
    for (size_t i = 0; i < tiles; i++) {
        size_t tile = i / (TILE * TILE), y = i / TILE % TILE, x = i % TILE;
        failed |= check("turn_tiles", result[i] == host[tile * TILE * TILE + x * TILE + y]);
    }
    cudaFree(in);
    cudaFree(out);
    delete[] host;
    delete[] result;
    return failed;
}
