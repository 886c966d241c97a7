/* mbarrier and the copies that arrive at one: each operation against a model of the object in plain C, its faults, and
 * the kernels that nvcc makes of libcu++'s barriers and pipelines (tests/ptx/async.cu). */
#include <stdio.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

#define HEAD                                                                                                           \
    ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n"            \
    ".reg .b64 %x<8>; .reg .b32 %r<8>; .reg .pred %p<4>;\n.shared .align 128 .b8 s[1024];\n"                           \
    "ld.param.u64 %x0, [in]; ld.param.u64 %x1, [out]; mov.u32 %r0, %tid.x;\n"

/* ---- one thread, against a model ---- */

struct model {
    uint32_t expected, pending;
    int32_t transactions;
    uint32_t phase;
};

static void settle(struct model *m)
{
    if (m->pending == 0 && m->transactions == 0) {
        m->pending = m->expected;
        m->phase++;
    }
}

enum { ARRIVE, ARRIVE_MANY, ARRIVE_EXPECT, DROP, EXPECT, COMPLETE, COPIED, COPIED_NOINC, OPERATIONS };
enum { STEPS = 200 };

/* Random operations that keep to PTX's rules; after each the parity and the former state are tested. */
static void test_operations_follow_the_model(void **state)
{
    static char text[STEPS * 400 + 4096];
    for (uint64_t seed = 1; seed < 20; seed++) {
        static uint64_t out[STEPS * 4], want[STEPS * 4];
        uint64_t random = seed;
        struct model m = {6, 6, 0, 0};
        size_t n = (size_t)snprintf(text, sizeof text,
                                    "%smbarrier.init.shared::cta.b64 [s+8], 6;\n"
                                    "mbarrier.arrive.noComplete.shared.b64 %%x3, [s+8], 1;\n",
                                    HEAD);
        m.pending--;
        for (uint32_t i = 0; i < STEPS; i++) {
            uint32_t op = (uint32_t)(kit_random(&random) % OPERATIONS),
                     amount = 1 + (uint32_t)(kit_random(&random) % 3);
            bool last = m.pending == 1, state_read = false;
            struct model before = m;
#define ADD(...) n += (size_t)snprintf(text + n, sizeof text - n, __VA_ARGS__)
            if (op == ARRIVE_MANY && amount >= m.pending)
                op = ARRIVE;
            if (op == DROP && (m.expected == 2 || last))
                op = ARRIVE;
            if (m.pending == 0) /* only transactions can end the phase */
                op = COMPLETE;
            if (last && m.transactions < 0) { /* to expect more when all have arrived is too late */
                op = EXPECT;
                amount = (uint32_t)-m.transactions / 16;
            }
            switch (op) {
            case ARRIVE:
                ADD("mbarrier.arrive.shared.b64 %%x2, [s+8];\n");
                m.pending--;
                state_read = true;
                break;
            case ARRIVE_MANY:
                ADD("mov.u32 %%r1, %u; mbarrier.arrive.release.cta.shared::cta.b64 %%x2, [s+8], %%r1;\n", amount);
                m.pending -= amount;
                state_read = true;
                break;
            case ARRIVE_EXPECT:
                ADD("mbarrier.arrive.expect_tx.shared.b64 %%x2, [s+8], %u;\n", amount * 16);
                m.transactions += (int32_t)amount * 16;
                m.pending--;
                state_read = true;
                break;
            case DROP:
                ADD("mbarrier.arrive_drop.shared.b64 %%x2, [s+8];\n");
                m.pending--;
                m.expected--;
                state_read = true;
                break;
            case EXPECT:
                ADD("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [s+8], %u;\n", amount * 16);
                m.transactions += (int32_t)amount * 16;
                break;
            case COMPLETE: /* all of it, so that a phase does end */
                amount = m.transactions > 0 ? (uint32_t)m.transactions : 16;
                ADD("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [s+8], %u;\n", amount);
                m.transactions -= (int32_t)amount;
                break;
            case COPIED:
                ADD("cp.async.mbarrier.arrive.shared.b64 [s+8];\n");
                break;
            default:
                ADD("cp.async.mbarrier.arrive.noinc.shared.b64 [s+8];\n");
                m.pending--;
            }
            settle(&m);
            bool done = state_read && m.phase != before.phase;
            ADD("mbarrier.test_wait.parity.shared.b64 %%p0, [s+8], %u; selp.u32 %%r2, 1, 0, %%p0;\n"
                "mbarrier.try_wait.parity.shared.b64 %%p0, [s+8], %u, 100; selp.u32 %%r3, 1, 0, %%p0;\n"
                "st.global.u32 [%%x1+%u], %%r2; st.global.u32 [%%x1+%u], %%r3;\n",
                before.phase & 1, ~m.phase & 1, i * 32, i * 32 + 8);
            want[i * 4] = m.phase != before.phase;
            want[i * 4 + 1] = 1;
            want[i * 4 + 2] = want[i * 4 + 3] = 0;
            if (state_read) {
                ADD("mbarrier.test_wait.shared.b64 %%p0, [s+8], %%x2; selp.u32 %%r2, 1, 0, %%p0;\n"
                    "mbarrier.pending_count.b64 %%r3, %%x2; st.global.u32 [%%x1+%u], %%r2; st.global.u32 [%%x1+%u], "
                    "%%r3;\n",
                    i * 32 + 16, i * 32 + 24);
                want[i * 4 + 2] = done;
                want[i * 4 + 3] = before.pending;
            }
        }
        ADD("ret;\n}\n");
#undef ADD
        assert_true(n < sizeof text - 1);
        for (int mode = 0; mode < 3; mode++) {
            struct kit k;
            kit_load(&k, text);
            memset(out, 0, sizeof out);
            kit_buffer(&k, 1, out, sizeof out);
            k.launch.checked = mode == 1;
            k.launch.shadow = k.spins = mode == 2;
            assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
            assert_int_equal(k.result.fault_count, 0);
            for (uint32_t i = 0; i < STEPS * 4; i++)
                if (out[i] != want[i])
                    fail_msg("seed %u step %u value %u: %u, want %u", (unsigned)seed, i / 4, i % 4, (unsigned)out[i],
                             (unsigned)want[i]);
            kit_free(&k);
        }
    }
}

