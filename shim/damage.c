#include "shim/damage.h"

#include <stdlib.h>
#include <string.h>

#include <opsdebug/capture.h>

#include "shim/alloc_table.h"
#include "shim/capture_write.h"
#include "shim/driver.h"
#include "shim/options.h"
#include "shim/sentinel.h"
#include "shim/sentinel_choose.h"

enum { RECENT_LAUNCHES = 4096, ARMED_LAUNCHES = 2, LOOKS_TOGETHER = 16, REDZONE_MAX = 16384 };

static struct {
    uint64_t seq;
    struct tracked_kernel *kernel;
} recent[RECENT_LAUNCHES];
static uint32_t recent_next;

void damage_launched(uint64_t seq, struct tracked_kernel *kernel)
{
    if (options.sentinels == SENTINELS_OFF)
        return;
    uint32_t at = __atomic_fetch_add(&recent_next, 1, __ATOMIC_RELAXED) % RECENT_LAUNCHES;
    __atomic_store_n(&recent[at].kernel, kernel, __ATOMIC_RELAXED);
    __atomic_store_n(&recent[at].seq, seq, __ATOMIC_RELAXED);
}

/* In `check` the guilty launch often had no snapshot. The next launches of the suspects get one. */
static void arm_suspects(uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < RECENT_LAUNCHES; i++) {
        uint64_t seq = __atomic_load_n(&recent[i].seq, __ATOMIC_RELAXED);
        struct tracked_kernel *kernel = __atomic_load_n(&recent[i].kernel, __ATOMIC_RELAXED);
        if (kernel && seq >= from && seq < to)
            __atomic_store_n(&kernel->armed, ARMED_LAUNCHES, __ATOMIC_RELAXED);
    }
}

uint64_t damage_clean_bound(const struct tracked_stream *stream, uint64_t upto)
{
    uint64_t bound = track_unfinished(stream->context, upto);
    for (const struct tracked_stream *s = track_first_stream(); s; s = s->next) {
        uint64_t done = __atomic_load_n(&s->done_seq, __ATOMIC_RELAXED);
        if (s != stream && s->context == stream->context && __atomic_load_n(&s->last_work, __ATOMIC_RELAXED) > done &&
            done < bound)
            bound = done;
    }
    return bound;
}

/* Work of other streams that was enqueued after the look may have been the one that did it. */
static uint64_t seen_bound(const struct check_look *look)
{
    uint64_t bound = look->upto_seq, gone = track_gone_work();
    bound = gone >= bound ? gone + 1 : bound;
    for (const struct tracked_stream *s = track_first_stream(); s; s = s->next) {
        uint64_t last = __atomic_load_n(&s->last_work, __ATOMIC_RELAXED);
        if (s->id != look->stream && last >= bound)
            bound = last + 1;
    }
    return bound;
}

static void write_look(uint64_t damage, const struct check_subject *subject, const struct check_look *look)
{
    struct cap_damage_look *record = look->stream ? capture_define(CAP_DAMAGE_LOOK, sizeof *record) : NULL;
    if (!record)
        return;
    record->damage = damage;
    record->clean_seq = look->stream_clean_seq > subject->clean_seq ? look->stream_clean_seq : subject->clean_seq;
    record->upto_seq = look->upto_seq;
    record->stream = look->stream;
    capture_commit(record);
}

static uint8_t expected_byte(uint32_t id, uint64_t address)
{
    return (uint8_t)(sentinel_word(id, address & ~UINT64_C(3)) >> (address & 3) * 8);
}

/* Damage taken in lately, newest overwriting oldest. */
static struct {
    uint32_t id, tail, first, last, stream;
    uint64_t taken_seq;
    uint8_t found[CHECK_FOUND];
} reported[64];
static uint32_t reported_next;

/* Two streams may look at once and both see the damage, before either has put the pattern back. On one stream looks
 * follow each other, so what the second one sees is new. */
