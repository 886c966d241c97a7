/* hints.h - what the run left out, and the option that brings it: whoever finds nothing must know where nobody looked.
 */
#ifndef ANALYZER_HINTS_H
#define ANALYZER_HINTS_H

#include "analyzer/session.h"

/* Calls `take` with each hint, the most important first; the text is valid during the call. */
void hints_each(const struct session *session, void (*take)(void *context, const char *text), void *context);

#endif
