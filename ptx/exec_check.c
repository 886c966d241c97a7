/* exec_check.c - checked mode: accesses judged by the origin of their pointer, then by what lies there.
 *
 * Origin: a value that equals an address inside exactly one range (a parameter, the address of a variable, 8 bytes
 * loaded from memory) points into that range; adding numbers to it keeps that. An access through it must stay in that
 * range even where other memory is mapped. Differences of pointers and other arithmetic give ORIGIN_MIXED, which
 * spreads and is never judged: optimisers rewrite b[i] as a[i] + (b - a). */
#include <stdlib.h>
#include <string.h>
#include "ptx/exec_check.h"

#define MAX_CHECKED_BLOCKS (UINT64_C(1) << 24)

static enum mem_space real_space(enum mem_space space, uint64_t *address)
{
    if (space == MEM_CONST)
        return MEM_GLOBAL;
    if (space != MEM_GENERIC) {
        *address = narrow_address(space, *address);
        return space;
    }
    uint64_t window = *address >> 32;
    space = window == PTX_SHARED_WINDOW >> 32  ? MEM_SHARED
            : window == PTX_LOCAL_WINDOW >> 32 ? MEM_LOCAL
            : window == PTX_PARAM_WINDOW >> 32 ? MEM_PARAM
                                               : MEM_GLOBAL;
    if (space != MEM_GLOBAL)
        *address &= UINT32_MAX;
    return space;
}

/* ---- origins ---- */

uint32_t origin_of(struct launch *l, uint64_t value)
{
    const struct check *c = l->check;
    if (value < c->lowest || value >= c->highest) {
        if (!l->memory->find || value < 4096)
            return 0;
    }
    uint32_t number, before;
    const struct ptx_range *r = range_find(l, value, &number);
    if (!r || !number)
        return 0;
    /* The start of one range may be the end of the one before it: a pointer one past its end. */
    if (value == r->address && value && range_find(l, value - 1, &before))
        return ORIGIN_MIXED;
    return number;
}

void check_fill_origins(const struct block *b, const struct code *code, struct shadow *S)
{
    const uint32_t *origins = b->worker->launch->check->origins[code->function->index];
    for (uint32_t i = 0; i < code->fill_count; i++)
        if (origins[i])
            S[code->fills[i].slot].origin = origins[i];
}

/* True when the access stays in the range its pointer came from, or that is not known. */
static bool judge_origin(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint32_t origin,
                         uint64_t address, uint32_t bytes, bool write, bool atomic)
{
    if (origin == 0 || origin == ORIGIN_MIXED)
        return true;
    const struct ptx_range *r = range_by_number(w->launch, origin);
    uint64_t offset = address - r->address;
    if (offset < r->bytes && bytes <= r->bytes - offset)
        return true;
    struct ptx_fault f = {
        .kind = PTX_FAULT_OUT_OF_BOUNDS,
        .space = PTX_SPACE_GLOBAL,
        .address = address,
        .bytes = bytes,
        .has_range = true,
        .provenance = true,
        .range_id = r->id,
        .offset = (int64_t)offset,
    };
    f.access.write = write;
    f.access.atomic = atomic;
    fault_report(w, b, t, in, &f);
    return false;
}

/* ---- accesses ---- */

static uint8_t *find(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint32_t origin,
                     enum mem_space space, uint64_t address, uint32_t bytes, bool write, bool atomic)
{
    w->at = NULL;
    w->at_number = 0;
    if (space != MEM_GLOBAL)
        return space_find(w, b, t, in, space, address, bytes, write, atomic);
    const struct range_cache *c = &w->cache[in->aux];
    uint64_t offset = address - c->base;
    if (__builtin_expect(offset < c->span && !(address & (bytes - 1)) && !atomic &&
                             (origin == 0 || origin == ORIGIN_MIXED || origin == c->number),
                         1)) {
        if (write)
            w->counts.global_write_bytes += bytes;
        else
            w->counts.global_read_bytes += bytes;
        if (c->tracked)
            range_track(w, c, offset, bytes, write);
        w->at = c->number ? c->range : NULL;
        w->at_number = c->number;
        return c->host + offset;
    }
    if (!judge_origin(w, b, t, in, origin, address, bytes, write, atomic))
        return NULL;
    uint8_t *p = global_find(w, b, t, in, address, bytes, write, atomic);
    if (p) {
        w->at = c->number ? c->range : NULL;
        w->at_number = c->number;
    }
    return p;
}

