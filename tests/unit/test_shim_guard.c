/* Which allocations get guard pages: the words of OPSDEBUG_GUARD, and what they choose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shim/capture_write.h"
#include "shim/guard_choice.h"
#include "shim/intern.h"
#include "shim/shim.h"

/* options.c, which has the numbers' parser, writes to these. */
void *capture_define(uint16_t type, size_t bytes)
{
    return NULL;
}
void capture_commit(void *record)
{
}
uint32_t intern_string(const char *text)
{
    return 0;
}
void shim_note(int kind, const char *format, ...)
{
}

static bool takes(const struct guard_choice *c, uint32_t number, uint64_t bytes)
{
    return guard_choice_takes(c, 1, number, bytes, "cuMemAlloc_v2", "cudaMalloc");
}

static void test_guard_choice_parse_words(void **state)
{
    struct guard_choice c;
    assert_true(guard_choice_parse("off", &c));
    assert_false(c.on);
    assert_false(takes(&c, 1, 1));
    assert_true(guard_choice_parse("all", &c));
    assert_true(c.on && !c.under && !c.careful && c.sample == 1 && c.budget == 0 && c.reach == 32 << 20);
    assert_true(guard_choice_parse("sample=1/1000,budget=64M,careful", &c));
    assert_true(c.on && c.careful && c.sample == 1000 && c.budget == 64 << 20);
    assert_true(guard_choice_parse("side=under,reach=1g,seed=9", &c));
    assert_true(c.on && c.under && c.reach == 1 << 30 && c.seed == 9);
    assert_true(guard_choice_parse("side=over", &c));
    assert_false(c.under);
}

static void test_guard_choice_parse_refuses(void **state)
{
    static const char *const wrong[] = {
        "",
        "on",
        "all,",
        ",all",
        "all,,careful",
        "sample=10",
        "sample=1/0",
        "sample=2/5",
        "min=",
        "min=x",
        "call=a,min=5,max=4",
        "order=0",
        "order=5-4",
        "order=",
        "side=left",
        "budget=0",
        "off,all",
        "call=",
        "call=(",
        "seed=0",
        "seed=-1",
        "what=1",
        "call=a,call=b",
        "order=1-",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct guard_choice c;
        assert_false(guard_choice_parse(wrong[i], &c));
        assert_false(c.on);
    }
    struct guard_choice c;
    char endless[600];
    memset(endless, 'a', sizeof endless);
    endless[sizeof endless - 1] = '\0';
    assert_false(guard_choice_parse(endless, &c));
}

static void test_guard_choice_takes_by_size_order_and_call(void **state)
{
    struct guard_choice c;
    assert_true(guard_choice_parse("min=1k,max=2k", &c));
    assert_false(takes(&c, 1, 1023));
    assert_true(takes(&c, 1, 1024) && takes(&c, 1, 2048));
    assert_false(takes(&c, 1, 2049));
    assert_true(guard_choice_parse("order=4-6", &c));
    assert_false(takes(&c, 3, 1) || takes(&c, 7, 1));
    assert_true(takes(&c, 4, 1) && takes(&c, 6, 1));
    assert_true(guard_choice_parse("order=4", &c));
    assert_true(takes(&c, 4, 1) && !takes(&c, 5, 1));
    assert_true(guard_choice_parse("call=^cudaMallocPitch$", &c));
    assert_false(takes(&c, 1, 1));
    assert_true(guard_choice_takes(&c, 1, 1, 1, "cuMemAllocPitch_v2", "cudaMallocPitch"));
    regfree(&c.call);
    assert_true(guard_choice_parse("call=Alloc_v2", &c));
    assert_true(takes(&c, 1, 1));
    regfree(&c.call);
}

/* As often as asked for, the same ones for a seed, others for another one, and in no fixed step. */
static void test_guard_choice_takes_a_random_share(void **state)
{
    struct guard_choice c;
    unsigned taken = 0, both = 0, steps[4] = {0};
    uint32_t last = 0;
    assert_true(guard_choice_parse("sample=1/100", &c));
    for (uint32_t n = 1; n <= 100000; n++) {
        bool here = guard_choice_takes(&c, 1, n, 1, "", ""), there = guard_choice_takes(&c, 2, n, 1, "", "");
        assert_int_equal(here, guard_choice_takes(&c, 1, n, 1, "", ""));
        both += here && there;
        if (!here)
            continue;
        steps[n - last < 30 ? 0 : n - last < 100 ? 1 : n - last < 200 ? 2 : 3]++;
        last = n;
        taken++;
    }
    assert_in_range(taken, 850, 1150); /* 1000 with a deviation of 31 */
    assert_true(both < 40);            /* 10 */
    for (unsigned i = 0; i < 4; i++)
        assert_true(steps[i] > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guard_choice_parse_words),
        cmocka_unit_test(test_guard_choice_parse_refuses),
        cmocka_unit_test(test_guard_choice_takes_by_size_order_and_call),
        cmocka_unit_test(test_guard_choice_takes_a_random_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
