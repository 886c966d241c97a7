/* test_ptx_blocks.c - warps of a block that share registers' memory or instructions, in lock-step: each must see what
 * it would see alone. */
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { MOST_THREADS = 2048, WORDS = 4 * MOST_THREADS };
static uint32_t out[WORDS], in[WORDS];

/* ---- registers that a warp does not write ---- */

/* Three blocks of 96 threads; `body` leaves a result in %r1, given thread %t. */
static void run_body(const char *body)
{
    static char text[4096];
    struct kit k;
    snprintf(text, sizeof text,
             ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 to) {\n"
             ".reg .b32 %%r<9>, %%t, %%i, %%b; .reg .b64 %%x<4>, %%o; .reg .pred %%p<4>;\n"
             "mov.u32 %%t, %%tid.x; mov.u32 %%b, %%ctaid.x; mad.lo.u32 %%i, %%b, 96, %%t;\n%s\n"
             "ld.param.u64 %%o, [to]; mad.wide.u32 %%o, %%i, 4, %%o; st.global.u32 [%%o], %%r1; ret; }\n",
             body);
    memset(out, 0xaa, sizeof out);
    kit_load(&k, text);
    kit_buffer(&k, 0, out, sizeof out);
    assert_int_equal(kit_run(&k, "k", 3, 96), STATUS_OK);
    kit_free(&k);
}

/* Zero, whatever the warp before it left there. */
static void test_registers_start_as_zero(void **state)
{
    (void)state;
    run_body("setp.ge.u32 %p0, %t, 32; @%p0 bra B; add.u32 %r2, %t, 5; B: add.u32 %r1, %r2, 1;");
    for (uint32_t i = 0; i < 288; i++)
        assert_int_equal(out[i], i % 96 < 32 ? i % 96 + 6 : 1);
    run_body("setp.ge.u32 %p0, %t, 7; @%p0 bra B; mul.wide.u32 %x0, %t, %t; B: cvt.u32.u64 %r1, %x0;");
    for (uint32_t i = 0; i < 288; i++)
        assert_int_equal(out[i], i % 96 < 7 ? i % 96 * (i % 96) : 0);
    run_body("setp.ge.u32 %p0, %t, 32; @%p0 bra B; setp.lt.u32 %p1, %t, 40; B: selp.u32 %r1, 3, 4, %p1;");
    for (uint32_t i = 0; i < 288; i++)
        assert_int_equal(out[i], i % 96 < 32 ? 3 : 4);
    run_body("setp.ne.u32 %p0, %b, 0; @%p0 bra B; add.u32 %r2, %t, 5; B: add.u32 %r1, %r2, 1;");
    for (uint32_t i = 0; i < 288; i++)
        assert_int_equal(out[i], i < 96 ? i + 6 : 1);
    /* Through a loop: zero in the first round only. */
    run_body("mov.u32 %r3, 0; L: add.u32 %r1, %r2, 1; add.u32 %r2, %r1, %t; add.u32 %r3, %r3, 1;\n"
             "setp.lt.u32 %p0, %r3, 2; @%p0 bra L;");
    for (uint32_t i = 0; i < 288; i++)
        assert_int_equal(out[i], i % 96 + 2);
    /* And by a table of branches. */
    run_body("S: .branchtargets A, B; min.u32 %r4, %b, 1; brx.idx %r4, S; A: add.u32 %r2, %t, 9; B: mov.u32 %r1, %r2;");
    for (uint32_t i = 0; i < 288; i++)
        assert_int_equal(out[i], i < 96 ? i + 9 : 0);
}

/* ---- instructions for all warps at once ---- */

struct outcome {
    uint32_t out[WORDS];
    struct ptx_counts counts;
    enum status status;
    struct ptx_fault fault;
};

