/* Findings that need no re-execution, and what the report and its JSON make of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyzer/hints.h"
#include "analyzer/report.h"
#include "tests/unit/capture_make.h"

struct bench {
    struct capture_make make;
    struct session session;
    uint32_t kernel, config, allocation;
};

static void bench_start(struct bench *b)
{
    *b = (struct bench){0};
    capture_make_start(&b->make);
    uint32_t module = capture_make_module(&b->make, "x");
    b->kernel = capture_make_kernel(&b->make, module, "_Z5scalePf", (const uint32_t[]){8, 0});
    b->config = capture_make_config(&b->make, 3, 32);
    b->allocation = capture_make_alloc(&b->make, 0x10000, 256);
}

static uint64_t bench_launch(struct bench *b, uint64_t pointer)
{
    return capture_make_launch(&b->make, b->kernel, b->config, &pointer, 8);
}

static struct findings *bench_classify(struct bench *b)
{
    struct diag diag = {.text = ""};
    if (session_open(capture_make_write(&b->make), &b->session, &diag))
        fail_msg("%s", diag.text);
    assert_int_equal(b->session.capture->rejected.count, 0);
    session_classify(&b->session);
    return &b->session.findings;
}

static void bench_end(struct bench *b)
{
    session_close(&b->session);
    capture_make_end(&b->make);
}

static void test_damage_one_launch(void **state)
{
    struct bench b;
    bench_start(&b);
    uint64_t launch = bench_launch(&b, 0x10000);
    capture_make_damage(&b.make, b.allocation, 256, 4, launch, launch + 1);
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].class, FINDING_OUT_OF_BOUNDS_WRITE);
    assert_int_equal(f->items[0].launch, 1);
    assert_int_equal(f->items[0].window_last, 0);
    assert_int_equal(f->items[0].offset, 256);
    assert_true(f->items[0].confidence < 0.95); /* no line is known */
    assert_true(f->items[0].next_count > 0);
    bench_end(&b);
}

static void test_damage_only_one_reaches(void **state)
{
    struct bench b;
    bench_start(&b);
    uint64_t first = bench_launch(&b, 0x50000);
    bench_launch(&b, 0x10080);
    bench_launch(&b, 0x50000);
    capture_make_damage(&b.make, b.allocation, 256, 4, first, first + 3);
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].launch, 2);
    bench_end(&b);
}

static void test_damage_window(void **state)
{
    struct bench b;
    bench_start(&b);
    bench_launch(&b, 0x10000);
    uint64_t second = bench_launch(&b, 0x10000);
    uint64_t third = bench_launch(&b, 0x10000);
    bench_launch(&b, 0x10000);
    capture_make_damage(&b.make, b.allocation, 256, 4, second, third + 1);
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].launch, 2);
    assert_int_equal(f->items[0].window_last, 3);
    char *headline = report_headline(&b.session, &f->items[0]);
    assert_non_null(strstr(headline, "launches 2 to 3: 4 bytes written past the end of allocation 1"));
    assert_null(strstr(strstr(headline, "launches") + 1, "launches")); /* said once */
    free(headline);
    bench_end(&b);
}

static void test_memset_past_the_end(void **state)
{
    struct bench b;
    bench_start(&b);
    uint64_t launch = bench_launch(&b, 0x10000);
    capture_make_set(&b.make, 0x10000, 260);
    capture_make_set(&b.make, 0x10000, 260);
    capture_make_damage(&b.make, b.allocation, 256, 4, launch, launch + 2);
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].class, FINDING_OUT_OF_BOUNDS_WRITE);
    assert_int_equal(f->items[0].launch, 0);
    assert_non_null(strstr(f->items[0].summary, "4 bytes written past the end of allocation 1 by a memset"));
    assert_true(f->items[0].confidence > 0.98);
    bench_end(&b);
}

