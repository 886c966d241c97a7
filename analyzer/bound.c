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

void bound_walk_start(struct bound_walk *w, const struct model *m, const struct judgements *js)
{
    *w = (struct bound_walk){
        .model = m, .judgements = js, .bandwidth = bound_bandwidth(m), .rate = bound_operation_rate(m)};
    model_live_start(&w->live, m);
}

struct bound bound_walk_next(struct bound_walk *w, const struct model_launch *l)
{
    const struct judgement *j = judgements_find(w->judgements, l->number);
    struct bound b = {.counted = j && j->bytes_known};
    model_live_advance(&w->live, model_launch_seq(l));
    b.bytes = b.counted ? j->bytes_read + j->bytes_written : reached_bytes(&w->live, l);
    b.operations = j ? j->counts.operations[JUDGEMENT_OPERATION_F32] : 0;
    if (w->bandwidth <= 0 || !model_launch_ran(l))
        return b;
    uint64_t memory = nanoseconds(b.bytes, w->bandwidth);
    uint64_t compute = w->rate > 0 ? nanoseconds(b.operations, w->rate) : 0;
    b.ns = memory > compute ? memory : compute;
    b.by = !b.ns ? BOUND_UNKNOWN : memory >= compute ? BOUND_MEMORY : BOUND_COMPUTE;
    return b;
}

void bound_walk_end(struct bound_walk *w)
{
    model_live_end(&w->live);
}