static bool seen_by_another_stream(const struct check_entry *entry, const struct check_subject *subject,
                                   const struct check_look *look)
{
    for (unsigned i = 0; i < sizeof reported / sizeof *reported; i++)
        if (reported[i].id == entry->id && reported[i].tail == subject->tail && reported[i].first == entry->first &&
            reported[i].last == entry->last && reported[i].stream != look->stream &&
            look->upto_seq < reported[i].taken_seq && memcmp(reported[i].found, entry->found, sizeof entry->found) == 0)
            return true;
    unsigned at = __atomic_fetch_add(&reported_next, 1, __ATOMIC_RELAXED) % (sizeof reported / sizeof *reported);
    reported[at].id = entry->id;
    reported[at].tail = subject->tail;
    reported[at].first = entry->first;
    reported[at].last = entry->last;
    reported[at].stream = look->stream;
    reported[at].taken_seq = capture_next_seq();
    memcpy(reported[at].found, entry->found, sizeof entry->found);
    return false;
}

static bool seen, fresh; /* atomic */

bool damage_seen(void)
{
    return __atomic_load_n(&seen, __ATOMIC_RELAXED);
}

bool damage_take_fresh(void)
{
    return __atomic_load_n(&fresh, __ATOMIC_RELAXED) && __atomic_exchange_n(&fresh, false, __ATOMIC_RELAXED);
}

void damage_found(const struct check_entry *entry, const struct check_subject *subject, const struct check_look *look)
{
    struct allocation now;
    if (seen_by_another_stream(entry, subject, look))
        return;
    __atomic_store_n(&seen, true, __ATOMIC_RELAXED);
    __atomic_store_n(&fresh, true, __ATOMIC_RELAXED);
    uint64_t clean = subject->clean_seq, bound = seen_bound(look);
    if (alloc_table_exact(subject->address, &now) && now.id == entry->id && now.clean_seq > clean &&
        now.clean_seq < look->upto_seq)
        clean = now.clean_seq; /* an earlier look was taken in after this one was enqueued */
    struct cap_damage *record = capture_define(CAP_DAMAGE, sizeof *record);
    if (record) {
        uint64_t at = entry->address + entry->first;
        record->allocation = entry->id;
        record->tail = subject->tail;
        record->offset = (int64_t)(at - subject->address);
        record->length = (uint64_t)entry->last - entry->first + 1;
        record->clean_seq = clean;
        record->seen_seq = bound;
        for (uint32_t i = 0; i < CHECK_FOUND && i < record->length; i++) {
            record->expected[i] = expected_byte(entry->id, at + i);
            record->found[i] = entry->found[i];
        }
        uint64_t seq = record->head.seq;
        capture_commit(record);
        write_look(seq, subject, look);
    }
    arm_suspects(clean, bound);
}

/* Looks whose results were taken in and are not recorded yet: a program that launches much has one every few
 * microseconds, and they only tell what was covered. */
static struct {
    uint64_t upto_seq;
    uint32_t looks, redzones, damaged;
} unrecorded; /* atomic members */

void damage_checked_flush(void)
{
    uint32_t redzones = __atomic_exchange_n(&unrecorded.redzones, 0, __ATOMIC_RELAXED);
    uint32_t damaged = __atomic_exchange_n(&unrecorded.damaged, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&unrecorded.looks, 0, __ATOMIC_RELAXED);
    struct cap_checked *record = redzones || damaged ? capture_define(CAP_CHECKED, sizeof *record) : NULL;
    if (!record)
        return;
    record->upto_seq = __atomic_load_n(&unrecorded.upto_seq, __ATOMIC_RELAXED);
    record->redzones = redzones;
    record->damaged = damaged;
    capture_commit(record);
}

