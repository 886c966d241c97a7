/* variant.c - code rewritten so that what PTX leaves open is done otherwise: approximate operations, contraction,
 * undefined results. Instructions are replaced one by one, so that nothing moves. */
#include <stdlib.h>
#include <string.h>
#include "ptx/arith.h"
#include "ptx/lanes.h"
#include "ptx/variant.h"

uint64_t variant_choice(uint64_t variant, uint64_t which, uint64_t choices)
{
    return variant ? open_hash(variant, which * UINT64_C(0x9e3779b97f4a7c15)) % choices : 0;
}

/* ---- operations with another meaning ---- */

/* `seed_at`: the operand that becomes the seed's slot, 0 when it needs none. `mod` replaces the instruction's, unless
 * it is KEEP. */
enum { KEEP = 0xffff, BOUNDED_ONLY = 1 /* where no rounding is given: .approx, .full */, NAN_CHOICE = 2 };
static const struct {
    uint16_t from, to;
    char seed_at;
    uint16_t mod;
    unsigned when;
} replacements[] = {
    {OP_EX2_F32, OP_OPEN_APPROX_F32, 'b', OPEN_EX2, 0},
    {OP_LG2_F32, OP_OPEN_APPROX_F32, 'b', OPEN_LG2, 0},
    {OP_SIN_F32, OP_OPEN_APPROX_F32, 'b', OPEN_SIN, 0},
    {OP_COS_F32, OP_OPEN_APPROX_F32, 'b', OPEN_COS, 0},
    {OP_TANH_F32, OP_OPEN_APPROX_F32, 'b', OPEN_TANH, 0},
    {OP_RSQRT_F32, OP_OPEN_APPROX_F32, 'b', OPEN_RSQRT, 0},
    {OP_RCP_F32, OP_OPEN_APPROX_F32, 'b', OPEN_RCP, BOUNDED_ONLY},
    {OP_SQRT_F32, OP_OPEN_APPROX_F32, 'b', OPEN_SQRT, BOUNDED_ONLY},
    {OP_DIV_F32, OP_OPEN_DIV_F32, 'c', OPEN_FULL_RANGE, BOUNDED_ONLY},
    {OP_DIV_APPROX_F32, OP_OPEN_DIV_F32, 'c', 0, 0},
    {OP_EX2_H, OP_OPEN_APPROX_H, 'b', KEEP, 0},
    {OP_EX2_HX2, OP_OPEN_APPROX_HX2, 'b', KEEP, 0},
    {OP_TANH_H, OP_OPEN_APPROX_H, 'b', KEEP, 0},
    {OP_TANH_HX2, OP_OPEN_APPROX_HX2, 'b', KEEP, 0},
    {OP_RCP_APPROX_F64, OP_OPEN_RCP_F64, 'b', KEEP, 0},
    {OP_RSQRT_APPROX_F64, OP_OPEN_RSQRT_F64, 'b', KEEP, 0},
    {OP_F32_TO_TF32, OP_OPEN_TF32, 'b', KEEP, 0},
    {OP_ADD_F64, OP_OPEN_ADD_F64, 0, KEEP, NAN_CHOICE},
    {OP_SUB_F64, OP_OPEN_SUB_F64, 0, KEEP, NAN_CHOICE},
    {OP_MUL_F64, OP_OPEN_MUL_F64, 0, KEEP, NAN_CHOICE},
    {OP_FMA_F64, OP_OPEN_FMA_F64, 0, KEEP, NAN_CHOICE},
    {OP_DIV_F64, OP_OPEN_DIV_F64, 0, KEEP, NAN_CHOICE},
    {OP_DIV_U16, OP_OPEN_DIV_U16, 'c', KEEP, 0},
    {OP_DIV_S16, OP_OPEN_DIV_S16, 'c', KEEP, 0},
    {OP_DIV_U32, OP_OPEN_DIV_U32, 'c', KEEP, 0},
    {OP_DIV_S32, OP_OPEN_DIV_S32, 'c', KEEP, 0},
    {OP_DIV_U64, OP_OPEN_DIV_U64, 'c', KEEP, 0},
    {OP_DIV_S64, OP_OPEN_DIV_S64, 'c', KEEP, 0},
    {OP_REM_U16, OP_OPEN_REM_U16, 'c', KEEP, 0},
    {OP_REM_S16, OP_OPEN_REM_S16, 'c', KEEP, 0},
    {OP_REM_U32, OP_OPEN_REM_U32, 'c', KEEP, 0},
    {OP_REM_S32, OP_OPEN_REM_S32, 'c', KEEP, 0},
    {OP_REM_U64, OP_OPEN_REM_U64, 'c', KEEP, 0},
    {OP_REM_S64, OP_OPEN_REM_S64, 'c', KEEP, 0},
    {OP_MUL24_LO_U32, OP_OPEN_MUL24_U32, 'c', 0, 0},
    {OP_MUL24_HI_U32, OP_OPEN_MUL24_U32, 'c', OPEN_HIGH, 0},
    {OP_MUL24_LO_S32, OP_OPEN_MUL24_S32, 'c', 0, 0},
    {OP_MUL24_HI_S32, OP_OPEN_MUL24_S32, 'c', OPEN_HIGH, 0},
};
enum { REPLACEMENTS = sizeof replacements / sizeof *replacements };

