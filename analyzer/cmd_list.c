#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <cjson/cJSON.h>

#include "analyzer/bound.h"
#include "analyzer/commands.h"
#include "analyzer/model_graph.h"
#include "analyzer/marks.h"
#include "analyzer/report_operators.h"
#include "analyzer/selection.h"
#include "analyzer/session.h"
#include "analyzer/text.h"

static const char *verdict_text(const struct session *s, const struct model_launch *l)
{
    const struct judgement *j = judgements_find(&s->judgements, l->number);
    if (!j)
        return "-";
    if (j->verdict != JUDGEMENT_CHECKED)
        return j->reason ? j->reason : "unknown";
    return j->fault_count || j->difference_count ? "faults" : "as written";
}

static void shape_text(const struct model_launch *l, const uint32_t v[3], char out[40])
{
    if (model_launch_graph(l))
        snprintf(out, 40, "-");
    else if (v[2] != 1)
        snprintf(out, 40, "%ux%ux%u", v[0], v[1], v[2]);
    else if (v[1] != 1)
        snprintf(out, 40, "%ux%u", v[0], v[1]);
    else
        snprintf(out, 40, "%u", v[0]);
}

static void list_marks(const struct session *s, struct text_table *t, size_t *next, uint64_t seq)
{
    for (; *next < s->model->mark_count && s->model->marks[*next].record->head.seq < seq; ++*next) {
        const struct model_mark *mark = &s->model->marks[*next];
        char text[200];
        marks_text(s->model, mark, text, sizeof text);
        text_table_row(t, (const char *const[]){"mark", text, "", "", "", "", "", "", "", mark->module_path});
    }
}

/* Library calls, in their place among the launches; those that only set something up with `verbose`. */
static void list_operators(const struct session *s, struct text_table *t, size_t *next, uint64_t seq, bool verbose)
{
    for (; *next < s->model->operator_count && s->model->operators[*next].seq < seq; ++*next) {
        const struct model_operator *op = &s->model->operators[*next];
        char number[32], summary[160], line[260], stream[24], call[24];
        if (operator_is_setup(op) && !verbose)
            continue;
        snprintf(number, sizeof number, "op%zu", op->number);
        operator_summary(s->capture, op, summary, sizeof summary);
        snprintf(line, sizeof line, "%.80s%s%s", op->name, *summary ? " " : "", summary);
        text_table_row(t, (const char *const[]){number, line, "", "", text_number(op->record->stream, stream),
                                                text_time(op->record->host_ns, call), "", "", operator_kind(op),
                                                op->module_path});
    }
}

static void list_text(const struct session *s, struct selection *selection, bool verbose, bool operators)
{
    size_t next = 0, next_mark = 0;
    /* The last column is there only when there is something to say in it. */
    struct text_table t = {.columns = s->model->has_paths ? 10 : 9,
                           .right = {true, false, false, false, true, true, true, true, false, false},
                           .squeeze = 1};
    text_table_row(&t, (const char *const[]){"launch", "kernel", "grid", "block", "stream", "launch", "device", "wait",
                                             "verdict", "module"});
    for (size_t i = 0; i < s->model->launch_count; i++) {
        const struct model_launch *l = &s->model->launches[i];
        const char *module = model_launch_place(s->model, l)->module_path;
        char number[24], grid[40], block[40], stream[24], launch[24], device[24], wait[24];
        if (operators)
            list_operators(s, &t, &next, model_launch_seq(l), verbose);
        if (operators)
            list_marks(s, &t, &next_mark, model_launch_seq(l));
        if (!selection_takes(selection, l))
            continue;
        shape_text(l, l->config->grid, grid);
        shape_text(l, l->config->block, block);
        text_table_row(&t, (const char *const[]){text_number(l->number, number),
                                                 verbose ? l->kernel->full_name : l->kernel->name, grid, block,
                                                 text_number(l->record->stream, stream),
                                                 text_time(model_launch_host_ns(l), launch),
                                                 l->time_source ? text_time(l->device_ns, device) : "-",
                                                 text_time(l->wait_ns, wait), verdict_text(s, l), module});
    }
    if (operators)
        list_operators(s, &t, &next, UINT64_MAX, verbose);
    if (operators)
        list_marks(s, &t, &next_mark, UINT64_MAX);
    text_table_print(&t, stdout, "");
}

