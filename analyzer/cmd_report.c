#include <stdio.h>

#include "analyzer/commands.h"
#include "analyzer/report.h"
#include "analyzer/text.h"

int cmd_report(const struct options *options)
{
    struct session s;
    struct diag diag;
    if (options->argument_count != 1)
        return command_usage("report wants one capture (ops-debug report --help)");
    enum status status = session_open(options->arguments[0], &s, &diag);
    if (status)
        return command_fail(status, &diag);
    s.leak_check = options->leak_check;
    session_classify(&s);
    int code = findings_serious(&s.findings) ? EXIT_FINDINGS : EXIT_NOTHING;
    if (!options->json)
        report_text(
            stdout, &s,
            (struct report_style){.verbose = options->verbose, .color = text_wants_color(options->color, stdout)});
    else if (!report_json(stdout, &s))
        code = EXIT_INTERNAL;
    session_close(&s);
    return code;
}
