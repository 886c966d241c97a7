/* lanes_convoy.c - the first instructions of a block whose warps go the same way, done for all of them at once.
 *
 * Most kernels begin with arithmetic on indices and addresses. A register that is one number, or grows by steps from
 * lane to lane, mostly also grows by a step from warp to warp, so that one computation does for the block; an access
 * whose addresses grow so is one look at a range; what is different in every lane is computed by the plain handlers,
 * warp after warp. A short kernel is over before anything else happens: its instructions are fetched and its warps
 * started once per block.
 *
 * Only what cannot fault, wait or part the lanes is done here; at the first other instruction the warps go on one by
 * one, and find their registers in lanes_start(). Jumps back are such: loops run in the warps. In shadow mode only what
 * leaves registers without shadows is done here. */
#include <stdlib.h>
#include <string.h>
#include "ptx/lanes_shadow.h"

#if defined(LANES_HERE) && !defined(__clang__)
#pragma GCC target("avx2,bmi,bmi2,popcnt") /* nothing here runs where the handlers cannot */
#pragma GCC optimize("O3")
#endif

enum { BLOCKS_AHEAD = 3 };                        /* so far before it is used memory is asked for */
enum { PARTS = 4, BASE = 0, STRIDE, RISE, STEP }; /* of a register that grows by steps */

/* What the warps have in common: by unit, as struct lanes has it, and the step from warp to warp. */
struct convoy {
    struct lanes shared; /* no warp: what all have in common, for handlers that look at nothing else */
    int64_t *step;
    int64_t times[3];                 /* how often stride, rise and step are taken */
    uint32_t *touched, touched_count; /* units written by the block in hand */
    bool *is_touched;
    uint32_t pc, start_pc;
    uint64_t executed;
    uint64_t number; /* of the block in hand */
    bool attached;   /* every warp has a file, whose vectors are written here */
    bool ended;      /* with all the block's threads */
    uint8_t **files; /* by warp: vectors */
    lane_handler *single[LANE_OP_COUNT];
};

static const struct insn *stop_here(struct lanes *L, const struct insn *in)
{
    (void)L;
    return in;
}

/* ---- what an instruction is ---- */

static bool is_comparison(unsigned op)
{
    return (op >= OP_EQ_16 && op <= OP_NAN_F64) || op == OP_TESTP_F32 || op == OP_TESTP_F64;
}

/* How many registers a handler takes that does nothing but compute; 0: it is none of these. */
static const uint8_t row_sources[LANE_OP_COUNT] = {
#define ALU1(id, ...) [OP_##id] = 1,
#define ALU2(id, ...) [OP_##id] = 2,
#define ALU3(id, ...) [OP_##id] = 3,
#include "ptx/microops.def"
    [LANE_MOV_WORD] = 1,       [LANE_MOV_WIDE] = 1,     [LANE_MOV_EXTEND] = 1,      [LANE_MOV_LOW] = 1,
    [LANE_AND_WORD] = 2,       [LANE_OR_WORD] = 2,      [LANE_XOR_WORD] = 2,        [LANE_EXT_U8_WORD] = 1,
    [LANE_EXT_S8_32_WORD] = 1, [LANE_EXT_U16_WORD] = 1, [LANE_EXT_S16_32_WORD] = 1, [LANE_EXT_S32_64_WORD] = 1,
    [LANE_PART_32_WIDE] = 1,   [LANE_MOV_BIT] = 1,      [LANE_SELP_WORD] = 3,       [LANE_SELP_WIDE] = 3,
};

/* ---- registers ---- */

static inline uint64_t part_of(const struct convoy *v, uint32_t unit, int part)
{
    return part == BASE     ? v->shared.base[unit]
           : part == STRIDE ? (uint64_t)v->shared.stride[unit]
           : part == RISE   ? (uint64_t)v->shared.rise[unit]
                            : (uint64_t)v->step[unit];
}

static void touch(struct convoy *v, uint32_t unit)
{
    if (v->is_touched[unit])
        return;
    v->is_touched[unit] = true;
    v->touched[v->touched_count++] = unit;
}

