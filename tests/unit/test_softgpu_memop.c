/* Stream memory operations of softgpu: every form and condition, who may bring the value, what is refused. */
#include <sys/wait.h>

#include "tests/unit/gate.h"
#include "tests/unit/softgpu_test.h"

static const char PTX[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry put(.param .u64 p, .param .u32 v) {\n"
                          "  .reg .u64 %rd1; .reg .u32 %r1; ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"
                          "  st.global.u32 [%rd1], %r1; ret;\n}\n";

/* ---- the forms -------------------------------------------------------------------------------------------------- */

typedef CUresult on_32(CUstream, CUdeviceptr, cuuint32_t, unsigned);
typedef CUresult on_64(CUstream, CUdeviceptr, cuuint64_t, unsigned);
typedef CUresult on_batch(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);
static const struct form {
    const char *name;
    on_32 *wait_32, *write_32;
    on_64 *wait_64, *write_64;
    on_batch *batch;
    bool old, per_thread;
} forms[] = {
#define FORM(suffix, old, per_thread)                                                                                  \
    {                                                                                                                  \
        "form" #suffix, cuStreamWaitValue32##suffix, cuStreamWriteValue32##suffix, cuStreamWaitValue64##suffix,        \
            cuStreamWriteValue64##suffix, cuStreamBatchMemOp##suffix, old, per_thread                                  \
    }
    FORM(, true, false),
    FORM(_ptsz, true, true),
    FORM(_v2, false, false),
    FORM(_v2_ptsz, false, true),
};
enum { FORMS = sizeof forms / sizeof *forms };

static CUresult host_function(const struct form *f, CUstream s, CUhostFn function, void *data)
{
    return f->per_thread ? cuLaunchHostFunc_ptsz(s, function, data) : cuLaunchHostFunc(s, function, data);
}

static CUstreamBatchMemOpParams wait_32(CUdeviceptr address, uint32_t value, unsigned flags)
{
    return (CUstreamBatchMemOpParams){
        .waitValue = {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .address = address, .value = value, .flags = flags}};
}

static CUstreamBatchMemOpParams write_64(CUdeviceptr address, uint64_t value)
{
    return (CUstreamBatchMemOpParams){
        .writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64, .address = address, .value64 = value}};
}

/* A word of host memory and the address that the device has of it. */
static uint64_t *word;
static CUdeviceptr address;

static int setup(void **state)
{
    void *p;
    if (cuMemHostAlloc(&p, 64, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS ||
        cuMemHostGetDevicePointer_v2(&address, p, 0) != CUDA_SUCCESS)
        return 1;
    word = p;
    return 0;
}

static void set_32(uint32_t value)
{
    __atomic_store_n((uint32_t *)word, value, __ATOMIC_SEQ_CST);
}

static void set_64(uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static uint32_t get_32(void)
{
    return __atomic_load_n((uint32_t *)word, __ATOMIC_SEQ_CST);
}

/* Each form in its own default stream: work behind a wait stays until the host brings the value; then it runs. */
static void test_wait_holds_its_stream_in_all_forms(void **state)
{
    for (int i = 0; i < FORMS; i++)
        for (int wide = 0; wide < 2; wide++) {
            atomic_bool flag = false;
            CUstream own = forms[i].per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
            set_64(4);
            ok(wide ? forms[i].wait_64(NULL, address, 5, CU_STREAM_WAIT_VALUE_GEQ)
                    : forms[i].wait_32(NULL, address, 5, CU_STREAM_WAIT_VALUE_GEQ));
            ok(host_function(&forms[i], NULL, set_flag, &flag));
            assert_true(not_yet(&flag));
            fails(CUDA_ERROR_NOT_READY, cuStreamQuery(own));
            set_64(6);
            assert_true(soon(&flag));
            ok(cuStreamSynchronize(own));
        }
}

static void test_write_in_all_forms(void **state)
{
    for (int i = 0; i < FORMS; i++) {
        CUstream own = forms[i].per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
        set_64(UINT64_MAX);
        ok(forms[i].write_32(NULL, address, 17, CU_STREAM_WRITE_VALUE_DEFAULT));
        ok(cuStreamSynchronize(own));
        assert_true(*word == (UINT64_C(0xffffffff) << 32 | 17)); /* four bytes and no more */
        ok(forms[i].write_64(NULL, address, UINT64_C(0x123456789abcdef0), CU_STREAM_WRITE_VALUE_DEFAULT));
        ok(cuStreamSynchronize(own));
        assert_true(*word == UINT64_C(0x123456789abcdef0));
    }
}

/* What a stream submitted before a write is done when the value is seen. */
static void test_write_comes_after_earlier_work(void **state)
{
    struct gate g = {0};
    CUstream s;
    set_32(0);
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuLaunchHostFunc(s, wait_at, &g));
    ok(cuStreamWriteValue32_v2(s, address, 1, 0));
    assert_true(soon(&g.reached));
    assert_int_equal(get_32(), 0);
    atomic_store(&g.open, true);
    ok(cuStreamSynchronize(s));
    assert_int_equal(get_32(), 1);
    ok(cuStreamDestroy_v2(s));
}

/* ---- conditions ------------------------------------------------------------------------------------------------- */

static const struct condition {
    unsigned flags;
    uint64_t value, not_yet, yet;
} conditions_32[] =
    {
        {CU_STREAM_WAIT_VALUE_GEQ, 10, 9, 10},
        {CU_STREAM_WAIT_VALUE_GEQ, 10, 9, 11},
        {CU_STREAM_WAIT_VALUE_GEQ, 2, UINT32_MAX, 3},          /* cyclic: -1 is before 2 */
        {CU_STREAM_WAIT_VALUE_GEQ, UINT32_MAX, 0x7fffffff, 1}, /* and 1 is after -1 */
        {CU_STREAM_WAIT_VALUE_EQ, 10, 11, 10},
        {CU_STREAM_WAIT_VALUE_AND, 0x8, 0x7, 0x18},
        {CU_STREAM_WAIT_VALUE_NOR, 0xff, 0xffffff00, 0xfffffe00},
        {CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH, 10, 11, 10},
},
  conditions_64[] = {
      {CU_STREAM_WAIT_VALUE_GEQ, UINT64_C(1) << 40, UINT64_C(1) << 39, UINT64_C(1) << 41},
      {CU_STREAM_WAIT_VALUE_GEQ, 2, UINT64_MAX, 2},
      {CU_STREAM_WAIT_VALUE_EQ, UINT64_C(10) << 32, 0, UINT64_C(10) << 32},
      {CU_STREAM_WAIT_VALUE_AND, UINT64_C(1) << 63, UINT64_MAX >> 1, UINT64_MAX},
      {CU_STREAM_WAIT_VALUE_NOR, 0xffffffff, UINT64_MAX << 32, UINT64_MAX << 33},
      {CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH, 0, UINT64_MAX, 0},
};

static void check_condition(const struct condition *c, bool wide)
{
    atomic_bool flag = false;
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    set_64(c->not_yet);
    ok(wide ? cuStreamWaitValue64_v2(s, address, c->value, c->flags)
            : cuStreamWaitValue32_v2(s, address, (uint32_t)c->value, c->flags));
    ok(cuLaunchHostFunc(s, set_flag, &flag));
    assert_true(not_yet(&flag));
    set_64(c->yet);
    assert_true(soon(&flag));
    ok(cuStreamSynchronize(s));
    ok(cuStreamDestroy_v2(s));
}

static void test_conditions(void **state)
{
    for (size_t i = 0; i < sizeof conditions_32 / sizeof *conditions_32; i++)
        check_condition(&conditions_32[i], false);
    for (size_t i = 0; i < sizeof conditions_64 / sizeof *conditions_64; i++)
        check_condition(&conditions_64[i], true);
}

/* ---- who brings the value --------------------------------------------------------------------------------------- */

static void by_kernel(CUstream s, CUdeviceptr a)
{
    CUmodule m;
    CUfunction fn;
    uint32_t value = 3;
    ok(cuModuleLoadData(&m, PTX));
    ok(cuModuleGetFunction(&fn, m, "put"));
    ok(cuLaunchKernel(fn, 1, 1, 1, 1, 1, 1, 0, s, (void *[]){&a, &value}, NULL));
}

static void by_copy(CUstream s, CUdeviceptr a)
{
    static const uint32_t value = 3;
    ok(cuMemcpyHtoDAsync_v2(a, &value, 4, s));
}

static void by_fill(CUstream s, CUdeviceptr a)
{
    ok(cuMemsetD32Async(a, 3, 1, s));
}

static void by_write(CUstream s, CUdeviceptr a)
{
    ok(cuStreamWriteValue32_v2(s, a, 3, 0));
}

static void test_wait_on_device_memory_is_met_by_another_stream(void **state)
{
    static void (*const ways[])(CUstream, CUdeviceptr) = {by_kernel, by_copy, by_fill, by_write};
    CUdeviceptr a;
    ok(cuMemAlloc_v2(&a, 64));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        atomic_bool flag = false;
        CUstream s, t;
        ok(cuMemsetD8_v2(a, 0, 64));
        ok(cuCtxSynchronize());
        ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        ok(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
        ok(cuStreamWaitValue32_v2(s, a + 4, 3, CU_STREAM_WAIT_VALUE_EQ));
        ok(cuLaunchHostFunc(s, set_flag, &flag));
        assert_true(not_yet(&flag));
        ways[i](t, a + 4);
        assert_true(soon(&flag));
        ok(cuStreamDestroy_v2(s));
        ok(cuStreamDestroy_v2(t));
    }
    ok(cuCtxSynchronize());
    ok(cuMemFree_v2(a));
}

/* Two streams that take turns a hundred times: neither runs ahead. */
static void test_streams_hand_over_in_turns(void **state)
{
    enum { TURNS = 100 };
    CUdeviceptr a, log;
    uint32_t out[2 * TURNS];
    CUstream s[2];
    ok(cuMemAlloc_v2(&a, 8));
    ok(cuMemAlloc_v2(&log, sizeof out));
    ok(cuMemsetD8_v2(a, 0, 8));
    ok(cuCtxSynchronize());
    for (int i = 0; i < 2; i++)
        ok(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
    for (uint32_t turn = 0; turn < 2 * TURNS; turn++) {
        ok(cuStreamWaitValue32_v2(s[turn % 2], a, turn, CU_STREAM_WAIT_VALUE_EQ));
        ok(cuMemcpyDtoDAsync_v2(log + turn * 4, a, 4, s[turn % 2]));
        ok(cuStreamWriteValue32_v2(s[turn % 2], a, turn + 1, 0));
    }
    ok(cuCtxSynchronize());
    ok(cuMemcpyDtoH_v2(out, log, sizeof out));
    for (uint32_t turn = 0; turn < 2 * TURNS; turn++)
        assert_int_equal(out[turn], turn);
    for (int i = 0; i < 2; i++)
        ok(cuStreamDestroy_v2(s[i]));
    ok(cuMemFree_v2(a));
    ok(cuMemFree_v2(log));
}

static void test_wait_on_registered_memory(void **state)
{
    static uint32_t here[1024];
    CUdeviceptr a;
    CUstream s;
    ok(cuMemHostRegister_v2(here, sizeof here, CU_MEMHOSTREGISTER_DEVICEMAP));
    ok(cuMemHostGetDevicePointer_v2(&a, here, 0));
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamWaitValue32_v2(s, a + 8, 1, CU_STREAM_WAIT_VALUE_EQ));
    fails(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    __atomic_store_n(&here[2], 1, __ATOMIC_SEQ_CST);
    ok(cuStreamSynchronize(s));
    ok(cuStreamDestroy_v2(s));
    ok(cuMemHostUnregister(here));
}

/* A failed context releases its waits. */
static void test_wait_ends_with_its_context(void **state)
{
    CUcontext c, old;
    CUstream s;
    CUdeviceptr a;
    ok(cuCtxGetCurrent(&old));
    ok(cuCtxCreate_v2(&c, 0, 0));
    ok(cuMemAlloc_v2(&a, 8));
    ok(cuMemsetD8_v2(a, 0, 8));
    ok(cuCtxSynchronize());
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuStreamWaitValue32_v2(s, a, 1, CU_STREAM_WAIT_VALUE_EQ));
    ok(cuCtxDestroy_v2(c)); /* returns, though nobody brings the value */
    CUcontext now;
    ok(cuCtxGetCurrent(&now));
    assert_ptr_equal(now, old);
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

static void test_batch_runs_in_order(void **state)
{
    for (int i = 0; i < FORMS; i++) {
        atomic_bool flag = false;
        CUstreamBatchMemOpParams p[] = {
            write_64(address + 8, 1),
            wait_32(address, 7, CU_STREAM_WAIT_VALUE_EQ),
            {.flushRemoteWrites = {.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES}},
            write_64(address + 8, 2),
        };
        word[1] = 0;
        set_64(0);
        ok(forms[i].batch(NULL, 4, p, 0));
        ok(host_function(&forms[i], NULL, set_flag, &flag));
        for (int n = 0; n < 2000 && __atomic_load_n(&word[1], __ATOMIC_SEQ_CST) != 1; n++)
            sleep_ms(1);
        assert_true(not_yet(&flag));
        assert_int_equal(__atomic_load_n(&word[1], __ATOMIC_SEQ_CST),
                         1); /* the first write, not the one behind the wait */
        set_64(7);
        assert_true(soon(&flag));
        assert_int_equal(word[1], 2);
    }
}

static void test_batch_barrier_came_with_the_second_version(void **state)
{
    for (int i = 0; i < FORMS; i++)
        for (unsigned type = CU_STREAM_MEMORY_BARRIER_TYPE_SYS; type <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU; type++) {
            CUstreamBatchMemOpParams p = {.memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER, .flags = type}};
            fails(forms[i].old ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS, forms[i].batch(NULL, 1, &p, 0));
        }
    ok(cuCtxSynchronize());
}

static void test_batch_refuses(void **state)
{
    static CUstreamBatchMemOpParams many[256];
    for (int i = 0; i < 256; i++)
        many[i] = write_64(address, 1);
    CUstreamBatchMemOpParams bad[] = {
        {.operation = 0},
        {.operation = 99},
        wait_32(address, 0, 4),
        {.flushRemoteWrites = {.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, .flags = 1}},
        {.memoryBarrier = {.operation = CU_STREAM_MEM_OP_BARRIER, .flags = 2}},
    };
    set_64(0);
    for (int i = 0; i < FORMS; i++) {
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].batch(NULL, 256, many, 0));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].batch(NULL, 1, many, 1));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].batch(NULL, 1, NULL, 0));
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            CUstreamBatchMemOpParams p[] = {many[0], bad[k]}; /* nothing of a bad batch is done */
            fails(CUDA_ERROR_INVALID_VALUE, forms[i].batch(NULL, 2, p, 0));
        }
    }
    ok(cuCtxSynchronize());
    assert_int_equal(*word, 0);
    ok(cuStreamBatchMemOp_v2(NULL, 255, many, 0));
    ok(cuCtxSynchronize());
    assert_int_equal(*word, 1);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static void test_values_refuse(void **state)
{
    CUdeviceptr managed, device;
    CUstream gone;
    uint32_t pageable = 0;
    ok(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemAlloc_v2(&device, 62));
    ok(cuStreamCreate(&gone, 0));
    ok(cuStreamDestroy_v2(gone));
    const CUdeviceptr bad[] = {0, managed, address + 2, (uintptr_t)&pageable, device + 60, UINT64_C(0x0a7000000000)};
    for (int i = 0; i < FORMS; i++) {
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            fails(CUDA_ERROR_INVALID_VALUE, forms[i].wait_32(NULL, bad[k], 1, 0));
            fails(CUDA_ERROR_INVALID_VALUE, forms[i].wait_64(NULL, bad[k], 1, 0));
            fails(CUDA_ERROR_INVALID_VALUE, forms[i].write_32(NULL, bad[k], 1, 0));
            fails(CUDA_ERROR_INVALID_VALUE, forms[i].write_64(NULL, bad[k], 1, 0));
        }
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].wait_64(NULL, address + 4, 1, 0)); /* not a multiple of 8 */
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].write_64(NULL, address + 4, 1, 0));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].wait_32(NULL, address, 1, 1u << 29));
        fails(CUDA_ERROR_INVALID_VALUE, forms[i].write_32(NULL, address, 1, 2));
        fails(forms[i].old ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
              forms[i].write_32(NULL, address, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
        fails(CUDA_ERROR_INVALID_HANDLE, forms[i].wait_32(gone, address, 1, 0));
        fails(CUDA_ERROR_INVALID_HANDLE,
              forms[i].batch(gone, 1, (CUstreamBatchMemOpParams[]){write_64(address, 1)}, 0));
    }
    ok(cuCtxSynchronize());
    ok(cuMemFree_v2(managed));
    ok(cuMemFree_v2(device));
}

