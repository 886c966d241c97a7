#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/commands.h"
#include "analyzer/report.h"
#include "analyzer/store.h"
#include "analyzer/text.h"
#include "analyzer/verify.h"
#include "common/diag.h"

/* ---- on the way ---- */

/* What hours of work have found is kept from time to time, and when somebody stops it. */
enum { SAVE_S = 60, LOG_S = 60 };

static ptx_flag stop;
static volatile sig_atomic_t stopped_by;

/* The second time the signal does what it always does. */
static void take_signal(int number)
{
    stopped_by = number;
    atomic_store_explicit(&stop, true, memory_order_relaxed);
}

static void watch_signals(void)
{
    struct sigaction action = {.sa_handler = take_signal, .sa_flags = (int)SA_RESETHAND};
    struct sigaction now;
    const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

struct watch {
    const struct session *session;
    const struct judgements *before; /* of earlier times */
    bool terminal, shown;
    double start, next_show, next_save;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A line that is written over; where nobody sees it come and go, one line a minute. */
static void show(struct watch *w, const struct model_launch *l, double time)
{
    size_t of = w->session->model->launch_count;
    if (time < w->next_show && !(w->terminal && l->snapshots)) /* what takes long is named in any case */
        return;
    w->next_show = time + (w->terminal ? 0.1 : LOG_S);
    if (w->terminal)
        fprintf(stderr, "\r\033[Klaunch %u of %zu, %.60s", l->number, of, l->kernel->name);
    else
        fprintf(stderr, "ops-debug: verify has come to launch %u of %zu after %.0f s, %.60s\n", l->number, of,
                time - w->start, l->kernel->name);
    w->shown = true;
}

static void progress(void *context, const struct model_launch *l, const struct judgements *so_far)
{
    struct watch *w = context;
    double time = now();
    show(w, l, time);
    if (time < w->next_save)
        return;
    struct diag problem; /* told at the end, when it is still there */
    (void)store_write(w->session->model, so_far, w->before, &problem);
    double cost = now() - time;
    w->next_save = time + (20 * cost > SAVE_S ? 20 * cost : SAVE_S);
}

/* ---- the command ---- */

static enum status judge(struct session *s, const struct options *options, struct selection *selection,
                         struct diag *diag)
{
    struct judgements before = s->judgements; /* of launches that are not selected this time */
    double start = now();
    struct watch watch = {.session = s,
                          .before = &before,
                          .terminal = isatty(STDERR_FILENO),
                          .start = start,
                          .next_save = start + SAVE_S};
    watch.next_show = start + (watch.terminal ? 0 : LOG_S);
    struct verify_options how = {
        .workers = options_jobs(options),
        .instruction_limit = options->budget * 1000000,
        .progress = progress,
        .progress_context = &watch,
        .cancel = &stop,
    };
    s->judgements = (struct judgements){0};
    s->store_problem[0] = '\0';
    watch_signals();
    enum status status = verify_capture(s->model, selection, &how, &s->judgements, diag);
    if (watch.terminal && watch.shown)
        fputs("\r\033[K", stderr);
    if (status && status != STATUS_CANCELLED) {
        judgements_free(&before);
        return status;
    }
    if (!judgements_merge(&s->judgements, &before))
        return diag_set(diag, STATUS_NO_MEMORY, s->capture->path, -1, "no memory for the judgements");
    struct diag problem;
    if (store_write(s->model, &s->judgements, NULL, &problem))
        snprintf(s->store_problem, sizeof s->store_problem, "the verdict is not kept: %.200s", problem.text);
    return status;
}

/* How far it came, and how to go on. */
static void print_interrupted(const struct session *s)
{
    size_t first = 0, left = 0;
    for (size_t i = 0; i < s->model->launch_count; i++) {
        const struct judgement *j = judgements_find(&s->judgements, s->model->launches[i].number);
        if (!j || !j->reason || strcmp(j->reason, JUDGEMENT_INTERRUPTED) != 0)
            continue;
        first = first ? first : s->model->launches[i].number;
        left++;
    }
    if (left)
        fprintf(stderr,
                "ops-debug: interrupted; what was found till then is kept. %zu launches are left, from launch %zu on: "
                "ops-debug verify --launch-skip %zu %s\n",
                left, first, first - 1, s->capture->shell_path);
    else
        fputs("ops-debug: interrupted; what was found till then is kept, and what is known of the other launches\n",
              stderr);
}

static int report(struct session *s, const struct options *options)
{
    s->leak_check = options->leak_check;
    session_classify(s);
    int code = findings_serious(&s->findings) ? EXIT_FINDINGS : EXIT_NOTHING;
    bool color = text_wants_color(options->color, stdout);
    if (!options->json)
        report_text(stdout, s, (struct report_style){.verbose = options->verbose, .color = color, .brief = true});
    else if (!report_json(stdout, s))
        code = EXIT_INTERNAL;
    return code;
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
    code = status && status != STATUS_CANCELLED ? command_fail(status, &diag) : report(&s, options);
    if (status == STATUS_CANCELLED)
        print_interrupted(&s);
    selection_end(&selection);
    session_close(&s);
    if (status == STATUS_CANCELLED) { /* to whoever waits it ends as it would have without all this */
        fflush(stdout);
        signal(stopped_by, SIG_DFL);
        raise(stopped_by);
    }
    return code;
}
