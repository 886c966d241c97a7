/*
 * bits_host.c - the host's side of ocean_bits.cuh, in portable C.
 *
 * Built with -ffp-contract=off and -frounding-math: a fused or reordered operation here would be
 * taken for a fault of the device.
 */
#include "ocean.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#define LANES 32

static uint64_t stir(uint64_t seed, uint64_t index, uint64_t salt)
{
    uint64_t z = (seed ^ salt * 0x9E3779B97F4A7C15u) + index * 0xBF58476D1CE4E5B9u;

    z ^= z >> 31;
    z *= 0x94D049BB133111EBu;
    return z ^ z >> 30;
}

static uint64_t join(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

void crc_table(uint32_t table[16])
{
    for (uint32_t i = 0; i < 16; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 4; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
        table[i] = crc;
    }
}

/* Bit by bit, where the device uses the table. */
static uint32_t crc_of(uint64_t bytes)
{
    uint32_t crc = ~0u;

    for (int bit = 0; bit < 64; bit++) {
        const uint32_t low = (crc ^ (uint32_t)(bytes >> bit)) & 1;
        crc = crc >> 1 ^ (low ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static uint64_t interleave(uint32_t even, uint32_t odd)
{
    uint64_t out = 0;

    for (int bit = 0; bit < 32; bit++)
        out |= (uint64_t)(even >> bit & 1) << 2 * bit | (uint64_t)(odd >> bit & 1) << (2 * bit + 1);
    return out;
}

static uint32_t integer_root(uint64_t value)
{
    uint64_t root = 0;

    for (uint64_t bit = 1u << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) <= value)
            root |= bit;
    return (uint32_t)root;
}

static uint32_t power_modulo(uint32_t base, uint32_t exponent, uint32_t modulus)
{
    uint64_t result = 1;

    for (int bit = 31; bit >= 0; bit--) {
        result = result * result % modulus;
        if (exponent >> bit & 1)
            result = result * (base % modulus) % modulus;
    }
    return (uint32_t)result;
}

static uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint32_t insert_bits(uint32_t field, uint32_t into, uint32_t from, uint32_t length)
{
    const uint64_t mask = ((1ull << length) - 1) << from;

    return (uint32_t)((into & ~mask) | (((uint64_t)field << from) & mask));
}

void host_bit_words(uint64_t *out, size_t index, uint64_t seed)
{
    const uint64_t h = stir(seed, index, 1), k = stir(seed, index, 2);
    const uint32_t a = (uint32_t)h, b = (uint32_t)(h >> 32), shift = (uint32_t)(k >> 7) & 31;
    const uint32_t field = a >> shift & 0x1FF;
    const int32_t sa = (int32_t)a, sb = (int32_t)b;
    const int64_t sh = (int64_t)h, sk = (int64_t)k;
    uint64_t s0 = h, s1 = k | 1;

    out[0] = join(crc_of(h), crc_of(k));
    out[1] = interleave(a, b);
    out[2] = join(integer_root(h), integer_root(k >> shift));
    out[3] = power_modulo(a, b, (uint32_t)k | 1);
    for (int round = 0; round < 16; round++) {
        uint64_t t = s0;
        s0 = s1;
        t ^= t << 23;
        s1 = t ^ s0 ^ t >> 18 ^ s0 >> 5;
    }
    out[4] = s0 + s1;
    out[5] = (uint64_t)((__int128)sh * sk >> 64) ^ h * k;
    out[6] = join((uint32_t)(((int64_t)sa + sb) >> 1) ^ (uint32_t)(((int64_t)sa + sb + 1) >> 1),
                  (uint32_t)(((uint64_t)a + b) >> 1) + (a > b ? a - b : b - a) + shift);
    out[7] =
        join(insert_bits(field, b, shift, 7), (uint32_t)(h >> shift)) ^ (uint64_t)(sk >> shift);
    out[8] = join((uint32_t)(uint8_t)a * (uint16_t)b, (uint32_t)((int8_t)a * (int16_t)b)) +
             (uint32_t)((float)(b >> 8) * 0.25f) + float_bits((float)sk) +
             (uint64_t)(sh < sk ? sh : sk);

    uint32_t sum = 0, votes = 0, rank = 0, chosen = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint64_t other = stir(seed, index / LANES * LANES + lane, 1);
        const uint32_t vote = other >> 32 & 1;
        sum += (uint32_t)other;
        votes |= vote << lane;
        rank += vote && lane < index % LANES;
        if (lane == shift)
            chosen = (uint32_t)(other >> 32);
    }
    out[9] = join(sum ^ chosen, votes) + rank;
}

/* volatile keeps the operation between the two changes of mode. */
static double fma_rounded(double a, double b, double c, int mode)
{
    volatile double left = a, right = b, sum = c, result;
    const int before = fegetround();

    fesetround(mode);
    result = fma(left, right, sum);
    fesetround(before);
    return result;
}

void host_bit_chains(double *out, size_t index, uint64_t seed)
{
    const uint64_t h = stir(seed, index, 3), k = stir(seed, index, 4);
    const float a = (float)(int32_t)h * 0x1p-31f;
    const float b = fmaf((float)(uint32_t)k, 0x1p-32f, 0.5f);
    const double c = fma((double)(int64_t)k, 0x1p-62, 3.0);

    float value = 1.0f, lost = 0.0f;
    for (int term = 1; term <= 12; term++) {
        const float product = value * a, product_error = fmaf(value, a, -product);
        const float addend = 1.0f / (float)term, sum = product + addend;
        const float other = sum - product;
        const float sum_error = (product - (sum - other)) + (addend - other);
        value = sum;
        lost = fmaf(lost, a, product_error + sum_error);
    }
    out[0] = (double)value + lost;

    float inverse = 2.0f - b;
    for (int round = 0; round < 5; round++)
        inverse = fmaf(inverse, fmaf(-b, inverse, 1.0f), inverse);
    out[1] = nextafterf(b, 2.0f * b) + (inverse - 1.0f / b);

    double d = c;
    for (int round = 0; round < 6; round++) {
        const double root = sqrt(d);
        d = c / (root + 1.0) + 1.0 / root;
        d = fma(d, 0.75, trunc(root));
    }
    out[2] = d;

    /* c * a downwards; -0 as the addend leaves the product as it is. */
    d = fma_rounded(1.0, fma_rounded(c, a, -0.0, FE_DOWNWARD), fma_rounded(c, c, b, FE_TOWARDZERO),
                    FE_UPWARD);
    out[3] = d + (ceil(c * 100.0) + rint(a * 1000.0));

    float small = b * 0x1p-126f;
    for (int round = 0; round < 8; round++)
        small *= 0.7f;
    out[4] = small;
}
