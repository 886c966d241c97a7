/* lanes_guard.c - what a guarded run puts before the lock-step handlers: accesses are judged for all lanes at once
 * where they lie side by side or in one place, else lane by lane. Then the plain handler does the work. */
#if defined(__x86_64__) && !defined(__clang__) /* which is used for fuzzing, where speed is not what matters */
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt")
#pragma GCC optimize("O3")
#endif
#include <string.h>
#include "ptx/guard.h"

static struct guard *guard_of(const struct lanes *L)
{
    return L->worker->launch->guard;
}

static uint32_t pc_of(const struct lanes *L, const struct insn *in)
{
    return (uint32_t)(in - L->insns);
}

static const struct insn *plain(struct lanes *L, const struct insn *in)
{
    return L->plain[in->op - LANE_OP_COUNT](L, in);
}

static const struct insn *doubt(struct lanes *L, const struct insn *in, const char *why)
{
    const uint32_t pc = pc_of(L, in);
    guard_doubt(guard_of(L), why, L->code->lines[pc]);
    return lane_leave(L, pc, LANES_FAULT);
}

/* ---- addresses ---- */

/* Where the group's lanes access memory. `rows`: lane i of a full warp at first + stride * (i % 2^fold) + rise * (i /
 * 2^fold), no sum of which wraps around; else by lane. */
struct reach {
    enum mem_space space;
    bool uniform, rows;
    int64_t stride, rise;
    uint64_t first, low, high; /* lowest and highest address */
    uint64_t lane[WARP] __attribute__((aligned(64)));
};

static bool is_small(int64_t step)
{
    return step > -(INT64_C(1) << 40) && step < INT64_C(1) << 40;
}

/* A register's steps may say of a word that wraps around what its lanes do not hold: only sums inside 32 bits are
 * taken. */
static bool reach_rows(const struct lanes *L, const struct guard_access *a, struct reach *x)
{
    const unsigned state = L->state[a->unit];
    int64_t s = 0, r = 0;
    if (state & LANE_VECTOR || a->class_ == CLASS_BIT)
        return false;
    x->uniform = !(state & LANE_AFFINE);
    x->rows = !x->uniform;
    x->stride = x->rise = 0;
    if (!x->uniform) {
        if (L->mask != UINT32_MAX)
            return false;
        x->stride = L->stride[a->unit];
        x->rise = L->rise[a->unit];
        if (!is_small(x->stride) || !is_small(x->rise))
            return false;
        s = x->stride * ((1 << L->fold) - 1);
        r = x->rise * (31 >> L->fold);
    }
    const int64_t below = (s < 0 ? s : 0) + (r < 0 ? r : 0), above = (s > 0 ? s : 0) + (r > 0 ? r : 0);
    const uint64_t base = L->base[a->unit];
    if (a->class_ == CLASS_WORD && x->rows && ((int64_t)base + below < 0 || (int64_t)base + above > UINT32_MAX))
        return false;
    x->first = base + a->imm;
    x->low = x->first + (uint64_t)below;
    x->high = x->first + (uint64_t)above;
    const uint64_t extent = x->high - x->low;
    x->first = narrow_address(x->space, x->first);
    x->low = narrow_address(x->space, x->low);
    x->high = narrow_address(x->space, x->high);
    return x->low <= x->high && x->high - x->low == extent;
}

static void reach_lanes(struct lanes *L, const struct guard_access *a, struct reach *x)
{
    x->uniform = x->rows = false;
    if ((L->state[a->unit] & LANE_STALE) && a->class_ != CLASS_BIT)
        lane_expand(L, a->unit);
    const uint8_t *v = L->file + (size_t)a->unit * LANE_UNIT;
    if (a->class_ == CLASS_WIDE)
        for (uint32_t i = 0; i < WARP; i++)
            x->lane[i] = ((const uint64_t *)(const void *)v)[i] + a->imm;
    else if (a->class_ == CLASS_WORD)
        for (uint32_t i = 0; i < WARP; i++)
            x->lane[i] = ((const uint32_t *)(const void *)v)[i] + a->imm;
    else
        for (uint32_t i = 0; i < WARP; i++)
            x->lane[i] = (L->base[a->unit] >> i & 1) + a->imm;
    if (x->space != MEM_GLOBAL && x->space != MEM_GENERIC)
        for (uint32_t i = 0; i < WARP; i++)
            x->lane[i] = narrow_address(x->space, x->lane[i]);
    const uint64_t some = x->lane[__builtin_ctz(L->mask)];
    x->low = x->high = some;
    for (uint32_t i = 0; i < WARP; i++) {
        const uint64_t at = L->select[i] ? x->lane[i] : some;
        x->lane[i] = at;
        x->low = at < x->low ? at : x->low;
        x->high = at > x->high ? at : x->high;
    }
}

