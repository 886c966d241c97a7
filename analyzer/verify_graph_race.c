/* verify_graph_race.c - nodes of a graph that nothing orders and that touch the same bytes.
 *
 * Only what is certain: each node's accesses are those of its own run, a byte counts as written when the store changed
 * it, and kernels with atomics (or whose accesses are meant to be seen by others) are left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/verify_graph.h"

#define TOUCH_LIMIT (UINT64_C(1) << 30) /* bytes of bitmaps */
enum { NODES_LIMIT = 1 << 14, RACES_TOLD = 16 };

/* ---- who comes after whom ---- */

bool graph_ancestors_make(const struct model_nodes *nodes, struct graph_ancestors *out)
{
    out->row = (nodes->count + 7) / 8;
    out->bits = nodes->count <= NODES_LIMIT ? calloc(nodes->count + 1, out->row + 1) : NULL;
    for (size_t i = 0; out->bits && i < nodes->count; i++) {
        const uint32_t *dependencies = model_node_dependencies(nodes->items[i]);
        uint8_t *mine = out->bits + i * out->row;
        for (uint32_t k = 0; k < nodes->items[i]->dependency_count; k++) {
            const uint8_t *theirs = out->bits + dependencies[k] * out->row;
            for (size_t b = 0; b < out->row; b++)
                mine[b] |= theirs[b];
            mine[dependencies[k] / 8] |= (uint8_t)(1u << dependencies[k] % 8);
        }
    }
    return out->bits != NULL;
}

bool graph_ordered(const struct graph_ancestors *a, uint32_t earlier, uint32_t later)
{
    return bit_get(a->bits + later * a->row, earlier);
}

static bool acts(const struct cap_graph_node *n)
{
    return !(n->flags & CAP_NODE_DISABLED) &&
           (n->kind == CAP_NODE_KERNEL || n->kind == CAP_NODE_COPY || n->kind == CAP_NODE_SET);
}

bool graph_has_branches(const struct model_nodes *nodes)
{
    struct graph_ancestors a;
    bool found = false;
    if (!graph_ancestors_make(nodes, &a))
        return false;
    for (uint32_t later = 0, last = UINT32_MAX; !found && later < nodes->count; later++)
        if (acts(nodes->items[later])) {
            found = last != UINT32_MAX && !graph_ordered(&a, last, later);
            last = later;
        }
    free(a.bits);
    return found;
}

/* ---- what each node touched ---- */

void graph_touches_free(struct graph_touches *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->items[i].read);
        free(t->items[i].written);
        free(t->items[i].changed);
    }
    free(t->items);
    *t = (struct graph_touches){0};
}

/* The entry of a node and an allocation; the newest ones come last. */
static struct graph_touch *touch_of(struct graph_run *r, uint32_t node, const struct model_allocation *a)
{
    struct graph_touches *t = &r->touches;
    size_t bytes = (size_t)(a->bytes + 7) / 8 + 1;
    for (size_t i = t->count; i-- > 0 && t->items[i].node == node;)
        if (t->items[i].allocation == a->id)
            return &t->items[i];
    struct graph_touch *more = realloc(t->items, (t->count + 1) * sizeof *more);
    t->items = more ? more : t->items;
    t->bytes += 3 * bytes;
    if (!more || t->bytes > TOUCH_LIMIT) {
        t->incomplete = true;
        return NULL;
    }
    struct graph_touch *touch = &t->items[t->count++];
    *touch = (struct graph_touch){.node = node,
                                  .allocation = a->id,
                                  .read = calloc(1, bytes),
                                  .written = calloc(1, bytes),
                                  .changed = calloc(1, bytes)};
    t->incomplete = t->incomplete || !touch->read || !touch->written || !touch->changed;
    return t->incomplete ? NULL : touch;
}

static bool any(const uint8_t *bits, uint64_t bytes)
{
    for (uint64_t k = 0; k < (bytes + 7) / 8; k++)
        if (bits[k])
            return true;
    return false;
}

static void take_region(struct graph_run *r, uint32_t index, const struct verify_memory *memory, size_t i)
{
    const struct reference_region *region = &memory->regions[i];
    const struct model_allocation *a = memory->info[i].allocation;
    const struct graph_buffer *before = graph_contents_find(&r->contents, a->id);
    if (!any(region->read, region->bytes) && !any(region->written, region->bytes))
        return;
    struct graph_touch *t = touch_of(r, index, a);
    if (!t)
        return;
    memcpy(t->read, region->read, (size_t)(region->bytes + 7) / 8);
    memcpy(t->written, region->written, (size_t)(region->bytes + 7) / 8);
    for (uint64_t at = 0; before && at < region->bytes; at++)
        if (bit_get(region->written, at) && bit_get(before->known, at) && region->host[at] != before->host[at])
            t->changed[at / 8] |= (uint8_t)(1u << at % 8);
}

