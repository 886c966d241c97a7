#include "shim/memory.h"

#include <stdio.h>

static uint64_t limit;
static void (*over)(const char *reason);
static uint64_t now, peak, refused; /* atomic */
static bool beyond;                 /* atomic: the limit was exceeded by what must be */

void memory_start(uint64_t bytes, void (*when_over)(const char *reason))
{
    limit = bytes;
    over = when_over;
}

static uint64_t count(size_t bytes)
{
    uint64_t sum = __atomic_add_fetch(&now, bytes, __ATOMIC_RELAXED),
             highest = __atomic_load_n(&peak, __ATOMIC_RELAXED);
    while (sum > highest &&
           !__atomic_compare_exchange_n(&peak, &highest, sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return sum;
}

bool memory_may(size_t bytes)
{
    uint64_t sum = __atomic_load_n(&now, __ATOMIC_RELAXED);
    if (limit && (bytes > limit || sum + bytes > limit - limit / 4)) {
        __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
        return false;
    }
    count(bytes);
    return true;
}

bool memory_must(size_t bytes)
{
    uint64_t sum = count(bytes);
    if (limit && sum > limit && !__atomic_exchange_n(&beyond, true, __ATOMIC_RELAXED) && over) {
        char reason[160];
        snprintf(reason, sizeof reason,
                 "its tables need more than MAX_MEMORY (%llu bytes): very many allocations, streams, kernels or graphs",
                 (unsigned long long)limit);
        over(reason);
    }
    return !__atomic_load_n(&beyond, __ATOMIC_RELAXED);
}

void memory_give(size_t bytes)
{
    __atomic_fetch_sub(&now, bytes, __ATOMIC_RELAXED);
}

bool memory_roomy(size_t bytes)
{
    return !limit || __atomic_load_n(&now, __ATOMIC_RELAXED) + bytes <= limit / 2;
}

/* As map.c grows: doubled when three quarters are used. */
static size_t growth(const struct map *map)
{
    if ((map->count + 1) * 4 <= map->capacity * 3)
        return 0;
    return (map->capacity ? map->capacity : 16) * sizeof *map->slots;
}

bool memory_map_put(struct map *map, uint64_t key, uint64_t value, bool must)
{
    size_t bytes = growth(map);
    if (must)
        memory_must(bytes);
    else if (bytes && !memory_may(bytes))
        return false;
    if (map_put(map, key, value))
        return true;
    memory_give(bytes);
    return false;
}

void memory_tell(struct cap_header *header)
{
    __atomic_store_n(&header->memory_limit, limit, __ATOMIC_RELAXED);
    __atomic_store_n(&header->memory_peak, __atomic_load_n(&peak, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    __atomic_store_n(&header->memory_refused, __atomic_load_n(&refused, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}
