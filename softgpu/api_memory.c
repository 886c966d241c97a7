/* Allocations of the device and of host memory that it can reach. */
#include "softgpu/memory.h"
#include "softgpu/capture.h"
#include "softgpu/fault.h"
#include "softgpu/graph.h"
#include "softgpu/pool.h"

enum { PITCH_ALIGN = 512 };

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (!dptr || !bytesize)
        return CUDA_ERROR_INVALID_VALUE;
    if (fault_on_alloc("cuMemAlloc_v2"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t address;
    result = memory_alloc(c, bytesize, MEMORY_DEVICE, NULL, &address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && pool_trim_all())
        result = memory_alloc(c, bytesize, MEMORY_DEVICE, NULL, &address);
    if (result == CUDA_SUCCESS)
        *dptr = address;
    return result;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    bool element = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
    if (!dptr || !pPitch || !WidthInBytes || !Height || !element || WidthInBytes > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    size_t pitch = (WidthInBytes + PITCH_ALIGN - 1) / PITCH_ALIGN * PITCH_ALIGN;
    if (Height > SIZE_MAX / pitch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = cuMemAlloc_v2(dptr, pitch * Height);
    if (result == CUDA_SUCCESS)
        *pPitch = pitch;
    return result;
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    struct context *c;
    struct allocation a;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (!dptr)
        return CUDA_SUCCESS;
    uint32_t kinds = 1u << MEMORY_DEVICE | 1u << MEMORY_POOL | 1u << MEMORY_MANAGED | 1u << MEMORY_GRAPH;
    if (!memory_lookup(dptr, &a))
        return CUDA_ERROR_INVALID_VALUE;
    if (a.owner) /* imported from a pool, and not by cuIpcOpenMemHandle */
        kinds |= 1u << MEMORY_IMPORTED;
    if (a.address != dptr || !(kinds >> a.kind & 1))
        return CUDA_ERROR_INVALID_VALUE;
    /* Work that may still use it goes first, as on a device. */
    result = engine_wait_device();
    if (result != CUDA_SUCCESS)
        return result;
    if (a.kind == MEMORY_POOL)
        return pool_free_now(dptr);
    if (a.kind == MEMORY_GRAPH)
        return graph_memory_free(dptr);
    return memory_free(dptr, kinds);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct context *c;
    struct allocation a;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!memory_lookup(dptr, &a))
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = a.address;
    if (psize)
        *psize = a.bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    struct context *c;
    uint64_t free_bytes, total_bytes;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    memory_info(c->device, &free_bytes, &total_bytes);
    if (free)
        *free = free_bytes;
    if (total)
        *total = total_bytes;
    return CUDA_SUCCESS;
}

/* ---- pinned host memory ----------------------------------------------------------------------------------------- */

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    struct context *c;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (!pp || (Flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    if (!bytesize) {
        *pp = NULL;
        return CUDA_SUCCESS;
    }
    return memory_alloc_host(c, bytesize, MEMORY_PINNED, Flags | CU_MEMHOSTALLOC_DEVICEMAP, pp);
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void *p)
{
    struct context *c;
    struct allocation a;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (!p)
        return CUDA_SUCCESS;
    if (!memory_lookup((uintptr_t)p, &a) || a.kind != MEMORY_PINNED || a.address != (uintptr_t)p)
        return CUDA_ERROR_INVALID_VALUE;
    result = engine_wait_device();
    return result == CUDA_SUCCESS ? memory_free((uintptr_t)p, 1u << MEMORY_PINNED) : result;
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    struct context *c;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (!p || !bytesize || (uintptr_t)p + bytesize < bytesize)
        return CUDA_ERROR_INVALID_VALUE;
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return log_unsupported_part("cuMemHostRegister", "IOMEMORY");
    if (Flags & ~known)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_register(c, p, bytesize, Flags);
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void *p)
{
    struct context *c;
    struct allocation a;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (!p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!memory_lookup((uintptr_t)p, &a) || a.kind != MEMORY_REGISTERED || a.address != (uintptr_t)p)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    result = engine_wait_device();
    return result == CUDA_SUCCESS ? memory_free((uintptr_t)p, 1u << MEMORY_REGISTERED) : result;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    struct context *c;
    struct allocation a;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pdptr || Flags || !memory_lookup((uintptr_t)p, &a) || (a.kind != MEMORY_PINNED && a.kind != MEMORY_REGISTERED))
        return CUDA_ERROR_INVALID_VALUE;
    *pdptr = (uintptr_t)p;
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    struct context *c;
    struct allocation a;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pFlags || !memory_lookup((uintptr_t)p, &a) || a.kind != MEMORY_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    *pFlags = a.flags;
    return CUDA_SUCCESS;
}

/* ---- managed memory: one memory for both sides, always coherent here -------------------------------------------- */

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct context *c;
    void *p;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = capture_unsafe();
    if (result != CUDA_SUCCESS)
        return result;
    if (!dptr || !bytesize || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    if (fault_on_alloc("cuMemAllocManaged"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = memory_alloc_host(c, bytesize, MEMORY_MANAGED, flags, &p);
    if (result == CUDA_SUCCESS)
        *dptr = (uintptr_t)p;
    return result;
}
