#include <stdio.h>
#include <unistd.h>

#include "analyzer/commands.h"
#include "analyzer/report.h"
#include "analyzer/store.h"
#include "analyzer/text.h"
#include "analyzer/verify.h"

static void show_progress(void *context, size_t done, size_t of)
{
    fprintf(stderr, "\rlaunch %zu of %zu%s", done, of, done == of ? "\n" : "");
}

static enum status judge(struct session *s, const struct options *options, struct selection *selection,
                         struct diag *diag)
{
    struct verify_options how = {
        .workers = options_jobs(options),
        .instruction_limit = options->budget * 1000000,
        .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
    };
    struct judgements before = s->judgements; /* of launches that are not selected this time */
    s->judgements = (struct judgements){0};
    s->store_problem[0] = '\0';
    enum status status = verify_capture(s->model, selection, &how, &s->judgements, diag);
    if (status || !judgements_merge(&s->judgements, &before)) {
        judgements_free(&before);
        return status;
    }
    struct diag problem;
    if (store_write(s->model, &s->judgements, &problem))
        snprintf(s->store_problem, sizeof s->store_problem, "the verdict is not kept: %.200s", problem.text);
    return STATUS_OK;
}

int cmd_verify(const struct options *options)
{
    struct session s;
    struct selection selection;
    struct diag diag;
    int code = command_open("verify", options, &s, &selection);
    if (code)
        return code;
    if (!selection_any(&selection, s.model)) {
        code = command_usage("no launch of %s is chosen", options->arguments[0]);
        selection_end(&selection);
        session_close(&s);
        return code;
    }
    enum status status = judge(&s, options, &selection, &diag);
    if (status) {
        code = command_fail(status, &diag);
    } else {
        s.leak_check = options->leak_check;
        session_classify(&s);
        code = findings_serious(&s.findings) ? EXIT_FINDINGS : EXIT_NOTHING;
        bool color = text_wants_color(options->color, stdout);
        if (!options->json)
            report_text(stdout, &s, (struct report_style){.verbose = options->verbose, .color = color, .brief = true});
        else if (!report_json(stdout, &s))
            code = EXIT_INTERNAL;
    }
    selection_end(&selection);
    session_close(&s);
    return code;
}
