// Graphs in numbers: one with a thousand nodes, one launched a thousand times, one in each of eight threads and streams,
// executable graphs that are destroyed while they run, made and changed again and again. All sums are known.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define MUST_EXIT 2
#include "../must.h"

enum { N = 32, NODES = 1000, LAUNCHES = 1000, THREADS = 8, EACH = 50, LIVES = 100 };

__global__ void count(unsigned *counters, unsigned by)
{
    counters[threadIdx.x] += by;
}

static cudaGraphExec_t chain(unsigned *counters, int nodes, unsigned by, cudaStream_t s)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < nodes; i++)
        count<<<1, N, 0, s>>>(counters, by);
    MUST(cudaStreamEndCapture(s, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return exec;
}

static void must_be(const char *what, const unsigned *counters, unsigned expected)
{
    unsigned got[N];
    int wrong = 0;
    MUST(cudaMemcpy(got, counters, sizeof got, cudaMemcpyDeviceToHost));
    for (unsigned g : got)
        wrong += g != expected;
    std::printf("%s: %u, %d wrong\n", what, expected, wrong);
    if (wrong)
        std::exit(1);
}

static unsigned *counters()
{
    unsigned *made;
    MUST(cudaMalloc((void **)&made, N * sizeof *made));
    MUST(cudaMemset(made, 0, N * sizeof *made));
    MUST(cudaDeviceSynchronize());
    return made;
}

static void one_thread(unsigned *mine, unsigned by)
{
    cudaStream_t s;
    MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    cudaGraphExec_t exec = chain(mine, 3, by, s);
    for (int i = 0; i < EACH; i++)
        MUST(cudaGraphLaunch(exec, s));
    MUST(cudaGraphExecDestroy(exec)); // while it runs
    MUST(cudaStreamSynchronize(s));
    MUST(cudaStreamDestroy(s));
}

// A graph by hand whose kernel gets another argument in each life, and once more in between.
static void lives(unsigned *at, cudaStream_t s)
{
    for (unsigned life = 0; life < LIVES; life++) {
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        cudaGraphNode_t node;
        unsigned by = life;
        void *arguments[] = {(void *)&at, &by};
        cudaKernelNodeParams p = {};
        p.func = (void *)count;
        p.gridDim = dim3(1);
        p.blockDim = dim3(N);
        p.kernelParams = arguments;
        MUST(cudaGraphCreate(&graph, 0));
        MUST(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &p));
        MUST(cudaGraphInstantiate(&exec, graph, 0));
        MUST(cudaGraphLaunch(exec, s));
        by = 1;
        MUST(cudaGraphExecKernelNodeSetParams(exec, node, &p));
        MUST(cudaGraphLaunch(exec, s));
        MUST(cudaGraphExecDestroy(exec));
        MUST(cudaGraphDestroy(graph));
    }
    MUST(cudaStreamSynchronize(s));
}

int main()
{
    cudaStream_t s;
    MUST(cudaStreamCreate(&s));
    unsigned *a = counters(), *b = counters(), *c = counters();
    cudaGraphExec_t exec = chain(a, NODES, 2, s);
    for (int i = 0; i < 2; i++)
        MUST(cudaGraphLaunch(exec, s));
    MUST(cudaStreamSynchronize(s));
    MUST(cudaGraphExecDestroy(exec));
    must_be("many nodes", a, 2 * 2 * NODES);

    exec = chain(b, 2, 1, s);
    for (int i = 0; i < LAUNCHES; i++)
        MUST(cudaGraphLaunch(exec, s));
    MUST(cudaStreamSynchronize(s));
    MUST(cudaGraphExecDestroy(exec));
    must_be("many launches", b, 2 * LAUNCHES);

    std::vector<std::thread> threads;
    std::vector<unsigned *> each;
    for (unsigned i = 0; i < THREADS; i++)
        each.push_back(counters());
    for (unsigned i = 0; i < THREADS; i++)
        threads.emplace_back(one_thread, each[i], i + 1);
    for (std::thread &thread : threads)
        thread.join();
    for (unsigned i = 0; i < THREADS; i++)
        must_be("a thread", each[i], 3 * EACH * (i + 1));

    lives(c, s);
    must_be("many graphs", c, LIVES * (LIVES - 1) / 2 + LIVES);
    for (unsigned *p : each)
        MUST(cudaFree(p));
    for (unsigned *p : {a, b, c})
        MUST(cudaFree(p));
    MUST(cudaStreamDestroy(s));
    std::printf("passed\n");
    return 0;
}
