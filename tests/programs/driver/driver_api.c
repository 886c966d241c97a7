/*
 * driver_api.c - a program on the driver API: PTX loaded from a file, both forms of kernel
 * arguments, module variables, streams and events.
 *
 * The PTX lies beside the program, as PROGRAM.ptx. The faults are in the kernels, so that every
 * variant is the same program with another PTX.
 */
#include <cuda.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAPS    16
#define THREADS 128
#define COUNT   1000
#define LENGTH  (COUNT + TAPS - 1)
#define BLOCKS  ((COUNT + THREADS - 1) / THREADS)

#define CHECK(call) check((call), #call, __LINE__)

struct ramp {
    double from;
    float slope;
    short stride;
    int count;
};

struct signal {
    float taps[TAPS], in[LENGTH], filtered[COUNT], ramped[COUNT];
    unsigned int peaks;
};

static void check(CUresult result, const char *call, int line)
{
    const char *name = "unknown error", *text = "";

    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    cuGetErrorString(result, &text);
    fprintf(stderr, "driver_api.c:%d: %s: %s (%s)\n", line, call, name, text);
    exit(1);
}

static void ptx_path(char *path, size_t size)
{
    const ssize_t length = readlink("/proc/self/exe", path, size - sizeof(".ptx"));

    if (length < 0) {
        perror("/proc/self/exe");
        exit(1);
    }
    strcpy(path + length, ".ptx");
}

/* The whole file as a string; the caller frees it. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long size;

    if (file && !fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0) {
        rewind(file);
        text = calloc(1, (size_t)size + 1);
        if (text && fread(text, 1, (size_t)size, file) != (size_t)size) {
            free(text);
            text = NULL;
        }
    }
    if (!text) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return text;
}

/* What the device should find, with the kernels' own roundings. */
static void expect(struct signal *s, const struct ramp *ramp)
{
    unsigned int state = 12345;

    for (int k = 0; k < TAPS; k++)
        s->taps[k] = 0.0625f * (float)(TAPS - k) / TAPS;
    for (int i = 0; i < LENGTH; i++) {
        state = state * 1664525 + 1013904223;
        s->in[i] = (float)(int)(state >> 16) / 65536.0f;
    }
    for (int i = 0; i < COUNT; i++) {
        float sum = 0.0f;
        for (int k = 0; k < TAPS; k++)
            sum = fmaf(s->taps[k], s->in[i + k], sum);
        s->filtered[i] = s->ramped[i] = sum;
    }
    s->peaks = 0;
    for (int i = 1; i < COUNT - 1; i++)
        s->peaks += s->filtered[i] > 0.25f && s->filtered[i] > s->filtered[i - 1] &&
                    s->filtered[i] > s->filtered[i + 1];
    for (int i = 0; i < ramp->count; i += ramp->stride)
        s->ramped[i] += (float)fma(ramp->slope, i, ramp->from);
}

static CUcontext open_context(CUdevice device, int primary)
{
    CUcontext context;

    if (primary) {
        CHECK(cuDevicePrimaryCtxRetain(&context, device));
        CHECK(cuCtxSetCurrent(context));
    } else {
        CHECK(cuCtxCreate(&context, NULL, CU_CTX_SCHED_AUTO, device));
    }
    return context;
}

static CUmodule load_module(const char *path)
{
    char *text = read_text(path), log[1024] = "";
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof(log)};
    CUmodule module;

    CHECK(cuModuleLoadDataEx(&module, text, 2, options, values));
    free(text);
    return module;
}

static unsigned int differing(const char *what, const float *got, const float *expected)
{
    unsigned int count = 0;

    for (int i = 0; i < COUNT; i++)
        count += memcmp(&got[i], &expected[i], sizeof(float)) != 0;
    printf("%s: %u of %d differ\n", what, count, COUNT);
    return count;
}

