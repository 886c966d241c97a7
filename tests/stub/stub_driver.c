/* stub_driver.c - a libcuda.so.1 that succeeds at once: memory from malloc, launches that do nothing. For the shim's
 * tests and bench.
 *
 * Its cuGetProcAddress answers from shim/hooks.def as a driver would, by version and flags. Environment variables make
 * it behave in the ways that have broken interposers: STUB_REENTER (cuInit looks itself up by dlsym and calls it),
 * STUB_NEWER (version 99000 of cuMemAlloc is another function), STUB_OTHER_POINTERS (answers differ from what dlsym
 * gives), STUB_HANDLES (handles of streams and events come again at once, and to another thread before the call that
 * destroys the first has returned; streams that are gone are refused and counted; likewise modules and contexts),
 * STUB_TAKES_CHECKS (the shim's own kernels can be loaded; they fill and look at redzones, and see no numbers),
 * STUB_ELAPSED_MS=X (what lies between any two events), STUB_FAULT_AFTER=N (launch N and all calls after it return
 * CUDA_ERROR_ILLEGAL_ADDRESS, or STUB_FAULT=CODE), STUB_KILLED_BY_ERROR (the process ends where the name of an error is
 * asked for), STUB_NOT_SHARED (host and device cannot use managed memory at once), STUB_KEEPS_MODULES
 * (they cannot be unloaded), STUB_NO_PINNING (host memory cannot be registered), STUB_REFUSES_COPY=N (the Nth copy to
 * the host in a stream's order).
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/scan.h"
#include "shim/sentinel_slots.h"

#define EXPORT __attribute__((visibility("default")))

static int fault_after = -1, launches;
static CUresult fault_code = CUDA_ERROR_ILLEGAL_ADDRESS;
static float elapsed_ms = 0.001f; /* between any two events */
static __thread CUcontext current;
static int context_storage;
static __thread CUstreamCaptureMode capture_mode;
static int capturing; /* 2: invalidated */
static CUstream capturing_stream;
static int running[2]; /* kernels since the host has waited: in the legacy stream, in others */

struct object {
    char name[64];
    bool own, overruns; /* one of the shim's kernels; one that writes, see cuLaunchKernel */
};

/* How often functions of interest were called, for tests: stub_count("cuMemAlloc_v2"). */
static int count_alloc, count_free, count_launch, count_sync, count_init;
static int asked_early; /* cuFuncGetParamInfo before any launch */
static int enqueued,
    was_chained;    /* work put into streams since the last launch, and whether that was a dependent one */
static int dead;    /* atomic: work that was put into a stream which is gone, or is being destroyed */
static int between; /* such work between two dependent launches */
EXPORT int stub_count(const char *what);
EXPORT int stub_count(const char *what)
{
    if (strcmp(what, "cuMemAlloc_v2") == 0)
        return count_alloc;
    if (strcmp(what, "cuMemFree_v2") == 0)
        return count_free;
    if (strcmp(what, "cuLaunchKernel") == 0)
        return count_launch;
    if (strcmp(what, "cuStreamSynchronize") == 0)
        return count_sync;
    if (strcmp(what, "asked early") == 0)
        return asked_early;
    if (strcmp(what, "dead") == 0)
        return dead;
    if (strcmp(what, "between") == 0)
        return between;
    if (strcmp(what, "running") == 0)
        return running[0] + running[1];
    return strcmp(what, "cuInit") == 0 ? count_init : -1;
}

/* What other threads must not do while one captures in global mode. */
static void unsafe(void)
{
    if (capturing && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
        capturing = 2;
}

/* ---- with STUB_HANDLES ---- */

enum { HANDLES = 64 };
static struct handle {
    int alive;
} handles[HANDLES]; /* streams and events; the lowest free one is given out */
static pthread_mutex_t handles_lock = PTHREAD_MUTEX_INITIALIZER;

static bool keeps_handles(void)
{
    static int answer; /* 0: not asked */
    if (!answer)
        answer = getenv("STUB_HANDLES") ? 1 : -1;
    return answer > 0;
}

static void *new_handle(size_t bytes)
{
    struct handle *h = NULL;
    if (!keeps_handles())
        return malloc(bytes);
    pthread_mutex_lock(&handles_lock);
    for (int i = 0; i < HANDLES && !h; i++)
        if (!handles[i].alive) {
            h = &handles[i];
            h->alive = 1;
        }
    pthread_mutex_unlock(&handles_lock);
    return h;
}

static CUresult stream_state(CUstream stream)
{
    if (!keeps_handles() || !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
        ((struct handle *)stream)->alive)
        return CUDA_SUCCESS;
    __atomic_fetch_add(&dead, 1, __ATOMIC_RELAXED);
    return CUDA_ERROR_INVALID_HANDLE;
}

static void *make_stream(void *unused)
{
    CUstream stream;
    __typeof__(&cuStreamCreate) create = (__typeof__(&cuStreamCreate))dlsym(RTLD_DEFAULT, "cuStreamCreate");
    if (!create)
        create = (__typeof__(&cuStreamCreate))dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuStreamCreate");
    create(&stream, CU_STREAM_NON_BLOCKING);
    return NULL;
}

static void *make_event(void *unused)
{
    CUevent event;
    __typeof__(&cuEventCreate) create = (__typeof__(&cuEventCreate))dlsym(RTLD_DEFAULT, "cuEventCreate");
    if (!create)
        create = (__typeof__(&cuEventCreate))dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuEventCreate");
    create(&event, CU_EVENT_DISABLE_TIMING);
    return NULL;
}

static void make_in_thread(void *(*make)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, make, NULL) == 0)
        pthread_join(thread, NULL);
}

