#include "shim/sentinel.h"

#include <stdlib.h>
#include <string.h>

#include <opsdebug/capture.h>

#include "shim/budget.h"
#include "shim/capture_write.h"
#include "shim/damage.h"
#include "shim/driver.h"
#include "shim/host_redzone.h"
#include "shim/options.h"
#include "shim/sentinel_slots.h"
#include "shim/shim.h"
#include "shim/thread.h"

enum {
    HOST_HEAD_BYTES = 4096, /* page-locked memory begins at a page */
    HEAD_BYTES = 512,       /* keeps the alignment that textures of linear memory need, and allocations have */
    TAIL_MIN = 256,
    TAIL_MAX = 8192,
    TAIL_SHARE = 32, /* one byte of redzone for so many of the allocation */
    CHECK_BLOCK = 128,
    CHECK_GRID = 64,
};

/* Threads that are between collecting redzones and having launched the look at them. A free waits for them: otherwise
 * the look could be launched at memory that is gone. */
static uint32_t looking;

struct sentinel_plan sentinel_plan(uint32_t kind, uint64_t bytes)
{
    struct sentinel_plan plan = {0, 0};
    if (options.sentinels == SENTINELS_OFF || !shim_device_usable())
        return plan;
    const struct tracked_context *context = track_current_context();
    struct device_work *work = device_work((struct tracked_context *)context);
    bool stream_ordered = kind == CAP_ALLOC_ASYNC || kind == CAP_ALLOC_POOL;
    if (!work || (stream_ordered && !work->fill))
        return plan;
    uint64_t tail = bytes / TAIL_SHARE;
    tail = tail < TAIL_MIN ? TAIL_MIN : tail > TAIL_MAX ? TAIL_MAX : tail;
    /* To the next multiple of 256 behind the program's last byte: no slack that nobody looks at. */
    plan.tail = (uint32_t)(((bytes + tail + 255) & ~UINT64_C(255)) - bytes);
    if (options.sentinels == SENTINELS_BOTH && kind != CAP_ALLOC_PITCHED)
        plan.head = kind == CAP_ALLOC_HOST ? HOST_HEAD_BYTES : HEAD_BYTES;
    return plan;
}

uint32_t sentinel_word(uint32_t id, uint64_t address)
{
    uint32_t bits = id >> (address >> 1 & 31);
    return UINT32_C(0x7fff7fff) | (bits & 1) << 15 | (bits & 2) << 30;
}

static bool launch_fill(struct device_work *work, uint64_t address, uint32_t bytes, uint32_t id, CUstream stream)
{
    void *arguments[] = {&address, &bytes, &id};
    return !bytes || driver.cuLaunchKernel(work->fill, 1, 1, 1, CHECK_BLOCK * 2, 1, 1, 0, stream, arguments, NULL) ==
                         CUDA_SUCCESS;
}

static bool copy_fill(struct device_work *work, uint64_t address, uint32_t bytes, uint32_t id)
{
    uint8_t line[TAIL_MAX + 512];
    for (uint32_t i = 0; i < bytes; i++) {
        uint64_t at = address + i;
        line[i] = (uint8_t)(sentinel_word(id, at & ~UINT64_C(3)) >> (at & 3) * 8);
    }
    return !bytes || (driver.cuMemcpyHtoDAsync_v2 && driver.cuStreamSynchronize &&
                      driver.cuMemcpyHtoDAsync_v2(address, line, bytes, work->stream) == CUDA_SUCCESS &&
                      driver.cuStreamSynchronize(work->stream) == CUDA_SUCCESS);
}

/* By copies, which the copy engines make: a kernel of ours might never start beside one of the program's that fills the
 * device and waits for the host, and the host is in here. */
bool sentinel_fill(struct allocation *a)
{
    struct device_work *work = device_work(track_current_context());
    if (!work)
        return false;
    CUstreamCaptureMode mode = device_relax();
    bool ok =
        copy_fill(work, a->address - a->head, a->head, a->id) && copy_fill(work, a->address + a->bytes, a->tail, a->id);
    device_unrelax(mode);
    return ok;
}

