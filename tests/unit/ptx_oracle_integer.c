/* Integer and bit instructions in plain C, bit by bit where the PTX ISA gives pseudocode of that kind. */
#include <string.h>
#include "tests/unit/ptx_forms.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

static uint64_t low(uint64_t v, unsigned bits)
{
    return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static s128 sign_extend(uint64_t v, unsigned bits)
{
    return (s128)(int64_t)(v << (64 - bits)) >> (64 - bits);
}

static bool is_s(enum type t)
{
    return type_info[t].kind == 's';
}

/* The number that the bits mean in the type. */
static s128 number(enum type t, uint64_t v)
{
    unsigned n = form_bits(t);
    return is_s(t) ? sign_extend(v, n) : (s128)low(v, n);
}

static s128 clamp(s128 x, s128 lowest, s128 highest)
{
    return x < lowest ? lowest : x > highest ? highest : x;
}

/* Every operand in its own type's width. */
#define ORACLE(name) static uint64_t name(const struct form *f, uint64_t a, uint64_t b, uint64_t c)
#define N            form_bits(f->types[0])
#define X            number(f->types[0], a)
#define Y            number(f->types[0], b)
#define Z            number(f->types[0], c)

/* ---- arithmetic; variant 1 of a form with carries is the carry that it leaves ---- */

static uint64_t carries(const struct form *f, u128 sum)
{
    return f->variant ? (uint64_t)(sum >> N) & 1 : (uint64_t)sum;
}

ORACLE(o_add)
{
    if (form_has(f, M(SAT)))
        return (uint64_t)clamp(X + Y, INT32_MIN, INT32_MAX);
    return carries(f, (u128)a + b);
}

ORACLE(o_sub)
{
    if (form_has(f, M(SAT)))
        return (uint64_t)clamp(X - Y, INT32_MIN, INT32_MAX);
    return f->variant ? a < b : a - b;
}

ORACLE(o_addc)
{
    return carries(f, (u128)a + b + (c >> (N - 1) & 1));
}

ORACLE(o_subc)
{
    u128 take = (u128)b + (c >> (N - 1) & 1);
    return f->variant ? a < take : a - (uint64_t)take;
}

/* Two's complement: the bits of the product are right in 128 bits whatever the sign. */
static u128 product(const struct form *f, uint64_t a, uint64_t b)
{
    return (u128)X * (u128)Y;
}

static u128 product_part(const struct form *f, uint64_t a, uint64_t b)
{
    u128 p = product(f, a, b);
    return f->value[CLASS_HALF] == HALF_HI ? p >> N : p;
}

ORACLE(o_mul)
{
    return (uint64_t)product_part(f, a, b);
}

ORACLE(o_mad)
{
    if (form_has(f, M(SAT)))
        return (uint64_t)clamp((s128)(int32_t)product_part(f, a, b) + Z, INT32_MIN, INT32_MAX);
    if (form_has(f, M(CC)))
        return carries(f, (u128)low((uint64_t)product_part(f, a, b), N) + c);
    return (uint64_t)product_part(f, a, b) + c;
}

ORACLE(o_madc)
{
    return carries(f, (u128)low((uint64_t)product_part(f, a, b), N) + c + (c >> (N - 1) & 1));
}

ORACLE(o_mul24)
{
    s128 x = is_s(f->types[0]) ? sign_extend(a & 0xffffff, 24) : (s128)(a & 0xffffff);
    s128 y = is_s(f->types[0]) ? sign_extend(b & 0xffffff, 24) : (s128)(b & 0xffffff);
    return (uint64_t)(f->value[CLASS_HALF] == HALF_HI ? (x * y) >> 16 : x * y);
}

ORACLE(o_mad24)
{
    return o_mul24(f, a, b, 0) + c;
}

ORACLE(o_sad)
{
    return c + (uint64_t)(X < Y ? Y - X : X - Y);
}

/* By zero: open; docs/arithmetic.md has the default. */
ORACLE(o_div)
{
    return b ? (uint64_t)(X / Y) : UINT64_MAX;
}

ORACLE(o_rem)
{
    return b ? (uint64_t)(X % Y) : a;
}

ORACLE(o_abs)
{
    return (uint64_t)(X < 0 ? -X : X);
}

ORACLE(o_neg)
{
    return (uint64_t)-X;
}

ORACLE(o_min)
{
    uint64_t v = X < Y ? a : b;
    return form_has(f, M(RELU)) && number(f->types[0], v) < 0 ? 0 : v;
}

ORACLE(o_max)
{
    uint64_t v = X > Y ? a : b;
    return form_has(f, M(RELU)) && number(f->types[0], v) < 0 ? 0 : v;
}

/* ---- bits ---- */

ORACLE(o_popc)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < N; i++)
        r += a >> i & 1;
    return r;
}

