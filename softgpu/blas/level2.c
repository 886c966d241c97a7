#include "softgpu/blas/level2.h"

#include <stdlib.h>

#include "softgpu/blas/fortran.h"

typedef void gemv_fn(const char *trans, const int *m, const int *n, const void *alpha, const void *a, const int *lda,
                     const void *x, const int *incx, const void *beta, void *y, const int *incy);
typedef void gbmv_fn(const char *trans, const int *m, const int *n, const int *kl, const int *ku, const void *alpha,
                     const void *a, const int *lda, const void *x, const int *incx, const void *beta, void *y,
                     const int *incy);
typedef void tr_fn(const char *uplo, const char *trans, const char *diag, const int *n, const void *a, const int *lda,
                   void *x, const int *incx);
typedef void tb_fn(const char *uplo, const char *trans, const char *diag, const int *n, const int *k, const void *a,
                   const int *lda, void *x, const int *incx);
typedef void tp_fn(const char *uplo, const char *trans, const char *diag, const int *n, const void *ap, void *x,
                   const int *incx);
typedef void symv_fn(const char *uplo, const int *n, const void *alpha, const void *a, const int *lda, const void *x,
                     const int *incx, const void *beta, void *y, const int *incy);
typedef void sbmv_fn(const char *uplo, const int *n, const int *k, const void *alpha, const void *a, const int *lda,
                     const void *x, const int *incx, const void *beta, void *y, const int *incy);
typedef void spmv_fn(const char *uplo, const int *n, const void *alpha, const void *ap, const void *x, const int *incx,
                     const void *beta, void *y, const int *incy);
typedef void ger_fn(const int *m, const int *n, const void *alpha, const void *x, const int *incx, const void *y,
                    const int *incy, void *a, const int *lda);
typedef void syr_fn(const char *uplo, const int *n, const void *alpha, const void *x, const int *incx, void *a,
                    const int *lda);
typedef void spr_fn(const char *uplo, const int *n, const void *alpha, const void *x, const int *incx, void *ap);
typedef void syr2_fn(const char *uplo, const int *n, const void *alpha, const void *x, const int *incx, const void *y,
                     const int *incy, void *a, const int *lda);
typedef void spr2_fn(const char *uplo, const int *n, const void *alpha, const void *x, const int *incx, const void *y,
                     const int *incy, void *ap);

FORTRAN(gemv, gemv_fn)
FORTRAN(gbmv, gbmv_fn)
FORTRAN(trmv, tr_fn)
FORTRAN(trsv, tr_fn)
FORTRAN(tbmv, tb_fn)
FORTRAN(tbsv, tb_fn)
FORTRAN(tpmv, tp_fn)
FORTRAN(tpsv, tp_fn)
FORTRAN(symv, symv_fn)
FORTRAN_PAIR(hemv, symv, hemv, symv_fn)
FORTRAN_PAIR(band_mv, sbmv, hbmv, sbmv_fn)
FORTRAN_PAIR(packed_mv, spmv, hpmv, spmv_fn)
FORTRAN_PAIR(geru, ger, geru, ger_fn)
FORTRAN_PAIR(gerc, ger, gerc, ger_fn)
FORTRAN(syr, syr_fn)
FORTRAN_PAIR(her, syr, her, syr_fn)
FORTRAN_PAIR(packed_r, spr, hpr, spr_fn)
FORTRAN(syr2, syr2_fn)
FORTRAN_PAIR(her2, syr2, her2, syr2_fn)
FORTRAN_PAIR(packed_r2, spr2, hpr2, spr2_fn)

/* alpha and, where there is one, beta, as the routine takes them. */
static bool scalars(struct job *job, struct number *alpha, struct number *beta, double complex *beta_value)
{
    double complex a = 0, b = 0;
    if (!job_load_scalar(job, &job->alpha, &a) || !job_load_scalar(job, &job->beta, &b))
        return false;
    *alpha = number_of(job->alpha.type, a);
    *beta = number_of(job->type, b);
    *beta_value = b;
    return true;
}

