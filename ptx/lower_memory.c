/* lower_memory.c - loads, stores, atomics, address conversions, fences. */
#include <string.h>
#include "ptx/lower.h"

static enum element element_of(enum type t)
{
    switch (type_info[t].bits) {
    case 8:
        return t == TYPE_S8 ? ELEMENT_S8 : ELEMENT_U8;
    case 16:
        return t == TYPE_S16 ? ELEMENT_S16 : ELEMENT_U16;
    case 32:
        return t == TYPE_S32 ? ELEMENT_S32 : ELEMENT_B32;
    default:
        return ELEMENT_B64;
    }
}

enum microop load_op(enum mem_space space, enum element element)
{
    static const enum microop first[] = {
        [MEM_GLOBAL] = OP_LD_GLOBAL_U8, [MEM_CONST] = OP_LD_GLOBAL_U8, [MEM_SHARED] = OP_LD_SHARED_U8,
        [MEM_LOCAL] = OP_LD_LOCAL_U8,   [MEM_PARAM] = OP_LD_PARAM_U8,  [MEM_GENERIC] = OP_LD_GENERIC_U8,
    };
    return first[space] + element;
}

static enum microop store_op(enum mem_space space, enum element element)
{
    static const enum microop first[] = {
        [MEM_GLOBAL] = OP_ST_GLOBAL_8,
        [MEM_SHARED] = OP_ST_SHARED_8,
        [MEM_LOCAL] = OP_ST_LOCAL_8,
        [MEM_GENERIC] = OP_ST_GENERIC_8,
    };
    static const uint8_t size[] = {[ELEMENT_U8] = 0,  [ELEMENT_S8] = 0,  [ELEMENT_U16] = 1, [ELEMENT_S16] = 1,
                                   [ELEMENT_B32] = 2, [ELEMENT_S32] = 2, [ELEMENT_B64] = 3};
    return first[space] + size[element];
}

static unsigned order_mod(struct lower *l)
{
    switch (l->m.value[CLASS_SEMANTICS]) {
    case SEM_VOLATILE:
    case SEM_RELAXED:
        return MOD_STRONG;
    case SEM_ACQUIRE:
        return MOD_STRONG | MOD_ACQUIRE;
    case SEM_RELEASE:
        return MOD_STRONG | MOD_RELEASE;
    case SEM_ACQ_REL:
    case SEM_SC:
        return MOD_STRONG | MOD_ACQUIRE | MOD_RELEASE;
    default:
        return 0;
    }
}

static enum space space_of(const struct lower *l)
{
    return has(l, M(SPACE)) ? (enum space)l->m.value[CLASS_SPACE] : SPACE_NONE;
}

static enum type widened(struct lower *l, const struct operand *o, enum type t)
{
    unsigned have = register_bits(l, o), want = type_info[t].bits;
    if (have <= want)
        return t;
    if (type_info[t].kind == 'f') /* ld.f16 into a .b32 register is not PTX */
        return t;
    bool s = type_info[t].kind == 's';
    return have == 16 ? (s ? TYPE_S16 : TYPE_U16) : have == 32 ? (s ? TYPE_S32 : TYPE_U32) : (s ? TYPE_S64 : TYPE_U64);
}

/* Loads write their slot sign-extended to 64 bits; a narrower register wants it cut again. */
static void cut(struct lower *l, enum element e, enum type reg, uint32_t d)
{
    unsigned bits = type_info[reg].bits;
    if ((e == ELEMENT_S8 || e == ELEMENT_S16) && bits < 64)
        emit(l, bits == 32 ? OP_EXT_U32 : OP_EXT_U16, 0, d, d, 0, 0);
}

static void check_order(struct lower *l, bool store)
{
    int order = l->m.value[CLASS_SEMANTICS];
    if (order == SEM_ACQ_REL || order == SEM_SC || order == (store ? SEM_ACQUIRE : SEM_RELEASE))
        lower_refuse(l, "this memory order does not go with it");
}

void number_access(struct lower *l)
{
    l->code->insns[l->code->count - 1].aux = l->module->access_count++;
}

