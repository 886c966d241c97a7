/* verify_numbers.c - "operator right?", as far as the kernel itself can tell: the launch runs again with an fp64 shadow
 * beside every float, and what it stores is compared with its shadow.
 *
 * A stored NaN is traced to the instruction that made it. A stored value that is too far from its shadow is held
 * against the kernel only when the problem itself is better conditioned than the result shows: the shadows of runs
 * whose inputs are off by half a unit in the last place move less than the result is wrong. Then the place that
 * contributed most is named.
 */
#include "analyzer/shadow_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/name.h"

enum { PERTURBED_RUNS = 2 };
/* Inputs are one sample of what may be off; rounding happens at each of `depth` operations, and adds up like a walk. */
#define CONDITION_SLACK 16.0
/* An error below this many roundings of the buffer's typical magnitude is noise of a small element among large ones. */
#define NOISE_ROUNDINGS 16.0
/* "One place contributes it": its part of the errors over the limit, summed; and what part of all elements must be over
 * it. */
#define BLAMED_SHARE    0.6
#define CONCERNED_SHARE 0.01

/* A shadow so much smaller than the value is what fp64 leaves of zero; with inputs that use all its digits it leaves
 * more. */
#define ZERO_SHARE           0x1p-27
#define PERTURBED_ZERO_SHARE 0x1p-18

struct number_limit {
    double absolute, relative, rounding;
};

static const struct number_limit *limit_of(unsigned kind)
{
    static const struct number_limit limits[] = {
        [PTX_SHADOW_F16] = {1e-3, 1e-2, 0x1p-11},
        [PTX_SHADOW_BF16] = {1e-2, 3e-2, 0x1p-8},
        [PTX_SHADOW_F32] = {1e-5, 1e-3, 0x1p-24},
        /* Doubles that sum up single precision are as good as that. */
        [PTX_SHADOW_F64] = {1e-5, 1e-3, 0x1p-53},
    };
    return kind > PTX_SHADOW_NONE && kind <= PTX_SHADOW_F64 ? &limits[kind] : NULL;
}

/* ---- tallies by place ---- */

struct tally {
    enum judgement_number_kind kind;
    size_t region;
    const char *file; /* of the place in the program's own source; NULL: unknown */
    uint32_t line, ptx_line;
    uint64_t count, offset; /* offset: of the first or the worst element */
    double stored, wide, badness;
    double error; /* summed over the elements */
    const struct number_limit *limit;
};
struct numbers {
    const struct reference_module *module;
    struct tally *tallies; /* owned */
    size_t count, capacity;
    uint64_t judged, lost; /* elements */
    bool no_memory;
};

static void place_of(const struct reference_module *module, uint32_t ptx_line, const char **file, uint32_t *line)
{
    struct ptx_source frames[JUDGEMENT_FRAMES];
    size_t count = ptx_module_source(reference_module_ptx(module), ptx_line, frames, JUDGEMENT_FRAMES);
    *file = NULL;
    *line = 0;
    for (size_t i = 0; i < count && i < JUDGEMENT_FRAMES; i++)
        if (frames[i].file && frames[i].line && name_own_source(frames[i].file)) {
            *file = frames[i].file;
            *line = frames[i].line;
            return;
        }
}

/* Unrolled loops have one source line at many instructions: they are one place. */
static struct tally *tally_of(struct numbers *n, enum judgement_number_kind kind, size_t region, uint32_t ptx_line)
{
    const char *file;
    uint32_t line;
    for (size_t i = 0; i < n->count; i++)
        if (n->tallies[i].kind == kind && n->tallies[i].region == region && n->tallies[i].ptx_line == ptx_line)
            return &n->tallies[i];
    place_of(n->module, ptx_line, &file, &line);
    for (size_t i = 0; file && i < n->count; i++) {
        struct tally *t = &n->tallies[i];
        if (t->kind == kind && t->region == region && t->line == line && t->file && strcmp(t->file, file) == 0)
            return t;
    }
    if (n->count == n->capacity) {
        size_t capacity = n->capacity ? 2 * n->capacity : 16;
        struct tally *more = realloc(n->tallies, capacity * sizeof *more);
        if (!more) {
            n->no_memory = true;
            return NULL;
        }
        n->tallies = more;
        n->capacity = capacity;
    }
    n->tallies[n->count] = (struct tally){kind, region, file, line, ptx_line, 0, 0, 0, 0, -1, 0, NULL};
    return &n->tallies[n->count++];
}

