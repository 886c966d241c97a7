/* lower_bits.c - bits, shifts, logic, dot products of bytes. */
#include "ptx/lower_alu.h"

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
    emit(l, is_signed(t) ? (wide ? OP_BFE_S64 : OP_BFE_S32) : (wide ? OP_BFE_U64 : OP_BFE_U32), 0, destination(l, 0, t),
         a, b, c);
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
    const struct operand *d = operand_at(l, 0);
    if (!has(l, M(OPER))) {
        if (d->pair || operand_at(l, 5))
            lower_bad_operand(l, 0, "one destination");
        ternary(l, OP_LOP3, (unsigned)table->value, TYPE_B32);
        return;
    }
    int op = l->m.value[CLASS_OPER]; /* p = (d != 0) op q */
    if ((op != ATOM_AND && op != ATOM_OR) || !d->pair || !operand_at(l, 5))
        lower_refuse(l, "expected .and or .or, d|p, and a predicate");
    uint32_t a = source(l, 1, TYPE_B32), b = source(l, 2, TYPE_B32), c = source(l, 3, TYPE_B32),
             q = source(l, 5, TYPE_PRED), r = is_sink(d) ? temporary(l) : destination(l, 0, TYPE_B32),
             nonzero = temporary(l);
    emit(l, OP_LOP3, (unsigned)table->value, r, a, b, c);
    emit(l, OP_NE_32, 0, nonzero, r, constant(l, 0), 0);
    emit(l, op == ATOM_AND ? OP_AND_PRED : OP_OR_PRED, 0, destination_operand(l, d->pair, TYPE_PRED), nonzero, q, 0);
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
    ternary(l, right ? (clamp ? OP_SHF_R_CLAMP : OP_SHF_R_WRAP) : (clamp ? OP_SHF_L_CLAMP : OP_SHF_L_WRAP), 0,
            TYPE_B32);
}

void lower_prmt(struct lower *l)
{
    need_type(l);
    ternary(l, has(l, M(PERMUTE)) ? OP_PRMT_MODE : OP_PRMT, (unsigned)l->m.value[CLASS_PERMUTE], TYPE_B32);
}
