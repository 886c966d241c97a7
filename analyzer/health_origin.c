#include "analyzer/health_origin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/order.h"

/* ---- made here ---- */

/* Is a stored NaN made by an instruction of this launch? Its PTX line, or 0. */
static uint32_t nan_line(const struct rerun *r)
{
    struct shadow_element e;
    for (size_t i = 0; i < r->shadow.memory.count; i++) {
        const struct reference_region *region = &r->shadow.memory.regions[i];
        for (uint64_t cursor = 0; region->shadow && shadow_next_element(region, &cursor, &e);)
            if (isnan(e.value) && e.shadow->origin)
                return e.shadow->origin;
    }
    return 0;
}

static const struct ptx_number_event *event_of(const struct rerun *r, enum ptx_number_kind kind, uint32_t line)
{
    for (size_t i = 0; i < r->shadow.result.event_count; i++) {
        const struct ptx_number_event *e = &r->shadow.result.events[i];
        if (e->kind == kind && (!line || e->access.ptx_line == line))
            return e;
    }
    return NULL;
}

static void take_birth(const struct rerun *r, struct health_launch *h)
{
    uint64_t nans = 0, infinities = 0;
    for (size_t i = 0; i < h->output_count; i++) {
        nans += h->outputs[i].nans;
        infinities += h->outputs[i].infinities;
    }
    uint32_t line = nans ? nan_line(r) : 0;
    const struct ptx_number_event *e = line                  ? event_of(r, PTX_NUMBER_NAN, line)
                                       : !nans && infinities ? event_of(r, PTX_NUMBER_INF, 0)
                                                             : NULL;
    h->born = line || e;
    if (!h->born)
        return;
    struct ptx_access place = e ? e->access : (struct ptx_access){.ptx_line = line};
    verify_take_access(r->module, &place, &h->place);
    h->has_thread = e != NULL;
    if (e) {
        h->operand_count = e->operand_count < 3 ? e->operand_count : 3;
        memcpy(h->operands, e->operands, sizeof h->operands);
        h->result = e->result;
    }
}

/* ---- carried in ---- */

/* The first bad element of what the launch had in the allocation before, of those that it read. */
static bool bad_input(struct health_scan *s, const struct model_launch *l, const struct rerun *r,
                      const struct model_allocation *a, uint64_t *offset)
{
    struct rerun_contents c;
    size_t region = rerun_region(r, a->id);
    const uint8_t *read = region == SIZE_MAX ? NULL : r->shadow.memory.regions[region].read;
    bool found = false;
    rerun_contents(&s->walk, l, a, CAP_BEFORE, &c);
    if (c.data) {
        enum element_type type = s->allocation_types[a - s->model->allocations];
        if (type == ELEMENT_TYPES)
            type = element_guess(c.data, c.bytes);
        uint32_t step = element_bytes(type);
        for (uint64_t at = 0; element_floating(type) && !found && at + step <= c.bytes; at += step)
            if ((!read || bit_get(read, at)) && rerun_known(&c, at, step) &&
                health_is_bad(s, element_value(type, c.data + at))) {
                *offset = at;
                found = true;
            }
    }
    rerun_contents_free(&c);
    return found;
}

static size_t last_bad_writer(const struct health *h, size_t before, uint32_t allocation)
{
    for (size_t i = before; i-- > 0;)
        for (size_t k = 0; k < h->launches[i].output_count; k++)
            if (h->launches[i].outputs[k].allocation == allocation)
                return i;
    return SIZE_MAX;
}

static bool points_into(const struct model_launch *l, const struct model_allocation *a)
{
    const uint8_t *params = model_launch_params(l);
    for (uint32_t at = 0; params && at + 8u <= l->record->param_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        if (word >= a->address && word - a->address < a->bytes)
            return true;
    }
    return false;
}

/* ---- written, but in no order ---- */

struct writer_query {
    const struct model_launch *reader;
    const struct model_allocation *allocation;
    const struct model_launch *writer; /* the last one that nothing orders before the reader */
};

static void take_pair(void *context, const struct order_pair *pair)
{
    struct writer_query *q = context;
    if (pair->allocation == q->allocation && pair->later->launch == q->reader && pair->earlier->launch &&
        pair->earlier->write)
        q->writer = pair->earlier->launch;
}

/* Do its snapshots show that the launch changed the allocation? */
static bool changed(const struct model *m, const struct model_launch *l, const struct model_allocation *a)
{
    const struct cap_snapshot *x, *y;
    for (size_t i = 0; (x = model_launch_snapshot(m, l, i)); i++)
        for (size_t k = 0; x->when == CAP_AFTER && x->allocation == a->id && (y = model_launch_snapshot(m, l, k)); k++)
            if (y->when == CAP_BEFORE && y->allocation == x->allocation && y->offset == x->offset &&
                y->bytes == x->bytes && (y->hash_low != x->hash_low || y->hash_high != x->hash_high))
                return true;
    return false;
}

