/* Streams and events of softgpu: what may overlap, what must wait, and for whom. */
#include <pthread.h>
#include <sys/wait.h>

#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

static void test_stream_keeps_order(void **state)
{
    CUstream s;
    CUdeviceptr a;
    int out[2];
    ok(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    ok(cuMemAlloc_v2(&a, 4));
    for (int i = 0; i < 1000; i++)
        ok(cuMemsetD32Async(a, (unsigned)i, 1, s));
    ok(cuMemcpyDtoHAsync_v2(out, a, 4, s));
    ok(cuStreamSynchronize(s));
    assert_int_equal(out[0], 999);
    ok(cuMemFree_v2(a));
    ok(cuStreamDestroy_v2(s));
}

static void test_stream_is_asynchronous(void **state)
{
    struct gate g = {0};
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamQuery(s));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    assert_true(soon(&g.reached));
    fails(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    atomic_store(&g.open, true);
    ok(cuStreamSynchronize(s));
    ok(cuStreamQuery(s));
    ok(cuStreamDestroy_v2(s));
    fails(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(s));
    fails(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(s));
}

static void test_streams_overlap(void **state)
{
    struct gate g = {0};
    atomic_bool flag = false;
    CUstream s, t;
    ok(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    ok(cuStreamCreate(&t, CU_STREAM_DEFAULT));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuLaunchHostFunc(t, set_flag, &flag));
    assert_true(soon(&flag)); /* the other stream is not held up */
    atomic_store(&g.open, true);
    ok(cuCtxSynchronize());
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
}

/* What is in the legacy stream waits for blocking streams and holds them up; non-blocking ones go their own way. */
static void test_legacy_stream_orders_blocking_streams(void **state)
{
    struct gate g = {0};
    atomic_bool legacy = false, later = false, free_stream = false;
    CUstream s, t, n;
    ok(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    ok(cuStreamCreate(&t, CU_STREAM_DEFAULT));
    ok(cuStreamCreate(&n, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuLaunchHostFunc(NULL, set_flag, &legacy));
    ok(cuLaunchHostFunc(t, set_flag, &later));
    ok(cuLaunchHostFunc(n, set_flag, &free_stream));
    assert_true(soon(&free_stream));
    sleep_ms(20);
    assert_false(atomic_load(&legacy));
    assert_false(atomic_load(&later));
    atomic_store(&g.open, true);
    ok(cuCtxSynchronize());
    assert_true(atomic_load(&legacy));
    assert_true(atomic_load(&later));
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
    ok(cuStreamDestroy_v2(n));
}

static void test_per_thread_stream_is_not_the_legacy_one(void **state)
{
    struct gate g = {0};
    atomic_bool flag = false;
    unsigned long long legacy, own;
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    ok(cuStreamGetId(NULL, &legacy));
    ok(cuStreamGetId_ptsz(NULL, &own));
    assert_true(legacy != own);
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuLaunchHostFunc_ptsz(NULL, set_flag, &flag));
    assert_true(soon(&flag)); /* does not wait for another blocking stream */
    atomic_store(&g.open, true);
    ok(cuStreamSynchronize(s));
    ok(cuStreamDestroy_v2(s));
}

static void *own_stream_id(void *out)
{
    CUcontext c;
    if (cuDevicePrimaryCtxRetain(&c, 0) == CUDA_SUCCESS && cuCtxSetCurrent(c) == CUDA_SUCCESS)
        cuStreamGetId(CU_STREAM_PER_THREAD, out);
    cuDevicePrimaryCtxRelease_v2(0);
    return NULL;
}

static void test_per_thread_stream_differs_by_thread(void **state)
{
    unsigned long long mine, other = 0;
    pthread_t thread;
    ok(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
    pthread_create(&thread, NULL, own_stream_id, &other);
    pthread_join(thread, NULL);
    assert_true(other != 0 && other != mine);
}

static void test_event_orders_streams(void **state)
{
    struct gate g = {0};
    atomic_bool flag = false;
    CUstream s, t;
    CUevent e;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    ok(cuEventQuery(e)); /* never recorded: nothing to wait for */
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuEventRecord(e, s));
    ok(cuStreamWaitEvent(t, e, 0));
    ok(cuLaunchHostFunc(t, set_flag, &flag));
    fails(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    sleep_ms(20);
    assert_false(atomic_load(&flag));
    ok(cuEventDestroy_v2(e)); /* the wait is not undone by it */
    atomic_store(&g.open, true);
    ok(cuStreamSynchronize(t));
    assert_true(atomic_load(&flag));
    ok(cuStreamDestroy_v2(s));
    ok(cuStreamDestroy_v2(t));
}

static void test_event_time(void **state)
{
    struct gate g = {0};
    CUevent start, end, untimed;
    float ms = -1;
    ok(cuEventCreate(&start, CU_EVENT_DEFAULT));
    ok(cuEventCreate(&end, CU_EVENT_DEFAULT));
    ok(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    fails(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&ms, start, end)); /* not recorded */
    ok(cuEventRecord(start, NULL));
    ok(cuLaunchHostFunc(NULL, wait_at, &g));
    ok(cuEventRecord(end, NULL));
    ok(cuEventRecord(untimed, NULL));
    fails(CUDA_ERROR_NOT_READY, cuEventElapsedTime_v2(&ms, start, end));
    sleep_ms(30);
    atomic_store(&g.open, true);
    ok(cuEventSynchronize(end));
    ok(cuEventElapsedTime_v2(&ms, start, end));
    assert_true(ms >= 29.0f && ms < 5000.0f);
    fails(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime_v2(&ms, start, untimed));
    ok(cuEventDestroy_v2(start));
    fails(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(start));
    ok(cuEventDestroy_v2(end));
    ok(cuEventDestroy_v2(untimed));
}

static void test_synchronous_copy_waits_for_its_stream(void **state)
{
    struct gate g = {0};
    CUdeviceptr a;
    int out = 0;
    ok(cuMemAlloc_v2(&a, 4));
    ok(cuMemsetD32_v2(a, 1, 1));
    ok(cuLaunchHostFunc(NULL, wait_at, &g));
    ok(cuMemsetD32Async(a, 2, 1, NULL));
    atomic_store(&g.open, true);
    ok(cuMemcpyDtoH_v2(&out, a, 4));
    assert_int_equal(out, 2);
    ok(cuMemFree_v2(a));
}

/* Pageable memory may be reused as soon as an asynchronous copy from it returns. */
static void test_async_copy_stages_pageable_memory(void **state)
{
    struct gate g = {0};
    CUstream s;
    CUdeviceptr a;
    int value = 5, out = 0;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuMemAlloc_v2(&a, 4));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuMemcpyHtoDAsync_v2(a, &value, 4, s));
    value = 6;
    atomic_store(&g.open, true);
    ok(cuMemcpyDtoHAsync_v2(&out, a, 4, s)); /* to pageable memory: arrived when it returns */
    assert_int_equal(out, 5);
    ok(cuMemFree_v2(a));
    ok(cuStreamDestroy_v2(s));
}

static void *open_late(void *gate)
{
    sleep_ms(20);
    set_flag(gate);
    return NULL;
}

static void test_free_waits_for_work(void **state)
{
    struct gate g = {0};
    CUstream s;
    CUdeviceptr a;
    pthread_t opener;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuMemAlloc_v2(&a, 4));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuMemsetD32Async(a, 2, 1, s));
    pthread_create(&opener, NULL, open_late, &g.open);
    ok(cuMemFree_v2(a));
    ok(cuStreamQuery(s));
    pthread_join(opener, NULL);
    ok(cuStreamDestroy_v2(s));
}