/* A kernel parameter at a fixed place is a launch constant. */
static bool lower_ld_param(struct lower *l, const struct address *a, const struct operand *d, enum type t)
{
    if (a->space != MEM_PARAM || !a->symbol)
        return false;
    uint64_t bytes = type_info[t].bits / 8;
    if (a->offset < 0 || (uint64_t)a->offset + bytes > a->symbol->bytes)
        lower_bad_operand(l, 1, "an offset inside the parameter");
    if (((uint64_t)a->offset + a->symbol->offset) % bytes)
        lower_bad_operand(l, 1, "an aligned offset");
    enum element e = element_of(t);
    bool sign = e == ELEMENT_S8 || e == ELEMENT_S16 || (e == ELEMENT_S32 && type_info[widened(l, d, t)].bits == 64);
    enum type reg = widened(l, d, t);
    uint32_t slot = fill_slot(l, (struct fill){.kind = FILL_PARAM,
                                               .value = (uint32_t)(a->symbol->offset + (uint64_t)a->offset),
                                               .bytes = (uint8_t)bytes,
                                               .sign = sign});
    uint32_t to = destination_operand(l, d, reg);
    emit(l, OP_MOV, 0, to, slot, 0, 0);
    cut(l, e, reg, to);
    return true;
}

static const struct operand *vector_items(struct lower *l, uint32_t i, uint32_t *count)
{
    const struct operand *o = operand_at(l, i);
    *count = (uint32_t)(has(l, M(VECTOR)) ? l->m.value[CLASS_VECTOR] : 1);
    if (!has(l, M(VECTOR)))
        return o;
    if (o->kind != OPERAND_VECTOR || o->item_count != *count)
        lower_bad_operand(l, i, "a vector of as many elements as the instruction says");
    if (type_info[l->type].bits * *count > 256)
        lower_refuse(l, "it moves more than 256 bits");
    return o->items;
}

/* As a vector of one element: those instructions look at the order, which the plain ones need not then. */
static void lower_strong(struct lower *l, enum microop op, unsigned order, enum element e, const struct address *a,
                         uint32_t slot)
{
    unsigned mod = order | 1u << MOD_VECTOR_SHIFT | (unsigned)a->space << MOD_SPACE_SHIFT | e;
    uint32_t first = emit_extra(l, slot);
    emit(l, op, mod, 0, a->base, first, 0)->imm = (uint64_t)a->offset;
}

/* 128-bit registers: as vectors of two. */
static void emit_wide(struct lower *l, enum microop op, const struct address *a, const uint32_t slots[2])
{
    unsigned mod = order_mod(l) | 2u << MOD_VECTOR_SHIFT | (unsigned)a->space << MOD_SPACE_SHIFT | ELEMENT_B64;
    uint32_t first = emit_extra(l, slots[0]);
    emit_extra(l, slots[1]);
    emit(l, op, mod, 0, a->base, first, 0)->imm = (uint64_t)a->offset;
    number_access(l);
}

static void lower_ld_wide(struct lower *l)
{
    uint32_t slots[2];
    if (has(l, M(VECTOR)))
        lower_refuse(l, "it moves more than 256 bits");
    struct address a = lower_address(l, operand_at(l, 1), space_of(l));
    destination_wide(l, operand_at(l, 0), slots);
    emit_wide(l, OP_LDV, &a, slots);
}

static void lower_st_wide(struct lower *l)
{
    uint32_t slots[2];
    if (has(l, M(VECTOR)))
        lower_refuse(l, "it moves more than 256 bits");
    struct address a = lower_address(l, operand_at(l, 0), space_of(l));
    if (a.space == MEM_PARAM || a.space == MEM_CONST)
        lower_bad_operand(l, 0, "a space that can be written");
    source_wide(l, operand_at(l, 1), slots);
    emit_wide(l, OP_STV, &a, slots);
}

