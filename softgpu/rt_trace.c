/* The exported functions of the runtime: each may be watched (trace.h). The watcher's table is the driver's, where
 * that is softgpu's; looking for it loads the driver, which the first call does anyway. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "softgpu/rt.h"
#include "softgpu/trace.h"

static struct softgpu_trace nobody = {.version = TRACE_VERSION};
static _Atomic(struct softgpu_trace *) driver_trace;

static struct softgpu_trace *find_trace(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct softgpu_trace *found = library ? dlsym(library, "softgpu_trace") : NULL;
    if (!found || found->version != TRACE_VERSION)
        found = &nobody;
    atomic_store_explicit(&driver_trace, found, memory_order_release);
    return found;
}

static inline const struct trace_hooks *trace_hooks(void)
{
    struct softgpu_trace *t = atomic_load_explicit(&driver_trace, memory_order_acquire);
    if (__builtin_expect(!t, 0))
        t = find_trace();
    return atomic_load_explicit(&t->hooks, memory_order_acquire);
}

static const char *kernel_name(const void *function)
{
    CUkernel kernel;
    const char *name = NULL;
    if (rt_enter() != CUDA_SUCCESS || rt_kernel(function, &kernel) != CUDA_SUCCESS ||
        driver.cuKernelGetName(&name, kernel) != CUDA_SUCCESS)
        return NULL;
    return name;
}

#define TRACE_SIDE        TRACE_RUNTIME
#define TRACE_RESULT      cudaError_t
#define TRACE_KERNEL_NAME kernel_name
#include "softgpu/trace_calls.h"

#include "softgpu/runtime_calls.h"
