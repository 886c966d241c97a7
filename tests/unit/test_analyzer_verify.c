/* Every class that re-execution finds, on synthetic captures, each beside a sound twin that must stay silent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/store.h"
#include "tests/unit/verify_kernels.h"
#include "tests/unit/verify_kit.h"

enum { OUT = 0x700000, IN = 0x710000, FAR = 0x720000, COUNT = 100 };
struct params {
    uint64_t out, in;
    uint32_t n, zero;
};

struct bench {
    struct capture_make make;
    uint32_t out, in, far, kernel, config;
    float before[COUNT], input[COUNT], after[COUNT];
    struct session session;
};

static void bench_start(struct bench *b, const char *ptx, const char *name, uint32_t grid, uint32_t block)
{
    *b = (struct bench){0};
    capture_make_start(&b->make);
    uint32_t module = capture_make_module(&b->make, ptx);
    b->kernel = capture_make_kernel(&b->make, module, name, (const uint32_t[]){8, 8, 4, 0});
    b->config = capture_make_config(&b->make, grid, block);
    b->out = capture_make_alloc(&b->make, OUT, sizeof b->before);
    b->in = capture_make_alloc(&b->make, IN, sizeof b->input);
    b->far = capture_make_alloc(&b->make, FAR, 4096);
    for (int i = 0; i < COUNT; i++) {
        b->before[i] = 1000.0f + (float)i;
        b->input[i] = (float)i;
        b->after[i] = (float)i + 1;
    }
}

/* One launch with all its snapshots. */
static uint64_t bench_launch(struct bench *b, uint64_t out, uint64_t in, uint32_t n)
{
    struct params params = {out, in, n, 0};
    uint64_t launch = capture_make_launch(&b->make, b->kernel, b->config, &params, 20);
    capture_make_snapshot(&b->make, launch, b->out, CAP_BEFORE, b->before, sizeof b->before);
    capture_make_snapshot(&b->make, launch, b->in, CAP_BEFORE, b->input, sizeof b->input);
    capture_make_snapshot(&b->make, launch, b->out, CAP_AFTER, b->after, sizeof b->after);
    capture_make_snapshot(&b->make, launch, b->in, CAP_AFTER, b->input, sizeof b->input);
    return launch;
}

static void bench_written(struct bench *b)
{
    capture_make_copy_in(&b->make, OUT, sizeof b->before);
    capture_make_copy_in(&b->make, IN, sizeof b->input);
}

static void bench_verify(struct bench *b)
{
    verify_kit_verify(&b->make, &b->session);
}

static void bench_end(struct bench *b)
{
    verify_kit_end(&b->make, &b->session);
}

static void silent(struct bench *b, size_t checked)
{
    bench_verify(b);
    verify_kit_is_silent(&b->session, checked);
    bench_end(b);
}

static const struct finding *only(struct bench *b, enum finding_class class)
{
    bench_verify(b);
    for (size_t i = 1; i <= b->session.model->launch_count; i++) {
        const struct judgement *j = judgements_find(&b->session.judgements, i);
        if (j && j->reason)
            print_message("# launch %zu: %s %s\n", i, j->reason, j->detail);
    }
    const struct finding *f = verify_kit_only(&b->session, class);
    assert_true(f->confidence > 0.5 && f->confidence <= 1);
    assert_non_null(f->summary);
    return f;
}

static void at_line(const struct finding *f, unsigned line)
{
    assert_non_null(f->file);
    assert_string_equal(f->file, "/src/scale.cu");
    assert_int_equal(f->line, line);
    assert_int_not_equal(f->ptx_line, 0);
}

/* ---- sound ---- */

static void test_verify_sound(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    bench_launch(&b, OUT, IN, COUNT);
    silent(&b, 1);
}

/* ---- out of bounds ---- */

static void test_verify_tail_write(void **state)
{
    struct bench b;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    uint64_t launch = bench_launch(&b, OUT, IN, sizeof b.before);
    uint64_t sync = capture_make_sync(&b.make, 0);
    capture_make_damage(&b.make, b.out, sizeof b.before, 4, launch, sync);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    at_line(f, 40);
    assert_int_equal(f->launch, 1);
    assert_int_equal(f->allocation, b.out);
    assert_int_equal(f->offset, sizeof b.before);
    assert_true(f->confidence > 0.98); /* two signals */
    assert_string_equal(f->evidence[f->evidence_count - 1].kind, "sentinel");
    bench_end(&b);
}