ORACLE(o_clz)
{
    uint64_t r = 0;
    for (unsigned i = N; i-- > 0 && !(a >> i & 1);)
        r++;
    return r;
}

ORACLE(o_bfind)
{
    if (X < 0)
        a = low(~a, N);
    for (unsigned i = N; i-- > 0;)
        if (a >> i & 1)
            return form_has(f, M(SHIFTAMT)) ? N - 1 - i : i;
    return UINT32_MAX;
}

ORACLE(o_brev)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < N; i++)
        r |= (a >> i & 1) << (N - 1 - i);
    return r;
}

ORACLE(o_fns)
{
    int64_t offset = (int32_t)c, left = offset < 0 ? -offset : offset, step = offset < 0 ? -1 : 1;
    if (offset == 0)
        return b < 32 && (a >> b & 1) ? b : UINT32_MAX;
    for (int64_t at = (int64_t)b; at >= 0 && at < 32; at += step)
        if ((a >> at & 1) && --left == 0)
            return (uint64_t)at;
    return UINT32_MAX;
}

ORACLE(o_bfe)
{
    unsigned pos = b & 0xff, len = c & 0xff, msb = N - 1;
    uint64_t sbit = !is_s(f->types[0]) || len == 0 ? 0 : a >> (pos + len - 1 < msb ? pos + len - 1 : msb) & 1, d = 0;
    for (unsigned i = 0; i <= msb; i++)
        d |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sbit) << i;
    return d;
}

ORACLE(o_bfi)
{
    unsigned pos = c & 0xff, len = f->immediate & 0xff;
    for (unsigned i = 0; i < len && pos + i < N; i++)
        b = (b & ~(UINT64_C(1) << (pos + i))) | (a >> i & 1) << (pos + i);
    return b;
}

ORACLE(o_bmsk)
{
    uint64_t wrap = f->value[CLASS_CLAMP] ? UINT32_MAX : 31, start = a & wrap, width = b & wrap, d = 0;
    for (uint64_t i = 0; i < 32; i++)
        if (i >= start && i - start < width)
            d |= UINT64_C(1) << i;
    return d;
}

ORACLE(o_szext)
{
    uint64_t n = f->value[CLASS_CLAMP] ? (b > 32 ? 32 : b) : b & 31;
    if (n == 0)
        return 0;
    return is_s(f->types[0]) ? (uint64_t)sign_extend(low(a, (unsigned)n), (unsigned)n) : low(a, (unsigned)n);
}

static s128 field(uint64_t v, unsigned at, unsigned bits, bool is_signed)
{
    uint64_t x = low(v >> at, bits);
    return is_signed ? sign_extend(x, bits) : (s128)x;
}

ORACLE(o_dp4a)
{
    for (unsigned i = 0; i < 4; i++)
        c += (uint64_t)(field(a, 8 * i, 8, is_s(f->types[0])) * field(b, 8 * i, 8, is_s(f->types[1])));
    return c;
}

ORACLE(o_dp2a)
{
    unsigned from = f->value[CLASS_HALF] == HALF_HI ? 2 : 0;
    for (unsigned i = 0; i < 2; i++)
        c += (uint64_t)(field(a, 16 * i, 16, is_s(f->types[0])) * field(b, 8 * (i + from), 8, is_s(f->types[1])));
    return c;
}

