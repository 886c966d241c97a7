/* wrap_memory.c - allocations and frees of every kind. */
#include <stdlib.h>

#include <opsdebug/capture.h>

#include "shim/alloc_table.h"
#include "shim/bad_free.h"
#include "shim/call.h"
#include "shim/capture_write.h"
#include "shim/driver.h"
#include "shim/guard.h"
#include "shim/health.h"
#include "shim/intern.h"
#include "shim/options.h"
#include "shim/poison.h"
#include "shim/quarantine.h"
#include "shim/record.h"
#include "shim/reserve.h"
#include "shim/sentinel.h"
#include "shim/snapshot.h"
#include "shim/touch.h"
#include "shim/track.h"

/* Room before and behind `bytes`, aligned so that the program's pointer keeps its alignment. False: cannot be added. */
static bool padded(struct sentinel_plan plan, size_t bytes, size_t *total)
{
    if ((!plan.head && !plan.tail) || bytes > SIZE_MAX - plan.head - plan.tail)
        return false;
    *total = bytes + plan.head + plan.tail;
    return true;
}

/* `id`: 0 when it has none yet. */
static struct allocation describe(uint32_t kind, CUdeviceptr base, size_t bytes, struct sentinel_plan plan, uint32_t id)
{
    struct allocation a = {.kind = kind, .base = base, .bytes = bytes, .id = id ? id : intern_new_id(INTERN_ALLOC)};
    a.address = base + plan.head;
    a.head = plan.head;
    a.tail = plan.tail;
    return a;
}

/* Fills the redzones. When that cannot be done they become slack that nobody looks at. */
static void settle(const struct call *call, struct allocation *a)
{
    if ((a->head || a->tail) && !sentinel_fill(a))
        a->head = a->tail = 0;
    poison_fill(a);
    record_allocation(call, a, 0);
    guard_record(call, a);
}

/* The allocation with guard pages, when it is to have them: *a is then complete but for its record. */
static bool guarded(struct call *call, uint32_t kind, uint64_t bytes, struct allocation *a)
{
    if (!options.guard.on)
        return false;
    *a = (struct allocation){.kind = kind, .id = intern_new_id(INTERN_ALLOC)};
    if (!guard_chosen(call, bytes, a->id))
        return false;
    call_begin(call);
    bool made = guard_make(bytes, a);
    call_end(call);
    return made;
}