static void replace(struct insn *in, uint32_t seed_slot, bool other_nan)
{
    for (size_t i = 0; i < REPLACEMENTS; i++) {
        if (in->op != replacements[i].from ||
            (replacements[i].when == BOUNDED_ONLY && !(in->mod & FLOAT_APPROXIMATE)) ||
            (replacements[i].when == NAN_CHOICE && !other_nan))
            continue;
        bool tanh = in->op == OP_TANH_H || in->op == OP_TANH_HX2;
        in->op = replacements[i].to;
        in->mod = (uint16_t)(replacements[i].mod == KEEP ? in->mod | (tanh ? OPEN_HALF_TANH : 0) : replacements[i].mod);
        if (replacements[i].seed_at == 'b')
            in->b = seed_slot;
        else if (replacements[i].seed_at == 'c')
            in->c = seed_slot;
        return;
    }
}

/* ---- contraction: a sum of a product, neither with a rounding of its own, may be one fma ---- */

static const struct contraction {
    uint16_t multiply, add, subtract, fma, fms, fnma; /* a*b+c, a*b-c, c-a*b */
} contractions[] = {
    {OP_MUL_F32, OP_ADD_F32, OP_SUB_F32, OP_FMA_F32, OP_OPEN_FMS_F32, OP_OPEN_FNMA_F32},
    {OP_MUL_FTZ_F32, OP_ADD_FTZ_F32, OP_SUB_FTZ_F32, OP_FMA_FTZ_F32, OP_OPEN_FMS_FTZ_F32, OP_OPEN_FNMA_FTZ_F32},
    {OP_MUL_F64, OP_ADD_F64, OP_SUB_F64, OP_FMA_F64, OP_OPEN_FMS_F64, OP_OPEN_FNMA_F64},
};

/* A product of this basic block whose factors are still in their slots. */
struct factors {
    const struct contraction *kind;
    uint32_t d, a, b;
};
struct products {
    struct factors list[16];
    unsigned count;
};

static void forget(struct products *p, uint32_t slot)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < p->count; i++)
        if (p->list[i].d != slot && p->list[i].a != slot && p->list[i].b != slot)
            p->list[kept++] = p->list[i];
    p->count = kept;
}

static void remember(struct products *p, const struct insn *in)
{
    if (in->mod != ROUND_NONE || in->d == in->a || in->d == in->b || p->count == sizeof p->list / sizeof *p->list)
        return;
    for (size_t k = 0; k < sizeof contractions / sizeof *contractions; k++)
        if (in->op == contractions[k].multiply)
            p->list[p->count++] = (struct factors){&contractions[k], in->d, in->a, in->b};
}

static void contract(const struct products *p, struct insn *in)
{
    for (unsigned i = 0; i < p->count && in->mod == ROUND_NONE; i++) {
        const struct factors *f = &p->list[i];
        bool adds = in->op == f->kind->add, first = in->a == f->d, second = in->b == f->d;
        if ((!adds && in->op != f->kind->subtract) || first == second)
            continue;
        uint32_t other = first ? in->b : in->a;
        in->op = adds ? f->kind->fma : first ? f->kind->fms : f->kind->fnma;
        in->a = f->a;
        in->b = f->b;
        in->c = other;
        return;
    }
}

static bool is_branch(unsigned op)
{
    return op == OP_BRA || op == OP_BRA_IF || op == OP_BRA_UNLESS || op == OP_SKIP_IF || op == OP_SKIP_UNLESS;
}

