/* verify_outputs.c - the device's outputs against those of the kernel's own PTX.
 *
 * Bit-equal is "as written". Otherwise the kernel's PTX may leave the difference to the device (rounding of contracted
 * or approximate operations, order of atomics): runs that round by chance give each element an envelope
 * (verify_envelope.c). Only what lies far outside is a finding; what cannot be told is "vacuous": not judged.
 */
#include "analyzer/verify_envelope.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORDERS = 4 }; /* seeded orders tried for kernels whose result depends on the order */
#define CLEARLY_BEYOND                                                                                                 \
    0.05 /* of the largest magnitude in the same allocation: no rounding of single operations gets here */
/* What cannot be told of one word in a hundred leaves the launch judged; a thread may write so many words. */
enum { OPEN_SHARE = 100, WORDS_OF_A_THREAD = 16 };
#define ORDER_SLACK    4.0  /* times the spread seen over the orders */
#define ORDER_ROUNDING 4e-6 /* of the largest value of the element over the orders: sums of a few hundred terms */

static float as_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Looks like a float that a program computes with: not a small integer, not a NaN pattern. */
static bool float_like(uint32_t bits)
{
    uint32_t exponent = bits >> 23 & 0xff;
    return bits << 1 == 0 || (exponent > 40 && exponent < 214);
}

static bool remake(struct verify *v, const struct model_launch *l, struct reference_launch *run,
                   struct verify_memory *memory, bool everything)
{
    struct diag diag;
    enum reference_layout layout = run->layout;
    verify_memory_free(memory);
    if (verify_memory_make(memory, l, &v->live, &v->valid, &v->blobs, everything, v->options->memory_limit, &diag))
        return false;
    verify_fill_launch(v, l, run->module, memory, run);
    run->layout = layout;
    return true;
}

/* ---- order ---- */

struct spread {
    uint32_t values[ORDERS + 1];
    size_t count;
};

static bool within_spread(const struct spread *s, uint32_t device)
{
    double low = INFINITY, high = -INFINITY;
    bool floats = float_like(device);
    for (size_t i = 0; i < s->count; i++) {
        if (s->values[i] == device)
            return true;
        floats = floats && float_like(s->values[i]);
        low = fmin(low, (double)as_float(s->values[i]));
        high = fmax(high, (double)as_float(s->values[i]));
    }
    double slack = ORDER_SLACK * (high - low) + ORDER_ROUNDING * fmax(fabs(low), fabs(high));
    double d = (double)as_float(device);
    return floats && d >= low - slack && d <= high + slack;
}

