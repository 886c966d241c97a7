/* Shadow mode: what is known of a value beside its error. Errors that are lost on the way, and values that depend on
 * clocks, on the place in the device or on the order of atomics; each beside a twin that keeps its error, or depends on
 * nothing. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_shadow_kit.h"

static uint8_t tainted[N * 4];

/* Runs `body` after `prologue`; the bytes of out that each of `threads` threads stored have these flags. */
static void expect_flags(const char *prologue, const char *body, uint32_t threads, unsigned flags)
{
    struct kit k;
    char text[4096];
    snprintf(text, sizeof text, "%s %s", prologue, body);
    shadow_start(&k, text);
    memset(tainted, 0, sizeof tainted);
    k.ranges[3].tainted = tainted;
    k.timed = strstr(text, "%clock") || strstr(text, "%globaltimer");
    assert_int_equal(kit_run(&k, "k", 1, threads), STATUS_OK);
    for (uint32_t i = 0; i < threads * 4; i++)
        if (tainted[i] != flags)
            fail_msg("%s: byte %u has flags %u, not %u", body, i, tainted[i], flags);
    for (uint32_t i = 0; i < threads; i++)
        assert_int_equal(out_shadow[2 * i].flags & ~PTX_SHADOW_INEXACT, flags);
    kit_free(&k);
}

/* ---- errors that are lost ---- */

static const char third[] = "div.rn.f32 %f4, %f1, 0f40400000; cvt.f64.f32 %d4, %f4;";

/* `body` makes %f0 of %f4 = x / 3 or of %d4, the same as a double: `scale` times x / 3, without loss. */
static void inexact_thirds(void)
{
    uint64_t seed = 77;
    for (uint32_t i = 0; i < N; i++) { /* 2^23 is no multiple of 3, so neither is this mantissa */
        uint32_t bits = 0x3f800000 + 3 * (uint32_t)(kit_random(&seed) & 0xfffff);
        memcpy(&x[i], &bits, sizeof bits);
        y[i] = z[i] = x[i];
    }
}

static void expect_kept(const char *body, double scale)
{
    struct kit k;
    char text[2048];
    snprintf(text, sizeof text, "%s %s", third, body);
    inexact_thirds();
    shadow_go(&k, text, 32);
    for (int i = 0; i < 32; i++) {
        assert_int_equal(out_shadow[2 * i].kind, PTX_SHADOW_F32);
        assert_int_equal(out_shadow[2 * i].flags, PTX_SHADOW_INEXACT);
        assert_close(out_shadow[2 * i].wide, scale * (double)x[i] / 3, 1e-15, body);
    }
    kit_free(&k);
    expect_flags(third, body, 32, 0);
}

static void expect_lost(const char *body)
{
    inexact_thirds();
    expect_flags(third, body, 32, PTX_SHADOW_LOST);
}

static void test_halves_of_a_double(void **state)
{
    expect_kept("mov.b64 {%r1, %r2}, %d4; mov.b64 %d5, {%r1, %r2}; cvt.rn.f32.f64 %f0, %d5;", 1);
    expect_kept("mov.b64 {%r1, %r2}, %d4; shfl.sync.bfly.b32 %r3|%p0, %r1, 0, 31, -1; shfl.sync.bfly.b32 %r4|%p0, %r2, "
                "0, 31, -1; mov.b64 %d5, {%r3, %r4}; cvt.rn.f32.f64 %f0, %d5;",
                1);
    /* Twice around by 16 lanes. */
    expect_kept("mov.b64 {%r1, %r2}, %d4; shfl.sync.idx.b32 %r3|%p0, %r1, %r0, 31, -1; shfl.sync.idx.b32 %r4|%p0, %r2, "
                "%r0, 31, -1; mov.b64 %d5, {%r3, %r4}; add.f64 %d5, %d5, %d4; cvt.rn.f32.f64 %f0, %d5;",
                2);
    expect_kept(
        "mov.b64 %x5, %d4; cvt.u32.u64 %r1, %x5; shr.u64 %x5, %x5, 32; cvt.u32.u64 %r2, %x5; mov.b64 %d5, {%r1, "
        "%r2}; cvt.rn.f32.f64 %f0, %d5;",
        1);
    /* The exponent is in the upper half: what libdevice's exp does. */
    expect_kept(
        "mov.b64 {%r1, %r2}, %d4; shl.b32 %r3, %r0, 20; sub.s32 %r3, %r3, %r3; add.s32 %r2, %r2, 3145728; add.s32 "
        "%r2, %r2, %r3; mov.b64 %d5, {%r1, %r2}; cvt.rn.f32.f64 %f0, %d5;",
        8);
    expect_lost("mov.b64 {%r1, %r2}, %d4; mov.b64 %d5, {%r2, %r2}; cvt.rn.f32.f64 %f0, %d5;");
    expect_lost("mov.b64 {%r1, %r2}, %d4; add.s32 %r2, %r2, 1; mov.b64 %d5, {%r1, %r2}; cvt.rn.f32.f64 %f0, %d5;");
}

