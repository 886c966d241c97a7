/* exec_block.c - one block: its threads' frames, turns, barriers and deadlock. */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_rounding.h"
#include "ptx/guard.h"

enum { TURN = 1 << 15, MAX_DEPTH = 1 << 12, MAX_SLOTS = 1 << 20, MAX_LOCAL = 512 * 1024 };

struct block *block_create(struct worker *w)
{
    struct launch *l = w->launch;
    struct block *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->worker = w;
    b->thread_count = l->block_threads;
    b->warp_count = l->warp_count;
    b->shared_bytes = l->shared_bytes;
    b->threads = calloc(b->thread_count, sizeof *b->threads);
    b->shared = calloc(b->shared_bytes + 16u, 1);
    b->warp_order = calloc(b->warp_count, sizeof *b->warp_order);
    b->templates = calloc(l->module->code_count, sizeof(union slot *));
    bool ok = b->threads && b->shared && b->warp_order && b->templates;
    for (uint32_t i = 0; ok && i < l->module->code_count; i++) {
        if (!l->templates[i])
            continue;
        size_t bytes = (l->module->code[i]->slot_count + 1) * sizeof(union slot);
        b->templates[i] = malloc(bytes);
        ok = b->templates[i] != NULL;
        if (ok)
            memcpy(b->templates[i], l->templates[i], bytes);
    }
    b->turn = TURN;
    uint64_t limit = l->config->instruction_limit;
    if (limit && limit < b->turn)
        b->turn = limit;
    b->longest_turn = b->turn;
    ok = ok && (!l->lane_code || lanes_block_create(b));
    if (!ok || (l->checked && !check_block_create(b))) {
        block_destroy(b);
        return NULL;
    }
    return b;
}

void block_destroy(struct block *b)
{
    if (!b)
        return;
    lanes_block_destroy(b);
    for (uint32_t i = 0; b->threads && i < b->thread_count; i++) {
        struct thread *t = &b->threads[i];
        free(t->stack);
        free(t->shadow);
        free(t->frames);
        free(t->local);
        free(t->local_valid);
        shadow_thread_free(t);
    }
    for (uint32_t i = 0; b->templates && i < b->worker->launch->module->code_count; i++)
        free(b->templates[i]);
    if (b->worker->launch->checked)
        check_block_destroy(b);
    shadow_block_free(b);
    free(b->templates);
    free(b->threads);
    free(b->shared);
    free(b->warp_order);
    free(b);
}

/* ---- frames ---- */

/* A zeroed tail keeps what later frames find there independent of history. */
static bool grow(void **p, uint64_t old, uint64_t now)
{
    void *fresh = realloc(*p, now);
    if (!fresh)
        return false;
    memset((char *)fresh + old, 0, now - old);
    *p = fresh;
    return true;
}

bool thread_reserve(struct thread *t, uint32_t slots, uint32_t local, bool checked)
{
    if (slots > t->stack_slots) {
        uint32_t want = slots < 2 * t->stack_slots ? 2 * t->stack_slots : slots;
        if (!grow((void **)&t->stack, t->stack_slots * sizeof *t->stack, want * sizeof *t->stack))
            return false;
        if (checked && !grow((void **)&t->shadow, t->stack_slots * sizeof *t->shadow, want * sizeof *t->shadow))
            return false;
        t->stack_slots = want;
    }
    if (local > t->local_room) {
        uint32_t want = local < 2 * t->local_room ? 2 * t->local_room : local;
        if (!grow((void **)&t->local, t->local_room, want))
            return false;
        if (checked && !grow((void **)&t->local_valid, t->local_room, want))
            return false;
        t->local_room = want;
    }
    return true;
}

static void fill_thread_slots(struct thread *t, const struct code *code, union slot *R)
{
    for (uint32_t i = 0; i < code->fill_count; i++) {
        const struct fill *f = &code->fills[i];
        switch (f->kind) {
        case FILL_TID:
            R[f->slot].u64 = t->tid[f->value];
            break;
        case FILL_LANEID:
            R[f->slot].u64 = t->lane;
            break;
        case FILL_WARPID:
            R[f->slot].u64 = t->warp;
            break;
        case FILL_LANEMASK: {
            uint32_t eq = 1u << t->lane, lt = eq - 1;
            const uint32_t masks[] = {eq, lt, lt | eq, ~(lt | eq), ~lt};
            R[f->slot].u64 = masks[f->value];
            break;
        }
        case FILL_LOCAL:
            R[f->slot].u64 = t->local_base + (uint64_t)f->addend;
            break;
        default:
            break;
        }
    }
}

