/* wrap_reserve.c - reserved address ranges; their mappings are in wrap_memory.c. */
#include <pthread.h>
#include <stdlib.h>

#include <opsdebug/capture.h>

#include "shim/call.h"
#include "shim/capture_write.h"
#include "shim/driver.h"
#include "shim/options.h"
#include "shim/reserve.h"
#include "shim/shim.h"
#include "shim/track.h"

struct range {
    uint64_t address, bytes; /* as the program sees it */
    uint64_t side;           /* unmapped on either side, 0: as the program asked for it */
    struct range *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;

/* The padding's size, 0 for none. A range at an address of the program's choice is meant to lie against another one. */
static uint64_t padding(size_t size, size_t alignment, CUdeviceptr address)
{
    bool wanted = options.sentinels >= SENTINELS_BOTH || (options.guard.on && options.guard.sample == 1);
    const struct tracked_context *context = track_current_context();
    CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    size_t granule = 0;
    if (!wanted || address || !size || !shim_device_usable() || !driver.cuMemGetAllocationGranularity)
        return 0;
    property.location.id = context ? (int)context->device : 0;
    if (driver.cuMemGetAllocationGranularity(&granule, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
        !granule || granule % (alignment ? alignment : 1) || size % granule || size > SIZE_MAX - 2 * granule)
        return 0;
    return granule;
}

static void record(const struct call *call, const struct range *r, bool asked, bool freed)
{
    struct cap_reserve *out = capture_record(CAP_RESERVE, sizeof *out, call->seq, call->tsc);
    if (!out)
        return;
    out->address = r->address;
    out->bytes = r->bytes;
    out->side = r->side;
    out->asked = asked;
    out->freed = freed;
    capture_commit(out);
}

static void keep(const struct range *r)
{
    struct range *copy = malloc(sizeof *copy);
    if (!copy)
        return; /* the padding stays reserved when the program frees its part */
    *copy = *r;
    pthread_mutex_lock(&lock);
    copy->next = ranges;
    ranges = copy;
    pthread_mutex_unlock(&lock);
}

static bool take(uint64_t address, uint64_t bytes, struct range *out)
{
    pthread_mutex_lock(&lock);
    struct range **at = &ranges;
    while (*at && ((*at)->address != address || (*at)->bytes != bytes))
        at = &(*at)->next;
    struct range *found = *at;
    if (found) {
        *at = found->next;
        *out = *found;
    }
    pthread_mutex_unlock(&lock);
    free(found);
    return found != NULL;
}

void reserve_clamp(uint64_t address, uint64_t *start, size_t *bytes)
{
    pthread_mutex_lock(&lock);
    for (const struct range *r = ranges; r; r = r->next)
        if (r->side && address - r->address < r->bytes) {
            uint64_t end = *start + *bytes, last = r->address + r->bytes;
            *start = *start < r->address ? r->address : *start;
            *bytes = (end < last ? end : last) - *start;
            break;
        }
    pthread_mutex_unlock(&lock);
}

bool reserve_pads(uint64_t address, uint64_t bytes)
{
    bool pads = false;
    pthread_mutex_lock(&lock);
    for (const struct range *r = ranges; r && !pads; r = r->next) {
        uint64_t start = r->address - r->side, end = r->address + r->bytes + r->side;
        bool touches = address < start ? bytes > start - address : address < end;
        bool inside = address >= r->address && bytes <= r->bytes && address - r->address <= r->bytes - bytes;
        pads = r->side && touches && !inside;
    }
    pthread_mutex_unlock(&lock);
    return pads;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemAddressReserve))
        return PASS(cuMemAddressReserve, HOOK_cuMemAddressReserve)(ptr, size, alignment, addr, flags);
    struct range r = {.bytes = size, .side = ptr ? padding(size, alignment, addr) : 0};
    call_begin(&call);
    CUresult result =
        REAL(cuMemAddressReserve, HOOK_cuMemAddressReserve)(ptr, size + 2 * r.side, alignment, addr, flags);
    if (result != CUDA_SUCCESS && r.side) { /* what the program would have got without us */
        r.side = 0;
        result = REAL(cuMemAddressReserve, HOOK_cuMemAddressReserve)(ptr, size, alignment, addr, flags);
    }
    call_end(&call);
    if (result == CUDA_SUCCESS && ptr) {
        *ptr += r.side;
        r.address = *ptr;
        keep(&r);
        record(&call, &r, addr && *ptr == addr, false);
    }
    return call_leave(&call, result);
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemAddressFree))
        return PASS(cuMemAddressFree, HOOK_cuMemAddressFree)(ptr, size);
    struct range r = {.address = ptr, .bytes = size};
    bool known = take(ptr, size, &r);
    call_begin(&call);
    CUresult result = REAL(cuMemAddressFree, HOOK_cuMemAddressFree)(ptr - r.side, size + 2 * r.side);
    call_end(&call);
    if (known && result != CUDA_SUCCESS)
        keep(&r);
    else if (known)
        record(&call, &r, false, true);
    return call_leave(&call, result);
}
