/* The judgements of a capture together: what is common to many launches, earlier ones beside later ones, verify.json.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/coverage.h"
#include "analyzer/session.h"
#include "analyzer/store.h"
#include "analyzer/store_runs.h"
#include "analyzer/verify.h"
#include "tests/unit/capture_make.h"
#include "tests/unit/verify_kernels.h"

/* ---- runs of numbers ---- */

static void runs_are(const size_t *numbers, size_t count, const char *text)
{
    struct store_runs runs = {0};
    struct store_runs_reader reader;
    size_t n = 0, number = 0;
    for (size_t i = 0; i < count; i++)
        store_runs_add(&runs, numbers[i]);
    assert_string_equal(store_runs_text(&runs), text);
    assert_int_equal(store_runs_start(&reader, text, numbers[count - 1]), true);
    for (; n < count && store_runs_next(&reader, &number); n++)
        assert_int_equal(number, numbers[n]);
    assert_int_equal(n, count);
    assert_false(store_runs_next(&reader, &number));
    assert_false(reader.bad);
    store_runs_free(&runs);
}

static void test_store_runs(void **state)
{
    runs_are((const size_t[]){7}, 1, "7");
    runs_are((const size_t[]){1, 2, 3, 4}, 4, "1x4");
    runs_are((const size_t[]){5, 6, 7, 10, 12, 14, 15}, 7, "5 1x2 3 2x2 1");
}

static void bad_runs(const char *text, size_t most, size_t before)
{
    struct store_runs_reader reader;
    size_t n = 0, number = 0;
    assert_true(store_runs_start(&reader, text, most));
    while (store_runs_next(&reader, &number)) {
        n++;
        assert_true(number >= 1 && number <= most);
    }
    assert_true(reader.bad);
    assert_int_equal(n, before);
}

static void test_store_runs_bad(void **state)
{
    struct store_runs_reader reader;
    assert_false(store_runs_start(&reader, "", 9));
    bad_runs("0", 9, 0);
    bad_runs("10", 9, 0);
    bad_runs("2x5", 9, 4);
    bad_runs("1x18446744073709551615", 9, 0); /* more digits than any number has */
    bad_runs("1x999999999999999999", 9, 9);
    bad_runs("999999999999999999", 9, 0);
    bad_runs("3x0", 9, 0);
    bad_runs("3x", 9, 0);
    bad_runs("1,2", 9, 1);
    bad_runs("1  2", 9, 1);
    bad_runs("1 ", 9, 1);
    bad_runs("-1", 9, 0);
}

/* ---- judgements ---- */

static void add(struct judgements *js, size_t launch, const char *reason)
{
    struct judgement j = {.launch = launch, .verdict = reason ? JUDGEMENT_NOT : JUDGEMENT_CHECKED};
    j.reason = reason ? strdup(reason) : NULL;
    assert_true(judgements_add(js, &j, 1000));
    assert_null(j.reason);
}

static void is(const struct judgements *js, size_t launch, const char *reason)
{
    const struct judgement *j = judgements_find(js, launch);
    assert_non_null(j);
    assert_int_equal(j->verdict, reason ? JUDGEMENT_NOT : JUDGEMENT_CHECKED);
    if (reason)
        assert_string_equal(j->reason, reason);
}

static void test_judgements_common(void **state)
{
    struct judgements js = {0};
    for (size_t i = 1; i <= 1000; i++)
        add(&js, i, i % 100 == 0 ? NULL : i % 2 ? "no-inputs" : "budget");
    assert_int_equal(js.count, 10);
    assert_int_equal(js.common_count, 2);
    assert_int_equal(judgements_known(&js), 1000);
    assert_int_equal(judgements_sort(&js), 0);
    is(&js, 1, "no-inputs");
    is(&js, 998, "budget");
    is(&js, 1000, NULL);
    assert_null(judgements_find(&js, 0));
    assert_null(judgements_find(&js, 1001));
    /* What says more than its reason keeps its own place. */
    struct judgement more = {.launch = 5, .reason = strdup("no-inputs"), .instructions = 7};
    assert_true(judgements_add(&js, &more, 1000));
    assert_int_equal(js.count, 11);
    assert_int_equal(judgements_sort(&js), 5);
    judgements_free(&js);
}

static void test_judgements_merge(void **state)
{
    struct judgements a = {0}, b = {0};
    add(&a, 2, NULL);
    add(&a, 5, NULL);
    add(&a, 6, "no-inputs");
    add(&a, 7, JUDGEMENT_INTERRUPTED);
    add(&a, 8, JUDGEMENT_INTERRUPTED);
    add(&a, 20, JUDGEMENT_INTERRUPTED);
    add(&b, 1, "old");
    add(&b, 2, "old");
    add(&b, 6, NULL);
    add(&b, 7, NULL);
    add(&b, 8, "old");
    add(&b, 9, "old");
    add(&b, 10, NULL);
    assert_true(judgements_merge(&a, &b));
    assert_int_equal(b.count, 0);
    assert_int_equal(judgements_known(&a), 9);
    is(&a, 1, "old");
    is(&a, 2, NULL);
    is(&a, 5, NULL);
    is(&a, 6, "no-inputs");
    is(&a, 7, NULL); /* what was known before is more than that nobody came to it this time */
    is(&a, 8, "old");
    is(&a, 9, "old");
    is(&a, 10, NULL);
    is(&a, 20, JUDGEMENT_INTERRUPTED);
    assert_null(judgements_find(&a, 3));
    judgements_free(&a);
}

