/* Several modules as one: which definition counts, whose names are whose, what cannot be linked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"
#define OUT(name, body)                                                                                                \
    ".visible .entry " name "(.param .u64 out) { .reg .b64 %p; .reg .b32 %r<9>; .param .b32 a; .param .b32 b;\n"       \
    "ld.param.u64 %p, [out]; " body " st.global.u32 [%p], %r1; ret; }\n"
#define FUNCTION(linkage, name, body)                                                                                  \
    linkage " .func (.param .b32 r) " name "() { .reg .b32 %r<9>; " body " st.param.b32 [r], %r1; ret; }\n"
#define DECLARED(name) ".extern .func (.param .b32 r) " name "();\n"
#define CALL(name)     "call.uni (a), " name ", (); ld.param.b32 %r1, [a]; "

enum { MOST = 4 };
static char *joined;
static uint32_t out[16];

static enum status try_link(const char *const *texts, struct diag *diag)
{
    static const char *const names[MOST] = {"one", "two", "three", "four"};
    struct ptx_link_input inputs[MOST];
    size_t n = 0;
    for (; n < MOST && texts[n]; n++)
        inputs[n] = (struct ptx_link_input){texts[n], names[n]};
    enum status status = ptx_link(inputs, n, &joined, diag);
    assert_true((status == STATUS_OK) == (joined != NULL));
    return status;
}

static void load(struct kit *k, const char *const *texts)
{
    struct diag diag;
    if (try_link(texts, &diag) != STATUS_OK)
        fail_msg("%s:%u: %s", diag.where, diag.line, diag.text);
    kit_load(k, joined);
    free(joined);
    kit_variables(k);
    memset(out, 0, sizeof out);
    kit_buffer(k, 0, out, sizeof out);
}

static uint32_t result(struct kit *k, const char *kernel)
{
    if (kit_run(k, kernel, 1, 1) != STATUS_OK)
        fail_msg("%s: %s", kernel, k->diag.text);
    return out[0];
}

static void test_declarations_find_definitions(void **state)
{
    static const char *const texts[] = {
        HEAD DECLARED("far") ".extern .global .align 4 .u32 value;\n.extern .const .align 4 .u32 fixed[2];\n" OUT(
            "k", CALL("far") "ld.global.u32 %r2, [value]; ld.const.u32 %r3, [fixed+4]; add.u32 %r1, %r1, %r2; "
                             "add.u32 %r1, %r1, %r3;"),
        HEAD FUNCTION(".visible", "far", "mov.u32 %r1, 100;") ".visible .global .align 4 .u32 value = 20;\n"
                                                              ".visible .const .align 4 .u32 fixed[2] = {1, 3};\n",
        NULL};
    static const char *const other_way[] = {
        HEAD FUNCTION(".visible", "far", "mov.u32 %r1, 100;") ".visible .global .align 4 .u32 value = 20;\n"
                                                              ".visible .const .align 4 .u32 fixed[2] = {1, 3};\n",
        HEAD DECLARED("far") ".extern .global .align 4 .u32 value;\n.extern .const .align 4 .u32 fixed[2];\n" OUT(
            "k", CALL("far") "ld.global.u32 %r2, [value]; ld.const.u32 %r3, [fixed+4]; add.u32 %r1, %r1, %r2; "
                             "add.u32 %r1, %r1, %r3;"),
        NULL};
    struct kit k;
    load(&k, texts);
    assert_int_equal(result(&k, "k"), 123);
    kit_free(&k);
    load(&k, other_way);
    assert_int_equal(result(&k, "k"), 123);
    kit_free(&k);
}

/* Functions, kernels, variables, initial values that name variables; comments and braces are no obstacle. */
static void test_own_names_stay_their_own(void **state)
{
#define MODULE(n)                                                                                                      \
    HEAD "/* own } ; */ .global .align 4 .u32 own = " n ";\n// .global .u32 own;\n"                                    \
         ".global .align 8 .u64 pointer[1] = {generic(own)};\n" FUNCTION("", "twice",                                  \
                                                                         "ld.global.u32 %r1, [own]; shl.b32 %r1, "     \
                                                                         "%r1, 1;")                                    \
             OUT("k" n, CALL("twice") "{ .reg .b64 %q; ld.global.u64 %q, [pointer]; ld.u32 %r2, [%q]; } "              \
                                      "add.u32 %r1, %r1, %r2;") ".entry same() { ret; }\n.entry only" n                \
                                                                "() { ret; }\n"
    static const char *const texts[] = {MODULE("1"), MODULE("20"), MODULE("300"), NULL};
    struct kit k;
    load(&k, texts);
    assert_int_equal(result(&k, "k1"), 3);
    assert_int_equal(result(&k, "k20"), 60);
    assert_int_equal(result(&k, "k300"), 900);
    assert_non_null(ptx_module_find_kernel(k.module, "only1")); /* no other module has the name */
    assert_non_null(ptx_module_find_kernel(k.module, "only20"));
    assert_non_null(ptx_module_find_kernel(k.module, "same$m0"));
    assert_non_null(ptx_module_find_kernel(k.module, "same$m2"));
    kit_free(&k);
}

