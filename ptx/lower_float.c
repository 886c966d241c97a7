/* lower_float.c - floating-point operations in general, and the approximate ones. Rare modifiers become extra
 * micro-operations around the plain one (.ftz flushes operands and result, .sat clamps the result), so that each has
 * one meaning. */
#include "ptx/lower_alu.h"

enum microop by_width(struct lower *l, enum type t, enum microop w16, enum microop w32, enum microop w64)
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

void need_type(struct lower *l)
{
    if (l->m.type_count == 0)
        lower_refuse(l, "its type is missing");
    if (l->m.type_count > 1)
        lower_refuse(l, "it takes one type");
}

void only(struct lower *l, uint64_t allowed)
{
    if (l->m.set & ~allowed)
        lower_refuse(l, "this combination of modifiers is not known here");
}

static void check_rounding(struct lower *l)
{
    if (rounding_of(l) == ROUND_RNA)
        lower_refuse(l, "it does not round this way");
}

/* ---- .ftz and .sat as separate steps ---- */

uint32_t flushed(struct lower *l, uint32_t slot, enum type t)
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
        emit(l,
             t == TYPE_F16     ? OP_SAT_F16
             : t == TYPE_F16X2 ? OP_SAT_F16X2
             : t == TYPE_F64   ? OP_SAT_F64
                               : OP_SAT_F32,
             0, d, d, 0, 0);
}

void check_float_modifiers(struct lower *l)
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

void lower_float(struct lower *l, const struct float_ops *ops, uint32_t count)
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
        emit(l, ops->f32_ftz, (unsigned)rounding, d, s[0], s[1], s[2]);
        if (has(l, M(SAT)))
            emit(l, OP_SAT_F32, 0, d, d, 0, 0);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        s[i] = flushed(l, s[i], t);
    unsigned bounded = has(l, M(APPROX) | M(FULL)) ? FLOAT_APPROXIMATE : 0;
    emit(l, is_nearest(rounding) ? ops->f32 : ops->f32_rounded, (unsigned)rounding | bounded, d, s[0], s[1], s[2]);
    finish_float(l, d, t);
}

void binary(struct lower *l, enum microop op, enum type t)
{
    uint32_t a = source(l, 1, t), b = source(l, 2, t);
    emit(l, op, 0, destination(l, 0, t), a, b, 0);
}

void unary(struct lower *l, enum microop op, unsigned mod, enum type dt, enum type t)
{
    uint32_t a = source(l, 1, t);
    emit(l, op, mod, destination(l, 0, dt), a, 0, 0);
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
    static const struct float_ops ops = {OP_RCP_F32,     OP_MOV, OP_RCP_RND_F32, OP_RCP_F64,
                                         OP_RCP_RND_F64, OP_MOV, OP_MOV};
    lower_float(l, &ops, 1);
}

void lower_sqrt(struct lower *l)
{
    need_type(l);
    if (has(l, M(APPROX)) == has(l, M(ROUND)) || (l->type == TYPE_F64 && has(l, M(APPROX))))
        lower_refuse(l, "expected .approx (f32 only) or a rounding");
    static const struct float_ops ops = {OP_SQRT_F32,     OP_MOV, OP_SQRT_RND_F32, OP_SQRT_F64,
                                         OP_SQRT_RND_F64, OP_MOV, OP_MOV};
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
    else if (half_mod(l->type) && !has(l, M(FTZ)))
        lower_refuse(l, "expected .approx.ftz");
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
