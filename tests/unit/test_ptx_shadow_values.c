/* Shadow mode: wide values against plain double arithmetic, through registers and memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/arith.h"
#include "tests/unit/ptx_shadow_kit.h"

/* ---- each operation ---- */

static double op_add(double a, double b, double c)
{
    return a + b;
}
static double op_sub(double a, double b, double c)
{
    return a - b;
}
static double op_mul(double a, double b, double c)
{
    return a * b;
}
static double op_fma(double a, double b, double c)
{
    return fma(a, b, c);
}
static double op_div(double a, double b, double c)
{
    return a / b;
}
static double op_rcp(double a, double b, double c)
{
    return 1 / a;
}
static double op_sqrt(double a, double b, double c)
{
    return sqrt(a);
}
static double op_rsqrt(double a, double b, double c)
{
    return 1 / sqrt(a);
}
static double op_ex2(double a, double b, double c)
{
    return exp2(a);
}
static double op_lg2(double a, double b, double c)
{
    return log2(a);
}
static double op_sin(double a, double b, double c)
{
    return sin(a);
}
static double op_cos(double a, double b, double c)
{
    return cos(a);
}
static double op_tanh(double a, double b, double c)
{
    return tanh(a);
}
static double op_min(double a, double b, double c)
{
    return fmin(a, b);
}
static double op_max(double a, double b, double c)
{
    return fmax(a, b);
}
static double op_neg(double a, double b, double c)
{
    return -a;
}
static double op_abs(double a, double b, double c)
{
    return fabs(a);
}
static double op_copysign(double a, double b, double c)
{
    return copysign(b, a);
}
static double op_sat(double a, double b, double c)
{
    double s = a + b;
    return s < 0 ? 0 : s > 1 ? 1 : s;
}
static double op_same(double a, double b, double c)
{
    return a;
}

