#include "analyzer/report_operators.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyzer/text.h"

enum { SUMMARY_BYTES = 160, SHOWN_ROWS = 20 };

/* ---- added up ---- */

struct row {
    const struct model_operator *op; /* the first one */
    char summary[SUMMARY_BYTES];
    size_t calls, failed, launches;
    uint64_t host_ns;
};

static int by_name(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = strcmp(x->op->name, y->op->name);
    order = order ? order : strcmp(x->summary, y->summary);
    order = order ? order : strcmp(x->op->module_path, y->op->module_path);
    return order ? order : (x->op->number > y->op->number) - (x->op->number < y->op->number);
}

static int by_first(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return (x->op->number > y->op->number) - (x->op->number < y->op->number);
}

static bool failed(const struct model_operator *op)
{
    return op->record->end_seq && op->record->status != 0;
}

/* The calls that do work, one row for what is the same of them. A new array; NULL when there are none. */
static struct row *rows_of(const struct session *s, size_t *count)
{
    const struct model *m = s->model;
    size_t all = 0;
    struct row *rows = m->operator_count ? calloc(m->operator_count, sizeof *rows) : NULL;
    *count = 0;
    for (size_t i = 0; rows && i < m->operator_count; i++) {
        const struct model_operator *op = &m->operators[i];
        if (operator_is_setup(op))
            continue;
        struct row *r = &rows[all++];
        *r = (struct row){
            .op = op, .calls = 1, .failed = failed(op), .launches = op->launches, .host_ns = op->record->host_ns};
        operator_summary(s->capture, op, r->summary, sizeof r->summary);
    }
    if (all)
        qsort(rows, all, sizeof *rows, by_name);
    for (size_t i = 0; i < all; i++) {
        struct row *last = *count ? &rows[*count - 1] : NULL;
        if (last && strcmp(last->op->name, rows[i].op->name) == 0 && strcmp(last->summary, rows[i].summary) == 0 &&
            strcmp(last->op->module_path, rows[i].op->module_path) == 0) {
            last->calls++;
            last->failed += rows[i].failed;
            last->launches += rows[i].launches;
            last->host_ns += rows[i].host_ns;
        } else {
            rows[(*count)++] = rows[i];
        }
    }
    if (*count)
        qsort(rows, *count, sizeof *rows, by_first);
    return rows;
}

void report_operators_text(FILE *out, const struct session *s, struct report_style style)
{
    size_t count;
    struct row *rows = rows_of(s, &count);
    struct text_table t = {
        .columns = s->model->has_paths ? 7 : 6, .right = {false, false, false, true, true, true, false}, .squeeze = 2};
    char calls[24], launches[24], time[24];
    size_t shown = style.verbose || count <= SHOWN_ROWS ? count : SHOWN_ROWS;
    if (count)
        text_table_row(&t, (const char *const[]){"operator", "kind", "what", "calls", "launches", "in call", "module"});
    for (size_t i = 0; i < shown; i++)
        text_table_row(&t,
                       (const char *const[]){rows[i].op->name, operator_kind(rows[i].op), rows[i].summary,
                                             text_number(rows[i].calls, calls), text_number(rows[i].launches, launches),
                                             text_time(rows[i].host_ns, time), rows[i].op->module_path});
    if (count)
        text_table_print(&t, out, "");
    if (shown < count)
        fprintf(out, "and %zu more operators (-v)\n", count - shown);
    if (count)
        fputc('\n', out);
    free(rows);
}

struct tally {
    size_t calls, known, communication;
};

static struct tally count_calls(const struct session *s)
{
    struct tally t = {0};
    for (size_t i = 0; i < s->model->operator_count; i++) {
        const struct model_operator *op = &s->model->operators[i];
        if (operator_is_setup(op))
            continue;
        t.calls++;
        t.known += strcmp(operator_kind(op), "unknown") != 0;
        t.communication += operator_communicates(op);
    }
    return t;
}

void report_operators_coverage(FILE *out, const struct session *s)
{
    struct tally t = count_calls(s);
    if (!t.calls)
        return;
    fprintf(out, "          operators: %zu library call%s, %zu of them with %s meaning", t.calls,
            t.calls == 1 ? "" : "s", t.known, t.known == 1 ? "its" : "their");
    if (t.communication)
        fprintf(out, ", %zu communication", t.communication);
    fputs("; results not judged\n", out);
}

