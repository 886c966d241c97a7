#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/map.h"

static void test_map_empty(void **state)
{
    struct map m = {0};
    uint64_t value = 7;
    assert_false(map_get(&m, 0, &value));
    assert_false(map_remove(&m, 0));
    assert_int_equal(value, 7);
    map_free(&m);
}

static void test_map_put_replaces(void **state)
{
    struct map m = {0};
    uint64_t value = 0;
    assert_true(map_put(&m, 0, 1));
    assert_true(map_put(&m, UINT64_MAX, 2));
    assert_true(map_put(&m, 0, 3));
    assert_int_equal(m.count, 2);
    assert_true(map_get(&m, 0, &value));
    assert_int_equal(value, 3);
    assert_true(map_get(&m, UINT64_MAX, &value));
    assert_int_equal(value, 2);
    map_free(&m);
}

/* Against a plain array: random puts and removes of few keys, so that runs form, wrap around and are closed again. */
static void test_map_random_against_array(void **state)
{
    enum { KEYS = 300, STEPS = 200000 };
    static uint64_t expected[KEYS];
    static unsigned char present[KEYS];
    struct map m = {0};
    size_t count = 0;
    uint64_t seed = 1;
    for (int step = 0; step < STEPS; step++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        size_t k = (size_t)(seed >> 33) % KEYS;
        uint64_t key = (uint64_t)k * 512 + UINT64_C(0x0a0000000000), value = 0;
        if ((seed >> 60) % 3) {
            assert_true(map_put(&m, key, seed));
            count += !present[k];
            present[k] = 1;
            expected[k] = seed;
        } else {
            assert_int_equal(map_remove(&m, key), present[k]);
            count -= present[k];
            present[k] = 0;
        }
        assert_int_equal(m.count, count);
        assert_int_equal(map_get(&m, key, &value), present[k]);
        if (present[k])
            assert_int_equal(value, expected[k]);
    }
    for (size_t k = 0; k < KEYS; k++) {
        uint64_t value = 0;
        assert_int_equal(map_get(&m, (uint64_t)k * 512 + UINT64_C(0x0a0000000000), &value), present[k]);
        if (present[k])
            assert_int_equal(value, expected[k]);
    }
    map_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_empty),
        cmocka_unit_test(test_map_put_replaces),
        cmocka_unit_test(test_map_random_against_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
