/* Copies of vectors and matrices between the host and the device: copies of the driver, as with the real library. */
#include "softgpu/blas/blas.h"

/* Rows of `width` bytes. The synchronous form is ordered by the legacy stream. */
static cublasStatus_t copy(const void *from, int64_t from_pitch, void *to, int64_t to_pitch, int64_t width,
                           int64_t rows, bool async, CUstream stream)
{
    if (!blas_enter())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    const struct blas_driver *d = blas_driver();
    CUdeviceptr source = (CUdeviceptr)(uintptr_t)from, target = (CUdeviceptr)(uintptr_t)to;
    CUresult result;
    if (!width || !rows)
        return CUBLAS_STATUS_SUCCESS;
    if (rows == 1 || (from_pitch == width && to_pitch == width)) {
        size_t bytes = (size_t)(width * rows);
        result = async ? d->cuMemcpyAsync(target, source, bytes, stream) : d->cuMemcpy(target, source, bytes);
    } else {
        CUDA_MEMCPY2D shape = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                               .srcDevice = source,
                               .srcPitch = (size_t)from_pitch,
                               .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                               .dstDevice = target,
                               .dstPitch = (size_t)to_pitch,
                               .WidthInBytes = (size_t)width,
                               .Height = (size_t)rows};
        result = async ? d->cuMemcpy2DAsync(&shape, stream) : d->cuMemcpy2DUnaligned(&shape);
    }
    return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

static cublasStatus_t copy_vector(int64_t n, int64_t size, const void *x, int64_t incx, void *y, int64_t incy,
                                  bool async, CUstream stream)
{
    if (n < 0 || size <= 0 || incx <= 0 || incy <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (incx == 1 && incy == 1)
        return copy(x, n * size, y, n * size, n * size, 1, async, stream);
    return copy(x, incx * size, y, incy * size, size, n, async, stream);
}

static cublasStatus_t copy_matrix(int64_t rows, int64_t cols, int64_t size, const void *a, int64_t lda, void *b,
                                  int64_t ldb, bool async, CUstream stream)
{
    if (rows < 0 || cols < 0 || size <= 0 || lda <= 0 || ldb <= 0 || lda < rows || ldb < rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    return copy(a, lda * size, b, ldb * size, rows * size, cols, async, stream);
}

#define TRANSFERS(suffix, INT)                                                                                         \
    cublasStatus_t cublasSetVector##suffix(INT n, INT elemSize, const void *x, INT incx, void *devicePtr, INT incy)    \
    {                                                                                                                  \
        return copy_vector(n, elemSize, x, incx, devicePtr, incy, false, NULL);                                        \
    }                                                                                                                  \
    cublasStatus_t cublasGetVector##suffix(INT n, INT elemSize, const void *x, INT incx, void *y, INT incy)            \
    {                                                                                                                  \
        return copy_vector(n, elemSize, x, incx, y, incy, false, NULL);                                                \
    }                                                                                                                  \
    cublasStatus_t cublasSetMatrix##suffix(INT rows, INT cols, INT elemSize, const void *A, INT lda, void *B, INT ldb) \
    {                                                                                                                  \
        return copy_matrix(rows, cols, elemSize, A, lda, B, ldb, false, NULL);                                         \
    }                                                                                                                  \
    cublasStatus_t cublasGetMatrix##suffix(INT rows, INT cols, INT elemSize, const void *A, INT lda, void *B, INT ldb) \
    {                                                                                                                  \
        return copy_matrix(rows, cols, elemSize, A, lda, B, ldb, false, NULL);                                         \
    }                                                                                                                  \
    cublasStatus_t cublasSetVectorAsync##suffix(INT n, INT elemSize, const void *hostPtr, INT incx, void *devicePtr,   \
                                                INT incy, cudaStream_t stream)                                         \
    {                                                                                                                  \
        return copy_vector(n, elemSize, hostPtr, incx, devicePtr, incy, true, stream);                                 \
    }                                                                                                                  \
    cublasStatus_t cublasGetVectorAsync##suffix(INT n, INT elemSize, const void *devicePtr, INT incx, void *hostPtr,   \
                                                INT incy, cudaStream_t stream)                                         \
    {                                                                                                                  \
        return copy_vector(n, elemSize, devicePtr, incx, hostPtr, incy, true, stream);                                 \
    }                                                                                                                  \
    cublasStatus_t cublasSetMatrixAsync##suffix(INT rows, INT cols, INT elemSize, const void *A, INT lda, void *B,     \
                                                INT ldb, cudaStream_t stream)                                          \
    {                                                                                                                  \
        return copy_matrix(rows, cols, elemSize, A, lda, B, ldb, true, stream);                                        \
    }                                                                                                                  \
    cublasStatus_t cublasGetMatrixAsync##suffix(INT rows, INT cols, INT elemSize, const void *A, INT lda, void *B,     \
                                                INT ldb, cudaStream_t stream)                                          \
    {                                                                                                                  \
        return copy_matrix(rows, cols, elemSize, A, lda, B, ldb, true, stream);                                        \
    }
TRANSFERS(, int)
TRANSFERS(_64, int64_t)
