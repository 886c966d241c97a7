#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyzer/attribute.h"
#include "analyzer/commands.h"
#include "analyzer/name.h"
#include "analyzer/place.h"
#include "analyzer/report.h"
#include "analyzer/text.h"
#include "common/buf.h"

enum { SHOWN_INPUTS = 3 };

/* ---- text ---- */

static const char *value_text(struct attribute_value v, enum element_type type, char out[32])
{
    if (!v.known)
        snprintf(out, 32, "-");
    else if (isnan(v.value))
        snprintf(out, 32, "nan"); /* whatever its sign */
    else
        snprintf(out, 32, element_floating(type) ? "%.8g" : "%.0f", v.value);
    return out;
}

static const char *difference_text(struct attribute_value a, struct attribute_value b, char out[32])
{
    if (a.known && b.known && isnan(a.value) && isnan(b.value))
        snprintf(out, 32, "0");
    else if (a.known && b.known)
        snprintf(out, 32, "%.3g", a.value == b.value ? 0.0 : a.value - b.value);
    else
        snprintf(out, 32, "-");
    return out;
}

static void print_rows(const struct attribute *a)
{
    struct text_table t = {.columns = 8, .right = {true, true, true, true, true, true}};
    size_t inputs = a->input_count < SHOWN_INPUTS ? a->input_count : SHOWN_INPUTS;
    char titles[SHOWN_INPUTS][32];
    const char *cells[TEXT_COLUMNS] = {"element", "before", "device", "reference", "fp64", "off fp64"};
    size_t at = 6;
    for (size_t i = 0; i < inputs; i++, at++) {
        snprintf(titles[i], sizeof titles[i], "in %u", a->inputs[i]->id);
        cells[at] = titles[i];
        t.right[at] = true;
    }
    bool origins = false, writers = false; /* columns that hold anything */
    for (size_t k = 0; k < a->row_count; k++) {
        origins = origins || a->rows[k].origin.ptx_line;
        writers = writers || a->rows[k].stored.ptx_line;
    }
    t.squeeze = at;
    if (origins)
        cells[at++] = "error made at";
    if (writers)
        cells[at++] = "stored by";
    t.columns = at;
    text_table_row(&t, cells);
    for (size_t k = 0; k < a->row_count; k++) {
        const struct attribute_row *r = &a->rows[k];
        char element[24], before[32], device[32], mark[40], reference[32], wide[32], off[32], in[SHOWN_INPUTS][32];
        char origin[PLACE_TEXT_BYTES] = "", who[PLACE_THREAD_BYTES] = "";
        snprintf(mark, sizeof mark, "%s%s", r->bits_differ ? "!" : "", value_text(r->device, a->type, device));
        const struct judgement_frame *frame = place_frame(&r->origin);
        if (frame)
            snprintf(origin, sizeof origin, "%.100s:%u", name_file(frame->file), frame->line);
        else if (r->origin.ptx_line)
            place_text(&r->origin, origin);
        if (r->stored.ptx_line)
            place_thread(&r->stored, who);
        const char *row[TEXT_COLUMNS] = {text_number(r->element, element),
                                         value_text(r->before, a->type, before),
                                         mark,
                                         value_text(r->reference, a->type, reference),
                                         value_text(r->wide, ELEMENT_F64, wide),
                                         difference_text(r->device, r->wide, off)};
        at = 6;
        for (size_t i = 0; i < inputs; i++)
            row[at++] = value_text(r->inputs[i], a->type, in[i]);
        if (origins)
            row[at++] = origin;
        if (writers)
            row[at++] = who;
        text_table_row(&t, row);
    }
    text_table_print(&t, stdout, "  ");
}

static void buffer_row(struct text_table *t, const struct attribute_buffer *b, const char *when,
                       const struct element_statistics *s)
{
    char id[24], count[24], min[32], max[32], mean[32], nans[24], infinities[24], zeros[24];
    snprintf(min, sizeof min, "%.6g", s->min);
    snprintf(max, sizeof max, "%.6g", s->max);
    snprintf(mean, sizeof mean, "%.6g", s->mean);
    text_table_row(t, (const char *const[]){text_number(b->allocation->id, id), element_name(b->type),
                                            text_number(s->count, count), when, s->finite ? min : "-",
                                            s->finite ? max : "-", s->finite ? mean : "-", text_number(s->nans, nans),
                                            text_number(s->infinities, infinities), text_number(s->zeros, zeros)});
}

