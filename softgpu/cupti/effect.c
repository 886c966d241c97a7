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

/* The first parameter, where it is a device. */
static CUdevice device_word(const struct trace_call *call)
{
    CUdevice device;
    memcpy(&device, call->params, sizeof device);
    return device;
}

static struct trace_context current_context(void)
{
    struct trace_context context;
    attach_driver()->context(NULL, &context);
    return context;
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

static void know_context(const struct trace_context *context, void *data)
{
    map_put(&contexts, (uintptr_t)context->handle, context->id);
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

static bool context_is_new(const struct trace_context *context)
{
    uint64_t known;
    pthread_mutex_lock(&lock);
    bool fresh = !map_get(&contexts, (uintptr_t)context->handle, &known);
    if (fresh)
        map_put(&contexts, (uintptr_t)context->handle, context->id);
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

static void write_context(const struct trace_context *context)
{
    struct trace_stream null_stream = {0};
    CUdevice device = (CUdevice)context->device;
    attach_driver()->stream(context->handle, CU_STREAM_LEGACY, &null_stream);
    CUpti_ActivityContext3 record = {.kind = CUPTI_ACTIVITY_KIND_CONTEXT,
                                     .contextId = context->id,
                                     .deviceId = context->device,
                                     .computeApiKind = CUPTI_ACTIVITY_COMPUTE_API_CUDA,
                                     .nullStreamId = (uint16_t)null_stream.id,
                                     .parentContextId = CUPTI_INVALID_CONTEXT_ID,
                                     .numMultiprocessors =
                                         (uint16_t)device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)};
    if (activity_on(CUPTI_ACTIVITY_KIND_CONTEXT, context->id))
        buffer_write(&record);
}

static void resource(CUpti_CallbackIdResource what, CUcontext context, CUstream stream, void *descriptor)
{
    CUpti_ResourceData data = {
        .context = context, .resourceHandle = {.stream = stream}, .resourceDescriptor = descriptor};
    callback_issue(CUPTI_CB_DOMAIN_RESOURCE, what, &data);
}

static void context_new(CUcontext handle, uint32_t correlation)
{
    struct trace_context context;
    struct trace_stream null_stream;
    if (!attach_driver()->context(handle, &context) || !context_is_new(&context))
        return;
    write_context(&context);
    if (attach_driver()->stream(context.handle, CU_STREAM_LEGACY, &null_stream))
        write_stream(&null_stream, correlation);
    resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, context.handle, NULL, NULL);
}

static void context_end(CUcontext handle)
{
    if (handle && context_was_known(handle))
        resource(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, handle, NULL, NULL);
}

static void stream_new(CUstream stream, uint32_t correlation)
{
    struct trace_stream found;
    if (attach_driver()->stream(NULL, stream, &found))
        write_stream(&found, correlation);
    resource(CUPTI_CBID_RESOURCE_STREAM_CREATED, current_context().handle, stream, NULL);
}

static void stream_end(CUstream stream)
{
    struct trace_stream found;
    if (attach_driver()->stream(NULL, stream, &found))
        resource(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, current_context().handle, stream, NULL);
}

/* There is no machine code to show. */
static void module(CUpti_CallbackIdResource what, uint64_t handle)
{
    struct trace_context context = current_context();
    uint32_t id = module_id(handle, what == CUPTI_CBID_RESOURCE_MODULE_LOADED);
    CUpti_ModuleResourceData data = {.moduleId = id};
    CUpti_ActivityModule record = {.kind = CUPTI_ACTIVITY_KIND_MODULE, .contextId = context.id, .id = id};
    if (what == CUPTI_CBID_RESOURCE_MODULE_LOADED && activity_on(CUPTI_ACTIVITY_KIND_MODULE, context.id))
        buffer_write(&record);
    resource(what, context.handle, NULL, &data);
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
    struct trace_context context = current_context();
    if (sync->has_stream)
        attach_driver()->stream(NULL, sync->stream, &stream);
    if (sync->event)
        event = event_of(sync->event, false);
    CUpti_ActivitySynchronization2 record = {.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                             .type = sync->type,
                                             .start = state->start,
                                             .end = end,
                                             .correlationId = state->correlation,
                                             .contextId = context.id,
                                             .streamId = stream.id,
                                             .cudaEventId = event.id,
                                             .cudaEventSyncId = event.records,
                                             .returnValue = (uint32_t)call->result};
    if (activity_on(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, context.id))
        buffer_write(&record);
    CUpti_SynchronizeData data = {.context = context.handle, .stream = sync->stream};
    if (call->result == CUDA_SUCCESS && sync->type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE)
        callback_issue(CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED, &data);
    if (call->result == CUDA_SUCCESS && sync->type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE)
        callback_issue(CUPTI_CB_DOMAIN_SYNCHRONIZE, CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED, &data);
}

static void event_recorded(uint64_t handle, CUstream stream, uint32_t correlation)
{
    struct trace_stream found = {0};
    struct trace_context context = current_context();
    struct event event = event_of(handle, true);
    attach_driver()->stream(NULL, stream, &found);
    CUpti_ActivityCudaEvent2 record = {.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                       .correlationId = correlation,
                                       .contextId = context.id,
                                       .streamId = found.id,
                                       .eventId = event.id,
                                       .deviceId = context.device,
                                       .cudaEventSyncId = event.records};
    if (activity_on(CUPTI_ACTIVITY_KIND_CUDA_EVENT, context.id))
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
    struct trace_context context = current_context();
    if (!activity_on(CUPTI_ACTIVITY_KIND_MEMORY2, context.id))
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
                                    .memoryKind = kinds[state->memory],
                                    .correlationId = state->correlation,
                                    .address = address,
                                    .bytes = state->bytes,
                                    .timestamp = end,
                                    .processId = (uint32_t)getpid(),
                                    .deviceId = state->device,
                                    .contextId = context.id,
                                    .streamId = stream.id,
                                    .isAsync = async};
    buffer_write(&record);
}

/* Size and kind of an allocation; false when there is none. */
static bool look_up(uint64_t address, struct call_state *state)
{
    struct trace_allocation a = {0};
    bool found = attach_driver()->allocation(address, &a);
    state->address = found ? address : 0;
    state->bytes = a.bytes;
    state->memory = (uint16_t)a.kind;
    state->device = (uint16_t)a.device;
    return found;
}

/* ---- before and after a call ------------------------------------------------------------------------------------ */

void effect_before(const struct trace_call *call, struct call_state *state)
{
    CUcontext primary;
    graph_before(call, state);
    switch (effects[state->id]) {
    case CONTEXT_END:
        context_end((CUcontext)(uintptr_t)word(call, 0));
        break;
    case PRIMARY_RELEASE:
        if (attach_driver()->primary(device_word(call), &primary) == 1)
            context_end(primary);
        break;
    case PRIMARY_RESET:
        if (attach_driver()->primary(device_word(call), &primary))
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
    graph_after(call, state);
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

static void dump_context(const struct trace_context *context, void *data)
{
    CUpti_ActivityKind kind = *(const CUpti_ActivityKind *)data;
    if (kind == CUPTI_ACTIVITY_KIND_CONTEXT)
        write_context(context);
    else
        attach_driver()->streams(context->handle, dump_stream, NULL);
}

void effect_dump(CUpti_ActivityKind kind)
{
    if (kind == CUPTI_ACTIVITY_KIND_DEVICE && attach_driver()->initialised())
        device_write_all();
    if (kind == CUPTI_ACTIVITY_KIND_CONTEXT || kind == CUPTI_ACTIVITY_KIND_STREAM)
        attach_driver()->contexts(dump_context, &kind);
}
