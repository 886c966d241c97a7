/* SOFTGPU_FAULTS: each kind does its damage to the launches that a rule names, and to nothing else. */
#include <math.h>

#include "tests/unit/softgpu_test.h"

/* p[i] = 1.0f for every thread, under many names. */
#define FILL(name)                                                                                                     \
    ".visible .entry " name "(.param .u64 p) {\n"                                                                      \
    "  .reg .u64 %rd<3>; .reg .u32 %r<5>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"      \
    "  mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;\n"     \
    "  mov.u32 %r4, 0x3f800000; st.global.u32 [%rd1], %r4; ret;\n}\n"
/* p[0] = p[1] <op> p[2], under many names. */
#define BINARY(name, op)                                                                                               \
    ".visible .entry " name "(.param .u64 p) {\n  .reg .u64 %rd<2>; .reg .f32 %f<4>; .reg .pred %p<2>;\n"              \
    "  ld.param.u64 %rd1, [p];\n  ld.global.f32 %f1, [%rd1+4];\n  ld.global.f32 %f2, [%rd1+8];\n"                      \
    "  setp.eq.f32 %p1, %f1, %f1;\n  @%p1 " op " \t%f3, %f1, %f2;\n  st.global.f32 [%rd1], %f3;\n  ret;\n}\n"
static const char PTX[] = ".version 7.0\n.target sm_75\n.address_size 64\n" FILL("sound") FILL("nan_one")
    FILL("nan_share") FILL("flip") FILL("drop") FILL("tail") FILL("stale") FILL("refused") FILL("sticky") FILL("slow")
        FILL("comma_semicolon") BINARY("mul_sound", "mul.f32") BINARY("mul_coarse", "mul.f32")
            BINARY("add_half", "add.rn.f32") BINARY("add_flush", "add.f32");
static const char FAULTS[] =
    "kernel=nan_one,kind=nan;kernel=nan_share,kind=nan,rate=0.25,seed=3;kernel=flip,kind=bitflip,seed=1;"
    "kernel=^drop$,kind=dropstore,rate=1;kernel=tail,kind=tail;kernel=stale,kind=stale,launch=2;"
    "kernel=refused,kind=launchfail,launch=1;kernel=sticky,kind=sticky;kernel=slow,kind=slowmem,rate=50;"
    "kernel=sound[\\,\\;]?x,kind=nan;kernel=comma(\\,|\\;|_)semi,kind=stale;"
    "kernel=cuMemAllocManaged,kind=allocfail,launch=2;kernel=coarse,kind=tf32;kernel=half,kind=fp16acc;kernel=flush,"
    "kind=ftz";

enum { COUNT = 1000, BLOCK = 100 };
static CUmodule module;
static CUdeviceptr buffer, other;
static float out[COUNT];

static int setup(void **state)
{
    return use_primary_context(state) || cuModuleLoadData(&module, PTX) != CUDA_SUCCESS ||
           cuMemAlloc_v2(&buffer, sizeof out) != CUDA_SUCCESS || cuMemAlloc_v2(&other, 512) != CUDA_SUCCESS ||
           cuMemsetD8_v2(other, 0, 512) != CUDA_SUCCESS;
}

static CUresult launch(const char *name)
{
    CUfunction fn;
    void *params[] = {&buffer};
    ok(cuMemsetD32_v2(buffer, 0, COUNT));
    ok(cuModuleGetFunction(&fn, module, name));
    return cuLaunchKernel(fn, COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, params, NULL);
}

/* How many elements are not 1. */
static int wrong(const char *name)
{
    int n = 0;
    ok(launch(name));
    ok(cuMemcpyDtoH_v2(out, buffer, sizeof out));
    for (int i = 0; i < COUNT; i++)
        n += out[i] != 1.0f;
    return n;
}

static void test_sound_kernel_is_left_alone(void **state)
{
    uint32_t neighbour[128];
    assert_int_equal(wrong("sound"), 0);
    ok(cuMemcpyDtoH_v2(neighbour, other, sizeof neighbour));
    for (int i = 0; i < 128; i++)
        assert_int_equal(neighbour[i], 0);
}

static void test_nan(void **state)
{
    assert_int_equal(wrong("nan_one"), 1);
    int nans = 0;
    for (int i = 0; i < COUNT; i++)
        nans += isnan(out[i]) != 0;
    assert_int_equal(nans, 1);
    int share = wrong("nan_share");
    assert_true(share > 180 && share < 320);
}

