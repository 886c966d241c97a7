/* The exported factorizations, solvers and inverses of batches; they have 32-bit integers only. */
#include "softgpu/blas/blas_types.h"
#include "softgpu/blas/factor.h"

#define FACTORS(letter, T, type)                                                                                       \
    cublasStatus_t cublas##letter##getrfBatched(cublasHandle_t handle, int n, T *const A[], int lda, int *P,           \
                                                int *info, int batchSize)                                              \
    {                                                                                                                  \
        struct factor_call call = {.n = n, .a = A, .lda = lda, .pivots = P, .info = info, .batch = batchSize};         \
        return blas_factor(handle, __func__, GETRF, type, &call);                                                      \
    }                                                                                                                  \
    cublasStatus_t cublas##letter##getriBatched(cublasHandle_t handle, int n, const T *const A[], int lda,             \
                                                const int *P, T *const C_[], int ldc, int *info, int batchSize)        \
    {                                                                                                                  \
        struct factor_call call = {.n = n,                                                                             \
                                   .a = A,                                                                             \
                                   .lda = lda,                                                                         \
                                   .pivots = P,                                                                        \
                                   .c = (void *)(uintptr_t)C_,                                                         \
                                   .ldc = ldc,                                                                         \
                                   .info = info,                                                                       \
                                   .batch = batchSize};                                                                \
        return blas_factor(handle, __func__, GETRI, type, &call);                                                      \
    }                                                                                                                  \
    cublasStatus_t cublas##letter##getrsBatched(cublasHandle_t handle, cublasOperation_t trans, int n, int nrhs,       \
                                                const T *const Aarray[], int lda, const int *devIpiv,                  \
                                                T *const Barray[], int ldb, int *info, int batchSize)                  \
    {                                                                                                                  \
        struct factor_call call = {.trans = trans,                                                                     \
                                   .n = n,                                                                             \
                                   .nrhs = nrhs,                                                                       \
                                   .a = Aarray,                                                                        \
                                   .lda = lda,                                                                         \
                                   .pivots = devIpiv,                                                                  \
                                   .c = (void *)(uintptr_t)Barray,                                                     \
                                   .ldc = ldb,                                                                         \
                                   .host_info = info,                                                                  \
                                   .batch = batchSize};                                                                \
        return blas_factor(handle, __func__, GETRS, type, &call);                                                      \
    }                                                                                                                  \
    cublasStatus_t cublas##letter##matinvBatched(cublasHandle_t handle, int n, const T *const A[], int lda,            \
                                                 T *const Ainv[], int lda_inv, int *info, int batchSize)               \
    {                                                                                                                  \
        struct factor_call call = {.n = n,                                                                             \
                                   .a = A,                                                                             \
                                   .lda = lda,                                                                         \
                                   .c = (void *)(uintptr_t)Ainv,                                                       \
                                   .ldc = lda_inv,                                                                     \
                                   .info = info,                                                                       \
                                   .batch = batchSize};                                                                \
        return blas_factor(handle, __func__, MATINV, type, &call);                                                     \
    }                                                                                                                  \
    cublasStatus_t cublas##letter##geqrfBatched(cublasHandle_t handle, int m, int n, T *const Aarray[], int lda,       \
                                                T *const TauArray[], int *info, int batchSize)                         \
    {                                                                                                                  \
        struct factor_call call = {.m = m,                                                                             \
                                   .n = n,                                                                             \
                                   .a = Aarray,                                                                        \
                                   .lda = lda,                                                                         \
                                   .tau = (void *)(uintptr_t)TauArray,                                                 \
                                   .host_info = info,                                                                  \
                                   .batch = batchSize};                                                                \
        return blas_factor(handle, __func__, GEQRF, type, &call);                                                      \
    }                                                                                                                  \
    cublasStatus_t cublas##letter##gelsBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n, int nrhs, \
                                               T *const Aarray[], int lda, T *const Carray[], int ldc, int *info,      \
                                               int *devInfoArray, int batchSize)                                       \
    {                                                                                                                  \
        struct factor_call call = {.trans = trans,                                                                     \
                                   .m = m,                                                                             \
                                   .n = n,                                                                             \
                                   .nrhs = nrhs,                                                                       \
                                   .a = Aarray,                                                                        \
                                   .lda = lda,                                                                         \
                                   .c = (void *)(uintptr_t)Carray,                                                     \
                                   .ldc = ldc,                                                                         \
                                   .host_info = info,                                                                  \
                                   .info = devInfoArray,                                                               \
                                   .batch = batchSize};                                                                \
        return blas_factor(handle, __func__, GELS, type, &call);                                                       \
    }
FACTORS(S, S, CUDA_R_32F)
FACTORS(D, D, CUDA_R_64F)
FACTORS(C, C, CUDA_C_32F)
FACTORS(Z, Z, CUDA_C_64F)
