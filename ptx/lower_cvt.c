/* lower_cvt.c - cvt, in all its forms, and mov with packing and unpacking. */
#include <string.h>
#include "ptx/lower.h"

static unsigned bits_of(enum type t)
{
    return type_info[t].bits;
}

static char kind_of(enum type t)
{
    return type_info[t].kind;
}

static unsigned int_mod(enum type t)
{
    unsigned width = bits_of(t) == 8 ? 0 : bits_of(t) == 16 ? 1 : bits_of(t) == 32 ? 2 : 3;
    return width << INT_WIDTH_SHIFT | (kind_of(t) == 's' ? INT_SIGNED : 0u);
}

/* cvt takes registers wider than the type: the source's low bits count, the result is extended to the register. */
static enum type register_type(struct lower *l, uint32_t i, enum type t)
{
    const struct operand *o = operand_at(l, i);
    unsigned bits = o ? register_bits(l, o) : 0;
    if (bits <= bits_of(t) || kind_of(t) == 'f')
        return t;
    bool s = kind_of(t) == 's';
    return bits == 16 ? (s ? TYPE_S16 : TYPE_U16) : bits == 32 ? (s ? TYPE_S32 : TYPE_U32) : (s ? TYPE_S64 : TYPE_U64);
}

/* An integer of type t in `slot` as a 64-bit value, sign- or zero-extended. */
static uint32_t extended(struct lower *l, uint32_t slot, enum type t)
{
    enum microop op;
    bool s = kind_of(t) == 's';
    switch (bits_of(t)) {
    case 8:
        op = s ? OP_EXT_S8_64 : OP_EXT_U8;
        break;
    case 16:
        op = s ? OP_EXT_S16_64 : OP_EXT_U16;
        break;
    case 32:
        op = s ? OP_EXT_S32_64 : OP_EXT_U32;
        break;
    default:
        return slot;
    }
    uint32_t d = temporary(l);
    emit(l, op, 0, d, slot, 0, 0);
    return d;
}

/* Writes a 64-bit extended value to a register of `width` bits. */
static void write_int(struct lower *l, uint32_t d, uint32_t value, unsigned width)
{
    emit(l, width == 64 ? OP_MOV : width == 32 ? OP_EXT_U32 : width == 16 ? OP_EXT_U16 : OP_EXT_U8, 0, d, value, 0, 0);
}

static void lower_int_to_int(struct lower *l, enum type dt, enum type st, uint32_t a)
{
    enum type reg = register_type(l, 0, dt);
    uint32_t d = destination(l, 0, reg);
    unsigned width = bits_of(reg);
    bool s_from = kind_of(st) == 's', s_to = kind_of(dt) == 's';
    if (has(l, M(SAT))) {
        uint32_t wide = extended(l, a, st), t = temporary(l);
        emit(l, s_from ? OP_S64_SAT : OP_U64_SAT, int_mod(dt), t, wide, 0, 0);
        write_int(l, d, t, width);
        return;
    }
    enum type t = bits_of(dt) <= bits_of(st) ? dt : st;
    bool sign = t == st && bits_of(st) < bits_of(dt) ? s_from : s_to;
    enum microop op;
    switch (bits_of(t)) {
    case 8:
        op = !sign ? OP_EXT_U8 : width == 64 ? OP_EXT_S8_64 : width == 32 ? OP_EXT_S8_32 : OP_EXT_S8_16;
        break;
    case 16:
        op = !sign || width == 16 ? OP_EXT_U16 : width == 64 ? OP_EXT_S16_64 : OP_EXT_S16_32;
        break;
    case 32:
        op = !sign || width == 32 ? OP_EXT_U32 : OP_EXT_S32_64;
        break;
    default:
        op = OP_MOV;
    }
    emit(l, op, 0, d, a, 0, 0);
}

static int rounding(struct lower *l, int absent)
{
    return has(l, M(ROUND)) ? l->m.value[CLASS_ROUND] : absent;
}

