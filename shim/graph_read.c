/* graph_read.c - a graph's nodes in a topological order, as the driver tells them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "shim/copy.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/graph.h"
#include "shim/intern.h"
#include "shim/memory.h"
#include "shim/params.h"

enum { DEPTH_MAX = 16, BODIES_MAX = 64, NO_NODE = UINT32_MAX };

/* ---- nodes ---- */

void graph_node_clear(struct graph_node *node)
{
    free(node->dependencies);
    free(node->arguments);
    free(node->box);
}

void graph_body_free(struct graph_body *body)
{
    for (uint32_t i = 0; i < body->count; i++)
        graph_node_clear(&body->nodes[i]);
    free(body->nodes);
    memory_give(body->counted);
    *body = (struct graph_body){0};
}

bool graph_body_keep(struct graph_body *body)
{
    body->counted = (size_t)body->count * sizeof *body->nodes;
    for (uint32_t i = 0; i < body->count; i++) {
        const struct graph_node *node = &body->nodes[i];
        body->counted += node->dependency_count * sizeof *node->dependencies + node->argument_bytes +
                         (node->box ? sizeof *node->box : 0);
    }
    return memory_must(body->counted);
}

static bool duplicate(void *out, const void *from, size_t bytes)
{
    void *copy = NULL;
    if (from && !(copy = malloc(bytes + 1)))
        return false;
    if (from)
        memcpy(copy, from, bytes);
    *(void **)out = copy;
    return true;
}

bool graph_body_copy(struct graph_body *to, const struct graph_body *from)
{
    *to = (struct graph_body){.incomplete = from->incomplete};
    to->nodes = calloc(from->count + 1u, sizeof *to->nodes);
    for (bool ok = to->nodes != NULL; ok && to->count < from->count; to->count++) {
        const struct graph_node *old = &from->nodes[to->count];
        struct graph_node *new = &to->nodes[to->count];
        *new = *old;
        new->dependencies = NULL;
        new->arguments = NULL;
        new->box = NULL;
        ok = duplicate(&new->dependencies, old->dependencies, old->dependency_count * sizeof *old->dependencies) &&
             duplicate(&new->arguments, old->arguments, old->argument_bytes) &&
             duplicate(&new->box, old->box, sizeof *old->box);
        if (!ok) {
            to->count++;
            graph_body_free(to);
            return false;
        }
    }
    return to->nodes != NULL;
}

void graph_node_unknown(struct graph_node *node)
{
    free(node->arguments);
    free(node->box);
    node->arguments = NULL;
    node->box = NULL;
    node->argument_bytes = 0;
    node->kernel = NULL;
    node->flags |= CAP_NODE_UNKNOWN;
}

/* Functions are known by either handle; a graph may name the one that the program did not use. */
static struct tracked_kernel *kernel_of(const CUDA_KERNEL_NODE_PARAMS *p)
{
    uint64_t handles[2] = {(uint64_t)(uintptr_t)p->func, (uint64_t)(uintptr_t)p->kern};
    struct tracked_kernel *kernel = NULL;
    for (int i = 0; i < 2 && !kernel; i++)
        if (handles[i])
            kernel = track_kernel(handles[i]);
    /* Asking may load the function, which a capture anywhere may forbid. */
    uint64_t ask = kernel ? kernel->handle : handles[0] ? handles[0] : handles[1];
    bool known = kernel && __atomic_load_n(&kernel->layout_source, __ATOMIC_ACQUIRE) != CAP_LAYOUT_UNKNOWN;
    if (ask && !known && !device_captures_active())
        kernel = track_kernel_launched(ask);
    return kernel;
}

void graph_node_kernel(struct graph_node *node, const CUDA_KERNEL_NODE_PARAMS *p)
{
    uint32_t kept = node->flags & (CAP_NODE_DISABLED | CAP_NODE_BODY | CAP_NODE_CHAINED);
    graph_node_unknown(node);
    node->flags = kept;
    node->kernel = kernel_of(p);
    if (!node->kernel) {
        node->flags |= CAP_NODE_UNKNOWN;
        return;
    }
    const uint32_t grid[3] = {p->gridDimX, p->gridDimY, p->gridDimZ};
    const uint32_t block[3] = {p->blockDimX, p->blockDimY, p->blockDimZ};
    memcpy(node->grid, grid, sizeof grid);
    memcpy(node->block, block, sizeof block);
    node->dynamic_shared_bytes = p->sharedMemBytes;
    node->function = node->kernel->handle;
    node->config = intern_config(grid, block, p->sharedMemBytes, node->config_flags);
    int32_t bytes = params_measure(node->kernel, p->kernelParams, p->extra);
    if (bytes == PARAMS_UNKNOWN) {
        node->flags |= CAP_NODE_ARGS_UNKNOWN;
        return;
    }
    node->arguments = calloc(1, (size_t)bytes + 1);
    if (!node->arguments) {
        node->flags |= CAP_NODE_ARGS_UNKNOWN;
        return;
    }
    params_pack(node->kernel, p->kernelParams, p->extra, node->arguments, (uint32_t)bytes);
    node->argument_bytes = (uint32_t)bytes;
}