bool sentinel_fill_on(struct allocation *a, struct tracked_stream *stream)
{
    struct device_work *work = stream ? device_work(stream->context) : NULL;
    return work && work->fill && launch_fill(work, a->address - a->head, a->head, a->id, stream->handle) &&
           launch_fill(work, a->address + a->bytes, a->tail, a->id, stream->handle);
}

struct collecting {
    uint32_t context, stream;
    uint64_t skip_id; /* look at this allocation only, 0: at all */
    struct allocation *found;
    uint32_t count, capacity;
};

static void collect(const struct allocation *a, void *data)
{
    struct collecting *c = data;
    if ((!a->head && !a->tail) || a->context != c->context || (c->skip_id && a->id != c->skip_id))
        return;
    /* Memory of a pool may be taken back in the order of its stream: only that stream may look at it. */
    if ((a->kind == CAP_ALLOC_ASYNC || a->kind == CAP_ALLOC_POOL) && a->stream != c->stream)
        return;
    if (c->count == c->capacity) {
        uint32_t capacity = c->capacity ? c->capacity * 2 : 64;
        struct allocation *more = realloc(c->found, capacity * sizeof *more);
        if (!more)
            return;
        c->found = more;
        c->capacity = capacity;
    }
    c->found[c->count++] = *a;
}

static void add_entry(struct check_slot *slot, const struct allocation *a, bool tail)
{
    struct check_entry *e = &slot->entries[slot->count];
    *e = (struct check_entry){.id = a->id};
    e->address = tail ? a->address + a->bytes : a->address - a->head;
    e->bytes = tail ? a->tail : a->head;
    slot->subjects[slot->count++] =
        (struct check_subject){.address = a->address, .bytes = a->bytes, .tail = tail, .clean_seq = a->clean_seq};
}

static bool launch_slot(struct device_work *work, struct check_slot *slot, struct tracked_stream *stream)
{
    void *arguments[] = {&slot->device, &slot->count};
    uint32_t grid = slot->count < CHECK_GRID ? slot->count : CHECK_GRID;
    bool ok = slot->count && driver.cuLaunchKernel(work->check, grid, 1, 1, CHECK_BLOCK, 1, 1, 0, stream->handle,
                                                   arguments, NULL) == CUDA_SUCCESS;
    __atomic_store_n(&slot->use, ok ? SLOT_PENDING : SLOT_FREE, __ATOMIC_RELEASE);
    return ok;
}

/* Enqueues a look at all redzones that `stream` may look at (or those of one allocation). */
static bool look(struct device_work *work, struct tracked_stream *stream, uint32_t only_id)
{
    struct collecting c = {.context = work->context->id, .stream = stream->id, .skip_id = only_id};
    uint64_t upto = capture_next_seq(), clean = damage_clean_bound(stream, upto);
    uint64_t before = __atomic_load_n(&stream->last_look, __ATOMIC_RELAXED);
    bool complete = true;
    thread_slow();
    sentinel_look_begins();
    alloc_table_each(collect, &c);
    struct check_slot *slot = NULL;
    for (uint32_t i = 0; i < c.count; i++) {
        if (!slot) {
            if (!(slot = sentinel_slots_take(work->slots))) {
                complete = false; /* the device is far behind; the next look takes these */
                break;
            }
            slot->count = 0;
            slot->upto_seq = upto;
            slot->clean_seq = clean;
            slot->stream = stream->id;
            slot->from = stream;
            slot->stream_clean_seq = before;
        }
        if (c.found[i].head)
            add_entry(slot, &c.found[i], false);
        if (c.found[i].tail)
            add_entry(slot, &c.found[i], true);
        if (slot->count + 2 > CHECK_ENTRIES) {
            complete = launch_slot(work, slot, stream) && complete;
            slot = NULL;
        }
    }
    if (slot)
        complete = launch_slot(work, slot, stream) && complete;
    sentinel_look_ends();
    free(c.found);
    if (complete && !only_id)
        __atomic_store_n(&stream->last_look, upto, __ATOMIC_RELAXED);
    return complete;
}

