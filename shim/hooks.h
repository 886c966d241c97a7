/* hooks.h - the hooked functions as ids, with access to the functions they stand before.
 *
 * Expands from hooks.def. `REAL(name, id)` is the function that a wrapper calls on behalf of the program, `PASS(name,
 * id)` the one it calls when it was entered from inside a real call (see call.h). Both are typed like cuda.h declares
 * the symbol, and never NULL: when no driver has the function, they answer CUDA_ERROR_NOT_INITIALIZED, as a driver
 * would before cuInit. All functions are thread-safe and initialise nothing in the driver.
 */
#ifndef SHIM_HOOKS_H
#define SHIM_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The header's internal mode declares every exported form (v1, _v2, _ptds, _ptsz) under its own name. Wrappers have
 * those names and are what the library exports; nothing else of ours is visible. */
#pragma GCC visibility push(default)
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#pragma GCC visibility pop

enum hook_kind { HOOK_LEGACY, HOOK_PER_THREAD, HOOK_RUNTIME };

enum hook {
#define HOOK(symbol, name, since, kind) HOOK_##symbol,
#define RUNTIME_HOOK(symbol)            HOOK_##symbol,
#include "shim/hooks.def"
#undef HOOK
#undef RUNTIME_HOOK
    HOOK_COUNT,
    HOOK_NONE = 0xffff,
    HOOK_FIRST_OF_RUNTIME = HOOK_cudaMalloc, /* they come last in hooks.def */
};

const char *hook_symbol(enum hook hook);
enum hook_kind hook_kind(enum hook hook);
void *hook_wrapper(enum hook hook);
enum hook hook_by_symbol(const char *symbol); /* exact; HOOK_NONE when it is not ours */

/* The row that cuGetProcAddress(name, version, flags) would mean, HOOK_NONE without one. */
enum hook hook_by_request(const char *name, int version, uint64_t flags, int *since);
bool hook_knows_name(const char *name); /* a row has this cuGetProcAddress name */

extern void *hook_reals[HOOK_COUNT];
static inline void *hook_known(enum hook hook) /* the real function when it was seen already, else NULL */
{
    return __atomic_load_n(&hook_reals[hook], __ATOMIC_ACQUIRE);
}
void hook_learn(enum hook hook, void *function); /* the first one seen stays */
bool hook_exists(enum hook hook);                /* looks for a real function behind ours */
void *hook_find(enum hook hook);                 /* the same, for calling it */
static inline void *hook_real(enum hook hook)
{
    /* cudart's entry points may be there more than once: whoever is bound to one of them gets that one's. */
    void *real = hook >= HOOK_FIRST_OF_RUNTIME ? NULL : hook_known(hook);
    return real ? real : hook_find(hook);
}
void *hook_pass(enum hook hook);

#define REAL(name, id) ((__typeof__(&name))hook_real(id))
#define PASS(name, id) ((__typeof__(&name))hook_pass(id))

#endif