static void test_halves_of_another_lane(void **state)
{
    struct kit k;
    inexact_thirds();
    shadow_go(&k,
              "div.rn.f32 %f4, %f1, 0f40400000; cvt.f64.f32 %d4, %f4; mov.b64 {%r1, %r2}, %d4; "
              "shfl.sync.down.b32 %r3|%p0, %r1, 16, 31, -1; shfl.sync.down.b32 %r4|%p0, %r2, 16, 31, -1; "
              "mov.b64 %d5, {%r3, %r4}; add.f64 %d4, %d4, %d5; cvt.rn.f32.f64 %f0, %d4;",
              32);
    for (int i = 0; i < 16; i++) {
        assert_close(out_shadow[2 * i].wide, ((double)x[i] + (double)x[i + 16]) / 3, 1e-15, "sum over lanes");
        assert_int_equal(out_shadow[2 * i].flags, PTX_SHADOW_INEXACT);
    }
    kit_free(&k);
}

static void test_bits_of_a_single(void **state)
{
    static const char store[] =
        ".shared .align 4 .b8 s[1024]; shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.s32 %r1, %r1, %r2; "
        "st.shared.f32 [%r1], %f4; ";
    char body[1024];
    expect_kept("mov.b32 %r1, %f4; max.s32 %r1, %r1, 0; mov.b32 %f0, %r1;", 1);
    expect_kept("mov.b32 %r1, %f4; shf.l.wrap.b32 %r1, %r1, %r1, 0; mov.b32 %f0, %r1;", 1);
    /* The exponent alone is exact, as long as the error does not reach it: logf's first steps. */
    expect_flags(
        third, "mov.b32 %r1, %f4; add.s32 %r2, %r1, -1059760811; and.b32 %r3, %r2, -8388608; cvt.rn.f32.s32 %f0, %r3;",
        32, 0);
    expect_flags(third, "mov.b32 %r1, %f4; shr.u32 %r2, %r1, 23; cvt.rn.f32.s32 %f0, %r2;", 32, 0);
    expect_lost("mov.b32 %r1, %f4; and.b32 %r1, %r1, 8388607; cvt.rn.f32.s32 %f0, %r1;");
    expect_lost("mov.b32 %r1, %f4; mul.lo.s32 %r1, %r1, 3; mov.b32 %f0, %r1;");
    expect_lost("mov.b32 %r1, %f4; brev.b32 %r1, %r1; brev.b32 %r1, %r1; mov.b32 %f0, %r1;");
    /* The square root by halving the bits, as games do it. */
    expect_lost("mov.b32 %r1, %f4; shr.u32 %r1, %r1, 1; sub.s32 %r1, 1597463007, %r1; mov.b32 %f0, %r1;");
    snprintf(body, sizeof body, "%s ld.shared.u32 %%r3, [%%r1]; mov.b32 %%f0, %%r3;", store);
    expect_kept(body, 1);
    snprintf(body, sizeof body,
             "%s ld.shared.u8 %%r3, [%%r1]; ld.shared.u8 %%r4, [%%r1+1]; ld.shared.u16 %%h1, [%%r1+2]; "
             "st.shared.u8 [%%r1], %%r3; st.shared.u8 [%%r1+1], %%r4; ld.shared.f32 %%f0, [%%r1];",
             store);
    expect_lost(body);
    /* What was exact before loses nothing. */
    expect_flags("add.f32 %f4, %f1, %f1;", "mov.b32 %r1, %f4; mul.lo.s32 %r1, %r1, 3; mov.b32 %f0, %r1;", 32, 0);
}

