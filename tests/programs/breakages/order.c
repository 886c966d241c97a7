/* order.c WHAT - asks the stub driver (tests/stub) what it was asked, and when. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int count(const char *what)
{
    int (*stub_count)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "stub_count");
    return stub_count ? stub_count(what) : -1;
}

int main(int argc, char **argv)
{
    static const char ptx[] = ".version 7.0\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .u64 a)\n{\n\tret;\n}\n";
    static const char no_text[] = "\x01 no form of code that anybody knows";
    int layout = argc > 1 && strcmp(argv[1], "layout") == 0;
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr p;
    CUstream stream;
    void *parameters[] = {&p};
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc(&p, 4096) ||
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) || cuModuleLoadData(&module, layout ? no_text : ptx) ||
        cuModuleGetFunction(&function, module, "kernel"))
        return 2;
    if (layout) { /* nobody but the driver knows the parameters, and asking it may load the module */
        for (int i = 0; i < 5; i++)
            if (cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL))
                return 3;
        printf("asked before the first launch: %d\n", count("asked early"));
        return 0;
    }
    CUlaunchAttribute dependent;
    memset(&dependent, 0, sizeof dependent);
    dependent.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    dependent.value.programmaticStreamSerializationAllowed = 1;
    for (int i = 0; i < 40; i++) {
        CUlaunchConfig config = {
            .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1, .hStream = stream};
        config.attrs = &dependent;
        config.numAttrs = 1;
        if (cuLaunchKernelEx(&config, function, parameters, NULL))
            return 3;
    }
    if (cuStreamSynchronize(stream))
        return 4;
    printf("between dependent launches: %d\n", count("between"));
    return 0;
}
