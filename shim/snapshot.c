#include "shim/snapshot.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "shim/alloc_table.h"
#include "shim/blob.h"
#include "shim/budget.h"
#include "shim/capture_write.h"
#include "shim/device_cost.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/memory.h"
#include "shim/options.h"
#include "shim/reach.h"
#include "shim/shim.h"
#include "shim/staging.h"
#include "shim/touch.h"

enum {
    PAIR_PATIENCE =
        64, /* launches of a kernel and shape, all between timing events, until it gets its snapshots there */
    LEAVE_MS = 1000,
};

struct batch;
struct item {
    struct blob_job job; /* first: the blob helper gives it back */
    struct batch *batch;
    uint64_t launch;
    uint32_t allocation, when;
};
struct batch {
    struct progress_mark mark;
    struct staging_buffer *staging;
    struct batch *next;
    bool refused;         /* the driver took only some of its copies: when they are done, it is thrown away */
    uint32_t count, left; /* left: atomic, items the helper has not finished */
    struct item items[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct batch *pending;   /* enqueued, newest first */
static struct batch *abandoned; /* on a device that died */
static struct map counts;       /* (kernel, config) to launches that had snapshots */
static uint64_t bytes_taken;    /* atomic, against the budget */
static uint64_t matching;       /* atomic: launches that pass the filter */

/* Kernels and shapes that got all that they are to get, as far as this thread has met them: in the long run that is
 * nearly every launch. */
static __thread uint64_t done[16] __attribute__((tls_model("initial-exec")));

static uint64_t *done_slot(const struct tracked_kernel *kernel, uint32_t config)
{
    return &done[(kernel->id * 7 + config) % (sizeof done / sizeof *done)];
}

static bool had_its_share(const struct tracked_kernel *kernel, uint32_t config)
{
    uint64_t key = (uint64_t)kernel->id << 32 | config;
    return key && *done_slot(kernel, config) == key;
}

static enum snapshot_choice sampled(void)
{
    return budget_takes(CAP_BUDGET_SNAPSHOTS) ? SNAPSHOT_TAKE : SNAPSHOT_OVER_BUDGET;
}

static enum snapshot_choice within_counts(const struct tracked_kernel *kernel, uint32_t config, bool must_wait)
{
    if (options.snapshots_first == UINT64_MAX && !must_wait)
        return sampled();
    /* Low half: launches with snapshots; high half: launches that had to go without. */
    uint64_t key = (uint64_t)kernel->id << 32 | config, count = 0;
    pthread_mutex_lock(&lock);
    map_get(&counts, key, &count);
    enum snapshot_choice choice = SNAPSHOT_NONE;
    bool ok = (uint32_t)count < options.snapshots_first;
    if (ok && must_wait && count >> 32 < PAIR_PATIENCE)
        memory_map_put(&counts, key, count + ((uint64_t)1 << 32), false);
    else if (ok && (choice = sampled()) == SNAPSHOT_TAKE && (uint32_t)count < UINT32_MAX)
        /* What the budget leaves out is not counted: a later launch comes in. What cannot be counted goes without. */
        choice = memory_map_put(&counts, key, count + 1, false) ? SNAPSHOT_TAKE : SNAPSHOT_OVER_BUDGET;
    pthread_mutex_unlock(&lock);
    if ((uint32_t)count >= options.snapshots_first)
        *done_slot(kernel, config) = key;
    return choice;
}

/* An autotuner measures one kernel at a time, or a few that belong together. Many different ones between two events are
 * a program that times itself. Counts this one. */
static bool many_kernels(struct tracked_stream *stream, const struct tracked_kernel *kernel)
{
    for (unsigned i = 0; i < sizeof stream->pair_kernels / sizeof *stream->pair_kernels; i++) {
        uint32_t id = __atomic_load_n(&stream->pair_kernels[i], __ATOMIC_RELAXED);
        if (id == kernel->id)
            return false;
        if (!id) {
            __atomic_store_n(&stream->pair_kernels[i], kernel->id, __ATOMIC_RELAXED);
            return false;
        }
    }
    return true;
}

static bool take_armed(struct tracked_kernel *kernel)
{
    uint32_t armed = __atomic_load_n(&kernel->armed, __ATOMIC_RELAXED);
    while (armed)
        if (__atomic_compare_exchange_n(&kernel->armed, &armed, armed - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

enum snapshot_choice snapshot_choose(struct tracked_kernel *kernel, uint32_t config, struct tracked_stream *stream,
                                     bool in_pair)
{
    if (!snapshot_possible(kernel) || !kernel->matches || !shim_device_usable() || blob_broken())
        return SNAPSHOT_NONE;
    if (had_its_share(kernel, config) && !__atomic_load_n(&kernel->armed, __ATOMIC_RELAXED)) {
        if (options.launch_skip || options.launch_count != UINT64_MAX)
            __atomic_fetch_add(&matching, 1, __ATOMIC_RELAXED);
        return SNAPSHOT_NONE;
    }
    uint64_t number = __atomic_fetch_add(&matching, 1, __ATOMIC_RELAXED);
    if (number < options.launch_skip || number - options.launch_skip >= options.launch_count || !stream ||
        !device_work(stream->context))
        return SNAPSHOT_NONE;
    bool must_wait = in_pair && !many_kernels(stream, kernel);
    bool armed = !must_wait && take_armed(kernel);
    enum snapshot_choice choice = armed ? SNAPSHOT_TAKE : within_counts(kernel, config, must_wait);
    if (choice != SNAPSHOT_TAKE)
        return choice;
    return __atomic_load_n(&bytes_taken, __ATOMIC_RELAXED) < options.snapshot_budget ? SNAPSHOT_TAKE
                                                                                     : SNAPSHOT_OVER_BUDGET;
}

/* The allocations among what was reached, each once. */
static uint32_t allocations_of(const struct reached *reached, uint32_t count, struct allocation *found)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t same = 0;
        while (same < distinct && found[same].id != reached[i].a.id)
            same++;
        if (same == distinct)
            found[distinct++] = reached[i].a;
    }
    return distinct;
}

static void write_value(const struct item *item)
{
    struct cap_value *record = capture_define(CAP_VALUE, sizeof *record);
    if (!record)
        return;
    record->mark = item->launch;
    record->bytes = item->job.bytes;
    record->hash_low = item->job.hash.low;
    record->hash_high = item->job.hash.high;
    capture_commit(record);
}

/* Runs on the blob helper. The record comes after its blob, so that a reader never sees one without the other. */
static void item_stored(struct blob_job *job, bool ok)
{
    struct item *item = (struct item *)job;
    struct batch *batch = item->batch;
    bool of_mark = item->when == SNAPSHOT_OF_MARK;
    struct cap_snapshot *record = ok && !of_mark ? capture_define(CAP_SNAPSHOT, sizeof *record) : NULL;
    if (ok && of_mark) {
        write_value(item);
    } else if (record) {
        record->launch = item->launch;
        record->allocation = item->allocation;
        record->when = item->when;
        record->bytes = job->bytes;
        record->hash_low = job->hash.low;
        record->hash_high = job->hash.high;
        capture_commit(record);
        CAPTURE_COUNT(snapshots, 1);
        CAPTURE_COUNT(snapshot_bytes, job->bytes);
    } else
        CAPTURE_COUNT(dropped_snapshots, 1);
    if (__atomic_sub_fetch(&batch->left, 1, __ATOMIC_ACQ_REL) == 0) {
        staging_release(batch->staging);
        free(batch);
    }
}

static void discard(struct batch *batch)
{
    CAPTURE_COUNT(dropped_snapshots, batch->count);
    staging_release(batch->staging);
    free(batch);
}

/* The driver may still believe that it writes there: the memory is not reused, only forgotten. */
static void abandon(struct batch *batch)
{
    CAPTURE_COUNT(dropped_snapshots, batch->count);
    pthread_mutex_lock(&lock);
    batch->next = abandoned;
    abandoned = batch;
    pthread_mutex_unlock(&lock);
}

static void hand_over(struct batch *batch)
{
    uint32_t count = batch->count;
    device_mark_release(&batch->mark);
    if (batch->refused) {
        discard(batch);
        return;
    }
    for (uint32_t i = 0; i < count; i++) /* the last one may free the batch */
        if (!blob_put(&batch->items[i].job))
            item_stored(&batch->items[i].job, false);
}

static bool any_pending(void)
{
    return __atomic_load_n(&pending, __ATOMIC_RELAXED) != NULL;
}

void snapshot_poll(void)
{
    struct batch *ready = NULL;
    if (!any_pending())
        return;
    pthread_mutex_lock(&lock);
    for (struct batch **at = &pending; *at;) {
        struct batch *b = *at;
        if (device_reached(&b->mark)) {
            *at = b->next;
            b->next = ready; /* reverses: oldest first */
            ready = b;
        } else
            at = &b->next;
    }
    pthread_mutex_unlock(&lock);
    while (ready) {
        struct batch *b = ready;
        ready = b->next;
        hand_over(b);
    }
}

void snapshot_device_lost(void)
{
    snapshot_poll();
    pthread_mutex_lock(&lock);
    struct batch *lost = pending;
    pending = NULL;
    pthread_mutex_unlock(&lock);
    while (lost) {
        struct batch *b = lost;
        lost = b->next;
        abandon(b);
    }
}

void snapshot_drop_context(const struct tracked_context *context)
{
    struct batch *gone = NULL;
    pthread_mutex_lock(&lock);
    for (struct batch **at = &pending; *at;) {
        struct batch *b = *at;
        if (b->mark.work->context == context) {
            *at = b->next;
            b->next = gone;
            gone = b;
        } else
            at = &b->next;
    }
    pthread_mutex_unlock(&lock);
    while (gone) {
        struct batch *b = gone;
        gone = b->next;
        discard(b); /* nothing writes there any more */
    }
}

bool snapshot_finish(struct deadline deadline)
{
    unsigned nap = 0;
    snapshot_poll();
    while (any_pending() && shim_device_usable()) {
        if (deadline_over(deadline))
            return false;
        deadline_nap(&nap);
        snapshot_poll();
    }
    return true;
}

static bool being_copied(uint32_t allocation)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct batch *b = pending; b && !found; b = b->next)
        for (uint32_t i = 0; i < b->count && !found; i++)
            found = b->items[i].allocation == allocation;
    pthread_mutex_unlock(&lock);
    return found;
}

void snapshot_leave(const struct allocation *a)
{
    const struct deadline patience = deadline_in(any_pending() ? LEAVE_MS : 0);
    unsigned nap = 0;
    snapshot_poll();
    while (any_pending() && being_copied(a->id) && shim_device_usable() && !deadline_over(patience)) {
        deadline_nap(&nap);
        snapshot_poll();
    }
}

/* Room for `bytes` in staging; when all of it is in flight, waits until the device and the helper gave some back. The
 * device may be waiting for what the program is about to launch: who has waited in vain is not followed by others. */
static struct staging_buffer *staging_wait(size_t bytes)
{
    static bool in_vain; /* atomic */
    const struct deadline patience = deadline_in(__atomic_load_n(&in_vain, __ATOMIC_RELAXED) ? 0 : 10000);
    unsigned nap = 0;
    struct staging_buffer *buffer = NULL;
    while (shim_device_usable() && !blob_broken()) {
        if ((buffer = staging_take(bytes))) {
            __atomic_store_n(&in_vain, false, __ATOMIC_RELAXED);
            break;
        }
        if (!staging_in_use()) /* nothing will come back: there is no memory */
            break;
        snapshot_poll();
        if (deadline_over(patience)) {
            __atomic_store_n(&in_vain, true, __ATOMIC_RELAXED);
            break;
        }
        deadline_nap(&nap);
    }
    return buffer;
}

static struct batch *plan(enum cap_snapshot_when when, uint64_t launch_seq, const struct tracked_stream *stream,
                          const struct allocation *found, uint32_t count, struct snapshot_result *result)
{
    struct batch *batch = calloc(1, sizeof *batch + count * sizeof *batch->items);
    if (!batch)
        return NULL;
    uint64_t budget = options.snapshot_budget, taken = __atomic_load_n(&bytes_taken, __ATOMIC_RELAXED);
    uint64_t left = taken < budget ? budget - taken : 0;
    /* In `deep` one buffer may take everything; else a slab of a caching allocator would leave nothing for the others.
     */
    uint64_t one = options.preset == PRESET_DEEP ? left : budget / 4;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = found[i].bytes;
        if (bytes > left || bytes > one || bytes > STAGING_BYTES_MAX || !touch_may_read(&found[i], stream)) {
            result->left_out = true;
            CAPTURE_COUNT(dropped_snapshots, 1);
            continue;
        }
        left -= bytes;
        struct item *item = &batch->items[batch->count++];
        item->batch = batch;
        item->launch = launch_seq;
        item->allocation = found[i].id;
        item->when = when;
        item->job.bytes = bytes;
        item->job.data = (void *)(uintptr_t)found[i].address; /* until staging is known */
        item->job.stored = item_stored;
    }
    batch->left = batch->count;
    return batch;
}

