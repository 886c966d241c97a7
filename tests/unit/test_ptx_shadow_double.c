/* Shadow mode of doubles: their wide values have twice the digits, against MPFR; so cancellation in fp64 is seen. */
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_shadow_kit.h"

enum { BITS = 400, COUNT = 64 };
static double in[3][COUNT], result[COUNT], again[COUNT];
static struct ptx_shadow_value shadow[4][COUNT * 4];

static const char head[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 px, .param .u64 py, .param .u64 pz, "
    ".param .u64 po) { "
    ".reg .f32 %f<9>; .reg .f64 %d<20>; .reg .b32 %r<20>; .reg .b64 %x<20>; .reg .pred %p<5>; "
    "ld.param.u64 %x1, [px]; ld.param.u64 %x2, [py]; ld.param.u64 %x3, [pz]; ld.param.u64 %x4, [po]; mov.u32 %r0, "
    "%tid.x; mul.wide.u32 %x0, %r0, 8; add.s64 %x1, %x1, %x0; add.s64 %x2, %x2, %x0; add.s64 %x3, %x3, %x0; add.s64 "
    "%x4, %x4, %x0; ld.global.f64 %d1, [%x1]; ld.global.f64 %d2, [%x2]; ld.global.f64 %d3, [%x3];\n";

static void run(struct kit *k, const char *body)
{
    static char text[1 << 13];
    snprintf(text, sizeof text, "%s%s\nst.global.f64 [%%x4], %%d0;\nret;\n}\n", head, body);
    kit_load(k, text);
    memset(shadow, 0, sizeof shadow);
    for (int i = 0; i < 3; i++)
        kit_buffer(k, i, in[i], sizeof in[i]);
    kit_buffer(k, 3, result, sizeof result);
    for (int i = 0; i < 4; i++)
        k->ranges[i].shadow = shadow[i];
    assert_int_equal(kit_run(k, "k", 1, COUNT), STATUS_OK);
    memcpy(again, result, sizeof again);
    k->launch.shadow = true;
    assert_int_equal(kit_run(k, "k", 1, COUNT), STATUS_OK);
    assert_memory_equal(again, result, sizeof again);
}

static void fill_doubles(double low, double high, uint64_t seed)
{
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < 3; j++)
            in[j][i] = low + (high - low) * (double)(kit_random(&seed) >> 11) * 0x1p-53;
}

typedef void meaning(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c);
static void m_add(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_add(r, a, b, MPFR_RNDN);
}
static void m_sub(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_sub(r, a, b, MPFR_RNDN);
}
static void m_mul(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_mul(r, a, b, MPFR_RNDN);
}
static void m_fma(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_fma(r, a, b, c, MPFR_RNDN);
}
static void m_div(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_div(r, a, b, MPFR_RNDN);
}
static void m_rcp(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_ui_div(r, 1, a, MPFR_RNDN);
}
static void m_sqrt(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_sqrt(r, a, MPFR_RNDN);
}
static void m_rsqrt(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_sqrt(r, a, MPFR_RNDN);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}
static void m_same(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_set(r, a, MPFR_RNDN);
}
static void m_neg(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_neg(r, a, MPFR_RNDN);
}
static void m_min(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_min(r, a, b, MPFR_RNDN);
}
static void m_max(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_max(r, a, b, MPFR_RNDN);
}
static void m_scaled(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_mul_ui(r, a, 8, MPFR_RNDN);
}
static void m_twice(mpfr_t r, const mpfr_t a, const mpfr_t b, const mpfr_t c)
{
    mpfr_add(r, a, a, MPFR_RNDN);
}

