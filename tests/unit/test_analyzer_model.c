/* Kernels, lifetimes, times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analyzer/kernel_table.h"
#include "analyzer/session.h"
#include "tests/unit/capture_make.h"

static void open_session(struct capture_make *m, struct session *s)
{
    struct diag diag = {.text = ""};
    if (session_open(capture_make_write(m), s, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(s->capture->rejected.count, 0);
}

static void close_all(struct capture_make *m, struct session *s)
{
    session_close(s);
    capture_make_end(m);
}

static uint32_t make_kernel(struct capture_make *m)
{
    uint32_t module = capture_make_module(m, "x");
    return capture_make_kernel(m, module, "_ZN3net5scaleIfLi4EEEvPT_i", (const uint32_t[]){8, 4, 0});
}

static void test_model_kernel_names(void **state)
{
    struct capture_make m;
    struct session s;
    capture_make_start(&m);
    make_kernel(&m);
    open_session(&m, &s);
    assert_string_equal(s.model->kernels[0].name, "net::scale<float, 4>");
    assert_non_null(strstr(s.model->kernels[0].full_name, "(float*, int)"));
    close_all(&m, &s);
}

static void test_model_launch_numbers(void **state)
{
    struct capture_make m;
    struct session s;
    capture_make_start(&m);
    uint32_t kernel = make_kernel(&m), config = capture_make_config(&m, 1, 32);
    uint64_t params[2] = {0};
    uint64_t first = capture_make_launch(&m, kernel, config, params, 12);
    capture_make_sync(&m, 0);
    uint64_t second = capture_make_launch(&m, kernel, config, params, 12);
    open_session(&m, &s);
    assert_int_equal(s.model->launch_count, 2);
    assert_int_equal(model_launch_seq(model_launch_by_number(s.model, 1)), first);
    assert_int_equal(model_launch_seq(model_launch_by_number(s.model, 2)), second);
    assert_null(model_launch_by_number(s.model, 0));
    assert_null(model_launch_by_number(s.model, 3));
    assert_int_equal(model_first_launch_from(s.model, first + 1), 1);
    close_all(&m, &s);
}

static void test_model_lifetimes(void **state)
{
    struct capture_make m;
    struct session s;
    struct model_live live;
    capture_make_start(&m);
    uint32_t a = capture_make_alloc(&m, 0x1000, 0x100);
    uint32_t b = capture_make_alloc(&m, 0x2000, 0x100);
    uint64_t freed = capture_make_free(&m, a, 0x1000, 0);
    uint32_t c = capture_make_alloc(&m, 0x1080, 0x40);
    uint64_t refused = capture_make_free(&m, b, 0x2000, 1);
    open_session(&m, &s);
    model_live_start(&live, s.model);
    model_live_advance(&live, freed);
    assert_int_equal(model_live_find(&live, 0x1000)->id, a);
    assert_int_equal(model_live_find(&live, 0x10ff)->id, a);
    assert_null(model_live_find(&live, 0x1100));
    assert_null(model_live_find(&live, 0xfff));
    model_live_advance(&live, freed + 1);
    assert_null(model_live_find(&live, 0x1000));
    assert_int_equal(model_live_find_freed(&live, 0x1000)->id, a);
    model_live_advance(&live, refused + 1);
    assert_int_equal(model_live_find(&live, 0x1090)->id, c);
    assert_null(model_live_find_freed(&live, 0x1000));       /* its range was taken */
    assert_int_equal(model_live_find(&live, 0x2000)->id, b); /* the free was refused */
    model_live_end(&live);
    close_all(&m, &s);
}

/* Two threads: the free of the old owner got a later seq than the allocation that took its place. */
static void test_model_overlap_evicts(void **state)
{
    struct capture_make m;
    struct session s;
    struct model_live live;
    capture_make_start(&m);
    uint32_t a = capture_make_alloc(&m, 0x1000, 0x100);
    uint32_t b = capture_make_alloc(&m, 0x1000, 0x80);
    uint64_t last = capture_make_free(&m, a, 0x1000, 0);
    open_session(&m, &s);
    model_live_start(&live, s.model);
    model_live_advance(&live, last + 1);
    assert_int_equal(model_live_find(&live, 0x1000)->id, b);
    assert_int_equal(live.live.count, 1);
    model_live_end(&live);
    close_all(&m, &s);
}

