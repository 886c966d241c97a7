/* A net of two layers, run twice by two threads and marked with NVTX as programs mark theirs: pushed ranges in nested
 * functions, a domain of its own, registered and wide strings, ranges with start and end, marks; the first range is
 * pushed before the first CUDA call.
 *
 * With -DFAULT_TAIL_WRITE the second layer's kernel stores one element too many. */
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <thread>

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include "../must.h"

constexpr int ELEMENTS = 1000;

__global__ void scale(float *x, float by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= by;
}

__global__ void shift(float *x, float by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FAULT_TAIL_WRITE
    if (i <= n) /* FAULT: tail_write */
#else
    if (i < n)
#endif
        x[i] += by;
}

static nvtxDomainHandle_t optimiser;
static nvtxStringHandle_t update;

static nvtxEventAttributes_t registered(nvtxStringHandle_t string)
{
    nvtxEventAttributes_t a = {};
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = string;
    return a;
}

static void forward(float *x)
{
    const int blocks = (ELEMENTS + 255) / 256;
    nvtxRangePushA("layers");
    nvtxRangePushA("0");
    scale<<<blocks, 256>>>(x, 2.0f, ELEMENTS);
    MUST(cudaGetLastError());
    nvtxRangePop();
    nvtxRangePushW(L"1.m\u00fcll");
    shift<<<blocks, 256>>>(x, 1.0f, ELEMENTS);
    MUST(cudaGetLastError());
    nvtxRangePop();
    nvtxRangePop();
}

static float run(int steps)
{
    float *x, first;
    MUST(cudaMalloc(&x, ELEMENTS * sizeof *x));
    MUST(cudaMemset(x, 0, ELEMENTS * sizeof *x));
    for (int step = 0; step < steps; step++) {
        nvtxEventAttributes_t a = registered(update);
        nvtxRangePushA("step");
        forward(x);
        nvtxDomainRangePushEx(optimiser, &a);
        scale<<<4, 256>>>(x, 0.5f, ELEMENTS);
        MUST(cudaGetLastError());
        nvtxDomainRangePop(optimiser);
        nvtxRangePop();
        nvtxMarkA("step done");
    }
    MUST(cudaMemcpy(&first, x, sizeof first, cudaMemcpyDeviceToHost));
    MUST(cudaFree(x));
    return first;
}

int main(void)
{
    int push = nvtxRangePushA("program");
    optimiser = nvtxDomainCreateA("optimiser");
    update = nvtxDomainRegisterStringA(optimiser, "update");
    nvtxRangeId_t whole = nvtxRangeStartA("all of it");
    float here = run(2), there = 0;
    std::thread other([&] { there = run(1); });
    other.join();
    scale<<<1, 1>>>(nullptr, 0.0f, 0);
    nvtxRangeEnd(whole);
    int pop = nvtxRangePop(), none = nvtxRangePop();
    scale<<<1, 1>>>(nullptr, 0.0f, 0);
    MUST(cudaDeviceSynchronize());
    nvtxDomainDestroy(optimiser);
    std::printf("levels %d %d %d, results %g %g\n", push, pop, none, here, there);
    return here == 1.0f && there == 0.5f ? 0 : 1;
}