void report_operators_json(cJSON *root, cJSON *coverage, const struct session *s)
{
    size_t count;
    struct row *rows = rows_of(s, &count);
    struct tally t = count_calls(s);
    cJSON *array = cJSON_AddArrayToObject(root, "operators");
    for (size_t i = 0; i < count; i++) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "name", rows[i].op->name);
        cJSON_AddStringToObject(json, "library", operator_library(rows[i].op));
        cJSON_AddStringToObject(json, "kind", operator_kind(rows[i].op));
        cJSON_AddStringToObject(json, "what", rows[i].summary);
        cJSON_AddStringToObject(json, "module_path", rows[i].op->module_path);
        cJSON_AddNumberToObject(json, "calls", (double)rows[i].calls);
        cJSON_AddNumberToObject(json, "failed", (double)rows[i].failed);
        cJSON_AddNumberToObject(json, "launches", (double)rows[i].launches);
        cJSON_AddNumberToObject(json, "call_ns", (double)rows[i].host_ns);
        cJSON_AddNumberToObject(json, "first", (double)rows[i].op->number);
        cJSON_AddItemToArray(array, json);
    }
    cJSON *covered = cJSON_AddObjectToObject(coverage, "operators");
    cJSON_AddNumberToObject(covered, "calls", (double)t.calls);
    cJSON_AddNumberToObject(covered, "known", (double)t.known);
    cJSON_AddNumberToObject(covered, "communication", (double)t.communication);
    free(rows);
}

/* ---- one call ---- */

struct part { /* a parameter or a detail */
    const char *name;
    bool pointer, scalar, number;
    uint64_t value;
    char text[64]; /* what the value means, "" nothing more than the number */
};

static struct part parameter_part(const struct session *s, const struct model_operator *op, uint32_t i)
{
    const struct cap_parameter *p = (const struct cap_parameter *)(op->function + 1) + i;
    struct part part = {.name = capture_string(s->capture, p->name), .value = ((const uint64_t *)(op->record + 1))[i]};
    const char *name = operator_value_name(part.name, op->function->library, part.value);
    part.number = p->kind <= CAP_PARAMETER_ENUM;
    part.pointer = !part.number && p->kind != CAP_PARAMETER_OTHER;
    if (part.number && name)
        snprintf(part.text, sizeof part.text, "%s", name);
    if (operator_scalar(s->capture, op, part.name, part.text, sizeof part.text))
        part.scalar = true;
    return part;
}

static struct part detail_part(const struct session *s, const struct model_operator *op, uint32_t i)
{
    const struct cap_detail_item *item = (const struct cap_detail_item *)(op->detail + 1) + i;
    struct part part = {.name = capture_string(s->capture, item->name), .number = true, .value = item->value[0]};
    const char *name = operator_value_name(part.name, op->function->library, part.value);
    if (item->kind == CAP_DETAIL_BYTES) { /* told with the parameter of that name */
        part.number = false;
        return part;
    }
    part.pointer =
        strcmp(part.name, "bias") == 0 || strcmp(part.name, "aux") == 0 || strncmp(part.name, "comm[", 5) == 0;
    if (name)
        snprintf(part.text, sizeof part.text, "%s", name);
    return part;
}

static size_t part_count(const struct model_operator *op)
{
    return op->function->param_count + (op->detail ? op->detail->count : 0);
}

static struct part part_of(const struct session *s, const struct model_operator *op, size_t i)
{
    uint32_t parameters = op->function->param_count;
    return i < parameters ? parameter_part(s, op, (uint32_t)i) : detail_part(s, op, (uint32_t)(i - parameters));
}

/* The handle's workspace, when the program set one and did not change the stream after it, which takes it back. */
static bool workspace_of(const struct session *s, const struct model_operator *op, uint64_t *address, uint64_t *bytes)
{
    uint64_t handle, other;
    bool found = false;
    if (op->function->library != CAP_LIBRARY_CUBLAS || !operator_number(s->capture, op, "handle", &handle))
        return false;
    for (size_t i = 0; i + 1 < op->number; i++) {
        const struct model_operator *before = &s->model->operators[i];
        if (before->function->library != CAP_LIBRARY_CUBLAS || !operator_is_setup(before) ||
            !operator_number(s->capture, before, "handle", &other) || other != handle || failed(before))
            continue;
        if (operator_number(s->capture, before, "workspace", address))
            found = operator_number(s->capture, before, "workspaceSizeInBytes", bytes);
        else
            found = false;
    }
    return found;
}

/* Which rank of how many a communicator is: the call that made it tells, when it was recorded. The last one counts,
 * since handles are used again. */
