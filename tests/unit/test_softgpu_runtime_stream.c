/* Streams, events and callbacks through the runtime. */
#include "tests/unit/softgpu_runtime.h"

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define DEFAULT_STREAM cudaStreamPerThread
#else
#define DEFAULT_STREAM cudaStreamLegacy
#endif

static cudaStream_t stream;

static int setup(void **state)
{
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
}

static int teardown(void **state)
{
    return cudaStreamDestroy(stream) != cudaSuccess;
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

static void test_create_and_ask(void **state)
{
    int least, greatest, priority, device = -1;
    unsigned flags = 9;
    unsigned long long id, other;
    cudaStream_t s;
    ok(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    assert_true(greatest <= least);
    ok(cudaDeviceGetStreamPriorityRange(NULL, NULL));
    ok(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest - 10)); /* taken to the range */
    ok(cudaStreamGetPriority(s, &priority));
    assert_int_equal(priority, greatest);
    ok(cudaStreamGetFlags(s, &flags));
    assert_int_equal(flags, cudaStreamNonBlocking);
    ok(cudaStreamGetDevice(s, &device));
    assert_int_equal(device, 0);
    ok(cudaStreamGetId(s, &id));
    ok(cudaStreamGetId(stream, &other));
    assert_true(id != other);
    ok(cudaStreamDestroy(s));
    ok(cudaStreamCreate(&s));
    ok(cudaStreamGetFlags(s, &flags));
    assert_int_equal(flags, cudaStreamDefault);
    ok(cudaStreamGetPriority(s, &priority));
    assert_int_equal(priority, 0);
    ok(cudaStreamDestroy(s));
    ok(cudaStreamGetId(NULL, &id));
    ok(cudaStreamGetId(DEFAULT_STREAM, &other));
    assert_true(id == other);
    ok(cudaStreamGetFlags(NULL, &flags));
    assert_int_equal(flags, cudaStreamDefault);
}

static void test_streams_refuse(void **state)
{
    int number;
    unsigned flags;
    unsigned long long id;
    cudaStream_t s;
    enum cudaStreamCaptureStatus capture;
    sets(cudaErrorInvalidValue, cudaStreamCreate(NULL));
    sets(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&s, 2));
    sets(cudaErrorInvalidValue, cudaStreamCreateWithPriority(&s, 8, 0));
    sets(cudaErrorInvalidValue, cudaStreamCreateWithPriority(NULL, 0, 0));
    sets(cudaErrorInvalidValue, cudaStreamGetPriority(stream, NULL));
    sets(cudaErrorInvalidValue, cudaStreamGetFlags(stream, NULL));
    sets(cudaErrorInvalidValue, cudaStreamGetId(stream, NULL));
    sets(cudaErrorInvalidValue, cudaStreamGetDevice(stream, NULL));
    sets(cudaErrorInvalidValue, cudaStreamIsCapturing(stream, NULL));
    sets(cudaErrorInvalidResourceHandle, cudaStreamGetPriority(NO_STREAM, &number));
    sets(cudaErrorInvalidResourceHandle, cudaStreamGetFlags(NO_STREAM, &flags));
    sets(cudaErrorInvalidResourceHandle, cudaStreamGetId(NO_STREAM, &id));
    sets(cudaErrorInvalidResourceHandle, cudaStreamGetDevice(NO_STREAM, &number));
    sets(cudaErrorInvalidResourceHandle, cudaStreamQuery(NO_STREAM));
    sets(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(NO_STREAM));
    sets(cudaErrorInvalidResourceHandle, cudaStreamIsCapturing(NO_STREAM, &capture));
    sets(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NO_STREAM));
    sets(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
    ok(cudaStreamCreate(&s));
    ok(cudaStreamDestroy(s));
    sets(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(s));
}

static void test_query_and_wait(void **state)
{
    struct gate g = {0};
    enum { STREAMS = 4 };
    const cudaStream_t streams[STREAMS] = {NULL, stream, cudaStreamLegacy, cudaStreamPerThread};
    for (size_t i = 0; i < STREAMS; i++) {
        atomic_store(&g.open, false);
        ok(cudaStreamQuery(streams[i]));
        ok(cudaLaunchHostFunc(streams[i], wait_at, &g));
        fails(cudaErrorNotReady, cudaStreamQuery(streams[i]));
        ok(cudaPeekAtLastError());
        atomic_store(&g.open, true);
        ok(cudaStreamSynchronize(streams[i]));
        ok(cudaStreamQuery(streams[i]));
    }
}

