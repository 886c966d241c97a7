/* capture_blob.c - the contents files of a capture: found by hash, decompressed within a limit, verified. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <zstd.h>

#include "analyzer/capture_read.h"
#include "analyzer/regular.h"
#include "common/diag.h"

static enum status decompress(const char *path, const char *packed, size_t packed_bytes, uint64_t limit, uint8_t **out,
                              size_t *out_bytes, struct diag *diag)
{
    unsigned long long plain = ZSTD_getFrameContentSize(packed, packed_bytes);
    if (plain == ZSTD_CONTENTSIZE_ERROR || plain == ZSTD_CONTENTSIZE_UNKNOWN)
        return diag_set(diag, STATUS_BAD_INPUT, path, 0, "not a zstd frame with its content size");
    if (plain > limit)
        return diag_set(diag, STATUS_LIMIT, path, 0, "%llu bytes of contents; at most %" PRIu64 " were expected", plain,
                        limit);
    uint8_t *data = malloc(plain ? (size_t)plain : 1);
    if (!data)
        return diag_set(diag, STATUS_NO_MEMORY, path, -1, "no memory for %llu bytes", plain);
    size_t got = ZSTD_decompress(data, (size_t)plain, packed, packed_bytes);
    if (ZSTD_isError(got) || got != plain) {
        free(data);
        return diag_set(diag, STATUS_BAD_INPUT, path, -1, "damaged: %s",
                        ZSTD_isError(got) ? ZSTD_getErrorName(got) : "short frame");
    }
    *out = data;
    *out_bytes = got;
    return STATUS_OK;
}

enum status capture_blob(const struct capture *c, struct hash128 hash, uint64_t limit, uint8_t **out, size_t *out_bytes,
                         struct diag *diag)
{
    char text[HASH_TEXT_BYTES], path[4096];
    *out = NULL;
    *out_bytes = 0;
    hash_text(hash, text);
    if (snprintf(path, sizeof path, "%s/blobs/%.2s/%s.zst", c->path, text, text) >= (int)sizeof path)
        return diag_set(diag, STATUS_IO, c->path, -1, "the path is too long");
    char *packed = NULL;
    size_t packed_bytes = 0;
    enum status status = regular_read(path, SIZE_MAX - 1, &packed, &packed_bytes, diag);
    if (status)
        return status;
    status = decompress(path, packed, packed_bytes, limit, out, out_bytes, diag);
    free(packed);
    if (status)
        return status;
    if (!hash_equal(hash_bytes(*out, *out_bytes), hash)) {
        free(*out);
        *out = NULL;
        return diag_set(diag, STATUS_BAD_INPUT, path, -1,
                        "the contents do not have the hash that the file is named by");
    }
    return STATUS_OK;
}
