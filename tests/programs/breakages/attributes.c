/* attributes.c - launches with attributes and with arguments in `extra`: both have to reach the driver. What each answers
 * shows it. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../must.h"

static const char ptx[] = ".version 7.0\n.target sm_60\n.address_size 64\n"
                          ".visible .entry sum(.param .u64 out, .param .u32 a, .param .u64 b)\n{\n"
                          "\t.reg .b64 %rd<6>;\n\t.reg .b32 %r<3>;\n"
                          "\tld.param.u64 %rd1, [out];\n\tld.param.u32 %r1, [a];\n\tld.param.u64 %rd2, [b];\n"
                          "\tcvt.u64.u32 %rd3, %r1;\n\tadd.u64 %rd4, %rd2, %rd3;\n\tst.global.u64 [%rd1], %rd4;\n\tret;\n}\n";

static CUfunction function;
static CUdeviceptr out;

static void say(const char *what, CUresult answer)
{
    unsigned long long value = 0;
    MUST(cuCtxSynchronize());
    MUST(cuMemcpyDtoH(&value, out, sizeof value));
    MUST(cuMemsetD8(out, 0, sizeof value));
    printf("%-24s %d, %llu\n", what, (int)answer, value);
}

static CUresult with(unsigned grid, CUlaunchAttribute *attributes, unsigned count, void **parameters, void **extra)
{
    CUlaunchConfig config = {
        .gridDimX = grid, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1};
    config.attrs = attributes;
    config.numAttrs = count;
    return cuLaunchKernelEx(&config, function, parameters, extra);
}

int main(void)
{
    CUcontext context;
    CUmodule module;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&function, module, "sum"));
    MUST(cuMemAlloc(&out, 8));

    struct {
        CUdeviceptr out;
        unsigned a;
        unsigned long long b;
    } packed = {out, 5, 1000};
    size_t bytes = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    void *swapped[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_END};
    void *parameters[] = {&packed.out, &packed.a, &packed.b};
    say("extra", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    packed.a = 6;
    say("extra, size first", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, swapped));
    packed.a = 7;
    say("both", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, extra));
    packed.a = 8;
    say("neither", cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    packed.a = 9;
    say("Ex, no attributes", with(1, NULL, 0, parameters, NULL));
    packed.a = 10;
    say("Ex, extra", with(1, NULL, 0, NULL, extra));
    CUlaunchAttribute attributes[3];
    memset(attributes, 0, sizeof attributes);
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[1].value.cooperative = 1;
    packed.a = 11;
    say("cooperative", with(1, attributes, 2, parameters, NULL));
    say("cooperative, too many", with(1u << 30, attributes, 2, parameters, NULL)); /* refused only with the attribute */
    attributes[2].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[2].value.clusterDim.x = 3; /* does not divide the grid */
    attributes[2].value.clusterDim.y = attributes[2].value.clusterDim.z = 1;
    say("cluster", with(4, attributes, 3, parameters, NULL) != CUDA_SUCCESS);
    attributes[0].id = (CUlaunchAttributeID)12345;
    say("unknown attribute", with(1, attributes, 1, parameters, NULL) != CUDA_SUCCESS);
    return 0;
}
