/* Launches, what is known of kernels and variables, and libraries that the program loads itself. */
#include <dlfcn.h>

#include "tests/unit/softgpu_runtime_module.h"

static cudaStream_t stream;
static unsigned *number; /* on the device */

static int setup(void **state)
{
    register_module(state);
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
           cudaMalloc((void **)&number, 4) != cudaSuccess;
}

static int teardown(void **state)
{
    return cudaFree(number) != cudaSuccess || cudaStreamDestroy(stream) != cudaSuccess || unregister_module(state);
}

static unsigned value(void)
{
    unsigned v = 0;
    ok(cudaMemcpyAsync(&v, number, 4, cudaMemcpyDeviceToHost, stream));
    ok(cudaStreamSynchronize(stream));
    return v;
}

/* ---- launches --------------------------------------------------------------------------------------------------- */

enum { FORMS = 3 };

static cudaError_t launch(int form, const void *function, dim3 grid, dim3 block, size_t shared, unsigned v,
                          cudaStream_t s)
{
    void *args[] = {&number, &v};
    cudaLaunchConfig_t config = {.gridDim = grid, .blockDim = block, .dynamicSmemBytes = shared, .stream = s};
    switch (form) {
    case 0:
        return cudaLaunchKernel(function, grid, block, args, shared, s);
    case 1:
        return cudaLaunchKernelExC(&config, function, args);
    default:
        return cudaLaunchCooperativeKernel(function, grid, block, args, shared, s);
    }
}

static void test_launches(void **state)
{
    enum { STREAMS = 4 };
    const cudaStream_t streams[STREAMS] = {stream, NULL, cudaStreamLegacy, cudaStreamPerThread};
    for (int form = 0; form < FORMS; form++) {
        for (unsigned i = 0; i < STREAMS; i++) {
            ok(launch(form, &store_stub, one, one, 0, 10 * i + 5, streams[i]));
            ok(cudaStreamSynchronize(streams[i]));
            assert_int_equal(value(), 10 * i + 5);
        }
        struct elsewhere e;
        work_elsewhere(&e);
        ok(launch(form, &store_stub, one, one, 0, 3, NULL));
        assert_true(in_stream_0(&e));
        assert_int_equal(value(), 3);
    }
}

static void test_launches_refuse(void **state)
{
    static const struct {
        dim3 grid, block;
        size_t shared;
        cudaError_t error;
    } cases[] = {
        {{0, 1, 1}, {1, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 1}, {1, 0, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 70000, 1}, {1, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 70000}, {1, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 1}, {1025, 1, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 1}, {64, 32, 1}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 1}, {1, 1, 65}, 0, cudaErrorInvalidConfiguration},
        {{1, 1, 1}, {1, 1, 1}, 1 << 20, cudaErrorInvalidValue},
        {{1, 1, 1}, {1, 1, 1}, (size_t)1 << 32, cudaErrorInvalidValue},
    };
    for (int form = 0; form < FORMS; form++) {
        for (size_t i = 0; i < LENGTH(cases); i++)
            sets(cases[i].error, launch(form, &store_stub, cases[i].grid, cases[i].block, cases[i].shared, 0, stream));
        sets(cudaErrorInvalidDeviceFunction, launch(form, &unknown_stub, one, one, 0, 0, stream));
        sets(cudaErrorInvalidDeviceFunction, launch(form, NULL, one, one, 0, 0, stream));
        sets(cudaErrorInvalidResourceHandle, launch(form, &store_stub, one, one, 0, 0, NO_STREAM));
    }
    void *args[] = {&number, &number};
    sets(cudaErrorInvalidValue, cudaLaunchKernelExC(NULL, &store_stub, args));
    /* All blocks of a cooperative grid must fit at once. */
    const dim3 many = {1 << 20, 1, 1};
    sets(cudaErrorCooperativeLaunchTooLarge, launch(2, &store_stub, many, one, 0, 0, stream));
    ok(cudaStreamSynchronize(stream)); /* none of it was sticky */
}

static cudaError_t launch_with(cudaLaunchAttribute *attributes, unsigned count, dim3 grid)
{
    unsigned v = 8;
    void *args[] = {&number, &v};
    cudaLaunchConfig_t config = {
        .gridDim = grid, .blockDim = one, .stream = stream, .attrs = attributes, .numAttrs = count};
    return cudaLaunchKernelExC(&config, &store_stub, args);
}

