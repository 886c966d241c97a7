#include "shim/timing.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <opsdebug/capture.h>

#include "shim/budget.h"
#include "shim/capture_write.h"
#include "shim/device_cost.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/options.h"
#include "shim/shim.h"

enum {
    PAIRS_MAX = 2048,  /* per context; launches beyond are not timed until some are read */
    BATCH_MAX = 256,   /* times in one record */
    WATCH_ALWAYS = 8,  /* preset watch: so many launches of each kernel, */
    WATCH_ONE_OF = 16, /* then one of so many */
};

struct timing_pair {
    CUevent begin, end;
    uint64_t seq, tsc; /* of the launch; atomic: a look from another thread reads them */
    struct tracked_stream *stream;
    struct timing_pool *pool;
    struct timing_pair *next;
};

struct timing_pool {
    pthread_mutex_t lock;
    CUevent base; /* recorded when CLOCK_MONOTONIC was base_ns */
    uint64_t base_ns;
    struct timing_pair *unused, *first, **last; /* first: recorded, oldest first */
    unsigned made;
    struct tracked_context *context;
};

void timing_prepare(struct device_work *work)
{
    struct timespec now;
    if (!driver.cuEventCreate || !driver.cuEventRecord || !driver.cuEventQuery || !driver.cuEventElapsedTime ||
        !driver.cuEventSynchronize)
        return;
    struct timing_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return;
    pthread_mutex_init(&pool->lock, NULL);
    pool->last = &pool->first;
    pool->context = work->context;
    if (driver.cuEventCreate(&pool->base, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
        driver.cuEventRecord(pool->base, work->stream) != CUDA_SUCCESS ||
        driver.cuEventSynchronize(pool->base) != CUDA_SUCCESS) {
        free(pool);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    pool->base_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    work->times = pool;
}

static struct timing_pair *take_pair(struct timing_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct timing_pair *pair = pool->unused;
    bool make = !pair && pool->made < PAIRS_MAX;
    if (pair)
        pool->unused = pair->next;
    if (make)
        pool->made++;
    pthread_mutex_unlock(&pool->lock);
    if (!make)
        return pair;
    pair = calloc(1, sizeof *pair);
    if (!pair || driver.cuEventCreate(&pair->begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS ||
        driver.cuEventCreate(&pair->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
        free(pair);
        return NULL; /* `made` stays: no more attempts for this one */
    }
    pair->pool = pool;
    return pair;
}

static void give_back(struct timing_pair *pair)
{
    pthread_mutex_lock(&pair->pool->lock);
    pair->next = pair->pool->unused;
    pair->pool->unused = pair;
    pthread_mutex_unlock(&pair->pool->lock);
}

void timing_begin(struct timing_slot *slot, struct tracked_kernel *kernel, struct tracked_stream *stream, uint64_t seq)
{
    struct device_work *work = device_work(stream->context);
    slot->pair = NULL;
    if (!work || !work->times)
        return;
    uint64_t number = __atomic_load_n(&kernel->launches, __ATOMIC_RELAXED);
    if (options.preset == PRESET_WATCH && number >= WATCH_ALWAYS && number % WATCH_ONE_OF)
        return;
    if (!budget_takes(CAP_BUDGET_TIMES))
        return;
    BUDGET_SPAN(CAP_BUDGET_TIMES);
    struct timing_pair *pair = take_pair(work->times);
    if (!pair)
        return;
    thread_slow();
    __atomic_store_n(&pair->seq, seq, __ATOMIC_RELEASE);
    pair->tsc = __builtin_ia32_rdtsc();
    pair->stream = slot->stream = stream;
    if (driver.cuEventRecord(pair->begin, stream->handle) == CUDA_SUCCESS)
        slot->pair = pair;
    else
        give_back(pair);
}

void timing_end(struct timing_slot *slot, bool launched)
{
    struct timing_pair *pair = slot->pair;
    if (!pair)
        return;
    BUDGET_SPAN(CAP_BUDGET_TIMES);
    if (!launched || driver.cuEventRecord(pair->end, slot->stream->handle) != CUDA_SUCCESS) {
        give_back(pair);
        return;
    }
    struct timing_pool *pool = pair->pool;
    pair->next = NULL;
    pthread_mutex_lock(&pool->lock);
    *pool->last = pair;
    pool->last = &pair->next;
    pthread_mutex_unlock(&pool->lock);
}

struct measured {
    uint64_t seq, begin_ns;
    uint32_t device_ns;
};

static void write_times(const struct measured *times, unsigned count)
{
    if (!count)
        return;
    uint64_t base_launch = times[0].seq, base_begin = times[0].begin_ns;
    for (unsigned i = 1; i < count; i++) {
        base_launch = times[i].seq < base_launch ? times[i].seq : base_launch;
        base_begin = times[i].begin_ns < base_begin ? times[i].begin_ns : base_begin;
    }
    struct cap_times *record = capture_define(CAP_TIMES, sizeof *record + count * sizeof(struct cap_time));
    if (!record)
        return;
    struct cap_time *out = (struct cap_time *)(record + 1);
    record->base_launch = base_launch;
    record->base_begin_ns = base_begin;
    record->source = CAP_TIME_EVENTS;
    record->count = count;
    for (unsigned i = 0; i < count; i++)
        out[i] = (struct cap_time){(uint32_t)(times[i].seq - base_launch), (uint32_t)(times[i].begin_ns - base_begin),
                                   times[i].device_ns};
    capture_commit(record);
}

static uint32_t ns_of(float milliseconds)
{
    double ns = (double)milliseconds * 1e6;
    return ns <= 0 ? 0 : ns >= 4294967295.0 ? UINT32_MAX : (uint32_t)ns;
}

/* The oldest recorded pair, when it is complete. Streams finish out of order; then younger ones wait for it, no harm.
 */
static struct timing_pair *take_complete(struct timing_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct timing_pair *pair = pool->first;
    if (pair) {
        pool->first = pair->next;
        if (!pool->first)
            pool->last = &pool->first;
    }
    pthread_mutex_unlock(&pool->lock);
    if (!pair || driver.cuEventQuery(pair->end) == CUDA_SUCCESS)
        return pair;
    pthread_mutex_lock(&pool->lock);
    pair->next = pool->first;
    pool->first = pair;
    if (!pair->next)
        pool->last = &pair->next;
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static bool fits(const struct measured *batch, unsigned count, const struct measured *next)
{
    if (count == BATCH_MAX)
        return false;
    for (unsigned i = 0; i < count; i++) {
        uint64_t apart = next->begin_ns > batch[i].begin_ns ? next->begin_ns - batch[i].begin_ns
                                                            : batch[i].begin_ns - next->begin_ns;
        uint64_t launches = next->seq > batch[i].seq ? next->seq - batch[i].seq : batch[i].seq - next->seq;
        if (apart > UINT32_MAX || launches > UINT32_MAX)
            return false;
    }
    return true;
}

static void collect(struct timing_pool *pool)
{
    struct measured *batch = NULL;
    unsigned count = 0;
    struct timing_pair *pair;
    while ((pair = take_complete(pool))) {
        float length = 0, since = 0;
        bool ok = driver.cuEventElapsedTime(&length, pair->begin, pair->end) == CUDA_SUCCESS &&
                  driver.cuEventElapsedTime(&since, pool->base, pair->begin) == CUDA_SUCCESS && since >= 0;
        struct measured one = {pair->seq, pool->base_ns + (uint64_t)((double)since * 1e6), ns_of(length)};
        give_back(pair);
        if (!batch)
            batch = malloc(BATCH_MAX * sizeof *batch);
        if (!ok || !batch)
            continue;
        if (!fits(batch, count, &one)) {
            write_times(batch, count);
            count = 0;
        }
        batch[count++] = one;
    }
    write_times(batch, count);
    free(batch);
}

unsigned timing_pending(struct device_work *work, struct timing_pending *out, unsigned limit)
{
    unsigned count = 0;
    if (!work->times)
        return 0;
    pthread_mutex_lock(&work->times->lock);
    for (struct timing_pair *p = work->times->first; p && count < limit; p = p->next)
        out[count++] = (struct timing_pending){p, p->stream, p->seq, p->tsc};
    pthread_mutex_unlock(&work->times->lock);
    return count;
}

enum timing_state timing_ask(const struct timing_pending *p)
{
    CUresult end = driver.cuEventQuery(p->pair->end);
    CUresult begin = end == CUDA_ERROR_NOT_READY ? driver.cuEventQuery(p->pair->begin) : CUDA_SUCCESS;
    if (__atomic_load_n(&p->pair->seq, __ATOMIC_ACQUIRE) != p->seq) /* it has been taken in, and serves another one */
        return TIMING_DONE;
    if (end == CUDA_SUCCESS)
        return TIMING_DONE;
    if (end != CUDA_ERROR_NOT_READY || (begin != CUDA_SUCCESS && begin != CUDA_ERROR_NOT_READY))
        return TIMING_UNKNOWN;
    return begin == CUDA_SUCCESS ? TIMING_BEGUN : TIMING_NOT_BEGUN;
}

/* Another thread may be about to destroy the context, and our events with it: it waits for whoever got in here before
 * (progress_context_ends), and nobody gets in behind it. */
static bool asks_in(struct tracked_context *context)
{
    __atomic_fetch_add(&context->askers, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&context->ends, __ATOMIC_SEQ_CST) && device_work(context))
        return true;
    __atomic_fetch_sub(&context->askers, 1, __ATOMIC_SEQ_CST);
    return false;
}

void timing_collect(void)
{
    if ((!options.times && !budget_on && options.look_share <= 0) || !shim_device_usable())
        return;
    BUDGET_SPAN(CAP_BUDGET_TIMES);
    CUstreamCaptureMode mode = device_relax();
    for (struct tracked_context *c = track_first_context(); c; c = c->next) {
        if (!__atomic_load_n(&c->work, __ATOMIC_ACQUIRE) || !asks_in(c))
            continue;
        if (c->work->times)
            collect(c->work->times);
        if (c->work->costs)
            device_costs_collect(c->work);
        __atomic_fetch_sub(&c->askers, 1, __ATOMIC_SEQ_CST);
    }
    device_unrelax(mode);
}
