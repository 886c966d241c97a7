/* Stream-ordered memory and its pools through the runtime. */
#include "tests/unit/softgpu_runtime.h"

static cudaStream_t stream;
static cudaMemPool_t pool;
static struct cudaMemLocation here = {.type = cudaMemLocationTypeDevice, .id = 0};

static int setup(void **state)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned, .location = here};
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
           cudaMemPoolCreate(&pool, &props) != cudaSuccess;
}

static int teardown(void **state)
{
    return cudaMemPoolDestroy(pool) != cudaSuccess || cudaStreamDestroy(stream) != cudaSuccess;
}

static cudaError_t take(bool from_pool, void **p, size_t bytes, cudaStream_t s)
{
    return from_pool ? cudaMallocFromPoolAsync(p, bytes, pool, s) : cudaMallocAsync(p, bytes, s);
}

static void test_memory_in_stream_order(void **state)
{
    const cudaStream_t streams[] = {NULL, stream};
    for (int i = 0; i < 4; i++) {
        int *p, *again, out = 0;
        cudaStream_t s = streams[i / 2];
        ok(take(i & 1, (void **)&p, 4, s));
        ok(cudaMemsetAsync(p, 1, 4, s));
        ok(cudaMemcpyAsync(&out, p, 4, cudaMemcpyDeviceToHost, s));
        ok(cudaFreeAsync(p, s));
        ok(take(i & 1, (void **)&again, 4, s)); /* the same stream may have it at once */
        assert_ptr_equal(again, p);
        ok(cudaFreeAsync(again, s));
        ok(cudaStreamSynchronize(s));
        assert_int_equal(out, 0x01010101);
        sets(cudaErrorInvalidValue, cudaFreeAsync(p, s));
        ok(take(i & 1, (void **)&p, 4, s));
        ok(cudaFree(p)); /* waits instead */
    }
}

/* Memory whose free was not reached yet may be given out again in its own stream only. */
static void test_calls_go_to_stream_0(void **state)
{
    cudaStream_t explicitly = OWN_STREAM ? cudaStreamPerThread : cudaStreamLegacy;
    void *p, *again, *other;
    struct elsewhere e;
    for (int i = 0; i < 2; i++) {
        struct gate g = {0};
        ok(cudaDeviceSynchronize());
        ok(take(i, &p, 3 << 20, explicitly));
        ok(cudaLaunchHostFunc(explicitly, wait_at, &g));
        ok(cudaFreeAsync(p, explicitly));
        ok(take(i, &other, 3 << 20, stream));
        assert_ptr_not_equal(other, p);
        ok(take(i, &again, 3 << 20, NULL));
        assert_ptr_equal(again, p);
        atomic_store(&g.open, true);
        ok(cudaFreeAsync(other, stream));
        ok(cudaDeviceSynchronize());
        work_elsewhere(&e);
        ok(cudaFreeAsync(again, NULL));
        assert_true(in_stream_0(&e));
    }
}

static void test_memory_refuses(void **state)
{
    void *p;
    for (int i = 0; i < 2; i++) {
        sets(cudaErrorInvalidValue, take(i, NULL, 4, stream));
        sets(cudaErrorInvalidResourceHandle, take(i, &p, 4, NO_STREAM));
        sets(cudaErrorMemoryAllocation, take(i, &p, (size_t)1 << 60, stream));
    }
    sets(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&p, 4, NULL, stream));
    ok(cudaMallocAsync(&p, 64, stream));
    sets(cudaErrorInvalidResourceHandle, cudaFreeAsync(p, NO_STREAM));
    sets(cudaErrorInvalidValue, cudaFreeAsync((char *)p + 4, stream));
    ok(cudaFreeAsync(p, stream));
}

static uint64_t attribute(cudaMemPool_t of, enum cudaMemPoolAttr attr)
{
    uint64_t value = 0;
    ok(cudaMemPoolGetAttribute(of, attr, &value));
    return value;
}

static void test_pool_attributes(void **state)
{
    void *p;
    int reuse = 0;
    uint64_t value = 1 << 30, low = 0;
    ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    assert_int_equal(attribute(pool, cudaMemPoolAttrReleaseThreshold), 1 << 30);
    uint64_t used = attribute(pool, cudaMemPoolAttrUsedMemCurrent);
    ok(take(true, &p, 5 << 20, stream));
    assert_true(attribute(pool, cudaMemPoolAttrUsedMemCurrent) >= used + (5 << 20));
    ok(cudaFreeAsync(p, stream));
    ok(cudaStreamSynchronize(stream));
    assert_int_equal(attribute(pool, cudaMemPoolAttrUsedMemCurrent), used);
    assert_true(attribute(pool, cudaMemPoolAttrUsedMemHigh) >= 5 << 20);
    assert_true(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= 5 << 20); /* kept: below the threshold */
    ok(cudaMemPoolTrimTo(pool, 0));
    assert_true(attribute(pool, cudaMemPoolAttrReservedMemCurrent) < 5 << 20);
    ok(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &low)); /* to what is used now */
    assert_int_equal(attribute(pool, cudaMemPoolAttrUsedMemHigh), used);
    ok(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &reuse));
    reuse = 7;
    ok(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &reuse));
    assert_int_equal(reuse, 0);
    sets(cudaErrorInvalidValue,
         cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &value));                     /* is read only */
    sets(cudaErrorInvalidValue, cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value)); /* only 0 */
    sets(cudaErrorInvalidValue, cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)99, &value));
    sets(cudaErrorInvalidValue, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, NULL));
    sets(cudaErrorInvalidValue, cudaMemPoolGetAttribute(NULL, cudaMemPoolAttrUsedMemHigh, &value));
    sets(cudaErrorInvalidValue, cudaMemPoolSetAttribute(NULL, cudaMemPoolAttrReleaseThreshold, &value));
    sets(cudaErrorInvalidValue, cudaMemPoolTrimTo(NULL, 0));
}

