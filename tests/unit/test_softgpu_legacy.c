/* Launches as before cuLaunchKernel, loading states and settings of functions, occupancy in its rarer forms, the
 * driver's log. */
#include <pthread.h>

#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

static const char PTX[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".extern .shared .align 4 .b8 dynamic[];\n"
    /* out[linear index of the thread] = a + int(f) + shared bytes */
    ".visible .entry sum(.param .u64 out, .param .u32 a, .param .f32 f) {\n"
    "  .reg .u64 %rd<3>; .reg .u32 %r<9>; .reg .f32 %f1;\n"
    "  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [a]; ld.param.f32 %f1, [f];\n"
    "  cvt.rzi.u32.f32 %r2, %f1; add.u32 %r1, %r1, %r2; mov.u32 %r2, %dynamic_smem_size; add.u32 %r1, %r1, %r2;\n"
    "  mov.u32 %r3, %ctaid.y; mov.u32 %r4, %nctaid.x; mov.u32 %r5, %ctaid.x; mad.lo.u32 %r3, %r3, %r4, %r5;\n"
    "  mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x; mad.lo.u32 %r3, %r3, %r4, %r5;\n"
    "  mul.wide.u32 %rd2, %r3, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r1; ret;\n}\n"
    ".visible .entry bounded(.param .u64 p) .maxntid 64, 1, 1 { ret; }\n"
    ".visible .entry give_up() { trap; }\n";

static CUmodule module;
static CUdeviceptr buffer;

static int setup(void **state)
{
    return cuModuleLoadData(&module, PTX) != CUDA_SUCCESS || cuMemAlloc_v2(&buffer, 4096) != CUDA_SUCCESS ||
           cuMemsetD8_v2(buffer, 0, 4096) != CUDA_SUCCESS;
}

static CUfunction function(const char *name)
{
    CUfunction f = NULL;
    ok(cuModuleGetFunction(&f, module, name));
    return f;
}

static void set_up_sum(CUfunction f, int block, unsigned shared, unsigned a)
{
    ok(cuFuncSetBlockShape(f, block, 1, 1));
    ok(cuFuncSetSharedSize(f, shared));
    ok(cuParamSetSize(f, 16));
    ok(cuParamSetv(f, 0, &buffer, 8));
    ok(cuParamSeti(f, 8, a));
    ok(cuParamSetf(f, 12, 3.5f));
}

/* How many words of the buffer have the value, which must be the first ones. */
static int words_with(uint32_t value)
{
    uint32_t out[1024];
    int n = 0;
    ok(cuMemcpyDtoH_v2(out, buffer, sizeof out));
    while (n < 1024 && out[n] == value)
        n++;
    for (int i = n; i < 1024; i++)
        assert_int_not_equal(out[i], value);
    ok(cuMemsetD8_v2(buffer, 0, 4096));
    ok(cuStreamSynchronize(CU_STREAM_LEGACY)); /* other streams are not ordered against it */
    return n;
}

static void test_launch_in_three_ways(void **state)
{
    struct gate g = {0};
    CUfunction f = function("sum");
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    set_up_sum(f, 32, 0, 10);
    ok(cuLaunch(f));
    assert_int_equal(words_with(13), 32);
    set_up_sum(f, 8, 128, 20); /* settings stay until they are changed */
    ok(cuLaunchGrid(f, 3, 2));
    assert_int_equal(words_with(151), 48);
    ok(cuParamSeti(f, 8, 30));
    ok(cuLaunchGrid(f, 1, 1));
    assert_int_equal(words_with(161), 8);
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuLaunchGridAsync(f, 2, 1, s));
    ok(cuParamSeti(f, 8, 99)); /* the launch took its own */
    assert_int_equal(words_with(161), 0);
    atomic_store(&g.open, true);
    ok(cuStreamSynchronize(s));
    assert_int_equal(words_with(161), 16);
    ok(cuStreamDestroy_v2(s));
}

