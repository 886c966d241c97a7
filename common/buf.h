/* buf.h - a growable byte buffer and text builder. Not thread-safe; zero-initialised is empty and valid.
 *
 * After a failed allocation `failed` is set and all further calls do nothing, so that a builder can check once at its
 * end.
 */
#ifndef COMMON_BUF_H
#define COMMON_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data; /* owned; NUL-terminated behind `size` whenever it is not NULL */
    size_t size, capacity;
    bool failed;
};

bool buf_reserve(struct buf *b, size_t more); /* room for `more` further bytes and a NUL */
void buf_append(struct buf *b, const void *data, size_t bytes);
void buf_text(struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_free(struct buf *b); /* leaves it empty and valid */

#endif
