/* lower_alu.h - what the files of arithmetic share: types, modifiers, and operations with rounding, .ftz and .sat. */
#ifndef PTX_LOWER_ALU_H
#define PTX_LOWER_ALU_H

#include "ptx/lower.h"

static inline unsigned bits_of(enum type t)
{
    return type_info[t].bits;
}

static inline bool is_float(enum type t)
{
    return type_info[t].kind == 'f';
}

static inline bool is_signed(enum type t)
{
    return type_info[t].kind == 's';
}

static inline bool is_half(enum type t)
{
    return t == TYPE_F16 || t == TYPE_BF16 || t == TYPE_F16X2 || t == TYPE_BF16X2;
}

static inline bool is_packed(enum type t)
{
    return t == TYPE_F16X2 || t == TYPE_BF16X2;
}

static inline bool is_pair(enum type t)
{
    return t == TYPE_U16X2 || t == TYPE_S16X2;
}

static inline unsigned half_mod(enum type t)
{
    return t == TYPE_BF16 || t == TYPE_BF16X2 ? HALF_BF16 : 0;
}

static inline int rounding_of(const struct lower *l)
{
    return has(l, M(ROUND)) ? l->m.value[CLASS_ROUND] : ROUND_NONE;
}

static inline bool is_nearest(int rounding)
{
    return rounding == ROUND_NONE || rounding == ROUND_RN;
}

/* Micro-operations by width: { 16, 32, 64 }. */
enum microop by_width(struct lower *l, enum type t, enum microop w16, enum microop w32, enum microop w64);
#define BY_WIDTH(l, t, NAME) by_width(l, t, OP_##NAME##_16, OP_##NAME##_32, OP_##NAME##_64)
#define BY_SIGN(l, t, NAME)                                                                                            \
    (is_signed(t) ? by_width(l, t, OP_##NAME##_S16, OP_##NAME##_S32, OP_##NAME##_S64)                                  \
                  : by_width(l, t, OP_##NAME##_U16, OP_##NAME##_U32, OP_##NAME##_U64))

void need_type(struct lower *l);              /* exactly one type is given */
void only(struct lower *l, uint64_t allowed); /* no modifiers but these */
void check_float_modifiers(struct lower *l);

struct float_ops {
    enum microop f32, f32_ftz, f32_rounded, f64, f64_rounded, half, packed;
};
/* d = op(a, b[, c]) with rounding, .ftz and .sat; `count` operands. OP_MOV stands for "there is none". */
void lower_float(struct lower *l, const struct float_ops *ops, uint32_t count);
uint32_t flushed(struct lower *l, uint32_t slot, enum type t); /* the operand after .ftz, where that is given */
void binary(struct lower *l, enum microop op, enum type t);
void unary(struct lower *l, enum microop op, unsigned mod, enum type dt, enum type t);

#endif
