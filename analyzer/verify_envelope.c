/* verify_envelope.c - each element's own scale, from runs that round by chance.
 *
 * The scale of a float is the largest distance of a run's value from the expected one, the distance of the expected one
 * from its shadow, and one unit in the last place, whichever is largest. A device that rounds, contracts or
 * approximates otherwise is a few scales away; integers must be those of some run, unless a near decision was made. */
#include "analyzer/verify_envelope.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/shadow_run.h"

enum { RUNS = 6 };
#define WITHIN_SCALES 16.0
#define BEYOND_SCALES 64.0
/* Of a group of elements the root mean square of distances in scales: sound ones are near 1. */
#define GROUP_SUSPICIOUS 4.0
#define GROUP_BEYOND     8.0
enum { GROUP_LEAST = 32, GROUP_SURE = 256 };

struct envelope_element {
    size_t region;
    uint64_t offset;
    uint32_t bytes;
    bool floating, stored, exact; /* exact: no rounding is behind it */
    enum element_type type;
    uint8_t flags; /* enum ptx_shadow_flags */
    uint8_t word;  /* enum envelope_word */
    bool as_a_run; /* some run stored the device's bits */
    double device, expected, own, spread, scales;
    uint64_t device_bits;
    int64_t low, high; /* integers, over the runs */
};
struct maker {
    const struct verify_memory *memory;
    const struct comparison *words;
    const struct shadow_run *shadow;
    struct envelope_element *elements; /* owned */
    size_t count;
    uint32_t *first; /* owned; of each word; elements of a word follow each other */
    uint8_t *per_word;
};

/* ---- which elements differ ---- */

static enum element_type type_of(unsigned kind)
{
    return kind == PTX_SHADOW_F64   ? ELEMENT_F64
           : kind == PTX_SHADOW_F32 ? ELEMENT_F32
           : kind == PTX_SHADOW_F16 ? ELEMENT_F16
                                    : ELEMENT_BF16;
}

/* The device's bytes [offset, offset + bytes), from the differing words and the rest of what was expected. */
static uint64_t device_bits(const struct maker *m, size_t word, uint64_t offset, uint32_t bytes)
{
    const struct compare_word *w = &m->words->words[word];
    const struct reference_region *r = &m->memory->regions[w->region];
    uint64_t bits = 0;
    memcpy(&bits, r->host + offset, bytes);
    for (size_t i = word ? word - 1 : 0; i < m->words->count && i <= word + 1; i++) {
        const struct compare_word *o = &m->words->words[i];
        for (unsigned k = 0; k < 4 && o->region == w->region; k++)
            if (o->offset + k >= offset && o->offset + k < offset + bytes)
                ((uint8_t *)&bits)[o->offset + k - offset] = (uint8_t)(o->device >> 8 * k);
    }
    return bits;
}

static int64_t integer_of(uint64_t bits, uint32_t bytes)
{
    return bytes == 4 ? (int32_t)(uint32_t)bits : bytes == 2 ? (int16_t)(uint16_t)bits : (int64_t)bits;
}

static void add_element(struct maker *m, size_t word, uint64_t offset, uint32_t bytes, const struct ptx_shadow_value *s)
{
    const struct compare_word *w = &m->words->words[word];
    const struct reference_region *r = &m->memory->regions[w->region],
                                  *shadowed = &m->shadow->memory.regions[w->region];
    struct envelope_element e = {.region = w->region, .offset = offset, .bytes = bytes, .stored = w->stored};
    uint64_t expected = 0;
    memcpy(&expected, r->host + offset, bytes);
    e.device_bits = device_bits(m, word, offset, bytes);
    if (e.device_bits == expected)
        return; /* the other half of the word */
    e.flags = shadowed->shadow ? 0 : PTX_SHADOW_LOST;
    for (uint32_t k = 0; shadowed->tainted && k < bytes; k++)
        e.flags |= shadowed->tainted[offset + k];
    e.floating = s && s->kind > PTX_SHADOW_NONE && s->kind <= PTX_SHADOW_F64;
    e.low = e.high = integer_of(expected, bytes);
    if (e.floating) {
        e.type = type_of(s->kind);
        e.exact = !(s->flags & PTX_SHADOW_INEXACT);
        e.device = element_value(e.type, (const uint8_t *)&e.device_bits);
        e.expected = element_value(e.type, r->host + offset);
        e.own = fabs(e.expected - s->wide - ptx_shadow_low(s));
        if (e.flags & PTX_SHADOW_LOST || !(e.own < INFINITY))
            e.own = 0;
    }
    m->elements[m->count++] = e;
    m->per_word[word]++;
}

static bool is_half(const struct ptx_shadow_value *s)
{
    return s->kind == PTX_SHADOW_F16 || s->kind == PTX_SHADOW_BF16;
}

