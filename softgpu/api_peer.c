/* What devices are to each other, and atomics over the links between them and the host. */
#include "softgpu/context.h"

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!canAccessPeer)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_exists(dev) || !device_exists(peerDev))
        return CUDA_ERROR_INVALID_DEVICE;
    *canAccessPeer = dev != peerDev;
    return CUDA_SUCCESS;
}

static CUresult enter_link(CUdevice from, CUdevice to, const void *out)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!device_exists(from) || !device_exists(to) || from == to)
        return CUDA_ERROR_INVALID_DEVICE;
    return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
    CUresult result = enter_link(srcDevice, dstDevice, value);
    if (result != CUDA_SUCCESS)
        return result;
    switch ((int)attrib) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: /* all links are alike */
    case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* ---- access between contexts: one of each device has its memory opened to another ------------------------------- */

static CUresult enter_peer(CUcontext peerContext, struct context **c, struct context **peer)
{
    CUresult result = enter_context(c);
    if (result != CUDA_SUCCESS)
        return result;
    return peerContext ? context_from(peerContext, peer) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    struct context *c, *peer, *none = NULL; /* who is there, when somebody is */
    CUresult result = enter_peer(peerContext, &c, &peer);
    if (result != CUDA_SUCCESS)
        return result;
    if (Flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (c == peer)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (c->device == peer->device)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (atomic_compare_exchange_strong(&c->peers[peer->device], &none, peer))
        return CUDA_SUCCESS;
    return none == peer ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_TOO_MANY_PEERS;
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
    struct context *c, *peer, *expected;
    CUresult result = enter_peer(peerContext, &c, &peer);
    if (result != CUDA_SUCCESS)
        return result;
    expected = peer;
    return atomic_compare_exchange_strong(&c->peers[peer->device], &expected, NULL)
               ? CUDA_SUCCESS
               : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

/* ---- atomics: memory of the host and of other devices is reached as the device's own ----------------------------- */

static CUresult capabilities_of(const CUatomicOperation *operations, unsigned count, unsigned *out)
{
    enum {
        BOTH_WIDTHS = CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64,
        ANY_SIGN = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED,
    };
    static const unsigned known[CU_ATOMIC_OPERATION_MAX] = {
        [CU_ATOMIC_OPERATION_INTEGER_ADD] = BOTH_WIDTHS | ANY_SIGN,
        [CU_ATOMIC_OPERATION_INTEGER_MIN] = BOTH_WIDTHS | ANY_SIGN,
        [CU_ATOMIC_OPERATION_INTEGER_MAX] = BOTH_WIDTHS | ANY_SIGN,
        [CU_ATOMIC_OPERATION_INTEGER_INCREMENT] =
            CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32,
        [CU_ATOMIC_OPERATION_INTEGER_DECREMENT] =
            CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32,
        [CU_ATOMIC_OPERATION_AND] = BOTH_WIDTHS | ANY_SIGN,
        [CU_ATOMIC_OPERATION_OR] = BOTH_WIDTHS | ANY_SIGN,
        [CU_ATOMIC_OPERATION_XOR] = BOTH_WIDTHS | ANY_SIGN,
        [CU_ATOMIC_OPERATION_EXCHANGE] = ANY_SIGN | CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64,
        [CU_ATOMIC_OPERATION_CAS] = ANY_SIGN | CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64,
        [CU_ATOMIC_OPERATION_FLOAT_ADD] = BOTH_WIDTHS | CU_ATOMIC_CAPABILITY_SIGNED,
        /* Minimum and maximum of floats are no PTX operations on single numbers in memory. */
    };
    if (!operations || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)operations[i] >= CU_ATOMIC_OPERATION_MAX)
            return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        out[i] = known[operations[i]];
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
                                           unsigned int count, CUdevice dev)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!device_exists(dev))
        return CUDA_ERROR_INVALID_DEVICE;
    return capabilities ? capabilities_of(operations, count, capabilities) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetP2PAtomicCapabilities(unsigned int *capabilities, const CUatomicOperation *operations,
                                          unsigned int count, CUdevice srcDevice, CUdevice dstDevice)
{
    CUresult result = enter_link(srcDevice, dstDevice, capabilities);
    return result == CUDA_SUCCESS ? capabilities_of(operations, count, capabilities) : result;
}
