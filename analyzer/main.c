/* main.c - ops-analyze: looks at captures. The launcher `ops-debug` passes every command but `run` to it. */
#include <stdio.h>
#include <string.h>

#include "analyzer/check_options.h"
#include "analyzer/commands.h"
#include "analyzer/version.h"

int main(int argc, char **argv)
{
    struct options options;
    struct diag diag;
    if (argc < 2)
        return command_usage("no command given; `ops-debug help` lists them");
    if (strcmp(argv[1], "--version") == 0) {
        printf("ops-debug %s\n", ANALYZER_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "check-options") == 0)
        return check_options();
    bool wants_help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
    const struct command *command = command_find(wants_help ? "help" : argv[1]);
    if (!command)
        return command_usage("there is no command '%s'; `ops-debug help` lists them", argv[1]);
    if (options_parse(command->name, argc, argv, &options, &diag))
        return command_usage("%s", diag.text);
    if (options.help) {
        command_print_help(command);
        return 0;
    }
    int code = command->run(&options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("ops-debug: standard output");
        return EXIT_INTERNAL;
    }
    return code;
}
