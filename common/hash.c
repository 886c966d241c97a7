#include "common/hash.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct hash128 hash_bytes(const void *data, size_t bytes)
{
    XXH128_hash_t h = XXH3_128bits(data, bytes);
    return (struct hash128){h.low64, h.high64};
}

uint64_t hash_bytes64(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}

void hash_text(struct hash128 h, char out[HASH_TEXT_BYTES])
{
    snprintf(out, HASH_TEXT_BYTES, "%016llx%016llx", (unsigned long long)h.high, (unsigned long long)h.low);
}

bool hash_parse(const char *text, struct hash128 *out)
{
    uint64_t half[2] = {0, 0};
    for (int i = 0; i < 32; i++) {
        char c = text[i];
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (unsigned)(c - 'a') + 10;
        else
            return false;
        half[i / 16] = half[i / 16] << 4 | digit;
    }
    *out = (struct hash128){half[1], half[0]};
    return true;
}
