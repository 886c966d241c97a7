/* lanes_warp.c - a warp in lock-step: its groups of lanes, where they part and meet again, and what it leaves to the
 * other engine.
 *
 * The group with the lowest pc runs until it reaches the pc of another (they merge), branches apart, waits, or ends. As
 * nvcc places blocks so that loops are contiguous, everybody comes together behind a branch or a loop without any
 * analysis. Lowest first alone would starve: a lane that spins for a lock keeps the holder, further down, from
 * releasing it. So a group that has touched memory atomically again and again, or has run very long, while others wait
 * is parked until these have gone on: sooner each time, as whoever spun for a lock will spin for it again. */
#include <stdlib.h>
#include <string.h>
#include "ptx/counts.h"
#include "ptx/guard.h"
#include "ptx/lanes_copy.h"
#include "ptx/lanes_shadow.h"

#if defined(LANES_HERE) && !defined(__clang__)
#pragma GCC target("popcnt,bmi") /* nothing here runs where the handlers cannot */
#endif

enum { LEAST_PATIENCE = 4, LEAST_LONG_RUN = 1 << 12 };

/* ---- registers ---- */

void lane_expand(struct lanes *L, uint32_t unit)
{
    bool affine = L->state[unit] & LANE_AFFINE;
    uint64_t base = L->base[unit], stride = affine ? (uint64_t)L->stride[unit] : 0,
             rise = affine ? (uint64_t)L->rise[unit] : 0;
    uint32_t fold = L->fold, low = (1u << fold) - 1;
    uint8_t *v = L->file + (size_t)unit * LANE_UNIT;
    if (L->lc->unit_class[unit] == CLASS_WIDE)
        for (uint32_t i = 0; i < WARP; i++)
            ((uint64_t *)(void *)v)[i] = base + stride * (i & low) + rise * (i >> fold);
    else
        for (uint32_t i = 0; i < WARP; i++)
            ((uint32_t *)(void *)v)[i] = (uint32_t)base + (uint32_t)stride * (i & low) + (uint32_t)rise * (i >> fold);
    L->state[unit] &= (uint8_t)~LANE_STALE;
}

uint64_t lane_value(const struct lanes *L, uint32_t unit, uint32_t lane)
{
    unsigned class = L->lc->unit_class[unit];
    const uint8_t *v = L->file + (size_t)unit * LANE_UNIT;
    if (class == CLASS_BIT)
        return L->base[unit] >> lane & 1;
    if (!(L->state[unit] & LANE_VECTOR)) {
        uint64_t value = L->base[unit];
        if (L->state[unit] & LANE_AFFINE)
            value += (uint64_t)L->stride[unit] * (lane & ((1u << L->fold) - 1)) +
                     (uint64_t)L->rise[unit] * (lane >> L->fold);
        return class == CLASS_WORD ? (uint32_t)value : value;
    }
    return class == CLASS_WORD ? ((const uint32_t *)(const void *)v)[lane] : ((const uint64_t *)(const void *)v)[lane];
}

void lane_set(struct lanes *L, uint32_t unit, uint32_t lane, uint64_t value)
{
    unsigned class = L->lc->unit_class[unit];
    uint8_t *v = L->file + (size_t)unit * LANE_UNIT;
    if (class == CLASS_BIT) {
        L->base[unit] = (L->base[unit] & ~(UINT64_C(1) << lane)) | (uint64_t)(value != 0) << lane;
        return;
    }
    if (L->state[unit] & LANE_STALE)
        lane_expand(L, unit);
    L->state[unit] = LANE_VECTOR;
    if (class == CLASS_WORD)
        ((uint32_t *)(void *)v)[lane] = (uint32_t)value;
    else
        ((uint64_t *)(void *)v)[lane] = value;
}

bool lane_same(struct lanes *L, uint32_t unit, uint32_t *value)
{
    uint32_t first = (uint32_t)lane_value(L, unit, (uint32_t)__builtin_ctz(L->mask));
    for (uint32_t m = L->mask; m; m &= m - 1)
        if ((uint32_t)lane_value(L, unit, (uint32_t)__builtin_ctz(m)) != first)
            return false;
    *value = first;
    return true;
}

