#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyzer/commands.h"
#include "analyzer/health.h"
#include "analyzer/health_seen.h"
#include "analyzer/marks.h"
#include "analyzer/place.h"
#include "analyzer/session.h"
#include "analyzer/text.h"

enum { SHOWN = 20 };

/* "34 of 510 elements of allocation 75 (allocated at block.cu:30) are NaN, the first at offset 56" */
static void output_text(struct session *s, const struct health_output *o, char *out, size_t bytes)
{
    char place[200] = "";
    const struct model_allocation *a = model_allocation_by_id(s->model, o->allocation);
    if (a)
        symbols_place(s->symbols, a->record->stack, place, sizeof place);
    snprintf(out, bytes,
             "%" PRIu64 " of %" PRIu64 " elements of allocation %u%s%s%s are %s, the first (%g) at offset %" PRIu64,
             o->bad, o->of, o->allocation, *place ? " (allocated at " : "", place, *place ? ")" : "",
             o->nans == o->bad         ? "NaN"
             : o->infinities == o->bad ? "Inf"
             : o->nans + o->infinities ? "NaN, Inf or too large"
                                       : "too large",
             o->value, o->offset);
}

static void birth_text(const struct health_launch *h, char *out, size_t bytes)
{
    char place[PLACE_TEXT_BYTES] = "an instruction that is not known", who[PLACE_THREAD_BYTES];
    int used;
    if (h->place.ptx_line)
        place_text(&h->place, place);
    used = snprintf(out, bytes, "at %s", place);
    if (h->has_thread) {
        place_thread(&h->place, who);
        used += snprintf(out + used, bytes - (size_t)used, " by %s: %g from", who, h->result);
        for (uint32_t i = 0; i < h->operand_count; i++)
            used += snprintf(out + used, bytes - (size_t)used, "%s %.9g", i ? "," : "", h->operands[i]);
    }
}

static void origin_text(const struct health *all, const struct health_launch *h, char *out, size_t bytes)
{
    char birth[400];
    if (h->born) {
        birth_text(h, birth, sizeof birth);
        snprintf(out, bytes, "born here, %s", birth);
    } else if (h->source && h->parent != SIZE_MAX) {
        snprintf(out, bytes, "from allocation %u, by launch %u", h->source, all->launches[h->parent].launch->number);
    } else if (h->source) {
        snprintf(out, bytes, "came in by allocation %u: %s", h->source, h->source_by);
    } else {
        snprintf(out, bytes, "where it came from is not seen%s%s%s", *h->not_run ? " (" : "", h->not_run,
                 *h->not_run ? ": not re-executed)" : "");
    }
}

static void print_launch(struct session *s, const struct health *all, const struct health_launch *h, const char *title)
{
    char line[1024], origin[600], step[MARKS_STEP_BYTES];
    marks_step_text(s->model, model_launch_seq(h->launch), step);
    snprintf(line, sizeof line, "launch %u, %.160s%s: ", h->launch->number, h->launch->kernel->name, step);
    for (size_t i = 0; i < h->output_count; i++) {
        char output[400], both[640];
        output_text(s, &h->outputs[i], output, sizeof output);
        snprintf(both, sizeof both, "%.230s%s", i ? "and " : line, output);
        text_fold(stdout, i ? "          " : title, 10, both);
    }
    origin_text(all, h, origin, sizeof origin);
    text_fold(stdout, "          ", 10, origin);
}

static void print_text(struct session *s, const struct health *h, size_t only, bool verbose)
{
    const char *what = isfinite(h->threshold) ? "NaN, Inf or too large values" : "NaN or Inf";
    printf("%zu of %zu launches stored %s; %zu floating-point outputs looked at %s", h->count, s->model->launch_count,
           what, h->outputs, h->full ? "in full" : "by samples (--full: all of it)");
    if (h->guessed)
        printf(", %zu of them by a guess of their type", h->guessed);
    putchar('\n');
    const char *preset = model_option(s->model, "PRESET");
    if (h->unseen)
        printf("%zu launches have no snapshot after them%s\n", h->unseen,
               preset && strcmp(preset, "deep") == 0 ? "" : " (run --preset deep has them all)");
    if (h->unseen && !only)
        health_seen_print(stdout, s, "seen      ", verbose);
    for (size_t i = 0; only && i < h->count; i++) {
        if (h->launches[i].launch->number != only)
            continue;
        putchar('\n');
        for (size_t k = i, step = 0; k != SIZE_MAX && step <= h->count; step++) {
            print_launch(s, h, &h->launches[k], step ? "from      " : "chain     ");
            k = h->launches[k].born ? SIZE_MAX : h->launches[k].parent;
        }
        return;
    }
    if (only && h->count)
        printf("launch %zu stored none\n", only);
    for (size_t i = 0; !only && i < h->count; i++) {
        if (i == SHOWN && !verbose) {
            printf("and %zu more launches (-v)\n", h->count - i);
            break;
        }
        putchar('\n');
        print_launch(s, h, &h->launches[i], i ? "then      " : "first     ");
    }
    if (h->count)
        printf("\nnext:     ops-debug attribute %s --launch %u --allocation %u\n", s->capture->shell_path,
               h->launches[0].launch->number, h->launches[0].outputs[0].allocation);
}

