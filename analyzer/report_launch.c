/* report_launch.c - arguments of a launch for people: which allocation, which offset. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/marks.h"
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
    model_live_advance(&live, model_launch_seq(l));
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

/* Nobody tells an argument's type. As a float it is shown, too, when that is a number that programs use: small integers
 * are tiny floats, and -1 is a NaN. */
static void number_text(int64_t integer, const char *type, double value, char *out, size_t bytes)
{
    if (isinf(value) || (fabs(value) >= 0x1p-63 && fabs(value) <= 0x1p63))
        snprintf(out, bytes, "%" PRId64 ", as %s %g", integer, type, value);
    else
        snprintf(out, bytes, "%" PRId64, integer);
}

void report_argument_text(struct session *s, const struct report_argument *a, uint64_t seq, char *out, size_t bytes)
{
    char place[200];
    const struct model_allocation *to = a->allocation;
    if (to) {
        const struct cap_name *name = marks_name(s->model, a->value, seq);
        if (name) {
            char shape[160];
            marks_shape(name, shape, sizeof shape);
            snprintf(out, bytes, "%.60s, %s, allocation %u + %" PRIu64 " of %" PRIu64,
                     capture_string(s->capture, name->name), shape, to->id, a->value - to->address, to->bytes);
            return;
        }
        symbols_place(s->symbols, to->record->stack, place, sizeof place);
        snprintf(out, bytes, "%sallocation %u + %" PRIu64 " of %" PRIu64 "%s%s", a->freed ? "freed " : "", to->id,
                 a->value - to->address, to->bytes, *place ? ", allocated at " : "", place);
    } else if (a->size == 4) {
        float as_float;
        uint32_t word = (uint32_t)a->value;
        memcpy(&as_float, &word, sizeof as_float);
        number_text((int32_t)word, "float", (double)as_float, out, bytes);
    } else if (a->size == 8) {
        double as_double;
        memcpy(&as_double, &a->value, sizeof as_double);
        number_text((int64_t)a->value, "double", as_double, out, bytes);
    } else {
        snprintf(out, bytes, "%s", a->size > 8 ? "(first 8 bytes shown)" : "");
    }
}
