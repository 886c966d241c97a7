/* A capture with a limit keeps the newest launches, whatever the limit and however many threads make them, with all
 * that they refer to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/capture_read.h"
#include "common/map.h"
#include "shim/rotate_carry.h"
#include "tests/unit/shim_kit.h"

/* ---- what is carried on ---- */

enum { CUT = 100, THREAD = 7, OTHER = 8 };

#define ADD(to, kind, type, number, ...)                                                                               \
    do {                                                                                                               \
        struct kind record_ = {.head = {sizeof record_, type, 0xffff, number, 0}, __VA_ARGS__};                        \
        buf_append(to, &record_, sizeof record_);                                                                      \
    } while (0)

static struct carry_records records_of(const struct buf *b, uint32_t tid)
{
    return (struct carry_records){b->data, b->size, tid};
}

struct seen {
    uint64_t seqs[32]; /* without the CAP_WRITERs */
    uint32_t tids[32];
    unsigned count;
    uint32_t tid;
};

static void see(const struct cap_head *record, void *data)
{
    struct seen *s = data;
    if (record->type == CAP_WRITER) {
        s->tid = ((const struct cap_writer *)(const void *)record)->tid;
        return;
    }
    assert_true(s->count < 32);
    s->tids[s->count] = s->tid;
    s->seqs[s->count++] = record->seq;
}

static void check_carried(const struct buf *first, const struct buf *second, uint64_t cut, unsigned count,
                          const uint64_t *seqs, const uint32_t *tids)
{
    const struct carry_records a = records_of(first, 0), b = records_of(second, THREAD);
    struct buf out = {0};
    struct seen seen = {0};
    assert_true(carry_build(&out, &a, &b, cut));
    const struct carry_records all = records_of(&out, 0);
    carry_each(&all, see, &seen);
    assert_int_equal(seen.count, count);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(seen.seqs[i], seqs[i]);
        assert_int_equal(seen.tids[i], tids[i]);
    }
    buf_free(&out);
}

static void test_carry_build_allocations(void **state)
{
    struct buf old = {0}, dropped = {0};
    ADD(&old, cap_writer, CAP_WRITER, 1, .tid = OTHER);
    ADD(&old, cap_alloc, CAP_ALLOC, 1, .id = 1); /* lives on */
    ADD(&old, cap_alloc, CAP_ALLOC, 2, .id = 2); /* freed before the cut */
    ADD(&old, cap_alloc, CAP_ALLOC, 3, .id = 3); /* freed behind it */
    ADD(&old, cap_free, CAP_FREE, 4, .id = 4);   /* its allocation lies elsewhere */
    ADD(&old, cap_free, CAP_FREE, 5, .id = 5);   /* its allocation comes from the segment that is dropped */
    ADD(&old, cap_launch, CAP_LAUNCH, 6, .flags = 0);
    ADD(&dropped, cap_alloc, CAP_ALLOC, 7, .id = 5);
    ADD(&dropped, cap_free, CAP_FREE, 8, .id = 2);
    ADD(&dropped, cap_free, CAP_FREE, 9, .id = 1, .result = 1); /* refused: it still lives */
    ADD(&dropped, cap_launch, CAP_LAUNCH, CUT - 1, .flags = 0);
    ADD(&dropped, cap_launch, CAP_LAUNCH, CUT, .flags = 0);
    ADD(&dropped, cap_free, CAP_FREE, CUT + 1, .id = 3);
    check_carried(&old, &dropped, CUT, 5, (const uint64_t[]){1, 3, 4, CUT, CUT + 1},
                  (const uint32_t[]){OTHER, OTHER, OTHER, THREAD, THREAD});
    buf_free(&old);
    buf_free(&dropped);
}

static void test_carry_build_events_and_paths(void **state)
{
    struct buf old = {0}, dropped = {0};
    ADD(&old, cap_writer, CAP_WRITER, 1, .tid = OTHER);
    ADD(&old, cap_event, CAP_EVENT, 1, .id = 1);
    ADD(&old, cap_event, CAP_EVENT, 2, .id = 2);
    ADD(&old, cap_range, CAP_RANGE, 3, .kind = CAP_RANGE_PUSH, .thread = OTHER, .path = 1);
    ADD(&old, cap_range, CAP_RANGE, 4, .kind = CAP_RANGE_PUSH, .thread = THREAD, .path = 2);
    ADD(&old, cap_range, CAP_RANGE, 5, .kind = CAP_RANGE_PUSH, .thread = 9, .path = 3);
    ADD(&dropped, cap_range, CAP_RANGE, 6, .kind = CAP_RANGE_POP, .thread = THREAD, .path = 1);
    ADD(&dropped, cap_range, CAP_RANGE, 7, .kind = CAP_RANGE_MARK, .thread = THREAD, .path = 1);
    ADD(&dropped, cap_range, CAP_RANGE, 8, .kind = CAP_RANGE_THREAD_END, .thread = 9);
    ADD(&dropped, cap_event, CAP_EVENT, 9, .id = 2, .destroyed = 1);
    ADD(&dropped, cap_event, CAP_EVENT, 10, .id = 3, .destroyed = 1); /* made elsewhere */
    check_carried(&old, &dropped, CUT, 4, (const uint64_t[]){1, 3, 6, 10},
                  (const uint32_t[]){OTHER, OTHER, THREAD, THREAD});
    buf_free(&old);
    buf_free(&dropped);
}

