#include "shim/call.h"

#include <opsdebug/capture.h>

#include "shim/capture_write.h"
#include "shim/driver.h"
#include "shim/health.h"
#include "shim/host_maps.h"
#include "shim/intern.h"
#include "shim/progress.h"
#include "shim/ranges.h"
#include "shim/shim.h"
#include "shim/stack.h"

enum {
    FLUSH_EVERY = 64,      /* calls between two updates of the shared counters, fewer in a thread's first ones; */
    FLUSH_TICKS = 1 << 20, /* and when so much of our own time is not in them */
    EXACT_ONE_OF = 16,     /* calls whose own time is measured by chance */
    USUAL_TICKS_MAX = 8192 /* what takes longer counts once, not for the others as well */
};

__thread struct shim_thread shim_thread = {.hook = HOOK_NONE, .scope = HOOK_NONE};

/* How many calls until the next exact one: 1 to 31, so that no loop of the program keeps step with it. */
static uint32_t next_exact(struct shim_thread *thread)
{
    thread->random = thread->random * 1664525u + 1013904223u;
    return thread->random % (2 * EXACT_ONE_OF - 1);
}

bool call_enter(struct call *call, enum hook hook)
{
    struct shim_thread *thread = &shim_thread;
    if (thread->inside || !(shim_live_state() >= SHIM_RECORDING || shim_enter()))
        return false;
    thread->inside = 1;
    thread->slow = false;
    thread->error_told = false;
    call->exact = thread->until_exact == 0;
    thread->until_exact = call->exact ? next_exact(thread) : thread->until_exact - 1;
    if (thread->ranges_unwritten)
        ranges_catch_up();
    thread->hook = hook;
    call->outermost = thread->scope == HOOK_NONE;
    if (call->outermost)
        thread->scope = hook;
    call->hook = hook;
    call->tsc = call_tsc();
    call->seq = capture_next_seq();
    progress_entered(thread, hook, call->tsc, call->seq);
    capture_count_hook(hook);
    return true;
}

uint64_t call_real_ns(const struct call *call)
{
    return capture_tsc_to_ns(call->real_end - call->real_begin);
}

static bool sticky(CUresult result)
{
    switch ((int)result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

/* Not ready is an answer; deinitialised is what every call gets while the process exits. */
static bool is_error(CUresult result)
{
    return result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY && result != CUDA_ERROR_DEINITIALIZED;
}

bool call_tell_error(const struct call *call, CUresult result)
{
    struct shim_thread *thread = &shim_thread;
    if (thread->error_told || !is_error(result))
        return thread->error_told;
    thread_slow();
    uint32_t stack = stack_here();
    const char *text = NULL;
    if (!driver.cuGetErrorName || driver.cuGetErrorName(result, &text) != CUDA_SUCCESS || !text)
        text = "CUDA_ERROR_UNKNOWN";
    uint32_t name = intern_string(text);
    struct cap_error *record = capture_record(CAP_ERROR, sizeof *record, capture_next_seq(), call->tsc);
    if (!record)
        return false;
    record->code = (int32_t)result;
    record->name = name;
    record->stack = stack;
    capture_commit(record);
    thread->error_told = true;
    return true;
}

static void failed(const struct call *call, CUresult result)
{
    call_tell_error(call, result);
    if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
        host_maps_record();
    if (sticky(result) && shim_is_recording()) {
        shim_device_lost(result);
        health_settle();
    }
}

/* Of a call that was chosen by chance. What was slow counts once, like in every other call. */
static uint64_t weigh(uint64_t ticks, bool slow)
{
    return slow || ticks > USUAL_TICKS_MAX ? ticks : ticks * EXACT_ONE_OF;
}

static void count_own_time(struct shim_thread *thread, const struct call *call)
{
    uint64_t before = call->real_begin - call->tsc, after = call_tsc() - call->real_end;
    if (call->exact) {
        if (!thread->slow && before < USUAL_TICKS_MAX)
            thread->before_ticks = (uint32_t)((thread->before_ticks * 7u + before) / 8);
        before = weigh(before, thread->slow);
        after = weigh(after, thread->slow);
    }
    thread->own_tsc += before + after;
}

/* After one call, two, four: also of a program that is killed early the capture says what it cost. */
static void flush_counters(struct shim_thread *thread)
{
    capture_flush_counters();
    if (thread->flush_at < FLUSH_EVERY)
        thread->flush_at = thread->flush_at ? 2 * thread->flush_at : 1;
}

static inline void leave(struct call *call)
{
    struct shim_thread *thread = &shim_thread;
    if (!__atomic_load_n(&shim_exit_registered, __ATOMIC_RELAXED))
        shim_register_exit();
    if (call->outermost)
        thread->scope = HOOK_NONE;
    if (call->exact || thread->slow)
        count_own_time(thread, call);
    if (++thread->calls >= thread->flush_at || thread->own_tsc >= FLUSH_TICKS)
        flush_counters(thread);
    thread->hook = HOOK_NONE;
    progress_left(thread);
    thread->inside = 0;
}

CUresult call_leave(struct call *call, CUresult result)
{
    if (is_error(result))
        failed(call, result);
    leave(call);
    return result;
}

CUresult call_leave_quiet(struct call *call, CUresult result)
{
    leave(call);
    return result;
}

bool call_scope_open(enum hook hook)
{
    struct shim_thread *thread = &shim_thread;
    if (thread->scope != HOOK_NONE || thread->inside)
        return false;
    thread->scope = hook;
    if (shim_is_recording())
        capture_count_hook(hook);
    return true;
}

void call_scope_close(bool opened)
{
    if (opened)
        shim_thread.scope = HOOK_NONE;
}