ORACLE(o_and)
{
    return a & b;
}

ORACLE(o_or)
{
    return a | b;
}

ORACLE(o_xor)
{
    return a ^ b;
}

ORACLE(o_not)
{
    return ~a;
}

ORACLE(o_cnot)
{
    return a == 0;
}

ORACLE(o_lop3)
{
    uint64_t d = 0;
    for (unsigned i = 0; i < 32; i++) {
        unsigned k = (unsigned)((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1));
        d |= (uint64_t)(f->immediate >> k & 1) << i;
    }
    return d;
}

ORACLE(o_shl)
{
    return b >= N ? 0 : a << b;
}

ORACLE(o_shr)
{
    return (uint64_t)(X >> (b >= N ? N - (is_s(f->types[0]) ? 1 : 0) : b));
}

ORACLE(o_shf)
{
    uint64_t n = f->value[CLASS_CLAMP] ? (c > 32 ? 32 : c) : c & 31;
    u128 both = (u128)b << 32 | a;
    return (uint64_t)(f->value[CLASS_SIDE] ? both >> n : (both << n) >> 32);
}

ORACLE(o_prmt)
{
    static const unsigned selectors[][4] = {
        [PRMT_F4E] = {0x3210, 0x4321, 0x5432, 0x6543}, [PRMT_B4E] = {0x5670, 0x6701, 0x7012, 0x0123},
        [PRMT_RC8] = {0x0000, 0x1111, 0x2222, 0x3333}, [PRMT_ECL] = {0x3210, 0x3211, 0x3222, 0x3333},
        [PRMT_ECR] = {0x0000, 0x1110, 0x2210, 0x3210}, [PRMT_RC16] = {0x1010, 0x3232, 0x1010, 0x3232}};
    uint64_t both = b << 32 | a, d = 0;
    uint64_t selector = form_has(f, M(PERMUTE)) ? selectors[f->value[CLASS_PERMUTE]][c & 3] : c;
    for (unsigned i = 0; i < 4; i++) {
        unsigned s = selector >> 4 * i & 15;
        uint64_t byte = both >> 8 * (s & 7) & 0xff;
        if (s & 8)
            byte = byte >> 7 ? 0xff : 0;
        d |= byte << 8 * i;
    }
    return d;
}

/* ---- choices, moves, conversions ---- */

bool compare_holds(const struct form *f, int order)
{
    int word = f->value[CLASS_HALF] == HALF_LO   ? COMPARE_LO
               : f->value[CLASS_HALF] == HALF_HI ? COMPARE_HI
                                                 : f->value[CLASS_COMPARE];
    bool unordered = order == 2;
    switch (word) {
    case COMPARE_EQ:
    case COMPARE_EQU:
        return unordered ? word == COMPARE_EQU : order == 0;
    case COMPARE_NE:
    case COMPARE_NEU:
        return unordered ? word == COMPARE_NEU : order != 0;
    case COMPARE_LT:
    case COMPARE_LO:
    case COMPARE_LTU:
        return unordered ? word == COMPARE_LTU : order < 0;
    case COMPARE_LE:
    case COMPARE_LS:
    case COMPARE_LEU:
        return unordered ? word == COMPARE_LEU : order <= 0;
    case COMPARE_GT:
    case COMPARE_HI:
    case COMPARE_GTU:
        return unordered ? word == COMPARE_GTU : order > 0;
    case COMPARE_GE:
    case COMPARE_HS:
    case COMPARE_GEU:
        return unordered ? word == COMPARE_GEU : order >= 0;
    case COMPARE_NUM:
        return !unordered;
    default:
        return unordered;
    }
}

bool combine(const struct form *f, bool holds, bool c)
{
    if (!form_has(f, M(OPER)))
        return holds;
    int op = f->value[CLASS_OPER];
    return op == ATOM_AND ? holds && c : op == ATOM_OR ? holds || c : holds != c;
}

ORACLE(o_setp)
{
    bool holds = compare_holds(f, X < Y ? -1 : X > Y);
    return combine(f, f->variant == 1 ? !holds : holds, f->variant == 2 ? !c : c != 0);
}

