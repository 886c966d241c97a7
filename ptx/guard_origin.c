/* guard_origin.c - before a guarded run: what each access needs to be watched for.
 *
 * Checked mode keeps the origin of every value beside it. Here the same rules are followed once, over the code: a slot
 * has the ranges that its origin may be, whatever way the program goes. Most addresses can come from one range only; an
 * access that stays inside it is right whether its origin really is that range, mixed, or none. 8 bytes that are loaded
 * and become part of an address are taken for a number, and looked at when they are loaded. Undefined bytes are never
 * loaded in a guarded run (that is a doubt), so nothing has to be known of them in registers.
 *
 * Loads from a range that is only read and wholly defined then need nothing at all: the plain handler's own comparison
 * with the range in its cache is the whole check. */
#include <stdlib.h>
#include <string.h>
#include "ptx/guard.h"
#include "ptx/matrix.h"

enum rule { RULE_NONE, RULE_MOVE, RULE_ADDR2, RULE_ADDR3, RULE_SUBT, RULE_SEL };

/* How a micro-operation passes the origins of its operands on; by class of microops.def. */
#define RULE1_USE  RULE_NONE
#define RULE1_MOVE RULE_MOVE
#define RULE1_PART RULE_NONE
#define RULE2_USE  RULE_NONE
#define RULE2_PART RULE_NONE
#define RULE2_ADDR RULE_ADDR2
#define RULE2_SUBT RULE_SUBT
#define RULE3_USE  RULE_NONE
#define RULE3_PART RULE_NONE
#define RULE3_ADDR RULE_ADDR3
#define RULE3_SEL  RULE_SEL
static const uint8_t rules[OP_COUNT] = {
#define ALU1(id, shadow, D, A, expression)       [OP_##id] = RULE1_##shadow,
#define ALU2(id, shadow, D, A, B, expression)    [OP_##id] = RULE2_##shadow,
#define ALU3(id, shadow, D, A, B, C, expression) [OP_##id] = RULE3_##shadow,
#include "ptx/microops.def"
    [OP_SHFL] = RULE_MOVE,
};

struct plain_access {
    bool load, store;
    uint8_t space, bytes;
};
#define BYTES_U8  1
#define BYTES_S8  1
#define BYTES_U16 2
#define BYTES_S16 2
#define BYTES_B32 4
#define BYTES_S32 4
#define BYTES_B64 8
static const struct plain_access plain_accesses[OP_COUNT] = {
#define LOAD(id, space, type)  [OP_##id] = {true, false, MEM_##space, BYTES_##type},
#define STORE(id, space, type) [OP_##id] = {false, true, MEM_##space, BYTES_##type},
#include "ptx/microops.def"
};

bool guard_points(struct guard *g, uint64_t value)
{
    uint32_t number;
    if (value < g->lowest || value >= g->highest)
        if (!g->launch->memory->find || value < 4096)
            return false;
    return range_find(g->launch, value, &number) != NULL && number != 0;
}

/* As origin_of() has it; what is mixed there is none here: neither is judged by origin. */
static uint32_t origin(struct guard *g, uint64_t value)
{
    uint32_t number, before;
    if (!guard_points(g, value))
        return GUARD_ANY;
    const struct ptx_range *r = range_find(g->launch, value, &number);
    return value == r->address && value && range_find(g->launch, value - 1, &before) ? GUARD_ANY : number;
}

/* ---- which slots become addresses ---- */

static bool want(bool *wanted, uint32_t slot)
{
    bool fresh = !wanted[slot];
    wanted[slot] = true;
    return fresh;
}

static bool want_operands(bool *wanted, const struct insn *in)
{
    if (!wanted[in->d])
        return false;
    switch ((enum rule)rules[in->op]) {
    case RULE_MOVE:
    case RULE_SUBT:
        return want(wanted, in->a);
    case RULE_ADDR3:
        return want(wanted, in->c);
    case RULE_ADDR2:
    case RULE_SEL:
        return want(wanted, in->a) | want(wanted, in->b);
    default:
        return false;
    }
}

/* ---- which ranges they may come from ---- */

