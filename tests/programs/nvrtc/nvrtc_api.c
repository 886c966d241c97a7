/*
 * nvrtc_api.c - a program that compiles its kernel while it runs, for a virtual architecture, and
 * launches the PTX through the driver API.
 *
 * With --sm it asks NVRTC for machine code of sm_75 instead, prints what the driver says to that,
 * and exits with 3.
 */
#include <cuda.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIXELS   1000
#define CHANNELS 3
#define BYTES    (PIXELS * CHANNELS)
#define ALPHA    77
#define THREADS  128

#define CHECK(call)       check((call), #call, __LINE__)
#define NVRTC_CHECK(call) nvrtc_check((call), #call, __LINE__)

/* The source is part of the program; the folder is given with -Wa,-I. */
__asm__(".section .rodata\n"
        ".global kernel_source\n"
        "kernel_source:\n"
        ".incbin \"nvrtc_kernel.cu\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char kernel_source[];

static void check(CUresult result, const char *call, int line)
{
    const char *name = "unknown error";

    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "nvrtc_api.c:%d: %s: %s\n", line, call, name);
    exit(1);
}

static void nvrtc_check(nvrtcResult result, const char *call, int line)
{
    if (result == NVRTC_SUCCESS)
        return;
    fprintf(stderr, "nvrtc_api.c:%d: %s: %s\n", line, call, nvrtcGetErrorString(result));
    exit(1);
}

static void *allocate(size_t bytes)
{
    void *p = calloc(1, bytes);

    if (!p) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

/* An image for cuModuleLoadData(), freed by the caller; the entry's mangled name goes to `name`. */
static char *compile(const char *architecture, int machine_code, char *name, size_t name_size)
{
    const char *expression = "blend_pixels<3>", *lowered;
    const char *options[] = {architecture, "--generate-line-info",
#ifdef FAULT_TAIL_WRITE
                             "--define-macro=FAULT_TAIL_WRITE",
#endif
                             "--std=c++17"};
    nvrtcProgram program;
    char *image;
    size_t size;

    NVRTC_CHECK(nvrtcCreateProgram(&program, kernel_source, "nvrtc_kernel.cu", 0, NULL, NULL));
    NVRTC_CHECK(nvrtcAddNameExpression(program, expression));
    if (nvrtcCompileProgram(program, sizeof(options) / sizeof(*options), options) !=
        NVRTC_SUCCESS) {
        NVRTC_CHECK(nvrtcGetProgramLogSize(program, &size));
        image = allocate(size);
        NVRTC_CHECK(nvrtcGetProgramLog(program, image));
        fprintf(stderr, "%s", image);
        exit(1);
    }
    NVRTC_CHECK(nvrtcGetLoweredName(program, expression, &lowered));
    snprintf(name, name_size, "%s", lowered);
    if (machine_code) {
        NVRTC_CHECK(nvrtcGetCUBINSize(program, &size));
        image = allocate(size);
        NVRTC_CHECK(nvrtcGetCUBIN(program, image));
    } else {
        NVRTC_CHECK(nvrtcGetPTXSize(program, &size));
        image = allocate(size);
        NVRTC_CHECK(nvrtcGetPTX(program, image));
    }
    NVRTC_CHECK(nvrtcDestroyProgram(&program));
    return image;
}

/* Blends two test images; returns how many bytes are wrong. */
static int blend(CUmodule module, const char *name)
{
    unsigned char over[BYTES], under[BYTES], got[BYTES];
    int pixels = PIXELS, alpha = ALPHA, wrong = 0;
    CUdeviceptr device_over, device_under, device_out;
    void *arguments[] = {&device_out, &device_over, &device_under, &pixels, &alpha};
    CUfunction function;

    for (int i = 0; i < BYTES; i++) {
        over[i] = (unsigned char)(i * 7 + i / 11);
        under[i] = (unsigned char)(i * 3 + i / 5);
    }
    CHECK(cuModuleGetFunction(&function, module, name));
    CHECK(cuMemAlloc(&device_over, BYTES));
    CHECK(cuMemAlloc(&device_under, BYTES));
    CHECK(cuMemAlloc(&device_out, BYTES));
    CHECK(cuMemcpyHtoD(device_over, over, BYTES));
    CHECK(cuMemcpyHtoD(device_under, under, BYTES));
    CHECK(cuLaunchKernel(function, (PIXELS + THREADS - 1) / THREADS, 1, 1, THREADS, 1, 1, 0, NULL,
                         arguments, NULL));
    CHECK(cuMemcpyDtoH(got, device_out, BYTES));
    for (int i = 0; i < BYTES; i++)
        wrong += got[i] != (over[i] * ALPHA + under[i] * (255 - ALPHA) + 127) / 255;
    CHECK(cuMemFree(device_over));
    CHECK(cuMemFree(device_under));
    CHECK(cuMemFree(device_out));
    return wrong;
}

int main(int argc, char **argv)
{
    const int machine_code = argc > 1 && !strcmp(argv[1], "--sm");
    char name[256], *image;
    const char *answer = "unknown error";
    CUdevice device;
    CUcontext context;
    CUmodule module;
    int wrong;

    if (argc > 1 + machine_code) {
        fprintf(stderr, "usage: %s [--sm]\n", argv[0]);
        return 2;
    }
    image = compile(machine_code ? "--gpu-architecture=sm_75" : "--gpu-architecture=compute_75",
                    machine_code, name, sizeof(name));
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    if (machine_code) {
        cuGetErrorName(cuModuleLoadData(&module, image), &answer);
        printf("nvrtc: machine code for sm_75: %s\n", answer);
        return 3;
    }
    CHECK(cuModuleLoadData(&module, image));
    free(image);
    wrong = blend(module, name);
    printf("nvrtc: %d of %d bytes differ\n", wrong, BYTES);
    printf("self-check: %s\n", wrong ? "differs" : "ok");
    CHECK(cuModuleUnload(module));
    CHECK(cuDevicePrimaryCtxRelease(device));
    return wrong ? 1 : 0;
}