static bool can_look(const struct tracked_stream *stream, struct device_work **work)
{
    *work = stream ? device_work(stream->context) : NULL;
    return *work && (*work)->check && (*work)->slots && !__atomic_load_n(&stream->gone, __ATOMIC_ACQUIRE) &&
           device_stream_free(stream);
}

/* `due`: so many launches make a look worth while; 0: anything does. */
static bool is_due(const struct tracked_stream *stream, uint32_t due, struct device_work **work)
{
    uint32_t launches = __atomic_load_n(&stream->launches_unchecked, __ATOMIC_RELAXED);
    uint32_t writes = __atomic_load_n(&stream->writes_unchecked, __ATOMIC_RELAXED);
    return (launches || writes) && launches >= due && can_look(stream, work);
}

static void look_now(struct tracked_stream *stream, struct device_work *work)
{
    uint32_t launches = __atomic_load_n(&stream->launches_unchecked, __ATOMIC_RELAXED);
    uint32_t writes = __atomic_load_n(&stream->writes_unchecked, __ATOMIC_RELAXED);
    if (look(work, stream, 0)) {
        __atomic_fetch_sub(&stream->launches_unchecked, launches, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&stream->writes_unchecked, writes, __ATOMIC_RELAXED);
    }
}

/* What is left out for the budget is made up for by the next look, with a wider window. */
static void look_if_due(struct tracked_stream *stream, uint32_t due, enum cap_budget_part part)
{
    struct device_work *work;
    if (!is_due(stream, due, &work) || !budget_takes(part))
        return;
    BUDGET_SPAN(part);
    look_now(stream, work);
}

void sentinel_after_launch(struct tracked_stream *stream, uint64_t seq, bool chained)
{
    if (options.sentinels == SENTINELS_OFF)
        return;
    __atomic_store_n(&stream->last_work, seq, __ATOMIC_RELAXED);
    __atomic_fetch_add(&stream->launches_unchecked, 1, __ATOMIC_RELAXED);
    if (chained) /* the next one may depend on this one, and overlap it */
        return;
    if (options.check == CHECK_LAUNCH)
        look_if_due(stream, 0, CAP_BUDGET_LOOKS);
    else if (options.check == CHECK_BATCH)
        look_if_due(stream, (uint32_t)options.check_batch, CAP_BUDGET_LOOKS);
}

void sentinel_after_write(struct tracked_stream *stream, uint64_t seq)
{
    if (!stream || options.sentinels == SENTINELS_OFF)
        return;
    __atomic_store_n(&stream->last_work, seq, __ATOMIC_RELAXED);
    __atomic_fetch_add(&stream->writes_unchecked, 1, __ATOMIC_RELAXED);
    if (options.check == CHECK_LAUNCH)
        look_if_due(stream, 0, CAP_BUDGET_LOOKS);
}

static void look_everywhere(const struct tracked_context *context)
{
    for (struct tracked_stream *s = track_first_stream(); s; s = s->next)
        if (s->context == context && track_stream_reachable(s))
            look_if_due(s, 0, CAP_BUDGET_SYNC_LOOKS);
}

void sentinel_before_sync(struct tracked_stream *stream)
{
    if (options.check < CHECK_SYNC)
        return;
    if (stream)
        look_if_due(stream, 0, CAP_BUDGET_SYNC_LOOKS);
    else
        look_everywhere(track_current_context());
}

static void read_slot(struct check_slot *slot)
{
    uint32_t damaged = 0;
    for (uint32_t i = 0; i < slot->count; i++)
        if (slot->entries[i].state == CHECK_DAMAGED) {
            damage_found(&slot->entries[i], &slot->subjects[i], slot);
            damaged++;
        }
    /* Only now: the other redzone of the same allocation would hide since when this one was known to be intact. */
    for (uint32_t i = 0; i < slot->count; i++)
        alloc_table_set_clean(slot->subjects[i].address, slot->entries[i].id, slot->clean_seq);
    damage_checked(slot->upto_seq, slot->count, damaged);
    /* The look came after all of its stream's work before it: that is complete, too. */
    if (__atomic_load_n(&slot->from->done_seq, __ATOMIC_RELAXED) < slot->upto_seq)
        __atomic_store_n(&slot->from->done_seq, slot->upto_seq, __ATOMIC_RELAXED);
}