static void run_engine(const char *text, const uint32_t *block, uint32_t n, bool one_by_one, struct outcome *o)
{
    struct kit k;
    for (uint32_t i = 0; i < WORDS; i++) {
        in[i] = i * 2654435761u;
        out[i] = ~i;
    }
    kit_load(&k, text);
    kit_buffer(&k, 0, in, sizeof in);
    kit_buffer(&k, 1, out, sizeof out);
    k.params[2] = n;
    memcpy(k.launch.block, block, 3 * sizeof *block);
    k.launch.one_by_one = one_by_one;
    memset(o, 0, sizeof *o);
    o->status = kit_run(&k, "k", 2, block[0]);
    o->counts = k.result.counts;
    if (k.result.fault_count)
        o->fault = k.result.faults[0];
    memcpy(o->out, out, sizeof out);
    kit_free(&k);
}

/* Both engines agree on `body`, given %i, the thread's number in the launch, %x, %y and %n (a parameter), and %in,
 * %out. */
static void same_as_one_by_one(const char *body, uint32_t n)
{
    static const uint32_t blocks[][3] = {{128, 1, 1}, {256, 2, 1}, {16, 16, 1}, {8, 8, 3},  {4, 32, 1},
                                         {24, 8, 1},  {48, 2, 1},  {100, 1, 1}, {32, 1, 1}, {64, 2, 2}};
    static struct outcome a, b;
    static char text[8192];
    snprintf(
        text, sizeof text,
        ".version 9.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry k(.param .u64 from, .param .u64 to, .param .u32 last) {\n"
        ".reg .b32 %%r<9>, %%i, %%x, %%y, %%n, %%v, %%w; .reg .b64 %%d<9>, %%in, %%out; .reg .pred %%p<4>;\n"
        "ld.param.u64 %%in, [from]; ld.param.u64 %%out, [to]; ld.param.u32 %%n, [last];\n"
        "mov.u32 %%x, %%tid.x; mov.u32 %%y, %%tid.y; mov.u32 %%r0, %%ntid.x; mad.lo.u32 %%i, %%y, %%r0, %%x;\n"
        "mov.u32 %%r1, %%ntid.y; mul.lo.u32 %%r0, %%r0, %%r1; mov.u32 %%r1, %%tid.z; mad.lo.u32 %%i, %%r1, %%r0, %%i;\n"
        "mov.u32 %%r1, %%ntid.z; mul.lo.u32 %%r0, %%r0, %%r1; mov.u32 %%r1, %%ctaid.x; mad.lo.u32 %%i, %%r1, %%r0, "
        "%%i;\n"
        "%s\nE: ret; }\n",
        body);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        run_engine(text, blocks[i], n, true, &a);
        run_engine(text, blocks[i], n, false, &b);
        assert_int_equal(a.status, b.status);
        assert_int_equal(a.fault.kind, b.fault.kind);
        if (a.status != STATUS_OK) {
            assert_int_equal(a.fault.access.ptx_line, b.fault.access.ptx_line);
            assert_memory_equal(a.fault.access.thread, b.fault.access.thread, sizeof a.fault.access.thread);
            assert_memory_equal(a.fault.access.block, b.fault.access.block, sizeof a.fault.access.block);
            continue;
        }
        if (memcmp(a.out, b.out, sizeof a.out) != 0)
            fail_msg("block %u x %u x %u: memory differs after\n%s", blocks[i][0], blocks[i][1], blocks[i][2], body);
        assert_int_equal(a.counts.thread_instructions, b.counts.thread_instructions);
        assert_int_equal(a.counts.warp_instructions, b.counts.warp_instructions);
        assert_int_equal(a.counts.global_read_bytes, b.counts.global_read_bytes);
        assert_int_equal(a.counts.global_write_bytes, b.counts.global_write_bytes);
    }
}

#define ADDRESS(d, base, index) "mul.wide.u32 " d ", " index ", 4; add.u64 " d ", " d ", " base ";\n"
#define LOAD_V                  ADDRESS("%d0", "%in", "%i") "ld.global.u32 %v, [%d0];\n"
#define STORE_V                 ADDRESS("%d1", "%out", "%i") "st.global.u32 [%d1], %v;\n"