static void test_verify_write_into_nothing(void **state)
{
    struct bench b;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    bench_launch(&b, OUT, IN, 0xfffffff8u); /* zero-extended: 4 GiB past the end, into nothing */
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    assert_int_equal(f->offset, 0xfffffff8u);
    assert_int_equal(f->allocation, b.out);
    bench_end(&b);
}

static void test_verify_far_write_into_another_allocation(void **state)
{
    struct bench b;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    bench_launch(&b, OUT, IN, FAR - OUT + 64);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    at_line(f, 40);
    assert_int_equal(f->allocation, b.out);
    assert_int_equal(f->offset, FAR - OUT + 64);
    assert_string_equal(f->evidence[1].kind, "landed-in");
    bench_end(&b);
}

static void test_verify_far_write_into_another_argument(void **state)
{
    struct bench b;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    bench_launch(&b, OUT, IN, IN - OUT);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    assert_int_equal(f->allocation, b.out);
    bench_end(&b);
}

static void test_verify_write_inside(void **state)
{
    struct bench b;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    memcpy(b.after, b.before, sizeof b.after);
    memcpy(&b.after[COUNT - 1], &(uint32_t){7}, 4);
    bench_launch(&b, OUT, IN, sizeof b.before - 4);
    silent(&b, 1);
}

static void test_verify_out_of_bounds_read(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    bench_launch(&b, OUT, IN + 16, COUNT);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_READ);
    at_line(f, 12);
    assert_int_equal(f->allocation, b.in);
    assert_int_equal(f->offset, sizeof b.input);
    assert_int_equal(f->thread[0], COUNT - 4);
    bench_end(&b);
}

static void test_verify_same_cause_many_launches(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    for (int i = 0; i < 5; i++)
        bench_launch(&b, OUT, IN + 16, COUNT);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_READ);
    assert_int_equal(f->launch, 1);
    assert_int_equal(f->launch_count, 5);
    bench_end(&b);
}

/* An index that is not checked loads and stores past the end: one finding. */
static void test_verify_load_and_store_by_one_thread(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    bench_launch(&b, OUT, IN, COUNT + 1);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    at_line(f, 14);
    bench_end(&b);
}

/* The same thread loads past the end twice on one line, once on another: each line is told of once. */
static void test_verify_loads_of_one_line(void **state)
{
    struct bench b;
    bench_start(&b, thrice_ptx, "thrice", 1, 1);
    bench_written(&b);
    bench_launch(&b, OUT, IN, sizeof b.input);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    at_line(f, 82);
    size_t told = 0;
    for (size_t i = 0; i < f->evidence_count; i++)
        told += strcmp(f->evidence[i].kind, "re-execution") == 0;
    assert_int_equal(told, 3); /* and the store */
    bench_end(&b);
}

/* The first launch has no snapshots, the second one of its kernel has: one finding, of both. */
static void test_verify_damage_by_a_sibling(void **state)
{
    struct bench b;
    struct params params = {OUT, IN, sizeof b.before, 0};
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    uint64_t first = capture_make_launch(&b.make, b.kernel, b.config, &params, 20);
    uint64_t sync = capture_make_sync(&b.make, 0);
    capture_make_damage(&b.make, b.out, sizeof b.before, 4, first, sync);
    bench_launch(&b, OUT, IN, sizeof b.before);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    at_line(f, 40);
    assert_int_equal(f->launch_count, 2);
    assert_int_equal(f->launches[0], 1);
    bench_end(&b);
}

/* The redzone of another allocation is hit than the one that the first faulting store was meant for. */
static void test_verify_damage_by_elimination(void **state)
{
    struct bench b;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    uint64_t launch = bench_launch(&b, OUT, IN, sizeof b.before);
    uint64_t sync = capture_make_sync(&b.make, 0);
    capture_make_damage(&b.make, b.far, -256, 8, launch, sync);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    at_line(f, 40);
    assert_true(f->confidence > 0.98);
    assert_string_equal(f->evidence[f->evidence_count - 1].kind, "landed-in");
    bench_end(&b);
}

