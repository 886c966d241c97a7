/* Memory between processes: handles, and descriptors of memory that was made for it. */
#include "tests/unit/softgpu_pair.h"

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Small, large, and larger than a page; what was there before the export stays; both see what either writes. */
static void test_memory_is_the_same_in_both(void **state)
{
    static const size_t sizes[] = {64, 3000, MIB, 5 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CUdeviceptr pad, a;
        ok(cuMemAlloc_v2(&pad, 1000));
        ok(cuMemAlloc_v2(&a, sizes[i]));
        size_t end = sizes[i] - 4;
        put_here(a, 11);
        put_here(a + end, 12);
        put_here(pad, 13);
        struct message m = opening(a);
        ok(ask(&m));
        assert_int_equal(word_there(m.address), 11);
        assert_int_equal(word_there(m.address + end), 12);
        put_there(m.address + end, 21);
        assert_int_equal(word_here(a + end), 21);
        put_here(a, 22);
        assert_int_equal(word_there(m.address), 22);
        assert_int_equal(word_here(pad), 13);
        struct message past = {.what = 'w', .address = m.address + sizes[i]};
        fails(CUDA_ERROR_INVALID_VALUE, ask(&past)); /* its end is known there, too */
        m.what = 'c';
        ok(ask(&m));
        fails(CUDA_ERROR_INVALID_VALUE, ask(&m)); /* closed twice */
        struct message gone = {.what = 'r', .address = m.address};
        fails(CUDA_ERROR_INVALID_VALUE, ask(&gone));
        assert_int_equal(word_here(a), 22);
        ok(cuMemFree_v2(a));
        ok(cuMemFree_v2(pad));
    }
}

static void test_opened_again_is_the_same_address(void **state)
{
    CUdeviceptr a;
    ok(cuMemAlloc_v2(&a, 64));
    struct message m = opening(a), again = m;
    again.what = '1';
    ok(ask(&m));
    ok(ask(&again));
    assert_int_equal(again.address, m.address);
    m.what = again.what = 'c';
    ok(ask(&again));
    put_here(a, 5);
    assert_int_equal(word_there(m.address), 5); /* one use is left */
    ok(ask(&m));
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
    ok(cuMemFree_v2(a));
}

/* The bytes move while streams are busy with them, and none is lost. */
static void test_export_amid_work_loses_nothing(void **state)
{
    enum { WORDS = 3 * MIB / 4, ROUNDS = 20, FILLS = 30 };
    static uint32_t out[WORDS];
    CUstream s[2];
    for (int i = 0; i < 2; i++)
        ok(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < ROUNDS; round++) {
        CUdeviceptr a;
        CUipcMemHandle h;
        ok(cuMemAlloc_v2(&a, sizeof out));
        for (unsigned i = 1; i <= FILLS; i++)
            for (int k = 0; k < 2; k++)
                ok(cuMemsetD32Async(a + (CUdeviceptr)k * WORDS * 2, i, WORDS / 2, s[k]));
        ok(cuIpcGetMemHandle(&h, a));
        for (int k = 0; k < 2; k++)
            ok(cuStreamSynchronize(s[k]));
        ok(cuMemcpyDtoH_v2(out, a, sizeof out));
        for (unsigned i = 0; i < WORDS; i++)
            if (out[i] != FILLS)
                fail_msg("round %d: word %u is %u", round, i, out[i]);
        ok(cuMemFree_v2(a));
    }
    for (int i = 0; i < 2; i++)
        ok(cuStreamDestroy_v2(s[i]));
}

/* An exporter may go on with what it freed, and nobody else sees it. */
static void test_freed_memory_is_private_again(void **state)
{
    CUdeviceptr a, b;
    ok(cuMemAlloc_v2(&a, 4 * MIB));
    put_here(a, 1);
    struct message m = opening(a);
    ok(ask(&m));
    ok(cuMemFree_v2(a));
    ok(cuMemAlloc_v2(&b, 4 * MIB));
    put_here(b, 99);
    assert_int_equal(word_there(m.address), 1);
    m.what = 'c';
    ok(ask(&m));
    ok(cuMemFree_v2(b));
}

static void test_handle_of_freed_memory_opens_nothing(void **state)
{
    static const size_t sizes[] = {64, 4 * MIB};
    for (int i = 0; i < 2; i++) {
        CUdeviceptr keep, a, b;
        ok(cuMemAlloc_v2(&keep, 64)); /* its page stays in use */
        ok(cuMemAlloc_v2(&a, sizes[i]));
        struct message m = opening(a);
        CUipcMemHandle before = m.handle.memory;
        ok(cuMemFree_v2(a));
        fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
        ok(cuMemAlloc_v2(&b, sizes[i])); /* perhaps at the same address: another handle */
        m = opening(b);
        assert_memory_not_equal(&before, &m.handle.memory, sizeof before);
        ok(ask(&m));
        m.what = 'c';
        ok(ask(&m));
        m.what = 'o';
        m.handle.memory = before;
        m.number = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
        fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
        ok(cuMemFree_v2(b));
        ok(cuMemFree_v2(keep));
    }
}

