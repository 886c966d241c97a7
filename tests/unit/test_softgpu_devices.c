/* Three devices: what each is, contexts and memory of its own, peer access and peer copies, pools, mapped memory. */
#include <pthread.h>
#include <sys/wait.h>

#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

static const char PTX[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry put(.param .u64 p, .param .u32 v) {\n"
                          "  .reg .u64 %rd1; .reg .u32 %r1; ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"
                          "  st.global.u32 [%rd1], %r1; ret;\n}\n";
enum { DEVICES = 3, MIB = 1 << 20 };

static CUcontext contexts[DEVICES];

/* Processes that see some of the devices only, started before this one has any: 10 times their number and the bus of
 * the first; 99 without a device. */
static const struct {
    const char *visible;
    int answer;
} views[] = {{NULL, 31}, {"2,0", 23}, {"1", 12}, {"0,7,1", 11}, {"1,1,2", 12},
             {"", 99},   {"-1", 99},  {"x", 99}, {"2,x", 13}};
enum { VIEWS = sizeof views / sizeof *views };
static pid_t viewers[VIEWS];

static void view(const char *visible)
{
    int count = 0, bus = 0;
    CUdevice d = -1;
    char id[16];
    if (visible)
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    CUresult result = cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE)
        _exit(99);
    bool right = result == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS &&
                 cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0) == CUDA_SUCCESS &&
                 cuDeviceGetPCIBusId(id, sizeof id, count - 1) == CUDA_SUCCESS &&
                 cuDeviceGetByPCIBusId(&d, id) == CUDA_SUCCESS && d == count - 1;
    _exit(right ? count * 10 + bus : 98);
}

static void test_visible_devices(void **state)
{
    for (int i = 0; i < VIEWS; i++) {
        int status;
        assert_int_equal(waitpid(viewers[i], &status, 0), viewers[i]);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) != views[i].answer)
            fail_msg("CUDA_VISIBLE_DEVICES=%s: %d", views[i].visible, WEXITSTATUS(status));
    }
}

static int start(void **state)
{
    setenv("SOFTGPU_DEVICES", "3", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    for (int i = 0; i < VIEWS; i++)
        if ((viewers[i] = fork()) == 0)
            view(views[i].visible);
    setenv("SOFTGPU_MEMORY", "256M", 1);
    setenv("SOFTGPU_NAME", "a device of mine", 1);
    return cuInit(0) != CUDA_SUCCESS;
}

static int setup(void **state)
{
    for (int i = 0; i < DEVICES; i++)
        if (cuDevicePrimaryCtxRetain(&contexts[i], i) != CUDA_SUCCESS)
            return 1;
    return cuCtxSetCurrent(contexts[0]) != CUDA_SUCCESS;
}

static int teardown(void **state)
{
    for (int i = 0; i < DEVICES; i++)
        if (cuDevicePrimaryCtxReset_v2(i) != CUDA_SUCCESS || cuDevicePrimaryCtxRelease_v2(i) != CUDA_SUCCESS)
            return 1;
    return 0;
}

static void use(int device)
{
    ok(cuCtxSetCurrent(contexts[device]));
}

static CUdeviceptr memory_on(int device, size_t bytes)
{
    CUdeviceptr a;
    use(device);
    ok(cuMemAlloc_v2(&a, bytes));
    ok(cuMemsetD8_v2(a, 0, bytes));
    ok(cuCtxSynchronize());
    return a;
}

/* A kernel on the current device stores there; the result of the synchronisation. */
static CUresult store(CUdeviceptr a, uint32_t value)
{
    CUmodule m;
    CUfunction f;
    ok(cuModuleLoadData(&m, PTX));
    ok(cuModuleGetFunction(&f, m, "put"));
    ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&a, &value}, NULL));
    return cuCtxSynchronize();
}

static uint32_t word_at(CUdeviceptr a)
{
    uint32_t value = 0;
    ok(cuMemcpyDtoH_v2(&value, a, 4));
    return value;
}

/* ---- what they are ---------------------------------------------------------------------------------------------- */

