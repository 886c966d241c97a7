/* arith_approx.h - the .approx functions; part of arith.h. PTX states an error bound for each. Here they are evaluated
 * in double precision to about 2^-42 and rounded once: 0.5 ulp but for a few arguments, see docs/arithmetic.md. Special
 * values are those of the PTX ISA.
 *
 * Polynomials interpolate at the Chebyshev nodes of their interval, which is within a factor of two of the best of
 * their degree; they are evaluated in an order that keeps the chain of dependent operations short. No fma is used, so
 * that every processor gets the same bits. */
#ifndef PTX_ARITH_APPROX_H
#define PTX_ARITH_APPROX_H

/* float_special.c: correctly rounded but for about one in 2000, by long double. Calls. */
double rsqrt64(double a);

/* 2^x, relative error below 2^-44; x is cut to [-200, 200], enough for every result but f64's. Not for NaN. */
static inline double exp2_core(double x)
{
    x = x < -200 ? -200 : x;
    x = x > 200 ? 200 : x;
    double shifted = x + 0x1.8p52, r = x - (shifted - 0x1.8p52); /* the integer is in the lowest bits of `shifted` */
    double r2 = r * r, r4 = r2 * r2;
    double low =
        (0x1.62e42fefa39efp-1 + r * 0x1.ebfbdff823cedp-3) + r2 * (0x1.c6b08d7047e52p-5 + r * 0x1.3b2ab7181b755p-7);
    double high =
        (0x1.5d87fe86fe88ep-10 + r * 0x1.4308ac85aa947p-13) + r2 * (0x1.ffcb9515a8016p-17 + r * 0x1.63d136366db24p-20);
    double p = 1.0 + r * (low + r4 * (high + r4 * 0x1.b63880a30e9ffp-24));
    return float64(bits64(p) + (bits64(shifted) << 52));
}

static inline float exp2_32(float a)
{
    float r = (float)exp2_core((double)a);
    return a != a ? canonical_nan32() : r;
}

/* log2(m 2^e) = e + log2(m), m in [sqrt(1/2), sqrt(2)), by s = (m - 1) / (m + 1). Of numbers above zero. */
static inline double log2_core(double a)
{
    uint64_t bits = bits64(a), bias = UINT64_C(1024) << 52;
    uint64_t offset = bits - UINT64_C(0x3fe6a09e667f3bcd) + bias, field = offset >> 52;
    double m = float64(bits - (field << 52) + bias),
           e = float64(UINT64_C(0x4330000000000000) | field) - (0x1p52 + 1024);
    double s = (m - 1) / (m + 1), z = s * s, z2 = z * z;
    double low = (0x1.71547652b8252p+1 + z * 0x1.ec709dc53a1cap-1),
           mid = (0x1.2776c295ae0c7p-1 + z * 0x1.a61a2cf9f9e38p-2),
           high = (0x1.47959c992a71fp-2 + z * 0x1.21ad2d776d25ap-2);
    return e + s * (low + z2 * (mid + z2 * high));
}

static inline float log2_32(float a)
{
    float r = (float)log2_core((double)a);
    r = a == __builtin_inff() ? a : r;
    r = a == 0 ? -__builtin_inff() : r;
    return a >= 0 ? r : canonical_nan32();
}

/* An angle as a number of quadrants and the rest, in [-pi/4, pi/4]. */
struct quadrant {
    double rest;
    uint64_t number;
};

/* |a| / (2 pi) modulo 1 as a 64-bit fraction: the mantissa times the 96 bits of 2/pi that matter for its exponent. Bits
 * before them give whole turns; the error is 2^-61 of a quadrant, and no float is nearer than 2^-29 to a multiple.
 * Below 1/2 there is nothing to reduce, and the precision of a fraction would not do. */
static inline struct quadrant reduce_angle(float a)
{
    uint64_t magnitude = bits32(a) & 0x7fffffff, mantissa = (magnitude & 0x7fffff) | 0x800000, field = magnitude >> 23;
    uint64_t position = field > 126 ? field - 120 : 6; /* in 2/pi, with 32 zeros in front */
    uint64_t shift = position & 63, back = 63 - shift;
    bool second = position >= 64, third = position >= 128;
    uint64_t w0 = second ? UINT64_C(0x4e441529fc2757d1) : UINT64_C(0x00000000a2f9836e);
    uint64_t w1 = second ? UINT64_C(0xf534ddc0db629599) : UINT64_C(0x4e441529fc2757d1);
    uint64_t w2 = second ? UINT64_C(0x3c439041fe5163ab) : UINT64_C(0xf534ddc0db629599);
    w0 = third ? UINT64_C(0xf534ddc0db629599) : w0;
    w1 = third ? UINT64_C(0x3c439041fe5163ab) : w1;
    uint64_t high = w0 << shift | w1 >> 1 >> back, low = w1 << shift | w2 >> 1 >> back;
    uint64_t turn = (mantissa * (high >> 32) << 32) + mantissa * (high & UINT32_MAX) + (mantissa * (low >> 32) >> 32);

    uint64_t raised = turn + (UINT64_C(1) << 61), number = raised >> 62;
    uint64_t fraction = raised & ((UINT64_C(1) << 62) - 1); /* the rest, plus 2^61 */
    double upper = float64(UINT64_C(0x4530000000000000) | fraction >> 32) - (0x1p84 + 0x1p61 + 0x1p52);
    double lower = float64(UINT64_C(0x4330000000000000) | (fraction & UINT32_MAX));
    double rest = (upper + lower) * 0x1.921fb54442d18p-62; /* 2 pi / 2^64 */
    double unreduced = (double)float32((uint32_t)magnitude);
    return (struct quadrant){field < 126 ? unreduced : rest, field < 126 ? 0 : number};
}

