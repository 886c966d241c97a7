/* Captures, sound and damaged: what is used, what is left out, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/capture_read.h"
#include "analyzer/capture_thread.h"
#include "analyzer/session.h"
#include "analyzer/report.h"
#include "tests/unit/capture_make.h"

static uint64_t make_small(struct capture_make *m)
{
    capture_make_start(m);
    uint32_t module = capture_make_module(m, "no ptx at all");
    uint32_t kernel = capture_make_kernel(m, module, "_Z4scalIfEvPfi", (const uint32_t[]){8, 4, 0});
    uint32_t config = capture_make_config(m, 2, 32);
    capture_make_alloc(m, 0x10000, 256);
    struct {
        uint64_t pointer;
        uint32_t count;
    } params = {0x10000, 64};
    return capture_make_launch(m, kernel, config, &params, 12);
}

static void test_capture_open_sound(void **state)
{
    struct capture_make m;
    struct capture *c;
    struct diag diag;
    make_small(&m);
    assert_int_equal(capture_open(capture_make_write(&m), &c, &diag), STATUS_OK);
    assert_int_equal(c->record_count, 6);
    assert_int_equal(c->rejected.count, 0);
    assert_string_equal(c->program, "./program argument");
    assert_string_equal(capture_string(c, 1), "_Z4scalIfEvPfi");
    assert_string_equal(capture_string(c, 99), "");
    assert_non_null(capture_definition(c, CAP_KERNEL, 1));
    assert_null(capture_definition(c, CAP_KERNEL, 2));
    assert_int_equal(capture_ticks_ns(c, 2000), 1000);
    capture_close(c);
    capture_make_end(&m);
}

static void test_capture_open_sorts_by_seq(void **state)
{
    struct capture_make m;
    struct capture *c;
    struct diag diag;
    make_small(&m);
    m.seq = 1000;
    capture_make_set(&m, 0x10000, 8);
    m.seq = 500;
    capture_make_set(&m, 0x10000, 4);
    assert_int_equal(capture_open(capture_make_write(&m), &c, &diag), STATUS_OK);
    for (size_t i = 1; i < c->record_count; i++)
        assert_true(c->records[i - 1]->seq < c->records[i]->seq);
    capture_close(c);
    capture_make_end(&m);
}

static void refused(const char *path, const char *word)
{
    struct capture *c;
    struct diag diag = {.text = ""};
    assert_int_not_equal(capture_open(path, &c, &diag), STATUS_OK);
    assert_null(c);
    if (!strstr(diag.text, word))
        fail_msg("'%s' does not say '%s'", diag.text, word);
    assert_non_null(strstr(diag.where, path));
}

static void overwrite(const char *folder, const char *name, long at, const void *bytes, size_t count)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r+be");
    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    fwrite(bytes, 1, count, f);
    fclose(f);
}

static void cut(const char *folder, const char *name, long bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(truncate(path, bytes), 0);
}

static void test_capture_open_bad_header(void **state)
{
    struct capture_make m;
    refused("/tmp/there-is-no-such-capture", "No such file");
    make_small(&m);
    refused(m.path, "is the folder a capture");
    const char *path = capture_make_write(&m);
    overwrite(path, "capture.bin", 8, "\xff", 1);
    refused(path, "version 255");
    overwrite(path, "capture.bin", 0, "ELF", 3);
    refused(path, "magic");
    cut(path, "capture.bin", 100);
    refused(path, "ends after 100 bytes");
    cut(path, "capture.bin", 0);
    refused(path, "ends after 0 bytes");
    capture_make_end(&m);
}

static void test_capture_open_a_file(void **state)
{
    refused("/etc/passwd", "not a folder");
}

static void test_capture_open_every_cut(void **state)
{
    struct capture_make m;
    struct diag diag;
    make_small(&m);
    const char *path = capture_make_write(&m);
    for (size_t bytes = 0; bytes < m.bytes; bytes += 7) {
        struct session s;
        capture_make_write(&m);
        cut(path, "segment-000001.rec", (long)bytes);
        assert_int_equal(session_open(path, &s, &diag), STATUS_OK);
        assert_true(s.capture->record_count <= 6);
        session_close(&s);
    }
    capture_make_end(&m);
}

static void test_capture_open_every_flip(void **state)
{
    struct capture_make m;
    struct diag diag;
    make_small(&m);
    const char *path = capture_make_write(&m);
    FILE *null = fopen("/dev/null", "we");
    for (size_t at = 64; at < m.bytes; at++) {
        static const uint8_t bits[] = {0x01, 0x80, 0xff};
        for (size_t k = 0; k < 3; k++) {
            struct session s;
            m.records[at] ^= bits[k];
            capture_make_write(&m);
            m.records[at] ^= bits[k];
            assert_int_equal(session_open(path, &s, &diag), STATUS_OK);
            session_classify(&s);
            report_text(null, &s, (struct report_style){.verbose = true});
            assert_true(report_json(null, &s));
            session_close(&s);
        }
    }
    fclose(null);
    capture_make_end(&m);
}

/* One impossible record each; the others are used. */
static void one_rejected(struct capture_make *m, size_t kept, const char *word)
{
    struct session s;
    struct diag diag;
    assert_int_equal(session_open(capture_make_write(m), &s, &diag), STATUS_OK);
    assert_int_equal(s.capture->rejected.count, 1);
    if (!strstr(s.capture->rejected.kept[0].text, word))
        fail_msg("'%s' does not say '%s'", s.capture->rejected.kept[0].text, word);
    assert_true(s.capture->rejected.kept[0].offset > 0);
    assert_int_equal(s.model->launch_count, kept);
    session_close(&s);
    capture_make_end(m);
}

