/* Video instructions against plain C, written from the PTX ISA's pseudocode: partSelectSignExtend, optSaturate,
 * optSecondaryOp, optMerge, and the SIMD forms element by element. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

typedef __int128 wide;
enum { COUNT = 3000 };

static const uint32_t edges[] = {0,          1,          2,          31,         32,         33,         0x7f,
                                 0x80,       0xff,       0x7fff,     0x8000,     0xffff,     0x7fffffff, 0x80000000,
                                 0xffffffff, 0xfffffffe, 0x00ff00ff, 0x7f80ff01, 0x80008000, 0x7fff8000, 0x12345678};
enum { EDGES = sizeof edges / sizeof *edges };

static uint64_t *operands(void)
{
    static uint64_t in[COUNT * 3];
    uint64_t seed = 11;
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t k = 0; k < 3; k++) {
            uint64_t r = kit_random(&seed);
            in[3 * i + k] = r & 1 ? edges[(r >> 8) % EDGES] : (uint32_t)(r >> 32) >> (r >> 3 & 31);
        }
    return in;
}

static wide clamp(wide x, wide low, wide high)
{
    return x < low ? low : x > high ? high : x;
}

/* "h1", "b2" or "". */
static wide select_part(uint32_t v, const char *part, bool is_signed)
{
    if (part[0] == 'b')
        v = v >> 8 * (part[1] - '0') & 0xff;
    if (part[0] == 'h')
        v = v >> 16 * (part[1] - '0') & 0xffff;
    if (!is_signed)
        return v;
    return part[0] == 'b' ? (int8_t)v : part[0] == 'h' ? (int16_t)v : (int32_t)v;
}

/* ---- scalar ---- */

struct scalar {
    const char *name;
    bool d_signed, a_signed, b_signed, sat;
    const char *d, *a, *b, *second, *mode;
};

static wide primary(const struct scalar *s, wide a, wide b)
{
    const char *n = s->name;
    if (!strcmp(n, "vadd"))
        return a + b;
    if (!strcmp(n, "vsub"))
        return a - b;
    if (!strcmp(n, "vabsdiff"))
        return a > b ? a - b : b - a;
    if (!strcmp(n, "vmin"))
        return a < b ? a : b;
    if (!strcmp(n, "vmax"))
        return a > b ? a : b;
    if (!strcmp(s->mode, ".wrap"))
        b &= 31;
    else
        b = b > 32 ? 32 : b;
    if (!strcmp(n, "vshl"))
        return a * ((wide)1 << b);
    for (; b > 0; b--) /* a floor, one bit at a time */
        a = a >= 0 ? a / 2 : (a - 1) / 2;
    return a;
}

static uint32_t finish(const struct scalar *s, wide t, uint32_t c)
{
    unsigned bits = s->d[0] == 'b'   ? 8
                    : s->d[0] == 'h' ? 16
                                     : 32,
             shift = s->d[0] ? bits * (unsigned)(s->d[1] - '0') : 0;
    if (s->sat && s->d_signed)
        t = clamp(t, -((wide)1 << (bits - 1)), ((wide)1 << (bits - 1)) - 1);
    else if (s->sat)
        t = clamp(t, 0, ((wide)1 << bits) - 1);
    wide third = s->d_signed ? (wide)(int32_t)c : (wide)c;
    if (!strcmp(s->second, ".add"))
        t += third;
    else if (!strcmp(s->second, ".min"))
        t = t < third ? t : third;
    else if (!strcmp(s->second, ".max"))
        t = t > third ? t : third;
    if (bits == 32)
        return (uint32_t)t;
    uint32_t mask = ((1u << bits) - 1) << shift;
    return ((uint32_t)t << shift & mask) | (c & ~mask);
}

static const char *dot(const char *part)
{
    return part[0] ? "." : "";
}

