#include "shim/guard.h"

#include <pthread.h>
#include <stdlib.h>

#include <opsdebug/capture.h>

#include "common/map.h"
#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/guard_sharing.h"
#include "shim/options.h"
#include "shim/shim.h"

enum {
    ALIGNMENT = 512,    /* what cuMemAlloc gives, and textures of linear memory want */
    REDZONE_MAX = 8192, /* next to the allocation; the rest of the mapping is neither filled nor looked at */
    RETIRED_MAX = 4096, /* freed ranges that stay reserved */
};

struct guarded {
    uint64_t range, range_bytes;   /* reserved */
    uint64_t mapped, mapped_bytes; /* somewhere inside */
    uint64_t slack;                /* mapped, and neither the program's nor a redzone */
    uint32_t context;
    CUcontext handle;     /* of the context */
    struct guarded *next; /* of the list it is in */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map live;                              /* address -> struct guarded */
static struct guarded *parked;                       /* freed, but still mapped: a stream was being captured */
static struct guarded *retired, **newest = &retired; /* unmapped, still reserved; oldest first */
static unsigned retired_count;
static uint64_t mapped_total, slack_total; /* of those that are mapped */
static uint64_t run_seed;                  /* atomic */

uint64_t guard_slack_bytes(void)
{
    return __atomic_load_n(&slack_total, __ATOMIC_RELAXED);
}

static uint64_t seed(void)
{
    uint64_t none = 0, fresh = options.guard.seed ? options.guard.seed : call_tsc() | 1;
    return __atomic_compare_exchange_n(&run_seed, &none, fresh, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ? fresh
                                                                                                           : none;
}

/* One note per reason; what else is left out for it is only counted by its absence. */
static void note_once(bool *said, const char *why, uint32_t id, uint64_t bytes)
{
    if (!__atomic_exchange_n(said, true, __ATOMIC_RELAXED))
        shim_note(CAP_NOTE_LOST, "allocation %u of %llu bytes, and perhaps later ones, got no guard pages: %s", id,
                  (unsigned long long)bytes, why);
}

static bool functions_there(void)
{
    return driver.cuMemGetAllocationGranularity && driver.cuMemAddressReserve && driver.cuMemAddressFree &&
           driver.cuMemCreate && driver.cuMemRelease && driver.cuMemMap && driver.cuMemUnmap && driver.cuMemSetAccess &&
           driver.cuDeviceGetAttribute && driver.cuCtxSynchronize;
}

static int attribute(CUdevice_attribute which, CUdevice device)
{
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

/* Under MPS a fault ends every client, not only this program. */
static bool device_can(CUdevice device)
{
    static int8_t known[64]; /* atomic: 0 not asked, 1 yes, -1 no */
    static bool said;
    if (device < 0 || device >= 64 || !functions_there())
        return false;
    int8_t can = __atomic_load_n(&known[device], __ATOMIC_RELAXED);
    if (!can) {
        bool mps = attribute(CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device);
        can = attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) && !mps ? 1 : -1;
        __atomic_store_n(&known[device], can, __ATOMIC_RELAXED);
        if (can < 0 && !__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
            shim_note(CAP_NOTE_LOST, "no guard pages on device %d: %s", device,
                      mps ? "under MPS a fault would end every client" : "it has no virtual memory management");
    }
    return can > 0;
}

static CUmemAllocationProp property_of(CUdevice device)
{
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    property.allocFlags.gpuDirectRDMACapable =
        attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device) != 0;
    return property;
}

static uint64_t budget(CUdevice device)
{
    size_t total = 0;
    if (options.guard.budget || !driver.cuDeviceTotalMem_v2 ||
        driver.cuDeviceTotalMem_v2(&total, device) != CUDA_SUCCESS)
        return options.guard.budget;
    return total / 4;
}

/* The owner, and every device that could be allowed to reach its plain allocations. */
static bool grant(const struct guarded *g, CUdevice owner)
{
    CUmemAccessDesc access[16] = {
        {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = owner}, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    size_t count = 1;
    int devices = 0, can = 0;
    if (!driver.cuDeviceGetCount || driver.cuDeviceGetCount(&devices) != CUDA_SUCCESS)
        devices = 0;
    for (CUdevice d = 0; d < devices && count < sizeof access / sizeof *access; d++)
        if (d != owner && driver.cuDeviceCanAccessPeer &&
            driver.cuDeviceCanAccessPeer(&can, d, owner) == CUDA_SUCCESS && can) {
            access[count] = access[0];
            access[count++].location.id = d;
        }
    return driver.cuMemSetAccess(g->mapped, g->mapped_bytes, access, count) == CUDA_SUCCESS;
}

/* Physical memory at `g->mapped`. It lives as long as the mapping: the handle is given up at once. */
static bool map_memory(struct guarded *g, const CUmemAllocationProp *property)
{
    CUmemGenericAllocationHandle handle;
    if (driver.cuMemCreate(&handle, g->mapped_bytes, property, 0) != CUDA_SUCCESS)
        return false;
    bool mapped = driver.cuMemMap(g->mapped, g->mapped_bytes, 0, handle, 0) == CUDA_SUCCESS;
    driver.cuMemRelease(handle);
    if (mapped && grant(g, property->location.id))
        return true;
    if (mapped)
        driver.cuMemUnmap(g->mapped, g->mapped_bytes);
    return false;
}

/* The range with the mapping in its middle; a narrower one when there is no room for the wide one. */
static bool reserve(struct guarded *g, uint64_t granule, uint64_t reach)
{
    for (;; reach = 0) {
        uint64_t side = reach / granule * granule;
        side = side ? side : granule;
        CUdeviceptr range = 0;
        g->range_bytes = g->mapped_bytes + 2 * side;
        if (driver.cuMemAddressReserve(&range, g->range_bytes, 0, 0, 0) == CUDA_SUCCESS) {
            g->range = range;
            g->mapped = range + side;
            return true;
        }
        if (!reach)
            return false;
    }
}

static struct guarded *make(CUdevice device, uint64_t bytes, const char **why)
{
    CUmemAllocationProp property = property_of(device);
    size_t granule = 0;
    struct guarded *g = calloc(1, sizeof *g);
    *why = "no memory";
    if (g &&
        driver.cuMemGetAllocationGranularity(&granule, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS &&
        granule && bytes <= UINT64_MAX / 2) {
        g->mapped_bytes = (bytes + granule - 1) / granule * granule;
        if (__atomic_load_n(&mapped_total, __ATOMIC_RELAXED) + g->mapped_bytes > budget(device)) {
            *why = "the budget is used up";
        } else if (!reserve(g, granule, options.guard.reach)) {
            *why = "no addresses";
        } else {
            if (map_memory(g, &property))
                return g;
            *why = "the driver has no memory for it";
            driver.cuMemAddressFree(g->range, g->range_bytes);
        }
    }
    free(g);
    return NULL;
}

static void account(struct guarded *g, int sign)
{
    uint64_t n = sign > 0 ? 1 : UINT64_MAX;
    __atomic_fetch_add(&mapped_total, n * g->mapped_bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&slack_total, n * g->slack, __ATOMIC_RELAXED);
}

/* The allocation in its mapping, and the redzones that the mapping has room for. */
static void place(struct guarded *g, uint64_t bytes, struct allocation *a)
{
    uint64_t room = g->mapped_bytes - bytes, tail = room;
    if (!options.guard.under) {
        tail = room % ALIGNMENT; /* both ends of the mapping are aligned */
        uint64_t head = room - tail;
        a->head = (uint32_t)(head < REDZONE_MAX ? head : REDZONE_MAX);
    }
    a->address = g->mapped + (options.guard.under ? 0 : room - tail);
    a->tail = (uint32_t)(tail < REDZONE_MAX ? tail : REDZONE_MAX);
    a->bytes = bytes;
    a->base = a->address;
    a->guarded = true;
    g->slack = room - a->head - a->tail;
}

bool guard_chosen(const struct call *call, uint64_t bytes, uint32_t id)
{
    const struct tracked_context *context;
    return options.guard.on && bytes && shim_device_usable() &&
           guard_choice_takes(&options.guard, seed(), id, bytes, hook_symbol(call->hook),
                              hook_symbol(shim_thread.scope)) &&
           (context = track_current_context()) && device_can((CUdevice)context->device) && !device_captures_active() &&
           !(options.guard.careful && guard_sharing_possible());
}

bool guard_make(uint64_t bytes, struct allocation *a)
{
    static bool said;
    const struct tracked_context *context = track_current_context();
    const char *why;
    struct guarded *g = context ? make((CUdevice)context->device, bytes, &why) : NULL;
    if (!context)
        return false;
    if (!g) {
        note_once(&said, why, a->id, bytes);
        return false;
    }
    place(g, bytes, a);
    g->context = context->id;
    g->handle = context->handle;
    pthread_mutex_lock(&lock);
    bool kept = map_put(&live, a->address, (uint64_t)(uintptr_t)g);
    pthread_mutex_unlock(&lock);
    if (!kept) {
        driver.cuMemUnmap(g->mapped, g->mapped_bytes);
        driver.cuMemAddressFree(g->range, g->range_bytes);
        free(g);
        *a = (struct allocation){.id = a->id, .kind = a->kind};
        return false;
    }
    account(g, 1);
    return true;
}

static struct guarded *find(uint64_t address, bool take)
{
    uint64_t found = 0;
    pthread_mutex_lock(&lock);
    if (map_get(&live, address, &found) && take)
        map_remove(&live, address);
    pthread_mutex_unlock(&lock);
    return (struct guarded *)(uintptr_t)found;
}

CUcontext guard_context(const struct allocation *a)
{
    const struct guarded *g = a->guarded ? find(a->address, false) : NULL;
    return g ? g->handle : NULL;
}

void guard_record(const struct call *call, const struct allocation *a)
{
    const struct guarded *g = a->guarded ? find(a->address, false) : NULL;
    struct cap_guard *record = g ? capture_record(CAP_GUARD, sizeof *record, call->seq, call->tsc) : NULL;
    if (!record)
        return;
    record->allocation = a->id;
    record->under = options.guard.under;
    record->range = g->range;
    record->range_bytes = g->range_bytes;
    record->mapped = g->mapped;
    record->mapped_bytes = g->mapped_bytes;
    record->seed = seed();
    capture_commit(record);
}

/* Unmapped, but nobody else gets the addresses until so many others were freed. */
static void retire(struct guarded *g)
{
    struct guarded *oldest = NULL;
    account(g, -1);
    driver.cuMemUnmap(g->mapped, g->mapped_bytes);
    pthread_mutex_lock(&lock);
    g->next = NULL;
    *newest = g;
    newest = &g->next;
    if (++retired_count > RETIRED_MAX) {
        oldest = retired;
        retired = oldest->next;
        retired_count--;
    }
    pthread_mutex_unlock(&lock);
    if (oldest)
        driver.cuMemAddressFree(oldest->range, oldest->range_bytes);
    free(oldest);
}

static void park(struct guarded *g)
{
    pthread_mutex_lock(&lock);
    g->next = parked;
    parked = g;
    pthread_mutex_unlock(&lock);
}

static struct guarded *take_parked(void)
{
    pthread_mutex_lock(&lock);
    struct guarded *all = parked;
    parked = NULL;
    pthread_mutex_unlock(&lock);
    return all;
}

/* As a real free does: for the context that the memory belongs to, whichever is current. */
static CUresult wait_for(CUcontext owner)
{
    CUcontext current = NULL;
    CUresult result;
    if (!driver.cuCtxGetCurrent || driver.cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current || current == owner ||
        !driver.cuCtxPushCurrent_v2 || !driver.cuCtxPopCurrent_v2)
        return driver.cuCtxSynchronize();
    if ((result = driver.cuCtxPushCurrent_v2(owner)) != CUDA_SUCCESS)
        return result;
    result = driver.cuCtxSynchronize();
    driver.cuCtxPopCurrent_v2(&current);
    return result;
}

void guard_free(const struct allocation *a, CUresult *result)
{
    struct guarded *g = find(a->address, false);
    *result = CUDA_SUCCESS;
    if (!device_uncaptured_begins()) { /* waiting would break the capture; there is time */
        if ((g = find(a->address, true)))
            park(g);
        return;
    }
    *result = g ? wait_for(g->handle) : CUDA_SUCCESS;
    device_uncaptured_ends();
    if (*result != CUDA_SUCCESS || !(g = find(a->address, true)))
        return;
    retire(g);
    for (struct guarded *next, *p = take_parked(); p; p = next) {
        next = p->next;
        retire(p);
    }
}

void guard_drop_context(const struct tracked_context *context)
{
    struct guarded *gone = NULL;
    pthread_mutex_lock(&lock);
    for (bool again = true; again;) { /* removing moves slots: look from the start each time */
        again = false;
        for (size_t i = 0; i < live.capacity && !again; i++) {
            struct guarded *g = live.slots[i].used ? (struct guarded *)(uintptr_t)live.slots[i].value : NULL;
            if (!g || g->context != context->id)
                continue;
            map_remove(&live, live.slots[i].key);
            g->next = gone;
            gone = g;
            again = true;
        }
    }
    pthread_mutex_unlock(&lock);
    for (struct guarded *next; gone; gone = next) {
        next = gone->next;
        retire(gone);
    }
}

void guard_export_failed(uint64_t address)
{
    struct allocation a;
    if (alloc_table_find(address, &a) && a.guarded)
        shim_note(CAP_NOTE_LOST,
                  "allocation %u has guard pages and cannot be given to other processes: run with GUARD=off, or with "
                  "the word careful",
                  a.id);
}
