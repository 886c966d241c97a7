/* contexts.c - many contexts, made and destroyed by many threads at once; handles come again; work in two at a time. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../must.h"

enum { THREADS = 16, ROUNDS = 4, COUNT = 64 };

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry number(.param .u64 out, .param .u32 value)\n{\n"
                          "\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n"
                          "\tld.param.u64 %rd1, [out];\n\tld.param.u32 %r1, [value];\n\tmov.u32 %r2, %tid.x;\n"
                          "\tmul.wide.u32 %rd2, %r2, 4;\n\tadd.u64 %rd3, %rd1, %rd2;\n\tadd.u32 %r3, %r1, %r2;\n"
                          "\tst.global.u32 [%rd3], %r3;\n\tret;\n}\n";

static void launch(CUfunction function, CUdeviceptr out, unsigned value, CUstream stream)
{
    void *arguments[] = {&out, &value};
    MUST(cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, stream, arguments, NULL));
}

static unsigned work(unsigned value)
{
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    CUstream stream;
    unsigned host[COUNT], sum = 0;
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&function, module, "number"));
    MUST(cuMemAlloc(&out, sizeof host));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned i = 0; i < 10; i++)
        launch(function, out, value + i, stream);
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(host, out, sizeof host));
    for (unsigned i = 0; i < COUNT; i++)
        sum += host[i];
    MUST(cuStreamDestroy(stream));
    MUST(cuMemFree(out));
    MUST(cuModuleUnload(module));
    return sum;
}

static pthread_barrier_t together;

static void *make_contexts(void *argument)
{
    unsigned number = (unsigned)(size_t)argument, sum = 0;
    CUdevice device;
    MUST(cuDeviceGet(&device, 0));
    for (unsigned round = 0; round < ROUNDS; round++) {
        CUcontext context;
        pthread_barrier_wait(&together);
#if CUDA_VERSION >= 13000
        MUST(cuCtxCreate(&context, NULL, 0, device));
#else
        MUST(cuCtxCreate(&context, 0, device));
#endif
        sum += work(number * 100 + round);
        MUST(cuCtxDestroy(context));
    }
    return (void *)(size_t)sum;
}

/* Two contexts of one thread, by turns, in both of which kernels are timed by whoever times them. */
static unsigned by_turns(void)
{
    CUcontext contexts[2];
    CUmodule modules[2];
    CUfunction functions[2];
    CUdeviceptr out[2];
    unsigned host[COUNT], sum = 0;
    CUdevice device;
    MUST(cuDeviceGet(&device, 0));
    for (int i = 0; i < 2; i++) {
#if CUDA_VERSION >= 13000
        MUST(cuCtxCreate(&contexts[i], NULL, 0, device));
#else
        MUST(cuCtxCreate(&contexts[i], 0, device));
#endif
        MUST(cuModuleLoadData(&modules[i], ptx));
        MUST(cuModuleGetFunction(&functions[i], modules[i], "number"));
        MUST(cuMemAlloc(&out[i], sizeof host));
    }
    for (unsigned n = 0; n < 200; n++) {
        MUST(cuCtxSetCurrent(contexts[n & 1]));
        launch(functions[n & 1], out[n & 1], n, NULL);
    }
    for (int i = 0; i < 2; i++) {
        MUST(cuCtxSetCurrent(contexts[i]));
        MUST(cuMemcpyDtoH(host, out[i], sizeof host));
        for (unsigned k = 0; k < COUNT; k++)
            sum += host[k];
        MUST(cuCtxDestroy(contexts[i]));
    }
    return sum;
}

int main(void)
{
    pthread_t threads[THREADS];
    unsigned sum = 0;
    MUST(cuInit(0));
    pthread_barrier_init(&together, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, make_contexts, (void *)i))
            return 2;
    for (int i = 0; i < THREADS; i++) {
        void *one;
        pthread_join(threads[i], &one);
        sum += (unsigned)(size_t)one;
    }
    printf("%u %u\n", sum, by_turns());
    return 0;
}
