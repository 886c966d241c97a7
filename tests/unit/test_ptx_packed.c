/* Packed arithmetic: formats of 8 bits and fewer against tables of their values (every code, every half-precision
 * number, and singles around every point where the result changes), pairs of 16-bit integers and cvt.pack against plain
 * C, and the forms of half precision that test_ptx_float has no row for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

/* ---- formats of 8 bits and fewer ---- */

struct format {
    const char *name;
    int exponent_bits, mantissa_bits, bias, bits;
    int infinities, nans; /* e5m2 is IEEE; of e4m3 only the highest code is NaN */
};
static const struct format formats[] = {{"e4m3x2", 4, 3, 7, 8, 0, 1},
                                        {"e5m2x2", 5, 2, 15, 8, 1, 1},
                                        {"e2m3x2", 2, 3, 1, 6, 0, 0},
                                        {"e3m2x2", 3, 2, 3, 6, 0, 0},
                                        {"e2m1x2", 2, 1, 1, 4, 0, 0}};

/* The number that a code stands for; by the definition of such formats. */
static double value(const struct format *f, unsigned code)
{
    unsigned top = (1u << f->exponent_bits) - 1, e = code >> f->mantissa_bits & top,
             m = code & ((1u << f->mantissa_bits) - 1), most = (1u << f->mantissa_bits) - 1;
    double sign = code >> (f->bits - 1) & 1 ? -1 : 1;
    if (f->infinities && e == top)
        return m ? NAN : sign * INFINITY;
    if (f->nans && !f->infinities && e == top && m == most)
        return NAN;
    if (e == 0)
        return sign * m * pow(2, 1 - f->bias - f->mantissa_bits);
    return sign * (1 + m * pow(2, -f->mantissa_bits)) * pow(2, (int)e - f->bias);
}

static unsigned largest(const struct format *f)
{
    unsigned code = (1u << (f->bits - 1)) - 1;
    while (!isfinite(value(f, code)))
        code--;
    return code;
}

/* The nearest code, even on ties, found by looking at all of them. */
static unsigned nearest(const struct format *f, double x, int relu)
{
    unsigned most = largest(f), best = 0, sign = signbit(x) ? 1u << (f->bits - 1) : 0;
    if (isnan(x))
        return f->nans ? 0x7f : most;
    if (sign && relu)
        return 0;
    x = fabs(x);
    if (x > value(f, most))
        return sign | most;
    for (unsigned code = 1; code <= most; code++) {
        double d = fabs(x - value(f, code)), b = fabs(x - value(f, best));
        if (d < b || (d == b && !(code & 1)))
            best = code;
    }
    return sign | best;
}

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float half_value(unsigned h)
{
    _Float16 x;
    uint16_t bits = (uint16_t)h;
    memcpy(&x, &bits, sizeof x);
    return (float)x;
}

static unsigned pack(const struct format *f, unsigned high, unsigned low)
{
    return f->bits == 4 ? high << 4 | low : high << 8 | low;
}

