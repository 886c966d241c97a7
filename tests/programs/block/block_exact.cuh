/*
 * block_exact.cuh - arithmetic whose result admits no rounding of its own: the device must agree
 * with the host (exact_host.c) in every bit.
 */
#ifndef BLOCK_EXACT_CUH
#define BLOCK_EXACT_CUH

#include "block_check.cuh"

#define EXACT_COUNT 500

__device__ __forceinline__ uint64_t exact_seed(uint64_t seed, uint64_t index, uint64_t salt)
{
    uint64_t z = seed * 0xD1342543DE82EF95u + index * 0x9E3779B97F4A7C15u + salt;

    z = (z ^ (z >> 32)) * 0xDABA0B6EB09322E3u;
    z = (z ^ (z >> 29)) * 0xDABA0B6EB09322E3u;
    return z ^ (z >> 32);
}

__device__ __forceinline__ uint64_t pack(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/* Divergent: the trip count differs from thread to thread. */
__device__ __noinline__ uint32_t greatest_common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        const uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

__global__ void exact_integers(uint64_t *out, int count, uint64_t seed)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= count)
        return;
    const uint64_t h = exact_seed(seed, i, 1), k = exact_seed(seed, i, 2);
    const uint32_t a = (uint32_t)h, b = (uint32_t)(h >> 32), shift = (uint32_t)k & 31;
    const int sa = (int)a, sb = (int)b | 1;
    const int64_t sh = (int64_t)h, sk = (int64_t)(k >> (k & 63)) | 1;
    uint64_t *word = out + (size_t)i * EXACT_WORDS;

    uint32_t mixed = a;
    for (int round = 0; round < MIX_ROUNDS; round++) {
        mixed ^= mixed >> 16;
        mixed *= 0x85EBCA6Bu;
        mixed = mixed << (round + 5) | mixed >> (27 - round);
        mixed = mixed * 5 + b;
    }
    word[0] = pack(mixed, mixed ^ a);
    word[1] = pack(__umulhi(a, b), a * b);
    word[2] = pack((uint32_t)__mulhi(sa, sb), (uint32_t)__mul24(sa, sb));
    word[3] = __umul64hi(h, k) ^ h * k;
    word[4] = pack(__funnelshift_l(a, b, shift), __funnelshift_rc(a, b, (uint32_t)k & 63));
    word[5] = pack((uint32_t)(__popc(a) << 16 | __clz(b) << 8 | __ffs(sa)), __brev(a)) ^
              __brevll(k) ^ (uint64_t)(__popcll(k) << 8 | __clzll(sh));
    word[6] = pack(__byte_perm(a, b, (uint32_t)k & 0x7777), __byte_perm(a, b, 0x6521));
    /* The smallest integer over -1 has no quotient. */
    word[7] = pack((uint32_t)(sa / (sb == -1 ? 7 : sb)), (uint32_t)(sa % 1000)) + a / (b | 1);
    word[8] = h / (k >> shift | 1) + h % (k >> (shift + 16) | 1) * 3;
    word[9] = (uint64_t)(sh / (sk == -1 ? 11 : sk) + sh % 1000003);
    word[10] = (uint64_t)(sh >> shift) + (uint64_t)(int8_t)a + (uint64_t)(int16_t)b +
               pack(__float_as_uint((float)sa), __float_as_uint((float)h)) +
               (uint64_t)__double2ll_rn((double)(sh >> 20) * 0.3);
    word[11] = pack(__sad(sa, (int)b, a & 0xFF) + (uint32_t)max(sa, (int)b) + min(a, b),
                    greatest_common_divisor(a, b)) +
               (uint32_t)__dp4a(sa, (int)b, sa);
}

/* In [-1, 1), every bit of the mantissa in use. */
__device__ __forceinline__ float unit_float(uint64_t bits)
{
    return __fmul_rn((float)(int32_t)(bits >> 32), 0x1p-31f);
}

__device__ __forceinline__ double unit_double(uint64_t bits)
{
    return __dmul_rn((double)(int64_t)bits, 0x1p-63);
}

