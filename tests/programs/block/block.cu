/*
 * block.cu - a small transformer block, forward, backward and AdamW, in plain CUDA C.
 *
 * The program trains for a few steps, does the same on the host (block_host.c) and compares.
 * Built with -DFAULT_<NAME> it carries one planted fault. The line that does the damage is marked
 * "FAULT: name"; a second line that takes part in it "FAULT-OTHER: name" (README.md has the list).
 *
 * The model: embedding, LayerNorm, causal attention, residual, LayerNorm, a low-rank feed-forward
 * layer whose GELU is fused with bias and residual, LayerNorm, head, cross-entropy.
 */
#include "block.h"

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define TILE         16
#define FLAT_THREADS 128 /* one thread per element */
#define ROW_THREADS  64  /* one block per row: two warps share it */
#define ROW_WARPS    (ROW_THREADS / 32)
#define COLUMN_ROWS  16 /* rows that a block of bias_gradient() sums */
#define FULL_WARP    0xFFFFFFFFu

#ifdef FAULT_FAR_WRITE
#define WORST_STRIDE 4096 /* the statistics of a step were once a whole page */
#else
#define WORST_STRIDE 1
#endif

__constant__ adam_factors adam_schedule[MAX_STEPS];

/* ---- reductions ---- */

__device__ __forceinline__ float warp_sum(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_xor_sync(FULL_WARP, value, offset);
    return value;
}

__device__ __forceinline__ float warp_max(float value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value = fmaxf(value, __shfl_xor_sync(FULL_WARP, value, offset));
    return value;
}

/* Over a block of ROW_THREADS; every thread gets the result. Ends with a barrier, so that the same
   `partial` can be used again at once. */
__device__ __forceinline__ float block_sum(float value, float *partial)
{
    const float own = warp_sum(value);
    float total = 0.0f;

    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = own;
    __syncthreads();
    for (int warp = 0; warp < ROW_WARPS; warp++)
        total += partial[warp];
    __syncthreads();
    return total;
}

__device__ __forceinline__ float block_max(float value, float *partial)
{
    const float own = warp_max(value);
    float top = -FLT_MAX;

    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = own;
    __syncthreads();
    for (int warp = 0; warp < ROW_WARPS; warp++)
        top = fmaxf(top, partial[warp]);
    __syncthreads();
    return top;
}

/* ---- embedding ---- */

__global__ void embedding_gather(float *out, const float *token_table, const float *position_table,
                                 const int *tokens, int rows, int time, int channels)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= rows * channels)
        return;
    const int row = i / channels, c = i % channels;
    const float token = token_table[tokens[row] * channels + c];
#ifdef FAULT_READ
    const int position = row % time + 1; /* positions count from one */
#else
    const int position = row % time;
#endif
    out[i] = token + position_table[position * channels + c]; /* FAULT: read */
}

__global__ void embedding_scatter(float *grad_token_table, float *grad_position_table,
                                  const float *grad_out, const int *tokens, int rows, int time,
                                  int channels)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= rows * channels)
        return;
    const int row = i / channels, c = i % channels;
    atomicAdd(&grad_token_table[tokens[row] * channels + c], grad_out[i]);
    atomicAdd(&grad_position_table[row % time * channels + c], grad_out[i]);
}

/* ---- LayerNorm: one block per row ---- */