static void test_pool_access(void **state)
{
    enum cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    struct cudaMemLocation nowhere = {.type = cudaMemLocationTypeDevice, .id = 55};
    struct cudaMemAccessDesc access = {.location = here, .flags = cudaMemAccessFlagsProtReadWrite};
    ok(cudaMemPoolGetAccess(&flags, pool, &here));
    assert_int_equal(flags, cudaMemAccessFlagsProtReadWrite);
    ok(cudaMemPoolSetAccess(pool, &access, 1));
    access.flags = cudaMemAccessFlagsProtNone;
    sets(cudaErrorInvalidValue, cudaMemPoolSetAccess(pool, &access, 1)); /* never from its own device */
    ok(cudaMemPoolGetAccess(&flags, pool, &nowhere));
    assert_int_equal(flags, cudaMemAccessFlagsProtNone);
    sets(cudaErrorInvalidValue, cudaMemPoolGetAccess(NULL, pool, &here));
    sets(cudaErrorInvalidValue, cudaMemPoolGetAccess(&flags, NULL, &here));
    sets(cudaErrorInvalidValue, cudaMemPoolSetAccess(pool, NULL, 1));
    sets(cudaErrorInvalidValue, cudaMemPoolSetAccess(NULL, &access, 1));
}

static void test_pools_of_a_device(void **state)
{
    cudaMemPool_t first, now;
    ok(cudaDeviceGetDefaultMemPool(&first, 0));
    ok(cudaDeviceGetMemPool(&now, 0));
    assert_ptr_equal(now, first);
    ok(cudaDeviceSetMemPool(0, pool));
    ok(cudaDeviceGetMemPool(&now, 0));
    assert_ptr_equal(now, pool);
    ok(cudaDeviceSetMemPool(0, first));
    sets(cudaErrorInvalidDevice, cudaDeviceGetDefaultMemPool(&now, 5));
    sets(cudaErrorInvalidDevice, cudaDeviceGetMemPool(&now, -1));
    sets(cudaErrorInvalidDevice, cudaDeviceSetMemPool(5, pool));
    sets(cudaErrorInvalidValue, cudaDeviceSetMemPool(0, NULL));
    sets(cudaErrorInvalidValue, cudaDeviceGetDefaultMemPool(NULL, 0));
    sets(cudaErrorInvalidValue, cudaDeviceGetMemPool(NULL, 0));
    ok(cudaMemGetDefaultMemPool(&now, &here, cudaMemAllocationTypePinned));
    assert_ptr_equal(now, first);
    ok(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, pool));
    ok(cudaMemGetMemPool(&now, &here, cudaMemAllocationTypePinned));
    assert_ptr_equal(now, pool);
    ok(cudaDeviceGetMemPool(&now, 0));
    assert_ptr_equal(now, pool);
    ok(cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, first));
    sets(cudaErrorInvalidValue, cudaMemGetDefaultMemPool(NULL, &here, cudaMemAllocationTypePinned));
    sets(cudaErrorInvalidValue, cudaMemGetMemPool(&now, NULL, cudaMemAllocationTypePinned));
    sets(cudaErrorInvalidValue, cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, NULL));
    sets(cudaErrorInvalidValue, cudaMemGetMemPool(&now, &here, (enum cudaMemAllocationType)77));
    sets(cudaErrorInvalidValue, cudaMemPoolDestroy(first)); /* the default one stays */
}

static void test_pools_refuse(void **state)
{
    cudaMemPool_t p;
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned, .location = here};
    sets(cudaErrorInvalidValue, cudaMemPoolCreate(NULL, &props));
    sets(cudaErrorInvalidValue, cudaMemPoolCreate(&p, NULL));
    props.allocType = cudaMemAllocationTypeInvalid;
    sets(cudaErrorInvalidValue, cudaMemPoolCreate(&p, &props));
    props.allocType = cudaMemAllocationTypePinned;
    props.location.id = 55;
    sets(cudaErrorInvalidValue, cudaMemPoolCreate(&p, &props));
    props.location.type = cudaMemLocationTypeHost;
    sets(cudaErrorNotSupported, cudaMemPoolCreate(&p, &props));
    sets(cudaErrorInvalidValue, cudaMemPoolDestroy(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_in_stream_order),
        cmocka_unit_test(test_calls_go_to_stream_0),
        cmocka_unit_test(test_memory_refuses),
        cmocka_unit_test(test_pool_attributes),
        cmocka_unit_test(test_pool_access),
        cmocka_unit_test(test_pools_of_a_device),
        cmocka_unit_test(test_pools_refuse),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
