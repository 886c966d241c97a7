/* bench_ptx - how fast kernels run on the executor: million thread instructions per second (executed lanes of the
 * original PTX) one thread at a time, in lock-step, counted, checked and with shadows; how many times slower than
 * lock-step the last two are; and lock-step's speed as a multiple of the same loop as plain C, compiled by gcc -O3 for
 * one core without and with its vectoriser: above 1 the executor is faster. Processor time, best of three rounds,
 * launch and decoding included. Usage: bench_ptx [KERNEL] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/ptx_cases.h"
#include "ptx/opsptx.h"

enum { COUNT = BENCH_COUNT, SIDE = BENCH_SIDE };
/* As device memory is. */
static _Alignas(256) float a[COUNT], b[COUNT], c[COUNT];
static _Alignas(256) uint32_t u[COUNT];
static struct ptx_shadow_value shadows[4][COUNT * 2];
static uint8_t shadows_used[4][sizeof a / PTX_SHADOW_CHUNK];
static const struct bench_data data = {a, b, c, u};
enum mode { ONE_BY_ONE, LOCK_STEP, COUNTED, CHECKED, SHADOW, MODE_COUNT };

static double now(void) /* of this process: what else runs on the machine does not count */
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Seconds of the fastest of three rounds; *instructions: executed by all threads. */
static double run(struct ptx_module *m, size_t i, enum mode mode, double *instructions)
{
    void *const hosts[] = {a, b, c, u};
    struct ptx_range ranges[4];
    for (uint32_t k = 0; k < 4; k++)
        ranges[k] = (struct ptx_range){.address = (k + 1) * 0x10000000,
                                       .bytes = sizeof a,
                                       .host = hosts[k],
                                       .id = k + 1,
                                       .shadow = mode == SHADOW ? shadows[k] : NULL,
                                       .shadow_used = mode == SHADOW ? shadows_used[k] : NULL};
    const struct ptx_memory memory = {.ranges = ranges, .range_count = 4};
    unsigned char params[64];
    size_t at = 0;
    for (const char *p = bench_cases[i].pointers; *p; p++, at += 8)
        memcpy(params + at, &ranges[strchr("abcu", *p) - "abcu"].address, 8);
    memcpy(params + at, bench_cases[i].last, sizeof bench_cases[i].last);
    struct ptx_launch launch = {
        .module = m, .kernel = ptx_module_find_kernel(m, bench_cases[i].kernel), .memory = &memory};
    launch.params = params;
    launch.one_by_one = mode == ONE_BY_ONE;
    launch.profile = mode == COUNTED;
    launch.checked = mode == CHECKED;
    launch.shadow = mode == SHADOW;
    for (int k = 0; k < 2; k++) {
        launch.grid[k] = bench_cases[i].grid[k];
        launch.block[k] = bench_cases[i].block[k];
    }
    launch.grid[2] = launch.block[2] = 1;
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        struct ptx_result result;
        struct diag diag;
        double start = now();
        if (ptx_run(&launch, &result, &diag) != STATUS_OK) {
            fprintf(stderr, "%s: %s\n", bench_cases[i].kernel, diag.text);
            exit(1);
        }
        double seconds = now() - start;
        if (seconds < best)
            best = seconds;
        *instructions = (double)result.counts.thread_instructions;
        ptx_result_free(&result);
    }
    return best;
}

static double run_baseline(void (*loop)(const struct bench_data *d))
{
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        double start = now();
        loop(&data);
        double seconds = now() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

int main(int argc, char **argv)
{
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
    double start = now();
    if (ptx_module_load(text, bytes, "bench.ptx", &m, &diag) != STATUS_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 2;
    }
    double loading = now() - start;
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5);
    }
    printf("%-14s %10s %10s %10s %10s %7s %10s %7s   %s\n", "million/s", "one by one", "lock-step", "counted",
           "checked", "slower", "shadow", "slower", "lock-step against gcc -O3: scalar, vectorised");
    for (size_t i = 0; i < BENCH_CASES; i++) {
        if (argc > 1 && strcmp(argv[1], bench_cases[i].name) != 0)
            continue;
        double seconds[MODE_COUNT], rate[MODE_COUNT];
        for (enum mode mode = 0; mode < MODE_COUNT; mode++) {
            double instructions;
            if (argc > 2 && mode != LOCK_STEP) /* one mode, for a profiler */
                continue;
            seconds[mode] = run(m, i, mode, &instructions);
            rate[mode] = instructions / seconds[mode] / 1e6;
        }
        if (argc > 2) {
            printf("%-14s %10.0f\n", bench_cases[i].name, rate[LOCK_STEP]);
            continue;
        }
        double scalar = run_baseline(bench_scalar[bench_cases[i].baseline]),
               vector = run_baseline(bench_vector[bench_cases[i].baseline]);
        printf("%-14s %10.0f %10.0f %10.0f %10.0f %6.1fx %10.0f %6.1fx   %.2fx %.2fx\n", bench_cases[i].name,
               rate[ONE_BY_ONE], rate[LOCK_STEP], rate[COUNTED], rate[CHECKED], rate[LOCK_STEP] / rate[CHECKED],
               rate[SHADOW], rate[LOCK_STEP] / rate[SHADOW], scalar / seconds[LOCK_STEP], vector / seconds[LOCK_STEP]);
    }
    printf("the module: %zu bytes of PTX loaded in %.1f ms\n", bytes, loading * 1e3);
    ptx_module_free(m);
    return 0;
}