static void test_carry_spread_finds_bursts(void **state)
{
    struct buf b = {0};
    struct carry_spread spread;
    for (uint64_t i = 0; i < 990; i++)
        ADD(&b, cap_launch, CAP_LAUNCH, i, .flags = 0);
    for (uint64_t i = 0; i < 10; i++)
        ADD(&b, cap_launch, CAP_LAUNCH, 1000000 + i, .flags = 0);
    const struct carry_records records = records_of(&b, THREAD);
    carry_spread(&spread, &records, 0);
    assert_int_equal(spread.bytes, 1000 * sizeof(struct cap_launch));
    assert_int_equal(carry_spread_since(&spread, 0), spread.bytes);
    assert_true(carry_spread_since(&spread, 500000) <= spread.bytes / CARRY_SAMPLES);
    assert_int_equal(carry_spread_since(&spread, 2000000), 0);
    carry_spread(&spread, &records, 900);
    assert_int_equal(spread.bytes, 100 * sizeof(struct cap_launch));
    buf_free(&b);
}

/* ---- whole runs ---- */

struct crowd {
    const char *limit;
    uint64_t bytes;
    unsigned threads, launches; /* of each thread */
};

static struct capture *read_capture(const struct kit_run *run)
{
    char path[300];
    struct capture *c = NULL;
    struct diag diag = {0};
    snprintf(path, sizeof path, "%s/out", run->directory);
    return capture_open(path, &c, &diag) == STATUS_OK ? c : NULL;
}

static void start_crowd(struct kit_run *run, const struct crowd *crowd)
{
    char limit[64], argument[64];
    const char *const environment[] = {limit, "OPSDEBUG_STACKS=off", "OPSDEBUG_PRESET=watch", NULL};
    snprintf(limit, sizeof limit, "OPSDEBUG_MAX_CAPTURE=%s", crowd->limit);
    snprintf(argument, sizeof argument, "%u %u", crowd->threads, crowd->launches);
    kit_start(run, "dlsym", "crowd", argument, environment);
}

static const struct cap_alloc *buffer_at(const struct capture *c, uint64_t address)
{
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_alloc *a = (const void *)c->records[i];
        if (a->head.type == CAP_ALLOC && address >= a->address && address < a->address + a->bytes)
            return a;
    }
    return NULL;
}

/* All that the launch needs is there; the buffer that it was given. */
static const struct cap_alloc *check_launch(const struct capture *c, const struct cap_launch *l)
{
    const struct cap_kernel *kernel = capture_definition(c, CAP_KERNEL, l->kernel);
    const struct cap_stream *stream = capture_definition(c, CAP_STREAM, l->stream);
    uint64_t argument;
    assert_non_null(kernel);
    assert_string_equal(capture_string(c, kernel->name), "noop");
    assert_non_null(capture_definition(c, CAP_MODULE, kernel->module));
    assert_non_null(capture_definition(c, CAP_CONFIG, l->config));
    assert_non_null(stream);
    assert_non_null(capture_definition(c, CAP_CONTEXT, stream->context));
    assert_int_equal(l->param_bytes, sizeof argument);
    memcpy(&argument, l + 1, sizeof argument);
    const struct cap_alloc *a = buffer_at(c, argument);
    assert_non_null(a);
    return a;
}

struct buffer {
    uint64_t address, next; /* the argument that its thread's next launch must have */
    const struct cap_alloc *alloc;
};

/* The launches of each thread follow each other without a gap, up to its last one when the program ended. Returns how
 * many there are. */
static uint64_t check_launches(const struct capture *c, const struct crowd *crowd, bool ended)
{
    static struct buffer buffers[64];
    unsigned count = 0;
    uint64_t launches = 0;
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_launch *l = (const void *)c->records[i];
        if (l->head.type != CAP_LAUNCH)
            continue;
        launches++;
        uint64_t argument;
        memcpy(&argument, l + 1, sizeof argument);
        unsigned k = 0;
        while (k < count && (argument < buffers[k].address || argument >= buffers[k].address + crowd->launches))
            k++;
        if (k == count) {
            assert_true(count < crowd->threads);
            const struct cap_alloc *a = check_launch(c, l);
            buffers[count++] = (struct buffer){a->address, argument, a};
        }
        assert_int_equal(argument, buffers[k].next);
        buffers[k].next++;
    }
    for (unsigned k = 0; k < count && ended; k++)
        assert_int_equal(buffers[k].next, buffers[k].address + crowd->launches);
    return launches;
}

