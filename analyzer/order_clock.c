/* order_clock.c - the clocks of streams, events and the host. */
#include "analyzer/model_graph.h"
#include "analyzer/order.h"

#include <stdlib.h>
#include <string.h>

/* ---- clocks ---- */

static bool reserve(struct order_clock *c, uint32_t count)
{
    if (count <= c->count)
        return true;
    uint64_t *more = realloc(c->at, count * sizeof *more);
    if (!more)
        return false;
    memset(more + c->count, 0, (count - c->count) * sizeof *more);
    c->at = more;
    c->count = count;
    return true;
}

/* A clock that cannot grow would lose order. */
static void join(struct order_clocks *o, struct order_clock *to, const struct order_clock *from)
{
    if (!reserve(to, from->count)) {
        o->failed = true;
        return;
    }
    for (uint32_t i = 0; i < from->count; i++)
        if (to->at[i] < from->at[i])
            to->at[i] = from->at[i];
}

static void copy(struct order_clocks *o, struct order_clock *to, const struct order_clock *from)
{
    if (to->count)
        memset(to->at, 0, to->count * sizeof *to->at);
    join(o, to, from);
}

static void put(struct order_clocks *o, struct order_clock *c, uint32_t slot, uint64_t time)
{
    if (!reserve(c, slot + 1))
        o->failed = true;
    else
        c->at[slot] = time;
}

/* ---- streams ---- */

static uint32_t take_slot(struct order_clocks *o)
{
    if (o->free_count)
        return o->free_slots[--o->free_count];
    if (o->slots == ORDER_SLOTS)
        o->failed = true;
    return o->failed ? 0 : o->slots++;
}

/* NULL: nothing was done in it yet, or it is gone. */
static struct order_stream *known_stream(const struct order_clocks *o, uint32_t id)
{
    uint64_t index;
    return map_get(&o->stream_index, id, &index) ? &o->streams[index] : NULL;
}

static struct order_stream *stream_of(struct order_clocks *o, uint32_t id)
{
    struct order_stream *known = known_stream(o, id);
    const struct cap_stream *record = capture_definition(o->model->capture, CAP_STREAM, id);
    if (known)
        return known;
    if (!record || o->failed)
        return NULL;
    if (o->stream_count == o->stream_capacity) {
        size_t capacity = o->stream_capacity ? o->stream_capacity * 2 : 16;
        struct order_stream *more = realloc(o->streams, capacity * sizeof *more);
        if (!more) {
            o->failed = true;
            return NULL;
        }
        o->streams = more;
        o->stream_capacity = capacity;
    }
    if (!map_put(&o->stream_index, id, o->stream_count)) {
        o->failed = true;
        return NULL;
    }
    struct order_stream *s = &o->streams[o->stream_count++];
    *s = (struct order_stream){.id = id, .context = record->context, .slot = take_slot(o)};
    s->legacy = record->kind == CAP_STREAM_LEGACY;
    s->blocking = record->kind != CAP_STREAM_CREATED || !(record->flags & 1 /* CU_STREAM_NON_BLOCKING */);
    return s;
}

/* Nothing that it does from here on comes before anything later, and the host knows what it did. */
static bool settled(const struct order_clocks *o, const struct order_stream *s)
{
    return !s->doubt && order_time(&o->issued, s->slot) <= order_time(&o->host, s->slot);
}

/* A stream whose work goes on stays, since others may still have to come behind it. */
static void destroy_stream(struct order_clocks *o, uint32_t id)
{
    struct order_stream *s = known_stream(o, id);
    uint32_t *more = s && settled(o, s) ? realloc(o->free_slots, (o->free_count + 1) * sizeof *more) : NULL;
    if (!more)
        return;
    const struct order_stream *last = &o->streams[o->stream_count - 1];
    o->free_slots = more;
    more[o->free_count++] = s->slot;
    free(s->clock.at);
    map_remove(&o->stream_index, id);
    if (s != last) {
        *s = *last;
        o->failed = o->failed || !map_put(&o->stream_index, s->id, (uint64_t)(s - o->streams));
    }
    o->stream_count--;
}

