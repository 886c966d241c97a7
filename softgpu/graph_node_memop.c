/* Batches of stream memory operations as nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/graph.h"
#include "softgpu/memop.h"

static CUstreamBatchMemOpParams *copy_params(const CUstreamBatchMemOpParams *from, unsigned count)
{
    CUstreamBatchMemOpParams *copy = malloc(count * sizeof *copy);
    if (copy)
        memcpy(copy, from, count * sizeof *copy);
    return copy;
}

static CUresult set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 p = params->memOp;
    struct context *c;
    CUresult result = work_context(p.ctx, &c);
    if (result == CUDA_SUCCESS)
        result = p.flags ? CUDA_ERROR_INVALID_VALUE : memop_check(p.paramArray, p.count, false);
    if (result != CUDA_SUCCESS)
        return result;
    p.paramArray = copy_params(p.paramArray, p.count);
    if (!p.paramArray)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p.ctx = (CUcontext)c;
    if (work->kind)
        free(work->params.memOp.paramArray);
    work->params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = p};
    work->context = c;
    return CUDA_SUCCESS;
}

static CUresult copy(struct work *to, const struct work *from, bool visible)
{
    to->params.memOp.paramArray = copy_params(from->params.memOp.paramArray, from->params.memOp.count);
    return to->params.memOp.paramArray ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void clear(struct work *work)
{
    free(work->params.memOp.paramArray);
}

static CUresult make(const struct work *work, struct steps *steps)
{
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p = &work->params.memOp;
    struct op *op;
    CUresult result = memop_check(p->paramArray, p->count, false);
    if (result == CUDA_SUCCESS)
        result = memop_make(work->context, p->paramArray, p->count, &op);
    return result == CUDA_SUCCESS ? steps_add(steps, op) : result;
}

static bool waits(CUstreamBatchMemOpType type)
{
    return type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

/* Addresses and values may change, and the width of waits; what is done may not, nor how much. */
static CUgraphExecUpdateResult change(const struct work *old, const struct work *new)
{
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *a = &old->params.memOp, *b = &new->params.memOp;
    if (a->count != b->count || old->context != new->context)
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    for (unsigned i = 0; i < a->count; i++)
        if (a->paramArray[i].operation != b->paramArray[i].operation &&
            !(waits(a->paramArray[i].operation) && waits(b->paramArray[i].operation)))
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static void print(const struct work *work, void *file)
{
    fprintf(file, "%u operations", work->params.memOp.count);
}

const struct work_kind work_memop = {
    .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
    .name = "BATCH_MEM_OP",
    .set = set,
    .copy = copy,
    .clear = clear,
    .make = make,
    .change = change,
    .print = print,
};
