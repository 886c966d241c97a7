#include "shim/host_function.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <opsdebug/capture.h>

#include "shim/capture_write.h"
#include "shim/device_work.h"
#include "shim/memory.h"
#include "shim/shim.h"
#include "shim/stack.h"
#include "shim/track.h"

enum { IN_FLIGHT_MAX = 1024 }; /* beyond these functions are called as they are */

struct host_function {
    struct cap_host_function *state; /* in the capture; taken over by another one when this one has returned */
    void *function, *data;
    struct host_function *next_unused;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct host_function *unused;
static unsigned made;

static struct host_function *take(void)
{
    pthread_mutex_lock(&lock);
    struct host_function *f = unused;
    bool make = !f && made < IN_FLIGHT_MAX;
    if (f)
        unused = f->next_unused;
    made += make;
    pthread_mutex_unlock(&lock);
    if (!make || !memory_may(sizeof *f))
        return f;
    f = calloc(1, sizeof *f);
    if (f && (f->state = capture_pin(CAP_HOST_FUNCTION, sizeof *f->state)))
        return f;
    free(f);
    memory_give(sizeof *f);
    return NULL; /* `made` stays: no more attempts for this one */
}

static void give_back(struct host_function *f)
{
    __atomic_store_n(&f->state->seq, 0, __ATOMIC_RELEASE);
    pthread_mutex_lock(&lock);
    f->next_unused = unused;
    unused = f;
    pthread_mutex_unlock(&lock);
}

struct host_function *host_function_new(const struct call *call, CUstream stream, bool own_stream, void *function,
                                        void *data)
{
    const struct tracked_stream *tracked = function ? track_stream(stream, own_stream, false) : NULL;
    if (!tracked || device_stream_captures(tracked) || !shim_is_recording())
        return NULL;
    struct host_function *f = take();
    if (!f)
        return NULL;
    struct cap_host_function *state = f->state;
    f->function = function;
    f->data = data;
    state->stream = tracked->id;
    state->stack = stack_sampled();
    state->function = (uint64_t)(uintptr_t)function;
    state->tid = 0;
    state->begun_tsc = 0;
    __atomic_store_n(&state->seq, call->seq, __ATOMIC_RELEASE);
    return f;
}

void host_function_refused(struct host_function *f)
{
    if (f)
        give_back(f);
}

/* In a thread of the driver's, where nobody may call the driver. In a child of fork the memory is still ours to read.
 */
static void begins(struct host_function *f)
{
    if (!shim_is_owner())
        return;
    __atomic_store_n(&f->state->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELAXED);
    __atomic_store_n(&f->state->begun_tsc, call_tsc(), __ATOMIC_RELEASE);
}

void CUDA_CB host_function_called(void *data)
{
    struct host_function *f = data;
    CUhostFn function = (CUhostFn)f->function;
    begins(f);
    function(f->data);
    give_back(f);
}

void CUDA_CB host_function_called_back(CUstream stream, CUresult status, void *data)
{
    struct host_function *f = data;
    CUstreamCallback function = (CUstreamCallback)f->function;
    begins(f);
    function(stream, status, f->data);
    give_back(f);
}
