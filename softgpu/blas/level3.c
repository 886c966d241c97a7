#include "softgpu/blas/level3.h"

#include <stdlib.h>

#include "softgpu/blas/fortran.h"

typedef void symm_fn(const char *side, const char *uplo, const int *m, const int *n, const void *alpha, const void *a,
                     const int *lda, const void *b, const int *ldb, const void *beta, void *c, const int *ldc);
typedef void tr_fn(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n,
                   const void *alpha, const void *a, const int *lda, void *b, const int *ldb);
typedef void syrk_fn(const char *uplo, const char *trans, const int *n, const int *k, const void *alpha, const void *a,
                     const int *lda, const void *beta, void *c, const int *ldc);
typedef void syr2k_fn(const char *uplo, const char *trans, const int *n, const int *k, const void *alpha, const void *a,
                      const int *lda, const void *b, const int *ldb, const void *beta, void *c, const int *ldc);

FORTRAN(symm, symm_fn)
FORTRAN_PAIR(hemm, symm, hemm, symm_fn)
FORTRAN(trmm, tr_fn)
FORTRAN(trsm, tr_fn)
FORTRAN(syrk, syrk_fn)
FORTRAN_PAIR(herk, syrk, herk, syrk_fn)
FORTRAN(syr2k, syr2k_fn)
FORTRAN_PAIR(her2k, syr2k, her2k, syr2k_fn)

static cublasStatus_t finish(cublasHandle_t handle, struct job *job, cublasStatus_t status, bool empty)
{
    if (status == CUBLAS_STATUS_SUCCESS && !empty)
        return job_submit(handle, job);
    job_free(job);
    return status;
}

static cudaDataType real_of(cudaDataType type)
{
    return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
}

/* The triangle of C that is about to be scaled by zero. */
static void clear_triangle(void *data, const struct operand *c, cublasFillMode_t uplo)
{
    int64_t size = number_bytes(c->type);
    for (int64_t j = 0; j < c->cols; j++) {
        int64_t first = uplo == CUBLAS_FILL_MODE_UPPER ? 0 : j, end = uplo == CUBLAS_FILL_MODE_UPPER ? j + 1 : c->rows;
        memset((char *)data + (j * c->ld + first) * size, 0, (size_t)((end - first) * size));
    }
}

/* ---- products --------------------------------------------------------------------------------------------------- */

static void run_gemm(struct job *job)
{
    double complex alpha, beta;
    if (!job_load_scalar(job, &job->alpha, &alpha) || !job_load_scalar(job, &job->beta, &beta))
        return;
    struct product p = {
        .transa = job->transa,
        .transb = job->transb,
        .m = job->m,
        .n = job->n,
        .k = job->k,
        .a_type = job->a.type,
        .b_type = job->b.type,
        .c_type = job->c.type,
        .d_type = job->c.type,
        .lda = job->a.ld,
        .ldb = job->b.ld,
        .ldc = job->c.ld,
        .ldd = job->c.ld,
        .alpha = alpha,
        .beta = beta,
        .compute = job->compute,
        .rounding = product_rounding(job->compute, job->math, job->a.type),
        .flaws = job->op.flaws,
        .seed = job->op.seed,
    };
    for (int64_t i = 0; i < job->batch; i++) {
        p.a = job_read(job, &job->a, i);
        p.b = job_read(job, &job->b, i);
        p.d = job_write(job, &job->c, i, SHAPE_FULL);
        p.c = p.d;
        if (!p.a || !p.b || !p.d || !product_run(&p))
            return;
    }
}

static bool gemm_valid(const struct gemm_call *g)
{
    int64_t a_rows = g->transa == CUBLAS_OP_N ? g->m : g->k, b_rows = g->transb == CUBLAS_OP_N ? g->k : g->n;
    return valid_trans(g->transa) && valid_trans(g->transb) && g->m >= 0 && g->n >= 0 && g->k >= 0 && g->batch >= 0 &&
           g->lda >= at_least_one(a_rows) && g->ldb >= at_least_one(b_rows) && g->ldc >= at_least_one(g->m);
}