static void add_shape(cJSON *to, const char *name, const uint32_t v[3])
{
    cJSON *array = cJSON_AddArrayToObject(to, name);
    for (int i = 0; i < 3; i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(v[i]));
}

static cJSON *mark_json(const struct session *s, const struct model_mark *mark)
{
    static const char *const kinds[] = {"step", "mark", "checkpoint", "assert-finite"};
    struct mark_values v;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kind", kinds[mark->record->kind]);
    cJSON_AddStringToObject(json, "text", capture_string(s->capture, mark->record->text));
    cJSON_AddNumberToObject(json, "before_launch",
                            (double)(model_first_launch_from(s->model, mark->record->head.seq) + 1));
    if (mark->has_step)
        cJSON_AddNumberToObject(json, "step", (double)mark->step);
    cJSON_AddStringToObject(json, "module_path", mark->module_path);
    if (marks_values(s->model, mark, &v)) {
        cJSON_AddNumberToObject(json, "elements", (double)v.elements);
        cJSON_AddNumberToObject(json, "nans", (double)v.nans);
        cJSON_AddNumberToObject(json, "infinities", (double)v.infinities);
    }
    return json;
}

static bool list_json(const struct session *s, struct selection *selection, bool with_operators)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "capture", s->capture->path);
    cJSON *array = cJSON_AddArrayToObject(root, "launches");
    struct bound_walk walk;
    bound_walk_start(&walk, s->model, &s->judgements);
    for (size_t i = 0; i < s->model->launch_count; i++) {
        const struct model_launch *l = &s->model->launches[i];
        const struct model_place *place = model_launch_place(s->model, l);
        struct bound bound = bound_walk_next(&walk, l);
        if (!selection_takes(selection, l))
            continue;
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "seq", (double)l->number);
        cJSON_AddStringToObject(json, "kernel", l->kernel->name);
        add_shape(json, "grid", l->config->grid);
        add_shape(json, "block", l->config->block);
        cJSON_AddNumberToObject(json, "stream", l->record->stream);
        cJSON_AddNumberToObject(json, "launch_ns", (double)model_launch_host_ns(l));
        if (l->time_source)
            cJSON_AddNumberToObject(json, "device_ns", (double)l->device_ns);
        else
            cJSON_AddNullToObject(json, "device_ns");
        cJSON_AddNumberToObject(json, "wait_ns", (double)l->wait_ns);
        cJSON_AddNumberToObject(json, "bound_ns", (double)bound.ns);
        cJSON_AddStringToObject(json, "bound_by", bound_name(bound.by));
        cJSON_AddNumberToObject(json, "bytes_moved", (double)bound.bytes);
        cJSON_AddBoolToObject(json, "bytes_counted", bound.counted);
        cJSON_AddNumberToObject(json, "operations", (double)bound.operations);
        if (model_launch_graph(l))
            cJSON_AddNumberToObject(json, "graph", model_launch_graph(l)->id);
        cJSON_AddStringToObject(json, "verdict", verdict_text(s, l));
        cJSON_AddStringToObject(json, "module_path", place->module_path);
        cJSON_AddNumberToObject(json, "iteration", place->iteration);
        if (place->operator)
            cJSON_AddNumberToObject(json, "operator", (double)place->operator);
        cJSON_AddItemToArray(array, json);
    }
    bound_walk_end(&walk);
    cJSON *marks = cJSON_AddArrayToObject(root, "marks");
    for (size_t i = 0; with_operators && i < s->model->mark_count; i++)
        cJSON_AddItemToArray(marks, mark_json(s, &s->model->marks[i]));
    cJSON *operators = cJSON_AddArrayToObject(root, "operators");
    for (size_t i = 0; with_operators && i < s->model->operator_count; i++)
        cJSON_AddItemToArray(operators, report_operator_json(s, &s->model->operators[i]));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text)
        printf("%s\n", text);
    free(text);
    return text != NULL;
}

int cmd_list(const struct options *options)
{
    struct session s;
    struct selection selection;
    int code = command_open("list", options, &s, &selection);
    if (code)
        return code;
    /* A filter is about launches. */
    bool operators = !selection.has_pattern && !selection.launch && !selection.skip && !selection.count;
    if (!options->json)
        list_text(&s, &selection, options->verbose, operators);
    else if (!list_json(&s, &selection, operators))
        code = EXIT_INTERNAL;
    selection_end(&selection);
    session_close(&s);
    return code;
}
