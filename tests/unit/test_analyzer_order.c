/* Which pairs of work nothing orders: clocks, patterns of bytes, and when nothing may be said. What the calls of a real
 * program add up to is tested in tests/e2e/order.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "analyzer/order.h"
#include "tests/unit/capture_make.h"

#define BUFFER 0x10000

struct bench {
    struct capture_make make;
    uint32_t streams, events;
    size_t pairs;
    struct order_pair last;
    struct order_use earlier, later;
};

static uint32_t stream(struct bench *b, enum cap_stream_kind kind, uint32_t flags)
{
    struct cap_stream r = {.head.type = CAP_STREAM, .id = ++b->streams, .context = 1, .kind = kind, .flags = flags};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
    return r.id;
}

static uint32_t own_stream(struct bench *b)
{
    return stream(b, CAP_STREAM_CREATED, 1);
}

static void stream_gone(struct bench *b, uint32_t id)
{
    struct cap_stream r = {
        .head.type = CAP_STREAM, .id = id, .context = 1, .kind = CAP_STREAM_CREATED, .flags = 1, .destroyed = 1};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
}

static uint32_t event(struct bench *b)
{
    struct cap_event r = {.head.type = CAP_EVENT, .id = ++b->events, .context = 1};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
    return r.id;
}

static void event_op(struct bench *b, enum cap_event_op op, uint32_t e, uint32_t s)
{
    struct cap_event_op_record r = {.head.type = CAP_EVENT_OP, .op = op, .event = e, .stream = s};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
}

static void order(struct bench *b, enum cap_order_op op, uint32_t e, uint32_t s)
{
    struct cap_order r = {.head.type = CAP_ORDER, .op = op, .event = e, .stream = s};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
}

static void wait_host(struct bench *b, enum cap_sync_kind kind, uint32_t object)
{
    struct cap_sync r = {.head.type = CAP_SYNC, .kind = kind, .object = object};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
}

static void set_some(struct bench *b, uint32_t s, uint64_t offset, uint64_t bytes, uint32_t value)
{
    struct cap_set r = {.head.type = CAP_SET,
                        .target = BUFFER + offset,
                        .width = bytes,
                        .height = 1,
                        .value = value,
                        .value_bytes = 1,
                        .stream = s,
                        .asynchronous = 1};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
}

/* Every set with another value. */
static void set(struct bench *b, uint32_t s)
{
    set_some(b, s, 0, 256, (uint32_t)b->make.seq);
}

static void hook(struct bench *b, const char *name)
{
    struct cap_hook r = {.head.type = CAP_HOOK, .index = 1, .name = capture_make_string(&b->make, name)};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
}

static void bench_start(struct bench *b)
{
    *b = (struct bench){0};
    capture_make_start(&b->make);
    hook(b, "cuLaunchHostFunc");
    capture_make_alloc(&b->make, BUFFER, 4096);
}

static void count_pair(void *context, const struct order_pair *p)
{
    struct bench *b = context;
    b->pairs++;
    b->last = *p;
    b->earlier = *p->earlier;
    b->later = *p->later;
}

/* How many pairs there are; ends the bench. */
static size_t bench_pairs(struct bench *b)
{
    struct capture *c = NULL;
    struct model *m = NULL;
    struct diag diag = {.text = ""};
    if (capture_open(capture_make_write(&b->make), &c, &diag) || model_build(c, &m, &diag))
        fail_msg("%s", diag.text);
    assert_true(order_walk(m, &(struct judgements){0}, count_pair, b));
    model_free(m);
    capture_close(c);
    capture_make_end(&b->make);
    return b->pairs;
}

static void test_walk_two_streams(void **state)
{
    struct bench b;
    bench_start(&b);
    uint32_t one = own_stream(&b), two = own_stream(&b);
    set_some(&b, one, 100, 50, 1);
    set_some(&b, one, 300, 50, 2);
    set_some(&b, two, 120, 100, 3);
    assert_int_equal(bench_pairs(&b), 1);
    assert_int_equal(b.last.offset, 120);
    assert_int_equal(b.last.bytes, 30);
    assert_int_equal(b.last.missing, ORDER_NOTHING);
    assert_int_equal(b.earlier.stream, one);
    assert_int_equal(b.later.stream, two);
}

static void test_walk_told_once(void **state)
{
    struct bench b;
    bench_start(&b);
    uint32_t one = own_stream(&b), two = own_stream(&b);
    set(&b, one);
    set(&b, two);
    set(&b, two); /* behind the one that was told */
    assert_int_equal(bench_pairs(&b), 1);
}

