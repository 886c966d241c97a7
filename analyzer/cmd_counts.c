/* cmd_counts.c - `counts CAPTURE`: what launches do, counted by running them again on the CPU, by source line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "analyzer/commands.h"
#include "analyzer/line_counts.h"
#include "analyzer/name.h"
#include "analyzer/place.h"
#include "analyzer/selection.h"
#include "analyzer/session.h"
#include "analyzer/text.h"
#include "common/diag.h"

enum { SHOWN_LINES = 20 };

struct kernel_counts {
    const struct model_kernel *kernel;
    size_t first; /* launch */
    struct counted counted;
};
struct missed { /* a launch that could not be counted */
    size_t launch;
    const struct model_kernel *kernel;
    char reason[40], detail[256];
};
struct counting {
    struct kernel_counts *kernels; /* owned, in order of their first launches */
    size_t kernel_count;
    struct missed *missed; /* owned */
    size_t missed_count;
    bool no_memory;
};

/* ---- counting ---- */

static struct kernel_counts *kernel_of(struct counting *c, const struct model_launch *l)
{
    for (size_t i = 0; i < c->kernel_count; i++)
        if (strcmp(c->kernels[i].kernel->full_name, l->kernel->full_name) == 0)
            return &c->kernels[i];
    struct kernel_counts *more = realloc(c->kernels, (c->kernel_count + 1) * sizeof *more);
    if (!more)
        return NULL;
    c->kernels = more;
    more[c->kernel_count] = (struct kernel_counts){.kernel = l->kernel, .first = l->number};
    return &more[c->kernel_count++];
}

static void miss(struct counting *c, const struct model_launch *l, const char *reason, const char *detail)
{
    struct missed *more = realloc(c->missed, (c->missed_count + 1) * sizeof *more);
    if (!more) {
        c->no_memory = true;
        return;
    }
    c->missed = more;
    struct missed *m = &more[c->missed_count++];
    *m = (struct missed){.launch = l->number, .kernel = l->kernel};
    snprintf(m->reason, sizeof m->reason, "%s", reason ? reason : "unknown");
    snprintf(m->detail, sizeof m->detail, "%.250s", detail ? detail : "");
}

static void count_launch(struct verify *v, const struct model_launch *l, struct counting *c)
{
    struct verify_memory memory = {0};
    struct reference_launch run;
    struct reference_result result;
    struct judgement j = {0};
    if (!verify_profile(v, l, NULL, &run, &memory, &result, &j)) {
        miss(c, l, j.reason, j.detail);
    } else if (result.reason) {
        miss(c, l, result.reason, result.diag.text);
    } else if (result.unknown_read || verify_memory_read_unknown(&memory)) {
        miss(c, l, "no-inputs", "it read memory whose contents were not captured");
    } else if (result.status == STATUS_FAULT) {
        miss(c, l, "fault", "a fault ends it: what it would have done after that is not known");
    } else {
        struct kernel_counts *k = result.profile ? kernel_of(c, l) : NULL;
        if (k)
            counted_add(&k->counted, run.module, result.profile);
        c->no_memory = c->no_memory || !k || k->counted.no_memory;
    }
    reference_result_free(&result);
    verify_memory_free(&memory);
    judgement_clear(&j);
}

static enum status count_all(struct session *s, struct selection *selection, const struct options *options,
                             struct counting *c, struct diag *diag)
{
    struct verify v;
    const struct verify_options how = {.workers = options_jobs(options),
                                       .instruction_limit = options->budget * 1000000};
    enum status status = verify_start(&v, s->model, &how, diag);
    for (size_t i = 0; !status && i < s->model->allocation_count; i++) /* nobody asks here who wrote what */
        valid_bytes_mark_all(&v.valid, &s->model->allocations[i]);
    for (size_t i = 0; !status && i < s->model->launch_count; i++) {
        const struct model_launch *l = &s->model->launches[i];
        model_live_advance(&v.live, model_launch_seq(l));
        if (selection_takes(selection, l))
            count_launch(&v, l, c);
    }
    if (!status && (c->no_memory || v.live.no_memory))
        status = diag_set(diag, STATUS_NO_MEMORY, s->model->capture->path, -1, "no memory");
    verify_end(&v);
    for (size_t i = 0; i < c->kernel_count; i++)
        counted_sort(&c->kernels[i].counted);
    return status;
}

static void counting_end(struct counting *c)
{
    for (size_t i = 0; i < c->kernel_count; i++)
        counted_free(&c->kernels[i].counted);
    free(c->kernels);
    free(c->missed);
}

/* ---- text ---- */

