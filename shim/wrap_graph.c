/* wrap_graph.c - graph capture and graph launches. Nothing of ours goes into a captured stream; launches into it are
 * only recorded. */
#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/graph.h"
#include "shim/record.h"
#include "shim/track.h"

static CUresult begun(struct call *call, CUstream handle, CUresult result)
{
    call_end(call);
    if (result != CUDA_SUCCESS) {
        device_capture_refused();
    } else {
        struct tracked_stream *stream = track_stream(handle, hook_kind(call->hook) == HOOK_PER_THREAD, true);
        device_capture_began(stream);
        record_order(call, CAP_ORDER_CAPTURE_BEGIN, 0, stream ? stream->id : 0);
    }
    return call_leave(call, result);
}

/* From before the real call on, nothing is done that a capture forbids (device_uncaptured_begins()). */
static bool begin(struct call *call, enum hook hook)
{
    if (!call_enter(call, hook))
        return false;
    device_capture_begins();
    call_begin(call);
    return true;
}

static CUresult begin_v1(enum hook hook, CUstream stream)
{
    struct call call;
    if (!begin(&call, hook))
        return PASS(cuStreamBeginCapture, hook)(stream);
    return begun(&call, stream, REAL(cuStreamBeginCapture, hook)(stream));
}

CUresult cuStreamBeginCapture(CUstream hStream)
{
    return begin_v1(HOOK_cuStreamBeginCapture, hStream);
}

CUresult cuStreamBeginCapture_ptsz(CUstream hStream)
{
    return begin_v1(HOOK_cuStreamBeginCapture_ptsz, hStream);
}

static CUresult begin_v2(enum hook hook, CUstream stream, CUstreamCaptureMode mode)
{
    struct call call;
    if (!begin(&call, hook))
        return PASS(cuStreamBeginCapture_v2, hook)(stream, mode);
    return begun(&call, stream, REAL(cuStreamBeginCapture_v2, hook)(stream, mode));
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin_v2(HOOK_cuStreamBeginCapture_v2, hStream, mode);
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode)
{
    return begin_v2(HOOK_cuStreamBeginCapture_v2_ptsz, hStream, mode);
}

static CUresult begin_to_graph(enum hook hook, CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
                               const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode)
{
    struct call call;
    if (!begin(&call, hook))
        return PASS(cuStreamBeginCaptureToGraph, hook)(stream, graph, dependencies, data, count, mode);
    return begun(&call, stream,
                 REAL(cuStreamBeginCaptureToGraph, hook)(stream, graph, dependencies, data, count, mode));
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                     const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode)
{
    return begin_to_graph(HOOK_cuStreamBeginCaptureToGraph, hStream, hGraph, dependencies, dependencyData,
                          numDependencies, mode);
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData, size_t numDependencies,
                                          CUstreamCaptureMode mode)
{
    return begin_to_graph(HOOK_cuStreamBeginCaptureToGraph_ptsz, hStream, hGraph, dependencies, dependencyData,
                          numDependencies, mode);
}

/* A capture that was invalidated ends here as well, with an error of its own; after other errors (the wrong thread, the
 * wrong stream, no place for the graph) it may go on, as the driver knows. */
static bool has_ended(CUresult result, const struct tracked_stream *stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
        result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
        return true;
    return stream && driver.cuStreamIsCapturing &&
           driver.cuStreamIsCapturing(stream->handle, &status) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_NONE;
}

static CUresult end_capture(enum hook hook, CUstream handle, CUgraph *graph)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuStreamEndCapture, hook)(handle, graph);
    call_begin(&call);
    CUresult result = REAL(cuStreamEndCapture, hook)(handle, graph);
    call_end(&call);
    struct tracked_stream *stream = track_stream(handle, hook_kind(hook) == HOOK_PER_THREAD, result == CUDA_SUCCESS);
    if (has_ended(result, stream) && device_capture_ended(stream))
        record_order(&call, CAP_ORDER_CAPTURE_END, 0, stream ? stream->id : 0);
    return call_leave(&call, result);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
    return end_capture(HOOK_cuStreamEndCapture, hStream, phGraph);
}

CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph *phGraph)
{
    return end_capture(HOOK_cuStreamEndCapture_ptsz, hStream, phGraph);
}

static CUresult launch_graph(enum hook hook, CUgraphExec graph, CUstream handle)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuGraphLaunch, hook)(graph, handle);
    return call_leave(&call, graph_launch(&call, hook, graph, handle));
}

CUresult cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
    return launch_graph(HOOK_cuGraphLaunch, hGraph, hStream);
}

CUresult cuGraphLaunch_ptsz(CUgraphExec hGraph, CUstream hStream)
{
    return launch_graph(HOOK_cuGraphLaunch_ptsz, hGraph, hStream);
}
