/* wrap_unseen.c - calls that write device memory, and do not tell where: stream memory operations. They are counted, as
 * are exports to other processes (wrap_share.c); a capture in which one was called says so (CAP_HOOK), and
 * the analyzer then holds no memory to be unwritten. */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/record.h"
#include "shim/track.h"

/* Stream memory operations: what they write is not recorded, but that they order work is. */
#define ORDERS(symbol, op, own_stream, parameters, ...)                                                                \
    WRAP_AFTER_SUCCESS(symbol, symbol, record_order(&call, op, 0, track_stream_id(stream, own_stream)), parameters,    \
                       __VA_ARGS__)
#define IN_ALL_FORMS(symbol, op, parameters, ...)                                                                      \
    ORDERS(symbol, op, false, parameters, __VA_ARGS__)                                                                 \
    ORDERS(symbol##_ptsz, op, true, parameters, __VA_ARGS__)                                                           \
    ORDERS(symbol##_v2, op, false, parameters, __VA_ARGS__)                                                            \
    ORDERS(symbol##_v2_ptsz, op, true, parameters, __VA_ARGS__)
/* Of single words also which one, for `ops-debug hang`. */
static void record_value(const struct call *call, enum cap_order_op order, enum cap_stream_value_op op, uint32_t stream,
                         uint64_t address, uint64_t value, uint32_t bytes, uint32_t flags)
{
    record_order(call, order, 0, stream);
    record_stream_value(call, op, stream, address, value, bytes, flags);
}

#define VALUE(symbol, op, own_stream, bits)                                                                            \
    WRAP_AFTER_SUCCESS(symbol, symbol,                                                                                 \
                       record_value(&call, CAP_ORDER_##op##_VALUE, CAP_VALUE_##op,                                     \
                                    track_stream_id(stream, own_stream), addr, value, (bits) / 8, flags),              \
                       (CUstream stream, CUdeviceptr addr, cuuint##bits##_t value, unsigned int flags), stream, addr,  \
                       value, flags)
#define VALUE_IN_ALL_FORMS(symbol, op, bits)                                                                           \
    VALUE(symbol, op, false, bits)                                                                                     \
    VALUE(symbol##_ptsz, op, true, bits)                                                                               \
    VALUE(symbol##_v2, op, false, bits)                                                                                \
    VALUE(symbol##_v2_ptsz, op, true, bits)

VALUE_IN_ALL_FORMS(cuStreamWaitValue32, WAIT, 32)
VALUE_IN_ALL_FORMS(cuStreamWaitValue64, WAIT, 64)
VALUE_IN_ALL_FORMS(cuStreamWriteValue32, WRITE, 32)
VALUE_IN_ALL_FORMS(cuStreamWriteValue64, WRITE, 64)
/* It may wait, and it may write. */
IN_ALL_FORMS(cuStreamBatchMemOp, CAP_ORDER_WAIT_VALUE,
             (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags), stream,
             count, paramArray, flags)
