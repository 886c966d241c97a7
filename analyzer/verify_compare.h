/* verify_compare.h - the memory that the reference path leaves, against the snapshots after the launch. */
#ifndef ANALYZER_VERIFY_COMPARE_H
#define ANALYZER_VERIFY_COMPARE_H

#include "analyzer/verify_memory.h"

/* A 4-byte word, aligned in its allocation, that differs. */
struct compare_word {
    size_t region;
    uint64_t offset;
    uint32_t device, expected, before;
    bool stored; /* the kernel stored to at least one of its bytes */
};
enum { COMPARE_WORDS = 1 << 20 };
struct comparison {
    struct compare_word *words; /* owned; the first COMPARE_WORDS of them, by region and offset */
    size_t count;
    uint64_t differing, compared; /* words, all of them; those that were stored to */
    bool incomplete;              /* something was stored that no snapshot shows */
};

/* `memory` is as the run left it. STATUS_BAD_INPUT with *diag when a blob is missing or damaged. */
enum status compare_run(const struct model *model, const struct model_launch *launch,
                        const struct verify_memory *memory, struct blob_cache *blobs, struct comparison *out,
                        struct diag *diag);
void comparison_free(struct comparison *comparison);

#endif
