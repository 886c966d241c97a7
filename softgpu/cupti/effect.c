/* What the driver's functions do beyond themselves, told by their arguments: everything, the runtime included, goes
 * through them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/map.h"
#include "softgpu/cupti/tracer.h"

enum effect {
    NONE,
    INIT,
    CONTEXT_NEW, /* first parameter: where the handle is */
    CONTEXT_END, /* first parameter: the handle */
    PRIMARY_RELEASE,
    PRIMARY_RESET,
    STREAM_NEW,
    STREAM_END,
    MODULE_NEW,
    MODULE_END,
    EVENT_END,
    EVENT_RECORD, /* event, stream */
    EVENT_RECORD_OWN,
    EVENT_SYNC,
    EVENT_WAIT, /* stream, event */
    EVENT_WAIT_OWN,
    STREAM_SYNC,
    STREAM_SYNC_OWN,
    CONTEXT_SYNC,
    CONTEXT_SYNC_OF,
    ALLOCATE, /* first parameter: where the address is */
    ALLOCATE_ASYNC,
    RELEASE, /* first parameter: the address */
    RELEASE_ASYNC,
};

static const uint8_t effects[CUPTI_DRIVER_TRACE_CBID_SIZE] = {
#define ROW(function, effect) [CUPTI_DRIVER_TRACE_CBID_##function] = effect
    ROW(cuInit, INIT),
    ROW(cuCtxCreate, CONTEXT_NEW),
    ROW(cuCtxCreate_v2, CONTEXT_NEW),
    ROW(cuCtxCreate_v3, CONTEXT_NEW),
    ROW(cuCtxCreate_v4, CONTEXT_NEW),
    ROW(cuDevicePrimaryCtxRetain, CONTEXT_NEW),
    ROW(cuCtxDestroy, CONTEXT_END),
    ROW(cuCtxDestroy_v2, CONTEXT_END),
    ROW(cuDevicePrimaryCtxRelease, PRIMARY_RELEASE),
    ROW(cuDevicePrimaryCtxRelease_v2, PRIMARY_RELEASE),
    ROW(cuDevicePrimaryCtxReset, PRIMARY_RESET),
    ROW(cuDevicePrimaryCtxReset_v2, PRIMARY_RESET),
    ROW(cuStreamCreate, STREAM_NEW),
    ROW(cuStreamCreateWithPriority, STREAM_NEW),
    ROW(cuStreamDestroy, STREAM_END),
    ROW(cuStreamDestroy_v2, STREAM_END),
    ROW(cuModuleLoad, MODULE_NEW),
    ROW(cuModuleLoadData, MODULE_NEW),
    ROW(cuModuleLoadDataEx, MODULE_NEW),
    ROW(cuModuleLoadFatBinary, MODULE_NEW),
    ROW(cuLibraryLoadData, MODULE_NEW),
    ROW(cuLibraryLoadFromFile, MODULE_NEW),
    ROW(cuModuleUnload, MODULE_END),
    ROW(cuLibraryUnload, MODULE_END),
    ROW(cuEventDestroy, EVENT_END),
    ROW(cuEventDestroy_v2, EVENT_END),
    ROW(cuEventRecord, EVENT_RECORD),
    ROW(cuEventRecordWithFlags, EVENT_RECORD),
    ROW(cuEventRecord_ptsz, EVENT_RECORD_OWN),
    ROW(cuEventRecordWithFlags_ptsz, EVENT_RECORD_OWN),
    ROW(cuEventSynchronize, EVENT_SYNC),
    ROW(cuStreamWaitEvent, EVENT_WAIT),
    ROW(cuStreamWaitEvent_ptsz, EVENT_WAIT_OWN),
    ROW(cuStreamSynchronize, STREAM_SYNC),
    ROW(cuStreamSynchronize_ptsz, STREAM_SYNC_OWN),
    ROW(cuCtxSynchronize, CONTEXT_SYNC),
    ROW(cuCtxSynchronize_v2, CONTEXT_SYNC_OF),
    ROW(cuMemAlloc_v2, ALLOCATE),
    ROW(cuMemAllocManaged, ALLOCATE),
    ROW(cuMemAllocPitch_v2, ALLOCATE),
    ROW(cuMemAllocHost_v2, ALLOCATE),
    ROW(cuMemHostAlloc, ALLOCATE),
    ROW(cuMemAllocAsync, ALLOCATE_ASYNC),
    ROW(cuMemAllocAsync_ptsz, ALLOCATE_ASYNC),
    ROW(cuMemAllocFromPoolAsync, ALLOCATE_ASYNC),
    ROW(cuMemAllocFromPoolAsync_ptsz, ALLOCATE_ASYNC),
    ROW(cuMemFree_v2, RELEASE),
    ROW(cuMemFreeHost, RELEASE),
    ROW(cuMemFreeAsync, RELEASE_ASYNC),
    ROW(cuMemFreeAsync_ptsz, RELEASE_ASYNC),
#undef ROW
};

