/* wrap_share.c - memory that is given to other processes. What they write there is not seen (see wrap_unseen.c). */
#include <opsdebug/capture.h>

#include "shim/alloc_table.h"
#include "shim/call.h"
#include "shim/guard.h"
#include "shim/shim.h"

/* A handle names the driver's allocation, which begins with our redzone; who opens it does not know of that. */
static void note_head(CUdeviceptr pointer)
{
    static int noted;
    struct allocation a;
    if (alloc_table_exact(pointer, &a) && a.head && !__atomic_exchange_n(&noted, 1, __ATOMIC_RELAXED))
        shim_note(CAP_NOTE_LOST,
                  "memory with %u bytes of redzone in front was handed to another process, which sees its contents so "
                  "much later: run with --sentinels tail",
                  (unsigned)a.head);
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuIpcGetMemHandle))
        return PASS(cuIpcGetMemHandle, HOOK_cuIpcGetMemHandle)(pHandle, dptr);
    guard_stop_sharing();
    call_begin(&call);
    CUresult result = REAL(cuIpcGetMemHandle, HOOK_cuIpcGetMemHandle)(pHandle, dptr);
    call_end(&call);
    if (result != CUDA_SUCCESS)
        guard_export_failed(dptr);
    else
        note_head(dptr);
    return call_leave(&call, result);
}

/* What is exported is the driver's allocation: one that begins with our redzone has another address there. */
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemPoolExportPointer))
        return PASS(cuMemPoolExportPointer, HOOK_cuMemPoolExportPointer)(shareData_out, ptr);
    struct allocation a;
    CUdeviceptr base =
        alloc_table_exact(ptr, &a) && (a.kind == CAP_ALLOC_POOL || a.kind == CAP_ALLOC_ASYNC) ? a.base : ptr;
    guard_pool_exported();
    call_begin(&call);
    CUresult result = REAL(cuMemPoolExportPointer, HOOK_cuMemPoolExportPointer)(shareData_out, base);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        note_head(ptr);
    return call_leave(&call, result);
}

/* For network cards and the like. The driver wants whole pages of the host's size: memory with a redzone in front
 * begins in the middle of one. */
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType handleType,
                                       unsigned long long flags)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemGetHandleForAddressRange))
        return PASS(cuMemGetHandleForAddressRange, HOOK_cuMemGetHandleForAddressRange)(handle, dptr, size, handleType,
                                                                                       flags);
    guard_stop_sharing();
    call_begin(&call);
    CUresult result =
        REAL(cuMemGetHandleForAddressRange, HOOK_cuMemGetHandleForAddressRange)(handle, dptr, size, handleType, flags);
    call_end(&call);
    struct allocation a;
    static int noted;
    if (result != CUDA_SUCCESS && alloc_table_find(dptr, &a) && a.head &&
        !__atomic_exchange_n(&noted, 1, __ATOMIC_RELAXED))
        shim_note(CAP_NOTE_LOST,
                  "memory with %u bytes of redzone in front could not be exported page by page: run with "
                  "--sentinels tail",
                  (unsigned)a.head);
    return call_leave(&call, result);
}