static enum mem_space window_of(uint64_t address)
{
    const uint64_t window = address >> 32;
    return window == PTX_SHARED_WINDOW >> 32  ? MEM_SHARED
           : window == PTX_LOCAL_WINDOW >> 32 ? MEM_LOCAL
           : window == PTX_PARAM_WINDOW >> 32 ? MEM_PARAM
                                              : MEM_GLOBAL;
}

/* What a generic address is. False: lanes differ. */
static bool resolve(struct reach *x)
{
    if (x->space == MEM_CONST)
        x->space = MEM_GLOBAL;
    if (x->space != MEM_GENERIC)
        return true;
    x->space = window_of(x->low);
    if (x->space != window_of(x->high))
        return false;
    if (x->space == MEM_GLOBAL)
        return true;
    x->first &= UINT32_MAX;
    x->low &= UINT32_MAX;
    x->high &= UINT32_MAX;
    if (!x->rows && !x->uniform)
        for (uint32_t i = 0; i < WARP; i++)
            x->lane[i] &= UINT32_MAX;
    return true;
}

/* ---- one access, by the shape of its addresses ---- */

/* The parts of an access that races are looked for in: `element` for one place, `row` for lanes side by side. */
typedef bool row_judge(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset, uint32_t lane,
                       uint32_t lanes, uint32_t bytes, bool write);
typedef bool element_judge(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset,
                           uint32_t lane, bool several, uint32_t bytes, bool write);

static bool shared_row(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset, uint32_t lane,
                       uint32_t lanes, uint32_t bytes, bool write)
{
    (void)r;
    return guard_shared_row(g, L, (uint32_t)offset, lane, lanes, bytes, write);
}

static bool shared_element(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset,
                           uint32_t lane, bool several, uint32_t bytes, bool write)
{
    (void)r;
    return guard_shared_element(g, L, (uint32_t)offset, lane, several, bytes, write);
}

static inline __attribute__((always_inline)) bool judge_rows(struct guard *g, const struct lanes *L,
                                                             const struct reach *x, struct guard_range *r,
                                                             uint64_t base, uint32_t bytes, bool write, row_judge *row,
                                                             element_judge *element)
{
    const uint32_t lanes = 1u << L->fold;
    for (uint32_t first = 0; first < WARP; first += lanes) {
        const uint64_t offset = x->first + (uint64_t)x->rise * (first >> L->fold) - base;
        if (x->stride == bytes) {
            if (!row(g, L, r, offset, first, lanes, bytes, write))
                return false;
        } else if (x->stride == 0 && !write) {
            if (!element(g, L, r, offset, first, lanes > 1, bytes, false))
                return false;
        } else {
            for (uint32_t i = 0; i < lanes; i++)
                if (!element(g, L, r, offset + (uint64_t)x->stride * i, first + i, false, bytes, write))
                    return false;
        }
    }
    return true;
}

/* Runs of lanes that lie side by side, however long. */
static inline __attribute__((always_inline)) bool judge_lanes(struct guard *g, const struct lanes *L,
                                                              const struct reach *x, struct guard_range *r,
                                                              uint64_t base, uint32_t bytes, bool write, row_judge *row)
{
    for (uint32_t m = L->mask; m;) {
        const uint32_t first = (uint32_t)__builtin_ctz(m);
        uint32_t lanes = 1;
        while (first + lanes < WARP && (m >> (first + lanes) & 1) &&
               x->lane[first + lanes] == x->lane[first] + (uint64_t)lanes * bytes)
            lanes++;
        if (!row(g, L, r, x->lane[first] - base, first, lanes, bytes, write))
            return false;
        m = first + lanes == WARP ? 0 : m & (UINT32_MAX << (first + lanes));
    }
    return true;
}

static inline __attribute__((always_inline)) bool judge_races(struct guard *g, const struct lanes *L,
                                                              const struct reach *x, struct guard_range *r,
                                                              uint64_t base, uint32_t bytes, bool write, row_judge *row,
                                                              element_judge *element)
{
    if (x->uniform) {
        const bool several = L->mask & (L->mask - 1);
        return !(several && write) &&
               element(g, L, r, x->first - base, (uint32_t)__builtin_ctz(L->mask), several, bytes, write);
    }
    return x->rows ? judge_rows(g, L, x, r, base, bytes, write, row, element)
                   : judge_lanes(g, L, x, r, base, bytes, write, row);
}

static uint64_t lane_at(const struct lanes *L, const struct reach *x, uint32_t lane)
{
    if (!x->uniform && !x->rows)
        return x->lane[lane];
    return x->first + (uint64_t)x->stride * (lane & ((1u << L->fold) - 1)) + (uint64_t)x->rise * (lane >> L->fold);
}