void graph_node_copy(struct graph_node *node, const CUDA_MEMCPY3D *p)
{
    CUDA_MEMCPY3D *box = malloc(sizeof *box);
    if (!box) {
        graph_node_unknown(node);
        return;
    }
    *box = *p;
    free(node->box);
    node->box = box;
    node->flags &= ~(uint32_t)CAP_NODE_UNKNOWN;
    node->copy = copy_shape_3d(p);
    node->copy.asynchronous = 1;
}

void graph_node_set(struct graph_node *node, const CUDA_MEMSET_NODE_PARAMS *p)
{
    node->flags &= ~(uint32_t)CAP_NODE_UNKNOWN;
    node->set = (struct cap_set){.target = p->dst,
                                 .width = (uint64_t)p->width * p->elementSize,
                                 .height = p->height,
                                 .pitch = p->height > 1 ? p->pitch : 0,
                                 .value = p->value,
                                 .value_bytes = p->elementSize,
                                 .asynchronous = 1};
}

static bool attribute(CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value)
{
    memset(value, 0, sizeof *value);
    return driver.cuGraphKernelNodeGetAttribute &&
           driver.cuGraphKernelNodeGetAttribute(node, id, value) == CUDA_SUCCESS;
}

static void ask_kernel(struct graph_node *node)
{
    CUDA_KERNEL_NODE_PARAMS p = {0};
    CUkernelNodeAttrValue value;
    node->attributes_known = attribute(node->handle, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
    if (value.cooperative)
        node->config_flags |= CAP_CONFIG_COOPERATIVE;
    if (attribute(node->handle, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) &&
        value.clusterDim.x * value.clusterDim.y * value.clusterDim.z > 1) {
        node->config_flags |= CAP_CONFIG_CLUSTER;
        node->cluster[0] = value.clusterDim.x;
        node->cluster[1] = value.clusterDim.y;
        node->cluster[2] = value.clusterDim.z;
    }
    if (driver.cuGraphKernelNodeGetParams_v2 &&
        driver.cuGraphKernelNodeGetParams_v2(node->handle, &p) == CUDA_SUCCESS && (p.func || p.kern))
        graph_node_kernel(node, &p);
    else
        node->flags |= CAP_NODE_UNKNOWN;
}

static void ask_copy(struct graph_node *node)
{
    CUDA_MEMCPY3D p;
    if (driver.cuGraphMemcpyNodeGetParams && driver.cuGraphMemcpyNodeGetParams(node->handle, &p) == CUDA_SUCCESS)
        graph_node_copy(node, &p);
    else
        node->flags |= CAP_NODE_UNKNOWN;
}

static void ask_set(struct graph_node *node)
{
    CUDA_MEMSET_NODE_PARAMS p;
    if (driver.cuGraphMemsetNodeGetParams && driver.cuGraphMemsetNodeGetParams(node->handle, &p) == CUDA_SUCCESS)
        graph_node_set(node, &p);
    else
        node->flags |= CAP_NODE_UNKNOWN;
}

static void ask_memory(struct graph_node *node)
{
    CUDA_MEM_ALLOC_NODE_PARAMS p;
    CUdeviceptr address = 0;
    if (node->kind == CAP_NODE_ALLOC && driver.cuGraphMemAllocNodeGetParams &&
        driver.cuGraphMemAllocNodeGetParams(node->handle, &p) == CUDA_SUCCESS)
        node->memory = (struct cap_graph_memory){p.dptr, p.bytesize};
    else if (node->kind == CAP_NODE_FREE && driver.cuGraphMemFreeNodeGetParams &&
             driver.cuGraphMemFreeNodeGetParams(node->handle, &address) == CUDA_SUCCESS)
        node->memory = (struct cap_graph_memory){address, 0};
    else
        node->flags |= CAP_NODE_UNKNOWN;
}

static enum cap_graph_node_kind kind_of(CUgraphNodeType type)
{
    switch ((int)type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return CAP_NODE_KERNEL;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return CAP_NODE_COPY;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return CAP_NODE_SET;
    case CU_GRAPH_NODE_TYPE_HOST:
        return CAP_NODE_HOST;
    case CU_GRAPH_NODE_TYPE_GRAPH:
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CAP_NODE_EMPTY;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return CAP_NODE_EVENT_WAIT;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return CAP_NODE_EVENT_RECORD;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return CAP_NODE_ALLOC;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return CAP_NODE_FREE;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return CAP_NODE_CONDITIONAL;
    default:
        return CAP_NODE_OTHER;
    }
}

static void ask(struct graph_node *node)
{
    switch ((enum cap_graph_node_kind)node->kind) {
    case CAP_NODE_KERNEL:
        ask_kernel(node);
        break;
    case CAP_NODE_COPY:
        ask_copy(node);
        break;
    case CAP_NODE_SET:
        ask_set(node);
        break;
    case CAP_NODE_ALLOC:
    case CAP_NODE_FREE:
        ask_memory(node);
        break;
    default:
        break;
    }
}

/* ---- graphs ---- */

/* One graph (of the program, or a child) while its nodes are put in order. */
struct reader {
    struct graph_body *body;
    CUgraphNode *nodes, *from, *to, *order;
    bool *chained; /* by node: some edge to it is programmatic */
    size_t count, edges;
    struct map places;     /* handle -> index in nodes */
    uint32_t *first, *out; /* edges by their source: out[first[i]..first[i + 1]) are indices of nodes */
    uint32_t *first_in, *in;
    uint32_t *waiting; /* nodes it still waits for */
    uint32_t *placed;  /* index in the body */
};

static bool read_nodes(CUgraph graph, struct reader *r)
{
    if (!driver.cuGraphGetNodes || driver.cuGraphGetNodes(graph, NULL, &r->count) != CUDA_SUCCESS ||
        r->count > GRAPH_NODES_MAX)
        return false;
    r->nodes = calloc(r->count + 1, sizeof(CUgraphNode));
    return r->nodes && (!r->count || driver.cuGraphGetNodes(graph, r->nodes, &r->count) == CUDA_SUCCESS);
}

static bool read_edges(CUgraph graph, struct reader *r, CUgraphEdgeData **data)
{
    bool newer = driver.cuGraphGetEdges_v2 != NULL;
    if (!newer && !driver.cuGraphGetEdges)
        return false;
    CUresult result = newer ? driver.cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &r->edges)
                            : driver.cuGraphGetEdges(graph, NULL, NULL, &r->edges);
    if (result != CUDA_SUCCESS || r->edges > (size_t)GRAPH_NODES_MAX * 16)
        return false;
    r->from = calloc(r->edges + 1, sizeof(CUgraphNode));
    r->to = calloc(r->edges + 1, sizeof(CUgraphNode));
    *data = calloc(r->edges + 1, sizeof **data);
    if (!r->from || !r->to || !*data)
        return false;
    if (!r->edges)
        return true;
    result = newer ? driver.cuGraphGetEdges_v2(graph, r->from, r->to, *data, &r->edges)
                   : driver.cuGraphGetEdges(graph, r->from, r->to, &r->edges);
    return result == CUDA_SUCCESS;
}

