/* The controller of OPSDEBUG_BUDGET, on simulated programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shim/budget_levels.h"

/* A program: per interval of length 1, so many items of each part at so much each, and what cannot be left out. */
struct program {
    double items[CAP_BUDGET_PARTS], cost[CAP_BUDGET_PARTS], base;
};

/* One interval; what the tool cost in it. */
static double step(struct budget_levels *l, const struct program *program, double budget, bool *kept)
{
    struct budget_interval now[CAP_BUDGET_PARTS];
    double own = program->base;
    for (unsigned p = 0; p < CAP_BUDGET_PARTS; p++) {
        double taken = program->items[p] / (double)(1u << l->level[p]);
        now[p] = (struct budget_interval){taken * program->cost[p], taken, program->items[p] - taken};
        own += now[p].spent;
    }
    *kept = budget_decide(l, now, own, budget);
    return own;
}

static const struct program busy = {
    .items = {10000, 10000, 600, 40, 300, 10},
    .cost = {4e-6, 2e-6, 2e-5, 2e-3, 5e-5, 5e-5}, /* 0.04 0.02 0.012 0.08 0.015 0.0005 */
    .base = 0.01,
};

static void test_budget_is_kept_without_swings(void **state)
{
    struct budget_levels l = {0};
    bool kept = true;
    for (int i = 0; i < 20; i++)
        step(&l, &busy, 0.05, &kept);
    assert_true(kept);
    for (int i = 0; i < 200; i++) {
        assert_true(step(&l, &busy, 0.05, &kept) <= 0.05);
        assert_true(kept);
    }
    assert_int_equal(l.level[CAP_BUDGET_SYNC_LOOKS], 0); /* cheap, and the last to go */
}

static void test_budget_with_room_leaves_nothing_out(void **state)
{
    struct budget_levels l = {0};
    bool kept;
    for (int i = 0; i < 100; i++)
        step(&l, &busy, 0.5, &kept);
    for (unsigned p = 0; p < CAP_BUDGET_PARTS; p++)
        assert_int_equal(l.level[p], 0);
}

static void test_budget_goes_up_again(void **state)
{
    struct budget_levels l = {0};
    struct program calm = busy;
    bool kept;
    for (int i = 0; i < 20; i++)
        step(&l, &busy, 0.05, &kept);
    for (unsigned p = 0; p < CAP_BUDGET_PARTS; p++)
        calm.items[p] /= 100;
    calm.base /= 100;
    for (int i = 0; i < 300; i++)
        assert_true(step(&l, &calm, 0.05, &kept) <= 0.05);
    for (unsigned p = 0; p < CAP_BUDGET_PARTS; p++)
        assert_int_equal(l.level[p], 0);
}

static void test_budget_that_records_alone_exceed(void **state)
{
    struct budget_levels l = {0};
    struct program heavy = busy;
    bool kept = true;
    heavy.base = 0.2;
    heavy.cost[CAP_BUDGET_SYNC_LOOKS] = 0.01;
    for (int i = 0; i < 100 && kept; i++)
        step(&l, &heavy, 0.05, &kept);
    assert_false(kept);
    assert_true(l.level[CAP_BUDGET_SYNC_LOOKS] <= 6);
}

/* A part that was left out altogether for a while has no cost now; going up must reckon with what it would cost. */
static void test_budget_remembers_what_an_item_costs(void **state)
{
    struct budget_levels l = {0};
    struct program rare = {.items[CAP_BUDGET_SNAPSHOTS] = 4, .cost[CAP_BUDGET_SNAPSHOTS] = 1, .base = 0.001};
    bool kept;
    for (int i = 0; i < 4; i++)
        step(&l, &rare, 0.05, &kept);
    assert_true(l.level[CAP_BUDGET_SNAPSHOTS] >= 6);
    struct budget_interval none[CAP_BUDGET_PARTS] = {{0}};
    for (int i = 0; i < 50; i++) {
        none[CAP_BUDGET_SNAPSHOTS] = (struct budget_interval){0, 0, 4};
        budget_decide(&l, none, 0.001, 0.05);
    }
    assert_true(4.0 / (1u << l.level[CAP_BUDGET_SNAPSHOTS]) <= 0.05);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget_is_kept_without_swings),
        cmocka_unit_test(test_budget_with_room_leaves_nothing_out),
        cmocka_unit_test(test_budget_goes_up_again),
        cmocka_unit_test(test_budget_that_records_alone_exceed),
        cmocka_unit_test(test_budget_remembers_what_an_item_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