/* ---- parameters ------------------------------------------------------------------------------------------------- */

/* Handles and addresses are one word each. */
static uint64_t word(const struct trace_call *call, size_t index)
{
    uint64_t value;
    memcpy(&value, (const char *)call->params + index * sizeof value, sizeof value);
    return value;
}

/* What the first parameter points to. */
static uint64_t result_word(const struct trace_call *call)
{
    uint64_t value = 0;
    const void *where = (const void *)(uintptr_t)word(call, 0);
    if (where)
        memcpy(&value, where, sizeof value);
    return value;
}

static uint32_t current_context(CUcontext *handle)
{
    uint32_t id;
    attach_driver()->context(NULL, handle, &id);
    return id;
}

static CUstream stream_of(uint64_t handle, bool own)
{
    return !handle && own ? CU_STREAM_PER_THREAD : (CUstream)(uintptr_t)handle;
}

/* ---- what is alive ---------------------------------------------------------------------------------------------- */

struct event {
    uint32_t id;
    uint64_t records; /* how often it was recorded: CUPTI's synchronisation id */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map contexts; /* those that were announced */
static struct map modules;  /* handle to id */
static struct map events;   /* handle to id << 32 | records */
static uint32_t last_module, last_event;
static atomic_bool init_told;

static void know_context(CUcontext handle, uint32_t id, void *data)
{
    map_put(&contexts, (uintptr_t)handle, id);
}

void effect_attach(void)
{
    atomic_store(&init_told, attach_driver()->initialised());
    pthread_mutex_lock(&lock);
    map_free(&contexts);
    contexts = (struct map){0};
    attach_driver()->contexts(know_context, NULL);
    pthread_mutex_unlock(&lock);
}

static bool context_is_new(CUcontext handle, uint32_t id)
{
    uint64_t known;
    pthread_mutex_lock(&lock);
    bool fresh = !map_get(&contexts, (uintptr_t)handle, &known);
    if (fresh)
        map_put(&contexts, (uintptr_t)handle, id);
    pthread_mutex_unlock(&lock);
    return fresh;
}

static bool context_was_known(CUcontext handle)
{
    pthread_mutex_lock(&lock);
    bool known = map_remove(&contexts, (uintptr_t)handle);
    pthread_mutex_unlock(&lock);
    return known;
}

static uint32_t module_id(uint64_t handle, bool fresh)
{
    uint64_t id = 0;
    pthread_mutex_lock(&lock);
    if (fresh || !map_get(&modules, handle, &id)) {
        id = ++last_module;
        map_put(&modules, handle, id);
    }
    pthread_mutex_unlock(&lock);
    return (uint32_t)id;
}

static void forget(struct map *map, uint64_t handle)
{
    pthread_mutex_lock(&lock);
    map_remove(map, handle);
    pthread_mutex_unlock(&lock);
}

static struct event event_of(uint64_t handle, bool recorded)
{
    uint64_t value;
    pthread_mutex_lock(&lock);
    if (!map_get(&events, handle, &value))
        value = (uint64_t)++last_event << 32;
    if (recorded)
        value++;
    map_put(&events, handle, value);
    pthread_mutex_unlock(&lock);
    return (struct event){(uint32_t)(value >> 32), (uint32_t)value};
}

/* ---- records and callbacks of resources ------------------------------------------------------------------------- */

static void write_stream(const struct trace_stream *s, uint32_t correlation)
{
    CUpti_ActivityStream record = {.kind = CUPTI_ACTIVITY_KIND_STREAM,
                                   .contextId = s->context,
                                   .streamId = s->id,
                                   .priority = (uint32_t)s->priority,
                                   .flag = s->null_stream    ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL
                                           : s->non_blocking ? CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING
                                                             : CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT,
                                   .correlationId = correlation};
    if (activity_on(CUPTI_ACTIVITY_KIND_STREAM, s->context))
        buffer_write(&record);
}

static void write_context(CUcontext handle, uint32_t id)
{
    struct trace_stream null_stream = {0};
    int processors = 0;
    CUresult (*get)(int *, CUdevice_attribute, CUdevice) = NULL;
    *(void **)&get = attach_function("cuDeviceGetAttribute");
    attach_driver()->stream(handle, CU_STREAM_LEGACY, &null_stream);
    self.busy++;
    if (get)
        get(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    self.busy--;
    CUpti_ActivityContext3 record = {.kind = CUPTI_ACTIVITY_KIND_CONTEXT,
                                     .contextId = id,
                                     .deviceId = 0,
                                     .computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA,
                                     .nullStreamId = (uint16_t)null_stream.id,
                                     .parentContextId = CUPTI_INVALID_CONTEXT_ID,
                                     .numMultiprocessors = (uint16_t)processors};
    if (activity_on(CUPTI_ACTIVITY_KIND_CONTEXT, id))
        buffer_write(&record);
}

static void resource(CUpti_CallbackIdResource what, CUcontext context, CUstream stream, void *descriptor)
{
    CUpti_ResourceData data = {
        .context = context, .resourceHandle = {.stream = stream}, .resourceDescriptor = descriptor};
    callback_issue(CUPTI_CB_DOMAIN_RESOURCE, what, &data);
}

static void context_new(CUcontext context, uint32_t correlation)
{
    CUcontext handle;
    uint32_t id;
    struct trace_stream null_stream;
    if (!attach_driver()->context(context, &handle, &id) || !context_is_new(handle, id))
        return;
    write_context(handle, id);
    if (attach_driver()->stream(handle, CU_STREAM_LEGACY, &null_stream))
        write_stream(&null_stream, correlation);
    resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, handle, NULL, NULL);
}

static void context_end(CUcontext handle)
{
    if (handle && context_was_known(handle))
        resource(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, handle, NULL, NULL);
}

static void stream_new(CUstream stream, uint32_t correlation)
{
    struct trace_stream found;
    CUcontext handle;
    current_context(&handle);
    if (attach_driver()->stream(NULL, stream, &found))
        write_stream(&found, correlation);
    resource(CUPTI_CBID_RESOURCE_STREAM_CREATED, handle, stream, NULL);
}

static void stream_end(CUstream stream)
{
    struct trace_stream found;
    CUcontext handle;
    current_context(&handle);
    if (attach_driver()->stream(NULL, stream, &found))
        resource(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, handle, stream, NULL);
}

/* There is no machine code to show. */
static void module(CUpti_CallbackIdResource what, uint64_t handle)
{
    CUcontext context;
    uint32_t context_id = current_context(&context), id = module_id(handle, what == CUPTI_CBID_RESOURCE_MODULE_LOADED);
    CUpti_ModuleResourceData data = {.moduleId = id};
    CUpti_ActivityModule record = {.kind = CUPTI_ACTIVITY_KIND_MODULE, .contextId = context_id, .id = id};
    if (what == CUPTI_CBID_RESOURCE_MODULE_LOADED && activity_on(CUPTI_ACTIVITY_KIND_MODULE, context_id))
        buffer_write(&record);
    resource(what, context, NULL, &data);
    if (what == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING)
        forget(&modules, handle);
}

/* ---- synchronisation and memory --------------------------------------------------------------------------------- */

struct sync {
    CUpti_ActivitySynchronizationType type;
    CUstream stream;
    bool has_stream;
    uint64_t event; /* handle or 0 */
};

static void synchronised(const struct trace_call *call, const struct call_state *state, uint64_t end,
                         const struct sync *sync)
{
    struct trace_stream stream = {.id = CUPTI_SYNCHRONIZATION_INVALID_VALUE};
    struct event event = {.id = CUPTI_SYNCHRONIZATION_INVALID_VALUE};
    CUcontext handle;
    uint32_t context = current_context(&handle);
    if (sync->has_stream)
        attach_driver()->stream(NULL, sync->stream, &stream);
    if (sync->event)
        event = event_of(sync->event, false);
    CUpti_ActivitySynchronization2 record = {.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                             .type = sync->type,
                                             .start = state->start,
                                             .end = end,
                                             .correlationId = state->correlation,
                                             .contextId = context,
                                             .streamId = stream.id,
                                             .cudaEventId = event.id,
                                             .cudaEventSyncId = event.records,
                                             .returnValue = (uint32_t)call->result};
    if (activity_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, context))
        buffer_write(&record);
    CUpti_SynchronizeData data = {.context = handle, .stream = sync->stream};
    if (call->result == CUDA_SUCCESS && sync->type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE)
        callback_issue(CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED, &data);
    if (call->result == CUDA_SUCCESS && sync->type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE)
        callback_issue(CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED, &data);
}

