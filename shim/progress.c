#include "shim/progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/capture_write.h"
#include "shim/deadline.h"
#include "shim/device_work.h"
#include "shim/driver.h"
#include "shim/shim.h"
#include "shim/small_stack.h"
#include "shim/timing.h"

enum {
    TICK_MS = 100,
    IDLE_TICKS = 3,     /* without a call until the thread ends, */
    PENDING_TICKS = 40, /* and while launches are not known to have ended */
    ASK_AFTER_MS = 1000,
    ASK_EVERY_TICKS = 5,
    PENDING_MAX = 2048, /* as many as one context times at once */
};

struct progress_seat {
    struct cap_thread_state *state;
    bool taken; /* behind seats_lock */
    struct progress_seat *next;
};
static pthread_mutex_t seats_lock = PTHREAD_MUTEX_INITIALIZER;
static struct progress_seat *seats; /* never freed: as many as threads were alive at one time */

int progress_watched;

static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER; /* held while the driver is asked */
static bool stopped;                                       /* atomic */

/* ---- threads ---- */

static struct progress_seat *find_seat(void)
{
    struct progress_seat *seat = seats;
    while (seat && seat->taken)
        seat = seat->next;
    if (seat)
        return seat;
    seat = calloc(1, sizeof *seat);
    if (seat)
        seat->state = capture_pin(CAP_THREAD_STATE, sizeof *seat->state);
    if (!seat || !seat->state) {
        free(seat);
        return NULL;
    }
    seat->next = seats;
    __atomic_store_n(&seats, seat, __ATOMIC_RELEASE);
    return seat;
}

