/* health.h - which launches stored NaN, Inf or too large values, where those were born, and how they spread.
 *
 * Looks at the device's own outputs (the snapshots after each launch). The re-execution tells which of them are
 * floating-point, and in which instruction a bad value was made.
 */
#ifndef ANALYZER_HEALTH_H
#define ANALYZER_HEALTH_H

#include "analyzer/rerun.h"

enum { HEALTH_OUTPUTS = 8 };

struct health_output { /* a buffer with bad values that the launch stored */
    uint32_t allocation;
    enum element_type type;
    uint64_t bad, nans, infinities, of; /* elements; of: all of the buffer */
    uint64_t offset;                    /* of the first bad one */
    double value;
};
struct health_launch {
    const struct model_launch *launch;
    struct health_output outputs[HEALTH_OUTPUTS];
    size_t output_count;
    char not_run[32]; /* coverage word, why it was not re-executed; "" when it was */
    bool born;        /* made here from good values; `place` is the instruction, when known */
    struct judgement_access place;
    bool has_thread; /* place.block and thread are the ones that made it */
    uint32_t operand_count;
    double operands[3], result;
    uint32_t source;     /* allocation that bad values came in by; 0: none is seen */
    size_t parent;       /* index in the list of the launch that wrote them; SIZE_MAX: none of these */
    char source_by[200]; /* without parent: who may have written them */
};
struct health {
    struct health_launch *launches; /* owned; those with bad outputs, in order */
    size_t count;
    size_t outputs; /* floating-point outputs looked at */
    size_t unseen;  /* launches that ran without a snapshot after them */
    size_t guessed; /* outputs whose type is a guess by their contents */
    bool full;      /* every element was looked at; else a sample found nothing */
    double threshold;
};

/* Bad: NaN, Inf, and larger in size than `threshold` (INFINITY: none). Samples first, and looks at everything when the
 * samples show something or `full`. `judgements` of `verify` tell which writers nothing orders; they may be empty. On
 * failure *out is empty. */
enum status health_make(const struct model *model, const struct judgements *judgements, double threshold, bool full,
                        struct health *out, struct diag *diag);
void health_free(struct health *health);

#endif
