/* classify_copies.c - copies and memsets that leave the allocation they start in, or touch memory that is none. Their
 * records alone show it, whatever the driver made of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/finding.h"
#include "analyzer/place.h"

enum { INVALID_VALUE = 1 }; /* CUresult of cuda.h: what a driver answers to a copy that it refuses */

struct extent {
    uint64_t first, end;
    const char *call; /* "copy", "memset" */
    uint32_t stack;
    int32_t result;
    bool write;
    bool device; /* the call wants a device address there */
};

/* Memory that stands alone: whoever goes beyond its end goes where nothing of his is. The others may lie side by side,
 * or be part of something larger, on purpose. */
static bool stands_alone(const struct model_allocation *a)
{
    switch (a->record->kind) {
    case CAP_ALLOC_REGISTERED:
    case CAP_ALLOC_MAPPED:
    case CAP_ALLOC_IMPORTED:
        return false;
    default:
        return true;
    }
}

static bool on_device(const struct model_allocation *a)
{
    switch (a->record->kind) {
    case CAP_ALLOC_DEVICE:
    case CAP_ALLOC_PITCHED:
    case CAP_ALLOC_ASYNC:
    case CAP_ALLOC_POOL:
        return true;
    default:
        return false;
    }
}

static struct finding *same_cause(struct findings *out, enum finding_class class, const struct model_allocation *a,
                                  bool refused)
{
    for (size_t i = 0; i < out->count; i++) {
        struct finding *f = &out->items[i];
        if (f->class == class && !f->launch && a && f->allocation == a->id && f->refused == refused)
            return f;
    }
    return NULL;
}

static struct finding *add(const struct model *m, const struct extent *e, enum finding_class class, double confidence,
                           const struct model_allocation *a, struct symbols *symbols, struct findings *out)
{
    bool refused = e->result != 0;
    size_t index = same_cause(out, class, a, refused) ? SIZE_MAX : findings_add(out, class, confidence);
    if (index == SIZE_MAX)
        return NULL;
    struct finding *f = &out->items[index];
    const struct symbol_stack *s = symbols_stack(symbols, e->stack);
    if (s->own < s->count) {
        f->file = s->frames[s->own].file ? strdup(s->frames[s->own].file) : NULL;
        f->line = s->frames[s->own].line;
        f->function = s->frames[s->own].function ? strdup(s->frames[s->own].function) : NULL;
    }
    f->allocation = a ? a->id : 0;
    f->refused = refused;
    if (class != FINDING_USE_AFTER_FREE)
        f->cure = "check the size, the pitch and the addresses that the call is given";
    finding_next(f, "ops-debug report -v %s", m->capture->shell_path);
    return f;
}

static enum finding_class class_of(const struct extent *e)
{
    return e->write ? FINDING_OUT_OF_BOUNDS_WRITE : FINDING_OUT_OF_BOUNDS_READ;
}

/* What the driver refused has written nothing. */
static const char *does(const struct extent *e)
{
    return e->result ? e->write ? "would have been written" : "would have been read" : e->write ? "written" : "read";
}

/* "16 bytes" from `first` on; an end beyond all addresses is no number worth saying. */
static void size_text(const struct extent *e, uint64_t first, char out[40])
{
    if (e->end == UINT64_MAX)
        snprintf(out, 40, "more bytes than there are addresses");
    else
        snprintf(out, 40, "%" PRIu64 " bytes", e->end - first);
}

static void add_result(struct finding *f, const struct extent *e)
{
    if (f && e->result)
        finding_evidence(f, "call", "the driver refused it with error %d", e->result);
}

/* How far the memory goes on: one mapping behind the other counts as one. */
static uint64_t end_of(const struct model_live *live, const struct model_allocation *a)
{
    uint64_t end = a->address + a->bytes;
    const struct model_allocation *next;
    while (!stands_alone(a) && (next = model_live_find(live, end)) && next->record->kind == a->record->kind)
        end = next->address + next->bytes;
    return end;
}

static void take_tail(const struct model *m, const struct extent *e, const struct model_allocation *a, uint64_t end,
                      struct symbols *symbols, struct findings *out)
{
    char text[PLACE_ALLOCATION_BYTES], size[40];
    struct finding *f = add(m, e, class_of(e), 0.95, a, symbols, out);
    if (!f)
        return;
    f->offset = (int64_t)(e->first > end ? e->first - a->address : a->bytes);
    place_allocation(symbols, a, text);
    size_text(e, e->first > end ? e->first : end, size);
    finding_summary(f, "%s %s past the end of %s by a %s", size, does(e), text, e->call);
    if (e->end != UINT64_MAX)
        finding_evidence(f, "call", "a %s of bytes %" PRIu64 " to %" PRIu64 " of an allocation of %" PRIu64, e->call,
                         e->first - a->address, e->end - a->address, a->bytes);
    add_result(f, e);
}

static void take_head(const struct model *m, const struct extent *e, const struct model_allocation *a,
                      struct symbols *symbols, struct findings *out)
{
    char text[PLACE_ALLOCATION_BYTES];
    struct finding *f = add(m, e, class_of(e), 0.9, a, symbols, out);
    if (!f)
        return;
    f->offset = (int64_t)(e->first - a->address); /* below 0 */
    place_allocation(symbols, a, text);
    finding_summary(f, "%" PRIu64 " bytes %s before the start of %s by a %s", a->address - e->first, does(e), text,
                    e->call);
    add_result(f, e);
}

