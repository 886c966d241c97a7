/* arith_float.h - single and double precision, and rounding to narrower formats; part of arith.h.
 *
 * Directed roundings of single precision go through a double that is rounded to odd: towards zero, and the lowest bit
 * set when anything was lost. A second rounding, in any direction, to at least two bits fewer is then the correct one.
 */
#ifndef PTX_ARITH_FLOAT_H
#define PTX_ARITH_FLOAT_H

/* float_rounded.c: double precision under another rounding direction of the processor. Calls. */
double add_rounded64(double a, double b, int mode);
double mul_rounded64(double a, double b, int mode);
double fma_rounded64(double a, double b, double c, int mode);
double div_rounded64(double a, double b, int mode);
double sqrt_rounded64(double a, int mode);

static inline float canonical_nan32(void)
{
    return float32(0x7fffffff);
}

static inline float canonical32(float x)
{
    return x != x ? canonical_nan32() : x;
}

static inline double canonical64(double x)
{
    return x;
}

/* Which of two NaN operands gives its payload is left open, by PTX and by the order in which a compiler puts them: the
 * first. */
static inline double first_nan64(double x, double a, double b, double c)
{
    double from = a != a ? a : b != b ? b : c != c ? c : x;
    double quiet = float64(bits64(from) | UINT64_C(1) << 51);
    return x == x ? x : quiet;
}

static inline float flush32(float x)
{
    uint32_t u = bits32(x), sign = u & 0x80000000;
    return float32((u & 0x7f800000) == 0 ? sign : u);
}

static inline float saturate32(float x)
{
    float above = x > 0 ? x : 0.0f; /* NaN and -0 become +0 */
    return above < 1 ? above : 1.0f;
}

static inline double saturate64(double x)
{
    double above = x > 0 ? x : 0.0;
    return above < 1 ? above : 1.0;
}

/* One NaN loses to a number; -0 is less than +0. Equal operands differ at most in the sign of zero. */
static inline float minimum32(float a, float b)
{
    float less = a < b ? a : b, equal = float32(bits32(a) | bits32(b));
    float r = a == b ? equal : less;
    r = b != b ? a : r;
    return a != a ? canonical32(b) : r;
}

static inline float maximum32(float a, float b)
{
    float more = a > b ? a : b, equal = float32(bits32(a) & bits32(b));
    float r = a == b ? equal : more;
    r = b != b ? a : r;
    return a != a ? canonical32(b) : r;
}

static inline double minimum64(double a, double b)
{
    double less = a < b ? a : b, equal = float64(bits64(a) | bits64(b));
    double r = a == b ? equal : less;
    r = b != b ? a : r;
    return a != a ? b : r;
}

static inline double maximum64(double a, double b)
{
    double more = a > b ? a : b, equal = float64(bits64(a) & bits64(b));
    double r = a == b ? equal : more;
    r = b != b ? a : r;
    return a != a ? b : r;
}

static inline float minimum_nan32(float a, float b)
{
    float r = minimum32(a, b);
    return ((a != a) | (b != b)) ? canonical_nan32() : r;
}

static inline float maximum_nan32(float a, float b)
{
    float r = maximum32(a, b);
    return ((a != a) | (b != b)) ? canonical_nan32() : r;
}

/* min|max.xorsign.abs: the smaller|larger magnitude with the product's sign; mod bit 0: .NaN. */
static inline uint32_t xorsign32(uint32_t a, uint32_t b, unsigned mod, bool min)
{
    float x = float32(a & 0x7fffffff), y = float32(b & 0x7fffffff);
    bool nan = mod & 1 ? (x != x) | (y != y) : (x != x) & (y != y);
    uint32_t r = bits32(min ? minimum32(x, y) : maximum32(x, y)) | ((a ^ b) & 0x80000000);
    return nan ? 0x7fffffff : r;
}

