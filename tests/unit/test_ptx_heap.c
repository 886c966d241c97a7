/* malloc and free of kernels: blocks that live on, many threads at once, wrong frees, damage. */
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { HEAP = 64 * 1024, THREADS = 1024 };

static const char TEXT[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
#define HEAD                                                                                                           \
    "(.param .u64 out, .param .u64 bytes) {\n.reg .pred %p<3>;\n.reg .b32 %r<8>;\n.reg .b64 %a<9>;\n"                  \
    ".param .b64 n; .param .b64 r;\nmov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n"               \
    "mad.lo.s32 %r1, %r2, %r3, %r1; ld.param.u64 %a1, [out]; mad.wide.u32 %a2, %r1, 8, %a1; ld.param.u64 %a3, "        \
    "[bytes];\n"
    /* out[i] = malloc(bytes), with i in its first word */
    ".entry take" HEAD "st.param.b64 [n], %a3; call (r), malloc, (n); ld.param.b64 %a4, [r];\n"
    "st.global.u64 [%a2], %a4; setp.eq.s64 %p1, %a4, 0; @%p1 bra END; st.u32 [%a4], %r1;\nEND: ret; }\n"
    /* out[i] = *out[i], freed */
    ".entry give" HEAD "ld.global.u64 %a4, [%a2]; setp.eq.s64 %p1, %a4, 0; @%p1 bra END; ld.u32 %r4, [%a4];\n"
    "cvt.u64.u32 %a5, %r4; st.global.u64 [%a2], %a5; st.param.b64 [n], %a4; call free, (n);\nEND: ret; }\n"
    /* takes, fills, looks, frees, many times; out[i] = how often it got a block that was its own all the time */
    ".entry churn" HEAD "mov.u32 %r4, 0; mov.u64 %a6, 0;\nLOOP: and.b32 %r5, %r1, 15; mul.wide.u32 %a7, %r5, 8;\n"
    "add.s64 %a7, %a7, 8; st.param.b64 [n], %a7; call (r), malloc, (n); ld.param.b64 %a4, [r];\n"
    "setp.eq.s64 %p1, %a4, 0; @%p1 bra NEXT; st.u32 [%a4], %r1; st.u32 [%a4+4], %r4; nanosleep.u32 1;\n"
    "ld.u32 %r6, [%a4]; ld.u32 %r7, [%a4+4]; setp.ne.u32 %p1, %r6, %r1; @%p1 bra END;\n"
    "setp.ne.u32 %p1, %r7, %r4; @%p1 bra END; add.s64 %a6, %a6, 1; st.param.b64 [n], %a4; call free, (n);\n"
    "NEXT: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 20; @%p1 bra LOOP;\n"
    "st.global.u64 [%a2], %a6;\nEND: ret; }\n"
    /* free(bytes) */
    ".entry wrong" HEAD "st.param.b64 [n], %a3; call free, (n); st.global.u64 [%a2], 5; ret; }\n"
    ".entry none() { ret; }\n";

static _Alignas(16) unsigned char heap[HEAP];
static uint64_t out[THREADS], address;

static void start(struct kit *k)
{
    kit_load(k, TEXT);
    memset(heap, 0, sizeof heap);
    memset(out, 0, sizeof out);
    kit_buffer(k, 0, out, sizeof out);
    address = kit_buffer(k, -1, heap, sizeof heap);
    k->launch.heap_address = address;
    k->launch.heap_bytes = sizeof heap;
    k->launch.heap_host = heap;
}

static void run(struct kit *k, const char *kernel, uint32_t grid, uint32_t block, uint64_t bytes)
{
    k->params[1] = bytes;
    if (kit_run(k, kernel, grid, block) != STATUS_OK)
        fail_msg("%s: %d %s", kernel, k->result.status, k->diag.text);
}

static void test_blocks_live_on(void **state)
{
    struct kit k;
    start(&k);
    assert_true(ptx_module_find_kernel(k.module, "take")->uses_heap);
    assert_false(ptx_module_find_kernel(k.module, "none")->uses_heap);
    for (int round = 0; round < 3; round++) { /* what was freed is there again */
        run(&k, "take", 1, 256, 200);
        for (int i = 0; i < 256; i++) {
            assert_true(out[i] % 16 == 0 && out[i] >= address && out[i] + 200 <= address + HEAP);
            for (int j = 0; j < i; j++)
                assert_true(out[j] + 200 <= out[i] || out[i] + 200 <= out[j]);
        }
        run(&k, "give", 1, 256, 0);
        for (uint64_t i = 0; i < 256; i++)
            assert_int_equal(out[i], i);
    }
    run(&k, "take", 1, 1, HEAP - 64); /* all in one piece again */
    assert_true(out[0] != 0);
    kit_free(&k);
}

static void test_no_room(void **state)
{
    struct kit k;
    start(&k);
    run(&k, "take", 1, 128, 1024);
    int got = 0;
    for (int i = 0; i < 128; i++)
        got += out[i] != 0;
    assert_true(got > 50 && got < 64);
    run(&k, "take", 1, 1, 0);
    assert_int_equal(out[0], 0);
    run(&k, "take", 1, 1, UINT64_MAX - 8);
    assert_int_equal(out[0], 0);
    k.launch.heap_host = NULL;
    k.launch.heap_address = k.launch.heap_bytes = 0;
    run(&k, "take", 1, 1, 16);
    assert_int_equal(out[0], 0);
    kit_free(&k);
}

static void test_many_threads(void **state)
{
    struct kit k;
    for (uint32_t mode = 0; mode < 3; mode++) {
        start(&k);
        k.launch.workers = mode == 0 ? 4 : 1;
        k.launch.checked = mode == 1;
        k.launch.shadow = mode == 2;
        run(&k, "churn", 8, 128, 0);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(out[i], 20);
        assert_int_equal(k.result.fault_count, 0);
        run(&k, "take", 1, 1, HEAP - 64);
        assert_true(out[0] != 0);
        kit_free(&k);
    }
}

static void test_wrong_free(void **state)
{
    struct kit k;
    start(&k);
    run(&k, "wrong", 1, 1, 0); /* free(NULL) */
    run(&k, "take", 1, 1, 64);
    uint64_t block = out[0];
    run(&k, "wrong", 1, 1, block);
    k.params[1] = block;
    assert_int_equal(kit_run(&k, "wrong", 1, 1), STATUS_FAULT);
    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_FREED);
    assert_int_equal(k.result.faults[0].address, block);
    const uint64_t bad[] = {8, address, address + 16, block + 8, block + 16, address + HEAP, UINT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        k.params[1] = bad[i];
        assert_int_equal(kit_run(&k, "wrong", 1, 1), STATUS_FAULT);
        assert_int_equal(k.result.faults[0].kind, PTX_FAULT_OUT_OF_BOUNDS);
    }
    k.launch.checked = true; /* noted, and on it goes */
    out[0] = 0;
    assert_int_equal(kit_run(&k, "wrong", 1, 1), STATUS_OK);
    assert_int_equal(k.result.fault_count, 1);
    assert_int_equal(out[0], 5);
    kit_free(&k);
}

/* Whatever kernels write into the heap, the host goes on. */
static void test_damage(void **state)
{
    struct kit k;
    uint64_t random = 1;
    start(&k);
    for (int round = 0; round < 300; round++) {
        run(&k, "take", 1, 32, 100);
        for (int i = 0; i < 8; i++) {
            uint64_t at = kit_random(&random) % (round % 2 ? 512 : HEAP - 8);
            uint64_t value = round % 3 ? kit_random(&random) : kit_random(&random) % HEAP & ~UINT64_C(15);
            if (at + 8 <= 8 || at > 11) /* a lock that stays taken waits for ever, as on a device */
                memcpy(heap + at, &value, sizeof value);
        }
        k.params[1] = out[round % 32];
        (void)kit_run(&k, "wrong", 1, 1);
    }
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_live_on), cmocka_unit_test(test_no_room), cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_wrong_free),     cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
