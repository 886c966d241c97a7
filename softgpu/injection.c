/* CUDA_INJECTION64_PATH: a library that the driver loads before it is initialised, which is how a profiler on CUPTI
 * gets into a program that knows nothing of it. Its InitializeInjection() is called once; what it returns changes
 * nothing. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/injection.h"

bool injection_load(void)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    const char *path = secure_getenv("CUDA_INJECTION64_PATH");
    int (*initialise)(void) = NULL;
    if (atomic_flag_test_and_set(&done) || !path || !*path)
        return false;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "InitializeInjection") : NULL;
    memcpy(&initialise, &found, sizeof initialise);
    if (initialise)
        initialise();
    return initialise != NULL;
}
