/* hash.h - content hashes (XXH3, 128 bits, seed 0; canonical big-endian text of 32 hexadecimal digits). Thread-safe. */
#ifndef COMMON_HASH_H
#define COMMON_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash128 {
    uint64_t low, high;
};

struct hash128 hash_bytes(const void *data, size_t bytes);
uint64_t hash_bytes64(const void *data, size_t bytes);

enum { HASH_TEXT_BYTES = 33 };
void hash_text(struct hash128 h, char out[HASH_TEXT_BYTES]);
/* `text` must be 32 hexadecimal digits, possibly followed by anything; false otherwise. */
bool hash_parse(const char *text, struct hash128 *out);

static inline bool hash_equal(struct hash128 a, struct hash128 b)
{
    return a.low == b.low && a.high == b.high;
}

#endif
