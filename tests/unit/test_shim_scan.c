/* Which words count as fp32 numbers. The counting twin is what scan.ptx does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shim/scan.h"

enum { WORDS = 2048 };
static uint32_t words[WORDS], seed = 1;

static uint32_t next(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8 | seed << 24;
}

static float real(float from, float to)
{
    return from + (to - from) * (float)(next() & 0xffffff) / 16777216.0f;
}

static struct scan_look count(void)
{
    struct scan_look l = {.state = 1, .first = UINT32_MAX};
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t w = words[i], magnitude = w & 0x7fffffff, exponent = magnitude >> 23;
        int apart = (int)(w >> 26 & 31) - (int)(w >> 10 & 31);
        l.looked++;
        if (magnitude - 0x3e000000 <= 0x03f00000)
            *(i & 1 ? &l.upper_odd : &l.upper_even) += 1;
        if (!magnitude)
            continue;
        if (w == UINT32_MAX)
            l.other++;
        else if (exponent == 255)
            *(magnitude > 0x7f800000 ? &l.nan : &l.inf) += 1;
        else if (exponent >= 64 && exponent <= 190) {
            l.plausible++;
            l.alike += abs(apart) <= 3;
        } else
            l.other++;
    }
    return l;
}

static bool judged_float(void)
{
    struct scan_look l = count();
    return scan_looks_float(&l);
}

static void put(uint32_t at, float value)
{
    memcpy(&words[at], &value, sizeof value);
}

static void test_floats(void **state)
{
    for (uint32_t i = 0; i < WORDS; i++)
        put(i, real(-3, 3));
    assert_true(judged_float());
    for (uint32_t i = 0; i < WORDS; i++)
        put(i, real(0, 1) * real(0, 1) * 1e-12f);
    assert_true(judged_float());
    for (uint32_t i = 0; i < WORDS; i++) /* sparse, and whole numbers */
        put(i, next() % 5 ? 0 : (float)(next() % 1000));
    assert_true(judged_float());
    for (uint32_t i = 0; i < WORDS; i++) /* most of it NaN already */
        i % 16 ? (void)(words[i] = 0x7fffffff) : put(i, real(-1, 1));
    assert_true(judged_float());
}

static void test_integers(void **state)
{
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i;
    assert_false(judged_float());
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = (uint32_t)((int)(next() % 200) - 100);
    assert_false(judged_float());
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = next();
    assert_false(judged_float());
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i % 3 ? UINT32_MAX : 0;
    assert_false(judged_float());
    for (uint32_t i = 0; i < WORDS; i++) /* seconds since 1970, with -1 for none */
        words[i] = i % 20 ? 1500000000u + next() % 1000000 : UINT32_MAX;
    assert_false(judged_float());
    for (uint32_t i = 0; i < WORDS; i += 2) { /* 64-bit addresses */
        words[i] = next() & ~255u;
        words[i + 1] = 0x7f12;
    }
    assert_false(judged_float());
}

static void test_bytes_and_text(void **state)
{
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = 0x01010101u * (97 + next() % 26);
    assert_false(judged_float());
    for (uint32_t i = 0; i < WORDS; i++) { /* a grey picture: neighbours are alike */
        uint32_t grey = 60 + i % 60;
        words[i] = grey | (grey + 1) << 8 | grey << 16 | (grey + 1) << 24;
    }
    assert_false(judged_float());
}

static uint32_t half(float value) /* truncated; normal range only */
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) & 31) << 10 | (bits >> 13 & 0x3ff);
}

static void test_other_formats(void **state)
{
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = half(real(0.1f, 3)) | half(real(-3, -0.1f)) << 16;
    assert_false(judged_float());
    for (uint32_t i = 0; i < WORDS; i++) { /* bf16 */
        uint32_t high, low;
        float a = real(0.1f, 3), b = real(-3, -0.1f);
        memcpy(&high, &a, 4);
        memcpy(&low, &b, 4);
        words[i] = (high & 0xffff0000) | low >> 16;
    }
    assert_false(judged_float());
    for (uint32_t i = 0; i < WORDS; i += 2) {
        double value = real(-3, 3) / 3.0;
        memcpy(&words[i], &value, sizeof value);
    }
    assert_false(judged_float());
    for (uint32_t i = 0; i < WORDS; i += 2) {
        double value = next() % 1000;
        memcpy(&words[i], &value, sizeof value);
    }
    assert_false(judged_float());
}

static void test_too_few_to_say(void **state)
{
    struct scan_look l = {.state = 1, .looked = 8, .plausible = 8};
    assert_false(scan_looks_float(&l));
    l.plausible = 16;
    assert_true(scan_looks_float(&l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),         cmocka_unit_test(test_integers),
        cmocka_unit_test(test_bytes_and_text), cmocka_unit_test(test_other_formats),
        cmocka_unit_test(test_too_few_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