static void test_attributes_say_what_is_there(void **state)
{
    static const CUdevice_attribute all[] = {
        CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1,        CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1,
        CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
        CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,    CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES,
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int value = 0;
        ok(cuDeviceGetAttribute(&value, all[i], 0));
        assert_int_equal(value, 1);
    }
}

/* ---- the end of a process --------------------------------------------------------------------------------------- */

static pid_t leaver;

/* Before the device is used here: a process that ends while a stream of its waits for a value that never comes. */
static int start(void **state)
{
    leaver = fork();
    if (leaver != 0)
        return leaver < 0 || use_primary_context(state);
    CUdeviceptr a;
    CUstream s;
    bool right = use_primary_context(state) == 0 && cuMemAlloc_v2(&a, 8) == CUDA_SUCCESS &&
                 cuMemsetD8_v2(a, 0, 8) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS &&
                 cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
                 cuStreamWaitValue32_v2(s, a, 1, 0) == CUDA_SUCCESS && cuStreamQuery(s) == CUDA_ERROR_NOT_READY;
    exit(right ? 3 : 4);
}

static void test_process_ends_with_a_wait(void **state)
{
    int status = 0;
    pid_t ended = 0;
    for (int i = 0; i < 10000 && !(ended = waitpid(leaver, &status, WNOHANG)); i++)
        sleep_ms(1);
    assert_int_equal(ended, leaver);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_process_ends_with_a_wait),
        cmocka_unit_test_setup_teardown(test_wait_holds_its_stream_in_all_forms, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_write_in_all_forms, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_write_comes_after_earlier_work, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_conditions, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_wait_on_device_memory_is_met_by_another_stream, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_streams_hand_over_in_turns, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_wait_on_registered_memory, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_wait_ends_with_its_context, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_batch_runs_in_order, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_batch_barrier_came_with_the_second_version, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_batch_refuses, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_values_refuse, setup, reset_context),
        cmocka_unit_test_setup_teardown(test_attributes_say_what_is_there, setup, reset_context),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
