/* The exported functions with 64-bit integers. */
#include "softgpu/blas/blas_types.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC visibility push(default)

#define NAME(name) name##_64
#define INT        int64_t
#define INT_TYPE   CUDA_R_64I

#include "softgpu/blas/api_level1.inc"
#include "softgpu/blas/api_level2.inc"
#include "softgpu/blas/api_level3.inc"
