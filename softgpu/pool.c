#include "softgpu/pool.h"

#include <stdlib.h>

#include "softgpu/fault.h"
#include "softgpu/heap.h"
#include "softgpu/memory.h"

struct cached {
    struct allocation memory;
    uint64_t stream;  /* id */
    struct op *freed; /* reference: the point after which anybody may have it */
    struct cached *next;
};
struct pool {
    bool is_default, destroyed;
    uint64_t threshold, max_bytes;
    uint64_t used, used_high, reserved, reserved_high; /* bytes */
    int reuse[3];                                      /* CU_MEMPOOL_ATTR_REUSE_* are kept and have no effect */
    struct cached *cache;
    struct pool *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool default_pool = {.is_default = true, .reuse = {1, 1, 1}};
static struct pool *pools = &default_pool; /* all */
static struct pool *current = &default_pool;
static bool default_known;

static struct pool *the_default(void)
{
    pthread_mutex_lock(&lock);
    if (!default_known)
        default_known = handle_add(&default_pool, HANDLE_POOL);
    pthread_mutex_unlock(&lock);
    return &default_pool;
}

struct pool *pool_current(void)
{
    the_default();
    pthread_mutex_lock(&lock);
    struct pool *p = current;
    pthread_mutex_unlock(&lock);
    return p;
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
    CUresult result = memory_alloc(stream->context, bytes, MEMORY_POOL, p, address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && pool_trim_all())
        result = memory_alloc(stream->context, bytes, MEMORY_POOL, p, address);
    if (result == CUDA_SUCCESS) {
        pthread_mutex_lock(&lock);
        p->reserved += span;
        account(p, span);
        pthread_mutex_unlock(&lock);
    }
    return result;
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
        return CUDA_ERROR_INVALID_VALUE;
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

void pool_reset(void)
{
    pool_trim_all();
    memory_free_all(NULL, 1u << MEMORY_POOL);
    pthread_mutex_lock(&lock);
    for (struct pool *p = pools; p; p = p->next)
        p->used = p->reserved = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- the API ---------------------------------------------------------------------------------------------------- */

static CUresult enter_pool(CUmemoryPool handle, struct pool **out)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    the_default();
    if (handle_of(handle) != HANDLE_POOL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct pool *)handle;
    return CUDA_SUCCESS;
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
    if (!dptr)
        return CUDA_ERROR_INVALID_VALUE;
    *dptr = 0;
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
    return cuMemAllocFromPoolAsync(dptr, bytesize, (CUmemoryPool)pool_current(), hStream);
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
    return dptr ? pool_free(dptr, s) : CUDA_SUCCESS;
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    return cuMemFreeAsync(dptr, per_thread(hStream));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (poolProps->handleTypes || poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return log_unsupported_part("cuMemPoolCreate", "shared handles and places other than the device");
    if (poolProps->location.id != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    struct pool *p = calloc(1, sizeof *p);
    if (!p || !handle_add(p, HANDLE_POOL)) {
        free(p);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->max_bytes = poolProps->maxSize;
    for (int i = 0; i < 3; i++)
        p->reuse[i] = 1;
    pthread_mutex_lock(&lock);
    p->next = pools;
    pools = p;
    pthread_mutex_unlock(&lock);
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
    trim(p, 0);
    if (current == p)
        current = &default_pool;
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

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
    struct pool *p;
    CUresult result = enter_pool(pool, &p);
    if (result == CUDA_SUCCESS && count && !map)
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; result == CUDA_SUCCESS && i < count; i++)
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].location.id != 0 ||
            map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            result = CUDA_ERROR_INVALID_VALUE; /* the device's own access cannot be taken away, others there are none */
    return result;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
    struct pool *p;
    CUresult result = enter_pool(memPool, &p);
    if (result != CUDA_SUCCESS)
        return result;
    if (!flags || !location)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                                : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!pool_out)
        return CUDA_ERROR_INVALID_VALUE;
    if (dev != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *pool_out = (CUmemoryPool)the_default();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    CUresult result = cuDeviceGetDefaultMemPool(pool, dev);
    if (result == CUDA_SUCCESS)
        *pool = (CUmemoryPool)pool_current();
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
    if (dev != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    current = p;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
