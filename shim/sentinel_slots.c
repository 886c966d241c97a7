#include "shim/sentinel_slots.h"

#include <sched.h>
#include <stdlib.h>

#include "shim/deadline.h"
#include "shim/device_work.h"

/* What check.ptx needs for one redzone, and ten times more. */
#define LOOK_NS UINT64_C(100000)

static struct check_slot *make_group(void)
{
    CUdeviceptr device = 0;
    struct check_slot *group = calloc(SLOTS_PER_GROUP, sizeof *group);
    struct check_entry *entries =
        group ? device_host_memory((size_t)SLOTS_PER_GROUP * CHECK_ENTRIES * sizeof *entries, &device) : NULL;
    if (!entries) {
        free(group);
        return NULL;
    }
    for (unsigned i = 0; i < SLOTS_PER_GROUP; i++) {
        group[i].entries = entries + (size_t)i * CHECK_ENTRIES;
        group[i].device = device + (CUdeviceptr)i * CHECK_ENTRIES * sizeof *entries;
    }
    return group;
}

struct sentinel_slots *sentinel_slots_make(void)
{
    struct sentinel_slots *slots = calloc(1, sizeof *slots);
    if (slots && !(slots->groups[0] = make_group())) {
        free(slots);
        return NULL;
    }
    return slots;
}

static struct check_slot *take_from(struct check_slot *group)
{
    for (unsigned i = 0; i < SLOTS_PER_GROUP; i++) {
        uint32_t unused = SLOT_FREE;
        if (__atomic_compare_exchange_n(&group[i].use, &unused, SLOT_FILLING, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return &group[i];
    }
    return NULL;
}

struct check_slot *sentinel_slots_take(struct sentinel_slots *slots)
{
    struct check_slot *slot = NULL;
    for (unsigned g = 0; g < GROUPS_MAX && !slot; g++) {
        struct check_slot *group = __atomic_load_n(&slots->groups[g], __ATOMIC_ACQUIRE), *none = NULL;
        if (!group) {
            if (!(group = make_group()))
                return NULL;
            /* Another thread may have been faster; then its group serves and ours stays unused, which is rare and
             * small. */
            if (!__atomic_compare_exchange_n(&slots->groups[g], &none, group, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_ACQUIRE))
                group = none;
        }
        slot = take_from(group);
    }
    return slot;
}

static bool complete(const struct check_slot *slot)
{
    for (uint32_t i = 0; i < slot->count; i++)
        if (__atomic_load_n(&slot->entries[i].state, __ATOMIC_ACQUIRE) == CHECK_PENDING)
            return false;
    return true;
}

static int by_seq(const void *left, const void *right)
{
    const struct check_slot *a = *(struct check_slot *const *)left, *b = *(struct check_slot *const *)right;
    return a->look.upto_seq < b->look.upto_seq ? -1 : a->look.upto_seq > b->look.upto_seq;
}

unsigned sentinel_slots_complete(struct sentinel_slots *slots, struct check_slot **out, unsigned room, unsigned *open)
{
    unsigned count = 0;
    *open = 0;
    for (unsigned g = 0; g < GROUPS_MAX; g++) {
        struct check_slot *group = __atomic_load_n(&slots->groups[g], __ATOMIC_ACQUIRE);
        for (unsigned i = 0; group && i < SLOTS_PER_GROUP; i++) {
            uint32_t pending = SLOT_PENDING;
            if (__atomic_load_n(&group[i].use, __ATOMIC_ACQUIRE) != SLOT_PENDING)
                continue;
            if (count == room || !complete(&group[i]))
                ++*open;
            else if (__atomic_compare_exchange_n(&group[i].use, &pending, SLOT_READING, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_RELAXED))
                out[count++] = &group[i];
        }
    }
    qsort(out, count, sizeof(void *), by_seq);
    return count;
}

/* The device reads the address first, then the number of bytes: with the new address it finds none. */
static bool withdraw_from(struct check_slot *slot, uint32_t id)
{
    bool on_its_way = false;
    for (uint32_t i = 0; i < slot->count; i++) {
        struct check_entry *e = &slot->entries[i];
        if (e->id != id || __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != CHECK_PENDING)
            continue;
        slot->subjects[i].withdrawn = on_its_way = true;
        __atomic_store_n(&e->bytes, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&e->address, slot->device, __ATOMIC_SEQ_CST);
    }
    return on_its_way;
}

void sentinel_slots_withdraw(struct sentinel_slots *slots, uint32_t id, const struct tracked_stream *stream)
{
    bool on_its_way = false;
    while (__atomic_exchange_n(&slots->harvesting, true, __ATOMIC_ACQ_REL))
        sched_yield(); /* whoever takes slots in waits for nobody */
    for (unsigned g = 0; g < GROUPS_MAX; g++) {
        struct check_slot *group = __atomic_load_n(&slots->groups[g], __ATOMIC_ACQUIRE);
        for (unsigned i = 0; group && i < SLOTS_PER_GROUP; i++)
            if (__atomic_load_n(&group[i].use, __ATOMIC_ACQUIRE) == SLOT_PENDING && group[i].from != stream)
                on_its_way |= withdraw_from(&group[i], id);
    }
    __atomic_store_n(&slots->harvesting, false, __ATOMIC_RELEASE);
    const struct deadline patience = {deadline_now() + (on_its_way ? LOOK_NS : 0)};
    while (on_its_way && !deadline_over(patience))
        sched_yield();
}
