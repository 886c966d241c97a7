/* capture.h - streams whose work becomes nodes of a graph instead of being done.
 *
 * What puts work into a stream asks capture_enter() first and, when the stream is being captured, hands the work to one
 * of the functions below. engine_submit() refuses everything else (capture_refuse()). Calls that a capture does not see
 * and that may therefore break it ask capture_unsafe(). Without a capture anywhere all of that is one load.
 */
#ifndef SOFTGPU_CAPTURE_H
#define SOFTGPU_CAPTURE_H

#include "softgpu/event.h"

struct softgpu_operator;

extern atomic_uint capture_count; /* under way */
static inline bool capture_any(void)
{
    return atomic_load_explicit(&capture_count, memory_order_relaxed) != 0;
}

/* Whether work for the stream is to be captured. `wait`: the call would return when it is done, which a capture cannot
 * do. Errors: STREAM_CAPTURE_INVALIDATED, _UNSUPPORTED, _IMPLICIT. */
CUresult capture_enter_slowly(struct stream *stream, bool wait, bool *captured);
static inline CUresult capture_enter(struct stream *stream, bool wait, bool *captured)
{
    *captured = false;
    return capture_any() ? capture_enter_slowly(stream, wait, captured) : CUDA_SUCCESS;
}
/* For work that has no node: ends captures that it would be part of. */
CUresult capture_refuse_slowly(struct stream *stream);
static inline CUresult capture_refuse(struct stream *stream)
{
    return capture_any() ? capture_refuse_slowly(stream) : CUDA_SUCCESS;
}
/* For calls besides streams: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED when a capture forbids them to this thread. */
CUresult capture_unsafe_slowly(void);
static inline CUresult capture_unsafe(void)
{
    return capture_any() ? capture_unsafe_slowly() : CUDA_SUCCESS;
}

/* Adds a node behind what the stream has captured. Parameters may be written to, as by cuGraphAddNode(). */
CUresult capture_add(struct stream *stream, CUgraphNodeParams *params, const CUlaunchAttribute *attributes,
                     unsigned attribute_count);
CUresult capture_operator(struct stream *stream, struct softgpu_operator *routine);
CUresult capture_graph(struct stream *stream, CUgraphExec exec); /* a launch of it, as a child graph */
/* Events: a record takes the place that the stream has reached, a wait joins or forks. */
CUresult capture_record(struct stream *stream, struct event *event, bool external);
void capture_forget(struct event *event); /* it was recorded anew, or is destroyed */
/* A wait, when the stream or the event belongs to a capture; else *captured is false. */
CUresult capture_wait(struct stream *stream, struct event *event, bool external, bool *captured);
/* CUDA_ERROR_CAPTURED_EVENT when the event was last recorded in a captured stream; ends a capture that still runs. */
CUresult capture_event(struct event *event);
/* A query or synchronisation of a stream, or of all of a context. */
CUresult capture_query(struct stream *stream);
CUresult capture_query_context(struct context *context);

/* The functions behind cuStreamBeginCapture() and its kin; with graph_lock(). */
struct graph;
struct node;
CUresult capture_begin(struct stream *stream, struct graph *graph, struct node *const *dependencies,
                       const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode);
/* `out` may be NULL where the graph is the program's. */
CUresult capture_end(struct stream *stream, struct graph **out);
struct capture_info {
    CUstreamCaptureStatus status;
    uint64_t id;
    struct graph *graph;
    struct node **nodes; /* until the stream's next call */
    CUgraphEdgeData *data;
    size_t count;
};
CUresult capture_info(struct stream *stream, struct capture_info *info);
CUresult capture_update(struct stream *stream, struct node *const *nodes, const CUgraphEdgeData *data, size_t count,
                        bool replace);
CUstreamCaptureMode capture_exchange_mode(CUstreamCaptureMode mode);

void capture_stream_gone(struct stream *stream);
void capture_context_gone(struct context *context);

#endif