static void test_elements(void **state)
{
    (void)state;
    same_as_one_by_one(LOAD_V "add.u32 %v, %v, %i; mad.lo.u32 %v, %v, 17, %x; xor.b32 %v, %v, 255;\n" STORE_V, 0);
    same_as_one_by_one("mov.u32 %v, %i;\n" LOAD_V "add.u32 %i, %i, 0; add.u32 %w, %i, %v; mov.u32 %v, %w;\n" STORE_V,
                       0);
    same_as_one_by_one("setp.ge.u32 %p0, %i, %n; @%p0 bra E;\n" LOAD_V STORE_V, 150);
    same_as_one_by_one("setp.ge.u32 %p0, %i, %n; @%p0 bra E;\n" LOAD_V STORE_V, 128);
    same_as_one_by_one("ld.global.u32 %w, [%in+8];\n" LOAD_V "sub.u32 %v, %w, %v;\n" STORE_V, 0);
    same_as_one_by_one(
        "mul.wide.u32 %d0, %i, 8; add.u64 %d1, %d0, %in; ld.global.u64 %d2, [%d1]; add.u64 %d2, %d2, %d0;\n"
        "add.u64 %d3, %d0, %out; st.global.u64 [%d3], %d2;",
        0);
    same_as_one_by_one("mul.lo.u32 %r2, %i, 3;\n" ADDRESS("%d0", "%in", "%r2") "ld.global.u32 %v, [%d0];\n" STORE_V, 0);
    same_as_one_by_one("mul.lo.u32 %r2, %x, 5; shl.b32 %r3, %y, 2; add.u32 %r2, %r2, %r3;\n" ADDRESS(
                           "%d0", "%in", "%r2") "ld.global.u32 %v, [%d0];\n" STORE_V,
                       0);
    same_as_one_by_one(
        "cvt.u64.u32 %d4, %i; shl.b64 %d4, %d4, 2; add.u64 %d5, %in, %d4; ld.global.u32 %v, [%d5];\n" STORE_V, 0);
    same_as_one_by_one(LOAD_V "setp.lt.s32 %p0, %v, 0; selp.u32 %v, %v, %i, %p0; @%p0 add.u32 %v, %v, 9;\n" STORE_V, 0);
}

/* What all warps have in common, and what each has of its own. */
static void test_numbers(void **state)
{
    (void)state;
    same_as_one_by_one("sub.u32 %v, 1000, %i; shl.b32 %v, %v, 3; sub.u32 %v, %v, %x; min.u32 %v, %v, 5000;\n" STORE_V,
                       0);
    same_as_one_by_one("mul.wide.s32 %d3, %i, -7; cvt.u32.u64 %v, %d3;\n" STORE_V, 0);
    same_as_one_by_one("mad.wide.s32 %d3, %i, -7, %in; cvt.u32.u64 %v, %d3; shr.u32 %v, %v, 3;\n" STORE_V, 0);
    same_as_one_by_one("not.b32 %r3, %n; popc.b32 %v, %r3; add.u32 %v, %v, %i;\n" STORE_V, 77);
    same_as_one_by_one(
        "setp.eq.u32 %p0, %n, 77; selp.u32 %v, 3, 4, %p0; and.pred %p1, %p0, %p0; @%p1 add.u32 %v, %v, %i;\n" STORE_V,
        77);
    same_as_one_by_one(
        "setp.eq.u32 %p0, %n, 77; @!%p0 bra E; setp.ne.u32 %p1, %n, 77; @%p1 add.u32 %i, %i, 1;\n" LOAD_V STORE_V, 77);
    same_as_one_by_one(
        "mov.u32 %w, 0; L: add.u32 %w, %w, 1; add.u32 %i, %i, 1; setp.lt.u32 %p0, %w, 5; @%p0 bra L;\n" LOAD_V STORE_V,
        0);
    same_as_one_by_one("mov.u32 %v, %warpid; mov.u32 %w, %laneid; mad.lo.u32 %v, %v, 100, %w;\n" STORE_V, 0);
    same_as_one_by_one("mov.u32 %v, %lanemask_lt; add.u32 %v, %v, %i;\n" STORE_V, 0);
    same_as_one_by_one(LOAD_V "bar.sync 0;\n" STORE_V, 0);
    same_as_one_by_one("bar.sync 0;\n" LOAD_V STORE_V "bar.sync 0;", 0);
}

