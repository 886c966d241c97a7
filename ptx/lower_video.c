/* lower_video.c - video instructions. The scalar ones take parts of registers as 33-bit numbers: steps over 64-bit
 * slots, then saturation, a second operation with c, or a part of c replaced. The SIMD ones are one step over two
 * halves or four bytes, which selectors pick from a and b before. */
#include "ptx/lower_alu.h"

/* ---- parts of registers ---- */

struct part {
    unsigned bits, shift;
};

static struct part part_of(struct lower *l, uint32_t i)
{
    const struct operand *o = operand_at(l, i);
    if (!o->selector)
        return (struct part){32, 0};
    unsigned bits = o->selector->text[0] == 'h' ? 16 : 8, n = (unsigned)(o->selector->text[1] - '0');
    if (o->selector->length != 2 || n >= 32 / bits)
        lower_bad_operand(l, i, "a part such as .h0, .h1, .b0 to .b3");
    return (struct part){bits, n * bits};
}

static struct operand whole(struct lower *l, uint32_t i)
{
    struct operand o = *operand_at(l, i);
    if (o.pair || o.negated)
        lower_bad_operand(l, i, "a register or a literal");
    o.selector = NULL;
    o.minus = false;
    return o;
}

/* Part of source i, sign- or zero-extended to 64 bits. */
static uint32_t extracted(struct lower *l, uint32_t i, enum type t)
{
    struct part p = part_of(l, i);
    struct operand o = whole(l, i);
    uint32_t slot = source_operand(l, &o, t);
    if (p.bits < 32) {
        uint32_t low = temporary(l);
        emit(l, p.bits == 8 ? OP_PART_8 : OP_PART_16, p.shift, low, slot, 0, 0);
        slot = low;
    }
    if (!is_signed(t))
        return slot;
    uint32_t wide = temporary(l);
    emit(l, p.bits == 8 ? OP_EXT_S8_64 : p.bits == 16 ? OP_EXT_S16_64 : OP_EXT_S32_64, 0, wide, slot, 0, 0);
    return wide;
}

static void need_types(struct lower *l, uint32_t count)
{
    if (l->m.type_count != count)
        lower_refuse(l, count == 3 ? "expected three types" : "expected two types");
    for (uint32_t i = 0; i < count; i++)
        if (l->m.types[i] != TYPE_U32 && l->m.types[i] != TYPE_S32)
            lower_refuse(l, "expected .u32 or .s32");
}

/* ---- scalar ---- */

/* The second half of all of them: `value` (64 bits) saturated to the destination's type and width, then combined with
 * c. */
static void finish(struct lower *l, uint32_t value, enum type dt)
{
    struct part d = part_of(l, 0);
    bool second = has(l, M(OPER)), merge = d.bits < 32, c = operand_at(l, 3) != NULL;
    if ((!c && (second || merge)) || (second && merge))
        lower_refuse(l, "a second operation, or a part of the destination, takes a third source");
    if (has(l, M(SAT))) {
        unsigned width = d.bits == 8 ? 0 : d.bits == 16 ? 1 : 2;
        uint32_t t = temporary(l);
        emit(l, OP_S64_SAT, width << INT_WIDTH_SHIFT | (is_signed(dt) ? INT_SIGNED : 0u), t, value, 0, 0);
        value = t;
    }
    struct operand to = whole(l, 0);
    uint32_t low = temporary(l);
    if (second) {
        int op = l->m.value[CLASS_OPER];
        if (op != ATOM_ADD && op != ATOM_MIN && op != ATOM_MAX)
            lower_refuse(l, "expected .add, .min or .max as second operation");
        uint32_t wide = extracted(l, 3, dt), t = temporary(l);
        emit(l, op == ATOM_ADD ? OP_ADD_64 : op == ATOM_MIN ? OP_MIN_S64 : OP_MAX_S64, 0, t, value, wide, 0);
        value = t;
    }
    if (!merge) {
        emit(l, OP_EXT_U32, 0, destination_operand(l, &to, TYPE_B32), value, 0, 0);
        return;
    }
    uint64_t mask = (UINT64_C(1) << d.bits) - 1;
    uint32_t source_c = source(l, 3, TYPE_B32), rest = temporary(l), moved = temporary(l);
    emit(l, OP_AND, 0, low, value, constant(l, mask), 0);
    emit(l, OP_SHL_32, 0, moved, low, constant(l, d.shift), 0);
    emit(l, OP_AND, 0, rest, source_c, constant(l, ~(mask << d.shift) & UINT32_MAX), 0);
    emit(l, OP_OR, 0, destination_operand(l, &to, TYPE_B32), moved, rest, 0);
}

