#include "analyzer/hang.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/diag.h"

enum { HOOK_NONE = 0xffff };
enum { POLLS_WITHIN_MS = 2000 };
#define NS_PER_MS UINT64_C(1000000)

/* Now, on the capture's clock: of a dead process, when its capture was last brought up to date. */
static uint64_t now_of(const struct capture *c, enum process_life life)
{
    const struct cap_header *h = &c->header;
    uint64_t last = h->mono_now_ns > h->mono_start_ns ? h->mono_now_ns - h->mono_start_ns : 0;
    struct timespec now;
    if (life != PROCESS_ALIVE || clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        return last;
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return ns > h->mono_start_ns && ns - h->mono_start_ns > last ? ns - h->mono_start_ns : last;
}

static uint64_t ago(const struct hang *h, uint64_t tsc)
{
    uint64_t then = capture_time_ns(h->session->capture, tsc);
    return h->now_ns > then ? h->now_ns - then : 0;
}

/* ---- threads ---- */

static const char *hook_name(const struct capture *c, uint32_t index)
{
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_hook *hook = (const void *)c->records[i];
        if (hook->head.type == CAP_HOOK && hook->index == index)
            return capture_string(c, hook->name);
    }
    return NULL;
}

static uint32_t stack_of(const struct cap_head *record)
{
    switch (record->type) {
    case CAP_SYNC:
        return ((const struct cap_sync *)record)->stack;
    case CAP_COPY:
        return ((const struct cap_copy *)record)->stack;
    case CAP_SET:
        return ((const struct cap_set *)record)->stack;
    case CAP_LAUNCH:
    case CAP_GRAPH_LAUNCH:
        return ((const struct cap_launch *)record)->stack;
    case CAP_FREE:
        return ((const struct cap_free *)record)->stack;
    default:
        return 0;
    }
}

/* What the call with this seq wrote, of the types that tell what it does. */
static const struct cap_head *record_of(const struct capture *c, uint64_t seq)
{
    size_t low = 0, high = c->record_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->records[middle]->seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < c->record_count && c->records[low]->seq == seq; low++)
        if (stack_of(c->records[low]) || c->records[low]->type == CAP_SYNC)
            return c->records[low];
    return NULL;
}

static void take_thread(struct hang *h, const struct cap_thread_state *state)
{
    struct capture *c = h->session->capture;
    if (!state->tid || !state->entered_tsc)
        return;
    struct hang_thread *t = &h->threads[h->thread_count++];
    *t = (struct hang_thread){.state = state, .since_ns = ago(h, state->entered_tsc)};
    t->scope = hook_name(c, state->scope);
    if (state->call != HOOK_NONE) {
        t->call = hook_name(c, state->call);
        t->record = record_of(c, state->seq);
        t->stack = t->record ? stack_of(t->record) : 0;
    }
    t->polls = t->scope && strstr(t->scope, "Query") && t->since_ns < POLLS_WITHIN_MS * NS_PER_MS;
    if (h->life == PROCESS_ALIVE)
        t->process = process_thread(c->header.pid, state->tid);
}

/* ---- streams ---- */

static struct hang_stream *stream_by_id(struct hang *h, uint32_t id)
{
    for (size_t i = 0; i < h->stream_count; i++)
        if (h->streams[i].stream && h->streams[i].stream->id == id)
            return &h->streams[i];
    return NULL;
}

/* Whether waiting for stream `waited` also waits for `s`: the legacy stream waits for all that do not say otherwise. */
static bool covers(const struct cap_stream *waited, const struct cap_stream *s)
{
    return waited->id == s->id || (waited->kind == CAP_STREAM_LEGACY && waited->context == s->context &&
                                   !(s->flags & 1 /* CU_STREAM_NON_BLOCKING */));
}

static const struct cap_stream *stream_of_event(const struct capture *c, uint32_t event, uint64_t before)
{
    const struct cap_stream *found = NULL;
    for (size_t i = 0; i < c->record_count && c->records[i]->seq < before; i++) {
        const struct cap_event_op_record *op = (const void *)c->records[i];
        if (op->head.type == CAP_EVENT_OP && op->op == CAP_EVENT_RECORD && op->event == event)
            found = capture_definition(c, CAP_STREAM, op->stream);
    }
    return found;
}