static bool make_room(struct block *b, struct thread *t, const struct code *code)
{
    bool checked = b->worker->launch->checked;
    uint64_t slots = (uint64_t)t->base + code->slot_count + 1, local = (uint64_t)t->local_base + code->local_bytes;
    if (slots > MAX_SLOTS || local > MAX_LOCAL || !thread_reserve(t, (uint32_t)slots, (uint32_t)local, checked))
        return false;
    t->local_top = (uint32_t)local;
    if (code->local_bytes) {
        memset(t->local + t->local_base, b->worker->launch->config->fill, code->local_bytes);
        if (checked)
            memset(t->local_valid + t->local_base, 0, code->local_bytes);
    }
    return true;
}

/* Puts `code`'s initial frame at t->base and t->local_base, which the caller has set. */
static bool enter(struct block *b, struct thread *t, const struct code *code)
{
    if (!make_room(b, t, code))
        return false;
    union slot *R = t->stack + t->base;
    memcpy(R, b->templates[code->function->index], code->slot_count * sizeof *R);
    if (b->worker->launch->checked) {
        memset(t->shadow + t->base, 0, code->slot_count * sizeof *t->shadow);
        check_fill_origins(b, code, t->shadow + t->base);
    }
    if (b->worker->launch->shadow && !shadow_enter(t, code))
        return false;
    fill_thread_slots(t, code, R);
    t->code = code;
    t->pc = 0;
    return true;
}

bool thread_enter(struct block *b, struct thread *t, const struct code *code)
{
    t->depth = t->base = t->local_base = 0;
    uint8_t *local = t->local; /* a thread that comes from lock-step has used it already */
    uint32_t bytes = t->local_top;
    uint8_t *kept = bytes ? malloc(bytes) : NULL;
    if (bytes && !kept)
        return false;
    if (bytes)
        memcpy(kept, local, bytes);
    struct ptx_shadow_value *entries = t->local_numbers;
    t->local_numbers = NULL;
    bool ok = enter(b, t, code);
    t->local_numbers = entries;
    if (ok && bytes) {
        memcpy(t->local, kept, bytes);
        t->local_top = bytes;
    }
    free(kept);
    return ok;
}

bool thread_prepare(struct block *b, struct thread *t, const struct code *code)
{
    t->depth = t->base = t->local_base = 0;
    t->code = code;
    return make_room(b, t, code);
}

bool thread_push(struct block *b, struct thread *t, const struct code *code)
{
    uint32_t base = t->base, local_base = t->local_base;
    if (t->depth >= MAX_DEPTH)
        return false;
    if (t->depth == t->frame_capacity) {
        uint32_t want = t->frame_capacity ? t->frame_capacity * 2 : 8;
        struct frame *fresh = realloc(t->frames, want * sizeof *fresh);
        if (!fresh)
            return false;
        t->frames = fresh;
        t->frame_capacity = want;
    }
    t->frames[t->depth] = (struct frame){t->code, t->pc, base, local_base, t->local_top, NULL};
    t->base += t->code->slot_count;
    t->local_base = (t->local_top + 15u) & ~15u;
    if (!enter(b, t, code)) {
        t->base = base;
        t->local_base = local_base;
        t->local_top = t->frames[t->depth].local_top;
        return false;
    }
    t->depth++;
    return true;
}

/* ---- start ---- */

static void fill_block_slots(struct block *b)
{
    const struct launch *l = b->worker->launch;
    uint32_t sms = l->config->sm_count ? l->config->sm_count : 1;
    for (uint32_t k = 0; k < l->module->code_count; k++) {
        if (!b->templates[k] || (b->lanes && k != l->entry->function->index)) /* which calls nothing then */
            continue;
        const struct code *code = l->module->code[k];
        for (uint32_t i = 0; i < code->fill_count; i++) {
            const struct fill *f = &code->fills[i];
            if (f->kind == FILL_CTAID)
                b->templates[k][f->slot].u64 = b->ctaid[f->value];
            else if (f->kind == FILL_SMID)
                b->templates[k][f->slot].u64 = b->linear % sms;
        }
    }
}