static void test_own_name_is_not_anothers_visible_one(void **state)
{
    static const char *const texts[] = {HEAD FUNCTION("", "f", "mov.u32 %r1, 1;") OUT("k1", CALL("f")),
                                        HEAD FUNCTION(".visible", "f", "mov.u32 %r1, 2;") OUT("k2", CALL("f")),
                                        HEAD DECLARED("f") OUT("k3", CALL("f")), NULL};
    struct kit k;
    load(&k, texts);
    assert_int_equal(result(&k, "k1"), 1);
    assert_int_equal(result(&k, "k2"), 2);
    assert_int_equal(result(&k, "k3"), 2);
    kit_free(&k);
}

/* Inline variables and functions of a header, template kernels. */
static void test_weak_definitions_are_one(void **state)
{
#define WEAK_PART                                                                                                      \
    ".weak .global .align 4 .u32 shared_one[2] = {7, 7};\n" FUNCTION(                                                  \
        ".weak", "count",                                                                                              \
        "ld.global.u32 %r1, [shared_one+4]; add.u32 "                                                                  \
        "%r1, %r1, 1; st.global.u32 [shared_one+4], %r1;") ".weak .entry template_kernel(.param .u64 x)\n.maxntid "    \
                                                           "32, 1, 1\n{ ret; }\n"
    static const char *const texts[] = {HEAD WEAK_PART OUT("k1", CALL("count")),
                                        HEAD WEAK_PART OUT("k2", CALL("count")),
                                        HEAD WEAK_PART OUT("k3", CALL("count")), NULL};
    struct kit k;
    load(&k, texts);
    assert_int_equal(ptx_module_variable_count(k.module), 1);
    assert_int_equal(ptx_module_kernel_count(k.module), 4);
    assert_int_equal(ptx_module_find_kernel(k.module, "template_kernel")->max_threads, 32);
    assert_int_equal(result(&k, "k1"), 8);
    assert_int_equal(result(&k, "k2"), 9);
    assert_int_equal(result(&k, "k3"), 10);
    kit_free(&k);
}

static void test_strong_definition_replaces_weak_ones(void **state)
{
    static const char *const texts[] = {
        HEAD FUNCTION(".weak", "f", "mov.u32 %r1, 1;") ".weak .global .align 4 .u32 v = 10;\n" OUT(
            "k1", CALL("f") "ld.global.u32 %r2, [v]; add.u32 %r1, %r1, %r2;"),
        HEAD FUNCTION(".visible", "f", "mov.u32 %r1, 2;") ".visible .global .align 4 .u32 v = 20;\n",
        HEAD FUNCTION(".weak", "f", "mov.u32 %r1, 3;") OUT("k3", CALL("f")), NULL};
    struct kit k;
    load(&k, texts);
    assert_int_equal(result(&k, "k1"), 22);
    assert_int_equal(result(&k, "k3"), 2);
    kit_free(&k);
}