static const struct {
    const char *text;
    double (*meaning)(double, double, double);
    double low, high;
} operations[] = {
    {"add.f32 %f0, %f4, %f5;", op_add, -4, 4},
    {"add.ftz.f32 %f0, %f4, %f5;", op_add, -4, 4},
    {"add.rz.f32 %f0, %f4, %f5;", op_add, -4, 4},
    {"add.sat.f32 %f0, %f4, %f5;", op_sat, -1, 1},
    {"sub.f32 %f0, %f4, %f5;", op_sub, -4, 4},
    {"sub.ftz.f32 %f0, %f4, %f5;", op_sub, -4, 4},
    {"sub.rm.f32 %f0, %f4, %f5;", op_sub, -4, 4},
    {"mul.f32 %f0, %f4, %f5;", op_mul, -4, 4},
    {"mul.ftz.f32 %f0, %f4, %f5;", op_mul, -4, 4},
    {"mul.rp.f32 %f0, %f4, %f5;", op_mul, -4, 4},
    {"fma.rn.f32 %f0, %f4, %f5, %f6;", op_fma, -4, 4},
    {"fma.rn.ftz.f32 %f0, %f4, %f5, %f6;", op_fma, -4, 4},
    {"fma.rz.f32 %f0, %f4, %f5, %f6;", op_fma, -4, 4},
    {"div.rn.f32 %f0, %f4, %f5;", op_div, 1, 4},
    {"div.rz.f32 %f0, %f4, %f5;", op_div, 1, 4},
    {"div.approx.f32 %f0, %f4, %f5;", op_div, 1, 4},
    {"div.full.f32 %f0, %f4, %f5;", op_div, 1, 4},
    {"rcp.rn.f32 %f0, %f4;", op_rcp, 1, 4},
    {"rcp.approx.ftz.f32 %f0, %f4;", op_rcp, 1, 4},
    {"sqrt.rn.f32 %f0, %f4;", op_sqrt, 0, 4},
    {"sqrt.rz.f32 %f0, %f4;", op_sqrt, 0, 4},
    {"sqrt.approx.f32 %f0, %f4;", op_sqrt, 0, 4},
    {"rsqrt.approx.f32 %f0, %f4;", op_rsqrt, 0.1, 4},
    {"ex2.approx.f32 %f0, %f4;", op_ex2, -4, 4},
    {"lg2.approx.f32 %f0, %f4;", op_lg2, 2, 4},
    {"sin.approx.f32 %f0, %f4;", op_sin, -1, 1},
    {"cos.approx.f32 %f0, %f4;", op_cos, -1, 1},
    {"tanh.approx.f32 %f0, %f4;", op_tanh, -4, 4},
    {"min.f32 %f0, %f4, %f5;", op_min, -4, 4},
    {"max.f32 %f0, %f4, %f5;", op_max, -4, 4},
    {"min.NaN.f32 %f0, %f4, %f5;", op_min, -4, 4},
    {"max.NaN.f32 %f0, %f4, %f5;", op_max, -4, 4},
    {"neg.f32 %f0, %f4;", op_neg, -4, 4},
    {"neg.ftz.f32 %f0, %f4;", op_neg, -4, 4},
    {"abs.f32 %f0, %f4;", op_abs, -4, 4},
    {"copysign.f32 %f0, %f4, %f5;", op_copysign, -4, 4},
    {"mov.f32 %f0, %f4;", op_same, -4, 4},
    {"mov.b32 %r1, %f4; mov.b32 %f0, %r1;", op_same, -4, 4},
    {"mov.b64 %x5, {%f4, %f5}; mov.b64 {%f0, %f7}, %x5;", op_same, -4, 4},
    {"mov.b64 %x5, {%f5, %f4}; mov.b64 {%f7, %f0}, %x5;", op_same, -4, 4},
    {"mov.b32 %r1, %f4; prmt.b32 %r1, %r1, 0, 0x3210; mov.b32 %f0, %r1;", op_same, -4, 4},
    {"mov.b32 %r1, %f4; xor.b32 %r1, %r1, 0x80000000; mov.b32 %f0, %r1;", op_neg, -4, 4},
    {"mov.b32 %r1, %f4; and.b32 %r1, %r1, 0x7fffffff; mov.b32 %f0, %r1;", op_abs, -4, 4},
    {"setp.lt.f32 %p0, %f4, 0f40800000; selp.f32 %f0, %f4, %f5, %p0;", op_same, -4, 4},
    {"slct.f32.f32 %f0, %f5, %f4, 0fBF800000;", op_same, -4, 4},
    {"cvt.f64.f32 %d0, %f4; cvt.f64.f32 %d1, %f5; add.f64 %d2, %d0, %d1; cvt.rn.f32.f64 %f0, %d2;", op_add, -4, 4},
    {"cvt.f64.f32 %d0, %f4; sqrt.rn.f64 %d0, %d0; cvt.rn.f32.f64 %f0, %d0;", op_sqrt, 0, 4},
    {"cvt.f64.f32 %d0, %f4; neg.f64 %d0, %d0; cvt.rz.f32.f64 %f0, %d0;", op_neg, -4, 4},
    {"cvt.f64.f32 %d0, %f4; cvt.f64.f32 %d1, %f5; div.rn.f64 %d2, %d0, %d1; cvt.rn.f32.f64 %f0, %d2;", op_div, 1, 4},
    {"shfl.sync.bfly.b32 %r1|%p0, %f4, 1, 31, -1; shfl.sync.bfly.b32 %f0|%p0, %r1, 1, 31, -1;", op_same, -4, 4},
    {".shared .f32 s[256]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.s32 %r1, %r1, %r2; st.shared.f32 [%r1], %f4; "
     "bar.sync 0; ld.shared.f32 %f0, [%r1];",
     op_same, -4, 4},
    {".local .b32 l[4]; mov.u64 %x6, l; st.local.f32 [%x6+4], %f4; ld.local.f32 %f0, [%x6+4];", op_same, -4, 4},
    {".local .align 16 .b32 l[4]; mov.u64 %x6, l; cvta.local.u64 %x6, %x6; st.v4.f32 [%x6], {%f5, %f4, %f6, %f5}; "
     "ld.v2.f32 {%f7, %f0}, [%x6];",
     op_same, -4, 4},
    {"st.global.f32 [%x4], %f4; ld.global.f32 %f0, [%x4];", op_same, -4, 4},
    {".shared .align 4 .b32 s[256]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.s32 %r1, %r1, %r2; st.global.f32 [%x4], "
     "%f4; cp.async.ca.shared.global [%r1], [%x4], 4; cp.async.wait_all; ld.shared.f32 %f0, [%r1];",
     op_same, -4, 4},
    {".shared .align 8 .b32 s[512]; mov.u32 %r1, s; shl.b32 %r2, %r0, 3; add.s32 %r1, %r1, %r2; cvt.u64.u32 %x5, %r1; "
     "cvta.shared.u64 %x5, %x5; st.f32 [%x5+4], %f4; ld.shared.v2.f32 {%f7, %f0}, [%r1];",
     op_same, -4, 4},
    {".local .align 8 .b32 l[2]; mov.b64 %x5, {%f5, %f4}; st.local.b64 [l], %x5; ld.local.f32 %f0, [l+4];", op_same, -4,
     4},
    {"st.global.f32 [%x4], %f5; atom.global.exch.b32 %r1, [%x4], %f4; ld.global.f32 %f0, [%x4];", op_same, -4, 4},
    {"st.global.f32 [%x4], %f4; atom.global.exch.b32 %f0, [%x4], %f5;", op_same, -4, 4},
    {"st.global.f32 [%x4], %f5; atom.global.add.f32 %f7, [%x4], %f4; ld.global.f32 %f0, [%x4];", op_add, -4, 4},
    {"st.global.f32 [%x4], %f5; mov.b32 %r1, %f5; mov.b32 %r2, %f4; atom.global.cas.b32 %r3, [%x4], %r1, %r2; "
     "ld.global.f32 %f0, [%x4];",
     op_same, -4, 4},
};

