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

/* ---- who stored it ---- */

/* The regions with [offset, offset + bytes) of one of them cut out as a region of its own, marked as freed: its
 * accesses then are faults, with thread and place. Returns the index of that piece, SIZE_MAX: no memory. */
static size_t cut(const struct verify_memory *memory, size_t region, uint64_t offset, uint32_t bytes,
                  struct reference_region **out, size_t *count)
{
    struct reference_region *all = calloc(memory->count + 2, sizeof *all);
    size_t n = 0, piece = SIZE_MAX;
    if (!all)
        return SIZE_MAX;
    for (size_t i = 0; i < memory->count; i++) {
        struct reference_region r = memory->regions[i];
        uint64_t end = offset + bytes;
        if (i != region) {
            all[n++] = r;
            continue;
        }
        r.written = r.read = NULL;
        r.valid = NULL;
        if (offset)
            all[n++] = (struct reference_region){.address = r.address, .bytes = offset, .host = r.host, .id = r.id};
        piece = n;
        all[n++] = (struct reference_region){.address = r.address + offset,
                                             .bytes = bytes,
                                             .host = r.host + offset,
                                             .id = r.id,
                                             .flags = REFERENCE_FREED};
        if (end < r.bytes)
            all[n++] = (struct reference_region){
                .address = r.address + end, .bytes = r.bytes - end, .host = r.host + end, .id = r.id};
    }
    *out = all;
    *count = n;
    return piece;
}

bool rerun_who_stored(struct rerun_walk *w, const struct model_launch *l, const struct rerun *r, uint32_t allocation,
                      uint64_t offset, uint32_t bytes, struct ptx_access *out)
{
    struct verify_memory memory = {0};
    struct reference_launch run;
    struct reference_result result;
    struct reference_region *pieces = NULL;
    struct judgement scratch = {0};
    size_t region = 0, count = 0;
    bool found = false, disturbed = false;
    bool ok = verify_make_memory(&w->verify, l, true, &memory, &scratch);
    while (ok && region < memory.count && memory.regions[region].id != allocation)
        region++;
    /* A variable of the module is asked for by its region: it cannot be cut. */
    ok = ok && region < memory.count && !memory.info[region].freed &&
         memory.info[region].allocation->record->kind != CAP_ALLOC_VARIABLE &&
         offset + bytes <= memory.regions[region].bytes;
    if (ok && cut(&memory, region, offset, bytes, &pieces, &count) != SIZE_MAX) {
        uint64_t at = memory.regions[region].address + offset;
        verify_fill_launch(&w->verify, l, r->module, &memory, &run);
        for (size_t i = 0; i < memory.variable_count; i++)
            memory.variables[i].region += memory.variables[i].region > region ? count - memory.count : 0;
        run.layout = REFERENCE_AS_LAUNCHED;
        run.regions = pieces;
        run.region_count = count;
        run.pointer_count = 0;
        run.workers = 1;
        reference_run(&run, &result);
        for (size_t i = 0; i < result.fault_count && !result.reason; i++) {
            const struct ptx_fault *f = &result.faults[i].fault;
            bool here = f->address < at + bytes && f->address + f->bytes > at &&
                        (f->kind == PTX_FAULT_FREED || f->kind == PTX_FAULT_OUT_OF_BOUNDS);
            disturbed = disturbed || (here && !f->access.write); /* it read a 0 there, and may go other ways */
            if (here && f->access.write && !found) {
                *out = f->access;
                found = true;
            }
        }
        reference_result_free(&result);
    }
    free(pieces);
    verify_memory_free(&memory);
    judgement_clear(&scratch);
    return found && !disturbed;
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
