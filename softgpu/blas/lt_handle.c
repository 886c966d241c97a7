/* Handles of libcublasLt, its version, and its log. */
#include "softgpu/blas/lt.h"

#include <stdlib.h>

#include "softgpu/blas/log.h"

cublasStatus_t cublasLtCreate(cublasLtHandle_t *lightHandle)
{
    if (!lightHandle)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct cublasContext *h = malloc(sizeof *h);
    if (!h)
        return CUBLAS_STATUS_ALLOC_FAILED;
    if (!blas_handle_init(h)) {
        free(h);
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *lightHandle = (cublasLtHandle_t)h;
    blas_log(BLAS_LOG_API, __func__, "a handle");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle)
{
    struct cublasContext *h = (struct cublasContext *)lightHandle;
    if (!blas_handle_alive(h))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    blas_log(BLAS_LOG_API, __func__, "a handle");
    blas_handle_end(h);
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

size_t cublasLtGetCudartVersion(void)
{
    return CUDA_VERSION;
}

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int *value)
{
    return blas_property(type, value);
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return blas_status_name(status);
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return blas_status_string(status);
}

static size_t cache_capacity = 8192;

cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *capacity)
{
    if (!capacity)
        return CUBLAS_STATUS_INVALID_VALUE;
    *capacity = __atomic_load_n(&cache_capacity, __ATOMIC_RELAXED);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t capacity)
{
    __atomic_store_n(&cache_capacity, capacity, __ATOMIC_RELAXED);
    return CUBLAS_STATUS_SUCCESS;
}

unsigned cublasLtDisableCpuInstructionsSetMask(unsigned mask)
{
    static unsigned disabled;
    return __atomic_exchange_n(&disabled, mask, __ATOMIC_RELAXED);
}

cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t callback)
{
    blas_log_set_callback(callback);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtLoggerSetFile(FILE *file)
{
    blas_log_clear_files();
    if (file)
        blas_log_add_file(file);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtLoggerOpenFile(const char *logFile)
{
    blas_log_clear_files();
    return logFile && blas_log_open_file(logFile) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/* A level stands for all below it. */
cublasStatus_t cublasLtLoggerSetLevel(int level)
{
    if (level < 0 || level > BLAS_LOG_API)
        return CUBLAS_STATUS_INVALID_VALUE;
    blas_log_set_mask(blas_log_bit(level + 1) - 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtLoggerSetMask(int mask)
{
    blas_log_set_mask((unsigned)mask);
    return CUBLAS_STATUS_SUCCESS;
}

/* The header declares it without a prototype. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
cublasStatus_t cublasLtLoggerForceDisable(void)
{
    blas_log_disable();
    return CUBLAS_STATUS_SUCCESS;
}
