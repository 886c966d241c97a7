/* Shadow mode: which line is blamed for an error or a NaN, perturbation, and that nothing of it changes what the kernel
 * computes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptx/arith.h"
#include "tests/unit/ptx_shadow_kit.h"

/* ---- origins ---- */

static void expect_guilty(const char *body, uint32_t line, double in, double exact)
{
    struct kit k;
    for (int i = 0; i < N; i++)
        x[i] = (float)in;
    shadow_go(&k, body, 1);
    assert_close(out_shadow[0].wide, exact, 1e-4, body);
    if (out_shadow[0].origin != line)
        fail_msg("%s: line %u is blamed, not %u", body, out_shadow[0].origin, line);
    if (line) {
        const struct ptx_number_event *e = shadow_event(&k, PTX_NUMBER_AMPLIFIED, line);
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
    expect_guilty("add.f32 %f4, %f1, 0f3F800000; sqrt.rn.f32 %f4, %f4; sqrt.rn.f32 %f5, %f1;\n\nsub.f32 %f0, %f4, %f5;",
                  BODY_LINE + 2, big, 1 / (sqrt(big + 1) + sqrt(big)));
    expect_guilty("add.f32 %f4, %f1, 0f3F800000; sqrt.rn.f32 %f4, %f4; sqrt.rn.f32 %f5, %f1;\n\nadd.f32 %f4, %f4, %f5; "
                  "rcp.rn.f32 %f0, %f4;",
                  0, big, 1 / (sqrt(big + 1) + sqrt(big)));
    expect_guilty(
        "cos.approx.f32 %f4, %f1;\n\nmov.f32 %f5, 0f3F800000; sub.f32 %f0, %f5, %f4;\nmul.f32 %f0, %f0, 0f40000000;",
        BODY_LINE + 2, small, 2 * (1 - cos(small)));
    expect_guilty(
        "mul.f32 %f4, %f1, 0f3F000000; sin.approx.f32 %f4, %f4;\nmul.f32 %f4, %f4, %f4; add.f32 %f0, %f4, %f4;", 0,
        small, 1 - cos(small));
    expect_guilty("add.f32 %f4, %f1, 0f3F800000;\n\nadd.f32 %f0, %f4, 0fBF800000;", BODY_LINE + 2, tiny, tiny);
    expect_guilty("add.f32 %f4, %f1, 0f3F800000;\n\nadd.f32 %f0, %f4, 0fBF800000;", BODY_LINE + 2, 1e-9f, 1e-9f);
    expect_guilty("add.f32 %f4, %f1, %f1;\nadd.f32 %f0, %f4, 0f3F800000;", 0, tiny, 1 + 2 * tiny);
}

/* E[x^2] - E[x]^2 against E[(x - E[x])^2], over x[0 ... 255] = 1000 + i / 256. */
static void test_variance(void **state)
{
    static const char naive[] =
        "mov.f32 %f4, 0f00000000; mov.f32 %f5, 0f00000000; mov.u32 %r1, 0;\n"
        "L: ld.global.f32 %f6, [%x1]; add.f32 %f4, %f4, %f6; fma.rn.f32 %f5, %f6, %f6, %f5; add.s64 %x1, %x1, 4; "
        "add.s32 %r1, %r1, 1; setp.lt.u32 %p0, %r1, 256; @%p0 bra L;\n"
        "mul.f32 %f4, %f4, 0f3B800000; mul.f32 %f5, %f5, 0f3B800000; mul.f32 %f6, %f4, %f4;\n"
        "sub.f32 %f0, %f5, %f6;";
    static const char stable[] =
        "mov.f32 %f4, 0f00000000; mov.f32 %f5, 0f00000000; mov.u32 %r1, 0; mov.u64 %x5, %x1;\n"
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
    shadow_go(&k, naive, 1);
    assert_int_equal(out_shadow[0].origin, BODY_LINE + 3);
    assert_close(out_shadow[0].wide, exact, 1e-6, "variance");
    assert_true(out_shadow[0].depth > 256);
    kit_free(&k);
    shadow_go(&k, stable, 1);
    assert_int_equal(out_shadow[0].origin, 0);
    assert_close(out_shadow[0].wide, exact, 1e-6, "variance");
    kit_free(&k);
}

/* The exponential as nvcc writes it rounds by adding 1.5 * 2^23 and uses the bits of the sum. */
static void test_exponential_by_a_magic_constant(void **state)
{
    struct kit k;
    fill(-20, 20, 5);
    shadow_go(
        &k,
        "fma.rn.f32 %f3, %f1, 0f3BBB989D, 0f3F000000; cvt.sat.f32.f32 %f4, %f3; mov.f32 %f5, 0f4B400001; mov.f32 %f6, "
        "0f437C0000; "
        "fma.rm.f32 %f7, %f4, %f6, %f5; add.f32 %f8, %f7, 0fCB40007F; neg.f32 %f9, %f8; fma.rn.f32 %f10, %f1, "
        "0f3FB8AA3B, %f9; "
        "fma.rn.f32 %f11, %f1, 0f32A57060, %f10; mov.b32 %r1, %f7; shl.b32 %r2, %r1, 23; mov.b32 %f12, %r2; "
        "ex2.approx.ftz.f32 %f13, %f11; "
        "mul.f32 %f0, %f13, %f12;",
        N);
    for (int i = 0; i < N; i++) {
        assert_close(out_shadow[2 * i].wide, exp((double)x[i]), 1e-6, "exp");
        assert_int_equal(out_shadow[2 * i].origin, 0);
    }
    kit_free(&k);
}

/* ---- NaN and infinities ---- */

static void test_nan_of_a_square_root(void **state)
{
    struct kit k;
    for (int i = 0; i < N; i++)
        x[i] = i == 5 || i == 9 ? -4.0f - (float)i : 4.0f;
    shadow_go(&k, "\nsqrt.rn.f32 %f4, %f1;\nadd.f32 %f0, %f4, 0f3F800000;", N);
    const struct ptx_number_event *e = shadow_event(&k, PTX_NUMBER_NAN, BODY_LINE + 1);
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
    shadow_go(&k, body, 64);
    const struct ptx_number_event *e = shadow_event(&k, PTX_NUMBER_NAN, BODY_LINE + 1);
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
        ".shared .f32 s; st.shared.f32 [s], %f4; ld.shared.f32 %f0, [s];",
        "shfl.sync.down.b32 %f0|%p0, %f4, 1, 31, -1;",
        "st.global.f32 [%x4], %f3; atom.global.add.f32 %f5, [%x4], %f4; ld.global.f32 %f0, [%x4];",
        "st.global.f32 [%x4], %f3; atom.global.exch.b32 %r1, [%x4], %f4; ld.global.f32 %f0, [%x4];",
        ".shared .f32 s[256]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.s32 %r1, %r1, %r2; st.shared.f32 [%r1], %f3; "
        "red.shared.add.f32 [%r1], %f4; ld.shared.f32 %f0, [%r1];",
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
    static const char text[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                               ".func (.param .b32 r) inner(.param .b32 a, .param .align 8 .b8 s[8]) {\n.reg .f32 "
                               "%f<4>;\nld.param.f32 %f1, [a]; ld.param.f32 %f3, [s+4];\n"
                               "sqrt.rn.f32 %f2, %f1;\nadd.f32 %f2, %f2, %f3; st.param.f32 [r], %f2; ret;\n}\n"
                               ".visible .entry k(.param .u64 px, .param .u64 py, .param .u64 pz, .param .u64 po) "
                               "{\n.reg .f32 %f<4>; .reg .u64 %x<4>;\n"
                               "ld.param.u64 %x1, [px]; ld.param.u64 %x2, [po]; ld.global.f32 %f1, [%x1]; div.rn.f32 "
                               "%f1, %f1, 0f40400000; mov.f32 %f3, 0f3F800000; "
                               "{\n.param .b32 a; .param .align 8 .b8 s[8]; .param .b32 r; st.param.f32 [a], %f1; "
                               "st.param.f32 [s], %f1; st.param.f32 [s+4], %f1; "
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
            assert_non_null(shadow_event(&k, PTX_NUMBER_NAN, 7));
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
    shadow_go(&k, "\nsqrt.rn.f32 %f4, %f1;\nsetp.lt.f32 %p0, %f1, 0f00000000; selp.f32 %f0, 0f00000000, %f4, %p0;", N);
    assert_int_equal(k.result.event_count, 1);
    for (int i = 0; i < N; i++) {
        assert_int_equal(out_shadow[2 * i].origin, 0);
        assert_int_equal(out_shadow[2 * i].kind, i % 2 ? PTX_SHADOW_NONE : PTX_SHADOW_F32);
    }
    kit_free(&k);
    shadow_go(&k, "\nsqrt.rn.f32 %f4, %f1;\nmax.f32 %f0, %f4, 0f00000000;", N);
    for (int i = 0; i < N; i++)
        assert_true(out_shadow[2 * i].origin == 0 && !isnan(out_shadow[2 * i].wide));
    kit_free(&k);
}

static void test_infinity(void **state)
{
    struct kit k;
    for (int i = 0; i < N; i++)
        x[i] = i == 3 ? 3e38f : i == 4 ? INFINITY : 1;
    shadow_go(&k, "\nmul.f32 %f4, %f1, 0f40800000;\nadd.f32 %f0, %f4, 0f3F800000;", N);
    const struct ptx_number_event *e = shadow_event(&k, PTX_NUMBER_INF, BODY_LINE + 1);
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
    shadow_go(&k, "add.f32 %f0, %f1, 0f3F800000;", N);
    assert_int_equal(k.result.event_count, 0);
    assert_int_equal(out_shadow[0].origin, 0);
    assert_true(isnan(out_shadow[0].wide));
    kit_free(&k);
}

/* ---- perturbation ---- */

static double difference(const char *body, uint64_t seed, uint32_t thread)
{
    struct kit k;
    shadow_start(&k, body);
    shadow_run(&k, N);
    double plain = out_shadow[2 * thread].wide;
    memset(out_shadow, 0, sizeof out_shadow);
    k.launch.perturbation = seed;
    shadow_run(&k, N);
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
    assert_true(
        difference("ld.global.u32 %r1, [%x1]; mov.b32 %f4, %r1; sub.f32 %f4, %f4, %f1; add.f32 %f0, %f4, 0f3F800000;",
                   3, 1) == 0);
    assert_true(
        difference(
            "mov.f32 %f4, 0f3F800000; st.global.f32 [%x4], %f4; ld.global.f32 %f5, [%x4]; add.f32 %f0, %f5, %f5;", 3,
            1) == 0);
    assert_true(
        difference(
            "cvt.rn.f32.u32 %f4, %r0; st.global.f32 [%x4], %f4; ld.global.f32 %f5, [%x4]; add.f32 %f0, %f5, %f5;", 3,
            1) == 0);
    /* A copy keeps what it has got. */
    double copied = difference(
        "st.global.f32 [%x4], %f1; ld.global.f32 %f4, [%x4]; sub.f32 %f5, %f4, %f1; add.f32 %f0, %f5, 0f3F800000;", 3,
        1);
    assert_true(copied == 0);
    /* Halves get theirs, alone or in pairs. */
    double half = difference("ld.global.b16 %h1, [%x1+2]; cvt.f32.f16 %f4, %h1; ld.global.b32 %r1, [%x1]; mov.b32 "
                             "{%h2, %h3}, %r1; cvt.f32.f16 %f5, %h3; "
                             "sub.f32 %f6, %f5, %f4; add.f32 %f0, %f6, 0f3F800000;",
                             3, 1);
    assert_true(half == 0);
    half = difference("ld.global.b16 %h1, [%x1+2]; cvt.f32.f16 %f0, %h1;", 3, 1);
    assert_true(half > 0x1p-24 && half <= 0x1p-11);
    assert_true(difference("add.f32 %f0, %f1, %f2;", 3, 1) != difference("add.f32 %f0, %f1, %f2;", 4, 1));
}

/* ---- runs ---- */

static void test_events_are_the_same_on_every_run(void **state)
{
    struct kit k, other;
    static const char body[] = "sqrt.rn.f32 %f4, %f1;\nadd.f32 %f5, %f1, 0f49742400; sub.f32 %f5, %f5, "
                               "0f49742400;\nrcp.rn.f32 %f6, %f2;\nadd.f32 %f0, %f4, %f5;";
    fill(-1, 1, 50);
    y[7] = 0;
    shadow_go(&k, body, N);
    shadow_start(&other, body);
    other.launch.workers = 4;
    shadow_run(&other, N);
    assert_int_equal(k.result.event_count, other.result.event_count);
    assert_true(k.result.event_count >= 3);
    for (size_t i = 0; i < k.result.event_count; i++) {
        const struct ptx_number_event *a = &k.result.events[i], *b = &other.result.events[i];
        assert_memory_equal(&a->access, &b->access, sizeof a->access);
        assert_true(a->kind == b->kind && a->count == b->count);
        assert_true(i == 0 || a[-1].access.ptx_line < a->access.ptx_line ||
                    (a[-1].access.ptx_line == a->access.ptx_line && a[-1].kind < a->kind));
    }
    kit_free(&k);
    kit_free(&other);
}

/* Whole kernels: every bit as in device mode. */
static void test_kernels_compute_the_same(void **state)
{
    static const char *const kernels[] = {"vector_add", "matrix_multiply", "mandelbrot",
                                          "hash",       "tree_sum",        "shuffle_sum"};
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
            uint64_t pa = kit_buffer(&k, -1, a, sizeof a), pb = kit_buffer(&k, -1, b, sizeof b),
                     pc = kit_buffer(&k, -1, c[mode], sizeof c[mode]);
            uint32_t sizes[2] = {i == 0 || i >= 4 ? 4096 : i == 3 ? 20 : 64, 50};
            uint64_t pointers[3] = {i == 2 || i == 3 ? pc : pa, i >= 4 ? pc : pb, pc};
            size_t count = i == 2 || i == 3 ? 1 : i >= 4 ? 2 : 3;
            memcpy(k.params, pointers, count * 8);
            memcpy(k.params + count, sizes, sizeof sizes);
            k.launch.shadow = mode == 1;
            k.launch.grid[1] = i == 1 ? 4 : i == 2 ? 64 : 1;
            k.launch.block[1] = i == 1 ? 16 : 1;
            assert_int_equal(kit_run(&k, kernels[i],
                                     i == 1   ? 4
                                     : i == 2 ? 1
                                              : 16,
                                     i == 1   ? 16
                                     : i == 2 ? 64
                                              : 256),
                             STATUS_OK);
        }
        assert_memory_equal(c[0], c[1], sizeof c[0]);
        kit_free(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancellation_is_named),
        cmocka_unit_test(test_variance),
        cmocka_unit_test(test_exponential_by_a_magic_constant),
        cmocka_unit_test(test_nan_of_a_square_root),
        cmocka_unit_test(test_nan_travels_with_its_origin),
        cmocka_unit_test(test_nan_through_a_function),
        cmocka_unit_test(test_what_is_masked_off_leaves_nothing),
        cmocka_unit_test(test_infinity),
        cmocka_unit_test(test_loaded_nan_has_no_origin),
        cmocka_unit_test(test_perturbation),
        cmocka_unit_test(test_events_are_the_same_on_every_run),
        cmocka_unit_test(test_kernels_compute_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
