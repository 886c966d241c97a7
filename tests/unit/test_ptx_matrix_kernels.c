/* Matrix instructions in whole kernels: faults, forms that are refused, and what nvcc makes of <mma.h>
 * (tests/ptx/matrix.cu). */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "ptx/arith.h"
#include "tests/unit/ptx_kit.h"

enum { LANES = 32 };
static _Alignas(32) uint8_t memory[2048], stored[2048];

/* ---- faults ---- */

static const char wmma_copy[] = ".version 9.0\n.target sm_90\n.address_size 64\n"
                                ".visible .entry k(.param .u64 in, .param .u64 out) {\n"
                                ".reg .b64 %x<4>; .reg .f32 %c<8>;\nld.param.u64 %x0, [in]; ld.param.u64 %x1, [out];\n"
                                "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, "
                                "[%x0], 16;\n"
                                "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%x1], "
                                "{%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7}, 16;\nret;\n}\n";

static void start_copy(struct kit *k, size_t in, size_t out)
{
    kit_load(k, wmma_copy);
    kit_buffer(k, 0, memory, in);
    kit_buffer(k, 1, stored, out);
    k->launch.checked = true;
}

static void test_row_out_of_bounds(void **state)
{
    struct kit k;
    start_copy(&k, 1024 - 64, 1024);
    assert_int_equal(kit_run(&k, "k", 1, LANES), STATUS_OK);
    assert_int_equal(k.result.fault_count, 1);
    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_OUT_OF_BOUNDS);
    assert_int_equal(k.result.faults[0].offset, 1024 - 64);
    assert_int_equal(k.result.faults[0].count, 4);
    assert_false(k.result.faults[0].access.write);
    k.launch.checked = false;
    assert_int_equal(kit_run(&k, "k", 1, LANES), STATUS_FAULT);
    kit_free(&k);
    start_copy(&k, 1024, 1024 - 32);
    assert_int_equal(kit_run(&k, "k", 1, LANES), STATUS_OK);
    assert_int_equal(k.result.fault_count, 1);
    assert_true(k.result.faults[0].access.write);
    assert_int_equal(k.result.faults[0].range_id, 2);
    kit_free(&k);
}

static void test_lanes_that_are_missing(void **state)
{
    struct kit k;
    start_copy(&k, 1024, 1024);
    assert_int_equal(kit_run(&k, "k", 1, 31), STATUS_OK);
    assert_int_equal(k.result.fault_count, 2);
    assert_int_equal(k.result.faults[0].kind, PTX_FAULT_BARRIER);
    k.launch.checked = false;
    assert_int_equal(kit_run(&k, "k", 1, 31), STATUS_FAULT);
    kit_free(&k);
}

/* ---- what nvcc makes of <mma.h> ---- */

static float number(unsigned i)
{
    return (float)((int)(i * 7 % 13) - 6);
}

static void test_nvcc_gemm(void **state)
{
    enum { M = 32, N = 64, K = 48 };
    static uint16_t a[M * K], b[N * K];
    static float c[M * N], d[M * N];
    static uint8_t valid[sizeof a / 8 + 1];
    static struct ptx_shadow_value shadow[M * N * 2];
    for (unsigned i = 0; i < M * K; i++)
        a[i] = double_to_half((double)number(i), ROUND_RN);
    for (unsigned i = 0; i < N * K; i++)
        b[i] = double_to_half((double)number(i + 5), ROUND_RN);
    for (unsigned i = 0; i < M * N; i++)
        c[i] = number(i + 3);
    memset(valid, 0xff, sizeof valid);
    for (int mode = 0; mode < 3; mode++) {
        struct kit k;
        kit_load_file(&k, "matrix.ptx");
        kit_buffer(&k, 0, a, sizeof a);
        kit_buffer(&k, 1, b, sizeof b);
        kit_buffer(&k, 2, c, sizeof c);
        kit_buffer(&k, 3, d, sizeof d);
        k.ranges[0].valid = valid;
        if (mode == 2)
            k.ranges[3].shadow = shadow;
        const uint32_t rest[4] = {N, K, bits32(2), bits32(3)};
        memcpy(&k.params[4], rest, sizeof rest);
        memset(d, 0, sizeof d);
        k.launch.checked = mode == 1;
        k.launch.shadow = mode == 2;
        k.launch.grid[1] = M / 16;
        assert_int_equal(kit_run(&k, "gemm_half", 1, N / 16 * 32), STATUS_OK);
        assert_int_equal(k.result.fault_count, 0);
        for (unsigned i = 0; i < M; i++)
            for (unsigned j = 0; j < N; j++) {
                float want = 3 * number(i * N + j + 3);
                for (unsigned x = 0; x < K; x++)
                    want += 2 * number(i * K + x) * number(j * K + x + 5);
                assert_true(d[i * N + j] == want);
                if (mode == 2)
                    assert_true(shadow[(i * N + j) * 2].wide == (double)want && shadow[(i * N + j) * 2].depth > 3);
            }
        if (mode == 1) { /* an element that was never written makes a row of the result so */
            valid[0] &= 0xfc;
            assert_int_equal(kit_run(&k, "gemm_half", 1, N / 16 * 32), STATUS_OK);
            assert_true(k.result.fault_count > 0);
            assert_int_equal(k.result.faults[0].kind, PTX_FAULT_UNINITIALISED);
            assert_int_equal(k.result.faults[0].range_id, 1);
            valid[0] = 0xff;
        }
        kit_free(&k);
    }
}

