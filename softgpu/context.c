#include "softgpu/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/array.h"
#include "softgpu/capture.h"
#include "softgpu/graph.h"
#include "softgpu/memory.h"
#include "softgpu/module.h"

/* A thread's own stream in a context, and the stack of current contexts. */
struct own_stream {
    struct context *context;
    uint64_t generation;
    struct stream *stream;
};
struct thread_state {
    struct context **stack;
    size_t depth, capacity;
    struct own_stream *own;
    size_t own_count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct context *) all_contexts;
static struct context *primaries[PAGE_DEVICES];
static uint64_t last_id;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;

void context_lock(void)
{
    pthread_mutex_lock(&lock);
}

void context_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

struct context *context_all(void)
{
    return atomic_load(&all_contexts);
}

/* ---- per thread ------------------------------------------------------------------------------------------------- */

static void thread_exit(void *argument)
{
    struct thread_state *t = argument;
    if (enter() == CUDA_SUCCESS) {
        context_lock();
        for (size_t i = 0; i < t->own_count; i++)
            if (t->own[i].generation == t->own[i].context->generation)
                engine_stream_close(t->own[i].stream);
        context_unlock();
    }
    free(t->own);
    free(t->stack);
    free(t);
}

static void make_key(void)
{
    pthread_key_create(&key, thread_exit);
}

static struct thread_state *thread_state(bool create)
{
    pthread_once(&key_once, make_key);
    struct thread_state *t = pthread_getspecific(key);
    if (!t && create && (t = calloc(1, sizeof *t)))
        pthread_setspecific(key, t);
    return t;
}

struct context *context_current(void)
{
    struct thread_state *t = thread_state(false);
    return t && t->depth ? t->stack[t->depth - 1] : NULL;
}

CUresult context_push(struct context *context)
{
    struct thread_state *t = thread_state(true);
    if (!t)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (t->depth == t->capacity) {
        size_t capacity = t->capacity ? t->capacity * 2 : 8;
        struct context **more = realloc(t->stack, capacity * sizeof(struct context *));
        if (!more)
            return CUDA_ERROR_OUT_OF_MEMORY;
        t->stack = more;
        t->capacity = capacity;
    }
    t->stack[t->depth++] = context;
    return CUDA_SUCCESS;
}

struct context *context_pop(void)
{
    struct thread_state *t = thread_state(false);
    return t && t->depth ? t->stack[--t->depth] : NULL;
}

CUresult context_set_current(struct context *context)
{
    struct thread_state *t = thread_state(false);
    if (!context) {
        context_pop();
        return CUDA_SUCCESS;
    }
    if (t && t->depth) {
        t->stack[t->depth - 1] = context;
        return CUDA_SUCCESS;
    }
    return context_push(context);
}

static CUresult own_stream(struct context *context, struct stream **out)
{
    struct thread_state *t = thread_state(true);
    if (!t)
        return CUDA_ERROR_OUT_OF_MEMORY;
    context_lock();
    uint64_t generation = context->generation;
    context_unlock();
    struct own_stream *entry = NULL;
    for (size_t i = 0; i < t->own_count; i++) {
        if (t->own[i].context != context)
            continue;
        entry = &t->own[i];
        if (entry->generation == generation) {
            *out = entry->stream;
            return CUDA_SUCCESS;
        }
    }
    if (!entry) {
        struct own_stream *more = realloc(t->own, (t->own_count + 1) * sizeof *more);
        if (!more)
            return CUDA_ERROR_OUT_OF_MEMORY;
        t->own = more;
        entry = &more[t->own_count];
    }
    struct stream *s = engine_stream_new(context, 0, 0);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->per_thread = true;
    if (entry == &t->own[t->own_count])
        t->own_count++;
    *entry = (struct own_stream){context, generation, s};
    *out = s;
    return CUDA_SUCCESS;
}

CUresult context_stream(struct context *context, CUstream handle, struct stream **out)
{
    if (!handle || handle == CU_STREAM_LEGACY) {
        *out = context->legacy;
        return CUDA_SUCCESS;
    }
    if (handle == CU_STREAM_PER_THREAD)
        return own_stream(context, out);
    if (handle_of(handle) != HANDLE_STREAM)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct stream *)handle;
    CUresult error = context_error((*out)->context);
    return error;
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

static void set_defaults(struct context *c)
{
    memset(c->limits, 0, sizeof c->limits);
    c->limits[CU_LIMIT_STACK_SIZE] = 1024;
    c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    c->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    c->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    c->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    c->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    atomic_store(&c->error, CUDA_SUCCESS);
}

static bool start(struct context *c)
{
    c->legacy = engine_stream_new(c, 0, 0);
    if (!c->legacy)
        return false;
    c->legacy->legacy = true;
    set_defaults(c);
    atomic_store(&c->alive, true);
    return true;
}

static struct context *new_context(unsigned flags, unsigned device)
{
    struct context *c = calloc(1, sizeof *c);
    if (!c || !handle_add(c, HANDLE_CONTEXT)) {
        free(c);
        return NULL;
    }
    c->flags = flags;
    c->device = device;
    c->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
    pthread_mutex_init(&c->print_lock, NULL);
    context_lock();
    c->next = atomic_load(&all_contexts);
    atomic_store(&all_contexts, c);
    context_unlock();
    return c;
}

struct context *context_create(unsigned flags, unsigned device)
{
    struct context *c = new_context(flags, device);
    return c && start(c) ? c : NULL;
}

struct context *context_primary(unsigned device)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    if (!primaries[device] && (primaries[device] = new_context(0, device)))
        primaries[device]->primary = true;
    struct context *c = primaries[device];
    pthread_mutex_unlock(&once);
    return c;
}