static void test_settings_refuse(void **state)
{
    CUfunction f = function("sum"), none = (CUfunction)&buffer;
    fails(CUDA_ERROR_INVALID_VALUE, cuLaunch(f)); /* no shape yet */
    set_up_sum(f, 32, 0, 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(f, 0, 1, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(f, 1, -1, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuParamSetv(f, -1, &buffer, 8));
    fails(CUDA_ERROR_INVALID_VALUE, cuParamSetv(f, 0, NULL, 8));
    fails(CUDA_ERROR_INVALID_VALUE, cuParamSetv(f, 8, &buffer, 1 << 20));
    fails(CUDA_ERROR_INVALID_VALUE, cuParamSetSize(f, 1 << 20));
    fails(CUDA_ERROR_INVALID_VALUE, cuParamSeti(f, 1 << 20, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuParamSetf(f, -4, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(f, 0, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(f, 1, -1));
    fails(CUDA_ERROR_INVALID_HANDLE, cuLaunchGridAsync(f, 1, 1, (CUstream)0x1234));
    ok(cuParamSetSize(f, 8)); /* less than the kernel has */
    fails(CUDA_ERROR_INVALID_VALUE, cuLaunch(f));
    ok(cuFuncSetBlockShape(f, 1024, 2, 1));
    ok(cuParamSetSize(f, 16));
    fails(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(f, 1, 1));
    fails(CUDA_ERROR_INVALID_HANDLE, cuFuncSetBlockShape(none, 1, 1, 1));
    fails(CUDA_ERROR_INVALID_HANDLE, cuFuncSetSharedSize(none, 1));
    fails(CUDA_ERROR_INVALID_HANDLE, cuParamSetSize(none, 1));
    fails(CUDA_ERROR_INVALID_HANDLE, cuLaunch(none));
    assert_int_equal(words_with(3), 0);
}

/* ---- functions -------------------------------------------------------------------------------------------------- */

static void test_functions_are_loaded(void **state)
{
    CUfunction f = function("sum"), none = (CUfunction)&buffer;
    CUfunctionLoadingState loading = 42;
    CUmoduleLoadingMode mode = 42;
    ok(cuFuncLoad(f));
    ok(cuFuncIsLoaded(&loading, f));
    assert_int_equal(loading, CU_FUNCTION_LOADING_STATE_LOADED);
    fails(CUDA_ERROR_INVALID_VALUE, cuFuncIsLoaded(NULL, f));
    fails(CUDA_ERROR_INVALID_HANDLE, cuFuncIsLoaded(&loading, none));
    fails(CUDA_ERROR_INVALID_HANDLE, cuFuncLoad(none));
    ok(cuModuleGetLoadingMode(&mode));
    assert_true(mode == CU_MODULE_EAGER_LOADING || mode == CU_MODULE_LAZY_LOADING);
    fails(CUDA_ERROR_INVALID_VALUE, cuModuleGetLoadingMode(NULL));
    ok(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_SHARED));
    fails(CUDA_ERROR_INVALID_VALUE, cuFuncSetCacheConfig(f, 9));
    fails(CUDA_ERROR_INVALID_HANDLE, cuFuncSetCacheConfig(none, 0));
    ok(cuFuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
    fails(CUDA_ERROR_INVALID_VALUE, cuFuncSetSharedMemConfig(f, 9));
    fails(CUDA_ERROR_INVALID_HANDLE, cuFuncSetSharedMemConfig(none, 0));
}

static void test_kernels_of_a_library(void **state)
{
    CUlibrary library;
    CUkernel k;
    CUfunction f;
    size_t offset = 42, bytes = 42;
    int value = 0;
    void *nothing;
    ok(cuLibraryLoadData(&library, PTX, NULL, NULL, 0, NULL, NULL, 0));
    ok(cuLibraryGetKernel(&k, library, "sum"));
    ok(cuKernelGetParamInfo(k, 2, &offset, &bytes));
    assert_int_equal(offset, 12);
    assert_int_equal(bytes, 4);
    fails(CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo(k, 3, &offset, &bytes));
    fails(CUDA_ERROR_INVALID_HANDLE, cuKernelGetParamInfo((CUkernel)&k, 0, &offset, &bytes));
    ok(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000, k, 0));
    ok(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0));
    assert_int_equal(value, 60000);
    ok(cuKernelGetFunction(&f, k)); /* holds for its function in a context, too */
    ok(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    assert_int_equal(value, 60000);
    fails(CUDA_ERROR_INVALID_VALUE,
          cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20, k, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1, k, 9));
    fails(CUDA_ERROR_INVALID_VALUE, cuKernelGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 9));
    ok(cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuKernelSetCacheConfig(k, 9, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, 9));
    fails(CUDA_ERROR_NOT_FOUND, cuLibraryGetUnifiedFunction(&nothing, library, "sum")); /* no kernel is one */
    fails(CUDA_ERROR_INVALID_HANDLE, cuLibraryGetUnifiedFunction(&nothing, (CUlibrary)&k, "sum"));
    ok(cuLibraryUnload(library));
}

static void test_occupancy_with_flags(void **state)
{
    CUfunction f = function("bounded");
    int plain = 0, flagged = 0, grid = 0, block = 0, sms;
    ok(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&plain, f, 64, 0));
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&flagged, f, 64, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
    assert_true(plain > 0);
    assert_int_equal(flagged, plain);
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&flagged, f, 65, 0, 0));
    assert_int_equal(flagged, 0); /* more than the kernel takes */
    fails(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&flagged, f, 64, 0, 8));
    fails(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(NULL, f, 64, 0, 0));
    ok(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, NULL, 0, 0, CU_OCCUPANCY_DEFAULT));
    assert_int_equal(block, 64);
    assert_int_equal(grid, plain * sms);
    ok(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, NULL, 0, 32, 0));
    assert_int_equal(block, 32);
    fails(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, f, NULL, 0, 0, 8));
    fails(CUDA_ERROR_INVALID_HANDLE,
          cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, (CUfunction)&grid, NULL, 0, 0, 0));
}

