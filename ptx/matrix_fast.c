/* matrix_fast.c - whether matrix products run on vectors, and on which. */
#include "ptx/lanes_choice.h"
#include "ptx/matrix_vectors.h"

const struct matrix_fast *matrix_fast_choose(void)
{
#ifdef LANES_V4
    if (lanes_take_avx512())
        return &matrix_fast_v4;
#endif
#ifdef LANES_HERE
    if (lanes_take_avx2())
        return &matrix_fast_v3;
#endif
    return NULL;
}

const struct matrix_fast *matrix_fast_for(const struct launch *l, const struct matrix *m)
{
    const bool sums_floats = m->kind == MATRIX_MULTIPLY && m->d.type != MATRIX_S32;
    return sums_floats && (l->rounding || l->matrix_sum != PTX_MATRIX_EXACT) ? NULL : l->matrix_fast;
}
