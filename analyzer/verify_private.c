/* verify_private.c - shared and local memory that nobody wrote, moved to a buffer as it is.
 *
 * The executor reports such bytes when they are computed with. A kernel that only moves them leaves other outputs when
 * they are filled otherwise: the run that counts has a filling of its own, and where it leaves the same nothing more is
 * asked. As with unwritten buffers (verify_unwritten.c) the place is told when the program copies such an output to the
 * host. No load can be named, but the store that brings them out.
 */
#include "analyzer/verify.h"

#include <stdlib.h>
#include <string.h>

/* The longest run of such bytes, and the first of them. */
static uint64_t longest_run(const uint8_t *bits, uint64_t bytes, uint64_t *first)
{
    uint64_t longest = 0, run = 0;
    for (uint64_t k = 0; k < bytes; k++) {
        run = bit_get(bits, k) ? run + 1 : 0;
        if (run == 1 && !longest)
            *first = k;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Runs with the region ending at `bytes`, or read-only: its stores are faults then. */
static bool run_with_stores(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                            size_t region, uint64_t bytes, bool read_only, struct verify_memory *memory,
                            struct reference_result *result)
{
    struct judgement scratch = {0};
    struct reference_launch run;
    bool ok = verify_make_memory(v, l, like->layout == REFERENCE_AS_LAUNCHED, memory, &scratch);
    if (ok && region < memory->count) {
        uint64_t all = memory->regions[region].bytes;
        memory->regions[region].bytes = bytes;
        memory->regions[region].flags |= read_only ? REFERENCE_READ_ONLY : 0;
        verify_fill_launch(v, l, like->module, memory, &run);
        run.layout = like->layout;
        run.workers = 1;
        reference_run(&run, result);
        memory->regions[region].bytes = all;
        ok = !result->reason;
    }
    judgement_clear(&scratch);
    return ok;
}

static bool stores_such(const struct reference_fault *f, size_t region, const uint8_t *bits, uint64_t bytes)
{
    if (f->fault.kind != PTX_FAULT_OUT_OF_BOUNDS || !f->fault.access.write || f->region != region)
        return false;
    for (int64_t k = f->fault.offset; k < f->fault.offset + f->fault.bytes; k++)
        if (k >= 0 && (uint64_t)k < bytes && bit_get(bits, (uint64_t)k))
            return true;
    return false;
}

/* The stores of `size` bytes, each on its own place, that have such bytes; 0: one of them stores other bytes, too. */
static uint64_t whole_stores(const uint8_t *bits, uint64_t bytes, uint64_t first, uint32_t size)
{
    uint64_t stores = 0;
    for (uint64_t at = first % size; at + size <= bytes; at += size) {
        uint32_t such = 0;
        for (uint32_t k = 0; k < size; k++)
            such += bit_get(bits, at + k);
        if (such && such < size)
            return 0;
        stores += such > 0;
    }
    return stores;
}

/* The first store of such a byte, if its instruction stores other bytes, too, or the bytes are more than the hole of a
 * structure can be: what moves one structure word by word takes its holes along. */
static bool locate_store(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                         size_t region, const uint8_t *bits, uint64_t bytes, struct judgement *out)
{
    uint64_t first = 0, longest = longest_run(bits, bytes, &first);
    struct verify_memory memory = {0};
    struct reference_result result = {0};
    struct reference_fault found = {.region = SIZE_MAX};
    if (run_with_stores(v, l, like, region, first, false, &memory, &result))
        for (size_t i = 0; i < result.fault_count && found.region == SIZE_MAX; i++)
            if (stores_such(&result.faults[i], region, bits, bytes))
                found = result.faults[i];
    reference_result_free(&result);
    bool hole = longest <= VERIFY_HOLE_BYTES;
    uint64_t such = found.region == SIZE_MAX || !found.fault.bytes
                        ? 0
                        : whole_stores(bits, bytes, (uint64_t)found.fault.offset, found.fault.bytes);
    if (such && hole && run_with_stores(v, l, like, region, bytes, true, &memory, &result))
        for (size_t i = 0; i < result.fault_count; i++)
            if (result.faults[i].fault.kind == PTX_FAULT_READ_ONLY &&
                result.faults[i].fault.access.ptx_line == found.fault.access.ptx_line &&
                result.faults[i].fault.count > such)
                hole = false;
    reference_result_free(&result);
    if (found.region != SIZE_MAX && !hole) {
        found.fault.kind = PTX_FAULT_UNINITIALISED;
        found.fault.count = 1;
        result.faults = &found;
        result.fault_count = 1;
        verify_take_faults(v, l, like->module, &memory, &result, out);
    }
    verify_memory_free(&memory);
    return out->fault_count > 0;
}

/* Which of them the kernel has; functions that it calls may have local memory of their own. */
static const char *space_of(const struct model_launch *l, const struct reference_launch *run)
{
    const struct ptx_kernel *k = ptx_module_find_kernel(reference_module_ptx(run->module), run->kernel);
    bool shared = l->config->dynamic_shared_bytes || (k && k->static_shared_bytes), local = k && k->local_bytes;
    return shared && local ? "shared or local" : shared ? "shared" : local ? "local" : "";
}

bool verify_trace_private(struct verify *v, const struct model_launch *l, const struct reference_launch *run)
{
    struct verify_fillings fillings = {0};
    const char *space = space_of(l, run);
    bool stained = false;
    if (!*space && verify_kernel_traits(v, l) & VERIFY_KERNEL_ATOMICS) /* the order of its blocks explains it */
        return false;
    verify_try_fillings(v, l, run, VERIFY_FILLED_PRIVATE, 0, &fillings);
    for (size_t i = 0; fillings.ran && i < fillings.first.count; i++) {
        struct judgement located = {0};
        if (!fillings.differs[i])
            continue;
        stained = true;
        if (locate_store(v, l, run, i, fillings.differs[i], fillings.first.regions[i].bytes, &located)) {
            free(located.faults[0].space);
            located.faults[0].space = strdup(*space ? space : "local");
        }
        verify_stain(v, l, &fillings, i, &located);
        judgement_clear(&located);
    }
    verify_fillings_free(&fillings);
    return stained;
}