static void lower_scalar(struct lower *l, enum microop op)
{
    need_types(l, 3);
    uint32_t a = extracted(l, 1, l->m.types[1]), b = extracted(l, 2, l->m.types[2]), value = temporary(l);
    emit(l, op, 0, value, a, b, 0);
    finish(l, value, l->m.types[0]);
}

void lower_vadd(struct lower *l)
{
    lower_scalar(l, OP_ADD_64);
}

void lower_vsub(struct lower *l)
{
    lower_scalar(l, OP_SUB_64);
}

void lower_vmin(struct lower *l)
{
    lower_scalar(l, OP_MIN_S64);
}

void lower_vmax(struct lower *l)
{
    lower_scalar(l, OP_MAX_S64);
}

void lower_vabsdiff(struct lower *l)
{
    need_types(l, 3);
    uint32_t a = extracted(l, 1, l->m.types[1]), b = extracted(l, 2, l->m.types[2]);
    uint32_t difference = temporary(l), value = temporary(l);
    emit(l, OP_SUB_64, 0, difference, a, b, 0);
    emit(l, OP_ABS_64, 0, value, difference, 0, 0);
    finish(l, value, l->m.types[0]);
}

static void lower_video_shift(struct lower *l, enum microop op)
{
    need_types(l, 3);
    if (l->m.types[2] != TYPE_U32 || !has(l, M(CLAMP)))
        lower_refuse(l, "expected an amount of type .u32, and .clamp or .wrap");
    uint32_t a = extracted(l, 1, l->m.types[1]), b = extracted(l, 2, TYPE_U32), n = temporary(l), value = temporary(l);
    bool clamp = l->m.value[CLASS_CLAMP];
    emit(l, clamp ? OP_MIN_U64 : OP_AND, 0, n, b, constant(l, clamp ? 32 : 31), 0);
    emit(l, op, 0, value, a, n, 0);
    finish(l, value, l->m.types[0]);
}

void lower_vshl(struct lower *l)
{
    lower_video_shift(l, OP_VIDEO_SHL);
}

void lower_vshr(struct lower *l)
{
    lower_video_shift(l, OP_SHR_S64);
}

void lower_vset(struct lower *l)
{
    need_types(l, 2);
    static const struct {
        enum microop op;
        bool swap;
    } compares[] = {
        [COMPARE_EQ] = {OP_EQ_64, false},  [COMPARE_NE] = {OP_NE_64, false}, [COMPARE_LT] = {OP_LT_S64, false},
        [COMPARE_LE] = {OP_LE_S64, false}, [COMPARE_GT] = {OP_LT_S64, true}, [COMPARE_GE] = {OP_LE_S64, true},
    };
    int compare = l->m.value[CLASS_COMPARE];
    if (!has(l, M(COMPARE)) || compare > COMPARE_GE)
        lower_refuse(l, "expected .eq, .ne, .lt, .le, .gt or .ge");
    uint32_t a = extracted(l, 1, l->m.types[0]), b = extracted(l, 2, l->m.types[1]), value = temporary(l);
    bool swap = compares[compare].swap;
    emit(l, compares[compare].op, 0, value, swap ? b : a, swap ? a : b, 0);
    finish(l, value, TYPE_U32);
}

void lower_vmad(struct lower *l)
{
    need_types(l, 3);
    bool minus = operand_at(l, 1)->minus != operand_at(l, 2)->minus, minus_c = operand_at(l, 3)->minus;
    bool any = operand_at(l, 1)->minus || operand_at(l, 2)->minus || minus_c, one = has(l, M(PLUS_ONE));
    if ((one && any) || (minus && minus_c))
        lower_refuse(l, "these signs do not go together");
    bool is_final_signed = is_signed(l->m.types[1]) || is_signed(l->m.types[2]) || minus || minus_c;
    unsigned mod = (minus ? VMAD_MINUS : 0u) | (minus_c ? VMAD_MINUS_C : 0u) | (one ? VMAD_PLUS_ONE : 0u) |
                   (is_final_signed ? VMAD_SIGNED : 0u) | (has(l, M(SAT)) ? VMAD_SAT : 0u) |
                   (unsigned)l->m.value[CLASS_SCALE] << VMAD_SHIFT;
    uint32_t a = extracted(l, 1, l->m.types[1]), b = extracted(l, 2, l->m.types[2]);
    struct operand c = whole(l, 3);
    uint32_t addend = source_operand(l, &c, TYPE_B32);
    emit(l, OP_VIDEO_MAD, mod, destination(l, 0, TYPE_B32), a, b, addend);
}

/* ---- SIMD ---- */

