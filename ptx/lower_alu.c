/* lower_alu.c - integer and floating-point arithmetic, sign, minimum and maximum. */
#include "ptx/lower_alu.h"

/* ---- carries ---- */

static uint32_t carry_slot(struct lower *l)
{
    if (l->carry_slot == UINT32_MAX)
        l->carry_slot = temporary(l);
    return l->carry_slot;
}

static void emit_carry(struct lower *l, enum microop op, bool in, uint32_t d, uint32_t a, uint32_t b)
{
    struct insn *i = emit(l, op, (unsigned)in | (has(l, M(CC)) ? 2u : 0), d, a, b, 0);
    i->imm = 0; /* filled below: emit_extra may not be called between */
    uint32_t extra = emit_extra(l, carry_slot(l));
    l->code->insns[l->code->count - 1].imm = extra;
}

static void lower_carry(struct lower *l, enum microop w32, enum microop w64, bool in)
{
    need_type(l);
    enum type t = l->type;
    uint32_t a = source(l, 1, t), b = source(l, 2, t), d = destination(l, 0, t);
    emit_carry(l, bits_of(t) == 64 ? w64 : w32, in, d, a, b);
}

void lower_addc(struct lower *l)
{
    lower_carry(l, OP_ADDC_32, OP_ADDC_64, true);
}

void lower_subc(struct lower *l)
{
    lower_carry(l, OP_SUBC_32, OP_SUBC_64, true);
}

/* ---- add, sub, mul, mad, fma ---- */

void lower_add(struct lower *l)
{
    static const struct float_ops ops = {OP_ADD_F32,     OP_ADD_FTZ_F32, OP_ADD_RND_F32, OP_ADD_F64,
                                         OP_ADD_RND_F64, OP_ADD_H,       OP_ADD_HX2};
    need_type(l);
    if (is_float(l->type)) {
        only(l, M(ROUND) | M(FTZ) | M(SAT));
        lower_float(l, &ops, 2);
    } else if (is_pair(l->type)) {
        only(l, 0);
        binary(l, OP_ADD_16X2, l->type);
    } else if (has(l, M(CC))) {
        only(l, M(CC));
        if (bits_of(l->type) == 16)
            lower_refuse(l, ".cc needs 32 or 64 bits");
        lower_carry(l, OP_ADDC_32, OP_ADDC_64, false);
    } else if (has(l, M(SAT))) {
        only(l, M(SAT));
        if (l->type != TYPE_S32)
            lower_refuse(l, ".sat goes with .s32 only");
        binary(l, OP_ADD_SAT_S32, l->type);
    } else {
        only(l, 0);
        binary(l, BY_WIDTH(l, l->type, ADD), l->type);
    }
}

void lower_sub(struct lower *l)
{
    static const struct float_ops ops = {OP_SUB_F32,     OP_SUB_FTZ_F32, OP_SUB_RND_F32, OP_SUB_F64,
                                         OP_SUB_RND_F64, OP_SUB_H,       OP_SUB_HX2};
    need_type(l);
    if (is_float(l->type)) {
        only(l, M(ROUND) | M(FTZ) | M(SAT));
        lower_float(l, &ops, 2);
    } else if (has(l, M(CC))) {
        only(l, M(CC));
        if (bits_of(l->type) == 16)
            lower_refuse(l, ".cc needs 32 or 64 bits");
        lower_carry(l, OP_SUBC_32, OP_SUBC_64, false);
    } else if (has(l, M(SAT))) {
        only(l, M(SAT));
        if (l->type != TYPE_S32)
            lower_refuse(l, ".sat goes with .s32 only");
        binary(l, OP_SUB_SAT_S32, l->type);
    } else {
        only(l, 0);
        binary(l, BY_WIDTH(l, l->type, SUB), l->type);
    }
}

static enum type wide_type(struct lower *l)
{
    switch (l->type) {
    case TYPE_U16:
        return TYPE_U32;
    case TYPE_S16:
        return TYPE_S32;
    case TYPE_U32:
        return TYPE_U64;
    case TYPE_S32:
        return TYPE_S64;
    default:
        lower_refuse(l, ".wide needs 16 or 32 bits");
    }
}

