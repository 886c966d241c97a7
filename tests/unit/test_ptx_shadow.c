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

/* Integer work on the bits of a float: taking the exponent out keeps the error, other work makes a plain number. */
static void test_bits_of_a_float(void **state)
{
    struct kit k;
    fill(100, 1000, 6);
    go(&k,
       "div.rn.f32 %f4, %f1, 0f40400000; mov.b32 %r1, %f4; add.s32 %r2, %r1, -1059760811; and.b32 %r3, %r2, -8388608; "
       "sub.s32 %r4, %r1, %r3; mov.b32 %f0, %r4;",
       N);
    for (int i = 0; i < N; i++)
        assert_close(out_shadow[2 * i].wide, ldexp((double)x[i] / 3, (int)lround(log2((double)out[i] / ((double)x[i] / 3)))), 1e-15, "mantissa");
    kit_free(&k);
    go(&k, "div.rn.f32 %f4, %f1, 0f40400000; mov.b32 %r1, %f4; add.s32 %r1, %r1, 1; mov.b32 %f0, %r1;", N);
    assert_int_equal(out_shadow[0].kind, PTX_SHADOW_NONE);
    kit_free(&k);
}

/* ---- NaN and infinities ---- */

static void test_nan_of_a_square_root(void **state)
{
    struct kit k;
    for (int i = 0; i < N; i++)
        x[i] = i == 5 || i == 9 ? -4.0f - (float)i : 4.0f;
    go(&k, "\nsqrt.rn.f32 %f4, %f1;\nadd.f32 %f0, %f4, 0f3F800000;", N);
    const struct ptx_number_event *e = event_at(&k, PTX_NUMBER_NAN, BODY_LINE + 1);
    assert_int_equal(k.result.event_count, 1);
    assert_non_null(e);
    assert_int_equal(e->count, 2);
    assert_int_equal(e->operand_count, 1);
    assert_true(e->operands[0] == -9 && e->operands_wide[0] == -9 && isnan(e->result) && isnan(e->result_wide));
    assert_int_equal(e->access.thread[0], 5);
    for (int i = 0; i < N; i++) {
        assert_int_equal(out_shadow[2 * i].origin, i == 5 || i == 9 ? BODY_LINE + 1 : 0);
        assert_int_equal(isnan(out[i]), i == 5 || i == 9);
        assert_int_equal(isnan(out_shadow[2 * i].wide), i == 5 || i == 9);
    }
    kit_free(&k);
}

static void expect_nan(const char *body, double a, double b)
{
    struct kit k;
    for (int i = 0; i < N; i++) {
        x[i] = (float)a;
        y[i] = (float)b;
        z[i] = 1;
    }
    go(&k, body, 64);
    const struct ptx_number_event *e = event_at(&k, PTX_NUMBER_NAN, BODY_LINE + 1);
    if (!e || out_shadow[0].origin != BODY_LINE + 1 || !isnan(out[0]))
        fail_msg("%s: no NaN, or from line %u", body, out_shadow[0].origin);
    assert_true(e->operands[0] == a && e->operands[1] == b);
    for (size_t i = 0; i < k.result.event_count; i++)
        assert_true(k.result.events[i].kind != PTX_NUMBER_NAN || k.result.events[i].access.ptx_line == BODY_LINE + 1);
    kit_free(&k);
}

static void test_nan_travels_with_its_origin(void **state)
{
    static const char *const ways[] = {
        "mul.f32 %f0, %f4, %f3;",
        "fma.rn.f32 %f0, %f3, %f3, %f4; neg.f32 %f0, %f0; abs.f32 %f0, %f0;",
        "max.NaN.f32 %f0, %f3, %f4;",
        "cvt.f64.f32 %d0, %f4; sqrt.rn.f64 %d0, %d0; cvt.rn.f32.f64 %f0, %d0;",
        "cvt.rn.f16.f32 %h1, %f4; cvt.f32.f16 %f0, %h1;",
        "cvt.rn.bf16.f32 %h1, %f4; fma.rn.bf16 %h1, %h1, %h1, %h1; cvt.f32.bf16 %f0, %h1;",
        ".shared .f32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.s32 %r1, %r1, %r2; st.shared.f32 [%r1], %f4; bar.sync 0; ld.shared.f32 %f0, [%r1];",
        "shfl.sync.down.b32 %f0|%p0, %f4, 1, 31, -1;",
        "st.global.f32 [%x4], %f3; atom.global.add.f32 %f5, [%x4], %f4; ld.global.f32 %f0, [%x4];",
        "st.global.f32 [%x4], %f3; atom.global.exch.b32 %r1, [%x4], %f4; ld.global.f32 %f0, [%x4];",
        ".shared .f32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.s32 %r1, %r1, %r2; st.shared.f32 [%r1], %f3; red.shared.add.f32 [%r1], %f4; ld.shared.f32 %f0, [%r1];",
    };
    char body[1024];
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(body, sizeof body, "\ndiv.rn.f32 %%f4, %%f1, %%f2;\n%s", ways[i]);
        expect_nan(body, 0, 0);
        snprintf(body, sizeof body, "\nsub.f32 %%f4, %%f1, %%f2;\n%s", ways[i]);
        expect_nan(body, INFINITY, INFINITY);
    }
}