void lower_ld(struct lower *l)
{
    if (l->m.type_count != 1)
        lower_refuse(l, "expected one type");
    enum type t = l->type;
    check_order(l, false);
    if (t == TYPE_B128) {
        lower_ld_wide(l);
        return;
    }
    uint32_t count;
    const struct operand *d = vector_items(l, 0, &count);
    if (count > 4)
        lower_refuse(l, "it moves more than four elements");
    struct address a = lower_address(l, operand_at(l, 1), space_of(l));
    enum element e = element_of(t);
    unsigned order = order_mod(l);
    if (count == 1) {
        if (lower_ld_param(l, &a, d, t))
            return;
        enum type reg = widened(l, d, t);
        uint32_t to = destination_operand(l, d, reg);
        if (e == ELEMENT_S32 && type_info[reg].bits == 32)
            e = ELEMENT_B32;
        if (order)
            lower_strong(l, OP_LDV, order, e, &a, to);
        else
            emit(l, load_op(a.space, e), 0, to, a.base, 0, 0)->imm = (uint64_t)a.offset;
        number_access(l);
        cut(l, e, reg, to);
        return;
    }
    if (a.space == MEM_PARAM && a.symbol) {
        for (uint32_t i = 0; i < count; i++) {
            struct address part = a;
            part.offset += (int64_t)(i * type_info[t].bits / 8);
            if (!is_sink(&d[i]))
                lower_ld_param(l, &part, &d[i], t);
        }
        return;
    }
    bool narrow = true;
    for (uint32_t i = 0; i < count; i++)
        narrow &= type_info[widened(l, &d[i], t)].bits <= 32;
    if (e == ELEMENT_S32 && narrow)
        e = ELEMENT_B32;
    uint32_t first = l->code->extra_count;
    for (uint32_t i = 0; i < count; i++)
        emit_extra(l, destination_operand(l, &d[i], is_sink(&d[i]) ? t : widened(l, &d[i], t)));
    unsigned mod = order | count << MOD_VECTOR_SHIFT | (unsigned)a.space << MOD_SPACE_SHIFT | e;
    emit(l, OP_LDV, mod, 0, a.base, first, 0)->imm = (uint64_t)a.offset;
    number_access(l);
    for (uint32_t i = 0; i < count; i++)
        if (!is_sink(&d[i]))
            cut(l, e, widened(l, &d[i], t), destination_operand(l, &d[i], widened(l, &d[i], t)));
}

void lower_st(struct lower *l)
{
    if (l->m.type_count != 1)
        lower_refuse(l, "expected one type");
    enum type t = l->type;
    check_order(l, true);
    if (t == TYPE_B128) {
        lower_st_wide(l);
        return;
    }
    uint32_t count;
    const struct operand *s = vector_items(l, 1, &count);
    if (count > 4)
        lower_refuse(l, "it moves more than four elements");
    struct address a = lower_address(l, operand_at(l, 0), space_of(l));
    if (a.space == MEM_PARAM || a.space == MEM_CONST)
        lower_bad_operand(l, 0, "a space that can be written");
    enum element e = element_of(t);
    unsigned order = order_mod(l);
    if (count == 1) {
        if (s->negated || s->pair)
            lower_bad_operand(l, 1, "a register or a literal");
        uint32_t from = source_operand(l, s, widened(l, s, t));
        if (order)
            lower_strong(l, OP_STV, order, e, &a, from);
        else
            emit(l, store_op(a.space, e), 0, from, a.base, 0, 0)->imm = (uint64_t)a.offset;
        number_access(l);
        return;
    }
    uint32_t first = l->code->extra_count;
    for (uint32_t i = 0; i < count; i++)
        emit_extra(l, source_operand(l, &s[i], widened(l, &s[i], t)));
    unsigned mod = order | count << MOD_VECTOR_SHIFT | (unsigned)a.space << MOD_SPACE_SHIFT | e;
    emit(l, OP_STV, mod, 0, a.base, first, 0)->imm = (uint64_t)a.offset;
    number_access(l);
}

/* ---- address spaces ---- */

static uint64_t window(struct lower *l, enum space space)
{
    switch (space) {
    case SPACE_SHARED:
        return PTX_SHARED_WINDOW;
    case SPACE_LOCAL:
        return PTX_LOCAL_WINDOW;
    case SPACE_PARAM:
        return l->function->entry ? PTX_PARAM_WINDOW : PTX_LOCAL_WINDOW;
    default:
        return 0; /* .global and .const addresses are generic ones */
    }
}

