#include "analyzer/graph_contents.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/diag.h"

/* An allocation is executed from a copy: above this all of a launch's memory together is refused, unless another limit
 * is given. */
#define MEMORY_LIMIT (UINT64_C(64) << 30)

/* Memory between regions: valid, of no known bounds. Its id is nobody's. */
struct verify_gap {
    struct model_allocation piece;
    struct cap_alloc record;
    struct verify_gap *next;
};

struct maker {
    struct verify_memory *memory;
    const struct model_launch *launch;
    const struct model_live *live;
    struct map index; /* allocation id -> index of the region while collecting */
    size_t capacity;
};

static bool grow(struct maker *m)
{
    struct verify_memory *v = m->memory;
    if (v->count < m->capacity)
        return true;
    m->capacity = m->capacity ? m->capacity * 2 : 16;
    struct verify_region *info = realloc(v->info, m->capacity * sizeof *info);
    if (info)
        v->info = info;
    return info != NULL;
}

static bool collect(struct maker *m, const struct model_allocation *a, bool reached, bool freed)
{
    uint64_t at;
    if (map_get(&m->index, a->id, &at)) {
        m->memory->info[at].reached = m->memory->info[at].reached || reached;
        return true;
    }
    if (!grow(m) || !map_put(&m->index, a->id, m->memory->count))
        return false;
    m->memory->info[m->memory->count++] = (struct verify_region){.allocation = a, .reached = reached, .freed = freed};
    return true;
}

/* A library's variables exist once in each context. */
static bool of_module(const struct capture *c, const struct model_allocation *a, const struct model_launch *l)
{
    if (a->record->kind != CAP_ALLOC_VARIABLE || a->record->module != l->kernel->record->module)
        return false;
    const struct cap_stream *stream = capture_definition(c, CAP_STREAM, l->record->stream);
    return !stream || !stream->context || !a->record->context || stream->context == a->record->context;
}

static const struct model_allocation *pointed_to(const struct model_live *live, const uint8_t *params, uint32_t at,
                                                 bool *freed)
{
    uint64_t word;
    memcpy(&word, params + at, sizeof word);
    const struct model_allocation *a = model_live_find_inner(live, word);
    *freed = false;
    if (!a) {
        a = model_live_find_freed(live, word);
        *freed = a != NULL;
    }
    return a;
}

static bool collect_gap(struct maker *m, const struct model_allocation *whole, uint64_t from, uint64_t to)
{
    struct verify_gap *gap = from < to ? calloc(1, sizeof *gap) : NULL;
    if (from >= to)
        return true;
    if (!gap)
        return false;
    gap->record = *whole->record;
    gap->piece = *whole;
    gap->piece.record = &gap->record;
    gap->piece.parent = whole;
    gap->piece.address = gap->record.address = from;
    gap->piece.bytes = gap->record.bytes = to - from;
    gap->piece.id = gap->record.id = UINT32_MAX - (uint32_t)m->memory->count;
    gap->next = m->memory->gaps;
    m->memory->gaps = gap;
    return collect(m, &gap->piece, false, false);
}

/* An allocation, or the regions in it and what lies between them. */
static bool collect_live(struct maker *m, const struct model_allocation *a)
{
    struct address_place place;
    const struct model_allocation *region;
    uint64_t at = a->address;
    bool ok = true;
    if (!model_live_regions(m->live, a, &place))
        return collect(m, a, false, false);
    while (ok && (region = model_live_next_region(m->live, a, &place))) {
        ok = collect_gap(m, a, at, region->address) && collect(m, region, false, false);
        at = region->address + region->bytes;
    }
    return ok && collect_gap(m, a, at, a->address + a->bytes);
}

static bool collect_all(struct maker *m, bool everything)
{
    const uint8_t *params = model_launch_params(m->launch);
    bool ok = true, freed;
    for (uint32_t at = 0; ok && params && at + 8u <= m->launch->record->param_bytes; at += 8) {
        const struct model_allocation *a = pointed_to(m->live, params, at, &freed);
        ok = !a || collect(m, a, true, freed);
    }
    const struct model_allocation *a;
    for (struct address_place at = {0}; ok && (a = address_list_next(&m->live->live, &at));) {
        if (of_module(m->live->model->capture, a, m->launch))
            ok = collect(m, a, true, false);
        else if (everything)
            ok = collect_live(m, a);
    }
    for (struct address_place at = {0}; ok && everything && (a = address_list_next(&m->live->freed, &at));)
        ok = collect(m, a, false, true);
    return ok;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const struct verify_region *)a)->allocation->address,
             y = ((const struct verify_region *)b)->allocation->address;
    return x < y ? -1 : x > y;
}