static inline uint32_t test_property(uint64_t bits, unsigned exponent_bits, unsigned mantissa_bits, unsigned property)
{
    uint64_t mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
    uint64_t top = (UINT64_C(1) << exponent_bits) - 1, exponent = bits >> mantissa_bits & top;
    bool special = exponent == top, empty = exponent == 0, whole = mantissa == 0;
    return property == TEST_FINITE       ? !special
           : property == TEST_INFINITE   ? special & whole
           : property == TEST_NUMBER     ? !special | whole
           : property == TEST_NOTANUMBER ? special & !whole
           : property == TEST_NORMAL     ? !empty & !special /* zero is neither */
                                         : empty & !whole;
}

/* ---- rounding to a narrower format ---- */

/* Which way a mode rounds, as masks: to nearest even, to nearest away from zero, or by sign. */
struct rounding_masks {
    uint64_t even, away, down, up;
};

static inline struct rounding_masks rounding_masks(int mode)
{
    enum { EVEN = 1 << ROUND_RN | 1 << ROUND_NONE, AWAY = 1 << ROUND_RNA, DOWN = 1 << ROUND_RM, UP = 1 << ROUND_RP };
    unsigned m = (unsigned)mode;
    return (struct rounding_masks){bit_mask64(EVEN, m), bit_mask64(AWAY, m), bit_mask64(DOWN, m), bit_mask64(UP, m)};
}

/* Rounds x to a binary format of `mbits` stored mantissa bits and `ebits` exponent bits; returns its encoding. NaN
 * gives the canonical NaN (all ones but the sign). A carry of the mantissa runs into the exponent, as it should. */
static inline uint32_t encode_narrow(double x, unsigned mbits, unsigned ebits, int mode)
{
    struct rounding_masks d = rounding_masks(mode);
    uint64_t bits = bits64(x), negative = sign_mask64(bits), magnitude = bits & INT64_MAX, field = magnitude >> 52;
    uint64_t infinity = ((UINT64_C(1) << ebits) - 1) << mbits, nan = infinity | ((UINT64_C(1) << mbits) - 1);
    uint64_t mantissa = (magnitude & ((UINT64_C(1) << 52) - 1)) | (field ? UINT64_C(1) << 52 : 0);
    /* The format's smallest normal exponent in the double's field; below it, bits are cut off instead. */
    uint64_t lowest = 1023 + 2 - (UINT64_C(1) << (ebits - 1)), exponent = field ? field : 1;
    uint64_t above = exponent > lowest ? exponent - lowest : 0, shift = 52 - mbits + (above ? 0 : lowest - exponent);
    shift = shift > 62 ? 62 : shift;
    uint64_t kept = mantissa >> shift, rest = mantissa << (64 - shift); /* the rest as a fraction of 64 bits */
    uint64_t outwards = (d.down & negative) | (d.up & ~negative), half = UINT64_C(1) << 63;
    uint64_t above_half = (rest >> 1) + (kept & 1) + (half / 2 - 1);
    uint64_t up = (d.even & above_half) | (d.away & rest) | (outwards & ((rest >> 1) + (half - 1)));
    uint64_t code = kept + (up >> 63) + (above << mbits);
    uint64_t to_infinity = d.even | d.away | outwards | (magnitude == UINT64_C(0x7ff) << 52 ? UINT64_MAX : 0);
    code = code >= infinity ? infinity - 1 - to_infinity : code; /* minus all ones is plus one */
    code |= (negative & 1) << (mbits + ebits);
    return (uint32_t)(magnitude > UINT64_C(0x7ff) << 52 ? nan : code);
}

