/* lower_compare.c - setp, set, selp, slct. */
#include "ptx/lower_alu.h"

/* ---- comparisons ---- */

static enum microop float_compare(struct lower *l, int cmp, bool wide, bool *swap)
{
#define PICK(NAME) (wide ? OP_##NAME##_F64 : OP_##NAME##_F32)
    *swap = cmp == COMPARE_GT || cmp == COMPARE_GE || cmp == COMPARE_GTU || cmp == COMPARE_GEU;
    switch (cmp) {
    case COMPARE_EQ:
        return PICK(EQ);
    case COMPARE_NE:
        return PICK(NE);
    case COMPARE_LT:
    case COMPARE_GT:
        return PICK(LT);
    case COMPARE_LE:
    case COMPARE_GE:
        return PICK(LE);
    case COMPARE_EQU:
        return PICK(EQU);
    case COMPARE_NEU:
        return PICK(NEU);
    case COMPARE_LTU:
    case COMPARE_GTU:
        return PICK(LTU);
    case COMPARE_LEU:
    case COMPARE_GEU:
        return PICK(LEU);
    case COMPARE_NUM:
        return PICK(NUM);
    case COMPARE_NAN:
        return PICK(NAN);
    default:
        lower_refuse(l, "this comparison does not go with its type");
    }
#undef PICK
}

static enum microop int_compare(struct lower *l, int cmp, enum type t, bool *swap)
{
    if (type_info[t].kind != 'u' && (cmp == COMPARE_LO || cmp == COMPARE_LS || cmp == COMPARE_HI || cmp == COMPARE_HS))
        lower_refuse(l, "this comparison is for unsigned types");
    if (type_info[t].kind == 'b' && cmp != COMPARE_EQ && cmp != COMPARE_NE)
        lower_refuse(l, "bits are compared by .eq and .ne only");
    *swap = cmp == COMPARE_GT || cmp == COMPARE_GE || cmp == COMPARE_HI || cmp == COMPARE_HS;
    switch (cmp) {
    case COMPARE_EQ:
        return BY_WIDTH(l, t, EQ);
    case COMPARE_NE:
        return BY_WIDTH(l, t, NE);
    case COMPARE_LT:
    case COMPARE_GT:
    case COMPARE_LO:
    case COMPARE_HI:
        return BY_SIGN(l, t, LT);
    case COMPARE_LE:
    case COMPARE_GE:
    case COMPARE_LS:
    case COMPARE_HS:
        return BY_SIGN(l, t, LE);
    default:
        lower_refuse(l, "this comparison is for floating-point types");
    }
}

static int comparison(struct lower *l)
{
    int half = l->m.value[CLASS_HALF];
    if (has(l, M(COMPARE)) == has(l, M(HALF)) || half == HALF_WIDE)
        lower_refuse(l, "expected one comparison such as .eq");
    return half == HALF_LO ? COMPARE_LO : half == HALF_HI ? COMPARE_HI : l->m.value[CLASS_COMPARE];
}

/* d = a cmp b; half-precision operands are widened first, which is exact. */
static void emit_compare(struct lower *l, uint32_t d, uint32_t a, uint32_t b, enum type t)
{
    int cmp = comparison(l);
    bool swap;
    enum microop op;
    if (has(l, M(FTZ)) && t != TYPE_F32 && t != TYPE_F16)
        lower_refuse(l, ".ftz does not go with this type");
    if (t == TYPE_F16 || t == TYPE_BF16) {
        uint32_t x = temporary(l), y = temporary(l);
        emit(l, t == TYPE_F16 ? OP_F16_TO_F32 : OP_BF16_TO_F32, 0, x, flushed(l, a, t), 0, 0);
        emit(l, t == TYPE_F16 ? OP_F16_TO_F32 : OP_BF16_TO_F32, 0, y, flushed(l, b, t), 0, 0);
        op = float_compare(l, cmp, false, &swap);
        a = x;
        b = y;
    } else if (is_float(t)) {
        op = float_compare(l, cmp, t == TYPE_F64, &swap);
        a = flushed(l, a, t);
        b = flushed(l, b, t);
    } else {
        op = int_compare(l, cmp, t, &swap);
    }
    emit(l, op, 0, d, swap ? b : a, swap ? a : b, 0);
}

static enum microop bool_op(struct lower *l)
{
    switch (l->m.value[CLASS_OPER]) {
    case ATOM_AND:
        return OP_AND_PRED;
    case ATOM_OR:
        return OP_OR_PRED;
    case ATOM_XOR:
        return OP_XOR_PRED;
    default:
        lower_refuse(l, "expected .and, .or or .xor");
    }
}

/* The third source, when there is one; UINT32_MAX otherwise. */
static uint32_t bool_operand(struct lower *l)
{
    const struct operand *c = operand_at(l, 3);
    if ((c != NULL) != has(l, M(OPER)))
        lower_refuse(l, "a third operand goes with .and, .or or .xor");
    return c ? predicate(l, c) : UINT32_MAX;
}

