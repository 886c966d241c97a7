/* softgpu's libcupti as a profiler uses it: records of what ran. */
#include "tests/unit/cupti_test.h"

/* ---- records ---------------------------------------------------------------------------------------------------- */

/* First of all: only a driver that is not initialised yet tells of its devices by itself. */
static void test_enable_before_init_tells_of_device_and_context(void **state)
{
    collect(CUPTI_ACTIVITY_KIND_DEVICE);
    collect(CUPTI_ACTIVITY_KIND_CONTEXT);
    collect(CUPTI_ACTIVITY_KIND_STREAM);
    collect(CUPTI_ACTIVITY_KIND_MODULE);
    good(load_kernels(NULL));
    cudaStream_t s;
    good(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    uint32_t id;
    good(cuptiGetStreamIdEx(NULL, s, 0, &id));
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_DEVICE), 1);
    struct cudaDeviceProp p;
    good(cudaGetDeviceProperties(&p, 0));
    const CUpti_ActivityDevice5 *d = &nth(CUPTI_ACTIVITY_KIND_DEVICE, 0)->device;
    assert_string_equal(d->name, p.name);
    assert_int_equal(d->numMultiprocessors, p.multiProcessorCount);
    assert_int_equal(d->globalMemorySize, p.totalGlobalMem);
    assert_int_equal(d->computeCapabilityMajor, p.major);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONTEXT), 1);
    const CUpti_ActivityContext3 *c = &nth(CUPTI_ACTIVITY_KIND_CONTEXT, 0)->context;
    assert_int_equal(c->computeApiKind, CUPTI_ACTIVITY_COMPUTE_API_CUDA);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_STREAM), 2);
    const CUpti_ActivityStream *null_stream = &nth(CUPTI_ACTIVITY_KIND_STREAM, 0)->stream;
    assert_int_equal(null_stream->flag, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL);
    assert_int_equal(null_stream->streamId, c->nullStreamId);
    const CUpti_ActivityStream *own = &nth(CUPTI_ACTIVITY_KIND_STREAM, 1)->stream;
    assert_int_equal(own->flag, CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING);
    assert_int_equal(own->streamId, id);
    assert_int_equal(own->contextId, c->contextId);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_MODULE), 1);
    good(cudaStreamDestroy(s));
}

static void test_dump_tells_of_what_is_there(void **state)
{
    good(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONTEXT));
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONTEXT), 0);
    good(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_DEVICE));
    good(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_CONTEXT));
    good(cuptiActivityEnableAndDump(CUPTI_ACTIVITY_KIND_STREAM));
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_DEVICE), 1);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONTEXT), 1);
    assert_true(how_many(CUPTI_ACTIVITY_KIND_STREAM) >= 1);
}

static void test_kernel_record(void **state)
{
    unsigned *memory, host[96];
    cudaStream_t s;
    uint32_t stream_id, context_id, device_id;
    CUcontext context;
    good(cudaMalloc((void **)&memory, sizeof host));
    good(cudaStreamCreate(&s));
    good(cuCtxGetCurrent(&context));
    good(cuptiGetContextId(context, &context_id));
    good(cuptiGetDeviceId(context, &device_id));
    good(cuptiGetStreamId(NULL, s, &stream_id));
    good(cuptiActivityEnableLatencyTimestamps(1));
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    collect(CUPTI_ACTIVITY_KIND_RUNTIME);
    collect(CUPTI_ACTIVITY_KIND_DRIVER);
    uint64_t before, after;
    good(cuptiGetTimestamp(&before));
    launch(add_one, 3, 32, memory, s);
    launch(nothing, 2, 1, NULL, NULL);
    flush();
    good(cuptiGetTimestamp(&after));
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 2);
    const CUpti_ActivityKernel10 *k = &nth(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0)->kernel;
    const CUpti_ActivityKernel10 *second = &nth(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1)->kernel;
    assert_string_equal(k->name, "add_one");
    assert_string_equal(second->name, "nothing");
    assert_int_equal(k->gridX, 3);
    assert_int_equal(k->gridY, 1);
    assert_int_equal(k->blockX, 32);
    assert_int_equal(k->blockZ, 1);
    assert_int_equal(k->staticSharedMemory, 16);
    assert_int_equal(k->dynamicSharedMemory, 16);
    assert_int_equal(k->deviceId, device_id);
    assert_int_equal(k->contextId, context_id);
    assert_int_equal(k->streamId, stream_id);
    assert_int_not_equal(second->streamId, stream_id);
    assert_true(before <= k->queued && k->queued <= k->start && k->start <= k->end && k->end <= after);
    assert_true(k->end <= second->start); /* the legacy stream waits */
    assert_int_not_equal(k->gridId, second->gridId);
    /* The call in the runtime, the one in the driver that it made, and the kernel have one id. */
    const CUpti_ActivityAPI *runtime =
        call_of(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
    const CUpti_ActivityAPI *driver = call_of(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    assert_non_null(runtime);
    assert_non_null(driver);
    assert_int_equal(runtime->correlationId, k->correlationId);
    assert_int_equal(driver->correlationId, k->correlationId);
    assert_int_not_equal(second->correlationId, k->correlationId);
    assert_true(runtime->start <= driver->start && driver->start <= driver->end && driver->end <= runtime->end);
    assert_true(runtime->start <= k->queued);
    assert_int_equal(runtime->returnValue, 0);
    good(cudaStreamDestroy(s));
    good(cudaFree(memory));
}

static void test_disabled_kind_is_silent(void **state)
{
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    collect(CUPTI_ACTIVITY_KIND_MEMSET);
    launch(nothing, 1, 1, NULL, NULL);
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
    good(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    launch(nothing, 1, 1, NULL, NULL);
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
}

static void test_kinds_that_cannot_be_had(void **state)
{
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID), CUPTI_ERROR_INVALID_KIND);
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_COUNT), CUPTI_ERROR_INVALID_KIND);
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING), CUPTI_ERROR_NOT_COMPATIBLE);
    collect(CUPTI_ACTIVITY_KIND_KERNEL);
    assert_int_equal(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_ERROR_NOT_COMPATIBLE);
    launch(nothing, 1, 1, NULL, NULL);
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_KERNEL), 1);
}

