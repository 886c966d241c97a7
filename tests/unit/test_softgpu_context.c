/* Contexts: their stack and its older names, settings, events over whole contexts; what is told about the device. */
#include <pthread.h>

#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

#include <cudaProfiler.h>

/* ---- making and ending ------------------------------------------------------------------------------------------ */

static CUcontext current(void)
{
    CUcontext c;
    ok(cuCtxGetCurrent(&c));
    return c;
}

static void test_older_names_work_on_the_same_stack(void **state)
{
    static const struct {
        CUresult (*create)(CUcontext *, unsigned, CUdevice), (*destroy)(CUcontext), (*push)(CUcontext),
            (*pop)(CUcontext *);
    } names[] = {{cuCtxCreate, cuCtxDestroy, cuCtxPushCurrent, cuCtxPopCurrent},
                 {cuCtxCreate_v2, cuCtxDestroy_v2, cuCtxPushCurrent_v2, cuCtxPopCurrent_v2}};
    CUcontext before = current();
    for (int i = 0; i < 2; i++) {
        CUcontext c, popped = NULL;
        fails(CUDA_ERROR_INVALID_DEVICE, names[i].create(&c, 0, 99));
        fails(CUDA_ERROR_INVALID_VALUE, names[i].create(&c, 0x8000, 0));
        fails(CUDA_ERROR_INVALID_VALUE, names[i].create(NULL, 0, 0));
        ok(names[i].create(&c, CU_CTX_SCHED_YIELD, 0));
        assert_ptr_equal(current(), c);
        ok(names[i].pop(&popped));
        assert_ptr_equal(popped, c);
        assert_ptr_equal(current(), before);
        ok(names[i].push(c));
        assert_ptr_equal(current(), c);
        fails(CUDA_ERROR_INVALID_CONTEXT, names[i].push((CUcontext)&c));
        ok(names[i].destroy(c));
        assert_ptr_equal(current(), before);
        fails(CUDA_ERROR_INVALID_CONTEXT, names[i].destroy(c));
        fails(CUDA_ERROR_INVALID_CONTEXT, names[i].destroy(before)); /* not the primary one */
        fails(CUDA_ERROR_INVALID_CONTEXT, names[i].push(c));
    }
}

static void test_attach_counts_uses(void **state)
{
    CUcontext c, again = NULL, before = current();
    ok(cuCtxCreate_v2(&c, 0, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(&again, 1));
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(NULL, 0));
    ok(cuCtxAttach(&again, 0));
    assert_ptr_equal(again, c);
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxDetach(before)); /* not the current one */
    ok(cuCtxDetach(c));
    assert_ptr_equal(current(), c); /* the use of its creator is left */
    ok(cuCtxDetach(c));
    assert_ptr_equal(current(), before);
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(c));
}

