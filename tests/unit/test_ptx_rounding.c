/* Rounding by chance: which neighbours are taken, how often, and what stays as it is; the oracle is MPFR. */
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { THREADS = 1024, BLOCKS = 8, COUNT = THREADS * BLOCKS, BITS = 400 };
static uint64_t operands[4];
static uint64_t out[COUNT];

/* All threads do `body` on the same %a, %b, %c (.f32 from their low halves as %fa ..., .f64 as %da ..., .b16 as %ha
 * ...) and store %d. */
static void run(const char *body, uint64_t seed)
{
    static char text[1 << 13];
    struct kit k;
    snprintf(
        text, sizeof text,
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"
        ".reg .b64 %%x<9>; .reg .b64 %%d; .reg .b32 %%r<9>; .reg .f32 %%fa, %%fb, %%fc, %%fd, %%f<9>; .reg .f64 %%da, "
        "%%db, %%dc, %%dd; .reg .b16 %%ha, %%hb, %%hc, %%hd; .reg .pred %%p;\n"
        "ld.param.u64 %%x0, [in]; ld.param.u64 %%x1, [out]; mov.u32 %%r0, %%ctaid.x; mov.u32 %%r1, %%tid.x; mad.lo.s32 "
        "%%r0, %%r0, 1024, %%r1; mad.wide.u32 %%x1, %%r0, 8, %%x1;\n"
        "ld.global.f32 %%fa, [%%x0]; ld.global.f32 %%fb, [%%x0+8]; ld.global.f32 %%fc, [%%x0+16]; ld.global.f64 %%da, "
        "[%%x0]; ld.global.f64 %%db, [%%x0+8]; ld.global.f64 %%dc, [%%x0+16]; ld.global.b16 %%ha, [%%x0]; "
        "ld.global.b16 %%hb, [%%x0+8]; ld.global.b16 %%hc, [%%x0+16]; mov.u64 %%d, 0; mov.f32 %%fd, 0f00000000; "
        "mov.f64 "
        "%%dd, 0d0000000000000000; mov.b16 %%hd, 0;\n%s\nst.global.b64 [%%x1], %%d;\nret;\n}\n",
        body);
    kit_load(&k, text);
    kit_buffer(&k, 0, operands, sizeof operands);
    kit_buffer(&k, 1, out, sizeof out);
    k.launch.rounding_seed = seed;
    assert_int_equal(kit_run(&k, "k", BLOCKS, THREADS), STATUS_OK);
    kit_free(&k);
}

#define F32 "mov.b32 %r2, %fd; cvt.u64.u32 %d, %r2;"
#define F64 "mov.b64 %d, %dd;"
#define F16 "cvt.u64.u16 %d, %hd;"