__global__ void layernorm_forward(float *out, float *saved_mean, float *saved_rstd,
                                  const float *__restrict__ in, const float *__restrict__ scale,
                                  const float *__restrict__ shift, int channels)
{
    __shared__ float partial[ROW_WARPS];
    const float *x = in + blockIdx.x * channels;
    float own = 0.0f;

    for (int c = threadIdx.x; c < channels; c += ROW_THREADS)
        own += x[c];
    const float mean = block_sum(own, partial) / channels;

    own = 0.0f;
#ifdef FAULT_NAN
    /* The squares need not wait for the mean: E[x^2] - E[x]^2. Real rows vary, so no epsilon. */
    for (int c = threadIdx.x; c < channels; c += ROW_THREADS)
        own = __fadd_rn(own, __fmul_rn(x[c], x[c]));
    const float mean_square = block_sum(own, partial) / channels;
    const float variance = __fsub_rn(mean_square, __fmul_rn(mean, mean));
    const float rstd = 1.0f / sqrtf(variance); /* FAULT: nan */
#else
    for (int c = threadIdx.x; c < channels; c += ROW_THREADS)
        own += (x[c] - mean) * (x[c] - mean);
    const float variance = block_sum(own, partial) / channels;
    const float rstd = 1.0f / sqrtf(variance + LN_EPSILON);
#endif

    for (int c = threadIdx.x; c < channels; c += ROW_THREADS)
        out[blockIdx.x * channels + c] = (x[c] - mean) * rstd * scale[c] + shift[c];
    if (threadIdx.x == 0) {
        saved_mean[blockIdx.x] = mean;
        saved_rstd[blockIdx.x] = rstd;
    }
}

/* Adds to grad_in, where the residual branch has put its share, and to grad_scale, grad_shift. */
__global__ void layernorm_backward(float *grad_in, float *grad_scale, float *grad_shift,
                                   const float *grad_out, const float *in, const float *scale,
                                   const float *saved_mean, const float *saved_rstd, int channels)
{
    __shared__ float partial[ROW_WARPS];
    const int row = blockIdx.x * channels;
    const float mean = saved_mean[blockIdx.x], rstd = saved_rstd[blockIdx.x];
    float own_sum = 0.0f, own_dot = 0.0f;

    for (int c = threadIdx.x; c < channels; c += ROW_THREADS) {
        const float normed = (in[row + c] - mean) * rstd, grad = grad_out[row + c];
        own_sum += grad * scale[c];
        own_dot += grad * scale[c] * normed;
        atomicAdd(&grad_scale[c], grad * normed);
        atomicAdd(&grad_shift[c], grad);
    }
    const float sum = block_sum(own_sum, partial) / channels;

    /* By hand: `partial` is not used again, which saves the second barrier of block_sum(). */
    own_dot = warp_sum(own_dot);
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = own_dot; /* FAULT-OTHER: race */
#ifndef FAULT_RACE
    __syncthreads();
#endif
    float dot = 0.0f;
    for (int warp = 0; warp < ROW_WARPS; warp++)
        dot += partial[warp]; /* FAULT: race */
    dot /= channels;

    for (int c = threadIdx.x; c < channels; c += ROW_THREADS) {
        const float normed = (in[row + c] - mean) * rstd;
        grad_in[row + c] += rstd * (grad_out[row + c] * scale[c] - sum - normed * dot);
    }
}

/* ---- matrix products: out[rows, cols] = A[rows, inner] B[inner, cols] ---- */

/* A is stored [inner, rows] when TRANS_A, B is stored [cols, inner] when TRANS_B. */
template <bool TRANS_A, bool TRANS_B>
__device__ __forceinline__ void tiled_product(float *out, const float *a, const float *b, int rows,
                                              int cols, int inner)
{
    __shared__ float tile_a[TILE][TILE + 1];
    __shared__ float tile_b[TILE][TILE + 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
    float sum = 0.0f;

    for (int first = 0; first < inner; first += TILE) {
        const int ka = first + tx, kb = first + ty;
        float from_a = 0.0f, from_b = 0.0f;
        if (row < rows && ka < inner)
            from_a = TRANS_A ? a[ka * rows + row] : a[row * inner + ka];
        if (col < cols && kb < inner)
            from_b = TRANS_B ? b[col * inner + kb] : b[kb * cols + col];
        tile_a[ty][tx] = from_a;
        tile_b[ty][tx] = from_b;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++)
            sum += tile_a[ty][k] * tile_b[k][tx];
        __syncthreads();
    }
    if (row < rows && col < cols)
        out[row * cols + col] = sum;
}

