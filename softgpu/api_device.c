/* The device's description. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "softgpu/context.h"
#include "softgpu/device.h"
#include "softgpu/pages.h"

/* The clock of a kernel ticks once per instruction of its thread, and a thread by itself executes about so many:
 * programs make delays of their kernels' clock and this rate. */
enum { CLOCK_KHZ = 100000 };
enum { PCI_BUS = 1, PCI_DEVICE = 0, PCI_DOMAIN = 0, MEMORY_CLOCK_KHZ = 5001000, BUS_BITS = 256 };

static struct device_limits limits;

static void init_limits(void)
{
    /* From the highest capability downwards: the first row not above the device's applies. */
    static const struct {
        uint32_t capability, threads, blocks, shared_kib, optin_kib, reserved;
    } rows[] = {
        {120, 1536, 24, 100, 99, 1024}, {100, 2048, 32, 228, 227, 1024}, {90, 2048, 32, 228, 227, 1024},
        {89, 1536, 24, 100, 99, 1024},  {87, 1536, 16, 164, 163, 1024},  {86, 1536, 16, 100, 99, 1024},
        {80, 2048, 32, 164, 163, 1024}, {75, 1024, 16, 64, 64, 0},       {70, 2048, 32, 96, 96, 0},
        {0, 2048, 32, 64, 48, 0},
    };
    size_t i = 0;
    while (rows[i].capability > config_get()->capability)
        i++;
    limits = (struct device_limits){
        .threads_per_sm = rows[i].threads,
        .blocks_per_sm = rows[i].blocks,
        .shared_per_sm = rows[i].shared_kib << 10,
        .shared_per_block = 48 << 10,
        .shared_per_block_optin = rows[i].optin_kib << 10,
        .shared_reserved = rows[i].reserved,
        .registers_per_sm = 65536,
        .max_threads_per_block = 1024,
        .max_block = {1024, 1024, 64},
        .max_grid = {2147483647, 65535, 65535},
    };
}

const struct device_limits *device_limits(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_limits);
    return &limits;
}

static CUresult enter_device(CUdevice dev, const void *out)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    return device_exists(dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDriverGetVersion(int *driverVersion)
{
    if (!driverVersion)
        return CUDA_ERROR_INVALID_VALUE;
    *driverVersion = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult result = enter_device(0, count);
    if (result == CUDA_SUCCESS)
        *count = (int)config_get()->devices;
    return result;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult result = enter_device(ordinal, device);
    if (result == CUDA_SUCCESS)
        *device = ordinal;
    return result;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    CUresult result = enter_device(dev, name);
    if (result == CUDA_SUCCESS && len <= 0)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        snprintf(name, (size_t)len, "%s", config_get()->name);
    return result;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    CUresult result = enter_device(dev, bytes);
    if (result == CUDA_SUCCESS)
        *bytes = pages_total_count() * PAGE_BYTES;
    return result;
}

/* Of the interface before 64-bit sizes. */
CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
    size_t all;
    CUresult result = enter_device(dev, bytes);
    if (result == CUDA_SUCCESS)
        result = cuDeviceTotalMem_v2(&all, dev);
    if (result == CUDA_SUCCESS)
        *bytes = all < UINT32_MAX ? (unsigned)all : UINT32_MAX;
    return result;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    CUresult result = enter_device(dev, uuid);
    if (result == CUDA_SUCCESS)
        memcpy(uuid->bytes, "softgpu-device-0", sizeof uuid->bytes);
    if (result == CUDA_SUCCESS)
        uuid->bytes[sizeof uuid->bytes - 1] = (char)('0' + config_get()->number[dev]);
    return result;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    return cuDeviceGetUuid_v2(uuid, dev);
}

CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    CUresult result = enter_device(dev, pciBusId);
    if (result == CUDA_SUCCESS && len < 13)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        snprintf(pciBusId, (size_t)len, "%04X:%02X:%02X.0", PCI_DOMAIN, PCI_BUS + config_get()->number[dev],
                 PCI_DEVICE);
    return result;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    CUresult result = enter_device(0, dev);
    if (result != CUDA_SUCCESS)
        return result;
    unsigned domain = 0, bus, device;
    if (!pciBusId ||
        (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &device) != 3 && sscanf(pciBusId, "%x:%x", &bus, &device) != 2))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < config_get()->devices; i++)
        if (domain == PCI_DOMAIN && bus == PCI_BUS + (unsigned)config_get()->number[i] && device == PCI_DEVICE) {
            *dev = (CUdevice)i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
    CUresult result = enter_device(dev, major);
    if (result == CUDA_SUCCESS && !minor)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *major = (int)(config_get()->capability / 10);
        *minor = (int)(config_get()->capability % 10);
    }
    return result;
}

/* Limits of textures and surfaces, those of a device of capability 8. */
static int64_t texture_limit(CUdevice_attribute a)
{
    switch ((int)a) {
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:
        return 1 << 28;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH:
        return 131072;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT:
        return 65536;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT:
        return 65000;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH:
        return 2097120;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH:
        return 16384;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS:
        return 2048;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS:
        return 2046;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH:
        return 32768;
    default:
        return 0;
    }
}

/* Features that are absent read 0. */
static bool attribute(CUdevice_attribute a, CUdevice dev, int64_t *value)
{
    const struct device_limits *l = device_limits();
    const struct config *c = config_get();
    switch ((int)a) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = l->max_threads_per_block;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        *value = l->max_block[a - CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X];
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        *value = l->max_grid[a - CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X];
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = l->shared_per_block;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = l->shared_per_block_optin;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = l->shared_per_sm;
        break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        *value = l->shared_reserved;
        break;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
        *value = 65536;
        break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *value = DEVICE_WARP;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
        *value = 2147483647;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
        *value = l->registers_per_sm;
        break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *value = CLOCK_KHZ;
        break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
        *value = MEMORY_CLOCK_KHZ;
        break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
        *value = BUS_BITS;
        break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = 4 << 20;
        break;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
        *value = 512;
        break;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
        *value = 32;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = c->sm_count;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = c->capability / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = c->capability % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = l->threads_per_sm;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = l->blocks_per_sm;
        break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
        *value = 2;
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = PCI_BUS + c->number[dev];
        break;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
        *value = 2;
        break;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
        *value = 1;
        break;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        *value = -1;
        break;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
        *value = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        break;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
        *value = 1;
        break;
    default:
        if (a <= 0 || a >= CU_DEVICE_ATTRIBUTE_MAX)
            return false;
        *value = texture_limit(a);
    }
    return true;
}

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
    CUresult result = enter_device(dev, pi);
    int64_t value;
    if (result != CUDA_SUCCESS)
        return result;
    if (!attribute(attrib, dev, &value))
        return CUDA_ERROR_INVALID_VALUE;
    *pi = (int)value;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
    CUresult result = enter_device(dev, prop);
    if (result != CUDA_SUCCESS)
        return result;
    const struct device_limits *l = device_limits();
    *prop = (CUdevprop){
        .maxThreadsPerBlock = (int)l->max_threads_per_block,
        .sharedMemPerBlock = (int)l->shared_per_block,
        .totalConstantMemory = 65536,
        .SIMDWidth = DEVICE_WARP,
        .memPitch = 2147483647,
        .regsPerBlock = (int)l->registers_per_sm,
        .clockRate = CLOCK_KHZ,
        .textureAlign = 512,
    };
    for (int i = 0; i < 3; i++) {
        prop->maxThreadsDim[i] = (int)l->max_block[i];
        prop->maxGridSize[i] = (int)l->max_grid[i];
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
    CUresult result = enter_device(dev, pi);
    if (result == CUDA_SUCCESS)
        *pi = 0;
    return result;
}

/* ---- profiler control: there is nothing to switch --------------------------------------------------------------- */

CUresult cuProfilerStart(void)
{
    struct context *c;
    return enter_context(&c);
}

CUresult cuProfilerStop(void)
{
    struct context *c;
    return enter_context(&c);
}
