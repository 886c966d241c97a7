#include "shim/host_redzone.h"

#include <stdlib.h>
#include <string.h>

#include <opsdebug/capture.h>

#include "shim/capture_write.h"
#include "shim/damage.h"
#include "shim/options.h"
#include "shim/sentinel.h"

static uint8_t expected(const struct allocation *a, uint64_t address)
{
    return (uint8_t)(sentinel_word(a->id, address & ~UINT64_C(3)) >> (address & 3) * 8);
}

/* Where the host finds what the device calls `address`. */
static volatile uint8_t *on_host(const struct allocation *a, uint64_t address)
{
    return (volatile uint8_t *)(uintptr_t)((a->host_address ? a->host_address : a->address) + (address - a->address));
}

static void fill(const struct allocation *a, uint64_t from, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        *on_host(a, from + i) = expected(a, from + i);
}

void host_redzone_fill(const struct allocation *a)
{
    fill(a, a->address - a->head, a->head);
    fill(a, a->address + a->bytes, a->tail);
}

/* 1: damaged. */
static uint32_t look(const struct allocation *a, bool tail, uint64_t upto)
{
    struct check_entry entry = {.id = a->id};
    struct check_subject subject = {a->address, a->bytes, tail, a->clean_seq, false};
    bool damaged = false;
    entry.address = tail ? a->address + a->bytes : a->address - a->head;
    entry.bytes = tail ? a->tail : a->head;
    for (uint32_t i = 0; i < entry.bytes; i++)
        if (*on_host(a, entry.address + i) != expected(a, entry.address + i)) {
            entry.first = damaged ? entry.first : i;
            entry.last = i;
            damaged = true;
        }
    if (!damaged)
        return 0;
    for (uint32_t i = 0; i < CHECK_FOUND && entry.first + i < entry.bytes; i++)
        entry.found[i] = *on_host(a, entry.address + entry.first + i);
    damage_found(&entry, &subject, &(struct check_look){.upto_seq = upto});
    fill(a, entry.address + entry.first, entry.last - entry.first + 1);
    return 1;
}

void host_redzone_look(const struct allocation *a)
{
    if (a->kind != CAP_ALLOC_HOST || (!a->head && !a->tail) || options.check == CHECK_OFF)
        return;
    uint64_t upto = capture_next_seq();
    uint32_t damaged = look(a, false, upto) + look(a, true, upto);
    damage_checked(upto, (a->head != 0) + (a->tail != 0), damaged);
}

struct collecting {
    struct allocation *found;
    size_t count, capacity;
};

static void collect(const struct allocation *a, void *data)
{
    struct collecting *c = data;
    if (a->kind != CAP_ALLOC_HOST || (!a->head && !a->tail))
        return;
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : 64;
        struct allocation *more = realloc(c->found, capacity * sizeof *more);
        if (!more)
            return;
        c->found = more;
        c->capacity = capacity;
    }
    c->found[c->count++] = *a;
}

void host_redzone_look_at_all(void)
{
    struct collecting c = {0};
    /* While a look is on, nobody frees what was collected (sentinel_forgotten). */
    sentinel_look_begins();
    alloc_table_each(collect, &c);
    for (size_t i = 0; i < c.count; i++)
        host_redzone_look(&c.found[i]);
    sentinel_look_ends();
    free(c.found);
}