static void count_in(struct tally *t, const struct shadow_element *e, double badness)
{
    if (!t)
        return;
    t->error += badness;
    if (t->count++ == 0 || badness > t->badness) {
        t->offset = e->offset;
        t->stored = e->value;
        t->wide = e->shadow->wide;
        t->badness = badness;
        t->limit = limit_of(e->shadow->kind);
        if (t->kind == JUDGEMENT_NUMBER_APPROXIMATION)
            t->ptx_line = e->shadow->origin ? e->shadow->origin : t->ptx_line;
    }
}

static bool over_limit(const struct shadow_element *e)
{
    const struct number_limit *limit = limit_of(e->shadow->kind);
    return limit && isfinite(e->value) && isfinite(e->shadow->wide) && e->error > limit->absolute &&
           e->error > limit->relative * fabs(e->shadow->wide);
}

/* Root mean square of the shadows of a region's elements. */
static double magnitude_of(const struct reference_region *r)
{
    struct shadow_element e;
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t cursor = 0; shadow_next_element(r, &cursor, &e);)
        if (isfinite(e.shadow->wide)) {
            sum += e.shadow->wide * e.shadow->wide;
            count++;
        }
    return count ? sqrt(sum / (double)count) : 0;
}

/* Do inputs that are off by half a unit in the last place move the true result as much as the result is wrong? */
static bool ill_conditioned(const struct shadow_element *e, size_t region, const struct shadow_run *perturbed)
{
    double moved = 0;
    for (int k = 0; k < PERTURBED_RUNS; k++) {
        const struct ptx_shadow_value *other = &perturbed[k].memory.regions[region].shadow[e->offset / 2];
        if (other->kind != e->shadow->kind || !isfinite(other->wide))
            return true;
        moved = fmax(moved, fabs(other->wide - e->shadow->wide + (ptx_shadow_low(other) - ptx_shadow_low(e->shadow))));
    }
    return e->error <= CONDITION_SLACK * sqrt(1.0 + e->shadow->depth) * moved;
}

/* What is zero whatever the inputs are is stored for its rounding error: the residual of a rounding, the low half of a
 * number, the compensation of a sum. Most differences that happen to be zero move with their inputs; the variance of
 * equal numbers hardly does, and goes unreported, too. */
static bool is_residual(const struct shadow_element *e, size_t region, const struct shadow_run *perturbed)
{
    bool zero = fabs(e->shadow->wide) <= ZERO_SHARE * fabs(e->value);
    for (int k = 0; k < PERTURBED_RUNS; k++)
        zero = zero && fabs(perturbed[k].memory.regions[region].shadow[e->offset / 2].wide) <=
                           PERTURBED_ZERO_SHARE * fabs(e->value);
    return zero;
}

/* NaNs are tallied, elements counted. Returns whether any element is over its limit. */
static bool look_at_elements(struct numbers *n, const struct shadow_run *plain)
{
    bool over = false;
    struct shadow_element e;
    for (size_t i = 0; i < plain->memory.count; i++) {
        const struct reference_region *r = &plain->memory.regions[i];
        for (uint64_t cursor = 0; r->shadow && shadow_next_element(r, &cursor, &e);) {
            *(e.shadow->flags & PTX_SHADOW_LOST ? &n->lost : &n->judged) += 1;
            if (isnan(e.value) && e.shadow->origin)
                count_in(tally_of(n, JUDGEMENT_NUMBER_NAN, i, e.shadow->origin), &e, 0);
            over = over || over_limit(&e);
        }
    }
    return over;
}

static void look_at_errors(struct numbers *n, const struct shadow_run *plain, const struct shadow_run *perturbed)
{
    struct shadow_element e;
    for (size_t i = 0; i < plain->memory.count; i++) {
        const struct reference_region *r = &plain->memory.regions[i];
        double magnitude = r->shadow ? magnitude_of(r) : 0;
        for (uint64_t cursor = 0; r->shadow && shadow_next_element(r, &cursor, &e);) {
            if (over_limit(&e) && e.error > NOISE_ROUNDINGS * limit_of(e.shadow->kind)->rounding * magnitude &&
                !ill_conditioned(&e, i, perturbed) && !is_residual(&e, i, perturbed))
                count_in(tally_of(n, JUDGEMENT_NUMBER_APPROXIMATION, i, e.shadow->origin), &e, e.error);
        }
    }
}