/* ---- JSON ---- */

static void add_value(cJSON *to, const char *name, double value)
{
    if (isfinite(value))
        cJSON_AddNumberToObject(to, name, value);
    else
        cJSON_AddStringToObject(to, name, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static cJSON *birth_json(const struct health_launch *h)
{
    if (!h->born)
        return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    const struct judgement_frame *frame = place_frame(&h->place);
    if (frame) {
        cJSON_AddStringToObject(json, "file", frame->file);
        cJSON_AddNumberToObject(json, "line", frame->line);
    }
    if (h->place.ptx_line)
        cJSON_AddNumberToObject(json, "ptx_line", h->place.ptx_line);
    for (int which = 0; h->has_thread && which < 2; which++) {
        cJSON *array = cJSON_AddArrayToObject(json, which ? "thread" : "block");
        for (int i = 0; i < 3; i++)
            cJSON_AddItemToArray(array, cJSON_CreateNumber(which ? h->place.thread[i] : h->place.block[i]));
    }
    cJSON *operands = cJSON_AddArrayToObject(json, "operands");
    for (uint32_t i = 0; i < h->operand_count; i++)
        cJSON_AddItemToArray(operands, isfinite(h->operands[i])
                                           ? cJSON_CreateNumber(h->operands[i])
                                           : cJSON_CreateString(h->operands[i] > 0 ? "inf" : "-inf"));
    return json;
}

static cJSON *launch_json(const struct health *all, const struct health_launch *h)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "seq", (double)h->launch->number);
    cJSON_AddStringToObject(json, "kernel", h->launch->kernel->name);
    cJSON *outputs = cJSON_AddArrayToObject(json, "outputs");
    for (size_t i = 0; i < h->output_count; i++) {
        const struct health_output *o = &h->outputs[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddNumberToObject(item, "allocation", o->allocation);
        cJSON_AddStringToObject(item, "type", element_name(o->type));
        cJSON_AddNumberToObject(item, "bad", (double)o->bad);
        cJSON_AddNumberToObject(item, "nan", (double)o->nans);
        cJSON_AddNumberToObject(item, "inf", (double)o->infinities);
        cJSON_AddNumberToObject(item, "of", (double)o->of);
        cJSON_AddNumberToObject(item, "offset", (double)o->offset);
        add_value(item, "value", o->value);
        cJSON_AddItemToArray(outputs, item);
    }
    cJSON_AddItemToObject(json, "born", birth_json(h));
    cJSON_AddItemToObject(json, "source_allocation", h->source ? cJSON_CreateNumber(h->source) : cJSON_CreateNull());
    cJSON_AddItemToObject(json, "source_launch",
                          h->parent != SIZE_MAX ? cJSON_CreateNumber((double)all->launches[h->parent].launch->number)
                                                : cJSON_CreateNull());
    cJSON_AddStringToObject(json, "source_by", h->source_by);
    return json;
}

static bool print_json(const struct session *s, const struct health *h, size_t only)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "capture", s->capture->path);
    cJSON_AddNumberToObject(root, "launches", (double)s->model->launch_count);
    cJSON_AddNumberToObject(root, "outputs", (double)h->outputs);
    cJSON_AddNumberToObject(root, "unseen", (double)h->unseen);
    cJSON_AddNumberToObject(root, "guessed", (double)h->guessed);
    cJSON_AddBoolToObject(root, "full", h->full);
    cJSON *array = cJSON_AddArrayToObject(root, "bad");
    for (size_t i = 0; i < h->count; i++)
        if (!only || h->launches[i].launch->number == only)
            cJSON_AddItemToArray(array, launch_json(h, &h->launches[i]));
    health_seen_json(root, "health", s);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text)
        printf("%s\n", text);
    free(text);
    return text != NULL;
}

int cmd_trace(const struct options *options)
{
    struct session s;
    struct diag diag;
    struct health h;
    double threshold = INFINITY;
    if (options->argument_count != 1)
        return command_usage("trace wants one capture (ops-debug trace --help)");
    if (options->threshold) {
        char *end;
        threshold = strtod(options->threshold, &end);
        if (!*options->threshold || *end || !(threshold >= 0))
            return command_usage("--threshold wants a number that is not negative, not '%s'", options->threshold);
    }
    enum status status = session_open(options->arguments[0], &s, &diag);
    if (status)
        return command_fail(status, &diag);
    int code = EXIT_NOTHING;
    if (options->launch > s.model->launch_count) {
        code = command_usage("%s has launches 1 to %zu; there is no launch %" PRIu64, s.capture->path,
                             s.model->launch_count, options->launch);
    } else if ((status = health_make(s.model, &s.judgements, threshold, options->full, &h, &diag))) {
        code = command_fail(status, &diag);
    } else {
        code = h.count ? EXIT_FINDINGS : EXIT_NOTHING;
        if (!options->json)
            print_text(&s, &h, (size_t)options->launch, options->verbose);
        else if (!print_json(&s, &h, (size_t)options->launch))
            code = EXIT_INTERNAL;
        health_free(&h);
    }
    session_close(&s);
    return code;
}
