#include "analyzer/blob_cache.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/diag.h"

void blob_cache_start(struct blob_cache *cache, const struct capture *capture, uint64_t budget)
{
    *cache = (struct blob_cache){.capture = capture, .budget = budget};
}

void blob_cache_end(struct blob_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        free(cache->entries[i].data);
    free(cache->entries);
    map_free(&cache->index);
    cache->entries = NULL;
    cache->count = 0;
    cache->held = 0;
}

const uint8_t *blob_cache_get(struct blob_cache *cache, struct hash128 hash, uint64_t bytes, struct diag *diag)
{
    uint64_t at;
    if (map_get(&cache->index, hash.low, &at) && hash_equal(cache->entries[at].hash, hash) &&
        cache->entries[at].bytes == bytes)
        return cache->entries[at].data;
    uint8_t *data;
    size_t got;
    if (capture_blob(cache->capture, hash, bytes, &data, &got, diag))
        return NULL;
    if (got != bytes) {
        free(data);
        diag_set(diag, STATUS_BAD_INPUT, cache->capture->path, -1, "a blob of %zu bytes; its record says %" PRIu64, got,
                 bytes);
        return NULL;
    }
    /* Launches come in order and need what their neighbours needed: starting over when full is as good as choosing. */
    if (cache->held + bytes > cache->budget)
        blob_cache_end(cache);
    struct blob_entry *more = realloc(cache->entries, (cache->count + 1) * sizeof *more);
    if (more)
        cache->entries = more;
    if (!more || !map_put(&cache->index, hash.low, cache->count)) {
        free(data);
        diag_set(diag, STATUS_NO_MEMORY, cache->capture->path, -1, "no memory");
        return NULL;
    }
    cache->entries[cache->count++] = (struct blob_entry){hash, data, got};
    cache->held += got;
    return data;
}
