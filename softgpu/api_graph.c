/* Graphs, their nodes and edges. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/graph.h"

/* ---- graphs ----------------------------------------------------------------------------------------------------- */

CUresult cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!phGraph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    struct graph *g = graph_new(true);
    graph_unlock();
    *phGraph = (CUgraph)g;
    return g ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph hGraph)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    struct graph *g = graph_from(hGraph);
    if (g && !g->owned && !g->capture)
        graph_free(g);
    else
        result = CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

CUresult cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
    const uint32_t never = GRAPH_MEMORY_NODES | 1u << CU_GRAPH_NODE_TYPE_CONDITIONAL;
    struct graph *clone = NULL;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!phGraphClone)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    const struct graph *g = graph_from(originalGraph);
    result = g && !graph_contains(g, never) ? graph_copy(g, true, &clone) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    if (result == CUDA_SUCCESS)
        *phGraphClone = (CUgraph)clone;
    return result;
}

CUresult cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    const struct node *n = node_from(hOriginalNode);
    const struct graph *clone = graph_from(hClonedGraph);
    struct node *found = phNode && n && clone ? graph_find_copy(clone, n->id, true) : NULL;
    graph_unlock();
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    *phNode = (CUgraphNode)found;
    return CUDA_SUCCESS;
}

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    const struct graph *g = graph_from(hGraph);
    result = g && path ? graph_print(g, path, flags) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx,
                                        unsigned int defaultLaunchValue, unsigned int flags)
{
    struct context *c;
    CUresult result = context_from(ctx, &c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pHandle_out || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t handle = 0;
    graph_lock();
    struct graph *g = graph_from(hGraph);
    result = g ? condition_new(g, c, defaultLaunchValue, flags, &handle) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    if (result == CUDA_SUCCESS)
        *pHandle_out = handle;
    return result;
}

/* ---- lists of nodes --------------------------------------------------------------------------------------------- */

/* Lists as these functions give them out: without an array the count only; what is left of the array becomes NULL. */
struct list {
    CUgraphNode *nodes, *others;
    CUgraphEdgeData *data;
    size_t room, count;
    bool lossy;
};

static struct list list_begin(CUgraphNode *nodes, CUgraphNode *others, CUgraphEdgeData *data, const size_t *count)
{
    return (struct list){.nodes = nodes, .others = others, .data = data, .room = nodes ? *count : 0};
}

static void list_add(struct list *l, struct node *node, struct node *other, const CUgraphEdgeData *data)
{
    size_t at = l->count++;
    if (at >= l->room)
        return;
    l->nodes[at] = (CUgraphNode)node;
    if (l->others)
        l->others[at] = (CUgraphNode)other;
    if (l->data)
        l->data[at] = data ? *data : (CUgraphEdgeData){0};
    else if (!graph_edge_default(data))
        l->lossy = true;
}

static CUresult list_end(struct list *l, size_t *count)
{
    if (l->lossy)
        return CUDA_ERROR_LOSSY_QUERY;
    for (size_t i = l->count; i < l->room; i++) {
        l->nodes[i] = NULL;
        if (l->others)
            l->others[i] = NULL;
    }
    *count = l->nodes && l->room < l->count ? l->room : l->count;
    return CUDA_SUCCESS;
}

static CUresult nodes_of(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    const struct graph *g = graph_from(graph);
    struct list l = list_begin(nodes, NULL, NULL, count);
    for (struct node *n = g ? g->first : NULL; n; n = n->next)
        if (!roots || !n->in.count)
            list_add(&l, n, NULL, NULL);
    result = g ? list_end(&l, count) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
    return nodes_of(hGraph, nodes, numNodes, false);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
    return nodes_of(hGraph, rootNodes, numRootNodes, true);
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData,
                            size_t *numEdges)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!numEdges || !from != !to || (edgeData && !from))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    const struct graph *g = graph_from(hGraph);
    struct list l = list_begin(from, to, edgeData, numEdges);
    for (struct node *n = g ? g->first : NULL; n; n = n->next)
        for (size_t i = 0; i < n->out.count; i++)
            list_add(&l, n, n->out.at[i].node, &n->out.at[i].data);
    result = g ? list_end(&l, numEdges) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
    return cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

static CUresult neighbours(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count, bool dependents)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!count || (data && !nodes))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    const struct node *n = node_from(node);
    const struct edges *edges = n ? (dependents ? &n->out : &n->in) : NULL;
    struct list l = list_begin(nodes, NULL, data, count);
    for (size_t i = 0; edges && i < edges->count; i++)
        list_add(&l, edges->at[i].node, NULL, &edges->at[i].data);
    result = n ? list_end(&l, count) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData,
                                       size_t *numDependencies)
{
    return neighbours(hNode, dependencies, edgeData, numDependencies, false);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
    return neighbours(hNode, dependencies, NULL, numDependencies, false);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
                                         size_t *numDependentNodes)
{
    return neighbours(hNode, dependentNodes, edgeData, numDependentNodes, true);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
    return neighbours(hNode, dependentNodes, NULL, numDependentNodes, true);
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    const struct node *n = node_from(hNode);
    if (n && type)
        *type = n->work.kind->type;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

/* ---- edges ------------------------------------------------------------------------------------------------------ */

static bool ends_ok(const struct graph *g, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct node *a = node_from(from[i]), *b = node_from(to[i]);
        if (!a || !b || a->graph != g || b->graph != g)
            return false;
    }
    return true;
}

/* All or nothing: what was added is taken back after an error. */
static CUresult connect_all(const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CUresult result = graph_connect((struct node *)from[i], (struct node *)to[i], data ? &data[i] : NULL);
        if (result == CUDA_SUCCESS)
            continue;
        while (i-- > 0)
            graph_disconnect((struct node *)from[i], (struct node *)to[i], data ? &data[i] : NULL);
        return result;
    }
    return CUDA_SUCCESS;
}

static CUresult disconnect_all(const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (graph_disconnect((struct node *)from[i], (struct node *)to[i], data ? &data[i] : NULL))
            continue;
        while (i-- > 0)
            graph_connect((struct node *)from[i], (struct node *)to[i], data ? &data[i] : NULL);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult change_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                             size_t count, bool remove)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (count && (!from || !to))
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    const struct graph *g = graph_from(graph);
    if (!g || !ends_ok(g, from, to, count) || (remove && graph_contains(g, GRAPH_MEMORY_NODES)))
        result = CUDA_ERROR_INVALID_VALUE;
    else
        result = (remove ? disconnect_all : connect_all)(from, to, data, count);
    graph_unlock();
    return result;
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edgeData, size_t numDependencies)
{
    return change_edges(hGraph, from, to, edgeData, numDependencies, false);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
    return change_edges(hGraph, from, to, NULL, numDependencies, false);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                      const CUgraphEdgeData *edgeData, size_t numDependencies)
{
    return change_edges(hGraph, from, to, edgeData, numDependencies, true);
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
                                   size_t numDependencies)
{
    return change_edges(hGraph, from, to, NULL, numDependencies, true);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    struct node *n = node_from(hNode);
    if (n && !n->graph->capture && !graph_contains(n->graph, GRAPH_MEMORY_NODES))
        graph_remove(n);
    else
        result = CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}