static void test_copies_and_fills(void **state)
{
    char *a, *b, *pinned, pageable[3000];
    good(cudaMalloc((void **)&a, 3000));
    good(cudaMalloc((void **)&b, 3000));
    good(cudaMallocHost((void **)&pinned, 3000));
    collect(CUPTI_ACTIVITY_KIND_MEMCPY);
    collect(CUPTI_ACTIVITY_KIND_MEMCPY2);
    collect(CUPTI_ACTIVITY_KIND_MEMSET);
    collect(CUPTI_ACTIVITY_KIND_RUNTIME);
    good(cudaMemcpy(a, pageable, 3000, cudaMemcpyHostToDevice));
    good(cudaMemcpyAsync(pinned, a, 2000, cudaMemcpyDeviceToHost, NULL));
    good(cudaMemcpy(b, a, 1000, cudaMemcpyDeviceToDevice));
    good(cudaMemcpy2D(b, 100, a, 100, 50, 7, cudaMemcpyDeviceToDevice));
    good(cudaMemcpyPeer(b, 0, a, 0, 500));
    good(cudaMemsetAsync(a, 0x5a, 123, NULL));
    flush();
    static const struct {
        uint8_t kind, from, to;
        uint32_t bytes;
        bool async;
    } expected[] = {
        {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 3000,
         false},
        {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, 2000,
         true},
        {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 1000,
         true},
        {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 350,
         true},
    };
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_MEMCPY), 4);
    for (size_t i = 0; i < 4; i++) {
        const CUpti_ActivityMemcpy6 *c = &nth(CUPTI_ACTIVITY_KIND_MEMCPY, i)->copy;
        assert_int_equal(c->copyKind, expected[i].kind);
        assert_int_equal(c->srcKind, expected[i].from);
        assert_int_equal(c->dstKind, expected[i].to);
        assert_int_equal(c->bytes, expected[i].bytes);
        assert_true(c->start <= c->end);
        if (i < 2) /* between two places of the device it is asynchronous either way */
            assert_int_equal((c->flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0, expected[i].async);
    }
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_MEMCPY2), 1);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_MEMCPY2, 0)->peer.bytes, 500);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_MEMCPY2, 0)->peer.copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_MEMSET), 1);
    const CUpti_ActivityMemset4 *f = &nth(CUPTI_ACTIVITY_KIND_MEMSET, 0)->fill;
    assert_int_equal(f->bytes, 123);
    assert_int_equal(f->value, 0x5a);
    assert_int_equal(f->memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
    const CUpti_ActivityAPI *api = call_of(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020);
    assert_non_null(api);
    assert_int_equal(api->correlationId, f->correlationId);
    good(cudaFreeHost(pinned));
    good(cudaFree(a));
    good(cudaFree(b));
}

