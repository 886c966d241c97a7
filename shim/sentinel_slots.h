/* sentinel_slots.h - where a look at redzones leaves what it saw: slots of mapped host memory, one per launch of
 * check.ptx.
 *
 * A slot is free, being filled, or pending; pending until every one of its entries has a state. Nothing orders slots,
 * so streams and threads are independent. Used by sentinel.c and sentinel_host.c only.
 */
#ifndef SHIM_SENTINEL_SLOTS_H
#define SHIM_SENTINEL_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/track.h"

enum {
    SLOTS_PER_GROUP = 16,
    GROUPS_MAX = 64,
    SLOTS_MAX = SLOTS_PER_GROUP * GROUPS_MAX,
    CHECK_ENTRIES = 256,
    CHECK_FOUND = 32
};

enum check_state { CHECK_PENDING, CHECK_INTACT, CHECK_DAMAGED };

/* As check.ptx reads and writes it. */
struct check_entry {
    uint64_t address;
    uint32_t bytes, id;
    uint32_t state;       /* written last */
    uint32_t first, last; /* offsets of the damage in the redzone */
    uint32_t reserved;
    uint8_t found[CHECK_FOUND];
};
_Static_assert(sizeof(struct check_entry) == 64, "check.ptx steps by 64");

/* What the host keeps about an entry. */
struct check_subject {
    uint64_t address, bytes; /* of the allocation */
    uint32_t tail;           /* behind it, else before */
    uint64_t clean_seq;      /* before this look */
    bool withdrawn;          /* behind `harvesting`: the look leaves it out */
};

enum slot_use { SLOT_FREE, SLOT_FILLING, SLOT_PENDING, SLOT_READING };

/* When a look was, and where. */
struct check_look {
    uint64_t upto_seq;         /* work of its stream before this was complete when it looked */
    uint64_t stream_clean_seq; /* upto_seq of the look before this one in the same stream */
    uint64_t clean_seq;        /* what an intact redzone is known to be clean up to */
    uint32_t stream;           /* 0: a look by copies, or by the host */
};

struct check_slot {
    uint32_t use; /* atomic: enum slot_use */
    uint32_t count;
    struct check_look look;
    struct tracked_stream *from;
    struct check_entry *entries; /* mapped host memory */
    CUdeviceptr device;
    struct check_subject subjects[CHECK_ENTRIES];
};

/* Slots are made in groups, as the host runs ahead of the device; the first group with the context. */
struct sentinel_slots {
    struct check_slot *groups[GROUPS_MAX]; /* atomic; SLOTS_PER_GROUP each, NULL: not made */
    bool harvesting;                       /* atomic: one thread takes slots in, */
    struct check_slot *ready[SLOTS_MAX];   /* by this list */
};

struct sentinel_slots *sentinel_slots_make(void); /* NULL: no mapped host memory */
/* A slot to fill, NULL when all are pending and no more can be made. */
struct check_slot *sentinel_slots_take(struct sentinel_slots *slots);

/* Claims every complete slot, in the order of upto_seq: damage must be seen in the order it happened in. `*open` counts
 * those that are not complete. The caller reads them and sets SLOT_FREE. */
unsigned sentinel_slots_complete(struct sentinel_slots *slots, struct check_slot **out, unsigned room, unsigned *open);

/* Looks that are on their way in other streams than `stream` (NULL: none is excepted) leave the allocation `id` out.
 * Returns when none of them can be in the middle of it. Takes `harvesting` for a moment. */
void sentinel_slots_withdraw(struct sentinel_slots *slots, uint32_t id, const struct tracked_stream *stream);

#endif
