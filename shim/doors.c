#include "shim/doors.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "shim/call.h"
#include "shim/hooks.h"
#include "shim/libc_symbols.h"
#include "shim/library.h"
#include "shim/object.h"
#include "shim/shim.h"
#include "shim/thread.h"

/* What the assembly below gets in rax and rdx. */
struct answer {
    void *function;
    uintptr_t ours; /* 0: not ours, jump to the next dlsym with everything as it was */
};

typedef void *dlsym_function(void *handle, const char *symbol);
typedef void *dlvsym_function(void *handle, const char *symbol, const char *version);

/* Internal names for the assembly; hidden, so that no GOT entry lies between. */
struct answer doors_answer(void *handle, const char *symbol) __attribute__((visibility("hidden")));
struct answer doors_answer_versioned(void *handle, const char *symbol, const char *version)
    __attribute__((visibility("hidden")));
dlsym_function *doors_next_dlsym(void) __attribute__((visibility("hidden")));
dlvsym_function *doors_next_dlvsym(void) __attribute__((visibility("hidden")));

/* dlsym and dlvsym: ask doors_answer; when the name is not ours, jump (not call) to the next one, so that the return
 * address on the stack is the caller's and RTLD_NEXT keeps its meaning. gcc 12 has no musttail, and -O0 or ASan builds
 * would not turn a return into a jump. Both symbol versions are exported: 2.2.5 is what older programs and tools ask
 * dlvsym for. */
#define DOOR(name, answer, next)                                                                                       \
    __asm__(".text\n"                                                                                                  \
            ".globl opsdebug_" name "\n"                                                                               \
            ".hidden opsdebug_" name "\n"                                                                              \
            ".type opsdebug_" name ", @function\n"                                                                     \
            "opsdebug_" name ":\n"                                                                                     \
            ".cfi_startproc\n"                                                                                         \
            "endbr64\n"                                                                                                \
            "pushq %rdi\n.cfi_adjust_cfa_offset 8\n"                                                                   \
            "pushq %rsi\n.cfi_adjust_cfa_offset 8\n"                                                                   \
            "pushq %rdx\n.cfi_adjust_cfa_offset 8\n"                                                                   \
            "call " answer "\n"                                                                                        \
            "testq %rdx, %rdx\n"                                                                                       \
            "jnz 1f\n"                                                                                                 \
            "call " next "\n"                                                                                          \
            "popq %rdx\n.cfi_adjust_cfa_offset -8\n"                                                                   \
            "popq %rsi\n.cfi_adjust_cfa_offset -8\n"                                                                   \
            "popq %rdi\n.cfi_adjust_cfa_offset -8\n"                                                                   \
            "jmp *%rax\n"                                                                                              \
            ".cfi_adjust_cfa_offset 24\n"                                                                              \
            "1: addq $24, %rsp\n.cfi_adjust_cfa_offset -24\n"                                                          \
            "ret\n"                                                                                                    \
            ".cfi_endproc\n"                                                                                           \
            ".size opsdebug_" name ", .-opsdebug_" name "\n"                                                           \
            ".globl opsdebug_" name "_225\n"                                                                           \
            ".set opsdebug_" name "_225, opsdebug_" name "\n"                                                          \
            ".type opsdebug_" name "_225, @function\n"                                                                 \
            ".globl opsdebug_" name "_234\n"                                                                           \
            ".set opsdebug_" name "_234, opsdebug_" name "\n"                                                          \
            ".type opsdebug_" name "_234, @function\n"                                                                 \
            ".symver opsdebug_" name "_225, " name "@GLIBC_2.2.5, remove\n"                                            \
            ".symver opsdebug_" name "_234, " name "@@GLIBC_2.34, remove\n")

DOOR("dlsym", "doors_answer", "doors_next_dlsym");
DOOR("dlvsym", "doors_answer_versioned", "doors_next_dlvsym");

enum { NAMES_MAX = 64, NAME_BYTES = 64 };
struct name_list {
    char names[NAMES_MAX][NAME_BYTES];
    unsigned reserved, count; /* count: how many are readable */
};
static struct name_list unknown_names, newer_names, second_names;

static void name_list_add(struct name_list *list, const char *name)
{
    unsigned have = __atomic_load_n(&list->count, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; i < have; i++)
        if (strncmp(list->names[i], name, NAME_BYTES - 1) == 0)
            return;
    unsigned at = __atomic_fetch_add(&list->reserved, 1, __ATOMIC_RELAXED);
    if (at >= NAMES_MAX)
        return;
    strncpy(list->names[at], name, NAME_BYTES - 1);
    /* Two threads may finish out of order; then the list ends early until the next one. Good enough for a note. */
    __atomic_store_n(&list->count, at + 1, __ATOMIC_RELEASE);
}

