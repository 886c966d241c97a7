#include "shim/quarantine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <opsdebug/capture.h>

#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/memory.h"
#include "shim/options.h"
#include "shim/sentinel.h"
#include "shim/touch.h"

enum { EDGE_BYTES = 32768 };

struct held {
    struct allocation a;
    uint64_t seq; /* of the free */
    bool told;    /* its damage is recorded */
    struct held *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct held *first, **last = &first; /* oldest first */
static uint64_t held_bytes, device_bytes;   /* device_bytes: of those, what is the device's memory */

static void release(struct held *h)
{
    memory_give(sizeof *h);
    free(h);
}

uint64_t quarantine_bytes(void)
{
    return __atomic_load_n(&device_bytes, __ATOMIC_RELAXED);
}

bool quarantine_holds(uint64_t address)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct held *h = first; h && !found; h = h->next)
        found = h->a.address == address || (h->a.host_address && h->a.host_address == address);
    pthread_mutex_unlock(&lock);
    return found;
}

bool quarantine_covers(uint64_t address)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct held *h = first; h && !found; h = h->next)
        found = address - h->a.address < h->a.bytes || (h->a.host_address && address - h->a.host_address < h->a.bytes);
    pthread_mutex_unlock(&lock);
    return found;
}

static void account(const struct allocation *a, bool in)
{
    uint64_t bytes = in ? a->bytes : 0 - a->bytes;
    __atomic_fetch_add(&held_bytes, bytes, __ATOMIC_RELAXED);
    if (a->kind == CAP_ALLOC_DEVICE || a->kind == CAP_ALLOC_PITCHED)
        __atomic_fetch_add(&device_bytes, bytes, __ATOMIC_RELAXED);
}

static uint8_t *on_host(const struct allocation *a)
{
    return (uint8_t *)(uintptr_t)(a->host_address ? a->host_address : a->address);
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
        account(&h->a, false);
    }
    pthread_mutex_unlock(&lock);
    return h;
}

struct difference {
    uint64_t first, last; /* first above last: none */
    uint8_t found[32];
};

/* The pattern is made of whole words from the allocation's start. */
static void compare(const struct allocation *a, const uint8_t *bytes, uint64_t from, uint64_t count,
                    struct difference *d)
{
    for (uint64_t i = from; i < from + count && i < a->bytes / 4 * 4; i++) {
        if (bytes[i - from] == (uint8_t)(QUARANTINE_PATTERN >> (i & 3) * 8))
            continue;
        d->first = i < d->first ? i : d->first;
        d->last = i;
        if (i - d->first < sizeof d->found)
            d->found[i - d->first] = bytes[i - from];
    }
}

static bool read_piece(const struct device_work *work, const struct allocation *a, uint64_t from, uint64_t count,
                       uint8_t *bytes)
{
    if (a->kind == CAP_ALLOC_HOST) {
        memcpy(bytes, on_host(a) + from, count);
        return true;
    }
    return driver.cuMemcpyDtoHAsync_v2 &&
           driver.cuMemcpyDtoHAsync_v2(bytes, a->address + from, count, work->stream) == CUDA_SUCCESS &&
           driver.cuStreamSynchronize(work->stream) == CUDA_SUCCESS;
}

static void record(const struct held *h, const struct difference *d)
{
    struct cap_held_damage *out = capture_define(CAP_HELD_DAMAGE, sizeof *out);
    if (!out)
        return;
    out->allocation = h->a.id;
    out->offset = d->first;
    out->length = d->last - d->first + 1;
    out->clean_seq = h->seq;
    out->seen_seq = out->head.seq;
    memcpy(out->found, d->found, sizeof out->found);
    capture_commit(out);
}

/* At its two ends; what is wrong is told once. */
static void look_at(const struct device_work *work, struct held *h)
{
    struct difference d = {.first = UINT64_MAX};
    uint64_t bytes = h->a.bytes, edge = bytes < EDGE_BYTES ? bytes : EDGE_BYTES;
    uint64_t second = bytes - edge > edge ? bytes - edge : edge;
    uint8_t *piece = h->told || !work ? NULL : malloc(EDGE_BYTES);
    if (!piece)
        return;
    if (read_piece(work, &h->a, 0, edge, piece))
        compare(&h->a, piece, 0, edge, &d);
    if (second < bytes && read_piece(work, &h->a, second, bytes - second, piece))
        compare(&h->a, piece, second, bytes - second, &d);
    free(piece);
    h->told = d.first <= d.last;
    if (h->told)
        record(h, &d);
}

