#include "analyzer/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyzer/budget.h"
#include "analyzer/coverage.h"
#include "analyzer/health_seen.h"
#include "analyzer/hints.h"
#include "analyzer/kernel_table.h"
#include "analyzer/marks.h"
#include "analyzer/pattern.h"
#include "analyzer/place.h"
#include "analyzer/report_operators.h"

static void add_u64(cJSON *to, const char *name, uint64_t value)
{
    cJSON_AddNumberToObject(to, name, (double)value);
}

static void add_triple(cJSON *to, const char *name, const uint32_t v[3])
{
    cJSON *array = cJSON_AddArrayToObject(to, name);
    for (int i = 0; i < 3; i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(v[i]));
}

static void add_text(cJSON *to, const char *name, const char *text)
{
    if (text)
        cJSON_AddStringToObject(to, name, text);
    else
        cJSON_AddNullToObject(to, name);
}

/* 0 for the default streams, as programs write it; else a small number that names the stream in this capture. */
static double stream_number(const struct session *s, uint32_t id)
{
    const struct cap_stream *stream = capture_definition(s->capture, CAP_STREAM, id);
    return !stream || stream->kind != CAP_STREAM_CREATED ? 0 : id;
}

static cJSON *launch_json(const struct session *s, const struct finding *f)
{
    const struct model_launch *l = model_launch_by_number(s->model, f->launch);
    if (!l)
        return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    add_u64(json, "seq", l->number);
    const struct model_kernel *kernel = model_launch_kernel(s->model, l, f->node);
    const struct cap_config *config = model_launch_config(s->model, l, f->node);
    cJSON_AddStringToObject(json, "kernel", kernel->name);
    cJSON_AddStringToObject(json, "kernel_full", kernel->full_name);
    add_triple(json, "grid", config->grid);
    add_triple(json, "block", config->block);
    cJSON_AddNumberToObject(json, "stream", stream_number(s, l->record->stream));
    cJSON_AddStringToObject(json, "module_path", model_launch_place(s->model, l)->module_path);
    add_u64(json, "iteration", model_launch_place(s->model, l)->iteration);
    uint64_t step;
    if (marks_step(s->model, model_launch_seq(l), &step))
        add_u64(json, "step", step);
    if (f->window_last)
        add_u64(json, "window_last", f->window_last);
    if (model_launch_graph(l)) {
        add_u64(json, "graph", model_launch_graph(l)->id);
        if (f->node)
            add_u64(json, "node", f->node);
        else
            cJSON_AddNullToObject(json, "node");
        if (f->other_node)
            add_u64(json, "other_node", f->other_node);
    }
    return json;
}

static cJSON *where_json(const struct finding *f)
{
    cJSON *json = cJSON_CreateObject();
    add_text(json, "file", f->file);
    if (f->line)
        add_u64(json, "line", f->line);
    else
        cJSON_AddNullToObject(json, "line");
    add_text(json, "function", f->function);
    if (f->ptx_line)
        add_u64(json, "ptx_line", f->ptx_line);
    else
        cJSON_AddNullToObject(json, "ptx_line");
    if (f->has_thread) {
        add_triple(json, "block", f->block);
        add_triple(json, "thread", f->thread);
    } else {
        cJSON_AddNullToObject(json, "block");
        cJSON_AddNullToObject(json, "thread");
    }
    return json;
}

/* The program's own frames; all of them when none has a line. */
cJSON *report_stack_json(struct session *s, uint32_t id)
{
    const struct symbol_stack *stack = symbols_stack(s->symbols, id);
    bool own = stack->own < stack->count;
    cJSON *json = cJSON_CreateArray();
    for (size_t i = 0; i < stack->count; i++)
        if (!own || stack->frames[i].own)
            cJSON_AddItemToArray(json, cJSON_CreateString(stack->frames[i].text));
    return json;
}

static cJSON *allocation_json(struct session *s, const struct finding *f)
{
    const struct model_allocation *a = model_allocation_by_id(s->model, f->allocation);
    if (!a)
        return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    add_u64(json, "id", a->id);
    add_u64(json, "bytes", a->bytes);
    if (a->parent)
        add_u64(json, "region_of", a->parent->id);
    cJSON_AddNumberToObject(json, "offset", (double)f->offset);
    cJSON_AddItemToObject(json, "stack", report_stack_json(s, a->record->stack));
    if (a->free_stack)
        cJSON_AddItemToObject(json, "free_stack", report_stack_json(s, a->free_stack));
    return json;
}

