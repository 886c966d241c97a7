/* What a pointer is. */
#include <string.h>

#include "softgpu/context.h"
#include "softgpu/memory.h"
#include "softgpu/pool.h"

static bool host_kind(const struct allocation *a)
{
    return a->kind == MEMORY_PINNED || a->kind == MEMORY_REGISTERED;
}

/* Only a mapping may have less than full access. */
static unsigned access_flags(CUdeviceptr ptr, const struct allocation *a)
{
    if (a->kind != MEMORY_MAPPING || memory_covers(ptr, 1, true))
        return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
    return memory_covers(ptr, 1, false) ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

/* Writes the attribute's value to `data`, whose type depends on it. */
static CUresult give(void *data, CUpointer_attribute attribute, CUdeviceptr ptr, const struct allocation *a)
{
    bool host = host_kind(a), managed = a->kind == MEMORY_MANAGED;
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = a->kind == MEMORY_MAPPING || a->kind == MEMORY_POOL ? NULL : (CUcontext)a->context;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = ptr;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host && !managed)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)data = (void *)(uintptr_t)ptr;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = a->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = a->kind == MEMORY_MAPPING ? (uintptr_t)a->owner : a->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = managed;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = (int)a->device;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = a->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = a->bytes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = access_flags(ptr, a);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = a->kind == MEMORY_POOL || a->kind == MEMORY_IMPORTED ? (CUmemoryPool)a->owner : NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = a->kind == MEMORY_POOL      ? pool_handle_types(a->owner)
                                      : a->kind == MEMORY_MAPPING ? memory_handle_types(a->owner)
                                                                  : 0;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)data = a->kind == MEMORY_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)data = a->sync_memops;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(unsigned *)data = 0;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct allocation a;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!data || !memory_lookup(ptr, &a))
        return CUDA_ERROR_INVALID_VALUE;
    return give(data, attribute, ptr, &a);
}

/* For a pointer that CUDA does not know every attribute is zero, and that is no error. */
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr)
{
    struct allocation a;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = memory_lookup(ptr, &a);
    for (unsigned i = 0; i < numAttributes; i++) {
        static const struct allocation none;
        if (known && give(data[i], attributes[i], ptr, &a) == CUDA_SUCCESS)
            continue;
        result = give(data[i], attributes[i], 0, &none);
        if (result != CUDA_SUCCESS && attributes[i] != CU_POINTER_ATTRIBUTE_HOST_POINTER)
            return result;
        if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
            *(void **)data[i] = known ? NULL : (void *)(uintptr_t)ptr;
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)data[i] = -2; /* as the driver says for memory it does not know */
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED ||
                 attributes[i] == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS)
            *(unsigned *)data[i] = 0;
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    /* All copies of one allocation are ordered as asked here anyway. */
    return value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
                   memory_set_sync_memops(ptr, *(const unsigned *)value != 0)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}
