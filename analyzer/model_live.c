#include <stdlib.h>
#include <string.h>

#include "analyzer/model.h"

/* Index of the first allocation of the list whose end lies above `address`. */
static size_t first_above(struct model_allocation *const *list, size_t count, uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle]->address + list[middle]->bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct model_allocation *find(struct model_allocation *const *list, size_t count, uint64_t address)
{
    size_t i = first_above(list, count, address);
    return i < count && list[i]->address <= address ? list[i] : NULL;
}

/* Takes out everything that overlaps [address, address + bytes); returns the index where such a range would go. */
static size_t make_room(struct model_allocation **list, size_t *count, uint64_t address, uint64_t bytes)
{
    size_t first = first_above(list, *count, address), last = first;
    while (last < *count && list[last]->address < address + bytes)
        last++;
    if (last == first)
        return first;
    memmove(list + first, list + last, (*count - last) * sizeof(void *));
    *count -= last - first;
    return first;
}

static bool insert(struct model_allocation ***list, size_t *count, size_t *capacity, struct model_allocation *a)
{
    if (*count == *capacity) {
        size_t more = *capacity ? *capacity * 2 : 64;
        struct model_allocation **bigger = realloc(*list, more * sizeof(void *));
        if (!bigger)
            return false;
        *list = bigger;
        *capacity = more;
    }
    /* What still lies there was freed without our seeing it, or its free, started later, was quicker. */
    size_t at = make_room(*list, count, a->address, a->bytes);
    memmove(*list + at + 1, *list + at, (*count - at) * sizeof(void *));
    (*list)[at] = a;
    ++*count;
    return true;
}

static void remove_one(struct model_allocation **list, size_t *count, const struct model_allocation *a)
{
    size_t i = first_above(list, *count, a->address);
    if (i < *count && list[i] == a) {
        memmove(list + i, list + i + 1, (*count - i - 1) * sizeof(void *));
        --*count;
    }
}

static void change_region(struct model_live *live, const struct model_change *change)
{
    struct model_allocation *a = change->allocation;
    if (change->freed)
        remove_one(live->regions, &live->region_count, a);
    else if (find(live->live, live->live_count, a->address) == a->parent &&
             !insert(&live->regions, &live->region_count, &live->region_capacity, a))
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
        make_room(live->regions, &live->region_count, a->address, a->bytes);
        if (change->freed) {
            if (find(live->live, live->live_count, a->address) == a &&
                !insert(&live->freed, &live->freed_count, &live->freed_capacity, a))
                live->no_memory = true;
            remove_one(live->live, &live->live_count, a);
        } else {
            make_room(live->freed, &live->freed_count, a->address, a->bytes);
            if (!insert(&live->live, &live->live_count, &live->live_capacity, a))
                live->no_memory = true;
        }
    }
}

void model_live_end(struct model_live *live)
{
    free(live->live);
    free(live->freed);
    free(live->regions);
    *live = (struct model_live){0};
}

struct model_allocation *model_live_find(const struct model_live *live, uint64_t address)
{
    return find(live->live, live->live_count, address);
}

struct model_allocation *model_live_find_region(const struct model_live *live, uint64_t address)
{
    return find(live->regions, live->region_count, address);
}

size_t model_live_regions(const struct model_live *live, const struct model_allocation *a, size_t *first)
{
    size_t last;
    *first = first_above(live->regions, live->region_count, a->address);
    for (last = *first; last < live->region_count && live->regions[last]->address < a->address + a->bytes;)
        last++;
    return last - *first;
}

struct model_allocation *model_live_find_inner(const struct model_live *live, uint64_t address)
{
    struct model_allocation *region = live->region_count ? model_live_find_region(live, address) : NULL;
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
    return find(live->freed, live->freed_count, address);
}
