#include "analyzer/rerun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Thread instructions after which a launch is given up, as `verify` does by default. */
#define INSTRUCTION_LIMIT UINT64_C(5000000000)

enum status rerun_start(struct rerun_walk *w, const struct model *m, struct diag *diag)
{
    w->options = (struct verify_options){.workers = 1, .instruction_limit = INSTRUCTION_LIMIT};
    enum status status = verify_start(&w->verify, m, &w->options, diag);
    if (status) {
        verify_end(&w->verify);
        return status;
    }
    for (size_t i = 0; i < m->allocation_count; i++) /* nobody asks here who wrote what */
        valid_bytes_mark_all(&w->verify.valid, &m->allocations[i]);
    return STATUS_OK;
}

void rerun_end(struct rerun_walk *w)
{
    verify_end(&w->verify);
}

bool rerun_at(struct rerun_walk *w, const struct model_launch *l)
{
    model_live_advance(&w->verify.live, model_launch_seq(l));
    return !w->verify.live.no_memory;
}

static bool failed(struct rerun *out, const char *reason, const char *detail)
{
    snprintf(out->reason, sizeof out->reason, "%s", reason ? reason : "unknown");
    snprintf(out->detail, sizeof out->detail, "%.250s", detail ? detail : "");
    return false;
}

bool rerun_launch(struct rerun_walk *w, const struct model_launch *l, struct rerun *out)
{
    struct verify_memory memory = {0};
    struct reference_result result;
    struct reference_launch run;
    struct judgement j = {0};
    bool ok;
    *out = (struct rerun){.reason = ""};
    if (!verify_execute(&w->verify, l, &run, &memory, &result, &j)) {
        ok = failed(out, j.reason, j.detail);
    } else if (result.reason) {
        ok = failed(out, result.reason, result.diag.text);
    } else if (result.unknown_read || verify_memory_read_unknown(&memory)) {
        ok = failed(out, "no-inputs", "it read memory whose contents were not captured");
    } else {
        out->module = run.module;
        out->layout = run.layout;
        const char *reason = shadow_run_make(&w->verify, l, &run, 0, &out->shadow);
        ok = !reason || failed(out, reason, out->shadow.result.diag.text);
    }
    reference_result_free(&result);
    verify_memory_free(&memory);
    judgement_clear(&j);
    return ok;
}

void rerun_free(struct rerun *r)
{
    shadow_run_end(&r->shadow);
    *r = (struct rerun){.reason = ""};
}

size_t rerun_region(const struct rerun *r, uint32_t allocation)
{
    for (size_t i = 0; !*r->reason && i < r->shadow.memory.count; i++)
        if (r->shadow.memory.regions[i].id == allocation)
            return i;
    return SIZE_MAX;
}

bool rerun_stored_type(const struct rerun *r, size_t region, enum element_type *out)
{
    const struct reference_region *at = &r->shadow.memory.regions[region];
    uint64_t counts[ELEMENT_TYPES] = {0}, best = 0;
    struct shadow_element e;
    for (uint64_t cursor = 0; at->shadow && shadow_next_element(at, &cursor, &e);)
        counts[e.type]++;
    for (int i = 0; i < ELEMENT_TYPES; i++)
        if (counts[i] > best) {
            best = counts[i];
            *out = (enum element_type)i;
        }
    return best > 0;
}

/* ---- contents ---- */

void rerun_contents(struct rerun_walk *w, const struct model_launch *l, const struct model_allocation *a,
                    enum cap_snapshot_when when, struct rerun_contents *out)
{
    bool all = false;
    *out = (struct rerun_contents){.bytes = a->bytes, .diag.text = ""};
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = model_launch_snapshot(w->verify.model, l, i)); i++) {
        struct snapshot_part part;
        if (s->when != when || !model_snapshot_part(s, a, &part))
            continue;
        const uint8_t *data =
            blob_cache_get(&w->verify.blobs, (struct hash128){s->hash_low, s->hash_high}, s->bytes, &out->diag);
        if (!data)
            continue;
        if (!out->data) {
            out->data = calloc(1, (size_t)a->bytes);
            out->known = calloc(1, (size_t)(a->bytes + 7) / 8);
        }
        if (!out->data || !out->known) {
            rerun_contents_free(out);
            return;
        }
        memcpy(out->data + part.offset, data + part.skip, part.bytes);
        for (uint64_t k = part.offset; k < part.offset + part.bytes && part.bytes < a->bytes; k++)
            out->known[k / 8] |= (uint8_t)(1u << k % 8);
        all = all || part.bytes == a->bytes;
    }
    if (all) {
        free(out->known);
        out->known = NULL;
    }
}

void rerun_contents_free(struct rerun_contents *c)
{
    free(c->data);
    free(c->known);
    c->data = c->known = NULL;
}

bool rerun_known(const struct rerun_contents *c, uint64_t offset, uint64_t bytes)
{
    if (!c->data || offset > c->bytes || bytes > c->bytes - offset)
        return false;
    for (uint64_t k = offset; c->known && k < offset + bytes; k++)
        if (!bit_get(c->known, k))
            return false;
    return true;
}
