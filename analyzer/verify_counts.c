/* verify_counts.c - what a launch does, counted in one more run: operations, accesses, and the source lines whose
 * accesses cost more than they need. */
#include "analyzer/verify.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/line_counts.h"

enum { KEPT = 3 }; /* lines of one kind of pattern */
/* Sectors of a request above the ideal: fewer come from accesses that begin inside a sector. */
#define EXCESS 2
/* Worth telling: a line with at least this many times the ideal, whose excess is at least this share of all that the
 * launch does of the kind. */
#define FACTOR 2.0
#define SHARE  0.1
/* Divergence: when warps execute with fewer lanes than this on average, and a quarter of a line's branches diverge. */
#define LANES 24.0
#define SPLIT 0.25

#define X(name, text) _Static_assert((int)JUDGEMENT_OPERATION_##name == (int)PTX_FLOP_##name, "the same order");
JUDGEMENT_OPERATIONS(X)
#undef X
_Static_assert((int)JUDGEMENT_OPERATION_TYPES == (int)PTX_FLOP_TYPE_COUNT, "all of them");

static struct judgement_pattern measure(const struct line_counts *l, enum judgement_pattern_kind kind)
{
    const struct ptx_access_counts *global = &l->access[PTX_SPACE_GLOBAL], *shared = &l->access[PTX_SPACE_SHARED];
    switch (kind) {
    case JUDGEMENT_PATTERN_SECTORS:
        return (struct judgement_pattern){
            .requests = global->requests, .actual = global->sectors, .ideal = global->ideal_sectors};
    case JUDGEMENT_PATTERN_BANK_CONFLICTS:
        return (struct judgement_pattern){
            .requests = shared->requests, .actual = shared->wavefronts, .ideal = shared->ideal_wavefronts};
    case JUDGEMENT_PATTERN_SAME_ADDRESS:
        return (struct judgement_pattern){.requests = global->atomics + shared->atomics,
                                          .actual = global->same_address + shared->same_address,
                                          .ideal = global->atomics + shared->atomics};
    default:
        return (struct judgement_pattern){.requests = l->branches, .actual = l->divergent};
    }
}

static bool bad_enough(const struct counted *c, const struct judgement_pattern *p, uint64_t all)
{
    if (p->actual <= p->ideal)
        return false;
    if (p->kind == JUDGEMENT_PATTERN_DIVERGENCE)
        return (double)c->total.warp_threads < LANES * (double)c->total.warps &&
               (double)p->actual >= SPLIT * (double)p->requests;
    if (p->kind == JUDGEMENT_PATTERN_SECTORS && p->actual - p->ideal < EXCESS * p->requests)
        return false;
    return (double)p->actual >= FACTOR * (double)p->ideal && (double)(p->actual - p->ideal) >= SHARE * (double)all;
}

/* Keeps the KEPT worst, sorted. */
static void keep(struct judgement_pattern *list, const struct line_counts **lines, size_t *count,
                 struct judgement_pattern p, const struct line_counts *line)
{
    size_t at = *count;
    while (at > 0 && list[at - 1].actual - list[at - 1].ideal < p.actual - p.ideal)
        at--;
    if (at == KEPT)
        return;
    *count += *count < KEPT;
    for (size_t i = *count - 1; i > at; i--) {
        list[i] = list[i - 1];
        lines[i] = lines[i - 1];
    }
    list[at] = p;
    lines[at] = line;
}

static void find_patterns(struct counted *c, enum judgement_pattern_kind kind, struct judgement_counts *out)
{
    struct judgement_pattern worst[KEPT];
    const struct line_counts *lines[KEPT];
    size_t count = 0;
    uint64_t all = 0;
    for (size_t i = 0; i < c->count; i++)
        all += measure(&c->lines[i], kind).actual;
    for (size_t i = 0; i < c->count; i++) {
        struct judgement_pattern p = measure(&c->lines[i], kind);
        p.kind = kind;
        if (bad_enough(c, &p, all))
            keep(worst, lines, &count, p, &c->lines[i]);
    }
    struct judgement_pattern *more = realloc(out->patterns, (out->pattern_count + count + 1) * sizeof *more);
    if (!more)
        return;
    out->patterns = more;
    for (size_t i = 0; i < count; i++) {
        worst[i].access = judgement_access_copy(&lines[i]->place);
        more[out->pattern_count++] = worst[i];
    }
}

static void take(const struct ptx_profile *p, struct counted *c, struct judgement_counts *out)
{
    const struct ptx_access_counts *global = &p->access[PTX_SPACE_GLOBAL], *shared = &p->access[PTX_SPACE_SHARED];
    out->known = true;
    for (int i = 0; i < PTX_FLOP_TYPE_COUNT; i++)
        out->operations[i] = p->flops[i];
    out->threads = p->threads;
    out->alone = p->alone;
    out->warps = p->warps;
    out->warp_threads = p->warp_threads;
    out->requests = global->requests;
    out->sectors = global->sectors;
    out->ideal_sectors = global->ideal_sectors;
    out->shared_requests = shared->requests;
    out->wavefronts = shared->wavefronts;
    out->ideal_wavefronts = shared->ideal_wavefronts;
    out->branches = p->branches;
    out->divergent = p->divergent;
    for (int kind = 0; kind < JUDGEMENT_PATTERN_KINDS; kind++)
        find_patterns(c, (enum judgement_pattern_kind)kind, out);
}

static bool same_contents(const struct verify_memory *a, const struct verify_memory *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = a->regions[i].bytes == b->regions[i].bytes &&
               memcmp(a->regions[i].host, b->regions[i].host, (size_t)a->regions[i].bytes) == 0;
    return same;
}

bool verify_counts(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                   const struct verify_memory *checked, struct judgement *j)
{
    bool same = true;
    struct verify_memory memory = {0};
    struct reference_launch run;
    struct reference_result result;
    struct judgement scratch = {0};
    struct counted counted = {0};
    if (verify_profile(v, l, &like->layout, &run, &memory, &result, &scratch) && !result.reason &&
        result.status == STATUS_OK && result.profile) {
        counted_add(&counted, run.module, result.profile);
        take(result.profile, &counted, &j->counts);
        same = same_contents(&memory, checked);
    }
    counted_free(&counted);
    reference_result_free(&result);
    verify_memory_free(&memory);
    judgement_clear(&scratch);
    return same;
}