static void set_bits(uint8_t *bits, uint64_t from, uint64_t count)
{
    uint64_t i = from, end = from + count;
    for (; i < end && i % 8; i++)
        bits[i / 8] |= (uint8_t)(1u << i % 8);
    if (end > i)
        memset(bits + i / 8, 0xff, (size_t)(end - i) / 8);
    for (i += (end - i) / 8 * 8; i < end; i++)
        bits[i / 8] |= (uint8_t)(1u << i % 8);
}

/* Copies what the snapshots before the launch hold, and notes which bytes that is. */
static enum status fill(struct maker *m, size_t index, struct blob_cache *blobs, struct diag *diag)
{
    struct verify_region *info = &m->memory->info[index];
    struct reference_region *r = &m->memory->regions[index];
    const struct graph_contents *contents = model_launch_contents(m->launch);
    if (contents)
        return graph_contents_fill(contents, info, r) ? STATUS_OK
                                                      : diag_set(diag, STATUS_NO_MEMORY, "memory", -1, "no memory");
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = model_launch_snapshot(m->live->model, m->launch, i)) && !info->freed; i++) {
        struct snapshot_part part;
        if (s->when != CAP_BEFORE || !model_snapshot_part(s, info->allocation, &part))
            continue;
        const uint8_t *data = blob_cache_get(blobs, (struct hash128){s->hash_low, s->hash_high}, s->bytes, diag);
        if (!data)
            return STATUS_BAD_INPUT;
        memcpy(r->host + part.offset, data + part.skip, part.bytes);
        if (part.bytes == r->bytes) {
            info->known_all = true;
            continue;
        }
        if (!info->known && !(info->known = calloc(1, (size_t)(r->bytes + 7) / 8)))
            return diag_set(diag, STATUS_NO_MEMORY, "memory", -1, "no memory");
        set_bits(info->known, part.offset, part.bytes);
    }
    return STATUS_OK;
}

static enum status make_region(struct maker *m, size_t index, struct valid_bytes *valid, struct blob_cache *blobs,
                               struct diag *diag)
{
    struct verify_region *info = &m->memory->info[index];
    const struct model_allocation *a = info->allocation;
    struct reference_region *r = &m->memory->regions[index];
    *r = (struct reference_region){
        .address = a->address,
        .bytes = a->bytes,
        .id = a->id,
        .flags = (info->freed ? REFERENCE_FREED : 0) | (a->record->constant ? REFERENCE_READ_ONLY : 0),
    };
    /* Untouched pages of calloc cost nothing: allocations without contents may be large. */
    r->host = calloc(1, (size_t)a->bytes);
    r->written = calloc(1, (size_t)(a->bytes + 7) / 8);
    r->read = calloc(1, (size_t)(a->bytes + 7) / 8);
    if (!r->host || !r->written || !r->read)
        return diag_set(diag, STATUS_NO_MEMORY, "memory", -1, "no memory for allocation %u of %" PRIu64 " bytes", a->id,
                        a->bytes);
    r->valid = info->freed ? NULL : valid_bytes_of(valid, a);
    return fill(m, index, blobs, diag);
}

static enum status make_regions(struct maker *m, struct valid_bytes *valid, struct blob_cache *blobs, uint64_t limit,
                                struct diag *diag)
{
    struct verify_memory *v = m->memory;
    uint64_t total = 0;
    if (v->count)
        qsort(v->info, v->count, sizeof *v->info, by_address);
    v->regions = calloc(v->count + 1, sizeof *v->regions);
    if (!v->regions)
        return diag_set(diag, STATUS_NO_MEMORY, "memory", -1, "no memory");
    for (size_t i = 0; i < v->count; i++) {
        total += v->info[i].allocation->bytes;
        if (total > limit)
            return diag_set(diag, STATUS_LIMIT, "memory", -1, "the launch's memory is larger than %" PRIu64 " MiB",
                            limit >> 20);
        enum status status = make_region(m, i, valid, blobs, diag);
        if (status)
            return status;
    }
    return STATUS_OK;
}

static size_t region_of(const struct verify_memory *v, const struct model_allocation *a)
{
    size_t i = 0;
    while (i < v->count && v->info[i].allocation != a)
        i++;
    return i;
}

