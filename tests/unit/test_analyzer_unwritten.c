/* Bytes that nobody wrote: what decides a store or gets to the host is found, whatever comparison it goes through, also
 * out of shared and local memory; each beside twins in which it does not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "analyzer/store.h"
#include "tests/unit/verify_kit.h"

/* map(out, in), 64 threads: addresses of the thread's words in %rd4 and %rd5, its number in %r1. The body begins at
 * line 10. */
#define HEAD                                                                                                           \
    ".version 7.0\n.target sm_75\n.address_size 64\n.file 1 \"/src/map.cu\"\n"                                         \
    ".visible .entry map(.param .u64 out, .param .u64 in)\n{\n"                                                        \
    ".reg .pred %p<3>;\n.reg .b16 %h<4>;\n.reg .f32 %f<6>;\n.reg .f64 %d<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<9>;\n"
#define START                                                                                                          \
    "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [in];\nmov.u32 %r1, %tid.x;\n"                                      \
    "mul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n.loc 1 10 5\n"
#define MAP(body) HEAD START body "ret;\n}\n"
#define STORE     ".loc 1 20 5\n@%p1 st.global.u32 [%rd4], 1;\n"

enum { OUT = 0x700000, IN = 0x710000, COUNT = 64, BYTES = COUNT * 4 };

struct bench {
    struct capture_make make;
    uint32_t out, in, kernel, config;
    uint32_t before[COUNT], input[COUNT], after[COUNT];
    struct session session;
};

/* `written` bytes of the input are the host's. */
static void bench_start(struct bench *b, const char *ptx, uint64_t written)
{
    *b = (struct bench){0};
    capture_make_start(&b->make);
    uint32_t module = capture_make_module(&b->make, ptx);
    b->kernel = capture_make_kernel(&b->make, module, "map", (const uint32_t[]){8, 8, 0});
    b->config = capture_make_config(&b->make, 1, COUNT);
    b->out = capture_make_alloc(&b->make, OUT, BYTES);
    b->in = capture_make_alloc(&b->make, IN, BYTES);
    capture_make_copy_in(&b->make, OUT, BYTES);
    if (written)
        capture_make_copy_in(&b->make, IN, written);
}

static void bench_launch(struct bench *b)
{
    uint64_t params[2] = {OUT, IN};
    uint64_t launch = capture_make_launch(&b->make, b->kernel, b->config, params, sizeof params);
    capture_make_snapshot(&b->make, launch, b->out, CAP_BEFORE, b->before, BYTES);
    capture_make_snapshot(&b->make, launch, b->in, CAP_BEFORE, b->input, BYTES);
    capture_make_snapshot(&b->make, launch, b->out, CAP_AFTER, b->after, BYTES);
    capture_make_snapshot(&b->make, launch, b->in, CAP_AFTER, b->input, BYTES);
}

static void bench_copy_out(struct bench *b, uint64_t offset, uint64_t bytes)
{
    struct cap_copy out = {.head.type = CAP_COPY,
                           .target = 0x1000,
                           .source = OUT + offset,
                           .width = bytes,
                           .height = 1,
                           .depth = 1,
                           .kind = CAP_COPY_DTOH};
    capture_make_record(&b->make, &out, sizeof out, NULL, 0);
}

static void bench_end(struct bench *b)
{
    verify_kit_end(&b->make, &b->session);
}

static const struct finding *found(struct bench *b, unsigned line)
{
    verify_kit_verify(&b->make, &b->session);
    const struct finding *f = verify_kit_only(&b->session, FINDING_UNINITIALISED_READ);
    assert_int_equal(f->severity, FINDING_ERROR);
    assert_int_equal(f->line, line);
    assert_int_equal(f->launch, 1);
    return f;
}

static void silent(struct bench *b)
{
    verify_kit_verify(&b->make, &b->session);
    verify_kit_is_silent(&b->session, b->session.model->launch_count);
    bench_end(b);
}

/* ---- comparisons that decide a store ---- */

