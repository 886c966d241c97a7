/* Guarded runs of checked launches: sound kernels must be guarded, others must give what the checked loop alone gives.
 * kit_run() compares; here are random kernels and cases that each have a sound twin. OPSDEBUG_GUARD_SEEDS="FROM COUNT"
 * runs other random kernels than the fixed ones, OPSDEBUG_GUARD_TEXT=FILE keeps the last text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_defects.h"
#include "tests/unit/ptx_kit.h"

enum { FIXED_SEEDS = 600 };
enum { INPUT, CELLS, OUT, SUMS, TABLE, BUFFERS };

struct outcome {
    unsigned char *memory[BUFFERS], *written[BUFFERS], *read[BUFFERS], *valid[BUFFERS];
    size_t bytes[BUFFERS];
    struct ptx_result result;
    enum status status;
};

/* Ranges side by side in some kernels, so that what leaves one is inside another. */
static void add_buffers(struct kit *k, struct outcome *o, const struct defects_shape *s, uint64_t seed)
{
    const bool tracked = seed % 7 == 0, close = seed % 4 < 2, judged = seed % 5 != 0;
    uint64_t random = seed, address = 0x7f0000000000;
    const size_t bytes[BUFFERS] = {DEFECTS_INPUT, (size_t)DEFECTS_REGIONS * DEFECTS_CELL * s->threads,
                                   (size_t)DEFECTS_OUT * s->threads, 64, 80};
    for (int i = 0; i < BUFFERS; i++) {
        const size_t map = bytes[i] / 8 + 1;
        o->bytes[i] = bytes[i];
        o->memory[i] = aligned_alloc(64, (bytes[i] + 63) / 64 * 64);
        o->written[i] = calloc(1, map);
        o->read[i] = calloc(1, map);
        o->valid[i] = malloc(map);
        for (size_t n = 0; n + 8 <= bytes[i]; n += 8) {
            uint64_t v = kit_random(&random);
            memcpy(o->memory[i] + n, &v, 8);
        }
        memset(o->valid[i], i == OUT ? 0 : 0xff, map);
        (void)kit_buffer(k, i, o->memory[i], bytes[i]);
        struct ptx_range *r = &k->ranges[i];
        r->address = address;
        k->params[i] = address;
        address += (bytes[i] + 255) / 256 * 256 + (close ? 0 : 4096);
        r->written = tracked ? o->written[i] : NULL;
        r->read = tracked ? o->read[i] : NULL;
        r->valid = judged ? o->valid[i] : NULL;
    }
    if (kit_random(&random) % 8 == 0) { /* a hole in what was initialised */
        const int i = (int)(kit_random(&random) % 2);
        o->valid[i][kit_random(&random) % (bytes[i] / 8)] &= 0x0f;
    }
    if (kit_random(&random) % 24 == 0)
        k->ranges[kit_random(&random) % 3].flags |= PTX_RANGE_FREED;
    if (kit_random(&random) % 12 == 0)
        k->ranges[kit_random(&random) % 2].flags |= PTX_RANGE_READ_ONLY;
    uint64_t table[10] = {k->params[INPUT], k->params[CELLS]};
    for (int i = 2; i < 10; i++)
        table[i] = kit_random(&random) % 64;
    memcpy(o->memory[TABLE], table, sizeof table);
}

static void run_defects(const char *text, const struct defects_shape *s, uint64_t seed, bool one_by_one,
                        struct outcome *o)
{
    static struct kit k;
    kit_load(&k, text);
    add_buffers(&k, o, s, seed);
    k.launch.kernel = ptx_module_find_kernel(k.module, "k");
    k.launch.grid[0] = s->grid;
    k.launch.grid[1] = k.launch.grid[2] = 1;
    memcpy(k.launch.block, s->block, sizeof s->block);
    k.launch.one_by_one = one_by_one;
    k.launch.checked = true;
    k.launch.fill = 0xa5;
    k.launch.instruction_limit = 100000000;
    kit_choose_handlers();
    o->status = ptx_run(&k.launch, &o->result, &k.diag);
    if (o->result.guarded && o->result.fault_count)
        fail_msg("guarded, and yet there are faults");
    kit_free(&k);
}

