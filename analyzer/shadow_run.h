/* shadow_run.h - a launch run with an fp64 shadow beside every float, and what it stored. */
#ifndef ANALYZER_SHADOW_RUN_H
#define ANALYZER_SHADOW_RUN_H

#include "analyzer/element.h"
#include "analyzer/verify.h"

struct shadow_run {
    struct verify_memory memory; /* as the run leaves it */
    struct reference_result result;
};
/* `like` tells module, layout and order. Returns the coverage word of what failed, or NULL. Always followed by
 * shadow_run_end(). `perturbation` as in struct ptx_launch. */
const char *shadow_run_make(struct verify *v, const struct model_launch *launch, const struct reference_launch *like,
                            uint64_t perturbation, struct shadow_run *out);
void shadow_run_end(struct shadow_run *run);

struct shadow_element {
    const struct ptx_shadow_value *shadow;
    enum element_type type;
    uint64_t offset;
    double value, error; /* error: what it is off by, with all digits of the shadow */
};
/* The next floating-point element at or behind *cursor that the launch stored to the region; false: there is none.
 * Only for regions with shadows. */
bool shadow_next_element(const struct reference_region *region, uint64_t *cursor, struct shadow_element *out);

#endif
