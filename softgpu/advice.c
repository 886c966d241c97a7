#include "softgpu/advice.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/memory.h"

enum { ADVICE_PAGE = 4096 };

/* Stretches with the same advice, sorted by address. Those of allocations that are gone are dropped when others are
 * added. */
struct stretch {
    uint64_t start, end, id;
    struct advice advice;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before memory's */
static struct stretch *stretches;
static size_t count, capacity;

static void forget_dead(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct allocation a;
        if (memory_lookup(stretches[i].start, &a) && a.id == stretches[i].id)
            stretches[kept++] = stretches[i];
    }
    count = kept;
}

static size_t first_ending_after(uint64_t address)
{
    size_t i = 0;
    while (i < count && stretches[i].end <= address)
        i++;
    return i;
}

/* Room for `more` stretches was made before. */
static void insert(size_t at, struct stretch s)
{
    memmove(stretches + at + 1, stretches + at, (count - at) * sizeof *stretches);
    stretches[at] = s;
    count++;
}

static void split(uint64_t address)
{
    size_t i = first_ending_after(address);
    if (i == count || stretches[i].start >= address)
        return;
    struct stretch rest = stretches[i];
    stretches[i].end = rest.start = address;
    insert(i + 1, rest);
}

static bool make_room(size_t more)
{
    if (count + more <= capacity)
        return true;
    size_t larger = (count + more) * 2;
    struct stretch *grown = realloc(stretches, larger * sizeof *grown);
    if (!grown)
        return false;
    stretches = grown;
    capacity = larger;
    return true;
}

static void whole_pages(uint64_t *address, uint64_t *end)
{
    *address = *address / ADVICE_PAGE * ADVICE_PAGE;
    *end = (*end + ADVICE_PAGE - 1) / ADVICE_PAGE * ADVICE_PAGE;
}

bool advice_change(uint64_t id, uint64_t address, uint64_t bytes, void (*change)(struct advice *, const void *),
                   const void *data)
{
    uint64_t end = address + bytes;
    whole_pages(&address, &end);
    pthread_mutex_lock(&lock);
    forget_dead();
    /* At most a split at either end, and a new stretch in each gap. */
    bool ok = make_room(count + 3);
    if (ok) {
        split(address);
        split(end);
        for (size_t i = first_ending_after(address); address < end; i++) {
            if (i == count || stretches[i].start > address) {
                uint64_t gap_end = i == count || stretches[i].start > end ? end : stretches[i].start;
                insert(i, (struct stretch){.start = address, .end = gap_end, .id = id});
            }
            change(&stretches[i].advice, data);
            address = stretches[i].end;
        }
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

static void agree(CUmemLocation *all, const CUmemLocation *one)
{
    if (all->type != one->type || all->id != one->id)
        *all = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_INVALID};
}

struct advice advice_common(uint64_t id, uint64_t address, uint64_t bytes)
{
    static const struct advice none;
    struct advice all = none;
    uint64_t end = address + bytes, at;
    whole_pages(&address, &end);
    at = address;
    pthread_mutex_lock(&lock);
    for (size_t i = first_ending_after(address); at < end; i++) {
        bool here = i < count && stretches[i].start <= at && stretches[i].id == id;
        const struct advice *one = here ? &stretches[i].advice : &none;
        if (at == address) {
            all = *one;
        } else {
            all.read_mostly = all.read_mostly && one->read_mostly;
            all.accessed_by &= one->accessed_by;
            agree(&all.preferred, &one->preferred);
            agree(&all.prefetched, &one->prefetched);
        }
        if (!here) { /* a gap: nothing holds for all */
            all = none;
            break;
        }
        at = stretches[i].end;
    }
    pthread_mutex_unlock(&lock);
    return all;
}
