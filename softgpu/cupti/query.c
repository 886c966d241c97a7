/* Questions and settings that need no record. */
#include <string.h>

#include "softgpu/cupti/tracer.h"

CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    if (!timestamp)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    *timestamp = call_now();
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc funcTimestamp)
{
    if (!funcTimestamp)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    call_set_clock(funcTimestamp);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
    if (!version)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **str)
{
    static const struct {
        CUptiResult result;
        const char *text;
    } rows[] = {
#define RESULT(name) {name, #name},
#include "softgpu/cupti_results.h"
    };
    if (!str)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].result == result) {
            *str = rows[i].text;
            return CUPTI_SUCCESS;
        }
    return failed(CUPTI_ERROR_INVALID_PARAMETER);
}

CUptiResult cuptiGetErrorMessage(CUptiResult result, const char **str)
{
    return cuptiGetResultString(result, str);
}

CUptiResult cuptiGetLastError(void)
{
    CUptiResult error = self.error;
    self.error = CUPTI_SUCCESS;
    return error;
}

CUptiResult cuptiGetContextId(CUcontext context, uint32_t *contextId)
{
    struct trace_context found;
    if (!contextId)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    if (!attach_driver())
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    if (!context || !attach_driver()->context(context, &found))
        return failed(CUPTI_ERROR_INVALID_CONTEXT);
    *contextId = found.id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *deviceId)
{
    struct trace_context found;
    if (!deviceId)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    if (!attach_driver())
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    if (!attach_driver()->context(context, &found))
        return failed(CUPTI_ERROR_INVALID_DEVICE);
    *deviceId = found.device;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream, uint32_t *streamId)
{
    struct trace_stream found;
    if (!streamId)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    if (!attach_driver())
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    if (!stream && perThreadStream)
        stream = CU_STREAM_PER_THREAD;
    if (!attach_driver()->stream(context, stream, &found))
        return failed(CUPTI_ERROR_INVALID_STREAM);
    *streamId = found.id;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *streamId)
{
    return cuptiGetStreamIdEx(context, stream, 0, streamId);
}

CUptiResult cuptiDeviceSupported(CUdevice dev, int *support)
{
    if (!support)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    if (!attach_driver())
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    *support = dev >= 0 && dev < device_count();
    return *support ? CUPTI_SUCCESS : failed(CUPTI_ERROR_INVALID_DEVICE);
}

/* What the toolkit of these headers supports: 7.5 and later. */
CUptiResult cuptiComputeCapabilitySupported(int major, int minor, int *support)
{
    if (!support)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    *support = major > 7 || (major == 7 && minor >= 5);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiDeviceVirtualizationMode(CUdevice dev, CUpti_DeviceVirtualizationMode *mode)
{
    if (!mode)
        return failed(CUPTI_ERROR_INVALID_PARAMETER);
    *mode = CUPTI_DEVICE_VIRTUALIZATION_MODE_NONE;
    return dev >= 0 && dev < device_count() ? CUPTI_SUCCESS : failed(CUPTI_ERROR_INVALID_DEVICE);
}

/* Leaves the process: what was recorded is given back first. */
CUptiResult cuptiFinalize(void)
{
    activity_reset();
    callback_reset();
    CUptiResult result = attach_update();
    buffer_reset();
    return result;
}

/* ---- settings of what is not there: accepted where the default is meant ----------------------------------------- */

#define SWITCH(name)                                                                                                   \
    CUptiResult name(uint8_t enable)                                                                                   \
    {                                                                                                                  \
        return enable ? (CUptiResult)cupti_unsupported(#name) : CUPTI_SUCCESS;                                         \
    }
SWITCH(cuptiActivityEnableLaunchAttributes)
SWITCH(cuptiActivityEnableDeviceGraph)
SWITCH(cuptiActivityEnableHWTrace)
SWITCH(cuptiActivityEnableAllocationSource)
SWITCH(cuptiActivityEnableCudaEventDeviceTimestamps)

/* Queries are never recorded, so that either setting is kept. */
CUptiResult cuptiActivityEnableAllSyncRecords(uint8_t enable)
{
    return CUPTI_SUCCESS;
}

int cupti_unsupported(const char *name)
{
    void (*note)(const char *) = NULL;
    *(void **)&note = attach_function("softgpu_operator_note");
    if (!note)
        return failed(CUPTI_ERROR_NOT_INITIALIZED);
    note(name);
    return failed(CUPTI_ERROR_NOT_SUPPORTED);
}
