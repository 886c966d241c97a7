#include <dlfcn.h>
#include <pthread.h>

#include "softgpu/cupti/tracer.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;
static struct softgpu_trace *driver;

/* The program's functions may be gone when the driver's and the runtime's own exit handlers run. */
__attribute__((destructor)) static void stop_at_exit(void)
{
    if (driver)
        atomic_store(&driver->hooks, NULL);
}

/* The child of a fork has no thread to return buffers, and may have inherited locks: it is without CUPTI. */
static void after_fork_in_child(void)
{
    stop_at_exit();
    driver = NULL;
}

static void find_driver(void)
{
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct softgpu_trace *found = library ? dlsym(library, "softgpu_trace") : NULL;
    if (found && found->version == TRACE_VERSION)
        driver = found;
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

struct softgpu_trace *attach_driver(void)
{
    pthread_once(&once, find_driver);
    return driver;
}

void *attach_function(const char *name)
{
    return attach_driver() ? dlsym(library, name) : NULL;
}

CUptiResult attach_update(void)
{
    if (!attach_driver())
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    bool wanted = callback_wanted() || activity_wanted();
    pthread_mutex_lock(&lock);
    bool watching = atomic_load(&driver->hooks) != NULL;
    if (wanted && !watching)
        effect_attach();
    atomic_store(&driver->hooks, wanted ? &call_hooks : NULL);
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}
