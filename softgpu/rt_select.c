/* Which device a thread works on, and the primary contexts that come and go with that. */
#include <string.h>

#include "softgpu/rt.h"

/* Binds the primary context of the device, whatever was current. */
cudaError_t cudaSetDevice(int device)
{
    CUcontext primary;
    CUresult result = rt_check_device(device);
    if (result == CUDA_SUCCESS)
        result = rt_primary(device, &primary);
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxSetCurrent(primary);
    if (result == CUDA_SUCCESS)
        rt_choose(device);
    return rt_end(result);
}

cudaError_t cudaGetDevice(int *device)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = device ? rt_device(device) : CUDA_ERROR_INVALID_VALUE;
    return rt_end(result);
}

/* The flag is implicit in the runtime; the driver's primary contexts know only the others. */
static CUresult set_flags(int device, unsigned flags)
{
    return driver.cuDevicePrimaryCtxSetFlags_v2(device, flags & ~(unsigned)cudaDeviceMapHost);
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
    CUcontext primary;
    CUresult result = rt_check_device(device);
    if (result == CUDA_SUCCESS && (flags & ~(unsigned)cudaInitDeviceFlagsAreValid))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && flags)
        result = set_flags(device, deviceFlags);
    return rt_end(result == CUDA_SUCCESS ? rt_primary(device, &primary) : result);
}

/* Devices are never busy, so the first of the list will do for threads that choose none. */
cudaError_t cudaSetValidDevices(int *device_arr, int len)
{
    int count = 0;
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetCount(&count);
    if (result == CUDA_SUCCESS && (len < 0 || len > count || (len && !device_arr)))
        result = CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; result == CUDA_SUCCESS && i < len; i++)
        result = rt_check_device(device_arr[i]);
    if (result == CUDA_SUCCESS)
        rt_first_choice(len ? device_arr[0] : 0);
    return rt_end(result);
}

/* How well a device does what is asked for: first the capability, then the other numbers, of which each says how much
 * at least. A field that is 0 asks for nothing. */
static unsigned match(const struct cudaDeviceProp *has, const struct cudaDeviceProp *wanted)
{
    unsigned points = 0;
    if (has->major > wanted->major || (has->major == wanted->major && has->minor >= wanted->minor))
        points += 100;
    points += has->totalGlobalMem >= wanted->totalGlobalMem;
    points += has->multiProcessorCount >= wanted->multiProcessorCount;
    points += has->sharedMemPerBlock >= wanted->sharedMemPerBlock;
    points += has->regsPerBlock >= wanted->regsPerBlock;
    points += has->maxThreadsPerBlock >= wanted->maxThreadsPerBlock;
    points += has->l2CacheSize >= wanted->l2CacheSize;
    points += !wanted->name[0] || !strncmp(has->name, wanted->name, sizeof has->name);
    return points;
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
    struct cudaDeviceProp has;
    int count = 0, best = 0;
    unsigned most = 0;
    if (!device || !prop)
        return rt_fail(cudaErrorInvalidValue);
    cudaError_t error = cudaGetDeviceCount(&count);
    for (int i = 0; error == cudaSuccess && i < count; i++) {
        error = cudaGetDeviceProperties(&has, i);
        unsigned points = error == cudaSuccess ? match(&has, prop) : 0;
        if (points > most) {
            most = points;
            best = i;
        }
    }
    if (error == cudaSuccess)
        *device = best;
    return error;
}

/* The device is initialised with them when it was not; a context of the program keeps its own. */
cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    int device;
    CUcontext primary;
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = rt_device(&device);
    if (result == CUDA_SUCCESS)
        result = set_flags(device, flags);
    return rt_end(result == CUDA_SUCCESS ? rt_primary(device, &primary) : result);
}

/* Of the current context when the program made it, else of the device's primary one, initialised or not. */
cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    int device, active;
    CUcontext current = NULL;
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS && !flags)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxGetCurrent(&current);
    if (result == CUDA_SUCCESS && current && !rt_is_primary(current))
        return rt_end(driver.cuCtxGetFlags(flags));
    if (result == CUDA_SUCCESS)
        result = rt_device(&device);
    if (result == CUDA_SUCCESS)
        result = driver.cuDevicePrimaryCtxGetState(device, flags, &active);
    if (result == CUDA_SUCCESS)
        *flags |= cudaDeviceMapHost;
    return rt_end(result);
}

/* In a context of the program's own there is nothing to reset: the runtime keeps no state for it. */
cudaError_t cudaDeviceReset(void)
{
    int device;
    CUcontext current = NULL;
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxGetCurrent(&current);
    if (result == CUDA_SUCCESS)
        result = rt_device(&device);
    if (result != CUDA_SUCCESS || (current && !rt_is_primary(current)))
        return rt_end(result);
    result = driver.cuDevicePrimaryCtxReset_v2(device);
    if (result == CUDA_SUCCESS)
        rt_forget_primary(device);
    return rt_end(result);
}