static void test_formats_of_eight_bits(void **state)
{
    static const char there_and_back[] =
        "cvt.rn.satfinite.e4m3x2.f32 %h1, %f4, %f4; cvt.rn.f16x2.e4m3x2 %r1, %h1; mov.b32 "
        "{%h2, %h3}, %r1; cvt.f32.f16 %f0, %h2;";
    expect_lost(there_and_back);
    for (int i = 0; i < N; i++)
        x[i] = 1.1f;
    expect_flags("mov.f32 %f4, %f1;", there_and_back, 32, PTX_SHADOW_LOST);
    for (int i = 0; i < N; i++)
        x[i] = 1.25f;
    expect_flags("mov.f32 %f4, %f1;", there_and_back, 32, 0);
}

static void test_four_halves_in_one_register(void **state)
{
    static const char halves[] = "cvt.rn.f16.f32 %h1, %f1; cvt.rn.f16.f32 %h2, %f2;";
    fill(1, 2, 79);
    expect_flags(halves, "mov.b32 %r1, {%h1, %h2}; mov.b32 {%h3, %h4}, %r1; cvt.f32.f16 %f0, %h4;", 32, 0);
    expect_flags(halves, "mov.b64 %x5, {%h1, %h2, %h1, %h2}; mov.b64 {%h3, %h4, %h5, %h6}, %x5; cvt.f32.f16 %f0, %h6;",
                 32, PTX_SHADOW_LOST);
}

/* ---- time and place ---- */

static void test_clocks_and_places(void **state)
{
    static const char *const timed[] = {
        "mov.u32 %r1, %clock; cvt.rn.f32.u32 %f0, %r1;",
        "mov.u32 %r1, %clock_hi; cvt.rn.f32.u32 %f0, %r1;",
        "mov.u64 %x5, %clock64; and.b64 %x5, %x5, 1; cvt.u32.u64 %r1, %x5; add.s32 %r1, %r1, 5; mov.b32 %f0, %r1;",
        "mov.u64 %x5, %globaltimer; cvt.u32.u64 %r1, %x5; mov.b32 %f0, %r1;",
        "mov.u32 %r1, %globaltimer_lo; mov.b32 %f0, %r1;",
        "mov.u32 %r1, %smid; mad.lo.s32 %r1, %r1, 4, 1; mov.b32 %f0, %r1;",
        "mov.u32 %r1, %nsmid; mov.b32 %f0, %r1;",
        "mov.u32 %r1, %warpid; mov.b32 %f0, %r1;",
        "mov.u64 %x5, %gridid; cvt.u32.u64 %r1, %x5; mov.b32 %f0, %r1;",
        /* chosen, branched on, through memory, through an address, through other lanes */
        "mov.u32 %r1, %clock; setp.gt.u32 %p0, %r1, 5; selp.f32 %f0, %f1, %f2, %p0;",
        "mov.u32 %r1, %clock; setp.gt.u32 %p0, %r1, 5; mov.f32 %f0, %f1; @%p0 mov.f32 %f0, %f2;",
        "mov.u32 %r1, %clock; setp.gt.u32 %p0, %r1, 5; mov.f32 %f0, %f1; @%p0 bra L; mov.f32 %f0, %f2;\nL:",
        "mov.u32 %r1, %clock; st.global.u32 [%x4], %r1; ld.global.u32 %r2, [%x4]; not.b32 %r2, %r2; mov.b32 %f0, %r2;",
        ".shared .b32 s; mov.u32 %r1, %clock; st.shared.u32 [s], %r1; ld.shared.u32 %r2, [s]; mov.b32 %f0, %r2;",
        ".local .b32 l; mov.u32 %r1, %smid; st.local.u32 [l], %r1; ld.local.u32 %r2, [l]; mov.b32 %f0, %r2;",
        "mov.u32 %r1, %clock; and.b32 %r1, %r1, 1; mul.wide.u32 %x5, %r1, 4; ld.param.u64 %x6, [px]; add.s64 %x5, %x5, "
        "%x6; ld.global.f32 %f0, [%x5];",
        "mov.u32 %r1, %clock; shfl.sync.bfly.b32 %f0|%p0, %r1, 1, 31, -1;",
        "mov.u32 %r1, %clock; setp.gt.u32 %p0, %r1, 5; vote.sync.ballot.b32 %r2, %p0, -1; mov.b32 %f0, %r2;",
        "mov.u32 %r1, %clock; redux.sync.add.u32 %r2, %r1, -1; mov.b32 %f0, %r2;",
        "mov.u32 %r1, %clock; setp.gt.u32 %p0, %r1, 5; barrier.cta.red.popc.u32 %r2, 0, %p0; mov.b32 %f0, %r2;",
    };
    static const char *const untimed[] = {
        "mov.u32 %r1, %laneid; mov.b32 %f0, %r1;",
        "mov.u32 %r1, %clock; mov.u32 %r1, 7; mov.b32 %f0, %r1;",
        "mov.u32 %r1, %clock; st.global.u32 [%x4], %r1; mov.f32 %f0, %f1;",
        "setp.gt.u32 %p0, %r0, 5; mov.f32 %f0, %f1; @%p0 mov.f32 %f0, %f2;",
        "setp.gt.u32 %p0, %r0, 5; vote.sync.ballot.b32 %r2, %p0, -1; mov.b32 %f0, %r2;",
        "shfl.sync.bfly.b32 %f0|%p0, %r0, 1, 31, -1;",
    };
    fill(1, 2, 80);
    for (size_t i = 0; i < sizeof timed / sizeof *timed; i++)
        expect_flags("", timed[i], 32, PTX_SHADOW_TIMED);
    for (size_t i = 0; i < sizeof untimed / sizeof *untimed; i++)
        expect_flags("", untimed[i], 32, 0);
}

