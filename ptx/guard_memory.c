/* guard_memory.c - memory during a guarded run: pages and bitmaps are put by before they change, and which bytes are
 * defined. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "ptx/guard.h"

/* The first chunk for pages; the next are larger, up to a size that comes in huge pages. */
enum { SMALL_CHUNK = 1 << 16, LARGE_CHUNK = 1 << 22, HUGE_PAGE = 1 << 21 };

struct guard_range *guard_range_at(struct guard *g, uint64_t address)
{
    uint32_t number;
    const struct ptx_range *r = range_find(g->launch, address, &number);
    if (!r || !number || number >= g->range_total)
        return NULL;
    g->ranges[number].range = r;
    return &g->ranges[number];
}

/* ---- what was there before ---- */

static uint8_t *large_alloc(size_t bytes)
{
    if (bytes < LARGE_CHUNK)
        return malloc(bytes);
    uint8_t *p = aligned_alloc(HUGE_PAGE, bytes);
    if (p)
        (void)madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

static uint8_t *chunk_take(struct guard *g, uint32_t bytes)
{
    if (g->chunk_count == 0 || g->chunk_used + bytes > g->chunk_bytes) {
        const size_t want = g->chunk_bytes < LARGE_CHUNK ? 4 * g->chunk_bytes : LARGE_CHUNK;
        g->chunk_bytes = want ? want : SMALL_CHUNK;
        uint8_t **fresh = realloc((void *)g->chunks, (g->chunk_count + 1) * sizeof *fresh);
        uint8_t *chunk = fresh ? large_alloc(g->chunk_bytes) : NULL;
        if (fresh)
            g->chunks = fresh;
        if (!chunk)
            return NULL;
        g->chunks[g->chunk_count++] = chunk;
        g->chunk_used = 0;
    }
    uint8_t *p = g->chunks[g->chunk_count - 1] + g->chunk_used;
    g->chunk_used += bytes;
    return p;
}

static bool save_page(struct guard *g, struct guard_range *r, uint64_t page)
{
    if (g->page_count == g->page_capacity) {
        size_t want = g->page_capacity ? 2 * g->page_capacity : 64;
        struct guard_page *fresh = realloc(g->pages, want * sizeof *fresh);
        if (!fresh)
            return false;
        g->pages = fresh;
        g->page_capacity = want;
    }
    const uint64_t from = page * GUARD_PAGE, rest = r->range->bytes - from;
    const uint32_t bytes = rest < GUARD_PAGE ? (uint32_t)rest : GUARD_PAGE;
    uint8_t *host = (uint8_t *)r->range->host + from, *copy = chunk_take(g, bytes);
    if (!copy)
        return false;
    memcpy(copy, host, bytes);
    g->pages[g->page_count++] = (struct guard_page){host, copy, bytes};
    r->saved[page / 8] |= (uint8_t)(1u << page % 8);
    return true;
}

bool guard_save(struct guard *g, struct guard_range *r, uint64_t offset, uint64_t bytes)
{
    if (!r->saved && !(r->saved = calloc(r->range->bytes / GUARD_PAGE / 8 + 1, 1)))
        return false;
    const uint64_t last = (offset + bytes - 1) / GUARD_PAGE;
    for (uint64_t page = offset / GUARD_PAGE; page <= last; page++)
        if (!(r->saved[page / 8] >> page % 8 & 1) && !save_page(g, r, page))
            return false;
    return true;
}

static uint8_t *copy_of(const uint8_t *map, uint64_t bytes, bool *ok)
{
    const size_t size = (size_t)((bytes + 7) / 8);
    uint8_t *copy = map ? malloc(size ? size : 1) : NULL;
    if (copy)
        memcpy(copy, map, size);
    *ok = *ok && (copy || !map);
    return copy;
}

bool guard_keep_bitmaps(struct guard_range *r)
{
    bool ok = true;
    if (r->met)
        return true;
    r->old_written = copy_of(r->range->written, r->range->bytes, &ok);
    r->old_read = copy_of(r->range->read, r->range->bytes, &ok);
    r->met = ok;
    return ok;
}

void guard_put_back(struct guard *g)
{
    for (size_t i = 0; i < g->page_count; i++)
        memcpy(g->pages[i].host, g->pages[i].copy, g->pages[i].bytes);
    for (uint32_t i = 0; g->ranges && i < g->range_total; i++) {
        const struct guard_range *r = &g->ranges[i];
        if (!r->range)
            continue;
        const size_t size = (size_t)((r->range->bytes + 7) / 8);
        if (r->old_written)
            memcpy(r->range->written, r->old_written, size);
        if (r->old_read)
            memcpy(r->range->read, r->old_read, size);
    }
}

void guard_memory_free(struct guard *g)
{
    for (uint32_t i = 0; g->ranges && i < g->range_total; i++) {
        struct guard_range *r = &g->ranges[i];
        free(r->defined);
        free(r->saved);
        free(r->segment_write);
        free(r->segment_read);
        free(r->unit_write);
        free(r->unit_read);
        free(r->old_written);
        free(r->old_read);
    }
    for (size_t i = 0; i < g->chunk_count; i++)
        free(g->chunks[i]);
    free((void *)g->chunks);
    free(g->pages);
    g->chunks = NULL;
    g->pages = NULL;
    g->chunk_count = g->chunk_used = g->chunk_bytes = g->page_count = g->page_capacity = 0;
}

/* ---- what is defined ---- */

bool guard_is_whole(struct guard_range *r)
{
    if (r->looked)
        return r->whole;
    const uint8_t *valid = r->range->valid;
    const uint64_t bytes = r->range->bytes;
    r->looked = r->whole = true;
    if (!valid)
        return true;
    uint64_t i = 0;
    for (uint64_t word; r->whole && i + 8 <= bytes / 8; i += 8) {
        memcpy(&word, valid + i, sizeof word);
        r->whole = word == UINT64_MAX;
    }
    for (; r->whole && i < bytes / 8; i++)
        r->whole = valid[i] == 0xff;
    if (r->whole && bytes % 8)
        r->whole = (~valid[bytes / 8] & ((1u << bytes % 8) - 1)) == 0;
    return r->whole;
}

bool guard_defined(const struct guard_range *r, uint64_t offset, uint64_t bytes)
{
    const uint8_t *map = r->defined ? r->defined : r->range->valid;
    uint64_t from = offset, end = offset + bytes;
    if (r->whole)
        return true;
    for (; from < end && from % 8; from++)
        if (!(map[from / 8] >> from % 8 & 1))
            return false;
    for (; from + 8 <= end; from += 8)
        if (map[from / 8] != 0xff)
            return false;
    for (; from < end; from++)
        if (!(map[from / 8] >> from % 8 & 1))
            return false;
    return true;
}

bool guard_define(struct guard_range *r, uint64_t offset, uint64_t bytes)
{
    bool ok = true;
    if (guard_is_whole(r))
        return true;
    if (!r->defined)
        r->defined = copy_of(r->range->valid, r->range->bytes, &ok);
    if (!ok)
        return false;
    uint64_t from = offset, end = offset + bytes;
    for (; from < end && from % 8; from++)
        r->defined[from / 8] |= (uint8_t)(1u << from % 8);
    if (end - from >= 8) {
        memset(r->defined + from / 8, 0xff, (size_t)((end - from) / 8));
        from += (end - from) / 8 * 8;
    }
    for (; from < end; from++)
        r->defined[from / 8] |= (uint8_t)(1u << from % 8);
    return true;
}