/* Some warp's numbers wrap around, or lie on the other side of a comparison. */
static void test_where_warps_differ(void **state)
{
    static const uint32_t near[] = {0xffffff80, 0x7fffff80, 0xffffffe0, 0x7fffffe0, 0xfffffff0, 0x7ffffff0, 0x80000000};
    (void)state;
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        same_as_one_by_one(
            "add.u32 %r2, %i, %n; mul.wide.u32 %d3, %r2, 4; shr.u64 %d3, %d3, 20; cvt.u32.u64 %v, %d3;\n" STORE_V,
            near[i]);
        same_as_one_by_one(
            "add.u32 %r2, %i, %n; cvt.s64.s32 %d3, %r2; shr.s64 %d3, %d3, 7; cvt.u32.u64 %v, %d3;\n" STORE_V, near[i]);
        same_as_one_by_one(
            "add.u32 %r2, %i, %n; cvt.u64.u32 %d3, %r2; shr.u64 %d3, %d3, 7; cvt.u32.u64 %v, %d3;\n" STORE_V, near[i]);
        same_as_one_by_one("add.u32 %r2, %i, %n; setp.lt.s32 %p0, %r2, 100; @%p0 bra E; mov.u32 %v, 7;\n" STORE_V,
                           near[i]);
        same_as_one_by_one("add.u32 %r2, %i, %n; setp.gt.u32 %p0, %r2, 100; @%p0 bra E; mov.u32 %v, 7;\n" STORE_V,
                           near[i]);
    }
    for (uint32_t n = 0; n < 300; n += 31)
        same_as_one_by_one("setp.le.s32 %p0, %i, %n; @%p0 bra E; mov.u32 %v, 7;\n" STORE_V, n);
}

/* Stores that meet: the last thread's stays. Faults: the first thread's is reported. */
static void test_accesses(void **state)
{
    (void)state;
    same_as_one_by_one(LOAD_V ADDRESS("%d1", "%out", "%x") "st.global.u32 [%d1], %v;", 0);
    same_as_one_by_one(LOAD_V "st.global.u32 [%out], %v;", 0);
    same_as_one_by_one(LOAD_V "and.b32 %r2, %n, 31;\n" ADDRESS("%d1", "%out", "%r2") "st.global.u32 [%d1], %v;", 9);
    /* Threads from some number on leave the buffer, by one instruction or by another one before it. */
    same_as_one_by_one("add.u32 %r2, %i, %n;\n" ADDRESS("%d0", "%in", "%r2") "ld.global.u32 %v, [%d0];\n" STORE_V,
                       WORDS - 70);
    for (uint32_t n = 100; n < 1000; n += 90) /* in the first block or in the second */
        same_as_one_by_one("add.u32 %r2, %i, %n;\n" ADDRESS("%d0", "%in", "%r2") "ld.global.u32 %v, [%d0];\n" STORE_V,
                           WORDS - n);
    same_as_one_by_one("add.u32 %r2, %i, %n; add.u32 %r3, %r2, 40;\n" ADDRESS("%d0", "%in", "%r2")
                           ADDRESS("%d1", "%in", "%r3") "ld.global.u32 %v, [%d1];\nld.global.u32 %w, [%d0];\n" STORE_V,
                       WORDS - 100);
    same_as_one_by_one(LOAD_V "add.u32 %r2, %i, %n;\n" ADDRESS("%d1", "%out", "%r2") "st.global.u32 [%d1], %v;",
                       WORDS - 70);
    same_as_one_by_one(LOAD_V ADDRESS("%d1", "%out", "%i") "st.global.u32 [%d1+2], %v;", 0);
    same_as_one_by_one("mul.wide.u32 %d0, %i, 6; add.u64 %d0, %d0, %in; ld.global.u32 %v, [%d0];\n" STORE_V, 0);
}

