/* lanes_block.c - a launch and its blocks in lock-step: whether the kernel can run so, register files, what registers
 * start as. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/counts.h"
#include "ptx/lanes_choice.h"
#include "ptx/lanes_shadow.h"

/* Registers of one warp after the other. What is never written stays as it is, and what is written before it is read is
 * left as the last warp had it. */
struct lane_file {
    struct lane_file *next;
    uint8_t *file, *state;
    uint64_t *base;
    int64_t *stride, *rise;
    struct lane_numbers *numbers;
    uint64_t block; /* number of the block whose facts it holds */
};

static atomic_bool only_avx2;

void lanes_only_avx2(bool only)
{
    atomic_store(&only_avx2, only);
}

bool lanes_take_avx2(void)
{
#ifdef LANES_HERE
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

bool lanes_take_avx512(void)
{
#ifdef LANES_V4
    return lanes_take_avx2() && !atomic_load(&only_avx2) && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}

bool lanes_launch(struct launch *l)
{
#ifdef LANES_HERE
    if (l->checked || l->rounding || l->seed || l->config->variant || l->config->one_by_one || !lanes_take_avx2())
        return false;
    const struct lane_code *lc = lane_code_get(l->module, (struct code *)(uintptr_t)l->entry);
    if (!lc || lc->refused)
        return false;
    lane_handler *const *const *handlers = lane_handlers_v3;
    bool avx512 = false;
#ifdef LANES_V4
    if (lanes_take_avx512()) {
        handlers = lane_handlers_v4;
        avx512 = true;
    }
#endif
    for (int partial = 0; partial < 2; partial++)
        l->lane_handlers[partial] = l->lane_plain[partial] = handlers[partial];
    if (l->counting && !lanes_count_install(l))
        return false; /* threads are counted, too */
    if (l->shadow && !lane_numbers_launch(l, avx512))
        return false;
    l->lane_code = lc;
    return true;
#else
    return false;
#endif
}

static const struct insn *lane_return(struct lanes *L, const struct insn *in)
{
    (void)L;
    return in;
}

bool lanes_chain(struct launch *l)
{
    const size_t count = 2 * (size_t)LANE_OP_COUNT;
    lane_handler **chain = NULL;
    for (int partial = 0; partial < 2; partial++) {
        l->lane_chain[partial] = l->lane_plain[partial];
        if (l->lane_handlers[partial] == l->lane_plain[partial])
            continue;
        if (!chain && !(chain = l->lane_chains = malloc(2 * count * sizeof *chain)))
            return false;
        lane_handler **to = chain + count * (size_t)partial;
        for (size_t op = 0; op < count; op++) {
            bool same = op < LANE_OP_COUNT && l->lane_handlers[partial][op] == l->lane_plain[partial][op];
            to[op] = same ? l->lane_plain[partial][op] : lane_return;
        }
        l->lane_chain[partial] = to;
    }
    return true;
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

/* The number of a fill in a lane of the warp. */
static uint64_t fill_value(const struct lanes *L, const struct fill *f, uint32_t lane)
{
    uint32_t eq = 1u << lane, lt = eq - 1;
    const uint32_t masks[] = {eq, lt, lt | eq, ~(lt | eq), ~lt};
    switch (f->kind) {
    case FILL_TID:
        return L->block->threads[L->first + (lane < L->lanes ? lane : 0)].tid[f->value];
    case FILL_LANEID:
        return lane;
    case FILL_WARPID:
        return L->first / WARP;
    case FILL_LANEMASK:
        return masks[f->value];
    case FILL_LOCAL:
        return (uint64_t)f->addend;
    default:
        return 0;
    }
}

/* One number, or one that grows by steps, where the lanes' numbers are such. */
static struct lane_fill find_fill(const struct lanes *L, const struct fill_unit *u)
{
    const struct fill *f = &L->code->fills[u->fill];
    struct lane_fill fill = {.base = fill_value(L, f, 0), .state = LANE_STALE};
    uint32_t row = 1u << L->fold;
    if (L->lc->unit_class[u->unit] == CLASS_BIT) {
        fill.state = LANE_VECTOR;
        return fill;
    }
    fill.stride = L->lanes > 1 && row > 1 ? (int64_t)(fill_value(L, f, 1) - fill.base) : 0;
    fill.rise = L->lanes > row ? (int64_t)(fill_value(L, f, row) - fill.base) : 0;
    fill.state |= fill.stride || fill.rise ? LANE_AFFINE : LANE_UNIFORM;
    for (uint32_t i = 0; i < L->lanes; i++)
        if (fill_value(L, f, i) !=
            fill.base + (uint64_t)fill.stride * (i & (row - 1)) + (uint64_t)fill.rise * (i >> L->fold))
            fill.state = LANE_VECTOR;
    return fill;
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
        L->taints = true; /* as far as is known */
    }
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
    uint32_t fills = l->lane_code->fill_unit_count;
    b->lane_fills = calloc((size_t)b->warp_count * fills + 1, sizeof *b->lane_fills);
    for (uint32_t i = 0; b->lane_fills && i < b->warp_count * fills; i++)
        b->lane_fills[i] = find_fill(&b->lanes[i / fills], &l->lane_code->fill_units[i % fills]);
    return b->lane_fills && lanes_convoy_create(b);
}

void lanes_block_destroy(struct block *b)
{
    for (uint32_t i = 0; b->lanes && i < b->warp_count; i++)
        lanes_release(&b->lanes[i]);
    while (b->files) {
        struct lane_file *f = b->files;
        b->files = f->next;
        free(f->file);
        lane_numbers_free(f->numbers);
        free(f);
    }
    free(b->lanes);
    free(b->lane_base);
    free(b->lane_fills);
    lanes_convoy_destroy(b);
}

void lanes_block_start(struct block *b)
{
    const struct lane_code *lc = b->worker->launch->lane_code;
    b->lane_number++;
    for (uint32_t i = 0; i < lc->block_unit_count; i++)
        set_base(b, lc->block_units[i]);
    b->states = lc->frames || lc->barriers;
    for (uint32_t i = 0; b->states && i < b->thread_count; i++)
        b->threads[i].state = THREAD_READY;
    uint64_t executed;
    if (lanes_convoy_ended(b, &executed))
        return; /* the warps are as they were */
    for (uint32_t i = 0; i < b->warp_count; i++) {
        struct lanes *L = &b->lanes[i];
        lanes_release(L);
        L->started = L->done = L->threads = false;
        L->total = L->longest = 0;
    }
}

static struct lane_file *make_file(const struct block *b)
{
    const struct launch *l = b->worker->launch;
    const uint32_t units = l->lane_code->units;
    struct lane_file *f = calloc(1, sizeof *f);
    size_t vectors = (size_t)units * LANE_UNIT, numbers = (units + 8u) & ~7u;
    size_t bytes = vectors + numbers * (8 + 8 + 8 + 1);
    uint8_t *p = f ? aligned_alloc(64, (bytes + 63) & ~(size_t)63) : NULL;
    if (p && l->shadow)
        f->numbers = lane_numbers_create(units, l->entry->slot_count);
    if (!p || (l->shadow && !f->numbers)) {
        free(p);
        free(f);
        return NULL;
    }
    memset(p, 0, bytes);
    f->file = p;
    f->base = (uint64_t *)(void *)(p + vectors);
    f->stride = (int64_t *)(void *)(p + vectors + numbers * 8);
    f->rise = (int64_t *)(void *)(p + vectors + numbers * 16);
    f->state = p + vectors + numbers * 24;
    memcpy(f->base, b->lane_base, units * sizeof *f->base);
    memset(f->state, LANE_UNIFORM | LANE_STALE, units);
    return f;
}

static void put_fills(struct lanes *L)
{
    const struct lane_code *lc = L->lc;
    const struct lane_fill *fills = L->block->lane_fills + (size_t)(L->first / WARP) * lc->fill_unit_count;
    for (uint32_t i = 0; i < lc->fill_unit_count; i++) {
        uint32_t unit = lc->fill_units[i].unit;
        L->base[unit] = fills[i].base;
        L->stride[unit] = fills[i].stride;
        L->rise[unit] = fills[i].rise;
        L->state[unit] = fills[i].state;
        for (uint32_t k = 0; (fills[i].state & LANE_VECTOR) && k < L->lanes; k++)
            lane_set(L, unit, k, fill_value(L, &L->code->fills[lc->fill_units[i].fill], k));
    }
}

static void put_start(struct lanes *L, struct lane_file *f)
{
    const struct block *b = L->block;
    const struct lane_code *lc = L->lc;
    if (f->block != b->lane_number) {
        f->block = b->lane_number;
        for (uint32_t i = 0; i < lc->block_unit_count; i++) {
            L->base[lc->block_units[i]] = b->lane_base[lc->block_units[i]];
            L->state[lc->block_units[i]] = LANE_UNIFORM | LANE_STALE;
        }
    }
    for (uint32_t i = 0; i < lc->zero_unit_count; i++) {
        L->base[lc->zero_units[i]] = 0;
        L->state[lc->zero_units[i]] = LANE_UNIFORM | LANE_STALE;
    }
    put_fills(L);
}

bool lanes_file(struct lanes *L)
{
    struct block *b = L->block;
    struct lane_file *f = L->registers ? L->registers : b->files;
    if (f && !L->registers)
        b->files = f->next;
    if (!f)
        f = make_file(b);
    L->registers = f;
    if (f)
        L->file = f->file;
    return f != NULL;
}

bool lanes_start(struct lanes *L)
{
    struct block *b = L->block;
    const struct lane_code *lc = L->lc;
    if (!lanes_file(L)) {
        launch_stop(L->worker->launch, STATUS_NO_MEMORY);
        return false;
    }
    struct lane_file *f = L->registers;
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
    L->long_run = LANES_LONG_RUN;
    if (L->uneven)
        memset(L->extra, 0, sizeof L->extra);
    L->uneven = false;
    L->groups[0] = (struct group){.mask = L->live};
    L->group_count = 1;
    put_start(L, f);
    if (b->convoy)
        lanes_convoy_leave(L);
    L->numbers = f->numbers;
    if (L->numbers)
        lane_numbers_start(L);
    if (L->numbers && (lc->frames || L->code->local_bytes))
        return lane_numbers_frames(L);
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
