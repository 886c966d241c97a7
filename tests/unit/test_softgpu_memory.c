/* Device and host memory of softgpu: allocation, reuse, copies, fills, pools, virtual memory. */
#include "tests/unit/softgpu_test.h"

enum { MIB = 1 << 20 };

/* ---- allocation ------------------------------------------------------------------------------------------------- */

static void test_alloc_reuses_first_fit(void **state)
{
    CUdeviceptr a, b, c;
    ok(cuMemAlloc_v2(&a, 1000));
    ok(cuMemAlloc_v2(&b, 1000));
    assert_int_equal(a % 512, 0);
    assert_int_equal(b - a, 1024); /* neighbours, so that a small overrun hits one */
    ok(cuMemFree_v2(a));
    ok(cuMemAlloc_v2(&c, 1000));
    assert_int_equal(c, a);
    ok(cuMemFree_v2(b));
    ok(cuMemFree_v2(c));
}

static void test_alloc_large_has_own_pages(void **state)
{
    CUdeviceptr a, b;
    ok(cuMemAlloc_v2(&a, 3 * MIB));
    ok(cuMemAlloc_v2(&b, 3 * MIB));
    assert_int_equal(a % (2 * MIB), 0);
    assert_int_equal(b % (2 * MIB), 0);
    ok(cuMemFree_v2(a));
    ok(cuMemFree_v2(b));
}

static void test_alloc_refuses(void **state)
{
    CUdeviceptr a;
    size_t free_bytes, total;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&a, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(NULL, 4));
    ok(cuMemGetInfo_v2(&free_bytes, &total));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&a, total + 1));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&a, SIZE_MAX));
}

static void test_alloc_all_of_it_and_again(void **state)
{
    CUdeviceptr a, b;
    size_t free_bytes, total;
    ok(cuMemGetInfo_v2(&free_bytes, &total));
    for (int i = 0; i < 3; i++) {
        ok(cuMemAlloc_v2(&a, free_bytes));
        fails(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&b, 2 * MIB));
        ok(cuMemFree_v2(a));
    }
}

static void test_free_refuses(void **state)
{
    CUdeviceptr a;
    ok(cuMemAlloc_v2(&a, 64));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a + 4));
    ok(cuMemFree_v2(a));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2((CUdeviceptr)(uintptr_t)state));
    ok(cuMemFree_v2(0));
}

static void test_address_range(void **state)
{
    CUdeviceptr a, base;
    size_t bytes;
    ok(cuMemAlloc_v2(&a, 1000));
    ok(cuMemGetAddressRange_v2(&base, &bytes, a + 999));
    assert_int_equal(base, a);
    assert_int_equal(bytes, 1000);
    fails(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&base, &bytes, a + 1000));
    ok(cuMemFree_v2(a));
}

static void test_mem_info_counts_pages(void **state)
{
    CUdeviceptr a;
    size_t before, after, total;
    ok(cuMemGetInfo_v2(&before, &total));
    ok(cuMemAlloc_v2(&a, 5 * MIB));
    ok(cuMemGetInfo_v2(&after, &total));
    assert_int_equal(before - after, 6 * MIB);
    ok(cuMemFree_v2(a));
    ok(cuMemGetInfo_v2(&after, &total));
    assert_int_equal(before, after);
}

static void test_fragmented_memory_is_usable(void **state)
{
    enum { COUNT = 16 };
    CUdeviceptr parts[COUNT], rest, big;
    size_t free_bytes, total;
    ok(cuMemGetInfo_v2(&free_bytes, &total));
    ok(cuMemAlloc_v2(&rest, free_bytes - (size_t)COUNT * 2 * MIB));
    for (int i = 0; i < COUNT; i++)
        ok(cuMemAlloc_v2(&parts[i], 2 * MIB));
    for (int i = 0; i < COUNT; i += 2)
        ok(cuMemFree_v2(parts[i]));
    /* No two free pages are neighbours, yet half of them together make one allocation. */
    ok(cuMemAlloc_v2(&big, (size_t)COUNT / 2 * 2 * MIB));
    static unsigned char out[COUNT / 2 * 2 * MIB], in[sizeof out];
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 7 + i / MIB);
    ok(cuMemcpyHtoD_v2(big, in, sizeof in));
    ok(cuMemcpyDtoH_v2(out, big, sizeof out));
    assert_memory_equal(in, out, sizeof in);
    ok(cuMemFree_v2(big));
    for (int i = 1; i < COUNT; i += 2)
        ok(cuMemFree_v2(parts[i]));
    ok(cuMemFree_v2(rest));
}