/* Loops are the warps', which have turns and limits. */
static void test_endless_loops(void **state)
{
    struct kit k;
    (void)state;
    kit_load(&k, ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k() { L: bra L; }\n");
    k.launch.instruction_limit = 1000000;
    assert_int_equal(kit_run(&k, "k", 2, 128), STATUS_LIMIT);
    kit_free(&k);
}

/* What threads meet at, alone: one thread a block, which is always all of those that must come. */
static const char *const meetings[] = {
    "",
    "bar.sync 0;",
    "barrier.sync 1, 32;",
    "bar.arrive 2, 32;",
    "bar.red.popc.u32 %r1, 0, %p1;",
    "bar.red.and.pred %p2, 0, %p1;",
    "bar.warp.sync 1;",
    "shfl.sync.idx.b32 %r1, %r2, 0, 31, 1;",
    "shfl.sync.down.b32 %r1|%p2, %r2, 1, 31, 1;",
    "vote.sync.any.pred %p2, %p1, 1;",
    "vote.sync.ballot.b32 %r1, %p1, 1;",
    "match.any.sync.b32 %r1, %r2, 1;",
    "match.all.sync.b32 %r1|%p2, %r2, 1;",
    "redux.sync.add.s32 %r1, %r2, 1;",
    "elect.sync %r1|%p2, 1;",
    "activemask.b32 %r1;",
    "barrier.cluster.arrive; barrier.cluster.wait;",
    "membar.gl;",
    "nanosleep.u32 1;",
    "call f;",
    "ld.volatile.global.u32 %r2, [%o+4];",
    "atom.global.add.u32 %r2, [%o+4], 1;",
};

enum engine {
    BY_DEFAULT,
    ONE_BY_ONE,
    CHECKED,
    CHECKED_ALONE,
    CHECKED_ORDER,
    SHADOW,
    SHADOW_ALONE,
    ROUNDING,
    VARIANT,
    PROFILE,
    ENGINES
};

/* Runs the only kernel of `text`, whose parameter is `out`, with two words of zeros there. */
static enum status run_by(enum engine engine, const char *text, uint32_t blocks, uint32_t threads, bool ends)
{
    struct kit k;
    memset(out, 0, 8);
    kit_load(&k, text);
    kit_buffer(&k, 0, out, sizeof out);
    k.launch.kernel = ptx_module_kernel(k.module, 0);
    memcpy(k.launch.grid, (const uint32_t[]){blocks, 1, 1}, sizeof k.launch.grid);
    memcpy(k.launch.block, (const uint32_t[]){threads, 1, 1}, sizeof k.launch.block);
    k.launch.one_by_one = engine == ONE_BY_ONE || engine == CHECKED_ALONE || engine == SHADOW_ALONE;
    k.launch.checked = engine == CHECKED || engine == CHECKED_ALONE || engine == CHECKED_ORDER;
    k.launch.shadow = engine == SHADOW || engine == SHADOW_ALONE;
    k.launch.seed = engine == CHECKED_ORDER ? 3 : 0;
    k.launch.rounding_seed = engine == ROUNDING ? 3 : 0;
    k.launch.variant = engine == VARIANT ? 3 : 0;
    k.launch.profile = engine == PROFILE;
    k.launch.cooperative = ends; /* turns are shorter */
    k.launch.instruction_limit = ends ? 500000000 : 100000;
    enum status status = ptx_run(&k.launch, &k.result, &k.diag);
    kit_free(&k);
    return status;
}

/* Block 0: a loop of `meeting` that ends when the word at `o` is not 0. Block 1, the next: writes it, when `ends`. */
static enum status loop_of(const char *meeting, enum engine engine, bool ends)
{
    static char text[4096];
    snprintf(text, sizeof text,
             ".version 9.0\n.target sm_90\n.address_size 64\n.func f() { ret; }\n"
             ".visible .entry k(.param .u64 to) {\n"
             ".reg .b32 %%r<9>; .reg .b64 %%o; .reg .pred %%p<4>;\n"
             "ld.param.u64 %%o, [to]; mov.u32 %%r2, %%ctaid.x; setp.eq.u32 %%p1, %%r2, 1; @%%p1 bra W;\n"
             "L: %s\nld.relaxed.gpu.global.u32 %%r3, [%%o]; setp.eq.u32 %%p3, %%r3, 0; @%%p3 bra L;\n"
             "bra E;\nW: %s E: ret; }\n",
             meeting, ends ? "st.relaxed.gpu.global.u32 [%o], 1;" : "");
    return run_by(engine, text, 2, 1, ends);
}

/* No loop keeps a thread from being stopped by a limit, whatever it does in each round. */
static void test_limits_in_loops_of_meetings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof meetings / sizeof *meetings; i++)
        for (enum engine e = 0; e < ENGINES; e++)
            if (loop_of(meetings[i], e, false) != STATUS_LIMIT)
                fail_msg("no limit in a loop of %s, engine %d", meetings[i], (int)e);
}