static void test_external_correlation_comes_before_the_call(void **state)
{
    uint64_t last = 0;
    collect(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
    collect(CUPTI_ACTIVITY_KIND_RUNTIME);
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    assert_int_equal(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last),
                     CUPTI_ERROR_QUEUE_EMPTY);
    assert_int_equal(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_SIZE, 1),
                     CUPTI_ERROR_INVALID_PARAMETER);
    good(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1000));
    good(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1001));
    launch(nothing, 1, 1, NULL, NULL);
    good(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last));
    assert_int_equal(last, 1001);
    good(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, NULL));
    launch(nothing, 1, 1, NULL, NULL);
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), 1);
    size_t i = 0;
    while (records[i].kind != CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
        i++;
    const CUpti_ActivityExternalCorrelation *e = &records[i].external;
    assert_int_equal(e->externalId, 1001);
    assert_int_equal(e->externalKind, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
    assert_int_equal(e->correlationId, nth(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0)->kernel.correlationId);
    for (size_t k = 0; k < i; k++)
        assert_false(records[k].kind == CUPTI_ACTIVITY_KIND_RUNTIME &&
                     records[k].api.correlationId == e->correlationId);
}

static void test_synchronisation_and_events(void **state)
{
    cudaStream_t s;
    cudaEvent_t e;
    uint32_t stream_id;
    good(cudaStreamCreate(&s));
    good(cudaEventCreate(&e));
    good(cuptiGetStreamId(NULL, s, &stream_id));
    collect(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
    collect(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    good(cudaEventRecord(e, s));
    good(cudaStreamWaitEvent(NULL, e, 0));
    good(cudaEventSynchronize(e));
    good(cudaStreamSynchronize(s));
    flush(); /* synchronises the context */
    static const CUpti_ActivitySynchronizationType types[] = {CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
                                                              CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
                                                              CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
                                                              CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE};
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION), 4);
    for (size_t i = 0; i < 4; i++) {
        const CUpti_ActivitySynchronization2 *r = &nth(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, i)->sync;
        assert_int_equal(r->type, types[i]);
        assert_true(r->start <= r->end);
    }
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CUDA_EVENT), 1);
    const CUpti_ActivityCudaEvent2 *recorded = &nth(CUPTI_ACTIVITY_KIND_CUDA_EVENT, 0)->event;
    assert_int_equal(recorded->streamId, stream_id);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 1)->sync.cudaEventId, recorded->eventId);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 1)->sync.cudaEventSyncId, recorded->cudaEventSyncId);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 2)->sync.streamId, stream_id);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, 2)->sync.cudaEventId,
                     CUPTI_SYNCHRONIZATION_INVALID_VALUE);
    good(cudaEventDestroy(e));
    good(cudaStreamDestroy(s));
}

static void test_memory_records(void **state)
{
    void *a, *h;
    collect(CUPTI_ACTIVITY_KIND_MEMORY2);
    good(cudaMalloc(&a, 777));
    good(cudaMallocHost(&h, 4000));
    good(cudaFree(a));
    good(cudaMallocAsync(&a, 100, NULL));
    good(cudaFreeAsync(a, NULL));
    good(cudaFreeHost(h));
    good(cudaFree(NULL));
    flush();
    static const struct {
        CUpti_ActivityMemoryOperationType type;
        CUpti_ActivityMemoryKind kind;
        uint64_t bytes;
        bool async;
    } expected[] = {
        {CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 777, false},
        {CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, 4000, false},
        {CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 777, false},
        {CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 100, true},
        {CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 100, true},
        {CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, 4000, false},
    };
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_MEMORY2), 6);
    for (size_t i = 0; i < 6; i++) {
        const CUpti_ActivityMemory4 *m = &nth(CUPTI_ACTIVITY_KIND_MEMORY2, i)->memory;
        assert_int_equal(m->memoryOperationType, expected[i].type);
        assert_int_equal(m->memoryKind, expected[i].kind);
        assert_int_equal(m->bytes, expected[i].bytes);
        assert_int_equal(m->isAsync, expected[i].async);
        assert_int_equal(m->streamId != CUPTI_INVALID_STREAM_ID, expected[i].async);
    }
}

static void test_single_functions(void **state)
{
    good(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 1));
    int device;
    good(cudaGetDevice(&device));
    good(cudaGetDeviceCount(&device));
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_RUNTIME), 1);
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_RUNTIME, 0)->api.cbid, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020);
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_DRIVER), 0);
    good(cuptiActivityEnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuDeviceGetCount, 1));
    good(cudaGetDeviceCount(&device));
    good(cuptiActivityFlush(NULL, 0, 0));
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_DRIVER), 1);
    /* A failing call has its record, too. */
    good(cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020, 1));
    assert_int_equal(cudaSetDevice(99), cudaErrorInvalidDevice);
    cudaGetLastError();
    flush();
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_RUNTIME, 1)->api.returnValue, cudaErrorInvalidDevice);
}

