#include "shim/runtime_doors.h"

#include <dlfcn.h>
#include <stddef.h>

#include "shim/doors.h"
#include "shim/runtime_api.h"

/* The libraries whose programs are told apart, as number and name. The name is also that of the version node of all
 * their symbols. */
#define RUNTIMES(X)                                                                                                    \
    X(1, "libcudart.so.11.0")                                                                                          \
    X(2, "libcudart.so.12")                                                                                            \
    X(3, "libcudart.so.13")
enum { RUNTIMES_COUNT = 3 };

__thread uint32_t runtime_doors_asked __attribute__((tls_model("initial-exec")));

#define HOOK(symbol, name, since, kind)
#define RUNTIME_HOOK(symbol)                                                                                           \
    VERSIONED_ENTRY(symbol, 1, "libcudart.so.11.0")                                                                    \
    VERSIONED_ENTRY(symbol, 2, "libcudart.so.12")                                                                      \
    VERSIONED_ENTRY(symbol, 3, "libcudart.so.13")
#include "shim/hooks.def"
#undef HOOK
#undef RUNTIME_HOOK

void *runtime_doors_real(enum hook hook, uint32_t asked)
{
    static void *reals[RUNTIMES_COUNT + 1][HOOK_COUNT];
    static const char *const names[RUNTIMES_COUNT + 1] = {
#define NAME(number, node) [number] = node,
        RUNTIMES(NAME)
#undef NAME
    };
    if (asked > RUNTIMES_COUNT)
        return NULL;
    void *real = __atomic_load_n(&reals[asked][hook], __ATOMIC_ACQUIRE);
    if (!real) {
        real = doors_versioned_symbol(names[asked], hook_symbol(hook));
        if (real == hook_wrapper(hook))
            real = NULL;
        __atomic_store_n(&reals[asked][hook], real, __ATOMIC_RELEASE);
    }
    return real;
}