/* The kernels with three pointers: `out` gets the result. */
static void run_nvcc(const char *kernel, void *a, size_t a_bytes, void *b, size_t b_bytes, void *out, size_t bytes)
{
    for (int checked = 0; checked < 2; checked++) {
        struct kit k;
        kit_load_file(&k, "matrix.ptx");
        kit_buffer(&k, 0, a, a_bytes);
        kit_buffer(&k, 1, b, b_bytes);
        kit_buffer(&k, 2, out, bytes);
        k.params[3] = 16;
        k.launch.checked = checked;
        if (kit_run(&k, kernel, 1, LANES) != STATUS_OK)
            fail_msg("%s: %s", kernel, k.diag.text);
        assert_int_equal(k.result.fault_count, 0);
        kit_free(&k);
    }
}

static void test_nvcc_other_types(void **state)
{
    static int8_t a8[256], b8[256];
    static int32_t d32[256];
    static float af[128], bf[128], df[256];
    static double ad[32], bd[32], dd[64];
    for (unsigned i = 0; i < 256; i++) {
        a8[i] = (int8_t)(i * 37);
        b8[i] = (int8_t)(i * 91 + 3);
        af[i / 2] = number(i / 2) / 4;
        bf[i / 2] = number(i / 2 + 9) / 8;
        ad[i / 8] = number(i / 8) / 3;
        bd[i / 8] = number(i / 8 + 2) / 7;
    }
    run_nvcc("gemm_bytes", a8, sizeof a8, b8, sizeof b8, d32, sizeof d32);
    run_nvcc("gemm_tf32", af, sizeof af, bf, sizeof bf, df, sizeof df);
    run_nvcc("gemm_double", ad, sizeof ad, bd, sizeof bd, dd, sizeof dd);
    for (unsigned i = 0; i < 16; i++)
        for (unsigned j = 0; j < 16; j++) {
            int32_t want = 0;
            float want_float = 0;
            double want_double = 0;
            for (unsigned k = 0; k < 16; k++)
                want += a8[i * 16 + k] * b8[j * 16 + k];
            for (unsigned k = 0; k < 8; k++)
                want_float += af[i * 8 + k] * bf[k * 16 + j];
            assert_int_equal(d32[j * 16 + i], want);
            assert_true(df[i * 16 + j] == want_float);
            for (unsigned k = 0; i < 8 && j < 8 && k < 4; k++)
                want_double = fma(ad[i * 4 + k], bd[j * 4 + k], want_double);
            if (i < 8 && j < 8)
                assert_true(dd[i * 8 + j] == want_double);
        }
}

static void test_unknown_forms_are_refused(void **state)
{
    static const char *const refused[] = {
        "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%a,%a,%a,%a}, {%a,%a,%a,%a}, {%a,%a}, {%a,%a,%a,%a};",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%a,%a,%a,%a}, {%a,%a,%a,%a}, {%a,%a}, {%a,%a};",
        "mma.sync.aligned.m16n8k8.row.col.f32.f32.f32.f32 {%a,%a,%a,%a}, {%a,%a,%a,%a}, {%a,%a}, {%a,%a,%a,%a};",
        "ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%a,%a,%a}, [%a];",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%a,%a}, [%a];",
        "wmma.load.a.sync.row.m16n16k16.global.f16 {%a,%a,%a,%a,%a,%a,%a,%a}, [%x];",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%a,%a,%a,%a}, {%a,%a}, {%a,%a}, {%a,%a,%a,%a};",
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n.reg .b32 %%a; .reg .b64 %%x;\n"
                 "%s\nret;\n}\n",
                 refused[i]);
        struct ptx_module *module = NULL;
        struct diag diag = {0};
        enum status status = ptx_module_load(text, strlen(text), "test.ptx", &module, &diag);
        if (status == STATUS_OK) { /* refused when it is to be run */
            struct ptx_launch launch = {.module = module, .kernel = ptx_module_find_kernel(module, "k")};
            struct ptx_memory none = {0};
            struct ptx_result result = {0};
            launch.memory = &none;
            launch.grid[0] = launch.grid[1] = launch.grid[2] = 1;
            launch.block[0] = LANES;
            launch.block[1] = launch.block[2] = 1;
            status = ptx_run(&launch, &result, &diag);
            ptx_result_free(&result);
            ptx_module_free(module);
        }
        if (status != STATUS_NOT_SUPPORTED)
            fail_msg("not refused: %s", refused[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_out_of_bounds),
        cmocka_unit_test(test_lanes_that_are_missing),
        cmocka_unit_test(test_nvcc_gemm),
        cmocka_unit_test(test_nvcc_other_types),
        cmocka_unit_test(test_unknown_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
