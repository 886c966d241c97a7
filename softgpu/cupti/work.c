/* Kernels, copies and fills, when they have run. */
#include "softgpu/cupti/tracer.h"

static void write_kernel(const struct trace_work *work)
{
    CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    if (!activity_on(kind, work->context))
        kind = CUPTI_ACTIVITY_KIND_KERNEL;
    if (!activity_on(kind, work->context))
        return;
    static _Atomic int64_t last_grid;
    CUpti_ActivityKernel10 record = {
        .kind = kind,
        .registersPerThread = (uint16_t)work->kernel.registers,
        .start = work->start,
        .end = work->end,
        .completed = work->end,
        .deviceId = work->device,
        .contextId = work->context,
        .streamId = work->stream,
        .gridX = (int32_t)work->kernel.grid[0],
        .gridY = (int32_t)work->kernel.grid[1],
        .gridZ = (int32_t)work->kernel.grid[2],
        .blockX = (int32_t)work->kernel.block[0],
        .blockY = (int32_t)work->kernel.block[1],
        .blockZ = (int32_t)work->kernel.block[2],
        .staticSharedMemory = (int32_t)work->kernel.static_shared,
        .dynamicSharedMemory = (int32_t)work->kernel.dynamic_shared,
        .localMemoryPerThread = work->kernel.local,
        .correlationId = (uint32_t)work->tag,
        .gridId = atomic_fetch_add(&last_grid, 1) + 1,
        .name = intern(work->kernel.name),
        .queued = activity_latency() ? work->queued : CUPTI_TIMESTAMP_UNKNOWN,
        .submitted = activity_latency() ? work->queued : CUPTI_TIMESTAMP_UNKNOWN,
        .launchType = work->kernel.cooperative ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
                                               : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR,
        .sharedMemoryExecuted = work->kernel.static_shared + work->kernel.dynamic_shared,
        .graphNodeId = work->graph_node,
        .graphId = work->graph,
        .channelID = CUPTI_INVALID_CHANNEL_ID,
    };
    buffer_write(&record);
}

static const CUpti_ActivityMemoryKind memory_kinds[] = {
    [TRACE_PAGEABLE] = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, [TRACE_PINNED] = CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
    [TRACE_DEVICE] = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,     [TRACE_ARRAY] = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY,
    [TRACE_MANAGED] = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED,
};

/* Rows: from; columns: to. Managed memory counts as the device's. */
static uint8_t copy_kind(enum trace_memory from, enum trace_memory to)
{
    enum { HOST, DEVICE, ARRAY };
    static const uint8_t place[] = {[TRACE_PAGEABLE] = HOST,
                                    [TRACE_PINNED] = HOST,
                                    [TRACE_DEVICE] = DEVICE,
                                    [TRACE_ARRAY] = ARRAY,
                                    [TRACE_MANAGED] = DEVICE};
    static const uint8_t kinds[3][3] = {
        {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOA},
        {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOA},
        {CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD, CUPTI_ACTIVITY_MEMCPY_KIND_ATOA},
    };
    return kinds[place[from]][place[to]];
}

/* Between devices, or by a call whose name says so. */
static bool is_peer(const struct trace_work *work)
{
    return call_tag_peer(work->tag) || (work->copy.from == TRACE_DEVICE && work->copy.to == TRACE_DEVICE &&
                                        work->copy.from_device != work->copy.to_device);
}

static void write_peer_copy(const struct trace_work *work)
{
    CUpti_ActivityMemcpyPtoP4 record = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
                                        .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
                                        .srcKind = (uint8_t)memory_kinds[work->copy.from],
                                        .dstKind = (uint8_t)memory_kinds[work->copy.to],
                                        .flags = work->copy.async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
                                        .bytes = work->copy.bytes,
                                        .start = work->start,
                                        .end = work->end,
                                        .deviceId = work->device,
                                        .contextId = work->context,
                                        .streamId = work->stream,
                                        .srcDeviceId = work->copy.from_device,
                                        .srcContextId = work->context,
                                        .dstDeviceId = work->copy.to_device,
                                        .dstContextId = work->context,
                                        .correlationId = (uint32_t)work->tag,
                                        .graphNodeId = work->graph_node,
                                        .graphId = work->graph,
                                        .channelID = CUPTI_INVALID_CHANNEL_ID};
    buffer_write(&record);
}

static void write_copy(const struct trace_work *work)
{
    CUpti_ActivityMemcpy6 record = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                                    .copyKind = copy_kind(work->copy.from, work->copy.to),
                                    .srcKind = (uint8_t)memory_kinds[work->copy.from],
                                    .dstKind = (uint8_t)memory_kinds[work->copy.to],
                                    .flags = work->copy.async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
                                    .bytes = work->copy.bytes,
                                    .start = work->start,
                                    .end = work->end,
                                    .deviceId = work->device,
                                    .contextId = work->context,
                                    .streamId = work->stream,
                                    .correlationId = (uint32_t)work->tag,
                                    .graphNodeId = work->graph_node,
                                    .graphId = work->graph,
                                    .channelID = CUPTI_INVALID_CHANNEL_ID,
                                    .copyCount = 1};
    buffer_write(&record);
}

static void write_fill(const struct trace_work *work)
{
    CUpti_ActivityMemset4 record = {.kind = CUPTI_ACTIVITY_KIND_MEMSET,
                                    .value = work->fill.value,
                                    .bytes = work->fill.bytes,
                                    .start = work->start,
                                    .end = work->end,
                                    .deviceId = work->device,
                                    .contextId = work->context,
                                    .streamId = work->stream,
                                    .correlationId = (uint32_t)work->tag,
                                    .flags = work->fill.async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0,
                                    .memoryKind = (uint16_t)memory_kinds[work->fill.to],
                                    .graphNodeId = work->graph_node,
                                    .graphId = work->graph,
                                    .channelID = CUPTI_INVALID_CHANNEL_ID};
    buffer_write(&record);
}

static void write_graph(const struct trace_work *work)
{
    CUpti_ActivityGraphTrace2 record = {.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
                                        .correlationId = (uint32_t)work->tag,
                                        .start = work->start,
                                        .end = work->end,
                                        .deviceId = work->device,
                                        .graphId = work->graph,
                                        .contextId = work->context,
                                        .streamId = work->stream,
                                        .endDeviceId = work->device,
                                        .endContextId = work->context};
    buffer_write(&record);
}

/* Graphs are recorded as wholes or by their nodes. */
void work_done(const struct trace_work *work)
{
    if (work->graph && (work->kind == TRACE_GRAPH) != activity_on(CUPTI_ACTIVITY_KIND_GRAPH_TRACE, work->context))
        return;
    switch (work->kind) {
    case TRACE_KERNEL:
        write_kernel(work);
        break;
    case TRACE_COPY:
        if (activity_on(is_peer(work) ? CUPTI_ACTIVITY_KIND_MEMCPY2 : CUPTI_ACTIVITY_KIND_MEMCPY, work->context))
            (is_peer(work) ? write_peer_copy : write_copy)(work);
        break;
    case TRACE_FILL:
        if (activity_on(CUPTI_ACTIVITY_KIND_MEMSET, work->context))
            write_fill(work);
        break;
    case TRACE_GRAPH:
        write_graph(work);
        break;
    }
}
