/* bench_redzones.c - what many live allocations cost: the table, and looks at redzones. Ratios within one run.
 *
 * The table alone first (linked in), then a program on softgpu under the shim: launches and waits with N live
 * allocations against the same with 1,000; `bench_redzones full` with a million, too (minutes: every one is filled).
 * Last on a driver that does nothing, where the kernel that looks cannot be loaded and copies take its place.
 * All but the first part runs itself again with LD_PRELOAD.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/alloc_table.h"

#ifndef BENCH_BUILD /* given by build.mk; only the linter sees this */
#define BENCH_BUILD "build"
#endif

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool count_up(const struct allocation *a, void *data)
{
    return ++*(unsigned *)data % 4096 != 0;
}

struct table_times {
    double insert, find, part;
};

static struct table_times measure_table(uint32_t count)
{
    struct table_times t;
    unsigned seen = 0;
    struct allocation out;
    uint64_t x = 88172645463325252u;
    double start = seconds();
    for (uint32_t i = 0; i < count; i++)
        alloc_table_insert(
            &(struct allocation){.address = (uint64_t)i << 12, .bytes = 1000, .id = i + 1, .context = 1});
    t.insert = (seconds() - start) / count;
    start = seconds();
    enum { LOOK_UPS = 1000000, PARTS = 200 };
    for (unsigned i = 0; i < LOOK_UPS; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        seen += alloc_table_find((x % count) << 12 | 500, &out);
    }
    t.find = (seconds() - start) / LOOK_UPS;
    start = seconds();
    for (unsigned i = 0; i < PARTS; i++)
        alloc_table_from((uint64_t)i * count / PARTS << 12, count_up, &seen);
    t.part = (seconds() - start) / PARTS;
    alloc_table_drop(1, 0);
    return t;
}

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != CUDA_SUCCESS) {                                                                                  \
            fprintf(stderr, "bench_redzones: %s\n", #call);                                                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const char kernel_text[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                                  ".visible .entry touch(.param .u64 p) { .reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
                                  "ld.param.u64 %rd1, [p]; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; ret; }\n";

/* Under the shim or not: nanoseconds of a launch, of a wait after 32 launches, of a free with a launch before it. */
static int watched(uint32_t count)
{
    CUcontext context;
    CUmodule module;
    CUfunction touch;
    CUdeviceptr *p = calloc(count, sizeof *p);
    enum { ROUNDS = 40, LAUNCHES = 32 };
    double launching = 0, waiting = 0, freeing = 0;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    MUST(cuModuleLoadData(&module, kernel_text));
    MUST(cuModuleGetFunction(&touch, module, "touch"));
    for (uint32_t i = 0; i < count; i++)
        MUST(cuMemAlloc_v2(&p[i], 256));
    for (unsigned r = 0; r < ROUNDS; r++) {
        double start = seconds();
        for (unsigned i = 0; i < LAUNCHES; i++) {
            void *arguments[] = {&p[(r * 7919u + i * 104729u) % (count - ROUNDS)]};
            MUST(cuLaunchKernel(touch, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        }
        launching += seconds() - start;
        start = seconds();
        MUST(cuCtxSynchronize());
        waiting += seconds() - start;
        void *arguments[] = {&p[0]};
        MUST(cuLaunchKernel(touch, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        start = seconds();
        MUST(cuMemFree_v2(p[count - 1 - r]));
        freeing += seconds() - start;
    }
    printf("%g %g %g\n", 1e9 * launching / ROUNDS / LAUNCHES, 1e9 * waiting / ROUNDS, 1e9 * freeing / ROUNDS);
    fflush(stdout);
    _exit(0); /* the last look at exit is not what is measured */
}

static bool run(const char *self, const char *driver, uint32_t count, bool shim, double out[3])
{
    char command[2048], scratch[] = "/tmp/bench-redzones-XXXXXX";
    if (!mkdtemp(scratch))
        return false;
    snprintf(command, sizeof command, "%s%s LD_LIBRARY_PATH=%s/%s SOFTGPU_MEMORY=8G OPSDEBUG_TIMES=off %s %u",
             shim ? "OPSDEBUG_PRESET=watch OPSDEBUG_CHECK=batch OPSDEBUG_STACKS=off OPSDEBUG_GUARD=off "
                    "LD_PRELOAD=" BENCH_BUILD "/libopsdebug.so OPSDEBUG_OUT="
                  : "true=",
             shim ? scratch : "1", BENCH_BUILD, driver, self, count);
    FILE *f = popen(command, "r"); /* NOLINT: the command is our own */
    bool ok = f && fscanf(f, "%lf %lf %lf", &out[0], &out[1], &out[2]) == 3;
    ok = f && pclose(f) == 0 && ok;
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    return system(command) == 0 && ok; /* NOLINT: the path is our own */
}

int main(int argc, char **argv)
{
    static const uint32_t counts[] = {1000, 100000, 1000000};
    bool full = argc > 1 && strcmp(argv[1], "full") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && !full)
        return watched((uint32_t)strtoul(argv[1], NULL, 10));
    struct table_times few = measure_table(counts[0]);
    printf("table: %u entries: insert %.0f ns, find %.0f ns\n", counts[0], 1e9 * few.insert, 1e9 * few.find);
    for (unsigned i = 1; i < 3; i++) {
        struct table_times t = measure_table(counts[i]);
        printf("table: %u entries: insert %.0f ns (%.1fx), find %.0f ns (%.1fx), a part of 4096 %.0f us\n", counts[i],
               1e9 * t.insert, t.insert / few.insert, 1e9 * t.find, t.find / few.find, 1e6 * t.part);
    }
    double base[3], bare[3], n[3];
    if (!run(argv[0], "softgpu", counts[0], true, base) || !run(argv[0], "softgpu", counts[0], false, bare))
        return 1;
    printf("softgpu, batch: %u live: launch %.1f us, wait %.0f us, free %.0f us (bare: %.1f, %.0f, %.0f)\n", counts[0],
           base[0] / 1e3, base[1] / 1e3, base[2] / 1e3, bare[0] / 1e3, bare[1] / 1e3, bare[2] / 1e3);
    for (unsigned i = 1; i < (full ? 3 : 2); i++) {
        if (!run(argv[0], "softgpu", counts[i], true, n))
            return 1;
        printf("softgpu, batch: %u live: launch %.1f us (%.1fx), wait %.0f us (%.1fx), free %.0f us (%.1fx)\n",
               counts[i], n[0] / 1e3, n[0] / base[0], n[1] / 1e3, n[1] / base[1], n[2] / 1e3, n[2] / base[2]);
    }
    enum { HELD = 60000 };
    if (!run(argv[0], "stub", counts[0], true, base) || !run(argv[0], "stub", HELD, true, n))
        return 1;
    printf("by copies: %u live: launch %.1f us, wait %.0f us, free %.1f us; %u live: %.1f us (%.1fx), %.0f us (%.1fx), "
           "%.1f us (%.1fx)\n",
           counts[0], base[0] / 1e3, base[1] / 1e3, base[2] / 1e3, HELD, n[0] / 1e3, n[0] / base[0], n[1] / 1e3,
           n[1] / base[1], n[2] / 1e3, n[2] / base[2]);
    return 0;
}