static bool is_misaligned(const struct reach *x, uint32_t bytes)
{
    uint64_t bits = 0;
    if (x->uniform || x->rows)
        bits = x->first | (uint64_t)x->stride | (uint64_t)x->rise;
    else
        for (uint32_t i = 0; i < WARP; i++)
            bits |= x->lane[i];
    return bits & (bytes - 1);
}

/* 8 bytes that become an address are taken for a number, without an origin. False: so they are. */
static bool any_points(struct guard *g, const struct lanes *L, const struct guard_access *a, const struct reach *x,
                       const uint8_t *memory, uint64_t base)
{
    for (uint32_t m = x->uniform ? L->mask & (0u - L->mask) : L->mask; m; m &= m - 1) {
        const uint8_t *p = memory + (lane_at(L, x, (uint32_t)__builtin_ctz(m)) - base);
        for (uint32_t i = 0; i < a->bytes; i += 8) {
            uint64_t value;
            memcpy(&value, p + i, sizeof value);
            if (guard_points(g, value))
                return true;
        }
    }
    return false;
}
static const char points[] = "a pointer from memory";

/* ---- shared and local memory: what is out of bounds the plain handler finds ---- */

static const char *judge_shared(struct guard *g, struct lanes *L, const struct guard_access *a, const struct reach *x)
{
    const uint32_t room = L->block->shared_bytes;
    if (x->high >= room || a->bytes > room - x->high || is_misaligned(x, a->bytes))
        return NULL;
    if (a->pointer && any_points(g, L, a, x, L->block->shared, 0))
        return points;
    if (!a->ordered)
        return judge_races(g, L, x, NULL, 0, a->bytes, a->store, shared_row, shared_element)
                   ? NULL
                   : "shared memory that others touch, or nobody wrote";
    for (uint32_t m = L->mask; m; m &= m - 1) {
        const uint32_t at = (uint32_t)lane_at(L, x, (uint32_t)__builtin_ctz(m));
        if (a->load && !a->exchange && !guard_shared_defined(g, at, a->bytes))
            return "shared memory that nobody wrote";
        if (a->store)
            guard_shared_define(g, at, a->bytes);
    }
    return NULL;
}

static const char *judge_local(struct guard *g, struct lanes *L, const struct guard_access *a, const struct reach *x)
{
    const uint32_t room = L->code->local_bytes;
    if (x->high >= room || a->bytes > room - x->high)
        return NULL;
    for (uint32_t m = L->mask; m; m &= m - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(m);
        uint8_t *written = g->local + (size_t)(L->first + lane) * room + lane_at(L, x, lane);
        if (a->load && !a->exchange && memchr(written, 0, a->bytes))
            return "local memory that was not written";
        if (a->store)
            memset(written, 1, a->bytes);
        struct reach one = {.uniform = true, .first = lane_at(L, x, lane)};
        if (a->pointer && any_points(g, L, a, &one, L->block->threads[L->first + lane].local, 0))
            return points;
    }
    return NULL;
}

static const char *judge_param(struct guard *g, struct lanes *L, const struct guard_access *a, const struct reach *x)
{
    const struct launch *l = L->worker->launch;
    const uint64_t room = l->entry->function->param_bytes;
    if (!a->pointer || x->high >= room || a->bytes > room - x->high)
        return NULL;
    return any_points(g, L, a, x, l->params, 0) ? points : NULL;
}

/* ---- global memory ---- */

/* Every lane, in one range: nothing of it is undefined or raced for, and what a store overwrites is put by. */
static const char *judge_range(struct guard *g, struct lanes *L, const struct guard_access *a, const struct reach *x,
                               struct guard_range *r)
{
    const uint64_t base = r->range->address, bytes = a->bytes;
    const bool side_by_side = x->uniform || (x->rows && x->stride == (int64_t)bytes &&
                                             (L->fold == 5 || x->rise == (int64_t)bytes << L->fold));
    if (a->store && !a->ordered && !r->stored) { /* what was read of it before nobody remembers */
        g->stored[r - g->ranges] = true;
        g->again = true;
        return "a range that nothing said is stored to";
    }
    if (side_by_side) {
        const uint64_t length = x->high - x->low + bytes;
        if (a->load && !a->exchange && !(guard_is_whole(r) || guard_defined(r, x->low - base, length)))
            return "memory that nobody wrote";
        if (a->store && (!guard_save(g, r, x->low - base, length) || !guard_define(r, x->low - base, length)))
            return "no memory";
    } else {
        const bool whole = guard_is_whole(r);
        for (uint32_t m = whole && !a->store ? 0 : L->mask; m; m &= m - 1) {
            const uint64_t offset = lane_at(L, x, (uint32_t)__builtin_ctz(m)) - base;
            if (a->load && !a->exchange && !guard_defined(r, offset, bytes))
                return "memory that nobody wrote";
            if (a->store && (!guard_save(g, r, offset, bytes) || !guard_define(r, offset, bytes)))
                return "no memory";
        }
    }
    if (a->pointer && any_points(g, L, a, x, r->range->host, base))
        return points;
    if (a->ordered || !r->stored ||
        judge_races(g, L, x, r, base & ~(uint64_t)(GUARD_SEGMENT - 1), a->bytes, a->store, guard_row, guard_element))
        return NULL;
    return "memory that others touch";
}

