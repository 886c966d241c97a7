#include <stdio.h>

#include "analyzer/commands.h"

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
    for (size_t i = 0; i < command_count; i++)
        printf("  %-8s %-10s %s\n", commands[i].name, commands[i].arguments, commands[i].help);
    return 0;
}