/* "1.23 M": three digits. */
static const char *short_number(uint64_t n, char out[24])
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P"};
    double v = (double)n;
    size_t unit = 0;
    for (; v >= 999.5 && unit < 5; unit++)
        v /= 1000;
    snprintf(out, 24, unit ? "%.3g%s" : "%.0f%s", v, units[unit]);
    return out;
}

static const char *share(uint64_t part, uint64_t all, char out[24])
{
    snprintf(out, 24, "%.3g", all ? (double)part / (double)all : 0);
    return out;
}

/* "32 (4)": per request, and ideally. */
static const char *per_request(uint64_t actual, uint64_t ideal, uint64_t requests, char out[40])
{
    if (!requests)
        snprintf(out, 40, "-");
    else
        snprintf(out, 40, "%.3g (%.3g)", (double)actual / (double)requests, (double)ideal / (double)requests);
    return out;
}

static void print_classes(const struct ptx_profile *p)
{
    char line[600] = "", number[24];
    size_t n = 0;
    for (int i = 0; i < PTX_CLASS_COUNT && n < sizeof line; i++)
        if (p->classes[i])
            n += (size_t)snprintf(line + n, sizeof line - n, "%s%s %s", n ? ", " : "", ptx_class_name(i),
                                  short_number(p->classes[i], number));
    text_fold(stdout, "  instructions  ", 16, line);
    n = 0;
    line[0] = '\0';
    for (int i = 0; i < PTX_FLOP_TYPE_COUNT && n < sizeof line; i++)
        if (p->flops[i])
            n += (size_t)snprintf(line + n, sizeof line - n, "%s%s %s", n ? ", " : "", ptx_flop_type_name(i),
                                  short_number(p->flops[i], number));
    text_fold(stdout, "  operations    ", 16, n ? line : "no floating-point ones");
}

static void print_memory(const struct ptx_profile *p)
{
    static const char *const names[] = {"global", "shared", "local", "constant", "parameters"};
    for (int i = 0; i < 5; i++) {
        const struct ptx_access_counts *a = &p->access[i];
        char line[400], read[24], written[24], different_read[24], different_written[24], each[40], first[24];
        if (!a->accesses)
            continue;
        int n = snprintf(line, sizeof line, "read %s", text_bytes(a->read_bytes, read));
        if (i != PTX_SPACE_PARAM)
            n += snprintf(line + n, sizeof line - (size_t)n, " (%s different)",
                          text_bytes(p->unique[i].read, different_read));
        if (a->write_bytes)
            n += snprintf(line + n, sizeof line - (size_t)n, ", written %s (%s different)",
                          text_bytes(a->write_bytes, written), text_bytes(p->unique[i].written, different_written));
        if (a->sectors)
            n += snprintf(line + n, sizeof line - (size_t)n, "; sectors per request %s",
                          per_request(a->sectors, a->ideal_sectors, a->requests, each));
        if (a->wavefronts)
            n += snprintf(line + n, sizeof line - (size_t)n, "; passes per request %s",
                          per_request(a->wavefronts, a->ideal_wavefronts, a->requests, each));
        if (a->atomics)
            snprintf(line + n, sizeof line - (size_t)n, "; atomics: %.3g lanes at one address, at most %" PRIu64,
                     (double)a->same_address / (double)a->atomics, a->same_address_most);
        snprintf(first, sizeof first, "  %-13s ", names[i]);
        text_fold(stdout, first, 16, line);
    }
}

static void print_lines(const struct counted *c, bool verbose)
{
    struct text_table t = {
        .columns = 9, .right = {false, true, true, true, true, true, true, true, true}, .squeeze = 0};
    size_t shown = verbose || c->count <= SHOWN_LINES ? c->count : SHOWN_LINES;
    uint64_t all = 0;
    for (size_t i = 0; i < c->count; i++)
        all += line_cost(&c->lines[i]);
    text_table_row(&t, (const char *const[]){"line", "cost", "instructions", "operations", "bytes", "sectors/request",
                                             "passes/request", "divergent", "lanes"});
    for (size_t i = 0; i < shown; i++) {
        const struct line_counts *l = &c->lines[i];
        const struct ptx_access_counts *shared = &l->access[PTX_SPACE_SHARED], *global = &l->access[PTX_SPACE_GLOBAL];
        const struct judgement_frame *frame = place_frame(&l->place);
        char place[120], cost[24], threads[24], flops[24], bytes[24], sectors[40], passes[40], split[24], lanes[24];
        if (frame)
            snprintf(place, sizeof place, "%.100s:%u", name_file(frame->file), frame->line);
        else
            snprintf(place, sizeof place, "PTX line %u", l->place.ptx_line);
        snprintf(cost, sizeof cost, "%.1f %%", all ? 100 * (double)line_cost(l) / (double)all : 0);
        snprintf(split, sizeof split, l->branches ? "%.3g %%" : "-",
                 l->branches ? 100 * (double)l->divergent / (double)l->branches : 0);
        text_table_row(&t, (const char *const[]){
                               place, cost, short_number(l->threads, threads),
                               l->flops ? short_number(l->flops, flops) : "-",
                               global->accesses ? text_bytes(global->read_bytes + global->write_bytes, bytes) : "-",
                               per_request(line_sectors(l), line_ideal_sectors(l), line_requests(l), sectors),
                               per_request(shared->wavefronts, shared->ideal_wavefronts, shared->requests, passes),
                               split, l->warps ? share(l->warp_threads, l->warps, lanes) : "-"});
    }
    text_table_print(&t, stdout, "  ");
    if (shown < c->count)
        printf("  and %zu more lines (-v)\n", c->count - shown);
}