static bool is_inside(const struct guard_range *r, const struct reach *x, uint32_t bytes)
{
    const struct ptx_range *range = r->range;
    return x->low - range->address < range->bytes && x->high - range->address < range->bytes &&
           bytes <= range->bytes - (x->high - range->address);
}

static const char *judge_global(struct guard *g, struct lanes *L, struct guard_access *a, struct reach *x)
{
    struct guard_range *r = a->at;
    if (a->from == GUARD_MANY)
        return "a pointer into one of several ranges";
    if (is_misaligned(x, a->bytes))
        return "a misaligned access";
    if (r && is_inside(r, x, a->bytes))
        return judge_range(g, L, a, x, r);
    r = guard_range_at(g, x->low);
    if (!r || (a->from != GUARD_ANY && r != &g->ranges[a->from]))
        return "an access outside the range of its pointer";
    if (is_inside(r, x, a->bytes)) {
        a->at = r;
        return judge_range(g, L, a, x, r);
    }
    return "lanes in several ranges, or outside all";
}

/* ---- handlers ---- */

/* Lanes of one atomic come one after the other: what one of them left may be what the next one found. */
static bool fetched_points(struct guard *g, const struct lanes *L, const struct insn *in)
{
    const uint32_t unit = L->lc->unit[L->code->insns[pc_of(L, in)].d];
    for (uint32_t m = L->mask; m; m &= m - 1)
        if (guard_points(g, lane_value(L, unit, (uint32_t)__builtin_ctz(m))))
            return true;
    return false;
}

const struct insn *guard_access_handler(struct lanes *L, const struct insn *in)
{
    struct guard *g = guard_of(L);
    struct guard_access *a = &g->accesses[pc_of(L, in)];
    struct reach x;
    if (a->refused)
        return doubt(L, in, "an instruction that only the checked loop judges");
    x.space = (enum mem_space)a->space;
    if (!reach_rows(L, a, &x) || (x.rows && x.space == MEM_GENERIC && window_of(x.low) != window_of(x.high)))
        reach_lanes(L, a, &x);
    if (!resolve(&x))
        return doubt(L, in, "lanes in several spaces");
    const char *why = x.space == MEM_SHARED  ? judge_shared(g, L, a, &x)
                      : x.space == MEM_LOCAL ? judge_local(g, L, a, &x)
                      : x.space == MEM_PARAM ? judge_param(g, L, a, &x)
                                             : judge_global(g, L, a, &x);
    if (__builtin_expect(why != NULL, 0))
        return doubt(L, in, why);
    const struct insn *next = plain(L, in);
    return next && a->fetches && fetched_points(g, L, in) ? doubt(L, in, points) : next;
}

const struct insn *guard_shared_handler(struct lanes *L, const struct insn *in)
{
    struct guard *g = guard_of(L);
    const struct guard_access *a = &g->accesses[pc_of(L, in)];
    return a->quick && guard_shared_quick(g, L, a) ? plain(L, in) : guard_access_handler(L, in);
}

const struct insn *guard_meet_handler(struct lanes *L, const struct insn *in)
{
    struct guard *g = guard_of(L);
    if (g->accesses[pc_of(L, in)].refused)
        return doubt(L, in, "an instruction that only the checked loop judges");
    const struct insn *next = plain(L, in);
    if (next)
        guard_sync(g, L);
    return next;
}

const struct insn *guard_barrier_handler(struct lanes *L, const struct insn *in)
{
    struct guard *g = guard_of(L);
    const struct insn *original = &L->code->insns[pc_of(L, in)];
    uint32_t count;
    if (g->accesses[pc_of(L, in)].refused)
        return doubt(L, in, "a barrier that does not wait");
    /* One that is for some warps only orders these alone. */
    if (!(original->mod & 1) &&
        (!lane_same(L, L->lc->unit[original->b], &count) || count != L->block->warp_count * WARP))
        return doubt(L, in, "a barrier for part of the block");
    return plain(L, in);
}
