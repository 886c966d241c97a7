/* Reductions and updates of vectors. */
#include "softgpu/blas/level1.h"

#include <stdlib.h>

/* A vector that is worked on in type `execution`: the program's own memory, or a packed copy of it. */
struct view {
    void *data;
    int inc;
    void *copy; /* to be freed */
    void *own;  /* the program's memory */
};

static bool valid_execution(cudaDataType execution)
{
    return execution == CUDA_R_32F || execution == CUDA_R_64F || execution == CUDA_C_32F || execution == CUDA_C_64F;
}

/* Where element i lies: from the other end when the increment is negative. */
static int64_t element(const struct operand *o, int64_t i)
{
    return o->ld < 0 ? (o->rows - 1 - i) * -o->ld : i * o->ld;
}

static bool view_open(struct job *job, const struct operand *o, bool write, cudaDataType execution, struct view *v)
{
    void *data = write ? job_write(job, o, 0, SHAPE_FULL) : (void *)(uintptr_t)job_read(job, o, 0);
    *v = (struct view){data, (int)o->ld, NULL, data};
    if (!data || o->type == execution)
        return data != NULL;
    v->copy = malloc((size_t)(o->rows * number_bytes(execution)));
    for (int64_t i = 0; v->copy && i < o->rows; i++)
        number_store(v->copy, execution, i, number_load(data, o->type, element(o, i)));
    v->data = v->copy;
    v->inc = 1;
    return v->copy != NULL;
}

/* Ends the use of a view of *back, where its values go; NULL for nowhere. */
static void view_close(struct view *v, const struct operand *back, cudaDataType execution)
{
    for (int64_t i = 0; v->copy && back && i < back->rows; i++)
        number_store(v->own, back->type, element(back, i), number_load(v->copy, execution, i));
    free(v->copy);
}

/* ---- reductions ------------------------------------------------------------------------------------------------- */

static double complex dot(cudaDataType type, int n, const struct view *x, const struct view *y, bool conjugate)
{
    float complex c = 0;
    double complex z = 0;
    switch ((int)type) {
    case CUDA_R_32F:
        return (double)cblas_sdot(n, x->data, x->inc, y->data, y->inc);
    case CUDA_R_64F:
        return cblas_ddot(n, x->data, x->inc, y->data, y->inc);
    case CUDA_C_32F:
        if (conjugate)
            cblas_cdotc_sub(n, x->data, x->inc, y->data, y->inc, &c);
        else
            cblas_cdotu_sub(n, x->data, x->inc, y->data, y->inc, &c);
        return (double complex)c;
    default:
        if (conjugate)
            cblas_zdotc_sub(n, x->data, x->inc, y->data, y->inc, &z);
        else
            cblas_zdotu_sub(n, x->data, x->inc, y->data, y->inc, &z);
        return z;
    }
}

static double norm(cudaDataType type, int n, const struct view *x)
{
    switch ((int)type) {
    case CUDA_R_32F:
        return (double)cblas_snrm2(n, x->data, x->inc);
    case CUDA_R_64F:
        return cblas_dnrm2(n, x->data, x->inc);
    case CUDA_C_32F:
        return (double)cblas_scnrm2(n, x->data, x->inc);
    default:
        return cblas_dznrm2(n, x->data, x->inc);
    }
}

/* Not OpenBLAS's: scasum of 0.3.21, as Debian 12 has it, adds wrong terms on processors with AVX-512. */
static double sum(cudaDataType type, int n, const struct view *x)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        double complex value = number_load(x->data, type, i * x->inc);
        total += __builtin_fabs(creal(value)) + __builtin_fabs(cimag(value));
    }
    return total;
}

/* Position of the first extreme of |re| + |im|, from 1; a NaN is never one. */
static int64_t extreme(cudaDataType type, int64_t n, const struct view *x, bool least)
{
    int64_t best = 0;
    double extreme_value = 0;
    for (int64_t i = 0; i < n; i++) {
        double complex value = number_load(x->data, type, i * x->inc);
        double size = __builtin_fabs(creal(value)) + __builtin_fabs(cimag(value));
        if (size == size && (!best || (least ? size < extreme_value : size > extreme_value))) {
            best = i + 1;
            extreme_value = size;
        }
    }
    return best ? best : 1;
}

static void run_reduce(struct job *job)
{
    struct view x = {0}, y = {0};
    double complex result = 0;
    int n = (int)job->n;
    bool two = job->variant == REDUCE_DOT || job->variant == REDUCE_DOTC;
    if (n > 0 && (two || job->a.ld > 0)) {
        if (!view_open(job, &job->a, false, job->type, &x) || (two && !view_open(job, &job->b, false, job->type, &y)))
            goto out;
        switch (job->variant) {
        case REDUCE_AMAX:
        case REDUCE_AMIN:
            result = (double)extreme(job->type, n, &x, job->variant == REDUCE_AMIN);
            break;
        case REDUCE_ASUM:
            result = sum(job->type, n, &x);
            break;
        case REDUCE_NRM2:
            result = norm(job->type, n, &x);
            break;
        default:
            result = dot(job->type, n, &x, &y, job->variant == REDUCE_DOTC);
        }
    }
    job_return(job, result);
out:
    free(x.copy);
    free(y.copy);
}

