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

/* Times come in the order of their launches: the next one is mostly the one behind. */
static void take_times(struct model *m, const struct cap_times *times)
{
    const struct cap_time *time = (const struct cap_time *)(times + 1);
    size_t next = m->launch_count;
    for (uint32_t i = 0; i < times->count; i++) {
        uint64_t seq = times->base_launch + time[i].launch_delta;
        if (next >= m->launch_count || model_launch_seq(&m->launches[next]) != seq)
            next = model_first_launch_from(m, seq);
        if (next >= m->launch_count || model_launch_seq(&m->launches[next]) != seq)
            continue;
        m->launches[next].device_ns = time[i].device_ns;
        m->launches[next++].time_source = times->source < 0x7f ? times->source : 0x7f;
    }
}

/* Launches of a stream that no wait has covered yet, as indices, in order: launches[first] up to launches[count]. */
struct queue {
    uint32_t stream;
    uint32_t *launches; /* owned */
    size_t first, count, capacity;
};

/* All of them, and the last record of every event. */
struct waits {
    struct model *model;
    struct queue *queues; /* owned; one per stream */
    size_t queue_count;
    size_t next_launch;
    struct map queue_index;             /* stream id -> index */
    struct map event_seq, event_stream; /* event id -> seq and stream of its last record */
    bool no_memory;
};

static struct queue *queue_of(struct waits *w, uint32_t stream)
{
    uint64_t index;
    if (map_get(&w->queue_index, stream, &index))
        return &w->queues[index];
    if (!(w->queue_count & (w->queue_count - 1))) { /* full: they are doubled */
        struct queue *more = realloc(w->queues, (w->queue_count ? 2 * w->queue_count : 1) * sizeof *more);
        if (!more)
            return NULL;
        w->queues = more;
    }
    if (!map_put(&w->queue_index, stream, w->queue_count))
        return NULL;
    w->queues[w->queue_count] = (struct queue){.stream = stream};
    return &w->queues[w->queue_count++];
}

static bool push(struct waits *w, uint32_t stream, size_t launch)
{
    struct queue *q = queue_of(w, stream);
    if (!q)
        return false;
    if (q->count == q->capacity && q->first > q->capacity / 2) {
        q->count -= q->first;
        memmove(q->launches, q->launches + q->first, q->count * sizeof *q->launches);
        q->first = 0;
    } else if (q->count == q->capacity) {
        size_t capacity = q->capacity ? q->capacity + q->capacity / 2 + 1 : 64;
        uint32_t *more = realloc(q->launches, capacity * sizeof *more);
        if (!more)
            return false;
        q->launches = more;
        q->capacity = capacity;
    }
    q->launches[q->count++] = (uint32_t)launch;
    return true;
}

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

/* What a wait covers: of which streams, up to which record. */
struct reach {
    const struct cap_sync *sync; /* NULL: a copy */
    uint32_t stream;             /* waited for; of a copy: its own */
    uint64_t upto;
    bool nothing;
};

static struct reach reach_of(const struct waits *w, const struct cap_sync *sync)
{
    struct reach r = {.sync = sync, .stream = sync->object, .upto = UINT64_MAX};
    uint64_t stream = 0;
    if (sync->kind == CAP_SYNC_EVENT) {
        r.nothing = !map_get(&w->event_seq, sync->object, &r.upto) || !map_get(&w->event_stream, sync->object, &stream);
        r.stream = (uint32_t)stream;
    }
    return r;
}

static bool reaches_stream(const struct model *m, const struct reach *r, uint32_t stream)
{
    if (r->nothing)
        return false;
    if (!r->sync || r->sync->kind == CAP_SYNC_STREAM || r->sync->kind == CAP_SYNC_EVENT)
        return stream_covers(m, r->stream, stream);
    const struct cap_stream *s = capture_definition(m->capture, CAP_STREAM, stream);
    return r->sync->kind == CAP_SYNC_CONTEXT && (!s || !r->stream || !s->context || s->context == r->stream);
}

