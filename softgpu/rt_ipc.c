/* Memory, events and pools between processes. Handles are the driver's. */
#include <string.h>

#include "softgpu/rt.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "handed over as it is");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "handed over as it is");
_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData), "handed over as it is");

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuIpcGetMemHandle((CUipcMemHandle *)handle, rt_address(devPtr));
    return rt_end(result);
}

cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
    CUipcMemHandle h;
    CUresult result = rt_enter();
    memcpy(&h, &handle, sizeof h);
    if (result == CUDA_SUCCESS)
        result = driver.cuIpcOpenMemHandle_v2((CUdeviceptr *)devPtr, h, flags);
    return rt_end(result);
}

cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuIpcCloseMemHandle(rt_address(devPtr));
    return rt_end(result);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuIpcGetEventHandle((CUipcEventHandle *)handle, event);
    return rt_end(result);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle h;
    CUresult result = rt_enter();
    memcpy(&h, &handle, sizeof h);
    if (result == CUDA_SUCCESS)
        result = driver.cuIpcOpenEventHandle(event, h);
    return rt_end(result);
}

cudaError_t cudaMemPoolExportToShareableHandle(void *shareableHandle, cudaMemPool_t memPool,
                                               enum cudaMemAllocationHandleType handleType, unsigned int flags)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolExportToShareableHandle(shareableHandle, memPool,
                                                         (CUmemAllocationHandleType)handleType, flags);
    return rt_end(result);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *memPool, void *shareableHandle,
                                                 enum cudaMemAllocationHandleType handleType, unsigned int flags)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolImportFromShareableHandle(memPool, shareableHandle,
                                                           (CUmemAllocationHandleType)handleType, flags);
    return rt_end(result);
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *exportData, void *ptr)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolExportPointer((CUmemPoolPtrExportData *)exportData, rt_address(ptr));
    return rt_end(result);
}

cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t memPool, struct cudaMemPoolPtrExportData *exportData)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuMemPoolImportPointer((CUdeviceptr *)ptr, memPool, (CUmemPoolPtrExportData *)exportData);
    return rt_end(result);
}
