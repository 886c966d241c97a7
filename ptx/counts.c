/* counts.c - the counters of a worker, and the result made of all workers'. */
#include <stdlib.h>
#include <string.h>
#include "ptx/counts.h"

static const char *const class_names[PTX_CLASS_COUNT] = {
    [PTX_CLASS_FP16] = "fp16",
    [PTX_CLASS_FP32] = "fp32",
    [PTX_CLASS_FP64] = "fp64",
    [PTX_CLASS_INTEGER] = "integer",
    [PTX_CLASS_CONVERSION] = "conversion",
    [PTX_CLASS_SPECIAL] = "special",
    [PTX_CLASS_TENSOR] = "tensor",
    [PTX_CLASS_LOAD] = "load",
    [PTX_CLASS_STORE] = "store",
    [PTX_CLASS_ATOMIC] = "atomic",
    [PTX_CLASS_TEXTURE] = "texture",
    [PTX_CLASS_BRANCH] = "branch",
    [PTX_CLASS_BARRIER] = "barrier",
    [PTX_CLASS_SHUFFLE] = "shuffle",
    [PTX_CLASS_MOVE] = "move",
    [PTX_CLASS_OTHER] = "other",
};
static const char *const flop_names[PTX_FLOP_TYPE_COUNT] = {
    [PTX_FLOP_F16] = "f16",
    [PTX_FLOP_BF16] = "bf16",
    [PTX_FLOP_F32] = "f32",
    [PTX_FLOP_F64] = "f64",
    [PTX_FLOP_TENSOR_F8] = "tensor-f8",
    [PTX_FLOP_TENSOR_F16] = "tensor-f16",
    [PTX_FLOP_TENSOR_BF16] = "tensor-bf16",
    [PTX_FLOP_TENSOR_TF32] = "tensor-tf32",
    [PTX_FLOP_TENSOR_F64] = "tensor-f64",
    [PTX_FLOP_TENSOR_INTEGER] = "tensor-integer",
};

const char *ptx_class_name(enum ptx_class c)
{
    return class_names[c];
}

const char *ptx_flop_type_name(enum ptx_flop_type t)
{
    return flop_names[t];
}

/* ---- a worker's ---- */

struct counter *counter_create(const struct count_table *t)
{
    struct counter *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->table = t;
    c->lanes = calloc(t->pc_count + 2u, sizeof *c->lanes);
    c->warps = calloc(t->pc_count + 2u, sizeof *c->warps);
    c->alone = calloc(t->pc_count + 2u, sizeof *c->alone);
    c->divergent = calloc(t->pc_count + 2u, sizeof *c->divergent);
    c->sites = calloc(t->site_count, sizeof(struct site_counts *));
    if (!c->lanes || !c->warps || !c->alone || !c->divergent || !c->sites) {
        counter_free(c);
        return NULL;
    }
    return c;
}

void counter_free(struct counter *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; c->sites && i < c->table->site_count; i++)
        free(c->sites[i]);
    for (size_t i = 0; i < c->pages.capacity; i++)
        if (c->pages.slots[i].used)
            free((void *)(uintptr_t)c->pages.slots[i].value);
    map_free(&c->pages);
    free((void *)c->sites);
    free(c->lanes);
    free(c->warps);
    free(c->alone);
    free(c->divergent);
    free(c);
}

/* ---- all workers' together ---- */

void ptx_access_counts_add(struct ptx_access_counts *to, const struct ptx_access_counts *from)
{
    to->accesses += from->accesses;
    to->read_bytes += from->read_bytes;
    to->write_bytes += from->write_bytes;
    to->requests += from->requests;
    to->request_accesses += from->request_accesses;
    to->sectors += from->sectors;
    to->ideal_sectors += from->ideal_sectors;
    to->lines += from->lines;
    to->wavefronts += from->wavefronts;
    to->ideal_wavefronts += from->ideal_wavefronts;
    to->atomics += from->atomics;
    to->same_address += from->same_address;
    if (from->same_address_most > to->same_address_most)
        to->same_address_most = from->same_address_most;
}