static void test_to_small_formats_from_f32(void **state)
{
    enum { MAX = 20000 };
    static uint64_t in[MAX * 3], out[MAX];
    for (size_t k = 0; k < 5; k++)
        for (int relu = 0; relu < 2; relu++) {
            const struct format *f = &formats[k];
            uint32_t n = 0;
            uint64_t seed = 5;
            float around[4000];
            uint32_t points = 0;
            for (unsigned code = 0; code <= largest(f); code++) {
                double at = value(f, code), between = code < largest(f) ? (at + value(f, code + 1)) / 2 : at * 1.1;
                const float centers[2] = {(float)at, (float)between};
                for (int i = 0; i < 2; i++) {
                    around[points++] = centers[i];
                    around[points++] = nextafterf(centers[i], INFINITY);
                    around[points++] = nextafterf(centers[i], 0);
                }
            }
            around[points++] = INFINITY;
            around[points++] = NAN;
            around[points++] = 3e38f;
            around[points++] = 1e-40f;
            for (uint32_t i = 0; i < points; i++, n++) {
                in[3 * n] = bits_of(i & 1 ? -around[i] : around[i]);
                in[3 * n + 1] = bits_of(i & 1 ? around[i] : -around[i]);
            }
            for (; n < MAX; n++) { /* exponents around the format's */
                uint32_t r = (uint32_t)kit_random(&seed);
                in[3 * n] = (r & 0x807fffff) | (100 + (r >> 23) % 50) << 23;
                in[3 * n + 1] = n & 7 ? (uint32_t)(kit_random(&seed) & 0x807fffff) | (120u + n % 12) << 23
                                      : (uint32_t)kit_random(&seed);
            }
            char text[100];
            snprintf(text, sizeof text, "%s cvt.rn.satfinite%s.%s.f32 %s, %%a, %%b; %s",
                     f->bits == 4 ? "{ .reg .b8 %e;" : "", relu ? ".relu" : "", f->name, f->bits == 4 ? "%e" : "%d",
                     f->bits == 4 ? "cvt.u16.u8 %d, %e; }" : "");
            kit_instruction(text, (struct kit_shape){16, 32, 32, 0}, in, out, MAX);
            for (uint32_t i = 0; i < MAX; i++) {
                float a, b;
                uint32_t ua = (uint32_t)in[3 * i], ub = (uint32_t)in[3 * i + 1];
                memcpy(&a, &ua, sizeof a);
                memcpy(&b, &ub, sizeof b);
                unsigned want = pack(f, nearest(f, a, relu), nearest(f, b, relu));
                if (out[i] != want)
                    fail_msg("%s: %a %a: %#llx, want %#x", text, (double)a, (double)b, (unsigned long long)out[i],
                             want);
            }
        }
}

static void test_to_small_formats_from_halves(void **state)
{
    static uint64_t in[65536 * 3], out[65536];
    for (size_t k = 0; k < 5; k++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            const struct format *f = &formats[k];
            for (uint32_t i = 0; i < 65536; i++)
                in[3 * i] = i << 16 | (i ^ 0x8421);
            char text[100];
            snprintf(text, sizeof text, "%s cvt.rn.satfinite.%s.%s %s, %%a; %s", f->bits == 4 ? "{ .reg .b8 %e;" : "",
                     f->name, bf16 ? "bf16x2" : "f16x2", f->bits == 4 ? "%e" : "%d",
                     f->bits == 4 ? "cvt.u16.u8 %d, %e; }" : "");
            kit_instruction(text, (struct kit_shape){16, 32, 0, 0}, in, out, 65536);
            for (uint32_t i = 0; i < 65536; i++) {
                float part[2];
                for (int h = 0; h < 2; h++) {
                    uint32_t half = (uint32_t)in[3 * i] >> 16 * h & 0xffff, wide = half << 16;
                    part[h] = half_value(half);
                    if (bf16)
                        memcpy(&part[h], &wide, sizeof wide);
                }
                unsigned want = pack(f, nearest(f, part[1], 0), nearest(f, part[0], 0));
                if (out[i] != want)
                    fail_msg("%s: %#x: %#llx, want %#x", text, (unsigned)in[3 * i], (unsigned long long)out[i], want);
            }
        }
}

static unsigned half_code(double x)
{
    _Float16 h = (_Float16)x;
    uint16_t bits;
    memcpy(&bits, &h, sizeof bits);
    return isnan(x) ? 0x7fff : bits;
}

static void test_from_small_formats(void **state)
{
    static uint64_t in[65536 * 3], out[65536];
    for (size_t k = 0; k < 5; k++)
        for (int relu = 0; relu < 2; relu++) {
            const struct format *f = &formats[k];
            unsigned low = (1u << f->bits) - 1, shift = f->bits == 4 ? 4 : 8, count = 0;
            for (unsigned a = 0; a <= low; a++)
                for (unsigned b = 0; b <= low; b++)
                    in[3 * count++] = a << shift | b;
            char text[100];
            snprintf(text, sizeof text, "%s cvt.rn%s.f16x2.%s %%d, %s; %s",
                     f->bits == 4 ? "{ .reg .b8 %e; cvt.u8.u16 %e, %a;" : "", relu ? ".relu" : "", f->name,
                     f->bits == 4 ? "%e" : "%a", f->bits == 4 ? "}" : "");
            kit_instruction(text, (struct kit_shape){32, 16, 0, 0}, in, out, count);
            for (uint32_t i = 0; i < count; i++) {
                double a = value(f, (unsigned)in[3 * i] >> shift & low), b = value(f, (unsigned)in[3 * i] & low);
                unsigned high = relu && signbit(a) && !isnan(a) ? 0 : half_code(a),
                         rest = relu && signbit(b) && !isnan(b) ? 0 : half_code(b), want = high << 16 | rest;
                if (out[i] != want)
                    fail_msg("%s: %#x: %#llx, want %#x", text, (unsigned)in[3 * i], (unsigned long long)out[i], want);
            }
        }
}

