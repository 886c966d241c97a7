#include "shim/scan.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <opsdebug/capture.h>

#include "common/map.h"
#include "shim/alloc_table.h"
#include "shim/budget.h"
#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/device_cost.h"
#include "shim/driver.h"
#include "shim/memory.h"
#include "shim/options.h"
#include "shim/pace.h"
#include "shim/poison.h"
#include "shim/reach.h"
#include "shim/sentinel.h"
#include "shim/shim.h"
#include "shim/thread.h"
#include "shim/touch.h"

enum {
    SLOTS_PER_GROUP = 32,
    GROUPS_MAX = 16,
    SCAN_BLOCK = 128,
    FULL_WORDS_MAX = 16 << 20, /* of a full scan after a suspicious sample: one block reads so much in milliseconds */
    CHUNKS = 8,                /* HEALTH=full: one range is shared by so many blocks */
    CHUNK_MIN = 1 << 18,
    WATCH_LAUNCHES = 4,     /* preset watch: of each kernel */
    CHECK_ONE_OF = 16,      /* preset check: of each kernel, beside those with snapshots */
    LAUNCHES_TOGETHER = 64, /* looked at, in one record */
    FLOATS_MAX = 1 << 20,   /* allocations remembered as holding floats */
};

enum slot_use { SLOT_FREE, SLOT_FILLING, SLOT_PENDING, SLOT_FAILED /* no launch came */ };

struct subject {
    uint32_t allocation;
    uint64_t offset; /* of the range in the allocation */
};

struct scan_slot {
    uint32_t use; /* atomic: enum slot_use */
    uint32_t count;
    uint64_t launch;
    struct scan_entry *entries; /* mapped host memory */
    CUdeviceptr device;
    struct subject subjects[SCAN_ENTRIES];
};

