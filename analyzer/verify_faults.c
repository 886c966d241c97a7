/* verify_faults.c - the executor's faults in the program's terms: source lines, allocations, what the bytes really
 * belong to. */
#include "analyzer/verify.h"

#include <stdlib.h>
#include <string.h>

static enum judgement_fault_kind kind_of(enum ptx_fault_kind kind)
{
    switch (kind) {
    case PTX_FAULT_OUT_OF_BOUNDS:
        return JUDGEMENT_FAULT_OUT_OF_BOUNDS;
    case PTX_FAULT_MISALIGNED:
        return JUDGEMENT_FAULT_MISALIGNED;
    case PTX_FAULT_READ_ONLY:
        return JUDGEMENT_FAULT_READ_ONLY;
    case PTX_FAULT_FREED:
        return JUDGEMENT_FAULT_FREED;
    case PTX_FAULT_UNINITIALISED:
        return JUDGEMENT_FAULT_UNINITIALISED;
    case PTX_FAULT_SHARED_RACE:
    case PTX_FAULT_GLOBAL_RACE:
        return JUDGEMENT_FAULT_RACE;
    case PTX_FAULT_BARRIER:
        return JUDGEMENT_FAULT_BARRIER;
    default:
        return JUDGEMENT_FAULT_STOPPED;
    }
}

static const char *space_name(const struct ptx_fault *f)
{
    static const char *const names[] = {"global", "shared", "local", "const", "param", "surface"};
    if (f->kind == PTX_FAULT_SHARED_RACE)
        return "shared";
    return f->space < sizeof names / sizeof *names ? names[f->space] : "global";
}

void verify_take_access(const struct reference_module *module, const struct ptx_access *from,
                        struct judgement_access *to)
{
    struct ptx_source frames[JUDGEMENT_FRAMES];
    *to = (struct judgement_access){.ptx_line = from->ptx_line, .write = from->write, .atomic = from->atomic};
    memcpy(to->block, from->block, sizeof to->block);
    memcpy(to->thread, from->thread, sizeof to->thread);
    if (!from->ptx_line)
        return;
    to->frame_count = ptx_module_source(reference_module_ptx(module), from->ptx_line, frames, JUDGEMENT_FRAMES);
    if (to->frame_count > JUDGEMENT_FRAMES)
        to->frame_count = JUDGEMENT_FRAMES;
    for (size_t i = 0; i < to->frame_count; i++)
        to->frames[i] = (struct judgement_frame){
            frames[i].file ? strdup(frames[i].file) : NULL,
            frames[i].function ? strdup(frames[i].function) : NULL,
            frames[i].line,
        };
}

/* The contents of an allocation's `offset` before or after the launch, when a snapshot shows it. */
static bool snapshot_byte(struct verify *v, const struct model_launch *l, const struct model_allocation *a,
                          uint32_t when, uint64_t offset, uint8_t *out)
{
    struct diag diag;
    const struct cap_snapshot *s;
    for (size_t i = 0; (s = model_launch_snapshot(v->model, l, i)); i++) {
        struct snapshot_part part;
        if (s->when != when || !model_snapshot_part(s, a, &part) || offset < part.offset ||
            offset - part.offset >= part.bytes)
            continue;
        const uint8_t *data = blob_cache_get(&v->blobs, (struct hash128){s->hash_low, s->hash_high}, s->bytes, &diag);
        if (!data)
            return false;
        *out = data[part.skip + (offset - part.offset)];
        return true;
    }
    return false;
}

/* Bytes that nobody wrote and that reached shared or local memory by a copy: when the launch read such bytes of one
 * allocation only, that is where they come from. */
static void find_source(const struct verify_memory *memory, struct judgement_fault *f)
{
    size_t found = SIZE_MAX;
    uint64_t first = 0;
    for (size_t i = 0; i < memory->count; i++) {
        const struct reference_region *r = &memory->regions[i];
        for (uint64_t k = 0; r->valid && k < r->bytes; k++) {
            if (!bit_get(r->read, k) || bit_get(r->valid, k))
                continue;
            if (found != SIZE_MAX)
                return;
            found = i;
            first = k;
            break;
        }
    }
    if (found == SIZE_MAX)
        return;
    f->allocation = memory->regions[found].id;
    f->offset = (int64_t)first;
}

static void find_landing(struct verify *v, const struct model_launch *l, struct judgement_fault *f)
{
    const struct model_allocation *a = f->allocation ? model_live_find_inner(&v->live, f->address) : NULL;
    if (!a || a->id == f->allocation)
        return;
    f->landed = a->id;
    for (uint32_t i = 0; i < f->bytes && f->access.write && !f->landed_changed; i++) {
        uint8_t before, after;
        uint64_t offset = f->address - a->address + i;
        f->landed_changed = snapshot_byte(v, l, a, CAP_BEFORE, offset, &before) &&
                            snapshot_byte(v, l, a, CAP_AFTER, offset, &after) && before != after;
    }
}

void verify_take_faults(struct verify *v, const struct model_launch *l, const struct reference_module *module,
                        const struct verify_memory *memory, const struct reference_result *run, struct judgement *j)
{
    j->faults = calloc(run->fault_count + 1, sizeof *j->faults);
    for (size_t i = 0; j->faults && i < run->fault_count; i++) {
        const struct ptx_fault *from = &run->faults[i].fault;
        struct judgement_fault *f = &j->faults[j->fault_count++];
        *f = (struct judgement_fault){
            .kind = kind_of(from->kind),
            .detail = strdup(ptx_fault_kind_name(from->kind)),
            .space = strdup(space_name(from)),
            .address = from->address,
            .bytes = from->bytes,
            .offset = from->offset,
            .count = from->count,
            .threads = from->threads,
            .same_value = from->same_value,
        };
        verify_take_access(module, &from->access, &f->access);
        verify_take_access(module, &from->other, &f->other);
        if (run->faults[i].region < memory->count)
            f->allocation = memory->info[run->faults[i].region].allocation->id;
        if (f->kind == JUDGEMENT_FAULT_OUT_OF_BOUNDS)
            find_landing(v, l, f);
        if (f->kind == JUDGEMENT_FAULT_UNINITIALISED && !f->allocation)
            find_source(memory, f);
        if (!f->detail || !f->space) {
            judgement_clear(j);
            verify_not(j, "no-memory", NULL);
            return;
        }
    }
}