static void set_parts(struct convoy *v, uint32_t unit, const uint64_t *part, bool word)
{
    struct lanes *S = &v->shared;
    S->base[unit] = word ? (uint32_t)part[BASE] : part[BASE];
    S->stride[unit] = word ? (int32_t)part[STRIDE] : (int64_t)part[STRIDE];
    S->rise[unit] = word ? (int32_t)part[RISE] : (int64_t)part[RISE];
    v->step[unit] = word ? (int32_t)part[STEP] : (int64_t)part[STEP];
    S->state[unit] = (S->stride[unit] || S->rise[unit] ? LANE_AFFINE : LANE_UNIFORM) | LANE_STALE;
    touch(v, unit);
}

static bool is_vector(const struct convoy *v, uint32_t unit)
{
    return v->shared.state[unit] & LANE_VECTOR;
}

/* The same number in every lane of every warp. */
static bool is_one(const struct convoy *v, uint32_t unit)
{
    return !(v->shared.state[unit] & (LANE_VECTOR | LANE_AFFINE)) && !v->step[unit];
}

/* From the lowest to the highest of the block's numbers, beside the first one. False: too far apart to tell. */
static inline bool extent(const struct block *b, uint32_t unit, int64_t *below, int64_t *above)
{
    const struct convoy *v = b->convoy;
    const int64_t steps[3] = {v->shared.stride[unit], v->shared.rise[unit], v->step[unit]};
    int64_t low = 0, high = 0;
    for (int i = 0; i < 3; i++) {
        if ((uint64_t)steps[i] + (UINT64_C(1) << 40) > UINT64_C(1) << 41)
            return false;
        const int64_t far = steps[i] * v->times[i];
        low += far < 0 ? far : 0;
        high += far > 0 ? far : 0;
    }
    *below = low;
    *above = high;
    return true;
}

/* The block's lowest and highest number in a word, when none of them wraps around. */
static bool word_range(const struct block *b, uint32_t unit, bool sign, int64_t *low, int64_t *high)
{
    uint64_t base = b->convoy->shared.base[unit];
    int64_t below, above, first = sign ? (int32_t)base : (int64_t)base;
    if (is_vector(b->convoy, unit) || !extent(b, unit, &below, &above))
        return false;
    *low = first + below;
    *high = first + above;
    return sign ? *low >= INT32_MIN && *high <= INT32_MAX : *low >= 0 && *high <= UINT32_MAX;
}

/* ---- arithmetic on numbers that grow by steps ---- */

enum widening { AS_IS, ZEROS_ABOVE, SIGN_ABOVE };

/* d = a * factor + b - minus, part by part; NO_UNIT: none of it. False: not linear here. */
static bool linear(struct block *b, const struct insn *in, uint32_t factor, uint32_t plus, uint32_t minus, bool word,
                   enum widening widening)
{
    struct convoy *v = b->convoy;
    uint32_t a = in->a;
    int64_t low, high;
    if (factor != NO_UNIT && !is_one(v, factor) && is_one(v, a)) {
        uint32_t other = a;
        a = factor;
        factor = other;
    }
    if (is_vector(v, a) || (factor != NO_UNIT && !is_one(v, factor)) || (plus != NO_UNIT && is_vector(v, plus)) ||
        (minus != NO_UNIT && is_vector(v, minus)) ||
        (widening != AS_IS && !word_range(b, a, widening == SIGN_ABOVE, &low, &high)))
        return false;
    uint64_t times = factor == NO_UNIT ? 1 : v->shared.base[factor], parts[PARTS];
    if (widening == SIGN_ABOVE && factor != NO_UNIT)
        times = (uint64_t)(int64_t)(int32_t)times;
    for (int p = 0; p < PARTS; p++) {
        uint64_t x = part_of(v, a, p);
        if (p == BASE && widening == SIGN_ABOVE)
            x = (uint64_t)(int64_t)(int32_t)x;
        parts[p] = x * times;
        if (plus != NO_UNIT)
            parts[p] += part_of(v, plus, p);
        if (minus != NO_UNIT)
            parts[p] -= part_of(v, minus, p);
    }
    set_parts(v, in->d, parts, word);
    return true;
}