/* Each a load and a comparison of its value; %p1 tells whether to store. */
static const char *const decisions[] = {
    MAP("ld.global.u8 %r2, [%rd5];\nsetp.ne.u32 %p1, %r2, 0;\n" STORE),                          /* bool */
    MAP("ld.global.u8 %r2, [%rd5];\nsetp.eq.u32 %p1, %r2, 0;\n" STORE),                          /* not */
    MAP("ld.global.u32 %r2, [%rd5];\nsetp.ne.s32 %p1, %r2, 0;\n" STORE),                         /* int as flag */
    MAP("ld.global.u32 %r2, [%rd5];\nsetp.gt.s32 %p1, %r2, 1000000;\n" STORE),                   /* large */
    MAP("ld.global.u32 %r2, [%rd5];\nsetp.lt.s32 %p1, %r2, -5;\n" STORE),                        /* negative */
    MAP("ld.global.u32 %r2, [%rd5];\nsetp.lt.s32 %p1, %r2, -1500000000;\n" STORE),               /* very */
    MAP("ld.global.u32 %r2, [%rd5];\nsetp.lt.u32 %p1, %r2, 5;\n" STORE),                         /* unsigned, small */
    MAP("ld.global.f32 %f1, [%rd5];\nsetp.neu.f32 %p1, %f1, 0f00000000;\n" STORE),               /* float as flag */
    MAP("ld.global.f32 %f1, [%rd5];\nsetp.gt.f32 %p1, %f1, 0f3F800000;\n" STORE),                /* > 1 */
    MAP("ld.global.f32 %f1, [%rd5];\nsetp.lt.f32 %p1, %f1, 0fC0A00000;\n" STORE),                /* < -5 */
    MAP("ld.global.f32 %f1, [%rd5];\nsetp.gt.f32 %p1, %f1, 0f7149F2CA;\n" STORE),                /* > 1e30 */
    MAP("ld.global.b16 %h1, [%rd5];\nmov.b16 %h2, 0x4900;\nsetp.gt.f16 %p1, %h1, %h2;\n" STORE), /* half > 10 */
    MAP("and.b64 %rd5, %rd5, -8;\nld.global.f64 %d1, [%rd5];\nsetp.lt.f64 %p1, %d1, 0dC024000000000000;\n" STORE),
};

static void test_unwritten_decides_a_store(void **state)
{
    for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
        struct bench b;
        print_message("# %zu\n", i);
        bench_start(&b, decisions[i], 0);
        bench_launch(&b);
        const struct finding *f = found(&b, 10);
        assert_int_equal(f->allocation, b.in);
        bench_end(&b);
    }
}

/* The same kernels, their input written. */
static void test_written_decides_a_store(void **state)
{
    static const bool stores[] = {false, true, false, false, false, false, true};
    for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
        struct bench b;
        bench_start(&b, decisions[i], BYTES);
        for (int k = 0; k < COUNT; k++)
            b.after[k] = i < sizeof stores && stores[i];
        bench_launch(&b);
        bench_copy_out(&b, 0, BYTES);
        silent(&b);
    }
}

/* out = in > 0 ? 7 : 5. */
static const char chooses_ptx[] = MAP("ld.global.f32 %f1, [%rd5];\nsetp.gt.f32 %p1, %f1, 0f3F800000;\n"
                                      "selp.u32 %r2, 7, 5, %p1;\nst.global.u32 [%rd4], %r2;\n");

static void chooses_bench(struct bench *b, uint64_t written)
{
    bench_start(b, chooses_ptx, written);
    for (int k = 0; k < COUNT; k++)
        b->after[k] = 5;
    bench_launch(b);
}

static void test_unwritten_chooses_a_value(void **state)
{
    struct bench b;
    chooses_bench(&b, BYTES - 40);
    bench_copy_out(&b, 0, BYTES);
    const struct finding *f = found(&b, 10);
    assert_int_equal(f->offset, BYTES - 40);
    bench_end(&b);
}

/* The last 40 bytes of 256 are made of what nobody wrote. */
static void test_unwritten_in_a_rectangle(void **state)
{
    static const struct {
        uint64_t width, height, pitch, depth, slice;
        bool shown;
    } copies[] = {
        {24, 4, 64, 1, 0, false},                                                     /* columns on the left */
        {25, 4, 64, 1, 0, true},                                                      /* one byte of them */
        {64, 3, 64, 1, 0, false},                                                     /* rows above */
        {24, 2, 64, 2, 128, false},                                                   /* two slices */
        {28, 2, 64, 2, 128, true},  {28, 1, 64, 4, 64, true}, {8, 28, 8, 1, 0, true}, /* close together */
        {8, 27, 8, 1, 0, false},    {10, 27, 8, 1, 0, true},                          /* over each other */
        {64, 1000, 64, 1, 0, true},
    };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        struct bench b;
        chooses_bench(&b, BYTES - 40);
        struct cap_copy out = {.head.type = CAP_COPY,
                               .target = 0x1000,
                               .source = OUT,
                               .width = copies[i].width,
                               .height = copies[i].height,
                               .depth = copies[i].depth,
                               .source_pitch = copies[i].pitch,
                               .source_slice_pitch = copies[i].slice,
                               .kind = CAP_COPY_DTOH};
        capture_make_record(&b.make, &out, sizeof out, NULL, 0);
        verify_kit_verify(&b.make, &b.session);
        size_t count = 0;
        for (size_t k = 0; k < b.session.findings.count; k++)
            count += b.session.findings.items[k].class == FINDING_UNINITIALISED_READ;
        if (count != copies[i].shown)
            fail_msg("copy %zu: %zu found", i, count);
        bench_end(&b);
    }
}

