/* exec_shadow_move.c - shadows of bits that are packed, unpacked, shifted or masked.
 *
 * A 32-bit register may hold two halves, or half of a double, a 64-bit one two singles. Integer instructions on the
 * bits of a single, or on the upper half of a double, that leave the mantissa alone (taking the exponent out and
 * putting another in, changing the sign) scale it by a power of two: the shadow is scaled likewise. Sums of such bits
 * know by how many units they are off (BITS); what does not change when they are, like the exponent, is exact.
 * Everything else makes a plain number of the bits: the error is lost, and that is marked. */
#include "ptx/exec_shadow.h"

struct ptx_shadow_value shadow_plain_of(const struct ptx_shadow_value *s)
{
    unsigned flags = s->flags & FLAGS_SPREADING;
    if (s->flags & PTX_SHADOW_INEXACT)
        flags |= PTX_SHADOW_LOST;
    return (struct ptx_shadow_value){.flags = flags & 0xf};
}

/* What lies `bytes` behind the start of bits that were loaded, when floats are perturbed. */
static struct ptx_shadow_value later(const struct ptx_shadow_value *s, unsigned bytes)
{
    struct ptx_shadow_value r = *s;
    r.wide += bytes;
    return r;
}

static bool is_half(const struct ptx_shadow_value *s)
{
    return s->kind == PTX_SHADOW_F16 || s->kind == PTX_SHADOW_BF16;
}

struct ptx_shadow_value shadow_half_of(const struct ptx_shadow_value *s, const struct number_pair *p, unsigned which)
{
    if (s->kind == NUMBER_PAIR16)
        return which ? p->high : p->low;
    if (s->kind == NUMBER_LOADED)
        return later(s, 2 * which);
    if (is_half(s)) /* above it lie zeros */
        return which ? (struct ptx_shadow_value){.flags = s->flags & FLAGS_CONTROL} : *s;
    return shadow_plain_of(s);
}

static struct ptx_shadow_value single_of(const struct ptx_shadow_value *s, const struct number_pair *p, unsigned which)
{
    if (s->kind == NUMBER_PAIR32)
        return which ? p->high : p->low;
    if (s->kind == NUMBER_LOADED)
        return later(s, 4 * which);
    if (s->kind == PTX_SHADOW_F32 || is_half(s) || s->kind == NUMBER_PAIR16)
        return which                       ? (struct ptx_shadow_value){.flags = s->flags & FLAGS_CONTROL}
               : s->kind == PTX_SHADOW_F32 ? *s
                                           : shadow_plain_of(s);
    return shadow_plain_of(s);
}

static void set_pair(struct ptx_shadow_value *s, struct number_pair *p, unsigned kind, struct ptx_shadow_value low,
                     struct ptx_shadow_value high)
{
    double step = kind == NUMBER_PAIR16 ? 2 : 4;
    if (low.kind == NUMBER_LOADED && high.kind == NUMBER_LOADED && high.wide == low.wide + step) {
        *s = low; /* what was taken apart is whole again */
        s->flags |= high.flags;
        return;
    }
    *s = (struct ptx_shadow_value){.flags = low.flags | high.flags};
    if (low.kind == PTX_SHADOW_NONE && high.kind == PTX_SHADOW_NONE)
        return;
    s->kind = kind & 0xf;
    *p = (struct number_pair){low, high};
}

/* ---- doubles in two halves ---- */

/* Half `which` of the 64-bit slot with the bits of `v`. */
static void set_half_of_double(struct ptx_shadow_value *d, struct number_pair *pd, const struct ptx_shadow_value *s,
                               const struct number_pair *p, union slot v, unsigned which)
{
    struct number_pair pair = {*s, {.wide = p->low.wide}};
    pair.high.origin = which ? v.u32 : (uint32_t)(v.u64 >> 32);
    *d = (struct ptx_shadow_value){.kind = which ? NUMBER_HIGH32 : NUMBER_LOW32, .flags = s->flags};
    *pd = pair;
}

