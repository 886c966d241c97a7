/* map.h - a hash map from 64-bit keys to 64-bit values (open addressing, linear probing, backward-shift deletion).
 *
 * For handles, addresses and ids. Not thread-safe; zero-initialised is empty and valid. Any key is allowed, 0 included.
 */
#ifndef COMMON_MAP_H
#define COMMON_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
    uint64_t key, value;
    bool used;
};
struct map {
    struct map_slot *slots; /* owned */
    size_t capacity, count; /* capacity is a power of two or 0 */
};

bool map_put(struct map *m, uint64_t key, uint64_t value); /* replaces; false when memory runs out */
bool map_get(const struct map *m, uint64_t key, uint64_t *value);
bool map_remove(struct map *m, uint64_t key); /* false when it was not there */
void map_free(struct map *m);

#endif
