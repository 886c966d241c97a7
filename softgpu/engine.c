#include "softgpu/engine.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/capture.h"
#include "softgpu/context.h"
#include "softgpu/trace_state.h"

enum { IDLE_SECONDS = 1, EXIT_MS = 2000, SHUTDOWN_MS = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* an operation or a worker ended */
static unsigned worker_count;
static unsigned active; /* operations that may use memory of the device just now */
static atomic_bool cancel;
static uint64_t last_stream_id;
static _Thread_local bool in_callback;

void engine_lock(void)
{
    pthread_mutex_lock(&lock);
}

void engine_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void engine_callback(bool entered)
{
    in_callback = entered;
}

bool engine_in_callback(void)
{
    return in_callback;
}

/* A thread of the program that is cancelled while it waits would take the lock, or the stream that it helps, with it:
 * it is cancelled later. Returns what to restore. */
static int put_off_cancellation(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void engine_stop(void)
{
    int cancellation = put_off_cancellation();
    engine_lock();
    while (active)
        pthread_cond_wait(&progress, &lock);
    pthread_setcancelstate(cancellation, NULL);
}

const atomic_bool *engine_cancel(void)
{
    return &cancel;
}

static struct timespec deadline(uint64_t ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    t.tv_sec += (time_t)(ms / 1000) + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

void *op_new(size_t bytes, void (*run)(struct op *op), void (*drop)(struct op *op))
{
    struct op *op = calloc(1, bytes);
    if (op) {
        op->run = run;
        op->drop = drop;
        atomic_init(&op->refs, 1);
        if (run)
            trace_tag(op);
    }
    return op;
}

struct op *op_ref(struct op *op)
{
    if (op)
        atomic_fetch_add(&op->refs, 1);
    return op;
}

static void drop_deps(struct op *op)
{
    for (size_t i = 0; i < op->dep_count; i++)
        op_unref(op->deps[i]);
    free(op->deps);
    op->deps = NULL;
    op->dep_count = 0;
}

void op_unref(struct op *op)
{
    if (!op || atomic_fetch_sub(&op->refs, 1) != 1)
        return;
    drop_deps(op);
    if (op->drop)
        op->drop(op);
    else
        free(op);
}

bool op_after(struct op *op, struct op *dependency)
{
    if (!dependency || atomic_load(&dependency->done))
        return true;
    struct op **deps = realloc(op->deps, (op->dep_count + 1) * sizeof(struct op *));
    if (!deps)
        return false;
    deps[op->dep_count] = op_ref(dependency);
    op->deps = deps;
    op->dep_count++;
    return true;
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

/* Takes it off its context's list, where it may be no longer. With the lock. */
static void unlink_stream(struct stream *s)
{
    for (struct stream **p = &s->context->streams; *p; p = &(*p)->next_in_context)
        if (*p == s) {
            *p = s->next_in_context;
            break;
        }
}

static void free_stream(struct stream *s)
{
    unlink_stream(s);
    op_unref(s->last);
    pthread_cond_destroy(&s->wake);
    free(s);
}

static bool deps_done(const struct op *op)
{
    for (size_t i = 0; i < op->dep_count; i++)
        if (!atomic_load(&op->deps[i]->done))
            return false;
    return true;
}

/* Runs the head of the queue. The lock is held on entry and exit, and the stream marked busy by the caller. */
static void run_head(struct stream *s)
{
    struct op *op = s->head;
    while (!deps_done(op))
        pthread_cond_wait(&progress, &lock);
    bool run = op->run && (op->always || !context_error(s->context));
    active += !op->bound;
    engine_unlock();
    if (run)
        trace_run(op, s);
    op->finished_ns = state_now_ns();
    engine_lock();
    active -= !op->bound;
    s->head = op->next;
    if (!s->head)
        s->tail = NULL;
    op->next = NULL;
    op->stream = NULL;
    atomic_store(&op->done, true);
    pthread_cond_broadcast(&progress);
    drop_deps(op);
    /* The last reference may free memory that needs other locks. */
    engine_unlock();
    op_unref(op);
    engine_lock();
}

/* Whether this thread's stack is large enough to run a kernel: threads of the program may have tiny ones. */
static bool stack_is_large(void)
{
    enum { UNKNOWN, LARGE, SMALL, NEEDED = 512 << 10 };
    static _Thread_local int state;
    pthread_attr_t attr;
    size_t bytes = 0;
    void *start;
    if (state == UNKNOWN && pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &start, &bytes) == 0)
            state = bytes >= NEEDED ? LARGE : SMALL;
        pthread_attr_destroy(&attr);
    }
    return state == LARGE;
}

/* Runs the stream's head on a thread that would wait for it otherwise. False when the head is not to be had: the lock
 * was not given up then. */
static bool help(struct stream *s)
{
    if (!s->head || s->busy || s->head->bound || !deps_done(s->head) || !stack_is_large())
        return false;
    s->busy = true;
    run_head(s);
    s->busy = false;
    if (s->worker)
        pthread_cond_signal(&s->wake);
    else if (s->destroyed)
        free_stream(s);
    return true;
}

void engine_use_memory(bool begins)
{
    engine_lock();
    active += begins ? 1u : -1u;
    if (!begins)
        pthread_cond_broadcast(&progress);
    engine_unlock();
}

void engine_complete(struct op *op)
{
    engine_lock();
    if (!atomic_load(&op->done)) {
        op->finished_ns = state_now_ns();
        atomic_store(&op->done, true);
        pthread_cond_broadcast(&progress);
    }
    engine_unlock();
}

/* ---- workers ---------------------------------------------------------------------------------------------------- */

static void *worker_main(void *argument)
{
    struct stream *s = argument;
    engine_lock();
    for (;;) {
        if (s->head && !s->busy) {
            s->busy = true;
            run_head(s);
            s->busy = false;
            continue;
        }
        if (s->destroyed && !s->head && !s->busy)
            break;
        struct timespec until = deadline(IDLE_SECONDS * 1000);
        if (pthread_cond_timedwait(&s->wake, &lock, &until) != 0 && !s->head && !s->busy)
            break;
    }
    s->worker = false;
    if (s->destroyed)
        free_stream(s);
    worker_count--;
    pthread_cond_broadcast(&progress);
    engine_unlock();
    return NULL;
}

/* Starts the stream's worker, with every signal blocked: the program's handlers run on the program's threads only. */
static bool start_worker(struct stream *s)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    bool ok = pthread_create(&thread, &attr, worker_main, s) == 0;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ok) {
        s->worker = true;
        worker_count++;
    }
    return ok;
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

struct stream *engine_stream_new(struct context *context, unsigned flags, int priority)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    pthread_cond_init(&s->wake, NULL);
    s->context = context;
    s->flags = flags;
    s->priority = priority;
    engine_lock();
    s->id = ++last_stream_id;
    s->next_in_context = context->streams;
    context->streams = s;
    engine_unlock();
    return s;
}

