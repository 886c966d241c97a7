/* Shadow mode in lock-step: random kernels with random shadows in memory, which kit_run() runs in both engines; and
 * that usual kernels are done on vectors. OPSDEBUG_LANES_SEEDS="FROM COUNT" runs other random kernels than the fixed
 * ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/unit/ptx_kit.h"
#include "tests/unit/ptx_random.h"

enum { FIXED_SEEDS = 300 };
enum { CELLS, INPUT, OUT, SUMS, BUFFERS };

/* Random shadows of what the kernel loads: values, entries, flags and events are the same in both engines. */
static void run_random_shadow(const char *text, const struct random_shape *s, uint64_t seed)
{
    static struct kit k;
    uint64_t random = seed;
    kit_load(&k, text);
    const size_t bytes[BUFFERS] = {(size_t)RANDOM_REGIONS * RANDOM_CELL * s->threads, RANDOM_INPUT,
                                   (size_t)RANDOM_OUT * s->threads, 64};
    unsigned char *memory[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) {
        memory[i] = malloc(bytes[i]);
        struct ptx_shadow_value *e = calloc(bytes[i] / 2 + 8, sizeof *e);
        assert_true(memory[i] && e);
        kit_buffer(&k, i, memory[i], bytes[i]);
        for (size_t n = 0; n < bytes[i]; n += 8) {
            uint64_t v = kit_random(&random), r = kit_random(&random);
            uint32_t bits = r & 1 ? (uint32_t)v : 0x3f000000 | (uint32_t)(v & 0x1ffffff);
            float single;
            v = r & 2 ? (uint64_t)bits << 32 | bits : v;
            memcpy(memory[i] + n, &v, 8);
            memcpy(&single, &bits, 4);
            if (seed % 3 == 0 || (r >> 8 & 7) > seed % 8)
                continue;
            for (size_t part = 0; part < 2 && (r & 2); part++)
                e[n / 2 + 2 * part] =
                    (struct ptx_shadow_value){.wide = (double)single * (1 + (double)(r >> 40) * 0x1p-48),
                                              .origin = r >> 16 & 3,
                                              .depth = r >> 18 & 15,
                                              .kind = PTX_SHADOW_F32,
                                              .flags = (r >> 22 & 3) | (r >> 24 & 63 ? 0 : r >> 30 & 12)};
        }
        k.ranges[i].shadow = e;
        if (seed % 2) { /* some of it is known to be zero */
            k.ranges[i].shadow_used = calloc(1, bytes[i] / PTX_SHADOW_CHUNK + 1);
            assert_non_null(k.ranges[i].shadow_used);
            for (size_t n = 0; n < bytes[i] / 2; n++)
                k.ranges[i].shadow_used[2 * n / PTX_SHADOW_CHUNK] |= e[n].kind || e[n].flags;
        }
        k.ranges[i].tainted = calloc(1, bytes[i]);
        assert_non_null(k.ranges[i].tainted);
        if (i == SUMS) { /* whose flags go by the order of threads */
            k.ranges[i].shadow = NULL;
            free(k.ranges[i].tainted);
            k.ranges[i].tainted = NULL;
            free(k.ranges[i].shadow_used);
            k.ranges[i].shadow_used = NULL;
            free(e);
        }
    }
    k.params[4] = (uint64_t)0x8000 << 32 | s->threads;
    memcpy(k.launch.block, s->block, sizeof s->block);
    k.launch.instruction_limit = 100000000;
    k.launch.fill = 0xa5;
    k.launch.shadow = true;
    k.launch.perturbation = seed % 5 == 0 ? seed : 0;
    assert_int_equal(kit_run(&k, "k", s->grid, s->block[0]), STATUS_OK);
    for (int i = 0; i < BUFFERS; i++) {
        free(memory[i]);
        free(k.ranges[i].shadow);
        free(k.ranges[i].tainted);
        free(k.ranges[i].shadow_used);
    }
    kit_free(&k);
}

