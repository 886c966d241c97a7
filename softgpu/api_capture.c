/* Capture of streams. */
#include <stdlib.h>

#include "softgpu/capture.h"
#include "softgpu/graph.h"

static CUresult enter_stream(CUstream handle, struct stream **out)
{
    struct context *c;
    CUresult result = enter_context(&c);
    return result == CUDA_SUCCESS ? context_stream(c, handle, out) : result;
}

/* Handles of nodes of one graph (of any when it is NULL). With graph_lock(). */
static bool nodes_ok(const struct graph *graph, const CUgraphNode *nodes, size_t count)
{
    if (count && !nodes)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct node *n = node_from(nodes[i]);
        if (!n || (graph && n->graph != graph))
            return false;
    }
    return true;
}

/* ---- begin and end ---------------------------------------------------------------------------------------------- */

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result == CUDA_SUCCESS && (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    result = capture_begin(s, NULL, NULL, NULL, 0, mode);
    graph_unlock();
    return result;
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode)
{
    return cuStreamBeginCapture_v2(per_thread(hStream), mode);
}

CUresult cuStreamBeginCapture(CUstream hStream)
{
    return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCapture_ptsz(CUstream hStream)
{
    return cuStreamBeginCapture(per_thread(hStream));
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result == CUDA_SUCCESS && (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    struct graph *g = graph_from(hGraph);
    result = g && nodes_ok(g, dependencies, numDependencies)
                 ? capture_begin(s, g, (struct node *const *)dependencies, dependencyData, numDependencies, mode)
                 : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                          CUstreamCaptureMode mode)
{
    return cuStreamBeginCaptureToGraph(per_thread(hStream), hGraph, dependencies, dependencyData, numDependencies,
                                       mode);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    struct stream *s;
    struct graph *g = NULL;
    CUresult result = enter_stream(hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    result = capture_end(s, phGraph ? &g : NULL);
    graph_unlock();
    if (phGraph)
        *phGraph = (CUgraph)g;
    return result;
}

CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph)
{
    return cuStreamEndCapture(per_thread(hStream), phGraph);
}

/* ---- queries ---------------------------------------------------------------------------------------------------- */

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                   CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                   const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    struct stream *s;
    struct capture_info info;
    CUresult result = enter_stream(hStream, &s);
    if (result == CUDA_SUCCESS && (!captureStatus_out || (edgeData_out && !dependencies_out)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    result = capture_info(s, &info);
    for (size_t i = 0; result == CUDA_SUCCESS && dependencies_out && !edgeData_out && i < info.count; i++)
        if (!graph_edge_default(&info.data[i]))
            result = CUDA_ERROR_LOSSY_QUERY;
    graph_unlock();
    if (result != CUDA_SUCCESS)
        return result;
    *captureStatus_out = info.status;
    if (id_out)
        *id_out = info.id;
    if (graph_out)
        *graph_out = (CUgraph)info.graph;
    if (dependencies_out)
        *dependencies_out = (const CUgraphNode *)info.nodes;
    if (edgeData_out)
        *edgeData_out = info.data;
    if (numDependencies_out)
        *numDependencies_out = info.count;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                        CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                        const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    return cuStreamGetCaptureInfo_v3(per_thread(hStream), captureStatus_out, id_out, graph_out, dependencies_out,
                                     edgeData_out, numDependencies_out);
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                   CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                   size_t *numDependencies_out)
{
    return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL,
                                     numDependencies_out);
}

CUresult cuStreamGetCaptureInfo_v2_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
                                        CUgraph *graph_out, const CUgraphNode **dependencies_out,
                                        size_t *numDependencies_out)
{
    return cuStreamGetCaptureInfo_v2(per_thread(hStream), captureStatus_out, id_out, graph_out, dependencies_out,
                                     numDependencies_out);
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
    return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

CUresult cuStreamGetCaptureInfo_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
    return cuStreamGetCaptureInfo(per_thread(hStream), captureStatus_out, id_out);
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    return cuStreamGetCaptureInfo(hStream, captureStatus, NULL);
}

CUresult cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
    return cuStreamIsCapturing(per_thread(hStream), captureStatus);
}

/* ---- what comes next depends on --------------------------------------------------------------------------------- */

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
                                              const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                              unsigned int flags)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result == CUDA_SUCCESS && flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    graph_lock();
    result = nodes_ok(NULL, dependencies, numDependencies)
                 ? capture_update(s, (struct node *const *)dependencies, dependencyData, numDependencies,
                                  flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
                 : CUDA_ERROR_INVALID_VALUE;
    graph_unlock();
    return result;
}

CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream hStream, CUgraphNode *dependencies,
                                                   const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                                   unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(per_thread(hStream), dependencies, dependencyData, numDependencies,
                                                flags);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies,
                                           unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies, flags);
}

CUresult cuStreamUpdateCaptureDependencies_ptsz(CUstream hStream, CUgraphNode *dependencies, size_t numDependencies,
                                                unsigned int flags)
{
    return cuStreamUpdateCaptureDependencies(per_thread(hStream), dependencies, numDependencies, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = capture_exchange_mode(*mode);
    return CUDA_SUCCESS;
}