static void free_outcome(struct outcome *o)
{
    for (int i = 0; i < BUFFERS; i++) {
        free(o->memory[i]);
        free(o->written[i]);
        free(o->read[i]);
        free(o->valid[i]);
    }
    ptx_result_free(&o->result);
}

static bool same_outcome(const struct outcome *a, const struct outcome *b)
{
    bool same = a->status == b->status && kit_same_faults(&a->result, &b->result) &&
                memcmp(&a->result.counts, &b->result.counts, sizeof a->result.counts) == 0;
    for (int i = 0; i < BUFFERS; i++)
        same = same && memcmp(a->memory[i], b->memory[i], a->bytes[i]) == 0 &&
               memcmp(a->written[i], b->written[i], a->bytes[i] / 8) == 0 &&
               memcmp(a->read[i], b->read[i], a->bytes[i] / 8) == 0;
    return same;
}

static void tell(unsigned long long seed, const struct outcome *exact, const struct outcome *guarded)
{
    print_message("seed %llu: %zu faults one by one, %zu under guard, %s\n", seed, exact->result.fault_count,
                  guarded->result.fault_count, guarded->result.guarded ? "sound" : guarded->result.doubt);
    for (size_t i = 0; i < exact->result.fault_count; i++)
        print_message("    %s, line %u\n", ptx_fault_kind_name(exact->result.faults[i].kind),
                      exact->result.faults[i].access.ptx_line);
    for (int i = 0; i < BUFFERS; i++)
        for (size_t n = 0; n < exact->bytes[i]; n++)
            if (exact->memory[i][n] != guarded->memory[i][n]) {
                print_message("    buffer %d differs at %zu\n", i, n);
                break;
            }
}

static void test_random_kernels(void **state)
{
    (void)state;
    unsigned long long from = 1, count = FIXED_SEEDS, wrong = 0, sound = 0, guarded = 0;
    const char *other = getenv("OPSDEBUG_GUARD_SEEDS"), *keep = getenv("OPSDEBUG_GUARD_TEXT"),
               *talk = getenv("OPSDEBUG_GUARD_TELL");
    char *text = malloc(DEFECTS_TEXT);
    assert_non_null(text);
    if (other)
        assert_int_equal(sscanf(other, "%llu %llu", &from, &count), 2);
    for (unsigned long long seed = from; seed < from + count; seed++) {
        struct defects_shape shape;
        struct outcome threads = {0}, lanes = {0};
        defects_kernel(seed, seed % 3 * 4, text, &shape);
        if (keep) {
            FILE *f = fopen(keep, "w");
            assert_non_null(f);
            fputs(text, f);
            fclose(f);
        }
        run_defects(text, &shape, seed, true, &threads);
        run_defects(text, &shape, seed, false, &lanes);
        if (!same_outcome(&threads, &lanes)) {
            tell(seed, &threads, &lanes);
            wrong++;
        }
        if (!threads.result.fault_count) {
            sound++;
            guarded += lanes.result.guarded;
            if (talk && !lanes.result.guarded)
                print_message("seed %llu: sound, but not guarded: %s, line %u\n", seed, lanes.result.doubt,
                              lanes.result.doubt_line);
        }
        free_outcome(&threads);
        free_outcome(&lanes);
    }
    free(text);
    print_message("%llu kernels, %llu sound, %llu of them guarded\n", count, sound, guarded);
    assert_int_equal(wrong, 0);
    assert_true(sound > count / 5 && guarded > sound / 2);
}

/* ---- one rule each, with its sound twin ---- */

enum { WORDS = 128 };
static uint32_t words[2][WORDS];
static uint8_t defined[2][WORDS / 2];

