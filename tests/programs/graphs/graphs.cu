// A chain of vector operations, three times: launch by launch, as a captured graph, and as one built by hand. All three
// must give the same numbers, which plain C on the host gives, too. Then the graphs are changed and launched again.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define MUST_EXIT 2
#include "../must.h"

enum { N = 1500, BLOCK = 128, GRID = (N + BLOCK - 1) / BLOCK, ROUNDS = 4 };

__global__ void scale(float *v, float factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] *= factor;
}

__global__ void add(float *to, const float *a, const float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = a[i] + b[i];
}

__global__ void smooth(float *to, const float *from, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FAULT_TAIL_WRITE
    if (i <= n) /* FAULT: tail_write */
        to[i] = 0.5f * from[i ? i - 1 : 0] + 0.5f * from[i < n ? i : n - 1];
#else
    if (i < n)
        to[i] = 0.5f * from[i ? i - 1 : 0] + 0.5f * from[i];
#endif
}

struct buffers {
    float *a, *b, *c;
    float *in, *out; // pinned
};

static void must_equal(const char *what, const float *got, const std::vector<float> &expected)
{
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += got[i] != expected[i];
    std::printf("%s: %d of %d numbers differ\n", what, wrong, N);
    if (wrong)
        std::exit(1);
}

// One round on the host: out = smooth(in * factor + smooth(in)).
static std::vector<float> host_round(const float *in, float factor)
{
    std::vector<float> a(N), b(N), c(N);
    for (int i = 0; i < N; i++)
        a[i] = in[i] * factor;
    for (int i = 0; i < N; i++)
        b[i] = 0.5f * in[i ? i - 1 : 0] + 0.5f * in[i];
    for (int i = 0; i < N; i++)
        a[i] = a[i] + b[i];
    for (int i = 0; i < N; i++)
        c[i] = 0.5f * a[i ? i - 1 : 0] + 0.5f * a[i];
    return c;
}

// The same on the device, on two streams.
static void device_round(const buffers &m, float factor, cudaStream_t s, cudaStream_t side, cudaEvent_t fork,
                         cudaEvent_t join)
{
    MUST(cudaMemcpyAsync(m.a, m.in, N * sizeof(float), cudaMemcpyHostToDevice, s));
    MUST(cudaEventRecord(fork, s));
    MUST(cudaStreamWaitEvent(side, fork, 0));
    smooth<<<GRID, BLOCK, 0, side>>>(m.b, m.a, N);
    MUST(cudaMemsetAsync(m.c, 0, N * sizeof(float), s));
    MUST(cudaEventRecord(join, side));
    MUST(cudaStreamWaitEvent(s, join, 0));
    scale<<<GRID, BLOCK, 0, s>>>(m.a, factor, N);
    add<<<GRID, BLOCK, 0, s>>>(m.a, m.a, m.b, N);
    smooth<<<GRID, BLOCK, 0, s>>>(m.c, m.a, N);
    MUST(cudaMemcpyAsync(m.out, m.c, N * sizeof(float), cudaMemcpyDeviceToHost, s));
    MUST(cudaGetLastError());
}

static void refill(const buffers &m, int round)
{
    for (int i = 0; i < N; i++) {
        m.in[i] = (float)((i * 37 + round * 11) % 101) * 0.25f;
        m.out[i] = -1;
    }
}

static void CUDART_CB count_up(void *data)
{
    ++*(int *)data;
}

static cudaGraph_t capture(const buffers &m, float factor, cudaStream_t s, cudaStream_t side, cudaEvent_t fork,
                           cudaEvent_t join, int *calls)
{
    cudaGraph_t graph;
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    device_round(m, factor, s, side, fork, join);
    MUST(cudaLaunchHostFunc(s, count_up, calls));
    MUST(cudaStreamEndCapture(s, &graph));
    return graph;
}

static void captured_part(const buffers &m, cudaStream_t s, cudaStream_t side, cudaEvent_t fork, cudaEvent_t join)
{
    int calls = 0;
    size_t nodes = 0;
    cudaGraphExec_t exec;
    cudaGraph_t graph = capture(m, 3.0f, s, side, fork, join, &calls);
    MUST(cudaGraphGetNodes(graph, nullptr, &nodes));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < ROUNDS; round++) {
        refill(m, round);
        MUST(cudaGraphLaunch(exec, s));
        MUST(cudaStreamSynchronize(s));
        must_equal("captured", m.out, host_round(m.in, 3.0f));
    }
    // The same shape with another factor goes into the executable graph.
    cudaGraph_t again = capture(m, -0.5f, s, side, fork, join, &calls);
    cudaGraphExecUpdateResultInfo info;
    MUST(cudaGraphExecUpdate(exec, again, &info));
    refill(m, 9);
    MUST(cudaGraphLaunch(exec, s));
    MUST(cudaStreamSynchronize(s));
    must_equal("updated", m.out, host_round(m.in, -0.5f));
    std::printf("%zu nodes, %d calls of the host\n", nodes, calls);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(again));
    MUST(cudaGraphDestroy(graph));
}

static cudaGraphNode_t kernel_node(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, void *function, void **params)
{
    cudaGraphNode_t node;
    cudaKernelNodeParams p = {};
    p.func = function;
    p.gridDim = dim3(GRID);
    p.blockDim = dim3(BLOCK);
    p.kernelParams = params;
    MUST(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &p));
    return node;
}