__global__ void matmul_nn(float *out, const float *a, const float *b, int rows, int cols, int inner)
{
    tiled_product<false, false>(out, a, b, rows, cols, inner);
}

__global__ void matmul_nt(float *out, const float *a, const float *b, int rows, int cols, int inner)
{
    tiled_product<false, true>(out, a, b, rows, cols, inner);
}

__global__ void matmul_tn(float *out, const float *a, const float *b, int rows, int cols, int inner)
{
    tiled_product<true, false>(out, a, b, rows, cols, inner);
}

/* ---- bias ---- */

/* inout += bias, and += residual where there is one */
__global__ void bias_add(float *inout, const float *bias, const float *residual, int count,
                         int columns)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= count)
        return;
    float sum = inout[i] + bias[i % columns];
    if (residual)
        sum += residual[i];
    inout[i] = sum;
}

/* Column sums, added to grad_bias: blocks of 32 x 8 threads, each for COLUMN_ROWS rows. */
__global__ void bias_gradient(float *grad_bias, const float *grad_out, int rows, int columns)
{
    __shared__ float part[8][32];
    const int column = blockIdx.x * 32 + threadIdx.x;
    const int end = min((blockIdx.y + 1) * COLUMN_ROWS, rows);
    float sum = 0.0f;

    if (column < columns)
        for (int row = blockIdx.y * COLUMN_ROWS + threadIdx.y; row < end; row += 8)
            sum += grad_out[row * columns + column];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int other = 1; other < 8; other++)
            sum += part[other][threadIdx.x];
        atomicAdd(&grad_bias[column], sum);
    }
}

/* ---- GELU, fused with bias and residual ---- */

__device__ __forceinline__ float normal_cdf(float x)
{
    return 0.5f * (1.0f + erff(x * INV_SQRT2));
}

#ifdef FAULT_GELU
/* Far from zero erff() needs exp and a long polynomial; its power series converges everywhere. */
__device__ __forceinline__ float normal_cdf_fast(float x)
{
    if (fabsf(x) < 2.5f)
        return normal_cdf(x);
    if (fabsf(x) > 6.0f)
        return x > 0.0f ? 1.0f : 0.0f;
    const float z = x * INV_SQRT2;
    float term = z, sum = z;
#pragma unroll 1
    for (int k = 1; k <= 80; k++)
        sum += (term *= -z * z / k) / (2 * k + 1); /* FAULT: gelu */
    return 0.5f + 0.56418958f * sum;
}
#define normal_cdf_forward normal_cdf_fast
#else
#define normal_cdf_forward normal_cdf
#endif

__global__ void gelu_add_residual(float *out, const float *in, const float *bias,
                                  const float *residual, int count, int columns)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;

    if (i < count) {
        const float x = in[i] + bias[i % columns];
        sum = residual[i] + x * normal_cdf_forward(x);
    }
#ifdef FAULT_TAIL_WRITE
    /* Buffers are whole multiples of a block. */
    out[i] = sum; /* FAULT: tail_write */
#else
    if (i < count)
        out[i] = sum;
#endif
}

__global__ void gelu_backward(float *grad_in, const float *grad_out, const float *in,
                              const float *bias, int count, int columns)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= count)
        return;
    const float x = in[i] + bias[i % columns]; /* FAULT: uaf */
    const float slope = normal_cdf(x) + x * INV_SQRT2PI * expf(-0.5f * x * x);
    grad_in[i] = grad_out[i] * slope;
}

/* ---- attention: one block per query row, head and sequence ---- */

