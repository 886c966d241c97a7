/* model_scopes.h - walks over a capture's records in their order and knows which module path each thread is in. */
#ifndef ANALYZER_MODEL_SCOPES_H
#define ANALYZER_MODEL_SCOPES_H

#include "analyzer/capture_thread.h"

struct scopes {
    const struct capture *capture;
    struct capture_threads threads;
    struct map now; /* thread -> path and iteration */
};
struct scope {
    const char *path; /* never NULL, "" outside of all ranges; lives as long as the capture */
    uint32_t iteration;
};

bool scopes_start(struct scopes *scopes, const struct capture *capture); /* false: no memory */
void scopes_end(struct scopes *scopes);
bool scopes_range(struct scopes *scopes, const struct cap_range *range); /* each one in turn; false: no memory */
struct scope scopes_of(struct scopes *scopes, const struct cap_head *record);
/* The Linux thread that wrote a record. */
uint32_t scopes_thread(struct scopes *scopes, const struct cap_head *record);

#endif