static bool merge(uint32_t *into, uint32_t from)
{
    uint32_t before = *into;
    if (from != GUARD_ANY)
        *into = *into == GUARD_ANY || *into == from ? from : GUARD_MANY;
    return *into != before;
}

static bool pass(uint32_t *from, const struct insn *in)
{
    switch ((enum rule)rules[in->op]) {
    case RULE_MOVE:
    case RULE_SUBT:
        return merge(&from[in->d], from[in->a]);
    case RULE_ADDR3:
        return merge(&from[in->d], from[in->c]);
    case RULE_ADDR2:
    case RULE_SEL:
        return merge(&from[in->d], from[in->a]) | merge(&from[in->d], from[in->b]);
    default:
        return false;
    }
}

static void find_ranges(struct guard *g, uint32_t *from, bool *wanted)
{
    const struct launch *l = g->launch;
    const struct code *k = l->entry;
    for (uint32_t i = 0; i < k->fill_count; i++) {
        const struct fill *f = &k->fills[i];
        if ((f->kind == FILL_PARAM && f->bytes == 8) || f->kind == FILL_VARIABLE)
            from[f->slot] = origin(g, l->templates[k->function->index][f->slot].u64);
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t pc = 0; pc < k->count; pc++)
            changed |= pass(from, &k->insns[pc]);
        for (uint32_t pc = k->count; pc-- > 0;)
            changed |= want_operands(wanted, &k->insns[pc]);
    }
}

/* ---- what an access is ---- */

static const uint8_t element_sizes[ELEMENT_COUNT] = {1, 1, 2, 2, 4, 4, 8};

static bool describe(const struct insn *in, struct guard_access *a)
{
    const struct plain_access *p = &plain_accesses[in->op];
    *a =
        (struct guard_access){.load = p->load, .store = p->store, .space = p->space, .bytes = p->bytes, .imm = in->imm};
    if (p->load || p->store)
        return true;
    switch (in->op) {
    case OP_LDV:
    case OP_STV:
        a->load = in->op == OP_LDV;
        a->store = !a->load;
        a->space = in->mod >> MOD_SPACE_SHIFT & 0xf;
        a->bytes = (uint8_t)((in->mod >> MOD_VECTOR_SHIFT & 0xf) * element_sizes[in->mod & MOD_ELEMENT]);
        a->ordered = in->mod & MOD_STRONG;
        return true;
    case OP_ATOM:
        a->load = a->store = a->ordered = true;
        a->exchange = (in->mod & 0xf) == ATOM_EXCH;
        a->space = in->mod >> 8 & 0xf;
        a->bytes = (uint8_t)atom_bytes(in->mod);
        return true;
    default:
        return false;
    }
}

static bool is_global(const struct guard_access *a)
{
    return a->space == MEM_GLOBAL || a->space == MEM_GENERIC || a->space == MEM_CONST;
}

/* What only the checked loop knows how to judge. */
static bool is_refused(const struct guard *g, const struct insn *in)
{
    switch (in->op) {
    case OP_CP_ASYNC:
    case OP_TEXTURE:
    case OP_ATOM128:
    case OP_MBARRIER:
    case OP_CP_BULK:
    case OP_ALLOCA:
    case OP_STACK_SAVE:
    case OP_STACK_RESTORE:
    case OP_BAR_ARRIVE:
    case OP_CALL: /* it prints, stops, starts kernels, gives out memory */
        return true;
    case OP_MATRIX:
        return g->launch->module->matrices[in->mod].kind == MATRIX_LOAD ||
               g->launch->module->matrices[in->mod].kind == MATRIX_STORE;
    default:
        return false;
    }
}

static bool loads_pointer(const struct code *k, const struct insn *in, const bool *wanted)
{
    if (in->op == OP_ATOM)
        return atom_bytes(in->mod) == 8 && wanted[in->d];
    if (in->op != OP_LDV)
        return plain_accesses[in->op].load && plain_accesses[in->op].bytes == 8 && wanted[in->d];
    bool any = false;
    for (uint32_t i = 0; (in->mod & MOD_ELEMENT) == ELEMENT_B64 && i < (in->mod >> MOD_VECTOR_SHIFT & 0xfu); i++)
        any |= wanted[k->extra[in->b + i]];
    return any;
}