/* Operands with an error of their own: %f4 = x / 3, %f5 = y / 3, %f6 = z / 3, rounded. */
static void test_operations_follow_doubles(void **state)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        struct kit k;
        char body[2048];
        fill(operations[i].low * 3, operations[i].high * 3, i + 1);
        snprintf(body, sizeof body,
                 "div.rn.f32 %%f4, %%f1, 0f40400000; div.rn.f32 %%f5, %%f2, 0f40400000; div.rn.f32 %%f6, %%f3, "
                 "0f40400000; %s",
                 operations[i].text);
        shadow_go(&k, body, N);
        for (int j = 0; j < N; j++) {
            double want = operations[i].meaning((double)x[j] / 3, (double)y[j] / 3, (double)z[j] / 3);
            const struct ptx_shadow_value *s = &out_shadow[2 * j];
            assert_int_equal(s->kind, PTX_SHADOW_F32);
            assert_int_equal(out_shadow[2 * j + 1].kind, PTX_SHADOW_NONE);
            assert_close(s->wide, want, 1e-15, operations[i].text);
            assert_true(s->depth >= 1 && s->depth <= 4);
        }
        kit_free(&k);
    }
}

static void test_depth_is_the_longest_path(void **state)
{
    struct kit k;
    fill(1, 2, 1);
    shadow_go(&k, "add.f32 %f4, %f1, %f2; mul.f32 %f4, %f4, %f3; mul.f32 %f5, %f2, %f3; add.f32 %f0, %f4, %f5;", N);
    assert_int_equal(out_shadow[0].depth, 3);
    kit_free(&k);
    shadow_go(&k, "mov.f32 %f0, %f1;", N);
    assert_int_equal(out_shadow[0].kind, PTX_SHADOW_NONE);
    kit_free(&k);
    shadow_go(&k, "cvt.rn.f32.u32 %f0, %r0;", N);
    assert_int_equal(out_shadow[6].kind, PTX_SHADOW_F32);
    assert_int_equal(out_shadow[6].depth, 1);
    assert_true(out_shadow[6].wide == 3);
    kit_free(&k);
}

