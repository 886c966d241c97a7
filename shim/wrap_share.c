/* wrap_share.c - memory that is given to other processes. What they write there is not seen (see wrap_unseen.c). */
#include "shim/call.h"
#include "shim/guard.h"

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
    return call_leave(&call, result);
}