static void lower_int_to_float(struct lower *l, enum type dt, enum type st, uint32_t a)
{
    int mode = rounding(l, ROUND_NONE);
    if (mode == ROUND_NONE || mode == ROUND_RNA || has(l, M(ROUND_INT)))
        lower_refuse(l, "expected a rounding such as .rn");
    if (has(l, M(FTZ)))
        lower_refuse(l, ".ftz does not go with an integer source");
    bool s = kind_of(st) == 's', wide = bits_of(st) == 64;
    uint32_t d = destination(l, 0, dt), x = extended(l, a, st);
    if (dt == TYPE_F32) {
        if (mode == ROUND_RN)
            emit(l, wide ? (s ? OP_S64_TO_F32 : OP_U64_TO_F32) : (s ? OP_S32_TO_F32 : OP_U32_TO_F32), 0, d, x, 0, 0);
        else
            emit(l, s ? OP_S64_TO_F32_RND : OP_U64_TO_F32_RND, (unsigned)mode, d, x, 0, 0);
    } else if (dt == TYPE_F64) {
        if (mode == ROUND_RN || !wide)
            emit(l, wide ? (s ? OP_S64_TO_F64 : OP_U64_TO_F64) : (s ? OP_S32_TO_F64 : OP_U32_TO_F64), 0, d, x, 0, 0);
        else
            emit(l, s ? OP_S64_TO_F64_RND : OP_U64_TO_F64_RND, (unsigned)mode, d, x, 0, 0);
    } else if (dt == TYPE_F16 || dt == TYPE_BF16) {
        uint32_t t = temporary(l);
        emit(l, s ? OP_S64_TO_ODD : OP_U64_TO_ODD, 0, t, x, 0, 0);
        emit(l, dt == TYPE_F16 ? OP_F64_TO_F16 : OP_F64_TO_BF16, (unsigned)mode, d, t, 0, 0);
    } else {
        lower_refuse(l, "this pair of types is not known here");
    }
    if (has(l, M(SAT))) {
        if (dt == TYPE_BF16)
            lower_refuse(l, ".sat does not go with this type");
        emit(l, dt == TYPE_F32 ? OP_SAT_F32 : dt == TYPE_F64 ? OP_SAT_F64 : OP_SAT_F16, 0, d, d, 0, 0);
    }
}

static uint32_t flush(struct lower *l, uint32_t a, enum type t)
{
    if (!has(l, M(FTZ)) || t != TYPE_F32)
        return a; /* cvt.ftz concerns single precision only */
    uint32_t d = temporary(l);
    emit(l, OP_FTZ_F32, 0, d, a, 0, 0);
    return d;
}

static void lower_float_to_int(struct lower *l, enum type dt, enum type st, uint32_t a)
{
    if (!has(l, M(ROUND_INT)) || has(l, M(ROUND)))
        lower_refuse(l, "expected an integer rounding such as .rzi");
    unsigned mode = (unsigned)l->m.value[CLASS_ROUND_INT];
    a = flush(l, a, st);
    enum type reg = register_type(l, 0, dt);
    uint32_t d = destination(l, 0, reg);
    if (dt == TYPE_S32 && reg == dt && st == TYPE_F32 && mode == ROUND_RZ) {
        emit(l, OP_F32_TO_S32_RZ, 0, d, a, 0, 0);
        return;
    }
    uint32_t x = a, t = temporary(l);
    if (st == TYPE_F16 || st == TYPE_BF16) {
        x = temporary(l);
        emit(l, st == TYPE_F16 ? OP_F16_TO_F32 : OP_BF16_TO_F32, 0, x, a, 0, 0);
    }
    emit(l, st == TYPE_F64 ? OP_F64_TO_INT : OP_F32_TO_INT, mode | int_mod(dt), t, x, 0, 0);
    write_int(l, d, t, bits_of(reg));
}