/* The upper half tells everything, as long as the lower one is what it was. */
static bool whole_double(struct ptx_shadow_value *d, struct number_pair *pd, const struct ptx_shadow_value *low,
                         uint32_t low_bits, const struct ptx_shadow_value *high, const struct number_pair *high_pair)
{
    if (high->kind != NUMBER_HIGH32 || high_pair->high.origin != low_bits)
        return false;
    unsigned taint = (low->flags | high->flags) & FLAGS_CONTROL;
    struct number_pair pair = {{.wide = high_pair->high.wide}, NUMBER_PLAIN};
    *d = high_pair->low;
    d->flags |= taint;
    *pd = pair;
    return true;
}

/* ---- prmt ---- */

/* Where the two bytes of half `i` of prmt's result come from: 0 to 3, or 4 when they are no half of an operand. */
static unsigned permuted_half(uint32_t selector, unsigned i)
{
    uint32_t low = selector >> 8 * i & 0xf, high = selector >> (8 * i + 4) & 0xf;
    return !(low & 9) && high == low + 1 ? low / 2 : 4;
}

static struct ptx_shadow_value either_lost(const struct ptx_shadow_value *a, const struct ptx_shadow_value *b)
{
    struct ptx_shadow_value r = shadow_plain_of(a);
    r.flags |= shadow_plain_of(b).flags;
    return r;
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
        parts[i] = from == 4 ? either_lost(&S[in->a], &S[in->b]) : shadow_half_of(&S[slot], &P[slot], from & 1);
    }
    set_pair(&S[in->d], &P[in->d], NUMBER_PAIR16, parts[0], parts[1]);
}

/* ---- arithmetic on bits ---- */

/* By what a float is multiplied when its bits `from` become `to`; 0: by no power of two. */
static double scale_of(uint32_t from, uint32_t to, bool half_of_double)
{
    const uint32_t mantissa = half_of_double ? 0xfffff : 0x7fffff, exponent = half_of_double ? 0x7ff00000 : 0x7f800000;
    if (from == to)
        return 1;
    bool normal = (from & exponent) && (from & exponent) != exponent && (to & exponent) && (to & exponent) != exponent;
    if (!normal || (from & mantissa) != (to & mantissa))
        return 0;
    return half_of_double ? float64((uint64_t)to << 32) / float64((uint64_t)from << 32)
                          : (double)float32(to) / (double)float32(from);
}

/* d has the mantissa of an operand with a shadow: that one, scaled. */
static bool move_scaled(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, struct number_pair *P,
                        union slot result, unsigned count)
{
    const uint32_t slots[3] = {in->a, in->b, in->c};
    for (unsigned i = 0; i < count; i++) {
        const struct ptx_shadow_value *s = &S[slots[i]];
        bool single = s->kind == PTX_SHADOW_F32 || s->kind == NUMBER_LOADED, high = s->kind == NUMBER_HIGH32;
        bool same = R[slots[i]].u64 == result.u64 && s->kind != PTX_SHADOW_NONE;
        double scale = same ? 1 : 0;
        if ((single || high) && R[slots[i]].u64 >> 32 == 0 && result.u64 >> 32 == 0)
            scale = scale_of(R[slots[i]].u32, result.u32, high);
        if (scale == 0)
            continue;
        struct ptx_shadow_value r = *s;
        struct number_pair pair = {NUMBER_PLAIN, NUMBER_PLAIN};
        if (s->kind >= PTX_SHADOW_F64)
            pair = P[slots[i]];
        if (high) {
            pair.low.wide *= scale;
            pair.high.wide *= scale;
        } else if (s->kind == PTX_SHADOW_F32) {
            r.wide *= scale;
        }
        for (unsigned k = 0; k < count; k++)
            r.flags |= S[slots[k]].flags & FLAGS_CONTROL;
        S[in->d] = r;
        P[in->d] = pair;
        return true;
    }
    return false;
}

