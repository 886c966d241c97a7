/* classify_marks.c - the program asserted that a buffer is finite, and it was not. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/finding.h"
#include "analyzer/marks.h"
#include "analyzer/name.h"

/* The finding that tells already how NaN came into this memory before, or NULL. */
static struct finding *known_origin(const struct model *m, struct findings *fs, const struct cap_mark *mark)
{
    for (size_t i = 0; i < fs->count; i++) {
        const struct finding *f = &fs->items[i];
        const struct model_allocation *a = model_allocation_by_id(m, f->allocation);
        const struct model_launch *l = model_launch_by_number(m, f->launch);
        if (f->class == FINDING_NAN_ORIGIN && a && l && model_launch_seq(l) < mark->head.seq &&
            a->address < mark->address + mark->bytes && mark->address < a->address + a->bytes)
            return &fs->items[i];
    }
    return NULL;
}

/* "3 NaN and 1 Inf among 1000 f32 of logits, the first at [0, 17]" */
static void describe(const struct model *m, const struct model_mark *mark, const struct mark_values *v, char *out,
                     size_t bytes)
{
    const struct cap_name *name = marks_name(m, mark->record->address, mark->record->head.seq);
    char nan[40] = "", inf[40] = "", where[128];
    uint64_t offset = v->first * marks_dtype_bytes(mark->record->dtype);
    if (v->nans)
        snprintf(nan, sizeof nan, "%" PRIu64 " NaN", v->nans);
    if (v->infinities)
        snprintf(inf, sizeof inf, "%s%" PRIu64 " Inf", v->nans ? " and " : "", v->infinities);
    if (name)
        marks_coordinates(name, mark->record->address - name->address + offset, where, sizeof where);
    else
        snprintf(where, sizeof where, "[%" PRIu64 "]", v->first);
    snprintf(out, bytes, "%s%s among %" PRIu64 " %s%s%.80s, the first at %s", nan, inf, v->elements,
             marks_dtype(mark->record->dtype), name ? " of " : "", name ? capture_string(m->capture, name->name) : "",
             where);
}

static void set_place(struct symbols *symbols, uint32_t stack_id, struct finding *f)
{
    const struct symbol_stack *stack = symbols_stack(symbols, stack_id);
    if (stack->own >= stack->count || !stack->frames[stack->own].file)
        return;
    f->file = strdup(stack->frames[stack->own].file);
    f->line = stack->frames[stack->own].line;
    f->function = stack->frames[stack->own].function ? strdup(stack->frames[stack->own].function) : NULL;
}

static void take_mark(const struct model *m, struct symbols *symbols, const struct model_mark *mark,
                      struct findings *out)
{
    struct mark_values v;
    char what[400], place[200], step[40] = "";
    const char *label = capture_string(m->capture, mark->record->text);
    if (mark->record->kind != CAP_MARK_ASSERT_FINITE || !marks_values(m, mark, &v) || (!v.nans && !v.infinities))
        return;
    describe(m, mark, &v, what, sizeof what);
    symbols_place(symbols, mark->record->stack, place, sizeof place);
    if (mark->has_step)
        snprintf(step, sizeof step, ", in step %" PRIu64, mark->step);
    struct finding *origin = known_origin(m, out, mark->record);
    if (origin) {
        finding_evidence(origin, "assertion", "%s at %s: %s%s", label, place, what, step);
        return;
    }
    /* One assertion that fails in every step is one finding. */
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].mark && model_mark_by_number(m, out->items[i].mark)->record->stack == mark->record->stack &&
            model_mark_by_number(m, out->items[i].mark)->record->text == mark->record->text) {
            out->items[i].mark_count++;
            return;
        }
    size_t index = findings_add(out, v.nans ? FINDING_NAN_ORIGIN : FINDING_OVERFLOW, 1.0);
    if (index == SIZE_MAX)
        return;
    struct finding *f = &out->items[index];
    f->mark = mark->number;
    f->mark_count = 1;
    f->allocation = mark->record->allocation;
    const struct model_allocation *a = model_allocation_by_id(m, f->allocation);
    if (a)
        f->offset = (int64_t)(mark->record->address - a->address + v.first * marks_dtype_bytes(mark->record->dtype));
    set_place(symbols, mark->record->stack, f);
    finding_summary(f, "assertion %s failed: %s%s", label, what, step);
    if (*mark->module_path)
        finding_evidence(f, "module", "%s", mark->module_path);
    finding_next(f, "ops-debug trace %s", m->capture->shell_path);
}

void classify_marks(const struct model *m, struct symbols *symbols, struct findings *out)
{
    for (size_t i = 0; i < m->mark_count; i++)
        take_mark(m, symbols, &m->marks[i], out);
    for (size_t i = 0; i < out->count; i++)
        if (out->items[i].mark_count > 1)
            finding_evidence(&out->items[i], "assertion", "failed %zu times", out->items[i].mark_count);
}

/* What the program calls the memory of a finding, and which element of it that is. */
void classify_names(const struct model *m, struct findings *out)
{
    for (size_t i = 0; i < out->count; i++) {
        struct finding *f = &out->items[i];
        const struct model_allocation *a = model_allocation_by_id(m, f->allocation);
        const struct model_launch *l = model_launch_by_number(m, f->launch);
        if (!a || !a->bytes || !m->name_count || f->mark)
            continue;
        uint64_t address = a->address + (uint64_t)f->offset, last = a->address + a->bytes - 1;
        bool before = f->offset < 0, behind = !before && (uint64_t)f->offset >= a->bytes;
        const struct cap_name *n = marks_name(m,
                                              before   ? a->address
                                              : behind ? last
                                                       : address,
                                              l ? model_launch_seq(l) : UINT64_MAX);
        char shape[160], where[128];
        if (!n)
            continue;
        marks_shape(n, shape, sizeof shape);
        marks_coordinates(n, address - n->address, where, sizeof where);
        if (before)
            finding_evidence(f, "buffer", "before the start of %.80s, %s", capture_string(m->capture, n->name), shape);
        else
            finding_evidence(f, "buffer", "element %s%s of %.80s, %s", where, behind ? ", behind the end" : "",
                             capture_string(m->capture, n->name), shape);
    }
}