static void test_copies_past_the_end(void **state)
{
    struct bench b;
    bench_start(&b);
    capture_make_copy_in(&b.make, 0x10080, 129);
    struct cap_copy out = {.head.type = CAP_COPY,
                           .target = 0x1000,
                           .source = 0x10000,
                           .width = 16,
                           .height = 17,
                           .depth = 1,
                           .source_pitch = 16,
                           .kind = CAP_COPY_DTOH};
    capture_make_record(&b.make, &out, sizeof out, NULL, 0);
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->items[0].class, FINDING_OUT_OF_BOUNDS_WRITE);
    assert_int_equal(f->items[1].class, FINDING_OUT_OF_BOUNDS_READ);
    bench_end(&b);
}

static void test_copies_inside(void **state)
{
    struct bench b;
    bench_start(&b);
    capture_make_set(&b.make, 0x10000, 256);
    capture_make_copy_in(&b.make, 0x10080, 128);
    struct cap_copy out = {.head.type = CAP_COPY,
                           .target = 0x1000,
                           .source = 0x10000,
                           .width = 8,
                           .height = 16,
                           .depth = 1,
                           .source_pitch = 16,
                           .kind = CAP_COPY_DTOH};
    capture_make_record(&b.make, &out, sizeof out, NULL, 0);
    out.source_pitch = 32; /* refused, and not for its arguments */
    out.result = 101;
    capture_make_record(&b.make, &out, sizeof out, NULL, 0);
    assert_int_equal(bench_classify(&b)->count, 0);
    bench_end(&b);
}

/* A refused copy went nowhere, but it was wrong, whatever its size. */
static void test_copy_refused(void **state)
{
    struct bench b;
    bench_start(&b);
    struct cap_copy in = {.head.type = CAP_COPY,
                          .target = 0x10000,
                          .source = 0x1000,
                          .width = UINT64_MAX - 3,
                          .height = 1,
                          .depth = 1,
                          .kind = CAP_COPY_HTOD,
                          .result = 1};
    capture_make_record(&b.make, &in, sizeof in, NULL, 0);
    uint64_t launch = bench_launch(&b, 0x10000);
    capture_make_damage(&b.make, b.allocation, 256, 4, launch, launch + 1); /* not by the copy */
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->items[0].launch, 1);
    struct finding *copy = &f->items[1];
    assert_int_equal(copy->class, FINDING_OUT_OF_BOUNDS_WRITE);
    assert_int_equal(copy->allocation, b.allocation);
    assert_int_equal(copy->damages, 0);
    assert_non_null(strstr(copy->summary, "more bytes than there are addresses would have been written past"));
    assert_non_null(strstr(finding_cure(copy), "the size"));
    bench_end(&b);
}

