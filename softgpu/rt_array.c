/* Arrays, and copies to and from them. */
#include <string.h>

#include "softgpu/rt_array.h"

/* ---- formats ---- */

/* The driver's format of a channel descriptor. */
bool rt_array_format(const struct cudaChannelFormatDesc *d, CUarray_format *format, unsigned *channels)
{
    const int bits[4] = {d->x, d->y, d->z, d->w};
    *channels = 0;
    for (int i = 0; i < 4 && bits[i]; i++) {
        if (bits[i] != d->x)
            return false;
        ++*channels;
    }
    for (unsigned i = *channels; i < 4; i++)
        if (bits[i])
            return false;
    if (d->f >= cudaChannelFormatKindUnsignedNormalized8X1 && d->f <= cudaChannelFormatKindSignedNormalized16X4) {
        *format = (CUarray_format)(CU_AD_FORMAT_UNORM_INT8X1 + (d->f - cudaChannelFormatKindUnsignedNormalized8X1));
        return true;
    }
    unsigned size = d->x == 8 ? 0 : d->x == 16 ? 1 : d->x == 32 ? 2 : 3;
    if (size == 3)
        return false;
    switch (d->f) {
    case cudaChannelFormatKindSigned:
        *format = (CUarray_format)(CU_AD_FORMAT_SIGNED_INT8 + size);
        return true;
    case cudaChannelFormatKindUnsigned:
        *format = (CUarray_format)(CU_AD_FORMAT_UNSIGNED_INT8 + size);
        return true;
    case cudaChannelFormatKindFloat:
        *format = size == 1 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
        return size > 0;
    default:
        return false;
    }
}

struct cudaChannelFormatDesc rt_channel_desc(CUarray_format format, unsigned channels)
{
    struct cudaChannelFormatDesc d = {.f = cudaChannelFormatKindNone};
    int bits = 32;
    unsigned n = (unsigned)format - CU_AD_FORMAT_UNORM_INT8X1;
    if (n < 12) {
        d.f = (enum cudaChannelFormatKind)(cudaChannelFormatKindUnsignedNormalized8X1 + (int)n);
        bits = n / 3 % 2 ? 16 : 8;
    } else if (format >= CU_AD_FORMAT_UNSIGNED_INT8 && format <= CU_AD_FORMAT_UNSIGNED_INT32) {
        d.f = cudaChannelFormatKindUnsigned;
        bits = 8 << (format - CU_AD_FORMAT_UNSIGNED_INT8);
    } else if (format >= CU_AD_FORMAT_SIGNED_INT8 && format <= CU_AD_FORMAT_SIGNED_INT32) {
        d.f = cudaChannelFormatKindSigned;
        bits = 8 << (format - CU_AD_FORMAT_SIGNED_INT8);
    } else {
        d.f = cudaChannelFormatKindFloat;
        bits = format == CU_AD_FORMAT_HALF ? 16 : 32;
    }
    d.x = bits;
    d.y = channels > 1 ? bits : 0;
    d.z = d.w = channels > 2 ? bits : 0;
    return d;
}

/* ---- arrays ---- */

static CUresult describe(CUDA_ARRAY3D_DESCRIPTOR *d, const struct cudaChannelFormatDesc *desc, struct cudaExtent e,
                         unsigned flags)
{
    /* The flags of both interfaces are the same. */
    *d = (CUDA_ARRAY3D_DESCRIPTOR){.Width = e.width, .Height = e.height, .Depth = e.depth, .Flags = flags};
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    return rt_array_format(desc, &d->Format, &d->NumChannels) ? CUDA_SUCCESS
                                                              : (CUresult)cudaErrorInvalidChannelDescriptor;
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
                              unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = array ? describe(&d, desc, extent, flags) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = driver.cuArray3DCreate_v2((CUarray *)array, &d);
    return rt_end(result);
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
                            unsigned int flags)
{
    return cudaMalloc3DArray(array, desc, (struct cudaExtent){width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && array)
        result = driver.cuArrayDestroy((CUarray)array);
    return rt_end(result);
}

static CUresult descriptor_of(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return driver.cuArray3DGetDescriptor_v2(d, (CUarray)(uintptr_t)array);
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent, unsigned int *flags,
                             cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = descriptor_of(array, &d);
    if (result == CUDA_SUCCESS && desc)
        *desc = rt_channel_desc(d.Format, d.NumChannels);
    if (result == CUDA_SUCCESS && extent)
        *extent = (struct cudaExtent){d.Width, d.Height, d.Depth};
    if (result == CUDA_SUCCESS && flags)
        *flags = d.Flags;
    return rt_end(result);
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
    return desc ? cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)(uintptr_t)array) : rt_fail(cudaErrorInvalidValue);
}

static void take_requirements(struct cudaArrayMemoryRequirements *to, const CUDA_ARRAY_MEMORY_REQUIREMENTS *from)
{
    memset(to, 0, sizeof *to);
    to->size = from->size;
    to->alignment = from->alignment;
}

cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements, cudaArray_t array,
                                           int device)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS r;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = memoryRequirements ? driver.cuArrayGetMemoryRequirements(&r, (CUarray)array, device)
                                    : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        take_requirements(memoryRequirements, &r);
    return rt_end(result);
}