static bool leaves_order_open(struct graph_run *r, uint32_t index)
{
    const struct cap_graph_node *n = r->nodes.items[index];
    const struct model *m = r->verify->model;
    uint64_t kernel;
    if (n->kind != CAP_NODE_KERNEL || !map_get(&m->kernel_index, n->kernel, &kernel))
        return false;
    const struct model_launch like = {.kernel = &m->kernels[kernel]};
    const struct verify_module *module = verify_module_of(r->verify, &like);
    const struct ptx_kernel *k =
        module->module ? ptx_module_find_kernel(reference_module_ptx(module->module), like.kernel->mangled) : NULL;
    return !k || (reference_traits(module->module, k) & REFERENCE_ORDER);
}

void graph_touch_kernel(struct graph_run *r, uint32_t index, const struct verify_memory *memory)
{
    if (!r->branches || r->touches.incomplete || leaves_order_open(r, index))
        return;
    for (size_t i = 0; i < memory->count; i++)
        if (!memory->info[i].freed)
            take_region(r, index, memory, i);
}

void graph_touch_range(struct graph_run *r, uint32_t index, const struct graph_buffer *b, uint64_t offset,
                       uint64_t count, const uint8_t *bytes)
{
    if (!r->branches || r->touches.incomplete)
        return;
    struct graph_touch *t = touch_of(r, index, b->allocation);
    for (uint64_t i = 0; t && i < count; i++) {
        uint64_t at = offset + i;
        uint8_t bit = (uint8_t)(1u << at % 8);
        if (!bytes) {
            t->read[at / 8] |= bit;
            continue;
        }
        t->written[at / 8] |= bit;
        if (bit_get(b->known, at) && b->host[at] != bytes[i])
            t->changed[at / 8] |= bit;
    }
}

/* ---- pairs ---- */

/* The first byte of both that one of them changed; *count: how many there are. */
static uint64_t shared_bytes(const struct graph_touch *x, const struct graph_touch *y, uint64_t bytes, uint64_t *count,
                             bool *both_write)
{
    uint64_t first = UINT64_MAX;
    *count = 0;
    *both_write = false;
    for (uint64_t k = 0; k < (bytes + 7) / 8; k++) {
        uint8_t both = (uint8_t)((y->changed[k] & (x->written[k] | x->read[k])) | (x->changed[k] & y->read[k]));
        if (!both)
            continue;
        *both_write = *both_write || (both & x->written[k] & y->written[k]);
        if (first == UINT64_MAX)
            first = k * 8 + (unsigned)__builtin_ctz(both);
        *count += (unsigned)__builtin_popcount(both);
    }
    return first;
}

static void tell(struct judgement *j, const struct graph_touch *x, const struct graph_touch *y, uint64_t first,
                 uint64_t count, bool both_write)
{
    struct judgement_fault *more = realloc(j->faults, (j->fault_count + 1) * sizeof *more);
    if (!more)
        return;
    j->faults = more;
    struct judgement_fault f = {.kind = JUDGEMENT_FAULT_RACE,
                                .detail = strdup("branches"),
                                .space = strdup("global"),
                                .allocation = x->allocation,
                                .offset = (int64_t)first,
                                .bytes = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count,
                                .count = 1,
                                .threads = 1,
                                .node = x->node + 1,
                                .other_node = y->node + 1};
    f.access.write = both_write || bit_get(x->changed, first);
    f.other.write = both_write || bit_get(y->changed, first);
    if (f.detail && f.space) {
        j->faults[j->fault_count++] = f;
        return;
    }
    free(f.detail);
    free(f.space);
}

void graph_races(struct graph_run *r, struct judgement *j)
{
    struct graph_ancestors a;
    const struct graph_touches *t = &r->touches;
    size_t told = 0;
    if (!r->branches || t->incomplete || r->faulty || !graph_ancestors_make(&r->nodes, &a))
        return;
    for (size_t i = 0; i < t->count; i++)
        for (size_t k = i + 1; k < t->count && told < RACES_TOLD; k++) {
            const struct graph_touch *x = &t->items[i], *y = &t->items[k];
            const struct model_allocation *at = model_allocation_by_id(r->verify->model, x->allocation);
            uint64_t count, first;
            bool both;
            if (x->allocation != y->allocation || x->node == y->node || graph_ordered(&a, x->node, y->node))
                continue;
            first = shared_bytes(x, y, at->bytes, &count, &both);
            if (first != UINT64_MAX) {
                tell(j, x, y, first, count, both);
                told++;
            }
        }
    free(a.bits);
}
