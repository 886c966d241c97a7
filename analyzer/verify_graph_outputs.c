/* verify_graph_outputs.c - what all nodes of a graph left, against the snapshots after its launch.
 *
 * Between the nodes nothing is seen. So where their PTX leaves rounding open the graph runs again as a whole, rounding
 * by chance: the scale of a float is the largest distance of such a run from the expected value, or one unit in the
 * last place. A word that differs is put on the node that stored it last, unless what that node read is gone.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/verify_envelope.h"
#include "analyzer/verify_graph.h"
#include "common/diag.h"

enum { RUNS = 6, OPEN_SHARE = 100 };
#define WITHIN_SCALES 16.0
#define BEYOND_SCALES 64.0

/* ---- the graph again ---- */

static bool run_kernel(struct graph_run *r, uint32_t index, uint64_t seed, bool orders)
{
    struct graph_step step;
    struct verify_memory memory = {0};
    struct reference_launch run;
    struct reference_result result = {0};
    struct judgement scratch = {0};
    bool ok = graph_step_make(r, index, &step);
    for (int layout = REFERENCE_ISOLATED; ok; layout = REFERENCE_AS_LAUNCHED) {
        const struct verify_module *m = verify_module_of(r->verify, &step.as.launch);
        ok = m->module &&
             verify_make_memory(r->verify, &step.as.launch, layout == REFERENCE_AS_LAUNCHED, &memory, &scratch);
        if (!ok)
            break;
        verify_fill_launch(r->verify, &step.as.launch, m->module, &memory, &run);
        run.layout = (enum reference_layout)layout;
        run.rounding_seed = seed;
        run.seed = orders ? seed : 0;
        reference_run(&run, &result);
        bool again = result.foreign && layout == REFERENCE_ISOLATED;
        ok = again || (!result.reason && !result.foreign);
        reference_result_free(&result);
        if (!again)
            break;
    }
    if (ok)
        graph_contents_store(&r->contents, index, &memory);
    verify_memory_free(&memory);
    judgement_clear(&scratch);
    graph_step_free(&step);
    return ok;
}

static bool run_again(const struct graph_run *like, uint64_t seed, struct graph_run *out)
{
    struct diag diag;
    struct judgement scratch = {0};
    *out = *like;
    out->contents = (struct graph_contents){0};
    out->touches = (struct graph_touches){0};
    out->branches = false;
    bool ok = !graph_contents_start(&out->contents, like->verify->model, like->launch, &like->verify->blobs,
                                    like->verify->options->memory_limit, &diag);
    for (uint32_t i = 0; ok && i < out->nodes.count; i++) {
        const struct cap_graph_node *n = out->nodes.items[i];
        if (n->flags & CAP_NODE_DISABLED)
            continue;
        ok = n->kind == CAP_NODE_KERNEL ? run_kernel(out, i, seed, like->traits & REFERENCE_ORDER)
                                        : graph_run_plain(out, i, &scratch);
    }
    judgement_clear(&scratch);
    return ok && !out->contents.no_memory;
}

/* ---- how far each word may be off ---- */

struct word_range {
    double spread; /* largest distance of a run from the expected float */
    bool as_a_run; /* some run has the device's bits */
};

static float as_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Looks like a float that a program computes with. */
static bool float_like(uint32_t bits)
{
    uint32_t exponent = bits >> 23 & 0xff;
    return bits << 1 == 0 || (exponent > 40 && exponent < 214);
}

static bool take_run(const struct graph_run *like, uint64_t seed, const struct verify_memory *memory,
                     const struct comparison *c, struct word_range *ranges)
{
    struct graph_run again;
    bool ok = run_again(like, seed, &again);
    for (size_t i = 0; ok && i < c->count; i++) {
        const struct compare_word *w = &c->words[i];
        const struct graph_buffer *b = graph_contents_find(&again.contents, memory->regions[w->region].id);
        uint64_t left = memory->regions[w->region].bytes - w->offset;
        uint32_t word = 0;
        if (!b)
            continue;
        memcpy(&word, b->host + w->offset, left < 4 ? (size_t)left : 4);
        ranges[i].as_a_run = ranges[i].as_a_run || word == w->device;
        ranges[i].spread = fmax(ranges[i].spread, fabs((double)as_float(word) - (double)as_float(w->expected)));
    }
    graph_contents_end(&again.contents);
    return ok;
}