/* The edges of each node, by counting: `by` are one end of them, `other` the other. */
static bool sort_edges(const struct reader *r, CUgraphNode *by, CUgraphNode *other, uint32_t **first, uint32_t **ends)
{
    uint64_t a, b;
    *first = calloc(r->count + 2, sizeof **first);
    *ends = calloc(r->edges + 1, sizeof **ends);
    uint32_t *next = calloc(r->count + 1, sizeof *next);
    bool ok = *first && *ends && next;
    for (size_t i = 0; ok && i < r->edges; i++) {
        ok = map_get(&r->places, (uint64_t)(uintptr_t)by[i], &a) &&
             map_get(&r->places, (uint64_t)(uintptr_t)other[i], &b);
        if (ok)
            (*first)[a + 1]++;
    }
    for (size_t i = 0; ok && i < r->count; i++) {
        (*first)[i + 1] += (*first)[i];
        next[i] = (*first)[i];
    }
    for (size_t i = 0; ok && i < r->edges; i++) {
        map_get(&r->places, (uint64_t)(uintptr_t)by[i], &a);
        map_get(&r->places, (uint64_t)(uintptr_t)other[i], &b);
        (*ends)[next[a]++] = (uint32_t)b;
    }
    free(next);
    return ok;
}

static bool prepare(CUgraph graph, struct reader *r)
{
    CUgraphEdgeData *data = NULL;
    bool ok = read_nodes(graph, r) && read_edges(graph, r, &data);
    r->chained = calloc(r->count + 1, sizeof *r->chained);
    r->waiting = calloc(r->count + 1, sizeof *r->waiting);
    r->placed = calloc(r->count + 1, sizeof *r->placed);
    ok = ok && r->chained && r->waiting && r->placed;
    for (size_t i = 0; ok && i < r->count; i++)
        ok = map_put(&r->places, (uint64_t)(uintptr_t)r->nodes[i], i);
    ok = ok && sort_edges(r, r->from, r->to, &r->first, &r->out) && sort_edges(r, r->to, r->from, &r->first_in, &r->in);
    for (size_t i = 0; ok && i < r->edges; i++) {
        uint64_t at = 0;
        map_get(&r->places, (uint64_t)(uintptr_t)r->to[i], &at);
        r->chained[at] = r->chained[at] || data[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
    for (size_t i = 0; ok && i < r->count; i++)
        r->waiting[i] = r->first_in[i + 1] - r->first_in[i];
    free(data);
    return ok;
}

static void release(struct reader *r)
{
    free(r->nodes);
    free(r->from);
    free(r->to);
    free(r->chained);
    free(r->first);
    free(r->out);
    free(r->first_in);
    free(r->in);
    free(r->waiting);
    free(r->placed);
    map_free(&r->places);
}

static struct graph_node *append(struct graph_body *body, uint32_t dependencies)
{
    if (body->count == body->capacity) {
        uint32_t capacity = body->capacity ? body->capacity * 2 : 16;
        struct graph_node *more = body->count < GRAPH_NODES_MAX ? realloc(body->nodes, capacity * sizeof *more) : NULL;
        if (!more)
            return NULL;
        body->nodes = more;
        body->capacity = capacity;
    }
    struct graph_node *node = &body->nodes[body->count];
    *node = (struct graph_node){.type = CU_GRAPH_NODE_TYPE_EMPTY};
    node->dependencies = malloc((dependencies + 1) * sizeof *node->dependencies);
    if (!node->dependencies)
        return NULL;
    body->count++;
    return node;
}

static bool read_into(CUgraph graph, struct graph_body *body, uint32_t entry, CUgraphNode owner, int depth);

/* ---- conditional nodes ---- */

struct conditional {
    CUgraph graph; /* that it is in */
    unsigned count;
    CUgraph bodies[];
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map conditionals; /* CUgraphNode -> struct conditional */

static void forget_graph(CUgraph graph, int depth);

/* Behind the lock: the node is about to go, and its bodies with it. */
static bool forget_node(uint64_t node, int depth)
{
    uint64_t value;
    if (!map_get(&conditionals, node, &value))
        return false;
    struct conditional *c = (void *)(uintptr_t)value;
    map_remove(&conditionals, node);
    for (unsigned i = 0; i < c->count && depth < DEPTH_MAX; i++)
        forget_graph(c->bodies[i], depth + 1);
    free(c);
    return true;
}

/* Removal moves slots: look from the start each time. */
static void forget_graph(CUgraph graph, int depth)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < conditionals.capacity && !again; i++)
            if (conditionals.slots[i].used &&
                ((const struct conditional *)(uintptr_t)conditionals.slots[i].value)->graph == graph)
                again = forget_node(conditionals.slots[i].key, depth);
    }
}

