/* wrap_host.c - page-locked host memory: made by the driver, or the program's own, registered. */
#include <pthread.h>

#include <opsdebug/capture.h>

#include "common/map.h"
#include "shim/alloc_table.h"
#include "shim/call.h"
#include "shim/driver.h"
#include "shim/health.h"
#include "shim/record.h"
#include "shim/track.h"

/* The program frees by host address; the table is by device address, which may be another. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map device_of_host;

static void host_found(const struct call *call, uint32_t kind, void *host, size_t bytes)
{
    uint64_t host_address = (uint64_t)(uintptr_t)host;
    CUdeviceptr device = 0;
    if (!driver.cuMemHostGetDevicePointer_v2 || driver.cuMemHostGetDevicePointer_v2(&device, host, 0) != CUDA_SUCCESS)
        device = 0; /* not mapped: kernels cannot reach it, copies can */
    struct allocation a = {.kind = kind, .bytes = bytes};
    a.address = a.base = device ? device : host_address;
    a.host_address = a.address == host_address ? 0 : host_address;
    pthread_mutex_lock(&lock);
    map_put(&device_of_host, host_address, a.address);
    pthread_mutex_unlock(&lock);
    record_allocation(call, &a, 0);
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
    map_put(&device_of_host, (uint64_t)(uintptr_t)host, a->address);
    pthread_mutex_unlock(&lock);
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemAllocHost_v2))
        return PASS(cuMemAllocHost_v2, HOOK_cuMemAllocHost_v2)(pp, bytesize);
    call_begin(&call);
    CUresult result = REAL(cuMemAllocHost_v2, HOOK_cuMemAllocHost_v2)(pp, bytesize);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        host_found(&call, CAP_ALLOC_HOST, *pp, bytesize);
    return call_leave(&call, result);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    struct call call;
    if (!call_enter(&call, HOOK_cuMemHostAlloc))
        return PASS(cuMemHostAlloc, HOOK_cuMemHostAlloc)(pp, bytesize, Flags);
    call_begin(&call);
    CUresult result = REAL(cuMemHostAlloc, HOOK_cuMemHostAlloc)(pp, bytesize, Flags);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        host_found(&call, CAP_ALLOC_HOST, *pp, bytesize);
    return call_leave(&call, result);
}

static CUresult host_register(enum hook hook, void *p, size_t bytes, unsigned int flags)
{
    struct call call;
    if (!call_enter(&call, hook))
        return PASS(cuMemHostRegister_v2, hook)(p, bytes, flags);
    call_begin(&call);
    CUresult result = REAL(cuMemHostRegister_v2, hook)(p, bytes, flags);
    call_end(&call);
    if (result == CUDA_SUCCESS)
        host_found(&call, CAP_ALLOC_REGISTERED, p, bytes);
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
    bool known = host_take(p, &a);
    struct cap_free *record = record_free(&call, known ? &a : NULL, known ? a.address : (uint64_t)(uintptr_t)p, 0);
    call_begin(&call);
    CUresult result = REAL(cuMemFreeHost, hook)(p);
    call_end(&call);
    if (record)
        __atomic_store_n(&record->result, (int32_t)result, __ATOMIC_RELAXED);
    if (known && result != CUDA_SUCCESS)
        host_put_back(p, &a);
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
