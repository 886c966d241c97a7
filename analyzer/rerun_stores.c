/* rerun_stores.c - who stored the elements of a buffer: one more run in which each is a region of its own, marked as
 * freed. What accesses it then is a fault, with thread and place. */
#include "analyzer/rerun.h"

#include <stdlib.h>
#include <string.h>

struct probe {
    const struct rerun_stores *stores;
    struct verify_memory memory;
    struct reference_region *pieces; /* owned; all of the memory, the region in pieces */
    size_t count;
    uint64_t first, end;               /* addresses of the elements */
    uint64_t region_start, region_end; /* likewise, of their region */
    uint8_t before;                    /* what a byte in front of the region holds */
};

static void add_piece(struct probe *p, const struct reference_region *of, uint64_t offset, uint64_t bytes,
                      uint32_t flags)
{
    if (bytes)
        p->pieces[p->count++] = (struct reference_region){.address = of->address + offset,
                                                          .bytes = bytes,
                                                          .host = of->host + offset,
                                                          .id = of->id,
                                                          .flags = of->flags | flags};
}

/* Where the next argument after `from` points into the region, `to` at most. */
static uint64_t next_pointer(const struct model_launch *l, uint64_t start, uint64_t from, uint64_t to)
{
    const uint8_t *params = model_launch_params(l);
    for (uint32_t at = 0; params && at + 8u <= l->record->param_bytes; at += 8) {
        uint64_t word;
        memcpy(&word, params + at, sizeof word);
        if (word > start + from && word < start + to)
            to = word - start;
    }
    return to;
}

/* An access has to stay in the region that its pointer came from, unless that pointer is the end of one region and the
 * start of the next (docs/ptx.md, "Bounds by origin"). So the region gets a neighbour at its start, and is cut where
 * other arguments point into it: its pieces then are as good as one. */
static void add_region(struct probe *p, const struct model_launch *l, const struct reference_region *r)
{
    const struct rerun_stores *s = p->stores;
    uint64_t end = s->offset + s->count * s->bytes;
    const struct reference_region *last = p->count ? &p->pieces[p->count - 1] : NULL;
    if (r->address && (!last || last->address + last->bytes < r->address))
        p->pieces[p->count++] =
            (struct reference_region){.address = r->address - 1, .bytes = 1, .host = &p->before, .id = r->id};
    for (uint64_t from = 0, to; from < s->offset; from = to) {
        to = next_pointer(l, r->address, from, s->offset);
        add_piece(p, r, from, to - from, 0);
    }
    for (size_t k = 0; k < s->count; k++)
        add_piece(p, r, s->offset + k * s->bytes, s->bytes, REFERENCE_FREED);
    for (uint64_t from = end, to; from < r->bytes; from = to) {
        to = next_pointer(l, r->address, from, r->bytes);
        add_piece(p, r, from, to - from, 0);
    }
    p->first = r->address + s->offset;
    p->end = r->address + end;
    p->region_start = r->address;
    p->region_end = r->address + r->bytes;
}

/* False: no memory, or the allocation's region cannot be cut. */
static bool make_pieces(struct probe *p, struct rerun_walk *w, const struct model_launch *l)
{
    const struct rerun_stores *s = p->stores;
    struct judgement scratch = {0};
    size_t region = 0;
    bool ok = verify_make_memory(&w->verify, l, true, &p->memory, &scratch);
    judgement_clear(&scratch);
    while (ok && region < p->memory.count && p->memory.regions[region].id != s->allocation)
        region++;
    /* A variable of the module is asked for by its region: it cannot be cut. */
    if (!ok || region == p->memory.count || p->memory.info[region].freed ||
        p->memory.info[region].allocation->record->kind == CAP_ALLOC_VARIABLE ||
        s->offset + s->count * s->bytes > p->memory.regions[region].bytes)
        return false;
    p->pieces = calloc(p->memory.count + s->count + l->record->param_bytes / 8 + 4, sizeof *p->pieces);
    for (size_t i = 0; p->pieces && i < p->memory.count; i++) {
        if (i == region)
            add_region(p, l, &p->memory.regions[i]);
        else
            p->pieces[p->count++] = p->memory.regions[i];
    }
    for (size_t k = 0; k < p->memory.variable_count; k++)
        p->memory.variables[k].region += p->memory.variables[k].region > region ? p->count - p->memory.count : 0;
    return p->pieces != NULL;
}

