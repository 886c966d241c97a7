/* level1.h - vector operations: what the exported functions of level 1 and their Ex forms are made of.
 *
 * All follow the same lines: status of the check or of the submission is returned, `name` is the exported function's.
 * Typed forms give the same type for everything; Ex forms are converted to the type of the execution and back. */
#ifndef SOFTGPU_BLAS_LEVEL1_H
#define SOFTGPU_BLAS_LEVEL1_H

#include "softgpu/blas/blas.h"

enum reduction { REDUCE_AMAX, REDUCE_AMIN, REDUCE_ASUM, REDUCE_NRM2, REDUCE_DOT, REDUCE_DOTC };

struct strided {
    const void *data;
    cudaDataType type;
    int64_t inc;
};

cublasStatus_t blas_reduce(cublasHandle_t handle, const char *name, enum reduction kind, int64_t n, struct strided x,
                           struct strided y, void *result, cudaDataType result_type, cudaDataType execution);
cublasStatus_t blas_scal(cublasHandle_t handle, const char *name, int64_t n, const void *alpha, cudaDataType alpha_type,
                         struct strided x, cudaDataType execution);
cublasStatus_t blas_axpy(cublasHandle_t handle, const char *name, int64_t n, const void *alpha, cudaDataType alpha_type,
                         struct strided x, struct strided y, cudaDataType execution);
cublasStatus_t blas_copy(cublasHandle_t handle, const char *name, int64_t n, struct strided x, struct strided y);
cublasStatus_t blas_swap(cublasHandle_t handle, const char *name, int64_t n, struct strided x, struct strided y);
/* c of type c_type, s of type s_type. */
cublasStatus_t blas_rot(cublasHandle_t handle, const char *name, int64_t n, struct strided x, struct strided y,
                        const void *c, cudaDataType c_type, const void *s, cudaDataType s_type);
cublasStatus_t blas_rotm(cublasHandle_t handle, const char *name, int64_t n, struct strided x, struct strided y,
                         const void *param);
/* These work on scalars, which lie on the host or on the device by the pointer mode. */
cublasStatus_t blas_rotg(cublasHandle_t handle, const char *name, cudaDataType type, void *a, void *b, void *c,
                         void *s);
cublasStatus_t blas_rotmg(cublasHandle_t handle, const char *name, cudaDataType type, void *d1, void *d2, void *x1,
                          const void *y1, void *param);

#endif
