/* Nodes that hold graphs: child graphs, and the conditional ones with the values that decide about them. */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/graph.h"

/* ---- child graphs ----------------------------------------------------------------------------------------------- */

enum { NOT_IN_CHILDREN = GRAPH_MEMORY_NODES | 1 << CU_GRAPH_NODE_TYPE_CONDITIONAL };

static void free_bodies(struct graph **bodies, size_t count)
{
    for (size_t i = 0; bodies && i < count; i++)
        graph_free(bodies[i]);
    free(bodies);
}

static CUresult child_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    struct graph *child = graph_from(params->graph.graph), *body;
    bool move = params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
    if (!child || (unsigned)params->graph.ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE || child->capture)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph_contains(child, 1 << CU_GRAPH_NODE_TYPE_CONDITIONAL) ||
        (!move && graph_contains(child, GRAPH_MEMORY_NODES)) || (move && (child->owned || child == graph)))
        return CUDA_ERROR_INVALID_VALUE;
    struct graph **bodies = malloc(sizeof(struct graph *));
    if (!bodies)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = CUDA_SUCCESS;
    if (move)
        body = child;
    else
        result = graph_copy(child, true, &body);
    if (result != CUDA_SUCCESS) {
        free(bodies);
        return result;
    }
    body->owned = true;
    body->moved = move;
    bodies[0] = body;
    free_bodies(work->bodies, work->body_count);
    work->bodies = bodies;
    work->body_count = 1;
    work->params =
        (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {(CUgraph)body, params->graph.ownership}};
    return CUDA_SUCCESS;
}

static CUresult bodies_copy(struct work *to, const struct work *from, bool visible)
{
    to->bodies = calloc(from->body_count, sizeof(struct graph *));
    if (!to->bodies)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < from->body_count; i++) {
        CUresult result = graph_copy(from->bodies[i], visible, &to->bodies[i]);
        if (result != CUDA_SUCCESS) {
            free_bodies(to->bodies, i);
            return result;
        }
        to->bodies[i]->owned = true;
    }
    return CUDA_SUCCESS;
}

static CUresult child_copy(struct work *to, const struct work *from, bool visible)
{
    CUresult result = bodies_copy(to, from, visible);
    if (result == CUDA_SUCCESS)
        to->params.graph.graph = (CUgraph)to->bodies[0];
    return result;
}

static void child_clear(struct work *work)
{
    free_bodies(work->bodies, work->body_count);
}

static CUresult child_step(const struct work *work, struct steps *steps)
{
    return graph_make(work->bodies[0], steps);
}

const struct work_kind work_child = {
    .type = CU_GRAPH_NODE_TYPE_GRAPH,
    .name = "GRAPH",
    .in_bodies = true,
    .set = child_set,
    .copy = child_copy,
    .clear = child_clear,
    .make = child_step,
};

/* ---- conditions ------------------------------------------------------------------------------------------------- */

struct condition {
    uint64_t handle;
    atomic_uint refs; /* of the graph it was made for, and of works and operations */
    atomic_uint value;
    unsigned initial;
    bool assign, used;
    struct context *context;
    struct condition *next_in_graph, *next;
};

/* Kernels look conditions up while they run: a lock of its own, taken last. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct condition *conditions;

static struct condition *condition_find(uint64_t handle)
{
    struct condition *c = conditions;
    while (c && c->handle != handle)
        c = c->next;
    return c;
}

static struct condition *condition_ref(struct condition *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

static void condition_unref(struct condition *c)
{
    pthread_mutex_lock(&lock);
    if (c && atomic_fetch_sub(&c->refs, 1) == 1) {
        struct condition **p = &conditions;
        while (*p != c)
            p = &(*p)->next;
        *p = c->next;
        free(c);
    }
    pthread_mutex_unlock(&lock);
}

void graph_set_condition(uint64_t handle, uint32_t value)
{
    pthread_mutex_lock(&lock);
    struct condition *c = condition_find(handle);
    if (c)
        atomic_store(&c->value, value);
    pthread_mutex_unlock(&lock);
}

CUresult condition_new(struct graph *graph, struct context *context, unsigned value, unsigned flags, uint64_t *handle)
{
    static uint64_t last_handle;
    struct condition *c = calloc(1, sizeof *c);
    if (!c)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_init(&c->refs, 1);
    c->initial = value;
    c->assign = flags & CU_GRAPH_COND_ASSIGN_DEFAULT;
    c->context = context;
    c->next_in_graph = graph->conditions;
    graph->conditions = c;
    pthread_mutex_lock(&lock);
    *handle = c->handle = ++last_handle;
    c->next = conditions;
    conditions = c;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

void conditions_free(struct graph *graph)
{
    for (struct condition *c = graph->conditions, *next; c; c = next) {
        next = c->next_in_graph;
        condition_unref(c);
    }
    graph->conditions = NULL;
}

bool conditions_used(const struct graph *graph)
{
    for (const struct condition *c = graph->conditions; c; c = c->next_in_graph)
        if (!c->used)
            return false;
    return true;
}

/* ---- conditional nodes ------------------------------------------------------------------------------------------ */

static bool size_ok(const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
    switch (p->type) {
    case CU_GRAPH_COND_TYPE_IF:
        return p->size == 1 || p->size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
        return p->size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return p->size > 0;
    }
    return false;
}

