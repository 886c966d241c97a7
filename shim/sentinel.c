#include "shim/sentinel.h"

#include <stdlib.h>
#include <string.h>

#include <opsdebug/capture.h>

#include "shim/budget.h"
#include "shim/capture_write.h"
#include "shim/damage.h"
#include "shim/device_cost.h"
#include "shim/driver.h"
#include "shim/guard_sharing.h"
#include "shim/host_redzone.h"
#include "shim/options.h"
#include "shim/pace.h"
#include "shim/sentinel_choose.h"
#include "shim/sentinel_slots.h"
#include "shim/shim.h"
#include "shim/thread.h"
#include "shim/touch.h"

enum {
    HOST_HEAD_BYTES = 4096, /* page-locked memory begins at a page */
    HEAD_BYTES = 512,       /* keeps the alignment that textures of linear memory need, and allocations have */
    TAIL_MIN = 256,
    TAIL_MAX = 8192,
    TAIL_SHARE = 32, /* one byte of redzone for so many of the allocation */
    CHECK_BLOCK = 128,
    CHECK_GRID = 64,
    FREES_ONE_BY_ONE = 8,
    HOST_FREE_MS = 100, /* the program need not expect a free of its own memory to wait at all */
};

/* Threads that are between collecting redzones and having launched the look at them. A free waits for them: otherwise
 * the look could be launched at memory that is gone. */
static uint32_t looking;

