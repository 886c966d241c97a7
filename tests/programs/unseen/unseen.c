/* unseen.c - a sound program whose device memory is written in ways that are not copies or kernels
 * one by one: a batch of copies, a batch of boxes, stream memory operations. A kernel then reads
 * all of it, and what it finds decides what it stores. A tool that takes these words for never
 * written would be wrong. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "../must.h"

enum { WORDS = 48 };

/* out[in[i]] = i: a store whose place depends on the words. */
static const char PTX[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry place(.param .u64 in, .param .u64 out) {\n"
    "  .reg .u64 %rd<5>; .reg .u32 %r<3>;\n"
    "  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x;\n"
    "  mul.wide.u32 %rd3, %r1, 4; add.u64 %rd1, %rd1, %rd3; ld.global.u32 %r2, [%rd1];\n"
    "  mul.wide.u32 %rd4, %r2, 4; add.u64 %rd2, %rd2, %rd4; st.global.u32 [%rd2], %r1; ret;\n}\n";

int main(void)
{
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction place;
    CUstream stream;
    CUdeviceptr in, out;
    unsigned words[WORDS], back[WORDS];
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, PTX));
    MUST(cuModuleGetFunction(&place, module, "place"));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAlloc(&in, sizeof words));
    MUST(cuMemAlloc(&out, sizeof words));
    for (unsigned i = 0; i < WORDS; i++)
        words[i] = WORDS - 1 - i;

    /* The first third by a batch of copies, the second by a box, the rest by the stream itself. */
    CUdeviceptr to[2] = {in, in + 32}, from[2] = {(CUdeviceptr)words, (CUdeviceptr)&words[8]};
    size_t sizes[2] = {32, 32}, start = 0;
    CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    MUST(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &start, 1, stream));
    CUDA_MEMCPY3D_BATCH_OP box = {
        .src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
                .op.ptr = {.ptr = (CUdeviceptr)&words[16], .rowLength = 16}},
        .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
                .op.ptr = {.ptr = in + 64, .rowLength = 16}},
        .extent = {16, 4, 1},
        .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    MUST(cuMemcpy3DBatchAsync(1, &box, 0, stream));
    for (unsigned i = 32; i < WORDS; i += 2) {
        MUST(cuStreamWriteValue32(stream, in + i * 4, words[i], 0));
        CUstreamBatchMemOpParams p = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
                                                     .address = in + (i + 1) * 4,
                                                     .value = words[i + 1]}};
        MUST(cuStreamBatchMemOp(stream, 1, &p, 0));
    }
    MUST(cuStreamWaitValue32(stream, in + (WORDS - 1) * 4, words[WORDS - 1],
                              CU_STREAM_WAIT_VALUE_EQ));
    MUST(cuLaunchKernel(place, 1, 1, 1, WORDS, 1, 1, 0, stream, (void *[]){&in, &out}, NULL));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH(back, out, sizeof back));
    for (unsigned i = 0; i < WORDS; i++)
        if (back[i] != WORDS - 1 - i) {
            printf("unseen: word %u is %u\n", i, back[i]);
            return 1;
        }
    MUST(cuMemFree(in));
    MUST(cuMemFree(out));
    MUST(cuStreamDestroy(stream));
    puts("unseen: passed");
    return 0;
}