void lower_cvta(struct lower *l)
{
    if (l->m.type_count != 1 || l->type != TYPE_U64 || !has(l, M(SPACE)))
        lower_refuse(l, "expected a space and .u64");
    uint64_t base = window(l, space_of(l));
    uint32_t a = source(l, 1, TYPE_U64), d = destination(l, 0, TYPE_U64);
    if (base == 0)
        emit(l, OP_MOV, 0, d, a, 0, 0);
    else
        emit(l, has(l, M(TO)) ? OP_SUB_64 : OP_ADD_64, 0, d, a, constant(l, base), 0);
}

/* The only block of its cluster has rank 0. */
void lower_mapa(struct lower *l)
{
    if (l->m.type_count != 1 || (has(l, M(SPACE)) && space_of(l) != SPACE_SHARED))
        lower_refuse(l, "expected one type, and .shared::cluster or no space");
    uint32_t a = source(l, 1, l->type), d = destination(l, 0, l->type);
    (void)source(l, 2, TYPE_U32);
    emit(l, OP_MOV, 0, d, a, 0, 0);
}

void lower_getctarank(struct lower *l)
{
    if (l->m.type_count != 1 || (has(l, M(SPACE)) && space_of(l) != SPACE_SHARED))
        lower_refuse(l, "expected one type, and .shared::cluster or no space");
    (void)source(l, 1, l->type);
    emit(l, OP_MOV, 0, destination(l, 0, TYPE_U32), constant(l, 0), 0, 0);
}

void lower_isspacep(struct lower *l)
{
    static const enum mem_space spaces[] = {[SPACE_GLOBAL] = MEM_GLOBAL,
                                            [SPACE_SHARED] = MEM_SHARED,
                                            [SPACE_LOCAL] = MEM_LOCAL,
                                            [SPACE_PARAM] = MEM_PARAM,
                                            [SPACE_CONST] = MEM_CONST};
    enum space space = space_of(l);
    if (space == SPACE_NONE)
        lower_refuse(l, "expected a space");
    uint32_t a = source(l, 1, TYPE_U64);
    emit(l, OP_ISSPACEP, spaces[space], destination(l, 0, TYPE_PRED), a, 0, 0);
}

/* ---- atomics ---- */

static unsigned atom_type(struct lower *l, unsigned op)
{
    bool bitwise = op == ATOM_AND || op == ATOM_OR || op == ATOM_XOR;
    bool swap = op == ATOM_EXCH || op == ATOM_CAS;
    bool order = op == ATOM_MIN || op == ATOM_MAX;
    bool wrap = op == ATOM_INC || op == ATOM_DEC;
    bool add = op == ATOM_ADD;
    switch (l->type) {
    case TYPE_B16:
        if (op == ATOM_CAS)
            return ATOM_B16;
        break;
    case TYPE_B32:
        if (bitwise || swap)
            return ATOM_U32;
        break;
    case TYPE_B64:
        if (bitwise || swap)
            return ATOM_U64;
        break;
    case TYPE_U32:
        if (add || order || wrap || swap)
            return ATOM_U32;
        break;
    case TYPE_S32:
        if (add || order)
            return ATOM_S32;
        break;
    case TYPE_U64:
        if (add || order || swap)
            return ATOM_U64;
        break;
    case TYPE_S64:
        if (add || order)
            return ATOM_S64;
        break;
    case TYPE_F32:
        if (add)
            return ATOM_F32;
        break;
    case TYPE_F64:
        if (add)
            return ATOM_F64;
        break;
    case TYPE_F16:
    case TYPE_F16X2:
    case TYPE_BF16:
    case TYPE_BF16X2:
        if ((add || (order && has(l, M(VECTOR)))) && has(l, M(NOFTZ)))
            return l->type == TYPE_F16     ? ATOM_F16
                   : l->type == TYPE_F16X2 ? ATOM_F16X2
                   : l->type == TYPE_BF16  ? ATOM_BF16
                                           : ATOM_BF16X2;
        break;
    default:
        break;
    }
    lower_refuse(l, "this operation does not go with its type here");
}

