/* blas.h - inside softgpu's libcublas and libcublasLt: handles, jobs in streams, operands, scalars.
 *
 * An exported function checks its arguments, describes the work in a `struct job`, and submits it; the job runs later
 * in stream order on a thread of the device. Device pointers mean nothing to the host until the job runs and maps them.
 * Matrices are column-major. Both libraries are made of these files, each with its own copy of OpenBLAS inside, so
 * nothing of it is visible to the program.
 */
#ifndef SOFTGPU_BLAS_BLAS_H
#define SOFTGPU_BLAS_BLAS_H

#include <cblas.h>

#pragma GCC visibility push(default)
#include <cublasLt.h>
#include <cublas_api.h>
#pragma GCC visibility pop

#include "softgpu/blas/numbers.h"
#include "softgpu/operator.h"

/* ---- driver.c --------------------------------------------------------------------------------------------------- */

/* The driver's functions that are used, found with dlopen() and dlsym() at the first call. */
struct blas_driver {
    __typeof__(&cuInit) cuInit;
    __typeof__(&cuCtxGetCurrent) cuCtxGetCurrent;
    __typeof__(&cuCtxSetCurrent) cuCtxSetCurrent;
    __typeof__(&cuDevicePrimaryCtxRetain) cuDevicePrimaryCtxRetain;
    __typeof__(&cuStreamSynchronize) cuStreamSynchronize;
    __typeof__(&cuMemcpy) cuMemcpy;
    __typeof__(&cuMemcpyAsync) cuMemcpyAsync;
    __typeof__(&cuMemcpy2DUnaligned) cuMemcpy2DUnaligned;
    __typeof__(&cuMemcpy2DAsync) cuMemcpy2DAsync;
    __typeof__(&softgpu_operator_submit) softgpu_operator_submit;
    __typeof__(&softgpu_operator_map) softgpu_operator_map;
    __typeof__(&softgpu_operator_mark) softgpu_operator_mark;
    __typeof__(&softgpu_operator_note) softgpu_operator_note;
};
/* NULL where there is no driver, or one that cannot run operators. */
const struct blas_driver *blas_driver(void);
/* A current context for the calling thread: its own, or the primary one of device 0. */
bool blas_enter(void);
cublasStatus_t blas_status(CUresult result);
/* Notes an unsupported function or case in SOFTGPU_LOG; CUBLAS_STATUS_NOT_SUPPORTED. */
cublasStatus_t blas_unsupported(const char *name);
const char *blas_status_name(cublasStatus_t status);
const char *blas_status_string(cublasStatus_t status);
/* libraryPropertyType; CUBLAS_STATUS_INVALID_VALUE for others. */
cublasStatus_t blas_property(libraryPropertyType type, int *value);

/* ---- handle.c --------------------------------------------------------------------------------------------------- */

/* A cublasHandle_t is also a cublasLtHandle_t, as documented. */
struct cublasContext {
    uint64_t magic;
    CUstream stream;
    cublasPointerMode_t pointer_mode;
    cublasAtomicsMode_t atomics_mode;
    cublasMath_t math_mode;
    int sm_count_target;
    cublasEmulationStrategy_t emulation_strategy;
    cudaEmulationSpecialValuesSupport emulation_special_values;
    cudaEmulationMantissaControl emulation_mantissa_control;
    int emulation_max_bits, emulation_bit_offset;
    int *emulation_bit_count;
};
bool blas_handle_init(struct cublasContext *handle);
bool blas_handle_alive(const struct cublasContext *handle);
void blas_handle_end(struct cublasContext *handle);

/* ---- job.c ------------------------------------------------------------------------------------------------------ */

/* Matrix, vector, or a batch of them. A vector of `rows` elements has increment `ld`, which may be negative. */
struct operand {
    CUdeviceptr address; /* of the first one, or of an array of addresses */
    cudaDataType type;
    int64_t rows, cols, ld;
    int64_t stride; /* elements between members of a batch */
    bool array;     /* `address` is that of an array of addresses */
    bool row_major;
};

struct scalar {
    double complex value; /* when `device` is NULL */
    CUdeviceptr device;   /* read when the job runs */
    cudaDataType type;
};

/* The shape of what is written, for SOFTGPU_FAULTS. */
enum shape { SHAPE_FULL, SHAPE_LOWER, SHAPE_UPPER };