/* ---- groups ---- */

static uint32_t pc_of(const struct lanes *L, const struct insn *in)
{
    return (uint32_t)(in - L->insns);
}

static struct thread *thread_of(const struct lanes *L, uint32_t lane)
{
    return &L->block->threads[L->first + lane];
}

/* Instructions of a group whose lanes will no longer have one count go to the lanes. */
static void settle(struct lanes *L, uint32_t mask, uint64_t executed)
{
    L->uneven |= executed != 0;
    for (; executed && mask; mask &= mask - 1)
        L->extra[__builtin_ctz(mask)] += executed;
}

/* Lanes end: their instructions go to the warp. */
static void count_ended(struct lanes *L, uint32_t mask, uint64_t executed)
{
    if (!L->uneven) {
        L->total += executed * (uint32_t)__builtin_popcount(mask);
        L->longest = executed > L->longest ? executed : L->longest;
        return;
    }
    for (; mask; mask &= mask - 1) {
        uint64_t all = L->extra[__builtin_ctz(mask)] + executed;
        L->total += all;
        L->longest = all > L->longest ? all : L->longest;
    }
}

static void add_group(struct lanes *L, uint32_t pc, uint32_t mask, uint64_t executed, enum group_wait wait)
{
    uint32_t at = 0;
    while (at < L->group_count && L->groups[at].pc < pc)
        at++;
    /* Those that wait for a barrier have passed its instruction already, and each waits for its own. */
    for (uint32_t i = at; wait != GROUP_BARRIER && i < L->group_count && L->groups[i].pc == pc; i++) {
        struct group *g = &L->groups[i];
        if (g->wait == GROUP_BARRIER)
            continue;
        if (g->executed != executed) {
            settle(L, g->mask, g->executed);
            settle(L, mask, executed);
            g->executed = 0;
        }
        g->mask |= mask;
        g->wait = g->wait == GROUP_WARP || wait == GROUP_WARP ? GROUP_READY : wait;
        g->parked = false;
        return;
    }
    memmove(&L->groups[at + 1], &L->groups[at], (L->group_count - at) * sizeof *L->groups);
    L->groups[at] = (struct group){.pc = pc, .mask = mask, .executed = executed, .wait = wait};
    L->group_count++;
}

static void remove_group(struct lanes *L, uint32_t at)
{
    L->group_count--;
    memmove(&L->groups[at], &L->groups[at + 1], (L->group_count - at) * sizeof *L->groups);
}

/* Counts what was executed up to `pc`. */
static void account(struct lanes *L, uint32_t pc)
{
    uint32_t n = L->weight[pc] - L->weight[L->start_pc];
    if (L->counter)
        counter_run(L->counter, L->start_pc, pc, L->mask);
    L->executed += n;
    L->turn -= n;
    L->start_pc = pc;
}

void lane_account(struct lanes *L, uint32_t pc)
{
    account(L, pc);
}

const struct insn *lane_leave(struct lanes *L, uint32_t pc, enum lane_stop why)
{
    account(L, pc);
    L->pc = pc;
    L->reason = why;
    return NULL;
}

/* The running group becomes one that waits. */
static const struct insn *wait_here(struct lanes *L, uint32_t pc, enum group_wait wait)
{
    account(L, pc);
    add_group(L, pc, L->mask, L->executed, wait);
    L->mask = 0;
    L->reason = LANES_CHANGED;
    return NULL;
}

static void end_lanes(struct lanes *L, uint32_t mask, uint64_t executed)
{
    struct block *b = L->block;
    count_ended(L, mask, executed);
    L->live &= ~mask;
    L->live_count = (uint32_t)__builtin_popcount(L->live);
    b->live -= (uint32_t)__builtin_popcount(mask);
    if (b->states)
        for (uint32_t m = mask; m; m &= m - 1)
            thread_of(L, (uint32_t)__builtin_ctz(m))->state = THREAD_DONE;
    if (b->barriers_open)
        barrier_thread_ended(b);
}

/* The running group splits. A branch to the end of the program is taken at once, so that the rest is the whole warp
 * again. */
