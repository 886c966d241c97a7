/* The device runtime: kernels that start kernels, copies and fills. The texts are nvcc's (tests/ptx/runtime.cu). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { LOG = 8192 };
static int numbers[LOG], more[LOG];

static void start(struct kit *k)
{
    kit_load_file(k, "runtime.ptx");
    memset(numbers, 0, sizeof numbers);
    memset(more, 0, sizeof more);
    kit_variables(k);
    kit_buffer(k, 0, numbers, sizeof numbers);
}

static void run(struct kit *k, const char *kernel, uint32_t grid, uint32_t block)
{
    if (kit_run(k, kernel, grid, block) != STATUS_OK)
        fail_msg("%s: %d %s", kernel, k->result.status, k->diag.text);
    assert_int_equal(k->result.fault_count, 0);
}

/* Runs it in every mode, and lets `look` judge what the launch left. */
static void in_all_modes(const char *kernel, uint32_t grid, uint32_t block, uint64_t parameter,
                         void (*look)(struct kit *k))
{
    enum { PLAIN, STEPS, CHECKED, SHADOW, ROUNDING, WORKERS, VARIANT, MODES };
    for (int mode = 0; mode < MODES; mode++) {
        struct kit k;
        start(&k);
        k.launch.one_by_one = mode == STEPS;
        k.launch.checked = mode == CHECKED;
        k.launch.shadow = mode == SHADOW;
        k.launch.rounding_seed = mode == ROUNDING;
        k.launch.variant = mode == VARIANT ? 77 : 0;
        k.launch.workers = mode == WORKERS ? 4 : 0;
        k.params[1] = parameter;
        run(&k, kernel, grid, block);
        look(&k);
        kit_free(&k);
    }
}

static void look_tree(struct kit *k)
{
    assert_int_equal(numbers[0], 127);
    assert_int_equal(k->result.counts.device_launches, 126);
    assert_int_equal(k->result.counts.blocks, 127);
    assert_int_equal(k->result.counts.threads, 127 * 32);
}

static void test_tree(void **state)
{
    in_all_modes("tree", 1, 32, 7, look_tree);
}

/* 24 levels of grids, the launch of the 25th fails with cudaErrorLaunchMaxDepthExceeded. */
static void look_chain(struct kit *k)
{
    assert_int_equal(numbers[0], 24);
    assert_int_equal(numbers[1], 65);
    assert_int_equal(k->result.counts.device_launches, 23);
}

static void test_depth_has_a_limit(void **state)
{
    in_all_modes("chain", 1, 1, 0, look_chain);
}

static void test_streams_keep_their_order(void **state)
{
    struct kit k;
    start(&k);
    for (uint64_t seed = 0; seed < 20; seed++) {
        k.launch.seed = seed;
        memset(numbers, 0, sizeof numbers);
        run(&k, "order", 1, 1);
        assert_int_equal(numbers[0], 13);
        for (int i = 0; i < 13; i++)
            assert_int_equal(numbers[1 + i], i);
    }
    kit_free(&k);
}

static int place(int id)
{
    for (int i = 0; i < numbers[0]; i++)
        if (numbers[1 + i] == id)
            return i;
    fail_msg("%d did not run", id);
    return -1;
}

static void test_events_order_streams(void **state)
{
    struct kit k;
    int earliest = LOG, latest = 0;
    start(&k);
    for (uint64_t seed = 0; seed < 40; seed++) {
        k.launch.seed = seed;
        memset(numbers, 0, sizeof numbers);
        run(&k, "events", 1, 1);
        assert_int_equal(numbers[0], 7);
        for (int i = 0; i < 5; i++)
            assert_true(place(i) < place(i + 1));
        earliest = place(6) < earliest ? place(6) : earliest;
        latest = place(6) > latest ? place(6) : latest;
    }
    assert_int_equal(earliest, 1); /* 0 is the parent */
    assert_int_equal(latest, 6);
    kit_free(&k);
}

static void look_parameters(struct kit *k)
{
    static const long expected[] = {-5, 1000000, 1, -2, 3, 2, -(1L << 40), 3, 4, 7};
    for (int i = 0; i < 10; i++)
        assert_int_equal(((const long *)(const void *)numbers)[i], expected[i]);
    assert_int_equal(k->result.counts.blocks, 7);
}

