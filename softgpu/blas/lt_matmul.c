/* cublasLtMatmul: what is checked when it is called. */
#include "softgpu/blas/lt.h"

#include <stdlib.h>

static bool is_fp8(int type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

static bool is_small_float(int type)
{
    return type == CUDA_R_16F || type == CUDA_R_16BF || is_fp8(type);
}

/* Types of A, B, C, D, of alpha and beta, and the accumulator. */
static bool types_known(const struct lt_matmul *op, int a, int b, int c, int d)
{
    cudaDataType scale;
    if (op->compute == CUBLAS_COMPUTE_32I || op->compute == CUBLAS_COMPUTE_32I_PEDANTIC)
        return a == CUDA_R_8I && b == a && c == d &&
               ((d == CUDA_R_32I && op->scale_type == CUDA_R_32I) || (d == CUDA_R_8I && op->scale_type == CUDA_R_32F));
    if (product_supported((cublasComputeType_t)op->compute, (cudaDataType)a, (cudaDataType)b, (cudaDataType)d, &scale))
        return c == d && op->scale_type == (int)scale;
    bool floats = op->compute == CUBLAS_COMPUTE_32F || op->compute == CUBLAS_COMPUTE_32F_PEDANTIC;
    /* Eight bits may differ between A and B; C is wider where D is narrow. */
    return floats && op->scale_type == CUDA_R_32F && is_fp8(a) && is_fp8(b) && (d == CUDA_R_32F || is_small_float(d)) &&
           (c == d || (is_fp8(d) && is_small_float(c)));
}

static bool known_order(const struct lt_layout *l)
{
    return l->order == CUBLASLT_ORDER_COL || l->order == CUBLASLT_ORDER_ROW;
}

static bool valid_layout(const struct lt_layout *l, uint64_t rows, uint64_t cols, int batch)
{
    uint64_t line = l->order == CUBLASLT_ORDER_ROW ? l->cols : l->rows;
    return l->rows == rows && l->cols == cols && l->ld >= (int64_t)line && l->batch_count == batch;
}

static cublasStatus_t check_epilogue(const struct lt_matmul *op, const struct lt_layout *d)
{
    enum { MASK_LD = 128, MATRIX_LD = 8 };
    bool bits = op->epilogue & (CUBLASLT_EPILOGUE_RELU | 8);
    bool bias = op->epilogue & (CUBLASLT_EPILOGUE_BIAS | 16 | CUBLASLT_EPILOGUE_BGRADA | CUBLASLT_EPILOGUE_BGRADB);
    switch (op->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_AUX:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DRELU:
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
        break;
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (number_is_complex((cudaDataType)d->type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if ((op->epilogue & 128) && (op->aux_ld < (int64_t)d->rows || op->aux_ld % (bits ? MASK_LD : MATRIX_LD)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (bias && op->bias_type >= 0 && !number_bytes((cudaDataType)op->bias_type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t lt_check(const struct lt_matmul *op, const struct lt_layout *a, const struct lt_layout *b,
                        const struct lt_layout *c, const struct lt_layout *d)
{
    bool na = op->transa == CUBLAS_OP_N, nb = op->transb == CUBLAS_OP_N;
    uint64_t k = na ? a->cols : a->rows;
    if (!known_order(a) || !known_order(b) || !known_order(c) || !known_order(d) || op->transc != CUBLAS_OP_N ||
        op->fill_mode != CUBLAS_FILL_MODE_FULL)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < LT_SCALES; i++)
        if (op->scale_mode[i] != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F)
            return CUBLAS_STATUS_NOT_SUPPORTED;
    if (op->transa < CUBLAS_OP_N || op->transa > CUBLAS_OP_C || op->transb < CUBLAS_OP_N || op->transb > CUBLAS_OP_C ||
        op->pointer_mode < CUBLASLT_POINTER_MODE_HOST ||
        op->pointer_mode > CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!valid_layout(a, na ? d->rows : k, na ? k : d->rows, d->batch_count) ||
        !valid_layout(b, nb ? k : d->cols, nb ? d->cols : k, d->batch_count) ||
        !valid_layout(c, d->rows, d->cols, d->batch_count) || !valid_layout(d, d->rows, d->cols, d->batch_count))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (d->rows > INT32_MAX || d->cols > INT32_MAX || k > INT32_MAX || a->plane_offset || b->plane_offset)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!types_known(op, a->type, b->type, c->type, d->type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return check_epilogue(op, d);
}

/* ---- the call --------------------------------------------------------------------------------------------------- */

static struct operand operand_of(const void *address, const struct lt_layout *l)
{
    struct operand o = matrix(address, (cudaDataType)l->type, (int64_t)l->rows, (int64_t)l->cols, l->ld);
    o.stride = l->stride;
    o.array = l->batch_mode == CUBLASLT_BATCH_MODE_POINTER_ARRAY;
    o.row_major = l->order == CUBLASLT_ORDER_ROW;
    return o;
}

static struct scalar scalar_of(const void *pointer, bool device, cudaDataType type)
{
    struct scalar s = {.type = type};
    if (device)
        s.device = (CUdeviceptr)(uintptr_t)pointer;
    else
        s.value = number_load(pointer, type, 0);
    return s;
}

/* alpha and beta in all pointer modes; vectors replace the scalars, which then stay 1 and 0. */
static void set_scalars(struct job *job, struct lt_work *w, const void *alpha, const void *beta)
{
    cudaDataType type = (cudaDataType)w->op.scale_type;
    int mode = w->op.pointer_mode;
    bool vectors = mode >= CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
    job->alpha = (struct scalar){.value = 1, .type = type};
    job->beta = (struct scalar){.value = 0, .type = type};
    if (!vectors)
        job->alpha = scalar_of(alpha, mode == CUBLASLT_POINTER_MODE_DEVICE, type);
    else
        w->alpha_vector = vector(alpha, type, w->d.rows, 1);
    w->alpha_vector.stride = w->op.alpha_stride;
    if (mode == CUBLASLT_POINTER_MODE_DEVICE_VECTOR)
        w->beta_vector = vector(beta, type, w->d.rows, 1);
    else if (mode != CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO)
        job->beta = scalar_of(beta, mode == CUBLASLT_POINTER_MODE_DEVICE, type);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc, const void *alpha,
                              const void *A, cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc,
                              const void *beta, const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspaceSizeInBytes, cudaStream_t stream)
{
    const struct lt_matmul *op = (const struct lt_matmul *)computeDesc;
    const struct lt_layout *a = (const struct lt_layout *)Adesc, *b = (const struct lt_layout *)Bdesc;
    const struct lt_layout *c = (const struct lt_layout *)Cdesc, *d = (const struct lt_layout *)Ddesc;
    struct job *job;
    cublasStatus_t status = job_new((cublasHandle_t)lightHandle, "cublasLtMatmul", CUDA_R_32F, lt_run, &job);
    if (status == CUBLAS_STATUS_SUCCESS &&
        (!op || !a || !b || !c || !d || !alpha || (algo && !lt_algo_valid(algo)) ||
         (!beta && op->pointer_mode != CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO)))
        status = CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS)
        status = lt_check(op, a, b, c, d);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED)
        blas_unsupported("cublasLtMatmul");
    struct lt_work *w = status == CUBLAS_STATUS_SUCCESS ? calloc(1, sizeof *w) : NULL;
    if (status == CUBLAS_STATUS_SUCCESS && !w)
        status = CUBLAS_STATUS_ALLOC_FAILED;
    if (status != CUBLAS_STATUS_SUCCESS) {
        job_free(job);
        return status;
    }
    w->op = *op;
    w->d = operand_of(D, d);
    job->extra = w;
    job->math = CUBLAS_DEFAULT_MATH;
    job->batch = d->batch_count;
    job->a = operand_of(A, a);
    job->b = operand_of(B, b);
    job->c = operand_of(C, c);
    set_scalars(job, w, alpha, beta);
    return job_submit_to(stream, job);
}
