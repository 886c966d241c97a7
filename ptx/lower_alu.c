/* lower_alu.c - arithmetic, logic, comparisons and conversions. Rare modifiers become extra micro-operations around the plain
 * one (.ftz flushes operands and result, .sat clamps the result), so that each micro-operation has one meaning. */
#include "ptx/lower.h"

static unsigned bits_of(enum type t)
{
    return type_info[t].bits;
}

static bool is_float(enum type t)
{
    return type_info[t].kind == 'f';
}

static bool is_signed(enum type t)
{
    return type_info[t].kind == 's';
}

static bool is_half(enum type t)
{
    return t == TYPE_F16 || t == TYPE_BF16 || t == TYPE_F16X2 || t == TYPE_BF16X2;
}

static bool is_packed(enum type t)
{
    return t == TYPE_F16X2 || t == TYPE_BF16X2;
}

static unsigned half_mod(enum type t)
{
    return t == TYPE_BF16 || t == TYPE_BF16X2 ? HALF_BF16 : 0;
}

/* Micro-operations by width: { 16, 32, 64 }. */
static enum microop by_width(struct lower *l, enum type t, enum microop w16, enum microop w32, enum microop w64)
{
    switch (bits_of(t)) {
    case 16:
        return w16;
    case 32:
        return w32;
    case 64:
        return w64;
    default:
        lower_refuse(l, "it does not take this type");
    }
}

