/* Managed memory: advice, prefetching, discarding, and what is told about ranges; stream-ordered attachment. */
#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

enum { PAGE = 4096, PAGES = 8 };

static CUdeviceptr memory;

static int setup(void **state)
{
    return cuMemAllocManaged(&memory, PAGES * PAGE, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS;
}

static const CUmemLocation device_0 = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
static const CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST};
static const CUmemLocation node_0 = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};

static int attribute(CUmem_range_attribute which, int first, int count)
{
    int value = 42;
    ok(cuMemRangeGetAttribute(&value, sizeof value, which, memory + (size_t)first * PAGE, (size_t)count * PAGE));
    return value;
}

/* ---- advice ----------------------------------------------------------------------------------------------------- */

static void test_range_without_advice(void **state)
{
    static const struct {
        CUmem_range_attribute which;
        int value;
    } unset[] = {
        {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0},
        {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, CU_DEVICE_INVALID},
        {CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, CU_DEVICE_INVALID},
        {CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, CU_DEVICE_INVALID},
        {CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, CU_MEM_LOCATION_TYPE_INVALID},
        {CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, CU_MEM_LOCATION_TYPE_INVALID},
    };
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        assert_int_equal(attribute(unset[i].which, 0, PAGES), unset[i].value);
}

/* An attribute holds for a range when all of its pages agree, so each advice is looked at from inside, across and
 * outside its edges. */
static void test_advice_holds_where_it_was_given(void **state)
{
    ok(cuMemAdvise_v2(memory + 2 * PAGE, 3 * PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, device_0));
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 2, 3), 1);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 3, 1), 1);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 1, 2), 0);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 4, 2), 0);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, 2), 0);
    ok(cuMemAdvise_v2(memory + 3 * PAGE, PAGE, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device_0));
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 2, 3), 0);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 2, 1), 1);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 4, 1), 1);
    ok(cuMemAdvise_v2(memory, PAGES * PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, device_0));
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, PAGES), 1);
}

static void test_advice_of_places(void **state)
{
    ok(cuMemAdvise_v2(memory, PAGES * PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device_0));
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, PAGES), 0);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, 0, PAGES), CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, 0, PAGES), 0);
    ok(cuMemAdvise(memory, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, 1), CU_DEVICE_CPU);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, 0, 1), CU_MEM_LOCATION_TYPE_HOST);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, 2), CU_DEVICE_INVALID);
    ok(cuMemAdvise_v2(memory, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, node_0));
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, 0, 1), CU_MEM_LOCATION_TYPE_HOST_NUMA);
    ok(cuMemAdvise_v2(memory, PAGES * PAGE, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, host));
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 0, 1), CU_DEVICE_INVALID);
    assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, 4, 1), CU_DEVICE_INVALID);
}

static void test_advice_of_accessors(void **state)
{
    int who[3];
    ok(cuMemAdvise(memory, PAGES * PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
    ok(cuMemAdvise(memory, PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
    ok(cuMemRangeGetAttribute(who, sizeof who, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory, PAGE));
    assert_int_equal(who[0], 0);
    assert_int_equal(who[1], CU_DEVICE_CPU);
    assert_int_equal(who[2], CU_DEVICE_INVALID);
    ok(cuMemRangeGetAttribute(who, sizeof who, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory, 2 * PAGE));
    assert_int_equal(who[0], 0);
    assert_int_equal(who[1], CU_DEVICE_INVALID);
    ok(cuMemAdvise(memory + PAGE, PAGE, CU_MEM_ADVISE_UNSET_ACCESSED_BY, 0));
    ok(cuMemRangeGetAttribute(who, 4, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory, 2 * PAGE));
    assert_int_equal(who[0], CU_DEVICE_INVALID);
}

/* Memory at the same address later knows nothing of it. */
static void test_advice_ends_with_its_memory(void **state)
{
    CUdeviceptr first = memory;
    ok(cuMemAdvise(memory, PAGES * PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    for (int i = 0; i < 8; i++) {
        ok(cuMemFree_v2(memory));
        ok(cuMemAllocManaged(&memory, PAGES * PAGE, CU_MEM_ATTACH_GLOBAL));
        assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0, PAGES), 0);
        if (memory == first)
            break;
    }
}

static void test_advice_refuses(void **state)
{
    CUdeviceptr device;
    const CUmemLocation bad_device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 99};
    const CUmemLocation bad_node = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 5};
    ok(cuMemAlloc_v2(&device, PAGE));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(device, PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(memory, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(memory, PAGES * PAGE + 1, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(memory, PAGE, 0, 0));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAdvise(memory, PAGE, 7, 0));
    fails(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise(memory, PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, 99));
    fails(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise_v2(memory, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, bad_device));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(memory, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, bad_node));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemAdvise_v2(memory, PAGE, CU_MEM_ADVISE_SET_ACCESSED_BY, node_0));
    ok(cuMemFree_v2(device));
}

static void test_range_attributes(void **state)
{
    int mostly, where, who[2];
    void *data[] = {&mostly, &where, who};
    size_t sizes[] = {4, 4, 8};
    CUmem_range_attribute which[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                     CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY};
    ok(cuMemAdvise(memory, PAGE, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    ok(cuMemAdvise(memory, PAGE, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
    ok(cuMemRangeGetAttributes(data, sizes, which, 3, memory, PAGE));
    assert_int_equal(mostly, 1);
    assert_int_equal(where, CU_DEVICE_CPU);
    assert_int_equal(who[0], CU_DEVICE_INVALID);
    assert_int_equal(who[1], CU_DEVICE_INVALID);
    fails(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, sizes, which, 0, memory, PAGE));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(NULL, sizes, which, 3, memory, PAGE));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, sizes, which, 3, memory, PAGES * PAGE + 1));
    sizes[1] = 8;
    fails(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttributes(data, sizes, which, 3, memory, PAGE));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(who, 6, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, memory, PAGE));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(who, 4, 77, memory, PAGE));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemRangeGetAttribute(NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, PAGE));
}