unsigned context_reach(const struct context *c)
{
    unsigned reach = 1u << c->device;
    for (unsigned i = 0; i < config_get()->devices; i++) {
        const struct context *peer = atomic_load(&c->peers[i]);
        if (peer && atomic_load(&peer->alive))
            reach |= 1u << i;
    }
    return reach;
}

void context_revive(struct context *c)
{
    if (!atomic_load(&c->alive))
        start(c);
}

CUresult context_heap(struct context *c, void **heap, size_t *bytes)
{
    CUresult result = CUDA_SUCCESS;
    context_lock();
    if (!c->heap) {
        size_t limit = c->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
        result = memory_alloc_host(c, limit ? limit : 1, MEMORY_PINNED, 0, &c->heap);
        c->heap_bytes = result == CUDA_SUCCESS ? limit : 0;
    }
    *heap = c->heap;
    *bytes = c->heap_bytes;
    context_unlock();
    return result;
}

void context_finish(struct context *c)
{
    engine_wait_context(c);
    context_flush(c);
}

void context_teardown(struct context *c)
{
    capture_context_gone(c);
    context_finish(c);
    atomic_store(&c->alive, false);
    module_unload_context(c);
    context_lock();
    c->generation++;
    engine_close_all(c);
    for (unsigned i = 0; i < PAGE_DEVICES; i++)
        atomic_store(&c->peers[i], NULL);
    op_unref(c->gate);
    c->gate = NULL;
    c->legacy = NULL;
    c->heap = NULL;
    c->heap_bytes = 0;
    context_unlock();
    texture_free_context(c);
    array_free_context(c);
    graph_memory_reset(c);
    /* Pools and mapped handles belong to the device and stay. */
    memory_free_all(c, ~(1u << MEMORY_POOL | 1u << MEMORY_MAPPING));
    if (!c->primary)
        handle_remove(c, HANDLE_CONTEXT);
}

CUresult context_from(CUcontext handle, struct context **out)
{
    if (!handle)
        return enter_context(out);
    *out = NULL;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (handle_of(handle) != HANDLE_CONTEXT)
        return CUDA_ERROR_INVALID_CONTEXT;
    *out = (struct context *)handle;
    if (!atomic_load(&(*out)->alive))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return context_error(*out);
}

void context_fail(struct context *c, CUresult error)
{
    int none = CUDA_SUCCESS;
    atomic_compare_exchange_strong(&c->error, &none, (int)error);
}

CUresult context_error(const struct context *c)
{
    return (CUresult)atomic_load(&c->error);
}

/* ---- device output ---------------------------------------------------------------------------------------------- */

/* An assertion's text goes to stderr, all other to stdout. The executor hands over both alike. */
static bool is_assertion(const char *text, size_t bytes)
{
    return memmem(text, bytes, "], thread: [", 12) && memmem(text, bytes, "] Assertion `", 13);
}

/* Takes what was overwritten out of the buffer. */
static void print_compact(struct context *c)
{
    struct buf *b = &c->print_out;
    size_t left = b->size - c->print_kept, gone = c->print_oldest * sizeof(size_t);
    if (c->print_kept == c->print_sealed)
        return;
    memmove(b->data + c->print_sealed, b->data + c->print_kept, left);
    b->size = c->print_sealed + left;
    c->print_kept = c->print_sealed;
    c->print_pieces.size -= gone;
    memmove(c->print_pieces.data, c->print_pieces.data + gone, c->print_pieces.size);
    c->print_oldest = 0;
}

void context_print_begin(struct context *c)
{
    pthread_mutex_lock(&c->print_lock);
    print_compact(c);
    c->print_sealed = c->print_kept = c->print_out.size;
    c->print_pieces.size = 0;
    pthread_mutex_unlock(&c->print_lock);
}

/* As documented, a full FIFO loses what is oldest. */
static void print_into_fifo(struct context *c, const char *text, size_t bytes)
{
    size_t limit = c->limits[CU_LIMIT_PRINTF_FIFO_SIZE];
    if (bytes > limit)
        return;
    while (c->print_out.size - c->print_kept + bytes > limit) {
        size_t piece;
        memcpy(&piece, c->print_pieces.data + c->print_oldest++ * sizeof piece, sizeof piece);
        c->print_kept += piece;
    }
    /* Now and then, so that each byte is moved once. */
    if (c->print_kept - c->print_sealed > limit)
        print_compact(c);
    if (buf_reserve(&c->print_pieces, sizeof bytes) && buf_reserve(&c->print_out, bytes)) {
        buf_append(&c->print_pieces, &bytes, sizeof bytes);
        buf_append(&c->print_out, text, bytes);
    }
}

void context_print(struct context *c, const char *text, size_t bytes)
{
    pthread_mutex_lock(&c->print_lock);
    if (is_assertion(text, bytes)) /* always fits */
        buf_append(&c->print_err, text, bytes);
    else
        print_into_fifo(c, text, bytes);
    pthread_mutex_unlock(&c->print_lock);
}

void context_flush(struct context *c)
{
    pthread_mutex_lock(&c->print_lock);
    print_compact(c);
    struct buf out = c->print_out, err = c->print_err;
    c->print_out = c->print_err = (struct buf){0};
    c->print_sealed = c->print_kept = 0;
    buf_free(&c->print_pieces);
    pthread_mutex_unlock(&c->print_lock);
    if (out.size) {
        fwrite(out.data, 1, out.size, stdout);
        fflush(stdout);
    }
    if (err.size) {
        fwrite(err.data, 1, err.size, stderr);
        fflush(stderr);
    }
    buf_free(&out);
    buf_free(&err);
}