/* Those from `i` on that follow each other and are alike; returns how many there are. */
static size_t print_missed(const struct counting *c, size_t i)
{
    const struct missed *m = &c->missed[i];
    char line[500], last[32] = "";
    size_t n = 1;
    while (i + n < c->missed_count && m[n].launch == m->launch + n && m[n].kernel == m->kernel &&
           strcmp(m[n].reason, m->reason) == 0 && strcmp(m[n].detail, m->detail) == 0)
        n++;
    if (n > 1)
        snprintf(last, sizeof last, " to %zu", m[n - 1].launch);
    snprintf(line, sizeof line, "not counted: launch%s %zu%s, %.100s: %s%s%s", n > 1 ? "es" : "", m->launch, last,
             m->kernel->name, m->reason, *m->detail ? ": " : "", m->detail);
    text_fold(stdout, "", 4, line);
    return n;
}

static void print_text(const struct counting *c, bool verbose)
{
    for (size_t i = 0; i < c->kernel_count; i++) {
        const struct kernel_counts *k = &c->kernels[i];
        const struct ptx_profile *p = &k->counted.total;
        char line[400], number[24], warps[24], lanes[24];
        snprintf(line, sizeof line,
                 "%.200s: %zu launch%s from %zu, %s thread instructions, %s of warps with %s lanes each",
                 verbose ? k->kernel->full_name : k->kernel->name, k->counted.launches,
                 k->counted.launches == 1 ? "" : "es", k->first, short_number(p->threads, number),
                 short_number(p->warps, warps), share(p->warp_threads, p->warps, lanes));
        text_fold(stdout, "", 2, line);
        print_classes(p);
        print_memory(p);
        if (p->branches)
            printf("  branches      %.3g %% of %s divergent\n", 100 * (double)p->divergent / (double)p->branches,
                   short_number(p->branches, number));
        if (p->alone) {
            snprintf(
                line, sizeof line,
                "%.3g %% of the instructions ran one thread at a time: requests, sectors, passes and divergence are "
                "those of the rest",
                100 * (double)p->alone / (double)p->threads);
            text_fold(stdout, "  note          ", 16, line);
        }
        putchar('\n');
        print_lines(&k->counted, verbose);
        putchar('\n');
    }
    for (size_t i = 0; i < c->missed_count;)
        i += print_missed(c, i);
}

/* ---- JSON ---- */

static void add_number(cJSON *to, const char *name, uint64_t value)
{
    cJSON_AddNumberToObject(to, name, (double)value);
}

static void add_access(cJSON *to, int space, const struct ptx_access_counts *a)
{
    static const char *const names[] = {"global", "shared", "local", "constant", "parameters"};
    if (!a->accesses)
        return;
    cJSON *json = cJSON_AddObjectToObject(to, names[space]);
    add_number(json, "accesses", a->accesses);
    add_number(json, "read_bytes", a->read_bytes);
    add_number(json, "write_bytes", a->write_bytes);
    add_number(json, "requests", a->requests);
    add_number(json, "request_accesses", a->request_accesses);
    add_number(json, "sectors", a->sectors);
    add_number(json, "ideal_sectors", a->ideal_sectors);
    add_number(json, "lines", a->lines);
    add_number(json, "wavefronts", a->wavefronts);
    add_number(json, "ideal_wavefronts", a->ideal_wavefronts);
    add_number(json, "atomics", a->atomics);
    add_number(json, "same_address", a->same_address);
    add_number(json, "same_address_most", a->same_address_most);
}

