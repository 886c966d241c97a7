/* reader.h - what the stages of the reader share: the text, the arena, and the way out on an error.
 *
 * Stages: token.c (text to tokens) -> parse.c (to the syntax tree of ast.h) -> resolve.c (names to symbols, layout) ->
 * lower*.c (to the decoded code of code.h). A stage that finds an error calls reader_fail(), which fills the diag and
 * jumps back to ptx_module_load(); nothing needs unwinding because everything lives in the arena.
 */
#ifndef PTX_READER_H
#define PTX_READER_H

#include <setjmp.h>
#include <opsdebug/status.h>
#include "ptx/arena.h"

struct place {
    uint32_t line, column; /* from 1; 0 where unknown */
};

struct reader {
    struct arena *arena;
    struct diag *diag;
    const char *name; /* of the file, for messages */
    const char *text; /* NUL-terminated copy in the arena */
    size_t bytes;
    enum status status;
    jmp_buf *fail;
    /* Where the last excerpt's line starts: many in one text cost one walk through it. */
    const char *excerpt_at;
    uint32_t excerpt_line;
};

/* Never returns: fills the diag (place, message, the line with a caret under the column) and jumps to *r->fail. */
__attribute__((noreturn)) void reader_fail(struct reader *r, enum status status, struct place at, const char *format,
                                           ...) __attribute__((format(printf, 4, 5)));
void *reader_alloc(struct reader *r, size_t count, size_t size); /* zeroed, never NULL: fails with STATUS_NO_MEMORY */
const struct name *reader_intern(struct reader *r, const char *text, size_t length); /* never NULL */

/* A growing array in the arena: returns the address of a new zeroed last element. `*items` may move. */
void *reader_push(struct reader *r, void **items, uint32_t *count, uint32_t *capacity, size_t size);

#endif
