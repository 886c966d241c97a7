/* capture.cu - stream captures in all modes, with other threads at work meanwhile: what the graphs consist of, and what runs. */
#include <cstdio>
#include <pthread.h>

#define ROUNDS 40
#define COUNT  256

static int problems;

#define MUST(call)                                                                                                      \
    do {                                                                                                                \
        const cudaError_t answer = (call);                                                                              \
        if (answer) {                                                                                                   \
            printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(answer));                                     \
            problems++;                                                                                                 \
        }                                                                                                               \
    } while (0)

__global__ void add(float *out, float value)
{
    out[threadIdx.x] += value;
}

struct background {
    volatile int stop;
    int relaxed;
};

/* Launches, copies and (where the mode allows it) allocates and waits, on a stream of its own, as loaders of data do. */
static void *beside(void *argument)
{
    background *b = (background *)argument;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStream_t stream;
    float *mine, host[COUNT];

    if (b->relaxed)
        MUST(cudaThreadExchangeStreamCaptureMode(&mode));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMalloc(&mine, sizeof host));
    while (!b->stop) {
        float *short_lived;
        MUST(cudaMalloc(&short_lived, 1000));
        add<<<1, COUNT, 0, stream>>>(mine, 1.0f);
        MUST(cudaMemcpyAsync(host, mine, sizeof host, cudaMemcpyDeviceToHost, stream));
        MUST(cudaStreamSynchronize(stream));
        MUST(cudaFree(short_lived));
    }
    MUST(cudaFree(mine));
    MUST(cudaStreamDestroy(stream));
    return NULL;
}

static void describe(const char *what, cudaGraph_t graph)
{
    size_t nodes = 0, edges = 0;
    int kernels = 0, copies = 0, sets = 0, other = 0;
    cudaGraphNode_t list[128];

    MUST(cudaGraphGetNodes(graph, NULL, &nodes));
    MUST(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges));
    size_t got = nodes < 128 ? nodes : 128;
    MUST(cudaGraphGetNodes(graph, list, &got));
    for (size_t i = 0; i < got; i++) {
        cudaGraphNodeType type;
        MUST(cudaGraphNodeGetType(list[i], &type));
        kernels += type == cudaGraphNodeTypeKernel;
        copies += type == cudaGraphNodeTypeMemcpy;
        sets += type == cudaGraphNodeTypeMemset;
        other += type != cudaGraphNodeTypeKernel && type != cudaGraphNodeTypeMemcpy && type != cudaGraphNodeTypeMemset;
    }
    printf("%s: %zu nodes, %zu edges, %d kernels, %d copies, %d sets, %d other\n", what, nodes, edges, kernels, copies, sets,
           other);
}

/* One capture with a fork and a join, launched twice. */
static float captured(cudaStreamCaptureMode mode, cudaStream_t stream, cudaStream_t side, bool say, const char *what)
{
    float *out, host[COUNT];
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaEvent_t fork, join;

    MUST(cudaMalloc(&out, sizeof host));
    MUST(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    MUST(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    MUST(cudaStreamBeginCapture(stream, mode));
    MUST(cudaMemsetAsync(out, 0, sizeof host, stream));
    add<<<1, COUNT, 0, stream>>>(out, 1.0f);
    MUST(cudaEventRecord(fork, stream));
    MUST(cudaStreamWaitEvent(side, fork, 0));
    add<<<1, COUNT / 2, 0, side>>>(out, 2.0f);
    add<<<1, COUNT / 2, 0, stream>>>(out + COUNT / 2, 4.0f);
    MUST(cudaEventRecord(join, side));
    MUST(cudaStreamWaitEvent(stream, join, 0));
    MUST(cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    if (!graph)
        return 0;
    if (say)
        describe(what, graph);
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 2; i++)
        MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaEventDestroy(fork));
    MUST(cudaEventDestroy(join));
    MUST(cudaFree(out));
    return host[0] + host[COUNT - 1];
}

static void in_mode(const char *what, cudaStreamCaptureMode mode, int relaxed)
{
    background b = {0, relaxed};
    pthread_t thread;
    cudaStream_t stream, side;
    float sum = 0;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    if (pthread_create(&thread, NULL, beside, &b))
        return;
    for (int i = 0; i < ROUNDS; i++)
        sum += captured(mode, stream, side, i == 0, what);
    b.stop = 1;
    pthread_join(thread, NULL);
    MUST(cudaStreamDestroy(side));
    MUST(cudaStreamDestroy(stream));
    printf("%s: %g\n", what, sum);
}

/* While a blocking stream captures, the legacy stream must not be touched: asking about it is an error, using it ends the
 * capture. Nothing of a tool may do either. */
static void legacy()
{
    cudaStream_t stream;
    cudaStreamCaptureStatus status;
    cudaGraph_t graph = NULL;
    float *out;

    MUST(cudaStreamCreate(&stream));
    MUST(cudaMalloc(&out, 4096));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < 70; i++) {
        float *more;
        add<<<1, COUNT, 0, stream>>>(out, 1.0f);
        MUST(cudaMalloc(&more, 1000)); /* allowed in this mode */
    }
    printf("legacy: query %d", (int)cudaStreamIsCapturing(cudaStreamLegacy, &status));
    printf(", the capture itself %d", (int)cudaStreamIsCapturing(stream, &status));
    printf(" status %d\n", (int)status);
    MUST(cudaStreamEndCapture(stream, &graph));
    describe("legacy", graph);
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    add<<<1, COUNT, 0, stream>>>(out, 1.0f);
    add<<<1, COUNT>>>(out, 1.0f);
    printf("legacy: launch %d", (int)cudaGetLastError());
    printf(", end %d\n", (int)cudaStreamEndCapture(stream, &graph));
    cudaGetLastError();
    MUST(cudaDeviceSynchronize());
}

/* Times of the program's own events around a graph are times. */
static void times()
{
    cudaStream_t stream;
    cudaEvent_t begin, end;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float *out, ms = -1;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    MUST(cudaMalloc(&out, 4096));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < 20; i++)
        add<<<1, COUNT, 0, stream>>>(out, 1.0f);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaEventRecord(begin, stream));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaEventRecord(end, stream));
    MUST(cudaEventSynchronize(end));
    MUST(cudaEventElapsedTime(&ms, begin, end));
    printf("time of a graph %s 0\n", ms > 0 ? ">" : "is");
}

int main()
{
    in_mode("global, another thread relaxed", cudaStreamCaptureModeGlobal, 1);
    in_mode("thread-local, another thread not", cudaStreamCaptureModeThreadLocal, 0);
    in_mode("relaxed, another thread not", cudaStreamCaptureModeRelaxed, 0);
    legacy();
    times();
    return problems != 0;
}