/* Everything into the first worker's counter. False: no memory. */
static bool merge(struct counter *to, const struct counter *from)
{
    for (uint32_t i = 0; i <= to->table->pc_count; i++) {
        to->lanes[i] += from->lanes[i];
        to->warps[i] += from->warps[i];
        to->alone[i] += from->alone[i];
        to->divergent[i] += from->divergent[i];
    }
    for (uint32_t i = 0; i < to->table->site_count; i++) {
        if (!from->sites[i])
            continue;
        if (!to->sites[i])
            to->sites[i] = calloc(1, sizeof *to->sites[i]);
        if (!to->sites[i])
            return false;
        for (int space = 0; space < COUNTED_SPACES; space++)
            ptx_access_counts_add(&to->sites[i]->in[space], &from->sites[i]->in[space]);
    }
    for (size_t i = 0; i < from->pages.capacity; i++) {
        const struct map_slot *slot = &from->pages.slots[i];
        uint64_t value;
        if (!slot->used)
            continue;
        const struct touch_page *page = (const struct touch_page *)(uintptr_t)slot->value;
        struct touch_page *mine;
        if (map_get(&to->pages, slot->key, &value)) {
            mine = (struct touch_page *)(uintptr_t)value;
        } else {
            mine = calloc(1, sizeof *mine);
            if (!mine || !map_put(&to->pages, slot->key, (uintptr_t)mine)) {
                free(mine);
                return false;
            }
        }
        for (uint32_t k = 0; k < TOUCH_PAGE / 64; k++) {
            mine->read[k] |= page->read[k];
            mine->written[k] |= page->written[k];
        }
    }
    return true;
}

static enum ptx_space window_of(uint64_t address)
{
    uint64_t window = address >> 32;
    return window == PTX_SHARED_WINDOW >> 32  ? PTX_SPACE_SHARED
           : window == PTX_LOCAL_WINDOW >> 32 ? PTX_SPACE_LOCAL
           : window == PTX_PARAM_WINDOW >> 32 ? PTX_SPACE_PARAM
                                              : PTX_SPACE_GLOBAL;
}

static void count_unique(const struct counter *c, struct ptx_profile *p)
{
    for (size_t i = 0; i < c->pages.capacity; i++) {
        if (!c->pages.slots[i].used)
            continue;
        const struct touch_page *page = (const struct touch_page *)(uintptr_t)c->pages.slots[i].value;
        uint64_t key = c->pages.slots[i].key;
        enum ptx_space space = key & TOUCH_CONST ? PTX_SPACE_CONST : window_of(key * TOUCH_PAGE);
        for (uint32_t k = 0; k < TOUCH_PAGE / 64 && space != PTX_SPACE_PARAM; k++) {
            p->unique[space].read += (uint64_t)__builtin_popcountll(page->read[k]);
            p->unique[space].written += (uint64_t)__builtin_popcountll(page->written[k]);
            p->unique[space].either += (uint64_t)__builtin_popcountll(page->read[k] | page->written[k]);
        }
    }
}

static void to_sums(uint64_t *differences, uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++)
        differences[i] += differences[i - 1];
}

