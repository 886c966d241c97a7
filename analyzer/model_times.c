/* model_times.c - the three times of every launch.
 *
 * launch: in the launch call, as recorded. device: from CAP_TIMES. wait: what the program waited is shared among the
 * launches that a synchronisation waited for and that no earlier one had covered, in proportion to their device times,
 * or in equal parts when one of these is unknown. So the waits of all launches add up to what the program waited, and a
 * wait with nothing pending belongs to nobody. A synchronous copy from the device waits too, but its time is mostly the
 * copy's own: of it, at most the pending launches' device time counts.
 */
#include <stdlib.h>
#include <string.h>

#include "analyzer/model.h"

/* A wait or a device time above this is a flipped bit. */
#define TIME_LIMIT (UINT64_C(1) << 56)

static void take_times(struct model *m, const struct cap_times *times)
{
    const struct cap_time *time = (const struct cap_time *)(times + 1);
    for (uint32_t i = 0; i < times->count; i++) {
        struct model_launch *l = model_launch_by_seq(m, times->base_launch + time[i].launch_delta);
        if (!l)
            continue;
        l->device_ns = time[i].device_ns;
        l->time_source = times->source;
    }
}

/* Launches that no wait has covered yet, and the last record of every event. */
struct waits {
    struct model *model;
    size_t *pending; /* indices of launches */
    size_t pending_count;
    size_t next_launch;
    struct map event_seq, event_stream; /* event id -> seq and stream of its last record */
};

/* Does a wait on stream `waited` also wait for work of `stream`? The legacy stream waits for every blocking one. */
static bool stream_covers(const struct model *m, uint32_t waited, uint32_t stream)
{
    if (waited == stream)
        return true;
    const struct cap_stream *w = capture_definition(m->capture, CAP_STREAM, waited);
    const struct cap_stream *s = capture_definition(m->capture, CAP_STREAM, stream);
    return w && s && w->kind == CAP_STREAM_LEGACY && w->context == s->context &&
           !(s->flags & 1 /* CU_STREAM_NON_BLOCKING */);
}

static bool sync_covers(const struct waits *w, const struct cap_sync *sync, const struct model_launch *l)
{
    const struct model *m = w->model;
    uint64_t seq, stream;
    switch (sync->kind) {
    case CAP_SYNC_CONTEXT: {
        const struct cap_stream *s = capture_definition(m->capture, CAP_STREAM, l->record->stream);
        return !s || !sync->object || !s->context || s->context == sync->object;
    }
    case CAP_SYNC_STREAM:
        return stream_covers(m, sync->object, l->record->stream);
    case CAP_SYNC_EVENT:
        return map_get(&w->event_seq, sync->object, &seq) && map_get(&w->event_stream, sync->object, &stream) &&
               l->seq < seq && stream_covers(m, (uint32_t)stream, l->record->stream);
    default:
        return false;
    }
}

/* Moves the pending launches that `covers` selects to the end of the list; returns how many. */
static size_t part_covered(struct waits *w, const struct cap_sync *sync, uint32_t copy_stream, size_t *covered)
{
    size_t kept = 0, count = 0;
    for (size_t i = 0; i < w->pending_count; i++) {
        const struct model_launch *l = &w->model->launches[w->pending[i]];
        if (sync ? sync_covers(w, sync, l) : stream_covers(w->model, copy_stream, l->record->stream))
            covered[count++] = w->pending[i];
        else
            w->pending[kept++] = w->pending[i];
    }
    w->pending_count = kept;
    return count;
}

static void share_wait(struct model *m, const size_t *covered, size_t count, uint64_t wait_ns, bool cap)
{
    uint64_t device = 0;
    bool known = true;
    for (size_t i = 0; i < count; i++) {
        known = known && m->launches[covered[i]].time_source != 0;
        device += m->launches[covered[i]].device_ns;
    }
    known = known && device > 0;
    if (cap && (!known || device < wait_ns))
        wait_ns = known ? device : 0;
    uint64_t left = wait_ns;
    for (size_t i = 0; i < count; i++) {
        struct model_launch *l = &m->launches[covered[i]];
        uint64_t part = known ? (uint64_t)((long double)wait_ns * l->device_ns / device) : wait_ns / count;
        if (i == count - 1 || part > left)
            part = left;
        l->wait_ns += part;
        left -= part;
    }
}

static void take_wait(struct waits *w, const struct cap_head *record, size_t *covered)
{
    struct model *m = w->model;
    for (; w->next_launch < m->launch_count && m->launches[w->next_launch].seq < record->seq; w->next_launch++)
        if (model_launch_ran(&m->launches[w->next_launch]))
            w->pending[w->pending_count++] = w->next_launch;
    if (record->type == CAP_SYNC) {
        const struct cap_sync *sync = (const void *)record;
        if (sync->wait_ns > TIME_LIMIT)
            capture_reject(m->capture, record, "a wait of more than two years");
        else
            share_wait(m, covered, part_covered(w, sync, 0, covered), sync->wait_ns, false);
    } else if (record->type == CAP_COPY) {
        const struct cap_copy *copy = (const void *)record;
        if (!copy->asynchronous && copy->call_ns <= TIME_LIMIT && copy->kind != CAP_COPY_DTOD)
            share_wait(m, covered, part_covered(w, NULL, copy->stream, covered), copy->call_ns, true);
    } else if (record->type == CAP_EVENT_OP) {
        const struct cap_event_op_record *op = (const void *)record;
        if (op->op == CAP_EVENT_RECORD) {
            map_put(&w->event_seq, op->event, record->seq);
            map_put(&w->event_stream, op->event, op->stream);
        }
    }
}

void model_times(struct model *m)
{
    const struct capture *c = m->capture;
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i]->type == CAP_TIMES)
            take_times(m, (const void *)c->records[i]);
    struct waits w = {.model = m, .pending = calloc(m->launch_count + 1, sizeof *w.pending)};
    size_t *covered = calloc(m->launch_count + 1, sizeof *covered);
    if (w.pending && covered)
        for (size_t i = 0; i < c->record_count; i++)
            take_wait(&w, c->records[i], covered);
    free(w.pending);
    free(covered);
    map_free(&w.event_seq);
    map_free(&w.event_stream);
}
