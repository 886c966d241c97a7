/* graph_explode.c - a graph's launch as launches, copies and sets, one behind the other in the launch's stream.
 *
 * Only what has the same effect that way: no functions of the host, events, conditions or memory of the graph's own; no
 * copies from or to pageable memory, which the driver would not make in the stream's order. */
#include <stdlib.h>
#include <string.h>

#include "shim/alloc_table.h"
#include "shim/capture_write.h"
#include "shim/copy.h"
#include "shim/driver.h"
#include "shim/graph.h"
#include "shim/launch.h"
#include "shim/record.h"
#include "shim/sentinel.h"
#include "shim/stack.h"

/* ---- can it be done? ---- */

static bool pinned(uint64_t address)
{
    struct allocation a;
    if (!alloc_table_find(address, &a))
        return false;
    return a.kind == CAP_ALLOC_HOST || a.kind == CAP_ALLOC_REGISTERED || a.kind == CAP_ALLOC_MANAGED;
}

static bool side_ok(CUmemorytype type, const struct graph_node *node, bool source)
{
    uint64_t address = source ? node->copy.source : node->copy.target;
    struct allocation a;
    if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_ARRAY)
        return true;
    return type == CU_MEMORYTYPE_HOST ? pinned(address) : alloc_table_find(address, &a);
}

static bool node_ok(const struct graph_node *node)
{
    if (node->flags & CAP_NODE_DISABLED)
        return true;
    if (node->flags & (CAP_NODE_UNKNOWN | CAP_NODE_ARGS_UNKNOWN))
        return false;
    switch ((enum cap_graph_node_kind)node->kind) {
    case CAP_NODE_EMPTY:
        return true;
    case CAP_NODE_KERNEL:
        return node->attributes_known && driver.cuLaunchKernel && (!node->config_flags || driver.cuLaunchKernelEx);
    case CAP_NODE_COPY:
        return node->box && driver.cuMemcpy3DAsync_v2 && side_ok(node->box->srcMemoryType, node, true) &&
               side_ok(node->box->dstMemoryType, node, false);
    case CAP_NODE_SET:
        return driver.cuMemsetD8Async && driver.cuMemsetD16Async && driver.cuMemsetD32Async &&
               driver.cuMemsetD2D8Async && driver.cuMemsetD2D16Async && driver.cuMemsetD2D32Async;
    default:
        return false;
    }
}

/* ---- nodes ---- */

/* A call of its own within the program's one. */
static struct call part_of(const struct call *call)
{
    struct call part = *call;
    part.hook = HOOK_cuGraphLaunch; /* streams are named as the legacy forms do */
    part.seq = capture_next_seq();
    part.tsc = call_tsc();
    return part;
}

static CUresult launch_kernel(const struct graph_node *node, const struct launch_request *r, void **extra)
{
    CUfunction function = (CUfunction)(uintptr_t)node->function;
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = {.gridDimX = r->grid[0],
                             .gridDimY = r->grid[1],
                             .gridDimZ = r->grid[2],
                             .blockDimX = r->block[0],
                             .blockDimY = r->block[1],
                             .blockDimZ = r->block[2],
                             .sharedMemBytes = r->dynamic_shared_bytes,
                             .hStream = r->stream,
                             .attrs = attributes};
    if (!node->config_flags)
        return driver.cuLaunchKernel(function, r->grid[0], r->grid[1], r->grid[2], r->block[0], r->block[1],
                                     r->block[2], r->dynamic_shared_bytes, r->stream, NULL, extra);
    memset(attributes, 0, sizeof attributes);
    if (node->config_flags & CAP_CONFIG_COOPERATIVE) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[config.numAttrs++].value.cooperative = 1;
    }
    if (node->config_flags & CAP_CONFIG_CLUSTER) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[config.numAttrs].value.clusterDim.x = node->cluster[0];
        attributes[config.numAttrs].value.clusterDim.y = node->cluster[1];
        attributes[config.numAttrs++].value.clusterDim.z = node->cluster[2];
    }
    return driver.cuLaunchKernelEx(&config, function, NULL, extra);
}