/* ---- what is told ---- */

static const struct ptx_number_event *event_of(const struct reference_result *result, const struct tally *t)
{
    enum ptx_number_kind kind = t->kind == JUDGEMENT_NUMBER_NAN ? PTX_NUMBER_NAN : PTX_NUMBER_AMPLIFIED;
    for (size_t i = 0; i < result->event_count; i++)
        if (result->events[i].kind == kind && result->events[i].access.ptx_line == t->ptx_line)
            return &result->events[i];
    return NULL;
}

static uint64_t elements_of(const struct reference_region *r)
{
    struct shadow_element e;
    uint64_t count = 0;
    for (uint64_t cursor = 0; shadow_next_element(r, &cursor, &e);)
        count++;
    return count;
}

/* One place must stand behind most of what is wrong in a buffer, and enough must be wrong. */
static bool to_blame(const struct numbers *n, const struct tally *t, uint64_t elements)
{
    double all = 0;
    uint64_t concerned = 0;
    if (t->kind == JUDGEMENT_NUMBER_NAN)
        return true;
    for (size_t i = 0; i < n->count; i++)
        if (n->tallies[i].kind == t->kind && n->tallies[i].region == t->region) {
            all += n->tallies[i].error;
            concerned += n->tallies[i].count;
        }
    return t->ptx_line && t->error >= BLAMED_SHARE * all && (double)concerned >= CONCERNED_SHARE * (double)elements;
}

static void tell(const struct numbers *n, const struct shadow_run *plain, struct judgement *j)
{
    j->numbers = calloc(n->count + 1, sizeof *j->numbers);
    for (size_t i = 0; j->numbers && i < n->count; i++) {
        const struct tally *t = &n->tallies[i];
        uint64_t elements = elements_of(&plain->memory.regions[t->region]);
        if (!to_blame(n, t, elements))
            continue;
        const struct ptx_number_event *event = event_of(&plain->result, t);
        struct ptx_access place = {.ptx_line = t->ptx_line};
        struct judgement_number *to = &j->numbers[j->number_count++];
        *to = (struct judgement_number){
            .kind = t->kind,
            .allocation = plain->memory.info[t->region].allocation->id,
            .offset = t->offset,
            .count = t->count,
            .of = elements,
            .stored = t->stored,
            .wide = t->wide,
        };
        if (t->limit) {
            to->limit_absolute = t->limit->absolute;
            to->limit_relative = t->limit->relative;
        }
        if (event) {
            place = event->access;
            to->operand_count = event->operand_count < 3 ? event->operand_count : 3;
            memcpy(to->operands, event->operands, sizeof to->operands);
            to->result = event->result;
            to->result_wide = event->result_wide;
        }
        verify_take_access(n->module, &place, &to->access);
    }
}

void verify_numbers(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                    struct judgement *j)
{
    struct numbers n = {.module = like->module};
    struct shadow_run plain, perturbed[PERTURBED_RUNS] = {0};
    const char *reason = shadow_run_make(v, l, like, 0, &plain);
    if (!reason && look_at_elements(&n, &plain)) {
        for (int k = 0; k < PERTURBED_RUNS && !reason; k++)
            reason = shadow_run_make(v, l, like, (uint64_t)k + 1, &perturbed[k]);
        if (!reason)
            look_at_errors(&n, &plain, perturbed);
    }
    if (!reason && n.no_memory)
        reason = "no-memory";
    if (!reason && n.judged <= n.lost)
        reason = n.lost ? "lost-shadow" : "no-floats";
    if (!reason || n.judged || n.lost)
        tell(&n, &plain, j);
    j->numbers_checked = !reason;
    j->numbers_reason = reason ? strdup(reason) : NULL;
    for (int k = 0; k < PERTURBED_RUNS; k++)
        shadow_run_end(&perturbed[k]);
    shadow_run_end(&plain);
    free(n.tallies);
}