static cublasStatus_t finish(cublasHandle_t handle, struct job *job, cublasStatus_t status, bool empty)
{
    if (status == CUBLAS_STATUS_SUCCESS && !empty)
        return job_submit(handle, job);
    job_free(job);
    return status;
}

/* ---- general matrices ------------------------------------------------------------------------------------------- */

/* The first element of a vector, from which increments count, also negative ones. */
static const void *start(const struct operand *o, const void *data)
{
    return o->ld < 0 ? (const char *)data + (o->rows - 1) * -o->ld * number_bytes(o->type) : data;
}

/* As a product with a matrix of one column, for all that OpenBLAS's routine does not do. */
static bool gemv_as_product(struct job *job, double complex alpha, double complex beta, const void *a, const void *x,
                            void *y)
{
    bool transposed = job->transa != CUBLAS_OP_N;
    void *first = (void *)(uintptr_t)start(&job->c, y);
    bool doubles = job->b.type == CUDA_R_64F || job->b.type == CUDA_C_64F;
    struct product p = {
        .transa = job->transa,
        .m = transposed ? job->n : job->m,
        .n = 1,
        .k = transposed ? job->m : job->n,
        .a_type = job->a.type,
        .b_type = job->b.type,
        .c_type = job->c.type,
        .d_type = job->c.type,
        .a = a,
        .b = start(&job->b, x),
        .c = first,
        .d = first,
        .lda = job->a.ld,
        .ldb = job->b.ld,
        .ldc = job->c.ld,
        .ldd = job->c.ld,
        .b_rows = true,
        .c_rows = true,
        .d_rows = true,
        .alpha = alpha,
        .beta = beta,
        .compute = doubles ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
        .flaws = job->op.flaws,
        .seed = job->op.seed,
    };
    return product_run(&p);
}

static void run_gemv(struct job *job)
{
    struct number alpha, beta;
    double complex a_value, b_value;
    if (!scalars(job, &alpha, &beta, &b_value) || !job_load_scalar(job, &job->alpha, &a_value))
        return;
    unsigned type = type_index(job->type);
    bool mixed = !is_blas_type(job->a.type) || job->a.type != job->c.type;
    int m = (int)job->m, n = (int)job->n, lda = (int)job->a.ld, incx = (int)job->b.ld, incy = (int)job->c.ld;
    bool flawed = (job->op.flaws && (type == 0 || type == 2)) || job->op.seed;
    for (int64_t i = 0; i < job->batch; i++) {
        const void *a = job_read(job, &job->a, i), *x = job_read(job, &job->b, i);
        void *y = job_write(job, &job->c, i, SHAPE_FULL);
        if (!a || !x || !y)
            return;
        if (mixed || flawed) {
            gemv_as_product(job, a_value, b_value, a, x, y);
            continue;
        }
        if (b_value == 0)
            clear(y, &job->c);
        gemv[type](letter_of_trans(job->transa), &m, &n, alpha.bytes, a, &lda, x, &incx, beta.bytes, y, &incy);
    }
}

static void run_gbmv(struct job *job)
{
    struct number alpha, beta;
    double complex b_value;
    int m = (int)job->m, n = (int)job->n, kl = (int)job->kl, ku = (int)job->ku;
    int lda = (int)job->a.ld, incx = (int)job->b.ld, incy = (int)job->c.ld;
    if (!scalars(job, &alpha, &beta, &b_value))
        return;
    const void *a = job_read(job, &job->a, 0), *x = job_read(job, &job->b, 0);
    void *y = job_write(job, &job->c, 0, SHAPE_FULL);
    if (!a || !x || !y)
        return;
    if (b_value == 0)
        clear(y, &job->c);
    gbmv[type_index(job->type)](letter_of_trans(job->transa), &m, &n, &kl, &ku, alpha.bytes, a, &lda, x, &incx,
                                beta.bytes, y, &incy);
}

