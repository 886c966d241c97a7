/* What verify makes of outputs that differ: how far rounding, contraction, approximation and near decisions may move
 * them, on synthetic captures; each wrong device beside a sound one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/verify_kit.h"

/* map(out, in): thread i stores out[i]; the body has in's address in %rd2, of in[i] in %rd5, in[i] in %f1, i in %r1. */
#define MAP(body)                                                                                                      \
    ".version 7.0\n.target sm_75\n.address_size 64\n.file 1 \"/src/map.cu\"\n"                                         \
    ".visible .entry map(.param .u64 out, .param .u64 in)\n{\n"                                                        \
    ".reg .pred %p<4>;\n.reg .f32 %f<10>;\n.reg .f64 %d<4>;\n.reg .b16 %h<6>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n"  \
    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nmov.u32 %r1, %tid.x;\n"                                      \
    "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"                               \
    "ld.global.f32 %f1, [%rd5];\n.loc 1 10 5\n" body "ret;\n}\n"

/* out[i] = sum of in[k] * in[i + k] over TERMS, which a device's compiler may contract. */
static const char dot_ptx[] =
    MAP("mov.f32 %f4, 0f00000000;\nmov.u32 %r2, 0;\nmov.u64 %rd6, %rd2;\nL: ld.global.f32 %f2, [%rd5];\nld.global.f32 "
        "%f3, [%rd6];\nmul.f32 %f2, %f2, %f3;\nadd.f32 %f4, %f4, %f2;\nadd.s64 %rd5, %rd5, 4;\nadd.s64 %rd6, %rd6, "
        "4;\nadd.s32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 32;\n@%p1 bra L;\nst.global.f32 [%rd4], %f4;\n");
/* x * x - fl(x * x): nothing but rounding. */
static const char residual_ptx[] = MAP("mul.rn.f32 %f2, %f1, %f1;\nmul.f32 %f3, %f1, %f1;\nsub.f32 %f4, %f3, "
                                       "%f2;\nst.global.f32 [%rd4], %f4;\n");
/* Is x * 0.1 * 10 at least x? That is near; at least 2 x? That is not. */
#define MASK(other)                                                                                                    \
    MAP("mul.f32 %f2, %f1, 0f3DCCCCCD;\nmul.f32 %f2, %f2, 0f41200000;\n" other                                         \
        "setp.ge.f32 %p1, %f2, %f3;\nselp.u32 %r2, 1, 0, %p1;\nst.global.u32 [%rd4], %r2;\n")
static const char near_ptx[] = MASK("mov.f32 %f3, %f1;\n");
static const char far_ptx[] = MASK("add.f32 %f3, %f1, %f1;\n");
/* The same with a branch, after the element was stored already. */
static const char branch_ptx[] =
    MAP("mul.f32 %f2, %f1, 0f3DCCCCCD;\nmul.f32 %f2, %f2, 0f41200000;\nmov.u32 %r2, 0;\nst.global.u32 [%rd4], "
        "%r2;\nsetp.gt.f32 %p1, %f2, %f1;\n@!%p1 bra END;\nmov.u32 %r2, 7;\nst.global.u32 [%rd4], %r2;\nEND:\n");
static const char clock_ptx[] = MAP("mov.u32 %r2, %clock;\nst.global.u32 [%rd4], %r2;\n");
static const char clock_aside_ptx[] = MAP("mov.u32 %r2, %clock;\nsetp.eq.u32 %p1, %r1, 63;\n@%p1 st.global.u32 [%rd4], "
                                          "%r2;\n@%p1 ret;\nadd.rn.f32 %f2, %f1, %f1;\nst.global.f32 [%rd4], %f2;\n");
static const char root_ptx[] = MAP("sqrt.approx.f32 %f2, %f1;\nst.global.f32 [%rd4], %f2;\n");
/* Half precision: out[i] = sum of 32 elements, each rounded to 11 bits. */
static const char half_ptx[] = MAP(
    "mov.u16 %h1, 0;\nmov.u32 %r2, 0;\nL: ld.global.f32 %f2, [%rd5];\ncvt.rn.f16.f32 %h2, %f2;\nmul.f16 %h2, %h2, "
    "%h2;\nadd.f16 %h1, %h1, %h2;\nadd.s64 %rd5, %rd5, 4;\nadd.s32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 32;\n@%p1 bra "
    "L;\ncvt.f32.f16 %f2, %h1;\nst.global.f32 [%rd4], %f2;\n");

enum { OUT = 0x700000, IN = 0x710000, THREADS = 64, COUNT = 96, TERMS = 32 };

struct bench {
    struct capture_make make;
    uint32_t out, in, kernel, config;
    float before[THREADS], input[COUNT];
    union {
        float floats[THREADS];
        uint32_t words[THREADS];
    } after;
    struct session session;
};

