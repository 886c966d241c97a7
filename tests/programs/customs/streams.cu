/* streams.cu - sound ways to hand work from stream to stream, device to host and thread to thread.
 */
#include <condition_variable>
#include <cuda.h>
#include <mutex>
#include <thread>

#include "cases.h"

#define COUNT 256
#define BYTES (COUNT * sizeof(int))

static cudaStream_t first, second, blocking, other_blocking;
static cudaEvent_t event, event2;
static int *a, *b, *pinned;
static int host[COUNT];

__global__ void fill(int *out, int value)
{
    out[threadIdx.x] = value;
}

__global__ void add(const int *in, int *out)
{
    out[threadIdx.x] += in[threadIdx.x];
}

static long sum_of(const int *from)
{
    long sum = 0;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host, from, BYTES, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        sum += host[i];
    return sum;
}

static void clear(void)
{
    CHECK(cudaMemset(a, 0, BYTES));
    CHECK(cudaMemset(b, 0, BYTES));
    CHECK(cudaDeviceSynchronize());
}

/* ---- events ---- */

static long ring(void) /* a slot is filled again when it has been read */
{
    enum { SLOTS = 3, TURNS = 8 };
    cudaEvent_t filled[SLOTS], read[SLOTS];
    int *slot[SLOTS];
    for (int i = 0; i < SLOTS; i++) {
        CHECK(cudaEventCreateWithFlags(&filled[i], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&read[i], cudaEventDisableTiming));
        CHECK(cudaMalloc(&slot[i], BYTES));
    }
    clear();
    for (int turn = 0; turn < TURNS; turn++) {
        int i = turn % SLOTS;
        CHECK(
            cudaStreamWaitEvent(first, read[i], 0)); /* in the first turns nobody has recorded it */
        fill<<<1, COUNT, 0, first>>>(slot[i], turn);
        CHECK(cudaEventRecord(filled[i], first));
        CHECK(cudaStreamWaitEvent(second, filled[i], 0));
        add<<<1, COUNT, 0, second>>>(slot[i], b);
        CHECK(cudaEventRecord(read[i], second));
    }
    long sum = sum_of(b);
    for (int i = 0; i < SLOTS; i++) {
        CHECK(cudaEventDestroy(filled[i]));
        CHECK(cudaEventDestroy(read[i]));
        CHECK(cudaFree(slot[i]));
    }
    return sum;
}

static long event_twice(void) /* the second record stands for the first as well */
{
    clear();
    fill<<<1, COUNT, 0, first>>>(a, 1);
    CHECK(cudaEventRecord(event, first));
    fill<<<1, COUNT, 0, first>>>(a, 2);
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(second, event, 0));
    CHECK(cudaEventRecord(event, second)); /* elsewhere, when the wait is done */
    add<<<1, COUNT, 0, second>>>(a, b);
    return sum_of(b);
}

static long through_third(void) /* a stream that does nothing but wait */
{
    clear();
    fill<<<1, COUNT, 0, first>>>(a, 3);
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(blocking, event, 0));
    CHECK(cudaEventRecord(event2, blocking));
    CHECK(cudaStreamWaitEvent(second, event2, 0));
    add<<<1, COUNT, 0, second>>>(a, b);
    return sum_of(b);
}

__global__ void report_found(const int *in, int limit, int *flag)
{
    if (in[threadIdx.x] >= limit)
        *flag = 1;
}

static long same_flag(void) /* whoever finds something says so, and all say the same */
{
    int *flag = pinned, *found;
    clear();
    CHECK(cudaMalloc(&found, sizeof *found));
    CHECK(cudaMemset(found, 0, sizeof *found));
    CHECK(cudaDeviceSynchronize());
    report_found<<<1, COUNT, 0, first>>>(a, 0, found);
    report_found<<<1, COUNT, 0, second>>>(b, 0, found);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(flag, found, sizeof *found, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(found));
    return *flag;
}

/* ---- the default stream between two others ---- */