/* ---- waiting ---- */

/* Every thread waits for a phase that the last warp ends; generic addresses. */
static void test_waiting_lets_others_run(void **state)
{
    static uint32_t out[128];
    static const char *const waits[] = {"mbarrier.test_wait.b64 %p1, [%x2], %x3;",
                                        "mbarrier.try_wait.acquire.cta.b64 %p1, [%x2], %x3;",
                                        "mbarrier.try_wait.parity.b64 %p1, [%x2], 0;"};
    for (size_t i = 0; i < 3; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 "%smov.u64 %%x2, s; cvta.shared.u64 %%x2, %%x2; setp.eq.u32 %%p0, %%r0, 0;\n"
                 "@%%p0 mbarrier.init.b64 [%%x2], 128; bar.sync 0;\n"
                 "mbarrier.arrive.b64 %%x3, [%%x2];\nWAIT: %s\n@!%%p1 bra WAIT;\n"
                 "mul.wide.u32 %%x4, %%r0, 4; add.s64 %%x4, %%x1, %%x4; st.global.u32 [%%x4], 1;\nret;\n}\n",
                 HEAD, waits[i]);
        struct kit k;
        kit_load(&k, text);
        memset(out, 0, sizeof out);
        kit_buffer(&k, 1, out, sizeof out);
        k.launch.seed = i;
        assert_int_equal(kit_run(&k, "k", 1, 128), STATUS_OK);
        for (int t = 0; t < 128; t++)
            assert_int_equal(out[t], 1);
        assert_true(k.result.counts.thread_instructions < 128 * 40); /* it does not spin through its turns */
        kit_free(&k);
    }
}

/* ---- bulk copies ---- */