/* ---- prefetching ------------------------------------------------------------------------------------------------ */

typedef CUresult one(CUdeviceptr, size_t, CUdevice, CUstream);
typedef CUresult one_v2(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream);
typedef CUresult batch(CUdeviceptr *, size_t *, size_t, CUmemLocation *, size_t *, size_t, unsigned long long,
                       CUstream);
typedef CUresult discard(CUdeviceptr *, size_t *, size_t, unsigned long long, CUstream);

static void test_prefetch_in_all_forms(void **state)
{
    static one *const old[] = {cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz};
    static one_v2 *const new[] = {cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz};
    const CUmemLocation bad = {.type = 9};
    for (int i = 0; i < 2; i++) {
        ok(old[i](memory, PAGES * PAGE, 0, NULL));
        assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, PAGES), 0);
        ok(old[i](memory + PAGE, PAGE, CU_DEVICE_CPU, NULL));
        assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 1, 1), CU_DEVICE_CPU);
        assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, 2), CU_DEVICE_INVALID);
        ok(new[i](memory, PAGE, node_0, 0, NULL));
        assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, 0, 1),
                         CU_MEM_LOCATION_TYPE_HOST_NUMA);
        assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, 0, 1), 0);
        fails(CUDA_ERROR_INVALID_DEVICE, old[i](memory, PAGE, 99, NULL));
        fails(CUDA_ERROR_INVALID_VALUE, old[i](memory, 0, 0, NULL));
        fails(CUDA_ERROR_INVALID_VALUE, new[i](memory, PAGE, device_0, 1, NULL));
        fails(CUDA_ERROR_INVALID_VALUE, new[i](memory, PAGE, bad, 0, NULL));
        fails(CUDA_ERROR_INVALID_VALUE, new[i](0, PAGE, device_0, 0, NULL));
        fails(CUDA_ERROR_INVALID_HANDLE, new[i](memory, PAGE, device_0, 0, (CUstream)0x1234));
    }
}

static void test_batches_in_all_forms(void **state)
{
    static const struct {
        batch *batch;
        bool per_thread;
    } forms[] = {{cuMemPrefetchBatchAsync, false},
                 {cuMemPrefetchBatchAsync_ptsz, true},
                 {cuMemDiscardAndPrefetchBatchAsync, false},
                 {cuMemDiscardAndPrefetchBatchAsync_ptsz, true}};
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 4; i++) {
        CUdeviceptr at[] = {memory, memory + PAGE, memory + 2 * PAGE};
        size_t sizes[] = {PAGE, PAGE, PAGE}, starts[] = {0, 2}, equal[] = {0, 0}, late[] = {1, 2}, outside[] = {0, 3};
        CUmemLocation places[] = {host, device_0};
        CUstream use = forms[i].per_thread ? NULL : s;
        batch *b = forms[i].batch;
        ok(cuMemPrefetchAsync(memory, PAGES * PAGE, 0, s));
        fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 3, places, equal, 2, 0, use));
        fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 3, places, late, 2, 0, use));
        fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 3, places, outside, 2, 0, use));
        fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 3, places, starts, 0, 0, use));
        fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 3, places, starts, 4, 0, use));
        fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 3, places, starts, 2, 1, use));
        fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 0, places, starts, 2, 0, use));
        fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 3, places, starts, 2, 0, CU_STREAM_LEGACY));
        if (!forms[i].per_thread)
            fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 3, places, starts, 2, 0, NULL));
        at[2] = 16; /* one bad range, and nothing is done for the others */
        fails(CUDA_ERROR_INVALID_VALUE, b(at, sizes, 3, places, starts, 2, 0, use));
        assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, PAGES), 0);
        at[2] = memory + 2 * PAGE;
        ok(b(at, sizes, 3, places, starts, 2, 0, use));
        assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 0, 2), CU_DEVICE_CPU);
        assert_int_equal(attribute(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, 2, 1), 0);
    }
    ok(cuStreamDestroy_v2(s));
}

static void test_discard_in_both_forms(void **state)
{
    static discard *const forms[] = {cuMemDiscardBatchAsync, cuMemDiscardBatchAsync_ptsz};
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++) {
        CUdeviceptr at[] = {memory, memory + PAGE};
        size_t sizes[] = {PAGE, PAGE};
        volatile uint32_t *here = (volatile uint32_t *)(uintptr_t)memory;
        ok(forms[i](at, sizes, 2, 0, s));
        ok(cuStreamSynchronize(s));
        *here = 5; /* a write ends it */
        assert_int_equal(*here, 5);
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](at, sizes, 2, 1, s));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](at, sizes, 0, 0, s));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](NULL, sizes, 2, 0, s));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](at, sizes, 2, 0, CU_STREAM_LEGACY));
        fails(i ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, forms[i](at, sizes, 2, 0, NULL));
        at[1] = memory + PAGES * PAGE;
        fails(CUDA_ERROR_INVALID_VALUE, forms[i](at, sizes, 2, 0, s));
    }
    ok(cuStreamDestroy_v2(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_range_without_advice, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_advice_holds_where_it_was_given, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_advice_of_places, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_advice_of_accessors, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_advice_ends_with_its_memory, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_advice_refuses, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_range_attributes, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_prefetch_in_all_forms, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_batches_in_all_forms, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_discard_in_both_forms, setup, reset_context),
    };
    return cmocka_run_group_tests(tests, use_primary_context, NULL);
}