/* Nor from giving others a turn. */
static void test_progress_beside_loops_of_meetings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof meetings / sizeof *meetings; i++)
        for (enum engine e = 0; e < ENGINES; e++)
            if (loop_of(meetings[i], e, true) != STATUS_OK)
                fail_msg("no end of a loop of %s, engine %d", meetings[i], (int)e);
}

/* What a warp of threads, or a block of them, agrees on by meeting: %p3 while every one of them has read 0. */
static const char *const agreements[] = {
    "vote.sync.any.pred %p3, %p1, -1; not.pred %p3, %p3;",
    "vote.sync.ballot.b32 %r4, %p1, -1; setp.eq.u32 %p3, %r4, 0;",
    "shfl.sync.idx.b32 %r4, %r3, 7, 31, -1; setp.eq.u32 %p3, %r4, 0;",
    "redux.sync.max.u32 %r4, %r3, -1; setp.eq.u32 %p3, %r4, 0;",
    "bar.warp.sync -1; match.any.sync.b32 %r4, %r3, -1; vote.sync.any.pred %p3, %p1, -1; not.pred %p3, %p3;",
    "bar.red.or.pred %p3, 0, %p1; not.pred %p3, %p3;", /* the last: of a block */
};
enum { AGREEMENTS = sizeof agreements / sizeof *agreements };

/* Those whose number is `waiting`, of two blocks or of two warps of a block, ask together until the others have
 * written. */
static enum status agree_by(const char *agreement, enum engine engine, bool blocks, unsigned waiting)
{
    static char text[4096];
    snprintf(text, sizeof text,
             ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 to) {\n"
             ".reg .b32 %%r<9>; .reg .b64 %%o; .reg .pred %%p<4>;\n"
             "ld.param.u64 %%o, [to]; mov.u32 %%r2, %%%s.x; %s setp.ne.u32 %%p1, %%r2, %u; @%%p1 bra W;\n"
             "L: ld.relaxed.gpu.global.u32 %%r3, [%%o]; setp.ne.u32 %%p1, %%r3, 0; %s @%%p3 bra L;\n"
             "bra E;\nW: st.relaxed.gpu.global.u32 [%%o], 1; E: ret; }\n",
             blocks ? "ctaid" : "tid", blocks ? "" : "shr.u32 %r2, %r2, 5;", waiting, agreement);
    return run_by(engine, text, blocks ? 2 : 1, 64, true);
}

/* Nor whole warps and blocks that ask together. */
static void test_progress_beside_loops_of_agreements(void **state)
{
    (void)state;
    for (int i = 0; i < AGREEMENTS; i++) {
        const bool whole_block = i == AGREEMENTS - 1; /* which nobody in it could end */
        for (enum engine e = 0; e < ENGINES; e++)
            for (int blocks = whole_block; blocks < 2; blocks++)
                for (unsigned waiting = 0; waiting < 2; waiting++)
                    if (agree_by(agreements[i], e, blocks, waiting) != STATUS_OK)
                        fail_msg("no end of a loop of %s, engine %d, %s %u waits", agreements[i], (int)e,
                                 blocks ? "block" : "warp", waiting);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers_start_as_zero),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_where_warps_differ),
        cmocka_unit_test(test_accesses),
        cmocka_unit_test(test_endless_loops),
        cmocka_unit_test(test_limits_in_loops_of_meetings),
        cmocka_unit_test(test_progress_beside_loops_of_meetings),
        cmocka_unit_test(test_progress_beside_loops_of_agreements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