static bool start_threads(struct block *b)
{
    const struct launch *l = b->worker->launch;
    const uint32_t *dim = l->config->block;
    for (uint32_t i = 0; i < b->thread_count; i++) {
        struct thread *t = &b->threads[i];
        t->index = i;
        t->lane = i % WARP;
        t->warp = i / WARP;
        t->tid[0] = i % dim[0];
        t->tid[1] = i / dim[0] % dim[1];
        t->tid[2] = i / dim[0] / dim[1];
        t->state = THREAD_READY;
        t->depth = t->base = t->local_base = 0;
        t->cluster_arrived = false;
        t->executed = 0;
        t->taint = 0;
        if (l->rounding)
            t->random = rounding_start(l->config->rounding_seed, b->linear, i);
        if (!enter(b, t, l->entry))
            return false;
    }
    return true;
}

bool block_start(struct block *b, uint64_t linear)
{
    struct launch *l = b->worker->launch;
    const uint32_t *grid = l->config->grid;
    b->linear = linear;
    b->ctaid[0] = (uint32_t)(linear % grid[0]);
    b->ctaid[1] = (uint32_t)(linear / grid[0] % grid[1]);
    b->ctaid[2] = (uint32_t)(linear / grid[0] / grid[1]);
    b->live = b->thread_count;
    b->started = true;
    if (b->barriers_open)
        memset(b->barriers, 0, sizeof b->barriers);
    b->barriers_open = b->meeting = b->cluster_arrived = b->cluster_phase = 0;
    b->finished = b->yielded = false;
    b->random = l->seed ^ linear * UINT64_C(0xd6e8feb86659fd93);
    memset(b->shared, l->config->fill, b->shared_bytes);
    memset(b->shared, 0, l->layout.reserved_bytes);
    fill_block_slots(b);
    for (uint32_t i = 0; l->config->kernel->uses_runtime && i < b->thread_count; i++)
        b->threads[i].runtime_error = 0;
    if (l->lane_code)
        lanes_block_start(b);
    else if (!start_threads(b))
        return false;
    for (uint32_t i = 0; i < b->warp_count; i++)
        b->warp_order[i] = i;
    if (l->seed)
        for (uint32_t i = b->warp_count; i > 1; i--) {
            uint32_t k = (uint32_t)(random_next(&b->random) % i), other = b->warp_order[k];
            b->warp_order[k] = b->warp_order[i - 1];
            b->warp_order[i - 1] = other;
        }
    if (l->checked)
        check_block_start(b);
    if (l->guard)
        guard_block_start(b);
    shadow_block_start(b);
    return true;
}

/* ---- barriers ---- */

static void release_barrier(struct block *b, uint32_t id)
{
    struct barrier *bar = &b->barriers[id];
    for (uint32_t i = 0; i < b->thread_count; i++) {
        struct thread *t = &b->threads[i];
        if (t->state != THREAD_BARRIER || t->wait_mask != id)
            continue;
        const struct insn *in = &t->code->insns[t->pc];
        if (in->op == OP_BAR_RED) {
            unsigned op = in->mod >> 2 & 3;
            thread_set(t, in->d, op == 2 ? bar->population : op == 1 ? bar->any : bar->all);
            if (t->numbers)
                t->numbers[t->base + in->d].flags = bar->taint & FLAGS_CONTROL;
        }
        thread_pass(t);
        t->state = THREAD_READY;
    }
    *bar = (struct barrier){0};
    b->barriers_open &= ~(1u << id);
    if (b->worker->launch->checked)
        check_barrier(b);
    if (b->worker->launch->guard)
        guard_barrier(b->worker->launch->guard);
}

static bool barrier_complete(const struct block *b, const struct barrier *bar)
{
    return bar->arrived && bar->arrived >= (bar->expected ? bar->expected : b->live);
}

