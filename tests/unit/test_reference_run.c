/* The reference path by itself: traits of kernels, layouts, variables, pointers out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "reference/reference.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
#define KERNEL(body)                                                                                                   \
    HEAD ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .pred %p<3>;\n.reg .f32 %f<5>;\n.reg .b32 %r<5>;\n" \
         ".reg .b64 %rd<5>;\nld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n" body "ret;\n}\n"

static struct reference_module *load(const char *ptx)
{
    struct reference_module *m;
    struct diag diag = {.text = ""};
    if (reference_module_open(ptx, strlen(ptx), 75, "test", &m, &diag))
        fail_msg("%s:%u: %s", diag.where, diag.line, diag.text);
    return m;
}

static unsigned traits(const char *ptx)
{
    struct reference_module *m = load(ptx);
    unsigned t = reference_traits(m, ptx_module_find_kernel(reference_module_ptx(m), "k"));
    reference_module_close(m);
    return t;
}

static void test_traits(void **state)
{
    assert_int_equal(traits(KERNEL("ld.global.f32 %f1, [%rd1];\nadd.f32 %f2, %f1, %f1;\nst.global.f32 [%rd1], %f2;\n")),
                     0);
    assert_int_equal(traits(KERNEL("mul.rn.f32 %f2, %f1, %f1;\nfma.rn.f32 %f3, %f1, %f2, %f2;\n")), 0);
    assert_int_equal(traits(KERNEL("mul.f32 %f2, %f1, %f1;\n")), REFERENCE_CONTRACTION);
    assert_int_equal(traits(KERNEL("mul.lo.s32 %r2, %r1, %r1;\nsetp.lt.s32 %p1, %r1, %r2;\n")), 0);
    assert_int_equal(traits(KERNEL("sqrt.approx.f32 %f2, %f1;\n")), REFERENCE_APPROXIMATE);
    assert_int_equal(traits(KERNEL("setp.lt.f32 %p1, %f1, %f2;\n@%p1 bra X;\nX:\n")), REFERENCE_DECISION);
    assert_int_equal(traits(KERNEL("cvt.rzi.s32.f32 %r1, %f1;\n")), REFERENCE_DECISION);
    assert_int_equal(traits(KERNEL("cvt.rn.f32.s32 %f1, %r1;\n")), 0);
    assert_int_equal(traits(KERNEL("@%p1 red.global.add.u32 [%rd1], %r1;\n")), REFERENCE_ORDER);
    assert_int_equal(traits(KERNEL("mov.u32 %r1, %clock;\n")), REFERENCE_IDENTITY);
}

static bool may_wait(const char *ptx)
{
    struct reference_module *m = load(ptx);
    bool waits = reference_may_wait(m, ptx_module_find_kernel(reference_module_ptx(m), "k"));
    reference_module_close(m);
    return waits;
}

static void test_may_wait(void **state)
{
    /* Loops around loads that must be done again. */
    assert_true(may_wait(KERNEL("W:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.s32 %p1, %r1, 0;\n@%p1 bra W;\n")));
    assert_true(may_wait(KERNEL("W: ld.acquire.gpu.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bra.uni W;\n")));
    assert_true(may_wait(KERNEL(
        "W:\n.loc 1 2 3\natom.global.cas.b32 %r1, [%rd1], 0, 1; // take\nsetp.eq.s32 %p1, %r1, 1;\n@%p1 bra W;\n")));
    /* A plain load, no loop, a result that nobody uses, the block's own memory. */
    assert_false(may_wait(KERNEL("W:\nld.global.u32 %r1, [%rd1];\nsetp.eq.s32 %p1, %r1, 0;\n@%p1 bra W;\n")));
    assert_false(may_wait(KERNEL("ld.volatile.global.u32 %r1, [%rd1];\nst.global.u32 [%rd2], %r1;\n")));
    assert_false(may_wait(KERNEL("W:\natom.global.add.u32 %r1, [%rd1], 1;\nld.global.u32 %r2, [%rd2];\nsetp.eq.s32 "
                                 "%p1, %r2, 0;\n@%p1 bra W;\n")));
    assert_false(may_wait(
        KERNEL(".shared .b32 s;\nW:\nld.volatile.shared.u32 %r1, [s];\nsetp.eq.s32 %p1, %r1, 0;\n@%p1 bra W;\n")));
    assert_false(
        may_wait(KERNEL("bra V;\nW:\nret;\nV:\nld.volatile.global.u32 %r1, [%rd1];\nst.global.u32 [%rd2], %r1;\n")));
}

