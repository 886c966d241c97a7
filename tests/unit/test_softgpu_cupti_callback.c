/* softgpu's libcupti as a profiler uses it: callbacks of what was called, several devices, many
 * threads. */
#include "tests/unit/cupti_test.h"

/* ---- callbacks -------------------------------------------------------------------------------------------------- */

static struct seen {
    unsigned enters, exits, created, destroyed, streams, modules, synchronised, nested;
    uint32_t correlation;
    char function[64], symbol[64];
    size_t bytes;
    unsigned grid;
    int result;
    bool data_kept;
} seen;

static void on_callback(void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata)
{
    struct seen *s = userdata;
    const CUpti_CallbackData *d = cbdata;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        s->created += cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED;
        s->destroyed += cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING;
        s->streams += cbid == CUPTI_CBID_RESOURCE_STREAM_CREATED || cbid == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
        s->modules += cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED || cbid == CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING;
        return;
    }
    if (domain == CUPTI_CB_DOMAIN_SYNCHRONIZE) {
        s->synchronised++;
        return;
    }
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API && d->correlationId == s->correlation)
        s->nested++;
    if (domain != CUPTI_CB_DOMAIN_RUNTIME_API)
        return;
    if (d->callbackSite == CUPTI_API_ENTER) {
        s->enters++;
        *d->correlationData = 0xabcdef;
        s->correlation = d->correlationId;
        snprintf(s->function, sizeof s->function, "%s", d->functionName);
        if (d->symbolName)
            snprintf(s->symbol, sizeof s->symbol, "%s", d->symbolName);
        if (cbid == CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020)
            s->bytes = ((const cudaMalloc_v3020_params *)d->functionParams)->size;
        if (cbid == CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000)
            s->grid = ((const cudaLaunchKernel_v7000_params *)d->functionParams)->gridDim.x;
        /* What a callback calls is not told of. */
        int device;
        cudaGetDevice(&device);
    } else {
        s->exits++;
        s->data_kept = *d->correlationData == 0xabcdef;
        s->result = *(const cudaError_t *)d->functionReturnValue;
    }
}

static void test_callbacks_of_the_runtime(void **state)
{
    CUpti_SubscriberHandle subscriber;
    void *memory;
    uint32_t on = 9;
    memset(&seen, 0, sizeof seen);
    good(cuptiSubscribe(&subscriber, on_callback, &seen));
    good(cudaMalloc(&memory, 10)); /* nothing is enabled yet */
    good(cudaFree(memory));
    assert_int_equal(seen.enters, 0);
    good(
        cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020));
    assert_int_equal(on, 0);
    good(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020));
    good(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API));
    good(cudaMalloc(&memory, 4321));
    assert_int_equal(seen.enters, 1);
    assert_int_equal(seen.exits, 1);
    assert_string_equal(seen.function, "cudaMalloc");
    assert_int_equal(seen.bytes, 4321);
    assert_int_equal(seen.result, 0);
    assert_true(seen.data_kept);
    assert_true(seen.nested >= 2); /* cuMemAlloc, in and out, under the same id */
    good(cudaFree(memory));
    assert_int_equal(seen.enters, 1);
    good(cuptiEnableAllDomains(1, subscriber));
    launch(nothing, 7, 1, NULL, NULL);
    assert_string_equal(seen.function, "cudaLaunchKernel");
    assert_string_equal(seen.symbol, "nothing");
    assert_int_equal(seen.grid, 7);
    assert_int_equal(cudaMalloc(&memory, (size_t)1 << 60), cudaErrorMemoryAllocation);
    assert_int_equal(seen.result, cudaErrorMemoryAllocation);
    cudaGetLastError();
    unsigned before = seen.enters;
    good(cuptiUnsubscribe(subscriber));
    good(cudaMalloc(&memory, 4));
    good(cudaFree(memory));
    assert_int_equal(seen.enters, before);
    assert_int_equal(cuptiUnsubscribe(subscriber), CUPTI_ERROR_INVALID_PARAMETER);
}

static void test_callbacks_of_resources(void **state)
{
    CUpti_SubscriberHandle subscriber;
    CUcontext c;
    cudaStream_t s;
    cudaLibrary_t l;
    memset(&seen, 0, sizeof seen);
    good(cuptiSubscribe(&subscriber, on_callback, &seen));
    good(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
    good(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_SYNCHRONIZE));
    good(cudaStreamCreate(&s));
    assert_int_equal(seen.streams, 1);
    good(cudaStreamSynchronize(s));
    assert_int_equal(seen.synchronised, 1);
    good(cudaStreamDestroy(s));
    assert_int_equal(seen.streams, 2);
    good(cudaLibraryLoadData(&l, ptx, NULL, NULL, 0, NULL, NULL, 0));
    good(cudaLibraryUnload(l));
    assert_int_equal(seen.modules, 2);
    assert_int_equal(seen.created, 0);
    good(cuCtxCreate(&c, NULL, 0, 0));
    assert_int_equal(seen.created, 1);
    assert_int_equal(seen.destroyed, 0);
    good(cuCtxDestroy(c));
    assert_int_equal(seen.destroyed, 1);
    good(cudaDeviceSynchronize());
    assert_int_equal(seen.synchronised, 2);
}

