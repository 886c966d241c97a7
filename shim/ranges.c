#include "shim/ranges.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opsdebug/capture.h>

#include "common/hash.h"
#include "common/map.h"
#include "shim/capture_write.h"
#include "shim/intern.h"
#include "shim/memory.h"
#include "shim/shim.h"
#include "shim/thread.h"

enum { PATHS_MAX = 1 << 16, NAMES_MAX = 1 << 16, TEXT_MAX = 512, DEPTH_MAX = 1024 };

/* Made when first entered, never freed; members are constant but for those marked. */
struct path {
    const struct path *parent;
    const char *domain, *text; /* owned */
    uint32_t id;
    uint32_t entered; /* behind the lock: how often */
    bool defined;     /* behind the lock: its CAP_PATH is written */
};

struct pushed {
    struct path *path;   /* NULL: beyond PATHS_MAX */
    char *domain, *name; /* owned */
    uint32_t iteration;
};

struct range_stack {
    struct pushed *items;
    uint32_t count, capacity;
    uint32_t dropped; /* pushed beyond DEPTH_MAX, not yet popped; of whatever domain */
};

static __thread struct range_stack stack __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct map path_index; /* hash of parent, domain and text to struct path */
static struct map names;      /* hash to text, of ranges_keep */
static uint32_t path_count, name_count;
static uint64_t names_dropped; /* atomic */
static uint64_t last_range;    /* atomic */

/* An allocator that marks its own work comes in here while we, here or elsewhere, ask it for memory, and may hold a
 * lock: that is not recorded. Nor is anything in a child that records nothing: what it inherited is its parent's, locks
 * included. */
static __thread bool busy __attribute__((tls_model("initial-exec")));

static bool enter(void)
{
    if (busy || shim_thread.inside || !shim_is_owner())
        return false;
    busy = true;
    return true;
}

static void leave(void)
{
    busy = false;
}

/* Ranges come before the first CUDA call, too, and then a child may have a life of its own. What another thread was
 * changing when it was forked is lost to it. */
static void in_child(void)
{
    if (pthread_mutex_trylock(&lock) == 0) {
        pthread_mutex_unlock(&lock);
        return;
    }
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    path_index = names = (struct map){0};
}

static void take_lock(void)
{
    static bool told; /* atomic */
    if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
        pthread_atfork(NULL, NULL, in_child);
    pthread_mutex_lock(&lock);
}

const char *ranges_keep(const char *text)
{
    size_t bytes = text ? strlen(text) + 1 : 0;
    uint64_t hash = bytes ? hash_bytes64(text, bytes) : 0, known = 0;
    char *kept = NULL;
    if (!bytes || !enter())
        return NULL;
    take_lock();
    map_get(&names, hash, &known);
    if (!known && name_count < NAMES_MAX && memory_may(bytes)) {
        kept = strdup(text);
        if (kept && memory_map_put(&names, hash, (uintptr_t)kept, false)) {
            name_count++;
        } else {
            free(kept);
            kept = NULL;
            memory_give(bytes);
        }
    }
    pthread_mutex_unlock(&lock);
    if (!known && !kept)
        __atomic_fetch_add(&names_dropped, 1, __ATOMIC_RELAXED);
    leave();
    return known ? (const char *)(uintptr_t)known : kept;
}

uint64_t ranges_names_dropped(void)
{
    return __atomic_load_n(&names_dropped, __ATOMIC_RELAXED);
}

static const char *text_of(const char *name)
{
    return name ? name : "";
}

/* "a.b" and "c" are "a.b.c"; a name that brings its whole path with it is taken as it is. */
static void join(char out[TEXT_MAX], const struct path *parent, const char *name)
{
    const char *before = parent ? parent->text : "";
    size_t length = strlen(before);
    if (!*name)
        name = "(unnamed)";
    if (!length || (strncmp(name, before, length) == 0 && name[length] == '.'))
        snprintf(out, TEXT_MAX, "%s", name);
    else
        snprintf(out, TEXT_MAX, "%s.%s", before, name);
}

static struct path *find_path(struct path *parent, const char *domain, const char *name, uint32_t *iteration)
{
    char text[TEXT_MAX];
    join(text, parent, name);
    uint64_t key[3] = {parent ? parent->id : 0, hash_bytes64(domain, strlen(domain)), hash_bytes64(text, strlen(text))};
    uint64_t hash = hash_bytes64(key, sizeof key), known = 0;
    take_lock();
    map_get(&path_index, hash, &known);
    struct path *path = (struct path *)(uintptr_t)known;
    if (!path && path_count < PATHS_MAX && memory_may(sizeof *path + strlen(domain) + strlen(text)) &&
        (path = calloc(1, sizeof *path))) {
        *path = (struct path){parent, strdup(domain), strdup(text), path_count + 1, 0, false};
        if (path->domain && path->text && memory_map_put(&path_index, hash, (uintptr_t)path, false)) {
            path_count++;
        } else {
            free((char *)path->domain);
            free((char *)path->text);
            free(path);
            path = NULL;
        }
    }
    if (path)
        *iteration = path->entered++;
    pthread_mutex_unlock(&lock);
    return path;
}

static bool is_defined(const struct path *path)
{
    return __atomic_load_n(&path->defined, __ATOMIC_ACQUIRE);
}

/* False: it could not be written. What is around it is defined, or could not be. */
static bool define(struct path *path)
{
    uint32_t domain = intern_string(path->domain), text = intern_string(path->text);
    take_lock();
    struct cap_path *record = path->defined ? NULL : capture_define(CAP_PATH, sizeof *record);
    if (record) {
        record->id = path->id;
        record->parent = path->parent && is_defined(path->parent) ? path->parent->id : 0;
        record->domain = domain;
        record->text = text;
        capture_commit(record);
        __atomic_store_n(&path->defined, true, __ATOMIC_RELEASE);
    }
    bool defined = path->defined;
    pthread_mutex_unlock(&lock);
    return defined;
}

