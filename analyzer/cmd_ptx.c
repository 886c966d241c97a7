/* cmd_ptx.c - `ptx coverage FILE`: which kernels of a file the executor can run, and what it lacks for the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyzer/commands.h"
#include "analyzer/device_code.h"
#include "analyzer/name.h"
#include "analyzer/text.h"
#include "ptx/opsptx.h"

enum { SHOWN = 3, MOST = 256 };

struct missing { /* one distinct message, over all kernels */
    char *text;
    size_t kernels;
};
struct totals {
    size_t modules, without_ptx, unreadable, kernels, run;
    bool malformed, failed;
    struct missing *missing;
    size_t missing_count;
};

static void count_missing(struct totals *t, const char *text)
{
    for (size_t i = 0; i < t->missing_count; i++)
        if (strcmp(t->missing[i].text, text) == 0) {
            t->missing[i].kernels++;
            return;
        }
    struct missing *more = realloc(t->missing, (t->missing_count + 1) * sizeof *more);
    char *copy = strdup(text);
    if (more)
        t->missing = more;
    if (!more || !copy) {
        free(copy);
        t->failed = true;
        return;
    }
    t->missing[t->missing_count++] = (struct missing){copy, 1};
}

static int most_kernels(const void *a, const void *b)
{
    const struct missing *x = a, *y = b;
    return x->kernels != y->kernels ? (x->kernels < y->kernels ? 1 : -1) : strcmp(x->text, y->text);
}

static void kernel_text(const struct ptx_kernel *k, const struct diag *const *list, size_t count, bool verbose)
{
    char *name = name_full(k->name);
    text_fold(stdout, count ? "missing  " : "runs     ", 9, name ? name : k->name);
    free(name);
    for (size_t i = 0; i < count; i++) {
        char line[600];
        if (i == SHOWN && !verbose && count > SHOWN + 1) {
            printf("         and %zu more (-v)\n", count - i);
            break;
        }
        snprintf(line, sizeof line, "line %u: %s", list[i]->line, list[i]->text);
        text_fold(stdout, "         ", 11, line);
    }
}

static cJSON *kernel_json(const struct ptx_kernel *k, size_t module, const struct diag *const *list, size_t count)
{
    cJSON *json = cJSON_CreateObject();
    char *name = name_full(k->name);
    cJSON_AddStringToObject(json, "kernel", k->name);
    cJSON_AddStringToObject(json, "name", name ? name : k->name);
    free(name);
    cJSON_AddNumberToObject(json, "module", (double)module);
    cJSON_AddBoolToObject(json, "runs", count == 0);
    cJSON *array = cJSON_AddArrayToObject(json, "missing");
    for (size_t i = 0; i < count; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddNumberToObject(item, "line", list[i]->line);
        cJSON_AddNumberToObject(item, "column", list[i]->column);
        cJSON_AddStringToObject(item, "text", list[i]->text);
        cJSON_AddItemToArray(array, item);
    }
    return json;
}

static void look_at_kernel(const struct ptx_module *m, const struct ptx_kernel *k, struct totals *t, cJSON *kernels,
                           bool verbose)
{
    const struct diag *list[MOST];
    size_t count = ptx_kernel_missing(m, k, list, MOST);
    if (count > MOST)
        count = MOST;
    t->kernels++;
    t->run += count == 0;
    /* The same message may come from several functions: it counts once for the kernel. */
    for (size_t i = 0; i < count; i++) {
        size_t before = 0;
        while (before < i && strcmp(list[before]->text, list[i]->text) != 0)
            before++;
        if (before == i)
            count_missing(t, list[i]->text);
    }
    if (kernels)
        cJSON_AddItemToArray(kernels, kernel_json(k, t->modules, list, count));
    else
        kernel_text(k, list, count, verbose);
}

static void report_unreadable(const struct diag *diag)
{
    if (diag->line)
        fprintf(stderr, "ops-debug: %s:%u:%u: %s\n%s%s", diag->where, diag->line, diag->column, diag->text,
                diag->excerpt, *diag->excerpt ? "\n" : "");
    else
        command_fail(STATUS_BAD_INPUT, diag);
}

