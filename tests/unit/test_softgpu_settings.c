/* What the environment says about the device: what cannot be read fails cuInit with one line that names it. */
#include <sys/wait.h>

#include "tests/unit/softgpu_test.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* cuInit in a process of its own; what it wrote to stderr goes to `text`. */
static CUresult init_with(const char *name, const char *value, char *text, size_t bytes)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        setenv(name, value, 1);
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
        _exit(cuInit(0) == CUDA_SUCCESS ? 0 : cuInit(0) == CUDA_ERROR_INVALID_VALUE ? 1 : 2);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t n; (n = read(ends[0], text + got, bytes - 1 - got)) > 0;)
        got += (size_t)n;
    text[got] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 0   ? CUDA_SUCCESS
           : WEXITSTATUS(status) == 1 ? CUDA_ERROR_INVALID_VALUE
                                      : CUDA_ERROR_UNKNOWN;
}

static void test_good_settings_are_silent(void **state)
{
    static const char *const rows[][2] = {
        {"SOFTGPU_MEMORY", "64M"},
        {"SOFTGPU_MEMORY", "1g"},
        {"SOFTGPU_MEMORY", ""},
        {"SOFTGPU_SMS", "1024"},
        {"SOFTGPU_WORKERS", "256"},
        {"SOFTGPU_DEVICES", "8"},
        {"SOFTGPU_CC", "8.6"},
        {"SOFTGPU_CC", "90"},
        {"SOFTGPU_CC", "12.0"},
        {"SOFTGPU_VARIANT", "any text; at all, kind=\\"},
        {"SOFTGPU_FAULTS", ""},
        {"SOFTGPU_FAULTS", "kind=nan;"},
        {"SOFTGPU_FAULTS", "kernel=a\\,b\\;(c|d),launch=18446744073709551615,kind=bitflip,rate=1,seed=0"},
        {"SOFTGPU_FAULTS", "rate=1000000,kind=slowmem;kind=slowlaunch,rate=0.5;kind=tf32"},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        char text[512];
        ok(init_with(rows[i][0], rows[i][1], text, sizeof text));
        assert_string_equal(text, "");
    }
}

static void test_settings_that_cannot_be_read(void **state)
{
    static const char *const rows[][3] = {
        {"SOFTGPU_MEMORY", "16X", "SOFTGPU_MEMORY=16X is no number"},
        {"SOFTGPU_MEMORY", "1M", "SOFTGPU_MEMORY=1M is no number"},
        {"SOFTGPU_MEMORY", "16GB", "SOFTGPU_MEMORY=16GB is no number"},
        {"SOFTGPU_MEMORY", "99999999999T", "SOFTGPU_MEMORY=99999999999T is no number"},
        {"SOFTGPU_SMS", "-1", "SOFTGPU_SMS=-1 is no number from 1 to 1024"},
        {"SOFTGPU_WORKERS", "0", "SOFTGPU_WORKERS=0 is no number"},
        {"SOFTGPU_DEVICES", "9", "SOFTGPU_DEVICES=9 is no number"},
        {"SOFTGPU_CC", "8.6a", "SOFTGPU_CC=8.6a is no compute capability"},
        {"SOFTGPU_CC", "sm_86", "SOFTGPU_CC=sm_86 is no compute capability"},
        {"SOFTGPU_FAULTS", "nonsense", "rule 1: nonsense is no NAME=VALUE"},
        {"SOFTGPU_FAULTS", "kind=nan;kernel=x", "rule 2: kind is missing"},
        {"SOFTGPU_FAULTS", "kind=nan;;", "rule 2: kind is missing"},
        {"SOFTGPU_FAULTS", "kind=", "rule 1: kind is no kind of flaw"},
        {"SOFTGPU_FAULTS", "kind=nan,kernel=(", "rule 1: kernel is no pattern"},
        {"SOFTGPU_FAULTS", "kind=nan,kernel=a,kernel=b", "rule 1: kernel is there twice"},
        {"SOFTGPU_FAULTS", "kind=nan,rte=1", "rule 1: rte is no field of a rule"},
        {"SOFTGPU_FAULTS", "kind=nan,rate=0", "rule 1: rate is no number above 0"},
        {"SOFTGPU_FAULTS", "kind=nan,rate=nan", "rule 1: rate is no number above 0"},
        {"SOFTGPU_FAULTS", "kind=nan,rate=1.5", "rule 1: rate is a share, at most 1"},
        {"SOFTGPU_FAULTS", "kind=slowmem,rate=inf", "rule 1: rate is above 1000000"},
        {"SOFTGPU_FAULTS", "kind=nan,launch=0", "rule 1: launch is no number from 1"},
        {"SOFTGPU_FAULTS", "kind=nan,launch=-1", "rule 1: launch is no number from 1"},
        {"SOFTGPU_FAULTS", "kind=nan,launch=99999999999999999999", "rule 1: launch is no number from 1"},
        {"SOFTGPU_FAULTS", "kind=nan,seed=x", "rule 1: seed is no number"},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        char text[512];
        fails(CUDA_ERROR_INVALID_VALUE, init_with(rows[i][0], rows[i][1], text, sizeof text));
        assert_non_null(strstr(text, rows[i][2]));
        assert_int_equal(strncmp(text, "softgpu: ", 9), 0);
        assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
    }
}

/* The compiler of patterns recurses; a long one must not take the program with it. */
static void test_pattern_of_parentheses(void **state)
{
    static char rule[100000] = "kind=nan,kernel=";
    char text[512];
    size_t start = strlen(rule);
    memset(rule + start, '(', sizeof rule - 1 - start);
    fails(CUDA_ERROR_INVALID_VALUE, init_with("SOFTGPU_FAULTS", rule, text, sizeof text));
    assert_non_null(strstr(text, "rule 1: kernel is no pattern"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_settings_are_silent),
        cmocka_unit_test(test_settings_that_cannot_be_read),
        cmocka_unit_test(test_pattern_of_parentheses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