/* The id of `path`, whose record and those of what is around it are written by now. From the outside in, and not by
 * recursion: a thread may have few bytes of stack and a thousand ranges. */
static uint32_t written_id(struct path *path)
{
    while (path && !is_defined(path)) {
        struct path *outermost = path;
        while (outermost->parent && !is_defined(outermost->parent))
            outermost = (struct path *)outermost->parent;
        if (!define(outermost))
            return 0;
    }
    return path ? path->id : 0;
}

/* What is around the range that is `depth` deep; the path and its iteration. */
static const struct pushed *around(uint32_t depth)
{
    while (depth && !stack.items[depth - 1].path)
        depth--;
    return depth ? &stack.items[depth - 1] : NULL;
}

static void write_range(enum cap_range_kind kind, const char *domain, const char *name, uint32_t depth, uint64_t number)
{
    const struct pushed *now = around(depth);
    uint32_t path = now ? written_id(now->path) : 0;
    uint32_t name_id = intern_string(name), domain_id = intern_string(domain);
    struct cap_range *record = capture_define(CAP_RANGE, sizeof *record);
    if (!record)
        return;
    record->kind = kind;
    record->thread = shim_thread.thread_id;
    record->path = path;
    record->iteration = now ? now->iteration : 0;
    record->name = name_id;
    record->domain = domain_id;
    record->range = number;
    capture_commit(record);
}

static void catch_up(void);

/* Whether records can be written now; those of earlier pushes come first. */
static bool ready(void)
{
    if (!shim_is_recording()) {
        shim_thread.ranges_unwritten = stack.count > 0;
        return false;
    }
    if (shim_thread.ranges_unwritten)
        catch_up();
    return true;
}

void ranges_catch_up(void)
{
    if (busy)
        return;
    busy = true;
    catch_up();
    leave();
}

static void catch_up(void)
{
    if (!shim_is_recording())
        return;
    shim_thread.ranges_unwritten = false;
    for (uint32_t i = 0; i < stack.count; i++)
        write_range(CAP_RANGE_PUSH, stack.items[i].domain, stack.items[i].name, i + 1, 0);
}

static bool grow(void)
{
    if (stack.count < stack.capacity)
        return true;
    uint32_t capacity = stack.capacity ? stack.capacity * 2 : 16;
    struct pushed *items = capacity <= DEPTH_MAX ? realloc(stack.items, capacity * sizeof *items) : NULL;
    if (!items)
        return false;
    stack.items = items;
    stack.capacity = capacity;
    return true;
}

static void push(const char *domain, const char *name)
{
    bool can_write = ready();
    if (stack.dropped || !grow()) {
        stack.dropped++;
        return;
    }
    const struct pushed *outer = around(stack.count);
    struct pushed *new = &stack.items[stack.count];
    *new = (struct pushed){.domain = strdup(text_of(domain)), .name = strdup(text_of(name))};
    if (!new->domain || !new->name) {
        free(new->domain);
        free(new->name);
        stack.dropped++;
        return;
    }
    new->path = find_path(outer ? outer->path : NULL, new->domain, new->name, &new->iteration);
    stack.count++;
    if (can_write)
        write_range(CAP_RANGE_PUSH, new->domain, new->name, stack.count, 0);
    else
        shim_thread.ranges_unwritten = true;
}

static void pop(const char *domain)
{
    bool can_write = ready();
    uint32_t at = stack.count;
    domain = text_of(domain);
    if (stack.dropped) {
        stack.dropped--;
        return;
    }
    while (at && strcmp(stack.items[at - 1].domain, domain) != 0)
        at--;
    if (!at)
        return;
    struct pushed old = stack.items[at - 1];
    memmove(stack.items + at - 1, stack.items + at, (stack.count - at) * sizeof *stack.items);
    stack.count--;
    if (can_write)
        write_range(CAP_RANGE_POP, old.domain, old.name, stack.count, 0);
    free(old.domain);
    free(old.name);
    if (!stack.count && !shim_thread.registered) { /* nobody will tell us that the thread is over */
        free(stack.items);
        stack = (struct range_stack){.dropped = stack.dropped};
    }
}

void ranges_push(const char *domain, const char *name)
{
    if (!enter())
        return;
    push(domain, name);
    leave();
}

void ranges_pop(const char *domain)
{
    if (!enter())
        return;
    pop(domain);
    leave();
}

static void write_other(enum cap_range_kind kind, const char *domain, const char *name, uint64_t number)
{
    if (!enter())
        return;
    if (ready())
        write_range(kind, domain, name, stack.count, number);
    leave();
}

uint64_t ranges_start(const char *domain, const char *name)
{
    uint64_t number = __atomic_add_fetch(&last_range, 1, __ATOMIC_RELAXED);
    write_other(CAP_RANGE_START, domain, name, number);
    return number;
}

void ranges_end(uint64_t number)
{
    write_other(CAP_RANGE_END, NULL, NULL, number);
}

void ranges_mark(const char *domain, const char *name)
{
    write_other(CAP_RANGE_MARK, domain, name, 0);
}

void ranges_thread_ends(void)
{
    bool open = stack.count > 0 && !shim_thread.ranges_unwritten;
    for (uint32_t i = 0; i < stack.count; i++) {
        free(stack.items[i].domain);
        free(stack.items[i].name);
    }
    free(stack.items);
    stack = (struct range_stack){0};
    if (open && shim_is_recording())
        write_range(CAP_RANGE_THREAD_END, NULL, NULL, 0, 0);
}
