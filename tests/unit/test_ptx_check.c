/* Checked mode on kernels of tests/ptx/check.cu: every kind of fault with a kernel that has it, and sound twins that
 * stay silent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { N = 64, WORDS = 1024 };
static float memory[6][WORDS];
static uint8_t valid[6][WORDS * 4 / 8];

/* Three buffers of N floats (fully written unless said otherwise), as parameters 0, 1, 2. */
static struct kit *start(void)
{
    static struct kit k;
    kit_load_file(&k, "check.ptx");
    memset(memory, 0, sizeof memory);
    memset(valid, 0xff, sizeof valid);
    for (int i = 0; i < 4; i++) {
        kit_buffer(&k, i, memory[i], N * 4);
        k.ranges[k.memory.range_count - 1].valid = valid[i];
    }
    kit_variables(&k);
    k.launch.checked = true;
    return &k;
}

static void stop(struct kit *k)
{
    kit_free(k);
}

static void show(const struct kit *k)
{
    for (size_t i = 0; i < k->result.fault_count; i++) {
        const struct ptx_fault *f = &k->result.faults[i];
        struct ptx_source s[4];
        size_t n = ptx_module_source(k->module, f->access.ptx_line, s, 4);
        print_error("  %s, line %u (%s:%u), space %d, range %u%s offset %lld, %u bytes, %s, count %llu, thread %u\n",
                    ptx_fault_kind_name(f->kind), f->access.ptx_line, n && s[0].file ? s[0].file : "?",
                    n ? s[0].line : 0, f->space, f->range_id, f->provenance ? " (origin)" : "", (long long)f->offset,
                    f->bytes, f->access.write ? "write" : "read", (unsigned long long)f->count, f->access.thread[0]);
    }
}

static void expect_silence(struct kit *k, const char *kernel, uint32_t grid, uint32_t block)
{
    assert_int_equal(kit_run(k, kernel, grid, block), STATUS_OK);
    if (k->result.fault_count) {
        print_error("%s is sound, but:\n", kernel);
        show(k);
        fail();
    }
}

/* Exactly one kind of fault, and returns the first. */
static const struct ptx_fault *expect_fault(struct kit *k, const char *kernel, uint32_t grid, uint32_t block,
                                            enum ptx_fault_kind kind)
{
    assert_int_equal(kit_run(k, kernel, grid, block), STATUS_OK);
    bool right = k->result.fault_count > 0;
    for (size_t i = 0; i < k->result.fault_count; i++)
        right &= k->result.faults[i].kind == kind;
    if (!right) {
        print_error("%s: expected %s, got\n", kernel, ptx_fault_kind_name(kind));
        show(k);
        fail();
    }
    return &k->result.faults[0];
}

