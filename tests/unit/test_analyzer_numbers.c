/* What the shadow run says about numbers, and the commands that look at values, on synthetic captures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/attribute.h"
#include "analyzer/bound.h"
#include "analyzer/health.h"
#include "analyzer/npy.h"
#include "analyzer/store.h"
#include "tests/unit/verify_kit.h"

/* map(out, in): out[i] = body of in[i], %f1 to %f9; the body starts at line 10. */
#define MAP(body)                                                                                                      \
    ".version 7.0\n.target sm_75\n.address_size 64\n.file 1 \"/src/map.cu\"\n"                                         \
    ".visible .entry map(.param .u64 out, .param .u64 in)\n{\n"                                                        \
    ".reg .pred %p<2>;\n.reg .f32 %f<10>;\n.reg .f64 %d<4>;\n.reg .b32 %r<6>;\n.reg .b64 %rd<8>;\n"                    \
    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nmov.u32 %r1, %tid.x;\n"                                      \
    "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"                               \
    "ld.global.f32 %f1, [%rd5];\n.loc 1 10 5\n" body ".loc 1 20 5\nst.global.f32 [%rd4], %f9;\nret;\n}\n"

static const char root_ptx[] = MAP("sqrt.rn.f32 %f9, %f1;\n");
static const char add_ptx[] = MAP("add.rn.f32 %f9, %f1, 0f3F800000;\n");
/* sqrt(x + 1) - sqrt(x): the last line loses what the input knows. */
static const char cancel_ptx[] = MAP("add.rn.f32 %f2, %f1, 0f3F800000;\nsqrt.rn.f32 %f3, %f2;\nsqrt.rn.f32 %f4, %f1;\n"
                                     ".loc 1 11 5\nsub.rn.f32 %f9, %f3, %f4;\n");
/* sqrt(x) - 1000: an input off by half a unit in its last place moves the true result as much. */
static const char ill_ptx[] = MAP("sqrt.rn.f32 %f3, %f1;\nsub.rn.f32 %f9, %f3, 0f447A0000;\n");
static const char constant_ptx[] = MAP("mov.f32 %f9, 0f7FFFFFFF;\n");
static const char masked_ptx[] = MAP("sqrt.rn.f32 %f2, %f1;\nsetp.lt.f32 %p1, %f1, 0f00000000;\n"
                                     "selp.f32 %f9, 0f00000000, %f2, %p1;\n");

enum { OUT = 0x700000, IN = 0x710000, COUNT = 64, NAN_BITS = 0x7fffffff };

struct bench {
    struct capture_make make;
    uint32_t out, in, kernel, config;
    float before[COUNT], input[COUNT], after[COUNT];
    struct session session;
};

static void bench_start(struct bench *b, const char *ptx)
{
    *b = (struct bench){0};
    capture_make_start(&b->make);
    uint32_t module = capture_make_module(&b->make, ptx);
    b->kernel = capture_make_kernel(&b->make, module, "map", (const uint32_t[]){8, 8, 0});
    b->config = capture_make_config(&b->make, 1, COUNT);
    b->out = capture_make_alloc(&b->make, OUT, sizeof b->before);
    b->in = capture_make_alloc(&b->make, IN, sizeof b->input);
    capture_make_copy_in(&b->make, OUT, sizeof b->before);
    capture_make_copy_in(&b->make, IN, sizeof b->input);
    for (int i = 0; i < COUNT; i++)
        b->input[i] = 1e6f + 1000.0f * (float)i;
}

static void bench_launch(struct bench *b)
{
    uint64_t params[2] = {OUT, IN};
    uint64_t launch = capture_make_launch(&b->make, b->kernel, b->config, params, sizeof params);
    capture_make_snapshot(&b->make, launch, b->out, CAP_BEFORE, b->before, sizeof b->before);
    capture_make_snapshot(&b->make, launch, b->in, CAP_BEFORE, b->input, sizeof b->input);
    capture_make_snapshot(&b->make, launch, b->out, CAP_AFTER, b->after, sizeof b->after);
    capture_make_snapshot(&b->make, launch, b->in, CAP_AFTER, b->input, sizeof b->input);
}

static void bench_verify(struct bench *b)
{
    verify_kit_verify(&b->make, &b->session);
}