static enum envelope_word judge_word(unsigned traits, const struct compare_word *w, const struct word_range *r,
                                     float *scales)
{
    bool floats = float_like(w->device) && float_like(w->expected);
    bool only_rounding = !(traits & ~(unsigned)(REFERENCE_CONTRACTION | REFERENCE_APPROXIMATE));
    *scales = 0;
    if (r->as_a_run)
        return ENVELOPE_WITHIN;
    if (!w->stored)
        return ENVELOPE_OPEN;
    if (!isfinite(as_float(w->device)) && float_like(w->expected) && isfinite(r->spread) && only_rounding)
        return ENVELOPE_BEYOND;
    if (!floats)
        return ENVELOPE_OPEN;
    double expected = (double)as_float(w->expected);
    double ulp = fmax(ldexp(fabs(expected), -23), 1e-37);
    double scale = fmax(r->spread, ulp), off = fabs((double)as_float(w->device) - expected) / scale;
    *scales = (float)off;
    if (!(r->spread < INFINITY) || scale * WITHIN_SCALES > fabs(expected))
        return off <= 1 ? ENVELOPE_WITHIN : ENVELOPE_OPEN;
    if (off <= WITHIN_SCALES)
        return ENVELOPE_WITHIN;
    return off > BEYOND_SCALES && only_rounding ? ENVELOPE_BEYOND : ENVELOPE_OPEN;
}

static bool make_envelope(const struct graph_run *r, const struct verify_memory *memory, const struct comparison *c,
                          struct envelope *e)
{
    struct word_range *ranges = calloc(c->count + 1, sizeof *ranges);
    *e = (struct envelope){.words = calloc(c->count + 1, 1), .scales = calloc(c->count + 1, sizeof *e->scales)};
    bool ok = ranges && e->words && e->scales && c->count == c->differing;
    for (uint64_t seed = 1; ok && seed <= RUNS; seed++)
        ok = take_run(r, seed, memory, c, ranges);
    for (size_t i = 0; ok && i < c->count; i++) {
        e->words[i] = judge_word(r->traits, &c->words[i], &ranges[i], &e->scales[i]);
        e->counts[e->words[i]]++;
    }
    free(ranges);
    if (!ok)
        envelope_free(e);
    return ok;
}

/* ---- which node ---- */

/* Nodes that stored bytes which are still there when the graph has ended. */
static void mark_survivors(const struct graph_run *r, uint8_t *survives)
{
    for (size_t i = 0; i < r->contents.count; i++) {
        const struct graph_buffer *b = &r->contents.buffers[i];
        for (uint64_t word = 0; b->writer && word < (b->allocation->bytes + 3) / 4; word++)
            if (b->writer[word])
                survives[b->writer[word] - 1] = 1;
    }
}

static void find_candidates(const struct graph_run *r, const struct graph_ancestors *a, const uint8_t *survives,
                            struct judgement_difference *d)
{
    for (uint32_t i = 0; d->node && i < d->node - 1; i++) {
        const struct cap_graph_node *n = r->nodes.items[i];
        if (n->kind == CAP_NODE_KERNEL && !(n->flags & CAP_NODE_DISABLED) && !survives[i] &&
            graph_ordered(a, i, d->node - 1) && d->candidate_count < JUDGEMENT_CANDIDATES)
            d->candidates[d->candidate_count++] = i + 1;
    }
}

