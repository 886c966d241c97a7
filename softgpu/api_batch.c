/* Batches of copies. All of a batch is checked before any of it is queued; the copies then follow each other in the
 * stream, which is one of the orders they may have. Sources and destinations on the host are read and written in stream
 * order, not before as by the plain functions, unless the source is said to be gone when the call returns. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/array.h"
#include "softgpu/copy.h"
#include "softgpu/memory.h"

struct batch {
    struct stream *stream;
    struct op **ops;
    size_t count;
};

static CUresult enter_batch(CUstream handle, size_t count, struct batch *b)
{
    struct context *c;
    *b = (struct batch){0};
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || handle == CU_STREAM_LEGACY || !count)
        return CUDA_ERROR_INVALID_VALUE;
    result = context_stream(c, handle, &b->stream);
    if (result == CUDA_SUCCESS && !(b->ops = calloc(count, sizeof(struct op *))))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    return result;
}

static void drop_batch(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        op_unref(b->ops[i]);
    free(b->ops);
}

static CUresult submit_batch(struct batch *b)
{
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < b->count && result == CUDA_SUCCESS; i++)
        result = engine_submit(b->stream, b->ops[i]);
    return result;
}

/* The bytes of a source that may be gone when the call returns. */
struct ephemeral_op {
    struct op op;
    struct op *copy; /* from `bytes` */
    char *bytes;
};

static void run_ephemeral(struct op *op)
{
    struct op *copy = ((struct ephemeral_op *)op)->copy;
    copy->run(copy);
}

static void describe_ephemeral(const struct op *op, struct trace_work *work)
{
    const struct op *copy = ((const struct ephemeral_op *)op)->copy;
    copy->describe(copy, work);
}

static void drop_ephemeral(struct op *op)
{
    struct ephemeral_op *e = (struct ephemeral_op *)op;
    op_unref(e->copy);
    free(e->bytes);
    free(e);
}

static CUresult make_ephemeral(struct copy_box box, struct op **out)
{
    struct ephemeral_op *e = op_new(sizeof *e, run_ephemeral, drop_ephemeral);
    uint64_t bytes = box.width * box.height * box.depth;
    if (!e || !(e->bytes = malloc(bytes))) {
        op_unref(e ? &e->op : NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (uint64_t z = 0; z < box.depth; z++)
        for (uint64_t y = 0; y < box.height; y++)
            memory_copy((uintptr_t)e->bytes + (z * box.height + y) * box.width,
                        box.from + z * box.from_slice + y * box.from_pitch, box.width);
    box.from = (uintptr_t)e->bytes;
    box.from_pitch = box.width;
    box.from_slice = box.width * box.height;
    box.from_side = COPY_HOST;
    CUresult result = copy_make(&box, &e->copy);
    e->op.describe = describe_ephemeral;
    if (result == CUDA_SUCCESS)
        *out = &e->op;
    else
        op_unref(&e->op);
    return result;
}

static CUresult add(struct batch *b, const struct copy_box *box, CUmemcpySrcAccessOrder order, unsigned flags)
{
    if (order < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order > CU_MEMCPY_SRC_ACCESS_ORDER_ANY ||
        (flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = copy_check(box);
    if (result == CUDA_SUCCESS)
        result = order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ? make_ephemeral(*box, &b->ops[b->count])
                                                                     : copy_make(box, &b->ops[b->count]);
    b->count += result == CUDA_SUCCESS;
    return result;
}

/* ---- between pointers ------------------------------------------------------------------------------------------- */

/* Which attributes belong to which copies: the first starts at 0, each later than the one before, all inside. */
static bool indices_ok(const size_t *indices, size_t number, size_t count)
{
    for (size_t i = 0; i < number; i++)
        if (indices[i] >= count || (i ? indices[i] <= indices[i - 1] : indices[i] != 0))
            return false;
    return number > 0 && number <= count;
}

/* *failed: the copy that was wrong, SIZE_MAX when the error belongs to none. */
static CUresult copy_batch(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes, size_t count,
                           const CUmemcpyAttributes *attrs, const size_t *attrsIdxs, size_t numAttrs, size_t *failed,
                           CUstream handle)
{
    struct batch b;
    *failed = SIZE_MAX;
    CUresult result = enter_batch(handle, count, &b);
    if (result == CUDA_SUCCESS &&
        (!dsts || !srcs || !sizes || !attrs || !attrsIdxs || !indices_ok(attrsIdxs, numAttrs, count)))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0, a = 0; result == CUDA_SUCCESS && i < count; i++) {
        while (a + 1 < numAttrs && attrsIdxs[a + 1] <= i)
            a++;
        struct copy_box box = {.width = sizes[i],
                               .height = 1,
                               .depth = 1,
                               .to = dsts[i],
                               .from = srcs[i],
                               .to_pitch = sizes[i],
                               .from_pitch = sizes[i],
                               .to_side = COPY_ANY,
                               .from_side = COPY_ANY};
        result = sizes[i] ? add(&b, &box, attrs[a].srcAccessOrder, attrs[a].flags) : CUDA_ERROR_INVALID_VALUE;
        if (result != CUDA_SUCCESS)
            *failed = i;
    }
    if (result == CUDA_SUCCESS)
        result = submit_batch(&b);
    drop_batch(&b);
    return result;
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
    size_t failed;
    return copy_batch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, &failed, hStream);
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                    CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
    return cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, per_thread(hStream));
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                            CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
                            CUstream hStream)
{
    size_t failed;
    CUresult result = copy_batch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, &failed, hStream);
    if (result != CUDA_SUCCESS && failIdx)
        *failIdx = failed;
    return result;
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                 CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
                                 CUstream hStream)
{
    return cuMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, per_thread(hStream));
}