static atomic_int callback_status, callback_call;

static void CUDA_CB note_status(CUstream stream, CUresult status, void *data)
{
    atomic_store(&callback_status, (int)status);
    atomic_store(&callback_call, (int)cuMemFree_v2(*(CUdeviceptr *)data));
}

static void test_callback_gets_status_and_may_not_wait(void **state)
{
    CUdeviceptr a;
    ok(cuMemAlloc_v2(&a, 4));
    atomic_store(&callback_status, -1);
    ok(cuStreamAddCallback(NULL, note_status, &a, 0));
    ok(cuCtxSynchronize());
    assert_int_equal(atomic_load(&callback_status), CUDA_SUCCESS);
    assert_int_not_equal(atomic_load(&callback_call), CUDA_SUCCESS);
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(NULL, NULL, NULL, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamAddCallback(NULL, note_status, NULL, 1));
    ok(cuMemFree_v2(a));
}

static void test_stream_properties(void **state)
{
    CUstream s;
    CUcontext c, current;
    unsigned flags;
    int priority, least, greatest;
    CUdevice device = 5;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    fails(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&s, 8));
    ok(cuCtxGetStreamPriorityRange(&least, &greatest));
    ok(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, greatest - 10));
    ok(cuStreamGetPriority(s, &priority));
    assert_int_equal(priority, greatest);
    ok(cuStreamGetFlags(s, &flags));
    assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
    ok(cuStreamGetCtx(s, &c));
    ok(cuCtxGetCurrent(&current));
    assert_ptr_equal(c, current);
    ok(cuStreamGetDevice(s, &device));
    assert_int_equal(device, 0);
    ok(cuStreamIsCapturing(s, &capture));
    assert_int_equal(capture, CU_STREAM_CAPTURE_STATUS_NONE);
    ok(cuStreamGetCaptureInfo_v3(s, &capture, NULL, NULL, NULL, NULL, NULL));
    fails(CUDA_ERROR_INVALID_HANDLE, cuStreamGetFlags((CUstream)&s, &flags));
    ok(cuStreamDestroy_v2(s));
}

