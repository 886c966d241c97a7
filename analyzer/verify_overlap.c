#include "analyzer/verify_overlap.h"

#include <stdlib.h>

#include "analyzer/capture_thread.h"

/* Between its stamp and its last word a call may lose the processor; longer than this is not to be expected. */
#define LONGEST_PAUSE_NS (100 * UINT64_C(1000000))
/* Records that are looked at on either side, and how many of them are passed over at once when none is of that time. */
enum { NEAR_RECORDS = 1 << 14, CHUNK = 256 };

static uint64_t call_ns(const struct cap_head *record)
{
    switch (record->type) {
    case CAP_LAUNCH:
    case CAP_GRAPH_LAUNCH: /* begins with one */
        return ((const struct cap_launch *)(const void *)record)->host_ns;
    case CAP_COPY:
        return ((const struct cap_copy *)(const void *)record)->call_ns;
    case CAP_SET:
        return ((const struct cap_set *)(const void *)record)->call_ns;
    case CAP_OPERATOR:
        return ((const struct cap_operator *)(const void *)record)->host_ns;
    default:
        return 0;
    }
}

/* Strings, stacks, snapshots and the like are written in the middle of a call: only the next call tells that it is
 * over. */
static bool starts_call(const struct cap_head *record)
{
    switch (record->type) {
    case CAP_LAUNCH:
    case CAP_GRAPH_LAUNCH:
    case CAP_COPY:
    case CAP_SET:
    case CAP_SYNC:
    case CAP_FREE:
    case CAP_EVENT_OP:
    case CAP_OPERATOR:
        return true;
    default:
        return false;
    }
}

/* The stream that the record put writing work into, 0: none. */
static uint32_t stream_of(const struct cap_head *record)
{
    const struct cap_copy *copy = (const void *)record;
    switch (record->type) {
    case CAP_LAUNCH:
    case CAP_GRAPH_LAUNCH:
        return ((const struct cap_launch *)(const void *)record)->stream;
    case CAP_COPY:
        return copy->kind == CAP_COPY_DTOH ? 0 : copy->stream;
    case CAP_SET:
        return ((const struct cap_set *)(const void *)record)->stream;
    case CAP_OPERATOR:
        return ((const struct cap_operator *)(const void *)record)->stream;
    default:
        return 0;
    }
}

bool overlap_start(struct overlap *o, const struct model *m)
{
    const struct capture *c = m->capture;
    *o = (struct overlap){.model = m};
    struct capture_threads threads;
    if (!capture_threads_find(&threads, c))
        return false;
    if (!threads.several) {
        capture_threads_free(&threads);
        return true;
    }
    o->chunks = calloc(c->record_count / CHUNK + 1, sizeof *o->chunks);
    o->threads = calloc(c->record_count + 1, sizeof *o->threads);
    o->ends = calloc(c->record_count + 1, sizeof *o->ends);
    struct map next = {0}; /* thread -> TSC of the record of it that follows */
    bool ok = o->chunks && o->threads && o->ends;
    uint64_t ticks_per_ms = c->header.tsc_hz_estimate / 1000;
    for (size_t i = c->record_count; ok && i-- > 0;) {
        const struct cap_head *record = c->records[i];
        uint64_t follows = UINT64_MAX, pause = (call_ns(record) + LONGEST_PAUSE_NS) / 1000000 * (ticks_per_ms + 1);
        o->threads[i] = capture_threads_of(&threads, record);
        map_get(&next, o->threads[i], &follows);
        o->ends[i] = record->tsc > UINT64_MAX - pause ? UINT64_MAX : record->tsc + pause;
        if (follows > record->tsc && follows < o->ends[i])
            o->ends[i] = follows;
        if (starts_call(record))
            ok = map_put(&next, o->threads[i], record->tsc);
        struct overlap_chunk *chunk = &o->chunks[i / CHUNK];
        if (!chunk->end || record->tsc < chunk->start)
            chunk->start = record->tsc;
        if (o->ends[i] > chunk->end)
            chunk->end = o->ends[i];
    }
    map_free(&next);
    capture_threads_free(&threads);
    return ok;
}

void overlap_end(struct overlap *o)
{
    free(o->chunks);
    free(o->threads);
    free(o->ends);
    *o = (struct overlap){0};
}

static bool disturbs(const struct overlap *o, size_t launch, size_t other)
{
    const struct cap_head *l = o->model->capture->records[launch], *r = o->model->capture->records[other];
    return o->threads[other] != o->threads[launch] && stream_of(r) == stream_of(l) && r->tsc < o->ends[launch] &&
           o->ends[other] > l->tsc;
}

/* Records are ordered by seq, and no two of them that stand for calls share one. */
static size_t index_of(const struct capture *c, const struct model_launch *l)
{
    size_t low = 0, high = c->record_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->records[middle]->seq < model_launch_seq(l))
            low = middle + 1;
        else
            high = middle;
    }
    while (low < c->record_count && c->records[low] != &l->record->head)
        low++;
    return low;
}

static bool of_its_time(const struct overlap *o, size_t launch, size_t chunk)
{
    return o->chunks[chunk].start < o->ends[launch] && o->chunks[chunk].end > o->model->capture->records[launch]->tsc;
}

bool overlap_found(const struct overlap *o, const struct model_launch *l)
{
    size_t count = o->model->capture->record_count;
    size_t launch = o->threads ? index_of(o->model->capture, l) : count;
    if (launch >= count)
        return false;
    size_t first = launch >= NEAR_RECORDS ? launch - NEAR_RECORDS + 1 : 0;
    size_t last = count - launch > NEAR_RECORDS ? launch + NEAR_RECORDS : count;
    for (size_t i = first; i < last;) {
        size_t end = (i / CHUNK + 1) * CHUNK;
        bool any = of_its_time(o, launch, i / CHUNK);
        for (; any && i < end && i < last; i++)
            if (i != launch && disturbs(o, launch, i))
                return true;
        i = end;
    }
    return false;
}
