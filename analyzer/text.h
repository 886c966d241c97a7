/* text.h - aligned columns, numbers and folded lines for people, at most TEXT_WIDTH columns wide. */
#ifndef ANALYZER_TEXT_H
#define ANALYZER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { TEXT_WIDTH = 120, TEXT_COLUMNS = 12 };

/* A table. Cells are copied. Columns of numbers are aligned right. The column `squeeze` is cut when a line gets too
 * wide. */
struct text_table {
    char **cells; /* owned */
    size_t rows, columns;
    bool right[TEXT_COLUMNS];
    size_t squeeze;
    bool failed;
};
void text_table_row(struct text_table *table, const char *const *cells);        /* table->columns of them */
void text_table_print(struct text_table *table, FILE *out, const char *indent); /* and empties it */
void text_table_clear(struct text_table *table);

/* Nanoseconds with a unit and three digits: "850 ns", "12.3 us", "1.25 s". Written to `out`; returns it. */
const char *text_time(uint64_t ns, char out[24]);
const char *text_bytes(uint64_t bytes, char out[24]);
const char *text_number(uint64_t value, char out[24]);

/* Prints `text` folded at spaces, the first line behind `first`, the others behind as many spaces as `indent`. */
void text_fold(FILE *out, const char *first, unsigned indent, const char *text);

/* Bold, red, ... when `on`. */
struct text_style {
    const char *bold, *error, *good, *dim, *end;
};
struct text_style text_style(bool on);
/* Whether it is auto, always or never. */
bool text_is_color_choice(const char *choice);
bool text_wants_color(const char *choice, FILE *out);

#endif