static long default_between(void)
{
    clear();
    fill<<<1, COUNT, 0, blocking>>>(a, 4);
    CHECK(cudaMemsetAsync(b, 0, 4, 0));
    add<<<1, COUNT, 0, other_blocking>>>(a, b);
    return sum_of(b);
}

static long default_event(void) /* an event of the default stream stands for all blocking ones */
{
    clear();
    fill<<<1, COUNT, 0, blocking>>>(a, 5);
    CHECK(cudaEventRecord(event, 0));
    CHECK(cudaStreamWaitEvent(second, event, 0));
    add<<<1, COUNT, 0, second>>>(a, b);
    return sum_of(b);
}

static long
default_waits(void) /* what the default stream waited for, blocking streams have behind them */
{
    clear();
    fill<<<1, COUNT, 0, first>>>(a, 6);
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(0, event, 0));
    add<<<1, COUNT, 0, blocking>>>(a, b);
    return sum_of(b);
}

static long default_copy(void)
{
    long sum = 0;
    clear();
    fill<<<1, COUNT, 0, blocking>>>(a, 7);
    CHECK(cudaMemcpy(host, a, BYTES, cudaMemcpyDeviceToHost));
    fill<<<1, COUNT, 0, second>>>(a, 8);
    sum = host[COUNT - 1];
    CHECK(cudaStreamSynchronize(second));
    add<<<1, COUNT>>>(a, b);
    CHECK(cudaStreamSynchronize(cudaStreamLegacy));
    fill<<<1, COUNT, 0, second>>>(a, 0);
    return sum + sum_of(b);
}

/* ---- words in memory ---- */

static long wait_value(void) /* two streams that take turns by words */
{
    CUdeviceptr words;
    clear();
    CHECK(cudaMalloc((void **)&words, 8));
    CHECK(cudaMemset((void *)words, 0, 8));
    CHECK(cudaDeviceSynchronize());
    for (unsigned turn = 1; turn <= 4; turn++) {
        fill<<<1, COUNT, 0, first>>>(a, turn);
        if (cuStreamWriteValue32(first, words, turn, 0) ||
            cuStreamWaitValue32(second, words, turn, CU_STREAM_WAIT_VALUE_GEQ))
            return -1;
        add<<<1, COUNT, 0, second>>>(a, b);
        if (cuStreamWriteValue32(second, words + 4, turn, 0) ||
            cuStreamWaitValue32(first, words + 4, turn, CU_STREAM_WAIT_VALUE_GEQ))
            return -1;
    }
    long sum = sum_of(b);
    CHECK(cudaFree((void *)words));
    return sum;
}

__global__ void consume_when_told(volatile int *flag, const int *in, int *out)
{
    while (*flag == 0)
        ;
    __threadfence_system();
    out[threadIdx.x] = in[threadIdx.x];
}

__global__ void fill_and_tell(int *data, volatile int *flag)
{
    data[threadIdx.x] = 9;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
        *flag = 1;
}

static long host_flag(void) /* the host waits for a word, and passes it on */
{
    volatile int *flags;
    clear();
    CHECK(cudaHostAlloc((void **)&flags, 2 * sizeof(int), cudaHostAllocMapped));
    flags[0] = flags[1] = 0;
    consume_when_told<<<1, COUNT, 0, second>>>(flags + 1, a, b);
    fill_and_tell<<<1, COUNT, 0, first>>>(a, flags);
    while (flags[0] == 0)
        ;
    flags[1] = 1;
    long sum = sum_of(b);
    CHECK(cudaFreeHost((void *)flags));
    return sum;
}

/* ---- graphs ---- */

__global__ void fill_every(int *out, int from, int step, int value)
{
    int i = from + step * threadIdx.x;
    if (i < COUNT)
        out[i] = value;
}