static void start(struct bench *b, const char *ptx)
{
    *b = (struct bench){0};
    capture_make_start(&b->make);
    uint32_t module = capture_make_module(&b->make, ptx);
    b->kernel = capture_make_kernel(&b->make, module, "map", (const uint32_t[]){8, 8, 0});
    b->config = capture_make_config(&b->make, 1, THREADS);
    b->out = capture_make_alloc(&b->make, OUT, sizeof b->before);
    b->in = capture_make_alloc(&b->make, IN, sizeof b->input);
    capture_make_copy_in(&b->make, OUT, sizeof b->before);
    capture_make_copy_in(&b->make, IN, sizeof b->input);
    for (int i = 0; i < COUNT; i++)
        b->input[i] = 1 + (float)((i * 37) % 101) / 97;
}

static void verify(struct bench *b)
{
    uint64_t params[2] = {OUT, IN};
    uint64_t launch = capture_make_launch(&b->make, b->kernel, b->config, params, sizeof params);
    capture_make_snapshot(&b->make, launch, b->out, CAP_BEFORE, b->before, sizeof b->before);
    capture_make_snapshot(&b->make, launch, b->in, CAP_BEFORE, b->input, sizeof b->input);
    capture_make_snapshot(&b->make, launch, b->out, CAP_AFTER, &b->after, sizeof b->after);
    capture_make_snapshot(&b->make, launch, b->in, CAP_AFTER, b->input, sizeof b->input);
    verify_kit_verify(&b->make, &b->session);
}

static void end(struct bench *b)
{
    verify_kit_end(&b->make, &b->session);
}

/* `reason` NULL: judged, and nothing found. */
static void expect(struct bench *b, const char *reason)
{
    verify(b);
    const struct judgement *j = judgements_find(&b->session.judgements, 1);
    for (size_t i = 0; i < b->session.findings.count; i++)
        fail_msg("unexpected: %s", b->session.findings.items[i].summary);
    if ((reason == NULL) != (j->reason == NULL) || (reason && strcmp(reason, j->reason) != 0))
        fail_msg("%s (%s), not %s", j->reason ? j->reason : "judged", j->detail ? j->detail : "", reason);
    end(b);
}

static void expect_mismatch(struct bench *b, int element)
{
    verify(b);
    if (b->session.findings.count != 1)
        fail_msg("%zu findings, %s (%s)", b->session.findings.count, judgements_find(&b->session.judgements, 1)->reason,
                 judgements_find(&b->session.judgements, 1)->detail);
    const struct finding *f = &b->session.findings.items[0];
    assert_int_equal(f->class, FINDING_MISMATCH);
    assert_int_equal(f->allocation, b->out);
    if (element >= 0)
        assert_int_equal(f->offset, 4 * element);
    end(b);
}

/* ---- sums ---- */

static float cut(float x, uint32_t mask)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= mask;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

enum device { PLAIN, CONTRACTED, OTHER_ORDER, CUT_OPERANDS, HALF_SUMS };
static float dot(const float *x, const float *y, enum device d)
{
    float sum = 0;
    for (int k = 0; k < TERMS; k++) {
        float a = x[k], b = y[k];
        if (d == CUT_OPERANDS) {
            a = cut(a, 0xffffe000);
            b = cut(b, 0xffffe000);
        }
        sum = d == CONTRACTED ? fmaf(a, b, sum) : sum + a * b;
        if (d == HALF_SUMS)
            sum = cut(sum, 0xffffe000);
    }
    return sum;
}

static void dots(struct bench *b, enum device d)
{
    start(b, dot_ptx);
    for (int i = 0; i < THREADS; i++)
        b->after.floats[i] = dot(b->input, b->input + i, d);
}

static void test_envelope_of_a_sound_device(void **state)
{
    struct bench b;
    dots(&b, PLAIN);
    expect(&b, NULL);
    dots(&b, CONTRACTED);
    expect(&b, NULL);
}

/* Operands of 11 bits change a sum of 32 by about 0.01 %. */
static void test_envelope_of_coarse_arithmetic(void **state)
{
    struct bench b;
    dots(&b, CUT_OPERANDS);
    expect_mismatch(&b, -1);
    dots(&b, HALF_SUMS);
    expect_mismatch(&b, -1);
}

static void test_envelope_one_wrong_element(void **state)
{
    struct bench b;
    dots(&b, CONTRACTED);
    b.after.floats[11] *= 1.0005f;
    expect_mismatch(&b, 11);
    dots(&b, CONTRACTED);
    b.after.floats[11] = nextafterf(b.after.floats[11], 1000);
    expect(&b, NULL);
    dots(&b, CONTRACTED);
    b.after.floats[11] = NAN;
    expect_mismatch(&b, 11);
}

static void test_envelope_that_says_nothing(void **state)
{
    struct bench b;
    start(&b, residual_ptx);
    for (int i = 0; i < THREADS; i++) {
        float square = b.input[i] * b.input[i];
        b.after.floats[i] = fmaf(b.input[i], b.input[i], -square);
    }
    expect(&b, "vacuous");
}

static void test_envelope_of_half_precision(void **state)
{
    struct bench b;
    for (int wrong = 0; wrong < 2; wrong++) {
        start(&b, half_ptx);
        for (int i = 0; i < THREADS; i++) {
            double sum = 0;
            for (int k = 0; k < TERMS; k++)
                sum += (double)b.input[i + k] * (double)b.input[i + k];
            b.after.floats[i] = wrong ? 3 : (float)sum;
        }
        /* Sums near 70 have steps of 1/16: a device that sums otherwise is not told from one that is a little wrong. */
        if (wrong)
            expect_mismatch(&b, -1);
        else
            expect(&b, NULL);
    }
}