static void test_second_subscriber_is_refused(void **state)
{
    CUpti_SubscriberHandle first, second;
    char old[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
    CUpti_SubscriberParams name = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE, .subscriberName = "one"};
    CUpti_SubscriberParams ask = {
        .structSize = CUpti_SubscriberParams_STRUCT_SIZE, .oldSubscriberName = old, .oldSubscriberSize = sizeof old};
    assert_int_equal(cuptiSubscribe(NULL, on_callback, NULL), CUPTI_ERROR_INVALID_PARAMETER);
    good(cuptiSubscribe_v2(&first, on_callback, &seen, &name));
    assert_int_equal(cuptiSubscribe(&second, on_callback, &seen), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    assert_int_equal(cuptiSubscribe_v2(&second, on_callback, &seen, &ask),
                     CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    assert_string_equal(old, "CUPTI for one");
    good(cuptiUnsubscribe(first));
    good(cuptiSubscribe(&second, on_callback, &seen));
    good(cuptiUnsubscribe(second));
}

static void test_callback_arguments_are_checked(void **state)
{
    CUpti_SubscriberHandle s;
    const char *name;
    uint32_t on;
    good(cuptiSubscribe(&s, on_callback, &seen));
    assert_int_equal(cuptiEnableDomain(1, NULL, CUPTI_CB_DOMAIN_DRIVER_API), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableDomain(1, s, CUPTI_CB_DOMAIN_INVALID), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableDomain(1, s, CUPTI_CB_DOMAIN_SIZE), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiEnableCallback(1, s, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_SIZE),
                     CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiGetCallbackState(NULL, s, CUPTI_CB_DOMAIN_RESOURCE, 1), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiGetCallbackState(&on, s, CUPTI_CB_DOMAIN_RESOURCE, 0), CUPTI_ERROR_INVALID_PARAMETER);
    good(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &name));
    assert_string_equal(name, "cudaLaunchKernel_v7000");
    good(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, &name));
    assert_string_equal(name, "cuMemAlloc_v2");
    assert_int_equal(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, 99999, &name), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RESOURCE, 1, &name), CUPTI_ERROR_INVALID_PARAMETER);
    size_t n;
    CUpti_DomainTable table;
    good(cuptiSupportedDomains(&n, &table));
    assert_true(n >= 4);
    good(cuptiUnsubscribe(s));
}

