/* Integer and bit instructions against plain C, written from the PTX ISA's pseudocode bit by bit where there is one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

static const uint64_t edges[] = {0,
                                 1,
                                 2,
                                 3,
                                 7,
                                 8,
                                 15,
                                 16,
                                 17,
                                 31,
                                 32,
                                 33,
                                 63,
                                 64,
                                 65,
                                 127,
                                 128,
                                 255,
                                 256,
                                 0x7fff,
                                 0x8000,
                                 0xffff,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 0x100000000,
                                 0x7fffffffffffffff,
                                 0x8000000000000000,
                                 0xffffffffffffffff,
                                 0xfffffffffffffffe,
                                 0x00ff00ff00ff00ff,
                                 0x123456789abcdef0};
enum { EDGES = sizeof edges / sizeof *edges, RANDOM = 600, TRIPLES = 12 };

static uint64_t *operands(int arity, uint32_t *count)
{
    uint32_t n = arity == 1 ? EDGES : arity == 2 ? EDGES * EDGES : EDGES * EDGES * TRIPLES;
    uint64_t *in = calloc((n + RANDOM) * 3, sizeof *in), seed = 42;
    assert_non_null(in);
    for (uint32_t i = 0; i < n; i++) {
        in[3 * i] = edges[i % EDGES];
        in[3 * i + 1] = edges[i / EDGES % EDGES];
        in[3 * i + 2] = edges[(i / EDGES / EDGES * 5 + i) % EDGES];
    }
    for (uint32_t i = n * 3; i < (n + RANDOM) * 3; i++)
        in[i] = kit_random(&seed) >> (kit_random(&seed) % 64);
    *count = n + RANDOM;
    return in;
}

static uint64_t low(uint64_t v, unsigned bits)
{
    return bits == 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static s128 sx(uint64_t v, unsigned bits)
{
    return (s128)(int64_t)(v << (64 - bits)) >> (64 - bits);
}

// clang-format off
#define ORACLE(name) static uint64_t name(uint64_t a, uint64_t b, uint64_t c, unsigned n)
ORACLE(o_add) { return a + b; }
ORACLE(o_sub) { return a - b; }
ORACLE(o_mul) { return a * b; }
ORACLE(o_mad) { return a * b + c; }
ORACLE(o_mulhi_u) { return (uint64_t)((u128)a * b >> n); }
ORACLE(o_mulhi_s) { return (uint64_t)(sx(a, n) * sx(b, n) >> n); }
ORACLE(o_madhi_u) { return o_mulhi_u(a, b, 0, n) + c; }
ORACLE(o_madhi_s) { return o_mulhi_s(a, b, 0, n) + c; }
ORACLE(o_mulwide_s) { return (uint64_t)(sx(a, n) * sx(b, n)); }
ORACLE(o_madwide_s) { return (uint64_t)(sx(a, n) * sx(b, n)) + c; }
ORACLE(o_mul24lo_u) { return (a & 0xffffff) * (b & 0xffffff); }
ORACLE(o_mul24hi_u) { return o_mul24lo_u(a, b, c, n) >> 16; }
ORACLE(o_mul24lo_s) { return (uint64_t)(sx(a & 0xffffff, 24) * sx(b & 0xffffff, 24)); }
ORACLE(o_mul24hi_s) { return (uint64_t)(sx(a & 0xffffff, 24) * sx(b & 0xffffff, 24) >> 16); }
ORACLE(o_mad24lo_u) { return o_mul24lo_u(a, b, c, n) + c; }
ORACLE(o_sad_u) { return c + (a < b ? b - a : a - b); }
ORACLE(o_sad_s) { return c + (uint64_t)(sx(a, n) < sx(b, n) ? sx(b, n) - sx(a, n) : sx(a, n) - sx(b, n)); }
ORACLE(o_div_u) { return b ? a / b : UINT64_MAX; }
ORACLE(o_div_s) { return b ? (uint64_t)(sx(a, n) / sx(b, n)) : UINT64_MAX; }
ORACLE(o_rem_u) { return b ? a % b : a; }
ORACLE(o_rem_s) { return b ? (uint64_t)(sx(a, n) % sx(b, n)) : a; }
ORACLE(o_abs) { return (uint64_t)(sx(a, n) < 0 ? -sx(a, n) : sx(a, n)); }
ORACLE(o_neg) { return (uint64_t)-sx(a, n); }
ORACLE(o_min_u) { return a < b ? a : b; }
ORACLE(o_max_u) { return a > b ? a : b; }
ORACLE(o_min_s) { return sx(a, n) < sx(b, n) ? a : b; }
ORACLE(o_max_s) { return sx(a, n) > sx(b, n) ? a : b; }
ORACLE(o_and) { return a & b; }
ORACLE(o_or) { return a | b; }
ORACLE(o_xor) { return a ^ b; }
ORACLE(o_not) { return ~a; }
ORACLE(o_cnot) { return a == 0; }
ORACLE(o_shl) { return (b & UINT32_MAX) >= n ? 0 : a << (b & UINT32_MAX); }
ORACLE(o_shr_u) { return (b & UINT32_MAX) >= n ? 0 : a >> (b & UINT32_MAX); }
ORACLE(o_shr_s) { return (uint64_t)(sx(a, n) >> ((b & UINT32_MAX) >= n ? n - 1 : (b & UINT32_MAX))); }
static int64_t clamp32(s128 x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int64_t)x;
}
ORACLE(o_addsat) { return (uint64_t)clamp32(sx(a, 32) + sx(b, 32)); }
ORACLE(o_subsat) { return (uint64_t)clamp32(sx(a, 32) - sx(b, 32)); }
ORACLE(o_madhisat) { return (uint64_t)clamp32((sx(a, 32) * sx(b, 32) >> 32) + sx(c, 32)); }
ORACLE(o_popc)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < n; i++)
        r += a >> i & 1;
    return r;
}
ORACLE(o_clz)
{
    uint64_t r = 0;
    for (unsigned i = n; i-- > 0 && !(a >> i & 1);)
        r++;
    return r;
}
static uint64_t bfind(uint64_t a, unsigned n, int is_signed, int shift)
{
    if (is_signed && (a >> (n - 1) & 1))
        a = low(~a, n);
    for (unsigned i = n; i-- > 0;)
        if (a >> i & 1)
            return shift ? n - 1 - i : i;
    return UINT32_MAX;
}
ORACLE(o_bfind_u) { return bfind(a, n, 0, 0); }
ORACLE(o_bfind_s) { return bfind(a, n, 1, 0); }
ORACLE(o_bfind_shift_u) { return bfind(a, n, 0, 1); }
ORACLE(o_bfind_shift_s) { return bfind(a, n, 1, 1); }
ORACLE(o_brev)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < n; i++)
        r |= (a >> i & 1) << (n - 1 - i);
    return r;
}
static uint64_t bfe(uint64_t a, uint64_t b, uint64_t c, unsigned n, int is_signed)
{
    unsigned pos = b & 0xff, len = c & 0xff, msb = n - 1;
    uint64_t sbit = !is_signed || len == 0 ? 0 : a >> (pos + len - 1 < msb ? pos + len - 1 : msb) & 1, d = 0;
    for (unsigned i = 0; i <= msb; i++)
        d |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sbit) << i;
    return d;
}
ORACLE(o_bfe_u) { return bfe(a, b, c, n, 0); }
ORACLE(o_bfe_s) { return bfe(a, b, c, n, 1); }
/* bfi.b32 d, a, b, c, 9: the length is fixed by the row */
static uint64_t bfi(uint64_t a, uint64_t b, uint64_t c, unsigned n, unsigned len)
{
    unsigned pos = c & 0xff;
    for (unsigned i = 0; i < len && pos + i < n; i++)
        b = (b & ~(UINT64_C(1) << (pos + i))) | (a >> i & 1) << (pos + i);
    return b;
}
ORACLE(o_bfi9) { return bfi(a, b, c, n, 9); }
ORACLE(o_bfi64) { return bfi(a, b, c, n, 64); }
ORACLE(o_bfi0) { return bfi(a, b, c, n, 0); }
static uint64_t mask_bits(uint64_t start, uint64_t width)
{
    uint64_t d = 0;
    for (uint64_t i = 0; i < 32; i++)
        if (i >= start && i - start < width)
            d |= UINT64_C(1) << i;
    return d;
}
ORACLE(o_bmsk_wrap) { return mask_bits(a & 31, b & 31); }
ORACLE(o_bmsk_clamp) { return mask_bits(a, b); }
static uint64_t szext(uint64_t a, uint64_t bits, int is_signed)
{
    if (bits == 0)
        return 0;
    if (bits >= 32)
        return a;
    return is_signed ? (uint64_t)sx(low(a, (unsigned)bits), (unsigned)bits) : low(a, (unsigned)bits);
}
ORACLE(o_szext_wrap_u) { return szext(a, b & 31, 0); }
ORACLE(o_szext_wrap_s) { return szext(a, b & 31, 1); }
ORACLE(o_szext_clamp_u) { return szext(a, b, 0); }
ORACLE(o_szext_clamp_s) { return szext(a, b, 1); }
ORACLE(o_fns)
{
    int32_t offset = (int32_t)c, base = (int32_t)(b & 31);
    if (offset == 0)
        return a >> base & 1 ? (uint64_t)base : UINT32_MAX;
    int64_t left = offset < 0 ? -(int64_t)offset : offset, inc = offset < 0 ? -1 : 1;
    for (int64_t pos = base; pos >= 0 && pos < 32; pos += inc)
        if (a >> pos & 1)
            if (--left == 0)
                return (uint64_t)pos;
    return UINT32_MAX;
}
static uint64_t dp4a(uint64_t a, uint64_t b, uint64_t c, int sa, int sb)
{
    for (int i = 0; i < 4; i++) {
        uint64_t x = a >> 8 * i & 0xff, y = b >> 8 * i & 0xff;
        c += (uint64_t)((sa ? sx(x, 8) : (s128)x) * (sb ? sx(y, 8) : (s128)y));
    }
    return c;
}
ORACLE(o_dp4a_uu) { return dp4a(a, b, c, 0, 0); }
ORACLE(o_dp4a_ss) { return dp4a(a, b, c, 1, 1); }
ORACLE(o_dp4a_us) { return dp4a(a, b, c, 0, 1); }
static uint64_t dp2a(uint64_t a, uint64_t b, uint64_t c, int sa, int sb, int high)
{
    for (int i = 0; i < 2; i++) {
        uint64_t x = a >> 16 * i & 0xffff, y = b >> 8 * (i + 2 * high) & 0xff;
        c += (uint64_t)((sa ? sx(x, 16) : (s128)x) * (sb ? sx(y, 8) : (s128)y));
    }
    return c;
}
ORACLE(o_dp2a_lo_uu) { return dp2a(a, b, c, 0, 0, 0); }
ORACLE(o_dp2a_hi_ss) { return dp2a(a, b, c, 1, 1, 1); }
ORACLE(o_dp2a_hi_su) { return dp2a(a, b, c, 1, 0, 1); }
ORACLE(o_vabsdiff4)
{
    uint64_t r = 0;
    for (int i = 0; i < 4; i++)
        r |= (uint64_t)abs((int)(a >> 8 * i & 0xff) - (int)(b >> 8 * i & 0xff)) << 8 * i;
    return r;
}
ORACLE(o_vabsdiff4_add)
{
    for (int i = 0; i < 4; i++)
        c += (uint64_t)abs((int)(a >> 8 * i & 0xff) - (int)(b >> 8 * i & 0xff));
    return c;
}
static uint64_t prmt(uint64_t a, uint64_t b, uint64_t selector)
{
    uint64_t both = b << 32 | a, r = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t s = selector >> 4 * i & 15, byte = both >> 8 * (s & 7) & 0xff;
        if (s & 8)
            byte = byte >> 7 ? 0xff : 0;
        r |= byte << 8 * i;
    }
    return r;
}
ORACLE(o_prmt) { return prmt(a, b, c); }
static const unsigned selectors[6][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123}, {0x0000, 0x1111, 0x2222, 0x3333},
    {0x3210, 0x3211, 0x3222, 0x3333}, {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
ORACLE(o_prmt_f4e) { return prmt(a, b, selectors[0][c & 3]); }
ORACLE(o_prmt_b4e) { return prmt(a, b, selectors[1][c & 3]); }
ORACLE(o_prmt_rc8) { return prmt(a, b, selectors[2][c & 3]); }
ORACLE(o_prmt_ecl) { return prmt(a, b, selectors[3][c & 3]); }
ORACLE(o_prmt_ecr) { return prmt(a, b, selectors[4][c & 3]); }
ORACLE(o_prmt_rc16) { return prmt(a, b, selectors[5][c & 3]); }
ORACLE(o_lop3_96) { return a ^ b ^ c; }
ORACLE(o_lop3_e8) { return (a & b) | (a & c) | (b & c); }
ORACLE(o_lop3_f8) { return a | (b & c); }
ORACLE(o_lop3_1b)
{
    uint64_t r = 0;
    for (int i = 0; i < 32; i++) {
        unsigned k = (unsigned)((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1));
        r |= (uint64_t)(0x1b >> k & 1) << i;
    }
    return r;
}
ORACLE(o_shf_l_wrap) { return (uint64_t)((((u128)b << 32 | a) << (c & 31)) >> 32); }
ORACLE(o_shf_l_clamp) { return (uint64_t)((((u128)b << 32 | a) << (c > 32 ? 32 : c)) >> 32); }
ORACLE(o_shf_r_wrap) { return (b << 32 | a) >> (c & 31); }
ORACLE(o_shf_r_clamp) { return (b << 32 | a) >> (c > 32 ? 32 : c); }
ORACLE(o_eq) { return a == b; }
ORACLE(o_ne) { return a != b; }
ORACLE(o_lt_u) { return a < b; }
ORACLE(o_le_u) { return a <= b; }
ORACLE(o_gt_u) { return a > b; }
ORACLE(o_ge_u) { return a >= b; }
ORACLE(o_lt_s) { return sx(a, n) < sx(b, n); }
ORACLE(o_le_s) { return sx(a, n) <= sx(b, n); }
ORACLE(o_gt_s) { return sx(a, n) > sx(b, n); }
ORACLE(o_ge_s) { return sx(a, n) >= sx(b, n); }
ORACLE(o_lt_and) { return sx(a, n) < sx(b, n) && c; }
ORACLE(o_lt_or) { return sx(a, n) < sx(b, n) || c; }
ORACLE(o_lt_xor) { return (sx(a, n) < sx(b, n)) ^ (c != 0); }
ORACLE(o_lt_andnot) { return sx(a, n) < sx(b, n) && !c; }
ORACLE(o_not_lt_and) { return !(sx(a, n) < sx(b, n)) && c; }
ORACLE(o_set_u32) { return sx(a, n) < sx(b, n) ? UINT32_MAX : 0; }
ORACLE(o_set_f32) { return sx(a, n) < sx(b, n) ? 0x3f800000 : 0; }
ORACLE(o_selp) { return c ? a : b; }
ORACLE(o_slct) { return (int32_t)c >= 0 ? a : b; }
ORACLE(o_mov) { return a; }
ORACLE(o_pack32) { return b << 32 | a; }
ORACLE(o_pack16) { return b << 16 | a; }
ORACLE(o_unpack_low) { return a & 0xffffffff; }
ORACLE(o_unpack_high) { return a >> 32; }
ORACLE(o_unpack_16) { return a >> 32 & 0xffff; }
/* conversions; n is the width of a */
ORACLE(o_cvt_u8) { return a & 0xff; }
ORACLE(o_cvt_s8) { return (uint64_t)sx(a & 0xff, 8); }
ORACLE(o_cvt_u16) { return a & 0xffff; }
ORACLE(o_cvt_s16) { return (uint64_t)sx(a & 0xffff, 16); }
ORACLE(o_cvt_u32) { return a & 0xffffffff; }
ORACLE(o_cvt_s32) { return (uint64_t)sx(a & 0xffffffff, 32); }
static uint64_t clamp(s128 x, s128 lowest, s128 highest)
{
    return (uint64_t)(x < lowest ? lowest : x > highest ? highest : x);
}
ORACLE(o_sat_u8_s32) { return clamp(sx(a, 32), 0, 255); }
ORACLE(o_sat_s8_s32) { return clamp(sx(a, 32), -128, 127); }
ORACLE(o_sat_s16_u32) { return clamp((s128)a, -32768, 32767); }
ORACLE(o_sat_u32_s64) { return clamp(sx(a, 64), 0, UINT32_MAX); }
ORACLE(o_sat_s32_u64) { return clamp((s128)a, INT32_MIN, INT32_MAX); }
ORACLE(o_sat_u64_s64) { return clamp(sx(a, 64), 0, UINT64_MAX); }
ORACLE(o_sat_s64_u64) { return clamp((s128)a, INT64_MIN, INT64_MAX); }
/* carries, as 64-bit sums of two 32-bit halves: the row adds {b,a} pairs by add.cc and addc */
ORACLE(o_addcc) { return (uint64_t)(((u128)a + b) >> 32) & UINT32_MAX; }
ORACLE(o_addcc_mid) { return a + b + (((u128)c + c) >> 64 ? 1 : 0); }
ORACLE(o_subcc_mid) { return a - b - (c < a ? 1 : 0); }
ORACLE(o_madcc)
{
    u128 sum = (u128)a * b + c;
    return (uint64_t)(sum >> 32) & UINT32_MAX;
}

struct row {
    const char *instruction;
    struct kit_shape shape;
    uint64_t (*oracle)(uint64_t a, uint64_t b, uint64_t c, unsigned n);
};
#define R32 {32, 32, 32, 32}
#define R64 {64, 64, 64, 64}
#define R16 {16, 16, 16, 16}
#define B32 {32, 32, 32, 0}
#define B64 {64, 64, 64, 0}
#define B16 {16, 16, 16, 0}
#define U32 {32, 32, 0, 0}
#define U64 {64, 64, 0, 0}
#define U16 {16, 16, 0, 0}
#define W16(op, suffix, oracle_u, oracle_s)                                                                            \
    {op ".u16" suffix, B16, oracle_u}, {op ".s16" suffix, B16, oracle_s}, {op ".u32" suffix, B32, oracle_u},            \
        {op ".s32" suffix, B32, oracle_s}, {op ".u64" suffix, B64, oracle_u}, {op ".s64" suffix, B64, oracle_s}
#define ALL_WIDTHS(op, oracle_u, oracle_s) W16(op, " %d, %a, %b;", oracle_u, oracle_s)
#define CMP(cmp, u, s)                                                                                                 \
    {"setp." cmp ".u16 %d, %a, %b;", {1, 16, 16, 0}, u}, {"setp." cmp ".s16 %d, %a, %b;", {1, 16, 16, 0}, s},           \
        {"setp." cmp ".u32 %d, %a, %b;", {1, 32, 32, 0}, u}, {"setp." cmp ".s32 %d, %a, %b;", {1, 32, 32, 0}, s},       \
        {"setp." cmp ".u64 %d, %a, %b;", {1, 64, 64, 0}, u}, {"setp." cmp ".s64 %d, %a, %b;", {1, 64, 64, 0}, s}
#define LOGIC(op, o)                                                                                                   \
    {op ".b16 %d, %a, %b;", B16, o}, {op ".b32 %d, %a, %b;", B32, o}, {op ".b64 %d, %a, %b;", B64, o}
#define TERNARY(op, u, s)                                                                                              \
    {op ".u16 %d, %a, %b, %c;", R16, u}, {op ".s16 %d, %a, %b, %c;", R16, s}, {op ".u32 %d, %a, %b, %c;", R32, u},      \
        {op ".s32 %d, %a, %b, %c;", R32, s}, {op ".u64 %d, %a, %b, %c;", R64, u}, {op ".s64 %d, %a, %b, %c;", R64, s}

static const struct row rows[] = {
    ALL_WIDTHS("add", o_add, o_add),
    ALL_WIDTHS("sub", o_sub, o_sub),
    ALL_WIDTHS("mul.lo", o_mul, o_mul),
    ALL_WIDTHS("mul.hi", o_mulhi_u, o_mulhi_s),
    ALL_WIDTHS("div", o_div_u, o_div_s),
    ALL_WIDTHS("rem", o_rem_u, o_rem_s),
    ALL_WIDTHS("min", o_min_u, o_min_s),
    ALL_WIDTHS("max", o_max_u, o_max_s),
    TERNARY("mad.lo", o_mad, o_mad),
    TERNARY("mad.hi", o_madhi_u, o_madhi_s),
    TERNARY("sad", o_sad_u, o_sad_s),
    {"mul.wide.u16 %d, %a, %b;", {32, 16, 16, 0}, o_mul},
    {"mul.wide.s16 %d, %a, %b;", {32, 16, 16, 0}, o_mulwide_s},
    {"mul.wide.u32 %d, %a, %b;", {64, 32, 32, 0}, o_mul},
    {"mul.wide.s32 %d, %a, %b;", {64, 32, 32, 0}, o_mulwide_s},
    {"mad.wide.u16 %d, %a, %b, %c;", {32, 16, 16, 32}, o_mad},
    {"mad.wide.s16 %d, %a, %b, %c;", {32, 16, 16, 32}, o_madwide_s},
    {"mad.wide.u32 %d, %a, %b, %c;", {64, 32, 32, 64}, o_mad},
    {"mad.wide.s32 %d, %a, %b, %c;", {64, 32, 32, 64}, o_madwide_s},
    {"mul24.lo.u32 %d, %a, %b;", B32, o_mul24lo_u},
    {"mul24.hi.u32 %d, %a, %b;", B32, o_mul24hi_u},
    {"mul24.lo.s32 %d, %a, %b;", B32, o_mul24lo_s},
    {"mul24.hi.s32 %d, %a, %b;", B32, o_mul24hi_s},
    {"mad24.lo.u32 %d, %a, %b, %c;", R32, o_mad24lo_u},
    {"add.sat.s32 %d, %a, %b;", B32, o_addsat},
    {"sub.sat.s32 %d, %a, %b;", B32, o_subsat},
    {"mad.hi.sat.s32 %d, %a, %b, %c;", R32, o_madhisat},
    {"abs.s16 %d, %a;", U16, o_abs},
    {"abs.s32 %d, %a;", U32, o_abs},
    {"abs.s64 %d, %a;", U64, o_abs},
    {"neg.s16 %d, %a;", U16, o_neg},
    {"neg.s32 %d, %a;", U32, o_neg},
    {"neg.s64 %d, %a;", U64, o_neg},
    LOGIC("and", o_and),
    LOGIC("or", o_or),
    LOGIC("xor", o_xor),
    {"not.b16 %d, %a;", U16, o_not},
    {"not.b32 %d, %a;", U32, o_not},
    {"not.b64 %d, %a;", U64, o_not},
    {"cnot.b16 %d, %a;", U16, o_cnot},
    {"cnot.b32 %d, %a;", U32, o_cnot},
    {"cnot.b64 %d, %a;", U64, o_cnot},
    {"shl.b16 %d, %a, %b;", {16, 16, 32, 0}, o_shl},
    {"shl.b32 %d, %a, %b;", B32, o_shl},
    {"shl.b64 %d, %a, %b;", {64, 64, 32, 0}, o_shl},
    {"shr.u16 %d, %a, %b;", {16, 16, 32, 0}, o_shr_u},
    {"shr.u32 %d, %a, %b;", B32, o_shr_u},
    {"shr.b32 %d, %a, %b;", B32, o_shr_u},
    {"shr.u64 %d, %a, %b;", {64, 64, 32, 0}, o_shr_u},
    {"shr.s16 %d, %a, %b;", {16, 16, 32, 0}, o_shr_s},
    {"shr.s32 %d, %a, %b;", B32, o_shr_s},
    {"shr.s64 %d, %a, %b;", {64, 64, 32, 0}, o_shr_s},
    {"shf.l.wrap.b32 %d, %a, %b, %c;", R32, o_shf_l_wrap},
    {"shf.l.clamp.b32 %d, %a, %b, %c;", R32, o_shf_l_clamp},
    {"shf.r.wrap.b32 %d, %a, %b, %c;", R32, o_shf_r_wrap},
    {"shf.r.clamp.b32 %d, %a, %b, %c;", R32, o_shf_r_clamp},
    {"lop3.b32 %d, %a, %b, %c, 0x96;", R32, o_lop3_96},
    {"lop3.b32 %d, %a, %b, %c, 0xe8;", R32, o_lop3_e8},
    {"lop3.b32 %d, %a, %b, %c, 0xf8;", R32, o_lop3_f8},
    {"lop3.b32 %d, %a, %b, %c, 0x1b;", R32, o_lop3_1b},
    {"prmt.b32 %d, %a, %b, %c;", R32, o_prmt},
    {"prmt.b32.f4e %d, %a, %b, %c;", R32, o_prmt_f4e},
    {"prmt.b32.b4e %d, %a, %b, %c;", R32, o_prmt_b4e},
    {"prmt.b32.rc8 %d, %a, %b, %c;", R32, o_prmt_rc8},
    {"prmt.b32.ecl %d, %a, %b, %c;", R32, o_prmt_ecl},
    {"prmt.b32.ecr %d, %a, %b, %c;", R32, o_prmt_ecr},
    {"prmt.b32.rc16 %d, %a, %b, %c;", R32, o_prmt_rc16},
    {"popc.b32 %d, %a;", U32, o_popc},
    {"popc.b64 %d, %a;", {32, 64, 0, 0}, o_popc},
    {"clz.b32 %d, %a;", U32, o_clz},
    {"clz.b64 %d, %a;", {32, 64, 0, 0}, o_clz},
    {"brev.b32 %d, %a;", U32, o_brev},
    {"brev.b64 %d, %a;", U64, o_brev},
    {"bfind.u32 %d, %a;", U32, o_bfind_u},
    {"bfind.s32 %d, %a;", U32, o_bfind_s},
    {"bfind.u64 %d, %a;", {32, 64, 0, 0}, o_bfind_u},
    {"bfind.s64 %d, %a;", {32, 64, 0, 0}, o_bfind_s},
    {"bfind.shiftamt.u32 %d, %a;", U32, o_bfind_shift_u},
    {"bfind.shiftamt.s64 %d, %a;", {32, 64, 0, 0}, o_bfind_shift_s},
    {"bfe.u32 %d, %a, %b, %c;", R32, o_bfe_u},
    {"bfe.s32 %d, %a, %b, %c;", R32, o_bfe_s},
    {"bfe.u64 %d, %a, %b, %c;", {64, 64, 32, 32}, o_bfe_u},
    {"bfe.s64 %d, %a, %b, %c;", {64, 64, 32, 32}, o_bfe_s},
    {"bfi.b32 %d, %a, %b, %c, 9;", R32, o_bfi9},
    {"bfi.b64 %d, %a, %b, %c, 64;", {64, 64, 64, 32}, o_bfi64},
    {"bfi.b32 %d, %a, %b, %c, 0;", R32, o_bfi0},
    {"bmsk.wrap.b32 %d, %a, %b;", B32, o_bmsk_wrap},
    {"bmsk.clamp.b32 %d, %a, %b;", B32, o_bmsk_clamp},
    {"szext.wrap.u32 %d, %a, %b;", B32, o_szext_wrap_u},
    {"szext.wrap.s32 %d, %a, %b;", B32, o_szext_wrap_s},
    {"szext.clamp.u32 %d, %a, %b;", B32, o_szext_clamp_u},
    {"szext.clamp.s32 %d, %a, %b;", B32, o_szext_clamp_s},
    {"and.b32 %t4, %b, 31; fns.b32 %d, %a, %t4, %c;", R32, o_fns},
    {"dp4a.u32.u32 %d, %a, %b, %c;", R32, o_dp4a_uu},
    {"dp4a.s32.s32 %d, %a, %b, %c;", R32, o_dp4a_ss},
    {"dp4a.u32.s32 %d, %a, %b, %c;", R32, o_dp4a_us},
    {"dp2a.lo.u32.u32 %d, %a, %b, %c;", R32, o_dp2a_lo_uu},
    {"dp2a.hi.s32.s32 %d, %a, %b, %c;", R32, o_dp2a_hi_ss},
    {"dp2a.hi.s32.u32 %d, %a, %b, %c;", R32, o_dp2a_hi_su},
    {"vabsdiff4.u32.u32.u32 %d, %a, %b, %c;", R32, o_vabsdiff4},
    {"vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;", R32, o_vabsdiff4_add},
    CMP("eq", o_eq, o_eq),
    CMP("ne", o_ne, o_ne),
    CMP("lt", o_lt_u, o_lt_s),
    CMP("le", o_le_u, o_le_s),
    CMP("gt", o_gt_u, o_gt_s),
    CMP("ge", o_ge_u, o_ge_s),
    {"setp.lo.u32 %d, %a, %b;", {1, 32, 32, 0}, o_lt_u},
    {"setp.ls.u64 %d, %a, %b;", {1, 64, 64, 0}, o_le_u},
    {"setp.hi.u32 %d, %a, %b;", {1, 32, 32, 0}, o_gt_u},
    {"setp.hs.u16 %d, %a, %b;", {1, 16, 16, 0}, o_ge_u},
    {"setp.eq.b16 %d, %a, %b;", {1, 16, 16, 0}, o_eq},
    {"setp.ne.b64 %d, %a, %b;", {1, 64, 64, 0}, o_ne},
    {"setp.lt.and.s32 %d, %a, %b, %c;", {1, 32, 32, 1}, o_lt_and},
    {"setp.lt.or.s32 %d, %a, %b, %c;", {1, 32, 32, 1}, o_lt_or},
    {"setp.lt.xor.s32 %d, %a, %b, %c;", {1, 32, 32, 1}, o_lt_xor},
    {"setp.lt.and.s32 %d, %a, %b, !%c;", {1, 32, 32, 1}, o_lt_andnot},
    {"setp.lt.and.s32 %p|%d, %a, %b, %c;", {1, 32, 32, 1}, o_not_lt_and},
    {"setp.lt.and.s32 %d|%c, %a, %b, %c;", {1, 32, 32, 1}, o_lt_and},
    {"set.lt.u32.s32 %d, %a, %b;", B32, o_set_u32},
    {"set.lt.f32.s32 %d, %a, %b;", B32, o_set_f32},
    {"selp.b16 %d, %a, %b, %c;", {16, 16, 16, 1}, o_selp},
    {"selp.b32 %d, %a, %b, %c;", {32, 32, 32, 1}, o_selp},
    {"selp.b64 %d, %a, %b, %c;", {64, 64, 64, 1}, o_selp},
    {"slct.u32.s32 %d, %a, %b, %c;", R32, o_slct},
    {"slct.b64.s32 %d, %a, %b, %c;", {64, 64, 64, 32}, o_slct},
    {"mov.u32 %d, %a;", U32, o_mov},
    {"mov.b64 %d, %a;", U64, o_mov},
    {"mov.b64 %d, {%a, %b};", {64, 32, 32, 0}, o_pack32},
    {"mov.b32 %d, {%a, %b};", {32, 16, 16, 0}, o_pack16},
    {"mov.b64 {%d, %t4}, %a;", {32, 64, 0, 0}, o_unpack_low},
    {"mov.b64 {%t4, %d}, %a;", {32, 64, 0, 0}, o_unpack_high},
    {"{.reg .b16 %h; mov.b64 {%h, _, %d, %h}, %a;}", {16, 64, 0, 0}, o_unpack_16},
    {"cvt.u8.u32 %d, %a;", U32, o_cvt_u8},
    {"cvt.s8.s32 %d, %a;", U32, o_cvt_s8},
    {"cvt.u32.u8 %d, %a;", U32, o_cvt_u8},
    {"cvt.s32.s8 %d, %a;", {32, 16, 0, 0}, o_cvt_s8},
    {"cvt.s64.s8 %d, %a;", {64, 16, 0, 0}, o_cvt_s8},
    {"cvt.s16.s8 %d, %a;", U16, o_cvt_s8},
    {"cvt.u16.u32 %d, %a;", {16, 32, 0, 0}, o_cvt_u16},
    {"cvt.u16.u64 %d, %a;", {16, 64, 0, 0}, o_cvt_u16},
    {"cvt.u16.u8 %d, %a;", U16, o_cvt_u8},
    {"cvt.s32.s16 %d, %a;", {32, 16, 0, 0}, o_cvt_s16},
    {"cvt.u32.u16 %d, %a;", {32, 16, 0, 0}, o_cvt_u16},
    {"cvt.u64.u16 %d, %a;", {64, 16, 0, 0}, o_cvt_u16},
    {"cvt.s64.s16 %d, %a;", {64, 16, 0, 0}, o_cvt_s16},
    {"cvt.u32.u64 %d, %a;", {32, 64, 0, 0}, o_cvt_u32},
    {"cvt.s64.s32 %d, %a;", {64, 32, 0, 0}, o_cvt_s32},
    {"cvt.u64.u32 %d, %a;", {64, 32, 0, 0}, o_cvt_u32},
    {"cvt.s64.s32 %d, %a;", {64, 64, 0, 0}, o_cvt_s32},
    {"cvt.u64.s32 %d, %a;", {64, 32, 0, 0}, o_cvt_s32},
    {"cvt.sat.u8.s32 %d, %a;", U32, o_sat_u8_s32},
    {"cvt.sat.s8.s32 %d, %a;", U32, o_sat_s8_s32},
    {"cvt.sat.s16.u32 %d, %a;", {16, 32, 0, 0}, o_sat_s16_u32},
    {"cvt.sat.u32.s64 %d, %a;", {32, 64, 0, 0}, o_sat_u32_s64},
    {"cvt.sat.s32.u64 %d, %a;", {32, 64, 0, 0}, o_sat_s32_u64},
    {"cvt.sat.u64.s64 %d, %a;", U64, o_sat_u64_s64},
    {"cvt.sat.s64.u64 %d, %a;", U64, o_sat_s64_u64},
    {"{.reg .b32 %al, %ah, %bl, %bh; mov.b64 {%al,%ah}, %a; mov.b64 {%bl,%bh}, %b; add.cc.u32 %al, %al, %bl; addc.u32 %d, %ah, %bh;}",
     {32, 64, 64, 0}, o_addcc},
    {"{.reg .b64 %z; add.cc.u64 %z, %c, %c; addc.u64 %d, %a, %b;}", R64, o_addcc_mid},
    {"{.reg .b64 %z; sub.cc.s64 %z, %c, %a; subc.s64 %d, %a, %b;}", R64, o_subcc_mid},
    {"{.reg .b32 %al, %cl, %ch, %m; cvt.u32.u64 %al, %a; mov.b64 {%cl, %ch}, %c; mad.lo.cc.u32 %m, %al, %b, %cl; madc.hi.u32 %d, %al, %b, %ch;}",
     {32, 64, 32, 64}, o_madcc},
};

// clang-format on

static int arity(const struct row *r)
{
    return r->shape.c ? 3 : r->shape.b ? 2 : 1;
}

static uint64_t operand(uint64_t v, unsigned bits)
{
    return bits == 1 ? (v & UINT32_MAX) != 0 : bits ? low(v, bits) : 0;
}

static void test_row(void **state)
{
    const struct row *r = *state;
    uint32_t count, wrong = 0;
    uint64_t *in = operands(arity(r), &count), *out = calloc(count, sizeof *out);
    assert_non_null(out);
    kit_instruction(r->instruction, r->shape, in, out, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t a = operand(in[3 * i], r->shape.a), b = operand(in[3 * i + 1], r->shape.b),
                 c = operand(in[3 * i + 2], r->shape.c);
        if (r->oracle == o_madcc)
            a = low(a, 32);
        uint64_t expected = operand(r->oracle(a, b, c, r->shape.a), r->shape.d);
        if (out[i] != expected && wrong++ < 5)
            print_error("%s a=%llx b=%llx c=%llx: %llx, expected %llx\n", r->instruction, (unsigned long long)a,
                        (unsigned long long)b, (unsigned long long)c, (unsigned long long)out[i],
                        (unsigned long long)expected);
    }
    free(in);
    free(out);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    enum { COUNT = sizeof rows / sizeof *rows };
    static struct CMUnitTest tests[COUNT];
    static char names[COUNT][160];
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "test_%s", rows[i].instruction);
        tests[i] =
            (struct CMUnitTest){.name = names[i], .test_func = test_row, .initial_state = (void *)(uintptr_t)&rows[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
