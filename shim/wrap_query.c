/* wrap_query.c - questions about memory, answered as if there were no redzones. */
#include <opsdebug/capture.h>

#include "shim/alloc_table.h"
#include "shim/call.h"
#include "shim/guard.h"
#include "shim/quarantine.h"
#include "shim/reserve.h"

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemGetInfo_v2))
        return PASS(cuMemGetInfo_v2, HOOK_cuMemGetInfo_v2)(free, total);
    call_begin(&call);
    CUresult result = REAL(cuMemGetInfo_v2, HOOK_cuMemGetInfo_v2)(free, total);
    call_end(&call);
    if (result == CUDA_SUCCESS && free && total) {
        uint32_t count;
        uint64_t bytes, redzones;
        alloc_table_totals(&count, &bytes, &redzones);
        uint64_t ours = redzones + quarantine_bytes() + guard_slack_bytes();
        *free = *free + ours < *total ? *free + ours : *total;
    }
    return call_leave_quiet(&call, result);
}

/* What the driver is asked about instead of `address`: memory that the program has freed is nobody's, though it is held
 * back. */
#define NOBODYS ((CUdeviceptr)16)

static CUdeviceptr asked(CUdeviceptr address)
{
    return quarantine_covers(address) ? NOBODYS : address;
}

/* The range as the program knows it, when the address lies in one of its allocations or in a redzone of that. */
static bool visible_range(CUdeviceptr address, CUdeviceptr *start, size_t *bytes)
{
    struct allocation a;
    if (!alloc_table_cover(address, &a) || a.kind == CAP_ALLOC_VARIABLE || a.kind == CAP_ALLOC_MAPPED ||
        a.kind == CAP_ALLOC_IMPORTED || a.kind == CAP_ALLOC_REGISTERED)
        return false; /* never had one */
    *start = a.address;
    *bytes = a.bytes;
    return true;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemGetAddressRange_v2))
        return PASS(cuMemGetAddressRange_v2, HOOK_cuMemGetAddressRange_v2)(pbase, psize, dptr);
    call_begin(&call);
    CUresult result = REAL(cuMemGetAddressRange_v2, HOOK_cuMemGetAddressRange_v2)(pbase, psize, asked(dptr));
    call_end(&call);
    CUdeviceptr start;
    size_t bytes;
    if (result == CUDA_SUCCESS && visible_range(dptr, &start, &bytes)) {
        if (pbase)
            *pbase = start;
        if (psize)
            *psize = bytes;
    } else if (result == CUDA_SUCCESS && pbase && psize) {
        uint64_t from = *pbase;
        reserve_clamp(dptr, &from, psize);
        *pbase = from;
    }
    return call_leave_quiet(&call, result);
}

static void correct(CUpointer_attribute attribute, void *data, CUdeviceptr address)
{
    struct allocation a;
    CUdeviceptr start;
    size_t bytes;
    if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT && data && alloc_table_find(address, &a) && guard_context(&a))
        *(CUcontext *)data = guard_context(&a);
    if (attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER && data && *(CUdeviceptr *)data == NOBODYS)
        *(CUdeviceptr *)data = address;
    if (attribute == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE)
        guard_stop_sharing();
    if (!data || (attribute != CU_POINTER_ATTRIBUTE_RANGE_START_ADDR && attribute != CU_POINTER_ATTRIBUTE_RANGE_SIZE) ||
        !visible_range(address, &start, &bytes))
        return;
    if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
        *(CUdeviceptr *)data = start;
    else
        *(size_t *)data = bytes;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuPointerGetAttribute))
        return PASS(cuPointerGetAttribute, HOOK_cuPointerGetAttribute)(data, attribute, ptr);
    call_begin(&call);
    CUresult result = REAL(cuPointerGetAttribute, HOOK_cuPointerGetAttribute)(data, attribute, asked(ptr));
    call_end(&call);
    if (result == CUDA_SUCCESS)
        correct(attribute, data, ptr);
    return call_leave_quiet(&call, result);
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuPointerGetAttributes))
        return PASS(cuPointerGetAttributes, HOOK_cuPointerGetAttributes)(numAttributes, attributes, data, ptr);
    call_begin(&call);
    CUresult result =
        REAL(cuPointerGetAttributes, HOOK_cuPointerGetAttributes)(numAttributes, attributes, data, asked(ptr));
    call_end(&call);
    if (result == CUDA_SUCCESS && attributes && data)
        for (unsigned i = 0; i < numAttributes; i++)
            correct(attributes[i], data[i], ptr);
    return call_leave_quiet(&call, result);
}
