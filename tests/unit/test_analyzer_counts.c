/* What verify counts on the way, how it is kept and told, and the bounds that follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/bound.h"
#include "analyzer/line_counts.h"
#include "analyzer/pattern.h"
#include "analyzer/place.h"
#include "analyzer/store.h"
#include "tests/unit/verify_kit.h"

/* take(out, in): out[i] = in[i * step / 4], after `rounds` multiplications by 1; the load is line 10, the loop line 11.
 */
#define TAKE(step, rounds)                                                                                             \
    ".version 7.0\n.target sm_75\n.address_size 64\n.file 1 \"/src/take.cu\"\n"                                        \
    ".visible .entry take(.param .u64 out, .param .u64 in)\n{\n"                                                       \
    ".reg .pred %p<2>;\n.reg .f32 %f<4>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<8>;\n"                                       \
    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nmov.u32 %r1, %tid.x;\n"                                      \
    "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\nmul.wide.u32 %rd6, %r1, " step                             \
    ";\nadd.s64 %rd5, %rd2, %rd6;\n.loc 1 10 5\nld.global.f32 %f1, [%rd5];\nmov.u32 %r2, 0;\n.loc 1 11 5\n"            \
    "LOOP:\nfma.rn.f32 %f1, %f1, 0f3F800000, 0f00000000;\nadd.s32 %r2, %r2, 1;\n"                                      \
    "setp.lt.u32 %p1, %r2, " rounds ";\n@%p1 bra LOOP;\n.loc 1 20 5\nst.global.f32 [%rd4], %f1;\nret;\n}\n"

static const char side_by_side_ptx[] = TAKE("4", "1");
static const char strided_ptx[] = TAKE("128", "1");
static const char long_ptx[] = TAKE("4", "10000");

enum { OUT = 0x700000, IN = 0x710000, COUNT = 64, STEP = 32 };

struct bench {
    struct capture_make make;
    uint32_t out, in, kernel, config;
    float before[COUNT], input[COUNT * STEP], after[COUNT];
    struct session session;
};

static void bench_verify(struct bench *b, const char *ptx, uint32_t step, const char *device)
{
    uint64_t params[2] = {OUT, IN};
    *b = (struct bench){0};
    capture_make_start(&b->make);
    uint32_t module = capture_make_module(&b->make, ptx);
    struct cap_device r = {.head.type = CAP_DEVICE, .name = capture_make_string(&b->make, device), .major = 9};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
    b->kernel = capture_make_kernel(&b->make, module, "take", (const uint32_t[]){8, 8, 0});
    b->config = capture_make_config(&b->make, 1, COUNT);
    b->out = capture_make_alloc(&b->make, OUT, sizeof b->before);
    b->in = capture_make_alloc(&b->make, IN, sizeof b->input);
    capture_make_copy_in(&b->make, OUT, sizeof b->before);
    capture_make_copy_in(&b->make, IN, sizeof b->input);
    for (int i = 0; i < COUNT * STEP; i++)
        b->input[i] = 1 + (float)i;
    for (uint32_t i = 0; i < COUNT; i++)
        b->after[i] = b->input[i * step];
    for (int i = 0; i < 2; i++) {
        uint64_t launch = capture_make_launch(&b->make, b->kernel, b->config, params, sizeof params);
        capture_make_snapshot(&b->make, launch, b->out, CAP_BEFORE, i ? b->after : b->before, sizeof b->before);
        capture_make_snapshot(&b->make, launch, b->in, CAP_BEFORE, b->input, sizeof b->input);
        capture_make_snapshot(&b->make, launch, b->out, CAP_AFTER, b->after, sizeof b->after);
        capture_make_snapshot(&b->make, launch, b->in, CAP_AFTER, b->input, sizeof b->input);
    }
    verify_kit_verify(&b->make, &b->session);
    assert_int_equal(b->session.findings.count, 0);
    assert_int_equal(b->session.judgements.count, 2);
}

static void bench_end(struct bench *b)
{
    verify_kit_end(&b->make, &b->session);
}

static void test_counts_of_a_launch(void **state)
{
    (void)state;
    struct bench b;
    bench_verify(&b, side_by_side_ptx, 1, "softgpu");
    const struct judgement_counts *c = &b.session.judgements.items[0].counts;
    assert_true(c->known);
    assert_int_equal(c->operations[JUDGEMENT_OPERATION_F32], 2 * COUNT);
    assert_int_equal(c->operations[JUDGEMENT_OPERATION_F64], 0);
    assert_int_equal(c->threads, b.session.judgements.items[0].instructions);
    assert_int_equal(c->alone, 0);
    assert_int_equal(c->warp_threads, 32 * c->warps);
    assert_int_equal(c->requests, 4);
    assert_int_equal(c->sectors, 16);
    assert_int_equal(c->ideal_sectors, 16);
    assert_int_equal(c->branches, 2);
    assert_int_equal(c->divergent, 0);
    assert_int_equal(c->pattern_count, 0);
    struct patterns none = patterns_of(b.session.model, &b.session.judgements);
    assert_int_equal(none.count, 0);
    free(none.items);
    bench_end(&b);
}

