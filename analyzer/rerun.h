/* rerun.h - one launch of a capture again, for commands that look at values: what its PTX stores, the fp64 shadow
 * beside it, what the device had before and after.
 *
 * A walk goes over the launches in order; at each, any of the rest may be asked.
 */
#ifndef ANALYZER_RERUN_H
#define ANALYZER_RERUN_H

#include "analyzer/shadow_run.h"

struct rerun_walk {
    struct verify verify;
    struct verify_options options;
};
enum status rerun_start(struct rerun_walk *walk, const struct model *model, struct diag *diag);
void rerun_end(struct rerun_walk *walk);
/* Moves forward to the launch; false: no memory. */
bool rerun_at(struct rerun_walk *walk, const struct model_launch *launch);

struct rerun {
    const struct reference_module *module;
    struct shadow_run shadow; /* written, read, host and shadow of each region are as the launch leaves them */
    enum reference_layout layout;
    char reason[32];  /* coverage word; "" when it ran */
    char detail[256]; /* more about the reason */
};
/* The walk stands at the launch. Always followed by rerun_free(). False: see the reason. */
bool rerun_launch(struct rerun_walk *walk, const struct model_launch *launch, struct rerun *out);
void rerun_free(struct rerun *rerun);
/* Index of the allocation's region, or SIZE_MAX: the launch does not reach it, or it did not run. */
size_t rerun_region(const struct rerun *rerun, uint32_t allocation);
/* The type of most of what the launch stored as floating-point to the region; false: nothing. */
bool rerun_stored_type(const struct rerun *rerun, size_t region, enum element_type *out);

/* `count` elements of an allocation side by side, the first one at `offset`. */
struct rerun_stores {
    uint32_t allocation;
    uint64_t offset;
    uint32_t bytes; /* of each */
    size_t count;   /* a few: each is a region of its own */
};
/* Runs once more and tells which access stored each of them first. ptx_line 0: nobody, or it cannot be told. */
void rerun_who_stored(struct rerun_walk *walk, const struct model_launch *launch, const struct rerun *rerun,
                      const struct rerun_stores *stores, struct ptx_access *out);

/* What the device held, from the snapshots. */
struct rerun_contents {
    uint8_t *data;    /* owned, `bytes` long; NULL: no snapshot shows any of it */
    uint8_t *known;   /* owned, one bit per byte; NULL: all of them */
    uint64_t bytes;   /* of the allocation */
    struct diag diag; /* why a snapshot could not be used; text "" when all could */
};
void rerun_contents(struct rerun_walk *walk, const struct model_launch *launch, const struct model_allocation *a,
                    enum cap_snapshot_when when, struct rerun_contents *out);
void rerun_contents_free(struct rerun_contents *contents);
bool rerun_known(const struct rerun_contents *contents, uint64_t offset, uint64_t bytes);

#endif
