/* blob_cache.h - contents of a capture's blobs, kept while they are likely to be needed again: an unchanged buffer has
 * one blob for many launches. Not thread-safe. */
#ifndef ANALYZER_BLOB_CACHE_H
#define ANALYZER_BLOB_CACHE_H

#include "analyzer/capture_read.h"

struct blob_entry {
    struct hash128 hash;
    uint8_t *data; /* owned */
    size_t bytes;
};
struct blob_cache {
    const struct capture *capture;
    uint64_t budget, held; /* bytes */
    struct blob_entry *entries;
    size_t count;
    struct map index; /* low half of the hash -> entry; two that collide are loaded again and again, correctly */
};

void blob_cache_start(struct blob_cache *cache, const struct capture *capture, uint64_t budget);
void blob_cache_end(struct blob_cache *cache);
/* The contents of `hash`, which must be `bytes` long; borrowed until the next call. NULL with *diag when there are
 * none. */
const uint8_t *blob_cache_get(struct blob_cache *cache, struct hash128 hash, uint64_t bytes, struct diag *diag);

#endif