static void test_dynamic_shared_memory_is_each_modules(void **state)
{
#define DYNAMIC(n)                                                                                                     \
    HEAD ".extern .shared .align 16 .b8 dynamic[];\n" OUT(                                                             \
        "k" n, "mov.u32 %r1, " n "; st.shared.u32 [dynamic], %r1; ld.shared.u32 %r1, [dynamic];")
    static const char *const texts[] = {DYNAMIC("1"), DYNAMIC("2"), NULL};
    struct kit k;
    load(&k, texts);
    k.launch.dynamic_shared_bytes = 4;
    assert_int_equal(result(&k, "k1"), 1);
    assert_int_equal(result(&k, "k2"), 2);
    kit_free(&k);
}

/* The highest of each, and lines of every module by its own files. */
static void test_header_and_source_lines(void **state)
{
    static const char *const texts[] = {
        ".version 7.0\n.target sm_75\n.address_size 64\n.entry a() {\n.loc 1 11 3\nret;\n}\n.file 1 \"first.cu\"\n",
        ".version 8.1\n.target sm_80\n.address_size 64\n.entry b() {\n.loc 1 22 3\nret;\n}\n.file 1 \"second.cu\"\n",
        NULL};
    struct kit k;
    load(&k, texts);
    struct ptx_version v = ptx_module_version(k.module);
    assert_int_equal(v.major, 8);
    assert_int_equal(v.minor, 1);
    assert_int_equal(v.target, 80);
    for (int i = 0; i < 2; i++) {
        const struct ptx_kernel *kernel = ptx_module_find_kernel(k.module, i ? "b" : "a");
        struct ptx_source at;
        assert_int_equal(ptx_module_source(k.module, kernel->first_line + 2, &at, 1), 1);
        assert_string_equal(at.file, i ? "second.cu" : "first.cu");
        assert_int_equal(at.line, i ? 22 : 11);
    }
    kit_free(&k);
}

static void test_alias_defines(void **state)
{
    static const char *const texts[] = {HEAD DECLARED("other") OUT("k", CALL("other")),
                                        HEAD ".visible .func (.param .b32 r) other();\n" FUNCTION(
                                            ".visible", "first", "mov.u32 %r1, 5;") ".alias other, first;\n",
                                        NULL};
    struct kit k;
    load(&k, texts);
    assert_int_equal(result(&k, "k"), 5);
    kit_free(&k);
}

/* ---- what cannot be linked ---- */

static void fails(const char *a, const char *b, const char *where, const char *const words[3])
{
    const char *const texts[] = {a, b, NULL};
    struct diag diag;
    assert_int_equal(try_link(texts, &diag), STATUS_BAD_INPUT);
    assert_string_equal(diag.where, where);
    for (int i = 0; i < 3; i++)
        if (!strstr(diag.text, words[i]))
            fail_msg("`%s` does not say `%s`", diag.text, words[i]);
    assert_true(diag.line > 3);
}

static void links(const char *a, const char *b)
{
    const char *const texts[] = {a, b, NULL};
    struct diag diag;
    if (try_link(texts, &diag) != STATUS_OK)
        fail_msg("%s", diag.text);
    free(joined);
}

static void test_undefined_symbols(void **state)
{
    static const char none[] = HEAD ".entry none() { ret; }\n";
    fails(none, HEAD DECLARED("nowhere") OUT("k", CALL("nowhere")), "two",
          (const char *const[]){"`nowhere`", "`two`", "no module"});
    fails(HEAD ".extern .global .align 4 .u32 lost;\n" OUT("k", "ld.global.u32 %r1, [lost];"), none, "one",
          (const char *const[]){"`lost`", "`one`", "no module"});
    fails(HEAD ".extern .global .align 4 .u32 lost;\n.global .u64 p = lost;\n", none, "one",
          (const char *const[]){"`lost`", "`one`", "no module"});
    links(none, HEAD DECLARED("nowhere"));                                           /* not used */
    links(none, HEAD DECLARED("cudaNoSuchThing") OUT("k", CALL("cudaNoSuchThing"))); /* a kernel is refused, no more */
}

