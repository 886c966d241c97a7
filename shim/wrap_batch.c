/* wrap_batch.c - batches of copies. Each copy of a batch gets a record of its own, written when the driver has accepted
 * the batch: what it refuses may be garbage.
 */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/capture_write.h"
#include "shim/copy.h"

static void record_one(struct call *call, struct cap_copy *facts, CUstream stream, size_t i)
{
    if (i) /* records of calls have different seqs */
        call->seq = capture_next_seq();
    facts->asynchronous = 1;
    copy_done(copy_record(call, facts, stream), call, CUDA_SUCCESS, facts, stream);
}

static void record_flat(struct call *call, const CUdeviceptr *targets, const CUdeviceptr *sources, const size_t *sizes,
                        size_t count, CUstream stream)
{
    for (size_t i = 0; i < count; i++)
        record_one(call,
                   &(struct cap_copy){.target = targets[i],
                                      .source = sources[i],
                                      .width = sizes[i],
                                      .height = 1,
                                      .depth = 1,
                                      .kind = CAP_COPY_UNIFIED},
                   stream, i);
}

/* Without arrays an element is a byte. An array's element the driver knows: then the width counts elements. */
static void describe_side(const CUmemcpy3DOperand *side, const CUextent3D *extent, uint64_t *address, uint64_t *pitch,
                          uint64_t *slice_pitch)
{
    bool array = side->type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
    size_t row = array ? 0 : side->op.ptr.rowLength, rows = array ? 0 : side->op.ptr.layerHeight;
    *address = array ? (uint64_t)(uintptr_t)side->op.array.array : side->op.ptr.ptr;
    *pitch = row ? row : extent->width;
    *slice_pitch = *pitch * (rows ? rows : extent->height);
}

static void record_boxes(struct call *call, const CUDA_MEMCPY3D_BATCH_OP *list, size_t count, CUstream stream)
{
    for (size_t i = 0; i < count; i++) {
        const CUDA_MEMCPY3D_BATCH_OP *box = &list[i];
        bool array = box->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY || box->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
        struct cap_copy facts = {
            .width = box->extent.width,
            .height = box->extent.height,
            .depth = box->extent.depth,
            .kind = array ? CAP_COPY_ARRAY : CAP_COPY_UNIFIED,
        };
        describe_side(&box->dst, &box->extent, &facts.target, &facts.target_pitch, &facts.target_slice_pitch);
        describe_side(&box->src, &box->extent, &facts.source, &facts.source_pitch, &facts.source_slice_pitch);
        record_one(call, &facts, stream, i);
    }
}

#define BATCH(symbol, record, parameters, ...) WRAP_AFTER_SUCCESS(symbol, symbol, record, parameters, __VA_ARGS__)
#define FLAT                                   record_flat(&call, dsts, srcs, sizes, count, hStream)
#define BOXES                                  record_boxes(&call, opList, numOps, hStream)
#define FLAT_V1(symbol)                                                                                                \
    BATCH(symbol, FLAT,                                                                                                \
          (CUdeviceptr * dsts, CUdeviceptr * srcs, size_t * sizes, size_t count, CUmemcpyAttributes * attrs,           \
           size_t * attrsIdxs, size_t numAttrs, size_t * failIdx, CUstream hStream),                                   \
          dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, hStream)
#define FLAT_V2(symbol)                                                                                                \
    BATCH(symbol, FLAT,                                                                                                \
          (CUdeviceptr * dsts, CUdeviceptr * srcs, size_t * sizes, size_t count, CUmemcpyAttributes * attrs,           \
           size_t * attrsIdxs, size_t numAttrs, CUstream hStream),                                                     \
          dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream)
#define BOXES_V1(symbol)                                                                                               \
    BATCH(symbol, BOXES,                                                                                               \
          (size_t numOps, CUDA_MEMCPY3D_BATCH_OP * opList, size_t * failIdx, unsigned long long flags,                 \
           CUstream hStream),                                                                                          \
          numOps, opList, failIdx, flags, hStream)
#define BOXES_V2(symbol)                                                                                               \
    BATCH(symbol, BOXES, (size_t numOps, CUDA_MEMCPY3D_BATCH_OP * opList, unsigned long long flags, CUstream hStream), \
          numOps, opList, flags, hStream)

FLAT_V1(cuMemcpyBatchAsync)
FLAT_V1(cuMemcpyBatchAsync_ptsz)
FLAT_V2(cuMemcpyBatchAsync_v2)
FLAT_V2(cuMemcpyBatchAsync_v2_ptsz)
BOXES_V1(cuMemcpy3DBatchAsync)
BOXES_V1(cuMemcpy3DBatchAsync_ptsz)
BOXES_V2(cuMemcpy3DBatchAsync_v2)
BOXES_V2(cuMemcpy3DBatchAsync_v2_ptsz)
