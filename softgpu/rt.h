/* rt.h - what the files of softgpu's libcudart share.
 *
 * The runtime knows the driver only through the table below. It is filled at first use as the vendor's runtime fills
 * its own: dlopen("libcuda.so.1"), dlsym("cuGetProcAddress_v2"), that function asked for "cuGetProcAddress", and the
 * answer used for all look-ups. So an interposed tool sees everything, and any driver will do.
 *
 * Every exported function starts with rt_enter() and ends with rt_end(), which keeps the thread's last error.
 */
#ifndef SOFTGPU_RT_H
#define SOFTGPU_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#include <cuda_profiler_api.h>
#pragma GCC visibility pop

struct rt_driver {
#define FUNCTION(name, base, version, per_thread) __typeof__(&name) name;
#include "softgpu/rt_driver.def"
#undef FUNCTION
};
extern struct rt_driver driver;

/* The driver is there and a context is current: the caller's, or the primary one of the thread's device, which is made
 * so. */
CUresult rt_enter(void);
/* The driver is there; no context is made. */
CUresult rt_enter_driver(void);

/* All of these after rt_enter_driver(). */
CUresult rt_check_device(int device);            /* CUDA_ERROR_INVALID_DEVICE when there is none */
CUresult rt_device(int *device);                 /* of the current context, else what the next rt_enter() takes */
void rt_choose(int device);                      /* by the calling thread */
void rt_first_choice(int device);                /* for threads that choose none */
CUresult rt_primary(int device, CUcontext *out); /* made when it is not there; stays the library's */
bool rt_is_primary(CUcontext context);           /* one that rt_primary() gave, also when it was reset since */
void rt_forget_primary(int device);              /* it was reset: the next call gets it anew */
/* rt_enter(), with the primary contexts of two devices. */
CUresult rt_enter_two(int to_device, int from_device, CUcontext *to, CUcontext *from);

/* The driver's form of a launch's configuration; attributes stay the caller's. */
CUresult rt_launch_config(const cudaLaunchConfig_t *config, CUlaunchConfig *out);

/* Notes the thread's last error (success and not-ready leave it) and returns it. Codes of both interfaces are the same.
 */
cudaError_t rt_end(CUresult result);
cudaError_t rt_fail(cudaError_t error);
CUresult rt_unsupported(const char *name); /* noted in SOFTGPU_LOG; CUDA_ERROR_NOT_SUPPORTED */

/* ---- rt_registry.c: what the compiler registered ---------------------------------------------------------------- */

/* The kernel behind the address of a host stub, or behind a cudaKernel_t given as such; loads its module at first use.
 * cudaErrorInvalidDeviceFunction (98) when unknown. */
CUresult rt_kernel(const void *function, CUkernel *out);
/* What rt_kernel() would make that kernel of: the address of its host stub, or the handle itself. */
const void *rt_host_function(CUkernel kernel, CUfunction function);
void rt_known_kernel(CUkernel kernel); /* may be passed as a function from now on */
/* Address and size of a __device__ or __constant__ variable in the current context. cudaErrorInvalidSymbol (13). */
CUresult rt_symbol(const void *symbol, CUdeviceptr *address, size_t *bytes);

/* ---- small helpers ---------------------------------------------------------------------------------------------- */

static inline CUdeviceptr rt_address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}
static inline void *rt_pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

#endif
