/* The exports as bare symbols: cuda.h is not included here, so that one table can hold them all. */
#include "softgpu/procaddr.h"

#include <string.h>

#define PROC(base, version, per_thread, name) extern int name(void);
#include "softgpu/proc_table.h"
#undef PROC

struct proc {
    const char *base;
    int version, per_thread;
    proc_function function;
};
static const struct proc procs[] = {
#define PROC(base, version, per_thread, name) {base, version, per_thread, name},
#include "softgpu/proc_table.h"
};
enum { COUNT = sizeof procs / sizeof *procs };

static size_t first_with(const char *base)
{
    size_t low = 0, high = COUNT;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (strcmp(procs[mid].base, base) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

proc_function procaddr_find(const char *base, int version, int per_thread, enum procaddr_status *status)
{
    const struct proc *best = NULL;
    *status = PROCADDR_UNKNOWN;
    for (size_t i = first_with(base); i < COUNT && !strcmp(procs[i].base, base); i++) {
        const struct proc *p = &procs[i];
        if (!best)
            *status = PROCADDR_TOO_NEW;
        if (p->version > version || p->per_thread > per_thread)
            continue;
        if (!best || p->per_thread > best->per_thread ||
            (p->per_thread == best->per_thread && p->version > best->version))
            best = p;
        *status = PROCADDR_FOUND;
    }
    return best ? best->function : NULL;
}
