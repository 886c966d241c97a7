/* Streams. A cudaStream_t is a CUstream. */
#include "softgpu/rt.h"

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamCreateWithPriority(pStream, flags, priority);
    return rt_end(result);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamCreate(pStream, flags);
    return rt_end(result);
}

cudaError_t cudaStreamCreate(cudaStream_t *pStream)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamCreate(pStream, CU_STREAM_DEFAULT);
    return rt_end(result);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuStreamDestroy_v2(stream);
    return rt_end(result);
}

static cudaError_t stream_query(cudaStream_t stream, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamQuery_ptsz : driver.cuStreamQuery)(stream);
    return rt_end(result);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return stream_query(stream, false);
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream)
{
    return stream_query(stream, true);
}

static cudaError_t stream_synchronize(cudaStream_t stream, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamSynchronize_ptsz : driver.cuStreamSynchronize)(stream);
    return rt_end(result);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return stream_synchronize(stream, false);
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream)
{
    return stream_synchronize(stream, true);
}

static cudaError_t stream_wait_event(cudaStream_t stream, cudaEvent_t event, unsigned int flags, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamWaitEvent_ptsz : driver.cuStreamWaitEvent)(stream, event, flags);
    return rt_end(result);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    return stream_wait_event(stream, event, flags, false);
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    return stream_wait_event(stream, event, flags, true);
}

static cudaError_t stream_get_priority(cudaStream_t hStream, int *priority, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamGetPriority_ptsz : driver.cuStreamGetPriority)(hStream, priority);
    return rt_end(result);
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority)
{
    return stream_get_priority(hStream, priority, false);
}

cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t hStream, int *priority)
{
    return stream_get_priority(hStream, priority, true);
}

static cudaError_t stream_get_flags(cudaStream_t hStream, unsigned int *flags, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamGetFlags_ptsz : driver.cuStreamGetFlags)(hStream, flags);
    return rt_end(result);
}

cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags)
{
    return stream_get_flags(hStream, flags, false);
}

cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t hStream, unsigned int *flags)
{
    return stream_get_flags(hStream, flags, true);
}

static cudaError_t stream_get_id(cudaStream_t hStream, unsigned long long *streamId, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamGetId_ptsz : driver.cuStreamGetId)(hStream, streamId);
    return rt_end(result);
}

cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long *streamId)
{
    return stream_get_id(hStream, streamId, false);
}

cudaError_t cudaStreamGetId_ptsz(cudaStream_t hStream, unsigned long long *streamId)
{
    return stream_get_id(hStream, streamId, true);
}

static cudaError_t stream_get_device(cudaStream_t hStream, int *device, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamGetDevice_ptsz : driver.cuStreamGetDevice)(hStream, device);
    return rt_end(result);
}

cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device)
{
    return stream_get_device(hStream, device, false);
}

cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t hStream, int *device)
{
    return stream_get_device(hStream, device, true);
}

static cudaError_t stream_attach_mem_async(cudaStream_t stream, void *devPtr, size_t length, unsigned int flags,
                                           bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamAttachMemAsync_ptsz
                             : driver.cuStreamAttachMemAsync)(stream, rt_address(devPtr), length, flags);
    return rt_end(result);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *devPtr, size_t length, unsigned int flags)
{
    return stream_attach_mem_async(stream, devPtr, length, flags, false);
}

cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void *devPtr, size_t length, unsigned int flags)
{
    return stream_attach_mem_async(stream, devPtr, length, flags, true);
}

static cudaError_t stream_copy_attributes(cudaStream_t dst, cudaStream_t src, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamCopyAttributes_ptsz : driver.cuStreamCopyAttributes)(dst, src);
    return rt_end(result);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src)
{
    return stream_copy_attributes(dst, src, false);
}

cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t dst, cudaStream_t src)
{
    return stream_copy_attributes(dst, src, true);
}

/* The callback's type differs only in how it spells the status. */
static cudaError_t stream_add_callback(cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                                       unsigned int flags, bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamAddCallback_ptsz
                             : driver.cuStreamAddCallback)(stream, (CUstreamCallback)callback, userData, flags);
    return rt_end(result);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                                  unsigned int flags)
{
    return stream_add_callback(stream, callback, userData, flags, false);
}

cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback, void *userData,
                                       unsigned int flags)
{
    return stream_add_callback(stream, callback, userData, flags, true);
}

static cudaError_t stream_is_capturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus,
                                       bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamIsCapturing_ptsz
                             : driver.cuStreamIsCapturing)(stream, (CUstreamCaptureStatus *)pCaptureStatus);
    return rt_end(result);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
    return stream_is_capturing(stream, pCaptureStatus, false);
}

cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
    return stream_is_capturing(stream, pCaptureStatus, true);
}

static cudaError_t stream_get_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                           unsigned long long *id_out, cudaGraph_t *graph_out,
                                           const cudaGraphNode_t **dependencies_out,
                                           const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out,
                                           bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamGetCaptureInfo_v3_ptsz : driver.cuStreamGetCaptureInfo_v3)(
            stream, (CUstreamCaptureStatus *)captureStatus_out, (cuuint64_t *)id_out, graph_out, dependencies_out,
            (const CUgraphEdgeData **)edgeData_out, numDependencies_out);
    return rt_end(result);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                     unsigned long long *id_out, cudaGraph_t *graph_out,
                                     const cudaGraphNode_t **dependencies_out, const cudaGraphEdgeData **edgeData_out,
                                     size_t *numDependencies_out)
{
    return stream_get_capture_info(stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                                   numDependencies_out, false);
}

cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out,
                                          unsigned long long *id_out, cudaGraph_t *graph_out,
                                          const cudaGraphNode_t **dependencies_out,
                                          const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
    return stream_get_capture_info(stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out,
                                   numDependencies_out, true);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = driver.cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode);
    return rt_end(result);
}

_Static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUstreamAttrValue), "passed on as it is");

static cudaError_t get_attribute(cudaStream_t stream, cudaLaunchAttributeID attr, cudaLaunchAttributeValue *value,
                                 bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamGetAttribute_ptsz
                             : driver.cuStreamGetAttribute)(stream, (CUstreamAttrID)attr, (CUstreamAttrValue *)value);
    return rt_end(result);
}

cudaError_t cudaStreamGetAttribute(cudaStream_t hStream, cudaLaunchAttributeID attr,
                                   cudaLaunchAttributeValue *value_out)
{
    return get_attribute(hStream, attr, value_out, false);
}

cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t hStream, cudaLaunchAttributeID attr,
                                        cudaLaunchAttributeValue *value_out)
{
    return get_attribute(hStream, attr, value_out, true);
}

static cudaError_t set_attribute(cudaStream_t stream, cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *value,
                                 bool per_thread)
{
    CUresult result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = (per_thread ? driver.cuStreamSetAttribute_ptsz : driver.cuStreamSetAttribute)(
            stream, (CUstreamAttrID)attr, (const CUstreamAttrValue *)value);
    return rt_end(result);
}

cudaError_t cudaStreamSetAttribute(cudaStream_t hStream, cudaLaunchAttributeID attr,
                                   const cudaLaunchAttributeValue *value)
{
    return set_attribute(hStream, attr, value, false);
}

cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t hStream, cudaLaunchAttributeID attr,
                                        const cudaLaunchAttributeValue *value)
{
    return set_attribute(hStream, attr, value, true);
}
