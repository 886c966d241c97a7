#include "analyzer/line_counts.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/place.h"

static void add_instruction(struct line_counts *to, const struct ptx_instruction_counts *from)
{
    to->threads += from->threads;
    to->guarded_off += from->guarded_off;
    to->flops += from->flops;
    to->warps += from->warps;
    to->warp_threads += from->warp_threads;
    to->branches += from->branches;
    to->divergent += from->divergent;
    for (int space = 0; space < 5; space++)
        ptx_access_counts_add(&to->access[space], &from->access[space]);
}

uint64_t line_requests(const struct line_counts *l)
{
    return l->access[PTX_SPACE_GLOBAL].requests + l->access[PTX_SPACE_LOCAL].requests;
}

uint64_t line_sectors(const struct line_counts *l)
{
    return l->access[PTX_SPACE_GLOBAL].sectors + l->access[PTX_SPACE_LOCAL].sectors;
}

uint64_t line_ideal_sectors(const struct line_counts *l)
{
    return l->access[PTX_SPACE_GLOBAL].ideal_sectors + l->access[PTX_SPACE_LOCAL].ideal_sectors;
}

uint64_t line_cost(const struct line_counts *l)
{
    return l->warps + (l->threads - l->warp_threads + 31) / 32 + l->access[PTX_SPACE_SHARED].wavefronts +
           line_sectors(l);
}

/* The line of a place, which is taken over; NULL: no memory. */
static struct line_counts *line_of(struct counted *c, struct judgement_access *place)
{
    for (size_t i = c->count; i-- > 0;) /* neighbours are often of one line */
        if (place_equal(&c->lines[i].place, place))
            return &c->lines[i];
    if (c->count == c->capacity) {
        size_t want = c->capacity ? 2 * c->capacity : 32;
        struct line_counts *more = realloc(c->lines, want * sizeof *more);
        if (!more)
            return NULL;
        c->lines = more;
        c->capacity = want;
    }
    struct line_counts *line = &c->lines[c->count++];
    *line = (struct line_counts){.place = *place};
    *place = (struct judgement_access){0};
    return line;
}

static void add_totals(struct ptx_profile *to, const struct ptx_profile *from)
{
    for (int i = 0; i < PTX_CLASS_COUNT; i++)
        to->classes[i] += from->classes[i];
    for (int i = 0; i < PTX_FLOP_TYPE_COUNT; i++)
        to->flops[i] += from->flops[i];
    to->threads += from->threads;
    to->guarded_off += from->guarded_off;
    to->warps += from->warps;
    to->warp_threads += from->warp_threads;
    to->alone += from->alone;
    to->branches += from->branches;
    to->divergent += from->divergent;
    for (int space = 0; space < 5; space++) {
        ptx_access_counts_add(&to->access[space], &from->access[space]);
        to->unique[space].read += from->unique[space].read;
        to->unique[space].written += from->unique[space].written;
        to->unique[space].either += from->unique[space].either;
    }
}

void counted_add(struct counted *c, const struct reference_module *module, const struct ptx_profile *p)
{
    c->launches++;
    add_totals(&c->total, p);
    for (size_t i = 0; i < p->instruction_count; i++) {
        const struct ptx_access at = {.ptx_line = p->instructions[i].ptx_line};
        struct judgement_access place;
        struct line_counts one = {0};
        verify_take_access(module, &at, &place);
        add_instruction(&one, &p->instructions[i]);
        struct line_counts *line = line_of(c, &place);
        uint64_t cost = line_cost(&one);
        if (!line) {
            c->no_memory = true;
        } else {
            add_instruction(line, &p->instructions[i]);
            if (cost > line->place_cost) {
                line->place_cost = cost;
                line->place.ptx_line = at.ptx_line;
            }
        }
        judgement_access_clear(&place);
    }
}

static int by_cost(const void *a, const void *b)
{
    const struct line_counts *x = a, *y = b;
    uint64_t p = line_cost(x), q = line_cost(y);
    if (p != q)
        return p > q ? -1 : 1;
    return x->place.ptx_line < y->place.ptx_line ? -1 : x->place.ptx_line > y->place.ptx_line;
}

void counted_sort(struct counted *c)
{
    if (c->count)
        qsort(c->lines, c->count, sizeof *c->lines, by_cost);
}

void counted_free(struct counted *c)
{
    for (size_t i = 0; i < c->count; i++)
        judgement_access_clear(&c->lines[i].place);
    free(c->lines);
    *c = (struct counted){0};
}