static void test_nan_through_a_function(void **state)
{
    static const char text[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".func (.param .b32 r) inner(.param .b32 a, .param .align 8 .b8 s[8]) {\n.reg .f32 %f<4>;\nld.param.f32 %f1, [a]; ld.param.f32 %f3, [s+4];\n"
        "sqrt.rn.f32 %f2, %f1;\nadd.f32 %f2, %f2, %f3; st.param.f32 [r], %f2; ret;\n}\n"
        ".visible .entry k(.param .u64 px, .param .u64 py, .param .u64 pz, .param .u64 po) {\n.reg .f32 %f<4>; .reg .u64 %x<4>;\n"
        "ld.param.u64 %x1, [px]; ld.param.u64 %x2, [po]; ld.global.f32 %f1, [%x1]; div.rn.f32 %f1, %f1, 0f40400000; mov.f32 %f3, 0f3F800000; "
        "{\n.param .b32 a; .param .align 8 .b8 s[8]; .param .b32 r; st.param.f32 [a], %f1; st.param.f32 [s], %f1; st.param.f32 [s+4], %f1; "
        "call (r), inner, (a, s); ld.param.f32 %f2, [r]; }\nst.global.f32 [%x2], %f2; ret; }\n";
    for (int negative = 0; negative < 2; negative++) {
        struct kit k;
        kit_load(&k, text);
        memset(out_shadow, 0, sizeof out_shadow);
        x[0] = negative ? -1.0f : 1.0f;
        kit_buffer(&k, 0, x, sizeof x);
        kit_buffer(&k, 3, out, sizeof out);
        k.ranges[1].shadow = out_shadow;
        k.launch.shadow = true;
        assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
        if (negative) {
            assert_int_equal(out_shadow[0].origin, 7);
            assert_non_null(event_at(&k, PTX_NUMBER_NAN, 7));
        } else {
            assert_close(out_shadow[0].wide, sqrt(1 / 3.0) + 1 / 3.0, 1e-15, "call");
            assert_int_equal(out_shadow[0].depth, 3);
        }
        kit_free(&k);
    }
}

static void test_what_is_masked_off_leaves_nothing(void **state)
{
    struct kit k;
    for (int i = 0; i < N; i++)
        x[i] = i % 2 ? -1.0f : 1.0f;
    go(&k, "\nsqrt.rn.f32 %f4, %f1;\nsetp.lt.f32 %p0, %f1, 0f00000000; selp.f32 %f0, 0f00000000, %f4, %p0;", N);
    assert_int_equal(k.result.event_count, 1);
    for (int i = 0; i < N; i++) {
        assert_int_equal(out_shadow[2 * i].origin, 0);
        assert_int_equal(out_shadow[2 * i].kind, i % 2 ? PTX_SHADOW_NONE : PTX_SHADOW_F32);
    }
    kit_free(&k);
    go(&k, "\nsqrt.rn.f32 %f4, %f1;\nmax.f32 %f0, %f4, 0f00000000;", N);
    for (int i = 0; i < N; i++)
        assert_true(out_shadow[2 * i].origin == 0 && !isnan(out_shadow[2 * i].wide));
    kit_free(&k);
}

static void test_infinity(void **state)
{
    struct kit k;
    for (int i = 0; i < N; i++)
        x[i] = i == 3 ? 3e38f : i == 4 ? INFINITY : 1;
    go(&k, "\nmul.f32 %f4, %f1, 0f40800000;\nadd.f32 %f0, %f4, 0f3F800000;", N);
    const struct ptx_number_event *e = event_at(&k, PTX_NUMBER_INF, BODY_LINE + 1);
    assert_int_equal(k.result.event_count, 1);
    assert_non_null(e);
    assert_true(e->count == 1 && e->operands[0] == 3e38f && e->operands[1] == 4 && isinf(e->result));
    assert_int_equal(out_shadow[6].origin, BODY_LINE + 1);
    assert_close(out_shadow[6].wide, 4.0 * 3e38f + 1, 1e-15, "overflow");
    assert_int_equal(out_shadow[8].origin, 0);
    assert_true(isinf(out_shadow[8].wide));
    kit_free(&k);
}

static void test_loaded_nan_has_no_origin(void **state)
{
    struct kit k;
    for (int i = 0; i < N; i++)
        x[i] = NAN;
    go(&k, "add.f32 %f0, %f1, 0f3F800000;", N);
    assert_int_equal(k.result.event_count, 0);
    assert_int_equal(out_shadow[0].origin, 0);
    assert_true(isnan(out_shadow[0].wide));
    kit_free(&k);
}

/* ---- memory ---- */

static void test_entries_of_an_earlier_launch(void **state)
{
    struct kit k;
    start(&k, "add.f32 %f0, %f1, %f2;");
    x[0] = y[0] = 1;
    in_shadow[0][0] = (struct ptx_shadow_value){1.5, 77, 12, PTX_SHADOW_F32};
    in_shadow[1][0] = (struct ptx_shadow_value){9, 0, 1, PTX_SHADOW_F16}; /* does not fit: not taken */
    run(&k, 1);
    assert_true(out_shadow[0].wide == 2.5);
    assert_int_equal(out_shadow[0].origin, 77);
    assert_int_equal(out_shadow[0].depth, 13);
    kit_free(&k);
}

static void test_stores_replace_entries(void **state)
{
    struct kit k;
    start(&k, "add.f32 %f4, %f1, %f2; st.global.f32 [%x4], %f4; mov.u16 %h1, 5; setp.eq.u32 %p1, %r0, 1; @%p1 st.global.u16 [%x4+2], %h1; "
              "setp.eq.u32 %p2, %r0, 2; mov.u32 %r5, 7; @%p2 st.global.u32 [%x4], %r5; setp.eq.u32 %p3, %r0, 3; @%p3 st.global.u8 [%x4+3], %h1; "
              "ld.global.f32 %f0, [%x4]; ");
    x[0] = x[1] = x[2] = x[3] = 3;
    run(&k, 4);
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
    go(&k, "mov.b32 %r1, %f1; mad.lo.s32 %r1, %r1, 3, 7; xor.b32 %r1, %r1, %r0; mov.b32 %f0, %r1;", N);
    for (int i = 0; i < N; i++)
        assert_memory_equal(&out_shadow[2 * i], none, sizeof none);
    assert_int_equal(k.result.event_count, 0);
    kit_free(&k);
}

static void test_bad_accesses_give_zero(void **state)
{
    struct kit k;
    start(&k, "ld.global.f32 %f4, [%x1+100000]; add.f32 %f0, %f4, %f1; st.global.f32 [%x1+100000], %f0; .shared .f32 s[4]; st.shared.f32 [s+64], %f0;");
    x[0] = 2;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
    assert_int_equal(k.result.fault_count, 0);
    assert_true(out[0] == 2);
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_BAD_INPUT);
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
        {"mov.b32 %r1, {%h4, %h5}; mov.b32 %r2, {%h5, %h4}; add.f16x2 %r3, %r1, %r2; mov.b32 {%h0, %h1}, %r3; cvt.f32.f16 %f0, %h1;", op_add},
        {"mov.b32 %r1, {%h4, %h5}; mov.b32 %r2, {%h5, %h4}; fma.rn.f16x2 %r3, %r1, %r2, %r1; shr.u32 %r4, %r3, 16; cvt.u16.u32 %h0, %r4; "
         "mov.b32 {%h1, %h2}, %r2; mov.b32 %r5, {%h5, %h4}; prmt.b32 %r6, %r5, %r1, 0x5432; mov.b32 {%h0, %h1}, %r6; cvt.f32.f16 %f0, %h1;",
         op_same},
        {"mov.b32 %r1, {%h5, %h4}; st.global.b32 [%x4], %r1; ld.global.b16 %h0, [%x4+2]; cvt.f32.f16 %f0, %h0;", op_same},
        {"st.global.b16 [%x4], %h5; st.global.b16 [%x4+2], %h4; ld.global.b32 %r1, [%x4]; neg.f16x2 %r1, %r1; mov.b32 {%h0, %h1}, %r1; cvt.f32.f16 %f0, %h1;", op_neg},
    };
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        struct kit k;
        char body[1024];
        fill(0.5, 3, i + 20);
        snprintf(body, sizeof body, "cvt.rn.f16.f32 %%h4, %%f1; cvt.rn.f16.f32 %%h5, %%f2; cvt.rn.f16.f32 %%h6, %%f3; %s", halves[i].text);
        go(&k, body, N);
        for (int j = 0; j < N; j++)
            assert_close(out_shadow[2 * j].wide, halves[i].meaning(x[j], y[j], z[j]), 1e-15, halves[i].text);
        kit_free(&k);
    }
}

