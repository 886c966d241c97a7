/* pools.c - memory of a pool that is used and freed in another stream than the one it was made in,
 * which has fallen far behind; its next owner gets the same addresses and must find there what it
 * wrote. Prints how many bytes are not. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../must.h"

/* As large in memory, but the second reaches to where a redzone of the first may have been. */
enum { FIRST = 1030, SECOND = 1270, BEHIND = 100 };

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry wait_for(.param .u64 flag)\n{\n"
    "\t.reg .pred %p1;\n\t.reg .b32 %r1;\n\t.reg .b64 %rd1;\n"
    "\tld.param.u64 %rd1, [flag];\n"
    "AGAIN:\n\tld.volatile.global.u32 %r1, [%rd1];\n\tsetp.eq.u32 %p1, %r1, 0;\n\t@%p1 bra AGAIN;\n"
    "\tret;\n}\n";

int main(void)
{
    CUcontext context;
    CUmodule module;
    CUfunction wait_for;
    CUstream makes, uses;
    CUevent made, used;
    CUdeviceptr first, second, flag_device;
    volatile unsigned *flag;
    unsigned char host[SECOND];
    unsigned wrong = 0;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&wait_for, module, "wait_for"));
    MUST(cuStreamCreate(&makes, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&uses, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&used, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemHostAlloc((void **)&flag, sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
    MUST(cuMemHostGetDevicePointer(&flag_device, (void *)flag, 0));
    *flag = 0;

    MUST(cuMemAllocAsync(&first, FIRST, makes));
    MUST(cuEventRecord(made, makes));
    MUST(cuStreamWaitEvent(uses, made, 0));
    MUST(cuMemsetD8Async(first, 1, FIRST, uses));
    void *arguments[] = {&flag_device};
    for (int i = 0; i < BEHIND; i++)
        MUST(cuLaunchKernel(wait_for, 1, 1, 1, 1, 1, 1, 0, makes, arguments, NULL));
    MUST(cuEventRecord(used, uses));
    MUST(cuEventSynchronize(used));
    MUST(cuMemFreeAsync(first, uses));
    MUST(cuMemAllocAsync(&second, SECOND, uses));
    MUST(cuMemsetD8Async(second, 0x5a, SECOND, uses));
    MUST(cuStreamSynchronize(uses));
    *flag = 1;
    MUST(cuStreamSynchronize(makes));
    MUST(cuMemcpyDtoH(host, second, SECOND));
    for (int i = 0; i < SECOND; i++)
        wrong += host[i] != 0x5a;
    MUST(cuMemFreeAsync(second, uses));
    MUST(cuStreamSynchronize(uses));
    printf("%u bytes are not what was written\n", wrong);
    return 0;
}
