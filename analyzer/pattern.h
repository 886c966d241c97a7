/* pattern.h - what the re-execution says about how kernels access memory and diverge, by kernel and source line: the
 * evidence behind a kernel that is slow. */
#ifndef ANALYZER_PATTERN_H
#define ANALYZER_PATTERN_H

#include "analyzer/judgement.h"
#include "analyzer/model.h"

struct pattern {
    enum judgement_pattern_kind kind;
    const struct model_kernel *kernel;
    const struct judgement_access *place; /* the judgements' */
    size_t launch, launches;              /* the first one, and how many */
    uint64_t requests, actual, ideal;     /* summed over the launches */
    uint64_t warps, warp_threads;         /* of those launches, all lines */
};
struct patterns {
    struct pattern *items; /* owned; the largest excess first, divergence last */
    size_t count;
};
/* Empty when there are none, or memory runs out. Free with free(patterns.items). */
struct patterns patterns_of(const struct model *model, const struct judgements *judgements);

enum { PATTERN_TEXT = 160 };
/* "sectors per request 32 where 4 are ideal" */
void pattern_text(const struct pattern *pattern, char out[PATTERN_TEXT]);

#endif