static void test_bulk_copies(void **state)
{
    static _Alignas(16) uint8_t in[1024], out[1024];
    for (int i = 0; i < 1024; i++)
        in[i] = (uint8_t)(i * 7);
    for (int mode = 0; mode < 3; mode++) {
        struct kit k;
        kit_load(&k, HEAD
                 "mbarrier.init.shared.b64 [s], 1;\n"
                 "mov.u32 %r1, s; add.u32 %r2, %r1, 64; mov.u32 %r3, 496;\n"
                 "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%x0+16], %r3, [%r1];\n"
                 "mbarrier.test_wait.parity.shared.b64 %p0, [s], 0; selp.u32 %r4, 1, 0, %p0;\n"
                 "mbarrier.arrive.expect_tx.shared.b64 _, [s], 496;\n"
                 "WAIT: mbarrier.try_wait.parity.shared.b64 %p0, [s], 0; @!%p0 bra WAIT;\n"
                 "cp.async.bulk.global.shared::cta.bulk_group [%x1+32], [%r2], %r3;\n"
                 "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\nst.global.u32 [%x1], %r4;\nret;\n}\n");
        memset(out, 0xee, sizeof out);
        kit_buffer(&k, 0, in, sizeof in);
        kit_buffer(&k, 1, out, sizeof out);
        k.launch.checked = mode == 1;
        k.launch.shadow = k.spins = mode == 2;
        assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
        assert_int_equal(k.result.fault_count, 0);
        assert_int_equal(out[0], 0); /* not complete before the transactions were expected and all had arrived */
        assert_memory_equal(out + 32, in + 16, 496);
        assert_int_equal(out[31], 0xee);
        assert_int_equal(out[32 + 496], 0xee);
        kit_free(&k);
    }
}

struct wrong {
    const char *body;
    enum ptx_fault_kind kind;
    enum ptx_space space;
};

static void test_faults(void **state)
{
    static _Alignas(16) uint8_t in[256], out[256], valid[32];
    static const struct wrong wrong[] = {
        {"mbarrier.arrive.shared.b64 %x2, [s];", PTX_FAULT_UNINITIALISED, PTX_SPACE_SHARED},
        {"mbarrier.init.shared.b64 [s], 1; mbarrier.inval.shared.b64 [s]; mbarrier.arrive.shared.b64 %x2, [s];",
         PTX_FAULT_UNINITIALISED, PTX_SPACE_SHARED},
        {"mbarrier.init.shared.b64 [s+4], 1;", PTX_FAULT_MISALIGNED, PTX_SPACE_SHARED},
        {"mbarrier.init.shared.b64 [s+1024], 1;", PTX_FAULT_OUT_OF_BOUNDS, PTX_SPACE_SHARED},
        {"mbarrier.init.b64 [%x1], 1;", PTX_FAULT_OUT_OF_BOUNDS, PTX_SPACE_SHARED},
        {"mov.u32 %r1, s; cp.async.bulk.global.shared::cta.bulk_group [%x1+8], [%r1], 16;", PTX_FAULT_MISALIGNED,
         PTX_SPACE_GLOBAL},
        {"mov.u32 %r1, s; mov.u32 %r2, 256; add.u32 %r3, %r1, 16; mbarrier.init.shared.b64 [s], 1; "
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%x0+16], %r2, [%r1];",
         PTX_FAULT_OUT_OF_BOUNDS, PTX_SPACE_GLOBAL},
        {"mov.u32 %r1, s; mbarrier.init.shared.b64 [s], 1; add.u32 %r3, %r1, 16; "
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%x0], 16, [%r1]; "
         "ld.shared.u32 %r4, [s+16]; add.u32 %r4, %r4, 1; st.global.u32 [%x1], %r4;",
         PTX_FAULT_UNINITIALISED, PTX_SPACE_SHARED},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[2048];
        struct kit k;
        snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD, wrong[i].body);
        kit_load(&k, text);
        kit_buffer(&k, 0, in, sizeof in);
        kit_buffer(&k, 1, out, sizeof out);
        memset(valid, 0, sizeof valid);
        k.ranges[0].valid = valid;
        k.launch.checked = true;
        assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_OK);
        if (k.result.fault_count != 1 || k.result.faults[0].kind != wrong[i].kind ||
            k.result.faults[0].space != wrong[i].space)
            fail_msg("%s: %u faults, kind %d", wrong[i].body, (unsigned)k.result.fault_count,
                     k.result.fault_count ? (int)k.result.faults[0].kind : -1);
        k.launch.checked = false;
        if (wrong[i].kind != PTX_FAULT_UNINITIALISED)
            assert_int_equal(kit_run(&k, "k", 1, 1), STATUS_FAULT);
        kit_free(&k);
    }
}

/* ---- libcu++ ---- */

enum { MODES = 5 };
static void start(struct kit *k, int mode)
{
    kit_load_file(k, "async.ptx");
    k->launch.checked = mode == 1 || mode == 2;
    k->launch.shadow = k->spins = mode == 3;
    k->launch.seed = mode == 2 || mode == 4 ? 7 : 0;
}

