#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "shim/memory.h"

static unsigned told;
static char reason[256];

static void step_aside(const char *why)
{
    told++;
    strncpy(reason, why, sizeof reason - 1);
}

static struct cap_header figures(void)
{
    static struct cap_header header;
    memory_tell(&header);
    return header;
}

/* In one process the figures go on: the tests are steps of one story. */
static void test_without_a_limit_all_is_counted(void **state)
{
    memory_start(0, step_aside);
    assert_true(memory_may(1000));
    assert_true(memory_must(500));
    assert_true(memory_roomy((size_t)1 << 40));
    memory_give(1500);
    assert_int_equal(figures().memory_peak, 1500);
    assert_int_equal(figures().memory_limit, 0);
    assert_int_equal(figures().memory_refused, 0);
    assert_int_equal(told, 0);
}

static void test_what_may_be_left_out_leaves_a_quarter(void **state)
{
    memory_start(4000, step_aside);
    assert_false(memory_may(4001));
    assert_false(memory_may(SIZE_MAX));
    assert_true(memory_may(3000));
    assert_false(memory_may(1));
    assert_true(memory_must(1000)); /* the tables may have all of it */
    assert_false(memory_roomy(1));
    assert_int_equal(figures().memory_refused, 3);
    assert_int_equal(figures().memory_peak, 4000);
    assert_int_equal(told, 0);
    memory_give(4000);
    assert_true(memory_roomy(2000));
    assert_false(memory_roomy(2001));
}

static void test_a_map_is_counted_as_it_grows(void **state)
{
    struct map map = {0};
    memory_start(100000, step_aside);
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(memory_map_put(&map, i, i, false));
    assert_int_equal(figures().memory_peak, map.capacity * sizeof *map.slots);
    uint64_t refused = figures().memory_refused, i = 1000;
    while (i < 100000 && memory_map_put(&map, i, i, false))
        i++;
    assert_in_range(i, 1000, 5000);
    assert_int_equal(figures().memory_refused, refused + 1);
    assert_true(memory_map_put(&map, i, i, true)); /* as must: within the last quarter, or over */
    memory_give(map.capacity * sizeof *map.slots);
    map_free(&map);
}

static void test_beyond_the_limit_we_step_aside_once(void **state)
{
    memory_start(1000, step_aside);
    told = 0;
    bool before = memory_must(0);
    assert_false(memory_must(1001));
    assert_int_equal(told, before ? 1 : 0); /* the map may have been first */
    assert_false(memory_must(1));
    assert_int_equal(told, before ? 1 : 0);
    assert_non_null(strstr(reason, "MAX_MEMORY"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_limit_all_is_counted),
        cmocka_unit_test(test_what_may_be_left_out_leaves_a_quarter),
        cmocka_unit_test(test_a_map_is_counted_as_it_grows),
        cmocka_unit_test(test_beyond_the_limit_we_step_aside_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
