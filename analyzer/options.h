/* options.h - the command line, from the rows of options.def. */
#ifndef ANALYZER_OPTIONS_H
#define ANALYZER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <opsdebug/status.h>

#define OPTION_TYPE_FLAG   bool
#define OPTION_TYPE_NUMBER uint64_t
#define OPTION_TYPE_TEXT   const char *

struct options {
#define OPTION(type, name, default, commands, help) OPTION_TYPE_##type name;
#include "analyzer/options.def"
#undef OPTION
    const char *arguments[8]; /* what is not an option */
    size_t argument_count;
};

/* Reads argv[2..]; argv[1] is the command. Strings point into argv. STATUS_BAD_INPUT with *diag->text when something is
 * wrong. */
enum status options_parse(const char *command, int argc, char **argv, struct options *out, struct diag *diag);
/* --jobs, or as many as there are processors; 1 to 256. */
uint32_t options_jobs(const struct options *options);
/* The option lines of `command`, for --help; to standard output. */
void options_print(const char *command);

#endif