static enum status make_pointers(struct maker *m, struct diag *diag)
{
    struct verify_memory *v = m->memory;
    const uint8_t *params = model_launch_params(m->launch);
    uint32_t bytes = params ? m->launch->record->param_bytes : 0;
    v->pointers = calloc(bytes / 8 + 1u, sizeof *v->pointers);
    v->variables = calloc(v->count + 1, sizeof *v->variables);
    if (!v->pointers || !v->variables)
        return diag_set(diag, STATUS_NO_MEMORY, "memory", -1, "no memory");
    for (uint32_t at = 0; at + 8 <= bytes; at += 8) {
        bool freed;
        const struct model_allocation *a = pointed_to(m->live, params, at, &freed);
        if (a)
            v->pointers[v->pointer_count++] = (struct reference_pointer){at, region_of(v, a)};
    }
    for (size_t i = 0; i < v->count; i++)
        if (of_module(m->live->model->capture, v->info[i].allocation, m->launch))
            v->variables[v->variable_count++] = (struct reference_variable){
                capture_string(m->live->model->capture, v->info[i].allocation->record->name), i};
    return STATUS_OK;
}

enum status verify_memory_make(struct verify_memory *memory, const struct model_launch *l,
                               const struct model_live *live, struct valid_bytes *valid, struct blob_cache *blobs,
                               bool everything, uint64_t limit, struct diag *diag)
{
    *memory = (struct verify_memory){0};
    struct maker m = {.memory = memory, .launch = l, .live = live};
    enum status status =
        collect_all(&m, everything) ? STATUS_OK : diag_set(diag, STATUS_NO_MEMORY, "memory", -1, "no memory");
    map_free(&m.index);
    if (!status)
        status = make_regions(&m, valid, blobs, limit ? limit : MEMORY_LIMIT, diag);
    if (!status)
        status = make_pointers(&m, diag);
    if (status)
        verify_memory_free(memory);
    return status;
}

void verify_memory_free(struct verify_memory *v)
{
    for (size_t i = 0; v->regions && i < v->count; i++) {
        free(v->regions[i].host);
        free(v->regions[i].written);
        free(v->regions[i].read);
        free(v->regions[i].shadow);
        free(v->regions[i].shadow_used);
        free(v->regions[i].tainted);
    }
    for (size_t i = 0; i < v->count; i++)
        free(v->info[i].known);
    for (struct verify_gap *gap = v->gaps, *next; gap; gap = next) {
        next = gap->next;
        free(gap);
    }
    free(v->regions);
    free(v->info);
    free(v->pointers);
    free(v->variables);
    *v = (struct verify_memory){0};
}

bool verify_memory_read_unknown(const struct verify_memory *v)
{
    for (size_t i = 0; i < v->count; i++) {
        const struct verify_region *info = &v->info[i];
        const uint8_t *read = v->regions[i].read;
        if (info->known_all || info->freed)
            continue;
        for (uint64_t k = 0; k < (v->regions[i].bytes + 7) / 8; k++)
            if (read[k] & (info->known ? (uint8_t)~info->known[k] : 0xffu))
                return true;
    }
    return false;
}

bool verify_memory_between(const struct model_launch *l, const struct model_live *live)
{
    const uint8_t *params = model_launch_params(l);
    struct address_place first;
    for (uint32_t at = 0; live->regions.count && params && at + 8u <= l->record->param_bytes; at += 8) {
        bool freed;
        const struct model_allocation *a = pointed_to(live, params, at, &freed);
        /* Graphs' nodes get their memory another way, which knows allocations only. */
        if (a && !freed && (a->parent ? model_launch_contents(l) != NULL : model_live_regions(live, a, &first)))
            return true;
    }
    return false;
}

void verify_memory_survey(const struct model_launch *l, const struct model_live *live, size_t *reached,
                          size_t *with_contents)
{
    const uint8_t *params = model_launch_params(l);
    *reached = 0;
    *with_contents = 0;
    for (uint32_t at = 0; params && at + 8u <= l->record->param_bytes; at += 8) {
        bool freed; /* it has no contents that could be missing */
        *reached += pointed_to(live, params, at, &freed) && !freed;
    }
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = model_launch_snapshot(live->model, l, i)); i++)
        *with_contents += s->when == CAP_BEFORE;
}

static uint64_t bits_in(const uint8_t *bits, uint64_t bytes)
{
    uint64_t n = 0;
    for (uint64_t k = 0; k < (bytes + 7) / 8; k++)
        n += (uint64_t)__builtin_popcount(bits[k]);
    return n;
}

void verify_memory_moved(const struct verify_memory *v, uint64_t *read, uint64_t *written)
{
    *read = *written = 0;
    for (size_t i = 0; i < v->count; i++) {
        *read += bits_in(v->regions[i].read, v->regions[i].bytes);
        *written += bits_in(v->regions[i].written, v->regions[i].bytes);
    }
}