static enum microop wide_mul(const struct lower *l)
{
    return bits_of(l->type) == 16 ? (is_signed(l->type) ? OP_MUL_WIDE_S16 : OP_MUL_WIDE_U16)
                                  : (is_signed(l->type) ? OP_MUL_WIDE_S32 : OP_MUL_WIDE_U32);
}

void lower_mul(struct lower *l)
{
    static const struct float_ops ops = {OP_MUL_F32,     OP_MUL_FTZ_F32, OP_MUL_RND_F32, OP_MUL_F64,
                                         OP_MUL_RND_F64, OP_MUL_H,       OP_MUL_HX2};
    need_type(l);
    if (is_float(l->type)) {
        only(l, M(ROUND) | M(FTZ) | M(SAT));
        lower_float(l, &ops, 2);
        return;
    }
    only(l, M(HALF));
    enum type t = l->type;
    switch (l->m.value[CLASS_HALF]) {
    case HALF_LO:
        binary(l, BY_WIDTH(l, t, MUL), t);
        break;
    case HALF_HI:
        binary(l, BY_SIGN(l, t, MUL_HI), t);
        break;
    case HALF_WIDE: {
        enum type wide = wide_type(l);
        uint32_t a = source(l, 1, t), b = source(l, 2, t);
        emit(l, wide_mul(l), 0, destination(l, 0, wide), a, b, 0);
        break;
    }
    default:
        lower_refuse(l, "expected .lo, .hi or .wide");
    }
}

static enum microop op_mul24(struct lower *l)
{
    need_type(l);
    if (l->m.value[CLASS_HALF] != HALF_LO && l->m.value[CLASS_HALF] != HALF_HI)
        lower_refuse(l, "expected .lo or .hi");
    bool high = l->m.value[CLASS_HALF] == HALF_HI;
    return is_signed(l->type) ? (high ? OP_MUL24_HI_S32 : OP_MUL24_LO_S32) : (high ? OP_MUL24_HI_U32 : OP_MUL24_LO_U32);
}

void lower_mul24(struct lower *l)
{
    binary(l, op_mul24(l), l->type);
}

void lower_mad24(struct lower *l)
{
    enum microop op = op_mul24(l);
    uint32_t a = source(l, 1, l->type), b = source(l, 2, l->type), c = source(l, 3, l->type), t = temporary(l);
    emit(l, op, 0, t, a, b, 0);
    emit(l, OP_ADD_32, 0, destination(l, 0, l->type), t, c, 0);
}

void lower_fma(struct lower *l)
{
    static const struct float_ops ops = {OP_FMA_F32,     OP_FMA_FTZ_F32, OP_FMA_RND_F32, OP_FMA_F64,
                                         OP_FMA_RND_F64, OP_FMA_H,       OP_FMA_HX2};
    need_type(l);
    lower_float(l, &ops, 3);
}

/* mad.lo.cc, madc.hi and their kind: a product, then an addition with carry. */
static void lower_mad_carry(struct lower *l, bool in)
{
    enum type t = l->type;
    bool wide = bits_of(t) == 64;
    if (bits_of(t) == 16)
        lower_refuse(l, ".cc needs 32 or 64 bits");
    uint32_t a = source(l, 1, t), b = source(l, 2, t), c = source(l, 3, t), product = temporary(l);
    if (l->m.value[CLASS_HALF] == HALF_LO)
        emit(l, BY_WIDTH(l, t, MUL), 0, product, a, b, 0);
    else if (l->m.value[CLASS_HALF] == HALF_HI)
        emit(l, BY_SIGN(l, t, MUL_HI), 0, product, a, b, 0);
    else
        lower_refuse(l, "expected .lo or .hi");
    emit_carry(l, wide ? OP_ADDC_64 : OP_ADDC_32, in, destination(l, 0, t), product, c);
}

void lower_madc(struct lower *l)
{
    need_type(l);
    lower_mad_carry(l, true);
}

