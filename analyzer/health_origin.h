/* health_origin.h - where the bad values of one launch came from: made in it, or carried in. Used by health.c only. */
#ifndef ANALYZER_HEALTH_ORIGIN_H
#define ANALYZER_HEALTH_ORIGIN_H

#include "analyzer/health.h"

struct health_type { /* what a kernel stores through the pointer at an offset of its parameters */
    uint32_t kernel, offset;
    enum element_type type; /* ELEMENT_TYPES: no floats */
};
struct health_scan {
    const struct model *model;
    const struct judgements *judgements;
    struct health *out;
    struct rerun_walk walk;
    struct health_type *types; /* owned */
    size_t type_count;
    enum element_type *allocation_types; /* owned; by index; ELEMENT_TYPES: not seen yet */
};

bool health_is_bad(const struct health_scan *scan, double value);
/* Fills the origin of out->launches[index]; the walk stands there. */
void health_find_origin(struct health_scan *scan, size_t index);

#endif
