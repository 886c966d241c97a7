#include "shim/object.h"

#include <elf.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <opsdebug/capture.h>

#include "common/hash.h"
#include "common/map.h"
#include "shim/capture_write.h"
#include "shim/intern.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map seen; /* hash of (path, bias) */
static unsigned long long adds_seen;

enum { OBJECTS_MAX = 512, PATH_SHORT = 512 };
struct object {
    uint64_t bias, start, end;
    char path[PATH_SHORT];
    uint32_t build_id_bytes;
    uint8_t build_id[24];
};
struct walk {
    struct object *fresh; /* filled under the loader's lock, written after it is released */
    unsigned count;
    unsigned long long adds;
    int changed;
};

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
    if (!walk->fresh || walk->count >= OBJECTS_MAX)
        return 1;
    struct object *object = &walk->fresh[walk->count];
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

static void write_object(const struct object *object)
{
    uint64_t key = hash_bytes64(object->path, strlen(object->path)) ^ object->bias;
    uint64_t before;
    if (map_get(&seen, key, &before))
        return;
    char program[PATH_MAX] = "";
    const char *path = object->path;
    if (!*path) { /* the program itself has no name there */
        ssize_t got = readlink("/proc/self/exe", program, sizeof program - 1);
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
    map_put(&seen, key, 1);
}

void object_refresh(void)
{
    struct walk walk = {0};
    dl_iterate_phdr(step, &walk);
    if (!walk.changed || pthread_mutex_trylock(&lock) != 0) /* another thread is at it */
        return;
    static struct object fresh[OBJECTS_MAX];
    walk = (struct walk){.fresh = fresh};
    dl_iterate_phdr(step, &walk);
    for (unsigned i = 0; i < walk.count; i++)
        write_object(&fresh[i]);
    if (walk.changed)
        __atomic_store_n(&adds_seen, walk.adds, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}