static bool shift(struct block *b, const struct insn *in, bool word)
{
    struct convoy *v = b->convoy;
    uint64_t by = (uint32_t)v->shared.base[in->b], parts[PARTS];
    if (is_vector(v, in->a) || !is_one(v, in->b) || by >= (word ? 32 : 64))
        return false;
    for (int p = 0; p < PARTS; p++)
        parts[p] = part_of(v, in->a, p) << by;
    set_parts(v, in->d, parts, word);
    return true;
}

/* All lanes of the block compare alike, as the lowest and the highest show. */
static bool compare(struct block *b, const struct insn *in, bool sign, bool equal)
{
    int64_t low_a, high_a, low_b, high_b;
    if (!word_range(b, in->a, sign, &low_a, &high_a) || !word_range(b, in->b, sign, &low_b, &high_b))
        return false;
    bool all = equal ? high_a <= low_b : high_a < low_b, none = equal ? low_a > high_b : low_a >= high_b;
    if (!all && !none)
        return false;
    b->convoy->shared.base[in->d] = all ? UINT32_MAX : 0;
    touch(b->convoy, in->d);
    return true;
}

static bool steady(struct block *b, const struct insn *in)
{
    switch (in->op) {
    case OP_ADD_32:
    case OP_ADD_64:
        return linear(b, in, NO_UNIT, in->b, NO_UNIT, in->op == OP_ADD_32, AS_IS);
    case OP_SUB_32:
    case OP_SUB_64:
        return linear(b, in, NO_UNIT, NO_UNIT, in->b, in->op == OP_SUB_32, AS_IS);
    case OP_MUL_32:
    case OP_MUL_64:
        return linear(b, in, in->b, NO_UNIT, NO_UNIT, in->op == OP_MUL_32, AS_IS);
    case OP_MAD_32:
    case OP_MAD_64:
        return linear(b, in, in->b, in->c, NO_UNIT, in->op == OP_MAD_32, AS_IS);
    case OP_MUL_WIDE_U32:
        return linear(b, in, in->b, NO_UNIT, NO_UNIT, false, ZEROS_ABOVE);
    case OP_MUL_WIDE_S32:
        return linear(b, in, in->b, NO_UNIT, NO_UNIT, false, SIGN_ABOVE);
    case OP_MAD_WIDE_U32:
        return linear(b, in, in->b, in->c, NO_UNIT, false, ZEROS_ABOVE);
    case OP_MAD_WIDE_S32:
        return linear(b, in, in->b, in->c, NO_UNIT, false, SIGN_ABOVE);
    case OP_SHL_32:
    case OP_SHL_64:
        return shift(b, in, in->op == OP_SHL_32);
    case LANE_MOV_WORD:
    case LANE_MOV_LOW:
    case LANE_MOV_WIDE:
        return linear(b, in, NO_UNIT, NO_UNIT, NO_UNIT, in->op != LANE_MOV_WIDE, AS_IS);
    case LANE_MOV_EXTEND:
        return linear(b, in, NO_UNIT, NO_UNIT, NO_UNIT, false, ZEROS_ABOVE);
    case LANE_EXT_S32_64_WORD:
        return linear(b, in, NO_UNIT, NO_UNIT, NO_UNIT, false, SIGN_ABOVE);
    case OP_LT_S32:
    case OP_LE_S32:
        return compare(b, in, true, in->op == OP_LE_S32);
    case OP_LT_U32:
    case OP_LE_U32:
        return compare(b, in, false, in->op == OP_LE_U32);
    default:
        return false;
    }
}

/* ---- by the plain handlers ---- */

/* From now on every warp has vectors of its own; as long as no warp goes on by itself, for the next block, too. */
static bool attach(struct block *b)
{
    struct convoy *v = b->convoy;
    for (uint32_t i = 0; !v->attached && i < b->warp_count; i++) {
        if (!lanes_file(&b->lanes[i]))
            return false;
        v->files[i] = b->lanes[i].file;
    }
    v->attached = true;
    return true;
}

static bool one(struct lanes *L, const struct insn *in)
{
    return L->worker->launch->lane_plain[0][in->op](L, in) == in + 1;
}