static const struct insn *split(struct lanes *L, uint32_t near_pc, uint64_t near_executed, uint32_t taken,
                                uint32_t far_pc, uint64_t far_executed)
{
    uint32_t rest = L->mask & ~taken;
    L->mask = 0;
    L->reason = LANES_CHANGED;
    add_group(L, near_pc, rest, near_executed, GROUP_READY);
    if (L->code->insns[far_pc].op == OP_EXIT && !L->block->barriers_open) {
        if (L->counter)
            counter_run(L->counter, far_pc, far_pc + 1, taken);
        end_lanes(L, taken, far_executed + insn_weight(L->code, far_pc));
    } else {
        add_group(L, far_pc, taken, far_executed, GROUP_READY);
    }
    return NULL;
}

const struct insn *lane_branch(struct lanes *L, const struct insn *in, uint32_t taken, uint32_t target)
{
    account(L, pc_of(L, in) + 1);
    return split(L, pc_of(L, in) + 1, L->executed, taken, target, L->executed);
}

const struct insn *lane_skip(struct lanes *L, const struct insn *in, uint32_t taken, uint32_t target)
{
    uint32_t pc = pc_of(L, in) + 1;
    account(L, pc);
    return split(L, pc, L->executed, taken, target, L->executed + L->weight[target] - L->weight[pc]);
}

/* In a partial warp, after a jump: who goes on, and up to where. */
const struct insn *lane_retarget(struct lanes *L, uint32_t target)
{
    bool spinning = L->strong > L->patience || L->run > L->long_run;
    const struct insn *stop = NULL;
    for (uint32_t i = 0; i < L->group_count; i++) {
        const struct group *g = &L->groups[i];
        if (g->wait == GROUP_BARRIER)
            continue;
        if (g->pc == target || (g->pc < target && g->wait == GROUP_READY && !g->parked) ||
            (spinning && g->wait == GROUP_READY))
            return lane_leave(L, target, LANES_CHANGED);
        if (g->pc > target) {
            stop = L->insns + g->pc;
            break;
        }
    }
    L->stop = stop;
    L->run += L->executed - L->run_mark;
    L->run_mark = L->executed;
    return L->insns + target;
}

const struct insn *lane_switch(struct lanes *L, const struct insn *in)
{
    const struct branch_table *table = &L->code->tables[in->aux];
    for (uint32_t m = L->mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        if (lane_value(L, in->a, lane) >= table->count) {
            struct thread *t = thread_of(L, lane);
            t->code = L->code;
            t->pc = pc_of(L, in);
            fault_simple(L->worker, L->block, t, PTX_FAULT_BAD_CALL);
            return lane_leave(L, pc_of(L, in) + 1, LANES_FAULT);
        }
    }
    uint32_t target, rest = L->mask;
    account(L, pc_of(L, in) + 1);
    uint32_t mask = L->mask;
    L->mask = 0;
    while (rest) {
        uint32_t together = 0;
        target = table->targets[lane_value(L, in->a, (uint32_t)__builtin_ctz(rest))];
        for (uint32_t m = rest; m; m &= m - 1)
            if (table->targets[lane_value(L, in->a, (uint32_t)__builtin_ctz(m))] == target)
                together |= m & (0u - m);
        if (together == mask) {
            L->mask = mask;
            L->start_pc = target;
            return lane_leave(L, target, L->turn < 0 ? LANES_TURN : LANES_CHANGED);
        }
        add_group(L, target, together, L->executed, GROUP_READY);
        rest &= ~together;
    }
    L->reason = LANES_CHANGED;
    return NULL;
}

const struct insn *lane_exit(struct lanes *L, const struct insn *in)
{
    account(L, pc_of(L, in) + 1);
    end_lanes(L, L->mask, L->executed);
    L->mask = 0;
    L->reason = LANES_CHANGED;
    return NULL;
}

const struct insn *lane_sleep(struct lanes *L, const struct insn *in)
{
    L->strong += LANES_SPINNING + 1;
    return lane_leave(L, pc_of(L, in) + 1, LANES_TURN);
}

/* ---- what the other engine does for this one ---- */