/* An access to an element: in one of them, or to some of them at once. */
static bool is_probe(const struct probe *p, const struct ptx_fault *f)
{
    return (f->kind == PTX_FAULT_FREED || f->kind == PTX_FAULT_OUT_OF_BOUNDS) && f->space == PTX_SPACE_GLOBAL &&
           f->address < p->end && f->address + f->bytes > p->first;
}

/* An access that went wrong only because the region is in pieces: from there on the run is another one. */
static bool is_broken(const struct probe *p, const struct ptx_fault *f)
{
    return f->kind == PTX_FAULT_OUT_OF_BOUNDS && f->space == PTX_SPACE_GLOBAL && !is_probe(p, f) &&
           f->address >= p->region_start && f->address < p->region_end && f->address + f->bytes <= p->region_end;
}

static void take_access(const struct probe *p, const struct ptx_fault *f, struct ptx_access *out, bool *read)
{
    const struct rerun_stores *s = p->stores;
    for (size_t k = 0; k < s->count; k++) {
        uint64_t at = p->first + k * s->bytes;
        if (f->address >= at + s->bytes || f->address + f->bytes <= at)
            continue;
        if (!f->access.write)
            read[k] = true; /* it found a 0 there, and may go other ways */
        else if (!out[k].ptx_line)
            out[k] = f->access;
    }
}

static void run_probe(struct rerun_walk *w, const struct model_launch *l, const struct rerun *r,
                      const struct rerun_stores *stores, struct ptx_access *out, bool *read)
{
    struct probe p = {.stores = stores};
    struct reference_launch run;
    struct reference_result result = {0};
    bool broken = !make_pieces(&p, w, l);
    if (!broken) {
        verify_fill_launch(&w->verify, l, r->module, &p.memory, &run);
        run.layout = REFERENCE_AS_LAUNCHED;
        run.regions = p.pieces;
        run.region_count = p.count;
        run.pointer_count = 0;
        run.workers = 1;
        reference_run(&run, &result);
        broken = result.reason != NULL;
    }
    for (size_t i = 0; !broken && i < result.fault_count; i++)
        broken = is_broken(&p, &result.faults[i].fault);
    for (size_t i = 0; !broken && i < result.fault_count; i++)
        if (is_probe(&p, &result.faults[i].fault))
            take_access(&p, &result.faults[i].fault, out, read);
    reference_result_free(&result);
    free(p.pieces);
    verify_memory_free(&p.memory);
}

void rerun_who_stored(struct rerun_walk *w, const struct model_launch *l, const struct rerun *r,
                      const struct rerun_stores *stores, struct ptx_access *out)
{
    bool *read = calloc(stores->count + 1, sizeof *read), any = false;
    memset(out, 0, stores->count * sizeof *out);
    if (!read)
        return;
    run_probe(w, l, r, stores, out, read);
    for (size_t i = 0; i < stores->count; i++)
        any = any || read[i];
    for (size_t i = 0; any && i < stores->count; i++) {
        /* One that was read may have changed who stores the others: each of these alone. */
        struct rerun_stores one = {stores->allocation, stores->offset + i * stores->bytes, stores->bytes, 1};
        out[i] = (struct ptx_access){0};
        if (!read[i])
            run_probe(w, l, r, &one, &out[i], &read[i]);
        if (read[i])
            out[i] = (struct ptx_access){0};
    }
    free(read);
}