static void test_context_setting_counts_more(void **state)
{
    CUcontext c;
    good(cuCtxGetCurrent(&c));
    assert_int_equal(cuptiActivityEnableContext(NULL, CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_ERROR_INVALID_CONTEXT);
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    good(cuptiActivityDisableContext(c, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    launch(nothing, 1, 1, NULL, NULL);
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 0);
    good(cuptiActivityEnableContext(c, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    launch(nothing, 1, 1, NULL, NULL);
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 1);
}

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

static void test_buffers_are_filled_and_limited(void **state)
{
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    buffer_records = 3;
    for (int i = 0; i < 10; i++)
        launch(nothing, 1, 1, NULL, NULL);
    flush();
    assert_int_equal(how_many(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), 10);
    assert_int_equal(buffers_out, 0);
}

static void test_refused_buffer_drops_and_counts(void **state)
{
    size_t dropped = 99;
    good(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    refuse_buffers = true;
    launch(nothing, 1, 1, NULL, NULL);
    launch(nothing, 1, 1, NULL, NULL);
    flush();
    good(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    assert_int_equal(dropped, 2);
    good(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    assert_int_equal(dropped, 0);
    /* A buffer that takes no record is as good as none. */
    refuse_buffers = false;
    buffer_bytes = 8;
    launch(nothing, 1, 1, NULL, NULL);
    flush();
    good(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
    assert_int_equal(dropped, 1);
    assert_int_equal(buffers_out, 0);
    assert_int_equal(cuptiActivityGetNumDroppedRecords(NULL, 0, NULL), CUPTI_ERROR_INVALID_PARAMETER);
}

static void test_buffer_calls_are_checked(void **state)
{
    assert_int_equal(cuptiActivityRegisterCallbacks(NULL, completed), CUPTI_ERROR_INVALID_PARAMETER);
    good(cuptiFinalize());
    assert_int_equal(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
    CUpti_Activity *record = NULL;
    uint64_t words[2] = {CUPTI_ACTIVITY_KIND_PC_SAMPLING, 0};
    assert_int_equal(cuptiActivityGetNextRecord(NULL, 8, &record), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiActivityGetNextRecord((uint8_t *)words, 0, &record), CUPTI_ERROR_MAX_LIMIT_REACHED);
    assert_int_equal(cuptiActivityGetNextRecord((uint8_t *)words, 16, &record), CUPTI_ERROR_INVALID_KIND);
    words[0] = CUPTI_ACTIVITY_KIND_RUNTIME; /* cut off */
    assert_int_equal(cuptiActivityGetNextRecord((uint8_t *)words, 16, &record), CUPTI_ERROR_INVALID_KIND);
}

static void test_attributes(void **state)
{
    size_t value = 0, bytes = sizeof value;
    uint8_t flag;
    good(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value));
    assert_int_equal(value, 3200000);
    value = 12345;
    good(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value));
    value = 0;
    good(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value));
    assert_int_equal(value, 12345);
    bytes = 1;
    assert_int_equal(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value),
                     CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
    good(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &bytes, &flag));
    assert_int_equal(flag, 1);
    assert_int_equal(cuptiActivityGetAttribute((CUpti_ActivityAttribute)99, &bytes, &value),
                     CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, NULL, &value),
                     CUPTI_ERROR_INVALID_PARAMETER);
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

static uint64_t ticks;
static uint64_t tick(void)
{
    return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}

static void test_clock(void **state)
{
    struct timespec t;
    uint64_t now = 0;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t wall = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    good(cuptiGetTimestamp(&now));
    assert_true(now > wall - 60000000000u && now < wall + 60000000000u);
    assert_int_equal(cuptiGetTimestamp(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    assert_int_equal(cuptiActivityRegisterTimestampCallback(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    good(cuptiActivityRegisterTimestampCallback(tick));
    collect(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    launch(nothing, 1, 1, NULL, NULL);
    flush();
    const CUpti_ActivityKernel10 *k = &nth(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0)->kernel;
    assert_true(k->start < k->end && k->end < 1000);
}

static void test_ids_and_strings(void **state)
{
    uint32_t id, version;
    const char *text;
    int support;
    assert_int_equal(cuptiGetContextId(NULL, &id), CUPTI_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuptiGetContextId((CUcontext)&id, &id), CUPTI_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuptiGetStreamId(NULL, (CUstream)&id, &id), CUPTI_ERROR_INVALID_STREAM);
    uint32_t null_stream, own;
    good(cuptiGetStreamIdEx(NULL, NULL, 0, &null_stream));
    good(cuptiGetStreamIdEx(NULL, NULL, 1, &own));
    assert_int_not_equal(null_stream, own);
    good(cuptiGetVersion(&version));
    assert_int_equal(version, CUPTI_API_VERSION);
    good(cuptiGetResultString(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, &text));
    assert_string_equal(text, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
    good(cuptiGetErrorMessage(CUPTI_ERROR_NOT_READY, &text));
    assert_int_equal(cuptiGetResultString((CUptiResult)500, &text), CUPTI_ERROR_INVALID_PARAMETER);
    good(cuptiDeviceSupported(0, &support));
    assert_int_equal(support, 1);
    good(cuptiComputeCapabilitySupported(8, 6, &support));
    assert_int_equal(support, 1);
}

static void test_last_error_is_told_once(void **state)
{
    uint64_t now;
    cuptiGetLastError();
    assert_int_equal(cuptiGetTimestamp(NULL), CUPTI_ERROR_INVALID_PARAMETER);
    good(cuptiGetTimestamp(&now));
    assert_int_equal(cuptiGetLastError(), CUPTI_ERROR_INVALID_PARAMETER);
    good(cuptiGetLastError());
    good(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_PC_SAMPLING));
    good(cuptiGetLastError());
}

static void test_thread_ids(void **state)
{
    CUpti_ActivityThreadIdType type;
    int device;
    good(cuptiGetThreadIdType(&type));
    assert_int_equal(type, CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT);
    assert_int_equal(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE), CUPTI_ERROR_NOT_SUPPORTED);
    collect(CUPTI_ACTIVITY_KIND_DRIVER);
    good(cuDeviceGet(&device, 0));
    good(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
    good(cuDeviceGet(&device, 0));
    good(cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT));
    flush();
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_DRIVER, 0)->api.threadId, (uint32_t)pthread_self());
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_DRIVER, 1)->api.threadId, gettid());
    assert_int_equal(nth(CUPTI_ACTIVITY_KIND_DRIVER, 1)->api.processId, getpid());
}

static void test_what_is_not_there_says_so(void **state)
{
    CUpti_EventGroup group;
    CUpti_EventID event;
    CUcontext c;
    good(cuCtxGetCurrent(&c));
    assert_int_equal(cuptiEventGroupCreate(c, &group, 0), CUPTI_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuptiEventGetIdFromName(0, "active_cycles", &event), CUPTI_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuptiActivityEnableHWTrace(1), CUPTI_ERROR_NOT_SUPPORTED);
    good(cuptiActivityEnableHWTrace(0));
    assert_int_equal(cuptiActivityEnableLaunchAttributes(1), CUPTI_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuptiActivityEnableAllocationSource(1), CUPTI_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuptiActivityEnableDeviceGraph(1), CUPTI_ERROR_NOT_SUPPORTED);
    assert_int_equal(cuptiActivityEnableCudaEventDeviceTimestamps(1), CUPTI_ERROR_NOT_SUPPORTED);
    good(cuptiActivityEnableAllSyncRecords(0));
    good(cuptiActivityFlushPeriod(10));
    CUpti_DeviceVirtualizationMode mode;
    good(cuptiDeviceVirtualizationMode(0, &mode));
    assert_int_equal(mode, CUPTI_DEVICE_VIRTUALIZATION_MODE_NONE);
    assert_int_equal(cuptiDeviceVirtualizationMode(77, &mode), CUPTI_ERROR_INVALID_DEVICE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    static const struct CMUnitTest tests[] = {
        TEST(test_enable_before_init_tells_of_device_and_context),
        TEST(test_dump_tells_of_what_is_there),
        TEST(test_kernel_record),
        TEST(test_disabled_kind_is_silent),
        TEST(test_kinds_that_cannot_be_had),
        TEST(test_copies_and_fills),
        TEST(test_external_correlation_comes_before_the_call),
        TEST(test_synchronisation_and_events),
        TEST(test_memory_records),
        TEST(test_single_functions),
        TEST(test_context_setting_counts_more),
        TEST(test_buffers_are_filled_and_limited),
        TEST(test_refused_buffer_drops_and_counts),
        TEST(test_buffer_calls_are_checked),
        TEST(test_attributes),
        TEST(test_clock),
        TEST(test_ids_and_strings),
        TEST(test_last_error_is_told_once),
        TEST(test_thread_ids),
        TEST(test_what_is_not_there_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
