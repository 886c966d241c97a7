/* refusal.c - what keeps a kernel from being run: instructions and features that this executor lacks. */
#include <stdlib.h>
#include <string.h>
#include "ptx/lower.h"

enum { MAX_REFUSALS = 64 }; /* distinct ones, of one function */

bool refusal_note(struct lower *l)
{
    struct code *k = l->code;
    for (uint32_t i = 0; i < k->refusal_count; i++)
        if (strcmp(k->refusals[i]->text, l->reader->diag->text) == 0)
            return true;
    struct diag *copy = reader_alloc(l->reader, 1, sizeof *copy);
    *copy = *l->reader->diag;
    *(struct diag **)reader_push(l->reader, (void **)&k->refusals, &k->refusal_count, &k->refusal_capacity,
                                 sizeof(struct diag *)) = copy;
    return k->refusal_count < MAX_REFUSALS;
}

void lower_lacks(struct lower *l, const char *why)
{
    struct reader *r = l->reader;
    jmp_buf here, *outer = r->fail;
    r->fail = &here;
    if (!setjmp(here))
        lower_refuse(l, why);
    r->fail = outer;
    if (r->status != STATUS_NOT_SUPPORTED || !refusal_note(l))
        longjmp(*outer, 1);
}

/* The kernel's own first. */
static size_t list_missing(const struct ptx_module *m, const struct code *entry, const uint8_t *reachable,
                           const struct diag **list, size_t max)
{
    size_t n = 0;
    for (uint32_t i = 0; i < entry->refusal_count; i++, n++)
        if (n < max)
            list[n] = entry->refusals[i];
    for (uint32_t f = 0; f < m->code_count; f++) {
        const struct code *k = m->code[f];
        for (uint32_t i = 0; reachable[f] && k != entry && i < k->refusal_count; i++, n++)
            if (n < max)
                list[n] = k->refusals[i];
    }
    return n;
}

void refusals_find(struct ptx_module *m)
{
    struct reader *r = m->ast.reader;
    m->kernel_refusals = reader_alloc(r, m->kernel_count, sizeof(struct diag *));
    bool any = false;
    for (uint32_t f = 0; f < m->code_count; f++)
        any = any || m->code[f]->refusal_count;
    if (!any)
        return;
    uint8_t *reachable = reader_alloc(r, m->code_count, 1);
    for (uint32_t i = 0; i < m->kernel_count; i++) {
        const struct code *entry = m->kernel_code[i];
        memset(reachable, 0, m->code_count);
        if (mark_launchable(m, entry->function->index, reachable))
            reader_fail(r, STATUS_NO_MEMORY, (struct place){0, 0}, "out of memory while reading PTX");
        list_missing(m, entry, reachable, &m->kernel_refusals[i], 1);
    }
}

static const struct code *code_of(const struct ptx_module *m, const struct ptx_kernel *kernel, uint32_t *index)
{
    for (*index = 0; *index < m->kernel_count; ++*index)
        if (&m->kernels[*index] == kernel)
            return m->kernel_code[*index];
    return NULL;
}

const struct diag *ptx_kernel_refusal(const struct ptx_module *m, const struct ptx_kernel *kernel)
{
    uint32_t index;
    return code_of(m, kernel, &index) ? m->kernel_refusals[index] : NULL;
}

size_t ptx_kernel_missing(const struct ptx_module *m, const struct ptx_kernel *kernel, const struct diag **list,
                          size_t max)
{
    uint32_t index;
    const struct code *entry = code_of(m, kernel, &index);
    if (!entry || !m->kernel_refusals[index])
        return 0;
    uint8_t *reachable = calloc(m->code_count, 1);
    size_t n = 1;
    if (reachable && !mark_launchable(m, entry->function->index, reachable))
        n = list_missing(m, entry, reachable, list, max);
    else if (max)
        list[0] = m->kernel_refusals[index];
    free(reachable);
    return n;
}
