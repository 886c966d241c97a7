/* arith_convert.h - between floats and integers, and to integral values; part of arith.h. */
#ifndef PTX_ARITH_CONVERT_H
#define PTX_ARITH_CONVERT_H

/* A NaN of f32 becomes a NaN of f64 with the payload moved up, as devices and x86 do. */
static inline double widen32(float a)
{
    return (double)a;
}

/* To nearest by adding 2^52 to the magnitude, then one back where the mode wants the other side. Nothing above 2^52 has
 * a fraction. Signs stay, also of zeros. */
static inline double round_integral(double x, int mode)
{
    double size = __builtin_fabs(x), nearest = (size + 0x1p52) - 0x1p52, quiet = x + 0.0;
    uint64_t sign = bits64(x) & UINT64_C(1) << 63, negative = sign_mask64(sign), one = bits64(1.0);
    struct rounding_masks d = rounding_masks(mode);
    uint64_t outwards = (d.down & negative) | (d.up & ~negative), inwards = ~(d.even | outwards);
    double down = float64(inwards & (nearest > size ? one : 0)), up = float64(outwards & (nearest < size ? one : 0));
    double rounded = float64(bits64(nearest - down + up) | sign);
    return size < 0x1p52 ? rounded : quiet;
}

static inline float round_integral32(float x, int mode)
{
    float size = __builtin_fabsf(x), nearest = (size + 0x1p23f) - 0x1p23f;
    uint32_t sign = bits32(x) & 0x80000000, negative = sign_mask32(sign), one = bits32(1.0f);
    struct rounding_masks d = rounding_masks(mode);
    uint32_t outwards = ((uint32_t)d.down & negative) | ((uint32_t)d.up & ~negative),
             inwards = ~((uint32_t)d.even | outwards);
    float down = float32(inwards & (nearest > size ? one : 0)), up = float32(outwards & (nearest < size ? one : 0));
    float rounded = float32(bits32(nearest - down + up) | sign);
    return canonical32(size < 0x1p23f ? rounded : x);
}

/* Saturates. The integer is the mantissa, shifted: AVX2 does not convert doubles to 64-bit integers. */
static inline uint64_t float_to_int(double x, unsigned mod, bool from_f64)
{
    unsigned bits = 8u << (mod >> INT_WIDTH_SHIFT & 3);
    uint64_t has_sign = bit_mask64(mod, 5), top = UINT64_C(1) << (bits - 1);
    uint64_t smallest = (0 - top) & has_sign, largest = top - 1 + (top & ~has_sign);
    double half = (double)top, signs = (double)(int)(mod >> 5 & 1), above = half * (2 - signs), below = -half * signs;
    /* PTX 9.0: zero, but 1 << (bits - 1) when the source is f64 or the destination has 64 bits */
    uint64_t of_nan = (top | smallest) & (from_f64 ? UINT64_MAX : bit_mask64(mod & mod >> 1, INT_WIDTH_SHIFT));

    double r = round_integral(x, (int)(mod & 7));
    uint64_t code = bits64(r), exponent = code >> 52 & 0x7ff, sign = sign_mask64(code);
    uint64_t mantissa = (code & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    uint64_t right = exponent < 1075 ? 1075 - exponent : 0, left = exponent > 1075 ? exponent - 1075 : 0;
    uint64_t magnitude = mantissa >> (right > 63 ? 63 : right) << (left & 63), value = (magnitude ^ sign) - sign;
    value = r >= above ? largest : value;
    value = r < below ? smallest : value;
    return x != x ? of_nan : value;
}

static inline uint32_t float_to_s32_rz(float a)
{
    bool fits = (a > -2147483648.0f) & (a < 2147483648.0f);
    uint32_t value = (uint32_t)(int32_t)(fits ? a : 0.0f), bound = a < 0 ? 0x80000000u : 0x7fffffffu;
    bound = a != a ? 0 : bound;
    return fits ? value : bound;
}

static inline uint64_t saturate_int_signed(int64_t a, unsigned mod)
{
    unsigned bits = 8u << (mod >> INT_WIDTH_SHIFT & 3);
    int64_t low = mod & INT_SIGNED ? INT64_MIN >> (64 - bits) : 0;
    uint64_t high = mod & INT_SIGNED ? (uint64_t)(INT64_MAX >> (64 - bits)) : UINT64_MAX >> (64 - bits);
    uint64_t limited = (uint64_t)a > high ? high : (uint64_t)a;
    return a < low ? (uint64_t)low : a < 0 ? (uint64_t)a : limited;
}

static inline uint64_t saturate_int_unsigned(uint64_t a, unsigned mod)
{
    unsigned bits = 8u << (mod >> INT_WIDTH_SHIFT & 3);
    uint64_t high = mod & INT_SIGNED ? (uint64_t)(INT64_MAX >> (64 - bits)) : UINT64_MAX >> (64 - bits);
    return a > high ? high : a;
}

/* Two exact halves, one rounding: AVX2 does not convert 64-bit integers. */
static inline double s64_to_nearest64(int64_t a)
{
    return (double)(int32_t)((uint64_t)a >> 32) * 0x1p32 + double_of_u32((uint32_t)a);
}

static inline double u64_to_nearest64(uint64_t a)
{
    return double_of_u32((uint32_t)(a >> 32)) * 0x1p32 + double_of_u32((uint32_t)a);
}

/* 64-bit integers to double rounded to odd, on the way to a narrower format: at least 42 bits are kept. */
static inline double u64_to_odd(uint64_t a)
{
    uint64_t cut = (a >> 11 | ((a & 0x7ff) != 0)) << 11;
    return u64_to_nearest64(a >> 53 ? cut : a);
}

static inline double s64_to_odd(int64_t a)
{
    uint64_t sign = 0 - ((uint64_t)a >> 63);
    double magnitude = u64_to_odd(((uint64_t)a ^ sign) - sign);
    return a < 0 ? -magnitude : magnitude;
}

static inline float s64_to_float(int64_t a, int mode)
{
    return narrow_rounded32(s64_to_odd(a), mode);
}

static inline float u64_to_float(uint64_t a, int mode)
{
    return narrow_rounded32(u64_to_odd(a), mode);
}

/* Two halves, each exact as a double, whose sum was rounded to nearest: `lost` says on which side of it the number is.
 */
static inline double rounded_sum64(double high, double low, int mode)
{
    double sum = high + low, lost = low - (sum - high);
    struct rounding_masks d = rounding_masks(mode);
    uint64_t bits = bits64(sum), negative = sign_mask64(bits), towards = sign_mask64(bits ^ bits64(lost));
    uint64_t outwards = (d.down & negative) | (d.up & ~negative), inwards = ~(d.even | outwards);
    uint64_t too_far = inwards & towards & 1, too_near = outwards & ~towards & 1;
    return float64(bits + (lost == 0 ? 0 : too_near - too_far));
}

static inline double s64_to_double(int64_t a, int mode)
{
    return rounded_sum64((double)(int32_t)((uint64_t)a >> 32) * 0x1p32, double_of_u32((uint32_t)a), mode);
}

static inline double u64_to_double(uint64_t a, int mode)
{
    return rounded_sum64(double_of_u32((uint32_t)(a >> 32)) * 0x1p32, double_of_u32((uint32_t)a), mode);
}

#endif