static const char *name_list_next(const struct name_list *list, unsigned *cursor)
{
    return *cursor < __atomic_load_n(&list->count, __ATOMIC_ACQUIRE) ? list->names[(*cursor)++] : NULL;
}

const char *doors_unknown_name(unsigned *cursor)
{
    return name_list_next(&unknown_names, cursor);
}

const char *doors_newer_name(unsigned *cursor)
{
    return name_list_next(&newer_names, cursor);
}

const char *doors_second_library(unsigned *cursor)
{
    return name_list_next(&second_names, cursor);
}

/* The driver's functions that cuda.h declares: made from the header by build.mk, sorted. */
static const char *const header_names[] = {
#ifndef __clang_analyzer__ /* the linter runs without a build folder */
#include "shim/cuda_names.inc"
#else
    "cuInit",
#endif
};

static bool header_declares(const char *name)
{
    size_t low = 0, high = sizeof header_names / sizeof *header_names;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, header_names[middle]);
        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

static void *libc_dlsym(void)
{
    static void *cached;
    void *found = __atomic_load_n(&cached, __ATOMIC_ACQUIRE);
    if (!found) {
        found = libc_symbols_find("dlsym");
        __atomic_store_n(&cached, found, __ATOMIC_RELEASE);
    }
    return found;
}

static void *no_symbol(void *handle, const char *symbol)
{
    return NULL;
}

static void *no_versioned_symbol(void *handle, const char *symbol, const char *version)
{
    return NULL;
}

dlsym_function *doors_next_dlsym(void)
{
    static dlsym_function *cached;
    dlsym_function *next = __atomic_load_n(&cached, __ATOMIC_ACQUIRE);
    if (!next) {
        /* A second preloaded tool may hook dlsym as well: take what follows us, which is libc's when there is none. */
        dlsym_function *libc = (dlsym_function *)libc_dlsym();
        next = libc ? (dlsym_function *)libc(RTLD_NEXT, "dlsym") : NULL;
        if (!next)
            next = libc ? libc : no_symbol;
        __atomic_store_n(&cached, next, __ATOMIC_RELEASE);
    }
    return next;
}

dlvsym_function *doors_next_dlvsym(void)
{
    static dlvsym_function *cached;
    dlvsym_function *next = __atomic_load_n(&cached, __ATOMIC_ACQUIRE);
    if (!next) {
        dlsym_function *libc = (dlsym_function *)libc_dlsym();
        next = libc ? (dlvsym_function *)libc(RTLD_NEXT, "dlvsym") : NULL;
        if (!next)
            next = (dlvsym_function *)libc_symbols_find("dlvsym");
        if (!next)
            next = no_versioned_symbol;
        __atomic_store_n(&cached, next, __ATOMIC_RELEASE);
    }
    return next;
}

/* Not a door, but what makes the addresses in stacks mean something else. The caller does not matter to it, so a plain
 * function does. */
typedef int dlclose_function(void *handle);
int opsdebug_dlclose(void *handle);
__asm__(".globl opsdebug_dlclose_225\n"
        ".set opsdebug_dlclose_225, opsdebug_dlclose\n"
        ".globl opsdebug_dlclose_234\n"
        ".set opsdebug_dlclose_234, opsdebug_dlclose\n"
        ".symver opsdebug_dlclose_225, dlclose@GLIBC_2.2.5, remove\n"
        ".symver opsdebug_dlclose_234, dlclose@@GLIBC_2.34, remove\n");

static int next_dlclose(void *handle)
{
    static dlclose_function *cached;
    dlclose_function *next = __atomic_load_n(&cached, __ATOMIC_ACQUIRE);
    if (!next) {
        dlsym_function *libc = (dlsym_function *)libc_dlsym();
        next = libc ? (dlclose_function *)libc(RTLD_NEXT, "dlclose") : NULL;
        if (!next)
            next = (dlclose_function *)libc_symbols_find("dlclose");
        if (!next)
            return -1;
        __atomic_store_n(&cached, next, __ATOMIC_RELEASE);
    }
    return next(handle);
}

__attribute__((used)) int opsdebug_dlclose(void *handle)
{
    int result = next_dlclose(handle);
    object_closed();
    return result;
}

void *doors_real_dlsym(void *handle, const char *symbol)
{
    shim_thread.inside++;
    void *found = doors_next_dlsym()(handle, symbol);
    shim_thread.inside--;
    return found;
}

