/* health_seen.h - NaN, Inf and large values that the shim's own look found behind launches while the program ran
 * (CAP_HEALTH).
 *
 * Kept apart from findings: such values may be meant, and only fp32 was looked at, mostly by samples. Where they were
 * born needs snapshots; that is `trace`'s and `verify`'s to say.
 */
#ifndef ANALYZER_HEALTH_SEEN_H
#define ANALYZER_HEALTH_SEEN_H

#include <stdio.h>

#include <cjson/cJSON.h>

#include "analyzer/session.h"

struct health_seen {
    const struct cap_health *record;
    const struct model_launch *launch;
    size_t times; /* launches of the same kernel, this one the first, that left such values in the same allocation */
};

/* In the order of the first launches; those that may only have passed values on are left out, and counted in *passed.
 * Free with free(); NULL: none, or no memory. */
struct health_seen *health_seen_list(const struct model *model, size_t *count, size_t *passed);
/* "launch 4, scale: 3 of 2048 words looked at of allocation 7 (allocated at a.cu:3) are NaN, ..." */
void health_seen_text(struct session *session, const struct health_seen *seen, char *out, size_t bytes);
/* Lines under `title`, ten columns wide; the first few, or all. Nothing when there is nothing. */
void health_seen_print(FILE *out, struct session *session, const char *title, bool all);
void health_seen_json(cJSON *to, const char *name, const struct session *session);

#endif