static void test_symbols_defined_twice(void **state)
{
    static const char *const definitions[] = {FUNCTION(".visible", "x", "mov.u32 %r1, 1;"),
                                              ".visible .global .align 4 .u32 x;\n", ".visible .entry x() { ret; }\n"};
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text, HEAD "%s", definitions[i]);
        fails(text, text, "two", (const char *const[]){"`x`", "`one`", "`two`"});
    }
    links(HEAD ".global .align 4 .u32 x;\n", HEAD ".visible .global .align 4 .u32 x;\n");
}

static void test_function_here_variable_there(void **state)
{
    fails(HEAD ".visible .global .align 4 .u32 x;\n", HEAD DECLARED("x") OUT("k", CALL("x")), "two",
          (const char *const[]){"`x`", "a function", "a variable"});
}

/* As nvlink's errors of this kind. What is a module's own may be anything. */
static void test_declarations_that_do_not_agree(void **state)
{
#define TAKES(linkage, returns, takes, end) linkage " .func " returns " f(" takes ")" end "\n"
#define BODY                                "{ ret; }"
    static const struct {
        const char *a, *b, *word;
    } cases[] = {
        {TAKES(".extern", "", ".param .b32 x", ";"), TAKES(".visible", "", ".param .b64 x", BODY), "other parameters"},
        {TAKES(".extern", "", "", ";"), TAKES(".visible", "", ".param .b64 x", BODY), "other parameters"},
        {TAKES(".extern", "", ".param .b32 x, .param .b32 y", ";"), TAKES(".weak", "", ".param .b32 x", BODY),
         "other parameters"},
        {TAKES(".weak", "", ".reg .b32 x", BODY), TAKES(".weak", "", ".param .b32 x", BODY), "other parameters"},
        {TAKES(".weak", "", ".reg .b32 x", BODY), TAKES(".extern", "", ".reg .b64 x", ";"), "other parameters"},
        {TAKES(".extern", "", ".param .b32 x, .param .align 8 .b8 y[]", ";"),
         TAKES(".visible", "", ".param .b32 x, .param .align 8 .b8 y[8]", BODY), "other parameters"},
        {TAKES(".extern", "(.param .b32 r)", "", ";"), TAKES(".visible", "(.param .b16 r)", "", BODY),
         "another return value"},
        {TAKES(".extern", "(.param .b32 r)", "", ";"), TAKES(".visible", "", "", BODY), "another return value"},
        {".extern .entry k(.param .b32 x);\n", ".visible .entry k(.param .b64 x) { ret; }\n", "other parameters"},
        {".extern .global .u32 v;\n", ".visible .const .u32 v = 1;\n", "another state space"},
        {".extern .shared .u32 v;\n", ".visible .global .u32 v = 1;\n", "another state space"},
        {".extern .global .u32 v[2];\n", ".visible .global .u32 v[3];\n", "another size"},
        {".weak .global .u32 v;\n", ".weak .global .u64 v;\n", "another size"},
        {".extern .global .u64 v;\n", ".visible .global .texref v;\n", "another type"},
    };
    char one[512], two[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int turned = 0; turned < 2; turned++) {
            snprintf(one, sizeof one, HEAD "%s", turned ? cases[i].b : cases[i].a);
            snprintf(two, sizeof two, HEAD "%s", turned ? cases[i].a : cases[i].b);
            fails(one, two, "two", (const char *const[]){"`one`", "`two`", cases[i].word});
        }
        snprintf(two, sizeof two, HEAD "%s", cases[i].a); /* the same in both: as long as one defines it, and no more */
        snprintf(one, sizeof one, HEAD ".entry none() { ret; }\n");
        links(one, two);
    }
    fails(HEAD ".extern .func f(.param .b32 x);\n", HEAD ".func g(.param .b64 x) { ret; }\n.alias f, g;\n", "two",
          (const char *const[]){"`f`", "`two`", "other parameters than in `one`"});
    links(HEAD TAKES(".extern", "(.param .align 4 .b8 r[8])", ".param .u64 x", ";"),
          HEAD TAKES(".visible", "(.param .align 8 .b64 other)", ".param .b64 name", BODY));
    links(HEAD TAKES(".extern", "", ".param .b32 x, .param .align 8 .b8 y[]", ";"),
          HEAD TAKES(".visible", "", ".param .b32 x, .param .align 8 .b8 y[]", BODY));
    links(HEAD TAKES(".extern", "", ".param .b32 x", ";"), HEAD TAKES("", "", ".param .b64 x", BODY));
    links(HEAD ".extern .global .u32 v[];\n", HEAD ".visible .global .u32 v[3];\n");
    links(HEAD ".extern .global .u32 v[3];\n", HEAD ".visible .global .u32 v[] = {1, 2, 3};\n");
    links(HEAD ".extern .global .align 16 .v4 .f32 v;\n", HEAD ".visible .global .align 16 .b8 v[16];\n");
}