void graph_conditionals_gone(CUgraph graph, CUgraphNode node)
{
    pthread_mutex_lock(&lock);
    if (node)
        (void)forget_node((uint64_t)(uintptr_t)node, 0);
    else if (graph && conditionals.count)
        forget_graph(graph, 0);
    pthread_mutex_unlock(&lock);
}

void graph_conditional_added(CUgraph graph, CUgraphNode node, const CUgraph *bodies, unsigned count)
{
    uint64_t old = 0;
    struct conditional *c = bodies && count <= BODIES_MAX ? malloc(sizeof *c + count * sizeof(void *)) : NULL;
    if (!c)
        return;
    c->graph = graph;
    c->count = count;
    memcpy(c->bodies, bodies, count * sizeof(void *));
    pthread_mutex_lock(&lock);
    map_get(&conditionals, (uint64_t)(uintptr_t)node, &old);
    bool kept = memory_map_put(&conditionals, (uint64_t)(uintptr_t)node, (uint64_t)(uintptr_t)c, false);
    pthread_mutex_unlock(&lock);
    free(kept ? (void *)(uintptr_t)old : c);
}

static unsigned bodies_of(CUgraphNode node, CUgraph bodies[BODIES_MAX])
{
    uint64_t value;
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    if (map_get(&conditionals, (uint64_t)(uintptr_t)node, &value)) {
        const struct conditional *c = (void *)(uintptr_t)value;
        count = c->count;
        memcpy(bodies, c->bodies, count * sizeof(void *));
    }
    pthread_mutex_unlock(&lock);
    return count;
}

