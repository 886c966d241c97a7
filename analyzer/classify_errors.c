/* classify_errors.c - launches that the driver refused, and kernels that died on the device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/finding.h"
#include "analyzer/host_pointer.h"

/* Errors that a running kernel causes and that stick to the context (CUresult of cuda.h 13.0). They show up at any
 * later call. */
static bool sticky(int32_t code)
{
    switch (code) {
    case 214: /* ECC_UNCORRECTABLE */
    case 700: /* ILLEGAL_ADDRESS */
    case 702: /* LAUNCH_TIMEOUT */
    case 710: /* ASSERT */
    case 714: /* HARDWARE_STACK_ERROR */
    case 715: /* ILLEGAL_INSTRUCTION */
    case 716: /* MISALIGNED_ADDRESS */
    case 717: /* INVALID_ADDRESS_SPACE */
    case 718: /* INVALID_PC */
    case 719: /* LAUNCH_FAILED */
    case 721: /* TENSOR_MEMORY_LEAK */
        return true;
    default:
        return false;
    }
}

enum { ILLEGAL_ADDRESS = 700, NAMED_MAX = 4 };

static const char *error_name(const struct model *m, const struct cap_error *e)
{
    const char *name = e ? capture_string(m->capture, e->name) : "";
    return *name ? name : e ? "an unnamed error" : "an error that was not recorded";
}

static bool fault_explains(enum finding_class class)
{
    return class == FINDING_OUT_OF_BOUNDS_READ || class == FINDING_OUT_OF_BOUNDS_WRITE || class == FINDING_MISALIGNED ||
           class == FINDING_USE_AFTER_FREE || class == FINDING_FAILED_LAUNCH;
}

/* Up to which seq the work of each stream (0: of all) was complete before `error` came: a wait of the program that
 * succeeded says so. */
static bool known_complete(const struct model *m, uint64_t error, struct map *of_stream)
{
    const struct capture *c = m->capture;
    for (size_t i = 0; i < c->record_count && c->records[i]->seq < error; i++) {
        const struct cap_sync *s = (const void *)c->records[i];
        if (s->head.type == CAP_SYNC && s->result == 0 && s->kind <= CAP_SYNC_STREAM &&
            !map_put(of_stream, s->kind == CAP_SYNC_CONTEXT ? 0 : s->object, s->head.seq))
            return false;
    }
    return true;
}

/* The launches from `first` to `last` (numbers) that may still have been running; returns how many. */
static size_t still_running(const struct model *m, uint64_t error, size_t *first, size_t *last)
{
    struct map of_stream = {0};
    size_t count = 0;
    bool known = known_complete(m, error, &of_stream);
    for (size_t i = model_first_launch_from(m, error); known && i-- > 0;) {
        const struct model_launch *l = &m->launches[i];
        uint64_t all = 0, own = 0;
        if (!model_launch_ran(l))
            continue;
        (void)map_get(&of_stream, 0, &all);
        (void)map_get(&of_stream, l->record->stream, &own);
        if (model_launch_seq(l) <= all)
            break;
        if (model_launch_seq(l) <= own)
            continue;
        *first = l->number;
        *last = count++ ? *last : l->number;
    }
    map_free(&of_stream);
    return count;
}

static void take_window(const struct model *m, const struct cap_error *e, struct findings *out)
{
    size_t first = 0, last = 0, count = still_running(m, e->head.seq, &first, &last);
    size_t index = findings_add(out, FINDING_FAILED_LAUNCH, count == 1 ? 0.9 : count ? 0.7 : 0.5);
    if (index == SIZE_MAX)
        return;
    struct finding *f = &out->items[index];
    const char *which = count == 1  ? "; this is the only launch that may still have been running"
                        : count > 1 ? "; one of these launches was running"
                                    : "";
    if (count)
        finding_launch(f, first);
    f->window_last = count > 1 ? last : 0;
    finding_summary(f, "the device stopped with %s (%d)%s", error_name(m, e), e->code, which);
    finding_evidence(f, "device-error", "%s (%d)", error_name(m, e), e->code);
    for (size_t n = first, named = 0; count && e->code == ILLEGAL_ADDRESS && n <= last && named < NAMED_MAX; n++)
        named += host_pointer_arguments(m, model_launch_by_number(m, n), f);
}