static bool soname_starts(const struct link_map *map, const char *prefix)
{
    const char *strings = NULL;
    size_t soname = 0;
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr;
        else if (d->d_tag == DT_SONAME)
            soname = d->d_un.d_val;
    }
    if (strings && soname && strncmp(strings + soname, prefix, strlen(prefix)) == 0)
        return true;
    const char *slash = map->l_name ? strrchr(map->l_name, '/') : NULL;
    const char *base = slash ? slash + 1 : map->l_name;
    return base && strncmp(base, prefix, strlen(prefix)) == 0;
}

/* The object that `function` lies in, when its name begins so; else NULL. */
static struct link_map *map_of(void *function, const char *soname)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(function, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    return soname_starts(map, soname) ? map : NULL;
}

bool doors_belongs(void *function, const char *soname)
{
    return map_of(function, soname) != NULL;
}

/* The driver, or the cudart, that `function` lies in; NULL: neither. Another library may have a function of that name.
 */
static struct link_map *library_of(void *function, bool runtime)
{
    return map_of(function, runtime ? "libcudart" : "libcuda.so");
}

/* Its functions are in our tables from now on, whoever closes it. */
static void keep_loaded(const struct link_map *map)
{
    shim_thread.inside++;
    if (map && map->l_name && *map->l_name)
        (void)dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    shim_thread.inside--;
}

/* The wrappers know one driver and one cudart: the first that is met, which stays loaded. Another one's functions (two
 * copies of libcuda.so.1, cudarts of two versions) must not be exchanged for ours, which would lead to the first. */
static bool is_ours(struct link_map *map, bool runtime)
{
    static struct link_map *homes[2];
    struct link_map *none = NULL;
    if (!map)
        return false;
    if (__atomic_compare_exchange_n(&homes[runtime], &none, map, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        keep_loaded(map);
        return true;
    }
    return none == map;
}

void *doors_versioned_symbol(const char *library, const char *symbol)
{
    shim_thread.inside++;
    void *found = doors_next_dlvsym()(RTLD_NEXT, symbol, library);
    void *handle = found ? NULL : dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle) { /* opened by somebody for himself */
        found = ((dlsym_function *)libc_dlsym())(handle, symbol);
        next_dlclose(handle);
    }
    shim_thread.inside--;
    if (found)
        keep_loaded(library_of(found, true));
    return found;
}