cublasStatus_t blas_gemm(cublasHandle_t handle, const char *name, const struct gemm_call *g)
{
    struct job *job;
    cudaDataType scale = CUDA_R_32F;
    cublasStatus_t status = job_new(handle, name, g->c_type, run_gemm, &job);
    if (status == CUBLAS_STATUS_SUCCESS && !gemm_valid(g))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS && !product_supported(g->compute, g->a_type, g->b_type, g->c_type, &scale))
        status = blas_unsupported(name);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, g->alpha, scale);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->beta, g->beta, scale);
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    bool na = g->transa == CUBLAS_OP_N, nb = g->transb == CUBLAS_OP_N;
    job->compute = g->compute;
    job->transa = g->transa;
    job->transb = g->transb;
    job->m = g->m;
    job->n = g->n;
    job->k = g->k;
    job->batch = g->batch;
    job->a = matrix(g->a, g->a_type, na ? g->m : g->k, na ? g->k : g->m, g->lda);
    job->b = matrix(g->b, g->b_type, nb ? g->k : g->n, nb ? g->n : g->k, g->ldb);
    job->c = matrix(g->c, g->c_type, g->m, g->n, g->ldc);
    job->a.stride = g->stride_a;
    job->b.stride = g->stride_b;
    job->c.stride = g->stride_c;
    job->a.array = job->b.array = job->c.array = g->array;
    return finish(handle, job, status, !g->m || !g->n || !g->batch);
}

/* ---- symmetric and Hermitian ------------------------------------------------------------------------------------ */

static void run_symm(struct job *job)
{
    double complex alpha_value, beta_value;
    int m = (int)job->m, n = (int)job->n, lda = (int)job->a.ld, ldb = (int)job->b.ld, ldc = (int)job->c.ld;
    if (!job_load_scalar(job, &job->alpha, &alpha_value) || !job_load_scalar(job, &job->beta, &beta_value))
        return;
    struct number alpha = number_of(job->type, alpha_value), beta = number_of(job->type, beta_value);
    const void *a = job_read(job, &job->a, 0), *b = job_read(job, &job->b, 0);
    void *c = job_write(job, &job->c, 0, SHAPE_FULL);
    if (!a || !b || !c)
        return;
    if (beta_value == 0)
        clear(c, &job->c);
    (job->variant ? hemm : symm)[type_index(job->type)](letter_of_side(job->side), letter_of_uplo(job->uplo), &m, &n,
                                                        alpha.bytes, a, &lda, b, &ldb, beta.bytes, c, &ldc);
}

cublasStatus_t blas_symm(cublasHandle_t handle, const char *name, cudaDataType type, bool hermitian,
                         const struct side_call *s)
{
    int64_t order = s->side == CUBLAS_SIDE_LEFT ? s->m : s->n;
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_symm, &job);
    if (status == CUBLAS_STATUS_SUCCESS &&
        (!valid_side(s->side) || !valid_uplo(s->uplo) || s->m < 0 || s->n < 0 || s->lda < at_least_one(order) ||
         s->ldb < at_least_one(s->m) || s->ldc < at_least_one(s->m)))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, s->alpha, type);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->beta, s->beta, type);
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->variant = hermitian;
    job->side = s->side;
    job->uplo = s->uplo;
    job->m = s->m;
    job->n = s->n;
    job->a = matrix(s->a, type, order, order, s->lda);
    job->b = matrix(s->b, type, s->m, s->n, s->ldb);
    job->c = matrix(s->c, type, s->m, s->n, s->ldc);
    return finish(handle, job, status, !s->m || !s->n);
}

/* ---- triangular ------------------------------------------------------------------------------------------------- */

enum { TRIANGULAR_PRODUCT, TRIANGULAR_SOLVE };

static void run_side(struct job *job)
{
    double complex value;
    int m = (int)job->m, n = (int)job->n, lda = (int)job->a.ld, ldc = (int)job->c.ld;
    unsigned type = type_index(job->type);
    if (!job_load_scalar(job, &job->alpha, &value))
        return;
    struct number alpha = number_of(job->type, value);
    int64_t size = number_bytes(job->type);
    for (int64_t i = 0; i < job->batch; i++) {
        const void *a = job_read(job, &job->a, i), *b = job_read(job, &job->b, i);
        void *c = job_write(job, &job->c, i, SHAPE_FULL);
        if (!a || !b || !c)
            return;
        for (int64_t j = 0; j < n && job->variant == TRIANGULAR_PRODUCT && b != c; j++)
            memcpy((char *)c + j * ldc * size, (const char *)b + j * job->b.ld * size, (size_t)(m * size));
        (job->variant == TRIANGULAR_PRODUCT ? trmm : trsm)[type](
            letter_of_side(job->side), letter_of_uplo(job->uplo), letter_of_trans(job->transa),
            letter_of_diag(job->diag), &m, &n, alpha.bytes, a, &lda, c, &ldc);
    }
}

