/* 128-bit registers and atomics, cache policies and other hints, alloca, clusters of one block, warp instructions
 * without .sync, lop3 with a predicate. */
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

#define HEAD                                                                                                           \
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"            \
    ".reg .b64 %x<16>; .reg .b32 %r<16>; .reg .pred %p<4>; .reg .b128 %q<8>; .reg .f32 %f<8>;\n"                       \
    ".shared .align 16 .b8 s[1024];\n"                                                                                 \
    "ld.param.u64 %x0, [in]; ld.param.u64 %x1, [out]; mov.u32 %r0, %tid.x;\n"                                          \
    "mul.wide.u32 %x2, %r0, 4; add.s64 %x2, %x1, %x2;\n"

static _Alignas(16) uint64_t in[64], out[64];

static void start(struct kit *k, const char *body, int mode)
{
    char text[8192];
    snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD, body);
    kit_load(k, text);
    kit_buffer(k, 0, in, sizeof in);
    kit_buffer(k, 1, out, sizeof out);
    k->launch.checked = mode == 1;
    k->launch.shadow = mode == 2;
}

/* In every mode the same: `want` in `count` words of 32 bits. */
static void check(const char *body, uint32_t threads, const uint32_t *want, uint32_t count)
{
    for (int mode = 0; mode < 3; mode++) {
        struct kit k;
        start(&k, body, mode);
        memset(out, 0, sizeof out);
        if (kit_run(&k, "k", 1, threads) != STATUS_OK)
            fail_msg("%s: %s", body, k.diag.text);
        if (k.result.fault_count)
            fail_msg("%s: %s", body, ptx_fault_kind_name(k.result.faults[0].kind));
        for (uint32_t i = 0; i < count; i++)
            if (((uint32_t *)out)[i] != want[i])
                fail_msg("mode %d: %s: word %u is %#x, want %#x", mode, body, i, ((uint32_t *)out)[i], want[i]);
        kit_free(&k);
    }
}

/* ---- 128 bits ---- */

static void test_wide_moves(void **state)
{
    for (uint32_t i = 0; i < 64; i++)
        in[i] = UINT64_C(0x0101010101010101) * i + 5;
    check("ld.global.b128 %q0, [%x0+16]; mov.b128 %q1, %q0; mov.b128 {%x3, %x4}, %q1; mov.b128 %q2, {%x4, %x3};\n"
          "st.shared.b128 [s+32], %q2; ld.volatile.shared.b128 %q3, [s+32]; st.global.release.gpu.b128 [%x1], %q3;\n"
          "mov.b128 {_, %x5}, %q3; st.global.u64 [%x1+16], %x5;",
          1,
          (const uint32_t[]){(uint32_t)in[3], (uint32_t)(in[3] >> 32), (uint32_t)in[2], (uint32_t)(in[2] >> 32),
                             (uint32_t)in[2], (uint32_t)(in[2] >> 32)},
          6);
}

static void test_wide_atomics(void **state)
{
    in[0] = 11;
    in[1] = 12;
    /* a cas that fails, one that succeeds, and an exchange; each gives what was there */
    for (int shared = 0; shared < 2; shared++) {
        char body[1024];
        const char *at = shared ? "[s+16]" : "[%x1+48]", *space = shared ? ".shared" : ".global";
        snprintf(body, sizeof body,
                 "ld.global.b128 %%q0, [%%x0]; mov.u64 %%x3, 21; mov.u64 %%x4, 22; mov.b128 %%q1, {%%x3, %%x4};\n"
                 "mov.b128 %%q4, {%%x4, %%x4}; st%s.b128 %s, %%q0;\n"
                 "atom%s.cas.b128 %%q2, %s, %%q1, %%q4; st.global.b128 [%%x1], %%q2;\n"
                 "atom%s.acq_rel.gpu.cas.b128 %%q2, %s, %%q0, %%q1; st.global.b128 [%%x1+16], %%q2;\n"
                 "atom%s.exch.b128 %%q1, %s, %%q4; st.global.b128 [%%x1+32], %%q1;\n"
                 "ld%s.b128 %%q5, %s; st.global.b128 [%%x1+48], %%q5;",
                 space, at, space, at, space, at, space, at, space, at);
        check(body, 1, (const uint32_t[]){11, 0, 12, 0, 11, 0, 12, 0, 21, 0, 22, 0, 22, 0, 22, 0}, 16);
    }
}

