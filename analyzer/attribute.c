#include "analyzer/attribute.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/diag.h"

enum { SHOWN_BEFORE = 3, SHOWN = ATTRIBUTE_TRACED }; /* rows when no range is given */

struct maker {
    struct rerun_walk walk;
    struct rerun rerun;
    struct rerun_contents before, after; /* of the allocation */
    struct attribute *out;
    size_t region; /* of the allocation in the re-execution; SIZE_MAX: none */
};

/* ---- buffers ---- */

static bool take_buffer(struct maker *m, const struct model_allocation *a)
{
    struct attribute *out = m->out;
    for (size_t i = 0; i < out->buffer_count; i++)
        if (out->buffers[i].allocation == a)
            return true;
    struct attribute_buffer *more = realloc(out->buffers, (out->buffer_count + 1) * sizeof *more);
    if (!more)
        return false;
    out->buffers = more;
    more[out->buffer_count++] = (struct attribute_buffer){.allocation = a, .type = ELEMENT_TYPES};
    return true;
}

static bool list_buffers(struct maker *m)
{
    const struct model_launch *l = m->out->launch;
    const uint8_t *params = model_launch_params(l);
    bool ok = true;
    for (uint32_t at = 0; ok && params && at + 8u <= l->record->param_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        const struct model_allocation *a = model_live_find_inner(&m->walk.verify.live, word);
        ok = !a || take_buffer(m, a);
    }
    const struct cap_snapshot *s;
    for (size_t i = 0; ok && (s = model_launch_snapshot(m->walk.verify.model, l, i)); i++) {
        const struct model_allocation *a = model_allocation_by_id(m->walk.verify.model, s->allocation);
        ok = !a || take_buffer(m, a);
    }
    return ok;
}

static bool any_written(const struct reference_region *r)
{
    for (uint64_t k = 0; k < (r->bytes + 7) / 8; k++)
        if (r->written[k])
            return true;
    return false;
}

static void measure_buffers(struct maker *m)
{
    for (size_t i = 0; i < m->out->buffer_count; i++) {
        struct attribute_buffer *b = &m->out->buffers[i];
        struct rerun_contents before, after;
        size_t region = rerun_region(&m->rerun, b->allocation->id);
        rerun_contents(&m->walk, m->out->launch, b->allocation, CAP_BEFORE, &before);
        rerun_contents(&m->walk, m->out->launch, b->allocation, CAP_AFTER, &after);
        b->stored = region != SIZE_MAX && any_written(&m->rerun.shadow.memory.regions[region]);
        b->has_before = before.data && !before.known;
        b->has_after = after.data && !after.known;
        if (b->allocation == m->out->allocation)
            b->type = m->out->type;
        else if (region == SIZE_MAX || !rerun_stored_type(&m->rerun, region, &b->type))
            b->type = b->has_before  ? element_guess(before.data, before.bytes)
                      : b->has_after ? element_guess(after.data, after.bytes)
                                     : ELEMENT_U8;
        if (b->has_before)
            b->before = element_statistics(b->type, before.data, before.bytes);
        if (b->has_after)
            b->after = element_statistics(b->type, after.data, after.bytes);
        rerun_contents_free(&before);
        rerun_contents_free(&after);
    }
}

/* ---- which buffer, which type, which elements ---- */

/* How far the worst stored element of the region is from its shadow, in parts of its size; NaN where there should be a
 * number, or at all, is worst. */
static double worst_of(const struct reference_region *r, uint64_t *offset)
{
    double worst = -1;
    struct shadow_element e;
    for (uint64_t cursor = 0; r->shadow && shadow_next_element(r, &cursor, &e);) {
        double off = fabs(e.value - e.shadow->wide) / fmax(fabs(e.shadow->wide), 1e-6);
        off = isfinite(off) ? off : (double)INFINITY;
        if (off > worst) {
            worst = off;
            *offset = e.offset;
        }
    }
    return worst;
}

static const struct model_allocation *worst_buffer(const struct maker *m)
{
    const struct model_allocation *found = NULL;
    double worst = -2;
    uint64_t offset;
    for (size_t i = 0; i < m->out->buffer_count; i++) {
        const struct model_allocation *a = m->out->buffers[i].allocation;
        size_t region = rerun_region(&m->rerun, a->id);
        const struct reference_region *r = region == SIZE_MAX ? NULL : &m->rerun.shadow.memory.regions[region];
        double off = !r ? -1.5 : any_written(r) ? worst_of(r, &offset) : -1.25;
        if (off > worst) {
            worst = off;
            found = a;
        }
    }
    return found;
}