/* ---- threads ---------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, LAUNCHES = 200 };

static void *launch_many(void *argument)
{
    uint64_t number = (uintptr_t)argument;
    cudaStream_t s;
    if (cudaStreamCreate(&s) != cudaSuccess)
        return argument;
    bool ok = true;
    for (int i = 0; i < LAUNCHES; i++) {
        ok = ok && !cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, number);
        ok = ok && cudaLaunchKernel((const void *)nothing, (dim3){1, 1, 1}, (dim3){(unsigned)number + 1, 1, 1}, NULL, 0,
                                    s) == cudaSuccess;
        ok = ok && !cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, NULL);
        if (i % 50 == 0)
            cuptiActivityFlushAll(0);
    }
    ok = ok && cudaStreamSynchronize(s) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess;
    return ok ? NULL : argument;
}

/* External ids and kernels of several threads meet by correlation ids: each kernel's block tells its thread. */
static void test_many_threads(void **state)
{
    pthread_t threads[THREADS];
    CUpti_SubscriberHandle subscriber;
    static struct seen ignored;
    buffer_bytes = 2000;
    good(cuptiSubscribe(&subscriber, on_callback, &ignored));
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    collect(CUPTI_ACTIVITY_KIND_RUNTIME);
    collect(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    for (uintptr_t i = 0; i < THREADS; i++)
        good(pthread_create(&threads[i], NULL, launch_many, (void *)(i + 1)));
    for (int i = 0; i < THREADS; i++) {
        void *result;
        good(pthread_join(threads[i], &result));
        assert_null(result);
    }
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), THREADS * LAUNCHES);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), THREADS * LAUNCHES);
    uint32_t *blocks = calloc(1 << 20, sizeof *blocks);
    for (size_t i = 0; i < count; i++)
        if (records[i].kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            blocks[records[i].kernel.correlationId & 0xfffff] = (uint32_t)records[i].kernel.blockX;
    for (size_t i = 0; i < count; i++)
        if (records[i].kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
            assert_int_equal(blocks[records[i].external.correlationId & 0xfffff], records[i].external.externalId + 1);
    free(blocks);
}

/* The child has nobody to return buffers: it is told so at once, and its calls are not watched. */
static void test_forked_child_is_without_cupti(void **state)
{
    int status = 0;
    collect(CUPTI_ACTIVITY_KIND_DRIVER);
    collect(CUPTI_ACTIVITY_KIND_RUNTIME);
    good(cudaDeviceSynchronize());
    pid_t child = fork();
    if (!child) {
        bool refused = cudaDeviceSynchronize() != cudaSuccess;
        _exit(refused && cuptiActivityFlushAll(0) == CUPTI_ERROR_NOT_INITIALIZED &&
                      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    flush();
    assert_true(how_many(CUPTI_ACTIVITY_KIND_RUNTIME) >= 1);
}

/* ---- devices ---------------------------------------------------------------------------------------------------- */

static void test_records_name_their_device(void **state)
{
    CUdeviceptr here, there;
    uint32_t device, context_id;
    CUcontext first, second;
    good(cuCtxGetCurrent(&first));
    good(cuMemAlloc(&here, 1000));
    collect(CUPTI_ACTIVITY_KIND_CONTEXT);
    collect(CUPTI_ACTIVITY_KIND_MEMORY2);
    collect(CUPTI_ACTIVITY_KIND_MEMSET);
    collect(CUPTI_ACTIVITY_KIND_MEMCPY);
    collect(CUPTI_ACTIVITY_KIND_MEMCPY2);
    good(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_DEVICE));
    good(cuDevicePrimaryCtxRetain(&second, 1));
    good(cuCtxSetCurrent(second));
    good(cuMemAlloc(&there, 1000));
    good(cuMemsetD8(there, 1, 100));
    good(cuMemcpy(here, there, 300));
    good(cuMemcpyPeer(there, second, here, first, 200));
    good(cuptiGetContextId(second, &context_id));
    good(cuptiGetDeviceId(NULL, &device));
    assert_int_equal(device, 1);
    good(cuptiGetDeviceId(first, &device));
    assert_int_equal(device, 0);
    good(cuCtxSynchronize());
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_DEVICE), 2);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_DEVICE, 1)->device.id, 1);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONTEXT), 1); /* device 0 had one already */
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_CONTEXT, 0)->context.deviceId, 1);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_CONTEXT, 0)->context.contextId, context_id);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_MEMORY2, 0)->memory.deviceId, 1);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_MEMSET, 0)->fill.deviceId, 1);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_MEMCPY), 0);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_MEMCPY2), 2);
    for (size_t i = 0; i < 2; i++) {
        const CUpti_ActivityMemcpyPtoP4 *p = &nth(CUPTI_ACTIVITY_KIND_MEMCPY2, i)->peer;
        assert_int_equal(p->bytes, i ? 200 : 300);
        assert_int_equal(p->srcDeviceId, i ? 0 : 1);
        assert_int_equal(p->dstDeviceId, i ? 1 : 0);
    }
    good(cuMemFree(there));
    good(cuMemFree(here));
    good(cuDevicePrimaryCtxRelease(1));
    good(cuCtxSetCurrent(first));
}

/* Last: it ends the context that the others use. */
static void test_primary_context_ends_and_begins(void **state)
{
    CUpti_SubscriberHandle subscriber;
    memset(&seen, 0, sizeof seen);
    good(cuptiSubscribe(&subscriber, on_callback, &seen));
    good(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
    collect(CUPTI_ACTIVITY_KIND_CONTEXT);
    good(cudaFree(NULL));
    assert_int_equal(seen.created, 0);
    good(cudaDeviceReset());
    assert_int_equal(seen.destroyed, 1);
    good(cudaFree(NULL));
    assert_int_equal(seen.created, 1);
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONTEXT), 1);
}

int main(void)
{
    setenv("SOFTGPU_DEVICES", "2", 1);
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    static const struct CMUnitTest tests[] = {
        TEST(test_callbacks_of_the_runtime),
        TEST(test_callbacks_of_resources),
        TEST(test_second_subscriber_is_refused),
        TEST(test_callback_arguments_are_checked),
        TEST(test_many_threads),
        TEST(test_forked_child_is_without_cupti),
        TEST(test_records_name_their_device),
        TEST(test_primary_context_ends_and_begins),
    };
    return cmocka_run_group_tests(tests, load_kernels, NULL);
}