/* A launch of another stream, after `since`, that writes the allocation, though the reader did not find what it writes.
 */
static void unordered_text(const struct health_scan *s, const struct model_launch *l, const struct model_allocation *a,
                           uint64_t since, char *out, size_t bytes)
{
    struct writer_query q = {.reader = l, .allocation = a};
    if (s->judgements->count && order_walk(s->model, s->judgements, take_pair, &q) && q.writer &&
        model_launch_seq(q.writer) > since) {
        snprintf(out, bytes, "launch %u, %.100s, writes it, but nothing orders it before", q.writer->number,
                 q.writer->kernel->name);
        return;
    }
    for (uint32_t number = l->number; number-- > 1;) {
        const struct model_launch *w = model_launch_by_number(s->model, number);
        if (!w || w->record->stream == l->record->stream || model_launch_seq(w) <= since || !changed(s->model, w, a))
            continue;
        snprintf(out, bytes,
                 "launch %u, %.100s, writes it in another stream; whether anything orders it before, verify tells",
                 w->number, w->kernel->name);
        return;
    }
}

/* The last record before the launch that may have written the byte, in words. */
static void writer_text(const struct health_scan *s, const struct model_launch *l, const struct model_allocation *a,
                        uint64_t offset, char *out, size_t bytes)
{
    const struct capture *c = s->model->capture;
    uint64_t address = a->address + offset, last = a->seq;
    snprintf(out, bytes, "nothing that was recorded wrote it");
    for (size_t i = 0; i < c->record_count && c->records[i]->seq < model_launch_seq(l); i++) {
        const struct cap_head *record = c->records[i];
        const char *how = NULL;
        if (record->seq <= a->seq)
            continue;
        if (record->type == CAP_COPY) {
            const struct cap_copy *copy = (const void *)record;
            if (address >= copy->target && address - copy->target < copy->width * copy->height * copy->depth)
                how = copy->kind == CAP_COPY_HTOD ? "copied there from the host" : "copied there from other memory";
        } else if (record->type == CAP_SET) {
            const struct cap_set *set = (const void *)record;
            if (address >= set->target && address - set->target < set->width * set->height)
                how = "set there by a memset";
        } else if (record->type == CAP_LAUNCH) {
            const struct model_launch *w = model_launch_by_seq(s->model, record->seq);
            if (w && model_launch_ran(w) && !w->snapshots && points_into(w, a)) {
                snprintf(out, bytes, "perhaps by launch %u, %.100s, which has no snapshots", w->number,
                         w->kernel->name);
                last = record->seq;
            }
        }
        if (how) {
            snprintf(out, bytes, "%s", how);
            last = record->seq;
        }
    }
    unordered_text(s, l, a, last, out, bytes);
}

static void take_source(struct health_scan *s, const struct rerun *r, size_t index)
{
    struct health_launch *h = &s->out->launches[index];
    const struct model_allocation *last = NULL;
    const struct cap_snapshot *p;
    for (size_t i = 0; (p = model_launch_snapshot(s->model, h->launch, i)); i++) {
        const struct model_allocation *a = model_allocation_by_id(s->model, p->allocation);
        uint64_t offset;
        if (p->when != CAP_BEFORE || !a || a == last || !bad_input(s, h->launch, r, a, &offset))
            continue;
        last = a;
        size_t parent = last_bad_writer(s->out, index, a->id);
        if (h->source && (h->parent != SIZE_MAX || parent == SIZE_MAX))
            continue; /* one that a bad launch wrote says more */
        h->source = a->id;
        h->parent = parent;
        if (parent == SIZE_MAX)
            writer_text(s, h->launch, a, offset, h->source_by, sizeof h->source_by);
    }
}

void health_find_origin(struct health_scan *s, size_t index)
{
    struct health_launch *h = &s->out->launches[index];
    struct rerun r;
    if (rerun_launch(&s->walk, h->launch, &r))
        take_birth(&r, h);
    else
        memcpy(h->not_run, r.reason, sizeof h->not_run);
    take_source(s, &r, index);
    /* Too large, no NaN or Inf: made here when nothing like it came in. */
    bool only_large = true;
    for (size_t i = 0; i < h->output_count; i++)
        only_large = only_large && h->outputs[i].nans + h->outputs[i].infinities == 0;
    h->born = h->born || (only_large && !h->source && !*h->not_run);
    rerun_free(&r);
}
