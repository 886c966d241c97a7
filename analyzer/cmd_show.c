#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyzer/commands.h"
#include "analyzer/marks.h"
#include "analyzer/model_graph.h"
#include "analyzer/report.h"
#include "analyzer/report_operators.h"
#include "analyzer/session.h"
#include "analyzer/text.h"

static const char *alloc_kind_name(uint32_t kind)
{
    static const char *const names[] = {"device", "pitched", "managed", "host",     "registered",
                                        "async",  "pool",    "mapped",  "variable", "imported"};
    return kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static void print_arguments(struct session *s, const struct model_launch *l)
{
    size_t count;
    struct report_argument *args = report_arguments(s->model, l, &count);
    struct text_table t = {.columns = 5, .right = {true, true, true, true, false}, .squeeze = 4};
    text_table_row(&t, (const char *const[]){"argument", "offset", "size", "value", "meaning"});
    for (size_t i = 0; i < count; i++) {
        char number[24], offset[24], size[24], value[24], meaning[320];
        snprintf(value, sizeof value, "0x%" PRIx64, args[i].value);
        report_argument_text(s, &args[i], model_launch_seq(l), meaning, sizeof meaning);
        text_table_row(&t, (const char *const[]){text_number(i, number), text_number(args[i].offset, offset),
                                                 text_number(args[i].size, size), value, meaning});
    }
    if (!args)
        puts("  they were not recorded");
    else if (count)
        text_table_print(&t, stdout, "  ");
    else
        puts("  none");
    text_table_clear(&t);
    free(args);
}

/* What a node does, in a few words. */
static void node_text(struct session *s, const struct cap_graph_node *n, char *out, size_t bytes)
{
    const void *body = model_node_body(n);
    const struct cap_copy *copy = body;
    const struct cap_set *set = body;
    const struct cap_graph_memory *memory = body;
    const struct cap_config *c = capture_definition(s->capture, CAP_CONFIG, n->config);
    uint64_t kernel;
    if (n->kind == CAP_NODE_KERNEL && c && map_get(&s->model->kernel_index, n->kernel, &kernel)) {
        snprintf(out, bytes, "%.120s, grid %u x %u x %u, block %u x %u x %u", s->model->kernels[kernel].name,
                 c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2]);
    } else if (n->kind == CAP_NODE_COPY && body)
        snprintf(out, bytes, "%" PRIu64 " x %" PRIu64 " x %" PRIu64 " bytes from 0x%" PRIx64 " to 0x%" PRIx64,
                 copy->width, copy->height, copy->depth, copy->source, copy->target);
    else if (n->kind == CAP_NODE_SET && body)
        snprintf(out, bytes, "%" PRIu64 " x %" PRIu64 " bytes at 0x%" PRIx64 " to 0x%x", set->width, set->height,
                 set->target, set->value);
    else if ((n->kind == CAP_NODE_ALLOC || n->kind == CAP_NODE_FREE) && body)
        snprintf(out, bytes, "0x%" PRIx64, memory->address);
    else
        snprintf(out, bytes, "%s", n->flags & CAP_NODE_UNKNOWN ? "its parameters are not known" : "");
}

static void after_text(const struct cap_graph_node *n, char *out, size_t bytes)
{
    const uint32_t *dependencies = model_node_dependencies(n);
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < n->dependency_count && used + 16 < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%u", i ? ", " : "", dependencies[i] + 1);
    if (used + 16 >= bytes)
        snprintf(out + used, bytes - used, ", ...");
}

static void print_nodes(struct session *s, const struct model_launch *l)
{
    struct model_nodes nodes = model_launch_nodes(l);
    struct text_table t = {.columns = 4, .right = {true, false, false, false}, .squeeze = 3};
    text_table_row(&t, (const char *const[]){"node", "kind", "after", "what"});
    for (size_t i = 0; i < nodes.count; i++) {
        char number[24], after[64], what[300];
        after_text(nodes.items[i], after, sizeof after);
        node_text(s, nodes.items[i], what, sizeof what);
        text_table_row(&t, (const char *const[]){
                               text_number(i + 1, number),
                               nodes.items[i]->flags & CAP_NODE_DISABLED ? "disabled" : model_node_kind(nodes.items[i]),
                               after, what});
    }
    if (nodes.count)
        text_table_print(&t, stdout, "  ");
    text_table_clear(&t);
    if (!nodes.complete)
        puts("  not all that the graph does is known");
    model_nodes_free(&nodes);
}

