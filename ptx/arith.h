/* arith.h - what the expressions of microops.def mean: integer and bit helpers, and IEEE arithmetic as PTX wants it.
 *
 * PTX results of single precision that are NaN are the canonical 0x7fffffff (halves: 0x7fff); double precision keeps
 * the payload of a NaN operand and makes 0xfff8000000000000 from none, which is what x86 does. Nothing here depends on
 * the rounding mode of the process being anything but to-nearest.
 */
#ifndef PTX_ARITH_H
#define PTX_ARITH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Rounding modifiers; RNA is to nearest, ties away from zero. */
enum rounding { ROUND_NONE, ROUND_RN, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA };

/* mod of float-to-integer conversions: rounding, width of the destination as log2 of bytes, signed. */
enum { INT_WIDTH_SHIFT = 3, INT_SIGNED = 1 << 5 };
/* mod of half-precision operations */
enum { HALF_BF16 = 1, HALF_RELU = 2, HALF_NAN = 4 };
/* mod of conversions to half precision: rounding, and: */
enum { NARROW_RELU = 8, NARROW_SATFINITE = 16 };
enum { DOT_A_SIGNED = 1, DOT_B_SIGNED = 2, DOT_HIGH = 4 };
enum { PRMT_F4E = 1, PRMT_B4E, PRMT_RC8, PRMT_ECL, PRMT_ECR, PRMT_RC16 };
enum { TEST_FINITE, TEST_INFINITE, TEST_NUMBER, TEST_NOTANUMBER, TEST_NORMAL, TEST_SUBNORMAL };

/* float_rounded.c: operations under another rounding direction of the processor */
float div_rounded32(float a, float b, int mode);
float sqrt_rounded32(float a, int mode);
double add_rounded64(double a, double b, int mode);
double mul_rounded64(double a, double b, int mode);
double fma_rounded64(double a, double b, double c, int mode);
double div_rounded64(double a, double b, int mode);
double sqrt_rounded64(double a, int mode);
float s64_to_float(int64_t a, int mode);
float u64_to_float(uint64_t a, int mode);
double s64_to_double(int64_t a, int mode);
double u64_to_double(uint64_t a, int mode);
/* float_special.c: the approximate functions, each correctly rounded from a wider one but for double rounding */
float exp2_32(float a);
float log2_32(float a);
float sin_32(float a);
float cos_32(float a);
float tanh_32(float a);
float rsqrt32(float a);
double rsqrt64(double a);
uint64_t rcp_approx64(uint64_t a);
uint64_t rsqrt_approx64(uint64_t a);
uint16_t exp2_half(uint16_t a, int mod);
uint16_t tanh_half(uint16_t a, int mod);

static inline uint32_t bits32(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float float32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint64_t bits64(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

static inline double float64(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

/* ---- integers ---- */

static inline int32_t saturate_s32(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

static inline int32_t sign24(uint32_t a)
{
    return (int32_t)(a << 8) >> 8;
}

/* Division by zero is unspecified in PTX; devices give all ones, and the dividend as remainder. */
static inline uint32_t divide_s32(int32_t a, int32_t b)
{
    return b == 0 ? UINT32_MAX : b == -1 ? 0 - (uint32_t)a : (uint32_t)(a / b);
}

static inline uint64_t divide_s64(int64_t a, int64_t b)
{
    return b == 0 ? UINT64_MAX : b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}

static inline uint32_t remainder_s32(int32_t a, int32_t b)
{
    return b == 0 ? (uint32_t)a : b == -1 ? 0 : (uint32_t)(a % b);
}

static inline uint64_t remainder_s64(int64_t a, int64_t b)
{
    return b == 0 ? (uint64_t)a : b == -1 ? 0 : (uint64_t)(a % b);
}

/* {b, a} shifted left, upper half; n at most 32. */
static inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t n)
{
    uint64_t both = (uint64_t)b << 32 | a;
    return (uint32_t)((both << n) >> 32);
}

/* {b, a} shifted right, lower half; n at most 32. */
static inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t n)
{
    uint64_t both = (uint64_t)b << 32 | a;
    return (uint32_t)(both >> n);
}

/* Bit k of the table says the result where a, b, c have the bits of k, a the highest. */
static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, unsigned table)
{
    uint32_t r = 0;
    for (unsigned k = 0; k < 8; k++)
        if (table >> k & 1)
            r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return r;
}

static inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned s = selector >> (4 * i) & 0xf;
        uint32_t byte = (uint32_t)(bytes >> (8 * (s & 7))) & 0xff;
        if (s & 8)
            byte = byte & 0x80 ? 0xff : 0;
        r |= byte << (8 * i);
    }
    return r;
}