void barrier_arrive(struct block *b, struct thread *t, uint32_t id, uint32_t expected, bool counted, bool waits)
{
    const struct insn *in = &t->code->insns[t->pc];
    struct barrier *bar = &b->barriers[id % BARRIERS];
    bool mismatch = bar->arrived && bar->expected != (counted ? expected : 0);
    if (id >= BARRIERS || (counted && (expected == 0 || expected % WARP)) || mismatch) {
        fault_simple(b->worker, b, t, PTX_FAULT_BARRIER);
        t->state = THREAD_DONE;
        return;
    }
    bool predicate = in->op == OP_BAR_RED && t->stack[t->base + in->c].u32;
    if (bar->arrived == 0)
        *bar = (struct barrier){.expected = counted ? expected : 0, .all = true};
    b->barriers_open |= 1u << id;
    bar->arrived++;
    bar->population += predicate;
    bar->all &= predicate;
    bar->any |= predicate;
    if (in->op == OP_BAR_RED && t->numbers)
        bar->taint |= t->taint | t->numbers[t->base + in->c].flags;
    if (waits) {
        t->state = THREAD_BARRIER;
        t->wait_mask = id;
    } else {
        thread_pass(t);
    }
    if (barrier_complete(b, bar))
        release_barrier(b, id);
}

bool barrier_arrive_group(struct block *b, const struct arrival *a)
{
    struct barrier *bar = &b->barriers[a->id % BARRIERS];
    uint32_t expected = a->counted ? a->expected : 0, lanes = (uint32_t)__builtin_popcount(a->mask);
    for (uint32_t m = a->mask; m; m &= m - 1) {
        struct thread *t = &b->threads[a->first + (uint32_t)__builtin_ctz(m)];
        t->code = a->code;
        t->pc = a->pc;
        if (a->waits) {
            t->state = THREAD_BARRIER;
            t->wait_mask = a->id;
        }
    }
    if (a->id >= BARRIERS || (a->counted && (expected == 0 || expected % WARP)) ||
        (bar->arrived && bar->expected != expected)) {
        fault_simple(b->worker, b, &b->threads[a->first + (uint32_t)__builtin_ctz(a->mask)], PTX_FAULT_BARRIER);
        return false;
    }
    if (bar->arrived == 0)
        *bar = (struct barrier){.expected = expected, .all = true};
    b->barriers_open |= 1u << a->id;
    bar->arrived += lanes;
    bar->population += (uint32_t)__builtin_popcount(a->predicates);
    bar->all &= a->predicates == a->mask;
    bar->any |= a->predicates != 0;
    bar->taint |= (uint8_t)a->taint;
    if (barrier_complete(b, bar))
        release_barrier(b, a->id);
    return true;
}

/* A thread that ends no longer keeps others waiting. */
void barrier_thread_ended(struct block *b)
{
    for (uint32_t id = 0; b->barriers_open && id < BARRIERS; id++)
        if (b->barriers[id].arrived && !b->barriers[id].expected && barrier_complete(b, &b->barriers[id]))
            release_barrier(b, id);
}

/* bar.sync with a count counts whole warps on a device: lanes that ended, or never were, count with their warp. */
static bool release_short_barrier(struct block *b)
{
    for (uint32_t id = 0; id < BARRIERS; id++) {
        struct barrier *bar = &b->barriers[id];
        if (!bar->arrived || !bar->expected)
            continue;
        uint32_t missing = 0;
        for (uint32_t warp = 0; warp < b->warp_count; warp++) {
            uint32_t waiting = 0, gone = 0;
            for (uint32_t lane = 0; lane < WARP; lane++) {
                uint32_t i = warp * WARP + lane;
                if (i >= b->thread_count || b->threads[i].state == THREAD_DONE)
                    gone++;
                else if (b->threads[i].state == THREAD_BARRIER && b->threads[i].wait_mask == id)
                    waiting++;
            }
            if (waiting)
                missing += gone;
        }
        if (bar->arrived + missing >= bar->expected) {
            release_barrier(b, id);
            return true;
        }
    }
    return false;
}

/* ---- barrier.cluster ---- */

static void cluster_settle(struct block *b)
{
    if (!b->cluster_arrived || b->cluster_arrived < b->live)
        return;
    b->cluster_arrived = 0;
    b->cluster_phase++;
    if (b->worker->launch->checked)
        check_barrier(b);
}

void cluster_arrive(struct block *b, struct thread *t)
{
    if (t->cluster_arrived && t->cluster_phase == b->cluster_phase)
        return; /* twice without a wait is undefined */
    t->cluster_arrived = true;
    t->cluster_phase = b->cluster_phase;
    b->cluster_arrived++;
    cluster_settle(b);
}

bool cluster_may_go(const struct block *b, struct thread *t)
{
    if (t->cluster_arrived && t->cluster_phase == b->cluster_phase)
        return false;
    t->cluster_arrived = false;
    return true;
}

