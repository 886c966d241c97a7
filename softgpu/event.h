/* event.h - events: each names the operation that its last record put into a stream, or a place in a capture. */
#ifndef SOFTGPU_EVENT_H
#define SOFTGPU_EVENT_H

#include "softgpu/context.h"

struct capture_point;
struct ipc_event;
struct event {
    struct context *context;
    unsigned flags;
    struct op *record;     /* under the engine's lock: reference to the marker, NULL when never recorded */
    struct ipc_event *ipc; /* of an event that other processes see, or NULL */
    int fd;                /* of its page; -1 when it was opened here */
    /* Changed under graph_lock(): not NULL when it was last recorded in a stream that was being captured. */
    _Atomic(struct capture_point *) capture;
};

/* A live event of a live context. */
CUresult event_from(CUevent handle, struct event **out);
struct op *event_newest(struct event *event); /* reference; NULL: never recorded */
/* The operation of a record; it may have something to do when it is reached. NULL: out of memory. */
struct op *event_make_record(struct event *event);
/* Makes the marker (a reference is taken) its newest record. */
void event_set_record(struct event *event, struct op *marker);

#endif