/* Several names in one statement, names in front of which a bank stands, names that look like ours. */
static void test_names_in_every_place(void **state)
{
#define PLACES(n, more)                                                                                                \
    HEAD ".global .align 4 .u32 va = " n ", vb[2] = {" n ", 2" n "}, vc;\n.const[0] .align 4 .u32 bank = 3" n          \
         ";\n" more ".weak .global .align 4 .u32 w1 = 4" n ", w2[2] = {5" n ", 6" n                                    \
         "};\n" OUT("k" n,                                                                                             \
                    "ld.global.u32 %r1, [va]; ld.global.u32 %r2, [vb+4]; add.u32 %r1, %r1, %r2; ld.const.u32 %r2, "    \
                    "[bank]; add.u32 %r1, %r1, %r2; ld.global.u32 %r2, [w1]; add.u32 %r1, %r1, %r2; "                  \
                    "ld.global.u32 %r2, [w2+4]; add.u32 %r1, %r1, %r2;")
    static const char *const texts[] = {PLACES("1", ""), PLACES("2", ".global .u32 va$m0, va$m1, bank$mm1;\n"),
                                        HEAD ".visible .global .align 4 .u32 w1 = 400;\n", NULL};
    struct kit k;
    load(&k, texts);
    assert_int_equal(result(&k, "k1"), 1 + 21 + 31 + 400 + 61);
    assert_int_equal(result(&k, "k2"), 2 + 22 + 32 + 400 + 61); /* w2 is the first module's */
    kit_free(&k);
}

/* A word that is a directive elsewhere is none in an instruction. */
static void test_words_of_directives_inside_functions(void **state)
{
    static const char *const texts[] = {
        HEAD ".entry a() { ret; }\n.file 1 \"a.cu\"\n",
        HEAD ".entry b() { .reg .b32 %r<3>; neg.version.s32 %r1, %r2; neg.target.s32 %r1, %r2; mov.file 7, 8;\n"
             "add.s32.address_size %r1, %r2, 3; ret; }\n",
        NULL};
    struct kit k;
    load(&k, texts);
    assert_null(ptx_kernel_refusal(k.module, ptx_module_find_kernel(k.module, "a")));
    assert_non_null(ptx_kernel_refusal(k.module, ptx_module_find_kernel(k.module, "b")));
    kit_free(&k);
}

/* What does not load is no module: the error is the reader's, with the module's name. */
static void test_text_that_is_no_module(void **state)
{
    static const char good[] = HEAD ".entry none() { ret; }\n";
    fails(HEAD "\n.global .u33 x;\n", good, "one", (const char *const[]){"u33", "", ""});
    fails(good, HEAD ".entry k() { ret; }\n.func f(.param .b32 x);\n.func f(.param .b64 x) { ret; }\n", "two",
          (const char *const[]){"`f`", "other parameters", "line 5"});
    static const char alias[] = HEAD ".func f(.param .b32 x);\n.func g(.param .b64 x) { ret; }\n.alias f, g;\n";
    struct ptx_module *m;
    struct diag diag;
    assert_int_equal(ptx_module_load(alias, strlen(alias), "text", &m, &diag), STATUS_BAD_INPUT);
    assert_non_null(strstr(diag.text, "`f` has other parameters than `g`"));
}

