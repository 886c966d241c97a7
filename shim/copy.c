#include "shim/copy.h"

#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/health.h"
#include "shim/sentinel.h"
#include "shim/stack.h"
#include "shim/track.h"

static bool per_thread(const struct call *call)
{
    return hook_kind(call->hook) == HOOK_PER_THREAD;
}

/* Recorded into a graph: it is not made now. The graph's launches tell of it (graph.h). */
static bool captured(const struct call *call, CUstream stream)
{
    if (!device_captures_active())
        return false;
    const struct tracked_stream *tracked = track_stream(stream, per_thread(call), false);
    return tracked && device_stream_captures(tracked);
}

struct cap_copy *copy_record(const struct call *call, const struct cap_copy *facts, CUstream stream)
{
    if (captured(call, stream))
        return NULL;
    uint32_t stack = stack_sampled(), stream_id = track_stream_known_id(stream, per_thread(call));
    struct cap_copy *record = capture_record(CAP_COPY, sizeof *record, call->seq, call->tsc);
    if (!record)
        return NULL;
    struct cap_head head = record->head;
    *record = *facts;
    record->head = head;
    record->stream = stream_id;
    record->stack = stack;
    capture_commit(record);
    return record;
}

/* The host waits for the copy, and so for all that is before it. Not when both sides are the device's: such a copy has
 * only been put into the stream when the call returns. */
static bool waits(const struct cap_copy *facts)
{
    return !facts->asynchronous && facts->kind != CAP_COPY_DTOD && facts->kind != CAP_COPY_UNIFIED;
}

void copy_before(const struct call *call, const struct cap_copy *facts, CUstream stream)
{
    struct tracked_stream *tracked = facts->asynchronous ? NULL : track_stream(stream, per_thread(call), false);
    if (tracked && waits(facts))
        health_before_sync(tracked);
    else if (tracked)
        health_look(tracked);
}

void copy_done(struct cap_copy *record, const struct call *call, CUresult result, const struct cap_copy *facts,
               CUstream stream)
{
    if (result == CUDA_SUCCESS && facts->kind != CAP_COPY_DTOH && !captured(call, stream))
        sentinel_after_write(track_stream(stream, per_thread(call), false), call->seq, !facts->asynchronous);
    if (record) {
        if (!record->stream && result == CUDA_SUCCESS)
            record->stream = track_stream_id(stream, per_thread(call));
        __atomic_store_n(&record->call_ns, call_real_ns(call), __ATOMIC_RELAXED);
        __atomic_store_n(&record->result, (int32_t)result, __ATOMIC_RELAXED);
    }
    if (!facts->asynchronous)
        health_after_sync(result);
}