static void bench_end(struct bench *b)
{
    verify_kit_end(&b->make, &b->session);
}

static void silent(struct bench *b)
{
    bench_verify(b);
    verify_kit_finds_nothing(&b->session);
    bench_end(b);
}

static const struct finding *only(struct bench *b, enum finding_class class, unsigned line)
{
    bench_verify(b);
    const struct finding *f = verify_kit_only(&b->session, class);
    assert_string_equal(f->file, "/src/map.cu");
    assert_int_equal(f->line, line);
    assert_int_equal(f->allocation, b->out);
    assert_non_null(strstr(f->next[0], "ops-debug attribute"));
    return f;
}

/* Element 5 is negative; its root is NaN. */
static void root_bench(struct bench *b)
{
    bench_start(b, root_ptx);
    b->input[5] = -2.0f;
    for (int i = 0; i < COUNT; i++)
        b->after[i] = sqrtf(b->input[i]);
    memcpy(&b->after[5], &(uint32_t){NAN_BITS}, 4);
}

/* ---- judging ---- */

static void test_numbers_nan_with_operands(void **state)
{
    struct bench b;
    root_bench(&b);
    bench_launch(&b);
    const struct finding *f = only(&b, FINDING_NAN_ORIGIN, 10);
    assert_int_equal(f->offset, 20);
    assert_int_equal(f->thread[0], 5);
    assert_non_null(strstr(f->summary, "-2"));
    assert_non_null(strstr(f->summary, "1 of 64"));
    bench_end(&b);
}

static void test_numbers_root_of_numbers(void **state)
{
    struct bench b;
    bench_start(&b, root_ptx);
    for (int i = 0; i < COUNT; i++)
        b.after[i] = sqrtf(b.input[i]);
    bench_launch(&b);
    silent(&b);
}

static void test_numbers_approximation_with_line(void **state)
{
    struct bench b;
    bench_start(&b, cancel_ptx);
    for (int i = 0; i < COUNT; i++)
        b.after[i] = sqrtf(b.input[i] + 1.0f) - sqrtf(b.input[i]);
    bench_launch(&b);
    const struct finding *f = only(&b, FINDING_APPROXIMATION, 11);
    assert_non_null(strstr(f->evidence[0].text, "fp64"));
    bench_end(&b);
}

static void test_numbers_ill_conditioned_twin(void **state)
{
    struct bench b;
    bench_start(&b, ill_ptx);
    for (int i = 0; i < COUNT; i++) {
        b.input[i] = 1e6f + 0.125f * (float)(i + 1);
        b.after[i] = sqrtf(b.input[i]) - 1000.0f;
    }
    bench_launch(&b);
    silent(&b);
}

static void test_numbers_nan_constant(void **state)
{
    struct bench b;
    bench_start(&b, constant_ptx);
    for (int i = 0; i < COUNT; i++)
        memcpy(&b.after[i], &(uint32_t){NAN_BITS}, 4);
    bench_launch(&b);
    silent(&b);
}

static void test_numbers_nan_masked(void **state)
{
    struct bench b;
    bench_start(&b, masked_ptx);
    b.input[5] = -2.0f;
    for (int i = 0; i < COUNT; i++)
        b.after[i] = b.input[i] < 0 ? 0 : sqrtf(b.input[i]);
    bench_launch(&b);
    silent(&b);
}

static void reason_is(struct bench *b, const char *reason)
{
    bench_verify(b);
    struct coverage c = coverage_of(b->session.model, &b->session.judgements);
    assert_int_equal(c.operator.checked, 0);
    assert_string_equal(c.operator.not[0].reason, reason);
    assert_int_equal(b->session.findings.count, 0);
    bench_end(b);
}

static void test_numbers_no_floats(void **state)
{
    struct bench b;
    bench_start(&b, MAP("mov.u32 %r2, 7;\nst.global.u32 [%rd4], %r2;\nret;\n"));
    for (int i = 0; i < COUNT; i++)
        memcpy(&b.after[i], &(uint32_t){7}, 4);
    bench_launch(&b);
    reason_is(&b, "no-floats");
}