static void print_buffers(const struct attribute *a)
{
    struct text_table t = {.columns = 10, .right = {true, false, true, false, true, true, true, true, true, true}};
    text_table_row(&t, (const char *const[]){"allocation", "type", "elements", "when", "min", "max", "mean", "NaN",
                                             "Inf", "zeros"});
    for (size_t i = 0; i < a->buffer_count; i++) {
        const struct attribute_buffer *b = &a->buffers[i];
        if (b->has_before)
            buffer_row(&t, b, "before", &b->before);
        if (b->has_after)
            buffer_row(&t, b, b->stored ? "after, stored" : "after", &b->after);
    }
    text_table_print(&t, stdout, "  ");
}

static void print_text(struct session *s, const struct attribute *a, const struct finding *f, size_t id)
{
    char line[640], place[200];
    if (f) {
        char first[64], *headline = report_headline(s, f);
        snprintf(first, sizeof first, "finding %zu, %s: ", id, finding_class_name(f->class));
        text_fold(stdout, first, 4, headline ? headline : "");
        free(headline);
    }
    symbols_place(s->symbols, a->allocation->record->stack, place, sizeof place);
    snprintf(line, sizeof line, "launch %u, %.200s; allocation %u of %" PRIu64 " bytes%s%s, as %s%s", a->launch->number,
             a->launch->kernel->name, a->allocation->id, a->allocation->bytes, *place ? ", allocated at " : "", place,
             element_name(a->type), a->type_guessed ? " (a guess; --type names it)" : "");
    text_fold(stdout, "", 4, line);
    if (f && f->allocation == a->allocation->id && f->offset >= 0 && (uint64_t)f->offset >= a->allocation->bytes)
        printf("the access lies past its end, at offset %" PRId64 "; these are its last elements\n", f->offset);
    const struct judgement *j = judgements_find(&s->judgements, a->launch->number);
    if (j && j->fault_count)
        puts("the launch has a fault: from there on reference and device need not agree");
    if (*a->reason)
        printf("no reference: %s%s%s\n", a->reason, *a->detail ? ": " : "", a->detail);
    putchar('\n');
    print_rows(a);
    putchar('\n');
    snprintf(line, sizeof line,
             "reference: its PTX on the CPU; fp64: the same path in double precision; !: the device's bits differ from "
             "the reference's%s",
             a->input_count ? "; in N: the same element of allocation N before the launch" : "");
    text_fold(stdout, "  ", 2, line);
    putchar('\n');
    print_buffers(a);
}

/* ---- JSON ---- */

/* Numbers that JSON lacks are texts. */
static void add_value(cJSON *to, const char *name, struct attribute_value v)
{
    if (!v.known)
        cJSON_AddNullToObject(to, name);
    else if (isfinite(v.value))
        cJSON_AddNumberToObject(to, name, v.value);
    else
        cJSON_AddStringToObject(to, name, isnan(v.value) ? "nan" : v.value > 0 ? "inf" : "-inf");
}

static cJSON *access_json(const struct judgement_access *a, bool thread)
{
    if (!a->ptx_line)
        return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    const struct judgement_frame *frame = place_frame(a);
    if (frame) {
        cJSON_AddStringToObject(json, "file", frame->file);
        cJSON_AddNumberToObject(json, "line", frame->line);
    }
    cJSON_AddNumberToObject(json, "ptx_line", a->ptx_line);
    for (int which = 0; thread && which < 2; which++) {
        cJSON *array = cJSON_AddArrayToObject(json, which ? "thread" : "block");
        for (int i = 0; i < 3; i++)
            cJSON_AddItemToArray(array, cJSON_CreateNumber(which ? a->thread[i] : a->block[i]));
    }
    return json;
}

