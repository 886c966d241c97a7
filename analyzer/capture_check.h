/* capture_check.h - is a record possible? Used by capture_read.c only. */
#ifndef ANALYZER_CAPTURE_CHECK_H
#define ANALYZER_CAPTURE_CHECK_H

#include "analyzer/capture_read.h"

enum { CAPTURE_CHECK_TEXT = 200 };

/* Looks at the record alone: `record->size` bytes are readable, a multiple of 8 and at least a cap_head. False with the
 * reason in `why` (CAPTURE_CHECK_TEXT bytes). Unknown types are possible. */
bool capture_check_shape(const struct cap_head *record, char *why);
/* Looks at what it refers to; all definitions are indexed by now. */
bool capture_check_references(const struct capture *capture, const struct cap_head *record, char *why);
/* The id that a record defines, or 0: it defines none. */
uint32_t capture_check_defines(const struct cap_head *record);

/* The parts of the first two that are about docs/scopes.md. */
bool capture_check_scope_shape(const struct cap_head *record, char *why);
bool capture_check_scope_references(const struct capture *capture, const struct cap_head *record, char *why);

#endif