/* Integer work on the bits of a float: taking the exponent out keeps the error, other work makes a plain number. */
static void test_bits_of_a_float(void **state)
{
    struct kit k;
    fill(100, 1000, 6);
    shadow_go(
        &k,
        "div.rn.f32 %f4, %f1, 0f40400000; mov.b32 %r1, %f4; add.s32 %r2, %r1, -1059760811; and.b32 %r3, %r2, -8388608; "
        "sub.s32 %r4, %r1, %r3; mov.b32 %f0, %r4;",
        N);
    for (int i = 0; i < N; i++)
        assert_close(out_shadow[2 * i].wide,
                     ldexp((double)x[i] / 3, (int)lround(log2((double)out[i] / ((double)x[i] / 3)))), 1e-15,
                     "mantissa");
    kit_free(&k);
    shadow_go(&k, "div.rn.f32 %f4, %f1, 0f40400000; mov.b32 %r1, %f4; add.s32 %r1, %r1, 1; mov.b32 %f0, %r1;", N);
    assert_int_equal(out_shadow[0].kind, PTX_SHADOW_NONE);
    kit_free(&k);
}

/* ---- half precision ---- */

static void test_half_precision(void **state)
{
    static const struct {
        const char *text;
        double (*meaning)(double, double, double);
    } halves[] = {
        {"add.f16 %h0, %h4, %h5; cvt.f32.f16 %f0, %h0;", op_add},
        {"sub.f16 %h0, %h4, %h5; cvt.f32.f16 %f0, %h0;", op_sub},
        {"mul.f16 %h0, %h4, %h5; cvt.f32.f16 %f0, %h0;", op_mul},
        {"fma.rn.f16 %h0, %h4, %h5, %h6; cvt.f32.f16 %f0, %h0;", op_fma},
        {"max.f16 %h0, %h4, %h5; cvt.f32.f16 %f0, %h0;", op_max},
        {"neg.f16 %h0, %h4; cvt.f32.f16 %f0, %h0;", op_neg},
        {"ex2.approx.f16 %h0, %h4; cvt.f32.f16 %f0, %h0;", op_ex2},
        {"tanh.approx.f16 %h0, %h4; cvt.f32.f16 %f0, %h0;", op_tanh},
        {"mov.b32 %r1, {%h4, %h5}; mov.b32 %r2, {%h5, %h4}; add.f16x2 %r3, %r1, %r2; mov.b32 {%h0, %h1}, %r3; "
         "cvt.f32.f16 %f0, %h1;",
         op_add},
        {"mov.b32 %r1, {%h4, %h5}; mov.b32 %r2, {%h5, %h4}; fma.rn.f16x2 %r3, %r1, %r2, %r1; shr.u32 %r4, %r3, 16; "
         "cvt.u16.u32 %h0, %r4; "
         "mov.b32 {%h1, %h2}, %r2; mov.b32 %r5, {%h5, %h4}; prmt.b32 %r6, %r5, %r1, 0x5432; mov.b32 {%h0, %h1}, %r6; "
         "cvt.f32.f16 %f0, %h1;",
         op_same},
        {"mov.b32 %r1, {%h5, %h4}; st.global.b32 [%x4], %r1; ld.global.b16 %h0, [%x4+2]; cvt.f32.f16 %f0, %h0;",
         op_same},
        {"st.global.b16 [%x4], %h5; st.global.b16 [%x4+2], %h4; ld.global.b32 %r1, [%x4]; neg.f16x2 %r1, %r1; mov.b32 "
         "{%h0, %h1}, %r1; cvt.f32.f16 %f0, %h1;",
         op_neg},
        {"mov.b32 %r1, {%h5, %h4}; st.global.b32 [%x4], %r1; atom.global.add.noftz.f16x2 %r2, [%x4], %r1; "
         "ld.global.b16 %h0, [%x4+2]; mov.b32 {%h1, %h2}, %r2; sub.f16 %h0, %h0, %h2; cvt.f32.f16 %f0, %h0;",
         op_same},
    };
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        struct kit k;
        char body[1024];
        fill(0.5, 3, i + 20);
        snprintf(body, sizeof body,
                 "cvt.rn.f16.f32 %%h4, %%f1; cvt.rn.f16.f32 %%h5, %%f2; cvt.rn.f16.f32 %%h6, %%f3; %s", halves[i].text);
        shadow_go(&k, body, N);
        for (int j = 0; j < N; j++)
            assert_close(out_shadow[2 * j].wide, halves[i].meaning(x[j], y[j], z[j]), 1e-15, halves[i].text);
        kit_free(&k);
    }
}

