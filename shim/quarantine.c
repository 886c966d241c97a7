#include "shim/quarantine.h"

#include <pthread.h>
#include <stdlib.h>

#include <opsdebug/capture.h>

#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/options.h"
#include "shim/sentinel.h"

struct held {
    struct allocation a;
    struct held *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct held *first, **last = &first; /* oldest first */
static uint64_t held_bytes;

uint64_t quarantine_bytes(void)
{
    return __atomic_load_n(&held_bytes, __ATOMIC_RELAXED);
}

bool quarantine_holds(uint64_t address)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct held *h = first; h && !found; h = h->next)
        found = h->a.address == address;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Unlinks the oldest of a context; NULL without one. */
static struct held *unlink_oldest(uint32_t context)
{
    pthread_mutex_lock(&lock);
    struct held **at = &first;
    while (*at && (*at)->a.context != context)
        at = &(*at)->next;
    struct held *h = *at;
    if (h) {
        *at = h->next;
        if (last == &h->next)
            last = at;
        held_bytes -= h->a.bytes;
    }
    pthread_mutex_unlock(&lock);
    return h;
}

static void give_back(struct held *h)
{
    driver.cuMemFree_v2(h->a.base);
    free(h);
}

static bool poison(const struct device_work *work, const struct allocation *a)
{
    size_t words = a->bytes / 4;
    return !words || (driver.cuMemsetD32Async(a->address, QUARANTINE_PATTERN, words, work->stream) == CUDA_SUCCESS &&
                      driver.cuStreamSynchronize(work->stream) == CUDA_SUCCESS);
}

bool quarantine_take(const struct allocation *a, CUresult *result)
{
    struct tracked_context *context = track_current_context();
    const struct device_work *work = device_work(context);
    uint64_t budget = options.quarantine;
    if (!budget || a->bytes > budget / 2 || !work || context->id != a->context || device_captures_active() ||
        (a->kind != CAP_ALLOC_DEVICE && a->kind != CAP_ALLOC_PITCHED) || a->address % 4 || !driver.cuCtxSynchronize ||
        !driver.cuMemFree_v2 || !driver.cuMemsetD32Async || !driver.cuStreamSynchronize)
        return false;
    struct held *h = malloc(sizeof *h);
    if (!h)
        return false;
    CUresult waited = driver.cuCtxSynchronize();
    if (waited != CUDA_SUCCESS) { /* the real free would have said so, and not freed */
        free(h);
        *result = waited;
        return waited != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!poison(work, a)) {
        free(h);
        return false;
    }
    *h = (struct held){*a, NULL};
    pthread_mutex_lock(&lock);
    *last = h;
    last = &h->next;
    held_bytes += a->bytes;
    pthread_mutex_unlock(&lock);
    while (quarantine_bytes() > budget && (h = unlink_oldest(context->id)))
        give_back(h);
    *result = CUDA_SUCCESS;
    return true;
}

bool quarantine_release(void)
{
    const struct tracked_context *context = quarantine_bytes() ? track_current_context() : NULL;
    struct held *h;
    bool any = false;
    while (context && (h = unlink_oldest(context->id))) {
        give_back(h);
        any = true;
    }
    return any;
}

void quarantine_drop_context(const struct tracked_context *context)
{
    struct held *h;
    while ((h = unlink_oldest(context->id)))
        free(h);
}