static void explicit_part(const buffers &m, cudaStream_t s)
{
    int n = N, calls = 0;
    float factor = 2.0f;
    cudaGraph_t graph, child;
    cudaGraphExec_t exec;
    cudaGraphNode_t up, down, host, clear, inner;
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphCreate(&child, 0));
    MUST(cudaGraphAddMemcpyNode1D(&up, graph, nullptr, 0, m.a, m.in, N * sizeof(float), cudaMemcpyHostToDevice));
    cudaMemsetParams set = {};
    set.dst = m.c;
    set.elementSize = 4;
    set.width = N;
    set.height = 1;
    MUST(cudaGraphAddMemsetNode(&clear, graph, nullptr, 0, &set));
    void *smooth_b[] = {(void *)&m.b, (void *)&m.a, &n};
    void *scale_a[] = {(void *)&m.a, &factor, &n};
    void *add_ab[] = {(void *)&m.a, (void *)&m.a, (void *)&m.b, &n};
    void *smooth_c[] = {(void *)&m.c, (void *)&m.a, &n};
    cudaGraphNode_t b = kernel_node(graph, {up}, (void *)smooth, smooth_b);
    cudaGraphNode_t a = kernel_node(graph, {b}, (void *)scale, scale_a);
    kernel_node(child, {}, (void *)add, add_ab);
    MUST(cudaGraphAddChildGraphNode(&inner, graph, &a, 1, child));
    cudaGraphNode_t c = kernel_node(graph, {inner, clear}, (void *)smooth, smooth_c);
    MUST(cudaGraphAddMemcpyNode1D(&down, graph, &c, 1, m.out, m.c, N * sizeof(float), cudaMemcpyDeviceToHost));
    cudaHostNodeParams call = {count_up, &calls};
    MUST(cudaGraphAddHostNode(&host, graph, &down, 1, &call));
    MUST(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int round = 0; round < ROUNDS; round++) {
        // Each launch with a factor of its own.
        cudaKernelNodeParams p;
        float mine = 1.0f + (float)round;
        MUST(cudaGraphKernelNodeGetParams(a, &p));
        if (p.func != (void *)scale)
            std::exit(3);
        void *params[] = {(void *)&m.a, &mine, &n};
        p.kernelParams = params;
        MUST(cudaGraphExecKernelNodeSetParams(exec, a, &p));
        refill(m, round);
        MUST(cudaGraphLaunch(exec, s));
        MUST(cudaStreamSynchronize(s));
        must_equal("explicit", m.out, host_round(m.in, mine));
    }
    // Without the scaling the numbers are those of the factor 1.
    MUST(cudaGraphNodeSetEnabled(exec, a, 0));
    refill(m, 5);
    MUST(cudaGraphLaunch(exec, s));
    MUST(cudaStreamSynchronize(s));
    must_equal("disabled", m.out, host_round(m.in, 1.0f));
    std::printf("%d calls of the host\n", calls);
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(child));
    MUST(cudaGraphDestroy(graph));
}

// Memory that the graph allocates and frees itself.
static void memory_part(const buffers &m, cudaStream_t s)
{
    float *own;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    MUST(cudaMallocAsync((void **)&own, N * sizeof(float), s));
    MUST(cudaMemcpyAsync(own, m.in, N * sizeof(float), cudaMemcpyHostToDevice, s));
    scale<<<GRID, BLOCK, 0, s>>>(own, 8.0f, N);
    MUST(cudaMemcpyAsync(m.out, own, N * sizeof(float), cudaMemcpyDeviceToHost, s));
    MUST(cudaFreeAsync(own, s));
    MUST(cudaStreamEndCapture(s, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < ROUNDS; round++) {
        refill(m, round);
        MUST(cudaGraphLaunch(exec, s));
        MUST(cudaStreamSynchronize(s));
        std::vector<float> expected(m.in, m.in + N);
        for (float &x : expected)
            x *= 8.0f;
        must_equal("memory", m.out, expected);
    }
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

// What a capture forbids is refused, and the stream is usable afterwards.
static void errors_part(const buffers &m, cudaStream_t s)
{
    cudaGraph_t graph;
    MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    scale<<<GRID, BLOCK, 0, s>>>(m.a, 1.0f, N);
    cudaError_t waited = cudaStreamSynchronize(s);
    cudaError_t ended = cudaStreamEndCapture(s, &graph);
    std::printf("%s, %s\n", cudaGetErrorName(waited), cudaGetErrorName(ended));
    cudaGetLastError();
    scale<<<GRID, BLOCK, 0, s>>>(m.a, 1.0f, N);
    MUST(cudaStreamSynchronize(s));
}

int main()
{
    buffers m;
    cudaStream_t s, side;
    cudaEvent_t fork, join;
    MUST(cudaMalloc((void **)&m.a, N * sizeof(float)));
    MUST(cudaMalloc((void **)&m.b, N * sizeof(float)));
    MUST(cudaMalloc((void **)&m.c, N * sizeof(float)));
    MUST(cudaMallocHost((void **)&m.in, N * sizeof(float)));
    MUST(cudaMallocHost((void **)&m.out, N * sizeof(float)));
    MUST(cudaStreamCreate(&s));
    MUST(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));

    refill(m, 0);
    device_round(m, 3.0f, s, side, fork, join);
    MUST(cudaStreamSynchronize(s));
    must_equal("launches", m.out, host_round(m.in, 3.0f));
    captured_part(m, s, side, fork, join);
    explicit_part(m, s);
    memory_part(m, s);
    errors_part(m, s);

    MUST(cudaEventDestroy(fork));
    MUST(cudaEventDestroy(join));
    MUST(cudaStreamDestroy(s));
    MUST(cudaStreamDestroy(side));
    MUST(cudaFree(m.a));
    MUST(cudaFree(m.b));
    MUST(cudaFree(m.c));
    MUST(cudaFreeHost(m.in));
    MUST(cudaFreeHost(m.out));
    std::printf("passed\n");
    return 0;
}