/* 9 us of waiting are shared by device time: 1 us and 2 us ran, so 3 us and 6 us; a wait with nothing pending is
 * nobody's. */
static void test_model_times(void **state)
{
    struct capture_make m;
    struct session s;
    uint64_t params[2] = {0};
    capture_make_start(&m);
    uint32_t kernel = make_kernel(&m), config = capture_make_config(&m, 1, 32);
    uint64_t first = capture_make_launch(&m, kernel, config, params, 12);
    uint64_t second = capture_make_launch(&m, kernel, config, params, 12);
    capture_make_sync(&m, 9000);
    capture_make_sync(&m, 5000);
    capture_make_launch(&m, kernel, config, params, 12);
    capture_make_time(&m, first, 1000);
    capture_make_time(&m, second, 2000);
    open_session(&m, &s);
    assert_int_equal(s.model->launches[0].wait_ns, 3000);
    assert_int_equal(s.model->launches[1].wait_ns, 6000);
    assert_int_equal(s.model->launches[2].wait_ns, 0);
    assert_int_equal(s.model->launches[2].time_source, 0);
    struct kernel_table t = kernel_table_of(s.model, &s.judgements);
    assert_int_equal(t.count, 1);
    assert_int_equal(t.rows[0].launches, 3);
    assert_int_equal(t.rows[0].timed, 2);
    assert_int_equal(t.rows[0].device_ns, 3000);
    assert_int_equal(t.rows[0].wait_ns, 9000);
    assert_int_equal(t.rows[0].launch_ns, 15000);
    free(t.rows);
    close_all(&m, &s);
}

static void test_model_wait_without_times(void **state)
{
    struct capture_make m;
    struct session s;
    uint64_t params[2] = {0};
    capture_make_start(&m);
    uint32_t kernel = make_kernel(&m), config = capture_make_config(&m, 1, 32);
    for (int i = 0; i < 3; i++)
        capture_make_launch(&m, kernel, config, params, 12);
    capture_make_sync(&m, 10);
    open_session(&m, &s);
    assert_int_equal(s.model->launches[0].wait_ns, 3);
    assert_int_equal(s.model->launches[1].wait_ns, 3);
    assert_int_equal(s.model->launches[2].wait_ns, 4); /* nothing gets lost */
    close_all(&m, &s);
}

/* A stream's waits cover the launches before them, whatever other streams have pending. */
static void test_model_waits_by_stream(void **state)
{
    struct capture_make m;
    struct session s;
    static const uint32_t streams[] = {7, 8, 7, 7};
    static const uint64_t expected[] = {100, 6, 50, 7};
    capture_make_start(&m);
    uint32_t kernel = make_kernel(&m), config = capture_make_config(&m, 1, 32);
    for (uint32_t id = 7; id <= 8; id++) {
        struct cap_stream stream = {
            .head.type = CAP_STREAM, .id = id, .kind = CAP_STREAM_CREATED, .flags = 1, .handle = id};
        capture_make_record(&m, &stream, sizeof stream, NULL, 0);
    }
    struct cap_event event = {.head.type = CAP_EVENT, .id = 5, .handle = 5};
    capture_make_record(&m, &event, sizeof event, NULL, 0);
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        struct cap_launch launch = {.head.type = CAP_LAUNCH,
                                    .kernel = kernel,
                                    .config = config,
                                    .stream = streams[i],
                                    .outcome = CAP_LAUNCH_OK,
                                    .flags = CAP_LAUNCH_ARGS_UNKNOWN};
        struct cap_event_op_record op = {
            .head.type = CAP_EVENT_OP, .op = CAP_EVENT_RECORD, .event = 5, .stream = streams[i]};
        capture_make_record(&m, &launch, sizeof launch, NULL, 0);
        if (i == 0)
            capture_make_record(&m, &op, sizeof op, NULL, 0);
        if (i == 2) { /* the event's own launch, then what is left of its stream */
            struct cap_sync wait = {.head.type = CAP_SYNC, .kind = CAP_SYNC_EVENT, .object = 5, .wait_ns = 100};
            capture_make_record(&m, &wait, sizeof wait, NULL, 0);
            wait = (struct cap_sync){.head.type = CAP_SYNC, .kind = CAP_SYNC_STREAM, .object = 7, .wait_ns = 50};
            capture_make_record(&m, &wait, sizeof wait, NULL, 0);
        }
    }
    capture_make_sync(&m, 13);
    open_session(&m, &s);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(s.model->launches[i].wait_ns, expected[i]);
    close_all(&m, &s);
}