static const struct {
    const char *text;
    meaning *meaning;
    double low, high;
} operations[] = {
    {"add.f64 %d0, %d4, %d5;", m_add, -4, 4},
    {"add.rz.f64 %d0, %d4, %d5;", m_add, -4, 4},
    {"sub.f64 %d0, %d4, %d5;", m_sub, -4, 4},
    {"sub.rp.f64 %d0, %d4, %d5;", m_sub, -4, 4},
    {"mul.f64 %d0, %d4, %d5;", m_mul, -4, 4},
    {"mul.rm.f64 %d0, %d4, %d5;", m_mul, -4, 4},
    {"fma.rn.f64 %d0, %d4, %d5, %d6;", m_fma, -4, 4},
    {"fma.rz.f64 %d0, %d4, %d5, %d6;", m_fma, -4, 4},
    {"div.rn.f64 %d0, %d4, %d5;", m_div, 1, 4},
    {"div.rm.f64 %d0, %d4, %d5;", m_div, -4, -1},
    {"rcp.rn.f64 %d0, %d4;", m_rcp, 1, 4},
    {"rcp.rz.f64 %d0, %d4;", m_rcp, 1, 4},
    {"rcp.approx.ftz.f64 %d0, %d4;", m_rcp, 1, 4},
    {"sqrt.rn.f64 %d0, %d4;", m_sqrt, 0.1, 4},
    {"sqrt.rp.f64 %d0, %d4;", m_sqrt, 0.1, 4},
    {"rsqrt.approx.f64 %d0, %d4;", m_rsqrt, 0.1, 4},
    {"rsqrt.approx.ftz.f64 %d0, %d4;", m_rsqrt, 0.1, 4},
    {"min.f64 %d0, %d4, %d5;", m_min, -4, 4},
    {"max.f64 %d0, %d4, %d5;", m_max, -4, 4},
    {"neg.f64 %d0, %d4;", m_neg, -4, 4},
    {"neg.f64 %d7, %d4; neg.f64 %d0, %d7;", m_same, -4, 4},
    {"abs.f64 %d0, %d4;", m_same, 1, 4},
    {"mov.f64 %d0, %d4;", m_same, -4, 4},
    {"setp.lt.f64 %p0, %d4, 0d4014000000000000; selp.f64 %d0, %d4, %d5, %p0;", m_same, -4, 4},
    {"st.global.f64 [%x4], %d4; ld.global.f64 %d0, [%x4];", m_same, -4, 4},
    {".shared .f64 s[64]; shl.b32 %r1, %r0, 3; mov.u32 %r2, s; add.s32 %r1, %r1, %r2; st.shared.f64 [%r1], %d4; "
     "ld.shared.f64 %d0, [%r1];",
     m_same, -4, 4},
    {".local .f64 l[2]; st.local.f64 [l+8], %d4; ld.local.f64 %d0, [l+8];", m_same, -4, 4},
    {"st.global.f64 [%x4], %d5; atom.global.add.f64 %d7, [%x4], %d4; ld.global.f64 %d0, [%x4];", m_add, -4, 4},
    {"st.global.f64 [%x4], %d4; atom.global.exch.b64 %d0, [%x4], %d5;", m_same, -4, 4},
    {"mov.b64 {%r1, %r2}, %d4; shfl.sync.bfly.b32 %r3|%p0, %r1, 0, 31, -1; shfl.sync.bfly.b32 %r4|%p0, %r2, 0, 31, -1; "
     "mov.b64 %d0, {%r3, %r4};",
     m_same, -4, 4},
    {"mov.b64 {%r1, %r2}, %d4; add.s32 %r2, %r2, 3145728; mov.b64 %d0, {%r1, %r2};", m_scaled, 1, 4},
    {"mov.b64 %x5, %d4; mov.b64 %d7, %x5; add.f64 %d0, %d7, %d4;", m_twice, -4, 4},
};

static void third(mpfr_t r, double of)
{
    mpfr_set_d(r, of, MPFR_RNDN);
    mpfr_div_ui(r, r, 3, MPFR_RNDN);
}

/* Operands with an error of their own: %d4 = x / 3, %d5 = y / 3, %d6 = z / 3, rounded. */
static void test_operations_have_twice_the_digits(void **state)
{
    mpfr_t a, b, c, want, got;
    mpfr_inits2(BITS, a, b, c, want, got, (mpfr_ptr)NULL);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        struct kit k;
        char body[2048];
        fill_doubles(operations[i].low * 3, operations[i].high * 3, i + 1);
        snprintf(body, sizeof body,
                 "div.rn.f64 %%d4, %%d1, 0d4008000000000000; div.rn.f64 %%d5, %%d2, 0d4008000000000000; div.rn.f64 "
                 "%%d6, %%d3, 0d4008000000000000; %s",
                 operations[i].text);
        run(&k, body);
        for (int j = 0; j < COUNT; j++) {
            const struct ptx_shadow_value *s = &shadow[3][4 * j];
            third(a, in[0][j]);
            third(b, in[1][j]);
            third(c, in[2][j]);
            operations[i].meaning(want, a, b, c);
            assert_int_equal(s->kind, PTX_SHADOW_F64);
            assert_int_equal(s->flags & ~PTX_SHADOW_INEXACT, 0);
            mpfr_set_d(got, s->wide, MPFR_RNDN);
            mpfr_add_d(got, got, ptx_shadow_low(s), MPFR_RNDN);
            mpfr_sub(got, got, want, MPFR_RNDN);
            /* A sum's error is one of its addends. */
            double error = fabs(mpfr_get_d(got, MPFR_RNDN)), size = fmax(fabs(mpfr_get_d(want, MPFR_RNDN)), 1);
            if (error > 0x1p-98 * size)
                fail_msg("%s: element %d is off by %g of %g", operations[i].text, j, error, size);
        }
        kit_free(&k);
    }
    mpfr_clears(a, b, c, want, got, (mpfr_ptr)NULL);
}

