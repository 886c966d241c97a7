/* report_launch.c - arguments of a launch for people: which allocation, which offset. */
#include <stdlib.h>
#include <string.h>

#include "analyzer/report.h"

struct report_argument *report_arguments(const struct model *m, const struct model_launch *l, size_t *count)
{
    *count = 0;
    const struct cap_kernel *k = l->kernel->record;
    const struct cap_kernel_param *params = (const struct cap_kernel_param *)(k + 1);
    const uint8_t *bytes = model_launch_params(l);
    struct report_argument *out = bytes ? calloc((size_t)k->param_count + 1, sizeof *out) : NULL;
    if (!out)
        return NULL;
    struct model_live live;
    model_live_start(&live, m);
    model_live_advance(&live, l->seq);
    for (uint32_t i = 0; i < k->param_count; i++) {
        struct report_argument *a = &out[*count];
        a->offset = params[i].offset;
        a->size = params[i].size;
        if (a->offset > l->record->param_bytes || a->size > l->record->param_bytes - a->offset)
            continue;
        memcpy(&a->value, bytes + a->offset, a->size < 8 ? a->size : 8);
        if (a->size == 8) {
            a->allocation = model_live_find_inner(&live, a->value);
            if (!a->allocation) {
                a->allocation = model_live_find_freed(&live, a->value);
                a->freed = a->allocation != NULL;
            }
        }
        ++*count;
    }
    model_live_end(&live);
    return out;
}
