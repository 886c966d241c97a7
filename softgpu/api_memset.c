/* Fills. */
#include "softgpu/copy.h"

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, uint32_t element, size_t width, size_t height,
                     CUstream stream, bool wait)
{
    struct context *c;
    CUresult result = enter_context(&c);
    if (result != CUDA_SUCCESS)
        return result;
    struct fill_box box = {
        .to = to, .pitch = pitch, .width = width, .height = height, .element = element, .value = value};
    return fill_submit(c, stream, &box, wait);
}

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return fill(dstDevice, 0, uc, 1, N, 1, NULL, true);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr dstDevice, unsigned char uc, size_t N)
{
    return fill(dstDevice, 0, uc, 1, N, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return fill(dstDevice, 0, uc, 1, N, 1, hStream, false);
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream)
{
    return fill(dstDevice, 0, uc, 1, N, 1, per_thread(hStream), false);
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return fill(dstDevice, 0, us, 2, N, 1, NULL, true);
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr dstDevice, unsigned short us, size_t N)
{
    return fill(dstDevice, 0, us, 2, N, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return fill(dstDevice, 0, us, 2, N, 1, hStream, false);
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream)
{
    return fill(dstDevice, 0, us, 2, N, 1, per_thread(hStream), false);
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    return fill(dstDevice, 0, ui, 4, N, 1, NULL, true);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr dstDevice, unsigned int ui, size_t N)
{
    return fill(dstDevice, 0, ui, 4, N, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return fill(dstDevice, 0, ui, 4, N, 1, hStream, false);
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream)
{
    return fill(dstDevice, 0, ui, 4, N, 1, per_thread(hStream), false);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height)
{
    return fill(dstDevice, dstPitch, uc, 1, Width, Height, NULL, true);
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height)
{
    return fill(dstDevice, dstPitch, uc, 1, Width, Height, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                           CUstream hStream)
{
    return fill(dstDevice, dstPitch, uc, 1, Width, Height, hStream, false);
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height,
                                CUstream hStream)
{
    return fill(dstDevice, dstPitch, uc, 1, Width, Height, per_thread(hStream), false);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height)
{
    return fill(dstDevice, dstPitch, us, 2, Width, Height, NULL, true);
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height)
{
    return fill(dstDevice, dstPitch, us, 2, Width, Height, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                            CUstream hStream)
{
    return fill(dstDevice, dstPitch, us, 2, Width, Height, hStream, false);
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height,
                                 CUstream hStream)
{
    return fill(dstDevice, dstPitch, us, 2, Width, Height, per_thread(hStream), false);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height)
{
    return fill(dstDevice, dstPitch, ui, 4, Width, Height, NULL, true);
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height)
{
    return fill(dstDevice, dstPitch, ui, 4, Width, Height, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
                            CUstream hStream)
{
    return fill(dstDevice, dstPitch, ui, 4, Width, Height, hStream, false);
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height,
                                 CUstream hStream)
{
    return fill(dstDevice, dstPitch, ui, 4, Width, Height, per_thread(hStream), false);
}