/* Sources that are not vectors are each warp's own while its turn lasts. */
static bool by_warps(struct block *b, const struct insn *in, uint32_t sources)
{
    struct convoy *v = b->convoy;
    const uint32_t units[3] = {in->a, in->b, in->c};
    uint32_t steady_units[3], count = 0;
    uint64_t first[3];
    uint8_t state[3];
    if (!attach(b))
        return false;
    for (uint32_t i = 0; i < sources; i++) {
        if (is_vector(v, units[i]))
            continue;
        steady_units[count] = units[i];
        first[count] = v->shared.base[units[i]];
        state[count++] = v->shared.state[units[i]] | LANE_STALE;
    }
    bool ok = true;
    for (uint32_t w = 0; ok && w < b->warp_count; w++) {
        for (uint32_t i = 0; i < count; i++) {
            uint64_t base = first[i] + (uint64_t)v->step[steady_units[i]] * w;
            bool wide = v->shared.lc->unit_class[steady_units[i]] == CLASS_WIDE;
            v->shared.base[steady_units[i]] = wide ? base : (uint32_t)base;
            v->shared.state[steady_units[i]] = state[i];
        }
        v->shared.file = v->files[w];
        ok = one(&v->shared, in);
    }
    for (uint32_t i = 0; i < count; i++)
        if (steady_units[i] != in->d) {
            v->shared.base[steady_units[i]] = first[i];
            v->shared.state[steady_units[i]] = state[i];
        }
    touch(v, in->d);
    return ok;
}

static bool pure(struct block *b, const struct insn *in)
{
    struct convoy *v = b->convoy;
    const uint32_t sources = row_sources[in->op], units[3] = {in->a, in->b, in->c};
    bool all_one = true, vector = false, word_steps = true;
    for (uint32_t i = 0; i < sources && i < 3; i++) {
        all_one &= is_one(v, units[i]);
        vector |= is_vector(v, units[i]);
        word_steps &= is_vector(v, units[i]) || v->shared.lc->unit_class[units[i]] != CLASS_BIT;
    }
    if (all_one) {
        if (!one(&v->shared, in))
            return false;
        v->shared.stride[in->d] = v->shared.rise[in->d] = v->step[in->d] = 0;
        touch(v, in->d);
        return true;
    }
    return vector && word_steps && !is_comparison(in->op) && by_warps(b, in, sources);
}

/* ---- memory ---- */

/* Memory of an access of all the block's lanes to one range. NULL: not so. */
static uint8_t *block_memory(struct block *b, const struct insn *in, uint32_t size, bool write)
{
    struct convoy *v = b->convoy;
    struct worker *w = b->worker;
    const struct range_cache *c = &w->cache[in->aux];
    const uint32_t a = in->a;
    const uint64_t address = v->shared.base[a] + in->imm;
    const uint64_t steps = (uint64_t)v->shared.stride[a] | (uint64_t)v->shared.rise[a] | (uint64_t)v->step[a];
    int64_t below, above;
    if (is_vector(v, a) || in->c != CLASS_WIDE || ((address | steps) & (size - 1)) || !extent(b, a, &below, &above))
        return NULL;
    const uint64_t low = address + (uint64_t)below, high = address + (uint64_t)above;
    if (low > high || high >= PTX_CODE_WINDOW)
        return NULL;
    if ((low - c->base >= c->span || high - c->base >= c->span) &&
        (!range_cache_fill(w, in, low, size, write) || low - c->base >= c->span || high - c->base >= c->span))
        return NULL;
    return c->tracked ? NULL : c->host + (address - c->base);
}

static void count_bytes(struct block *b, uint32_t size, bool write)
{
    uint64_t bytes = (uint64_t)size * b->thread_count;
    if (write)
        b->worker->counts.global_write_bytes += bytes;
    else
        b->worker->counts.global_read_bytes += bytes;
}

/* Where a warp's lanes lie: in one piece, or lane by lane. */
struct layout {
    bool piece;
    uint64_t stride, rise, step;
    uint32_t fold;
};
static struct layout layout_of(const struct block *b, uint32_t unit, uint32_t size)
{
    const struct convoy *v = b->convoy;
    struct layout y = {.stride = (uint64_t)v->shared.stride[unit],
                       .rise = (uint64_t)v->shared.rise[unit],
                       .step = (uint64_t)v->step[unit],
                       .fold = b->lanes[0].fold};
    y.piece = y.stride == size && (y.fold == 5 || y.rise == (uint64_t)size << y.fold);
    return y;
}