static int by_word(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Do words [first, last) hold the same values on both sides, in other places? So it is when atomics hand out the
 * places. */
static bool permuted(const struct comparison *c, size_t first, size_t last)
{
    size_t count = last - first;
    uint32_t *words = malloc((2 * count + 1) * sizeof *words);
    for (size_t i = 0; words && i < count; i++) {
        words[i] = c->words[first + i].device;
        words[count + i] = c->words[first + i].expected;
    }
    if (words) {
        qsort(words, count, sizeof *words, by_word);
        qsort(words + count, count, sizeof *words, by_word);
    }
    bool same = words && memcmp(words, words + count, count * sizeof *words) == 0;
    free(words);
    return same;
}

/* Adds to every spread what one more order gives. */
static bool run_in_order(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                         uint64_t seed, const struct comparison *c, struct spread *spreads)
{
    struct verify_memory memory = {0};
    struct reference_launch run = *like;
    struct reference_result result;
    if (!remake(v, l, &run, &memory, like->layout == REFERENCE_AS_LAUNCHED))
        return false;
    run.seed = seed;
    reference_run(&run, &result);
    bool ok = !result.reason && !result.foreign;
    for (size_t i = 0; ok && i < c->count; i++) {
        const struct reference_region *r = &memory.regions[c->words[i].region];
        uint64_t left = r->bytes - c->words[i].offset;
        uint32_t word = 0;
        memcpy(&word, r->host + c->words[i].offset, left < 4 ? (size_t)left : 4);
        spreads[i].values[spreads[i].count++] = word;
    }
    reference_result_free(&result);
    verify_memory_free(&memory);
    return ok;
}

/* Runs the kernel in other orders and asks whether each differing word is one that some order gives. */
static bool order_explains(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                           const struct comparison *c)
{
    struct spread *spreads = calloc(c->count + 1, sizeof *spreads);
    bool ok = spreads && c->differing == c->count;
    for (size_t i = 0; ok && i < c->count; i++)
        spreads[i] = (struct spread){.values = {c->words[i].expected}, .count = 1};
    for (uint64_t seed = 1; ok && seed <= ORDERS; seed++)
        ok = run_in_order(v, l, like, seed, c, spreads);
    for (size_t first = 0, last; ok && first < c->count; first = last) {
        bool within = true;
        for (last = first; last < c->count && c->words[last].region == c->words[first].region; last++)
            within = within && within_spread(&spreads[last], c->words[last].device);
        ok = within || permuted(c, first, last);
    }
    free(spreads);
    return ok;
}

/* ---- certain differences ---- */

static double largest(const struct reference_region *r)
{
    double most = 0;
    for (uint64_t at = 0; at + 4 <= r->bytes; at += 4) {
        uint32_t word;
        memcpy(&word, r->host + at, sizeof word);
        if (bit_get(r->written, at) && float_like(word))
            most = fmax(most, fabs((double)as_float(word)));
    }
    return most;
}

/* What the kernel did not store to and another stream may have is none of its outputs. Removes these words. */
static void drop_concurrent(const struct verify *v, const struct model_launch *l, const struct verify_memory *memory,
                            struct comparison *c)
{
    size_t kept = 0;
    for (size_t i = 0, last = SIZE_MAX, answer = 0; i < c->count; i++) {
        if (c->words[i].region != last) {
            last = c->words[i].region;
            answer = verify_concurrent(v, l, memory->regions[last].id);
        }
        if (answer && !c->words[i].stored)
            c->differing--;
        else
            c->words[kept++] = c->words[i];
    }
    c->count = kept;
}

/* Is the difference more than the kernel's freedoms can make? */
static bool certain(unsigned traits, const struct compare_word *w, double scale)
{
    if (traits == 0)
        return true;
    if ((traits & ~(unsigned)(REFERENCE_CONTRACTION | REFERENCE_APPROXIMATE)) || !w->stored)
        return false;
    if (!float_like(w->expected))
        return false;
    float d = as_float(w->device);
    return !isfinite(d) || (scale > 0 && fabs((double)d - (double)as_float(w->expected)) > CLEARLY_BEYOND * scale);
}

static void add_difference(struct judgement *j, struct judgement_difference d)
{
    struct judgement_difference *more = realloc(j->differences, (j->difference_count + 1) * sizeof *more);
    if (!more)
        return;
    j->differences = more;
    j->differences[j->difference_count++] = d;
}

/* One difference per region. `envelope` may be NULL. Returns how many words were certain. */
static uint64_t take_region(const struct verify *v, const struct model_launch *l, const struct verify_memory *memory,
                            unsigned traits, const struct envelope *envelope, const struct comparison *c, size_t first,
                            size_t last, struct judgement *j)
{
    size_t region = c->words[first].region;
    const struct reference_region *r = &memory->regions[region];
    double scale = traits && !envelope ? largest(r) : 0;
    uint64_t sure = 0, kept = 0, outside = 0;
    size_t example = first;
    double worst = 0;
    for (size_t i = first; i < last; i++) {
        const struct compare_word *w = &c->words[i];
        if (envelope ? envelope->words[i] != ENVELOPE_BEYOND : !certain(traits, w, scale))
            continue;
        if (!sure)
            example = i;
        sure++;
        kept += w->stored && w->device == w->before;
        outside += !w->stored;
        worst = envelope ? fmax(worst, (double)envelope->scales[i]) : 0;
    }
    if (!sure || verify_concurrent(v, l, r->id))
        return 0;
    const struct compare_word *w = &c->words[example];
    enum judgement_difference_kind kind = outside == sure                        ? JUDGEMENT_DIFFERENCE_OUTSIDE
                                          : kept == sure && sure == last - first ? JUDGEMENT_DIFFERENCE_DROPPED
                                                                                 : JUDGEMENT_DIFFERENCE_MISMATCH;
    add_difference(j, (struct judgement_difference){
                          .kind = kind,
                          .allocation = r->id,
                          .words = sure,
                          .of = outside == sure ? r->bytes / 4 : c->compared,
                          .offset = w->offset,
                          .device = w->device,
                          .expected = w->expected,
                          .scales = isfinite(worst) ? worst : 0,
                      });
    return sure;
}

static uint64_t take_regions(const struct verify *v, const struct model_launch *l, const struct verify_memory *memory,
                             unsigned traits, const struct envelope *envelope, const struct comparison *c,
                             struct judgement *j)
{
    uint64_t sure = 0;
    for (size_t first = 0, last; first < c->count; first = last) {
        for (last = first; last < c->count && c->words[last].region == c->words[first].region;)
            last++;
        sure += take_region(v, l, memory, traits, envelope, c, first, last, j);
    }
    return sure;
}

/* How many words must be beyond before a kernel is accused. Where it decides by floats, some may be there because a
 * thread went another way. */
static uint64_t least_beyond(unsigned traits, const struct envelope *e, const struct comparison *c)
{
    uint64_t least = 1;
    if (traits & REFERENCE_DECISION)
        least = c->compared / 1000 > 8 ? c->compared / 1000 : 8;
    return least + WORDS_OF_A_THREAD * e->near_threads;
}

/* The kernel's PTX leaves something open. */
static void decide_by_envelope(const struct verify *v, const struct model_launch *l, const struct verify_memory *memory,
                               unsigned traits, const struct envelope *e, const struct comparison *c,
                               struct judgement *j)
{
    char detail[200];
    unsigned long long differing = c->differing, compared = c->compared;
    uint64_t beyond = e->counts[ENVELOPE_BEYOND], open = e->counts[ENVELOPE_OPEN], timed = e->counts[ENVELOPE_TIMED];
    bool accused = !(traits & (REFERENCE_ORDER | REFERENCE_IDENTITY)) && beyond >= least_beyond(traits, e, c);
    if (accused && take_regions(v, l, memory, traits, e, c, j))
        return;
    if (timed) {
        snprintf(
            detail, sizeof detail,
            "%llu of %llu words differ, of them %llu that depend on clocks, processor numbers or what atomics found",
            differing, compared, (unsigned long long)timed);
        verify_not(j, "time-dependent", detail);
    } else if (beyond || e->suspicious || open > c->compared / OPEN_SHARE) {
        snprintf(
            detail, sizeof detail,
            "%llu of %llu words differ: %llu within what rounding and order may change, %llu not, %llu cannot be told",
            differing, compared, (unsigned long long)e->counts[ENVELOPE_WITHIN], (unsigned long long)beyond,
            (unsigned long long)open);
        verify_not(j, "vacuous", detail);
    }
}

static void decide(struct verify *v, const struct model_launch *l, const struct reference_module *module,
                   const struct reference_launch *run, const struct verify_memory *memory, const struct comparison *c,
                   struct judgement *j)
{
    const struct ptx_kernel *kernel = ptx_module_find_kernel(reference_module_ptx(module), run->kernel);
    unsigned traits = kernel ? reference_traits(module, kernel) & REFERENCE_FREEDOMS : REFERENCE_FREEDOMS;
    struct envelope envelope;
    char detail[160];
    if ((traits & REFERENCE_ORDER) && order_explains(v, l, run, c)) {
        j->verdict = JUDGEMENT_CHECKED;
        return;
    }
    if (traits && verify_envelope(v, l, run, memory, c, traits & REFERENCE_ORDER, &envelope)) {
        decide_by_envelope(v, l, memory, traits, &envelope, c, j);
        envelope_free(&envelope);
        return;
    }
    if (traits & REFERENCE_IDENTITY) {
        verify_not(j, "time-dependent", "the kernel reads clocks or processor numbers");
        return;
    }
    if (take_regions(v, l, memory, traits, NULL, c, j))
        return;
    snprintf(detail, sizeof detail, "%llu of %llu words differ, %s", (unsigned long long)c->differing,
             (unsigned long long)c->compared,
             traits ? "by no more than rounding, order or decisions may change"
                    : "where another stream may have written at the same time");
    verify_not(j, "vacuous", detail);
}

void verify_outputs(struct verify *v, const struct model_launch *l, const struct reference_module *module,
                    struct reference_launch *run, struct verify_memory *memory, struct judgement *j)
{
    struct comparison c;
    struct diag diag = {.text = ""};
    enum status status = compare_run(v->model, l, memory, &v->blobs, &c, &diag);
    if (!status && c.differing && run->layout == REFERENCE_ISOLATED) {
        /* A kernel that stores addresses stores the moved ones: once more with everything in its place. */
        struct reference_result again;
        comparison_free(&c);
        run->layout = REFERENCE_AS_LAUNCHED;
        if (!remake(v, l, run, memory, true)) {
            verify_not(j, "no-memory", NULL);
            return;
        }
        reference_run(run, &again);
        bool ok = !again.reason && !again.fault_count;
        reference_result_free(&again);
        if (!ok) {
            verify_not(j, "vacuous", "the two layouts do not agree");
            return;
        }
        status = compare_run(v->model, l, memory, &v->blobs, &c, &diag);
    }
    if (status) {
        verify_not(j, status == STATUS_NO_MEMORY ? "no-memory" : "no-outputs", diag.text);
        return;
    }
    drop_concurrent(v, l, memory, &c);
    if (c.differing)
        decide(v, l, module, run, memory, &c, j);
    else if (c.incomplete)
        verify_not(j, "no-outputs", "it stored to memory that no snapshot after it shows");
    comparison_free(&c);
}

void verify_outputs_drop_concurrent(const struct verify *v, const struct model_launch *l,
                                    const struct verify_memory *memory, struct comparison *c)
{
    drop_concurrent(v, l, memory, c);
}

uint64_t verify_outputs_take(const struct verify *v, const struct model_launch *l, const struct verify_memory *memory,
                             unsigned traits, const struct envelope *envelope, const struct comparison *c,
                             struct judgement *j)
{
    return take_regions(v, l, memory, traits, envelope, c, j);
}
