#include "shim/touch.h"

#include <opsdebug/capture.h>

#include "shim/driver.h"
#include "shim/sentinel.h"
#include "shim/shim.h"

static int managed_shared;  /* atomic: 0 not asked, 1 yes, -1 no */
static bool managed_exists; /* atomic */

bool touch_managed_is_shared(void)
{
    int known = __atomic_load_n(&managed_shared, __ATOMIC_RELAXED), devices = 0;
    if (known || !driver.cuDeviceGetAttribute || !driver.cuDeviceGetCount ||
        driver.cuDeviceGetCount(&devices) != CUDA_SUCCESS)
        return known >= 0;
    known = 1;
    for (CUdevice d = 0; d < devices; d++) {
        int shares = 0;
        if (driver.cuDeviceGetAttribute(&shares, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, d) != CUDA_SUCCESS ||
            !shares)
            known = -1;
    }
    __atomic_store_n(&managed_shared, known, __ATOMIC_RELAXED);
    return known > 0;
}

void touch_managed_seen(void)
{
    if (__atomic_load_n(&managed_exists, __ATOMIC_RELAXED) || touch_managed_is_shared() ||
        __atomic_exchange_n(&managed_exists, true, __ATOMIC_ACQ_REL))
        return;
    shim_note(CAP_NOTE_LOST,
              "host and device cannot use managed memory at once here: it has no redzones, nor has memory "
              "of pools, and freed memory is not held back");
    sentinel_wait(deadline_in(1000)); /* those that are on their way */
}

bool touch_only_behind_launches(void)
{
    return __atomic_load_n(&managed_exists, __ATOMIC_ACQUIRE);
}

static CUmemLocation device_of(const struct tracked_stream *stream)
{
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE,
                           .id = stream->context ? (int)stream->context->device : 0};
}

static bool mapping_is_open(const struct allocation *a, const struct tracked_stream *stream)
{
    const CUmemLocation here = device_of(stream);
    unsigned long long flags = 0;
    if (!driver.cuMemGetAccess)
        return true;
    return driver.cuMemGetAccess(&flags, &here, a->address) == CUDA_SUCCESS && flags & CU_MEM_ACCESS_FLAGS_PROT_READ;
}

static bool pool_is_open(const struct allocation *a, const struct tracked_stream *stream)
{
    CUmemLocation here = device_of(stream);
    CUmemoryPool pool = NULL;
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return driver.cuPointerGetAttribute && driver.cuMemPoolGetAccess &&
           driver.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a->address) == CUDA_SUCCESS &&
           pool && driver.cuMemPoolGetAccess(&flags, pool, &here) == CUDA_SUCCESS &&
           flags & CU_MEM_ACCESS_FLAGS_PROT_READ;
}

bool touch_may_read(const struct allocation *a, const struct tracked_stream *stream)
{
    if (a->registers)
        return false;
    if (a->elsewhere)
        return pool_is_open(a, stream);
    if (a->kind == CAP_ALLOC_MAPPED)
        return mapping_is_open(a, stream);
    return !a->reserved || a->reserved == stream->id || touch_managed_is_shared();
}

bool touch_lies_with(CUdeviceptr address, const struct tracked_stream *stream)
{
    unsigned type = 0, managed = 0;
    int device = -1;
    return stream->context && driver.cuPointerGetAttribute &&
           driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE &&
           driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) == CUDA_SUCCESS &&
           !managed &&
           driver.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS &&
           (uint32_t)device == stream->context->device;
}