static void test_walk_unknown(void **state)
{
    for (int way = 0; way < 5; way++) {
        struct bench b;
        bench_start(&b);
        if (way == 1) { /* an old shim */
            capture_make_end(&b.make);
            b = (struct bench){0};
            capture_make_start(&b.make);
            capture_make_alloc(&b.make, BUFFER, 4096);
        }
        uint32_t one = own_stream(&b), two = own_stream(&b);
        set(&b, one);
        set(&b, two);
        if (way == 2)
            b.make.header.dropped_records = 1;
        if (way == 3)
            b.make.header.state = CAP_STEPPED_ASIDE;
        if (way == 4) {
            struct cap_note_record r = {.head.type = CAP_NOTE};
            r.text = capture_make_string(
                &b.make, "driver function cuStreamFollow was looked up and is unknown here: its calls are not seen");
            capture_make_record(&b.make, &r, sizeof r, NULL, 0);
        }
        assert_int_equal(bench_pairs(&b), way ? 0 : 1);
    }
}

static void test_walk_event(void **state)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        struct bench b;
        bench_start(&b);
        uint32_t one = own_stream(&b), two = own_stream(&b), e = event(&b);
        if (!ordered)
            event_op(&b, CAP_EVENT_RECORD, e, one);
        set(&b, one);
        if (ordered)
            event_op(&b, CAP_EVENT_RECORD, e, one);
        event_op(&b, CAP_EVENT_STREAM_WAIT, e, two);
        set(&b, two);
        assert_int_equal(bench_pairs(&b), !ordered);
        assert_int_equal(b.last.missing, ordered ? 0 : ORDER_EVENT_EARLY);
    }
}

/* An event whose handle nobody knows may be anybody's. */
static void test_walk_foreign_event(void **state)
{
    struct bench b;
    bench_start(&b);
    uint32_t one = own_stream(&b), two = own_stream(&b);
    set(&b, one);
    event_op(&b, CAP_EVENT_STREAM_WAIT, 0, two);
    set(&b, two);
    assert_int_equal(bench_pairs(&b), 0);
}

/* What may wait for anything stays out of it, and so does who waits for that, until the host has waited. */
static void test_walk_doubt(void **state)
{
    for (int waited = 0; waited < 2; waited++) {
        struct bench b;
        bench_start(&b);
        uint32_t one = own_stream(&b), two = own_stream(&b), three = own_stream(&b), e = event(&b);
        order(&b, CAP_ORDER_WAIT_VALUE, 0, two);
        event_op(&b, CAP_EVENT_RECORD, e, two);
        event_op(&b, CAP_EVENT_STREAM_WAIT, e, three);
        if (waited) {
            wait_host(&b, CAP_SYNC_STREAM, two);
            wait_host(&b, CAP_SYNC_STREAM, three);
        }
        set(&b, one);
        set(&b, three);
        assert_int_equal(bench_pairs(&b), waited);
    }
}