static void test_parameters(void **state)
{
    in_all_modes("give", 1, 1, 0, look_parameters);
}

static void test_copies_and_fills(void **state)
{
    for (int mode = 0; mode < 3; mode++) {
        struct kit k;
        unsigned char expected[160] = {0}, from[32], *to = (unsigned char *)numbers;
        for (int i = 0; i < 32; i++)
            from[i] = (unsigned char)(100 + i);
        memset(expected, 1, 16);
        memcpy(expected + 3, from, 5);
        memcpy(expected + 16, expected, 16);
        for (int i = 0; i < 3; i++)
            memcpy(expected + 32 + 16 * i, from + 8 * i, 8);
        for (int i = 0; i < 2; i++)
            memset(expected + 42 + 16 * i, 7, 3);
        for (int z = 0; z < 2; z++)
            for (int y = 0; y < 2; y++)
                memcpy(expected + 80 + 32 * z + 16 * y, from + 8 * z + 4 * y, 4);
        memset(expected + 88, 9, 2);
        memset(expected + 88 + 32, 9, 2);
        start(&k);
        kit_buffer(&k, 1, from, sizeof from);
        k.launch.checked = mode == 1;
        k.launch.shadow = mode == 2;
        run(&k, "copies", 1, 1);
        assert_memory_equal(to, expected, sizeof expected);
        assert_int_equal(k.result.counts.device_launches, 0);
        kit_free(&k);
    }
}

static bool attribute(void *context, int which, int *value)
{
    *value = which == 10 ? 32 : which == 16 ? 99 : 8 * which;
    return which < 200;
}

static void test_facts(void **state)
{
    static _Alignas(16) unsigned char heap[4096];
    struct kit k;
    start(&k);
    memset(heap, 0, sizeof heap);
    assert_true(ptx_module_find_kernel(k.module, "facts")->uses_heap);
    assert_true(ptx_module_find_kernel(k.module, "facts")->uses_runtime);
    assert_false(ptx_module_find_kernel(k.module, "leaf")->uses_runtime);
    assert_false(ptx_module_find_kernel(k.module, "tree")->uses_heap);
    k.launch.heap_address = kit_buffer(&k, -1, heap, sizeof heap);
    k.launch.heap_bytes = sizeof heap;
    k.launch.heap_host = heap;
    k.launch.sm_count = 5;
    k.launch.device_launch_limit = 1234;
    run(&k, "facts", 1, 1);
    static const int expected[] = {32, 5, 1, 1234, 1024, 0, 0, 2, 0, 1, 13000, 3, 2, 2, 0};
    for (int i = 0; i < 15; i++)
        assert_int_equal(numbers[i], expected[i]);
    assert_string_equal(k.printed, "cudaErrorMemoryAllocation: out of memory");
    k.launch.device_attribute = attribute;
    run(&k, "facts", 1, 1);
    assert_int_equal(numbers[1], 99);
    assert_int_equal(numbers[2], 1); /* not below 200 */
    kit_free(&k);
}

static void test_wrong_calls_are_errors_of_the_thread(void **state)
{
    static const int expected[] = {9, 9, 9, 400, 1, 400, 21};
    struct kit k;
    start(&k);
    kit_buffer(&k, 1, more, sizeof more);
    run(&k, "wrong", 1, 1);
    assert_int_equal(numbers[0], 0);
    for (int i = 0; i < 7; i++)
        assert_int_equal(more[i], expected[i]);
    kit_free(&k);
}

/* ---- faults ---- */

static struct kit *small(struct kit *k, int *memory, size_t bytes)
{
    kit_load_file(k, "runtime.ptx");
    kit_variables(k);
    kit_buffer(k, 0, memory, bytes);
    return k;
}