/* f32 or f64 to f16, bf16: one rounding. */
static void narrow(struct lower *l, enum type dt, enum type st, uint32_t d, uint32_t a)
{
    int mode = rounding(l, ROUND_NONE);
    if (mode == ROUND_NONE || mode == ROUND_RNA || has(l, M(ROUND_INT)))
        lower_refuse(l, "expected a rounding such as .rn");
    unsigned mod =
        (unsigned)mode | (has(l, M(RELU)) ? NARROW_RELU : 0u) | (has(l, M(SATFINITE)) ? NARROW_SATFINITE : 0u);
    enum microop op = dt == TYPE_F16 || dt == TYPE_F16X2 ? (st == TYPE_F64 ? OP_F64_TO_F16 : OP_F32_TO_F16)
                                                         : (st == TYPE_F64 ? OP_F64_TO_BF16 : OP_F32_TO_BF16);
    emit(l, op, mod, d, flush(l, a, st), 0, 0);
}

static void saturate(struct lower *l, enum type dt, uint32_t d)
{
    if (!has(l, M(SAT)))
        return;
    if (dt != TYPE_F32 && dt != TYPE_F64 && dt != TYPE_F16)
        lower_refuse(l, ".sat does not go with this type");
    emit(l, dt == TYPE_F32 ? OP_SAT_F32 : dt == TYPE_F64 ? OP_SAT_F64 : OP_SAT_F16, 0, d, d, 0, 0);
}

/* Between the two formats of 16 bits, and rounding to an integral value in one of them. */
static void half_to_half(struct lower *l, enum type dt, enum type st, uint32_t d, uint32_t a)
{
    if (has(l, M(FTZ)) || (dt != st && has(l, M(ROUND_INT))) || (dt == st && has(l, M(ROUND))))
        lower_refuse(l, "this combination of modifiers is not known here");
    if (dt == st && !has(l, M(ROUND_INT))) {
        emit(l, OP_MOV, 0, d, a, 0, 0);
        return;
    }
    uint32_t x = temporary(l);
    emit(l, st == TYPE_F16 ? OP_F16_TO_F32 : OP_BF16_TO_F32, 0, x, a, 0, 0);
    if (dt != st) {
        narrow(l, dt, TYPE_F32, d, x);
        return;
    }
    uint32_t y = temporary(l);
    emit(l, OP_RINT_F32, (unsigned)l->m.value[CLASS_ROUND_INT], y, x, 0, 0);
    emit(l, dt == TYPE_F16 ? OP_F32_TO_F16 : OP_F32_TO_BF16, ROUND_RN, d, y, 0, 0);
}

static void lower_float_to_float(struct lower *l, enum type dt, enum type st, uint32_t a)
{
    uint32_t d = destination(l, 0, dt);
    int mode = rounding(l, ROUND_NONE);
    bool half_from = st == TYPE_F16 || st == TYPE_BF16, half_to = dt == TYPE_F16 || dt == TYPE_BF16;
    if (has(l, M(RELU) | M(SATFINITE)) && !(half_to && st == TYPE_F32))
        lower_refuse(l, "this combination of modifiers is not known here");
    if (dt == st && !half_to) { /* rounds to an integral value, or only saturates */
        if (has(l, M(ROUND)))
            lower_refuse(l, "expected an integer rounding such as .rni");
        a = flush(l, a, st);
        if (has(l, M(ROUND_INT)))
            emit(l, st == TYPE_F64 ? OP_RINT_F64 : OP_RINT_F32, (unsigned)l->m.value[CLASS_ROUND_INT], d, a, 0, 0);
        else
            emit(l, OP_MOV, 0, d, a, 0, 0);
    } else if (half_to && half_from) {
        half_to_half(l, dt, st, d, a);
    } else if (half_to) {
        narrow(l, dt, st, d, a);
    } else if (half_from) { /* PTX lets bf16 name a rounding, which then does nothing */
        if ((mode != ROUND_NONE && st != TYPE_BF16) || has(l, M(ROUND_INT)))
            lower_refuse(l, "widening takes no rounding");
        uint32_t x = dt == TYPE_F32 ? d : temporary(l);
        emit(l, st == TYPE_F16 ? OP_F16_TO_F32 : OP_BF16_TO_F32, 0, x, a, 0, 0);
        if (dt == TYPE_F64)
            emit(l, OP_F32_TO_F64, 0, d, x, 0, 0);
        else if (has(l, M(FTZ)))
            emit(l, OP_FTZ_F32, 0, d, d, 0, 0);
    } else if (dt == TYPE_F64) {
        if (mode != ROUND_NONE || has(l, M(ROUND_INT)))
            lower_refuse(l, "widening takes no rounding");
        emit(l, OP_F32_TO_F64, 0, d, flush(l, a, st), 0, 0);
    } else {
        if (mode == ROUND_NONE || mode == ROUND_RNA || has(l, M(ROUND_INT)))
            lower_refuse(l, "expected a rounding such as .rn");
        emit(l, mode == ROUND_RN ? OP_F64_TO_F32 : OP_F64_TO_F32_RND, (unsigned)mode, d, a, 0, 0);
        if (has(l, M(FTZ)))
            emit(l, OP_FTZ_F32, 0, d, d, 0, 0);
    }
    saturate(l, dt, d);
}