/* One instruction's counts; false: it was never executed. */
static bool fill(const struct counter *c, const struct counted *x, struct ptx_instruction_counts *out)
{
    const struct count_table *t = c->table;
    uint32_t issue = t->base[x->function] + x->issue_pc, done = t->base[x->function] + x->done_pc;
    uint64_t executed = c->lanes[issue] + c->alone[issue], did = c->lanes[done] + c->alone[done];
    if (!executed)
        return false;
    const struct code *k = t->module->code[x->function];
    const struct statement *s = &k->function->statements[x->statement];
    *out = (struct ptx_instruction_counts){
        .ptx_line = x->line,
        .opcode = s->opcode->text,
        .kind = (enum ptx_class)x->class,
        .flop_type = (enum ptx_flop_type)x->flop_type,
        .threads = executed,
        .guarded_off = executed - did,
        .warps = c->warps[issue],
        .warp_threads = c->lanes[issue],
        .branches = x->branch ? c->warps[issue] : 0,
        .divergent = x->branch ? c->divergent[issue] : 0,
    };
    out->flops = x->warp_flops ? did / WARP * x->flops : did * x->flops;
    if (x->param_bytes) {
        struct ptx_access_counts *a = &out->access[PTX_SPACE_PARAM];
        a->accesses = did;
        *(x->param_write ? &a->write_bytes : &a->read_bytes) = did * x->param_bytes;
        a->requests = c->warps[done];
        a->request_accesses = c->lanes[done];
    }
    for (uint32_t pc = k->statement_pc[x->statement]; pc < k->statement_pc[x->statement + 1]; pc++) {
        uint32_t site = t->site_of[t->base[x->function] + pc];
        for (int space = 0; c->sites[site] && space < COUNTED_SPACES; space++)
            ptx_access_counts_add(&out->access[space], &c->sites[site]->in[space]);
    }
    return true;
}

static void add_up(struct ptx_profile *p, const struct ptx_instruction_counts *i)
{
    p->classes[i->kind] += i->threads;
    p->flops[i->flop_type] += i->flops;
    p->threads += i->threads;
    p->guarded_off += i->guarded_off;
    p->warps += i->warps;
    p->warp_threads += i->warp_threads;
    p->branches += i->branches;
    p->divergent += i->divergent;
    for (int space = 0; space < COUNTED_SPACES; space++)
        ptx_access_counts_add(&p->access[space], &i->access[space]);
}

static int by_line(const void *a, const void *b)
{
    const struct ptx_instruction_counts *x = a, *y = b;
    return x->ptx_line < y->ptx_line ? -1 : x->ptx_line > y->ptx_line;
}

/* Merge sort, as instructions of one line keep their order. */
static void sort_by_line(struct ptx_instruction_counts *list, struct ptx_instruction_counts *scratch, size_t n)
{
    if (n < 2)
        return;
    size_t half = n / 2, a = 0, b = half, at = 0;
    sort_by_line(list, scratch, half);
    sort_by_line(list + half, scratch, n - half);
    memcpy(scratch, list, n * sizeof *list);
    while (at < n)
        list[at++] = b == n || (a < half && by_line(&scratch[a], &scratch[b]) <= 0) ? scratch[a++] : scratch[b++];
}

bool counts_finish(const struct count_table *t, struct counter *const *counters, uint32_t count,
                   struct ptx_profile **out)
{
    struct counter *all = counters[0];
    for (uint32_t i = 0; i < count; i++) {
        if (counters[i]->no_memory || (i && !merge(all, counters[i])))
            return false;
    }
    to_sums(all->lanes, t->pc_count);
    to_sums(all->warps, t->pc_count);
    struct ptx_profile *p = calloc(1, sizeof *p);
    struct ptx_instruction_counts *scratch = malloc((t->count + 1u) * sizeof *scratch);
    if (p)
        p->instructions = malloc((t->count + 1u) * sizeof *p->instructions);
    if (!p || !p->instructions || !scratch) {
        free(scratch);
        ptx_profile_free(p);
        return false;
    }
    for (uint32_t i = 0; i < t->count; i++)
        p->instruction_count += fill(all, &t->list[i], &p->instructions[p->instruction_count]);
    sort_by_line(p->instructions, scratch, p->instruction_count);
    free(scratch);
    for (size_t i = 0; i < p->instruction_count; i++)
        add_up(p, &p->instructions[i]);
    p->alone = p->threads - p->warp_threads;
    count_unique(all, p);
    *out = p;
    return true;
}

void ptx_profile_free(struct ptx_profile *p)
{
    if (p)
        free(p->instructions);
    free(p);
}