/* The same from single precision, in 32 bits; mbits at most 22. A bias is added before bits are cut off. */
static inline uint32_t encode_narrow32(float x, unsigned mbits, unsigned ebits, int mode)
{
    struct rounding_masks d = rounding_masks(mode);
    uint32_t bits = bits32(x), negative = sign_mask32(bits), magnitude = bits & INT32_MAX, field = magnitude >> 23;
    uint32_t infinity = ((1u << ebits) - 1) << mbits, nan = infinity | ((1u << mbits) - 1);
    uint32_t mantissa = (magnitude & ((1u << 23) - 1)) | (field ? 1u << 23 : 0);
    uint32_t lowest = 127 + 2 - (1u << (ebits - 1)), exponent = field ? field : 1;
    uint32_t above = exponent > lowest ? exponent - lowest : 0, shift = 23 - mbits + (above ? 0 : lowest - exponent);
    shift = shift > 30 ? 30 : shift;
    uint32_t half = 1u << (shift - 1), outwards = ((uint32_t)d.down & negative) | ((uint32_t)d.up & ~negative);
    uint32_t bias = ((uint32_t)d.even & (half - 1 + (mantissa >> shift & 1))) | ((uint32_t)d.away & half) |
                    (outwards & (half + (half - 1)));
    uint32_t code = ((mantissa + bias) >> shift) + (above << mbits);
    uint32_t to_infinity = (uint32_t)(d.even | d.away) | outwards | mask32(magnitude == 0x7f800000);
    code = code >= infinity ? infinity - 1 - to_infinity : code;
    code |= (negative & 1) << (mbits + ebits);
    return magnitude > 0x7f800000 ? nan : code;
}

static inline float narrow_rounded32(double x, int mode)
{
    return float32(encode_narrow(x, 23, 8, mode));
}

/* `s` rounded to odd, where the exact value is s + error and s is that value rounded to nearest (or cut off). An error
 * that is NaN comes from infinities, and means none. */
static inline double to_odd(double s, double error)
{
    uint64_t bits = bits64(s), away = (bits ^ bits64(error)) >> 63, step = 1 - 2 * away;
    uint64_t inexact = (error > 0 ? 1 : 0) | (error < 0 ? 1 : 0), finite = (bits >> 52 & 0x7ff) == 0x7ff ? 0 : 1;
    return float64(bits + step * (inexact & ~bits & finite));
}

/* a + b rounded to odd: a later rounding to 50 bits or fewer, in any direction, is then correct. Zero results need care
 * of their own (sign). */
static inline double sum_to_odd(double a, double b)
{
    double s = a + b, from_b = s - a;
    return to_odd(s, (a - (s - from_b)) + (b - from_b));
}

/* An exact zero sum is -0 when rounding down, unless both addends are +0. */
static inline double signed_zero_sum(double a, double b, int mode)
{
    double zero = mode == ROUND_RM ? -0.0 : 0.0;
    return bits64(a) == bits64(b) ? a : zero;
}

static inline float narrow_sum32(double a, double b, int mode)
{
    double sum = sum_to_odd(a, b), zero = signed_zero_sum(a, b, mode);
    return narrow_rounded32(sum == 0 ? zero : sum, mode);
}

static inline float fma_rounded32(float a, float b, float c, int mode)
{
    return narrow_sum32((double)a * b /* exact */, c, mode);
}

static inline float add_rounded32(float a, float b, int mode)
{
    return narrow_sum32(a, b, mode);
}

static inline float mul_rounded32(float a, float b, int mode)
{
    return narrow_rounded32((double)a * b, mode);
}

/* The quotient cut to 29 bits: its product with the divisor is exact, and so is the difference to the dividend, since
 * the two are near each other. The difference has the sign of what was lost, but for the divisor's. */
static inline float div_rounded32(float a, float b, int mode)
{
    double x = a, y = b, q = x / y, cut = float64(bits64(q) & ~UINT64_C(0xffffff));
    double lost = x - cut * y;
    return narrow_rounded32(to_odd(cut, y < 0 ? -lost : lost), mode);
}

static inline float sqrt_rounded32(float a, int mode)
{
    double x = a, root = __builtin_sqrt(x), cut = float64(bits64(root) & ~UINT64_C(0xffffff));
    return narrow_rounded32(to_odd(cut, x - cut * cut), mode);
}

/* div.approx: a * (1 / b) where 1 / b is zero for |b| above 2^126. */
static inline float divide_approx32(float a, float b)
{
    float magnitude = __builtin_fabsf(b), zero = float32(bits32(b) & 0x80000000);
    bool tiny = (magnitude > 0x1p126f) & (magnitude < __builtin_inff());
    float quotient = a / b, product = a * zero;
    return canonical32(tiny ? product : quotient);
}

#endif
