/* Control flow, calls, warps, barriers, atomics, scheduling: kernels of tests/ptx/control.cu and handmade.ptx. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { WORDS = 4096 };
static int32_t out[WORDS], aux[WORDS];

static struct kit *start(const char *file)
{
    static struct kit k;
    kit_load_file(&k, file);
    memset(out, 0, sizeof out);
    memset(aux, 0, sizeof aux);
    kit_buffer(&k, 0, out, sizeof out);
    kit_buffer(&k, 1, aux, sizeof aux);
    kit_variables(&k);
    return &k;
}

static void ok(struct kit *k, const char *kernel, uint32_t grid, uint32_t block)
{
    enum status s = kit_run(k, kernel, grid, block);
    if (s != STATUS_OK)
        fail_msg("%s: status %d, %s", kernel, s,
                 k->result.fault_count ? ptx_fault_kind_name(k->result.faults[0].kind) : k->diag.text);
    assert_int_equal(k->result.fault_count, 0);
}

static void test_divergence(void **state)
{
    struct kit *k = start("control.ptx");
    ok(k, "divergence", 1, 256);
    for (int i = 0; i < 256; i++) {
        int x = i, n = 0;
        while (x != 1 && n < 100 && x != 0) {
            x = x & 1 ? 3 * x + 1 : x / 2;
            n++;
        }
        assert_int_equal(out[i], n);
    }
    ok(k, "early_exit", 1, 100);
    for (int i = 0; i < 100; i++)
        if (i % 3)
            assert_int_equal(out[i], 7);
    kit_free(k);
}

static int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void test_calls(void **state)
{
    struct kit *k = start("control.ptx");
    ok(k, "recursion", 1, 16);
    for (int i = 0; i < 16; i++)
        assert_int_equal(out[i], fibonacci(i));
    ok(k, "by_value", 1, 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(out[i], i + 5 + 3 + 5);
    for (k->params[1] = 0; k->params[1] < 2; k->params[1]++) {
        ok(k, "indirect", 1, 8);
        for (int i = 0; i < 8; i++)
            assert_int_equal(out[i], k->params[1] ? i * i : 2 * i);
    }
    k->params[1] = 0x1234;
    assert_int_equal(kit_run(k, "bad_indirect", 1, 1), STATUS_FAULT);
    assert_int_equal(k->result.faults[0].kind, PTX_FAULT_BAD_CALL);
    assert_int_equal(kit_run(k, "deep", 1, 1), STATUS_FAULT);
    assert_int_equal(k->result.faults[0].kind, PTX_FAULT_STACK);
    kit_free(k);
}

static void test_memory_spaces(void **state)
{
    struct kit *k = start("control.ptx");
    k->params[1] = 9;
    ok(k, "local_array", 1, 16);
    for (int t = 0; t < 16; t++) {
        int s = 0;
        for (int i = 0; i < 9; i++)
            s += ((i * 5 + t) & 15) * ((i * 5 + t) & 15);
        assert_int_equal(out[t], s);
    }
    ok(k, "generic_spaces", 1, 64);
    for (int i = 0; i < 64; i++)
        assert_int_equal(out[i], 103 + 11 + (i & 1 ? 4 : 3));
    k->launch.dynamic_shared_bytes = 32 * 4;
    ok(k, "dynamic_shared", 2, 32);
    for (int i = 0; i < 32; i++)
        assert_int_equal(out[i], 31 - i + 1);
    k->launch.dynamic_shared_bytes = 31 * 4;
    assert_int_equal(kit_run(k, "dynamic_shared", 1, 32), STATUS_FAULT);
    k->launch.dynamic_shared_bytes = 0;
    struct {
        int a;
        double b;
        char c[3];
    } p = {5, 2.5, {10, 20, 30}};
    memcpy(k->params + 1, &p, sizeof p);
    int index = 2;
    memcpy((char *)(k->params + 1) + sizeof p, &index, sizeof index);
    ok(k, "big_struct", 1, 4);
    assert_int_equal(out[3], 5 + 2 + 30);
    kit_free(k);
}

static int lane_value(int from)
{
    return from * 10;
}

static void test_shuffles(void **state)
{
    struct kit *k = start("control.ptx");
    ok(k, "shuffles", 1, 64);
    for (int t = 0; t < 64; t++) {
        int lane = t & 31, *o = out + t * 8;
        assert_int_equal(o[0], lane_value(5));
        assert_int_equal(o[1], lane_value((lane & ~7) | ((lane + 1) & 7)));
        assert_int_equal(o[2], lane_value(lane < 3 ? lane : lane - 3));
        assert_int_equal(o[3], lane_value((lane & 15) < 2 ? lane : lane - 2));
        assert_int_equal(o[4], lane_value(lane > 27 ? lane : lane + 4));
        assert_int_equal(o[5], lane_value((lane & 7) > 4 ? lane : lane + 3));
        assert_int_equal(o[6], lane_value(lane ^ 9));
        /* width 16, xor 16: the upper half reads the lower one, the lower half keeps its own */
        assert_int_equal(o[7], lane_value(lane < 16 ? lane : lane ^ 16));
    }
    ok(k, "warp_sums", 3, 128);
    float sum;
    memcpy(&sum, &out[2], sizeof sum);
    assert_true(sum == 127 * 128 * 0.5f);
    kit_free(k);
}