static void test_memory_refuses(void **state)
{
    CUdeviceptr a, managed, opened;
    CUipcMemHandle h;
    CUmemoryPool pool;
    CUdeviceptr pooled;
    ok(cuMemAlloc_v2(&a, 256));
    ok(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    ok(cuDeviceGetDefaultMemPool(&pool, 0));
    ok(cuMemAllocAsync(&pooled, 64, NULL));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(NULL, a));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, managed));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, pooled));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&h, 0));
    ok(cuIpcGetMemHandle(&h, a));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuIpcOpenMemHandle_v2(&opened, h, 1)); /* in the same process */
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(&opened, h, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle_v2(NULL, h, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(a)); /* its own */
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(0));
    struct message m = opening(a);
    m.number = 0;
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
    m = opening(a);
    memset(&m.handle, 0x5a, sizeof m.handle);
    fails(CUDA_ERROR_INVALID_HANDLE, ask(&m));
    m = opening(a);
    ok(ask(&m));
    m.what = 'f'; /* is closed, not freed */
    fails(CUDA_ERROR_INVALID_VALUE, ask(&m));
    m.what = 'c';
    ok(ask(&m));
    ok(cuMemFree_v2(a));
    ok(cuMemFree_v2(managed));
    ok(cuMemFreeAsync(pooled, NULL));
}

/* The other way round, with a kernel's view: what this process imported ends with the context it was opened in. */
static void test_imported_memory_ends_with_its_context(void **state)
{
    struct message m = {.what = 'x', .bytes = 4 * MIB};
    CUcontext c;
    CUdeviceptr a, again;
    ok(ask(&m));
    ok(cuCtxCreate_v2(&c, 0, 0));
    ok(cuIpcOpenMemHandle_v2(&a, m.handle.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ok(cuMemsetD32_v2(a, 7, MIB));
    ok(cuCtxSynchronize());
    ok(cuCtxDestroy_v2(c));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(&c, a, 4));
    fails(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(a));
    ok(cuIpcOpenMemHandle_v2(&again, m.handle.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    assert_int_equal(word_here(again + 4 * MIB - 4), 7);
    ok(cuIpcCloseMemHandle(again));
    struct message y = {.what = 'y'};
    ok(ask(&y));
    fails(CUDA_ERROR_INVALID_HANDLE,
          cuIpcOpenMemHandle_v2(&again, m.handle.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

/* ---- descriptors ------------------------------------------------------------------------------------------------ */

static void test_descriptor_of_mapped_memory(void **state)
{
    const CUmemAccessDesc desc = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h;
    CUdeviceptr a;
    int fd = -1;
    ok(create_shared(&h, 4 * MIB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemAddressReserve(&a, 4 * MIB, 0, 0, 0));
    ok(cuMemMap(a, 4 * MIB, 0, h, 0));
    ok(cuMemSetAccess(a, 4 * MIB, &desc, 1));
    put_here(a + 4 * MIB - 4, 31);
    ok(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    struct message m = {.what = 'd', .bytes = 4 * MIB};
    ok(ask_with(&m, fd));
    close(fd);
    assert_int_equal(word_there(m.address + 4 * MIB - 4), 31);
    put_there(m.address, 32);
    assert_int_equal(word_here(a), 32);
    /* The memory lives as long as either has it. */
    ok(cuMemUnmap(a, 4 * MIB));
    ok(cuMemRelease(h));
    assert_int_equal(word_there(m.address), 32);
    m.what = 'u';
    ok(ask(&m));
    ok(cuMemAddressFree(a, 4 * MIB));
}

static void test_descriptor_may_be_imported_here(void **state)
{
    CUmemGenericAllocationHandle h, same;
    CUmemAllocationProp prop;
    int fd, second;
    ok(create_shared(&h, 2 * MIB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ok(cuMemImportFromShareableHandle(&same, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ok(cuMemGetAllocationPropertiesFromHandle(&prop, same));
    assert_int_equal(prop.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    assert_int_equal(prop.location.id, 0);
    ok(cuMemExportToShareableHandle(&second, same, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)); /* and passed on */
    close(second);
    close(fd);
    ok(cuMemRelease(same));
    ok(cuMemRelease(h));
}

static void test_descriptor_refuses(void **state)
{
    CUmemGenericAllocationHandle plain, shared, h;
    int fd, pipe_ends[2];
    ok(create_shared(&plain, 2 * MIB, CU_MEM_HANDLE_TYPE_NONE));
    ok(create_shared(&shared, 2 * MIB, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    fails(CUDA_ERROR_NOT_SUPPORTED, create_shared(&h, 2 * MIB, CU_MEM_HANDLE_TYPE_FABRIC));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, plain, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(NULL, shared, type, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, shared, type, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, 1234, type, 0));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuMemExportToShareableHandle(&fd, shared, CU_MEM_HANDLE_TYPE_FABRIC, 0));
    assert_int_equal(pipe(pipe_ends), 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&h, (void *)(intptr_t)pipe_ends[0], type));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(&h, (void *)(intptr_t)-1, type));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemImportFromShareableHandle(NULL, (void *)(intptr_t)pipe_ends[0], type));
    fails(CUDA_ERROR_NOT_SUPPORTED, cuMemImportFromShareableHandle(&h, NULL, CU_MEM_HANDLE_TYPE_FABRIC));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    ok(cuMemRelease(plain));
    ok(cuMemRelease(shared));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_the_same_in_both),
        cmocka_unit_test(test_opened_again_is_the_same_address),
        cmocka_unit_test(test_export_amid_work_loses_nothing),
        cmocka_unit_test(test_freed_memory_is_private_again),
        cmocka_unit_test(test_handle_of_freed_memory_opens_nothing),
        cmocka_unit_test(test_memory_refuses),
        cmocka_unit_test(test_imported_memory_ends_with_its_context),
        cmocka_unit_test(test_descriptor_of_mapped_memory),
        cmocka_unit_test(test_descriptor_may_be_imported_here),
        cmocka_unit_test(test_descriptor_refuses),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