/* The thread's frame gets what the instruction reads. */
static void lend(struct lanes *L, const struct operands *o, uint32_t lane, uint32_t pc)
{
    struct thread *t = thread_of(L, lane);
    for (uint32_t i = 0; i < o->read_count; i++)
        t->stack[o->reads[i]].u64 = lane_value(L, L->lc->unit[o->reads[i]], lane);
    t->code = L->code;
    t->pc = pc;
    t->executed = L->extra[lane] + L->executed;
    if (L->numbers)
        lane_number_lend(L, o, lane);
}

static void give_back(struct lanes *L, const struct operands *o, uint32_t lane)
{
    const struct thread *t = thread_of(L, lane);
    for (uint32_t i = 0; i < o->write_count; i++)
        lane_set(L, L->lc->unit[o->writes[i]], lane, t->stack[o->writes[i]].u64);
    if (L->numbers)
        lane_number_give_back(L, o, lane);
}

const struct insn *lane_step(struct lanes *L, const struct insn *in)
{
    struct operands o;
    uint32_t pc = pc_of(L, in);
    if (L->code->insns[pc].op == OP_CP_ASYNC && lane_copy(L, &L->code->insns[pc]))
        return in + 1;
    (void)insn_operands(L->worker->launch->module, L->code, &L->code->insns[pc], &o);
    account(L, pc);
    L->strong++;
    L->worker->lane_steps += (uint32_t)__builtin_popcount(L->mask);
    if (L->numbers && !lane_numbers_frames(L))
        return lane_leave(L, pc, LANES_FAULT);
    bool others = false; /* it waits for what others are to do */
    for (uint32_t m = L->mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        struct thread *t = thread_of(L, lane);
        lend(L, &o, lane, pc);
        t->state = THREAD_READY;
        enum stop stop = L->numbers ? run_shadow_step(L->worker, L->block, t) : run_step(L->worker, L->block, t);
        if ((stop != STOP_STEP && stop != STOP_TURN) || launch_stopped(L->worker->launch))
            return lane_leave(L, pc + 1, LANES_FAULT);
        others |= stop == STOP_TURN;
        give_back(L, &o, lane);
    }
    if (L->numbers)
        lane_numbers_settle(L, &o);
    if (!others)
        return in + 1;
    L->strong += LANES_SPINNING + 1;
    return lane_leave(L, pc + 1, LANES_TURN);
}

/* ---- lanes together ---- */

bool lane_together(struct lanes *L, const struct insn *in, uint32_t members)
{
    uint32_t pc = pc_of(L, in);
    if (L->mask & ~members) { /* lanes outside the mask they give: the other engine knows what that means */
        (void)lane_leave(L, pc, LANES_THREADS);
        return false;
    }
    if (members & L->live & ~L->mask) {
        (void)wait_here(L, pc, GROUP_WARP);
        return false;
    }
    return true;
}

static const struct insn *met_here(struct lanes *L, const struct insn *in)
{
    uint32_t pc = pc_of(L, in);
    account(L, pc + 1);
    return in + 1;
}

const struct insn *lane_warp_sync(struct lanes *L, const struct insn *in)
{
    uint32_t members;
    if (!lane_same(L, in->a, &members))
        return lane_leave(L, pc_of(L, in), LANES_THREADS);
    return lane_together(L, in, members) ? met_here(L, in) : NULL;
}

bool lane_converged(struct lanes *L, const struct insn *in)
{
    if (L->mask == L->live || L->alone) {
        L->alone = false;
        return true;
    }
    (void)wait_here(L, pc_of(L, in), GROUP_ACTIVE);
    return false;
}

