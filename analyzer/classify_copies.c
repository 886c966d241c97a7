/* classify_copies.c - copies and memsets that leave the allocation they start in. Their records alone show it. */
#include <inttypes.h>
#include <string.h>

#include "analyzer/finding.h"

struct extent {
    uint64_t first, end;
    const char *call; /* "copy", "memset" */
    uint32_t stack;
    bool write;
};

/* Allocations with memory of somebody else's behind them may be crossed on purpose. */
static bool stands_alone(const struct model_allocation *a)
{
    switch (a->record->kind) {
    case CAP_ALLOC_DEVICE:
    case CAP_ALLOC_PITCHED:
    case CAP_ALLOC_MANAGED:
    case CAP_ALLOC_ASYNC:
        return true;
    default:
        return false;
    }
}

static struct finding *same_cause(struct findings *out, const struct extent *e, const struct model_allocation *a)
{
    for (size_t i = 0; i < out->count; i++) {
        struct finding *f = &out->items[i];
        bool same_class = f->class == (e->write ? FINDING_OUT_OF_BOUNDS_WRITE : FINDING_OUT_OF_BOUNDS_READ);
        if (same_class && !f->launch && f->allocation == a->id)
            return f;
    }
    return NULL;
}

static void take_extent(const struct model *m, const struct model_live *live, const struct extent *e,
                        struct symbols *symbols, struct findings *out)
{
    const struct model_allocation *a = model_live_find(live, e->first);
    if (!a || !stands_alone(a) || e->end <= a->address + a->bytes || same_cause(out, e, a))
        return;
    size_t index = findings_add(out, e->write ? FINDING_OUT_OF_BOUNDS_WRITE : FINDING_OUT_OF_BOUNDS_READ, 0.95);
    if (index == SIZE_MAX)
        return;
    struct finding *f = &out->items[index];
    char place[200];
    const struct symbol_stack *s = symbols_stack(symbols, e->stack);
    if (s->own < s->count) {
        f->file = strdup(s->frames[s->own].file);
        f->line = s->frames[s->own].line;
        f->function = s->frames[s->own].function ? strdup(s->frames[s->own].function) : NULL;
    }
    f->allocation = a->id;
    f->offset = (int64_t)a->bytes;
    symbols_place(symbols, a->record->stack, place, sizeof place);
    finding_summary(f, "%" PRIu64 " bytes %s past the end of allocation %u%s%s%s by a %s",
                    e->end - (a->address + a->bytes), e->write ? "written" : "read", a->id,
                    *place ? " (allocated at " : "", place, *place ? ")" : "", e->call);
    finding_evidence(f, "call", "a %s of bytes %" PRIu64 " to %" PRIu64 " of an allocation of %" PRIu64, e->call,
                     e->first - a->address, e->end - a->address, a->bytes);
    finding_next(f, "ops-debug report -v %s", m->capture->shell_path);
}

static uint64_t copy_end(const struct cap_copy *c, uint64_t first, uint64_t pitch, uint64_t slice_pitch)
{
    return first + (c->height - 1) * pitch + (c->depth - 1) * slice_pitch +
           c->width; /* capture_check.c: does not wrap */
}

static void take_copy(const struct model *m, const struct model_live *live, const struct cap_copy *c,
                      struct symbols *symbols, struct findings *out)
{
    if (c->result != 0 || !c->width || !c->height || !c->depth || c->kind == CAP_COPY_ARRAY)
        return;
    take_extent(m, live,
                &(struct extent){c->target, copy_end(c, c->target, c->target_pitch, c->target_slice_pitch), "copy",
                                 c->stack, true},
                symbols, out);
    take_extent(m, live,
                &(struct extent){c->source, copy_end(c, c->source, c->source_pitch, c->source_slice_pitch), "copy",
                                 c->stack, false},
                symbols, out);
}

static void take_set(const struct model *m, const struct model_live *live, const struct cap_set *s,
                     struct symbols *symbols, struct findings *out)
{
    if (s->result != 0 || !s->width || !s->height)
        return;
    take_extent(
        m, live,
        &(struct extent){s->target, s->target + (s->height - 1) * s->pitch + s->width, "memset", s->stack, true},
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
