/* What a watcher is told, and what it may ask (trace.h). */
#include "softgpu/array.h"
#include "softgpu/engine.h"
#include "softgpu/graph.h"
#include "softgpu/memory.h"
#include "softgpu/module.h"
#include "softgpu/trace_state.h"

void trace_tag(struct op *op)
{
    const struct trace_hooks *hooks = trace_hooks();
    if (hooks) {
        op->tag = hooks->tag();
        op->queued_ns = hooks->now();
    }
}

void trace_run(struct op *op, const struct stream *s)
{
    const struct trace_hooks *hooks = trace_hooks();
    if (!hooks || !op->tag || !op->describe) {
        op->run(op);
        return;
    }
    struct trace_work work = {.tag = op->tag,
                              .queued = op->queued_ns,
                              .device = s->context->device,
                              .context = (uint32_t)s->context->id,
                              .stream = (uint32_t)s->id,
                              .graph = (uint32_t)op->graph,
                              .graph_node = op->graph_node,
                              .start = hooks->now()};
    op->run(op);
    work.end = hooks->now();
    op->describe(op, &work);
    hooks->work(&work);
}

static enum trace_memory kind_of(const struct allocation *a)
{
    switch (a->kind) {
    case MEMORY_MANAGED:
        return TRACE_MANAGED;
    case MEMORY_PINNED:
    case MEMORY_REGISTERED:
        return TRACE_PINNED;
    case MEMORY_ARRAY:
        return TRACE_ARRAY;
    default:
        return TRACE_DEVICE;
    }
}

enum trace_memory trace_memory_of(uint64_t address, bool device_side, uint32_t *device)
{
    struct allocation a;
    *device = 0;
    if (!memory_lookup(address, &a))
        return device_side ? TRACE_ARRAY : TRACE_PAGEABLE;
    *device = a.device;
    return kind_of(&a);
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

static bool ask_initialised(void)
{
    return enter() == CUDA_SUCCESS;
}

static struct context *live(CUcontext handle)
{
    if (enter() != CUDA_SUCCESS)
        return NULL;
    struct context *c = handle ? (struct context *)handle : context_current();
    return c && handle_of(c) == HANDLE_CONTEXT && atomic_load(&c->alive) ? c : NULL;
}

static struct trace_context describe_context(struct context *c)
{
    return (struct trace_context){(CUcontext)c, (uint32_t)c->id, c->device};
}

static bool ask_context(CUcontext context, struct trace_context *out)
{
    struct context *c = live(context);
    *out = c ? describe_context(c) : (struct trace_context){0};
    return c != NULL;
}

static unsigned ask_primary(CUdevice device, CUcontext *handle)
{
    struct context *c = enter() == CUDA_SUCCESS && device_exists(device) ? context_primary((unsigned)device) : NULL;
    *handle = (CUcontext)c;
    context_lock();
    unsigned retains = c && atomic_load(&c->alive) ? c->retains : 0;
    context_unlock();
    return retains;
}

static void ask_contexts(void (*each)(const struct trace_context *context, void *data), void *data)
{
    for (struct context *c = context_all(); c; c = c->next)
        if (live((CUcontext)c)) {
            struct trace_context found = describe_context(c);
            each(&found, data);
        }
}

static struct trace_stream describe_stream(const struct stream *s)
{
    return (struct trace_stream){.id = (uint32_t)s->id,
                                 .context = (uint32_t)s->context->id,
                                 .priority = s->priority,
                                 .non_blocking = (s->flags & CU_STREAM_NON_BLOCKING) != 0,
                                 .null_stream = s->legacy};
}

static bool ask_stream(CUcontext context, CUstream stream, struct trace_stream *out)
{
    struct context *c = live(context);
    struct stream *s = NULL;
    if (!c)
        return false;
    /* A sticky error of the context makes no stream unknown. */
    context_stream(c, stream, &s);
    if (!s || (context && s->context != c))
        return false;
    *out = describe_stream(s);
    return true;
}

static void ask_streams(CUcontext context, void (*each)(const struct trace_stream *stream, void *data), void *data)
{
    struct context *c = live(context);
    struct trace_stream found[256];
    size_t n = 0;
    if (!c)
        return;
    engine_lock();
    for (const struct stream *s = c->streams; s && n < sizeof found / sizeof *found; s = s->next_in_context)
        if (!s->destroyed)
            found[n++] = describe_stream(s);
    engine_unlock();
    while (n--)
        each(&found[n], data);
}

static const char *ask_kernel_name(CUfunction function)
{
    switch (handle_of(function)) {
    case HANDLE_FUNCTION:
        return ((const struct function *)function)->entry->name;
    case HANDLE_KERNEL:
        return ((const struct kernel *)function)->entry->name;
    default:
        return NULL;
    }
}

static uint64_t ask_graph_id(enum trace_graph kind, const void *handle)
{
    uint64_t id = 0;
    graph_lock();
    if (kind == TRACE_GRAPH_ITSELF && graph_from((CUgraph)handle))
        id = graph_from((CUgraph)handle)->id;
    else if (kind == TRACE_GRAPH_NODE && node_from((CUgraphNode)handle))
        id = node_from((CUgraphNode)handle)->id;
    else if (kind == TRACE_GRAPH_EXEC && exec_from((CUgraphExec)handle))
        id = exec_id(exec_from((CUgraphExec)handle));
    graph_unlock();
    return id;
}

static bool ask_allocation(CUdeviceptr address, struct trace_allocation *out)
{
    struct allocation a;
    if (!memory_lookup(address, &a))
        return false;
    *out = (struct trace_allocation){a.bytes, kind_of(&a), a.device};
    return true;
}

struct softgpu_trace softgpu_trace = {
    .version = TRACE_VERSION,
    .initialised = ask_initialised,
    .context = ask_context,
    .primary = ask_primary,
    .contexts = ask_contexts,
    .stream = ask_stream,
    .streams = ask_streams,
    .kernel_name = ask_kernel_name,
    .graph_id = ask_graph_id,
    .allocation = ask_allocation,
};