const struct insn *lane_meet(struct lanes *L, const struct insn *in)
{
    struct block *b = L->block;
    uint32_t pc = pc_of(L, in), members = UINT32_MAX;
    const struct insn *original = &L->code->insns[pc];
    uint32_t mask_slot = original->op == OP_ELECT  ? original->a
                         : original->op == OP_SHFL ? L->code->extra[original->imm + 1]
                                                   : original->b;
    if (original->op != OP_MATRIX && !lane_same(L, L->lc->unit[mask_slot], &members))
        return lane_leave(L, pc, LANES_THREADS);
    if (!lane_together(L, in, members))
        return NULL;
    if (original->op == OP_MATRIX && lane_matrix(L, original))
        return met_here(L, in);
    struct operands o;
    (void)insn_operands(L->worker->launch->module, L->code, original, &o);
    account(L, pc);
    L->worker->lane_steps += (uint32_t)__builtin_popcount(L->mask);
    if (L->numbers && !lane_numbers_frames(L))
        return lane_leave(L, pc, LANES_FAULT);
    for (uint32_t m = L->mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        lend(L, &o, lane, pc);
        thread_of(L, lane)->state = THREAD_WARP;
        thread_of(L, lane)->wait_mask = members;
        b->meeting++;
    }
    (void)warp_arrive(b, thread_of(L, (uint32_t)__builtin_ctz(L->mask)));
    if (launch_stopped(L->worker->launch))
        return lane_leave(L, pc, LANES_FAULT);
    for (uint32_t m = L->mask; m; m &= m - 1)
        give_back(L, &o, (uint32_t)__builtin_ctz(m));
    if (L->numbers)
        lane_numbers_settle(L, &o);
    return met_here(L, in);
}

/* The result of bar.red, which the barrier's release left in the frames of threads. */
static void reduced(struct lanes *L, uint32_t slot, uint32_t mask)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        lane_set(L, L->lc->unit[slot], lane, thread_of(L, lane)->stack[slot].u64);
        if (L->numbers)
            lane_number_return(L, slot, lane);
    }
}

const struct insn *lane_barrier(struct lanes *L, const struct insn *in)
{
    uint32_t pc = pc_of(L, in), id, count = 0, predicates = 0;
    const struct insn *original = &L->code->insns[pc];
    const bool counted = !(original->mod & 1), waits = original->op != OP_BAR_ARRIVE;
    const uint32_t *unit = L->lc->unit;
    if (!lane_same(L, unit[original->a], &id) || (counted && !lane_same(L, unit[original->b], &count)))
        return lane_leave(L, pc, LANES_THREADS);
    if (original->op == OP_BAR_RED)
        for (uint32_t m = L->mask; m; m &= m - 1)
            predicates |= (uint32_t)(lane_value(L, unit[original->c], (uint32_t)__builtin_ctz(m)) != 0)
                          << __builtin_ctz(m);
    account(L, pc);
    struct arrival a = {L->code, pc, L->first, L->mask, predicates, id, count, counted, waits, 0};
    if (L->numbers && original->op == OP_BAR_RED)
        a.taint = lane_numbers_taint(L, original->c);
    if (!barrier_arrive_group(L->block, &a))
        return lane_leave(L, pc, LANES_FAULT);
    if (!waits)
        return met_here(L, in);
    if (thread_of(L, (uint32_t)__builtin_ctz(L->mask))->state == THREAD_READY) { /* it was the last to come */
        account(L, pc + 1);
        if (original->op == OP_BAR_RED)
            reduced(L, original->d, L->mask);
        return in + 1;
    }
    if (L->counter) /* it has arrived, and goes on behind the barrier, here or in threads */
        counter_run(L->counter, pc, pc + 1, L->mask);
    return wait_here(L, pc, GROUP_BARRIER);
}

/* ---- the warp ---- */

static bool barrier_passed(const struct lanes *L, const struct group *g)
{
    return thread_of(L, (uint32_t)__builtin_ctz(g->mask))->state != THREAD_BARRIER;
}

/* Groups whose barrier was released stand behind it. */
static void pass_barriers(struct lanes *L)
{
    for (uint32_t i = 0; i < L->group_count; i++) {
        struct group g = L->groups[i];
        if (g.wait != GROUP_BARRIER || !barrier_passed(L, &g))
            continue;
        const struct insn *in = &L->code->insns[g.pc];
        if (in->op == OP_BAR_RED)
            reduced(L, in->d, g.mask);
        remove_group(L, i);
        add_group(L, g.pc + 1, g.mask, g.executed + insn_weight(L->code, g.pc), GROUP_READY);
        L->patience = LANES_SPINNING;
        L->long_run = LANES_LONG_RUN;
        i = UINT32_MAX; /* once more: the order has changed */
    }
}

