/* Between devices: who reaches whose memory, copies, atomics. */
#include "softgpu/rt.h"

cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceCanAccessPeer(canAccessPeer, device, peerDevice);
    return rt_end(result);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attr, srcDevice, dstDevice);
    return rt_end(result);
}

cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const enum cudaAtomicOperation *operations,
                                               unsigned int count, int srcDevice, int dstDevice)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetP2PAtomicCapabilities(capabilities, (const CUatomicOperation *)operations, count,
                                                         srcDevice, dstDevice);
    return rt_end(result);
}

cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const enum cudaAtomicOperation *operations,
                                                unsigned int count, int device)
{
    CUresult result = rt_enter_driver();
    if (result == CUDA_SUCCESS)
        result = driver.cuDeviceGetHostAtomicCapabilities(capabilities, (const CUatomicOperation *)operations, count,
                                                          device);
    return rt_end(result);
}

/* The peer's primary context, when it is another device than the current one. */
static CUresult enter_peer(int peer_device, CUcontext *peer)
{
    int device;
    CUresult result = rt_check_device(peer_device);
    if (result == CUDA_SUCCESS)
        result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = rt_device(&device);
    if (result == CUDA_SUCCESS && device == peer_device)
        result = CUDA_ERROR_INVALID_DEVICE;
    return result == CUDA_SUCCESS ? rt_primary(peer_device, peer) : result;
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
    CUcontext peer;
    CUresult result = enter_peer(peerDevice, &peer);
    return rt_end(result == CUDA_SUCCESS ? driver.cuCtxEnablePeerAccess(peer, flags) : result);
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice)
{
    CUcontext peer;
    CUresult result = enter_peer(peerDevice, &peer);
    return rt_end(result == CUDA_SUCCESS ? driver.cuCtxDisablePeerAccess(peer) : result);
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

CUresult rt_enter_two(int to_device, int from_device, CUcontext *to, CUcontext *from)
{
    CUresult result = rt_check_device(to_device);
    if (result == CUDA_SUCCESS)
        result = rt_check_device(from_device);
    if (result == CUDA_SUCCESS)
        result = rt_enter();
    if (result == CUDA_SUCCESS)
        result = rt_primary(to_device, to);
    return result == CUDA_SUCCESS ? rt_primary(from_device, from) : result;
}

cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src, int srcDevice, size_t count)
{
    CUcontext to, from;
    CUresult result = rt_enter_two(dstDevice, srcDevice, &to, &from);
    if (result == CUDA_SUCCESS && count)
        result = driver.cuMemcpyPeer(rt_address(dst), to, rt_address(src), from, count);
    return rt_end(result);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src, int srcDevice, size_t count,
                                cudaStream_t stream)
{
    CUcontext to, from;
    CUresult result = rt_enter_two(dstDevice, srcDevice, &to, &from);
    if (result == CUDA_SUCCESS && count)
        result = driver.cuMemcpyPeerAsync(rt_address(dst), to, rt_address(src), from, count, stream);
    return rt_end(result);
}
