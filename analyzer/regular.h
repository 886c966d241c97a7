/* regular.h - files of a capture are opened here: whoever made it may have put a FIFO, a device or a terminal in place
 * of one, and opening must neither wait for anybody nor take anything over. */
#ifndef ANALYZER_REGULAR_H
#define ANALYZER_REGULAR_H

#include <stddef.h>
#include <sys/stat.h>

#include "common/diag.h"

/* Opens `name` in the folder `folder` (AT_FDCWD: a path) for reading and fills *st. Below 0 with *diag:
 * STATUS_NOT_FOUND, STATUS_IO, or STATUS_BAD_INPUT when it is no regular file. `where` is for messages. */
enum status regular_open(int folder, const char *name, const char *where, int *fd, struct stat *st, struct diag *diag);
/* The whole file at `path` with a 0 byte behind it, to be freed by the caller; at most `limit` bytes. */
enum status regular_read(const char *path, size_t limit, char **out, size_t *bytes, struct diag *diag);

#endif