static bool waits_for(const struct hang *h, const struct hang_thread *t, const struct cap_stream *s)
{
    const struct capture *c = h->session->capture;
    const struct cap_stream *waited = NULL;
    if (t->polls)
        return true; /* for which one is not recorded */
    if (!t->call)
        return false;
    if (t->record && t->record->type == CAP_SYNC) {
        const struct cap_sync *sync = (const void *)t->record;
        if (sync->kind == CAP_SYNC_CONTEXT)
            return !sync->object || !s->context || sync->object == s->context;
        waited = sync->kind == CAP_SYNC_STREAM ? capture_definition(c, CAP_STREAM, sync->object)
                                               : stream_of_event(c, sync->object, sync->head.seq);
    } else if (t->record && t->record->type == CAP_COPY) {
        const struct cap_copy *copy = (const void *)t->record;
        if (copy->asynchronous && t->since_ns < h->after_ns)
            return false;
        waited = capture_definition(c, CAP_STREAM, copy->stream);
    } else
        return t->since_ns >= h->after_ns; /* a free, an allocation, a launch: it waits for whatever is in its way */
    return waited && covers(waited, s);
}

static uint64_t usual_time(const struct model *m, const struct model_launch *l)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < m->launch_count; i++) {
        const struct model_launch *other = &m->launches[i];
        if (other != l && other->kernel == l->kernel && other->time_source && other->device_ns > longest)
            longest = other->device_ns;
    }
    return longest;
}

static void take_state(struct hang *h, const struct cap_stream_state *state)
{
    struct model *m = h->session->model;
    struct hang_stream *s = state->stream ? stream_by_id(h, state->stream) : NULL;
    if (!s)
        return;
    s->state = state;
    s->asked_ns = ago(h, state->asked_tsc);
    s->still_ns = ago(h, state->changed_tsc);
    s->running = state->running ? model_launch_by_seq(m, state->running) : NULL;
    s->next = state->waiting ? model_launch_by_seq(m, state->waiting) : NULL;
    if (s->running) {
        s->running_ns = ago(h, state->running_tsc);
        s->usual_ns = usual_time(m, s->running);
    }
}

/* All of the stream's work before the seq that this gives is known to be complete. */
static uint64_t done_before(const struct hang *h, const struct hang_stream *s)
{
    const struct capture *c = h->session->capture;
    uint64_t done = s->state ? s->state->complete : 0;
    for (size_t i = 0; s->stream && i < c->record_count; i++) {
        const struct cap_sync *sync = (const void *)c->records[i];
        if (sync->head.type != CAP_SYNC || sync->result || !sync->wait_ns)
            continue;
        const struct cap_stream *waited =
            sync->kind == CAP_SYNC_STREAM ? capture_definition(c, CAP_STREAM, sync->object) : NULL;
        bool covered = sync->kind == CAP_SYNC_CONTEXT ? !sync->object || sync->object == s->stream->context
                                                      : waited && covers(waited, s->stream);
        if (covered && sync->head.seq > done)
            done = sync->head.seq;
    }
    return done;
}

/* The function that the stream is inside of, else the one that the call with this seq put into it. */
static const struct cap_host_function *function_of(const struct capture *c, uint32_t stream, uint64_t seq)
{
    const struct cap_host_function *found = NULL;
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_host_function *f = (const void *)c->records[i];
        if (f->head.type != CAP_HOST_FUNCTION || !f->seq || f->stream != stream)
            continue;
        if (f->begun_tsc)
            return f;
        found = f->seq == seq ? f : found;
    }
    return found;
}

static void find_function(struct hang *h, struct hang_stream *s)
{
    const struct capture *c = h->session->capture;
    const struct cap_host_function *f = function_of(c, s->stream->id, s->function ? s->function->head.seq : 0);
    s->called = f;
    if (!f || !f->begun_tsc)
        return;
    s->called_ns = ago(h, f->begun_tsc);
    s->called_ns = s->called_ns ? s->called_ns : 1;
    if (h->life == PROCESS_ALIVE)
        s->caller = process_thread(c->header.pid, f->tid);
}

