/* Arrays and mipmapped arrays. */
#include <string.h>

#include "softgpu/array.h"

CUresult cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pHandle || !pAllocateArray)
        return CUDA_ERROR_INVALID_VALUE;
    return array_create(c, pAllocateArray, (struct array **)pHandle);
}

CUresult cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
    struct context *c;
    if (!pAllocateArray || enter_context(&c) != CUDA_SUCCESS)
        return cuArray3DCreate_v2(pHandle, NULL); /* which says why */
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = pAllocateArray->Width,
                                 .Height = pAllocateArray->Height,
                                 .Format = pAllocateArray->Format,
                                 .NumChannels = pAllocateArray->NumChannels};
    return cuArray3DCreate_v2(pHandle, &d);
}

static CUresult enter_array(CUarray handle, struct array **out)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    *out = array_from(handle);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    struct array *a;
    CUresult result = enter_array(hArray, &a);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    *pArrayDescriptor = a->desc;
    return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUresult result = cuArray3DGetDescriptor_v2(&d, hArray);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pArrayDescriptor)
        return CUDA_ERROR_INVALID_VALUE;
    *pArrayDescriptor =
        (CUDA_ARRAY_DESCRIPTOR){.Width = d.Width, .Height = d.Height, .Format = d.Format, .NumChannels = d.NumChannels};
    return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray hArray)
{
    struct array *a;
    CUresult result = enter_array(hArray, &a);
    return result == CUDA_SUCCESS ? array_destroy(a) : result;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
                                      CUdevice device)
{
    struct array *a;
    CUresult result = enter_array(array, &a);
    if (result != CUDA_SUCCESS)
        return result;
    return CUDA_ERROR_INVALID_VALUE; /* there are no arrays with deferred mapping, of which alone it is told */
}

/* ---- mipmapped arrays ---- */

static CUresult enter_mipmap(CUmipmappedArray handle, struct mipmap **out)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    *out = mipmap_from(handle);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                unsigned int numMipmapLevels)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pHandle || !pMipmappedArrayDesc)
        return CUDA_ERROR_INVALID_VALUE;
    return mipmap_create(c, pMipmappedArrayDesc, numMipmapLevels, (struct mipmap **)pHandle);
}

CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
    struct mipmap *m;
    CUresult result = enter_mipmap(hMipmappedArray, &m);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pLevelArray || level >= m->count)
        return CUDA_ERROR_INVALID_VALUE;
    *pLevelArray = (CUarray)m->levels[level];
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
    struct mipmap *m;
    CUresult result = enter_mipmap(hMipmappedArray, &m);
    return result == CUDA_SUCCESS ? mipmap_destroy(m) : result;
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                               CUmipmappedArray mipmap, CUdevice device)
{
    struct mipmap *m;
    CUresult result = enter_mipmap(mipmap, &m);
    if (result != CUDA_SUCCESS)
        return result;
    return CUDA_ERROR_INVALID_VALUE; /* as for arrays */
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format, unsigned numChannels,
                                            CUdevice dev)
{
    struct array_format f;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (dev)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!maxWidthInElements)
        return CUDA_ERROR_INVALID_VALUE;
    result = array_format_of(format, numChannels, &f);
    if (result == CUDA_SUCCESS)
        *maxWidthInElements = (size_t)1 << 28;
    return result;
}
