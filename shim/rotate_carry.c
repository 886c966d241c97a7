#include "shim/rotate_carry.h"

#include <string.h>

#include "common/map.h"
#include "shim/hooks.h"

void carry_each(const struct carry_records *records, carry_visit *visit, void *data)
{
    const uint8_t *bytes = records->data;
    for (size_t at = 0; records->bytes - at >= sizeof(struct cap_head);) {
        const struct cap_head *record = (const void *)(bytes + at);
        if (record->size < sizeof *record || record->size > records->bytes - at)
            return;
        visit(record, data);
        at += record->size;
    }
}

/* ---- how it is spread ---- */

struct spreading {
    struct carry_spread *out;
    uint64_t from, seen;
    unsigned taken;
};

static void measure(const struct cap_head *record, void *data)
{
    struct spreading *s = data;
    if (record->seq >= s->from)
        s->out->bytes += record->size;
}

static void sample(const struct cap_head *record, void *data)
{
    struct spreading *s = data;
    if (record->seq < s->from)
        return;
    s->seen += record->size;
    while (s->taken < CARRY_SAMPLES && s->seen * CARRY_SAMPLES >= (s->taken + UINT64_C(1)) * s->out->bytes)
        s->out->samples[s->taken++] = record->seq;
}

void carry_spread(struct carry_spread *out, const struct carry_records *records, uint64_t from)
{
    struct spreading s = {.out = out, .from = from};
    *out = (struct carry_spread){0};
    carry_each(records, measure, &s);
    if (out->bytes)
        carry_each(records, sample, &s);
}

uint64_t carry_spread_since(const struct carry_spread *spread, uint64_t seq)
{
    unsigned newer = 0;
    for (unsigned i = 0; i < CARRY_SAMPLES; i++)
        newer += spread->samples[i] >= seq;
    return spread->bytes * newer / CARRY_SAMPLES;
}

/* ---- what is needed ---- */

struct building {
    struct buf *out;
    uint64_t cut;
    struct map made, ended;     /* allocations: there, and freed before the cut */
    struct map created, undone; /* events */
    struct map paths;           /* of a thread: its newest range record before the cut */
    uint32_t tid, out_tid;      /* of what is being read, and written */
    bool no_memory;
};

static void put(struct building *b, struct map *map, uint64_t key, uint64_t value)
{
    b->no_memory = !map_put(map, key, value) || b->no_memory;
}

static bool has(const struct map *map, uint64_t key)
{
    uint64_t value;
    return map_get(map, key, &value);
}

static bool frees(const struct cap_free *r)
{
    return r->id && !r->result;
}

static void note_range(struct building *b, const struct cap_range *r)
{
    uint64_t before = 0;
    if (r->head.seq >= b->cut ||
        (r->kind != CAP_RANGE_PUSH && r->kind != CAP_RANGE_POP && r->kind != CAP_RANGE_THREAD_END))
        return;
    if (!map_get(&b->paths, r->thread, &before) ||
        ((const struct cap_range *)(uintptr_t)before)->head.seq < r->head.seq)
        put(b, &b->paths, r->thread, (uintptr_t)r);
}

static void note(const struct cap_head *record, void *data)
{
    struct building *b = data;
    const struct cap_free *freed = (const void *)record;
    const struct cap_event *event = (const void *)record;
    if (record->type == CAP_ALLOC)
        put(b, &b->made, ((const struct cap_alloc *)(const void *)record)->id, 1);
    else if (record->type == CAP_FREE && frees(freed) && record->seq < b->cut)
        put(b, &b->ended, freed->id, 1);
    else if (record->type == CAP_EVENT && !event->destroyed)
        put(b, &b->created, event->id, 1);
    else if (record->type == CAP_EVENT && record->seq < b->cut)
        put(b, &b->undone, event->id, 1);
    else if (record->type == CAP_RANGE)
        note_range(b, (const void *)record);
}

static bool is_needed(const struct building *b, const struct cap_head *record)
{
    const struct cap_free *freed = (const void *)record;
    const struct cap_event *event = (const void *)record;
    const struct cap_range *range = (const void *)record;
    uint64_t newest;
    switch (record->type) {
    case CAP_WRITER: /* written anew */
        return false;
    case CAP_ALLOC:
        return !has(&b->ended, ((const struct cap_alloc *)(const void *)record)->id);
    case CAP_FREE: /* without its allocation: that lies in a segment that stays */
        return record->seq >= b->cut || (frees(freed) && !has(&b->made, freed->id));
    case CAP_EVENT:
        if (!event->destroyed)
            return !has(&b->undone, event->id);
        return record->seq >= b->cut || !has(&b->created, event->id);
    case CAP_RANGE:
        return record->seq >= b->cut || (map_get(&b->paths, range->thread, &newest) && newest == (uintptr_t)range &&
                                         range->kind != CAP_RANGE_THREAD_END && range->path);
    default:
        return record->seq >= b->cut;
    }
}

static void carry(const struct cap_head *record, void *data)
{
    struct building *b = data;
    if (record->type == CAP_WRITER)
        b->tid = ((const struct cap_writer *)(const void *)record)->tid;
    if (!is_needed(b, record))
        return;
    if (b->tid != b->out_tid) {
        struct cap_writer writer = {.head = {sizeof writer, CAP_WRITER, HOOK_NONE, record->seq, record->tsc}};
        writer.tid = b->out_tid = b->tid;
        buf_append(b->out, &writer, sizeof writer);
    }
    buf_append(b->out, record, record->size);
}

bool carry_build(struct buf *out, const struct carry_records *carried, const struct carry_records *dropped,
                 uint64_t cut)
{
    const struct carry_records *const parts[] = {carried, dropped};
    struct building b = {.out = out, .cut = cut};
    for (int i = 0; i < 2; i++)
        carry_each(parts[i], note, &b);
    for (int i = 0; i < 2 && !b.no_memory; i++) {
        b.tid = parts[i]->tid;
        carry_each(parts[i], carry, &b);
    }
    map_free(&b.made);
    map_free(&b.ended);
    map_free(&b.created);
    map_free(&b.undone);
    map_free(&b.paths);
    return !b.no_memory && !out->failed;
}