static void test_stream_destroyed_with_work_finishes_it(void **state)
{
    struct gate g = {0};
    atomic_bool flag = false;
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuLaunchHostFunc(s, set_flag, &flag));
    ok(cuStreamDestroy_v2(s)); /* returns at once */
    assert_false(atomic_load(&flag));
    atomic_store(&g.open, true);
    assert_true(soon(&flag));
}

static void *open_later(void *gate)
{
    sleep_ms(50);
    atomic_store(&((struct gate *)gate)->open, true);
    return NULL;
}

/* A stream is gone for the program when it is destroyed, but what was put into it is not: the context, the legacy
 * stream and whoever frees memory wait for it. */
static void test_stream_destroyed_with_work_is_waited_for(void **state)
{
    struct gate g = {0}, h = {0};
    atomic_bool flag = false, after = false, last = false;
    pthread_t thread;
    CUdeviceptr a;
    CUstream s;
    ok(cuMemAlloc_v2(&a, 4));
    ok(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuLaunchHostFunc(s, set_flag, &flag));
    ok(cuStreamDestroy_v2(s));
    ok(cuLaunchHostFunc(NULL, set_flag, &after));
    assert_true(not_yet(&after));
    atomic_store(&g.open, true);
    ok(cuStreamSynchronize(NULL));
    assert_true(atomic_load(&flag));
    assert_true(atomic_load(&after));

    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(s, wait_at, &h));
    ok(cuMemsetD32Async(a, 1, 1, s));
    ok(cuLaunchHostFunc(s, set_flag, &last));
    ok(cuStreamDestroy_v2(s));
    pthread_create(&thread, NULL, open_later, &h);
    ok(cuMemFree_v2(a));
    assert_true(atomic_load(&last));
    pthread_join(thread, NULL);
    ok(cuCtxSynchronize());
}

static void *wait_for_context(void *context)
{
    if (cuCtxSetCurrent(context) == CUDA_SUCCESS)
        cuCtxSynchronize();
    for (;;)
        pause();
    return NULL;
}

/* A thread that is cancelled while it waits for the device leaves nothing locked behind. */
static void test_wait_survives_cancellation(void **state)
{
    struct gate g = {0};
    CUcontext c;
    CUstream s;
    pthread_t thread;
    ok(cuCtxGetCurrent(&c));
    ok(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_context, c), 0);
    sleep_ms(30);
    pthread_cancel(thread);
    sleep_ms(30);
    atomic_store(&g.open, true);
    alarm(20); /* instead of hanging */
    ok(cuStreamSynchronize(s));
    pthread_join(thread, NULL);
    ok(cuCtxSynchronize());
    alarm(0);
    ok(cuStreamDestroy_v2(s));
}

/* ---- many at once ----------------------------------------------------------------------------------------------- */

