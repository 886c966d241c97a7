#include "shim/hooks.h"

#include <dlfcn.h>
#include <string.h>

#include "shim/doors.h"
#include "shim/runtime_api.h"
#include "shim/runtime_doors.h"
#include "shim/thread.h"

struct hook_row {
    const char *symbol, *name;
    int since;
    enum hook_kind kind;
    void *wrapper;
};

/* Taking the address demands a wrapper: a row without one fails to link (-z defs), a duplicate row is a duplicate
 * enumerator. */
static const struct hook_row hook_rows[HOOK_COUNT] = {
#define HOOK(symbol, name, since, kind) {#symbol, name, since, kind, (void *)&(symbol)},
#define RUNTIME_HOOK(symbol)            {#symbol, #symbol, 0, HOOK_RUNTIME, (void *)&(symbol)},
#include "shim/hooks.def"
#undef HOOK
#undef RUNTIME_HOOK
};
#define HOOK(symbol, name, since, kind)                                                                                \
    _Static_assert(HOOK_##symbol < HOOK_FIRST_OF_RUNTIME, "the driver's come first");
#define RUNTIME_HOOK(symbol) _Static_assert(HOOK_##symbol >= HOOK_FIRST_OF_RUNTIME, "cudart's come last");
#include "shim/hooks.def"
#undef HOOK
#undef RUNTIME_HOOK

void *hook_reals[HOOK_COUNT];
static void *hook_inners[HOOK_COUNT];

/* CUDA_ERROR_NOT_INITIALIZED and cudaErrorInitializationError have the same value. */
static CUresult hook_absent(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

const char *hook_symbol(enum hook hook)
{
    return hook_rows[hook].symbol;
}

enum hook_kind hook_kind(enum hook hook)
{
    return hook_rows[hook].kind;
}

void *hook_wrapper(enum hook hook)
{
    return hook_rows[hook].wrapper;
}

enum hook hook_by_symbol(const char *symbol)
{
    for (unsigned i = 0; i < HOOK_COUNT; i++)
        if (strcmp(hook_rows[i].symbol, symbol) == 0)
            return i;
    return HOOK_NONE;
}

bool hook_knows_name(const char *name)
{
    for (unsigned i = 0; i < HOOK_COUNT; i++)
        if (hook_rows[i].kind != HOOK_RUNTIME && strcmp(hook_rows[i].name, name) == 0)
            return true;
    return false;
}

enum hook hook_by_request(const char *name, int version, uint64_t flags, int *since)
{
    enum hook best = HOOK_NONE;
    bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    for (unsigned i = 0; i < HOOK_COUNT; i++) {
        const struct hook_row *row = &hook_rows[i];
        if (row->kind == HOOK_RUNTIME || row->since > version || strcmp(row->name, name) != 0)
            continue;
        if (row->kind == HOOK_PER_THREAD && !per_thread)
            continue;
        bool better = best == HOOK_NONE || row->since > hook_rows[best].since ||
                      (row->since == hook_rows[best].since && row->kind == HOOK_PER_THREAD);
        /* A function that has per-thread forms is never answered with its plain form to a per-thread caller. */
        if (best != HOOK_NONE && row->kind != hook_rows[best].kind && per_thread)
            better = row->kind == HOOK_PER_THREAD;
        if (better)
            best = i;
    }
    if (best != HOOK_NONE)
        *since = hook_rows[best].since;
    return best;
}

void hook_learn(enum hook hook, void *function)
{
    void *none = NULL;
    if (function && function != hook_rows[hook].wrapper)
        __atomic_compare_exchange_n(&hook_reals[hook], &none, function, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

bool hook_exists(enum hook hook)
{
    if (hook_known(hook))
        return true;
    /* Reached by direct binding. What comes next in the program's own order is what it would have got without us: the
     * driver, or another interposer. A library that was opened RTLD_LOCAL is not in that order; there the loaded object
     * is asked. */
    void *real = doors_real_dlsym(RTLD_NEXT, hook_rows[hook].symbol);
    if (!real ||
        real == hook_rows[hook].wrapper) /* another tool's dlsym may answer with the first of a name, which is ours */
        real = doors_library_symbol(hook_rows[hook].kind == HOOK_RUNTIME, hook_rows[hook].symbol);
    hook_learn(hook, real);
    return hook_known(hook) != NULL;
}

void *hook_find(enum hook hook)
{
    if (hook_rows[hook].kind == HOOK_RUNTIME) {
        uint32_t asked = runtime_doors_asked;
        runtime_doors_asked = 0;
        void *real = asked ? runtime_doors_real(hook, asked) : NULL;
        if (real)
            return real;
    }
    return hook_exists(hook) ? hook_known(hook) : (void *)hook_absent;
}

void *hook_pass(enum hook hook)
{
    if (shim_thread.hook != hook)
        return hook_real(hook);
    /* We came back into the function we are inside of: another interposer asked for "the real one" and got us. Only the
     * driver's own function ends the circle. */
    void *inner = __atomic_load_n(&hook_inners[hook], __ATOMIC_ACQUIRE);
    if (!inner) {
        inner = doors_library_symbol(hook_rows[hook].kind == HOOK_RUNTIME, hook_rows[hook].symbol);
        if (!inner || inner == hook_rows[hook].wrapper)
            inner = (void *)hook_absent;
        __atomic_store_n(&hook_inners[hook], inner, __ATOMIC_RELEASE);
    }
    return inner;
}
