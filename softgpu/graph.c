#include "softgpu/graph.h"

#include <stdlib.h>
#include <string.h>

#include "softgpu/trace_state.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_id;

void graph_lock(void)
{
    pthread_mutex_lock(&lock);
}

void graph_unlock(void)
{
    pthread_mutex_unlock(&lock);
    user_objects_settle(); /* destructors of what went meanwhile */
}

/* ---- work ------------------------------------------------------------------------------------------------------- */

const struct work_kind *work_kind(CUgraphNodeType type)
{
    static const struct work_kind *const kinds[] = {
        &work_kernel,     &work_memcpy,       &work_memset, &work_host, &work_child,       &work_empty,
        &work_event_wait, &work_event_record, &work_alloc,  &work_free, &work_conditional, &work_memop,
    };
    for (size_t i = 0; i < sizeof kinds / sizeof(struct work_kind *); i++)
        if (kinds[i]->type == type)
            return kinds[i];
    return NULL;
}

CUresult work_context(CUcontext handle, struct context **out)
{
    return context_from(handle, out);
}

CUresult work_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    const struct work_kind *kind = work_kind(params->type);
    if ((unsigned)params->type > CU_GRAPH_NODE_TYPE_CONDITIONAL || (work->kind && work->kind != kind))
        return CUDA_ERROR_INVALID_VALUE;
    if (!kind)
        return log_unsupported_part("cuGraphAddNode", "nodes of this type");
    CUresult result = kind->set(work, params, graph);
    if (result == CUDA_SUCCESS)
        work->kind = kind;
    return result;
}

CUresult work_copy(struct work *to, const struct work *from, bool visible)
{
    *to = *from;
    CUresult result = from->kind->copy ? from->kind->copy(to, from, visible) : CUDA_SUCCESS;
    if (result != CUDA_SUCCESS)
        *to = (struct work){0};
    return result;
}