static void check_scalar(const struct scalar *s)
{
    static uint64_t out[COUNT];
    char text[200];
    const uint64_t *in = operands();
    bool third = s->second[0] || s->d[0], compares = !strcmp(s->name, "vset");
    if (compares)
        snprintf(text, sizeof text, "vset.%c32.%c32%s%s %%d%s%s, %%a%s%s, %%b%s%s%s;", "us"[s->a_signed],
                 "us"[s->b_signed], s -> mode, s -> second, dot(s->d), s -> d, dot(s->a), s -> a, dot(s->b), s -> b,
                 third ? ", %c" : "");
    else
        snprintf(text, sizeof text, "%s.%c32.%c32.%c32%s%s%s %%d%s%s, %%a%s%s, %%b%s%s%s;", s->name, "us"[s->d_signed],
                 "us"[s->a_signed], "us"[s->b_signed], s -> sat ? ".sat" : "", s->mode, s->second, dot(s->d), s->d,
                 dot(s->a), s->a, dot(s->b), s->b, third ? ", %c" : "");
    kit_instruction(text, (struct kit_shape){32, 32, 32, 32}, in, out, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        wide a = select_part((uint32_t)in[3 * i], s->a, s->a_signed),
             b = select_part((uint32_t)in[3 * i + 1], s->b, s->b_signed), t;
        if (compares)
            t = !strcmp(s->mode, ".eq")   ? a == b
                : !strcmp(s->mode, ".ne") ? a != b
                : !strcmp(s->mode, ".lt") ? a < b
                : !strcmp(s->mode, ".le") ? a <= b
                : !strcmp(s->mode, ".gt") ? a > b
                                          : a >= b;
        else
            t = primary(s, a, b);
        uint32_t want = finish(s, t, (uint32_t)in[3 * i + 2]);
        if (out[i] != want)
            fail_msg("%s: a %#x b %#x c %#x: %#llx, want %#x", text, (unsigned)in[3 * i], (unsigned)in[3 * i + 1],
                     (unsigned)in[3 * i + 2], (unsigned long long)out[i], want);
    }
}

static const char *const parts[] = {"", "h0", "h1", "b0", "b1", "b2", "b3"};
static const char *const seconds[] = {"", ".add", ".min", ".max"};

