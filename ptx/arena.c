#include "ptx/arena.h"
#include <stdlib.h>
#include <string.h>

struct arena_chunk {
    struct arena_chunk *next;
    _Alignas(16) char data[];
};

enum { CHUNK_BYTES = 64 * 1024, FIRST_BUCKETS = 256 };

void *arena_alloc(struct arena *a, size_t bytes)
{
    if (bytes > ((size_t)1 << 40))
        return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if ((size_t)(a->end - a->at) < bytes) {
        size_t room = bytes > CHUNK_BYTES / 4 ? bytes : CHUNK_BYTES;
        struct arena_chunk *chunk = calloc(1, sizeof *chunk + room);
        if (!chunk)
            return NULL;
        chunk->next = a->chunks;
        a->chunks = chunk;
        if (room == bytes) /* a large block of its own: go on filling the old chunk */
            return chunk->data;
        a->at = chunk->data;
        a->end = chunk->data + room;
    }
    void *p = a->at;
    a->at += bytes;
    return p;
}

static int grow_buckets(struct arena *a)
{
    uint32_t count = a->bucket_count ? a->bucket_count * 4 : FIRST_BUCKETS;
    const struct name **fresh = calloc(count, sizeof(struct name *));
    if (!fresh)
        return 0;
    for (uint32_t i = 0; i < a->bucket_count; i++) {
        for (const struct name *n = a->buckets[i], *next; n; n = next) {
            next = n->next;
            struct name *mutable_name = (struct name *)n;
            mutable_name->next = fresh[n->hash & (count - 1)];
            fresh[n->hash & (count - 1)] = n;
        }
    }
    free(a->buckets);
    a->buckets = fresh;
    a->bucket_count = count;
    return 1;
}

const struct name *arena_intern(struct arena *a, const char *text, size_t length)
{
    uint32_t hash = 2166136261u; /* FNV-1a: names are short */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    if (a->name_count >= a->bucket_count && !grow_buckets(a))
        return NULL;
    uint32_t slot = hash & (a->bucket_count - 1);
    for (const struct name *n = a->buckets[slot]; n; n = n->next)
        if (n->hash == hash && n->length == length && memcmp(n->text, text, length) == 0)
            return n;
    struct name *n = arena_alloc(a, sizeof *n + length + 1);
    if (!n)
        return NULL;
    memcpy(n->text, text, length);
    n->length = (uint32_t)length;
    n->hash = hash;
    n->id = ++a->name_count;
    n->next = a->buckets[slot];
    a->buckets[slot] = n;
    return n;
}

void arena_free(struct arena *a)
{
    for (struct arena_chunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a->buckets);
    memset(a, 0, sizeof *a);
}