/* Behind the node that decides about them; they run any number of times, so whoever asks for the graph's effect has to
 * stop there, but who reaches what is known. */
static void add_bodies(struct graph_body *body, CUgraphNode handle, CUgraphNode owner, int depth)
{
    CUgraph bodies[BODIES_MAX];
    unsigned count = bodies_of(handle, bodies);
    uint32_t entry = body->count - 1;
    for (unsigned i = 0; i < count && depth < DEPTH_MAX; i++)
        if (!read_into(bodies[i], body, entry, owner ? owner : handle, depth + 1))
            break;
    for (uint32_t i = entry + 1; i < body->count; i++)
        body->nodes[i].flags |= CAP_NODE_BODY;
}

/* A child's nodes, from an empty node behind which they start to one that waits for all of them. */
static bool add_child(struct graph_body *body, CUgraphNode handle, CUgraphNode owner, int depth)
{
    uint32_t entry = body->count - 1;
    CUgraph child = NULL;
    if (!driver.cuGraphChildGraphNodeGetGraph || driver.cuGraphChildGraphNodeGetGraph(handle, &child) != CUDA_SUCCESS ||
        depth >= DEPTH_MAX || !read_into(child, body, entry, owner ? owner : handle, depth + 1))
        return false;
    uint32_t last = body->count;
    struct graph_node *exit = append(body, last - entry);
    if (!exit)
        return false;
    exit->owner = owner ? owner : handle;
    for (uint32_t i = entry; i < last; i++)
        exit->dependencies[exit->dependency_count++] = i;
    return true;
}

static bool add_node(struct reader *r, size_t at, uint32_t entry, CUgraphNode owner, int depth)
{
    CUgraphNodeType type;
    uint32_t in = r->first_in[at + 1] - r->first_in[at];
    struct graph_node *node = append(r->body, in + 1);
    if (!node)
        return false;
    node->handle = r->nodes[at];
    node->owner = owner;
    for (uint32_t i = r->first_in[at]; i < r->first_in[at + 1]; i++)
        node->dependencies[node->dependency_count++] = r->placed[r->in[i]];
    if (!in && entry != NO_NODE)
        node->dependencies[node->dependency_count++] = entry;
    if (!driver.cuGraphNodeGetType || driver.cuGraphNodeGetType(node->handle, &type) != CUDA_SUCCESS)
        return false;
    node->type = type;
    node->kind = kind_of(type);
    node->flags = r->chained[at] ? CAP_NODE_CHAINED : 0;
    ask(node);
    bool ok = type != CU_GRAPH_NODE_TYPE_GRAPH || add_child(r->body, r->nodes[at], owner, depth);
    r->placed[at] = r->body->count - 1;
    if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        add_bodies(r->body, r->nodes[at], owner, depth);
    return ok;
}

/* Kahn's order: whoever waits for nobody goes next, in the driver's own order. */
static bool place_all(struct reader *r, uint32_t entry, CUgraphNode owner, int depth)
{
    uint32_t *queue = malloc((r->count + 1) * sizeof *queue);
    size_t head = 0, tail = 0;
    for (size_t i = 0; queue && i < r->count; i++)
        if (!r->waiting[i])
            queue[tail++] = (uint32_t)i;
    bool ok = queue != NULL;
    for (; ok && head < tail; head++) {
        uint32_t at = queue[head];
        ok = add_node(r, at, entry, owner, depth);
        for (uint32_t i = r->first[at]; ok && i < r->first[at + 1]; i++)
            if (--r->waiting[r->out[i]] == 0)
                queue[tail++] = r->out[i];
    }
    free(queue);
    return ok && head == r->count;
}

static bool read_into(CUgraph graph, struct graph_body *body, uint32_t entry, CUgraphNode owner, int depth)
{
    struct reader r = {.body = body};
    bool ok = prepare(graph, &r) && place_all(&r, entry, owner, depth);
    release(&r);
    return ok;
}

void graph_read(CUgraph graph, struct graph_body *body)
{
    *body = (struct graph_body){0};
    CUstreamCaptureMode mode = device_relax();
    body->incomplete = !read_into(graph, body, NO_NODE, NULL, 0);
    device_unrelax(mode);
    for (uint32_t i = 0; i < body->count; i++)
        if (body->nodes[i].flags & CAP_NODE_UNKNOWN || body->nodes[i].kind == CAP_NODE_CONDITIONAL ||
            body->nodes[i].kind == CAP_NODE_OTHER)
            body->incomplete = true;
}