/* 32 bytes as one, wherever they lie. */
typedef uint64_t chunk __attribute__((vector_size(32), aligned(1), may_alias));
static inline void copy_piece(void *to, const void *from, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes / sizeof(chunk); i++)
        ((chunk *)to)[i] = ((const chunk *)from)[i];
}

static bool load(struct block *b, const struct insn *in, uint32_t size)
{
    struct convoy *v = b->convoy;
    const bool same = is_one(v, in->a), affine = v->shared.state[in->a] & LANE_AFFINE;
    const uint8_t *p = same || affine ? block_memory(b, in, size, false) : NULL;
    if (!p || (affine && !attach(b)))
        return false;
    count_bytes(b, size, false);
    if (same) {
        uint64_t parts[PARTS] = {0};
        memcpy(&parts[BASE], p, size);
        set_parts(v, in->d, parts, size == 4);
        return true;
    }
    const struct layout y = layout_of(b, in->a, size);
    const uint32_t ahead = BLOCKS_AHEAD * b->warp_count;
    for (uint32_t w = 0; w < b->warp_count; w++, p += y.step) {
        __builtin_prefetch(p + y.step * ahead); /* most likely another block's */
        __builtin_prefetch(p + y.step * ahead + 64);
        uint8_t *d = v->files[w] + (size_t)in->d * LANE_UNIT;
        if (y.piece && size == 4) {
            copy_piece(d, p, 4 * WARP);
        } else if (y.piece) {
            copy_piece(d, p, 8 * WARP);
        } else {
            for (uint32_t i = 0; i < WARP; i++)
                memcpy(d + i * size, p + y.stride * (i & ((1u << y.fold) - 1)) + y.rise * (i >> y.fold), size);
        }
    }
    v->shared.state[in->d] = LANE_VECTOR;
    touch(v, in->d);
    return true;
}

/* The value's vectors are there; lanes that meet in one place are left to the warps. */
static bool store(struct block *b, const struct insn *in, uint32_t size)
{
    struct convoy *v = b->convoy;
    const struct layout y = layout_of(b, in->a, size);
    const uint32_t ahead = BLOCKS_AHEAD * b->warp_count;
    if (!(v->shared.state[in->a] & LANE_AFFINE) || !is_vector(v, in->d) || !y.piece ||
        (in->b == CLASS_WIDE ? 8u : 4u) != size)
        return false;
    uint8_t *p = block_memory(b, in, size, true);
    if (!p)
        return false;
    count_bytes(b, size, true);
    for (uint32_t w = 0; w < b->warp_count; w++, p += y.step) {
        __builtin_prefetch(p + y.step * ahead, 1);
        __builtin_prefetch(p + y.step * ahead + 64, 1);
        const uint8_t *from = v->files[w] + (size_t)in->d * LANE_UNIT;
        if (size == 4)
            copy_piece(p, from, 4 * WARP);
        else
            copy_piece(p, from, 8 * WARP);
    }
    return true;
}

/* ---- the block ---- */

void lanes_convoy_destroy(struct block *b)
{
    struct convoy *v = b->convoy;
    if (!v)
        return;
    free(v->shared.base);
    free(v->shared.stride);
    free(v->shared.rise);
    free(v->shared.state);
    free(v->step);
    free(v->touched);
    free(v->is_touched);
    free((void *)v->files);
    free(v);
}

/* Steps from warp to warp of what is filled by thread. False: some have none. */
static bool fill_steps(struct block *b)
{
    struct convoy *v = b->convoy;
    const struct lane_code *lc = v->shared.lc;
    for (uint32_t i = 0; i < lc->fill_unit_count; i++) {
        const struct lane_fill *f = &b->lane_fills[i];
        uint32_t unit = lc->fill_units[i].unit;
        v->shared.base[unit] = f->base;
        v->shared.stride[unit] = f->stride;
        v->shared.rise[unit] = f->rise;
        v->shared.state[unit] = f->state;
        v->step[unit] = (int64_t)(f[lc->fill_unit_count].base - f->base);
        for (uint32_t w = 0; w < b->warp_count; w++, f += lc->fill_unit_count)
            if ((f->state & LANE_VECTOR) || f->stride != v->shared.stride[unit] || f->rise != v->shared.rise[unit] ||
                f->base != v->shared.base[unit] + (uint64_t)v->step[unit] * w)
                return false;
    }
    return true;
}

