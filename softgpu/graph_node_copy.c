/* Copies and fills as nodes. */
#include <stdio.h>
#include <string.h>

#include "softgpu/array.h"
#include "softgpu/copy.h"
#include "softgpu/graph.h"
#include "softgpu/memory.h"

/* ---- copies ----------------------------------------------------------------------------------------------------- */

/* Memory of a graph's own allocations is there only while the graph runs; what reaches it is checked at the launch. */
static bool of_graphs(const struct copy_box *box)
{
    return graph_memory_owns(box->to) || graph_memory_owns(box->from);
}

static CUresult copy_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    const CUDA_MEMCPY_NODE_PARAMS *p = &params->memcpy;
    struct context *c;
    struct copy_box box;
    if (p->flags || p->reserved)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = work_context(p->copyCtx, &c);
    if (result == CUDA_SUCCESS)
        result = copy_box_of(&p->copyParams, &box);
    if (result == CUDA_SUCCESS && !of_graphs(&box))
        result = copy_check(&box);
    if (result != CUDA_SUCCESS)
        return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
    work->params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = *p};
    work->params.memcpy.copyCtx = (CUcontext)c;
    work->context = c;
    return CUDA_SUCCESS;
}

static CUresult copy_step(const struct work *work, struct steps *steps)
{
    struct copy_box box;
    struct op *op;
    CUresult result = copy_box_of(&work->params.memcpy.copyParams, &box);
    if (result == CUDA_SUCCESS)
        result = copy_check(&box);
    if (result == CUDA_SUCCESS)
        result = copy_make(&box, &op);
    return result == CUDA_SUCCESS ? steps_add(steps, op) : result;
}

/* Which kind of memory an address is of, as far as an executable graph may not change it. */
static int memory_of(uint64_t address)
{
    struct allocation a;
    if (graph_memory_owns(address))
        return MEMORY_DEVICE;
    if (!memory_lookup(address, &a))
        return 0;
    switch (a.kind) {
    case MEMORY_DEVICE:
    case MEMORY_POOL:
    case MEMORY_MODULE:
    case MEMORY_MAPPING:
    case MEMORY_GRAPH:
        return MEMORY_DEVICE;
    default:
        return (int)a.kind;
    }
}

static uint64_t address_of(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
}

/* Not by memcmp(): what lies between the members is the program's stack. */
static bool same_copy(const CUDA_MEMCPY3D *a, const CUDA_MEMCPY3D *b)
{
#define SAME(member) (a->member == b->member)
#define SAME_SIDE(side)                                                                                                \
    (SAME(side##XInBytes) && SAME(side##Y) && SAME(side##Z) && SAME(side##LOD) && SAME(side##MemoryType) &&            \
     SAME(side##Host) && SAME(side##Device) && SAME(side##Array) && SAME(side##Pitch) && SAME(side##Height))
    return SAME_SIDE(src) && SAME_SIDE(dst) && SAME(WidthInBytes) && SAME(Height) && SAME(Depth);
#undef SAME_SIDE
#undef SAME
}

static CUgraphExecUpdateResult copy_change(const struct work *old, const struct work *new)
{
    const CUDA_MEMCPY3D *a = &old->params.memcpy.copyParams, *b = &new->params.memcpy.copyParams;
    if (same_copy(a, b))
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    bool flat = a->Height == 1 && a->Depth == 1 && b->Height == 1 && b->Depth == 1;
    bool types = a->srcMemoryType == b->srcMemoryType && a->dstMemoryType == b->dstMemoryType;
    if (!flat || !types || a->srcMemoryType == CU_MEMORYTYPE_ARRAY || a->dstMemoryType == CU_MEMORYTYPE_ARRAY ||
        old->context != new->context || !b->WidthInBytes)
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    if (memory_of(address_of(a->srcMemoryType, a->srcHost, a->srcDevice)) !=
            memory_of(address_of(b->srcMemoryType, b->srcHost, b->srcDevice)) ||
        memory_of(address_of(a->dstMemoryType, a->dstHost, a->dstDevice)) !=
            memory_of(address_of(b->dstMemoryType, b->dstHost, b->dstDevice)))
        return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static void copy_print(const struct work *work, void *file)
{
    static const char *const sides[] = {"?", "HOST", "DEVICE", "ARRAY", "UNIFIED"};
    const CUDA_MEMCPY3D *p = &work->params.memcpy.copyParams;
    fprintf(file, "%s to %s, %zu x %zu x %zu", sides[p->srcMemoryType], sides[p->dstMemoryType], p->WidthInBytes,
            p->Height, p->Depth);
}

const struct work_kind work_memcpy = {
    .type = CU_GRAPH_NODE_TYPE_MEMCPY,
    .name = "MEMCPY",
    .in_bodies = true,
    .set = copy_set,
    .make = copy_step,
    .change = copy_change,
    .print = copy_print,
};

/* ---- fills ------------------------------------------------------------------------------------------------------ */

static struct fill_box fill_of(const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
    return (struct fill_box){.to = p->dst,
                             .pitch = p->pitch,
                             .width = p->width,
                             .height = p->height,
                             .element = p->elementSize,
                             .value = p->value};
}

static CUresult fill_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    CUDA_MEMSET_NODE_PARAMS_v2 p = params->memset;
    struct context *c;
    if ((p.elementSize != 1 && p.elementSize != 2 && p.elementSize != 4) || !p.width || !p.height ||
        (p.elementSize < 4 && p.value >> 8 * p.elementSize))
        return CUDA_ERROR_INVALID_VALUE;
    const struct fill_box box = fill_of(&p);
    CUresult result = work_context(p.ctx, &c);
    if (result == CUDA_SUCCESS && !graph_memory_owns(box.to))
        result = fill_check(&box);
    if (result != CUDA_SUCCESS)
        return result;
    p.ctx = (CUcontext)c;
    work->params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = p};
    work->context = c;
    return CUDA_SUCCESS;
}

static CUresult fill_step(const struct work *work, struct steps *steps)
{
    const struct fill_box box = fill_of(&work->params.memset);
    struct op *op;
    CUresult result = fill_check(&box);
    if (result == CUDA_SUCCESS)
        result = fill_make(&box, &op);
    return result == CUDA_SUCCESS ? steps_add(steps, op) : result;
}

static CUgraphExecUpdateResult fill_change(const struct work *old, const struct work *new)
{
    const CUDA_MEMSET_NODE_PARAMS_v2 *a = &old->params.memset, *b = &new->params.memset;
    bool flat = a->height == 1 && b->height == 1;
    bool same = a->width == b->width && a->height == b->height && a->elementSize == b->elementSize &&
                (flat || a->pitch == b->pitch);
    return (flat || same) && old->context == new->context &&memory_of(a->dst) == memory_of(b->dst)
               ? CU_GRAPH_EXEC_UPDATE_SUCCESS
               : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

static void fill_print(const struct work *work, void *file)
{
    const CUDA_MEMSET_NODE_PARAMS_v2 *p = &work->params.memset;
    fprintf(file, "value 0x%x, %zu x %zu of %u", p->value, p->width, p->height, p->elementSize);
}

const struct work_kind work_memset = {
    .type = CU_GRAPH_NODE_TYPE_MEMSET,
    .name = "MEMSET",
    .in_bodies = true,
    .set = fill_set,
    .make = fill_step,
    .change = fill_change,
    .print = fill_print,
};