struct job;
struct job {
    struct softgpu_operator op; /* first */
    void (*run)(struct job *job);
    cudaDataType type;
    cublasComputeType_t compute;
    cublasMath_t math;
    cublasOperation_t transa, transb;
    cublasFillMode_t uplo;
    cublasSideMode_t side;
    cublasDiagType_t diag;
    int64_t m, n, k, kl, ku, batch;
    int variant; /* of a family: which of its operations */
    struct scalar alpha, beta;
    struct operand a, b, c;
    void *host_result; /* or NULL */
    CUdeviceptr device_result;
    cudaDataType result_type;
    void (*release)(struct job *job); /* of `extra`; NULL: free() */
    void *extra;
};

/* A job of the handle with its math mode, or an error: CUBLAS_STATUS_NOT_INITIALIZED without a handle. */
cublasStatus_t job_new(cublasHandle_t handle, const char *name, cudaDataType type, void (*run)(struct job *job),
                       struct job **out);
/* A scalar by the handle's pointer mode; reads it now in host mode. CUBLAS_STATUS_INVALID_VALUE for NULL. */
cublasStatus_t job_scalar(cublasHandle_t handle, struct scalar *scalar, const void *pointer, cudaDataType type);
/* Where a reduction's result goes, by the pointer mode. */
cublasStatus_t job_result(cublasHandle_t handle, struct job *job, void *pointer, cudaDataType type);
/* Gives the job to the stream, waits for it where a host result is expected, and takes it over in any case. */
cublasStatus_t job_submit(cublasHandle_t handle, struct job *job);
cublasStatus_t job_submit_to(CUstream stream, struct job *job);
void job_free(struct job *job);

struct operand matrix(const void *address, cudaDataType type, int64_t rows, int64_t cols, int64_t ld);
struct operand vector(const void *address, cudaDataType type, int64_t n, int64_t inc);
/* A packed triangle of order n. */
struct operand packed(const void *address, cudaDataType type, int64_t n);

/* When the job runs. */
bool job_load_scalar(struct job *job, const struct scalar *scalar, double complex *value);
/* Member `i` of the batch; NULL when it cannot be reached. */
const void *job_read(struct job *job, const struct operand *operand, int64_t i);
void *job_write(struct job *job, const struct operand *operand, int64_t i, enum shape shape);
/* Stores a reduction's result. */
void job_return(struct job *job, double complex value);
static inline enum shape job_shape(const struct job *job)
{
    return job->uplo == CUBLAS_FILL_MODE_UPPER ? SHAPE_UPPER : SHAPE_LOWER;
}
/* Zeroes a matrix or vector that is about to be scaled by zero, so that no NaN in it survives. */
void clear(void *data, const struct operand *operand);

/* ---- gemm.c ----------------------------------------------------------------------------------------------------- */

/* D = alpha op(A) op(B) + beta C, with operands anywhere in the host's memory. */
struct product {
    const char *name;
    cublasOperation_t transa, transb;
    int64_t m, n, k;
    cudaDataType a_type, b_type, c_type, d_type;
    const void *a, *b, *c; /* c may be NULL when beta is zero */
    void *d;
    int64_t lda, ldb, ldc, ldd;
    bool a_rows, b_rows, c_rows, d_rows; /* row-major */
    double complex alpha, beta;
    const void *alpha_vector; /* one per row of D, of scale_type, in place of alpha; or NULL */
    const void *beta_vector;
    cudaDataType scale_type;
    cublasComputeType_t compute;
    enum number_rounding rounding;
    uint32_t flaws;
    uint64_t seed;
    /* Optional: called with each finished column before it is stored, as `m` values of `double complex`. */
    void (*finish)(void *context, int64_t column, double complex *values);
    void *finish_context;
};
/* False when memory is out. */
bool product_run(const struct product *product);
/* The rounding of operands for a compute type and a math mode. */
enum number_rounding product_rounding(cublasComputeType_t compute, cublasMath_t math, cudaDataType type);
/* Whether cublasGemmEx knows the combination, and the type of alpha and beta that goes with it. */
bool product_supported(cublasComputeType_t compute, cudaDataType a, cudaDataType b, cudaDataType c,
                       cudaDataType *scale_type);

#endif
