#include <stdio.h>

#include "analyzer/commands.h"
#include "analyzer/text.h"

int cmd_help(const struct options *options)
{
    if (options->argument_count) {
        const struct command *c = command_find(options->arguments[0]);
        if (!c)
            return command_usage("there is no command '%s'; `ops-debug help` lists them", options->arguments[0]);
        command_print_help(c);
        return 0;
    }
    puts("usage: ops-analyze COMMAND [options] CAPTURE ...\n\ncommands:");
    struct text_table t = {.columns = 2, .squeeze = 1};
    for (size_t i = 0; i < command_count; i++) {
        char call[80];
        snprintf(call, sizeof call, "%s %s", commands[i].name, commands[i].arguments);
        text_table_row(&t, (const char *const[]){call, commands[i].help});
    }
    text_table_print(&t, stdout, "  ");
    return 0;
}
