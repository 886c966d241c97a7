/* Pools and events between processes, and what pointers tell of it. */
#include "tests/unit/softgpu_pair.h"

/* ---- pools ------------------------------------------------------------------------------------------------------ */

static CUmemoryPool shared_pool(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    ok(cuMemPoolCreate(&pool, &props));
    return pool;
}

static void test_pool_and_its_memory(void **state)
{
    CUmemoryPool pool = shared_pool();
    CUdeviceptr a;
    int fd;
    ok(cuMemAllocFromPoolAsync(&a, 3000, pool, NULL));
    put_here(a + 2996, 41);
    ok(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    struct message p = {.what = 'p'};
    ok(ask_with(&p, fd));
    close(fd);
    for (int i = 0; i < 2; i++) { /* freed at once, and in stream order */
        struct message m = {.what = 'q'};
        ok(cuMemPoolExportPointer(&m.handle.pointer, a));
        ok(ask(&m));
        assert_int_equal(word_there(m.address + 2996), 41);
        put_there(m.address, 42);
        assert_int_equal(word_here(a), 42);
        m.what = i ? 'F' : 'f';
        ok(ask(&m));
        fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
        assert_int_equal(word_here(a), 42);
    }
    struct message m = {.what = 'a'};
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m)); /* an imported pool gives nothing out */
    m.what = 's';
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
    m = (struct message){.what = 'q'};
    ok(cuMemPoolExportPointer(&m.handle.pointer, a));
    ok(cuMemFreeAsync(a, NULL));
    ok(cuCtxSynchronize());
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m)); /* freed memory */
    ok(cuMemPoolDestroy(pool));
}

static void test_pool_refuses(void **state)
{
    const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemoryPool pool = shared_pool(), second = shared_pool(), plain, imported;
    CUmemPoolPtrExportData data;
    CUdeviceptr a, b, out;
    int fd, fd2;
    ok(cuDeviceGetDefaultMemPool(&plain, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, plain, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, type, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(NULL, pool, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    ok(cuMemAllocFromPoolAsync(&a, 64, pool, NULL));
    ok(cuMemAllocAsync(&b, 64, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, a)); /* the pool comes first */
    ok(cuMemPoolExportToShareableHandle(&fd, pool, type, 0));
    ok(cuMemPoolExportToShareableHandle(&fd2, second, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(&data, b));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolExportPointer(NULL, a));
    ok(cuMemPoolExportPointer(&data, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, type, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(NULL, (void *)(intptr_t)fd, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)-1, type, 0));
    ok(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd2, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&out, imported, &data)); /* of the other pool */
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&out, pool, &data));     /* not imported */
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(NULL, imported, &data));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolImportPointer(&out, imported, NULL));
    close(fd);
    close(fd2);
    ok(cuMemFreeAsync(a, NULL));
    ok(cuMemFreeAsync(b, NULL));
    ok(cuCtxSynchronize());
    ok(cuMemPoolDestroy(imported));
    ok(cuMemPoolDestroy(second));
    ok(cuMemPoolDestroy(pool));
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static CUevent shared_event(struct message *m)
{
    CUevent e;
    ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    *m = (struct message){.what = 'e'};
    ok(cuIpcGetEventHandle(&m->handle.event, e));
    ok(ask(m));
    return e;
}

/* What the other process recorded is waited for here, and what is recorded here is waited for there. */
static void test_event_orders_both_ways(void **state)
{
    struct message m, memory;
    struct gate g = {0};
    atomic_bool flag = false;
    CUdeviceptr a;
    CUstream s;
    ok(cuMemAlloc_v2(&a, 64));
    memory = opening(a);
    ok(ask(&memory));
    CUevent e = shared_event(&m);
    ok(cuEventQuery(e)); /* never recorded */
    m = (struct message){.what = 'E', .address = memory.address, .number = 51};
    ok(ask(&m));
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamWaitEvent(s, e, 0));
    uint32_t value = 0;
    ok(cuMemcpyDtoHAsync_v2(&value, a, 4, s));
    ok(cuStreamSynchronize(s));
    assert_int_equal(value, 51);
    ok(cuEventSynchronize(e));
    /* Now from here, held up. */
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuMemsetD32Async(a, 52, 1, s));
    ok(cuEventRecord(e, s));
    fails(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    m = (struct message){.what = 'Q'};
    fails(CUDA_ERROR_NOT_READY, ask(&m));
    CUstream t;
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    ok(cuStreamWaitEvent(t, e, 0));
    ok(cuLaunchHostFunc(t, set_flag, &flag));
    assert_true(not_yet(&flag));
    m = (struct message){.what = 'W', .address = memory.address};
    assert_true(say(&m, -1)); /* it waits there, while this process lets go */
    sleep_ms(10);
    atomic_store(&g.open, true);
    int none;
    assert_true(hear(&m, &none));
    ok(m.result);
    assert_int_equal(m.number, 52);
    m = (struct message){.what = 'S'};
    ok(ask(&m));
    ok(cuEventSynchronize(e));
    assert_true(soon(&flag));
    m = (struct message){.what = 'D'};
    ok(ask(&m));
    ok(cuEventDestroy_v2(e));
    memory.what = 'c';
    ok(ask(&memory));
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
    ok(cuMemFree_v2(a));
}

