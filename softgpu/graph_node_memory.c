/* Memory nodes. An allocation has its address from the moment its node is made, its memory from the first launch or
 * upload until cuDeviceGraphMemTrim(), and is known to the program ("live") from a launch until it is freed. As with
 * stream-ordered allocation, that is bookkeeping of the call; the order of the work itself comes from the graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/graph.h"
#include "softgpu/memory.h"

struct graph_block {
    atomic_uint refs; /* of works, operations under way, and one while it is live */
    uint64_t address, bytes, pages;
    uint64_t freed_in; /* id of the graph with the free node, or 0 */
    struct context *context;
    unsigned device;
    bool backed, live;
    struct op *last; /* reference: the newest launch that uses it */
    struct graph_block *next;
};
struct block_change {
    struct graph_block *block; /* reference */
    bool allocated;            /* else freed */
};

/* After graph_lock(), before memory_lock(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct graph_block *blocks;
/* Of each device: bytes by CUgraphMem_attribute, each high watermark after its present value. */
static uint64_t counts[PAGE_DEVICES][CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH + 1];

static uint64_t span(const struct graph_block *b)
{
    return b->pages * PAGE_BYTES;
}

static void count(unsigned device, CUgraphMem_attribute now, uint64_t bytes, bool more)
{
    uint64_t *c = &counts[device][now];
    c[0] = more ? c[0] + bytes : c[0] - bytes;
    if (c[0] > c[1])
        c[1] = c[0];
}

/* "Used" is what graphs have mapped, and so not less when an allocation is freed, only when its memory is taken. Here
 * no two graphs share memory: all that is reserved is mapped by one. */
static void count_mapped(const struct graph_block *b, bool more)
{
    count(b->device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, span(b), more);
    count(b->device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, span(b), more);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

static void unback(struct graph_block *b)
{
    if (!b->backed)
        return;
    memory_lock();
    for (uint64_t i = 0; i < b->pages; i++) {
        void *page = pages_unmap(b->address + i * PAGE_BYTES);
        pages_give(1, &page);
    }
    memory_unlock();
    b->backed = false;
    count_mapped(b, false);
}

static CUresult back(struct graph_block *b)
{
    if (b->backed)
        return CUDA_SUCCESS;
    void **pages = malloc(b->pages * sizeof *pages);
    if (!pages)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory_lock();
    b->backed = pages_take(b->device, b->pages, pages);
    for (uint64_t i = 0; b->backed && i < b->pages; i++)
        pages_map(b->address + i * PAGE_BYTES, pages[i], PAGE_READ_WRITE, 1u << b->device);
    memory_unlock();
    free(pages);
    if (!b->backed)
        return CUDA_ERROR_OUT_OF_MEMORY;
    count_mapped(b, true);
    return CUDA_SUCCESS;
}

static struct graph_block *block_new(struct context *context, unsigned device, uint64_t bytes)
{
    struct graph_block *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    atomic_init(&b->refs, 1);
    b->bytes = bytes;
    b->pages = pages_for(bytes);
    b->context = context;
    b->device = device;
    memory_lock();
    if (b->pages <= pages_total_count())
        b->address = pages_reserve(b->pages, PAGE_BYTES, false, 0);
    memory_unlock();
    if (!b->address) {
        free(b);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    b->next = blocks;
    blocks = b;
    pthread_mutex_unlock(&lock);
    return b;
}

struct graph_block *graph_block_ref(struct graph_block *block)
{
    if (block)
        atomic_fetch_add(&block->refs, 1);
    return block;
}

/* Needs the lock. */
static void unref(struct graph_block *b)
{
    if (!b || atomic_fetch_sub(&b->refs, 1) != 1)
        return;
    for (struct graph_block **p = &blocks; *p; p = &(*p)->next)
        if (*p == b) {
            *p = b->next;
            break;
        }
    unback(b);
    memory_lock();
    pages_unreserve(b->address, b->pages);
    memory_unlock();
    op_unref(b->last);
    free(b);
}

void graph_block_unref(struct graph_block *block)
{
    pthread_mutex_lock(&lock);
    unref(block);
    pthread_mutex_unlock(&lock);
}

/* The block that starts at an address, or that holds it. Needs the lock. */
static struct graph_block *find(uint64_t address, bool inside)
{
    for (struct graph_block *b = blocks; b; b = b->next)
        if (inside ? address - b->address < span(b) : address == b->address)
            return b;
    return NULL;
}

static CUresult revive(struct graph_block *b)
{
    if (b->live)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = back(b);
    struct allocation a = {.address = b->address,
                           .bytes = b->bytes,
                           .span = span(b),
                           .kind = MEMORY_GRAPH,
                           .device = b->device,
                           .id = memory_new_id(),
                           .context = b->context};
    if (result == CUDA_SUCCESS && !memory_record(&a))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS)
        return result;
    b->live = true;
    graph_block_ref(b);
    return CUDA_SUCCESS;
}

static CUresult bury(struct graph_block *b)
{
    struct allocation a;
    if (!b || !b->live)
        return CUDA_ERROR_INVALID_VALUE;
    memory_forget(b->address, MEMORY_GRAPH, &a);
    b->live = false;
    unref(b);
    return CUDA_SUCCESS;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

static CUresult alloc_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    CUDA_MEM_ALLOC_NODE_PARAMS_v2 p = params->alloc;
    struct context *c;
    if (work->kind || graph->owned)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!p.bytesize || p.poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || p.accessDescCount > 1 ||
        (p.accessDescCount && !p.accessDescs))
        return CUDA_ERROR_INVALID_VALUE;
    if (p.poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE || p.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = work_context(NULL, &c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!device_exists(p.poolProps.location.id) || (p.accessDescCount && !device_exists(p.accessDescs->location.id)))
        return CUDA_ERROR_INVALID_VALUE;
    CUmemAccessDesc *access = p.accessDescCount ? malloc(sizeof *access) : NULL;
    struct graph_block *b =
        p.accessDescCount && !access ? NULL : block_new(c, (unsigned)p.poolProps.location.id, p.bytesize);
    if (!b) {
        free(access);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (access)
        *access = *p.accessDescs;
    p.accessDescs = access;
    p.dptr = params->alloc.dptr = b->address;
    work->params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = p};
    work->context = c;
    work->block = b;
    return CUDA_SUCCESS;
}

static CUresult free_set(struct work *work, CUgraphNodeParams *params, struct graph *graph)
{
    if (work->kind || graph->owned)
        return CUDA_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&lock);
    struct graph_block *b = find(params->free.dptr, false);
    bool ok = b && !b->freed_in;
    if (ok) {
        b->freed_in = graph->id;
        work->block = graph_block_ref(b);
    }
    pthread_mutex_unlock(&lock);
    if (!ok)
        return CUDA_ERROR_INVALID_VALUE;
    work->params = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = params->free};
    work->claims = true;
    return CUDA_SUCCESS;
}