static void give_back(const struct device_work *work, struct held *h)
{
    look_at(work, h);
    if (h->a.kind == CAP_ALLOC_HOST)
        driver.cuMemFreeHost(on_host(&h->a) - (h->a.address - h->a.base));
    else
        driver.cuMemFree_v2(h->a.base);
    release(h);
}

static bool poison(const struct device_work *work, const struct allocation *a)
{
    size_t words = a->bytes / 4;
    if (a->kind == CAP_ALLOC_HOST) {
        for (size_t i = 0; i < words; i++)
            memcpy(on_host(a) + 4 * i, &(uint32_t){QUARANTINE_PATTERN}, 4);
        return true;
    }
    return !words || (driver.cuMemsetD32Async(a->address, QUARANTINE_PATTERN, words, work->stream) == CUDA_SUCCESS &&
                      driver.cuStreamSynchronize(work->stream) == CUDA_SUCCESS);
}

static bool can_hold(const struct allocation *a)
{
    switch (a->kind) {
    case CAP_ALLOC_DEVICE:
    case CAP_ALLOC_PITCHED:
    case CAP_ALLOC_MANAGED: /* known to be shared, or touch_only_behind_launches() */
        return a->address % 4 == 0;
    case CAP_ALLOC_HOST:
        return driver.cuMemFreeHost != NULL;
    default:
        return false;
    }
}

/* The context is waited for, as the real free would. */
static bool take(struct tracked_context *context, const struct allocation *a, CUresult *result)
{
    const struct device_work *work = device_work(context);
    uint64_t budget = options.quarantine;
    if (!budget || touch_only_behind_launches() || a->bytes > budget / 2 || !work || context->id != a->context ||
        !can_hold(a) || !driver.cuCtxSynchronize || !driver.cuMemFree_v2 || !driver.cuMemsetD32Async ||
        !driver.cuStreamSynchronize)
        return false;
    if (!memory_may(sizeof(struct held)))
        return false;
    struct held *h = malloc(sizeof *h);
    if (!h) {
        memory_give(sizeof *h);
        return false;
    }
    CUresult waited = driver.cuCtxSynchronize();
    if (waited != CUDA_SUCCESS) { /* the real free would have said so, and not freed */
        release(h);
        *result = waited;
        return waited != CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (!poison(work, a)) {
        release(h);
        return false;
    }
    *h = (struct held){.a = *a, .seq = capture_next_seq()};
    pthread_mutex_lock(&lock);
    *last = h;
    last = &h->next;
    account(a, true);
    pthread_mutex_unlock(&lock);
    while (__atomic_load_n(&held_bytes, __ATOMIC_RELAXED) > budget && (h = unlink_oldest(context->id)))
        give_back(work, h);
    *result = CUDA_SUCCESS;
    return true;
}

bool quarantine_take(const struct allocation *a, CUresult *result)
{
    struct tracked_context *context = track_current_context();
    if (!options.quarantine || !context || !device_uncaptured_begins())
        return false;
    bool taken = take(context, a, result);
    device_uncaptured_ends();
    return taken;
}

bool quarantine_release(void)
{
    struct tracked_context *context = quarantine_bytes() ? track_current_context() : NULL;
    struct held *h;
    bool any = false;
    while (context && (h = unlink_oldest(context->id))) {
        give_back(device_work(context), h);
        any = true;
    }
    return any;
}

void quarantine_look(void)
{
    struct tracked_context *context = options.quarantine ? track_current_context() : NULL;
    const struct device_work *work = device_work(context);
    struct held *mine = NULL, *h;
    if (!context || !work)
        return;
    while ((h = unlink_oldest(context->id))) { /* nobody else gives back what is not in the list */
        h->next = mine;
        mine = h;
    }
    for (struct held *next; mine; mine = next) {
        next = mine->next;
        look_at(work, mine);
        mine->next = NULL;
        pthread_mutex_lock(&lock);
        *last = mine;
        last = &mine->next;
        account(&mine->a, true);
        pthread_mutex_unlock(&lock);
    }
}

void quarantine_drop_context(const struct tracked_context *context)
{
    struct held *h;
    while ((h = unlink_oldest(context->id)))
        release(h);
}