static void test_affinity_is_not_there(void **state)
{
    CUcontext c;
    CUexecAffinityParam p = {.type = CU_EXEC_AFFINITY_TYPE_SM_COUNT, .param.smCount.val = 2};
    CUctxCreateParams params = {.execAffinityParams = &p, .numExecAffinityParams = 1};
    int supported = 1;
    ok(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    assert_int_equal(supported, 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 9));
    fails(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate_v3(&c, &p, 1, 0, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v3(&c, NULL, 1, 0, 0));
    fails(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate_v4(&c, &params, 0, 0));
    fails(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxGetExecAffinity(&p, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxGetExecAffinity(&p, CU_EXEC_AFFINITY_TYPE_MAX));
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    ok(cuCtxCreate_v3(&c, NULL, 0, 0, 0));
    ok(cuCtxDestroy_v2(c));
}

static void test_primary_context_older_names(void **state)
{
    static const struct {
        CUresult (*release)(CUdevice), (*reset)(CUdevice), (*set_flags)(CUdevice, unsigned);
    } names[] = {{cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxReset, cuDevicePrimaryCtxSetFlags},
                 {cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxReset_v2, cuDevicePrimaryCtxSetFlags_v2}};
    for (int i = 0; i < 2; i++) {
        CUcontext c;
        CUdeviceptr a;
        unsigned flags = 0;
        int active = 0;
        ok(names[i].set_flags(0, CU_CTX_SCHED_SPIN));
        ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
        assert_int_equal(flags, CU_CTX_SCHED_SPIN);
        assert_int_equal(active, 1);
        fails(CUDA_ERROR_INVALID_VALUE, names[i].set_flags(0, 0x8000));
        fails(CUDA_ERROR_INVALID_DEVICE, names[i].set_flags(9, 0));
        ok(cuMemAlloc_v2(&a, 64));
        ok(names[i].reset(0)); /* who holds it finds it fresh */
        fails(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(a));
        fails(CUDA_ERROR_INVALID_DEVICE, names[i].reset(9));
        ok(cuDevicePrimaryCtxRetain(&c, 0));
        ok(names[i].release(0));
        ok(cuCtxSynchronize()); /* the fixture still holds it */
        ok(names[i].release(0));
        fails(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
        fails(CUDA_ERROR_INVALID_CONTEXT, names[i].release(0));
        fails(CUDA_ERROR_INVALID_DEVICE, names[i].release(9));
        ok(cuDevicePrimaryCtxRetain(&c, 0));
        ok(names[i].set_flags(0, 0));
    }
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

static void test_context_says_what_it_is(void **state)
{
    CUcontext c;
    CUdevice device = 42;
    unsigned flags = 42, version = 0;
    ok(cuCtxCreate_v2(&c, CU_CTX_SCHED_BLOCKING_SYNC, 0));
    ok(cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
    device = 42;
    ok(cuCtxPopCurrent_v2(NULL));
    ok(cuCtxGetDevice_v2(&device, c)); /* not the current one */
    assert_int_equal(device, 0);
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxGetDevice(NULL));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice_v2(&device, (CUcontext)&c));
    ok(cuCtxGetApiVersion(c, &version));
    assert_int_equal(version, 3020);
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxGetApiVersion(c, NULL));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetApiVersion((CUcontext)&c, &version));
    ok(cuCtxPushCurrent_v2(c));
    ok(cuCtxGetFlags(&flags));
    assert_int_equal(flags, CU_CTX_SCHED_BLOCKING_SYNC);
    ok(cuCtxSetFlags(CU_CTX_SCHED_SPIN));
    ok(cuCtxGetFlags(&flags));
    assert_int_equal(flags, CU_CTX_SCHED_SPIN);
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(0x8000));
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxGetFlags(NULL));
    ok(cuCtxDestroy_v2(c));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice_v2(&device, c));
}

static void test_cache_and_banks(void **state)
{
    CUfunc_cache cache = 42;
    CUsharedconfig banks = 42;
    ok(cuCtxGetCacheConfig(&cache));
    assert_int_equal(cache, CU_FUNC_CACHE_PREFER_NONE);
    ok(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    ok(cuCtxGetCacheConfig(&cache));
    assert_int_equal(cache, CU_FUNC_CACHE_PREFER_L1);
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig(9));
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxGetCacheConfig(NULL));
    ok(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)); /* taken, as on devices with fixed banks */
    ok(cuCtxGetSharedMemConfig(&banks));
    assert_int_equal(banks, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxSetSharedMemConfig(9));
    fails(CUDA_ERROR_INVALID_VALUE, cuCtxGetSharedMemConfig(NULL));
}

/* Without a context, and with one that is gone, each of these says so. */
static void *without_context(void *out)
{
    CUdevice device;
    unsigned flags;
    CUfunc_cache cache;
    CUsharedconfig banks;
    CUcontext c;
    CUexecAffinityParam p;
    size_t limit;
    const CUresult none = CUDA_ERROR_INVALID_CONTEXT;
    int *wrong = out;
    *wrong = cuCtxGetDevice(&device) != none;
    *wrong += cuCtxGetFlags(&flags) != none;
    *wrong += cuCtxSetFlags(0) != none;
    *wrong += cuCtxGetCacheConfig(&cache) != none;
    *wrong += cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1) != none;
    *wrong += cuCtxGetSharedMemConfig(&banks) != none;
    *wrong += cuCtxSetSharedMemConfig(0) != none;
    *wrong += cuCtxAttach(&c, 0) != none;
    *wrong += cuCtxDetach(NULL) != none;
    *wrong += cuCtxPopCurrent(&c) != none;
    *wrong += cuCtxGetExecAffinity(&p, 0) != none;
    *wrong += cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE) != none;
    *wrong += cuCtxResetPersistingL2Cache() != none;
    *wrong += cuProfilerStart() != none;
    *wrong += cuProfilerStop() != none;
    *wrong += cuCtxSynchronize_v2(NULL) != none;
    return NULL;
}

