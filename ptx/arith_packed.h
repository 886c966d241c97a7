/* arith_packed.h - what microops.def means by operations on parts of a register: pairs of 16-bit integers, the video
 * instructions, and the formats of 8 bits and fewer. A part of arith.h. */
#ifndef PTX_ARITH_PACKED_H
#define PTX_ARITH_PACKED_H

/* ---- pairs of 16-bit integers ---- */

static inline uint16_t add_16(uint16_t a, uint16_t b)
{
    return (uint16_t)(a + b);
}

static inline uint16_t pick_16(uint16_t a, uint16_t b, bool is_signed, bool min)
{
    bool less = is_signed ? (int16_t)a < (int16_t)b : a < b;
    return less == min ? a : b;
}

static inline uint32_t pick_pair(uint32_t a, uint32_t b, bool is_signed, bool min)
{
    return (uint32_t)pick_16((uint16_t)(a >> 16), (uint16_t)(b >> 16), is_signed, min) << 16 |
           pick_16((uint16_t)a, (uint16_t)b, is_signed, min);
}

/* ---- scalar video instructions; their operands are 33-bit numbers, sign- or zero-extended to 64 ---- */

/* Up to 65 bits are wanted. What does not fit comes from a shift by 32, whose lower word is zero: a large number with
 * that lower word saturates, or is cut, to the same. */
static inline int64_t video_shift_left(int64_t a, uint32_t n)
{
    __int128 wide = (__int128)a * ((__int128)1 << (n & 63)); /* lanes that are not there have any n */
    return wide > INT64_MAX ? INT64_C(1) << 62 : wide < INT64_MIN ? INT64_MIN : (int64_t)wide;
}

enum { VMAD_MINUS = 1, VMAD_PLUS_ONE = 2, VMAD_MINUS_C = 4, VMAD_SIGNED = 8, VMAD_SAT = 16, VMAD_SHIFT = 5 };

static inline uint32_t video_mad(int64_t a, int64_t b, uint32_t c, unsigned mod)
{
    bool is_signed = mod & VMAD_SIGNED;
    __int128 product = (__int128)a * b, addend = is_signed ? (__int128)(int32_t)c : (__int128)c;
    __int128 sum = (mod & VMAD_MINUS ? -product : product) + (mod & VMAD_MINUS_C ? -addend : addend) +
                   (mod & VMAD_PLUS_ONE ? 1 : 0);
    uint64_t result = (uint64_t)(sum >> (mod >> VMAD_SHIFT));
    if (!(mod & VMAD_SAT))
        return (uint32_t)result;
    return is_signed ? (uint32_t)saturate_s32((int64_t)result) : result > UINT32_MAX ? UINT32_MAX : (uint32_t)result;
}

/* ---- SIMD video instructions ---- */

/* mod: the operation in the lowest four bits, and: */
enum {
    SIMD_ADD,
    SIMD_SUB,
    SIMD_AVERAGE,
    SIMD_ABS_DIFF,
    SIMD_MIN,
    SIMD_MAX,
    SIMD_EQ,
    SIMD_NE,
    SIMD_LT,
    SIMD_LE,
    SIMD_GT,
    SIMD_GE,
    SIMD_OP = 15,
    SIMD_SAT = 16,
    SIMD_D_SIGNED = 32,
    SIMD_A_SIGNED = 64,
    SIMD_B_SIGNED = 128,
    SIMD_MASK_SHIFT = 8, /* four bits: which elements are written, or added */
    SIMD_ACCUMULATE = 1 << 12,
    SIMD_HALVES = 1 << 13, /* two elements of 16 bits, else four of 8 */
};