struct sentinel_plan sentinel_plan(uint32_t kind, uint64_t bytes, struct tracked_context *context)
{
    struct sentinel_plan plan = {0, 0};
    if (options.sentinels == SENTINELS_OFF || !shim_device_usable())
        return plan;
    struct device_work *work = device_work(context ? context : track_current_context());
    bool stream_ordered = kind == CAP_ALLOC_ASYNC || kind == CAP_ALLOC_POOL;
    if (!work || (stream_ordered && (!work->fill || touch_only_behind_launches())) ||
        (kind == CAP_ALLOC_MANAGED && !touch_managed_is_shared()))
        return plan;
    uint64_t tail = bytes / TAIL_SHARE;
    tail = tail < TAIL_MIN ? TAIL_MIN : tail > TAIL_MAX ? TAIL_MAX : tail;
    /* To the next multiple of 256 behind the program's last byte: no slack that nobody looks at. */
    plan.tail = (uint32_t)(((bytes + tail + 255) & ~UINT64_C(255)) - bytes);
    bool before = options.sentinels == SENTINELS_BOTH ||
                  (options.sentinels == SENTINELS_CAREFUL && !guard_export_possible((enum cap_alloc_kind)kind));
    if (before && kind != CAP_ALLOC_PITCHED)
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
    if (!bytes)
        return true;
    uint8_t *line = driver.cuMemcpyHtoDAsync_v2 && driver.cuStreamSynchronize ? malloc(bytes) : NULL;
    for (uint32_t i = 0; line && i < bytes; i++) {
        uint64_t at = address + i;
        line[i] = (uint8_t)(sentinel_word(id, at & ~UINT64_C(3)) >> (at & 3) * 8);
    }
    bool ok = line && driver.cuMemcpyHtoDAsync_v2(address, line, bytes, work->stream) == CUDA_SUCCESS &&
              driver.cuStreamSynchronize(work->stream) == CUDA_SUCCESS;
    free(line);
    return ok;
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

/* Enqueues a look at what was chosen; false: not at all of it, there was no slot or the driver refused. */
static bool look_at(struct device_work *work, struct tracked_stream *stream, const struct sentinel_choice *choice,
                    uint64_t upto)
{
    struct check_slot *slot = NULL;
    uint64_t clean = damage_clean_bound(stream, upto);
    bool complete = true;
    struct device_cost cost;
    /* One redzone, before it is freed, says nothing about what looks take. */
    device_cost_begin(&cost, choice->all || choice->count > 1 ? CAP_BUDGET_LOOKS : CAP_BUDGET_SYNC_LOOKS, stream);
    for (uint32_t i = 0; i < choice->count; i++) {
        if (!slot) {
            if (!(slot = sentinel_slots_take(work->slots))) {
                complete = false; /* the device is far behind; the next look takes these */
                break;
            }
            slot->count = 0;
            slot->from = stream;
            slot->look =
                (struct check_look){upto, __atomic_load_n(&stream->last_look, __ATOMIC_RELAXED), clean, stream->id};
        }
        if (choice->found[i].head)
            add_entry(slot, &choice->found[i], false);
        if (choice->found[i].tail)
            add_entry(slot, &choice->found[i], true);
        if (slot->count + 2 > CHECK_ENTRIES) {
            complete = launch_slot(work, slot, stream) && complete;
            slot = NULL;
        }
    }
    complete = (!slot || launch_slot(work, slot, stream)) && complete;
    device_cost_end(&cost);
    return complete;
}

/* From here until sentinel_look_ends() the stream is not destroyed. False: it is, or is about to be. */
static bool look_begins_in(const struct tracked_stream *stream)
{
    sentinel_look_begins();
    if (!__atomic_load_n(&stream->gone, __ATOMIC_SEQ_CST))
        return true;
    sentinel_look_ends();
    return false;
}

/* Enqueues a look at the redzones whose turn it is, `must` (NULL: none) among them. */
static bool look(struct device_work *work, struct tracked_stream *stream, const struct allocation *must)
{
    struct sentinel_choice choice;
    uint64_t upto = capture_next_seq();
    thread_slow();
    if (!look_begins_in(stream))
        return false;
    sentinel_choose(stream, must, &choice);
    bool complete = look_at(work, stream, &choice, upto);
    sentinel_look_ends();
    free(choice.found);
    if (complete && choice.all)
        __atomic_store_n(&stream->last_look, upto, __ATOMIC_RELAXED);
    return complete;
}

/* In the order of `stream`, at this one only. */
static void look_at_one(struct device_work *work, struct tracked_stream *stream, const struct allocation *a)
{
    struct allocation copy = *a;
    sentinel_look_begins();
    look_at(work, stream, &(struct sentinel_choice){.found = &copy, .count = 1}, capture_next_seq());
    sentinel_look_ends();
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

static void look_now(struct tracked_stream *stream, struct device_work *work, const struct allocation *must)
{
    uint32_t launches = __atomic_load_n(&stream->launches_unchecked, __ATOMIC_RELAXED);
    uint32_t writes = __atomic_load_n(&stream->writes_unchecked, __ATOMIC_RELAXED);
    if (look(work, stream, must)) {
        __atomic_fetch_sub(&stream->launches_unchecked, launches, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&stream->writes_unchecked, writes, __ATOMIC_RELAXED);
    }
}

/* Whoever asks for a look at every launch has them all. */
static bool in_pace(struct device_work *work)
{
    if (options.check != CHECK_LAUNCH)
        return pace_takes(work->pace, CAP_PACE_REDZONES);
    pace_takes_anyway(work->pace, CAP_PACE_REDZONES);
    return true;
}

/* What is left out for the budget, or by the pace, is made up for by the next look, with a wider window. */
static void look_if_due(struct tracked_stream *stream, uint32_t due, enum cap_budget_part part)
{
    struct device_work *work;
    if (!is_due(stream, due, &work) || !budget_takes(part))
        return;
    if (!in_pace(work)) { /* each further launch asks again: counted is one for each batch */
        if (!due || __atomic_load_n(&stream->launches_unchecked, __ATOMIC_RELAXED) % due == 0)
            pace_left_out(CAP_PACE_REDZONES);
        return;
    }
    BUDGET_SPAN(part);
    look_now(stream, work, NULL);
}

/* Of many allocations a look takes some in turn: no look behind the stream's newest work had this one. */
static bool was_left_out(const struct tracked_stream *stream, const struct allocation *a)
{
    return alloc_table_count() > SENTINEL_LOOK_MAX &&
           __atomic_load_n(&stream->last_work, __ATOMIC_RELAXED) >= a->clean_seq;
}

/* Frees with no work between them: the program gives back what it has. Then looks at many at once are the cheaper ones,
 * whatever their pace: each allocation is looked at once. */
static bool frees_follow(struct tracked_stream *stream)
{
    uint64_t work = __atomic_load_n(&stream->last_work, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&stream->freed_behind, work, __ATOMIC_RELAXED) != work)
        __atomic_store_n(&stream->frees_behind, 0, __ATOMIC_RELAXED);
    return __atomic_add_fetch(&stream->frees_behind, 1, __ATOMIC_RELAXED) > FREES_ONE_BY_ONE;
}

/* Before `must` is freed. Left out are only the others, then. */
static void look_before_free(struct tracked_stream *stream, const struct allocation *must)
{
    struct device_work *work;
    bool due = is_due(stream, 0, &work);
    if (!due && !(was_left_out(stream, must) && can_look(stream, &work)))
        return;
    if (!budget_takes(CAP_BUDGET_SYNC_LOOKS))
        return;
    BUDGET_SPAN(CAP_BUDGET_SYNC_LOOKS);
    if (due ? in_pace(work) : frees_follow(stream))
        look_now(stream, work, must);
    else
        look_at_one(work, stream, must);
}

void sentinel_after_launch(struct tracked_stream *stream, uint64_t seq, bool chained)
{
    if (options.sentinels == SENTINELS_OFF)
        return;
    __atomic_store_n(&stream->last_work, seq, __ATOMIC_RELAXED);
    __atomic_fetch_add(&stream->launches_unchecked, 1, __ATOMIC_RELAXED);
    if (chained) /* the next one may depend on this one, and overlap it */
        return;
    if (options.check == CHECK_LAUNCH || (options.check >= CHECK_SYNC && touch_only_behind_launches()))
        look_if_due(stream, 0, CAP_BUDGET_LOOKS); /* later may be too late */
    else if (options.check == CHECK_BATCH)
        look_if_due(stream, (uint32_t)options.check_batch, CAP_BUDGET_LOOKS);
}

void sentinel_after_write(struct tracked_stream *stream, uint64_t seq, bool waited)
{
    if (!stream || options.sentinels == SENTINELS_OFF)
        return;
    __atomic_store_n(&stream->last_work, seq, __ATOMIC_RELAXED);
    __atomic_fetch_add(&stream->writes_unchecked, 1, __ATOMIC_RELAXED);
    if (options.check == CHECK_LAUNCH && !(waited && touch_only_behind_launches()))
        look_if_due(stream, 0, CAP_BUDGET_LOOKS);
}

/* Whether work of the context may be newer than `seq`. */
static bool worked_since(const struct tracked_context *context, uint64_t seq)
{
    if (track_gone_work() >= seq)
        return true;
    for (const struct tracked_stream *s = track_first_stream(); s; s = s->next)
        if (s->context == context && __atomic_load_n(&s->last_work, __ATOMIC_RELAXED) >= seq)
            return true;
    return false;
}

void sentinel_after_sync(struct device_work *work)
{
    if (work->check || options.check < CHECK_SYNC ||
        !worked_since(work->context, __atomic_load_n(&work->copies_seq, __ATOMIC_RELAXED)))
        return;
    __atomic_store_n(&work->copies_seq, capture_next_seq(), __ATOMIC_RELAXED);
    damage_look_by_copies(work);
}

/* Streams that other threads use, too. While a capture is going on, only they know which one is about to join it by a
 * wait for an event: then nothing is put into any. */
static void look_everywhere(const struct tracked_context *context, const struct allocation *must)
{
    if (!device_uncaptured_begins())
        return;
    for (struct tracked_stream *s = track_first_stream(); s; s = s->next)
        if (s->context == context && track_stream_reachable(s)) {
            if (must)
                look_before_free(s, must);
            else
                look_if_due(s, 0, CAP_BUDGET_SYNC_LOOKS);
        }
    device_uncaptured_ends();
}

void sentinel_before_sync(struct tracked_stream *stream)
{
    if (options.check < CHECK_SYNC || touch_only_behind_launches())
        return;
    if (stream)
        look_if_due(stream, 0, CAP_BUDGET_SYNC_LOOKS);
    else
        look_everywhere(track_current_context(), NULL);
}

static void read_slot(struct check_slot *slot)
{
    uint32_t damaged = 0, withdrawn = 0;
    for (uint32_t i = 0; i < slot->count; i++) {
        withdrawn += slot->subjects[i].withdrawn;
        if (slot->entries[i].state == CHECK_DAMAGED && !slot->subjects[i].withdrawn) {
            damage_found(&slot->entries[i], &slot->subjects[i], &slot->look);
            damaged++;
        }
    }
    /* Only now: the other redzone of the same allocation would hide since when this one was known to be intact. */
    for (uint32_t i = 0; i < slot->count; i++)
        alloc_table_set_clean(slot->subjects[i].address, slot->entries[i].id, slot->look.clean_seq);
    damage_checked(slot->look.upto_seq, slot->count - withdrawn, damaged);
    /* The look came after all of its stream's work before it: that is complete, too. */
    if (__atomic_load_n(&slot->from->done_seq, __ATOMIC_RELAXED) < slot->look.upto_seq)
        __atomic_store_n(&slot->from->done_seq, slot->look.upto_seq, __ATOMIC_RELAXED);
}

/* Takes in what is complete; the number of slots that are not, or not yet. */
static unsigned harvest_context(struct tracked_context *context)
{
    struct device_work *work = __atomic_load_n(&context->work, __ATOMIC_ACQUIRE);
    unsigned open = 1;
    if (!work || !work->slots)
        return 0;
    if (__atomic_exchange_n(&work->slots->harvesting, true, __ATOMIC_ACQ_REL))
        return open; /* another thread is at it */
    struct check_slot **ready = work->slots->ready;
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

void sentinel_wait(struct deadline deadline)
{
    struct tracked_context *context = track_current_context();
    if (context && options.sentinels != SENTINELS_OFF)
        (void)wait_for_looks(context, deadline);
}

void sentinel_before_free(const struct allocation *a, struct tracked_stream *stream)
{
    struct device_work *work;
    if ((!a->head && !a->tail) || options.check == CHECK_OFF)
        return;
    if (stream) { /* in its order, nobody waits; another device's stream need not reach it */
        if (options.check >= CHECK_SYNC && !touch_only_behind_launches() && stream->context &&
            stream->context->id == a->context && can_look(stream, &work) &&
            (__atomic_load_n(&stream->launches_unchecked, __ATOMIC_RELAXED) ||
             __atomic_load_n(&stream->writes_unchecked, __ATOMIC_RELAXED) || was_left_out(stream, a)))
            look_at_one(work, stream, a);
    } else {
        struct tracked_context *context = track_current_context();
        if (!(work = device_work(context)) || context->id != a->context)
            return;
        if (work->check && !touch_only_behind_launches())
            look_everywhere(context, a);
        else if (!work->check && worked_since(context, a->clean_seq))
            damage_look_at_by_copy(work, a);
    }
}

void sentinel_look_begins(void)
{
    __atomic_fetch_add(&looking, 1, __ATOMIC_SEQ_CST);
}

void sentinel_look_ends(void)
{
    __atomic_fetch_sub(&looking, 1, __ATOMIC_ACQ_REL);
}

/* Until nobody is between collecting redzones and launching the look at them. */
static void wait_for_lookers(struct deadline patience)
{
    unsigned nap = 0;
    while (__atomic_load_n(&looking, __ATOMIC_SEQ_CST) && !deadline_over(patience))
        deadline_nap(&nap);
}

void sentinel_lookers_leave(void)
{
    wait_for_lookers(deadline_in(10000));
}

void sentinel_forgotten(const struct allocation *a)
{
    const struct deadline patience = deadline_in(10000);
    if (!a->head && !a->tail)
        return;
    wait_for_lookers(patience);
    /* The real free waits for the device as well; what is in flight may be looking at this very redzone. */
    struct tracked_context *context = track_current_context();
    if (context && context->id == a->context)
        wait_for_looks(context, patience);
}

static void withdraw(const struct allocation *a, const struct tracked_stream *stream)
{
    for (struct tracked_context *c = track_first_context(); c; c = c->next) {
        struct device_work *work = c->id == a->context ? device_work(c) : NULL;
        if (work && work->slots)
            sentinel_slots_withdraw(work->slots, a->id, stream);
    }
}

void sentinel_forgotten_by_host(const struct allocation *a)
{
    if (!a->head && !a->tail)
        return;
    sentinel_lookers_leave();
    struct tracked_context *context = track_current_context();
    if (context && context->id == a->context)
        (void)wait_for_looks(context, deadline_in(HOST_FREE_MS));
    withdraw(a, NULL);
}

void sentinel_forgotten_on(const struct allocation *a, const struct tracked_stream *stream)
{
    if (!a->head && !a->tail)
        return;
    sentinel_lookers_leave();
    withdraw(a, stream);
}

/* What looks so far had no turn for, in parts. False: not all of it until the deadline. */
static bool look_at_the_rest(struct tracked_context *context, struct deadline deadline)
{
    if (alloc_table_count() <= SENTINEL_LOOK_MAX)
        return true;
    for (struct tracked_stream *s = track_first_stream(); s; s = s->next) {
        struct device_work *work;
        uint64_t cursor = 0;
        if (s->context != context || !track_stream_reachable(s) || !can_look(s, &work))
            continue;
        do {
            struct sentinel_choice choice;
            if (!look_begins_in(s))
                break;
            sentinel_choose_next(s, &cursor, &choice);
            look_at(work, s, &choice, capture_next_seq());
            sentinel_look_ends();
            free(choice.found);
            if (!wait_for_looks(context, deadline))
                return false;
        } while (cursor);
    }
    return true;
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
                look_now(s, work, NULL); /* the last one: whatever the budget */
        looked = look_at_the_rest(context, deadline) && wait_for_looks(context, deadline);
    } else {
        damage_look_by_copies(work);
    }
    host_redzone_look_at_all();
    return looked;
}
