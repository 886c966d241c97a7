/* report_operators.h - library calls in lists, reports and JSON. */
#ifndef ANALYZER_REPORT_OPERATORS_H
#define ANALYZER_REPORT_OPERATORS_H

#include <stdio.h>

#include "analyzer/report.h"

struct cJSON;

/* The calls added up by function, shape and module: nothing is printed when there are none. */
void report_operators_text(FILE *out, const struct session *session, struct report_style style);
/* One line of coverage. */
void report_operators_coverage(FILE *out, const struct session *session);
/* The same as members of `root`: "operators", and "operators" of `coverage`. */
void report_operators_json(struct cJSON *root, struct cJSON *coverage, const struct session *session);

/* One call with everything that is known of it. */
struct cJSON *report_operator_json(const struct session *session, const struct model_operator *op);
/* The page that `show` prints. */
void report_operator_text(FILE *out, struct session *session, const struct model_operator *op);

#endif