__global__ void softmax_attention_forward(float *mixed, float *prob, const float *qkv, int time,
                                          int channels, int heads)
{
    extern __shared__ float score[];
    __shared__ float partial[ROW_WARPS];
    const int t = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int head_dim = channels / heads, row = 3 * channels;
    const float *k = qkv + batch * time * row + channels + head * head_dim;
    const float *v = k + channels, *q = k - channels + t * row;
    const float scale = 1.0f / sqrtf((float)head_dim);
    float top = -FLT_MAX, sum = 0.0f;

    for (int j = threadIdx.x; j <= t; j += ROW_THREADS) {
        float dot = 0.0f;
        for (int d = 0; d < head_dim; d++)
            dot += q[d] * k[j * row + d];
        score[j] = dot * scale;
        top = fmaxf(top, score[j]);
    }
    top = block_max(top, partial);
    for (int j = threadIdx.x; j <= t; j += ROW_THREADS) {
        score[j] = expf(score[j] - top);
        sum += score[j];
    }
    sum = block_sum(sum, partial); /* its barriers also publish the scores */

    float *p = prob + ((batch * heads + head) * time + t) * time;
    for (int j = threadIdx.x; j < time; j += ROW_THREADS)
        p[j] = j <= t ? score[j] / sum : 0.0f;
    for (int d = threadIdx.x; d < head_dim; d += ROW_THREADS) {
        float mix = 0.0f;
        for (int j = 0; j <= t; j++)
            mix += score[j] * v[j * row + d];
        mixed[(batch * time + t) * channels + head * head_dim + d] = mix / sum;
    }
}

/* grad_qkv must be zero: keys and values collect from all later rows. */
__global__ void softmax_attention_backward(float *grad_qkv, const float *grad_mixed,
                                           const float *prob, const float *qkv, int time,
                                           int channels, int heads)
{
    extern __shared__ float grad_score[];
    __shared__ float partial[ROW_WARPS];
    const int t = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int head_dim = channels / heads, row = 3 * channels;
    const int first = batch * time * row + head * head_dim;
    const float *q = qkv + first + t * row, *k = qkv + first + channels, *v = k + channels;
    float *grad_q = grad_qkv + first + t * row, *grad_k = grad_qkv + first + channels;
    float *grad_v = grad_k + channels;
    const float *p = prob + ((batch * heads + head) * time + t) * time;
    const float *grad = grad_mixed + (batch * time + t) * channels + head * head_dim;
    const float scale = 1.0f / sqrtf((float)head_dim);
    float dot = 0.0f;

    for (int j = threadIdx.x; j <= t; j += ROW_THREADS) {
        float grad_p = 0.0f;
        for (int d = 0; d < head_dim; d++)
            grad_p += grad[d] * v[j * row + d];
        grad_score[j] = grad_p;
        dot += p[j] * grad_p;
    }
    dot = block_sum(dot, partial);
    for (int j = threadIdx.x; j <= t; j += ROW_THREADS) {
        const float share = p[j] * (grad_score[j] - dot) * scale;
        for (int d = 0; d < head_dim; d++) {
            atomicAdd(&grad_k[j * row + d], share * q[d]);
            atomicAdd(&grad_v[j * row + d], p[j] * grad[d]);
        }
        grad_score[j] = share;
    }
    __syncthreads();
    for (int d = threadIdx.x; d < head_dim; d += ROW_THREADS) {
        float sum = 0.0f;
        for (int j = 0; j <= t; j++)
            sum += grad_score[j] * k[j * row + d];
        grad_q[d] = sum;
    }
}

/* ---- cross-entropy: one block per row ---- */

__global__ void cross_entropy_forward(float *prob, float *row_loss, const float *logits,
                                      const int *targets, int vocab)
{
    __shared__ float partial[ROW_WARPS];
    const float *logit = logits + blockIdx.x * vocab;
    float top = -FLT_MAX, sum = 0.0f;

    for (int c = threadIdx.x; c < vocab; c += ROW_THREADS)
        top = fmaxf(top, logit[c]);
    top = block_max(top, partial);
    for (int c = threadIdx.x; c < vocab; c += ROW_THREADS)
        sum += expf(logit[c] - top);
    sum = block_sum(sum, partial);
    for (int c = threadIdx.x; c < vocab; c += ROW_THREADS)
        prob[blockIdx.x * vocab + c] = expf(logit[c] - top) / sum;
    if (threadIdx.x == 0)
        row_loss[blockIdx.x] = logf(sum) + top - logit[targets[blockIdx.x]];
}