/* The pitch is the driver's choice: asked with a single row. */
static bool guarded_pitch(struct call *call, size_t width, size_t height, unsigned element, size_t *pitch,
                          struct allocation *a)
{
    CUdeviceptr row;
    if (!options.guard.on || !driver.cuMemAllocPitch_v2 || !driver.cuMemFree_v2)
        return false;
    *a = (struct allocation){.kind = CAP_ALLOC_PITCHED, .id = intern_new_id(INTERN_ALLOC)};
    if (!guard_chosen(call, (uint64_t)width * height, a->id) ||
        driver.cuMemAllocPitch_v2(&row, pitch, width, 1, element) != CUDA_SUCCESS)
        return false;
    driver.cuMemFree_v2(row);
    if (height > SIZE_MAX / 2 / *pitch)
        return false;
    call_begin(call);
    bool made = guard_make((uint64_t)*pitch * height, a);
    call_end(call);
    return made;
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemAlloc_v2))
        return PASS(cuMemAlloc_v2, HOOK_cuMemAlloc_v2)(dptr, bytesize);
    health_context();
    struct allocation a = {0};
    if (dptr && bytesize && guarded(&call, CAP_ALLOC_DEVICE, bytesize, &a)) {
        settle(&call, &a);
        *dptr = a.address;
        return call_leave(&call, CUDA_SUCCESS);
    }
    struct sentinel_plan plan = {0, 0},
                         wanted = dptr && bytesize ? sentinel_plan(CAP_ALLOC_DEVICE, bytesize, NULL) : plan;
    size_t total = bytesize;
    if (padded(wanted, bytesize, &total))
        plan = wanted;
    call_begin(&call);
    CUresult result = REAL(cuMemAlloc_v2, HOOK_cuMemAlloc_v2)(dptr, total);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && quarantine_release())
        result = REAL(cuMemAlloc_v2, HOOK_cuMemAlloc_v2)(dptr, total);
    if (result != CUDA_SUCCESS && (plan.head || plan.tail)) { /* what the program would have got without us */
        plan = (struct sentinel_plan){0, 0};
        result = REAL(cuMemAlloc_v2, HOOK_cuMemAlloc_v2)(dptr, bytesize);
    }
    call_end(&call);
    if (result == CUDA_SUCCESS && dptr) {
        a = describe(CAP_ALLOC_DEVICE, *dptr, bytesize, plan, a.id);
        settle(&call, &a);
        *dptr = a.address;
    }
    return call_leave(&call, result);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemAllocPitch_v2))
        return PASS(cuMemAllocPitch_v2, HOOK_cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    health_context();
    bool sane = dptr && pPitch && WidthInBytes && Height && Height < SIZE_MAX / 2 / WidthInBytes;
    struct allocation a = {0};
    if (sane && guarded_pitch(&call, WidthInBytes, Height, ElementSizeBytes, pPitch, &a)) {
        settle(&call, &a);
        *dptr = a.address;
        return call_leave(&call, CUDA_SUCCESS);
    }
    struct sentinel_plan plan = {0, 0};
    size_t rows = Height;
    if (sane) {
        plan.tail = sentinel_plan(CAP_ALLOC_PITCHED, WidthInBytes * Height, NULL).tail;
        rows += (plan.tail + WidthInBytes - 1) / WidthInBytes; /* whole rows, whatever the pitch will be */
    }
    call_begin(&call);
    CUresult result =
        REAL(cuMemAllocPitch_v2, HOOK_cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes, rows, ElementSizeBytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && quarantine_release())
        result = REAL(cuMemAllocPitch_v2, HOOK_cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes, rows, ElementSizeBytes);
    if (result != CUDA_SUCCESS && plan.tail) {
        plan.tail = 0;
        result =
            REAL(cuMemAllocPitch_v2, HOOK_cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
    }
    call_end(&call);
    if (result == CUDA_SUCCESS && dptr && pPitch) {
        a = describe(CAP_ALLOC_PITCHED, *dptr, *pPitch * Height, plan, a.id);
        settle(&call, &a);
    }
    return call_leave(&call, result);
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemAllocManaged))
        return PASS(cuMemAllocManaged, HOOK_cuMemAllocManaged)(dptr, bytesize, flags);
    health_context();
    touch_managed_seen();
    struct sentinel_plan plan = {0, 0}, wanted = plan;
    size_t total = bytesize;
    if (dptr && bytesize)
        wanted = sentinel_plan(CAP_ALLOC_MANAGED, bytesize, NULL);
    if (padded(wanted, bytesize, &total))
        plan = wanted;
    call_begin(&call);
    CUresult result = REAL(cuMemAllocManaged, HOOK_cuMemAllocManaged)(dptr, total, flags);
    if (result != CUDA_SUCCESS && (plan.head || plan.tail)) {
        plan = (struct sentinel_plan){0, 0};
        result = REAL(cuMemAllocManaged, HOOK_cuMemAllocManaged)(dptr, bytesize, flags);
    }
    call_end(&call);
    if (result == CUDA_SUCCESS && dptr) {
        struct allocation a = describe(CAP_ALLOC_MANAGED, *dptr, bytesize, plan, 0);
        a.reserved = flags == CU_MEM_ATTACH_HOST ? ALLOC_FOR_HOST : 0;
        settle(&call, &a);
        *dptr = a.address;
    }
    return call_leave(&call, result);
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemFree_v2))
        return PASS(cuMemFree_v2, HOOK_cuMemFree_v2)(dptr);
    struct allocation a;
    CUdeviceptr base = dptr;
    /* Out of the table before the real call: as soon as that returns, another thread may get the same address. */
    bool known = dptr && alloc_table_exact(dptr, &a) && a.kind != CAP_ALLOC_VARIABLE;
    if (known) {
        sentinel_before_free(&a, NULL);
        known = alloc_table_remove(dptr, &a);
        if (known)
            sentinel_forgotten(&a);
        base = a.base;
    }
    struct cap_free *record = record_free(&call, known ? &a : NULL, dptr, 0);
    CUresult result = CUDA_ERROR_INVALID_VALUE; /* what a second free gets */
    call_begin(&call);
    if (known && a.guarded)
        guard_free(&a, &result);
    else if (known ? a.kind == CAP_ALLOC_HOST /* refused */ || !quarantine_take(&a, &result) : !quarantine_holds(dptr))
        result = REAL(cuMemFree_v2, HOOK_cuMemFree_v2)(base);
    call_end(&call);
    record_free_done(record, result);
    if (known && result != CUDA_SUCCESS)
        alloc_table_insert(&a);
    if (!known || result != CUDA_SUCCESS)
        bad_free_explain(&call, record, dptr, result);
    health_after_sync(result); /* freeing waits for the device */
    return call_leave(&call, result);
}