static void choose_type(struct maker *m, const struct attribute_request *request)
{
    struct attribute *out = m->out;
    out->type = request->type;
    if (request->has_type || (m->region != SIZE_MAX && rerun_stored_type(&m->rerun, m->region, &out->type)))
        return;
    out->type_guessed = true;
    const struct rerun_contents *from = m->after.data ? &m->after : &m->before;
    out->type = from->data ? element_guess(from->data, from->bytes) : ELEMENT_U8;
}

static enum status choose_range(const struct maker *m, const struct attribute_request *request, uint64_t *from,
                                uint64_t *to, struct diag *diag)
{
    uint32_t step = element_bytes(m->out->type);
    uint64_t elements = m->out->allocation->bytes / step, offset = 0;
    *from = request->from;
    *to = request->to;
    if (!request->has_range) {
        if (request->around >= 0)
            offset = (uint64_t)request->around;
        else if (m->region != SIZE_MAX)
            worst_of(&m->rerun.shadow.memory.regions[m->region], &offset);
        uint64_t middle = offset / step < elements ? offset / step : elements;
        *from = middle > SHOWN_BEFORE ? middle - SHOWN_BEFORE : 0;
        *to = *from + SHOWN;
        if (*to > elements) { /* near or past the end: its last ones */
            *to = elements;
            *from = elements > SHOWN && *from > elements - SHOWN ? elements - SHOWN : *from;
        }
    }
    if (*from >= *to || *to > elements)
        return diag_set(diag, STATUS_BAD_INPUT, "--elements", -1,
                        "allocation %u has elements 0:%" PRIu64 " of type %s; %" PRIu64 ":%" PRIu64
                        " is not among them",
                        m->out->allocation->id, elements, element_name(m->out->type), *from, *to);
    if (*to - *from > ATTRIBUTE_ROWS)
        return diag_set(diag, STATUS_BAD_INPUT, "--elements", -1, "at most %d elements at a time", ATTRIBUTE_ROWS);
    return STATUS_OK;
}

/* ---- rows ---- */

static struct attribute_value value_at(const struct rerun_contents *c, enum element_type type, uint64_t offset)
{
    if (!rerun_known(c, offset, element_bytes(type)))
        return (struct attribute_value){0};
    return (struct attribute_value){true, element_value(type, c->data + offset)};
}

static enum element_type shadow_type(unsigned kind)
{
    switch (kind) {
    case PTX_SHADOW_F16:
        return ELEMENT_F16;
    case PTX_SHADOW_BF16:
        return ELEMENT_BF16;
    case PTX_SHADOW_F32:
        return ELEMENT_F32;
    case PTX_SHADOW_F64:
        return ELEMENT_F64;
    default:
        return ELEMENT_TYPES;
    }
}

static void take_reference(const struct maker *m, struct attribute_row *row)
{
    const struct reference_region *r = &m->rerun.shadow.memory.regions[m->region];
    enum element_type type = m->out->type;
    uint32_t bytes = element_bytes(type);
    bool written = false;
    for (uint32_t k = 0; k < bytes; k++)
        written = written || bit_get(r->written, row->offset + k);
    /* What it left alone is as it was, where that is known. */
    if (!written && !rerun_known(&m->before, row->offset, bytes))
        return;
    row->reference = (struct attribute_value){true, element_value(type, r->host + row->offset)};
    row->bits_differ = row->device.known && memcmp(m->after.data + row->offset, r->host + row->offset, bytes) != 0;
    const struct ptx_shadow_value *s = r->shadow && row->offset % 2 == 0 ? &r->shadow[row->offset / 2] : NULL;
    if (!written || !s || shadow_type(s->kind) != type)
        return;
    row->wide = (struct attribute_value){true, s->wide};
    struct ptx_access place = {.ptx_line = s->origin};
    for (size_t i = 0; i < m->rerun.shadow.result.event_count; i++) {
        const struct ptx_number_event *e = &m->rerun.shadow.result.events[i];
        if (e->access.ptx_line == s->origin && e->count == 1) /* only then it was this element's thread */
            place = e->access;
    }
    if (s->origin)
        verify_take_access(m->rerun.module, &place, &row->origin);
}

static void take_row(struct maker *m, uint64_t element, const struct rerun_contents *inputs, struct attribute_row *row)
{
    struct attribute *out = m->out;
    uint32_t bytes = element_bytes(out->type);
    *row = (struct attribute_row){.element = element, .offset = element * bytes};
    row->before = value_at(&m->before, out->type, row->offset);
    row->device = value_at(&m->after, out->type, row->offset);
    for (size_t i = 0; i < out->input_count; i++)
        row->inputs[i] = value_at(&inputs[i], out->type, row->offset);
    if (m->region == SIZE_MAX)
        return;
    take_reference(m, row);
}