/* Other kernels of the module do not count. */
static void test_traits_of_one_kernel(void **state)
{
    assert_int_equal(traits(HEAD ".visible .entry other()\n{\n.reg .f32 %f<3>;\nmul.f32 %f1, %f2, %f2;\nret;\n}\n"
                                 ".visible .entry k()\n{\nret;\n}\n"),
                     0);
}

/* k(a, b): *(b + 4) = *a. */
static const char copy_ptx[] = KERNEL("ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd2+4], %r1;\n");

struct bench {
    struct reference_region regions[2];
    uint8_t a[64], b[64], written[2][8], read[2][8];
    struct reference_pointer pointers[2];
    uint64_t params[2];
    struct reference_launch launch;
};

static void bench_start(struct bench *t, const struct reference_module *m, enum reference_layout layout)
{
    *t = (struct bench){.params = {0x1000, 0x2000}, .pointers = {{0, 0}, {8, 1}}};
    t->regions[0] = (struct reference_region){
        .address = 0x1000, .bytes = 64, .host = t->a, .id = 1, .written = t->written[0], .read = t->read[0]};
    t->regions[1] = (struct reference_region){
        .address = 0x2000, .bytes = 64, .host = t->b, .id = 2, .written = t->written[1], .read = t->read[1]};
    t->launch = (struct reference_launch){
        .module = m,
        .kernel = "k",
        .grid = {1, 1, 1},
        .block = {1, 1, 1},
        .params = t->params,
        .param_bytes = sizeof t->params,
        .regions = t->regions,
        .region_count = 2,
        .pointers = t->pointers,
        .pointer_count = 2,
        .layout = layout,
    };
}

/* The executor lacks an instruction of k: only k is refused. */
static void test_run_unsupported(void **state)
{
    struct reference_module *m = load(KERNEL("frob.b32 %r1, %r2;\n") ".entry other(.param .u64 a) { ret; }\n");
    struct bench t;
    struct reference_result result;
    bench_start(&t, m, REFERENCE_AS_LAUNCHED);
    reference_run(&t.launch, &result);
    assert_int_equal(result.status, STATUS_NOT_SUPPORTED);
    assert_string_equal(result.reason, "unsupported");
    assert_non_null(strstr(result.diag.text, "`frob.b32`"));
    reference_result_free(&result);
    t.launch.kernel = "other";
    reference_run(&t.launch, &result);
    assert_null(result.reason);
    reference_result_free(&result);
    reference_module_close(m);
}

/* What the device's heap holds is not captured: nothing that may call malloc is run. */
static void test_run_heap(void **state)
{
    struct reference_module *m = load(HEAD ".extern .func free(.param .b64 p);\n"
                                           ".func g() { .param .b64 x; call free, (x); ret; }\n"
                                           ".entry k(.param .u64 a) { call g, (); ret; }\n");
    struct bench t;
    struct reference_result result;
    bench_start(&t, m, REFERENCE_AS_LAUNCHED);
    reference_run(&t.launch, &result);
    assert_string_equal(result.reason, "device-heap");
    reference_result_free(&result);
    reference_module_close(m);
}