static inline double sine_core(double x, double z)
{
    double z2 = z * z, low = -0x1.555555555516bp-3 + z * 0x1.1111110fd3d0fp-7,
           high = -0x1.a019fd9b2e0c2p-13 + z * 0x1.71d9a9ee25be8p-19;
    return x + x * z * (low + z2 * (high + z2 * -0x1.aa2854c5a53bcp-26));
}

static inline double cosine_core(double z)
{
    double z2 = z * z, low = -0x1.ffffffffffffap-2 + z * 0x1.5555555554136p-5,
           mid = -0x1.6c16c1691d82ep-10 + z * 0x1.a019fc7b41889p-16,
           high = -0x1.27e0f5735bf76p-22 + z * 0x1.1c06461ce50a9p-29;
    return 1.0 + z * (low + z2 * (mid + z2 * high));
}

/* The sine after `quadrants` more quarter turns; negative: the sign of the angle. Of finite angles. */
static inline double turned_sine(float a, uint64_t quadrants, bool negative)
{
    struct quadrant q = reduce_angle(a);
    double z = q.rest * q.rest, sine = sine_core(q.rest, z), cosine = cosine_core(z);
    uint64_t number = q.number + quadrants, sign = (number << 62 & UINT64_C(1) << 63) ^ (uint64_t)negative << 63;
    return float64(bits64(number & 1 ? cosine : sine) ^ sign);
}

static inline float finite_angle(float a, double r)
{
    return __builtin_fabsf(a) < __builtin_inff() ? (float)r : canonical_nan32();
}

static inline float sin_32(float a)
{
    return finite_angle(a, turned_sine(a, 0, bits32(a) >> 31));
}

static inline float cos_32(float a)
{
    return finite_angle(a, turned_sine(a, 1, false));
}

/* (e^2x - 1) / (e^2x + 1), or the series where that loses too much. */
static inline double tanh_core(double a)
{
    double x = __builtin_fabs(a), z = x * x;
    double e = exp2_core(x * 0x1.71547652b82fep+1); /* 2 log2(e) */
    double series = x - x * z * (0x1.5555555555555p-2 - z * 0x1.1111111111111p-3), ratio = (e - 1) / (e + 1);
    double r = x < 0x1p-7 ? series : ratio;
    return float64(bits64(r) | (bits64(a) & UINT64_C(1) << 63));
}

static inline float tanh_32(float a)
{
    float r = (float)tanh_core((double)a);
    return a != a ? canonical_nan32() : r;
}

static inline float rsqrt32(float a)
{
    return canonical32((float)(1.0 / __builtin_sqrt((double)a))); /* sqrt(-0) is -0: -inf, as specified */
}

/* ---- double precision: the upper 32 bits of the operand in, a result of 20 mantissa bits out; subnormals are zero on
 * both sides ---- */

static inline uint64_t high_flushed(uint64_t bits)
{
    uint64_t high = bits & UINT64_C(0xffffffff00000000), sign = bits & UINT64_C(1) << 63;
    return (bits >> 52 & 0x7ff) == 0 ? sign : high;
}

static inline uint64_t high_result(double x, uint64_t operand)
{
    uint64_t bits = bits64(x), nearest = bits + UINT64_C(0x80000000); /* to nearest 2^-20 */
    uint64_t r = high_flushed((bits >> 52 & 0x7ff) == 0x7ff ? bits : nearest);
    bool nan = (x != x) | ((operand & INT64_MAX) > UINT64_C(0x7ff) << 52);
    return nan ? UINT64_C(0x7fffffff00000000) : r;
}

static inline uint64_t rcp_approx64(uint64_t a)
{
    return high_result(1.0 / float64(high_flushed(a)), a);
}

static inline uint64_t rsqrt_approx64(uint64_t a)
{
    return high_result(1.0 / __builtin_sqrt(float64(high_flushed(a))), a);
}

static inline uint32_t exp2_half(uint32_t a, unsigned mod)
{
    double x = widen_half(a, mod);
    uint32_t r = narrow_half(exp2_core(x), mod);
    r = mod & HALF_BF16 && (r & 0x7f80) == 0 ? 0 : r; /* .ftz, which is always there */
    return x != x ? 0x7fff : r;
}

static inline uint32_t tanh_half(uint32_t a, unsigned mod)
{
    double x = widen_half(a, mod);
    uint32_t r = narrow_half(tanh_core(x), mod);
    return x != x ? 0x7fff : r;
}

#endif