static void trace_rows(struct maker *m)
{
    struct attribute *out = m->out;
    struct ptx_access who[ATTRIBUTE_TRACED];
    struct rerun_stores stores = {.allocation = out->allocation->id,
                                  .offset = out->row_count ? out->rows[0].offset : 0,
                                  .bytes = element_bytes(out->type),
                                  .count = out->row_count < ATTRIBUTE_TRACED ? out->row_count : ATTRIBUTE_TRACED};
    if (m->region == SIZE_MAX)
        return;
    rerun_who_stored(&m->walk, out->launch, &m->rerun, &stores, who);
    for (size_t i = 0; i < stores.count; i++)
        if (who[i].ptx_line)
            verify_take_access(m->rerun.module, &who[i], &out->rows[i].stored);
}

static enum status take_rows(struct maker *m, uint64_t from, uint64_t to, struct diag *diag)
{
    struct attribute *out = m->out;
    struct rerun_contents inputs[ATTRIBUTE_INPUTS] = {{.data = NULL}};
    for (size_t i = 0; i < out->buffer_count && out->input_count < ATTRIBUTE_INPUTS; i++) {
        const struct attribute_buffer *b = &out->buffers[i];
        if (b->allocation == out->allocation || b->allocation->bytes != out->allocation->bytes || !b->has_before)
            continue;
        rerun_contents(&m->walk, out->launch, b->allocation, CAP_BEFORE, &inputs[out->input_count]);
        out->inputs[out->input_count++] = b->allocation;
    }
    out->rows = calloc((size_t)(to - from), sizeof *out->rows);
    for (uint64_t i = from; out->rows && i < to; i++) {
        take_row(m, i, inputs, &out->rows[out->row_count]);
        out->row_count++;
    }
    trace_rows(m);
    for (size_t i = 0; i < out->input_count; i++)
        rerun_contents_free(&inputs[i]);
    return out->rows ? STATUS_OK : diag_set(diag, STATUS_NO_MEMORY, "attribute", -1, "no memory");
}

static enum status make(struct maker *m, const struct attribute_request *request, struct diag *diag)
{
    struct attribute *out = m->out;
    uint64_t from, to;
    if (!rerun_at(&m->walk, out->launch) || !list_buffers(m))
        return diag_set(diag, STATUS_NO_MEMORY, "attribute", -1, "no memory");
    rerun_launch(&m->walk, out->launch, &m->rerun);
    memcpy(out->reason, m->rerun.reason, sizeof out->reason);
    memcpy(out->detail, m->rerun.detail, sizeof out->detail);
    if (!out->allocation)
        out->allocation = worst_buffer(m);
    if (!out->allocation)
        return diag_set(diag, STATUS_BAD_INPUT, m->walk.verify.model->capture->path, -1,
                        "launch %u reaches no recorded allocation", out->launch->number);
    m->region = rerun_region(&m->rerun, out->allocation->id);
    rerun_contents(&m->walk, out->launch, out->allocation, CAP_BEFORE, &m->before);
    rerun_contents(&m->walk, out->launch, out->allocation, CAP_AFTER, &m->after);
    choose_type(m, request);
    enum status status = choose_range(m, request, &from, &to, diag);
    if (status)
        return status;
    measure_buffers(m);
    return take_rows(m, from, to, diag);
}

enum status attribute_make(const struct model *model, const struct attribute_request *request, struct attribute *out,
                           struct diag *diag)
{
    *out = (struct attribute){.launch = request->launch, .allocation = request->allocation};
    struct maker m = {.out = out, .region = SIZE_MAX};
    enum status status = rerun_start(&m.walk, model, diag);
    if (status)
        return status;
    status = make(&m, request, diag);
    rerun_contents_free(&m.before);
    rerun_contents_free(&m.after);
    rerun_free(&m.rerun);
    rerun_end(&m.walk);
    if (status)
        attribute_free(out);
    return status;
}

void attribute_free(struct attribute *a)
{
    for (size_t i = 0; i < a->row_count; i++) {
        judgement_access_clear(&a->rows[i].origin);
        judgement_access_clear(&a->rows[i].stored);
    }
    free(a->rows);
    free(a->buffers);
    *a = (struct attribute){.rows = NULL};
}
