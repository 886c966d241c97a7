/* arena.h - memory that is released all at once, and interned names. Not thread-safe.
 *
 * A module owns one arena: everything the reader builds lives in it, so that an error half-way needs no unwinding.
 */
#ifndef PTX_ARENA_H
#define PTX_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;
struct name {
    uint32_t id, length; /* ids count from 1; equal text has the same struct name */
    uint32_t hash;
    const struct name *next;
    char text[]; /* NUL-terminated */
};
struct arena {
    struct arena_chunk *chunks;
    char *at, *end;
    const struct name **buckets;
    uint32_t bucket_count, name_count;
};

/* Zeroed, 16-byte aligned; NULL when memory runs out or `bytes` is absurd. */
void *arena_alloc(struct arena *a, size_t bytes);
const struct name *arena_intern(struct arena *a, const char *text, size_t length); /* NULL when memory runs out */
void arena_free(struct arena *a);

#endif