static void test_unwritten_chooses_what_stays_behind(void **state)
{
    struct bench b;
    chooses_bench(&b, BYTES - 40);
    bench_copy_out(&b, 0, BYTES - 40);
    silent(&b);
}

/* Compared and computed with, but nothing comes of it: a thread behind the end, an index that is checked afterwards. */
static void test_unwritten_decides_nothing(void **state)
{
    static const char *const kernels[] = {
        MAP("ld.global.u32 %r2, [%rd5];\nsetp.ne.s32 %p1, %r2, 0;\nselp.u32 %r3, 3, 3, %p1;\n"
            "st.global.u32 [%rd4], %r3;\n"),
        /* sparse[i] < count && dense[sparse[i]] == i, with count 0 */
        MAP("ld.global.u32 %r2, [%rd5];\nmov.u32 %r4, 0;\nsetp.lt.u32 %p1, %r2, %r4;\nmov.u32 %r3, 3;\n"
            "@%p1 mov.u32 %r3, 4;\nst.global.u32 [%rd4], %r3;\n"),
        MAP("ld.global.f32 %f1, [%rd5];\nsqrt.rn.f32 %f2, %f1;\nsetp.ge.u32 %p1, %r1, 64;\n"
            "@%p1 st.global.f32 [%rd4], %f2;\nmov.u32 %r3, 3;\nst.global.u32 [%rd4], %r3;\n"),
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        struct bench b;
        bench_start(&b, kernels[i], 0);
        for (int k = 0; k < COUNT; k++)
            b.after[k] = 3;
        bench_launch(&b);
        bench_copy_out(&b, 0, BYTES);
        silent(&b);
    }
}

/* ---- thrown away ---- */

static const char increase_ptx[] =
    MAP("ld.global.u32 %r2, [%rd4];\nadd.u32 %r2, %r2, 1;\n.loc 1 11 5\nst.global.u32 [%rd4], %r2;\n");

/* in place, in memory that nobody wrote; the arguments are swapped so that it is the input's. */
static void increase_bench(struct bench *b)
{
    bench_start(b, increase_ptx, 0);
    uint64_t params[2] = {IN, OUT};
    uint64_t launch = capture_make_launch(&b->make, b->kernel, b->config, params, sizeof params);
    for (int k = 0; k < COUNT; k++)
        b->after[k] = 1;
    capture_make_snapshot(&b->make, launch, b->in, CAP_BEFORE, b->input, BYTES);
    capture_make_snapshot(&b->make, launch, b->in, CAP_AFTER, b->after, BYTES);
}

static void test_unwritten_thrown_away(void **state)
{
    struct bench b;
    struct judgements again;
    struct diag diag;
    increase_bench(&b);
    capture_make_free(&b.make, b.in, IN, 0);
    verify_kit_verify(&b.make, &b.session);
    const struct finding *f = verify_kit_only(&b.session, FINDING_UNINITIALISED_READ);
    assert_int_equal(f->severity, FINDING_NOTE);
    assert_int_equal(f->line, 10);
    assert_true(f->confidence < 0.6);
    assert_int_equal(store_write(b.session.model, &b.session.judgements, NULL, &diag), STATUS_OK);
    assert_int_equal(store_read(b.session.model, &again, &diag), STATUS_OK);
    assert_true(again.items[0].faults[0].unseen);
    judgements_free(&again);
    bench_end(&b);
}

static void test_unwritten_increased_and_shown(void **state)
{
    struct bench b;
    increase_bench(&b);
    bench_copy_out(&b, IN - OUT, 4);
    found(&b, 10);
    bench_end(&b);
}

/* ---- shared and local memory that is only moved ---- */

/* Threads below `filled` store their word in the tile; each then takes the word of thread 63 - i out of it. */
#define TURN(filled)                                                                                                   \
    HEAD ".shared .align 4 .b8 tile[256];\n" START                                                                     \
         "ld.global.u32 %r2, [%rd5];\nmov.u32 %r3, tile;\nshl.b32 %r4, %r1, 2;\nadd.u32 %r5, %r3, %r4;\n"              \
         "setp.lt.u32 %p1, %r1, " #filled ";\n@%p1 st.shared.u32 [%r5], %r2;\nbar.sync 0;\n"                           \
         "sub.u32 %r4, 252, %r4;\nadd.u32 %r5, %r3, %r4;\n.loc 1 15 5\nld.shared.u32 %r6, [%r5];\n"                    \
         ".loc 1 16 5\nst.global.u32 [%rd4], %r6;\nret;\n}\n"
