/* verify_unwritten.c - where never written bytes go.
 *
 * The executor reports them when a value made from them is computed with. What a kernel merely moves on is followed
 * here: the launch is run twice with different fillings of the unwritten bytes, and whatever then differs among its
 * outputs is as unwritten as before ("stained"). It is reported when the program copies it to the host: then somebody
 * will look at it.
 */
#include "analyzer/verify.h"

#include <stdlib.h>
#include <string.h>

/* Runs the launch with the bytes that nobody wrote filled with `garbage`; *memory is as it leaves it. */
static bool run_with_garbage(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                             uint8_t garbage, struct verify_memory *memory)
{
    struct judgement scratch = {0};
    struct reference_launch run;
    struct reference_result result;
    bool ok = verify_make_memory(v, l, like->layout == REFERENCE_AS_LAUNCHED, memory, &scratch);
    if (ok) {
        for (size_t i = 0; i < memory->count; i++) {
            struct reference_region *r = &memory->regions[i];
            for (uint64_t k = 0; r->valid && k < r->bytes; k++)
                if (!bit_get(r->valid, k))
                    r->host[k] = garbage;
            r->valid = NULL;
        }
        verify_fill_launch(v, l, like->module, memory, &run);
        run.layout = like->layout;
        run.fill = garbage;
        reference_run(&run, &result);
        ok = !result.reason && !result.foreign;
        for (size_t i = 0; i < result.fault_count; i++)
            ok = ok && (result.faults[i].fault.same_value || result.faults[i].fault.kind == PTX_FAULT_UNINITIALISED);
        reference_result_free(&result);
    }
    judgement_clear(&scratch);
    return ok;
}

/* NaN in every float format against small numbers. */
static bool run_twice(struct verify *v, const struct model_launch *l, const struct reference_launch *run,
                      struct verify_memory pair[2])
{
    return run_with_garbage(v, l, run, 0xff, &pair[0]) && run_with_garbage(v, l, run, 0x11, &pair[1]) &&
           pair[0].count == pair[1].count;
}

/* The bytes of region `i` that were stored in either run and are not the same in both. */
static bool byte_differs(const struct verify_memory pair[2], size_t i, uint64_t k)
{
    const struct reference_region *a = &pair[0].regions[i], *b = &pair[1].regions[i];
    bool stored_a = bit_get(a->written, k), stored_b = bit_get(b->written, k);
    return stored_a != stored_b || (stored_a && a->host[k] != b->host[k]);
}

bool verify_garbage_matters(struct verify *v, const struct model_launch *l, const struct reference_launch *run)
{
    struct verify_memory pair[2] = {{0}, {0}};
    bool matters = !run_twice(v, l, run, pair);
    for (size_t i = 0; !matters && i < pair[0].count; i++)
        for (uint64_t k = 0; !matters && k < pair[0].regions[i].bytes; k++)
            matters = byte_differs(pair, i, k);
    verify_memory_free(&pair[0]);
    verify_memory_free(&pair[1]);
    return matters;
}

/* ---- stains ---- */

/* The first byte that the run loaded and nobody ever wrote. */
static bool unwritten_load(const struct verify_memory *memory, size_t *region, uint64_t *offset)
{
    for (size_t i = 0; i < memory->count; i++) {
        const struct reference_region *r = &memory->regions[i];
        for (uint64_t k = 0; r->valid && k < (r->bytes + 7) / 8; k++) {
            uint8_t loaded = r->read[k] & (uint8_t)~r->valid[k];
            if (!loaded)
                continue;
            *region = i;
            *offset = k * 8 + (unsigned)__builtin_ctz(loaded);
            return true;
        }
    }
    return false;
}

/* Which instruction loads it: run with the allocation ending just before that byte, so that the load is a fault. A
 * fault shows the first access of its instruction only, which may be to bytes that were written; when no other
 * instruction loads from there, it is still the one. */
static bool locate_load(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                        size_t region, uint64_t offset, struct judgement *out)
{
    struct verify_memory memory = {0};
    struct reference_launch run;
    struct reference_result result = {0};
    bool ok = verify_make_memory(v, l, like->layout == REFERENCE_AS_LAUNCHED, &memory, out) && region < memory.count;
    if (ok) {
        uint64_t bytes = memory.regions[region].bytes;
        memory.regions[region].bytes = offset;
        verify_fill_launch(v, l, like->module, &memory, &run);
        run.layout = like->layout;
        reference_run(&run, &result);
        size_t kept = 0, loads = 0;
        struct reference_fault only;
        for (size_t i = 0; i < result.fault_count; i++) {
            struct reference_fault *f = &result.faults[i];
            uint64_t at = (uint64_t)f->fault.offset;
            bool unwritten = f->region == region && f->fault.offset >= 0 && at < bytes &&
                             memory.regions[region].valid && !bit_get(memory.regions[region].valid, at);
            if (f->fault.kind != PTX_FAULT_OUT_OF_BOUNDS || f->fault.access.write || f->region != region)
                continue;
            f->fault.kind = PTX_FAULT_UNINITIALISED;
            only = *f;
            loads++;
            if (unwritten)
                result.faults[kept++] = *f;
        }
        if (!kept && loads == 1)
            result.faults[kept++] = only;
        result.fault_count = kept;
        memory.regions[region].bytes = bytes;
        verify_take_faults(v, l, like->module, &memory, &result, out);
        ok = out->fault_count > 0;
    }
    reference_result_free(&result);
    verify_memory_free(&memory);
    return ok;
}

/* The load that carried unwritten bytes into shared or local memory is where they came in; where they are used is
 * beside it. */