static void test_devices_differ(void **state)
{
    int count = 0, bus[DEVICES], value;
    CUuuid uuid[DEVICES];
    char id[DEVICES][16], name[64];
    CUdevice d;
    ok(cuDeviceGetCount(&count));
    assert_int_equal(count, DEVICES);
    for (int i = 0; i < DEVICES; i++) {
        ok(cuDeviceGet(&d, i));
        ok(cuDeviceGetName(name, sizeof name, d));
        assert_string_equal(name, "a device of mine");
        ok(cuDeviceGetUuid_v2(&uuid[i], d));
        ok(cuDeviceGetPCIBusId(id[i], sizeof id[i], d));
        ok(cuDeviceGetAttribute(&bus[i], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, d));
        ok(cuDeviceGetByPCIBusId(&d, id[i]));
        assert_int_equal(d, i);
        for (int k = 0; k < i; k++) {
            assert_memory_not_equal(&uuid[i], &uuid[k], sizeof uuid[i]);
            assert_string_not_equal(id[i], id[k]);
            assert_int_not_equal(bus[i], bus[k]);
        }
    }
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&d, DEVICES));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, DEVICES));
}

static void test_contexts_belong_to_devices(void **state)
{
    for (int i = 0; i < DEVICES; i++) {
        CUdevice d = 42;
        CUcontext c;
        CUstream s;
        use(i);
        ok(cuCtxGetDevice(&d));
        assert_int_equal(d, i);
        ok(cuStreamCreate(&s, 0));
        ok(cuStreamGetDevice(s, &d));
        assert_int_equal(d, i);
        ok(cuCtxCreate_v2(&c, 0, i));
        ok(cuCtxGetDevice_v2(&d, c));
        assert_int_equal(d, i);
        ok(cuCtxDestroy_v2(c));
        ok(cuStreamDestroy_v2(s));
    }
}

static void test_memory_is_counted_by_device(void **state)
{
    size_t before[2], after[2], total;
    for (int i = 0; i < 2; i++) {
        use(i);
        ok(cuMemGetInfo_v2(&before[i], &total));
        assert_int_equal(total, 256 * MIB);
    }
    CUdeviceptr a = memory_on(1, 100 * MIB), b;
    int device = 42;
    ok(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
    assert_int_equal(device, 1);
    for (int i = 0; i < 2; i++) {
        use(i);
        ok(cuMemGetInfo_v2(&after[i], &total));
    }
    assert_int_equal(before[0], after[0]);
    assert_int_equal(before[1] - after[1], 100 * MIB);
    use(1);
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&b, 200 * MIB));
    use(0);
    ok(cuMemAlloc_v2(&b, 200 * MIB));
    ok(cuMemFree_v2(b));
    /* Small ones share pages with those of their device only. */
    CUdeviceptr x = memory_on(0, 64), y = memory_on(1, 64);
    assert_true(x / (2 * MIB) != y / (2 * MIB));
    ok(cuDevicePrimaryCtxReset_v2(1)); /* touches no other device's memory */
    use(0);
    assert_int_equal(word_at(x), 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(y));
}

/* ---- peers ------------------------------------------------------------------------------------------------------ */

static void test_peer_access_is_given_and_taken(void **state)
{
    int can = 0;
    ok(cuDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 1);
    ok(cuDeviceCanAccessPeer(&can, 1, 1));
    assert_int_equal(can, 0);
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceCanAccessPeer(&can, 0, DEVICES));
    CUdeviceptr there = memory_on(1, 64);
    use(0);
    fails(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(contexts[1]));
    ok(cuCtxEnablePeerAccess(contexts[1], 0));
    fails(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(contexts[1], 0));
    ok(store(there, 7));
    assert_int_equal(word_at(there), 7);
    /* The other way round it was not allowed. */
    CUdeviceptr here = memory_on(0, 64);
    use(1);
    fails(CUDA_ERROR_ILLEGAL_ADDRESS, store(here, 8));
    fails(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    use(0);
    ok(cuCtxSynchronize()); /* the other device's context is not this one's */
}

