/* Device records, from what the driver says of its devices. */
#include <string.h>

#include "softgpu/cupti/tracer.h"

typedef CUresult (*get_attribute)(int *value, CUdevice_attribute attribute, CUdevice device);

static void *function(const char *name)
{
    return attach_function(name);
}

uint32_t device_attribute(CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    get_attribute get = NULL;
    *(void **)&get = function("cuDeviceGetAttribute");
    self.busy++;
    bool ok = get && get(&value, which, device) == CUDA_SUCCESS;
    self.busy--;
    return ok ? (uint32_t)value : 0;
}

static const char *name_of(CUdevice device)
{
    char name[256] = "";
    CUresult (*get)(char *, int, CUdevice) = NULL;
    *(void **)&get = function("cuDeviceGetName");
    return get && get(name, sizeof name, device) == CUDA_SUCCESS ? intern(name) : NULL;
}

static void write_one(CUdevice device)
{
    static const struct {
        size_t offset;
        CUdevice_attribute attribute;
    } fields[] = {
#define FIELD(field, name) {offsetof(CUpti_ActivityDevice5, field), CU_DEVICE_ATTRIBUTE_##name}
        FIELD(constantMemorySize, TOTAL_CONSTANT_MEMORY),
        FIELD(l2CacheSize, L2_CACHE_SIZE),
        FIELD(numThreadsPerWarp, WARP_SIZE),
        FIELD(coreClockRate, CLOCK_RATE),
        FIELD(numMemcpyEngines, ASYNC_ENGINE_COUNT),
        FIELD(numMultiprocessors, MULTIPROCESSOR_COUNT),
        FIELD(maxBlocksPerMultiprocessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
        FIELD(maxSharedMemoryPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        FIELD(maxRegistersPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
        FIELD(maxRegistersPerBlock, MAX_REGISTERS_PER_BLOCK),
        FIELD(maxSharedMemoryPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
        FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
        FIELD(maxBlockDimX, MAX_BLOCK_DIM_X),
        FIELD(maxBlockDimY, MAX_BLOCK_DIM_Y),
        FIELD(maxBlockDimZ, MAX_BLOCK_DIM_Z),
        FIELD(maxGridDimX, MAX_GRID_DIM_X),
        FIELD(maxGridDimY, MAX_GRID_DIM_Y),
        FIELD(maxGridDimZ, MAX_GRID_DIM_Z),
        FIELD(computeCapabilityMajor, COMPUTE_CAPABILITY_MAJOR),
        FIELD(computeCapabilityMinor, COMPUTE_CAPABILITY_MINOR),
        FIELD(eccEnabled, ECC_ENABLED),
#undef FIELD
    };
    CUresult (*total)(size_t *, CUdevice) = NULL;
    CUresult (*uuid)(CUuuid *, CUdevice) = NULL;
    size_t bytes = 0;
    CUpti_ActivityDevice5 record = {.kind = CUPTI_ACTIVITY_KIND_DEVICE,
                                    .flags = CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS,
                                    .id = (uint32_t)device,
                                    .isCudaVisible = 1,
                                    .numaId = invalidNumaId};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        uint32_t value = device_attribute(device, fields[i].attribute);
        memcpy((char *)&record + fields[i].offset, &value, sizeof value);
    }
    *(void **)&total = function("cuDeviceTotalMem_v2");
    *(void **)&uuid = function("cuDeviceGetUuid_v2");
    if (total && total(&bytes, device) == CUDA_SUCCESS)
        record.globalMemorySize = bytes;
    if (uuid)
        uuid(&record.uuid, device);
    /* kHz and bits to bytes per second over both edges of the clock */
    record.globalMemoryBandwidth = (uint64_t)device_attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                                   device_attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8 * 2 * 1000;
    if (record.numThreadsPerWarp)
        record.maxWarpsPerMultiprocessor =
            device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / record.numThreadsPerWarp;
    record.name = name_of(device);
    buffer_write(&record);
}

int device_count(void)
{
    int count = 0;
    CUresult (*get)(int *) = NULL;
    *(void **)&get = function("cuDeviceGetCount");
    self.busy++;
    bool ok = get && get(&count) == CUDA_SUCCESS;
    self.busy--;
    return ok ? count : 0;
}

void device_write_all(void)
{
    self.busy++;
    for (int i = 0, count = device_count(); i < count; i++)
        write_one(i);
    self.busy--;
}
