/* lanes_block.c - a launch and its blocks in lock-step: whether the kernel can run so, register files, what registers
 * start as. */
#include <stdlib.h>
#include <string.h>
#include "ptx/counts.h"
#include "ptx/lanes.h"

struct lane_file {
    struct lane_file *next;
    uint8_t *file, *state;
    uint64_t *base;
    int64_t *stride, *rise;
};

bool lanes_launch(struct launch *l)
{
#ifdef LANES_HERE
    if (l->checked || l->shadow || l->rounding || l->seed || l->config->variant || l->config->one_by_one ||
        !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")))
        return false;
    const struct lane_code *lc = lane_code_get(l->module, (struct code *)(uintptr_t)l->entry);
    if (!lc || lc->refused)
        return false;
    lane_handler *const *const *handlers = lane_handlers_v3;
#ifdef LANES_V4
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        handlers = lane_handlers_v4;
#endif
    for (int partial = 0; partial < 2; partial++)
        l->lane_handlers[partial] = handlers[partial];
    l->lane_code = lc;
    return !l->counting || lanes_count_install(l);
#else
    return false;
#endif
}

/* How a warp's threads lie in the block: rows of 2^fold, when that is so. */
static uint32_t row_fold(const uint32_t *dim)
{
    uint32_t fold = 0;
    while (fold < 5 && (dim[0] >> fold) > 1)
        fold++;
    return dim[0] < WARP && dim[0] == 1u << fold && dim[1] % (WARP >> fold) == 0 ? fold : 5;
}

/* What a register starts as, from the launch's and the block's frame. */
static void set_base(struct block *b, uint32_t unit)
{
    const struct launch *l = b->worker->launch;
    uint64_t v = b->templates[l->entry->function->index][l->lane_code->unit_slot[unit]].u64;
    unsigned class = l->lane_code->unit_class[unit];
    b->lane_base[unit] = class == CLASS_BIT ? (v ? UINT32_MAX : 0) : class == CLASS_WORD ? (uint32_t)v : v;
}

bool lanes_block_create(struct block *b)
{
    const struct launch *l = b->worker->launch;
    const uint32_t *dim = l->config->block;
    b->lane_base = calloc(l->lane_code->units + 1u, sizeof *b->lane_base);
    b->lanes = aligned_alloc(64, (size_t)b->warp_count * sizeof *b->lanes);
    if (!b->lane_base || !b->lanes)
        return false;
    memset(b->lanes, 0, (size_t)b->warp_count * sizeof *b->lanes);
    for (uint32_t i = 0; i < l->lane_code->units; i++)
        set_base(b, i);
    for (uint32_t i = 0; i < b->warp_count; i++) {
        struct lanes *L = &b->lanes[i];
        L->worker = b->worker;
        L->block = b;
        L->code = l->entry;
        L->counter = b->worker->counter;
        L->lc = l->lane_code;
        L->insns = l->lane_code->insns;
        L->weight = l->entry->weight;
        L->first = i * WARP;
        L->lanes = b->thread_count - L->first < WARP ? b->thread_count - L->first : WARP;
        L->fold = row_fold(dim);
    }
    b->states = l->lane_code->frames || l->lane_code->barriers;
    for (uint32_t i = 0; i < b->thread_count; i++) {
        struct thread *t = &b->threads[i];
        t->index = i;
        t->lane = i % WARP;
        t->warp = i / WARP;
        t->tid[0] = i % dim[0];
        t->tid[1] = i / dim[0] % dim[1];
        t->tid[2] = i / dim[0] / dim[1];
        t->code = l->entry;
    }
    return true;
}

void lanes_block_destroy(struct block *b)
{
    for (uint32_t i = 0; b->lanes && i < b->warp_count; i++)
        lanes_release(&b->lanes[i]);
    while (b->files) {
        struct lane_file *f = b->files;
        b->files = f->next;
        free(f->file);
        free(f);
    }
    free(b->lanes);
    free(b->lane_base);
}

void lanes_block_start(struct block *b)
{
    const struct lane_code *lc = b->worker->launch->lane_code;
    for (uint32_t i = 0; i < lc->block_unit_count; i++)
        set_base(b, lc->block_units[i]);
    b->states = lc->frames || lc->barriers;
    for (uint32_t i = 0; b->states && i < b->thread_count; i++)
        b->threads[i].state = THREAD_READY;
    for (uint32_t i = 0; i < b->warp_count; i++) {
        struct lanes *L = &b->lanes[i];
        lanes_release(L);
        L->started = L->done = L->threads = false;
        L->total = L->longest = 0;
    }
}

static struct lane_file *make_file(uint32_t units)
{
    struct lane_file *f = calloc(1, sizeof *f);
    size_t vectors = (size_t)units * LANE_UNIT, numbers = (units + 8u) & ~7u;
    size_t bytes = vectors + numbers * (8 + 8 + 8 + 1);
    uint8_t *p = f ? aligned_alloc(64, (bytes + 63) & ~(size_t)63) : NULL;
    if (!p) {
        free(f);
        return NULL;
    }
    memset(p, 0, bytes);
    f->file = p;
    f->base = (uint64_t *)(void *)(p + vectors);
    f->stride = (int64_t *)(void *)(p + vectors + numbers * 8);
    f->rise = (int64_t *)(void *)(p + vectors + numbers * 16);
    f->state = p + vectors + numbers * 24;
    return f;
}

static void set_lanes(struct lanes *L, uint32_t unit, uint64_t base, int64_t stride, int64_t rise)
{
    L->base[unit] = base;
    L->stride[unit] = stride;
    L->rise[unit] = rise;
    L->state[unit] = (stride || rise ? LANE_AFFINE : LANE_UNIFORM) | LANE_STALE;
}

/* A slot that is filled by thread, in every class in which it is read. */
static void fill_lanes(struct lanes *L, const struct fill *f, uint32_t unit)
{
    const struct thread *threads = &L->block->threads[L->first];
    const uint32_t *dim = L->worker->launch->config->block;
    switch (f->kind) {
    case FILL_TID: {
        bool rows = L->fold < 5, line = dim[0] % WARP == 0 || threads[0].tid[0] + L->lanes <= dim[0];
        bool same =
            threads[0].tid[1] == threads[L->lanes - 1].tid[1] && threads[0].tid[2] == threads[L->lanes - 1].tid[2];
        uint32_t first = threads[0].tid[f->value];
        if (rows || (f->value == 0 ? line : same))
            set_lanes(L, unit, first, f->value == 0, f->value == 1 && rows);
        else
            for (uint32_t i = 0; i < L->lanes; i++)
                lane_set(L, unit, i, threads[i].tid[f->value]);
        break;
    }
    case FILL_LANEID:
        set_lanes(L, unit, 0, 1, (int64_t)1 << L->fold);
        break;
    case FILL_WARPID:
        set_lanes(L, unit, L->first / WARP, 0, 0);
        break;
    case FILL_LANEMASK:
        for (uint32_t i = 0; i < WARP; i++) {
            uint32_t eq = 1u << i, lt = eq - 1;
            const uint32_t masks[] = {eq, lt, lt | eq, ~(lt | eq), ~lt};
            lane_set(L, unit, i, masks[f->value]);
        }
        break;
    case FILL_LOCAL:
        set_lanes(L, unit, (uint64_t)f->addend, 0, 0);
        break;
    default:
        break;
    }
}

bool lanes_start(struct lanes *L)
{
    struct block *b = L->block;
    const struct lane_code *lc = L->lc;
    struct lane_file *f = b->files;
    if (f)
        b->files = f->next;
    else
        f = make_file(lc->units);
    if (!f) {
        launch_stop(L->worker->launch, STATUS_NO_MEMORY);
        return false;
    }
    L->registers = f;
    L->file = f->file;
    L->state = f->state;
    L->base = f->base;
    L->stride = f->stride;
    L->rise = f->rise;
    L->started = true;
    L->live = L->live_seen = L->lanes == WARP ? UINT32_MAX : (1u << L->lanes) - 1;
    L->live_count = L->lanes;
    L->mask = 0;
    L->alone = false;
    L->patience = LANES_SPINNING;
    if (L->uneven)
        memset(L->extra, 0, sizeof L->extra);
    L->uneven = false;
    L->groups[0] = (struct group){.mask = L->live};
    L->group_count = 1;
    memcpy(L->base, b->lane_base, lc->units * sizeof *L->base);
    memset(L->state, LANE_UNIFORM | LANE_STALE, lc->units);
    for (uint32_t i = 0; i < lc->fill_unit_count; i++)
        fill_lanes(L, &L->code->fills[lc->fill_units[i].fill], lc->fill_units[i].unit);
    if (lc->frames || L->code->local_bytes)
        for (uint32_t i = 0; i < L->lanes; i++)
            if (!thread_prepare(b, &b->threads[L->first + i], L->code)) {
                launch_stop(L->worker->launch, STATUS_NO_MEMORY);
                return false;
            }
    return true;
}

void lanes_release(struct lanes *L)
{
    if (!L->registers)
        return;
    L->registers->next = L->block->files;
    L->block->files = L->registers;
    L->registers = NULL;
}
