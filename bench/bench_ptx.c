/* bench_ptx - how fast kernels run on the executor: million thread instructions per second, in device, checked and
 * shadow mode (its memory with shadows), and the time against the same loop as plain C (gcc -O2), the baseline. Usage:
 * bench_ptx [workers] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "ptx/opsptx.h"

enum { SIDE = 256, COUNT = 1 << 20 };
static float a[COUNT], b[COUNT], c[COUNT];
static uint32_t u[COUNT];
static struct ptx_shadow_value shadows[4][COUNT * 2];
enum mode { DEVICE, CHECKED, SHADOW };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the baselines ---- */

static void c_vector_add(void)
{
    for (int i = 0; i < COUNT; i++)
        c[i] = a[i] + b[i];
}

static void c_matrix_multiply(void)
{
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++) {
            float sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum = __builtin_fmaf(a[row * SIDE + k], b[k * SIDE + column], sum);
            c[row * SIDE + column] = sum;
        }
}

static void c_mandelbrot(void)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            float cr = -2.0f + 3.0f * (float)x / SIDE, ci = -1.5f + 3.0f * (float)y / SIDE, r = 0, i = 0;
            uint32_t n = 0;
            while (n < 200 && r * r + i * i < 4) {
                float t = r * r - i * i + cr;
                i = 2 * r * i + ci;
                r = t;
                n++;
            }
            u[y * SIDE + x] = n;
        }
}

static void c_hash(void)
{
    for (uint32_t i = 0; i < 1 << 16; i++) {
        uint32_t h = i;
        for (int k = 0; k < 100; k++) {
            h ^= h >> 16;
            h *= 0x85ebca6b;
            h ^= h >> 13;
            h *= 0xc2b2ae35;
            h ^= h >> 16;
        }
        u[i] = h;
    }
}

static void c_sum(void)
{
    for (int block = 0; block < COUNT / 256; block++) {
        float s = 0;
        for (int i = 0; i < 256; i++)
            s += a[block * 256 + i];
        c[block] = s;
    }
}

static const struct {
    const char *kernel;
    void (*baseline)(void);
    uint32_t grid[2], block[2];

    const char *pointers;
    int last[2], last_count;
} benches[] = {
    {"vector_add", c_vector_add, {COUNT / 256, 1}, {256, 1}, "abc", {COUNT}, 1},
    {"matrix_multiply", c_matrix_multiply, {SIDE / 16, SIDE / 16}, {16, 16}, "abc", {SIDE}, 1},
    {"mandelbrot", c_mandelbrot, {SIDE / 64, SIDE}, {64, 1}, "u", {SIDE, 200}, 2},
    {"hash", c_hash, {(1 << 16) / 256, 1}, {256, 1}, "u", {100}, 1},
    {"tree_sum", c_sum, {COUNT / 256, 1}, {256, 1}, "ac", {COUNT}, 1},
    {"shuffle_sum", c_sum, {COUNT / 256, 1}, {256, 1}, "ac", {COUNT}, 1},
};

static double run(struct ptx_module *m, size_t i, uint32_t workers, enum mode mode, double *rate)
{
    void *const hosts[] = {a, b, c, u};
    struct ptx_range ranges[4];
    for (uint32_t k = 0; k < 4; k++)
        ranges[k] = (struct ptx_range){.address = (k + 1) * 0x10000000,
                                       .bytes = sizeof a,
                                       .host = hosts[k],
                                       .id = k + 1,
                                       .shadow = mode == SHADOW ? shadows[k] : NULL};
    const struct ptx_memory memory = {.ranges = ranges, .range_count = 4};
    unsigned char params[64];
    size_t at = 0;
    for (const char *p = benches[i].pointers; *p; p++, at += 8)
        memcpy(params + at, &ranges[strchr("abcu", *p) - "abcu"].address, 8);
    memcpy(params + at, benches[i].last, sizeof benches[i].last);
    struct ptx_launch launch = {.module = m, .kernel = ptx_module_find_kernel(m, benches[i].kernel), .memory = &memory};
    launch.params = params;
    launch.workers = workers;
    launch.checked = mode == CHECKED;
    launch.shadow = mode == SHADOW;
    for (int k = 0; k < 2; k++) {
        launch.grid[k] = benches[i].grid[k];
        launch.block[k] = benches[i].block[k];
    }
    launch.grid[2] = launch.block[2] = 1;
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        struct ptx_result result;
        struct diag diag;
        double start = now();
        if (ptx_run(&launch, &result, &diag) != STATUS_OK) {
            fprintf(stderr, "%s: %s\n", benches[i].kernel, diag.text);
            exit(1);
        }
        double seconds = now() - start;
        if (seconds < best) {
            best = seconds;
            *rate = (double)result.counts.thread_instructions / seconds / 1e6;
        }
        ptx_result_free(&result);
    }
    return best;
}

int main(int argc, char **argv)
{
    uint32_t workers = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    static char text[1 << 20];
    FILE *f = fopen("tests/ptx/bench.ptx", "rb");
    if (!f) {
        fprintf(stderr, "tests/ptx/bench.ptx: run from the repository's root\n");
        return 2;
    }
    size_t bytes = fread(text, 1, sizeof text, f);
    fclose(f);
    struct ptx_module *m;
    struct diag diag;
    if (ptx_module_load(text, bytes, "bench.ptx", &m, &diag) != STATUS_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 2;
    }
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5);
    }
    printf("%-16s %12s %12s %12s %16s\n", "kernel", "device M/s", "checked M/s", "shadow M/s", "times plain C");
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++) {
        double device, checked, shadow, best = 1e9;
        double seconds = run(m, i, workers, DEVICE, &device);
        (void)run(m, i, 1, CHECKED, &checked);
        (void)run(m, i, 1, SHADOW, &shadow);
        for (int round = 0; round < 3; round++) {
            double start = now();
            benches[i].baseline();
            double t = now() - start;
            best = t < best ? t : best;
        }
        printf("%-16s %12.1f %12.1f %12.1f %15.1fx\n", benches[i].kernel, device, checked, shadow, seconds / best);
    }
    ptx_module_free(m);
    return 0;
}