/* With the lock. What has work left stays on the list, so that who waits for the context waits for that, too. */
static void close_stream(struct stream *s)
{
    s->destroyed = true;
    if (!s->head)
        unlink_stream(s);
    if (s->worker)
        pthread_cond_signal(&s->wake);
    else if (!s->busy)
        free_stream(s);
}

void engine_stream_close(struct stream *s)
{
    engine_lock();
    close_stream(s);
    engine_unlock();
}

void engine_close_all(struct context *context)
{
    engine_lock();
    while (context->streams) {
        struct stream *s = context->streams;
        handle_remove(s, HANDLE_STREAM);
        context->streams = s->next_in_context;
        if (!s->destroyed)
            close_stream(s);
    }
    engine_unlock();
}

/* The rules of the legacy stream: it waits for all blocking streams of its context, and they for it. */
static bool add_implicit_deps(struct stream *s, struct op *op)
{
    if (s->context->gate && !op_after(op, s->context->gate))
        return false;
    if (s->flags & CU_STREAM_NON_BLOCKING)
        return true;
    if (!s->legacy)
        return op_after(op, s->context->legacy->last);
    for (struct stream *other = s->context->streams; other; other = other->next_in_context)
        if (other != s && !(other->flags & CU_STREAM_NON_BLOCKING) && !op_after(op, other->last))
            return false;
    return true;
}