/* Of what was put into the stream behind all that is complete and in front of what has not begun, the first that
 * waits. */
static void find_wait(struct hang *h, struct hang_stream *s)
{
    const struct capture *c = h->session->capture;
    uint64_t from = done_before(h, s), upto = s->next ? model_launch_seq(s->next) : UINT64_MAX;
    if (!s->state || s->state->busy != CAP_BUSY_YES || s->running)
        return;
    for (size_t i = 0; i < c->record_count && c->records[i]->seq < upto; i++) {
        const struct cap_head *r = c->records[i];
        const struct cap_stream_value *value = (const void *)r;
        const struct cap_event_op_record *op = (const void *)r;
        if (r->seq <= from)
            continue;
        if (r->type == CAP_STREAM_VALUE && value->op == CAP_VALUE_WAIT && value->stream == s->stream->id && !s->value)
            s->value = value;
        if (r->type == CAP_EVENT_OP && op->op == CAP_EVENT_STREAM_WAIT && op->stream == s->stream->id && !s->event)
            s->event = op;
        const struct cap_order *order = (const void *)r;
        if (r->type == CAP_ORDER && order->op == CAP_ORDER_HOST_FUNCTION && order->stream == s->stream->id &&
            !s->function)
            s->function = order;
    }
    find_function(h, s);
}

static void take_streams(struct hang *h)
{
    const struct capture *c = h->session->capture;
    struct model *m = h->session->model;
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_stream *r = (const void *)c->records[i];
        if (r->head.type == CAP_STREAM && !r->destroyed)
            h->streams[h->stream_count++] = (struct hang_stream){.stream = r};
    }
    for (size_t i = 0; i < c->record_count; i++) { /* those that ended */
        const struct cap_stream *r = (const void *)c->records[i];
        struct hang_stream *gone = r->head.type == CAP_STREAM && r->destroyed ? stream_by_id(h, r->id) : NULL;
        if (gone)
            *gone = h->streams[--h->stream_count];
    }
    for (size_t i = 0; i < m->launch_count; i++) {
        struct hang_stream *s = stream_by_id(h, m->launches[i].record->stream);
        if (s && model_launch_ran(&m->launches[i]))
            s->last = &m->launches[i];
    }
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i]->type == CAP_STREAM_STATE)
            take_state(h, (const void *)c->records[i]);
    for (size_t i = 0; i < h->stream_count; i++) {
        struct hang_stream *s = &h->streams[i];
        find_wait(h, s);
        for (size_t k = 0; k < h->thread_count && !s->waiter; k++)
            if (waits_for(h, &h->threads[k], s->stream))
                s->waiter = &h->threads[k];
    }
}

static int by_stream(const void *a, const void *b)
{
    uint32_t x = ((const struct hang_stream *)a)->stream->id, y = ((const struct hang_stream *)b)->stream->id;
    return x < y ? -1 : x > y;
}

enum status hang_look(struct session *s, uint64_t after_ns, struct hang *h)
{
    const struct capture *c = s->capture;
    *h = (struct hang){.session = s, .after_ns = after_ns, .ended = c->header.state == CAP_ENDED || s->model->end};
    h->life = h->ended ? PROCESS_GONE : process_writes(c->header.pid, c->path);
    h->stopped = h->life == PROCESS_ALIVE && process_thread(c->header.pid, c->header.pid).state == 'T';
    h->now_ns = now_of(c, h->life);
    h->threads = calloc(c->record_count + 1, sizeof *h->threads);
    h->streams = calloc(c->record_count + 1, sizeof *h->streams);
    if (!h->threads || !h->streams) {
        hang_free(h);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i]->type == CAP_THREAD_STATE)
            take_thread(h, (const void *)c->records[i]);
    take_streams(h);
    if (h->stream_count)
        qsort(h->streams, h->stream_count, sizeof *h->streams, by_stream);
    if (!h->ended)
        hang_judge(h);
    return s->findings.no_memory ? STATUS_NO_MEMORY : STATUS_OK;
}

void hang_free(struct hang *h)
{
    free(h->threads);
    free(h->streams);
    h->threads = NULL;
    h->streams = NULL;
    h->thread_count = h->stream_count = 0;
}
