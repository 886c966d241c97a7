/* bench_threads.c - what a short-lived thread costs under the shim: it makes its first calls, and ends.
 *
 *     bench_threads [THREADS [CALLS]]     2000 one after the other, each with 4 calls
 *
 * Runs itself bare and under the shim, against the stub driver, by turns, and prints processor time per thread, the
 * best of three, and the ratio; also the segments that the threads left, and their bytes.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dirent.h>
#include <ftw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef BENCH_BUILD /* given by build.mk; only the linter sees this */
#define BENCH_BUILD "build"
#endif

enum { RUNS = 3 };

static CUcontext context;
static long calls;

static double processor_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static void *work(void *unused)
{
    CUdeviceptr p;
    cuCtxSetCurrent(context);
    for (long i = 0; i < calls / 2; i++)
        if (cuMemAlloc_v2(&p, 256) || cuMemFree_v2(p))
            exit(3);
    return NULL;
}

static int child(long threads)
{
    if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0))
        return 2;
    work(NULL);
    double begin = processor_seconds();
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, NULL) != 0)
            return 4;
        pthread_join(thread, NULL);
    }
    printf("%.3f\n", (processor_seconds() - begin) * 1e6 / (double)threads);
    return 0;
}

static double run(const char *self, char **argv, const char *out)
{
    int ends[2];
    char text[64] = "";
    if (pipe(ends) != 0)
        return 0;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        setenv("BENCH_CHILD", "1", 1);
        if (out) {
            setenv("LD_PRELOAD", BENCH_BUILD "/libopsdebug.so", 1);
            setenv("OPSDEBUG_PRESET", "watch", 1);
            setenv("OPSDEBUG_OUT", out, 1);
        }
        execv(self, argv);
        _exit(126);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    waitpid(pid, NULL, 0);
    return got > 0 ? strtod(text, NULL) : 0;
}

static long segments;
static long long segment_bytes;
static int count_or_remove(const char *path, const struct stat *facts, int type, struct FTW *where)
{
    if (strstr(path, "segment-")) {
        segments++;
        segment_bytes += facts->st_size;
    }
    return remove(path);
}

int main(int argc, char **argv)
{
    long threads = argc > 1 ? strtol(argv[1], NULL, 10) : 2000;
    double best[2] = {0, 0};
    calls = argc > 2 ? strtol(argv[2], NULL, 10) : 4;
    if (getenv("BENCH_CHILD"))
        return child(threads);
    char self[4096] = "", folder[] = "/tmp/bench-threads-XXXXXX", out[64];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 || !mkdtemp(folder))
        return 1;
    snprintf(out, sizeof out, "%s/out", folder);
    for (int i = 0; i < RUNS; i++)
        for (int shim = 0; shim < 2; shim++) {
            double us = run(self, argv, shim ? out : NULL);
            if (us <= 0)
                return 1;
            best[shim] = best[shim] == 0 || us < best[shim] ? us : best[shim];
            segments = 0;
            segment_bytes = 0;
            nftw(out, count_or_remove, 16, FTW_DEPTH | FTW_PHYS);
        }
    rmdir(folder);
    printf("thread_us_bare     %.1f\nthread_us_watch    %.1f\nratio              %.2f\nsegments           "
           "%ld\nsegment_bytes      "
           "%lld\n",
           best[0], best[1], best[1] / best[0], segments, segment_bytes);
    return 0;
}