CUresult engine_gather(struct context *context, struct op *op)
{
    engine_lock();
    bool ok = !context->gate || op_after(op, context->gate);
    for (struct stream *s = context->streams; ok && s; s = s->next_in_context)
        ok = op_after(op, s->last);
    engine_unlock();
    return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void engine_set_gate(struct context *context, struct op *op)
{
    engine_lock();
    struct op *before = context->gate;
    context->gate = op_ref(op);
    engine_unlock();
    op_unref(before);
}

CUresult engine_submit_aside(struct context *context, struct op *op)
{
    struct stream *s = engine_stream_new(context, CU_STREAM_NON_BLOCKING, 0);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = engine_submit(s, op);
    engine_stream_close(s);
    return result;
}

/* With the lock: puts the operation at the end of the queue. */
static void append(struct stream *s, struct op *op)
{
    op->stream = s;
    op_ref(op);
    if (s->tail)
        s->tail->next = op;
    else
        s->head = op;
    s->tail = op;
}

/* With the lock: makes it the stream's newest operation and returns the one before, to be released without the lock. */
static struct op *set_last(struct stream *s, struct op *op)
{
    struct op *before = s->last;
    s->last = op_ref(op);
    return before;
}

/* `inline_run`: the caller waits, so that a free stream needs no worker. */
static CUresult submit(struct stream *s, struct op *op, bool inline_run)
{
    engine_lock();
    if (state_stopping()) {
        engine_unlock();
        return CUDA_ERROR_DEINITIALIZED;
    }
    bool ok = add_implicit_deps(s, op), free_now = ok && !s->head && !s->busy && deps_done(op);
    inline_run = inline_run && free_now && !op->bound && stack_is_large();
    if (free_now && !op->run) {
        /* A marker in an idle stream is done as it is made. */
        op->finished_ns = state_now_ns();
        atomic_store(&op->done, true);
        drop_deps(op);
    } else if (inline_run) {
        append(s, op);
    } else if (ok && (s->worker || start_worker(s))) {
        append(s, op);
        pthread_cond_signal(&s->wake);
    } else {
        engine_unlock();
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct op *before = set_last(s, op);
    if (inline_run)
        help(s);
    engine_unlock();
    op_unref(before);
    return CUDA_SUCCESS;
}

CUresult engine_submit_allowed(struct stream *s, struct op *op)
{
    return submit(s, op, false);
}

CUresult engine_submit(struct stream *s, struct op *op)
{
    CUresult result = capture_refuse(s);
    return result == CUDA_SUCCESS ? submit(s, op, false) : result;
}

CUresult engine_submit_and_forget(struct stream *s, struct op *op)
{
    CUresult result = engine_submit(s, op);
    op_unref(op);
    return result;
}

CUresult engine_submit_and_wait(struct stream *s, struct op *op)
{
    if (in_callback) {
        op_unref(op);
        return CUDA_ERROR_NOT_PERMITTED;
    }
    int cancellation = put_off_cancellation();
    CUresult result = capture_refuse(s);
    if (result == CUDA_SUCCESS)
        result = submit(s, op, true);
    if (result == CUDA_SUCCESS)
        result = engine_wait(op);
    op_unref(op);
    pthread_setcancelstate(cancellation, NULL);
    return result;
}

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* Waits at exit: after a while kernels are cancelled, a little later the wait is given up (a callback of the program
 * may hang). */
static CUresult wait_bounded(struct op *op)
{
    static const uint64_t steps[] = {EXIT_MS, SHUTDOWN_MS};
    for (int i = 0; i < 2; i++) {
        struct timespec until = deadline(atomic_load(&cancel) ? SHUTDOWN_MS : steps[i]);
        while (!atomic_load(&op->done))
            if (pthread_cond_timedwait(&progress, &lock, &until) != 0)
                break;
        if (atomic_load(&op->done))
            return CUDA_SUCCESS;
        atomic_store(&cancel, true);
    }
    return CUDA_ERROR_DEINITIALIZED;
}

static CUresult wait_locked(struct op *op)
{
    while (!atomic_load(&op->done)) {
        if (state_exiting())
            return wait_bounded(op);
        if (op->stream && help(op->stream))
            continue;
        pthread_cond_wait(&progress, &lock);
    }
    return CUDA_SUCCESS;
}

CUresult engine_wait(struct op *op)
{
    if (!op || atomic_load(&op->done))
        return CUDA_SUCCESS;
    if (in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    int cancellation = put_off_cancellation();
    engine_lock();
    CUresult result = wait_locked(op);
    engine_unlock();
    pthread_setcancelstate(cancellation, NULL);
    return result;
}

CUresult engine_wait_stream(struct stream *s)
{
    engine_lock();
    struct op *last = op_ref(s->last);
    engine_unlock();
    CUresult result = engine_wait(last);
    op_unref(last);
    return result;
}

static CUresult wait_streams(struct context *context, bool blocking_only)
{
    if (in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult result = CUDA_SUCCESS;
    int cancellation = put_off_cancellation();
    engine_lock();
    /* Start again after each wait: the list may have changed meanwhile. What is submitted after the call began may be
     * waited for, too, but a busy other thread must not keep this one for ever: each stream's newest operation is
     * waited for once. */
    uint64_t seen = UINT64_MAX;
    for (;;) {
        struct stream *next = NULL;
        for (struct stream *s = context->streams; s; s = s->next_in_context)
            if (s->id < seen && (!next || s->id > next->id) && !(blocking_only && s->flags & CU_STREAM_NON_BLOCKING))
                next = s;
        if (!next || result != CUDA_SUCCESS)
            break;
        seen = next->id;
        struct op *last = op_ref(next->last);
        if (last)
            result = wait_locked(last);
        engine_unlock();
        op_unref(last);
        engine_lock();
    }
    engine_unlock();
    pthread_setcancelstate(cancellation, NULL);
    return result;
}

CUresult engine_wait_context(struct context *context)
{
    return wait_streams(context, false);
}

CUresult engine_wait_blocking(struct context *context)
{
    return wait_streams(context, true);
}

CUresult engine_wait_device(void)
{
    CUresult result = CUDA_SUCCESS;
    /* Contexts that were destroyed stay on the list, and have nothing to wait for. */
    for (struct context *c = context_all(); c && result == CUDA_SUCCESS; c = c->next)
        if (atomic_load(&c->alive))
            result = engine_wait_context(c);
    return result;
}

bool engine_stream_busy(struct stream *s)
{
    engine_lock();
    bool busy = s->last && !atomic_load(&s->last->done);
    engine_unlock();
    return busy;
}

void engine_shutdown(void)
{
    atomic_store(&cancel, true);
    struct timespec until = deadline(SHUTDOWN_MS);
    engine_lock();
    for (struct context *c = context_all(); c; c = c->next) {
        context_fail(c, CUDA_ERROR_DEINITIALIZED); /* what is queued is dropped */
        for (struct stream *s = c->streams; s; s = s->next_in_context)
            pthread_cond_broadcast(&s->wake);
    }
    pthread_cond_broadcast(&progress);
    bool running = true;
    while (running) {
        running = false;
        for (struct context *c = context_all(); c; c = c->next)
            for (struct stream *s = c->streams; s; s = s->next_in_context)
                running = running || s->head;
        if (running && pthread_cond_timedwait(&progress, &lock, &until) != 0)
            break;
    }
    engine_unlock();
}
