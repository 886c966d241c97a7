/* Managed memory through the runtime: advice, where ranges are, prefetches and discards; and batches of copies. */
#include "tests/unit/softgpu_runtime.h"

enum { BYTES = 2 << 20 };

static struct cudaMemLocation device = {.type = cudaMemLocationTypeDevice, .id = 0},
                              host = {.type = cudaMemLocationTypeHost},
                              nowhere = {.type = cudaMemLocationTypeDevice, .id = 55};
static cudaStream_t stream;
static char *managed;
static void *plain;

static int setup(void **state)
{
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
           cudaMallocManaged((void **)&managed, BYTES, cudaMemAttachGlobal) != cudaSuccess ||
           cudaMalloc(&plain, 4096) != cudaSuccess;
}

static int teardown(void **state)
{
    return cudaFree(managed) != cudaSuccess || cudaFree(plain) != cudaSuccess ||
           cudaStreamDestroy(stream) != cudaSuccess;
}

static int ask(enum cudaMemRangeAttribute attribute)
{
    int value = -77;
    ok(cudaMemRangeGetAttribute(&value, sizeof value, attribute, managed, BYTES));
    return value;
}

static void test_advice_is_kept(void **state)
{
    int values[2] = {-7, -7};
    void *data[] = {&values[0], &values[1]};
    size_t sizes[] = {sizeof(int), sizeof(int)};
    enum cudaMemRangeAttribute both[] = {cudaMemRangeAttributeReadMostly, cudaMemRangeAttributePreferredLocation};
    assert_int_equal(ask(cudaMemRangeAttributeReadMostly), 0);
    assert_int_equal(ask(cudaMemRangeAttributePreferredLocation), cudaInvalidDeviceId);
    ok(cudaMemAdvise(managed, BYTES, cudaMemAdviseSetReadMostly, device));
    ok(cudaMemAdvise(managed, BYTES, cudaMemAdviseSetPreferredLocation, host));
    assert_int_equal(ask(cudaMemRangeAttributePreferredLocation), cudaCpuDeviceId);
    ok(cudaMemRangeGetAttributes(data, sizes, both, 2, managed, BYTES));
    assert_int_equal(values[0], 1);
    assert_int_equal(values[1], cudaCpuDeviceId);
    ok(cudaMemAdvise(managed, BYTES, cudaMemAdviseUnsetReadMostly, device));
    ok(cudaMemAdvise(managed, BYTES, cudaMemAdviseUnsetPreferredLocation, device));
    assert_int_equal(ask(cudaMemRangeAttributeReadMostly), 0);
    ok(cudaMemAdvise(managed, BYTES, cudaMemAdviseSetAccessedBy, device));
    assert_int_equal(ask(cudaMemRangeAttributeAccessedBy), 0);
    ok(cudaMemAdvise(managed, BYTES, cudaMemAdviseUnsetAccessedBy, device));
    sets(cudaErrorInvalidValue, cudaMemAdvise(managed, BYTES, (enum cudaMemoryAdvise)40, device));
    sets(cudaErrorInvalidDevice, cudaMemAdvise(managed, BYTES, cudaMemAdviseSetPreferredLocation, nowhere));
    sets(cudaErrorInvalidValue, cudaMemAdvise(managed, 0, cudaMemAdviseSetReadMostly, device));
    sets(cudaErrorInvalidValue, cudaMemAdvise(plain, 64, cudaMemAdviseSetReadMostly, device));
    sets(cudaErrorInvalidValue, cudaMemRangeGetAttribute(NULL, 4, cudaMemRangeAttributeReadMostly, managed, BYTES));
    sets(cudaErrorInvalidValue, cudaMemRangeGetAttribute(values, 3, cudaMemRangeAttributeReadMostly, managed, BYTES));
    sets(cudaErrorInvalidValue, cudaMemRangeGetAttribute(values, 4, (enum cudaMemRangeAttribute)99, managed, BYTES));
    sets(cudaErrorInvalidValue, cudaMemRangeGetAttributes(NULL, sizes, both, 2, managed, BYTES));
    sets(cudaErrorInvalidValue, cudaMemRangeGetAttributes(data, sizes, both, 0, managed, BYTES));
}

/* ---- prefetches and discards, one or many ------------------------------------------------------------------------ */

static cudaError_t prefetch(int which, void *p, size_t bytes, struct cudaMemLocation place, cudaStream_t s)
{
    size_t first = 0;
    switch (which) {
    case 0:
        return cudaMemPrefetchAsync(p, bytes, place, 0, s);
    case 1:
        return cudaMemPrefetchBatchAsync(&p, &bytes, 1, &place, &first, 1, 0, s);
    case 2:
        return cudaMemDiscardAndPrefetchBatchAsync(&p, &bytes, 1, &place, &first, 1, 0, s);
    default:
        return cudaMemDiscardBatchAsync(&p, &bytes, 1, 0, s);
    }
}