static inline uint32_t permute_selector(unsigned mode, uint32_t c)
{
    uint32_t n = c & 3, r = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t s = 0;
        switch (mode) {
        case PRMT_F4E:
            s = n + i;
            break;
        case PRMT_B4E:
            s = (n - i) & 7;
            break;
        case PRMT_RC8:
            s = n;
            break;
        case PRMT_ECL:
            s = i > n ? i : n;
            break;
        case PRMT_ECR:
            s = i < n ? i : n;
            break;
        case PRMT_RC16:
            s = (n & 1) * 2 + (i & 1);
            break;
        }
        r |= s << (4 * i);
    }
    return r;
}

static inline uint64_t reverse_bits64(uint64_t x)
{
    x = (x >> 1 & UINT64_C(0x5555555555555555)) | (x & UINT64_C(0x5555555555555555)) << 1;
    x = (x >> 2 & UINT64_C(0x3333333333333333)) | (x & UINT64_C(0x3333333333333333)) << 2;
    x = (x >> 4 & UINT64_C(0x0f0f0f0f0f0f0f0f)) | (x & UINT64_C(0x0f0f0f0f0f0f0f0f)) << 4;
    return __builtin_bswap64(x);
}

static inline uint32_t reverse_bits32(uint32_t x)
{
    return (uint32_t)(reverse_bits64(x) >> 32);
}

static inline uint32_t find_top_bit(uint64_t a, uint32_t bits, unsigned shift_amount)
{
    if (a == 0)
        return UINT32_MAX;
    uint32_t top = 63 - (uint32_t)__builtin_clzll(a);
    return shift_amount ? bits - 1 - top : top;
}

static inline uint32_t find_nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
    if (offset == 0)
        return base < 32 && (mask >> base & 1) ? base : UINT32_MAX;
    int64_t left = offset < 0 ? -(int64_t)offset : offset;
    for (int64_t at = base; at >= 0 && at<32; at += offset> 0 ? 1 : -1)
        if ((mask >> at & 1) && --left == 0)
            return (uint32_t)at;
    return UINT32_MAX;
}

static inline uint64_t extract_field(uint64_t a, uint32_t position, uint32_t length, uint32_t bits, bool is_signed)
{
    uint32_t pos = position & 0xff, len = length & 0xff;
    if (len == 0)
        return 0;
    uint32_t top = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;
    bool sign = is_signed && (a >> top & 1);
    uint64_t field = pos >= bits ? 0 : a >> pos;
    uint32_t kept = pos >= bits ? 0 : len < bits - pos ? len : bits - pos;
    uint64_t low = kept >= 64 ? UINT64_MAX : (UINT64_C(1) << kept) - 1;
    return (field & low) | (sign ? ~low : 0);
}

static inline uint64_t insert_field(uint64_t a, uint64_t b, uint32_t position, uint32_t length, uint32_t bits)
{
    uint32_t pos = position & 0xff, len = length & 0xff;
    if (pos >= bits || len == 0)
        return b;
    uint32_t kept = len < bits - pos ? len : bits - pos;
    uint64_t mask = (kept >= 64 ? UINT64_MAX : (UINT64_C(1) << kept) - 1) << pos;
    return (b & ~mask) | (a << pos & mask);
}

static inline uint32_t bit_mask(uint32_t start, uint32_t width, unsigned clamp)
{
    if (!clamp) {
        start &= 31;
        width &= 31;
    }
    if (start >= 32 || width == 0)
        return 0;
    uint32_t high = UINT32_MAX << start;
    return width >= 32 - start ? high : high & ~(UINT32_MAX << (start + width));
}

static inline uint32_t size_extend(uint32_t a, uint32_t n, unsigned clamp, bool is_signed)
{
    if (!clamp)
        n &= 31;
    if (n == 0)
        return 0;
    if (n >= 32)
        return a;
    uint32_t up = a << (32 - n);
    return is_signed ? (uint32_t)((int32_t)up >> (32 - n)) : up >> (32 - n);
}

static inline int32_t byte_of(uint32_t x, unsigned i, bool is_signed)
{
    uint8_t b = (uint8_t)(x >> (8 * i));
    return is_signed ? (int8_t)b : b;
}

