#include "softgpu/pool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/capture.h"
#include "softgpu/fault.h"
#include "softgpu/graph.h"
#include "softgpu/heap.h"
#include "softgpu/ipc.h"

struct cached {
    struct allocation memory;
    uint64_t stream;  /* id */
    struct op *freed; /* reference: the point after which anybody may have it */
    struct cached *next;
};
struct pool {
    bool is_default, destroyed, imported;
    unsigned device, reach; /* bits of other devices that may use its memory */
    CUmemAllocationHandleType handle_type;
    int fd; /* of a pool that can be shared, or was imported; or -1 */
    struct share_label *label;
    uint64_t threshold, max_bytes;
    uint64_t used, used_high, reserved, reserved_high; /* bytes */
    int reuse[3];                                      /* CU_MEMPOOL_ATTR_REUSE_* are kept and have no effect */
    struct cached *cache;
    struct pool *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool default_pools[PAGE_DEVICES];
static struct pool *pools; /* all */
static struct pool *current[PAGE_DEVICES];

static struct pool *the_default(unsigned device)
{
    struct pool *p = &default_pools[device];
    pthread_mutex_lock(&lock);
    if (!p->is_default && handle_add(p, HANDLE_POOL)) {
        *p = (struct pool){.is_default = true, .device = device, .fd = -1, .reuse = {1, 1, 1}, .next = pools};
        pools = current[device] = p;
    }
    pthread_mutex_unlock(&lock);
    return p;
}

struct pool *pool_current(unsigned device)
{
    the_default(device);
    pthread_mutex_lock(&lock);
    struct pool *p = current[device];
    pthread_mutex_unlock(&lock);
    return p;
}

unsigned pool_handle_types(const struct pool *p)
{
    return p->handle_type;
}

static uint64_t span_of(uint64_t bytes)
{
    uint64_t unit = bytes <= HEAP_LIMIT ? HEAP_UNIT : PAGE_BYTES;
    return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
}

static void account(struct pool *p, uint64_t bytes)
{
    p->used += bytes;
    if (p->used > p->used_high)
        p->used_high = p->used;
    if (p->reserved > p->reserved_high)
        p->reserved_high = p->reserved;
}

/* Takes a cached block of exactly that span which the stream may use now. */
static struct cached *take_cached(struct pool *p, uint64_t span, uint64_t stream)
{
    for (struct cached **at = &p->cache; *at; at = &(*at)->next) {
        struct cached *c = *at;
        if (c->memory.span == span && (c->stream == stream || atomic_load(&c->freed->done))) {
            *at = c->next;
            return c;
        }
    }
    return NULL;
}

static void drop_cached(struct cached *c)
{
    op_unref(c->freed);
    free(c);
}

CUresult pool_alloc(struct pool *p, struct stream *stream, uint64_t bytes, uint64_t *address)
{
    uint64_t span = span_of(bytes);
    pthread_mutex_lock(&lock);
    struct cached *c = take_cached(p, span, stream->id);
    if (c) {
        account(p, span);
        pthread_mutex_unlock(&lock);
        struct allocation a = c->memory;
        a.bytes = bytes;
        a.id = memory_new_id();
        a.context = stream->context;
        drop_cached(c);
        *address = a.address;
        return memory_record(&a) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    bool full = p->max_bytes && p->used + span > p->max_bytes;
    pthread_mutex_unlock(&lock);
    if (full)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = memory_alloc_on(p->device, stream->context, bytes, MEMORY_POOL, p, address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && pool_trim_all())
        result = memory_alloc_on(p->device, stream->context, bytes, MEMORY_POOL, p, address);
    if (result == CUDA_SUCCESS) {
        pthread_mutex_lock(&lock);
        p->reserved += span;
        account(p, span);
        unsigned reach = p->reach;
        pthread_mutex_unlock(&lock);
        struct allocation a;
        if (reach && memory_lookup(*address, &a))
            memory_open_to(&a, reach);
    }
    return result;
}

struct imported_op {
    struct op op;
    struct allocation memory;
};

static void run_free_imported(struct op *op)
{
    memory_release(&((struct imported_op *)op)->memory);
}

/* Memory of another process's pool goes when the stream gets there. */
static CUresult free_imported(uint64_t address, struct stream *stream)
{
    struct imported_op *o = op_new(sizeof *o, run_free_imported, NULL);
    struct allocation a;
    if (!o)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!memory_lookup(address, &a) || !a.owner || !memory_forget(address, MEMORY_IMPORTED, &o->memory)) {
        op_unref(&o->op);
        return CUDA_ERROR_INVALID_VALUE;
    }
    o->op.always = true;
    return engine_submit_and_forget(stream, &o->op);
}

CUresult pool_free(uint64_t address, struct stream *stream)
{
    struct cached *c = calloc(1, sizeof *c);
    struct op *marker = op_new(sizeof *marker, NULL, NULL);
    if (!c || !marker) {
        free(c);
        op_unref(marker);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!memory_forget(address, MEMORY_POOL, &c->memory)) {
        free(c);
        op_unref(marker);
        return free_imported(address, stream);
    }
    CUresult result = engine_submit(stream, marker);
    c->stream = stream->id;
    c->freed = marker;
    struct pool *p = c->memory.owner;
    pthread_mutex_lock(&lock);
    p->used -= c->memory.span;
    c->next = p->cache;
    p->cache = c;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult pool_free_now(uint64_t address)
{
    struct allocation a;
    if (!memory_forget(address, MEMORY_POOL, &a))
        return CUDA_ERROR_INVALID_VALUE;
    struct pool *p = a.owner;
    pthread_mutex_lock(&lock);
    p->used -= a.span;
    p->reserved -= a.span;
    pthread_mutex_unlock(&lock);
    memory_release(&a);
    return CUDA_SUCCESS;
}

/* Gives back cached blocks that nothing uses while more than `keep` bytes are reserved. Needs the lock. */
static bool trim(struct pool *p, uint64_t keep)
{
    bool any = false;
    for (struct cached **at = &p->cache; *at && p->reserved > keep;) {
        struct cached *c = *at;
        if (!atomic_load(&c->freed->done)) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        p->reserved -= c->memory.span;
        memory_release(&c->memory);
        drop_cached(c);
        any = true;
    }
    return any;
}

void pool_trim_idle(void)
{
    pthread_mutex_lock(&lock);
    for (struct pool *p = pools; p; p = p->next)
        trim(p, p->destroyed ? 0 : p->threshold);
    pthread_mutex_unlock(&lock);
}

bool pool_trim_all(void)
{
    bool any = false;
    if (engine_wait_device() != CUDA_SUCCESS)
        return false;
    pthread_mutex_lock(&lock);
    for (struct pool *p = pools; p; p = p->next)
        any |= trim(p, 0);
    pthread_mutex_unlock(&lock);
    return any;
}

void pool_reset(unsigned device)
{
    pool_trim_all();
    memory_free_device(device, 1u << MEMORY_POOL);
    pthread_mutex_lock(&lock);
    for (struct pool *p = pools; p; p = p->next)
        if (p->device == device)
            p->used = p->reserved = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- the API ---------------------------------------------------------------------------------------------------- */

static CUresult enter_pool(CUmemoryPool handle, struct pool **out)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    for (unsigned i = 0; i < config_get()->devices; i++)
        the_default(i);
    if (handle_of(handle) != HANDLE_POOL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct pool *)handle;
    return CUDA_SUCCESS;
}

/* In a captured stream an allocation becomes a node; its memory is the graph's, not the pool's. */
static CUresult capture_alloc(struct stream *s, uint64_t bytes, CUdeviceptr *dptr)
{
    CUgraphNodeParams params = {
        .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        .alloc = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, (int)s->context->device}},
                  .bytesize = bytes}};
    CUresult result = capture_add(s, &params, NULL, 0);
    if (result == CUDA_SUCCESS)
        *dptr = params.alloc.dptr;
    return result;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
    struct context *c;
    struct stream *s;
    struct pool *p;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = enter_pool(pool, &p);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!dptr || p->imported)
        return CUDA_ERROR_INVALID_VALUE;
    *dptr = 0;
    bool captured;
    result = capture_enter(s, false, &captured);
    if (result == CUDA_SUCCESS && captured && bytesize)
        return capture_alloc(s, bytesize, dptr);
    if (result != CUDA_SUCCESS)
        return result;
    if (!bytesize)
        return CUDA_SUCCESS; /* a null pointer, as documented for stream-ordered allocation */
    if (fault_on_alloc("cuMemAllocAsync"))
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t address;
    result = pool_alloc(p, s, bytesize, &address);
    if (result == CUDA_SUCCESS)
        *dptr = address;
    return result;
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
    return cuMemAllocFromPoolAsync(dptr, bytesize, pool, per_thread(hStream));
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    struct context *c;
    struct stream *s;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    return cuMemAllocFromPoolAsync(dptr, bytesize, (CUmemoryPool)pool_current(s->context->device), hStream);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return cuMemAllocAsync(dptr, bytesize, per_thread(hStream));
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    struct context *c;
    struct stream *s;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = context_stream(c, hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    bool captured;
    result = capture_enter(s, false, &captured);
    if (result != CUDA_SUCCESS || !dptr)
        return result;
    if (captured) {
        CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {dptr}};
        return capture_add(s, &params, NULL, 0);
    }
    return graph_memory_owns(dptr) ? graph_memory_free(dptr) : pool_free(dptr, s);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    return cuMemFreeAsync(dptr, per_thread(hStream));
}