static void event_recorded(uint64_t handle, CUstream stream, uint32_t correlation)
{
    struct trace_stream found = {0};
    CUcontext current;
    uint32_t context = current_context(&current);
    struct event event = event_of(handle, true);
    attach_driver()->stream(NULL, stream, &found);
    CUpti_ActivityCudaEvent2 record = {.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                       .correlationId = correlation,
                                       .contextId = context,
                                       .streamId = found.id,
                                       .eventId = event.id,
                                       .cudaEventSyncId = event.records};
    if (activity_on(CUPTI_ACTIVITY_KIND_CUDA_EVENT, context))
        buffer_write(&record);
}

static void memory(CUpti_ActivityMemoryOperationType operation, uint64_t address, const struct call_state *state,
                   uint64_t end, const struct trace_call *call, bool async)
{
    static const CUpti_ActivityMemoryKind kinds[] = {
        [TRACE_PAGEABLE] = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, [TRACE_PINNED] = CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
        [TRACE_DEVICE] = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,     [TRACE_ARRAY] = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY,
        [TRACE_MANAGED] = CUPTI_ACTIVITY_MEMORY_KIND_MANAGED,
    };
    CUcontext handle;
    uint32_t context = current_context(&handle);
    if (!activity_on(CUPTI_ACTIVITY_KIND_MEMORY2, context))
        return;
    struct trace_stream stream = {.id = CUPTI_INVALID_STREAM_ID};
    if (async) {
        /* The stream is the last parameter: of three, four with a pool, or two when memory is freed. */
        const char *name = call->site->name;
        size_t at = strstr(name, "FromPool") ? 3 : operation == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE ? 1 : 2;
        attach_driver()->stream(NULL, stream_of(word(call, at), strstr(name, "_ptsz") != NULL), &stream);
    }
    CUpti_ActivityMemory4 record = {.kind = CUPTI_ACTIVITY_KIND_MEMORY2,
                                    .memoryOperationType = operation,
                                    .memoryKind = kinds[state->note],
                                    .correlationId = state->correlation,
                                    .address = address,
                                    .bytes = state->bytes,
                                    .timestamp = end,
                                    .processId = (uint32_t)getpid(),
                                    .contextId = context,
                                    .streamId = stream.id,
                                    .isAsync = async};
    buffer_write(&record);
}