/* The elements that source i's selector picks from a and b (digits, the uppermost first), as one register. */
static uint32_t selected(struct lower *l, uint32_t i, bool halves, uint32_t a, uint32_t b)
{
    const struct name *s = operand_at(l, i)->selector;
    uint32_t count = halves ? 2 : 4, bytes = 0;
    if (!s)
        return i == 1 ? a : b;
    if (s->text[0] != (halves ? 'h' : 'b') || s->length != count + 1)
        lower_bad_operand(l, i, "elements such as .h10 or .b3210");
    for (uint32_t k = 0; k < count; k++) {
        uint32_t n = (uint32_t)(s->text[1 + k] - '0');
        if (n >= 2 * count)
            lower_bad_operand(l, i, "elements such as .h10 or .b3210");
        bytes = halves ? bytes << 8 | (2 * n + 1) << 4 | 2 * n : bytes << 4 | n;
    }
    uint32_t d = temporary(l);
    emit(l, OP_PRMT, 0, d, a, b, constant(l, bytes));
    return d;
}

static unsigned destination_mask(struct lower *l, bool halves)
{
    const struct name *s = operand_at(l, 0)->selector;
    if (!s)
        return halves ? 3 : 15;
    unsigned mask = 0, last = 8;
    for (uint32_t k = 1; k < s->length; k++) {
        unsigned n = (unsigned)(s->text[k] - '0');
        if (s->text[0] != (halves ? 'h' : 'b') || n >= (halves ? 2u : 4u) || n >= last)
            lower_bad_operand(l, 0, "elements such as .h1 or .b20, the uppermost first");
        mask |= 1u << n;
        last = n;
    }
    return mask;
}

static void lower_simd(struct lower *l, unsigned op, bool halves, enum type dt, enum type at, enum type bt)
{
    bool add = has(l, M(OPER));
    if (add && (l->m.value[CLASS_OPER] != ATOM_ADD || has(l, M(SAT))))
        lower_refuse(l, "only .add is known as its second operation, without .sat");
    struct operand first = whole(l, 1), second = whole(l, 2), to = whole(l, 0);
    uint32_t a = source_operand(l, &first, TYPE_B32), b = source_operand(l, &second, TYPE_B32);
    uint32_t x = selected(l, 1, halves, a, b), y = selected(l, 2, halves, a, b), c = source(l, 3, TYPE_B32);
    unsigned mod = op | (has(l, M(SAT)) ? SIMD_SAT : 0u) | (is_signed(dt) ? SIMD_D_SIGNED : 0u) |
                   (is_signed(at) ? SIMD_A_SIGNED : 0u) | (is_signed(bt) ? SIMD_B_SIGNED : 0u) |
                   destination_mask(l, halves) << SIMD_MASK_SHIFT | (add ? SIMD_ACCUMULATE : 0u) |
                   (halves ? SIMD_HALVES : 0u);
    emit(l, OP_VIDEO_SIMD, mod, destination_operand(l, &to, TYPE_B32), x, y, c);
}

#define SIMD(name, op)                                                                                                 \
    void lower_##name##2(struct lower * l)                                                                             \
    {                                                                                                                  \
        need_types(l, 3);                                                                                              \
        lower_simd(l, op, true, l->m.types[0], l->m.types[1], l->m.types[2]);                                          \
    }                                                                                                                  \
    void lower_##name##4(struct lower * l)                                                                             \
    {                                                                                                                  \
        need_types(l, 3);                                                                                              \
        lower_simd(l, op, false, l->m.types[0], l->m.types[1], l->m.types[2]);                                         \
    }
SIMD(vadd, SIMD_ADD)
SIMD(vsub, SIMD_SUB)
SIMD(vavrg, SIMD_AVERAGE)
SIMD(vabsdiff, SIMD_ABS_DIFF)
SIMD(vmin, SIMD_MIN)
SIMD(vmax, SIMD_MAX)

static void lower_simd_set(struct lower *l, bool halves)
{
    static const uint8_t ops[] = {[COMPARE_EQ] = SIMD_EQ, [COMPARE_NE] = SIMD_NE, [COMPARE_LT] = SIMD_LT,
                                  [COMPARE_LE] = SIMD_LE, [COMPARE_GT] = SIMD_GT, [COMPARE_GE] = SIMD_GE};
    need_types(l, 2);
    int compare = l->m.value[CLASS_COMPARE];
    if (!has(l, M(COMPARE)) || compare > COMPARE_GE)
        lower_refuse(l, "expected .eq, .ne, .lt, .le, .gt or .ge");
    lower_simd(l, ops[compare], halves, TYPE_U32, l->m.types[0], l->m.types[1]);
}

void lower_vset2(struct lower *l)
{
    lower_simd_set(l, true);
}

void lower_vset4(struct lower *l)
{
    lower_simd_set(l, false);
}