void damage_checked(uint64_t upto_seq, uint32_t redzones, uint32_t damaged)
{
    CAPTURE_COUNT(sentinel_checks, redzones);
    __atomic_store_n(&unrecorded.upto_seq, upto_seq, __ATOMIC_RELAXED);
    __atomic_fetch_add(&unrecorded.redzones, redzones, __ATOMIC_RELAXED);
    __atomic_fetch_add(&unrecorded.damaged, damaged, __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&unrecorded.looks, 1, __ATOMIC_RELAXED) >= LOOKS_TOGETHER || damaged)
        damage_checked_flush();
}

/* Compares one redzone on the host and puts the pattern back where it is damaged. 1: damaged. */
static uint32_t look_at(struct device_work *work, const struct allocation *a, bool tail, uint64_t upto,
                        uint8_t bytes[REDZONE_MAX])
{
    struct check_entry entry = {.id = a->id, .address = tail ? a->address + a->bytes : a->address - a->head};
    struct check_subject subject = {a->address, a->bytes, tail, a->clean_seq, false};
    entry.bytes = tail ? a->tail : a->head;
    if (!entry.bytes || entry.bytes > REDZONE_MAX ||
        driver.cuMemcpyDtoHAsync_v2(bytes, entry.address, entry.bytes, work->stream) != CUDA_SUCCESS ||
        driver.cuStreamSynchronize(work->stream) != CUDA_SUCCESS)
        return 0;
    bool damaged = false;
    for (uint32_t i = 0; i < entry.bytes; i++)
        if (bytes[i] != expected_byte(a->id, entry.address + i)) {
            entry.first = damaged ? entry.first : i;
            entry.last = i;
            damaged = true;
        }
    if (!damaged)
        return 0;
    memcpy(entry.found, bytes + entry.first,
           entry.bytes - entry.first < CHECK_FOUND ? entry.bytes - entry.first : CHECK_FOUND);
    damage_found(&entry, &subject, &(struct check_look){.upto_seq = upto});
    for (uint32_t i = entry.first; i <= entry.last; i++)
        bytes[i] = expected_byte(a->id, entry.address + i);
    if (driver.cuMemcpyHtoDAsync_v2 &&
        driver.cuMemcpyHtoDAsync_v2(entry.address + entry.first, bytes + entry.first, entry.last - entry.first + 1,
                                    work->stream) == CUDA_SUCCESS)
        driver.cuStreamSynchronize(work->stream);
    return 1;
}

/* False: there is no memory to look with. */
static bool look_at_all(struct device_work *work, const struct allocation *list, uint32_t count, uint64_t upto)
{
    uint32_t redzones = 0, damaged = 0;
    uint8_t *bytes = malloc(REDZONE_MAX);
    if (!bytes)
        return false;
    CUstreamCaptureMode mode = device_relax();
    for (uint32_t i = 0; i < count; i++) {
        damaged += look_at(work, &list[i], false, upto, bytes) + look_at(work, &list[i], true, upto, bytes);
        redzones += (list[i].head != 0) + (list[i].tail != 0);
    }
    device_unrelax(mode);
    free(bytes);
    if (redzones)
        damage_checked(upto, redzones, damaged);
    return true;
}

static bool can_copy(void)
{
    return driver.cuMemcpyDtoHAsync_v2 && driver.cuStreamSynchronize;
}

void damage_look_by_copies(struct device_work *work)
{
    struct sentinel_choice c;
    if (!can_copy())
        return;
    uint64_t upto = capture_next_seq();
    sentinel_look_begins();
    sentinel_choose_for_copies(work, &c);
    bool looked = look_at_all(work, c.found, c.count, upto);
    for (uint32_t i = 0; looked && i < c.count; i++)
        alloc_table_set_clean(c.found[i].address, c.found[i].id, upto);
    sentinel_look_ends();
    free(c.found);
}

void damage_look_at_by_copy(struct device_work *work, const struct allocation *a)
{
    if (can_copy())
        look_at_all(work, a, 1, capture_next_seq());
}