static void test_prefetches(void **state)
{
    for (int i = 0; i < 3; i++) {
        memset(managed, 5, BYTES);
        ok(prefetch(i, managed, BYTES, device, stream));
        ok(cudaStreamSynchronize(stream));
        assert_int_equal(ask(cudaMemRangeAttributeLastPrefetchLocation), 0);
        ok(prefetch(i, managed, BYTES, host, stream));
        ok(cudaStreamSynchronize(stream));
        assert_int_equal(ask(cudaMemRangeAttributeLastPrefetchLocation), cudaCpuDeviceId);
        if (i < 2)
            assert_int_equal(managed[BYTES - 1], 5); /* what was discarded is anything */
        sets(cudaErrorInvalidDevice, prefetch(i, managed, BYTES, nowhere, stream));
        sets(cudaErrorInvalidValue, prefetch(i, plain, 64, device, stream));
    }
    ok(prefetch(3, managed, BYTES, device, stream));
    ok(cudaStreamSynchronize(stream));
    managed[0] = 9; /* usable as before */
    assert_int_equal(managed[0], 9);
    for (int i = 0; i < 4; i++) {
        sets(cudaErrorInvalidResourceHandle, prefetch(i, managed, BYTES, device, NO_STREAM));
        sets(cudaErrorInvalidValue, prefetch(i, managed, BYTES + 1, device, stream));
        sets(cudaErrorInvalidValue, prefetch(i, managed, 0, device, stream));
    }
    sets(cudaErrorInvalidValue, cudaMemPrefetchAsync(managed, BYTES, device, 1, stream));
    sets(cudaErrorInvalidValue, cudaMemDiscardBatchAsync(NULL, NULL, 1, 0, stream));
}

/* ---- batches of copies: their stream must be one that is no default one, or the thread's own --------------------- */

static cudaError_t copy_two(void *const *to, const void *const *from, enum cudaMemcpySrcAccessOrder order,
                            cudaStream_t s)
{
    const size_t sizes[] = {100, 50};
    size_t first = 0;
    struct cudaMemcpyAttributes a = {.srcAccessOrder = order};
    return cudaMemcpyBatchAsync(to, from, sizes, 2, &a, &first, 1, s);
}

static struct cudaMemcpy3DBatchOp box(void *to, void *from)
{
    struct cudaMemcpy3DBatchOp op = {.extent = {10, 4, 1}, .srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    op.src.type = op.dst.type = cudaMemcpyOperandTypePointer;
    op.src.op.ptr.ptr = from;
    op.src.op.ptr.rowLength = 10;
    op.src.op.ptr.layerHeight = 4;
    op.dst.op.ptr.ptr = to;
    op.dst.op.ptr.rowLength = 32;
    op.dst.op.ptr.layerHeight = 4;
    return op;
}

static void test_batches_of_copies(void **state)
{
    char in[150], out[150];
    void *to[] = {plain, (char *)plain + 1000};
    const void *from[] = {in, in + 100};
    cudaStream_t s = OWN_STREAM ? NULL : stream;
    struct elsewhere e;
    for (int i = 0; i < 150; i++)
        in[i] = (char)(i * 3);
    work_elsewhere(&e);
    ok(copy_two(to, from, cudaMemcpySrcAccessOrderStream, s));
    ok(cudaStreamSynchronize(s)); /* neither stream waits for the legacy one's company */
    assert_false(atomic_load(&e.gate.open));
    end_elsewhere(&e);
    ok(cudaMemcpy(out, plain, 100, cudaMemcpyDeviceToHost));
    ok(cudaMemcpy(out + 100, (char *)plain + 1000, 50, cudaMemcpyDeviceToHost));
    assert_memory_equal(in, out, 150);
    sets(cudaErrorInvalidValue, copy_two(to, from, cudaMemcpySrcAccessOrderInvalid, s));
    sets(cudaErrorInvalidValue, copy_two(NULL, from, cudaMemcpySrcAccessOrderStream, s));
    sets(cudaErrorInvalidResourceHandle, copy_two(to, from, cudaMemcpySrcAccessOrderStream, NO_STREAM));
    sets(cudaErrorInvalidValue, copy_two(to, from, cudaMemcpySrcAccessOrderStream, cudaStreamLegacy));
    to[1] = NULL; /* then none of it is done */
    in[0] = 1;
    sets(cudaErrorInvalidValue, copy_two(to, from, cudaMemcpySrcAccessOrderStream, s));
    ok(cudaMemcpy(out, plain, 1, cudaMemcpyDeviceToHost));
    assert_int_equal(out[0], 0);
}

static void test_batches_of_boxes(void **state)
{
    char in[40], out[4][32];
    cudaStream_t s = OWN_STREAM ? NULL : stream;
    memset(in, 6, sizeof in);
    struct cudaMemcpy3DBatchOp ops[] = {box(plain, in), box((char *)plain + 2048, in)};
    ok(cudaMemset(plain, 0, 4096));
    ok(cudaDeviceSynchronize());
    ok(cudaMemcpy3DBatchAsync(2, ops, 0, s));
    ok(cudaStreamSynchronize(s));
    for (int i = 0; i < 2; i++) {
        ok(cudaMemcpy(out, (char *)plain + 2048 * i, sizeof out, cudaMemcpyDeviceToHost));
        assert_int_equal(out[3][9], 6);
        assert_int_equal(out[3][10], 0);
    }
    sets(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(2, NULL, 0, s));
    sets(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(2, ops, 1, s));
    sets(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(2, ops, 0, cudaStreamLegacy));
    ops[1].src.type = (enum cudaMemcpy3DOperandType)9;
    sets(cudaErrorInvalidValue, cudaMemcpy3DBatchAsync(2, ops, 0, s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_advice_is_kept),
        cmocka_unit_test(test_prefetches),
        cmocka_unit_test(test_batches_of_copies),
        cmocka_unit_test(test_batches_of_boxes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
