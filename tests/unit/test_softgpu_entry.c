/* How programs get into softgpu's driver: exports, look-ups, what is refused and where that is noted; contexts; the
 * device. */
#include <dlfcn.h>
#include <sys/wait.h>

#include "tests/unit/softgpu_test.h"

#include <cudaTypedefs.h>

/* ---- look-ups --------------------------------------------------------------------------------------------------- */

static void *look_up(const char *name, int version, cuuint64_t flags)
{
    void *p = &p;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    ok(cuGetProcAddress_v2(name, &p, version, flags, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
    return p;
}

static void test_get_proc_address_versions(void **state)
{
    const cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    assert_ptr_equal(look_up("cuMemAlloc", 3020, 0), (void *)cuMemAlloc_v2);
    assert_ptr_equal(look_up("cuMemAlloc", 13000, 0), (void *)cuMemAlloc_v2);
    assert_ptr_equal(look_up("cuMemAlloc", 2000, 0), (void *)cuMemAlloc);
    assert_ptr_equal(look_up("cuGetProcAddress", 12000, 0), (void *)cuGetProcAddress_v2);
    assert_ptr_equal(look_up("cuGetProcAddress", 11030, 0), (void *)cuGetProcAddress);
    assert_ptr_equal(look_up("cuCtxCreate", 13000, 0), (void *)cuCtxCreate_v4);
    assert_ptr_equal(look_up("cuLaunchKernel", 7000, 0), (void *)cuLaunchKernel);
    assert_ptr_equal(look_up("cuLaunchKernel", 7000, own), (void *)cuLaunchKernel_ptsz);
    assert_ptr_equal(look_up("cuLaunchKernel", 4000, own), (void *)cuLaunchKernel); /* older than the per-thread form */
    assert_ptr_equal(look_up("cuMemcpyHtoD", 13000, own), (void *)cuMemcpyHtoD_v2_ptds);
    assert_ptr_equal(look_up("cuMemAlloc", 13000, own), (void *)cuMemAlloc_v2); /* has none */
    assert_ptr_equal(look_up("cuStreamGetCaptureInfo", 11030, 0), (void *)cuStreamGetCaptureInfo_v2);
    assert_ptr_equal(look_up("cuGraphInstantiate", 11000, 0), (void *)cuGraphInstantiate_v2);
}

static void test_get_proc_address_refuses(void **state)
{
    void *p = &p;
    CUdriverProcAddressQueryResult status;
    ok(cuGetProcAddress_v2("cuMemFrobnicate", &p, 13000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_null(p);
    ok(cuGetProcAddress_v2("cuLaunchKernelEx", &p, 11000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_null(p);
    ok(cuGetProcAddress_v2("", &p, 13000, 0, NULL)); /* what the runtime asks first */
    assert_null(p);
    fails(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2("cuInit", &p, 13010, 0, &status));
    fails(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2("cuInit", &p, 13000, 64, &status));
    fails(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress_v2(NULL, &p, 13000, 0, &status));
    fails(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuMemFrobnicate", &p, 13000, 0));
}

/* The compiler checks that versions in the vendor's list mean the exports that they are mapped to: the types must
 * agree. */
static void test_get_proc_address_types(void **state)
{
    PFN_cuMemAlloc_v3020 alloc = cuMemAlloc_v2;
    PFN_cuCtxCreate_v11040 create = cuCtxCreate_v3;
    PFN_cuMemPrefetchAsync_v12020_ptsz prefetch = cuMemPrefetchAsync_v2_ptsz;
    PFN_cuStreamGetCaptureInfo_v12030 info = cuStreamGetCaptureInfo_v3;
    assert_ptr_equal((void *)alloc, look_up("cuMemAlloc", 3020, 0));
    assert_ptr_equal((void *)create, look_up("cuCtxCreate", 11040, 0));
    assert_ptr_equal((void *)prefetch,
                     look_up("cuMemPrefetchAsync", 12020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
    assert_ptr_equal((void *)info, look_up("cuStreamGetCaptureInfo", 12030, 0));
}

static void test_export_tables_are_refused(void **state)
{
    const void *table = &table;
    CUuuid id = {{1, 2, 3}};
    assert_int_not_equal(cuGetExportTable(&table, &id), CUDA_SUCCESS);
    assert_null(table);
    memset(&id, 0, sizeof id);
    assert_int_not_equal(cuGetExportTable(&table, &id), CUDA_SUCCESS);
}

/* Every function that the header declares, called with nothing but zeros, comes back. In a process of its own, since
 * some of them reset what others need. */
static int call_all_with_zeros(void)
{
    typedef CUresult (*any)(size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t,
                            size_t);
    static const char *const names[] = {
#define NAME(name) #name,
#include "softgpu/driver_names.h"
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int missing = 0;
    for (int round = 0; round < 2; round++) { /* before initialisation and after */
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            any function;
            void *symbol = dlsym(library, names[i]);
            memcpy(&function, &symbol, sizeof function);
            if (symbol)
                function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            else
                missing++;
            if (round && use_primary_context(NULL))
                return 2;
        }
        if (use_primary_context(NULL))
            return 2;
    }
    return missing ? 3 : 0;
}

static void test_all_functions_take_zeros(void **state)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test", "--zeros", NULL);
        _exit(9);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- what is missing says so ------------------------------------------------------------------------------------ */

/* In a child with SOFTGPU_LOG set: configuration is read once per process. */
static void test_unsupported_is_logged(void **state)
{
    char path[] = "/tmp/softgpu-log-XXXXXX", line[200];
    int fd = mkstemp(path), status, lines = 0;
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("SOFTGPU_LOG", path, 1);
        execl("/proc/self/exe", "test", "--unsupported", NULL);
        _exit(9);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    FILE *f = fopen(path, "re");
    while (fgets(line, sizeof line, f)) {
        assert_string_equal(line, "cuGraphicsUnregisterResource\n");
        lines++;
    }
    fclose(f);
    unlink(path);
    assert_int_equal(lines, 1); /* once per name */
}

static int call_unsupported(void)
{
    CUresult first = cuGraphicsUnregisterResource(NULL), second = cuGraphicsUnregisterResource(NULL);
    return first == CUDA_ERROR_NOT_SUPPORTED && second == CUDA_ERROR_NOT_SUPPORTED ? 0 : 1;
}

static void test_before_init(void **state)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test", "--before-init", NULL);
        _exit(9);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int call_before_init(void)
{
    CUcontext c;
    CUdeviceptr a;
    int n, version = 0;
    return cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED && cuMemAlloc_v2(&a, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                   cuCtxGetCurrent(&c) == CUDA_ERROR_NOT_INITIALIZED && cuInit(1) == CUDA_ERROR_INVALID_VALUE &&
                   cuDriverGetVersion(&version) == CUDA_SUCCESS && version == 13000 && cuInit(0) == CUDA_SUCCESS &&
                   cuMemAlloc_v2(&a, 4) == CUDA_ERROR_INVALID_CONTEXT
               ? 0
               : 1;
}

/* ---- errors ----------------------------------------------------------------------------------------------------- */

static void test_error_names(void **state)
{
    const char *text;
    ok(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    assert_string_equal(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    ok(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    assert_string_equal(text, "an illegal memory access was encountered");
    fails(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)12345, &text));
    assert_null(text);
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

static void test_context_stack(void **state)
{
    CUcontext primary, a, b, current;
    ok(cuCtxGetCurrent(&primary));
    ok(cuCtxCreate_v2(&a, 0, 0));
    ok(cuCtxCreate_v4(&b, NULL, CU_CTX_SCHED_YIELD, 0));
    ok(cuCtxPopCurrent_v2(&current));
    assert_ptr_equal(current, b);
    ok(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, a);
    ok(cuCtxPushCurrent_v2(b));
    ok(cuCtxDestroy_v2(b)); /* current: popped, too */
    ok(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, a);
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(b));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(b));
    ok(cuCtxDestroy_v2(a));
    ok(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, primary);
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(primary));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)&a));
}

static void test_context_takes_its_memory_along(void **state)
{
    CUcontext c;
    CUdeviceptr a;
    size_t before, after, total;
    ok(cuMemGetInfo_v2(&before, &total));
    ok(cuCtxCreate_v2(&c, 0, 0));
    ok(cuMemAlloc_v2(&a, 100 << 20));
    ok(cuCtxDestroy_v2(c));
    ok(cuMemGetInfo_v2(&after, &total));
    assert_int_equal(before, after);
}

static void test_context_ids_differ(void **state)
{
    CUcontext c;
    unsigned long long primary, own;
    ok(cuCtxGetId(NULL, &primary));
    ok(cuCtxCreate_v2(&c, 0, 0));
    ok(cuCtxGetId(NULL, &own));
    assert_true(primary != own);
    ok(cuCtxDestroy_v2(c));
}

static void test_primary_context_state(void **state)
{
    unsigned flags;
    int active;
    CUdeviceptr a;
    ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    ok(cuMemAlloc_v2(&a, 4));
    ok(cuDevicePrimaryCtxReset_v2(0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a)); /* gone with the reset */
    ok(cuDevicePrimaryCtxRelease_v2(0));
    fails(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&a, 4));
    ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    fails(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    CUcontext c;
    ok(cuDevicePrimaryCtxRetain(&c, 0));
    ok(cuMemAlloc_v2(&a, 4)); /* the same context lives again */
    ok(cuMemFree_v2(a));
}

static void test_context_limits(void **state)
{
    size_t value;
    ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    ok(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    assert_int_equal(value, 4096);
    fails(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, (CUlimit)99));
}

/* ---- the device ------------------------------------------------------------------------------------------------- */

static int attribute(CUdevice_attribute a)
{
    int value = -1;
    ok(cuDeviceGetAttribute(&value, a, 0));
    return value;
}

static void test_device_description(void **state)
{
    char name[64], bus[32];
    int count, value;
    size_t bytes;
    CUdevice d = 7;
    CUuuid uuid;
    ok(cuDeviceGetCount(&count));
    assert_int_equal(count, 1);
    ok(cuDeviceGet(&d, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&d, 1));
    ok(cuDeviceGetName(name, sizeof name, d));
    assert_string_equal(name, "softgpu");
    ok(cuDeviceTotalMem_v2(&bytes, d));
    assert_true(bytes >= 64 << 20);
    ok(cuDeviceGetUuid_v2(&uuid, d));
    ok(cuDeviceGetPCIBusId(bus, sizeof bus, d));
    d = 7;
    ok(cuDeviceGetByPCIBusId(&d, bus));
    assert_int_equal(d, 0);
    for (int a = 1; a < CU_DEVICE_ATTRIBUTE_MAX; a++)
        ok(cuDeviceGetAttribute(&value, (CUdevice_attribute)a, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1));
}

static void test_device_attributes_agree(void **state)
{
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) +
                    attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK) <=
                attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    assert_true(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) <=
                attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
    assert_int_equal(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED), 1);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--unsupported"))
        return call_unsupported();
    if (argc > 1 && !strcmp(argv[1], "--zeros"))
        return call_all_with_zeros();
    if (argc > 1 && !strcmp(argv[1], "--before-init"))
        return call_before_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get_proc_address_versions),
        cmocka_unit_test(test_get_proc_address_refuses),
        cmocka_unit_test(test_get_proc_address_types),
        cmocka_unit_test(test_export_tables_are_refused),
        cmocka_unit_test(test_all_functions_take_zeros),
        cmocka_unit_test(test_unsupported_is_logged),
        cmocka_unit_test(test_before_init),
        cmocka_unit_test(test_error_names),
        cmocka_unit_test(test_context_stack),
        cmocka_unit_test(test_context_takes_its_memory_along),
        cmocka_unit_test(test_context_ids_differ),
        cmocka_unit_test(test_primary_context_state),
        cmocka_unit_test(test_context_limits),
        cmocka_unit_test(test_device_description),
        cmocka_unit_test(test_device_attributes_agree),
    };
    return cmocka_run_group_tests(tests, use_primary_context, reset_context);
}