static void test_attributes(void **state)
{
    cudaStream_t other;
    cudaLaunchAttributeValue set = {.syncPolicy = cudaSyncPolicyYield}, got = {0};
    ok(cudaStreamCreate(&other));
    ok(cudaStreamSetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &set));
    ok(cudaStreamGetAttribute(stream, cudaLaunchAttributeSynchronizationPolicy, &got));
    assert_int_equal(got.syncPolicy, cudaSyncPolicyYield);
    ok(cudaStreamGetAttribute(other, cudaLaunchAttributeSynchronizationPolicy, &got));
    assert_int_not_equal(got.syncPolicy, cudaSyncPolicyYield);
    ok(cudaStreamCopyAttributes(other, stream));
    ok(cudaStreamGetAttribute(other, cudaLaunchAttributeSynchronizationPolicy, &got));
    assert_int_equal(got.syncPolicy, cudaSyncPolicyYield);
    sets(cudaErrorInvalidValue, cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)77, &set));
    sets(cudaErrorInvalidValue, cudaStreamGetAttribute(stream, cudaLaunchAttributeCooperative, &got));
    sets(cudaErrorInvalidValue, cudaStreamGetAttribute(stream, cudaLaunchAttributePriority, NULL));
    sets(cudaErrorInvalidResourceHandle, cudaStreamGetAttribute(NO_STREAM, cudaLaunchAttributePriority, &got));
    sets(cudaErrorInvalidResourceHandle, cudaStreamSetAttribute(NO_STREAM, cudaLaunchAttributePriority, &set));
    sets(cudaErrorInvalidResourceHandle, cudaStreamCopyAttributes(stream, NO_STREAM));
    ok(cudaStreamDestroy(other));
}

static void test_attach_memory(void **state)
{
    void *managed, *plain;
    ok(cudaMallocManaged(&managed, 64, cudaMemAttachHost));
    ok(cudaMalloc(&plain, 64));
    ok(cudaStreamAttachMemAsync(stream, managed, 0, cudaMemAttachSingle));
    ok(cudaStreamAttachMemAsync(NULL, managed, 0, cudaMemAttachGlobal));
    ok(cudaDeviceSynchronize());
    sets(cudaErrorInvalidValue, cudaStreamAttachMemAsync(stream, managed, 0, 16));
    sets(cudaErrorInvalidValue, cudaStreamAttachMemAsync(stream, plain, 0, cudaMemAttachSingle));
    sets(cudaErrorInvalidValue, cudaStreamAttachMemAsync(stream, NULL, 0, cudaMemAttachSingle));
    sets(cudaErrorInvalidResourceHandle, cudaStreamAttachMemAsync(NO_STREAM, managed, 0, cudaMemAttachSingle));
    ok(cudaFree(managed));
    ok(cudaFree(plain));
}

static void test_no_capture(void **state)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    ok(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, cudaStreamCaptureStatusNone);
    status = cudaStreamCaptureStatusActive;
    ok(cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL));
    assert_int_equal(status, cudaStreamCaptureStatusNone);
    sets(cudaErrorInvalidValue, cudaStreamGetCaptureInfo(stream, NULL, NULL, NULL, NULL, NULL, NULL));
    ok(cudaThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, cudaStreamCaptureModeGlobal);
    ok(cudaThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, cudaStreamCaptureModeRelaxed);
    mode = (enum cudaStreamCaptureMode)5;
    sets(cudaErrorInvalidValue, cudaThreadExchangeStreamCaptureMode(&mode));
    sets(cudaErrorInvalidValue, cudaThreadExchangeStreamCaptureMode(NULL));
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

static void test_events_follow_the_stream(void **state)
{
    struct gate g = {0};
    atomic_bool passed = false;
    cudaEvent_t e;
    cudaStream_t other;
    ok(cudaEventCreateWithFlags(&e, cudaEventDisableTiming | cudaEventBlockingSync));
    ok(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    ok(cudaEventQuery(e)); /* never recorded */
    ok(cudaLaunchHostFunc(stream, wait_at, &g));
    ok(cudaEventRecord(e, stream));
    fails(cudaErrorNotReady, cudaEventQuery(e));
    ok(cudaPeekAtLastError());
    ok(cudaStreamWaitEvent(other, e, cudaEventWaitDefault));
    ok(cudaLaunchHostFunc(other, set_flag, &passed));
    sleep_ms(10);
    assert_false(atomic_load(&passed));
    atomic_store(&g.open, true);
    ok(cudaEventSynchronize(e));
    ok(cudaEventQuery(e));
    ok(cudaStreamSynchronize(other));
    assert_true(atomic_load(&passed));
    atomic_store(&g.open, false);
    ok(cudaLaunchHostFunc(NULL, wait_at, &g));
    ok(cudaEventRecordWithFlags(e, NULL, cudaEventRecordDefault));
    fails(cudaErrorNotReady, cudaEventQuery(e));
    atomic_store(&g.open, true);
    ok(cudaEventSynchronize(e));
    ok(cudaStreamDestroy(other));
    ok(cudaEventDestroy(e));
}

static void test_elapsed_time(void **state)
{
    struct gate g = {0};
    float ms = -1;
    cudaEvent_t a, b, timeless;
    ok(cudaEventCreate(&a));
    ok(cudaEventCreate(&b));
    ok(cudaEventCreateWithFlags(&timeless, cudaEventDisableTiming));
    sets(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b)); /* not recorded */
    ok(cudaEventRecord(a, stream));
    ok(cudaLaunchHostFunc(stream, wait_at, &g));
    ok(cudaEventRecord(b, stream));
    ok(cudaEventRecord(timeless, stream));
    fails(cudaErrorNotReady, cudaEventElapsedTime(&ms, a, b));
    sleep_ms(5);
    atomic_store(&g.open, true);
    ok(cudaEventSynchronize(b));
    ok(cudaEventElapsedTime(&ms, a, b));
    assert_true(ms >= 4 && ms < 10000);
    ok(cudaStreamSynchronize(stream));
    sets(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, timeless));
    sets(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, NULL, b));
    sets(cudaErrorInvalidValue, cudaEventElapsedTime(NULL, a, b));
    ok(cudaEventDestroy(a));
    ok(cudaEventDestroy(b));
    ok(cudaEventDestroy(timeless));
}