cublasStatus_t blas_reduce(cublasHandle_t handle, const char *name, enum reduction kind, int64_t n, struct strided x,
                           struct strided y, void *result, cudaDataType result_type, cudaDataType execution)
{
    struct job *job;
    cublasStatus_t status = job_new(handle, name, execution, run_reduce, &job);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_result(handle, job, result, result_type);
    if (status == CUBLAS_STATUS_SUCCESS && !(valid_execution(execution) && number_bytes(x.type)))
        status = blas_unsupported(name);
    if (status != CUBLAS_STATUS_SUCCESS) {
        job_free(job);
        return status;
    }
    job->variant = kind;
    job->n = n;
    job->a = vector(x.data, x.type, n, x.inc);
    job->b = vector(y.data, y.type, n, y.inc);
    return job_submit(handle, job);
}

/* ---- updates ---------------------------------------------------------------------------------------------------- */

enum update { UPDATE_SCAL, UPDATE_AXPY, UPDATE_COPY, UPDATE_SWAP, UPDATE_ROT, UPDATE_ROTM };

static void axpy(const struct job *job, double complex alpha, const struct view *x, const struct view *y)
{
    int n = (int)job->n;
    float complex narrow = (float complex)alpha;
    switch ((int)job->type) {
    case CUDA_R_32F:
        cblas_saxpy(n, (float)creal(alpha), x->data, x->inc, y->data, y->inc);
        break;
    case CUDA_R_64F:
        cblas_daxpy(n, creal(alpha), x->data, x->inc, y->data, y->inc);
        break;
    case CUDA_C_32F:
        cblas_caxpy(n, &narrow, x->data, x->inc, y->data, y->inc);
        break;
    default:
        cblas_zaxpy(n, &alpha, x->data, x->inc, y->data, y->inc);
    }
}

/* Not OpenBLAS's: its versions differ in whether 0 * NaN is NaN, which it is here. */
static void scale(const struct job *job, double complex alpha, const struct view *x)
{
    bool real_alpha = !number_is_complex(job->alpha.type);
    for (int64_t i = 0; i < job->n; i++) {
        double complex v = number_load(x->data, job->type, i * x->inc);
        double re = creal(v), im = cimag(v), ar = creal(alpha), ai = cimag(alpha);
        v = real_alpha ? CMPLX(re * ar, im * ar) : CMPLX(re * ar - im * ai, re * ai + im * ar);
        number_store(x->data, job->type, i * x->inc, v);
    }
}

/* x' = c x + s y, y' = c y - conj(s) x */
static void rotate(const struct job *job, double c, double complex s, const struct operand *ox, void *x,
                   const struct operand *oy, void *y)
{
    for (int64_t i = 0; i < job->n; i++) {
        int64_t ix = element(ox, i), iy = element(oy, i);
        double complex a = number_load(x, ox->type, ix), b = number_load(y, oy->type, iy);
        number_store(x, ox->type, ix, c * a + s * b);
        number_store(y, oy->type, iy, c * b - conj(s) * a);
    }
}

static void rotate_modified(const struct job *job, const void *param, const struct view *x, const struct view *y)
{
    if (job->type == CUDA_R_32F)
        cblas_srotm((int)job->n, x->data, x->inc, y->data, y->inc, param);
    else
        cblas_drotm((int)job->n, x->data, x->inc, y->data, y->inc, param);
}

static void exchange(const struct job *job, void *x, void *y, bool both)
{
    for (int64_t i = 0; i < job->n; i++) {
        int64_t ix = element(&job->a, i), iy = element(&job->b, i);
        double complex a = number_load(x, job->a.type, ix), b = number_load(y, job->b.type, iy);
        number_store(y, job->b.type, iy, a);
        if (both)
            number_store(x, job->a.type, ix, b);
    }
}

static void run_axpy(struct job *job)
{
    struct view x = {0}, y = {0};
    double complex alpha;
    if (job_load_scalar(job, &job->alpha, &alpha) && view_open(job, &job->a, false, job->type, &x) &&
        view_open(job, &job->b, true, job->type, &y)) {
        if (alpha != 0)
            axpy(job, alpha, &x, &y);
        view_close(&y, &job->b, job->type);
    }
    view_close(&x, NULL, job->type);
}

static void run_scal(struct job *job)
{
    struct view x = {0};
    double complex alpha;
    if (!job_load_scalar(job, &job->alpha, &alpha) || !view_open(job, &job->a, true, job->type, &x))
        return;
    scale(job, alpha, &x);
    view_close(&x, &job->a, job->type);
}

static void run_exchange(struct job *job)
{
    bool both = job->variant == UPDATE_SWAP;
    void *x = both ? job_write(job, &job->a, 0, SHAPE_FULL) : (void *)(uintptr_t)job_read(job, &job->a, 0);
    void *y = job_write(job, &job->b, 0, SHAPE_FULL);
    if (x && y)
        exchange(job, x, y, both);
}