bool lanes_convoy_create(struct block *b)
{
    const struct launch *l = b->worker->launch;
    const struct lane_code *lc = l->lane_code;
    if (l->checked || l->guard || l->rounding || l->counting || b->warp_count < 2 || b->thread_count % WARP ||
        lc->frames || l->entry->local_bytes)
        return true;
    for (uint32_t i = 0; l->shadow && i < l->entry->fill_count; i++)
        if (shadow_names_place(l->entry->fills[i].kind)) /* its register has flags from the start */
            return true;
    struct convoy *v = b->convoy = aligned_alloc(64, (sizeof *v + 63) & ~(size_t)63);
    if (!v)
        return false;
    memset(v, 0, sizeof *v);
    size_t units = lc->units + 1u;
    struct lanes *S = &v->shared;
    *S = b->lanes[0];
    S->base = malloc(units * sizeof *S->base);
    S->stride = calloc(units, sizeof *S->stride);
    S->rise = calloc(units, sizeof *S->rise);
    S->state = malloc(units);
    S->handlers = v->single;
    v->times[0] = (1 << S->fold) - 1;
    v->times[1] = 31 >> S->fold;
    v->times[2] = (int64_t)b->warp_count - 1;
    S->mask = S->live = UINT32_MAX;
    v->step = calloc(units, sizeof *v->step);
    v->touched = calloc(units, sizeof *v->touched);
    v->is_touched = calloc(units, sizeof *v->is_touched);
    v->files = calloc(b->warp_count, sizeof(uint8_t *));
    if (!S->base || !S->stride || !S->rise || !S->state || !v->step || !v->touched || !v->is_touched || !v->files)
        return false;
    memcpy(S->base, b->lane_base, units * sizeof *S->base);
    memset(S->state, LANE_UNIFORM | LANE_STALE, units);
    for (uint32_t i = 0; i < LANE_OP_COUNT; i++)
        v->single[i] = stop_here;
    if (!fill_steps(b)) {
        lanes_convoy_destroy(b);
        b->convoy = NULL;
    }
    return true;
}

bool lanes_convoy_ended(const struct block *b, uint64_t *executed)
{
    const struct convoy *v = b->convoy;
    if (!v || !v->ended)
        return false;
    *executed = v->executed;
    return true;
}

/* A jump on a condition that is the same in all lanes. False: it is not, or leads back. */
static bool jump(struct block *b, const struct insn *in, uint32_t *next)
{
    struct convoy *v = b->convoy;
    const uint32_t *weight = b->worker->launch->entry->weight;
    const bool counts = in->op != OP_SKIP_IF && in->op != OP_SKIP_UNLESS;
    bool taken = true;
    if (in->op != OP_BRA) {
        uint32_t bits = (uint32_t)v->shared.base[in->a];
        if (in->mod != CLASS_BIT || (bits != 0 && bits != UINT32_MAX))
            return false;
        taken = (bits != 0) == (in->op == OP_BRA_IF || in->op == OP_SKIP_IF);
    }
    if (!taken)
        return true;
    if (in->imm <= v->pc)
        return false;
    if (counts) {
        v->executed += weight[v->pc + 1] - weight[v->start_pc];
        v->start_pc = (uint32_t)in->imm;
    }
    *next = (uint32_t)in->imm;
    return true;
}