/* Frees it; another thread gets it while the caller is still on its way back. */
static void drop_handle(void *handle, void *(*make)(void *))
{
    if (!keeps_handles()) {
        free(handle);
        return;
    }
    __atomic_store_n(&((struct handle *)handle)->alive, 0, __ATOMIC_RELEASE);
    usleep(2000);
    make_in_thread(make);
}

/* What the program wants to be done by another thread while its call that ends a module or a context returns. */
EXPORT void (*stub_meanwhile)(void);
void (*stub_meanwhile)(void);

static void *meanwhile(void *unused)
{
    stub_meanwhile();
    return NULL;
}

/* A function that no header has. */
EXPORT int cuStubOnlyFunction(int value);
EXPORT int cuStubOnlyFunction(int value)
{
    return value + 1;
}

static CUresult device_state(void)
{
    return fault_after >= 0 && launches >= fault_after ? fault_code : CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned int Flags)
{
    static __thread bool inside;
    count_init++;
    const char *fault = getenv("STUB_FAULT_AFTER"), *took = getenv("STUB_ELAPSED_MS");
    elapsed_ms = took ? strtof(took, NULL) : elapsed_ms;
    fault_after = fault ? atoi(fault) : -1;
    fault_code = getenv("STUB_FAULT") ? (CUresult)atoi(getenv("STUB_FAULT")) : CUDA_ERROR_ILLEGAL_ADDRESS;
    if (getenv("STUB_REENTER") && !inside) {
        inside = true;
        /* What a real driver was seen to do: the look-up must find this function again, not a wrapper that waits for
         * us. */
        CUresult (*again)(unsigned) = (CUresult(*)(unsigned))dlsym(RTLD_DEFAULT, "cuInit");
        CUresult result = again ? again(Flags) : CUDA_ERROR_UNKNOWN;
        inside = false;
        return result;
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    snprintf(name, (size_t)bytes, "stub");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS ? !getenv("STUB_NOT_SHARED") : 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    *bytes = (size_t)1 << 34;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = current = (CUcontext)&context_storage;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = (CUcontext)&context_storage;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    current = NULL;
    if (stub_meanwhile)
        make_in_thread(meanwhile);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    count_alloc++;
    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    void *memory = aligned_alloc(256, (bytes + 255) & ~(size_t)255);
    *pointer = (CUdeviceptr)(uintptr_t)memory;
    return memory ? device_state() : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult newer_alloc(CUdeviceptr *pointer, size_t bytes)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult other_alloc(CUdeviceptr *pointer, size_t bytes)
{
    count_alloc--; /* counted once, inside */
    count_alloc++;
    return cuMemAlloc_v2(pointer, bytes);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    count_free++;
    if (pointer & 255)
        return CUDA_ERROR_INVALID_VALUE;
    free((void *)(uintptr_t)pointer);
    return device_state();
}

EXPORT CUresult cuMemGetInfo_v2(size_t *unused, size_t *total)
{
    *unused = (size_t)1 << 33;
    *total = (size_t)1 << 34;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    *pointer = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    return *pointer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuMemFreeHost(void *pointer)
{
    free(pointer);
    return CUDA_SUCCESS;
}

/* Page by page, so that the program can forbid itself, and us, to touch it. */
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
    void *memory = pointer && bytes ? aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095) : NULL;
    if (!memory || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    *pointer = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, size_t bytes, unsigned int flags)
{
    return pointer & 4095 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *pointer)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
    unsafe();
    if (getenv("STUB_NO_PINNING"))
        return CUDA_ERROR_NOT_SUPPORTED;
    return pointer && bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags)
{
    *device = (CUdeviceptr)(uintptr_t)host;
    return CUDA_SUCCESS;
}

static CUresult copy(void *target, const void *source, size_t bytes)
{
    enqueued++;
    CUresult state = device_state();
    if (state == CUDA_SUCCESS && bytes)
        memmove(target, source, bytes);
    return state;
}

EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t bytes)
{
    running[0] = running[1] = 0;
    return copy((void *)(uintptr_t)target, source, bytes);
}

