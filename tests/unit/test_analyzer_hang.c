/* When a capture shows a hang, and when it only looks like one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "analyzer/hang.h"
#include "tests/unit/capture_make.h"

#define SECOND UINT64_C(1000000000) /* the TSC counts ns here */

struct scene {
    struct capture_make m;
    struct session session;
    struct hang hang;
    uint32_t kernel, config;
};

static uint32_t make_stream(struct scene *s, uint32_t id)
{
    struct cap_stream stream = {.head.type = CAP_STREAM,
                                .id = id,
                                .context = 1,
                                .kind = id == 1 ? CAP_STREAM_LEGACY : CAP_STREAM_CREATED,
                                .flags = 1};
    capture_make_record(&s->m, &stream, sizeof stream, NULL, 0);
    return id;
}

/* A process that has lived for 100 s, with two streams and one kernel. */
static void scene_start(struct scene *s)
{
    memset(s, 0, sizeof *s);
    capture_make_start(&s->m);
    struct cap_header *h = &s->m.header;
    h->state = CAP_RUNNING;
    h->tsc_start = h->mono_start_ns = SECOND;
    h->tsc_now = h->mono_now_ns = 101 * SECOND;
    struct cap_hook hook = {.head.type = CAP_HOOK, .index = 7, .name = capture_make_string(&s->m, "cuCtxSynchronize")};
    capture_make_record(&s->m, &hook, sizeof hook, NULL, 0);
    make_stream(s, 1);
    make_stream(s, 2);
    uint32_t module = capture_make_module(&s->m, "x");
    s->kernel = capture_make_kernel(&s->m, module, "k", (const uint32_t[]){0});
    s->config = capture_make_config(&s->m, 1, 32);
}

static uint64_t launch(struct scene *s)
{
    return capture_make_launch(&s->m, s->kernel, s->config, NULL, 0);
}

/* A thread inside a wait for its context since `at` seconds after the start; 0: in no call. */
static void thread(struct scene *s, uint32_t tid, uint64_t at)
{
    struct cap_sync sync = {.head.type = CAP_SYNC, .kind = CAP_SYNC_CONTEXT};
    uint64_t seq = capture_make_record(&s->m, &sync, sizeof sync, NULL, 0);
    struct cap_thread_state state = {.head.type = CAP_THREAD_STATE, .tid = tid, .call = at ? 7 : 0xffff, .scope = 7};
    state.entered_tsc = (1 + at) * SECOND;
    state.seq = seq;
    capture_make_record(&s->m, &state, sizeof state, NULL, 0);
}

static void stream_state(struct scene *s, uint32_t stream, uint64_t running, uint64_t waiting, uint64_t since)
{
    struct cap_stream_state state = {.head.type = CAP_STREAM_STATE, .stream = stream, .busy = CAP_BUSY_YES};
    state.asked_tsc = 101 * SECOND;
    state.changed_tsc = state.running_tsc = (1 + since) * SECOND;
    state.running = running;
    state.waiting = waiting;
    capture_make_record(&s->m, &state, sizeof state, NULL, 0);
}

static void value(struct scene *s, enum cap_stream_value_op op, uint32_t stream, uint64_t address)
{
    struct cap_stream_value v = {.head.type = CAP_STREAM_VALUE, .op = op, .stream = stream, .bytes = 4};
    v.address = address;
    v.value = 1;
    capture_make_record(&s->m, &v, sizeof v, NULL, 0);
}

