/* matrix_v4.c - matrix products for processors with AVX-512. */
#include "ptx/matrix_vectors.h"
#ifdef LANES_V4
#pragma GCC target("avx512f,avx512vl,avx512bw,avx512dq,fma,avx2,bmi,bmi2,lzcnt,popcnt,f16c,prefer-vector-width=512")
#pragma GCC optimize("O3")
#include "ptx/matrix_fast.inc"

const struct matrix_fast matrix_fast_v4 = {multiply, gather, spread};
#endif