static void test_bitflip(void **state)
{
    assert_int_equal(wrong("flip"), 1);
}

static void test_dropstore(void **state)
{
    assert_int_equal(wrong("drop"), COUNT);
    assert_true(out[0] == 0.0f);
}

static void test_tail(void **state)
{
    assert_int_equal(wrong("tail"), 4);
    assert_true(out[COUNT - 1] == 0.0f && out[COUNT - 5] == 1.0f);
}

static void test_stale_in_the_named_launch_only(void **state)
{
    assert_int_equal(wrong("stale"), 0);
    assert_int_equal(wrong("stale"), COUNT);
    assert_int_equal(wrong("stale"), 0);
}

static void test_escaped_separators_in_pattern(void **state)
{
    assert_int_equal(wrong("comma_semicolon"), COUNT);
}

static void test_launchfail_is_not_sticky(void **state)
{
    fails(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, launch("refused"));
    assert_int_equal(wrong("refused"), 0);
}

/* Device time of one launch in ms. */
static float time_of(const char *kernel)
{
    CUevent e[2];
    float ms;
    for (int i = 0; i < 2; i++)
        ok(cuEventCreate(&e[i], 0));
    ok(cuEventRecord(e[0], NULL));
    ok(launch(kernel));
    ok(cuEventRecord(e[1], NULL));
    ok(cuEventSynchronize(e[1]));
    ok(cuEventElapsedTime_v2(&ms, e[0], e[1]));
    for (int i = 0; i < 2; i++)
        ok(cuEventDestroy_v2(e[i]));
    return ms;
}

/* Other work on the machine only ever makes a launch slower: the fastest of many is compared. */
static void test_slowmem(void **state)
{
    float sound = 1e9f, slow = 1e9f;
    for (int i = 0; i < 20; i++) {
        float a = time_of("sound"), b = time_of("slow");
        sound = a < sound ? a : sound;
        slow = b < slow ? b : slow;
    }
    assert_true(slow > sound);
}

static float binary(const char *name, float a, float b)
{
    float values[3] = {0, a, b};
    CUfunction fn;
    void *params[] = {&other};
    ok(cuMemcpyHtoD_v2(other, values, sizeof values));
    ok(cuModuleGetFunction(&fn, module, name));
    ok(cuLaunchKernel(fn, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ok(cuMemcpyDtoH_v2(values, other, sizeof values));
    return values[0];
}

static void test_arithmetic(void **state)
{
    const float fine = 1.0f + 0x1p-12f, tiny = 0x1p-130f;
    assert_true(binary("mul_sound", fine, 3.0f) == fine * 3.0f);
    assert_true(binary("mul_coarse", fine, 3.0f) == 3.0f);
    assert_true(binary("mul_coarse", 1.0f + 0x1p-10f, 3.0f) == (1.0f + 0x1p-10f) * 3.0f);
    assert_true(binary("add_half", 1.0f, 0x1p-12f) == 1.0f);
    assert_true(binary("add_flush", tiny, tiny) == 0.0f);
    assert_true(binary("add_flush", 1.0f, 2.0f) == 3.0f);
}

static void test_allocfail(void **state)
{
    CUdeviceptr m;
    ok(cuMemAllocManaged(&m, 8, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemFree_v2(m));
    fails(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&m, 8, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemAllocManaged(&m, 8, CU_MEM_ATTACH_GLOBAL));
    ok(cuMemFree_v2(m));
}

static void test_sticky(void **state)
{
    CUdeviceptr a;
    ok(launch("sticky"));
    fails(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    fails(CUDA_ERROR_LAUNCH_FAILED, cuMemAlloc_v2(&a, 4));
}

int main(void)
{
    setenv("SOFTGPU_FAULTS", FAULTS, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_kernel_is_left_alone),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_bitflip),
        cmocka_unit_test(test_dropstore),
        cmocka_unit_test(test_tail),
        cmocka_unit_test(test_stale_in_the_named_launch_only),
        cmocka_unit_test(test_escaped_separators_in_pattern),
        cmocka_unit_test(test_launchfail_is_not_sticky),
        cmocka_unit_test(test_slowmem),
        cmocka_unit_test(test_arithmetic),
        cmocka_unit_test(test_allocfail),
        cmocka_unit_test(test_sticky),
    };
    return cmocka_run_group_tests(tests, setup, reset_context);
}