static void find_targets(const struct code *k, uint8_t *target)
{
    for (uint32_t i = 0; i < k->count; i++)
        if (is_branch(k->insns[i].op) && k->insns[i].imm < k->count)
            target[k->insns[i].imm] = 1;
    for (uint32_t t = 0; t < k->table_count; t++)
        for (uint32_t i = 0; i < k->tables[t].count; i++)
            if (k->tables[t].targets[i] < k->count)
                target[k->tables[t].targets[i]] = 1;
}

static bool is_plain(unsigned op)
{
    switch (op) {
#define OTHER(id, d, a, b, c, extra) case OP_##id:
#include "ptx/microops.def"
        return false;
    default:
        return true;
    }
}

static void rewrite(struct code *k, uint32_t seed_slot, uint64_t variant, uint64_t function, const uint8_t *target)
{
    struct products live = {.count = 0};
    bool other_nan = variant_choice(variant, VARIANT_NAN, 2);
    for (uint32_t i = 0; i < k->count; i++) {
        struct insn *in = &k->insns[i];
        if (target[i] || !is_plain(in->op))
            live.count = 0;
        if (variant_choice(variant, VARIANT_SITE + (function << 32 | i), 2))
            contract(&live, in);
        struct insn plain = *in;
        replace(in, seed_slot, other_nan);
        if (microop_info[plain.op].d == USE_WRITE || microop_info[plain.op].d == USE_BOTH)
            forget(&live, plain.d);
        remember(&live, &plain);
    }
}

/* ---- the copy ---- */

static void code_free(struct code *k)
{
    if (k) {
        lane_code_free(atomic_load(&k->lanes));
        free(k->insns);
        free(k->frame);
        free(k);
    }
}

/* The function with code and frame of its own, and one slot more, the seed. */
static struct code *copy_code(const struct code *from, uint64_t variant, uint64_t function)
{
    struct code *k = malloc(sizeof *k);
    uint8_t *target = calloc(from->count + 1u, 1);
    if (!k || !target)
        goto fail;
    *k = *from;
    atomic_init(&k->lanes, NULL); /* decoded from its own instructions */
    k->insns = calloc(from->count + 1u, sizeof *k->insns);
    k->frame = calloc(from->slot_count + 1u, sizeof *k->frame);
    if (!k->insns || !k->frame) {
        code_free(k);
        k = NULL;
        goto fail;
    }
    if (from->count)
        memcpy(k->insns, from->insns, from->count * sizeof *k->insns);
    if (from->slot_count)
        memcpy(k->frame, from->frame, from->slot_count * sizeof *k->frame);
    k->frame[from->slot_count] = (union slot){.u64 = variant};
    k->slot_count = from->slot_count + 1;
    find_targets(from, target);
    rewrite(k, from->slot_count, variant, function, target);
    free(target);
    return k;
fail:
    free(k);
    free(target);
    return NULL;
}

struct ptx_module *variant_module(const struct ptx_module *module, const struct code **entry, uint64_t variant)
{
    struct ptx_module *copy = malloc(sizeof *copy);
    struct code **code = calloc(module->code_count + 1u, sizeof(struct code *));
    uint8_t *seen = calloc(module->code_count + 1u, 1);
    uint32_t start = 0;
    while (start < module->code_count && module->code[start] != *entry)
        start++;
    if (!copy || !code || !seen || mark_reachable(module, start, seen) != STATUS_OK) {
        free(copy);
        free(code);
        free(seen);
        return NULL;
    }
    *copy = *module;
    copy->code = code;
    memcpy(code, module->code, module->code_count * sizeof(struct code *));
    bool ok = true;
    for (uint32_t i = 0; i < module->code_count && ok; i++) {
        if (!seen[i] || !module->code[i]->defined)
            continue;
        struct code *k = copy_code(module->code[i], variant, i);
        if (k)
            code[i] = k;
        ok = k != NULL;
    }
    free(seen);
    if (!ok) {
        variant_module_free(copy, module);
        return NULL;
    }
    *entry = code[start];
    return copy;
}

void variant_module_free(struct ptx_module *copy, const struct ptx_module *module)
{
    if (!copy)
        return;
    for (uint32_t i = 0; i < module->code_count; i++)
        if (copy->code[i] != module->code[i])
            code_free(copy->code[i]);
    free(copy->code);
    free(copy);
}
