/* commands.h - the commands of ops-analyze, from the rows of commands.def. */
#ifndef ANALYZER_COMMANDS_H
#define ANALYZER_COMMANDS_H

#include <opsdebug/status.h>
#include "analyzer/options.h"

/* The exit codes of every command. */
enum exit_code { EXIT_NOTHING = 0, EXIT_FINDINGS = 1, EXIT_BAD_INPUT = 2, EXIT_INTERNAL = 3 };

struct command {
    const char *name, *arguments, *help;
    int (*run)(const struct options *options);
};
extern const struct command commands[];
extern const size_t command_count;

#define COMMAND(name, arguments, help) int cmd_##name(const struct options *options);
#include "analyzer/commands.def"
#undef COMMAND

const struct command *command_find(const char *name); /* NULL when there is none */
void command_print_help(const struct command *command);

/* One line on standard error: "ops-debug: FILE+OFFSET: TEXT". Returns the exit code that fits `status`. */
int command_fail(enum status status, const struct diag *diag);
int command_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct session;
struct selection;
/* What a command about the chosen launches of one capture begins with: opens both, to be ended by the caller. Another
 * result than EXIT_NOTHING: it has said why, and nothing is open. */
int command_open(const char *command, const struct options *options, struct session *session,
                 struct selection *selection);

#endif
