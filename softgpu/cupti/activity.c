/* Which records are wanted: kinds, for all contexts or for single ones, and single API functions. */
#include <pthread.h>
#include <string.h>

#include "softgpu/cupti/tracer.h"

enum { IDS = 1024, OVERRIDES = 64 };

/* Kinds that can be had, and their records. Some never come: nothing here compiles late or names things by NVTX. */
static const size_t record_bytes[CUPTI_ACTIVITY_KIND_COUNT] = {
    [CUPTI_ACTIVITY_KIND_MEMCPY] = sizeof(CUpti_ActivityMemcpy6),
    [CUPTI_ACTIVITY_KIND_MEMCPY2] = sizeof(CUpti_ActivityMemcpyPtoP4),
    [CUPTI_ACTIVITY_KIND_MEMSET] = sizeof(CUpti_ActivityMemset4),
    [CUPTI_ACTIVITY_KIND_KERNEL] = sizeof(CUpti_ActivityKernel10),
    [CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = sizeof(CUpti_ActivityKernel10),
    [CUPTI_ACTIVITY_KIND_DRIVER] = sizeof(CUpti_ActivityAPI),
    [CUPTI_ACTIVITY_KIND_RUNTIME] = sizeof(CUpti_ActivityAPI),
    [CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API] = sizeof(CUpti_ActivityAPI),
    [CUPTI_ACTIVITY_KIND_DEVICE] = sizeof(CUpti_ActivityDevice5),
    [CUPTI_ACTIVITY_KIND_CONTEXT] = sizeof(CUpti_ActivityContext3),
    [CUPTI_ACTIVITY_KIND_STREAM] = sizeof(CUpti_ActivityStream),
    [CUPTI_ACTIVITY_KIND_NAME] = sizeof(CUpti_ActivityName),
    [CUPTI_ACTIVITY_KIND_OVERHEAD] = sizeof(CUpti_ActivityOverhead3),
    [CUPTI_ACTIVITY_KIND_SYNCHRONIZATION] = sizeof(CUpti_ActivitySynchronization2),
    [CUPTI_ACTIVITY_KIND_CUDA_EVENT] = sizeof(CUpti_ActivityCudaEvent2),
    [CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION] = sizeof(CUpti_ActivityExternalCorrelation),
    [CUPTI_ACTIVITY_KIND_MODULE] = sizeof(CUpti_ActivityModule),
    [CUPTI_ACTIVITY_KIND_GRAPH_TRACE] = sizeof(CUpti_ActivityGraphTrace2),
    [CUPTI_ACTIVITY_KIND_MEMORY2] = sizeof(CUpti_ActivityMemory4),
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool on[CUPTI_ACTIVITY_KIND_COUNT];
static atomic_bool api_on[2][IDS]; /* by side */
static atomic_bool latency;
/* What was said of single contexts, which counts more. */
static struct override {
    uint32_t context;
    CUpti_ActivityKind kind;
    bool on;
} overrides[OVERRIDES];
static atomic_uint override_count;

size_t activity_record_bytes(CUpti_ActivityKind kind)
{
    return (unsigned)kind < CUPTI_ACTIVITY_KIND_COUNT ? record_bytes[kind] : 0;
}

bool activity_latency(void)
{
    return atomic_load_explicit(&latency, memory_order_relaxed);
}

bool activity_wanted(void)
{
    if (atomic_load(&override_count))
        return true;
    for (int k = 0; k < CUPTI_ACTIVITY_KIND_COUNT; k++)
        if (atomic_load_explicit(&on[k], memory_order_relaxed))
            return true;
    for (int i = 0; i < IDS; i++)
        if (atomic_load_explicit(&api_on[0][i], memory_order_relaxed) ||
            atomic_load_explicit(&api_on[1][i], memory_order_relaxed))
            return true;
    return false;
}

/* Whether something was said of this context; *answer is what. */
static bool overridden(CUpti_ActivityKind kind, uint32_t context, bool *answer)
{
    if (!atomic_load_explicit(&override_count, memory_order_acquire) || !context)
        return false;
    bool found = false;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < atomic_load(&override_count) && !found; i++)
        if (overrides[i].context == context && overrides[i].kind == kind) {
            *answer = overrides[i].on;
            found = true;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

bool activity_on(CUpti_ActivityKind kind, uint32_t context)
{
    bool answer = false;
    return overridden(kind, context, &answer) ? answer : atomic_load_explicit(&on[kind], memory_order_relaxed);
}

bool activity_api_on(enum trace_side side, uint32_t id, uint32_t context)
{
    bool answer = false;
    CUpti_ActivityKind kind = side == TRACE_DRIVER ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
    return overridden(kind, context, &answer) ? answer : atomic_load_explicit(&api_on[side][id], memory_order_relaxed);
}

static void set_api(enum trace_side side, bool value)
{
    for (int i = 0; i < IDS; i++)
        atomic_store_explicit(&api_on[side][i], value, memory_order_relaxed);
}

void activity_reset(void)
{
    for (int k = 0; k < CUPTI_ACTIVITY_KIND_COUNT; k++)
        atomic_store(&on[k], false);
    set_api(TRACE_DRIVER, false);
    set_api(TRACE_RUNTIME, false);
    atomic_store(&override_count, 0);
    atomic_store(&latency, false);
    call_set_clock(NULL);
}

/* Kinds that need hardware, a compiler or a library that is not here are not compatible with this device. */
static CUptiResult check_kind(CUpti_ActivityKind kind)
{
    if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT)
        return failed(CUPTI_ERROR_INVALID_KIND);
    if (!attach_driver())
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    return record_bytes[kind] ? CUPTI_SUCCESS : failed(CUPTI_ERROR_NOT_COMPATIBLE);
}

/* Kernels are recorded under one of two kinds. */
static bool excluded(CUpti_ActivityKind kind)
{
    return (kind == CUPTI_ACTIVITY_KIND_KERNEL && atomic_load(&on[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL])) ||
           (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && atomic_load(&on[CUPTI_ACTIVITY_KIND_KERNEL]));
}

static CUptiResult set_kind(CUpti_ActivityKind kind, bool value)
{
    if (!value && kind > CUPTI_ACTIVITY_KIND_INVALID && kind < CUPTI_ACTIVITY_KIND_COUNT && !record_bytes[kind])
        return CUPTI_SUCCESS; /* it is off */
    CUptiResult result = check_kind(kind);
    if (result != CUPTI_SUCCESS)
        return result;
    if (value && excluded(kind))
        return failed(CUPTI_ERROR_NOT_COMPATIBLE);
    atomic_store(&on[kind], value);
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER)
        set_api(TRACE_DRIVER, value);
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME)
        set_api(TRACE_RUNTIME, value);
    return attach_update();
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    return set_kind(kind, true);
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    return set_kind(kind, false);
}

CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
    CUptiResult result = set_kind(kind, true);
    if (result == CUPTI_SUCCESS)
        effect_dump(kind);
    return result;
}

static CUptiResult set_override(CUcontext context, CUpti_ActivityKind kind, bool value)
{
    struct trace_context found;
    CUptiResult result = check_kind(kind);
    if (result != CUPTI_SUCCESS)
        return result;
    if (!context || !attach_driver()->context(context, &found))
        return failed(CUPTI_ERROR_INVALID_CONTEXT);
    pthread_mutex_lock(&lock);
    unsigned i = 0, n = atomic_load(&override_count);
    while (i < n && (overrides[i].context != found.id || overrides[i].kind != kind))
        i++;
    if (i < OVERRIDES) {
        overrides[i] = (struct override){found.id, kind, value};
        if (i == n)
            atomic_store(&override_count, n + 1);
    }
    pthread_mutex_unlock(&lock);
    return i < OVERRIDES ? attach_update() : failed(CUPTI_ERROR_OUT_OF_MEMORY);
}

CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind)
{
    return set_override(context, kind, true);
}

CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind)
{
    return set_override(context, kind, false);
}

static CUptiResult set_function(enum trace_side side, uint32_t id, uint32_t size, bool value)
{
    if (!id || id >= size)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    atomic_store(&api_on[side][id], value);
    return attach_update();
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
    return set_function(TRACE_DRIVER, cbid, CUPTI_DRIVER_TRACE_CBID_SIZE, enable != 0);
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
    return set_function(TRACE_RUNTIME, cbid, CUPTI_RUNTIME_TRACE_CBID_SIZE, enable != 0);
}

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
    atomic_store(&latency, enable != 0);
    return CUPTI_SUCCESS;
}

/* ---- attributes: they size what a GPU's profiler allocates, and are kept for the asking ------------------------- */

static struct attribute {
    size_t bytes; /* of the value */
    uint64_t value;
} attributes[] = {
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE] = {sizeof(size_t), 3200000},
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP] = {sizeof(size_t), 8388608},
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT] = {sizeof(size_t), 250},
    [CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE] = {sizeof(size_t), 25000},
    [CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT] = {sizeof(size_t), 250},
    [CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER] = {sizeof(uint8_t), 0},
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE] = {sizeof(size_t), 3},
    [CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE] = {sizeof(size_t), 3},
    [CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED] = {sizeof(uint8_t), 0},
    [CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] = {sizeof(uint8_t), 1},
    [CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS] = {sizeof(size_t), 16777216},
};

static CUptiResult attribute(CUpti_ActivityAttribute attr, const size_t *valueSize, const void *value)
{
    if (!valueSize || !value || (size_t)attr >= sizeof attributes / sizeof *attributes)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    return *valueSize < attributes[attr].bytes ? failed(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT) : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
    CUptiResult result = attribute(attr, valueSize, value);
    if (result != CUPTI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    *valueSize = attributes[attr].bytes;
    memcpy(value, &attributes[attr].value, *valueSize); /* little-endian: the low bytes */
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
    CUptiResult result = attribute(attr, valueSize, value);
    if (result != CUPTI_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    *valueSize = attributes[attr].bytes;
    attributes[attr].value = 0;
    memcpy(&attributes[attr].value, value, *valueSize);
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}
