/* Making Givens rotations: functions of a few scalars, which lie on the host or on the device. */
#include "softgpu/blas/level1.h"

#include <stdlib.h>

enum { SCALARS = 5, MODIFIED = 5 };

/* The scalars of one call: where each is, how many numbers it has, and whether it is written. */
struct rotation {
    void *at[SCALARS];
    cudaDataType type[SCALARS];
    int length[SCALARS];
    bool written[SCALARS];
};

static void compute(cudaDataType type, bool modified, void *const at[SCALARS])
{
    if (modified && type == CUDA_R_32F)
        cblas_srotmg(at[0], at[1], at[2], *(const float *)at[3], at[4]);
    else if (modified)
        cblas_drotmg(at[0], at[1], at[2], *(const double *)at[3], at[4]);
    else if (type == CUDA_R_32F)
        cblas_srotg(at[0], at[1], at[2], at[3]);
    else if (type == CUDA_R_64F)
        cblas_drotg(at[0], at[1], at[2], at[3]);
    else if (type == CUDA_C_32F)
        cblas_crotg(at[0], at[1], at[2], at[3]);
    else
        cblas_zrotg(at[0], at[1], at[2], at[3]);
}

static void run_rotation(struct job *job)
{
    const struct rotation *r = job->extra;
    void *at[SCALARS] = {0};
    for (int i = 0; i < SCALARS && r->length[i]; i++) {
        struct operand scalar = vector(r->at[i], r->type[i], r->length[i], 1);
        if (job->host_result)
            at[i] = r->at[i];
        else if (r->written[i])
            at[i] = job_write(job, &scalar, 0, SHAPE_FULL);
        else
            at[i] = (void *)(uintptr_t)job_read(job, &scalar, 0);
        if (!at[i])
            return;
    }
    if (at[0] && at[1] && at[2] && at[3])
        compute(job->type, job->variant != 0, at);
}

static cublasStatus_t submit(cublasHandle_t handle, const char *name, cudaDataType type, const struct rotation *given,
                             bool modified)
{
    struct job *job;
    cublasStatus_t status = job_new(handle, name, type, run_rotation, &job);
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < SCALARS; i++)
        if (given->length[i] && !given->at[i])
            status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS && !(job->extra = malloc(sizeof *given)))
        status = CUBLAS_STATUS_ALLOC_FAILED;
    if (status != CUBLAS_STATUS_SUCCESS) {
        job_free(job);
        return status;
    }
    memcpy(job->extra, given, sizeof *given);
    job->variant = modified;
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_HOST)
        job->host_result = given->at[0];
    return job_submit(handle, job);
}

cublasStatus_t blas_rotg(cublasHandle_t handle, const char *name, cudaDataType type, void *a, void *b, void *c, void *s)
{
    cudaDataType real = type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
    struct rotation r = {.at = {a, b, c, s},
                         .type = {type, type, real, type},
                         .length = {1, 1, 1, 1},
                         .written = {true, true, true, true}};
    return submit(handle, name, type, &r, false);
}

cublasStatus_t blas_rotmg(cublasHandle_t handle, const char *name, cudaDataType type, void *d1, void *d2, void *x1,
                          const void *y1, void *param)
{
    struct rotation r = {.at = {d1, d2, x1, (void *)(uintptr_t)y1, param},
                         .type = {type, type, type, type, type},
                         .length = {1, 1, 1, 1, MODIFIED},
                         .written = {true, true, true, false, true}};
    return submit(handle, name, type, &r, true);
}