static void test_bfloat16_made_wide_by_bits(void **state)
{
    struct kit k;
    fill(0.5, 3, 30);
    shadow_go(
        &k,
        "cvt.rn.bf16.f32 %h4, %f1; mov.b16 %h5, 0; mov.b32 %r1, {%h5, %h4}; mov.b32 %f4, %r1; add.f32 %f0, %f4, %f4;",
        N);
    for (int j = 0; j < N; j++)
        assert_close(out_shadow[2 * j].wide, 2.0 * x[j], 1e-15, "bf16");
    kit_free(&k);
}

/* ---- memory ---- */

static void test_entries_of_an_earlier_launch(void **state)
{
    struct kit k;
    shadow_start(&k, "add.f32 %f0, %f1, %f2;");
    x[0] = y[0] = 1;
    in_shadow[0][0] = (struct ptx_shadow_value){1.5, 77, 12, PTX_SHADOW_F32, 0};
    in_shadow[1][0] = (struct ptx_shadow_value){9, 0, 1, PTX_SHADOW_F16, 0}; /* does not fit: not taken */
    shadow_run(&k, 1);
    assert_true(out_shadow[0].wide == 2.5);
    assert_int_equal(out_shadow[0].origin, 77);
    assert_int_equal(out_shadow[0].depth, 13);
    kit_free(&k);
}

static void test_stores_replace_entries(void **state)
{
    struct kit k;
    shadow_start(
        &k, "add.f32 %f4, %f1, %f2; st.global.f32 [%x4], %f4; mov.u16 %h1, 5; setp.eq.u32 %p1, %r0, 1; @%p1 "
            "st.global.u16 [%x4+2], %h1; "
            "setp.eq.u32 %p2, %r0, 2; mov.u32 %r5, 7; @%p2 st.global.u32 [%x4], %r5; setp.eq.u32 %p3, %r0, 3; @%p3 "
            "st.global.u8 [%x4+3], %h1; "
            "ld.global.f32 %f0, [%x4]; ");
    x[0] = x[1] = x[2] = x[3] = 3;
    shadow_run(&k, 4);
    static const uint32_t kinds[] = {PTX_SHADOW_F32, PTX_SHADOW_NONE, PTX_SHADOW_NONE, PTX_SHADOW_NONE};
    for (int i = 0; i < 4; i++)
        assert_int_equal(out_shadow[2 * i].kind, kinds[i]);
    kit_free(&k);
}

static void test_integer_kernels_have_no_entries(void **state)
{
    struct kit k;
    struct ptx_shadow_value none[2] = {{0}};
    fill(1, 2, 9);
    shadow_go(&k, "mov.b32 %r1, %f1; mad.lo.s32 %r1, %r1, 3, 7; xor.b32 %r1, %r1, %r0; mov.b32 %f0, %r1;", N);
    for (int i = 0; i < N; i++)
        assert_memory_equal(&out_shadow[2 * i], none, sizeof none);
    assert_int_equal(k.result.event_count, 0);
    kit_free(&k);
}

static void test_bad_accesses_give_zero(void **state)
{
    struct kit k;
    shadow_start(
        &k, "ld.global.f32 %f4, [%x1+100000]; add.f32 %f0, %f4, %f1; st.global.f32 [%x1+100000], %f0; .shared .f32 "
            "s[4]; st.shared.f32 [s+64], %f0;");
    x[0] = 2;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
    assert_int_equal(k.result.fault_count, 0);
    assert_true(out[0] == 2);
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_BAD_INPUT);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_follow_doubles),
        cmocka_unit_test(test_depth_is_the_longest_path),
        cmocka_unit_test(test_bits_of_a_float),
        cmocka_unit_test(test_half_precision),
        cmocka_unit_test(test_bfloat16_made_wide_by_bits),
        cmocka_unit_test(test_entries_of_an_earlier_launch),
        cmocka_unit_test(test_stores_replace_entries),
        cmocka_unit_test(test_integer_kernels_have_no_entries),
        cmocka_unit_test(test_bad_accesses_give_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