static bool rank_of(const struct session *s, const struct model_operator *op, uint64_t *rank, uint64_t *ranks)
{
    uint64_t comm, made;
    bool found = false;
    if (!operator_communicates(op) || !operator_number(s->capture, op, "comm", &comm))
        return false;
    for (size_t i = 0; i + 1 < op->number; i++) {
        const struct model_operator *before = &s->model->operators[i];
        char name[32];
        if (!operator_is_setup(before) || before->function->library != CAP_LIBRARY_NCCL || !before->detail)
            continue;
        for (uint64_t k = 0; k < before->detail->count; k++) {
            snprintf(name, sizeof name, "comm[%" PRIu64 "]", k);
            if (!operator_number(s->capture, before, name, &made) || made != comm)
                continue;
            *rank = k;
            found = operator_number(s->capture, before, "ndev", ranks) ||
                    (operator_number(s->capture, before, "nranks", ranks) &&
                     operator_number(s->capture, before, "rank", rank));
        }
    }
    return found;
}

cJSON *report_operator_json(const struct session *s, const struct model_operator *op)
{
    char text[SUMMARY_BYTES], value[24];
    uint64_t address, bytes, rank, ranks;
    cJSON *json = cJSON_CreateObject();
    operator_summary(s->capture, op, text, sizeof text);
    cJSON_AddNumberToObject(json, "operator", (double)op->number);
    cJSON_AddStringToObject(json, "name", op->name);
    cJSON_AddStringToObject(json, "library", operator_library(op));
    cJSON_AddStringToObject(json, "kind", operator_kind(op));
    cJSON_AddStringToObject(json, "what", text);
    cJSON_AddStringToObject(json, "module_path", op->module_path);
    cJSON_AddNumberToObject(json, "iteration", op->iteration);
    cJSON_AddNumberToObject(json, "stream", op->record->stream);
    cJSON_AddBoolToObject(json, "returned", op->end_seq != 0);
    cJSON_AddNumberToObject(json, "status", op->record->status);
    cJSON_AddNumberToObject(json, "call_ns", (double)op->record->host_ns);
    if (rank_of(s, op, &rank, &ranks)) {
        cJSON_AddNumberToObject(json, "rank", (double)rank);
        cJSON_AddNumberToObject(json, "ranks", (double)ranks);
    }
    cJSON *launches = cJSON_AddArrayToObject(json, "launches");
    for (size_t i = model_first_launch_from(s->model, op->seq); op->launches && i < s->model->launch_count; i++) {
        if (op->end_seq && model_launch_seq(&s->model->launches[i]) > op->end_seq)
            break;
        if (model_launch_place(s->model, &s->model->launches[i])->operator== op->number)
            cJSON_AddItemToArray(launches, cJSON_CreateNumber((double)s->model->launches[i].number));
    }
    cJSON *arguments = cJSON_AddObjectToObject(json, "arguments");
    for (size_t i = 0; i < part_count(op); i++) {
        struct part part = part_of(s, op, i);
        snprintf(value, sizeof value, "0x%" PRIx64, part.value);
        if (*part.text)
            cJSON_AddStringToObject(arguments, part.name, part.text);
        else if (part.pointer)
            cJSON_AddStringToObject(arguments, part.name, value);
        else if (part.number)
            cJSON_AddNumberToObject(arguments, part.name, (double)(int64_t)part.value);
    }
    if (workspace_of(s, op, &address, &bytes)) {
        snprintf(value, sizeof value, "0x%" PRIx64, address);
        cJSON_AddStringToObject(arguments, "workspace", value);
        cJSON_AddNumberToObject(arguments, "workspaceSizeInBytes", (double)bytes);
    }
    cJSON *operands = cJSON_AddArrayToObject(json, "operands");
    struct operand list[OPERANDS_MAX];
    size_t count = operator_operands(s->capture, op, list);
    struct model_live live;
    model_live_start(&live, s->model);
    model_live_advance(&live, op->seq);
    for (size_t i = 0; i < count; i++) {
        const struct model_allocation *a = model_live_find(&live, list[i].address);
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", list[i].name);
        cJSON_AddBoolToObject(one, "written", list[i].written);
        if (list[i].type)
            cJSON_AddStringToObject(one, "type", list[i].type);
        if (list[i].shaped) {
            cJSON_AddNumberToObject(one, "rows", (double)list[i].rows);
            cJSON_AddNumberToObject(one, "columns", (double)list[i].columns);
            cJSON_AddNumberToObject(one, "ld", (double)list[i].ld);
            cJSON_AddNumberToObject(one, "batch", (double)list[i].batch);
            cJSON_AddNumberToObject(one, "stride", (double)list[i].stride);
        }
        if (a) {
            cJSON_AddNumberToObject(one, "allocation", a->id);
            cJSON_AddNumberToObject(one, "allocation_offset", (double)(list[i].address - a->address));
        }
        cJSON_AddItemToArray(operands, one);
    }
    model_live_end(&live);
    return json;
}

