/* The command line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "analyzer/options.h"

static enum status parse(const char *command, struct options *o, struct diag *diag, const char *a, const char *b,
                         const char *c)
{
    const char *argv[] = {"ops-analyze", command, a, b, c, NULL};
    int argc = 2;
    while (argv[argc])
        argc++;
    return options_parse(command, argc, (char **)argv, o, diag);
}

static void test_options_values(void **state)
{
    struct options o;
    struct diag diag;
    assert_int_equal(parse("verify", &o, &diag, "--launch-skip=3", "dir", "--json"), STATUS_OK);
    assert_int_equal(o.launch_skip, 3);
    assert_true(o.json);
    assert_false(o.verbose);
    assert_int_equal(o.argument_count, 1);
    assert_string_equal(o.arguments[0], "dir");
    assert_int_equal(parse("list", &o, &diag, "--kernel", "gemm", "-v"), STATUS_OK);
    assert_string_equal(o.kernel, "gemm");
    assert_true(o.verbose);
}

static void test_options_after_dashes(void **state)
{
    struct options o;
    struct diag diag;
    assert_int_equal(parse("report", &o, &diag, "--", "--json", NULL), STATUS_OK);
    assert_false(o.json);
    assert_string_equal(o.arguments[0], "--json");
}

static void test_options_wrong(void **state)
{
    struct options o;
    struct diag diag;
    assert_int_equal(parse("report", &o, &diag, "--nonsense", NULL, NULL), STATUS_BAD_INPUT);
    assert_non_null(strstr(diag.text, "--nonsense"));
    assert_int_equal(parse("report", &o, &diag, "--jobs", "2", NULL), STATUS_BAD_INPUT); /* verify's */
    assert_int_equal(parse("verify", &o, &diag, "--jobs", NULL, NULL), STATUS_BAD_INPUT);
    assert_int_equal(parse("verify", &o, &diag, "--jobs", "two", NULL), STATUS_BAD_INPUT);
    assert_int_equal(parse("verify", &o, &diag, "--jobs", "-2", NULL), STATUS_BAD_INPUT);
    assert_int_equal(parse("verify", &o, &diag, "--json=yes", NULL, NULL), STATUS_BAD_INPUT);
    assert_int_equal(parse("verify", &o, &diag, "-x", NULL, NULL), STATUS_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_values),
        cmocka_unit_test(test_options_after_dashes),
        cmocka_unit_test(test_options_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