static void test_fault_names_the_childs_kernel(void **state)
{
    int memory[8] = {0};
    for (int checked = 0; checked < 2; checked++) {
        struct kit k;
        small(&k, memory, sizeof memory);
        k.launch.checked = checked;
        k.params[1] = 0;
        run(&k, "outside", 1, 1); /* the sound twin */
        k.params[1] = 3;
        assert_int_equal(kit_run(&k, "outside", 1, 1), checked ? STATUS_OK : STATUS_FAULT);
        assert_int_equal(k.result.fault_count, 1);
        const struct ptx_fault *f = &k.result.faults[0];
        assert_int_equal(f->kind, PTX_FAULT_OUT_OF_BOUNDS);
        assert_non_null(f->kernel);
        assert_string_equal(f->kernel->name, "sets");
        assert_int_equal(f->access.thread[0], 5);
        assert_int_equal(f->count, checked ? 6 : 1); /* of two grids */
        if (checked) {
            assert_int_equal(f->offset, 32);
            assert_int_equal(f->range_id, k.ranges[k.memory.range_count - 1].id);
        }
        kit_free(&k);
    }
}

static void test_fault_of_a_fill_is_at_its_call(void **state)
{
    int memory[8] = {0};
    struct ptx_source at[4];
    for (int checked = 0; checked < 2; checked++) {
        struct kit k;
        small(&k, memory, sizeof memory);
        k.launch.checked = checked;
        k.params[1] = 32;
        run(&k, "fills", 1, 1);
        k.params[1] = 40;
        assert_int_equal(kit_run(&k, "fills", 1, 1), checked ? STATUS_OK : STATUS_FAULT);
        assert_int_equal(k.result.fault_count, 1);
        const struct ptx_fault *f = &k.result.faults[0];
        assert_null(f->kernel);
        assert_true(f->access.write);
        size_t frames = ptx_module_source(k.module, f->access.ptx_line, at, 4);
        assert_in_range(frames, 1, 4);
        assert_string_equal(at[frames - 1].function, "fills");
        assert_int_equal(f->access.thread[0], 0);
        kit_free(&k);
    }
}

static void test_child_finds_written_what_its_parent_wrote(void **state)
{
    static const uint8_t nothing[16];
    for (int writes = 0; writes < 2; writes++) {
        struct kit k;
        start(&k);
        kit_buffer(&k, 1, more, 16);
        k.ranges[k.memory.range_count - 2].bytes = 32;
        k.ranges[k.memory.range_count - 2].valid = nothing;
        k.launch.checked = true;
        assert_int_equal(kit_run(&k, writes ? "parent_writes" : "child_reads", 1, writes ? 8 : 1), STATUS_OK);
        assert_int_equal(k.result.fault_count, !writes);
        if (writes)
            assert_int_equal(more[0], 28 + 8);
        else
            assert_int_equal(k.result.faults[0].kind, PTX_FAULT_UNINITIALISED);
        kit_free(&k);
    }
}

/* ---- limits ---- */

static void look_steps(struct kit *k)
{
    assert_int_equal(numbers[0], 3000);
    assert_int_equal(k->result.counts.device_launches, 2999);
}

static void test_tails_make_chains_of_any_length(void **state)
{
    in_all_modes("steps", 1, 1, 3000, look_steps);
}

static void look_many(struct kit *k)
{
    assert_int_equal(numbers[0], 256);
    for (int i = 0; i < 256; i++)
        (void)place(i);
}

static void test_every_thread_launches(void **state)
{
    struct kit k;
    for (uint32_t workers = 1; workers <= 4; workers += 3) {
        start(&k);
        kit_buffer(&k, 1, more, sizeof more);
        k.launch.workers = workers;
        k.launch.seed = workers;
        run(&k, "many", 4, 64);
        look_many(&k);
        assert_int_equal(more[0], 0);
        kit_free(&k);
    }
    start(&k); /* more than there may be: cudaErrorLaunchOutOfResources */
    kit_buffer(&k, 1, more, sizeof more);
    k.launch.device_launch_limit = 200;
    run(&k, "many", 4, 64);
    assert_int_equal(numbers[0], 200);
    assert_int_equal(more[0], 56);
    kit_free(&k);
}

static void test_limit_and_cancel_reach_children(void **state)
{
    struct kit k;
    atomic_bool cancel = true;
    start(&k);
    k.launch.instruction_limit = 200000;
    assert_int_equal(kit_run(&k, "starts_forever", 1, 1), STATUS_LIMIT);
    assert_in_range(k.result.counts.thread_instructions, 100000, 1000000);
    k.launch.instruction_limit = 0;
    k.launch.cancel = &cancel;
    assert_int_equal(kit_run(&k, "starts_forever", 1, 1), STATUS_CANCELLED);
    kit_free(&k);
}

