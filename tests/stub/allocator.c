/* allocator.c - a preloaded allocator of the usual kind: its malloc finds the next one with dlsym at its first call,
 * counts, and keeps a header before each block. Built with WHOLE it is a heap of its own instead. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
EXPORT void *malloc(size_t bytes);
EXPORT void free(void *memory);
EXPORT void *calloc(size_t count, size_t bytes);
EXPORT void *realloc(void *memory, size_t bytes);
EXPORT void *memalign(size_t alignment, size_t bytes);
EXPORT void *aligned_alloc(size_t alignment, size_t bytes);
EXPORT int posix_memalign(void **out, size_t alignment, size_t bytes);
EXPORT size_t malloc_usable_size(void *memory);

static unsigned long count;

#ifdef WHOLE
/* Never gives anything back, as arenas for short programs do. */
static char *take(size_t bytes)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char *at, *end;
    pthread_mutex_lock(&lock);
    if ((size_t)(end - at) < bytes) {
        size_t chunk = bytes > (64 << 20) ? bytes : 64 << 20;
        at = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        end = at == MAP_FAILED ? at : at + chunk;
    }
    char *got = at == MAP_FAILED ? NULL : at;
    if (got)
        at += bytes;
    pthread_mutex_unlock(&lock);
    return got;
}

static void give_back(void *block)
{
}
#else
/* dlsym itself may ask for memory: that comes from here. */
static char early[65536];
static size_t early_used;

static char *take(size_t bytes)
{
    static void *(*next)(size_t);
    static __thread int looking;
    if (!next && !looking) {
        looking = 1;
        next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
        looking = 0;
    }
    if (next)
        return next(bytes);
    size_t at = __atomic_fetch_add(&early_used, (bytes + 63) & ~(size_t)63, __ATOMIC_RELAXED);
    return at + bytes <= sizeof early ? early + at : NULL;
}

static void give_back(void *block)
{
    static void (*next)(void *);
    if ((char *)block >= early && (char *)block < early + sizeof early)
        return;
    if (!next)
        next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    next(block);
}
#endif

struct header {
    char *block;
    size_t bytes;
};

void *memalign(size_t alignment, size_t bytes)
{
    if (alignment < 16)
        alignment = 16;
    if (bytes > SIZE_MAX / 2)
        return NULL;
    char *block = take(bytes + alignment + sizeof(struct header));
    if (!block)
        return NULL;
    __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    uintptr_t at = ((uintptr_t)block + sizeof(struct header) + alignment - 1) & ~(alignment - 1);
    ((struct header *)at)[-1] = (struct header){block, bytes};
    return (void *)at;
}

void *malloc(size_t bytes)
{
    return memalign(16, bytes);
}

void free(void *memory)
{
    if (memory)
        give_back(((struct header *)memory)[-1].block);
}

void *calloc(size_t items, size_t bytes)
{
    size_t total;
    void *memory = __builtin_mul_overflow(items, bytes, &total) ? NULL : malloc(total);
    return memory ? memset(memory, 0, total) : NULL;
}

void *realloc(void *memory, size_t bytes)
{
    void *fresh = malloc(bytes);
    if (fresh && memory) {
        size_t old = ((struct header *)memory)[-1].bytes;
        memcpy(fresh, memory, old < bytes ? old : bytes);
        free(memory);
    }
    return fresh;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    *out = memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}

size_t malloc_usable_size(void *memory)
{
    return memory ? ((struct header *)memory)[-1].bytes : 0;
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("ALLOCATOR_OUT");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "%lu\n", count);
        fclose(f);
    }
}
