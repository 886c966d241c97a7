/* graph.c - the executable graphs of the program by handle, and their records. */
#include "shim/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "shim/capture_write.h"
#include "shim/driver.h"
#include "shim/intern.h"
#include "shim/memory.h"
#include "shim/options.h"
#include "shim/stack.h"

#define GRAPH_KERNEL_ID UINT32_C(0x80000000) /* apart from the ids of kernels */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map graphs; /* CUgraphExec -> struct tracked_graph, never freed but for its body */

/* ---- records ---- */

static uint32_t body_bytes(const struct graph_node *node)
{
    if (node->flags & (CAP_NODE_UNKNOWN | CAP_NODE_ARGS_UNKNOWN))
        return 0;
    switch ((enum cap_graph_node_kind)node->kind) {
    case CAP_NODE_KERNEL:
        return node->argument_bytes;
    case CAP_NODE_COPY:
        return sizeof node->copy;
    case CAP_NODE_SET:
        return sizeof node->set;
    case CAP_NODE_ALLOC:
    case CAP_NODE_FREE:
        return sizeof node->memory;
    default:
        return 0;
    }
}

static const void *body_of(const struct graph_node *node)
{
    switch ((enum cap_graph_node_kind)node->kind) {
    case CAP_NODE_KERNEL:
        return node->arguments;
    case CAP_NODE_COPY:
        return &node->copy;
    case CAP_NODE_SET:
        return &node->set;
    default:
        return &node->memory;
    }
}

static void record_node(uint32_t graph, uint32_t version, uint32_t index, const struct graph_node *node)
{
    size_t ends = (node->dependency_count * sizeof(uint32_t) + 7) & ~(size_t)7;
    uint32_t bytes = body_bytes(node);
    struct cap_graph_node *record = capture_define(CAP_GRAPH_NODE, sizeof *record + ends + bytes);
    if (!record)
        return;
    record->graph = graph;
    record->version = version;
    record->index = index;
    record->kind = node->kind;
    record->flags = node->flags;
    record->type = node->type;
    record->kernel = node->kernel ? node->kernel->id : 0;
    record->config = node->kernel ? node->config : 0;
    record->dependency_count = node->dependency_count;
    record->body_bytes = bytes;
    uint8_t *at = (uint8_t *)(record + 1);
    if (node->dependency_count)
        memcpy(at, node->dependencies, node->dependency_count * sizeof(uint32_t));
    if (bytes)
        memcpy(at + ends, body_of(node), bytes);
    capture_commit(record);
}

static void record_graph(const struct tracked_graph *graph, uint32_t version, const struct graph_body *body,
                         uint32_t flags)
{
    const struct tracked_context *context = track_current_context();
    uint32_t stack = stack_here();
    struct cap_graph *record = capture_define(CAP_GRAPH, sizeof *record);
    if (!record)
        return;
    record->id = graph->id;
    record->version = version;
    record->node_count = body ? body->count : 0;
    record->flags = flags;
    record->context = context ? context->id : 0;
    record->stack = stack;
    record->handle = (uint64_t)(uintptr_t)graph->handle;
    capture_commit(record);
    for (uint32_t i = 0; body && i < body->count; i++)
        record_node(graph->id, version, i, &body->nodes[i]);
}

/* Memory that the graph's own nodes make: known to readers from now to the graph's end. Not to our table, since nobody
 * may touch it but while the graph runs. */