static void smallest(uint8_t *shift, uint32_t bytes)
{
    uint8_t log = bytes >= 4 ? 2 : bytes == 2 ? 1 : 0;
    *shift = log < *shift ? log : *shift;
}

static void describe_all(struct guard *g, const uint32_t *from, const bool *wanted)
{
    const struct code *k = g->launch->entry;
    const struct lane_code *lc = &g->code;
    g->unit_shift = g->shared_shift = 2;
    for (uint32_t pc = 0; pc < k->count; pc++) {
        const struct insn *in = &k->insns[pc];
        struct guard_access *a = &g->accesses[pc];
        if (!describe(in, a)) {
            a->refused = is_refused(g, in);
            continue;
        }
        const bool by_handler = g->code.insns[pc].op != LANE_STEP;
        a->unit = by_handler ? g->code.insns[pc].a : lc->unit[in->a];
        a->class_ = lc->unit_class[a->unit];
        a->from = from[in->a];
        const bool pointer = a->load && loads_pointer(k, in, wanted);
        a->pointer = pointer && !a->store;
        a->fetches = pointer && a->store;
        const uint32_t element = in->op == OP_LDV || in->op == OP_STV ? element_sizes[in->mod & MOD_ELEMENT] : a->bytes;
        if (is_global(a) && !a->ordered)
            smallest(&g->unit_shift, element);
        if (a->space == MEM_SHARED || a->space == MEM_GENERIC)
            smallest(&g->shared_shift, element);
        if (a->store && !a->ordered && is_global(a) && a->from != GUARD_ANY && a->from != GUARD_MANY)
            g->stored[a->from] = true;
    }
}

/* Loads that the plain handler judges well enough. */
static bool needs_nothing(struct guard *g, const struct guard_access *a)
{
    if (a->space == MEM_PARAM)
        return !a->pointer;
    if (!a->load || a->store || a->pointer || a->space != MEM_GLOBAL || a->from == GUARD_ANY || a->from == GUARD_MANY ||
        g->stored[a->from])
        return false;
    struct guard_range *r = &g->ranges[a->from];
    r->range = range_by_number(g->launch, a->from);
    return guard_is_whole(r);
}

static bool is_meeting(unsigned op)
{
    return op == OP_BAR_SYNC || op == OP_BAR_RED || op == OP_WARP_SYNC || op == OP_VOTE || op == OP_SHFL ||
           op == LANE_MEET;
}

bool guard_analyse(struct guard *g)
{
    const struct code *k = g->launch->entry;
    uint32_t *from = calloc(k->slot_count + 1u, sizeof *from);
    bool *wanted = calloc(k->slot_count + 1u, sizeof *wanted), ok = from && wanted;
    for (uint32_t pc = 0; ok && pc < k->count; pc++) {
        struct guard_access a;
        if (describe(&k->insns[pc], &a) && is_global(&a))
            wanted[k->insns[pc].a] = true;
    }
    if (ok) {
        find_ranges(g, from, wanted);
        describe_all(g, from, wanted);
    } else {
        guard_doubt(g, "no memory", 0);
    }
    for (uint32_t i = 0; ok && i < g->range_total; i++)
        g->ranges[i].stored = g->stored[i];
    for (uint32_t pc = 0; ok && pc < k->count; pc++) {
        struct guard_access *a = &g->accesses[pc];
        struct insn *in = &g->code.insns[pc];
        a->quick =
            a->space == MEM_SHARED && a->bytes == 4 && g->shared_shift == 2 && a->class_ == CLASS_WORD && !a->ordered;
        if (a->load || a->store) {
            if (needs_nothing(g, a))
                g->admitted[in->aux] = a->from;
            else
                in->op = (uint16_t)(in->op + LANE_OP_COUNT);
        } else if (a->refused || is_meeting(in->op)) {
            in->op = (uint16_t)(in->op + LANE_OP_COUNT);
        }
    }
    free(from);
    free(wanted);
    return ok;
}
