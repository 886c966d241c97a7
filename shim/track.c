#include "shim/track.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <opsdebug/capture.h>

#include "common/map.h"
#include "shim/alloc_table.h"
#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/health.h"
#include "shim/intern.h"
#include "shim/memory.h"
#include "shim/guard.h"
#include "shim/quarantine.h"
#include "shim/thread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map contexts, streams, events;
static struct tracked_context *first_context;
static struct tracked_stream *first_stream;
static uint64_t gone_work; /* atomic */
static uint64_t devices_seen;
static uint64_t generation = 1; /* changes whenever a handle dies, so that threads drop what they remember */

static __thread struct {
    uint64_t generation;
    CUcontext handle;
    struct tracked_context *context;
} last_context __attribute__((tls_model("initial-exec")));

/* Created streams by handle; beside them the default stream of the context that was current last. */
enum { RECENT_STREAMS = 8 };
static __thread struct recent_stream {
    uint64_t generation, key; /* of a default stream: its context's handle, one more for the thread's own */
    struct tracked_stream *stream;
} recent_streams[RECENT_STREAMS], last_default __attribute__((tls_model("initial-exec")));

static void forget_cached(void)
{
    __atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
}

static void write_device(CUdevice ordinal)
{
    char name[256] = "";
    size_t memory = 0;
    int version = 0, value[6] = {0}, reaches_host = 0;
    uint32_t host_access = CAP_HOST_ACCESS_UNKNOWN;
    static const CUdevice_attribute wanted[6] = {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,     CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
        CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
    };
    if (driver.cuDeviceGetName)
        driver.cuDeviceGetName(name, sizeof name - 1, ordinal);
    if (driver.cuDeviceTotalMem_v2)
        driver.cuDeviceTotalMem_v2(&memory, ordinal);
    if (driver.cuDriverGetVersion)
        driver.cuDriverGetVersion(&version);
    for (int i = 0; i < 6 && driver.cuDeviceGetAttribute; i++)
        driver.cuDeviceGetAttribute(&value[i], wanted[i], ordinal);
    if (driver.cuDeviceGetAttribute &&
        driver.cuDeviceGetAttribute(&reaches_host, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, ordinal) == CUDA_SUCCESS)
        host_access = reaches_host ? CAP_HOST_ACCESS_YES : CAP_HOST_ACCESS_NO;
    uint32_t text = intern_string(name);
    struct cap_device *record = capture_define(CAP_DEVICE, sizeof *record);
    if (!record)
        return;
    record->ordinal = (uint32_t)ordinal;
    record->name = text;
    record->major = (uint32_t)value[0];
    record->minor = (uint32_t)value[1];
    record->sm_count = (uint32_t)value[2];
    record->clock_khz = (uint32_t)value[3];
    record->memory_clock_khz = (uint32_t)value[4];
    record->bus_bits = (uint32_t)value[5];
    record->memory_bytes = memory;
    record->driver_version = (uint32_t)version;
    record->host_access = host_access;
    capture_commit(record);
}

static void write_context(const struct tracked_context *context, bool destroyed)
{
    struct cap_context *record = capture_define(CAP_CONTEXT, sizeof *record);
    if (!record)
        return;
    record->id = context->id;
    record->device = context->device;
    record->handle = (uint64_t)(uintptr_t)context->handle;
    record->destroyed = destroyed;
    capture_commit(record);
}

