/* Events. A cudaEvent_t is a CUevent, with the same flags. */
#include "softgpu/rt.h"

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuEventCreate(event, CU_EVENT_DEFAULT);
    return rt_end(result);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuEventCreate(event, flags);
    return rt_end(result);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuEventDestroy_v2(event);
    return rt_end(result);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuEventQuery(event);
    return rt_end(result);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuEventSynchronize(event);
    return rt_end(result);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuEventElapsedTime_v2(ms, start, end);
    return rt_end(result);
}

static cudaError_t event_record(cudaEvent_t event, cudaStream_t stream, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuEventRecord_ptsz : driver.cuEventRecord)(event, stream);
    return rt_end(result);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return event_record(event, stream, false);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream)
{
    return event_record(event, stream, true);
}

static cudaError_t event_record_with_flags(cudaEvent_t event, cudaStream_t stream, unsigned int flags, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result =
            (per_thread ? driver.cuEventRecordWithFlags_ptsz : driver.cuEventRecordWithFlags)(event, stream, flags);
    return rt_end(result);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    return event_record_with_flags(event, stream, flags, false);
}

cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    return event_record_with_flags(event, stream, flags, true);
}
