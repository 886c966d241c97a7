/* selection.h - which launches a command is about: --kernel, --launch, --launch-skip, --launch-count. */
#ifndef ANALYZER_SELECTION_H
#define ANALYZER_SELECTION_H

#include <regex.h>

#include "analyzer/model.h"
#include "analyzer/options.h"

struct selection {
    bool has_pattern;
    regex_t pattern;
    uint64_t launch, skip, count; /* 0: no limit */
    uint64_t seen;                /* matching launches so far */
};
/* STATUS_BAD_INPUT with *diag filled when the pattern is malformed. */
enum status selection_start(const struct options *options, struct selection *out, struct diag *diag);
void selection_end(struct selection *selection);
/* Does it leave any launch? Also true where nothing was said that could leave one out. */
bool selection_any(const struct selection *selection, const struct model *model);
/* Asked once for every launch, in order. */
bool selection_takes(struct selection *selection, const struct model_launch *launch);

#endif
