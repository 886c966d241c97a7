/* bench_launches.c - what very many launches leave behind: bytes of capture, memory, lost records, time to read it.
 *
 *     bench_launches [LAUNCHES [THREADS [PRESET [DRIVER]]]]     1000000, 1, check; DRIVER: stub (default) or softgpu
 *
 * Runs itself under the shim: a kernel of three arguments, launched so many times by all threads together, with a wait
 * after each 100000. Then the analyzer reads the capture. Prints one line of `name value` each; fails when a launch is
 * missing from the capture or was counted twice.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <opsdebug/capture.h>

#ifndef BENCH_BUILD /* given by build.mk; only the linter sees this */
#define BENCH_BUILD "build"
#endif

enum { WAIT_EVERY = 100000, THREADS_MAX = 256, WARM_UP = 1000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the watched program ---- */

static CUcontext context;
static CUfunction kernel;
static CUdeviceptr buffers[2];

struct share {
    uint64_t launches;
    pthread_t thread;
};

static void *launch_all(void *data)
{
    const struct share *share = data;
    uint32_t n = 1;
    void *params[] = {&buffers[0], &buffers[1], &n};
    cuCtxSetCurrent(context);
    for (uint64_t i = 0; i < share->launches; i++) {
        cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
        if ((i + 1) % WAIT_EVERY == 0)
            cuCtxSynchronize();
    }
    cuCtxSynchronize();
    return NULL;
}

static void launch_by(unsigned threads, uint64_t launches)
{
    static struct share shares[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++)
        shares[i].launches = launches / threads + (i < launches % threads);
    for (unsigned i = 1; i < threads; i++)
        pthread_create(&shares[i].thread, NULL, launch_all, &shares[i]);
    launch_all(&shares[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(shares[i].thread, NULL);
}

/* Private memory: pages of the capture's own files are the kernel's to keep or drop. */
static long private_kb(void)
{
    long kb = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "RssAnon:", 8) == 0)
            kb = strtol(line + 8, NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

static int child(uint64_t launches, unsigned threads)
{
    static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                              ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n) { ret; }\n";
    CUmodule module;
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuModuleLoadData(&module, ptx) ||
        cuModuleGetFunction(&kernel, module, "k") || cuMemAlloc_v2(&buffers[0], 4096) ||
        cuMemAlloc_v2(&buffers[1], 4096))
        return 1;
    launch_by(threads, WARM_UP);
    uint64_t tenth = launches / 10;
    double begin = now();
    launch_by(threads, tenth);
    long early = private_kb();
    launch_by(threads, launches - tenth);
    double took = now() - begin;
    printf("%.1f %ld %ld\n", took * 1e9 / (double)launches, early, private_kb());
    return 0;
}

/* ---- the runs ---- */

struct child_result {
    double ns;
    long early_kb, late_kb;
};

static bool run_child(const char *self, char **argv, const char *const *settings, struct child_result *out)
{
    int ends[2];
    char text[128] = "";
    if (pipe(ends) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        setenv("BENCH_CHILD", "1", 1);
        for (; *settings; settings++)
            putenv((char *)*settings);
        execv(self, argv);
        _exit(126);
    }
    close(ends[1]);
    size_t got = 0;
    for (ssize_t n; (n = read(ends[0], text + got, sizeof text - 1 - got)) > 0;)
        got += (size_t)n;
    close(ends[0]);
    waitpid(pid, NULL, 0);
    return sscanf(text, "%lf %ld %ld", &out->ns, &out->early_kb, &out->late_kb) == 3;
}

static uint64_t folder_bytes;
static int add_size(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    if (type == FTW_F)
        folder_bytes += (uint64_t)facts->st_size;
    return 0;
}

static int remove_one(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    return remove(path);
}

/* `ops-analyze report --json CAPTURE`: how many launches it counted, -1: it failed. */
static long long analyze(const char *capture, double *seconds, long *peak_kb)
{
    char text[4096];
    long long launches = -1;
    int ends[2];
    if (pipe(ends) != 0)
        return -1;
    double begin = now();
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        execl(BENCH_BUILD "/ops-analyze", "ops-analyze", "report", "--json", capture, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    while (out && fgets(text, sizeof text, out)) {
        const char *at = strstr(text, "\"launches\":");
        if (at && launches < 0)
            launches = strtoll(at + strlen("\"launches\":"), NULL, 10);
    }
    if (out)
        fclose(out);
    struct rusage usage;
    wait4(pid, NULL, 0, &usage);
    *seconds = now() - begin;
    *peak_kb = usage.ru_maxrss;
    return launches;
}

int main(int argc, char **argv)
{
    uint64_t launches = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    const char *preset = argc > 3 ? argv[3] : "check", *driver = argc > 4 ? argv[4] : "stub";
    if (!launches || !threads || threads > THREADS_MAX) {
        fprintf(stderr, "bench_launches: give a number of launches and 1 to %d threads\n", THREADS_MAX);
        return 2;
    }
    if (getenv("BENCH_CHILD"))
        return child(launches, threads);

    char scratch[] = "/tmp/bench-launches-XXXXXX", capture[64], out[96], set[64], path[256];
    if (!mkdtemp(scratch))
        return 1;
    snprintf(capture, sizeof capture, "%s/capture", scratch);
    snprintf(out, sizeof out, "OPSDEBUG_OUT=%s", capture);
    snprintf(set, sizeof set, "OPSDEBUG_PRESET=%s", preset);
    snprintf(path, sizeof path, "LD_LIBRARY_PATH=%s/%s", BENCH_BUILD, driver);
    const char *bare[] = {path, NULL};
    const char *watched[] = {path, "LD_PRELOAD=" BENCH_BUILD "/libopsdebug.so", "OPSDEBUG_SNAPSHOTS=none", out, set,
                             NULL};
    struct child_result without, with;
    int rc = 1;
    if (!run_child(argv[0], argv, bare, &without) || !run_child(argv[0], argv, watched, &with)) {
        fprintf(stderr, "bench_launches: the program did not run\n");
        goto done;
    }
    snprintf(path, sizeof path, "%s/capture.bin", capture);
    int fd = open(path, O_RDONLY);
    const struct cap_header *header = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *header, PROT_READ, MAP_SHARED, fd, 0);
    if (header == MAP_FAILED)
        goto done;
    nftw(capture, add_size, 16, FTW_PHYS);
    double seconds = 0;
    long peak_kb = 0;
    uint64_t expected = launches + WARM_UP;
    long long read_back = analyze(capture, &seconds, &peak_kb);
    printf("launches %llu, threads %u, preset %s, driver %s\n", (unsigned long long)launches, threads, preset, driver);
    printf("%-36s %12.1f\n%-36s %12.1f\n%-36s %12.2f\n", "ns per launch, bare", without.ns, "ns per launch, watched",
           with.ns, "ratio", with.ns / without.ns);
    printf("%-36s %12.1f\n", "bytes of capture per launch", (double)folder_bytes / (double)expected);
    printf("%-36s %12ld\n%-36s %12ld\n", "private KiB after a tenth", with.early_kb, "private KiB at the end",
           with.late_kb);
    printf("%-36s %12llu\n", "records dropped", (unsigned long long)header->dropped_records);
    printf("%-36s %12llu\n%-36s %12lld\n", "launches counted by the shim", (unsigned long long)header->launches,
           "launches read by the analyzer", read_back);
    printf("%-36s %12.1f\n%-36s %12ld\n", "seconds of the analyzer's report", seconds, "its peak KiB", peak_kb);
    rc = header->launches == expected && read_back == (long long)expected ? 0 : 1;
    if (rc)
        fprintf(stderr, "bench_launches: %llu launches were made\n", (unsigned long long)expected);
done:
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}