/* The first half of the threads store doubles. */
#define DOUBLES(body)                                                                                                  \
    MAP("setp.gt.u32 %p1, %r1, 31;\n@%p1 bra DONE;\nadd.s64 %rd4, %rd4, %rd3;\ncvt.f64.f32 %d1, %f1;\n"                \
        "mul.rn.f64 %d1, %d1, 0d41CDCD6500000000;\n" body "st.global.f64 [%rd4], %d3;\nDONE:\nret;\n")

/* x * 1e9 + 0.3 - x * 1e9: at 1e15 a double has steps of an eighth. */
static void test_numbers_doubles_that_cancel(void **state)
{
    struct bench b;
    double after[COUNT / 2];
    for (int sound = 0; sound < 2; sound++) {
        bench_start(&b, sound ? DOUBLES("sub.rn.f64 %d2, %d1, %d1;\nadd.rn.f64 %d3, %d2, 0d3FD3333333333333;\n")
                              : DOUBLES("add.rn.f64 %d2, %d1, 0d3FD3333333333333;\n.loc 1 12 5\nsub.rn.f64 %d3, %d2, "
                                        "%d1;\n"));
        for (int i = 0; i < COUNT / 2; i++) {
            double d = (double)b.input[i] * 1e9;
            after[i] = sound ? 0.3 : d + 0.3 - d;
        }
        memcpy(b.after, after, sizeof after);
        bench_launch(&b);
        if (sound) {
            silent(&b);
        } else {
            only(&b, FINDING_APPROXIMATION, 12);
            bench_end(&b);
        }
    }
}

static void test_numbers_lost_shadow(void **state)
{
    struct bench b;
    bench_start(&b, MAP("sqrt.rn.f32 %f2, %f1;\nmov.b32 %r2, %f2;\nmul.lo.s32 %r2, %r2, 3;\nmov.b32 %f3, "
                        "%r2;\nneg.f32 %f9, %f3;\n"));
    for (int i = 0; i < COUNT; i++) {
        float root = sqrtf(b.input[i]);
        uint32_t bits;
        memcpy(&bits, &root, sizeof bits);
        bits = bits * 3 ^ UINT32_C(0x80000000);
        memcpy(&b.after[i], &bits, sizeof bits);
    }
    bench_launch(&b);
    reason_is(&b, "lost-shadow");
}

static void test_numbers_round_trip(void **state)
{
    struct bench b;
    struct judgements again;
    struct diag diag;
    root_bench(&b);
    bench_launch(&b);
    bench_verify(&b);
    assert_int_equal(store_write(b.session.model, &b.session.judgements, NULL, &diag), STATUS_OK);
    assert_int_equal(store_read(b.session.model, &again, &diag), STATUS_OK);
    assert_int_equal(again.items[0].number_count, 1);
    const struct judgement_number *x = &b.session.judgements.items[0].numbers[0], *y = &again.items[0].numbers[0];
    assert_int_equal(x->kind, y->kind);
    assert_int_equal(y->operand_count, 1);
    assert_true(y->operands[0] == -2.0);
    assert_true(isnan(x->result) && isnan(y->result));
    assert_true(isnan(x->stored) && isnan(y->stored));
    assert_int_equal(x->count, y->count);
    assert_int_equal(x->offset, y->offset);
    assert_true(again.items[0].bytes_known);
    assert_int_equal(again.items[0].bytes_read, sizeof b.input);
    assert_int_equal(again.items[0].bytes_written, sizeof b.after);
    judgements_free(&again);
    bench_end(&b);
}

/* ---- attribute ---- */

