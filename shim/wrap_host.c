/* wrap_host.c - page-locked host memory: made by the driver, or the program's own, registered. */
#include <pthread.h>

#include <opsdebug/capture.h>

#include "common/map.h"
#include "shim/alloc_table.h"
#include "shim/bad_free.h"
#include "shim/call.h"
#include "shim/driver.h"
#include "shim/health.h"
#include "shim/host_redzone.h"
#include "shim/intern.h"
#include "shim/memory.h"
#include "shim/quarantine.h"
#include "shim/record.h"
#include "shim/sentinel.h"
#include "shim/snapshot.h"
#include "shim/track.h"

/* The program frees by host address; the table is by device address, which may be another. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map device_of_host;

static CUdeviceptr device_address(void *host)
{
    CUdeviceptr device = 0;
    if (!driver.cuMemHostGetDevicePointer_v2 || driver.cuMemHostGetDevicePointer_v2(&device, host, 0) != CUDA_SUCCESS)
        return 0; /* not mapped: kernels cannot reach it, copies can */
    return device;
}

/* `host` is what the driver gave; returns what the program gets. Without a device address nobody could look at the
 * redzones on the device, where they are written: then there are none. */
static void *host_found(const struct call *call, uint32_t kind, void *host, size_t bytes, struct sentinel_plan plan,
                        unsigned flags)
{
    CUdeviceptr device = device_address(host);
    char *user = (char *)host + plan.head;
    struct allocation a = {.kind = kind, .bytes = bytes};
    a.registers = kind == CAP_ALLOC_REGISTERED && flags & CU_MEMHOSTREGISTER_IOMEMORY;
    a.base = device ? device : (uint64_t)(uintptr_t)host;
    a.address = a.base + plan.head;
    a.host_address = a.address == (uint64_t)(uintptr_t)user ? 0 : (uint64_t)(uintptr_t)user;
    if (device && (plan.head || plan.tail)) {
        a.head = plan.head;
        a.tail = plan.tail;
        a.id = intern_new_id(INTERN_ALLOC);
        host_redzone_fill(&a);
    }
    pthread_mutex_lock(&lock);
    memory_map_put(&device_of_host, (uint64_t)(uintptr_t)user, a.address, true);
    pthread_mutex_unlock(&lock);
    record_allocation(call, &a, 0);
    return user;
}

static bool host_known(const void *host, struct allocation *a)
{
    uint64_t address = 0;
    pthread_mutex_lock(&lock);
    bool known = map_get(&device_of_host, (uint64_t)(uintptr_t)host, &address);
    pthread_mutex_unlock(&lock);
    return known && alloc_table_exact(address, a);
}

static bool host_take(const void *host, struct allocation *a)
{
    uint64_t address = 0;
    pthread_mutex_lock(&lock);
    bool known = map_get(&device_of_host, (uint64_t)(uintptr_t)host, &address) &&
                 map_remove(&device_of_host, (uint64_t)(uintptr_t)host);
    pthread_mutex_unlock(&lock);
    return known && alloc_table_remove(address, a);
}

static void host_put_back(const void *host, const struct allocation *a)
{
    alloc_table_insert(a);
    pthread_mutex_lock(&lock);
    memory_map_put(&device_of_host, (uint64_t)(uintptr_t)host, a->address, true);
    pthread_mutex_unlock(&lock);
}

/* cuMemAllocHost is cuMemHostAlloc without flags, and another driver function. */
static CUresult real_alloc(enum hook hook, void **pp, size_t bytes, unsigned flags)
{
    return hook == HOOK_cuMemHostAlloc ? REAL(cuMemHostAlloc, hook)(pp, bytes, flags)
                                       : REAL(cuMemAllocHost_v2, hook)(pp, bytes);
}