static void add_word(struct maker *m, size_t word)
{
    const struct compare_word *w = &m->words->words[word];
    const struct reference_region *r = &m->shadow->memory.regions[w->region];
    const struct ptx_shadow_value *s = r->shadow ? r->shadow + w->offset / 2 : NULL;
    uint64_t left = r->bytes - w->offset;
    m->first[word] = (uint32_t)m->count;
    if (s && w->offset % 4 == 0 && left >= 4) {
        bool low = s->kind == PTX_SHADOW_F64 && left >= 8;
        bool high = s->kind == PTX_SHADOW_REST && w->offset >= 4 && s[-2].kind == PTX_SHADOW_F64;
        const struct compare_word *before = word ? &m->words->words[word - 1] : NULL;
        if (high && before && before->region == w->region && before->offset == w->offset - 4) {
            m->first[word] = m->first[word - 1]; /* the same double */
            m->per_word[word] = m->per_word[word - 1];
        } else if (low || high) {
            add_element(m, word, high ? w->offset - 4 : w->offset, 8, high ? s - 2 : s);
        } else if (is_half(s) || is_half(s + 1)) {
            add_element(m, word, w->offset, 2, s);
            add_element(m, word, w->offset + 2, 2, s + 1);
        } else {
            add_element(m, word, w->offset, 4, s);
        }
        return;
    }
    add_element(m, word, w->offset, left < 4 ? (uint32_t)left : 4 - (uint32_t)(w->offset % 4), NULL);
}

/* ---- runs ---- */

static void take_run(struct envelope_element *e, const struct verify_memory *memory)
{
    const uint8_t *at = memory->regions[e->region].host + e->offset;
    uint64_t bits = 0;
    memcpy(&bits, at, e->bytes);
    e->as_a_run = e->as_a_run || bits == e->device_bits;
    if (e->floating) {
        double off = fabs(element_value(e->type, at) - e->expected);
        if (off > e->spread || off != off)
            e->spread = off == off ? off : INFINITY;
    }
    int64_t n = integer_of(bits, e->bytes);
    e->low = n < e->low ? n : e->low;
    e->high = n > e->high ? n : e->high;
}

static bool run_by_chance(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                          uint64_t seed, bool orders, struct maker *m)
{
    struct verify_memory memory = {0};
    struct reference_launch run;
    struct reference_result result = {0};
    struct diag diag;
    bool everything = like->layout == REFERENCE_AS_LAUNCHED;
    if (verify_memory_make(&memory, l, &v->live, &v->valid, &v->blobs, everything, v->options->memory_limit, &diag))
        return false;
    verify_fill_launch(v, l, like->module, &memory, &run);
    run.layout = like->layout;
    run.rounding_seed = seed;
    run.seed = orders ? seed : 0;
    if (orders)
        run.workers = 1;
    reference_run(&run, &result);
    bool ok = !result.reason && !result.fault_count && memory.count == m->memory->count;
    for (size_t i = 0; ok && i < m->count; i++)
        take_run(&m->elements[i], &memory);
    reference_result_free(&result);
    verify_memory_free(&memory);
    return ok;
}

/* ---- what they say ---- */

static double last_place(enum element_type type, double x)
{
    int exponent, digits = type == ELEMENT_F64 ? 53 : type == ELEMENT_F32 ? 24 : type == ELEMENT_F16 ? 11 : 8;
    int least = type == ELEMENT_F64 ? -1074 : type == ELEMENT_F32 ? -149 : type == ELEMENT_F16 ? -24 : -133;
    (void)frexp(x, &exponent);
    return ldexp(1, exponent - digits > least ? exponent - digits : least);
}

/* `magnitude` is typical of the elements around it. */
static enum envelope_word judge_float(struct envelope_element *e, double magnitude)
{
    if (e->device == e->expected || (e->device != e->device && e->expected != e->expected))
        return ENVELOPE_WITHIN; /* zeros of another sign, NaNs of other bits */
    bool timed = e->flags & PTX_SHADOW_TIMED, sure = !(e->flags & (PTX_SHADOW_DECIDED | PTX_SHADOW_LOST)) && e->stored;
    double size = fmax(fabs(e->expected), magnitude), off = fabs(e->device - e->expected);
    double scale = fmax(fmax(e->spread, e->own), last_place(e->type, e->expected));
    bool tells = WITHIN_SCALES * scale <= size && fabs(e->expected) < INFINITY && e->stored;
    if (e->exact && sure && !timed)
        return ENVELOPE_BEYOND;
    if (tells) {
        e->scales = off / scale;
        if (e->scales <= WITHIN_SCALES)
            return ENVELOPE_WITHIN;
    }
    if (timed)
        return ENVELOPE_TIMED;
    return tells && sure && !(e->scales <= BEYOND_SCALES) ? ENVELOPE_BEYOND : ENVELOPE_OPEN; /* a NaN is beyond */
}

