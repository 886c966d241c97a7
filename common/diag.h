/* diag.h - fills a struct diag. One line each, never longer than its members. */
#ifndef COMMON_DIAG_H
#define COMMON_DIAG_H

#include <opsdebug/status.h>

/* `offset` is a byte offset in `where`, or -1. `diag` may be NULL. Returns `status`, so that an error path is one
 * statement. */
enum status diag_set(struct diag *diag, enum status status, const char *where, long offset, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