static void test_scalar_every_type(void **state)
{
    static const char *const names[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr"};
    for (size_t n = 0; n < 7; n++)
        for (unsigned t = 0; t < 16; t++)
            for (size_t second = 0; second < 4; second++) {
                bool shift = n > 4;
                struct scalar s = {.name = names[n],
                                   .d_signed = t & 1,
                                   .a_signed = t & 2,
                                   .b_signed = shift ? false : t & 4,
                                   .sat = t & 8,
                                   .d = "",
                                   .a = parts[(t + n) % 7],
                                   .b = parts[(t + second) % 7],
                                   .second = seconds[second],
                                   .mode = !shift  ? ""
                                           : t & 4 ? ".wrap"
                                                   : ".clamp"};
                check_scalar(&s);
                s.a = s.b = "";
                check_scalar(&s);
            }
}

static void test_scalar_merge(void **state)
{
    static const char *const names[] = {"vadd", "vabsdiff", "vshl"};
    for (size_t n = 0; n < 3; n++)
        for (size_t d = 1; d < 7; d++)
            for (unsigned t = 0; t < 4; t++)
                check_scalar(&(struct scalar){.name = names[n],
                                              .d_signed = t & 1,
                                              .a_signed = true,
                                              .sat = t & 2,
                                              .d = parts[d],
                                              .a = parts[d * 5 % 7],
                                              .b = parts[d * 3 % 7],
                                              .second = "",
                                              .mode = n == 2 ? ".clamp" : ""});
}

static void test_vset(void **state)
{
    static const char *const compares[] = {".eq", ".ne", ".lt", ".le", ".gt", ".ge"};
    for (size_t k = 0; k < 6; k++)
        for (unsigned t = 0; t < 4; t++)
            for (size_t second = 0; second < 4; second++) {
                struct scalar s = {.name = "vset",
                                   .a_signed = t & 1,
                                   .b_signed = t & 2,
                                   .d = "",
                                   .a = parts[(k + t) % 7],
                                   .b = parts[t],
                                   .second = seconds[second],
                                   .mode = compares[k]};
                check_scalar(&s);
                s.second = "";
                s.d = parts[1 + k];
                check_scalar(&s);
            }
}

/* ---- vmad ---- */

static uint32_t want_mad(uint32_t a, uint32_t b, uint32_t c, unsigned how, unsigned shift)
{
    bool a_signed = how & 1, b_signed = how & 2, minus = how & 4, minus_c = how & 8, one = how & 16, sat = how & 32;
    bool is_signed = a_signed || b_signed || minus || minus_c;
    wide x = select_part(a, "h1", a_signed), y = select_part(b, "", b_signed), t = x * y;
    wide third = is_signed ? (wide)(int32_t)c : (wide)c;
    t = (minus ? -t : t) + (minus_c ? -third : third) + one;
    for (unsigned i = 0; i < shift; i++)
        t = t >= 0 ? t / 2 : (t - 1) / 2;
    uint64_t result = (uint64_t)t;
    if (!sat)
        return (uint32_t)result;
    return is_signed ? (uint32_t)clamp((int64_t)result, INT32_MIN, INT32_MAX) : (uint32_t)clamp(result, 0, UINT32_MAX);
}

static void test_vmad(void **state)
{
    static uint64_t out[COUNT];
    const uint64_t *in = operands();
    for (unsigned how = 0; how < 64; how++)
        for (unsigned k = 0; k < 3; k++) {
            bool minus = how & 4, minus_c = how & 8, one = how & 16;
            if ((minus && minus_c) || (one && (minus || minus_c)))
                continue;
            static const unsigned shifts[] = {0, 7, 15};
            char text[200];
            snprintf(text, sizeof text, "vmad.%s32.%c32.%c32%s%s%s %%d, %s%%a.h1, %%b, %s%%c;", how & 15 ? "s" : "u",
                     "us"[how & 1], "us"[how >> 1 & 1], one ? ".po" : "", how & 32 ? ".sat" : "",
                     k == 0   ? ""
                     : k == 1 ? ".shr7"
                              : ".shr15",
                     minus ? "-" : "", minus_c ? "-" : "");
            kit_instruction(text, (struct kit_shape){32, 32, 32, 32}, in, out, COUNT);
            for (uint32_t i = 0; i < COUNT; i++) {
                uint32_t want =
                    want_mad((uint32_t)in[3 * i], (uint32_t)in[3 * i + 1], (uint32_t)in[3 * i + 2], how, shifts[k]);
                if (out[i] != want)
                    fail_msg("%s: a %#x b %#x c %#x: %#llx, want %#x", text, (unsigned)in[3 * i],
                             (unsigned)in[3 * i + 1], (unsigned)in[3 * i + 2], (unsigned long long)out[i], want);
            }
        }
}

/* ---- SIMD ---- */

struct simd {
    const char *name; /* without its digit; with the comparison of vset */
    bool halves, d_signed, a_signed, b_signed, sat, add;
    const char *d, *a, *b; /* digits; "" */
};

static int element(uint32_t a, uint32_t b, const struct simd *s, const char *digits, unsigned i, bool second)
{
    unsigned count = s->halves ? 2 : 4, bits = 32 / count, n = second ? i + count : i;
    if (digits[0])
        n = (unsigned)(digits[count - 1 - i] - '0');
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t v = (uint32_t)(both >> n * bits) & ((1u << bits) - 1);
    bool is_signed = second ? s->b_signed : s->a_signed;
    return !is_signed ? (int)v : s->halves ? (int16_t)v : (int8_t)v;
}

static int simd_result(const struct simd *s, int x, int y)
{
    switch (s->name[1]) {
    case 'a':
        if (s->name[2] == 'd')
            return x + y;
        if (s->name[2] == 'b')
            return abs(x - y);
        return (x + y) / 2 + (x + y) % 2; /* vavrg: halves go away from zero */
    case 's':
        if (s->name[2] == 'u')
            return x - y;
        switch (s->name[5] * 256 + s->name[6]) {
        case 'e' * 256 + 'q':
            return x == y;
        case 'n' * 256 + 'e':
            return x != y;
        case 'l' * 256 + 't':
            return x < y;
        case 'l' * 256 + 'e':
            return x <= y;
        case 'g' * 256 + 't':
            return x > y;
        default:
            return x >= y;
        }
    default:
        return (s->name[2] == 'i') == (x < y) ? x : y;
    }
}

static uint32_t want_simd(const struct simd *s, uint32_t a, uint32_t b, uint32_t c)
{
    unsigned count = s->halves ? 2 : 4, bits = 32 / count;
    uint32_t sum = c, d = 0;
    for (unsigned i = 0; i < count; i++) {
        int t = simd_result(s, element(a, b, s, s->a, i, false), element(a, b, s, s->b, i, true));
        bool kept = s->d[0] && !strchr(s->d, (char)('0' + i));
        if (s->sat && s->d_signed)
            t = (int)clamp(t, -(1 << (bits - 1)), (1 << (bits - 1)) - 1);
        else if (s->sat)
            t = (int)clamp(t, 0, (1 << bits) - 1);
        sum += kept ? 0 : (uint32_t)t;
        d |= (kept ? c >> i * bits & ((1u << bits) - 1) : (uint32_t)t & ((1u << bits) - 1)) << i * bits;
    }
    return s->add ? sum : d;
}

static void check_simd(const struct simd *s)
{
    static uint64_t out[COUNT];
    const uint64_t *in = operands();
    char text[200], types[40];
    const char *letter = s->halves ? ".h" : ".b";
    bool set = s->name[1] == 's' && s->name[2] == 'e';
    snprintf(types, sizeof types, set ? ".%.0s%c32.%c32%s" : ".%s32.%c32.%c32%s", s->d_signed ? "s" : "u",
             "us"[s->a_signed], "us"[s->b_signed], set ? s->name + 4 : "");
    snprintf(text, sizeof text, "%.*s%c%s%s%s %%d%s%s, %%a%s%s, %%b%s%s, %%c;", set ? 4 : 99, s->name,
             s->halves ? '2' : '4', types, s->sat ? ".sat" : "", s->add ? ".add" : "", s->d[0] ? letter : "", s->d,
             s->a[0] ? letter : "", s->a, s->b[0] ? letter : "", s->b);
    kit_instruction(text, (struct kit_shape){32, 32, 32, 32}, in, out, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t want = want_simd(s, (uint32_t)in[3 * i], (uint32_t)in[3 * i + 1], (uint32_t)in[3 * i + 2]);
        if (out[i] != want)
            fail_msg("%s: a %#x b %#x c %#x: %#llx, want %#x", text, (unsigned)in[3 * i], (unsigned)in[3 * i + 1],
                     (unsigned)in[3 * i + 2], (unsigned long long)out[i], want);
    }
}

static void test_simd_every_type(void **state)
{
    static const char *const names[] = {"vadd",    "vsub",    "vavrg",   "vabsdiff", "vmin",    "vmax",
                                        "vset.eq", "vset.ne", "vset.lt", "vset.le",  "vset.gt", "vset.ge"};
    static const char *const masks[2][3] = {{"", "0", "310"}, {"", "1", "0"}};
    static const char *const picks[2][4] = {{"", "7310", "0246", "5555"}, {"", "31", "02", "10"}};
    for (size_t n = 0; n < 12; n++)
        for (unsigned t = 0; t < 8; t++)
            for (unsigned how = 0; how < 6; how++) {
                unsigned halves = how & 1;
                struct simd s = {.name = names[n],
                                 .halves = halves,
                                 .d_signed = n < 6 ? t & 1 : false,
                                 .a_signed = t & 2,
                                 .b_signed = t & 4,
                                 .sat = n < 6 && how / 2 == 1,
                                 .add = how / 2 == 2,
                                 .d = masks[halves][(n + t) % 3],
                                 .a = picks[halves][(n + how) % 4],
                                 .b = picks[halves][t % 4]};
                check_simd(&s);
                s.d = s.a = s.b = "";
                check_simd(&s);
            }
}

static void test_bad_parts_are_errors(void **state)
{
    static const char *const wrong[] = {
        "vadd.u32.u32.u32 %a, %a.h2, %a;",
        "vadd.u32.u32.u32 %a, %a.b10, %a;",
        "vadd4.u32.u32.u32 %a, %a.b321, %a, %a;",
        "vadd2.u32.u32.u32 %a, %a.h40, %a, %a;",
        "vadd2.u32.u32.u32 %a.h01, %a, %a, %a;",
        "add.u32 %a, %a.h1, %a;",
        "add.u32 %a, -%a, %a;",
        "bra -L; L:",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[512];
        struct ptx_module *module = NULL;
        struct diag diag;
        snprintf(text, sizeof text,
                 ".version 9.0\n.target sm_90\n.address_size 64\n.entry k() {\n.reg .b32 %%a;\n%s\nret;\n}\n",
                 wrong[i]);
        if (ptx_module_load(text, strlen(text), "test.ptx", &module, &diag) != STATUS_BAD_INPUT)
            fail_msg("%s: not an error", wrong[i]);
        assert_int_equal(diag.line, 6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalar_every_type),
        cmocka_unit_test(test_scalar_merge),
        cmocka_unit_test(test_vset),
        cmocka_unit_test(test_vmad),
        cmocka_unit_test(test_simd_every_type),
        cmocka_unit_test(test_bad_parts_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
