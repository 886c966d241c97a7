/* Copies that are forwarded: random kernels full of registers written in one place, and copies of them, in graphs of
 * blocks that are entered from anywhere, so that registers are also read before they are written and copies outlive
 * what they were made of. Twice: with copies as `mov`, and as additions of a zero that only the launch knows, which
 * nobody forwards. Both must give the same memory and the same counts. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"

enum { REGISTERS = 12, MAX_BLOCKS = 7, THREADS = 40, FIXED_SEEDS = 3000, TEXT = 16384 };

struct maker {
    char text[TEXT];
    size_t length;
    uint64_t random;
    bool copies; /* as `mov` */
};

__attribute__((format(printf, 2, 3))) static void put(struct maker *m, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    m->length += (size_t)vsnprintf(m->text + m->length, TEXT - m->length, format, args);
    va_end(args);
    assert_true(m->length < TEXT);
}

static uint32_t pick(struct maker *m, uint32_t count)
{
    return (uint32_t)(kit_random(&m->random) >> 33) % count;
}

/* %v0, %v1: of the thread; %v2...: each written by one instruction at most; %x0, %x1: by many. */
static void put_source(struct maker *m)
{
    uint32_t k = pick(m, REGISTERS + 3);
    put(m, k < REGISTERS ? "%%v%u" : k < REGISTERS + 2 ? "%%x%u" : "%u", k < REGISTERS ? k : k - REGISTERS);
}

static void put_statement(struct maker *m, uint32_t *next)
{
    uint32_t kind = pick(m, 8);
    if (kind < 4 && *next < REGISTERS) {
        put(m, m->copies ? "\tmov.b32 %%v%u, " : "\tadd.u32 %%v%u, %%zero, ", (*next)++);
    } else if (kind < 6 && *next < REGISTERS) {
        put(m, "\tmad.lo.u32 %%v%u, ", (*next)++);
        put_source(m);
        put(m, ", 5, ");
    } else if (kind < 7) {
        uint32_t x = pick(m, 2);
        put(m, "\txor.b32 %%x%u, %%x%u, ", x, x);
    } else {
        put(m, "\tmad.lo.u32 %%sum, %%sum, 3, ");
    }
    put_source(m);
    put(m, ";\n");
}

static void make(struct maker *m, uint64_t seed, bool copies)
{
    m->length = 0;
    m->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    m->copies = copies;
    put(m,
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 out, .param .u32 zero)\n{\n"
        "\t.reg .b32 %%v<%u>, %%x<2>, %%sum, %%zero, %%fuel, %%t;\n\t.reg .b64 %%at;\n\t.reg .pred %%p;\n",
        REGISTERS);
    put(m, "\tld.param.u32 %%zero, [zero];\n\tmov.u32 %%v0, %%tid.x;\n\tmov.u32 %%fuel, 20;\n");
    uint32_t next = 1, blocks = 2 + pick(m, MAX_BLOCKS - 1);
    put(m, "\tbra $b%u;\n", pick(m, blocks));
    for (uint32_t b = 0; b < blocks; b++) {
        put(m, "$b%u:\n", b);
        for (uint32_t n = pick(m, 6); n; n--)
            put_statement(m, &next);
        if (pick(m, 3) == 0) /* goes on into the next block */
            continue;
        put(m, "\tadd.u32 %%fuel, %%fuel, -1;\n\tsetp.eq.u32 %%p, %%fuel, 0;\n\t@%%p bra $end;\n\tand.b32 %%t, ");
        put_source(m);
        put(m, ", %u;\n\tsetp.ne.u32 %%p, %%t, 0;\n\t@%%p bra $b%u;\n", 1 + pick(m, 7), pick(m, blocks));
        if (pick(m, 2))
            put(m, "\tbra $b%u;\n", pick(m, blocks));
    }
    put(m,
        "$end:\n\tmov.u32 %%t, %%tid.x;\n\tld.param.u64 %%at, [out];\n\tmad.wide.u32 %%at, %%t, %u, %%at;\n"
        "\tst.global.u32 [%%at], %%sum;\n\tst.global.u32 [%%at+4], %%x0;\n\tst.global.u32 [%%at+8], %%x1;\n",
        4 * (REGISTERS + 3));
    for (uint32_t i = 0; i < REGISTERS; i++) /* what is read here has to be written on every way */
        if (pick(m, 4) == 0)
            put(m, "\tst.global.u32 [%%at+%u], %%v%u;\n", 12 + 4 * i, i);
    put(m, "\tret;\n}\n");
}

struct outcome {
    uint32_t memory[THREADS * (REGISTERS + 3)];
    struct ptx_counts counts;
};

static void run(const char *text, bool one_by_one, struct outcome *out)
{
    struct kit k;
    memset(out, 0, sizeof *out);
    kit_load(&k, text);
    kit_buffer(&k, 0, out->memory, sizeof out->memory);
    k.params[1] = 0;
    k.launch.one_by_one = one_by_one;
    assert_int_equal(kit_run(&k, "k", 1, THREADS), STATUS_OK);
    out->counts = k.result.counts;
    kit_free(&k);
}

static void test_random_copies(void **state)
{
    (void)state;
    static struct maker copies, additions;
    static struct outcome forwarded, computed;
    unsigned long long from = 1, count = FIXED_SEEDS;
    const char *other = getenv("OPSDEBUG_FOLD_SEEDS");
    if (other)
        assert_int_equal(sscanf(other, "%llu %llu", &from, &count), 2);
    for (unsigned long long seed = from; seed < from + count; seed++) {
        make(&copies, seed, true);
        make(&additions, seed, false);
        run(additions.text, true, &computed);
        for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
            run(copies.text, one_by_one, &forwarded);
            if (memcmp(&forwarded, &computed, sizeof computed) != 0)
                fail_msg("seed %llu:\n%s", seed, copies.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
