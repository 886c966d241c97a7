/* Nodes by kind: each function packs its parameters as CUgraphNodeParams and goes through the same four. */
#include <string.h>

#include "softgpu/graph.h"

static bool nodes_ok(const struct graph *g, const CUgraphNode *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct node *n = nodes ? node_from(nodes[i]) : NULL;
        if (!n || n->graph != g)
            return false;
    }
    return true;
}

static CUresult add_locked(struct node **out, struct graph *g, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params)
{
    struct work work = {0};
    if (!g || !nodes_ok(g, dependencies, count))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = work_set(&work, params, g);
    if (result == CUDA_SUCCESS)
        result = graph_add(g, &work, (struct node *const *)dependencies, data, count, out);
    if (result != CUDA_SUCCESS)
        work_clear(&work);
    return result;
}

static CUresult add(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                    size_t count, CUgraphNodeParams *params)
{
    struct node *n = NULL;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    result = add_locked(&n, graph_from(graph), dependencies, data, count, params);
    graph_unlock();
    if (result == CUDA_SUCCESS)
        *out = (CUgraphNode)n;
    return result;
}

static CUresult get(CUgraphNode node, CUgraphNodeType type, CUgraphNodeParams *out)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    const struct node *n = node_from(node);
    if (!n || n->work.kind->type != type)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (work_is_operator(&n->work))
        result = log_unsupported_part("cuGraphKernelNodeGetParams", "of a library's routine");
    else
        *out = n->work.params;
    graph_unlock();
    return result;
}

static CUresult set(CUgraphNode node, CUgraphNodeParams *params)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    struct node *n = node_from(node);
    result = n ? work_set(&n->work, params, n->graph) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

static CUresult set_in_exec(CUgraphExec graph, CUgraphNode node, CUgraphNodeParams *params)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    struct exec *e = exec_from(graph);
    struct node *n = node_from(node);
    if (!e || !n)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (params->type == CU_GRAPH_NODE_TYPE_GRAPH && graph_from(params->graph.graph))
        result = exec_set_child(e, n, graph_from(params->graph.graph));
    else
        result = exec_set(e, n, params);
    graph_unlock();
    return result;
}

/* ---- any kind --------------------------------------------------------------------------------------------------- */

static bool reserved_ok(const CUgraphNodeParams *p)
{
    return p && !p->reserved0[0] && !p->reserved0[1] && !p->reserved0[2] && !p->reserved2;
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                           const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    return reserved_ok(nodeParams) ? add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams)
                                   : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                        size_t numDependencies, CUgraphNodeParams *nodeParams)
{
    return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return reserved_ok(nodeParams) ? set(hNode, nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
    return reserved_ok(nodeParams) ? set_in_exec(hGraphExec, hNode, nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

/* The four functions of a kind whose parameters have a type of their own: `pack` makes them those of any node, `unpack`
 * the other way. */
#define NODE(kind, version, type, node_type, pack, unpack)                                                             \
    CUresult cuGraphAdd##kind##Node##version(CUgraphNode *phGraphNode, CUgraph hGraph,                                 \
                                             const CUgraphNode *dependencies, size_t numDependencies,                  \
                                             const type *nodeParams)                                                   \
    {                                                                                                                  \
        if (!nodeParams)                                                                                               \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        CUgraphNodeParams params = pack(nodeParams);                                                                   \
        return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);                                 \
    }                                                                                                                  \
    CUresult cuGraph##kind##NodeGetParams##version(CUgraphNode hNode, type *nodeParams)                                \
    {                                                                                                                  \
        CUgraphNodeParams params = {0};                                                                                \
        CUresult result = nodeParams ? get(hNode, node_type, &params) : CUDA_ERROR_INVALID_VALUE;                      \
        if (result == CUDA_SUCCESS)                                                                                    \
            unpack(nodeParams, &params);                                                                               \
        return result;                                                                                                 \
    }                                                                                                                  \
    CUresult cuGraph##kind##NodeSetParams##version(CUgraphNode hNode, const type *nodeParams)                          \
    {                                                                                                                  \
        if (!nodeParams)                                                                                               \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        CUgraphNodeParams params = pack(nodeParams);                                                                   \
        return set(hNode, &params);                                                                                    \
    }                                                                                                                  \
    CUresult cuGraphExec##kind##NodeSetParams##version(CUgraphExec hGraphExec, CUgraphNode hNode,                      \
                                                       const type *nodeParams)                                         \
    {                                                                                                                  \
        if (!nodeParams)                                                                                               \
            return CUDA_ERROR_INVALID_VALUE;                                                                           \
        CUgraphNodeParams params = pack(nodeParams);                                                                   \
        return set_in_exec(hGraphExec, hNode, &params);                                                                \
    }

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