static void test_walk_default_stream(void **state)
{
    static const struct {
        enum cap_stream_kind first, second;
        uint32_t first_flags, second_flags;
        size_t pairs;
    } rows[] = {
        {CAP_STREAM_LEGACY, CAP_STREAM_CREATED, 0, 0, 0},    {CAP_STREAM_CREATED, CAP_STREAM_LEGACY, 0, 0, 0},
        {CAP_STREAM_LEGACY, CAP_STREAM_CREATED, 0, 1, 1},    {CAP_STREAM_CREATED, CAP_STREAM_LEGACY, 1, 0, 1},
        {CAP_STREAM_LEGACY, CAP_STREAM_PER_THREAD, 0, 0, 0}, {CAP_STREAM_PER_THREAD, CAP_STREAM_CREATED, 0, 0, 1},
        {CAP_STREAM_PER_THREAD, CAP_STREAM_LEGACY, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench b;
        bench_start(&b);
        uint32_t one = stream(&b, rows[i].first, rows[i].first_flags);
        uint32_t two = stream(&b, rows[i].second, rows[i].second_flags);
        set(&b, one);
        set(&b, two);
        assert_int_equal(bench_pairs(&b), rows[i].pairs);
    }
}

/* Work of a stream that waits for the default stream comes behind that of all others so far. */
static void test_walk_through_default_stream(void **state)
{
    struct bench b;
    bench_start(&b);
    uint32_t legacy = stream(&b, CAP_STREAM_LEGACY, 0), one = stream(&b, CAP_STREAM_CREATED, 0),
             two = stream(&b, CAP_STREAM_CREATED, 0);
    set(&b, one);
    set_some(&b, legacy, 1000, 8, 1);
    set(&b, two);
    assert_int_equal(bench_pairs(&b), 0);
}

static void test_walk_capture(void **state)
{
    struct bench b;
    bench_start(&b);
    uint32_t one = own_stream(&b), two = own_stream(&b), three = own_stream(&b), e = event(&b);
    order(&b, CAP_ORDER_CAPTURE_BEGIN, 0, one);
    set(&b, one); /* into the graph */
    event_op(&b, CAP_EVENT_RECORD, e, one);
    event_op(&b, CAP_EVENT_STREAM_WAIT, e, two);
    set(&b, two); /* likewise */
    set(&b, three);
    order(&b, CAP_ORDER_CAPTURE_END, 0, one);
    set(&b, two);
    assert_int_equal(bench_pairs(&b), 1);
    assert_int_equal(b.earlier.stream, three);
    assert_int_equal(b.later.stream, two);
}

/* More streams than there is room for at a time, one after the other. */
static void test_walk_many_streams(void **state)
{
    struct bench b;
    bench_start(&b);
    for (int i = 0; i < 3 * ORDER_SLOTS; i++) {
        uint32_t s = own_stream(&b);
        set(&b, s);
        wait_host(&b, CAP_SYNC_STREAM, s);
        stream_gone(&b, s);
    }
    uint32_t one = own_stream(&b), two = own_stream(&b);
    set(&b, one);
    set(&b, two);
    assert_int_equal(bench_pairs(&b), 1);
}

/* Streams that go without work, before there is any. */
static void test_walk_unused_streams(void **state)
{
    struct bench b;
    bench_start(&b);
    stream_gone(&b, own_stream(&b));
    uint32_t one = own_stream(&b), unused = own_stream(&b), two = own_stream(&b);
    set(&b, one);
    stream_gone(&b, unused);
    set(&b, two);
    assert_int_equal(bench_pairs(&b), 1);
}

static void test_overlap(void **state)
{
    uint64_t offset = 0, bytes = 0;
    const struct judgement_run block = {100, 50, 0, 1}, even = {0, 4, 8, 100}, odd = {4, 4, 8, 100},
                               wide = {6, 4, 16, 50}, row = {3, 1, 8, 2};
#define MEET(a, b) order_overlap(&(a), 1, &(b), 1, &offset, &bytes)
    assert_true(MEET(block, block));
    assert_int_equal(offset, 100);
    assert_int_equal(bytes, 50);
    assert_true(MEET(block, even));
    assert_int_equal(offset, 104);
    assert_int_equal(bytes, 4);
    assert_false(MEET(even, odd));
    assert_false(MEET(odd, even));
    assert_true(MEET(wide, even));
    assert_int_equal(offset, 8);
    assert_int_equal(bytes, 2);
    assert_true(MEET(even, wide));
    assert_true(MEET(row, even));
    assert_false(MEET(row, odd));
    const struct judgement_run beyond = {1000, 4, 8, 3};
    assert_false(MEET(beyond, even));
    const struct judgement_run list[2] = {beyond, {799, 1, 0, 1}};
    assert_false(order_overlap(list, 2, &even, 1, &offset, &bytes));
    assert_true(order_overlap(list, 2, &odd, 1, &offset, &bytes));
    assert_int_equal(offset, 799);
#undef MEET
}

/* Lists that would take for ever are compared as far as is reasonable. */
static void test_overlap_gives_up(void **state)
{
    struct judgement_run a[17], b[17];
    uint64_t offset = 0, bytes = 0;
    for (size_t i = 0; i < 17; i++) {
        a[i] = (struct judgement_run){0, 1, 4, UINT64_C(1) << 40};
        b[i] = (struct judgement_run){2, 1, 4, UINT64_C(1) << 40};
    }
    b[16].offset = 0;
    assert_true(order_overlap(a, 17, b + 2, 15, &offset, &bytes));
    assert_false(order_overlap(a, 17, b, 17, &offset, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walk_two_streams),    cmocka_unit_test(test_walk_told_once),
        cmocka_unit_test(test_walk_unknown),        cmocka_unit_test(test_walk_event),
        cmocka_unit_test(test_walk_foreign_event),  cmocka_unit_test(test_walk_doubt),
        cmocka_unit_test(test_walk_default_stream), cmocka_unit_test(test_walk_through_default_stream),
        cmocka_unit_test(test_walk_capture),        cmocka_unit_test(test_walk_many_streams),
        cmocka_unit_test(test_walk_unused_streams), cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_overlap_gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