void lower_mad(struct lower *l)
{
    need_type(l);
    enum type t = l->type;
    if (is_float(t)) {
        if (has(l, M(HALF) | M(CC)))
            lower_refuse(l, "this combination of modifiers is not known here");
        lower_fma(l);
        return;
    }
    if (has(l, M(CC))) {
        only(l, M(CC) | M(HALF));
        lower_mad_carry(l, false);
        return;
    }
    uint32_t a = source(l, 1, t), b = source(l, 2, t);
    switch (l->m.value[CLASS_HALF]) {
    case HALF_LO: {
        only(l, M(HALF));
        uint32_t c = source(l, 3, t);
        emit(l, BY_WIDTH(l, t, MAD), 0, destination(l, 0, t), a, b, c);
        break;
    }
    case HALF_HI: {
        only(l, M(HALF) | M(SAT));
        uint32_t c = source(l, 3, t);
        if (has(l, M(SAT))) {
            if (t != TYPE_S32)
                lower_refuse(l, ".sat goes with .s32 only");
            emit(l, OP_MAD_HI_SAT_S32, 0, destination(l, 0, t), a, b, c);
            break;
        }
        uint32_t product = temporary(l);
        emit(l, BY_SIGN(l, t, MUL_HI), 0, product, a, b, 0);
        emit(l, BY_WIDTH(l, t, ADD), 0, destination(l, 0, t), product, c, 0);
        break;
    }
    case HALF_WIDE: {
        only(l, M(HALF));
        enum type wide = wide_type(l);
        uint32_t c = source(l, 3, wide);
        enum microop op = bits_of(t) == 16 ? (is_signed(t) ? OP_MAD_WIDE_S16 : OP_MAD_WIDE_U16)
                                           : (is_signed(t) ? OP_MAD_WIDE_S32 : OP_MAD_WIDE_U32);
        emit(l, op, 0, destination(l, 0, wide), a, b, c);
        break;
    }
    default:
        lower_refuse(l, "expected .lo, .hi or .wide");
    }
}

void lower_sad(struct lower *l)
{
    need_type(l);
    enum type t = l->type;
    uint32_t a = source(l, 1, t), b = source(l, 2, t), c = source(l, 3, t);
    emit(l, BY_SIGN(l, t, SAD), 0, destination(l, 0, t), a, b, c);
}

void lower_div(struct lower *l)
{
    need_type(l);
    enum type t = l->type;
    if (!is_float(t)) {
        only(l, 0);
        binary(l, BY_SIGN(l, t, DIV), t);
        return;
    }
    int kinds = has(l, M(APPROX)) + has(l, M(FULL)) + has(l, M(ROUND));
    if (kinds > 1 || (t == TYPE_F64 && !has(l, M(ROUND))))
        lower_refuse(l, "expected one of .approx, .full (f32 only), .rn, .rz, .rm, .rp");
    static const struct float_ops full = {OP_DIV_F32,     OP_MOV, OP_DIV_RND_F32, OP_DIV_F64,
                                          OP_DIV_RND_F64, OP_MOV, OP_MOV};
    static const struct float_ops approx = {OP_DIV_APPROX_F32, OP_MOV, OP_MOV, OP_MOV, OP_MOV, OP_MOV, OP_MOV};
    lower_float(l, has(l, M(APPROX)) ? &approx : &full, 2);
}

void lower_rem(struct lower *l)
{
    need_type(l);
    binary(l, BY_SIGN(l, l->type, REM), l->type);
}

/* ---- sign, minimum, maximum ---- */

static void lower_sign(struct lower *l, enum microop f32, enum microop f64, enum microop half, enum microop packed)
{
    enum type t = l->type;
    check_float_modifiers(l);
    uint32_t a = flushed(l, source(l, 1, t), t);
    enum microop op = t == TYPE_F32 ? f32 : t == TYPE_F64 ? f64 : is_packed(t) ? packed : half;
    emit(l, op, 0, destination(l, 0, t), a, 0, 0);
}

void lower_abs(struct lower *l)
{
    need_type(l);
    if (is_float(l->type)) {
        lower_sign(l, OP_ABS_F32, OP_ABS_F64, OP_ABS_H, OP_ABS_HX2);
    } else {
        only(l, 0);
        unary(l, BY_WIDTH(l, l->type, ABS), 0, l->type, l->type);
    }
}