/* ---- boxes of pointers and arrays ------------------------------------------------------------------------------- */

/* Bytes of an element: that of the arrays, which must agree, or 1 between pointers. 0 when something is wrong. */
static size_t element_of(const CUDA_MEMCPY3D_BATCH_OP *op)
{
    const CUmemcpy3DOperand *ends[] = {&op->src, &op->dst};
    size_t element = 0;
    for (int i = 0; i < 2; i++) {
        if (ends[i]->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
            continue;
        const struct array *a =
            ends[i]->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? array_from(ends[i]->op.array.array) : NULL;
        if (!a || (element && element != a->element))
            return 0;
        element = a->element;
    }
    return element ? element : 1;
}

static bool rows_ok(const CUmemcpy3DOperand *end, const CUextent3D *extent)
{
    return end->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ||
           ((!end->op.ptr.rowLength || end->op.ptr.rowLength >= extent->width) &&
            (!end->op.ptr.layerHeight || end->op.ptr.layerHeight >= extent->height));
}

static CUresult box_of(const CUDA_MEMCPY3D_BATCH_OP *op, struct copy_box *box)
{
    size_t element = element_of(op);
    const CUextent3D *e = &op->extent;
    if (!element || !e->width || !e->height || !e->depth || e->width > SIZE_MAX / element || !rows_ok(&op->src, e) ||
        !rows_ok(&op->dst, e))
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D p = {.WidthInBytes = e->width * element, .Height = e->height, .Depth = e->depth};
    if (op->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        p.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        p.srcArray = op->src.op.array.array;
        p.srcXInBytes = op->src.op.array.offset.x * element;
        p.srcY = op->src.op.array.offset.y;
        p.srcZ = op->src.op.array.offset.z;
    } else {
        p.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
        p.srcDevice = op->src.op.ptr.ptr;
        p.srcPitch = op->src.op.ptr.rowLength * element;
        p.srcHeight = op->src.op.ptr.layerHeight;
    }
    if (op->dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        p.dstArray = op->dst.op.array.array;
        p.dstXInBytes = op->dst.op.array.offset.x * element;
        p.dstY = op->dst.op.array.offset.y;
        p.dstZ = op->dst.op.array.offset.z;
    } else {
        p.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        p.dstDevice = op->dst.op.ptr.ptr;
        p.dstPitch = op->dst.op.ptr.rowLength * element;
        p.dstHeight = op->dst.op.ptr.layerHeight;
    }
    return copy_box_of(&p, box);
}

static CUresult copy_boxes(size_t count, const CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, size_t *failed,
                           CUstream handle)
{
    struct batch b;
    *failed = SIZE_MAX;
    CUresult result = enter_batch(handle, count, &b);
    if (result == CUDA_SUCCESS && (!list || flags))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        struct copy_box box;
        result = box_of(&list[i], &box);
        if (result == CUDA_SUCCESS)
            result = add(&b, &box, list[i].srcAccessOrder, list[i].flags);
        if (result != CUDA_SUCCESS)
            *failed = i;
    }
    if (result == CUDA_SUCCESS)
        result = submit_batch(&b);
    drop_batch(&b);
    return result;
}

CUresult cuMemcpy3DBatchAsync_v2(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
                                 CUstream hStream)
{
    size_t failed;
    return copy_boxes(numOps, opList, flags, &failed, hStream);
}

CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
                                      CUstream hStream)
{
    return cuMemcpy3DBatchAsync_v2(numOps, opList, flags, per_thread(hStream));
}

CUresult cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx, unsigned long long flags,
                              CUstream hStream)
{
    size_t failed;
    CUresult result = copy_boxes(numOps, opList, flags, &failed, hStream);
    if (result != CUDA_SUCCESS && failIdx)
        *failIdx = failed;
    return result;
}

CUresult cuMemcpy3DBatchAsync_ptsz(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
                                   unsigned long long flags, CUstream hStream)
{
    return cuMemcpy3DBatchAsync(numOps, opList, failIdx, flags, per_thread(hStream));
}