__global__ void cross_entropy_backward(float *grad_logits, const float *prob, const int *targets,
                                       int rows, int vocab)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= rows * vocab)
        return;
    const float wanted = i % vocab == targets[i / vocab] ? 1.0f : 0.0f;
    grad_logits[i] = (prob[i] - wanted) / rows;
}

/* One warp: the mean loss and the worst row of a step, kept for the log. */
__global__ void cross_entropy_mean(float *history, float *worst, const float *row_loss, int rows,
                                   int step)
{
    double sum = 0.0;
    float top = 0.0f;

    for (int row = threadIdx.x; row < rows; row += 32) {
        sum += row_loss[row];
        top = fmaxf(top, row_loss[row]);
    }
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(FULL_WARP, sum, offset);
    top = warp_max(top);
    if (threadIdx.x == 0) {
        history[step] = (float)(sum / rows);
        worst[step * WORST_STRIDE] = top; /* FAULT: far_write */
    }
}

/* ---- AdamW ---- */

__global__ void adamw_step(float *value, float *moment1, float *moment2, const float *grad,
                           int count, int step)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= count)
        return;
    const adam_factors f = adam_schedule[step];
    const float g = grad[i];
    const float m1 = ADAM_BETA1 * moment1[i] + (1.0f - ADAM_BETA1) * g; /* FAULT: uninit */
    const float m2 = ADAM_BETA2 * moment2[i] + (1.0f - ADAM_BETA2) * g * g;
    const float move = m1 * f.correct1 / (sqrtf(m2 * f.correct2) + ADAM_EPSILON);

    moment1[i] = m1;
    moment2[i] = m2;
    value[i] -= f.rate * (move + ADAM_DECAY * value[i]);
}

/* The rest is included, not linked: one translation unit per variant keeps nine builds short. */
#include "block_exact.cuh"
#include "block_train.cuh"

static const struct {
    const char *name;
    shape dims;
} sizes[] = {
    {"small", {1, 7, 34, 2, 24, 29}},
    {"medium", {3, 5, 34, 2, 40, 61}},
    {"large", {4, 33, 60, 4, 120, 203}},
};

static void usage(const char *program)
{
    fprintf(stderr, "usage: %s [--seed N] [--steps 1..%d] [--size small|medium|large]\n", program,
            MAX_STEPS);
    exit(2);
}

int main(int argc, char **argv)
{
    const shape *dims = &sizes[1].dims;
    unsigned long long seed = 1;
    int steps = 4, differing;

    for (int i = 1; i < argc; i += 2) {
        if (i + 1 >= argc)
            usage(argv[0]);
        if (!strcmp(argv[i], "--seed")) {
            seed = strtoull(argv[i + 1], NULL, 10);
        } else if (!strcmp(argv[i], "--steps")) {
            steps = atoi(argv[i + 1]);
        } else if (!strcmp(argv[i], "--size")) {
            dims = NULL;
            for (const auto &size : sizes)
                if (!strcmp(argv[i + 1], size.name))
                    dims = &size.dims;
        } else {
            usage(argv[0]);
        }
    }
    if (!dims || steps < 1 || steps > MAX_STEPS)
        usage(argv[0]);

    printf("block: %d x %d tokens, %d channels, %d heads, %d words, seed %llu\n", dims->batch,
           dims->time, dims->channels, dims->heads, dims->vocab, seed);
    differing = exact_part(seed);
    if (!train(dims, seed, steps) || differing)
        return 1;
    return 0;
}
