/* The exported functions with 32-bit integers, and those that have no other form. cublas_api.h shows the half and bf16
 * ones to C++ only, since C has no __half; here their pointers are void. */
#include "softgpu/blas/blas_types.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC visibility push(default)

#define NAME(name) name
#define INT        int
#define INT_TYPE   CUDA_R_32I

#include "softgpu/blas/api_level1.inc"
#include "softgpu/blas/api_level2.inc"
#include "softgpu/blas/api_level3.inc"

#define ROTATIONS(letter, T, type, R)                                                                                  \
    cublasStatus_t cublas##letter##rotg_v2(cublasHandle_t handle, T *a, T *b, R *c, T *s)                              \
    {                                                                                                                  \
        return blas_rotg(handle, __func__, type, a, b, c, s);                                                          \
    }
ROTATIONS(S, S, CUDA_R_32F, S)
ROTATIONS(D, D, CUDA_R_64F, D)
ROTATIONS(C, C, CUDA_C_32F, S)
ROTATIONS(Z, Z, CUDA_C_64F, D)

cublasStatus_t cublasSrotmg_v2(cublasHandle_t handle, float *d1, float *d2, float *x1, const float *y1, float *param)
{
    return blas_rotmg(handle, __func__, CUDA_R_32F, d1, d2, x1, y1, param);
}

cublasStatus_t cublasDrotmg_v2(cublasHandle_t handle, double *d1, double *d2, double *x1, const double *y1,
                               double *param)
{
    return blas_rotmg(handle, __func__, CUDA_R_64F, d1, d2, x1, y1, param);
}

cublasStatus_t cublasRotgEx(cublasHandle_t handle, void *a, void *b, cudaDataType abType, void *c, void *s,
                            cudaDataType csType, cudaDataType executiontype)
{
    bool known = abType == csType && abType == executiontype && execution_of(abType) == abType;
    if (!known)
        return blas_handle_alive(handle) ? blas_unsupported(__func__) : CUBLAS_STATUS_NOT_INITIALIZED;
    return blas_rotg(handle, __func__, abType, a, b, c, s);
}

cublasStatus_t cublasRotmgEx(cublasHandle_t handle, void *d1, cudaDataType d1Type, void *d2, cudaDataType d2Type,
                             void *x1, cudaDataType x1Type, const void *y1, cudaDataType y1Type, void *param,
                             cudaDataType paramType, cudaDataType executiontype)
{
    if (!same_real(d1Type, d2Type, x1Type, y1Type) || paramType != d1Type || executiontype != d1Type)
        return blas_handle_alive(handle) ? blas_unsupported(__func__) : CUBLAS_STATUS_NOT_INITIALIZED;
    return blas_rotmg(handle, __func__, d1Type, d1, d2, x1, y1, param);
}

#define REPACK(letter, T, type)                                                                                        \
    cublasStatus_t cublas##letter##tpttr(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *AP, T *A,       \
                                         int lda)                                                                      \
    {                                                                                                                  \
        return blas_repack(handle, __func__, type, uplo, n, AP, A, lda, false);                                        \
    }                                                                                                                  \
    cublasStatus_t cublas##letter##trttp(cublasHandle_t handle, cublasFillMode_t uplo, int n, const T *A, int lda,     \
                                         T *AP)                                                                        \
    {                                                                                                                  \
        return blas_repack(handle, __func__, type, uplo, n, A, AP, lda, true);                                         \
    }
REPACK(S, S, CUDA_R_32F)
REPACK(D, D, CUDA_R_64F)
REPACK(C, C, CUDA_C_32F)
REPACK(Z, Z, CUDA_C_64F)