static void test_events_refuse(void **state)
{
    cudaEvent_t e;
    sets(cudaErrorInvalidValue, cudaEventCreate(NULL));
    sets(cudaErrorInvalidValue, cudaEventCreateWithFlags(&e, 64));
    sets(cudaErrorInvalidValue, cudaEventCreateWithFlags(&e, cudaEventInterprocess)); /* has no times */
    sets(cudaErrorInvalidResourceHandle, cudaEventRecord(NULL, stream));
    sets(cudaErrorInvalidResourceHandle, cudaEventQuery(NULL));
    sets(cudaErrorInvalidResourceHandle, cudaEventSynchronize(NULL));
    sets(cudaErrorInvalidResourceHandle, cudaEventDestroy(NULL));
    sets(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(stream, NULL, 0));
    ok(cudaEventCreate(&e));
    sets(cudaErrorInvalidResourceHandle, cudaEventRecord(e, NO_STREAM));
    sets(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(NO_STREAM, e, 0));
    sets(cudaErrorInvalidValue, cudaStreamWaitEvent(stream, e, 7));
    sets(cudaErrorInvalidValue, cudaEventRecordWithFlags(e, stream, 7));
    ok(cudaEventDestroy(e));
    sets(cudaErrorInvalidResourceHandle, cudaEventQuery(e));
}

/* ---- callbacks -------------------------------------------------------------------------------------------------- */

struct told {
    cudaStream_t stream;
    cudaError_t status, refused[2];
    unsigned *next;
    unsigned at;
};

/* No call that waits may be made from it: it would wait for itself. */
static void tell(cudaStream_t s, cudaError_t status, void *data)
{
    struct told *t = data;
    t->stream = s;
    t->status = status;
    t->refused[0] = cudaDeviceSynchronize();
    t->refused[1] = cudaStreamSynchronize(cudaStreamLegacy);
    t->at = (*t->next)++;
}

static void test_callbacks_run_in_order(void **state)
{
    struct gate g = {0};
    unsigned next = 0;
    struct told told[4];
    enum { STREAMS = 2 };
    const cudaStream_t streams[STREAMS] = {NULL, stream};
    for (size_t k = 0; k < STREAMS; k++) {
        next = 0;
        atomic_store(&g.open, false);
        ok(cudaLaunchHostFunc(streams[k], wait_at, &g));
        for (int i = 0; i < 4; i++) {
            told[i] = (struct told){.status = cudaErrorUnknown, .next = &next};
            ok(cudaStreamAddCallback(streams[k], tell, &told[i], 0));
        }
        assert_int_equal(next, 0);
        atomic_store(&g.open, true);
        ok(cudaStreamSynchronize(streams[k]));
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(told[i].at, i);
            assert_int_equal(told[i].status, cudaSuccess);
            assert_int_equal(told[i].refused[0], cudaErrorNotPermitted);
            assert_int_equal(told[i].refused[1], cudaErrorNotPermitted);
            if (streams[k])
                assert_ptr_equal(told[i].stream, streams[k]);
        }
    }
    ok(cudaGetLastError()); /* it failed in another thread */
}

static void test_callbacks_refuse(void **state)
{
    struct told t;
    sets(cudaErrorInvalidValue, cudaStreamAddCallback(stream, tell, &t, 1));
    sets(cudaErrorInvalidValue, cudaStreamAddCallback(stream, NULL, &t, 0));
    sets(cudaErrorInvalidResourceHandle, cudaStreamAddCallback(NO_STREAM, tell, &t, 0));
    sets(cudaErrorInvalidValue, cudaLaunchHostFunc(stream, NULL, &t));
    sets(cudaErrorInvalidResourceHandle, cudaLaunchHostFunc(NO_STREAM, wait_at, &t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_and_ask),
        cmocka_unit_test(test_streams_refuse),
        cmocka_unit_test(test_query_and_wait),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_attach_memory),
        cmocka_unit_test(test_no_capture),
        cmocka_unit_test(test_events_follow_the_stream),
        cmocka_unit_test(test_elapsed_time),
        cmocka_unit_test(test_events_refuse),
        cmocka_unit_test(test_callbacks_run_in_order),
        cmocka_unit_test(test_callbacks_refuse),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
