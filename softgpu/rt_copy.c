/* Copies. The direction that the caller names chooses the driver's function. */
#include "softgpu/rt_copy.h"

static bool known_kind(enum cudaMemcpyKind kind)
{
    return (unsigned)kind <= cudaMemcpyDefault;
}

static CUresult copy_now(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, bool per_thread)
{
    CUdeviceptr to = rt_address(dst), from = rt_address(src);
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return (per_thread ? driver.cuMemcpyHtoD_v2_ptds : driver.cuMemcpyHtoD_v2)(to, src, count);
    case cudaMemcpyDeviceToHost:
        return (per_thread ? driver.cuMemcpyDtoH_v2_ptds : driver.cuMemcpyDtoH_v2)(dst, from, count);
    case cudaMemcpyDeviceToDevice:
        return (per_thread ? driver.cuMemcpyDtoD_v2_ptds : driver.cuMemcpyDtoD_v2)(to, from, count);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return (per_thread ? driver.cuMemcpy_ptds : driver.cuMemcpy)(to, from, count);
    }
    return (CUresult)cudaErrorInvalidMemcpyDirection;
}

static CUresult copy_later(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream,
                           bool per_thread)
{
    CUdeviceptr to = rt_address(dst), from = rt_address(src);
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return (per_thread ? driver.cuMemcpyHtoDAsync_v2_ptsz : driver.cuMemcpyHtoDAsync_v2)(to, src, count, stream);
    case cudaMemcpyDeviceToHost:
        return (per_thread ? driver.cuMemcpyDtoHAsync_v2_ptsz : driver.cuMemcpyDtoHAsync_v2)(dst, from, count, stream);
    case cudaMemcpyDeviceToDevice:
        return (per_thread ? driver.cuMemcpyDtoDAsync_v2_ptsz : driver.cuMemcpyDtoDAsync_v2)(to, from, count, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return (per_thread ? driver.cuMemcpyAsync_ptsz : driver.cuMemcpyAsync)(to, from, count, stream);
    }
    return (CUresult)cudaErrorInvalidMemcpyDirection;
}

static cudaError_t copy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && !known_kind(kind))
        result = (CUresult)cudaErrorInvalidMemcpyDirection;
    if (result == CUDA_SUCCESS && count)
        result = copy_now(dst, src, count, kind, per_thread);
    return rt_end(result);
}

static cudaError_t copy_async(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream,
                              bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && !known_kind(kind))
        result = (CUresult)cudaErrorInvalidMemcpyDirection;
    if (result == CUDA_SUCCESS && count)
        result = copy_later(dst, src, count, kind, stream, per_thread);
    return rt_end(result);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    return copy(dst, src, count, kind, false);
}

cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
    return copy(dst, src, count, kind, true);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_async(dst, src, count, kind, stream, false);
}

cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                                 cudaStream_t stream)
{
    return copy_async(dst, src, count, kind, stream, true);
}

/* ---- symbols ---------------------------------------------------------------------------------------------------- */

CUresult rt_symbol_range(const void *symbol, size_t count, size_t offset, void **address)
{
    CUdeviceptr start;
    size_t bytes;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = rt_symbol(symbol, &start, &bytes);
    if (result == CUDA_SUCCESS && (offset > bytes || count > bytes - offset))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *address = rt_pointer(start + offset);
    return result;
}

static cudaError_t to_symbol(const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind,
                             bool per_thread)
{
    void *address;
    CUresult result = rt_symbol_range(symbol, count, offset, &address);
    return result == CUDA_SUCCESS ? copy(address, src, count, kind, per_thread) : rt_end(result);
}

static cudaError_t from_symbol(void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind,
                               bool per_thread)
{
    void *address;
    CUresult result = rt_symbol_range(symbol, count, offset, &address);
    return result == CUDA_SUCCESS ? copy(dst, address, count, kind, per_thread) : rt_end(result);
}

static cudaError_t to_symbol_async(const void *symbol, const void *src, size_t count, size_t offset,
                                   enum cudaMemcpyKind kind, cudaStream_t stream, bool per_thread)
{
    void *address;
    CUresult result = rt_symbol_range(symbol, count, offset, &address);
    return result == CUDA_SUCCESS ? copy_async(address, src, count, kind, stream, per_thread) : rt_end(result);
}

static cudaError_t from_symbol_async(void *dst, const void *symbol, size_t count, size_t offset,
                                     enum cudaMemcpyKind kind, cudaStream_t stream, bool per_thread)
{
    void *address;
    CUresult result = rt_symbol_range(symbol, count, offset, &address);
    return result == CUDA_SUCCESS ? copy_async(dst, address, count, kind, stream, per_thread) : rt_end(result);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count, size_t offset,
                               enum cudaMemcpyKind kind)
{
    return to_symbol(symbol, src, count, offset, kind, false);
}

cudaError_t cudaMemcpyToSymbol_ptds(const void *symbol, const void *src, size_t count, size_t offset,
                                    enum cudaMemcpyKind kind)
{
    return to_symbol(symbol, src, count, offset, kind, true);
}

cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
    return from_symbol(dst, symbol, count, offset, kind, false);
}

cudaError_t cudaMemcpyFromSymbol_ptds(void *dst, const void *symbol, size_t count, size_t offset,
                                      enum cudaMemcpyKind kind)
{
    return from_symbol(dst, symbol, count, offset, kind, true);
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return to_symbol_async(symbol, src, count, offset, kind, stream, false);
}

cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void *symbol, const void *src, size_t count, size_t offset,
                                         enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return to_symbol_async(symbol, src, count, offset, kind, stream, true);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return from_symbol_async(dst, symbol, count, offset, kind, stream, false);
}

cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void *dst, const void *symbol, size_t count, size_t offset,
                                           enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return from_symbol_async(dst, symbol, count, offset, kind, stream, true);
}

cudaError_t cudaGetSymbolAddress(void **devPtr, const void *symbol)
{
    CUresult result = devPtr ? rt_symbol_range(symbol, 0, 0, devPtr) : CUDA_ERROR_INVALID_VALUE;
    return rt_end(result);
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr start;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = size ? rt_symbol(symbol, &start, size) : CUDA_ERROR_INVALID_VALUE;
    return rt_end(result);
}
