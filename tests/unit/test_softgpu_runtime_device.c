/* Devices through the runtime, two of them: which one a thread has, primary contexts that come and go, peers, limits.
 */
#include <cuda.h>
#include <cuda_profiler_api.h>

#include "tests/unit/softgpu_runtime_module.h"

static int current(void)
{
    int device = -1;
    ok(cudaGetDevice(&device));
    return device;
}

static bool active(int device)
{
    unsigned flags;
    int is = -1;
    ok(cuDevicePrimaryCtxGetState(device, &flags, &is));
    return is;
}

/* ---- before anything has made a context; this test comes first --------------------------------------------------- */

static void test_contexts_are_made_late(void **state)
{
    int count = 0, value, valid[] = {1, 0};
    struct cudaDeviceProp prop;
    CUcontext context;
    unsigned flags = 0;
    ok(cudaGetDeviceCount(&count));
    assert_int_equal(count, 2);
    ok(cudaGetDeviceProperties(&prop, 1));
    ok(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1));
    ok(cudaDriverGetVersion(&value));
    assert_true(value >= 13000);
    ok(cudaSetValidDevices(valid, 2));
    assert_int_equal(current(), 1);
    ok(cudaSetValidDevices(NULL, 0));
    assert_int_equal(current(), 0);
    ok(cudaGetDeviceFlags(&flags));
    assert_int_equal(flags, cudaDeviceMapHost);
    assert_false(active(0) || active(1));
    ok(cudaInitDevice(1, cudaDeviceScheduleYield, cudaInitDeviceFlagsAreValid));
    assert_true(active(1) && !active(0)); /* but is not current */
    assert_int_equal(current(), 0);
    ok(cuCtxGetCurrent(&context));
    assert_null(context);
    ok(cudaFree(NULL)); /* as programs do to have a context */
    assert_true(active(0));
    ok(cuCtxGetCurrent(&context));
    assert_non_null(context);
}

static void test_devices_refuse(void **state)
{
    int value, list[] = {0, 7, 0};
    struct cudaDeviceProp prop = {.major = 8};
    char id[64];
    sets(cudaErrorInvalidDevice, cudaSetDevice(2));
    sets(cudaErrorInvalidDevice, cudaSetDevice(-1));
    sets(cudaErrorInvalidDevice, cudaInitDevice(2, 0, 0));
    sets(cudaErrorInvalidValue, cudaInitDevice(0, 0, 6));
    sets(cudaErrorInvalidValue, cudaInitDevice(0, 1 << 20, cudaInitDeviceFlagsAreValid));
    sets(cudaErrorInvalidValue, cudaGetDevice(NULL));
    sets(cudaErrorInvalidValue, cudaGetDeviceCount(NULL));
    sets(cudaErrorInvalidValue, cudaSetValidDevices(NULL, 1));
    sets(cudaErrorInvalidValue, cudaSetValidDevices(list, 3));
    sets(cudaErrorInvalidDevice, cudaSetValidDevices(list, 2));
    sets(cudaErrorInvalidValue, cudaChooseDevice(NULL, &prop));
    sets(cudaErrorInvalidValue, cudaChooseDevice(&value, NULL));
    sets(cudaErrorInvalidValue, cudaDriverGetVersion(NULL));
    sets(cudaErrorInvalidValue, cudaRuntimeGetVersion(NULL));
    sets(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)5000, 0));
    sets(cudaErrorInvalidValue, cudaGetDeviceProperties(NULL, 0));
    sets(cudaErrorInvalidDevice, cudaGetDeviceProperties(&prop, 9));
    sets(cudaErrorInvalidDevice, cudaDeviceGetPCIBusId(id, sizeof id, 9));
    sets(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(NULL, sizeof id, 0));
    sets(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(NULL, "0000:01:00.0"));
    sets(cudaErrorInvalidDevice, cudaDeviceGetByPCIBusId(&value, "00ff:01:00.0"));
    assert_int_equal(current(), 0); /* nothing changed */
}