/* a, b: WORDS words each, side by side in memory; i, t: the thread's number in the grid and in its block. */
static void run_case(struct kit *k, const char *name, const char *body, uint32_t grid, enum ptx_fault_kind kind)
{
    static const char frame[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 pa, .param .u64 pb)\n{\n.reg "
        ".b64 "
        "%%a, %%b, %%x, %%y, %%z; .reg .b32 %%i, %%t, %%c, %%u, %%v, %%w; .reg .pred %%p, %%q;\n.shared .align 16 .b8 "
        "tile[1024];\n.local .align 16 .b8 own[16];\nld.param.u64 %%a, [pa]; ld.param.u64 %%b, [pb]; mov.u32 %%t, "
        "%%tid.x; mov.u32 %%c, %%ctaid.x; mad.lo.u32 %%i, %%c, 64, %%t; mad.wide.u32 %%x, %%i, 4, %%a; mad.wide.u32 "
        "%%y, %%t, 4, %%b; shl.b32 %%u, %%t, 2; mov.u32 %%v, tile; add.u32 %%u, %%u, %%v; mov.u32 %%v, "
        "7;\n%s\nret;\n}\n";
    char text[4096];
    (void)snprintf(text, sizeof text, frame, body);
    kit_load(k, text);
    memset(words, 0, sizeof words);
    memset(defined, 0xff, sizeof defined);
    for (int n = 0; n < 2; n++) {
        (void)kit_buffer(k, n, words[n], sizeof words[n]);
        k->ranges[n].valid = defined[n];
    }
    k->ranges[1].address = k->params[1] = k->params[0] + sizeof words[0];
    k->launch.checked = true;
    if (strcmp(name, "freed") == 0)
        k->ranges[1].flags = kind ? PTX_RANGE_FREED : 0;
    if (strcmp(name, "read-only") == 0)
        k->ranges[1].flags = kind ? PTX_RANGE_READ_ONLY : 0;
    if (strcmp(name, "undefined") == 0 && kind)
        defined[1][7] = 0x7f;
    (void)kit_run(k, "k", grid, 64);
    const enum ptx_fault_kind found = k->result.fault_count ? k->result.faults[0].kind : PTX_FAULT_NONE;
    if (found != kind || k->result.guarded != (kind == PTX_FAULT_NONE))
        fail_msg("%s: expected %s, found %s, %s", name, ptx_fault_kind_name(kind), ptx_fault_kind_name(found),
                 k->result.guarded ? "guarded" : k->result.doubt);
    kit_free(k);
}

static void test_one_rule_each(void **state)
{
    (void)state;
    static const struct {
        const char *name, *wrong, *right;
        enum ptx_fault_kind kind;
        uint32_t grid;
    } cases[] = {
        {"past the end", "st.global.u32 [%x+4], %v;", "st.global.u32 [%x], %v;", PTX_FAULT_OUT_OF_BOUNDS, 2},
        {"another's range", "ld.global.u32 %v, [%y+256]; ld.global.u32 %w, [%x+260];",
         "ld.global.u32 %v, [%y+256]; ld.global.u32 %w, [%x+256];", PTX_FAULT_OUT_OF_BOUNDS, 1},
        {"one of two ranges", "setp.lt.u32 %p, %t, 8; selp.b64 %z, %a, %b, %p; @%p ld.global.u32 %v, [%z+512];",
         "ld.global.u32 %v, [%b+508];", PTX_FAULT_OUT_OF_BOUNDS, 1},
        {"a pointer among the parameters, by its address",
         "mov.b64 %z, pa; ld.param.u64 %z, [%z]; ld.global.u32 %v, [%z+512];",
         "mov.b64 %z, pa; ld.param.u64 %z, [%z]; cvt.u32.u64 %v, %z;", PTX_FAULT_OUT_OF_BOUNDS, 1},
        {"a pointer among the parameters, by a generic address",
         "mov.b64 %z, pa; cvta.param.u64 %z, %z; ld.u64 %z, [%z]; ld.global.u32 %v, [%z+512];",
         "mov.b64 %z, pa; cvta.param.u64 %z, %z; ld.u64 %y, [%z]; cvt.u32.u64 %v, %y;", PTX_FAULT_OUT_OF_BOUNDS, 1},
        {"a pointer that the lane before exchanged",
         "atom.global.exch.b64 %z, [%b], %a; setp.ne.u64 %p, %z, 0; @%p ld.global.u32 %v, [%z+512];",
         "atom.global.exch.b64 %z, [%b], 4; add.u64 %z, %a, %z; ld.global.u32 %v, [%z+4];", PTX_FAULT_OUT_OF_BOUNDS, 1},
        {"a pointer that the lane before put into shared memory",
         "setp.eq.u32 %p, %t, 0; @%p st.shared.u64 [tile], 0; bar.sync 0; atom.shared.cas.b64 %z, [tile], 0, %a; "
         "setp.ne.u64 %p, %z, 0; @%p ld.global.u32 %v, [%z+512];",
         "setp.eq.u32 %p, %t, 0; @%p st.shared.u64 [tile], 0; bar.sync 0; atom.shared.cas.b64 %z, [tile], 0, 4; "
         "add.u64 %z, %a, %z; ld.global.u32 %v, [%z+4];",
         PTX_FAULT_OUT_OF_BOUNDS, 1},
        {"misaligned", "ld.global.u32 %v, [%y+2];", "ld.global.u16 %v, [%y+2];", PTX_FAULT_MISALIGNED, 1},
        {"freed", "ld.global.u32 %v, [%y];", "ld.global.u32 %v, [%y];", PTX_FAULT_FREED, 1},
        {"read-only", "st.global.u32 [%y], %v;", "st.global.u32 [%y], %v;", PTX_FAULT_READ_ONLY, 1},
        {"undefined", "ld.global.u32 %v, [%y]; add.u32 %v, %v, 1;", "ld.global.u32 %v, [%y]; add.u32 %v, %v, 1;",
         PTX_FAULT_UNINITIALISED, 1},
        {"shared, never written", "ld.shared.u32 %v, [%u]; add.u32 %v, %v, 1;",
         "st.shared.u32 [%u], %v; ld.shared.u32 %v, [%u]; add.u32 %v, %v, 1;", PTX_FAULT_UNINITIALISED, 1},
        {"shared, written by the block before",
         "setp.eq.u32 %p, %c, 0; @%p st.shared.u32 [%u], %v; ld.shared.u32 %v, [%u]; add.u32 %v, %v, 1;",
         "st.shared.u32 [%u], %v; ld.shared.u32 %v, [%u]; add.u32 %v, %v, 1;", PTX_FAULT_UNINITIALISED, 2},
        {"atomic on what nobody wrote", "red.shared.add.u32 [tile], %v;",
         "setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [tile], 0; bar.sync 0; red.shared.add.u32 [tile], %v;",
         PTX_FAULT_UNINITIALISED, 1},
        {"local, never written", "ld.local.u32 %v, [own+4]; add.u32 %v, %v, 1;",
         "st.local.u32 [own+4], %v; ld.local.u32 %v, [own+4]; add.u32 %v, %v, 1;", PTX_FAULT_UNINITIALISED, 1},
        {"another warp's shared row", "st.shared.u32 [%u], %v; xor.b32 %w, %u, 128; ld.shared.u32 %v, [%w];",
         "st.shared.u32 [%u], %v; bar.sync 0; xor.b32 %w, %u, 128; ld.shared.u32 %v, [%w];", PTX_FAULT_SHARED_RACE, 1},
        {"shared row written after others read it",
         "st.shared.u32 [%u], %v; bar.sync 0; ld.shared.u32 %v, [tile+4]; st.shared.u32 [%u], %v;",
         "st.shared.u32 [%u], %v; bar.sync 0; ld.shared.u32 %v, [tile+4]; bar.sync 0; st.shared.u32 [%u], %v;",
         PTX_FAULT_SHARED_RACE, 1},
        {"another lane's word", "st.shared.u32 [%u], %v; xor.b32 %w, %u, 4; ld.shared.u32 %v, [%w];",
         "st.shared.u32 [%u], %v; bar.warp.sync 0xffffffff; xor.b32 %w, %u, 4; ld.shared.u32 %v, [%w];",
         PTX_FAULT_SHARED_RACE, 1},
        {"lanes that met without the one that reads",
         "setp.lt.u32 %p, %t, 16; @%p bar.warp.sync 0xffff; st.global.u32 [%x], %v; @%p bar.warp.sync 0xffff; "
         "setp.ge.u32 %p, %t, 32; @%p ret; setp.ge.u32 %p, %t, 16; @%p ld.global.u32 %v, [%x+-64];",
         "setp.lt.u32 %p, %t, 16; @%p bar.warp.sync 0xffff; st.global.u32 [%x], %v; @%p bar.warp.sync 0xffff; "
         "setp.ge.u32 %p, %t, 32; @%p ret; bar.warp.sync 0xffffffff; setp.ge.u32 %p, %t, 16; @%p ld.global.u32 %v, "
         "[%x+-64];",
         PTX_FAULT_GLOBAL_RACE, 1},
        {"all lanes to one place", "st.global.u32 [%a], %t;", "setp.eq.u32 %p, %t, 3; @%p st.global.u32 [%a], %t;",
         PTX_FAULT_GLOBAL_RACE, 1},
        {"another warp's row",
         "st.global.u32 [%x], %v; xor.b32 %w, %i, 32; mad.wide.u32 %z, %w, 4, %a; ld.global.u32 %v, [%z];",
         "st.global.u32 [%x], %v; bar.sync 0; xor.b32 %w, %i, 32; mad.wide.u32 %z, %w, 4, %a; ld.global.u32 %v, [%z];",
         PTX_FAULT_GLOBAL_RACE, 1},
        {"rows of other elements",
         "setp.lt.u32 %p, %t, 8; mad.wide.u32 %z, %t, 8, %a; @%p st.global.v2.u32 [%z], {%v, %v}; setp.lt.u32 %q, %t, "
         "16; @%q ld.global.u32 %w, [%x];",
         "setp.lt.u32 %p, %t, 8; mad.wide.u32 %z, %t, 8, %a; @%p st.global.v2.u32 [%z], {%v, %v}; bar.sync 0; "
         "setp.lt.u32 %q, %t, 16; @%q ld.global.u32 %w, [%x];",
         PTX_FAULT_GLOBAL_RACE, 1},
        {"read by the block before", "setp.ne.u32 %p, %c, 0; ld.global.u32 %w, [%y]; @%p st.global.u32 [%y], %v;",
         "setp.ne.u32 %p, %c, 0; @%p ld.global.u32 %w, [%y]; @%p st.global.u32 [%y], %v;", PTX_FAULT_GLOBAL_RACE, 2},
        {"written by the block before", "setp.eq.u32 %p, %c, 0; @%p st.global.u32 [%y], %v; ld.global.u32 %w, [%y];",
         "st.global.u32 [%x], %v; ld.global.u32 %w, [%x];", PTX_FAULT_GLOBAL_RACE, 2},
        {"a barrier that some leave out", "setp.lt.u32 %p, %t, 32; @%p bar.sync 1; bar.sync 0;",
         "bar.sync 1; bar.sync 0;", PTX_FAULT_BARRIER, 1},
    };
    static struct kit k;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_case(&k, cases[i].name, cases[i].wrong, cases[i].grid, cases[i].kind);
        run_case(&k, cases[i].name, cases[i].right, cases[i].grid, PTX_FAULT_NONE);
    }
}