static void test_random_kernels(void **state)
{
    (void)state;
    unsigned long long from = 1, count = FIXED_SEEDS;
    const char *other = getenv("OPSDEBUG_LANES_SEEDS"), *keep = getenv("OPSDEBUG_LANES_TEXT");
    char *text = malloc(RANDOM_TEXT);
    assert_non_null(text);
    if (other)
        assert_int_equal(sscanf(other, "%llu %llu", &from, &count), 2);
    for (unsigned long long seed = from; seed < from + count; seed++) {
        struct random_shape shape;
        random_kernel(seed, text, &shape);
        if (keep) {
            FILE *f = fopen(keep, "w");
            assert_non_null(f);
            fputs(text, f);
            fclose(f);
        }
        if (other)
            print_message("seed %llu\n", seed);
        run_random_shadow(text, &shape, seed);
    }
    free(text);
}

/* ---- usual kernels ---- */

enum { SIDE = 64, COUNT = SIDE * SIDE };
static const struct usual {
    const char *kernel, *pointers;
    uint32_t grid[2], block[2], sizes[2];
    double steps; /* at most so many of its instructions are done lane by lane */
} usual[] = {
    {"vector_add", "abc", {COUNT / 256, 1}, {256, 1}, {COUNT}, 0},
    {"matrix_multiply", "abc", {SIDE / 32, SIDE / 8}, {32, 8}, {SIDE}, 0},
    {"matrix_multiply", "abc", {SIDE / 16, SIDE / 16}, {16, 16}, {SIDE}, 0},
    {"matrix_tiled", "abc", {SIDE / 16, SIDE / 16}, {16, 16}, {SIDE}, 0},
    {"mandelbrot", "c", {SIDE / 64, SIDE}, {64, 1}, {SIDE, 100}, 0.2},
    {"hash", "c", {COUNT / 256, 1}, {256, 1}, {20}, 0},
    {"shuffle_sum", "ac", {COUNT / 256, 1}, {256, 1}, {COUNT}, 0},
};

static void run_usual(const struct usual *u, const struct ptx_shadow_value *like)
{
    static float memory[3][COUNT];
    static struct ptx_shadow_value entries[3][COUNT * 2];
    static uint8_t tainted[3][sizeof memory[0]];
    struct kit k;
    uint64_t seed = 5;
    size_t count = strlen(u->pointers);
    kit_load_file(&k, "bench.ptx");
    memset(entries, 0, sizeof entries);
    for (int b = 0; b < 3; b++) {
        for (int i = 0; i < COUNT; i++) {
            memory[b][i] = b == 2 ? 0 : (float)((double)(kit_random(&seed) >> 11) * 0x1p-53);
            if (like && b < 2) {
                entries[b][2 * i] = *like;
                entries[b][2 * i].wide = (double)memory[b][i] * (1 + (double)(kit_random(&seed) >> 40) * 0x1p-50);
            }
        }
        uint64_t address = kit_buffer(&k, -1, memory[b], sizeof memory[b]);
        k.ranges[b].shadow = entries[b];
        k.ranges[b].tainted = tainted[b];
        for (size_t i = 0; i < count; i++)
            if (u->pointers[i] == "abc"[b])
                k.params[i] = address;
    }
    memcpy(k.params + count, u->sizes, sizeof u->sizes);
    k.launch.shadow = true;
    k.launch.grid[1] = u->grid[1];
    k.launch.block[1] = u->block[1];
    assert_int_equal(kit_run(&k, u->kernel, u->grid[0], u->block[0]), STATUS_OK);
    double share = (double)k.result.lane_steps / (double)k.result.counts.thread_instructions;
    if (share > u->steps)
        fail_msg("%s: %.4f of its instructions are done lane by lane", u->kernel, share);
    kit_free(&k);
}

static void test_usual_kernels_are_done_on_vectors(void **state)
{
    (void)state;
    const struct ptx_shadow_value rounded = {
        .origin = 3, .depth = 7, .kind = PTX_SHADOW_F32, .flags = PTX_SHADOW_INEXACT};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        run_usual(&usual[i], NULL);
        run_usual(&usual[i], &rounded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_kernels),
        cmocka_unit_test(test_usual_kernels_are_done_on_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
