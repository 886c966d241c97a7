/* fold.c - forwards values that never change: a register that is written once, before any label, by a plain copy of a
 * launch constant (ld.param, %ntid, cvta of a parameter) becomes another name of the constant's slot, and the copy goes
 * away. nvcc writes all its kernels this way, so that most of a short kernel's prologue costs nothing. */
#include <stdlib.h>
#include <string.h>
#include "ptx/lower.h"

struct fold {
    struct code *k;
    uint32_t *defs;  /* how many instructions write the slot */
    uint32_t *alias; /* what the slot stands for, itself at first */
    bool *fixed;     /* holds one value from the frame's start: a constant or a fill */
};

static void count_defs(struct fold *f)
{
    const struct code *k = f->k;
    for (uint32_t i = 0; i < k->count; i++) {
        const struct insn *in = &k->insns[i];
        const struct microop_info *info = &microop_info[in->op];
        const uint8_t uses[4] = {info->d, info->a, info->b, info->c};
        const uint32_t slots[4] = {in->d, in->a, in->b, in->c};
        for (int j = 0; j < 4; j++)
            if (uses[j] == USE_WRITE || uses[j] == USE_BOTH)
                f->defs[slots[j]]++;
        /* Extra operands: who writes which is not told apart; two writes mean "never forward". */
        if (info->extra != USE_NONE && info->extra != USE_READ) {
            uint32_t first =
                in->op == OP_LDV || in->op == OP_MATRIX || in->op == OP_TEXTURE ? in->b : (uint32_t)in->imm;
            uint32_t n = in->op == OP_LDV                              ? (in->mod >> MOD_VECTOR_SHIFT & 0xf)
                         : in->op == OP_MATRIX || in->op == OP_TEXTURE ? in->d
                         : in->op == OP_SHFL                           ? 2
                                                                       : 1;
            for (uint32_t j = 0; j < n; j++)
                f->defs[k->extra[first + j]] += 2;
        }
    }
    for (uint32_t c = 0; c < k->call_count; c++)
        for (uint32_t i = 0; i < k->calls[c].return_count; i++)
            if (k->calls[c].returns[i].slot)
                f->defs[k->calls[c].returns[i].at] += 2;
    for (uint32_t i = 0; i < k->param_count; i++)
        if (k->params[i].slot)
            f->defs[k->params[i].at] += 2;
    for (uint32_t i = 0; i < k->return_count; i++)
        if (k->returns[i].slot)
            f->defs[k->returns[i].at] += 2;
}

static uint32_t first_target(const struct code *k)
{
    uint32_t first = k->count;
    for (uint32_t i = 0; i < k->count; i++) {
        uint16_t op = k->insns[i].op;
        if ((op == OP_BRA || op == OP_BRA_IF || op == OP_BRA_UNLESS || op == OP_SKIP_IF || op == OP_SKIP_UNLESS) &&
            k->insns[i].imm < first)
            first = (uint32_t)k->insns[i].imm;
        /* What follows a branch or a guard is no longer executed by everybody. */
        if (op >= OP_BRA && op <= OP_BRX && i < first)
            first = i;
    }
    for (uint32_t t = 0; t < k->table_count; t++)
        for (uint32_t i = 0; i < k->tables[t].count; i++)
            if (k->tables[t].targets[i] < first)
                first = k->tables[t].targets[i];
    return first;
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
    f.alias = reader_alloc(l->reader, slots, sizeof *f.alias);
    f.fixed = reader_alloc(l->reader, slots, sizeof *f.fixed);
    bool *drop = reader_alloc(l->reader, k->count, sizeof *drop);
    for (uint32_t i = 0; i < k->slot_count; i++)
        f.alias[i] = i;
    for (uint32_t i = 0; i < k->fill_count; i++)
        f.fixed[k->fills[i].slot] = true;
    for (size_t i = 0; i < l->constants.capacity; i++)
        if (l->constants.slots[i].used)
            f.fixed[l->constants.slots[i].value] = true;
    count_defs(&f);
    uint32_t end = first_target(k);
    for (uint32_t i = 0; i < end && i < k->count; i++) {
        const struct insn *in = &k->insns[i];
        if (in->op != OP_MOV || f.defs[in->d] != 1 || f.fixed[in->d])
            continue;
        uint32_t from = f.alias[in->a];
        if (!f.fixed[from])
            continue;
        f.alias[in->d] = from;
        drop[i] = true;
    }
    rename_slots(&f);
    compact(l, drop);
}