/* Directives end where they end, not where the line does; and there may be any number of source files. */
static void test_directives_in_one_line(void **state)
{
    static const char *const texts[] = {
        ".version 7.0 .target sm_75 .address_size 64 .file 1 \"a.cu\" .file 700 \"far.cu\", 12, 34 "
        ".weak .func f() { ret; } .entry a() {\n.loc 700 11 3\nret;\n}\n",
        ".version 8.1 .target sm_80, debug .address_size 64 .file 1 \"b.cu\" .weak .func f() { ret; } "
        ".entry b() {\n.loc 1 22 3\nret;\n}\n",
        NULL};
    struct kit k;
    load(&k, texts);
    struct ptx_version v = ptx_module_version(k.module);
    assert_int_equal(v.major * 10 + v.minor, 81);
    assert_int_equal(v.target, 80);
    for (int i = 0; i < 2; i++) {
        const struct ptx_kernel *kernel = ptx_module_find_kernel(k.module, i ? "b" : "a");
        struct ptx_source at;
        assert_int_equal(ptx_module_source(k.module, kernel->first_line + 2, &at, 1), 1);
        assert_string_equal(at.file, i ? "b.cu" : "far.cu");
        assert_int_equal(at.line, i ? 22 : 11);
    }
    kit_free(&k);
    static const char *const many[] = {HEAD ".file 65535 \"a.cu\"\n", HEAD ".file 1 \"b.cu\"\n", NULL};
    struct diag diag;
    assert_int_equal(try_link(many, &diag), STATUS_BAD_INPUT);
    assert_string_equal(diag.where, "two");
}

/* A call that finds no definition keeps its kernel from running; what else is wrong with it is an error all the same,
 * for then linking makes no error of a module that loads. */
static void test_undefined_functions_are_checked_as_others(void **state)
{
    static const char *const wrong[] = {
        DECLARED("far") ".entry k() { .param .b64 a; call.uni (a), far, (); ret; }\n",
        DECLARED("far") ".entry k() { .param .b32 a; call.uni (a), far, (a); ret; }\n",
        DECLARED("far") ".entry k() { .reg .b32 %r; mov.u64 %r, far; ret; }\n",
    };
    static const char right[] = HEAD DECLARED("far") ".entry k() { .param .b32 a; call.uni (a), far, (); ret; }\n";
    struct ptx_module *m;
    struct diag diag;
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text, HEAD "%s", wrong[i]);
        if (ptx_module_load(text, strlen(text), "text", &m, &diag) != STATUS_BAD_INPUT)
            fail_msg("%s", wrong[i]);
    }
    assert_int_equal(ptx_module_load(right, strlen(right), "text", &m, &diag), STATUS_OK);
    const struct diag *why = ptx_kernel_refusal(m, ptx_module_kernel(m, 0));
    assert_non_null(why);
    assert_non_null(strstr(why->text, "`far` is not defined"));
    ptx_module_free(m);
}

/* What is declared further in counts, be it one name or a range that has it. */
static void test_ranges_and_names_in_scopes(void **state)
{
    static const char *const texts[] = {
        HEAD ".global .u32 r1 = 7;\n.visible .entry k(.param .u64 out) { .reg .b64 p; .reg .b32 r<9>;\n"
             "ld.param.u64 p, [out]; mov.u32 r1, 5;\n"
             "{ .reg .b32 r1; mov.u32 r1, 6; { .reg .b32 r<2>; mov.u32 r1, 8; st.global.u32 [p+4], r1; }\n"
             "st.global.u32 [p+8], r1; } st.global.u32 [p], r1; ret; }\n"
             ".visible .entry g(.param .u64 out) { .reg .b64 p; .reg .b32 s<9>;\n"
             "ld.param.u64 p, [out]; ld.global.u32 s1, [r1]; st.global.u32 [p], s1; ret; }\n",
        /* An own name, and elsewhere a range that would have it. */
        HEAD ".visible .entry h(.param .u64 out) { .reg .b64 p; .reg .b32 r<9>; ld.param.u64 p, [out];\n"
             "mov.u32 r1, 9; st.global.u32 [p], r1; ret; }\n",
        NULL};
    struct kit k;
    load(&k, texts);
    assert_int_equal(result(&k, "k"), 5);
    assert_int_equal(out[1], 8);
    assert_int_equal(out[2], 6);
    assert_int_equal(result(&k, "g"), 7);
    assert_int_equal(result(&k, "h"), 9);
    kit_free(&k);
}