ORACLE(o_set)
{
    s128 x = number(f->types[1], a), y = number(f->types[1], b);
    if (!combine(f, compare_holds(f, x < y ? -1 : x > y), c != 0))
        return 0;
    switch (f->types[0]) {
    case TYPE_F32:
        return 0x3f800000;
    case TYPE_F16:
        return 0x3c00;
    case TYPE_BF16:
        return 0x3f80;
    default:
        return UINT64_MAX;
    }
}

ORACLE(o_selp)
{
    return c ? a : b;
}

ORACLE(o_slct)
{
    return (int32_t)c >= 0 ? a : b;
}

ORACLE(o_mov)
{
    return a;
}

/* The source's number, brought to the destination's range, and extended to the register by its own sign. */
ORACLE(o_cvt)
{
    enum type to = f->types[0];
    unsigned bits = form_bits(to);
    s128 x = number(f->types[1], a), one = 1;
    if (form_has(f, M(SAT)))
        x = is_s(to) ? clamp(x, -(one << (bits - 1)), (one << (bits - 1)) - 1) : clamp(x, 0, (one << bits) - 1);
    return (uint64_t)number(to, (uint64_t)x);
}

static const struct {
    const char *name;
    uint64_t (*value)(const struct form *f, uint64_t a, uint64_t b, uint64_t c);
} oracles[] = {
    {"add", o_add},     {"sub", o_sub},     {"addc", o_addc},   {"subc", o_subc}, {"mul", o_mul},   {"mad", o_mad},
    {"madc", o_madc},   {"mul24", o_mul24}, {"mad24", o_mad24}, {"sad", o_sad},   {"div", o_div},   {"rem", o_rem},
    {"abs", o_abs},     {"neg", o_neg},     {"min", o_min},     {"max", o_max},   {"popc", o_popc}, {"clz", o_clz},
    {"bfind", o_bfind}, {"brev", o_brev},   {"fns", o_fns},     {"bfe", o_bfe},   {"bfi", o_bfi},   {"bmsk", o_bmsk},
    {"szext", o_szext}, {"dp4a", o_dp4a},   {"dp2a", o_dp2a},   {"and", o_and},   {"or", o_or},     {"xor", o_xor},
    {"not", o_not},     {"cnot", o_cnot},   {"lop3", o_lop3},   {"shl", o_shl},   {"shr", o_shr},   {"shf", o_shf},
    {"prmt", o_prmt},   {"setp", o_setp},   {"set", o_set},     {"selp", o_selp}, {"slct", o_slct}, {"mov", o_mov},
    {"cvt", o_cvt},
};

static uint64_t operand(const struct form *f, unsigned i, uint64_t v)
{
    unsigned bits = i == 0 ? f->shape.a : i == 1 ? f->shape.b : f->shape.c;
    return bits == 1 ? (v & UINT32_MAX) != 0 : bits ? low(v, bits) : 0;
}

static bool judge(const struct form *f, const uint64_t in[3], uint64_t got, uint64_t *expected)
{
    uint64_t v = oracles[f->oracle_index].value(f, operand(f, 0, in[0]), operand(f, 1, in[1]), operand(f, 2, in[2]));
    *expected = low(v, f->shape.d);
    return got == *expected;
}

oracle *integer_oracle(struct form *f)
{
    enum type t = f->types[0], from = f->type_count > 1 ? f->types[1] : t;
    bool moves =
        strcmp(f->row->name, "selp") == 0 || strcmp(f->row->name, "mov") == 0 || strcmp(f->row->name, "slct") == 0;
    if (strcmp(f->row->name, "slct") == 0 ? from != TYPE_S32 : !moves && type_info[from].kind == 'f')
        return NULL;
    if (strcmp(f->row->name, "cvt") == 0 && type_info[t].kind == 'f')
        return NULL;
    for (f->oracle_index = 0; f->oracle_index < sizeof oracles / sizeof *oracles; f->oracle_index++)
        if (strcmp(f->row->name, oracles[f->oracle_index].name) == 0)
            return judge;
    return NULL;
}
