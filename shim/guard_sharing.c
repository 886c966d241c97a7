#include "shim/guard_sharing.h"

#include <link.h>
#include <string.h>

#include "shim/driver.h"
#include "shim/guard.h"
#include "shim/hooks.h"

static bool sharing;                    /* atomic: for good */
static unsigned long long adds_checked; /* atomic: how many objects had been loaded when we last looked */

void guard_stop_sharing(void)
{
    __atomic_store_n(&sharing, true, __ATOMIC_RELAXED);
}

/* Driver and cudart have the names because they are theirs, and we because we hook them. */
static bool of_cuda(const struct dl_phdr_info *info)
{
    const char *slash = strrchr(info->dlpi_name, '/'), *base = slash ? slash + 1 : info->dlpi_name;
    return strncmp(base, "libcuda.so", 10) == 0 || strncmp(base, "libcudart.so", 12) == 0 ||
           strncmp(base, "libopsdebug.so", 14) == 0;
}

/* A name that an object imports or exports stands in its table of dynamic strings. */
static bool names_export(const struct dl_phdr_info *info)
{
    static const char needle[] = "IpcGetMemHandle";
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
    return strings && bytes && memmem(strings, bytes, needle, sizeof needle - 1);
}

struct walk {
    unsigned long long adds;
    bool started, found, cudart;
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
    walk->found = walk->found || (!of_cuda(info) && names_export(info));
    return 0;
}

bool guard_sharing_possible(void)
{
    struct walk walk = {0};
    int devices = 0;
    if (__atomic_load_n(&sharing, __ATOMIC_RELAXED))
        return true;
    dl_iterate_phdr(step, &walk);
    if (walk.adds == __atomic_load_n(&adds_checked, __ATOMIC_RELAXED))
        return false;
    /* A static cudart is no object of its own, and looks up the same names that its program may or may not use. */
    bool looked_up = hook_known(HOOK_cuIpcGetMemHandle) && !walk.cudart;
    bool several = !driver.cuDeviceGetCount || driver.cuDeviceGetCount(&devices) != CUDA_SUCCESS || devices != 1;
    if (walk.found || looked_up || several) {
        guard_stop_sharing();
        return true;
    }
    __atomic_store_n(&adds_checked, walk.adds, __ATOMIC_RELAXED);
    return false;
}
