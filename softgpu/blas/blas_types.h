/* blas_types.h - for the files that spell out the exported functions: the four types by the BLAS's letters. */
#ifndef SOFTGPU_BLAS_BLAS_TYPES_H
#define SOFTGPU_BLAS_BLAS_TYPES_H

#include "softgpu/blas/level2.h"
#include "softgpu/blas/level3.h"

typedef float S;
typedef double D;
typedef cuComplex C;
typedef cuDoubleComplex Z;

/* What a vector is computed in where the caller does not say, and where it says real for complex ones. */
static inline cudaDataType execution_of(cudaDataType type)
{
    switch ((int)type) {
    case CUDA_R_64F:
    case CUDA_C_64F:
        return type;
    default:
        return number_is_complex(type) ? CUDA_C_32F : CUDA_R_32F;
    }
}
static inline cudaDataType executing(cudaDataType wanted, cudaDataType type)
{
    if (!number_is_complex(type))
        return wanted;
    return wanted == CUDA_R_32F ? CUDA_C_32F : wanted == CUDA_R_64F ? CUDA_C_64F : wanted;
}
/* Modified rotations are known in float and double only, without mixing. */
static inline bool same_real(cudaDataType a, cudaDataType b, cudaDataType c, cudaDataType d)
{
    return a == b && b == c && c == d && (a == CUDA_R_32F || a == CUDA_R_64F);
}

#endif
