/* level2.h - matrix and vector; see level1.h for the lines they follow. The variants are named after the BLAS routines.
 */
#ifndef SOFTGPU_BLAS_LEVEL2_H
#define SOFTGPU_BLAS_LEVEL2_H

#include "softgpu/blas/level1.h"

enum triangular { TRMV, TBMV, TPMV, TRSV, TBSV, TPSV };
enum symmetric { SYMV, HEMV, SBMV, HBMV, SPMV, HPMV };
enum rank { GER, GERC, SYR, HER, SPR, HPR, SYR2, HER2, SPR2, HPR2 };

cublasStatus_t blas_gemv(cublasHandle_t handle, const char *name, cudaDataType type, cublasOperation_t trans, int64_t m,
                         int64_t n, const void *alpha, const void *A, int64_t lda, const void *x, int64_t incx,
                         const void *beta, void *y, int64_t incy);
cublasStatus_t blas_gbmv(cublasHandle_t handle, const char *name, cudaDataType type, cublasOperation_t trans, int64_t m,
                         int64_t n, int64_t kl, int64_t ku, const void *alpha, const void *A, int64_t lda,
                         const void *x, int64_t incx, const void *beta, void *y, int64_t incy);
/* k and lda only where the routine has them. */
cublasStatus_t blas_triangular(cublasHandle_t handle, const char *name, enum triangular kind, cudaDataType type,
                               cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, int64_t n,
                               int64_t k, const void *A, int64_t lda, void *x, int64_t incx);
cublasStatus_t blas_symmetric(cublasHandle_t handle, const char *name, enum symmetric kind, cudaDataType type,
                              cublasFillMode_t uplo, int64_t n, int64_t k, const void *alpha, const void *A,
                              int64_t lda, const void *x, int64_t incx, const void *beta, void *y, int64_t incy);
/* GER and GERC with m rows; the others with a triangle of order n. y only for those of rank 2. */
cublasStatus_t blas_rank(cublasHandle_t handle, const char *name, enum rank kind, cudaDataType type,
                         cublasFillMode_t uplo, int64_t m, int64_t n, const void *alpha, const void *x, int64_t incx,
                         const void *y, int64_t incy, void *A, int64_t lda);

/* A batch of matrix-vector products: strided, or by arrays of addresses. Types of A, x and y; sums in float or double.
 */
struct gemv_batch {
    cudaDataType matrix_type, vector_type;
    bool array;
    const void *a, *x;
    void *y;
    int64_t lda, incx, incy, stride_a, stride_x, stride_y, count;
};
cublasStatus_t blas_gemv_batch(cublasHandle_t handle, const char *name, cublasOperation_t trans, int64_t m, int64_t n,
                               const void *alpha, const void *beta, const struct gemv_batch *batch);

#endif
