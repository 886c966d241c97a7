/*
 * exact_host.c - the host's side of block_exact.cuh, in portable C.
 *
 * Built with -ffp-contract=off and -frounding-math: a fused or reordered operation here would be
 * taken for a fault of the device.
 */
#include "block.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 uint128;

static uint64_t exact_seed(uint64_t seed, uint64_t index, uint64_t salt)
{
    uint64_t z = seed * 0xD1342543DE82EF95u + index * 0x9E3779B97F4A7C15u + salt;

    z = (z ^ (z >> 32)) * 0xDABA0B6EB09322E3u;
    z = (z ^ (z >> 29)) * 0xDABA0B6EB09322E3u;
    return z ^ (z >> 32);
}

static uint64_t pack(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

static uint64_t reverse_bits(uint64_t value, int width)
{
    uint64_t out = 0;

    for (int bit = 0; bit < width; bit++)
        out |= (value >> bit & 1) << (width - 1 - bit);
    return out;
}

static int leading_zeros(uint64_t value, int width)
{
    int count = 0;

    while (count < width && !(value >> (width - 1 - count) & 1))
        count++;
    return count;
}

static int count_ones(uint64_t value)
{
    int count = 0;

    for (; value; value &= value - 1)
        count++;
    return count;
}

static int first_set(uint32_t value)
{
    for (int bit = 0; bit < 32; bit++)
        if (value >> bit & 1)
            return bit + 1;
    return 0;
}

static uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t selector)
{
    const uint64_t both = pack(b, a);
    uint32_t out = 0;

    for (int byte = 0; byte < 4; byte++)
        out |= (uint32_t)(both >> ((selector >> 4 * byte & 7) * 8) & 0xFF) << 8 * byte;
    return out;
}

/* The product of the low 24 bits, each operand sign-extended from bit 23; its low 32 bits. */
static uint32_t multiply_24(int a, int b)
{
    const int64_t left = (int32_t)((uint32_t)a << 8) >> 8, right = (int32_t)((uint32_t)b << 8) >> 8;

    return (uint32_t)(left * right);
}

static uint32_t dot_4_bytes(uint32_t a, uint32_t b, uint32_t sum)
{
    for (int byte = 0; byte < 4; byte++)
        sum += (uint32_t)((int8_t)(a >> 8 * byte) * (int8_t)(b >> 8 * byte));
    return sum;
}

static uint32_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint32_t greatest_common_divisor(uint32_t a, uint32_t b)
{
    return b ? greatest_common_divisor(b, a % b) : a;
}

void host_exact_integers(uint64_t *out, size_t index, uint64_t seed)
{
    const uint64_t h = exact_seed(seed, index, 1), k = exact_seed(seed, index, 2);
    const uint32_t a = (uint32_t)h, b = (uint32_t)(h >> 32), shift = (uint32_t)k & 31;
    const int32_t sa = (int32_t)a, sb = (int32_t)b | 1, full_b = (int32_t)b;
    const int64_t sh = (int64_t)h, sk = (int64_t)(k >> (k & 63)) | 1;
    const uint64_t both = pack(b, a);
    const uint32_t clamped = (k & 63) < 32 ? k & 63 : 32;
    uint32_t mixed = a;

    for (int round = 0; round < MIX_ROUNDS; round++) {
        mixed ^= mixed >> 16;
        mixed *= 0x85EBCA6Bu;
        mixed = mixed << (round + 5) | mixed >> (27 - round);
        mixed = mixed * 5 + b;
    }
    out[0] = pack(mixed, mixed ^ a);
    out[1] = (uint64_t)a * b;
    out[2] = pack((uint32_t)((int64_t)sa * sb >> 32), multiply_24(sa, sb));
    out[3] = (uint64_t)((uint128)h * k >> 64) ^ h * k;
    out[4] = pack((uint32_t)(both << shift >> 32), (uint32_t)(both >> clamped));
    out[5] = pack((uint32_t)(count_ones(a) << 16 | leading_zeros(b, 32) << 8 | first_set(a)),
                  (uint32_t)reverse_bits(a, 32)) ^
             reverse_bits(k, 64) ^ (uint64_t)(count_ones(k) << 8 | leading_zeros(h, 64));
    out[6] = pack(pick_bytes(a, b, (uint32_t)k & 0x7777), pick_bytes(a, b, 0x6521));
    out[7] = pack((uint32_t)(sa / (sb == -1 ? 7 : sb)), (uint32_t)(sa % 1000)) + a / (b | 1);
    out[8] = h / (k >> shift | 1) + h % (k >> (shift + 16) | 1) * 3;
    out[9] = (uint64_t)(sh / (sk == -1 ? 11 : sk) + sh % 1000003);
    out[10] = (uint64_t)(sh >> shift) + (uint64_t)(int8_t)a + (uint64_t)(int16_t)b +
              pack(float_bits((float)sa), float_bits((float)h)) +
              (uint64_t)llrint((double)(sh >> 20) * 0.3);
    out[11] = pack((uint32_t)llabs((int64_t)sa - full_b) + (a & 0xFF) +
                       (uint32_t)(sa > full_b ? sa : full_b) + (a < b ? a : b),
                   greatest_common_divisor(a, b)) +
              dot_4_bytes(a, b, a);
}

static float unit_float(uint64_t bits)
{
    return (float)(int32_t)(bits >> 32) * 0x1p-31f;
}

static double unit_double(uint64_t bits)
{
    return (double)(int64_t)bits * 0x1p-63;
}

/* fma(a, b, c) and the like under another rounding mode; volatile keeps the operation between the
   two changes of mode. */
static float fma_rounded(float a, float b, float c, int mode)
{
    volatile float left = a, right = b, sum = c, result;
    const int before = fegetround();

    fesetround(mode);
    result = fmaf(left, right, sum);
    fesetround(before);
    return result;
}

void host_exact_chains(double *out, size_t index, uint64_t seed)
{
    const uint64_t h = exact_seed(seed, index, 3), k = exact_seed(seed, index, 4);
    const float a = unit_float(h), b = unit_float(k), c = unit_float(h ^ k);
    const double da = unit_double(h), db = unit_double(k);

    float x = a, y = a;
    for (int round = 0; round < 16; round++) {
        x = fmaf(x, b, c);
        y = y * b + c;
    }
    out[0] = x;
    out[1] = y;

    x = fabsf(a);
    for (int round = 0; round < 8; round++) {
        const float root = sqrtf(fmaf(x, x, 0.25f));
        x = fabsf((root - b) / (1.0f / (root + 1.0f) + 2.0f));
    }
    out[2] = x;

    double d = da;
    for (int round = 0; round < 8; round++) {
        d = fma(d, db, 0.125);
        d = (d + db) / sqrt(d * d + 1.0);
    }
    out[3] = d;

    out[4] = fmaf(a * 0x1p-70f, b * 0x1p-68f, 0x1p-140f);

    /* a * b rounded up: -0 as the addend leaves every product as it is, but for the sign of zero.
     */
    x = fma_rounded(1.0f, fma_rounded(a, b, -0.0f, FE_UPWARD), fma_rounded(b, c, a, FE_DOWNWARD),
                    FE_TOWARDZERO);
    x += (float)(da + db);
    x += rintf(a * 100.0f);
    x += floorf(b * 10.0f);
    x += (float)(int)(c * 1000.0f);
    out[5] = fminf(fmaxf(x, -500.0f), 500.0f);
}