static void check_crowd(const struct crowd *crowd)
{
    struct kit_run run;
    start_crowd(&run, crowd);
    kit_finish(&run);
    assert_true(kit_ok(&run));
    struct capture *c = read_capture(&run);
    assert_non_null(c);
    assert_int_equal(c->rejected.count, 0);
    uint64_t kept = check_launches(c, crowd, true);
    assert_int_equal(kept + c->left_out_launches + c->header.dropped_launches, crowd->threads * crowd->launches);
    assert_true(kept < crowd->threads * crowd->launches);
    assert_true(kept >= crowd->bytes / 4 / 80); /* a quarter of the limit, and launches are smaller than 80 bytes */
    assert_int_equal(c->header.dropped_records, 0);
    capture_close(c);
    kit_remove(&run);
}

static void test_rotation_of_many_threads(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
        unsigned launches;
    } limits[] = {{"256k", 256 << 10, 16000}, {"1M", 1 << 20, 48000}, {"4M", 4 << 20, 192000}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (unsigned threads = 1; threads <= 64; threads *= 4) {
            const struct crowd crowd = {limits[i].text, limits[i].bytes, threads, limits[i].launches / threads};
            check_crowd(&crowd);
        }
}

static long folder_kilobytes(const struct kit_run *run)
{
    char text[64] = "";
    const char *const du[] = {"du", "-sk", "--apparent-size", run->directory, NULL};
    FILE *out = kit_command(du);
    assert_non_null(out);
    assert_non_null(fgets(text, sizeof text, out));
    fclose(out);
    return strtol(text, NULL, 10);
}

/* Of many launches the newest stay; what lives through all of them is known at the end. */
static void test_rotation_of_one_thread(void **state)
{
    const char *const environment[] = {"OPSDEBUG_MAX_CAPTURE=2M", "OPSDEBUG_STACKS=off", "OPSDEBUG_TIMES=off", NULL};
    struct kit_run run;
    kit_run(&run, "dlsym", "steady", "400000", environment);
    assert_true(kit_ok(&run));
    struct capture *c = read_capture(&run);
    assert_non_null(c);
    uint64_t last = 0, newest = 0, kept = 0, lives = 0;
    for (size_t i = 0; i < c->record_count; i++) {
        const struct cap_head *r = c->records[i];
        last = r->seq > last ? r->seq : last;
        if (r->type == CAP_LAUNCH) {
            kept++;
            newest = r->seq > newest ? r->seq : newest;
        }
        if (r->type == CAP_ALLOC)
            lives += ((const struct cap_alloc *)(const void *)r)->bytes == 1000;
    }
    assert_int_equal(kept + c->left_out_launches + c->header.dropped_launches, 400000);
    assert_true(kept > 5000 && kept < 100000);
    assert_true(last - newest < 50); /* nothing but the end came later */
    assert_int_equal(lives, 1);
    assert_true(folder_kilobytes(&run) < 2048 + 1024);
    assert_int_equal(c->header.dropped_records, 0);
    assert_int_equal(c->rejected.count, 0);
    capture_close(c);
    kit_remove(&run);
}

static void test_rotation_killed(void **state)
{
    unsigned seed = 5, begun = 0;
    for (unsigned i = 0; i < 24; i++) {
        const struct crowd crowd = {i % 2 ? "256k" : "1M", 0, i % 3 ? 16 : 4, 1000000};
        struct kit_run run;
        start_crowd(&run, &crowd);
        usleep(20000 + (useconds_t)(rand_r(&seed) % 150000));
        assert_int_equal(kill(run.pid, SIGKILL), 0);
        kit_finish(&run);
        struct capture *c = read_capture(&run);
        if (c) { /* else it had not made its first call */
            assert_int_equal(c->rejected.count, 0);
            begun += check_launches(c, &crowd, false) > 0;
        }
        capture_close(c);
        kit_remove(&run);
    }
    assert_true(begun > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_carry_build_allocations),   cmocka_unit_test(test_carry_build_events_and_paths),
        cmocka_unit_test(test_carry_spread_finds_bursts), cmocka_unit_test(test_rotation_of_many_threads),
        cmocka_unit_test(test_rotation_of_one_thread),    cmocka_unit_test(test_rotation_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
