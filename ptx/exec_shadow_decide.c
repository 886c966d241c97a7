/* exec_shadow_decide.c - decisions that would turn out otherwise if what they were made from had been rounded another
 * way: comparisons of floats, and their conversions to integers. */
#include "ptx/exec_shadow.h"

static void note(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                 const struct operand_value *o, unsigned count, double gap, double reach)
{
    const struct judgement j = {o, count, HOW_ONE, PRECISION_F32, gap, {reach, 0}, {gap, 0}};
    shadow_note(w, b, t, thread_line(t, in), PTX_NUMBER_DECIDED, &j, 0, reach > 0 ? 1 - gap / reach : 1);
}

bool shadow_compared(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                     const struct operand_value o[2], double reach)
{
    if (in->op == OP_NUM_F32 || in->op == OP_NAN_F32 || in->op == OP_NUM_F64 || in->op == OP_NAN_F64)
        return false;
    note(w, b, t, in, o, 2, fabs(o[0].actual - o[1].actual), reach);
    return true;
}

void shadow_rounded(struct worker *w, struct block *b, struct thread *t, const struct insn *in,
                    const struct operand_value *x, double reach)
{
    unsigned mode = in->op == OP_F32_TO_S32_RZ ? ROUND_RZ : in->mod & 7;
    bool nearest = mode == ROUND_NONE || mode == ROUND_RN || mode == ROUND_RNA;
    double part = x->actual - floor(x->actual);
    double gap = nearest ? fabs(part - 0.5) : fmin(part, 1 - part);
    note(w, b, t, in, x, 1, gap < reach ? gap : reach, reach);
}