cublasStatus_t blas_gemv_batch(cublasHandle_t handle, const char *name, cublasOperation_t trans, int64_t m, int64_t n,
                               const void *alpha, const void *beta, const struct gemv_batch *b)
{
    struct job *job;
    cudaDataType scale = is_blas_type(b->vector_type) ? b->vector_type : CUDA_R_32F;
    cublasStatus_t status = job_new(handle, name, scale, run_gemv, &job);
    if (status == CUBLAS_STATUS_SUCCESS &&
        (!valid_trans(trans) || m < 0 || n < 0 || b->lda < at_least_one(m) || !b->incx || !b->incy || b->count < 0))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, alpha, scale);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->beta, beta, scale);
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->transa = trans;
    job->m = m;
    job->n = n;
    job->batch = b->count;
    job->a = matrix(b->a, b->matrix_type, m, n, b->lda);
    job->b = vector(b->x, b->matrix_type, trans == CUBLAS_OP_N ? n : m, b->incx);
    job->c = vector(b->y, b->vector_type, trans == CUBLAS_OP_N ? m : n, b->incy);
    job->a.stride = b->stride_a;
    job->b.stride = b->stride_x;
    job->c.stride = b->stride_y;
    job->a.array = job->b.array = job->c.array = b->array;
    return finish(handle, job, status, !m || !n || !b->count);
}

cublasStatus_t blas_gemv(cublasHandle_t handle, const char *name, cudaDataType type, cublasOperation_t trans, int64_t m,
                         int64_t n, const void *alpha, const void *A, int64_t lda, const void *x, int64_t incx,
                         const void *beta, void *y, int64_t incy)
{
    struct gemv_batch one = {.matrix_type = type,
                             .vector_type = type,
                             .a = A,
                             .x = x,
                             .y = y,
                             .lda = lda,
                             .incx = incx,
                             .incy = incy,
                             .count = 1};
    return blas_gemv_batch(handle, name, trans, m, n, alpha, beta, &one);
}

cublasStatus_t blas_gbmv(cublasHandle_t handle, const char *name, cudaDataType type, cublasOperation_t trans, int64_t m,
                         int64_t n, int64_t kl, int64_t ku, const void *alpha, const void *A, int64_t lda,
                         const void *x, int64_t incx, const void *beta, void *y, int64_t incy)
{
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_gbmv, &job);
    if (status == CUBLAS_STATUS_SUCCESS &&
        (!valid_trans(trans) || m < 0 || n < 0 || kl < 0 || ku < 0 || lda < kl + ku + 1 || !incx || !incy))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, alpha, type);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->beta, beta, type);
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->transa = trans;
    job->m = m;
    job->n = n;
    job->kl = kl;
    job->ku = ku;
    job->a = matrix(A, type, kl + ku + 1, n, lda);
    job->b = vector(x, type, trans == CUBLAS_OP_N ? n : m, incx);
    job->c = vector(y, type, trans == CUBLAS_OP_N ? m : n, incy);
    return finish(handle, job, status, !m || !n);
}

/* ---- triangular matrices ---------------------------------------------------------------------------------------- */

static void run_triangular(struct job *job)
{
    unsigned type = type_index(job->type);
    int n = (int)job->n, k = (int)job->k, lda = (int)job->a.ld, incx = (int)job->b.ld;
    const char *u = letter_of_uplo(job->uplo), *t = letter_of_trans(job->transa), *d = letter_of_diag(job->diag);
    const void *a = job_read(job, &job->a, 0);
    void *x = job_write(job, &job->b, 0, SHAPE_FULL);
    if (!a || !x)
        return;
    switch (job->variant) {
    case TRMV:
        trmv[type](u, t, d, &n, a, &lda, x, &incx);
        break;
    case TRSV:
        trsv[type](u, t, d, &n, a, &lda, x, &incx);
        break;
    case TBMV:
        tbmv[type](u, t, d, &n, &k, a, &lda, x, &incx);
        break;
    case TBSV:
        tbsv[type](u, t, d, &n, &k, a, &lda, x, &incx);
        break;
    case TPMV:
        tpmv[type](u, t, d, &n, a, x, &incx);
        break;
    default:
        tpsv[type](u, t, d, &n, a, x, &incx);
    }
}

