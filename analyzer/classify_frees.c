/* classify_frees.c - frees of what is not allocated, any more or at all. */
#include <inttypes.h>
#include <string.h>

#include "analyzer/finding.h"

enum { DEINITIALISED = 4 }; /* CUresult: the driver is gone, as it is for what is destroyed after main() */

static const struct model_allocation *freed_before(const struct model *m, uint64_t address, uint64_t seq)
{
    const struct model_allocation *last = NULL;
    for (size_t i = 0; i < m->allocation_count; i++) {
        const struct model_allocation *a = &m->allocations[i];
        if (!a->parent && a->address == address && a->free_seq < seq && (!last || a->free_seq > last->free_seq))
            last = a;
    }
    return last;
}

void classify_frees(const struct model *m, struct symbols *symbols, struct findings *out)
{
    for (size_t i = 0; i < m->bad_free_count; i++) {
        const struct cap_free *record = m->bad_frees[i];
        /* Freeing nothing is allowed. A free that worked was of memory that we did not see being allocated. */
        if (record->address == 0 || record->result == 0 || record->result == DEINITIALISED)
            continue;
        const struct model_allocation *a = freed_before(m, record->address, record->head.seq);
        size_t index = findings_add(out, a && !a->released ? FINDING_DOUBLE_FREE : FINDING_INVALID_FREE, 0.95);
        if (index == SIZE_MAX)
            return;
        struct finding *f = &out->items[index];
        char place[200];
        const struct symbol_stack *s = symbols_stack(symbols, record->stack);
        if (s->own < s->count) {
            f->file = strdup(s->frames[s->own].file);
            f->line = s->frames[s->own].line;
            f->function = s->frames[s->own].function ? strdup(s->frames[s->own].function) : NULL;
        }
        f->allocation = a ? a->id : 0;
        if (a && a->released)
            finding_summary(f, "allocation %u (allocated at %s) is freed after its context had ended, and it with that",
                            a->id, symbols_place(symbols, a->record->stack, place, sizeof place));
        else if (a)
            finding_summary(f, "allocation %u (allocated at %s) is freed a second time", a->id,
                            symbols_place(symbols, a->record->stack, place, sizeof place));
        else
            finding_summary(f, "address 0x%" PRIx64 " is freed, but no allocation starts there", record->address);
        finding_evidence(f, "free", "the driver answered with error %d", record->result);
        if (a && a->free_stack)
            finding_evidence(f, "free", "first freed at %s",
                             symbols_place(symbols, a->free_stack, place, sizeof place));
    }
}
