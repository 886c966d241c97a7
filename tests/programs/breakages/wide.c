/* wide.c - a grid whose product needs 64 bits, and short kernels between two of the driver's own. For a driver that does
 * nothing: it would take days. */
#include <cuda.h>
#include <stdio.h>

int main(void)
{
    static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry wide(.param .u64 a)\n{\n\tret;\n}\n";
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr p;
    void *parameters[] = {&p};
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuModuleLoadData(&module, ptx) ||
        cuModuleGetFunction(&function, module, "wide") || cuMemAlloc(&p, 1000))
        return 2;
    for (int i = 0; i < 40; i++)
        if (cuLaunchKernel(function, 2147483647, 65535, 65535, 1024, 1, 1, 0, NULL, parameters, NULL))
            return 3;
    return cuCtxSynchronize() ? 4 : 0;
}