/* Takes in what is complete; the number of slots that are not, or not yet. */
static unsigned harvest_context(struct tracked_context *context)
{
    struct check_slot *ready[SLOTS_MAX];
    struct device_work *work = __atomic_load_n(&context->work, __ATOMIC_ACQUIRE);
    unsigned open = 1;
    if (!work || !work->slots)
        return 0;
    if (__atomic_exchange_n(&work->slots->harvesting, true, __ATOMIC_ACQ_REL))
        return open; /* another thread is at it */
    unsigned count = sentinel_slots_complete(work->slots, ready, SLOTS_MAX, &open);
    for (unsigned i = 0; i < count; i++) {
        read_slot(ready[i]);
        __atomic_store_n(&ready[i]->use, SLOT_FREE, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&work->slots->harvesting, false, __ATOMIC_RELEASE);
    return open;
}

void sentinel_harvest(void)
{
    if (options.sentinels == SENTINELS_OFF)
        return;
    for (struct tracked_context *c = track_first_context(); c; c = c->next)
        if (!__atomic_load_n(&c->gone, __ATOMIC_ACQUIRE))
            harvest_context(c);
}

/* Until every look of the context is taken in; false: not until the deadline. */
static bool wait_for_looks(struct tracked_context *context, struct deadline deadline)
{
    unsigned nap = 0;
    while (harvest_context(context)) {
        if (!shim_device_usable())
            return true;
        if (deadline_over(deadline))
            return false;
        deadline_nap(&nap);
    }
    return true;
}

void sentinel_before_free(const struct allocation *a, struct tracked_stream *stream)
{
    struct device_work *work;
    if ((!a->head && !a->tail) || options.check == CHECK_OFF)
        return;
    if (stream) { /* in its order, nobody waits */
        if (options.check >= CHECK_SYNC && can_look(stream, &work) &&
            (__atomic_load_n(&stream->launches_unchecked, __ATOMIC_RELAXED) ||
             __atomic_load_n(&stream->writes_unchecked, __ATOMIC_RELAXED)))
            look(work, stream, a->id);
    } else {
        struct tracked_context *context = track_current_context();
        if (!(work = device_work(context)) || context->id != a->context)
            return;
        if (work->check)
            look_everywhere(context);
        else
            damage_look_by_copy(work);
    }
}

void sentinel_look_begins(void)
{
    __atomic_fetch_add(&looking, 1, __ATOMIC_ACQ_REL);
}

void sentinel_look_ends(void)
{
    __atomic_fetch_sub(&looking, 1, __ATOMIC_ACQ_REL);
}

void sentinel_forgotten(const struct allocation *a, bool stream_ordered)
{
    const struct deadline patience = deadline_in(10000);
    unsigned nap = 0;
    if (!a->head && !a->tail)
        return;
    while (__atomic_load_n(&looking, __ATOMIC_ACQUIRE) && !deadline_over(patience))
        deadline_nap(&nap);
    /* The real free waits for the device as well; what is in flight may be looking at this very redzone. */
    struct tracked_context *context = stream_ordered ? NULL : track_current_context();
    if (context && context->id == a->context)
        wait_for_looks(context, patience);
}

bool sentinel_at_exit(struct deadline deadline)
{
    struct tracked_context *context = track_current_context();
    if (options.sentinels == SENTINELS_OFF || options.check == CHECK_OFF || !context)
        return true;
    struct device_work *work = device_work(context);
    if (!work)
        return true;
    bool looked = true;
    if (work->check) {
        for (struct tracked_stream *s = track_first_stream(); s; s = s->next)
            if (s->context == context && track_stream_reachable(s) && is_due(s, 0, &work))
                look_now(s, work); /* the last one: whatever the budget */
        looked = wait_for_looks(context, deadline);
    } else {
        damage_look_by_copy(work);
    }
    host_redzone_look_at_all();
    return looked;
}
