/* classify_guard.c - what guard pages have to do with a finding: an access that left its allocation, or came after its
 * free, hit addresses that nothing was mapped to, so that the device stopped there and then. */
#include <inttypes.h>
#include <string.h>

#include "analyzer/finding.h"
#include "analyzer/place.h"

static const struct cap_guard *guard_of(const struct model *m, uint32_t allocation)
{
    const struct capture *c = m->capture;
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i]->type == CAP_GUARD && ((const struct cap_guard *)c->records[i])->allocation == allocation)
            return (const void *)c->records[i];
    return NULL;
}

static bool unmapped(const struct cap_guard *g, uint64_t address)
{
    return address - g->range < g->range_bytes && address - g->mapped >= g->mapped_bytes;
}

/* An access that begins inside and ends outside counts by its end. */
static void explain(const struct model *m, struct finding *f)
{
    const struct model_allocation *a = model_allocation_by_id(m, f->allocation);
    const struct cap_guard *g = a ? guard_of(m, a->id) : NULL;
    if (!g)
        return;
    uint64_t address = a->address + (uint64_t)f->offset;
    if (f->class == FINDING_USE_AFTER_FREE) {
        if (address - g->range < g->range_bytes)
            finding_evidence(f, "guard-page",
                             "the pages of allocation %u are unmapped since its free: the device stopped at the access",
                             a->id);
    } else if (unmapped(g, address)) {
        bool behind = address >= g->mapped;
        finding_evidence(f, "guard-page",
                         "the guard pages %s allocation %u, %" PRIu64 " bytes in: nothing is mapped there, the device "
                         "stopped at the access",
                         behind ? "behind" : "before", a->id,
                         behind ? address - g->mapped - g->mapped_bytes : g->mapped - address);
    } else {
        finding_evidence(f, "guard-page", "allocation %u has guard pages; this access fell into the slack before them",
                         a->id);
    }
}

/* Nothing was re-executed: the guarded allocations among a launch's arguments. */
static void suspect(const struct model *m, struct symbols *symbols, const struct model_launch *l, struct finding *f,
                    unsigned *how)
{
    const uint8_t *params = model_launch_params(l);
    const struct capture *c = m->capture;
    for (size_t i = 0; params && i < c->record_count; i++) {
        const struct cap_guard *g = (const void *)c->records[i];
        if (g->head.type != CAP_GUARD || g->head.seq > model_launch_seq(l))
            continue;
        for (size_t at = 0; at + 8 <= l->record->param_bytes; at += 8) {
            const struct model_allocation *a = model_allocation_by_id(m, g->allocation);
            uint64_t word;
            memcpy(&word, params + at, sizeof word);
            if (!a || word - g->mapped >= g->mapped_bytes || f->evidence_count >= 8)
                continue;
            char text[PLACE_ALLOCATION_BYTES];
            place_allocation(symbols, a, text);
            finding_evidence(f, "guard-page", "an argument of launch %u points to %s, which %s", l->number, text,
                             a->free_seq < model_launch_seq(l) ? "was freed and has been unmapped since"
                                                               : "has guard pages: leaving it stops the device");
            if (!f->window_last && !f->allocation)
                f->allocation = a->id;
            if (*how < 2)
                finding_next(f, "ops-debug run --preset deep --guard order=%u -- %s", a->id, m->capture->shell_program);
            ++*how;
            break;
        }
    }
}

void classify_guard(const struct model *m, struct symbols *symbols, struct findings *out)
{
    unsigned how;
    for (size_t i = 0; i < out->count; i++) {
        struct finding *f = &out->items[i];
        switch (f->class) {
        case FINDING_OUT_OF_BOUNDS_READ:
        case FINDING_OUT_OF_BOUNDS_WRITE:
        case FINDING_USE_AFTER_FREE:
            explain(m, f);
            break;
        case FINDING_FAILED_LAUNCH:
            how = 0;
            for (size_t n = f->launch; n && n <= (f->window_last ? f->window_last : f->launch); n++)
                if (model_launch_ran(&m->launches[n - 1]))
                    suspect(m, symbols, &m->launches[n - 1], f, &how);
            break;
        default:
            break;
        }
    }
}
