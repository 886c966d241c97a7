/* lanes_count.c - counting in lock-step: handlers put before the plain ones. Straight runs are counted where they end:
 * at jumps here, else in lanes_warp.c. Each handler counts what the plain one is about to do and goes on to it; those
 * whose lanes may have to wait, and start again, are counted when they are done. */
#include <stdlib.h>
#include <string.h>
#include "ptx/counts.h"
#include "ptx/lanes.h"

static uint32_t pc_of(const struct lanes *L, const struct insn *in)
{
    return (uint32_t)(in - L->insns);
}

static const struct insn *go_on(struct lanes *L, const struct insn *in)
{
    return L->plain[in->op](L, in);
}

static uint32_t condition(const struct lanes *L, const struct insn *in)
{
    uint32_t bits = 0;
    if (in->mod == CLASS_BIT)
        return (uint32_t)L->base[in->a] & L->mask;
    for (uint32_t m = L->mask; m; m &= m - 1)
        bits |= (uint32_t)((uint32_t)lane_value(L, in->a, (uint32_t)__builtin_ctz(m)) != 0) << __builtin_ctz(m);
    return bits;
}

/* ---- branches ---- */

/* The run ends behind the branch, which all take: the plain handler begins a new one. */
static const struct insn *count_jump(struct lanes *L, const struct insn *in)
{
    counter_run(L->counter, L->start_pc, pc_of(L, in) + 1, L->mask);
    return go_on(L, in);
}

static const struct insn *count_branch(struct lanes *L, const struct insn *in)
{
    uint32_t taken = condition(L, in);
    taken = in->op == OP_BRA_IF ? taken : L->mask & ~taken;
    if (taken == L->mask)
        return count_jump(L, in);
    if (taken) /* the run is counted where the group splits */
        L->counter->divergent[L->counter->table->entry_base + pc_of(L, in)]++;
    return go_on(L, in);
}

/* What a guard skips is executed by nobody, but counted as executed. */
static const struct insn *count_skip(struct lanes *L, const struct insn *in)
{
    uint32_t taken = condition(L, in), pc = pc_of(L, in), target = (uint32_t)in->imm;
    taken = in->op == OP_SKIP_IF ? taken : L->mask & ~taken;
    if (taken == L->mask) {
        uint32_t n = L->weight[target] - L->weight[L->start_pc];
        counter_run(L->counter, L->start_pc, pc + 1, L->mask);
        L->executed += n;
        L->turn -= n;
        L->start_pc = target;
    }
    return go_on(L, in);
}

static const struct insn *count_switch(struct lanes *L, const struct insn *in)
{
    const struct branch_table *table = &L->code->tables[in->aux];
    uint64_t first = lane_value(L, in->a, (uint32_t)__builtin_ctz(L->mask));
    bool apart = false;
    for (uint32_t m = L->mask; m && first < table->count && !apart; m &= m - 1) {
        uint64_t index = lane_value(L, in->a, (uint32_t)__builtin_ctz(m));
        apart = index >= table->count || table->targets[index] != table->targets[first];
    }
    L->counter->divergent[L->counter->table->entry_base + pc_of(L, in)] += apart;
    return go_on(L, in);
}

/* ---- memory ---- */

static void values_of(struct lanes *L, uint32_t slot, uint64_t *out)
{
    uint32_t unit = L->lc->unit[slot];
    const uint8_t *v = L->file + (size_t)unit * LANE_UNIT;
    if (L->state[unit] & LANE_VECTOR && L->lc->unit_class[unit] == CLASS_WIDE) {
        memcpy(out, v, WARP * sizeof *out);
    } else if (L->state[unit] & LANE_VECTOR && L->lc->unit_class[unit] == CLASS_WORD) {
        for (uint32_t i = 0; i < WARP; i++)
            out[i] = ((const uint32_t *)(const void *)v)[i];
    } else {
        for (uint32_t i = 0; i < WARP; i++)
            out[i] = lane_value(L, unit, i);
    }
}

/* Registers that hold one number, or numbers that grow by steps. Words of addresses in shared memory do not wrap
 * around: that would lead out of it. */