static void *busy_thread(void *result)
{
    enum { ROUNDS = 60, STREAMS = 4 };
    CUcontext c;
    CUstream s[STREAMS];
    CUevent e = NULL;
    CUdeviceptr a;
    unsigned out[STREAMS];
    bool good = cuDevicePrimaryCtxRetain(&c, 0) == CUDA_SUCCESS && cuCtxSetCurrent(c) == CUDA_SUCCESS &&
                cuEventCreate(&e, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS;
    for (unsigned round = 0; good && round < ROUNDS; round++) {
        good = cuMemAlloc_v2(&a, sizeof out + round * 5000) == CUDA_SUCCESS;
        for (unsigned i = 0; i < STREAMS; i++)
            good = good && cuStreamCreate(&s[i], i & 1) == CUDA_SUCCESS;
        for (unsigned i = 0; i < STREAMS; i++)
            good = good && cuMemsetD32Async(a + i * 4, round + i, 1, s[i]) == CUDA_SUCCESS &&
                   cuEventRecord(e, s[i]) == CUDA_SUCCESS && cuStreamWaitEvent(s[0], e, 0) == CUDA_SUCCESS;
        good = good && cuMemcpyDtoHAsync_v2(out, a, sizeof out, s[0]) == CUDA_SUCCESS &&
               cuStreamSynchronize(s[0]) == CUDA_SUCCESS;
        for (unsigned i = 0; i < STREAMS; i++)
            good = good && out[i] == round + i && cuStreamDestroy_v2(s[i]) == CUDA_SUCCESS;
        good = good && cuMemFree_v2(a) == CUDA_SUCCESS;
    }
    cuEventDestroy_v2(e);
    cuDevicePrimaryCtxRelease_v2(0);
    *(bool *)result = good;
    return NULL;
}

static void test_many_threads_and_streams(void **state)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    bool results[THREADS] = {0};
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, busy_thread, &results[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(results[i]);
    }
}

static void *make_context(void *result)
{
    CUcontext c;
    CUdeviceptr a;
    bool good = true;
    for (int i = 0; i < 20 && good; i++)
        good = cuCtxCreate_v2(&c, 0, 0) == CUDA_SUCCESS && cuMemAlloc_v2(&a, 1 << 20) == CUDA_SUCCESS &&
               cuMemsetD8_v2(a, 1, 1 << 20) == CUDA_SUCCESS && cuCtxDestroy_v2(c) == CUDA_SUCCESS;
    *(bool *)result = good;
    return NULL;
}

static void test_contexts_in_parallel(void **state)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    bool results[THREADS] = {0};
    size_t before, after, total;
    ok(cuMemGetInfo_v2(&before, &total));
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, make_context, &results[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(results[i]);
    }
    ok(cuMemGetInfo_v2(&after, &total));
    assert_true(after + (2 << 20) >= before); /* what the contexts held is free again */
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

static void test_forked_child_is_refused_at_once(void **state)
{
    CUdeviceptr a;
    ok(cuMemAlloc_v2(&a, 4));
    pid_t pid = fork();
    if (pid == 0)
        _exit(cuMemAlloc_v2(&a, 4) == CUDA_ERROR_NOT_INITIALIZED && cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED &&
                      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ok(cuMemFree_v2(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_keeps_order),
        cmocka_unit_test(test_stream_is_asynchronous),
        cmocka_unit_test(test_streams_overlap),
        cmocka_unit_test(test_legacy_stream_orders_blocking_streams),
        cmocka_unit_test(test_per_thread_stream_is_not_the_legacy_one),
        cmocka_unit_test(test_per_thread_stream_differs_by_thread),
        cmocka_unit_test(test_event_orders_streams),
        cmocka_unit_test(test_event_time),
        cmocka_unit_test(test_synchronous_copy_waits_for_its_stream),
        cmocka_unit_test(test_async_copy_stages_pageable_memory),
        cmocka_unit_test(test_free_waits_for_work),
        cmocka_unit_test(test_callback_gets_status_and_may_not_wait),
        cmocka_unit_test(test_stream_properties),
        cmocka_unit_test(test_stream_destroyed_with_work_finishes_it),
        cmocka_unit_test(test_stream_destroyed_with_work_is_waited_for),
        cmocka_unit_test(test_wait_survives_cancellation),
        cmocka_unit_test(test_many_threads_and_streams),
        cmocka_unit_test(test_contexts_in_parallel),
        cmocka_unit_test(test_forked_child_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, use_primary_context, reset_context);
}
