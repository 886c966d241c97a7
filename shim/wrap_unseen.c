/* wrap_unseen.c - calls that write device memory, or let others write it, and have no record: stream memory operations,
 * batches of copies, exports to other processes. They are only counted; a capture in which one was called says so
 * (CAP_HOOK), and the analyzer then holds no memory to be unwritten. */
#include "shim/call.h"

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
#define IN_ALL_FORMS(symbol, parameters, arguments)                                                                    \
    UNSEEN(symbol, parameters, arguments)                                                                              \
    UNSEEN(symbol##_ptsz, parameters, arguments)                                                                       \
    UNSEEN(symbol##_v2, parameters, arguments)                                                                         \
    UNSEEN(symbol##_v2_ptsz, parameters, arguments)
#define IN_BOTH_FORMS(symbol, parameters, arguments)                                                                   \
    UNSEEN(symbol, parameters, arguments)                                                                              \
    UNSEEN(symbol##_ptsz, parameters, arguments)

/* Stream memory operations. */
IN_ALL_FORMS(cuStreamWaitValue32, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags),
             (stream, addr, value, flags))
IN_ALL_FORMS(cuStreamWaitValue64, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags),
             (stream, addr, value, flags))
IN_ALL_FORMS(cuStreamWriteValue32, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags),
             (stream, addr, value, flags))
IN_ALL_FORMS(cuStreamWriteValue64, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags),
             (stream, addr, value, flags))
IN_ALL_FORMS(cuStreamBatchMemOp,
             (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags),
             (stream, count, paramArray, flags))

/* Batches. */
IN_BOTH_FORMS(cuMemcpyBatchAsync,
              (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
               size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream),
              (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, hStream))
IN_BOTH_FORMS(cuMemcpy3DBatchAsync,
              (size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx, unsigned long long flags,
               CUstream hStream),
              (numOps, opList, failIdx, flags, hStream))
#define BATCH_V2(symbol)                                                                                               \
    UNSEEN(symbol,                                                                                                     \
           (CUdeviceptr * dsts, CUdeviceptr * srcs, size_t * sizes, size_t count, CUmemcpyAttributes * attrs,          \
            size_t * attrsIdxs, size_t numAttrs, CUstream hStream),                                                    \
           (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream))
BATCH_V2(cuMemcpyBatchAsync_v2)
BATCH_V2(cuMemcpyBatchAsync_v2_ptsz)
#define BOXES_V2(symbol)                                                                                               \
    UNSEEN(symbol, (size_t numOps, CUDA_MEMCPY3D_BATCH_OP * opList, unsigned long long flags, CUstream hStream),       \
           (numOps, opList, flags, hStream))
BOXES_V2(cuMemcpy3DBatchAsync_v2)
BOXES_V2(cuMemcpy3DBatchAsync_v2_ptsz)

/* Exports; cuIpcGetMemHandle is in wrap_share.c. */
UNSEEN(cuMemPoolExportPointer, (CUmemPoolPtrExportData * shareData_out, CUdeviceptr ptr), (shareData_out, ptr))