static inline uint32_t dot4(uint32_t a, uint32_t b, uint32_t c, unsigned mod)
{
    for (unsigned i = 0; i < 4; i++)
        c += (uint32_t)(byte_of(a, i, mod & DOT_A_SIGNED) * byte_of(b, i, mod & DOT_B_SIGNED));
    return c;
}

static inline uint32_t dot2(uint32_t a, uint32_t b, uint32_t c, unsigned mod)
{
    for (unsigned i = 0; i < 2; i++) {
        uint16_t h = (uint16_t)(a >> (16 * i));
        int64_t x = mod & DOT_A_SIGNED ? (int16_t)h : h;
        c += (uint32_t)(x * byte_of(b, i + (mod & DOT_HIGH ? 2 : 0), mod & DOT_B_SIGNED));
    }
    return c;
}

/* mod: bit 0 and 1 as DOT_*, bit 2: add the four differences to c, else they are the bytes of the result. */
static inline uint32_t abs_diff4(uint32_t a, uint32_t b, uint32_t c, unsigned mod)
{
    uint32_t bytes = 0;
    for (unsigned i = 0; i < 4; i++) {
        int32_t d = byte_of(a, i, mod & DOT_A_SIGNED) - byte_of(b, i, mod & DOT_B_SIGNED);
        uint32_t magnitude = (uint32_t)(d < 0 ? -d : d);
        bytes |= (magnitude & 0xff) << (8 * i);
        c += magnitude;
    }
    return mod & 4 ? c : bytes;
}

/* ---- single and double precision ---- */

static inline float canonical_nan32(void)
{
    return float32(0x7fffffff);
}

static inline float canonical32(float x)
{
    return __builtin_expect(x != x, 0) ? canonical_nan32() : x;
}

static inline double canonical64(double x)
{
    return x;
}

/* Which of two NaN operands gives its payload is left open, by PTX and by the order in which a compiler puts them: the
 * first. */
static inline double first_nan64(double x, double a, double b, double c)
{
    if (__builtin_expect(x == x, 1))
        return x;
    double from = a != a ? a : b != b ? b : c != c ? c : x;
    return float64(bits64(from) | UINT64_C(1) << 51);
}

static inline float flush32(float x)
{
    uint32_t u = bits32(x);
    return (u & 0x7f800000) == 0 ? float32(u & 0x80000000) : x;
}

static inline float saturate32(float x)
{
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; /* NaN and -0 become +0 */
}

static inline double saturate64(double x)
{
    return x > 0 ? (x < 1 ? x : 1.0) : 0.0;
}

/* One NaN loses to a number; -0 is less than +0. */
static inline float minimum32(float a, float b)
{
    if (a != a)
        return canonical32(b);
    if (b != b)
        return a;
    if (a == b)
        return bits32(a) >> 31 ? a : b;
    return a < b ? a : b;
}

static inline float maximum32(float a, float b)
{
    if (a != a)
        return canonical32(b);
    if (b != b)
        return a;
    if (a == b)
        return bits32(a) >> 31 ? b : a;
    return a > b ? a : b;
}

static inline double minimum64(double a, double b)
{
    if (a != a)
        return b;
    if (b != b)
        return a;
    if (a == b)
        return bits64(a) >> 63 ? a : b;
    return a < b ? a : b;
}

static inline double maximum64(double a, double b)
{
    if (a != a)
        return b;
    if (b != b)
        return a;
    if (a == b)
        return bits64(a) >> 63 ? b : a;
    return a > b ? a : b;
}

/* min|max.xorsign.abs: the smaller|larger magnitude with the product's sign; mod bit 0: .NaN. */
static inline uint32_t xorsign32(uint32_t a, uint32_t b, unsigned mod, bool min)
{
    float x = float32(a & 0x7fffffff), y = float32(b & 0x7fffffff);
    if ((x != x || y != y) && (mod & 1 || (x != x && y != y)))
        return 0x7fffffff;
    return bits32(min ? minimum32(x, y) : maximum32(x, y)) | ((a ^ b) & 0x80000000);
}

