/* The reader: messages of refused texts (tests/ptx/errors), what it tells of kernels and variables, source positions.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

static enum status load(const char *text, size_t bytes, struct ptx_module **m, struct diag *d)
{
    return ptx_module_load(text, bytes, "test.ptx", m, d);
}

/* errors/X.ptx must be refused with errors/X.expected. */
static void test_messages(void **state)
{
    char path[512];
    const char *root = getenv("OPSDEBUG_SOURCE");
    snprintf(path, sizeof path, "%s/tests/ptx/errors", root ? root : ".");
    DIR *dir = opendir(path);
    if (!dir) {
        fail_msg("cannot open %s", path);
        return;
    }
    int count = 0, wrong = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        size_t length = strlen(e->d_name), bytes;
        if (length < 5 || strcmp(e->d_name + length - 4, ".ptx") != 0)
            continue;
        char name[300], got[2048];
        snprintf(name, sizeof name, "errors/%s", e->d_name);
        char *text = kit_read_file(name, &bytes);
        struct ptx_module *m;
        struct diag d;
        enum status s = load(text, bytes, &m, &d);
        const struct diag *refusal = NULL; /* of the first kernel that has one */
        for (size_t i = 0; s == STATUS_OK && i < ptx_module_kernel_count(m) && !refusal; i++)
            refusal = ptx_kernel_refusal(m, ptx_module_kernel(m, i));
        if (refusal)
            d = *refusal;
        snprintf(got, sizeof got, "%s:%u:%u: %s: %s\n%s%s", d.where, d.line, d.column,
                 refusal                     ? "not runnable"
                 : s == STATUS_BAD_INPUT     ? "bad input"
                 : s == STATUS_NOT_SUPPORTED ? "not supported"
                 : s == STATUS_OK            ? "OK"
                                             : "other",
                 d.text, d.excerpt, d.excerpt[0] ? "\n" : "");
        if (s == STATUS_OK)
            ptx_module_free(m);
        else
            assert_null(m);
        free(text);
        snprintf(name, sizeof name, "errors/%.*s.expected", (int)length - 4, e->d_name);
        char *expected = kit_read_file(name, &bytes);
        if (strcmp(got, expected) != 0) {
            print_error("%s: got\n%sexpected\n%s", e->d_name, got, expected);
            wrong++;
        }
        free(expected);
        count++;
    }
    closedir(dir);
    assert_true(count > 30);
    assert_int_equal(wrong, 0);
}

static void test_kernel_facts(void **state)
{
    static const char text[] =
        ".version 8.1\n.target sm_80, debug\n.address_size 64\n"
        ".shared .align 16 .b8 outer[100];\n.extern .shared .align 64 .b8 dynamic[];\n"
        ".func f() { .reg .b32 %r<2>; .shared .align 8 .b8 inner[24]; mov.u32 %r1, inner; mov.u32 %r1, outer; ret; }\n"
        ".visible .entry _Z1kPfiS_(\n.param .u64 .ptr .global .align 4 a,\n.param .u8 b,\n.param .align 16 .b8 "
        "c[20],\n.param .f64 d\n)\n"
        ".maxntid 128, 2, 1\n.minnctapersm 2\n{\n.local .align 8 .b8 depot[40];\n.reg .b64 %x;\nmov.u64 %x, "
        "dynamic;\ncall.uni f, ();\nret;\n}\n"
        ".entry small() .reqntid 32 { ret; }\n";
    struct ptx_module *m;
    struct diag d;
    assert_int_equal(load(text, sizeof text, &m, &d), STATUS_OK); /* with its NUL */
    struct ptx_version v = ptx_module_version(m);
    assert_true(v.major == 8 && v.minor == 1 && v.target == 80 && v.address_size == 64);
    assert_int_equal(ptx_module_kernel_count(m), 2);
    const struct ptx_kernel *k = ptx_module_find_kernel(m, "_Z1kPfiS_");
    assert_non_null(k);
    assert_int_equal(k->param_count, 4);
    static const uint32_t offsets[] = {0, 8, 16, 40}, sizes[] = {8, 1, 20, 8};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(k->params[i].offset, offsets[i]);
        assert_int_equal(k->params[i].size, sizes[i]);
    }
    assert_string_equal(k->params[2].name, "c");
    assert_int_equal(k->param_bytes, 48);
    assert_int_equal(k->static_shared_bytes, 104 + 24);
    assert_int_equal(k->local_bytes, 48);
    assert_int_equal(k->max_threads, 256);
    assert_int_equal(k->instruction_count, 3);
    assert_int_equal(k->first_line, 7);
    assert_int_equal(k->last_line, 21);
    k = ptx_module_find_kernel(m, "small");
    assert_true(k->required_block[0] == 32 && k->required_block[1] == 1 && k->static_shared_bytes == 0);
    assert_null(ptx_module_find_kernel(m, "f"));
    assert_null(ptx_module_kernel(m, 2));
    ptx_module_free(m);
}