static void print_snapshots(const struct session *s, const struct model_launch *l)
{
    struct text_table t = {.columns = 5, .right = {false, true, true, true, false}};
    text_table_row(&t, (const char *const[]){"snapshot", "allocation", "offset", "bytes", "content"});
    const struct cap_snapshot *p;
    for (size_t i = 0; (p = model_launch_snapshot(s->model, l, i)); i++) {
        char allocation[24], offset[24], bytes[24], hash[HASH_TEXT_BYTES];
        hash_text((struct hash128){p->hash_low, p->hash_high}, hash);
        text_table_row(&t, (const char *const[]){p->when == CAP_BEFORE ? "before" : "after",
                                                 text_number(p->allocation, allocation), text_number(p->offset, offset),
                                                 text_number(p->bytes, bytes), hash});
    }
    if (l->snapshots) {
        text_table_print(&t, stdout, "  ");
        return;
    }
    text_table_clear(&t);
    puts("  none");
}

static void print_neighbours(const struct session *s, const struct model_launch *l)
{
    size_t first = l->number > 3 ? l->number - 3 : 1;
    for (size_t n = first; n <= l->number + 3 && n <= s->model->launch_count; n++) {
        const struct model_launch *near = model_launch_by_number(s->model, n);
        printf("  %s %6zu  stream %-3u %s\n", near == l ? ">" : " ", n, near->record->stream, near->kernel->name);
    }
}

static void print_judgement(struct session *s, const struct model_launch *l)
{
    const struct judgement *j = judgements_find(&s->judgements, l->number);
    if (!j) {
        printf("not judged; next: ops-debug verify %s\n", s->capture->shell_path);
        return;
    }
    if (j->verdict == JUDGEMENT_CHECKED)
        printf("re-executed: %" PRIu64 " thread instructions; faults: %zu, differences: %zu\n", j->instructions,
               j->fault_count, j->difference_count);
    else
        printf("not judged: %s%s%s\n", j->reason ? j->reason : "unknown", j->detail ? ": " : "",
               j->detail ? j->detail : "");
    for (size_t i = 0; i < s->findings.count; i++) {
        const struct finding *f = &s->findings.items[i];
        bool here = false;
        for (size_t k = 0; k < f->launch_count; k++)
            here = here || f->launches[k] == l->number;
        if (!here)
            continue;
        char first[32], *headline = report_headline(s, f);
        snprintf(first, sizeof first, "finding %zu: ", i + 1);
        text_fold(stdout, first, 4, headline ? headline : "");
        free(headline);
    }
}

static void show_text(struct session *s, const struct model_launch *l, bool verbose)
{
    const struct cap_config *c = l->config;
    const struct cap_kernel *k = l->kernel->record;
    const struct model_place *place = model_launch_place(s->model, l);
    const struct cap_error *error = model_launch_error(s->model, l);
    char launch[24], device[24], wait[24], start[24];
    text_fold(stdout, "", 4, l->kernel->full_name);
    printf("launch %u of %zu on stream %u, %s after the start\n", l->number, s->model->launch_count, l->record->stream,
           text_time(capture_time_ns(s->capture, l->record->head.tsc), start));
    uint64_t step;
    if (marks_step(s->model, model_launch_seq(l), &step))
        printf("in step %" PRIu64 "\n", step);
    if (*place->module_path)
        printf("in module %s, iteration %u\n", place->module_path, place->iteration);
    if (place->operator)
        printf("inside operator %u, %s; ops-debug show %s op%u\n", place->operator,
               model_operator_by_number(s->model, place->operator)->name, s->capture->shell_path, place->operator);
    if (!model_launch_graph(l))
        printf("grid %u x %u x %u, block %u x %u x %u, shared memory %u static + %u dynamic, %u registers, %u bytes "
               "local\n",
               c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], k->static_shared_bytes,
               c->dynamic_shared_bytes, k->registers, k->local_bytes);
    printf("launch call %s, device %s, waited for %s\n", text_time(model_launch_host_ns(l), launch),
           l->time_source ? text_time(l->device_ns, device) : "-", text_time(l->wait_ns, wait));
    if (l->record->outcome == CAP_LAUNCH_FAILED)
        printf("the driver refused it: %s\n",
               error ? capture_string(s->capture, error->name) : "an error that was not recorded");
    if (l->record->flags & CAP_LAUNCH_CAPTURING)
        puts("recorded into a graph, not executed then");
    if (l->record->flags & CAP_LAUNCH_BUDGET)
        puts("snapshots were left out: budget");
    print_judgement(s, l);
    puts(model_launch_graph(l) ? "\nnodes" : "\narguments");
    (model_launch_graph(l) ? print_nodes : print_arguments)(s, l);
    puts("\nsnapshots");
    print_snapshots(s, l);
    puts("\nlaunched at");
    const struct symbol_stack *stack = symbols_stack(s->symbols, l->record->stack);
    for (size_t i = 0; i < stack->count; i++)
        if (verbose || stack->frames[i].own || (stack->own == stack->count && !stack->frames[i].foreign))
            printf("  %s\n", stack->frames[i].text);
    puts("\nneighbours");
    print_neighbours(s, l);
}