static void test_no_context(void **state)
{
    pthread_t thread;
    int wrong = 42;
    pthread_create(&thread, NULL, without_context, &wrong);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    ok(cuCtxResetPersistingL2Cache());
    ok(cuProfilerStart());
    ok(cuProfilerStop());
}

static void test_synchronize_names_a_context(void **state)
{
    struct gate g = {0};
    atomic_bool flag = false;
    CUcontext c;
    CUstream s;
    ok(cuCtxCreate_v2(&c, 0, 0));
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuLaunchHostFunc(s, set_flag, &flag));
    ok(cuCtxPopCurrent_v2(NULL));
    ok(cuCtxSynchronize()); /* of the current one only */
    assert_false(atomic_load(&flag));
    atomic_store(&g.open, true);
    ok(cuCtxSynchronize_v2(c));
    assert_true(atomic_load(&flag));
    ok(cuCtxSynchronize_v2(NULL));
    ok(cuCtxDestroy_v2(c));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize_v2(c));
}

/* ---- events over all streams of a context ----------------------------------------------------------------------- */

static void test_record_takes_in_all_streams(void **state)
{
    struct gate g[2] = {{0}};
    CUstream s[2];
    CUevent e;
    ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < 2; i++) {
        ok(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
        ok(cuLaunchHostFunc(s[i], wait_at, &g[i]));
    }
    ok(cuCtxRecordEvent(current(), e));
    fails(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    struct gate later = {0};
    atomic_store(&g[0].open, true);
    ok(cuStreamSynchronize(s[0]));
    ok(cuLaunchHostFunc(s[0], wait_at, &later)); /* not part of it */
    fails(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    atomic_store(&g[1].open, true);
    ok(cuEventSynchronize(e));
    ok(cuEventQuery(e));
    fails(CUDA_ERROR_NOT_READY, cuStreamQuery(s[0]));
    atomic_store(&later.open, true);
    ok(cuCtxSynchronize());
    for (int i = 0; i < 2; i++)
        ok(cuStreamDestroy_v2(s[i]));
    ok(cuEventDestroy(e));
}

static void test_wait_holds_all_later_work(void **state)
{
    struct gate g = {0};
    atomic_bool earlier = false, in_new_stream = false, in_legacy = false, elsewhere = false;
    CUcontext mine = current(), other;
    CUstream s, before, after, t;
    CUevent e;
    ok(cuEventCreate(&e, 0));
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&before, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuEventRecord(e, s));
    ok(cuLaunchHostFunc(before, set_flag, &earlier));
    ok(cuCtxWaitEvent(mine, e));
    ok(cuStreamCreate(&after, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(after, set_flag, &in_new_stream));
    ok(cuLaunchHostFunc(NULL, set_flag, &in_legacy));
    ok(cuCtxCreate_v2(&other, 0, 0));
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(t, set_flag, &elsewhere));
    assert_true(soon(&earlier)); /* was there before */
    assert_true(soon(&elsewhere));
    assert_true(not_yet(&in_new_stream));
    assert_true(not_yet(&in_legacy));
    /* An event of another context may be waited for. */
    atomic_bool here = false;
    ok(cuCtxWaitEvent(other, e));
    ok(cuLaunchHostFunc(t, set_flag, &here));
    assert_true(not_yet(&here));
    atomic_store(&g.open, true);
    assert_true(soon(&in_new_stream));
    assert_true(soon(&in_legacy));
    assert_true(soon(&here));
    ok(cuCtxDestroy_v2(other));
    ok(cuCtxSynchronize());
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(before));
    ok(cuStreamDestroy_v2(after));
    ok(cuEventDestroy_v2(e));
}

static void test_context_events_refuse(void **state)
{
    CUcontext mine = current(), other;
    CUevent e;
    ok(cuEventCreate(&e, 0));
    ok(cuCtxWaitEvent(mine, e)); /* never recorded: nothing to wait for */
    ok(cuCtxSynchronize());
    ok(cuCtxCreate_v2(&other, 0, 0));
    fails(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(other, e)); /* the event is of another context */
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxRecordEvent((CUcontext)&e, e));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxWaitEvent((CUcontext)&e, e));
    fails(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(mine, (CUevent)&e));
    fails(CUDA_ERROR_INVALID_HANDLE, cuCtxWaitEvent(mine, (CUevent)&e));
    ok(cuCtxDestroy_v2(other));
    fails(CUDA_ERROR_INVALID_CONTEXT, cuCtxWaitEvent(other, e));
    ok(cuEventDestroy_v2(e));
    fails(CUDA_ERROR_INVALID_HANDLE, cuCtxWaitEvent(mine, e));
}

