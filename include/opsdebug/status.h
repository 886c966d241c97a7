/* status.h - the one error type of the libraries.
 *
 * A function that can fail returns enum status; STATUS_OK is 0. Details for a person (what, where, what was expected)
 * travel beside it in a struct diag that the caller owns. Libraries never print and never exit; the tools do.
 */
#ifndef OPSDEBUG_STATUS_H
#define OPSDEBUG_STATUS_H

enum status {
    STATUS_OK = 0,
    STATUS_NO_MEMORY,     /* malloc, mmap or a limit of ours */
    STATUS_IO,            /* the system refused: open, read, write */
    STATUS_BAD_INPUT,     /* malformed file or text; diag names the place */
    STATUS_NOT_FOUND,     /* a name or id that is not there */
    STATUS_NOT_SUPPORTED, /* well formed, but not implemented here; diag names it */
    STATUS_LIMIT,         /* a limit given by the caller was reached (instructions, time, bytes) */
    STATUS_CANCELLED,     /* the caller asked to stop */
    STATUS_FAULT,         /* the executed kernel did something illegal */
};

/* A message with its place. `line` and `column` count from 1 and are 0 where they mean nothing; `offset` is a byte
 * offset in the input, or -1. `text` is one line without a newline; a caret excerpt, where there is one, is in
 * `excerpt` (may contain newlines). All members are always NUL-terminated. */
struct diag {
    char where[256]; /* file or object the message is about */
    char text[512];
    char excerpt[512];
    long offset;
    unsigned line, column;
};

#endif
