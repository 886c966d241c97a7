/* Every call of an API function that is watched. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/cupti/tracer.h"

_Thread_local struct thread self;

static _Atomic uint32_t last_correlation;
static _Atomic(CUpti_TimestampCallbackFunc) clock_function;
static _Atomic int thread_id_type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;

/* ---- clock ------------------------------------------------------------------------------------------------------ */

static uint64_t ns_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Wall time, as documented, but never backwards: it is read once and goes on with the monotonic clock. */
uint64_t call_now(void)
{
    static _Atomic uint64_t offset;
    CUpti_TimestampCallbackFunc clock = atomic_load_explicit(&clock_function, memory_order_acquire);
    if (clock)
        return clock();
    uint64_t monotonic = ns_of(CLOCK_MONOTONIC), o = atomic_load_explicit(&offset, memory_order_relaxed);
    if (!o) {
        uint64_t first = ns_of(CLOCK_REALTIME) - monotonic;
        o = atomic_compare_exchange_strong(&offset, &o, first) ? first : o;
    }
    return monotonic + o;
}

void call_set_clock(CUpti_TimestampCallbackFunc clock)
{
    atomic_store(&clock_function, clock);
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

uint32_t thread_id(void)
{
    return atomic_load(&thread_id_type) == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? (uint32_t)syscall(SYS_gettid)
                                                                                : (uint32_t)pthread_self();
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    if ((unsigned)type >= CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE)
        return failed(CUPTI_ERROR_NOT_SUPPORTED);
    atomic_store(&thread_id_type, (int)type);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
    if (!type)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    *type = (CUpti_ActivityThreadIdType)atomic_load(&thread_id_type);
    return CUPTI_SUCCESS;
}

/* ---- external correlation: a stack per kind and thread ---------------------------------------------------------- */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

static void free_stacks(void *argument)
{
    struct external *stacks = argument;
    for (int k = 0; k < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; k++) {
        free(stacks[k].ids);
        stacks[k] = (struct external){0};
    }
}

static void make_key(void)
{
    pthread_key_create(&key, free_stacks);
}

static bool valid_kind(CUpti_ExternalCorrelationKind kind)
{
    return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID && kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
    if (!valid_kind(kind))
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    struct external *e = &self.external[kind];
    if (e->depth == e->capacity) {
        size_t capacity = e->capacity ? e->capacity * 2 : 16;
        uint64_t *more = realloc(e->ids, capacity * sizeof *more);
        if (!more)
            return failed(CUPTI_ERROR_OUT_OF_MEMORY);
        e->ids = more;
        e->capacity = capacity;
        pthread_once(&key_once, make_key);
        pthread_setspecific(key, self.external);
    }
    e->ids[e->depth++] = id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *lastId)
{
    if (!valid_kind(kind))
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    struct external *e = &self.external[kind];
    if (!e->depth)
        return failed(CUPTI_ERROR_QUEUE_EMPTY);
    e->depth--;
    if (lastId)
        *lastId = e->ids[e->depth];
    return CUPTI_SUCCESS;
}

void external_write(uint32_t correlation)
{
    for (int k = 0; k < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; k++) {
        const struct external *e = &self.external[k];
        if (!e->depth)
            continue;
        CUpti_ActivityExternalCorrelation record = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                                    .externalKind = (CUpti_ExternalCorrelationKind)k,
                                                    .externalId = e->ids[e->depth - 1],
                                                    .correlationId = correlation};
        buffer_write(&record);
    }
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

enum { TAG_PEER = 32 };

static uint32_t new_correlation(void)
{
    return atomic_fetch_add_explicit(&last_correlation, 1, memory_order_relaxed) + 1;
}

/* Work that no API call makes, such as a routine of cuBLAS, gets an id of its own. */
uint64_t call_tag(void)
{
    return self.depth ? self.correlation | (uint64_t)self.peer << TAG_PEER : new_correlation();
}

bool call_tag_peer(uint64_t tag)
{
    return tag >> TAG_PEER & 1;
}

static uint32_t id_of(struct trace_site *site)
{
    uint32_t id = atomic_load_explicit(&site->id, memory_order_relaxed);
    if (!id) {
        id = names_id(site);
        atomic_store_explicit(&site->id, id, memory_order_relaxed);
    }
    return id;
}

static CUpti_CallbackDomain domain_of(const struct trace_call *call)
{
    return call->site->side == TRACE_DRIVER ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API;
}

/* The kernel that a launch names, which is the first parameter or the one after the configuration. */
static const char *symbol_of(const struct trace_call *call)
{
    const char *name = call->site->name;
    if (!strstr(name, "Launch") || !strstr(name, "Kernel") || !call->params)
        return NULL;
    const void *const *parameters = call->params;
    const void *function = parameters[strstr(name, "KernelEx") != NULL];
    self.busy++;
    const char *symbol = attach_driver()->kernel_name((CUfunction)function);
    if (!symbol && call->kernel_name)
        symbol = call->kernel_name(function);
    self.busy--;
    return intern(symbol);
}

static void issue(const struct trace_call *call, struct call_state *state, CUpti_ApiCallbackSite site)
{
    CUpti_CallbackDomain domain = domain_of(call);
    if (!callback_on(domain, state->id))
        return;
    CUpti_CallbackData data = {.callbackSite = site,
                               .functionName = call->site->name,
                               .functionParams = call->params,
                               .functionReturnValue = site == CUPTI_API_EXIT ? (void *)&call->result : NULL,
                               .symbolName = symbol_of(call),
                               .correlationData = &state->data,
                               .correlationId = state->correlation};
    struct trace_context context;
    attach_driver()->context(NULL, &context);
    data.context = context.handle;
    data.contextUid = context.id;
    callback_issue(domain, state->id, &data);
}

static void enter(struct trace_call *call)
{
    struct call_state *state = (struct call_state *)call->own;
    uint32_t id = self.busy ? 0 : id_of(call->site);
    if (!id)
        return;
    *state = (struct call_state){.id = id};
    if (!self.depth++) {
        self.correlation = new_correlation();
        self.told = false;
        self.peer = strstr(call->site->name, "Peer") != NULL;
    }
    state->correlation = self.correlation;
    issue(call, state, CUPTI_API_ENTER);
    if (call->site->side == TRACE_DRIVER)
        effect_before(call, state);
    state->start = call_now();
}

static void write_api(const struct trace_call *call, const struct call_state *state, uint64_t end)
{
    struct trace_context context;
    attach_driver()->context(NULL, &context);
    if (!activity_api_on(call->site->side, state->id, context.id))
        return;
    if (!self.told && activity_on(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, context.id)) {
        external_write(state->correlation);
        self.told = true;
    }
    CUpti_ActivityAPI record = {.kind = call->site->side == TRACE_DRIVER ? CUPTI_ACTIVITY_KIND_DRIVER
                                                                         : CUPTI_ACTIVITY_KIND_RUNTIME,
                                .cbid = state->id,
                                .start = state->start,
                                .end = end,
                                .processId = (uint32_t)getpid(),
                                .threadId = thread_id(),
                                .correlationId = state->correlation,
                                .returnValue = (uint32_t)call->result};
    buffer_write(&record);
}

static void leave(struct trace_call *call)
{
    struct call_state *state = (struct call_state *)call->own;
    if (!state->id)
        return;
    uint64_t end = call_now();
    if (call->site->side == TRACE_DRIVER)
        effect_after(call, state, end);
    write_api(call, state, end);
    issue(call, state, CUPTI_API_EXIT);
    self.depth--;
}

const struct trace_hooks call_hooks = {
    .enter = enter, .exit = leave, .tag = call_tag, .now = call_now, .work = work_done};
