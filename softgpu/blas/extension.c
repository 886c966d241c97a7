/* What cuBLAS has beyond the BLAS: sums of matrices, diagonals, packed triangles. */
#include "softgpu/blas/fortran.h"
#include "softgpu/blas/level3.h"

static double complex times(double complex a, double complex b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

static cublasStatus_t finish(cublasHandle_t handle, struct job *job, cublasStatus_t status, bool empty)
{
    if (status == CUBLAS_STATUS_SUCCESS && !empty)
        return job_submit(handle, job);
    job_free(job);
    return status;
}

/* ---- C = alpha op(A) + beta op(B) ------------------------------------------------------------------------------- */

static double complex element(const void *data, const struct operand *o, cublasOperation_t op, int64_t i, int64_t j)
{
    double complex value = number_load(data, o->type, op == CUBLAS_OP_N ? i + j * o->ld : j + i * o->ld);
    return op == CUBLAS_OP_C ? conj(value) : value;
}

static void run_geam(struct job *job)
{
    double complex alpha, beta;
    if (!job_load_scalar(job, &job->alpha, &alpha) || !job_load_scalar(job, &job->beta, &beta))
        return;
    /* What is scaled by zero is not read, and may be no memory at all. */
    const void *a = alpha != 0 ? job_read(job, &job->a, 0) : NULL, *b = beta != 0 ? job_read(job, &job->b, 0) : NULL;
    void *c = job_write(job, &job->c, 0, SHAPE_FULL);
    if (!c || (alpha != 0 && !a) || (beta != 0 && !b))
        return;
    for (int64_t j = 0; j < job->n; j++)
        for (int64_t i = 0; i < job->m; i++) {
            double complex value = 0;
            if (a)
                value = times(alpha, element(a, &job->a, job->transa, i, j));
            if (b)
                value += times(beta, element(b, &job->b, job->transb, i, j));
            number_store(c, job->type, i + j * job->c.ld, value);
        }
}

cublasStatus_t blas_geam(cublasHandle_t handle, const char *name, cudaDataType type, const struct geam_call *g)
{
    bool na = g->transa == CUBLAS_OP_N, nb = g->transb == CUBLAS_OP_N;
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_geam, &job);
    if (status == CUBLAS_STATUS_SUCCESS &&
        (!valid_trans(g->transa) || !valid_trans(g->transb) || g->m < 0 || g->n < 0 ||
         g->lda < at_least_one(na ? g->m : g->n) || g->ldb < at_least_one(nb ? g->m : g->n) ||
         g->ldc < at_least_one(g->m) || (g->c == g->a && g->a && (!na || g->lda != g->ldc)) ||
         (g->c == g->b && g->b && (!nb || g->ldb != g->ldc))))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, g->alpha, type);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->beta, g->beta, type);
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->transa = g->transa;
    job->transb = g->transb;
    job->m = g->m;
    job->n = g->n;
    job->a = matrix(g->a, type, na ? g->m : g->n, na ? g->n : g->m, g->lda);
    job->b = matrix(g->b, type, nb ? g->m : g->n, nb ? g->n : g->m, g->ldb);
    job->c = matrix(g->c, type, g->m, g->n, g->ldc);
    return finish(handle, job, status, !g->m || !g->n);
}

/* ---- C = diag(x) A or A diag(x) --------------------------------------------------------------------------------- */

static void run_dgmm(struct job *job)
{
    const void *a = job_read(job, &job->a, 0), *x = job_read(job, &job->b, 0);
    void *c = job_write(job, &job->c, 0, SHAPE_FULL);
    int64_t count = job->b.rows, inc = job->b.ld;
    if (!a || !x || !c)
        return;
    for (int64_t j = 0; j < job->n; j++)
        for (int64_t i = 0; i < job->m; i++) {
            int64_t at = job->side == CUBLAS_SIDE_LEFT ? i : j;
            at = inc < 0 ? (count - 1 - at) * -inc : at * inc;
            number_store(c, job->type, i + j * job->c.ld,
                         times(number_load(a, job->type, i + j * job->a.ld), number_load(x, job->type, at)));
        }
}

cublasStatus_t blas_dgmm(cublasHandle_t handle, const char *name, cudaDataType type, cublasSideMode_t side, int64_t m,
                         int64_t n, const void *A, int64_t lda, const void *x, int64_t incx, void *C, int64_t ldc)
{
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_dgmm, &job);
    if (status == CUBLAS_STATUS_SUCCESS &&
        (!valid_side(side) || m < 0 || n < 0 || lda < at_least_one(m) || ldc < at_least_one(m)))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->side = side;
    job->m = m;
    job->n = n;
    job->a = matrix(A, type, m, n, lda);
    job->b = vector(x, type, side == CUBLAS_SIDE_LEFT ? m : n, incx);
    job->c = matrix(C, type, m, n, ldc);
    return finish(handle, job, status, !m || !n);
}

/* ---- packed triangles ------------------------------------------------------------------------------------------- */

static void run_repack(struct job *job)
{
    bool pack = job->variant != 0;
    const char *from = job_read(job, &job->a, 0);
    char *to = job_write(job, &job->c, 0, pack ? SHAPE_FULL : job_shape(job));
    int64_t size = number_bytes(job->type), ld = pack ? job->a.ld : job->c.ld, at = 0;
    for (int64_t j = 0; from && to && j < job->n; j++) {
        int64_t first = job->uplo == CUBLAS_FILL_MODE_UPPER ? 0 : j;
        int64_t length = job->uplo == CUBLAS_FILL_MODE_UPPER ? j + 1 : job->n - j;
        int64_t full = (first + j * ld) * size, small = at * size;
        memcpy(to + (pack ? small : full), from + (pack ? full : small), (size_t)(length * size));
        at += length;
    }
}

cublasStatus_t blas_repack(cublasHandle_t handle, const char *name, cudaDataType type, cublasFillMode_t uplo, int64_t n,
                           const void *from, void *to, int64_t ld, bool pack)
{
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_repack, &job);
    if (status == CUBLAS_STATUS_SUCCESS && (!valid_uplo(uplo) || n < 0 || ld < at_least_one(n)))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status != CUBLAS_STATUS_SUCCESS)
        return finish(handle, job, status, true);
    job->variant = pack;
    job->uplo = uplo;
    job->n = n;
    job->a = pack ? matrix(from, type, n, n, ld) : packed(from, type, n);
    job->c = pack ? packed(to, type, n) : matrix(to, type, n, n, ld);
    return finish(handle, job, status, !n);
}