static long
graph_branches(void) /* branches in one buffer, each in its own elements; then other parameters */
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    size_t count = 8;
    cudaGraphNode_t nodes[8];
    clear();
    CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMemsetAsync(b, 0, BYTES, first));
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(second, event, 0));
    fill_every<<<1, COUNT, 0, first>>>(a, 0, 2, 1);
    fill_every<<<1, COUNT, 0, second>>>(a, 1, 2, 2);
    CHECK(cudaEventRecord(event2, second));
    CHECK(cudaStreamWaitEvent(first, event2, 0));
    add<<<1, COUNT, 0, first>>>(a, b);
    CHECK(cudaStreamEndCapture(first, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, first));
    CHECK(cudaStreamSynchronize(first));
    CHECK(cudaGraphGetNodes(graph, nodes, &count));
    for (size_t i = 0; i < count; i++) {
        cudaGraphNodeType type;
        CHECK(cudaGraphNodeGetType(nodes[i], &type));
        if (type != cudaGraphNodeTypeKernel)
            continue;
        cudaKernelNodeParams params;
        CHECK(cudaGraphKernelNodeGetParams(nodes[i], &params));
        if (params.func != (void *)fill_every || *(int *)params.kernelParams[1] != 1)
            continue;
        int from = 1, step = 2, value = 5;
        void *arguments[] = {&a, &from, &step, &value};
        params.kernelParams = arguments;
        params.extra = NULL;
        CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[i], &params));
    }
    CHECK(cudaGraphLaunch(exec, second));
    long sum = sum_of(b);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    return sum;
}

/* ---- memory in the order of streams ---- */

static long pool_streams(void)
{
    int *p, *q, *r;
    clear();
    CHECK(cudaMallocAsync(&p, BYTES, first));
    fill<<<1, COUNT, 0, first>>>(p, 3);
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(second, event, 0));
    add<<<1, COUNT, 0, second>>>(p, b);
    CHECK(cudaFreeAsync(p, second)); /* freed where it was used last */
    CHECK(cudaMallocAsync(&q, BYTES, first));
    fill<<<1, COUNT, 0, first>>>(q, 4);
    CHECK(cudaFreeAsync(q, first));
    CHECK(cudaMallocAsync(&r, BYTES,
                          second)); /* the driver may give it q's place and orders that itself */
    fill<<<1, COUNT, 0, second>>>(r, 5);
    add<<<1, COUNT, 0, second>>>(r, b);
    CHECK(cudaFreeAsync(r, second));
    CHECK(cudaMallocAsync(
        &p, BYTES, 0)); /* in the default stream, used in a blocking one, and freed by the host */
    fill<<<1, COUNT, 0, blocking>>>(p, 6);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(p));
    return sum_of(b);
}

/* ---- the host ---- */

static void CUDART_CB release(void *memory)
{
    free(memory);
}

static long host_frees(void) /* a function in the stream frees what the copy before it read */
{
    clear();
    for (int i = 0; i < 3; i++) {
        int *source = (int *)malloc(BYTES);
        for (int k = 0; k < COUNT; k++)
            source[k] = i;
        CHECK(cudaMemcpyAsync(a, source, BYTES, cudaMemcpyHostToDevice, first));
        CHECK(cudaLaunchHostFunc(first, release, source));
        add<<<1, COUNT, 0, first>>>(a, b);
    }
    return sum_of(b);
}

static long destroyed_early(
    void) /* a stream, an event and an executable graph that go while their work goes on */
{
    cudaStream_t stream;
    cudaEvent_t done;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    clear();
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    fill<<<1, COUNT, 0, stream>>>(a, 3);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    add<<<1, COUNT, 0, stream>>>(a, b);
    CHECK(cudaEventRecord(done, stream));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamWaitEvent(second, done, 0));
    CHECK(cudaEventDestroy(done));
    add<<<1, COUNT, 0, second>>>(a, b);
    return sum_of(b);
}

/* ---- threads ---- */

static std::mutex lock;
static std::condition_variable changed;
static int stage;

static void reach(int n)
{
    std::lock_guard<std::mutex> held(lock);
    stage = n;
    changed.notify_all();
}

static void wait_until(int n)
{
    std::unique_lock<std::mutex> held(lock);
    changed.wait(held, [n] { return stage >= n; });
}