static const char turn_short_ptx[] = TURN(63), turn_ptx[] = TURN(64), turn_none_ptx[] = TURN(0);

static void turn_bench(struct bench *b, const char *ptx)
{
    bench_start(b, ptx, BYTES);
    for (uint32_t k = 0; k < COUNT; k++)
        b->input[k] = 3 + k;
    for (int k = 0; k < COUNT; k++)
        b->after[k] = b->input[COUNT - 1 - k];
    bench_launch(b);
}

static void test_shared_in_part(void **state)
{
    struct bench b;
    turn_bench(&b, turn_short_ptx);
    bench_copy_out(&b, 0, BYTES);
    const struct finding *f = found(&b, 16);
    assert_int_equal(f->allocation, b.out);
    assert_int_equal(f->offset, 0);
    assert_int_equal(f->thread[0], 0);
    assert_non_null(strstr(f->summary, "shared memory"));
    bench_end(&b);
}

static void test_shared_not_at_all(void **state)
{
    struct bench b;
    turn_bench(&b, turn_none_ptx);
    bench_copy_out(&b, 0, BYTES);
    found(&b, 16);
    bench_end(&b);
}

static void test_shared_sound_twins(void **state)
{
    struct bench b;
    turn_bench(&b, turn_ptx);
    bench_copy_out(&b, 0, BYTES);
    silent(&b);
    turn_bench(&b, turn_short_ptx); /* what was not filled is not looked at */
    bench_copy_out(&b, 4, BYTES - 4);
    silent(&b);
    turn_bench(&b, turn_short_ptx); /* and overwritten before */
    capture_make_copy_in(&b.make, OUT, 4);
    bench_copy_out(&b, 0, BYTES);
    silent(&b);
}

/* One structure { char; int; } is made in shared memory by thread 0 and moved as two words: its hole goes along. */
static const char structure_ptx[] =
    HEAD ".shared .align 4 .b8 made[8];\n" START
         "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra END;\nmov.u32 %r3, made;\nmov.u32 %r2, 9;\nst.shared.u8 [%r3], %r2;\n"
         "st.shared.u32 [%r3+4], %r2;\nld.shared.u32 %r4, [%r3];\nld.shared.u32 %r5, [%r3+4];\n"
         "st.global.u32 [%rd4], %r4;\nst.global.u32 [%rd4+4], %r5;\nEND:\nret;\n}\n";

static void test_shared_hole_of_a_structure(void **state)
{
    struct bench b;
    bench_start(&b, structure_ptx, BYTES);
    b.after[0] = b.after[1] = 9;
    bench_launch(&b);
    bench_copy_out(&b, 0, BYTES);
    silent(&b);
}

/* Of a local array of two words the first is set where the input is not 0; the thread's own is moved on. */
static const char local_ptx[] = HEAD
    ".local .align 4 .b8 kept[8];\n" START "ld.global.u32 %r2, [%rd5];\nsetp.ne.u32 %p1, %r2, 0;\nmov.u32 %r3, kept;\n"
    "@%p1 st.local.u32 [%r3], %r2;\nst.local.u32 [%r3+4], %r2;\nld.local.u32 %r4, [%r3];\n"
    ".loc 1 16 5\nst.global.u32 [%rd4], %r4;\nret;\n}\n";

static void test_local_in_part(void **state)
{
    for (int sound = 0; sound <= 1; sound++) {
        struct bench b;
        bench_start(&b, local_ptx, BYTES);
        for (uint32_t k = 0; k < COUNT; k++)
            b.input[k] = b.after[k] = sound ? k + 1 : k / 10;
        bench_launch(&b);
        bench_copy_out(&b, 0, BYTES);
        if (sound) {
            silent(&b);
            continue;
        }
        const struct finding *f = found(&b, 16);
        assert_non_null(strstr(f->summary, "local memory"));
        bench_end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unwritten_decides_a_store),
        cmocka_unit_test(test_written_decides_a_store),
        cmocka_unit_test(test_unwritten_chooses_a_value),
        cmocka_unit_test(test_unwritten_in_a_rectangle),
        cmocka_unit_test(test_unwritten_chooses_what_stays_behind),
        cmocka_unit_test(test_unwritten_decides_nothing),
        cmocka_unit_test(test_unwritten_thrown_away),
        cmocka_unit_test(test_unwritten_increased_and_shown),
        cmocka_unit_test(test_shared_in_part),
        cmocka_unit_test(test_shared_not_at_all),
        cmocka_unit_test(test_shared_sound_twins),
        cmocka_unit_test(test_shared_hole_of_a_structure),
        cmocka_unit_test(test_local_in_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
