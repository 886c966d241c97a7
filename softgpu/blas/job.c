#include "softgpu/blas/blas.h"

#include <stdlib.h>

#include "softgpu/blas/log.h"

/* ---- making ----------------------------------------------------------------------------------------------------- */

static void run(struct softgpu_operator *op)
{
    struct job *job = (struct job *)op;
    job->run(job);
}

static void drop(struct softgpu_operator *op)
{
    job_free((struct job *)op);
}

void job_free(struct job *job)
{
    if (!job)
        return;
    if (job->release)
        job->release(job);
    else
        free(job->extra);
    free(job);
}

cublasStatus_t job_new(cublasHandle_t handle, const char *name, cudaDataType type, void (*work)(struct job *job),
                       struct job **out)
{
    *out = NULL;
    if (!blas_handle_alive(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    blas_log(BLAS_LOG_TRACE, name, "called");
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return CUBLAS_STATUS_ALLOC_FAILED;
    job->op.name = name;
    job->op.run = run;
    job->op.drop = drop;
    job->run = work;
    job->type = type;
    job->math = handle->math_mode;
    job->batch = 1;
    *out = job;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t job_scalar(cublasHandle_t handle, struct scalar *scalar, const void *pointer, cudaDataType type)
{
    *scalar = (struct scalar){.type = type};
    if (!pointer)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
        scalar->device = (CUdeviceptr)(uintptr_t)pointer;
    else
        scalar->value = number_load(pointer, type, 0);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t job_result(cublasHandle_t handle, struct job *job, void *pointer, cudaDataType type)
{
    if (!pointer)
        return CUBLAS_STATUS_INVALID_VALUE;
    job->result_type = type;
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
        job->device_result = (CUdeviceptr)(uintptr_t)pointer;
    else
        job->host_result = pointer;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t job_submit_to(CUstream stream, struct job *job)
{
    bool wait = job->host_result != NULL;
    if (!blas_enter()) {
        job_free(job);
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    const struct blas_driver *d = blas_driver();
    CUresult result = d->softgpu_operator_submit(stream, &job->op);
    if (result != CUDA_SUCCESS)
        job_free(job);
    else if (wait)
        result = d->cuStreamSynchronize(stream);
    return blas_status(result);
}

cublasStatus_t job_submit(cublasHandle_t handle, struct job *job)
{
    const int64_t sizes[] = {job->m, job->n, job->k, job->kl, job->ku, job->a.ld, job->b.ld, job->c.ld};
    /* OpenBLAS counts with 32 bits. */
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i] > INT32_MAX || sizes[i] < -INT32_MAX) {
            const char *name = job->op.name;
            job_free(job);
            return blas_unsupported(name);
        }
    return job_submit_to(handle->stream, job);
}

struct operand matrix(const void *address, cudaDataType type, int64_t rows, int64_t cols, int64_t ld)
{
    /* Without columns it is nothing, wherever it lies; an operand that has rows alone would be a vector. */
    return (struct operand){
        .address = (CUdeviceptr)(uintptr_t)address, .type = type, .rows = cols ? rows : 0, .cols = cols, .ld = ld};
}

struct operand vector(const void *address, cudaDataType type, int64_t n, int64_t inc)
{
    return (struct operand){.address = (CUdeviceptr)(uintptr_t)address, .type = type, .rows = n, .cols = 0, .ld = inc};
}

struct operand packed(const void *address, cudaDataType type, int64_t n)
{
    return vector(address, type, n * (n + 1) / 2, 1);
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

bool job_load_scalar(struct job *job, const struct scalar *scalar, double complex *value)
{
    if (!scalar->device) {
        *value = scalar->value;
        return true;
    }
    int64_t bytes = number_bytes(scalar->type);
    const void *at =
        blas_driver()->softgpu_operator_map(&job->op, scalar->device, 1, (uint64_t)bytes, (uint64_t)bytes, false);
    if (at)
        *value = number_load(at, scalar->type, 0);
    return at != NULL;
}

/* Where member `i` of a batch starts. */
static bool member(struct job *job, const struct operand *o, int64_t i, CUdeviceptr *address)
{
    *address = o->address;
    if (!o->array) {
        *address += (CUdeviceptr)(i * o->stride * number_bytes(o->type));
        return true;
    }
    const void *at = blas_driver()->softgpu_operator_map(&job->op, o->address + (CUdeviceptr)i * sizeof(void *), 1,
                                                         sizeof(void *), sizeof(void *), false);
    if (at)
        memcpy(address, at, sizeof *address);
    return at != NULL;
}

struct region {
    uint64_t rows, row_bytes, pitch;
};

static struct region region_of(const struct operand *o)
{
    int64_t size = number_bytes(o->type);
    if (!o->cols) {
        int64_t step = o->ld < 0 ? -o->ld : o->ld;
        uint64_t bytes = o->rows > 0 ? (uint64_t)(((o->rows - 1) * step + 1) * size) : 0;
        return (struct region){1, bytes, bytes};
    }
    int64_t lines = o->row_major ? o->rows : o->cols, length = o->row_major ? o->cols : o->rows;
    return (struct region){(uint64_t)lines, (uint64_t)(length * size), (uint64_t)(o->ld * size)};
}

const void *job_read(struct job *job, const struct operand *o, int64_t i)
{
    CUdeviceptr address;
    struct region r = region_of(o);
    if (!r.rows || !r.row_bytes)
        return "";
    if (!member(job, o, i, &address))
        return NULL;
    return blas_driver()->softgpu_operator_map(&job->op, address, r.rows, r.row_bytes, r.pitch, false);
}

static void mark(struct job *job, const struct operand *o, CUdeviceptr address, enum shape shape)
{
    const struct blas_driver *d = blas_driver();
    uint64_t size = (uint64_t)number_bytes(o->type);
    struct region r = region_of(o);
    if (!o->cols) {
        uint64_t step = (uint64_t)(o->ld < 0 ? -o->ld : o->ld);
        for (int64_t i = 0; i < o->rows; i++)
            d->softgpu_operator_mark(&job->op, address + (uint64_t)i * step * size, size);
        return;
    }
    for (uint64_t line = 0; line < r.rows; line++) {
        uint64_t first = shape == SHAPE_LOWER ? line * size : 0;
        uint64_t end = shape == SHAPE_UPPER && (line + 1) * size < r.row_bytes ? (line + 1) * size : r.row_bytes;
        if (first < end)
            d->softgpu_operator_mark(&job->op, address + line * r.pitch + first, end - first);
    }
}

void *job_write(struct job *job, const struct operand *o, int64_t i, enum shape shape)
{
    static char nothing[16];
    CUdeviceptr address;
    struct region r = region_of(o);
    if (!r.rows || !r.row_bytes)
        return nothing;
    if (!member(job, o, i, &address))
        return NULL;
    void *at = blas_driver()->softgpu_operator_map(&job->op, address, r.rows, r.row_bytes, r.pitch, true);
    if (at)
        mark(job, o, address, shape);
    return at;
}

void job_return(struct job *job, double complex value)
{
    void *at = job->host_result;
    if (!at) {
        struct operand result = {.address = job->device_result, .type = job->result_type, .rows = 1, .ld = 1};
        at = job_write(job, &result, 0, SHAPE_FULL);
    }
    if (at)
        number_store(at, job->result_type, 0, value);
}

void clear(void *data, const struct operand *o)
{
    size_t size = (size_t)number_bytes(o->type);
    if (!o->cols) {
        int64_t step = o->ld < 0 ? -o->ld : o->ld;
        for (int64_t i = 0; i < o->rows; i++)
            memset((char *)data + (size_t)(i * step) * size, 0, size);
        return;
    }
    for (int64_t j = 0; j < o->cols; j++)
        memset((char *)data + (size_t)(j * o->ld) * size, 0, (size_t)o->rows * size);
}