/* Blocks on several workers add to both halves, with a loop of cas as programs write it. */
static void test_wide_atomics_of_many_workers(void **state)
{
    struct kit k;
    start(&k,
          "ld.global.u64 %x3, [%x1]; ld.global.u64 %x4, [%x1+8]; mov.b128 %q0, {%x3, %x4};\n"
          "AGAIN: mov.b128 {%x3, %x4}, %q0; add.u64 %x3, %x3, 1; add.u64 %x4, %x4, 2; mov.b128 %q1, {%x3, %x4};\n"
          "atom.global.cas.b128 %q2, [%x1], %q0, %q1;\n"
          "mov.b128 {%x5, %x6}, %q2; mov.b128 {%x7, %x8}, %q0; setp.ne.u64 %p0, %x5, %x7; mov.b128 %q0, %q2;\n"
          "@%p0 bra AGAIN; setp.ne.u64 %p0, %x6, %x8; @%p0 bra AGAIN;",
          0);
    memset(out, 0, sizeof out);
    k.launch.workers = 4;
    assert_int_equal(kit_run(&k, "k", 64, 32), STATUS_OK);
    assert_int_equal(out[0], 64 * 32);
    assert_int_equal(out[1], 2 * 64 * 32);
    kit_free(&k);
}

static void test_wide_faults(void **state)
{
    struct kit k;
    static uint8_t valid[sizeof in / 8];
    start(&k, "add.s64 %x3, %x1, 8; atom.global.exch.b128 %q1, [%x3], %q0;", 1);
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
    assert_int_equal(k.result.fault_count, 1);
    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_MISALIGNED);
    kit_free(&k);
    start(&k, "ld.global.b128 %q0, [%x0]; atom.global.exch.b128 %q1, [%x1], %q0;", 1);
    memset(valid, 0xff, sizeof valid);
    valid[1] = 0x7f; /* the last byte */
    k.ranges[0].valid = valid;
    assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
    assert_int_equal(k.result.fault_count, 1);
    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_UNINITIALISED);
    kit_free(&k);
}

/* ---- hints ---- */

static void test_hints_change_nothing(void **state)
{
    in[0] = 40;
    in[1] = 0x3f8000003f800000;
    check("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %x9, 0.5;\n"
          "createpolicy.range.global.L2::evict_last.b64 %x10, [%x0], 64, 128; createpolicy.cvt.L2.b64 %x11, 3;\n"
          "ld.global.L1::no_allocate.L2::cache_hint.L2::128B.u32 %r1, [%x0], %x9; add.u32 %r1, %r1, 2;\n"
          "st.global.L1::evict_last.L2::cache_hint.u32 [%x1], %r1, %x10;\n"
          "atom.global.add.L2::cache_hint.u32 %r2, [%x1], 5, %x9; st.global.u32 [%x1+4], %r2;\n"
          "ld.global.v2.f32 {%f0, %f1}, [%x0+8]; red.global.add.L2::cache_hint.v2.f32 [%x1+8], {%f0, %f1}, %x9;\n"
          "mov.u32 %r3, s; cp.async.ca.shared.global.L2::cache_hint [%r3], [%x0], 4, 4, %x11;\n"
          "add.u32 %r3, %r3, 4; setp.eq.u32 %p0, %r0, 0; cp.async.ca.shared.global [%r3], [%x0], 4, %p0;\n"
          "cp.async.wait_all; ld.shared.u32 %r4, [s]; ld.shared.u32 %r5, [s+4];\n"
          "st.global.u32 [%x1+16], %r4; st.global.u32 [%x1+20], %r5;\n"
          "prefetch.global.L2::evict_last [%x0]; discard.global.L2 [%x0], 128; applypriority.global.L2::evict_normal "
          "[%x0], 128;\nfence.proxy.async; fence.proxy.alias; fence.mbarrier_init.release.cluster;\n"
          "fence.acquire.sync_restrict::shared::cluster.cluster; setmaxnreg.inc.sync.aligned.u32 64;",
          1, (const uint32_t[]){47, 42, 0x3f800000, 0x3f800000, 40, 0}, 6);
}

/* A base below zero, as nvcc makes them: the address wraps at 32 bits. */
static void test_copies_to_negative_bases(void **state)
{
    for (uint32_t i = 0; i < 64; i++)
        in[i] = i * 3 + 1;
    check("mov.u32 %r3, s; sub.u32 %r3, %r3, 48; cp.async.ca.shared.global [%r3+64], [%x0+16], 16; cp.async.wait_all;\n"
          "sub.u32 %r4, %r3, 48; mbarrier.init.shared.b64 [%r4+104], 1;\n"
          "ld.shared.v2.u64 {%x3, %x4}, [s+16]; st.global.u64 [%x1], %x3; st.global.u64 [%x1+8], %x4;",
          1, (const uint32_t[]){7, 0, 10, 0}, 4);
}

/* ---- the stack ---- */