static void finish(struct kit *k, const char *kernel, uint32_t grid, uint32_t block)
{
    if (kit_run(k, kernel, grid, block) != STATUS_OK)
        fail_msg("%s: %s", kernel, k->diag.text);
    if (k->result.fault_count)
        fail_msg("%s: fault %s at line %u", kernel, ptx_fault_kind_name(k->result.faults[0].kind),
                 k->result.faults[0].access.ptx_line);
}

static void test_barriers(void **state)
{
    static int32_t in[256], out[256];
    for (int i = 0; i < 256; i++)
        in[i] = i * i + 3;
    for (int mode = 0; mode < MODES; mode++) {
        struct kit k;
        start(&k, mode);
        kit_buffer(&k, 0, out, sizeof out);
        kit_buffer(&k, 1, in, sizeof in);
        k.params[2] = 9;
        finish(&k, "relay", 1, 256);
        for (int i = 0; i < 256; i++)
            assert_int_equal(out[i], in[(i - 9 + 256) % 256]);
        memset(out, 0, sizeof out);
        finish(&k, "leave", 1, 256);
        for (int warp = 0; warp < 8; warp++)
            assert_int_equal(out[warp], warp ? 7 - warp : 8);
        kit_free(&k);
    }
}

static void test_a_missing_wait_is_a_race(void **state)
{
    static int32_t in[256], out[256];
    for (uint32_t rounds = 1; rounds < 3; rounds++) {
        struct kit k;
        start(&k, 1);
        kit_buffer(&k, 0, out, sizeof out);
        kit_buffer(&k, 1, in, sizeof in);
        for (int i = 0; i < 256; i++)
            in[i] = i + 1;
        k.params[2] = rounds;
        assert_int_equal(kit_run(&k, "relay_racy", 1, 256), STATUS_OK);
        bool race = false;
        for (size_t i = 0; i < k.result.fault_count; i++)
            race |= k.result.faults[i].kind == PTX_FAULT_SHARED_RACE;
        assert_int_equal(race, rounds == 1);
        kit_free(&k);
    }
}

static void test_copies_and_pipelines(void **state)
{
    static _Alignas(16) int32_t in[1024], out[1024];
    for (int i = 0; i < 1024; i++)
        in[i] = i * 17 - 5;
    for (int mode = 0; mode < MODES; mode++) {
        struct kit k;
        start(&k, mode);
        kit_buffer(&k, 0, out, sizeof out);
        kit_buffer(&k, 1, in, sizeof in);
        finish(&k, "reverse", 2, 128);
        for (int i = 0; i < 1024; i++)
            assert_int_equal(out[i], in[i / 512 * 512 + 511 - i % 512]);
        k.params[2] = 8;
        finish(&k, "stages", 1, 128);
        for (int i = 0; i < 128; i++) {
            int32_t want = 0;
            for (int tile = 0; tile < 8; tile++)
                want += in[tile * 128 + 127 - i];
            assert_int_equal(out[i], want);
        }
        finish(&k, "roles", 1, 128);
        for (int i = 0; i < 512; i++)
            assert_int_equal(out[i], 2 * in[i / 64 * 64 + 63 - i % 64]);
        kit_free(&k);
    }
}

