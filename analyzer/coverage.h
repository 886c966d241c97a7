/* coverage.h - how many launches were judged, and why the others were not. */
#ifndef ANALYZER_COVERAGE_H
#define ANALYZER_COVERAGE_H

#include "analyzer/judgement.h"
#include "analyzer/model.h"

enum { COVERAGE_REASONS = 32 };
struct coverage_count {
    const char *reason; /* borrowed from the judgements, or static */
    size_t count;
    const struct judgement *example; /* the first of them; NULL: it was not looked at */
};
struct coverage_verdict {
    size_t checked;
    struct coverage_count not [COVERAGE_REASONS]; /* most frequent first; a 33rd reason is added to the last one */
    size_t reasons;
};
struct coverage {
    size_t launches;
    struct coverage_verdict as_written, operator; /* operator: by the kernel's own shadow, the one strategy so far */
};

/* What stands around the program's allocations; module variables are not counted. */
struct coverage_memory {
    size_t allocations, redzones, guarded;
    size_t mapped, imported, registered, other; /* with neither, by why */
};

struct coverage_memory coverage_memory_of(const struct model *model);
/* "7 of 9 allocations have redzones, 2 guard pages; no redzones: 2 mapped by the program (cuMemMap)"; empty without
 * allocations. */
void coverage_memory_text(const struct coverage_memory *memory, char *out, size_t bytes);
struct coverage coverage_of(const struct model *model, const struct judgements *judgements);

#endif
