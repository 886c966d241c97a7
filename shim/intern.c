#include "shim/intern.h"

#include <pthread.h>
#include <string.h>

#include "common/hash.h"
#include "common/map.h"
#include "shim/capture_write.h"
#include "shim/hooks.h"
#include "shim/memory.h"
#include "shim/object.h"
#include "shim/thread.h"

struct table {
    struct map ids; /* hash to id */
    uint32_t last;
};

/* What finds no room in the tables is defined again each time: the capture grows, our memory does not.
 * The lock is held while the definition is written (into this thread's own segment, no system call but when that is
 * full), so that nobody can use an id that is not defined yet. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table strings = {.last = HOOK_COUNT}; /* the names of hooks come first, see capture_write.c */
static struct table stacks, configs;

static uint32_t known(const struct table *table, uint64_t hash)
{
    uint64_t id;
    return map_get(&table->ids, hash, &id) ? (uint32_t)id : 0;
}

uint32_t intern_new_id(enum intern_space space)
{
    static uint32_t last[INTERN_SPACES];
    return __atomic_add_fetch(&last[space], 1, __ATOMIC_RELAXED);
}

uint32_t intern_string(const char *text)
{
    if (!text || !*text)
        return 0;
    size_t bytes = strlen(text);
    uint64_t hash = hash_bytes64(text, bytes);
    pthread_mutex_lock(&lock);
    uint32_t id = known(&strings, hash);
    struct cap_string *record = id ? NULL : capture_define(CAP_STRING, sizeof *record + bytes);
    if (record) {
        id = ++strings.last;
        record->id = id;
        record->bytes = (uint32_t)bytes;
        memcpy(record + 1, text, bytes);
        capture_commit(record);
        memory_map_put(&strings.ids, hash, id, false);
    }
    pthread_mutex_unlock(&lock);
    return id;
}

/* What a thread has met lately, by hash: a loop comes by the same few stacks and shapes and needs no lock for them. */
enum { RECENT = 64 };
struct recent {
    uint64_t hash;
    uint32_t id;
};
static __thread struct recent recent_stacks[RECENT] __attribute__((tls_model("initial-exec")));
/* Shapes are compared as they are: that costs less than hashing them. */
static __thread struct recent_shape {
    struct shape shape;
    uint32_t id;
} recent_shapes[RECENT / 8] __attribute__((tls_model("initial-exec")));
static __thread unsigned last_shape __attribute__((tls_model("initial-exec")));

static void remember(struct recent *at, uint64_t hash, uint32_t id)
{
    if (id)
        *at = (struct recent){hash, id};
}

uint32_t intern_stack(const uint64_t *frames, uint32_t count)
{
    if (!count)
        return 0;
    /* The same addresses in another library are another stack. */
    uint32_t epoch = object_epoch();
    uint64_t hash = hash_bytes64(frames, count * sizeof *frames) + epoch * UINT64_C(0x9e3779b97f4a7c15);
    struct recent *recent = &recent_stacks[hash % RECENT];
    if (recent->hash == hash && recent->id)
        return recent->id;
    thread_slow();
    object_refresh(); /* a new stack may lead through a library that was loaded since */
    hash += (object_epoch() - epoch) * UINT64_C(0x9e3779b97f4a7c15);
    recent = &recent_stacks[hash % RECENT];
    pthread_mutex_lock(&lock);
    uint32_t id = known(&stacks, hash);
    struct cap_stack *record = id ? NULL : capture_define(CAP_STACK, sizeof *record + count * sizeof *frames);
    if (record) {
        id = ++stacks.last;
        record->id = id;
        record->count = count;
        memcpy(record + 1, frames, count * sizeof *frames);
        capture_commit(record);
        memory_map_put(&stacks.ids, hash, id, false);
    }
    pthread_mutex_unlock(&lock);
    remember(recent, hash, id);
    return id;
}

_Static_assert(sizeof(struct shape) == 32, "no padding");

/* Member by member: wider loads would have to wait for the stores that have just filled it. */
static inline bool same_shape(const struct shape *a, const struct shape *b)
{
    return a->grid[0] == b->grid[0] && a->block[0] == b->block[0] && a->grid[1] == b->grid[1] &&
           a->grid[2] == b->grid[2] && a->block[1] == b->block[1] && a->block[2] == b->block[2] &&
           a->dynamic_shared_bytes == b->dynamic_shared_bytes && a->flags == b->flags;
}

static uint32_t shape_id(const struct shape *shape)
{
    uint64_t hash = hash_bytes64(shape, sizeof *shape);
    thread_slow();
    pthread_mutex_lock(&lock);
    uint32_t id = known(&configs, hash);
    struct cap_config *record = id ? NULL : capture_define(CAP_CONFIG, sizeof *record);
    if (record) {
        id = ++configs.last;
        record->id = id;
        record->flags = shape->flags;
        memcpy(record->grid, shape->grid, sizeof record->grid);
        memcpy(record->block, shape->block, sizeof record->block);
        record->dynamic_shared_bytes = shape->dynamic_shared_bytes;
        capture_commit(record);
        memory_map_put(&configs.ids, hash, id, false);
    }
    pthread_mutex_unlock(&lock);
    return id;
}

uint32_t intern_shape(const struct shape *shape)
{
    struct recent_shape *last = &recent_shapes[last_shape];
    if (last->id && same_shape(&last->shape, shape))
        return last->id;
    uint32_t mixed = 0;
    for (int i = 0; i < 3; i++)
        mixed = (mixed + shape->grid[i]) * 31 + shape->block[i];
    last_shape = (mixed + shape->dynamic_shared_bytes) * UINT32_C(0x9e3779b9) >> 29;
    last = &recent_shapes[last_shape];
    if (last->id && same_shape(&last->shape, shape))
        return last->id;
    uint32_t id = shape_id(shape);
    if (id)
        *last = (struct recent_shape){*shape, id};
    return id;
}

uint32_t intern_config(const uint32_t grid[3], const uint32_t block[3], uint32_t dynamic_shared_bytes, uint32_t flags)
{
    return intern_shape(
        &(struct shape){{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, dynamic_shared_bytes, flags});
}