/* ---- copies and fills ------------------------------------------------------------------------------------------- */

static void test_copy_round_trip(void **state)
{
    CUdeviceptr a, b;
    char in[100], out[100] = {0};
    for (int i = 0; i < 100; i++)
        in[i] = (char)i;
    ok(cuMemAlloc_v2(&a, 100));
    ok(cuMemAlloc_v2(&b, 100));
    ok(cuMemcpyHtoD_v2(a, in, 100));
    ok(cuMemcpyDtoD_v2(b, a, 100));
    ok(cuMemcpyDtoH_v2(out, b, 100));
    assert_memory_equal(in, out, 100);
    memset(out, 0, sizeof out);
    ok(cuMemcpy((CUdeviceptr)(uintptr_t)out, b, 100)); /* the directions are seen from the addresses */
    assert_memory_equal(in, out, 100);
    ok(cuMemFree_v2(a));
    ok(cuMemFree_v2(b));
}

static void test_copy_checks_its_range(void **state)
{
    CUdeviceptr a;
    char buffer[200] = {0};
    ok(cuMemAlloc_v2(&a, 100));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, buffer, 101));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(buffer, a + 50, 51));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)buffer, buffer, 4));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(0, buffer, 4));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, NULL, 4));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(a, 0, 101));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(a + 1, 0, 1));
    ok(cuMemcpyHtoD_v2(a, buffer, 0));
    ok(cuMemFree_v2(a));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(a, buffer, 4));
}

static void test_fill_widths(void **state)
{
    CUdeviceptr a;
    uint32_t out[8];
    ok(cuMemAlloc_v2(&a, sizeof out));
    ok(cuMemsetD32_v2(a, 0x01020304, 8));
    ok(cuMemsetD16_v2(a + 4, 0xabcd, 2));
    ok(cuMemsetD8_v2(a + 8, 0x55, 3));
    ok(cuMemcpyDtoH_v2(out, a, sizeof out));
    assert_int_equal(out[0], 0x01020304);
    assert_int_equal(out[1], 0xabcdabcd);
    assert_int_equal(out[2], 0x01555555);
    assert_int_equal(out[7], 0x01020304);
    ok(cuMemFree_v2(a));
}

static void test_copy_2d(void **state)
{
    CUdeviceptr a;
    size_t pitch;
    char in[4][10], out[4][6];
    for (int i = 0; i < 40; i++)
        in[i / 10][i % 10] = (char)i;
    ok(cuMemAllocPitch_v2(&a, &pitch, 10, 4, 4));
    assert_int_equal(pitch, 512);
    CUDA_MEMCPY2D to = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = in,
                        .srcPitch = 10,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = a,
                        .dstPitch = pitch,
                        .WidthInBytes = 10,
                        .Height = 4};
    ok(cuMemcpy2D_v2(&to));
    ok(cuMemsetD2D8_v2(a + 2, pitch, 99, 1, 4)); /* the third column */
    CUDA_MEMCPY2D from = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = a,
                          .srcPitch = pitch,
                          .srcXInBytes = 1,
                          .srcY = 1,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = out,
                          .dstPitch = 6,
                          .WidthInBytes = 6,
                          .Height = 3};
    ok(cuMemcpy2DUnaligned_v2(&from));
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 6; x++)
            assert_int_equal(out[y][x], x == 1 ? 99 : in[y + 1][x + 1]);
    from.Height = 4;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&from)); /* a row too far */
    ok(cuMemFree_v2(a));
}

