/* float_special.c - the .approx functions. PTX states an error bound for each; here they are computed in double
 * precision and rounded once, which lies inside every bound. Special values are those of the PTX ISA. */
#include "ptx/arith.h"

float exp2_32(float a)
{
    return canonical32((float)exp2((double)a));
}

float log2_32(float a)
{
    return canonical32((float)log2((double)a));
}

float sin_32(float a)
{
    return canonical32((float)sin((double)a));
}

float cos_32(float a)
{
    return canonical32((float)cos((double)a));
}

float tanh_32(float a)
{
    return canonical32((float)tanh((double)a));
}

float rsqrt32(float a)
{
    return canonical32((float)(1.0 / sqrt((double)a))); /* sqrt(-0) is -0: -inf, as specified */
}

double rsqrt64(double a)
{
    return canonical64((double)(1.0L / sqrtl((long double)a)));
}

/* The upper 32 bits of the operand in, a result of 20 mantissa bits out; subnormals are zero on both sides. */
static uint64_t high_word(double exact)
{
    uint64_t bits = bits64(exact);
    if (exact != exact)
        return UINT64_C(0x7fffffff00000000);
    if ((bits >> 52 & 0x7ff) != 0x7ff)
        bits += UINT64_C(0x80000000); /* to nearest 2^-20 */
    if ((bits >> 52 & 0x7ff) == 0)
        bits &= UINT64_C(1) << 63;
    return bits & UINT64_C(0xffffffff00000000);
}

static double high_operand(uint64_t a)
{
    a &= UINT64_C(0xffffffff00000000);
    if ((a >> 52 & 0x7ff) == 0)
        a &= UINT64_C(1) << 63;
    return float64(a);
}

uint64_t rcp_approx64(uint64_t a)
{
    double x = float64(a);
    return x != x ? high_word(x) : high_word(1.0 / high_operand(a));
}

uint64_t rsqrt_approx64(uint64_t a)
{
    double x = float64(a);
    return x != x ? high_word(x) : high_word(1.0 / sqrt(high_operand(a)));
}

uint16_t exp2_half(uint16_t a, int mod)
{
    return narrow_half(exp2(widen_half(a, (unsigned)mod)), (unsigned)mod);
}

uint16_t tanh_half(uint16_t a, int mod)
{
    return narrow_half(tanh(widen_half(a, (unsigned)mod)), (unsigned)mod);
}