/* ---- verify.json ---- */

enum { OUT = 0x700000, LAUNCHES = 40, COUNT = 100 };

struct bench {
    struct capture_make make;
    struct session session;
};

/* Many launches of which the first and the last have snapshots. */
static void bench_start(struct bench *b)
{
    static float before[COUNT], after[COUNT];
    struct diag diag = {.text = ""};
    *b = (struct bench){0};
    capture_make_start(&b->make);
    uint32_t module = capture_make_module(&b->make, scale_ptx);
    uint32_t kernel = capture_make_kernel(&b->make, module, "scale", (const uint32_t[]){8, 8, 4, 0});
    uint32_t config = capture_make_config(&b->make, 1, 128), out = capture_make_alloc(&b->make, OUT, sizeof before);
    capture_make_copy_in(&b->make, OUT, sizeof before);
    for (int i = 0; i < COUNT; i++)
        after[i] = before[i] + 1;
    for (int i = 0; i < LAUNCHES; i++) {
        struct {
            uint64_t out, in;
            uint32_t n, zero;
        } params = {OUT, OUT, COUNT, 0};
        uint64_t launch = capture_make_launch(&b->make, kernel, config, &params, 20);
        if (i && i != LAUNCHES - 1)
            continue;
        capture_make_snapshot(&b->make, launch, out, CAP_BEFORE, before, sizeof before);
        capture_make_snapshot(&b->make, launch, out, CAP_AFTER, after, sizeof after);
    }
    capture_make_finish(&b->make);
    if (session_open(capture_make_write(&b->make), &b->session, &diag))
        fail_msg("%s", diag.text);
}

static void bench_end(struct bench *b)
{
    session_close(&b->session);
    capture_make_end(&b->make);
}

static enum status bench_verify(struct bench *b, const struct verify_options *options)
{
    struct diag diag;
    judgements_free(&b->session.judgements);
    return verify_capture(b->session.model, NULL, options, &b->session.judgements, &diag);
}

static void coverage_is(struct bench *b, const struct judgements *js, size_t checked, const char *reason, size_t not )
{
    struct coverage c = coverage_of(b->session.model, js);
    assert_int_equal(c.as_written.checked, checked);
    assert_int_equal(c.as_written.reasons, reason ? 1 : 0);
    if (!reason)
        return;
    assert_string_equal(c.as_written.not [0].reason, reason);
    assert_int_equal(c.as_written.not [0].count, not );
}

static void test_store_many(void **state)
{
    struct bench b;
    struct judgements again;
    struct diag diag = {.text = ""};
    bench_start(&b);
    assert_int_equal(bench_verify(&b, &(struct verify_options){.workers = 1, .instruction_limit = 1000000}), STATUS_OK);
    assert_int_equal(b.session.judgements.count, 2);
    assert_int_equal(b.session.judgements.common_count, 1);
    coverage_is(&b, &b.session.judgements, 2, "no-inputs", LAUNCHES - 2);
    assert_int_equal(store_write(b.session.model, &b.session.judgements, NULL, &diag), STATUS_OK);
    assert_int_equal(store_read(b.session.model, &again, &diag), STATUS_OK);
    assert_int_equal(again.count, 2);
    coverage_is(&b, &again, 2, "no-inputs", LAUNCHES - 2);
    assert_string_equal(judgements_find(&again, 7)->detail, "no snapshots before the launch");
    assert_true(judgements_find(&again, 7)->kernel_known);
    judgements_free(&again);
    bench_end(&b);
}

/* Some launches were looked at now, others before: both are kept. */
static void test_store_older(void **state)
{
    struct bench b;
    struct judgements newer = {0}, again;
    struct diag diag = {.text = ""};
    bench_start(&b);
    assert_int_equal(bench_verify(&b, &(struct verify_options){.workers = 1, .instruction_limit = 1000000}), STATUS_OK);
    add(&newer, 1, "no-ptx");
    add(&newer, 2, "no-ptx");
    assert_int_equal(store_write(b.session.model, &newer, &b.session.judgements, &diag), STATUS_OK);
    assert_int_equal(store_read(b.session.model, &again, &diag), STATUS_OK);
    assert_int_equal(judgements_known(&again), LAUNCHES);
    is(&again, 1, "no-ptx");
    is(&again, 2, "no-ptx");
    is(&again, 3, "no-inputs");
    is(&again, LAUNCHES, NULL);
    judgements_free(&again);
    judgements_free(&newer);
    bench_end(&b);
}