void work_clear(struct work *work)
{
    if (work->kind && work->kind->clear)
        work->kind->clear(work);
    *work = (struct work){0};
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

CUresult steps_add(struct steps *steps, struct op *op)
{
    if (steps->count == steps->capacity) {
        size_t capacity = steps->capacity ? steps->capacity * 2 : 16;
        struct op **more = realloc(steps->ops, capacity * sizeof(struct op *));
        if (!more) {
            op_unref(op);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        steps->ops = more;
        steps->capacity = capacity;
    }
    steps->ops[steps->count++] = op;
    steps->bound = steps->bound || op->bound;
    return CUDA_SUCCESS;
}

void steps_free(struct steps *steps)
{
    for (size_t i = 0; i < steps->count; i++)
        op_unref(steps->ops[i]);
    free(steps->ops);
    graph_memory_drop(steps);
    *steps = (struct steps){0};
}

void steps_run(const struct steps *steps, const struct op *parent, const struct context *context)
{
    for (size_t i = 0; i < steps->count; i++) {
        struct op *op = steps->ops[i];
        if (!op->run || (!op->always && context_error(context)))
            continue;
        /* The engine counts what a whole operation may use, unless the program's functions are in it. */
        bool counted = parent->bound && !op->bound;
        if (counted)
            engine_use_memory(true);
        op->stream = parent->stream;
        op->graph = parent->graph;
        trace_run(op, parent->stream);
        op->stream = NULL;
        if (counted)
            engine_use_memory(false);
    }
}

/* ---- nodes and edges -------------------------------------------------------------------------------------------- */

bool graph_edge_default(const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData none;
    return !data || !memcmp(data, &none, sizeof none);
}

static bool edge_add(struct edges *edges, struct node *node, const CUgraphEdgeData *data)
{
    if (edges->count == edges->capacity) {
        size_t capacity = edges->capacity ? edges->capacity * 2 : 4;
        struct edge *more = realloc(edges->at, capacity * sizeof *more);
        if (!more)
            return false;
        edges->at = more;
        edges->capacity = capacity;
    }
    edges->at[edges->count++] = (struct edge){.node = node, .data = data ? *data : (CUgraphEdgeData){0}};
    return true;
}

static struct edge *edge_find(const struct edges *edges, const struct node *node)
{
    for (size_t i = 0; i < edges->count; i++)
        if (edges->at[i].node == node)
            return &edges->at[i];
    return NULL;
}

static void edge_remove(struct edges *edges, struct edge *edge)
{
    size_t at = (size_t)(edge - edges->at);
    memmove(edge, edge + 1, (edges->count - at - 1) * sizeof *edge);
    edges->count--;
}

/* Between kernels an edge may start when the first has triggered or begun; here it always waits for the end. */
static bool edge_data_ok(const struct node *from, const struct node *to, const CUgraphEdgeData *data)
{
    if (graph_edge_default(data))
        return true;
    bool reserved =
        data->reserved[0] || data->reserved[1] || data->reserved[2] || data->reserved[3] || data->reserved[4];
    bool kernels = from->work.kind == &work_kernel && to->work.kind == &work_kernel;
    bool port = data->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
                data->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
    return !reserved && !data->to_port && kernels && port && data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
}

CUresult graph_connect(struct node *from, struct node *to, const CUgraphEdgeData *data)
{
    if (from == to || from->graph != to->graph || edge_find(&from->out, to) || !edge_data_ok(from, to, data))
        return CUDA_ERROR_INVALID_VALUE;
    if (!edge_add(&from->out, to, data))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!edge_add(&to->in, from, data)) {
        from->out.count--;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

bool graph_disconnect(struct node *from, struct node *to, const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData none;
    struct edge *out = edge_find(&from->out, to), *in = edge_find(&to->in, from);
    if (!out || !in || memcmp(&out->data, data ? data : &none, sizeof none) != 0)
        return false;
    edge_remove(&from->out, out);
    edge_remove(&to->in, in);
    return true;
}

/* Only what its neighbours know of it; the node itself is left alone. */
static void sever(struct node *node)
{
    for (size_t i = 0; i < node->in.count; i++)
        edge_remove(&node->in.at[i].node->out, edge_find(&node->in.at[i].node->out, node));
    for (size_t i = 0; i < node->out.count; i++)
        edge_remove(&node->out.at[i].node->in, edge_find(&node->out.at[i].node->in, node));
}

static void node_free(struct node *node)
{
    if (node->graph->visible)
        handle_remove(node, HANDLE_GRAPH_NODE);
    work_clear(&node->work);
    free(node->in.at);
    free(node->out.at);
    free(node);
}

void graph_remove(struct node *node)
{
    struct graph *g = node->graph;
    sever(node);
    *(node->previous ? &node->previous->next : &g->first) = node->next;
    *(node->next ? &node->next->previous : &g->last) = node->previous;
    g->count--;
    node_free(node);
}

static struct node *append(struct graph *graph)
{
    struct node *n = calloc(1, sizeof *n);
    if (!n)
        return NULL;
    if (graph->visible && !handle_add(n, HANDLE_GRAPH_NODE)) {
        free(n);
        return NULL;
    }
    n->id = ++last_id;
    n->graph = graph;
    n->previous = graph->last;
    *(graph->last ? &graph->last->next : &graph->first) = n;
    graph->last = n;
    graph->count++;
    return n;
}

CUresult graph_add(struct graph *graph, struct work *work, struct node *const *dependencies,
                   const CUgraphEdgeData *data, size_t count, struct node **out)
{
    if (graph->body && !work->kind->in_bodies)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct node *n = append(graph);
    if (!n)
        return CUDA_ERROR_OUT_OF_MEMORY;
    n->work = *work;
    for (size_t i = 0; i < count; i++) {
        CUresult result = graph_connect(dependencies[i], n, data ? &data[i] : NULL);
        if (result != CUDA_SUCCESS) {
            n->work = (struct work){0};
            graph_remove(n);
            return result;
        }
    }
    *out = n;
    return CUDA_SUCCESS;
}

/* ---- graphs ----------------------------------------------------------------------------------------------------- */

struct graph *graph_new(bool visible)
{
    struct graph *g = calloc(1, sizeof *g);
    if (!g || (visible && !handle_add(g, HANDLE_GRAPH))) {
        free(g);
        return NULL;
    }
    g->id = ++last_id;
    g->visible = visible;
    return g;
}

void graph_free(struct graph *graph)
{
    if (!graph)
        return;
    if (graph->visible)
        handle_remove(graph, HANDLE_GRAPH);
    for (struct node *n = graph->first, *next; n; n = next) {
        next = n->next;
        node_free(n);
    }
    conditions_free(graph);
    users_free(graph);
    free(graph);
}

struct graph *graph_from(CUgraph handle)
{
    return handle_of(handle) == HANDLE_GRAPH ? (struct graph *)handle : NULL;
}

struct node *node_from(CUgraphNode handle)
{
    return handle_of(handle) == HANDLE_GRAPH_NODE ? (struct node *)handle : NULL;
}

struct node *graph_find_copy(const struct graph *copy, uint64_t origin, bool deep)
{
    for (struct node *n = copy->first; n; n = n->next) {
        if (n->origin == origin)
            return n;
        for (size_t i = 0; deep && i < n->work.body_count; i++) {
            struct node *found = graph_find_copy(n->work.bodies[i], origin, true);
            if (found)
                return found;
        }
    }
    return NULL;
}

/* Edges in the order in which both ends have them: what is compared later depends on it. */
static bool copy_edges(const struct edges *from, struct edges *to)
{
    for (size_t i = 0; i < from->count; i++)
        if (!edge_add(to, from->at[i].node->pair, &from->at[i].data))
            return false;
    return true;
}

CUresult graph_copy(const struct graph *from, bool visible, struct graph **out)
{
    struct graph *g = graph_new(visible);
    if (!g)
        return CUDA_ERROR_OUT_OF_MEMORY;
    g->origin = from->id;
    g->body = from->body;
    g->moved = from->moved;
    CUresult result = users_copy(g, from);
    for (struct node *n = from->first; n && result == CUDA_SUCCESS; n = n->next) {
        struct node *copy = append(g);
        result = copy ? work_copy(&copy->work, &n->work, visible) : CUDA_ERROR_OUT_OF_MEMORY;
        if (copy)
            copy->origin = n->id;
        n->pair = copy;
    }
    for (struct node *n = from->first; n && result == CUDA_SUCCESS; n = n->next)
        if (!copy_edges(&n->in, &n->pair->in) || !copy_edges(&n->out, &n->pair->out))
            result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        graph_free(g);
        g = NULL;
    }
    *out = g;
    return result;
}

bool graph_contains(const struct graph *graph, uint32_t types)
{
    for (const struct node *n = graph->first; n; n = n->next) {
        if (types >> n->work.kind->type & 1)
            return true;
        for (size_t i = 0; i < n->work.body_count; i++)
            if (graph_contains(n->work.bodies[i], types))
                return true;
    }
    return false;
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

/* Which of `count` nodes that may run now does: the first inserted, or any with a variant. */
static size_t choose(size_t count, uint64_t *seed)
{
    if (!*seed)
        return 0;
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(*seed >> 33) % count;
}

static struct node *unordered(const struct graph *graph)
{
    for (struct node *n = graph->first; n; n = n->next)
        if (n->pending)
            return n;
    return NULL;
}

/* Nodes that may run are kept in order of insertion: a small array, since graphs are rarely wide. */
CUresult graph_order(const struct graph *graph, struct node ***order, struct node **culprit)
{
    struct node **done = calloc(graph->count + 1, sizeof(struct node *));
    struct node **ready = calloc(graph->count + 1, sizeof(struct node *));
    size_t done_count = 0, ready_count = 0;
    uint64_t seed = config_get()->variant;
    *order = NULL;
    if (!done || !ready) {
        free(done);
        free(ready);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (struct node *n = graph->first; n; n = n->next)
        if (!(n->pending = n->in.count))
            ready[ready_count++] = n;
    while (ready_count) {
        size_t at = choose(ready_count, &seed);
        struct node *n = ready[at];
        memmove(ready + at, ready + at + 1, (--ready_count - at) * sizeof(struct node *));
        done[done_count++] = n;
        for (size_t i = 0; i < n->out.count; i++) {
            struct node *next = n->out.at[i].node;
            if (--next->pending)
                continue;
            size_t to = ready_count++;
            for (; to > 0 && ready[to - 1]->id > next->id; to--)
                ready[to] = ready[to - 1];
            ready[to] = next;
        }
    }
    free(ready);
    if (done_count < graph->count) {
        if (culprit)
            *culprit = unordered(graph);
        free(done);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *order = done;
    return CUDA_SUCCESS;
}

CUresult graph_make(const struct graph *graph, struct steps *steps)
{
    struct node **order;
    CUresult result = graph_order(graph, &order, NULL);
    for (size_t i = 0; result == CUDA_SUCCESS && i < graph->count; i++) {
        const struct work *w = &order[i]->work;
        size_t first = steps->count;
        if (w->kind->make && !w->disabled)
            result = w->kind->make(w, steps);
        /* The program knows the node that was instantiated. Those of a child graph have an id already. */
        for (size_t k = first; k < steps->count; k++)
            if (!steps->ops[k]->graph_node)
                steps->ops[k]->graph_node = order[i]->origin ? order[i]->origin : order[i]->id;
    }
    free(order);
    return result;
}