/* Two buffers that change places, as in a time step: one finding of both launches, whose redzones were both meant. */
static void test_verify_damage_of_swapped_buffers(void **state)
{
    struct bench b;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    uint64_t first = bench_launch(&b, OUT, IN, sizeof b.before);
    bench_launch(&b, IN, OUT, sizeof b.input);
    uint64_t sync = capture_make_sync(&b.make, 0);
    capture_make_damage(&b.make, b.in, sizeof b.input, 4, first, sync);
    capture_make_damage(&b.make, b.out, sizeof b.before, 4, first, sync);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    assert_int_equal(f->launch_count, 2);
    assert_string_equal(f->evidence[f->evidence_count - 1].kind, "sentinel");
    assert_non_null(strstr(f->evidence[f->evidence_count - 1].text, "2 times in all"));
    bench_end(&b);
}

/* Every launch of the window was re-executed and stored nothing outside: not attributed, and said so. */
static void test_verify_damage_by_nobody(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    uint64_t launch = bench_launch(&b, OUT, IN, COUNT);
    uint64_t sync = capture_make_sync(&b.make, 0);
    capture_make_damage(&b.make, b.out, sizeof b.before, 4, launch, sync);
    const struct finding *f = only(&b, FINDING_OUT_OF_BOUNDS_WRITE);
    assert_int_equal(f->launch, 0);
    assert_null(f->file);
    bench_end(&b);
}

/* ---- other classes ---- */

static void test_verify_misaligned(void **state)
{
    struct bench b;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    bench_launch(&b, OUT, IN, 2);
    at_line(only(&b, FINDING_MISALIGNED), 40);
    bench_end(&b);
}

static void test_verify_use_after_free(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    capture_make_free(&b.make, b.in, IN, 0);
    struct params params = {OUT, IN, COUNT, 0};
    uint64_t launch = capture_make_launch(&b.make, b.kernel, b.config, &params, 20);
    capture_make_snapshot(&b.make, launch, b.out, CAP_BEFORE, b.before, sizeof b.before);
    capture_make_snapshot(&b.make, launch, b.out, CAP_AFTER, b.after, sizeof b.after);
    const struct finding *f = only(&b, FINDING_USE_AFTER_FREE);
    at_line(f, 12);
    assert_int_equal(f->allocation, b.in);
    bench_end(&b);
}

static void test_verify_free_after_use(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    bench_launch(&b, OUT, IN, COUNT);
    capture_make_free(&b.make, b.in, IN, 0);
    silent(&b, 1);
}

static void copy_out(struct bench *b, uint64_t bytes)
{
    struct cap_copy out = {.head.type = CAP_COPY,
                           .target = 0x1000,
                           .source = OUT,
                           .width = bytes,
                           .height = 1,
                           .depth = 1,
                           .kind = CAP_COPY_DTOH};
    capture_make_record(&b->make, &out, sizeof out, NULL, 0);
}

static void test_verify_uninitialised_read(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    capture_make_copy_in(&b.make, IN, 40); /* a count that was meant in elements */
    bench_launch(&b, OUT, IN, COUNT);
    copy_out(&b, sizeof b.after);
    const struct finding *f = only(&b, FINDING_UNINITIALISED_READ);
    assert_int_equal(f->severity, FINDING_ERROR);
    at_line(f, 12);
    assert_int_equal(f->allocation, b.in);
    assert_int_equal(f->offset, 40);
    bench_end(&b);
}

/* What a graph's nodes write is not recorded one by one. */
static void test_verify_unwritten_but_for_graphs(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    capture_make_copy_in(&b.make, IN, 40);
    struct cap_hook hook = {
        .head.type = CAP_HOOK, .index = 1, .name = capture_make_string(&b.make, "cuGraphLaunch"), .calls = 1};
    capture_make_record(&b.make, &hook, sizeof hook, NULL, 0);
    bench_launch(&b, OUT, IN, COUNT);
    silent(&b, 1);
}

static void test_verify_written_by_an_earlier_launch(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    capture_make_copy_in(&b.make, IN, sizeof b.input);
    bench_launch(&b, OUT, IN, COUNT);
    /* out, which only the first launch wrote, is the input of the second one. */
    struct params params = {IN, OUT, COUNT, 0};
    float last[COUNT];
    for (int i = 0; i < COUNT; i++)
        last[i] = b.after[i] + 1;
    uint64_t launch = capture_make_launch(&b.make, b.kernel, b.config, &params, 20);
    capture_make_snapshot(&b.make, launch, b.out, CAP_BEFORE, b.after, sizeof b.after);
    capture_make_snapshot(&b.make, launch, b.in, CAP_BEFORE, b.input, sizeof b.input);
    capture_make_snapshot(&b.make, launch, b.in, CAP_AFTER, last, sizeof last);
    silent(&b, 2);
}