void lower_neg(struct lower *l)
{
    need_type(l);
    if (is_float(l->type)) {
        lower_sign(l, OP_NEG_F32, OP_NEG_F64, OP_NEG_H, OP_NEG_HX2);
    } else {
        only(l, 0);
        unary(l, BY_WIDTH(l, l->type, NEG), 0, l->type, l->type);
    }
}

/* Integers; .relu: not below zero. */
static void lower_int_min_max(struct lower *l, bool min)
{
    enum type t = l->type;
    only(l, M(RELU));
    if (has(l, M(RELU)) && t != TYPE_S32 && t != TYPE_S16X2)
        lower_refuse(l, ".relu goes with .s32 and .s16x2");
    enum microop larger = t == TYPE_S16X2 ? OP_MAX_S16X2 : OP_MAX_S32, op;
    if (is_pair(t))
        op = t == TYPE_S16X2 ? (min ? OP_MIN_S16X2 : OP_MAX_S16X2) : min ? OP_MIN_U16X2 : OP_MAX_U16X2;
    else
        op = min ? BY_SIGN(l, t, MIN) : BY_SIGN(l, t, MAX);
    binary(l, op, t);
    if (has(l, M(RELU))) {
        uint32_t d = destination(l, 0, t);
        emit(l, larger, 0, d, d, constant(l, 0), 0);
    }
}

static void lower_min_max(struct lower *l, bool min)
{
    need_type(l);
    enum type t = l->type;
    bool three = operand_at(l, 3) != NULL;
    if (three)
        lower_refuse(l, "the form with three operands is not known here");
    if (!is_float(t)) {
        lower_int_min_max(l, min);
        return;
    }
    bool xorsign = has(l, M(XORSIGN));
    if (xorsign != has(l, M(ABS)) || has(l, M(RELU)) || (t == TYPE_F64 && l->m.set) ||
        ((t == TYPE_BF16 || t == TYPE_BF16X2) && has(l, M(FTZ))))
        lower_refuse(l, "this combination of modifiers is not known here");
    uint32_t a = flushed(l, source(l, 1, t), t), b = flushed(l, source(l, 2, t), t), d = destination(l, 0, t);
    bool nan = has(l, M(NAN));
    if (is_half(t)) {
        enum microop op = is_packed(t) ? (min ? OP_MIN_HX2 : OP_MAX_HX2) : (min ? OP_MIN_H : OP_MAX_H);
        emit(l, op, half_mod(t) | (nan ? HALF_NAN : 0) | (xorsign ? HALF_XORSIGN : 0), d, a, b, 0);
    } else if (t == TYPE_F64) {
        emit(l, min ? OP_MIN_F64 : OP_MAX_F64, 0, d, a, b, 0);
    } else if (xorsign) {
        emit(l, min ? OP_MIN_XORSIGN_F32 : OP_MAX_XORSIGN_F32, nan, d, a, b, 0);
    } else if (nan) {
        emit(l, min ? OP_MIN_NAN_F32 : OP_MAX_NAN_F32, 0, d, a, b, 0);
    } else {
        emit(l, min ? OP_MIN_F32 : OP_MAX_F32, 0, d, a, b, 0);
    }
}

void lower_min(struct lower *l)
{
    lower_min_max(l, true);
}

void lower_max(struct lower *l)
{
    lower_min_max(l, false);
}

void lower_copysign(struct lower *l)
{
    need_type(l);
    binary(l, l->type == TYPE_F64 ? OP_COPYSIGN_F64 : OP_COPYSIGN_F32, l->type);
}

void lower_testp(struct lower *l)
{
    need_type(l);
    if (!has(l, M(PROPERTY)))
        lower_refuse(l, "expected a property such as .finite");
    uint32_t a = source(l, 1, l->type);
    emit(l, l->type == TYPE_F64 ? OP_TESTP_F64 : OP_TESTP_F32, (unsigned)l->m.value[CLASS_PROPERTY],
         destination(l, 0, TYPE_PRED), a, 0, 0);
}