static void test_copy_3d(void **state)
{
    CUdeviceptr a;
    char in[2][3][4], out[2][3][4] = {0};
    for (int i = 0; i < 24; i++)
        ((char *)in)[i] = (char)(i + 1);
    ok(cuMemAlloc_v2(&a, 2 * 5 * 16));
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = in,
                       .srcPitch = 4,
                       .srcHeight = 3,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = a,
                       .dstPitch = 16,
                       .dstHeight = 5,
                       .WidthInBytes = 4,
                       .Height = 3,
                       .Depth = 2};
    ok(cuMemcpy3D_v2(&c));
    CUDA_MEMCPY3D back = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = a,
                          .srcPitch = 16,
                          .srcHeight = 5,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = out,
                          .dstPitch = 4,
                          .dstHeight = 3,
                          .WidthInBytes = 4,
                          .Height = 3,
                          .Depth = 2};
    ok(cuMemcpy3D_v2(&back));
    assert_memory_equal(in, out, sizeof in);
    ok(cuMemFree_v2(a));
}

/* ---- host memory ------------------------------------------------------------------------------------------------ */

static void test_pinned_memory(void **state)
{
    void *p;
    CUdeviceptr d;
    unsigned flags;
    ok(cuMemHostAlloc(&p, 100, CU_MEMHOSTALLOC_PORTABLE));
    ok(cuMemHostGetDevicePointer_v2(&d, p, 0));
    assert_int_equal(d, (uintptr_t)p);
    ok(cuMemHostGetFlags(&flags, p));
    assert_true(flags & CU_MEMHOSTALLOC_PORTABLE);
    memset(p, 1, 100);
    ok(cuMemsetD8_v2(d, 7, 100));
    assert_int_equal(((char *)p)[99], 7);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost((char *)p + 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(d));
    ok(cuMemFreeHost(p));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(p));
}

static void test_register_host_memory(void **state)
{
    static char buffer[10000];
    CUdeviceptr d;
    ok(cuMemHostRegister_v2(buffer, sizeof buffer, 0));
    fails(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(buffer + 100, 10, 0));
    ok(cuMemHostGetDevicePointer_v2(&d, buffer, 0));
    assert_int_equal(d, (uintptr_t)buffer);
    fails(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(buffer + 1));
    ok(cuMemHostUnregister(buffer));
    fails(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(buffer));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&d, buffer, 0));
}

/* Only memory of the host can be registered: not the device's addresses, allocated or not, nor what is not there. */
static void test_register_what_is_not_host_memory(void **state)
{
    static char buffer[100];
    CUdeviceptr d;
    ok(cuMemAlloc_v2(&d, 100));
    void *device = (void *)(uintptr_t)d, *beyond = (void *)(uintptr_t)(d + (UINT64_C(1) << 35));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(device, 100, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(beyond, 4096, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(beyond, UINT64_C(1) << 40, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(buffer, UINT64_C(1) << 40, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(buffer, UINT64_MAX - (uintptr_t)buffer, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(buffer, UINT64_MAX, 0));
    ok(cuMemFree_v2(d));
}

static void test_managed_memory(void **state)
{
    CUdeviceptr m;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&m, 100, 0));
    ok(cuMemAllocManaged(&m, 100, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemsetD8_v2(m, 9, 100));
    ok(cuCtxSynchronize());
    assert_int_equal(((char *)(uintptr_t)m)[50], 9);
    ok(cuMemPrefetchAsync(m, 100, 0, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync(m, 101, 0, NULL));
    ok(cuMemFree_v2(m));
}

static void test_pointer_attributes(void **state)
{
    CUdeviceptr a, m, value;
    void *h;
    unsigned type, managed;
    unsigned long long id_a, id_m;
    size_t bytes;
    ok(cuMemAlloc_v2(&a, 1000));
    ok(cuMemAllocManaged(&m, 1000, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemHostAlloc(&h, 1000, 0));
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 10));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)h));
    assert_int_equal(type, CU_MEMORYTYPE_HOST);
    ok(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, m));
    assert_int_equal(managed, 1);
    ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 10));
    assert_int_equal(value, a);
    ok(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a));
    assert_int_equal(bytes, 1000);
    ok(cuPointerGetAttribute(&id_a, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
    ok(cuPointerGetAttribute(&id_m, CU_POINTER_ATTRIBUTE_BUFFER_ID, m));
    assert_int_not_equal(id_a, id_m);
    fails(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&type));
    /* In the plural form unknown memory is no error. */
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
    void *values[] = {&type, &value};
    ok(cuPointerGetAttributes(2, names, values, (uintptr_t)&type));
    assert_int_equal(type, 0);
    assert_int_equal(value, 0);
    ok(cuPointerGetAttributes(2, names, values, a));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(value, a);
    ok(cuMemFree_v2(a));
    ok(cuMemFree_v2(m));
    ok(cuMemFreeHost(h));
}

