/* guard.c - guarded launches: which can be guarded, one try, memory put back. */
#include <stdlib.h>
#include <string.h>
#include "ptx/guard.h"

struct guard *guard_create(const struct ptx_launch *c)
{
    if (!c->checked || c->one_by_one || c->seed || c->variant || c->shadow || c->rounding_seed || c->cooperative ||
        c->chosen_blocks)
        return NULL;
    if (c->kernel && c->kernel->uses_runtime) /* grids of its kernels share what only the checked loop keeps */
        return NULL;
    if (!c->memory || c->memory->range_count > UINT32_MAX - 2 * MAX_FOUND)
        return NULL;
    struct guard *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->range_total = (uint32_t)c->memory->range_count + (c->memory->find ? MAX_FOUND : 0) + 1;
    g->stored = calloc(g->range_total, sizeof *g->stored);
    if (!g->stored) {
        free(g);
        return NULL;
    }
    return g;
}

void guard_free(struct guard *g)
{
    if (!g)
        return;
    free(g->stored);
    free(g);
}

void guard_doubt(struct guard *g, const char *why, uint32_t line)
{
    if (g->doubt)
        return;
    g->doubt = why;
    g->doubt_line = line;
}

/* ---- one try ---- */

static void find_span(struct guard *g)
{
    const struct ptx_memory *m = g->launch->memory;
    g->lowest = m->range_count ? m->ranges[0].address : UINT64_MAX;
    if (m->range_count) {
        const struct ptx_range *last = &m->ranges[m->range_count - 1];
        g->highest = last->address + last->bytes;
    }
}

static bool make_tables(struct guard *g)
{
    struct launch *l = g->launch;
    const struct lane_code *lc = l->lane_code;
    const struct code *k = l->entry;
    const size_t units = (size_t)l->shared_bytes + 16;
    g->ranges = calloc(g->range_total, sizeof *g->ranges);
    g->accesses = calloc(k->count + 1u, sizeof *g->accesses);
    g->admitted = calloc(l->module->access_count + 1u, sizeof *g->admitted);
    g->shared_write = calloc(units, sizeof *g->shared_write);
    g->shared_read = calloc(units, sizeof *g->shared_read);
    g->local = calloc((size_t)k->local_bytes * l->block_threads + 1, 1);
    g->code = *lc;
    g->code.insns = malloc((k->count + 1u) * sizeof *g->code.insns);
    if (!g->ranges || !g->accesses || !g->admitted || !g->shared_write || !g->shared_read || !g->local ||
        !g->code.insns)
        return false;
    memcpy(g->code.insns, lc->insns, (k->count + 1u) * sizeof *g->code.insns);
    return true;
}

/* What is put before the plain handler of an instruction that is watched. */
static lane_handler *before(unsigned op)
{
    switch (op) {
    case OP_BAR_SYNC:
    case OP_BAR_ARRIVE:
    case OP_BAR_RED:
        return guard_barrier_handler;
    case OP_WARP_SYNC:
    case OP_VOTE:
    case OP_SHFL:
    case LANE_MEET:
        return guard_meet_handler;
    case OP_LD_SHARED_B32:
    case OP_ST_SHARED_32:
        return guard_shared_handler;
    default:
        return guard_access_handler;
    }
}

bool guard_start(struct guard *g, struct launch *l)
{
    g->launch = l;
    g->again = false;
    g->clock = 2;
    g->start = g->barrier = g->shared_base = 1;
    find_span(g);
    if (!make_tables(g)) {
        guard_doubt(g, "no memory", 0);
        return false;
    }
    for (int partial = 0; partial < 2; partial++) {
        for (unsigned op = 0; op < LANE_OP_COUNT; op++) {
            g->handlers[partial][op] = l->lane_handlers[partial][op];
            g->handlers[partial][op + LANE_OP_COUNT] = before(op);
        }
        l->lane_handlers[partial] = g->handlers[partial];
    }
    l->lane_code = &g->code;
    return guard_analyse(g);
}

void guard_end(struct guard *g, bool sound)
{
    if (!sound)
        guard_put_back(g);
    guard_memory_free(g);
    free(g->ranges);
    free(g->accesses);
    free(g->admitted);
    free(g->shared_write);
    free(g->shared_read);
    free(g->local);
    free(g->code.insns);
    g->ranges = NULL;
    g->accesses = NULL;
    g->admitted = NULL;
    g->shared_write = g->shared_read = NULL;
    g->local = NULL;
    g->code.insns = NULL;
    g->launch = NULL;
}

/* ---- time ---- */

enum { LONG_AGO = 1 << 19 };

void guard_block_start(struct block *b)
{
    struct launch *l = b->worker->launch;
    struct guard *g = l->guard;
    g->clock += 2;
    g->start = g->clock - 1; /* what has this time is in order with everything in the block */
    g->barrier = g->clock;
    g->touched = false;
    if (g->clock - g->shared_base > LONG_AGO) {
        memset(g->shared_write, 0, (l->shared_bytes + 16u) * sizeof *g->shared_write);
        memset(g->shared_read, 0, (l->shared_bytes + 16u) * sizeof *g->shared_read);
        g->shared_base = g->start - 1;
    }
    if (g->any_sync) {
        memset(g->synced, 0, l->block_threads * sizeof *g->synced);
        memset(g->last_sync, 0, sizeof g->last_sync);
        g->any_sync = false;
    }
    guard_set_times(g);
    if (l->layout.reserved_bytes)
        guard_shared_define(g, 0, l->layout.reserved_bytes);
    if (l->entry->local_bytes)
        memset(g->local, 0, (size_t)l->entry->local_bytes * l->block_threads);
}

static void step(struct guard *g)
{
    if (g->touched)
        g->clock++;
    g->touched = false;
    guard_set_times(g);
}

void guard_barrier(struct guard *g)
{
    step(g);
    g->barrier = g->clock;
    guard_set_times(g);
}

void guard_sync(struct guard *g, const struct lanes *L)
{
    const uint32_t warp = L->first / WARP;
    step(g);
    if (g->last_sync[warp].time == g->clock && !(L->mask & ~g->last_sync[warp].mask))
        return;
    g->last_sync[warp].mask = L->mask;
    g->last_sync[warp].time = g->clock;
    g->any_sync = true;
    for (uint32_t m = L->mask; m; m &= m - 1) {
        const uint32_t i = L->first + (uint32_t)__builtin_ctz(m);
        g->met[i] = L->mask | (g->synced[i] == g->clock ? g->met[i] : 0);
        g->synced[i] = g->clock;
    }
}

/* ---- ranges ---- */

bool guard_admits(struct launch *l, const struct insn *in, const struct ptx_range *r, uint32_t number)
{
    struct guard *g = l->guard;
    uint32_t only = g->admitted[in->aux];
    if (number == 0 || number >= g->range_total || (only != GUARD_ANY && only != number)) {
        guard_doubt(g, "an access outside the range of its pointer", 0);
        launch_stop(l, STATUS_FAULT);
        return false;
    }
    g->ranges[number].range = r;
    if (!guard_keep_bitmaps(&g->ranges[number])) {
        guard_doubt(g, "no memory", 0);
        launch_stop(l, STATUS_NO_MEMORY);
        return false;
    }
    return true;
}