/* The form with a vector is one atomic per element: PTX promises no more. */
static void check_vector(struct lower *l, unsigned type, const struct address *a)
{
    uint32_t most = type == ATOM_F16 || type == ATOM_BF16                           ? 8
                    : type == ATOM_F32 || type == ATOM_F16X2 || type == ATOM_BF16X2 ? 4
                                                                                    : 0;
    if ((uint32_t)l->m.value[CLASS_VECTOR] > most || a->space == MEM_SHARED)
        lower_refuse(l, "this vector does not go with its type or space");
}

/* atom, and, with `result` false, red. */
static void emit_atom(struct lower *l, bool result)
{
    const uint32_t first = result;
    if (l->m.type_count != 1 || !has(l, M(OPER)))
        lower_refuse(l, "expected an operation and a type");
    unsigned op = (unsigned)l->m.value[CLASS_OPER];
    if (op >= ATOM_OP_COUNT)
        lower_refuse(l, "expected an operation such as .add");
    int order = l->m.value[CLASS_SEMANTICS];
    if (order == SEM_WEAK || order == SEM_VOLATILE || order == SEM_SC)
        lower_refuse(l, "this memory order does not go with it");
    unsigned type = atom_type(l, op);
    if (type != ATOM_F16 && type != ATOM_F16X2 && type != ATOM_BF16 && type != ATOM_BF16X2 && has(l, M(NOFTZ)))
        lower_refuse(l, ".noftz goes with half precision");
    struct address a = lower_address(l, operand_at(l, first), space_of(l));
    if (a.space != MEM_GLOBAL && a.space != MEM_SHARED && a.space != MEM_GENERIC)
        lower_refuse(l, "atomics work on .global and .shared");
    const bool vector = has(l, M(VECTOR));
    if (vector)
        check_vector(l, type, &a);
    if (op != ATOM_CAS && operand_at(l, first + 2))
        lower_refuse(l, "the form with a third operand is not known here");
    uint32_t count, b[8], d[8], c = op == ATOM_CAS ? source(l, first + 2, l->type) : 0;
    const struct operand *from = vector_items(l, first + 1, &count), *to = result ? vector_items(l, 0, &count) : NULL;
    for (uint32_t i = 0; i < count; i++) {
        b[i] = source_operand(l, &from[i], l->type);
        /* Of several, none is written before all are read. */
        d[i] = vector || !result ? temporary(l) : destination_operand(l, to, l->type);
    }
    unsigned mod = op | type << 4 | (unsigned)a.space << 8 | (order_mod(l) & (MOD_ACQUIRE | MOD_RELEASE));
    for (uint32_t i = 0; i < count; i++) {
        emit(l, OP_ATOM, mod | (result ? 0 : ATOM_NO_RESULT), d[i], a.base, b[i], c)->imm =
            (uint64_t)a.offset + (uint64_t)i * type_info[l->type].bits / 8;
        number_access(l);
    }
    for (uint32_t i = 0; i < count && vector && result; i++)
        if (!is_sink(&to[i]))
            emit(l, OP_MOV, 0, destination_operand(l, &to[i], l->type), d[i], 0, 0);
}

/* exch and cas of 128 bits. */
static void lower_atom_wide(struct lower *l)
{
    unsigned op = (unsigned)l->m.value[CLASS_OPER];
    bool cas = op == ATOM_CAS;
    int order = l->m.value[CLASS_SEMANTICS];
    struct address a = lower_address(l, operand_at(l, 1), space_of(l));
    uint32_t d[2], b[2], c[2], at = temporary(l);
    if (!has(l, M(OPER)) || (!cas && op != ATOM_EXCH) || has(l, M(VECTOR) | M(NOFTZ)) || order == SEM_WEAK ||
        order == SEM_VOLATILE || order == SEM_SC || l->s->operand_count != (cas ? 4u : 3u))
        lower_refuse(l, "this operation does not go with its type here");
    if (a.space != MEM_GLOBAL && a.space != MEM_SHARED && a.space != MEM_GENERIC)
        lower_refuse(l, "atomics work on .global and .shared");
    source_wide(l, operand_at(l, 2), b);
    source_wide(l, operand_at(l, cas ? 3 : 2), c);
    destination_wide(l, operand_at(l, 0), d);
    emit(l, OP_ADD_64, 0, at, a.base, constant(l, (uint64_t)a.offset), 0);
    uint32_t extra = emit_extra(l, d[1]);
    emit_extra(l, b[1]);
    emit_extra(l, c[1]);
    unsigned mod = op | ATOM_U64 << 4 | (unsigned)a.space << 8 | (order_mod(l) & (MOD_ACQUIRE | MOD_RELEASE));
    emit(l, OP_ATOM128, mod, d[0], at, b[0], c[0])->imm = extra;
    number_access(l);
}

