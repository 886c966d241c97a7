/* fold.c - forwards copies: a register that is written once, by a plain copy, becomes another name of what it is a copy
 * of, and the copy goes away. That is a launch constant (ld.param, %ntid, cvta of a parameter, a number), or a register
 * that is written once, too, in the same stretch of code without jumps: nvcc turns floats into bits and back around
 * every shuffle.
 *
 * The copy must be executed before every use: a register that is read before it is written is zero. */
#include <stdlib.h>
#include <string.h>
#include "ptx/lower.h"
#include "ptx/operands.h"

enum { AT_ONCE = 64, NEVER = UINT32_MAX };

struct fold {
    struct code *k;
    uint32_t *defs;            /* how many instructions write the slot */
    uint32_t *def_at;          /* the last of them */
    uint32_t *alias;           /* what the slot stands for, itself at first */
    bool *fixed;               /* holds one value from the frame's start: a constant or a fill */
    bool *target;              /* by instruction: jumps lead here */
    uint32_t *stretch;         /* by instruction: number of the stretch without jumps that it lies in */
    uint32_t *reads, *read_at; /* all slots read; by instruction, its first one among them */
    bool *drop;
    /* The copies in hand, at most AT_ONCE: where they are; by slot written, which; and by instruction, which have been
     * executed on every way that leads there. */
    uint32_t copies[AT_ONCE], copy_count, *number;
    uint64_t *done;
};

static bool jumps(uint16_t op)
{
    return op == OP_BRA || op == OP_BRA_IF || op == OP_BRA_UNLESS || op == OP_SKIP_IF || op == OP_SKIP_UNLESS;
}

/* False: some instruction's slots are not known. */
static bool look_at_slots(struct lower *l, struct fold *f)
{
    const struct code *k = f->k;
    struct operands *o = reader_alloc(l->reader, 1, sizeof *o);
    uint32_t total = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        if (!insn_operands(l->module, k, &k->insns[i], o))
            return false;
        f->read_at[i] = total;
        total += o->read_count;
        for (uint32_t j = 0; j < o->write_count; j++) {
            f->defs[o->writes[j]]++;
            f->def_at[o->writes[j]] = i;
        }
    }
    f->read_at[k->count] = total;
    f->reads = reader_alloc(l->reader, total ? total : 1, sizeof *f->reads);
    for (uint32_t i = 0; i < k->count; i++) {
        (void)insn_operands(l->module, k, &k->insns[i], o);
        memcpy(f->reads + f->read_at[i], o->reads, o->read_count * sizeof *f->reads);
    }
    /* Those of a function are written and read by its callers. */
    for (uint32_t i = 0; i < k->param_count; i++)
        if (k->params[i].slot)
            f->defs[k->params[i].at] += 2;
    for (uint32_t i = 0; i < k->return_count; i++)
        if (k->returns[i].slot)
            f->defs[k->returns[i].at] += 2;
    return true;
}

static void look_at_jumps(struct fold *f)
{
    const struct code *k = f->k;
    for (uint32_t i = 0; i < k->count; i++)
        if (jumps(k->insns[i].op))
            f->target[k->insns[i].imm] = true;
    for (uint32_t t = 0; t < k->table_count; t++)
        for (uint32_t i = 0; i < k->tables[t].count; i++)
            f->target[k->tables[t].targets[i]] = true;
    for (uint32_t i = 1; i < k->count; i++) {
        uint16_t before = k->insns[i - 1].op;
        bool ends = jumps(before) || before == OP_BRX || before == OP_EXIT || before == OP_RET;
        f->stretch[i] = f->stretch[i - 1] + (ends || f->target[i]);
    }
}

/* A copy that may be forwarded if all its uses come after it. */
static bool is_candidate(const struct fold *f, uint32_t pc)
{
    const struct insn *in = &f->k->insns[pc];
    if (in->op != OP_MOV || f->defs[in->d] != 1 || f->fixed[in->d])
        return false;
    uint32_t from = f->def_at[in->a];
    return f->fixed[in->a] ||
           (f->defs[in->a] == 1 && from < pc && (f->k->insns[from].op == OP_MOV || f->stretch[from] == f->stretch[pc]));
}

static bool arrive(struct fold *f, uint32_t pc, uint64_t with)
{
    uint64_t before = f->done[pc];
    f->done[pc] &= with;
    return f->done[pc] != before;
}

/* What has been executed on every way: all of it at first, and less as ways are found. */
static void follow(struct fold *f)
{
    const struct code *k = f->k;
    memset(f->done, 0xff, (k->count + 1u) * sizeof *f->done);
    f->done[0] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0, next = 0; i < k->count; i++) {
            const struct insn *in = &k->insns[i];
            uint64_t with = f->done[i];
            if (next < f->copy_count && f->copies[next] == i)
                with |= UINT64_C(1) << next++;
            if (jumps(in->op) && arrive(f, (uint32_t)in->imm, with))
                changed |= in->imm <= i;
            for (uint32_t t = 0; in->op == OP_BRX && t < k->tables[in->aux].count; t++)
                if (arrive(f, k->tables[in->aux].targets[t], with))
                    changed |= k->tables[in->aux].targets[t] <= i;
            if (in->op != OP_BRA && in->op != OP_BRX && in->op != OP_EXIT && in->op != OP_RET)
                (void)arrive(f, i + 1, with);
        }
    }
}

