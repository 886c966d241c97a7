#include "softgpu/blas/blas.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "softgpu/blas/log.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct blas_driver driver;
static bool usable;

static bool find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);
    memcpy(slot, &function, sizeof function);
    return function != NULL;
}

static void load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    usable = find(library, "cuInit", &driver.cuInit) && find(library, "cuCtxGetCurrent", &driver.cuCtxGetCurrent) &&
             find(library, "cuCtxSetCurrent", &driver.cuCtxSetCurrent) &&
             find(library, "cuDevicePrimaryCtxRetain", &driver.cuDevicePrimaryCtxRetain) &&
             find(library, "cuStreamSynchronize", &driver.cuStreamSynchronize) &&
             find(library, "cuMemcpy", &driver.cuMemcpy) && find(library, "cuMemcpyAsync", &driver.cuMemcpyAsync) &&
             find(library, "cuMemcpy2DUnaligned_v2", &driver.cuMemcpy2DUnaligned) &&
             find(library, "cuMemcpy2DAsync_v2", &driver.cuMemcpy2DAsync) &&
             find(library, "softgpu_operator_submit", &driver.softgpu_operator_submit) &&
             find(library, "softgpu_operator_map", &driver.softgpu_operator_map) &&
             find(library, "softgpu_operator_mark", &driver.softgpu_operator_mark) &&
             find(library, "softgpu_operator_note", &driver.softgpu_operator_note);
}

const struct blas_driver *blas_driver(void)
{
    pthread_once(&once, load);
    return usable ? &driver : NULL;
}

bool blas_enter(void)
{
    const struct blas_driver *d = blas_driver();
    CUcontext context = NULL;
    if (!d || d->cuInit(0) != CUDA_SUCCESS || d->cuCtxGetCurrent(&context) != CUDA_SUCCESS)
        return false;
    if (context)
        return true;
    /* Kept for the life of the process, as the runtime keeps it. */
    return d->cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS && d->cuCtxSetCurrent(context) == CUDA_SUCCESS;
}

cublasStatus_t blas_status(CUresult result)
{
    switch (result) {
    case CUDA_SUCCESS:
        return CUBLAS_STATUS_SUCCESS;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_INVALID_CONTEXT:
        return CUBLAS_STATUS_NOT_INITIALIZED;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return CUBLAS_STATUS_ALLOC_FAILED;
    case CUDA_ERROR_INVALID_VALUE:
        return CUBLAS_STATUS_INVALID_VALUE;
    default:
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

cublasStatus_t blas_unsupported(const char *name)
{
    const struct blas_driver *d = blas_driver();
    blas_log(BLAS_LOG_ERROR, name, "not supported");
    if (d)
        d->softgpu_operator_note(name);
    return CUBLAS_STATUS_NOT_SUPPORTED;
}

const char *blas_status_name(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
        return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
        return "CUBLAS_STATUS_LICENSE_ERROR";
    default:
        return "CUBLAS_STATUS_UNKNOWN";
    }
}

const char *blas_status_string(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an invalid value was used as an argument";
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return "an absent device architectural feature is required";
    case CUBLAS_STATUS_MAPPING_ERROR:
        return "an access to GPU memory space failed";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the GPU program failed to execute";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality is not supported";
    case CUBLAS_STATUS_LICENSE_ERROR:
        return "the license was not found";
    default:
        return "unknown error";
    }
}

cublasStatus_t blas_property(libraryPropertyType type, int *value)
{
    if (!value)
        return CUBLAS_STATUS_INVALID_VALUE;
    switch (type) {
    case MAJOR_VERSION:
        *value = CUBLAS_VER_MAJOR;
        return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
        *value = CUBLAS_VER_MINOR;
        return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
        *value = CUBLAS_VER_PATCH;
        return CUBLAS_STATUS_SUCCESS;
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}
