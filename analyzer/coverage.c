#include "analyzer/coverage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void count_reason(struct coverage_verdict *v, const char *reason, const struct judgement *j)
{
    size_t i = 0;
    while (i < v->reasons && strcmp(v->not [i].reason, reason) != 0)
        i++;
    if (i == COVERAGE_REASONS)
        i--;
    else if (i == v->reasons)
        v->not [v->reasons++] = (struct coverage_count){reason, 0, j};
    v->not [i].count++;
}

static void sort_reasons(struct coverage_verdict *v)
{
    for (size_t i = 1; i < v->reasons; i++)
        for (size_t k = i; k > 0 && v->not [k].count > v->not [k - 1].count; k--) {
            struct coverage_count swap = v->not [k];
            v->not [k] = v->not [k - 1];
            v->not [k - 1] = swap;
        }
}

struct coverage coverage_of(const struct model *m, const struct judgements *js)
{
    struct coverage c = {.launches = m->launch_count};
    for (size_t i = 0; i < m->launch_count; i++) {
        const struct judgement *j = judgements_find(js, m->launches[i].number);
        const char *none = judgements_known(js) ? "not-selected" : "not-verified";
        if (j && j->verdict == JUDGEMENT_CHECKED)
            c.as_written.checked++;
        else
            count_reason(&c.as_written, !j ? none : j->reason ? j->reason : "unknown", j);
        if (j && j->numbers_checked)
            c.operator.checked++;
        else
            count_reason(&c.operator, !j                  ? none
                                      : j->numbers_reason ? j->numbers_reason
                                      : j->reason         ? j->reason
                                                          : "fault",
                         NULL);
    }
    sort_reasons(&c.as_written);
    sort_reasons(&c.operator);
    return c;
}

struct coverage_memory coverage_memory_of(const struct model *m)
{
    struct coverage_memory c = {.guarded = m->guard_count};
    for (size_t i = 0; i < m->allocation_count; i++) {
        const struct cap_alloc *a = m->allocations[i].record;
        if (a->kind == CAP_ALLOC_VARIABLE || m->allocations[i].parent)
            continue;
        c.allocations++;
        if (a->head_redzone || a->tail_redzone)
            c.redzones++;
        else if (a->kind == CAP_ALLOC_MAPPED)
            c.mapped++;
        else if (a->kind == CAP_ALLOC_IMPORTED)
            c.imported++;
        else if (a->kind == CAP_ALLOC_REGISTERED)
            c.registered++;
        else
            c.other++;
    }
    return c;
}

void coverage_memory_text(const struct coverage_memory *c, char *out, size_t bytes)
{
    const struct {
        size_t count;
        const char *what;
    } without[] = {{c->mapped, "mapped by the program (cuMemMap)"},
                   {c->imported, "of other processes"},
                   {c->registered, "registered host memory"},
                   {c->other, "where it was off or there was no room"}};
    size_t used = 0;
    out[0] = '\0';
    if (!c->allocations)
        return;
    used += (size_t)snprintf(out, bytes, "%zu of %zu allocations have redzones", c->redzones, c->allocations);
    if (c->guarded && used < bytes)
        used += (size_t)snprintf(out + used, bytes - used, ", %zu guard pages", c->guarded);
    bool any = false;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (without[i].count && used < bytes) {
            used += (size_t)snprintf(out + used, bytes - used, "%s%zu %s",
                                     any ? ", " : "; no redzones: ", without[i].count, without[i].what);
            any = true;
        }
}