cublasStatus_t blas_triangular(cublasHandle_t handle, const char *name, enum triangular kind, cudaDataType type,
                               cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag, int64_t n,
                               int64_t k, const void *A, int64_t lda, void *x, int64_t incx)
{
    bool band = kind == TBMV || kind == TBSV, is_packed = kind == TPMV || kind == TPSV;
    int64_t rows = band ? k + 1 : n;
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_triangular, &job);
    if (status == CUBLAS_STATUS_SUCCESS && (!valid_uplo(uplo) || !valid_trans(trans) || !valid_diag(diag) || n < 0 ||
                                            (band && k < 0) || (!is_packed && lda < at_least_one(rows)) || !incx))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->variant = kind;
    job->uplo = uplo;
    job->transa = trans;
    job->diag = diag;
    job->n = n;
    job->k = k;
    job->a = is_packed ? packed(A, type, n) : matrix(A, type, rows, n, lda);
    job->b = vector(x, type, n, incx);
    return finish(handle, job, status, !n);
}

/* ---- symmetric matrices ----------------------------------------------------------------------------------------- */

static void run_symmetric(struct job *job)
{
    struct number alpha, beta;
    double complex b_value;
    unsigned type = type_index(job->type);
    int n = (int)job->n, k = (int)job->k, lda = (int)job->a.ld;
    int incx = (int)job->b.ld, incy = (int)job->c.ld;
    const char *u = letter_of_uplo(job->uplo);
    if (!scalars(job, &alpha, &beta, &b_value))
        return;
    const void *a = job_read(job, &job->a, 0), *x = job_read(job, &job->b, 0);
    void *y = job_write(job, &job->c, 0, SHAPE_FULL);
    if (!a || !x || !y)
        return;
    if (b_value == 0)
        clear(y, &job->c);
    switch (job->variant) {
    case SYMV:
    case HEMV:
        (job->variant == SYMV ? symv : hemv)[type](u, &n, alpha.bytes, a, &lda, x, &incx, beta.bytes, y, &incy);
        break;
    case SBMV:
    case HBMV:
        band_mv[type](u, &n, &k, alpha.bytes, a, &lda, x, &incx, beta.bytes, y, &incy);
        break;
    default:
        packed_mv[type](u, &n, alpha.bytes, a, x, &incx, beta.bytes, y, &incy);
    }
}

cublasStatus_t blas_symmetric(cublasHandle_t handle, const char *name, enum symmetric kind, cudaDataType type,
                              cublasFillMode_t uplo, int64_t n, int64_t k, const void *alpha, const void *A,
                              int64_t lda, const void *x, int64_t incx, const void *beta, void *y, int64_t incy)
{
    bool band = kind == SBMV || kind == HBMV, is_packed = kind == SPMV || kind == HPMV;
    int64_t rows = band ? k + 1 : n;
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_symmetric, &job);
    if (status == CUBLAS_STATUS_SUCCESS &&
        (!valid_uplo(uplo) || n < 0 || (band && k < 0) || (!is_packed && lda < at_least_one(rows)) || !incx || !incy))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, alpha, type);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->beta, beta, type);
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->variant = kind;
    job->uplo = uplo;
    job->n = n;
    job->k = k;
    job->a = is_packed ? packed(A, type, n) : matrix(A, type, rows, n, lda);
    job->b = vector(x, type, n, incx);
    job->c = vector(y, type, n, incy);
    return finish(handle, job, status, !n);
}

/* ---- updates of rank one and two -------------------------------------------------------------------------------- */

/* The elements of a vector with a negative increment one after the other; free(). */
static void *forwards(const struct operand *o, const void *data)
{
    size_t size = (size_t)number_bytes(o->type);
    char *copy = malloc((size_t)o->rows * size);
    const char *from = start(o, data);
    for (int64_t i = 0; copy && i < o->rows; i++)
        memcpy(copy + (size_t)i * size, from + i * o->ld * (int64_t)size, size);
    return copy;
}