cJSON *report_finding_json(struct session *s, const struct finding *f, size_t id)
{
    cJSON *json = cJSON_CreateObject();
    add_u64(json, "id", id);
    cJSON_AddStringToObject(json, "class", finding_class_name(f->class));
    cJSON_AddStringToObject(json, "severity", finding_severity_name(f->severity));
    cJSON_AddNumberToObject(json, "confidence", f->confidence);
    char *headline = report_headline(s, f);
    cJSON_AddStringToObject(json, "text", headline ? headline : "");
    free(headline);
    cJSON_AddItemToObject(json, "launch", launch_json(s, f));
    cJSON *launches = cJSON_AddArrayToObject(json, "launches");
    for (size_t i = 0; i < f->launch_count; i++)
        cJSON_AddItemToArray(launches, cJSON_CreateNumber((double)f->launches[i]));
    cJSON_AddItemToObject(json, "where", where_json(f));
    cJSON_AddItemToObject(json, "allocation", allocation_json(s, f));
    if (f->stack)
        cJSON_AddItemToObject(json, "stack", report_stack_json(s, f->stack));
    cJSON *evidence = cJSON_AddArrayToObject(json, "evidence");
    for (size_t i = 0; i < f->evidence_count; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "kind", f->evidence[i].kind);
        cJSON_AddStringToObject(item, "text", f->evidence[i].text);
        cJSON_AddItemToArray(evidence, item);
    }
    cJSON_AddStringToObject(json, "cure", finding_cure(f));
    cJSON *next = cJSON_AddArrayToObject(json, "next");
    for (size_t i = 0; i < f->next_count; i++)
        cJSON_AddItemToArray(next, cJSON_CreateString(f->next[i]));
    return json;
}

static void add_kernels(cJSON *root, const struct session *s)
{
    struct kernel_table k = kernel_table_of(s->model, &s->judgements);
    cJSON *array = cJSON_AddArrayToObject(root, "kernels");
    for (size_t i = 0; i < k.count; i++) {
        const struct kernel_row *r = &k.rows[i];
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "name", r->kernel->name);
        cJSON_AddStringToObject(json, "full_name", r->kernel->full_name);
        add_u64(json, "launches", r->launches);
        add_u64(json, "launch_ns", r->launch_ns);
        add_u64(json, "device_ns", r->device_ns);
        add_u64(json, "wait_ns", r->wait_ns);
        bool bounded = r->bounded == r->launches;
        add_u64(json, "bound_ns", bounded ? r->bound_ns : 0);
        cJSON_AddStringToObject(json, "bound_by",
                                bound_name(!bounded                        ? BOUND_UNKNOWN
                                           : r->memory_ns >= r->compute_ns ? BOUND_MEMORY
                                                                           : BOUND_COMPUTE));
        add_u64(json, "timed_launches", r->timed);
        cJSON_AddItemToArray(array, json);
    }
    free(k.rows);
}

static void add_patterns(cJSON *root, const struct session *s)
{
    struct patterns all = patterns_of(s->model, &s->judgements);
    cJSON *array = cJSON_AddArrayToObject(root, "patterns");
    for (size_t i = 0; i < all.count; i++) {
        const struct pattern *p = &all.items[i];
        const struct judgement_frame *frame = place_frame(p->place);
        char text[PATTERN_TEXT];
        cJSON *json = cJSON_CreateObject();
        pattern_text(p, text);
        cJSON_AddStringToObject(json, "kind", judgement_pattern_kind_name(p->kind));
        cJSON_AddStringToObject(json, "kernel", p->kernel->name);
        if (frame)
            cJSON_AddStringToObject(json, "file", frame->file);
        if (frame)
            cJSON_AddNumberToObject(json, "line", frame->line);
        cJSON_AddNumberToObject(json, "ptx_line", p->place->ptx_line);
        add_u64(json, "launch", p->launch);
        add_u64(json, "launches", p->launches);
        add_u64(json, "requests", p->requests);
        add_u64(json, "actual", p->actual);
        add_u64(json, "ideal", p->ideal);
        cJSON_AddStringToObject(json, "text", text);
        cJSON_AddItemToArray(array, json);
    }
    free(all.items);
}

/* `strategy`: by which one the launches were checked, NULL: goes without saying. */
static void add_verdict(cJSON *to, const char *name, const struct coverage_verdict *v, const char *strategy)
{
    cJSON *json = cJSON_AddObjectToObject(to, name);
    add_u64(json, "checked", v->checked);
    if (strategy) {
        cJSON *by = cJSON_AddObjectToObject(json, "by");
        if (v->checked)
            add_u64(by, strategy, v->checked);
    }
    cJSON *not = cJSON_AddObjectToObject(json, "not");
    for (size_t i = 0; i < v->reasons; i++)
        add_u64(not, v->not [i].reason, v->not [i].count);
}

