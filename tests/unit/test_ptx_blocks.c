/* test_ptx_blocks.c - warps of a block that share registers' memory or instructions, in lock-step: each must see what
 * it would see alone. */
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { MOST_THREADS = 2048 };
static uint32_t out[MOST_THREADS];

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers_start_as_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
