#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <lz4.h>
#include <zstd.h>

#include "common/buf.h"
#include "common/fatbin.h"

static const char PTX[] = ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";

static void put(struct buf *b, uint64_t value, size_t bytes)
{
    buf_append(b, &value, bytes);
}

static void begin(struct buf *b)
{
    *b = (struct buf){0};
    put(b, FATBIN_DATA_MAGIC, 4);
    put(b, 1, 2);
    put(b, 16, 2);
    put(b, 0, 8);
}

/* Appends an entry as nvcc writes it: a header of `header` bytes, the payload padded to 8 bytes. */
static void add(struct buf *b, unsigned kind, uint32_t sm, uint64_t flags, uint32_t header, const void *payload,
                size_t bytes, size_t plain)
{
    size_t padded = (bytes + 7) / 8 * 8, at = b->size;
    put(b, kind, 2);
    put(b, 0x101, 2);
    put(b, header, 4);
    put(b, padded, 8);
    put(b, plain ? bytes : 0, 4);
    put(b, 0, 4);
    put(b, 0, 2);
    put(b, 9, 2);
    put(b, sm, 4);
    put(b, 0, 8);
    put(b, flags, 8);
    put(b, 0, 8);
    put(b, plain, 8);
    while (b->size < at + header)
        put(b, 0, 1);
    buf_append(b, payload, bytes);
    while (b->size < at + header + padded)
        put(b, 0, 1);
    uint64_t total = b->size - 16;
    memcpy(b->data + 8, &total, sizeof total);
}

static void add_text(struct buf *b, uint32_t sm, uint64_t flags, const char *text)
{
    add(b, FATBIN_PTX, sm, flags, 64, text, strlen(text) + 1, 0);
}

static void expect_ptx(const struct buf *b, uint32_t sm, const char *expected)
{
    struct diag diag;
    char *text = NULL;
    size_t bytes = 0;
    assert_int_equal(fatbin_ptx(b->data, b->size, sm, &text, &bytes, &diag), STATUS_OK);
    assert_string_equal(text, expected);
    assert_int_equal(bytes, strlen(expected));
    free(text);
}

static void test_fatbin_plain(void **state)
{
    struct buf b;
    begin(&b);
    add_text(&b, 75, 0x11, PTX);
    assert_int_equal(fatbin_data_size(b.data), b.size);
    expect_ptx(&b, 75, PTX);
    expect_ptx(&b, 0, PTX);
    buf_free(&b);
}

static void test_fatbin_zstd(void **state)
{
    char packed[512];
    size_t n = ZSTD_compress(packed, sizeof packed, PTX, sizeof PTX, 3);
    struct buf b;
    begin(&b);
    add(&b, FATBIN_ELF, 75, 0x11, 64, "\177ELF", 4, 0);
    add(&b, FATBIN_PTX, 75, 0x8011, 96, packed, n, sizeof PTX);
    expect_ptx(&b, 86, PTX);
    buf_free(&b);
}

static void test_fatbin_lz4(void **state)
{
    char packed[512];
    int n = LZ4_compress_default(PTX, packed, sizeof PTX, sizeof packed);
    struct buf b;
    begin(&b);
    add(&b, FATBIN_PTX, 75, 0x2011, 128, packed, (size_t)n, sizeof PTX);
    expect_ptx(&b, 75, PTX);
    buf_free(&b);
}

static void test_fatbin_next_lists_entries(void **state)
{
    struct buf b;
    begin(&b);
    add(&b, FATBIN_ELF, 86, 0x11, 64, "\177ELFxxxx", 8, 0);
    add_text(&b, 75, 0x11, PTX);
    struct fatbin_entry e;
    struct diag diag;
    size_t offset = 0;
    assert_true(fatbin_next(b.data, b.size, &offset, &e, &diag));
    assert_int_equal(e.kind, FATBIN_ELF);
    assert_int_equal(e.sm, 86);
    assert_int_equal(e.payload_bytes, 8);
    assert_int_equal(e.offset, 16);
    assert_true(fatbin_next(b.data, b.size, &offset, &e, &diag));
    assert_int_equal(e.kind, FATBIN_PTX);
    assert_int_equal(e.major, 9);
    assert_int_equal(e.payload_bytes, strlen(PTX));
    assert_false(fatbin_next(b.data, b.size, &offset, &e, &diag));
    assert_string_equal(diag.text, "");
    buf_free(&b);
}

static void test_fatbin_ptx_best_target(void **state)
{
    struct buf b;
    begin(&b);
    add_text(&b, 52, 0x11, ".version 8.0 // 52");
    add_text(&b, 80, 0x11, ".version 8.0 // 80");
    add_text(&b, 75, 0x11, ".version 8.0 // 75");
    add_text(&b, 90, 0x11 | FATBIN_ARCH_SPECIFIC, ".version 8.0 // 90a");
    add_text(&b, 100, 0x11 | FATBIN_FAMILY, ".version 8.0 // 100f");
    expect_ptx(&b, 75, ".version 8.0 // 75");
    expect_ptx(&b, 70, ".version 8.0 // 52");
    expect_ptx(&b, 86, ".version 8.0 // 80");
    expect_ptx(&b, 90, ".version 8.0 // 90a");
    expect_ptx(&b, 103, ".version 8.0 // 100f");
    expect_ptx(&b, 120, ".version 8.0 // 80");
    expect_ptx(&b, 0, ".version 8.0 // 100f");
    struct diag diag;
    char *text;
    size_t bytes;
    assert_int_equal(fatbin_ptx(b.data, b.size, 50, &text, &bytes, &diag), STATUS_NOT_FOUND);
    assert_null(text);
    buf_free(&b);
}

