/* Devices, their limits and their properties. */
#include <string.h>

#include "softgpu/rt.h"

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
    if (!runtimeVersion)
        return rt_fail(cudaErrorInvalidValue);
    *runtimeVersion = CUDART_VERSION;
    return cudaSuccess;
}

/* 0 without a driver, as documented. */
cudaError_t cudaDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return rt_fail(cudaErrorInvalidValue);
    *driverVersion = 0;
    rt_enter_driver();
    if (driver.cuDriverGetVersion)
        driver.cuDriverGetVersion(driverVersion);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetCount(count);
    else if (count)
        *count = 0;
    return rt_end(result);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device);
    return rt_end(result);
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetPCIBusId(pciBusId, len, device);
    return rt_end(result);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetByPCIBusId(device, pciBusId);
    return rt_end(result);
}

cudaError_t cudaDeviceSynchronize(void)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxSynchronize();
    return rt_end(result);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxSetLimit((CUlimit)limit, value);
    return rt_end(result);
}

cudaError_t cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxGetLimit(pValue, (CUlimit)limit);
    return rt_end(result);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxGetCacheConfig((CUfunc_cache *)pCacheConfig);
    return rt_end(result);
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxSetCacheConfig((CUfunc_cache)cacheConfig);
    return rt_end(result);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxGetStreamPriorityRange(leastPriority, greatestPriority);
    return rt_end(result);
}

cudaError_t cudaCtxResetPersistingL2Cache(void)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuCtxResetPersistingL2Cache();
    return rt_end(result);
}

cudaError_t cudaProfilerStart(void)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuProfilerStart();
    return rt_end(result);
}

cudaError_t cudaProfilerStop(void)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuProfilerStop();
    return rt_end(result);
}

/* Banks are of four bytes on every device since Maxwell. */
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    CUresult result = rt_enter();
    return rt_end(result == CUDA_SUCCESS && (unsigned)config > cudaSharedMemBankSizeEightByte ? CUDA_ERROR_INVALID_VALUE
                                                                                              : result);
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *pConfig)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS && !pConfig)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *pConfig = cudaSharedMemBankSizeFourByte;
    return rt_end(result);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    CUuuid uuid;
    int value;
    CUresult result = rt_check_device(device);
    if (result == CUDA_SUCCESS && !prop)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return rt_end(result);
    memset(prop, 0, sizeof *prop);
    result = driver.cuDeviceGetName(prop->name, sizeof prop->name, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceTotalMem_v2(&prop->totalGlobalMem, device);
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetUuid_v2(&uuid, device);
    if (result == CUDA_SUCCESS)
        memcpy(&prop->uuid, &uuid, sizeof prop->uuid);
#define PROPERTY(field, type, attribute)                                                                               \
    if (result == CUDA_SUCCESS && (result = driver.cuDeviceGetAttribute(&value, attribute, device)) == CUDA_SUCCESS)   \
        prop->field = (type)value;
#include "softgpu/rt_properties.def"
#undef PROPERTY
    return rt_end(result);
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

/* ---- the driver's functions by name ----------------------------------------------------------------------------- */

static cudaError_t entry_point(const char *symbol, void **funcPtr, unsigned int version, unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *driverStatus, bool per_thread)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS && (!symbol || !*symbol || !funcPtr))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return rt_end(result);
    if (per_thread && flags == cudaEnableDefault)
        flags = cudaEnablePerThreadDefaultStream;
    *funcPtr = NULL;
    result = driver.cuGetProcAddress_v2(symbol, funcPtr, (int)version, flags, &status);
    if (driverStatus)
        *driverStatus = (enum cudaDriverEntryPointQueryResult)status;
    else if (result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
        result = CUDA_ERROR_NOT_FOUND;
    return rt_end(result);
}

static cudaError_t entry_point_now(const char *symbol, void **funcPtr, unsigned long long flags,
                                   enum cudaDriverEntryPointQueryResult *driverStatus, bool per_thread)
{
    return entry_point(symbol, funcPtr, CUDART_VERSION, flags, driverStatus, per_thread);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr, unsigned int cudaVersion,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus, false);
}

cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **funcPtr, unsigned int cudaVersion,
                                                  unsigned long long flags,
                                                  enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus, true);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return entry_point_now(symbol, funcPtr, flags, driverStatus, false);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr, unsigned long long flags,
                                         enum cudaDriverEntryPointQueryResult *driverStatus)
{
    return entry_point_now(symbol, funcPtr, flags, driverStatus, true);
}
