/* numbers.h - the element types of cuBLAS: reading, writing and rounding them.
 *
 * Formats: IEEE 754 binary16, bfloat16, and the OCP 8-bit formats E4M3 (no infinities, one NaN) and E5M2. Conversions
 * to narrower formats round to nearest even; those to 8 bits saturate, as cuBLAS documents for them. No locale, no
 * state.
 */
#ifndef SOFTGPU_BLAS_NUMBERS_H
#define SOFTGPU_BLAS_NUMBERS_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <library_types.h>

/* Bytes of an element; 0 for a type that is not known here. */
int64_t number_bytes(cudaDataType type);
bool number_is_complex(cudaDataType type);

/* Element `index` of an array; real types have no imaginary part. */
double complex number_load(const void *array, cudaDataType type, int64_t index);
/* Integers are rounded to nearest even and saturate. */
void number_store(void *array, cudaDataType type, int64_t index, double complex value);

/* `n` elements that are `step` elements apart, as floats or doubles (complex types: pairs). */
void number_to_float(float *to, const void *array, cudaDataType type, int64_t step, int64_t n);
void number_to_double(double *to, const void *array, cudaDataType type, int64_t step, int64_t n);

float number_from_half(uint16_t bits);
uint16_t number_to_half(double value);

/* How operands are narrowed before a product. */
enum number_rounding {
    ROUND_NOT,
    ROUND_TF32, /* 10 bits of mantissa, nearest, ties away: as cvt.rna.tf32 of PTX */
    ROUND_BF16, /* 7 bits, nearest even */
};
void number_round(float *values, int64_t n, enum number_rounding rounding);
void number_flush_float(float *values, int64_t n); /* subnormals become zero of the same sign */

/* To the nearest half, as a float. */
static inline float number_half_round(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x7f800000)
        return x;
    if (magnitude < 0x38800000) {
        /* A subnormal half: its unit is 2^-24, that of floats in [0.5, 1). */
        float rounded;
        memcpy(&rounded, &magnitude, 4);
        rounded = (rounded + 0.5f) - 0.5f;
        return (bits >> 31) ? -rounded : rounded;
    }
    magnitude = (magnitude + 0xfff + (magnitude >> 13 & 1)) & ~0x1fffu;
    if (magnitude > 0x477fe000)
        magnitude = 0x7f800000;
    bits = (bits & 0x80000000) | magnitude;
    memcpy(&x, &bits, 4);
    return x;
}

#endif
