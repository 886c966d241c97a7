/* float_special.c - the .approx functions of double precision; those of single are in arith_approx.h. */
#include <math.h>
#include "ptx/arith.h"

double rsqrt64(double a)
{
    return canonical64((double)(1.0L / sqrtl((long double)a)));
}