static void test_launch_attributes(void **state)
{
    const dim3 many = {1 << 20, 1, 1}, two = {2, 1, 1};
    cudaLaunchAttribute a[2] = {{.id = cudaLaunchAttributeIgnore}, {.id = cudaLaunchAttributePriority}};
    ok(launch_with(a, 2, one));
    assert_int_equal(value(), 8);
    a[0] = (cudaLaunchAttribute){.id = cudaLaunchAttributeCooperative, .val = {.cooperative = 1}};
    ok(launch_with(a, 1, two));
    sets(cudaErrorCooperativeLaunchTooLarge, launch_with(a, 1, many));
    a[0].val.cooperative = 0;
    ok(launch_with(a, 1, two));
    a[0] = (cudaLaunchAttribute){.id = cudaLaunchAttributeClusterDimension, .val = {.clusterDim = {1, 1, 1}}};
    ok(launch_with(a, 1, two));
    a[0].id = (cudaLaunchAttributeID)99;
    sets(cudaErrorNotSupported, launch_with(a, 1, one));
    sets(cudaErrorInvalidValue, launch_with(NULL, 1, one));
    ok(cudaStreamSynchronize(stream));
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static void test_kernels_are_known(void **state)
{
    struct cudaFuncAttributes a;
    cudaFunction_t function;
    cudaKernel_t kernel;
    const char *name;
    size_t offset, bytes;
    ok(cudaFuncGetAttributes(&a, &bump_stub));
    assert_int_equal(a.maxThreadsPerBlock, 1024);
    assert_int_equal(a.sharedSizeBytes, 0);
    ok(cudaFuncSetAttribute(&bump_stub, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
    ok(cudaFuncGetAttributes(&a, &bump_stub));
    assert_int_equal(a.preferredShmemCarveout, 50);
    ok(cudaFuncSetCacheConfig(&bump_stub, cudaFuncCachePreferL1));
    ok(cudaFuncSetSharedMemConfig(&bump_stub, cudaSharedMemBankSizeEightByte));
    ok(cudaGetFuncBySymbol(&function, &bump_stub));
    assert_non_null(function);
    ok(cudaGetKernel(&kernel, &bump_stub));
    ok(cudaFuncGetName(&name, kernel)); /* a kernel is as good as its stub */
    assert_string_equal(name, "bump");
    ok(cudaFuncGetParamInfo(&bump_stub, 0, &offset, &bytes));
    assert_int_equal(offset, 0);
    assert_int_equal(bytes, 8);
    ok(cudaFuncGetParamInfo(&store_stub, 1, &offset, NULL));
    assert_int_equal(offset, 8);
    sets(cudaErrorInvalidValue, cudaFuncGetParamInfo(&bump_stub, 1, &offset, &bytes));
    sets(cudaErrorInvalidValue, cudaFuncGetParamInfo(&bump_stub, 0, NULL, &bytes));
    sets(cudaErrorInvalidValue, cudaFuncGetAttributes(NULL, &bump_stub));
    sets(cudaErrorInvalidValue, cudaFuncGetName(NULL, &bump_stub));
    sets(cudaErrorInvalidValue, cudaGetFuncBySymbol(NULL, &bump_stub));
    sets(cudaErrorInvalidValue, cudaGetKernel(NULL, &bump_stub));
    sets(cudaErrorInvalidValue, cudaFuncSetAttribute(&bump_stub, (enum cudaFuncAttribute)77, 1));
    sets(cudaErrorInvalidValue, cudaFuncSetAttribute(&bump_stub, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24));
    sets(cudaErrorInvalidValue, cudaFuncSetCacheConfig(&bump_stub, (enum cudaFuncCache)9));
    sets(cudaErrorInvalidValue, cudaFuncSetSharedMemConfig(&bump_stub, (enum cudaSharedMemConfig)3));
    sets(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&a, &unknown_stub));
    sets(cudaErrorInvalidDeviceFunction, cudaFuncSetCacheConfig(&unknown_stub, cudaFuncCachePreferL1));
    sets(cudaErrorInvalidDeviceFunction, cudaFuncSetSharedMemConfig(&unknown_stub, cudaSharedMemBankSizeDefault));
    sets(cudaErrorInvalidDeviceFunction, cudaGetFuncBySymbol(&function, &unknown_stub));
    sets(cudaErrorInvalidDeviceFunction, cudaGetKernel(&kernel, &unknown_stub));
}

static void test_occupancy(void **state)
{
    int blocks = -1, with_flags = -2, cluster = 0, clusters = 0;
    size_t shared = 0, for_two = 0;
    cudaLaunchConfig_t config = {.gridDim = {8, 1, 1}, .blockDim = {64, 1, 1}};
    ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &store_stub, 256, 0));
    ok(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&with_flags, &store_stub, 256, 0,
                                                              cudaOccupancyDisableCachingOverride));
    assert_true(blocks > 0 && blocks <= 2048 / 256);
    assert_int_equal(with_flags, blocks);
    ok(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, &store_stub, 1, 256));
    ok(cudaOccupancyAvailableDynamicSMemPerBlock(&for_two, &store_stub, 2, 256));
    assert_true(for_two > 0 && for_two <= shared);
    ok(cudaOccupancyMaxPotentialClusterSize(&cluster, &store_stub, &config));
    assert_true(cluster >= 1);
    sets(cudaErrorInvalidValue,
         cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, &store_stub, 256, 0, 8));
    sets(cudaErrorInvalidValue, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &store_stub, 0, 0));
    sets(cudaErrorInvalidValue, cudaOccupancyMaxActiveBlocksPerMultiprocessor(NULL, &store_stub, 256, 0));
    sets(cudaErrorInvalidValue, cudaOccupancyAvailableDynamicSMemPerBlock(NULL, &store_stub, 1, 256));
    sets(cudaErrorInvalidValue, cudaOccupancyAvailableDynamicSMemPerBlock(&shared, &store_stub, 0, 256));
    sets(cudaErrorInvalidValue, cudaOccupancyMaxPotentialClusterSize(&cluster, &store_stub, NULL));
    sets(cudaErrorInvalidValue, cudaOccupancyMaxPotentialClusterSize(NULL, &store_stub, &config));
    sets(cudaErrorInvalidValue, cudaOccupancyMaxActiveClusters(NULL, &store_stub, &config));
    sets(cudaErrorInvalidDeviceFunction, cudaOccupancyMaxActiveClusters(&clusters, &unknown_stub, &config));
    sets(cudaErrorInvalidDeviceFunction,
         cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, &unknown_stub, 256, 0, 0));
    cudaLaunchAttribute a = {.id = cudaLaunchAttributeClusterDimension, .val = {.clusterDim = {1, 1, 1}}};
    config.attrs = &a;
    config.numAttrs = 1;
    ok(cudaOccupancyMaxActiveClusters(&clusters, &store_stub, &config));
    assert_true(clusters >= 1);
}