/* What a report tells to run next asks for more than the capture has. */
static void test_next_is_deeper(void **state)
{
    static const struct {
        const char *preset, *guard, *next;
    } cases[] = {
        {"check", "off", "run --preset deep -- "},
        {"deep", "off", "run --preset deep --guard all -- "},
        {"deep", "all", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        bench_start(&b);
        capture_make_option(&b.make, "PRESET", cases[i].preset);
        capture_make_option(&b.make, "GUARD", cases[i].guard);
        uint64_t launch = bench_launch(&b, 0x10000);
        capture_make_damage(&b.make, b.allocation, 256, 4, launch, launch + 1);
        struct findings *f = bench_classify(&b);
        assert_int_equal(f->count, 1);
        const char *found = NULL;
        for (size_t k = 0; k < f->items[0].next_count; k++)
            found = strstr(f->items[0].next[k], "run --preset") ? f->items[0].next[k] : found;
        assert_int_equal(found != NULL, cases[i].next != NULL);
        if (found && cases[i].next)
            assert_non_null(strstr(found, cases[i].next));
        bench_end(&b);
    }
}

static void add_launch_flags(struct capture_make *m, uint8_t flags)
{
    for (size_t at = sizeof(struct cap_segment); at < m->bytes; at += ((struct cap_head *)(m->records + at))->size)
        if (((struct cap_head *)(m->records + at))->type == CAP_LAUNCH)
            ((struct cap_launch *)(m->records + at))->flags |= flags;
}

static void keep_hint(void *context, const char *text)
{
    if (strstr(text, "too few snapshots"))
        snprintf(context, 320, "%s", text);
}

/* The budget is named where it was the cause, and only there. */
static void test_hints_say_the_cause(void **state)
{
    static const struct {
        const char *snapshots;
        uint8_t flags;
        bool ended;
        const char *hint;
    } cases[] = {
        {"all", 0, false, "1 of 1 launches have too few snapshots to be judged: the program was killed"},
        {"all", 0, true, "what they read or wrote is not all among the copies"},
        {"all", CAP_LAUNCH_BUDGET, false, "(run with a larger --snapshot-budget has them judged)"},
        {"first=2", 0, false, "(run --preset deep or --snapshots all has them judged)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        char hint[320] = "";
        bench_start(&b);
        capture_make_option(&b.make, "SNAPSHOTS", cases[i].snapshots);
        bench_launch(&b, 0x10000);
        add_launch_flags(&b.make, cases[i].flags);
        b.make.header.state = cases[i].ended ? CAP_ENDED : CAP_RUNNING;
        bench_classify(&b);
        hints_each(&b.session, keep_hint, hint);
        if (!strstr(hint, cases[i].hint))
            fail_msg("%zu: %s", i, hint);
        bench_end(&b);
    }
}

/* From half of all addresses before an allocation into it: the farthest that an offset can tell. */
static void test_copy_from_far_below(void **state)
{
    struct bench b;
    bench_start(&b);
    capture_make_free(&b.make, b.allocation, 0x10000, 0);
    uint32_t high = capture_make_alloc(&b.make, UINT64_C(1) << 63, 256);
    struct cap_copy in = {.head.type = CAP_COPY,
                          .target = 0,
                          .source = 0x1000,
                          .width = (UINT64_C(1) << 63) + 16,
                          .height = 1,
                          .depth = 1,
                          .kind = CAP_COPY_HTOD,
                          .result = 1}; /* else it would be no copy that can be */
    capture_make_record(&b.make, &in, sizeof in, NULL, 0);
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].allocation, high);
    assert_true(f->items[0].offset == INT64_MIN);
    bench_end(&b);
}

static void context_ends(struct bench *b, uint32_t id)
{
    struct cap_context r = {.head.type = CAP_CONTEXT, .id = id, .destroyed = 1};
    capture_make_record(&b->make, &r, sizeof r, NULL, 0);
}

/* Memory goes with its context; a free that comes later is no second free of what lay there before. */
static void test_free_after_context(void **state)
{
    struct bench b;
    bench_start(&b);
    capture_make_free(&b.make, b.allocation, 0x10000, 0);
    uint32_t later = capture_make_alloc(&b.make, 0x10000, 256);
    context_ends(&b, 0);
    capture_make_free(&b.make, 0, 0x10000, 1);
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].class, FINDING_INVALID_FREE);
    assert_int_equal(f->items[0].allocation, later);
    assert_true(model_allocation_by_id(b.session.model, later)->released);
    assert_false(model_allocation_by_id(b.session.model, b.allocation)->released);
    bench_end(&b);
}

/* Only where it is asked for, and only of a program that came to its end. */
static void test_leaks(void **state)
{
    for (int way = 0; way < 3; way++) {
        struct bench b;
        struct diag diag = {.text = ""};
        bench_start(&b);
        uint32_t freed = capture_make_alloc(&b.make, 0x20000, 100);
        capture_make_free(&b.make, freed, 0x20000, 0);
        if (way != 1)
            capture_make_finish(&b.make);
        if (session_open(capture_make_write(&b.make), &b.session, &diag))
            fail_msg("%s", diag.text);
        b.session.leak_check = way != 2;
        session_classify(&b.session);
        assert_int_equal(b.session.findings.count, way == 0);
        if (way == 0) {
            assert_int_equal(b.session.findings.items[0].class, FINDING_LEAK);
            assert_int_equal(b.session.findings.items[0].severity, FINDING_WARNING);
            assert_int_equal(b.session.findings.items[0].allocation, b.allocation);
        }
        bench_end(&b);
    }
}