/* An event may be destroyed while work waits for it. */
static void test_event_destroyed_with_waits(void **state)
{
    struct gate g = {0};
    atomic_bool flag = false;
    CUstream s, t;
    CUevent e;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuEventRecord(e, s));
    ok(cuStreamWaitEvent(t, e, 0));
    ok(cuLaunchHostFunc(t, set_flag, &flag));
    ok(cuEventDestroy_v2(e));
    assert_true(not_yet(&flag));
    atomic_store(&g.open, true);
    assert_true(soon(&flag));
    ok(cuCtxSynchronize());
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
}

static void test_event_refuses(void **state)
{
    CUevent plain, e, opened;
    CUipcEventHandle h;
    float ms;
    ok(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    fails(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&e, CU_EVENT_INTERPROCESS)); /* only without timing */
    ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    fails(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&h, plain));
    fails(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&h, (CUevent)&h));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(NULL, e));
    ok(cuIpcGetEventHandle(&h, e));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenEventHandle(&opened, h)); /* in the same process */
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(NULL, h));
    fails(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, e, e));
    struct message m = {.what = 'e', .handle.event = h};
    ok(ask(&m));
    m.what = 'g';
    fails(CUDA_ERROR_INVALID_HANDLE, ask(&m)); /* handed on only by its maker */
    m.what = 'D';
    ok(ask(&m));
    ok(cuEventDestroy_v2(e));
    m = (struct message){.what = 'e', .handle.event = h};
    fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
    memset(&m.handle, 0x11, sizeof m.handle);
    fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
    ok(cuEventDestroy_v2(plain));
}

static void test_pointer_attributes(void **state)
{
    unsigned capable = 42;
    int value;
    CUdeviceptr a, pooled;
    ok(cuMemAlloc_v2(&a, 64));
    ok(cuMemAllocAsync(&pooled, 64, NULL));
    ok(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, a));
    assert_int_equal(capable, 1);
    ok(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pooled));
    assert_int_equal(capable, 0);
    CUmemAccessDesc desc = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
    CUmemGenericAllocationHandle h;
    CUmemoryPool pool = shared_pool();
    unsigned long long types = 42;
    CUdeviceptr va, in_pool;
    ok(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, a));
    assert_int_equal(types, 0);
    ok(cuMemAllocFromPoolAsync(&in_pool, 64, pool, NULL));
    ok(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, in_pool));
    assert_int_equal(types, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ok(create_shared(&h, 2 * MIB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
    ok(cuMemMap(va, 2 * MIB, 0, h, 0));
    ok(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, va));
    assert_int_equal(types, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, va));
    assert_int_equal(value, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    ok(cuMemSetAccess(va, 2 * MIB, &desc, 1));
    ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, va));
    assert_int_equal(value, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ);
    ok(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, a));
    assert_int_equal(value, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    ok(cuMemUnmap(va, 2 * MIB));
    ok(cuMemAddressFree(va, 2 * MIB));
    ok(cuMemRelease(h));
    ok(cuMemFreeAsync(in_pool, NULL));
    ok(cuCtxSynchronize());
    ok(cuMemPoolDestroy(pool));
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, 0));
    assert_int_equal(value, 1);
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
    assert_int_equal(value, 1);
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 0));
    assert_int_equal(value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    ok(cuMemFree_v2(a));
    ok(cuMemFreeAsync(pooled, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_and_its_memory),    cmocka_unit_test(test_pool_refuses),
        cmocka_unit_test(test_event_orders_both_ways), cmocka_unit_test(test_event_destroyed_with_waits),
        cmocka_unit_test(test_event_refuses),          cmocka_unit_test(test_pointer_attributes),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
