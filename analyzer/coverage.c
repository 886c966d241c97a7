#include "analyzer/coverage.h"

#include <stdlib.h>
#include <string.h>

static void count_reason(struct coverage *c, const char *reason, const struct judgement *j)
{
    size_t i = 0;
    while (i < c->reasons && strcmp(c->not [i].reason, reason) != 0)
        i++;
    if (i == COVERAGE_REASONS)
        i--;
    else if (i == c->reasons) {
        c->not [c->reasons++].reason = reason;
    }
    c->not [i].count++;
}

struct coverage coverage_of(const struct model *m, const struct judgements *js)
{
    struct coverage c = {.launches = m->launch_count};
    for (size_t i = 0; i < m->launch_count; i++) {
        const struct judgement *j = judgements_find(js, m->launches[i].number);
        if (!j)
            count_reason(&c, js->count ? "not-selected" : "not-verified", NULL);
        else if (j->verdict == JUDGEMENT_CHECKED)
            c.checked++;
        else
            count_reason(&c, j->reason ? j->reason : "unknown", j);
    }
    for (size_t i = 1; i < c.reasons; i++)
        for (size_t k = i; k > 0 && c.not [k].count > c.not [k - 1].count; k--) {
            __typeof__(c.not [0]) swap = c.not [k];
            c.not [k] = c.not [k - 1];
            c.not [k - 1] = swap;
        }
    return c;
}