static enum type half_of(enum type packed)
{
    return packed == TYPE_F16X2 ? TYPE_F16 : TYPE_BF16;
}

static uint32_t half_part(struct lower *l, uint32_t slot, unsigned shift)
{
    uint32_t t = temporary(l);
    emit(l, OP_PART_16, shift, t, slot, 0, 0);
    return t;
}

static void emit_bool(struct lower *l, uint32_t d, uint32_t c)
{
    if (c != UINT32_MAX)
        emit(l, bool_op(l), 0, d, d, c, 0);
}

void lower_setp(struct lower *l)
{
    need_type(l);
    enum type t = l->type;
    const struct operand *d = operand_at(l, 0);
    uint32_t a = source(l, 1, t), b = source(l, 2, t), c = bool_operand(l);
    uint32_t p = destination_operand(l, d, TYPE_PRED);
    if (is_packed(t)) { /* one predicate per half */
        uint32_t q = d->pair ? destination_operand(l, d->pair, TYPE_PRED) : temporary(l), first = temporary(l);
        if (!d->pair)
            lower_refuse(l, "packed types need two destinations");
        emit_compare(l, first, half_part(l, a, 0), half_part(l, b, 0), half_of(t));
        uint32_t second = temporary(l);
        emit_compare(l, second, half_part(l, a, 16), half_part(l, b, 16), half_of(t));
        emit_bool(l, first, c);
        emit_bool(l, second, c);
        emit(l, OP_MOV, 0, p, first, 0, 0);
        emit(l, OP_MOV, 0, q, second, 0, 0);
        return;
    }
    if (!d->pair && c == UINT32_MAX) {
        emit_compare(l, p, a, b, t);
        return;
    }
    /* p or q may be c itself: results go through temporaries. */
    uint32_t first = temporary(l), second = temporary(l);
    emit_compare(l, first, a, b, t);
    if (d->pair) {
        emit(l, OP_NOT_PRED, 0, second, first, 0, 0);
        emit_bool(l, second, c);
    }
    emit_bool(l, first, c);
    emit(l, OP_MOV, 0, p, first, 0, 0);
    if (d->pair)
        emit(l, OP_MOV, 0, destination_operand(l, d->pair, TYPE_PRED), second, 0, 0);
}

static uint64_t true_value(enum type t)
{
    switch (t) {
    case TYPE_F32:
        return 0x3f800000;
    case TYPE_F16:
    case TYPE_F16X2:
        return 0x3c00;
    case TYPE_BF16:
    case TYPE_BF16X2:
        return 0x3f80;
    default:
        return bits_of(t) == 16 ? 0xffff : 0xffffffff;
    }
}

void lower_set(struct lower *l)
{
    if (l->m.type_count != 2)
        lower_refuse(l, "expected two types");
    enum type dt = l->m.types[0], t = l->m.types[1];
    uint32_t a = source(l, 1, t), b = source(l, 2, t), c = bool_operand(l), d = destination(l, 0, dt);
    uint32_t zero = constant(l, 0), p = temporary(l);
    if (is_packed(dt) != is_packed(t) && !(dt == TYPE_U32 || dt == TYPE_S32))
        lower_refuse(l, "this pair of types is not known here");
    if (is_packed(t)) {
        uint64_t one = is_packed(dt) ? true_value(dt) : 0xffff;
        uint32_t q = temporary(l), low = temporary(l), high = temporary(l);
        emit_compare(l, p, half_part(l, a, 0), half_part(l, b, 0), half_of(t));
        emit_compare(l, q, half_part(l, a, 16), half_part(l, b, 16), half_of(t));
        emit_bool(l, p, c);
        emit_bool(l, q, c);
        emit(l, OP_SELP, 0, low, constant(l, one), zero, p);
        emit(l, OP_SELP, 0, high, constant(l, one << 16), zero, q);
        emit(l, OP_OR, 0, d, low, high, 0);
        return;
    }
    emit_compare(l, p, a, b, t);
    emit_bool(l, p, c);
    emit(l, OP_SELP, 0, d, constant(l, true_value(dt)), zero, p);
}

void lower_selp(struct lower *l)
{
    need_type(l);
    uint32_t a = source(l, 1, l->type), b = source(l, 2, l->type), c = source(l, 3, TYPE_PRED);
    emit(l, OP_SELP, 0, destination(l, 0, l->type), a, b, c);
}

void lower_slct(struct lower *l)
{
    if (l->m.type_count != 2 || (l->m.types[1] != TYPE_S32 && l->m.types[1] != TYPE_F32))
        lower_refuse(l, "expected two types, the second .s32 or .f32");
    bool f = l->m.types[1] == TYPE_F32;
    if (!f && has(l, M(FTZ)))
        lower_refuse(l, ".ftz does not go with this type");
    uint32_t a = source(l, 1, l->type), b = source(l, 2, l->type), c = source(l, 3, l->m.types[1]);
    if (f)
        c = flushed(l, c, TYPE_F32);
    emit(l, f ? OP_SLCT_F32 : OP_SLCT_S32, 0, destination(l, 0, l->type), a, b, c);
}
