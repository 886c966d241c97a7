/*
 * ocean_bits.cuh - results that the device and the host (bits_host.c) must agree on in every bit:
 * integer algorithms, and error-free transformations, which live from exact roundings.
 */
#ifndef OCEAN_BITS_CUH
#define OCEAN_BITS_CUH

#include "ocean_must.cuh"

__constant__ uint32_t crc_nibbles[16];

__device__ __forceinline__ uint64_t stir(uint64_t seed, uint64_t index, uint64_t salt)
{
    uint64_t z = (seed ^ salt * 0x9E3779B97F4A7C15u) + index * 0xBF58476D1CE4E5B9u;

    z ^= z >> 31;
    z *= 0x94D049BB133111EBu;
    return z ^ z >> 30;
}

__device__ __forceinline__ uint64_t join(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

/* CRC-32 of eight bytes, half a byte at a time. */
__device__ __noinline__ uint32_t crc_of(uint64_t bytes)
{
    uint32_t crc = ~0u;

    for (int nibble = 0; nibble < 16; nibble++, bytes >>= 4)
        crc = crc >> 4 ^ crc_nibbles[(crc ^ (uint32_t)bytes) & 15];
    return ~crc;
}

/* Every bit of the value moves to twice its place. */
__device__ __forceinline__ uint64_t spread_bits(uint32_t value)
{
    uint64_t z = value;

    z = (z | z << 16) & 0x0000FFFF0000FFFFu;
    z = (z | z << 8) & 0x00FF00FF00FF00FFu;
    z = (z | z << 4) & 0x0F0F0F0F0F0F0F0Fu;
    z = (z | z << 2) & 0x3333333333333333u;
    return (z | z << 1) & 0x5555555555555555u;
}

/* Newton from above: the sequence falls until it reaches the root. value must not be zero. */
__device__ __noinline__ uint32_t integer_root(uint64_t value)
{
    uint64_t root = 0xFFFFFFFFu;

    for (;;) {
        const uint64_t next = (root + value / root) >> 1;
        if (next >= root)
            return (uint32_t)root;
        root = next;
    }
}

__device__ uint32_t power_modulo(uint32_t base, uint32_t exponent, uint32_t modulus)
{
    uint64_t result = 1, factor = base % modulus;

    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = result * factor % modulus;
        factor = factor * factor % modulus;
    }
    return (uint32_t)result;
}

__global__ void bit_words(uint64_t *out, uint64_t seed)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t h = stir(seed, i, 1), k = stir(seed, i, 2);
    const uint32_t a = (uint32_t)h, b = (uint32_t)(h >> 32), shift = (uint32_t)(k >> 7) & 31;
    uint64_t *word = out + (size_t)i * BIT_WORDS, s0 = h, s1 = k | 1;
    uint32_t lane, field;

    word[0] = join(crc_of(h), crc_of(k));
    word[1] = spread_bits(a) | spread_bits(b) << 1;
    word[2] = join(integer_root(h), integer_root(k >> shift));
    word[3] = power_modulo(a, b, (uint32_t)k | 1);
    for (int round = 0; round < 16; round++) { /* xorshift128+ */
        uint64_t t = s0;
        s0 = s1;
        t ^= t << 23;
        s1 = t ^ s0 ^ t >> 18 ^ s0 >> 5;
    }
    word[4] = s0 + s1;
    word[5] = (uint64_t)__mul64hi((int64_t)h, (int64_t)k) ^ h * k;
    word[6] = join((uint32_t)(__hadd((int)a, (int)b) ^ __rhadd((int)a, (int)b)),
                   __uhadd(a, b) + __usad(a, b, shift));
    asm("bfe.u32 %0, %1, %2, 9;" : "=r"(field) : "r"(a), "r"(shift));
    asm("bfi.b32 %0, %1, %2, %3, 7;" : "=r"(lane) : "r"(field), "r"(b), "r"(shift));
    word[7] = join(lane, __funnelshift_r(a, b, shift)) ^ (uint64_t)((int64_t)k >> shift);
    word[8] = join((uint32_t)(uint8_t)a * (uint16_t)b, (uint32_t)((int8_t)a * (int16_t)b)) +
              __float2uint_rz((float)(b >> 8) * 0.25f) + __float_as_uint((float)(int64_t)k) +
              (uint64_t)min((int64_t)h, (int64_t)k);

    /* Across the warp: the sum, the vote, and the rank among those who voted alike. */
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    uint32_t sum = a;
    for (int offset = 16; offset > 0; offset >>= 1)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
    const uint32_t votes = __ballot_sync(0xFFFFFFFFu, b & 1);
    word[9] =
        join(sum ^ __shfl_sync(0xFFFFFFFFu, b, shift), votes) + __popc(votes & ((1u << lane) - 1));
}

