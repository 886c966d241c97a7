#include "softgpu/capture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/graph.h"

/* Nodes that what comes next depends on. */
struct place {
    struct node **nodes;
    CUgraphEdgeData *data;
    size_t count;
};
struct capture {
    uint64_t id;
    struct graph *graph;
    bool to_graph; /* the program's: it stays whatever happens */
    bool invalid;
    CUstreamCaptureMode mode;
    pid_t thread;
    struct stream *origin;
    struct captured_stream *streams,
        *gone; /* gone: streams that were destroyed; what they were given is still to be joined */
    struct capture *next;
};
struct captured_stream {
    struct capture *capture;
    struct stream *stream;
    struct place place;
    struct captured_stream *next;
};
struct capture_point {
    uint64_t capture; /* id */
    struct place place;
};

atomic_uint capture_count;

static struct capture *captures;
static uint64_t last_id;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUstreamCaptureMode capture_exchange_mode(CUstreamCaptureMode mode)
{
    CUstreamCaptureMode before = thread_mode;
    thread_mode = mode;
    return before;
}

/* ---- places ----------------------------------------------------------------------------------------------------- */

static void place_free(struct place *p)
{
    free(p->nodes);
    free(p->data);
    *p = (struct place){0};
}

/* Adds nodes that are not there yet. */
static bool place_add(struct place *p, struct node *const *nodes, const CUgraphEdgeData *data, size_t count)
{
    struct node **more_nodes = realloc(p->nodes, (p->count + count + 1) * sizeof(struct node *));
    if (more_nodes)
        p->nodes = more_nodes;
    CUgraphEdgeData *more_data = realloc(p->data, (p->count + count + 1) * sizeof *more_data);
    if (more_data)
        p->data = more_data;
    if (!more_nodes || !more_data)
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < p->count && p->nodes[at] != nodes[i])
            at++;
        if (at < p->count)
            continue;
        p->nodes[p->count] = nodes[i];
        p->data[p->count++] = data ? data[i] : (CUgraphEdgeData){0};
    }
    return true;
}

/* ---- the captures ----------------------------------------------------------------------------------------------- */

static struct capture *capture_find(uint64_t id)
{
    struct capture *c = captures;
    while (c && c->id != id)
        c = c->next;
    return c;
}

static struct captured_stream *join(struct capture *c, struct stream *s)
{
    struct captured_stream *cs = calloc(1, sizeof *cs);
    if (!cs)
        return NULL;
    cs->capture = c;
    cs->stream = s;
    cs->next = c->streams;
    c->streams = cs;
    s->captured = cs;
    return cs;
}

static struct captured_stream *detach(struct captured_stream *cs)
{
    struct captured_stream **p = &cs->capture->streams;
    while (*p != cs)
        p = &(*p)->next;
    *p = cs->next;
    cs->stream->captured = NULL;
    return cs;
}

static void captured_free(struct captured_stream *cs)
{
    place_free(&cs->place);
    free(cs);
}