static struct pool *new_pool(unsigned device)
{
    struct pool *p = calloc(1, sizeof *p);
    if (!p || !handle_add(p, HANDLE_POOL)) {
        free(p);
        return NULL;
    }
    p->device = device;
    p->fd = -1;
    for (int i = 0; i < 3; i++)
        p->reuse[i] = 1;
    pthread_mutex_lock(&lock);
    p->next = pools;
    pools = p;
    pthread_mutex_unlock(&lock);
    return p;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if ((poolProps->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ||
        poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return log_unsupported_part("cuMemPoolCreate", "handles other than descriptors, places other than the device");
    if (!device_exists(poolProps->location.id))
        return CUDA_ERROR_INVALID_VALUE;
    struct pool *p = new_pool((unsigned)poolProps->location.id);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->max_bytes = poolProps->maxSize;
    p->handle_type = poolProps->handleTypes;
    *pool = (CUmemoryPool)p;
    return CUDA_SUCCESS;
}

/* Memory still in use keeps the pool alive inside; only the handle goes. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    struct pool *p;
    CUresult result = enter_pool(pool, &p);
    if (result != CUDA_SUCCESS)
        return result;
    if (p->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    handle_remove(p, HANDLE_POOL);
    pthread_mutex_lock(&lock);
    p->destroyed = true;
    if (p->fd >= 0)
        close(p->fd);
    if (p->label)
        munmap(p->label, SHARE_LABEL_BYTES);
    p->fd = -1;
    p->label = NULL;
    trim(p, 0);
    for (unsigned i = 0; i < PAGE_DEVICES; i++)
        if (current[i] == p)
            current[i] = &default_pools[i];
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
    struct pool *p;
    CUresult result = enter_pool(pool, &p);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    trim(p, minBytesToKeep);
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct pool *p;
    CUresult result = enter_pool(pool, &p);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    switch ((int)attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        p->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(const int *)value;
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        p->threshold = *(const cuuint64_t *)value;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        /* The high marks can only be reset. */
        if (*(const cuuint64_t *)value)
            result = CUDA_ERROR_INVALID_VALUE;
        else if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            p->used_high = p->used;
        else
            p->reserved_high = p->reserved;
        break;
    default:
        result = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
    struct pool *p;
    CUresult result = enter_pool(pool, &p);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    switch ((int)attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = p->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
        break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = p->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        *(cuuint64_t *)value = p->reserved;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        *(cuuint64_t *)value = p->reserved_high;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = p->used;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = p->used_high;
        break;
    default:
        result = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* The pool's own device always has access; that of others is kept for new memory and given to what there is. */
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    struct pool *p;
    CUresult result = enter_pool(pool, &p);
    if (result == CUDA_SUCCESS && count && !map)
        result = CUDA_ERROR_INVALID_VALUE;
    unsigned given = 0, taken = 0;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
        bool own = map[i].location.id == (int)p->device, none = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || (own && none) ||
            (!none && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
            result = CUDA_ERROR_INVALID_VALUE;
        else if (!device_exists(map[i].location.id))
            result = CUDA_ERROR_INVALID_DEVICE;
        else
            *(none ? &taken : &given) |= own ? 0 : 1u << map[i].location.id;
    }
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    p->reach = (p->reach & ~taken) | given;
    pthread_mutex_unlock(&lock);
    struct allocation a;
    for (uint64_t at = 0; given && memory_next(at, UINT64_MAX, &a); at = a.address + 1)
        if (a.kind == MEMORY_POOL && a.owner == p)
            memory_open_to(&a, given);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
    struct pool *p;
    CUresult result = enter_pool(memPool, &p);
    if (result != CUDA_SUCCESS)
        return result;
    if (!flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE && device_exists(location->id);
    pthread_mutex_lock(&lock);
    *flags = device && (p->reach | 1u << p->device) >> location->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                        : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!pool_out)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_exists(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    *pool_out = (CUmemoryPool)the_default((unsigned)dev);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    CUresult result = cuDeviceGetDefaultMemPool(pool, dev);
    if (result == CUDA_SUCCESS)
        *pool = (CUmemoryPool)pool_current((unsigned)dev);
    return result;
}

static CUresult check_place(const CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = enter();
    if (result == CUDA_SUCCESS && (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        result = log_unsupported_part("cuMemGetMemPool", "places other than the device");
    return result;
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = check_place(location, type);
    return result == CUDA_SUCCESS ? cuDeviceGetDefaultMemPool(pool_out, location->id) : result;
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
    CUresult result = check_place(location, type);
    return result == CUDA_SUCCESS ? cuDeviceGetMemPool(pool, location->id) : result;
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    CUresult result = check_place(location, type);
    return result == CUDA_SUCCESS ? cuDeviceSetMemPool(location->id, pool) : result;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
    struct pool *p;
    CUresult result = enter_pool(pool, &p);
    if (result != CUDA_SUCCESS)
        return result;
    if (!device_exists(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    if (p->imported || p->device != (unsigned)dev)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    current[dev] = p;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* ---- between processes: a pool's file has no pages, only its label; memory is exported allocation by allocation ---
 */

CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType,
                                          unsigned long long flags)
{
    struct pool *p;
    CUresult result = enter_pool(pool, &p);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || p->handle_type != handleType)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (p->fd < 0)
        p->fd = share_create(SHARE_POOL, p->device, 0, &p->label);
    int fd = p->fd < 0 ? -1 : fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
    pthread_mutex_unlock(&lock);
    if (fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *(int *)handle_out = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType,
                                            unsigned long long flags)
{
    struct share_label label;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    int from = (int)(intptr_t)handle;
    if (!pool_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        !share_read_label(from, &label) || label.kind != SHARE_POOL || !device_exists((CUdevice)label.device))
        return CUDA_ERROR_INVALID_VALUE;
    struct share_label *page = mmap(NULL, SHARE_LABEL_BYTES, PROT_READ, MAP_SHARED, from, 0);
    struct pool *p = page == MAP_FAILED ? NULL : new_pool(label.device);
    if (!p)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->imported = true;
    p->label = page;
    *pool_out = (CUmemoryPool)p;
    return CUDA_SUCCESS;
}

/* The kind of a handle names the pool, too: the importer must name the same. */
static uint32_t kind_in(const struct pool *p)
{
    return SHARE_MEMORY | (uint32_t)(p->label->id << 8);
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
    struct allocation a;
    struct share_handle h;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!shareData_out || !memory_lookup(ptr, &a) || a.kind != MEMORY_POOL)
        return CUDA_ERROR_INVALID_VALUE;
    const struct pool *p = a.owner;
    if (!p->label || p->imported) /* the pool was not shared yet */
        return CUDA_ERROR_INVALID_VALUE;
    result = ipc_export(&a, &h);
    if (result != CUDA_SUCCESS)
        return result;
    h.kind = kind_in(p);
    memset(shareData_out, 0, sizeof *shareData_out);
    memcpy(shareData_out, &h, sizeof h);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
    struct context *c;
    struct pool *p;
    struct share_handle h;
    uint64_t address;
    CUresult result = enter_context(&c);
    if (result == CUDA_SUCCESS)
        result = enter_pool(pool, &p);
    if (result != CUDA_SUCCESS)
        return result;
    if (!ptr_out || !shareData || !p->imported)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&h, shareData, sizeof h);
    if (h.kind != kind_in(p) || !h.export_)
        return CUDA_ERROR_INVALID_VALUE;
    h.kind = SHARE_MEMORY;
    result = ipc_import(c, p, &h, &address);
    if (result == CUDA_SUCCESS)
        *ptr_out = address;
    return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
}
