/* verify_unwritten.c - where never written bytes go.
 *
 * The executor reports them when a value made from them is computed with. Outputs that depend on what lies there
 * (verify_garbage.c) are as unwritten as before ("stained"). The loads that brought it in are reported when the program
 * copies such bytes to the host: then somebody will look at them. Padding that is computed along and never looked at is
 * nobody's mistake.
 */
#include "analyzer/verify.h"

#include <stdlib.h>
#include <string.h>

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

static void free_faults(struct judgement_fault *faults, size_t count)
{
    /* A judgement knows how to free faults. */
    struct judgement owner = {.faults = faults, .fault_count = count};
    judgement_clear(&owner);
}

static void add_stain(struct verify *v, const struct model_launch *l, const struct model_launch *root,
                      const struct model_allocation *a, uint8_t *bits, bool padding)
{
    struct verify_stain *more = realloc(v->stains, (v->stain_count + 1) * sizeof *more);
    if (!more) {
        free(bits);
        return;
    }
    v->stains = more;
    more[v->stain_count++] =
        (struct verify_stain){.launch = l, .root = root, .allocation = a, .bits = bits, .padding = padding};
}

/* The first launch whose unwritten bytes arrive here through earlier outputs, or NULL. *more: there are others, too. */
static const struct model_launch *root_of(const struct verify *v, const struct verify_memory *memory, bool *more)
{
    const struct model_launch *root = NULL;
    *more = false;
    for (size_t i = 0; i < memory->count; i++) {
        const struct reference_region *r = &memory->regions[i];
        for (uint64_t k = 0; r->valid && k < r->bytes; k++) {
            const struct verify_stain *from = NULL;
            if (!bit_get(r->read, k) || bit_get(r->valid, k))
                continue;
            for (size_t s = v->stain_count; s-- > 0 && !from;)
                if (v->stains[s].allocation == memory->info[i].allocation && bit_get(v->stains[s].bits, k))
                    from = &v->stains[s];
            if (!from)
                *more = true;
            else if (!root || from->root->number < root->number)
                root = from->root;
        }
    }
    return root;
}

enum { HOLES = 4, STRUCTURE_BYTES = 256 };

/* A hole lies beside a member that is stored with it. */
static bool holes(const uint8_t *stained, const uint8_t *written, uint64_t bytes)
{
    uint64_t count = 0, run = 0;
    for (uint64_t k = 0; k < bytes; k++) {
        if (!bit_get(stained, k)) {
            run = 0;
            continue;
        }
        run++;
        bool first = run == 1, last = k + 1 == bytes || !bit_get(stained, k + 1);
        bool beside = k >= run && bit_get(written, k - run);
        if (run > VERIFY_HOLE_BYTES || (last && !beside && (k + 1 == bytes || !bit_get(written, k + 1))))
            return false;
        count += first;
    }
    return count >= HOLES;
}

static bool repeats(const uint8_t *stained, const uint8_t *written, uint64_t bytes, uint64_t period)
{
    for (uint64_t k = 0; k + period < bytes; k++)
        if (bit_get(written, k) && bit_get(written, k + period) && bit_get(stained, k) != bit_get(stained, k + period))
            return false;
    return period < bytes;
}

/* Are the stained bytes what an array of structures has between its members? Whoever moves a structure as words moves
 * them, too. A program that never wrote, say, every fourth element looks the same, and only moved on nobody knows. */
static bool looks_like_padding(const uint8_t *stained, const uint8_t *written, uint64_t bytes)
{
    if (!holes(stained, written, bytes))
        return false;
    for (uint64_t period = 2; period <= STRUCTURE_BYTES; period += 2)
        if (repeats(stained, written, bytes, period))
            return true;
    return false;
}

static void stain_region(struct verify *v, const struct model_launch *l, struct verify_fillings *f, size_t region,
                         const struct model_launch *root)
{
    const struct reference_region *r = &f->first.regions[region];
    uint8_t *bits = f->differs[region];
    f->differs[region] = NULL;
    if (bits)
        add_stain(v, l, root, f->first.info[region].allocation, bits,
                  f->moved[region] && looks_like_padding(bits, r->written, r->bytes));
}

/* False: there was nothing to be stained. */
static bool stain_outputs(struct verify *v, const struct model_launch *l, struct verify_fillings *f,
                          const struct model_launch *root)
{
    size_t before = v->stain_count;
    for (size_t i = 0; f->ran && i < f->first.count; i++)
        stain_region(v, l, f, i, root);
    return v->stain_count > before;
}

/* The loads are kept with one stain of the launch; needed only if one of them gets to the host. */
static void keep_faults(struct verify_stain *stain, struct judgement *from, bool used)
{
    stain->faults = from->faults;
    stain->fault_count = from->fault_count;
    stain->used = used;
    from->faults = NULL;
    from->fault_count = 0;
}

void verify_stain(struct verify *v, const struct model_launch *l, struct verify_fillings *f, size_t region,
                  struct judgement *faults)
{
    size_t before = v->stain_count;
    stain_region(v, l, f, region, l);
    if (v->stain_count == before || !faults->fault_count)
        return;
    keep_faults(&v->stains[before], faults, false);
    v->stains[before].own = true;
}

