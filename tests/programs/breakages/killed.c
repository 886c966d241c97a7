/* killed.c FILE - launches kernels of several shapes, allocates, copies, and writes after each launch how many there were into
 * FILE (4 bytes, in one store), for whoever kills it and asks afterwards. */
#include <cuda.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LAUNCHES = 4000 };

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry store(.param .u64 out, .param .u32 value)\n{\n"
                          "\t.reg .b32 %r<3>;\n\t.reg .b64 %rd<4>;\n"
                          "\tld.param.u64 %rd1, [out];\n\tld.param.u32 %r1, [value];\n\tmov.u32 %r2, %tid.x;\n"
                          "\tmul.wide.u32 %rd2, %r2, 4;\n\tadd.u64 %rd3, %rd1, %rd2;\n\tst.global.u32 [%rd3], %r1;\n\tret;\n}\n"
                          ".visible .entry nothing()\n{\n\tret;\n}\n";

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    CUfunction store, nothing;
    CUdeviceptr p;
    unsigned host[64];
    int fd = argc > 1 ? open(argv[1], O_RDWR) : -1;
    unsigned *told = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (told == MAP_FAILED || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&store, module, "store") ||
        cuModuleGetFunction(&nothing, module, "nothing"))
        return 2;
    for (unsigned i = 0; i < LAUNCHES; i++) {
        void *arguments[] = {&p, &i};
        if (cuMemAlloc(&p, 256 + i))
            return 3;
        if (i % 3 ? cuLaunchKernel(store, 1, 1, 1, 1 + i % 64, 1, 1, 0, NULL, arguments, NULL)
                  : cuLaunchKernel(nothing, 1 + i % 7, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL))
            return 4;
        __atomic_store_n(told, i + 1, __ATOMIC_RELEASE);
        if (cuMemcpyDtoH(host, p, 256) || cuMemFree(p))
            return 5;
    }
    return 0;
}