static uint64_t bytes_of(const struct batch *batch)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < batch->count; i++)
        bytes += batch->items[i].job.bytes;
    return bytes;
}

static size_t staging_size(const struct batch *batch)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < batch->count; i++)
        bytes += (batch->items[i].job.bytes + 63) & ~(size_t)63;
    return bytes;
}

enum enqueued { ENQUEUED_ALL, ENQUEUED_SOME, ENQUEUED_NOTHING };

static enum enqueued copy_all(struct batch *batch, const struct tracked_stream *stream)
{
    char *at = staging_data(batch->staging);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct blob_job *job = &batch->items[i].job;
        CUdeviceptr source = (uintptr_t)job->data;
        job->data = at;
        if (driver.cuMemcpyDtoHAsync_v2(at, source, job->bytes, stream->handle) != CUDA_SUCCESS)
            return i ? ENQUEUED_SOME : ENQUEUED_NOTHING;
        at += (job->bytes + 63) & ~(size_t)63;
    }
    return ENQUEUED_ALL;
}

/* Copies, and the mark behind them. What the driver refuses in the middle cannot be waited for here: the stream may be
 * waiting for what the program does next. The copies before it go on, into memory that is given back when they are
 * done. */
static bool enqueue_copies(struct batch *batch, struct tracked_stream *stream, struct device_work *work)
{
    enum enqueued copied = copy_all(batch, stream);
    if (copied == ENQUEUED_NOTHING) {
        discard(batch);
        return false;
    }
    bool all = copied == ENQUEUED_ALL;
    batch->refused = !all;
    if (!device_mark(work, stream, &batch->mark)) {
        abandon(batch);
        return false;
    }
    pthread_mutex_lock(&lock);
    batch->next = pending;
    pending = batch;
    pthread_mutex_unlock(&lock); /* from here on it may be gone */
    return all;
}