/* The same in the order of the stream that it was made in. That one's device cannot touch what a pool has put
 * elsewhere: redzones become slack there. */
static void settle_on(struct allocation *a, struct tracked_stream *stream)
{
    a->context = stream && stream->context ? stream->context->id : 0;
    a->elsewhere = a->kind == CAP_ALLOC_POOL && !(stream && touch_lies_with(a->address, stream));
    if ((a->head || a->tail) && (a->elsewhere || !sentinel_fill_on(a, stream)))
        a->head = a->tail = 0;
    if (!a->elsewhere)
        poison_fill_on(a, stream);
}

static CUresult alloc_async(enum hook hook, CUdeviceptr *dptr, size_t bytes, CUmemoryPool pool, CUstream handle,
                            uint32_t kind)
{
    struct call call;
    bool from_pool = kind == CAP_ALLOC_POOL;
    if (!call_enter(&call, hook))
        return from_pool ? PASS(cuMemAllocFromPoolAsync, hook)(dptr, bytes, pool, handle)
                         : PASS(cuMemAllocAsync, hook)(dptr, bytes, handle);
    struct tracked_stream *stream = track_stream(handle, hook_kind(hook) == HOOK_PER_THREAD, false);
    struct sentinel_plan plan = {0, 0}, wanted = {0, 0};
    size_t total = bytes;
    if (dptr && bytes && stream && stream->context && !device_stream_captures(stream))
        wanted = sentinel_plan(kind, bytes, stream->context);
    if (padded(wanted, bytes, &total))
        plan = wanted;
    call_begin(&call);
    CUresult result = from_pool ? REAL(cuMemAllocFromPoolAsync, hook)(dptr, total, pool, handle)
                                : REAL(cuMemAllocAsync, hook)(dptr, total, handle);
    if (result != CUDA_SUCCESS && (plan.head || plan.tail)) {
        plan = (struct sentinel_plan){0, 0};
        result = from_pool ? REAL(cuMemAllocFromPoolAsync, hook)(dptr, bytes, pool, handle)
                           : REAL(cuMemAllocAsync, hook)(dptr, bytes, handle);
    }
    call_end(&call);
    if (result == CUDA_SUCCESS && dptr && *dptr) { /* nothing, for 0 bytes */
        stream = stream ? stream : track_stream(handle, hook_kind(hook) == HOOK_PER_THREAD, true);
        struct allocation a = describe(kind, *dptr, bytes, plan, 0);
        a.stream = stream ? stream->id : 0;
        settle_on(&a, stream);
        record_allocation(&call, &a, 0);
        *dptr = a.address;
    }
    return call_leave(&call, result);
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return alloc_async(HOOK_cuMemAllocAsync, dptr, bytesize, NULL, hStream, CAP_ALLOC_ASYNC);
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
    return alloc_async(HOOK_cuMemAllocAsync_ptsz, dptr, bytesize, NULL, hStream, CAP_ALLOC_ASYNC);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
    return alloc_async(HOOK_cuMemAllocFromPoolAsync, dptr, bytesize, pool, hStream, CAP_ALLOC_POOL);
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
    return alloc_async(HOOK_cuMemAllocFromPoolAsync_ptsz, dptr, bytesize, pool, hStream, CAP_ALLOC_POOL);
}