static void test_without_peer_access_it_is_a_fault(void **state)
{
    CUdeviceptr there = memory_on(2, 64);
    use(0);
    ok(cuCtxEnablePeerAccess(contexts[2], 0));
    ok(store(there, 1));
    ok(cuCtxDisablePeerAccess(contexts[2]));
    fails(CUDA_ERROR_ILLEGAL_ADDRESS, store(there, 2));
    use(2);
    assert_int_equal(word_at(there), 1);
}

static void test_peer_access_refuses(void **state)
{
    CUcontext other;
    use(0);
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxEnablePeerAccess(contexts[1], 1));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(contexts[0], 0));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(NULL, 0));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess((CUcontext)&other, 0));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxDisablePeerAccess(NULL));
    ok(cuCtxCreate_v2(&other, 0, 0));
    ok(cuCtxPopCurrent_v2(NULL));
    fails(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(other, 0)); /* the same device */
    ok(cuCtxDestroy_v2(other));
}

static void test_links(void **state)
{
    static const struct {
        CUdevice_P2PAttribute which;
        int value;
    } rows[] = {{CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 0},
                {CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1},
                {CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 1},
                {CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED, 1},
                {CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED, 0}};
    CUatomicOperation add = CU_ATOMIC_OPERATION_INTEGER_ADD, none = 99;
    unsigned can = 0, host = 0;
    int value;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        value = 42;
        ok(cuDeviceGetP2PAttribute(&value, rows[i].which, 0, 1));
        assert_int_equal(value, rows[i].value);
    }
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, rows[0].which, 1, 1));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAttribute(&value, rows[0].which, 1, DEVICES));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(NULL, rows[0].which, 0, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAttribute(&value, 77, 0, 1));
    ok(cuDeviceGetP2PAtomicCapabilities(&can, &add, 1, 0, 1));
    ok(cuDeviceGetHostAtomicCapabilities(&host, &add, 1, 0));
    assert_int_equal(can, host);
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAtomicCapabilities(&can, &add, 1, 2, 2));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAtomicCapabilities(&can, &none, 1, 0, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAtomicCapabilities(NULL, &add, 1, 0, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetP2PAtomicCapabilities(&can, &add, 0, 0, 1));
}

/* ---- copies need no access -------------------------------------------------------------------------------------- */

static CUresult peer_ptds(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream stream)
{
    return cuMemcpyPeer_ptds(d, dc, s, sc, n);
}

static CUresult peer(CUdeviceptr d, CUcontext dc, CUdeviceptr s, CUcontext sc, size_t n, CUstream stream)
{
    return cuMemcpyPeer(d, dc, s, sc, n);
}

static CUresult peer_3d(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
    return cuMemcpy3DPeer(p);
}

static CUresult peer_3d_ptds(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
    return cuMemcpy3DPeer_ptds(p);
}

static void test_peer_copies_in_all_forms(void **state)
{
    static CUresult (*const forms[])(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t,
                                     CUstream) = {peer, peer_ptds, cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz};
    CUdeviceptr from = memory_on(1, 256), to = memory_on(2, 256);
    for (uint32_t i = 0; i < 4; i++) {
        use(1);
        ok(cuMemsetD32_v2(from, 100 + i, 64));
        ok(cuCtxSynchronize());
        use(0); /* a third device's context is as good as one of theirs */
        ok(forms[i](to + 4, contexts[2], from, contexts[1], 8, NULL));
        ok(cuCtxSynchronize());
        assert_int_equal(word_at(to), 0);
        assert_int_equal(word_at(to + 8), 100 + i);
        assert_int_equal(word_at(to + 12), 0);
        fails(CUDA_ERROR_INVALID_CONTEXT, forms[i](to, NULL, from, contexts[1], 8, NULL));
        fails(CUDA_ERROR_INVALID_CONTEXT, forms[i](to, contexts[2], from, (CUcontext)&to, 8, NULL));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](to, contexts[2], from, contexts[1], 8 * MIB, NULL));
    }
}

