/* driver.h - the driver functions that the shim calls on its own account.
 *
 * Filled at the first hooked call, straight from the loaded driver, past wrappers and interposers. Any member may be
 * NULL: old drivers lack some (say cuFuncGetParamInfo before 12.4), and then that part of the shim does without.
 */
#ifndef SHIM_DRIVER_H
#define SHIM_DRIVER_H

#include "shim/hooks.h"

#define DRIVER_FUNCTIONS(X)                                                                                            \
    X(cuGetErrorName)                                                                                                  \
    X(cuDriverGetVersion)                                                                                              \
    X(cuDeviceGetName)                                                                                                 \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuDeviceTotalMem_v2)                                                                                             \
    X(cuDevicePrimaryCtxGetState)                                                                                      \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxGetDevice)                                                                                                  \
    X(cuCtxGetId)                                                                                                      \
    X(cuCtxPushCurrent_v2)                                                                                             \
    X(cuCtxPopCurrent_v2)                                                                                              \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleGetFunction)                                                                                             \
    X(cuModuleGetGlobal_v2)                                                                                            \
    X(cuLibraryGetGlobal)                                                                                              \
    X(cuFuncGetAttribute)                                                                                              \
    X(cuFuncGetName)                                                                                                   \
    X(cuFuncGetParamInfo)                                                                                              \
    X(cuFuncGetModule)                                                                                                 \
    X(cuKernelGetFunction)                                                                                             \
    X(cuKernelGetName)                                                                                                 \
    X(cuKernelGetParamInfo)                                                                                            \
    X(cuKernelGetLibrary)                                                                                              \
    X(cuLaunchKernel)                                                                                                  \
    X(cuMemFree_v2)                                                                                                    \
    X(cuMemFreeHost)                                                                                                   \
    X(cuCtxSynchronize)                                                                                                \
    X(cuMemGetAllocationGranularity)                                                                                   \
    X(cuMemAddressReserve)                                                                                             \
    X(cuMemAddressFree)                                                                                                \
    X(cuMemCreate)                                                                                                     \
    X(cuMemRelease)                                                                                                    \
    X(cuMemMap)                                                                                                        \
    X(cuMemUnmap)                                                                                                      \
    X(cuMemSetAccess)                                                                                                  \
    X(cuMemAllocPitch_v2)                                                                                              \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceCanAccessPeer)                                                                                           \
    X(cuMemHostRegister_v2)                                                                                            \
    X(cuMemHostGetDevicePointer_v2)                                                                                    \
    X(cuMemGetAddressRange_v2)                                                                                         \
    X(cuMemGetAccess)                                                                                                  \
    X(cuMemPoolGetAccess)                                                                                              \
    X(cuPointerGetAttribute)                                                                                           \
    X(cuMemcpyDtoH_v2)                                                                                                 \
    X(cuMemcpyDtoHAsync_v2)                                                                                            \
    X(cuMemcpyHtoDAsync_v2)                                                                                            \
    X(cuMemsetD32Async)                                                                                                \
    X(cuStreamCreate)                                                                                                  \
    X(cuStreamSynchronize)                                                                                             \
    X(cuStreamQuery)                                                                                                   \
    X(cuStreamIsCapturing)                                                                                             \
    X(cuThreadExchangeStreamCaptureMode)                                                                               \
    X(cuEventCreate)                                                                                                   \
    X(cuEventDestroy_v2)                                                                                               \
    X(cuEventRecord)                                                                                                   \
    X(cuEventQuery)                                                                                                    \
    X(cuEventSynchronize)                                                                                              \
    X(cuLaunchKernelEx)                                                                                                \
    X(cuMemcpy3DAsync_v2)                                                                                              \
    X(cuMemsetD2D8Async)                                                                                               \
    X(cuMemsetD2D16Async)                                                                                              \
    X(cuMemsetD2D32Async)                                                                                              \
    X(cuMemsetD8Async)                                                                                                 \
    X(cuMemsetD16Async)                                                                                                \
    X(cuGraphGetNodes)                                                                                                 \
    X(cuGraphGetEdges)                                                                                                 \
    X(cuGraphGetEdges_v2)                                                                                              \
    X(cuGraphNodeGetType)                                                                                              \
    X(cuGraphNodeGetEnabled)                                                                                           \
    X(cuGraphKernelNodeGetParams_v2)                                                                                   \
    X(cuGraphKernelNodeGetAttribute)                                                                                   \
    X(cuGraphMemcpyNodeGetParams)                                                                                      \
    X(cuGraphMemsetNodeGetParams)                                                                                      \
    X(cuGraphChildGraphNodeGetGraph)                                                                                   \
    X(cuGraphMemAllocNodeGetParams)                                                                                    \
    X(cuGraphMemFreeNodeGetParams)                                                                                     \
    X(cuEventElapsedTime)

struct driver {
#define DRIVER_MEMBER(name) __typeof__(&name) name;
    DRIVER_FUNCTIONS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};
extern struct driver driver;

void driver_load(void);

#endif
