#include "analyzer/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Columns that a UTF-8 text takes, each character counted as one. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void text_table_row(struct text_table *t, const char *const *cells)
{
    char **more = realloc((void *)t->cells, (t->rows + 1) * t->columns * sizeof *more);
    if (!more) {
        t->failed = true;
        return;
    }
    t->cells = more;
    for (size_t i = 0; i < t->columns; i++) {
        more[t->rows * t->columns + i] = strdup(cells[i]);
        t->failed = t->failed || !more[t->rows * t->columns + i];
    }
    t->rows++;
}

static void print_cell(FILE *out, const char *cell, size_t width, bool right, bool last)
{
    size_t n = width_of(cell);
    if (n > width) {
        const char *end = cell;
        for (size_t seen = 0; *end && seen + 1 < width; seen++)
            for (end++; ((unsigned char)*end & 0xc0) == 0x80; end++)
                ;
        fprintf(out, "%.*s~", (int)(end - cell), cell);
        return;
    }
    int padding = (int)(width - n);
    if (right)
        fprintf(out, "%*s%s", padding, "", cell);
    else
        fprintf(out, "%s%*s", cell, last ? 0 : padding, "");
}

void text_table_print(struct text_table *t, FILE *out, const char *indent)
{
    size_t width[TEXT_COLUMNS] = {0}, total = strlen(indent);
    for (size_t i = 0; i < t->rows * t->columns && !t->failed; i++) {
        size_t n = width_of(t->cells[i]);
        if (n > width[i % t->columns])
            width[i % t->columns] = n;
    }
    for (size_t i = 0; i < t->columns; i++)
        total += width[i] + (i ? 2 : 0);
    if (total > TEXT_WIDTH) {
        size_t over = total - TEXT_WIDTH, *w = &width[t->squeeze];
        *w = *w > over + 12 ? *w - over : (*w < 12 ? *w : 12);
    }
    for (size_t row = 0; row < t->rows && !t->failed; row++) {
        fputs(indent, out);
        for (size_t i = 0; i < t->columns; i++) {
            if (i)
                fputs("  ", out);
            print_cell(out, t->cells[row * t->columns + i], width[i], t->right[i], i + 1 == t->columns);
        }
        fputc('\n', out);
    }
    text_table_clear(t);
}

void text_table_clear(struct text_table *t)
{
    for (size_t i = 0; i < t->rows * t->columns; i++)
        free(t->cells[i]);
    free((void *)t->cells);
    t->cells = NULL;
    t->rows = 0;
}

static const char *scaled(double value, const char *const *units, size_t count, double step, char out[24])
{
    size_t unit = 0;
    while (unit + 1 < count && value >= step * 0.9995) {
        value /= step;
        unit++;
    }
    int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(out, 24, "%.*f %s", digits, value, units[unit]);
    return out;
}

const char *text_time(uint64_t ns, char out[24])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return scaled((double)ns, units, 4, 1000, out);
}

const char *text_bytes(uint64_t bytes, char out[24])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    return scaled((double)bytes, units, 5, 1024, out);
}

const char *text_number(uint64_t value, char out[24])
{
    snprintf(out, 24, "%" PRIu64, value);
    return out;
}

void text_fold(FILE *out, const char *first, unsigned indent, const char *text)
{
    size_t column = width_of(first);
    bool fresh = true;
    fputs(first, out);
    while (*text) {
        size_t bytes = strcspn(text, " ");
        char word[512];
        snprintf(word, sizeof word, "%.*s", (int)(bytes < sizeof word ? bytes : sizeof word - 1), text);
        size_t n = width_of(word);
        if (!fresh && column + 1 + n > TEXT_WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
            fresh = true;
        }
        fprintf(out, "%s%s", fresh ? "" : " ", word);
        column += n + !fresh;
        fresh = false;
        text += bytes;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

struct text_style text_style(bool on)
{
    if (!on)
        return (struct text_style){"", "", "", "", ""};
    return (struct text_style){"\033[1m", "\033[1;31m", "\033[32m", "\033[2m", "\033[0m"};
}

bool text_is_color_choice(const char *choice)
{
    return strcmp(choice, "auto") == 0 || strcmp(choice, "always") == 0 || strcmp(choice, "never") == 0;
}

bool text_wants_color(const char *choice, FILE *out)
{
    if (strcmp(choice, "auto") == 0)
        return isatty(fileno(out)) && !getenv("NO_COLOR");
    return strcmp(choice, "always") == 0;
}