static void test_choosing(void **state)
{
    int device = -1;
    char id[64];
    struct cudaDeviceProp prop = {.major = 8};
    ok(cudaChooseDevice(&device, &prop));
    assert_int_equal(device, 0); /* they are alike */
    for (int i = 0; i < 2; i++) {
        ok(cudaDeviceGetPCIBusId(id, sizeof id, i));
        ok(cudaDeviceGetByPCIBusId(&device, id));
        assert_int_equal(device, i);
    }
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

static void *in_thread(void *data)
{
    int *result = data;
    struct cudaPointerAttributes a;
    void *p;
    result[0] = current(); /* a thread starts on the first, whatever the others have */
    ok(cudaSetDevice(1));
    ok(cudaMalloc(&p, 16));
    ok(cudaPointerGetAttributes(&a, p));
    result[1] = a.device;
    ok(cudaFree(p));
    return NULL;
}

static void test_every_thread_has_its_device(void **state)
{
    int result[2] = {-1, -1}, device;
    pthread_t thread;
    void *p;
    struct cudaPointerAttributes a;
    cudaStream_t s;
    ok(cudaSetDevice(1));
    pthread_create(&thread, NULL, in_thread, result);
    pthread_join(thread, NULL);
    assert_int_equal(result[0], 0);
    assert_int_equal(result[1], 1);
    assert_int_equal(current(), 1);
    ok(cudaStreamCreate(&s));
    ok(cudaSetDevice(0));
    ok(cudaStreamGetDevice(s, &device)); /* of the device it was made on */
    assert_int_equal(device, 1);
    ok(cudaStreamDestroy(s));
    ok(cudaMalloc(&p, 16));
    ok(cudaPointerGetAttributes(&a, p));
    assert_int_equal(a.device, 0);
    ok(cudaFree(p));
}

static void test_contexts_of_the_program(void **state)
{
    CUcontext own, now;
    unsigned flags = 0;
    void *p;
    ok(cudaSetDevice(0));
    ok(cuCtxCreate(&own, NULL, CU_CTX_SCHED_YIELD, 1));
    assert_int_equal(current(), 1);
    ok(cudaMalloc(&p, 16)); /* in it */
    ok(cuCtxGetCurrent(&now));
    assert_ptr_equal(now, own);
    ok(cudaGetDeviceFlags(&flags));
    assert_int_equal(flags, CU_CTX_SCHED_YIELD);
    ok(cudaDeviceReset()); /* leaves it alone */
    ok(cudaMemset(p, 0, 16));
    ok(cudaSetDevice(0)); /* binds the primary one */
    ok(cuCtxGetCurrent(&now));
    assert_ptr_not_equal(now, own);
    assert_int_equal(current(), 0);
    ok(cuCtxDestroy(own));
}

/* ---- resets ----------------------------------------------------------------------------------------------------- */

struct turn {
    pthread_barrier_t barrier;
    cudaError_t before, after;
};

static void *use_before_and_after(void *data)
{
    struct turn *t = data;
    void *p;
    t->before = cudaMalloc(&p, 16);
    pthread_barrier_wait(&t->barrier);
    pthread_barrier_wait(&t->barrier); /* reset and used in between */
    t->after = cudaMalloc(&p, 16);
    return NULL;
}

static void test_reset_and_use_after_it(void **state)
{
    struct turn t;
    pthread_t thread;
    void *p;
    unsigned v = 6, out = 0;
    void *args[] = {&p, &v};
    pthread_barrier_init(&t.barrier, NULL, 2);
    ok(cudaSetDevice(0));
    pthread_create(&thread, NULL, use_before_and_after, &t);
    pthread_barrier_wait(&t.barrier);
    assert_int_equal(__cudaInitModule(module_binary), 1);
    ok(cudaMemcpyToSymbol(&table_shadow, "changed", 8, 0, cudaMemcpyHostToDevice));
    ok(cudaDeviceReset());
    assert_false(active(0));
    assert_true(active(1));
    ok(cudaMalloc(&p, 4));
    assert_true(active(0));
    ok(cudaLaunchKernel(&store_stub, one, one, args, 0, NULL));
    ok(cudaMemcpy(&out, p, 4, cudaMemcpyDeviceToHost));
    assert_int_equal(out, 6);
    ok(cudaMemcpyFromSymbol(&out, &table_shadow, 4, 0, cudaMemcpyDeviceToHost));
    assert_int_equal(out, 0); /* variables start anew */
    pthread_barrier_wait(&t.barrier);
    pthread_join(thread, NULL);
    ok(t.before);
    ok(t.after);
    ok(cudaDeviceReset());
    ok(cudaDeviceReset()); /* of one that is not used */
}

/* A device variable is one on each device, a managed one is one for all. */
static void test_variables_of_two_devices(void **state)
{
    char out[2][4] = {"", ""};
    void *p[2];
    assert_int_equal(__cudaInitModule(module_binary), 1);
    unsigned before = *common_pointer;
    for (int i = 0; i < 2; i++) {
        ok(cudaSetDevice(i));
        ok(cudaMemcpyToSymbol(&table_shadow, i ? "one" : "two", 4, 0, cudaMemcpyHostToDevice));
        ok(cudaMalloc(&p[i], 4));
        ok(cudaMemset(p[i], 0, 4));
        ok(cudaLaunchKernel(&bump_stub, one, one, (void *[]){&p[i]}, 0, NULL));
        ok(cudaDeviceSynchronize());
        ok(cudaFree(p[i]));
    }
    for (int i = 0; i < 2; i++) {
        ok(cudaSetDevice(i));
        ok(cudaMemcpyFromSymbol(out[i], &table_shadow, 4, 0, cudaMemcpyDeviceToHost));
    }
    assert_string_equal(out[0], "two");
    assert_string_equal(out[1], "one");
    assert_int_equal(*common_pointer, before + 2);
    ok(cudaSetDevice(0));
}

/* Managed variables are there again when the device is used again. */
static void test_managed_variable_after_reset(void **state)
{
    void *p, *address;
    ok(cudaSetDevice(0));
    assert_int_equal(__cudaInitModule(module_binary), 1);
    ok(cudaDeviceReset());
    ok(cudaMalloc(&p, 4));
    ok(cudaLaunchKernel(&bump_stub, one, one, (void *[]){&p}, 0, NULL));
    ok(cudaDeviceSynchronize());
    unsigned now = *common_pointer;
    ok(cudaLaunchKernel(&bump_stub, one, one, (void *[]){&p}, 0, NULL));
    ok(cudaDeviceSynchronize());
    assert_int_equal(*common_pointer, now + 1);
    ok(cudaGetSymbolAddress(&address, common_pointer));
    assert_ptr_equal(address, common_pointer);
    ok(cudaFree(p));
}

/* An error of a kernel ends its device only; every call there tells it until the device is reset. */
static void test_sticky_errors_stay_on_their_device(void **state)
{
    void *bad = (void *)0x1000, *p;
    unsigned v = 0;
    void *args[] = {&bad, &v};
    ok(cudaSetDevice(0));
    ok(cudaLaunchKernel(&store_stub, one, one, args, 0, NULL));
    fails(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    fails(cudaErrorIllegalAddress, cudaGetLastError());
    fails(cudaErrorIllegalAddress, cudaMalloc(&p, 4));
    fails(cudaErrorIllegalAddress, cudaStreamSynchronize(NULL));
    ok(cudaSetDevice(1));
    ok(cudaMalloc(&p, 4));
    ok(cudaFree(p));
    ok(cudaSetDevice(0));
    fails(cudaErrorIllegalAddress, cudaFree(NULL) == cudaSuccess ? cudaMalloc(&p, 4) : cudaErrorIllegalAddress);
    ok(cudaDeviceReset());
    cudaGetLastError();
    ok(cudaMalloc(&p, 4));
    ok(cudaFree(p));
}

/* ---- flags and limits ------------------------------------------------------------------------------------------- */

static void test_flags(void **state)
{
    unsigned flags = 0;
    ok(cudaSetDevice(1));
    ok(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync | cudaDeviceMapHost));
    ok(cudaGetDeviceFlags(&flags));
    assert_int_equal(flags, cudaDeviceScheduleBlockingSync | cudaDeviceMapHost);
    ok(cudaSetDevice(0));
    ok(cudaGetDeviceFlags(&flags));
    assert_int_equal(flags & cudaDeviceScheduleMask, cudaDeviceScheduleAuto);
    sets(cudaErrorInvalidValue, cudaSetDeviceFlags(1 << 20));
    sets(cudaErrorInvalidValue, cudaGetDeviceFlags(NULL));
}

static void test_limits(void **state)
{
    static const enum cudaLimit limits[] = {cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize};
    size_t value = 0;
    for (size_t i = 0; i < LENGTH(limits); i++) {
        ok(cudaDeviceGetLimit(&value, limits[i]));
        assert_true(value > 0);
        ok(cudaDeviceSetLimit(limits[i], value * 2));
        size_t now = 0;
        ok(cudaDeviceGetLimit(&now, limits[i]));
        assert_true(now >= value * 2);
    }
    sets(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&value, (enum cudaLimit)99));
    sets(cudaErrorUnsupportedLimit, cudaDeviceSetLimit((enum cudaLimit)99, 1));
    sets(cudaErrorInvalidValue, cudaDeviceGetLimit(NULL, cudaLimitStackSize));
}