static void record_memory(const struct call *call, struct tracked_graph *graph, const struct graph_body *body)
{
    const struct tracked_context *context = track_current_context();
    for (uint32_t i = 0; i < body->count; i++) {
        const struct graph_node *node = &body->nodes[i];
        if (node->kind != CAP_NODE_ALLOC || (node->flags & CAP_NODE_UNKNOWN) || !node->memory.bytes)
            continue;
        uint32_t *ids = realloc(graph->memory_ids, (graph->memory_count + 1u) * sizeof *ids);
        graph->memory_ids = ids ? ids : graph->memory_ids;
        uint64_t *addresses = realloc(graph->memory_addresses, (graph->memory_count + 1u) * sizeof *addresses);
        graph->memory_addresses = addresses ? addresses : graph->memory_addresses;
        if (!ids || !addresses)
            return;
        uint32_t id = intern_new_id(INTERN_ALLOC), stack = stack_here();
        struct cap_alloc *record = capture_record(CAP_ALLOC, sizeof *record, capture_next_seq(), call->tsc);
        if (!record)
            return;
        record->id = id;
        record->kind = CAP_ALLOC_POOL;
        record->context = context ? context->id : 0;
        record->stack = stack;
        record->address = node->memory.address;
        record->bytes = node->memory.bytes;
        capture_commit(record);
        graph->memory_ids[graph->memory_count] = id;
        graph->memory_addresses[graph->memory_count++] = node->memory.address;
    }
}

static void record_memory_gone(const struct call *call, struct tracked_graph *graph)
{
    for (uint32_t i = 0; i < graph->memory_count; i++) {
        struct cap_free *record = capture_record(CAP_FREE, sizeof *record, capture_next_seq(), call->tsc);
        if (!record)
            return;
        record->id = graph->memory_ids[i];
        record->address = graph->memory_addresses[i];
        capture_commit(record);
    }
    free(graph->memory_ids);
    free(graph->memory_addresses);
    graph->memory_ids = NULL;
    graph->memory_addresses = NULL;
    graph->memory_count = 0;
}

static uint32_t flags_of(const struct graph_body *body)
{
    return body->incomplete ? CAP_GRAPH_INCOMPLETE : 0;
}

/* ---- the table ---- */

static struct tracked_graph *find(CUgraphExec exec)
{
    uint64_t value;
    return map_get(&graphs, (uint64_t)(uintptr_t)exec, &value) ? (void *)(uintptr_t)value : NULL;
}

static uint32_t matches(const struct graph_body *body)
{
    for (uint32_t i = 0; i < body->count && options.kernel_filter; i++)
        if (body->nodes[i].kernel && body->nodes[i].kernel->matches)
            return 1;
    return !options.kernel_filter;
}

static struct tracked_graph *add(CUgraphExec exec, const struct graph_body *body)
{
    bool room = memory_must(sizeof(struct tracked_graph));
    struct tracked_graph *graph = room ? calloc(1, sizeof *graph) : NULL;
    if (!graph)
        return NULL;
    graph->handle = exec;
    graph->id = intern_new_id(INTERN_GRAPH);
    graph->version = 1;
    graph->body = *body;
    graph->as_kernel = (struct tracked_kernel){.id = graph->id | GRAPH_KERNEL_ID, .matches = matches(body)};
    pthread_mutex_lock(&lock);
    struct tracked_graph *old = find(exec); /* gone without our seeing it */
    bool ok = memory_map_put(&graphs, (uint64_t)(uintptr_t)exec, (uint64_t)(uintptr_t)graph, true);
    if (old)
        graph_body_free(&old->body);
    pthread_mutex_unlock(&lock);
    if (ok)
        return graph;
    free(graph);
    return NULL;
}

void graph_made(const struct call *call, CUgraphExec exec, CUgraph source)
{
    struct graph_body body;
    thread_slow();
    graph_read(source, &body);
    graph_body_keep(&body);
    struct tracked_graph *graph = add(exec, &body);
    if (!graph) {
        graph_body_free(&body);
        return;
    }
    record_graph(graph, 1, &body, flags_of(&body));
    record_memory(call, graph, &body);
}

struct tracked_graph *graph_find(CUgraphExec exec, bool make)
{
    pthread_mutex_lock(&lock);
    struct tracked_graph *graph = find(exec);
    pthread_mutex_unlock(&lock);
    if (graph || !make)
        return graph;
    const struct graph_body nothing = {.incomplete = true};
    graph = add(exec, &nothing);
    if (graph)
        record_graph(graph, 1, &nothing, CAP_GRAPH_INCOMPLETE);
    return graph;
}

