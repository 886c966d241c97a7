/* graph_contents.h - what memory holds while the nodes of a graph are run again one after the other: from the snapshots
 * before the launch, through every node's stores, to what is compared with the snapshots after it.
 */
#ifndef ANALYZER_GRAPH_CONTENTS_H
#define ANALYZER_GRAPH_CONTENTS_H

#include "analyzer/blob_cache.h"
#include "analyzer/verify_memory.h"

struct graph_buffer {
    const struct model_allocation *allocation;
    uint8_t *host;    /* owned; the contents */
    uint8_t *known;   /* owned; one bit per byte: the contents are what the device had */
    uint8_t *written; /* owned; likewise: some node stored to it */
    uint32_t *writer; /* owned; per 4 bytes: 1 + index of the node that stored there last; NULL: none did */
};
struct graph_contents {
    struct graph_buffer *buffers; /* owned */
    size_t count;
    struct map index; /* allocation id -> index */
    uint64_t total;   /* bytes of all of them */
    uint64_t limit;   /* for `total` */
    bool no_memory;
};

/* `limit`: bytes of all buffers together; 0: 16 GiB. STATUS_BAD_INPUT when a blob is missing or damaged; release *out
 * in any case. */
enum status graph_contents_start(struct graph_contents *out, const struct model *model,
                                 const struct model_launch *launch, struct blob_cache *blobs, uint64_t limit,
                                 struct diag *diag);
void graph_contents_end(struct graph_contents *contents);
/* Made empty, with nothing known, when it is not there. NULL: no memory. */
struct graph_buffer *graph_contents_of(struct graph_contents *contents, const struct model_allocation *a);
const struct graph_buffer *graph_contents_find(const struct graph_contents *contents, uint32_t allocation);
/* Puts the contents of one allocation into a region that a launch is to be run with. False: no memory. */
bool graph_contents_fill(const struct graph_contents *contents, struct verify_region *info,
                         struct reference_region *region);

/* What node `node` (its index) stored. */
void graph_contents_store(struct graph_contents *contents, uint32_t node, const struct verify_memory *memory);
void graph_contents_write(struct graph_buffer *buffer, uint32_t node, uint64_t offset, const uint8_t *bytes,
                          uint64_t count);
/* From now on nobody knows what is there; what was stored there before is not compared either. */
void graph_contents_forget(struct graph_buffer *buffer, uint64_t offset, uint64_t count);
bool graph_contents_known(const struct graph_buffer *buffer, uint64_t offset, uint64_t count);
/* As memory that a launch has left, for comparing. It borrows from `contents`: free only regions and info. */
bool graph_contents_as_memory(const struct graph_contents *contents, struct verify_memory *out);

#endif
