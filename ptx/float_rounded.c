/* float_rounded.c - double precision under a directed rounding mode of the processor. Operands and results go through
 * volatile objects, since gcc may otherwise move arithmetic across fesetround(). */
#include <fenv.h>
#include <math.h>
#include "ptx/arith.h"

static int enter(int mode)
{
    static const int directions[] = {
        [ROUND_NONE] = FE_TONEAREST, [ROUND_RN] = FE_TONEAREST, [ROUND_RZ] = FE_TOWARDZERO,
        [ROUND_RM] = FE_DOWNWARD,    [ROUND_RP] = FE_UPWARD,
    };
    int old = fegetround();
    fesetround(directions[mode]);
    return old;
}

#define ROUNDED(mode, type, expression)                                                                                \
    int old = enter(mode);                                                                                             \
    volatile type result = expression;                                                                                 \
    fesetround(old)

double add_rounded64(double a, double b, int mode)
{
    volatile double x = a, y = b;
    ROUNDED(mode, double, x + y);
    return canonical64(result);
}

double mul_rounded64(double a, double b, int mode)
{
    volatile double x = a, y = b;
    ROUNDED(mode, double, x *y);
    return canonical64(result);
}

double fma_rounded64(double a, double b, double c, int mode)
{
    volatile double x = a, y = b, z = c;
    ROUNDED(mode, double, fma(x, y, z));
    return canonical64(result);
}

double div_rounded64(double a, double b, int mode)
{
    volatile double x = a, y = b;
    ROUNDED(mode, double, x / y);
    return canonical64(result);
}

double sqrt_rounded64(double a, int mode)
{
    volatile double x = a;
    ROUNDED(mode, double, sqrt(x));
    return canonical64(result);
}