static bool count_by_steps(struct lanes *L, uint32_t number)
{
    const struct site *s = &L->counter->table->sites[number];
    uint32_t unit = L->lc->unit[s->slot];
    bool affine = L->state[unit] & LANE_AFFINE, wide = L->lc->unit_class[unit] == CLASS_WIDE;
    if (L->state[unit] & LANE_VECTOR || (!wide && (L->lc->unit_class[unit] != CLASS_WORD || s->space != MEM_SHARED)))
        return false;
    struct site_steps x = {.base = (wide ? L->base[unit] : (uint32_t)L->base[unit]) + s->imm,
                           .stride = affine ? L->stride[unit] : 0,
                           .rise = affine ? L->rise[unit] : 0,
                           .fold = L->fold,
                           .mask = L->mask};
    return count_steps(L->counter, number, &x);
}

static uint32_t site_at(const struct lanes *L, const struct insn *in)
{
    const struct count_table *t = L->counter->table;
    return t->site_of[t->entry_base + pc_of(L, in)];
}

static void site_values(struct lanes *L, uint32_t number, struct site_values *v)
{
    const struct site *s = &L->counter->table->sites[number];
    values_of(L, s->slot, v->address);
    if (s->kind == SITE_COPY || s->kind == SITE_BULK || s->kind == SITE_MATRIX)
        values_of(L, s->other_slot, v->other);
    if (s->kind == SITE_COPY || s->kind == SITE_BULK)
        values_of(L, s->length_slot, v->length);
}

static const struct insn *count_memory(struct lanes *L, const struct insn *in)
{
    uint32_t number = site_at(L, in);
    struct site_values v;
    if (number != NO_SITE && !count_by_steps(L, number)) {
        site_values(L, number, &v);
        count_site(L->counter, number, &v, L->mask, true);
    }
    return go_on(L, in);
}

/* ---- lanes together ---- */

/* These do not go on to the next instruction themselves. NULL: they wait and will come again, or do so in threads. */
static const struct insn *count_meeting(struct lanes *L, const struct insn *in)
{
    uint32_t pc = pc_of(L, in);
    lane_account(L, pc);
    const struct insn *next = go_on(L, in);
    if (next)
        counter_run(L->counter, pc, pc + 1, L->mask);
    return next;
}

/* Matrices that are loaded or stored; the run is counted in lanes_warp.c. */
static const struct insn *count_meet(struct lanes *L, const struct insn *in)
{
    uint32_t number = site_at(L, in);
    struct site_values v; /* as they are before: ldmatrix may write over its address */
    if (number != NO_SITE)
        site_values(L, number, &v);
    const struct insn *next = go_on(L, in);
    if (next && number != NO_SITE)
        count_site(L->counter, number, &v, L->mask, true);
    return next;
}

bool lanes_count_install(struct launch *l)
{
    static const uint16_t accesses[] = {
        OP_LDV, OP_STV, OP_ATOM, LANE_STEP, OP_ATOM128, OP_MBARRIER, OP_CP_ASYNC, OP_CP_BULK,
#define LOAD(id, space, type)  OP_##id,
#define STORE(id, space, type) OP_##id,
#include "ptx/microops.def"
    };
    struct count_table *t = l->counting;
    for (int partial = 0; partial < 2; partial++) {
        lane_handler **h = malloc(LANE_OP_COUNT * sizeof *h);
        t->handlers[partial] = h;
        if (!h)
            return false;
        memcpy((void *)h, (const void *)l->lane_plain[partial], LANE_OP_COUNT * sizeof *h);
        for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++)
            h[accesses[i]] = count_memory;
        h[OP_BRA] = count_jump;
        h[OP_BRA_IF] = h[OP_BRA_UNLESS] = count_branch;
        h[OP_SKIP_IF] = h[OP_SKIP_UNLESS] = count_skip;
        h[OP_BRX] = count_switch;
        h[OP_VOTE] = h[OP_SHFL] = h[OP_ACTIVEMASK] = count_meeting;
        h[LANE_MEET] = count_meet;
        l->lane_handlers[partial] = h;
    }
    return true;
}
