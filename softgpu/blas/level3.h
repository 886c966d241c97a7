/* level3.h - matrices and matrices; see level1.h for the lines they follow. */
#ifndef SOFTGPU_BLAS_LEVEL3_H
#define SOFTGPU_BLAS_LEVEL3_H

#include "softgpu/blas/blas.h"

/* One product or a batch of them. In a batch the operands are strided or arrays of addresses. */
struct gemm_call {
    cublasOperation_t transa, transb;
    int64_t m, n, k;
    const void *alpha, *beta; /* by the pointer mode, of the scale type that goes with `compute` */
    cudaDataType a_type, b_type, c_type;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
    bool array;
    int64_t batch; /* 1 for a single one */
    cublasComputeType_t compute;
};
cublasStatus_t blas_gemm(cublasHandle_t handle, const char *name, const struct gemm_call *call);

struct side_call {
    cublasSideMode_t side;
    cublasFillMode_t uplo;
    cublasOperation_t trans;
    cublasDiagType_t diag;
    int64_t m, n, lda, ldb, ldc;
    const void *alpha, *beta;
    const void *a, *b;
    void *c;
    bool array;
    int64_t batch;
};
/* C = alpha A B + beta C or alpha B A + beta C with a symmetric or Hermitian A. */
cublasStatus_t blas_symm(cublasHandle_t handle, const char *name, cudaDataType type, bool hermitian,
                         const struct side_call *call);
/* C = alpha op(A) B or alpha B op(A), A triangular; C may be B. */
cublasStatus_t blas_trmm(cublasHandle_t handle, const char *name, cudaDataType type, const struct side_call *call);
/* Solves for X in place of B, which is `c` of the call; one or an array of them. */
cublasStatus_t blas_trsm(cublasHandle_t handle, const char *name, cudaDataType type, const struct side_call *call);

/* A triangle of order n, updated by A (and B), n by k or k by n. */
enum rank_k { SYRK, HERK, SYR2K, HER2K, SYRKX, HERKX };
struct rank_k_call {
    cublasFillMode_t uplo;
    cublasOperation_t trans;
    int64_t n, k, lda, ldb, ldc;
    const void *alpha, *beta;
    const void *a, *b;
    void *c;
    bool bytes; /* A is of complex bytes: SYRK and HERK in complex floats */
};
cublasStatus_t blas_rank_k(cublasHandle_t handle, const char *name, enum rank_k kind, cudaDataType type,
                           const struct rank_k_call *call);

/* ---- extension.c: what cuBLAS has beyond the BLAS ---- */

struct geam_call {
    cublasOperation_t transa, transb;
    int64_t m, n, lda, ldb, ldc;
    const void *alpha, *beta, *a, *b;
    void *c;
};
cublasStatus_t blas_geam(cublasHandle_t handle, const char *name, cudaDataType type, const struct geam_call *call);
cublasStatus_t blas_dgmm(cublasHandle_t handle, const char *name, cudaDataType type, cublasSideMode_t side, int64_t m,
                         int64_t n, const void *A, int64_t lda, const void *x, int64_t incx, void *C, int64_t ldc);
/* Between packed and full triangles. */
cublasStatus_t blas_repack(cublasHandle_t handle, const char *name, cudaDataType type, cublasFillMode_t uplo, int64_t n,
                           const void *from, void *to, int64_t ld, bool pack);

#endif