/* A launch that could not be re-executed may have written anything that its arguments reach. */
static void test_verify_written_by_an_unknown_launch(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    struct params params = {IN, OUT, COUNT, 0};
    capture_make_launch(&b.make, b.kernel, b.config, &params, 20);
    bench_launch(&b, OUT, IN, COUNT);
    silent(&b, 1);
}

/* Moved on by a kernel, unseen by it; the copy to the host is where somebody will look at it. */
static void move_bench(struct bench *b, uint64_t copied_bytes)
{
    bench_start(b, move_ptx, "move", 1, COUNT);
    capture_make_copy_in(&b->make, IN, 40);
    memcpy(b->after, b->input, sizeof b->after);
    bench_launch(b, OUT, IN, COUNT);
    copy_out(b, copied_bytes);
}

static void test_verify_unwritten_moved_to_the_host(void **state)
{
    struct bench b;
    move_bench(&b, 44);
    const struct finding *f = only(&b, FINDING_UNINITIALISED_READ);
    at_line(f, 60);
    assert_int_equal(f->launch, 1);
    assert_int_equal(f->allocation, b.in);
    assert_int_equal(f->offset, 40);
    bench_end(&b);
}

static void test_verify_unwritten_moved_and_left(void **state)
{
    struct bench b;
    move_bench(&b, 40);
    silent(&b, 1);
}

static void test_verify_race(void **state)
{
    struct bench b;
    bench_start(&b, turn_race_ptx, "turn", 1, 64);
    bench_written(&b);
    bench_launch(&b, OUT, IN, 64);
    const struct finding *f = only(&b, FINDING_RACE);
    at_line(f, 22);
    bench_end(&b);
}

static void test_verify_barrier_against_race(void **state)
{
    struct bench b;
    bench_start(&b, turn_ptx, "turn", 1, 64);
    bench_written(&b);
    for (int i = 0; i < COUNT; i++)
        b.after[i] = i < 64 ? b.input[63 - i] : b.before[i];
    bench_launch(&b, OUT, IN, 64);
    silent(&b, 1);
}

static void test_verify_divergent_barrier(void **state)
{
    struct bench b;
    bench_start(&b, wait_ptx, "wait", 1, 64);
    bench_written(&b);
    bench_launch(&b, OUT, IN, 32);
    only(&b, FINDING_DIVERGENT_BARRIER);
    bench_end(&b);
}

static void test_verify_same_barrier(void **state)
{
    struct bench b;
    bench_start(&b, wait_ptx, "wait", 1, 64);
    bench_written(&b);
    memcpy(b.after, b.before, sizeof b.after);
    bench_launch(&b, OUT, IN, 64);
    silent(&b, 1);
}

/* ---- pointers out of memory ---- */

static void test_verify_pointer_from_memory(void **state)
{
    struct bench b;
    bench_start(&b, chase_ptx, "chase", 1, 1);
    bench_written(&b);
    uint64_t pointer = OUT + 8;
    memcpy(b.input, &pointer, sizeof pointer);
    memcpy(b.after, b.before, sizeof b.after);
    memcpy(&b.after[2], &(uint32_t){7}, 4);
    bench_launch(&b, OUT, IN, 0);
    silent(&b, 1);
}

/* ---- numbers ---- */

static void test_verify_mismatch(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    b.after[17] = 4711;
    bench_launch(&b, OUT, IN, COUNT);
    const struct finding *f = only(&b, FINDING_MISMATCH);
    assert_int_equal(f->allocation, b.out);
    assert_int_equal(f->offset, 17 * 4);
    bench_end(&b);
}

static void test_verify_dropped_write(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    b.after[17] = b.before[17];
    bench_launch(&b, OUT, IN, COUNT);
    only(&b, FINDING_DROPPED_WRITE);
    bench_end(&b);
}

