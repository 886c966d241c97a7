/* guard_race.c - whether two threads touch the same bytes, one of them writes, and nothing puts them in order. More
 * than the checked loop reports is a doubt, never less.
 *
 * Each unit of memory (as large as the smallest access) remembers its last write and its reads since then, as a time
 * and a who: one thread of the block, several of one warp, or several. An earlier access is in order with the present
 * one when it was by the same thread, before the block's last barrier, or by a lane of the same warp before a
 * *.sync of both. Blocks are never in order, as nothing is known of fences here.
 *
 * Global memory mostly is touched in rows: lanes side by side, by segments of 64 bytes. While a segment is, it has one
 * cell that says which thread has its first element; the cells of its units are written when something else comes. */
#if defined(__x86_64__) && !defined(__clang__) /* which is used for fuzzing, where speed is not what matters */
#pragma GCC target("avx2,bmi,bmi2,lzcnt,popcnt")
#pragma GCC optimize("O3")
#endif
#include <stdlib.h>
#include <string.h>
#include "ptx/guard.h"

enum { WHO_BITS = 11, WHO = (1 << WHO_BITS) - 1, WHO_WARP = 1024, WHO_SEVERAL = WHO };
#define TIME_MASK  ((UINT64_C(1) << 45) - 1)
#define FOREIGN    (UINT64_C(1) << 56) /* reads: by other blocks, too */
#define SIZE_SHIFT 57                  /* of a segment: log 2 of its elements' bytes, plus 1 */
#define SIZE_MASK  (UINT64_C(7) << SIZE_SHIFT)
#define EXPANDED   UINT64_MAX /* a segment's units have cells */
enum { MAX_SHARED_TIME = (1 << (32 - WHO_BITS)) - 2 };

/* Whoever of the same warp that was, it has met `me` in a *.sync since. One that it took part in without `me` would do
 * for the checked loop, but only when lanes come in this order. */
static bool met_since(const struct guard *g, const struct lanes *L, uint64_t time, uint32_t who, uint32_t me)
{
    const uint32_t warp = L->first / WARP, lanes = me < WHO_WARP ? 1u << me % WARP : L->mask;
    if (who < MAX_BLOCK_THREADS)
        return who / WARP == warp && time < g->synced[who] && !(lanes & ~g->met[who]);
    bool all = who == WHO_WARP + warp;
    for (uint32_t i = L->first; all && i < L->first + L->lanes; i++)
        all = time < g->synced[i] && !(lanes & ~g->met[i]);
    return all;
}

static uint32_t join(uint32_t a, uint32_t b)
{
    const uint32_t warp_a = a < WHO_WARP ? a / WARP : a - WHO_WARP, warp_b = b < WHO_WARP ? b / WARP : b - WHO_WARP;
    return a == b ? a : warp_a == warp_b ? WHO_WARP + warp_a : (uint32_t)WHO_SEVERAL;
}

static uint32_t who_is(const struct lanes *L, uint32_t lane, bool several)
{
    return several ? WHO_WARP + L->first / WARP : L->first + lane;
}

/* ---- global memory ---- */

static uint64_t time_of(uint64_t cell)
{
    return cell >> WHO_BITS & TIME_MASK;
}

static bool clash(const struct guard *g, const struct lanes *L, uint64_t cell, uint32_t who)
{
    const uint64_t time = time_of(cell);
    if (cell == 0)
        return false;
    if (cell & FOREIGN || time < g->start)
        return true;
    if (time < g->barrier || ((cell & WHO) == who && who < WHO_WARP))
        return false;
    return !met_since(g, L, time, cell & WHO, who);
}

static uint64_t with_read(const struct guard *g, uint64_t cell, uint32_t who)
{
    const uint64_t time = time_of(cell), now = g->clock << WHO_BITS;
    if (cell == 0)
        return now | who;
    if (time < g->start)
        return now | who | FOREIGN;
    return now | (time < g->barrier ? who : join(cell & WHO, who)) | (cell & FOREIGN);
}

static bool have_segments(uint64_t **cells, const struct guard_range *r)
{
    if (!*cells)
        *cells = calloc(r->range->bytes / GUARD_SEGMENT + 2, sizeof **cells);
    return *cells != NULL;
}

