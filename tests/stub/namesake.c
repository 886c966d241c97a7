/* namesake.c - a library that happens to have functions named like a driver's, and asks for what comes behind itself.
 */
#include <dlfcn.h>
#include <stddef.h>

__attribute__((visibility("default"))) int cuMemAlloc_v2(void);
__attribute__((visibility("default"))) int namesake_next(void);

int cuMemAlloc_v2(void)
{
    return 4711;
}

/* 1 when RTLD_NEXT finds nothing, or at least not this function: it means "behind me", whoever forwards the question.
 */
int namesake_next(void)
{
    int (*volatile self)(void) = cuMemAlloc_v2;
    void *next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    return next != (void *)self && dlsym(RTLD_NEXT, "malloc") != NULL;
}
