#include "analyzer/check_options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "shim/options.h"

static const struct {
    const char *name, *type, *help;
} rows[] = {
#define OPTION(option, type, initial, help) {#option, #type, help},
#include "shim/options.def"
#undef OPTION
};

/* What a value looks like, for the types whose help does not say it. */
static const struct {
    const char *type, *form;
} forms[] = {
    {"number", "a whole number"},
    {"size", "a number of bytes, K, M or G may follow"},
    {"switch", "on or off"},
    {"real", "a number above 0"},
};

static const char *form_of(const char *type)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].type, type) == 0)
            return forms[i].form;
    return NULL;
}

/* As it is written on the command line; what is not fit to be printed becomes '?'. */
static void print_error(const char *name, const char *value, const char *form, const char *help)
{
    fputs("ops-debug: --", stderr);
    for (const char *p = name; *p; p++)
        fputc(*p == '_' ? '-' : tolower((unsigned char)*p), stderr);
    fprintf(stderr, " (OPSDEBUG_%s) does not take '", name);
    for (const char *p = value; *p; p++)
        fputc((unsigned char)*p < 0x20 || *p == 0x7f ? '?' : *p, stderr);
    fprintf(stderr, "'; it wants %s%s%s\n", form ? form : "", form ? ": " : "", help);
}

int check_options(void)
{
    options_read();
    for (unsigned i = 0; i < options_count() && i < sizeof rows / sizeof *rows; i++) {
        struct option_taken row = options_taken(i);
        if (!*row.given)
            continue;
        print_error(rows[i].name, row.given, form_of(rows[i].type), rows[i].help);
        return 2;
    }
    return 0;
}