static CUresult run_kernel(struct call *part, const struct graph_node *node, struct tracked_stream *stream)
{
    size_t bytes = node->argument_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, node->arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    struct launch_request request = {.function = node->function,
                                     .dynamic_shared_bytes = node->dynamic_shared_bytes,
                                     .flags = node->config_flags,
                                     .stream = stream->handle,
                                     .extra = bytes ? extra : NULL};
    memcpy(request.grid, node->grid, sizeof request.grid);
    memcpy(request.block, node->block, sizeof request.block);
    struct launch launch;
    launch_before(&launch, part, &request);
    call_begin(part);
    CUresult result = launch_kernel(node, &request, request.extra);
    call_end(part);
    launch_after(&launch, result);
    return result;
}

static CUresult run_copy(struct call *part, const struct graph_node *node, struct tracked_stream *stream)
{
    struct cap_copy facts = node->copy;
    facts.asynchronous = 1;
    struct cap_copy *record = copy_record(part, &facts, stream->handle);
    call_begin(part);
    CUresult result = driver.cuMemcpy3DAsync_v2(node->box, stream->handle);
    call_end(part);
    copy_done(record, part, result, &facts, stream->handle);
    return result;
}

static CUresult set_memory(const struct cap_set *s, CUstream stream)
{
    size_t width = s->width / s->value_bytes;
    bool flat = s->height == 1;
    switch (s->value_bytes) {
    case 1:
        return flat ? driver.cuMemsetD8Async(s->target, (unsigned char)s->value, width, stream)
                    : driver.cuMemsetD2D8Async(s->target, s->pitch, (unsigned char)s->value, width, s->height, stream);
    case 2:
        return flat
                   ? driver.cuMemsetD16Async(s->target, (unsigned short)s->value, width, stream)
                   : driver.cuMemsetD2D16Async(s->target, s->pitch, (unsigned short)s->value, width, s->height, stream);
    default:
        return flat ? driver.cuMemsetD32Async(s->target, s->value, width, stream)
                    : driver.cuMemsetD2D32Async(s->target, s->pitch, s->value, width, s->height, stream);
    }
}

static CUresult run_set(struct call *part, const struct graph_node *node, struct tracked_stream *stream)
{
    uint32_t stack = stack_here();
    struct cap_set *record = capture_record(CAP_SET, sizeof *record, part->seq, part->tsc);
    if (record) {
        struct cap_head head = record->head;
        *record = node->set;
        record->head = head;
        record->stream = stream->id;
        record->asynchronous = 1;
        record->stack = stack;
        capture_commit(record);
    }
    call_begin(part);
    CUresult result = set_memory(&node->set, stream->handle);
    call_end(part);
    if (record) {
        __atomic_store_n(&record->call_ns, call_real_ns(part), __ATOMIC_RELAXED);
        __atomic_store_n(&record->result, (int32_t)result, __ATOMIC_RELAXED);
    }
    if (result == CUDA_SUCCESS)
        sentinel_after_write(stream, part->seq, false);
    return result;
}

static CUresult run_node(const struct call *call, const struct graph_node *node, struct tracked_stream *stream)
{
    struct call part = part_of(call);
    switch ((enum cap_graph_node_kind)node->kind) {
    case CAP_NODE_KERNEL:
        return run_kernel(&part, node, stream);
    case CAP_NODE_COPY:
        return run_copy(&part, node, stream);
    case CAP_NODE_SET:
        return run_set(&part, node, stream);
    default:
        return CUDA_SUCCESS;
    }
}

bool graph_explode(struct call *call, struct tracked_graph *graph, struct tracked_stream *stream, CUresult *result)
{
    struct graph_body body;
    uint32_t version;
    thread_slow();
    if (!graph_now(graph, &body, &version))
        return false;
    bool ok = !body.incomplete && body.count;
    for (uint32_t i = 0; ok && i < body.count; i++)
        ok = node_ok(&body.nodes[i]);
    *result = CUDA_SUCCESS;
    call_begin(call);
    for (uint32_t i = 0; ok && i < body.count && *result == CUDA_SUCCESS; i++)
        if (!(body.nodes[i].flags & CAP_NODE_DISABLED))
            *result = run_node(call, &body.nodes[i], stream);
    call_end(call);
    graph_body_free(&body);
    return ok;
}
