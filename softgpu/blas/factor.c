/* LU and QR on OpenBLAS's LAPACK. What LAPACK does not have, factors without pivoting, is made of its BLAS. */
#include "softgpu/blas/factor.h"

#include <stdlib.h>

#include "softgpu/blas/fortran.h"

typedef void getrf_fn(const int *m, const int *n, void *a, const int *lda, int *ipiv, int *info);
typedef void getrs_fn(const char *trans, const int *n, const int *nrhs, const void *a, const int *lda, const int *ipiv,
                      void *b, const int *ldb, int *info);
typedef void geqr2_fn(const int *m, const int *n, void *a, const int *lda, void *tau, void *work, int *info);
/* Compiled Fortran: the lengths of the two strings follow. */
typedef void orm2r_fn(const char *side, const char *trans, const int *m, const int *n, const int *k, void *a,
                      const int *lda, const void *tau, void *c, const int *ldc, void *work, int *info, size_t, size_t);
typedef void trsm_fn(const char *side, const char *uplo, const char *trans, const char *diag, const int *m,
                     const int *n, const void *alpha, const void *a, const int *lda, void *b, const int *ldb);
typedef void ger_fn(const int *m, const int *n, const void *alpha, const void *x, const int *incx, const void *y,
                    const int *incy, void *a, const int *lda);

FORTRAN(getrf, getrf_fn)
FORTRAN(getrs, getrs_fn)
FORTRAN(geqr2, geqr2_fn)
FORTRAN_PAIR(orm2r, orm2r, unm2r, orm2r_fn)
FORTRAN(trsm, trsm_fn)
FORTRAN_PAIR(geru, ger, geru, ger_fn)

enum { MATINV_MAX = 32 }; /* the documented limit of matinvBatched */

struct factors {
    struct operand pivots, info, tau;
};

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static char *at(const struct job *job, void *data, int64_t ld, int64_t i, int64_t j)
{
    return (char *)data + (i + j * ld) * number_bytes(job->type);
}

static bool is_zero(const struct job *job, const void *a, int64_t ld, int64_t k)
{
    return number_load(a, job->type, k + k * ld) == 0;
}

/* LU without exchanges; the number of the first zero on the diagonal, or 0. */
static int factor_in_place(const struct job *job, void *a)
{
    int n = (int)job->n, lda = (int)job->a.ld, one = 1, first = 0;
    struct number minus = number_of(job->type, -1);
    for (int k = 0; k < n; k++) {
        double complex pivot = number_load(a, job->type, k + (int64_t)k * lda);
        int rest = n - k - 1;
        if (pivot == 0) {
            first = first ? first : k + 1;
            continue;
        }
        for (int i = k + 1; i < n; i++)
            number_store(a, job->type, i + (int64_t)k * lda, number_load(a, job->type, i + (int64_t)k * lda) / pivot);
        if (rest)
            geru[type_index(job->type)](&rest, &rest, minus.bytes, at(job, a, lda, k + 1, k), &one,
                                        at(job, a, lda, k, k + 1), &lda, at(job, a, lda, k + 1, k + 1), &lda);
    }
    return first;
}

/* op(A) X = B with the factors in `a`, exchanges or none. */
static void solve(const struct job *job, const void *a, int lda, const int *pivots, void *b, int ldb, int nrhs)
{
    int n = (int)job->n, info = 0;
    unsigned type = type_index(job->type);
    struct number one = number_of(job->type, 1);
    const char *t = letter_of_trans(job->transa);
    bool plain = job->transa == CUBLAS_OP_N;
    if (pivots) {
        getrs[type](t, &n, &nrhs, a, &lda, pivots, b, &ldb, &info);
        return;
    }
    trsm[type]("L", plain ? "L" : "U", t, plain ? "U" : "N", &n, &nrhs, one.bytes, a, &lda, b, &ldb);
    trsm[type]("L", plain ? "U" : "L", t, plain ? "N" : "U", &n, &nrhs, one.bytes, a, &lda, b, &ldb);
}

static void set_identity(const struct job *job, void *c, int64_t ld)
{
    for (int64_t j = 0; j < job->n; j++)
        for (int64_t i = 0; i < job->n; i++)
            number_store(c, job->type, i + j * ld, i == j);
}