/* ---- the device ------------------------------------------------------------------------------------------------- */

static void test_device_older_names(void **state)
{
    CUuuid a, b;
    int major = 0, minor = -1, value;
    unsigned small = 0;
    size_t bytes = 0;
    CUdevprop p;
    ok(cuDeviceGetUuid(&a, 0));
    ok(cuDeviceGetUuid_v2(&b, 0));
    assert_memory_equal(&a, &b, sizeof a);
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetUuid(NULL, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetUuid(&a, 9));
    ok(cuDeviceTotalMem_v2(&bytes, 0));
    ok(cuDeviceTotalMem(&small, 0)); /* as much as fits its 32 bits */
    assert_int_equal(small, bytes < UINT32_MAX ? bytes : UINT32_MAX);
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceTotalMem(&small, 9));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceTotalMem(NULL, 0));
    ok(cuDeviceComputeCapability(&major, &minor, 0));
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    assert_int_equal(major, value);
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    assert_int_equal(minor, value);
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceComputeCapability(&major, NULL, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceComputeCapability(&major, &minor, 9));
    ok(cuDeviceGetProperties(&p, 0));
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0));
    assert_int_equal(p.maxThreadsPerBlock, value);
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0));
    assert_int_equal(p.maxGridSize[0], value);
    ok(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0));
    assert_int_equal(p.textureAlign, value);
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetProperties(NULL, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetProperties(&p, -1));
}

static void test_texture_width(void **state)
{
    size_t floats = 0, quads = 0;
    int linear;
    ok(cuDeviceGetAttribute(&linear, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 0));
    ok(cuDeviceGetTexture1DLinearMaxWidth(&floats, CU_AD_FORMAT_FLOAT, 1, 0));
    ok(cuDeviceGetTexture1DLinearMaxWidth(&quads, CU_AD_FORMAT_FLOAT, 4, 0));
    assert_true(floats > 0 && quads > 0 && quads <= floats && floats <= (size_t)linear);
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(NULL, CU_AD_FORMAT_FLOAT, 1, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetTexture1DLinearMaxWidth(&floats, CU_AD_FORMAT_FLOAT, 3, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetTexture1DLinearMaxWidth(&floats, CU_AD_FORMAT_FLOAT, 1, 9));
}

static void test_host_atomics(void **state)
{
    CUatomicOperation asked[] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_CAS,
                                 CU_ATOMIC_OPERATION_FLOAT_ADD, CU_ATOMIC_OPERATION_FLOAT_MIN};
    unsigned can[4] = {0};
    ok(cuDeviceGetHostAtomicCapabilities(can, asked, 4, 0));
    assert_int_equal(can[0], CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED |
                                 CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32 |
                                 CU_ATOMIC_CAPABILITY_SCALAR_64);
    assert_int_equal(can[1] & CU_ATOMIC_CAPABILITY_REDUCTION, 0);
    assert_int_equal(can[2] & CU_ATOMIC_CAPABILITY_UNSIGNED, 0);
    assert_int_equal(can[3], 0);
    fails(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetHostAtomicCapabilities(can, asked, 4, 9));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(NULL, asked, 4, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, NULL, 4, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, asked, 0, 0));
    asked[3] = CU_ATOMIC_OPERATION_MAX;
    fails(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, asked, 4, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_older_names_work_on_the_same_stack),
        cmocka_unit_test(test_attach_counts_uses),
        cmocka_unit_test(test_affinity_is_not_there),
        cmocka_unit_test(test_primary_context_older_names),
        cmocka_unit_test(test_context_says_what_it_is),
        cmocka_unit_test(test_cache_and_banks),
        cmocka_unit_test(test_no_context),
        cmocka_unit_test(test_synchronize_names_a_context),
        cmocka_unit_test(test_record_takes_in_all_streams),
        cmocka_unit_test(test_wait_holds_all_later_work),
        cmocka_unit_test(test_context_events_refuse),
        cmocka_unit_test(test_device_older_names),
        cmocka_unit_test(test_texture_width),
        cmocka_unit_test(test_host_atomics),
    };
    return cmocka_run_group_tests(tests, use_primary_context, reset_context);
}