enum { NOBODY = UINT32_MAX };

/* The group that is to run; NOBODY: all wait. */
static uint32_t choose(struct lanes *L)
{
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < L->group_count; i++)
            if (L->groups[i].wait == GROUP_READY && !L->groups[i].parked)
                return i;
        for (uint32_t i = 0; i < L->group_count; i++)
            L->groups[i].parked = false;
    }
    for (uint32_t i = 0; i < L->group_count; i++) /* whom they waited for has ended, perhaps */
        if (L->groups[i].wait == GROUP_WARP && L->live_seen != L->live) {
            L->live_seen = L->live;
            for (uint32_t k = 0; k < L->group_count; k++)
                if (L->groups[k].wait == GROUP_WARP)
                    L->groups[k].wait = GROUP_READY;
            return i;
        }
    for (uint32_t i = 0; i < L->group_count; i++)
        if (L->groups[i].wait == GROUP_ACTIVE) {
            L->alone = true;
            return i;
        }
    return NOBODY;
}

static void resume(struct lanes *L, uint32_t i)
{
    struct group g = L->groups[i];
    if (--L->group_count)
        memmove(&L->groups[i], &L->groups[i + 1], (L->group_count - i) * sizeof *L->groups);
    L->pc = L->start_pc = g.pc;
    L->mask = g.mask;
    L->executed = L->run_mark = g.executed;
    L->strong = 0;
    L->run = g.run;
    if (L->selected != g.mask)
        for (uint32_t k = 0; k < WARP; k++)
            L->select[k] = 0u - (g.mask >> k & 1);
    L->selected = g.mask;
    L->stop = NULL;
    for (uint32_t k = 0; k < L->group_count && !L->stop; k++)
        if (L->groups[k].pc > g.pc && L->groups[k].wait != GROUP_BARRIER)
            L->stop = L->insns + L->groups[k].pc;
}

/* Back among the groups. */
static void put_back(struct lanes *L)
{
    bool spinning = L->strong > L->patience || L->run > L->long_run;
    uint32_t mask = L->mask;
    if (!mask)
        return;
    if (L->strong > L->patience && L->group_count && L->patience > LEAST_PATIENCE)
        L->patience /= 2;
    if (L->run > L->long_run && L->group_count && L->long_run > LEAST_LONG_RUN)
        L->long_run /= 4;
    L->mask = 0;
    add_group(L, L->pc, mask, L->executed, GROUP_READY);
    for (uint32_t i = 0; i < L->group_count; i++) {
        struct group *g = &L->groups[i];
        if (g->pc != L->pc || g->wait != GROUP_READY)
            continue;
        g->parked = spinning;
        g->run = spinning || g->mask != mask ? 0 : L->run; /* its next turn goes on counting */
    }
}

bool lanes_ready(const struct lanes *L)
{
    if (L->done)
        return false;
    if (!L->started)
        return true;
    for (uint32_t i = 0; i < L->group_count; i++)
        if (L->groups[i].wait != GROUP_BARRIER || barrier_passed(L, &L->groups[i]))
            return true;
    return false;
}

static void finish(struct lanes *L)
{
    L->done = true;
    lanes_release(L);
}

void lanes_count(struct lanes *L, uint64_t *total, uint64_t *longest)
{
    if (L->started && !L->done && !L->threads) /* the launch was stopped */
        for (uint32_t i = 0; i < L->group_count; i++)
            count_ended(L, L->groups[i].mask, L->groups[i].executed);
    if (L->worker->launch->shadow && !L->threads)
        L->worker->counts.tainted_threads += lane_numbers_tainted_threads(L);
    *total += L->total;
    *longest = L->longest;
}

static bool is_plain(const struct lanes *L, unsigned op)
{
    return L->handlers[op] == L->plain[op];
}

static uint32_t joined(const struct lanes *L)
{
    if (L->mask != UINT32_MAX || !is_plain(L, OP_LD_GLOBAL_B32) || !is_plain(L, OP_LD_SHARED_B32) ||
        !is_plain(L, OP_FMA_F32))
        return 0;
    return L->fold == 5 ? LANE_JOINED_32 : L->fold == 4 ? LANE_JOINED_16 : 0;
}

