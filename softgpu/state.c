#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/context.h"
#include "softgpu/engine.h"
#include "softgpu/fault.h"
#include "softgpu/injection.h"
#include "softgpu/memory.h"
#include "softgpu/procaddr.h"

static atomic_bool initialised, exiting, stopping, forked;
static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static CUresult init_result;

/* The child of a fork has none of the worker threads and may have inherited locks that nobody will release. A device
 * that was in use cannot be used there, as on the real driver; one that was not is set up by the child's own cuInit. */
static void after_fork_in_child(void)
{
    atomic_store(&forked, true);
}

/* Runs before the exit handlers that the program registered earlier, such as those that unload its modules: from here
 * on the device still works, but no wait is endless. */
static void at_exit(void)
{
    atomic_store(&exiting, true);
}

/* A device that is not what the environment asked for would be worse than none. */
static bool environment_is_read(void)
{
    config_get();
    fault_read();
    if (!config_error())
        return true;
    fprintf(stderr, "softgpu: %s\n", config_error());
    log_unsupported_part("cuInit", config_error());
    init_result = CUDA_ERROR_INVALID_VALUE;
    return false;
}

static void init_device(void)
{
    if (!environment_is_read())
        return;
    if (!config_get()->devices) {
        init_result = CUDA_ERROR_NO_DEVICE;
        return;
    }
    bool ok = memory_init();
    for (unsigned i = 0; ok && i < config_get()->devices; i++)
        ok = context_primary(i) != NULL;
    if (!ok) {
        init_result = CUDA_ERROR_OUT_OF_MEMORY;
        return;
    }
    pthread_atfork(NULL, NULL, after_fork_in_child);
    atexit(at_exit);
    atomic_store(&initialised, true);
}

/* cuInit as the program calls it, for a watcher that came with the injected library and did not see this call begin. */
static CUresult init_again(unsigned int flags)
{
    enum procaddr_status status;
    proc_function function = procaddr_find("cuInit", CUDA_VERSION, 0, &status);
    CUresult (*init)(unsigned int);
    memcpy(&init, &function, sizeof init);
    return init(flags);
}

CUresult cuInit(unsigned int Flags)
{
    if (atomic_load(&stopping))
        return CUDA_ERROR_DEINITIALIZED;
    if (atomic_load(&forked))
        return CUDA_ERROR_NOT_INITIALIZED;
    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (injection_load())
        return init_again(Flags);
    pthread_once(&init_once, init_device);
    return init_result;
}

CUresult enter(void)
{
    if (atomic_load(&stopping))
        return CUDA_ERROR_DEINITIALIZED;
    return !atomic_load(&initialised) || atomic_load(&forked) ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

bool state_stopping(void)
{
    return atomic_load(&stopping);
}

bool state_exiting(void)
{
    return atomic_load(&exiting);
}

uint64_t state_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

CUresult enter_context(struct context **out)
{
    *out = NULL;
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    struct context *c = context_current();
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!atomic_load(&c->alive))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out = c;
    return context_error(c);
}

/* Runs after main() and the program's own exit handlers. */
__attribute__((destructor)) static void state_exit(void)
{
    if (!atomic_load(&initialised) || atomic_load(&forked))
        return;
    atomic_store(&stopping, true);
    engine_shutdown();
}