static bool same_shape(const struct graph_node *a, const struct graph_node *b)
{
    return a->type == b->type && a->dependency_count == b->dependency_count &&
           (!a->dependency_count ||
            memcmp(a->dependencies, b->dependencies, a->dependency_count * sizeof *a->dependencies) == 0);
}

/* The program goes on naming the nodes by the handles of the graph that it first made the executable one from. */
static void keep_handles(const struct graph_body *old, struct graph_body *new)
{
    bool same = old->count == new->count;
    for (uint32_t i = 0; same && i < new->count; i++)
        same = same_shape(&old->nodes[i], &new->nodes[i]);
    for (uint32_t i = 0; i < new->count; i++) {
        new->nodes[i].handle = same ? old->nodes[i].handle : NULL;
        new->nodes[i].owner = same ? old->nodes[i].owner : NULL;
    }
}

/* Whether an update enables nodes again is the driver's business. */
static void ask_enabled(CUgraphExec exec, const struct graph_body *old, struct graph_body *new)
{
    for (uint32_t i = 0; i < old->count && i < new->count; i++) {
        unsigned enabled = 0;
        if (!(old->nodes[i].flags & CAP_NODE_DISABLED))
            continue;
        if (!new->nodes[i].handle || !driver.cuGraphNodeGetEnabled ||
            driver.cuGraphNodeGetEnabled(exec, new->nodes[i].handle, &enabled) != CUDA_SUCCESS)
            new->incomplete = true;
        if (!enabled)
            new->nodes[i].flags |= CAP_NODE_DISABLED;
    }
}

void graph_updated(const struct call *call, CUgraphExec exec, CUgraph source)
{
    struct graph_body new, old;
    uint32_t version;
    thread_slow();
    struct tracked_graph *graph = graph_find(exec, false);
    if (!graph) {
        graph_made(call, exec, source);
        return;
    }
    if (!graph_now(graph, &old, &version))
        return;
    graph_read(source, &new);
    graph_body_keep(&new);
    keep_handles(&old, &new);
    ask_enabled(exec, &old, &new);
    graph_body_free(&old);
    pthread_mutex_lock(&lock);
    old = graph->body;
    graph->body = new;
    version = ++graph->version;
    graph->as_kernel.matches = matches(&new);
    pthread_mutex_unlock(&lock);
    graph_body_free(&old);
    if (graph_now(graph, &new, &version)) {
        record_graph(graph, version, &new, flags_of(&new));
        graph_body_free(&new);
    }
}

/* Programs change the same node each time, or one after the other. */
static uint32_t index_of(struct tracked_graph *graph, CUgraphNode handle)
{
    const struct graph_body *body = &graph->body;
    uint32_t i = graph->changed;
    for (uint32_t tried = 0; tried < body->count; tried++, i++) {
        i = i < body->count ? i : 0;
        if (body->nodes[i].handle == handle)
            return graph->changed = i;
    }
    return body->count;
}

/* Nobody knows any more which node of ours is meant. */
static void lose(struct tracked_graph *graph)
{
    pthread_mutex_lock(&lock);
    graph->body.incomplete = true;
    uint32_t version = ++graph->version;
    pthread_mutex_unlock(&lock);
    struct graph_body body;
    if (!graph_now(graph, &body, &version))
        return;
    record_graph(graph, version, &body, CAP_GRAPH_INCOMPLETE);
    graph_body_free(&body);
}

/* Takes over *node, in the place that it was copied from. */
static void put_node(struct tracked_graph *graph, uint32_t index, struct graph_node *node)
{
    pthread_mutex_lock(&lock);
    bool there = index < graph->body.count && graph->body.nodes[index].handle == node->handle;
    uint32_t version = there ? ++graph->version : 0;
    if (there) {
        struct graph_node old = graph->body.nodes[index];
        graph->body.nodes[index] = *node;
        graph->body.incomplete = graph->body.incomplete || (node->flags & CAP_NODE_UNKNOWN);
        *node = old;
    }
    pthread_mutex_unlock(&lock);
    struct graph_body one = {0};
    if (there && graph_node_now(graph, index, &one)) {
        record_node(graph->id, version, index, &one.nodes[0]);
        graph_body_free(&one);
    }
    graph_node_clear(node);
}

