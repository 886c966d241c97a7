/* matrix_sum.h - the sum of exact products that an element of a matrix product is, and its rounding. */
#ifndef PTX_MATRIX_SUM_H
#define PTX_MATRIX_SUM_H

#include "ptx/arith.h"
#include "ptx/matrix.h"

/* sum + error is the exact sum, but for what the error's own additions lose. */
struct sum {
    double sum, error;
};

/* exec_product.c. f64: one fma after the other; `a` is a row, `b` a column with steps of n. */
double matrix_sum_f64(const double *a, const double *b, unsigned n, unsigned k, double c);

static inline uint64_t encode(enum matrix_type type, struct sum s)
{
    double x = isfinite(s.sum) && s.error != 0 ? sum_to_odd(s.sum, s.error) : s.sum;
    if (type == MATRIX_F16)
        return narrow_half(x, 0);
    return bits32(canonical32((float)x));
}

#endif