/* ---- alloca ---- */

static void stack_fault(struct block *b, struct thread *t, const struct insn *in)
{
    struct ptx_fault f = {.kind = PTX_FAULT_STACK, .space = PTX_SPACE_LOCAL};
    fault_report(b->worker, b, t, in, &f);
}

uint64_t stack_grow(struct block *b, struct thread *t, const struct insn *in, uint64_t bytes, uint64_t align)
{
    struct launch *l = b->worker->launch;
    uint64_t from = (t->local_top + align - 1) & ~(align - 1), to = bytes > MAX_LOCAL ? bytes : from + bytes;
    if (to > MAX_LOCAL || !thread_reserve(t, t->stack_slots, (uint32_t)to, l->checked)) {
        stack_fault(b, t, in);
        return 0;
    }
    if (to == t->local_top)
        return from; /* no memory need be there yet */
    memset(t->local + t->local_top, l->config->fill, to - t->local_top);
    if (l->checked)
        memset(t->local_valid + t->local_top, 0, to - t->local_top);
    if (l->shadow)
        shadow_stack(t, t->local_top, (uint32_t)to);
    t->local_top = (uint32_t)to;
    return from;
}

bool stack_restore(struct block *b, struct thread *t, const struct insn *in, uint64_t top)
{
    if (top > t->local_top || top < (uint64_t)t->local_base + t->code->local_bytes) {
        stack_fault(b, t, in);
        return false;
    }
    t->local_top = (uint32_t)top;
    return true;
}

/* ---- turns ---- */

static void thread_ended(struct block *b, struct thread *t)
{
    b->live--;
    if (t->cluster_arrived && t->cluster_phase == b->cluster_phase)
        b->cluster_arrived--;
    cluster_settle(b);
    barrier_thread_ended(b);
    if (b->meeting)
        warp_thread_ended(b, t);
}

static bool limits_reached(struct worker *w, uint64_t executed)
{
    struct launch *l = w->launch;
    const struct ptx_launch *c = l->config;
    if (c->instruction_limit) {
        uint64_t total = atomic_fetch_add_explicit(&l->root->executed, executed, memory_order_relaxed) + executed;
        if (total >= c->instruction_limit)
            launch_stop(l, STATUS_LIMIT);
    }
    return launch_overdue(l);
}

static enum stop run_thread(struct worker *w, struct block *b, struct thread *t)
{
    if (w->launch->checked)
        return run_checked(w, b, t);
    if (w->counter)
        return run_counted(w, b, t);
#if defined(__x86_64__) && !defined(__clang__)
    if (w->launch->fma)
        return w->launch->shadow     ? run_shadow_fma(w, b, t)
               : w->launch->rounding ? run_stochastic_fma(w, b, t)
                                     : run_device_fma(w, b, t);
#endif
    return w->launch->shadow     ? run_shadow(w, b, t)
           : w->launch->rounding ? run_stochastic(w, b, t)
                                 : run_device(w, b, t);
}

/* A seeded order gives turns of any length, most of them short ones, in instructions (a turn ends at the next jump)
 * and, in checked mode, in memory accesses: so that what another thread does falls between any two of them. */
static void draw_turn(struct block *b)
{
    uint64_t r = random_next(&b->random), least = UINT64_C(1) << (4 + r % 12);
    b->turn = least + (r >> 32 & (least - 1));
    if (b->turn > b->longest_turn)
        b->turn = b->longest_turn;
    b->accesses = 2 + (uint32_t)(r >> 8 & ((1u << (r >> 16 & 15)) - 1));
}

