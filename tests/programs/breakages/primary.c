/* primary.c - a device's primary context that ends while it is not current, again and again, with
 * memory, streams and events left in it; and one that ends while a context of the program's own is
 * current. A library's variable has another value in each context. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "../must.h"

enum { COUNT = 64 };

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .align 4 .u32 base;\n"
    ".visible .entry number(.param .u64 out)\n{\n"
    "\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n"
    "\tld.param.u64 %rd1, [out];\n\tld.global.u32 %r1, [base];\n\tmov.u32 %r2, %tid.x;\n"
    "\tmul.wide.u32 %rd2, %r2, 4;\n\tadd.u64 %rd3, %rd1, %rd2;\n\tadd.u32 %r3, %r1, %r2;\n"
    "\tst.global.u32 [%rd3], %r3;\n\tret;\n}\n";

static CUlibrary library;
static CUkernel kernel;

static unsigned sum_of(CUdeviceptr out)
{
    unsigned host[COUNT], sum = 0;
    MUST(cuMemcpyDtoH(host, out, sizeof host));
    for (int i = 0; i < COUNT; i++)
        sum += host[i];
    return sum;
}

/* In the current context; `base` has not been asked for in it before. */
static unsigned work(unsigned value, CUdeviceptr *left)
{
    CUdeviceptr out, base;
    CUstream stream;
    CUevent event;
    size_t bytes;
    MUST(cuLibraryGetGlobal(&base, &bytes, library, "base"));
    MUST(cuMemsetD32(base, value, 1));
    MUST(cuMemAlloc(&out, COUNT * sizeof(unsigned)));
    MUST(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    MUST(cuEventCreate(&event, CU_EVENT_DEFAULT));
    void *arguments[] = {&out};
    for (int i = 0; i < 3; i++)
        MUST(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, COUNT, 1, 1, 0, stream, arguments, NULL));
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamSynchronize(stream));
    *left = out;
    return sum_of(out);
}

static CUcontext retain(void)
{
    CUcontext primary;
    MUST(cuDevicePrimaryCtxRetain(&primary, 0));
    MUST(cuCtxSetCurrent(primary));
    return primary;
}

int main(void)
{
    unsigned sum = 0;
    CUdeviceptr left, own_left;
    CUcontext own;
    MUST(cuInit(0));
    MUST(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "number"));
    for (unsigned round = 0; round < 6; round++) {
        retain();
        sum += work(round * 100, &left);
        MUST(cuCtxSetCurrent(NULL));
        if (round % 2)
            MUST(cuDevicePrimaryCtxReset(0));
        MUST(cuDevicePrimaryCtxRelease(0));
    }
    printf("not current: %u\n", sum);

#if CUDA_VERSION >= 13000
    MUST(cuCtxCreate(&own, NULL, 0, 0));
#else
    MUST(cuCtxCreate(&own, 0, 0));
#endif
    sum = work(7, &own_left);
    for (unsigned round = 0; round < 4; round++) {
        retain();
        sum += work(round * 100, &left);
        MUST(cuCtxSetCurrent(own));
        if (round % 2)
            MUST(cuDevicePrimaryCtxReset(0));
        MUST(cuDevicePrimaryCtxRelease(0));
        sum += sum_of(own_left); /* all of this lives on */
    }
    MUST(cuMemFree(own_left));
    sum += work(9, &own_left);
    MUST(cuMemFree(own_left));
    MUST(cuCtxDestroy(own));
    printf("another one is current: %u\n", sum);
    return 0;
}