void verify_locate_source(struct verify *v, const struct model_launch *l, const struct reference_launch *run,
                          const struct verify_memory *memory, struct judgement *j)
{
    for (size_t i = 0; i < j->fault_count; i++) {
        struct judgement_fault *f = &j->faults[i];
        struct judgement located = {0};
        size_t region = 0;
        if (f->kind != JUDGEMENT_FAULT_UNINITIALISED || !f->allocation || f->other.ptx_line ||
            strcmp(f->space, "global") == 0)
            continue;
        while (region < memory->count && memory->regions[region].id != f->allocation)
            region++;
        if (locate_load(v, l, run, region, (uint64_t)f->offset, &located)) {
            f->other = located.faults[0].access;
            located.faults[0].access = (struct judgement_access){0};
            /* Whose load it was is not known to the thread, but its block uses the copy. */
            memcpy(f->other.block, f->access.block, sizeof f->other.block);
            memcpy(f->other.thread, f->access.thread, sizeof f->other.thread);
        }
        judgement_clear(&located);
        return; /* the others of the launch join the first */
    }
}

static void add_stain(struct verify *v, const struct model_launch *l, const struct model_allocation *a, uint8_t *bits)
{
    struct verify_stain *more = realloc(v->stains, (v->stain_count + 1) * sizeof *more);
    if (!more) {
        free(bits);
        return;
    }
    v->stains = more;
    more[v->stain_count++] = (struct verify_stain){.launch = l, .allocation = a, .bits = bits};
}

void verify_trace_unwritten(struct verify *v, const struct model_launch *l, const struct reference_launch *run,
                            const struct verify_memory *memory)
{
    struct verify_memory pair[2] = {{0}, {0}};
    size_t region;
    uint64_t offset;
    if (!unwritten_load(memory, &region, &offset))
        return;
    if (run_twice(v, l, run, pair) && pair[0].count == memory->count) {
        for (size_t i = 0; i < memory->count; i++) {
            const struct reference_region *r = &memory->regions[i];
            uint8_t *bits = NULL;
            for (uint64_t k = 0; k < r->bytes; k++) {
                if (!byte_differs(pair, i, k) || (!bits && !(bits = calloc(1, (size_t)r->bytes / 8 + 1))))
                    continue;
                bits[k / 8] |= (uint8_t)(1u << k % 8);
            }
            if (bits)
                add_stain(v, l, memory->info[i].allocation, bits);
        }
    }
    verify_memory_free(&pair[0]);
    verify_memory_free(&pair[1]);
    /* Kept with the stains of this launch; needed only if one of them gets to the host. */
    struct judgement located = {0};
    if (v->stain_count && v->stains[v->stain_count - 1].launch == l &&
        locate_load(v, l, run, region, offset, &located)) {
        v->stains[v->stain_count - 1].fault = located.faults[0];
        located.faults[0] = (struct judgement_fault){0};
    }
    judgement_clear(&located);
}

void verify_apply_stains(struct verify *v, const struct model_launch *l)
{
    for (size_t i = v->stain_count; i-- > 0 && v->stains[i].launch == l;)
        valid_bytes_clear(&v->valid, v->stains[i].allocation, v->stains[i].bits);
}

/* The fault that the stains of a launch share, or NULL when it was told already or never located. */
static struct judgement_fault *stain_fault(struct verify *v, const struct model_launch *l)
{
    for (size_t i = 0; i < v->stain_count; i++)
        if (v->stains[i].launch == l && v->stains[i].fault.detail)
            return &v->stains[i].fault;
    return NULL;
}

static void tell(struct verify *v, const struct verify_stain *stain, struct judgements *judgements)
{
    struct judgement_fault *fault = stain_fault(v, stain->launch);
    struct judgement *j = judgements_find(judgements, stain->launch->number);
    if (!fault || !j)
        return;
    struct judgement_fault *more = realloc(j->faults, (j->fault_count + 1) * sizeof *more);
    if (!more)
        return;
    j->faults = more;
    more[j->fault_count++] = *fault;
    *fault = (struct judgement_fault){0}; /* taken over */
}

void verify_host_copy(struct verify *v, const struct cap_copy *c, struct judgements *judgements)
{
    const struct model_allocation *a = model_live_find(&v->live, c->source);
    bool to_host = c->kind == CAP_COPY_DTOH || (c->kind == CAP_COPY_UNIFIED && !model_live_find(&v->live, c->target));
    if (!v->stain_count || !a || !to_host || c->result != 0 || c->height != 1 || c->depth != 1)
        return;
    const uint8_t *valid = valid_bytes_of(&v->valid, a);
    uint64_t first = c->source - a->address;
    for (size_t i = 0; valid && i < v->stain_count; i++) {
        const struct verify_stain *stain = &v->stains[i];
        bool seen = false;
        for (uint64_t k = first; stain->allocation == a && !seen && k < a->bytes && k - first < c->width; k++)
            seen = bit_get(stain->bits, k) && !bit_get(valid, k);
        if (seen)
            tell(v, stain, judgements);
    }
}

void verify_stains_end(struct verify *v)
{
    for (size_t i = 0; i < v->stain_count; i++) {
        /* A judgement knows how to free a fault. */
        struct judgement owner = {.faults = malloc(sizeof *owner.faults)};
        if (owner.faults) {
            owner.faults[0] = v->stains[i].fault;
            owner.fault_count = 1;
        }
        judgement_clear(&owner);
        free(v->stains[i].bits);
    }
    free(v->stains);
    v->stains = NULL;
    v->stain_count = 0;
}