static void test_votes(void **state)
{
    struct kit *k = start("control.ptx");
    ok(k, "votes", 1, 64);
    for (int t = 0; t < 64; t++) {
        int lane = t & 31, *o = out + t * 8;
        assert_int_equal(o[0], 1);
        assert_int_equal(o[1], 0);
        assert_int_equal(o[2], 0x49249249);
        assert_int_equal((uint32_t)o[3], lane < 16 ? 0xaaaa : 0xffff0000);
        assert_int_equal((uint32_t)o[4], 0xfu << (lane / 4 * 4));
        assert_int_equal((uint32_t)o[5], lane < 40 ? 0xffffffff : 0);
        assert_int_equal(o[6], 1);
        assert_int_equal(o[7], 0);
    }
    ok(k, "active", 1, 64);
    for (int t = 0; t < 64; t++)
        assert_int_equal((uint32_t)out[t], t & 1 ? 0xaaaaaaaa : 0);
    ok(k, "block_votes", 1, 64);
    for (int t = 0; t < 64; t++) {
        assert_int_equal(out[t * 3], 13);
        assert_int_equal(out[t * 3 + 1], 0);
        assert_int_equal(out[t * 3 + 2], 1);
    }
    kit_free(k);
}

static void run_atomics(uint32_t workers, uint64_t seed)
{
    struct kit *k = start("control.ptx");
    float f = 0;
    double d[2] = {0};
    uint64_t u[2] = {0};
    kit_buffer(k, 1, &f, sizeof f);
    kit_buffer(k, 2, d, sizeof d);
    kit_buffer(k, 3, u, sizeof u);
    k->launch.workers = workers;
    k->launch.seed = seed;
    enum { BLOCKS = 20, THREADS = 96, ALL = BLOCKS * THREADS };
    out[4] = 0xffff;
    ok(k, "atomics", BLOCKS, THREADS);
    assert_int_equal(out[0], ALL * (ALL - 1) / 2);
    assert_int_equal(out[1], -ALL);
    assert_int_equal(out[2], -(ALL - 1));
    assert_int_equal(out[3], ALL - 1);
    assert_int_equal(out[4], 0);
    assert_int_equal(out[5], 0xffff);
    int x = 0;
    for (int t = 0; t < ALL; t++)
        x ^= t;
    assert_int_equal(out[6], x);
    assert_int_equal(out[7], ALL % 10);
    assert_int_equal(out[8], (10 - ALL % 10) % 10);
    assert_int_equal(out[9], ALL);
    assert_int_equal(out[10], 2 * ALL);
    assert_true(f == ALL && d[0] == ALL * 0.5);
    assert_true(u[0] == (uint64_t)ALL << 33 && u[1] == (uint64_t)(ALL - 1) << 32);
    kit_free(k);
}

static void test_atomics(void **state)
{
    run_atomics(1, 0);
    run_atomics(1, 5);
    run_atomics(4, 0);
    run_atomics(3, 9);
}

