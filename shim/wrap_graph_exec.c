/* wrap_graph_exec.c - executable graphs: made, changed, destroyed. What is said about them is read after a real call
 * that succeeded: what the driver refuses may be garbage. */
#include "shim/call.h"
#include "shim/graph.h"

/* ---- made ---- */

#define INSTANTIATE(symbol, function, parameters, ...)                                                                 \
    WRAP_AFTER_SUCCESS(symbol, function, graph_made(&call, *phGraphExec, hGraph), parameters, __VA_ARGS__)

INSTANTIATE(cuGraphInstantiate, cuGraphInstantiate,
            (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize),
            phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize)
INSTANTIATE(cuGraphInstantiate_v2, cuGraphInstantiate_v2,
            (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize),
            phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize)
INSTANTIATE(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,
            (CUgraphExec * phGraphExec, CUgraph hGraph, unsigned long long flags), phGraphExec, hGraph, flags)
INSTANTIATE(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams,
            (CUgraphExec * phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams), phGraphExec,
            hGraph, instantiateParams)
INSTANTIATE(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams,
            (CUgraphExec * phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams), phGraphExec,
            hGraph, instantiateParams)

/* ---- nodes with bodies ---- */

static void added(CUgraph graph, const CUgraphNode *node, const CUgraphNodeParams *params)
{
    if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        graph_conditional_added(graph, *node, params->conditional.phGraph_out, params->conditional.size);
}

#define ADD(symbol, parameters, ...)                                                                                   \
    WRAP_AFTER_SUCCESS(symbol, symbol, added(hGraph, phGraphNode, nodeParams), parameters, __VA_ARGS__)

ADD(cuGraphAddNode,
    (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
     CUgraphNodeParams *nodeParams),
    phGraphNode, hGraph, dependencies, numDependencies, nodeParams)
ADD(cuGraphAddNode_v2,
    (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
     size_t numDependencies, CUgraphNodeParams *nodeParams),
    phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams)

/* Their handles, and those of the bodies, may come again for something else: forgotten before. What the driver refuses
 * to destroy has bodies that nobody knows from then on, and is not followed. */
#define DESTROY(symbol, graph, node, parameters, ...)                                                                  \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        struct call call;                                                                                              \
        if (!call_enter(&call, HOOK_##symbol))                                                                         \
            return PASS(symbol, HOOK_##symbol)(__VA_ARGS__);                                                           \
        graph_conditionals_gone(graph, node);                                                                          \
        call_begin(&call);                                                                                             \
        CUresult result = REAL(symbol, HOOK_##symbol)(__VA_ARGS__);                                                    \
        call_end(&call);                                                                                               \
        return call_leave(&call, result);                                                                              \
    }

DESTROY(cuGraphDestroy, hGraph, NULL, (CUgraph hGraph), hGraph)
DESTROY(cuGraphDestroyNode, NULL, hNode, (CUgraphNode hNode), hNode)

/* ---- changed as a whole ---- */

#define UPDATE(symbol, parameters, ...)                                                                                \
    WRAP_AFTER_SUCCESS(symbol, symbol, graph_updated(&call, hGraphExec, hGraph), parameters, __VA_ARGS__)

UPDATE(cuGraphExecUpdate,
       (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out, CUgraphExecUpdateResult *updateResult_out),
       hGraphExec, hGraph, hErrorNode_out, updateResult_out)
UPDATE(cuGraphExecUpdate_v2, (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo),
       hGraphExec, hGraph, resultInfo)

/* ---- changed node by node ---- */

static void change_kernel(struct graph_node *node, const void *params)
{
    graph_node_kernel(node, params);
}

static void change_kernel_v1(struct graph_node *node, const void *params)
{
    const CUDA_KERNEL_NODE_PARAMS_v1 *p = params;
    const CUDA_KERNEL_NODE_PARAMS newer = {.func = p->func,
                                           .gridDimX = p->gridDimX,
                                           .gridDimY = p->gridDimY,
                                           .gridDimZ = p->gridDimZ,
                                           .blockDimX = p->blockDimX,
                                           .blockDimY = p->blockDimY,
                                           .blockDimZ = p->blockDimZ,
                                           .sharedMemBytes = p->sharedMemBytes,
                                           .kernelParams = p->kernelParams,
                                           .extra = p->extra};
    graph_node_kernel(node, &newer);
}

static void change_copy(struct graph_node *node, const void *params)
{
    graph_node_copy(node, params);
}

static void change_set(struct graph_node *node, const void *params)
{
    graph_node_set(node, params);
}

static void change_any(struct graph_node *node, const void *params)
{
    const CUgraphNodeParams *p = params;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS set;
    _Static_assert(sizeof kernel <= sizeof p->kernel && sizeof set <= sizeof p->memset, "the newer forms begin alike");
    switch ((int)p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        __builtin_memcpy(&kernel, &p->kernel, sizeof kernel);
        graph_node_kernel(node, &kernel);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        graph_node_copy(node, &p->memcpy.copyParams);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        __builtin_memcpy(&set, &p->memset, sizeof set);
        graph_node_set(node, &set);
        break;
    default: /* functions of the host, events, semaphores: nothing of theirs is kept */
        break;
    }
}

static void change_enabled(struct graph_node *node, const void *params)
{
    const unsigned *enabled = params;
    node->flags = *enabled ? node->flags & ~(uint32_t)CAP_NODE_DISABLED : node->flags | CAP_NODE_DISABLED;
}

#define CHANGE(symbol, change, node, params, parameters, ...)                                                          \
    WRAP_AFTER_SUCCESS(symbol, symbol, graph_node_changed(hGraphExec, node, change, params), parameters, __VA_ARGS__)

CHANGE(cuGraphExecKernelNodeSetParams, change_kernel_v1, hNode, nodeParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams), hGraphExec, hNode,
       nodeParams)
CHANGE(cuGraphExecKernelNodeSetParams_v2, change_kernel, hNode, nodeParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams), hGraphExec, hNode,
       nodeParams)
CHANGE(cuGraphExecMemcpyNodeSetParams, change_copy, hNode, copyParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams, CUcontext ctx), hGraphExec, hNode,
       copyParams, ctx)
CHANGE(cuGraphExecMemsetNodeSetParams, change_set, hNode, memsetParams,
       (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx),
       hGraphExec, hNode, memsetParams, ctx)
CHANGE(cuGraphNodeSetEnabled, change_enabled, hNode, &isEnabled,
       (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled), hGraphExec, hNode, isEnabled)

WRAP_AFTER_SUCCESS(cuGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams,
                   graph_child_changed(hGraphExec, hNode, childGraph),
                   (CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph), hGraphExec, hNode, childGraph)

static void changed(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams *params)
{
    if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
        graph_child_changed(exec, node, params->graph.graph);
    else
        graph_node_changed(exec, node, change_any, params);
}

WRAP_AFTER_SUCCESS(cuGraphExecNodeSetParams, cuGraphExecNodeSetParams, changed(hGraphExec, hNode, nodeParams),
                   (CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams), hGraphExec, hNode,
                   nodeParams)

/* ---- destroyed ---- */

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuGraphExecDestroy))
        return PASS(cuGraphExecDestroy, HOOK_cuGraphExecDestroy)(hGraphExec);
    /* As soon as it is, another thread may get the same handle. When the driver refuses, launches of what is left are
     * those of a graph that is not known. */
    graph_gone(&call, hGraphExec);
    call_begin(&call);
    CUresult result = REAL(cuGraphExecDestroy, HOOK_cuGraphExecDestroy)(hGraphExec);
    call_end(&call);
    return call_leave(&call, result);
}