/* ---- variables -------------------------------------------------------------------------------------------------- */

static void test_symbols(void **state)
{
    void *address = NULL;
    size_t bytes = 0;
    char out[4] = {0};
    ok(cudaGetSymbolAddress(&address, &table_shadow));
    ok(cudaGetSymbolSize(&bytes, &table_shadow));
    assert_int_equal(bytes, 64);
    ok(cudaMemcpyToSymbol(&table_shadow, "abc", 4, 60, cudaMemcpyHostToDevice));
    ok(cudaMemcpy(out, (char *)address + 60, 4, cudaMemcpyDeviceToHost));
    assert_string_equal(out, "abc");
    sets(cudaErrorInvalidValue, cudaGetSymbolAddress(NULL, &table_shadow));
    sets(cudaErrorInvalidValue, cudaGetSymbolSize(NULL, &table_shadow));
    sets(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &unknown_stub));
    sets(cudaErrorInvalidSymbol, cudaGetSymbolSize(&bytes, NULL));
}

static void test_managed_variable_on_both_sides(void **state)
{
    void *args[] = {&number};
    assert_int_equal(__cudaInitModule(module_binary), 1);
    *common_pointer = 40;
    ok(cudaLaunchKernel(&bump_stub, (dim3){2, 1, 1}, one, args, 0, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(*common_pointer, 42);
}

/* ---- libraries -------------------------------------------------------------------------------------------------- */

static void test_libraries(void **state)
{
    cudaLibrary_t library, from_file;
    cudaKernel_t kernel, all[4] = {NULL};
    unsigned count = 0;
    void *address, *function;
    size_t bytes = 0;
    char path[] = "/tmp/softgpu-module-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, MODULE, sizeof MODULE - 1) == sizeof MODULE - 1);
    close(fd);
    ok(cudaLibraryLoadFromFile(&from_file, path, NULL, NULL, 0, NULL, NULL, 0));
    ok(cudaLibraryLoadData(&library, MODULE, NULL, NULL, 0, NULL, NULL, 0));
    ok(cudaLibraryGetKernel(&kernel, library, "store"));
    ok(launch(0, kernel, one, one, 0, 77, stream));
    assert_int_equal(value(), 77);
    ok(cudaLibraryGetKernelCount(&count, from_file));
    assert_int_equal(count, 2);
    ok(cudaLibraryEnumerateKernels(all, 4, from_file));
    assert_true(all[0] && all[1] && !all[2]);
    ok(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 25, 0));
    ok(cudaLibraryGetGlobal(&address, &bytes, library, "table"));
    assert_int_equal(bytes, 64);
    ok(cudaMemset(address, 1, bytes));
    ok(cudaLibraryGetManaged(&address, &bytes, library, "common"));
    assert_int_equal(*(unsigned *)address, 11); /* its own one */
    sets(cudaErrorSymbolNotFound, cudaLibraryGetGlobal(&address, &bytes, library, "nothing"));
    sets(cudaErrorSymbolNotFound, cudaLibraryGetManaged(&address, &bytes, library, "table"));
    sets(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&kernel, library, "nothing"));
    sets(cudaErrorSymbolNotFound, cudaLibraryGetUnifiedFunction(&function, library, "nothing"));
    sets(cudaErrorInvalidValue, cudaLibraryGetKernel(NULL, library, "store"));
    sets(cudaErrorInvalidValue, cudaLibraryGetKernelCount(NULL, library));
    sets(cudaErrorInvalidValue, cudaLibraryEnumerateKernels(NULL, 4, library));
    ok(cudaLibraryGetKernel(&kernel, library, "store"));
    sets(cudaErrorInvalidDevice,
         cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 25, 9));
    sets(cudaErrorInvalidValue, cudaLibraryLoadData(NULL, MODULE, NULL, NULL, 0, NULL, NULL, 0));
    sets(cudaErrorInvalidValue, cudaLibraryLoadData(&library, NULL, NULL, NULL, 0, NULL, NULL, 0));
    sets(cudaErrorInvalidPtx, cudaLibraryLoadData(&library, ".version 7.0\nnonsense", NULL, NULL, 0, NULL, NULL, 0));
    sets(cudaErrorFileNotFound, cudaLibraryLoadFromFile(&library, "/no/such/file", NULL, NULL, 0, NULL, NULL, 0));
    ok(cudaLibraryUnload(from_file));
    sets(cudaErrorInvalidResourceHandle, cudaLibraryUnload(from_file));
    sets(cudaErrorInvalidResourceHandle, cudaLibraryGetKernelCount(&count, from_file));
    unlink(path);
}

