#include "common/map.h"

#include <stdlib.h>

static size_t map_home(const struct map *m, uint64_t key)
{
    /* The finaliser of MurmurHash3: handles and addresses differ in few, aligned bits. */
    key ^= key >> 33;
    key *= UINT64_C(0xff51afd7ed558ccd);
    key ^= key >> 33;
    key *= UINT64_C(0xc4ceb9fe1a85ec53);
    key ^= key >> 33;
    return (size_t)key & (m->capacity - 1);
}

/* The slot of `key`, or the free slot where it would go. The map is never full. */
static size_t map_find(const struct map *m, uint64_t key)
{
    size_t i = map_home(m, key);
    while (m->slots[i].used && m->slots[i].key != key)
        i = (i + 1) & (m->capacity - 1);
    return i;
}

static bool map_grow(struct map *m)
{
    struct map bigger = {.capacity = m->capacity ? m->capacity * 2 : 16, .count = m->count};
    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (!bigger.slots)
        return false;
    for (size_t i = 0; i < m->capacity; i++)
        if (m->slots[i].used)
            bigger.slots[map_find(&bigger, m->slots[i].key)] = m->slots[i];
    free(m->slots);
    *m = bigger;
    return true;
}

bool map_put(struct map *m, uint64_t key, uint64_t value)
{
    if ((m->count + 1) * 4 > m->capacity * 3 && !map_grow(m))
        return false;
    size_t i = map_find(m, key);
    if (!m->slots[i].used)
        m->count++;
    m->slots[i] = (struct map_slot){key, value, true};
    return true;
}

bool map_get(const struct map *m, uint64_t key, uint64_t *value)
{
    if (!m->capacity)
        return false;
    size_t i = map_find(m, key);
    if (!m->slots[i].used)
        return false;
    *value = m->slots[i].value;
    return true;
}

bool map_remove(struct map *m, uint64_t key)
{
    if (!m->capacity)
        return false;
    size_t hole = map_find(m, key);
    if (!m->slots[hole].used)
        return false;
    /* Close the hole: move back every later entry of the run whose home does not lie behind the hole. */
    for (size_t i = (hole + 1) & (m->capacity - 1); m->slots[i].used; i = (i + 1) & (m->capacity - 1)) {
        size_t home = map_home(m, m->slots[i].key);
        if (((i - home) & (m->capacity - 1)) >= ((i - hole) & (m->capacity - 1))) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].used = false;
    m->count--;
    return true;
}

void map_free(struct map *m)
{
    free(m->slots);
    *m = (struct map){0};
}