static void test_attribute_elements(void **state)
{
    struct bench b;
    struct attribute a;
    struct diag diag;
    root_bench(&b);
    b.after[6] += 1.0f; /* the device's own mistake */
    bench_launch(&b);
    verify_kit_open(&b.make, &b.session);
    struct attribute_request request = {.launch = model_launch_by_number(b.session.model, 1),
                                        .allocation = model_allocation_by_id(b.session.model, b.out),
                                        .has_range = true,
                                        .from = 4,
                                        .to = 7};
    assert_int_equal(attribute_make(b.session.model, &request, &a, &diag), STATUS_OK);
    assert_string_equal(a.reason, "");
    assert_int_equal(a.type, ELEMENT_F32);
    assert_int_equal(a.row_count, 3);
    assert_int_equal(a.input_count, 1);
    assert_int_equal(a.inputs[0]->id, b.in);
    assert_true(a.rows[0].reference.value == (double)b.after[4] && !a.rows[0].bits_differ);
    assert_true(fabs(a.rows[0].wide.value - sqrt((double)b.input[4])) < 1e-9);
    assert_int_equal(a.rows[0].stored.thread[0], 4);
    assert_true(isnan(a.rows[1].device.value));
    assert_int_equal(a.rows[1].origin.frames[0].line, 10);
    assert_true(a.rows[1].inputs[0].value == -2.0);
    assert_true(a.rows[2].bits_differ);
    for (size_t i = 0; i < a.buffer_count; i++)
        if (a.buffers[i].allocation->id == b.out) {
            assert_true(a.buffers[i].stored);
            assert_int_equal(a.buffers[i].before.zeros, COUNT);
            assert_int_equal(a.buffers[i].after.nans, 1);
        }
    attribute_free(&a);
    request.to = COUNT + 1;
    assert_int_equal(attribute_make(b.session.model, &request, &a, &diag), STATUS_BAD_INPUT);
    bench_end(&b);
}

/* Without a range and an allocation: the worst element of the worst output. */
static void test_attribute_worst(void **state)
{
    struct bench b;
    struct attribute a;
    struct diag diag;
    root_bench(&b);
    bench_launch(&b);
    verify_kit_open(&b.make, &b.session);
    struct attribute_request request = {.launch = model_launch_by_number(b.session.model, 1), .around = -1};
    assert_int_equal(attribute_make(b.session.model, &request, &a, &diag), STATUS_OK);
    assert_int_equal(a.allocation->id, b.out);
    assert_true(a.rows[0].element <= 5 && a.rows[a.row_count - 1].element >= 5);
    attribute_free(&a);
    bench_end(&b);
}

/* Every row that is shown says who stored it, wherever it lies. */
static void test_attribute_stored_by(void **state)
{
    static const int64_t around[] = {0, 100, sizeof(float) * COUNT};
    for (size_t n = 0; n < sizeof around / sizeof *around; n++) {
        struct bench b;
        struct attribute a;
        struct diag diag;
        root_bench(&b);
        bench_launch(&b);
        verify_kit_open(&b.make, &b.session);
        struct attribute_request request = {.launch = model_launch_by_number(b.session.model, 1),
                                            .allocation = model_allocation_by_id(b.session.model, b.out),
                                            .around = around[n]};
        assert_int_equal(attribute_make(b.session.model, &request, &a, &diag), STATUS_OK);
        assert_int_equal(a.row_count, ATTRIBUTE_TRACED);
        for (size_t i = 0; i < a.row_count; i++) {
            assert_int_not_equal(a.rows[i].stored.ptx_line, 0);
            assert_int_equal(a.rows[i].stored.thread[0], a.rows[i].element);
        }
        attribute_free(&a);
        bench_end(&b);
    }
}

/* out[i] = out[i + 1] for the first 60, behind what the others store: who stored it can be told of what nobody reads.
 */
static const char shift_ptx[] =
    MAP("setp.ge.u32 %p1, %r1, 60;\nmov.f32 %f9, %f1;\n@!%p1 ld.global.f32 %f9, [%rd4+4];\n");

static void test_attribute_stored_and_read(void **state)
{
    struct bench b;
    struct attribute a;
    struct diag diag;
    bench_start(&b, shift_ptx);
    bench_launch(&b);
    verify_kit_open(&b.make, &b.session);
    struct attribute_request request = {.launch = model_launch_by_number(b.session.model, 1),
                                        .allocation = model_allocation_by_id(b.session.model, b.out),
                                        .has_range = true,
                                        .from = 56,
                                        .to = 64};
    assert_int_equal(attribute_make(b.session.model, &request, &a, &diag), STATUS_OK);
    for (size_t i = 0; i < a.row_count; i++)
        if (a.rows[i].element <= 60)
            assert_int_equal(a.rows[i].stored.ptx_line, 0); /* another thread reads it */
        else
            assert_int_equal(a.rows[i].stored.thread[0], a.rows[i].element);
    attribute_free(&a);
    bench_end(&b);
}

