#include "analyzer/valid_bytes.h"

#include <stdlib.h>
#include <string.h>

static struct valid_entry *entry_of(const struct valid_bytes *v, const struct model_allocation *a)
{
    return &v->entries[a - v->model->allocations];
}

/* Memory that the host writes to without a call, that was there before us, or that has contents from the start. */
static bool born_written(uint32_t kind)
{
    switch (kind) {
    case CAP_ALLOC_DEVICE:
    case CAP_ALLOC_PITCHED:
    case CAP_ALLOC_ASYNC:
    case CAP_ALLOC_POOL:
        return false;
    default:
        return true;
    }
}

bool valid_bytes_start(struct valid_bytes *v, const struct model *m)
{
    *v = (struct valid_bytes){.model = m, .entries = calloc(m->allocation_count + 1, sizeof *v->entries)};
    v->give_up = m->capture->header.dropped_records > 0 || m->capture->rejected.count > 0 || m->uses_graphs;
    for (size_t i = 0; v->entries && i < m->allocation_count; i++)
        v->entries[i].all = v->give_up || born_written(m->allocations[i].record->kind);
    return v->entries != NULL;
}

void valid_bytes_end(struct valid_bytes *v)
{
    for (size_t i = 0; v->entries && i < v->model->allocation_count; i++)
        free(v->entries[i].bits);
    free(v->entries);
    *v = (struct valid_bytes){0};
}

/* Makes room for single bits. False: all bits are set already, or memory ran out and they are now. */
static bool want_bits(struct valid_bytes *v, const struct model_allocation *a)
{
    struct valid_entry *e = entry_of(v, a);
    if (e->all || a->bytes == 0)
        return false;
    if (!e->bits)
        e->bits = calloc(1, (size_t)(a->bytes + 7) / 8);
    e->all = !e->bits;
    return e->bits != NULL;
}

/* A piece of an allocation has no bits of its own: those of the whole tell. */
static uint64_t within(const struct model_allocation **a)
{
    const struct model_allocation *piece = *a;
    if (!piece->parent)
        return 0;
    *a = piece->parent;
    return piece->address - piece->parent->address;
}

static void mark_part(struct valid_bytes *v, const struct model_allocation *a, uint64_t offset, uint64_t bytes);

void valid_bytes_mark_all(struct valid_bytes *v, const struct model_allocation *a)
{
    if (a->parent) {
        mark_part(v, a, 0, a->bytes);
        return;
    }
    struct valid_entry *e = entry_of(v, a);
    e->touched = true;
    e->all = true;
    free(e->bits);
    e->bits = NULL;
}

void valid_bytes_mark(struct valid_bytes *v, const struct model_allocation *a, uint64_t offset, uint64_t bytes)
{
    if (a->parent) {
        mark_part(v, a, offset, bytes);
        return;
    }
    entry_of(v, a)->touched = true;
    if (offset >= a->bytes)
        return;
    if (bytes > a->bytes - offset)
        bytes = a->bytes - offset;
    if (bytes == a->bytes) {
        valid_bytes_mark_all(v, a);
        return;
    }
    if (!want_bits(v, a))
        return;
    uint8_t *bits = entry_of(v, a)->bits;
    uint64_t i = offset, end = offset + bytes;
    for (; i < end && i % 8; i++)
        bits[i / 8] |= (uint8_t)(1u << i % 8);
    if (end - i >= 8) {
        memset(bits + i / 8, 0xff, (size_t)(end - i) / 8);
        i += (end - i) / 8 * 8;
    }
    for (; i < end; i++)
        bits[i / 8] |= (uint8_t)(1u << i % 8);
}

static void mark_part(struct valid_bytes *v, const struct model_allocation *a, uint64_t offset, uint64_t bytes)
{
    if (offset >= a->bytes)
        return;
    if (bytes > a->bytes - offset)
        bytes = a->bytes - offset;
    uint64_t start = within(&a);
    valid_bytes_mark(v, a, start + offset, bytes);
}

static void merge_part(struct valid_bytes *v, const struct model_allocation *a, const uint8_t *written)
{
    for (uint64_t i = 0; i < a->bytes;) {
        uint64_t first = i;
        while (i < a->bytes && (written[i / 8] >> i % 8 & 1))
            i++;
        if (i > first)
            mark_part(v, a, first, i - first);
        else
            i++;
    }
}

void valid_bytes_merge(struct valid_bytes *v, const struct model_allocation *a, const uint8_t *written)
{
    if (a->parent) {
        merge_part(v, a, written);
        return;
    }
    bool any = false;
    for (uint64_t i = 0; i < (a->bytes + 7) / 8 && !any; i++)
        any = written[i] != 0;
    entry_of(v, a)->touched = entry_of(v, a)->touched || any;
    if (!any || !want_bits(v, a))
        return;
    uint8_t *bits = entry_of(v, a)->bits;
    for (uint64_t i = 0; i < (a->bytes + 7) / 8; i++)
        bits[i] |= written[i];
}