/* cvt.rn.f16x2.f32 d, a, b: a in the upper half. */
static void pack_two(struct lower *l, enum type dt)
{
    if (l->m.types[1] != TYPE_F32 || has(l, M(SAT)))
        lower_refuse(l, "this combination of modifiers is not known here");
    uint32_t a = source(l, 1, TYPE_F32), b = source(l, 2, TYPE_F32), d = destination(l, 0, dt);
    uint32_t high = temporary(l), low = temporary(l);
    narrow(l, dt, TYPE_F32, high, a);
    narrow(l, dt, TYPE_F32, low, b);
    emit(l, OP_PACK_16, 16, d, low, high, 0);
}

/* cvt.rna.tf32.f32 and its kind: tf32 is no register type, but a word of its own. */
static void lower_to_tf32(struct lower *l)
{
    int round = l->m.value[CLASS_ROUND];
    bool nearest_or_zero = round == ROUND_RN || round == ROUND_RZ;
    if (strcmp(l->s->mods[l->s->mod_count - 1]->text, "tf32") == 0)
        lower_refuse(l, "tf32 cannot be converted from");
    if (!has(l, M(ROUND)) || (!nearest_or_zero && round != ROUND_RNA) || has(l, M(ROUND_INT) | M(FTZ) | M(SAT)) ||
        (has(l, M(RELU)) && !nearest_or_zero) || l->m.type_count != 1 || l->type != TYPE_F32 ||
        l->s->operand_count != 2)
        lower_refuse(l, "expected .rna, .rn or .rz, .tf32.f32");
    unsigned mod =
        (unsigned)round | (has(l, M(RELU)) ? NARROW_RELU : 0u) | (has(l, M(SATFINITE)) ? NARROW_SATFINITE : 0u);
    uint32_t a = source(l, 1, TYPE_F32);
    emit(l, OP_F32_TO_TF32, mod, destination(l, 0, TYPE_B32), a, 0, 0);
}

/* ---- formats of 8 bits and fewer ---- */

static bool is_mini(enum type t)
{
    return t >= TYPE_E4M3X2 && t <= TYPE_E2M1X2;
}

static unsigned mini_mod(const struct lower *l, enum type t)
{
    return (unsigned)(t - TYPE_E4M3X2) | (has(l, M(RELU)) ? MINI_RELU : 0u);
}
_Static_assert(TYPE_E2M1X2 - TYPE_E4M3X2 == MINI_E2M1, "the formats are in the order of their types");

