/* bound.h - the least time that a launch can take on its device: the bytes that it has to move over the memory's peak
 * bandwidth, or its operations over their peak rate, whichever is longer.
 *
 * Bytes are those that the re-execution read and wrote, each once; of launches that were not re-executed, the sizes of
 * the allocations that their arguments point into. Operations are counted by the re-execution only, and only those of
 * single precision have a peak here (devices.def): others can make a launch slower than its bound, never faster.
 */
#ifndef ANALYZER_BOUND_H
#define ANALYZER_BOUND_H

#include "analyzer/judgement.h"
#include "analyzer/model.h"

enum bound_by { BOUND_UNKNOWN, BOUND_MEMORY, BOUND_COMPUTE };
struct bound {
    enum bound_by by;
    uint64_t ns; /* 0 when unknown */
    uint64_t bytes;
    bool counted;        /* bytes come from the re-execution */
    uint64_t operations; /* of single precision; 0: none, or not counted */
};

const char *bound_name(enum bound_by by);
/* Peak bytes per second of the capture's device, from devices.def, else from its memory clock and bus width; 0:
 * unknown. */
double bound_bandwidth(const struct model *model);
/* Peak operations of single precision per second, fma two, without tensor cores; 0: unknown. */
double bound_operation_rate(const struct model *model);

/* Walks over the launches, in their order. */
struct bound_walk {
    const struct model *model;
    const struct judgements *judgements;
    struct model_live live;
    double bandwidth, rate;
};
void bound_walk_start(struct bound_walk *walk, const struct model *model, const struct judgements *judgements);
struct bound bound_walk_next(struct bound_walk *walk, const struct model_launch *launch);
void bound_walk_end(struct bound_walk *walk);

#endif