/* Names that linking could not keep apart from registers. */
static void test_names_that_are_registers_elsewhere(void **state)
{
#define RANGE(base) ".entry k() { .reg .b32 " base "<9>; ret; }\n"
    static const struct {
        const char *first, *second, *says;
    } refused[] = {
        {HEAD ".global .u32 r1;\n", HEAD ".global .u32 r1;\n" RANGE("r"), "`r1`"},
        {HEAD ".global .u32 r1;\n" RANGE("r"), HEAD ".global .u32 r1;\n", "`r1`"},
        {HEAD ".global .u32 r;\n", HEAD ".global .u32 r;\n" RANGE("r"), "`r`"},
        {HEAD ".global .u32 r12;\n", HEAD ".global .u32 r12;\n" RANGE("r1"), "`r12`"},
        {HEAD ".func r3() { ret; }\n", HEAD ".func r3() { ret; }\n" RANGE("r"), "`r3`"},
        {HEAD ".global .u32 %x;\n", HEAD, "`%x`"},
        {HEAD, HEAD ".visible .func %tid() { ret; }\n", "`%tid`"},
    };
    static const char *const sound[][3] = {
        {HEAD ".global .u32 r1;\n", HEAD ".global .u32 r1;\n" RANGE("q"), NULL},
        {HEAD ".global .u32 r1;\n", HEAD ".global .u32 s1;\n" RANGE("r"), NULL},
        {HEAD ".global .u32 ra;\n", HEAD ".global .u32 ra;\n" RANGE("r"), NULL},
        {HEAD ".global .u32 %x;\n" RANGE("%r"), NULL},
    };
    struct diag diag;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *texts[] = {refused[i].first, refused[i].second, NULL};
        assert_int_equal(try_link(texts, &diag), STATUS_NOT_SUPPORTED);
        if (!strstr(diag.text, refused[i].says) || !strstr(diag.text, "not supported"))
            fail_msg("%s", diag.text);
    }
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++) {
        assert_int_equal(try_link(sound[i], &diag), STATUS_OK);
        free(joined);
    }
}

static void test_wrong_numbers_of_modules(void **state)
{
    struct diag diag;
    char *text;
    assert_int_equal(ptx_link(NULL, 0, &text, &diag), STATUS_BAD_INPUT);
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declarations_find_definitions),
        cmocka_unit_test(test_own_names_stay_their_own),
        cmocka_unit_test(test_own_name_is_not_anothers_visible_one),
        cmocka_unit_test(test_weak_definitions_are_one),
        cmocka_unit_test(test_strong_definition_replaces_weak_ones),
        cmocka_unit_test(test_dynamic_shared_memory_is_each_modules),
        cmocka_unit_test(test_header_and_source_lines),
        cmocka_unit_test(test_alias_defines),
        cmocka_unit_test(test_undefined_symbols),
        cmocka_unit_test(test_symbols_defined_twice),
        cmocka_unit_test(test_function_here_variable_there),
        cmocka_unit_test(test_declarations_that_do_not_agree),
        cmocka_unit_test(test_names_in_every_place),
        cmocka_unit_test(test_words_of_directives_inside_functions),
        cmocka_unit_test(test_text_that_is_no_module),
        cmocka_unit_test(test_directives_in_one_line),
        cmocka_unit_test(test_undefined_functions_are_checked_as_others),
        cmocka_unit_test(test_ranges_and_names_in_scopes),
        cmocka_unit_test(test_names_that_are_registers_elsewhere),
        cmocka_unit_test(test_wrong_numbers_of_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