enum format { SINGLE, DOUBLE, HALF, BFLOAT, TENSOR };
static double value(enum format f, uint64_t bits)
{
    float s;
    double d;
    uint32_t u = (uint32_t)bits;
    if (f == DOUBLE) {
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    if (f == BFLOAT)
        u <<= 16;
    if (f == HALF) {
        int exponent = (int)(bits >> 10 & 31);
        double m = (double)(bits & 1023) / 1024;
        d = exponent ? ldexp(1 + m, exponent - 15) : ldexp(m, -14);
        return bits & 0x8000 ? -d : d;
    }
    memcpy(&s, &u, sizeof s);
    return (double)s;
}

static uint64_t bits_of(enum format f, double x)
{
    float s = (float)x;
    uint32_t u;
    uint64_t bits;
    if (f == DOUBLE) {
        memcpy(&bits, &x, sizeof bits);
        return bits;
    }
    memcpy(&u, &s, sizeof u);
    return u;
}

static int digits(enum format f)
{
    return f == DOUBLE ? 53 : f == SINGLE ? 24 : f == BFLOAT ? 8 : 11;
}

typedef int meaning(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c);
static int m_add(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    return mpfr_add(r, a, b, MPFR_RNDN);
}
static int m_sub(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    return mpfr_sub(r, a, b, MPFR_RNDN);
}
static int m_mul(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    return mpfr_mul(r, a, b, MPFR_RNDN);
}
static int m_fma(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    return mpfr_fma(r, a, b, c, MPFR_RNDN);
}
static int m_div(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    return mpfr_div(r, a, b, MPFR_RNDN);
}
static int m_rcp(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    return mpfr_ui_div(r, 1, a, MPFR_RNDN);
}
static int m_sqrt(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    return mpfr_sqrt(r, a, MPFR_RNDN);
}
static int m_same(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    return mpfr_set(r, a, MPFR_RNDN);
}
static int m_count(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    return mpfr_set_ui(r, 123456789, MPFR_RNDN);
}

static const struct {
    const char *text;
    enum format from, to;
    meaning *meaning;
} operations[] = {
    {"add.f32 %fd, %fa, %fb;" F32, SINGLE, SINGLE, m_add},
    {"add.ftz.f32 %fd, %fa, %fb;" F32, SINGLE, SINGLE, m_add},
    {"sub.rn.f32 %fd, %fa, %fb;" F32, SINGLE, SINGLE, m_sub},
    {"mul.f32 %fd, %fa, %fb;" F32, SINGLE, SINGLE, m_mul},
    {"fma.rn.f32 %fd, %fa, %fb, %fc;" F32, SINGLE, SINGLE, m_fma},
    {"div.rn.f32 %fd, %fa, %fb;" F32, SINGLE, SINGLE, m_div},
    {"rcp.rn.f32 %fd, %fa;" F32, SINGLE, SINGLE, m_rcp},
    {"sqrt.rn.f32 %fd, %fa;" F32, SINGLE, SINGLE, m_sqrt},
    {"add.f64 %dd, %da, %db;" F64, DOUBLE, DOUBLE, m_add},
    {"sub.f64 %dd, %da, %db;" F64, DOUBLE, DOUBLE, m_sub},
    {"mul.f64 %dd, %da, %db;" F64, DOUBLE, DOUBLE, m_mul},
    {"fma.rn.f64 %dd, %da, %db, %dc;" F64, DOUBLE, DOUBLE, m_fma},
    {"div.rn.f64 %dd, %da, %db;" F64, DOUBLE, DOUBLE, m_div},
    {"rcp.rn.f64 %dd, %da;" F64, DOUBLE, DOUBLE, m_rcp},
    {"sqrt.rn.f64 %dd, %da;" F64, DOUBLE, DOUBLE, m_sqrt},
    {"cvt.rn.f32.f64 %fd, %da;" F32, DOUBLE, SINGLE, m_same},
    {"cvt.rn.f16.f32 %hd, %fa;" F16, SINGLE, HALF, m_same},
    {"cvt.rn.bf16.f32 %hd, %fa;" F16, SINGLE, BFLOAT, m_same},
    {"cvt.rna.tf32.f32 %r2, %fa; cvt.u64.u32 %d, %r2;", SINGLE, TENSOR, m_same},
    {"mov.u32 %r3, 123456789; cvt.rn.f32.u32 %fd, %r3;" F32, SINGLE, SINGLE, m_count},
    {"cvt.rn.f16.f32 %ha, %fa; mov.b16 %hd, %ha;" F16, SINGLE, HALF, m_same},
    {"st.global.f32 [%x1], %fa; atom.global.add.f32 %fd, [%x1], %fb; ld.global.f32 %fd, [%x1];" F32, SINGLE, SINGLE,
     m_add},
    {"st.global.f64 [%x1], %da; atom.global.add.f64 %dd, [%x1], %db; ld.global.f64 %dd, [%x1];" F64, DOUBLE, DOUBLE,
     m_add},
};

/* Both neighbours of the true value occur, as often as it is near to them, and nothing else does. */
static void test_neighbours_by_their_distance(void **state)
{
    mpfr_t a, b, c, exact, down, up;
    mpfr_inits2(BITS, a, b, c, exact, (mpfr_ptr)NULL);
    uint64_t random = 5;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        for (int round = 0; round < 3; round++) {
            mpfr_ptr const to[] = {a, b, c};
            for (int j = 0; j < 3; j++) {
                double x = (round == 2 ? -1.0 : 1.0) * (1 + (double)(kit_random(&random) >> 11) * 0x1p-53);
                if (operations[i].meaning == m_sqrt)
                    x = fabs(x);
                operands[j] = bits_of(operations[i].from, x);
                mpfr_set_d(to[j], value(operations[i].from, operands[j]), MPFR_RNDN);
            }
            run(operations[i].text, 77 + (uint64_t)round);
            operations[i].meaning(exact, a, b, c);
            mpfr_inits2(digits(operations[i].to), down, up, (mpfr_ptr)NULL);
            mpfr_set(down, exact, MPFR_RNDD);
            mpfr_set(up, exact, MPFR_RNDU);
            double low = mpfr_get_d(down, MPFR_RNDN), high = mpfr_get_d(up, MPFR_RNDN);
            mpfr_sub(exact, exact, down, MPFR_RNDN);
            double share = low == high ? 0 : mpfr_get_d(exact, MPFR_RNDN) / (high - low), ups = 0;
            for (int j = 0; j < COUNT; j++) {
                double got = value(operations[i].to, out[j]);
                if (got != low && got != high)
                    fail_msg("%s: %a is neither %a nor %a", operations[i].text, got, low, high);
                ups += got == high && low != high;
            }
            double sigma = sqrt(share * (1 - share) / COUNT) + 1e-9;
            if (fabs(ups / COUNT - share) > 5 * sigma + 1e-4)
                fail_msg("%s: upwards %g of the time, not %g", operations[i].text, ups / COUNT, share);
            mpfr_clears(down, up, (mpfr_ptr)NULL);
        }
    }
    mpfr_clears(a, b, c, exact, (mpfr_ptr)NULL);
    mpfr_free_cache();
}

