/* matrix_v3.c - matrix products for processors with AVX2 and FMA. */
#include "ptx/matrix_vectors.h"
#ifdef LANES_HERE
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#pragma clang attribute push(__attribute__((target("fma,avx2,bmi,bmi2,lzcnt,popcnt,f16c"))), apply_to = function)
#else
#pragma GCC target("fma,avx2,bmi,bmi2,lzcnt,popcnt,f16c")
#pragma GCC optimize("O3")
#endif
#include "ptx/matrix_fast.inc"

const struct matrix_fast matrix_fast_v3 = {multiply, gather, spread};
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
