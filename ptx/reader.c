#include "ptx/reader.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { EXCERPT_COLUMNS = 160 };

/* The source line with a caret below the column; tabs are kept in both so that the caret lines up. */
static void write_excerpt(struct reader *r, struct place at)
{
    const char *line = r->text, *end = r->text + r->bytes;
    uint32_t first = 1;
    if (r->excerpt_line && r->excerpt_line <= at.line) {
        line = r->excerpt_at;
        first = r->excerpt_line;
    }
    for (uint32_t n = first; n < at.line && line < end; n++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline)
            return;
        line = newline + 1;
    }
    r->excerpt_at = line;
    r->excerpt_line = at.line;
    size_t length = strcspn(line, "\r\n");
    size_t start = 0;
    if (at.column > EXCERPT_COLUMNS - 20)
        start = at.column - (EXCERPT_COLUMNS - 20);
    if (start > length)
        return;
    size_t shown = length - start < EXCERPT_COLUMNS ? length - start : EXCERPT_COLUMNS;
    char *out = r->diag->excerpt;
    memcpy(out, line + start, shown);
    for (size_t i = 0; i < shown; i++)
        if ((unsigned char)out[i] < ' ' && out[i] != '\t')
            out[i] = '?';
    out += shown;
    *out++ = '\n';
    for (size_t i = start; i + 1 < at.column && i < start + shown; i++)
        *out++ = line[i] == '\t' ? '\t' : ' ';
    *out++ = '^';
    *out = 0;
}

__attribute__((noreturn)) void reader_fail(struct reader *r, enum status status, struct place at, const char *format,
                                           ...)
{
    struct diag *d = r->diag;
    memset(d, 0, sizeof *d);
    snprintf(d->where, sizeof d->where, "%s", r->name);
    va_list args;
    va_start(args, format);
    vsnprintf(d->text, sizeof d->text, format, args);
    va_end(args);
    d->line = at.line;
    d->column = at.column;
    d->offset = -1;
    if (at.line)
        write_excerpt(r, at);
    r->status = status;
    longjmp(*r->fail, 1);
}

void *reader_alloc(struct reader *r, size_t count, size_t size)
{
    size_t bytes;
    void *p = NULL;
    if (!__builtin_mul_overflow(count, size, &bytes))
        p = arena_alloc(r->arena, bytes ? bytes : 1);
    if (!p)
        reader_fail(r, STATUS_NO_MEMORY, (struct place){0, 0}, "out of memory while reading PTX");
    return p;
}

const struct name *reader_intern(struct reader *r, const char *text, size_t length)
{
    const struct name *n = arena_intern(r->arena, text, length);
    if (!n)
        reader_fail(r, STATUS_NO_MEMORY, (struct place){0, 0}, "out of memory while reading PTX");
    return n;
}

void *reader_push(struct reader *r, void **items, uint32_t *count, uint32_t *capacity, size_t size)
{
    if (*count == *capacity) {
        uint32_t more = *capacity ? *capacity * 2 : 8;
        void *fresh = reader_alloc(r, more, size);
        if (*count)
            memcpy(fresh, *items, *count * size);
        *items = fresh;
        *capacity = more;
    }
    return (char *)*items + size * (*count)++;
}
