#include "shim/sentinel_choose.h"

#include <stdlib.h>
#include <string.h>

#include <opsdebug/capture.h>

#include "shim/memory.h"

enum {
    VISIT_MAX = 4 * SENTINEL_LOOK_MAX, /* entries of the table, with those that have no redzone or belong elsewhere */
    COPY_MAX = 512,                    /* each of them takes a copy and a wait */
};

struct collecting {
    uint32_t context, stream; /* stream 0: no memory of pools */
    uint32_t visited, limit;  /* limit 0: none */
    uint64_t end;             /* behind the last address to take, 0: none */
    uint64_t next;            /* where to go on, 0: the end was reached */
    const uint64_t *have;     /* sorted addresses that are taken already */
    uint32_t have_count;
    struct sentinel_choice *out;
};

static bool concerns(const struct collecting *c, const struct allocation *a)
{
    if ((!a->head && !a->tail) || a->context != c->context)
        return false;
    /* Memory of a pool may be taken back in the order of its stream: only that stream may look at it. */
    return (a->kind != CAP_ALLOC_ASYNC && a->kind != CAP_ALLOC_POOL) || (c->stream && a->stream == c->stream);
}

static void add(struct sentinel_choice *out, const struct allocation *a)
{
    if (out->count == out->capacity) {
        uint32_t capacity = out->capacity ? out->capacity * 2 : 64;
        struct allocation *more = realloc(out->found, capacity * sizeof *more);
        if (!more) {
            out->all = false;
            return;
        }
        out->found = more;
        out->capacity = capacity;
    }
    out->found[out->count++] = *a;
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static bool visit(const struct allocation *a, void *data)
{
    struct collecting *c = data;
    bool full = c->limit && (c->out->count >= c->limit || c->visited++ >= VISIT_MAX);
    if (full || (c->end && a->address >= c->end)) {
        c->next = a->address;
        return false;
    }
    if (concerns(c, a) && !(c->have_count && bsearch(&a->address, c->have, c->have_count, sizeof *c->have, by_value)))
        add(c->out, a);
    return true;
}

static void collect_from(struct collecting *c, uint64_t from)
{
    c->next = 0;
    alloc_table_from(from, visit, c);
}

/* Takes the addresses that launches were given, and `must`; sorted, without doubles. */
static uint32_t take_touched(struct tracked_stream *stream, const struct allocation *must, uint64_t *have)
{
    uint32_t count = __atomic_exchange_n(&stream->touched_count, 0, __ATOMIC_ACQ_REL), kept = 0;
    count = count < STREAM_TOUCHED ? count : STREAM_TOUCHED;
    const uint64_t *touched = __atomic_load_n(&stream->touched, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; i++)
        have[i] = __atomic_load_n(&touched[i], __ATOMIC_RELAXED);
    if (must)
        have[count++] = must->address;
    qsort(have, count, sizeof *have, by_value);
    for (uint32_t i = 0; i < count; i++)
        if (!kept || have[i] != have[kept - 1])
            have[kept++] = have[i];
    return kept;
}

void sentinel_choose(struct tracked_stream *stream, const struct allocation *must, struct sentinel_choice *out)
{
    struct collecting c = {.context = stream->context->id, .stream = stream->id, .out = out};
    uint64_t start;
    *out = (struct sentinel_choice){.all = true};
    if (alloc_table_count() <= SENTINEL_LOOK_MAX) {
        collect_from(&c, 0);
        return;
    }
    struct allocation a;
    out->all = false;
    uint64_t only = must ? must->address : 0, *have = malloc((STREAM_TOUCHED + 1) * sizeof *have);
    c.have_count = have ? take_touched(stream, must, have) : must != NULL;
    c.have = have ? have : &only;
    for (uint32_t i = 0; i < c.have_count; i++)
        if (alloc_table_exact(c.have[i], &a) && concerns(&c, &a))
            add(out, &a);
    c.limit = out->count + SENTINEL_LOOK_MAX / 2;
    start = __atomic_load_n(&stream->look_cursor, __ATOMIC_RELAXED);
    collect_from(&c, start);
    if (!c.next && start) { /* around the end */
        c.end = start;
        collect_from(&c, 0);
    }
    __atomic_store_n(&stream->look_cursor, c.next, __ATOMIC_RELAXED);
    free(have);
}

void sentinel_choose_next(struct tracked_stream *stream, uint64_t *cursor, struct sentinel_choice *out)
{
    struct collecting c = {.context = stream->context->id, .stream = stream->id, .limit = SENTINEL_LOOK_MAX};
    *out = (struct sentinel_choice){.all = false};
    c.out = out;
    collect_from(&c, *cursor);
    *cursor = c.next;
}

void sentinel_choose_for_copies(struct device_work *work, struct sentinel_choice *out)
{
    struct collecting c = {.context = work->context->id, .limit = COPY_MAX, .out = out};
    uint64_t cursor = __atomic_load_n(&work->copy_cursor, __ATOMIC_RELAXED);
    *out = (struct sentinel_choice){.all = true};
    if (alloc_table_count() <= COPY_MAX) {
        c.limit = 0;
        collect_from(&c, 0);
        return;
    }
    collect_from(&c, cursor);
    __atomic_store_n(&work->copy_cursor, c.next, __ATOMIC_RELAXED);
}

/* Few streams ever need it. */
static uint64_t *touched_of(struct tracked_stream *stream)
{
    enum { BYTES = STREAM_TOUCHED * sizeof(uint64_t) };
    uint64_t *touched = __atomic_load_n(&stream->touched, __ATOMIC_ACQUIRE), *fresh;
    if (touched || !memory_may(BYTES))
        return touched;
    fresh = calloc(1, BYTES);
    if (fresh &&
        __atomic_compare_exchange_n(&stream->touched, &touched, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    free(fresh);
    memory_give(BYTES);
    return touched;
}

void sentinel_touched(struct tracked_stream *stream, const uint8_t *arguments, uint32_t bytes)
{
    struct allocation a;
    uint64_t word, *touched;
    if (!stream || alloc_table_count() <= SENTINEL_LOOK_MAX || !(touched = touched_of(stream)))
        return;
    for (uint32_t at = 0; at + 8 <= bytes; at += 8) {
        memcpy(&word, arguments + at, 8);
        if (!word || !alloc_table_find(word, &a) || (!a.head && !a.tail))
            continue;
        uint32_t count = __atomic_load_n(&stream->touched_count, __ATOMIC_ACQUIRE);
        bool again = false;
        for (uint32_t i = count > 8 ? count - 8 : 0; i < count && i < STREAM_TOUCHED && !again; i++)
            again = __atomic_load_n(&touched[i], __ATOMIC_RELAXED) == a.address;
        if (again || count >= STREAM_TOUCHED) /* full: the others' turn comes later */
            continue;
        __atomic_store_n(&touched[count], a.address, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->touched_count, count + 1, __ATOMIC_RELEASE);
    }
}