static void test_out_of_bounds(void **state)
{
    struct kit *k = start();
    k->params[1] = N;
    const struct ptx_fault *f = expect_fault(k, "oob_write", 2, 64, PTX_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(k->result.fault_count, 1);
    assert_int_equal(f->range_id, 1);
    assert_true(f->provenance && f->has_range && f->access.write);
    assert_int_equal(f->offset, N * 4);
    assert_int_equal(f->bytes, 4);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->access.block[0], 1);
    assert_int_equal(f->access.thread[0], 0);
    struct ptx_source s;
    assert_int_equal(ptx_module_source(k->module, f->access.ptx_line, &s, 1), 1);
    assert_string_equal(s.file, "check.cu");
    assert_int_equal(s.line, 5);
    assert_string_equal(s.function, "oob_write");
    k->params[1] = N - 1;
    expect_silence(k, "oob_write", 2, 64);

    k->params[1] = (uint64_t)k->ranges[1].address;
    k->params[2] = 8;
    f = expect_fault(k, "oob_read", 1, 64, PTX_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(f->count, 8);
    assert_int_equal(f->threads, 8);
    assert_int_equal(f->access.thread[0], N - 8);
    assert_false(f->access.write);
    f = expect_fault(k, "before", 1, 64, PTX_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(f->offset, -4);
    stop(k);
}

static void test_far_access(void **state)
{
    struct kit *k = start();
    k->params[2] = (k->ranges[2].address - k->ranges[0].address) / 4;
    memory[2][3] = 77;
    const struct ptx_fault *f = expect_fault(k, "far_write", 1, 32, PTX_FAULT_OUT_OF_BOUNDS);
    assert_true(f->provenance);
    assert_int_equal(f->range_id, 1);
    assert_int_equal(f->count, 32);
    assert_true(memory[2][3] == 77); /* the store was dropped */
    expect_silence(k, "far_good", 1, 32);
    /* A device does not see it. */
    k->launch.checked = false;
    assert_int_equal(kit_run(k, "far_write", 1, 32), STATUS_OK);
    assert_true(memory[2][3] == 0);
    stop(k);
}

/* The executor keeps ranges of its own for shared memory, functions, parameters of launches and others: a wild address
 * that happens to lie there is out of bounds as any other, for every access and in every mode. */
static void test_wild_addresses(void **state)
{
#define WILD(name, access)                                                                                             \
    ".visible .entry " name                                                                                            \
    "(.param .u64 at) { .reg .b64 %p; .reg .b32 %r; mov.u32 %r, 1; ld.param.u64 %p, [at]; " access " ret; }\n"
    static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n" WILD("load", "ld.u32 %r, [%p];")
        WILD("load_global", "ld.global.u32 %r, [%p];") WILD("store", "st.u32 [%p], %r;")
            WILD("store_global", "st.global.u32 [%p], %r;") WILD("atomic", "atom.add.u32 %r, [%p], 1;")
                WILD("atomic_global", "atom.global.add.u32 %r, [%p], 1;") WILD("reduce", "red.add.u32 [%p], 1;");
    struct kit k;
    kit_load(&k, text);
    for (uint64_t window = 0; window < 1 << 16; window += window == 0xff ? 0xff00 : 1)
        for (int at = 0; at < 3; at++)
            for (int mode = 0; mode < 3; mode++)
                for (size_t i = 0; i < ptx_module_kernel_count(k.module); i++) {
                    k.params[0] = window << 48 | (uint64_t[]){UINT64_C(1) << 40, UINT64_C(1) << 32, 0xfffffffffffc}[at];
                    k.launch.checked = mode == 1;
                    k.launch.one_by_one = mode == 2;
                    enum status status = kit_run(&k, ptx_module_kernel(k.module, i)->name, 1, 1);
                    assert_int_equal(status, mode == 1 ? STATUS_OK : STATUS_FAULT);
                    assert_int_equal(k.result.fault_count, 1);
                    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_OUT_OF_BOUNDS);
                    assert_int_equal(k.result.faults[0].address, k.params[0]);
                }
    kit_free(&k);
}

static void test_misaligned(void **state)
{
    struct kit *k = start();
    expect_fault(k, "misaligned", 1, 1, PTX_FAULT_MISALIGNED);
    const struct ptx_fault *f = expect_fault(k, "misaligned_vector", 1, 1, PTX_FAULT_MISALIGNED);
    assert_int_equal(f->bytes, 16);
    k->launch.checked = false;
    assert_int_equal(kit_run(k, "misaligned", 1, 1), STATUS_FAULT);
    assert_int_equal(k->result.fault_count, 1);
    assert_int_equal(k->result.faults[0].kind, PTX_FAULT_MISALIGNED);
    stop(k);
}

static void test_read_only_and_freed(void **state)
{
    struct kit *k = start();
    k->ranges[0].flags = PTX_RANGE_READ_ONLY;
    expect_fault(k, "constant_write", 1, 1, PTX_FAULT_READ_ONLY);
    k->ranges[0].flags = 0;
    expect_silence(k, "constant_write", 1, 1);
    k->ranges[0].flags = PTX_RANGE_FREED;
    k->params[1] = 3;
    const struct ptx_fault *f = expect_fault(k, "oob_write", 1, 4, PTX_FAULT_FREED);
    assert_int_equal(f->range_id, 1);
    stop(k);
}

static void test_pointers_that_are_right(void **state)
{
    struct kit *k = start();
    /* p - q + r with p, q, r in different allocations: lands in p, whose distance from r is that of p from q */
    k->params[0] = k->ranges[1].address;
    k->params[1] = k->ranges[0].address;
    k->params[2] = k->ranges[1].address;
    k->params[3] = k->ranges[3].address;
    expect_silence(k, "pointer_difference", 1, 16);
    k->params[0] = k->ranges[0].address;
    k->params[1] = k->ranges[1].address;
    k->params[2] = k->ranges[2].address;
    for (k->params[3] = 0; k->params[3] < 2; k->params[3]++)
        expect_silence(k, "pointer_select", 1, 64);
    uint64_t table[2] = {k->ranges[1].address, k->ranges[2].address};
    memcpy(memory[0], table, sizeof table);
    k->params[1] = k->ranges[3].address;
    expect_silence(k, "pointer_table", 1, 64);
    k->params[1] = k->ranges[0].address + N * 4;
    memory[0][0] = memory[0][1] = memory[0][2] = memory[0][3] = 0;
    expect_silence(k, "pointer_end", 1, 1);
    k->params[1] = k->ranges[1].address;
    k->params[3] = N;
    expect_silence(k, "pointer_loop", 1, 32);
    k->params[0] = k->ranges[0].address;
    expect_silence(k, "variable_good", 1, 64);
    stop(k);
}

/* Two allocations side by side: the end of one is the start of the next. */
static void test_adjacent_allocations(void **state)
{
    struct kit *k = start();
    k->ranges[1].address = k->ranges[0].address + N * 4;
    k->params[0] = k->ranges[0].address;
    k->params[1] = k->ranges[1].address; /* one past the end of the first, too */
    k->params[2] = k->ranges[2].address;
    expect_silence(k, "pointer_end", 1, 1);
    k->params[1] = k->ranges[1].address;
    k->params[3] = N;
    expect_silence(k, "pointer_loop", 1, 32);
    k->params[1] = N;
    const struct ptx_fault *f = expect_fault(k, "oob_write", 2, 64, PTX_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(f->range_id, 1);
    assert_true(f->provenance);
    stop(k);
}

static void test_variables(void **state)
{
    struct kit *k = start();
    const struct ptx_fault *f = expect_fault(k, "variable_oob", 1, 8, PTX_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(f->count, 4);
    f = expect_fault(k, "constant_oob", 1, 6, PTX_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(f->count, 2);
    stop(k);
}

static void test_shared_and_local_bounds(void **state)
{
    struct kit *k = start();
    expect_silence(k, "shared_oob", 1, 32);
    assert_int_equal(kit_run(k, "shared_oob", 1, 40), STATUS_OK);
    assert_true(k->result.fault_count > 0);
    bool shared = false;
    for (size_t i = 0; i < k->result.fault_count; i++)
        shared |= k->result.faults[i].kind == PTX_FAULT_OUT_OF_BOUNDS && k->result.faults[i].space == PTX_SPACE_SHARED;
    assert_true(shared);
    k->params[1] = 2;
    expect_silence(k, "local_oob", 1, 1);
    k->params[1] = 4000;
    const struct ptx_fault *f = expect_fault(k, "local_oob", 1, 1, PTX_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(f->space, PTX_SPACE_LOCAL);
    stop(k);
}

/* ---- uninitialised ---- */

static void unset(int buffer, unsigned first, unsigned bytes)
{
    for (unsigned i = first; i < first + bytes; i++)
        valid[buffer][i / 8] &= (uint8_t) ~(1u << i % 8);
}

static void test_uninitialised_global(void **state)
{
    struct kit *k = start();
    expect_silence(k, "uninit_sum", 1, 64);
    unset(0, 40, 8);
    const struct ptx_fault *f = expect_fault(k, "uninit_sum", 1, 64, PTX_FAULT_UNINITIALISED);
    assert_int_equal(k->result.fault_count, 1);
    assert_int_equal(f->offset, 40);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->access.thread[0], 10);
    assert_int_equal(f->range_id, 1);
    expect_fault(k, "uninit_branch", 1, 64, PTX_FAULT_UNINITIALISED);
    expect_fault(k, "uninit_index", 1, 64, PTX_FAULT_UNINITIALISED);
    expect_fault(k, "uninit_branch", 1, 64, PTX_FAULT_UNINITIALISED);
    expect_silence(k, "uninit_sum", 1, 10);
    expect_silence(k, "write_then_read", 1, 64);
    unset(0, 0, 4);
    expect_fault(k, "atomic_uninit", 1, 1, PTX_FAULT_UNINITIALISED);
    stop(k);
}

static void test_uninitialised_padding(void **state)
{
    struct kit *k = start();
    for (unsigned i = 0; i < 32; i++)
        unset(0, i * 8 + 1, 3); /* struct { char; int; } */
    expect_silence(k, "copy_struct", 1, 32);
    expect_silence(k, "copy_words", 1, 16);
    memset(valid, 0xff, sizeof valid);
    for (unsigned i = 0; i < 16; i++) {
        unset(0, i * 16 + 4, 4);
        unset(0, i * 16 + 12, 4);
    }
    expect_silence(k, "use_part", 1, 16);
    unset(0, 8, 1);
    expect_fault(k, "use_part", 1, 16, PTX_FAULT_UNINITIALISED);
    memset(valid, 0xff, sizeof valid);
    for (unsigned i = 0; i < 64; i++)
        unset(0, i * 4 + 1, 2);
    expect_silence(k, "use_byte", 1, 64);
    unset(0, 3, 1);
    expect_fault(k, "use_byte", 1, 64, PTX_FAULT_UNINITIALISED);
    stop(k);
}

static void test_uninitialised_shared_and_local(void **state)
{
    struct kit *k = start();
    const struct ptx_fault *f = expect_fault(k, "shared_uninit", 1, 64, PTX_FAULT_UNINITIALISED);
    assert_int_equal(f->space, PTX_SPACE_SHARED);
    assert_int_equal(f->count, 48);
    expect_silence(k, "shared_init", 1, 64);
    k->params[1] = 8;
    expect_silence(k, "local_uninit", 1, 8);
    k->params[1] = 5;
    f = expect_fault(k, "local_uninit", 1, 8, PTX_FAULT_UNINITIALISED);
    assert_int_equal(f->space, PTX_SPACE_LOCAL);
    assert_int_equal(f->count, 3);
    stop(k);
}

/* ---- races and barriers ---- */

static void test_shared_races(void **state)
{
    struct kit *k = start();
    const struct ptx_fault *f = expect_fault(k, "race_shared_bad", 1, 64, PTX_FAULT_SHARED_RACE);
    assert_int_not_equal(f->other.ptx_line, 0);
    expect_silence(k, "race_shared_good", 1, 64);
    expect_fault(k, "race_reuse_bad", 1, 64, PTX_FAULT_SHARED_RACE);
    expect_silence(k, "race_reuse_good", 1, 64);
    expect_silence(k, "race_warp_good", 1, 64);
    expect_fault(k, "race_warp_bad", 1, 64, PTX_FAULT_SHARED_RACE);
    (void)expect_fault(k, "race_same_value", 1, 64, PTX_FAULT_SHARED_RACE);
    bool real = false;
    for (size_t i = 0; i < k->result.fault_count; i++)
        real |= !k->result.faults[i].same_value && k->result.faults[i].count > 1;
    assert_false(real);
    expect_silence(k, "race_atomic_good", 1, 64);
    expect_silence(k, "race_bytes_good", 1, 64);
    k->order_matters = true; /* volatile accesses are no races, whatever they read */
    expect_silence(k, "race_volatile_reduce", 1, 64);
    stop(k);
}

static void test_global_races(void **state)
{
    struct kit *k = start();
    const struct ptx_fault *f = expect_fault(k, "race_global_bad", 4, 1, PTX_FAULT_GLOBAL_RACE);
    assert_true(f->other.write);
    expect_fault(k, "race_global_count", 4, 1, PTX_FAULT_GLOBAL_RACE);
    expect_silence(k, "race_global_good", 4, 16);
    expect_silence(k, "last_block", 4, 16);
    expect_silence(k, "spin_lock", 4, 64);
    for (k->launch.seed = 1; k->launch.seed < 5; k->launch.seed++) {
        expect_silence(k, "last_block", 4, 16);
        expect_fault(k, "race_global_bad", 4, 1, PTX_FAULT_GLOBAL_RACE);
    }
    stop(k);
}

/* What puts two accesses in order 65,536 times still does, and what comes after it is still judged. */
static void test_long_ago(void **state)
{
    (void)state;
    static const char frame[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q) {\n"
        ".reg .b64 %%p; .reg .b32 %%t, %%c, %%at, %%other, %%n, %%v; .reg .pred %%q; .shared .b32 s[64];\n"
        "ld.param.u64 %%p, [p]; mov.u32 %%t, %%tid.x; mov.u32 %%c, %%ctaid.x; mov.u32 %%n, 65536;\n"
        "mov.u32 %%at, s; mad.lo.u32 %%at, %%t, 4, %%at; xor.b32 %%other, %%at, %s;\n"
        "setp.ne.u32 %%q, %%c, 0; @%%q bra LAST;\n%s\n"
        "AGAIN: %s; sub.u32 %%n, %%n, 1; setp.ne.u32 %%q, %%n, 0; @%%q bra AGAIN;\n%s\nret;\n"
        "LAST: ld.global.u32 %%v, [%%p]; add.u32 %%v, %%v, 1; ret; }\n";
    static const char put[] = "st.shared.u32 [%at], %t;", get[] = "ld.shared.u32 %v, [%other]; add.u32 %v, %v, 1;";
    static const struct {
        const char *distance, *before, *ordering, *after;
        uint32_t grid;
        enum ptx_fault_kind kind;
    } cases[] = {
        {"128", put, "bar.sync 0", get, 1, PTX_FAULT_NONE},
        {"4", put, "bar.warp.sync 0xffffffff", get, 1, PTX_FAULT_NONE},
        {"4", "st.global.u32 [%p], %c;", "membar.gl", "", 2, PTX_FAULT_NONE},
        {"128", "", "bar.sync 0", "st.shared.u32 [%at], %t; ld.shared.u32 %v, [%other];", 1, PTX_FAULT_SHARED_RACE},
        {"4", "", "bar.warp.sync 0xffffffff", "st.shared.u32 [%at], %t; ld.shared.u32 %v, [%other];", 1,
         PTX_FAULT_SHARED_RACE},
        {"4", "", "membar.gl", "st.global.u32 [%p], %t;", 2, PTX_FAULT_GLOBAL_RACE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct kit k;
        static uint32_t word;
        char text[2048];
        (void)snprintf(text, sizeof text, frame, cases[i].distance, cases[i].before, cases[i].ordering, cases[i].after);
        kit_load(&k, text);
        kit_buffer(&k, 0, &word, sizeof word);
        k.launch.checked = true;
        const uint32_t threads = cases[i].grid == 1 ? 64 : 1;
        if (cases[i].kind)
            expect_fault(&k, "k", cases[i].grid, threads, cases[i].kind);
        else
            expect_silence(&k, "k", cases[i].grid, threads);
        kit_free(&k);
    }
}

static void test_barriers(void **state)
{
    struct kit *k = start();
    const struct ptx_fault *f = expect_fault(k, "barrier_bad", 1, 64, PTX_FAULT_BARRIER);
    assert_int_equal(k->result.fault_count, 2);
    assert_int_equal(f->count, 32);
    expect_silence(k, "barrier_pairs", 1, 64);
    k->launch.checked = false;
    assert_int_equal(kit_run(k, "barrier_bad", 1, 64), STATUS_FAULT);
    assert_int_equal(k->result.faults[0].kind, PTX_FAULT_BARRIER);
    stop(k);
}

static void test_trap(void **state)
{
    struct kit *k = start();
    const struct ptx_fault *f = expect_fault(k, "traps", 1, 64, PTX_FAULT_TRAP);
    assert_int_equal(f->access.thread[0], 5);
    k->launch.checked = false;
    assert_int_equal(kit_run(k, "traps", 1, 64), STATUS_FAULT);
    stop(k);
}

/* ---- the sets of bytes ---- */

static void test_read_and_written(void **state)
{
    static uint8_t read[2][WORDS], written[2][WORDS];
    for (int checked = 0; checked < 2; checked++) {
        struct kit *k = start();
        memset(read, 0, sizeof read);
        memset(written, 0, sizeof written);
        for (int i = 0; i < 2; i++) {
            k->ranges[i].read = read[i];
            k->ranges[i].written = written[i];
        }
        k->launch.checked = checked;
        k->params[0] = k->ranges[0].address;
        k->params[1] = k->ranges[1].address;
        assert_int_equal(kit_run(k, "write_then_read", 1, 16), STATUS_OK);
        for (int i = 0; i < 32; i++) {
            assert_int_equal(written[0][i], i < 8 ? 0xff : 0);
            assert_int_equal(read[0][i], 0); /* written first */
            assert_int_equal(written[1][i], i < 8 ? 0xff : 0);
        }
        assert_int_equal(kit_run(k, "uninit_sum", 1, 20), STATUS_OK);
        for (int i = 0; i < 32; i++)
            assert_int_equal(read[0][i], i >= 8 && i < 10 ? 0xff : 0);
        stop(k);
    }
}

static void test_fault_limit(void **state)
{
    struct kit *k = start();
    k->launch.fault_limit = 1;
    assert_int_equal(kit_run(k, "barrier_bad", 1, 64), STATUS_OK);
    assert_int_equal(k->result.fault_count, 1);
    assert_int_equal(k->result.faults_dropped, 32);
    stop(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_bounds),
        cmocka_unit_test(test_far_access),
        cmocka_unit_test(test_wild_addresses),
        cmocka_unit_test(test_misaligned),
        cmocka_unit_test(test_read_only_and_freed),
        cmocka_unit_test(test_pointers_that_are_right),
        cmocka_unit_test(test_adjacent_allocations),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_shared_and_local_bounds),
        cmocka_unit_test(test_uninitialised_global),
        cmocka_unit_test(test_uninitialised_padding),
        cmocka_unit_test(test_uninitialised_shared_and_local),
        cmocka_unit_test(test_shared_races),
        cmocka_unit_test(test_global_races),
        cmocka_unit_test(test_long_ago),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_trap),
        cmocka_unit_test(test_read_and_written),
        cmocka_unit_test(test_fault_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
