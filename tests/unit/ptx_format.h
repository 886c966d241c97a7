/* ptx_format.h - the binary floating-point formats of PTX, to and from double, for tests that compute with MPFR. */
#ifndef TESTS_UNIT_PTX_FORMAT_H
#define TESTS_UNIT_PTX_FORMAT_H

#include <math.h>
#include <stdint.h>

struct format {
    unsigned bits, precision;
    long emin, emax; /* as MPFR counts: 0.1m x 2^e */
    uint64_t nan;    /* canonical; 0: any NaN will do */
};

static const struct format F16 = {16, 11, -23, 16, 0x7fff}, BF16 = {16, 8, -132, 128, 0x7fff},
                           F32 = {32, 24, -148, 128, 0x7fffffff}, F64 = {64, 53, -1073, 1024, 0};

static inline double decode(uint64_t v, const struct format *f)
{
    unsigned m = f->precision - 1, e = f->bits - 1 - m;
    uint64_t mantissa = v & ((UINT64_C(1) << m) - 1), top = (UINT64_C(1) << e) - 1, exponent = v >> m & top;
    double sign = v >> (f->bits - 1) & 1 ? -1.0 : 1.0;
    if (exponent == top)
        return mantissa ? copysign(NAN, sign) : sign * INFINITY;
    int bias = (int)(top >> 1);
    if (exponent == 0)
        return sign * ldexp((double)mantissa, 1 - bias - (int)m);
    return sign * ldexp((double)(mantissa | UINT64_C(1) << m), (int)exponent - bias - (int)m);
}

static inline uint64_t encode(double x, const struct format *f)
{
    unsigned m = f->precision - 1, e = f->bits - 1 - m;
    uint64_t sign = (uint64_t)(signbit(x) != 0) << (f->bits - 1), top = (UINT64_C(1) << e) - 1;
    if (isnan(x))
        return f->nan;
    if (isinf(x))
        return sign | top << m;
    if (x == 0)
        return sign;
    int exponent, bias = (int)(top >> 1);
    double fraction = frexp(fabs(x), &exponent); /* 0.5 <= fraction < 1 */
    if (exponent - 1 < 1 - bias)
        return sign | (uint64_t)ldexp(fabs(x), bias - 1 + (int)m);
    return sign | (uint64_t)(exponent - 1 + bias) << m |
           ((uint64_t)ldexp(fraction, (int)m + 1) & ((UINT64_C(1) << m) - 1));
}

static inline double flush_value(double x, const struct format *f)
{
    return fabs(x) < ldexp(1, (int)(f->emin + (long)f->precision - 2)) ? copysign(0.0, x) : x;
}

#endif