/* The first version is the beginning of the later ones. */
static CUgraphNodeParams kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&params.kernel, p, sizeof *p);
    return params;
}

static CUgraphNodeParams kernel_v2(const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
    _Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS_v2) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3),
                   "the same under two names");
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
    memcpy(&params.kernel, p, sizeof *p);
    return params;
}

static void kernel_v1_out(CUDA_KERNEL_NODE_PARAMS_v1 *out, const CUgraphNodeParams *params)
{
    memcpy(out, &params->kernel, sizeof *out);
}

static void kernel_v2_out(CUDA_KERNEL_NODE_PARAMS_v2 *out, const CUgraphNodeParams *params)
{
    memcpy(out, &params->kernel, sizeof *out);
}

NODE(Kernel, , CUDA_KERNEL_NODE_PARAMS_v1, CU_GRAPH_NODE_TYPE_KERNEL, kernel_v1, kernel_v1_out)
NODE(Kernel, _v2, CUDA_KERNEL_NODE_PARAMS_v2, CU_GRAPH_NODE_TYPE_KERNEL, kernel_v2, kernel_v2_out)

static CUresult attribute(CUgraphNode node, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *out,
                          const CUkernelNodeAttrValue *in)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    struct node *n = node_from(node);
    if (!n)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        result = in ? work_kernel_attribute(&n->work, attr, in) : work_kernel_attribute_get(&n->work, attr, out);
    graph_unlock();
    return result;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out)
{
    return value_out ? attribute(hNode, attr, value_out, NULL) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
    return value ? attribute(hNode, attr, NULL, value) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    struct node *to = node_from(dst);
    const struct node *from = node_from(src);
    result = to && from ? work_kernel_attributes_copy(&to->work, &from->work) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

/* ---- copies and fills ------------------------------------------------------------------------------------------- */

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = ctx}};
    if (!copyParams)
        return CUDA_ERROR_INVALID_VALUE;
    params.memcpy.copyParams = *copyParams;
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
    CUgraphNodeParams params = {0};
    CUresult result = nodeParams ? get(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, &params) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *nodeParams = params.memcpy.copyParams;
    return result;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
    CUgraphNodeParams params = {0};
    CUresult result = nodeParams ? get(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, &params) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    params.memcpy.copyParams = *nodeParams; /* the context stays */
    return set(hNode, &params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams,
                                        CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = ctx}};
    if (!copyParams)
        return CUDA_ERROR_INVALID_VALUE;
    params.memcpy.copyParams = *copyParams;
    return set_in_exec(hGraphExec, hNode, &params);
}

/* The parameters of the old form, and the context of the new one. */
static CUgraphNodeParams memset_params(const CUDA_MEMSET_NODE_PARAMS_v1 *p, CUcontext ctx)
{
    return (CUgraphNodeParams){
        .type = CU_GRAPH_NODE_TYPE_MEMSET,
        .memset = {p->dst, p->pitch, p->value, p->elementSize, p->width, p->height, ctx},
    };
}

CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                              size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    CUgraphNodeParams params;
    if (!memsetParams)
        return CUDA_ERROR_INVALID_VALUE;
    params = memset_params(memsetParams, ctx);
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params = {0};
    CUresult result = nodeParams ? get(hNode, CU_GRAPH_NODE_TYPE_MEMSET, &params) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memcpy(nodeParams, &params.memset, sizeof *nodeParams);
    return result;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
    CUgraphNodeParams params = {0};
    CUresult result = nodeParams ? get(hNode, CU_GRAPH_NODE_TYPE_MEMSET, &params) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    params = memset_params(nodeParams, params.memset.ctx);
    return set(hNode, &params);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
    CUgraphNodeParams params;
    if (!memsetParams)
        return CUDA_ERROR_INVALID_VALUE;
    params = memset_params(memsetParams, ctx);
    return set_in_exec(hGraphExec, hNode, &params);
}

/* ---- functions of the host, nothing ----------------------------------------------------------------------------- */