static bool have_units(const struct guard *g, uint64_t **cells, const struct guard_range *r)
{
    if (!*cells)
        *cells = calloc(((r->range->bytes + 2 * GUARD_SEGMENT) >> g->unit_shift) + 1, sizeof **cells);
    return *cells != NULL;
}

static bool expand(const struct guard *g, const struct guard_range *r, uint64_t *segment, uint64_t **units, uint64_t at)
{
    const uint64_t cell = *segment;
    if (cell == EXPANDED)
        return true;
    if (!have_units(g, units, r))
        return false;
    if (cell) {
        const unsigned size = (unsigned)(cell >> SIZE_SHIFT & 7) - 1;
        for (unsigned i = 0; i < GUARD_SEGMENT; i += 1u << g->unit_shift)
            (*units)[(at + i) >> g->unit_shift] = (cell & ~SIZE_MASK) + (i >> size);
    }
    *segment = EXPANDED;
    return true;
}

/* Elements inside one segment, side by side. */
static bool in_units(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset, uint64_t end,
                     uint32_t lane, bool several, uint32_t bytes, bool write)
{
    const uint64_t s = offset / GUARD_SEGMENT;
    const unsigned log = (unsigned)__builtin_ctz(bytes);
    if (!have_segments(&r->segment_write, r) || !have_segments(&r->segment_read, r) ||
        !expand(g, r, &r->segment_write[s], &r->unit_write, s * GUARD_SEGMENT) ||
        !expand(g, r, &r->segment_read[s], &r->unit_read, s * GUARD_SEGMENT) || !have_units(g, &r->unit_write, r) ||
        !have_units(g, &r->unit_read, r))
        return false;
    for (uint64_t at = offset; at < end; at += 1u << g->unit_shift) {
        const uint64_t i = at >> g->unit_shift;
        const uint32_t who = who_is(L, lane + ((uint32_t)(at - offset) >> log), several);
        if (clash(g, L, r->unit_write[i], who) || (write && clash(g, L, r->unit_read[i], who)))
            return false;
        if (write)
            r->unit_write[i] = g->clock << WHO_BITS | who;
        else
            r->unit_read[i] = with_read(g, r->unit_read[i], who);
    }
    return true;
}

static bool by_segments(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset, uint64_t end,
                        uint32_t lane, bool several, uint32_t bytes, bool write)
{
    for (uint64_t next; offset < end; offset = next) {
        next = (offset / GUARD_SEGMENT + 1) * GUARD_SEGMENT;
        next = next < end ? next : end;
        if (!in_units(g, L, r, offset, next, lane, several, bytes, write))
            return false;
        lane += (uint32_t)(next - offset) / bytes;
    }
    return true;
}

/* The row that the segment remembers is in order with `now`: one of the same threads, each at the same place, or one
 * before the last barrier. */
static bool segment_in_order(const struct guard *g, uint64_t cell, uint64_t now)
{
    if (cell == 0)
        return true;
    if (cell & FOREIGN || time_of(cell) < g->start)
        return false;
    return ((cell ^ now) & (WHO | SIZE_MASK)) == 0 || time_of(cell) < g->barrier;
}

bool guard_row(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset, uint32_t lane,
               uint32_t lanes, uint32_t bytes, bool write)
{
    const uint64_t end = offset + (uint64_t)lanes * bytes;
    const uint32_t step = GUARD_SEGMENT / bytes;
    const uint64_t size = (uint64_t)(__builtin_ctz(bytes) + 1) << SIZE_SHIFT;
    g->touched = true;
    if (offset % GUARD_SEGMENT || end % GUARD_SEGMENT || bytes > 16)
        return by_segments(g, L, r, offset, end, lane, false, bytes, write);
    if (!have_segments(&r->segment_write, r) || (!write && !have_segments(&r->segment_read, r)))
        return false;
    for (; offset < end; offset += GUARD_SEGMENT, lane += step) {
        const uint64_t s = offset / GUARD_SEGMENT, now = g->clock << WHO_BITS | (L->first + lane) | size;
        uint64_t *w = &r->segment_write[s], *read = r->segment_read ? &r->segment_read[s] : NULL;
        if (*w == EXPANDED || !segment_in_order(g, *w, now) || (read && !segment_in_order(g, *read, now))) {
            if (!in_units(g, L, r, offset, offset + GUARD_SEGMENT, lane, false, bytes, write))
                return false;
        } else if (write) {
            *w = now;
        } else if (read) { /* always, for a read */
            *read = now;
        }
    }
    return true;
}