/* Size and kind of an allocation; false when there is none. */
static bool look_up(uint64_t address, struct call_state *state)
{
    enum trace_memory kind = TRACE_DEVICE;
    bool found = attach_driver()->allocation(address, &state->bytes, &kind);
    state->address = address;
    state->note = kind;
    return found;
}

/* ---- before and after a call ------------------------------------------------------------------------------------ */

void effect_before(const struct trace_call *call, struct call_state *state)
{
    CUcontext primary;
    switch (effects[state->id]) {
    case CONTEXT_END:
        context_end((CUcontext)(uintptr_t)word(call, 0));
        break;
    case PRIMARY_RELEASE:
        if (attach_driver()->primary(&primary) == 1)
            context_end(primary);
        break;
    case PRIMARY_RESET:
        if (attach_driver()->primary(&primary))
            context_end(primary);
        break;
    case STREAM_END:
        stream_end((CUstream)(uintptr_t)word(call, 0));
        break;
    case MODULE_END:
        module(CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, word(call, 0));
        break;
    case EVENT_END:
        forget(&events, word(call, 0));
        break;
    case RELEASE:
    case RELEASE_ASYNC:
        look_up(word(call, 0), state);
        break;
    default:
        break;
    }
}

/* Waits are worth a record also when they failed. */
static void after_wait(const struct trace_call *call, const struct call_state *state, uint64_t end)
{
    struct sync sync = {.has_stream = true};
    switch (effects[state->id]) {
    case EVENT_SYNC:
        sync = (struct sync){.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, .event = word(call, 0)};
        break;
    case EVENT_WAIT:
    case EVENT_WAIT_OWN:
        sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
        sync.stream = stream_of(word(call, 0), effects[state->id] == EVENT_WAIT_OWN);
        sync.event = word(call, 1);
        break;
    case STREAM_SYNC:
    case STREAM_SYNC_OWN:
        sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
        sync.stream = stream_of(word(call, 0), effects[state->id] == STREAM_SYNC_OWN);
        break;
    case CONTEXT_SYNC:
    case CONTEXT_SYNC_OF:
        sync = (struct sync){.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE};
        break;
    default:
        return;
    }
    synchronised(call, state, end, &sync);
}

