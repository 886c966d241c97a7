/* coverage.h - how many launches were judged, and why the others were not. */
#ifndef ANALYZER_COVERAGE_H
#define ANALYZER_COVERAGE_H

#include "analyzer/judgement.h"
#include "analyzer/model.h"

enum { COVERAGE_REASONS = 32 };
struct coverage {
    size_t launches, checked;
    struct {
        const char *reason; /* borrowed from the judgements, or static */
        size_t count;
        const struct judgement *example; /* the first of them; NULL: it was not looked at */
    } not [COVERAGE_REASONS];            /* most frequent first; a 33rd reason is added to the last one */
    size_t reasons;
};

struct coverage coverage_of(const struct model *model, const struct judgements *judgements);

#endif