/* The kernels whose speed is measured are guarded: in place, tiled, divergent, with barriers and shuffles. */
static void test_usual_kernels(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t block[2], grid[2], last[2];
        int pointers, last_count;
    } kernels[] = {
        {"vector_add", {64, 1}, {4, 1}, {250}, 3, 1},     {"matrix_multiply", {16, 16}, {2, 2}, {32}, 3, 1},
        {"matrix_multiply", {32, 8}, {1, 4}, {32}, 3, 1}, {"matrix_tiled", {16, 16}, {2, 2}, {32}, 3, 1},
        {"mandelbrot", {32, 1}, {1, 16}, {32, 50}, 1, 2}, {"hash", {64, 1}, {4, 1}, {20}, 1, 1},
        {"tree_sum", {256, 1}, {3, 1}, {700}, 2, 1},      {"shuffle_sum", {256, 1}, {3, 1}, {700}, 2, 1},
    };
    static float memory[3][1024];
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        static struct kit k;
        kit_load_file(&k, "bench.ptx");
        for (int n = 0; n < 3; n++)
            (void)kit_buffer(&k, n, memory[n], sizeof memory[n]);
        memcpy(&k.params[kernels[i].pointers], kernels[i].last, 4u * (unsigned)kernels[i].last_count);
        k.launch.block[1] = kernels[i].block[1];
        k.launch.grid[1] = kernels[i].grid[1];
        k.launch.checked = true;
        assert_int_equal(kit_run(&k, kernels[i].name, kernels[i].grid[0], kernels[i].block[0]), STATUS_OK);
        if (!k.result.guarded)
            fail_msg("%s is not guarded: %s, line %u", kernels[i].name, k.result.doubt, k.result.doubt_line);
        kit_free(&k);
    }
}

