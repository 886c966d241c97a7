/* thrown_away.cu - values that nobody wrote are computed with, and what comes of them is thrown away: threads behind the end,
 * tiles that are not filled to their border, padding, a merge that looks one element too far. */
#include <cstdio>

#define COUNT   300
#define PADDED  304
#define THREADS 128
#define TILE    16

__global__ void scale_tail(const float *in, float *out, int count)
{
    __shared__ float tile[THREADS];
    const int i = blockIdx.x * THREADS + threadIdx.x;

    if (i < count)
        tile[threadIdx.x] = in[i];
    __syncthreads();
    const float scaled = tile[threadIdx.x] * 2.0f + 1.0f;
    if (i < count)
        out[i] = scaled;
}

__global__ void multiply_corner(const float *a, const float *b, float *out, int rows, int columns)
{
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    const int r = threadIdx.y, c = threadIdx.x;
    float sum = 0.0f;

    if (r < rows)
        left[r][c] = a[r * TILE + c];
    if (c < columns)
        right[r][c] = b[r * columns + c];
    __syncthreads();
    for (int k = 0; k < TILE; k++)
        sum += left[r][k] * right[k][c];
    if (r < rows && c < columns)
        out[r * columns + c] = sum;
}

/* The buffers are rounded up to whole vectors; nobody looks at the last elements. */
__global__ void scale_vectors(const float4 *in, float4 *out, int vectors)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= vectors)
        return;
    float4 v = in[i];
    v.x = v.x * 2.0f + 1.0f;
    v.y = v.y * 2.0f + 1.0f;
    v.z = v.z * 2.0f + 1.0f;
    v.w = v.w * 2.0f + 1.0f;
    out[i] = v;
}

__global__ void merge_halves(const int *in, int *out, int half)
{
    __shared__ int items[2 * TILE + 1];
    const int end = 2 * half;

    items[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x)
        return;
    int i = 0, j = half, a = items[i], b = items[j];
    for (int k = 0; k < end; k++) {
        const bool second = j < end && (i >= half || b < a); /* items[end] may have been read, but never decides */
        out[k] = second ? b : a;
        if (second)
            b = items[++j];
        else
            a = items[++i];
    }
}

int main()
{
    float host[PADDED], *in, *out, *corner;
    int order[2 * TILE], *unsorted, *sorted;

    for (int i = 0; i < PADDED; i++)
        host[i] = 0.25f * i;
    for (int i = 0; i < 2 * TILE; i++)
        order[i] = i < TILE ? 2 * i + 1 : 2 * (i - TILE);
    if (cudaMalloc(&in, sizeof host) || cudaMalloc(&out, sizeof host) || cudaMalloc(&corner, TILE * TILE * sizeof *corner) ||
        cudaMalloc(&unsorted, sizeof order) || cudaMalloc(&sorted, sizeof order))
        return 2;
    cudaMemcpy(in, host, (COUNT + 1) * sizeof *host, cudaMemcpyHostToDevice);
    cudaMemcpy(unsorted, order, sizeof order, cudaMemcpyHostToDevice);
    scale_tail<<<3, THREADS>>>(in, out, COUNT);
    scale_vectors<<<1, THREADS>>>((const float4 *)in, (float4 *)out, PADDED / 4);
    cudaMemcpy(host, out, COUNT * sizeof *host, cudaMemcpyDeviceToHost);
    printf("%g", host[COUNT - 1]);
    multiply_corner<<<1, dim3(TILE, TILE)>>>(in, in, corner, 10, 12);
    cudaMemcpy(host, corner, 120 * sizeof *host, cudaMemcpyDeviceToHost);
    printf(" %g", host[119]);
    merge_halves<<<1, 2 * TILE>>>(unsorted, sorted, TILE);
    cudaMemcpy(order, sorted, sizeof order, cudaMemcpyDeviceToHost);
    printf(" %d\n", order[2 * TILE - 1]);
    for (int i = 0; i < 2 * TILE; i++)
        if (order[i] != i)
            return 1;
    return 0;
}