struct cap_thread_state *progress_take_seat(void)
{
    struct shim_thread *thread = &shim_thread;
    if (!shim_is_recording())
        return NULL;
    if (!thread->thread_id)
        thread->thread_id = (uint32_t)syscall(SYS_gettid);
    pthread_mutex_lock(&seats_lock);
    struct progress_seat *seat = find_seat();
    if (seat) {
        seat->taken = true;
        __atomic_store_n(&seat->state->call, HOOK_NONE, __ATOMIC_RELAXED);
        __atomic_store_n(&seat->state->tid, thread->thread_id, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&seats_lock);
    thread->seat = seat;
    thread->state = seat ? seat->state : NULL;
    return thread->state;
}

void progress_thread_ends(void)
{
    struct shim_thread *thread = &shim_thread;
    if (!thread->seat)
        return;
    pthread_mutex_lock(&seats_lock);
    __atomic_store_n(&thread->state->tid, 0, __ATOMIC_RELEASE);
    thread->seat->taken = false;
    pthread_mutex_unlock(&seats_lock);
    thread->seat = NULL;
    thread->state = NULL;
}

static uint64_t ms_since(uint64_t tsc)
{
    uint64_t now = __builtin_ia32_rdtsc();
    return now > tsc ? capture_tsc_to_ns(now - tsc) / 1000000 : 0;
}

/* How long the thread that has been inside its call for the longest time has been there; 0: nobody is inside. */
static uint64_t longest_call_ms(void)
{
    uint64_t longest = 0;
    for (struct progress_seat *s = __atomic_load_n(&seats, __ATOMIC_ACQUIRE); s; s = s->next) {
        uint32_t call = __atomic_load_n(&s->state->call, __ATOMIC_ACQUIRE);
        if (!__atomic_load_n(&s->state->tid, __ATOMIC_RELAXED) || call == HOOK_NONE)
            continue;
        uint64_t ms = ms_since(__atomic_load_n(&s->state->entered_tsc, __ATOMIC_RELAXED)) + 1;
        longest = ms > longest ? ms : longest;
    }
    return longest;
}

/* ---- streams ---- */

static struct timing_pending pending[PENDING_MAX]; /* of the one thread that asks */

struct answer {
    uint64_t running, waiting, complete;
    uint32_t busy;
};

static struct answer ask_launches(const struct tracked_stream *stream, unsigned count)
{
    struct answer a = {.busy = CAP_BUSY_UNKNOWN};
    for (unsigned i = 0; i < count; i++) {
        if (pending[i].stream != stream)
            continue;
        switch (timing_ask(&pending[i])) {
        case TIMING_DONE:
            a.complete = pending[i].seq > a.complete ? pending[i].seq : a.complete;
            break;
        case TIMING_BEGUN:
            a.running = pending[i].seq;
            a.busy = CAP_BUSY_YES;
            return a;
        case TIMING_NOT_BEGUN:
            a.waiting = pending[i].seq;
            a.busy = CAP_BUSY_YES;
            return a;
        case TIMING_UNKNOWN:
            return a;
        }
    }
    return a;
}

/* Another thread's default stream cannot be named here, and a stream that is being captured must not be asked. */
static uint32_t ask_stream(const struct tracked_stream *stream)
{
    if (stream->kind == CAP_STREAM_PER_THREAD || !driver.cuStreamQuery || device_stream_captures(stream))
        return CAP_BUSY_UNKNOWN;
    CUresult result = driver.cuStreamQuery(stream->handle);
    return result == CUDA_SUCCESS ? CAP_BUSY_NO : result == CUDA_ERROR_NOT_READY ? CAP_BUSY_YES : CAP_BUSY_UNKNOWN;
}

#define PATCH(member, value) __atomic_store_n(&(member), value, __ATOMIC_RELAXED)

static void note_answer(struct tracked_stream *stream, struct answer a, uint64_t now)
{
    struct cap_stream_state *state = stream->state;
    if (!state && !(state = stream->state = capture_pin(CAP_STREAM_STATE, sizeof *state)))
        return;
    a.complete = a.complete > state->complete ? a.complete : state->complete;
    if (a.running != state->running)
        PATCH(state->running_tsc, a.running ? now : 0);
    if (a.running != state->running || a.waiting != state->waiting || a.complete != state->complete ||
        a.busy != state->busy)
        PATCH(state->changed_tsc, now);
    PATCH(state->running, a.running);
    PATCH(state->waiting, a.waiting);
    PATCH(state->complete, a.complete);
    PATCH(state->busy, a.busy);
    PATCH(state->asked_tsc, now);
    __atomic_store_n(&state->stream, stream->id, __ATOMIC_RELEASE);
}

static bool may_ask(const struct tracked_context *context)
{
    return !__atomic_load_n(&stopped, __ATOMIC_ACQUIRE) && !__atomic_load_n(&context->ends, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&context->gone, __ATOMIC_ACQUIRE) && shim_device_usable();
}

static void ask_context(struct tracked_context *context, struct device_work *work)
{
    CUcontext none;
    if (!driver.cuCtxPushCurrent_v2 || !driver.cuCtxPopCurrent_v2 ||
        driver.cuCtxPushCurrent_v2(context->handle) != CUDA_SUCCESS)
        return;
    unsigned count = timing_pending(work, pending, PENDING_MAX);
    for (struct tracked_stream *s = track_first_stream(); s && may_ask(context); s = s->next) {
        if (s->context != context || __atomic_load_n(&s->gone, __ATOMIC_ACQUIRE) ||
            __atomic_load_n(&s->ends, __ATOMIC_ACQUIRE))
            continue;
        struct answer a = ask_launches(s, count);
        if (a.busy == CAP_BUSY_UNKNOWN)
            a.busy = ask_stream(s);
        note_answer(s, a, __builtin_ia32_rdtsc());
    }
    driver.cuCtxPopCurrent_v2(&none);
}

static void ask(void)
{
    for (struct tracked_context *c = track_first_context(); c; c = c->next) {
        struct device_work *work = device_work(c);
        pthread_mutex_lock(&asking);
        if (work && may_ask(c))
            ask_context(c, work);
        pthread_mutex_unlock(&asking);
    }
}

/* How long ago the oldest launch was made whose times have not been taken in; 0: there is none. */
static uint64_t oldest_launch_ms(void)
{
    uint64_t oldest = 0;
    for (struct tracked_context *c = track_first_context(); c; c = c->next) {
        struct timing_pending first;
        struct device_work *work = device_work(c);
        if (!work || !timing_pending(work, &first, 1))
            continue;
        uint64_t ms = ms_since(first.tsc) + 1;
        oldest = ms > oldest ? ms : oldest;
    }
    return oldest;
}

static void nobody_asks(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (pthread_mutex_timedlock(&asking, &until) == 0)
        pthread_mutex_unlock(&asking);
}

void progress_context_ends(struct tracked_context *context)
{
    if (!context)
        return;
    const struct deadline patience = deadline_in(1000);
    unsigned nap = 0;
    __atomic_store_n(&context->ends, true, __ATOMIC_SEQ_CST);
    nobody_asks();
    while (__atomic_load_n(&context->askers, __ATOMIC_SEQ_CST) && !deadline_over(patience))
        deadline_nap(&nap);
}

void progress_context_stays(struct tracked_context *context)
{
    if (context)
        __atomic_store_n(&context->ends, false, __ATOMIC_RELEASE); /* `gone` counts on its own */
}

void progress_stream_ends(struct tracked_stream *stream)
{
    __atomic_store_n(&stream->ends, true, __ATOMIC_RELEASE);
    nobody_asks();
}

void progress_stop(void)
{
    __atomic_store_n(&stopped, true, __ATOMIC_RELEASE);
    nobody_asks();
}

/* ---- the thread that looks after them ---- */

/* One round; how many rounds from now on may pass without a call until the thread ends. */
static unsigned look(unsigned tick)
{
    uint64_t call = longest_call_ms(), launch = oldest_launch_ms();
    capture_tick();
    if ((call > ASK_AFTER_MS || launch > ASK_AFTER_MS) && tick % ASK_EVERY_TICKS == 0)
        ask();
    return call ? UINT32_MAX : launch ? PENDING_TICKS : IDLE_TICKS;
}

static void *watch(void *unused)
{
    const struct timespec nap = {0, TICK_MS * 1000000L};
    uint64_t seen = 0;
    shim_thread.inside = 1;
    device_relax();
    do {
        unsigned idle = 0, tick = 0;
        for (;;) {
            nanosleep(&nap, NULL);
            if (!shim_is_recording() || __atomic_load_n(&stopped, __ATOMIC_ACQUIRE))
                return NULL; /* for good */
            uint64_t now = capture_last_seq();
            unsigned patience = look(tick++);
            idle = now == seen && patience != UINT32_MAX ? idle + 1 : 0;
            seen = now;
            if (idle >= patience)
                break;
        }
        __atomic_store_n(&progress_watched, 0, __ATOMIC_SEQ_CST);
        /* Who came in the meantime relied on this thread, unless another one was made since. */
    } while (longest_call_ms() && !__atomic_exchange_n(&progress_watched, 1, __ATOMIC_SEQ_CST));
    return NULL;
}

void progress_watch(void)
{
    static bool failed;
    if (!shim_is_recording() || __atomic_load_n(&stopped, __ATOMIC_ACQUIRE) ||
        __atomic_load_n(&failed, __ATOMIC_RELAXED) || __atomic_exchange_n(&progress_watched, 1, __ATOMIC_SEQ_CST))
        return;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    small_stack_not(&detached);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    bool made = pthread_create(&thread, &detached, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    if (made)
        return;
    __atomic_store_n(&failed, true, __ATOMIC_RELAXED);
    shim_note(CAP_NOTE_LOST, "no thread of our own: `ops-debug hang` will not know what the streams do");
}
