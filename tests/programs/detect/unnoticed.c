/* unnoticed.c - everything that a program can ask the driver about its memory, and every free that
 * must fail, printed without addresses: the output under the tool must be the output without it.
 * `ipc` asks for handles, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#define MUST_EXIT 3
#include "../must.h"

static void describe(const char *name, CUdeviceptr p, size_t offset)
{
    CUdeviceptr start = 0;
    size_t bytes = 0;
    unsigned type = 99, managed = 99;
    int device = 99;
    CUcontext context = NULL, current;
    CUresult range = cuMemGetAddressRange_v2(&start, &bytes, p + offset);
    printf("%s + %zu: alignment %d, ", name, offset, p % 512 == 0);
    if (range == CUDA_SUCCESS)
        printf("range -%llu +%zu, ", (unsigned long long)(p - start), bytes);
    else
        printf("range error %d, ", (int)range);
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,      CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,   CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    start = 0;
    bytes = 0;
    void *where[] = {&type, &managed, &device, &context, &start, &bytes};
    CUresult result = cuPointerGetAttributes(6, which, where, p + offset);
    MUST(cuCtxGetCurrent(&current));
    printf("attributes %d: type %u managed %u device %d context %d range -%llu +%zu\n", (int)result,
           type, managed, device, context == current, (unsigned long long)(start ? p - start : 0),
           bytes);
}

static void wrong_frees(const char *name, CUdeviceptr p, CUresult (*release)(CUdeviceptr))
{
    int inside = release(p + 256), right = release(p), again = release(p);
    printf("%s: freed inside %d, right %d, again %d\n", name, inside, right, again);
}

static CUresult release_host(CUdeviceptr p)
{
    return cuMemFreeHost((void *)(uintptr_t)p);
}

static void device_memory(int ipc)
{
    static const size_t sizes[] = {1,       255,           4096,   5000, (2 << 20) - 512,
                                   2 << 20, (2 << 20) + 1, 7 << 20};
    CUdeviceptr p[sizeof sizes / sizeof *sizes];
    unsigned char out[64], in[64] = {1, 2, 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        MUST(cuMemAlloc_v2(&p[i], sizes[i]));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char name[64];
        CUipcMemHandle handle;
        snprintf(name, sizeof name, "device %zu", sizes[i]);
        describe(name, p[i], 0);
        describe(name, p[i], sizes[i] - 1);
        size_t bytes = sizes[i] < 64 ? sizes[i] : 64;
        MUST(cuMemsetD8_v2(p[i], 7, sizes[i]));
        MUST(cuMemcpyHtoD_v2(p[i] + sizes[i] - bytes, in, bytes));
        MUST(cuMemcpyDtoH_v2(out, p[i] + sizes[i] - bytes, bytes));
        if (memcmp(in, out, bytes) != 0)
            printf("%s: contents are lost\n", name);
        if (ipc)
            printf("%s: handle %d\n", name, (int)cuIpcGetMemHandle(&handle, p[i]));
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        wrong_frees("device", p[i], cuMemFree_v2);
    CUdeviceptr rows;
    size_t pitch;
    MUST(cuMemAllocPitch_v2(&rows, &pitch, 700, 9, 4));
    printf("pitch %zu\n", pitch);
    describe("rows", rows, 0);
    MUST(cuMemsetD2D8_v2(rows, pitch, 3, 700, 9));
    wrong_frees("rows", rows, cuMemFree_v2);
    MUST(cuMemAllocManaged(&p[0], 3000, CU_MEM_ATTACH_GLOBAL));
    describe("managed", p[0], 0);
    describe("managed", p[0], 2999);
    memset((void *)(uintptr_t)p[0], 1, 3000);
    wrong_frees("managed", p[0], cuMemFree_v2);
}

static void host_memory(void)
{
    void *h;
    CUdeviceptr d = 0;
    unsigned flags = 99;
    MUST(cuMemHostAlloc(&h, 5000, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    MUST(cuMemHostGetDevicePointer_v2(&d, h, 0));
    MUST(cuMemHostGetFlags(&flags, h));
    printf("host: page %d, device pointer +%lld, flags %u\n", (uintptr_t)h % 4096 == 0,
           (long long)(d - (CUdeviceptr)(uintptr_t)h), flags);
    describe("host", (CUdeviceptr)(uintptr_t)h, 0);
    describe("host", (CUdeviceptr)(uintptr_t)h, 4999);
    memset(h, 5, 5000);
    wrong_frees("host", (CUdeviceptr)(uintptr_t)h, release_host);
    MUST(cuMemAllocHost_v2(&h, 1));
    wrong_frees("host 1", (CUdeviceptr)(uintptr_t)h, release_host);
}

static void mapped_memory(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr range, second;
    size_t granule;
    MUST(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cuMemAddressReserve(&range, 2 * granule, 0, 0, 0));
    MUST(cuMemCreate(&handle, granule, &prop, 0));
    MUST(cuMemMap(range, granule, 0, handle, 0));
    MUST(cuMemSetAccess(range, granule, &access, 1));
    describe("mapped", range, 0);
    describe("mapped", range, granule - 1);
    printf("mapped: behind the range %d\n",
           (int)cuMemMap(range + 2 * granule, granule, 0, handle, 0));
    MUST(cuMemMap(range + granule, granule, 0, handle, 0));
    MUST(cuMemSetAccess(range + granule, granule, &access, 1));
    MUST(cuMemsetD8_v2(range, 1, 2 * granule));
    MUST(cuMemUnmap(range, 2 * granule));
    MUST(cuMemRelease(handle));
    printf("mapped: freed in part %d, ", (int)cuMemAddressFree(range, granule));
    printf("right %d, ", (int)cuMemAddressFree(range, 2 * granule));
    printf("again %d\n", (int)cuMemAddressFree(range, 2 * granule));
    MUST(cuMemAddressReserve(&second, granule, 2 * granule, 0, 0));
    printf("aligned %d\n", second % (2 * granule) == 0);
    MUST(cuMemAddressFree(second, granule));
}

int main(int argc, char **argv)
{
    CUcontext context;
    size_t before = 0, after, total = 0, same;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    for (int round = 0; round < 2;
         round++) { /* what a driver keeps for later it has after the first one */
        device_memory(argc > 1 && strcmp(argv[1], "ipc") == 0);
        host_memory();
        mapped_memory();
        MUST(cuMemGetInfo_v2(&after, &same));
        if (round)
            printf("memory: total the same %d, all free again %d\n", total == same,
                   before == after);
        before = after;
        total = same;
    }
    MUST(cuCtxDestroy_v2(context));
    return 0;
}
