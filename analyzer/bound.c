#include "analyzer/bound.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *pattern;
    double tflops, gigabytes; /* per second */
} devices[] = {
#define DEVICE(pattern, tflops, gigabytes) {pattern, tflops, gigabytes},
#include "analyzer/devices.def"
#undef DEVICE
};

const char *bound_name(enum bound_by by)
{
    return by == BOUND_MEMORY ? "memory" : by == BOUND_COMPUTE ? "compute" : "unknown";
}

double bound_bandwidth(const struct model *m)
{
    if (!m->device)
        return 0;
    const char *name = capture_string(m->capture, m->device->name);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (fnmatch(devices[i].pattern, name, 0) == 0)
            return devices[i].gigabytes * 1e9;
    /* Two transfers per clock, as CUDA's own deviceQuery reckons. */
    return 2.0 * m->device->memory_clock_khz * 1e3 * m->device->bus_bits / 8;
}

double bound_operation_rate(const struct model *m)
{
    const char *name = m->device ? capture_string(m->capture, m->device->name) : NULL;
    for (size_t i = 0; name && i < sizeof devices / sizeof *devices; i++)
        if (fnmatch(devices[i].pattern, name, 0) == 0)
            return devices[i].tflops * 1e12;
    return 0;
}

/* Each allocation that an argument points into, once. */
static uint64_t reached_bytes(const struct model_live *live, const struct model_launch *l)
{
    const uint8_t *params = model_launch_params(l);
    uint64_t total = 0;
    for (uint32_t at = 0; params && at + 8u <= l->record->param_bytes; at += 8) {
        uint64_t word, other;
        bool again = false;
        memcpy(&word, params + at, sizeof word);
        const struct model_allocation *a = model_live_find_inner(live, word);
        for (uint32_t k = 0; a && k < at && !again; k += 8) {
            memcpy(&other, params + k, sizeof other);
            again = model_live_find_inner(live, other) == a;
        }
        total += a && !again ? a->bytes : 0;
    }
    return total;
}

/* `amount` at `rate` per second; what no clock holds is the longest time. */
static uint64_t nanoseconds(uint64_t amount, double rate)
{
    double ns = ceil((double)amount / rate * 1e9);
    return ns < 0x1p64 ? (uint64_t)ns : UINT64_MAX;
}

struct bound *bounds_of(const struct model *m, const struct judgements *js)
{
    struct bound *all = calloc(m->launch_count + 1, sizeof *all);
    double bandwidth = bound_bandwidth(m), rate = bound_operation_rate(m);
    struct model_live live;
    model_live_start(&live, m);
    for (size_t i = 0; all && i < m->launch_count; i++) {
        const struct model_launch *l = &m->launches[i];
        const struct judgement *j = judgements_find(js, l->number);
        model_live_advance(&live, l->seq);
        all[i].counted = j && j->bytes_known;
        all[i].bytes = all[i].counted ? j->bytes_read + j->bytes_written : reached_bytes(&live, l);
        all[i].operations = j ? j->counts.operations[JUDGEMENT_OPERATION_F32] : 0;
        if (bandwidth <= 0 || !model_launch_ran(l))
            continue;
        uint64_t memory = nanoseconds(all[i].bytes, bandwidth);
        uint64_t compute = rate > 0 ? nanoseconds(all[i].operations, rate) : 0;
        all[i].ns = memory > compute ? memory : compute;
        all[i].by = !all[i].ns ? BOUND_UNKNOWN : memory >= compute ? BOUND_MEMORY : BOUND_COMPUTE;
    }
    model_live_end(&live);
    return all;
}