__global__ void exact_chains(double *out, int count, uint64_t seed)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= count)
        return;
    const uint64_t h = exact_seed(seed, i, 3), k = exact_seed(seed, i, 4);
    const float a = unit_float(h), b = unit_float(k), c = unit_float(h ^ k);
    const double da = unit_double(h), db = unit_double(k);
    double *chain = out + (size_t)i * EXACT_CHAINS;

    float x = a, y = a;
    for (int round = 0; round < 16; round++) {
        x = __fmaf_rn(x, b, c);
        y = __fadd_rn(__fmul_rn(y, b), c); /* two roundings where the line above has one */
    }
    chain[0] = x;
    chain[1] = y;

    x = fabsf(a);
    for (int round = 0; round < 8; round++) {
        const float root = __fsqrt_rn(__fmaf_rn(x, x, 0.25f));
        x = __fdiv_rn(__fsub_rn(root, b), __fadd_rn(__frcp_rn(__fadd_rn(root, 1.0f)), 2.0f));
        x = fabsf(x);
    }
    chain[2] = x;

    double d = da;
    for (int round = 0; round < 8; round++) {
        d = __fma_rn(d, db, 0.125);
        d = __ddiv_rn(__dadd_rn(d, db), __dsqrt_rn(__dadd_rn(__dmul_rn(d, d), 1.0)));
    }
    chain[3] = d;

    /* Down among the subnormals, where bits are lost. */
    x = __fmul_rn(a, 0x1p-70f);
    chain[4] = __fmaf_rn(x, __fmul_rn(b, 0x1p-68f), 0x1p-140f);

    /* The directed roundings, and conversions of both widths. */
    x = __fadd_rz(__fmul_ru(a, b), __fmaf_rd(b, c, a));
    x = __fadd_rn(x, __double2float_rn(__dadd_rn(da, db)));
    x = __fadd_rn(x, rintf(__fmul_rn(a, 100.0f)));
    x = __fadd_rn(x, floorf(__fmul_rn(b, 10.0f)));
    x = __fadd_rn(x, (float)__float2int_rz(__fmul_rn(c, 1000.0f)));
    chain[5] = fminf(fmaxf(x, -500.0f), copysignf(500.0f, fabsf(a)));
}

/* Prints how many results differ; returns their number. */
static int exact_part(uint64_t seed)
{
    const size_t words = (size_t)EXACT_COUNT * EXACT_WORDS;
    const size_t chains = (size_t)EXACT_COUNT * EXACT_CHAINS;
    uint64_t *device_words, *got_words = (uint64_t *)host_alloc(words * sizeof(uint64_t));
    double *device_chains, *got_chains = (double *)host_alloc(chains * sizeof(double));
    int wrong_words = 0, wrong_chains = 0;

    CUDA_CHECK(cudaMalloc(&device_words, words * sizeof(uint64_t)));
    CUDA_CHECK(cudaMalloc(&device_chains, chains * sizeof(double)));
    exact_integers<<<(EXACT_COUNT + 63) / 64, 64>>>(device_words, EXACT_COUNT, seed);
    CUDA_CHECK(cudaGetLastError());
    exact_chains<<<(EXACT_COUNT + 63) / 64, 64>>>(device_chains, EXACT_COUNT, seed);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(
        cudaMemcpy(got_words, device_words, words * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    CUDA_CHECK(
        cudaMemcpy(got_chains, device_chains, chains * sizeof(double), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(device_words));
    CUDA_CHECK(cudaFree(device_chains));

    for (size_t i = 0; i < EXACT_COUNT; i++) {
        uint64_t word[EXACT_WORDS];
        double chain[EXACT_CHAINS];
        host_exact_integers(word, i, seed);
        host_exact_chains(chain, i, seed);
        for (int w = 0; w < EXACT_WORDS; w++)
            wrong_words += word[w] != got_words[i * EXACT_WORDS + w];
        for (int c = 0; c < EXACT_CHAINS; c++) /* by bits: the sign of a zero counts */
            wrong_chains += memcmp(&chain[c], &got_chains[i * EXACT_CHAINS + c], 8) != 0;
    }
    printf("exact: integers %d of %zu differ, fma chains %d of %zu differ\n", wrong_words, words,
           wrong_chains, chains);
    free(got_words);
    free(got_chains);
    return wrong_words + wrong_chains;
}

#endif