/* The culprit is among the launches before the call that returned the error. */
static void take_sticky(const struct model *m, const struct judgements *js, const struct cap_error *e,
                        struct findings *out)
{
    for (size_t i = model_first_launch_from(m, e->head.seq); i-- > 0;) {
        const struct judgement *j = judgements_find(js, m->launches[i].number);
        for (size_t k = 0; j && k < j->fault_count; k++) {
            struct finding *f = j->faults[k].finding ? &out->items[j->faults[k].finding - 1] : NULL;
            if (f && fault_explains(f->class)) {
                finding_evidence(f, "device-error", "a later call returned %s (%d)", error_name(m, e), e->code);
                f->confidence = 0.99;
                return;
            }
        }
    }
    size_t before_this = out->count;
    take_window(m, e, out);
    if (out->count == before_this)
        return;
    struct finding *f = &out->items[before_this];
    if (!judgements_known(js))
        finding_next(f, "ops-debug verify %s", m->capture->shell_path);
    finding_next_deeper(f, m);
}

/* "NAME (CODE)". */
static void describe_error(const struct model *m, const struct cap_error *error, char *out, size_t bytes)
{
    if (error)
        snprintf(out, bytes, "%s (%d)", error_name(m, error), error->code);
    else
        snprintf(out, bytes, "%s", error_name(m, NULL));
}

static bool refused_alike(const struct model *m, const struct model_launch *a, const struct model_launch *b)
{
    const struct cap_error *x = model_launch_error(m, a), *y = model_launch_error(m, b);
    return a->record->outcome == CAP_LAUNCH_FAILED && a->kernel == b->kernel && (x ? x->code : 0) == (y ? y->code : 0);
}

/* One finding per kernel and error code. */
static void take_refused(const struct model *m, const struct model_launch *l, struct symbols *symbols,
                         struct findings *out)
{
    const struct cap_error *error = model_launch_error(m, l);
    char what[200];
    describe_error(m, error, what, sizeof what);
    for (size_t i = 0; i < out->count; i++) {
        struct finding *old = &out->items[i];
        const struct model_launch *first = model_launch_by_number(m, old->launch);
        if (old->class == FINDING_FAILED_LAUNCH && first && refused_alike(m, first, l)) {
            finding_launch(old, l->number);
            return;
        }
    }
    size_t index = findings_add(out, FINDING_FAILED_LAUNCH, error ? 0.99 : 0.5);
    if (index == SIZE_MAX)
        return;
    struct finding *f = &out->items[index];
    const struct symbol_stack *s = symbols_stack(symbols, l->record->stack);
    if (s->own < s->count) {
        f->file = strdup(s->frames[s->own].file);
        f->line = s->frames[s->own].line;
        f->function = s->frames[s->own].function ? strdup(s->frames[s->own].function) : NULL;
    }
    finding_launch(f, l->number);
    finding_summary(f, "the driver refused the launch with %s", what);
    if (model_launch_graph(l))
        finding_evidence(f, "device-error", "%s from the launch call of %s", what, l->kernel->name);
    else
        finding_evidence(
            f, "device-error",
            "%s from the launch call; grid %u x %u x %u, block %u x %u x %u, %u bytes of dynamic shared memory", what,
            l->config->grid[0], l->config->grid[1], l->config->grid[2], l->config->block[0], l->config->block[1],
            l->config->block[2], l->config->dynamic_shared_bytes);
    finding_next(f, "ops-debug show %s %u", m->capture->shell_path, l->number);
}

void classify_errors(const struct model *m, const struct judgements *js, struct symbols *symbols, struct findings *out)
{
    uint64_t died = UINT64_MAX;
    for (size_t i = 0; i < m->error_count; i++) {
        if (!sticky(m->errors[i]->code))
            continue;
        died = m->errors[i]->head.seq;
        take_sticky(m, js, m->errors[i], out);
        break; /* every later call returns the same */
    }
    for (size_t i = 0; i < m->launch_count; i++) {
        const struct model_launch *l = &m->launches[i];
        if (l->record->outcome != CAP_LAUNCH_FAILED || model_launch_seq(l) >= died)
            continue;
        const struct cap_error *error = model_launch_error(m, l);
        if (error && !sticky(error->code))
            take_refused(m, l, symbols, out);
    }
}

/* Captures of older writers, and such that ended for want of space, may say of a launch that it failed and not why.
 * What else is wrong may well be the reason. */
void classify_unexplained(const struct model *m, struct symbols *symbols, struct findings *out)
{
    bool anything = out->count > 0;
    for (size_t i = 0; i < m->launch_count && !anything; i++) {
        const struct model_launch *l = &m->launches[i];
        if (l->record->outcome == CAP_LAUNCH_FAILED && !model_launch_error(m, l))
            take_refused(m, l, symbols, out);
    }
}
