#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shim/capture_write.h"
#include "shim/intern.h"
#include "shim/options.h"
#include "shim/shim.h"

/* What options.c writes to, here: nothing, but for the notes. */
static char last_note[512];
static unsigned options_written;

void *capture_define(uint16_t type, size_t bytes)
{
    static uint64_t record[64];
    options_written += type == CAP_OPTION;
    return record;
}

void capture_commit(void *record)
{
}

uint32_t intern_string(const char *text)
{
    return 1;
}

void shim_note(int kind, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_note, sizeof last_note, format, arguments);
    va_end(arguments);
}

/* As a process would that begins with this environment. */
static void read_environment(void)
{
    options_take_environment();
    options_read();
}

enum {
    ROWS = 0
#define OPTION(name, type, initial, help) +1
#include "shim/options.def"
#undef OPTION
};

static int clear(void **state)
{
    static const char *const names[] = {
        "OUT",        "PRESET",           "SENTINELS", "CHECK",     "CHECK_BATCH", "SNAPSHOTS",    "SNAPSHOT_BUDGET",
        "QUARANTINE", "STACKS",           "TIMES",     "KERNEL",    "LAUNCH_SKIP", "LAUNCH_COUNT", "POISON",
        "HEALTH",     "HEALTH_THRESHOLD", "GUARD",     "MAX_MEMORY"};
    char variable[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(variable, sizeof variable, "OPSDEBUG_%s", names[i]);
        unsetenv(variable);
    }
    last_note[0] = '\0';
    options_written = 0;
    return 0;
}

static void test_options_defaults(void **state)
{
    read_environment();
    assert_int_equal(options.preset, PRESET_CHECK);
    assert_int_equal(options.sentinels, SENTINELS_TAIL);
    assert_int_equal(options.check, CHECK_BATCH);
    assert_int_equal(options.check_batch, 32);
    assert_int_equal(options.snapshots_first, 2);
    assert_int_equal(options.snapshot_budget, 256 << 20);
    assert_int_equal(options.launch_count, UINT64_MAX);
    assert_true(options.stacks && options.times && !options.kernel_filter && !options.poison && !options.guard.on);
    assert_int_equal(options.health, HEALTH_SAMPLE);
    assert_string_equal(options.out, "");
    options_record();
    assert_int_equal(options.graphs, GRAPHS_WHOLE);
    assert_int_equal(options_written, ROWS);
    assert_string_equal(last_note, "");
}

static void test_options_preset_and_override(void **state)
{
    setenv("OPSDEBUG_PRESET", "deep", 1);
    setenv("OPSDEBUG_SNAPSHOTS", "first=7", 1);
    setenv("OPSDEBUG_SNAPSHOT_BUDGET", "3k", 1);
    setenv("OPSDEBUG_STACKS", "off", 1);
    read_environment();
    assert_int_equal(options.sentinels, SENTINELS_CAREFUL);
    assert_int_equal(options.check, CHECK_LAUNCH);
    assert_int_equal(options.snapshots_first, 7);
    assert_int_equal(options.snapshot_budget, 3072);
    assert_false(options.stacks);
    assert_true(options.poison);
    setenv("OPSDEBUG_PRESET", "watch", 1);
    unsetenv("OPSDEBUG_SNAPSHOTS");
    read_environment();
    assert_int_equal(options.snapshots_first, 0);
    assert_int_equal(options.check, CHECK_SYNC);
    assert_true(options.guard.on && options.guard.careful && options.guard.sample == 1000);
    setenv("OPSDEBUG_GUARD", "all,side=under", 1);
    read_environment();
    assert_true(options.guard.on && options.guard.under && !options.guard.careful);
    setenv("OPSDEBUG_GUARD", "everything", 1);
    read_environment();
    assert_true(options.guard.careful); /* what the preset says */
}

static void test_options_bad_values_keep_the_default(void **state)
{
    static const char *const bad[][2] = {
        {"OPSDEBUG_PRESET", "medium"},
        {"OPSDEBUG_SENTINELS", "yes"},
        {"OPSDEBUG_CHECK_BATCH", "0"},
        {"OPSDEBUG_CHECK_BATCH", "-3"},
        {"OPSDEBUG_SNAPSHOTS", "first="},
        {"OPSDEBUG_SNAPSHOTS", "first=2x"},
        {"OPSDEBUG_SNAPSHOT_BUDGET", "99999999999G"},
        {"OPSDEBUG_TIMES", "maybe"},
        {"OPSDEBUG_KERNEL", "("},
        {"OPSDEBUG_SNAPSHOT_BUDGET", "5 M"},
        {"OPSDEBUG_POISON", "perhaps"},
        {"OPSDEBUG_MAX_MEMORY", "much"},
        {"OPSDEBUG_HEALTH", "on"},
        {"OPSDEBUG_HEALTH_THRESHOLD", "-1"},
        {"OPSDEBUG_HEALTH_THRESHOLD", "nan"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        clear(NULL);
        setenv(bad[i][0], bad[i][1], 1);
        read_environment();
        assert_int_equal(options.preset, PRESET_CHECK);
        assert_int_equal(options.sentinels, SENTINELS_TAIL);
        assert_int_equal(options.check_batch, 32);
        assert_int_equal(options.snapshots_first, 2);
        assert_int_equal(options.snapshot_budget, 256 << 20);
        assert_int_equal(options.max_memory, UINT64_C(2) << 30);
        assert_true(options.times && !options.kernel_filter);
        options_record();
        assert_non_null(strstr(last_note, bad[i][0]));
    }
}

static void test_options_kernel_filter(void **state)
{
    setenv("OPSDEBUG_KERNEL", "gelu|softmax_[0-9]+", 1);
    read_environment();
    assert_true(options.kernel_filter);
    assert_int_equal(regexec(&options.kernel, "my_softmax_12", 0, NULL, 0), 0);
    assert_int_not_equal(regexec(&options.kernel, "softmax_x", 0, NULL, 0), 0);
    regfree(&options.kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_options_defaults, clear),
        cmocka_unit_test_setup(test_options_preset_and_override, clear),
        cmocka_unit_test_setup(test_options_bad_values_keep_the_default, clear),
        cmocka_unit_test_setup(test_options_kernel_filter, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
