#include "analyzer/health.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/health_origin.h"
#include "common/diag.h"

enum { SAMPLED_FIRST = 1024, SAMPLED_RANDOM = 1024 };

/* ---- which outputs are floating-point ---- */

static bool learn(struct health_scan *s, uint32_t kernel, uint32_t offset, enum element_type type)
{
    for (size_t i = 0; i < s->type_count; i++)
        if (s->types[i].kernel == kernel && s->types[i].offset == offset)
            return true;
    if ((s->type_count & (s->type_count - 1)) == 0) {
        struct health_type *more = realloc(s->types, (s->type_count ? 2 * s->type_count : 1) * sizeof *more);
        if (!more)
            return false;
        s->types = more;
    }
    s->types[s->type_count++] = (struct health_type){kernel, offset, type};
    return true;
}

static bool knows_kernel(const struct health_scan *s, uint32_t kernel)
{
    for (size_t i = 0; i < s->type_count; i++)
        if (s->types[i].kernel == kernel)
            return true;
    return false;
}

/* What each pointer argument of the kernel gets stored, from one launch of it. */
static bool learn_kernel(struct health_scan *s, const struct model_launch *l)
{
    struct rerun r;
    uint32_t kernel = l->kernel->record->id;
    bool ok = true;
    if (knows_kernel(s, kernel))
        return true;
    if (rerun_launch(&s->walk, l, &r)) {
        ok = learn(s, kernel, UINT32_MAX, ELEMENT_TYPES); /* also when it stores nothing */
        for (size_t i = 0; ok && i < r.shadow.memory.pointer_count; i++) {
            const struct reference_pointer *p = &r.shadow.memory.pointers[i];
            enum element_type type = ELEMENT_TYPES;
            if (rerun_stored_type(&r, p->region, &type))
                s->allocation_types[r.shadow.memory.info[p->region].allocation - s->model->allocations] = type;
            ok = learn(s, kernel, p->offset, type);
        }
    }
    rerun_free(&r);
    return ok;
}

/* ELEMENT_TYPES: the launch stores no floats there. */
static enum element_type output_type(const struct health_scan *s, const struct model_launch *l, size_t allocation,
                                     bool *known)
{
    const struct model_allocation *a = &s->model->allocations[allocation];
    const uint8_t *params = model_launch_params(l);
    *known = true;
    for (size_t i = 0; params && i < s->type_count; i++) {
        const struct health_type *t = &s->types[i];
        uint64_t word;
        if (t->kernel != l->kernel->record->id || t->offset == UINT32_MAX || t->offset + 8u > l->record->param_bytes)
            continue;
        memcpy(&word, params + t->offset, sizeof word);
        if (word >= a->address && word - a->address < a->bytes)
            return t->type;
    }
    *known = s->allocation_types[allocation] != ELEMENT_TYPES;
    return s->allocation_types[allocation];
}

/* ---- looking ---- */

bool health_is_bad(const struct health_scan *s, double value)
{
    return !isfinite(value) || fabs(value) > s->out->threshold;
}

/* Bad, and not there before the launch. */
static bool made_bad(const struct health_scan *s, enum element_type type, const uint8_t *after, const uint8_t *before,
                     uint64_t offset)
{
    return health_is_bad(s, element_value(type, after + offset)) &&
           (!before || memcmp(after + offset, before + offset, element_bytes(type)) != 0);
}

static bool suspicious(const struct health_scan *s, enum element_type type, const uint8_t *after, const uint8_t *before,
                       uint64_t count)
{
    uint64_t step = element_bytes(type), random = 88172645463325252u;
    for (uint64_t i = 0; i < count && i < SAMPLED_FIRST; i++)
        if (made_bad(s, type, after, before, i * step))
            return true;
    for (uint64_t i = 0; count > SAMPLED_FIRST && i < SAMPLED_RANDOM; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if (made_bad(s, type, after, before, random % count * step))
            return true;
    }
    return false;
}

