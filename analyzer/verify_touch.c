/* verify_touch.c - what a launch that was executed again read and wrote, as runs of bytes, for the order between
 * streams (docs/order.md). */
#include "analyzer/verify.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

/* Patterns of one allocation that are kept. The rest is left out: it takes no part in findings. */
enum { MOST_RUNS = 64 };

static uint64_t word_of(const uint8_t *bits, uint64_t bytes, uint64_t index)
{
    uint64_t word = 0, left = (bytes + 7) / 8 - index * 8;
    memcpy(&word, bits + index * 8, left < 8 ? (size_t)left : 8);
    return word;
}

/* The first byte from `from` whose bit is `value`; `bytes` when there is none. */
static uint64_t next_bit(const uint8_t *bits, uint64_t bytes, uint64_t from, bool value)
{
    while (from < bytes) {
        uint64_t word = word_of(bits, bytes, from / 64);
        word = (value ? word : ~word) >> from % 64;
        if (word) {
            from += (uint64_t)__builtin_ctzll(word);
            return from < bytes ? from : bytes;
        }
        from = (from / 64 + 1) * 64;
    }
    return bytes;
}

/* Makes the interval part of the last run when it goes on in its rhythm. False: there is no room for another run. */
static bool add_interval(struct judgement_run *runs, size_t *count, uint64_t offset, uint64_t bytes)
{
    struct judgement_run *last = *count ? &runs[*count - 1] : NULL;
    if (last && last->bytes == bytes && (last->count == 1 || offset == last->offset + last->stride * last->count)) {
        if (last->count++ == 1)
            last->stride = offset - last->offset;
        return true;
    }
    if (*count == MOST_RUNS)
        return false;
    runs[(*count)++] = (struct judgement_run){offset, bytes, 0, 1};
    return true;
}

/* Of all that the runs cover, which begin at `start` of the contents. */
static uint64_t hash_values(const struct judgement_touch *t, const uint8_t *contents, uint64_t start)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < t->count; i++)
        for (uint64_t k = 0; k < t->runs[i].count; k++) {
            uint64_t offset = t->runs[i].offset + k * t->runs[i].stride - start;
            hash = hash * UINT64_C(0x9e3779b97f4a7c15) + hash_bytes64(contents + offset, (size_t)t->runs[i].bytes);
        }
    return hash >> 11;
}

/* `contents`: of what is written, else NULL. */
static void take_bits(const uint8_t *bits, uint64_t bytes, const struct model_allocation *a, const uint8_t *contents,
                      struct judgement *j)
{
    const struct model_allocation *whole = a->parent ? a->parent : a; /* regions are known to launches only */
    struct judgement_run runs[MOST_RUNS];
    size_t count = 0;
    bool complete = true;
    for (uint64_t at = 0; bits && (at = next_bit(bits, bytes, at, true)) < bytes;) {
        uint64_t end = next_bit(bits, bytes, at, false);
        complete = add_interval(runs, &count, a->address - whole->address + at, end - at);
        if (!complete)
            break;
        at = end;
    }
    struct judgement_touch *more = count ? realloc(j->touches, (j->touch_count + 1) * sizeof *more) : NULL;
    if (!more)
        return;
    j->touches = more;
    struct judgement_touch *t = &more[j->touch_count];
    *t = (struct judgement_touch){.allocation = whole->id, .write = contents != NULL};
    t->runs = malloc(count * sizeof *t->runs);
    if (!t->runs)
        return;
    memcpy(t->runs, runs, count * sizeof *runs);
    t->count = count;
    if (contents && complete)
        t->values = hash_values(t, contents, a->address - whole->address);
    j->touch_count++;
}

void verify_take_touches(const struct verify_memory *memory, struct judgement *j)
{
    for (size_t i = 0; i < memory->count; i++) {
        const struct reference_region *r = &memory->regions[i];
        if (memory->info[i].freed)
            continue;
        take_bits(r->written, r->bytes, memory->info[i].allocation, r->host, j);
        take_bits(r->read, r->bytes, memory->info[i].allocation, NULL, j);
    }
}

unsigned verify_kernel_traits(struct verify *v, const struct model_launch *l)
{
    uint8_t *seen = &v->kernels[l->kernel - v->model->kernels];
    if (*seen)
        return *seen;
    const struct verify_module *m = verify_module_of(v, l);
    const struct ptx_module *ptx = m->module ? reference_module_ptx(m->module) : NULL;
    const struct ptx_kernel *kernel = ptx ? ptx_module_find_kernel(ptx, l->kernel->mangled) : NULL;
    if (!kernel)
        return 0;
    *seen = VERIFY_KERNEL_KNOWN;
    if (reference_may_wait(m->module, kernel))
        *seen |= VERIFY_KERNEL_WAITS;
    if (reference_traits(m->module, kernel) & REFERENCE_ORDER)
        *seen |= VERIFY_KERNEL_ATOMICS;
    return *seen;
}

void verify_take_kernel(struct verify *v, const struct model_launch *l, struct judgement *j)
{
    unsigned traits = verify_kernel_traits(v, l);
    j->kernel_known = traits & VERIFY_KERNEL_KNOWN;
    j->may_wait = traits & VERIFY_KERNEL_WAITS;
    j->atomics = traits & VERIFY_KERNEL_ATOMICS;
}
