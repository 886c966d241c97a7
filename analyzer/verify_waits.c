/* verify_waits.c - kernels that do not end here: those that wait for memory that another launch or the host writes,
 * which nobody does while they are executed again, and others.
 *
 * A kernel whose PTX has a loop around a load that must be done again each time runs with a small part of the budget
 * first. When that is not enough it runs twice more, unchecked and counted, all blocks side by side: to a limit, and to
 * twice that. Both take the same way, so the difference of the counts is what happened in between. When that is longer
 * than all threads together need to have had their turn, and nothing was stored, no barrier was passed and no thread
 * ended, then what everybody loads can only be what it was: they go round in loops, and they wait, or count something
 * for very long. Either way there is no more to be had for the rest of the budget.
 */
#include "analyzer/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the budget, for the first look; thread instructions that every thread gets at least: four turns of the executor's,
 * two of them in the second half. */
enum { FIRST_SHARE = 256, THREAD_SHARE = 1 << 17, MOST_BLOCKS = 1024 };
/* Of the budget, for a kernel that has used up all of it before. */
enum { AGAIN_SHARE = 16 };

static uint64_t threads_of(const struct model_launch *l)
{
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(threads, (uint64_t)l->config->grid[i] * l->config->block[i], &threads))
            return UINT64_MAX;
    return threads;
}

static uint64_t blocks_of(const struct model_launch *l)
{
    return (uint64_t)l->config->grid[0] * l->config->grid[1] > MOST_BLOCKS
               ? MOST_BLOCKS + 1
               : (uint64_t)l->config->grid[0] * l->config->grid[1] * l->config->grid[2];
}

uint64_t verify_limit(const struct verify *v, const struct model_launch *l)
{
    uint64_t limit = v->options->instruction_limit, before = v->exhausted[l->kernel - v->model->kernels];
    return before && threads_of(l) >= before ? limit / AGAIN_SHARE : limit;
}

uint64_t verify_first_limit(struct verify *v, const struct model_launch *l)
{
    uint64_t limit = verify_limit(v, l), threads = threads_of(l);
    const struct verify_module *m = verify_module_of(v, l);
    const struct ptx_kernel *k =
        m->module ? ptx_module_find_kernel(reference_module_ptx(m->module), l->kernel->mangled) : NULL;
    uint64_t first = limit / FIRST_SHARE;
    if (!limit || !k || k->uses_runtime || blocks_of(l) > MOST_BLOCKS || threads > limit / 4 / THREAD_SHARE ||
        !(verify_kernel_traits(v, l) & VERIFY_KERNEL_WAITS))
        return limit;
    return first > threads * THREAD_SHARE ? first : threads * THREAD_SHARE;
}

bool verify_exhausted(struct verify *v, const struct model_launch *l, struct judgement *j)
{
    uint64_t *before = &v->exhausted[l->kernel - v->model->kernels];
    uint64_t limit = verify_limit(v, l), all = v->options->instruction_limit;
    char detail[240];
    if (limit < all) {
        snprintf(
            detail, sizeof detail,
            "it did not end within %.6g million thread instructions; it got no more because an earlier launch of the "
            "kernel, no larger, did not end within %.6g million (--launch N executes launch N alone)",
            (double)limit * 1e-6, (double)all * 1e-6);
    } else {
        snprintf(detail, sizeof detail, "it did not end within %.6g million thread instructions (--budget)",
                 (double)all * 1e-6);
        if (!*before || threads_of(l) < *before)
            *before = threads_of(l);
    }
    return verify_not(j, "budget", detail);
}

/* ---- does it wait? ---- */

struct look { /* a run to a limit */
    struct verify_memory memory;
    struct ptx_profile *profile; /* owned */
};

static bool look_at(struct verify *v, const struct model_launch *l, const struct reference_launch *like, uint64_t limit,
                    struct look *out)
{
    struct reference_launch run;
    struct reference_result result;
    struct judgement scratch = {0};
    bool ok = verify_make_memory(v, l, like->layout == REFERENCE_AS_LAUNCHED, &out->memory, &scratch);
    if (ok) {
        verify_fill_launch(v, l, like->module, &out->memory, &run);
        run.layout = like->layout;
        run.profile = true;
        run.cooperative = true;
        run.workers = 1;
        run.instruction_limit = limit;
        reference_run(&run, &result);
        ok = result.status == STATUS_LIMIT && result.profile;
        out->profile = result.profile;
        result.profile = NULL;
        reference_result_free(&result);
    }
    judgement_clear(&scratch);
    return ok;
}

