#include "shim/stack.h"

#include <dlfcn.h>
#include <stddef.h>

#include <opsdebug/capture.h>

#include "shim/budget.h"
#include "shim/doors.h"
#include "shim/intern.h"
#include "shim/no_cancel.h"
#include "shim/options.h"
#include "shim/shim.h"
#include "shim/small_stack.h"

enum {
    STACK_MAX = 48,
    UNWIND_CACHE_PER_THREAD = 2,
    UNWIND_BYTES = 16 << 10, /* of stack; what it took at most: see docs/shim.md */
};

typedef int backtrace_function(void **buffer, int size);
static backtrace_function *backtrace_get;

void stack_load(void)
{
    if (!options.stacks)
        return;
    /* By name and local: the program may bring another unwinder (LLVM's libunwind.so.1 has the same unw_ names). */
    void *library = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
    backtrace_function *function =
        library ? (backtrace_function *)doors_real_dlsym(library, "unw_backtrace") : (backtrace_function *)NULL;
    if (!function) {
        shim_note(CAP_NOTE_LOST, "libunwind.so.8 is not there: records carry no stacks");
        return;
    }
    /* With the default global cache every unwinding takes a lock and two sigprocmask calls. */
    int (*set_caching)(void *, int) = (int (*)(void *, int))doors_real_dlsym(library, "_ULx86_64_set_caching_policy");
    void **space = doors_real_dlsym(library, "_ULx86_64_local_addr_space");
    if (set_caching && space)
        set_caching(*space, UNWIND_CACHE_PER_THREAD);
    __atomic_store_n(&backtrace_get, function, __ATOMIC_RELEASE);
}

static bool no_room(void)
{
    static bool noted; /* atomic */
    if (small_stack_left() >= UNWIND_BYTES)
        return false;
    if (!__atomic_exchange_n(&noted, true, __ATOMIC_RELAXED))
        shim_note(CAP_NOTE_LOST, "threads whose stack has less than %d KiB left made calls: these carry no host stack",
                  UNWIND_BYTES >> 10);
    return true;
}

uint32_t stack_here(void)
{
    backtrace_function *function = __atomic_load_n(&backtrace_get, __ATOMIC_ACQUIRE);
    if (!function || !shim_is_recording() || no_room())
        return 0;
    NO_CANCEL; /* it asks the kernel whether memory can be read */
    void *raw[STACK_MAX];
    _Static_assert(sizeof *raw == sizeof(uint64_t), "a frame is a pointer");
    int got = function(raw, STACK_MAX), skip = 0;
    while (skip < got && shim_owns_address((uintptr_t)raw[skip]))
        skip++;
    uint32_t count = 0;
    while (skip + (int)count < got && raw[skip + (int)count])
        count++;
    return intern_stack((const uint64_t *)(const void *)(raw + skip), count);
}

uint32_t stack_sampled(void)
{
    if (!budget_takes(CAP_BUDGET_STACKS))
        return 0;
    BUDGET_SPAN(CAP_BUDGET_STACKS);
    return stack_here();
}
