/* softgpu's libcupti as a profiler uses it: records of what ran, callbacks of what was called. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <cupti.h>

#define good(call) assert_int_equal((call), 0)

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry add_one(.param .u64 p, .param .u32 n) {\n"
                          ".reg .pred %q; .reg .b32 %r<6>; .reg .b64 %d<3>; .shared .b32 s[4];\n"
                          "ld.param.u64 %d0, [p]; ld.param.u32 %r4, [n];\n"
                          "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
                          "mad.lo.u32 %r3, %r0, %r1, %r2; setp.ge.u32 %q, %r3, %r4; @%q bra done;\n"
                          "st.shared.b32 [s], %r3; mul.wide.u32 %d1, %r3, 4; add.u64 %d2, %d0, %d1;\n"
                          "ld.global.u32 %r5, [%d2]; add.u32 %r5, %r5, 1; st.global.u32 [%d2], %r5;\n"
                          "done: ret; }\n"
                          ".visible .entry nothing() { ret; }\n";

static cudaLibrary_t library;
static cudaKernel_t add_one, nothing;

/* ---- collecting records ----------------------------------------------------------------------------------------- */

enum { RECORDS = 65536 };
static union record {
    CUpti_ActivityKind kind;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityMemset4 fill;
    CUpti_ActivityAPI api;
    CUpti_ActivityDevice5 device;
    CUpti_ActivityContext3 context;
    CUpti_ActivityStream stream;
    CUpti_ActivitySynchronization2 sync;
    CUpti_ActivityCudaEvent2 event;
    CUpti_ActivityExternalCorrelation external;
    CUpti_ActivityMemory4 memory;
    CUpti_ActivityModule module;
} * records;
static size_t count, buffers_out, bad_buffers;
static size_t buffer_bytes = 4096, buffer_records;
static bool refuse_buffers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void requested(uint8_t **buffer, size_t *size, size_t *maxNumRecords)
{
    pthread_mutex_lock(&lock);
    *buffer = refuse_buffers ? NULL : aligned_alloc(8, buffer_bytes);
    *size = buffer_bytes;
    *maxNumRecords = buffer_records;
    buffers_out += *buffer != NULL;
    pthread_mutex_unlock(&lock);
}

static void completed(CUcontext context, uint32_t streamId, uint8_t *buffer, size_t size, size_t validSize)
{
    CUpti_Activity *record = NULL;
    CUptiResult result;
    size_t n = 0;
    pthread_mutex_lock(&lock);
    while ((result = cuptiActivityGetNextRecord(buffer, validSize, &record)) == CUPTI_SUCCESS) {
        size_t bytes = (size_t)(buffer + validSize - (uint8_t *)record);
        memcpy(&records[count], record, bytes < sizeof *records ? bytes : sizeof *records);
        count += count < RECORDS - 1;
        n++;
    }
    bad_buffers +=
        result != CUPTI_ERROR_MAX_LIMIT_REACHED || (buffer_records && n > buffer_records) || size < validSize;
    buffers_out--;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static void collect(CUpti_ActivityKind kind)
{
    good(cuptiActivityEnable(kind));
}

static void flush(void)
{
    good(cudaDeviceSynchronize());
    good(cuptiActivityFlushAll(0));
    assert_int_equal(bad_buffers, 0);
}

/* The nth record of a kind; NULL when there are not so many. */
static const union record *nth(CUpti_ActivityKind kind, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (records[i].kind == kind && !n--)
            return &records[i];
    return NULL;
}

static size_t how_many(CUpti_ActivityKind kind)
{
    size_t n = 0;
    while (nth(kind, n))
        n++;
    return n;
}

static const CUpti_ActivityAPI *call_of(CUpti_ActivityKind kind, uint32_t cbid)
{
    const union record *r;
    for (size_t i = 0; (r = nth(kind, i)); i++)
        if (r->api.cbid == cbid)
            return &r->api;
    return NULL;
}

static int begin(void **state)
{
    records = calloc(RECORDS, sizeof *records);
    count = bad_buffers = 0;
    buffer_bytes = 4096;
    buffer_records = 0;
    refuse_buffers = false;
    return cuptiActivityRegisterCallbacks(requested, completed);
}

static int end(void **state)
{
    int result = cuptiFinalize();
    free(records);
    return result || buffers_out;
}

static void launch(cudaKernel_t kernel, unsigned grid, unsigned block, void *memory, cudaStream_t stream)
{
    unsigned n = grid * block;
    void *args[] = {&memory, &n};
    good(cudaLaunchKernel((const void *)kernel, (dim3){grid, 1, 1}, (dim3){block, 1, 1}, args, 16, stream));
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

/* First of all: only a driver that is not initialised yet tells of its devices by itself. */
static void test_enable_before_init_tells_of_device_and_context(void **state)
{
    collect(CUPTI_ACTIVITY_KIND_DEVICE);
    collect(CUPTI_ACTIVITY_KIND_CONTEXT);
    collect(CUPTI_ACTIVITY_KIND_STREAM);
    collect(CUPTI_ACTIVITY_KIND_MODULE);
    good(cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    good(cudaLibraryGetKernel(&add_one, library, "add_one"));
    good(cudaLibraryGetKernel(&nothing, library, "nothing"));
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
        strcpy(s->function, d->functionName);
        if (d->symbolName)
            strcpy(s->symbol, d->symbolName);
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
    assert_true(now > wall - 1000000000u && now < wall + 1000000000u);
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
    assert_int_equal(cuptiGetResultString((CUptiResult)500, &text), CUPTI_ERROR_INVALID_PARAMETER);
    good(cuptiDeviceSupported(0, &support));
    assert_int_equal(support, 1);
    good(cuptiComputeCapabilitySupported(8, 6, &support));
    assert_int_equal(support, 1);
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
        TEST(test_callbacks_of_the_runtime),
        TEST(test_callbacks_of_resources),
        TEST(test_second_subscriber_is_refused),
        TEST(test_callback_arguments_are_checked),
        TEST(test_clock),
        TEST(test_ids_and_strings),
        TEST(test_what_is_not_there_says_so),
        TEST(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
