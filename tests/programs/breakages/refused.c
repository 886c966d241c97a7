/* refused.c - driver calls with null pointers, sizes of zero, handles that are gone or never were,
 * and calls after a fault of the device: every answer, as a number. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SAY(call) printf("%d  %s\n", (int)(call), #call)

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .align 4 .u32 number;\n"
    ".visible .entry kernel(.param .u64 a)\n{\n\t.reg .b64 %rd1;\n\t.reg .b32 %r1;\n"
    "\tld.param.u64 %rd1, [a];\n\tmov.u32 %r1, 7;\n\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n";

static void *const bad = (void *)(uintptr_t)16; /* nobody may look there */

static CUcontext context;
static CUmodule module;
static CUfunction kernel;

static CUresult launch(CUdeviceptr a, CUstream stream)
{
    void *arguments[] = {&a};
    return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static void before(void)
{
    CUdeviceptr p;
    SAY(cuMemAlloc_v2(&p, 16));
    SAY(cuLaunchKernel(bad, 1, 1, 1, 1, 1, 1, 0, NULL, bad, bad));
    SAY(cuMemcpy3DAsync_v2(bad, NULL));
    SAY(cuStreamSynchronize(NULL));
    SAY(cuModuleUnload(bad));
    SAY(cuInit(0));
    SAY(cuMemAlloc_v2(&p, 16)); /* no context */
    SAY(cuCtxSynchronize());
    SAY(cuStreamSynchronize(NULL));
    SAY(cuMemFree_v2(4711));
}

static void nothing(void)
{
    size_t size;
    CUdeviceptr p;
    SAY(cuDevicePrimaryCtxRetain(NULL, 0));
    SAY(cuDevicePrimaryCtxRetain(&context, 77));
    SAY(cuDevicePrimaryCtxRelease_v2(77));
    SAY(cuDevicePrimaryCtxReset_v2(-1));
    SAY(cuDevicePrimaryCtxRetain(&context, 0));
    SAY(cuCtxSetCurrent(context));
    SAY(cuModuleLoadData(NULL, ptx));
    SAY(cuModuleLoadData(&module, NULL));
    SAY(cuModuleLoad(&module, "/nowhere/at.all"));
    SAY(cuModuleLoad(&module, NULL));
    SAY(cuModuleLoadData(&module, ptx));
    SAY(cuModuleGetFunction(NULL, module, "kernel"));
    SAY(cuModuleGetFunction(&kernel, module, NULL));
    SAY(cuModuleGetFunction(&kernel, module, "no such kernel"));
    SAY(cuModuleGetFunction(&kernel, module, "kernel"));
    SAY(cuModuleGetGlobal_v2(NULL, NULL, module, "number"));
    SAY(cuModuleGetGlobal_v2(&p, NULL, module, "number"));
    SAY(cuModuleGetGlobal_v2(NULL, &size, module, "number"));
    SAY(cuModuleGetGlobal_v2(&p, &size, module, NULL));
    SAY(cuMemAlloc_v2(NULL, 16));
    SAY(cuMemAlloc_v2(&p, 0));
    SAY(cuMemAlloc_v2(&p, SIZE_MAX));
    SAY(cuMemAllocPitch_v2(NULL, &size, 16, 16, 4));
    SAY(cuMemAllocPitch_v2(&p, NULL, 16, 16, 4));
    SAY(cuMemAllocPitch_v2(&p, &size, 0, 16, 4));
    SAY(cuMemAllocPitch_v2(&p, &size, SIZE_MAX / 2, 16, 4));
    SAY(cuMemAllocManaged(NULL, 16, CU_MEM_ATTACH_GLOBAL));
    SAY(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
    SAY(cuMemAllocAsync(NULL, 16, NULL));
    p = 1;
    SAY(cuMemAllocAsync(&p, 0, NULL));
    printf("%d\n", p == 0);
    SAY(cuMemAllocFromPoolAsync(&p, 16, NULL, NULL));
    SAY(cuMemHostAlloc(NULL, 16, 0));
    SAY(cuMemAllocHost_v2((void **)&size, 0));
    SAY(cuMemHostRegister_v2(NULL, 16, 0));
    SAY(cuMemHostRegister_v2(&size, 0, 0));
    SAY(cuMemGetInfo_v2(NULL, NULL));
    SAY(cuMemGetAddressRange_v2(NULL, NULL, 4711));
    SAY(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_CONTEXT, 4711));
    SAY(cuStreamCreate(NULL, 0));
    SAY(cuStreamCreateWithPriority(NULL, 0, 0));
    SAY(cuEventCreate(NULL, 0));
    SAY(cuEventElapsedTime(NULL, NULL, NULL));
    SAY(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SAY(cuStreamEndCapture(NULL, NULL));
    SAY(cuGraphInstantiateWithFlags(NULL, NULL, 0));
    SAY(cuGraphLaunch(NULL, NULL));
    SAY(cuGraphExecDestroy(NULL));
    SAY(cuGraphDestroy(NULL));
    SAY(cuGraphDestroyNode(NULL));
    SAY(cuGraphAddNode_v2(NULL, NULL, NULL, NULL, 0, NULL));
    SAY(cuGraphExecNodeSetParams(NULL, NULL, NULL));
    SAY(cuIpcGetMemHandle(NULL, 0));
    SAY(cuMemPoolExportPointer(NULL, 0));
    SAY(cuMemPoolImportPointer(NULL, NULL, NULL));
    SAY(cuMemcpy2D_v2(NULL));
    SAY(cuMemcpy3DPeer(NULL));
    SAY(cuMemcpyHtoD_v2(0, bad, 16));
    SAY(cuMemcpyHtoD_v2(0, bad, 0));
    SAY(cuMemcpyBatchAsync_v2(NULL, NULL, NULL, 0, NULL, NULL, 0, NULL));
    SAY(cuMemsetD8_v2(0, 0, 16));
    SAY(cuMemMap(0, 0, 0, 0, 0));
    SAY(cuMemUnmap(0, 0));
    SAY(cuMemAddressReserve(NULL, 0, 0, 0, 0));
    SAY(cuMemAddressFree(0, 0));
    SAY(cuLibraryLoadData(NULL, ptx, NULL, NULL, 0, NULL, NULL, 0));
    SAY(cuLibraryUnload(NULL));
    SAY(cuModuleUnload(NULL));
    SAY(cuCtxDestroy_v2(NULL));
    SAY(cuStreamAttachMemAsync(NULL, 0, 0, CU_MEM_ATTACH_GLOBAL));
}

static void gone(void)
{
    CUstream stream;
    CUevent event;
    CUdeviceptr p;
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1};
    void *arguments[] = {&p};
    SAY(cuMemAlloc_v2(&p, 64));
    SAY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    SAY(cuEventCreate(&event, 0));
    SAY(cuStreamDestroy_v2(CU_STREAM_LEGACY));
    SAY(cuStreamDestroy_v2(CU_STREAM_PER_THREAD));
    SAY(cuStreamDestroy_v2(NULL));
    SAY(launch(p, NULL));
    SAY(cuStreamDestroy_v2(stream));
    SAY(cuStreamDestroy_v2(stream));
    SAY(launch(p, stream));
    SAY(cuStreamSynchronize(stream));
    SAY(cuMemcpyHtoDAsync_v2(p, &config, 16, stream));
    SAY(cuMemsetD32Async(p, 0, 4, stream));
    SAY(cuEventRecord(event, stream));
    SAY(cuEventDestroy_v2(event));
    SAY(cuEventDestroy_v2(event));
    SAY(cuEventRecord(event, NULL));
    SAY(cuStreamWaitEvent(NULL, event, 0));
    SAY(cuEventSynchronize(event));
    SAY(cuEventQuery(event));
    SAY(cuMemAllocAsync(&p, 16, stream));
    SAY(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, bad, bad));
    SAY(cuLaunchKernel(kernel, 0, 1, 1, 1, 1, 1, 0, NULL, bad, NULL));
    SAY(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 65, 0, NULL, bad, NULL));
    SAY(cuLaunchKernel(kernel, 0x80000000u, 1, 1, 1, 1, 1, 0, NULL, bad, NULL));
    SAY(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 1u << 30, NULL, arguments, NULL));
    config.numAttrs = 3;
    SAY(cuLaunchKernelEx(&config, NULL, bad, NULL));
    SAY(cuModuleUnload(module));
    SAY(cuModuleUnload(module));
    SAY(cuModuleGetFunction(&kernel, module, "kernel"));
    SAY(cuModuleLoadData(&module, ptx));
    SAY(cuModuleGetFunction(&kernel, module, "kernel"));
}

static void dead(void)
{
    CUdeviceptr p, q = 0;
    CUstream stream;
    unsigned word = 0;
    SAY(cuMemAlloc_v2(&p, 64));
    SAY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    SAY(launch(p, stream));
    SAY(cuStreamSynchronize(stream));
    SAY(launch(16, stream)); /* there is nothing */
    SAY(cuStreamSynchronize(stream));
    SAY(launch(p, stream));
    SAY(cuMemcpyDtoH_v2(&word, p, 4));
    SAY(cuMemAlloc_v2(&q, 64));
    SAY(cuMemAllocAsync(&q, 64, stream));
    SAY(cuMemFree_v2(p));
    SAY(cuStreamQuery(stream));
    SAY(cuStreamDestroy_v2(stream));
    SAY(cuCtxSynchronize());
    SAY(cuModuleUnload(module));
    SAY(cuDevicePrimaryCtxReset_v2(0));
    SAY(cuMemAlloc_v2(&q, 64));
}

int main(void)
{
    before();
    nothing();
    gone();
    dead();
    return 0;
}
