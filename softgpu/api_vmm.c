/* Virtual memory: reserved ranges, physical memory as handles, and mappings that are really made and unmade. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/context.h"
#include "softgpu/memory.h"
#include "softgpu/share.h"

struct vmm_handle {
    CUmemAllocationProp prop;
    uint64_t count;  /* pages */
    unsigned refs;   /* by the program */
    unsigned mapped; /* mappings */
    bool imported;   /* its pages are a mapping of another process's file */
    int fd;          /* of memory that can be shared, or -1 */
    void *pages[];
};
struct reservation {
    uint64_t address, bytes;
    struct reservation *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before memory's */
static struct reservation *reservations;

static CUresult check_prop(const CUmemAllocationProp *prop)
{
    if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        return log_unsupported_part("cuMemCreate", "handles other than descriptors, places other than the device");
    return device_exists(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!granularity || !prop || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = PAGE_BYTES;
    return CUDA_SUCCESS;
}

/* ---- ranges ----------------------------------------------------------------------------------------------------- */

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!ptr || !size || size % PAGE_BYTES || flags || (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    struct reservation *r = calloc(1, sizeof *r);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memory_lock();
    r->address = pages_reserve(size / PAGE_BYTES, alignment, true, addr);
    memory_unlock();
    if (!r->address) {
        free(r);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r->bytes = size;
    pthread_mutex_lock(&lock);
    r->next = reservations;
    reservations = r;
    pthread_mutex_unlock(&lock);
    *ptr = r->address;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct allocation a;
    pthread_mutex_lock(&lock);
    struct reservation **at = &reservations;
    while (*at && ((*at)->address != ptr || (*at)->bytes != size))
        at = &(*at)->next;
    struct reservation *r = *at;
    if (!r || memory_next(ptr, ptr + size, &a)) {
        result = CUDA_ERROR_INVALID_VALUE; /* not reserved so, or still mapped */
    } else {
        *at = r->next;
        memory_lock();
        pages_unreserve(ptr, size / PAGE_BYTES);
        memory_unlock();
        free(r);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static bool reserved(uint64_t address, uint64_t bytes)
{
    for (struct reservation *r = reservations; r; r = r->next)
        if (address >= r->address && bytes <= r->bytes && address - r->address <= r->bytes - bytes)
            return true;
    return false;
}

/* ---- physical memory -------------------------------------------------------------------------------------------- */

static void destroy(struct vmm_handle *h)
{
    if (h->fd >= 0)
        close(h->fd);
    if (h->imported) {
        munmap(h->pages[0], h->count * PAGE_BYTES);
    } else {
        memory_lock();
        pages_give(h->count, h->pages);
        memory_unlock();
    }
    free(h);
}

static void drop_unused(struct vmm_handle *h)
{
    if (!h->refs && !h->mapped)
        destroy(h);
}

static struct vmm_handle *new_handle(uint64_t count, const CUmemAllocationProp *prop)
{
    struct vmm_handle *h = calloc(1, sizeof *h + count * sizeof *h->pages);
    if (h) {
        h->prop = *prop;
        h->fd = -1;
    }
    return h;
}

/* Takes the pages; with a handle type, in a file from the start. */
static bool take_pages(struct vmm_handle *h, uint64_t count)
{
    unsigned device = (unsigned)h->prop.location.id;
    memory_lock();
    bool ok = pages_take(device, count, h->pages);
    h->count = ok ? count : 0;
    if (ok && h->prop.requestedHandleTypes) {
        uint64_t first;
        int fd = share_pages(device, count, h->pages, &first);
        h->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
        ok = h->fd >= 0;
    }
    memory_unlock();
    return ok;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
                     unsigned long long flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || !size || size % PAGE_BYTES || flags)
        return CUDA_ERROR_INVALID_VALUE;
    result = check_prop(prop);
    if (result != CUDA_SUCCESS)
        return result;
    uint64_t count = size / PAGE_BYTES;
    if (count > pages_total_count())
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct vmm_handle *h = new_handle(count, prop);
    if (!h)
        return CUDA_ERROR_OUT_OF_MEMORY;
    h->refs = take_pages(h, count) && handle_add(h, HANDLE_VMM);
    if (!h->refs) {
        destroy(h);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (uintptr_t)h;
    return CUDA_SUCCESS;
}

unsigned memory_handle_types(const void *vmm_handle)
{
    return ((const struct vmm_handle *)vmm_handle)->prop.requestedHandleTypes;
}

static struct vmm_handle *handle_from(CUmemGenericAllocationHandle handle)
{
    struct vmm_handle *h = (struct vmm_handle *)(uintptr_t)handle;
    return handle_of(h) == HANDLE_VMM ? h : NULL;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    struct vmm_handle *h = handle_from(handle);
    if (!h) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else if (--h->refs == 0) {
        handle_remove(h, HANDLE_VMM);
        drop_unused(h);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    CUresult result = enter();
    struct allocation a;
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    if (!memory_lookup((uintptr_t)addr, &a) || a.kind != MEMORY_MAPPING) {
        result = CUDA_ERROR_INVALID_VALUE;
    } else {
        struct vmm_handle *h = a.owner;
        if (h->refs++ == 0)
            handle_add(h, HANDLE_VMM);
        *handle = (uintptr_t)h;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    const struct vmm_handle *h = handle_from(handle);
    if (prop && h)
        *prop = h->prop;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- between processes ------------------------------------------------------------------------------------------ */

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!shareableHandle || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return log_unsupported_part("cuMemExportToShareableHandle", "handles other than descriptors");
    pthread_mutex_lock(&lock);
    const struct vmm_handle *h = handle_from(handle);
    int fd = -1;
    if (!h || h->fd < 0) /* it must have been made for this */
        result = CUDA_ERROR_INVALID_VALUE;
    else if ((fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 0)) < 0)
        result = CUDA_ERROR_OPERATING_SYSTEM;
    else
        *(int *)shareableHandle = fd;
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                        CUmemAllocationHandleType shHandleType)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return log_unsupported_part("cuMemImportFromShareableHandle", "handles other than descriptors");
    struct share_label label;
    int fd = (int)(intptr_t)osHandle;
    if (!share_read_label(fd, &label) || label.kind != SHARE_MEMORY || !label.pages ||
        !device_exists((CUdevice)label.device))
        return CUDA_ERROR_INVALID_VALUE;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)label.device}};
    struct vmm_handle *h = new_handle(label.pages, &prop);
    if (!h)
        return CUDA_ERROR_OUT_OF_MEMORY;
    char *at = mmap(NULL, label.pages * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        free(h);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (uint64_t i = 0; i < label.pages; i++)
        h->pages[i] = at + i * PAGE_BYTES;
    h->imported = true;
    h->count = label.pages;
    h->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* it can be passed on */
    h->refs = handle_add(h, HANDLE_VMM);
    if (!h->refs) {
        destroy(h);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (uintptr_t)h;
    return CUDA_SUCCESS;
}

/* ---- mappings --------------------------------------------------------------------------------------------------- */

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!size || size % PAGE_BYTES || ptr % PAGE_BYTES || offset || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation a, clash;
    pthread_mutex_lock(&lock);
    struct vmm_handle *h = handle_from(handle);
    if (!h || size / PAGE_BYTES > h->count || !reserved(ptr, size) || memory_lookup(ptr, &clash) ||
        memory_next(ptr, ptr + size, &clash)) {
        pthread_mutex_unlock(&lock);
        return CUDA_ERROR_INVALID_VALUE;
    }
    a = (struct allocation){.address = ptr,
                            .bytes = size,
                            .span = size,
                            .kind = MEMORY_MAPPING,
                            .owner = h,
                            .device = (unsigned)h->prop.location.id,
                            .id = memory_new_id()};
    if (memory_record(&a)) {
        h->mapped++;
        memory_lock();
        for (uint64_t i = 0; i < size / PAGE_BYTES; i++)
            pages_map(ptr + i * PAGE_BYTES, h->pages[i], PAGE_NO_ACCESS, 0);
        memory_unlock();
    } else {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Whether [ptr, ptr + size) is made of whole mappings, without gaps when `dense`. */
static bool whole_mappings(uint64_t ptr, uint64_t size, bool dense)
{
    struct allocation a;
    uint64_t at = ptr;
    bool any = false;
    while (memory_next(at, ptr + size, &a)) {
        if (a.kind != MEMORY_MAPPING || a.address + a.bytes > ptr + size || (dense && a.address != at))
            return false;
        at = a.address + a.bytes;
        any = true;
    }
    return any && (!dense || at == ptr + size) && !(memory_lookup(ptr, &a) && a.address != ptr);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult result = enter();
    if (result == CUDA_SUCCESS)
        result =
            size && size % PAGE_BYTES == 0 && ptr % PAGE_BYTES == 0 ? engine_wait_device() : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    struct allocation a, gone;
    pthread_mutex_lock(&lock);
    if (!whole_mappings(ptr, size, false))
        result = CUDA_ERROR_INVALID_VALUE;
    while (result == CUDA_SUCCESS && memory_next(ptr, ptr + size, &a)) {
        struct vmm_handle *h = a.owner;
        memory_lock();
        for (uint64_t at = a.address; at < a.address + a.bytes; at += PAGE_BYTES)
            pages_unmap(at);
        memory_unlock();
        memory_forget(a.address, MEMORY_MAPPING, &gone);
        h->mapped--;
        drop_unused(h);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static bool page_access_from(CUmemAccess_flags flags, enum page_access *access)
{
    switch (flags) {
    case CU_MEM_ACCESS_FLAGS_PROT_NONE:
        *access = PAGE_NO_ACCESS;
        return true;
    case CU_MEM_ACCESS_FLAGS_PROT_READ:
        *access = PAGE_READ;
        return true;
    case CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
        *access = PAGE_READ_WRITE;
        return true;
    default:
        return false;
    }
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    CUresult result = enter();
    enum page_access access = PAGE_NO_ACCESS;
    unsigned given = 0, taken = 0;
    if (result != CUDA_SUCCESS)
        return result;
    if (!size || size % PAGE_BYTES || ptr % PAGE_BYTES || !desc || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return log_unsupported_part("cuMemSetAccess", "access by the host");
        enum page_access one;
        if (!device_exists(desc[i].location.id))
            return CUDA_ERROR_INVALID_DEVICE;
        if (!page_access_from(desc[i].flags, &one))
            return CUDA_ERROR_INVALID_VALUE;
        /* Each device has access or not; what kind of access is the same for all that have. */
        *(one == PAGE_NO_ACCESS ? &taken : &given) |= 1u << desc[i].location.id;
        if (one != PAGE_NO_ACCESS)
            access = one;
    }
    pthread_mutex_lock(&lock);
    memory_lock();
    enum page_access before;
    unsigned reach;
    for (uint64_t at = ptr; at < ptr + size && result == CUDA_SUCCESS; at += PAGE_BYTES)
        if (!pages_in_window(at) || !reserved(at, PAGE_BYTES) || !pages_mapped(at, &before, &reach))
            result = CUDA_ERROR_INVALID_VALUE;
    for (uint64_t at = ptr; at < ptr + size && result == CUDA_SUCCESS; at += PAGE_BYTES) {
        void *host = pages_mapped(at, &before, &reach);
        reach = (reach & ~taken) | given;
        pages_map(at, host, !reach ? PAGE_NO_ACCESS : given ? access : before, reach);
    }
    memory_unlock();
    pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
    CUresult result = enter();
    struct allocation a;
    enum page_access access;
    if (result != CUDA_SUCCESS)
        return result;
    if (!flags || !location || !memory_lookup(ptr, &a) || a.kind != MEMORY_MAPPING)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned reach;
    pages_mapped(ptr / PAGE_BYTES * PAGE_BYTES, &access, &reach);
    bool device =
        location->type == CU_MEM_LOCATION_TYPE_DEVICE && device_exists(location->id) && reach >> location->id & 1;
    *flags = !device || access == PAGE_NO_ACCESS ? CU_MEM_ACCESS_FLAGS_PROT_NONE
             : access == PAGE_READ               ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                 : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}
