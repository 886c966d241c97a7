/* cublasLtMatrixTransform: C = alpha op(A) + beta op(B), between memory orders and types. Both inputs are converted to
 * the scale type, the sum is rounded to it, and then to C's type. */
#include "softgpu/blas/lt.h"

#include <stdlib.h>

struct transform {
    struct lt_transform op;
    struct lt_layout a, b, c;
};

/* ---- memory orders ---------------------------------------------------------------------------------------------- */

enum { GROUP = 32 }; /* columns of a tiled order that lie together */

static int64_t up_to(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

/* A layout as lines of `length` elements that start every `ld` elements. */
static void lines_of(const struct lt_layout *l, int64_t *lines, int64_t *length)
{
    int64_t rows = (int64_t)l->rows, cols = (int64_t)l->cols;
    *lines = up_to(cols, GROUP) / GROUP;
    switch (l->order) {
    case CUBLASLT_ORDER_COL:
        *lines = cols;
        *length = rows;
        break;
    case CUBLASLT_ORDER_ROW:
        *lines = rows;
        *length = cols;
        break;
    case CUBLASLT_ORDER_COL32:
        *length = rows * GROUP;
        break;
    case CUBLASLT_ORDER_COL4_4R2_8C:
        *length = up_to(rows, 8) * GROUP;
        break;
    default:
        *length = up_to(rows, 32) * GROUP;
    }
}

/* Where element (row, col) lies. */
static int64_t place(const struct lt_layout *l, int64_t row, int64_t col)
{
    int64_t group = col / GROUP * l->ld, c = col % GROUP;
    switch (l->order) {
    case CUBLASLT_ORDER_COL:
        return row + col * l->ld;
    case CUBLASLT_ORDER_ROW:
        return row * l->ld + col;
    case CUBLASLT_ORDER_COL32:
        return group + row * GROUP + c;
    case CUBLASLT_ORDER_COL4_4R2_8C: {
        /* Tiles of 8 rows: the even ones, then the odd ones; in each half 8 columns after the other, of which the first
         * four of all four rows come before the last four. */
        int64_t r = row % 8;
        return group + row / 8 * 8 * GROUP + r % 2 * 4 * GROUP + c / 8 * 32 + c % 8 / 4 * 16 + r / 2 * 4 + c % 4;
    }
    default: {
        int64_t r = row % 32;
        return group + row / 32 * 32 * GROUP + ((r % 8 / 2 * 4 + r / 8) * 2 + r % 2) * GROUP + c;
    }
    }
}

/* ---- when it runs ----------------------------------------------------------------------------------------------- */

static double complex as(cudaDataType type, double complex value)
{
    char room[sizeof(double complex)];
    number_store(room, type, 0, value);
    return number_load(room, type, 0);
}

static double complex times(double complex a, double complex b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* scale * op(X) at (i, j). */
static double complex term(const struct transform *t, const void *data, const struct lt_layout *l, int32_t op,
                           double complex scale, int64_t i, int64_t j)
{
    bool plain = op == CUBLAS_OP_N;
    double complex value = number_load(data, (cudaDataType)l->type, place(l, plain ? i : j, plain ? j : i));
    value = as((cudaDataType)t->op.scale_type, value);
    return times(scale, op == CUBLAS_OP_C ? conj(value) : value);
}

static void run_transform(struct job *job)
{
    const struct transform *t = job->extra;
    double complex alpha, beta;
    if (!job_load_scalar(job, &job->alpha, &alpha) || !job_load_scalar(job, &job->beta, &beta))
        return;
    for (int64_t m = 0; m < job->batch; m++) {
        /* What is scaled by zero is not read. */
        const void *a = job->a.address && alpha != 0 ? job_read(job, &job->a, m) : NULL;
        const void *b = job->b.address && beta != 0 ? job_read(job, &job->b, m) : NULL;
        void *c = job_write(job, &job->c, m, SHAPE_FULL);
        if (!c || (job->a.address && alpha != 0 && !a) || (job->b.address && beta != 0 && !b))
            return;
        for (int64_t j = 0; j < (int64_t)t->c.cols; j++)
            for (int64_t i = 0; i < (int64_t)t->c.rows; i++) {
                double complex value = a ? term(t, a, &t->a, t->op.transa, alpha, i, j) : 0;
                value += b ? term(t, b, &t->b, t->op.transb, beta, i, j) : 0;
                number_store(c, (cudaDataType)t->c.type, place(&t->c, i, j), as((cudaDataType)t->op.scale_type, value));
            }
    }
}

/* ---- when it is called ------------------------------------------------------------------------------------------ */

/* An input that is not there has no layout; otherwise its op() has the shape of C. */
static cublasStatus_t check_layout(const struct lt_layout *l, int32_t op, const struct lt_layout *c)
{
    int64_t lines, length;
    bool plain = op == CUBLAS_OP_N;
    if (l->order < CUBLASLT_ORDER_COL || l->order > CUBLASLT_ORDER_COL32_2R_4R4)
        return CUBLAS_STATUS_INVALID_VALUE;
    lines_of(l, &lines, &length);
    if (l->rows > INT32_MAX || l->cols > INT32_MAX || l->plane_offset)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (op < CUBLAS_OP_N || op > CUBLAS_OP_C || l->rows != (plain ? c->rows : c->cols) ||
        l->cols != (plain ? c->cols : c->rows) || l->batch_count != c->batch_count || l->batch_count < 0 ||
        l->ld < length)
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* Whether the scale type can hold what the layout's type does: real ones of either kind, complex ones, integers. */
static bool scalable(int32_t scale, int32_t type)
{
    bool integers = type == CUDA_R_8I || type == CUDA_R_32I;
    if (!number_bytes((cudaDataType)type) || type == CUDA_R_8U || type == CUDA_C_8U || type == CUDA_C_8I)
        return false;
    switch (scale) {
    case CUDA_R_32I:
        return integers;
    case CUDA_R_16F:
        return type == CUDA_R_16F;
    case CUDA_R_32F:
    case CUDA_R_64F:
        return !number_is_complex((cudaDataType)type);
    case CUDA_C_32F:
    case CUDA_C_64F:
        return number_is_complex((cudaDataType)type);
    default:
        return false;
    }
}

static cublasStatus_t check(const struct lt_transform *op, const struct lt_layout *a, const struct lt_layout *b,
                            const struct lt_layout *c)
{
    cublasStatus_t status = check_layout(c, CUBLAS_OP_N, c);
    if (status == CUBLAS_STATUS_SUCCESS && a)
        status = check_layout(a, op->transa, c);
    if (status == CUBLAS_STATUS_SUCCESS && b)
        status = check_layout(b, op->transb, c);
    if (status == CUBLAS_STATUS_SUCCESS && op->pointer_mode != CUBLASLT_POINTER_MODE_HOST &&
        op->pointer_mode != CUBLASLT_POINTER_MODE_DEVICE)
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS &&
        (!scalable(op->scale_type, c->type) || (a && !scalable(op->scale_type, a->type)) ||
         (b && !scalable(op->scale_type, b->type))))
        status = CUBLAS_STATUS_NOT_SUPPORTED;
    return status;
}

static struct operand operand_of(const void *address, const struct lt_layout *l)
{
    int64_t lines, length;
    lines_of(l, &lines, &length);
    struct operand o = matrix(address, (cudaDataType)l->type, length, lines, l->ld);
    o.stride = l->stride;
    o.array = l->batch_mode == CUBLASLT_BATCH_MODE_POINTER_ARRAY;
    return o;
}

static struct scalar scalar_of(const struct lt_transform *op, const void *pointer)
{
    struct scalar s = {.type = (cudaDataType)op->scale_type};
    if (op->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE)
        s.device = (CUdeviceptr)(uintptr_t)pointer;
    else if (pointer)
        s.value = number_load(pointer, s.type, 0);
    return s;
}

cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t lightHandle, cublasLtMatrixTransformDesc_t transformDesc,
                                       const void *alpha, const void *A, cublasLtMatrixLayout_t Adesc, const void *beta,
                                       const void *B, cublasLtMatrixLayout_t Bdesc, void *C,
                                       cublasLtMatrixLayout_t Cdesc, cudaStream_t stream)
{
    const struct lt_transform *op = (const struct lt_transform *)transformDesc;
    const struct lt_layout *a = A ? (const struct lt_layout *)Adesc : NULL;
    const struct lt_layout *b = B ? (const struct lt_layout *)Bdesc : NULL;
    const struct lt_layout *c = (const struct lt_layout *)Cdesc;
    struct job *job;
    struct transform *t = NULL;
    cublasStatus_t status =
        job_new((cublasHandle_t)lightHandle, "cublasLtMatrixTransform", CUDA_R_32F, run_transform, &job);
    if (status == CUBLAS_STATUS_SUCCESS && (!op || !C || !c || (A && (!a || !alpha)) || (B && (!b || !beta))))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = check(op, a, b, c);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED)
        blas_unsupported("cublasLtMatrixTransform");
    if (status == CUBLAS_STATUS_SUCCESS && !(t = calloc(1, sizeof *t)))
        status = CUBLAS_STATUS_ALLOC_FAILED;
    if (status != CUBLAS_STATUS_SUCCESS) {
        job_free(job);
        return status;
    }
    *t = (struct transform){.op = *op, .a = a ? *a : *c, .b = b ? *b : *c, .c = *c};
    job->extra = t;
    job->batch = c->batch_count;
    job->a = operand_of(A, &t->a);
    job->b = operand_of(B, &t->b);
    job->c = operand_of(C, c);
    job->alpha = A ? scalar_of(op, alpha) : (struct scalar){.type = CUDA_R_32F};
    job->beta = B ? scalar_of(op, beta) : (struct scalar){.type = CUDA_R_32F};
    return job_submit_to(stream, job);
}
