/* Streams. */
#include <string.h>

#include "softgpu/capture.h"
#include "softgpu/memory.h"
#include "softgpu/pool.h"

enum { GREATEST_PRIORITY = -5, LEAST_PRIORITY = 0 };

/* The stream of a handle; what it returns with an error of the context still names the stream, for queries and ends. */
static CUresult enter_stream(CUstream handle, struct stream **out)
{
    struct context *c;
    *out = NULL;
    CUresult result = enter_context(&c);
    if (!c)
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_CONTEXT;
    CUresult found = context_stream(c, handle, out);
    if (result == CUDA_SUCCESS)
        result = found;
    return *out || result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    if (!phStream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    /* Out of range is clamped, as documented. */
    if (priority < GREATEST_PRIORITY)
        priority = GREATEST_PRIORITY;
    if (priority > LEAST_PRIORITY)
        priority = LEAST_PRIORITY;
    struct stream *s = engine_stream_new(c, flags, priority);
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!handle_add(s, HANDLE_STREAM)) {
        engine_stream_close(s);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *phStream = (CUstream)s;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
    return cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream hStream)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle_remove(hStream, HANDLE_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    struct stream *s = (struct stream *)hStream;
    CUresult error = context_error(s->context);
    capture_stream_gone(s);
    engine_stream_close(s);
    return error;
}

CUresult cuStreamDestroy(CUstream hStream)
{
    return cuStreamDestroy_v2(hStream);
}

CUresult cuStreamQuery(CUstream hStream)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result == CUDA_SUCCESS)
        result = capture_query(s);
    if (result != CUDA_SUCCESS)
        return result;
    if (engine_stream_busy(s))
        return CUDA_ERROR_NOT_READY;
    return context_error(s->context);
}

CUresult cuStreamQuery_ptsz(CUstream hStream)
{
    return cuStreamQuery(per_thread(hStream));
}

CUresult cuStreamSynchronize(CUstream hStream)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (!s)
        return result;
    result = capture_query(s);
    if (result != CUDA_SUCCESS)
        return result;
    /* The legacy stream is done when the blocking streams are: its next operation would wait for them. */
    CUresult waited = s->legacy ? engine_wait_blocking(s->context) : engine_wait_stream(s);
    if (waited != CUDA_SUCCESS)
        return waited;
    context_flush(s->context);
    pool_trim_idle();
    return context_error(s->context);
}

CUresult cuStreamSynchronize_ptsz(CUstream hStream)
{
    return cuStreamSynchronize(per_thread(hStream));
}

CUresult cuStreamGetPriority(CUstream hStream, int *priority)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!priority)
        return CUDA_ERROR_INVALID_VALUE;
    *priority = s->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority_ptsz(CUstream hStream, int *priority)
{
    return cuStreamGetPriority(per_thread(hStream), priority);
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int *flags)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = s->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags_ptsz(CUstream hStream, unsigned int *flags)
{
    return cuStreamGetFlags(per_thread(hStream), flags);
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long *streamId)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!streamId)
        return CUDA_ERROR_INVALID_VALUE;
    *streamId = s->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId_ptsz(CUstream hStream, unsigned long long *streamId)
{
    return cuStreamGetId(per_thread(hStream), streamId);
}

CUresult cuStreamGetDevice(CUstream hStream, CUdevice *device)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = (CUdevice)s->context->device;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice_ptsz(CUstream hStream, CUdevice *device)
{
    return cuStreamGetDevice(per_thread(hStream), device);
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext *pctx)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pctx)
        return CUDA_ERROR_INVALID_VALUE;
    *pctx = (CUcontext)s->context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_ptsz(CUstream hStream, CUcontext *pctx)
{
    return cuStreamGetCtx(per_thread(hStream), pctx);
}

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    CUresult result = cuStreamGetCtx(hStream, pCtx);
    if (result == CUDA_SUCCESS && pGreenCtx)
        *pGreenCtx = NULL;
    return result;
}

CUresult cuStreamGetCtx_v2_ptsz(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
    return cuStreamGetCtx_v2(per_thread(hStream), pCtx, pGreenCtx);
}

/* Managed memory is always visible to both sides, so that nothing changes; whole allocations only. */
CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
    struct stream *s;
    struct allocation a;
    CUresult result = enter_stream(hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    bool known = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
    if (!known || (flags == CU_MEM_ATTACH_SINGLE && s->legacy) || !memory_lookup(dptr, &a) ||
        a.kind != MEMORY_MANAGED || a.address != dptr || (length && length != a.bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return capture_refuse(s);
}

CUresult cuStreamAttachMemAsync_ptsz(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
    return cuStreamAttachMemAsync(per_thread(hStream), dptr, length, flags);
}

/* Where an attribute is kept, or NULL. They advise about caches and scheduling, and have no effect but the priority. */
static CUstreamAttrValue *attribute_place(struct stream *s, CUstreamAttrID attr)
{
    switch ((int)attr) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        return &s->attributes[0];
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        return &s->attributes[1];
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        return &s->attributes[2];
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return &s->attributes[3];
    default:
        return NULL;
    }
}

CUresult cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream)
{
    struct stream *to, *from;
    CUresult result = enter_stream(dstStream, &to);
    if (result == CUDA_SUCCESS)
        result = enter_stream(srcStream, &from);
    if (result != CUDA_SUCCESS)
        return result;
    if (to->context != from->context)
        return CUDA_ERROR_INVALID_VALUE;
    engine_lock();
    memcpy(to->attributes, from->attributes, sizeof to->attributes);
    to->priority = from->priority;
    engine_unlock();
    return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src)
{
    return cuStreamCopyAttributes(per_thread(dst), per_thread(src));
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *param)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    CUstreamAttrValue *place = attribute_place(s, attr);
    bool priority = attr == CU_LAUNCH_ATTRIBUTE_PRIORITY;
    if (!param || (!place && !priority) ||
        (priority && (param->priority < GREATEST_PRIORITY || param->priority > LEAST_PRIORITY)))
        return CUDA_ERROR_INVALID_VALUE;
    engine_lock();
    if (priority)
        s->priority = param->priority;
    else
        *place = *param;
    engine_unlock();
    return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value)
{
    return cuStreamSetAttribute(per_thread(hStream), attr, value);
}

CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
    struct stream *s;
    CUresult result = enter_stream(hStream, &s);
    if (result != CUDA_SUCCESS)
        return result;
    const CUstreamAttrValue *place = attribute_place(s, attr);
    if (!value || (!place && attr != CU_LAUNCH_ATTRIBUTE_PRIORITY))
        return CUDA_ERROR_INVALID_VALUE;
    memset(value, 0, sizeof *value);
    engine_lock();
    if (place)
        *value = *place;
    else
        value->priority = s->priority;
    engine_unlock();
    return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value_out)
{
    return cuStreamGetAttribute(per_thread(hStream), attr, value_out);
}
