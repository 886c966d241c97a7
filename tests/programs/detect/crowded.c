/* crowded.c COUNT - COUNT allocations live at the same time. Ten times a launch writes behind the
 * end of one that it was not given, and that one is freed next. */
#include <stdio.h>
#include <stdlib.h>

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "../must.h"

enum { BYTES = 256, VICTIMS = 10 };

static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry write_far(.param .u64 p, .param .u64 offset)\n{\n"
    "\t.reg .b64 %rd<3>;\n\t.reg .b32 %r<2>;\n"
    "\tld.param.u64 %rd1, [p];\n\tld.param.u64 %rd2, [offset];\n\tadd.u64 %rd1, %rd1, %rd2;\n"
    "\tmov.u32 %r1, 1;\n\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n";

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    CUfunction write_far;
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 6000;
    CUdeviceptr *p = calloc(count, sizeof *p);
    if (!p || count < 2 * VICTIMS)
        return 2;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&write_far, module, "write_far"));
    for (size_t i = 0; i < count; i++)
        MUST(cuMemAlloc_v2(&p[i], BYTES));
    for (size_t k = 1; k <= VICTIMS; k++) {
        size_t victim = count - 1 - k * (count / (VICTIMS + 2));
        unsigned long long offset = p[victim] + BYTES - p[0];
        void *arguments[] = {&p[0], &offset};
        MUST(cuLaunchKernel(write_far, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        MUST(cuCtxSynchronize());
        MUST(cuMemFree_v2(p[victim]));
    }
    puts("ten are gone");
    return 0;
}