static inline uint32_t test_property(uint64_t bits, unsigned exponent_bits, unsigned mantissa_bits, unsigned property)
{
    uint64_t mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
    uint64_t top = (UINT64_C(1) << exponent_bits) - 1, exponent = bits >> mantissa_bits & top;
    switch (property) {
    case TEST_FINITE:
        return exponent != top;
    case TEST_INFINITE:
        return exponent == top && mantissa == 0;
    case TEST_NUMBER:
        return exponent != top || mantissa == 0;
    case TEST_NOTANUMBER:
        return exponent == top && mantissa != 0;
    case TEST_NORMAL: /* zero is neither */
        return exponent != 0 && exponent != top;
    default:
        return exponent == 0 && mantissa != 0;
    }
}

/* Rounds x to a binary format of `mbits` stored mantissa bits and `ebits` exponent bits; returns its encoding. NaN
 * gives the canonical NaN (all ones but the sign). */
static inline uint32_t encode_narrow(double x, unsigned mbits, unsigned ebits, int mode)
{
    uint64_t bits = bits64(x);
    uint32_t sign = (uint32_t)(bits >> 63) << (mbits + ebits);
    uint32_t infinity = ((1u << ebits) - 1) << mbits;
    if (x != x)
        return infinity | ((1u << mbits) - 1);
    if (x == 0)
        return sign;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (exponent == 1024)
        return sign | infinity;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == -1023)
        exponent = -1022;
    else
        mantissa |= UINT64_C(1) << 52;
    int lowest = 2 - (1 << (ebits - 1)); /* exponent of the smallest normal number */
    int shift = 52 - (int)mbits + (exponent < lowest ? lowest - exponent : 0);
    if (shift > 62)
        shift = 62;
    uint64_t kept = mantissa >> shift, rest = mantissa & ((UINT64_C(1) << shift) - 1),
             half = UINT64_C(1) << (shift - 1);
    bool up = false;
    switch (mode) {
    case ROUND_RZ:
        break;
    case ROUND_RM:
        up = sign && rest;
        break;
    case ROUND_RP:
        up = !sign && rest;
        break;
    case ROUND_RNA:
        up = rest >= half;
        break;
    default:
        up = rest > half || (rest == half && (kept & 1));
    }
    kept += up;
    if (exponent > lowest + (int)(1u << ebits))
        exponent = lowest + (int)(1u << ebits);
    uint64_t code = exponent >= lowest ? ((uint64_t)(exponent - lowest) << mbits) + kept : kept;
    if (code >= infinity) {
        bool to_infinity = mode == ROUND_RN || mode == ROUND_NONE || mode == ROUND_RNA || (mode == ROUND_RM && sign) ||
                           (mode == ROUND_RP && !sign);
        code = to_infinity ? infinity : infinity - 1;
    }
    return sign | (uint32_t)code;
}

static inline float narrow_rounded32(double x, int mode)
{
    return float32(encode_narrow(x, 23, 8, mode));
}

/* a + b rounded to odd: a later rounding to 50 bits or fewer, in any direction, is then correct. Zero results need care
 * of their own (sign). */
static inline double sum_to_odd(double a, double b)
{
    double s = a + b;
    uint64_t bits = bits64(s);
    if ((bits >> 52 & 0x7ff) == 0x7ff)
        return s;
    double from_b = s - a;
    double error = (a - (s - from_b)) + (b - from_b);
    if (error != 0 && !(bits & 1))
        bits += (error > 0) == (s > 0) ? 1 : UINT64_MAX;
    return float64(bits);
}

/* An exact zero sum is -0 when rounding down, unless both addends are +0. */
static inline double signed_zero_sum(double a, double b, int mode)
{
    if (bits64(a) == bits64(b))
        return a;
    return mode == ROUND_RM ? -0.0 : 0.0;
}

static inline float fma_rounded32(float a, float b, float c, int mode)
{
    double product = (double)a * b; /* exact */
    double sum = sum_to_odd(product, c);
    if (sum == 0)
        return (float)signed_zero_sum(product, c, mode);
    return narrow_rounded32(sum, mode);
}

static inline float add_rounded32(float a, float b, int mode)
{
    double sum = sum_to_odd(a, b);
    if (sum == 0)
        return (float)signed_zero_sum(a, b, mode);
    return narrow_rounded32(sum, mode);
}

static inline float mul_rounded32(float a, float b, int mode)
{
    return narrow_rounded32((double)a * b, mode);
}

/* div.approx: a * (1 / b) where 1 / b is zero for |b| above 2^126. */
static inline float divide_approx32(float a, float b)
{
    float magnitude = __builtin_fabsf(b);
    if (magnitude > 0x1p126f && magnitude < __builtin_inff())
        return canonical32(a * __builtin_copysignf(0.0f, b));
    return canonical32(a / b);
}