/* ---- integers ---- */

static uint64_t *random_words(uint32_t count)
{
    static const uint32_t edges[] = {0,      1,       0x7f,       0x80,       0xff,       0x7fff,     0x8000,
                                     0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff, 0xffff8000, 0xffff7fff};
    uint64_t *in = calloc(count * 3u, sizeof *in), seed = 99;
    assert_non_null(in);
    for (uint32_t i = 0; i < count * 3; i++) {
        uint64_t r = kit_random(&seed);
        in[i] = r & 1 ? (uint32_t)(r >> 32) : edges[(r >> 8) % 14] | (r & 2 ? edges[(r >> 16) % 14] << 16 : 0);
    }
    return in;
}

static int halves_of(uint32_t v, int h, int is_signed)
{
    v = v >> 16 * h & 0xffff;
    return is_signed && v > 0x7fff ? (int)v - 0x10000 : (int)v;
}

static void test_pairs_of_integers(void **state)
{
    enum { N = 20000 };
    static uint64_t out[N];
    static const struct {
        const char *text;
        int op, is_signed, relu;
    } rows[] = {{"add.u16x2 %d, %a, %b;", '+', 0, 0},      {"add.s16x2 %d, %a, %b;", '+', 1, 0},
                {"min.u16x2 %d, %a, %b;", '<', 0, 0},      {"min.s16x2 %d, %a, %b;", '<', 1, 0},
                {"max.u16x2 %d, %a, %b;", '>', 0, 0},      {"max.s16x2 %d, %a, %b;", '>', 1, 0},
                {"min.s16x2.relu %d, %a, %b;", '<', 1, 1}, {"max.relu.s16x2 %d, %a, %b;", '>', 1, 1}};
    uint64_t *in = random_words(N);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        kit_instruction(rows[r].text, (struct kit_shape){32, 32, 32, 0}, in, out, N);
        for (uint32_t i = 0; i < N; i++) {
            uint32_t want = 0;
            for (int h = 0; h < 2; h++) {
                int a = halves_of((uint32_t)in[3 * i], h, rows[r].is_signed),
                    b = halves_of((uint32_t)in[3 * i + 1], h, rows[r].is_signed);
                int x = rows[r].op == '+' ? a + b : (rows[r].op == '<') == (a < b) ? a : b;
                want |= ((uint32_t)(rows[r].relu && x < 0 ? 0 : x) & 0xffff) << 16 * h;
            }
            if (out[i] != want)
                fail_msg("%s %#x %#x: %#llx, want %#x", rows[r].text, (unsigned)in[3 * i], (unsigned)in[3 * i + 1],
                         (unsigned long long)out[i], want);
        }
    }
    kit_instruction("max.s32.relu %d, %a, %b;", (struct kit_shape){32, 32, 32, 0}, in, out, N);
    for (uint32_t i = 0; i < N; i++) {
        int32_t a = (int32_t)in[3 * i], b = (int32_t)in[3 * i + 1], want = a > b ? a : b;
        assert_int_equal(out[i], want < 0 ? 0 : want);
    }
    kit_instruction("min.relu.s32 %d, %a, %b;", (struct kit_shape){32, 32, 32, 0}, in, out, N);
    for (uint32_t i = 0; i < N; i++) {
        int32_t a = (int32_t)in[3 * i], b = (int32_t)in[3 * i + 1], want = a < b ? a : b;
        assert_int_equal(out[i], want < 0 ? 0 : want);
    }
    free(in);
}

