#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "analyzer/commands.h"
#include "analyzer/hang.h"
#include "analyzer/report.h"
#include "analyzer/text.h"

static void print_stack(struct session *s, uint32_t id, bool verbose)
{
    const struct symbol_stack *stack = symbols_stack(s->symbols, id);
    bool own = stack->own < stack->count;
    size_t shown = 0;
    for (size_t i = 0; i < stack->count && (verbose || shown < 4); i++) {
        if (!verbose && own && !stack->frames[i].own)
            continue;
        printf("              %s\n", stack->frames[i].text);
        shown++;
    }
}

static void object_text(const struct hang *h, const struct hang_thread *t, char *out, size_t bytes)
{
    const struct cap_sync *sync = (const void *)t->record;
    static const char *const kinds[] = {"all streams of context", "stream", "event"};
    out[0] = '\0';
    if (t->record && t->record->type == CAP_SYNC && sync->kind <= CAP_SYNC_EVENT)
        snprintf(out, bytes, ", for %s %u", kinds[sync->kind], sync->object);
}

static void thread_text(const struct hang *h, const struct hang_thread *t, char *out, size_t bytes)
{
    char since[24], object[80];
    text_time(t->since_ns, since);
    object_text(h, t, object, sizeof object);
    if (t->call && t->scope && strcmp(t->call, t->scope) != 0)
        snprintf(out, bytes, "inside %s (%s) for %s%s", t->scope, t->call, since, object);
    else if (t->call)
        snprintf(out, bytes, "inside %s for %s%s", t->call, since, object);
    else if (t->polls)
        snprintf(out, bytes, "asks again and again: %s", t->scope);
    else
        snprintf(out, bytes, "in no CUDA call; its newest was %s, %s %s", t->scope ? t->scope : "one without a name",
                 since, h->life == PROCESS_ALIVE ? "ago" : "before the last sign of life");
}

static void print_threads(struct hang *h, bool verbose)
{
    const char *title = "threads   ";
    for (size_t i = 0; i < h->thread_count; i++) {
        const struct hang_thread *t = &h->threads[i];
        char what[300], line[512];
        thread_text(h, t, what, sizeof what);
        int used = snprintf(line, sizeof line, "%u%s%s: %s", t->state->tid, *t->process.name ? " " : "",
                            t->process.name, what);
        if (t->process.state)
            snprintf(line + used, sizeof line - (size_t)used, "; state %c%s%s%s", t->process.state,
                     t->process.state == 'T' ? ", stopped by a signal" : "", *t->process.wchan ? " in " : "",
                     t->process.wchan);
        text_fold(stdout, title, 12, line);
        print_stack(h->session, t->stack, verbose);
        title = "          ";
    }
    if (!h->thread_count)
        printf("%snone of the program's threads made a CUDA call\n", title);
}

static void function_text(const struct hang *h, const struct hang_stream *s, char *out, size_t bytes)
{
    char name[300], since[24];
    const struct cap_host_function *f = s->called;
    if (!f) {
        snprintf(out, bytes, "; it may be inside a function of the host");
        return;
    }
    symbols_function(h->session->symbols, f->function, f->seq, name, sizeof name);
    if (s->called_ns)
        snprintf(out, bytes, "; it has been inside %s, a function of the host, for %s, in thread %u", name,
                 text_time(s->called_ns, since), f->tid);
    else
        snprintf(out, bytes, "; next in it is %s, a function of the host, which has not begun", name);
}

static void waits_text(const struct hang *h, const struct hang_stream *s, char *out, size_t bytes)
{
    out[0] = '\0';
    if (hang_in_function(s))
        function_text(h, s, out, bytes);
    else if (s->value)
        snprintf(out, bytes, "; it may be waiting for the word at 0x%" PRIx64 " (value %" PRIu64 ")", s->value->address,
                 s->value->value);
    else if (s->event)
        snprintf(out, bytes, "; it may be waiting for event %u", s->event->event);
}

static void stream_text(const struct hang *h, const struct hang_stream *s, char *out, size_t bytes)
{
    char ran[24], still[24], waits[480];
    const struct cap_stream_state *state = s->state;
    waits_text(h, s, waits, sizeof waits);
    if (!state)
        snprintf(out, bytes, "was never asked: nothing took long");
    else if (h->life == PROCESS_ALIVE && s->asked_ns > 3000000000u)
        snprintf(out, bytes, "was asked last %s ago", text_time(s->asked_ns, ran));
    else if (s->running)
        snprintf(out, bytes, "launch %u, %.120s, has begun (%s ago or more) and not ended", s->running->number,
                 s->running->kernel->name, text_time(s->running_ns, ran));
    else if (s->next)
        snprintf(out, bytes, "launch %u, %.120s, has not begun; nothing has moved for %s%s", s->next->number,
                 s->next->kernel->name, text_time(s->still_ns, still), waits);
    else if (state->busy == CAP_BUSY_YES)
        snprintf(out, bytes, "has work that is not complete; nothing has moved for %s%s", text_time(s->still_ns, still),
                 waits);
    else if (state->busy == CAP_BUSY_NO)
        snprintf(out, bytes, "all its work is complete");
    else
        snprintf(out, bytes, "could not be asked");
}