/* ---- mipmapped arrays ---- */

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmappedArray, const struct cudaChannelFormatDesc *desc,
                                     struct cudaExtent extent, unsigned int numLevels, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = mipmappedArray ? describe(&d, desc, extent, flags) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = driver.cuMipmappedArrayCreate((CUmipmappedArray *)mipmappedArray, &d, numLevels);
    return rt_end(result);
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *levelArray, cudaMipmappedArray_const_t mipmappedArray,
                                       unsigned int level)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result =
            driver.cuMipmappedArrayGetLevel((CUarray *)levelArray, (CUmipmappedArray)(uintptr_t)mipmappedArray, level);
    return rt_end(result);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && mipmappedArray)
        result = driver.cuMipmappedArrayDestroy((CUmipmappedArray)mipmappedArray);
    return rt_end(result);
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *memoryRequirements,
                                                    cudaMipmappedArray_t mipmap, int device)
{
    CUDA_ARRAY_MEMORY_REQUIREMENTS r;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = memoryRequirements ? driver.cuMipmappedArrayGetMemoryRequirements(&r, (CUmipmappedArray)mipmap, device)
                                    : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        take_requirements(memoryRequirements, &r);
    return rt_end(result);
}

/* ---- copies ---- */

/* Which stream, and whether the host waits. */
struct way {
    cudaStream_t stream;
    bool later, per_thread;
};

static CUresult go(const CUDA_MEMCPY2D *c, struct way w)
{
    if (!c->WidthInBytes || !c->Height)
        return CUDA_SUCCESS;
    if (w.later)
        return (w.per_thread ? driver.cuMemcpy2DAsync_v2_ptsz : driver.cuMemcpy2DAsync_v2)(c, w.stream);
    return (w.per_thread ? driver.cuMemcpy2DUnaligned_v2_ptds : driver.cuMemcpy2DUnaligned_v2)(c);
}

/* What the other end of the copy is; false: the direction does not fit. */
static bool other_type(enum cudaMemcpyKind kind, bool to_array, CUmemorytype *type)
{
    *type = kind == cudaMemcpyDeviceToDevice ? CU_MEMORYTYPE_DEVICE
            : kind == cudaMemcpyDefault      ? CU_MEMORYTYPE_UNIFIED
                                             : CU_MEMORYTYPE_HOST;
    return kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault ||
           kind == (to_array ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
}

static CUresult to_array(cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width,
                         size_t height, enum cudaMemcpyKind kind, struct way w)
{
    CUDA_MEMCPY2D c = {.srcHost = src,
                       .srcDevice = rt_address(src),
                       .srcPitch = spitch,
                       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                       .dstArray = (CUarray)dst,
                       .dstXInBytes = x,
                       .dstY = y,
                       .WidthInBytes = width,
                       .Height = height};
    if (!other_type(kind, true, &c.srcMemoryType))
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    return height > 1 && width > spitch ? (CUresult)cudaErrorInvalidPitchValue : go(&c, w);
}

static CUresult from_array(void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
                           size_t height, enum cudaMemcpyKind kind, struct way w)
{
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                       .srcArray = (CUarray)(uintptr_t)src,
                       .srcXInBytes = x,
                       .srcY = y,
                       .dstHost = dst,
                       .dstDevice = rt_address(dst),
                       .dstPitch = dpitch,
                       .WidthInBytes = width,
                       .Height = height};
    if (!other_type(kind, false, &c.dstMemoryType))
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    return height > 1 && width > dpitch ? (CUresult)cudaErrorInvalidPitchValue : go(&c, w);
}

static CUresult between(cudaArray_t dst, size_t x, size_t y, cudaArray_const_t src, size_t sx, size_t sy, size_t width,
                        size_t height, enum cudaMemcpyKind kind, struct way w)
{
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                       .srcArray = (CUarray)(uintptr_t)src,
                       .srcXInBytes = sx,
                       .srcY = sy,
                       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                       .dstArray = (CUarray)dst,
                       .dstXInBytes = x,
                       .dstY = y,
                       .WidthInBytes = width,
                       .Height = height};
    if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    return go(&c, w);
}

static CUresult row_of(cudaArray_const_t array, size_t *row)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult result = descriptor_of(array, &d);
    if (result != CUDA_SUCCESS)
        return result;
    struct cudaChannelFormatDesc f = rt_channel_desc(d.Format, d.NumChannels);
    *row = d.Width * (size_t)(f.x + f.y + f.z + f.w) / 8;
    return CUDA_SUCCESS;
}

/* The forms without a shape fill row after row: the rest of the first, whole ones, a part of the last. */
static CUresult fill(cudaArray_t array, size_t x, size_t y, void *memory, size_t count, enum cudaMemcpyKind kind,
                     bool into, struct way w)
{
    size_t row = 0;
    CUresult result = row_of(array, &row);
    char *at = memory;
    if (result == CUDA_SUCCESS && (x > row || !row))
        result = CUDA_ERROR_INVALID_VALUE;
    while (result == CUDA_SUCCESS && count) {
        size_t width = x || count < row ? (count < row - x ? count : row - x) : row;
        size_t height = x || count < row ? 1 : count / row;
        result = into ? to_array(array, x, y, at, width, width, height, kind, w)
                      : from_array(at, width, array, x, y, width, height, kind, w);
        at += width * height;
        count -= width * height;
        y += height;
        x = 0;
    }
    return result;
}