/* The filter and the peaks, with arguments by pointers; `upload` runs ahead on its own stream. */
static unsigned int filter(CUmodule module, const struct signal *s, CUdeviceptr in, CUdeviceptr out)
{
    CUfunction fir, peaks;
    CUdeviceptr variable;
    CUstream upload, work;
    CUevent ready, begin, end;
    size_t bytes;
    int count = COUNT, warp;
    unsigned int found, wrong = 0;
    float elapsed, got[COUNT];
    void *fir_arguments[] = {&out, &in, &count}, *peak_arguments[] = {&out, &count};

    CHECK(cuModuleGetFunction(&fir, module, "fir_filter"));
    CHECK(cuModuleGetFunction(&peaks, module, "count_peaks"));
    CHECK(cuFuncGetAttribute(&warp, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fir));
    if (warp < THREADS)
        wrong++;
    CHECK(cuModuleGetGlobal(&variable, &bytes, module, "taps"));
    if (bytes != sizeof(s->taps))
        wrong++;
    CHECK(cuStreamCreate(&upload, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&work, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));

    CHECK(cuMemcpyHtoDAsync(variable, s->taps, sizeof(s->taps), upload));
    CHECK(cuMemcpyHtoDAsync(in, s->in, sizeof(s->in), upload));
    CHECK(cuModuleGetGlobal(&variable, &bytes, module, "peak_count"));
    CHECK(cuMemsetD32Async(variable, 0, 1, upload));
    CHECK(cuEventRecord(ready, upload));
    CHECK(cuStreamWaitEvent(work, ready, CU_EVENT_WAIT_DEFAULT));
    CHECK(cuEventRecord(begin, work));
    CHECK(cuLaunchKernel(fir, BLOCKS, 1, 1, THREADS, 1, 1, 0, work, fir_arguments, NULL));
    CHECK(cuLaunchKernel(peaks, BLOCKS, 1, 1, THREADS, 1, 1, 0, work, peak_arguments, NULL));
    CHECK(cuEventRecord(end, work));
    CHECK(cuStreamSynchronize(work));
    CHECK(cuEventQuery(end));
    CHECK(cuEventElapsedTime(&elapsed, begin, end));
    if (!(elapsed >= 0.0f))
        wrong++;

    CHECK(cuMemcpyDtoH(got, out, sizeof(got)));
    CHECK(cuMemcpyDtoH(&found, variable, sizeof(found)));
    wrong += differing("filtered", got, s->filtered);
    printf("peaks: %u, expected %u\n", found, s->peaks);
    wrong += found != s->peaks;

    CHECK(cuEventDestroy(ready));
    CHECK(cuEventDestroy(begin));
    CHECK(cuEventDestroy(end));
    CHECK(cuStreamDestroy(upload));
    CHECK(cuStreamDestroy(work));
    return wrong;
}

/* The ramp, with its arguments packed in one buffer, on the default stream. */
static unsigned int add_ramp(CUmodule module, const struct signal *s, const struct ramp *ramp,
                             CUdeviceptr out)
{
    struct {
        CUdeviceptr inout;
        struct ramp ramp; /* aligned to 8, as in the kernel's list */
    } arguments = {out, *ramp};
    size_t size = sizeof(arguments);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CUfunction function;
    CUdeviceptr copy;
    float got[COUNT];

    CHECK(cuModuleGetFunction(&function, module, "add_ramp"));
    CHECK(cuMemAlloc(&copy, sizeof(got)));
    CHECK(cuMemcpyDtoD(copy, out, sizeof(got)));
    arguments.inout = copy;
    CHECK(cuLaunchKernel(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, NULL, extra));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoH(got, copy, sizeof(got)));
    CHECK(cuMemFree(copy));
    return differing("ramped", got, s->ramped);
}

/* The same filter out of a library, which belongs to no context. */
static unsigned int filter_from_library(const char *path, const struct signal *s, CUdeviceptr in,
                                        CUdeviceptr out)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    CUlaunchConfig config = {.gridDimX = BLOCKS,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = THREADS,
                             .blockDimY = 1,
                             .blockDimZ = 1};
    CUdeviceptr taps;
    size_t bytes;
    int count = COUNT;
    float got[COUNT];
    void *arguments[] = {&out, &in, &count};

    CHECK(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "fir_filter"));
    CHECK(cuKernelGetFunction(&function, kernel));
    CHECK(cuLibraryGetGlobal(&taps, &bytes, library, "taps"));
    CHECK(cuMemcpyHtoD(taps, s->taps, bytes));
    CHECK(cuMemsetD8(out, 0, sizeof(got)));
    CHECK(cuLaunchKernelEx(&config, function, arguments, NULL));
    CHECK(cuMemcpyDtoH(got, out, sizeof(got)));
    CHECK(cuLibraryUnload(library));
    return differing("filtered by the library", got, s->filtered);
}

int main(int argc, char **argv)
{
    const struct ramp ramp = {0.5, 0.001f, 3, COUNT};
    const int primary = argc > 1 && !strcmp(argv[1], "--primary");
    static struct signal signal;
    char path[4096];
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUdeviceptr in, out, base;
    size_t size;
    unsigned int wrong = 0;
    int devices, version;

    if (argc > 1 + primary) {
        fprintf(stderr, "usage: %s [--primary]\n", argv[0]);
        return 2;
    }
    ptx_path(path, sizeof(path));
    expect(&signal, &ramp);
    CHECK(cuInit(0));
    CHECK(cuDriverGetVersion(&version));
    CHECK(cuDeviceGetCount(&devices));
    CHECK(cuDeviceGet(&device, 0));
    context = open_context(device, primary);
    module = load_module(path);
    CHECK(cuMemAlloc(&in, sizeof(signal.in)));
    CHECK(cuMemAlloc(&out, sizeof(signal.filtered)));
    CHECK(cuMemGetAddressRange(&base, &size, in + sizeof(signal.in) / 2));
    if (base != in || size != sizeof(signal.in))
        wrong++;

    printf("driver: %d samples, %d taps\n", COUNT, TAPS);
    wrong += filter(module, &signal, in, out);
    wrong += add_ramp(module, &signal, &ramp, out);
    wrong += filter_from_library(path, &signal, in, out);
    printf("self-check: %s\n", wrong ? "differs" : "ok");

    CHECK(cuMemFree(in));
    CHECK(cuMemFree(out));
    CHECK(cuModuleUnload(module));
    if (primary)
        CHECK(cuDevicePrimaryCtxRelease(device));
    else
        CHECK(cuCtxDestroy(context));
    return wrong ? 1 : 0;
}
