#include "analyzer/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/budget.h"
#include "analyzer/coverage.h"
#include "analyzer/health_seen.h"
#include "analyzer/hints.h"
#include "analyzer/kernel_table.h"
#include "analyzer/marks.h"
#include "analyzer/name.h"
#include "analyzer/pattern.h"
#include "analyzer/place.h"
#include "analyzer/report_operators.h"
#include "analyzer/text.h"
#include "common/buf.h"

enum { SHOWN_KERNELS = 20, SHOWN_REJECTS = 3, SHOWN_PATTERNS = 8 };

char *report_headline(const struct session *s, const struct finding *f)
{
    struct buf b = {0};
    const struct model_launch *l = model_launch_by_number(s->model, f->launch);
    if (f->window_last)
        buf_printf(&b, "launches %zu to %zu", f->launch, f->window_last);
    else if (l)
        buf_printf(&b, "launch %u, %s", l->number, model_launch_kernel(s->model, l, f->node)->name);
    if (!f->window_last && l && model_launch_graph(l) && f->node)
        buf_printf(&b, " (node %u of %s)", f->node, l->kernel->name);
    if (f->file && f->line)
        buf_printf(&b, "%s%s:%u", b.size ? ", " : "", name_file(f->file), f->line);
    buf_printf(&b, "%s%s", b.size ? ": " : "", f->summary ? f->summary : finding_class_name(f->class));
    if (b.failed) {
        buf_free(&b);
        return NULL;
    }
    return b.data;
}

static void print_launches(FILE *out, const struct finding *f)
{
    struct buf b = {0};
    for (size_t i = 0; i < f->launch_count; i++)
        buf_printf(&b, "%s%zu", i ? ", " : "", f->launches[i]);
    if (b.data)
        text_fold(out, "     launches       ", 20, b.data);
    buf_free(&b);
}

static void print_stack(FILE *out, struct session *s, const char *title, uint32_t id, bool verbose)
{
    const struct symbol_stack *stack = symbols_stack(s->symbols, id);
    size_t shown = 0;
    for (size_t i = 0; i < stack->count; i++) {
        const struct symbol_frame *frame = &stack->frames[i];
        if (!verbose && (!frame->own || shown >= 4))
            continue;
        fprintf(out, "     %-14s %s\n", shown ? "" : title, frame->text);
        shown++;
    }
}

void report_finding(FILE *out, struct session *s, const struct finding *f, size_t id, struct report_style style)
{
    struct text_style t = text_style(style.color);
    char first[32];
    char *headline = report_headline(s, f);
    fprintf(out, "%s%zu  %s%s  %s, confidence %.2f", t.error, id, finding_class_name(f->class), t.end,
            finding_severity_name(f->severity), f->confidence);
    if (f->launch_count > 1)
        fprintf(out, ", at %zu launches", f->launch_count);
    fputc('\n', out);
    text_fold(out, "   ", 3, headline ? headline : "");
    free(headline);
    for (size_t i = 0; i < f->evidence_count; i++) {
        snprintf(first, sizeof first, "     %-14s ", f->evidence[i].kind);
        text_fold(out, first, 20, f->evidence[i].text);
    }
    const struct model_allocation *a = model_allocation_by_id(s->model, f->allocation);
    if (a) {
        char size[24];
        if (a->record->kind != CAP_ALLOC_VARIABLE) /* these are met at a launch, not allocated */
            print_stack(out, s, "allocated", a->record->stack, style.verbose);
        if (a->free_seq != UINT64_MAX && f->class == FINDING_USE_AFTER_FREE)
            print_stack(out, s, "freed", a->free_stack, style.verbose);
        if (a->free_seq != UINT64_MAX && f->class == FINDING_DOUBLE_FREE)
            print_stack(out, s, "first freed", a->free_stack, style.verbose);
        if (style.verbose)
            fprintf(out, "     allocation     %u: %" PRIu64 " bytes (%s) at 0x%" PRIx64 "\n", a->id, a->bytes,
                    text_bytes(a->bytes, size), a->address);
    }
    if (f->stack)
        print_stack(out, s, f->class == FINDING_DOUBLE_FREE ? "freed again" : "called", f->stack, style.verbose);
    const struct model_launch *l = model_launch_by_number(s->model, f->launch);
    const struct model_place *place = l && !f->window_last ? model_launch_place(s->model, l) : NULL;
    uint64_t step;
    if (place && marks_step(s->model, model_launch_seq(l), &step))
        fprintf(out, "     step           %" PRIu64 "\n", step);
    if (place && *place->module_path)
        fprintf(out, "     module         %s, iteration %u\n", place->module_path, place->iteration);
    if (l && !f->window_last)
        print_stack(out, s, "launched", l->record->stack, style.verbose);
    if (style.verbose && f->launch_count > 1)
        print_launches(out, f);
    text_fold(out, "     usual cure     ", 20, finding_cure(f));
    for (size_t i = 0; i < f->next_count; i++)
        text_fold(out, i ? "                    " : "     next:          ", 20, f->next[i]);
    fputc('\n', out);
}

