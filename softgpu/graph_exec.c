/* Executable graphs: instantiation, launches, changes. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/graph.h"
#include "softgpu/trace.h"

struct exec {
    struct graph *graph; /* the copy */
    uint64_t of, flags;  /* of: id of the graph it was made from */
    struct op *last;     /* reference: the newest launch or upload */
    struct exec *next;
};

static struct exec *execs;

struct exec *exec_from(CUgraphExec handle)
{
    return handle_of(handle) == HANDLE_GRAPH_EXEC ? (struct exec *)handle : NULL;
}

uint64_t exec_id(const struct exec *exec)
{
    return exec->graph->id;
}

uint64_t exec_flags(const struct exec *exec)
{
    return exec->flags & ~(uint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
}

struct graph *exec_graph(const struct exec *exec)
{
    return exec->graph;
}

struct node *exec_node(const struct exec *exec, const struct node *node)
{
    return graph_find_copy(exec->graph, node->id, true);
}

/* ---- instantiation ---------------------------------------------------------------------------------------------- */

enum { ONCE = GRAPH_MEMORY_NODES | 1 << CU_GRAPH_NODE_TYPE_CONDITIONAL };

static bool instantiated(const struct graph *graph)
{
    for (const struct exec *e = execs; e; e = e->next)
        if (e->of == graph->id)
            return true;
    return false;
}

/* Cycles anywhere, and conditions without a node. */
static CUresult check_structure(const struct graph *graph, CUgraphInstantiateResult *why, struct node **culprit)
{
    struct node **order;
    CUresult result = graph_order(graph, &order, culprit);
    free(order);
    if (result != CUDA_SUCCESS) {
        *why = result == CUDA_ERROR_INVALID_VALUE ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                                                  : CUDA_GRAPH_INSTANTIATE_ERROR;
        return result;
    }
    if (!conditions_used(graph)) {
        *why = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const struct node *n = graph->first; n; n = n->next)
        for (size_t i = 0; i < n->work.body_count; i++)
            if ((result = check_structure(n->work.bodies[i], why, culprit)) != CUDA_SUCCESS)
                return result;
    return CUDA_SUCCESS;
}

CUresult exec_new(struct graph *graph, uint64_t flags, struct exec **out, CUgraphInstantiateResult *why,
                  struct node **culprit)
{
    const uint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                           CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    const uint64_t exclusive =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    *why = CUDA_GRAPH_INSTANTIATE_ERROR;
    if ((flags & ~known) || (flags & exclusive) == exclusive || graph->owned || graph->capture)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
        return log_unsupported_part("cuGraphInstantiate", "launch from the device");
    if (graph_contains(graph, ONCE) && instantiated(graph))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = check_structure(graph, why, culprit);
    if (result != CUDA_SUCCESS)
        return result;
    struct exec *e = calloc(1, sizeof *e);
    result = e ? graph_copy(graph, false, &e->graph) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && !handle_add(e, HANDLE_GRAPH_EXEC)) {
        graph_free(e->graph);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (result != CUDA_SUCCESS) {
        free(e);
        return result;
    }
    e->of = graph->id;
    e->flags = flags;
    e->next = execs;
    execs = e;
    *why = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    *out = e;
    return CUDA_SUCCESS;
}

void exec_free(struct exec *exec)
{
    for (struct exec **p = &execs; *p; p = &(*p)->next)
        if (*p == exec) {
            *p = exec->next;
            break;
        }
    handle_remove(exec, HANDLE_GRAPH_EXEC);
    graph_free(exec->graph);
    op_unref(exec->last);
    free(exec);
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

struct graph_op {
    struct op op;
    struct steps steps;
    const struct context *context;
    struct user_reference *users; /* holds the user objects while the launch is under way */
};

static void run_graph(struct op *op)
{
    struct graph_op *g = (struct graph_op *)op;
    steps_run(&g->steps, op, g->context);
    /* What is left undone after an error is completed here: nobody waits for an event that will not come. */
    steps_free(&g->steps);
    users_release(g->users);
    g->users = NULL;
    user_objects_settle();
}

static void describe_graph(const struct op *op, struct trace_work *work)
{
    work->kind = TRACE_GRAPH;
}

static void drop_graph(struct op *op)
{
    struct graph_op *g = (struct graph_op *)op;
    steps_free(&g->steps);
    users_release(g->users);
    free(g);
}

static CUresult submit(struct exec *exec, struct stream *stream, struct graph_op *g)
{
    CUresult result = op_after(&g->op, exec->last) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) {
        graph_memory_used_by(&g->steps, &g->op);
        result = engine_submit_allowed(stream, &g->op);
    }
    if (result == CUDA_SUCCESS) {
        op_unref(exec->last);
        exec->last = &g->op;
        return CUDA_SUCCESS;
    }
    graph_memory_undo(&g->steps);
    engine_complete(&g->op);
    steps_free(&g->steps);
    op_unref(&g->op);
    return result;
}

CUresult exec_launch(struct exec *exec, struct stream *stream)
{
    bool auto_free = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    if (!auto_free && graph_memory_live(exec->graph))
        return CUDA_ERROR_INVALID_VALUE;
    struct graph_op *g = op_new(sizeof *g, run_graph, drop_graph);
    if (!g)
        return CUDA_ERROR_OUT_OF_MEMORY;
    g->context = stream->context;
    g->op.always = true; /* see run_graph() */
    if (auto_free)
        graph_memory_free_live(exec->graph);
    CUresult result = users_hold(exec->graph, &g->users);
    if (result == CUDA_SUCCESS)
        result = conditions_make_defaults(exec->graph, &g->steps);
    if (result == CUDA_SUCCESS)
        result = graph_make(exec->graph, &g->steps);
    if (result != CUDA_SUCCESS) {
        graph_memory_undo(&g->steps);
        op_unref(&g->op);
        return result;
    }
    g->op.bound = g->steps.bound;
    g->op.describe = describe_graph;
    g->op.graph = exec_id(exec);
    return submit(exec, stream, g);
}

CUresult exec_upload(struct exec *exec, struct stream *stream)
{
    CUresult result = graph_memory_back(exec->graph);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph_op *g = op_new(sizeof *g, NULL, drop_graph);
    return g ? submit(exec, stream, g) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

CUresult exec_set(struct exec *exec, struct node *node, CUgraphNodeParams *params)
{
    struct node *n = exec_node(exec, node);
    struct work work = {0};
    if (!n || n->work.kind->type != params->type)
        return CUDA_ERROR_INVALID_VALUE;
    if (n->work.block || n->work.body_count)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = work_copy(&work, &n->work, false);
    if (result == CUDA_SUCCESS)
        result = work_set(&work, params, n->graph);
    if (result == CUDA_SUCCESS && n->work.kind->change &&
        n->work.kind->change(&n->work, &work) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS) {
        work_clear(&work);
        return result;
    }
    work_clear(&n->work);
    n->work = work;
    return CUDA_SUCCESS;
}

static CUresult failure(CUgraphExecUpdateResultInfo *info, CUgraphExecUpdateResult result, struct node *node,
                        struct node *from)
{
    *info = (CUgraphExecUpdateResultInfo){result, (CUgraphNode)node, (CUgraphNode)from};
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static bool pair(struct node *old, struct node *update)
{
    if (!old->pair && !update->pair) {
        old->pair = update;
        update->pair = old;
    }
    return old->pair == update && update->pair == old;
}

/* Nodes nothing depends on, in order of insertion: where pairing starts. */
static struct node *next_exit(struct node *n)
{
    while (n && n->out.count)
        n = n->next;
    return n;
}

/* Pairs what the nodes of a pair depend on, in the order of their edges. Nodes are visited once: when they are paired.
 */
static CUresult pair_dependencies(struct node **queue, size_t count, CUgraphExecUpdateResultInfo *info)
{
    for (size_t i = 0; i < count; i++) {
        struct node *update = queue[i], *old = update->pair;
        if (old->in.count != update->in.count)
            return failure(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, update, NULL);
        for (size_t k = 0; k < update->in.count; k++) {
            struct node *from = update->in.at[k].node;
            bool fresh = !from->pair;
            if (!pair(old->in.at[k].node, from))
                return failure(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, update, from);
            if (fresh)
                queue[count++] = from;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult pair_graphs(struct graph *old, struct graph *update, CUgraphExecUpdateResultInfo *info)
{
    size_t count = 0;
    struct node **queue = calloc(update->count + 1, sizeof(struct node *));
    if (!queue)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (struct node *n = old->first; n; n = n->next)
        n->pair = NULL;
    for (struct node *n = update->first; n; n = n->next)
        n->pair = NULL;
    struct node *a = next_exit(old->first), *b = next_exit(update->first);
    for (; a && b; a = next_exit(a->next), b = next_exit(b->next)) {
        pair(a, b);
        queue[count++] = b;
    }
    CUresult result = old->count != update->count
                          ? failure(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL)
                      : a || b ? failure(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b, NULL)
                               : pair_dependencies(queue, count, info);
    free(queue);
    return result;
}

/* Whether each node may become its pair; child graphs and bodies are paired on the way. */
static CUresult check_update(struct graph *old, struct graph *update, CUgraphExecUpdateResultInfo *info)
{
    CUresult result = pair_graphs(old, update, info);
    for (struct node *n = update->first; n && result == CUDA_SUCCESS; n = n->next) {
        if (!n->pair)
            return failure(info, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, n, NULL);
        const struct work *from = &n->pair->work, *to = &n->work;
        if (from->kind != to->kind || from->body_count != to->body_count)
            return failure(info,
                           from->kind != to->kind ? CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED
                                                  : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
                           n, NULL);
        CUgraphExecUpdateResult why = from->kind->change ? from->kind->change(from, to) : CU_GRAPH_EXEC_UPDATE_SUCCESS;
        if (why != CU_GRAPH_EXEC_UPDATE_SUCCESS)
            return failure(info, why, n, NULL);
        for (size_t i = 0; i < to->body_count && result == CUDA_SUCCESS; i++)
            result = check_update(from->bodies[i], to->bodies[i], info);
    }
    return result;
}

/* Copies first: when memory runs out, nothing was changed. */
struct update {
    struct work *works;
    struct node **nodes;
    size_t count;
};

static size_t count_all(const struct graph *graph)
{
    size_t count = graph->count;
    for (const struct node *n = graph->first; n; n = n->next)
        for (size_t i = 0; i < n->work.body_count; i++)
            count += count_all(n->work.bodies[i]);
    return count;
}

static CUresult collect(const struct graph *update, struct update *u)
{
    CUresult result = CUDA_SUCCESS;
    for (const struct node *n = update->first; n && result == CUDA_SUCCESS; n = n->next) {
        u->nodes[u->count] = n->pair;
        /* Those that hold graphs stay; their graphs' nodes change. */
        if (!n->work.body_count)
            result = work_copy(&u->works[u->count], &n->work, false);
        if (result == CUDA_SUCCESS)
            u->count++;
        for (size_t i = 0; i < n->work.body_count && result == CUDA_SUCCESS; i++)
            result = collect(n->work.bodies[i], u);
    }
    return result;
}

static void apply(struct update *u)
{
    for (size_t i = 0; i < u->count; i++) {
        struct node *n = u->nodes[i];
        if (n->work.body_count) {
            work_take_condition(&n->work, &n->pair->work);
            continue;
        }
        u->works[i].disabled = n->work.disabled;
        work_clear(&n->work);
        n->work = u->works[i];
    }
}

static CUresult update_graph(struct graph *old, struct graph *update, CUgraphExecUpdateResultInfo *info)
{
    CUresult result = check_update(old, update, info);
    if (result != CUDA_SUCCESS)
        return result;
    size_t count = count_all(update);
    struct update u = {calloc(count + 1, sizeof *u.works), calloc(count + 1, sizeof(struct node *)), 0};
    result = u.works && u.nodes ? collect(update, &u) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS)
        apply(&u);
    else
        for (size_t i = 0; i < u.count; i++)
            work_clear(&u.works[i]);
    free(u.works);
    free(u.nodes);
    return result;
}

CUresult exec_update(struct exec *exec, struct graph *graph, CUgraphExecUpdateResultInfo *info)
{
    *info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    if (graph->owned || graph->capture)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = update_graph(exec->graph, graph, info);
    if (result == CUDA_SUCCESS)
        info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return result;
}

CUresult exec_set_child(struct exec *exec, struct node *node, struct graph *child)
{
    CUgraphExecUpdateResultInfo info;
    struct node *n = exec_node(exec, node);
    if (!n || n->work.kind != &work_child || child->capture)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = update_graph(n->work.bodies[0], child, &info);
    return result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE ? CUDA_ERROR_INVALID_VALUE : result;
}
