/* lanes_copy.c - cp.async of a group in lock-step: from global to shared memory without threads' frames. What is not
 * plainly right is left to lane_step(), with nothing done. */
#include <string.h>
#include "ptx/lanes_copy.h"

/* Numbers of a register by lane. */
static void values_of(const struct lanes *L, uint32_t unit, uint64_t v[WARP])
{
    if (L->lc->unit_class[unit] == CLASS_WIDE && L->state[unit] & LANE_VECTOR) {
        memcpy(v, L->file + (size_t)unit * LANE_UNIT, WARP * sizeof *v);
        return;
    }
    for (uint32_t lane = 0; lane < WARP; lane++)
        v[lane] = lane_value(L, unit, lane);
}

bool lane_copy(struct lanes *L, const struct insn *in)
{
    struct worker *w = L->worker;
    const uint32_t *unit = L->lc->unit, bytes = in->mod, room = L->block->shared_bytes;
    const struct range_cache *c = &w->cache[in->aux];
    uint64_t to[WARP], from[WARP], given[WARP], copied = 0;
    if (L->numbers || w->launch->guard)
        return false;
    values_of(L, unit[in->a], to);
    values_of(L, unit[in->b], from);
    values_of(L, unit[in->c], given);
    for (uint32_t m = L->mask; m; m &= m - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(m);
        to[lane] = narrow_address(MEM_SHARED, to[lane]);
        given[lane] = (uint32_t)given[lane] < bytes ? (uint32_t)given[lane] : bytes;
        if (to[lane] >= room || bytes > room - to[lane] || to[lane] & (bytes - 1))
            return false;
        if (!given[lane])
            continue;
        if ((from[lane] - c->base >= c->span && !range_cache_fill(w, in, from[lane], bytes, false)) ||
            from[lane] - c->base >= c->span || from[lane] & (bytes - 1))
            return false;
    }
    for (uint32_t m = L->mask; m; m &= m - 1) { /* lanes in more than one range? */
        const uint32_t lane = (uint32_t)__builtin_ctz(m);
        if (given[lane] && from[lane] - c->base >= c->span)
            return false;
    }
    for (uint32_t m = L->mask; m; m &= m - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(m);
        uint8_t *out = L->block->shared + to[lane];
        const uint64_t offset = from[lane] - c->base;
        copied += given[lane] ? bytes : 0;
        if (given[lane] && c->tracked)
            range_track(w, c, offset, bytes, false);
        if (given[lane] == 16) {
            memcpy(out, c->host + offset, 16);
            continue;
        }
        memset(out, 0, bytes);
        if (given[lane])
            memcpy(out, c->host + offset, given[lane]);
    }
    w->counts.global_read_bytes += copied;
    return true;
}
