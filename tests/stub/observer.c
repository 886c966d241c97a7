/* observer.c - preloaded before the shim: writes down what every look-up through cuGetProcAddress gives to who asks, as
 * "name version flags library symbol", into the file OBSERVER_OUT. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int get_v2(const char *name, void **function, int version, unsigned long long flags, int *status);
static get_v2 *next_get;

static void *next_dlsym(void *handle, const char *name)
{
    static void *(*next)(void *, const char *);
    if (!next)
        next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return next(handle, name);
}

static void write_down(const char *name, int version, unsigned long long flags, void *function)
{
    static FILE *out;
    const char *path = getenv("OBSERVER_OUT");
    Dl_info info = {0};
    if (!out && path)
        out = fopen(path, "w");
    if (!out || !dladdr(function, &info) || !info.dli_fname)
        return;
    const char *slash = strrchr(info.dli_fname, '/');
    fprintf(out, "%s %d %llu %s %s\n", name, version, flags, slash ? slash + 1 : info.dli_fname,
            info.dli_sname ? info.dli_sname : "?");
    fflush(out);
}

static int observed_get(const char *name, void **function, int version, unsigned long long flags, int *status)
{
    int result = next_get(name, function, version, flags, status);
    if (result == 0 && function && *function) {
        write_down(name, version, flags, *function);
        /* Who asks for the resolver itself uses that one from then on. */
        if (*function == (void *)next_get)
            *function = (void *)observed_get;
    }
    return result;
}

EXPORT void *dlsym(void *handle, const char *name)
{
    void *found = next_dlsym(handle, name);
    if (found && name[0] == 'c' && strcmp(name, "cuGetProcAddress_v2") == 0) {
        next_get = (get_v2 *)found;
        return (void *)observed_get;
    }
    return found;
}
