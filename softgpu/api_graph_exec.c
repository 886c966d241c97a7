/* Executable graphs. */
#include "softgpu/capture.h"
#include "softgpu/graph.h"

/* ---- instantiation ---------------------------------------------------------------------------------------------- */

static CUresult instantiate(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    struct exec *exec = NULL;
    struct node *culprit = NULL;
    params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    params->hErrNode_out = NULL;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    graph_lock();
    struct graph *g = graph_from(graph);
    result = g ? exec_new(g, params->flags, &exec, &params->result_out, &culprit) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    if (result == CUDA_SUCCESS)
        *out = (CUgraphExec)exec;
    else if (params->result_out != CUDA_GRAPH_INSTANTIATE_ERROR)
        params->hErrNode_out = (CUgraphNode)culprit;
    return result;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags};
    return flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD ? CUDA_ERROR_INVALID_VALUE
                                                      : instantiate(phGraphExec, hGraph, &params);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    if (!instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = instantiate(phGraphExec, hGraph, instantiateParams);
    if (result == CUDA_SUCCESS && instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
        result = cuGraphUpload(*phGraphExec, instantiateParams->hUploadStream);
        if (result != CUDA_SUCCESS) {
            instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
            cuGraphExecDestroy(*phGraphExec);
            *phGraphExec = NULL;
        }
    }
    return result;
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
    if (!instantiateParams)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream given = instantiateParams->hUploadStream;
    instantiateParams->hUploadStream = per_thread(given);
    CUresult result = cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams);
    instantiateParams->hUploadStream = given;
    return result;
}

/* The forms of before 12.0: what went wrong is a node and a text. */
CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                               size_t bufferSize)
{
    CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
    CUresult result = instantiate(phGraphExec, hGraph, &params);
    if (phErrorNode)
        *phErrorNode = params.hErrNode_out;
    if (logBuffer && bufferSize)
        logBuffer[0] = '\0';
    return result;
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
                            size_t bufferSize)
{
    return cuGraphInstantiate_v2(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    struct exec *e = exec_from(hGraphExec);
    if (e)
        exec_free(e);
    graph_unlock();
    return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    const struct exec *e = exec_from(hGraphExec);
    if (e && flags)
        *flags = exec_flags(e);
    else
        result = CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

static CUresult submit(CUgraphExec graph, CUstream stream, CUresult (*action)(struct exec *, struct stream *))
{
    struct context *c;
    struct stream *s;
    bool captured;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, stream, &s);
    if (result == CUDA_SUCCESS)
        result = capture_enter(s, false, &captured);
    if (result != CUDA_SUCCESS)
        return result;
    if (captured)
        return action == exec_launch ? capture_graph(s, graph) : capture_refuse(s);
    graph_lock();
    struct exec *e = exec_from(graph);
    result = e ? action(e, s) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
    return submit(hGraph, hStream, exec_launch);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec hGraph, CUstream hStream)
{
    return cuGraphLaunch(hGraph, per_thread(hStream));
}

CUresult cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
    return submit(hGraph, hStream, exec_upload);
}

CUresult cuGraphUpload_ptsz(CUgraphExec hGraph, CUstream hStream)
{
    return cuGraphUpload(hGraph, per_thread(hStream));
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!resultInfo)
        return CUDA_ERROR_INVALID_VALUE;
    *resultInfo = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    graph_lock();
    struct exec *e = exec_from(hGraphExec);
    struct graph *g = graph_from(hGraph);
    result = e && g ? exec_update(e, g, resultInfo) : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
                           CUgraphExecUpdateResult *updateResult_out)
{
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    if (!updateResult_out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
    *updateResult_out = info.result;
    if (hErrorNode_out)
        *hErrorNode_out = info.errorNode;
    return result;
}

static CUresult enabled(CUgraphExec graph, CUgraphNode node, const unsigned *in, unsigned *out)
{
    const unsigned kinds =
        1u << CU_GRAPH_NODE_TYPE_KERNEL | 1u << CU_GRAPH_NODE_TYPE_MEMSET | 1u << CU_GRAPH_NODE_TYPE_MEMCPY;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    const struct exec *e = exec_from(graph);
    const struct node *original = node_from(node);
    struct node *n = e && original ? exec_node(e, original) : NULL;
    if (!n || !(kinds >> n->work.kind->type & 1))
        result = CUDA_ERROR_INVALID_VALUE;
    else if (in)
        n->work.disabled = !*in;
    else
        *out = !n->work.disabled;
    graph_unlock();
    return result;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
    return enabled(hGraphExec, hNode, &isEnabled, NULL);
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
    return isEnabled ? enabled(hGraphExec, hNode, NULL, isEnabled) : CUDA_ERROR_INVALID_VALUE;
}
