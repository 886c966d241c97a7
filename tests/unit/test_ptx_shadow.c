/* Shadow mode: wide values against plain double arithmetic, which line is blamed for an error or a NaN, and that nothing of it
 * changes what the kernel computes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/arith.h"
#include "tests/unit/ptx_kit.h"

enum { N = 256 };
static float x[N], y[N], z[N], out[N], again[N];
static struct ptx_shadow_value in_shadow[3][N * 2], out_shadow[N * 2];

/* A kernel over x, y, z -> out, one thread each; `body` computes %f0 from %f1, %f2, %f3 and starts at line 5. */
enum { BODY_LINE = 5 };
static const char head[] =
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 px, .param .u64 py, .param .u64 pz, .param .u64 po) { "
    ".reg .f32 %f<20>; .reg .f64 %d<10>; .reg .b32 %r<20>; .reg .b16 %h<10>; .reg .b64 %x<20>; .reg .pred %p<5>; "
    "ld.param.u64 %x1, [px]; ld.param.u64 %x2, [py]; ld.param.u64 %x3, [pz]; ld.param.u64 %x4, [po]; mov.u32 %r0, %tid.x; "
    "mul.wide.u32 %x0, %r0, 4; add.s64 %x1, %x1, %x0; add.s64 %x2, %x2, %x0; add.s64 %x3, %x3, %x0; add.s64 %x4, %x4, %x0; "
    "ld.global.f32 %f1, [%x1]; ld.global.f32 %f2, [%x2]; ld.global.f32 %f3, [%x3];\n";
static const char tail[] = "\nst.global.f32 [%x4], %f0;\nret;\n}\n";

static void start(struct kit *k, const char *body)
{
    static char text[1 << 14];
    snprintf(text, sizeof text, "%s%s%s", head, body, tail);
    kit_load(k, text);
    memset(in_shadow, 0, sizeof in_shadow);
    memset(out_shadow, 0, sizeof out_shadow);
    memset(out, 0, sizeof out);
    float *const hosts[] = {x, y, z};
    for (int i = 0; i < 3; i++) {
        kit_buffer(k, i, hosts[i], sizeof x);
        k->ranges[i].shadow = in_shadow[i];
    }
    kit_buffer(k, 3, out, sizeof out);
    k->ranges[3].shadow = out_shadow;
    k->launch.shadow = true;
}

/* Runs `threads` threads; and once more on the device: the bits must be the same. */
static void run(struct kit *k, uint32_t threads)
{
    assert_int_equal(kit_run(k, "k", 1, threads), STATUS_OK);
    memcpy(again, out, sizeof out);
    struct ptx_result kept = k->result;
    memset(&k->result, 0, sizeof k->result);
    k->launch.shadow = false;
    memset(out, 0, sizeof out);
    assert_int_equal(kit_run(k, "k", 1, threads), STATUS_OK);
    ptx_result_free(&k->result);
    assert_memory_equal(out, again, sizeof out);
    k->result = kept;
    k->launch.shadow = true;
}

static void go(struct kit *k, const char *body, uint32_t threads)
{
    start(k, body);
    run(k, threads);
}

static const struct ptx_number_event *event_at(const struct kit *k, enum ptx_number_kind kind, uint32_t line)
{
    for (size_t i = 0; i < k->result.event_count; i++)
        if (k->result.events[i].kind == kind && k->result.events[i].access.ptx_line == line)
            return &k->result.events[i];
    return NULL;
}

static void assert_close(double got, double want, double tolerance, const char *what)
{
    if (got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tolerance * fabs(want))
        return;
    fail_msg("%s: %.17g, wanted %.17g", what, got, want);
}

static void fill(double low, double high, uint64_t seed)
{
    for (int i = 0; i < N; i++) {
        float *const to[] = {x, y, z};
        for (int j = 0; j < 3; j++)
            to[j][i] = (float)(low + (high - low) * (double)(kit_random(&seed) >> 11) * 0x1p-53);
    }
}

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
    {".shared .f32 s[256]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.s32 %r1, %r1, %r2; st.shared.f32 [%r1], %f4; bar.sync 0; ld.shared.f32 %f0, [%r1];",
     op_same, -4, 4},
    {".local .b32 l[4]; mov.u64 %x6, l; st.local.f32 [%x6+4], %f4; ld.local.f32 %f0, [%x6+4];", op_same, -4, 4},
    {".local .align 16 .b32 l[4]; mov.u64 %x6, l; cvta.local.u64 %x6, %x6; st.v4.f32 [%x6], {%f5, %f4, %f6, %f5}; ld.v2.f32 {%f7, %f0}, [%x6];",
     op_same, -4, 4},
    {"st.global.f32 [%x4], %f4; ld.global.f32 %f0, [%x4];", op_same, -4, 4},
    {"st.global.f32 [%x4], %f5; atom.global.exch.b32 %r1, [%x4], %f4; ld.global.f32 %f0, [%x4];", op_same, -4, 4},
    {"st.global.f32 [%x4], %f4; atom.global.exch.b32 %f0, [%x4], %f5;", op_same, -4, 4},
    {"st.global.f32 [%x4], %f5; atom.global.add.f32 %f7, [%x4], %f4; ld.global.f32 %f0, [%x4];", op_add, -4, 4},
    {"st.global.f32 [%x4], %f5; mov.b32 %r1, %f5; mov.b32 %r2, %f4; atom.global.cas.b32 %r3, [%x4], %r1, %r2; ld.global.f32 %f0, [%x4];",
     op_same, -4, 4},
};