static CUresult host_alloc(enum hook hook, void **pp, size_t bytes, unsigned flags)
{
    struct call call;
    if (!call_enter(&call, hook))
        return hook == HOOK_cuMemHostAlloc ? PASS(cuMemHostAlloc, hook)(pp, bytes, flags)
                                           : PASS(cuMemAllocHost_v2, hook)(pp, bytes);
    health_context();
    struct sentinel_plan plan = {0, 0};
    if (pp && bytes)
        plan = sentinel_plan(CAP_ALLOC_HOST, bytes, NULL);
    if (bytes > SIZE_MAX - plan.head - plan.tail)
        plan = (struct sentinel_plan){0, 0};
    call_begin(&call);
    CUresult result = real_alloc(hook, pp, bytes + plan.head + plan.tail, flags);
    if (result != CUDA_SUCCESS && (plan.head || plan.tail)) { /* what the program would have got without us */
        plan = (struct sentinel_plan){0, 0};
        result = real_alloc(hook, pp, bytes, flags);
    }
    call_end(&call);
    if (result == CUDA_SUCCESS && pp && *pp)
        *pp = host_found(&call, CAP_ALLOC_HOST, *pp, bytes, plan, 0);
    return call_leave(&call, result);
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    return host_alloc(HOOK_cuMemAllocHost_v2, pp, bytesize, 0);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    return host_alloc(HOOK_cuMemHostAlloc, pp, bytesize, Flags);
}

/* Beside the real call nothing here waits for the device, nor does anything where it is unregistered: there are no
 * redzones, and to ask for an address is no work. */
static CUresult host_register(enum hook hook, void *p, size_t bytes, unsigned int flags)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuMemHostRegister_v2, hook)(p, bytes, flags);
    call_begin(&call);
    CUresult result = REAL(cuMemHostRegister_v2, hook)(p, bytes, flags);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        host_found(&call, CAP_ALLOC_REGISTERED, p, bytes, (struct sentinel_plan){0, 0}, flags);
    return call_leave(&call, result);
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    return host_register(HOOK_cuMemHostRegister, p, bytesize, Flags);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
    return host_register(HOOK_cuMemHostRegister_v2, p, bytesize, Flags);
}

static CUresult host_release(enum hook hook, void *p)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuMemFreeHost, hook)(p);
    struct allocation a;
    bool known = host_known(p, &a);
    if (known) {
        sentinel_before_free(&a, NULL);
        known = host_take(p, &a);
        if (known) {
            sentinel_forgotten_by_host(&a);
            host_redzone_look(&a); /* what a launch did has been taken in */
            snapshot_leave(&a);
        }
    }
    struct cap_free *record = record_free(&call, known ? &a : NULL, known ? a.address : (uint64_t)(uintptr_t)p, 0);
    CUresult result = CUDA_ERROR_INVALID_VALUE; /* what a second free gets */
    call_begin(&call);
    bool free_of_host = known && hook == HOOK_cuMemFreeHost && a.kind == CAP_ALLOC_HOST;
    if (known ? !free_of_host || !quarantine_take(&a, &result) : !quarantine_holds((uint64_t)(uintptr_t)p))
        result = REAL(cuMemFreeHost, hook)(known ? (char *)p - (a.address - a.base) : p);
    call_end(&call);
    record_free_done(record, result);
    if (known && result != CUDA_SUCCESS)
        host_put_back(p, &a);
    if (!known || result != CUDA_SUCCESS)
        bad_free_explain(&call, record, (uint64_t)(uintptr_t)p, result);
    return call_leave(&call, result);
}

/* ---- questions about an address that is not the driver's, because a redzone lies before it ---- */

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemHostGetDevicePointer_v2))
        return PASS(cuMemHostGetDevicePointer_v2, HOOK_cuMemHostGetDevicePointer_v2)(pdptr, p, Flags);
    struct allocation a;
    uint64_t before = host_known(p, &a) ? a.address - a.base : 0;
    call_begin(&call);
    CUresult result = REAL(cuMemHostGetDevicePointer_v2,
                           HOOK_cuMemHostGetDevicePointer_v2)(pdptr, before ? (char *)p - before : p, Flags);
    call_end(&call);
    if (result == CUDA_SUCCESS && before)
        *pdptr += before;
    return call_leave(&call, result);
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemHostGetFlags))
        return PASS(cuMemHostGetFlags, HOOK_cuMemHostGetFlags)(pFlags, p);
    struct allocation a;
    uint64_t before = host_known(p, &a) ? a.address - a.base : 0;
    call_begin(&call);
    CUresult result = REAL(cuMemHostGetFlags, HOOK_cuMemHostGetFlags)(pFlags, before ? (char *)p - before : p);
    call_end(&call);
    return call_leave(&call, result);
}

CUresult cuMemFreeHost(void *p)
{
    return host_release(HOOK_cuMemFreeHost, p);
}

CUresult cuMemHostUnregister(void *p)
{
    return host_release(HOOK_cuMemHostUnregister, p);
}
