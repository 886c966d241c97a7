#include "analyzer/graph_contents.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/diag.h"

#define CONTENTS_LIMIT (UINT64_C(16) << 30) /* of one launch's buffers together */

static size_t bitmap_bytes(const struct graph_buffer *b)
{
    return (size_t)(b->allocation->bytes + 7) / 8;
}

struct graph_buffer *graph_contents_of(struct graph_contents *c, const struct model_allocation *a)
{
    uint64_t at;
    if (map_get(&c->index, a->id, &at))
        return &c->buffers[at];
    struct graph_buffer b = {.allocation = a};
    struct graph_buffer *more = realloc(c->buffers, (c->count + 1) * sizeof *more);
    if (more)
        c->buffers = more;
    if (more && a->bytes <= c->limit - c->total) {
        b.host = calloc(1, (size_t)a->bytes + 1);
        b.known = calloc(1, bitmap_bytes(&b) + 1);
        b.written = calloc(1, bitmap_bytes(&b) + 1);
    }
    if (!b.host || !b.known || !b.written || !map_put(&c->index, a->id, c->count)) {
        free(b.host);
        free(b.known);
        free(b.written);
        c->no_memory = true;
        return NULL;
    }
    c->total += a->bytes;
    c->buffers[c->count] = b;
    return &c->buffers[c->count++];
}

const struct graph_buffer *graph_contents_find(const struct graph_contents *c, uint32_t allocation)
{
    uint64_t at;
    return map_get(&c->index, allocation, &at) ? &c->buffers[at] : NULL;
}

static void set_bits(uint8_t *bits, uint64_t from, uint64_t count, bool value)
{
    uint64_t i = from, end = from + count;
    for (; i < end && i % 8; i++)
        bits[i / 8] = (uint8_t)((bits[i / 8] & ~(1u << i % 8)) | (unsigned)value << i % 8);
    if (end - i >= 8)
        memset(bits + i / 8, value ? 0xff : 0, (size_t)(end - i) / 8);
    for (i += (end - i) / 8 * 8; i < end; i++)
        bits[i / 8] = (uint8_t)((bits[i / 8] & ~(1u << i % 8)) | (unsigned)value << i % 8);
}

enum status graph_contents_start(struct graph_contents *c, const struct model *m, const struct model_launch *l,
                                 struct blob_cache *blobs, uint64_t limit, struct diag *diag)
{
    *c = (struct graph_contents){.limit = limit ? limit : CONTENTS_LIMIT};
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = model_launch_snapshot(m, l, i)); i++) {
        const struct model_allocation *a = model_allocation_by_id(m, s->allocation);
        if (s->when != CAP_BEFORE || !a || !s->bytes)
            continue;
        struct graph_buffer *b = graph_contents_of(c, a);
        if (!b)
            return diag_set(diag, STATUS_LIMIT, "memory", -1, "the graph's memory is larger than %" PRIu64 " MiB",
                            c->limit >> 20);
        const uint8_t *data = blob_cache_get(blobs, (struct hash128){s->hash_low, s->hash_high}, s->bytes, diag);
        if (!data)
            return STATUS_BAD_INPUT;
        memcpy(b->host + s->offset, data, s->bytes);
        set_bits(b->known, s->offset, s->bytes, true);
    }
    return STATUS_OK;
}

void graph_contents_end(struct graph_contents *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->buffers[i].host);
        free(c->buffers[i].known);
        free(c->buffers[i].written);
        free(c->buffers[i].writer);
    }
    free(c->buffers);
    map_free(&c->index);
    *c = (struct graph_contents){0};
}

bool graph_contents_known(const struct graph_buffer *b, uint64_t offset, uint64_t count)
{
    for (uint64_t i = offset; i < offset + count; i++)
        if (!bit_get(b->known, i))
            return false;
    return true;
}

bool graph_contents_fill(const struct graph_contents *c, struct verify_region *info, struct reference_region *r)
{
    const struct graph_buffer *b = graph_contents_find(c, info->allocation->id);
    if (!b || info->freed)
        return true;
    memcpy(r->host, b->host, (size_t)r->bytes);
    info->known_all = graph_contents_known(b, 0, r->bytes);
    if (info->known_all)
        return true;
    info->known = malloc(bitmap_bytes(b) + 1);
    if (!info->known)
        return false;
    memcpy(info->known, b->known, bitmap_bytes(b));
    return true;
}

static bool want_writer(struct graph_buffer *b)
{
    if (!b->writer)
        b->writer = calloc((size_t)(b->allocation->bytes + 3) / 4 + 1, sizeof *b->writer);
    return b->writer != NULL;
}

void graph_contents_store(struct graph_contents *c, uint32_t node, const struct verify_memory *memory)
{
    for (size_t i = 0; i < memory->count; i++) {
        const struct reference_region *r = &memory->regions[i];
        struct graph_buffer *b = NULL;
        for (uint64_t k = 0; k < (r->bytes + 7) / 8 && !memory->info[i].freed; k++) {
            if (!r->written[k])
                continue;
            if (!b && (!(b = graph_contents_of(c, memory->info[i].allocation)) || !want_writer(b))) {
                c->no_memory = true;
                return;
            }
            for (uint64_t at = k * 8; at < k * 8 + 8; at++)
                if (r->written[k] >> at % 8 & 1) {
                    b->host[at] = r->host[at];
                    b->writer[at / 4] = node + 1;
                }
            b->known[k] |= r->written[k];
            b->written[k] |= r->written[k];
        }
    }
}

void graph_contents_write(struct graph_buffer *b, uint32_t node, uint64_t offset, const uint8_t *bytes, uint64_t count)
{
    if (!count || !want_writer(b))
        return;
    memcpy(b->host + offset, bytes, (size_t)count);
    set_bits(b->known, offset, count, true);
    set_bits(b->written, offset, count, true);
    for (uint64_t word = offset / 4; word <= (offset + count - 1) / 4; word++)
        b->writer[word] = node + 1;
}

void graph_contents_forget(struct graph_buffer *b, uint64_t offset, uint64_t count)
{
    set_bits(b->known, offset, count, false);
    set_bits(b->written, offset, count, false);
}

bool graph_contents_as_memory(const struct graph_contents *c, struct verify_memory *out)
{
    *out = (struct verify_memory){.regions = calloc(c->count + 1, sizeof *out->regions),
                                  .info = calloc(c->count + 1, sizeof *out->info)};
    if (!out->regions || !out->info) {
        free(out->regions);
        free(out->info);
        return false;
    }
    for (size_t i = 0; i < c->count; i++) {
        const struct graph_buffer *b = &c->buffers[i];
        out->regions[i] = (struct reference_region){.address = b->allocation->address,
                                                    .bytes = b->allocation->bytes,
                                                    .host = b->host,
                                                    .id = b->allocation->id,
                                                    .written = b->written};
        out->info[i] = (struct verify_region){.allocation = b->allocation, .reached = true, .known = b->known};
    }
    out->count = c->count;
    return true;
}