/* Ends it; the graph is given out or freed. */
static void finish(struct capture *c, struct graph **out)
{
    for (struct captured_stream *cs = c->streams, *next; cs; cs = next) {
        next = cs->next;
        cs->stream->captured = NULL;
        captured_free(cs);
    }
    for (struct captured_stream *cs = c->gone, *next; cs; cs = next) {
        next = cs->next;
        captured_free(cs);
    }
    for (struct capture **p = &captures; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    c->graph->capture = NULL;
    if (out)
        *out = c->graph;
    else if (!c->to_graph)
        graph_free(c->graph);
    free(c);
    atomic_fetch_sub(&capture_count, 1);
}

CUresult capture_begin(struct stream *stream, struct graph *graph, struct node *const *dependencies,
                       const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode)
{
    if (stream->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->captured)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (graph && graph->capture)
        return CUDA_ERROR_INVALID_VALUE;
    struct capture *c = calloc(1, sizeof *c);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->to_graph = graph != NULL;
    c->graph = graph ? graph : graph_new(true);
    struct captured_stream *cs = c->graph ? join(c, stream) : NULL;
    if (!cs || !place_add(&cs->place, dependencies, data, count)) {
        if (cs)
            captured_free(detach(cs));
        if (!graph)
            graph_free(c->graph);
        free(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->id = ++last_id;
    c->mode = mode;
    c->thread = gettid();
    c->origin = stream;
    c->graph->capture = c;
    c->next = captures;
    captures = c;
    atomic_fetch_add(&capture_count, 1);
    return CUDA_SUCCESS;
}

/* Marks with 1 what the nodes depend on, themselves included. */
static void mark_reached(const struct place *from)
{
    for (size_t i = 0; i < from->count; i++)
        from->nodes[i]->pending = 1;
}

/* Whether each forked stream's newest work is depended on by the origin's: then nothing is left over. */
static CUresult check_joined(const struct capture *c)
{
    struct node **order;
    CUresult result = graph_order(c->graph, &order, NULL);
    if (result != CUDA_SUCCESS) /* a cycle made by hand: instantiation will tell */
        return result == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : result;
    for (size_t i = 0; i < c->graph->count; i++)
        order[i]->pending = 0;
    mark_reached(&c->origin->captured->place);
    for (size_t i = c->graph->count; i-- > 0;)
        for (size_t k = 0; order[i]->pending && k < order[i]->in.count; k++)
            order[i]->in.at[k].node->pending = 1;
    const struct captured_stream *const lists[] = {c->streams, c->gone};
    for (size_t list = 0; list < 2; list++)
        for (const struct captured_stream *cs = lists[list]; cs; cs = cs->next)
            for (size_t i = 0; i < cs->place.count; i++)
                if (!cs->place.nodes[i]->pending)
                    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    free(order);
    return result;
}

CUresult capture_end(struct stream *stream, struct graph **out)
{
    struct graph *dropped;
    if (out)
        *out = NULL;
    if (!out && !(stream->captured && stream->captured->capture->to_graph))
        return CUDA_ERROR_INVALID_VALUE;
    if (!stream->captured)
        return CUDA_ERROR_ILLEGAL_STATE;
    struct capture *c = stream->captured->capture;
    if (!out) /* the program has its graph already */
        out = &dropped;
    if (c->origin != stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != gettid())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(c);
    finish(c, result == CUDA_SUCCESS ? out : NULL);
    return result;
}

/* ---- what is forbidden ------------------------------------------------------------------------------------------ */

static bool blocking(const struct stream *s)
{
    return !(s->flags & CU_STREAM_NON_BLOCKING);
}

/* The legacy stream would wait for blocking streams of its context that are being captured: they cannot be waited for.
 */
static bool implicit(const struct stream *legacy, bool invalidate)
{
    bool found = false;
    for (struct capture *c = captures; c; c = c->next)
        for (const struct captured_stream *cs = c->streams; cs; cs = cs->next)
            if (cs->stream->context == legacy->context && blocking(cs->stream)) {
                found = true;
                c->invalid = c->invalid || invalidate;
            }
    return found;
}

static CUresult unsafe(void)
{
    pid_t me = gettid();
    CUresult result = CUDA_SUCCESS;
    for (struct capture *c = captures; c; c = c->next) {
        bool own = c->thread == me && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool other = c->thread != me && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if ((own && thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED) ||
            (other && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
            c->invalid = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

CUresult capture_unsafe_slowly(void)
{
    graph_lock();
    CUresult result = unsafe();
    graph_unlock();
    return result;
}

static CUresult refuse(struct stream *stream)
{
    if (stream->legacy && implicit(stream, true))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (!stream->captured)
        return CUDA_SUCCESS;
    struct capture *c = stream->captured->capture;
    CUresult result = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    c->invalid = true;
    return result;
}

CUresult capture_refuse_slowly(struct stream *stream)
{
    graph_lock();
    CUresult result = refuse(stream);
    graph_unlock();
    return result;
}

CUresult capture_query(struct stream *stream)
{
    if (!capture_any())
        return CUDA_SUCCESS;
    graph_lock();
    CUresult result = refuse(stream);
    if (result == CUDA_SUCCESS)
        result = unsafe();
    graph_unlock();
    return result;
}

CUresult capture_query_context(struct context *context)
{
    if (!capture_any())
        return CUDA_SUCCESS;
    graph_lock();
    CUresult result = unsafe();
    for (struct capture *c = captures; c; c = c->next)
        for (const struct captured_stream *cs = c->streams; cs; cs = cs->next)
            if (cs->stream->context == context) {
                c->invalid = true;
                result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
            }
    graph_unlock();
    return result;
}

CUresult capture_enter_slowly(struct stream *stream, bool wait, bool *captured)
{
    CUresult result = CUDA_SUCCESS;
    graph_lock();
    if (wait || stream->legacy)
        result = refuse(stream);
    else if (stream->captured && stream->captured->capture->invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (result == CUDA_SUCCESS && wait)
        result = unsafe();
    *captured = result == CUDA_SUCCESS && stream->captured;
    graph_unlock();
    return result;
}

/* ---- what is captured ------------------------------------------------------------------------------------------- */

/* With a programmatic dependency, edges from kernels start when the kernels trigger. */
static void programmatic_edges(struct place *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->nodes[i]->work.kind == &work_kernel && graph_edge_default(&p->data[i]))
            p->data[i] = (CUgraphEdgeData){.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                           .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
}

static CUresult add_work(struct captured_stream *cs, struct work *work)
{
    struct node *n;
    CUresult result = graph_add(cs->capture->graph, work, cs->place.nodes, cs->place.data, cs->place.count, &n);
    if (result != CUDA_SUCCESS)
        return result;
    cs->place.count = 0;
    return place_add(&cs->place, &n, NULL, 1) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult set_attributes(struct captured_stream *cs, struct work *work, const CUlaunchAttribute *attributes,
                               unsigned count)
{
    CUresult result = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++) {
        const CUlaunchAttribute *a = &attributes[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
            if (a->value.programmaticStreamSerializationAllowed)
                programmatic_edges(&cs->place);
        } else if (a->id != CU_LAUNCH_ATTRIBUTE_IGNORE && a->id != CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) {
            result = work_kernel_attribute(work, a->id, &a->value);
        }
    }
    return result;
}

/* The stream may have left its capture since capture_enter(). */
static CUresult still_captured(struct stream *stream, struct captured_stream **out)
{
    *out = stream->captured;
    return *out && !(*out)->capture->invalid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}

static CUresult add(struct stream *stream, CUgraphNodeParams *params, const CUlaunchAttribute *attributes,
                    unsigned attribute_count)
{
    struct captured_stream *cs;
    struct work work = {0};
    CUresult result = still_captured(stream, &cs);
    if (result == CUDA_SUCCESS)
        result = work_set(&work, params, cs->capture->graph);
    if (result == CUDA_SUCCESS)
        result = set_attributes(cs, &work, attributes, attribute_count);
    if (result == CUDA_SUCCESS)
        result = add_work(cs, &work);
    if (result != CUDA_SUCCESS)
        work_clear(&work);
    return result;
}

CUresult capture_add(struct stream *stream, CUgraphNodeParams *params, const CUlaunchAttribute *attributes,
                     unsigned attribute_count)
{
    graph_lock();
    CUresult result = add(stream, params, attributes, attribute_count);
    graph_unlock();
    return result;
}

CUresult capture_operator(struct stream *stream, struct softgpu_operator *routine)
{
    struct captured_stream *cs;
    struct work work;
    graph_lock();
    CUresult result = still_captured(stream, &cs);
    if (result == CUDA_SUCCESS)
        result = work_operator(&work, routine, stream->context);
    if (result == CUDA_SUCCESS && (result = add_work(cs, &work)) != CUDA_SUCCESS)
        work_operator_disown(&work);
    graph_unlock();
    return result;
}

CUresult capture_graph(struct stream *stream, CUgraphExec handle)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
    struct graph *copy = NULL;
    graph_lock();
    struct exec *exec = exec_from(handle);
    CUresult result = exec ? graph_copy(exec_graph(exec), true, &copy) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        params.graph.graph = (CUgraph)copy;
        result = add(stream, &params, NULL, 0);
        graph_free(copy);
    }
    graph_unlock();
    return result;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static void forget(struct event *event)
{
    struct capture_point *p = atomic_exchange(&event->capture, NULL);
    if (p) {
        place_free(&p->place);
        free(p);
    }
}

void capture_forget(struct event *event)
{
    if (!atomic_load(&event->capture))
        return;
    graph_lock();
    forget(event);
    graph_unlock();
}

static CUresult record(struct captured_stream *cs, struct event *event)
{
    struct capture_point *p = calloc(1, sizeof *p);
    if (!p || !place_add(&p->place, cs->place.nodes, cs->place.data, cs->place.count)) {
        if (p)
            place_free(&p->place);
        free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->capture = cs->capture->id;
    forget(event);
    atomic_store(&event->capture, p);
    return CUDA_SUCCESS;
}

CUresult capture_record(struct stream *stream, struct event *event, bool external)
{
    struct captured_stream *cs;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {(CUevent)event}};
    graph_lock();
    CUresult result = still_captured(stream, &cs);
    if (result == CUDA_SUCCESS)
        result = external ? add(stream, &params, NULL, 0) : record(cs, event);
    graph_unlock();
    return result;
}

CUresult capture_event(struct event *event)
{
    if (!atomic_load(&event->capture))
        return CUDA_SUCCESS;
    graph_lock();
    const struct capture_point *p = atomic_load(&event->capture);
    struct capture *c = p ? capture_find(p->capture) : NULL;
    if (c)
        c->invalid = true;
    graph_unlock();
    return p ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

/* By a stream that is being captured: on work outside of the capture it cannot wait. */
static CUresult wait_captured(struct stream *stream, struct event *event, bool external)
{
    struct captured_stream *cs = stream->captured;
    const struct capture_point *p = atomic_load(&event->capture);
    struct capture *other = p ? capture_find(p->capture) : NULL;
    if (cs->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (external) {
        CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {(CUevent)event}};
        return add(stream, &params, NULL, 0);
    }
    if (other == cs->capture)
        return place_add(&cs->place, p->place.nodes, p->place.data, p->place.count) ? CUDA_SUCCESS
                                                                                    : CUDA_ERROR_OUT_OF_MEMORY;
    struct op *recorded = event_newest(event);
    op_unref(recorded);
    if (!p && !recorded)
        return CUDA_SUCCESS;
    cs->capture->invalid = true;
    if (!other)
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    other->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
}

/* By another stream, which becomes part of the event's capture. */
static CUresult wait_joins(struct stream *stream, const struct capture_point *p)
{
    struct capture *c = capture_find(p->capture);
    if (!c)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream->legacy) {
        c->invalid = true;
        return implicit(stream, true) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    struct captured_stream *cs = join(c, stream);
    if (!cs || !place_add(&cs->place, p->place.nodes, p->place.data, p->place.count)) {
        if (cs)
            captured_free(detach(cs));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

CUresult capture_wait(struct stream *stream, struct event *event, bool external, bool *captured)
{
    *captured = false;
    if (!capture_any() && !atomic_load(&event->capture))
        return external ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    graph_lock();
    const struct capture_point *p = atomic_load(&event->capture);
    *captured = stream->captured || p;
    if (stream->captured)
        result = wait_captured(stream, event, external);
    else if (external)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (p)
        result = wait_joins(stream, p);
    graph_unlock();
    return result;
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

CUresult capture_info(struct stream *stream, struct capture_info *info)
{
    *info = (struct capture_info){.status = CU_STREAM_CAPTURE_STATUS_NONE};
    if (stream->legacy && implicit(stream, false))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    struct captured_stream *cs = stream->captured;
    if (!cs)
        return CUDA_SUCCESS;
    *info = (struct capture_info){
        .status = cs->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE,
        .id = cs->capture->id,
        .graph = cs->capture->graph,
        .nodes = cs->place.nodes,
        .data = cs->place.data,
        .count = cs->place.count,
    };
    return CUDA_SUCCESS;
}

CUresult capture_update(struct stream *stream, struct node *const *nodes, const CUgraphEdgeData *data, size_t count,
                        bool replace)
{
    struct captured_stream *cs = stream->captured;
    if (!cs)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (cs->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    for (size_t i = 0; i < count; i++)
        if (nodes[i]->graph != cs->capture->graph)
            return CUDA_ERROR_INVALID_VALUE;
    struct place added = {0};
    bool ok = (replace || place_add(&added, cs->place.nodes, cs->place.data, cs->place.count)) &&
              place_add(&added, nodes, data, count);
    if (!ok) {
        place_free(&added);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    place_free(&cs->place);
    cs->place = added;
    return CUDA_SUCCESS;
}

/* ---- ends ------------------------------------------------------------------------------------------------------- */

/* A capture ends with the stream that it began in. A forked stream may go; what it was given must be joined at the end.
 */
static void stream_gone(struct captured_stream *cs)
{
    struct capture *c = cs->capture;
    if (c->origin == cs->stream) {
        finish(c, NULL);
        return;
    }
    detach(cs);
    cs->next = c->gone;
    c->gone = cs;
}

void capture_stream_gone(struct stream *stream)
{
    if (!capture_any())
        return;
    graph_lock();
    if (stream->captured)
        stream_gone(stream->captured);
    graph_unlock();
}

static struct captured_stream *captured_in(const struct context *context)
{
    for (const struct capture *c = captures; c; c = c->next)
        for (struct captured_stream *cs = c->streams; cs; cs = cs->next)
            if (cs->stream->context == context)
                return cs;
    return NULL;
}

void capture_context_gone(struct context *context)
{
    if (!capture_any())
        return;
    graph_lock();
    for (struct captured_stream *cs; (cs = captured_in(context)) != NULL;) {
        cs->capture->invalid = true;
        stream_gone(cs);
    }
    graph_unlock();
}