static cJSON *arguments_json(const struct session *s, const struct model_launch *l)
{
    size_t count;
    struct report_argument *args = report_arguments(s->model, l, &count);
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++) {
        char value[24];
        cJSON *json = cJSON_CreateObject();
        snprintf(value, sizeof value, "0x%" PRIx64, args[i].value);
        cJSON_AddNumberToObject(json, "offset", args[i].offset);
        cJSON_AddNumberToObject(json, "size", args[i].size);
        cJSON_AddStringToObject(json, "value", value);
        if (args[i].allocation) {
            cJSON_AddNumberToObject(json, "allocation", args[i].allocation->id);
            cJSON_AddNumberToObject(json, "allocation_offset", (double)(args[i].value - args[i].allocation->address));
            cJSON_AddStringToObject(json, "allocation_kind", alloc_kind_name(args[i].allocation->record->kind));
            cJSON_AddBoolToObject(json, "freed", args[i].freed);
        }
        cJSON_AddItemToArray(array, json);
    }
    free(args);
    return array;
}

static void add_nodes(struct session *s, const struct model_launch *l, cJSON *root)
{
    struct model_nodes nodes = model_launch_nodes(l);
    cJSON_AddNumberToObject(root, "graph", model_launch_graph(l)->id);
    cJSON *array = cJSON_AddArrayToObject(root, "nodes");
    for (size_t i = 0; i < nodes.count; i++) {
        const struct cap_graph_node *n = nodes.items[i];
        cJSON *json = cJSON_CreateObject();
        char what[300];
        node_text(s, n, what, sizeof what);
        cJSON_AddNumberToObject(json, "node", (double)(i + 1));
        cJSON_AddStringToObject(json, "kind", model_node_kind(n));
        if (n->kind == CAP_NODE_KERNEL)
            cJSON_AddStringToObject(json, "kernel", model_launch_kernel(s->model, l, (uint32_t)i + 1)->name);
        cJSON_AddStringToObject(json, "text", what);
        cJSON_AddBoolToObject(json, "enabled", !(n->flags & CAP_NODE_DISABLED));
        cJSON *after = cJSON_AddArrayToObject(json, "after");
        for (uint32_t k = 0; k < n->dependency_count; k++)
            cJSON_AddItemToArray(after, cJSON_CreateNumber(model_node_dependencies(n)[k] + 1));
        cJSON_AddItemToArray(array, json);
    }
    cJSON_AddBoolToObject(root, "complete", nodes.complete);
    model_nodes_free(&nodes);
}