static void test_attribute_without_ptx(void **state)
{
    struct bench b;
    struct attribute a;
    struct diag diag;
    bench_start(&b, NULL);
    memcpy(b.after, b.input, sizeof b.after);
    bench_launch(&b);
    verify_kit_open(&b.make, &b.session);
    struct attribute_request request = {.launch = model_launch_by_number(b.session.model, 1),
                                        .allocation = model_allocation_by_id(b.session.model, b.out),
                                        .around = 0};
    assert_int_equal(attribute_make(b.session.model, &request, &a, &diag), STATUS_OK);
    assert_string_equal(a.reason, "no-ptx");
    assert_true(a.type_guessed);
    assert_int_equal(a.type, ELEMENT_F32);
    assert_true(a.rows[0].device.known && !a.rows[0].reference.known);
    attribute_free(&a);
    bench_end(&b);
}

/* ---- trace ---- */

/* The root makes a NaN, a second launch of another kernel carries it on. */
static void test_health_born_and_spread(void **state)
{
    struct bench b;
    struct health h;
    struct diag diag;
    root_bench(&b);
    bench_launch(&b);
    uint32_t module = capture_make_module(&b.make, add_ptx);
    uint32_t next = capture_make_kernel(&b.make, module, "map", (const uint32_t[]){8, 8, 0});
    float sums[COUNT];
    for (int i = 0; i < COUNT; i++)
        sums[i] = b.after[i] + 1.0f;
    memcpy(&sums[5], &(uint32_t){NAN_BITS}, 4);
    uint64_t params[2] = {IN, OUT};
    uint64_t launch = capture_make_launch(&b.make, next, b.config, params, sizeof params);
    capture_make_snapshot(&b.make, launch, b.in, CAP_BEFORE, b.input, sizeof b.input);
    capture_make_snapshot(&b.make, launch, b.out, CAP_BEFORE, b.after, sizeof b.after);
    capture_make_snapshot(&b.make, launch, b.in, CAP_AFTER, sums, sizeof sums);
    capture_make_snapshot(&b.make, launch, b.out, CAP_AFTER, b.after, sizeof b.after);
    verify_kit_open(&b.make, &b.session);
    assert_int_equal(health_make(b.session.model, &b.session.judgements, INFINITY, false, &h, &diag), STATUS_OK);
    assert_int_equal(h.count, 2);
    assert_true(h.full);
    const struct health_launch *first = &h.launches[0], *second = &h.launches[1];
    assert_int_equal(first->launch->number, 1);
    assert_true(first->born && first->has_thread);
    assert_int_equal(first->place.frames[0].line, 10);
    assert_int_equal(first->place.thread[0], 5);
    assert_true(first->operands[0] == -2.0);
    assert_int_equal(first->outputs[0].allocation, b.out);
    assert_int_equal(first->outputs[0].nans, 1);
    assert_int_equal(first->outputs[0].offset, 20);
    assert_false(second->born);
    assert_int_equal(second->source, b.out);
    assert_int_equal(second->parent, 0);
    health_free(&h);
    bench_end(&b);
}

static void test_health_from_the_host(void **state)
{
    struct bench b;
    struct health h;
    struct diag diag;
    bench_start(&b, add_ptx);
    for (int i = 0; i < COUNT; i++)
        b.after[i] = b.input[i] + 1.0f;
    b.input[7] = b.after[7] = INFINITY;
    bench_launch(&b);
    verify_kit_open(&b.make, &b.session);
    assert_int_equal(health_make(b.session.model, &b.session.judgements, INFINITY, true, &h, &diag), STATUS_OK);
    assert_int_equal(h.count, 1);
    assert_false(h.launches[0].born);
    assert_int_equal(h.launches[0].source, b.in);
    assert_int_equal(h.launches[0].parent, SIZE_MAX);
    assert_non_null(strstr(h.launches[0].source_by, "from the host"));
    health_free(&h);
    bench_end(&b);
}