static void test_damage_twice_is_one(void **state)
{
    struct bench b;
    bench_start(&b);
    uint64_t launch = bench_launch(&b, 0x10000);
    capture_make_damage(&b.make, b.allocation, 256, 4, launch, launch + 1);
    capture_make_damage(&b.make, b.allocation, 264, 4, launch, launch + 1);
    assert_int_equal(bench_classify(&b)->count, 1);
    bench_end(&b);
}

static void test_error_refused_launch(void **state)
{
    struct bench b;
    bench_start(&b);
    uint64_t pointer = 0x10000;
    for (int i = 0; i < 2; i++) {
        struct cap_launch r = {.head.type = CAP_LAUNCH,
                               .kernel = b.kernel,
                               .config = b.config,
                               .param_bytes = 8,
                               .outcome = CAP_LAUNCH_FAILED};
        capture_make_record(&b.make, &r, sizeof r, &pointer, 8);
        capture_make_error(&b.make, 1, "CUDA_ERROR_INVALID_VALUE");
    }
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].class, FINDING_FAILED_LAUNCH);
    assert_int_equal(f->items[0].launch_count, 2);
    assert_non_null(strstr(f->items[0].summary, "CUDA_ERROR_INVALID_VALUE"));
    bench_end(&b);
}

static void failed_launch_without_error(struct bench *b)
{
    uint64_t pointer = 0x10000;
    struct cap_launch r = {.head.type = CAP_LAUNCH,
                           .kernel = b->kernel,
                           .config = b->config,
                           .param_bytes = 8,
                           .outcome = CAP_LAUNCH_FAILED};
    capture_make_record(&b->make, &r, sizeof r, &pointer, 8);
}

/* Why it failed was not recorded: not told as if it were known, and not at all beside what may be the reason. */
static void test_error_that_was_not_recorded(void **state)
{
    struct bench b;
    bench_start(&b);
    failed_launch_without_error(&b);
    failed_launch_without_error(&b);
    const struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].class, FINDING_FAILED_LAUNCH);
    assert_int_equal(f->items[0].launch_count, 2);
    assert_true(f->items[0].confidence <= 0.5);
    assert_non_null(strstr(f->items[0].summary, "an error that was not recorded"));
    bench_end(&b);

    bench_start(&b);
    uint64_t launch = bench_launch(&b, 0x10000);
    capture_make_damage(&b.make, b.allocation, 256, 4, launch, launch + 1);
    failed_launch_without_error(&b);
    f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].class, FINDING_OUT_OF_BOUNDS_WRITE);
    bench_end(&b);
}

