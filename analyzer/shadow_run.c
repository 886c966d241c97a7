#include "analyzer/shadow_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Shadows of one launch together; with its flags a shadow is nine times as large as the memory that it stands beside.
 */
#define SHADOW_LIMIT (UINT64_C(4) << 30)

void shadow_run_end(struct shadow_run *run)
{
    reference_result_free(&run->result);
    verify_memory_free(&run->memory);
}

const char *shadow_run_make(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                            uint64_t perturbation, struct shadow_run *out)
{
    struct diag diag;
    struct reference_launch run;
    uint64_t total = 0;
    *out = (struct shadow_run){0};
    bool everything = like->layout == REFERENCE_AS_LAUNCHED;
    if (verify_memory_make(&out->memory, l, &v->live, &v->valid, &v->blobs, everything, v->options->memory_limit,
                           &diag))
        return "no-memory";
    for (size_t i = 0; i < out->memory.count; i++) {
        struct reference_region *r = &out->memory.regions[i];
        if (!out->memory.info[i].reached || r->flags)
            continue;
        total += r->bytes * sizeof *r->shadow / 2 + r->bytes;
        if (total > SHADOW_LIMIT)
            return "budget";
        r->shadow = calloc((size_t)(r->bytes + 1) / 2, sizeof *r->shadow);
        r->shadow_used = calloc((size_t)(r->bytes + PTX_SHADOW_CHUNK - 1) / PTX_SHADOW_CHUNK + 1, 1);
        r->tainted = calloc((size_t)r->bytes + 1, 1);
        if (!r->shadow || !r->shadow_used || !r->tainted)
            return "no-memory";
    }
    verify_fill_launch(v, l, like->module, &out->memory, &run);
    run.layout = like->layout;
    run.seed = like->seed;
    run.workers = 1;
    run.shadow = true;
    run.perturbation = perturbation;
    reference_run(&run, &out->result);
    return out->result.reason;
}

static bool all_written(const struct reference_region *r, uint64_t offset, uint32_t bytes)
{
    for (uint32_t k = 0; k < bytes; k++)
        if (!bit_get(r->written, offset + k))
            return false;
    return true;
}

bool shadow_next_element(const struct reference_region *r, uint64_t *cursor, struct shadow_element *out)
{
    static const enum element_type types[] = {[PTX_SHADOW_F16] = ELEMENT_F16,
                                              [PTX_SHADOW_BF16] = ELEMENT_BF16,
                                              [PTX_SHADOW_F32] = ELEMENT_F32,
                                              [PTX_SHADOW_F64] = ELEMENT_F64};
    for (; *cursor + 2 <= r->bytes; *cursor += 2) {
        const struct ptx_shadow_value *s = &r->shadow[*cursor / 2];
        if (s->kind == PTX_SHADOW_NONE || s->kind > PTX_SHADOW_F64)
            continue;
        enum element_type type = types[s->kind];
        uint32_t bytes = element_bytes(type);
        if (*cursor + bytes > r->bytes || !all_written(r, *cursor, bytes))
            continue;
        double value = element_value(type, r->host + *cursor);
        *out = (struct shadow_element){s, type, *cursor, value, fabs(value - s->wide - ptx_shadow_low(s))};
        *cursor += bytes;
        return true;
    }
    return false;
}