/* Two numbers of such a format from two singles, or from the two halves of a register. */
static void lower_to_mini(struct lower *l, enum type dt, enum type st)
{
    bool two = st == TYPE_F32, bf16 = st == TYPE_BF16X2;
    if (l->m.value[CLASS_ROUND] != ROUND_RN || !has(l, M(SATFINITE)) || has(l, M(ROUND_INT) | M(FTZ) | M(SAT)) ||
        (!two && !bf16 && st != TYPE_F16X2) || l->s->operand_count != (two ? 3u : 2u))
        lower_refuse(l, "expected .rn.satfinite, and two .f32, or one .f16x2 or .bf16x2");
    uint32_t byte[2];
    for (uint32_t i = 0; i < 2; i++) { /* the lower one first: it comes from the last source */
        uint32_t single;
        byte[i] = temporary(l);
        if (two) {
            single = source(l, 2 - i, TYPE_F32);
        } else {
            uint32_t half = temporary(l);
            single = temporary(l);
            emit(l, OP_PART_16, 16 * i, half, source(l, 1, st), 0, 0);
            emit(l, bf16 ? OP_BF16_TO_F32 : OP_F16_TO_F32, 0, single, half, 0, 0);
        }
        emit(l, OP_F32_TO_MINI, mini_mod(l, dt), byte[i], single, 0, 0);
    }
    emit(l, OP_MERGE, bits_of(dt) / 2, destination(l, 0, bits_of(dt) == 8 ? TYPE_B8 : TYPE_B16), byte[0], byte[1], 0);
}

static void lower_from_mini(struct lower *l, enum type dt, enum type st)
{
    if (dt != TYPE_F16X2 || l->m.value[CLASS_ROUND] != ROUND_RN ||
        has(l, M(ROUND_INT) | M(FTZ) | M(SAT) | M(SATFINITE)) || l->s->operand_count != 2)
        lower_refuse(l, "expected .rn, to .f16x2");
    unsigned bits = bits_of(st) / 2;
    uint32_t a = source(l, 1, bits == 4 ? TYPE_B8 : TYPE_B16), half[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t part = temporary(l);
        half[i] = temporary(l);
        if (bits == 4)
            emit(l, OP_BFE_U32, 0, part, a, constant(l, 4 * i), constant(l, 4));
        else
            emit(l, OP_PART_8, 8 * i, part, a, 0, 0);
        emit(l, OP_MINI_TO_F16, mini_mod(l, st), half[i], part, 0, 0);
    }
    emit(l, OP_PACK_16, 16, destination(l, 0, TYPE_B32), half[0], half[1], 0);
}

/* cvt.pack.sat.u8.s32.b32 d, a, b, c: a and b saturated, b lowest, the rest from c. */
static void lower_pack(struct lower *l)
{
    bool small = has(l, M(SUBBYTE));
    uint32_t types = small ? 0 : 1; /* types before .s32 */
    enum type dt = small ? TYPE_NONE : l->m.types[0];
    int width = small ? l->m.value[CLASS_SUBBYTE] : (kind_of(dt) == 's' ? -(int)bits_of(dt) : (int)bits_of(dt));
    bool fits = width >= -16 && width <= 16 && (small || kind_of(dt) == 's' || kind_of(dt) == 'u');
    bool third = width > -16 && width < 16;
    if (!fits || !has(l, M(SAT)) || has(l, ~(M(PACK) | M(SAT) | M(SUBBYTE))) ||
        l->m.type_count != types + (third ? 2u : 1u) || l->m.types[types] != TYPE_S32 ||
        (third && l->m.types[types + 1] != TYPE_B32) || l->s->operand_count != (third ? 4u : 3u))
        lower_refuse(l, "expected cvt.pack.sat.TYPE.s32, with .b32 for less than 16 bits");
    unsigned bits = (unsigned)(width < 0 ? -width : width);
    uint32_t lowest = width < 0 ? 0 - (1u << (bits - 1)) : 0, most = (1u << (width < 0 ? bits - 1 : bits)) - 1;
    uint32_t part[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t above = temporary(l), both = temporary(l);
        part[i] = temporary(l);
        emit(l, OP_MAX_S32, 0, above, source(l, 1 + i, TYPE_S32), constant(l, lowest), 0);
        emit(l, OP_MIN_S32, 0, both, above, constant(l, most), 0);
        emit(l, OP_AND, 0, part[i], both, constant(l, (1u << bits) - 1), 0);
    }
    uint32_t upper = temporary(l), pair = temporary(l), rest = temporary(l);
    emit(l, OP_SHL_32, 0, upper, part[0], constant(l, bits), 0);
    if (!third) {
        emit(l, OP_OR, 0, destination(l, 0, TYPE_B32), part[1], upper, 0);
        return;
    }
    emit(l, OP_OR, 0, pair, part[1], upper, 0);
    emit(l, OP_SHL_32, 0, rest, source(l, 3, TYPE_B32), constant(l, 2 * bits), 0);
    emit(l, OP_OR, 0, destination(l, 0, TYPE_B32), pair, rest, 0);
}

