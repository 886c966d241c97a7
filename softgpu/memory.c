#include "softgpu/memory.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "softgpu/context.h"
#include "softgpu/heap.h"
#include "softgpu/share.h"

enum { HOST_PAGE = 4096 };
#define HOST_KINDS (1u << MEMORY_MANAGED | 1u << MEMORY_PINNED | 1u << MEMORY_REGISTERED)

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct allocation *records; /* sorted by address, not overlapping */
static size_t record_count, record_capacity;
static uint64_t last_id;

bool memory_init(void)
{
    return pages_init();
}

void memory_lock(void)
{
    pthread_rwlock_wrlock(&lock);
}

void memory_unlock(void)
{
    pthread_rwlock_unlock(&lock);
}

uint64_t memory_new_id(void)
{
    return __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

/* Index of the first record whose address is above `address`. */
static size_t upper_bound(uint64_t address)
{
    size_t low = 0, high = record_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (records[mid].address <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct allocation *record_at(uint64_t address)
{
    size_t i = upper_bound(address);
    if (i == 0)
        return NULL;
    struct allocation *a = &records[i - 1];
    uint64_t bytes = a->bytes ? a->bytes : 1;
    return address - a->address < bytes ? a : NULL;
}

static bool insert_record(const struct allocation *record)
{
    if (record_count == record_capacity) {
        size_t capacity = record_capacity ? record_capacity * 2 : 64;
        struct allocation *more = realloc(records, capacity * sizeof *more);
        if (!more)
            return false;
        records = more;
        record_capacity = capacity;
    }
    size_t at = upper_bound(record->address);
    memmove(records + at + 1, records + at, (record_count - at) * sizeof *records);
    records[at] = *record;
    record_count++;
    return true;
}

static void remove_record(struct allocation *a)
{
    size_t at = (size_t)(a - records);
    memmove(records + at, records + at + 1, (record_count - at - 1) * sizeof *records);
    record_count--;
}

bool memory_record(const struct allocation *record)
{
    memory_lock();
    bool ok = insert_record(record);
    memory_unlock();
    return ok;
}

bool memory_forget(uint64_t address, enum memory_kind kind, struct allocation *out)
{
    memory_lock();
    struct allocation *a = record_at(address);
    bool found = a && a->address == address && a->kind == kind;
    if (found) {
        *out = *a;
        remove_record(a);
        share_retire(out->id); /* a pool may hand the same memory out again */
    }
    memory_unlock();
    return found;
}

bool memory_lookup(uint64_t address, struct allocation *out)
{
    pthread_rwlock_rdlock(&lock);
    const struct allocation *a = record_at(address);
    if (a && out)
        *out = *a;
    pthread_rwlock_unlock(&lock);
    return a != NULL;
}

bool memory_set_sync_memops(uint64_t address, bool value)
{
    memory_lock();
    struct allocation *a = record_at(address);
    if (a)
        a->sync_memops = value;
    memory_unlock();
    return a != NULL;
}

bool memory_next(uint64_t address, uint64_t end, struct allocation *out)
{
    pthread_rwlock_rdlock(&lock);
    size_t i = address ? upper_bound(address - 1) : 0;
    bool found = i < record_count && records[i].address < end;
    if (found)
        *out = records[i];
    pthread_rwlock_unlock(&lock);
    return found;
}

/* ---- taking ----------------------------------------------------------------------------------------------------- */

static uint64_t alloc_pages(unsigned device, uint64_t count)
{
    void **pages = malloc(count * sizeof *pages);
    uint64_t address = pages ? pages_reserve(count, PAGE_BYTES, false, 0) : 0;
    if (address && !pages_take(device, count, pages)) {
        pages_unreserve(address, count);
        address = 0;
    }
    for (uint64_t i = 0; address && i < count; i++)
        pages_map(address + i * PAGE_BYTES, pages[i], PAGE_READ_WRITE, 1u << device);
    free(pages);
    return address;
}

static void free_pages(uint64_t address, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        void *page = pages_unmap(address + i * PAGE_BYTES);
        pages_give(1, &page);
    }
    pages_unreserve(address, count);
}

static void free_device(uint64_t address, uint64_t bytes)
{
    if (bytes <= HEAP_LIMIT)
        heap_free(address, bytes);
    else
        free_pages(address, pages_for(bytes));
}

CUresult memory_alloc(struct context *context, uint64_t bytes, enum memory_kind kind, void *owner, uint64_t *address)
{
    return memory_alloc_on(context->device, context, bytes, kind, owner, address);
}

CUresult memory_alloc_on(unsigned device, struct context *context, uint64_t bytes, enum memory_kind kind, void *owner,
                         uint64_t *address)
{
    struct allocation a = {
        .bytes = bytes, .kind = kind, .context = context, .owner = owner, .device = device, .id = memory_new_id()};
    memory_lock();
    bool fits = pages_for(bytes) <= pages_total_count();
    if (bytes <= HEAP_LIMIT) {
        a.span = (bytes + HEAP_UNIT - 1) / HEAP_UNIT * HEAP_UNIT;
        a.address = heap_alloc(a.device, bytes);
    } else if (fits) {
        a.span = pages_for(bytes) * PAGE_BYTES;
        a.address = alloc_pages(a.device, pages_for(bytes));
    }
    if (a.address && !insert_record(&a)) {
        free_device(a.address, bytes);
        a.address = 0;
    }
    memory_unlock();
    *address = a.address;
    return a.address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult memory_alloc_host(struct context *context, uint64_t bytes, enum memory_kind kind, uint32_t flags,
                           void **pointer)
{
    uint64_t span = (bytes + HOST_PAGE - 1) / HOST_PAGE * HOST_PAGE;
    if (span < bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *p = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct allocation a = {.address = (uintptr_t)p,
                           .bytes = bytes,
                           .span = span,
                           .kind = kind,
                           .flags = flags,
                           .context = context,
                           .device = context ? context->device : 0,
                           .id = memory_new_id()};
    memory_lock();
    bool ok = insert_record(&a);
    memory_unlock();
    if (!ok) {
        munmap(p, span);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = p;
    return CUDA_SUCCESS;
}

/* Whether the host has something mapped in all of these pages. */
static bool host_has(uint64_t address, uint64_t bytes)
{
    unsigned char resident[256];
    uint64_t page = address / HOST_PAGE, left = (address + bytes - 1) / HOST_PAGE - page + 1;
    while (left) {
        uint64_t n = left < sizeof resident ? left : sizeof resident;
        if (mincore((void *)(uintptr_t)(page * HOST_PAGE), n * HOST_PAGE, resident) != 0)
            return false;
        page += n;
        left -= n;
    }
    return true;
}

CUresult memory_register(struct context *context, void *pointer, uint64_t bytes, uint32_t flags)
{
    uint64_t first = (uintptr_t)pointer, last = first + bytes - 1;
    /* Addresses of the device are no memory of the host, although nothing else of the process can lie there. */
    if (last < first || (first < pages_base() + PAGES_WINDOW_BYTES && last >= pages_base()) || !host_has(first, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation a = {.address = (uintptr_t)pointer,
                           .bytes = bytes,
                           .span = bytes,
                           .kind = MEMORY_REGISTERED,
                           .flags = flags,
                           .context = context,
                           .device = context ? context->device : 0,
                           .id = memory_new_id()};
    CUresult result = CUDA_SUCCESS;
    memory_lock();
    size_t next = upper_bound(a.address);
    if (record_at(a.address) || (next < record_count && records[next].address < a.address + bytes))
        result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    else if (!insert_record(&a))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    memory_unlock();
    return result;
}

/* ---- giving back ------------------------------------------------------------------------------------------------ */

/* Mapped for this allocation alone, from the page that holds its first byte on. */
static void release_imported(const struct allocation *a)
{
    uint64_t first = a->address / PAGE_BYTES * PAGE_BYTES;
    void *host = NULL;
    for (uint64_t i = 0; i < a->span; i += PAGE_BYTES) {
        void *page = pages_unmap(first + i);
        host = host ? host : page;
    }
    pages_unreserve(first, a->span / PAGE_BYTES);
    munmap(host, a->span);
}

static void release(const struct allocation *a)
{
    switch (a->kind) {
    case MEMORY_MANAGED:
    case MEMORY_PINNED:
    case MEMORY_ARRAY:
        munmap((void *)(uintptr_t)a->address, a->span);
        break;
    case MEMORY_REGISTERED:
    case MEMORY_GRAPH:   /* likewise, graph_node_memory.c */
    case MEMORY_MAPPING: /* pages belong to the handle: api_vmm.c */
        break;
    case MEMORY_IMPORTED:
        release_imported(a);
        break;
    default:
        share_retire(a->id);
        free_device(a->address, a->bytes);
    }
}

CUresult memory_free(uint64_t address, uint32_t kinds)
{
    memory_lock();
    struct allocation *found = record_at(address), a;
    if (!found || found->address != address || !(kinds >> found->kind & 1)) {
        memory_unlock();
        return CUDA_ERROR_INVALID_VALUE;
    }
    a = *found;
    remove_record(found);
    release(&a);
    memory_unlock();
    return CUDA_SUCCESS;
}

void memory_release(const struct allocation *forgotten)
{
    memory_lock();
    release(forgotten);
    memory_unlock();
}

static void free_all(const struct context *context, unsigned devices, uint32_t kinds)
{
    memory_lock();
    for (size_t i = 0; i < record_count;) {
        struct allocation a = records[i];
        if ((context && a.context != context) || !(devices >> a.device & 1) || !(kinds >> a.kind & 1)) {
            i++;
            continue;
        }
        remove_record(&records[i]);
        release(&a);
    }
    memory_unlock();
}

void memory_free_all(const struct context *context, uint32_t kinds)
{
    free_all(context, UINT_MAX, kinds);
}

void memory_free_device(unsigned device, uint32_t kinds)
{
    free_all(NULL, 1u << device, kinds);
}

void memory_open_to(const struct allocation *a, unsigned reach)
{
    enum page_access access;
    unsigned before;
    memory_lock();
    for (uint64_t at = a->address / PAGE_BYTES * PAGE_BYTES; at < a->address + a->bytes; at += PAGE_BYTES) {
        void *host = pages_mapped(at, &access, &before);
        if (host)
            pages_map(at, host, access, before | reach);
    }
    memory_unlock();
}

void memory_info(unsigned device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    pthread_rwlock_rdlock(&lock);
    *free_bytes = pages_free_count(device) * PAGE_BYTES;
    *total_bytes = pages_total_count() * PAGE_BYTES;
    pthread_rwlock_unlock(&lock);
}

/* ---- access ----------------------------------------------------------------------------------------------------- */

static bool mapped_with(uint64_t address, uint64_t bytes, enum page_access need)
{
    struct pages_run run;
    while (bytes) {
        if (!pages_run(address, &run) || (run.access & need) != need)
            return false;
        uint64_t here = run.address + run.bytes - address;
        if (here >= bytes)
            break;
        address += here;
        bytes -= here;
    }
    return true;
}

bool memory_covers(uint64_t address, uint64_t bytes, bool write)
{
    pthread_rwlock_rdlock(&lock);
    const struct allocation *a = record_at(address);
    bool ok = false;
    if (a && a->kind == MEMORY_MAPPING)
        ok = mapped_with(address, bytes, write ? PAGE_READ_WRITE : PAGE_READ);
    else if (a)
        ok = bytes <= a->bytes - (address - a->address);
    pthread_rwlock_unlock(&lock);
    return ok;
}

char *memory_host(uint64_t address, uint64_t *contiguous)
{
    struct pages_run run;
    if (pages_in_window(address)) {
        if (!pages_run(address, &run))
            return NULL;
        *contiguous = run.address + run.bytes - address;
        return run.host + (address - run.address);
    }
    *contiguous = UINT64_MAX - address;
    return (char *)(uintptr_t)address;
}

void memory_copy(uint64_t to, uint64_t from, uint64_t bytes)
{
    while (bytes) {
        uint64_t to_room = 0, from_room = 0, n = bytes;
        char *t = memory_host(to, &to_room), *f = memory_host(from, &from_room);
        if (!t || !f)
            return;
        n = n < to_room ? n : to_room;
        n = n < from_room ? n : from_room;
        memmove(t, f, n);
        to += n;
        from += n;
        bytes -= n;
    }
}

void memory_fill(uint64_t to, uint32_t value, uint32_t width, uint64_t count)
{
    uint64_t bytes = count * width;
    while (bytes) {
        uint64_t room = 0;
        char *t = memory_host(to, &room);
        if (!t)
            return;
        uint64_t n = bytes < room ? bytes : room;
        if (width == 1) {
            memset(t, (int)(value & 0xff), n);
        } else {
            for (uint64_t i = 0; i < n; i += width)
                memcpy(t + i, &value, width);
        }
        to += n;
        bytes -= n;
    }
}

bool memory_find(void *context, uint64_t address, struct ptx_range *range)
{
    return memory_find_within(UINT_MAX, address, range);
}

bool memory_find_within(unsigned reach, uint64_t address, struct ptx_range *range)
{
    *range = (struct ptx_range){0};
    if (pages_in_window(address)) {
        struct pages_run run;
        if (!pages_run(address, &run) || !(run.access & PAGE_READ) || !(run.reach & reach))
            return false;
        range->address = run.address;
        range->bytes = run.bytes;
        range->host = run.host;
        range->flags = run.access == PAGE_READ ? PTX_RANGE_READ_ONLY : 0;
        return true;
    }
    pthread_rwlock_rdlock(&lock);
    /* Host memory is reachable in whole pages, so look from the end of the page downwards. */
    size_t i = upper_bound(address | (HOST_PAGE - 1));
    bool found = false;
    if (i > 0 && (HOST_KINDS >> records[i - 1].kind & 1)) {
        const struct allocation *a = &records[i - 1];
        uint64_t first = a->address / HOST_PAGE * HOST_PAGE;
        uint64_t end = (a->address + a->bytes + HOST_PAGE - 1) / HOST_PAGE * HOST_PAGE;
        found = address >= first && address < end;
        range->address = first;
        range->bytes = end - first;
        range->host = (void *)(uintptr_t)first;
    }
    pthread_rwlock_unlock(&lock);
    return found;
}