/* Runs one group from L->pc to where it stops. */
static void run_group(struct lanes *L)
{
    const bool partial = L->mask != L->live;
    const struct insn *in = L->insns + L->pc;
    const struct launch *l = L->worker->launch;
    lane_handler *const *handlers = l->lane_handlers[partial];
    L->handlers = l->lane_chain[partial];
    L->plain = l->lane_plain[partial];
    if (!partial) {
        L->joined = joined(L);
        do
            in = handlers[in->op](L, in);
        while (in);
        return;
    }
    do
        in = handlers[in->op](L, in);
    while (in && in != L->stop);
    if (in)
        (void)lane_leave(L, pc_of(L, in), LANES_CHANGED);
}

bool lanes_run(struct lanes *L, uint64_t *spent)
{
    struct launch *l = L->worker->launch;
    if (L->done || (!L->started && !lanes_start(L)))
        return false;
    bool any = false;
    L->turn = (int64_t)L->block->turn;
    while (!launch_stopped(l)) {
        pass_barriers(L);
        if (!L->live) {
            finish(L);
            return true;
        }
        uint32_t i = choose(L);
        if (i == NOBODY) {
            bool waits = false; /* for lanes that stand elsewhere: the other engine knows which of these meet */
            for (uint32_t k = 0; k < L->group_count; k++)
                waits |= L->groups[k].wait == GROUP_WARP;
            if (waits)
                lanes_to_threads(L);
            return any || waits;
        }
        any = true;
        resume(L, i);
        uint32_t lanes = (uint32_t)__builtin_popcount(L->mask);
        uint64_t before = L->executed;
        run_group(L);
        *spent += (L->executed - before) * lanes;
        enum lane_stop reason = L->reason;
        put_back(L);
        if (reason == LANES_FAULT) {
            launch_stop(l, STATUS_FAULT);
            return true;
        }
        if (reason == LANES_THREADS) {
            lanes_to_threads(L);
            return true;
        }
        if (reason == LANES_TURN || L->turn < 0) {
            L->block->yielded = true;
            return true;
        }
    }
    return any;
}

/* ---- leaving lock-step ---- */

/* From now on the block's threads have states: those that ended must not be taken for ones that wait. */
static void start_states(struct block *b)
{
    for (uint32_t i = 0; i < b->thread_count; i++) {
        const struct lanes *L = &b->lanes[i / WARP];
        bool ended = L->done || (L->started && !(L->live >> i % WARP & 1));
        b->threads[i].state = ended ? THREAD_DONE : THREAD_READY;
    }
    b->states = true;
}

void lanes_to_threads(struct lanes *L)
{
    struct block *b = L->block;
    const struct lane_code *lc = L->lc;
    if (L->worker->launch->guard) {
        guard_doubt(L->worker->launch->guard, "lanes that go on one by one", 0);
        launch_stop(L->worker->launch, STATUS_FAULT);
        return;
    }
    pass_barriers(L);
    if (!b->states)
        start_states(b);
    for (uint32_t lane = 0; lane < L->lanes; lane++) {
        struct thread *t = thread_of(L, lane);
        if (!(L->live >> lane & 1)) {
            t->state = THREAD_DONE;
            t->executed = 0; /* in L->total */
            continue;
        }
        enum thread_state state = t->state;
        if (!thread_enter(b, t, L->code)) {
            launch_stop(L->worker->launch, STATUS_NO_MEMORY);
            return;
        }
        for (uint32_t slot = 0; slot < L->code->slot_count; slot++)
            if (lc->unit[slot] != NO_UNIT && lc->written[slot])
                t->stack[slot].u64 = lane_value(L, lc->unit[slot], lane);
        if (L->numbers)
            lane_numbers_to_thread(L, lane);
        for (uint32_t i = 0; i < L->group_count; i++) {
            const struct group *g = &L->groups[i];
            if (!(g->mask >> lane & 1))
                continue;
            t->pc = g->pc;
            t->executed = L->extra[lane] + g->executed;
            t->state = g->wait == GROUP_BARRIER ? state : THREAD_READY;
        }
    }
    L->threads = true;
    lanes_release(L);
}