static CUresult memory_copy_work(struct work *to, const struct work *from, bool visible)
{
    if (from->kind == &work_alloc && from->params.alloc.accessDescs) {
        CUmemAccessDesc *access = malloc(sizeof *access);
        if (!access)
            return CUDA_ERROR_OUT_OF_MEMORY;
        *access = *from->params.alloc.accessDescs;
        to->params.alloc.accessDescs = access;
    }
    to->claims = false;
    graph_block_ref(to->block);
    return CUDA_SUCCESS;
}

static void memory_clear(struct work *work)
{
    if (work->kind == &work_alloc)
        free((void *)work->params.alloc.accessDescs);
    pthread_mutex_lock(&lock);
    if (work->claims)
        work->block->freed_in = 0;
    unref(work->block);
    pthread_mutex_unlock(&lock);
}

/* Notes the change, so that the block outlives the launch and a launch that fails can be undone. Needs the lock. */
static CUresult note(struct steps *steps, struct graph_block *b, bool allocated)
{
    if (steps->change_count == steps->change_capacity) {
        size_t capacity = steps->change_capacity ? steps->change_capacity * 2 : 8;
        struct block_change *more = realloc(steps->changes, capacity * sizeof *more);
        if (!more)
            return CUDA_ERROR_OUT_OF_MEMORY;
        steps->changes = more;
        steps->change_capacity = capacity;
    }
    steps->changes[steps->change_count++] = (struct block_change){graph_block_ref(b), allocated};
    return CUDA_SUCCESS;
}

static CUresult memory_step(const struct work *work, struct steps *steps)
{
    bool allocate = work->kind == &work_alloc;
    pthread_mutex_lock(&lock);
    CUresult result = note(steps, work->block, allocate);
    if (result == CUDA_SUCCESS && (result = allocate ? revive(work->block) : bury(work->block)) != CUDA_SUCCESS)
        unref(steps->changes[--steps->change_count].block);
    pthread_mutex_unlock(&lock);
    return result;
}