static struct tracked_context *find_context(CUcontext handle)
{
    uint64_t value;
    pthread_mutex_lock(&lock);
    struct tracked_context *found =
        map_get(&contexts, (uint64_t)(uintptr_t)handle, &value) ? (void *)(uintptr_t)value : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

struct tracked_context *track_known_context(CUcontext handle)
{
    return find_context(handle);
}

static unsigned long long unique_of(CUcontext handle)
{
    unsigned long long id = 0;
    return driver.cuCtxGetId && driver.cuCtxGetId(handle, &id) == CUDA_SUCCESS ? id : 0;
}

struct tracked_context *track_context(CUcontext handle)
{
    if (!handle)
        return NULL;
    struct tracked_context *found = find_context(handle), *fresh;
    if (found)
        return found;
    CUdevice device = 0;
    if (driver.cuCtxGetDevice)
        driver.cuCtxGetDevice(&device); /* of the current one, which is what we are asked about */
    fresh = memory_must(sizeof *fresh) ? calloc(1, sizeof *fresh) : NULL;
    if (!fresh)
        return NULL;
    fresh->handle = handle;
    fresh->unique = unique_of(handle);
    fresh->device = (uint32_t)device;
    pthread_mutex_lock(&lock);
    uint64_t value;
    bool first_of_device = device >= 0 && device < 64 && !(devices_seen >> device & 1);
    if (map_get(&contexts, (uint64_t)(uintptr_t)handle, &value)) { /* another thread was faster */
        found = (void *)(uintptr_t)value;
        first_of_device = false;
    } else if (memory_map_put(&contexts, (uint64_t)(uintptr_t)handle, (uint64_t)(uintptr_t)fresh, true)) {
        fresh->id = intern_new_id(INTERN_CONTEXT);
        fresh->next = first_context;
        first_context = fresh;
        found = fresh;
        if (first_of_device)
            devices_seen |= UINT64_C(1) << device;
        write_context(fresh, false);
    }
    pthread_mutex_unlock(&lock);
    if (found != fresh)
        free(fresh);
    if (first_of_device && found)
        write_device(device);
    return found;
}

struct tracked_context *track_current_context(void)
{
    CUcontext handle = NULL;
    if (!driver.cuCtxGetCurrent || driver.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || !handle)
        return NULL;
    uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (last_context.handle == handle && last_context.generation == now)
        return last_context.context;
    struct tracked_context *context = track_context(handle);
    last_context.handle = handle;
    last_context.generation = now;
    last_context.context = context;
    return context;
}

static void link_stream(struct tracked_stream *stream)
{
    stream->next = first_stream;
    stream->previous = NULL;
    if (first_stream)
        first_stream->previous = stream;
    __atomic_store_n(&first_stream, stream, __ATOMIC_RELEASE);
}

/* Streams that are gone and whose work may still be under way; behind the lock. */
static struct tracked_stream *unfinished;
static struct tracked_stream *gone_streams; /* kept: who holds a pointer cannot be told; linked by `previous` */

static void forget_unfinished(const struct tracked_stream *stream)
{
    struct tracked_stream **at = &unfinished;
    while (*at && *at != stream)
        at = &(*at)->next_unfinished;
    if (*at)
        __atomic_store_n(at, stream->next_unfinished, __ATOMIC_RELAXED);
}

uint64_t track_unfinished(const struct tracked_context *context, uint64_t bound)
{
    if (!__atomic_load_n(&unfinished, __ATOMIC_RELAXED))
        return bound;
    pthread_mutex_lock(&lock);
    for (struct tracked_stream *next, *s = unfinished; s; s = next) {
        uint64_t done = __atomic_load_n(&s->done_seq, __ATOMIC_RELAXED);
        next = s->next_unfinished;
        if (s->context->gone || __atomic_load_n(&s->last_work, __ATOMIC_RELAXED) <= done)
            forget_unfinished(s);
        else if (s->context == context && done < bound)
            bound = done;
    }
    pthread_mutex_unlock(&lock);
    return bound;
}

void track_context_waited(const struct tracked_context *context, uint64_t seq)
{
    if (!__atomic_load_n(&unfinished, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&lock);
    for (struct tracked_stream *s = unfinished; s; s = s->next_unfinished)
        if (s->context == context && __atomic_load_n(&s->done_seq, __ATOMIC_RELAXED) < seq)
            __atomic_store_n(&s->done_seq, seq, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

/* Out of the list, behind the lock. Whoever walks it just now may stand on it: it stays, and leads on as before. */
static void unlink_stream(struct tracked_stream *stream)
{
    uint64_t work = __atomic_load_n(&stream->last_work, __ATOMIC_RELAXED);
    if (work > gone_work)
        __atomic_store_n(&gone_work, work, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->gone, true, __ATOMIC_RELEASE);
    __atomic_store_n(stream->previous ? &stream->previous->next : &first_stream, stream->next, __ATOMIC_RELEASE);
    if (stream->next)
        stream->next->previous = stream->previous;
    stream->previous = gone_streams;
    gone_streams = stream;
    if (stream->context && work > __atomic_load_n(&stream->done_seq, __ATOMIC_RELAXED)) {
        stream->next_unfinished = unfinished;
        __atomic_store_n(&unfinished, stream, __ATOMIC_RELAXED);
    }
}

void track_context_gone(struct tracked_context *context)
{
    uint64_t value;
    if (!context || __atomic_exchange_n(&context->gone, true, __ATOMIC_ACQ_REL))
        return;
    uint64_t key = (uint64_t)(uintptr_t)context->handle;
    pthread_mutex_lock(&lock);
    if (map_get(&contexts, key, &value) && (struct tracked_context *)(uintptr_t)value == context)
        map_remove(&contexts, key);
    for (struct tracked_stream *s = first_stream; s; s = s->next)
        if (s->context == context) {
            unlink_stream(s);
            device_capture_ended(s);
            if (s->kind == CAP_STREAM_CREATED)
                map_remove(&streams, (uint64_t)(uintptr_t)s->handle);
        }
    pthread_mutex_unlock(&lock);
    forget_cached();
    health_after_teardown(context);
    quarantine_drop_context(context);
    guard_drop_context(context);
    track_modules_gone(context->id);
    alloc_table_drop(context->id, 0);
    write_context(context, true);
}

void track_context_given(CUcontext handle, bool fresh)
{
    struct tracked_context *before = find_context(handle);
    unsigned long long now = before && before->unique && !fresh ? unique_of(handle) : 0;
    if (before && (fresh || (now && now != before->unique)))
        track_context_gone(before);
}

struct tracked_context *track_first_context(void)
{
    return __atomic_load_n(&first_context, __ATOMIC_ACQUIRE);
}

struct tracked_stream *track_first_stream(void)
{
    return __atomic_load_n(&first_stream, __ATOMIC_ACQUIRE);
}

uint64_t track_gone_work(void)
{
    return __atomic_load_n(&gone_work, __ATOMIC_RELAXED);
}

bool track_stream_reachable(const struct tracked_stream *stream)
{
    return !__atomic_load_n(&stream->gone, __ATOMIC_ACQUIRE) &&
           (stream->kind != CAP_STREAM_PER_THREAD || stream->thread == shim_thread.thread_id);
}

static void write_stream(const struct tracked_stream *stream, bool destroyed)
{
    struct cap_stream *record = capture_define(CAP_STREAM, sizeof *record);
    if (!record)
        return;
    record->id = stream->id;
    record->context = stream->context ? stream->context->id : 0;
    record->kind = stream->kind;
    record->flags = stream->flags;
    record->handle = (uint64_t)(uintptr_t)stream->handle;
    record->destroyed = destroyed;
    capture_commit(record);
}

/* `replace`: the driver has just made it, so who had its handle is gone without our seeing it. */
static struct tracked_stream *add_stream(uint64_t key, const struct tracked_stream *like, bool replace)
{
    uint64_t value;
    struct tracked_stream *found = NULL, *fresh = memory_must(sizeof *fresh) ? malloc(sizeof *fresh) : NULL;
    if (!fresh)
        return NULL;
    *fresh = *like;
    pthread_mutex_lock(&lock);
    if (map_get(&streams, key, &value))
        found = (void *)(uintptr_t)value;
    if (found && replace) {
        unlink_stream(found);
        device_capture_ended(found);
        forget_cached();
        found = NULL;
    }
    if (!found && memory_map_put(&streams, key, (uint64_t)(uintptr_t)fresh, true)) {
        fresh->id = intern_new_id(INTERN_STREAM);
        link_stream(fresh);
        found = fresh;
        write_stream(fresh, false);
    }
    pthread_mutex_unlock(&lock);
    if (found != fresh)
        free(fresh);
    return found;
}

static struct tracked_stream *find_stream(uint64_t key, const struct tracked_stream *like, bool create)
{
    uint64_t value;
    thread_slow();
    pthread_mutex_lock(&lock);
    struct tracked_stream *stream = map_get(&streams, key, &value) ? (void *)(uintptr_t)value : NULL;
    pthread_mutex_unlock(&lock);
    return stream || !create ? stream : add_stream(key, like, false);
}

static void remember_stream(struct recent_stream *recent, uint64_t now, uint64_t key, struct tracked_stream *stream)
{
    if (stream)
        *recent = (struct recent_stream){now, key, stream};
}

/* They exist once per context (and thread). */
static __thread bool has_default __attribute__((tls_model("initial-exec"))); /* a default stream of its own */

/* Real handles are aligned: low bits keep keys apart. */
static uint64_t default_key(const struct tracked_context *context, bool mine)
{
    return (uint64_t)context->id << 34 | (mine ? (uint64_t)shim_thread.thread_id << 2 | 2 : 1);
}

void track_thread_ends(void)
{
    if (!has_default)
        return;
    has_default = false;
    pthread_mutex_lock(&lock);
    for (struct tracked_stream *s = first_stream; s; s = s->next)
        if (s->kind == CAP_STREAM_PER_THREAD && s->thread == shim_thread.thread_id) {
            map_remove(&streams, default_key(s->context, true));
            unlink_stream(s);
            device_capture_ended(s);
            write_stream(s, true);
        }
    pthread_mutex_unlock(&lock);
    forget_cached();
}

static struct tracked_stream *default_stream(bool mine)
{
    CUcontext handle = NULL;
    if (!driver.cuCtxGetCurrent || driver.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || !handle)
        return NULL;
    uint64_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE), last_key = (uint64_t)(uintptr_t)handle + mine;
    if (last_default.key == last_key && last_default.generation == now)
        return last_default.stream;
    struct tracked_context *context = track_current_context();
    if (!context)
        return NULL;
    if (mine && !shim_thread.thread_id)
        shim_thread.thread_id = (uint32_t)syscall(SYS_gettid);
    struct tracked_stream like = {.handle = mine ? CU_STREAM_PER_THREAD : NULL,
                                  .kind = mine ? CAP_STREAM_PER_THREAD : CAP_STREAM_LEGACY,
                                  .thread = mine ? shim_thread.thread_id : 0,
                                  .context = context};
    struct tracked_stream *stream = find_stream(default_key(context, mine), &like, true);
    has_default = has_default || mine;
    remember_stream(&last_default, now, last_key, stream);
    return stream;
}

struct tracked_stream *track_stream(CUstream handle, bool per_thread, bool create)
{
    if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return default_stream(handle == CU_STREAM_PER_THREAD || (handle == NULL && per_thread));
    uint64_t key = (uint64_t)(uintptr_t)handle, now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    struct recent_stream *recent = &recent_streams[(key >> 4 ^ key >> 9) % RECENT_STREAMS];
    if (recent->key == key && recent->generation == now)
        return recent->stream;
    struct tracked_stream like = {.handle = handle, .kind = CAP_STREAM_CREATED};
    struct tracked_stream *stream = find_stream(key, &like, false);
    if (!stream && create) {
        like.context = track_current_context();
        stream = add_stream(key, &like, false);
    }
    remember_stream(recent, now, key, stream);
    return stream;
}

uint32_t track_stream_id(CUstream handle, bool per_thread)
{
    const struct tracked_stream *stream = track_stream(handle, per_thread, true);
    return stream ? stream->id : 0;
}

uint32_t track_stream_known_id(CUstream handle, bool per_thread)
{
    const struct tracked_stream *stream = track_stream(handle, per_thread, false);
    return stream ? stream->id : 0;
}

struct tracked_stream *track_stream_created(CUstream handle, uint32_t flags)
{
    struct tracked_stream like = {
        .handle = handle, .kind = CAP_STREAM_CREATED, .flags = flags, .context = track_current_context()};
    return add_stream((uint64_t)(uintptr_t)handle, &like, true);
}

struct tracked_stream *track_stream_take(CUstream handle)
{
    uint64_t key = (uint64_t)(uintptr_t)handle, value;
    pthread_mutex_lock(&lock);
    struct tracked_stream *stream = map_get(&streams, key, &value) ? (void *)(uintptr_t)value : NULL;
    if (stream) {
        map_remove(&streams, key);
        unlink_stream(stream);
    }
    pthread_mutex_unlock(&lock);
    forget_cached();
    return stream;
}

void track_stream_taken(struct tracked_stream *stream, bool gone)
{
    pthread_mutex_lock(&lock);
    if (gone) {
        write_stream(stream, true);
    } else if (memory_map_put(&streams, (uint64_t)(uintptr_t)stream->handle, (uint64_t)(uintptr_t)stream, true)) {
        forget_unfinished(stream);
        __atomic_store_n(&stream->ends, false, __ATOMIC_RELEASE);
        __atomic_store_n(&stream->gone, false, __ATOMIC_RELEASE);
        link_stream(stream);
    }
    pthread_mutex_unlock(&lock);
    forget_cached();
}

static void write_event(CUevent handle, uint32_t id, uint32_t flags, bool destroyed)
{
    const struct tracked_context *context = track_current_context();
    struct cap_event *record = capture_define(CAP_EVENT, sizeof *record);
    if (!record)
        return;
    record->id = id;
    record->context = context ? context->id : 0;
    record->flags = flags;
    record->destroyed = destroyed;
    record->handle = (uint64_t)(uintptr_t)handle;
    capture_commit(record);
}

uint32_t track_event_created(CUevent handle, uint32_t flags)
{
    uint32_t id = intern_new_id(INTERN_EVENT);
    write_event(handle, id, flags, false);
    pthread_mutex_lock(&lock);
    if (memory_must(0))
        memory_map_put(&events, (uint64_t)(uintptr_t)handle, (uint64_t)flags << 32 | id, true);
    pthread_mutex_unlock(&lock);
    return id;
}

uint32_t track_event(CUevent handle, uint32_t *flags)
{
    uint64_t value = 0;
    pthread_mutex_lock(&lock);
    map_get(&events, (uint64_t)(uintptr_t)handle, &value);
    pthread_mutex_unlock(&lock);
    if (flags)
        *flags = (uint32_t)(value >> 32);
    return (uint32_t)value;
}

enum { EVENT_IS_MARKER = 1u << 30 }; /* beside the flags of cuEventCreate */

void track_timing_event(struct tracked_stream *stream, CUevent handle, uint32_t id, uint32_t flags)
{
    uint32_t open = __atomic_load_n(&stream->timing_pair, __ATOMIC_RELAXED), next = 0;
    if (flags & (EVENT_IS_MARKER | CU_EVENT_DISABLE_TIMING))
        return;
    if (open == id) {
        pthread_mutex_lock(&lock);
        memory_map_put(&events, (uint64_t)(uintptr_t)handle, (uint64_t)(flags | EVENT_IS_MARKER) << 32 | id, true);
        pthread_mutex_unlock(&lock);
    } else if (!open) {
        next = id;
        for (unsigned i = 0; i < sizeof stream->pair_kernels / sizeof *stream->pair_kernels; i++)
            __atomic_store_n(&stream->pair_kernels[i], 0, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&stream->timing_pair, next, __ATOMIC_RELAXED);
}

uint32_t track_event_take(CUevent handle, uint32_t *flags)
{
    uint64_t value = 0;
    pthread_mutex_lock(&lock);
    if (map_get(&events, (uint64_t)(uintptr_t)handle, &value))
        map_remove(&events, (uint64_t)(uintptr_t)handle);
    pthread_mutex_unlock(&lock);
    *flags = (uint32_t)(value >> 32);
    return (uint32_t)value;
}

void track_event_taken(CUevent handle, uint32_t id, uint32_t flags, bool gone)
{
    if (gone) {
        write_event(handle, id, flags, true);
        return;
    }
    pthread_mutex_lock(&lock);
    map_put(&events, (uint64_t)(uintptr_t)handle, (uint64_t)flags << 32 | id);
    pthread_mutex_unlock(&lock);
}

void track_write_end(void)
{
    uint64_t bytes, redzones;
    uint32_t count;
    alloc_table_totals(&count, &bytes, &redzones);
    struct cap_end *record = capture_define(CAP_END, sizeof *record);
    if (record) {
        record->live_allocations = count;
        record->live_bytes = bytes;
        capture_commit(record);
    }
}
