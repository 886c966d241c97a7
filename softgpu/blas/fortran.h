/* fortran.h - OpenBLAS's Fortran symbols: unlike those of CBLAS they have one signature for all element types, so that
 * a routine is a row of four functions. Numbers are passed by address, options as letters. */
#ifndef SOFTGPU_BLAS_FORTRAN_H
#define SOFTGPU_BLAS_FORTRAN_H

#include "softgpu/blas/blas.h"

enum { TYPE_COUNT = 4 };
/* Position in such a row: S, D, C, Z. Other types have none and count as Z; is_blas_type() tells. */
static inline unsigned type_index(cudaDataType type)
{
    return type == CUDA_R_32F ? 0 : type == CUDA_R_64F ? 1 : type == CUDA_C_32F ? 2 : 3;
}
static inline bool is_blas_type(cudaDataType type)
{
    return type_index(type) < 3 || type == CUDA_C_64F;
}

static inline const char *letter_of_trans(cublasOperation_t trans)
{
    return trans == CUBLAS_OP_N ? "N" : trans == CUBLAS_OP_T ? "T" : "C";
}
static inline const char *letter_of_uplo(cublasFillMode_t uplo)
{
    return uplo == CUBLAS_FILL_MODE_UPPER ? "U" : "L";
}
static inline const char *letter_of_diag(cublasDiagType_t diag)
{
    return diag == CUBLAS_DIAG_UNIT ? "U" : "N";
}
static inline const char *letter_of_side(cublasSideMode_t side)
{
    return side == CUBLAS_SIDE_RIGHT ? "R" : "L";
}

/* Whether options have values that the BLAS knows; FULL is none of them. */
static inline bool valid_trans(cublasOperation_t trans)
{
    return trans == CUBLAS_OP_N || trans == CUBLAS_OP_T || trans == CUBLAS_OP_C;
}
static inline bool valid_uplo(cublasFillMode_t uplo)
{
    return uplo == CUBLAS_FILL_MODE_LOWER || uplo == CUBLAS_FILL_MODE_UPPER;
}
static inline bool valid_diag(cublasDiagType_t diag)
{
    return diag == CUBLAS_DIAG_NON_UNIT || diag == CUBLAS_DIAG_UNIT;
}
static inline bool valid_side(cublasSideMode_t side)
{
    return side == CUBLAS_SIDE_LEFT || side == CUBLAS_SIDE_RIGHT;
}
static inline int64_t at_least_one(int64_t n)
{
    return n > 1 ? n : 1;
}

/* A scalar as a routine of that type takes it. */
struct number {
    _Alignas(16) char bytes[16];
};
static inline struct number number_of(cudaDataType type, double complex value)
{
    struct number n = {{0}};
    number_store(n.bytes, type, 0, value);
    return n;
}

#define FORTRAN(routine, signature)                                                                                    \
    signature s##routine##_, d##routine##_, c##routine##_, z##routine##_;                                              \
    static signature *const routine[TYPE_COUNT] = {s##routine##_, d##routine##_, c##routine##_, z##routine##_};
/* Where the complex routine is another one: Hermitian in place of symmetric. */
#define FORTRAN_PAIR(row, real, complex_one, signature)                                                                \
    signature s##real##_, d##real##_, c##complex_one##_, z##complex_one##_;                                            \
    static signature *const row[TYPE_COUNT] = {s##real##_, d##real##_, c##complex_one##_, z##complex_one##_};

#endif