static CUresult free_async(enum hook hook, CUdeviceptr dptr, CUstream handle)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuMemFreeAsync, hook)(dptr, handle);
    struct tracked_stream *stream = track_stream(handle, hook_kind(hook) == HOOK_PER_THREAD, false);
    struct allocation a;
    CUdeviceptr base = dptr;
    bool known = dptr && alloc_table_exact(dptr, &a) && a.kind != CAP_ALLOC_VARIABLE;
    if (known) {
        if (stream)
            sentinel_before_free(&a, stream);
        known = alloc_table_remove(dptr, &a);
        if (known)
            sentinel_forgotten_on(&a, stream);
        base = a.base;
    }
    struct cap_free *record = record_free(&call, known ? &a : NULL, dptr, stream ? stream->id : 0);
    call_begin(&call);
    CUresult result;
    if (known && a.guarded && !(stream && device_stream_captures(stream)))
        guard_free(&a, &result); /* of cuMemAlloc, which may be freed so as well */
    else
        result = REAL(cuMemFreeAsync, hook)(base, handle);
    call_end(&call);
    record_free_done(record, result);
    if (known && result != CUDA_SUCCESS)
        alloc_table_insert(&a);
    if (!known || result != CUDA_SUCCESS)
        bad_free_explain(&call, record, dptr, result);
    return call_leave(&call, result);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
    return free_async(HOOK_cuMemFreeAsync, dptr, hStream);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream)
{
    return free_async(HOOK_cuMemFreeAsync_ptsz, dptr, hStream);
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemMap))
        return PASS(cuMemMap, HOOK_cuMemMap)(ptr, size, offset, handle, flags);
    CUresult result = CUDA_ERROR_INVALID_VALUE; /* where the driver would find nothing reserved */
    bool outside = reserve_pads(ptr, size);
    call_begin(&call);
    if (!outside)
        result = REAL(cuMemMap, HOOK_cuMemMap)(ptr, size, offset, handle, flags);
    call_end(&call);
    if (result == CUDA_SUCCESS) {
        struct allocation a = {.kind = CAP_ALLOC_MAPPED, .address = ptr, .base = ptr, .bytes = size};
        record_allocation(&call, &a, 0);
    }
    return call_leave(&call, result);
}

struct mapped {
    struct allocation a;
    struct cap_free *record; /* NULL: could not be written */
};
struct mapped_range {
    uint64_t end;
    struct mapped *found; /* owned */
    size_t count, capacity;
};

static bool collect_mapped(const struct allocation *a, void *data)
{
    struct mapped_range *range = data;
    if (a->address >= range->end)
        return false;
    if (a->kind != CAP_ALLOC_MAPPED)
        return true;
    if (range->count == range->capacity) {
        size_t capacity = range->capacity ? range->capacity * 2 : 16;
        struct mapped *more = realloc(range->found, capacity * sizeof *more);
        if (!more)
            return false;
        range->found = more;
        range->capacity = capacity;
    }
    range->found[range->count++] = (struct mapped){.a = *a};
    return true;
}

/* One unmap may end several maps. They leave the table, and those that another thread has taken meanwhile the list. */
static void take_mapped(const struct call *call, struct mapped_range *range, CUdeviceptr ptr)
{
    size_t kept = 0;
    alloc_table_from(ptr, collect_mapped, range);
    for (size_t i = 0; i < range->count; i++) {
        struct mapped *m = &range->found[kept];
        if (!alloc_table_remove(range->found[i].a.address, &m->a))
            continue;
        m->record = record_free(call, &m->a, m->a.address, 0);
        snapshot_leave(&m->a);
        kept++;
    }
    range->count = kept;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemUnmap))
        return PASS(cuMemUnmap, HOOK_cuMemUnmap)(ptr, size);
    struct mapped_range range = {.end = ptr + size};
    take_mapped(&call, &range, ptr);
    struct cap_free *nothing = range.count ? NULL : record_free(&call, NULL, ptr, 0);
    call_begin(&call);
    CUresult result = REAL(cuMemUnmap, HOOK_cuMemUnmap)(ptr, size);
    call_end(&call);
    if (nothing) {
        __atomic_store_n(&nothing->result, (int32_t)result, __ATOMIC_RELAXED);
        bad_free_explain(&call, nothing, ptr, result);
    }
    for (size_t i = 0; i < range.count; i++) {
        if (range.found[i].record && capture_can_patch(range.found[i].record))
            __atomic_store_n(&range.found[i].record->result, (int32_t)result, __ATOMIC_RELAXED);
        if (result != CUDA_SUCCESS)
            alloc_table_insert(&range.found[i].a);
    }
    if (range.count && range.found[0].record && capture_can_patch(range.found[0].record))
        bad_free_explain(&call, range.found[0].record, ptr, result);
    free(range.found);
    return call_leave(&call, result);
}