/* Operands with an error of their own: %f4 = x / 3, %f5 = y / 3, %f6 = z / 3, rounded. */
static void test_operations_follow_doubles(void **state)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        struct kit k;
        char body[2048];
        fill(operations[i].low * 3, operations[i].high * 3, i + 1);
        snprintf(body, sizeof body, "div.rn.f32 %%f4, %%f1, 0f40400000; div.rn.f32 %%f5, %%f2, 0f40400000; div.rn.f32 %%f6, %%f3, 0f40400000; %s",
                 operations[i].text);
        go(&k, body, N);
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
    go(&k, "add.f32 %f4, %f1, %f2; mul.f32 %f4, %f4, %f3; mul.f32 %f5, %f2, %f3; add.f32 %f0, %f4, %f5;", N);
    assert_int_equal(out_shadow[0].depth, 3);
    kit_free(&k);
    go(&k, "mov.f32 %f0, %f1;", N);
    assert_int_equal(out_shadow[0].kind, PTX_SHADOW_NONE);
    kit_free(&k);
    go(&k, "cvt.rn.f32.u32 %f0, %r0;", N);
    assert_int_equal(out_shadow[6].kind, PTX_SHADOW_F32);
    assert_int_equal(out_shadow[6].depth, 1);
    assert_true(out_shadow[6].wide == 3);
    kit_free(&k);
}

/* ---- origins ---- */

static void expect_guilty(const char *body, uint32_t line, double in, double exact)
{
    struct kit k;
    for (int i = 0; i < N; i++)
        x[i] = (float)in;
    go(&k, body, 1);
    assert_close(out_shadow[0].wide, exact, 1e-4, body);
    if (out_shadow[0].origin != line)
        fail_msg("%s: line %u is blamed, not %u", body, out_shadow[0].origin, line);
    if (line) {
        const struct ptx_number_event *e = event_at(&k, PTX_NUMBER_AMPLIFIED, line);
        assert_non_null(e);
        assert_true(e->error_out > 8 * e->error_in);
        assert_int_equal(e->count, 1);
    } else {
        assert_int_equal(k.result.event_count, 0);
    }
    kit_free(&k);
}

static void test_cancellation_is_named(void **state)
{
    const double big = 1e6f, small = 1e-3f, tiny = 1e-5f;
    expect_guilty("add.f32 %f4, %f1, 0f3F800000; sqrt.rn.f32 %f4, %f4; sqrt.rn.f32 %f5, %f1;\n\nsub.f32 %f0, %f4, %f5;", BODY_LINE + 2,
                  big, 1 / (sqrt(big + 1) + sqrt(big)));
    expect_guilty("add.f32 %f4, %f1, 0f3F800000; sqrt.rn.f32 %f4, %f4; sqrt.rn.f32 %f5, %f1;\n\nadd.f32 %f4, %f4, %f5; rcp.rn.f32 %f0, %f4;", 0,
                  big, 1 / (sqrt(big + 1) + sqrt(big)));
    expect_guilty("cos.approx.f32 %f4, %f1;\n\nmov.f32 %f5, 0f3F800000; sub.f32 %f0, %f5, %f4;\nmul.f32 %f0, %f0, 0f40000000;", BODY_LINE + 2,
                  small, 2 * (1 - cos(small)));
    expect_guilty("mul.f32 %f4, %f1, 0f3F000000; sin.approx.f32 %f4, %f4;\nmul.f32 %f4, %f4, %f4; add.f32 %f0, %f4, %f4;", 0, small, 1 - cos(small));
    expect_guilty("add.f32 %f4, %f1, 0f3F800000;\n\nadd.f32 %f0, %f4, 0fBF800000;", BODY_LINE + 2, tiny, tiny);
    expect_guilty("add.f32 %f4, %f1, 0f3F800000;\n\nadd.f32 %f0, %f4, 0fBF800000;", BODY_LINE + 2, 1e-9f, 1e-9f);
    expect_guilty("add.f32 %f4, %f1, %f1;\nadd.f32 %f0, %f4, 0f3F800000;", 0, tiny, 1 + 2 * tiny);
}