void graph_node_changed(CUgraphExec exec, CUgraphNode handle,
                        void (*change)(struct graph_node *node, const void *params), const void *params)
{
    struct tracked_graph *graph = graph_find(exec, false);
    struct graph_body one = {0};
    thread_slow();
    if (!graph)
        return;
    pthread_mutex_lock(&lock);
    uint32_t index = index_of(graph, handle);
    bool known = index < graph->body.count;
    pthread_mutex_unlock(&lock);
    if (!known) {
        lose(graph);
        return;
    }
    if (!graph_node_now(graph, index, &one))
        return;
    change(&one.nodes[0], params);
    struct graph_node changed = one.nodes[0];
    free(one.nodes);
    put_node(graph, index, &changed);
}

void graph_child_changed(CUgraphExec exec, CUgraphNode handle, CUgraph child)
{
    struct tracked_graph *graph = graph_find(exec, false);
    struct graph_body now, inner;
    uint32_t version, first = 0, at = 0;
    thread_slow();
    if (!graph || !graph_now(graph, &now, &version))
        return;
    graph_read(child, &inner);
    while (first < now.count && now.nodes[first].owner != handle)
        first++;
    /* Behind the inner nodes stands the empty one that waits for them all. */
    bool same = first + inner.count < now.count && now.nodes[first + inner.count].owner == handle && !inner.incomplete;
    for (; same && at < inner.count; at++)
        same = now.nodes[first + at].owner == handle && now.nodes[first + at].type == inner.nodes[at].type;
    graph_body_free(&now);
    for (at = 0; same && at < inner.count; at++) {
        struct graph_body one = {0};
        if (!graph_node_now(graph, first + at, &one))
            break;
        struct graph_node *old = &one.nodes[0], *new = &inner.nodes[at];
        new->handle = old->handle;
        new->owner = old->owner;
        new->flags |= old->flags &(CAP_NODE_DISABLED | CAP_NODE_BODY);
        uint32_t *dependencies = new->dependencies;
        new->dependencies = old->dependencies;
        new->dependency_count = old->dependency_count;
        old->dependencies = dependencies;
        graph_body_free(&one);
        struct graph_node taken = *new;
        new->dependencies = NULL;
        new->arguments = NULL;
        new->box = NULL;
        put_node(graph, first + at, &taken);
    }
    graph_body_free(&inner);
    if (!same)
        lose(graph);
}

void graph_gone(const struct call *call, CUgraphExec exec)
{
    pthread_mutex_lock(&lock);
    struct tracked_graph *graph = find(exec);
    struct graph_body body = {0};
    uint32_t version = 0;
    if (graph) {
        map_remove(&graphs, (uint64_t)(uintptr_t)exec);
        body = graph->body;
        graph->body = (struct graph_body){.incomplete = true};
        version = ++graph->version;
    }
    pthread_mutex_unlock(&lock);
    if (!graph)
        return;
    record_memory_gone(call, graph);
    record_graph(graph, version, NULL, CAP_GRAPH_DESTROYED);
    graph_body_free(&body);
}

bool graph_now(struct tracked_graph *graph, struct graph_body *body, uint32_t *version)
{
    pthread_mutex_lock(&lock);
    bool ok = graph_body_copy(body, &graph->body);
    *version = graph->version;
    pthread_mutex_unlock(&lock);
    return ok;
}

bool graph_node_now(struct tracked_graph *graph, uint32_t index, struct graph_body *one)
{
    pthread_mutex_lock(&lock);
    const struct graph_body part = {.nodes = graph->body.nodes + index, .count = 1};
    bool ok = index < graph->body.count && graph_body_copy(one, &part);
    pthread_mutex_unlock(&lock);
    return ok;
}

uint32_t graph_version(struct tracked_graph *graph)
{
    pthread_mutex_lock(&lock);
    uint32_t version = graph->version;
    pthread_mutex_unlock(&lock);
    return version;
}
