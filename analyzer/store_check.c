#include "analyzer/store_check.h"

#include "analyzer/model_graph.h"

/* 0: of no node in particular. */
static bool is_node(const struct model_launch *l, uint32_t number)
{
    return !number || model_launch_node(l, number);
}

/* Two nodes that nothing orders are two, and race. */
static bool check_fault(const struct model_launch *l, const struct judgement_fault *f)
{
    if (f->other_node && (f->kind != JUDGEMENT_FAULT_RACE || !f->node || f->node == f->other_node))
        return false;
    return is_node(l, f->node) && is_node(l, f->other_node);
}

static bool check_difference(const struct model_launch *l, const struct judgement_difference *d)
{
    if (d->candidate_count && !d->node)
        return false;
    for (uint32_t i = 0; i < d->candidate_count; i++)
        if (!is_node(l, d->candidates[i]))
            return false;
    return is_node(l, d->node);
}

bool store_check(const struct model *m, const struct judgement *j)
{
    const struct model_launch *l = model_launch_by_number(m, j->launch);
    bool good = l != NULL;
    for (size_t i = 0; good && i < j->fault_count; i++)
        good = check_fault(l, &j->faults[i]);
    for (size_t i = 0; good && i < j->difference_count; i++)
        good = check_difference(l, &j->differences[i]);
    for (size_t i = 0; good && i < j->number_count; i++)
        good = is_node(l, j->numbers[i].node);
    return good;
}