static void test_clusters_are_single_blocks(void **state)
{
    CUfunction f = function("bounded");
    CUlaunchAttribute cluster = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1, 1, 1}};
    CUlaunchConfig config = {.gridDimX = 8,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 64,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .attrs = &cluster,
                             .numAttrs = 1};
    int size = 0, clusters = 0, blocks, sms;
    ok(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 64, 0));
    ok(cuOccupancyMaxPotentialClusterSize(&size, f, &config));
    assert_int_equal(size, 1);
    ok(cuOccupancyMaxActiveClusters(&clusters, f, &config));
    assert_int_equal(clusters, blocks * sms);
    cluster.value.clusterDim.x = 2;
    fails(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&clusters, f, &config));
    config.numAttrs = 0; /* it has to be said */
    fails(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuOccupancyMaxActiveClusters(&clusters, f, &config));
    fails(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveClusters(NULL, f, &config));
    fails(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxPotentialClusterSize(&size, f, NULL));
    fails(CUDA_ERROR_INVALID_HANDLE, cuOccupancyMaxPotentialClusterSize(&size, (CUfunction)&size, &config));
}

/* ---- the log ---------------------------------------------------------------------------------------------------- */

static char heard[512];
static int heard_count;

static void hear(void *data, CUlogLevel level, char *message, size_t length)
{
    if (data == &heard_count && level == CU_LOG_LEVEL_ERROR && length < sizeof heard && message[length] == 0) {
        memcpy(heard, message, length + 1);
        heard_count++;
    }
}

/* Something that this device refuses, by name. */
static void be_refused(void)
{
    CUarray a;
    CUDA_ARRAY3D_DESCRIPTOR sparse = {
        .Width = 8, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SPARSE};
    fails(CUDA_ERROR_NOT_SUPPORTED, cuArray3DCreate_v2(&a, &sparse));
}