static uint32_t reserved_for(unsigned flags, const struct tracked_stream *stream)
{
    if (flags == CU_MEM_ATTACH_GLOBAL)
        return 0;
    return flags == CU_MEM_ATTACH_HOST || !stream ? ALLOC_FOR_HOST : stream->id;
}

/* Managed memory is attached as a whole: with redzones the whole is more than the program knows. */
static CUresult attach(enum hook hook, CUstream handle, CUdeviceptr dptr, size_t length, unsigned int flags)
{
    struct call call;
    struct allocation a;
    if (!call_enter(&call, hook))
        return PASS(cuStreamAttachMemAsync, hook)(handle, dptr, length, flags);
    bool known = alloc_table_exact(dptr, &a);
    bool whole = known && (a.head || a.tail) && (!length || length == a.bytes);
    call_begin(&call);
    CUresult result = REAL(cuStreamAttachMemAsync, hook)(handle, whole ? a.base : dptr, whole ? 0 : length, flags);
    call_end(&call);
    if (result == CUDA_SUCCESS && known)
        alloc_table_reserve(dptr, a.id,
                            reserved_for(flags, track_stream(handle, hook_kind(hook) == HOOK_PER_THREAD, true)));
    return call_leave(&call, result);
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
    return attach(HOOK_cuStreamAttachMemAsync, hStream, dptr, length, flags);
}

CUresult cuStreamAttachMemAsync_ptsz(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
    return attach(HOOK_cuStreamAttachMemAsync_ptsz, hStream, dptr, length, flags);
}

/* Memory of another process: as large as the driver says. */
static void record_imported(struct call *call, CUdeviceptr address)
{
    struct allocation a = {.kind = CAP_ALLOC_IMPORTED, .address = address, .base = address};
    CUdeviceptr start = 0;
    size_t bytes = 0;
    if (driver.cuMemGetAddressRange_v2 && driver.cuMemGetAddressRange_v2(&start, &bytes, address) == CUDA_SUCCESS &&
        start + bytes > address)
        a.bytes = start + bytes - address;
    record_allocation(call, &a, 0);
}

static CUresult ipc_open(enum hook hook, CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int flags)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuIpcOpenMemHandle, hook)(pdptr, handle, flags);
    call_begin(&call);
    CUresult result = REAL(cuIpcOpenMemHandle, hook)(pdptr, handle, flags);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        record_imported(&call, *pdptr);
    return call_leave(&call, result);
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemPoolImportPointer))
        return PASS(cuMemPoolImportPointer, HOOK_cuMemPoolImportPointer)(ptr_out, pool, shareData);
    call_begin(&call);
    CUresult result = REAL(cuMemPoolImportPointer, HOOK_cuMemPoolImportPointer)(ptr_out, pool, shareData);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        record_imported(&call, *ptr_out);
    return call_leave(&call, result);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    return ipc_open(HOOK_cuIpcOpenMemHandle, pdptr, handle, Flags);
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
    return ipc_open(HOOK_cuIpcOpenMemHandle_v2, pdptr, handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuIpcCloseMemHandle))
        return PASS(cuIpcCloseMemHandle, HOOK_cuIpcCloseMemHandle)(dptr);
    struct allocation a;
    bool known = alloc_table_exact(dptr, &a) && a.kind == CAP_ALLOC_IMPORTED && alloc_table_remove(dptr, &a);
    struct cap_free *record = record_free(&call, known ? &a : NULL, dptr, 0);
    call_begin(&call);
    CUresult result = REAL(cuIpcCloseMemHandle, HOOK_cuIpcCloseMemHandle)(dptr);
    call_end(&call);
    record_free_done(record, result);
    if (known && result != CUDA_SUCCESS)
        alloc_table_insert(&a);
    return call_leave(&call, result);
}