struct adder {
    atomic_bool go, stop;
    uint32_t *word, added;
};

static void *add_on_host(void *argument)
{
    struct adder *a = argument;
    atomic_store(&a->go, true);
    while (!atomic_load(&a->stop)) {
        __atomic_fetch_add(a->word, 1, __ATOMIC_SEQ_CST);
        a->added++;
    }
    return NULL;
}

/* The host adds to the word that a launch of a single worker adds to: nothing gets lost. */
static void test_atomics_against_the_host(void **state)
{
    struct kit k;
    kit_load(&k, ".version 9.0\n.target sm_75\n.address_size 64\n"
                 ".entry k(.param .u64 out) {\n.reg .b64 %rd<2>; .reg .b32 %r<3>; .reg .pred %p<2>;\n"
                 "ld.param.u64 %rd1, [out];\nmov.u32 %r1, 0;\n"
                 "AGAIN: atom.global.sys.add.u32 %r2, [%rd1], 1;\nred.global.add.u32 [%rd1], 1;\n"
                 "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 1000;\n@%p1 bra AGAIN;\nret;\n}\n");
    uint32_t word = 0;
    kit_buffer(&k, 0, &word, sizeof word);
    struct adder adder = {.word = &word};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, add_on_host, &adder), 0);
    while (!atomic_load(&adder.go))
        ;
    ok(&k, "k", 4, 64);
    atomic_store(&adder.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(word, adder.added + 4 * 64 * 2000u);
    kit_free(&k);
}

static void test_forward_progress(void **state)
{
    struct kit *k = start("control.ptx");
    ok(k, "spin", 3, 64);
    assert_int_equal(out[0], 3 * 64);
    ok(k, "wait_for_later", 9, 32);
    assert_int_equal(out[8], 8);
    kit_free(k);
    for (uint64_t seed = 1; seed < 4; seed++) {
        k = start("control.ptx");
        k->launch.seed = seed;
        ok(k, "wait_for_later", 9, 32);
        ok(k, "spin", 3, 64);
        kit_free(k);
    }
}

static void test_grid_sync(void **state)
{
    for (uint32_t workers = 1; workers < 4; workers++) {
        struct kit *k = start("control.ptx");
        k->params[1] = k->params[0];
        k->params[0] = k->ranges[1].address;
        k->launch.cooperative = true;
        k->launch.workers = workers;
        ok(k, "grid_sync", 6, 64);
        for (int i = 0; i < 384; i++)
            assert_int_equal(out[i], 3 * (383 - i) + 3);
        kit_free(k);
    }
    struct kit *k = start("control.ptx");
    k->launch.checked = true;
    k->launch.cooperative = true;
    k->params[1] = k->params[0];
    k->params[0] = k->ranges[1].address;
    ok(k, "grid_sync", 4, 64);
    /* Without a cooperative launch the group traps. */
    k->launch.cooperative = false;
    k->launch.checked = false;
    assert_int_equal(kit_run(k, "grid_sync", 4, 64), STATUS_FAULT);
    assert_int_equal(k->result.faults[0].kind, PTX_FAULT_TRAP);
    kit_free(k);
}

static void test_identity(void **state)
{
    for (int seed = 0; seed < 2; seed++) {
        struct kit *k = start("control.ptx");
        k->launch.grid[1] = 2;
        k->launch.grid[2] = 3;
        k->launch.block[1] = 5;
        k->launch.block[2] = 2;
        k->launch.seed = (uint64_t)seed;
        ok(k, "identity", 2, 4);
        for (int b = 0; b < 12; b++)
            for (int t = 0; t < 40; t++) {
                const uint32_t *o = (const uint32_t *)out + 4 * (b * 40 + t);
                assert_int_equal(o[0], b % 2 | b / 2 % 2 << 8 | b / 4 << 16 | t % 4 << 24);
                assert_int_equal(o[1], t % 32);
                assert_int_equal(o[2], t / 32);
                assert_int_equal(o[3], (1u << t % 32) - 1);
            }
        assert_int_equal(k->result.counts.blocks, 12);
        assert_int_equal(k->result.counts.threads, 480);
        kit_free(k);
    }
}

