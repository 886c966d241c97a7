#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>

#include "shim/alloc_table.h"

static struct allocation make(uint64_t address, uint64_t bytes, uint32_t id)
{
    return (struct allocation){.address = address, .bytes = bytes, .base = address, .id = id, .context = 1};
}

static int clear_all(void **state)
{
    alloc_table_drop(0, 0);
    for (uint32_t context = 1; context < 4; context++)
        alloc_table_drop(context, 0);
    return 0;
}

static void test_find_includes_the_end(void **state)
{
    struct allocation a = make(0x1000, 100, 1), b = make(0x1064, 100, 2), out;
    assert_true(alloc_table_insert(&a));
    assert_true(alloc_table_find(0x1064, &out) && out.id == 1);
    assert_false(alloc_table_find(0x1065, &out));
    assert_false(alloc_table_find(0xfff, &out));
    assert_true(alloc_table_insert(&b)); /* begins where the other ends */
    assert_true(alloc_table_find(0x1064, &out) && out.id == 2);
    assert_true(alloc_table_find(0x1063, &out) && out.id == 1);
}

struct pass {
    uint64_t seen[8];
    unsigned count, stop;
};

static bool note(const struct allocation *a, void *data)
{
    struct pass *pass = data;
    pass->seen[pass->count++] = a->address;
    return pass->count < pass->stop;
}

static void test_from_goes_on_in_order(void **state)
{
    for (uint32_t i = 1; i <= 1000; i++) {
        struct allocation a = make((uint64_t)(i * 7919 % 1009) << 12, 100, i);
        assert_true(alloc_table_insert(&a));
    }
    assert_int_equal(alloc_table_count(), 1000);
    for (uint64_t from = 0; from < 1009; from += 13) {
        struct pass pass = {.stop = 3};
        alloc_table_from((from << 12) - (from ? 1 : 0), note, &pass);
        uint64_t expected = from;
        for (unsigned k = 0; k < pass.count; k++, expected++) {
            struct allocation out;
            while (!alloc_table_exact(expected << 12, &out))
                expected++;
            assert_int_equal(pass.seen[k], expected << 12);
        }
        assert_true(pass.count == 3 || from > 990);
    }
    struct pass none = {.stop = 3};
    alloc_table_from(UINT64_C(2000) << 12, note, &none);
    assert_int_equal(none.count, 0);
}

static void test_cover_includes_redzones(void **state)
{
    struct allocation a = make(0x2000, 1000, 3), out;
    a.head = 256;
    a.tail = 280;
    assert_true(alloc_table_insert(&a));
    assert_true(alloc_table_cover(0x2000 - 256, &out));
    assert_false(alloc_table_cover(0x2000 - 257, &out));
    assert_true(alloc_table_cover(0x2000 + 1279, &out));
    assert_false(alloc_table_cover(0x2000 + 1280, &out));
}

static void test_insert_replaces_what_was_there(void **state)
{
    struct allocation a = make(0x3000, 16, 4), b = make(0x3000, 32, 5), out;
    uint32_t count;
    uint64_t bytes, redzones;
    assert_true(alloc_table_insert(&a) && alloc_table_insert(&b));
    alloc_table_totals(&count, &bytes, &redzones);
    assert_int_equal(count, 1);
    assert_int_equal(bytes, 32);
    assert_true(alloc_table_remove(0x3000, &out) && out.id == 5);
    assert_false(alloc_table_remove(0x3000, &out));
}

static void test_drop_of_context_and_module(void **state)
{
    struct allocation a = make(0x100, 16, 1), b = make(0x200, 16, 2), c = make(0x300, 16, 3), out;
    b.context = 2;
    c.context = 2;
    c.module = 9;
    alloc_table_insert(&a);
    alloc_table_insert(&b);
    alloc_table_insert(&c);
    alloc_table_drop(0, 9);
    assert_false(alloc_table_exact(0x300, &out));
    alloc_table_drop(2, 0);
    assert_false(alloc_table_exact(0x200, &out));
    assert_true(alloc_table_exact(0x100, &out));
}

static void test_set_clean_only_for_the_same_allocation(void **state)
{
    struct allocation a = make(0x100, 16, 1), out;
    alloc_table_insert(&a);
    alloc_table_set_clean(0x100, 2, 50);
    assert_true(alloc_table_exact(0x100, &out) && out.clean_seq == 0);
    alloc_table_set_clean(0x100, 1, 50);
    alloc_table_set_clean(0x100, 1, 40);
    assert_true(alloc_table_exact(0x100, &out) && out.clean_seq == 50);
}

struct order {
    uint64_t last;
    uint32_t count;
};

static void in_order(const struct allocation *a, void *data)
{
    struct order *order = data;
    assert_true(a->address > order->last || !order->count);
    order->last = a->address;
    order->count++;
}

/* Against a plain array, over many short-lived allocations. */
static void test_many_short_lived(void **state)
{
    enum { PLACES = 512, ROUNDS = 1000000 };
    static uint32_t live[PLACES];
    uint32_t x = 1, count = 0;
    struct allocation out;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        x = x * 1664525u + 1013904223u;
        uint32_t place = x >> 16 & (PLACES - 1);
        uint64_t address = 0x10000 + (uint64_t)place * 256;
        if (live[place]) {
            if (i % 7 == 0)
                assert_true(alloc_table_find(address + 99, &out) && out.id == live[place]);
            assert_true(alloc_table_remove(address, &out) && out.id == live[place]);
            live[place] = 0;
            count--;
        } else {
            struct allocation a = make(address, 100, i + 1);
            assert_true(alloc_table_insert(&a));
            live[place] = i + 1;
            count++;
        }
    }
    struct order order = {0, 0};
    alloc_table_each(in_order, &order);
    assert_int_equal(order.count, count);
    memset(live, 0, sizeof live);
}

static void *churn(void *argument)
{
    uint64_t base = (uint64_t)(uintptr_t)argument << 32;
    struct allocation out;
    for (int i = 0; i < 20000; i++) {
        struct allocation a = make(base + (uint64_t)(i % 64) * 512, 300, (uint32_t)i + 1);
        alloc_table_insert(&a);
        if (!alloc_table_find(a.address + 10, &out) || out.address != a.address)
            return argument;
        if (i % 3)
            alloc_table_remove(a.address, &out);
    }
    return NULL;
}

static void test_threads_do_not_disturb_each_other(void **state)
{
    pthread_t threads[8];
    for (uintptr_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (int i = 0; i < 8; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_find_includes_the_end, clear_all),
        cmocka_unit_test_teardown(test_from_goes_on_in_order, clear_all),
        cmocka_unit_test_teardown(test_cover_includes_redzones, clear_all),
        cmocka_unit_test_teardown(test_insert_replaces_what_was_there, clear_all),
        cmocka_unit_test_teardown(test_drop_of_context_and_module, clear_all),
        cmocka_unit_test_teardown(test_set_clean_only_for_the_same_allocation, clear_all),
        cmocka_unit_test_teardown(test_many_short_lived, clear_all),
        cmocka_unit_test_teardown(test_threads_do_not_disturb_each_other, clear_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