/* Of the copies in hand, those that have been executed wherever their register is read. */
static uint64_t before_uses(struct fold *f)
{
    const struct code *k = f->k;
    uint64_t good = UINT64_MAX;
    for (uint32_t i = 0; i < f->copy_count; i++)
        f->number[k->insns[f->copies[i]].d] = i;
    for (uint32_t i = 0; i < k->count; i++)
        for (uint32_t j = f->read_at[i]; j < f->read_at[i + 1]; j++) {
            uint32_t n = f->number[f->reads[j]];
            if (n != NEVER && !(f->done[i] >> n & 1))
                good &= ~(UINT64_C(1) << n);
        }
    for (uint32_t i = 0; i < f->copy_count; i++)
        f->number[k->insns[f->copies[i]].d] = NEVER;
    return good;
}

/* Whether the copy at `pc` holds what `from` does whenever it is read. In one stretch, whoever gives `from` a value
 * makes the copy, too; a read in between would come before the copy, the first time. */
static bool holds(const struct fold *f, uint32_t from, uint32_t pc)
{
    return f->fixed[from] ||
           (f->defs[from] == 1 && f->def_at[from] < pc && f->stretch[f->def_at[from]] == f->stretch[pc]);
}

/* A copy's PTX instruction is counted with the next micro-operation: it stays where jumps lead to that one. */
static void fold_copies(struct fold *f)
{
    follow(f);
    uint64_t good = before_uses(f);
    for (uint32_t i = 0; i < f->copy_count; i++) {
        uint32_t pc = f->copies[i];
        const struct insn *in = &f->k->insns[pc];
        if (!(good >> i & 1) || !holds(f, f->alias[in->a], pc))
            continue;
        f->alias[in->d] = f->alias[in->a];
        f->drop[pc] = !f->target[pc + 1];
    }
    f->copy_count = 0;
}

static void rename_slots(struct fold *f)
{
    struct code *k = f->k;
    for (uint32_t i = 0; i < k->count; i++) {
        struct insn *in = &k->insns[i];
        const struct microop_info *info = &microop_info[in->op];
        if (info->d == USE_READ)
            in->d = f->alias[in->d];
        if (info->a == USE_READ)
            in->a = f->alias[in->a];
        if (info->b == USE_READ)
            in->b = f->alias[in->b];
        if (info->c == USE_READ)
            in->c = f->alias[in->c];
    }
    for (uint32_t i = 0; i < k->extra_count; i++)
        k->extra[i] = f->alias[k->extra[i]];
    for (uint32_t c = 0; c < k->call_count; c++)
        for (uint32_t i = 0; i < k->calls[c].arg_count; i++)
            if (k->calls[c].args[i].slot)
                k->calls[c].args[i].at = f->alias[k->calls[c].args[i].at];
}

/* Removes dropped instructions, moves targets, and makes the running count of PTX instructions. */
static void compact(struct lower *l, const bool *drop)
{
    struct code *k = l->code;
    uint32_t *moved = reader_alloc(l->reader, k->count + 1, sizeof *moved);
    k->weight = reader_alloc(l->reader, k->count + 1, sizeof *k->weight);
    uint32_t to = 0, total = 0;
    for (uint32_t i = 0; i < k->count; i++) {
        moved[i] = to;
        total += l->weights[i];
        if (drop[i])
            continue;
        k->insns[to] = k->insns[i];
        k->lines[to] = k->lines[i];
        k->weight[++to] = total;
    }
    moved[k->count] = to;
    for (uint32_t i = 0; i <= k->function->statement_count; i++)
        k->statement_pc[i] = moved[k->statement_pc[i]];
    k->count = to;
    for (uint32_t i = 0; i < to; i++) {
        struct insn *in = &k->insns[i];
        if (in->op == OP_BRA || in->op == OP_BRA_IF || in->op == OP_BRA_UNLESS || in->op == OP_SKIP_IF ||
            in->op == OP_SKIP_UNLESS)
            in->imm = moved[in->imm];
    }
    for (uint32_t t = 0; t < k->table_count; t++)
        for (uint32_t i = 0; i < k->tables[t].count; i++)
            k->tables[t].targets[i] = moved[k->tables[t].targets[i]];
}

void fold_code(struct lower *l)
{
    struct code *k = l->code;
    uint32_t slots = k->slot_count ? k->slot_count : 1;
    struct fold f = {.k = k};
    f.defs = reader_alloc(l->reader, slots, sizeof *f.defs);
    f.def_at = reader_alloc(l->reader, slots, sizeof *f.def_at);
    f.alias = reader_alloc(l->reader, slots, sizeof *f.alias);
    f.number = reader_alloc(l->reader, slots, sizeof *f.number);
    f.fixed = reader_alloc(l->reader, slots, sizeof *f.fixed);
    f.target = reader_alloc(l->reader, k->count + 1, sizeof *f.target);
    f.stretch = reader_alloc(l->reader, k->count + 1, sizeof *f.stretch);
    f.read_at = reader_alloc(l->reader, k->count + 1, sizeof *f.read_at);
    f.drop = reader_alloc(l->reader, k->count, sizeof *f.drop);
    f.done = reader_alloc(l->reader, k->count + 1, sizeof *f.done);
    for (uint32_t i = 0; i < k->slot_count; i++) {
        f.alias[i] = i;
        f.number[i] = NEVER;
    }
    for (uint32_t i = 0; i < k->fill_count; i++)
        f.fixed[k->fills[i].slot] = true;
    for (size_t i = 0; i < l->constants.capacity; i++)
        if (l->constants.slots[i].used)
            f.fixed[l->constants.slots[i].value] = true;
    look_at_jumps(&f);
    bool known = look_at_slots(l, &f);
    for (uint32_t i = 0; known && i < k->count; i++) {
        if (is_candidate(&f, i))
            f.copies[f.copy_count++] = i;
        if (f.copy_count == AT_ONCE || (f.copy_count && i + 1 == k->count))
            fold_copies(&f);
    }
    rename_slots(&f);
    compact(l, f.drop);
}
