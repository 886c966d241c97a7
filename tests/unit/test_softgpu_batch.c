/* Batches of copies: every form, order in the stream, ephemeral sources, what is refused and which copy was wrong. */
#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

/* The forms as one: the first version tells which copy failed, the second does not. */
typedef CUresult first(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t, size_t *,
                       CUstream);
typedef CUresult second(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t,
                        CUstream);
typedef CUresult first_3d(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream);
typedef CUresult second_3d(size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream);
static const struct form {
    first *first;
    second *second;
    first_3d *first_3d;
    second_3d *second_3d;
    bool per_thread;
} forms[] = {
    {cuMemcpyBatchAsync, NULL, cuMemcpy3DBatchAsync, NULL, false},
    {cuMemcpyBatchAsync_ptsz, NULL, cuMemcpy3DBatchAsync_ptsz, NULL, true},
    {NULL, cuMemcpyBatchAsync_v2, NULL, cuMemcpy3DBatchAsync_v2, false},
    {NULL, cuMemcpyBatchAsync_v2_ptsz, NULL, cuMemcpy3DBatchAsync_v2_ptsz, true},
};
enum { FORMS = sizeof forms / sizeof *forms, MANY = 4 };

struct lines {
    CUdeviceptr to[MANY], from[MANY];
    size_t sizes[MANY], count;
    CUmemcpyAttributes attributes[MANY];
    size_t starts[MANY], attribute_count;
};

static CUresult run(const struct form *f, struct lines *b, size_t *failed, CUstream s)
{
    return f->first
               ? f->first(b->to, b->from, b->sizes, b->count, b->attributes, b->starts, b->attribute_count, failed, s)
               : f->second(b->to, b->from, b->sizes, b->count, b->attributes, b->starts, b->attribute_count, s);
}

static CUresult run_3d(const struct form *f, size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *failed, CUstream s)
{
    return f->first_3d ? f->first_3d(count, ops, failed, 0, s) : f->second_3d(count, ops, 0, s);
}

static CUdeviceptr device;
static CUstream stream;
static uint8_t bytes[1024], back[1024];

static int setup(void **state)
{
    for (int i = 0; i < (int)sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7 + 1);
    memset(back, 0, sizeof back);
    return cuMemAlloc_v2(&device, 4096) != CUDA_SUCCESS || cuMemsetD8_v2(device, 0, 4096) != CUDA_SUCCESS ||
           cuCtxSynchronize() != CUDA_SUCCESS || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
}

static CUstream stream_of(const struct form *f)
{
    return f->per_thread ? NULL : stream; /* null is a stream there */
}

static struct lines two_copies(void)
{
    return (struct lines){.to = {device, device + 512},
                          .from = {(uintptr_t)bytes, (uintptr_t)bytes + 100},
                          .sizes = {100, 200},
                          .count = 2,
                          .attributes = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}},
                          .starts = {0},
                          .attribute_count = 1};
}

static void test_batch_copies_in_all_forms(void **state)
{
    for (int i = 0; i < FORMS; i++) {
        struct lines b = two_copies();
        size_t failed = 42;
        ok(cuMemsetD8_v2(device, 0, 4096));
        ok(cuCtxSynchronize());
        ok(run(&forms[i], &b, &failed, stream_of(&forms[i])));
        assert_int_equal(failed, 42);
        ok(cuCtxSynchronize());
        ok(cuMemcpyDtoH_v2(back, device, sizeof back));
        assert_memory_equal(back, bytes, 100);
        assert_memory_equal(back + 512, bytes + 100, 200);
        assert_int_equal(back[100] | back[511] | back[712], 0);
    }
}

/* The batch waits for what is before it in the stream, also where it reads pageable memory. */
static void test_batch_keeps_stream_order(void **state)
{
    struct gate g = {0};
    struct lines b = two_copies();
    ok(cuLaunchHostFunc(stream, wait_at, &g));
    ok(cuMemcpyBatchAsync_v2(b.to, b.from, b.sizes, 2, b.attributes, b.starts, 1, stream));
    assert_true(soon(&g.reached));
    bytes[0] = 99; /* in stream order the source is read later */
    ok(cuMemcpyDtoHAsync_v2(back, device, 0, stream));
    fails(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    atomic_store(&g.open, true);
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpyDtoH_v2(back, device, 100));
    assert_int_equal(back[0], 99);
}

