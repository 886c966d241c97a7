/* classify_differences.c - where the device left other bytes than the kernel's PTX does. Only what verify was sure of
 * gets here. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/finding.h"

static enum finding_class difference_class(enum judgement_difference_kind kind)
{
    return kind == JUDGEMENT_DIFFERENCE_DROPPED ? FINDING_DROPPED_WRITE : FINDING_MISMATCH;
}

static struct finding *same_cause(const struct model *m, struct findings *fs, enum finding_class class,
                                  const struct model_launch *l, uint32_t node)
{
    for (size_t i = 0; i < fs->count; i++) {
        const struct model_launch *first = model_launch_by_number(m, fs->items[i].launch);
        if (fs->items[i].class == class && first &&
            strcmp(model_launch_kernel(m, first, fs->items[i].node)->full_name,
                   model_launch_kernel(m, l, node)->full_name) == 0)
            return &fs->items[i];
    }
    return NULL;
}

static void describe(const struct judgement_difference *d, struct finding *f)
{
    const char *what[] = {
        [JUDGEMENT_DIFFERENCE_MISMATCH] = "hold other values than the kernel's PTX computes",
        [JUDGEMENT_DIFFERENCE_DROPPED] = "still hold their old values although the kernel stores to them",
        [JUDGEMENT_DIFFERENCE_OUTSIDE] = "changed although the kernel does not store to them",
    };
    finding_summary(f, "%" PRIu64 " of %" PRIu64 " words of allocation %u %s", d->words, d->of, d->allocation,
                    what[d->kind]);
    float device, expected;
    memcpy(&device, &d->device, sizeof device);
    memcpy(&expected, &d->expected, sizeof expected);
    finding_evidence(f, "re-execution",
                     "first at offset %" PRIu64 ": device 0x%08x, expected 0x%08x (as floats %.9g and %.9g)", d->offset,
                     d->device, d->expected, (double)device, (double)expected);
    if (d->scales > 0)
        finding_evidence(f, "envelope",
                         "the worst is %.3g times as far from the expected value as rounding, contraction and "
                         "approximation can move it in six runs by chance",
                         d->scales);
}

/* Whose outputs other nodes have overwritten since: what they stored is not seen. */
static void add_candidates(const struct model *m, const struct model_launch *l, const struct judgement_difference *d,
                           struct finding *f)
{
    char text[600];
    size_t used = 0;
    if (!d->candidate_count)
        return;
    for (uint32_t i = 0; i < d->candidate_count && used + 80 < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%snode %u (%.40s)", i ? ", " : "", d->candidates[i],
                                 model_launch_kernel(m, l, d->candidates[i])->name);
    finding_evidence(f, "candidates",
                     "stored last by node %u; it may have computed from wrong values of %s, whose outputs "
                     "are overwritten when the graph has ended",
                     d->node, text);
    f->node = 0;
    f->confidence = 0.6;
}

void classify_differences(const struct model *m, const struct judgements *js, struct findings *out)
{
    for (size_t i = 0; i < js->count; i++) {
        const struct judgement *j = &js->items[i];
        const struct model_launch *l = j->raced ? NULL : model_launch_by_number(m, j->launch);
        for (size_t k = 0; l && k < j->difference_count; k++) {
            struct judgement_difference *d = &j->differences[k];
            struct finding *old = same_cause(m, out, difference_class(d->kind), l, d->node);
            if (old) {
                finding_launch(old, l->number);
                continue;
            }
            size_t index =
                findings_add(out, difference_class(d->kind), d->kind == JUDGEMENT_DIFFERENCE_OUTSIDE ? 0.6 : 0.8);
            if (index == SIZE_MAX)
                return;
            struct finding *f = &out->items[index];
            finding_launch(f, l->number);
            f->node = d->node;
            f->allocation = d->allocation;
            f->offset = (int64_t)d->offset;
            describe(d, f);
            add_candidates(m, l, d, f);
            finding_next(f, "ops-debug show %s %u", m->capture->shell_path, l->number);
        }
    }
}