static void expect_same_everywhere(const char *text, double x, double y, double z, bool doubles)
{
    const double values[] = {x, y, z};
    for (int i = 0; i < 3; i++)
        operands[i] = bits_of(doubles ? DOUBLE : SINGLE, values[i]);
    run(text, 0);
    uint64_t plain = out[0];
    run(text, 9);
    for (int i = 0; i < COUNT; i++)
        if (out[i] != plain)
            fail_msg("%s: %llx, not %llx", text, (unsigned long long)out[i], (unsigned long long)plain);
}

static void test_what_stays(void **state)
{
    /* exact results */
    expect_same_everywhere("add.f32 %fd, %fa, %fb;" F32, 1.5, 0.25, 0, false);
    expect_same_everywhere("fma.rn.f32 %fd, %fa, %fb, %fc;" F32, 3, 5, -15, false);
    expect_same_everywhere("div.rn.f32 %fd, %fa, %fb;" F32, 15, 5, 0, false);
    expect_same_everywhere("sqrt.rn.f64 %dd, %da;" F64, 49, 0, 0, true);
    expect_same_everywhere("mul.f64 %dd, %da, %db;" F64, 0.125, 7, 0, true);
    /* directions that are asked for */
    expect_same_everywhere("add.rz.f32 %fd, %fa, %fb;" F32, 1, 1e-9, 0, false);
    expect_same_everywhere("mul.rp.f64 %dd, %da, %db;" F64, 1 / 3.0, 1 / 7.0, 0, true);
    expect_same_everywhere("cvt.rz.f16.f32 %hd, %fa;" F16, 1 / 3.0, 0, 0, false);
    /* infinities, NaN, flushed and saturated results */
    expect_same_everywhere("mul.f32 %fd, %fa, %fb;" F32, 3e38, 10, 0, false);
    expect_same_everywhere("sub.f32 %fd, %fa, %fb;" F32, INFINITY, INFINITY, 0, false);
    expect_same_everywhere("mul.ftz.f32 %fd, %fa, %fb;" F32, 1.1e-20, 1.3e-20, 0, false);
    expect_same_everywhere("add.sat.f32 %fd, %fa, %fb;" F32, 1, 1 / 3.0, 0, false);
    /* rounding to an integer, with an instruction or a constant */
    expect_same_everywhere("cvt.rni.f32.f32 %fd, %fa;" F32, 2.3, 0, 0, false);
    expect_same_everywhere("add.f32 %fd, %fa, %fb;" F32, 12582912, 2.3, 0, false);
    expect_same_everywhere("fma.rn.f64 %dd, %da, %db, %dc;" F64, 2.3, 1.7, 6755399441055744.0, true);
}

static void test_seeds(void **state)
{
    static uint64_t first[COUNT];
    operands[0] = bits_of(SINGLE, 1);
    operands[1] = bits_of(SINGLE, 3);
    static const char body[] = "div.rn.f32 %fd, %fa, %fb;" F32;
    run(body, 3);
    memcpy(first, out, sizeof first);
    run(body, 3);
    assert_memory_equal(first, out, sizeof out);
    run(body, 4);
    int differ = 0;
    for (int i = 0; i < COUNT; i++)
        differ += first[i] != out[i];
    assert_true(differ > COUNT / 5);
    run(body, 0);
    for (int i = 1; i < COUNT; i++)
        assert_true(out[i] == out[0]);
}