static void follow(struct order_clocks *o, struct order_stream *to, const struct order_stream *from)
{
    join(o, &to->clock, &from->clock);
    if (to->doubt < from->doubt)
        to->doubt = from->doubt;
}

/* The legacy stream comes behind the blocking streams of its context, and they behind it. */
static void follow_legacy(struct order_clocks *o, struct order_stream *s)
{
    if (!s->blocking)
        return;
    for (size_t i = 0; i < o->stream_count; i++) {
        const struct order_stream *other = &o->streams[i];
        bool tied = other != s && other->context == s->context && other->blocking && (s->legacy || other->legacy);
        if (tied && !other->capture && !settled(o, other))
            follow(o, s, other);
    }
}

struct order_stream *order_clocks_issue(struct order_clocks *o, uint32_t id)
{
    struct order_stream *s = stream_of(o, id);
    if (!s) { /* what it orders is unknown */
        order_clocks_host_knows_all(o);
        return NULL;
    }
    if (s->capture)
        return NULL;
    join(o, &s->clock, &o->host);
    follow_legacy(o, s);
    uint64_t now = order_time(&o->issued, s->slot) + 1;
    put(o, &s->clock, s->slot, now);
    put(o, &o->issued, s->slot, now);
    return o->failed ? NULL : s;
}

void order_clocks_doubt(struct order_stream *s, uint64_t seq)
{
    s->doubt = seq;
}

void order_clocks_put_behind(struct order_clocks *o, struct order_stream *s, uint32_t slot, uint64_t time)
{
    if (order_time(&s->clock, slot) < time)
        put(o, &s->clock, slot, time);
}

void order_clocks_host_may_know(struct order_clocks *o, const struct order_stream *s)
{
    join(o, &o->host, s->doubt ? &o->issued : &s->clock);
}

void order_clocks_host_knows_all(struct order_clocks *o)
{
    join(o, &o->host, &o->issued);
}

/* The host waited for the stream. Whatever that may have waited for is complete, too. */
static void wait_stream(struct order_clocks *o, struct order_stream *s)
{
    if (s->capture)
        return;
    follow_legacy(o, s);
    order_clocks_host_may_know(o, s);
    s->doubt = 0;
    for (size_t i = 0; s->legacy && i < o->stream_count; i++) {
        struct order_stream *other = &o->streams[i];
        if (other->context == s->context && other->blocking && !other->capture) {
            order_clocks_host_may_know(o, other);
            other->doubt = 0;
        }
    }
}

static void wait_context(struct order_clocks *o, uint32_t context)
{
    if (!context)
        order_clocks_host_knows_all(o);
    for (size_t i = 0; i < o->stream_count; i++)
        if (o->streams[i].context == context || !o->streams[i].context)
            wait_stream(o, &o->streams[i]);
}

/* ---- events ---- */

static struct order_event *event_of(struct order_clocks *o, uint32_t id)
{
    uint64_t index;
    if (map_get(&o->event_index, id, &index))
        return &o->events[index];
    if (!id || o->failed)
        return NULL;
    if (o->event_count == o->event_capacity) {
        size_t capacity = o->event_capacity ? o->event_capacity * 2 : 64;
        struct order_event *more = realloc(o->events, capacity * sizeof *more);
        if (!more) {
            o->failed = true;
            return NULL;
        }
        o->events = more;
        o->event_capacity = capacity;
    }
    if (!map_put(&o->event_index, id, o->event_count)) {
        o->failed = true;
        return NULL;
    }
    o->events[o->event_count] = (struct order_event){.id = id};
    return &o->events[o->event_count++];
}