/* E[x^2] - E[x]^2 against E[(x - E[x])^2], over x[0 ... 255] = 1000 + i / 256. */
static void test_variance(void **state)
{
    static const char naive[] = "mov.f32 %f4, 0f00000000; mov.f32 %f5, 0f00000000; mov.u32 %r1, 0;\n"
                                "L: ld.global.f32 %f6, [%x1]; add.f32 %f4, %f4, %f6; fma.rn.f32 %f5, %f6, %f6, %f5; add.s64 %x1, %x1, 4; "
                                "add.s32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 256; @%p0 bra L;\n"
                                "mul.f32 %f4, %f4, 0f3B800000; mul.f32 %f5, %f5, 0f3B800000; mul.f32 %f6, %f4, %f4;\n"
                                "sub.f32 %f0, %f5, %f6;";
    static const char stable[] = "mov.f32 %f4, 0f00000000; mov.f32 %f5, 0f00000000; mov.u32 %r1, 0; mov.u64 %x5, %x1;\n"
                                 "L: ld.global.f32 %f6, [%x1]; sub.f32 %f6, %f6, %f2; add.f32 %f4, %f4, %f6; add.s64 %x1, %x1, 4; "
                                 "add.s32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 256; @%p0 bra L;\n"
                                 "mul.f32 %f4, %f4, 0f3B800000; add.f32 %f4, %f4, %f2; mov.u32 %r1, 0;\n"
                                 "M: ld.global.f32 %f6, [%x5]; sub.f32 %f6, %f6, %f4; fma.rn.f32 %f5, %f6, %f6, %f5; add.s64 %x5, %x5, 4; "
                                 "add.s32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 256; @%p0 bra M;\n"
                                 "mul.f32 %f0, %f5, 0f3B800000;";
    struct kit k;
    double sum = 0, exact = 0;
    for (int i = 0; i < N; i++) {
        x[i] = 1000 + (float)i / 256;
        y[i] = 1000.5f;
        sum += x[i];
    }
    for (int i = 0; i < N; i++)
        exact += (x[i] - sum / N) * (x[i] - sum / N) / N;
    go(&k, naive, 1);
    assert_int_equal(out_shadow[0].origin, BODY_LINE + 3);
    assert_close(out_shadow[0].wide, exact, 1e-6, "variance");
    assert_true(out_shadow[0].depth > 256);
    kit_free(&k);
    go(&k, stable, 1);
    assert_int_equal(out_shadow[0].origin, 0);
    assert_close(out_shadow[0].wide, exact, 1e-6, "variance");
    kit_free(&k);
}

/* The exponential as nvcc writes it rounds by adding 1.5 * 2^23 and uses the bits of the sum. */
static void test_exponential_by_a_magic_constant(void **state)
{
    struct kit k;
    fill(-20, 20, 5);
    go(&k,
       "fma.rn.f32 %f3, %f1, 0f3BBB989D, 0f3F000000; cvt.sat.f32.f32 %f4, %f3; mov.f32 %f5, 0f4B400001; mov.f32 %f6, 0f437C0000; "
       "fma.rm.f32 %f7, %f4, %f6, %f5; add.f32 %f8, %f7, 0fCB40007F; neg.f32 %f9, %f8; fma.rn.f32 %f10, %f1, 0f3FB8AA3B, %f9; "
       "fma.rn.f32 %f11, %f1, 0f32A57060, %f10; mov.b32 %r1, %f7; shl.b32 %r2, %r1, 23; mov.b32 %f12, %r2; ex2.approx.ftz.f32 %f13, %f11; "
       "mul.f32 %f0, %f13, %f12;",
       N);
    for (int i = 0; i < N; i++) {
        assert_close(out_shadow[2 * i].wide, exp(x[i]), 1e-6, "exp");
        assert_int_equal(out_shadow[2 * i].origin, 0);
    }
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_follow_doubles),
        cmocka_unit_test(test_depth_is_the_longest_path),
        cmocka_unit_test(test_cancellation_is_named),
        cmocka_unit_test(test_variance),
        cmocka_unit_test(test_exponential_by_a_magic_constant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