static void test_peer_boxes_in_all_forms(void **state)
{
    static CUresult (*const forms[])(const CUDA_MEMCPY3D_PEER *,
                                     CUstream) = {peer_3d, peer_3d_ptds, cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz};
    CUdeviceptr from = memory_on(1, 256), to = memory_on(2, 256);
    for (uint32_t i = 0; i < 4; i++) {
        use(1);
        ok(cuMemsetD32_v2(from, 200 + i, 64));
        ok(cuCtxSynchronize());
        use(2);
        ok(cuMemsetD8_v2(to, 0, 256));
        ok(cuCtxSynchronize());
        CUDA_MEMCPY3D_PEER p = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                .srcDevice = from,
                                .srcContext = contexts[1],
                                .srcPitch = 16,
                                .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                .dstDevice = to,
                                .dstContext = contexts[2],
                                .dstPitch = 32,
                                .WidthInBytes = 8,
                                .Height = 2,
                                .Depth = 1};
        ok(forms[i](&p, NULL));
        ok(cuCtxSynchronize());
        assert_int_equal(word_at(to + 4), 200 + i);
        assert_int_equal(word_at(to + 8), 0);
        assert_int_equal(word_at(to + 36), 200 + i);
        assert_int_equal(word_at(to + 64), 0);
        p.dstContext = (CUcontext)&p;
        fails(CUDA_ERROR_INVALID_CONTEXT, forms[i](&p, NULL));
        p.dstContext = contexts[2];
        p.Height = 2000;
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](&p, NULL));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](NULL, NULL));
    }
}

/* A copy waits for its stream, on whichever device its ends are. */
static void test_peer_copy_keeps_order(void **state)
{
    struct gate g = {0};
    CUstream s;
    CUdeviceptr from = memory_on(1, 64), to = memory_on(2, 64);
    use(1);
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuMemsetD32Async(from, 5, 1, s));
    ok(cuMemcpyPeerAsync(to, contexts[2], from, contexts[1], 4, s));
    assert_int_equal(word_at(to), 0);
    atomic_store(&g.open, true);
    ok(cuStreamSynchronize(s));
    assert_int_equal(word_at(to), 5);
    ok(cuStreamDestroy_v2(s));
}

/* ---- pools and mapped memory ------------------------------------------------------------------------------------ */

static void test_pools_by_device(void **state)
{
    CUmemoryPool zero, one, set, mine;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
    CUdeviceptr a;
    int device;
    ok(cuDeviceGetDefaultMemPool(&zero, 0));
    ok(cuDeviceGetDefaultMemPool(&one, 1));
    assert_ptr_not_equal(zero, one);
    ok(cuMemPoolCreate(&mine, &props));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceSetMemPool(0, mine)); /* of another device */
    ok(cuDeviceSetMemPool(1, mine));
    ok(cuDeviceGetMemPool(&set, 1));
    assert_ptr_equal(set, mine);
    ok(cuDeviceGetMemPool(&set, 0));
    assert_ptr_equal(set, zero);
    use(1);
    ok(cuMemAllocAsync(&a, 64, NULL));
    ok(cuPointerGetAttribute(&set, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a));
    assert_ptr_equal(set, mine);
    ok(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a));
    assert_int_equal(device, 1);
    ok(cuMemFreeAsync(a, NULL));
    ok(cuCtxSynchronize());
    props.location.id = DEVICES;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolCreate(&set, &props));
    ok(cuMemPoolDestroy(mine));
    ok(cuDeviceGetMemPool(&set, 1));
    assert_ptr_equal(set, one);
}

static void test_pool_access(void **state)
{
    CUmemoryPool pool;
    CUmemAccess_flags flags;
    CUmemAccessDesc desc = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                            .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr before, after;
    ok(cuDeviceGetDefaultMemPool(&pool, 1));
    ok(cuMemPoolGetAccess(&flags, pool, &desc.location));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    use(1);
    ok(cuMemAllocAsync(&before, 4 * MIB, NULL));
    ok(cuMemPoolSetAccess(pool, &desc, 1));
    ok(cuMemPoolGetAccess(&flags, pool, &desc.location));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ok(cuMemAllocAsync(&after, 4 * MIB, NULL));
    ok(cuCtxSynchronize());
    use(0); /* no peer access was enabled */
    ok(store(before, 1));
    ok(store(after, 2));
    use(1);
    assert_int_equal(word_at(before), 1);
    assert_int_equal(word_at(after), 2);
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    ok(cuMemPoolSetAccess(pool, &desc, 1));
    ok(cuMemPoolGetAccess(&flags, pool, &desc.location));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    desc.location.id = 1; /* its own device's cannot be taken */
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, &desc, 1));
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, &desc, 1));
    desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    desc.location.id = DEVICES;
    fails(CUDA_ERROR_INVALID_DEVICE, cuMemPoolSetAccess(pool, &desc, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, NULL, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemPoolGetAccess(NULL, pool, &desc.location));
    ok(cuMemFree_v2(before));
    ok(cuMemFree_v2(after));
}