/* ---- stream-ordered --------------------------------------------------------------------------------------------- */

static void test_pool_reuses_in_stream_order(void **state)
{
    CUstream s;
    CUdeviceptr a, b;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuMemAllocAsync(&a, 3 * MIB, s));
    ok(cuMemsetD8Async(a, 1, 3 * MIB, s));
    ok(cuMemFreeAsync(a, s));
    ok(cuMemAllocAsync(&b, 3 * MIB, s));
    assert_int_equal(a, b);
    ok(cuMemFreeAsync(b, s));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(b, s));
    ok(cuStreamSynchronize(s));
    ok(cuStreamDestroy_v2(s));
}

static void test_pool_threshold_and_counts(void **state)
{
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUdeviceptr a;
    cuuint64_t value, keep = UINT64_MAX;
    ok(cuMemPoolCreate(&pool, &props));
    ok(cuMemAllocFromPoolAsync(&a, 4 * MIB, pool, NULL));
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    assert_int_equal(value, 4 * MIB);
    ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    ok(cuMemFreeAsync(a, NULL));
    ok(cuCtxSynchronize());
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    assert_int_equal(value, 4 * MIB); /* kept */
    keep = 0;
    ok(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    ok(cuCtxSynchronize());
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    assert_int_equal(value, 0); /* given back */
    ok(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    assert_int_equal(value, 4 * MIB);
    ok(cuMemPoolDestroy(pool));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolDestroy(pool));
}

static void test_pool_memory_freed_by_plain_free(void **state)
{
    CUdeviceptr a;
    ok(cuMemAllocAsync(&a, 1000, NULL));
    ok(cuMemFree_v2(a));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a));
}

/* ---- virtual memory --------------------------------------------------------------------------------------------- */

static const CUmemAllocationProp device_prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc read_write = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void test_vmm_life(void **state)
{
    size_t g;
    CUdeviceptr va;
    CUmemGenericAllocationHandle h;
    char in[16] = "mapped memory", out[16] = {0};
    ok(cuMemGetAllocationGranularity(&g, &device_prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    assert_int_equal(g, 2 * MIB);
    ok(cuMemAddressReserve(&va, 4 * g, 0, 0, 0));
    ok(cuMemCreate(&h, g, &device_prop, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(va, in, 16)); /* nothing there */
    ok(cuMemMap(va, g, 0, h, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(va, in, 16)); /* no access yet */
    ok(cuMemSetAccess(va, g, &read_write, 1));
    ok(cuMemcpyHtoD_v2(va, in, 16));
    ok(cuMemcpyDtoH_v2(out, va, 16));
    assert_memory_equal(in, out, 16);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(va + g - 8, in, 16)); /* runs into the unmapped page */
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(va, 4 * g));         /* still mapped */
    fails(CUDA_ERROR_INVALID_VALUE, cuMemMap(va, g, 0, h, 0));            /* taken */
    ok(cuMemRelease(h));                                                  /* the mapping keeps it */
    ok(cuMemcpyDtoH_v2(out, va, 16));
    ok(cuMemUnmap(va, g));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(out, va, 16));
    ok(cuMemAddressFree(va, 4 * g));
}

static void test_vmm_aliases(void **state)
{
    const size_t g = 2 * MIB;
    CUdeviceptr va;
    CUmemGenericAllocationHandle h, again;
    int value = 42, out = 0;
    ok(cuMemAddressReserve(&va, 2 * g, 0, 0, 0));
    ok(cuMemCreate(&h, g, &device_prop, 0));
    ok(cuMemMap(va, g, 0, h, 0));
    ok(cuMemMap(va + g, g, 0, h, 0));
    ok(cuMemSetAccess(va, 2 * g, &read_write, 1));
    ok(cuMemcpyHtoD_v2(va + 8, &value, sizeof value));
    ok(cuMemcpyDtoH_v2(&out, va + g + 8, sizeof out));
    assert_int_equal(out, 42);
    ok(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + g)));
    assert_int_equal(again, h);
    ok(cuMemRelease(h));
    ok(cuMemRelease(h));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemRelease(h));
    ok(cuMemUnmap(va, 2 * g));
    ok(cuMemAddressFree(va, 2 * g));
}