static void print_conclusion(FILE *out, struct session *s, struct report_style style)
{
    struct text_style t = text_style(style.color);
    size_t serious = findings_serious(&s->findings), notes = s->findings.count - serious;
    struct coverage c = coverage_of(s->model, &s->judgements);
    if (serious)
        fprintf(out, "%s%zu finding%s%s", t.error, serious, serious == 1 ? "" : "s", t.end);
    else
        fprintf(out, "%sNothing found%s", t.good, t.end);
    if (notes)
        fprintf(out, ", %zu note%s", notes, notes == 1 ? "" : "s");
    fprintf(out, " in %zu launch%s; %zu of them re-executed and judged\n\n", c.launches, c.launches == 1 ? "" : "es",
            c.as_written.checked);
    for (size_t i = 0; i < s->findings.count; i++)
        report_finding(out, s, &s->findings.items[i], i + 1, style);
}

static void print_kernels(FILE *out, struct session *s, struct report_style style)
{
    struct kernel_table k = kernel_table_of(s->model, &s->judgements);
    struct text_table t = {.columns = 6, .right = {false, true, true, true, true, true}};
    char launches[24], launch[24], device[24], wait[24], mean[24], bound[24];
    for (size_t i = 0; i < k.count; i++)
        if (k.rows[i].bounded) {
            t.columns = 7; /* only where the device's peaks are known */
            t.right[6] = true;
        }
    if (k.count) {
        text_table_row(
            &t, (const char *const[]){"kernel", "launches", "launch", "device", "wait", "device/launch", "bound"});
        size_t shown = style.verbose || k.count <= SHOWN_KERNELS ? k.count : SHOWN_KERNELS;
        for (size_t i = 0; i < shown; i++) {
            const struct kernel_row *r = &k.rows[i];
            bool timed = r->timed > 0;
            text_table_row(
                &t, (const char *const[]){style.verbose ? r->kernel->full_name : r->kernel->name,
                                          text_number(r->launches, launches), text_time(r->launch_ns, launch),
                                          timed ? text_time(r->device_ns, device) : "-", text_time(r->wait_ns, wait),
                                          timed ? text_time(r->device_ns / r->timed, mean) : "-",
                                          r->bounded ? text_time(r->bound_ns, bound) : "-"});
        }
        text_table_print(&t, out, "");
        if (shown < k.count)
            fprintf(out, "and %zu more kernels (-v)\n", k.count - shown);
        if (k.time_source == CAP_TIME_EVENTS)
            fputs("Device times are from events: upper bounds, and rough for kernels of a few microseconds.\n", out);
        fputc('\n', out);
    }
    free(k.rows);
}

static void print_patterns(FILE *out, const struct session *s, struct report_style style)
{
    struct patterns all = patterns_of(s->model, &s->judgements);
    size_t shown = style.verbose || all.count <= SHOWN_PATTERNS ? all.count : SHOWN_PATTERNS;
    if (all.count)
        fputs("What makes kernels slow, counted by re-execution:\n", out);
    for (size_t i = 0; i < shown; i++) {
        const struct pattern *p = &all.items[i];
        char text[PATTERN_TEXT], place[PLACE_TEXT_BYTES], line[PATTERN_TEXT + PLACE_TEXT_BYTES + 120];
        pattern_text(p, text);
        place_text(p->place, place);
        snprintf(line, sizeof line, "%.60s, %s: %s (launch %zu%s)", p->kernel->name, place, text, p->launch,
                 p->launches > 1 ? " and others" : "");
        text_fold(out, "  ", 4, line);
    }
    if (shown < all.count)
        fprintf(out, "  and %zu more (-v)\n", all.count - shown);
    if (all.count)
        fprintf(out, "  next: ops-debug counts --launch %zu %s\n\n", all.items[0].launch, s->capture->shell_path);
    free(all.items);
}