static CUgraphNodeParams host_params(const CUDA_HOST_NODE_PARAMS *p)
{
    return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = {p->fn, p->userData}};
}

static void host_out(CUDA_HOST_NODE_PARAMS *out, const CUgraphNodeParams *params)
{
    *out = (CUDA_HOST_NODE_PARAMS){params->host.fn, params->host.userData};
}

NODE(Host, , CUDA_HOST_NODE_PARAMS, CU_GRAPH_NODE_TYPE_HOST, host_params, host_out)

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                             size_t numDependencies)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

/* ---- child graphs ----------------------------------------------------------------------------------------------- */

CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                  size_t numDependencies, CUgraph childGraph)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = childGraph}};
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
    CUgraphNodeParams params = {0};
    CUresult result = phGraph ? get(hNode, CU_GRAPH_NODE_TYPE_GRAPH, &params) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *phGraph = params.graph.graph;
    return result;
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = childGraph}};
    return set_in_exec(hGraphExec, hNode, &params);
}

/* ---- records of events, waits for them ------------------------------------------------------------------------------
 */

#define EVENT_NODE(kind, node_type, member)                                                                            \
    static CUgraphNodeParams member##_params(CUevent event)                                                            \
    {                                                                                                                  \
        return (CUgraphNodeParams){.type = node_type, .member = {event}};                                              \
    }                                                                                                                  \
    CUresult cuGraphAdd##kind##Node(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,         \
                                    size_t numDependencies, CUevent event)                                             \
    {                                                                                                                  \
        CUgraphNodeParams params = member##_params(event);                                                             \
        return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);                                 \
    }                                                                                                                  \
    CUresult cuGraph##kind##NodeGetEvent(CUgraphNode hNode, CUevent *event_out)                                        \
    {                                                                                                                  \
        CUgraphNodeParams params = {0};                                                                                \
        CUresult result = event_out ? get(hNode, node_type, &params) : CUDA_ERROR_INVALID_VALUE;                       \
        if (result == CUDA_SUCCESS)                                                                                    \
            *event_out = params.member.event;                                                                          \
        return result;                                                                                                 \
    }                                                                                                                  \
    CUresult cuGraph##kind##NodeSetEvent(CUgraphNode hNode, CUevent event)                                             \
    {                                                                                                                  \
        CUgraphNodeParams params = member##_params(event);                                                             \
        return set(hNode, &params);                                                                                    \
    }                                                                                                                  \
    CUresult cuGraphExec##kind##NodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)                 \
    {                                                                                                                  \
        CUgraphNodeParams params = member##_params(event);                                                             \
        return set_in_exec(hGraphExec, hNode, &params);                                                                \
    }

EVENT_NODE(EventRecord, CU_GRAPH_NODE_TYPE_EVENT_RECORD, eventRecord)
EVENT_NODE(EventWait, CU_GRAPH_NODE_TYPE_WAIT_EVENT, eventWait)
#undef EVENT_NODE

/* ---- memory ----------------------------------------------------------------------------------------------------- */

CUresult cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                                size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
    _Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2),
                   "the same under two names");
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    if (!nodeParams)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&params.alloc, nodeParams, sizeof *nodeParams);
    CUresult result = add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
    if (result == CUDA_SUCCESS)
        nodeParams->dptr = params.alloc.dptr;
    return result;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
    CUgraphNodeParams params = {0};
    CUresult result = params_out ? get(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &params) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        memcpy(params_out, &params.alloc, sizeof *params_out);
    return result;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
                               size_t numDependencies, CUdeviceptr dptr)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {dptr}};
    return add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &params);
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
    CUgraphNodeParams params = {0};
    CUresult result = dptr_out ? get(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, &params) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *dptr_out = params.free.dptr;
    return result;
}

/* ---- stream memory operations ----------------------------------------------------------------------------------- */

static CUgraphNodeParams memop_params(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
    params.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){p->ctx, p->count, p->paramArray, p->flags};
    return params;
}

static void memop_out(CUDA_BATCH_MEM_OP_NODE_PARAMS *out, const CUgraphNodeParams *params)
{
    const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p = &params->memOp;
    *out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){p->ctx, p->count, p->paramArray, p->flags};
}

NODE(BatchMemOp, , CUDA_BATCH_MEM_OP_NODE_PARAMS, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, memop_params, memop_out)