/* Each lane copies what a table says, some of them in a branch; in lock-step as one thread at a time. */
static void test_copies_of_each_lane(void **state)
{
    enum { LANES = 32, BYTES = 1024, ROUNDS = 120 };
    static _Alignas(64) uint8_t from[BYTES], out[2][BYTES];
    static uint8_t read_map[2][BYTES / 8];
    static struct row {
        uint32_t to, given;
        uint64_t from;
    } rows[LANES];
    uint64_t random = 4;
    unsigned faults = 0, sound = 0;
    for (unsigned i = 0; i < BYTES; i++)
        from[i] = (uint8_t)(i * 37 + 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        char text[2048];
        const unsigned bytes = 4u << round % 3;
        snprintf(text, sizeof text,
                 ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 rows, .param .u64 from, "
                 ".param .u64 out) {\n.shared .align 16 .b8 s[%d];\n.reg .b64 %%x<8>; .reg .b32 %%r<8>; .reg .pred "
                 "%%p;\nmov.u32 %%r0, %%tid.x; ld.param.u64 %%x0, [rows]; mad.wide.u32 %%x0, %%r0, 16, %%x0;\n"
                 "ld.global.v2.u32 {%%r1,%%r2}, [%%x0]; ld.global.u64 %%x1, [%%x0+8]; ld.param.u64 %%x2, [from]; "
                 "add.s64 %%x1, %%x1, %%x2;\nmov.u32 %%r3, s; add.u32 %%r1, %%r1, %%r3; shl.b32 %%r4, %%r0, 5; add.u32 "
                 "%%r4, %%r4, %%r3; mov.u32 %%r5, 0; mov.u32 %%r6, 8;\nZ: st.shared.u32 [%%r4], 287454020; add.u32 "
                 "%%r4, %%r4, 4; sub.u32 %%r6, %%r6, 1; setp.ne.u32 %%p, %%r6, 0; @%%p bra Z;\nbar.sync 0; "
                 "setp.lt.u32 %%p, %%r0, %u; @!%%p bra L;\ncp.async.ca.shared.global [%%r1], [%%x1], %u, %%r2;\n"
                 "L: cp.async.wait_all; bar.sync 0;\nld.param.u64 %%x3, [out]; mad.wide.u32 %%x3, %%r0, 32, %%x3; "
                 "shl.b32 %%r4, %%r0, 5; add.u32 %%r4, %%r4, %%r3; mov.u32 %%r6, 8;\nM: ld.shared.u32 %%r5, [%%r4]; "
                 "st.global.u32 [%%x3], %%r5; add.u32 %%r4, %%r4, 4; add.s64 %%x3, %%x3, 4; sub.u32 %%r6, %%r6, 1; "
                 "setp.ne.u32 %%p, %%r6, 0; @%%p bra M;\nret;\n}\n",
                 BYTES, round % 4 ? LANES : 19, bytes);
        for (unsigned lane = 0; lane < LANES; lane++) {
            uint64_t r = kit_random(&random);
            rows[lane] = (struct row){(uint32_t)(lane * 32 + r % 2 * 16), r >> 8 & 3 ? bytes : r >> 16 & 31,
                                      (r >> 32) % (BYTES / 16) * 16};
            if (round % 5 == 0 && (r >> 40) % 4 == 0)
                rows[lane].given = 0;
        }
        if (round % 5 == 1)
            rows[kit_random(&random) % 19].from = kit_random(&random) % 3 ? BYTES : 2;
        if (round % 5 == 2)
            rows[kit_random(&random) % 19].to = kit_random(&random) % 3 ? BYTES : 2;
        struct kit k;
        kit_load(&k, text);
        kit_buffer(&k, 0, rows, sizeof rows);
        kit_buffer(&k, 1, from, sizeof from);
        kit_buffer(&k, 2, out[0], BYTES);
        struct ptx_counts counts[2];
        enum status status[2];
        enum ptx_fault_kind kinds[2] = {0};
        uint32_t lanes[2] = {0};
        for (int one = 0; one < 2; one++) {
            memset(out[one], 0, BYTES);
            memset(read_map[one], 0, sizeof read_map[one]);
            k.ranges[1].read = round % 2 ? read_map[one] : NULL;
            k.ranges[2].host = out[one];
            k.launch.one_by_one = one;
            status[one] = kit_run(&k, "k", 1, LANES);
            counts[one] = k.result.counts;
            if (k.result.fault_count) {
                kinds[one] = k.result.faults[0].kind;
                lanes[one] = k.result.faults[0].access.thread[0];
            }
        }
        assert_int_equal(status[0], status[1]);
        assert_int_equal(kinds[0], kinds[1]);
        assert_int_equal(lanes[0], lanes[1]);
        if (status[0] == STATUS_OK) {
            assert_memory_equal(out[0], out[1], BYTES);
            assert_memory_equal(read_map[0], read_map[1], sizeof read_map[0]);
            assert_memory_equal(&counts[0], &counts[1], sizeof counts[0]);
        }
        *(status[0] == STATUS_OK ? &sound : &faults) += 1;
        kit_free(&k);
    }
    assert_true(sound > 40 && faults > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_of_each_lane),
        cmocka_unit_test(test_operations_follow_the_model),
        cmocka_unit_test(test_waiting_lets_others_run),
        cmocka_unit_test(test_bulk_copies),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_a_missing_wait_is_a_race),
        cmocka_unit_test(test_copies_and_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