/* OpenBLAS 0.3.21 starts at wrong places in complex vectors with negative increments, in this routine alone. */
static void run_syr2(const struct job *job, const struct number *alpha, const void *x, const void *y, void *a)
{
    int n = (int)job->n, incx = (int)job->a.ld, incy = (int)job->b.ld, lda = (int)job->c.ld;
    void *copy_x = incx < 0 ? forwards(&job->a, x) : NULL, *copy_y = incy < 0 ? forwards(&job->b, y) : NULL;
    if ((incx < 0 && !copy_x) || (incy < 0 && !copy_y))
        goto out;
    if (copy_x)
        incx = 1;
    if (copy_y)
        incy = 1;
    syr2[type_index(job->type)](letter_of_uplo(job->uplo), &n, alpha->bytes, copy_x ? copy_x : x, &incx,
                                copy_y ? copy_y : y, &incy, a, &lda);
out:
    free(copy_x);
    free(copy_y);
}

static void run_rank(struct job *job)
{
    struct number alpha, beta;
    double complex unused;
    unsigned type = type_index(job->type);
    int m = (int)job->m, n = (int)job->n, lda = (int)job->c.ld;
    int incx = (int)job->a.ld, incy = (int)job->b.ld;
    bool full = job->variant == GER || job->variant == GERC;
    const char *u = letter_of_uplo(job->uplo);
    if (!scalars(job, &alpha, &beta, &unused))
        return;
    const void *x = job_read(job, &job->a, 0), *y = job_read(job, &job->b, 0);
    void *a = job_write(job, &job->c, 0, full ? SHAPE_FULL : job_shape(job));
    if (!x || !y || !a)
        return;
    switch (job->variant) {
    case GER:
        geru[type](&m, &n, alpha.bytes, x, &incx, y, &incy, a, &lda);
        break;
    case GERC:
        gerc[type](&m, &n, alpha.bytes, x, &incx, y, &incy, a, &lda);
        break;
    case SYR:
    case HER:
        (job->variant == SYR ? syr : her)[type](u, &n, alpha.bytes, x, &incx, a, &lda);
        break;
    case SPR:
    case HPR:
        packed_r[type](u, &n, alpha.bytes, x, &incx, a);
        break;
    case SYR2:
        run_syr2(job, &alpha, x, y, a);
        break;
    case HER2:
        her2[type](u, &n, alpha.bytes, x, &incx, y, &incy, a, &lda);
        break;
    default:
        packed_r2[type](u, &n, alpha.bytes, x, &incx, y, &incy, a);
    }
}

cublasStatus_t blas_rank(cublasHandle_t handle, const char *name, enum rank kind, cudaDataType type,
                         cublasFillMode_t uplo, int64_t m, int64_t n, const void *alpha, const void *x, int64_t incx,
                         const void *y, int64_t incy, void *A, int64_t lda)
{
    bool full = kind == GER || kind == GERC, is_packed = kind == SPR || kind == HPR || kind == SPR2 || kind == HPR2;
    bool two = full || kind >= SYR2;
    cudaDataType scale = type;
    if (kind == HER || kind == HPR)
        scale = type == CUDA_C_32F ? CUDA_R_32F : CUDA_R_64F;
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_rank, &job);
    if (status == CUBLAS_STATUS_SUCCESS && (m < 0 || n < 0 || !incx || (two && !incy) || (!full && !valid_uplo(uplo)) ||
                                            (!is_packed && lda < at_least_one(full ? m : n))))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, alpha, scale);
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->variant = kind;
    job->uplo = uplo;
    job->m = m;
    job->n = n;
    job->a = vector(x, type, full ? m : n, incx);
    job->b = vector(y, type, two ? n : 0, incy);
    job->c = is_packed ? packed(A, type, n) : matrix(A, type, full ? m : n, n, lda);
    return finish(handle, job, status, !n || (full && !m));
}