/* Who comes first gets the counter's value; what comes of it depends on the order. */
static void test_what_an_atomic_found(void **state)
{
    struct kit k;
    static const char counter[] = "ld.param.u64 %x5, [pz]; atom.global.add.u32 %r1, [%x5], 1; mov.b32 %f0, %r1;";
    static const char own[] = "atom.global.add.u32 %r1, [%x3], 1; atom.global.add.u32 %r1, [%x3], 1; mov.b32 %f0, %r1;";
    static const char unused[] = "ld.param.u64 %x5, [pz]; red.global.add.u32 [%x5], 1; mov.f32 %f0, %f1;";
    static const char shared[] = ".shared .b32 s; atom.shared.exch.b32 %r1, [s], %r0; mov.b32 %f0, %r1;";
    fill(1, 2, 81);
    const char *const contended[] = {counter, shared};
    for (int i = 0; i < 2; i++) {
        shadow_start(&k, contended[i]);
        memset(tainted, 0, sizeof tainted);
        k.ranges[3].tainted = tainted;
        assert_int_equal(kit_run(&k, "k", 1, 64), STATUS_OK);
        for (int j = 1; j < 64; j++)
            assert_int_equal(tainted[4 * j], PTX_SHADOW_TIMED);
        assert_int_equal(tainted[0], 0); /* the first one cannot know yet */
        kit_free(&k);
    }
    expect_flags("", own, 64, 0);
    expect_flags("", unused, 64, 0);
}

/* ---- decisions ---- */

/* x * 0.1 * 10, which is x but for rounding: %f4. */
static const char nearly_x[] = "mul.f32 %f4, %f1, 0f3DCCCCCD; mul.f32 %f4, %f4, 0f41200000; cvt.f64.f32 %d4, %f4; ";