static void look_end(struct look *look)
{
    verify_memory_free(&look->memory);
    ptx_profile_free(look->profile);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Executing it is progress, or may be, whatever comes of it. */
static bool moves_on(const struct ptx_instruction_counts *i, const struct ptx_kernel *k)
{
    bool own = i->ptx_line >= k->first_line && i->ptx_line <= k->last_line;
    switch (i->kind) {
    case PTX_CLASS_BARRIER:
        return !begins(i->opcode, "membar") && !begins(i->opcode, "fence");
    case PTX_CLASS_TEXTURE:
        return true;
    case PTX_CLASS_BRANCH: /* a return from a function that it calls is none */
        return begins(i->opcode, "exit") || (own && begins(i->opcode, "ret"));
    default:
        return false;
    }
}

static uint64_t more(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

/* Nothing but its own memory of a thread changed between the two, as far as the instruction goes. */
static bool stands_still(const struct ptx_instruction_counts *a, const struct ptx_instruction_counts *b,
                         const struct ptx_kernel *k)
{
    uint64_t executed = more(a->threads - a->guarded_off, b->threads - b->guarded_off);
    uint64_t global = more(a->access[PTX_SPACE_GLOBAL].write_bytes, b->access[PTX_SPACE_GLOBAL].write_bytes);
    uint64_t shared = more(a->access[PTX_SPACE_SHARED].write_bytes, b->access[PTX_SPACE_SHARED].write_bytes);
    if (!executed)
        return true;
    /* Atomics on global memory may leave it as it is: see same_memory(). */
    return !moves_on(b, k) && !shared && (!global || b->kind == PTX_CLASS_ATOMIC);
}

/* The load or atomic that most of the time goes by: where they wait, most likely. */
static bool took_more(const struct ptx_profile *a, const struct ptx_profile *b, const struct ptx_kernel *k,
                      uint32_t *line)
{
    static const struct ptx_instruction_counts none;
    uint64_t most = 0;
    for (size_t i = 0, at = 0; i < b->instruction_count; i++) {
        const struct ptx_instruction_counts *now = &b->instructions[i], *then = &none;
        if (at < a->instruction_count && a->instructions[at].ptx_line == now->ptx_line &&
            a->instructions[at].opcode == now->opcode)
            then = &a->instructions[at++];
        if (!stands_still(then, now, k))
            return false;
        uint64_t times = more(then->access[PTX_SPACE_GLOBAL].accesses, now->access[PTX_SPACE_GLOBAL].accesses);
        if (times > most) {
            most = times;
            *line = now->ptx_line;
        }
    }
    return most > 0;
}

static bool same_memory(const struct verify_memory *a, const struct verify_memory *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++)
        same = a->regions[i].bytes == b->regions[i].bytes &&
               memcmp(a->regions[i].host, b->regions[i].host, (size_t)a->regions[i].bytes) == 0;
    return same;
}

static void tell(const struct reference_module *module, uint32_t line, uint64_t instructions, struct judgement *j)
{
    struct ptx_source at = {0};
    char detail[400];
    size_t frames = ptx_module_source(reference_module_ptx(module), line, &at, 1);
    const char *slash = frames && at.file ? strrchr(at.file, '/') : NULL;
    const char *file = slash ? slash + 1 : at.file ? at.file : "PTX line";
    snprintf(
        detail, sizeof detail,
        "its threads go round loops that store nothing (%.6g million instructions), with loads at %.100s%s%u: they "
        "seem to wait for memory that another launch or the host writes, which nobody does here",
        (double)instructions * 1e-6, file, at.file ? ":" : " ", at.file ? at.line : line);
    verify_not(j, "waits", detail);
}

bool verify_waits(struct verify *v, const struct model_launch *l, const struct reference_launch *run,
                  struct judgement *j)
{
    struct look before = {0}, after = {0};
    const struct reference_module *module = run->module;
    const struct ptx_kernel *k = ptx_module_find_kernel(reference_module_ptx(module), l->kernel->mangled);
    uint64_t limit = run->instruction_limit;
    uint32_t line = 0;
    bool waits = k && look_at(v, l, run, limit / 2, &before) && look_at(v, l, run, limit, &after) &&
                 took_more(before.profile, after.profile, k, &line) && same_memory(&before.memory, &after.memory);
    if (waits)
        tell(module, line, limit / 2, j);
    look_end(&before);
    look_end(&after);
    return waits;
}