uint8_t *check_access(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *base,
                      enum mem_space space, uint64_t address, uint32_t bytes, bool write)
{
    if (base->undef)
        undef_used(w, b, t, base);
    space = real_space(space, &address);
    return find(w, b, t, in, base->origin, space, address, bytes, write, false);
}

uint8_t *check_atomic(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *S,
                      enum mem_space space, uint64_t address, uint32_t bytes)
{
    const uint32_t operands[] = {in->a, in->b, in->c};
    for (int i = 0; i < 3; i++)
        if (S[operands[i]].undef)
            undef_used(w, b, t, &S[operands[i]]);
    space = real_space(space, &address);
    uint8_t *p = find(w, b, t, in, S[in->a].origin, space, address, bytes, true, true);
    S[in->d] = (struct shadow){0};
    if (!p)
        return NULL;
    uint32_t undef = undef_at(w, b, t, space, address, bytes);
    if (undef && (in->mod & 0xf) != ATOM_EXCH) {
        struct shadow read = {.undef = undef_record(w, b, t, in, space, address, bytes, undef)};
        undef_used(w, b, t, &read);
    }
    undef_store(w, b, t, space, address, bytes, 0);
    if (in->mod & MOD_RELEASE)
        check_fence(b, t);
    race_access(w, b, t, in, space, address, bytes, true, NULL, 0);
    if (bytes == 8) {
        uint64_t old;
        memcpy(&old, p, sizeof old);
        S[in->d].origin = origin_of(w->launch, old);
    }
    return p;
}

/* Of 16 bytes: both halves, and the alignment of the whole. */
uint8_t *check_atomic_wide(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *S,
                           enum mem_space space, uint64_t address)
{
    const uint32_t *upper = t->code->extra + in->imm;
    for (int i = 1; i < 3; i++)
        if (S[upper[i]].undef)
            undef_used(w, b, t, &S[upper[i]]);
    if (address & 15)
        return check_access(w, b, t, in, &S[in->a], space, address, 16, true); /* a fault */
    uint8_t *p = check_atomic(w, b, t, in, S, space, address, 8);
    if (p && !check_atomic(w, b, t, in, S, space, address + 8, 8))
        p = NULL;
    S[in->d] = (struct shadow){0};
    return p;
}

void check_loaded(struct worker *w, struct block *b, struct thread *t, const struct insn *in, struct shadow *d,
                  enum mem_space space, uint64_t address, uint32_t bytes, const uint8_t *p, uint64_t value)
{
    *d = (struct shadow){0};
    if (!p)
        return;
    space = real_space(space, &address);
    uint32_t undef = undef_at(w, b, t, space, address, bytes);
    if (undef)
        d->undef = undef_record(w, b, t, in, space, address, bytes, undef);
    if (bytes == 8)
        d->origin = origin_of(w->launch, value);
    race_access(w, b, t, in, space, address, bytes, false, NULL, 0);
}

void check_stored(struct worker *w, struct block *b, struct thread *t, const struct insn *in, const struct shadow *s,
                  enum mem_space space, uint64_t address, uint32_t bytes, const uint8_t *p, uint64_t value)
{
    space = real_space(space, &address);
    undef_store(w, b, t, space, address, bytes, s->undef & 0xff);
    race_access(w, b, t, in, space, address, bytes, true, p, value);
}

