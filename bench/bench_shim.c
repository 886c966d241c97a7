/* bench_shim.c - what a wrapped launch costs over a direct one, on a driver that succeeds at once (tests/stub).
 *
 * Runs itself under the shim with parts of it switched on one after the other; the baseline is the same loop without
 * the shim. Prints ns of the thread's processor time per call: on the whole, with the page faults of the capture's new
 * pages, which a spare processor takes over; and in the best twentieth of the loop; each the median of several runs.
 * After the launches the cheap calls: an event's record and query, an asynchronous copy, an NVTX range (push and pop).
 *
 *   bench_shim [LIBRARY...]      also with each LIBRARY, another tool's interposer, preloaded instead of the shim
 *
 * What such a library needs (settings, a daemon, other libraries in LD_LIBRARY_PATH behind the stub) the caller
 * provides.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else /* such a toolkit has no ranges to measure */
#define nvtxRangePushA(name) (void)(name)
#define nvtxRangePop()       (void)0
#endif
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

enum { LAUNCHES = 200000, WARM_UP = 2000, RUNS = 5, LOOP_PARTS = 20 };
enum what { LAUNCH, EVENT_RECORD, EVENT_QUERY, COPY, RANGE, WHATS };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct cost {
    double mean, best;
};

static CUfunction function;
static CUevent event;
static CUdeviceptr buffers[2];

static void call(enum what what, void **params)
{
    static char host[64];
    switch (what) {
    case LAUNCH:
        cuLaunchKernel(function, 16, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
        break;
    case EVENT_RECORD:
        cuEventRecord(event, NULL);
        break;
    case EVENT_QUERY:
        cuEventQuery(event);
        break;
    case COPY:
        cuMemcpyHtoDAsync_v2(buffers[0], host, sizeof host, NULL);
        break;
    default:
        nvtxRangePushA("layers.0.mlp");
        nvtxRangePop();
    }
}

/* A few frames, so that a stack has something to unwind. */
__attribute__((noinline)) static double loop(enum what what, unsigned count, unsigned depth, struct cost *cost)
{
    if (depth) {
        double inner = loop(what, count, depth - 1, cost);
        return inner + 1e-9; /* not a tail call */
    }
    uint32_t n = 1024;
    void *params[] = {&buffers[0], &buffers[1], &n};
    double begin = now_ns();
    cost->best = 1e30;
    for (unsigned part = 0; part < LOOP_PARTS; part++) {
        const unsigned calls = count / LOOP_PARTS;
        double from = now_ns();
        for (unsigned i = 0; i < calls; i++)
            call(what, params);
        double ns = (now_ns() - from) / calls;
        cost->best = ns < cost->best ? ns : cost->best;
    }
    return cost->mean = (now_ns() - begin) / count;
}

static int child(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                              ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) { ret; }\n";
    CUcontext context;
    CUmodule module;
    struct cost cost;
    cuInit(0);
    cuCtxCreate_v2(&context, 0, 0);
    cuModuleLoadData(&module, ptx);
    cuModuleGetFunction(&function, module, "k");
    cuMemAlloc_v2(&buffers[0], 4096);
    cuMemAlloc_v2(&buffers[1], 4096);
    cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    loop(LAUNCH, WARM_UP, 6, &cost);
    cuCtxSynchronize();
    for (enum what what = LAUNCH; what < WHATS; what++) {
        loop(what, LAUNCHES, 6, &cost);
        printf("%.2f %.2f\n", cost.mean, cost.best);
    }
    return 0;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

enum { SETTINGS_MAX = 8 };

/* One run in a process of its own; its results, or zeros. */
static void run_once(const char *self, const char *const *settings, const char *scratch, struct cost costs[WHATS])
{
    int ends[2];
    if (pipe(ends) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        const char *others = getenv("LD_LIBRARY_PATH");
        char path[4096];
        snprintf(path, sizeof path, "%s%s%s", BENCH_BUILD "/stub", others ? ":" : "", others ? others : "");
        setenv("LD_LIBRARY_PATH", path, 1);
        setenv("OPSDEBUG_OUT", scratch, 1);
        setenv("BENCH_CHILD", "1", 1);
        for (; *settings; settings++)
            putenv((char *)*settings);
        execl(self, self, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    for (unsigned i = 0; out && i < WHATS; i++)
        if (fscanf(out, "%lf %lf", &costs[i].mean, &costs[i].best) != 2)
            break;
    if (out)
        fclose(out);
    waitpid(pid, NULL, 0);
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    return remove(path);
}

static double median(double *values)
{
    qsort(values, RUNS, sizeof *values, by_value);
    return values[RUNS / 2];
}

static void run(const char *self, const char *const *settings, struct cost costs[WHATS])
{
    double means[WHATS][RUNS] = {{0}}, bests[WHATS][RUNS] = {{0}};
    for (int i = 0; i < RUNS; i++) {
        char scratch[] = "/tmp/bench-shim-XXXXXX";
        struct cost once[WHATS] = {{0}};
        if (!mkdtemp(scratch))
            return;
        run_once(self, settings, scratch, once);
        for (unsigned w = 0; w < WHATS; w++) {
            means[w][i] = once[w].mean;
            bests[w][i] = once[w].best;
        }
        nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    for (unsigned w = 0; w < WHATS; w++)
        costs[w] = (struct cost){median(means[w]), median(bests[w])};
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
#define SHIM                                                                                                           \
    ("LD_PRELOAD=" BENCH_BUILD "/libopsdebug.so"), ("NVTX_INJECTION64_PATH=" BENCH_BUILD "/libopsdebug.so"),           \
        "OPSDEBUG_SNAPSHOTS=none"
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
    static const char *const names[WHATS] = {"launch", "event record", "event query", "asynchronous copy",
                                             "NVTX range"};
    enum { PARTS = sizeof parts / sizeof *parts };
    enum { OTHERS_MAX = 4 };
    struct cost costs[PARTS + OTHERS_MAX][WHATS] = {{{0}}};
    const int others = argc - 1 < OTHERS_MAX ? argc - 1 : OTHERS_MAX;
    for (size_t i = 0; i < PARTS; i++)
        run(argv[0], parts[i].settings, costs[i]);
    for (int i = 0; i < others; i++) {
        char preload[4096];
        snprintf(preload, sizeof preload, "LD_PRELOAD=%s", argv[1 + i]);
        run(argv[0], (const char *const[]){preload, NULL}, costs[PARTS + i]);
    }
    for (unsigned w = 0; w < WHATS; w++) {
        const struct cost *base = &costs[0][w];
        printf("%-28s %10s %10s %10s %8s\n", names[w], "ns", "best ns", "added", "ratio");
        for (size_t i = 0; i < PARTS + (size_t)others; i++)
            printf("%-28.28s %10.1f %10.1f %10.1f %8.1f\n", i < PARTS ? parts[i].name : base_name(argv[1 + i - PARTS]),
                   costs[i][w].mean, costs[i][w].best, costs[i][w].best - base->best,
                   base->best > 0 ? costs[i][w].best / base->best : 0);
    }
    return 0;
}