static void look(const struct health_scan *s, const struct cap_snapshot *snapshot, enum element_type type,
                 const uint8_t *after, const uint8_t *before, struct health_launch *to)
{
    uint64_t step = element_bytes(type), count = snapshot->bytes / step;
    struct health_output o = {.allocation = snapshot->allocation, .type = type, .of = count};
    if (!s->out->full && !suspicious(s, type, after, before, count))
        return;
    for (uint64_t i = 0; i < count; i++) {
        if (!made_bad(s, type, after, before, i * step))
            continue;
        double value = element_value(type, after + i * step);
        if (o.bad++ == 0) {
            o.offset = snapshot->offset + i * step;
            o.value = value;
        }
        o.nans += isnan(value) != 0;
        o.infinities += isinf(value) != 0;
    }
    if (o.bad && to->output_count < HEALTH_OUTPUTS)
        to->outputs[to->output_count++] = o;
}

/* The re-execution of the launch that is looked at, made when it is first asked for. */
struct again {
    struct rerun rerun;
    bool made;
};

/* Bad values that the launch stored where the same ones were already: the snapshots do not show that, the re-execution
 * does, where it stores a bad value there, too. */
static void look_again(struct health_scan *s, const struct model_launch *l, const struct cap_snapshot *snapshot,
                       enum element_type type, const uint8_t *after, struct again *again, struct health_launch *to)
{
    struct diag diag;
    uint64_t step = element_bytes(type), count = snapshot->bytes / step;
    struct health_output o = {.allocation = snapshot->allocation, .type = type, .of = count};
    if (to->output_count == HEALTH_OUTPUTS || !suspicious(s, type, after, NULL, count))
        return;
    if (!again->made)
        rerun_launch(&s->walk, l, &again->rerun);
    again->made = true;
    /* The re-execution may have taken its place among the contents that are kept. */
    after = blob_cache_get(&s->walk.verify.blobs, (struct hash128){snapshot->hash_low, snapshot->hash_high},
                           snapshot->bytes, &diag);
    size_t region = rerun_region(&again->rerun, snapshot->allocation);
    const struct reference_region *r = region == SIZE_MAX ? NULL : &again->rerun.shadow.memory.regions[region];
    for (uint64_t i = 0; r && after && i < count; i++) {
        uint64_t at = snapshot->offset + i * step;
        double value = element_value(type, after + i * step);
        if (!health_is_bad(s, value) || at + step > r->bytes || !bit_get(r->written, at) ||
            !health_is_bad(s, element_value(type, r->host + at)))
            continue;
        if (o.bad++ == 0) {
            o.offset = at;
            o.value = value;
        }
        o.nans += isnan(value) != 0;
        o.infinities += isinf(value) != 0;
    }
    if (!o.bad)
        return;
    to->outputs[to->output_count++] = o;
    s->out->outputs++;
}

/* A copy of the contents before the launch of the same bytes, or NULL. */
static uint8_t *before_of(struct health_scan *s, const struct model_launch *l, const struct cap_snapshot *after,
                          bool *unchanged)
{
    struct diag diag;
    *unchanged = false;
    const struct cap_snapshot *b;
    for (size_t i = 0; (b = model_launch_snapshot(s->model, l, i)); i++) {
        if (b->when != CAP_BEFORE || b->allocation != after->allocation || b->offset != after->offset ||
            b->bytes != after->bytes)
            continue;
        *unchanged = b->hash_low == after->hash_low && b->hash_high == after->hash_high;
        const uint8_t *data = *unchanged ? NULL
                                         : blob_cache_get(&s->walk.verify.blobs,
                                                          (struct hash128){b->hash_low, b->hash_high}, b->bytes, &diag);
        uint8_t *copy = data ? malloc(b->bytes) : NULL;
        if (copy)
            memcpy(copy, data, b->bytes);
        return copy;
    }
    return NULL;
}

