/* budget.h - what a budget of the tool's own time made it leave out, and what it left out to stay within its memory and
 * disk: for coverage. */
#ifndef ANALYZER_BUDGET_H
#define ANALYZER_BUDGET_H

#include <stdio.h>

#include "analyzer/capture_read.h"

/* Lines of the report's coverage; nothing when all was done. */
void budget_print(FILE *out, const struct capture *capture);
struct cJSON;
/* "budget": { "share", "own_share", "parts": { NAME: { "done", "left_out", "highest", "own_ns" } } }, null without a
 * budget. */
void budget_json(struct cJSON *to, const struct capture *capture);

#endif
