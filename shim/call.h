/* call.h - the frame of every wrapper: guard, real call, record, return.
 *
 *     struct call call;
 *     if (!call_enter(&call, hook))
 *         return PASS(cuFoo, hook)(...);
 *     ... look at arguments, write the record ...
 *     call_begin(&call);
 *     CUresult result = REAL(cuFoo, hook)(...);
 *     call_end(&call);
 *     ... patch or write the record ...
 *     return call_leave(&call, result);
 *
 * Reading the clock costs as much as half of the rest, so our own time is measured in one call of 16 (by chance, and
 * counted 16 times) and in every call that does something slow, which says so by thread_slow(). In the others a real
 * call begins when the wrapper did, plus what our code usually takes.
 *
 * Between enter and leave the thread counts as inside: what the driver, or we, call is passed through, so nothing is
 * counted twice. No lock of ours may be held between call_begin and call_end.
 */
#ifndef SHIM_CALL_H
#define SHIM_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/hooks.h"
#include "shim/thread.h"

struct call {
    uint64_t tsc, seq;
    uint64_t real_begin, real_end;
    uint16_t hook;
    bool outermost; /* this call opened the scope */
    bool exact;     /* chosen by chance: all four times are read */
};

static inline uint64_t call_tsc(void)
{
    return __builtin_ia32_rdtsc();
}

bool call_enter(struct call *call, enum hook hook);

static inline void call_begin(struct call *call)
{
    call->real_begin = call->exact || shim_thread.slow ? call_tsc() : call->tsc + shim_thread.before_ticks;
}

static inline void call_end(struct call *call)
{
    call->real_end = call_tsc();
    if (call->real_begin > call->real_end) /* only when it is an estimate */
        call->real_begin = call->real_end;
}

uint64_t call_real_ns(const struct call *call); /* time inside the real call */

/* For a record that says that the call failed: its error is recorded first, now. False: it is none, or could not be.
 * Then the record had better not say so. */
bool call_tell_error(const struct call *call, CUresult result);

/* Returns `result` unchanged. An error is recorded, and a sticky device error stops our own device work. */
CUresult call_leave(struct call *call, CUresult result);
/* The same for questions whose errors are answers (is this a device pointer?). */
CUresult call_leave_quiet(struct call *call, CUresult result);

/* A wrapper whose own part comes after a real call that succeeded: what the driver refuses may be garbage. `symbol` is
 * what is hooked, `function` the form of it that the program is given, `action` a statement that may use the parameters
 * and `call`. */
#define WRAP_AFTER_SUCCESS(symbol, function, action, parameters, ...)                                                  \
    CUresult symbol parameters                                                                                         \
    {                                                                                                                  \
        struct call call;                                                                                              \
        if (!call_enter(&call, HOOK_##symbol))                                                                         \
            return PASS(function, HOOK_##symbol)(__VA_ARGS__);                                                         \
        call_begin(&call);                                                                                             \
        CUresult result = REAL(function, HOOK_##symbol)(__VA_ARGS__);                                                  \
        call_end(&call);                                                                                               \
        if (result == CUDA_SUCCESS)                                                                                    \
            action;                                                                                                    \
        return call_leave(&call, result);                                                                              \
    }

/* cudart's entry points: everything inside belongs to the outermost one. */
bool call_scope_open(enum hook hook);
void call_scope_close(bool opened);

#endif
