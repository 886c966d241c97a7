/* wrap_unseen.c - calls that write device memory, or let others write it, and do not tell where: stream memory
 * operations, exports to other processes. They are counted; a capture in which one was called says so (CAP_HOOK), and
 * the analyzer then holds no memory to be unwritten. */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/record.h"
#include "shim/track.h"

#define UNSEEN(symbol, parameters, arguments)                                                                          \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        struct call call;                                                                                              \
        if (!call_enter(&call, HOOK_##symbol))                                                                         \
            return PASS(symbol, HOOK_##symbol) arguments;                                                              \
        call_begin(&call);                                                                                             \
        CUresult result = REAL(symbol, HOOK_##symbol) arguments;                                                       \
        call_end(&call);                                                                                               \
        return call_leave(&call, result);                                                                              \
    }

/* Stream memory operations: what they write is not recorded, but that they order work is. */
#define ORDERS(symbol, op, own_stream, parameters, arguments)                                                          \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        struct call call;                                                                                              \
        if (!call_enter(&call, HOOK_##symbol))                                                                         \
            return PASS(symbol, HOOK_##symbol) arguments;                                                              \
        call_begin(&call);                                                                                             \
        CUresult result = REAL(symbol, HOOK_##symbol) arguments;                                                       \
        call_end(&call);                                                                                               \
        if (result == CUDA_SUCCESS)                                                                                    \
            record_order(&call, op, 0, track_stream_id(stream, own_stream));                                           \
        return call_leave(&call, result);                                                                              \
    }
#define IN_ALL_FORMS(symbol, op, parameters, arguments)                                                                \
    ORDERS(symbol, op, false, parameters, arguments)                                                                   \
    ORDERS(symbol##_ptsz, op, true, parameters, arguments)                                                             \
    ORDERS(symbol##_v2, op, false, parameters, arguments)                                                              \
    ORDERS(symbol##_v2_ptsz, op, true, parameters, arguments)
#define VALUE(bits) (CUstream stream, CUdeviceptr addr, cuuint##bits##_t value, unsigned int flags)

IN_ALL_FORMS(cuStreamWaitValue32, CAP_ORDER_WAIT_VALUE, VALUE(32), (stream, addr, value, flags))
IN_ALL_FORMS(cuStreamWaitValue64, CAP_ORDER_WAIT_VALUE, VALUE(64), (stream, addr, value, flags))
IN_ALL_FORMS(cuStreamWriteValue32, CAP_ORDER_WRITE_VALUE, VALUE(32), (stream, addr, value, flags))
IN_ALL_FORMS(cuStreamWriteValue64, CAP_ORDER_WRITE_VALUE, VALUE(64), (stream, addr, value, flags))
/* It may wait, and it may write. */
IN_ALL_FORMS(cuStreamBatchMemOp, CAP_ORDER_WAIT_VALUE,
             (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags),
             (stream, count, paramArray, flags))

/* Exports; cuIpcGetMemHandle is in wrap_share.c. */
UNSEEN(cuMemPoolExportPointer, (CUmemPoolPtrExportData * shareData_out, CUdeviceptr ptr), (shareData_out, ptr))
