/* bench_softgpu - what softgpu adds to the executor: kernels launched through its driver API, as a multiple of the same
 * launch on the executor alone and of the same loop as plain C (gcc -O3, one core, without its vectoriser; above 1
 * softgpu is slower); then what a launch, a copy and streams side by side cost. Processor time of this process, best
 * of five rounds, one worker; the last part by the clock, because it is about two cores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda.h>

#include "bench/ptx_cases.h"
#include "ptx/opsptx.h"

enum { ROUNDS = 5, EMPTY_LAUNCHES = 2000, BIG = 64 << 20 };
static _Alignas(256) float a[BENCH_COUNT], b[BENCH_COUNT], c[BENCH_COUNT];
static _Alignas(256) uint32_t u[BENCH_COUNT];
static const struct bench_data data = {a, b, c, u};
static char text[1 << 20];
static const char empty[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry empty() { ret; }\n";

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "bench_softgpu: %s: error %d\n", what, (int)result);
    exit(1);
}

struct work {
    void (*once)(struct work *w);
    clockid_t clock;
    /* what the rows need of these */
    const struct bench_case *row;
    const struct ptx_module *module;
    CUfunction function;
    CUdeviceptr device[4];
    CUstream streams[2];
    unsigned char params[64];
    void *host;
};