/* Where a node is wrong, or may be, what comes after it is wrong because of that. */
static void drop_propagated(const struct graph_run *r, const struct graph_ancestors *a, const uint8_t *differs,
                            struct judgement *j)
{
    size_t kept = 0;
    for (size_t i = 0; i < j->difference_count; i++) {
        uint32_t node = j->differences[i].node;
        bool propagated = false;
        for (uint32_t k = 0; node && k < r->nodes.count && !propagated; k++)
            propagated = differs[k] && graph_ordered(a, k, node - 1);
        if (!propagated)
            j->differences[kept++] = j->differences[i];
    }
    j->difference_count = kept;
}

/* The nodes that stored the words that differ, whatever is said of the words later. */
static void mark_differing(const struct graph_run *r, const struct verify_memory *memory, const struct comparison *c,
                           uint8_t *differs)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct graph_buffer *b = graph_contents_find(&r->contents, memory->regions[c->words[i].region].id);
        uint32_t node = b && b->writer ? b->writer[c->words[i].offset / 4] : 0;
        if (node)
            differs[node - 1] = 1;
    }
}

static void name_nodes(const struct graph_run *r, const uint8_t *differs, struct judgement *j)
{
    struct graph_ancestors a;
    uint8_t *survives = calloc(r->nodes.count + 1, 1);
    for (size_t i = 0; i < j->difference_count; i++) {
        const struct graph_buffer *b = graph_contents_find(&r->contents, j->differences[i].allocation);
        j->differences[i].node = b && b->writer ? b->writer[j->differences[i].offset / 4] : 0;
    }
    if (survives && j->difference_count && graph_ancestors_make(&r->nodes, &a)) {
        drop_propagated(r, &a, differs, j);
        mark_survivors(r, survives);
        for (size_t i = 0; i < j->difference_count; i++)
            find_candidates(r, &a, survives, &j->differences[i]);
        free(a.bits);
        if (!j->difference_count)
            verify_not(j, "vacuous", "words differ, but those of the first node that differs cannot be judged");
    }
    free(survives);
}

/* ---- all of it ---- */

static void decide(struct graph_run *r, const struct verify_memory *memory, const struct comparison *c,
                   struct judgement *j)
{
    struct envelope e = {0};
    char detail[200];
    bool envelope = r->traits && make_envelope(r, memory, c, &e);
    uint64_t within = e.counts[ENVELOPE_WITHIN], open = envelope ? e.counts[ENVELOPE_OPEN] : c->differing;
    uint64_t taken = verify_outputs_take(r->verify, r->launch, memory, r->traits, envelope ? &e : NULL, c, j);
    if (!taken && (open > c->compared / OPEN_SHARE || e.counts[ENVELOPE_BEYOND])) {
        snprintf(detail, sizeof detail,
                 "%llu of %llu words differ: %llu within what rounding and order may change, of %llu it cannot be told",
                 (unsigned long long)c->differing, (unsigned long long)c->compared, (unsigned long long)within,
                 (unsigned long long)open);
        verify_not(j, "vacuous", detail);
    }
    if (envelope)
        envelope_free(&e);
}

void verify_graph_outputs(struct graph_run *r, struct judgement *j)
{
    struct verify_memory memory;
    struct comparison c;
    struct diag diag = {.text = ""};
    uint8_t *differs = calloc(r->nodes.count + 1, 1);
    if (!differs || !graph_contents_as_memory(&r->contents, &memory)) {
        free(differs);
        verify_not(j, "no-memory", NULL);
        return;
    }
    enum status status = compare_run(r->verify->model, r->launch, &memory, &r->verify->blobs, &c, &diag);
    if (status) {
        verify_not(j, status == STATUS_NO_MEMORY ? "no-memory" : "no-outputs", diag.text);
    } else {
        mark_differing(r, &memory, &c, differs);
        verify_outputs_drop_concurrent(r->verify, r->launch, &memory, &c);
        if (c.differing)
            decide(r, &memory, &c, j);
        else if (c.incomplete)
            verify_not(j, "no-outputs", "it stored to memory that no snapshot after it shows");
        name_nodes(r, differs, j);
        comparison_free(&c);
    }
    free(memory.regions);
    free(memory.info);
    free(differs);
}
