/* classify_numbers.c - what the shadow run saw becomes findings: where a NaN was born, which place is too coarse. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analyzer/finding.h"
#include "analyzer/place.h"

static enum finding_class number_class(enum judgement_number_kind kind)
{
    return kind == JUDGEMENT_NUMBER_NAN ? FINDING_NAN_ORIGIN : FINDING_APPROXIMATION;
}

static struct finding *same_cause(struct findings *fs, const struct judgement_number *n)
{
    for (size_t i = 0; i < fs->count; i++)
        if (fs->items[i].class == number_class(n->kind) && place_same(&fs->items[i], &n->access))
            return &fs->items[i];
    return NULL;
}

static void operands_text(const struct judgement_number *n, char out[160])
{
    int used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < n->operand_count && used < 120; i++)
        used += snprintf(out + used, (size_t)(160 - used), "%s%.9g", i ? ", " : "", n->operands[i]);
}

static void describe_nan(const struct judgement_number *n, const char *buffer, struct finding *f)
{
    char who[PLACE_THREAD_BYTES], where[PLACE_TEXT_BYTES], operands[160];
    place_thread(&n->access, who);
    place_text(&n->access, where);
    operands_text(n, operands);
    if (n->operand_count)
        finding_summary(f, "NaN made from %s by %s; %" PRIu64 " of %" PRIu64 " elements of %s are NaN", operands, who,
                        n->count, n->of, buffer);
    else
        finding_summary(f, "NaN made here; %" PRIu64 " of %" PRIu64 " elements of %s are NaN", n->count, n->of, buffer);
    finding_evidence(f, "shadow",
                     "at %s no operand is NaN and the result is; the first NaN stored lies at offset %" PRIu64, where,
                     n->offset);
}

static void describe_approximation(const struct judgement_number *n, const char *buffer, struct finding *f)
{
    char who[PLACE_THREAD_BYTES], where[PLACE_TEXT_BYTES], operands[160];
    double error = fabs(n->stored - n->wide);
    place_thread(&n->access, who);
    place_text(&n->access, where);
    operands_text(n, operands);
    finding_summary(
        f, "%" PRIu64 " of %" PRIu64 " elements of %s are off by more than their limit, and this place contributes it",
        n->count, n->of, buffer);
    finding_evidence(f, "shadow",
                     "worst element, offset %" PRIu64
                     ": %.9g stored, %.9g in fp64 along the same path; error %.3g (%.3g relative), "
                     "limits %g or %g relative",
                     n->offset, n->stored, n->wide, error, n->wide != 0 ? error / fabs(n->wide) : (double)INFINITY,
                     n->limit_absolute, n->limit_relative);
    if (n->operand_count)
        finding_evidence(f, "cancellation", "at %s by %s: from %s comes %.9g, which is %.9g in fp64", where, who,
                         operands, n->result, n->result_wide);
    finding_evidence(f, "conditioning",
                     "inputs off by half a unit in the last place would move the true result far less");
}

static void take_number(const struct model *m, struct symbols *symbols, const struct model_launch *l,
                        struct judgement_number *n, struct findings *out)
{
    char buffer[PLACE_ALLOCATION_BYTES];
    struct finding *old = same_cause(out, n);
    if (old) {
        finding_launch(old, l->number);
        n->finding = (size_t)(old - out->items) + 1;
        return;
    }
    size_t index = findings_add(out, number_class(n->kind), n->kind == JUDGEMENT_NUMBER_NAN ? 0.9 : 0.8);
    if (index == SIZE_MAX)
        return;
    struct finding *f = &out->items[index];
    n->finding = index + 1;
    finding_launch(f, l->number);
    f->node = n->node;
    place_set(f, &n->access, n->operand_count > 0);
    f->allocation = n->allocation;
    f->offset = (int64_t)n->offset;
    const struct model_allocation *a = model_allocation_by_id(m, n->allocation);
    snprintf(buffer, sizeof buffer, "allocation %u", n->allocation); /* of which nothing more is known */
    if (a)
        place_allocation(symbols, a, buffer);
    if (n->kind == JUDGEMENT_NUMBER_NAN)
        describe_nan(n, buffer, f);
    else
        describe_approximation(n, buffer, f);
    place_inlined(f, &n->access);
    finding_next(f, "ops-debug show %s %u", m->capture->shell_path, l->number);
}

void classify_numbers(const struct model *m, const struct judgements *js, struct symbols *symbols, struct findings *out)
{
    for (size_t i = 0; i < js->count; i++) {
        struct judgement *j = &js->items[i];
        const struct model_launch *l = j->raced ? NULL : model_launch_by_number(m, j->launch);
        for (size_t k = 0; l && k < j->number_count; k++)
            take_number(m, symbols, l, &j->numbers[k], out);
    }
}