/* ---- the driver's functions -------------------------------------------------------------------------------------- */

static void test_driver_entry_points(void **state)
{
    enum cudaDriverEntryPointQueryResult status;
    void *now, *old, *named;
    unsigned long long other = OWN_STREAM ? cudaEnableLegacyStream : cudaEnablePerThreadDefaultStream;
    ok(cudaGetDriverEntryPoint("cuLaunchKernel", &now, cudaEnableDefault, &status));
    assert_int_equal(status, cudaDriverEntryPointSuccess);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_ptr_equal(now, dlsym(library, OWN_STREAM ? "cuLaunchKernel_ptsz" : "cuLaunchKernel"));
    dlclose(library);
    ok(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &named, 12000, cudaEnableDefault, &status));
    assert_ptr_equal(named, now); /* the form of the stream that this is compiled for */
    ok(cudaGetDriverEntryPointByVersion("cuLaunchKernel", &named, 12000, other, &status));
    assert_ptr_not_equal(named, now);
    ok(cudaGetDriverEntryPointByVersion("cuLaunchKernelEx", &old, 10000, cudaEnableDefault, &status));
    assert_int_equal(status, cudaDriverEntryPointVersionNotSufficent);
    ok(cudaGetDriverEntryPointByVersion("cuNothing", &old, 12000, cudaEnableDefault, &status));
    assert_int_equal(status, cudaDriverEntryPointSymbolNotFound);
    sets(cudaErrorInvalidValue, cudaGetDriverEntryPointByVersion(NULL, &old, 12000, cudaEnableDefault, &status));
    sets(cudaErrorInvalidValue, cudaGetDriverEntryPoint("cuInit", NULL, cudaEnableDefault, &status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_launches_refuse),
        cmocka_unit_test(test_launch_attributes),
        cmocka_unit_test(test_kernels_are_known),
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_managed_variable_on_both_sides),
        cmocka_unit_test(test_libraries),
        cmocka_unit_test(test_driver_entry_points),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