static void record_event(struct order_clocks *o, const struct cap_event_op_record *r)
{
    struct order_event *e = event_of(o, r->event);
    struct order_stream *s = stream_of(o, r->stream);
    if (s && s->capture) {
        if (e)
            e->capture = s->capture;
        return;
    }
    s = order_clocks_issue(o, r->stream);
    if (!e || o->failed)
        return;
    copy(o, &e->clock, s ? &s->clock : &o->issued);
    e->recorded = true;
    e->recorded_stream = r->stream;
    e->capture = 0;
    e->doubt = s ? s->doubt : r->head.seq;
    e->seq = r->head.seq;
}

static bool capture_open_still(const struct order_clocks *o, uint32_t capture)
{
    for (size_t i = 0; capture && i < o->stream_count; i++)
        if (o->streams[i].capture == capture)
            return true;
    return false;
}

static void wait_for_event(struct order_clocks *o, const struct cap_event_op_record *r)
{
    struct order_event *e = event_of(o, r->event);
    struct order_stream *s = stream_of(o, r->stream);
    if (e && s && capture_open_still(o, e->capture)) {
        s->capture = e->capture;
        return;
    }
    s = order_clocks_issue(o, r->stream);
    if (!s)
        return;
    if (!e || o->events_in_doubt)
        order_clocks_doubt(s, r->head.seq);
    if (!e)
        return;
    s->waited_event = e->id;
    s->waited_time = 0;
    if (!e->recorded)
        return;
    join(o, &s->clock, &e->clock);
    if (s->doubt < e->doubt)
        s->doubt = e->doubt;
    const struct order_stream *from = known_stream(o, e->recorded_stream);
    if (from) {
        s->waited_slot = from->slot;
        s->waited_time = order_time(&e->clock, from->slot);
    }
}

static void event_done(struct order_clocks *o, uint32_t id)
{
    struct order_event *e = event_of(o, id);
    if (!e) {
        order_clocks_host_knows_all(o);
        return;
    }
    join(o, &o->host, e->doubt || o->events_in_doubt ? &o->issued : &e->clock);
    e->doubt = 0;
    struct order_stream *s = e->recorded ? known_stream(o, e->recorded_stream) : NULL;
    if (s && s->doubt <= e->seq)
        s->doubt = 0;
}

static void destroy_event(struct order_clocks *o, uint32_t id)
{
    struct order_event *e = event_of(o, id);
    if (!e)
        return;
    free(e->clock.at);
    e->clock = (struct order_clock){0};
    e->recorded = false;
}

/* ---- records ---- */

/* Somebody may be told of what the stream did so far, and the stream may wait for whoever. */
static void host_function(struct order_clocks *o, uint32_t stream, uint64_t seq)
{
    struct order_stream *s = order_clocks_issue(o, stream);
    if (!s)
        return;
    order_clocks_host_may_know(o, s);
    order_clocks_doubt(s, seq);
}

/* Does it record events, or may it? */
static bool records_events(const struct order_clocks *o, const struct cap_graph_launch *r)
{
    const struct model_launch *l = model_launch_by_seq(o->model, r->launch.head.seq);
    if (!l)
        return true;
    struct model_nodes nodes = model_launch_nodes(l);
    bool may = !nodes.complete;
    for (size_t i = 0; i < nodes.count && !may; i++)
        may = nodes.items[i]->kind == CAP_NODE_EVENT_RECORD;
    model_nodes_free(&nodes);
    return may;
}

static void graph_launched(struct order_clocks *o, const struct cap_graph_launch *r)
{
    bool known = o->last_graph == r->graph && o->last_version == r->version;
    if (r->launch.outcome == CAP_LAUNCH_FAILED)
        return;
    if (!o->events_in_doubt && !known)
        o->events_in_doubt = records_events(o, r);
    o->last_graph = r->graph;
    o->last_version = r->version;
    host_function(o, r->launch.stream, r->launch.head.seq);
}