/* ---- half precision, bfloat16, tf32 ---- */

static inline float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00)
        return rest == 0x7c00 ? float32(sign | 0x7f800000) : canonical_nan32();
    if (rest >= 0x0400)
        return float32(sign | ((rest << 13) + ((127 - 15) << 23)));
    float tiny = (float)rest * 0x1p-24f; /* exact */
    return float32(bits32(tiny) | sign);
}

static inline float bfloat_to_float(uint16_t h)
{
    return canonical32(float32((uint32_t)h << 16));
}

static inline uint16_t finish_half(uint32_t code, unsigned mod, uint32_t infinity)
{
    if ((mod & NARROW_RELU) && (code & 0x8000))
        return 0;
    if ((mod & NARROW_SATFINITE) && (code & 0x7fff) == infinity)
        return (uint16_t)(code - 1);
    return (uint16_t)code;
}

static inline uint16_t double_to_half(double x, unsigned mod)
{
    return finish_half(encode_narrow(x, 10, 5, (int)(mod & 7)), mod, 0x7c00);
}

static inline uint16_t double_to_bfloat(double x, unsigned mod)
{
    return finish_half(encode_narrow(x, 7, 8, (int)(mod & 7)), mod, 0x7f80);
}

/* The lower 13 bits of a tf32 register are zero here (PTX leaves them undefined). */
static inline uint32_t float_to_tf32(uint32_t a, unsigned mod)
{
    float x = float32(a);
    if (x != x)
        return 0x7fffffff;
    uint32_t code = encode_narrow((double)x, 10, 8, (int)(mod & 7)) << 13;
    if ((mod & NARROW_RELU) && code >> 31)
        return 0;
    if ((mod & NARROW_SATFINITE) && (code & 0x7fffffff) == 0x7f800000)
        return code - (1u << 13);
    return code;
}

static inline double widen_half(uint16_t h, unsigned mod)
{
    return mod & HALF_BF16 ? (double)bfloat_to_float(h) : (double)half_to_float(h);
}

static inline uint16_t narrow_half(double x, unsigned mod)
{
    uint32_t code = mod & HALF_BF16 ? encode_narrow(x, 7, 8, ROUND_RN) : encode_narrow(x, 10, 5, ROUND_RN);
    if ((mod & HALF_RELU) && (code & 0x8000))
        return 0;
    return (uint16_t)code;
}

static inline uint16_t add_half(uint16_t a, uint16_t b, unsigned mod)
{
    return narrow_half(sum_to_odd(widen_half(a, mod), widen_half(b, mod)), mod);
}

static inline uint16_t sub_half(uint16_t a, uint16_t b, unsigned mod)
{
    return narrow_half(sum_to_odd(widen_half(a, mod), -widen_half(b, mod)), mod);
}

static inline uint16_t mul_half(uint16_t a, uint16_t b, unsigned mod)
{
    return narrow_half(widen_half(a, mod) * widen_half(b, mod), mod);
}

static inline uint16_t fma_half(uint16_t a, uint16_t b, uint16_t c, unsigned mod)
{
    return narrow_half(sum_to_odd(widen_half(a, mod) * widen_half(b, mod), widen_half(c, mod)), mod);
}

static inline uint16_t pick_half(uint16_t a, uint16_t b, unsigned mod, bool min)
{
    uint32_t infinity = mod & HALF_BF16 ? 0x7f80 : 0x7c00;
    bool a_nan = (a & 0x7fffu) > infinity, b_nan = (b & 0x7fffu) > infinity;
    if ((a_nan && b_nan) || ((a_nan || b_nan) && (mod & HALF_NAN)))
        return 0x7fff;
    if (a_nan || b_nan)
        return a_nan ? b : a;
    /* Sign-magnitude order with -0 below +0. */
    int32_t x = a & 0x8000 ? -(int32_t)(a & 0x7fff) - 1 : a;
    int32_t y = b & 0x8000 ? -(int32_t)(b & 0x7fff) - 1 : b;
    return (min ? x < y : x > y) ? a : b;
}

static inline uint16_t min_half(uint16_t a, uint16_t b, unsigned mod)
{
    return pick_half(a, b, mod, true);
}

static inline uint16_t max_half(uint16_t a, uint16_t b, unsigned mod)
{
    return pick_half(a, b, mod, false);
}

