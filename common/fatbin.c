#include "common/fatbin.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lz4.h>
#include <zstd.h>

enum {
    HEADER_BYTES = 16,
    ENTRY_BYTES = 64, /* the part of an entry header that is read; the whole was 64 to 128 bytes long where measured */
};
/* Above this an image is hostile or broken: the largest PTX that any known library embeds is far below. */
#define PLAIN_LIMIT (UINT64_C(512) << 20)

static uint16_t read16(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t read32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t read64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static void diag_clear(struct diag *diag)
{
    *diag = (struct diag){.offset = -1};
    snprintf(diag->where, sizeof diag->where, "fatbin");
}

__attribute__((format(printf, 3, 4))) static void diag_set(struct diag *diag, uint64_t offset, const char *format, ...)
{
    diag_clear(diag);
    diag->offset = (long)offset;
    va_list args;
    va_start(args, format);
    vsnprintf(diag->text, sizeof diag->text, format, args);
    va_end(args);
}

uint64_t fatbin_data_size(const void *data)
{
    const uint8_t *p = data;
    if (read32(p) != FATBIN_DATA_MAGIC)
        return 0;
    uint64_t header = read16(p + 6), entries = read64(p + 8);
    return entries > UINT64_MAX - header ? 0 : header + entries;
}

/* Checks the container's header; the end of its entries is stored to *end. */
static bool fatbin_header(const uint8_t *p, size_t bytes, uint64_t *start, uint64_t *end, struct diag *diag)
{
    if (bytes < HEADER_BYTES) {
        diag_set(diag, 0, "the image has %zu bytes, a header needs %d", bytes, HEADER_BYTES);
        return false;
    }
    if (read32(p) != FATBIN_DATA_MAGIC) {
        diag_set(diag, 0, "magic 0x%08" PRIx32 " is not 0x%08x", read32(p), FATBIN_DATA_MAGIC);
        return false;
    }
    if (read16(p + 4) != 1) {
        diag_set(diag, 4, "container version %u is unknown", read16(p + 4));
        return false;
    }
    *start = read16(p + 6);
    uint64_t size = read64(p + 8);
    if (*start < HEADER_BYTES || *start > bytes || size > bytes - *start) {
        diag_set(diag, 6, "header of %" PRIu64 " and entries of %" PRIu64 " bytes do not fit in %zu bytes", *start,
                 size, bytes);
        return false;
    }
    *end = *start + size;
    return true;
}

bool fatbin_next(const void *data, size_t bytes, size_t *offset, struct fatbin_entry *entry, struct diag *diag)
{
    const uint8_t *p = data;
    uint64_t start, end;
    diag_clear(diag);
    if (!fatbin_header(p, bytes, &start, &end, diag))
        return false;
    uint64_t at = *offset ? *offset : start;
    if (at >= end)
        return false;
    if (at < start || end - at < ENTRY_BYTES) {
        diag_set(diag, at, "%" PRIu64 " bytes are left, an entry needs %d", end - at, ENTRY_BYTES);
        return false;
    }
    const uint8_t *e = p + at;
    uint64_t header = read32(e + 4), stored = read64(e + 8), room = end - at;
    if (header < ENTRY_BYTES || header > room || stored > room - header) {
        diag_set(diag, at,
                 "an entry with header of %" PRIu64 " and payload of %" PRIu64 " bytes does not fit in %" PRIu64,
                 header, stored, room);
        return false;
    }
    *entry = (struct fatbin_entry){
        .kind = read16(e),
        .sm = read32(e + 28),
        .major = read16(e + 26),
        .minor = read16(e + 24),
        .flags = read64(e + 40),
        .payload = e + header,
        .payload_bytes = stored,
        .plain_bytes = stored,
        .offset = at,
    };
    uint64_t compressed = entry->flags & (FATBIN_LZ4 | FATBIN_ZSTD);
    bool odd = compressed && (!read32(e + 16) || read32(e + 16) > stored || !read64(e + 56));
    if (odd || compressed == (FATBIN_LZ4 | FATBIN_ZSTD)) {
        diag_set(diag, at, "compressed size %" PRIu32 " of %" PRIu64 " with flags 0x%" PRIx64 " makes no sense",
                 read32(e + 16), stored, entry->flags);
        return false;
    }
    if (compressed) {
        entry->payload_bytes = read32(e + 16);
        entry->plain_bytes = read64(e + 56);
    } else if (entry->kind == FATBIN_PTX) {
        while (entry->payload_bytes && entry->payload[entry->payload_bytes - 1] == '\0')
            entry->payload_bytes--;
        entry->plain_bytes = entry->payload_bytes;
    }
    *offset = (size_t)(at + header + stored);
    return true;
}

/* Decompresses into `out` (entry->plain_bytes long). */
static bool fatbin_decompress(const struct fatbin_entry *entry, char *out, struct diag *diag)
{
    if (entry->flags & FATBIN_ZSTD) {
        size_t got = ZSTD_decompress(out, entry->plain_bytes, entry->payload, entry->payload_bytes);
        if (ZSTD_isError(got)) {
            diag_set(diag, entry->offset, "zstd: %s", ZSTD_getErrorName(got));
            return false;
        }
        if (got != entry->plain_bytes) {
            diag_set(diag, entry->offset, "zstd gave %zu bytes instead of %" PRIu64, got, entry->plain_bytes);
            return false;
        }
        return true;
    }
    int got =
        LZ4_decompress_safe((const char *)entry->payload, out, (int)entry->payload_bytes, (int)entry->plain_bytes);
    if (got < 0 || (uint64_t)got != entry->plain_bytes) {
        diag_set(diag, entry->offset, "lz4 gave %d bytes instead of %" PRIu64, got, entry->plain_bytes);
        return false;
    }
    return true;
}

enum status fatbin_payload(const struct fatbin_entry *entry, char **out, size_t *out_bytes, struct diag *diag)
{
    diag_clear(diag);
    *out = NULL;
    *out_bytes = 0;
    if (entry->plain_bytes > PLAIN_LIMIT || entry->payload_bytes > PLAIN_LIMIT) {
        diag_set(diag, entry->offset, "a payload of %" PRIu64 " bytes is over the limit", entry->plain_bytes);
        return STATUS_BAD_INPUT;
    }
    char *text = malloc(entry->plain_bytes + 1);
    if (!text) {
        diag_set(diag, entry->offset, "no memory for %" PRIu64 " bytes", entry->plain_bytes);
        return STATUS_NO_MEMORY;
    }
    if (!(entry->flags & (FATBIN_LZ4 | FATBIN_ZSTD)))
        memcpy(text, entry->payload, entry->plain_bytes);
    else if (!fatbin_decompress(entry, text, diag)) {
        free(text);
        return STATUS_BAD_INPUT;
    }
    size_t bytes = entry->plain_bytes;
    /* Embedded PTX carries its terminating NUL. */
    while (entry->kind == FATBIN_PTX && bytes && text[bytes - 1] == '\0')
        bytes--;
    text[bytes] = '\0';
    *out = text;
    *out_bytes = bytes;
    return STATUS_OK;
}

/* PTX text that is not in a container: NUL-terminated or exactly `bytes` long. */
static enum status fatbin_plain_text(const char *text, size_t bytes, char **out, size_t *out_bytes, struct diag *diag)
{
    bytes = strnlen(text, bytes);
    if (!memmem(text, bytes, ".version", 8)) {
        diag_set(diag, 0, "neither a fat binary nor PTX text");
        return STATUS_BAD_INPUT;
    }
    char *copy = malloc(bytes + 1);
    if (!copy)
        return STATUS_NO_MEMORY;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    *out = copy;
    *out_bytes = bytes;
    return STATUS_OK;
}

/* Whether PTX `e` runs on capability `sm`. Code for an 'a' target runs on that very capability only, code for an 'f'
 * target within its family: the same major number, not below. */
static bool fatbin_fits(const struct fatbin_entry *e, uint32_t sm)
{
    if (!sm)
        return true;
    if (e->flags & FATBIN_ARCH_SPECIFIC)
        return e->sm == sm;
    if (e->flags & FATBIN_FAMILY)
        return e->sm <= sm && e->sm / 10 == sm / 10;
    return e->sm <= sm;
}

/* At equal targets the general form is preferred to one for special hardware. */
static bool fatbin_better(const struct fatbin_entry *a, const struct fatbin_entry *b)
{
    const uint64_t special = FATBIN_ARCH_SPECIFIC | FATBIN_FAMILY;
    return a->sm != b->sm ? a->sm > b->sm : (a->flags & special) < (b->flags & special);
}

enum status fatbin_ptx(const void *data, size_t bytes, uint32_t sm, char **out, size_t *out_bytes, struct diag *diag)
{
    diag_clear(diag);
    *out = NULL;
    *out_bytes = 0;
    if (bytes < 4 || read32(data) != FATBIN_DATA_MAGIC)
        return fatbin_plain_text(data, bytes, out, out_bytes, diag);
    struct fatbin_entry entry, best = {0};
    bool found = false;
    size_t offset = 0;
    while (fatbin_next(data, bytes, &offset, &entry, diag)) {
        if (entry.kind == FATBIN_PTX && fatbin_fits(&entry, sm) && (!found || fatbin_better(&entry, &best))) {
            best = entry;
            found = true;
        }
    }
    if (diag->text[0])
        return STATUS_BAD_INPUT;
    if (!found) {
        diag_set(diag, 0, "no PTX for capability %" PRIu32 ".%" PRIu32, sm / 10, sm % 10);
        return STATUS_NOT_FOUND;
    }
    return fatbin_payload(&best, out, out_bytes, diag);
}

bool fatbin_next_container(const void *data, size_t bytes, size_t *offset, const void **container, size_t *size)
{
    const uint8_t *p = data;
    if (*offset >= bytes || bytes - *offset < HEADER_BYTES)
        return false;
    uint64_t left = bytes - *offset, whole = fatbin_data_size(p + *offset);
    if (!whole)
        return false;
    *container = p + *offset;
    *size = whole < left ? whole : left;
    *offset = whole < left ? *offset + (*size + 7) / 8 * 8 : bytes;
    return true;
}

bool fatbin_is_device_runtime(const void *data, size_t bytes)
{
    struct diag diag;
    char *text = NULL;
    size_t text_bytes;
    if (fatbin_ptx(data, bytes, 0, &text, &text_bytes, &diag) != STATUS_OK)
        return false;
    bool found = strstr(text, " __CNPRT_VERSION_NUMBER__ =") != NULL;
    free(text);
    return found;
}
