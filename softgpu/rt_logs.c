/* The driver's log. */
#include "softgpu/rt.h"

_Static_assert((int)cudaLogLevelError == (int)CU_LOG_LEVEL_ERROR &&
                   (int)cudaLogLevelWarning == (int)CU_LOG_LEVEL_WARNING,
               "levels are the driver's, so that callbacks can be");

cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callbackFunc, void *userData,
                                     cudaLogsCallbackHandle *callback_out)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuLogsRegisterCallback((CUlogsCallback)callbackFunc, userData, callback_out);
    return rt_end(result);
}

cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle callback)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuLogsUnregisterCallback(callback);
    return rt_end(result);
}

cudaError_t cudaLogsCurrent(cudaLogIterator *iterator_out, unsigned int flags)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuLogsCurrent(iterator_out, flags);
    return rt_end(result);
}

cudaError_t cudaLogsDumpToFile(cudaLogIterator *iterator, const char *pathToFile, unsigned int flags)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuLogsDumpToFile(iterator, pathToFile, flags);
    return rt_end(result);
}

cudaError_t cudaLogsDumpToMemory(cudaLogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuLogsDumpToMemory(iterator, buffer, size, flags);
    return rt_end(result);
}
