/* arith_open.h - what PTX leaves open, chosen by a seed: approximate results anywhere within their bound, values that
 * are undefined or unspecified. The same seed and operands always give the same bits. Part of arith.h; used by the
 * OPEN_ rows of microops.def, which only launches with a variant run. docs/arithmetic.md lists the bounds. */
#ifndef PTX_ARITH_OPEN_H
#define PTX_ARITH_OPEN_H

enum open_function { OPEN_EX2, OPEN_LG2, OPEN_SIN, OPEN_COS, OPEN_TANH, OPEN_RCP, OPEN_SQRT, OPEN_RSQRT };
enum { OPEN_HALF_TANH = 0x80, OPEN_FULL_RANGE = 1, OPEN_HIGH = 1 }; /* mod of halves, of division, of mul24 */

static inline uint64_t open_hash(uint64_t seed, uint64_t x)
{
    x ^= seed;
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return x ^ x >> 33;
}

/* In (-1, 1). */
static inline double open_fraction(uint64_t seed, uint64_t x)
{
    return (double)(int64_t)open_hash(seed, x) * 0x1.ffp-64;
}

/* A unit in the last place of x, of a format with `mbits` stored mantissa bits and the least exponent `lowest`. */
static inline double open_unit(double x, int mbits, int lowest)
{
    double binade = float64(bits64(x) & UINT64_C(0x7ff0000000000000)), least = float64((uint64_t)(lowest + 1023) << 52);
    return (binade > least ? binade : least) * float64((uint64_t)(1023 - mbits) << 52);
}

/* The exact value moved by less than `bound`, half a unit of which the rounding takes. */
static inline float open_moved32(double exact, double bound, double fraction)
{
    double room = bound - 0.5 * open_unit(exact, 23, -126);
    float plain = (float)exact, r = (float)(exact + (room > 0 ? room : 0) * fraction);
    bool finite = __builtin_fabsf(r) < __builtin_inff(), same_sign = bits32(r) >> 31 == bits32(plain) >> 31;
    return plain != 0 && finite && same_sign ? r : plain;
}

static inline double open_exact32(float a, unsigned function)
{
    double x = (double)a;
    switch (function) {
    case OPEN_EX2:
        return exp2_core(x);
    case OPEN_LG2:
        return log2_core(x);
    case OPEN_SIN:
        return turned_sine(a, 0, bits32(a) >> 31);
    case OPEN_COS:
        return turned_sine(a, 1, false);
    case OPEN_TANH:
        return tanh_core(x);
    case OPEN_RCP:
        return 1.0 / x;
    case OPEN_SQRT:
        return __builtin_sqrt(x);
    default:
        return 1.0 / __builtin_sqrt(x);
    }
}

static inline float open_plain32(float a, unsigned function)
{
    switch (function) {
    case OPEN_EX2:
        return exp2_32(a);
    case OPEN_LG2:
        return log2_32(a);
    case OPEN_SIN:
        return sin_32(a);
    case OPEN_COS:
        return cos_32(a);
    case OPEN_TANH:
        return tanh_32(a);
    case OPEN_RCP:
        return canonical32(1.0f / a);
    case OPEN_SQRT:
        return canonical32(__builtin_sqrtf(a));
    default:
        return rsqrt32(a);
    }
}

/* PTX ISA 9.0: by how much a result r of argument a may be off. */
static inline double open_bound32(double a, double r, unsigned function)
{
    double size = __builtin_fabs(r), argument = __builtin_fabs(a);
    switch (function) {
    case OPEN_EX2:
        return 2 * open_unit(r, 23, -126);
    case OPEN_LG2:
        return 0x1p-22 * (a > 0.5 && a < 2 ? 1 : size);
    case OPEN_SIN:
    case OPEN_COS:
        return argument <= 0x1.921fb4p+2 /* 2 pi */ ? 0x1.6ap-21 : 0x1.3bp-15 /* 2^-20.5, 2^-14.7 up to 100 pi */;
    case OPEN_TANH:
        return 0x1p-11 * size;
    case OPEN_RCP:
        return open_unit(r, 23, -126);
    case OPEN_SQRT:
        return 0x1p-23 * size;
    default:
        return 0x1.12p-23 * size; /* 2^-22.9 */
    }
}

/* Zeros, infinities and NaN are specified, and so are 2^x and cos x for x that is zero or subnormal. */
static inline float open_approx32(float a, uint64_t seed, unsigned function)
{
    float plain = open_plain32(a, function);
    bool special = !(__builtin_fabsf(plain) < __builtin_inff()) || plain == 0 || __builtin_fabsf(a) < 0x1p-126f;
    if (special)
        return plain;
    double exact = open_exact32(a, function);
    float r = open_moved32(exact, open_bound32((double)a, exact, function), open_fraction(seed, bits32(a) + function));
    bool bounded = function == OPEN_SIN || function == OPEN_COS || function == OPEN_TANH;
    return bounded && __builtin_fabsf(r) > 1 ? (r > 0 ? 1.0f : -1.0f) : r;
}