/* Results with shadows, or that know that they were loaded. */
static const bool has_shadow[LANE_OP_COUNT] = {
#define LOAD(id, space, type)  [OP_##id] = true,
#define STORE(id, space, type) [OP_##id] = true,
#include "ptx/microops.def"
#define FLOAT1(id, how, D, A, expression)                 [OP_##id] = true,
#define FLOAT2(id, how, T, expression)                    [OP_##id] = true,
#define FLOAT3(id, how, T, expression)                    [OP_##id] = true,
#define WIDE1(id, D, expression)                          [OP_##id] = true,
#define WIDE2(id, how, expression)                        [OP_##id] = true,
#define WIDE3(id, how, expression)                        [OP_##id] = true,
#define WHOLE(id, expression)                             [OP_##id] = true,
#define NARROW(id, T, value)                              [OP_##id] = true,
#define PICK1(id, T, expression)                          [OP_##id] = true,
#define PICK2(id, T, first, expression)                   [OP_##id] = true,
#define ROUND(id, T)                                      [OP_##id] = true,
#define HALF(id, id_x2, operands, how, expression)        [OP_##id] = true, [OP_##id_x2] = true,
#define HALF_PICK(id, id_x2, operands, first, expression) [OP_##id] = true, [OP_##id_x2] = true,
#include "ptx/shadow.def"
};

/* False: the warps are to do it. */
static bool step(struct block *b, const struct insn *in, uint32_t *next)
{
    if (b->worker->launch->shadow && has_shadow[in->op])
        return false;
    switch (in->op) {
    case OP_LD_GLOBAL_B32:
        return load(b, in, 4);
    case OP_LD_GLOBAL_B64:
        return load(b, in, 8);
    case OP_ST_GLOBAL_32:
        return store(b, in, 4);
    case OP_ST_GLOBAL_64:
        return store(b, in, 8);
    case OP_BRA:
    case OP_BRA_IF:
    case OP_BRA_UNLESS:
    case OP_SKIP_IF:
    case OP_SKIP_UNLESS:
        return jump(b, in, next);
    default:
        return row_sources[in->op] && (steady(b, in) || pure(b, in));
    }
}

static void begin(struct block *b)
{
    struct convoy *v = b->convoy;
    const struct lane_code *lc = b->lanes[0].lc;
    v->number = b->lane_number;
    for (uint32_t i = 0; i < v->touched_count; i++)
        v->is_touched[v->touched[i]] = false;
    v->touched_count = v->pc = v->start_pc = 0;
    v->executed = 0;
    v->ended = false;
    for (uint32_t i = 0; i < lc->block_unit_count; i++)
        v->shared.base[lc->block_units[i]] = b->lane_base[lc->block_units[i]];
    for (uint32_t i = 0; i < lc->zero_unit_count; i++) {
        uint32_t unit = lc->zero_units[i];
        v->shared.base[unit] = 0;
        v->shared.stride[unit] = v->shared.rise[unit] = v->step[unit] = 0;
        v->shared.state[unit] = LANE_UNIFORM | LANE_STALE;
    }
}

void lanes_convoy(struct block *b, uint64_t *spent)
{
    struct convoy *v = b->convoy;
    if (!v || v->number == b->lane_number)
        return;
    begin(b);
    const struct code *code = b->worker->launch->entry;
    for (;;) {
        const struct insn *in = &b->lanes[0].insns[v->pc];
        uint32_t next = v->pc + 1;
        if (in->op == OP_EXIT && !b->states) {
            v->executed += code->weight[next] - code->weight[v->start_pc];
            *spent += v->executed * b->thread_count;
            v->ended = true;
            b->live = 0;
            return;
        }
        if (!step(b, in, &next))
            break;
        v->pc = next;
    }
    v->executed += code->weight[v->pc] - code->weight[v->start_pc];
    *spent += v->executed * b->thread_count;
}

void lanes_convoy_leave(struct lanes *L)
{
    struct convoy *v = L->block->convoy;
    v->attached = false;
    const uint32_t warp = L->first / WARP;
    for (uint32_t i = 0; i < v->touched_count; i++) {
        uint32_t unit = v->touched[i];
        uint64_t base = v->shared.base[unit] + (uint64_t)v->step[unit] * warp;
        L->base[unit] = L->lc->unit_class[unit] == CLASS_WIDE ? base : (uint32_t)base;
        L->stride[unit] = v->shared.stride[unit];
        L->rise[unit] = v->shared.rise[unit];
        L->state[unit] = v->shared.state[unit];
        if (!(L->state[unit] & LANE_VECTOR))
            L->state[unit] |= LANE_STALE;
    }
    L->groups[0].pc = v->pc;
    L->groups[0].executed = v->executed;
}
