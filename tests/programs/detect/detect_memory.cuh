/* detect_memory.cuh - one allocation of each kind, under one interface. */
#ifndef DETECT_MEMORY_CUH
#define DETECT_MEMORY_CUH

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error_ = (call);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            printf("%s: %s\n", #call, cudaGetErrorName(error_));                                                       \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define CHECK_DRIVER(call)                                                                                             \
    do {                                                                                                               \
        CUresult result_ = (call);                                                                                     \
        if (result_ != CUDA_SUCCESS) {                                                                                 \
            printf("%s: error %d\n", #call, (int)result_);                                                             \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum kind { PLAIN, PITCHED, MANAGED, ASYNC, POOL, MAPPED, HOST, KINDS };
static const char *const kind_names[KINDS] = {"plain", "pitched", "managed", "async", "pool", "mapped", "host"};

struct memory {
    unsigned char *device; /* as kernels take it */
    size_t bytes;          /* up to here it is the program's */
    void *host;            /* of host memory */
};

enum { LINEAR_BYTES = 4099, ROW_BYTES = 700, ROWS = 6 };

static cudaStream_t stream; /* 0 for kinds that know no streams */
static cudaMemPool_t pool;

static inline CUmemAllocationProp on_device()
{
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CHECK(cudaGetDevice(&prop.location.id));
    return prop;
}

static inline void prepare(enum kind kind)
{
    CHECK(cudaFree(0));
    if (kind != ASYNC && kind != POOL)
        return;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaGetDevice(&properties.location.id));
    if (kind == POOL)
        CHECK(cudaMemPoolCreate(&pool, &properties));
}

/* Physical memory of one granule, mapped at the start of a range of the same size. */
static inline void map_one(struct memory *m)
{
    CUmemAllocationProp prop = on_device();
    CUmemGenericAllocationHandle handle;
    CUmemAccessDesc access = {};
    CUdeviceptr at;
    CHECK_DRIVER(cuMemGetAllocationGranularity(&m->bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CHECK_DRIVER(cuMemAddressReserve(&at, m->bytes, 0, 0, 0));
    CHECK_DRIVER(cuMemCreate(&handle, m->bytes, &prop, 0));
    CHECK_DRIVER(cuMemMap(at, m->bytes, 0, handle, 0));
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK_DRIVER(cuMemSetAccess(at, m->bytes, &access, 1));
    CHECK_DRIVER(cuMemRelease(handle));
    m->device = (unsigned char *)at;
}

static inline struct memory allocate(enum kind kind)
{
    struct memory m = {NULL, LINEAR_BYTES, NULL};
    size_t pitch;
    switch (kind) {
    case PLAIN:
        CHECK(cudaMalloc((void **)&m.device, m.bytes));
        break;
    case PITCHED:
        CHECK(cudaMallocPitch((void **)&m.device, &pitch, ROW_BYTES, ROWS));
        m.bytes = pitch * ROWS;
        break;
    case MANAGED:
        CHECK(cudaMallocManaged((void **)&m.device, m.bytes));
        break;
    case ASYNC:
        CHECK(cudaMallocAsync((void **)&m.device, m.bytes, stream));
        break;
    case POOL:
        CHECK(cudaMallocFromPoolAsync((void **)&m.device, m.bytes, pool, stream));
        break;
    case MAPPED:
        map_one(&m);
        break;
    case HOST:
        CHECK(cudaHostAlloc(&m.host, m.bytes, cudaHostAllocMapped));
        CHECK(cudaHostGetDevicePointer((void **)&m.device, m.host, 0));
        break;
    default:
        exit(2);
    }
    return m;
}

/* The way of freeing that belongs to the kind; for MAPPED the range stays reserved. */
static inline int give_back(enum kind kind, void *address)
{
    switch (kind) {
    case ASYNC:
    case POOL:
        return cudaFreeAsync(address, stream);
    case HOST:
        return cudaFreeHost(address);
    case MAPPED: {
        CUmemAllocationProp prop = on_device();
        size_t granule;
        CHECK_DRIVER(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
        return cuMemUnmap((CUdeviceptr)address, granule);
    }
    default:
        return cudaFree(address);
    }
}

static inline void *address_to_free(const struct memory *m)
{
    return m->host ? m->host : m->device;
}

#endif