/* Some blocks of a grid: they see the whole grid, the others leave no trace. */
static void test_chosen_blocks(void **state)
{
    const uint64_t chosen[] = {11, 3, 7};
    for (int way = 0; way < 4; way++) { /* lock-step, one by one, checked, seeded */
        struct kit *k = start("control.ptx");
        k->launch.grid[1] = 2;
        k->launch.grid[2] = 3;
        k->launch.block[1] = 5;
        k->launch.block[2] = 2;
        k->launch.one_by_one = way == 1;
        k->launch.checked = way == 2;
        k->launch.seed = way == 3;
        k->launch.chosen_blocks = chosen;
        k->launch.chosen_count = 3;
        memset(out, 0xff, sizeof out);
        assert_int_equal(kit_run(k, "identity", 2, 4), STATUS_OK);
        for (uint32_t b = 0; b < 12; b++)
            for (uint32_t t = 0; t < 40; t++)
                assert_int_equal(((const uint32_t *)out)[4 * (b * 40 + t)],
                                 b == 3 || b == 7 || b == 11 ? (b % 2 | b / 2 % 2 << 8 | b / 4 << 16 | t % 4 << 24)
                                                             : UINT32_MAX);
        assert_int_equal(k->result.counts.blocks, 3);
        k->launch.chosen_count = 0;
        assert_int_equal(kit_run(k, "identity", 2, 4), STATUS_OK);
        assert_int_equal(k->result.counts.blocks, 0);
        kit_free(k);
    }
    struct kit *k = start("control.ptx");
    const uint64_t outside = 12;
    k->launch.grid[1] = 2;
    k->launch.grid[2] = 3;
    k->launch.chosen_blocks = &outside;
    k->launch.chosen_count = 1;
    assert_int_equal(kit_run(k, "identity", 2, 4), STATUS_BAD_INPUT);
    assert_string_equal(k->diag.text, "block 12 is chosen: the grid has 12");
    k->launch.chosen_count = 0;
    k->launch.cooperative = true;
    assert_int_equal(kit_run(k, "identity", 2, 4), STATUS_BAD_INPUT);
    kit_free(k);
}

static uint64_t progress_calls, progress_done;
static void progress(void *context, uint64_t done, uint64_t blocks)
{
    assert_ptr_equal(context, &progress_calls);
    assert_int_equal(blocks, 1000);
    assert_true(done > progress_done && done <= blocks);
    progress_done = done;
    progress_calls++;
}

static void test_progress(void **state)
{
    struct kit *k = start("control.ptx");
    static uint32_t many[4 * 1000];
    k->ranges[0].host = many;
    k->ranges[0].bytes = sizeof many;
    k->launch.progress = progress;
    k->launch.progress_context = &progress_calls;
    ok(k, "identity", 1000, 1);
    assert_int_equal(progress_done, 1000);
    assert_true(progress_calls >= 50 && progress_calls <= 200);
    /* Of a launch that is stopped, no end is told. */
    atomic_bool cancelled = true;
    progress_done = progress_calls = 0;
    k->launch.cancel = &cancelled;
    assert_int_equal(kit_run(k, "identity", 1000, 1), STATUS_CANCELLED);
    assert_true(progress_done < 1000);
    kit_free(k);
}

static void test_print_and_assert(void **state)
{
    struct kit *k = start("control.ptx");
    k->params[0] = (uint64_t)(uint32_t)-5;
    ok(k, "prints", 1, 1);
    assert_string_equal(k->printed, "-5  1.50|ab  |x 10000000000 7% 0x0\nplain\n");
    k->params[0] = k->ranges[0].address;
    assert_int_equal(kit_run(k, "asserts", 2, 8), STATUS_FAULT);
    assert_int_equal(k->result.faults[0].kind, PTX_FAULT_ASSERT);
    assert_non_null(strstr(k->printed, "control.cu:"));
    assert_non_null(strstr(k->printed, "block: [0,0,0], thread: [3,0,0] Assertion `threadIdx.x != 3` failed."));
    kit_free(k);
}