/* A launch that stores the same NaN again over itself; and one whose NaN is left from before. */
static void test_health_stored_again(void **state)
{
    static const char keep_ptx[] = MAP("mov.f32 %f9, %f1;\nsetp.lt.f32 %p1, %f1, 0f00000000;\n@%p1 ret;\n");
    for (int again = 0; again <= 1; again++) {
        struct bench b;
        struct health h;
        struct diag diag;
        if (again) {
            root_bench(&b);
        } else {
            bench_start(&b, keep_ptx);
            b.input[5] = -2.0f;
            memcpy(b.after, b.input, sizeof b.after);
            memcpy(&b.after[5], &(uint32_t){NAN_BITS}, 4);
        }
        memcpy(b.before, b.after, sizeof b.before);
        bench_launch(&b);
        verify_kit_open(&b.make, &b.session);
        assert_int_equal(health_make(b.session.model, &b.session.judgements, INFINITY, false, &h, &diag), STATUS_OK);
        assert_int_equal(h.count, again);
        if (again) {
            assert_true(h.launches[0].born);
            assert_int_equal(h.launches[0].outputs[0].nans, 1);
            assert_int_equal(h.launches[0].outputs[0].offset, 20);
        }
        health_free(&h);
        bench_end(&b);
    }
}

static uint32_t own_stream(struct bench *b, uint32_t id)
{
    struct cap_stream r = {.head.type = CAP_STREAM, .id = id, .context = 1, .kind = CAP_STREAM_CREATED, .flags = 1};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
    return id;
}

static uint64_t launch_in(struct bench *b, uint32_t stream, uint64_t out, uint64_t in)
{
    uint64_t params[2] = {out, in};
    struct cap_launch r = {.head.type = CAP_LAUNCH,
                           .kernel = b->kernel,
                           .config = b->config,
                           .stream = stream,
                           .param_bytes = sizeof params,
                           .outcome = CAP_LAUNCH_OK,
                           .flags = CAP_LAUNCH_INPUTS | CAP_LAUNCH_OUTPUTS};
    b->make.header.launches++;
    return capture_make_record(&b->make, &r, sizeof r, params, sizeof params);
}

/* The first launch makes the input of the second one, which finds NaN there: nothing orders the two when they are in
 * different streams. */
static void unordered_bench(struct bench *b, bool same_stream)
{
    float made[COUNT];
    bench_start(b, add_ptx);
    struct cap_hook hook = {
        .head.type = CAP_HOOK, .index = 1, .name = capture_make_string(&b->make, "cuLaunchHostFunc"), .calls = 1};
    capture_make_record(&b->make, &hook, sizeof hook, NULL, 0);
    uint32_t one = own_stream(b, 1), other = own_stream(b, 2);
    for (int i = 0; i < COUNT; i++) {
        made[i] = b->before[i] + 1.0f;
        memcpy(&b->after[i], &(uint32_t){NAN_BITS}, 4);
    }
    memset(b->input, 0xff, sizeof b->input);
    uint64_t first = launch_in(b, one, IN, OUT);
    capture_make_snapshot(&b->make, first, b->out, CAP_BEFORE, b->before, sizeof b->before);
    capture_make_snapshot(&b->make, first, b->in, CAP_BEFORE, b->input, sizeof b->input);
    capture_make_snapshot(&b->make, first, b->in, CAP_AFTER, made, sizeof made);
    uint64_t second = launch_in(b, same_stream ? one : other, OUT, IN);
    capture_make_snapshot(&b->make, second, b->out, CAP_BEFORE, b->before, sizeof b->before);
    capture_make_snapshot(&b->make, second, b->in, CAP_BEFORE, b->input, sizeof b->input);
    capture_make_snapshot(&b->make, second, b->out, CAP_AFTER, b->after, sizeof b->after);
}

static void test_health_written_in_no_order(void **state)
{
    for (int same_stream = 0; same_stream <= 1; same_stream++)
        for (int verified = 0; verified <= 1; verified++) {
            struct bench b;
            struct health h;
            struct diag diag;
            unordered_bench(&b, same_stream);
            if (verified)
                verify_kit_verify(&b.make, &b.session);
            else
                verify_kit_open(&b.make, &b.session);
            assert_int_equal(health_make(b.session.model, &b.session.judgements, INFINITY, false, &h, &diag),
                             STATUS_OK);
            assert_int_equal(h.count, 1);
            assert_int_equal(h.launches[0].launch->number, 2);
            assert_int_equal(h.launches[0].source, b.in);
            const char *by = h.launches[0].source_by;
            assert_int_equal(strstr(by, "launch 1, map, writes it") != NULL, !same_stream);
            assert_int_equal(strstr(by, "nothing orders it before") != NULL, !same_stream && verified);
            health_free(&h);
            bench_end(&b);
        }
}

