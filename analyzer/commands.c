#include "analyzer/commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/selection.h"
#include "analyzer/session.h"

const struct command commands[] = {
#define COMMAND(name, arguments, help) {#name, arguments, help, cmd_##name},
#include "analyzer/commands.def"
#undef COMMAND
};
const size_t command_count = sizeof commands / sizeof *commands;

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

void command_print_help(const struct command *c)
{
    printf("usage: ops-debug %s [options] %s\n\n%s\n\n", c->name, c->arguments, c->help);
    options_print(c->name);
}

int command_fail(enum status status, const struct diag *diag)
{
    char line[1024];
    if (diag->offset >= 0)
        snprintf(line, sizeof line, "%s+%ld: %s", diag->where, diag->offset, diag->text);
    else
        snprintf(line, sizeof line, "%s: %s", diag->where, diag->text);
    /* One line whatever a hostile name holds. */
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    fprintf(stderr, "ops-debug: %s\n", line);
    return status == STATUS_NO_MEMORY ? EXIT_INTERNAL : EXIT_BAD_INPUT;
}

int command_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("ops-debug: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return EXIT_BAD_INPUT;
}

int command_open(const char *command, const struct options *options, struct session *session,
                 struct selection *selection)
{
    struct diag diag;
    if (options->argument_count != 1)
        return command_usage("%s wants one capture (ops-debug %s --help)", command, command);
    enum status status = selection_start(options, selection, &diag);
    if (status)
        return command_fail(status, &diag);
    status = session_open(options->arguments[0], session, &diag);
    if (status)
        selection_end(selection);
    return status ? command_fail(status, &diag) : EXIT_NOTHING;
}