void lower_cvt(struct lower *l)
{
    if (has(l, M(PACK))) {
        lower_pack(l);
        return;
    }
    if (has(l, M(SUBBYTE)) || operand_at(l, 3))
        lower_refuse(l, "this combination of modifiers is not known here");
    if (has(l, M(TF32))) {
        lower_to_tf32(l);
        return;
    }
    if (l->m.type_count != 2)
        lower_refuse(l, "expected two types");
    enum type dt = l->m.types[0], st = l->m.types[1];
    if (is_mini(dt) || is_mini(st)) {
        if (is_mini(dt))
            lower_to_mini(l, dt, st);
        else
            lower_from_mini(l, dt, st);
        return;
    }
    if (operand_at(l, 2)) {
        if (dt != TYPE_F16X2 && dt != TYPE_BF16X2)
            lower_refuse(l, "two sources go with a packed type");
        pack_two(l, dt);
        return;
    }
    char dk = kind_of(dt), sk = kind_of(st);
    bool known = (dk == 'u' || dk == 's' || dk == 'f') && (sk == 'u' || sk == 's' || sk == 'f') && dt != TYPE_F16X2 &&
                 dt != TYPE_BF16X2 && st != TYPE_F16X2 && st != TYPE_BF16X2;
    if (!known)
        lower_refuse(l, "this pair of types is not known here");
    if (has(l, M(FTZ)) && dt != TYPE_F32 && st != TYPE_F32)
        lower_refuse(l, ".ftz needs an end that is .f32");
    uint32_t a = source(l, 1, register_type(l, 1, st));
    if (dk != 'f' && sk != 'f') {
        if (has(l, M(ROUND) | M(ROUND_INT) | M(FTZ) | M(RELU) | M(SATFINITE)))
            lower_refuse(l, "integers take no rounding");
        lower_int_to_int(l, dt, st, a);
    } else if (dk == 'f' && sk != 'f') {
        if (has(l, M(RELU) | M(SATFINITE)))
            lower_refuse(l, "this combination of modifiers is not known here");
        lower_int_to_float(l, dt, st, a);
    } else if (dk != 'f') {
        if (has(l, M(RELU) | M(SATFINITE)))
            lower_refuse(l, "this combination of modifiers is not known here");
        lower_float_to_int(l, dt, st, a);
    } else {
        lower_float_to_float(l, dt, st, a);
    }
}

/* ---- mov ---- */

static enum type part_type(struct lower *l, enum type whole, uint32_t parts)
{
    unsigned bits = bits_of(whole) / parts;
    switch (bits) {
    case 8:
        return TYPE_B8;
    case 16:
        return TYPE_B16;
    case 32:
        return TYPE_B32;
    case 64:
        return TYPE_B64;
    default:
        lower_refuse(l, "a vector of this many elements does not fit its type");
    }
}

