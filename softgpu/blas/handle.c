#include "softgpu/blas/blas.h"

static const uint64_t MAGIC = UINT64_C(0x73616c6275637367);

bool blas_handle_init(struct cublasContext *handle)
{
    *handle = (struct cublasContext){
        .magic = MAGIC,
        .pointer_mode = CUBLAS_POINTER_MODE_HOST,
        .atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED,
        .math_mode = CUBLAS_DEFAULT_MATH,
    };
    return blas_enter();
}

bool blas_handle_alive(const struct cublasContext *handle)
{
    return handle && handle->magic == MAGIC;
}

void blas_handle_end(struct cublasContext *handle)
{
    handle->magic = 0;
}
