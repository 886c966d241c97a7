// Small graphs made in every way: captured, built by hand, changed before a launch, with two branches. Built with one
// -DFAULT_NAME, one kernel of one of them does something wrong, each time that graph is launched.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define MUST_EXIT 2
#include "../must.h"

enum { N = 300, BLOCK = 64, GRID = (N + BLOCK) / BLOCK, ROUNDS = 3 };

#ifdef FAULT_CAPTURED_WRITE
enum { CAPTURED = N + 1 };
#else
enum { CAPTURED = N };
#endif
#ifdef FAULT_EXPLICIT_WRITE
enum { EXPLICIT = N + 1 };
#else
enum { EXPLICIT = N };
#endif
#ifdef FAULT_UPDATED_WRITE
enum { UPDATED = N + 1 };
#else
enum { UPDATED = N };
#endif
#ifdef FAULT_BRANCH_WRITE
enum { SECOND = N + 1 };
#else
enum { SECOND = N };
#endif

__global__ void ramp(float *to, float step, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = step * (float)i; /* FAULT: captured_write */
}

__global__ void twice(float *to, const float *from, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = 2.0f * from[i < N ? i : 0]; /* FAULT: explicit_write */
}

__global__ void root(float *to, const float *from, float shift, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = sqrtf(from[i < N ? i : 0] + shift); /* FAULT: branch_write */
}

__global__ void sum(float *to, const float *a, const float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = 0.3f * a[i] + b[i]; // one rounding or two, as the device likes
}

struct buffers {
    float *a, *b, *c, *d;
};

static void must_equal(const char *what, const float *device, const std::vector<float> &expected)
{
    std::vector<float> got(N);
    int wrong = 0;
    MUST(cudaMemcpy(got.data(), device, N * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        wrong += std::fabs(got[i] - expected[i]) > 1e-6f * std::fabs(expected[i]);
    std::printf("%s: %d of %d numbers differ\n", what, wrong, N);
}

static void launch(cudaGraphExec_t exec, cudaStream_t s)
{
    for (int round = 0; round < ROUNDS; round++)
        MUST(cudaGraphLaunch(exec, s));
    MUST(cudaStreamSynchronize(s));
}

static void captured(const buffers &m, cudaStream_t s)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    ramp<<<GRID, BLOCK, 0, s>>>(m.a, 0.5f, CAPTURED);
    twice<<<GRID, BLOCK, 0, s>>>(m.b, m.a, N);
    MUST(cudaStreamEndCapture(s, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph)); // the executable one lives on
    launch(exec, s);
    std::vector<float> expected(N);
    for (int i = 0; i < N; i++)
        expected[i] = (float)i;
    must_equal("captured", m.b, expected);
    MUST(cudaGraphExecDestroy(exec));
}

static cudaGraphNode_t node(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, void *function, void **params)
{
    cudaGraphNode_t made;
    cudaKernelNodeParams p = {};
    p.func = function;
    p.gridDim = dim3(GRID);
    p.blockDim = dim3(BLOCK);
    p.kernelParams = params;
    MUST(cudaGraphAddKernelNode(&made, graph, after.data(), after.size(), &p));
    return made;
}

static void change(cudaGraphExec_t exec, cudaGraphNode_t at, void **params)
{
    cudaKernelNodeParams p;
    MUST(cudaGraphKernelNodeGetParams(at, &p));
    p.kernelParams = params;
    MUST(cudaGraphExecKernelNodeSetParams(exec, at, &p));
}

// set c; a = ramp; b = twice a; c = b. Then with another step, then with a longer ramp.
static void by_hand(const buffers &m, cudaStream_t s)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t clear, copied;
    float step = 1.0f;
    int n = N, count = EXPLICIT;
    MUST(cudaGraphCreate(&graph, 0));
    cudaMemsetParams set = {};
    set.dst = m.c;
    set.elementSize = 4;
    set.width = N;
    set.height = 1;
    void *ramp_a[] = {(void *)&m.a, &step, &n}, *twice_b[] = {(void *)&m.b, (void *)&m.a, &count};
    MUST(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &set));
    cudaGraphNode_t a = node(graph, {}, (void *)ramp, ramp_a);
    cudaGraphNode_t b = node(graph, {a}, (void *)twice, twice_b);
    cudaGraphNode_t last[] = {b, clear};
    MUST(cudaGraphAddMemcpyNode1D(&copied, graph, last, 2, m.c, m.b, N * sizeof(float), cudaMemcpyDeviceToDevice));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    launch(exec, s);
    std::vector<float> expected(N);
    for (int i = 0; i < N; i++)
        expected[i] = 2.0f * (float)i;
    must_equal("by hand", m.c, expected);
    float other = 0.25f;
    count = N;
    int longer = UPDATED;
    void *ramp_other[] = {(void *)&m.a, &other, &longer};
    change(exec, a, ramp_other);
    change(exec, b, twice_b);
    launch(exec, s);
    for (int i = 0; i < N; i++)
        expected[i] = 0.5f * (float)i;
    must_equal("changed", m.c, expected);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

// a = ramp; b = twice a beside c = root a; d = 0.3 b + c.
static void branches(const buffers &m, cudaStream_t s)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float step = 4.0f, shift = 1.0f;
    int n = N, second = SECOND;
#ifdef FAULT_NAN
    shift = -8.0f;
#endif
    MUST(cudaGraphCreate(&graph, 0));
    void *ramp_a[] = {(void *)&m.a, &step, &n}, *twice_b[] = {(void *)&m.b, (void *)&m.a, &n};
    void *root_c[] = {(void *)&m.c, (void *)&m.a, &shift, &second};
    void *sum_d[] = {(void *)&m.d, (void *)&m.b, (void *)&m.c, &n};
    cudaGraphNode_t a = node(graph, {}, (void *)ramp, ramp_a);
    cudaGraphNode_t b = node(graph, {a}, (void *)twice, twice_b);
    cudaGraphNode_t c = node(graph, {a}, (void *)root, root_c);
#ifdef FAULT_BRANCH_RACE
    std::vector<cudaGraphNode_t> before = {b}; // c is forgotten
    (void)c;
#else
    std::vector<cudaGraphNode_t> before = {b, c};
#endif
    node(graph, before, (void *)sum, sum_d);
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaMemsetAsync(m.c, 0, N * sizeof(float), s));
    launch(exec, s);
    std::vector<float> expected(N);
    for (int i = 0; i < N; i++)
        expected[i] = 0.3f * 8.0f * (float)i + sqrtf(4.0f * (float)i + shift);
    must_equal("branches", m.d, expected);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

int main()
{
    buffers m;
    cudaStream_t s;
    for (float **p : {&m.a, &m.b, &m.c, &m.d})
        MUST(cudaMalloc((void **)p, N * sizeof(float)));
    MUST(cudaStreamCreate(&s));
    captured(m, s);
    by_hand(m, s);
    branches(m, s);
    MUST(cudaStreamDestroy(s));
    for (float *p : {m.a, m.b, m.c, m.d})
        MUST(cudaFree(p));
    std::printf("done\n");
    return 0;
}