struct scan_slots {
    struct scan_slot *groups[GROUPS_MAX];                  /* atomic, NULL: not made */
    bool harvesting;                                       /* atomic */
    struct scan_slot *ready[SLOTS_PER_GROUP * GROUPS_MAX]; /* of who harvests */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map floats; /* allocations that were seen to hold floats */
static uint32_t float_count;
static uint32_t left_out; /* atomic: ranges and launches that found no room, not yet recorded */

static struct scan_slot *make_group(void)
{
    CUdeviceptr device = 0;
    struct scan_slot *group = calloc(SLOTS_PER_GROUP, sizeof *group);
    size_t bytes = (size_t)SCAN_ENTRIES * sizeof(struct scan_entry);
    char *entries = group ? device_host_memory(SLOTS_PER_GROUP * bytes, &device) : NULL;
    if (!entries) {
        free(group);
        return NULL;
    }
    for (unsigned i = 0; i < SLOTS_PER_GROUP; i++) {
        group[i].entries = (struct scan_entry *)(void *)(entries + i * bytes);
        group[i].device = device + i * bytes;
    }
    return group;
}

struct scan_slots *scan_slots_make(void)
{
    struct scan_slots *slots = calloc(1, sizeof *slots);
    if (slots && !(slots->groups[0] = make_group())) {
        free(slots);
        return NULL;
    }
    return slots;
}

static struct scan_slot *take_slot(struct scan_slots *slots)
{
    for (unsigned g = 0; g < GROUPS_MAX; g++) {
        struct scan_slot *group = __atomic_load_n(&slots->groups[g], __ATOMIC_ACQUIRE), *none = NULL;
        if (!group) {
            if (!(group = make_group()))
                return NULL;
            if (!__atomic_compare_exchange_n(&slots->groups[g], &none, group, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE))
                group = none; /* another thread was faster; ours stays unused, which is rare and small */
        }
        for (unsigned i = 0; i < SLOTS_PER_GROUP; i++) {
            uint32_t unused = SLOT_FREE;
            if (__atomic_compare_exchange_n(&group[i].use, &unused, SLOT_FILLING, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_RELAXED))
                return &group[i];
        }
    }
    return NULL;
}

static bool known_float(uint32_t allocation)
{
    uint64_t value;
    pthread_mutex_lock(&lock);
    bool known = map_get(&floats, allocation, &value);
    pthread_mutex_unlock(&lock);
    return known;
}

static void remember_float(uint32_t allocation)
{
    pthread_mutex_lock(&lock);
    if (float_count < FLOATS_MAX && memory_map_put(&floats, allocation, 1, false))
        float_count++;
    pthread_mutex_unlock(&lock);
}

/* Memory that the device can read for sure: of this context, and mapped as long as it is in the table. */
static bool readable(const struct allocation *a, const struct tracked_stream *stream)
{
    if (a->context != stream->context->id || !touch_may_read(a, stream))
        return false;
    switch (a->kind) {
    case CAP_ALLOC_DEVICE:
    case CAP_ALLOC_PITCHED:
    case CAP_ALLOC_MANAGED:
    case CAP_ALLOC_ASYNC:
    case CAP_ALLOC_POOL:
        return true;
    case CAP_ALLOC_VARIABLE:
        return !a->constant;
    default:
        return false;
    }
}

static void add_entry(struct scan_slot *slot, const struct allocation *a, uint64_t address, uint64_t words,
                      uint32_t flags)
{
    if (slot->count == SCAN_ENTRIES) {
        __atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
        return;
    }
    struct scan_entry *e = &slot->entries[slot->count];
    memset(e, 0, sizeof *e);
    e->address = address;
    e->words = words > UINT32_MAX ? UINT32_MAX : (uint32_t)words;
    e->threshold = options.health_threshold;
    e->seed = (uint32_t)(slot->launch * 2654435761u);
    e->flags = flags;
    e->full_words = e->words < FULL_WORDS_MAX ? e->words : FULL_WORDS_MAX;
    e->leave_out = POISON_PATTERN;
    slot->subjects[slot->count++] = (struct subject){a->id, address - a->address};
}

static void add_range(struct scan_slot *slot, const struct reached *r)
{
    const struct allocation *a = &r->a;
    uint64_t start = r->address >= a->address + a->bytes ? a->address : r->address, end = a->address + a->bytes;
    start = (start + 3) & ~UINT64_C(3);
    uint64_t words = end > start ? (end - start) / 4 : 0;
    uint32_t flags = known_float(a->id) ? SCAN_KNOWN_FLOAT : 0;
    if (!words)
        return;
    if (options.health != HEALTH_FULL) {
        add_entry(slot, a, start, words, flags);
        return;
    }
    uint64_t chunk = words / CHUNKS + 1;
    chunk = chunk < CHUNK_MIN ? CHUNK_MIN : chunk;
    for (uint64_t done = 0; done < words; done += chunk)
        add_entry(slot, a, start + done * 4, words - done < chunk ? words - done : chunk, flags | SCAN_ALL);
}

static bool launch_look(const struct device_work *work, struct scan_slot *slot, struct tracked_stream *stream,
                        uint32_t after)
{
    void *arguments[] = {&slot->device, &slot->count, &after};
    struct device_cost cost;
    device_cost_begin(&cost, CAP_BUDGET_HEALTH, stream);
    bool ok = driver.cuLaunchKernel(work->scan, slot->count, 1, 1, SCAN_BLOCK, 1, 1, 0, stream->handle, arguments,
                                    NULL) == CUDA_SUCCESS;
    device_cost_end(&cost);
    return ok;
}

bool scan_due(const struct tracked_kernel *kernel, bool snapshots)
{
    uint64_t number = __atomic_load_n(&kernel->launches, __ATOMIC_RELAXED);
    if (options.health == HEALTH_OFF || !kernel->matches)
        return false;
    return options.preset == PRESET_DEEP ||
           (options.preset == PRESET_WATCH ? number < WATCH_LAUNCHES : snapshots || number % CHECK_ONE_OF == 0);
}

/* Launches with snapshots are few, and what they are looked at for is then there to be judged. */
static bool in_pace(struct device_work *work, bool snapshots)
{
    if (snapshots || options.health == HEALTH_FULL) {
        pace_takes_anyway(work->pace, CAP_PACE_HEALTH);
        return true;
    }
    bool taken = pace_takes(work->pace, CAP_PACE_HEALTH);
    if (!taken)
        pace_left_out(CAP_PACE_HEALTH);
    return taken;
}

/* NULL: no look. Else a free of another thread waits until slot_ready(). */
static struct scan_slot *slot_begin(struct tracked_stream *stream, uint64_t launch_seq, bool snapshots)
{
    struct device_work *work = device_work(stream->context);
    if (!work || !work->scan || !work->scans || !budget_takes(CAP_BUDGET_HEALTH) || !in_pace(work, snapshots))
        return NULL;
    struct scan_slot *slot = take_slot(work->scans);
    if (!slot) {
        __atomic_fetch_add(&left_out, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    thread_slow();
    slot->count = 0;
    slot->launch = launch_seq;
    sentinel_look_begins();
    return slot;
}

static struct scan_slot *slot_ready(struct scan_slot *slot, struct tracked_stream *stream)
{
    struct device_work *work = device_work(stream->context);
    bool ok = slot->count && work && launch_look(work, slot, stream, 0);
    sentinel_look_ends();
    if (ok)
        return slot;
    __atomic_store_n(&slot->use, SLOT_FREE, __ATOMIC_RELEASE);
    return NULL;
}

struct scan_slot *scan_before(struct tracked_kernel *kernel, struct tracked_stream *stream, uint64_t launch_seq,
                              const uint8_t *arguments, uint32_t bytes, bool snapshots)
{
    if (!scan_due(kernel, snapshots))
        return NULL;
    BUDGET_SPAN(CAP_BUDGET_HEALTH);
    struct reached *reached = malloc(REACH_MAX * sizeof *reached);
    struct scan_slot *slot = reached ? slot_begin(stream, launch_seq, snapshots) : NULL;
    uint32_t count = slot ? reach(kernel, arguments, bytes, reached) : 0;
    for (uint32_t i = 0; i < count; i++)
        if (readable(&reached[i].a, stream))
            add_range(slot, &reached[i]);
    free(reached);
    return slot ? slot_ready(slot, stream) : NULL;
}

struct scan_slot *scan_before_found(struct tracked_stream *stream, uint64_t launch_seq, const struct allocation *found,
                                    uint32_t count, bool snapshots)
{
    BUDGET_SPAN(CAP_BUDGET_HEALTH);
    struct scan_slot *slot = slot_begin(stream, launch_seq, snapshots);
    for (uint32_t i = 0; slot && i < count; i++) {
        struct allocation now; /* what was freed since must not be read */
        struct reached all = {.a = found[i], .address = found[i].address};
        if (alloc_table_find(found[i].address, &now) && now.id == found[i].id && readable(&found[i], stream))
            add_range(slot, &all);
    }
    return slot ? slot_ready(slot, stream) : NULL;
}

void scan_after(struct scan_slot *slot, struct tracked_stream *stream, bool launched)
{
    if (!slot)
        return;
    BUDGET_SPAN(CAP_BUDGET_HEALTH);
    struct device_work *work = launched ? device_work(stream->context) : NULL;
    bool ok = work && launch_look(work, slot, stream, 1);
    __atomic_store_n(&slot->use, ok ? SLOT_PENDING : SLOT_FAILED, __ATOMIC_RELEASE);
}

static bool bad(const struct scan_look *look)
{
    return look->nan || look->inf || look->over;
}

static bool held_floats(const struct scan_entry *e)
{
    return scan_looks_float(&e->before) || (e->flags & SCAN_KNOWN_FLOAT);
}

static void report(const struct scan_slot *slot, unsigned i, bool propagated)
{
    const struct scan_entry *e = &slot->entries[i];
    const struct scan_look *look = e->full.state && bad(&e->full) ? &e->full : &e->after;
    struct cap_health *record = capture_define(CAP_HEALTH, sizeof *record);
    if (!record)
        return;
    record->launch = slot->launch;
    record->allocation = slot->subjects[i].allocation;
    record->type = CAP_HEALTH_F32;
    record->offset = slot->subjects[i].offset;
    record->bytes = (uint64_t)e->words * 4;
    record->first = record->offset + (uint64_t)look->first * 4;
    record->words = look->looked;
    record->nan = look->nan;
    record->inf = look->inf;
    record->over = look->over;
    record->flags = (look == &e->full || (e->flags & SCAN_ALL) || e->words <= SCAN_SAMPLES ? CAP_HEALTH_FULL : 0) |
                    (propagated ? CAP_HEALTH_INPUTS : 0);
    memcpy(&record->threshold, &e->threshold, sizeof record->threshold);
    capture_commit(record);
}

struct totals {
    uint32_t launches, ranges, floats, reported;
};

static void read_slot(const struct scan_slot *slot, struct totals *totals)
{
    bool inputs_bad = false;
    for (uint32_t i = 0; i < slot->count; i++)
        inputs_bad |= held_floats(&slot->entries[i]) && bad(&slot->entries[i].before);
    totals->launches++;
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct scan_entry *e = &slot->entries[i];
        bool is_float = held_floats(e) || scan_looks_float(&e->after);
        totals->ranges++;
        totals->floats += is_float;
        if (is_float && !(e->flags & SCAN_KNOWN_FLOAT))
            remember_float(slot->subjects[i].allocation);
        if (!is_float || bad(&e->before) || !bad(&e->after))
            continue;
        report(slot, i, inputs_bad);
        totals->reported++;
    }
}

static bool complete(const struct scan_slot *slot, uint32_t use)
{
    for (uint32_t i = 0; i < slot->count; i++) {
        const struct scan_look *look = use == SLOT_PENDING ? &slot->entries[i].after : &slot->entries[i].before;
        if (!__atomic_load_n(&look->state, __ATOMIC_ACQUIRE))
            return false;
    }
    return true;
}

static int by_launch(const void *left, const void *right)
{
    const struct scan_slot *a = *(struct scan_slot *const *)left, *b = *(struct scan_slot *const *)right;
    return a->launch < b->launch ? -1 : a->launch > b->launch;
}

/* How many slots are not complete yet. */
static unsigned harvest(struct scan_slots *slots, struct totals *totals)
{
    struct scan_slot **ready = slots->ready;
    unsigned count = 0, open = 0;
    for (unsigned g = 0; g < GROUPS_MAX; g++) {
        struct scan_slot *group = __atomic_load_n(&slots->groups[g], __ATOMIC_ACQUIRE);
        for (unsigned i = 0; group && i < SLOTS_PER_GROUP; i++) {
            uint32_t use = __atomic_load_n(&group[i].use, __ATOMIC_ACQUIRE);
            if (use != SLOT_PENDING && use != SLOT_FAILED)
                continue;
            if (!complete(&group[i], use))
                open++;
            else
                ready[count++] = &group[i];
        }
    }
    qsort(ready, count, sizeof(void *), by_launch);
    for (unsigned i = 0; i < count; i++) {
        if (ready[i]->use == SLOT_PENDING)
            read_slot(ready[i], totals);
        __atomic_store_n(&ready[i]->use, SLOT_FREE, __ATOMIC_RELEASE);
    }
    return open;
}

/* What was looked at and is not recorded yet: it only tells what was covered. Behind `lock`. */
static struct totals unrecorded;

static void add_totals(struct totals *to, const struct totals *more)
{
    to->launches += more->launches;
    to->ranges += more->ranges;
    to->floats += more->floats;
    to->reported += more->reported;
}

static void record_totals(const struct totals *totals)
{
    uint32_t lost = __atomic_exchange_n(&left_out, 0, __ATOMIC_RELAXED);
    if (!totals->launches && !lost)
        return;
    struct cap_health_checked *record = capture_define(CAP_HEALTH_CHECKED, sizeof *record);
    if (!record)
        return;
    record->launches = totals->launches;
    record->ranges = totals->ranges;
    record->floats = totals->floats;
    record->reported = totals->reported;
    record->left_out = lost;
    capture_commit(record);
}

void scan_flush(void)
{
    pthread_mutex_lock(&lock);
    struct totals totals = unrecorded;
    unrecorded = (struct totals){0};
    pthread_mutex_unlock(&lock);
    record_totals(&totals);
}

static unsigned harvest_context(struct tracked_context *context)
{
    struct totals totals = {0};
    struct device_work *work = __atomic_load_n(&context->work, __ATOMIC_ACQUIRE);
    if (!work || !work->scans || __atomic_load_n(&context->gone, __ATOMIC_ACQUIRE))
        return 0;
    if (__atomic_exchange_n(&work->scans->harvesting, true, __ATOMIC_ACQ_REL))
        return 1; /* another thread is at it */
    unsigned open = harvest(work->scans, &totals);
    pthread_mutex_lock(&lock);
    add_totals(&unrecorded, &totals);
    bool enough = unrecorded.launches >= LAUNCHES_TOGETHER || totals.reported;
    pthread_mutex_unlock(&lock);
    if (enough)
        scan_flush();
    __atomic_store_n(&work->scans->harvesting, false, __ATOMIC_RELEASE);
    return open;
}

void scan_harvest(void)
{
    if (options.health == HEALTH_OFF)
        return;
    BUDGET_SPAN(CAP_BUDGET_HEALTH);
    for (struct tracked_context *c = track_first_context(); c; c = c->next)
        harvest_context(c);
}

void scan_finish(struct deadline deadline)
{
    unsigned nap = 0;
    struct tracked_context *context = options.health == HEALTH_OFF ? NULL : track_current_context();
    while (context && harvest_context(context) && shim_device_usable() && !deadline_over(deadline))
        deadline_nap(&nap);
}