static void test_health_threshold(void **state)
{
    struct bench b;
    struct health h;
    struct diag diag;
    bench_start(&b, add_ptx);
    for (int i = 0; i < COUNT; i++)
        b.after[i] = b.input[i] + 1.0f;
    bench_launch(&b);
    verify_kit_open(&b.make, &b.session);
    assert_int_equal(health_make(b.session.model, &b.session.judgements, INFINITY, false, &h, &diag), STATUS_OK);
    assert_int_equal(h.count, 0);
    assert_int_equal(h.outputs, 1);
    health_free(&h);
    assert_int_equal(health_make(b.session.model, &b.session.judgements, 1e6 + 62500, false, &h, &diag), STATUS_OK);
    assert_int_equal(h.count, 1);
    assert_int_equal(h.launches[0].outputs[0].bad, 1);
    health_free(&h);
    bench_end(&b);
}

/* Integers may have any bits. */
static void test_health_integers(void **state)
{
    struct bench b;
    struct health h;
    struct diag diag;
    bench_start(&b, MAP("mov.u32 %r2, -1;\nst.global.u32 [%rd4], %r2;\nret;\n"));
    memset(b.after, 0xff, sizeof b.after);
    bench_launch(&b);
    verify_kit_open(&b.make, &b.session);
    assert_int_equal(health_make(b.session.model, &b.session.judgements, INFINITY, true, &h, &diag), STATUS_OK);
    assert_int_equal(h.count, 0);
    health_free(&h);
    bench_end(&b);
}

/* ---- elements, files, bounds ---- */

static void test_element_values(void **state)
{
    static const uint8_t half[2] = {0x00, 0x3c}, bfloat[2] = {0x80, 0xbf}, tiny[2] = {1, 0},
                         minus[4] = {255, 255, 255, 255};
    enum element_type type;
    assert_true(element_value(ELEMENT_F16, half) == 1.0);
    assert_true(element_value(ELEMENT_F16, tiny) == 0x1p-24);
    assert_true(element_value(ELEMENT_BF16, bfloat) == -1.0);
    assert_true(element_value(ELEMENT_S32, minus) == -1.0);
    assert_true(element_value(ELEMENT_U8, minus) == 255.0);
    assert_true(element_parse("bf16", &type) && type == ELEMENT_BF16);
    assert_false(element_parse("float", &type));
}

static void test_element_guess(void **state)
{
    float floats[64];
    double doubles[64];
    int32_t integers[64];
    for (int i = 0; i < 64; i++) {
        floats[i] = 0.5f + (float)i;
        doubles[i] = 1.0 / (i + 3);
        integers[i] = i - 30;
    }
    assert_int_equal(element_guess((uint8_t *)floats, sizeof floats), ELEMENT_F32);
    assert_int_equal(element_guess((uint8_t *)doubles, sizeof doubles), ELEMENT_F64);
    assert_int_equal(element_guess((uint8_t *)integers, sizeof integers), ELEMENT_S32);
    assert_int_equal(element_guess((const uint8_t *)"abc", 3), ELEMENT_U8);
}

static void test_npy_bytes(void **state)
{
    char path[] = "/tmp/test-npy-XXXXXX";
    uint8_t bytes[256];
    struct diag diag;
    static const float values[3] = {1, 2, 3};
    close(mkstemp(path));
    assert_int_equal(npy_write(path, ELEMENT_F32, (const uint8_t *)values, sizeof values, &diag), STATUS_OK);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, f), 128 + 12);
    fclose(f);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_int_equal(bytes[127], '\n');
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    assert_memory_equal(bytes + 10, header, sizeof header - 1);
    assert_memory_equal(bytes + 128, values, sizeof values);
    assert_int_equal(npy_write(path, ELEMENT_BF16, (const uint8_t *)"\x80\x3f", 2, &diag), STATUS_OK);
    f = fopen(path, "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, f), 128 + 4);
    fclose(f);
    assert_memory_equal(bytes + 128, values, 4);
    unlink(path);
    assert_int_equal(npy_write("/nonexistent/x.npy", ELEMENT_F32, bytes, 4, &diag), STATUS_IO);
}

