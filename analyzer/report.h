/* report.h - a session's findings, times and coverage, as text and as JSON. Both print the same facts. */
#ifndef ANALYZER_REPORT_H
#define ANALYZER_REPORT_H

#include <stdio.h>

#include "analyzer/session.h"

struct report_style {
    bool verbose, color;
    bool brief; /* findings and coverage only, as `verify` prints them */
};
void report_text(FILE *out, struct session *session, struct report_style style);
/* One finding, as all commands print it. */
void report_finding(FILE *out, struct session *session, const struct finding *finding, size_t id,
                    struct report_style style);
struct cJSON *report_finding_json(struct session *session, const struct finding *finding, size_t id);
struct cJSON *report_stack_json(struct session *session, uint32_t stack);
/* The object fixed in docs/json.md (schema 1). False when memory runs out; nothing is printed then. */
bool report_json(FILE *out, struct session *session);

/* "launch 112, scale, model.cu:88: 4 bytes written ...": one line, new string. NULL when memory runs out. */
char *report_headline(const struct session *session, const struct finding *finding);

/* A launch's arguments, decoded (report_launch.c). */
struct report_argument {
    uint32_t offset, size;
    uint64_t value;                            /* the first 8 bytes, zero-extended */
    const struct model_allocation *allocation; /* that it points into, or NULL */
    bool freed;                                /* the allocation was freed before the launch */
};
/* Returns a new array of *count; NULL with *count 0 when the arguments were not recorded or memory runs out. */
struct report_argument *report_arguments(const struct model *model, const struct model_launch *launch, size_t *count);
/* What the value may mean: an allocation and the offset in it, by its name at `seq` when it has one, or a
 * number. Written to `out`. */
void report_argument_text(struct session *session, const struct report_argument *argument, uint64_t seq, char *out,
                          size_t bytes);

#endif