static bool show_json(struct session *s, const struct model_launch *l)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddNumberToObject(root, "seq", (double)l->number);
    cJSON_AddStringToObject(root, "kernel", l->kernel->name);
    cJSON_AddStringToObject(root, "kernel_full", l->kernel->full_name);
    cJSON *grid = cJSON_AddArrayToObject(root, "grid"), *block = cJSON_AddArrayToObject(root, "block");
    for (int i = 0; i < 3; i++) {
        cJSON_AddItemToArray(grid, cJSON_CreateNumber(l->config->grid[i]));
        cJSON_AddItemToArray(block, cJSON_CreateNumber(l->config->block[i]));
    }
    cJSON_AddNumberToObject(root, "dynamic_shared_bytes", l->config->dynamic_shared_bytes);
    cJSON_AddNumberToObject(root, "stream", l->record->stream);
    cJSON_AddNumberToObject(root, "launch_ns", (double)model_launch_host_ns(l));
    cJSON_AddItemToObject(root, "device_ns",
                          l->time_source ? cJSON_CreateNumber((double)l->device_ns) : cJSON_CreateNull());
    cJSON_AddNumberToObject(root, "wait_ns", (double)l->wait_ns);
    cJSON_AddStringToObject(root, "module_path", model_launch_place(s->model, l)->module_path);
    cJSON_AddNumberToObject(root, "iteration", model_launch_place(s->model, l)->iteration);
    uint64_t step;
    if (marks_step(s->model, model_launch_seq(l), &step))
        cJSON_AddNumberToObject(root, "step", (double)step);
    cJSON_AddItemToObject(root, "arguments", arguments_json(s, l));
    if (model_launch_graph(l))
        add_nodes(s, l, root);
    cJSON *snapshots = cJSON_AddArrayToObject(root, "snapshots");
    const struct cap_snapshot *p;
    for (size_t i = 0; (p = model_launch_snapshot(s->model, l, i)); i++) {
        char hash[HASH_TEXT_BYTES];
        hash_text((struct hash128){p->hash_low, p->hash_high}, hash);
        cJSON *json = cJSON_CreateObject();
        cJSON_AddStringToObject(json, "when", p->when == CAP_BEFORE ? "before" : "after");
        cJSON_AddNumberToObject(json, "allocation", p->allocation);
        cJSON_AddNumberToObject(json, "offset", (double)p->offset);
        cJSON_AddNumberToObject(json, "bytes", (double)p->bytes);
        cJSON_AddStringToObject(json, "hash", hash);
        cJSON_AddItemToArray(snapshots, json);
    }
    cJSON *stack = cJSON_AddArrayToObject(root, "stack");
    const struct symbol_stack *frames = symbols_stack(s->symbols, l->record->stack);
    for (size_t i = 0; i < frames->count; i++)
        cJSON_AddItemToArray(stack, cJSON_CreateString(frames->frames[i].text));
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text)
        printf("%s\n", text);
    free(text);
    return text != NULL;
}

static int show_operator(struct session *s, unsigned long long number, bool as_json)
{
    const struct model_operator *op = model_operator_by_number(s->model, (size_t)number);
    if (!op)
        return command_usage("%s has %zu library calls; there is no operator %llu", s->capture->path,
                             s->model->operator_count, number);
    if (!as_json) {
        report_operator_text(stdout, s, op);
        return EXIT_NOTHING;
    }
    cJSON *root = report_operator_json(s, op);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text)
        printf("%s\n", text);
    free(text);
    return text ? EXIT_NOTHING : EXIT_INTERNAL;
}

int cmd_show(const struct options *options)
{
    struct session s;
    struct diag diag;
    char *end = NULL;
    if (options->argument_count != 2)
        return command_usage("show wants a capture and the number of a launch (ops-debug show --help)");
    const char *digits = options->arguments[1];
    bool operator= strncmp(digits, "op", 2) == 0;
    digits += operator? 2 : 0;
    unsigned long long number = strtoull(digits, &end, 10);
    if (!*digits || *end)
        return command_usage("show wants the number of a launch (12) or of a library call (op3), not '%s'",
                             options->arguments[1]);
    enum status status = session_open(options->arguments[0], &s, &diag);
    if (status)
        return command_fail(status, &diag);
    session_classify(&s);
    int code = EXIT_NOTHING;
    const struct model_launch *l = model_launch_by_number(s.model, (size_t)number);
    if (operator)
        code = show_operator(&s, number, options->json);
    else if (!l)
        code = command_usage("%s has launches 1 to %zu; there is no launch %llu", s.capture->path,
                             s.model->launch_count, number);
    else if (!options->json)
        show_text(&s, l, options->verbose);
    else if (!show_json(&s, l))
        code = EXIT_INTERNAL;
    session_close(&s);
    return code;
}
