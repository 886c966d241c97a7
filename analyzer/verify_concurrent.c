/* verify_concurrent.c - could somebody else have written to an allocation while a launch ran? */
#include "analyzer/verify.h"

#include <string.h>

/* Launches of other streams this many places away count as running at the same time: queues are seldom deeper. */
enum { NEAR_LAUNCHES = 512 };

bool verify_shared_with_host(const struct model_allocation *a)
{
    switch (a->record->kind) {
    case CAP_ALLOC_DEVICE:
    case CAP_ALLOC_PITCHED:
    case CAP_ALLOC_ASYNC:
    case CAP_ALLOC_POOL:
    case CAP_ALLOC_VARIABLE:
        return false;
    default:
        return true;
    }
}

static bool launch_reaches(const struct model_launch *l, const struct model_allocation *a)
{
    const uint8_t *params = model_launch_params(l);
    if (!params || model_launch_graph(l) ||
        (a->record->kind == CAP_ALLOC_VARIABLE && l->kernel->record->module == a->record->module))
        return true;
    for (uint32_t at = 0; at + 8u <= l->record->param_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        if (word >= a->address && word - a->address < a->bytes)
            return true;
    }
    return false;
}

static bool copied_into(const struct model *m, uint64_t first_seq, uint64_t last_seq, uint32_t stream,
                        const struct model_allocation *a)
{
    size_t low = 0, high = m->capture->record_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->capture->records[middle]->seq < first_seq)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < m->capture->record_count && m->capture->records[low]->seq <= last_seq; low++) {
        const struct cap_head *record = m->capture->records[low];
        const struct cap_copy *copy = (const void *)record;
        const struct cap_set *set = (const void *)record;
        uint64_t target = record->type == CAP_COPY ? copy->target : set->target;
        uint32_t other = record->type == CAP_COPY ? copy->stream : record->type == CAP_SET ? set->stream : stream;
        if (other != stream && target >= a->address && target - a->address < a->bytes)
            return true;
    }
    return false;
}

bool verify_concurrent(const struct verify *v, const struct model_launch *l, uint32_t allocation)
{
    const struct model *m = v->model;
    const struct model_allocation *a = model_allocation_by_id(m, allocation);
    if (!a || verify_shared_with_host(a) || m->uses_graphs)
        return true;
    size_t first = l->number > NEAR_LAUNCHES ? l->number - NEAR_LAUNCHES : 1;
    size_t last = l->number + NEAR_LAUNCHES < m->launch_count ? l->number + NEAR_LAUNCHES : m->launch_count;
    for (size_t n = first; n <= last; n++) {
        const struct model_launch *other = model_launch_by_number(m, n);
        if (other->record->stream != l->record->stream && model_launch_ran(other) && launch_reaches(other, a))
            return true;
    }
    uint64_t end = last < m->launch_count ? model_launch_seq(&m->launches[last]) : UINT64_MAX;
    if (verify_operator_beside(m, model_launch_seq(&m->launches[first - 1]), end, l->record->stream, a))
        return true;
    return copied_into(m, model_launch_seq(&m->launches[first - 1]), end, l->record->stream, a);
}
