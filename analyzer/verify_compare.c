#include "analyzer/verify_compare.h"

#include <stdlib.h>
#include <string.h>

#include "common/diag.h"

/* The contents before the launch of the word at `offset`, when one snapshot holds all of it; else `fallback`. */
static uint32_t word_before(const struct model *m, const struct model_launch *l, const struct model_allocation *a,
                            uint64_t offset, size_t bytes, struct blob_cache *blobs, uint32_t fallback)
{
    struct diag diag;
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = model_launch_snapshot(m, l, i)); i++) {
        struct snapshot_part part;
        if (s->when != CAP_BEFORE || !model_snapshot_part(s, a, &part) || offset < part.offset ||
            offset + bytes > part.offset + part.bytes)
            continue;
        const uint8_t *data = blob_cache_get(blobs, (struct hash128){s->hash_low, s->hash_high}, s->bytes, &diag);
        uint32_t word = 0;
        if (!data)
            break;
        memcpy(&word, data + part.skip + (offset - part.offset), bytes);
        return word;
    }
    return fallback;
}

static bool stored(const struct reference_region *r, uint64_t offset, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (bit_get(r->written, offset + i))
            return true;
    return false;
}

static bool known(const struct verify_region *info, uint64_t offset, size_t bytes)
{
    for (size_t i = 0; i < bytes && !info->known_all; i++)
        if (!info->known || !bit_get(info->known, offset + i))
            return false;
    return true;
}

static bool add_word(struct comparison *c, struct compare_word word)
{
    c->differing++;
    if (c->count == COMPARE_WORDS)
        return true;
    if ((c->count & (c->count - 1)) == 0) {
        struct compare_word *more = realloc(c->words, (c->count ? c->count * 2 : 1) * sizeof *more);
        if (!more)
            return false;
        c->words = more;
    }
    c->words[c->count++] = word;
    return true;
}

/* `device`: what lies at part.offset. */
static bool compare_snapshot(const struct verify_memory *memory, size_t index, const struct snapshot_part *s,
                             const uint8_t *device, struct comparison *out)
{
    const struct reference_region *r = &memory->regions[index];
    const struct verify_region *info = &memory->info[index];
    for (uint64_t at = s->offset; at < s->offset + s->bytes;) {
        size_t bytes = 4 - at % 4;
        if (bytes > s->offset + s->bytes - at)
            bytes = (size_t)(s->offset + s->bytes - at);
        bool was_stored = stored(r, at, bytes);
        out->compared += was_stored;
        if (memcmp(device + (at - s->offset), r->host + at, bytes) != 0 && (was_stored || known(info, at, bytes))) {
            struct compare_word w = {.region = index, .offset = at, .stored = was_stored};
            memcpy(&w.device, device + (at - s->offset), bytes);
            memcpy(&w.expected, r->host + at, bytes);
            if (!add_word(out, w))
                return false;
        }
        at += bytes;
    }
    return true;
}

/* Clears the bits of what a snapshot shows; what stays was stored unseen. */
static void clear_bits(uint8_t *bits, uint64_t from, uint64_t count)
{
    for (uint64_t i = from; i < from + count;) {
        if (i % 8 == 0 && from + count - i >= 8) {
            bits[i / 8] = 0;
            i += 8;
        } else {
            bits[i / 8] &= (uint8_t) ~(1u << i % 8);
            i++;
        }
    }
}

static enum status compare_region(const struct model *m, const struct model_launch *l,
                                  const struct verify_memory *memory, size_t index, struct blob_cache *blobs,
                                  struct comparison *out, struct diag *diag)
{
    const struct reference_region *r = &memory->regions[index];
    size_t bitmap = (size_t)(r->bytes + 7) / 8;
    uint8_t *unseen = malloc(bitmap + 1);
    enum status status = STATUS_OK;
    if (!unseen)
        return diag_set(diag, STATUS_NO_MEMORY, "memory", -1, "no memory");
    memcpy(unseen, r->written, bitmap);
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = model_launch_snapshot(m, l, i)) && !status; i++) {
        struct hash128 hash = {s->hash_low, s->hash_high};
        struct snapshot_part part;
        if (s->when != CAP_AFTER || !model_snapshot_part(s, memory->info[index].allocation, &part))
            continue;
        clear_bits(unseen, part.offset, part.bytes);
        /* Equal hashes spare loading the contents; most launches end here. */
        if (part.bytes == s->bytes && hash_equal(hash_bytes(r->host + part.offset, part.bytes), hash))
            continue;
        const uint8_t *device = blob_cache_get(blobs, hash, s->bytes, diag);
        if (!device)
            status = STATUS_BAD_INPUT;
        else if (!compare_snapshot(memory, index, &part, device + part.skip, out))
            status = diag_set(diag, STATUS_NO_MEMORY, "memory", -1, "no memory");
    }
    for (size_t k = 0; !status && k < bitmap && !out->incomplete; k++)
        out->incomplete = unseen[k] != 0;
    free(unseen);
    return status;
}

enum status compare_run(const struct model *m, const struct model_launch *l, const struct verify_memory *memory,
                        struct blob_cache *blobs, struct comparison *out, struct diag *diag)
{
    *out = (struct comparison){0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < memory->count && !status; i++)
        if (!memory->info[i].freed)
            status = compare_region(m, l, memory, i, blobs, out, diag);
    for (size_t i = 0; i < out->count && !status; i++) {
        struct compare_word *w = &out->words[i];
        const struct reference_region *r = &memory->regions[w->region];
        size_t bytes = r->bytes - w->offset < 4 ? (size_t)(r->bytes - w->offset) : 4;
        w->before = word_before(m, l, memory->info[w->region].allocation, w->offset, bytes, blobs, w->device ^ 1u);
    }
    if (status)
        comparison_free(out);
    return status;
}

void comparison_free(struct comparison *c)
{
    free(c->words);
    *c = (struct comparison){0};
}