void valid_bytes_copy(struct valid_bytes *v, const struct model_allocation *to, uint64_t to_offset,
                      const struct model_allocation *from, uint64_t from_offset, uint64_t bytes)
{
    if (!from || entry_of(v, from)->all || from_offset >= from->bytes || bytes > from->bytes - from_offset) {
        valid_bytes_mark(v, to, to_offset, bytes);
        return;
    }
    entry_of(v, to)->touched = true;
    if (to_offset >= to->bytes || bytes > to->bytes - to_offset || !want_bits(v, to))
        return;
    const uint8_t *source = entry_of(v, from)->bits;
    uint8_t *bits = entry_of(v, to)->bits;
    for (uint64_t i = 0; i < bytes; i++) {
        uint64_t s = from_offset + i, t = to_offset + i;
        bool set = source && (source[s / 8] >> s % 8 & 1);
        bits[t / 8] = (uint8_t)((bits[t / 8] & ~(1u << t % 8)) | (unsigned)set << t % 8);
    }
}

void valid_bytes_clear(struct valid_bytes *v, const struct model_allocation *a, const uint8_t *unwritten)
{
    const struct model_allocation *piece = a;
    uint64_t start = within(&a);
    struct valid_entry *e = entry_of(v, a);
    size_t bytes = (size_t)(a->bytes + 7) / 8;
    if (v->give_up || born_written(a->record->kind))
        return;
    if (e->all) {
        e->bits = malloc(bytes + 1);
        if (!e->bits)
            return;
        memset(e->bits, 0xff, bytes);
        e->all = false;
    }
    for (uint64_t i = 0; e->bits && piece != a && i < piece->bytes; i++)
        if (unwritten[i / 8] >> i % 8 & 1)
            e->bits[(start + i) / 8] &= (uint8_t) ~(1u << (start + i) % 8);
    for (size_t k = 0; e->bits && piece == a && k < bytes; k++)
        e->bits[k] &= (uint8_t)~unwritten[k];
}

const uint8_t *valid_bytes_of(struct valid_bytes *v, const struct model_allocation *a)
{
    uint64_t start = within(&a);
    if (start % 8) /* its bits lie across those of the whole; allocators align their buffers */
        return NULL;
    if (start)
        return want_bits(v, a) ? entry_of(v, a)->bits + start / 8 : NULL;
    return want_bits(v, a) ? entry_of(v, a)->bits : NULL;
}

bool valid_bytes_touched(const struct valid_bytes *v, const struct model_allocation *a)
{
    (void)within(&a);
    return entry_of(v, a)->touched;
}

void valid_bytes_forget(struct valid_bytes *v, const struct model_allocation *a)
{
    if (a->parent)
        return;
    struct valid_entry *e = entry_of(v, a);
    free(e->bits);
    *e = (struct valid_entry){.all = true};
}

/* ---- records ---- */

/* More rows than this are marked as one block from the first byte to the last. */
enum { ROW_LIMIT = 1 << 16 };

static void record_row(struct valid_bytes *v, const struct model_live *live, uint64_t target, uint64_t source,
                       bool from_device, uint64_t bytes)
{
    const struct model_allocation *to = model_live_find(live, target);
    const struct model_allocation *from = from_device ? model_live_find(live, source) : NULL;
    if (to)
        valid_bytes_copy(v, to, target - to->address, from, from ? source - from->address : 0, bytes);
}

static void record_copy(struct valid_bytes *v, const struct model_live *live, const struct cap_copy *c)
{
    bool from_device = c->kind == CAP_COPY_DTOD || c->kind == CAP_COPY_UNIFIED;
    if (c->result != 0 || !c->width || !c->height || !c->depth)
        return;
    if (c->kind == CAP_COPY_ARRAY || c->height > ROW_LIMIT / c->depth) {
        const struct model_allocation *to = model_live_find(live, c->target);
        if (to)
            valid_bytes_mark_all(v, to);
        return;
    }
    for (uint64_t z = 0; z < c->depth; z++)
        for (uint64_t y = 0; y < c->height; y++)
            record_row(v, live, c->target + z * c->target_slice_pitch + y * c->target_pitch,
                       c->source + z * c->source_slice_pitch + y * c->source_pitch, from_device, c->width);
}

void valid_bytes_record(struct valid_bytes *v, const struct model_live *live, const struct cap_head *record)
{
    if (record->type == CAP_COPY)
        record_copy(v, live, (const void *)record);
    if (record->type != CAP_SET)
        return;
    const struct cap_set *s = (const void *)record;
    const struct model_allocation *to = model_live_find(live, s->target);
    if (!to || s->result != 0)
        return;
    if (s->height > ROW_LIMIT) {
        valid_bytes_mark_all(v, to);
        return;
    }
    for (uint64_t y = 0; y < s->height; y++)
        valid_bytes_mark(v, to, s->target - to->address + y * s->pitch, s->width);
}
