#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shim/ptx_scan.h"

static struct ptx_scan scan(const char *text)
{
    struct ptx_scan out;
    assert_true(ptx_scan_text(text, strlen(text) + 1, &out));
    return out;
}

static void test_entry_parameters(void **state)
{
    struct ptx_scan s =
        scan(".version 8.0\n.target sm_75\n.address_size 64\n"
             "// .visible .entry commented(.param .u64 x)\n"
             ".visible .entry _Z3addPfi(\n\t.param .u64 .ptr .global .align 4 _Z3addPfi_param_0,\n"
             "\t.param .u32 _Z3addPfi_param_1,\n\t.param .f64 c,\n\t.param .align 8 .b8 d[24],\n"
             "\t.param .align 1 .b8 e[3], .param .u16 f\n)\n.maxntid 128, 1, 1\n{\n\t.param .b32 call_arg;\n"
             "\t.shared .align 4 .b8 tile[64];\n\tret;\n}\n");
    const struct ptx_entry *e = ptx_scan_entry(&s, "_Z3addPfi");
    static const struct ptx_param expected[] = {{0, 8}, {8, 4}, {16, 8}, {24, 24}, {48, 3}, {52, 2}};
    assert_int_equal(s.entry_count, 1);
    assert_non_null(e);
    assert_int_equal(e->param_count, 6);
    assert_memory_equal(e->params, expected, sizeof expected);
    assert_int_equal(e->param_bytes, 54);
    assert_int_equal(s.variable_count, 0);
    ptx_scan_free(&s);
}

static void test_entry_without_parameters(void **state)
{
    struct ptx_scan s = scan(".entry a { ret; }\n.entry b() { ret; }\n.weak .entry c(){ret;}");
    assert_int_equal(s.entry_count, 3);
    assert_int_equal(ptx_scan_entry(&s, "b")->param_count, 0);
    assert_null(ptx_scan_entry(&s, "d"));
    ptx_scan_free(&s);
}

static void test_function_is_not_an_entry(void **state)
{
    struct ptx_scan s = scan(".func (.param .b32 r) helper(.param .b64 p) { .local .align 8 .b8 stack[8]; ret; }\n"
                             ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
                             ".visible .entry k(.param .u8 x) { ret; }");
    assert_int_equal(s.entry_count, 1);
    assert_int_equal(s.entries[0].param_bytes, 1);
    ptx_scan_free(&s);
}

static void test_module_variables(void **state)
{
    struct ptx_scan s = scan(".visible .global .align 4 .b8 table[1024] = {1, 2, 0xff, 4};\n"
                             ".const .align 8 .f64 scale = 0d3FF0000000000000;\n"
                             ".extern .global .align 4 .u32 elsewhere;\n.global .texref tex;\n"
                             ".visible .global .attribute(.managed) .align 8 .u64 shared_pointer;\n"
                             ".global .align 1 .b8 $str[6] = {104, 101, 108, 108, 111};\n"
                             ".section .debug_str\n{\n.b8 103,108,111,98\n.global .u32 inside;\n}\n"
                             ".file 1 \"/a/.global .u32 name.cu\"\n.visible .const .u32 last;");
    static const char *const names[] = {"table", "scale", "shared_pointer", "$str", "last"};
    assert_int_equal(s.variable_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(s.variables[i].name, names[i]);
        assert_int_equal(s.variables[i].constant, i == 1 || i == 4);
    }
    ptx_scan_free(&s);
}

static void test_wrong_parameters_give_no_layout(void **state)
{
    static const char *const texts[] = {
        ".entry k(.param x) {}",
        ".entry k(.param .align 3 .b8 x[99999]) {}",
        ".entry k(.param .b8 x[18446744073709551615]) {}",
        ".entry k(.param .b8 x[16384][16384][16384][16384][256]) {}", /* 2^64 */
        ".entry k(.param .b64 x[4096], .param .b64 y[4096]) {}",
        ".entry k(.param .u64 a",
        ".entry k(.param .u64 a,",
        ".entry",
        ".entry (",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct ptx_scan s = scan(texts[i]);
        assert_int_equal(s.entry_count, 0);
        ptx_scan_free(&s);
    }
}

/* Every prefix and every single-byte change of a text is taken without harm (the sanitizers look). */
static void test_hostile_text(void **state)
{
    static const char text[] = ".visible .global .align 4 .b8 t[4] = {1};/* c */\n.file 1 \"x\"\n"
                               ".visible .entry k(.param .align 8 .b8 d[24], .param .u64 p) // c\n{ ret; }";
    char copy[sizeof text];
    for (size_t n = 0; n <= sizeof text; n++) {
        char *exact = malloc(n ? n : 1);
        struct ptx_scan s;
        memcpy(exact, text, n < sizeof text ? n : sizeof text);
        assert_true(ptx_scan_text(exact, n < sizeof text ? n : sizeof text, &s));
        ptx_scan_free(&s);
        free(exact);
    }
    static const char odd[] = {0, '{', '}', '(', ')', '[', '"', '/', '*', ';', '.', (char)0xff};
    for (size_t at = 0; at < sizeof text - 1; at++)
        for (size_t c = 0; c < sizeof odd; c++) {
            memcpy(copy, text, sizeof text);
            copy[at] = odd[c];
            struct ptx_scan s;
            assert_true(ptx_scan_text(copy, sizeof copy, &s));
            ptx_scan_free(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entry_parameters),
        cmocka_unit_test(test_entry_without_parameters),
        cmocka_unit_test(test_function_is_not_an_entry),
        cmocka_unit_test(test_module_variables),
        cmocka_unit_test(test_wrong_parameters_give_no_layout),
        cmocka_unit_test(test_hostile_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