static cublasStatus_t triangular(cublasHandle_t handle, const char *name, int variant, cudaDataType type,
                                 const struct side_call *s)
{
    int64_t order = s->side == CUBLAS_SIDE_LEFT ? s->m : s->n;
    bool product = variant == TRIANGULAR_PRODUCT;
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_side, &job);
    if (status == CUBLAS_STATUS_SUCCESS &&
        (!valid_side(s->side) || !valid_uplo(s->uplo) || !valid_trans(s->trans) || !valid_diag(s->diag) || s->m < 0 ||
         s->n < 0 || s->batch < 0 || s->lda < at_least_one(order) || s->ldc < at_least_one(s->m) ||
         (product && s->ldb < at_least_one(s->m))))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, s->alpha, type);
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->variant = variant;
    job->side = s->side;
    job->uplo = s->uplo;
    job->transa = s->trans;
    job->diag = s->diag;
    job->m = s->m;
    job->n = s->n;
    job->batch = s->batch;
    job->a = matrix(s->a, type, order, order, s->lda);
    job->c = matrix(s->c, type, s->m, s->n, s->ldc);
    job->b = product ? matrix(s->b, type, s->m, s->n, s->ldb) : (struct operand){.type = type};
    job->a.array = job->c.array = s->array;
    return finish(handle, job, status, !s->m || !s->n || !s->batch);
}

cublasStatus_t blas_trmm(cublasHandle_t handle, const char *name, cudaDataType type, const struct side_call *call)
{
    return triangular(handle, name, TRIANGULAR_PRODUCT, type, call);
}

cublasStatus_t blas_trsm(cublasHandle_t handle, const char *name, cudaDataType type, const struct side_call *call)
{
    return triangular(handle, name, TRIANGULAR_SOLVE, type, call);
}

/* ---- updates of rank k ------------------------------------------------------------------------------------------ */

/* The diagonal of a Hermitian matrix is real. */
static void clear_imaginary_diagonal(char *square, cudaDataType type, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        number_store(square, type, i + i * n, creal(number_load(square, type, i + i * n)));
}

/* op(A) op(B)^T, of which a triangle is taken: what the BLAS itself does not have. */
static void run_rank_kx(struct job *job, double complex alpha, double complex beta, const void *a, const void *b,
                        char *c)
{
    bool plain = job->transa == CUBLAS_OP_N;
    cublasOperation_t other = job->variant == HERKX ? CUBLAS_OP_C : CUBLAS_OP_T;
    int64_t n = job->n, size = number_bytes(job->type);
    char *square = malloc((size_t)(n * n * size));
    if (!square)
        return;
    for (int64_t j = 0; j < n; j++)
        memcpy(square + j * n * size, c + j * job->c.ld * size, (size_t)(n * size));
    struct product p = {.transa = plain ? CUBLAS_OP_N : other,
                        .transb = plain ? other : CUBLAS_OP_N,
                        .m = n,
                        .n = n,
                        .k = job->k,
                        .a_type = job->a.type,
                        .b_type = job->b.type,
                        .c_type = job->type,
                        .d_type = job->type,
                        .a = a,
                        .b = b,
                        .c = square,
                        .d = square,
                        .lda = job->a.ld,
                        .ldb = job->b.ld,
                        .ldc = n,
                        .ldd = n,
                        .alpha = alpha,
                        .beta = beta,
                        .compute = real_of(job->type) == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F};
    if (job->variant == HERKX)
        clear_imaginary_diagonal(square, job->type, n);
    bool done = product_run(&p);
    if (job->variant == HERKX)
        clear_imaginary_diagonal(square, job->type, n);
    if (done)
        for (int64_t j = 0; j < n; j++) {
            int64_t first = job->uplo == CUBLAS_FILL_MODE_UPPER ? 0 : j;
            int64_t end = job->uplo == CUBLAS_FILL_MODE_UPPER ? j + 1 : n;
            memcpy(c + (j * job->c.ld + first) * size, square + (j * n + first) * size, (size_t)((end - first) * size));
        }
    free(square);
}