bool guard_element(struct guard *g, const struct lanes *L, struct guard_range *r, uint64_t offset, uint32_t lane,
                   bool several, uint32_t bytes, bool write)
{
    g->touched = true;
    return by_segments(g, L, r, offset, offset + bytes, lane, several, bytes, write);
}

/* ---- shared memory: cells of 32 bits; what is older than the block was never written ---- */

static bool shared_clash(const struct guard *g, const struct lanes *L, uint32_t cell, uint32_t who)
{
    const uint64_t time = (cell >> WHO_BITS) + g->shared_base;
    if (time < g->barrier || ((cell & WHO) == who && who < WHO_WARP))
        return false;
    return !met_since(g, L, time, cell & WHO, who);
}

static uint32_t shared_time(const struct guard *g, uint64_t time)
{
    return (uint32_t)(time - g->shared_base) << WHO_BITS;
}

/* A block with more steps than cells can tell apart comes to no good: everything is older than its start. */
void guard_set_times(struct guard *g)
{
    const bool in_time = g->clock - g->shared_base < MAX_SHARED_TIME;
    g->shared.now = shared_time(g, g->clock);
    g->shared.start = in_time ? shared_time(g, g->start) : UINT32_MAX;
    g->shared.barrier = in_time ? shared_time(g, g->barrier) : 0;
}

bool guard_shared_element(struct guard *g, const struct lanes *L, uint32_t offset, uint32_t lane, bool several,
                          uint32_t bytes, bool write)
{
    const uint32_t who = who_is(L, lane, several), now = g->shared.now, start = g->shared.start;
    const uint32_t barrier = g->shared.barrier;
    g->touched = true;
    if (start == UINT32_MAX)
        return false;
    for (uint32_t i = offset >> g->shared_shift; i < (offset + bytes) >> g->shared_shift; i++) {
        const uint32_t w = g->shared_write[i], r = g->shared_read[i];
        if ((!write && w < start) || shared_clash(g, L, w, who) || (write && shared_clash(g, L, r, who)))
            return false;
        if (write)
            g->shared_write[i] = now | who;
        else
            g->shared_read[i] = now | (r < barrier ? who : join(r & WHO, who));
    }
    return true;
}

/* One cell after the other, as the row has some that the usual case does not cover. */
static __attribute__((noinline)) bool shared_row_closely(struct guard *g, const struct lanes *L, uint32_t offset,
                                                         uint32_t lane, uint32_t lanes, uint32_t bytes, bool write)
{
    for (uint32_t i = 0; i < lanes; i++)
        if (!guard_shared_element(g, L, offset + i * bytes, lane + i, false, bytes, write))
            return false;
    return true;
}

bool guard_shared_row(struct guard *g, const struct lanes *L, uint32_t offset, uint32_t lane, uint32_t lanes,
                      uint32_t bytes, bool write)
{
    const uint32_t first = offset >> g->shared_shift, count = (lanes * bytes) >> g->shared_shift;
    const unsigned shift = (unsigned)__builtin_ctz(bytes) - g->shared_shift;
    const uint32_t now = g->shared.now, me = now | (L->first + lane);
    const uint32_t start = g->shared.start, barrier = g->shared.barrier;
    const uint32_t warp = WHO_WARP + L->first / WARP;
    uint32_t *w = g->shared_write + first, *r = g->shared_read + first, bad = 0;
    g->touched = true;
    if (start == UINT32_MAX)
        return false;
    if (write) {
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t mine = me + (i >> shift);
            bad |= (uint32_t)((w[i] >= barrier) & (((w[i] ^ mine) & WHO) != 0)) |
                   (uint32_t)((r[i] >= barrier) & (((r[i] ^ mine) & WHO) != 0));
        }
        if (bad)
            return shared_row_closely(g, L, offset, lane, lanes, bytes, write);
        for (uint32_t i = 0; i < count; i++)
            w[i] = me + (i >> shift);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t mine = me + (i >> shift);
        bad |= (uint32_t)(w[i] < start) | (uint32_t)((w[i] >= barrier) & (((w[i] ^ mine) & WHO) != 0));
    }
    if (bad)
        return shared_row_closely(g, L, offset, lane, lanes, bytes, write);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t mine = me + (i >> shift), other = (r[i] ^ mine) & WHO;
        const uint32_t together = ((other < WARP) | ((r[i] & WHO) == warp)) ? now | warp : now | WHO_SEVERAL;
        r[i] = ((r[i] < barrier) | (other == 0)) ? mine : together;
    }
    return true;
}