static void look_at_snapshot(struct health_scan *s, const struct model_launch *l, const struct cap_snapshot *snapshot,
                             struct again *again, struct health_launch *to)
{
    struct diag diag;
    bool known, unchanged;
    const struct model_allocation *a = model_allocation_by_id(s->model, snapshot->allocation);
    if (!a || snapshot->bytes == 0)
        return;
    enum element_type type = output_type(s, l, (size_t)(a - s->model->allocations), &known);
    if (known && type == ELEMENT_TYPES)
        return;
    uint8_t *before = before_of(s, l, snapshot, &unchanged);
    const struct hash128 hash = {snapshot->hash_low, snapshot->hash_high};
    const uint8_t *after =
        unchanged && !known ? NULL : blob_cache_get(&s->walk.verify.blobs, hash, snapshot->bytes, &diag);
    if (after && !known)
        type = element_guess(after, snapshot->bytes);
    if (after && element_floating(type)) {
        size_t found = to->output_count;
        if (!unchanged) {
            s->out->outputs++;
            s->out->guessed += !known;
            look(s, snapshot, type, after, before, to);
        }
        if (known && to->output_count == found)
            look_again(s, l, snapshot, type, after, again, to);
    }
    free(before);
}

static bool look_at_launch(struct health_scan *s, const struct model_launch *l)
{
    struct health_launch found = {.launch = l, .parent = SIZE_MAX};
    struct again again = {.made = false};
    size_t seen = 0;
    if (!model_launch_ran(l))
        return true;
    if (!rerun_at(&s->walk, l) || (l->snapshots && !learn_kernel(s, l)))
        return false;
    const struct cap_snapshot *snapshot;
    for (size_t i = 0; (snapshot = model_launch_snapshot(s->model, l, i)); i++) {
        if (snapshot->when != CAP_AFTER)
            continue;
        seen++;
        look_at_snapshot(s, l, snapshot, &again, &found);
    }
    if (again.made)
        rerun_free(&again.rerun);
    s->out->unseen += seen == 0;
    if (!found.output_count)
        return true;
    struct health_launch *more = realloc(s->out->launches, (s->out->count + 1) * sizeof *more);
    if (!more)
        return false;
    s->out->launches = more;
    more[s->out->count++] = found;
    health_find_origin(s, s->out->count - 1);
    return true;
}

static enum status scan(struct health_scan *s, struct diag *diag)
{
    enum status status = rerun_start(&s->walk, s->model, diag);
    if (status)
        return status;
    for (size_t i = 0; i < s->model->launch_count && !status; i++)
        if (!look_at_launch(s, &s->model->launches[i]))
            status = diag_set(diag, STATUS_NO_MEMORY, s->model->capture->path, -1, "no memory");
    rerun_end(&s->walk);
    return status;
}

enum status health_make(const struct model *m, const struct judgements *js, double threshold, bool full,
                        struct health *out, struct diag *diag)
{
    struct health_scan s = {.model = m, .judgements = js, .out = out};
    *out = (struct health){.full = full, .threshold = threshold};
    s.allocation_types = calloc(m->allocation_count + 1, sizeof *s.allocation_types);
    for (size_t i = 0; s.allocation_types && i < m->allocation_count; i++)
        s.allocation_types[i] = ELEMENT_TYPES;
    enum status status =
        s.allocation_types ? scan(&s, diag) : diag_set(diag, STATUS_NO_MEMORY, m->capture->path, -1, "no memory");
    if (!status && out->count && !full) { /* an earlier launch may have stored a few that the samples missed */
        health_free(out);
        *out = (struct health){.full = true, .threshold = threshold};
        status = scan(&s, diag);
    }
    free(s.types);
    free(s.allocation_types);
    if (status)
        health_free(out);
    return status;
}

void health_free(struct health *h)
{
    for (size_t i = 0; i < h->count; i++)
        judgement_access_clear(&h->launches[i].place);
    free(h->launches);
    *h = (struct health){.launches = NULL};
}
