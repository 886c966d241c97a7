#include "analyzer/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/place.h"

static bool add(struct patterns *all, size_t *capacity, const struct model_launch *l, const struct judgement *j,
                const struct judgement_pattern *p)
{
    struct pattern *to = NULL;
    for (size_t i = 0; i < all->count && !to; i++) {
        struct pattern *x = &all->items[i];
        if (x->kind == p->kind && strcmp(x->kernel->full_name, l->kernel->full_name) == 0 &&
            place_equal(x->place, &p->access))
            to = x;
    }
    if (!to && all->count == *capacity) {
        size_t want = *capacity ? 2 * *capacity : 16;
        struct pattern *more = realloc(all->items, want * sizeof *more);
        if (!more)
            return false;
        all->items = more;
        *capacity = want;
    }
    if (!to) {
        to = &all->items[all->count++];
        *to = (struct pattern){.kind = p->kind, .kernel = l->kernel, .place = &p->access, .launch = l->number};
    }
    to->launches++;
    to->requests += p->requests;
    to->actual += p->actual;
    to->ideal += p->ideal;
    to->warps += j->counts.warps;
    to->warp_threads += j->counts.warp_threads;
    return true;
}

static int by_excess(const void *a, const void *b)
{
    const struct pattern *x = a, *y = b;
    bool last_x = x->kind == JUDGEMENT_PATTERN_DIVERGENCE, last_y = y->kind == JUDGEMENT_PATTERN_DIVERGENCE;
    uint64_t p = x->actual - x->ideal, q = y->actual - y->ideal;
    if (last_x != last_y)
        return last_x ? 1 : -1;
    if (p != q)
        return p > q ? -1 : 1;
    return x->launch != y->launch ? (x->launch < y->launch ? -1 : 1) : (int)x->kind - (int)y->kind;
}

struct patterns patterns_of(const struct model *m, const struct judgements *js)
{
    struct patterns all = {0};
    size_t capacity = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < js->count; i++) {
        const struct judgement *j = &js->items[i];
        const struct model_launch *l = model_launch_by_number(m, j->launch);
        for (size_t k = 0; l && ok && k < j->counts.pattern_count; k++)
            ok = add(&all, &capacity, l, j, &j->counts.patterns[k]);
    }
    if (all.count)
        qsort(all.items, all.count, sizeof *all.items, by_excess);
    return all;
}

void pattern_text(const struct pattern *p, char out[PATTERN_TEXT])
{
    double n = p->requests ? (double)p->requests : 1, actual = (double)p->actual / n, ideal = (double)p->ideal / n;
    switch (p->kind) {
    case JUDGEMENT_PATTERN_SECTORS:
        snprintf(out, PATTERN_TEXT, "sectors per request %.3g where %.3g are ideal", actual, ideal);
        break;
    case JUDGEMENT_PATTERN_BANK_CONFLICTS:
        snprintf(out, PATTERN_TEXT, "bank conflicts: %.3g passes of shared memory per request where %.3g would do",
                 actual, ideal);
        break;
    case JUDGEMENT_PATTERN_SAME_ADDRESS:
        snprintf(out, PATTERN_TEXT, "atomics: %.3g lanes of a warp at one address, one after the other", actual);
        break;
    default:
        snprintf(out, PATTERN_TEXT,
                 "divergence: %.3g %% of %llu branches; on average %.3g of 32 lanes execute the kernel's instructions",
                 100 * actual, (unsigned long long)p->requests,
                 p->warps ? (double)p->warp_threads / (double)p->warps : 0);
    }
}