/* Launches far apart and close together: every look-up finds what a walk finds. */
static void test_model_launch_from(void **state)
{
    struct capture_make m;
    struct session s;
    uint64_t params[2] = {0}, last = 0;
    capture_make_start(&m);
    uint32_t kernel = make_kernel(&m), config = capture_make_config(&m, 1, 32);
    for (unsigned i = 0; i < 60; i++) {
        last = capture_make_launch(&m, kernel, config, params, 12);
        for (unsigned k = 0; k < (i < 3 ? 300 : i % 7 ? 0 : i); k++)
            capture_make_sync(&m, 0);
    }
    open_session(&m, &s);
    for (uint64_t seq = 0; seq < last + 3; seq++) {
        size_t expected = 0;
        while (expected < s.model->launch_count && model_launch_seq(&s.model->launches[expected]) < seq)
            expected++;
        assert_int_equal(model_first_launch_from(s.model, seq), expected);
    }
    close_all(&m, &s);
}

enum { PLAIN_MAX = 4096 };

/* The same list, the plain way. */
static void plain_insert(struct model_allocation **plain, size_t *count, struct model_allocation *a)
{
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++)
        if (plain[i]->address >= a->address + a->bytes || a->address >= plain[i]->address + plain[i]->bytes)
            plain[kept++] = plain[i];
    size_t at = kept;
    while (at > 0 && plain[at - 1]->address > a->address)
        at--;
    memmove(plain + at + 1, plain + at, (kept - at) * sizeof(void *));
    plain[at] = a;
    *count = kept + 1;
}

static void test_address_list_like_a_plain_one(void **state)
{
    static struct model_allocation all[PLAIN_MAX], *plain[PLAIN_MAX];
    for (unsigned order = 0; order < 3; order++) { /* rising, falling, any */
        struct address_list list = {0};
        size_t count = 0;
        uint32_t random = 1;
        for (size_t i = 0; i < PLAIN_MAX; i++) {
            random = random * 1664525 + 1013904223;
            uint64_t at = order == 0 ? i : order == 1 ? PLAIN_MAX - i : (random >> 12) % (2 * PLAIN_MAX);
            all[i] =
                (struct model_allocation){.address = at * 16, .bytes = random >> 28 ? 16 : 16 + (random >> 20) % 4000};
            assert_true(address_list_insert(&list, &all[i]));
            plain_insert(plain, &count, &all[i]);
            if (i % 5 == 4) {
                size_t gone = (random >> 8) % count;
                address_list_remove(&list, plain[gone]);
                memmove(plain + gone, plain + gone + 1, (--count - gone) * sizeof(void *));
            }
        }
        struct address_place place = {0};
        assert_int_equal(list.count, count);
        for (size_t i = 0; i < count; i++) {
            struct address_place from = address_list_from(&list, plain[i]->address);
            assert_ptr_equal(address_list_before(&list, from), i ? plain[i - 1] : NULL);
            assert_ptr_equal(address_list_next(&list, &from), plain[i]);
            assert_ptr_equal(address_list_next(&list, &place), plain[i]);
            assert_ptr_equal(address_list_find(&list, plain[i]->address + plain[i]->bytes - 1), plain[i]);
        }
        assert_null(address_list_next(&list, &place));
        address_list_clear(&list, 0, UINT64_MAX);
        assert_int_equal(list.count, 0);
        assert_null(address_list_find(&list, 16));
        address_list_free(&list);
    }
}

static void test_model_options(void **state)
{
    struct capture_make m;
    struct session s;
    capture_make_start(&m);
    capture_make_option(&m, "PRESET", "deep");
    open_session(&m, &s);
    assert_string_equal(model_option(s.model, "preset"), "deep");
    assert_null(model_option(s.model, "other"));
    close_all(&m, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_kernel_names), cmocka_unit_test(test_model_launch_numbers),
        cmocka_unit_test(test_model_lifetimes),    cmocka_unit_test(test_model_overlap_evicts),
        cmocka_unit_test(test_model_times),        cmocka_unit_test(test_model_wait_without_times),
        cmocka_unit_test(test_model_options),      cmocka_unit_test(test_model_waits_by_stream),
        cmocka_unit_test(test_model_launch_from),  cmocka_unit_test(test_address_list_like_a_plain_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
