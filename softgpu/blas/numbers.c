#include "softgpu/blas/numbers.h"

#include <math.h>

int64_t number_bytes(cudaDataType type)
{
    switch ((int)type) {
    case CUDA_R_8I:
    case CUDA_R_8U:
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
        return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
    case CUDA_C_8I:
    case CUDA_C_8U:
        return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
    case CUDA_C_16F:
    case CUDA_C_16BF:
        return 4;
    case CUDA_R_64F:
    case CUDA_R_64I:
    case CUDA_C_32F:
        return 8;
    case CUDA_C_64F:
        return 16;
    default:
        return 0;
    }
}

bool number_is_complex(cudaDataType type)
{
    switch ((int)type) {
    case CUDA_C_8I:
    case CUDA_C_8U:
    case CUDA_C_16F:
    case CUDA_C_16BF:
    case CUDA_C_32F:
    case CUDA_C_64F:
        return true;
    default:
        return false;
    }
}

/* ---- small formats ---------------------------------------------------------------------------------------------- */

static double bits_to_value(uint32_t bits, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
    int mantissa = (int)(bits & ((1u << mantissa_bits) - 1));
    double value = exponent ? ldexp((double)(mantissa | 1 << mantissa_bits), exponent - bias - mantissa_bits)
                            : ldexp((double)mantissa, 1 - bias - mantissa_bits);
    return bits >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

/* The nearest value of a format whose largest magnitude is `largest`, as its bits without the sign; what rounds beyond
 * the largest becomes `beyond`. */
static uint32_t value_to_bits(double magnitude, int exponent_bits, int mantissa_bits, double largest, uint32_t beyond)
{
    int bias = (1 << (exponent_bits - 1)) - 1, exponent;
    if (magnitude == 0)
        return 0;
    frexp(magnitude, &exponent);
    exponent--; /* magnitude = 1.xxx * 2^exponent */
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    double units = nearbyint(ldexp(magnitude, mantissa_bits - exponent));
    if (ldexp(units, exponent - mantissa_bits) > largest)
        return beyond;
    uint32_t mantissa = (uint32_t)units, one = 1u << mantissa_bits;
    /* A carry out of the mantissa raises the exponent by itself; subnormals have exponent field 0. */
    return mantissa < one ? mantissa : ((uint32_t)(exponent + bias) << mantissa_bits) + (mantissa - one);
}

float number_from_half(uint16_t bits)
{
    if ((bits & 0x7c00) == 0x7c00) {
        uint32_t wide = (uint32_t)(bits & 0x8000) << 16 | 0x7f800000 | (uint32_t)(bits & 0x3ff) << 13;
        float value;
        memcpy(&value, &wide, 4);
        return value;
    }
    /* Exact: the exponent is moved by a multiplication, which also makes subnormals normal. */
    uint32_t shifted = (uint32_t)(bits & 0x7fff) << 13;
    float value;
    memcpy(&value, &shifted, 4);
    value *= 0x1p112f;
    return bits & 0x8000 ? -value : value;
}

uint16_t number_to_half(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return sign | 0x7e00;
    return sign | (uint16_t)value_to_bits(fabs(value), 5, 10, 65504, 0x7c00);
}

static float from_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, 4);
    return value;
}