/* One turn for every thread of the warp that can run, in the order of lanes or in a seeded one. False: nobody could. */
static bool run_warp(struct block *b, uint32_t warp, uint64_t *spent)
{
    struct worker *w = b->worker;
    bool any = false;
    const bool seeded = w->launch->seed != 0;
    if (b->lanes && !b->lanes[warp].threads) {
        uint64_t before = *spent;
        any = lanes_run(&b->lanes[warp], spent);
        (void)limits_reached(w, *spent - before);
        return any;
    }
    uint32_t first = warp * WARP, end = first + WARP < b->thread_count ? first + WARP : b->thread_count;
    uint64_t order = seeded ? random_next(&b->random) : 0;
    uint32_t step = (uint32_t)(order & 31) | 1, start = (uint32_t)(order >> 5 & 31);
    for (uint32_t k = 0; k < WARP; k++) {
        uint32_t i = first + ((k * step + start) & (WARP - 1));
        if (i >= end || b->threads[i].state != THREAD_READY)
            continue;
        struct thread *t = &b->threads[i];
        if (seeded)
            draw_turn(b);
        any = true;
        uint64_t before = t->executed;
        enum stop stop = run_thread(w, b, t);
        *spent += t->executed - before;
        if (stop == STOP_TURN)
            b->yielded = true;
        if (t->state == THREAD_DONE)
            thread_ended(b, t);
        if (limits_reached(w, t->executed - before))
            return any;
    }
    return any;
}

static bool warp_has(const struct block *b, uint32_t warp, enum thread_state state)
{
    if (b->lanes && !b->lanes[warp].threads)
        return state == THREAD_READY && lanes_ready(&b->lanes[warp]);
    for (uint32_t i = warp * WARP; i < warp * WARP + WARP && i < b->thread_count; i++)
        if (b->threads[i].state == state)
            return true;
    return false;
}

/* Nobody can go on: every waiting thread is part of the fault. */
static void report_deadlock(struct block *b)
{
    for (uint32_t i = 0; i < b->thread_count; i++) {
        struct thread *t = &b->threads[i];
        if (t->state == THREAD_DONE)
            continue;
        fault_simple(b->worker, b, t, PTX_FAULT_BARRIER);
        t->state = THREAD_DONE;
        if (!b->worker->launch->checked && !b->worker->launch->shadow)
            return;
    }
    b->live = 0;
}

static void count_threads(struct block *b, uint32_t warp, uint64_t *total, uint64_t *longest)
{
    for (uint32_t i = warp * WARP; i < warp * WARP + WARP && i < b->thread_count; i++) {
        *total += b->threads[i].executed;
        b->worker->counts.tainted_threads += b->threads[i].taint != 0;
        if (b->threads[i].executed > *longest)
            *longest = b->threads[i].executed;
    }
}

static void finish_block(struct block *b)
{
    struct ptx_counts *c = &b->worker->counts;
    b->finished = true;
    c->blocks++;
    c->threads += b->thread_count;
    uint64_t executed;
    if (lanes_convoy_ended(b, &executed)) {
        c->thread_instructions += executed * b->thread_count;
        c->warp_instructions += executed * b->warp_count;
        return;
    }
    for (uint32_t warp = 0; warp < b->warp_count; warp++) {
        uint64_t longest = 0;
        if (b->lanes)
            lanes_count(&b->lanes[warp], &c->thread_instructions, &longest);
        if (!b->lanes || b->lanes[warp].threads)
            count_threads(b, warp, &c->thread_instructions, &longest);
        c->warp_instructions += longest;
    }
}

/* What a warp gets at a time when it meets again and again, which ends no turn: it may be asking what another does. */
#define VISIT (UINT64_C(1) << 20)

void block_run(struct block *b, uint64_t budget)
{
    struct launch *l = b->worker->launch;
    const uint64_t visit = budget < VISIT ? budget : VISIT;
    uint64_t spent = 0;
    if (b->convoy) {
        lanes_convoy(b, &spent);
        (void)limits_reached(b->worker, spent);
    }
    while (b->live && !launch_stopped(l)) {
        bool any = false;
        for (uint32_t k = 0; k < b->warp_count && !launch_stopped(l); k++) {
            uint32_t warp = b->warp_order[k];
            if (b->lanes && b->lanes[warp].done)
                continue;
            const uint64_t before = spent;
            while (run_warp(b, warp, &spent)) {
                any = true;
                if (b->yielded || launch_stopped(l) || spent - before >= visit || !warp_has(b, warp, THREAD_READY))
                    break;
            }
            if (b->lanes && !b->lanes[warp].threads)
                continue;
            if (!warp_has(b, warp, THREAD_READY) && warp_has(b, warp, THREAD_ACTIVE)) {
                warp_release_active(b, warp);
                any = true;
            }
        }
        if (!any && b->live && !launch_stopped(l) && !release_short_barrier(b))
            report_deadlock(b);
        b->yielded = false;
        if (spent >= budget)
            break;
    }
    if (b->live == 0 || launch_stopped(l))
        finish_block(b);
}
