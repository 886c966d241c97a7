// A loop that the device decides about: a graph whose conditional node runs its body until a kernel says that it is done.
// Each turn is a Collatz step of one number; the host counts the same steps.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define MUST_EXIT 2
#include "../must.h"

__global__ void collatz(unsigned long long *state, cudaGraphConditionalHandle handle)
{
    unsigned long long n = state[0];
    if (n > 1) {
        state[0] = n % 2 ? 3 * n + 1 : n / 2;
        state[1]++;
    }
    cudaGraphSetConditional(handle, state[0] > 1);
}

static unsigned host_steps(unsigned long long n)
{
    unsigned steps = 0;
    for (; n > 1; steps++)
        n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

int main()
{
    unsigned long long *state;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t loop, body;
    cudaGraphConditionalHandle handle;
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMalloc((void **)&state, 2 * sizeof *state));
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams p = {};
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = handle;
    p.conditional.type = cudaGraphCondTypeWhile;
    p.conditional.size = 1;
    MUST(cudaGraphAddNode(&loop, graph, nullptr, nullptr, 0, &p));
    void *arguments[] = {&state, &handle};
    cudaKernelNodeParams k = {};
    k.func = (void *)collatz;
    k.gridDim = k.blockDim = dim3(1);
    k.kernelParams = arguments;
    MUST(cudaGraphAddKernelNode(&body, p.conditional.phGraph_out[0], nullptr, 0, &k));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    int wrong = 0;
    for (unsigned long long n = 1; n < 30; n += 4) {
        unsigned long long start[2] = {n, 0}, end[2];
        MUST(cudaMemcpy(state, start, sizeof start, cudaMemcpyHostToDevice));
        MUST(cudaGraphLaunch(exec, stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaMemcpy(end, state, sizeof end, cudaMemcpyDeviceToHost));
        std::printf("%llu: %llu steps\n", n, end[1]);
        wrong += end[0] != 1 || end[1] != host_steps(n);
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(state));
    MUST(cudaStreamDestroy(stream));
    std::printf("%s\n", wrong ? "failed" : "passed");
    return wrong != 0;
}
