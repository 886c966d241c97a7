/* line_counts.h - what launches do, added up by line of the program's own source: struct ptx_profile for people. */
#ifndef ANALYZER_LINE_COUNTS_H
#define ANALYZER_LINE_COUNTS_H

#include "analyzer/verify.h"

struct line_counts {
    struct judgement_access place; /* owned strings; of its costliest PTX instruction */
    uint64_t place_cost;
    uint64_t threads, guarded_off, flops, warps, warp_threads, branches, divergent;
    struct ptx_access_counts access[5]; /* by enum ptx_space */
};

/* Of one launch, or of several of one kernel together. */
struct counted {
    struct line_counts *lines; /* owned */
    size_t count, capacity;
    size_t launches;
    struct ptx_profile total; /* its sums; `instructions` is NULL */
    bool no_memory;
};
/* Adds a launch's profile; zero-initialised is empty. Lines without a source line go by their PTX line. */
void counted_add(struct counted *counted, const struct reference_module *module, const struct ptx_profile *profile);
/* Costliest first. */
void counted_sort(struct counted *counted);
void counted_free(struct counted *counted);

/* What a line costs, for the order only: instructions issued, passes of shared memory, sectors moved. Instructions that
 * ran outside of warps count as if their warps had been full. */
uint64_t line_cost(const struct line_counts *line);
/* Global and local memory: both go through the same sectors. */
uint64_t line_requests(const struct line_counts *line);
uint64_t line_sectors(const struct line_counts *line);
uint64_t line_ideal_sectors(const struct line_counts *line);

#endif