static void test_cvt_pack(void **state)
{
    enum { N = 5000 };
    static uint64_t out[N];
    static const struct {
        const char *type;
        int bits, is_signed;
    } rows[] = {{"u16", 16, 0}, {"s16", 16, 1}, {"u8", 8, 0}, {"s8", 8, 1},
                {"u4", 4, 0},   {"s4", 4, 1},   {"u2", 2, 0}, {"s2", 2, 1}};
    uint64_t *in = random_words(N);
    for (size_t r = 0; r < 8; r++) {
        int n = rows[r].bits;
        char text[100];
        snprintf(text, sizeof text,
                 n == 16 ? "cvt.pack.sat.%s.s32 %%d, %%a, %%b;" : "cvt.pack.sat.%s.s32.b32 %%d, %%a, %%b, %%c;",
                 rows[r].type);
        for (uint32_t i = 0; i < N; i += 2) /* half of them near the limits */
            for (int k = 0; k < 2; k++)
                in[3 * i + k] = (uint32_t)((int32_t)in[3 * i + k] >> (32 - n - 2));
        kit_instruction(text, (struct kit_shape){32, 32, 32, 32}, in, out, N);
        for (uint32_t i = 0; i < N; i++) {
            int64_t low = rows[r].is_signed ? -(1 << (n - 1)) : 0,
                    high = rows[r].is_signed ? (1 << (n - 1)) - 1 : (1 << n) - 1;
            uint64_t want = n == 16 ? 0 : (uint32_t)in[3 * i + 2];
            for (int k = 0; k < 2; k++) { /* a, then b below it */
                int64_t v = (int32_t)in[3 * i + k];
                v = v < low ? low : v > high ? high : v;
                want = want << n | ((uint64_t)v & ((1u << n) - 1));
            }
            if (out[i] != (uint32_t)want)
                fail_msg("%s: %#llx, want %#x", text, (unsigned long long)out[i], (uint32_t)want);
        }
    }
    free(in);
}

/* ---- half precision ---- */

static unsigned pick(unsigned a, unsigned b, int bf16, int min, int nan)
{
    unsigned infinity = bf16 ? 0x7f80 : 0x7c00, sign = (a ^ b) & 0x8000;
    a &= 0x7fff;
    b &= 0x7fff;
    if ((a > infinity && b > infinity) || (nan && (a > infinity || b > infinity)))
        return 0x7fff;
    if (a > infinity || b > infinity)
        return (a > infinity ? b : a) | sign;
    return (min == (a < b) ? a : b) | sign; /* magnitudes are ordered as their codes */
}

static void test_min_max_xorsign(void **state)
{
    enum { N = 60000 };
    static uint64_t in[N * 3], out[N];
    static const unsigned edges[] = {0,      0x8000, 1,      0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00,
                                     0x7c01, 0x7e00, 0x7fff, 0x3f80, 0x7f80, 0xff80, 0x7f81, 0xffff};
    uint64_t seed = 3;
    for (uint32_t i = 0; i < N; i++)
        for (int k = 0; k < 2; k++) {
            uint64_t r = kit_random(&seed);
            in[3 * i + k] = (r & 1 ? edges[r >> 8 & 15] : r >> 16 & 0xffff) |
                            (r & 2 ? edges[r >> 12 & 15] : r >> 40 & 0xffff) << 16;
        }
    for (int how = 0; how < 16; how++) {
        int bf16 = how & 1, min = how >> 1 & 1, nan = how >> 2 & 1, two = how >> 3;
        char text[100];
        snprintf(text, sizeof text, "%s%s.xorsign.abs.%s%s %%d, %%a, %%b;", min ? "min" : "max", nan ? ".NaN" : "",
                 bf16 ? "bf16" : "f16", two ? "x2" : "");
        uint8_t bits = two ? 32 : 16;
        kit_instruction(text, (struct kit_shape){bits, bits, bits, 0}, in, out, N);
        for (uint32_t i = 0; i < N; i++) {
            unsigned a = (unsigned)in[3 * i], b = (unsigned)in[3 * i + 1];
            unsigned want = pick(a & 0xffff, b & 0xffff, bf16, min, nan);
            if (two)
                want |= pick(a >> 16, b >> 16, bf16, min, nan) << 16;
            if (out[i] != want)
                fail_msg("%s %#x %#x: %#llx, want %#x", text, a, b, (unsigned long long)out[i], want);
        }
    }
}