/* What handles of textures stand for is not captured. */
static void test_run_textures(void **state)
{
    struct reference_module *m =
        load(HEAD ".entry k(.param .u64 a) { .reg .f32 %f<4>; .reg .b64 %x; ld.param.u64 %x, [a];\n"
                  "tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%x, {0}]; ret; }\n");
    struct bench t;
    struct reference_result result;
    bench_start(&t, m, REFERENCE_AS_LAUNCHED);
    reference_run(&t.launch, &result);
    assert_string_equal(result.reason, "textures");
    reference_result_free(&result);
    reference_module_close(m);
}

static void test_run_both_layouts(void **state)
{
    struct reference_module *m = load(copy_ptx);
    for (int layout = REFERENCE_AS_LAUNCHED; layout <= REFERENCE_ISOLATED; layout++) {
        struct bench t;
        struct reference_result r;
        bench_start(&t, m, layout);
        t.a[0] = 42;
        reference_run(&t.launch, &r);
        assert_null(r.reason);
        assert_int_equal(r.fault_count, 0);
        assert_false(r.foreign);
        assert_int_equal(t.b[4], 42);
        assert_int_equal(t.written[1][0], 0xf0);
        assert_int_equal(t.read[0][0], 0x0f);
        assert_int_equal(t.params[0], 0x1000); /* the caller's are not touched */
        reference_result_free(&r);
    }
    reference_module_close(m);
}

/* Into the other buffer, which starts where this one ends: a fault, in the program's own terms. */
static void test_run_into_another_region(void **state)
{
    struct reference_module *m = load(copy_ptx);
    for (int layout = REFERENCE_AS_LAUNCHED; layout <= REFERENCE_ISOLATED; layout++) {
        struct bench t;
        struct reference_result r;
        bench_start(&t, m, layout);
        t.regions[0].address = 0x1fc0;
        t.params[0] = 0x2000 - 8;
        t.params[1] = 0x1ffc;
        t.pointers[1].region = 0; /* 0x1ffc points into the first one */
        reference_run(&t.launch, &r);
        assert_int_equal(r.fault_count, 1);
        assert_int_equal(r.faults[0].fault.kind, PTX_FAULT_OUT_OF_BOUNDS);
        assert_int_equal(r.faults[0].region, 0);
        assert_int_equal(r.faults[0].fault.address, 0x2000);
        assert_int_equal(r.faults[0].fault.offset, 64);
        reference_result_free(&r);
    }
    reference_module_close(m);
}

/* An address made by other than adding, whose origin the executor does not follow. */
static void test_run_mixed_origin(void **state)
{
    struct reference_module *m = load(KERNEL("xor.b64 %rd3, %rd1, 64;\nmov.u32 %r1, 1;\nst.global.u32 [%rd3], %r1;\n"));
    struct bench t;
    struct reference_result r;
    bench_start(&t, m, REFERENCE_ISOLATED);
    reference_run(&t.launch, &r);
    assert_int_equal(r.fault_count, 1);
    assert_int_equal(r.faults[0].region, 0);
    assert_int_equal(r.faults[0].fault.offset, 64);
    reference_result_free(&r);
    reference_module_close(m);
}

static void test_run_pointer_from_memory_is_foreign(void **state)
{
    struct reference_module *m = load(KERNEL("ld.global.u64 %rd3, [%rd1];\nld.global.u32 %r1, [%rd3];\n"));
    struct bench t;
    struct reference_result r;
    bench_start(&t, m, REFERENCE_ISOLATED);
    memcpy(t.a, &(uint64_t){0x2000}, 8);
    reference_run(&t.launch, &r);
    assert_true(r.foreign);
    reference_result_free(&r);
    bench_start(&t, m, REFERENCE_AS_LAUNCHED);
    memcpy(t.a, &(uint64_t){0x2000}, 8);
    reference_run(&t.launch, &r);
    assert_false(r.foreign);
    assert_int_equal(r.fault_count, 0);
    reference_result_free(&r);
    reference_module_close(m);
}

