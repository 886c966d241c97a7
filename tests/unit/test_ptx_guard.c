/* Guarded runs of checked launches: sound kernels must be guarded, others must give what the checked loop alone gives.
 * kit_run() compares; here are random kernels and cases that each have a sound twin. OPSDEBUG_GUARD_SEEDS="FROM COUNT"
 * runs other random kernels than the fixed ones, OPSDEBUG_GUARD_TEXT=FILE keeps the last text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_defects.h"
#include "tests/unit/ptx_kit.h"

enum { FIXED_SEEDS = 600 };
enum { INPUT, CELLS, OUT, SUMS, TABLE, BUFFERS };

struct outcome {
    unsigned char *memory[BUFFERS], *written[BUFFERS], *read[BUFFERS], *valid[BUFFERS];
    size_t bytes[BUFFERS];
    struct ptx_result result;
    enum status status;
};

/* Ranges side by side in some kernels, so that what leaves one is inside another. */
static void add_buffers(struct kit *k, struct outcome *o, const struct defects_shape *s, uint64_t seed)
{
    const bool tracked = seed % 7 == 0, close = seed % 4 < 2, judged = seed % 5 != 0;
    uint64_t random = seed, address = 0x7f0000000000;
    const size_t bytes[BUFFERS] = {DEFECTS_INPUT, (size_t)DEFECTS_REGIONS * DEFECTS_CELL * s->threads,
                                   (size_t)DEFECTS_OUT * s->threads, 64, 80};
    for (int i = 0; i < BUFFERS; i++) {
        const size_t map = bytes[i] / 8 + 1;
        o->bytes[i] = bytes[i];
        o->memory[i] = aligned_alloc(64, (bytes[i] + 63) / 64 * 64);
        o->written[i] = calloc(1, map);
        o->read[i] = calloc(1, map);
        o->valid[i] = malloc(map);
        for (size_t n = 0; n + 8 <= bytes[i]; n += 8) {
            uint64_t v = kit_random(&random);
            memcpy(o->memory[i] + n, &v, 8);
        }
        memset(o->valid[i], i == OUT ? 0 : 0xff, map);
        (void)kit_buffer(k, i, o->memory[i], bytes[i]);
        struct ptx_range *r = &k->ranges[i];
        r->address = address;
        k->params[i] = address;
        address += (bytes[i] + 255) / 256 * 256 + (close ? 0 : 4096);
        r->written = tracked ? o->written[i] : NULL;
        r->read = tracked ? o->read[i] : NULL;
        r->valid = judged ? o->valid[i] : NULL;
    }
    if (kit_random(&random) % 8 == 0) { /* a hole in what was initialised */
        const int i = (int)(kit_random(&random) % 2);
        o->valid[i][kit_random(&random) % (bytes[i] / 8)] &= 0x0f;
    }
    if (kit_random(&random) % 24 == 0)
        k->ranges[kit_random(&random) % 3].flags |= PTX_RANGE_FREED;
    if (kit_random(&random) % 12 == 0)
        k->ranges[kit_random(&random) % 2].flags |= PTX_RANGE_READ_ONLY;
    uint64_t table[10] = {k->params[INPUT], k->params[CELLS]};
    for (int i = 2; i < 10; i++)
        table[i] = kit_random(&random) % 64;
    memcpy(o->memory[TABLE], table, sizeof table);
}

static void run_defects(const char *text, const struct defects_shape *s, uint64_t seed, bool one_by_one,
                        struct outcome *o)
{
    static struct kit k;
    kit_load(&k, text);
    add_buffers(&k, o, s, seed);
    k.launch.kernel = ptx_module_find_kernel(k.module, "k");
    k.launch.grid[0] = s->grid;
    k.launch.grid[1] = k.launch.grid[2] = 1;
    memcpy(k.launch.block, s->block, sizeof s->block);
    k.launch.one_by_one = one_by_one;
    k.launch.checked = true;
    k.launch.fill = 0xa5;
    k.launch.instruction_limit = 100000000;
    o->status = ptx_run(&k.launch, &o->result, &k.diag);
    if (o->result.guarded && o->result.fault_count)
        fail_msg("guarded, and yet there are faults");
    kit_free(&k);
}

static void free_outcome(struct outcome *o)
{
    for (int i = 0; i < BUFFERS; i++) {
        free(o->memory[i]);
        free(o->written[i]);
        free(o->read[i]);
        free(o->valid[i]);
    }
    ptx_result_free(&o->result);
}

static bool same_outcome(const struct outcome *a, const struct outcome *b)
{
    bool same = a->status == b->status && kit_same_faults(&a->result, &b->result) &&
                memcmp(&a->result.counts, &b->result.counts, sizeof a->result.counts) == 0;
    for (int i = 0; i < BUFFERS; i++)
        same = same && memcmp(a->memory[i], b->memory[i], a->bytes[i]) == 0 &&
               memcmp(a->written[i], b->written[i], a->bytes[i] / 8) == 0 &&
               memcmp(a->read[i], b->read[i], a->bytes[i] / 8) == 0;
    return same;
}

static void tell(unsigned long long seed, const struct outcome *exact, const struct outcome *guarded)
{
    print_message("seed %llu: %zu faults one by one, %zu under guard, %s\n", seed, exact->result.fault_count,
                  guarded->result.fault_count, guarded->result.guarded ? "sound" : guarded->result.doubt);
    for (size_t i = 0; i < exact->result.fault_count; i++)
        print_message("    %s, line %u\n", ptx_fault_kind_name(exact->result.faults[i].kind),
                      exact->result.faults[i].access.ptx_line);
    for (int i = 0; i < BUFFERS; i++)
        for (size_t n = 0; n < exact->bytes[i]; n++)
            if (exact->memory[i][n] != guarded->memory[i][n]) {
                print_message("    buffer %d differs at %zu\n", i, n);
                break;
            }
}

static void test_random_kernels(void **state)
{
    (void)state;
    unsigned long long from = 1, count = FIXED_SEEDS, wrong = 0, sound = 0, guarded = 0;
    const char *other = getenv("OPSDEBUG_GUARD_SEEDS"), *keep = getenv("OPSDEBUG_GUARD_TEXT"),
               *talk = getenv("OPSDEBUG_GUARD_TELL");
    char *text = malloc(DEFECTS_TEXT);
    assert_non_null(text);
    if (other)
        assert_int_equal(sscanf(other, "%llu %llu", &from, &count), 2);
    for (unsigned long long seed = from; seed < from + count; seed++) {
        struct defects_shape shape;
        struct outcome threads = {0}, lanes = {0};
        defects_kernel(seed, seed % 3 * 4, text, &shape);
        if (keep) {
            FILE *f = fopen(keep, "w");
            assert_non_null(f);
            fputs(text, f);
            fclose(f);
        }
        run_defects(text, &shape, seed, true, &threads);
        run_defects(text, &shape, seed, false, &lanes);
        if (!same_outcome(&threads, &lanes)) {
            tell(seed, &threads, &lanes);
            wrong++;
        }
        if (!threads.result.fault_count) {
            sound++;
            guarded += lanes.result.guarded;
            if (talk && !lanes.result.guarded)
                print_message("seed %llu: sound, but not guarded: %s, line %u\n", seed, lanes.result.doubt,
                              lanes.result.doubt_line);
        }
        free_outcome(&threads);
        free_outcome(&lanes);
    }
    free(text);
    print_message("%llu kernels, %llu sound, %llu of them guarded\n", count, sound, guarded);
    assert_int_equal(wrong, 0);
    assert_true(sound > count / 5 && guarded > sound / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