void graph_memory_undo(struct steps *steps)
{
    pthread_mutex_lock(&lock);
    for (size_t i = steps->change_count; i-- > 0;)
        if (steps->changes[i].allocated)
            bury(steps->changes[i].block);
        else
            revive(steps->changes[i].block);
    pthread_mutex_unlock(&lock);
}

void graph_memory_used_by(const struct steps *steps, struct op *op)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < steps->change_count; i++) {
        struct graph_block *b = steps->changes[i].block;
        struct op *before = b->last;
        b->last = op_ref(op);
        op_unref(before);
    }
    pthread_mutex_unlock(&lock);
}

void graph_memory_drop(struct steps *steps)
{
    for (size_t i = 0; i < steps->change_count; i++)
        graph_block_unref(steps->changes[i].block);
    free(steps->changes);
}

static CUgraphExecUpdateResult memory_change(const struct work *old, const struct work *new)
{
    return old->block == new->block ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
}

static void memory_print(const struct work *work, void *file)
{
    fprintf(file, "%zu bytes at %#llx", (size_t)work->block->bytes, (unsigned long long)work->block->address);
}

const struct work_kind work_alloc = {
    .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
    .name = "MEM_ALLOC",
    .set = alloc_set,
    .copy = memory_copy_work,
    .clear = memory_clear,
    .make = memory_step,
    .change = memory_change,
    .print = memory_print,
};
const struct work_kind work_free = {
    .type = CU_GRAPH_NODE_TYPE_MEM_FREE,
    .name = "MEM_FREE",
    .set = free_set,
    .copy = memory_copy_work,
    .clear = memory_clear,
    .make = memory_step,
    .change = memory_change,
    .print = memory_print,
};

/* ---- seen from outside ------------------------------------------------------------------------------------------ */

bool graph_memory_owns(uint64_t address)
{
    pthread_mutex_lock(&lock);
    bool found = find(address, true) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Memory that a graph frees itself is not the program's to free. */
CUresult graph_memory_free(uint64_t address)
{
    pthread_mutex_lock(&lock);
    struct graph_block *b = find(address, false);
    CUresult result = bury(b);
    pthread_mutex_unlock(&lock);
    return result;
}

typedef CUresult (*block_action)(struct graph_block *b);

/* For all allocations that nodes of the graph make, child graphs included. */
static CUresult each_block(const struct graph *graph, block_action action)
{
    CUresult result = CUDA_SUCCESS;
    for (const struct node *n = graph->first; n && result == CUDA_SUCCESS; n = n->next) {
        if (n->work.kind == &work_alloc) {
            pthread_mutex_lock(&lock);
            result = action(n->work.block);
            pthread_mutex_unlock(&lock);
        }
        for (size_t i = 0; i < n->work.body_count && result == CUDA_SUCCESS; i++)
            result = each_block(n->work.bodies[i], action);
    }
    return result;
}

static CUresult refuse_live(struct graph_block *b)
{
    return b->live ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult bury_live(struct graph_block *b)
{
    return b->live ? bury(b) : CUDA_SUCCESS;
}

bool graph_memory_live(const struct graph *graph)
{
    return each_block(graph, refuse_live) != CUDA_SUCCESS;
}

void graph_memory_free_live(const struct graph *graph)
{
    each_block(graph, bury_live);
}

CUresult graph_memory_back(const struct graph *graph)
{
    return each_block(graph, back);
}

void graph_memory_reset(const struct context *context)
{
    pthread_mutex_lock(&lock);
    for (struct graph_block *b = blocks, *next; b; b = next) {
        next = b->next;
        if (b->context == context)
            bury(b);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- the API ---------------------------------------------------------------------------------------------------- */

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    for (struct graph_block *b = blocks; b; b = b->next)
        if (b->device == (unsigned)device && !b->live && !(b->last && !atomic_load(&b->last->done)))
            unback(b);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || (unsigned)attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    memcpy(value, &counts[device][attr], sizeof(cuuint64_t));
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* The high watermarks can be set to zero, from where they follow the present value. */
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    bool high = attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (!value || !high || *(const cuuint64_t *)value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    counts[device][attr] = counts[device][attr - 1];
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
