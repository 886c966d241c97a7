/* bench_shim.c - what a wrapped launch costs over a direct one, on a driver that succeeds at once (tests/stub).
 *
 * Runs itself under the shim with parts of it switched on one after the other; the baseline is the same loop without
 * the shim. Prints ns per launch, the difference, and the ratio to the baseline. The median of several runs.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef BENCH_BUILD /* given by build.mk; only the linter sees this */
#define BENCH_BUILD "build"
#endif

enum { LAUNCHES = 200000, WARM_UP = 2000, RUNS = 5 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* A few frames, so that a stack has something to unwind. */
__attribute__((noinline)) static double loop(CUfunction f, void **params, unsigned count, unsigned depth)
{
    if (depth) {
        double inner = loop(f, params, count, depth - 1);
        return inner + 1e-9; /* not a tail call */
    }
    double begin = now_ns();
    for (unsigned i = 0; i < count; i++)
        cuLaunchKernel(f, 16, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
    return (now_ns() - begin) / count;
}

static int child(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                              ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) { ret; }\n";
    CUcontext context;
    CUmodule module;
    CUfunction f;
    CUdeviceptr a, b;
    uint32_t n = 1024;
    cuInit(0);
    cuCtxCreate_v2(&context, 0, 0);
    cuModuleLoadData(&module, ptx);
    cuModuleGetFunction(&f, module, "k");
    cuMemAlloc_v2(&a, 4096);
    cuMemAlloc_v2(&b, 4096);
    void *params[] = {&a, &b, &n};
    loop(f, params, WARM_UP, 6);
    cuCtxSynchronize();
    printf("%.2f\n", loop(f, params, LAUNCHES, 6));
    return 0;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

enum { SETTINGS_MAX = 8 };

/* One run in a process of its own; its result, or 0. */
static double run_once(const char *self, const char *const *settings, const char *scratch)
{
    int ends[2];
    char text[64] = "";
    if (pipe(ends) != 0)
        return 0;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        setenv("LD_LIBRARY_PATH", BENCH_BUILD "/stub", 1);
        setenv("OPSDEBUG_OUT", scratch, 1);
        setenv("BENCH_CHILD", "1", 1);
        for (; *settings; settings++)
            putenv((char *)*settings);
        execl(self, self, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    waitpid(pid, NULL, 0);
    return got > 0 ? strtod(text, NULL) : 0;
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    return remove(path);
}

static double run(const char *self, const char *const *settings)
{
    double results[RUNS];
    for (int i = 0; i < RUNS; i++) {
        char scratch[] = "/tmp/bench-shim-XXXXXX";
        if (!mkdtemp(scratch))
            return 0;
        results[i] = run_once(self, settings, scratch);
        nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    qsort(results, RUNS, sizeof *results, by_value);
    return results[RUNS / 2];
}

int main(int argc, char **argv)
{
#define SHIM ("LD_PRELOAD=" BENCH_BUILD "/libopsdebug.so"), "OPSDEBUG_SNAPSHOTS=none"
    static const struct {
        const char *name, *settings[SETTINGS_MAX];
    } parts[] = {
        {"direct", {NULL}},
        {"record only",
         {SHIM, "OPSDEBUG_SENTINELS=off", "OPSDEBUG_HEALTH=off", "OPSDEBUG_STACKS=off", "OPSDEBUG_TIMES=off"}},
        {"record and stack", {SHIM, "OPSDEBUG_SENTINELS=off", "OPSDEBUG_HEALTH=off", "OPSDEBUG_TIMES=off"}},
        {"record and time", {SHIM, "OPSDEBUG_SENTINELS=off", "OPSDEBUG_HEALTH=off", "OPSDEBUG_STACKS=off"}},
        {"preset watch", {SHIM, "OPSDEBUG_PRESET=watch"}},
        {"preset check, no snapshots", {SHIM, "OPSDEBUG_PRESET=check"}},
    };
    if (getenv("BENCH_CHILD"))
        return child();
    double base = 0;
    printf("%-28s %10s %10s %8s\n", "launch", "ns", "added ns", "ratio");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double ns = run(argv[0], parts[i].settings);
        if (i == 0)
            base = ns;
        printf("%-28s %10.1f %10.1f %8.1f\n", parts[i].name, ns, ns - base, base > 0 ? ns / base : 0);
    }
    return 0;
}