/* ---- integers made of a float's bits ---- */

static double unit_of(double x, int least, int digits)
{
    int exponent;
    (void)frexp(x, &exponent);
    return ldexp(1, (exponent - 1 > least ? exponent - 1 : least) - digits);
}

/* By how much the slot, taken as an integer, would be off with the wide value's bits; NaN: that cannot be said. */
static double bits_error(const struct ptx_shadow_value *s, const struct number_pair *p, union slot v)
{
    if (s->kind == NUMBER_BITS)
        return s->wide;
    if (!(s->flags & PTX_SHADOW_INEXACT))
        return s->flags & PTX_SHADOW_LOST ? NAN : 0;
    if (s->kind == PTX_SHADOW_F32) { /* sign and magnitude */
        double x = (double)v.f32, error = (s->wide - x) / unit_of(x, -126, 23);
        return signbit(x) ? -error : error;
    }
    if (s->kind == NUMBER_HIGH32) {
        double x = float64((uint64_t)v.u32 << 32 | p->high.origin), error = p->low.wide - x + p->high.wide;
        error /= unit_of(x, -1022, 20);
        return floor((double)p->high.origin * 0x1p-32 + (signbit(x) ? -error : error));
    }
    return NAN;
}

/* The operands with several times their error, as far as 32-bit integers go. Is the result the same? */
static bool insensitive(const struct insn *in, const union slot *R, const double error[3], union slot result,
                        shadow_meaning *meaning)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        union slot o[3] = {R[in->a], R[in->b], R[in->c]};
        for (unsigned i = 0; i < 3; i++) {
            if (error[i] == 0)
                continue;
            double reach = MARGIN_ERRORS * fabs(error[i]) + MARGIN_UNITS;
            if (!(reach < 0x1p31) || o[i].u64 >> 32)
                return false;
            o[i].u64 = (uint32_t)(o[i].u64 + (uint64_t)(sign * (int64_t)reach));
        }
        if (meaning(o[0], o[1], o[2], in->mod).u64 != result.u64)
            return false;
    }
    return true;
}

static bool compares_integers(unsigned op)
{
    return op >= OP_EQ_16 && op <= OP_LE_S64; /* as they stand in microops.def */
}

void shadow_other(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, struct number_pair *P,
                  union slot result, unsigned count, shadow_meaning *meaning)
{
    const uint32_t slots[3] = {in->a, in->b, in->c};
    double error[3] = {0};
    unsigned control = 0, all = 0;
    for (unsigned i = 0; i < count; i++)
        all |= S[slots[i]].flags;
    control = all & FLAGS_CONTROL;
    if (!compares_integers(in->op) && move_scaled(in, R, S, P, result, count))
        return;
    if (!(all & (PTX_SHADOW_INEXACT | PTX_SHADOW_LOST))) {
        S[in->d] = (struct ptx_shadow_value){.flags = control & 0xf};
        return;
    }
    for (unsigned i = 0; i < count; i++)
        error[i] = bits_error(&S[slots[i]], &P[slots[i]], R[slots[i]]);
    double sum = in->op == OP_ADD_32 ? error[0] + error[1] : in->op == OP_SUB_32 ? error[0] - error[1] : NAN;
    struct ptx_shadow_value r = {.flags = control & 0xf};
    if (fabs(sum) < 0x1p31 && sum != 0) {
        r.kind = NUMBER_BITS;
        r.wide = sum;
        r.flags |= PTX_SHADOW_INEXACT;
    } else if (sum != 0 && !insensitive(in, R, error, result, meaning)) {
        r.flags |= compares_integers(in->op) ? PTX_SHADOW_DECIDED : PTX_SHADOW_LOST;
    }
    S[in->d] = r;
}