static void run_rot(struct job *job)
{
    double complex c, s;
    if (!job_load_scalar(job, &job->alpha, &c) || !job_load_scalar(job, &job->beta, &s))
        return;
    void *x = job_write(job, &job->a, 0, SHAPE_FULL), *y = job_write(job, &job->b, 0, SHAPE_FULL);
    if (x && y)
        rotate(job, creal(c), s, &job->a, x, &job->b, y);
}

static void run_rotm(struct job *job)
{
    const void *param = job->extra ? job->extra : job_read(job, &job->c, 0);
    struct view x = {0}, y = {0};
    if (param && view_open(job, &job->a, true, job->type, &x) && view_open(job, &job->b, true, job->type, &y))
        rotate_modified(job, param, &x, &y);
    view_close(&x, &job->a, job->type);
    view_close(&y, &job->b, job->type);
}

static cublasStatus_t update(cublasHandle_t handle, struct job *job, int64_t n, struct strided x, struct strided y)
{
    job->n = n;
    job->a = vector(x.data, x.type, n, x.inc);
    job->b = vector(y.data, y.type, n, y.inc);
    if (n > 0)
        return job_submit(handle, job);
    job_free(job);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t give_up(struct job *job, cublasStatus_t status)
{
    job_free(job);
    return status;
}

cublasStatus_t blas_scal(cublasHandle_t handle, const char *name, int64_t n, const void *alpha, cudaDataType alpha_type,
                         struct strided x, cudaDataType execution)
{
    struct job *job;
    cublasStatus_t status = job_new(handle, name, execution, run_scal, &job);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, alpha, alpha_type);
    if (status == CUBLAS_STATUS_SUCCESS && !(valid_execution(execution) && number_bytes(x.type)))
        status = blas_unsupported(name);
    if (status != CUBLAS_STATUS_SUCCESS)
        return give_up(job, status);
    return update(handle, job, x.inc > 0 ? n : 0, x, (struct strided){0});
}

cublasStatus_t blas_axpy(cublasHandle_t handle, const char *name, int64_t n, const void *alpha, cudaDataType alpha_type,
                         struct strided x, struct strided y, cudaDataType execution)
{
    struct job *job;
    cublasStatus_t status = job_new(handle, name, execution, run_axpy, &job);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, alpha, alpha_type);
    if (status == CUBLAS_STATUS_SUCCESS &&
        !(valid_execution(execution) && number_bytes(x.type) && number_bytes(y.type)))
        status = blas_unsupported(name);
    if (status != CUBLAS_STATUS_SUCCESS)
        return give_up(job, status);
    return update(handle, job, n, x, y);
}

static cublasStatus_t exchange_job(cublasHandle_t handle, const char *name, int variant, int64_t n, struct strided x,
                                   struct strided y)
{
    struct job *job;
    cublasStatus_t status = job_new(handle, name, x.type, run_exchange, &job);
    if (status == CUBLAS_STATUS_SUCCESS && (x.type != y.type || !number_bytes(x.type)))
        status = blas_unsupported(name);
    if (status != CUBLAS_STATUS_SUCCESS)
        return give_up(job, status);
    job->variant = variant;
    return update(handle, job, n, x, y);
}

cublasStatus_t blas_copy(cublasHandle_t handle, const char *name, int64_t n, struct strided x, struct strided y)
{
    return exchange_job(handle, name, UPDATE_COPY, n, x, y);
}

cublasStatus_t blas_swap(cublasHandle_t handle, const char *name, int64_t n, struct strided x, struct strided y)
{
    return exchange_job(handle, name, UPDATE_SWAP, n, x, y);
}

cublasStatus_t blas_rot(cublasHandle_t handle, const char *name, int64_t n, struct strided x, struct strided y,
                        const void *c, cudaDataType c_type, const void *s, cudaDataType s_type)
{
    struct job *job;
    cublasStatus_t status = job_new(handle, name, x.type, run_rot, &job);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->alpha, c, c_type);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = job_scalar(handle, &job->beta, s, s_type);
    if (status == CUBLAS_STATUS_SUCCESS && (!number_bytes(x.type) || x.type != y.type))
        status = blas_unsupported(name);
    if (status != CUBLAS_STATUS_SUCCESS)
        return give_up(job, status);
    return update(handle, job, n, x, y);
}

cublasStatus_t blas_rotm(cublasHandle_t handle, const char *name, int64_t n, struct strided x, struct strided y,
                         const void *param)
{
    enum { PARAMS = 5 };
    struct job *job;
    cublasStatus_t status = job_new(handle, name, x.type, run_rotm, &job);
    if (status == CUBLAS_STATUS_SUCCESS && !param)
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS && handle->pointer_mode == CUBLAS_POINTER_MODE_HOST) {
        size_t bytes = PARAMS * (size_t)number_bytes(x.type);
        if ((job->extra = malloc(bytes)))
            memcpy(job->extra, param, bytes);
        else
            status = CUBLAS_STATUS_ALLOC_FAILED;
    }
    if (status != CUBLAS_STATUS_SUCCESS)
        return give_up(job, status);
    job->c = vector(param, x.type, PARAMS, 1);
    return update(handle, job, n, x, y);
}