static void take_freed(const struct model *m, const struct extent *e, const struct model_allocation *a,
                       struct symbols *symbols, struct findings *out)
{
    char text[PLACE_ALLOCATION_BYTES], place[200];
    struct finding *f = add(m, e, FINDING_USE_AFTER_FREE, 0.95, a, symbols, out);
    if (!f)
        return;
    f->offset = (int64_t)(e->first - a->address);
    place_allocation(symbols, a, text);
    symbols_place(symbols, a->free_stack, place, sizeof place);
    finding_summary(f, "a %s %s %s, which was %s before", e->call, e->write ? "writes to" : "reads from", text,
                    a->released ? "released with its context" : "freed");
    if (*place)
        finding_evidence(f, "free", "freed at %s", place);
    add_result(f, e);
}

static void take_nowhere(const struct model *m, const struct extent *e, struct symbols *symbols, struct findings *out)
{
    struct finding *f = add(m, e, class_of(e), 0.8, NULL, symbols, out);
    if (!f)
        return;
    finding_summary(f, "a %s %s address 0x%" PRIx64 ", where no device memory was allocated: a pointer of the host?",
                    e->call, e->write ? "writes to" : "reads from", e->first);
    add_result(f, e);
}

/* The live allocation nearest below, or above, the address, which lies in none. */
static const struct model_allocation *neighbour(const struct model_live *live, uint64_t address, bool above)
{
    struct address_place place = address_list_from(&live->live, address); /* in none of them */
    return above ? address_list_next(&live->live, &place) : address_list_before(&live->live, place);
}

static void take_extent(const struct model *m, const struct model_live *live, const struct extent *e,
                        struct symbols *symbols, struct findings *out)
{
    const struct model_allocation *a = model_live_find(live, e->first), *below, *above, *freed;
    if (a) {
        uint64_t end = end_of(live, a);
        if (e->end > end && (stands_alone(a) || e->result == INVALID_VALUE))
            take_tail(m, e, a, end, symbols, out);
        return;
    }
    below = neighbour(live, e->first, false);
    above = neighbour(live, e->first, true);
    freed = model_live_find_freed(live, e->first);
    if (below && e->first < below->address + below->bytes + below->record->tail_redzone)
        take_tail(m, e, below, below->address + below->bytes, symbols, out); /* it starts in the redzone */
    else if (above && e->end > above->address && e->end <= above->address + above->bytes && stands_alone(above) &&
             !freed)
        take_head(m, e, above, symbols, out);
    else if (e->device && freed && on_device(freed))
        take_freed(m, e, freed, symbols, out);
    else if (e->device && e->result == INVALID_VALUE && !freed && e->first)
        take_nowhere(m, e, symbols, out);
}

/* Of a shape whose end wraps around: as far as there are addresses. */
static uint64_t copy_end(uint64_t first, const uint64_t size[3], uint64_t pitch, uint64_t slice_pitch)
{
    uint64_t rows, slices, end = first;
    if (__builtin_mul_overflow(size[1] - 1, pitch, &rows) ||
        __builtin_mul_overflow(size[2] - 1, slice_pitch, &slices) || __builtin_add_overflow(end, rows, &end) ||
        __builtin_add_overflow(end, slices, &end) || __builtin_add_overflow(end, size[0], &end))
        return UINT64_MAX;
    return end;
}

static void take_copy(const struct model *m, const struct model_live *live, const struct cap_copy *c,
                      struct symbols *symbols, struct findings *out)
{
    const uint64_t size[3] = {c->width, c->height, c->depth};
    bool array = c->kind == CAP_COPY_ARRAY; /* where a side is an array, its handle stands: no address of ours */
    if (!c->width || !c->height || !c->depth || (c->result != 0 && c->result != INVALID_VALUE))
        return;
    struct extent to = {.first = c->target,
                        .end = copy_end(c->target, size, c->target_pitch, c->target_slice_pitch),
                        .call = "copy",
                        .stack = c->stack,
                        .result = c->result,
                        .write = true,
                        .device = c->kind == CAP_COPY_HTOD || c->kind == CAP_COPY_DTOD};
    struct extent from = {.first = c->source,
                          .end = copy_end(c->source, size, c->source_pitch, c->source_slice_pitch),
                          .call = "copy",
                          .stack = c->stack,
                          .result = c->result,
                          .device = c->kind == CAP_COPY_DTOH || c->kind == CAP_COPY_DTOD};
    if (!array || model_live_find(live, to.first))
        take_extent(m, live, &to, symbols, out);
    if (!array || model_live_find(live, from.first))
        take_extent(m, live, &from, symbols, out);
}

static void take_set(const struct model *m, const struct model_live *live, const struct cap_set *s,
                     struct symbols *symbols, struct findings *out)
{
    const uint64_t size[3] = {s->width, s->height, 1};
    if (!s->width || !s->height || (s->result != 0 && s->result != INVALID_VALUE))
        return;
    take_extent(m, live,
                &(struct extent){.first = s->target,
                                 .end = copy_end(s->target, size, s->pitch, 0),
                                 .call = "memset",
                                 .stack = s->stack,
                                 .result = s->result,
                                 .write = true,
                                 .device = true},
                symbols, out);
}

void classify_copies(const struct model *m, struct symbols *symbols, struct findings *out)
{
    struct model_live live;
    model_live_start(&live, m);
    for (size_t i = 0; i < m->capture->record_count; i++) {
        const struct cap_head *record = m->capture->records[i];
        if (record->type != CAP_COPY && record->type != CAP_SET)
            continue;
        model_live_advance(&live, record->seq);
        if (record->type == CAP_COPY)
            take_copy(m, &live, (const void *)record, symbols, out);
        else
            take_set(m, &live, (const void *)record, symbols, out);
    }
    model_live_end(&live);
}
