/* exec_shadow.c - judging the error of a float operation, the events of a launch, half precision. */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_rounding.h"

struct number_table {
    struct map index; /* line * 4 + kind -> event */
    struct ptx_number_event *events;
    struct who {
        uint64_t first, shown; /* the threads of `access` and of the operands */
    } * whose;                 /* by event */
    size_t count, capacity;
    struct map atomics; /* address -> the thread that came first */
};

/* ---- events ---- */

bool shadow_launch_start(struct launch *l)
{
    l->numbers = calloc(1, sizeof *l->numbers);
    return l->numbers != NULL;
}

void shadow_launch_end(struct launch *l)
{
    if (!l->numbers)
        return;
    map_free(&l->numbers->index);
    map_free(&l->numbers->atomics);
    free(l->numbers->events);
    free(l->numbers->whose);
    free(l->numbers);
    l->numbers = NULL;
}

static int compare_events(const void *x, const void *y)
{
    const struct ptx_number_event *a = x, *b = y;
    if (a->access.ptx_line != b->access.ptx_line)
        return a->access.ptx_line < b->access.ptx_line ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

bool shadow_launch_finish(struct launch *l)
{
    struct number_table *n = l->numbers;
    if (!n || n->count == 0)
        return true;
    qsort(n->events, n->count, sizeof *n->events, compare_events);
    l->result->events = n->events;
    l->result->event_count = n->count;
    n->events = NULL;
    return true;
}

static bool more_events(struct number_table *n)
{
    size_t want = n->capacity ? n->capacity * 2 : 16;
    struct ptx_number_event *fresh = realloc(n->events, want * sizeof *fresh);
    if (fresh)
        n->events = fresh;
    struct who *whose = realloc(n->whose, want * sizeof *whose);
    if (whose)
        n->whose = whose;
    if (!fresh || !whose)
        return false;
    n->capacity = want;
    return true;
}

static bool find_event(struct number_table *n, uint32_t line, enum ptx_number_kind kind, uint64_t *at)
{
    uint64_t key = (uint64_t)line << 2 | kind;
    if (map_get(&n->index, key, at))
        return true;
    if ((n->count == n->capacity && !more_events(n)) || !map_put(&n->index, key, n->count))
        return false;
    *at = n->count++;
    memset(&n->events[*at], 0, sizeof n->events[*at]);
    n->whose[*at] = (struct who){UINT64_MAX, UINT64_MAX};
    n->events[*at].kind = kind;
    return true;
}

/* A number is worse than NaN. */
static bool is_worse(double a, double b)
{
    return a > b || (a == a && b != b);
}

void shadow_note(struct worker *w, const struct block *b, const struct thread *t, uint32_t line,
                 enum ptx_number_kind kind, const struct judgement *j, double error_in, double error_out)
{
    struct number_table *n = w->launch->numbers;
    uint64_t at, own = b->linear << 10 | t->index;
    if (!find_event(n, line, kind, &at)) {
        launch_stop(w->launch, STATUS_NO_MEMORY);
        return;
    }
    struct ptx_number_event *e = &n->events[at];
    struct who *who = &n->whose[at];
    e->count++;
    if (own < who->first) {
        who->first = own;
        e->access.ptx_line = line;
        memcpy(e->access.block, b->ctaid, sizeof e->access.block);
        memcpy(e->access.thread, t->tid, sizeof e->access.thread);
    }
    bool graded = kind >= PTX_NUMBER_AMPLIFIED, first = who->shown == UINT64_MAX;
    bool worse = graded && !first && is_worse(error_out, e->error_out);
    bool better = graded && !first && is_worse(e->error_out, error_out);
    if (!worse && (better || own >= who->shown))
        return;
    who->shown = own;
    e->operand_count = j->count;
    for (unsigned i = 0; i < j->count; i++) {
        e->operands[i] = j->operands[i].actual;
        e->operands_wide[i] = j->operands[i].wide;
    }
    e->result = j->actual;
    e->result_wide = j->wide.high;
    e->error_in = error_in;
    e->error_out = error_out;
}

bool shadow_contended(struct worker *w, const struct block *b, const struct thread *t, enum mem_space space,
                      uint64_t address)
{
    struct map *m = &w->launch->numbers->atomics;
    uint64_t own = b->linear << 10 | t->index, first;
    if (space == MEM_SHARED)
        address |= PTX_SHARED_WINDOW;
    bool known = map_get(m, address, &first);
    if (known && first != own && (space != MEM_SHARED || first >> 10 == b->linear))
        return true;
    if ((!known || first != own) && !map_put(m, address, own))
        launch_stop(w->launch, STATUS_NO_MEMORY);
    return false;
}

/* ---- errors ---- */

static const struct {
    double bound, floor;
} precisions[] = {
    [PRECISION_F16] = {BOUND_F16, FLOOR_F16},    [PRECISION_BF16] = {BOUND_BF16, FLOOR_BF16},
    [PRECISION_TF32] = {BOUND_TF32, FLOOR_TF32}, [PRECISION_F32] = {BOUND_F32, FLOOR_F32},
    [PRECISION_F64] = {BOUND_F64, FLOOR_F64},    [PRECISION_ROUGH64] = {BOUND_ROUGH64, FLOOR_ROUGH64},
};

/* fmax(), which gcc makes a call of. */
static inline double most(double a, double b)
{
    return a >= b || b != b ? a : b;
}

/* Equal infinities, and NaN against NaN, are no error; any other pair with one of them is an infinite one. */
static inline double absolute_error(double actual, struct dd wide)
{
    if ((actual == wide.high && wide.low == 0) || (actual != actual && wide.high != wide.high))
        return 0;
    double e = dd_distance(actual, wide);
    return e < INFINITY ? e : INFINITY;
}

static struct dd wide_of(const struct operand_value *o)
{
    return (struct dd){o->wide, o->low};
}

/* Against the larger of both, so that a result that should be zero, or is, has error 1 and not infinity. */
static inline double relative_error(double actual, struct dd wide, enum precision p)
{
    double e = absolute_error(actual, wide), size = most(fabs(actual), fabs(wide.high));
    double least = precisions[p].floor / precisions[p].bound;
    if (e == 0 || e == INFINITY)
        return e;
    return e / (size > least ? size : least);
}

/* How much of the result's error an operand's error makes up, in units that only compare with each other; the last one
 * is the operation's own rounding. `relative`: errors of the operands. */
static void contributions(const struct judgement *j, const double relative[3], double out[4])
{
    const struct operand_value *o = j->operands;
    double size = most(fabs(j->actual), fabs(j->wide.high));
    for (unsigned i = 0; i < j->count; i++) {
        double e = absolute_error(o[i].actual, wide_of(&o[i]));
        if (j->how == HOW_PRODUCT)
            e = relative[i] * size;
        else if (j->how == HOW_FMA && i < 2)
            e *= most(fabs(o[1 - i].wide), fabs(o[1 - i].actual));
        out[i] = e >= 0 ? e : INFINITY; /* 0 * inf */
    }
    if (j->how == HOW_ONE) /* in units of the result, so that its own rounding compares */
        out[0] = absolute_error(j->exact.high, dd_subtract(j->wide, dd_of(j->exact.low)));
    out[3] = absolute_error(j->actual, j->exact);
}

/* The place behind the operand that brings the error in, when one is known: what was bad before is not this
 * instruction's doing, even where it makes the error larger relative to the result. Else `otherwise`, or the
 * instruction itself when its own rounding dominates. */
static uint32_t blame(const struct judgement *j, const double relative[3], uint32_t line, uint32_t otherwise)
{
    double part[4] = {0}, largest = 0, best = -1;
    uint32_t origin = 0;
    contributions(j, relative, part);
    for (unsigned i = 0; i < j->count; i++) {
        largest = most(largest, part[i]);
        if (j->operands[i].origin && part[i] > best) {
            best = part[i];
            origin = j->operands[i].origin;
        }
    }
    if (origin && best * 8 >= largest && best > 0)
        return origin;
    return part[3] > largest ? line : otherwise;
}

uint32_t shadow_judge(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                      const struct judgement *j)
{
    uint32_t line = thread_line(t, in);
    bool infinite = false;
    if (j->actual != j->actual) {
        for (unsigned i = 0; i < j->count; i++)
            if (j->operands[i].actual != j->operands[i].actual)
                return j->operands[i].origin;
        shadow_note(w, b, t, line, PTX_NUMBER_NAN, j, 0, 0);
        return line;
    }
    if (isinf(j->actual)) {
        for (unsigned i = 0; i < j->count; i++)
            if (isinf(j->operands[i].actual)) {
                infinite = true;
                if (j->operands[i].origin)
                    return j->operands[i].origin;
            }
        if (infinite)
            return 0;
        shadow_note(w, b, t, line, PTX_NUMBER_INF, j, 0, 0);
        return line;
    }
    double out = relative_error(j->actual, j->wide, j->precision), in_error = 0;
    if (out <= precisions[j->precision].bound)
        return 0;
    double relative[3] = {0};
    for (unsigned i = 0; i < j->count; i++) {
        relative[i] = relative_error(j->operands[i].actual, wide_of(&j->operands[i]), j->precision);
        in_error = most(in_error, relative[i]);
    }
    /* At one stroke, or as the last step of a slow growth that takes the error over the bound. */
    if (out > 8 * in_error || in_error <= precisions[j->precision].bound) {
        shadow_note(w, b, t, line, PTX_NUMBER_AMPLIFIED, j, in_error, out);
        return blame(j, relative, line, line);
    }
    return blame(j, relative, line, 0);
}

/* ---- operands that are not plainly of their type ---- */

double shadow_unit(uint64_t seed, uint64_t address)
{
    uint64_t state = seed ^ address * UINT64_C(0xd6e8feb86659fd93);
    return (double)(int64_t)random_next(&state) * 0x1p-63;
}

static double last_place(enum ptx_shadow_kind kind)
{
    return kind == PTX_SHADOW_F16    ? 0x1p-11
           : kind == PTX_SHADOW_BF16 ? 0x1p-8
           : kind == PTX_SHADOW_F32  ? 0x1p-24
                                     : 0x1p-53;
}

static struct operand_value of_half(const struct worker *w, enum ptx_shadow_kind kind, const struct ptx_shadow_value *s,
                                    double actual)
{
    if (s->kind == kind)
        return (struct operand_value){actual, s->wide, 0, s->origin, s->depth, s->flags, false};
    if (s->kind == NUMBER_LOADED) {
        double u = shadow_unit(w->launch->config->perturbation, (uint64_t)s->wide);
        return (struct operand_value){actual, actual * (1 + u * last_place(kind)), 0, 0, 0, s->flags, false};
    }
    return (struct operand_value){actual, actual, 0, 0, 0, shadow_plain_of(s).flags, false};
}

struct operand_value shadow_operand(const struct worker *w, enum ptx_shadow_kind kind, const struct ptx_shadow_value *s,
                                    const struct number_pair *p, union slot v, double actual)
{
    if (s->kind == NUMBER_PAIR16 && kind == PTX_SHADOW_F32 && v.u16 == 0) /* a bfloat16 made wider by zeros below it */
        return of_half(w, PTX_SHADOW_BF16, &p->high, actual);
    if (s->kind == NUMBER_LOADED && kind == PTX_SHADOW_F64) {
        double u = shadow_unit(w->launch->config->perturbation, (uint64_t)s->wide);
        return (struct operand_value){actual,   actual, fabs(actual) < INFINITY ? actual * u * 0x1p-53 : 0, 0, 0,
                                      s->flags, false};
    }
    if (s->kind == NUMBER_PAIR16 && (kind == PTX_SHADOW_F16 || kind == PTX_SHADOW_BF16))
        return of_half(w, kind, &p->low, actual);
    return of_half(w, kind, s, actual);
}

/* ---- half precision: one operation, or the same on both halves ---- */

struct half_meaning {
    unsigned count;
    enum how how;
    bool pick;
};

static struct half_meaning half_meaning(unsigned op)
{
    switch (op) {
#define HALF(id, id_x2, operands, how, expression)                                                                     \
    case OP_##id:                                                                                                      \
    case OP_##id_x2:                                                                                                   \
        return (struct half_meaning){operands, HOW_##how, false};
#define HALF_PICK(id, id_x2, operands, first, expression)                                                              \
    case OP_##id:                                                                                                      \
    case OP_##id_x2:                                                                                                   \
        return (struct half_meaning){operands, HOW_ONE, true};
#include "ptx/shadow.def"
    default:
        return (struct half_meaning){0};
    }
}

static double half_wide(unsigned op, unsigned mod, double a, double b, double c)
{
    switch (op) {
#define HALF(id, id_x2, operands, how, expression)                                                                     \
    case OP_##id:                                                                                                      \
    case OP_##id_x2:                                                                                                   \
        return expression;
#include "ptx/shadow.def"
    default:
        return a;
    }
}

static struct operand_value half_picked(unsigned op, unsigned mod, const struct operand_value o[3], double r)
{
    const double xa = o[0].actual, xb = o[1].actual;
    struct operand_value picked = {0};
    switch (op) {
#define HALF_PICK(id, id_x2, operands, first, expression)                                                              \
    case OP_##id:                                                                                                      \
    case OP_##id_x2: {                                                                                                 \
        picked = (first) ? o[0] : o[1];                                                                                \
        const double x = picked.wide;                                                                                  \
        picked.wide = expression;                                                                                      \
        return picked;                                                                                                 \
    }
#include "ptx/shadow.def"
    default:
        return picked;
    }
}

static struct ptx_shadow_value half_result(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                                           bool bf16, const struct operand_value o[3], double actual)
{
    struct half_meaning m = half_meaning(in->op);
    enum ptx_shadow_kind kind = bf16 ? PTX_SHADOW_BF16 : PTX_SHADOW_F16;
    uint32_t deepest = 0;
    unsigned flags = 0;
    for (unsigned i = 0; i < m.count; i++) {
        deepest = o[i].depth > deepest ? o[i].depth : deepest;
        flags |= o[i].flags;
    }
    struct ptx_shadow_value r = {.depth = deeper(deepest, 0), .kind = kind, .flags = flags & 0xf};
    if (m.pick) {
        struct operand_value picked = half_picked(in->op, in->mod, o, actual);
        r.wide = picked.wide;
        r.origin = picked.origin;
        return r;
    }
    enum precision p = bf16 ? PRECISION_BF16 : PRECISION_F16;
    r.wide = half_wide(in->op, in->mod, o[0].wide, o[1].wide, o[2].wide);
    r.flags |= r.wide != actual || rounding_noise(in->op, in->mod, 1) != 0 ? PTX_SHADOW_INEXACT : 0;
    if (!(fabs(actual - r.wide) <= precisions[p].bound * fabs(r.wide) + precisions[p].floor)) {
        struct judgement j = {o,
                              m.count,
                              m.how,
                              p,
                              actual,
                              {r.wide, 0},
                              {half_wide(in->op, in->mod, o[0].actual, o[1].actual, o[2].actual), 0}};
        r.origin = shadow_judge(w, b, t, in, &j);
    }
    return r;
}

static bool is_packed(unsigned op)
{
    switch (op) {
#define HALF(id, id_x2, operands, how, expression)        case OP_##id_x2:
#define HALF_PICK(id, id_x2, operands, first, expression) case OP_##id_x2:
#include "ptx/shadow.def"
        return true;
    default:
        return false;
    }
}

/* ex2, tanh and flushing carry no type bit for f16; the bit is HALF_BF16 in all others. */
static double half_value(union slot v, unsigned half, bool bf16)
{
    return widen_half((uint16_t)(v.u32 >> 16 * half), bf16 ? HALF_BF16 : 0);
}

void shadow_half(struct worker *w, struct block *b, struct thread *t, const struct insn *in, const union slot *R,
                 struct ptx_shadow_value *S, struct number_pair *P, union slot result)
{
    struct ptx_shadow_value results[2];
    const uint32_t slots[3] = {in->a, in->b, in->c};
    unsigned halves = is_packed(in->op) ? 2 : 1, count = half_meaning(in->op).count;
    /* neg and abs do not say which format they work on: their operand's shadow does. */
    bool bf16 = in->mod & HALF_BF16;
    if (in->op == OP_NEG_H || in->op == OP_ABS_H)
        bf16 = S[in->a].kind == PTX_SHADOW_BF16;
    if (in->op == OP_NEG_HX2 || in->op == OP_ABS_HX2)
        bf16 = S[in->a].kind == NUMBER_PAIR16 &&
               (P[in->a].low.kind == PTX_SHADOW_BF16 || P[in->a].high.kind == PTX_SHADOW_BF16);
    enum ptx_shadow_kind kind = bf16 ? PTX_SHADOW_BF16 : PTX_SHADOW_F16;
    for (unsigned h = 0; h < halves; h++) {
        struct operand_value o[3] = {{0}};
        for (unsigned i = 0; i < count; i++) {
            const struct ptx_shadow_value s = shadow_half_of(&S[slots[i]], &P[slots[i]], h);
            o[i] = of_half(w, kind, &s, half_value(R[slots[i]], h, bf16));
        }
        results[h] = half_result(w, b, t, in, bf16, o, half_value(result, h, bf16));
    }
    if (halves == 1) {
        S[in->d] = results[0];
    } else {
        S[in->d] = (struct ptx_shadow_value){.kind = NUMBER_PAIR16, .flags = results[0].flags | results[1].flags};
        P[in->d] = (struct number_pair){results[0], results[1]};
    }
}