static void test_capture_reject_unknown_kernel(void **state)
{
    struct capture_make m;
    make_small(&m);
    capture_make_launch(&m, 77, 1, NULL, 0);
    one_rejected(&m, 1, "kernel 77");
}

static void test_capture_reject_snapshot_outside(void **state)
{
    struct capture_make m;
    char data[300] = {0};
    uint64_t launch = make_small(&m);
    capture_make_snapshot(&m, launch, 1, CAP_BEFORE, data, sizeof data);
    one_rejected(&m, 1, "outside allocation 1");
}

static void test_capture_reject_end_before_start(void **state)
{
    struct capture_make m;
    uint64_t launch = make_small(&m);
    capture_make_damage(&m, 1, 256, 4, launch + 1, launch);
    one_rejected(&m, 1, "before it was intact");
}

/* Sizes that could not be rounded up, or added, without care. */
static void test_capture_reject_impossible_sizes(void **state)
{
    struct capture_make m;
    make_small(&m);
    capture_make_alloc(&m, 0, UINT64_MAX);
    one_rejected(&m, 1, "allocation 2 of 18446744073709551615 bytes");

    make_small(&m);
    capture_make_set(&m, 0, UINT64_MAX);
    one_rejected(&m, 1, "memset of impossible size");
}

static void test_capture_reject_wrapping_allocation(void **state)
{
    struct capture_make m;
    make_small(&m);
    capture_make_alloc(&m, UINT64_MAX - 10, 100);
    one_rejected(&m, 1, "wraps around");
}

static void test_capture_reject_second_free(void **state)
{
    struct capture_make m;
    make_small(&m);
    capture_make_free(&m, 1, 0x10000, 0);
    capture_make_free(&m, 1, 0x10000, 0);
    one_rejected(&m, 1, "second time");
}

static void test_capture_reject_long_list(void **state)
{
    struct capture_make m;
    make_small(&m);
    struct cap_stack stack = {.head.type = CAP_STACK, .id = 1, .count = 1000};
    capture_make_record(&m, &stack, sizeof stack, "12345678", 8);
    one_rejected(&m, 1, "claims 1000 items");
}

static void test_capture_reject_unreadable_segment(void **state)
{
    struct capture_make m;
    struct capture *c;
    struct diag diag;
    char path[128];
    make_small(&m);
    snprintf(path, sizeof path, "%s/segment-000000.rec", capture_make_write(&m));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(capture_open(m.path, &c, &diag), STATUS_OK);
    assert_int_equal(c->record_count, 6);
    assert_int_equal(c->rejected.count, 1);
    assert_string_equal(c->rejected.kept[0].where, "segment-000000.rec");
    capture_close(c);
    capture_make_end(&m);
}

static void test_capture_skip_unknown_type(void **state)
{
    struct capture_make m;
    struct capture *c;
    struct diag diag;
    make_small(&m);
    struct cap_head future = {.type = 999};
    capture_make_record(&m, &future, sizeof future, "something", 9);
    capture_make_set(&m, 0x10000, 8);
    assert_int_equal(capture_open(capture_make_write(&m), &c, &diag), STATUS_OK);
    assert_int_equal(c->rejected.count, 0);
    assert_int_equal(c->record_count, 8);
    capture_close(c);
    capture_make_end(&m);
}