static void print_verdict(FILE *out, struct session *s, const char *title, const char *name,
                          const struct coverage_verdict *v, size_t launches)
{
    struct buf b = {0};
    buf_printf(&b, "%s: %zu of %zu launches checked", name, v->checked, launches);
    for (size_t i = 0; i < v->reasons; i++)
        buf_printf(&b, "%s%zu %s", i ? ", " : "; not: ", v->not [i].count, v->not [i].reason);
    if (b.data)
        text_fold(out, title, 10, b.data);
    buf_free(&b);
    for (size_t i = 0; i < v->reasons; i++) {
        const struct judgement *j = v->not [i].example;
        const struct model_launch *l = j ? model_launch_by_number(s->model, j->launch) : NULL;
        char line[400];
        if (!l || !j->detail)
            continue;
        snprintf(line, sizeof line, "%s: launch %u, %.100s: %.200s", v->not [i].reason, l->number, l->kernel->name,
                 j->detail);
        text_fold(out, "            ", 14, line);
    }
}

static void print_coverage(FILE *out, struct session *s)
{
    struct coverage c = coverage_of(s->model, &s->judgements);
    print_verdict(out, s, "coverage  ", "executed as written", &c.as_written, c.launches);
    print_verdict(out, s, "          ", "operator right, by its fp64 shadow", &c.operator, c.launches);
    fprintf(out, "          sentinels: %" PRIu64 " looked at, %zu found damaged\n", s->capture->header.sentinel_checks,
            s->model->damage_count);
    budget_print(out, s->capture);
    report_operators_coverage(out, s);
    char text[320];
    struct coverage_memory memory = coverage_memory_of(s->model);
    coverage_memory_text(&memory, text, sizeof text);
    if (*text)
        text_fold(out, "          ", 10, text);
}

static void print_cost(FILE *to, const struct session *s)
{
    const struct cap_header *h = &s->capture->header;
    char *line = NULL;
    size_t bytes;
    FILE *out = open_memstream(&line, &bytes);
    if (!out)
        return;
    char per[24], own[24], start[24], snapshots[24], memory[24];
    uint64_t own_ns = capture_ticks_ns(s->capture, h->own_tsc), start_ns = capture_start_ns(s->capture);
    uint64_t wall = h->mono_now_ns > h->mono_start_ns ? h->mono_now_ns - h->mono_start_ns : 0;
    bool known = own_ns || h->state == CAP_ENDED;
    if (known)
        fprintf(out, "%s in the program's threads", text_time(own_ns, own));
    else
        fprintf(out, "not known: the program did not end in an orderly way");
    if (start_ns)
        fprintf(out, ", %s of it for the start", text_time(start_ns, start));
    if (known && s->model->launch_count)
        fprintf(out, ", %s per launch", text_time((own_ns - start_ns) / s->model->launch_count, per));
    if (known && wall)
        fprintf(out, ", %.1f %% of the run", 100.0 * (double)own_ns / (double)wall);
    fprintf(out, "; %" PRIu64 " snapshots of %s", h->snapshots, text_bytes(h->snapshot_bytes, snapshots));
    if (h->memory_peak)
        fprintf(out, "; %s of memory at most", text_bytes(h->memory_peak, memory));
    if (fclose(out) == 0)
        text_fold(to, "own cost  ", 10, line);
    free(line);
}

/* --max-capture in bytes, 0: no limit. The shim has checked how it is written. */
static uint64_t max_capture(const struct model *m)
{
    const char *text = model_option(m, "MAX_CAPTURE");
    char *end = NULL;
    uint64_t value = text ? strtoull(text, &end, 10) : 0;
    unsigned shift = !end || !*end        ? 0
                     : strchr("kK", *end) ? 10
                     : strchr("mM", *end) ? 20
                     : strchr("gG", *end) ? 30
                                          : 0;
    return value << shift;
}

static uint64_t segment_bytes(const struct capture *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->segment_count; i++)
        bytes += c->segments[i].bytes;
    return bytes;
}

enum { NO_BINARY_FOR_GPU = 209 }; /* CUresult of cuda.h */