static void test_log_callbacks(void **state)
{
    CUlogsCallbackHandle callback;
    fails(CUDA_ERROR_INVALID_VALUE, cuLogsRegisterCallback(NULL, NULL, &callback));
    ok(cuLogsRegisterCallback(hear, &heard_count, &callback));
    heard_count = 0;
    be_refused();
    assert_int_equal(heard_count, 1);
    assert_non_null(strstr(heard, "][CUDA][E] arrays: sparse"));
    be_refused(); /* each time, not once */
    assert_int_equal(heard_count, 2);
    ok(cuLogsUnregisterCallback(callback));
    be_refused();
    assert_int_equal(heard_count, 2);
    fails(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(callback));
}

static void test_log_tells_of_faults(void **state)
{
    CUlogIterator at;
    char text[2048];
    size_t bytes = sizeof text;
    ok(cuLogsCurrent(&at, 0));
    ok(cuLaunchKernel(function("give_up"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    fails(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    ok(cuLogsDumpToMemory(&at, text, &bytes, 0));
    assert_non_null(strstr(text, "give_up"));
    assert_int_equal(bytes, strlen(text));
}

static void test_log_iterator_advances(void **state)
{
    CUlogIterator at;
    char text[2048], path[] = "/tmp/softgpu-log-XXXXXX";
    size_t bytes = sizeof text;
    ok(cuLogsCurrent(&at, 0));
    ok(cuLogsDumpToMemory(&at, text, &bytes, 0));
    assert_int_equal(bytes, 0); /* nothing new is no error */
    be_refused();
    bytes = sizeof text;
    CUlogIterator copy = at;
    ok(cuLogsDumpToMemory(&at, text, &bytes, 0));
    assert_true(bytes > 0 && text[bytes - 1] == '\n' && !strchr(text, '\n')[1]);
    bytes = sizeof text;
    ok(cuLogsDumpToMemory(&at, text, &bytes, 0));
    assert_int_equal(bytes, 0);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    ok(cuLogsDumpToFile(&copy, path, 0));
    ssize_t n = read(fd, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = 0;
    assert_non_null(strstr(text, "arrays: sparse"));
    assert_int_equal(copy, at);
    close(fd);
    unlink(path);
    fails(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(NULL, "/nowhere/at/all", 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(NULL, NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(&at, 1));
}

/* A buffer that is too small gets the newest messages and the remark that there were others; so does a full log. */
static void test_log_is_cut(void **state)
{
    CUlogIterator at;
    char text[200], all[1 << 16];
    size_t bytes = sizeof text;
    ok(cuLogsCurrent(&at, 0));
    for (int i = 0; i < 5; i++)
        be_refused();
    CUlogIterator before = at;
    ok(cuLogsDumpToMemory(&at, text, &bytes, 0));
    assert_memory_equal(text, "[...]", 5);
    assert_int_equal(text[bytes - 1], '\n');
    assert_int_equal(bytes, strlen(text));
    bytes = 4;
    at = before;
    fails(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&at, text, &bytes, 0));
    assert_int_equal(bytes, 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&at, NULL, &bytes, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&at, text, NULL, 0));
    for (int i = 0; i < 300; i++)
        be_refused();
    bytes = sizeof all;
    ok(cuLogsDumpToMemory(&before, all, &bytes, 0));
    assert_memory_equal(all, "[...]", 5);
    assert_true(bytes <= 25600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_launch_in_three_ways, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_settings_refuse, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_functions_are_loaded, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_kernels_of_a_library, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_occupancy_with_flags, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_clusters_are_single_blocks, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_log_callbacks, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_log_tells_of_faults, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_log_iterator_advances, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_log_is_cut, setup, reset_context),
    };
    return cmocka_run_group_tests(tests, use_primary_context, NULL);
}