void lower_atom(struct lower *l)
{
    if (l->m.type_count != 1)
        lower_refuse(l, "expected one type");
    if (l->type == TYPE_B128)
        lower_atom_wide(l);
    else
        emit_atom(l, true);
}

void lower_red(struct lower *l)
{
    emit_atom(l, false);
}

/* A policy is a hint, and hints have no effect here. */
void lower_createpolicy(struct lower *l)
{
    if (!has(l, M(CREATE)))
        lower_refuse(l, "expected .fractional, .range or .cvt");
    emit(l, OP_MOV, 0, destination(l, 0, TYPE_B64), constant(l, 0), 0, 0);
}

void lower_fence(struct lower *l)
{
    emit(l, OP_FENCE, 0, 0, 0, 0, 0);
}

void lower_nothing(struct lower *l)
{
}

/* cp.async.ca|cg.shared.global [dst], [src], bytes {, src-bytes}; and its groups. The copy is done at once, which is
 * one of the moments at which a device may do it. */
void lower_cp(struct lower *l)
{
    if (!has(l, M(ASYNC)) || strcmp(l->s->mods[0]->text, "async") != 0)
        lower_refuse(l, "only cp.async is known");
    if (l->s->mod_count > 1 && strcmp(l->s->mods[1]->text, "mbarrier") == 0) {
        lower_cp_mbarrier(l);
        return;
    }
    if (l->s->mod_count > 1 && strcmp(l->s->mods[1]->text, "bulk") == 0) {
        lower_cp_bulk(l);
        return;
    }
    if (has(l, M(MBARRIER) | M(BARRIER)) || l->m.type_count)
        lower_refuse(l, "this combination of modifiers is not known here");
    if (has(l, M(GROUP))) {
        if (l->m.value[CLASS_GROUP] > 2)
            lower_refuse(l, "this combination of modifiers is not known here");
        return;
    }
    const struct operand *dst = operand_at(l, 0), *src = operand_at(l, 1), *size = operand_at(l, 2),
                         *given = operand_at(l, 3);
    if (!dst || !src || !size || size->kind != OPERAND_INT ||
        (size->value != 4 && size->value != 8 && size->value != 16))
        lower_bad_operand(l, 2, "4, 8 or 16 bytes");
    if (l->s->mod_count < 4 || !has(l, M(SPACE)))
        lower_refuse(l, "expected cp.async.ca or .cg, .shared.global");
    struct address to = lower_address(l, dst, SPACE_SHARED), from = lower_address(l, src, SPACE_GLOBAL);
    uint32_t a = temporary(l), b = temporary(l);
    uint32_t bytes = constant(l, size->value);
    if (given && register_bits(l, given) == 1) { /* whether to write zeros instead */
        uint32_t ignored = predicate(l, given), chosen = temporary(l);
        emit(l, OP_SELP, 0, chosen, constant(l, 0), bytes, ignored);
        bytes = chosen;
    } else if (given) {
        bytes = source_operand(l, given, TYPE_U32);
    }
    emit(l, OP_ADD_32, 0, a, to.base, constant(l, (uint32_t)to.offset), 0);
    emit(l, OP_ADD_64, 0, b, from.base, constant(l, (uint64_t)from.offset), 0);
    emit(l, OP_CP_ASYNC, (unsigned)size->value, 0, a, b, bytes);
    number_access(l);
}