void *doors_library_symbol(bool runtime, const char *symbol)
{
    static const char *const driver[] = {"libcuda.so.1", "libcuda.so"};
    static const char *const cudart[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
    const char *const *names = runtime ? cudart : driver;
    unsigned count = runtime ? 3 : 2;
    void *found = NULL;
    shim_thread.inside++;
    for (unsigned i = 0; i < count && !found; i++) {
        void *handle = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (!handle)
            continue;
        found = ((dlsym_function *)libc_dlsym())(handle, symbol);
        if (found)
            is_ours(library_of(found, runtime), runtime);
        next_dlclose(handle); /* only our reference; whoever loaded it keeps it */
    }
    shim_thread.inside--;
    return found;
}

/* The global scope finds our own export: is there a real one behind it? The scope of a handle is searched for a
 * neighbour of it that we do not export. RTLD_DEFAULT means the scope of who asks, which we are not. */
static bool real_behind(void *handle, enum hook hook)
{
    bool runtime = hook_kind(hook) == HOOK_RUNTIME;
    if (!hook_exists(hook))
        return false;
    if (handle == RTLD_DEFAULT)
        return true;
    void *neighbour = doors_real_dlsym(handle, runtime ? "cudaRuntimeGetVersion" : "cuDriverGetVersion");
    return neighbour && library_of(neighbour, runtime);
}

static struct answer answer(enum hook hook, void *handle, void *real)
{
    if (!real)
        return (struct answer){NULL, 1};
    if (real == hook_wrapper(hook) || shim_owns_address((uintptr_t)real)) /* that, or its entry of a version */
        return (struct answer){real_behind(handle, hook) ? real : NULL, 1};
    bool runtime = hook_kind(hook) == HOOK_RUNTIME;
    struct link_map *map = library_of(real, runtime);
    if (!is_ours(map, runtime)) {
        if (map)
            name_list_add(&second_names, runtime ? "libcudart" : "libcuda");
        return (struct answer){real, 1};
    }
    hook_learn(hook, real);
    return (struct answer){hook_wrapper(hook), 1};
}

/* RTLD_NEXT is what interposers ask with: the answer depends on who asks, and must not lead back to us. */
static enum hook hook_asked_for(void *handle, const char *symbol)
{
    if (!symbol || symbol[0] != 'c' || symbol[1] != 'u' || shim_thread.inside || handle == RTLD_NEXT)
        return HOOK_NONE;
    return hook_by_symbol(symbol);
}

/* Functions of cuBLAS and NCCL, whose rows are library.h's. */
static bool library_asked_for(void *handle, const char *symbol)
{
    return symbol && !shim_thread.inside && handle != RTLD_NEXT && library_knows(symbol);
}

/* A name of the driver's kind that no cuda.h known here has. Whether the driver has it is asked only of a handle: with
 * RTLD_DEFAULT and RTLD_NEXT the answer would depend on who asks. */
static bool may_be_unknown(void *handle, const char *symbol)
{
    return symbol && symbol[0] == 'c' && symbol[1] == 'u' && symbol[2] >= 'A' && symbol[2] <= 'Z' &&
           !shim_thread.inside && handle != RTLD_NEXT && handle != RTLD_DEFAULT && !header_declares(symbol);
}

struct answer doors_answer(void *handle, const char *symbol)
{
    enum hook hook = hook_asked_for(handle, symbol);
    if (hook != HOOK_NONE)
        return answer(hook, handle, doors_real_dlsym(handle, symbol));
    if (library_asked_for(handle, symbol))
        return (struct answer){library_substitute(handle, symbol, doors_real_dlsym(handle, symbol)), 1};
    if (!may_be_unknown(handle, symbol))
        return (struct answer){NULL, 0};
    void *real = doors_real_dlsym(handle, symbol);
    if (real && library_of(real, false))
        name_list_add(&unknown_names, symbol);
    return (struct answer){real, 1};
}

struct answer doors_answer_versioned(void *handle, const char *symbol, const char *version)
{
    enum hook hook = hook_asked_for(handle, symbol);
    bool library = hook == HOOK_NONE && library_asked_for(handle, symbol);
    if (hook == HOOK_NONE && !library)
        return (struct answer){NULL, 0};
    shim_thread.inside++;
    void *real = doors_next_dlvsym()(handle, symbol, version);
    shim_thread.inside--;
    if (library)
        return (struct answer){library_substitute(handle, symbol, real), 1};
    return answer(hook, handle, real);
}

typedef CUresult resolver(const char *name, void **function, int version, cuuint64_t flags);

/* The wrapper for what the real cuGetProcAddress returned, or that itself.
 *
 * A driver's answer need not be the address that dlsym gives. But when the resolver, asked with the version of our row,
 * says the same address as to the program, it is the very function that our wrapper is written for. When it differs,
 * the program asked for something newer than we know ("requires newer driver" if it were replaced): it gets the real
 * one, unwatched. */
static void *substitute(resolver *real, const char *name, void *function, int version, cuuint64_t flags)
{
    int since = 0;
    enum hook hook = hook_by_request(name, version, flags, &since);
    if (hook == HOOK_NONE) {
        if (!header_declares(name))
            name_list_add(&unknown_names, name);
        return function;
    }
    void *ours = function;
    if (hook_known(hook) != function) {
        shim_thread.inside++;
        CUresult result = real(name, &ours, since, flags);
        shim_thread.inside--;
        if (result != CUDA_SUCCESS || ours != function) {
            name_list_add(&newer_names, name);
            return function;
        }
    }
    if (function == hook_wrapper(hook))
        return function;
    hook_learn(hook, function);
    return hook_wrapper(hook);
}

static CUresult resolve_v1(const char *name, void **function, int version, cuuint64_t flags)
{
    return REAL(cuGetProcAddress, HOOK_cuGetProcAddress)(name, function, version, flags);
}

static CUresult resolve_v2(const char *name, void **function, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;
    return REAL(cuGetProcAddress_v2, HOOK_cuGetProcAddress_v2)(name, function, version, flags, &status);
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    if (shim_thread.inside)
        return PASS(cuGetProcAddress, HOOK_cuGetProcAddress)(symbol, pfn, cudaVersion, flags);
    shim_thread.inside++;
    CUresult result = REAL(cuGetProcAddress, HOOK_cuGetProcAddress)(symbol, pfn, cudaVersion, flags);
    shim_thread.inside--;
    if (result == CUDA_SUCCESS && symbol && pfn && *pfn)
        *pfn = substitute(resolve_v1, symbol, *pfn, cudaVersion, flags);
    return result;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus)
{
    if (shim_thread.inside)
        return PASS(cuGetProcAddress_v2, HOOK_cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);
    shim_thread.inside++;
    CUresult result =
        REAL(cuGetProcAddress_v2, HOOK_cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);
    shim_thread.inside--;
    if (result == CUDA_SUCCESS && symbol && pfn && *pfn)
        *pfn = substitute(resolve_v2, symbol, *pfn, cudaVersion, flags);
    return result;
}