static bool enqueue(struct batch *batch, struct tracked_stream *stream, struct device_work *work)
{
    struct device_cost cost;
    device_cost_begin(&cost, CAP_BUDGET_SNAPSHOTS, stream);
    bool ok = enqueue_copies(batch, stream, work);
    device_cost_end(&cost);
    return ok;
}

struct snapshot_result snapshot_take_found(enum cap_snapshot_when when, uint64_t launch_seq,
                                           struct tracked_stream *stream, const struct allocation *found,
                                           uint32_t count)
{
    struct snapshot_result result = {!count, false};
    struct device_work *work = device_work(stream->context);
    if (!work || !driver.cuMemcpyDtoHAsync_v2)
        return (struct snapshot_result){false, false};
    struct batch *batch = count ? plan(when, launch_seq, stream, found, count, &result) : NULL;
    if (batch && !batch->count) {
        free(batch);
        batch = NULL;
    }
    if (!batch)
        return result;
    CUstreamCaptureMode mode = device_relax();
    batch->staging = staging_wait(staging_size(batch));
    if (!batch->staging) {
        CAPTURE_COUNT(dropped_snapshots, batch->count);
        free(batch);
    } else {
        uint64_t bytes = bytes_of(batch);
        result.taken = enqueue(batch, stream, work);
        __atomic_fetch_add(&bytes_taken, result.taken ? bytes : 0, __ATOMIC_RELAXED);
    }
    result.left_out = result.left_out || !result.taken;
    device_unrelax(mode);
    return result;
}

struct snapshot_result snapshot_take(enum cap_snapshot_when when, uint64_t launch_seq, struct tracked_kernel *kernel,
                                     struct tracked_stream *stream, const uint8_t *arguments, uint32_t bytes)
{
    struct snapshot_result result = {false, false};
    BUDGET_SPAN(CAP_BUDGET_SNAPSHOTS);
    struct reached *reached = malloc(REACH_MAX * sizeof *reached);
    struct allocation *found = malloc(REACH_MAX * sizeof *found);
    uint32_t count = reached && found ? reach(kernel, arguments, bytes, reached) : 0;
    count = count ? allocations_of(reached, count, found) : 0;
    free(reached);
    if (found)
        result = snapshot_take_found(when, launch_seq, stream, found, count);
    free(found);
    return result;
}