/* Sources that are gone when the call returns are read before it does; others of the batch are not. */
static void test_batch_reads_ephemeral_sources_at_once(void **state)
{
    struct gate g = {0};
    struct lines b = two_copies();
    b.attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    b.attributes[1].flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
    b.starts[1] = 1;
    ok(cuLaunchHostFunc(stream, wait_at, &g));
    ok(cuMemcpyBatchAsync_v2(b.to, b.from, b.sizes, 2, b.attributes, b.starts, 2, stream));
    uint8_t before = bytes[100];
    bytes[0] = 99;
    bytes[100] = 98;
    atomic_store(&g.open, true);
    ok(cuStreamSynchronize(stream));
    ok(cuMemcpyDtoH_v2(back, device, sizeof back));
    assert_int_equal(back[0], 99);
    assert_int_equal(back[512], before);
}

static void test_batch_refuses_and_names_the_copy(void **state)
{
    static const struct {
        const char *what;
        size_t at;
    } cases[] = {{"size 0", 1},
                 {"target unmapped", 1},
                 {"source too short", 0},
                 {"order", 1},
                 {"flags", 0},
                 {"first start", SIZE_MAX},
                 {"start outside", SIZE_MAX},
                 {"starts equal", SIZE_MAX},
                 {"no attributes", SIZE_MAX},
                 {"more attributes than copies", SIZE_MAX},
                 {"no copies", SIZE_MAX}};
    for (int i = 0; i < FORMS; i++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            struct lines b = two_copies();
            size_t failed = 42;
            switch (k) {
            case 0:
                b.sizes[1] = 0;
                break;
            case 1:
                b.to[1] = UINT64_C(0x0a7000000000);
                break;
            case 2:
                b.from[0] = device + 4000;
                break;
            case 3:
                b.attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID, b.starts[1] = 1,
                b.attribute_count = 2;
                break;
            case 4:
                b.attributes[0].flags = 2;
                break;
            case 5:
                b.starts[0] = 1;
                break;
            case 6:
                b.attributes[1] = b.attributes[0], b.starts[1] = 2, b.attribute_count = 2;
                break;
            case 7:
                b.attributes[1] = b.attributes[0], b.starts[1] = 0, b.attribute_count = 2;
                break;
            case 8:
                b.attribute_count = 0;
                break;
            case 9:
                b.attribute_count = 3;
                break;
            default:
                b.count = 0;
                break;
            }
            fails(CUDA_ERROR_INVALID_VALUE, run(&forms[i], &b, &failed, stream_of(&forms[i])));
            if (forms[i].first && failed != cases[k].at)
                fail_msg("%s: copy %zu is said to be wrong", cases[k].what, failed);
            ok(cuCtxSynchronize());
            ok(cuMemcpyDtoH_v2(back, device, sizeof back)); /* nothing of the batch was done */
            assert_int_equal(back[0] | back[512], 0);
        }
}

static void test_batch_refuses_the_legacy_stream(void **state)
{
    for (int i = 0; i < FORMS; i++) {
        struct lines b = two_copies();
        size_t failed = 42;
        fails(CUDA_ERROR_INVALID_VALUE, run(&forms[i], &b, &failed, CU_STREAM_LEGACY));
        if (!forms[i].per_thread)
            fails(CUDA_ERROR_INVALID_VALUE, run(&forms[i], &b, &failed, NULL));
    }
}

/* ---- boxes ------------------------------------------------------------------------------------------------------ */

static CUarray array_of(CUarray_format format, unsigned channels)
{
    CUarray a;
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 8, .Height = 4, .Format = format, .NumChannels = channels};
    ok(cuArray3DCreate_v2(&a, &d));
    return a;
}

static CUmemcpy3DOperand pointer(CUdeviceptr p, size_t row, size_t layer)
{
    return (CUmemcpy3DOperand){.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
                               .op.ptr = {.ptr = p, .rowLength = row, .layerHeight = layer}};
}

static CUmemcpy3DOperand in_array(CUarray a, size_t x, size_t y)
{
    return (CUmemcpy3DOperand){.type = CU_MEMCPY_OPERAND_TYPE_ARRAY, .op.array = {.array = a, .offset = {x, y, 0}}};
}

static CUDA_MEMCPY3D_BATCH_OP box(CUmemcpy3DOperand to, CUmemcpy3DOperand from, size_t w, size_t h, size_t d)
{
    return (CUDA_MEMCPY3D_BATCH_OP){
        .dst = to, .src = from, .extent = {w, h, d}, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY};
}

/* Elements of four bytes into an array at (2, 1), from there to another array, and out again; a box between pointers.
 */
