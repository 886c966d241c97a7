/* factor.h - batches of LU and QR factorizations, and what is solved with them. One-based pivots and info as in LAPACK.
 */
#ifndef SOFTGPU_BLAS_FACTOR_H
#define SOFTGPU_BLAS_FACTOR_H

#include "softgpu/blas/blas.h"

enum factor { GETRF, GETRS, GETRI, MATINV, GEQRF, GELS };

/* What the routines are given; each uses what it has. All arrays lie on the device, but for host_info. */
struct factor_call {
    cublasOperation_t trans;
    int64_t m, n, nrhs;
    const void *a; /* arrays of addresses: of A, of the other matrix (B, C, Ainv), of tau */
    void *c, *tau;
    int64_t lda, ldc;
    const int *pivots; /* n for each member; NULL: no pivoting */
    int *info;         /* one for each member, or NULL */
    int *host_info;    /* 0, or minus the number of the first bad argument behind the handle */
    int64_t batch;
};
cublasStatus_t blas_factor(cublasHandle_t handle, const char *name, enum factor kind, cudaDataType type,
                           const struct factor_call *call);

#endif
