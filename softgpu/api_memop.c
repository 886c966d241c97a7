/* Stream memory operations (memop.h) in all their forms: two versions of the interface, each for both default streams.
 */
#include "softgpu/capture.h"
#include "softgpu/memop.h"

static CUresult batch(CUstream handle, unsigned count, const CUstreamBatchMemOpParams *params, unsigned flags, bool old)
{
    struct context *c;
    struct stream *s;
    struct op *op;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, handle, &s);
    if (result == CUDA_SUCCESS)
        result = flags ? CUDA_ERROR_INVALID_VALUE : memop_check(params, count, old);
    bool captured = false;
    if (result == CUDA_SUCCESS)
        result = capture_enter(s, false, &captured);
    if (result == CUDA_SUCCESS && captured) {
        CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
        node.memOp =
            (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){(CUcontext)s->context, count, (CUstreamBatchMemOpParams *)params, 0};
        return capture_add(s, &node, NULL, 0);
    }
    if (result == CUDA_SUCCESS)
        result = memop_make(s->context, params, count, &op);
    return result == CUDA_SUCCESS ? engine_submit_and_forget(s, op) : result;
}

static CUresult wait_value(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value,
                           unsigned flags, bool old)
{
    CUstreamBatchMemOpParams p = {.waitValue = {.operation = type, .address = address, .flags = flags}};
    p.waitValue.value64 = value;
    return batch(stream, 1, &p, 0, old);
}

static CUresult write_value(CUstream stream, CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value,
                            unsigned flags, bool old)
{
    CUstreamBatchMemOpParams p = {.writeValue = {.operation = type, .address = address, .flags = flags}};
    p.writeValue.value64 = value;
    return batch(stream, 1, &p, 0, old);
}

/* The five functions of one form: FORM(suffix of the names, what a stream means, first version of the interface) */
#define FORM(suffix, meant, old)                                                                                       \
    CUresult cuStreamWaitValue32##suffix(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)      \
    {                                                                                                                  \
        return wait_value(meant(stream), CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags, old);                     \
    }                                                                                                                  \
    CUresult cuStreamWaitValue64##suffix(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)      \
    {                                                                                                                  \
        return wait_value(meant(stream), CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags, old);                     \
    }                                                                                                                  \
    CUresult cuStreamWriteValue32##suffix(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)     \
    {                                                                                                                  \
        return write_value(meant(stream), CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags, old);                   \
    }                                                                                                                  \
    CUresult cuStreamWriteValue64##suffix(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)     \
    {                                                                                                                  \
        return write_value(meant(stream), CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags, old);                   \
    }                                                                                                                  \
    CUresult cuStreamBatchMemOp##suffix(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,     \
                                        unsigned int flags)                                                            \
    {                                                                                                                  \
        return batch(meant(stream), count, paramArray, flags, old);                                                    \
    }

static CUstream as_given(CUstream stream)
{
    return stream;
}

FORM(, as_given, true)
FORM(_ptsz, per_thread, true)
FORM(_v2, as_given, false)
FORM(_v2_ptsz, per_thread, false)
