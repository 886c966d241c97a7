/* Graphs, their nodes and executable graphs: callbacks when they come and go, and their ids. */
#include <string.h>

#include "softgpu/cupti/tracer.h"

enum effect {
    NONE,
    GRAPH_NEW,   /* first parameter: where the handle is */
    GRAPH_CLONE, /* likewise, then the original */
    GRAPH_END,   /* first parameter: the handle */
    EXEC_NEW,    /* where the handle is, then the graph */
    EXEC_END,
    NODE_NEW, /* where the handle is, then the graph */
    NODE_END,
};

static const uint8_t effects[CUPTI_DRIVER_TRACE_CBID_SIZE] = {
#define ROW(function, effect) [CUPTI_DRIVER_TRACE_CBID_##function] = effect
    ROW(cuGraphCreate, GRAPH_NEW),
    ROW(cuGraphClone, GRAPH_CLONE),
    ROW(cuGraphDestroy, GRAPH_END),
    ROW(cuGraphInstantiate_v2, EXEC_NEW),
    ROW(cuGraphInstantiateWithFlags, EXEC_NEW),
    ROW(cuGraphInstantiateWithParams, EXEC_NEW),
    ROW(cuGraphInstantiateWithParams_ptsz, EXEC_NEW),
    ROW(cuGraphExecDestroy, EXEC_END),
    ROW(cuGraphAddNode, NODE_NEW),
    ROW(cuGraphAddNode_v2, NODE_NEW),
    ROW(cuGraphAddKernelNode, NODE_NEW),
    ROW(cuGraphAddKernelNode_v2, NODE_NEW),
    ROW(cuGraphAddMemcpyNode, NODE_NEW),
    ROW(cuGraphAddMemsetNode, NODE_NEW),
    ROW(cuGraphAddHostNode, NODE_NEW),
    ROW(cuGraphAddChildGraphNode, NODE_NEW),
    ROW(cuGraphAddEmptyNode, NODE_NEW),
    ROW(cuGraphAddEventRecordNode, NODE_NEW),
    ROW(cuGraphAddEventWaitNode, NODE_NEW),
    ROW(cuGraphAddMemAllocNode, NODE_NEW),
    ROW(cuGraphAddMemFreeNode, NODE_NEW),
    ROW(cuGraphDestroyNode, NODE_END),
#undef ROW
};

static void *word(const struct trace_call *call, size_t index)
{
    void *value;
    memcpy(&value, (const char *)call->params + index * sizeof value, sizeof value);
    return value;
}

/* What the first parameter points to. */
static void *made(const struct trace_call *call)
{
    void *value = NULL;
    const void *where = word(call, 0);
    if (where)
        memcpy(&value, where, sizeof value);
    return value;
}

static void issue(CUpti_CallbackIdResource what, CUpti_GraphData *graph)
{
    struct trace_context context;
    attach_driver()->context(NULL, &context);
    CUpti_ResourceData data = {.context = context.handle, .resourceDescriptor = graph};
    callback_issue(CUPTI_CB_DOMAIN_RESOURCE, what, &data);
}

static CUgraphNodeType type_of(CUgraphNode node)
{
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUresult (*get)(CUgraphNode, CUgraphNodeType *) = NULL;
    *(void **)&get = attach_function("cuGraphNodeGetType");
    self.busy++;
    if (get)
        get(node, &type);
    self.busy--;
    return type;
}

void graph_before(const struct trace_call *call, const struct call_state *state)
{
    CUpti_GraphData data = {0};
    switch (effects[state->id]) {
    case GRAPH_END:
        data.graph = word(call, 0);
        issue(CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING, &data);
        break;
    case EXEC_NEW:
        data.graph = word(call, 1);
        issue(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATE_STARTING, &data);
        break;
    case EXEC_END:
        data.graphExec = word(call, 0);
        issue(CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING, &data);
        break;
    case NODE_NEW:
        data.graph = word(call, 1);
        issue(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATE_STARTING, &data);
        break;
    case NODE_END:
        data.node = word(call, 0);
        data.nodeType = type_of(data.node);
        issue(CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING, &data);
        break;
    default:
        break;
    }
}

/* After a call that succeeded. */
void graph_after(const struct trace_call *call, const struct call_state *state)
{
    CUpti_GraphData data = {0};
    switch (effects[state->id]) {
    case GRAPH_NEW:
        data.graph = made(call);
        issue(CUPTI_CBID_RESOURCE_GRAPH_CREATED, &data);
        break;
    case GRAPH_CLONE:
        data.graph = made(call);
        data.originalGraph = word(call, 1);
        issue(CUPTI_CBID_RESOURCE_GRAPH_CLONED, &data);
        break;
    case EXEC_NEW:
        data.graphExec = made(call);
        data.graph = word(call, 1);
        issue(CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, &data);
        break;
    case NODE_NEW:
        data.node = made(call);
        data.graph = word(call, 1);
        data.nodeType = type_of(data.node);
        issue(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &data);
        break;
    default:
        break;
    }
}

/* ---- ids -------------------------------------------------------------------------------------------------------- */

static CUptiResult id_of(enum trace_graph kind, const void *handle, uint64_t *id)
{
    if (!handle)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    if (!attach_driver())
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    *id = attach_driver()->graph_id(kind, handle);
    return *id ? CUPTI_SUCCESS : failed(CUPTI_ERROR_INVALID_PARAMETER);
}

static CUptiResult short_id_of(enum trace_graph kind, const void *handle, uint32_t *out)
{
    uint64_t id;
    if (!out)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    CUptiResult result = id_of(kind, handle, &id);
    if (result == CUPTI_SUCCESS)
        *out = (uint32_t)id;
    return result;
}

CUptiResult cuptiGetGraphNodeId(CUgraphNode node, uint64_t *nodeId)
{
    return nodeId ? id_of(TRACE_GRAPH_NODE, node, nodeId) : failed(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *pId)
{
    return short_id_of(TRACE_GRAPH_ITSELF, graph, pId);
}

CUptiResult cuptiGetGraphExecId(CUgraphExec graphExec, uint32_t *pId)
{
    return short_id_of(TRACE_GRAPH_EXEC, graphExec, pId);
}