static void end_capture(struct order_clocks *o, uint32_t stream)
{
    const struct order_stream *s = stream_of(o, stream);
    uint32_t capture = s ? s->capture : 0;
    for (size_t i = 0; capture && i < o->stream_count; i++)
        if (o->streams[i].capture == capture)
            o->streams[i].capture = 0;
}

static void take_order(struct order_clocks *o, const struct cap_order *r)
{
    struct order_stream *s = stream_of(o, r->stream);
    switch (r->op) {
    case CAP_ORDER_STREAM_DONE:
        if (s)
            wait_stream(o, s);
        else
            order_clocks_host_knows_all(o);
        break;
    case CAP_ORDER_EVENT_DONE:
        event_done(o, r->event);
        break;
    case CAP_ORDER_WRITE_VALUE:
        if ((s = order_clocks_issue(o, r->stream)))
            order_clocks_host_may_know(o, s);
        break;
    case CAP_ORDER_CAPTURE_BEGIN:
        if (s)
            s->capture = ++o->captures;
        break;
    case CAP_ORDER_CAPTURE_END:
        end_capture(o, r->stream);
        break;
    case CAP_ORDER_GRAPH_LAUNCH:
        o->events_in_doubt = true; /* a graph may record events */
        host_function(o, r->stream, r->head.seq);
        break;
    case CAP_ORDER_FOREIGN:
        o->events_in_doubt = true;
        order_clocks_host_knows_all(o);
        for (size_t i = 0; i < o->stream_count; i++)
            if (!r->stream || o->streams[i].id == r->stream)
                order_clocks_doubt(&o->streams[i], r->head.seq);
        break;
    default:
        host_function(o, r->stream, r->head.seq);
        break;
    }
}

static void take_sync(struct order_clocks *o, const struct cap_sync *r)
{
    struct order_stream *s = r->kind == CAP_SYNC_STREAM ? stream_of(o, r->object) : NULL;
    if (r->kind == CAP_SYNC_EVENT)
        event_done(o, r->object);
    else if (r->kind == CAP_SYNC_CONTEXT)
        wait_context(o, r->object);
    else if (s)
        wait_stream(o, s);
    else
        order_clocks_host_knows_all(o);
}

void order_clocks_take(struct order_clocks *o, const struct cap_head *record)
{
    switch (record->type) {
    case CAP_SYNC:
        take_sync(o, (const void *)record);
        break;
    case CAP_ORDER:
        take_order(o, (const void *)record);
        break;
    case CAP_GRAPH_LAUNCH:
        graph_launched(o, (const void *)record);
        break;
    case CAP_EVENT_OP: {
        const struct cap_event_op_record *r = (const void *)record;
        if (r->op == CAP_EVENT_RECORD)
            record_event(o, r);
        else
            wait_for_event(o, r);
        break;
    }
    case CAP_CONTEXT:
        if (((const struct cap_context *)(const void *)record)->destroyed)
            wait_context(o, ((const struct cap_context *)(const void *)record)->id);
        break;
    case CAP_STREAM:
        if (((const struct cap_stream *)(const void *)record)->destroyed)
            destroy_stream(o, ((const struct cap_stream *)(const void *)record)->id);
        break;
    case CAP_EVENT:
        if (((const struct cap_event *)(const void *)record)->destroyed)
            destroy_event(o, ((const struct cap_event *)(const void *)record)->id);
        break;
    default:
        break;
    }
}

void order_clocks_start(struct order_clocks *o, const struct model *m)
{
    *o = (struct order_clocks){.model = m};
}

void order_clocks_end(struct order_clocks *o)
{
    for (size_t i = 0; i < o->stream_count; i++)
        free(o->streams[i].clock.at);
    for (size_t i = 0; i < o->event_count; i++)
        free(o->events[i].clock.at);
    free(o->streams);
    free(o->events);
    free(o->free_slots);
    free(o->host.at);
    free(o->issued.at);
    map_free(&o->stream_index);
    map_free(&o->event_index);
    *o = (struct order_clocks){0};
}