static void test_limits(void **state)
{
    struct kit *k = start("control.ptx");
    k->launch.instruction_limit = 100000;
    assert_int_equal(kit_run(k, "endless_loop", 4, 64), STATUS_LIMIT);
    k->launch.instruction_limit = 0;
    k->launch.time_limit_ns = 1000000;
    for (int engine = 0; engine < 3; engine++) {
        k->launch.one_by_one = engine == 1;
        k->launch.checked = engine == 2;
        assert_int_equal(kit_run(k, "endless_loop", 4, 64), STATUS_LIMIT);
    }
    k->launch.checked = false;
    k->launch.time_limit_ns = 0;
    atomic_bool cancel = true;
    k->launch.cancel = &cancel;
    assert_int_equal(kit_run(k, "endless_loop", 4, 64), STATUS_CANCELLED);
    /* A kernel that ends long before its time is up. */
    k->launch.cancel = NULL;
    k->launch.time_limit_ns = UINT64_MAX;
    assert_int_equal(kit_run(k, "divergence", 1, 32), STATUS_OK);
    kit_free(k);
}

static void test_configuration(void **state)
{
    struct kit *k = start("control.ptx");
    assert_int_equal(kit_run(k, "divergence", 1, 1025), STATUS_BAD_INPUT);
    assert_int_equal(kit_run(k, "divergence", 0, 1), STATUS_BAD_INPUT);
    k->launch.params = NULL;
    assert_int_equal(kit_run(k, "divergence", 1, 1), STATUS_BAD_INPUT);
    assert_non_null(strstr(k->diag.text, "parameters"));
    k->launch.params = k->params;
    k->launch.dynamic_shared_bytes = 1 << 20;
    assert_int_equal(kit_run(k, "dynamic_shared", 1, 1), STATUS_BAD_INPUT);
    kit_free(k);
}

static void test_branch_index(void **state)
{
    struct kit *k = start("handmade.ptx");
    ok(k, "branch_index", 1, 8);
    static const int expected[] = {100, 200, 300, 200};
    for (int i = 0; i < 8; i++)
        assert_int_equal(out[i], expected[i & 3]);
    k->params[0] = 1;
    ok(k, "branch_index_bad", 1, 1);
    k->params[0] = 2;
    assert_int_equal(kit_run(k, "branch_index_bad", 1, 1), STATUS_FAULT);
    assert_int_equal(k->result.faults[0].kind, PTX_FAULT_BAD_CALL);
    kit_free(k);
}

