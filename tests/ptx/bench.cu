// Kernels of bench/bench_ptx.c. Made into bench.ptx by scripts/make-test-ptx: nvcc -ptx -lineinfo -arch=sm_75
#define KERNEL extern "C" __global__ void
KERNEL vector_add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
KERNEL matrix_multiply(const float *a, const float *b, float *c, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
KERNEL mandelbrot(int *out, int width, int limit)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, n = 0;
    float cr = -2.0f + 3.0f * x / width, ci = -1.5f + 3.0f * y / width, r = 0, i = 0;
    while (n < limit && r * r + i * i < 4) {
        float t = r * r - i * i + cr;
        i = 2 * r * i + ci;
        r = t;
        n++;
    }
    out[y * width + x] = n;
}
KERNEL hash(unsigned *out, int rounds)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, h = i;
    for (int k = 0; k < rounds; k++) {
        h ^= h >> 16;
        h *= 0x85ebca6b;
        h ^= h >> 13;
        h *= 0xc2b2ae35;
        h ^= h >> 16;
    }
    out[i] = h;
}
KERNEL tree_sum(const float *a, float *out, int n)
{
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = i < n ? a[i] : 0;
    __syncthreads();
    for (int k = 128; k > 0; k >>= 1) {
        if (t < k)
            s[t] += s[t + k];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = s[0];
}
KERNEL shuffle_sum(const float *a, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? a[i] : 0;
    for (int k = 16; k > 0; k >>= 1)
        v += __shfl_xor_sync(0xffffffff, v, k);
    if ((threadIdx.x & 31) == 0)
        out[i / 32] = v;
}
#define TILE 16
KERNEL matrix_tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        ta[y][x] = a[row * n + k + x];
        tb[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += ta[y][i] * tb[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
#include <cuda_fp16.h>
#include <mma.h>
// Tensor cores: b is column-major. A warp makes 32 x 32 of the result.
KERNEL matrix_tensor(const half *a, const half *b, float *c, int n)
{
    using namespace nvcuda::wmma;
    int row = blockIdx.y * 32, column = blockIdx.x * 32;
    fragment<accumulator, 16, 16, 16, float> sum[2][2];
    for (int i = 0; i < 4; i++)
        fill_fragment(sum[i / 2][i % 2], 0.0f);
    for (int k = 0; k < n; k += 16) {
        fragment<matrix_a, 16, 16, 16, half, row_major> fa[2];
        fragment<matrix_b, 16, 16, 16, half, col_major> fb[2];
        for (int i = 0; i < 2; i++) {
            load_matrix_sync(fa[i], a + (row + i * 16) * n + k, n);
            load_matrix_sync(fb[i], b + (column + i * 16) * n + k, n);
        }
        for (int i = 0; i < 4; i++)
            mma_sync(sum[i / 2][i % 2], fa[i / 2], fb[i % 2], sum[i / 2][i % 2]);
    }
    for (int i = 0; i < 4; i++)
        store_matrix_sync(c + (row + i / 2 * 16) * n + column + i % 2 * 16, sum[i / 2][i % 2], n, mem_row_major);
}