static long
thread_streams(void) /* the default stream of each thread, an event from one to the other */
{
    clear();
    stage = 0;
    std::thread producer([] {
        for (int i = 0; i < 4; i++) {
            wait_until(2 * i);
            if (i)
                CHECK(cudaStreamWaitEvent(cudaStreamPerThread, event2, 0));
            fill<<<1, COUNT, 0, cudaStreamPerThread>>>(a, i);
            CHECK(cudaEventRecord(event, cudaStreamPerThread));
            reach(2 * i + 1);
        }
    });
    std::thread consumer([] {
        for (int i = 0; i < 4; i++) {
            wait_until(2 * i + 1);
            CHECK(cudaStreamWaitEvent(cudaStreamPerThread, event, 0));
            add<<<1, COUNT, 0, cudaStreamPerThread>>>(a, b);
            CHECK(cudaEventRecord(event2, cudaStreamPerThread));
            reach(2 * i + 2);
        }
    });
    producer.join();
    consumer.join();
    return sum_of(b);
}

static long thread_memory(void) /* allocated by one thread, filled by another, freed by whoever */
{
    enum { THREADS = 4, TURNS = 12 };
    static int *slots[THREADS];
    std::thread threads[THREADS];
    static long sums[THREADS];
    for (int t = 0; t < THREADS; t++)
        threads[t] = std::thread([t] {
            int *p, values[64];
            sums[t] = 0;
            for (int turn = 0; turn < TURNS; turn++) {
                CHECK(cudaMalloc(&p, 64 * sizeof(int) + 512 * (turn % 3)));
                fill<<<1, 64, 0, cudaStreamPerThread>>>(p, t + turn);
                CHECK(cudaMemcpyAsync(values, p, sizeof values, cudaMemcpyDeviceToHost,
                                      cudaStreamPerThread));
                CHECK(cudaStreamSynchronize(cudaStreamPerThread));
                sums[t] += values[63];
                {
                    std::lock_guard<std::mutex> held(lock);
                    std::swap(p, slots[(t + turn) % THREADS]);
                }
                CHECK(cudaFree(p));
            }
        });
    long sum = 0;
    for (int t = 0; t < THREADS; t++)
        threads[t].join();
    for (int t = 0; t < THREADS; t++) {
        CHECK(cudaFree(slots[t]));
        slots[t] = NULL;
        sum += sums[t];
    }
    return sum;
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"ring", ring, 28 * COUNT},
        {"event_twice", event_twice, 2 * COUNT},
        {"through_third", through_third, 3 * COUNT},
        {"same_flag", same_flag, 1},
        {"default_between", default_between, 4 * COUNT},
        {"default_event", default_event, 5 * COUNT},
        {"default_waits", default_waits, 6 * COUNT},
        {"default_copy", default_copy, 7 + 8 * COUNT},
        {"wait_value", wait_value, 10 * COUNT},
        {"host_flag", host_flag, 9 * COUNT},
        {"graph_branches", graph_branches, 3 * COUNT},
        {"pool_streams", pool_streams, 8 * COUNT},
        {"host_frees", host_frees, 3 * COUNT},
        {"destroyed_early", destroyed_early, 6 * COUNT},
        {"thread_streams", thread_streams, 6 * COUNT},
        {"thread_memory", thread_memory, 4 * 66 + 6 * 12},
    };
    CHECK(cudaMalloc(&a, BYTES));
    CHECK(cudaMalloc(&b, BYTES));
    CHECK(cudaMallocHost(&pinned, BYTES));
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaStreamCreate(&blocking));
    CHECK(cudaStreamCreate(&other_blocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&event2, cudaEventDisableTiming));
    int wrong = run_cases(cases, argc, argv);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
    CHECK(cudaStreamDestroy(blocking));
    CHECK(cudaStreamDestroy(other_blocking));
    CHECK(cudaEventDestroy(event));
    CHECK(cudaEventDestroy(event2));
    return wrong;
}
