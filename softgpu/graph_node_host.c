/* Functions of the host, events, and nodes that do nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/event.h"
#include "softgpu/graph.h"
#include "softgpu/ipc.h"
#include "softgpu/launch.h"

/* ---- functions of the host -------------------------------------------------------------------------------------- */

static CUresult host_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    if (!params->host.fn)
        return CUDA_ERROR_INVALID_VALUE;
    work->params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST, .host = params->host};
    return CUDA_SUCCESS;
}

struct host_op {
    struct op op;
    CUDA_HOST_NODE_PARAMS_v2 call;
};

static void run_host(struct op *op)
{
    const CUDA_HOST_NODE_PARAMS_v2 *call = &((struct host_op *)op)->call;
    engine_callback(true);
    call->fn(call->userData);
    engine_callback(false);
}

static CUresult host_step(const struct work *work, struct steps *steps)
{
    struct host_op *h = op_new(sizeof *h, run_host, NULL);
    if (!h)
        return CUDA_ERROR_OUT_OF_MEMORY;
    h->call = work->params.host;
    h->op.bound = true;
    return steps_add(steps, &h->op);
}

const struct work_kind work_host = {
    .type = CU_GRAPH_NODE_TYPE_HOST,
    .name = "HOST",
    .set = host_set,
    .make = host_step,
};

/* ---- nothing ---------------------------------------------------------------------------------------------------- */

static CUresult empty_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    work->params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
    return CUDA_SUCCESS;
}

const struct work_kind work_empty = {
    .type = CU_GRAPH_NODE_TYPE_EMPTY,
    .name = "EMPTY",
    .in_bodies = true,
    .set = empty_set,
};

/* ---- events ----------------------------------------------------------------------------------------------------- */

/* The event is recorded when the launch is made, as by a stream: who waits for it from then on waits for the node. */
struct event_op {
    struct op op;
    struct op *marker; /* reference: completed by a record node, waited for by a wait node */
};

static CUresult event_set(struct work *work, CUgraphNodeParams *params, CUevent handle)
{
    struct event *e;
    if (event_from(handle, &e) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE;
    work->params = *params;
    return CUDA_SUCCESS;
}

static CUresult record_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    return event_set(work, params, params->eventRecord.event);
}

static CUresult wait_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    return event_set(work, params, params->eventWait.event);
}

static void run_record(struct op *op)
{
    struct op *marker = ((struct event_op *)op)->marker;
    if (marker->run)
        marker->run(marker);
    engine_complete(marker);
}

static void drop_record(struct op *op)
{
    engine_complete(((struct event_op *)op)->marker); /* dropped after an error: nobody waits for ever */
    op_unref(((struct event_op *)op)->marker);
    free(op);
}

static CUresult record_step(const struct work *work, struct steps *steps)
{
    struct event *e;
    CUresult result = event_from(work->params.eventRecord.event, &e);
    if (result != CUDA_SUCCESS)
        return result;
    struct event_op *r = op_new(sizeof *r, run_record, drop_record);
    struct op *marker = r ? event_make_record(e) : NULL;
    if (!marker) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r->marker = marker;
    result = steps_add(steps, &r->op);
    if (result == CUDA_SUCCESS)
        event_set_record(e, marker);
    return result;
}

static void run_wait(struct op *op)
{
    engine_wait(((struct event_op *)op)->marker);
}

static void drop_wait(struct op *op)
{
    op_unref(((struct event_op *)op)->marker);
    free(op);
}

static CUresult wait_step(const struct work *work, struct steps *steps)
{
    struct event *e;
    CUresult result = event_from(work->params.eventWait.event, &e);
    if (result != CUDA_SUCCESS)
        return result;
    if (e->ipc) {
        struct op *wait = ipc_wait(e->context, e->ipc);
        return wait ? steps_add(steps, wait) : CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct event_op *w = op_new(sizeof *w, run_wait, drop_wait);
    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    w->op.bound = true; /* it may take long: not on a thread of the program that synchronises */
    w->marker = event_newest(e);
    return steps_add(steps, &w->op);
}

static void record_print(const struct work *work, void *file)
{
    fprintf(file, "event %p", (void *)work->params.eventRecord.event);
}

static void wait_print(const struct work *work, void *file)
{
    fprintf(file, "event %p", (void *)work->params.eventWait.event);
}

const struct work_kind work_event_record = {
    .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
    .name = "EVENT_RECORD",
    .set = record_set,
    .make = record_step,
    .print = record_print,
};
const struct work_kind work_event_wait = {
    .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
    .name = "EVENT_WAIT",
    .set = wait_set,
    .make = wait_step,
    .print = wait_print,
};