static cJSON *statistics_json(const struct element_statistics *s)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "count", (double)s->count);
    add_value(json, "min", (struct attribute_value){s->finite > 0, s->min});
    add_value(json, "max", (struct attribute_value){s->finite > 0, s->max});
    add_value(json, "mean", (struct attribute_value){s->finite > 0, s->mean});
    cJSON_AddNumberToObject(json, "nan", (double)s->nans);
    cJSON_AddNumberToObject(json, "inf", (double)s->infinities);
    cJSON_AddNumberToObject(json, "zeros", (double)s->zeros);
    return json;
}

static cJSON *row_json(const struct attribute *a, const struct attribute_row *r)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "element", (double)r->element);
    cJSON_AddNumberToObject(json, "offset", (double)r->offset);
    add_value(json, "before", r->before);
    add_value(json, "device", r->device);
    add_value(json, "reference", r->reference);
    add_value(json, "fp64", r->wide);
    cJSON_AddBoolToObject(json, "bits_differ", r->bits_differ);
    add_value(json, "error_fp64",
              (struct attribute_value){r->device.known && r->wide.known, r->device.value - r->wide.value});
    cJSON *inputs = cJSON_AddObjectToObject(json, "inputs");
    for (size_t i = 0; i < a->input_count; i++) {
        char name[24];
        add_value(inputs, text_number(a->inputs[i]->id, name), r->inputs[i]);
    }
    cJSON_AddItemToObject(json, "origin", access_json(&r->origin, false));
    cJSON_AddItemToObject(json, "stored_by", access_json(&r->stored, true));
    return json;
}

static bool print_json(const struct session *s, const struct attribute *a, size_t id)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "capture", s->capture->path);
    cJSON_AddItemToObject(root, "finding", id ? cJSON_CreateNumber((double)id) : cJSON_CreateNull());
    cJSON_AddNumberToObject(root, "seq", (double)a->launch->number);
    cJSON_AddStringToObject(root, "kernel", a->launch->kernel->name);
    cJSON_AddNumberToObject(root, "allocation", a->allocation->id);
    cJSON_AddStringToObject(root, "type", element_name(a->type));
    cJSON_AddBoolToObject(root, "type_guessed", a->type_guessed);
    cJSON_AddItemToObject(root, "no_reference", *a->reason ? cJSON_CreateString(a->reason) : cJSON_CreateNull());
    cJSON *rows = cJSON_AddArrayToObject(root, "elements");
    for (size_t i = 0; i < a->row_count; i++)
        cJSON_AddItemToArray(rows, row_json(a, &a->rows[i]));
    cJSON *buffers = cJSON_AddArrayToObject(root, "buffers");
    for (size_t i = 0; i < a->buffer_count; i++) {
        const struct attribute_buffer *b = &a->buffers[i];
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "allocation", b->allocation->id);
        cJSON_AddStringToObject(json, "type", element_name(b->type));
        cJSON_AddBoolToObject(json, "stored", b->stored);
        cJSON_AddItemToObject(json, "before", b->has_before ? statistics_json(&b->before) : cJSON_CreateNull());
        cJSON_AddItemToObject(json, "after", b->has_after ? statistics_json(&b->after) : cJSON_CreateNull());
        cJSON_AddItemToArray(buffers, json);
    }
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text)
        printf("%s\n", text);
    free(text);
    return text != NULL;
}

/* ---- the request ---- */

static bool parse_range(const char *text, struct attribute_request *r)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    r->from = strtoull(text, &end, 10);
    r->to = r->from + 1;
    if (*end == ':' && end[1] >= '0' && end[1] <= '9')
        r->to = strtoull(end + 1, &end, 10);
    r->has_range = true;
    return *end == '\0';
}