/* Two units, of div.approx for divisors from 2^-126 to 2^126. */
static inline float open_divide32(float a, float b, uint64_t seed, unsigned mod)
{
    float size = __builtin_fabsf(b), plain = mod & OPEN_FULL_RANGE ? canonical32(a / b) : divide_approx32(a, b);
    bool in_range = (mod & OPEN_FULL_RANGE) || (size >= 0x1p-126f && size <= 0x1p126f);
    if (!in_range || plain == 0 || !(__builtin_fabsf(plain) < __builtin_inff()))
        return plain;
    double exact = (double)a / (double)b;
    return open_moved32(exact, 2 * open_unit(exact, 23, -126),
                        open_fraction(seed, (uint64_t)bits32(a) << 32 | bits32(b)));
}

/* ex2: 2^-9.9 (f16), 2^-7 (bf16), of the result; tanh: 2^-10.987, 2^-8, absolute. */
static inline uint32_t open_approx_half(uint32_t a, uint64_t seed, unsigned mod)
{
    bool bf16 = mod & HALF_BF16, tanh = mod & OPEN_HALF_TANH;
    uint32_t plain = tanh ? tanh_half(a, mod & 7) : exp2_half(a, mod & 7), infinity = bf16 ? 0x7f80 : 0x7c00;
    if ((plain & 0x7fff) == 0 || (plain & 0x7fff) >= infinity)
        return plain;
    double x = widen_half(a, mod), exact = tanh ? tanh_core(x) : exp2_core(x), size = __builtin_fabs(exact);
    double bound = tanh ? (bf16 ? 0x1p-8 : 0x1.02p-11) : size * (bf16 ? 0x1p-7 : 0x1.12p-10);
    double room = bound - 0.5 * (bf16 ? open_unit(exact, 7, -126) : open_unit(exact, 10, -14));
    uint32_t r = narrow_half(exact + (room > 0 ? room : 0) * open_fraction(seed, a), mod & HALF_BF16);
    bool beyond = tanh && (r & 0x7fff) > (bf16 ? 0x3f80u : 0x3c00u),
         wrong = (r & 0x7fff) == 0 || (r & 0x7fff) >= infinity;
    return beyond || wrong || (r ^ plain) & 0x8000 ? plain : r;
}

/* The last of 20 mantissa bits may be one off. */
static inline uint64_t open_high_word(uint64_t plain, uint64_t a, uint64_t seed)
{
    uint64_t field = plain >> 52 & 0x7ff, h = open_hash(seed, a) & 3;
    uint64_t step = h == 0 ? UINT64_C(1) << 32 : h == 1 ? 0 - (UINT64_C(1) << 32) : 0;
    return field > 1 && field < 0x7fe ? plain + step : plain;
}

/* The lower 13 bits of a tf32 register; an infinity must not become a NaN. */
static inline uint32_t open_tf32(uint32_t a, uint64_t seed, unsigned mod)
{
    uint32_t plain = float_to_tf32(a, mod), undefined = (uint32_t)open_hash(seed, a) & 0x1fff;
    return (plain & 0x7f800000) == 0x7f800000 ? plain : plain | undefined;
}

static inline double open_nan64(double x)
{
    return x == x ? x : float64(UINT64_C(0x7fffffffffffffff));
}

static inline uint64_t open_by_zero(uint64_t plain, uint64_t a, uint64_t b, uint64_t seed)
{
    uint64_t any = open_hash(seed, a);
    return b == 0 ? any : plain;
}

/* Operands that do not fit 24 bits. */
static inline uint32_t open_mul24_unsigned(uint32_t a, uint32_t b, uint64_t seed, unsigned mod)
{
    uint64_t product = (uint64_t)(a & 0xffffff) * (b & 0xffffff);
    bool fit = ((a | b) >> 24) == 0;
    uint32_t plain = (uint32_t)(mod & OPEN_HIGH ? product >> 16 : product);
    return fit ? plain : (uint32_t)open_hash(seed, (uint64_t)a << 32 | b);
}

static inline uint32_t open_mul24_signed(uint32_t a, uint32_t b, uint64_t seed, unsigned mod)
{
    int64_t product = (int64_t)sign24(a) * sign24(b);
    bool fit = (uint32_t)sign24(a) == a && (uint32_t)sign24(b) == b;
    uint32_t plain = (uint32_t)(mod & OPEN_HIGH ? product >> 16 : product);
    return fit ? plain : (uint32_t)open_hash(seed, (uint64_t)a << 32 | b);
}

#endif