static void look(struct scene *s, uint64_t after_s)
{
    struct diag diag = {.text = ""};
    if (session_open(capture_make_write(&s->m), &s->session, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(s->session.capture->rejected.count, 0);
    assert_int_equal(hang_look(&s->session, after_s * SECOND, &s->hang), STATUS_OK);
}

static const struct finding *only_finding(const struct scene *s)
{
    assert_int_equal(s->session.findings.count, 1);
    return &s->session.findings.items[0];
}

static void scene_end(struct scene *s)
{
    hang_free(&s->hang);
    session_close(&s->session);
    capture_make_end(&s->m);
}

/* One launch that took `usual_ns` (0: none), one that has run since the second `since`. */
static void run_scene(struct scene *s, uint32_t usual_ns, uint64_t since, uint64_t waits_at)
{
    scene_start(s);
    uint64_t first = launch(s);
    if (usual_ns)
        capture_make_time(&s->m, first, usual_ns);
    uint64_t second = launch(s);
    thread(s, 5, waits_at);
    stream_state(s, 1, second, 0, since);
    look(s, 10);
}

static void test_hang_launch_far_above_usual(void **state)
{
    struct scene s;
    run_scene(&s, 1000000000, 40, 30);
    const struct finding *f = only_finding(&s);
    assert_int_equal(f->class, FINDING_HANG);
    assert_int_equal(f->launch, 2);
    assert_int_equal(s.hang.threads[0].since_ns, 70 * SECOND);
    assert_int_equal(s.hang.streams[0].running_ns, 60 * SECOND);
    assert_ptr_equal(s.hang.streams[0].waiter, &s.hang.threads[0]);
    scene_end(&s);
}

static void test_hang_launch_within_usual(void **state)
{
    struct scene s;
    run_scene(&s, 4000000000u, 40, 30); /* 60 s are less than 20 times 4 s */
    assert_int_equal(s.session.findings.count, 0);
    scene_end(&s);
}

static void test_hang_launch_without_comparison(void **state)
{
    struct scene s;
    run_scene(&s, 0, 40, 30);
    assert_int_equal(only_finding(&s)->class, FINDING_UNKNOWN);
    assert_int_equal(findings_serious(&s.session.findings), 0);
    scene_end(&s);
}

static void test_hang_nobody_waits(void **state)
{
    struct scene s;
    run_scene(&s, 1000, 40, 0);
    assert_int_equal(findings_serious(&s.session.findings), 0);
    scene_end(&s);
}

static void test_hang_not_long_enough(void **state)
{
    struct scene s;
    run_scene(&s, 1000, 95, 30);
    assert_int_equal(s.session.findings.count, 0);
    scene_end(&s);
}

static void test_hang_another_stream_moves(void **state)
{
    struct scene s;
    scene_start(&s);
    capture_make_time(&s.m, launch(&s), 1000);
    uint64_t running = launch(&s);
    thread(&s, 5, 30);
    stream_state(&s, 1, running, 0, 40);
    stream_state(&s, 2, 0, 0, 97);
    look(&s, 10);
    assert_int_equal(s.session.findings.count, 0);
    scene_end(&s);
}

static void waits_of_two(struct scene *s, bool crossed)
{
    scene_start(s);
    if (!crossed)
        value(s, CAP_VALUE_WRITE, 1, 0x2000);
    value(s, CAP_VALUE_WAIT, 1, 0x1000);
    if (crossed)
        value(s, CAP_VALUE_WRITE, 1, 0x2000);
    value(s, CAP_VALUE_WAIT, 2, 0x2000);
    value(s, CAP_VALUE_WRITE, 2, 0x1000);
    thread(s, 5, 30);
    stream_state(s, 1, 0, 0, 40);
    stream_state(s, 2, 0, 0, 40);
    look(s, 10);
}

static void test_hang_streams_in_a_circle(void **state)
{
    struct scene s;
    waits_of_two(&s, true);
    const struct finding *f = only_finding(&s); /* told once */
    assert_int_equal(f->class, FINDING_HANG);
    assert_true(f->confidence > 0.9);
    scene_end(&s);
}

/* Stream 1 writes before it waits: stream 2 can go on, and then stream 1. */
static void test_hang_streams_in_a_row(void **state)
{
    struct scene s;
    waits_of_two(&s, false);
    assert_int_equal(findings_serious(&s.session.findings), 0);
    scene_end(&s);
}

static void never_written(struct scene *s, bool other_thread_works)
{
    scene_start(s);
    capture_make_alloc(&s->m, 0x1000, 64);
    value(s, CAP_VALUE_WAIT, 2, 0x1000);
    thread(s, 5, 30);
    if (other_thread_works)
        thread(s, 6, 0);
    stream_state(s, 2, 0, 0, 40);
    look(s, 10);
}

static void test_hang_word_that_nobody_writes(void **state)
{
    struct scene s;
    never_written(&s, false);
    assert_int_equal(only_finding(&s)->class, FINDING_HANG);
    assert_int_equal(only_finding(&s)->severity, FINDING_WARNING);
    scene_end(&s);
}

static void test_hang_word_that_a_thread_may_write(void **state)
{
    struct scene s;
    never_written(&s, true);
    assert_int_equal(findings_serious(&s.session.findings), 0);
    scene_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hang_launch_far_above_usual),    cmocka_unit_test(test_hang_launch_within_usual),
        cmocka_unit_test(test_hang_launch_without_comparison), cmocka_unit_test(test_hang_nobody_waits),
        cmocka_unit_test(test_hang_not_long_enough),           cmocka_unit_test(test_hang_another_stream_moves),
        cmocka_unit_test(test_hang_streams_in_a_circle),       cmocka_unit_test(test_hang_streams_in_a_row),
        cmocka_unit_test(test_hang_word_that_nobody_writes),   cmocka_unit_test(test_hang_word_that_a_thread_may_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