static void store_is(struct bench *b, enum status wanted, const char *text, const char *part)
{
    struct judgements js;
    struct diag diag = {.text = ""};
    char whole[2048];
    snprintf(whole, sizeof whole, "{\"start_realtime_ns\": \"1\", \"pid\": 4711, %s}", text);
    enum status status = store_parse(b->session.model, whole, "verify.json", &js, &diag);
    if (status != wanted)
        fail_msg("%s: %s", text, status ? diag.text : "taken");
    if (status && !strstr(diag.text, part))
        fail_msg("%s: %s", text, diag.text);
    if (!status)
        coverage_is(b, &js, 1, "no-inputs", LAUNCHES - 1);
    judgements_free(&js);
}

#define ONE           "{\"launch\": 1, \"checked\": true}"
#define NOT(launches) "{\"launch\": 1, \"reason\": \"no-inputs\", \"launches\": \"" launches "\"}"

static void test_store_versions(void **state)
{
    struct bench b;
    char old[8192] = "\"version\": 1, \"judgements\": [" ONE;
    bench_start(&b);
    for (int i = 2; i <= LAUNCHES; i++) /* one entry each */
        snprintf(old + strlen(old), sizeof old - strlen(old), ", {\"launch\": %d, \"reason\": \"no-inputs\"}", i);
    snprintf(old + strlen(old), sizeof old - strlen(old), "]");
    char *text = malloc(sizeof old + 100);
    struct judgements js;
    struct diag diag = {.text = ""};
    sprintf(text, "{\"start_realtime_ns\": \"1\", \"pid\": 4711, %s}", old);
    assert_int_equal(store_parse(b.session.model, text, "verify.json", &js, &diag), STATUS_OK);
    assert_int_equal(js.count, 1);
    coverage_is(&b, &js, 1, "no-inputs", LAUNCHES - 1);
    judgements_free(&js);
    free(text);
    store_is(&b, STATUS_OK, "\"version\": 2, \"judgements\": [" ONE "], \"common\": [" NOT("2 1x38") "]", "");
    store_is(&b, STATUS_BAD_INPUT, "\"version\": 3, \"judgements\": []", "version 3");
    bench_end(&b);
}

static void test_store_common_bad(void **state)
{
    struct bench b;
    bench_start(&b);
#define COMMON(entries) "\"version\": 2, \"judgements\": [" ONE "], \"common\": [" entries "]"
    store_is(&b, STATUS_BAD_INPUT, COMMON(NOT("1x40")), "launch 1 comes twice");
    store_is(&b, STATUS_BAD_INPUT, COMMON(NOT("2 1x39")), "malformed");
    store_is(&b, STATUS_BAD_INPUT, COMMON(NOT("2 1x38") "," NOT("40")), "launch 40 comes twice");
    store_is(&b, STATUS_BAD_INPUT,
             COMMON("{\"launch\": 1, \"reason\": \"budget\", \"launches\": \"3 1x4\"}," NOT("2x9")),
             "launch 4 comes twice");
    store_is(&b, STATUS_BAD_INPUT, COMMON(NOT("")), "malformed");
    store_is(&b, STATUS_BAD_INPUT, COMMON(NOT("41")), "malformed");
    store_is(&b, STATUS_BAD_INPUT, COMMON("{\"launch\": 1, \"checked\": true, \"launches\": \"2 1x38\"}"),
             "more than can be common");
    store_is(&b, STATUS_BAD_INPUT, COMMON("{\"launch\": 1, \"reason\": \"no-inputs\"}"), "malformed");
    store_is(&b, STATUS_BAD_INPUT, COMMON("7"), "malformed");
    bench_end(&b);
}

/* ---- stopped on the way ---- */

static ptx_flag stop;
static size_t calls;

static void stop_at_second(void *context, const struct model_launch *next, const struct judgements *so_far)
{
    assert_int_equal(judgements_known(so_far), next->number - 1);
    calls++;
    if (next->number == 2)
        atomic_store(&stop, true);
}

static void test_verify_interrupted(void **state)
{
    struct bench b;
    bench_start(&b);
    calls = 0;
    atomic_store(&stop, false);
    const struct verify_options options = {
        .workers = 1, .instruction_limit = 1000000, .progress = stop_at_second, .cancel = &stop};
    assert_int_equal(bench_verify(&b, &options), STATUS_CANCELLED);
    assert_int_equal(calls, 2);
    is(&b.session.judgements, 1, NULL);
    coverage_is(&b, &b.session.judgements, 1, JUDGEMENT_INTERRUPTED, LAUNCHES - 1);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_runs),         cmocka_unit_test(test_store_runs_bad),
        cmocka_unit_test(test_judgements_common),  cmocka_unit_test(test_judgements_merge),
        cmocka_unit_test(test_store_many),         cmocka_unit_test(test_store_older),
        cmocka_unit_test(test_store_versions),     cmocka_unit_test(test_store_common_bad),
        cmocka_unit_test(test_verify_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