static void look_at_module(const struct device_code *code, const char *text, size_t bytes, struct totals *t,
                           cJSON *kernels, bool verbose)
{
    struct ptx_module *m;
    struct diag diag;
    t->modules++;
    enum status status = ptx_module_load(text, bytes, code->path, &m, &diag);
    if (status) {
        t->unreadable++;
        t->malformed = t->malformed || status == STATUS_BAD_INPUT;
        t->failed = t->failed || status == STATUS_NO_MEMORY;
        report_unreadable(&diag);
        return;
    }
    for (size_t i = 0; i < ptx_module_kernel_count(m); i++)
        look_at_kernel(m, ptx_module_kernel(m, i), t, kernels, verbose);
    ptx_module_free(m);
}

static void print_totals(const struct totals *t)
{
    printf("%s%zu of %zu kernels run", t->kernels ? "\n" : "", t->run, t->kernels);
    if (t->without_ptx)
        printf("; %zu of %zu modules have no PTX", t->without_ptx, t->modules + t->without_ptx);
    if (t->unreadable)
        printf("; %zu of %zu modules cannot be read", t->unreadable, t->modules);
    putchar('\n');
    for (size_t i = 0; i < t->missing_count; i++) {
        char first[40];
        snprintf(first, sizeof first, "%6zu   ", t->missing[i].kernels);
        text_fold(stdout, first, 9, t->missing[i].text);
    }
}

static bool print_json(const char *path, const struct totals *t, cJSON *kernels)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "file", path);
    cJSON_AddNumberToObject(root, "modules", (double)t->modules);
    cJSON_AddNumberToObject(root, "modules_without_ptx", (double)t->without_ptx);
    cJSON_AddNumberToObject(root, "modules_unreadable", (double)t->unreadable);
    cJSON_AddNumberToObject(root, "kernels_total", (double)t->kernels);
    cJSON_AddNumberToObject(root, "kernels_run", (double)t->run);
    cJSON *array = cJSON_AddArrayToObject(root, "missing");
    for (size_t i = 0; i < t->missing_count; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "text", t->missing[i].text);
        cJSON_AddNumberToObject(item, "kernels", (double)t->missing[i].kernels);
        cJSON_AddItemToArray(array, item);
    }
    cJSON_AddItemToObject(root, "kernels", kernels);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text)
        printf("%s\n", text);
    free(text);
    return text != NULL;
}

/* What keeps a container from being read at all, beside that it holds no PTX. */
static void note_container(enum status status, const struct diag *diag, struct totals *t)
{
    if (status == STATUS_NOT_FOUND) {
        t->without_ptx++;
        return;
    }
    t->modules++;
    t->unreadable++;
    t->malformed = t->malformed || status == STATUS_BAD_INPUT;
    t->failed = t->failed || status == STATUS_NO_MEMORY;
    report_unreadable(diag);
}

int cmd_ptx(const struct options *options)
{
    struct device_code code;
    struct diag diag;
    struct totals t = {0};
    if (options->argument_count != 2 || strcmp(options->arguments[0], "coverage") != 0)
        return command_usage("ptx wants `coverage` and one file (ops-debug ptx --help)");
    enum status status = device_code_open(options->arguments[1], &code, &diag);
    if (status)
        return command_fail(status, &diag);
    cJSON *kernels = options->json ? cJSON_CreateArray() : NULL;
    char *text;
    size_t bytes;
    while (device_code_next(&code, &text, &bytes, &status, &diag)) {
        if (status)
            note_container(status, &diag, &t);
        else
            look_at_module(&code, text, bytes, &t, kernels, options->verbose);
        free(text);
    }
    device_code_close(&code);
    if (t.missing_count)
        qsort(t.missing, t.missing_count, sizeof *t.missing, most_kernels);
    if (!options->json)
        print_totals(&t);
    else if (!print_json(options->arguments[1], &t, kernels))
        t.failed = true;
    for (size_t i = 0; i < t.missing_count; i++)
        free(t.missing[i].text);
    free(t.missing);
    if (t.failed)
        return EXIT_INTERNAL;
    if (t.malformed)
        return EXIT_BAD_INPUT;
    return t.run < t.kernels || t.unreadable || t.without_ptx ? EXIT_FINDINGS : EXIT_NOTHING;
}