static void test_patterns_of_a_strided_load(void **state)
{
    (void)state;
    struct bench b;
    bench_verify(&b, strided_ptx, STEP, "softgpu");
    struct patterns all = patterns_of(b.session.model, &b.session.judgements);
    char text[PATTERN_TEXT];
    assert_int_equal(all.count, 1);
    assert_int_equal(all.items[0].kind, JUDGEMENT_PATTERN_SECTORS);
    assert_int_equal(all.items[0].launch, 1);
    assert_int_equal(all.items[0].launches, 2);
    assert_int_equal(all.items[0].requests, 4);
    assert_int_equal(all.items[0].actual, 128);
    assert_int_equal(all.items[0].ideal, 16);
    const struct judgement_frame *frame = place_frame(all.items[0].place);
    assert_non_null(frame);
    assert_string_equal(frame->file, "/src/take.cu");
    assert_int_equal(frame->line, 10);
    pattern_text(&all.items[0], text);
    assert_string_equal(text, "sectors per request 32 where 4 are ideal");
    free(all.items);
    bench_end(&b);
}

static void test_counts_round_trip(void **state)
{
    (void)state;
    struct bench b;
    struct judgements read;
    struct diag diag;
    bench_verify(&b, strided_ptx, STEP, "softgpu");
    assert_int_equal(store_write(b.session.model, &b.session.judgements, NULL, &diag), STATUS_OK);
    assert_int_equal(store_read(b.session.model, &read, &diag), STATUS_OK);
    assert_int_equal(read.count, 2);
    struct judgement_counts mine = b.session.judgements.items[1].counts, kept = read.items[1].counts;
    assert_int_equal(kept.pattern_count, 1);
    assert_int_equal(kept.patterns[0].kind, mine.patterns[0].kind);
    assert_int_equal(kept.patterns[0].actual, mine.patterns[0].actual);
    assert_true(place_equal(&kept.patterns[0].access, &mine.patterns[0].access));
    mine.patterns = kept.patterns = NULL;
    assert_memory_equal(&mine, &kept, sizeof mine);
    judgements_free(&read);
    bench_end(&b);
}

static void test_bound_by_operations(void **state)
{
    (void)state;
    static const struct {
        const char *ptx, *device;
        enum bound_by by;
        double ns;
    } cases[] = {
        {side_by_side_ptx, "NVIDIA H200", BOUND_MEMORY, COUNT * 8 / 4800e9 * 1e9},
        {long_ptx, "NVIDIA H200", BOUND_COMPUTE, 2.0 * COUNT * 10000 / 67e12 * 1e9},
        {long_ptx, "softgpu", BOUND_UNKNOWN, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        bench_verify(&b, cases[i].ptx, 1, cases[i].device);
        struct bound_walk walk;
        bound_walk_start(&walk, b.session.model, &b.session.judgements);
        struct bound bound = bound_walk_next(&walk, &b.session.model->launches[0]);
        assert_int_equal(bound.by, cases[i].by);
        assert_int_equal(bound.ns, (uint64_t)ceil(cases[i].ns));
        assert_true(bound.counted);
        assert_int_equal(bound.operations, cases[i].ptx == long_ptx ? 2 * COUNT * 10000 : 2 * COUNT);
        bound_walk_end(&walk);
        bench_end(&b);
    }
}

static void test_counted_by_line(void **state)
{
    (void)state;
    struct bench b;
    struct verify v;
    struct verify_options options = {.workers = 1, .instruction_limit = 10000000};
    struct verify_memory memory = {0};
    struct reference_launch run;
    struct reference_result result;
    struct judgement j = {0};
    struct counted counted = {0};
    struct diag diag;
    bench_verify(&b, long_ptx, 1, "softgpu");
    assert_int_equal(verify_start(&v, b.session.model, &options, &diag), STATUS_OK);
    model_live_advance(&v.live, model_launch_seq(&b.session.model->launches[0]));
    assert_true(verify_profile(&v, &b.session.model->launches[0], NULL, &run, &memory, &result, &j));
    assert_null(result.reason);
    counted_add(&counted, run.module, result.profile);
    counted_add(&counted, run.module, result.profile);
    counted_sort(&counted);
    assert_int_equal(counted.launches, 2);
    const struct judgement_frame *frame = place_frame(&counted.lines[0].place);
    assert_int_equal(frame->line, 11);
    assert_int_equal(counted.lines[0].threads, 2 * COUNT * 4 * 10000);
    assert_int_equal(counted.lines[0].flops, 2 * COUNT * 2 * 10000);
    uint64_t all = 0;
    for (size_t i = 0; i < counted.count; i++)
        all += counted.lines[i].threads;
    assert_int_equal(all, counted.total.threads);
    assert_int_equal(counted.total.threads, 2 * result.instructions);
    counted_free(&counted);
    reference_result_free(&result);
    verify_memory_free(&memory);
    judgement_clear(&j);
    verify_end(&v);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_of_a_launch), cmocka_unit_test(test_patterns_of_a_strided_load),
        cmocka_unit_test(test_counts_round_trip),  cmocka_unit_test(test_bound_by_operations),
        cmocka_unit_test(test_counted_by_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
