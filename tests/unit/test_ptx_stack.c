/* test_ptx_stack.c - however long a kernel runs without a jump, or from one turn to the next, the host's stack stays
 * small: every mode on a thread with little of it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/ptx_kit.h"

enum { REPEATS = 4000, STACK = 192 * 1024, TEXT = REPEATS * 128 + 4096 };
static char text[TEXT];
static _Alignas(256) float in[64] = {0.1f, 0.7f}, out[64];

/* What goes on to the next instruction without going back to the loop over handlers, if anything does. */
static const char *const bodies[] = {
    "fma.rn.f32 %g, %g, 0f3F000000, %f;\n",
    "add.f32 %f, %f, %g;\nmul.f32 %g, %g, 0f3F000000;\n",
    "ld.global.f32 %f, [%i];\nst.global.f32 [%o], %f;\n",
    "st.shared.f32 [%v], %g;\nld.shared.f32 %f, [%v];\n",
    "setp.gt.f32 %p, %g, 0f3F800000;\nselp.f32 %f, %f, %g, %p;\nadd.u32 %w, %w, %t;\n",
};

static void make(const char *body, uint32_t rounds, uint32_t trips)
{
    size_t n = (size_t)snprintf(text, TEXT,
                                ".version 8.0\n.target sm_80\n.address_size 64\n"
                                ".entry k(.param .u64 in, .param .u64 out)\n{\n"
                                ".reg .b64 %%i, %%o, %%s;\n.reg .b32 %%t, %%n, %%v, %%w;\n.reg .f32 %%f, %%g;\n"
                                ".reg .pred %%p;\n.shared .align 4 .b8 tile[512];\n"
                                "mov.u32 %%t, %%tid.x;\nld.param.u64 %%i, [in];\nld.param.u64 %%o, [out];\n"
                                "mul.wide.u32 %%s, %%t, 4;\nadd.u64 %%i, %%i, %%s;\nadd.u64 %%o, %%o, %%s;\n"
                                "mov.u32 %%v, tile;\nmad.lo.u32 %%v, %%t, 4, %%v;\nmov.u32 %%n, 0;\nmov.u32 %%w, 0;\n"
                                "ld.global.f32 %%f, [%%i];\nmov.f32 %%g, %%f;\nagain:\n");
    for (uint32_t i = 0; i < rounds; i++)
        n += (size_t)snprintf(text + n, TEXT - n, "%s", body);
    snprintf(text + n, TEXT - n, "add.u32 %%n, %%n, 1;\nsetp.lt.u32 %%p, %%n, %u;\n@%%p bra again;\nret;\n}\n", trips);
}

static void *run_all(void *unused)
{
    static const char *const names[] = {"plain",  "one by one", "checked",  "checked one by one",
                                        "shadow", "profile",    "rounding", "variant"};
    for (int mode = 0; mode < 8; mode++) {
        static struct kit k;
        kit_load(&k, text);
        kit_buffer(&k, 0, in, sizeof in);
        kit_buffer(&k, 1, out, sizeof out);
        k.launch.one_by_one = mode == 1 || mode == 3;
        k.launch.checked = mode == 2 || mode == 3;
        k.launch.shadow = mode == 4;
        k.launch.profile = mode == 5;
        k.launch.rounding_seed = mode == 6 ? 5 : 0;
        k.launch.variant = mode == 7 ? 5 : 0;
        k.launch.grid[0] = k.launch.grid[1] = k.launch.grid[2] = 1;
        k.launch.block[0] = 64;
        k.launch.block[1] = k.launch.block[2] = 1;
        k.launch.kernel = ptx_module_find_kernel(k.module, "k");
        struct ptx_result result;
        if (ptx_run(&k.launch, &result, NULL) != STATUS_OK || result.fault_count)
            fail_msg("%s: status %d, %zu faults: %s in line %u", names[mode], (int)result.status, result.fault_count,
                     result.fault_count ? ptx_fault_kind_name(result.faults[0].kind) : "none",
                     result.fault_count ? result.faults[0].access.ptx_line : 0);
        ptx_result_free(&result);
        ptx_module_free(k.module);
    }
    return unused;
}

static void run_with_little_stack(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_all, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

static void test_straight_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        make(bodies[i], REPEATS, 1);
        run_with_little_stack();
    }
}

static void test_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        make(bodies[i], 1, 20000);
        run_with_little_stack();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_straight_lines),
        cmocka_unit_test(test_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