static void test_vmm_neighbouring_handles_are_one_range(void **state)
{
    const size_t g = 2 * MIB;
    CUdeviceptr va;
    CUmemGenericAllocationHandle h[2];
    static char in[64], out[64];
    memset(in, 5, sizeof in);
    ok(cuMemAddressReserve(&va, 2 * g, 0, 0, 0));
    for (size_t i = 0; i < 2; i++) {
        ok(cuMemCreate(&h[i], g, &device_prop, 0));
        ok(cuMemMap(va + (1 - i) * g, g, 0, h[i], 0)); /* physically the other way round */
    }
    ok(cuMemSetAccess(va, 2 * g, &read_write, 1));
    ok(cuMemcpyHtoD_v2(va + g - 32, in, 64));
    ok(cuMemcpyDtoH_v2(out, va + g - 32, 64));
    assert_memory_equal(in, out, 64);
    ok(cuMemUnmap(va, 2 * g));
    for (int i = 0; i < 2; i++)
        ok(cuMemRelease(h[i]));
    ok(cuMemAddressFree(va, 2 * g));
}

static void test_vmm_refuses(void **state)
{
    const size_t g = 2 * MIB;
    CUdeviceptr va;
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp shared = device_prop;
    shared.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAddressReserve(&va, g + 1, 0, 0, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&h, 1000, &device_prop, 0));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuMemCreate(&h, g, &shared, 0));
    ok(cuMemCreate(&h, g, &device_prop, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemMap(0x1000, g, 0, h, 0)); /* not reserved */
    ok(cuMemAddressReserve(&va, g, 0, 0, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemSetAccess(va, g, &read_write, 1)); /* not mapped */
    fails(CUDA_ERROR_INVALID_VALUE, cuMemUnmap(va, g));
    ok(cuMemAddressFree(va, g));
    ok(cuMemRelease(h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc_reuses_first_fit),
        cmocka_unit_test(test_alloc_large_has_own_pages),
        cmocka_unit_test(test_alloc_refuses),
        cmocka_unit_test(test_alloc_all_of_it_and_again),
        cmocka_unit_test(test_free_refuses),
        cmocka_unit_test(test_address_range),
        cmocka_unit_test(test_mem_info_counts_pages),
        cmocka_unit_test(test_fragmented_memory_is_usable),
        cmocka_unit_test(test_copy_round_trip),
        cmocka_unit_test(test_copy_checks_its_range),
        cmocka_unit_test(test_fill_widths),
        cmocka_unit_test(test_copy_2d),
        cmocka_unit_test(test_copy_3d),
        cmocka_unit_test(test_pinned_memory),
        cmocka_unit_test(test_register_host_memory),
        cmocka_unit_test(test_register_what_is_not_host_memory),
        cmocka_unit_test(test_managed_memory),
        cmocka_unit_test(test_pointer_attributes),
        cmocka_unit_test(test_pool_reuses_in_stream_order),
        cmocka_unit_test(test_pool_threshold_and_counts),
        cmocka_unit_test(test_pool_memory_freed_by_plain_free),
        cmocka_unit_test(test_vmm_life),
        cmocka_unit_test(test_vmm_aliases),
        cmocka_unit_test(test_vmm_neighbouring_handles_are_one_range),
        cmocka_unit_test(test_vmm_refuses),
    };
    return cmocka_run_group_tests(tests, use_primary_context, reset_context);
}