static void print_operands(FILE *out, struct session *s, const struct model_operator *op)
{
    struct operand list[OPERANDS_MAX];
    size_t count = operator_operands(s->capture, op, list);
    struct text_table t = {.columns = 6, .squeeze = 5};
    struct model_live live;
    model_live_start(&live, s->model);
    model_live_advance(&live, op->seq);
    text_table_row(&t, (const char *const[]){"operand", "type", "shape", "ld", "use", "where"});
    for (size_t i = 0; i < count; i++) {
        const struct operand *o = &list[i];
        const struct model_allocation *a = model_live_find(&live, o->address);
        char shape[64] = "unknown", ld[24] = "", where[300], place[200] = "";
        if (o->shaped && o->batch > 1)
            snprintf(shape, sizeof shape, "%" PRIu64 "x%" PRIu64 " x %" PRIu64 ", %" PRId64 " apart", o->rows,
                     o->columns, o->batch, o->stride);
        else if (o->shaped)
            snprintf(shape, sizeof shape, "%" PRIu64 "x%" PRIu64, o->rows, o->columns);
        if (o->shaped)
            text_number(o->ld, ld);
        if (a)
            symbols_place(s->symbols, a->record->stack, place, sizeof place);
        if (a)
            snprintf(where, sizeof where, "allocation %u + %" PRIu64 " of %" PRIu64 "%s%s", a->id,
                     o->address - a->address, a->bytes, *place ? ", allocated at " : "", place);
        else
            snprintf(where, sizeof where, "0x%" PRIx64, o->address);
        text_table_row(&t, (const char *const[]){o->name, o->type ? o->type : "?", shape, ld,
                                                 o->list      ? "list of pointers"
                                                 : o->written ? "may be written"
                                                              : "read",
                                                 where});
    }
    if (count)
        text_table_print(&t, out, "  ");
    else
        fputs("  none\n", out);
    text_table_clear(&t);
    model_live_end(&live);
}

static void print_arguments(FILE *out, const struct session *s, const struct model_operator *op)
{
    struct text_table t = {.columns = 3};
    uint64_t address, bytes;
    char value[32];
    text_table_row(&t, (const char *const[]){"argument", "value", "meaning"});
    for (size_t i = 0; i < part_count(op); i++) {
        struct part part = part_of(s, op, i);
        if (!part.pointer && !part.number && !part.scalar)
            continue;
        snprintf(value, sizeof value, part.number && !part.pointer ? "%" PRId64 : "0x%" PRIx64, part.value);
        text_table_row(&t, (const char *const[]){part.name, value, part.text});
    }
    if (workspace_of(s, op, &address, &bytes)) {
        char meaning[64];
        snprintf(value, sizeof value, "0x%" PRIx64, address);
        snprintf(meaning, sizeof meaning, "%" PRIu64 " bytes, set for the handle", bytes);
        text_table_row(&t, (const char *const[]){"workspace", value, meaning});
    }
    text_table_print(&t, out, "  ");
}

void report_operator_text(FILE *out, struct session *s, const struct model_operator *op)
{
    char summary[SUMMARY_BYTES], line[400], time[24];
    uint64_t rank, ranks;
    operator_summary(s->capture, op, summary, sizeof summary);
    snprintf(line, sizeof line, "%s%s%s", op->name, *summary ? " " : "", summary);
    text_fold(out, "", 4, line);
    fprintf(out, "operator %zu of %zu, %s: %s, on stream %u\n", op->number, s->model->operator_count,
            operator_library(op), operator_meaning(op), op->record->stream);
    if (rank_of(s, op, &rank, &ranks))
        fprintf(out, "rank %" PRIu64 " of %" PRIu64 "\n", rank, ranks);
    else if (operator_communicates(op))
        fputs("rank unknown: its communicator was made unseen\n", out);
    if (*op->module_path)
        fprintf(out, "in module %s, iteration %u\n", op->module_path, op->iteration);
    if (!op->end_seq)
        fputs("the call did not return\n", out);
    else
        fprintf(out, "in call %s, %zu launch%s inside%s\n", text_time(op->record->host_ns, time), op->launches,
                op->launches == 1 ? "" : "es", failed(op) ? ", refused" : "");
    if (failed(op))
        fprintf(out, "it returned status %d\n", op->record->status);
    fputs("\noperands\n", out);
    print_operands(out, s, op);
    fputs("\narguments\n", out);
    print_arguments(out, s, op);
    fputs("\ncalled at\n", out);
    const struct symbol_stack *stack = symbols_stack(s->symbols, op->record->stack);
    for (size_t i = 0; i < stack->count; i++)
        if (stack->frames[i].own || stack->own == stack->count)
            fprintf(out, "  %s\n", stack->frames[i].text);
}