static void test_integers_of_64_bits(void **state)
{
    static const struct {
        const char *text;
        long double value;
        bool exact;
    } cases[] = {
        {"mov.b64 %x5, 9007199254740993; cvt.rn.f64.s64 %d0, %x5;", 9007199254740993.0L, false},
        {"mov.b64 %x5, -9007199254740993; cvt.rz.f64.s64 %d0, %x5;", -9007199254740993.0L, false},
        {"mov.b64 %x5, 0xfffffffffffffff5; cvt.rn.f64.u64 %d0, %x5;", 18446744073709551605.0L, false},
        {"mov.b64 %x5, 0x8000000000000000; cvt.rn.f64.s64 %d0, %x5;", -9223372036854775808.0L, true},
        {"mov.b64 %x5, 123456789012; cvt.rn.f64.u64 %d0, %x5;", 123456789012.0L, true},
        {"mov.b64 %x5, 0; cvt.rn.f64.s64 %d0, %x5;", 0, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kit k;
        run(&k, cases[i].text);
        const struct ptx_shadow_value *s = shadow[3];
        if ((long double)s->wide + (long double)ptx_shadow_low(s) != cases[i].value ||
            (s->flags == 0) != cases[i].exact)
            fail_msg("%s: %.17g and %g, flags %u", cases[i].text, s->wide, ptx_shadow_low(s), s->flags);
        kit_free(&k);
    }
}

/* mma.m8n8k4: lane l holds a(l / 4, l % 4), b(l % 4, l / 4) and c(l / 4, 2 * (l % 4)). */
static void test_matrix_products(void **state)
{
    struct kit k;
    mpfr_t a, b, want, got;
    mpfr_inits2(BITS, a, b, want, got, (mpfr_ptr)NULL);
    fill_doubles(-4, 4, 99);
    run(&k,
        "div.rn.f64 %d4, %d1, 0d4008000000000000; div.rn.f64 %d5, %d2, 0d4008000000000000; div.rn.f64 %d6, %d3, "
        "0d4008000000000000; mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d7}, {%d4}, {%d5}, {%d6, %d6};");
    for (int j = 0; j < COUNT; j++) {
        int warp = j / 32 * 32, row = j % 32 / 4, column = 2 * (j % 4);
        third(want, in[2][j]);
        for (int i = 0; i < 4; i++) {
            third(a, in[0][warp + 4 * row + i]);
            third(b, in[1][warp + 4 * column + i]);
            mpfr_fma(want, a, b, want, MPFR_RNDN);
        }
        const struct ptx_shadow_value *s = &shadow[3][4 * j];
        mpfr_set_d(got, s->wide, MPFR_RNDN);
        mpfr_add_d(got, got, ptx_shadow_low(s), MPFR_RNDN);
        mpfr_sub(got, got, want, MPFR_RNDN);
        if (fabs(mpfr_get_d(got, MPFR_RNDN)) > 0x1p-96)
            fail_msg("element %d is off by %g", j, mpfr_get_d(got, MPFR_RNDN));
    }
    mpfr_clears(a, b, want, got, (mpfr_ptr)NULL);
    kit_free(&k);
}

static void test_special_values(void **state)
{
    static const double values[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-1074, 0x1p1023, -0x1.8p1023};
    static const char *const texts[] = {"add.f64 %d0, %d1, %d2;", "sub.f64 %d0, %d1, %d2;", "mul.f64 %d0, %d1, %d2;",
                                        "div.rn.f64 %d0, %d1, %d2;", "fma.rn.f64 %d0, %d1, %d2, %d3;"};
    for (int i = 0; i < COUNT; i++) {
        in[0][i] = values[i / 8];
        in[1][i] = values[i % 8];
        in[2][i] = 1;
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct kit k;
        run(&k, texts[i]);
        for (int j = 0; j < COUNT; j++) {
            const struct ptx_shadow_value *s = &shadow[3][4 * j];
            if (isnan(result[j])) {
                assert_true(isnan(s->wide) && ptx_shadow_low(s) == 0);
            } else if (isinf(result[j])) {
                assert_true(s->wide == result[j] && ptx_shadow_low(s) == 0);
            } else {
                assert_true(s->wide == result[j]);
                if (result[j] == 0)
                    assert_int_equal(signbit(s->wide) != 0, signbit(result[j]) != 0);
            }
        }
        kit_free(&k);
    }
}

/* ---- cancellation ---- */

static void expect_origin(const char *body, double input, double exact, uint32_t line)
{
    struct kit k;
    for (int i = 0; i < COUNT; i++)
        in[0][i] = input;
    run(&k, body);
    const struct ptx_shadow_value *s = shadow[3];
    assert_close(s->wide, exact, 1e-12, body);
    assert_int_equal(s->origin, line);
    if (line) {
        const struct ptx_number_event *e = shadow_event(&k, PTX_NUMBER_AMPLIFIED, line);
        assert_non_null(e);
        assert_true(e->error_out > 8 * e->error_in);
    } else {
        assert_int_equal(k.result.event_count, 0);
    }
    kit_free(&k);
}

static void test_cancellation_in_fp64(void **state)
{
    const double tiny = 1e-13;
    expect_origin("add.f64 %d4, %d1, 0d3FF0000000000000;\n\nadd.f64 %d0, %d4, 0dBFF0000000000000;", tiny, tiny,
                  BODY_LINE + 2);
    expect_origin("add.f64 %d4, %d1, 0d3FF0000000000000;\n\nadd.f64 %d0, %d4, 0d3FF0000000000000;", tiny, 2 + tiny, 0);
    expect_origin(
        "add.f64 %d4, %d1, 0d3FF0000000000000; sqrt.rn.f64 %d4, %d4; sqrt.rn.f64 %d5, %d1;\nsub.f64 %d0, %d4, "
        "%d5;",
        1e12, 1 / (sqrt(1e12 + 1) + sqrt(1e12)), BODY_LINE + 1);
    expect_origin(
        "add.f64 %d4, %d1, 0d3FF0000000000000; sqrt.rn.f64 %d4, %d4; sqrt.rn.f64 %d5, %d1;\nadd.f64 %d0, %d4, "
        "%d5; rcp.rn.f64 %d0, %d0;",
        1e12, 1 / (sqrt(1e12 + 1) + sqrt(1e12)), 0);
}

static void test_near_decisions_of_doubles(void **state)
{
    static const struct {
        const char *text;
        unsigned flags;
    } cases[] = {
        {"setp.lt.f64 %p0, %d4, %d1; selp.f64 %d0, %d2, %d3, %p0;", PTX_SHADOW_DECIDED},
        {"setp.lt.f64 %p0, %d4, 0d4024000000000000; selp.f64 %d0, %d2, %d3, %p0;", 0},
        {"cvt.rzi.s32.f64 %r1, %d4; cvt.rn.f64.s32 %d0, %r1;", PTX_SHADOW_DECIDED},
        {"cvt.rni.s32.f64 %r1, %d4; cvt.rn.f64.s32 %d0, %r1;", 0},
        {"cvt.rmi.f64.f64 %d0, %d4;", PTX_SHADOW_DECIDED},
    };
    for (int i = 0; i < COUNT; i++) {
        in[0][i] = i % 7 + 2;
        in[1][i] = 1;
        in[2][i] = 2;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kit k;
        char body[1024];
        snprintf(body, sizeof body,
                 "mul.f64 %%d4, %%d1, 0d3FB999999999999A; mul.f64 %%d4, %%d4, 0d4024000000000000; %s", cases[i].text);
        run(&k, body);
        for (int j = 0; j < COUNT; j++)
            if ((shadow[3][4 * j].flags & ~PTX_SHADOW_INEXACT) != cases[i].flags)
                fail_msg("%s: flags %u", cases[i].text, shadow[3][4 * j].flags);
        kit_free(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_have_twice_the_digits),
        cmocka_unit_test(test_integers_of_64_bits),
        cmocka_unit_test(test_matrix_products),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_cancellation_in_fp64),
        cmocka_unit_test(test_near_decisions_of_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
