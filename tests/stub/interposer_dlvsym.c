/* interposer_dlvsym.c - a second preloaded tool that hooks dlvsym alone, and has the real one only after its
 * constructor. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
typedef void *dlvsym_function(void *handle, const char *name, const char *version);
EXPORT void *dlvsym(void *handle, const char *name, const char *version);

static dlvsym_function *next;
static int count;

__attribute__((constructor)) static void begin(void)
{
    next = (dlvsym_function *)dlsym(RTLD_NEXT, "dlvsym");
}

void *dlvsym(void *handle, const char *name, const char *version)
{
    count++;
    return next(handle, name, version); /* NULL when somebody calls too early */
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("INTERPOSER_OUT");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "%d\n", count);
        fclose(f);
    }
}
