/* Texture and surface objects: the descriptors of one interface as those of the other. */
#include <string.h>

#include "softgpu/rt_array.h"

/* The resource types have the same order in both interfaces. */
static CUresult to_resource(CUDA_RESOURCE_DESC *to, const struct cudaResourceDesc *from)
{
    memset(to, 0, sizeof *to);
    to->resType = (CUresourcetype)from->resType;
    to->flags = from->flags;
    switch (from->resType) {
    case cudaResourceTypeArray:
        to->res.array.hArray = (CUarray)from->res.array.array;
        return CUDA_SUCCESS;
    case cudaResourceTypeMipmappedArray:
        to->res.mipmap.hMipmappedArray = (CUmipmappedArray)from->res.mipmap.mipmap;
        return CUDA_SUCCESS;
    case cudaResourceTypeLinear:
        to->res.linear.devPtr = rt_address(from->res.linear.devPtr);
        to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
        return rt_array_format(&from->res.linear.desc, &to->res.linear.format, &to->res.linear.numChannels)
                   ? CUDA_SUCCESS
                   : (CUresult)cudaErrorInvalidChannelDescriptor;
    case cudaResourceTypePitch2D:
        to->res.pitch2D.devPtr = rt_address(from->res.pitch2D.devPtr);
        to->res.pitch2D.width = from->res.pitch2D.width;
        to->res.pitch2D.height = from->res.pitch2D.height;
        to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
        return rt_array_format(&from->res.pitch2D.desc, &to->res.pitch2D.format, &to->res.pitch2D.numChannels)
                   ? CUDA_SUCCESS
                   : (CUresult)cudaErrorInvalidChannelDescriptor;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static void from_resource(struct cudaResourceDesc *to, const CUDA_RESOURCE_DESC *from)
{
    memset(to, 0, sizeof *to);
    to->resType = (enum cudaResourceType)from->resType;
    to->flags = from->flags;
    switch (from->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        to->res.array.array = (cudaArray_t)from->res.array.hArray;
        break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        to->res.mipmap.mipmap = (cudaMipmappedArray_t)from->res.mipmap.hMipmappedArray;
        break;
    case CU_RESOURCE_TYPE_LINEAR:
        to->res.linear.devPtr = rt_pointer(from->res.linear.devPtr);
        to->res.linear.desc = rt_channel_desc(from->res.linear.format, from->res.linear.numChannels);
        to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
        break;
    default:
        to->res.pitch2D.devPtr = rt_pointer(from->res.pitch2D.devPtr);
        to->res.pitch2D.desc = rt_channel_desc(from->res.pitch2D.format, from->res.pitch2D.numChannels);
        to->res.pitch2D.width = from->res.pitch2D.width;
        to->res.pitch2D.height = from->res.pitch2D.height;
        to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
    }
}

/* So have the modes of addressing and filtering. */
static void to_texture(CUDA_TEXTURE_DESC *to, const struct cudaTextureDesc *from)
{
    memset(to, 0, sizeof *to);
    for (int i = 0; i < 3; i++)
        to->addressMode[i] = (CUaddress_mode)from->addressMode[i];
    to->filterMode = (CUfilter_mode)from->filterMode;
    to->flags = (from->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0u) |
                (from->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0u) | (from->sRGB ? CU_TRSF_SRGB : 0u) |
                (from->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0u) |
                (from->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0u);
    to->maxAnisotropy = from->maxAnisotropy;
    to->mipmapFilterMode = (CUfilter_mode)from->mipmapFilterMode;
    to->mipmapLevelBias = from->mipmapLevelBias;
    to->minMipmapLevelClamp = from->minMipmapLevelClamp;
    to->maxMipmapLevelClamp = from->maxMipmapLevelClamp;
    memcpy(to->borderColor, from->borderColor, sizeof to->borderColor);
}

static void from_texture(struct cudaTextureDesc *to, const CUDA_TEXTURE_DESC *from)
{
    memset(to, 0, sizeof *to);
    for (int i = 0; i < 3; i++)
        to->addressMode[i] = (enum cudaTextureAddressMode)from->addressMode[i];
    to->filterMode = (enum cudaTextureFilterMode)from->filterMode;
    to->readMode = from->flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
    to->sRGB = (from->flags & CU_TRSF_SRGB) != 0;
    memcpy(to->borderColor, from->borderColor, sizeof to->borderColor);
    to->normalizedCoords = (from->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
    to->maxAnisotropy = from->maxAnisotropy;
    to->mipmapFilterMode = (enum cudaTextureFilterMode)from->mipmapFilterMode;
    to->mipmapLevelBias = from->mipmapLevelBias;
    to->minMipmapLevelClamp = from->minMipmapLevelClamp;
    to->maxMipmapLevelClamp = from->maxMipmapLevelClamp;
    to->disableTrilinearOptimization = (from->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
    to->seamlessCubemap = (from->flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
}

/* The formats of views have the same numbers. */
static void to_view(CUDA_RESOURCE_VIEW_DESC *to, const struct cudaResourceViewDesc *from)
{
    *to = (CUDA_RESOURCE_VIEW_DESC){.format = (CUresourceViewFormat)from->format,
                                    .width = from->width,
                                    .height = from->height,
                                    .depth = from->depth,
                                    .firstMipmapLevel = from->firstMipmapLevel,
                                    .lastMipmapLevel = from->lastMipmapLevel,
                                    .firstLayer = from->firstLayer,
                                    .lastLayer = from->lastLayer};
}

/* The format of the elements that a texture reads. */
static CUresult format_of(const CUDA_RESOURCE_DESC *r, struct cudaChannelFormatDesc *out)
{
    CUarray array = r->res.array.hArray;
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult result = CUDA_SUCCESS;
    if (r->resType == CU_RESOURCE_TYPE_LINEAR) {
        *out = rt_channel_desc(r->res.linear.format, r->res.linear.numChannels);
        return CUDA_SUCCESS;
    }
    if (r->resType == CU_RESOURCE_TYPE_PITCH2D) {
        *out = rt_channel_desc(r->res.pitch2D.format, r->res.pitch2D.numChannels);
        return CUDA_SUCCESS;
    }
    if (r->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        result = driver.cuMipmappedArrayGetLevel(&array, r->res.mipmap.hMipmappedArray, 0);
    if (result == CUDA_SUCCESS)
        result = driver.cuArray3DGetDescriptor_v2(&d, array);
    if (result == CUDA_SUCCESS)
        *out = rt_channel_desc(d.Format, d.NumChannels);
    return result;
}

/* Integers are filtered only when they are read as floats, and only small ones are. */
static CUresult check_reading(const CUDA_RESOURCE_DESC *r, const struct cudaTextureDesc *t)
{
    struct cudaChannelFormatDesc f;
    CUresult result = format_of(r, &f);
    if (result != CUDA_SUCCESS)
        return result;
    bool integers = f.f == cudaChannelFormatKindSigned || f.f == cudaChannelFormatKindUnsigned;
    if (integers && t->readMode == cudaReadModeNormalizedFloat && f.x == 32)
        return (CUresult)cudaErrorInvalidNormSetting;
    if (integers && t->readMode == cudaReadModeElementType && t->filterMode == cudaFilterModeLinear)
        return (CUresult)cudaErrorInvalidFilterSetting;
    return CUDA_SUCCESS;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *pTexObject, const struct cudaResourceDesc *pResDesc,
                                    const struct cudaTextureDesc *pTexDesc,
                                    const struct cudaResourceViewDesc *pResViewDesc)
{
    CUDA_RESOURCE_DESC r;
    CUDA_TEXTURE_DESC t;
    CUDA_RESOURCE_VIEW_DESC v;
    CUtexObject object;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && (!pTexObject || !pResDesc || !pTexDesc))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = to_resource(&r, pResDesc);
    if (result == CUDA_SUCCESS && !pResViewDesc)
        result = check_reading(&r, pTexDesc);
    if (result != CUDA_SUCCESS)
        return rt_end(result);
    to_texture(&t, pTexDesc);
    if (pResViewDesc)
        to_view(&v, pResViewDesc);
    result = driver.cuTexObjectCreate(&object, &r, &t, pResViewDesc ? &v : NULL);
    if (result == CUDA_SUCCESS)
        *pTexObject = object;
    return rt_end(result);
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texObject)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuTexObjectDestroy(texObject);
    return rt_end(result);
}

cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *pResDesc, cudaTextureObject_t texObject)
{
    CUDA_RESOURCE_DESC r;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = pResDesc ? driver.cuTexObjectGetResourceDesc(&r, texObject) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        from_resource(pResDesc, &r);
    return rt_end(result);
}

cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *pTexDesc, cudaTextureObject_t texObject)
{
    CUDA_TEXTURE_DESC t;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = pTexDesc ? driver.cuTexObjectGetTextureDesc(&t, texObject) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        from_texture(pTexDesc, &t);
    return rt_end(result);
}

cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *pResViewDesc,
                                                 cudaTextureObject_t texObject)
{
    CUDA_RESOURCE_VIEW_DESC v;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = pResViewDesc ? driver.cuTexObjectGetResourceViewDesc(&v, texObject) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pResViewDesc = (struct cudaResourceViewDesc){.format = (enum cudaResourceViewFormat)v.format,
                                                      .width = v.width,
                                                      .height = v.height,
                                                      .depth = v.depth,
                                                      .firstMipmapLevel = v.firstMipmapLevel,
                                                      .lastMipmapLevel = v.lastMipmapLevel,
                                                      .firstLayer = v.firstLayer,
                                                      .lastLayer = v.lastLayer};
    return rt_end(result);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *pSurfObject, const struct cudaResourceDesc *pResDesc)
{
    CUDA_RESOURCE_DESC r;
    CUsurfObject object;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = pSurfObject && pResDesc ? to_resource(&r, pResDesc) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = driver.cuSurfObjectCreate(&object, &r);
    if (result == CUDA_SUCCESS)
        *pSurfObject = object;
    return rt_end(result);
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuSurfObjectDestroy(surfObject);
    return rt_end(result);
}

cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *pResDesc, cudaSurfaceObject_t surfObject)
{
    CUDA_RESOURCE_DESC r;
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = pResDesc ? driver.cuSurfObjectGetResourceDesc(&r, surfObject) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        from_resource(pResDesc, &r);
    return rt_end(result);
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements,
                                                 const struct cudaChannelFormatDesc *fmtDesc, int device)
{
    CUarray_format format;
    unsigned channels;
    CUdevice d = 0;
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGet(&d, device);
    if (result == CUDA_SUCCESS && (!fmtDesc || !rt_array_format(fmtDesc, &format, &channels)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetTexture1DLinearMaxWidth(maxWidthInElements, format, channels, d);
    return rt_end(result);
}