static void test_alloca(void **state)
{
    /* an array of n words, filled and summed; a second one after it, freed and taken again */
    check("add.u32 %r1, %r0, 3; mul.wide.u32 %x3, %r1, 4; alloca.u64 %x4, %x3; cvta.local.u64 %x5, %x4;\n"
          "mov.u32 %r2, 0;\nFILL: mul.wide.u32 %x6, %r2, 4; add.s64 %x6, %x5, %x6; st.u32 [%x6], %r2;\n"
          "add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, %r1; @%p0 bra FILL;\n"
          "stacksave.u64 %x7; alloca.u64 %x8, 100, 64; st.local.u32 [%x8], 77; and.b64 %x9, %x8, 63;\n"
          "stackrestore.u64 %x7; alloca.u64 %x10, 100, 64; sub.u64 %x10, %x10, %x8; or.b64 %x9, %x9, %x10;\n"
          "mov.u32 %r3, 0; mov.u32 %r2, 0;\n"
          "SUM: mul.wide.u32 %x6, %r2, 4; add.s64 %x6, %x5, %x6; ld.u32 %r4, [%x6]; add.u32 %r3, %r3, %r4;\n"
          "add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, %r1; @%p0 bra SUM;\n"
          "cvt.u32.u64 %r5, %x9; add.u32 %r3, %r3, %r5; st.global.u32 [%x2], %r3;",
          4, (const uint32_t[]){3, 6, 10, 15}, 4);
}

/* What a callee takes is gone when it returns; what its caller took is not. */
static void test_alloca_across_calls(void **state)
{
    static const char text[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".func (.reg .u32 r) f(.reg .u32 n) {\n.reg .b64 %x<4>; .reg .pred %p; .reg .b32 %a, %b;\n"
        "alloca.u64 %x0, 64; st.local.u32 [%x0+60], n; mov.u32 r, 0; setp.eq.u32 %p, n, 0; @%p bra END;\n"
        "sub.u32 %a, n, 1; call (%b), f, (%a); add.u32 r, %b, 1;\n"
        "END: ld.local.u32 %a, [%x0+60]; add.u32 r, r, %a; ret;\n}\n"
        ".visible .entry k(.param .u64 in, .param .u64 out) {\n.reg .b64 %x<8>; .reg .b32 %r<4>;\n"
        "ld.param.u64 %x0, [out]; alloca.u64 %x1, 16; st.local.u32 [%x1], 1000; call (%r0), f, (5);\n"
        "call (%r1), f, (5); ld.local.u32 %r2, [%x1]; add.u32 %r0, %r0, %r1; add.u32 %r0, %r0, %r2;\n"
        "st.global.u32 [%x0], %r0; ret;\n}\n";
    for (int mode = 0; mode < 3; mode++) {
        struct kit k;
        kit_load(&k, text);
        kit_buffer(&k, 1, out, sizeof out);
        k.launch.checked = mode == 1;
        k.launch.shadow = mode == 2;
        assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
        assert_int_equal(k.result.fault_count, 0);
        assert_int_equal((uint32_t)out[0], 1000 + 2 * (5 + 4 + 3 + 2 + 1 + 5));
        kit_free(&k);
    }
}

static void test_alloca_of_nothing(void **state)
{
    check("alloca.u64 %x3, 0; alloca.u64 %x4, 0; setp.eq.u64 %p0, %x3, %x4; selp.u32 %r1, 1, 0, %p0; st.global.u32 "
          "[%x1], %r1;",
          1, (const uint32_t[]){1}, 1);
}

static void test_alloca_faults(void **state)
{
    static const struct {
        const char *body;
        enum ptx_fault_kind kind;
    } wrong[] = {{"alloca.u64 %x3, 100000000;", PTX_FAULT_STACK},
                 {"mov.u64 %x3, 100000; stackrestore.u64 %x3;", PTX_FAULT_STACK},
                 {"alloca.u64 %x3, 16; ld.local.u32 %r1, [%x3+16];", PTX_FAULT_OUT_OF_BOUNDS},
                 {"alloca.u64 %x3, 16; ld.local.u32 %r1, [%x3]; add.u32 %r1, %r1, 1;", PTX_FAULT_UNINITIALISED}};
    for (size_t i = 0; i < 4; i++) {
        struct kit k;
        start(&k, wrong[i].body, 1);
        assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
        if (k.result.fault_count != 1 || k.result.faults[0].kind != wrong[i].kind)
            fail_msg("%s: %u faults", wrong[i].body, (unsigned)k.result.fault_count);
        k.launch.checked = false;
        if (wrong[i].kind != PTX_FAULT_UNINITIALISED)
            assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_FAULT);
        kit_free(&k);
    }
}

/* ---- clusters of one block ---- */