/* cvt between f16 and bf16, and to integral values within bf16: every number. */
static void test_cvt_between_halves(void **state)
{
    static uint64_t in[65536 * 3], out[65536];
    for (uint32_t i = 0; i < 65536; i++)
        in[3 * i] = i;
    static const char *const modes[] = {"rni", "rzi", "rmi", "rpi"};
    for (int m = 0; m < 4; m++) {
        char text[60];
        snprintf(text, sizeof text, "cvt.%s.bf16.bf16 %%d, %%a;", modes[m]);
        kit_instruction(text, (struct kit_shape){16, 16, 0, 0}, in, out, 65536);
        for (uint32_t i = 0; i < 65536; i++) {
            uint32_t wide = i << 16;
            float x;
            memcpy(&x, &wide, sizeof x);
            float r = m == 0 ? rintf(x) : m == 1 ? truncf(x) : m == 2 ? floorf(x) : ceilf(x);
            /* up to 256 every integer is a bfloat16, above all of them are integers */
            assert_int_equal(out[i], isnan(x) ? 0x7fff : bits_of(r) >> 16);
        }
    }
    kit_instruction("cvt.rn.f16.bf16 %d, %a;", (struct kit_shape){16, 16, 0, 0}, in, out, 65536);
    for (uint32_t i = 0; i < 65536; i++) {
        uint32_t wide = i << 16;
        float x;
        memcpy(&x, &wide, sizeof x);
        assert_int_equal(out[i], half_code((double)x));
    }
    for (int up = 0; up < 2; up++) {
        kit_instruction(up ? "cvt.rp.bf16.f16 %d, %a;" : "cvt.rz.bf16.f16 %d, %a;", (struct kit_shape){16, 16, 0, 0},
                        in, out, 65536);
        for (uint32_t i = 0; i < 65536; i++) {
            float x = half_value(i);
            uint32_t want = bits_of(x) >> 16;
            if (up && x > 0 && (bits_of(x) & 0xffff))
                want++;
            assert_int_equal(out[i], isnan(x) ? 0x7fff : want);
        }
    }
}

/* ex2.approx.ftz.bf16: its error is at most 2^-7, relative, by PTX; its corner cases are exact. */
static void test_ex2_bfloat16(void **state)
{
    static uint64_t in[65536 * 3], out[65536];
    for (uint32_t i = 0; i < 65536; i++)
        in[3 * i] = i;
    kit_instruction("ex2.approx.ftz.bf16 %d, %a;", (struct kit_shape){16, 16, 0, 0}, in, out, 65536);
    for (uint32_t i = 0; i < 65536; i++) {
        uint32_t wide = i << 16, result = (uint32_t)out[i] << 16;
        float x, r;
        memcpy(&x, &wide, sizeof x);
        memcpy(&r, &result, sizeof r);
        double exact = exp2((double)x);
        if (isnan(x))
            assert_int_equal(out[i], 0x7fff);
        else if (exact < 0x1p-126)
            assert_true(r == 0 && !signbit(r));
        else if (exact > 0x1.ffp127)
            assert_true(isinf(r));
        else
            assert_true(fabs((double)r - exact) <= exact * 0x1p-7);
        if ((i & 0x7f80) == 0)
            assert_int_equal(out[i], 0x3f80);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_small_formats_from_f32),
        cmocka_unit_test(test_to_small_formats_from_halves),
        cmocka_unit_test(test_from_small_formats),
        cmocka_unit_test(test_pairs_of_integers),
        cmocka_unit_test(test_cvt_pack),
        cmocka_unit_test(test_min_max_xorsign),
        cmocka_unit_test(test_cvt_between_halves),
        cmocka_unit_test(test_ex2_bfloat16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