/* How many launches of the queue the wait covers: those before r->upto, which are its first ones. */
static size_t covered(const struct model *m, const struct reach *r, const struct queue *q)
{
    size_t low = q->first, high = q->count;
    if (low == high || !reaches_stream(m, r, q->stream))
        return 0;
    while (r->upto != UINT64_MAX && low < high) {
        size_t middle = low + (high - low) / 2;
        if (model_launch_seq(&m->launches[q->launches[middle]]) < r->upto)
            low = middle + 1;
        else
            high = middle;
    }
    return high - q->first;
}

struct sum {
    uint64_t device_ns;
    size_t count;
    uint32_t last; /* the last one of all; it gets what division leaves over */
    bool known;
};

static void add_up(const struct model *m, const struct queue *q, size_t count, struct sum *sum)
{
    for (size_t i = 0; i < count; i++) {
        const struct model_launch *l = &m->launches[q->launches[q->first + i]];
        sum->known = sum->known && l->time_source != 0;
        sum->device_ns += l->device_ns;
    }
    sum->count += count;
    if (count && sum->last < q->launches[q->first + count - 1])
        sum->last = q->launches[q->first + count - 1];
}

/* Takes the covered launches out and shares the wait among them. `cap`: at most as long as they took. */
static void share_wait(struct waits *w, const struct reach *r, uint64_t wait_ns, bool cap)
{
    struct model *m = w->model;
    struct sum sum = {.known = true};
    for (size_t i = 0; i < w->queue_count; i++)
        add_up(m, &w->queues[i], covered(m, r, &w->queues[i]), &sum);
    sum.known = sum.known && sum.device_ns > 0;
    if (cap && (!sum.known || sum.device_ns < wait_ns))
        wait_ns = sum.known ? sum.device_ns : 0;
    uint64_t left = wait_ns;
    for (size_t i = 0; i < w->queue_count; i++) {
        struct queue *q = &w->queues[i];
        for (size_t n = covered(m, r, q); n; n--) {
            uint32_t index = q->launches[q->first++];
            struct model_launch *l = &m->launches[index];
            uint64_t part =
                sum.known ? (uint64_t)((long double)wait_ns * l->device_ns / sum.device_ns) : wait_ns / sum.count;
            if (part > left)
                part = left;
            if (index == sum.last)
                continue;
            l->wait_ns += part;
            left -= part;
        }
        if (q->first == q->count)
            q->first = q->count = 0;
    }
    if (sum.count)
        m->launches[sum.last].wait_ns += left;
}

static void take_wait(struct waits *w, const struct cap_head *record)
{
    struct model *m = w->model;
    if (record->type == CAP_LAUNCH || record->type == CAP_GRAPH_LAUNCH) {
        if (w->next_launch < m->launch_count && &m->launches[w->next_launch].record->head == record &&
            model_launch_ran(&m->launches[w->next_launch++]))
            w->no_memory =
                w->no_memory || !push(w, ((const struct cap_launch *)(const void *)record)->stream, w->next_launch - 1);
    } else if (record->type == CAP_SYNC) {
        const struct cap_sync *sync = (const void *)record;
        struct reach reach = reach_of(w, sync);
        if (sync->wait_ns >= TIME_LIMIT)
            capture_reject(m->capture, record, "a wait of more than two years");
        else
            share_wait(w, &reach, sync->wait_ns, false);
    } else if (record->type == CAP_COPY) {
        const struct cap_copy *copy = (const void *)record;
        struct reach reach = {.stream = copy->stream, .upto = UINT64_MAX};
        if (!copy->asynchronous && copy->call_ns < TIME_LIMIT && copy->kind != CAP_COPY_DTOD)
            share_wait(w, &reach, copy->call_ns, true);
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
    struct waits w = {.model = m};
    for (size_t i = 0; i < c->record_count && !w.no_memory; i++)
        take_wait(&w, c->records[i]);
    for (size_t i = 0; i < w.queue_count; i++)
        free(w.queues[i].launches);
    free(w.queues);
    map_free(&w.queue_index);
    map_free(&w.event_seq);
    map_free(&w.event_stream);
}