static void test_cluster_of_one(void **state)
{
    uint32_t want[64];
    for (uint32_t i = 0; i < 64; i++)
        want[i] = (i + 33) % 64 + 1;
    /* each thread reads what another wrote before it arrived; a third of them end without waiting */
    check("mul.lo.u32 %r1, %r0, 4; mov.u32 %r2, s; add.u32 %r2, %r2, %r1; mov.u32 %r9, 0;\n"
          "mapa.shared::cluster.u32 %r3, %r2, %r9; add.u32 %r4, %r0, 1; st.shared::cluster.u32 [%r3], %r4;\n"
          "getctarank.shared::cluster.u32 %r5, %r3; mov.u32 %r6, %cluster_nctarank; add.u32 %r5, %r5, %r6;\n"
          "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
          "add.u32 %r7, %r0, 33; and.b32 %r7, %r7, 63; mul.lo.u32 %r7, %r7, 4; mov.u32 %r8, s; add.u32 %r7, %r7, %r8;\n"
          "ld.shared.u32 %r7, [%r7]; mul.lo.u32 %r7, %r7, %r5; st.global.u32 [%x2], %r7;\n"
          "barrier.cluster.arrive.relaxed; rem.u32 %r9, %r0, 3; setp.eq.u32 %p0, %r9, 0; @%p0 ret;\n"
          "barrier.cluster.wait; barrier.cluster.arrive; barrier.cluster.wait;",
          64, want, 64);
}

static void test_cluster_directives(void **state)
{
    static const struct {
        const char *text;
        enum status status;
    } rows[] = {{".maxclusterrank 8", STATUS_OK},
                {".explicitcluster .reqnctapercluster 1, 1, 1", STATUS_OK},
                {".reqnctapercluster 1", STATUS_OK},
                {".reqnctapercluster 2, 1, 1", STATUS_NOT_SUPPORTED},
                {".explicitcluster", STATUS_NOT_SUPPORTED}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        struct kit k;
        snprintf(text, sizeof text,
                 ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() %s\n{\nret;\n}\n", rows[i].text);
        kit_load(&k, text);
        if (kit_run(&k, "k", 1, 1) != rows[i].status)
            fail_msg("%s", rows[i].text);
        kit_free(&k);
    }
}

/* ---- warp instructions without .sync ---- */

static void test_lanes_without_sync(void **state)
{
    uint32_t want[32];
    /* even lanes exchange among themselves and count; odd ones do something else meanwhile */
    for (uint32_t i = 0; i < 32; i++)
        want[i] = i % 2 ? 7 : (i + 2) % 32 * 10 + 1000;
    check("and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 1; @%p0 bra ODD;\n"
          "add.u32 %r2, %r0, 2; mul.lo.u32 %r3, %r0, 10; shfl.idx.b32 %r4|%p1, %r3, %r2, 31;\n"
          "vote.ballot.b32 %r5, %p1; setp.eq.u32 %p2, %r5, 0x55555555; vote.all.pred %p3, %p2;\n"
          "@%p3 add.u32 %r4, %r4, 1000; st.global.u32 [%x2], %r4; bra END;\n"
          "ODD: st.global.u32 [%x2], 7;\nEND:",
          32, want, 32);
}

/* ---- lop3 with a predicate ---- */

static void test_lop3_predicate(void **state)
{
    uint32_t want[32];
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t d = (i & 3) ^ (i >> 2 & 3), q = i >> 4;
        want[i] = ((d != 0) && q) | ((d != 0) || q) << 1 | d << 2;
    }
    check(
        "and.b32 %r1, %r0, 3; shr.u32 %r2, %r0, 2; and.b32 %r2, %r2, 3; shr.u32 %r3, %r0, 4;\n"
        "setp.ne.u32 %p0, %r3, 0; lop3.and.b32 %r4|%p1, %r1, %r2, 0, 0x3c, %p0; lop3.or.b32 _|%p2, %r1, %r2, 0, 0x3c, "
        "%p0;\nselp.u32 %r5, 1, 0, %p1; selp.u32 %r6, 2, 0, %p2; shl.b32 %r4, %r4, 2; or.b32 %r5, %r5, %r6;\n"
        "or.b32 %r5, %r5, %r4; st.global.u32 [%x2], %r5;",
        32, want, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_moves),
        cmocka_unit_test(test_wide_atomics),
        cmocka_unit_test(test_wide_atomics_of_many_workers),
        cmocka_unit_test(test_wide_faults),
        cmocka_unit_test(test_hints_change_nothing),
        cmocka_unit_test(test_copies_to_negative_bases),
        cmocka_unit_test(test_alloca),
        cmocka_unit_test(test_alloca_across_calls),
        cmocka_unit_test(test_alloca_of_nothing),
        cmocka_unit_test(test_alloca_faults),
        cmocka_unit_test(test_cluster_of_one),
        cmocka_unit_test(test_cluster_directives),
        cmocka_unit_test(test_lanes_without_sync),
        cmocka_unit_test(test_lop3_predicate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