static struct graph **new_bodies(size_t count)
{
    struct graph **bodies = calloc(count, sizeof(struct graph *));
    for (size_t i = 0; bodies && i < count; i++) {
        if (!(bodies[i] = graph_new(true))) {
            free_bodies(bodies, i);
            return NULL;
        }
        bodies[i]->owned = bodies[i]->body = true;
    }
    return bodies;
}

static CUresult conditional_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    CUDA_CONDITIONAL_NODE_PARAMS p = params->conditional;
    struct context *context;
    if (work->kind)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = work_context(p.ctx, &context);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct condition *c = condition_find(p.handle);
    bool ok = c && !c->used && c->context == context && size_ok(&p);
    if (ok)
        condition_ref(c);
    pthread_mutex_unlock(&lock);
    if (!ok)
        return CUDA_ERROR_INVALID_VALUE;
    struct graph **bodies = new_bodies(p.size);
    if (!bodies) {
        condition_unref(c);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->used = true;
    p.ctx = (CUcontext)context;
    p.phGraph_out = params->conditional.phGraph_out = (CUgraph *)bodies;
    work->params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .conditional = p};
    work->context = context;
    work->condition = c;
    work->bodies = bodies;
    work->body_count = p.size;
    work->claims = true;
    return CUDA_SUCCESS;
}

static CUresult conditional_copy(struct work *to, const struct work *from, bool visible)
{
    CUresult result = bodies_copy(to, from, visible);
    if (result != CUDA_SUCCESS)
        return result;
    condition_ref(to->condition);
    to->params.conditional.phGraph_out = (CUgraph *)to->bodies;
    to->claims = false;
    return CUDA_SUCCESS;
}

static void conditional_clear(struct work *work)
{
    if (work->claims)
        work->condition->used = false;
    condition_unref(work->condition);
    free_bodies(work->bodies, work->body_count);
}

void work_take_condition(struct work *to, const struct work *from)
{
    if (!to->condition || to->condition == from->condition)
        return;
    condition_unref(to->condition);
    to->condition = condition_ref(from->condition);
}

struct conditional_op {
    struct op op;
    CUgraphConditionalNodeType type;
    struct condition *condition; /* reference */
    const struct context *context;
    size_t count;
    struct steps *bodies;
};

static void run_conditional(struct op *op)
{
    struct conditional_op *c = (struct conditional_op *)op;
    unsigned value = atomic_load(&c->condition->value);
    size_t body = c->type == CU_GRAPH_COND_TYPE_IF ? !value : value;
    if (c->type != CU_GRAPH_COND_TYPE_WHILE) {
        if (body < c->count)
            steps_run(&c->bodies[body], op, c->context);
        return;
    }
    while (atomic_load(&c->condition->value) && !context_error(c->context) && !atomic_load(engine_cancel()))
        steps_run(&c->bodies[0], op, c->context);
}

static void drop_conditional(struct op *op)
{
    struct conditional_op *c = (struct conditional_op *)op;
    for (size_t i = 0; i < c->count; i++)
        steps_free(&c->bodies[i]);
    free(c->bodies);
    condition_unref(c->condition);
    free(c);
}

static CUresult conditional_step(const struct work *work, struct steps *steps)
{
    struct steps *bodies = calloc(work->body_count, sizeof *bodies);
    struct conditional_op *c = bodies ? op_new(sizeof *c, run_conditional, drop_conditional) : NULL;
    if (!c) {
        free(bodies);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->type = work->params.conditional.type;
    c->condition = condition_ref(work->condition);
    c->context = work->context;
    c->count = work->body_count;
    c->bodies = bodies;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < c->count && result == CUDA_SUCCESS; i++)
        result = graph_make(work->bodies[i], &bodies[i]);
    if (result != CUDA_SUCCESS) {
        op_unref(&c->op);
        return result;
    }
    return steps_add(steps, &c->op);
}

static void run_default(struct op *op)
{
    struct condition *c = ((struct conditional_op *)op)->condition;
    atomic_store(&c->value, c->initial);
}

CUresult conditions_make_defaults(const struct graph *graph, struct steps *steps)
{
    CUresult result = CUDA_SUCCESS;
    for (const struct node *n = graph->first; n && result == CUDA_SUCCESS; n = n->next) {
        struct condition *condition = n->work.condition;
        if (condition && condition->assign) {
            struct conditional_op *c = op_new(sizeof *c, run_default, drop_conditional);
            if (!c)
                return CUDA_ERROR_OUT_OF_MEMORY;
            c->condition = condition_ref(condition);
            result = steps_add(steps, &c->op);
        }
        for (size_t i = 0; i < n->work.body_count && result == CUDA_SUCCESS; i++)
            result = conditions_make_defaults(n->work.bodies[i], steps);
    }
    return result;
}

static CUgraphExecUpdateResult conditional_change(const struct work *old, const struct work *new)
{
    const CUDA_CONDITIONAL_NODE_PARAMS *a = &old->params.conditional, *b = &new->params.conditional;
    return a->type == b->type && a->size == b->size && old->context == new->context
               ? CU_GRAPH_EXEC_UPDATE_SUCCESS
               : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

static void conditional_print(const struct work *work, void *file)
{
    static const char *const names[] = {"IF", "WHILE", "SWITCH"};
    fprintf(file, "%s, %zu bodies", names[work->params.conditional.type], work->body_count);
}

const struct work_kind work_conditional = {
    .type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
    .name = "CONDITIONAL",
    .in_bodies = true,
    .set = conditional_set,
    .copy = conditional_copy,
    .clear = conditional_clear,
    .make = conditional_step,
    .change = conditional_change,
    .print = conditional_print,
};