#define TABLE(space)                                                                                                   \
    HEAD "." space " .align 4 .u32 table[2] = {5, 6};\n"                                                               \
         ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n"                   \
         "ld.param.u64 %rd1, [b];\nld." space ".u32 %r1, [table+4];\nst.global.u32 [%rd1], %r1;\nret;\n}\n"

/* A constant nobody asked about still holds what it was loaded with; a variable may have changed since. */
static void test_run_own_variables(void **state)
{
    struct bench t;
    struct reference_result r;
    struct reference_module *m = load(TABLE("const"));
    bench_start(&t, m, REFERENCE_ISOLATED);
    reference_run(&t.launch, &r);
    assert_null(r.reason);
    assert_int_equal(t.b[0], 6);
    assert_false(r.unknown_read);
    reference_result_free(&r);
    reference_module_close(m);
    m = load(TABLE("global"));
    bench_start(&t, m, REFERENCE_ISOLATED);
    reference_run(&t.launch, &r);
    assert_true(r.unknown_read);
    reference_result_free(&r);
    reference_module_close(m);
}

static void test_run_recorded_variable(void **state)
{
    struct bench t;
    struct reference_result r;
    struct reference_variable variable = {"table", 0};
    struct reference_module *m = load(TABLE("global"));
    bench_start(&t, m, REFERENCE_ISOLATED);
    t.launch.variables = &variable;
    t.launch.variable_count = 1;
    t.regions[0].bytes = 8;
    t.a[4] = 9;
    reference_run(&t.launch, &r);
    assert_false(r.unknown_read);
    assert_int_equal(t.b[0], 9);
    reference_result_free(&r);
    reference_module_close(m);
}

static void test_run_refusals(void **state)
{
    struct bench t;
    struct reference_result r;
    struct reference_module *m = load(copy_ptx);
    bench_start(&t, m, REFERENCE_ISOLATED);
    t.launch.kernel = "other";
    reference_run(&t.launch, &r);
    assert_string_equal(r.reason, "kernel-not-in-ptx");
    reference_result_free(&r);
    bench_start(&t, m, REFERENCE_ISOLATED);
    t.launch.param_bytes = 8;
    reference_run(&t.launch, &r);
    assert_string_equal(r.reason, "layout-mismatch");
    reference_result_free(&r);
    reference_module_close(m);
    m = load(KERNEL("LOOP:\nbra LOOP;\n"));
    bench_start(&t, m, REFERENCE_ISOLATED);
    t.launch.instruction_limit = 10000;
    reference_run(&t.launch, &r);
    assert_string_equal(r.reason, "budget");
    reference_result_free(&r);
    reference_module_close(m);
}

static void test_module_open_refusals(void **state)
{
    struct reference_module *m;
    struct diag diag;
    assert_int_not_equal(reference_module_open("garbage", 7, 75, "test", &m, &diag), STATUS_OK);
    assert_null(m);
    assert_int_not_equal(reference_module_open(HEAD "nonsense", strlen(HEAD "nonsense"), 75, "test", &m, &diag),
                         STATUS_OK);
    assert_null(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_traits),
        cmocka_unit_test(test_may_wait),
        cmocka_unit_test(test_traits_of_one_kernel),
        cmocka_unit_test(test_run_unsupported),
        cmocka_unit_test(test_run_heap),
        cmocka_unit_test(test_run_textures),
        cmocka_unit_test(test_run_both_layouts),
        cmocka_unit_test(test_run_into_another_region),
        cmocka_unit_test(test_run_mixed_origin),
        cmocka_unit_test(test_run_pointer_from_memory_is_foreign),
        cmocka_unit_test(test_run_own_variables),
        cmocka_unit_test(test_run_recorded_variable),
        cmocka_unit_test(test_run_refusals),
        cmocka_unit_test(test_module_open_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