/* The usual accesses: elements of one cell, the count known to the compiler. `mine` is what the first element's cell
 * becomes, `step` what is added from one to the next. False: look closely. */
static inline __attribute__((always_inline)) bool quick_row(struct guard *g, uint32_t first, uint32_t count,
                                                            uint32_t mine, uint32_t step, uint32_t warp, bool write)
{
    uint32_t *w = g->shared_write + first, *r = g->shared_read + first, bad = 0;
    const uint32_t now = g->shared.now, start = g->shared.start, barrier = g->shared.barrier;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t me = mine + i * step;
        bad |= (uint32_t)((w[i] >= barrier) & (((w[i] ^ me) & WHO) != 0));
        bad |= write ? (uint32_t)((r[i] >= barrier) & (((r[i] ^ me) & WHO) != 0)) : (uint32_t)(w[i] < start);
    }
    if (__builtin_expect(bad != 0, 0) || start == UINT32_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t me = mine + i * step, who = r[i] & WHO, other = who ^ (me & WHO);
        const uint32_t together =
            (who ^ warp) < WARP || who == WHO_WARP + warp / WARP ? now | (WHO_WARP + warp / WARP) : now | WHO_SEVERAL;
        if (write)
            w[i] = me;
        else
            r[i] = ((r[i] < barrier) | (other == 0)) ? me : together;
    }
    return true;
}

bool guard_shared_quick(struct guard *g, const struct lanes *L, const struct guard_access *a)
{
    const unsigned state = L->state[a->unit];
    const uint32_t warp = L->first, room = L->block->shared_bytes, at = (uint32_t)(L->base[a->unit] + a->imm),
                   first = at / 4;
    const uint32_t mine = g->shared.now | warp, several = g->shared.now | (WHO_WARP + warp / WARP);
    const bool write = a->store;
    g->touched = true;
    if ((state & LANE_VECTOR) || at % 4 || L->mask != UINT32_MAX)
        return false;
    if (!(state & LANE_AFFINE))
        return !write && at < room && quick_row(g, first, 1, several, 0, warp, false);
    const int64_t stride = L->stride[a->unit], rise = L->rise[a->unit];
    if (L->fold == 5)
        return stride == 4 && at < room && 4 * WARP <= room - at && quick_row(g, first, WARP, mine, 1, warp, write);
    if (L->fold != 4 || rise < 0 || rise % 4 || rise > (int64_t)room || (stride != 4 && stride != 0))
        return false;
    const uint32_t bytes = stride ? 2 * WARP : 4, second = (uint32_t)rise / 4;
    if (at >= room || (uint32_t)rise + bytes > room - at || (write && (!stride || !rise)))
        return false;
    if (!stride)
        return quick_row(g, first, 1, several, 0, warp, false) &&
               (!rise || quick_row(g, first + second, 1, several, 0, warp, false));
    if (!rise)
        return quick_row(g, first, WARP / 2, several, 0, warp, false);
    return quick_row(g, first, WARP / 2, mine, 1, warp, write) &&
           quick_row(g, first + second, WARP / 2, mine + WARP / 2, 1, warp, write);
}

bool guard_shared_defined(const struct guard *g, uint32_t offset, uint32_t bytes)
{
    const uint32_t start = g->shared.start;
    for (uint32_t i = offset >> g->shared_shift; i < (offset + bytes) >> g->shared_shift; i++)
        if (g->shared_write[i] < start)
            return false;
    return true;
}

void guard_shared_define(struct guard *g, uint32_t offset, uint32_t bytes)
{
    const uint32_t start = g->shared.start;
    for (uint32_t i = offset >> g->shared_shift; i < (offset + bytes) >> g->shared_shift; i++)
        if (g->shared_write[i] < start)
            g->shared_write[i] = start;
}
