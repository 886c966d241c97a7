/* test_ptx_fold.c - copies that are forwarded, and those that must not be: same results, and every PTX instruction is
 * counted. */
#include <stdio.h>
#include <string.h>
#include "ptx/code.h"
#include "tests/unit/ptx_kit.h"

enum { THREADS = 32 };
static uint32_t out[THREADS];

/* Runs `body`, which leaves its result in %r1, in both engines. How many PTX instructions all threads executed, without
 * the four that store and end. */
static uint64_t run(const char *body, uint32_t *micro_operations)
{
    static char text[4096];
    uint64_t executed[2];
    uint32_t first[THREADS];
    for (int i = 0; i < 2; i++) {
        struct kit k;
        snprintf(text, sizeof text,
                 ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 to) {\n"
                 ".reg .b32 %%r<9>, %%t; .reg .b64 %%x<4>, %%o; .reg .f32 %%f<4>; .reg .pred %%p;\n"
                 "mov.u32 %%t, %%tid.x;\n%s\nld.param.u64 %%o, [to]; mad.wide.u32 %%o, %%t, 4, %%o;\n"
                 "st.global.u32 [%%o], %%r1; ret; }\n",
                 body);
        memset(out, 0xaa, sizeof out);
        kit_load(&k, text);
        kit_buffer(&k, 0, out, sizeof out);
        k.launch.one_by_one = i;
        assert_int_equal(kit_run(&k, "k", 1, THREADS), STATUS_OK);
        executed[i] = k.result.counts.thread_instructions;
        if (micro_operations)
            *micro_operations = k.module->code[0]->count;
        if (i)
            assert_memory_equal(out, first, sizeof out);
        memcpy(first, out, sizeof out);
        kit_free(&k);
    }
    assert_int_equal(executed[0], executed[1]);
    return executed[0] - (uint64_t)THREADS * 5;
}

static void all_are(uint32_t value)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(out[i], value);
}

/* Bits of floats around a shuffle, as nvcc writes them: six instructions, of which three stay. */
static void test_copies_around_shuffles(void **state)
{
    uint32_t with, without;
    (void)state;
    assert_int_equal(run("cvt.rn.f32.u32 %f0, %t; mov.b32 %r2, %f0; mov.u32 %r3, 1; mov.u32 %r4, 31;\n"
                         "shfl.sync.bfly.b32 %r5|%p, %r2, %r3, %r4, -1; mov.b32 %f1, %r5; cvt.rzi.u32.f32 %r1, %f1;",
                         &with),
                     7 * THREADS);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(out[i], i ^ 1);
    assert_int_equal(
        run("cvt.rn.f32.u32 %f0, %t; shfl.sync.bfly.b32 %f1|%p, %f0, 1, 31, -1; cvt.rzi.u32.f32 %r1, %f1;", &without),
        3 * THREADS);
    assert_int_equal(with, without);
}

/* A parameter's copy in another stretch of code than its use's and its own source's. */
static void test_copies_of_copies(void **state)
{
    uint32_t with, without;
    (void)state;
    (void)run("mov.u32 %r2, %ntid.x; setp.gt.u32 %p, %t, 7; @%p bra A; mov.u32 %r3, %r2; add.u32 %r1, %r3, 1; bra B;\n"
              "A: mov.u32 %r4, %r2; mov.u32 %r5, %r4; add.u32 %r1, %r5, 2; B:",
              &with);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(out[i], i > 7 ? 34 : 33);
    (void)run("setp.gt.u32 %p, %t, 7; @%p bra A; add.u32 %r1, 32, 1; bra B; A: add.u32 %r1, 32, 2; B:", &without);
    assert_int_equal(with, without);
}

/* Where jumps lead behind a copy, those that come from there have not executed it. */
static void test_counts_before_labels(void **state)
{
    (void)state;
    assert_int_equal(run("mov.u32 %r1, 0; mov.u32 %r2, %ntid.x;\n"
                         "L: add.u32 %r1, %r1, %r2; setp.lt.u32 %p, %r1, 128; @%p bra L;",
                         NULL),
                     (2 + 4 * 3) * THREADS);
    all_are(128);
}

/* Threads that came another way find zero. */
static void test_copies_on_some_ways(void **state)
{
    (void)state;
    (void)run("setp.gt.u32 %p, %t, 7; @%p mov.u32 %r2, 5; add.u32 %r1, %r2, 1;", NULL);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(out[i], i > 7 ? 6 : 1);
    (void)run("setp.gt.u32 %p, %t, 7; @%p bra A; mov.u32 %r2, 5; A: add.u32 %r1, %r2, 1;", NULL);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(out[i], i > 7 ? 1 : 6);
    (void)run("mov.u32 %r1, 0; mov.u32 %r3, 0;\n" /* zero in the loop's first round, then 5 */
              "L: add.u32 %r1, %r1, %r2; mov.u32 %r2, 5; add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 4; @%p bra L;",
              NULL);
    all_are(15);
    (void)run("mov.u32 %r3, 0;\n" /* likewise, of a register that is written anew each round */
              "L: mov.u32 %r1, %r4; add.u32 %r5, %r3, 40; mov.u32 %r4, %r5; add.u32 %r3, %r3, 1;\n"
              "setp.lt.u32 %p, %r3, 3; @%p bra L;",
              NULL);
    all_are(41);
}

/* The original gets another value while the copy keeps its own. */
static void test_originals_that_change(void **state)
{
    (void)state;
    (void)run("add.u32 %r2, %t, 1; mov.u32 %r1, %r2; add.u32 %r2, %r2, 7; add.u32 %r3, %r2, %r1;", NULL);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(out[i], i + 1);
    (void)run(
        "bra B; A: mov.u32 %r2, 99; bra U; B: add.u32 %r2, %t, 1; mov.u32 %r4, %r2; bra A; U: add.u32 %r1, %r4, 0;",
        NULL);
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(out[i], i + 1);
    /* Written in one place, which comes after the copy in time. */
    (void)run("bra C; D: add.u32 %r2, %t, 40; bra U; C: mov.u32 %r4, %r2; bra D; U: add.u32 %r1, %r4, 1;", NULL);
    all_are(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_around_shuffles), cmocka_unit_test(test_copies_of_copies),
        cmocka_unit_test(test_counts_before_labels),   cmocka_unit_test(test_copies_on_some_ways),
        cmocka_unit_test(test_originals_that_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
