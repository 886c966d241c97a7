#include "analyzer/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/text.h"
#include "common/diag.h"

enum option_type { FLAG, NUMBER, TEXT };
struct option_row {
    enum option_type type;
    const char *name, *fallback, *commands, *help;
    size_t at; /* offset in struct options */
};
static const struct option_row rows[] = {
#define OPTION(type, name, default, commands, help)                                                                    \
    {type, #name, #default, commands, help, offsetof(struct options, name)},
#include "analyzer/options.def"
#undef OPTION
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct options defaults = {
#define OPTION(type, name, default, commands, help) .name = default,
#include "analyzer/options.def"
#undef OPTION
};

/* Is `command` one of the words of `commands`? */
static bool takes(const char *commands, const char *command)
{
    size_t n = strlen(command);
    for (const char *p = commands; (p = strstr(p, command)); p += n)
        if ((p == commands || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}

/* Compares an option as written with dashes, `bytes` long, with a row's name. */
static bool same_name(const char *written, size_t bytes, const char *name)
{
    if (strlen(name) != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        if (written[i] != (name[i] == '_' ? '-' : name[i]))
            return false;
    return true;
}

static const struct option_row *find_row(const char *command, const char *written, size_t bytes)
{
    for (size_t i = 0; i < ROWS; i++)
        if (same_name(written, bytes, rows[i].name) && takes(rows[i].commands, command))
            return &rows[i];
    return NULL;
}

static enum status set_value(const struct option_row *row, const char *written, const char *value, struct options *out,
                             struct diag *diag)
{
    char *at = (char *)out + row->at, *end;
    if (row->type == TEXT) {
        memcpy(at, &value, sizeof value);
        return STATUS_OK;
    }
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno)
        return diag_set(diag, STATUS_BAD_INPUT, written, -1, "%s wants a number, not '%s'", written, value);
    uint64_t stored = number;
    memcpy(at, &stored, sizeof stored);
    return STATUS_OK;
}

enum status options_parse(const char *command, int argc, char **argv, struct options *out, struct diag *diag)
{
    *out = defaults;
    bool only_arguments = false;
    for (int i = 2; i < argc; i++) {
        const char *word = argv[i];
        if (!only_arguments && strcmp(word, "--") == 0) {
            only_arguments = true;
            continue;
        }
        if (!only_arguments && (strcmp(word, "-v") == 0 || strcmp(word, "-h") == 0))
            word = word[1] == 'v' ? "--verbose" : "--help";
        if (!only_arguments && strcmp(word, "-o") == 0)
            word = "--output";
        if (only_arguments || word[0] != '-' || word[1] == '\0') {
            if (out->argument_count == sizeof out->arguments / sizeof *out->arguments)
                return diag_set(diag, STATUS_BAD_INPUT, command, -1, "too many arguments: '%s'", word);
            out->arguments[out->argument_count++] = word;
            continue;
        }
        const char *equals = strchr(word, '=');
        size_t bytes = equals ? (size_t)(equals - word) : strlen(word);
        const struct option_row *row = bytes > 2 && word[1] == '-' ? find_row(command, word + 2, bytes - 2) : NULL;
        if (!row)
            return diag_set(diag, STATUS_BAD_INPUT, command, -1,
                            "%s has no option %.*s (ops-debug %s --help lists them)", command, (int)bytes, word,
                            command);
        if (row->type == FLAG) {
            if (equals)
                return diag_set(diag, STATUS_BAD_INPUT, command, -1, "%.*s takes no value", (int)bytes, word);
            *(bool *)((char *)out + row->at) = true;
            continue;
        }
        if (!equals && i + 1 >= argc)
            return diag_set(diag, STATUS_BAD_INPUT, command, -1, "%s needs a value", word);
        enum status status = set_value(row, word, equals ? equals + 1 : argv[++i], out, diag);
        if (status)
            return status;
    }
    if (!text_is_color_choice(out->color))
        return diag_set(diag, STATUS_BAD_INPUT, command, -1, "--color wants auto, always or never, not '%s'",
                        out->color);
    return STATUS_OK;
}

uint32_t options_jobs(const struct options *options)
{
    long n = options->jobs ? (long)(options->jobs < 256 ? options->jobs : 256) : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 256 ? 256 : (uint32_t)n;
}

void options_print(const char *command)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct option_row *row = &rows[i];
        char shown[40];
        if (!takes(row->commands, command))
            continue;
        snprintf(shown, sizeof shown, "--%s%s", row->name, row->type == FLAG ? "" : row->type == NUMBER ? " N" : " X");
        for (char *p = shown; *p; p++)
            if (*p == '_')
                *p = '-';
        bool plain = row->type != NUMBER || strcmp(row->fallback, "0") == 0; /* a text's help says it */
        printf("  %-20s %s%s%s%s\n", shown, row->help, plain ? "" : " (default: ", plain ? "" : row->fallback,
               plain ? "" : ")");
    }
}
