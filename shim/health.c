#include "shim/health.h"

#include "shim/capture_write.h"
#include "shim/damage.h"
#include "shim/device_work.h"
#include "shim/options.h"
#include "shim/scan.h"
#include "shim/sentinel.h"
#include "shim/shim.h"
#include "shim/snapshot.h"
#include "shim/timing.h"

enum { POLL_EVERY = 32 }; /* calls of health_poll between two looks at events */

void health_context(void)
{
    struct tracked_context *context = track_current_context();
    if (context)
        device_work_make(context);
}

/* What the wait will have completed, noted before it begins. */
static __thread struct {
    const struct tracked_context *context;
    struct tracked_stream *stream;
    uint64_t seq;
} waiting_for __attribute__((tls_model("initial-exec")));

void health_before_sync(struct tracked_stream *stream)
{
    waiting_for.context = stream ? stream->context : track_current_context();
    waiting_for.stream = stream;
    waiting_for.seq = capture_next_seq();
    if (!shim_device_usable() || (stream && device_stream_captures(stream)))
        return;
    sentinel_before_sync(stream);
}

static void note_done(void)
{
    if (!waiting_for.context)
        return;
    for (struct tracked_stream *s = track_first_stream(); s; s = s->next)
        if (waiting_for.stream ? s == waiting_for.stream
                               : s->context == waiting_for.context && s->kind != CAP_STREAM_PER_THREAD) {
            if (__atomic_load_n(&s->done_seq, __ATOMIC_RELAXED) < waiting_for.seq)
                __atomic_store_n(&s->done_seq, waiting_for.seq, __ATOMIC_RELAXED);
            __atomic_store_n(&s->timing_pair, 0, __ATOMIC_RELAXED); /* a pair does not reach over a wait */
        }
}

void health_after_sync(CUresult result)
{
    if (result == CUDA_SUCCESS)
        note_done();
    struct tracked_context *context = track_current_context();
    struct device_work *work = device_work(context);
    /* Without the kernel: the program's work is complete now, so copies tell the same. */
    if (result == CUDA_SUCCESS && work && !work->check && waiting_for.context == context && !waiting_for.stream &&
        options.check >= CHECK_SYNC)
        damage_look_by_copy(work);
    waiting_for.context = NULL;
    waiting_for.stream = NULL;
    sentinel_harvest();
    scan_harvest();
    snapshot_poll();
    timing_collect();
}

void health_after_event(CUresult result)
{
    health_after_sync(result);
    if (result == CUDA_SUCCESS && shim_device_usable())
        sentinel_before_sync(NULL); /* taken in at a later call */
}

void health_poll(void)
{
    static __thread unsigned calls __attribute__((tls_model("initial-exec")));
    if (options.check == CHECK_LAUNCH) /* the sooner, the narrower the window of a damage */
        sentinel_harvest();
    if (++calls % POLL_EVERY)
        return;
    sentinel_harvest();
    scan_harvest();
    snapshot_poll();
    timing_collect();
}

void health_before_teardown(struct tracked_context *context)
{
    if (context != track_current_context() || !shim_device_usable())
        return;
    sentinel_at_exit();
    scan_finish(500);
    snapshot_finish(2000);
    timing_collect();
}

void health_after_teardown(struct tracked_context *context)
{
    snapshot_drop_context(context);
}

void health_device_lost(void)
{
    sentinel_harvest();
    scan_harvest();
    snapshot_device_lost();
}

void health_at_exit(void)
{
    if (!shim_device_usable())
        return;
    sentinel_at_exit();
    scan_finish(500);
    snapshot_finish(2000);
    timing_collect();
}

void health_flush_host(void)
{
    sentinel_harvest();
    scan_harvest();
    snapshot_poll();
}