static void test_bfloat16_made_wide_by_bits(void **state)
{
    struct kit k;
    fill(0.5, 3, 30);
    go(&k, "cvt.rn.bf16.f32 %h4, %f1; mov.b16 %h5, 0; mov.b32 %r1, {%h5, %h4}; mov.b32 %f4, %r1; add.f32 %f0, %f4, %f4;", N);
    for (int j = 0; j < N; j++)
        assert_close(out_shadow[2 * j].wide, 2.0 * x[j], 1e-15, "bf16");
    kit_free(&k);
}

/* ---- perturbation ---- */

static double difference(const char *body, uint64_t seed, uint32_t thread)
{
    struct kit k;
    start(&k, body);
    run(&k, N);
    double plain = out_shadow[2 * thread].wide;
    memset(out_shadow, 0, sizeof out_shadow);
    k.launch.perturbation = seed;
    run(&k, N);
    double moved = out_shadow[2 * thread].wide;
    kit_free(&k);
    return fabs(moved - plain) / fabs(plain);
}

static void test_perturbation(void **state)
{
    fill(1, 2, 40);
    for (int i = 0; i < N; i++)
        y[i] = x[i] * 1.0001f;
    for (uint32_t i = 0; i < 8; i++) {
        double well = difference("add.f32 %f0, %f1, %f2;", 3, i), ill = difference("sub.f32 %f0, %f2, %f1;", 3, i);
        assert_true(well > 0 && well <= 0x1p-24);
        assert_true(ill > 0x1p-18 && ill < 0.01);
    }
    /* The same value at the same address, however it comes in; constants and what the launch made are exact. */
    assert_true(difference("ld.global.u32 %r1, [%x1]; mov.b32 %f4, %r1; sub.f32 %f4, %f4, %f1; add.f32 %f0, %f4, 0f3F800000;", 3, 1) == 0);
    assert_true(difference("mov.f32 %f4, 0f3F800000; st.global.f32 [%x4], %f4; ld.global.f32 %f5, [%x4]; add.f32 %f0, %f5, %f5;", 3, 1) == 0);
    assert_true(difference("cvt.rn.f32.u32 %f4, %r0; st.global.f32 [%x4], %f4; ld.global.f32 %f5, [%x4]; add.f32 %f0, %f5, %f5;", 3, 1) == 0);
    /* A copy keeps what it has got. */
    double copied = difference("st.global.f32 [%x4], %f1; ld.global.f32 %f4, [%x4]; sub.f32 %f5, %f4, %f1; add.f32 %f0, %f5, 0f3F800000;", 3, 1);
    assert_true(copied == 0);
    /* Halves get theirs, alone or in pairs. */
    double half = difference("ld.global.b16 %h1, [%x1+2]; cvt.f32.f16 %f4, %h1; ld.global.b32 %r1, [%x1]; mov.b32 {%h2, %h3}, %r1; cvt.f32.f16 %f5, %h3; "
                             "sub.f32 %f6, %f5, %f4; add.f32 %f0, %f6, 0f3F800000;", 3, 1);
    assert_true(half == 0);
    half = difference("ld.global.b16 %h1, [%x1+2]; cvt.f32.f16 %f0, %h1;", 3, 1);
    assert_true(half > 0x1p-24 && half <= 0x1p-11);
    assert_true(difference("add.f32 %f0, %f1, %f2;", 3, 1) != difference("add.f32 %f0, %f1, %f2;", 4, 1));
}