static void print_arguments(struct session *s, const struct model_launch *l)
{
    size_t count;
    struct report_argument *args = report_arguments(s->model, l, &count);
    for (size_t i = 0; i < count; i++) {
        char meaning[320];
        report_argument_text(s, &args[i], model_launch_seq(l), meaning, sizeof meaning);
        printf("              argument %zu: 0x%" PRIx64 "%s%s\n", i, args[i].value, *meaning ? ", " : "", meaning);
    }
    free(args);
}

static void print_streams(struct hang *h, bool verbose)
{
    static const char *const kinds[] = {" (default)", " (a thread's default)", ""};
    const char *title = "streams   ";
    for (size_t i = 0; i < h->stream_count; i++) {
        const struct hang_stream *s = &h->streams[i];
        char what[900], line[1024];
        stream_text(h, s, what, sizeof what);
        snprintf(line, sizeof line, "%u%s: %s", s->stream->id, kinds[s->stream->kind % 3], what);
        text_fold(stdout, title, 12, line);
        const struct model_launch *l = s->running ? s->running : s->next;
        if (l) {
            print_arguments(h->session, l);
            print_stack(h->session, l->record->stack, verbose);
        }
        title = "          ";
    }
    if (!h->stream_count)
        printf("%snone\n", title);
}

static const char *life_text(const struct hang *h)
{
    if (h->ended)
        return "it ended in an orderly way";
    switch (h->life) {
    case PROCESS_ALIVE:
        return "alive";
    case PROCESS_GONE:
        return "no longer there; this is how it was when its capture was last written";
    default:
        return "whether it lives cannot be seen";
    }
}

/* What a look at the streams says in one line, where it is no finding. */
static void print_no_finding(const struct hang *h)
{
    const struct findings *notes = &h->session->findings;
    if (h->stopped)
        printf("The program is stopped by a signal; kill -CONT %u lets it go on\n\n", h->session->capture->header.pid);
    else if (notes->count && notes->items[0].launch)
        printf("It cannot be told whether launch %zu is stuck\n\n", notes->items[0].launch);
    else if (notes->count)
        printf("It cannot be told whether the program is stuck\n\n");
    else
        printf("No hang was found\n\n");
}

static void print_text(struct hang *h, const struct options *options)
{
    struct session *s = h->session;
    struct report_style style = {.verbose = options->verbose, .color = text_wants_color(options->color, stdout)};
    size_t serious = findings_serious(&s->findings);
    char line[1024];
    snprintf(line, sizeof line, "%s: %.400s, process %u: %s", s->capture->path, s->capture->program,
             s->capture->header.pid, life_text(h));
    text_fold(stdout, "", 4, line);
    if (serious)
        printf("%zu finding%s\n\n", serious, serious == 1 ? "" : "s");
    else
        print_no_finding(h);
    for (size_t i = 0; i < s->findings.count; i++)
        report_finding(stdout, s, &s->findings.items[i], i + 1, style);
    print_threads(h, options->verbose);
    print_streams(h, options->verbose);
    bool inside = false, busy = false;
    for (size_t i = 0; i < h->thread_count; i++)
        inside = inside || h->threads[i].call || h->threads[i].polls;
    for (size_t i = 0; i < h->stream_count; i++)
        busy = busy || (h->streams[i].state && h->streams[i].state->busy != CAP_BUSY_NO);
    if (!h->ended && !h->stopped && !inside && !busy)
        puts("The program waits for nothing of CUDA's. If it is stuck, then on the host: gdb tells where.");
}

/* ---- JSON ---- */

static cJSON *launch_number(const struct model_launch *l)
{
    return l ? cJSON_CreateNumber((double)l->number) : cJSON_CreateNull();
}

static void text_or_null(cJSON *to, const char *name, const char *text)
{
    cJSON_AddItemToObject(to, name, text && *text ? cJSON_CreateString(text) : cJSON_CreateNull());
}

static void add_threads(cJSON *root, const struct hang *h)
{
    cJSON *array = cJSON_AddArrayToObject(root, "threads");
    for (size_t i = 0; i < h->thread_count; i++) {
        const struct hang_thread *t = &h->threads[i];
        char state[2] = {t->process.state, '\0'};
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "tid", t->state->tid);
        text_or_null(json, "name", t->process.name);
        text_or_null(json, "inside", t->call);
        text_or_null(json, "scope", t->scope);
        cJSON_AddNumberToObject(json, "since_ns", (double)t->since_ns);
        cJSON_AddBoolToObject(json, "polls", t->polls);
        text_or_null(json, "state", state);
        text_or_null(json, "wchan", t->process.wchan);
        cJSON_AddItemToObject(json, "stack", report_stack_json(h->session, t->stack));
        cJSON_AddItemToArray(array, json);
    }
}