static void test_mapped_memory_is_opened_device_by_device(void **state)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}},
                        got;
    CUmemAccessDesc desc[2] = {{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                               {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    CUmemGenericAllocationHandle h;
    unsigned long long flags;
    CUdeviceptr a;
    ok(cuMemCreate(&h, 2 * MIB, &prop, 0));
    ok(cuMemGetAllocationPropertiesFromHandle(&got, h));
    assert_int_equal(got.location.id, 1);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(NULL, h));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemGetAllocationPropertiesFromHandle(&got, 1234));
    ok(cuMemAddressReserve(&a, 2 * MIB, 0, 0, 0));
    ok(cuMemMap(a, 2 * MIB, 0, h, 0));
    ok(cuMemGetAccess(&flags, &desc[0].location, a));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    ok(cuMemSetAccess(a, 2 * MIB, desc, 1));
    ok(cuMemGetAccess(&flags, &desc[0].location, a));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ok(cuMemGetAccess(&flags, &desc[1].location, a));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(NULL, &desc[0].location, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemGetAccess(&flags, &desc[0].location, a + 64 * MIB));
    use(1);
    ok(store(a, 3));
    ok(cuMemSetAccess(a, 2 * MIB, &desc[1], 1)); /* besides the one that has it */
    ok(store(a, 4));
    use(0);
    ok(store(a, 5));
    desc[1].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    ok(cuMemSetAccess(a, 2 * MIB, &desc[1], 1));
    use(1);
    ok(store(a, 6));
    use(0);
    fails(CUDA_ERROR_ILLEGAL_ADDRESS, store(a, 7));
    ok(cuDevicePrimaryCtxReset_v2(0));
    use(1);
    assert_int_equal(word_at(a), 6);
    desc[0].location.id = DEVICES;
    fails(CUDA_ERROR_INVALID_DEVICE, cuMemSetAccess(a, 2 * MIB, desc, 1));
    ok(cuMemUnmap(a, 2 * MIB));
    ok(cuMemAddressFree(a, 2 * MIB));
    ok(cuMemRelease(h));
    prop.location.id = DEVICES;
    fails(CUDA_ERROR_INVALID_DEVICE, cuMemCreate(&h, 2 * MIB, &prop, 0));
}

static void *device_of_thread(void *out)
{
    CUcontext c;
    CUdevice d = 42;
    if (cuCtxGetCurrent(&c) == CUDA_SUCCESS && !c && cuCtxSetCurrent(contexts[2]) == CUDA_SUCCESS &&
        cuCtxGetDevice(&d) == CUDA_SUCCESS)
        *(int *)out = d;
    return NULL;
}

static void test_each_thread_has_its_device(void **state)
{
    pthread_t thread;
    CUdevice d;
    int other = 42;
    use(1);
    pthread_create(&thread, NULL, device_of_thread, &other);
    pthread_join(thread, NULL);
    assert_int_equal(other, 2);
    ok(cuCtxGetDevice(&d));
    assert_int_equal(d, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_visible_devices),
        cmocka_unit_test_setup_teardown(test_devices_differ, setup, teardown),
        cmocka_unit_test_setup_teardown(test_contexts_belong_to_devices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_counted_by_device, setup, teardown),
        cmocka_unit_test_setup_teardown(test_peer_access_is_given_and_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_peer_access_it_is_a_fault, setup, teardown),
        cmocka_unit_test_setup_teardown(test_peer_access_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_peer_copies_in_all_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_peer_boxes_in_all_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_peer_copy_keeps_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pools_by_device, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pool_access, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mapped_memory_is_opened_device_by_device, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_thread_has_its_device, setup, teardown),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