static void test_envelope_of_approximate_functions(void **state)
{
    struct bench b;
    for (int i = 0; i < 2; i++) {
        start(&b, root_ptx);
        for (int k = 0; k < THREADS; k++) {
            b.input[k] = k == 5 ? NAN : b.input[k];
            b.after.floats[k] = sqrtf(b.input[k]);
        }
        b.after.words[5] = 0xffc00000; /* a NaN is a NaN */
        b.after.words[9] += i ? 1000 : 2;
        if (i)
            expect_mismatch(&b, 9);
        else
            expect(&b, NULL);
    }
}

static void test_envelope_of_exact_results(void **state)
{
    static const char *const kernels[] = {MAP("mul.f32 %f2, %f1, 0f40800000;\nst.global.f32 [%rd4], %f2;\n"),
                                          MAP("mul.f32 %f2, %f1, 0f3DCCCCCD;\nst.global.f32 [%rd4], %f2;\n")};
    for (int rounded = 0; rounded < 2; rounded++) {
        struct bench b;
        start(&b, kernels[rounded]);
        for (int i = 0; i < THREADS; i++)
            b.after.floats[i] = b.input[i] * (rounded ? 0.1f : 4);
        b.after.words[7]++;
        if (rounded)
            expect(&b, NULL);
        else
            expect_mismatch(&b, 7);
    }
}

/* ---- decisions ---- */

static bool at_least(float x, bool near)
{
    float back = x * 0.1f * 10.0f;
    return back >= (near ? x : x + x);
}

static void test_envelope_of_near_decisions(void **state)
{
    struct bench b;
    start(&b, near_ptx); /* any of them may fall either way */
    for (int i = 0; i < THREADS; i++)
        b.after.words[i] = at_least(b.input[i], true) ^ (i % 3 == 0);
    expect(&b, NULL);
    start(&b, far_ptx);
    for (int i = 0; i < THREADS; i++)
        b.after.words[i] = at_least(b.input[i], false);
    expect(&b, NULL);
    start(&b, far_ptx);
    for (int i = 0; i < THREADS; i++)
        b.after.words[i] = at_least(b.input[i], false) ^ (i % 3 == 0);
    expect_mismatch(&b, 0);
}

/* A thread that went the other way stored more, or less: nobody is accused. */
static void test_envelope_of_near_branches(void **state)
{
    struct bench b;
    start(&b, branch_ptx);
    for (int i = 0; i < THREADS; i++) {
        float back = b.input[i] * 0.1f * 10.0f;
        b.after.words[i] = (back > b.input[i]) ^ (i % 3 == 0) ? 7 : 0;
    }
    verify(&b);
    assert_int_equal(b.session.findings.count, 0);
    end(&b);
}

/* ---- time ---- */

static void test_envelope_of_clocks(void **state)
{
    struct bench b;
    start(&b, clock_ptx);
    for (int i = 0; i < THREADS; i++)
        b.after.words[i] = 4000000000u + (uint32_t)i;
    expect(&b, "time-dependent");
    start(&b, clock_aside_ptx);
    for (int i = 0; i < THREADS; i++)
        b.after.floats[i] = b.input[i] + b.input[i];
    b.after.words[63] = 17;
    expect(&b, "time-dependent");
}

/* Threads that go on by what an atomic found, as the last block of a reduction does: their sums are judged, when they
 * are what rounding may make of them. */
static const char ticket_ptx[] =
    MAP(".shared .u32 ticket;\nmov.u32 %r2, 0;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u32 [ticket], %r2;\nbar.sync "
        "0;\natom.shared.add.u32 %r3, [ticket], 1;\nsetp.gt.u32 %p2, %r3, 99;\n@%p2 bra END;\nmul.f32 %f2, %f1, "
        "0f3DCCCCCD;\nadd.f32 %f2, %f2, %f1;\nst.global.f32 [%rd4], %f2;\nEND:\n");

static void test_envelope_of_tickets(void **state)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        struct bench b;
        start(&b, ticket_ptx);
        for (int i = 0; i < THREADS; i++)
            b.after.floats[i] = fmaf(b.input[i], 0.1f, b.input[i]) * (wrong ? 1.01f : 1);
        expect(&b, wrong ? "time-dependent" : NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelope_of_a_sound_device), cmocka_unit_test(test_envelope_of_coarse_arithmetic),
        cmocka_unit_test(test_envelope_one_wrong_element), cmocka_unit_test(test_envelope_that_says_nothing),
        cmocka_unit_test(test_envelope_of_half_precision), cmocka_unit_test(test_envelope_of_approximate_functions),
        cmocka_unit_test(test_envelope_of_exact_results),  cmocka_unit_test(test_envelope_of_near_decisions),
        cmocka_unit_test(test_envelope_of_near_branches),  cmocka_unit_test(test_envelope_of_clocks),
        cmocka_unit_test(test_envelope_of_tickets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