/* ---- runs ---- */

static void test_events_are_the_same_on_every_run(void **state)
{
    struct kit k, other;
    static const char body[] = "sqrt.rn.f32 %f4, %f1;\nadd.f32 %f5, %f1, 0f49742400; sub.f32 %f5, %f5, 0f49742400;\nrcp.rn.f32 %f6, %f2;\nadd.f32 %f0, %f4, %f5;";
    fill(-1, 1, 50);
    y[7] = 0;
    go(&k, body, N);
    start(&other, body);
    other.launch.workers = 4;
    run(&other, N);
    assert_int_equal(k.result.event_count, other.result.event_count);
    assert_true(k.result.event_count >= 3);
    for (size_t i = 0; i < k.result.event_count; i++) {
        const struct ptx_number_event *a = &k.result.events[i], *b = &other.result.events[i];
        assert_memory_equal(&a->access, &b->access, sizeof a->access);
        assert_true(a->kind == b->kind && a->count == b->count);
        assert_true(i == 0 || a[-1].access.ptx_line < a->access.ptx_line || (a[-1].access.ptx_line == a->access.ptx_line && a[-1].kind < a->kind));
    }
    kit_free(&k);
    kit_free(&other);
}

/* Whole kernels: every bit as in device mode. */
static void test_kernels_compute_the_same(void **state)
{
    static const char *const kernels[] = {"vector_add", "matrix_multiply", "mandelbrot", "hash", "tree_sum", "shuffle_sum"};
    static float a[4096], b[4096], c[2][4096];
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        uint64_t seed = i;
        struct kit k;
        kit_load_file(&k, "bench.ptx");
        for (int j = 0; j < 4096; j++) {
            a[j] = (float)((double)(kit_random(&seed) >> 11) * 0x1p-53);
            b[j] = a[j] - 0.5f;
        }
        for (int mode = 0; mode < 2; mode++) {
            memset(c[mode], 0, sizeof c[mode]);
            k.memory.range_count = 0;
            uint64_t pa = kit_buffer(&k, -1, a, sizeof a), pb = kit_buffer(&k, -1, b, sizeof b), pc = kit_buffer(&k, -1, c[mode], sizeof c[mode]);
            uint32_t sizes[2] = {i == 0 || i >= 4 ? 4096 : i == 3 ? 20 : 64, 50};
            uint64_t pointers[3] = {i == 2 || i == 3 ? pc : pa, i >= 4 ? pc : pb, pc};
            size_t count = i == 2 || i == 3 ? 1 : i >= 4 ? 2 : 3;
            memcpy(k.params, pointers, count * 8);
            memcpy(k.params + count, sizes, sizeof sizes);
            k.launch.shadow = mode == 1;
            k.launch.grid[1] = i == 1 ? 4 : i == 2 ? 64 : 1;
            k.launch.block[1] = i == 1 ? 16 : 1;
            assert_int_equal(kit_run(&k, kernels[i], i == 1 ? 4 : i == 2 ? 1 : 16, i == 1 ? 16 : i == 2 ? 64 : 256), STATUS_OK);
        }
        assert_memory_equal(c[0], c[1], sizeof c[0]);
        kit_free(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_follow_doubles),
        cmocka_unit_test(test_depth_is_the_longest_path),
        cmocka_unit_test(test_cancellation_is_named),
        cmocka_unit_test(test_variance),
        cmocka_unit_test(test_exponential_by_a_magic_constant),
        cmocka_unit_test(test_bits_of_a_float),
        cmocka_unit_test(test_nan_of_a_square_root),
        cmocka_unit_test(test_nan_travels_with_its_origin),
        cmocka_unit_test(test_nan_through_a_function),
        cmocka_unit_test(test_what_is_masked_off_leaves_nothing),
        cmocka_unit_test(test_infinity),
        cmocka_unit_test(test_loaded_nan_has_no_origin),
        cmocka_unit_test(test_entries_of_an_earlier_launch),
        cmocka_unit_test(test_stores_replace_entries),
        cmocka_unit_test(test_integer_kernels_have_no_entries),
        cmocka_unit_test(test_bad_accesses_give_zero),
        cmocka_unit_test(test_half_precision),
        cmocka_unit_test(test_bfloat16_made_wide_by_bits),
        cmocka_unit_test(test_perturbation),
        cmocka_unit_test(test_events_are_the_same_on_every_run),
        cmocka_unit_test(test_kernels_compute_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
