/* capture_beside.c - while one thread captures in global mode, another one launches into a stream
 * of its own, which is allowed; the device is far behind. Prints how the captures ended. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../must.h"

enum { ROUNDS = 3, LAUNCHES = 300 };

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .align 4 .u32 unused;\n"
    ".visible .entry wait_for(.param .u64 flag)\n{\n"
    "\t.reg .pred %p1;\n\t.reg .b32 %r1;\n\t.reg .b64 %rd1;\n"
    "\tld.param.u64 %rd1, [flag];\n"
    "AGAIN:\n\tld.volatile.global.u32 %r1, [%rd1];\n\tsetp.eq.u32 %p1, %r1, 0;\n\t@%p1 bra AGAIN;\n"
    "\tret;\n}\n"
    ".visible .entry set(.param .u64 to)\n{\n\t.reg .b32 %r1;\n\t.reg .b64 %rd1;\n"
    "\tld.param.u64 %rd1, [to];\n\tmov.u32 %r1, 1;\n\tst.volatile.global.u32 [%rd1], "
    "%r1;\n\tret;\n}\n";

static CUcontext context;
static CUfunction wait_for, set;
static CUdeviceptr memory, flags_device;
static volatile unsigned *flags; /* go on; done */
static CUstream side;

static void launch(CUfunction f, CUdeviceptr a, CUstream stream, unsigned grid)
{
    void *arguments[] = {&a};
    MUST(cuLaunchKernel(f, grid, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static void *beside(void *unused)
{
    (void)unused;
    MUST(cuCtxSetCurrent(context));
    launch(wait_for, flags_device, side, 1);
    for (unsigned i = 0; i < LAUNCHES; i++)
        launch(set, memory, side, i % 100 + 1);
    launch(set, flags_device + 4, side, 1);
    flags[0] = 1;
    while (!flags[1])
        usleep(1000);
    return NULL;
}

int main(void)
{
    CUmodule module;
    CUstream stream;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&wait_for, module, "wait_for"));
    MUST(cuModuleGetFunction(&set, module, "set"));
    MUST(cuMemAlloc(&memory, 4096));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    MUST(cuMemHostAlloc((void **)&flags, 8, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&flags_device, (void *)flags, 0));
    for (int round = 0; round < ROUNDS; round++) {
        CUgraph graph = NULL;
        pthread_t thread;
        size_t nodes = 0;
        flags[0] = flags[1] = 0;
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        launch(set, memory, stream, 1);
        if (pthread_create(&thread, NULL, beside, NULL) || pthread_join(thread, NULL))
            return 2;
        launch(set, memory, stream, 1);
        MUST(cuStreamEndCapture(stream, &graph));
        MUST(cuGraphGetNodes(graph, NULL, &nodes));
        MUST(cuGraphDestroy(graph));
        printf("%zu nodes\n", nodes);
    }
    MUST(cuCtxSynchronize());
    MUST(cuMemFreeHost((void *)flags));
    MUST(cuMemFree(memory));
    return 0;
}
