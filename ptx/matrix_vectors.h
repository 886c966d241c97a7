/* matrix_vectors.h - what matrix_v3.c and matrix_v4.c make of matrix_fast.inc, for matrix_fast.c. */
#ifndef PTX_MATRIX_VECTORS_H
#define PTX_MATRIX_VECTORS_H

#include "ptx/lanes.h"
#include "ptx/matrix_fast.h"

#ifdef LANES_HERE
extern const struct matrix_fast matrix_fast_v3;
#endif
#ifdef LANES_V4
extern const struct matrix_fast matrix_fast_v4;
#endif

#endif