static cJSON *line_json(const struct line_counts *l)
{
    cJSON *json = cJSON_CreateObject();
    const struct judgement_frame *frame = place_frame(&l->place);
    if (frame) {
        cJSON_AddStringToObject(json, "file", frame->file);
        add_number(json, "line", frame->line);
    }
    add_number(json, "ptx_line", l->place.ptx_line);
    add_number(json, "cost", line_cost(l));
    add_number(json, "threads", l->threads);
    add_number(json, "guarded_off", l->guarded_off);
    add_number(json, "operations", l->flops);
    add_number(json, "warps", l->warps);
    add_number(json, "warp_threads", l->warp_threads);
    add_number(json, "branches", l->branches);
    add_number(json, "divergent", l->divergent);
    cJSON *access = cJSON_AddObjectToObject(json, "access");
    for (int space = 0; space < 5; space++)
        add_access(access, space, &l->access[space]);
    return json;
}

static cJSON *kernel_json(const struct kernel_counts *k)
{
    static const char *const names[] = {"global", "shared", "local", "constant"};
    const struct ptx_profile *p = &k->counted.total;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kernel", k->kernel->name);
    cJSON_AddStringToObject(json, "full_name", k->kernel->full_name);
    add_number(json, "launches", k->counted.launches);
    add_number(json, "first_launch", k->first);
    add_number(json, "threads", p->threads);
    add_number(json, "guarded_off", p->guarded_off);
    add_number(json, "alone", p->alone);
    add_number(json, "warps", p->warps);
    add_number(json, "warp_threads", p->warp_threads);
    add_number(json, "branches", p->branches);
    add_number(json, "divergent", p->divergent);
    cJSON *classes = cJSON_AddObjectToObject(json, "classes");
    for (int i = 0; i < PTX_CLASS_COUNT; i++)
        add_number(classes, ptx_class_name(i), p->classes[i]);
    cJSON *operations = cJSON_AddObjectToObject(json, "operations");
    for (int i = 0; i < PTX_FLOP_TYPE_COUNT; i++)
        add_number(operations, ptx_flop_type_name(i), p->flops[i]);
    cJSON *access = cJSON_AddObjectToObject(json, "access");
    for (int space = 0; space < 5; space++)
        add_access(access, space, &p->access[space]);
    cJSON *unique = cJSON_AddObjectToObject(json, "different_bytes");
    for (int space = 0; space < 4; space++) {
        cJSON *one = cJSON_AddObjectToObject(unique, names[space]);
        add_number(one, "read", p->unique[space].read);
        add_number(one, "written", p->unique[space].written);
        add_number(one, "either", p->unique[space].either);
    }
    cJSON *lines = cJSON_AddArrayToObject(json, "lines");
    for (size_t i = 0; i < k->counted.count; i++)
        cJSON_AddItemToArray(lines, line_json(&k->counted.lines[i]));
    return json;
}

static bool print_json(const struct session *s, const struct counting *c)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "schema", 1);
    cJSON_AddStringToObject(root, "capture", s->capture->path);
    cJSON *kernels = cJSON_AddArrayToObject(root, "kernels");
    for (size_t i = 0; i < c->kernel_count; i++)
        cJSON_AddItemToArray(kernels, kernel_json(&c->kernels[i]));
    cJSON *missed = cJSON_AddArrayToObject(root, "not_counted");
    for (size_t i = 0; i < c->missed_count; i++) {
        cJSON *json = cJSON_CreateObject();
        add_number(json, "launch", c->missed[i].launch);
        cJSON_AddStringToObject(json, "kernel", c->missed[i].kernel->name);
        cJSON_AddStringToObject(json, "reason", c->missed[i].reason);
        cJSON_AddStringToObject(json, "detail", c->missed[i].detail);
        cJSON_AddItemToArray(missed, json);
    }
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (text)
        printf("%s\n", text);
    free(text);
    return text != NULL;
}

int cmd_counts(const struct options *options)
{
    struct session s;
    struct selection selection;
    struct counting c = {0};
    struct diag diag;
    int code = command_open("counts", options, &s, &selection);
    if (code)
        return code;
    enum status status = count_all(&s, &selection, options, &c, &diag);
    if (status)
        code = command_fail(status, &diag);
    else if (!options->json)
        print_text(&c, options->verbose);
    else if (!print_json(&s, &c))
        code = EXIT_INTERNAL;
    if (!code && !c.kernel_count && c.missed_count == 0)
        code = command_usage("no launch of %s is chosen", options->arguments[0]);
    counting_end(&c);
    selection_end(&selection);
    session_close(&s);
    return code;
}