static void test_boxes_in_all_forms(void **state)
{
    CUarray a = array_of(CU_AD_FORMAT_FLOAT, 1), b = array_of(CU_AD_FORMAT_UNSIGNED_INT32, 1);
    for (int i = 0; i < FORMS; i++) {
        size_t failed = 42;
        CUstream s = stream_of(&forms[i]);
        memset(back, 0, sizeof back);
        CUDA_MEMCPY3D_BATCH_OP into[] = {
            box(in_array(a, 2, 1), pointer((uintptr_t)bytes, 6, 0), 3, 2, 1), /* rows of 6 elements, 3 of them taken */
            box(pointer(device, 16, 4), pointer((uintptr_t)bytes, 10, 3), 10, 2, 2),
        };
        CUDA_MEMCPY3D_BATCH_OP across = box(in_array(b, 0, 0), in_array(a, 2, 1), 3, 2, 1);
        CUDA_MEMCPY3D_BATCH_OP out = box(pointer((uintptr_t)back, 0, 0), in_array(b, 0, 0), 3, 2, 1);
        ok(run_3d(&forms[i], 2, into, &failed, s));
        ok(run_3d(&forms[i], 1, &across, &failed, s));
        ok(run_3d(&forms[i], 1, &out, &failed, s));
        assert_int_equal(failed, 42);
        ok(cuCtxSynchronize());
        assert_memory_equal(back, bytes, 12);
        assert_memory_equal(back + 12, bytes + 24, 12);
        ok(cuMemcpyDtoH_v2(back, device, 256));
        for (int z = 0; z < 2; z++)
            for (int y = 0; y < 2; y++)
                assert_memory_equal(back + (z * 4 + y) * 16, bytes + (z * 3 + y) * 10, 10);
        assert_int_equal(back[10], 0);
    }
    ok(cuArrayDestroy(a));
    ok(cuArrayDestroy(b));
}

static void test_boxes_refuse_and_name_the_copy(void **state)
{
    CUarray a = array_of(CU_AD_FORMAT_FLOAT, 1), b = array_of(CU_AD_FORMAT_FLOAT, 2),
            gone = array_of(CU_AD_FORMAT_FLOAT, 1);
    ok(cuArrayDestroy(gone));
    const CUmemcpy3DOperand host = pointer((uintptr_t)bytes, 0, 0);
    CUDA_MEMCPY3D_BATCH_OP good = box(pointer(device, 0, 0), host, 4, 2, 1);
    CUDA_MEMCPY3D_BATCH_OP bad[] = {
        box(pointer(device, 0, 0), host, 0, 2, 1),
        box(pointer(device, 0, 0), host, 4, 0, 1),
        box(pointer(device, 0, 0), host, 4, 2, 0),
        box(pointer(device, 3, 0), host, 4, 2, 1),
        box(pointer(device, 4, 1), host, 4, 2, 1),
        box(in_array(a, 6, 0), host, 3, 1, 1),
        box(in_array(a, 0, 3), host, 3, 2, 1),
        box(in_array(a, 0, 0), in_array(b, 0, 0), 3, 2, 1),
        box(in_array(gone, 0, 0), host, 1, 1, 1),
        box(pointer(0, 0, 0), host, 1, 1, 1),
        good,
        good,
        good,
    };
    enum { BAD = sizeof bad / sizeof *bad };
    bad[BAD - 3].srcAccessOrder = 9;
    bad[BAD - 2].flags = 8;
    bad[BAD - 1].src.type = 3;
    for (int i = 0; i < FORMS; i++)
        for (size_t k = 0; k < BAD; k++) {
            size_t failed = 42;
            CUDA_MEMCPY3D_BATCH_OP ops[] = {good, bad[k]};
            if (run_3d(&forms[i], 2, ops, &failed, stream_of(&forms[i])) != CUDA_ERROR_INVALID_VALUE)
                fail_msg("case %zu is taken", k);
            if (forms[i].first_3d)
                assert_int_equal(failed, 1);
        }
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &good, 1, stream));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, NULL, 0, stream));
    fails(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(1, &good, 0, NULL));
    ok(cuCtxSynchronize());
    ok(cuMemcpyDtoH_v2(back, device, 8));
    assert_int_equal(back[0], 0);
    ok(cuMemcpy3DBatchAsync_v2(1, &good, 0, stream));
    ok(cuCtxSynchronize());
    ok(cuArrayDestroy(a));
    ok(cuArrayDestroy(b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_batch_copies_in_all_forms, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_batch_keeps_stream_order, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_batch_reads_ephemeral_sources_at_once, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_batch_refuses_and_names_the_copy, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_batch_refuses_the_legacy_stream, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_boxes_in_all_forms, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_boxes_refuse_and_name_the_copy, setup, reset_context),
    };
    return cmocka_run_group_tests(tests, use_primary_context, NULL);
}