static void add_coverage(cJSON *root, const struct session *s)
{
    struct coverage c = coverage_of(s->model, &s->judgements);
    cJSON *json = cJSON_AddObjectToObject(root, "coverage");
    add_u64(json, "launches", c.launches);
    add_verdict(json, "as_written", &c.as_written, NULL);
    add_verdict(json, "operator", &c.operator, "shadow");
    add_u64(json, "sentinel_checks", s->capture->header.sentinel_checks);
    budget_json(json, s->capture);
    report_operators_json(root, json, s);
    struct coverage_memory memory = coverage_memory_of(s->model);
    add_u64(json, "allocations", memory.allocations);
    add_u64(json, "redzones", memory.redzones);
    add_u64(json, "guarded", memory.guarded);
}

static void add_overhead(cJSON *root, const struct session *s)
{
    const struct cap_header *h = &s->capture->header;
    uint64_t own_ns = capture_ticks_ns(s->capture, h->own_tsc);
    uint64_t wall = h->mono_now_ns > h->mono_start_ns ? h->mono_now_ns - h->mono_start_ns : 0;
    cJSON *json = cJSON_AddObjectToObject(root, "overhead");
    uint64_t start_ns = capture_start_ns(s->capture);
    add_u64(json, "ns_per_launch", s->model->launch_count ? (own_ns - start_ns) / s->model->launch_count : 0);
    add_u64(json, "start_ns", start_ns);
    cJSON_AddNumberToObject(json, "share", wall ? (double)own_ns / (double)wall : 0);
    add_u64(json, "memory_peak", h->memory_peak);
    add_u64(json, "memory_limit", h->memory_limit);
    add_u64(json, "memory_refused", h->memory_refused);
}

static void add_health(cJSON *root, const struct session *s)
{
    cJSON *json = cJSON_AddObjectToObject(root, "capture_state");
    const struct capture *c = s->capture;
    add_u64(json, "rejected_records", c->rejected.count);
    add_u64(json, "dropped_records", c->header.dropped_records);
    add_u64(json, "dropped_snapshots", c->header.dropped_snapshots);
    cJSON_AddBoolToObject(json, "ended", s->model->end != NULL);
    cJSON_AddBoolToObject(json, "stepped_aside", c->header.state == CAP_STEPPED_ASIDE);
    cJSON *notes = cJSON_AddArrayToObject(json, "notes");
    for (size_t i = 0; i < s->model->note_count; i++)
        cJSON_AddItemToArray(notes, cJSON_CreateString(capture_string(c, s->model->notes[i]->text)));
}

static void add_hint(void *context, const char *text)
{
    cJSON_AddItemToArray(context, cJSON_CreateString(text));
}

static void add_program(cJSON *root, const struct capture *c)
{
    cJSON *array = cJSON_AddArrayToObject(root, "program");
    for (const char *arg = c->header.command; *arg; arg += strlen(arg) + 1) {
        char *copy = strdup(arg);
        for (char *p = copy; p && *p; p++)
            if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
                *p = '?';
        cJSON_AddItemToArray(array, cJSON_CreateString(copy ? copy : ""));
        free(copy);
    }
}

static void add_processes(cJSON *root, const struct capture *c)
{
    cJSON *array = cJSON_AddArrayToObject(root, "processes");
    for (size_t i = 0; i < c->process_count; i++) {
        char *path;
        if (asprintf(&path, "%s/%s", c->path, c->processes[i]) < 0)
            continue;
        cJSON_AddItemToArray(array, cJSON_CreateString(path));
        free(path);
    }
}

bool report_json(FILE *out, struct session *s)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "capture", s->capture->path);
    add_program(root, s->capture);
    cJSON_AddStringToObject(root, "device", s->model->device ? capture_string(s->capture, s->model->device->name) : "");
    cJSON *findings = cJSON_AddArrayToObject(root, "findings");
    cJSON *notes = cJSON_CreateArray(); /* added later, to keep the fixed members in front */
    for (size_t i = 0; i < s->findings.count; i++) {
        bool note = s->findings.items[i].severity == FINDING_NOTE;
        cJSON_AddItemToArray(note ? notes : findings, report_finding_json(s, &s->findings.items[i], i + 1));
    }
    add_kernels(root, s);
    add_coverage(root, s);
    add_overhead(root, s);
    cJSON_AddItemToObject(root, "notes", notes);
    add_patterns(root, s);
    hints_each(s, add_hint, cJSON_AddArrayToObject(root, "hints"));
    health_seen_json(root, "health", s);
    add_health(root, s);
    add_processes(root, s->capture);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text)
        return false;
    fprintf(out, "%s\n", text);
    free(text);
    return true;
}