void verify_trace_unwritten(struct verify *v, const struct model_launch *l, const struct reference_launch *run,
                            const struct verify_memory *memory, struct verify_fillings *fillings,
                            struct judgement *held)
{
    size_t region, before = v->stain_count;
    uint64_t offset;
    bool loads = unwritten_load(memory, &region, &offset), own = true;
    if (!held && (!loads || fillings->ran)) /* nothing came in, or whatever came in matters nowhere */
        return;
    if (!held)
        verify_try_fillings(v, l, run, VERIFY_FILLED_GLOBAL, 0, fillings);
    const struct model_launch *root = loads ? root_of(v, memory, &own) : NULL;
    if (!stain_outputs(v, l, fillings, root ? root : l) || (root && !own))
        return;
    struct judgement located = {0};
    if (held)
        keep_faults(&v->stains[before], held, true);
    else if (locate_load(v, l, run, region, offset, &located))
        keep_faults(&v->stains[before], &located, false);
    judgement_clear(&located);
}

void verify_apply_stains(struct verify *v, const struct model_launch *l)
{
    for (size_t i = v->stain_count; i-- > 0 && v->stains[i].launch == l;)
        valid_bytes_clear(&v->valid, v->stains[i].allocation, v->stains[i].bits);
}

/* `seen`: the stain that got to the host; NULL: nobody is known to have seen any. */
static void tell(struct verify *v, const struct model_launch *root, struct judgements *judgements,
                 const struct verify_stain *seen)
{
    /* Whose outputs are stained was executed: it has an item of its own. */
    struct judgement *j = judgements_said(judgements, root->number) ? NULL : judgements_find(judgements, root->number);
    for (size_t i = 0; j && i < v->stain_count; i++) {
        struct verify_stain *s = &v->stains[i];
        if (s->launch != root || !s->faults || (s->own && s != seen))
            continue;
        struct judgement_fault *more = realloc(j->faults, (j->fault_count + s->fault_count + 1) * sizeof *more);
        if (!more)
            return;
        j->faults = more;
        for (size_t k = 0; k < s->fault_count; k++)
            s->faults[k].unseen = !seen;
        memcpy(more + j->fault_count, s->faults, s->fault_count * sizeof *more);
        j->fault_count += s->fault_count;
        free(s->faults); /* what was in them is taken over */
        s->faults = NULL;
        s->fault_count = 0;
    }
}

void verify_stains_rest(struct verify *v, struct judgements *judgements)
{
    for (size_t i = 0; i < v->stain_count; i++)
        if (v->stains[i].faults && v->stains[i].used && model_launch_seq(v->stains[i].launch) > v->last_host_copy)
            tell(v, v->stains[i].launch, judgements, NULL);
}

/* Do the bytes of a row, `width` from `source` on, hold some of the stain? */
static bool shows(const struct verify_stain *stain, const uint8_t *valid, uint64_t source, uint64_t width)
{
    const struct model_allocation *a = stain->allocation;
    uint64_t first = source - a->address;
    for (uint64_t k = first; source >= a->address && k < a->bytes && k - first < width; k++)
        if (bit_get(stain->bits, k) && !bit_get(valid, k))
            return true;
    return false;
}

/* Rows, and slices of them, those behind the end of the allocation left out. Rows over each other are one; of slices
 * over each other the first is looked at. */
static bool copy_shows(const struct cap_copy *c, const struct verify_stain *stain, const uint8_t *valid)
{
    uint64_t end = stain->allocation->address + stain->allocation->bytes;
    if (c->width == 0)
        return false;
    if (c->source_pitch < c->width)
        return shows(stain, valid, c->source, (c->height - 1) * c->source_pitch + c->width);
    bool apart = c->source_slice_pitch / c->source_pitch >= c->height;
    for (uint64_t z = 0, slice = c->source; z < c->depth && slice < end; z++, slice += c->source_slice_pitch) {
        for (uint64_t y = 0, row = slice; y < c->height && row < end; y++, row += c->source_pitch)
            if (shows(stain, valid, row, c->width))
                return true;
        if (!apart)
            return false;
    }
    return false;
}

void verify_host_copy(struct verify *v, const struct cap_copy *c, struct judgements *judgements)
{
    const struct model_allocation *a = model_live_find_inner(&v->live, c->source);
    bool to_host = c->kind == CAP_COPY_DTOH || (c->kind == CAP_COPY_UNIFIED && !model_live_find(&v->live, c->target));
    if (to_host && c->result == 0)
        v->last_host_copy = c->head.seq;
    if (!v->stain_count || !a || !to_host || c->result != 0)
        return;
    const uint8_t *valid = valid_bytes_of(&v->valid, a);
    for (size_t i = 0; valid && i < v->stain_count; i++) {
        const struct verify_stain *stain = &v->stains[i];
        if (stain->allocation == a && !stain->padding && copy_shows(c, stain, valid)) {
            tell(v, stain->root, judgements, stain);
            tell(v, stain->launch, judgements, stain);
        }
    }
}

void verify_stains_end(struct verify *v)
{
    for (size_t i = 0; i < v->stain_count; i++) {
        free_faults(v->stains[i].faults, v->stains[i].fault_count);
        free(v->stains[i].bits);
    }
    free(v->stains);
    v->stains = NULL;
    v->stain_count = 0;
}