static uint16_t to_bf16(double value)
{
    /* Through float rounded to odd, so that rounding twice is rounding once. */
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, 4);
    if (isnan(value))
        return (uint16_t)(bits >> 16) | 0x40;
    if ((double)narrow != value && !isinf(narrow)) {
        if (fabs((double)narrow) > fabs(value))
            bits--;
        bits |= 1;
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double from_e4m3(uint8_t bits)
{
    return (bits & 0x7f) == 0x7f ? NAN : bits_to_value(bits, 4, 3);
}

static double from_e5m2(uint8_t bits)
{
    if ((bits & 0x7c) == 0x7c)
        return bits & 3 ? NAN : (bits & 0x80 ? -INFINITY : INFINITY);
    return bits_to_value(bits, 5, 2);
}

static uint8_t to_e4m3(double value)
{
    uint8_t sign = signbit(value) ? 0x80 : 0;
    return isnan(value) ? 0x7f : sign | (uint8_t)value_to_bits(fabs(value), 4, 3, 448, 0x7e);
}

static uint8_t to_e5m2(double value)
{
    uint8_t sign = signbit(value) ? 0x80 : 0;
    return isnan(value) ? 0x7f : sign | (uint8_t)value_to_bits(fabs(value), 5, 2, 57344, 0x7b);
}

static double saturate(double value, double low, double high)
{
    value = isnan(value) ? 0 : nearbyint(value);
    return value < low ? low : value > high ? high : value;
}

/* ---- elements --------------------------------------------------------------------------------------------------- */

static double load_half(const void *array, int64_t i)
{
    return (double)number_from_half(((const uint16_t *)array)[i]);
}

static double load_bf16(const void *array, int64_t i)
{
    return (double)from_bf16(((const uint16_t *)array)[i]);
}

double complex number_load(const void *array, cudaDataType type, int64_t i)
{
    switch ((int)type) {
    case CUDA_R_8I:
        return ((const int8_t *)array)[i];
    case CUDA_R_8U:
        return ((const uint8_t *)array)[i];
    case CUDA_R_32I:
        return ((const int32_t *)array)[i];
    case CUDA_R_64I:
        return (double)((const int64_t *)array)[i];
    case CUDA_R_8F_E4M3:
        return from_e4m3(((const uint8_t *)array)[i]);
    case CUDA_R_8F_E5M2:
        return from_e5m2(((const uint8_t *)array)[i]);
    case CUDA_R_16F:
        return load_half(array, i);
    case CUDA_R_16BF:
        return load_bf16(array, i);
    case CUDA_R_32F:
        return (double)((const float *)array)[i];
    case CUDA_R_64F:
        return ((const double *)array)[i];
    case CUDA_C_8I:
        return CMPLX(((const int8_t *)array)[2 * i], ((const int8_t *)array)[2 * i + 1]);
    case CUDA_C_16F:
        return CMPLX(load_half(array, 2 * i), load_half(array, 2 * i + 1));
    case CUDA_C_16BF:
        return CMPLX(load_bf16(array, 2 * i), load_bf16(array, 2 * i + 1));
    case CUDA_C_32F:
        return CMPLX((double)((const float *)array)[2 * i], (double)((const float *)array)[2 * i + 1]);
    case CUDA_C_64F:
        return CMPLX(((const double *)array)[2 * i], ((const double *)array)[2 * i + 1]);
    default:
        return 0;
    }
}

void number_store(void *array, cudaDataType type, int64_t i, double complex value)
{
    double re = creal(value), im = cimag(value);
    switch ((int)type) {
    case CUDA_R_8I:
        ((int8_t *)array)[i] = (int8_t)saturate(re, INT8_MIN, INT8_MAX);
        break;
    case CUDA_R_32I:
        ((int32_t *)array)[i] = (int32_t)saturate(re, INT32_MIN, INT32_MAX);
        break;
    case CUDA_R_64I:
        ((int64_t *)array)[i] = (int64_t)re;
        break;
    case CUDA_R_8F_E4M3:
        ((uint8_t *)array)[i] = to_e4m3(re);
        break;
    case CUDA_R_8F_E5M2:
        ((uint8_t *)array)[i] = to_e5m2(re);
        break;
    case CUDA_R_16F:
        ((uint16_t *)array)[i] = number_to_half(re);
        break;
    case CUDA_R_16BF:
        ((uint16_t *)array)[i] = to_bf16(re);
        break;
    case CUDA_R_32F:
        ((float *)array)[i] = (float)re;
        break;
    case CUDA_R_64F:
        ((double *)array)[i] = re;
        break;
    case CUDA_C_16F:
        ((uint16_t *)array)[2 * i] = number_to_half(re);
        ((uint16_t *)array)[2 * i + 1] = number_to_half(im);
        break;
    case CUDA_C_16BF:
        ((uint16_t *)array)[2 * i] = to_bf16(re);
        ((uint16_t *)array)[2 * i + 1] = to_bf16(im);
        break;
    case CUDA_C_32F:
        ((float *)array)[2 * i] = (float)re;
        ((float *)array)[2 * i + 1] = (float)im;
        break;
    case CUDA_C_64F:
        ((double *)array)[2 * i] = re;
        ((double *)array)[2 * i + 1] = im;
        break;
    default:
        break;
    }
}

void number_to_float(float *to, const void *array, cudaDataType type, int64_t step, int64_t n)
{
    /* The common ones without a switch for each element. */
    if (type == CUDA_R_32F) {
        for (int64_t i = 0; i < n; i++)
            to[i] = ((const float *)array)[i * step];
    } else if (type == CUDA_R_16F) {
        for (int64_t i = 0; i < n; i++)
            to[i] = number_from_half(((const uint16_t *)array)[i * step]);
    } else if (type == CUDA_R_16BF) {
        for (int64_t i = 0; i < n; i++)
            to[i] = from_bf16(((const uint16_t *)array)[i * step]);
    } else if (number_is_complex(type)) {
        for (int64_t i = 0; i < n; i++) {
            double complex value = number_load(array, type, i * step);
            to[2 * i] = (float)creal(value);
            to[2 * i + 1] = (float)cimag(value);
        }
    } else {
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)creal(number_load(array, type, i * step));
    }
}

void number_to_double(double *to, const void *array, cudaDataType type, int64_t step, int64_t n)
{
    int parts = number_is_complex(type) ? 2 : 1;
    for (int64_t i = 0; i < n; i++) {
        double complex value = number_load(array, type, i * step);
        to[parts * i] = creal(value);
        if (parts == 2)
            to[2 * i + 1] = cimag(value);
    }
}

void number_round(float *values, int64_t n, enum number_rounding rounding)
{
    for (int64_t i = 0; i < n && rounding != ROUND_NOT; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        if ((bits & 0x7f800000) == 0x7f800000)
            continue;
        if (rounding == ROUND_TF32)
            bits = (bits + 0x1000) & ~0x1fffu;
        else
            bits = (bits + 0x7fff + (bits >> 16 & 1)) & ~0xffffu;
        memcpy(&values[i], &bits, 4);
    }
}

void number_flush_float(float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (fpclassify(values[i]) == FP_SUBNORMAL)
            values[i] = copysignf(0, values[i]);
}