static cJSON *function_json(const struct hang *h, const struct hang_stream *s)
{
    char name[300], address[24], place[200];
    const struct cap_host_function *f = s->called;
    cJSON *json = cJSON_CreateObject();
    snprintf(address, sizeof address, "0x%" PRIx64, f->function);
    cJSON_AddStringToObject(json, "name",
                            symbols_function(h->session->symbols, f->function, f->seq, name, sizeof name));
    cJSON_AddStringToObject(json, "address", address);
    cJSON_AddStringToObject(json, "from", symbols_place(h->session->symbols, f->stack, place, sizeof place));
    cJSON_AddBoolToObject(json, "begun", s->called_ns != 0);
    cJSON_AddNumberToObject(json, "since_ns", (double)s->called_ns);
    cJSON_AddItemToObject(json, "thread", s->called_ns ? cJSON_CreateNumber(f->tid) : cJSON_CreateNull());
    return json;
}

static void add_streams(cJSON *root, const struct hang *h)
{
    static const char *const busy[] = {"unknown", "no", "yes"};
    cJSON *array = cJSON_AddArrayToObject(root, "streams");
    for (size_t i = 0; i < h->stream_count; i++) {
        const struct hang_stream *s = &h->streams[i];
        char text[900];
        cJSON *json = cJSON_CreateObject();
        stream_text(h, s, text, sizeof text);
        cJSON_AddNumberToObject(json, "stream", s->stream->id);
        cJSON_AddStringToObject(json, "busy", busy[s->state ? s->state->busy % 3 : 0]);
        cJSON_AddItemToObject(json, "running", launch_number(s->running));
        cJSON_AddItemToObject(json, "next", launch_number(s->next));
        cJSON_AddItemToObject(json, "last", launch_number(s->last));
        cJSON_AddNumberToObject(json, "running_ns", (double)s->running_ns);
        cJSON_AddNumberToObject(json, "still_ns", (double)s->still_ns);
        cJSON_AddItemToObject(json, "waiter",
                              s->waiter ? cJSON_CreateNumber(s->waiter->state->tid) : cJSON_CreateNull());
        cJSON_AddItemToObject(json, "function",
                              hang_in_function(s) && s->called ? function_json(h, s) : cJSON_CreateNull());
        cJSON_AddStringToObject(json, "text", text);
        cJSON_AddItemToArray(array, json);
    }
}

static bool print_json(struct hang *h)
{
    static const char *const lives[] = {"gone", "alive", "unknown"};
    struct session *s = h->session;
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "capture", s->capture->path);
    cJSON_AddNumberToObject(root, "pid", s->capture->header.pid);
    cJSON_AddStringToObject(root, "process", lives[h->life]);
    cJSON_AddBoolToObject(root, "ended", h->ended);
    cJSON_AddBoolToObject(root, "stopped", h->stopped);
    cJSON *findings = cJSON_AddArrayToObject(root, "findings"), *notes = cJSON_AddArrayToObject(root, "notes");
    for (size_t i = 0; i < s->findings.count; i++)
        cJSON_AddItemToArray(s->findings.items[i].severity == FINDING_NOTE ? notes : findings,
                             report_finding_json(s, &s->findings.items[i], i + 1));
    add_threads(root, h);
    add_streams(root, h);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text)
        printf("%s\n", text);
    free(text);
    return text != NULL;
}

/* The argument is a folder, or the number of a process that is writing one. A folder of that name comes first. */
static char *capture_of(const char *argument)
{
    char *end;
    unsigned long pid = strtoul(argument, &end, 10);
    if (argument[0] < '0' || argument[0] > '9' || *end || pid == 0 || pid > INT32_MAX)
        return strdup(argument);
    if (access(argument, F_OK) == 0)
        return strdup(argument);
    return process_capture((uint32_t)pid);
}

int cmd_hang(const struct options *options)
{
    struct session s;
    struct hang h;
    struct diag diag;
    if (options->argument_count != 1)
        return command_usage("hang wants one capture, or the number of a process (ops-debug hang --help)");
    char *path = capture_of(options->arguments[0]);
    if (!path)
        return command_usage("process %s is not there, writes no capture, or belongs to somebody else",
                             options->arguments[0]);
    enum status status = session_open(path, &s, &diag);
    free(path);
    if (status)
        return command_fail(status, &diag);
    int code = EXIT_INTERNAL;
    if (hang_look(&s, options->after * UINT64_C(1000000000), &h) == STATUS_OK) {
        code = findings_serious(&s.findings) ? EXIT_FINDINGS : EXIT_NOTHING;
        if (!options->json)
            print_text(&h, options);
        else if (!print_json(&h))
            code = EXIT_INTERNAL;
    }
    hang_free(&h);
    session_close(&s);
    return code;
}
