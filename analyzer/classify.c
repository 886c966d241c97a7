/* classify.c - from everything known to a short list: one finding per root cause. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/finding.h"

static int by_launch(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    if ((x->severity == FINDING_NOTE) != (y->severity == FINDING_NOTE))
        return x->severity == FINDING_NOTE ? 1 : -1;
    size_t p = x->launch ? x->launch : SIZE_MAX, q = y->launch ? y->launch : SIZE_MAX;
    if (p != q)
        return p < q ? -1 : 1;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return x->ptx_line < y->ptx_line ? -1 : x->ptx_line > y->ptx_line;
}

void classify(const struct model *m, const struct judgements *js, struct symbols *symbols, struct findings *out)
{
    /* Faults first: the other signals look for a fault that explains them before they speak for themselves. */
    classify_faults(m, js, symbols, out);
    classify_copies(m, symbols, out);
    classify_damage(m, js, symbols, out);
    classify_errors(m, js, symbols, out);
    classify_held(m, js, symbols, out);
    classify_guard(m, symbols, out);
    classify_frees(m, symbols, out);
    classify_order(m, js, symbols, out); /* before what it may explain */
    classify_numbers(m, js, symbols, out);
    classify_differences(m, js, out);
    classify_marks(m, symbols, out);
    classify_names(m, out);
    classify_unexplained(m, symbols, out);
    const char *preset = model_option(m, "PRESET");
    for (size_t i = 0; i < out->count && preset && strcmp(preset, "deep") == 0; i++)
        if (out->items[i].class == FINDING_MISMATCH && !out->items[i].cure)
            out->items[i].cure = "compare another device or compiler version";
    if (out->count)
        qsort(out->items, out->count, sizeof *out->items, by_launch);
    for (size_t i = 0; i < out->count; i++) /* the numbers are known only now */
        if (out->items[i].launch && !out->items[i].window_last && out->items[i].class != FINDING_FAILED_LAUNCH)
            finding_next_first(&out->items[i], "ops-debug attribute %s %zu", m->capture->shell_path, i + 1);
}