static void test_error_sticky_once(void **state)
{
    struct bench b;
    bench_start(&b);
    bench_launch(&b, 0x10000);
    capture_make_error(&b.make, 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
    capture_make_error(&b.make, 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 1);
    assert_int_equal(f->items[0].class, FINDING_FAILED_LAUNCH);
    assert_int_equal(f->items[0].launch, 1);
    bench_end(&b);
}

static void test_error_of_an_allocation_is_the_programs(void **state)
{
    struct bench b;
    bench_start(&b);
    capture_make_error(&b.make, 2, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_int_equal(bench_classify(&b)->count, 0);
    bench_end(&b);
}

static void test_frees(void **state)
{
    struct bench b;
    bench_start(&b);
    capture_make_free(&b.make, b.allocation, 0x10000, 0);
    capture_make_free(&b.make, 0, 0x10000, 1);
    capture_make_free(&b.make, 0, 0x12345, 1);
    capture_make_free(&b.make, 0, 0, 0);       /* free(NULL) */
    capture_make_free(&b.make, 0, 0x99999, 0); /* memory that somebody else allocated */
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 2);
    assert_int_equal(f->items[0].class, FINDING_DOUBLE_FREE);
    assert_int_equal(f->items[1].class, FINDING_INVALID_FREE);
    bench_end(&b);
}

static void bad_free(struct bench *b, uint64_t address, int32_t result, uint32_t kind, uint32_t allocation)
{
    struct cap_bad_free record = {.head.type = CAP_BAD_FREE, .kind = kind, .allocation = allocation};
    record.free = capture_make_free(&b->make, 0, address, result);
    record.offset = allocation ? (int64_t)(address - 0x10000) : 0;
    capture_make_record(&b->make, &record, sizeof record, NULL, 0);
}

static void test_frees_of_what_is_no_start(void **state)
{
    struct bench b;
    bench_start(&b);
    bad_free(&b, 0x10010, 1, CAP_BAD_FREE_INSIDE, b.allocation);
    bad_free(&b, 0x10010, 1, CAP_BAD_FREE_INSIDE, b.allocation); /* the same place in the program */
    bad_free(&b, 0x7fff0000, 1, CAP_BAD_FREE_HOST, 0);
    capture_make_free(&b.make, b.allocation, 0x10000, 1);   /* by a function that does not free such memory */
    capture_make_free(&b.make, b.allocation, 0x10000, 700); /* the device is lost: no mistake of the free */
    capture_make_free(&b.make, 0, 0x55555, 4);              /* the driver is gone */
    struct findings *f = bench_classify(&b);
    assert_int_equal(f->count, 2); /* without stacks, the wrong function is the same as the inner address */
    assert_int_equal(f->items[0].class, FINDING_INVALID_FREE);
    assert_int_equal(f->items[0].allocation, b.allocation);
    assert_int_equal(f->items[0].offset, 16);
    assert_non_null(strstr(f->items[0].summary, "16 bytes inside allocation"));
    assert_int_equal(f->items[1].allocation, 0);
    assert_non_null(strstr(f->items[1].summary, "memory of the host"));
    bench_end(&b);
}

static cJSON *json_of(struct bench *b)
{
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    assert_true(report_json(f, &b->session));
    fclose(f);
    cJSON *json = cJSON_Parse(text);
    free(text);
    assert_non_null(json);
    return json;
}

static const cJSON *at(const cJSON *from, const char *path)
{
    char copy[128], *save;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *p = strtok_r(copy, ".", &save); p; p = strtok_r(NULL, ".", &save)) {
        from = *p >= '0' && *p <= '9' ? cJSON_GetArrayItem(from, atoi(p)) : cJSON_GetObjectItemCaseSensitive(from, p);
        if (!from)
            fail_msg("no %s", path);
    }
    return from;
}

static void test_json_schema(void **state)
{
    struct bench b;
    bench_start(&b);
    uint64_t launch = bench_launch(&b, 0x10000);
    capture_make_damage(&b.make, b.allocation, 256, 4, launch, launch + 1);
    bench_classify(&b);
    cJSON *j = json_of(&b);
    assert_int_equal(at(j, "schema")->valueint, 1);
    assert_string_equal(at(j, "program.0")->valuestring, "./program");
    assert_string_equal(at(j, "program.1")->valuestring, "argument");
    assert_true(cJSON_IsString(at(j, "capture")) && cJSON_IsString(at(j, "device")));
    assert_int_equal(at(j, "findings.0.id")->valueint, 1);
    assert_string_equal(at(j, "findings.0.class")->valuestring, "out-of-bounds-write");
    assert_string_equal(at(j, "findings.0.severity")->valuestring, "error");
    assert_true(cJSON_IsNumber(at(j, "findings.0.confidence")));
    assert_int_equal(at(j, "findings.0.launch.seq")->valueint, 1);
    assert_string_equal(at(j, "findings.0.launch.kernel")->valuestring, "scale");
    assert_int_equal(at(j, "findings.0.launch.grid.0")->valueint, 3);
    assert_int_equal(at(j, "findings.0.launch.block.0")->valueint, 32);
    assert_int_equal(at(j, "findings.0.launch.stream")->valueint, 0);
    assert_true(cJSON_IsString(at(j, "findings.0.launch.module_path")));
    at(j, "findings.0.where.file");
    at(j, "findings.0.where.line");
    at(j, "findings.0.where.function");
    at(j, "findings.0.where.ptx_line");
    at(j, "findings.0.where.block");
    at(j, "findings.0.where.thread");
    assert_int_equal(at(j, "findings.0.allocation.id")->valueint, 1);
    assert_int_equal(at(j, "findings.0.allocation.bytes")->valueint, 256);
    assert_int_equal(at(j, "findings.0.allocation.offset")->valueint, 256);
    assert_true(cJSON_IsArray(at(j, "findings.0.allocation.stack")));
    assert_string_equal(at(j, "findings.0.evidence.0.kind")->valuestring, "sentinel");
    assert_true(cJSON_IsString(at(j, "findings.0.evidence.0.text")));
    assert_true(cJSON_IsString(at(j, "findings.0.next.0")));
    assert_string_equal(at(j, "kernels.0.name")->valuestring, "scale");
    assert_int_equal(at(j, "kernels.0.launches")->valueint, 1);
    assert_int_equal(at(j, "kernels.0.launch_ns")->valueint, 5000);
    at(j, "kernels.0.device_ns");
    at(j, "kernels.0.wait_ns");
    at(j, "kernels.0.bound_ns");
    assert_true(cJSON_IsString(at(j, "kernels.0.bound_by")));
    assert_int_equal(at(j, "coverage.launches")->valueint, 1);
    assert_int_equal(at(j, "coverage.as_written.checked")->valueint, 0);
    assert_int_equal(at(j, "coverage.as_written.not.not-verified")->valueint, 1);
    assert_int_equal(at(j, "coverage.operator.checked")->valueint, 0);
    assert_true(cJSON_IsObject(at(j, "coverage.operator.by")));
    assert_int_equal(at(j, "coverage.operator.not.not-verified")->valueint, 1);
    assert_int_equal(at(j, "overhead.ns_per_launch")->valueint, 1000000);
    assert_true(at(j, "overhead.share")->valuedouble > 0.0099 && at(j, "overhead.share")->valuedouble < 0.0101);
    cJSON_Delete(j);
    bench_end(&b);
}