/* cp.async: definedness moves with the bytes. Both sides count as plain accesses of this thread. */
void check_copied(struct worker *w, struct block *b, struct thread *t, const struct insn *in, uint64_t to,
                  uint64_t from, uint32_t bytes, uint32_t given, const uint8_t *p)
{
    for (uint32_t i = 0; i < bytes; i += 4) {
        uint32_t undef = 0;
        uint64_t value = 0;
        if (i < given) {
            if (!w->at)
                (void)range_find(w->launch, from + i, &w->at_number);
            w->at = range_by_number(w->launch, w->at_number);
            undef = undef_at(w, b, t, MEM_GLOBAL, from + i, 4);
            race_access(w, b, t, in, MEM_GLOBAL, from + i, 4, false, NULL, 0);
            memcpy(&value, p + i, 4);
        }
        undef_store(w, b, t, MEM_SHARED, to + i, 4, undef);
        race_access(w, b, t, in, MEM_SHARED, to + i, 4, true, b->shared + to + i, value);
    }
}

/* ---- life ---- */

static void find_span(struct launch *l)
{
    const struct ptx_memory *m = l->memory;
    l->check->lowest = m->range_count ? m->ranges[0].address : UINT64_MAX;
    if (m->range_count) {
        const struct ptx_range *last = &m->ranges[m->range_count - 1];
        l->check->highest = last->address + last->bytes;
    }
}

bool check_launch_start(struct launch *l)
{
    const struct ptx_module *m = l->module;
    struct check *c = l->check = calloc(1, sizeof *c);
    if (!c)
        return false;
    find_span(l);
    c->last_page = UINT64_MAX;
    c->defined_count = (uint32_t)l->memory->range_count + MAX_FOUND + 1;
    /* What a launch has written, the grids that its kernels start find written. */
    c->defined = l->root == l ? calloc(c->defined_count, sizeof(uint8_t *)) : l->root->check->defined;
    c->origins = calloc(m->code_count + 1u, sizeof(uint32_t *));
    if (!c->defined || !c->origins)
        return false;
    if (l->block_count <= MAX_CHECKED_BLOCKS) {
        c->fences = calloc(l->block_count, sizeof *c->fences);
        if (!c->fences)
            return false;
    }
    for (uint32_t i = 0; i < m->code_count; i++) {
        const struct code *k = m->code[i];
        if (!l->templates[i])
            continue;
        c->origins[i] = calloc(k->fill_count + 1u, sizeof(uint32_t));
        if (!c->origins[i])
            return false;
        for (uint32_t f = 0; f < k->fill_count; f++) {
            const struct fill *fill = &k->fills[f];
            if ((fill->kind == FILL_PARAM && fill->bytes == 8) || fill->kind == FILL_VARIABLE)
                c->origins[i][f] = origin_of(l, l->templates[i][fill->slot].u64);
        }
    }
    return true;
}

void check_launch_end(struct launch *l)
{
    struct check *c = l->check;
    if (!c)
        return;
    for (uint32_t i = 0; l->root == l && c->defined && i < c->defined_count; i++)
        free(c->defined[i]);
    for (uint32_t i = 0; c->origins && i < l->module->code_count; i++)
        free(c->origins[i]);
    for (size_t i = 0; i < c->pages.capacity; i++)
        if (c->pages.slots[i].used)
            free((void *)(uintptr_t)c->pages.slots[i].value);
    map_free(&c->pages);
    map_free(&c->latent_index);
    free(c->latents);
    if (l->root == l)
        free(c->defined);
    free(c->origins);
    free(c->fences);
    free(c);
    l->check = NULL;
}

bool check_block_create(struct block *b)
{
    b->shared_defined = calloc(b->shared_bytes + 16u, 1);
    b->shared_cells = calloc(b->shared_bytes / 4 + 4u, sizeof *b->shared_cells);
    return b->shared_defined && b->shared_cells;
}

void check_block_destroy(struct block *b)
{
    free(b->shared_defined);
    free(b->shared_cells);
}

void check_block_start(struct block *b)
{
    memset(b->shared_defined, 0, b->shared_bytes);
    memset(b->shared_defined, 1, b->worker->launch->layout.reserved_bytes);
    memset(b->shared_cells, 0, (b->shared_bytes / 4 + 1u) * sizeof *b->shared_cells);
    b->epoch = b->fences = 0;
    for (uint32_t i = 0; i < b->thread_count; i++)
        b->threads[i].warp_clock = 0;
}
