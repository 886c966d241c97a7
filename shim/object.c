#include "shim/object.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opsdebug/capture.h>

#include "common/hash.h"
#include "shim/capture_write.h"
#include "shim/intern.h"
#include "shim/memory.h"

enum {
    PATH_SHORT = 512,
    PLACES_MAX = 4096, /* beyond, those that are gone are forgotten */
};
struct object {
    uint64_t bias, start, end;
    char path[PATH_SHORT];
    uint32_t build_id_bytes;
    uint8_t build_id[24];
};
struct walk {
    struct object *fresh; /* filled under the loader's lock, written after it is released */
    unsigned count, room;
    unsigned long long adds;
    int changed;
};

/* What was last seen at an address. Objects that are gone stay until their place is taken, or there are very many: what
 * comes to such a place later would not be told apart from them, so that counts as a change as well. */
struct place {
    uint64_t start, end, key; /* key: hash of path, bias and build id */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct place *places;
static size_t place_count, place_room;
static unsigned long long adds_seen;
static uint32_t epoch, closed; /* atomic */

static void read_build_id(const struct dl_phdr_info *info, const ElfW(Phdr) * p, struct object *object)
{
    const char *at = (const char *)(info->dlpi_addr + p->p_vaddr), *end = at + p->p_memsz;
    while (end - at >= (long)sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)at;
        const char *name = (const char *)(note + 1);
        const char *data = name + ((note->n_namesz + 3u) & ~3u);
        if (data > end || note->n_descsz > (size_t)(end - data))
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            object->build_id_bytes = note->n_descsz < 24 ? note->n_descsz : 24;
            memcpy(object->build_id, data, object->build_id_bytes);
            return;
        }
        at = data + ((note->n_descsz + 3u) & ~3u);
    }
}

static int step(struct dl_phdr_info *info, size_t size, void *data)
{
    struct walk *walk = data;
    if (!walk->changed) {
        if (info->dlpi_adds == adds_seen)
            return 1;
        walk->changed = 1;
        walk->adds = info->dlpi_adds;
    }
    struct object counted, *object = walk->count < walk->room ? &walk->fresh[walk->count] : &counted;
    memset(object, 0, sizeof *object);
    object->bias = info->dlpi_addr;
    strncpy(object->path, info->dlpi_name ? info->dlpi_name : "", PATH_SHORT - 1);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && !object->end) {
            object->start = info->dlpi_addr + p->p_vaddr;
            object->end = object->start + p->p_memsz;
        }
        if (p->p_type == PT_NOTE && !object->build_id_bytes)
            read_build_id(info, p, object);
    }
    if (object->end)
        walk->count++;
    return 0;
}

/* Behind `lock`. */
static void write_object(const struct object *object)
{
    static char program[PATH_MAX];
    const char *path = object->path;
    if (!*path) { /* the program itself has no name there */
        ssize_t got = readlink("/proc/self/exe", program, sizeof program - 1);
        program[got > 0 ? got : 0] = '\0';
        path = got > 0 ? program : "[program]";
    }
    uint32_t id = intern_string(path);
    struct cap_object *record = capture_define(CAP_OBJECT, sizeof *record);
    if (!record)
        return;
    record->bias = object->bias;
    record->start = object->start;
    record->end = object->end;
    record->path = id;
    record->build_id_bytes = object->build_id_bytes;
    memcpy(record->build_id, object->build_id, sizeof record->build_id);
    capture_commit(record);
}

/* False: there already. Whoever was at its addresses before is not any more. */
static bool take_place(const struct object *object)
{
    struct place fresh = {object->start, object->end, object->bias};
    fresh.key ^= hash_bytes64(object->path, strlen(object->path));
    fresh.key ^= hash_bytes64(object->build_id, sizeof object->build_id);
    size_t kept = 0;
    for (size_t i = 0; i < place_count; i++) {
        const struct place *p = &places[i];
        bool overlaps = p->start < fresh.end && fresh.start < p->end;
        if (overlaps && p->key == fresh.key && p->start == fresh.start)
            return false;
        if (!overlaps)
            places[kept++] = *p;
    }
    if (kept < place_count)
        __atomic_fetch_add(&epoch, 1, __ATOMIC_RELEASE);
    place_count = kept;
    if (place_count == place_room) {
        size_t room = place_room ? place_room * 2 : 64, more_bytes = (room - place_room) * sizeof *places;
        struct place *more = memory_may(more_bytes) ? realloc(places, room * sizeof *more) : NULL;
        if (!more)
            return true; /* it will be written once more */
        places = more;
        place_room = room;
    }
    places[place_count++] = fresh;
    return true;
}

static bool is_among(const struct place *place, const struct walk *walk)
{
    for (unsigned i = 0; i < walk->count; i++)
        if (walk->fresh[i].start == place->start && walk->fresh[i].end == place->end)
            return true;
    return false;
}

static void forget_gone(const struct walk *walk)
{
    size_t kept = 0;
    for (size_t i = 0; i < place_count; i++)
        if (is_among(&places[i], walk))
            places[kept++] = places[i];
    if (kept < place_count)
        __atomic_fetch_add(&epoch, 1, __ATOMIC_RELEASE);
    place_count = kept;
}

void object_refresh(void)
{
    struct walk walk = {0};
    dl_iterate_phdr(step, &walk);
    if (!walk.changed || pthread_mutex_trylock(&lock) != 0) /* another thread is at it */
        return;
    /* No memory is asked for under the loader's lock. */
    while (walk.changed && walk.count >= walk.room) {
        free(walk.fresh);
        unsigned room = walk.count + 16;
        walk = (struct walk){.fresh = malloc(room * sizeof(struct object)), .room = room};
        if (!walk.fresh)
            break;
        dl_iterate_phdr(step, &walk);
    }
    if (walk.fresh && place_count >= PLACES_MAX)
        forget_gone(&walk);
    for (unsigned i = 0; walk.fresh && i < walk.count; i++)
        if (take_place(&walk.fresh[i]))
            write_object(&walk.fresh[i]);
    if (walk.fresh && walk.changed)
        __atomic_store_n(&adds_seen, walk.adds, __ATOMIC_RELAXED);
    free(walk.fresh);
    pthread_mutex_unlock(&lock);
}

void object_closed(void)
{
    __atomic_fetch_add(&closed, 1, __ATOMIC_RELEASE);
}

uint32_t object_epoch(void)
{
    static __thread uint32_t closed_seen __attribute__((tls_model("initial-exec")));
    uint32_t now = __atomic_load_n(&closed, __ATOMIC_ACQUIRE);
    if (now != closed_seen) {
        closed_seen = now;
        object_refresh();
    }
    return __atomic_load_n(&epoch, __ATOMIC_ACQUIRE);
}