static void print_trouble(FILE *out, struct session *s, struct report_style style)
{
    const struct capture *c = s->capture;
    const char *title = "notes     ";
    char line[1024], bytes[24];
#define NOTE(...)                                                                                                      \
    do {                                                                                                               \
        snprintf(line, sizeof line, __VA_ARGS__);                                                                      \
        text_fold(out, title, 10, line);                                                                               \
        title = "          ";                                                                                          \
    } while (0)
    if (c->header.state == CAP_STEPPED_ASIDE)
        NOTE("the tool stepped aside: %s", c->header.reason);
    if (!s->model->launch_count && s->model->error_count) {
        const struct cap_error *e = s->model->errors[0];
        NOTE("nothing was launched; the first call that failed returned %s (%d)%s", capture_string(c, e->name), e->code,
             e->code == NO_BINARY_FOR_GPU
                 ? ": the program has no code for this device; on softgpu it needs PTX (nvcc's default, or -gencode "
                   "arch=compute_75,code=compute_75)"
                 : "");
    }
    if (!s->model->end && c->header.state != CAP_ENDED)
        NOTE("the program did not end in an orderly way, or is still running: the capture ends where it was");
    if (c->header.dropped_records)
        NOTE("%" PRIu64 " records were dropped: no space", c->header.dropped_records);
    if (c->header.dropped_snapshots)
        NOTE("%" PRIu64 " snapshots were dropped: budget, memory or disk", c->header.dropped_snapshots);
    uint64_t limit = max_capture(s->model), taken = segment_bytes(c);
    if (limit && taken > limit + limit / 4)
        NOTE("the records alone take %s, more than --max-capture: what is open, and what later records refer to, stays",
             text_bytes(taken, bytes));
    if (c->header.memory_refused)
        NOTE("%" PRIu64 " times something was left out for want of memory: the tool may hold %s (--max-memory)",
             c->header.memory_refused, text_bytes(c->header.memory_limit, bytes));
    for (size_t i = 0; i < s->model->note_count; i++)
        if (s->model->notes[i]->kind == CAP_NOTE_LOST || style.verbose)
            NOTE("%s", capture_string(c, s->model->notes[i]->text));
    if (c->rejected.count) {
        NOTE("%" PRIu64 " impossible record%s left out:", c->rejected.count,
             c->rejected.count == 1 ? " was" : "s were");
        size_t kept = c->rejected.count < CAPTURE_KEPT_REJECTS ? (size_t)c->rejected.count : CAPTURE_KEPT_REJECTS;
        for (size_t i = 0; i < kept && (style.verbose || i < SHOWN_REJECTS); i++)
            NOTE("%s+%ld: %s", c->rejected.kept[i].where, c->rejected.kept[i].offset, c->rejected.kept[i].text);
    }
    if (*s->store_problem)
        NOTE("%s", s->store_problem);
#undef NOTE
}

struct hint_printer {
    FILE *out;
    const char *title;
};

static void print_hint(void *context, const char *text)
{
    struct hint_printer *p = context;
    text_fold(p->out, p->title, 10, text);
    p->title = "          ";
}

static void print_header(FILE *out, const struct session *s)
{
    const struct cap_header *h = &s->capture->header;
    const char *preset = model_option(s->model, "PRESET");
    char wall[24];
    struct buf b = {0};
    buf_printf(&b, "%s: %s", s->capture->path, s->capture->program);
    if (h->mono_now_ns > h->mono_start_ns)
        buf_printf(&b, ", %s", text_time(h->mono_now_ns - h->mono_start_ns, wall));
    if (s->model->device)
        buf_printf(&b, ", %s", capture_string(s->capture, s->model->device->name));
    if (preset)
        buf_printf(&b, ", preset %s", preset);
    if (b.data)
        text_fold(out, "", 4, b.data);
    buf_free(&b);
}

enum { SHOWN_PROCESSES = 4 };

/* What other processes did is in captures of their own: nothing above speaks of it. */
static void print_next(FILE *out, const struct session *s, bool brief)
{
    const struct capture *c = s->capture;
    const char *title = "next      ";
    char line[200];
    if (!brief && !judgements_known(&s->judgements) && s->model->snapshot_count) {
        fprintf(out, "%sops-debug verify %s\n", title, c->shell_path);
        title = "          ";
    }
    if (!c->process_count)
        return;
    snprintf(line, sizeof line, "%zu other process%s left %s:", c->process_count, c->process_count == 1 ? "" : "es",
             c->process_count == 1 ? "a capture" : "captures");
    if (c->process_count == 1) {
        fprintf(out, "%s%s ops-debug verify %s/%s\n", title, line, c->shell_path, c->processes[0]);
        return;
    }
    fprintf(out, "%s%s\n", title, line);
    for (size_t i = 0; i < c->process_count && i < SHOWN_PROCESSES; i++)
        fprintf(out, "            ops-debug verify %s/%s\n", c->shell_path, c->processes[i]);
    if (c->process_count > SHOWN_PROCESSES)
        fprintf(out, "            and %zu more\n", c->process_count - SHOWN_PROCESSES);
}

void report_text(FILE *out, struct session *s, struct report_style style)
{
    if (!style.brief)
        print_header(out, s);
    print_conclusion(out, s, style);
    if (!style.brief)
        print_kernels(out, s, style);
    if (!style.brief)
        report_operators_text(out, s, style);
    if (!style.brief)
        print_patterns(out, s, style);
    print_coverage(out, s);
    health_seen_print(out, s, "health    ", style.verbose);
    if (!style.brief)
        print_cost(out, s);
    hints_each(s, print_hint, &(struct hint_printer){out, "not on    "});
    print_trouble(out, s, style);
    print_next(out, s, style.brief);
}
