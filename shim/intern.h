/* intern.h - strings, stacks and launch shapes as ids; the defining record is written at first sight, before any use.
 *
 * Equality is that of a 64-bit hash: two contents with one hash would share an id (for a million of them the chance is
 * about one in 10^7). Thread-safe. 0 when nothing could be written.
 */
#ifndef SHIM_INTERN_H
#define SHIM_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include <opsdebug/capture.h>

uint32_t intern_string(const char *text); /* NULL or "": 0 */
uint32_t intern_stack(const uint64_t *frames, uint32_t count);

struct shape { /* of a launch; compared and hashed as it lies here */
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared_bytes;
    uint32_t flags; /* enum cap_config_flags */
};
uint32_t intern_shape(const struct shape *shape);
uint32_t intern_config(const uint32_t grid[3], const uint32_t block[3], uint32_t dynamic_shared_bytes, uint32_t flags);

/* An id for one of the other namespaces, from 1. */
enum intern_space {
    INTERN_CONTEXT,
    INTERN_STREAM,
    INTERN_EVENT,
    INTERN_MODULE,
    INTERN_KERNEL,
    INTERN_ALLOC,
    INTERN_GRAPH,
    INTERN_SPACES
};
uint32_t intern_new_id(enum intern_space space);

#endif