static void test_caches(void **state)
{
    enum cudaFuncCache cache;
    enum cudaSharedMemConfig banks;
    ok(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
    ok(cudaDeviceGetCacheConfig(&cache));
    assert_int_equal(cache, cudaFuncCachePreferShared);
    sets(cudaErrorInvalidValue, cudaDeviceSetCacheConfig((enum cudaFuncCache)9));
    sets(cudaErrorInvalidValue, cudaDeviceGetCacheConfig(NULL));
    ok(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
    ok(cudaDeviceGetSharedMemConfig(&banks));
    assert_int_equal(banks, cudaSharedMemBankSizeFourByte); /* the only one there is */
    sets(cudaErrorInvalidValue, cudaDeviceGetSharedMemConfig(NULL));
    sets(cudaErrorInvalidValue, cudaDeviceSetSharedMemConfig((enum cudaSharedMemConfig)9));
    ok(cudaCtxResetPersistingL2Cache());
    ok(cudaProfilerStart());
    ok(cudaProfilerStop());
}

/* ---- peers ------------------------------------------------------------------------------------------------------ */

static void test_peers(void **state)
{
    int value = -1;
    unsigned v = 21, out = 0, capabilities[2] = {0};
    const enum cudaAtomicOperation operations[] = {cudaAtomicOperationIntegerAdd, cudaAtomicOperationCAS};
    void *there, *here, *args[] = {&there, &v};
    ok(cudaSetDevice(1));
    ok(cudaMalloc(&there, 16));
    ok(cudaSetDevice(0));
    ok(cudaMalloc(&here, 16));
    ok(cudaDeviceCanAccessPeer(&value, 0, 1));
    assert_int_equal(value, 1);
    ok(cudaDeviceCanAccessPeer(&value, 0, 0));
    assert_int_equal(value, 0);
    ok(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
    assert_int_equal(value, 1);
    ok(cudaDeviceGetP2PAtomicCapabilities(capabilities, operations, 2, 0, 1));
    assert_true(capabilities[0] && capabilities[1]);
    memset(capabilities, 0, sizeof capabilities);
    ok(cudaDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 1));
    assert_true(capabilities[0] && capabilities[1]);
    ok(cudaDeviceEnablePeerAccess(1, 0));
    ok(cudaLaunchKernel(&store_stub, one, one, args, 0, NULL)); /* reaches over */
    ok(cudaMemcpyPeer(here, 0, there, 1, 4));
    ok(cudaMemcpy(&out, here, 4, cudaMemcpyDefault));
    assert_int_equal(out, 21);
    sets(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
    ok(cudaDeviceDisablePeerAccess(1));
    sets(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
    sets(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(1, 4));
    sets(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(0, 0)); /* itself */
    sets(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(3, 0));
    sets(cudaErrorInvalidDevice, cudaDeviceDisablePeerAccess(3));
    sets(cudaErrorInvalidValue, cudaDeviceCanAccessPeer(NULL, 0, 1));
    sets(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&value, 0, 3));
    sets(cudaErrorInvalidDevice, cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 0));
    sets(cudaErrorInvalidValue, cudaDeviceGetP2PAttribute(NULL, cudaDevP2PAttrAccessSupported, 0, 1));
    sets(cudaErrorInvalidValue, cudaDeviceGetP2PAtomicCapabilities(NULL, operations, 2, 0, 1));
    sets(cudaErrorInvalidDevice, cudaDeviceGetHostAtomicCapabilities(capabilities, operations, 2, 4));
    sets(cudaErrorInvalidValue, cudaDeviceGetHostAtomicCapabilities(capabilities, NULL, 2, 1));
    ok(cudaLaunchKernel(&store_stub, one, one, args, 0, NULL)); /* not any more */
    fails(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    ok(cudaDeviceReset());
    cudaGetLastError();
}

int main(void)
{
    setenv("SOFTGPU_DEVICES", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contexts_are_made_late),
        cmocka_unit_test(test_devices_refuse),
        cmocka_unit_test(test_choosing),
        cmocka_unit_test(test_every_thread_has_its_device),
        cmocka_unit_test(test_contexts_of_the_program),
        cmocka_unit_test(test_reset_and_use_after_it),
        cmocka_unit_test(test_variables_of_two_devices),
        cmocka_unit_test(test_managed_variable_after_reset),
        cmocka_unit_test(test_sticky_errors_stay_on_their_device),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_caches),
        cmocka_unit_test(test_peers),
    };
    return cmocka_run_group_tests(tests, register_module, unregister_module);
}
