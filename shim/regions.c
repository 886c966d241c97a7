#include "shim/regions.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "shim/alloc_table.h"
#include "shim/capture_write.h"
#include "shim/intern.h"
#include "shim/memory.h"
#include "shim/shim.h"
#include "shim/stack.h"

struct region {
    uint64_t address, bytes, heap;
    uint32_t id, allocation, source, name;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map regions; /* address -> struct region */

static void write_region(const struct region *r, bool ended, uint32_t stack)
{
    struct cap_region *record = capture_define(CAP_REGION, sizeof *record);
    if (!record)
        return;
    record->id = r->id;
    record->allocation = r->allocation;
    record->address = r->address;
    record->bytes = r->bytes;
    record->source = r->source;
    record->ended = ended;
    record->name = r->name;
    record->stack = stack;
    capture_commit(record);
}

static struct region *find(uint64_t address)
{
    uint64_t value;
    return map_get(&regions, address, &value) ? (struct region *)(uintptr_t)value : NULL;
}

/* Behind the lock. */
static void end(struct region *r)
{
    write_region(r, true, 0);
    map_remove(&regions, r->address);
    memory_give(sizeof *r);
    free(r);
}

static void begin(const struct region *like)
{
    struct allocation a;
    struct region *r = memory_must(sizeof *r) ? malloc(sizeof *r) : NULL;
    uint32_t stack = stack_here();
    bool inside = like->bytes && alloc_table_find(like->address, &a) && like->address - a.address < a.bytes &&
                  like->bytes <= a.bytes - (like->address - a.address);
    if (!r || !inside) {
        memory_give(sizeof *r);
        free(r);
        if (!inside)
            shim_note(CAP_NOTE_INFO, "a region at 0x%llx of %llu bytes lies in no known allocation: it is left out",
                      (unsigned long long)like->address, (unsigned long long)like->bytes);
        return;
    }
    *r = *like;
    r->allocation = a.id;
    r->id = intern_new_id(INTERN_ALLOC);
    pthread_mutex_lock(&lock);
    struct region *old = find(r->address);
    if (old)
        end(old);
    if (memory_map_put(&regions, r->address, (uintptr_t)r, true)) {
        write_region(r, false, stack);
    } else {
        memory_give(sizeof *r);
        free(r);
    }
    pthread_mutex_unlock(&lock);
}

void regions_begin(uint64_t address, uint64_t bytes, const char *name, enum cap_region_source source, uint64_t heap)
{
    if (!shim_is_recording())
        return;
    struct region like = {.address = address, .bytes = bytes, .heap = heap, .source = source};
    like.name = intern_string(name);
    begin(&like);
}

void regions_end(uint64_t address)
{
    if (!shim_is_recording()) /* nor in a child, where the lock may be held for ever */
        return;
    pthread_mutex_lock(&lock);
    struct region *r = find(address);
    if (r)
        end(r);
    pthread_mutex_unlock(&lock);
}

void regions_reset(uint64_t heap)
{
    if (!shim_is_recording())
        return;
    pthread_mutex_lock(&lock);
    for (bool again = true; again;) { /* removing moves entries of the map */
        again = false;
        for (size_t i = 0; i < regions.capacity && !again; i++) {
            struct region *r = regions.slots[i].used ? (struct region *)(uintptr_t)regions.slots[i].value : NULL;
            if (r && r->heap == heap) {
                end(r);
                again = true;
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The region's own data, to begin it anew with something changed. */
static bool copy_of(uint64_t address, struct region *out)
{
    pthread_mutex_lock(&lock);
    struct region *r = find(address);
    if (r)
        *out = *r;
    pthread_mutex_unlock(&lock);
    return r != NULL;
}

void regions_resize(uint64_t address, uint64_t bytes)
{
    struct region like;
    if (!shim_is_recording() || !copy_of(address, &like))
        return;
    like.bytes = bytes;
    begin(&like);
}

void regions_name(uint64_t address, const char *name)
{
    struct region like;
    if (!shim_is_recording() || !copy_of(address, &like))
        return;
    like.name = intern_string(name);
    begin(&like);
}