static void test_variables(void **state)
{
    static const char text[] = ".version 9.0\n.target sm_75\n.address_size 64\n"
                               ".visible .global .align 4 .u32 a[3] = {1, -2};\n"
                               ".const .align 8 .f64 b = 0d3FF8000000000000;\n"
                               ".global .align 8 .u64 c[3] = {generic(a)+8, f, a};\n"
                               ".extern .global .align 4 .u32 elsewhere;\n"
                               ".global .attribute(.managed) .align 4 .f32 m = 0f40490FDB;\n"
                               ".global .align 2 .b8 d[8] = {0xFF(a), 0xFF00(a), 0xFF0000(a), 3, 4};\n"
                               ".global .align 4 .b32 e[2][3] = {{1}, {2, 3}};\n"
                               ".global .u16 g[] = {7, 8, 9};\n"
                               ".global .align 4 .f32 h[2] = {1.5, -0f3F800000};\n"
                               ".func f() { ret; }\n";
    struct ptx_module *m;
    struct diag diag;
    if (load(text, strlen(text), &m, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    assert_int_equal(ptx_module_variable_count(m), 9);
    const uint64_t addresses[] = {0x1234560, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000, 0x7000, 0x8000, 0x9000};
    union {
        unsigned char bytes[64];
        uint32_t u32[16];
        uint64_t u64[8];
        double f64[8];
        float f32[16];
        uint16_t u16[32];
    } v;
#define INIT(i) assert_int_equal(ptx_module_variable_init(m, i, addresses, &v), STATUS_OK)
    INIT(0);
    assert_true(v.u32[0] == 1 && v.u32[1] == UINT32_MAX - 1 && v.u32[2] == 0);
    INIT(1);
    assert_true(v.f64[0] == 1.5 && ptx_module_variable(m, 1)->constant);
    INIT(2);
    assert_true(v.u64[0] == 0x1234568 && v.u64[1] == PTX_CODE_WINDOW + 16 && v.u64[2] == 0x1234560);
    assert_true(ptx_module_variable(m, 3)->external);
    INIT(4);
    assert_true(v.f32[0] == 3.14159274f && ptx_module_variable(m, 4)->managed);
    INIT(5);
    assert_true(v.bytes[0] == 0x60 && v.bytes[1] == 0x45 && v.bytes[2] == 0x23 && v.bytes[3] == 3 && v.bytes[4] == 4 &&
                v.bytes[5] == 0);
    INIT(6);
    assert_true(v.u32[0] == 1 && v.u32[1] == 0 && v.u32[3] == 2 && v.u32[4] == 3 && v.u32[5] == 0);
    assert_int_equal(ptx_module_variable(m, 7)->size, 6);
    INIT(7);
    assert_true(v.u16[2] == 9);
    INIT(8);
    assert_true(v.f32[0] == 1.5f && v.f32[1] == -1.0f);
    assert_int_equal(ptx_module_variable_init(m, 99, addresses, &v), STATUS_NOT_FOUND);
    ptx_module_free(m);
}

/* Initial values of every width: element by element, and zero behind them, in elements wider than a value, too. */
static void test_initial_values_of_every_width(void **state)
{
    static const struct {
        const char *type;
        unsigned bytes;
    } types[] = {{"b8", 1},  {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2}, {"s16", 2},  {"b32", 4},
                 {"u32", 4}, {"s32", 4}, {"b64", 8}, {"u64", 8}, {"s64", 8}, {"b128", 16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char text[256];
        struct kit k;
        unsigned char expected[64] = {0};
        const unsigned bytes = types[i].bytes;
        snprintf(text, sizeof text,
                 ".version 9.0\n.target sm_90\n.address_size 64\n.global .align 16 .%s v[4] = {101, 102, 103};\n",
                 types[i].type);
        kit_load(&k, text);
        assert_int_equal(ptx_module_variable(k.module, 0)->size, 4 * bytes);
        unsigned char *got = malloc(4 * bytes); /* a sanitizer sees what lies behind it */
        assert_non_null(got);
        memset(got, 0xaa, 4 * bytes);
        for (unsigned e = 0; e < 3; e++)
            expected[e * bytes] = (unsigned char)(101 + e);
        assert_int_equal(ptx_module_variable_init(k.module, 0, k.variables, got), STATUS_OK);
        if (memcmp(got, expected, 4 * bytes) != 0)
            fail_msg(".%s", types[i].type);
        free(got);
        kit_free(&k);
    }
}

static void test_source_positions(void **state)
{
    static const char text[] = ".version 9.0\n.target sm_75\n.address_size 64\n"
                               ".entry k() {\n" /* line 4 */
                               "\t.reg .b32 %r<3>;\n"
                               "\tmov.u32 %r1, 1;\n" /* 6: no .loc yet */
                               "\t.loc 1 10 5\n"
                               "\tmov.u32 %r1, 2;\n" /* 8 */
                               "\t.loc 1 11 7\n"
                               "\t.loc 2 30 3, function_name $strings+4, inlined_at 1 11 7\n"
                               "\tmov.u32 %r1, 3;\n" /* 11 */
                               "\t.loc 2 40 9, function_name $inner, inlined_at 2 30 3\n"
                               "\tmov.u32 %r1, 4;\n" /* 13 */
                               "\tret;\n}\n"
                               "\t.file 1 \"a.cu\"\n\t.file 2 \"b.h\", 123, 456\n"
                               "\t.section .debug_str\n\t{\n$strings:\n.b8 120,120,120,0,111,117,116\n.b8 "
                               "101,114,0\n$inner: .b8 105,110,0\n\t}\n";
    struct ptx_module *m;
    struct diag d;
    if (load(text, strlen(text), &m, &d) != STATUS_OK)
        fail_msg("%s", d.text);
    struct ptx_source s[4];
    assert_int_equal(ptx_module_source(m, 6, s, 4), 1);
    assert_null(s[0].file);
    assert_string_equal(s[0].function, "k");
    assert_int_equal(ptx_module_source(m, 8, s, 4), 1);
    assert_string_equal(s[0].file, "a.cu");
    assert_true(s[0].line == 10 && s[0].column == 5);
    assert_int_equal(ptx_module_source(m, 11, s, 4), 2);
    assert_string_equal(s[0].function, "outer");
    assert_string_equal(s[0].file, "b.h");
    assert_string_equal(s[1].function, "k");
    assert_true(s[1].line == 11);
    assert_int_equal(ptx_module_source(m, 13, s, 4), 3);
    assert_string_equal(s[0].function, "in");
    assert_string_equal(s[1].function, "outer");
    assert_true(s[1].line == 30 && s[2].line == 11);
    assert_string_equal(s[2].function, "k");
    assert_int_equal(ptx_module_source(m, 13, s, 1), 1);
    assert_int_equal(ptx_module_source(m, 1, s, 4), 0);
    ptx_module_free(m);
}

/* Forms of real programs that nvcc, NVRTC and Triton write. */
static void test_forms(void **state)
{
    static const char text[] =
        "//\n.version 8.4\n.target sm_90a\n.address_size 64\n"
        ".weak .func (.param .b32 r) add(.param .b32 a, .param .b32 b)\n;\n"
        ".visible .func (.param .b32 r) add(.param .b32 a, .param .b32 b)\n{\n.reg .b32 %r<4>;\nld.param.u32 %r1, "
        "[a];\nld.param.u32 %r2, [b];\n"
        "add.s32 %r3, %r1, %r2;\nst.param.b32 [r+0], %r3;\nret;\n}\n"
        ".alias other, add;\n"
        ".func (.reg .u32 r) old(.reg .u32 a) { add.u32 r, a, 1; ret; }\n"
        ".entry k(.param .u64 .ptr .global .align 16 out) .maxntid 128\n{\n"
        ".pragma \"nounroll\";\n.reg .b32 %r<9>;\n.reg .b64 %rd<3>;\n.reg .pred p;\n"
        "{ .param .b32 x; .param .b32 y; .param .b32 z; st.param.b32 [x], 3; st.param.b32 [y+0], 4;\n"
        "call.uni (z), add, (x, y); ld.param.b32 %r1, [z+0]; }\n"
        "call (%r2), old, (%r1);\n"
        "ld.param.u64 %rd1, [out];\n"
        "@p bra DONE;\n"
        "st.global.v2.b32 [%rd1+0], {%r1, %r2};\n"
        "createpolicy: mov.u32 %r3, WARP_SZ;\n"
        "DONE: bar.sync 0;\nbarrier.sync.aligned 0;\nmembar.gl;\nfence.acq_rel.gpu;\nfence.sc.sys;\n"
        "ld.global.L1::evict_last.b32 %r4, [%rd1];\nld.global.nc.L1::no_allocate.L2::128B.b32 %r4, "
        "[%rd1];\nprefetch.global.L2 [%rd1];\n"
        "exit;\n}\n";
    struct kit k;
    kit_load(&k, text);
    uint32_t out[4] = {0};
    kit_buffer(&k, 0, out, sizeof out);
    assert_int_equal(kit_run(&k, "k", 1, 32), STATUS_OK);
    assert_int_equal(out[0], 7);
    assert_int_equal(out[1], 8);
    kit_free(&k);
}

/* A function takes what its callers give beyond its named parameters: here sums of as many words as the first says. */
static void test_variable_arguments(void **state)
{
    static const char text[] =
        ".version 9.0\n.target sm_75\n.address_size 64\n"
        ".func (.param .b32 r) sum(.param .b32 n, .param .align 8 .b8 %VAParam[])\n{\n"
        ".reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p;\nld.param.u32 %r1, [n];\nmov.u64 %rd1, %VAParam;\n"
        "mov.u32 %r2, 0;\nAGAIN: setp.eq.u32 %p, %r1, 0;\n@%p bra DONE;\nld.local.u32 %r3, [%rd1];\n"
        "add.u32 %r2, %r2, %r3;\nadd.u64 %rd1, %rd1, 4;\nsub.u32 %r1, %r1, 1;\nbra AGAIN;\n"
        "DONE: st.param.b32 [r], %r2;\nret;\n}\n"
        ".entry direct(.param .u64 out)\n{\n.reg .b32 %r<3>; .reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\n"
        "{ .param .b32 a; .param .align 8 .b8 b[8]; .param .b32 c; st.param.b32 [a], 2; st.param.b32 [b], 3;\n"
        "st.param.b32 [b+4], 4; call.uni (c), sum, (a, b); ld.param.b32 %r1, [c]; }\n"
        "{ .param .b32 a; .param .align 8 .b8 b[24]; .param .b32 c; st.param.b32 [a], 5; st.param.b32 [b], 1;\n"
        "st.param.b32 [b+4], 2; st.param.b32 [b+8], 30; st.param.b32 [b+12], 4; st.param.b32 [b+16], 5;\n"
        "call.uni (c), sum, (a, b); ld.param.b32 %r2, [c]; }\nst.global.v2.u32 [%rd1], {%r1, %r2};\nret;\n}\n"
        ".entry by_pointer()\n{\n.reg .b32 %r<2>; .reg .b64 %rd<2>;\nmov.u64 %rd1, sum;\n"
        "{ .param .b32 a; .param .align 8 .b8 b[32]; .param .b32 c;\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[]);\n"
        "call (c), %rd1, (a, b), proto; }\nret;\n}\n";
    for (int mode = 0; mode < 3; mode++) {
        struct kit k;
        uint32_t out[2] = {0};
        kit_load(&k, text);
        k.launch.checked = mode == 1;
        k.launch.shadow = mode == 2;
        kit_buffer(&k, 0, out, sizeof out);
        assert_int_equal(kit_run(&k, "direct", 1, 1), STATUS_OK);
        assert_int_equal(k.result.fault_count, 0);
        assert_int_equal(out[0], 7);
        assert_int_equal(out[1], 42);
        assert_int_equal(kit_run(&k, "by_pointer", 1, 1), STATUS_NOT_SUPPORTED);
        assert_non_null(strstr(k.diag.text, "through a pointer"));
        kit_free(&k);
    }
}

/* What one kernel lacks refuses that kernel and those that can reach it, and nothing else. */
static void test_refusals(void **state)
{
    static const char text[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".extern .func elsewhere();\n"
        ".func bad() { .reg .b32 %r<3>; frob.u32 %r1, %r2; frob.u32 %r2, %r1;\nnot.known; ret; }\n"
        ".func middle() { call bad, (); ret; }\n"
        ".func good() { ret; }\n"
        ".entry sound(.param .u64 out) {\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\n"
        "call good, ();\nst.global.u32 [%rd1], 7;\nret;\n}\n"
        ".entry reaches(.param .u64 out) {\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [out];\n"
        "st.global.u32 [%rd1], 9;\ncall middle, ();\nret;\n}\n"
        ".entry indirect(.param .u64 f) {\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [f];\n"
        "proto: .callprototype _ ();\ncall %rd1, (), proto;\nret;\n}\n"
        ".entry own() {\n.reg .b32 %r<2>;\nfancy.b32 %r1;\ncall bad, ();\nret;\n}\n"
        ".entry cluster() .reqnctapercluster 2, 1, 1 { ret; }\n"
        ".entry taken() {\n.reg .b64 %rd<2>;\nmov.u64 %rd1, elsewhere;\nret;\n}\n";
    struct kit k;
    kit_load(&k, text);
    uint32_t out[4] = {0};
    kit_buffer(&k, 0, out, sizeof out);
    assert_int_equal(kit_run(&k, "sound", 1, 32), STATUS_OK);
    assert_int_equal(out[0], 7);
    static const struct {
        const char *kernel, *word;
        uint32_t line;
        size_t missing;
    } cases[] = {
        {"sound", NULL, 0, 0},         {"reaches", "`frob.u32`", 5, 2},          {"indirect", "`frob.u32`", 5, 2},
        {"own", "`fancy.b32`", 32, 3}, {"cluster", ".reqnctapercluster", 36, 1}, {"taken", "`mov.u64`", 39, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct ptx_kernel *kernel = ptx_module_find_kernel(k.module, cases[i].kernel);
        const struct diag *d = ptx_kernel_refusal(k.module, kernel), *list[8];
        assert_int_equal(ptx_kernel_missing(k.module, kernel, list, 8), cases[i].missing);
        assert_int_equal(ptx_kernel_missing(k.module, kernel, list, 1), cases[i].missing);
        if (!cases[i].word) {
            assert_null(d);
            continue;
        }
        assert_ptr_equal(d, list[0]);
        assert_non_null(strstr(d->text, cases[i].word));
        assert_int_equal(d->line, cases[i].line);
        assert_non_null(strchr(d->excerpt, '^'));
        assert_int_equal(kit_run(&k, cases[i].kernel, 1, 32), STATUS_NOT_SUPPORTED);
        assert_string_equal(k.diag.text, d->text);
        assert_int_equal(k.result.counts.threads, 0);
    }
    assert_int_equal(out[0], 7);
    kit_free(&k);
    /* What is malformed behind an unsupported instruction still refuses the text. */
    static const char broken[] = ".version 9.0\n.target sm_75\n.address_size 64\n"
                                 ".entry k() { frob.u32 %r1; add.u32 1, 2; ret; }\n";
    struct ptx_module *m;
    struct diag d;
    assert_int_equal(load(broken, strlen(broken), &m, &d), STATUS_BAD_INPUT);
    assert_null(m);
}

/* .ftz of cvt concerns single precision. */
static void test_cvt_ftz_needs_single_precision(void **state)
{
    static const char *const kernels[] = {"cvt.rn.ftz.f16.f64 %h0, %d0;", "cvt.ftz.f64.f16 %d0, %h0;",
                                          "cvt.rzi.ftz.s32.f64 %r0, %d0;"};
    static const char *const sound[] = {"cvt.rn.ftz.f16.f32 %h0, %f0;", "cvt.ftz.f64.f32 %d0, %f0;",
                                        "cvt.rzi.ftz.s32.f32 %r0, %f0;"};
    for (int i = 0; i < 6; i++) {
        struct ptx_module *m;
        struct diag diag;
        char text[300];
        int n = snprintf(text, sizeof text,
                         ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .f64 %%d0; .reg .b16 %%h0; "
                         ".reg .b32 %%r0; .reg .f32 %%f0; %s ret; }\n",
                         i < 3 ? kernels[i] : sound[i - 3]);
        assert_int_equal(ptx_module_load(text, (size_t)n, "text", &m, &diag), STATUS_OK);
        const struct diag *why = ptx_kernel_refusal(m, ptx_module_kernel(m, 0));
        assert_int_equal(why != NULL, i < 3);
        if (why)
            assert_non_null(strstr(why->text, ".ftz"));
        ptx_module_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cvt_ftz_needs_single_precision),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_kernel_facts),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_initial_values_of_every_width),
        cmocka_unit_test(test_source_positions),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_variable_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