static void test_verify_changed_outside(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    for (int i = 50; i < COUNT; i++)
        b.after[i] = b.before[i];
    b.after[60] = 1;
    bench_launch(&b, OUT, IN, 50);
    const struct finding *f = only(&b, FINDING_MISMATCH);
    assert_int_equal(f->offset, 60 * 4);
    bench_end(&b);
}

/* ---- order ---- */

static void gather_bench(struct bench *b)
{
    bench_start(b, gather_ptx, "gather", 1, 64);
    bench_written(b);
    memset(&b->before[0], 0, 4);
    memcpy(b->after, b->before, sizeof b->after);
    memcpy(&b->after[0], &(uint32_t){64}, 4);
    for (int i = 0; i < 64; i++)
        b->after[1 + i] = b->input[(i + 17) % 64]; /* an order that no simple schedule gives */
}

static void test_verify_places_by_atomics(void **state)
{
    struct bench b;
    gather_bench(&b);
    bench_launch(&b, OUT, IN, 0);
    silent(&b, 1);
}

static void reason_is(struct bench *b, const char *reason);

static void test_verify_places_by_atomics_one_lost(void **state)
{
    struct bench b;
    gather_bench(&b);
    b.after[5] = 4711;
    bench_launch(&b, OUT, IN, 0);
    reason_is(&b, "time-dependent");
}

static void sum_bench(struct bench *b)
{
    bench_start(b, sum_ptx, "sum", 1, 64);
    bench_written(b);
    b->before[0] = 0;
    for (int i = 0; i < 64; i++)
        b->input[i] = 1.0f / (float)(i + 3);
    memcpy(b->after, b->before, sizeof b->after);
    for (int i = 63; i >= 0; i--)
        b->after[0] += b->input[i];
}

static void test_verify_sum_in_another_order(void **state)
{
    struct bench b;
    sum_bench(&b);
    bench_launch(&b, OUT, IN, 0);
    silent(&b, 1);
}

static void test_verify_sum_without_a_term(void **state)
{
    struct bench b;
    sum_bench(&b);
    b.after[0] -= b.input[60];
    bench_launch(&b, OUT, IN, 0);
    reason_is(&b, "vacuous");
}

/* ---- coverage ---- */

static void reason_is(struct bench *b, const char *reason)
{
    bench_verify(b);
    struct coverage c = coverage_of(b->session.model, &b->session.judgements);
    assert_int_equal(c.as_written.checked, 0);
    assert_int_equal(c.as_written.reasons, 1);
    assert_string_equal(c.as_written.not [0].reason, reason);
    assert_int_equal(b->session.findings.count, 0);
    bench_end(b);
}

static void test_verify_no_inputs(void **state)
{
    struct bench b;
    struct params params = {OUT, IN, COUNT, 0};
    bench_start(&b, scale_ptx, "scale", 1, 128);
    capture_make_launch(&b.make, b.kernel, b.config, &params, 20);
    reason_is(&b, "no-inputs");
}

static void test_verify_inputs_in_part(void **state)
{
    struct bench b;
    struct params params = {OUT, IN, COUNT, 0};
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    uint64_t launch = capture_make_launch(&b.make, b.kernel, b.config, &params, 20);
    capture_make_snapshot(&b.make, launch, b.in, CAP_BEFORE, b.input, sizeof b.input - 8);
    reason_is(&b, "no-inputs");
}

static void test_verify_no_outputs(void **state)
{
    struct bench b;
    struct params params = {OUT, IN, COUNT, 0};
    bench_start(&b, scale_ptx, "scale", 1, 128);
    bench_written(&b);
    uint64_t launch = capture_make_launch(&b.make, b.kernel, b.config, &params, 20);
    capture_make_snapshot(&b.make, launch, b.in, CAP_BEFORE, b.input, sizeof b.input);
    reason_is(&b, "no-outputs");
}

static void test_verify_no_ptx(void **state)
{
    struct bench b;
    bench_start(&b, NULL, "scale", 1, 128);
    bench_launch(&b, OUT, IN, COUNT);
    reason_is(&b, "no-ptx");
}

static void test_verify_other_kernel(void **state)
{
    struct bench b;
    bench_start(&b, scale_ptx, "not_there", 1, 128);
    bench_launch(&b, OUT, IN, COUNT);
    reason_is(&b, "kernel-not-in-ptx");
}