static void test_fatbin_ptx_general_before_special(void **state)
{
    struct buf b;
    begin(&b);
    add_text(&b, 90, 0x11 | FATBIN_ARCH_SPECIFIC, ".version 8.0 // 90a");
    add_text(&b, 90, 0x11, ".version 8.0 // 90");
    expect_ptx(&b, 90, ".version 8.0 // 90");
    buf_free(&b);
}

static void test_fatbin_ptx_plain_text(void **state)
{
    struct buf b = {0};
    buf_append(&b, PTX, sizeof PTX);
    expect_ptx(&b, 75, PTX);
    buf_free(&b);
    struct diag diag;
    char *text;
    size_t bytes;
    assert_int_equal(fatbin_ptx("\177ELF....", 8, 75, &text, &bytes, &diag), STATUS_BAD_INPUT);
    assert_true(strlen(diag.text) > 0);
}

static void expect_malformed(const struct buf *b, size_t bytes)
{
    struct diag diag;
    char *text = NULL;
    size_t n = 0;
    /* A copy of exactly that size, so that a sanitizer build sees every step too far. */
    char *copy = malloc(bytes + 1);
    memcpy(copy, b->data, bytes);
    copy = realloc(copy, bytes ? bytes : 1);
    assert_int_equal(fatbin_ptx(copy, bytes, 75, &text, &n, &diag), STATUS_BAD_INPUT);
    assert_true(strlen(diag.text) > 0);
    assert_null(text);
    free(copy);
}

static void test_fatbin_truncated(void **state)
{
    struct buf b;
    begin(&b);
    add_text(&b, 75, 0x11, PTX);
    for (size_t bytes = 4; bytes < b.size; bytes++)
        expect_malformed(&b, bytes);
    buf_free(&b);
}

static void test_fatbin_hostile_sizes(void **state)
{
    static const struct {
        size_t offset, bytes;
        uint64_t value;
    } edits[] = {
        {4, 2, 9},           /* unknown version */
        {6, 2, 8},           /* header shorter than itself */
        {6, 2, 0xffff},      /* header longer than the image */
        {8, 8, UINT64_MAX},  /* size wraps around */
        {20, 4, 8},          /* entry header too short */
        {20, 4, 0xfffffff0}, /* and too long */
        {24, 8, UINT64_MAX}, /* payload wraps around */
        {56, 8, 0xa011},     /* two compressions at once */
        {56, 8, 0x8011},     /* not a zstd frame */
        {56, 8, 0x2011},     /* not an lz4 block */
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        struct buf b;
        begin(&b);
        add_text(&b, 75, 0x11, PTX);
        memcpy(b.data + edits[i].offset, &edits[i].value, edits[i].bytes);
        expect_malformed(&b, b.size);
        buf_free(&b);
    }
}

static void test_fatbin_payload_wrong_plain_size(void **state)
{
    static const uint64_t sizes[] = {0, 10, sizeof PTX + 1, UINT64_C(1) << 40, UINT64_MAX};
    char packed[512];
    size_t n = ZSTD_compress(packed, sizeof packed, PTX, sizeof PTX, 3);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct buf b;
        begin(&b);
        add(&b, FATBIN_PTX, 75, 0x8011, 64, packed, n, sizeof PTX);
        memcpy(b.data + 16 + 56, &sizes[i], 8);
        expect_malformed(&b, b.size);
        buf_free(&b);
    }
}

static void test_fatbin_next_container_several(void **state)
{
    static const char runtime[] = ".version 9.0\n.target sm_121\n.address_size 64\n"
                                  ".visible .global .align 4 .u32 __CNPRT_VERSION_NUMBER__ = 6000;\n";
    struct buf b = {0}, part;
    const void *container;
    size_t offset = 0, size, first = 0;
    for (int i = 0; i < 3; i++) {
        begin(&part);
        add_text(&part, 75, 0, i == 1 ? runtime : PTX);
        first = first ? first : part.size;
        buf_append(&b, part.data, part.size);
        buf_free(&part);
    }
    for (int i = 0; i < 3; i++) {
        assert_true(fatbin_next_container(b.data, b.size, &offset, &container, &size));
        assert_int_equal(fatbin_is_device_runtime(container, size), i == 1);
    }
    assert_false(fatbin_next_container(b.data, b.size, &offset, &container, &size));
    offset = 0; /* cut off within the second one */
    assert_true(fatbin_next_container(b.data, first + 30, &offset, &container, &size));
    assert_int_equal(size, first);
    assert_true(fatbin_next_container(b.data, first + 30, &offset, &container, &size));
    assert_int_equal(size, 30);
    assert_false(fatbin_next_container(b.data, first + 30, &offset, &container, &size));
    offset = 4; /* no container there */
    assert_false(fatbin_next_container(b.data, b.size, &offset, &container, &size));
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fatbin_plain),
        cmocka_unit_test(test_fatbin_zstd),
        cmocka_unit_test(test_fatbin_lz4),
        cmocka_unit_test(test_fatbin_next_lists_entries),
        cmocka_unit_test(test_fatbin_ptx_best_target),
        cmocka_unit_test(test_fatbin_ptx_general_before_special),
        cmocka_unit_test(test_fatbin_ptx_plain_text),
        cmocka_unit_test(test_fatbin_truncated),
        cmocka_unit_test(test_fatbin_next_container_several),
        cmocka_unit_test(test_fatbin_hostile_sizes),
        cmocka_unit_test(test_fatbin_payload_wrong_plain_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