/* The approximate functions are off by up to their bound, and not by more. */
static void test_approximate_functions(void **state)
{
    static const struct {
        const char *text;
        double x, exact, bound;
    } functions[] = {
        {"ex2.approx.f32 %fd, %fa;" F32, 0.625, 1.542210825407941, 0x1p-22 * 1.55},
        {"rcp.approx.f32 %fd, %fa;" F32, 3, 1 / 3.0, 0x1p-23 / 3},
        {"sin.approx.f32 %fd, %fa;" F32, 0.5, 0.479425538604203, 0x1.2p-20},
        {"lg2.approx.f32 %fd, %fa;" F32, 5, 2.321928094887362, 0x1p-22 * 2.33},
        {"rsqrt.approx.f32 %fd, %fa;" F32, 2, 0.7071067811865475, 0x1.2p-23},
        {"div.full.f32 %fd, %fa, %fa;" F32, 3, 1, 0x1p-22},
        {"tanh.approx.f32 %fd, %fa;" F32, 0.5, 0.46211715726000973, 0x1p-11 * 0.47},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        double least = INFINITY, most = -INFINITY;
        operands[0] = bits_of(SINGLE, functions[i].x);
        run(functions[i].text, 11);
        for (int j = 0; j < COUNT; j++) {
            least = fmin(least, value(SINGLE, out[j]) - functions[i].exact);
            most = fmax(most, value(SINGLE, out[j]) - functions[i].exact);
        }
        double unit = 0x1p-23 * fabs(functions[i].exact);
        if (least < -functions[i].bound - unit || most > functions[i].bound + unit)
            fail_msg("%s: off by %g to %g, more than %g", functions[i].text, least, most, functions[i].bound);
        if (least > -functions[i].bound / 2 || most < functions[i].bound / 2)
            fail_msg("%s: off by %g to %g only, of %g", functions[i].text, least, most, functions[i].bound);
    }
}

/* Packed halves: each gets its own draw. */
static void test_packed_halves(void **state)
{
    int seen[4] = {0};
    operands[0] = bits_of(SINGLE, 1 / 3.0);
    run("cvt.rz.f16.f32 %ha, %fa; mov.b32 %r2, {%ha, %ha}; mul.f16x2 %r2, %r2, %r2; cvt.u64.u32 %d, %r2;", 12);
    uint64_t low = UINT64_MAX;
    for (int i = 0; i < COUNT; i++)
        low = (out[i] & 0xffff) < low ? out[i] & 0xffff : low;
    for (int i = 0; i < COUNT; i++) {
        uint64_t p = (out[i] & 0xffff) - low, q = (out[i] >> 16) - low;
        assert_true(p <= 1 && q <= 1);
        seen[p + 2 * q]++;
    }
    for (int i = 0; i < 4; i++)
        assert_true(seen[i] > 0);
}

/* The spread over runs is the size of the error of a long sum, and nothing where the sum is exact. */
static void test_spread_of_a_sum(void **state)
{
    double exact = 0, most = 0, squares = 0;
    operands[0] = bits_of(SINGLE, 0.1);
    run("mov.u32 %r3, 0;\nL: add.f32 %fd, %fd, %fa; add.s32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 1000; @%p bra "
        "L;" F32,
        13);
    exact = 1000 * value(SINGLE, operands[0]);
    for (int i = 0; i < COUNT; i++) {
        double off = value(SINGLE, out[i]) - exact;
        most = fmax(most, fabs(off));
        squares += off * off;
    }
    /* Units of sums up to 100, a thousand times, at random: about sqrt(1000 / 12) of 2^-17, less at the start. */
    double spread = sqrt(squares / COUNT);
    assert_true(spread > 2e-5 && spread < 1.2e-4 && most < 6 * spread);
    expect_same_everywhere("mov.u32 %r3, 0;\nL: add.f32 %fd, %fd, %fa; add.s32 %r3, %r3, 1; setp.lt.u32 %p, %r3, "
                           "1000; @%p bra L;" F32,
                           0.125, 0, 0, false);
}

/* Sums of matrix products err to one side in a run, as on devices that cut off: 256 of them by 256 times as much. */
static void test_bias_of_matrix_products(void **state)
{
    operands[0] = bits_of(SINGLE, 0.1);
    double t = value(SINGLE, operands[0] & ~UINT64_C(0x1fff)), exact = 256 * 8 * t * t;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run("mov.b32 %r2, %fa; mov.u32 %r3, 0; mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 "
            "%f4, "
            "%f1;\nL: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r2, %r2, %r2, %r2}, "
            "{%r2, %r2}, {%f1, %f2, %f3, %f4}; add.s32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 256; @%p bra L; mov.f32 %fd, "
            "%f1;" F32,
            seed);
        for (int i = 0; i < COUNT; i++) {
            double off = (value(SINGLE, out[i]) - exact) / exact * (seed & 1 ? -1 : 1);
            if (!(off > 2e-5 && off < 2e-4))
                fail_msg("seed %d: off by %g of the sum", (int)seed, off);
        }
    }
}

static void test_modes_do_not_mix(void **state)
{
    struct kit k;
    kit_load(&k, ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n");
    k.launch.rounding_seed = 1;
    k.launch.shadow = true;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_BAD_INPUT);
    k.launch.shadow = false;
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_BAD_INPUT);
    k.launch.checked = false;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_neighbours_by_their_distance),
        cmocka_unit_test(test_what_stays),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_approximate_functions),
        cmocka_unit_test(test_packed_halves),
        cmocka_unit_test(test_spread_of_a_sum),
        cmocka_unit_test(test_bias_of_matrix_products),
        cmocka_unit_test(test_modes_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