static void set_condition(void *context, uint64_t handle, uint32_t value)
{
    uint64_t *seen = context;
    seen[0] = handle;
    seen[1] = value;
}

static void test_condition(void **state)
{
    struct kit k;
    uint64_t seen[2] = {0};
    start(&k);
    k.params[0] = UINT64_C(0x123456789abc);
    run(&k, "condition", 1, 1); /* nobody asks: without effect */
    k.launch.set_condition = set_condition;
    k.launch.runtime_context = seen;
    run(&k, "condition", 1, 1);
    assert_int_equal(seen[0], UINT64_C(0x123456789abc));
    assert_int_equal(seen[1], 3);
    kit_free(&k);
}

/* ---- what cannot be run ---- */

#define HEAD ".version 7.0\n.target sm_80\n.address_size 64\n"
#define LAUNCHES                                                                                                       \
    ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12], "          \
    ".param .align 4 .b8 b[12], .param .b32 s);\n"

static void test_refusal_of_a_child_is_its_parents(void **state)
{
    static const char text[] =
        HEAD LAUNCHES ".entry bad() { .reg .b32 %r<2>; nosuchthing.b32 %r0, %r1; ret; }\n.entry good() { ret; }\n"
#define PARENT(name, child)                                                                                            \
    ".entry " name "() { .reg .b64 %a; .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; "          \
    ".param .b32 s; .param .b64 r; mov.u64 %a, " child                                                                 \
    "; st.param.b64 [f], %a; call (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s); ret; }\n"
        PARENT("parent_of_bad", "bad") PARENT("parent_of_good", "good");
    struct kit k;
    kit_load(&k, text);
    const struct diag *why = ptx_kernel_refusal(k.module, ptx_module_find_kernel(k.module, "parent_of_bad"));
    assert_non_null(why);
    assert_non_null(strstr(why->text, "nosuchthing"));
    assert_null(ptx_kernel_refusal(k.module, ptx_module_find_kernel(k.module, "parent_of_good")));
    kit_free(&k);
}

static void test_wrong_declarations_are_refused(void **state)
{
    static const char *const texts[] = {
        ".extern .func (.param .b32 r) __cudaCDP2GetLastError(.param .b32 x);\n", /* a parameter too many */
        ".extern .func __cudaCDP2GetLastError();\n",                              /* no result */
        ".extern .func (.param .b64 r) __cudaCDP2GetLastError();\n",              /* of another size */
    };
    static const char *const calls[] = {".param .b32 r; .param .b32 x; call (r), __cudaCDP2GetLastError, (x);",
                                        "call __cudaCDP2GetLastError;",
                                        ".param .b64 r; call (r), __cudaCDP2GetLastError;"};
    for (int i = 0; i < 3; i++) {
        struct kit k;
        char text[1024];
        snprintf(text, sizeof text, HEAD "%s.entry k() { %s ret; }\n", texts[i], calls[i]);
        kit_load(&k, text);
        const struct diag *why = ptx_kernel_refusal(k.module, ptx_module_find_kernel(k.module, "k"));
        assert_non_null(why);
        assert_non_null(strstr(why->text, "other parameters"));
        kit_free(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_depth_has_a_limit),
        cmocka_unit_test(test_streams_keep_their_order),
        cmocka_unit_test(test_events_order_streams),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_copies_and_fills),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_wrong_calls_are_errors_of_the_thread),
        cmocka_unit_test(test_fault_names_the_childs_kernel),
        cmocka_unit_test(test_fault_of_a_fill_is_at_its_call),
        cmocka_unit_test(test_child_finds_written_what_its_parent_wrote),
        cmocka_unit_test(test_tails_make_chains_of_any_length),
        cmocka_unit_test(test_every_thread_launches),
        cmocka_unit_test(test_limit_and_cancel_reach_children),
        cmocka_unit_test(test_condition),
        cmocka_unit_test(test_refusal_of_a_child_is_its_parents),
        cmocka_unit_test(test_wrong_declarations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