#define BY_WIDTH(l, t, NAME) by_width(l, t, OP_##NAME##_16, OP_##NAME##_32, OP_##NAME##_64)
#define BY_SIGN(l, t, NAME)                                                                                            \
    (is_signed(t) ? by_width(l, t, OP_##NAME##_S16, OP_##NAME##_S32, OP_##NAME##_S64)                                  \
                  : by_width(l, t, OP_##NAME##_U16, OP_##NAME##_U32, OP_##NAME##_U64))

static void need_type(struct lower *l)
{
    if (l->m.type_count == 0)
        lower_refuse(l, "its type is missing");
    if (l->m.type_count > 1)
        lower_refuse(l, "it takes one type");
}

static void only(struct lower *l, uint64_t allowed)
{
    if (l->m.set & ~allowed)
        lower_refuse(l, "this combination of modifiers is not known here");
}

static int rounding_of(const struct lower *l)
{
    return has(l, M(ROUND)) ? l->m.value[CLASS_ROUND] : ROUND_NONE;
}

static bool is_nearest(int rounding)
{
    return rounding == ROUND_NONE || rounding == ROUND_RN;
}

static void check_rounding(struct lower *l)
{
    if (rounding_of(l) == ROUND_RNA)
        lower_refuse(l, "it does not round this way");
}

/* ---- .ftz and .sat as separate steps ---- */

static uint32_t flushed(struct lower *l, uint32_t slot, enum type t)
{
    if (!has(l, M(FTZ)) || t == TYPE_F64)
        return slot;
    uint32_t d = temporary(l);
    emit(l, t == TYPE_F16 ? OP_FTZ_F16 : t == TYPE_F16X2 ? OP_FTZ_F16X2 : OP_FTZ_F32, 0, d, slot, 0, 0);
    return d;
}

static void finish_float(struct lower *l, uint32_t d, enum type t)
{
    if (has(l, M(FTZ)) && t != TYPE_F64)
        emit(l, t == TYPE_F16 ? OP_FTZ_F16 : t == TYPE_F16X2 ? OP_FTZ_F16X2 : OP_FTZ_F32, 0, d, d, 0, 0);
    if (has(l, M(SAT)))
        emit(l, t == TYPE_F16     ? OP_SAT_F16
                : t == TYPE_F16X2 ? OP_SAT_F16X2
                : t == TYPE_F64   ? OP_SAT_F64
                                  : OP_SAT_F32,
             0, d, d, 0, 0);
}

static void check_float_modifiers(struct lower *l)
{
    enum type t = l->type;
    check_rounding(l);
    if (has(l, M(FTZ)) && (t == TYPE_F64 || t == TYPE_BF16 || t == TYPE_BF16X2))
        lower_refuse(l, ".ftz does not go with this type");
    if (has(l, M(SAT)) && (t == TYPE_F64 || t == TYPE_BF16 || t == TYPE_BF16X2))
        lower_refuse(l, ".sat does not go with this type");
    if (is_half(t) && !is_nearest(rounding_of(l)))
        lower_refuse(l, "half precision rounds to nearest only");
}

struct float_ops {
    enum microop f32, f32_ftz, f32_rounded, f64, f64_rounded, half, packed;
};

/* d = op(a, b[, c]) with rounding, .ftz and .sat; `count` operands. */
static void lower_float(struct lower *l, const struct float_ops *ops, uint32_t count)
{
    enum type t = l->type;
    check_float_modifiers(l);
    uint32_t s[3] = {0};
    for (uint32_t i = 0; i < count; i++)
        s[i] = source(l, i + 1, t);
    uint32_t d = destination(l, 0, t);
    int rounding = rounding_of(l);
    if (is_half(t)) {
        unsigned mod = half_mod(t) | (has(l, M(RELU)) ? HALF_RELU : 0);
        for (uint32_t i = 0; i < count; i++)
            s[i] = flushed(l, s[i], t);
        emit(l, is_packed(t) ? ops->packed : ops->half, mod, d, s[0], s[1], s[2]);
        finish_float(l, d, t);
        return;
    }
    if (has(l, M(RELU)))
        lower_refuse(l, ".relu goes with half precision only");
    if (t == TYPE_F64) {
        emit(l, is_nearest(rounding) ? ops->f64 : ops->f64_rounded, (unsigned)rounding, d, s[0], s[1], s[2]);
        return;
    }
    if (is_nearest(rounding) && has(l, M(FTZ)) && ops->f32_ftz != OP_MOV) { /* OP_MOV: there is none */
        emit(l, ops->f32_ftz, 0, d, s[0], s[1], s[2]);
        if (has(l, M(SAT)))
            emit(l, OP_SAT_F32, 0, d, d, 0, 0);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        s[i] = flushed(l, s[i], t);
    emit(l, is_nearest(rounding) ? ops->f32 : ops->f32_rounded, (unsigned)rounding, d, s[0], s[1], s[2]);
    finish_float(l, d, t);
}

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

static void binary(struct lower *l, enum microop op, enum type t)
{
    uint32_t a = source(l, 1, t), b = source(l, 2, t);
    emit(l, op, 0, destination(l, 0, t), a, b, 0);
}

static void unary(struct lower *l, enum microop op, unsigned mod, enum type dt, enum type t)
{
    uint32_t a = source(l, 1, t);
    emit(l, op, mod, destination(l, 0, dt), a, 0, 0);
}

void lower_add(struct lower *l)
{
    static const struct float_ops ops = {OP_ADD_F32, OP_ADD_FTZ_F32, OP_ADD_RND_F32, OP_ADD_F64, OP_ADD_RND_F64, OP_ADD_H, OP_ADD_HX2};
    need_type(l);
    if (is_float(l->type)) {
        only(l, M(ROUND) | M(FTZ) | M(SAT));
        lower_float(l, &ops, 2);
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
    static const struct float_ops ops = {OP_SUB_F32, OP_SUB_FTZ_F32, OP_SUB_RND_F32, OP_SUB_F64, OP_SUB_RND_F64, OP_SUB_H, OP_SUB_HX2};
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
    static const struct float_ops ops = {OP_MUL_F32, OP_MUL_FTZ_F32, OP_MUL_RND_F32, OP_MUL_F64, OP_MUL_RND_F64, OP_MUL_H, OP_MUL_HX2};
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
    static const struct float_ops ops = {OP_FMA_F32, OP_FMA_FTZ_F32, OP_FMA_RND_F32, OP_FMA_F64, OP_FMA_RND_F64, OP_FMA_H, OP_FMA_HX2};
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
    static const struct float_ops full = {OP_DIV_F32, OP_MOV, OP_DIV_RND_F32, OP_DIV_F64, OP_DIV_RND_F64, OP_MOV, OP_MOV};
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

static void lower_min_max(struct lower *l, bool min)
{
    need_type(l);
    enum type t = l->type;
    bool three = operand_at(l, 3) != NULL;
    if (three)
        lower_refuse(l, "the form with three operands is not known here");
    if (!is_float(t)) {
        only(l, 0);
        binary(l, min ? BY_SIGN(l, t, MIN) : BY_SIGN(l, t, MAX), t);
        return;
    }
    bool xorsign = has(l, M(XORSIGN));
    if (xorsign != has(l, M(ABS)) || (t == TYPE_F64 && l->m.set) || (is_half(t) && xorsign) ||
        ((t == TYPE_BF16 || t == TYPE_BF16X2) && has(l, M(FTZ))))
        lower_refuse(l, "this combination of modifiers is not known here");
    uint32_t a = flushed(l, source(l, 1, t), t), b = flushed(l, source(l, 2, t), t), d = destination(l, 0, t);
    bool nan = has(l, M(NAN));
    if (is_half(t)) {
        enum microop op = is_packed(t) ? (min ? OP_MIN_HX2 : OP_MAX_HX2) : (min ? OP_MIN_H : OP_MAX_H);
        emit(l, op, half_mod(t) | (nan ? HALF_NAN : 0), d, a, b, 0);
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

/* ---- reciprocals, roots, approximate functions ---- */

void lower_rcp(struct lower *l)
{
    need_type(l);
    if (has(l, M(APPROX)) == has(l, M(ROUND)))
        lower_refuse(l, "expected .approx or a rounding");
    if (l->type == TYPE_F64 && has(l, M(APPROX))) {
        only(l, M(APPROX) | M(FTZ));
        if (!has(l, M(FTZ)))
            lower_refuse(l, "expected .approx.ftz.f64");
        unary(l, OP_RCP_APPROX_F64, 0, TYPE_F64, TYPE_F64);
        return;
    }
    static const struct float_ops ops = {OP_RCP_F32, OP_MOV, OP_RCP_RND_F32, OP_RCP_F64, OP_RCP_RND_F64, OP_MOV, OP_MOV};
    lower_float(l, &ops, 1);
}

void lower_sqrt(struct lower *l)
{
    need_type(l);
    if (has(l, M(APPROX)) == has(l, M(ROUND)) || (l->type == TYPE_F64 && has(l, M(APPROX))))
        lower_refuse(l, "expected .approx (f32 only) or a rounding");
    static const struct float_ops ops = {OP_SQRT_F32, OP_MOV, OP_SQRT_RND_F32, OP_SQRT_F64, OP_SQRT_RND_F64, OP_MOV, OP_MOV};
    lower_float(l, &ops, 1);
}

static void lower_approx(struct lower *l, enum microop op)
{
    need_type(l);
    if (!has(l, M(APPROX)))
        lower_refuse(l, "expected .approx");
    const struct float_ops ops = {op, OP_MOV, OP_MOV, OP_MOV, OP_MOV, OP_MOV, OP_MOV};
    lower_float(l, &ops, 1);
}

void lower_rsqrt(struct lower *l)
{
    need_type(l);
    if (l->type == TYPE_F64) {
        if (!has(l, M(APPROX)))
            lower_refuse(l, "expected .approx");
        unary(l, has(l, M(FTZ)) ? OP_RSQRT_APPROX_F64 : OP_RSQRT_F64, 0, TYPE_F64, TYPE_F64);
        return;
    }
    lower_approx(l, OP_RSQRT_F32);
}

void lower_sin(struct lower *l)
{
    lower_approx(l, OP_SIN_F32);
}

void lower_cos(struct lower *l)
{
    lower_approx(l, OP_COS_F32);
}

void lower_lg2(struct lower *l)
{
    lower_approx(l, OP_LG2_F32);
}

static void lower_half_approx(struct lower *l, enum microop half, enum microop packed)
{
    enum type t = l->type;
    if (has(l, M(FTZ)) && half_mod(t) == 0)
        lower_refuse(l, ".ftz does not go with this type");
    unary(l, is_packed(t) ? packed : half, half_mod(t), t, t);
}

void lower_ex2(struct lower *l)
{
    need_type(l);
    if (!is_half(l->type))
        lower_approx(l, OP_EX2_F32);
    else if (!has(l, M(APPROX)))
        lower_refuse(l, "expected .approx");
    else if (half_mod(l->type))
        lower_refuse(l, "bfloat16 is not known here"); /* .ftz is required there, and its flushing is */
    else
        lower_half_approx(l, OP_EX2_H, OP_EX2_HX2);
}

void lower_tanh(struct lower *l)
{
    need_type(l);
    if (!is_half(l->type))
        lower_approx(l, OP_TANH_F32);
    else if (!has(l, M(APPROX)))
        lower_refuse(l, "expected .approx");
    else
        lower_half_approx(l, OP_TANH_H, OP_TANH_HX2);
}

/* ---- bits ---- */

void lower_popc(struct lower *l)
{
    need_type(l);
    unary(l, bits_of(l->type) == 64 ? OP_POPC_64 : OP_POPC_32, 0, TYPE_U32, l->type);
}

void lower_clz(struct lower *l)
{
    need_type(l);
    unary(l, bits_of(l->type) == 64 ? OP_CLZ_64 : OP_CLZ_32, 0, TYPE_U32, l->type);
}

void lower_bfind(struct lower *l)
{
    need_type(l);
    bool wide = bits_of(l->type) == 64;
    enum microop op = is_signed(l->type) ? (wide ? OP_BFIND_S64 : OP_BFIND_S32) : (wide ? OP_BFIND_U64 : OP_BFIND_U32);
    unary(l, op, has(l, M(SHIFTAMT)), TYPE_U32, l->type);
}

void lower_fns(struct lower *l)
{
    need_type(l);
    uint32_t a = source(l, 1, TYPE_B32), b = source(l, 2, TYPE_B32), c = source(l, 3, TYPE_S32);
    emit(l, OP_FNS, 0, destination(l, 0, TYPE_B32), a, b, c);
}

void lower_brev(struct lower *l)
{
    need_type(l);
    unary(l, bits_of(l->type) == 64 ? OP_BREV_64 : OP_BREV_32, 0, l->type, l->type);
}

void lower_bfe(struct lower *l)
{
    need_type(l);
    enum type t = l->type;
    bool wide = bits_of(t) == 64;
    uint32_t a = source(l, 1, t), b = source(l, 2, TYPE_U32), c = source(l, 3, TYPE_U32);
    emit(l, is_signed(t) ? (wide ? OP_BFE_S64 : OP_BFE_S32) : (wide ? OP_BFE_U64 : OP_BFE_U32), 0, destination(l, 0, t), a, b, c);
}

void lower_bfi(struct lower *l)
{
    need_type(l);
    enum type t = l->type;
    uint32_t a = source(l, 1, t), b = source(l, 2, t), c = source(l, 3, TYPE_U32), length = source(l, 4, TYPE_U32);
    uint32_t extra = emit_extra(l, length);
    emit(l, bits_of(t) == 64 ? OP_BFI_64 : OP_BFI_32, 0, destination(l, 0, t), a, b, c)->imm = extra;
}

static unsigned clamp_mode(struct lower *l)
{
    if (!has(l, M(CLAMP)))
        lower_refuse(l, "expected .clamp or .wrap");
    return (unsigned)l->m.value[CLASS_CLAMP];
}

void lower_bmsk(struct lower *l)
{
    need_type(l);
    uint32_t a = source(l, 1, TYPE_B32), b = source(l, 2, TYPE_B32);
    emit(l, OP_BMSK, clamp_mode(l), destination(l, 0, TYPE_B32), a, b, 0);
}

void lower_szext(struct lower *l)
{
    need_type(l);
    uint32_t a = source(l, 1, l->type), b = source(l, 2, TYPE_U32);
    emit(l, is_signed(l->type) ? OP_SZEXT_S32 : OP_SZEXT_U32, clamp_mode(l), destination(l, 0, l->type), a, b, 0);
}

static unsigned dot_mod(struct lower *l)
{
    if (l->m.type_count != 2 || (l->m.types[1] != TYPE_U32 && l->m.types[1] != TYPE_S32))
        lower_refuse(l, "expected two types, .u32 or .s32");
    return (is_signed(l->m.types[0]) ? DOT_A_SIGNED : 0u) | (is_signed(l->m.types[1]) ? DOT_B_SIGNED : 0u);
}

static void ternary(struct lower *l, enum microop op, unsigned mod, enum type t)
{
    uint32_t a = source(l, 1, t), b = source(l, 2, t), c = source(l, 3, t);
    emit(l, op, mod, destination(l, 0, t), a, b, c);
}

void lower_dp4a(struct lower *l)
{
    ternary(l, OP_DP4A, dot_mod(l), TYPE_B32);
}

void lower_dp2a(struct lower *l)
{
    unsigned mod = dot_mod(l);
    int half = l->m.value[CLASS_HALF];
    if (half != HALF_LO && half != HALF_HI)
        lower_refuse(l, "expected .lo or .hi");
    ternary(l, OP_DP2A, mod | (half == HALF_HI ? DOT_HIGH : 0), TYPE_B32);
}

void lower_vabsdiff4(struct lower *l)
{
    if (l->m.type_count != 3)
        lower_refuse(l, "expected three types");
    for (int i = 0; i < 3; i++)
        if (l->m.types[i] != TYPE_U32 && l->m.types[i] != TYPE_S32)
            lower_refuse(l, "expected .u32 or .s32");
    bool add = has(l, M(OPER));
    if (add && l->m.value[CLASS_OPER] != ATOM_ADD)
        lower_refuse(l, "only .add is known as its second operation");
    if (!add && is_signed(l->m.types[0]))
        lower_refuse(l, "its bytes are unsigned here");
    unsigned mod = (is_signed(l->m.types[1]) ? DOT_A_SIGNED : 0u) | (is_signed(l->m.types[2]) ? DOT_B_SIGNED : 0u);
    ternary(l, OP_VABSDIFF4, mod | (add ? 4u : 0), TYPE_B32);
}

static void lower_logic(struct lower *l, enum microop word, enum microop pred)
{
    need_type(l);
    binary(l, l->type == TYPE_PRED ? pred : word, l->type);
}

void lower_and(struct lower *l)
{
    lower_logic(l, OP_AND, OP_AND_PRED);
}

void lower_or(struct lower *l)
{
    lower_logic(l, OP_OR, OP_OR_PRED);
}

void lower_xor(struct lower *l)
{
    lower_logic(l, OP_XOR, OP_XOR_PRED);
}

void lower_not(struct lower *l)
{
    need_type(l);
    unary(l, l->type == TYPE_PRED ? OP_NOT_PRED : BY_WIDTH(l, l->type, NOT), 0, l->type, l->type);
}

void lower_cnot(struct lower *l)
{
    need_type(l);
    unary(l, BY_WIDTH(l, l->type, CNOT), 0, l->type, l->type);
}

void lower_lop3(struct lower *l)
{
    need_type(l);
    const struct operand *table = operand_at(l, 4);
    if (!table || table->kind != OPERAND_INT || table->value > 255)
        lower_bad_operand(l, 4, "a truth table from 0 to 255");
    ternary(l, OP_LOP3, (unsigned)table->value, TYPE_B32);
}

static void lower_shift(struct lower *l, enum microop op)
{
    uint32_t a = source(l, 1, l->type), b = source(l, 2, TYPE_U32);
    emit(l, op, 0, destination(l, 0, l->type), a, b, 0);
}

void lower_shl(struct lower *l)
{
    need_type(l);
    lower_shift(l, BY_WIDTH(l, l->type, SHL));
}

void lower_shr(struct lower *l)
{
    need_type(l);
    lower_shift(l, BY_SIGN(l, l->type, SHR));
}

void lower_shf(struct lower *l)
{
    need_type(l);
    unsigned clamp = clamp_mode(l);
    if (!has(l, M(SIDE)))
        lower_refuse(l, "expected .l or .r");
    bool right = l->m.value[CLASS_SIDE];
    ternary(l, right ? (clamp ? OP_SHF_R_CLAMP : OP_SHF_R_WRAP) : (clamp ? OP_SHF_L_CLAMP : OP_SHF_L_WRAP), 0, TYPE_B32);
}

void lower_prmt(struct lower *l)
{
    need_type(l);
    ternary(l, has(l, M(PERMUTE)) ? OP_PRMT_MODE : OP_PRMT, (unsigned)l->m.value[CLASS_PERMUTE], TYPE_B32);
}

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