void effect_after(const struct trace_call *call, struct call_state *state, uint64_t end)
{
    after_wait(call, state, end);
    if (call->result != CUDA_SUCCESS)
        return;
    switch (effects[state->id]) {
    case INIT:
        if (!atomic_exchange(&init_told, true)) {
            if (activity_on(CUPTI_ACTIVITY_KIND_DEVICE, 0))
                device_write_all();
            resource(CUPTI_CBID_RESOURCE_CU_INIT_FINISHED, NULL, NULL, NULL);
        }
        break;
    case CONTEXT_NEW:
        context_new((CUcontext)(uintptr_t)result_word(call), state->correlation);
        break;
    case STREAM_NEW:
        stream_new((CUstream)(uintptr_t)result_word(call), state->correlation);
        break;
    case MODULE_NEW:
        module(CUPTI_CBID_RESOURCE_MODULE_LOADED, result_word(call));
        break;
    case EVENT_RECORD:
    case EVENT_RECORD_OWN:
        event_recorded(word(call, 0), stream_of(word(call, 1), effects[state->id] == EVENT_RECORD_OWN),
                       state->correlation);
        break;
    case ALLOCATE:
    case ALLOCATE_ASYNC:
        if (look_up(result_word(call), state))
            memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, state->address, state, end, call,
                   effects[state->id] == ALLOCATE_ASYNC);
        break;
    case RELEASE:
    case RELEASE_ASYNC:
        if (state->address)
            memory(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, state->address, state, end, call,
                   effects[state->id] == RELEASE_ASYNC);
        break;
    default:
        break;
    }
}

/* ---- what is there already -------------------------------------------------------------------------------------- */

static void dump_stream(const struct trace_stream *stream, void *data)
{
    write_stream(stream, CUPTI_CORRELATION_ID_UNKNOWN);
}

static void dump_context(CUcontext handle, uint32_t id, void *data)
{
    CUpti_ActivityKind kind = *(const CUpti_ActivityKind *)data;
    if (kind == CUPTI_ACTIVITY_KIND_CONTEXT)
        write_context(handle, id);
    else
        attach_driver()->streams(handle, dump_stream, NULL);
}

void effect_dump(CUpti_ActivityKind kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_DEVICE && attach_driver()->initialised())
        device_write_all();
    if (kind == CUPTI_ACTIVITY_KIND_CONTEXT || kind == CUPTI_ACTIVITY_KIND_STREAM)
        attach_driver()->contexts(dump_context, &kind);
}