/* a + b = sum + error, exactly. */
__device__ __forceinline__ float two_sum(float a, float b, float *error)
{
    const float sum = __fadd_rn(a, b), other = __fsub_rn(sum, a);

    *error = __fadd_rn(__fsub_rn(a, __fsub_rn(sum, other)), __fsub_rn(b, other));
    return sum;
}

/* a * b = product + error, exactly. */
__device__ __forceinline__ float two_product(float a, float b, float *error)
{
    const float product = __fmul_rn(a, b);

    *error = __fmaf_rn(a, b, -product);
    return product;
}

__global__ void bit_chains(double *out, uint64_t seed)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t h = stir(seed, i, 3), k = stir(seed, i, 4);
    const float a = __fmul_rn((float)(int32_t)h, 0x1p-31f);
    const float b = __fmaf_rn((float)(uint32_t)k, 0x1p-32f, 0.5f);
    const double c = __fma_rn((double)(int64_t)k, 0x1p-62, 3.0);
    double *chain = out + (size_t)i * BIT_CHAINS;

    /* A compensated Horner scheme: the roundings of the first sum go into the second. */
    float value = 1.0f, lost = 0.0f;
    for (int term = 1; term <= 12; term++) {
        float product_error, sum_error;
        const float product = two_product(value, a, &product_error);
        value = two_sum(product, __fdiv_rn(1.0f, term), &sum_error);
        lost = __fmaf_rn(lost, a, __fadd_rn(product_error, sum_error));
    }
    chain[0] = __dadd_rn(value, lost);

    /* Newton for 1 / b, from a poor start; the last step is one rounding. */
    float inverse = __fsub_rn(2.0f, b);
    for (int round = 0; round < 5; round++)
        inverse = __fmaf_rn(inverse, __fmaf_rn(-b, inverse, 1.0f), inverse);
    const float next = __uint_as_float(__float_as_uint(b) + 1);
    /* What is added is an ulp or nothing. */
    chain[1] = __fadd_rn(next, __fsub_rn(inverse, __frcp_rn(b)));

    double d = c;
    for (int round = 0; round < 6; round++) {
        const double root = __dsqrt_rn(d);
        d = __dadd_rn(__ddiv_rn(c, __dadd_rn(root, 1.0)), __drcp_rn(root));
        d = __fma_rn(d, 0.75, trunc(root));
    }
    chain[2] = d;

    d = __dadd_ru(__dmul_rd(c, (double)a), __fma_rz(c, c, (double)b));
    chain[3] = __dadd_rn(d, __dadd_rn(ceil(__dmul_rn(c, 100.0)), rint(__dmul_rn(a, 1000.0))));

    /* Gradual underflow. */
    float small = __fmul_rn(b, 0x1p-126f);
    for (int round = 0; round < 8; round++)
        small = __fmul_rn(small, 0.7f);
    chain[4] = small;
}

/* Prints how many results differ; returns their number. */
static int compare_bits(uint64_t seed)
{
    const size_t words = (size_t)BIT_ROWS * BIT_WORDS, chains = (size_t)BIT_ROWS * BIT_CHAINS;
    uint64_t *got_words = (uint64_t *)must_alloc(words * sizeof(uint64_t)), *words_on_device;
    double *got_chains = (double *)must_alloc(chains * sizeof(double)), *chains_on_device;
    uint32_t table[16];
    int bad_words = 0, bad_chains = 0;

    crc_table(table);
    MUST(cudaMemcpyToSymbol(crc_nibbles, table, sizeof(table)));
    MUST(cudaMalloc(&words_on_device, words * sizeof(uint64_t)));
    MUST(cudaMalloc(&chains_on_device, chains * sizeof(double)));
    bit_words<<<BIT_ROWS / 96, 96>>>(words_on_device, seed);
    MUST(cudaGetLastError());
    bit_chains<<<BIT_ROWS / 96, 96>>>(chains_on_device, seed);
    MUST(cudaGetLastError());
    MUST(cudaMemcpy(got_words, words_on_device, words * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(got_chains, chains_on_device, chains * sizeof(double), cudaMemcpyDeviceToHost));
    MUST(cudaFree(words_on_device));
    MUST(cudaFree(chains_on_device));

    for (size_t i = 0; i < BIT_ROWS; i++) {
        uint64_t word[BIT_WORDS];
        double chain[BIT_CHAINS];
        host_bit_words(word, i, seed);
        host_bit_chains(chain, i, seed);
        for (int w = 0; w < BIT_WORDS; w++)
            bad_words += word[w] != got_words[i * BIT_WORDS + w];
        for (int c = 0; c < BIT_CHAINS; c++) /* by bits: the sign of a zero counts */
            bad_chains += memcmp(&chain[c], &got_chains[i * BIT_CHAINS + c], 8) != 0;
    }
    printf("exact: integers %d of %zu differ, fma chains %d of %zu differ\n", bad_words, words,
           bad_chains, chains);
    free(got_words);
    free(got_chains);
    return bad_words + bad_chains;
}

#endif
