/* verify_memory.h - the memory of a launch as its snapshots give it, in the form the reference path wants. */
#ifndef ANALYZER_VERIFY_MEMORY_H
#define ANALYZER_VERIFY_MEMORY_H

#include "analyzer/blob_cache.h"
#include "analyzer/valid_bytes.h"
#include "reference/reference.h"

struct verify_region {
    const struct model_allocation *allocation;
    bool reached; /* an argument or a variable of the kernel's module leads here */
    bool freed;
    bool known_all; /* the snapshots give all of the contents */
    uint8_t *known; /* owned; one bit per byte; NULL: all alike, see known_all */
};
struct verify_memory {
    struct reference_region *regions; /* host, written, read, shadow, tainted owned; ids are indices */
    struct verify_region *info;       /* by the same index */
    size_t count;
    struct reference_pointer *pointers;
    size_t pointer_count;
    struct reference_variable *variables;
    size_t variable_count;
    struct verify_gap *gaps; /* owned; what lies between the regions of allocations, when everything is taken */
};

/* With `everything`, all allocations alive at the launch; else those that its arguments and its module's variables
 * reach. `live` stands at the launch. STATUS_LIMIT: more than `limit` bytes (0: 64 GiB); STATUS_NO_MEMORY, or
 * STATUS_BAD_INPUT with *diag when a blob is missing or damaged. */
enum status verify_memory_make(struct verify_memory *memory, const struct model_launch *launch,
                               const struct model_live *live, struct valid_bytes *valid, struct blob_cache *blobs,
                               bool everything, uint64_t limit, struct diag *diag);
void verify_memory_free(struct verify_memory *memory);
/* Did the run read a byte whose contents are not known? */
bool verify_memory_read_unknown(const struct verify_memory *memory);
/* Distinct bytes that the run read before it wrote them, and that it wrote. */
void verify_memory_moved(const struct verify_memory *memory, uint64_t *read, uint64_t *written);
/* Does an argument lead into an allocation that holds regions, but into none of them? Where its buffer ends nobody has
 * said. */
bool verify_memory_between(const struct model_launch *launch, const struct model_live *live);
/* How many live allocations do the launch's arguments reach? How many snapshots tell contents? */
void verify_memory_survey(const struct model_launch *launch, const struct model_live *live, size_t *reached,
                          size_t *with_contents);

static inline bool bit_get(const uint8_t *bits, uint64_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

#endif