/* Returns an exit code, EXIT_NOTHING when all is well. */
static int take_options(const struct session *s, const struct options *o, struct attribute_request *r)
{
    r->around = -1;
    if (o->type && !element_parse(o->type, &r->type))
        return command_usage("--type is one of %s, not '%s'", element_names(), o->type);
    r->has_type = o->type != NULL;
    if (o->elements && !parse_range(o->elements, r))
        return command_usage("--elements wants FROM:TO, not '%s'", o->elements);
    if (o->launch && !(r->launch = model_launch_by_number(s->model, (size_t)o->launch)))
        return command_usage("%s has launches 1 to %zu; there is no launch %" PRIu64, s->capture->path,
                             s->model->launch_count, o->launch);
    if (o->allocation &&
        (o->allocation > UINT32_MAX || !(r->allocation = model_allocation_by_id(s->model, (uint32_t)o->allocation))))
        return command_usage("%s has no allocation %" PRIu64, s->capture->path, o->allocation);
    return EXIT_NOTHING;
}

enum { LISTED_FINDINGS = 8 };

/* Without a number: the only finding there is. Else one line says which there are. */
static int only_finding(const struct session *s, size_t *id)
{
    struct buf b = {0};
    *id = 1;
    if (s->findings.count == 1)
        return EXIT_NOTHING;
    if (!s->findings.count)
        return command_usage("%s has no findings; --launch N looks at a launch", s->capture->path);
    for (size_t i = 0; i < s->findings.count && i < LISTED_FINDINGS; i++) {
        const struct finding *f = &s->findings.items[i];
        buf_printf(&b, "%s%zu %s", i ? ", " : "", i + 1, finding_class_name(f->class));
        if (f->launch)
            buf_printf(&b, " (launch %zu)", f->launch);
    }
    int code = command_usage("%s has %zu findings; attribute wants the number of one: %s%s", s->capture->path,
                             s->findings.count, b.failed || !b.data ? "1" : b.data,
                             s->findings.count > LISTED_FINDINGS ? ", ..." : "");
    buf_free(&b);
    return code;
}

static int numbered_finding(const struct session *s, const char *text, size_t *id)
{
    char *end;
    *id = strtoull(text, &end, 10);
    if (!*text || *end)
        return command_usage("attribute wants the number of a finding, not '%s'", text);
    if (*id == 0 || *id > s->findings.count)
        return command_usage("%s has %zu findings; there is no finding %s", s->capture->path, s->findings.count, text);
    return EXIT_NOTHING;
}

static int take_finding(const struct session *s, const struct options *o, size_t *id, struct attribute_request *r)
{
    int code = o->argument_count == 2 ? numbered_finding(s, o->arguments[1], id) : only_finding(s, id);
    if (code)
        return code;
    const struct finding *f = &s->findings.items[*id - 1];
    if (!r->launch && !f->window_last)
        r->launch = model_launch_by_number(s->model, f->launch);
    if (!r->launch)
        return command_usage("finding %zu names no single launch; next: %s", *id,
                             f->next_count ? f->next[0] : "run --preset deep");
    const struct model_allocation *a = model_allocation_by_id(s->model, f->allocation);
    /* A freed buffer has no contents: look at what the launch made of it. */
    if (!r->allocation && a && f->class != FINDING_USE_AFTER_FREE) {
        r->allocation = a;
        r->around = f->offset > 0 ? f->offset : 0;
    }
    return EXIT_NOTHING;
}

int cmd_attribute(const struct options *options)
{
    struct session s;
    struct diag diag;
    struct attribute_request request = {0};
    struct attribute a;
    size_t id = 0;
    if (options->argument_count != 1 && options->argument_count != 2)
        return command_usage("attribute wants a capture and the number of a finding, or --launch (ops-debug attribute "
                             "--help)");
    enum status status = session_open(options->arguments[0], &s, &diag);
    if (status)
        return command_fail(status, &diag);
    session_classify(&s);
    int code = take_options(&s, options, &request);
    if (!code && (options->argument_count == 2 || !options->launch))
        code = take_finding(&s, options, &id, &request);
    if (!code && (status = attribute_make(s.model, &request, &a, &diag))) {
        code = command_fail(status, &diag);
    } else if (!code) {
        if (!options->json)
            print_text(&s, &a, id ? &s.findings.items[id - 1] : NULL, id);
        else if (!print_json(&s, &a, id))
            code = EXIT_INTERNAL;
        attribute_free(&a);
    }
    session_close(&s);
    return code;
}
