#include "analyzer/verify.h"

#include <stdlib.h>
#include <string.h>

/* The first two differ in every bit: true and false, -1 and 0, NaN and zero. The rest stand on other sides of the
 * comparisons that programs make, in integers, halves, floats and doubles alike: a small number, a large one, a large
 * negative one, and the most negative integer, which is a float next to zero. No filling meets a comparison with one
 * value alone (x == 77). */
static const uint8_t fillings[] = {0xff, 0x00, 0x11, 0x7b, 0xfb, 0x80};
enum { FILLINGS = sizeof fillings / sizeof *fillings, MOVING = 2 };

/* A launch that executes more than this many times what it did before, and this much more, has no end in sight. */
#define LONGER_TIMES 64
#define LONGER_MORE  (UINT64_C(64) << 20)

static void fill_unwritten(struct reference_region *r, uint8_t filling)
{
    for (uint64_t k = 0; r->valid && k < r->bytes; k++)
        if (!bit_get(r->valid, k))
            r->host[k] = filling;
}

/* *memory is as it leaves it. */
static bool run_filled(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                       enum verify_filled filled, uint8_t filling, uint64_t limit, struct verify_memory *memory)
{
    struct judgement scratch = {0};
    struct reference_launch run;
    struct reference_result result;
    bool ok = verify_make_memory(v, l, like->layout == REFERENCE_AS_LAUNCHED, memory, &scratch);
    if (ok) {
        for (size_t i = 0; i < memory->count; i++) {
            if (filled != VERIFY_FILLED_PRIVATE)
                fill_unwritten(&memory->regions[i], filling);
            memory->regions[i].valid = NULL;
        }
        verify_fill_launch(v, l, like->module, memory, &run);
        run.layout = like->layout;
        run.fill = filled == VERIFY_FILLED_GLOBAL ? 0 : filling;
        if (limit && limit < run.instruction_limit)
            run.instruction_limit = limit;
        if (verify_kernel_traits(v, l) & VERIFY_KERNEL_ATOMICS)
            run.workers = 1; /* the order of the blocks must not be what differs */
        reference_run(&run, &result);
        ok = !result.reason && !result.foreign;
        for (size_t i = 0; i < result.fault_count; i++)
            ok = ok && (result.faults[i].fault.same_value || result.faults[i].fault.kind == PTX_FAULT_UNINITIALISED);
        reference_result_free(&result);
    }
    judgement_clear(&scratch);
    return ok;
}

static enum verify_garbage worse(enum verify_garbage a, enum verify_garbage b)
{
    return a > b ? a : b;
}

/* The bytes of region `i` that were stored in either run and are not the same in both. False: no memory. */
static bool compare_region(const struct verify_memory *again, uint8_t filling, size_t i, struct verify_fillings *out)
{
    const struct reference_region *a = &out->first.regions[i], *b = &again->regions[i];
    size_t bitmap = (size_t)(a->bytes + 7) / 8;
    if (memcmp(a->written, b->written, bitmap) == 0 && memcmp(a->host, b->host, (size_t)a->bytes) == 0)
        return true;
    bool host = verify_shared_with_host(out->first.info[i].allocation);
    for (uint64_t k = 0; k < a->bytes; k++) {
        bool stored = bit_get(a->written, k), elsewhere = stored != bit_get(b->written, k);
        if (!elsewhere && (!stored || a->host[k] == b->host[k]))
            continue;
        if (!out->differs[i] && !(out->differs[i] = calloc(bitmap + 1, 1)))
            return false;
        out->differs[i][k / 8] |= (uint8_t)(1u << k % 8);
        out->moved[i] = out->moved[i] && a->host[k] == fillings[0] && b->host[k] == filling;
        out->answer = worse(out->answer, elsewhere || host ? VERIFY_GARBAGE_HARMFUL : VERIFY_GARBAGE_VALUES);
    }
    return true;
}

static bool start(struct verify_fillings *out)
{
    out->differs = calloc(out->first.count + 1, sizeof *out->differs);
    out->moved = calloc(out->first.count + 1, sizeof *out->moved);
    for (size_t i = 0; out->moved && i < out->first.count; i++)
        out->moved[i] = true;
    return out->differs && out->moved;
}

/* No two runs of such a kernel need be the same. */
static bool reads_clocks(const struct reference_launch *run)
{
    const struct ptx_kernel *kernel = ptx_module_find_kernel(reference_module_ptx(run->module), run->kernel);
    return kernel && (reference_traits(run->module, kernel) & REFERENCE_IDENTITY);
}

void verify_try_fillings(struct verify *v, const struct model_launch *l, const struct reference_launch *like,
                         enum verify_filled filled, uint64_t instructions, struct verify_fillings *out)
{
    uint64_t limit = 0;
    out->answer = VERIFY_GARBAGE_HARMLESS;
    if (reads_clocks(like))
        return;
    if (instructions && instructions < (UINT64_MAX - LONGER_MORE) / LONGER_TIMES)
        limit = instructions * LONGER_TIMES + LONGER_MORE;
    out->answer = VERIFY_GARBAGE_HARMFUL;
    if (!run_filled(v, l, like, filled, fillings[0], limit, &out->first) || !start(out))
        return;
    out->answer = VERIFY_GARBAGE_HARMLESS;
    size_t count = filled == VERIFY_FILLED_ALL ? FILLINGS : MOVING;
    bool ran = true;
    for (size_t n = 1; ran && n < count && (filled != VERIFY_FILLED_ALL || out->answer != VERIFY_GARBAGE_HARMFUL);
         n++) {
        struct verify_memory again = {0};
        ran = run_filled(v, l, like, filled, fillings[n], limit, &again) && again.count == out->first.count;
        for (size_t i = 0; ran && i < again.count; i++)
            ran = compare_region(&again, fillings[n], i, out);
        verify_memory_free(&again);
    }
    out->ran = ran;
    if (!ran)
        out->answer = VERIFY_GARBAGE_HARMFUL;
}

void verify_fillings_free(struct verify_fillings *f)
{
    for (size_t i = 0; f->differs && i < f->first.count; i++)
        free(f->differs[i]);
    free((void *)f->differs);
    free(f->moved);
    verify_memory_free(&f->first);
    *f = (struct verify_fillings){0};
}