struct operand_value shadow_integer(const struct ptx_shadow_value *s, const struct number_pair *p, union slot v,
                                    double actual)
{
    double error = bits_error(s, p, v);
    if (error == error)
        return (struct operand_value){
            actual, actual + error, 0, 0, 0, s->flags & (FLAGS_SPREADING | PTX_SHADOW_INEXACT), false};
    return (struct operand_value){actual, actual, 0, 0, 0, shadow_plain_of(s).flags, false};
}

static void move_shift(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, struct number_pair *P,
                       union slot result, shadow_meaning *meaning)
{
    const struct ptx_shadow_value *a = &S[in->a];
    struct ptx_shadow_value *d = &S[in->d];
    unsigned by = R[in->b].u32;
    if (in->op == OP_SHR_U32 && by == 16)
        *d = shadow_half_of(a, &P[in->a], 1);
    else if (in->op == OP_SHL_32 && by == 16)
        set_pair(d, &P[in->d], NUMBER_PAIR16, NUMBER_PLAIN, shadow_half_of(a, &P[in->a], 0));
    else if (in->op == OP_SHR_U64 && by == 32 && a->kind == PTX_SHADOW_F64)
        set_half_of_double(d, &P[in->d], a, &P[in->a], R[in->a], 1);
    else if (in->op == OP_SHR_U64 && by == 32)
        *d = single_of(a, &P[in->a], 1);
    else
        shadow_other(in, R, S, P, result, 2, meaning);
}

static void move_pack(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, struct number_pair *P)
{
    const struct ptx_shadow_value *a = &S[in->a], *b = &S[in->b];
    unsigned at = in->op == OP_PACK_32 ? 32 : in->mod;
    if (at == 16)
        set_pair(&S[in->d], &P[in->d], NUMBER_PAIR16, shadow_half_of(a, &P[in->a], 0), shadow_half_of(b, &P[in->b], 0));
    else if (at != 32)
        S[in->d] = either_lost(a, b);
    else if (!whole_double(&S[in->d], &P[in->d], a, R[in->a].u32, b, &P[in->b]))
        set_pair(&S[in->d], &P[in->d], NUMBER_PAIR32, single_of(a, &P[in->a], 0), single_of(b, &P[in->b], 0));
}

void shadow_move(const struct insn *in, const union slot *R, struct ptx_shadow_value *S, struct number_pair *P,
                 union slot result, shadow_meaning *meaning)
{
    const struct ptx_shadow_value *a = &S[in->a];
    const struct number_pair *pa = &P[in->a];
    struct ptx_shadow_value *d = &S[in->d];
    switch (in->op) {
    case OP_EXT_U16:
        *d = shadow_half_of(a, pa, 0);
        break;
    case OP_EXT_U32:
        if (a->kind == PTX_SHADOW_F64)
            set_half_of_double(d, &P[in->d], a, pa, R[in->a], 0);
        else if (R[in->a].u64 == result.u64)
            shadow_other(in, R, S, P, result, 1, meaning);
        else
            *d = single_of(a, pa, 0);
        break;
    case OP_PART_16:
        *d = in->mod < 32 ? shadow_half_of(a, pa, in->mod / 16) : shadow_plain_of(a);
        break;
    case OP_PART_32:
        if (a->kind == PTX_SHADOW_F64)
            set_half_of_double(d, &P[in->d], a, pa, R[in->a], in->mod / 32);
        else
            *d = single_of(a, pa, in->mod / 32);
        break;
    case OP_SHR_U32:
    case OP_SHR_U64:
    case OP_SHL_32:
        move_shift(in, R, S, P, result, meaning);
        break;
    case OP_PACK_16:
    case OP_PACK_32:
    case OP_MERGE:
        move_pack(in, R, S, P);
        break;
    case OP_PRMT:
        move_prmt(in, R, S, P);
        break;
    case OP_LOP3:
        shadow_other(in, R, S, P, result, 3, meaning);
        break;
    default:
        shadow_other(in, R, S, P, result, 2, meaning);
    }
}
