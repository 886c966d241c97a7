/* classify_frees.c - frees of what is not allocated, any more or at all, or not by the function that frees. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/finding.h"
#include "analyzer/place.h"

struct frees {
    const struct model *model;
    struct symbols *symbols;
    struct map why;   /* seq of a CAP_FREE -> its CAP_BAD_FREE */
    struct map hooks; /* index -> string id */
};

static bool index_records(struct frees *all)
{
    const struct capture *c = all->model->capture;
    bool ok = true;
    for (size_t i = 0; ok && i < c->record_count; i++) {
        const struct cap_head *r = c->records[i];
        if (r->type == CAP_BAD_FREE)
            ok = map_put(&all->why, ((const struct cap_bad_free *)r)->free, (uint64_t)(uintptr_t)r);
        else if (r->type == CAP_HOOK)
            ok = map_put(&all->hooks, ((const struct cap_hook *)r)->index, ((const struct cap_hook *)r)->name);
    }
    return ok;
}

static const struct cap_bad_free *why(const struct frees *all, const struct cap_free *record)
{
    uint64_t at;
    return map_get(&all->why, record->head.seq, &at) ? (const void *)(uintptr_t)at : NULL;
}

/* As the program called it: "cudaFree". */
static const char *function(const struct frees *all, const struct cap_free *record)
{
    uint64_t name;
    const char *text =
        map_get(&all->hooks, record->head.scope, &name) ? capture_string(all->model->capture, (uint32_t)name) : "";
    return *text ? text : "the call";
}

static const struct model_allocation *freed_before(const struct model *m, uint64_t address, uint64_t seq)
{
    const struct model_allocation *last = NULL;
    for (size_t i = 0; i < m->allocation_count; i++) {
        const struct model_allocation *a = &m->allocations[i];
        bool starts = a->address == address || (a->record->host_address && a->record->host_address == address);
        if (!a->parent && starts && a->free_seq < seq && (!last || a->free_seq > last->free_seq))
            last = a;
    }
    return last;
}

static const char *kind_name(uint32_t kind)
{
    switch (kind) {
    case CAP_ALLOC_HOST:
        return "page-locked host memory";
    case CAP_ALLOC_REGISTERED:
        return "registered host memory";
    case CAP_ALLOC_VARIABLE:
        return "a variable of a module";
    case CAP_ALLOC_MAPPED:
        return "memory that was mapped by cuMemMap";
    case CAP_ALLOC_IMPORTED:
        return "memory of another process";
    case CAP_ALLOC_ASYNC:
    case CAP_ALLOC_POOL:
        return "memory of a pool";
    default:
        return "device memory";
    }
}

static void summarise(const struct frees *all, const struct cap_free *record, const struct model_allocation *before,
                      struct finding *f)
{
    char text[PLACE_ALLOCATION_BYTES] = "";
    const struct cap_bad_free *w = why(all, record);
    const struct model_allocation *a = before;
    if (!a && w)
        a = model_allocation_by_id(all->model, w->allocation);
    if (!a)
        a = model_allocation_by_id(all->model, record->id);
    if (a)
        place_allocation(all->symbols, a, text);
    f->allocation = a ? a->id : 0;
    const char *by = function(all, record);
    if (before && before->released)
        finding_summary(f, "%s is freed after its context had ended, and it with that", text);
    else if (before)
        finding_summary(f, "%s is freed a second time", text);
    else if (a && w && w->kind == CAP_BAD_FREE_INSIDE) {
        f->offset = w->offset;
        finding_summary(f, "%s is given an address %" PRId64 " bytes inside %s; only its start can be freed", by,
                        w->offset, text);
    } else if (a)
        finding_summary(f, "%s is given %s, which is %s and freed in another way", by, text,
                        kind_name(a->record->kind));
    else if (w && w->kind == CAP_BAD_FREE_HOST)
        finding_summary(f, "%s is given 0x%" PRIx64 ", memory of the host that CUDA did not allocate", by,
                        record->address);
    else
        finding_summary(f, "%s is given 0x%" PRIx64 ", where no allocation starts", by, record->address);
}

static bool same(const struct finding *old, enum finding_class class, const struct cap_free *record,
                 uint32_t allocation)
{
    return old->class == class && old->stack == record->stack && old->allocation == allocation;
}

static void take(const struct frees *all, const struct cap_free *record, struct findings *out)
{
    const struct model_allocation *before = freed_before(all->model, record->address, record->head.seq);
    const struct cap_bad_free *w = why(all, record);
    if (record->id || (w && w->allocation))
        before = NULL; /* something lives there */
    enum finding_class class = before && !before->released ? FINDING_DOUBLE_FREE : FINDING_INVALID_FREE;
    uint32_t allocation = before ? before->id : w && w->allocation ? w->allocation : record->id;
    for (size_t i = 0; i < out->count; i++)
        if (same(&out->items[i], class, record, allocation))
            return; /* a loop */
    size_t index = findings_add(out, class, 0.95);
    if (index == SIZE_MAX)
        return;
    struct finding *f = &out->items[index];
    char place[200];
    const struct symbol_stack *s = symbols_stack(all->symbols, record->stack);
    f->stack = record->stack;
    if (s->own < s->count) {
        f->file = strdup(s->frames[s->own].file);
        f->line = s->frames[s->own].line;
        f->function = s->frames[s->own].function ? strdup(s->frames[s->own].function) : NULL;
    }
    summarise(all, record, before, f);
    finding_evidence(f, "free", "the driver answered with error %d", record->result);
    if (before && before->free_stack)
        finding_evidence(f, "free", "first freed at %s",
                         symbols_place(all->symbols, before->free_stack, place, sizeof place));
}

void classify_frees(const struct model *m, struct symbols *symbols, struct findings *out)
{
    struct frees all = {.model = m, .symbols = symbols};
    if (m->bad_free_count && !index_records(&all))
        out->no_memory = true;
    for (size_t i = 0; i < m->bad_free_count; i++) {
        const struct cap_free *record = m->bad_frees[i];
        /* Freeing nothing is allowed. A free that worked was of memory that we did not see being allocated. */
        if (record->address != 0 && record->result != 0)
            take(&all, record, out);
    }
    map_free(&all.why);
    map_free(&all.hooks);
}