static inline int32_t video_element(int32_t a, int32_t b, unsigned op)
{
    switch (op) {
    case SIMD_ADD:
        return a + b;
    case SIMD_SUB:
        return a - b;
    case SIMD_AVERAGE: /* ties away from zero */
        return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
    case SIMD_ABS_DIFF:
        return a < b ? b - a : a - b;
    case SIMD_MIN:
        return a < b ? a : b;
    case SIMD_MAX:
        return a > b ? a : b;
    case SIMD_EQ:
        return a == b;
    case SIMD_NE:
        return a != b;
    case SIMD_LT:
        return a < b;
    case SIMD_LE:
        return a <= b;
    case SIMD_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static inline uint32_t video_simd(uint32_t a, uint32_t b, uint32_t c, unsigned mod)
{
    const unsigned bits = mod & SIMD_HALVES ? 16 : 8;
    const uint32_t ones = (1u << bits) - 1;
    uint32_t result = c;
    for (unsigned i = 0; i < 32 / bits; i++) {
        if (!(mod >> (SIMD_MASK_SHIFT + i) & 1))
            continue;
        uint32_t x = a >> i * bits & ones, y = b >> i * bits & ones, sign = 1u << (bits - 1);
        int32_t va = (int32_t)(mod & SIMD_A_SIGNED ? (x ^ sign) - sign : x);
        int32_t vb = (int32_t)(mod & SIMD_B_SIGNED ? (y ^ sign) - sign : y);
        int32_t t = video_element(va, vb, mod & SIMD_OP);
        int32_t low = mod & SIMD_D_SIGNED ? -(int32_t)sign : 0, high = (int32_t)(mod & SIMD_D_SIGNED ? sign - 1 : ones);
        if (mod & SIMD_SAT)
            t = t < low ? low : t > high ? high : t;
        if (mod & SIMD_ACCUMULATE)
            result += (uint32_t)t;
        else
            result = (result & ~(ones << i * bits)) | ((uint32_t)t & ones) << i * bits;
    }
    return result;
}

/* ---- formats of 8 bits and fewer: one to a byte ---- */

enum mini_format { MINI_E4M3, MINI_E5M2, MINI_E2M3, MINI_E3M2, MINI_E2M1 };
enum { MINI_FORMAT = 7, MINI_RELU = 8 }; /* mod of conversions */
struct mini {
    uint8_t mantissa, bias, most; /* bits of the mantissa; code of the largest finite number */
    uint8_t nan;                  /* 0: there is none, and NaN becomes the largest number */
    uint8_t sign;                 /* the bit of the sign */
};
static const struct mini minis[] = {
    [MINI_E4M3] = {3, 7, 0x7e, 0x7f, 7}, [MINI_E5M2] = {2, 15, 0x7b, 0x7f, 7}, [MINI_E2M3] = {3, 1, 0x1f, 0, 5},
    [MINI_E3M2] = {2, 3, 0x1f, 0, 5},    [MINI_E2M1] = {1, 1, 0x7, 0, 3},
};

/* To nearest even; what is too large becomes the largest finite number (.satfinite). */
static inline uint16_t float_to_mini(float x, unsigned mod)
{
    const struct mini *f = &minis[mod & MINI_FORMAT];
    if (x != x)
        return f->nan ? f->nan : f->most;
    const uint64_t bits = bits64((double)x);
    const uint16_t sign = (uint16_t)(bits >> 63 << f->sign);
    const double magnitude = __builtin_fabs((double)x);
    if (sign && mod & MINI_RELU)
        return 0;
    if (magnitude >= 0x1p20)
        return (uint16_t)(sign | f->most);
    if (magnitude == 0)
        return sign;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023, lowest = 1 - f->bias;
    if (exponent < lowest)
        exponent = lowest;
    const double steps = __builtin_nearbyint(__builtin_ldexp(magnitude, f->mantissa - exponent));
    const uint32_t code = ((uint32_t)(exponent - lowest) << f->mantissa) + (uint32_t)steps;
    return (uint16_t)(sign | (code > f->most ? f->most : code));
}

static inline double mini_to_double(uint8_t code, unsigned format)
{
    const struct mini *f = &minis[format];
    const uint32_t rest = code & ((1u << f->sign) - 1), exponent = rest >> f->mantissa;
    const uint32_t mantissa = rest & ((1u << f->mantissa) - 1);
    double value;
    if (rest > f->most)
        value = format == MINI_E5M2 && mantissa == 0 ? __builtin_inf() : __builtin_nan("");
    else if (exponent == 0)
        value = __builtin_ldexp(mantissa, 1 - f->bias - f->mantissa);
    else
        value = __builtin_ldexp(mantissa + (1u << f->mantissa), (int)exponent - f->bias - f->mantissa);
    return code >> f->sign & 1 ? -value : value;
}

static inline uint16_t mini_to_half(uint16_t code, unsigned mod)
{
    const double value = mini_to_double((uint8_t)code, mod & MINI_FORMAT);
    const uint16_t half = value != value ? 0x7fff : (uint16_t)encode_narrow(value, 10, 5, ROUND_RN);
    return mod & MINI_RELU && half & 0x8000 ? 0 : half;
}

#endif