static void test_capture_thread_of_a_handed_on_segment(void **state)
{
    struct capture_make m;
    struct capture *c;
    struct diag diag;
    struct capture_threads threads;
    struct cap_writer writer = {.head.type = CAP_WRITER, .tid = 7};
    capture_make_start(&m);
    capture_make_set(&m, 0x1000, 8);
    capture_make_record(&m, &writer, sizeof writer, NULL, 0);
    capture_make_set(&m, 0x2000, 8);
    writer.tid = 1; /* the first one's number comes again */
    capture_make_record(&m, &writer, sizeof writer, NULL, 0);
    capture_make_set(&m, 0x3000, 8);
    assert_int_equal(capture_open(capture_make_write(&m), &c, &diag), STATUS_OK);
    assert_true(capture_threads_find(&threads, c) && threads.several);
    uint32_t found[3] = {0}, count = 0;
    for (size_t i = 0; i < c->record_count; i++)
        if (c->records[i]->type == CAP_SET && count < 3)
            found[count++] = capture_threads_of(&threads, c->records[i]);
    assert_int_equal(count, 3);
    assert_int_equal(found[0], 1);
    assert_int_equal(found[1], 7);
    assert_int_equal(found[2], 1);
    capture_threads_free(&threads);
    capture_close(c);
    capture_make_end(&m);
}

static void test_capture_string_hostile(void **state)
{
    struct capture_make m;
    struct capture *c;
    struct diag diag;
    capture_make_start(&m);
    capture_make_string(&m, "a\033[31m\xff\xc3\xa9z\n");
    assert_int_equal(capture_open(capture_make_write(&m), &c, &diag), STATUS_OK);
    assert_string_equal(capture_string(c, 1), "a?[31m?\xc3\xa9z?");
    capture_close(c);
    capture_make_end(&m);
}

static void test_capture_blob(void **state)
{
    struct capture_make m;
    struct capture *c;
    struct diag diag;
    uint8_t *data;
    size_t bytes;
    capture_make_start(&m);
    capture_make_module(&m, "the image");
    assert_int_equal(capture_open(capture_make_write(&m), &c, &diag), STATUS_OK);
    struct hash128 hash = hash_bytes("the image", 9);
    assert_int_equal(capture_blob(c, hash, 9, &data, &bytes, &diag), STATUS_OK);
    assert_int_equal(bytes, 9);
    assert_memory_equal(data, "the image", 9);
    free(data);
    assert_int_equal(capture_blob(c, hash, 8, &data, &bytes, &diag), STATUS_LIMIT);
    assert_int_equal(capture_blob(c, hash_bytes("x", 1), 8, &data, &bytes, &diag), STATUS_NOT_FOUND);
    char text[HASH_TEXT_BYTES], name[96];
    hash_text(hash, text);
    snprintf(name, sizeof name, "blobs/%.2s/%s.zst", text, text);
    overwrite(m.path, name, 12, "X", 1);
    assert_int_equal(capture_blob(c, hash, 9, &data, &bytes, &diag), STATUS_BAD_INPUT);
    overwrite(m.path, name, 0, "garbage", 7);
    assert_int_equal(capture_blob(c, hash, 9, &data, &bytes, &diag), STATUS_BAD_INPUT);
    capture_close(c);
    capture_make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capture_open_sound),
        cmocka_unit_test(test_capture_open_sorts_by_seq),
        cmocka_unit_test(test_capture_open_bad_header),
        cmocka_unit_test(test_capture_open_a_file),
        cmocka_unit_test(test_capture_open_every_cut),
        cmocka_unit_test(test_capture_open_every_flip),
        cmocka_unit_test(test_capture_reject_unknown_kernel),
        cmocka_unit_test(test_capture_reject_snapshot_outside),
        cmocka_unit_test(test_capture_reject_end_before_start),
        cmocka_unit_test(test_capture_reject_wrapping_allocation),
        cmocka_unit_test(test_capture_reject_impossible_sizes),
        cmocka_unit_test(test_capture_reject_second_free),
        cmocka_unit_test(test_capture_reject_long_list),
        cmocka_unit_test(test_capture_reject_unreadable_segment),
        cmocka_unit_test(test_capture_skip_unknown_type),
        cmocka_unit_test(test_capture_thread_of_a_handed_on_segment),
        cmocka_unit_test(test_capture_string_hostile),
        cmocka_unit_test(test_capture_blob),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