/* The first block waits for what the last one does, or counts as long: the former is seen soon, the latter guarded. */
static void run_waiting(const char *body, const char *doubt)
{
    static const char frame[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 pa)\n{\n.reg .b64 %%a; .reg .b32 "
        "%%c, %%v, %%n; .reg .pred %%p, %%q;\nld.param.u64 %%a, [pa]; mov.u32 %%c, %%ctaid.x; mov.u32 %%n, 0;\n"
        "setp.ne.u32 %%q, %%c, 0; @%%q bra LATER;\nAGAIN: %s\n@%%p bra AGAIN; bra END;\nLATER: setp.ne.u32 %%q, %%c, "
        "2; "
        "@%%q bra END; st.volatile.global.u32 [%%a], 1;\nEND: ret;\n}\n";
    static struct kit k;
    char text[1024];
    (void)snprintf(text, sizeof text, frame, body);
    kit_load(&k, text);
    memset(words, 0, sizeof words);
    (void)kit_buffer(&k, 0, words[0], sizeof words[0]);
    k.launch.checked = true;
    assert_int_equal(kit_run(&k, "k", 3, 64), STATUS_OK);
    assert_int_equal(k.result.fault_count, 0);
    assert_int_equal(k.result.guarded, !doubt);
    if (doubt)
        assert_string_equal(k.result.doubt, doubt);
    kit_free(&k);
}

static void test_blocks_that_wait(void **state)
{
    (void)state;
    run_waiting("ld.volatile.global.u32 %v, [%a]; setp.eq.u32 %p, %v, 0;", "a block that waits for others");
    run_waiting("nanosleep.u32 20; atom.global.or.b32 %v, [%a], 0; setp.eq.u32 %p, %v, 0;",
                "a block that waits for others");
    run_waiting("add.u32 %n, %n, 1; ld.volatile.global.u32 %v, [%a]; setp.lt.u32 %p, %n, 100000;", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_kernels),
        cmocka_unit_test(test_one_rule_each),
        cmocka_unit_test(test_usual_kernels),
        cmocka_unit_test(test_blocks_that_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