static CUresult fill_between(cudaArray_t dst, size_t x, size_t y, cudaArray_const_t src, size_t sx, size_t sy,
                             size_t count, enum cudaMemcpyKind kind, struct way w)
{
    size_t row = 0, from_row = 0;
    CUresult result = row_of(dst, &row);
    if (result == CUDA_SUCCESS)
        result = row_of(src, &from_row);
    if (result == CUDA_SUCCESS && (x >= row || sx >= from_row) && count)
        result = CUDA_ERROR_INVALID_VALUE;
    while (result == CUDA_SUCCESS && count) {
        size_t width = row - x < from_row - sx ? row - x : from_row - sx;
        width = width < count ? width : count;
        result = between(dst, x, y, src, sx, sy, width, 1, kind, w);
        count -= width;
        x += width;
        sx += width;
        if (x == row)
            x = 0, y++;
        if (sx == from_row)
            sx = 0, sy++;
    }
    return result;
}

/* Each function in its forms: of the legacy stream, of the thread's own. */
#define ARRAY_COPY(name, parameters, work)                                                                             \
    cudaError_t name parameters                                                                                        \
    {                                                                                                                  \
        CUresult result = rt_enter();                                                                                  \
        const struct way w = {0};                                                                                      \
        return rt_end(result == CUDA_SUCCESS ? (work) : result);                                                       \
    }                                                                                                                  \
    cudaError_t name##_ptds parameters                                                                                 \
    {                                                                                                                  \
        CUresult result = rt_enter();                                                                                  \
        const struct way w = {.per_thread = true};                                                                     \
        return rt_end(result == CUDA_SUCCESS ? (work) : result);                                                       \
    }
#define ARRAY_COPY_ASYNC(name, parameters, work)                                                                       \
    cudaError_t name parameters                                                                                        \
    {                                                                                                                  \
        CUresult result = rt_enter();                                                                                  \
        const struct way w = {.stream = stream, .later = true};                                                        \
        return rt_end(result == CUDA_SUCCESS ? (work) : result);                                                       \
    }                                                                                                                  \
    cudaError_t name##_ptsz parameters                                                                                 \
    {                                                                                                                  \
        CUresult result = rt_enter();                                                                                  \
        const struct way w = {.stream = stream, .later = true, .per_thread = true};                                    \
        return rt_end(result == CUDA_SUCCESS ? (work) : result);                                                       \
    }

ARRAY_COPY(cudaMemcpy2DToArray,
           (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width,
            size_t height, enum cudaMemcpyKind kind),
           to_array(dst, wOffset, hOffset, src, spitch, width, height, kind, w))
ARRAY_COPY(cudaMemcpy2DFromArray,
           (void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
            size_t height, enum cudaMemcpyKind kind),
           from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind, w))
ARRAY_COPY(cudaMemcpy2DArrayToArray,
           (cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,
            size_t hOffsetSrc, size_t width, size_t height, enum cudaMemcpyKind kind),
           between(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, width, height, kind, w))
ARRAY_COPY(cudaMemcpyToArray,
           (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count, enum cudaMemcpyKind kind),
           fill(dst, wOffset, hOffset, (void *)(uintptr_t)src, count, kind, true, w))
ARRAY_COPY(cudaMemcpyFromArray,
           (void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count, enum cudaMemcpyKind kind),
           fill((cudaArray_t)(uintptr_t)src, wOffset, hOffset, dst, count, kind, false, w))
ARRAY_COPY(cudaMemcpyArrayToArray,
           (cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst, cudaArray_const_t src, size_t wOffsetSrc,
            size_t hOffsetSrc, size_t count, enum cudaMemcpyKind kind),
           fill_between(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc, count, kind, w))
ARRAY_COPY_ASYNC(cudaMemcpy2DToArrayAsync,
                 (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t spitch, size_t width,
                  size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
                 to_array(dst, wOffset, hOffset, src, spitch, width, height, kind, w))
ARRAY_COPY_ASYNC(cudaMemcpy2DFromArrayAsync,
                 (void *dst, size_t dpitch, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t width,
                  size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
                 from_array(dst, dpitch, src, wOffset, hOffset, width, height, kind, w))
ARRAY_COPY_ASYNC(cudaMemcpyToArrayAsync,
                 (cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src, size_t count,
                  enum cudaMemcpyKind kind, cudaStream_t stream),
                 fill(dst, wOffset, hOffset, (void *)(uintptr_t)src, count, kind, true, w))
ARRAY_COPY_ASYNC(cudaMemcpyFromArrayAsync,
                 (void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset, size_t count,
                  enum cudaMemcpyKind kind, cudaStream_t stream),
                 fill((cudaArray_t)(uintptr_t)src, wOffset, hOffset, dst, count, kind, false, w))
