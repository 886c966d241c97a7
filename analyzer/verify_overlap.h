/* verify_overlap.h - launches that other threads disturbed: while one thread's launch and its snapshots went into a
 * stream, another thread put work into the same stream. Then the snapshots need not be what was there just before and
 * after. */
#ifndef ANALYZER_VERIFY_OVERLAP_H
#define ANALYZER_VERIFY_OVERLAP_H

#include "analyzer/model.h"

struct overlap_chunk { /* of neighbouring records: from the first one's stamp to the last end */
    uint64_t start, end;
};
struct overlap {
    const struct model *model;
    uint32_t *threads;            /* owned; by record index; NULL: the program used CUDA in one thread only */
    uint64_t *ends;               /* owned; by record index: TSC when the call had certainly done what it did */
    struct overlap_chunk *chunks; /* owned; by record index / CHUNK */
};

/* False: no memory. Always followed by overlap_end(). */
bool overlap_start(struct overlap *overlap, const struct model *model);
void overlap_end(struct overlap *overlap);
bool overlap_found(const struct overlap *overlap, const struct model_launch *launch);

#endif