static void test_vectors(void **state)
{
    struct kit *k = start("handmade.ptx");
    k->params[0] = k->ranges[1].address;
    k->params[1] = k->ranges[0].address;
    const uint8_t bytes[] = {1, 2, 0xfe, 0xff};
    for (int i = 0; i < 4; i++)
        aux[i] = 10 + i;
    memcpy(&aux[4], bytes, 4);
    aux[5] = 0x8001;
    ok(k, "vectors", 1, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(out[i], 13 - i);
    assert_int_equal(out[4], 0xff0001);
    assert_int_equal(out[6], -2);
    assert_int_equal(out[7], -1);
    assert_int_equal(out[8], 12);
    assert_int_equal(out[9], 13);
    assert_int_equal(out[10], 7);
    assert_int_equal(out[12], 12);
    int64_t wide;
    memcpy(&wide, &out[14], sizeof wide);
    assert_int_equal(wide, -32767);
    kit_free(k);
}

static void test_guards(void **state)
{
    struct kit *k = start("handmade.ptx");
    ok(k, "guards", 1, 16);
    for (int i = 0; i < 16; i++)
        assert_int_equal(out[i], i < 8 ? 2 : 77 + 11);
    kit_free(k);
}

static void test_newer_targets(void **state)
{
    struct kit *k = start("handmade.ptx");
    ok(k, "sm80", 1, 32);
    for (int i = 0; i < 32; i++) {
        assert_int_equal(out[4 * i], 496);
        assert_int_equal(out[4 * i + 1], 31);
        assert_int_equal(out[4 * i + 2], 0);
        assert_int_equal(out[4 * i + 3], i == 0);
    }
    for (int i = 0; i < 16; i++) {
        assert_int_equal(out[128 + 4 * i], 496);
        assert_int_equal(out[128 + 4 * i + 1], 31);
        assert_int_equal(out[128 + 4 * i + 2], 0);
        assert_int_equal(out[128 + 4 * i + 3], 0);
    }
    kit_free(k);
}

static void test_vector_atomics(void **state)
{
    static const uint32_t before[12] = {0x3f800000, 0x40000000, 0x40800000, 0x41000000,  /* 1, 2, 4, 8 */
                                        0x3c003c00, 0x3c00bc00,                          /* f16: 1 1, -1 1 */
                                        0x38004200, 0x42004200,                          /* f16: 3 0.5, 3 3 */
                                        0x3f804000, 0x40404040, 0xbf80bf80, 0x7fc03f00}; /* bf16, a NaN */
    static const uint32_t after[12] = {0x40c00000, 0x40c00000, 0x40e00000, 0x41300000,   /* 6, 6, 7, 11 */
                                       0x42004000, 0xbc003c00,                           /* 2 3, 1 -1 */
                                       0x38003c00, 0xc0004000,                           /* 1 0.5, 2 -2 */
                                       0x40004000, 0x40404040, 0x40004000, 0x3f803f80};
    for (int mode = 0; mode < 3; mode++) {
        struct kit *k = start("handmade.ptx");
        k->launch.checked = mode == 1;
        k->launch.shadow = mode == 2;
        memcpy(out, before, sizeof before);
        ok(k, "vector_atomics", 1, 1);
        for (int i = 0; i < 12; i++)
            assert_int_equal((uint32_t)out[i], after[i]);
        static const uint32_t seen[] = {0x3f800000, 0x40000000, 0x38004200, 0, 0x3f804000, 0x7fc03f00};
        for (int i = 0; i < 6; i++)
            assert_int_equal((uint32_t)out[16 + i], seen[i]);
        kit_free(k);
    }
}

static void test_negative_bases(void **state)
{
    for (int mode = 0; mode < 3; mode++) {
        struct kit *k = start("handmade.ptx");
        k->launch.checked = mode == 1;
        k->launch.shadow = mode == 2;
        out[0] = 77;
        ok(k, "negative_base", 1, 1);
        static const int expected[] = {11, 0, 12, 13, 14, 77, 15};
        for (int i = 0; i < 7; i++)
            assert_int_equal(out[i], expected[i]);
        if (mode < 2) {
            assert_int_equal(kit_run(k, "negative_base_bad", 1, 1), mode == 0 ? STATUS_FAULT : STATUS_OK);
            assert_int_equal(k->result.fault_count, 1);
            assert_int_equal(k->result.faults[0].kind, PTX_FAULT_OUT_OF_BOUNDS);
            assert_int_equal(k->result.faults[0].offset, -4);
        }
        kit_free(k);
    }
}

static void test_reserved_shared(void **state)
{
    struct kit *k = start("handmade.ptx");
    k->launch.fill = 0xa5;
    k->launch.dynamic_shared_bytes = 32;
    for (int checked = 0; checked < 2; checked++) {
        k->launch.checked = checked;
        ok(k, "reserved_shared", checked ? 1 : 2, 1); /* the blocks store to the same place */
        const int begin = out[0], end = out[1], groups = out[3], variable = out[4];
        assert_int_equal(out[2], end - begin);
        assert_true(groups >= begin && groups + 288 <= end && groups % 8 == 0);
        assert_true(variable >= end);
        assert_int_equal(out[5], 16 + 32);
        assert_int_equal(out[6], 16 + 32 + out[2]);
        assert_int_equal(out[7], 0); /* in a second block too */
        assert_int_equal(out[8], 1);
        assert_int_equal(out[9], 6);
        ok(k, "no_reserved_shared", 1, 1);
        assert_int_equal(out[0], 0);
        assert_int_equal(out[1], 16 + 32 + end - begin);
    }
    assert_int_equal(ptx_module_find_kernel(k->module, "reserved_shared")->static_shared_bytes, 16);
    kit_free(k);
}

static void test_clocks(void **state)
{
    struct kit *k = start("control.ptx");
    ok(k, "clocks", 1, 1);
    int64_t v[2];
    memcpy(v, out, sizeof v);
    assert_int_equal(v[0], 1);
    assert_true(v[1] >= 1);
    kit_free(k);
}

/* The same launch gives the same counts and results with any number of workers and any order. */
static void test_counts(void **state)
{
    uint64_t counts[4];
    for (int i = 0; i < 4; i++) {
        struct kit *k = start("control.ptx");
        k->launch.workers = i == 1 ? 3 : 1;
        k->launch.seed = i == 2 ? 7 : 0;
        k->launch.checked = i == 3;
        ok(k, "warp_sums", 8, 128);
        counts[i] = k->result.counts.thread_instructions;
        assert_int_equal(counts[i], counts[0]);
        assert_int_equal(k->result.counts.global_write_bytes, 32);
        kit_free(k);
    }
}

/* ---- seeded orders ---- */

/* Each thread adds 1 to a counter in shared memory, in two steps or in one; all see the sum after a barrier. */
static uint32_t counted(const char *step, uint64_t seed, bool checked)
{
    static char text[2048];
    static uint32_t sums[64];
    struct kit k;
    snprintf(
        text, sizeof text,
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out) { .shared .u32 s; .reg .b32 "
        "%%r<9>; .reg .b64 %%x<4>; .reg .pred %%p;\n"
        "mov.u32 %%r0, %%tid.x; ld.param.u64 %%x0, [out]; mul.wide.u32 %%x1, %%r0, 4; add.s64 %%x0, %%x0, %%x1; "
        "setp.eq.u32 %%p, %%r0, 0; mov.u32 %%r2, 0; @%%p st.shared.u32 [s], %%r2; bar.sync 0;\n%s\nbar.sync 0; "
        "ld.shared.u32 %%r1, [s]; st.global.u32 [%%x0], %%r1; ret; }\n",
        step);
    kit_load(&k, text);
    kit_buffer(&k, 0, sums, sizeof sums);
    k.launch.seed = seed;
    k.launch.checked = checked;
    assert_int_equal(kit_run(&k, "k", 1, 64), STATUS_OK);
    for (int i = 1; i < 64; i++)
        assert_int_equal(sums[i], sums[0]);
    kit_free(&k);
    return sums[0];
}

static void test_seeds_provoke_races(void **state)
{
    static const char torn[] = "ld.shared.u32 %r1, [s]; add.u32 %r1, %r1, 1; st.shared.u32 [s], %r1;";
    static const char whole[] = "atom.shared.add.u32 %r1, [s], 1;";
    static const char jumps[] =
        "ld.shared.u32 %r1, [s]; mov.u32 %r3, 0;\nL: add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 50; "
        "@%p bra L; add.u32 %r1, %r1, 1; st.shared.u32 [s], %r1;";
    uint32_t fewest = 64, fewest_jumps = 64;
    assert_int_equal(counted(torn, 0, true), 64);
    for (uint64_t seed = 1; seed <= 8; seed++) {
        uint32_t sum = counted(torn, seed, true), with_jumps = counted(jumps, seed, false);
        fewest = sum < fewest ? sum : fewest;
        fewest_jumps = with_jumps < fewest_jumps ? with_jumps : fewest_jumps;
        assert_int_equal(counted(torn, seed, true), sum);
        assert_int_equal(counted(jumps, seed, false), with_jumps);
        assert_int_equal(counted(whole, seed, true), 64);
    }
    assert_true(fewest < 64);
    assert_true(fewest_jumps < 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_memory_spaces),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_votes),
        cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_atomics_against_the_host),
        cmocka_unit_test(test_forward_progress),
        cmocka_unit_test(test_grid_sync),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_chosen_blocks),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_print_and_assert),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_branch_index),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_guards),
        cmocka_unit_test(test_newer_targets),
        cmocka_unit_test(test_negative_bases),
        cmocka_unit_test(test_vector_atomics),
        cmocka_unit_test(test_reserved_shared),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_seeds_provoke_races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