/* One quantum more or less than some run is accepted where a decision was near. */
static enum envelope_word judge_integer(const struct envelope_element *e)
{
    int64_t n = integer_of(e->device_bits, e->bytes);
    if (e->as_a_run)
        return ENVELOPE_WITHIN;
    if (e->flags & PTX_SHADOW_TIMED)
        return ENVELOPE_TIMED;
    if ((e->flags & PTX_SHADOW_DECIDED) && n >= e->low - 1 && n <= e->high + 1)
        return ENVELOPE_WITHIN;
    return !e->stored || (e->flags & (PTX_SHADOW_DECIDED | PTX_SHADOW_LOST)) ? ENVELOPE_OPEN : ENVELOPE_BEYOND;
}

static double magnitude_of(const struct envelope_element *e, size_t count)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (e[i].floating && fabs(e[i].expected) < INFINITY) {
            sum += e[i].expected * e[i].expected;
            n++;
        }
    return n ? sqrt(sum / (double)n) : 0;
}

/* Elements of one region. Returns whether they are too far off as a group. */
static bool judge_group(struct envelope_element *e, size_t count)
{
    double magnitude = magnitude_of(e, count), squares = 0;
    size_t within = 0;
    for (size_t i = 0; i < count; i++) {
        e[i].word = (uint8_t)(e[i].floating ? judge_float(&e[i], magnitude) : judge_integer(&e[i]));
        bool counts =
            e[i].word == ENVELOPE_WITHIN && e[i].scales > 0 && !(e[i].flags & (PTX_SHADOW_DECIDED | PTX_SHADOW_LOST));
        squares += counts ? e[i].scales * e[i].scales : 0;
        within += counts;
    }
    double off = within ? sqrt(squares / (double)within) : 0;
    if (within >= GROUP_SURE && off > GROUP_BEYOND)
        for (size_t i = 0; i < count; i++)
            if (e[i].word == ENVELOPE_WITHIN && e[i].scales > GROUP_SUSPICIOUS &&
                !(e[i].flags & (PTX_SHADOW_DECIDED | PTX_SHADOW_LOST)))
                e[i].word = ENVELOPE_BEYOND;
    return within >= GROUP_LEAST && off > GROUP_SUSPICIOUS;
}

/* A word is as bad as the worst of its elements. */
static enum envelope_word worst(const struct envelope_element *e, size_t count)
{
    static const uint8_t badness[] = {
        [ENVELOPE_WITHIN] = 0, [ENVELOPE_TIMED] = 1, [ENVELOPE_OPEN] = 2, [ENVELOPE_BEYOND] = 3};
    enum envelope_word w = ENVELOPE_WITHIN;
    for (size_t i = 0; i < count; i++)
        if (badness[e[i].word] > badness[w])
            w = (enum envelope_word)e[i].word;
    return w;
}

static void judge(const struct maker *m, struct envelope *out)
{
    for (size_t first = 0, last; first < m->count; first = last) {
        for (last = first; last < m->count && m->elements[last].region == m->elements[first].region;)
            last++;
        out->suspicious = judge_group(m->elements + first, last - first) || out->suspicious;
    }
    for (size_t i = 0; i < m->words->count; i++) {
        out->words[i] = (uint8_t)worst(m->elements + m->first[i], m->per_word[i]);
        out->counts[out->words[i]]++;
        for (size_t k = 0; k < m->per_word[i]; k++)
            out->scales[i] = fmaxf(out->scales[i], (float)m->elements[m->first[i] + k].scales);
    }
}

bool verify_envelope(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                     const struct verify_memory *memory, const struct comparison *c, bool orders, struct envelope *out)
{
    struct shadow_run shadow;
    *out = (struct envelope){0};
    bool ok =
        !shadow_run_make(v, l, like, 0, &shadow) && shadow.memory.count == memory->count && c->differing == c->count;
    struct maker m = {.memory = memory, .words = c, .shadow = &shadow};
    m.elements = calloc(2 * c->count + 1, sizeof *m.elements);
    m.first = calloc(c->count + 1, sizeof *m.first);
    m.per_word = calloc(c->count + 1, 1);
    out->words = calloc(c->count + 1, 1);
    out->scales = calloc(c->count + 1, sizeof *out->scales);
    ok = ok && m.elements && m.first && m.per_word && out->words && out->scales;
    for (size_t i = 0; ok && i < c->count; i++)
        add_word(&m, i);
    for (uint64_t seed = 1; ok && seed <= RUNS; seed++)
        ok = run_by_chance(v, l, like, seed, orders, &m);
    if (ok) {
        judge(&m, out);
        out->near_threads = shadow.result.tainted_threads;
    } else {
        envelope_free(out);
    }
    free(m.elements);
    free(m.first);
    free(m.per_word);
    shadow_run_end(&shadow);
    return ok;
}

void envelope_free(struct envelope *e)
{
    free(e->words);
    free(e->scales);
    *e = (struct envelope){0};
}