static inline uint16_t flush_half(uint16_t a)
{
    return (a & 0x7c00) == 0 ? a & 0x8000 : a;
}

static inline uint16_t saturate_half(uint16_t a)
{
    if ((a & 0x8000) || (a & 0x7fff) > 0x7c00)
        return 0;
    return a > 0x3c00 ? 0x3c00 : a;
}

#define HALVES1(f, a) ((uint32_t)f((uint16_t)((a) >> 16)) << 16 | f((uint16_t)(a)))
#define HALVES2(f, a, b, mod)                                                                                          \
    ((uint32_t)f((uint16_t)((a) >> 16), (uint16_t)((b) >> 16), mod) << 16 | f((uint16_t)(a), (uint16_t)(b), mod))
#define HALVES3(f, a, b, c, mod)                                                                                       \
    ((uint32_t)f((uint16_t)((a) >> 16), (uint16_t)((b) >> 16), (uint16_t)((c) >> 16), mod) << 16 |                     \
     f((uint16_t)(a), (uint16_t)(b), (uint16_t)(c), mod))

/* ---- conversions ---- */

/* A NaN of f32 becomes a NaN of f64 with the payload moved up, as devices and x86 do. */
static inline double widen32(float a)
{
    return (double)a;
}

static inline double round_integral(double x, int mode)
{
    switch (mode) {
    case ROUND_RZ:
        return __builtin_trunc(x);
    case ROUND_RM:
        return __builtin_floor(x);
    case ROUND_RP:
        return __builtin_ceil(x);
    default:
        return __builtin_nearbyint(x);
    }
}

static inline uint64_t float_to_int(double x, unsigned mod, bool from_f64)
{
    unsigned bits = 8u << (mod >> INT_WIDTH_SHIFT & 3);
    bool is_signed = mod & INT_SIGNED;
    if (x != x) /* PTX 9.0: zero, but 1 << (bits - 1) when the source is f64 or the destination has 64 bits */
        return from_f64 || bits == 64 ? (is_signed ? (uint64_t)(INT64_MIN >> (64 - bits)) : UINT64_C(1) << (bits - 1))
                                      : 0;
    x = round_integral(x, (int)(mod & 7));
    if (is_signed) {
        double limit = (double)(UINT64_C(1) << (bits - 1));
        if (x >= limit)
            return (uint64_t)(INT64_MAX >> (64 - bits));
        if (x < -limit)
            return (uint64_t)(INT64_MIN >> (64 - bits));
        return (uint64_t)(int64_t)x;
    }
    double limit = (double)(UINT64_C(1) << (bits - 1)) * 2;
    if (x >= limit)
        return UINT64_MAX >> (64 - bits);
    return x <= 0 ? 0 : (uint64_t)x;
}

static inline uint32_t float_to_s32_rz(float a)
{
    if (a > -2147483648.0f && a < 2147483648.0f)
        return (uint32_t)(int32_t)a;
    return a != a ? 0 : a < 0 ? 0x80000000u : 0x7fffffffu;
}

static inline uint64_t saturate_int_signed(int64_t a, unsigned mod)
{
    unsigned bits = 8u << (mod >> INT_WIDTH_SHIFT & 3);
    int64_t low = mod & INT_SIGNED ? INT64_MIN >> (64 - bits) : 0;
    uint64_t high = mod & INT_SIGNED ? (uint64_t)(INT64_MAX >> (64 - bits)) : UINT64_MAX >> (64 - bits);
    return a < low ? (uint64_t)low : a > 0 && (uint64_t)a > high ? high : (uint64_t)a;
}

static inline uint64_t saturate_int_unsigned(uint64_t a, unsigned mod)
{
    unsigned bits = 8u << (mod >> INT_WIDTH_SHIFT & 3);
    uint64_t high = mod & INT_SIGNED ? (uint64_t)(INT64_MAX >> (64 - bits)) : UINT64_MAX >> (64 - bits);
    return a > high ? high : a;
}

/* 64-bit integers to double rounded to odd, on the way to a narrower format. */
static inline double u64_to_odd(uint64_t a)
{
    if (a >> 53) {
        int drop = 11 - __builtin_clzll(a);
        a = (a >> drop | ((a & ((UINT64_C(1) << drop) - 1)) != 0)) << drop;
    }
    return (double)a;
}

static inline double s64_to_odd(int64_t a)
{
    return a < 0 ? -u64_to_odd(0 - (uint64_t)a) : u64_to_odd((uint64_t)a);
}

#endif