static double fastest(struct work *w)
{
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now(w->clock);
        w->once(w);
        double seconds = now(w->clock) - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* ---- kernels ---- */

static void set_params(struct work *w, const uint64_t *addresses)
{
    size_t at = 0;
    for (const char *p = w->row->pointers; *p; p++, at += 8)
        memcpy(w->params + at, &addresses[strchr("abcu", *p) - "abcu"], 8);
    memcpy(w->params + at, w->row->last, sizeof w->row->last);
}

static void launch(struct work *w, CUstream stream)
{
    size_t bytes = strlen(w->row->pointers) * 8 + (size_t)w->row->last_count * 4;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, w->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    must(cuLaunchKernel(w->function, w->row->grid[0], w->row->grid[1], 1, w->row->block[0], w->row->block[1], 1, 0,
                        stream, NULL, extra),
         w->row->kernel);
}

static void on_device(struct work *w)
{
    launch(w, NULL);
    must(cuCtxSynchronize(), w->row->kernel);
}

static void on_executor(struct work *w)
{
    void *const hosts[] = {a, b, c, u};
    struct ptx_range ranges[4];
    uint64_t addresses[4];
    for (uint32_t k = 0; k < 4; k++) {
        addresses[k] = (k + 1) * 0x10000000;
        ranges[k] = (struct ptx_range){.address = addresses[k], .bytes = sizeof a, .host = hosts[k], .id = k + 1};
    }
    const struct ptx_memory memory = {.ranges = ranges, .range_count = 4};
    set_params(w, addresses);
    struct ptx_launch l = {.module = w->module,
                           .kernel = ptx_module_find_kernel(w->module, w->row->kernel),
                           .memory = &memory,
                           .params = w->params,
                           .grid = {w->row->grid[0], w->row->grid[1], 1},
                           .block = {w->row->block[0], w->row->block[1], 1}};
    struct ptx_result result;
    struct diag diag;
    if (ptx_run(&l, &result, &diag) != STATUS_OK) {
        fprintf(stderr, "bench_softgpu: %s: %s\n", w->row->kernel, diag.text);
        exit(1);
    }
    ptx_result_free(&result);
}

static void as_c(struct work *w)
{
    bench_scalar[w->row->baseline](&data);
}

static void kernels(struct work *w, CUmodule module)
{
    printf("%-14s %12s %18s %14s\n", "kernel", "softgpu, ms", "against executor", "against C");
    for (size_t i = 0; i < BENCH_CASES; i++) {
        w->row = &bench_cases[i];
        w->clock = CLOCK_PROCESS_CPUTIME_ID;
        must(cuModuleGetFunction(&w->function, module, w->row->kernel), w->row->kernel);
        w->once = on_executor;
        double executor = fastest(w);
        w->once = as_c;
        double scalar = fastest(w);
        set_params(w, (const uint64_t *)w->device);
        w->once = on_device;
        double device = fastest(w);
        printf("%-14s %12.3f %17.2fx %13.2fx\n", w->row->name, device * 1e3, device / executor, device / scalar);
    }
}

/* ---- launches, copies, streams ---- */

static void many_empty(struct work *w)
{
    for (int i = 0; i < EMPTY_LAUNCHES; i++)
        must(cuLaunchKernel(w->function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "empty");
    must(cuCtxSynchronize(), "empty");
}

static void empty_and_wait(struct work *w)
{
    for (int i = 0; i < EMPTY_LAUNCHES; i++) {
        must(cuLaunchKernel(w->function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "empty");
        must(cuCtxSynchronize(), "empty");
    }
}

static void copy_to_device(struct work *w)
{
    must(cuMemcpyHtoD(w->device[0], w->host, BIG), "cuMemcpyHtoD");
}

static void copy_on_host(struct work *w)
{
    memcpy((char *)w->host + BIG, w->host, BIG);
    __asm__ volatile("" ::: "memory");
}

static void in_one_stream(struct work *w)
{
    launch(w, w->streams[0]);
    launch(w, w->streams[0]);
    must(cuCtxSynchronize(), "streams");
}

static void in_two_streams(struct work *w)
{
    launch(w, w->streams[0]);
    launch(w, w->streams[1]);
    must(cuCtxSynchronize(), "streams");
}

static void kernel_then_copy(struct work *w)
{
    launch(w, w->streams[0]);
    must(cuMemcpyHtoDAsync(w->device[1], w->host, BIG, w->streams[0]), "cuMemcpyHtoDAsync");
    must(cuCtxSynchronize(), "streams");
}

static void kernel_beside_copy(struct work *w)
{
    launch(w, w->streams[0]);
    must(cuMemcpyHtoDAsync(w->device[1], w->host, BIG, w->streams[1]), "cuMemcpyHtoDAsync");
    must(cuCtxSynchronize(), "streams");
}

static double of(struct work *w, void (*once)(struct work *w), clockid_t clock)
{
    w->once = once;
    w->clock = clock;
    return fastest(w);
}

static const struct bench_case *find_case(const char *name)
{
    for (size_t i = 0; i < BENCH_CASES; i++)
        if (strcmp(bench_cases[i].name, name) == 0)
            return &bench_cases[i];
    return NULL;
}

static void overheads(struct work *w, CUmodule module)
{
    CUmodule other;
    must(cuModuleLoadData(&other, empty), "empty");
    must(cuModuleGetFunction(&w->function, other, "empty"), "empty");
    printf("empty launches: %.2f us of processor time each queued, %.2f us each waited for\n",
           of(w, many_empty, CLOCK_PROCESS_CPUTIME_ID) / EMPTY_LAUNCHES * 1e6,
           of(w, empty_and_wait, CLOCK_PROCESS_CPUTIME_ID) / EMPTY_LAUNCHES * 1e6);

    for (int k = 0; k < 2; k++)
        must(cuMemAlloc(&w->device[k], BIG), "cuMemAlloc");
    must(cuMemAllocHost(&w->host, 2 * (size_t)BIG), "cuMemAllocHost");
    memset(w->host, 1, 2 * (size_t)BIG);
    double copied = of(w, copy_to_device, CLOCK_PROCESS_CPUTIME_ID),
           host = of(w, copy_on_host, CLOCK_PROCESS_CPUTIME_ID);
    printf("copy of %d MiB to the device: %.2fx memcpy\n", BIG >> 20, copied / host);

    w->row = find_case("mandelbrot"); /* arithmetic, so that two of them share nothing */
    must(cuModuleGetFunction(&w->function, module, w->row->kernel), w->row->kernel);
    set_params(w, (const uint64_t *)w->device);
    printf("two kernels in two streams: %.2fx the time of one stream; kernel beside a copy: %.2fx\n",
           of(w, in_two_streams, CLOCK_MONOTONIC) / of(w, in_one_stream, CLOCK_MONOTONIC),
           of(w, kernel_beside_copy, CLOCK_MONOTONIC) / of(w, kernel_then_copy, CLOCK_MONOTONIC));
}

int main(void)
{
    FILE *f = fopen("tests/ptx/bench.ptx", "rb");
    if (!f) {
        fprintf(stderr, "tests/ptx/bench.ptx: run from the repository's root\n");
        return 2;
    }
    size_t bytes = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    struct ptx_module *executor_module;
    struct diag diag;
    struct work w = {0};
    CUdevice device;
    CUcontext context;
    CUmodule module;
    if (ptx_module_load(text, bytes, "bench.ptx", &executor_module, &diag) != STATUS_OK) {
        fprintf(stderr, "%s\n", diag.text);
        return 2;
    }
    w.module = executor_module;
    for (int i = 0; i < BENCH_COUNT; i++) {
        a[i] = (float)(i % 7);
        b[i] = (float)(i % 5);
    }
    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuModuleLoadData(&module, text), "bench.ptx");
    const void *const hosts[] = {a, b, c, u};
    for (int k = 0; k < 4; k++) {
        must(cuMemAlloc(&w.device[k], sizeof a), "cuMemAlloc");
        must(cuMemcpyHtoD(w.device[k], hosts[k], sizeof a), "cuMemcpyHtoD");
    }
    for (int k = 0; k < 2; k++)
        must(cuStreamCreate(&w.streams[k], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    kernels(&w, module);
    overheads(&w, module);
    ptx_module_free(executor_module);
    return 0;
}