static void test_decisions(void **state)
{
    static const char *const decided[] = {
        "setp.lt.f32 %p0, %f4, %f1; selp.f32 %f0, %f2, %f3, %p0;",
        "setp.neu.f32 %p0, %f4, %f1; mov.f32 %f0, %f2; @%p0 bra L; mov.f32 %f0, %f3;\nL:",
        "set.gt.u32.f32 %r1, %f4, %f1; mov.b32 %f0, %r1;",
        "cvt.f64.f32 %d5, %f1; setp.le.f64 %p0, %d4, %d5; selp.f32 %f0, %f2, %f3, %p0;",
        "cvt.rzi.s32.f32 %r1, %f4; mov.b32 %f0, %r1;",
        "cvt.rmi.u32.f32 %r1, %f4; add.s32 %r1, %r1, 3; mov.b32 %f0, %r1;",
        "cvt.rzi.s64.f64 %x5, %d4; cvt.u32.u64 %r1, %x5; mov.b32 %f0, %r1;",
        "add.f32 %f5, %f4, 0f3F000000; cvt.rni.s32.f32 %r1, %f5; mov.b32 %f0, %r1;",
        "cvt.rzi.f32.f32 %f5, %f4; add.f32 %f0, %f5, 0f3F800000;",
        "cvt.rzi.u32.f32 %r1, %f4; and.b32 %r1, %r1, 7; mul.wide.u32 %x5, %r1, 4; ld.param.u64 %x6, [pz]; add.s64 %x5, "
        "%x5, %x6; ld.global.f32 %f0, [%x5];",
        "mov.b32 %r1, %f4; mov.b32 %r2, %f1; setp.lt.s32 %p0, %r1, %r2; selp.f32 %f0, %f2, %f3, %p0;",
        "setp.lt.f32 %p0, %f4, %f1; setp.lt.and.f32 %p1, %f2, %f3, %p0; selp.f32 %f0, %f2, %f3, %p1;",
    };
    static const char *const sure[] = {
        "add.f32 %f5, %f1, %f1; setp.lt.f32 %p0, %f4, %f5; selp.f32 %f0, %f2, %f3, %p0;",
        "setp.lt.f32 %p0, %f2, %f1; selp.f32 %f0, %f2, %f3, %p0;",
        "setp.num.f32 %p0, %f4, %f1; selp.f32 %f0, %f2, %f3, %p0;",
        "add.f32 %f5, %f4, 0f3F000000; cvt.rzi.s32.f32 %r1, %f5; mov.b32 %f0, %r1;",
        "cvt.rni.s32.f32 %r1, %f4; mov.b32 %f0, %r1;",
        "cvt.rzi.s32.f32 %r1, %f1; mov.b32 %f0, %r1;", /* loaded: as it is */
        "cvt.rn.f32.u32 %f5, %r0; add.f32 %f5, %f5, 0f40000000; setp.eq.f32 %p0, %f5, %f1; selp.f32 %f0, %f2, %f3, "
        "%p0;",
        "max.f32 %f0, %f4, %f1; sub.f32 %f0, %f0, %f0;", /* either is nearly the same */
        "setp.lt.f32 %p0, %f4, %f1; mov.f32 %f0, %f2;",
    };
    for (int i = 0; i < N; i++) {
        x[i] = (float)i + 2;
        y[i] = 5;
        z[i] = (float)i * 7;
    }
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
        expect_flags(nearly_x, decided[i], 5, PTX_SHADOW_DECIDED);
    for (size_t i = 0; i < sizeof sure / sizeof *sure; i++)
        expect_flags(nearly_x, sure[i], 5, 0);
}

static void test_the_nearest_decision_is_told(void **state)
{
    struct kit k;
    for (int i = 0; i < N; i++) {
        x[i] = 2;
        y[i] = i == 7 ? 2.0000002f : i == 3 ? 2.000001f : 100.0f;
    }
    shadow_go(&k,
              "mul.f32 %f4, %f1, 0f3DCCCCCD;\nmul.f32 %f4, %f4, 0f41200000;\nsetp.lt.f32 %p0, %f4, %f2; selp.f32 %f0, "
              "%f1, %f2, %p0;",
              32);
    const struct ptx_number_event *e = shadow_event(&k, PTX_NUMBER_DECIDED, BODY_LINE + 2);
    assert_non_null(e);
    assert_int_equal(k.result.event_count, 1);
    assert_int_equal(e->count, 2);
    assert_int_equal(e->operand_count, 2);
    assert_true(e->operands[0] == 2 && (float)e->operands[1] == 2.0000002f);
    assert_true(e->result <= 2.4e-7 && e->result < e->result_wide && e->result_wide < 1e-5);
    assert_close(e->error_out, 1 - e->result / e->result_wide, 1e-12, "margin");
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_of_a_double),
        cmocka_unit_test(test_halves_of_another_lane),
        cmocka_unit_test(test_bits_of_a_single),
        cmocka_unit_test(test_formats_of_eight_bits),
        cmocka_unit_test(test_four_halves_in_one_register),
        cmocka_unit_test(test_clocks_and_places),
        cmocka_unit_test(test_what_an_atomic_found),
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_the_nearest_decision_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