/* The inverse out of factors; the number of the first zero on the diagonal of U, or 0: then `c` stays as it is. */
static int invert(const struct job *job, const void *a, int lda, const int *pivots, void *c)
{
    for (int64_t k = 0; k < job->n; k++)
        if (is_zero(job, a, lda, k))
            return (int)k + 1;
    set_identity(job, c, job->c.ld);
    solve(job, a, lda, pivots, c, (int)job->c.ld, (int)job->n);
    return 0;
}

static int invert_small(const struct job *job, const void *a, void *c)
{
    char copy[MATINV_MAX * MATINV_MAX * sizeof(double complex)];
    int pivots[MATINV_MAX], n = (int)job->n, info = 0;
    for (int64_t j = 0; j < n; j++)
        memcpy(at(job, copy, n, 0, j), (const char *)a + j * job->a.ld * number_bytes(job->type),
               (size_t)(n * number_bytes(job->type)));
    getrf[type_index(job->type)](&n, &n, copy, &n, pivots, &info);
    return info ? info : invert(job, copy, n, pivots, c);
}

/* min |A x - C| for each column of C; the number of the first zero on the diagonal of R, or 0. */
static int least_squares(const struct job *job, void *a, void *c, char *tau, void *work)
{
    int m = (int)job->m, n = (int)job->n, nrhs = (int)job->k, lda = (int)job->a.ld, ldc = (int)job->c.ld, info = 0;
    unsigned type = type_index(job->type);
    struct number one = number_of(job->type, 1);
    geqr2[type](&m, &n, a, &lda, tau, work, &info);
    for (int k = 0; k < n; k++)
        if (is_zero(job, a, lda, k))
            return k + 1;
    orm2r[type]("L", number_is_complex(job->type) ? "C" : "T", &m, &nrhs, &n, a, &lda, tau, c, &ldc, work, &info, 1, 1);
    trsm[type]("L", "U", "N", "N", &n, &nrhs, one.bytes, a, &lda, c, &ldc);
    return 0;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

/* What member `i` of the batch works on, in the host's memory; NULL for what its routine does not have. */
struct member {
    void *a, *c, *tau;
    int *pivots;
};

/* Pivots outside of the matrix would make a device access memory far away: an error of the context here. */
static bool pivots_valid(struct job *job, const int *pivots)
{
    for (int64_t i = 0; i < job->n; i++)
        if (pivots[i] < 1 || pivots[i] > job->n) {
            blas_driver()->softgpu_operator_map(&job->op, 0, 1, 1, 1, false);
            return false;
        }
    return true;
}

static bool open_member(struct job *job, const struct factors *f, int64_t i, struct member *m)
{
    bool writes_a = job->variant == GETRF || job->variant == GEQRF || job->variant == GELS;
    bool has_c = job->variant != GETRF && job->variant != GEQRF, has_tau = job->variant == GEQRF;
    *m = (struct member){0};
    m->a = writes_a ? job_write(job, &job->a, i, SHAPE_FULL) : (void *)(uintptr_t)job_read(job, &job->a, i);
    if (!m->a || (has_c && !(m->c = job_write(job, &job->c, i, SHAPE_FULL))) ||
        (has_tau && !(m->tau = job_write(job, &f->tau, i, SHAPE_FULL))))
        return false;
    if (!f->pivots.address)
        return true;
    m->pivots = job->variant == GETRF ? job_write(job, &f->pivots, i, SHAPE_FULL)
                                      : (int *)(uintptr_t)job_read(job, &f->pivots, i);
    return m->pivots && (job->variant == GETRF || pivots_valid(job, m->pivots));
}

static int run_member(const struct job *job, const struct member *m, char *scratch)
{
    int rows = (int)job->m, n = (int)job->n, lda = (int)job->a.ld, info = 0;
    unsigned type = type_index(job->type);
    switch (job->variant) {
    case GETRF:
        if (!m->pivots)
            return factor_in_place(job, m->a);
        getrf[type](&n, &n, m->a, &lda, m->pivots, &info);
        return info;
    case GETRS:
        solve(job, m->a, lda, m->pivots, m->c, (int)job->c.ld, (int)job->k);
        return 0;
    case GETRI:
        return invert(job, m->a, lda, m->pivots, m->c);
    case MATINV:
        return invert_small(job, m->a, m->c);
    case GEQRF:
        geqr2[type](&rows, &n, m->a, &lda, m->tau, scratch, &info);
        return 0;
    default:
        return least_squares(job, m->a, m->c, scratch, scratch + n * number_bytes(job->type));
    }
}

static void run_factor(struct job *job)
{
    const struct factors *f = job->extra;
    struct member m;
    /* Room for tau and LAPACK's work. */
    char *scratch = malloc((size_t)((2 * job->n + job->k + 1) * number_bytes(job->type)));
    int *info = f->info.address ? job_write(job, &f->info, 0, SHAPE_FULL) : NULL;
    bool ok = scratch && (info || !f->info.address);
    for (int64_t i = 0; ok && i < job->batch; i++) {
        ok = open_member(job, f, i, &m);
        int result = ok && job->n ? run_member(job, &m, scratch) : 0;
        if (ok && info)
            info[i] = result;
    }
    free(scratch);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

/* Minus the position of the first bad argument behind the handle, as LAPACK counts; 0 when all are good. */
static int bad_argument(enum factor kind, const struct factor_call *f)
{
    int64_t n = at_least_one(f->n), m = at_least_one(f->m);
    switch (kind) {
    case GETRF:
        return f->n < 0 ? -1 : f->lda < n ? -3 : f->batch < 0 ? -6 : 0;
    case GETRS:
        return !valid_trans(f->trans) ? -1
               : f->n < 0             ? -2
               : f->nrhs < 0          ? -3
               : f->lda < n           ? -5
               : f->ldc < n           ? -8
               : f->batch < 0         ? -10
                                      : 0;
    case GETRI:
        return f->n < 0 ? -1 : f->lda < n ? -3 : f->ldc < n ? -6 : f->batch < 0 ? -8 : 0;
    case MATINV:
        return f->n < 0 || f->n > MATINV_MAX ? -1 : f->lda < n ? -3 : f->ldc < n ? -5 : f->batch < 0 ? -7 : 0;
    case GEQRF:
        return f->m < 0 ? -1 : f->n < 0 ? -2 : f->lda < m ? -4 : f->batch < 0 ? -7 : 0;
    default:
        return !valid_trans(f->trans) ? -1
               : f->m < 0             ? -2
               : f->n < 0             ? -3
               : f->nrhs < 0          ? -4
               : f->lda < m           ? -6
               : f->ldc < m           ? -8
               : f->batch < 0         ? -11
                                      : 0;
    }
}

static cublasStatus_t check(enum factor kind, const char *name, const struct factor_call *f)
{
    bool on_host = kind == GETRS || kind == GEQRF || kind == GELS;
    int bad = bad_argument(kind, f);
    if (on_host && !f->host_info)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (on_host)
        *f->host_info = bad;
    if (bad)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (kind == GELS && (f->trans != CUBLAS_OP_N || f->m < f->n))
        return blas_unsupported(name);
    return CUBLAS_STATUS_SUCCESS;
}

static struct operand addresses(const void *array, cudaDataType type, int64_t rows, int64_t cols, int64_t ld)
{
    struct operand o = matrix(array, type, rows, cols, ld);
    o.array = true;
    return o;
}

cublasStatus_t blas_factor(cublasHandle_t handle, const char *name, enum factor kind, cudaDataType type,
                           const struct factor_call *f)
{
    struct job *job;
    struct factors *extra = NULL;
    cublasStatus_t status = job_new(handle, name, type, run_factor, &job);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = check(kind, name, f);
    if (status == CUBLAS_STATUS_SUCCESS && !(extra = calloc(1, sizeof *extra)))
        status = CUBLAS_STATUS_ALLOC_FAILED;
    if (status != CUBLAS_STATUS_SUCCESS || !f->batch) {
        free(extra);
        job_free(job);
        return status;
    }
    bool tall = kind == GEQRF || kind == GELS;
    int64_t rows = tall ? f->m : f->n;
    job->variant = kind;
    job->transa = kind == GETRS ? f->trans : CUBLAS_OP_N;
    job->m = rows;
    job->n = f->n;
    job->k = f->nrhs;
    job->batch = f->batch;
    job->a = addresses(f->a, type, rows, f->n, f->lda);
    job->c = addresses(f->c, type, rows, kind == GETRI || kind == MATINV ? f->n : f->nrhs, f->ldc);
    extra->tau = addresses(f->tau, type, f->m < f->n ? f->m : f->n, 1, at_least_one(f->m < f->n ? f->m : f->n));
    extra->pivots = vector(f->pivots, CUDA_R_32I, f->n, 1);
    extra->pivots.stride = f->n;
    extra->info = vector(f->info, CUDA_R_32I, f->batch, 1);
    job->extra = extra;
    return job_submit(handle, job);
}
