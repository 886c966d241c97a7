#include "analyzer/model.h"

static void change_region(struct model_live *live, const struct model_change *change)
{
    struct model_allocation *a = change->allocation;
    if (change->freed)
        address_list_remove(&live->regions, a);
    else if (address_list_find(&live->live, a->address) == a->parent && !address_list_insert(&live->regions, a))
        live->no_memory = true;
}

void model_live_start(struct model_live *live, const struct model *m)
{
    *live = (struct model_live){.model = m};
}

void model_live_advance(struct model_live *live, uint64_t seq)
{
    for (; live->next_change < live->model->change_count; live->next_change++) {
        const struct model_change *change = &live->model->changes[live->next_change];
        struct model_allocation *a = change->allocation;
        if (change->seq >= seq || live->no_memory)
            return;
        if (a->bytes == 0)
            continue;
        if (a->parent) {
            change_region(live, change);
            continue;
        }
        /* What lay in it has ended with it. */
        address_list_clear(&live->regions, a->address, a->bytes);
        if (change->freed) {
            if (address_list_find(&live->live, a->address) == a && !address_list_insert(&live->freed, a))
                live->no_memory = true;
            address_list_remove(&live->live, a);
        } else {
            /* What still lies there was freed without our seeing it, or its free, started later, was quicker. */
            address_list_clear(&live->freed, a->address, a->bytes);
            if (!address_list_insert(&live->live, a))
                live->no_memory = true;
        }
    }
}

void model_live_end(struct model_live *live)
{
    address_list_free(&live->live);
    address_list_free(&live->freed);
    address_list_free(&live->regions);
    *live = (struct model_live){0};
}

struct model_allocation *model_live_find(const struct model_live *live, uint64_t address)
{
    return address_list_find(&live->live, address);
}

struct model_allocation *model_live_find_region(const struct model_live *live, uint64_t address)
{
    return address_list_find(&live->regions, address);
}

bool model_live_regions(const struct model_live *live, const struct model_allocation *a, struct address_place *first)
{
    *first = address_list_from(&live->regions, a->address);
    struct address_place next = *first;
    return model_live_next_region(live, a, &next);
}

struct model_allocation *model_live_next_region(const struct model_live *live, const struct model_allocation *a,
                                                struct address_place *place)
{
    struct model_allocation *region = address_list_next(&live->regions, place);
    return region && region->address < a->address + a->bytes ? region : NULL;
}

struct model_allocation *model_live_find_inner(const struct model_live *live, uint64_t address)
{
    struct model_allocation *region = live->regions.count ? model_live_find_region(live, address) : NULL;
    return region ? region : model_live_find(live, address);
}

bool model_snapshot_part(const struct cap_snapshot *s, const struct model_allocation *a, struct snapshot_part *out)
{
    const struct model_allocation *whole = a->parent ? a->parent : a;
    uint64_t start = a->address - whole->address, first, last;
    if (s->allocation != whole->id || !s->bytes)
        return false;
    first = s->offset > start ? s->offset : start;
    last = s->offset + s->bytes < start + a->bytes ? s->offset + s->bytes : start + a->bytes;
    if (first >= last)
        return false;
    *out = (struct snapshot_part){first - start, first - s->offset, last - first};
    return true;
}

struct model_allocation *model_live_find_freed(const struct model_live *live, uint64_t address)
{
    return address_list_find(&live->freed, address);
}