static void run_rank_k(struct job *job)
{
    double complex alpha_value, beta_value;
    unsigned type = type_index(job->type);
    int n = (int)job->n, k = (int)job->k;
    int lda = (int)job->a.ld, ldb = (int)job->b.ld, ldc = (int)job->c.ld;
    const char *u = letter_of_uplo(job->uplo), *t = letter_of_trans(job->transa);
    if (!job_load_scalar(job, &job->alpha, &alpha_value) || !job_load_scalar(job, &job->beta, &beta_value))
        return;
    struct number alpha = number_of(job->alpha.type, alpha_value), beta = number_of(job->beta.type, beta_value);
    const void *a = job_read(job, &job->a, 0), *b = job_read(job, &job->b, 0);
    void *c = job_write(job, &job->c, 0, job_shape(job));
    if (!a || !b || !c)
        return;
    if (beta_value == 0)
        clear_triangle(c, &job->c, job->uplo);
    switch (job->variant) {
    case SYRK:
    case HERK:
        (job->variant == SYRK ? syrk : herk)[type](u, t, &n, &k, alpha.bytes, a, &lda, beta.bytes, c, &ldc);
        break;
    case SYR2K:
    case HER2K:
        (job->variant == SYR2K ? syr2k : her2k)[type](u, t, &n, &k, alpha.bytes, a, &lda, b, &ldb, beta.bytes, c, &ldc);
        break;
    default:
        run_rank_kx(job, alpha_value, beta_value, a, b, c);
    }
}

static bool rank_k_valid(enum rank_k kind, cudaDataType type, const struct rank_k_call *r)
{
    bool two = kind != SYRK && kind != HERK, hermitian = kind == HERK || kind == HER2K || kind == HERKX;
    int64_t rows = r->trans == CUBLAS_OP_N ? r->n : r->k;
    /* A symmetric update has no conjugate, a Hermitian one nothing else. */
    bool trans = r->trans == CUBLAS_OP_N || (hermitian ? r->trans == CUBLAS_OP_C : r->trans == CUBLAS_OP_T) ||
                 (!number_is_complex(type) && r->trans == CUBLAS_OP_C);
    return valid_uplo(r->uplo) && trans && r->n >= 0 && r->k >= 0 && r->lda >= at_least_one(rows) &&
           r->ldc >= at_least_one(r->n) && (!two || r->ldb >= at_least_one(rows));
}

cublasStatus_t blas_rank_k(cublasHandle_t handle, const char *name, enum rank_k kind, cudaDataType type,
                           const struct rank_k_call *r)
{
    bool two = kind != SYRK && kind != HERK, hermitian = kind == HERK || kind == HER2K || kind == HERKX;
    int64_t rows = r->trans == CUBLAS_OP_N ? r->n : r->k, cols = r->trans == CUBLAS_OP_N ? r->k : r->n;
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_rank_k, &job);
    if (status == CUBLAS_STATUS_SUCCESS && !rank_k_valid(kind, type, r))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, r->alpha, kind == HERK ? real_of(type) : type);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->beta, r->beta, hermitian ? real_of(type) : type);
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->variant = kind;
    job->uplo = r->uplo;
    job->transa = r->trans;
    job->n = r->n;
    job->k = r->k;
    job->a = matrix(r->a, type, rows, cols, r->lda);
    job->b = two ? matrix(r->b, type, rows, cols, r->ldb) : (struct operand){.type = type};
    if (r->bytes) {
        /* The BLAS knows no bytes: as a product with itself. */
        job->variant = kind == HERK ? HERKX : SYRKX;
        job->a.type = CUDA_C_8I;
        job->b = job->a;
    }
    job->c = matrix(r->c, type, r->n, r->n, r->ldc);
    return finish(handle, job, status, !r->n);
}
