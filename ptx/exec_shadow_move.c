/* exec_shadow_move.c - shadows of bits that are packed, unpacked, shifted or masked.
 *
 * A 32-bit register may hold two halves, a 64-bit one two singles. Integer instructions on a single's bits that leave
 * its mantissa alone (taking the exponent out and putting another in, changing the sign) scale it by a power of two:
 * the shadow is scaled likewise. Everything else makes a plain number of the bits. */
#include "ptx/exec_shadow.h"

struct ptx_shadow_value shadow_half_of(const struct ptx_shadow_value *s, const struct number_pair *p, unsigned which)
{
    if (s->kind == NUMBER_PAIR16)
        return which ? p->high : p->low;
    if (s->kind == NUMBER_LOADED) {
        struct ptx_shadow_value r = *s;
        r.wide += 2 * which;
        return r;
    }
    return which == 0 && (s->kind == PTX_SHADOW_F16 || s->kind == PTX_SHADOW_BF16) ? *s : NUMBER_PLAIN;
}

static struct ptx_shadow_value single_of(const struct ptx_shadow_value *s, const struct number_pair *p, unsigned which)
{
    if (s->kind == NUMBER_PAIR32)
        return which ? p->high : p->low;
    if (s->kind == NUMBER_LOADED) {
        struct ptx_shadow_value r = *s;
        r.wide += 4 * which;
        return r;
    }
    return which == 0 && s->kind == PTX_SHADOW_F32 ? *s : NUMBER_PLAIN;
}

static void set_pair(struct ptx_shadow_value *s, struct number_pair *p, unsigned kind, struct ptx_shadow_value low,
                     struct ptx_shadow_value high)
{
    double step = kind == NUMBER_PAIR16 ? 2 : 4;
    if (low.kind == NUMBER_LOADED && high.kind == NUMBER_LOADED && high.wide == low.wide + step) {
        *s = low; /* what was taken apart is whole again */
        return;
    }
    if (low.kind == PTX_SHADOW_NONE && high.kind == PTX_SHADOW_NONE) {
        *s = NUMBER_PLAIN;
        return;
    }
    *s = (struct ptx_shadow_value){.kind = (uint8_t)kind};
    *p = (struct number_pair){low, high};
}

/* Where the two bytes of half `i` of prmt's result come from: 0 to 3, or 4 when they are no half of an operand. */
static unsigned permuted_half(uint32_t selector, unsigned i)
{
    uint32_t low = selector >> 8 * i & 0xf, high = selector >> (8 * i + 4) & 0xf;
    return !(low & 9) && high == low + 1 ? low / 2 : 4;
}

static void move_prmt(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, struct number_pair *P)
{
    uint32_t selector = R[in->c].u32 & 0xffff;
    if (selector == 0x3210 || selector == 0x7654) {
        uint32_t from = selector == 0x3210 ? in->a : in->b;
        P[in->d] = P[from];
        S[in->d] = S[from];
        return;
    }
    struct ptx_shadow_value parts[2];
    for (unsigned i = 0; i < 2; i++) {
        unsigned from = permuted_half(selector, i);
        uint32_t slot = from & 2 ? in->b : in->a;
        parts[i] = from == 4 ? NUMBER_PLAIN : shadow_half_of(&S[slot], &P[slot], from & 1);
    }
    set_pair(&S[in->d], &P[in->d], NUMBER_PAIR16, parts[0], parts[1]);
}

/* d has the mantissa of exactly one operand with a shadow: that one, scaled. */
static void move_scaled(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, union slot result)
{
    const uint32_t slots[3] = {in->a, in->b, in->op == OP_LOP3 ? in->c : in->b};
    const uint32_t mantissa = 0x7fffff, exponent = 0x7f800000;
    struct ptx_shadow_value r = NUMBER_PLAIN;
    for (int i = 0; i < 3 && r.kind == PTX_SHADOW_NONE; i++) {
        const struct ptx_shadow_value *s = &S[slots[i]];
        uint32_t from = R[slots[i]].u32, to = result.u32;
        bool normal =
            (from & exponent) && (from & exponent) != exponent && (to & exponent) && (to & exponent) != exponent;
        bool bits32_only = R[slots[i]].u64 >> 32 == 0 && result.u64 >> 32 == 0;
        if (!bits32_only || (s->kind != PTX_SHADOW_F32 && s->kind != NUMBER_LOADED))
            continue;
        if (from == to || (normal && (from & mantissa) == (to & mantissa))) {
            r = *s;
            if (s->kind == PTX_SHADOW_F32 && from != to)
                r.wide *= (double)float32(to) / (double)float32(from); /* a power of two, or its negative */
        }
    }
    S[in->d] = r;
}

void shadow_move(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, struct number_pair *P,
                 union slot result)
{
    const struct ptx_shadow_value *a = &S[in->a], *b = &S[in->b];
    const struct number_pair *pa = &P[in->a], *pb = &P[in->b];
    struct ptx_shadow_value *d = &S[in->d];
    switch (in->op) {
    case OP_EXT_U16:
        *d = shadow_half_of(a, pa, 0);
        break;
    case OP_EXT_U32:
        if (a->kind == NUMBER_PAIR16) {
            P[in->d] = *pa;
            *d = *a;
        } else {
            *d = a->kind == PTX_SHADOW_F16 || a->kind == PTX_SHADOW_BF16 ? *a : single_of(a, pa, 0);
        }
        break;
    case OP_PART_16:
        *d = in->mod < 32 ? shadow_half_of(a, pa, in->mod / 16) : NUMBER_PLAIN;
        break;
    case OP_PART_32:
        *d = single_of(a, pa, in->mod / 32);
        break;
    case OP_SHR_U32:
        *d = R[in->b].u32 == 16 ? shadow_half_of(a, pa, 1) : NUMBER_PLAIN;
        break;
    case OP_SHL_32:
        if (R[in->b].u32 == 16)
            set_pair(d, &P[in->d], NUMBER_PAIR16, NUMBER_PLAIN, shadow_half_of(a, pa, 0));
        else
            *d = NUMBER_PLAIN;
        break;
    case OP_PACK_16:
    case OP_PACK_32:
    case OP_MERGE: {
        unsigned at = in->op == OP_PACK_32 ? 32 : in->mod;
        if (at == 16)
            set_pair(d, &P[in->d], NUMBER_PAIR16, shadow_half_of(a, pa, 0), shadow_half_of(b, pb, 0));
        else if (at == 32)
            set_pair(d, &P[in->d], NUMBER_PAIR32, single_of(a, pa, 0), single_of(b, pb, 0));
        else
            *d = NUMBER_PLAIN;
        break;
    }
    case OP_PRMT:
        move_prmt(in, R, S, P);
        break;
    default:
        move_scaled(in, R, S, result);
    }
}
