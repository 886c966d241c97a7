/* arith_half.h - half precision, bfloat16, tf32; part of arith.h. `mod` says which of f16 and bf16 (HALF_BF16). */
#ifndef PTX_ARITH_HALF_H
#define PTX_ARITH_HALF_H

static inline float half_to_float(uint32_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    uint32_t tiny = bits32((float)(int32_t)rest * 0x1p-24f) /* exact */, normal = (rest << 13) + ((127 - 15) << 23);
    uint32_t number = sign | (rest < 0x0400 ? tiny : rest == 0x7c00 ? 0x7f800000 : normal);
    return float32(rest > 0x7c00 ? 0x7fffffff : number);
}

static inline float bfloat_to_float(uint32_t h)
{
    return canonical32(float32((uint32_t)h << 16));
}

static inline uint32_t finish_half(uint32_t code, unsigned mod, uint32_t infinity)
{
    uint32_t over = bit_mask32(mod, 4) & mask32((code & 0x7fff) == infinity), finite = code + over;
    return finite & ~(bit_mask32(mod, 3) & bit_mask32(code, 15));
}

static inline uint32_t double_to_half(double x, unsigned mod)
{
    return finish_half(encode_narrow(x, 10, 5, (int)(mod & 7)), mod, 0x7c00);
}

static inline uint32_t double_to_bfloat(double x, unsigned mod)
{
    return finish_half(encode_narrow(x, 7, 8, (int)(mod & 7)), mod, 0x7f80);
}

static inline uint32_t float_to_half(float x, unsigned mod)
{
    return finish_half(encode_narrow32(x, 10, 5, (int)(mod & 7)), mod, 0x7c00);
}

static inline uint32_t float_to_bfloat(float x, unsigned mod)
{
    return finish_half(encode_narrow32(x, 7, 8, (int)(mod & 7)), mod, 0x7f80);
}

/* The lower 13 bits of a tf32 register are zero here (PTX leaves them undefined). */
static inline uint32_t float_to_tf32(uint32_t a, unsigned mod)
{
    uint32_t code = encode_narrow32(float32(a), 10, 8, (int)(mod & 7)) << 13;
    uint32_t over = bit_mask32(mod, 4) & mask32((code & 0x7fffffff) == 0x7f800000), finite = code - (over & 1u << 13);
    finite &= ~(bit_mask32(mod, 3) & sign_mask32(code));
    return (a & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : finite;
}

static inline float widen_half32(uint32_t h, unsigned mod)
{
    return float32(pick_bits(bit_mask32(mod, 0), h << 16, bits32(half_to_float(h))));
}

static inline double widen_half(uint32_t h, unsigned mod)
{
    return (double)widen_half32(h, mod);
}

static inline uint32_t relu_half(uint32_t code, unsigned mod)
{
    return code & ~(bit_mask32(mod, 1) & bit_mask32(code, 15));
}

static inline uint32_t narrow_half(double x, unsigned mod)
{
    unsigned wider = 3 * (mod & HALF_BF16);
    return relu_half(encode_narrow(x, 10 - wider, 5 + wider, ROUND_RN), mod);
}

static inline uint32_t narrow_half32(float x, unsigned mod)
{
    unsigned wider = 3 * (mod & HALF_BF16);
    return relu_half(encode_narrow32(x, 10 - wider, 5 + wider, ROUND_RN), mod);
}

/* Sums in single precision: rounding twice is harmless, since 24 bits are at least twice 11 plus two, and a sum that is
 * subnormal in the narrow format is exact. */
static inline uint32_t add_half(uint32_t a, uint32_t b, unsigned mod)
{
    return narrow_half32(widen_half32(a, mod) + widen_half32(b, mod), mod);
}

static inline uint32_t sub_half(uint32_t a, uint32_t b, unsigned mod)
{
    return narrow_half32(widen_half32(a, mod) - widen_half32(b, mod), mod);
}

/* Products of bf16 may be subnormal and inexact in single precision. */
static inline uint32_t mul_half(uint32_t a, uint32_t b, unsigned mod)
{
    return narrow_half(widen_half(a, mod) * widen_half(b, mod), mod);
}

static inline uint32_t fma_half(uint32_t a, uint32_t b, uint32_t c, unsigned mod)
{
    return narrow_half(sum_to_odd(widen_half(a, mod) * widen_half(b, mod), widen_half(c, mod)), mod);
}

/* Sign and magnitude in the order of integers, with -0 below +0. */
static inline int32_t half_order(uint32_t h)
{
    int32_t x = (int32_t)h;
    return x > 0x7fff ? 0x7fff - x : x;
}

static inline uint32_t pick_half(uint32_t a, uint32_t b, unsigned mod, bool min)
{
    uint32_t infinity = mod & HALF_BF16 ? 0x7f80 : 0x7c00, propagates = bit_mask32(mod, 2);
    uint32_t xorsign = bit_mask32(mod, 3), sign = (a ^ b) & 0x8000 & xorsign;
    a &= ~(xorsign & 0x8000);
    b &= ~(xorsign & 0x8000);
    uint32_t a_nan = mask32((a & 0x7fff) > infinity), b_nan = mask32((b & 0x7fff) > infinity);
    int32_t x = half_order(a), y = half_order(b);
    uint32_t less = x < y ? a : b, more = x > y ? a : b, picked = min ? less : more;
    picked = pick_bits(b_nan, a, picked);
    picked = pick_bits(a_nan, b, picked);
    return (a_nan & b_nan) | (propagates & (a_nan | b_nan)) ? 0x7fff : picked | sign;
}

static inline uint32_t min_half(uint32_t a, uint32_t b, unsigned mod)
{
    return pick_half(a, b, mod, true);
}

static inline uint32_t max_half(uint32_t a, uint32_t b, unsigned mod)
{
    return pick_half(a, b, mod, false);
}

static inline uint32_t flush_half(uint32_t a)
{
    uint32_t sign = a & 0x8000;
    return (a & 0x7c00) == 0 ? sign : a;
}

static inline uint32_t saturate_half(uint32_t a)
{
    uint32_t below = a > 0x3c00 ? 0x3c00 : a;
    return a > 0x7c00 ? 0 : below;
}

#define HALVES1(f, a)         (f((a) >> 16) << 16 | f((a)&0xffff))
#define HALVES1M(f, a, mod)   (f((a) >> 16, mod) << 16 | f((a)&0xffff, mod))
#define HALVES2(f, a, b, mod) (f((a) >> 16, (b) >> 16, mod) << 16 | f((a)&0xffff, (b)&0xffff, mod))
#define HALVES3(f, a, b, c, mod)                                                                                       \
    (f((a) >> 16, (b) >> 16, (c) >> 16, mod) << 16 | f((a)&0xffff, (b)&0xffff, (c)&0xffff, mod))

#endif
