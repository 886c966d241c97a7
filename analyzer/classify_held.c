/* classify_held.c - freed memory that the shim held back (OPSDEBUG_QUARANTINE) was written to.
 *
 * An access that the re-execution found after the free explains it. Else the launches between the free and the look
 * that were given an address in it are the suspects.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/finding.h"
#include "analyzer/place.h"

static bool given(const struct model_launch *l, const struct model_allocation *a)
{
    const uint8_t *params = model_launch_params(l);
    for (size_t at = 0; params && at + 8 <= l->record->param_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        if (word - a->address < a->bytes)
            return true;
    }
    return false;
}

static void add_evidence(const struct cap_held_damage *d, struct finding *f)
{
    char bytes[64];
    size_t used = 0;
    for (unsigned i = 0; i < 8 && i < d->length; i++)
        used += (size_t)snprintf(bytes + used, sizeof bytes - used, "%s%02x", i ? " " : "", d->found[i]);
    finding_evidence(f, "held-memory",
                     "%" PRIu64 " of the freed bytes, which were held back, changed, from offset %" PRIu64 ": %s%s",
                     d->length, d->offset, bytes, d->length > 8 ? " ..." : "");
}

static struct finding *known(struct findings *out, uint32_t allocation)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].class == FINDING_USE_AFTER_FREE && out->items[i].allocation == allocation)
            return &out->items[i];
    return NULL;
}

static void take(const struct model *m, const struct judgements *js, struct symbols *symbols,
                 const struct cap_held_damage *d, struct findings *out)
{
    const struct model_allocation *a = model_allocation_by_id(m, d->allocation);
    struct finding *f = a ? known(out, a->id) : NULL;
    if (!a)
        return;
    if (f) {
        add_evidence(d, f);
        return;
    }
    size_t first = 0, last = 0, count = 0;
    for (size_t i = model_first_launch_from(m, d->clean_seq); i < model_first_launch_from(m, d->seen_seq); i++) {
        const struct model_launch *l = &m->launches[i];
        const struct judgement *j = judgements_find(js, l->number);
        if (!model_launch_ran(l) || !given(l, a) || (j && j->verdict == JUDGEMENT_CHECKED))
            continue;
        first = first ? first : l->number;
        last = l->number;
        count++;
    }
    size_t index = findings_add(out, FINDING_USE_AFTER_FREE, count == 1 ? 0.9 : count ? 0.7 : 0.6);
    if (index == SIZE_MAX)
        return;
    char text[PLACE_ALLOCATION_BYTES];
    f = &out->items[index];
    f->allocation = a->id;
    f->offset = (int64_t)d->offset;
    f->window_last = count > 1 ? last : 0;
    if (first)
        finding_launch(f, first);
    place_allocation(symbols, a, text);
    finding_summary(f, "%" PRIu64 " bytes written after the free of %s%s", d->length, text,
                    count ? "" : "; no recorded launch was given it");
    add_evidence(d, f);
    if (!judgements_known(js))
        finding_next(f, "ops-debug verify %s", m->capture->shell_path);
    finding_next_deeper(f, m);
}

void classify_held(const struct model *m, const struct judgements *js, struct symbols *symbols, struct findings *out)
{
    const struct capture *c = m->capture;
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i]->type == CAP_HELD_DAMAGE)
            take(m, js, symbols, (const void *)c->records[i], out);
}