static void check_part(struct lower *l, const struct operand *item, enum type part)
{
    unsigned bits = item->kind == OPERAND_NAME ? register_bits(l, item) : 0;
    if (bits && bits != bits_of(part))
        reader_fail(l->reader, STATUS_BAD_INPUT, item->at, "expected a %u-bit element of the vector", bits_of(part));
}

static void pack(struct lower *l, const struct operand *v)
{
    enum type part = part_type(l, l->type, v->item_count);
    unsigned bits = bits_of(part);
    uint32_t d = destination(l, 0, l->type), value = 0;
    for (uint32_t i = 0; i < v->item_count; i++) {
        check_part(l, &v->items[i], part);
        uint32_t item = source_operand(l, &v->items[i], part);
        if (i == 0) {
            value = item;
            continue;
        }
        /* The last step writes d, so that d may be among the elements. */
        uint32_t to = i + 1 == v->item_count ? d : temporary(l);
        emit(l, OP_MERGE, bits * i, to, value, item, 0);
        value = to;
    }
}

static void unpack(struct lower *l, const struct operand *v)
{
    enum type part = part_type(l, l->type, v->item_count);
    unsigned bits = bits_of(part);
    uint32_t a = source(l, 1, l->type);
    uint32_t copy = temporary(l); /* a may be among the elements */
    emit(l, OP_MOV, 0, copy, a, 0, 0);
    for (uint32_t i = 0; i < v->item_count; i++) {
        if (is_sink(&v->items[i]))
            continue;
        check_part(l, &v->items[i], part);
        emit(l,
             bits == 8    ? OP_PART_8
             : bits == 16 ? OP_PART_16
                          : OP_PART_32,
             bits * i, destination_operand(l, &v->items[i], part), copy, 0, 0);
    }
}

/* 128 bits: a register, or two of 64 in braces. */
static void lower_mov_wide(struct lower *l, const struct operand *d, const struct operand *a)
{
    uint32_t from[2], to[2];
    if ((d->kind == OPERAND_VECTOR && (d->item_count != 2 || a->kind == OPERAND_VECTOR)) ||
        (a->kind == OPERAND_VECTOR && a->item_count != 2))
        lower_refuse(l, "expected .b128 registers, or two of 64 bits");
    if (a->kind == OPERAND_VECTOR)
        for (uint32_t i = 0; i < 2; i++)
            from[i] = source_operand(l, &a->items[i], TYPE_B64);
    else
        source_wide(l, a, from);
    if (d->kind == OPERAND_VECTOR)
        for (uint32_t i = 0; i < 2; i++)
            to[i] = destination_operand(l, &d->items[i], TYPE_B64);
    else
        destination_wide(l, d, to);
    for (uint32_t i = 0; i < 2; i++)
        emit(l, OP_MOV, 0, to[i], from[i], 0, 0);
}

void lower_mov(struct lower *l)
{
    if (l->m.type_count != 1)
        lower_refuse(l, "expected one type");
    const struct operand *d = operand_at(l, 0), *a = operand_at(l, 1);
    bool vector_d = d->kind == OPERAND_VECTOR, vector_a = a->kind == OPERAND_VECTOR;
    if (l->type == TYPE_B128) {
        lower_mov_wide(l, d, a);
        return;
    }
    if (vector_d && vector_a)
        lower_bad_operand(l, 1, "a register");
    if ((vector_d || vector_a) && kind_of(l->type) != 'b')
        lower_refuse(l, "packing takes a .b type");
    if (vector_a && a->item_count < 2)
        lower_bad_operand(l, 1, "a vector of 2 or 4 elements");
    if (vector_d && d->item_count < 2)
        lower_bad_operand(l, 0, "a vector of 2 or 4 elements");
    if (vector_a) {
        pack(l, a);
    } else if (vector_d) {
        unpack(l, d);
    } else {
        uint32_t s = source(l, 1, l->type);
        emit(l, OP_MOV, 0, destination(l, 0, l->type), s, 0, 0);
    }
}
