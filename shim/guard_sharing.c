#include "shim/guard_sharing.h"

#include <link.h>
#include <string.h>

#include "shim/driver.h"
#include "shim/guard.h"
#include "shim/hooks.h"

enum export { EXPORT_IPC, EXPORT_POOL, EXPORTS };
static bool possible[EXPORTS];          /* atomic: for good */
static bool several_devices;            /* atomic: likewise */
static bool has_cudart;                 /* atomic: a shared one is loaded */
static unsigned long long adds_checked; /* atomic: how many objects had been loaded when we last looked */

void guard_stop_sharing(void)
{
    __atomic_store_n(&possible[EXPORT_IPC], true, __ATOMIC_RELAXED);
}

void guard_pool_exported(void)
{
    __atomic_store_n(&possible[EXPORT_POOL], true, __ATOMIC_RELAXED);
}

/* Driver and cudart have the names because they are theirs, and we because we hook them. */
static bool of_cuda(const struct dl_phdr_info *info)
{
    const char *slash = strrchr(info->dlpi_name, '/'), *base = slash ? slash + 1 : info->dlpi_name;
    return strncmp(base, "libcuda.so", 10) == 0 || strncmp(base, "libcudart.so", 12) == 0 ||
           strncmp(base, "libopsdebug.so", 14) == 0;
}

/* A name that an object imports or exports stands in its table of dynamic strings. */
static bool names(const struct dl_phdr_info *info, const char *function)
{
    const ElfW(Dyn) *d = NULL;
    const char *strings = NULL;
    size_t bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB) /* the loader has made it an address, in all objects but the vDSO */
            strings = (const char *)(d->d_un.d_ptr < info->dlpi_addr ? d->d_un.d_ptr + info->dlpi_addr : d->d_un.d_ptr);
        else if (d->d_tag == DT_STRSZ)
            bytes = d->d_un.d_val;
    }
    return strings && bytes && memmem(strings, bytes, function, strlen(function));
}

struct walk {
    unsigned long long adds;
    bool started, found[EXPORTS], cudart;
};

static int step(struct dl_phdr_info *info, size_t size, void *data)
{
    struct walk *walk = data;
    if (!walk->started) {
        walk->started = true;
        walk->adds = info->dlpi_adds;
        if (walk->adds == __atomic_load_n(&adds_checked, __ATOMIC_RELAXED))
            return 1;
    }
    walk->cudart = walk->cudart || strstr(info->dlpi_name, "libcudart.so");
    if (of_cuda(info))
        return 0;
    walk->found[EXPORT_IPC] =
        walk->found[EXPORT_IPC] || names(info, "IpcGetMemHandle") || names(info, "cuMemGetHandleForAddressRange");
    walk->found[EXPORT_POOL] = walk->found[EXPORT_POOL] || names(info, "MemPoolExportPointer");
    return 0;
}

/* Brings what is known up to date when objects were loaded since. */
static void look(void)
{
    struct walk walk = {0};
    int devices = 0;
    dl_iterate_phdr(step, &walk);
    if (walk.adds == __atomic_load_n(&adds_checked, __ATOMIC_RELAXED))
        return;
    for (int i = 0; i < EXPORTS; i++)
        if (walk.found[i])
            __atomic_store_n(&possible[i], true, __ATOMIC_RELAXED);
    __atomic_store_n(&has_cudart, walk.cudart, __ATOMIC_RELAXED);
    if (!driver.cuDeviceGetCount || driver.cuDeviceGetCount(&devices) != CUDA_SUCCESS || devices != 1)
        __atomic_store_n(&several_devices, true, __ATOMIC_RELAXED);
    __atomic_store_n(&adds_checked, walk.adds, __ATOMIC_RELAXED);
}

/* A shared cudart looks up all but the last of them, whoever may use them. So does a static one, but that is no object
 * of its own, and nobody can tell who asked. */
static bool was_asked_for(enum export what)
{
    static const enum hook functions[EXPORTS] = {HOOK_cuIpcGetMemHandle, HOOK_cuMemPoolExportPointer};
    return (hook_known(functions[what]) && !__atomic_load_n(&has_cudart, __ATOMIC_RELAXED)) ||
           (what == EXPORT_IPC && hook_known(HOOK_cuMemGetHandleForAddressRange));
}

static bool export_possible(enum export what)
{
    look();
    return __atomic_load_n(&possible[what], __ATOMIC_RELAXED) || was_asked_for(what);
}

bool guard_sharing_possible(void)
{
    return export_possible(EXPORT_IPC) || __atomic_load_n(&several_devices, __ATOMIC_RELAXED);
}

bool guard_export_possible(enum cap_alloc_kind kind)
{
    bool pool = kind == CAP_ALLOC_ASYNC || kind == CAP_ALLOC_POOL;
    if (!pool && kind != CAP_ALLOC_DEVICE) /* nothing exports managed or the host's memory */
        return false;
    return export_possible(pool ? EXPORT_POOL : EXPORT_IPC);
}