EXPORT CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t bytes)
{
    return copy(target, (void *)(uintptr_t)source, bytes);
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t bytes, CUstream stream)
{
    return copy((void *)(uintptr_t)target, source, bytes);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    static int copies;
    const char *refused = getenv("STUB_REFUSES_COPY");
    if (refused && ++copies == atoi(refused))
        return CUDA_ERROR_INVALID_VALUE;
    return copy(target, (void *)(uintptr_t)source, bytes);
}

EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *shape)
{
    return shape ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr target, const void *source, size_t bytes)
{
    return copy((void *)(uintptr_t)target, source, bytes);
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr target, unsigned int value, size_t count, CUstream stream)
{
    enqueued++;
    running[stream != NULL]++;
    CUresult state = stream_state(stream) ? CUDA_ERROR_INVALID_HANDLE : device_state();
    for (size_t i = 0; state == CUDA_SUCCESS && i < count; i++)
        ((uint32_t *)(uintptr_t)target)[i] = value;
    return state;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    *stream = new_handle(64);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    if (stream_state(stream) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    if (capturing && capturing_stream == stream)
        capturing = 0;
    drop_handle(stream, make_stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    count_sync++;
    if (capturing && (stream == capturing_stream || capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED)) {
        capturing = 2; /* synchronising invalidates the capture */
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    running[stream != NULL] = 0;
    return device_state();
}

EXPORT CUresult cuStreamQuery(CUstream stream)
{
    return device_state();
}

EXPORT CUresult cuCtxSynchronize(void)
{
    running[0] = running[1] = 0;
    return device_state();
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    capturing = 1;
    capturing_stream = stream;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    if (!graph) /* it goes on */
        return CUDA_ERROR_INVALID_VALUE;
    if (!capturing)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (stream != capturing_stream)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    CUresult result = capturing == 1 ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    capturing = 0;
    *graph = NULL;
    return result;
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    *status = capturing && stream == capturing_stream ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    *event = new_handle(16);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    drop_handle(event, make_event);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    enqueued++;
    if (capturing && stream == capturing_stream)
        capturing = 2;
    return device_state();
}

EXPORT CUresult cuEventQuery(CUevent event)
{
    return device_state();
}

/* Of all events that wait is meant which has nothing behind it. */
EXPORT CUresult cuEventSynchronize(CUevent event)
{
    running[0] = running[1] = 0;
    return device_state();
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end)
{
    *milliseconds = elapsed_ms;
    return device_state();
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    if (!image)
        return CUDA_ERROR_INVALID_VALUE;
    /* The shim's own kernels cannot run here: refusing them makes it look by copies. */
    static char own[16]; /* never unloaded */
    bool ours = strstr(image, "opsdebug_") != NULL;
    if (ours && !getenv("STUB_TAKES_CHECKS"))
        return CUDA_ERROR_INVALID_PTX;
    *module = ours ? (CUmodule)(void *)own : (CUmodule)new_handle(16);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    if (getenv("STUB_KEEPS_MODULES"))
        return CUDA_ERROR_NOT_PERMITTED;
    if (keeps_handles())
        ((struct handle *)module)->alive = 0;
    else
        free(module);
    if (stub_meanwhile)
        make_in_thread(meanwhile);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    if (!function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    struct object *object = calloc(1, sizeof *object);
    snprintf(object->name, sizeof object->name, "%s", name);
    object->own = strncmp(name, "opsdebug_", 9) == 0;
    object->overruns = strcmp(name, "overrun") == 0;
    *function = (CUfunction)object;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name)
{
    return CUDA_ERROR_NOT_FOUND;
}

/* ---- the shim's kernels, with STUB_TAKES_CHECKS: what they do is in check.ptx and scan.ptx ---- */

static uint8_t pattern(uint32_t id, uint64_t address)
{
    return address & 1 ? (uint8_t)(0x7f | (id >> (address >> 1 & 31) & 1) << 7) : 0xff;
}

static uint64_t argument(void **params, int i, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, params[i], bytes);
    return value;
}

static void look(struct check_entry *e)
{
    uint8_t *at = (uint8_t *)(uintptr_t)e->address;
    uint32_t damaged = 0;
    for (uint32_t i = 0; i < e->bytes; i++) {
        if (at[i] == pattern(e->id, e->address + i))
            continue;
        e->first = damaged++ ? e->first : i;
        e->last = i;
        if (i - e->first < CHECK_FOUND)
            e->found[i - e->first] = at[i];
        at[i] = pattern(e->id, e->address + i);
    }
    __atomic_store_n(&e->state, damaged ? CHECK_DAMAGED : CHECK_INTACT, __ATOMIC_RELEASE);
}

static void run_own(const char *name, void **params)
{
    uint64_t at = argument(params, 0, 8), count = argument(params, 1, 4);
    uint64_t last = strcmp(name, "opsdebug_check") == 0 ? 0 : argument(params, 2, 4);
    if (strcmp(name, "opsdebug_fill") == 0) {
        for (uint64_t i = 0; i < count; i++)
            ((uint8_t *)(uintptr_t)at)[i] = pattern((uint32_t)last, at + i);
    } else if (strcmp(name, "opsdebug_check") == 0) {
        for (uint64_t i = 0; i < count; i++)
            look(&((struct check_entry *)(uintptr_t)at)[i]);
    } else {
        struct scan_entry *entries = (struct scan_entry *)(uintptr_t)at;
        for (uint64_t i = 0; i < count; i++)
            *(last ? &entries[i].after.state : &entries[i].before.state) = 1;
    }
}

static CUresult launch(CUfunction f, unsigned x, unsigned y, unsigned z, CUstream stream)
{
    running[stream != NULL]++;
    if (f && ((const struct object *)f)->own) {
        enqueued++;
        return device_state();
    }
    count_launch++;
    enqueued = was_chained = 0;
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!x || !y || !z)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult state = device_state();
    launches++;
    /* A kernel named overrun_N writes N bytes behind the allocation that its first argument names. */
    return state;
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                               unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
                               unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
    if (stream_state(hStream) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = launch(f, gridDimX, gridDimY, gridDimZ, hStream);
    const struct object *object = (const struct object *)f;
    if (result == CUDA_SUCCESS && object->own)
        run_own(object->name, kernelParams);
    if (result == CUDA_SUCCESS && !capturing && object->overruns && kernelParams) {
        /* Its arguments: an address and how many bytes it sets there. */
        uint64_t at = *(uint64_t *)kernelParams[0];
        uint32_t bytes = *(uint32_t *)kernelParams[1];
        memset((void *)(uintptr_t)at, 0x5a, bytes);
    }
    return result;
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    if (!f)
        return CUDA_ERROR_INVALID_HANDLE;
    bool chained = false;
    for (unsigned i = 0; i < config->numAttrs; i++)
        chained = chained || config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    if (chained && was_chained)
        between += enqueued;
    CUresult result = launch(f, config->gridDimX, config->gridDimY, config->gridDimZ, config->hStream);
    was_chained = chained;
    return result;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *bytes)
{
    asked_early += count_launch == 0;
    *offset = 0;
    *bytes = 8;
    return index ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name)
{
    if (getenv("STUB_KILLED_BY_ERROR"))
        kill(getpid(), SIGKILL);
    *name = error == CUDA_ERROR_INVALID_VALUE     ? "CUDA_ERROR_INVALID_VALUE"
            : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                                  : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}

struct row {
    const char *symbol, *name;
    int since;
    bool per_thread;
};
static const struct row rows[] = {
#define HOOK(symbol, name, since, kind) {#symbol, name, since, (kind) == HOOK_PER_THREAD},
#define RUNTIME_HOOK(symbol)
#include "shim/hooks.def"
    {"cuDriverGetVersion", "cuDriverGetVersion", 2020, false},
};

static CUresult find(const char *name, void **function, int version, cuuint64_t flags)
{
    const struct row *best = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0 && rows[i].since <= version && (!rows[i].per_thread || (flags & 2)) &&
            (!best || (rows[i].per_thread && !best->per_thread) ||
             (rows[i].since > best->since && rows[i].per_thread == best->per_thread)))
            best = &rows[i];
    *function = NULL;
    if (strcmp(name, "cuMemAlloc") == 0 && version >= 99000 && getenv("STUB_NEWER"))
        *function = (void *)newer_alloc;
    else if (strcmp(name, "cuMemAlloc") == 0 && version >= 3020 && getenv("STUB_OTHER_POINTERS"))
        *function = (void *)other_alloc;
    else if (best) {
        void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        *function = dlsym(self, best->symbol); /* through whatever dlsym the process has */
        dlclose(self);
    }
    return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    return find(name, function, version, flags);
}

#ifndef STUB_WITHOUT_PROC_V2
EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
    CUresult result = find(name, function, version, flags);
    if (status)
        *status = result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return result;
}
#endif
