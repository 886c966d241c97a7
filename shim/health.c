#include "shim/health.h"

#include <opsdebug/capture.h>

#include "shim/blob.h"
#include "shim/budget.h"
#include "shim/capture_write.h"
#include "shim/damage.h"
#include "shim/deadline.h"
#include "shim/device_work.h"
#include "shim/options.h"
#include "shim/quarantine.h"
#include "shim/scan.h"
#include "shim/sentinel.h"
#include "shim/shim.h"
#include "shim/snapshot.h"
#include "shim/thread.h"
#include "shim/timing.h"

enum {
    POLL_EVERY = 32,   /* calls of health_poll between two looks at what is complete */
    TIMES_EVERY = 128, /* and between two at our events: many times in one record take less room */
};
enum {
    SETTLE_MS = 2000, /* what a program waits for the disk when something is wrong: it may abort as soon as it knows */
    DRAIN_MS = 200,   /* and what it waits at its synchronisation otherwise, where waiting is due */
    EXIT_MS = 2000,   /* all that is waited for at exit, the device and the disk */
    STORE_MS = 500,   /* of which the disk gets at least so much */
};

void health_context(void)
{
    struct tracked_context *context = track_current_context();
    thread_slow();
    if (context)
        device_work_make(context);
}

static uint64_t exit_ns; /* atomic: until when we may wait at exit, 0: not there yet */
static bool noted;       /* atomic */

/* What the wait will have completed, noted before it begins. */
static __thread struct {
    const struct tracked_context *context;
    struct tracked_stream *stream;
    uint64_t seq;
} waiting_for __attribute__((tls_model("initial-exec")));

void health_look(struct tracked_stream *stream)
{
    thread_slow();
    if (shim_device_usable() && !(stream && device_stream_captures(stream)))
        sentinel_before_sync(stream);
}

void health_before_sync(struct tracked_stream *stream)
{
    waiting_for.context = stream ? stream->context : track_current_context();
    waiting_for.stream = stream;
    waiting_for.seq = capture_next_seq();
    health_look(stream);
}

static void note_done(void)
{
    if (!waiting_for.context)
        return;
    if (!waiting_for.stream)
        track_context_waited(waiting_for.context, waiting_for.seq);
    for (struct tracked_stream *s = track_first_stream(); s; s = s->next)
        if (waiting_for.stream ? s == waiting_for.stream
                               : s->context == waiting_for.context && s->kind != CAP_STREAM_PER_THREAD) {
            if (__atomic_load_n(&s->done_seq, __ATOMIC_RELAXED) < waiting_for.seq)
                __atomic_store_n(&s->done_seq, waiting_for.seq, __ATOMIC_RELAXED);
            __atomic_store_n(&s->timing_pair, 0, __ATOMIC_RELAXED); /* a pair does not reach over a wait */
        }
}

/* The program may end any moment from here on without our being asked (_exit, abort, a signal). What tells about a
 * fault has to be on disk by now, as do the images of the modules, which everything else needs. */
static void drain(void)
{
    BUDGET_SPAN(CAP_BUDGET_SNAPSHOTS);
    if (damage_take_fresh())
        blob_wait(deadline_in(SETTLE_MS));
    else if ((options.preset == PRESET_DEEP || damage_seen()) && !budget_lowered(CAP_BUDGET_SNAPSHOTS))
        blob_wait(deadline_in(DRAIN_MS));
    else
        blob_wait_copies(deadline_in(DRAIN_MS));
}

/* What was looked at since the record before. */
static void record_coverage(void)
{
    damage_checked_flush();
    scan_flush();
}

void health_after_sync(CUresult result)
{
    thread_slow();
    if (result == CUDA_SUCCESS)
        note_done();
    struct tracked_context *context = track_current_context();
    struct device_work *work = device_work(context);
    if (result == CUDA_SUCCESS && work && waiting_for.context == context && !waiting_for.stream)
        sentinel_after_sync(work);
    waiting_for.context = NULL;
    waiting_for.stream = NULL;
    sentinel_harvest();
    scan_harvest();
    record_coverage();
    snapshot_poll();
    timing_collect();
    drain();
    if (budget_on) /* a wait may have cost more than many calls */
        capture_flush_counters();
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
    if (options.check == CHECK_LAUNCH) { /* the sooner, the narrower the window of a damage */
        thread_slow();
        sentinel_harvest();
    }
    if (++calls % POLL_EVERY)
        return;
    thread_slow();
    sentinel_harvest();
    scan_harvest();
    snapshot_poll();
    if (calls % TIMES_EVERY == 0)
        timing_collect();
}

/* One deadline for all of the exit, however often and from where we are asked. */
static struct deadline exit_deadline(void)
{
    uint64_t none = 0, then = deadline_in(EXIT_MS).ns;
    return (struct deadline){
        __atomic_compare_exchange_n(&exit_ns, &none, then, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? then : none};
}

/* A last look, and what is still in flight. */
static void ask_device(struct deadline deadline)
{
    if (deadline_over(deadline)) {
        health_flush_host();
        return;
    }
    bool looked = sentinel_at_exit(deadline);
    if (looked)
        quarantine_look();
    scan_finish(deadline_earlier(deadline, deadline_in(500)));
    if ((!snapshot_finish(deadline) || !looked) && !__atomic_exchange_n(&noted, true, __ATOMIC_RELAXED))
        shim_note(CAP_NOTE_LOST, "the device was still busy when the process ended: what ran last was not looked at");
    timing_collect();
}

void health_before_teardown(struct tracked_context *context)
{
    bool exiting = __atomic_load_n(&exit_ns, __ATOMIC_ACQUIRE) != 0;
    if (context != track_current_context() || !shim_device_usable())
        return;
    ask_device(exiting ? exit_deadline() : deadline_in(EXIT_MS));
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
    ask_device(exit_deadline());
}

void health_at_unload(void)
{
    struct deadline deadline = exit_deadline(), least = deadline_in(STORE_MS);
    health_flush_host();
    blob_finish(deadline_earlier(deadline, least).ns == deadline.ns ? least : deadline);
}

void health_settle(void)
{
    static uint64_t until; /* for all calls that fail because of the same error */
    uint64_t none = 0, then = deadline_in(SETTLE_MS).ns;
    if (!__atomic_compare_exchange_n(&until, &none, then, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        then = none;
    health_flush_host();
    blob_wait((struct deadline){then});
}

void health_flush_host(void)
{
    sentinel_harvest();
    scan_harvest();
    record_coverage();
    snapshot_poll();
}