static void bound_bench(struct bench *b, const char *device)
{
    bench_start(b, add_ptx);
    struct cap_device r = {.head.type = CAP_DEVICE,
                           .name = capture_make_string(&b->make, device),
                           .major = 8,
                           .memory_clock_khz = 1000000,
                           .bus_bits = 256};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
    bench_launch(b);
    verify_kit_open(&b->make, &b->session);
}

static void test_bounds(void **state)
{
    static const struct {
        const char *device;
        double bandwidth;
    } cases[] = {{"NVIDIA H200", 4800e9},
                 {"NVIDIA A100-SXM4-80GB", 2039e9},
                 {"NVIDIA A100-PCIE-40GB", 1555e9},
                 {"softgpu", 0},
                 {"some other device", 64e9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        bound_bench(&b, cases[i].device);
        assert_true(bound_bandwidth(b.session.model) == cases[i].bandwidth);
        struct bound_walk walk;
        bound_walk_start(&walk, b.session.model, &b.session.judgements);
        struct bound bound = bound_walk_next(&walk, &b.session.model->launches[0]);
        assert_int_equal(bound.bytes, sizeof b.input + sizeof b.after);
        assert_false(bound.counted);
        assert_int_equal(bound.by, cases[i].bandwidth > 0 ? BOUND_MEMORY : BOUND_UNKNOWN);
        assert_int_equal(bound.ns, cases[i].bandwidth > 0 ? (uint64_t)ceil(512 / cases[i].bandwidth * 1e9) : 0);
        bound_walk_end(&walk);
        bench_end(&b);
    }
}

/* More bytes than the slowest memory moves in five hundred years: as a stored judgement may claim. */
static void test_bounds_beyond_all_clocks(void **state)
{
    struct bench b;
    struct judgement j = {.launch = 1, .bytes_known = true, .bytes_read = UINT64_MAX};
    struct judgements js = {.items = &j, .count = 1};
    bound_bench(&b, "some other device");
    struct cap_device slow = *b.session.model->device;
    slow.memory_clock_khz = 1;
    slow.bus_bits = 8;
    b.session.model->device = &slow;
    struct bound_walk walk;
    bound_walk_start(&walk, b.session.model, &js);
    struct bound bound = bound_walk_next(&walk, &b.session.model->launches[0]);
    assert_true(bound.counted);
    assert_true(bound.ns == UINT64_MAX);
    bound_walk_end(&walk);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_nan_with_operands),
        cmocka_unit_test(test_numbers_root_of_numbers),
        cmocka_unit_test(test_numbers_approximation_with_line),
        cmocka_unit_test(test_numbers_ill_conditioned_twin),
        cmocka_unit_test(test_numbers_nan_constant),
        cmocka_unit_test(test_numbers_nan_masked),
        cmocka_unit_test(test_numbers_no_floats),
        cmocka_unit_test(test_numbers_doubles_that_cancel),
        cmocka_unit_test(test_numbers_lost_shadow),
        cmocka_unit_test(test_numbers_round_trip),
        cmocka_unit_test(test_attribute_elements),
        cmocka_unit_test(test_attribute_worst),
        cmocka_unit_test(test_attribute_stored_by),
        cmocka_unit_test(test_attribute_stored_and_read),
        cmocka_unit_test(test_attribute_without_ptx),
        cmocka_unit_test(test_health_born_and_spread),
        cmocka_unit_test(test_health_from_the_host),
        cmocka_unit_test(test_health_stored_again),
        cmocka_unit_test(test_health_written_in_no_order),
        cmocka_unit_test(test_health_threshold),
        cmocka_unit_test(test_health_integers),
        cmocka_unit_test(test_element_values),
        cmocka_unit_test(test_element_guess),
        cmocka_unit_test(test_npy_bytes),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_bounds_beyond_all_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