static void test_text_width(void **state)
{
    struct bench b;
    bench_start(&b);
    uint64_t launch = bench_launch(&b, 0x10000);
    capture_make_option(&b.make, "SNAPSHOTS", "none");
    capture_make_damage(&b.make, b.allocation, 256, 4, launch, launch + 1);
    b.make.header.snapshots = 1234567890;
    b.make.header.snapshot_bytes = UINT64_C(1) << 50;
    b.make.header.memory_peak = UINT64_C(1) << 33;
    bench_classify(&b);
    findings_add(&b.session.findings, FINDING_STREAM_RACE, 0.5); /* the longest cure */
    b.session.findings.items[1].severity = FINDING_NOTE;
    char *text = NULL;
    size_t bytes;
    FILE *f = open_memstream(&text, &bytes);
    report_text(f, &b.session, (struct report_style){.verbose = true});
    fclose(f);
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        assert_true(end - line <= 120);
    }
    assert_non_null(strstr(text, "1 finding"));
    assert_non_null(strstr(text, "launch 1, scale: 4 bytes written past the end of allocation 1"));
    assert_non_null(strstr(text, "next:"));
    assert_non_null(strstr(text, "no snapshots: no launch can be re-executed"));
    assert_null(strchr(text, '\033'));
    free(text);
    bench_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage_one_launch),
        cmocka_unit_test(test_damage_only_one_reaches),
        cmocka_unit_test(test_damage_window),
        cmocka_unit_test(test_memset_past_the_end),
        cmocka_unit_test(test_copies_past_the_end),
        cmocka_unit_test(test_copies_inside),
        cmocka_unit_test(test_copy_refused),
        cmocka_unit_test(test_copy_from_far_below),
        cmocka_unit_test(test_next_is_deeper),
        cmocka_unit_test(test_hints_say_the_cause),
        cmocka_unit_test(test_free_after_context),
        cmocka_unit_test(test_leaks),
        cmocka_unit_test(test_damage_twice_is_one),
        cmocka_unit_test(test_error_refused_launch),
        cmocka_unit_test(test_error_that_was_not_recorded),
        cmocka_unit_test(test_error_sticky_once),
        cmocka_unit_test(test_error_of_an_allocation_is_the_programs),
        cmocka_unit_test(test_frees),
        cmocka_unit_test(test_frees_of_what_is_no_start),
        cmocka_unit_test(test_json_schema),
        cmocka_unit_test(test_text_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