static void test_verify_unknown_memory(void **state)
{
    struct bench b;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    bench_launch(&b, 0x123450000, IN, 0);
    reason_is(&b, "unknown-memory");
}

/* ---- verify.json ---- */

static void test_store_round_trip(void **state)
{
    struct bench b;
    struct judgements again;
    struct diag diag;
    bench_start(&b, slide_ptx, "slide", 1, 1);
    bench_written(&b);
    bench_launch(&b, OUT, IN, FAR - OUT + 64);
    bench_verify(&b);
    assert_int_equal(store_write(b.session.model, &b.session.judgements, NULL, &diag), STATUS_OK);
    assert_int_equal(store_read(b.session.model, &again, &diag), STATUS_OK);
    assert_int_equal(again.count, 1);
    const struct judgement_fault *x = &b.session.judgements.items[0].faults[0], *y = &again.items[0].faults[0];
    assert_int_equal(x->kind, y->kind);
    assert_int_equal(x->address, y->address);
    assert_int_equal(x->offset, y->offset);
    assert_int_equal(x->landed, y->landed);
    assert_int_equal(x->access.ptx_line, y->access.ptx_line);
    assert_string_equal(x->access.frames[0].file, y->access.frames[0].file);
    judgements_free(&again);
    const struct cap_launch *first = b.session.model->launches[0].record;
    struct cap_launch later = *first; /* the one that was the first has been dropped */
    later.head.seq++;
    b.session.model->launches[0].record = &later;
    assert_int_equal(store_read(b.session.model, &again, &diag), STATUS_BAD_INPUT);
    b.session.model->launches[0].record = first;
    b.session.capture->header.pid++;
    assert_int_equal(store_read(b.session.model, &again, &diag), STATUS_BAD_INPUT);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verify_sound),
        cmocka_unit_test(test_verify_tail_write),
        cmocka_unit_test(test_verify_write_into_nothing),
        cmocka_unit_test(test_verify_far_write_into_another_allocation),
        cmocka_unit_test(test_verify_far_write_into_another_argument),
        cmocka_unit_test(test_verify_write_inside),
        cmocka_unit_test(test_verify_out_of_bounds_read),
        cmocka_unit_test(test_verify_same_cause_many_launches),
        cmocka_unit_test(test_verify_load_and_store_by_one_thread),
        cmocka_unit_test(test_verify_loads_of_one_line),
        cmocka_unit_test(test_verify_damage_by_a_sibling),
        cmocka_unit_test(test_verify_damage_by_elimination),
        cmocka_unit_test(test_verify_damage_of_swapped_buffers),
        cmocka_unit_test(test_verify_damage_by_nobody),
        cmocka_unit_test(test_verify_misaligned),
        cmocka_unit_test(test_verify_use_after_free),
        cmocka_unit_test(test_verify_free_after_use),
        cmocka_unit_test(test_verify_uninitialised_read),
        cmocka_unit_test(test_verify_unwritten_but_for_graphs),
        cmocka_unit_test(test_verify_written_by_an_earlier_launch),
        cmocka_unit_test(test_verify_written_by_an_unknown_launch),
        cmocka_unit_test(test_verify_unwritten_moved_to_the_host),
        cmocka_unit_test(test_verify_unwritten_moved_and_left),
        cmocka_unit_test(test_verify_race),
        cmocka_unit_test(test_verify_barrier_against_race),
        cmocka_unit_test(test_verify_divergent_barrier),
        cmocka_unit_test(test_verify_same_barrier),
        cmocka_unit_test(test_verify_pointer_from_memory),
        cmocka_unit_test(test_verify_mismatch),
        cmocka_unit_test(test_verify_dropped_write),
        cmocka_unit_test(test_verify_changed_outside),
        cmocka_unit_test(test_verify_places_by_atomics),
        cmocka_unit_test(test_verify_places_by_atomics_one_lost),
        cmocka_unit_test(test_verify_sum_in_another_order),
        cmocka_unit_test(test_verify_sum_without_a_term),
        cmocka_unit_test(test_verify_no_inputs),
        cmocka_unit_test(test_verify_inputs_in_part),
        cmocka_unit_test(test_verify_no_outputs),
        cmocka_unit_test(test_verify_no_ptx),
        cmocka_unit_test(test_verify_other_kernel),
        cmocka_unit_test(test_verify_unknown_memory),
        cmocka_unit_test(test_store_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
