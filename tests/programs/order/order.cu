/* order.cu - work in two streams on the same buffer: `order MODE` forgets what orders it, `order MODE ok` does not. Modes that only
 * have a sound form take `ok` alone. The order that is missing is missing whatever happens to run first, so no result is checked.
 */
#include <cstdio>
#include <cstring>
#include <condition_variable>
#include <mutex>
#include <thread>

#define MUST_EXIT 2
#include "../must.h"

#define COUNT 4096
#define BYTES (COUNT * sizeof(int))

__global__ void fill(int *out, int value)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void add(const int *in, int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] + 1;
}

/* Every second element from `first`, `count` of them. */
__global__ void fill_every_second(int *out, int first, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[first + 2 * i] = i;
}

__global__ void count_up(int *counter)
{
    atomicAdd(counter, 1);
}

__global__ void set_flag(int *data, volatile int *flag)
{
    data[threadIdx.x] = 7;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
        *flag = 1;
}

__global__ void wait_for_flag(const int *data, volatile int *flag, int *out)
{
    while (*flag == 0)
        ;
    __threadfence();
    out[threadIdx.x] = data[threadIdx.x];
}

static int *a, *b, *pinned, *pinned2;
static int pageable[COUNT];
static cudaStream_t first, second, blocking; /* the first two do not wait for the default stream */
static cudaEvent_t event;
static bool ok;

#define LAUNCH(kernel, stream, ...) kernel<<<COUNT / 128, 128, 0, stream>>>(__VA_ARGS__)

static void order_streams(void)
{
    if (!ok)
        return;
    MUST(cudaEventRecord(event, first));
    MUST(cudaStreamWaitEvent(second, event, 0));
}

/* ---- the modes ---- */

static void kernels(void)
{
    LAUNCH(fill, first, a, 1);
    order_streams();
    LAUNCH(add, second, a, b);
}

static void event_early(void) /* recorded before the work that it should stand for */
{
    if (!ok)
        MUST(cudaEventRecord(event, first));
    LAUNCH(fill, first, a, 1);
    if (ok)
        MUST(cudaEventRecord(event, first));
    MUST(cudaStreamWaitEvent(second, event, 0));
    LAUNCH(add, second, a, b);
}

static void event_late(void) /* waited for before anybody recorded it */
{
    LAUNCH(fill, first, a, 1);
    if (ok)
        MUST(cudaEventRecord(event, first));
    MUST(cudaStreamWaitEvent(second, event, 0));
    if (!ok)
        MUST(cudaEventRecord(event, first));
    LAUNCH(add, second, a, b);
}

static void event_again(void) /* recorded again elsewhere: it stands for something else now */
{
    LAUNCH(fill, first, a, 1);
    MUST(cudaEventRecord(event, first));
    if (!ok)
        MUST(cudaEventRecord(event, second));
    MUST(cudaStreamWaitEvent(second, event, 0));
    LAUNCH(add, second, a, b);
}

static void copy_in(void)
{
    MUST(cudaMemcpyAsync(a, pinned, BYTES, cudaMemcpyHostToDevice, first));
    if (ok)
        MUST(cudaStreamSynchronize(first));
    LAUNCH(add, second, a, b);
}

static void copy_in_pageable(void) /* the call may return before the data has arrived */
{
    MUST(cudaMemcpyAsync(a, pageable, BYTES, cudaMemcpyHostToDevice, first));
    if (ok) {
        MUST(cudaEventRecord(event, first));
        MUST(cudaEventSynchronize(event));
    }
    LAUNCH(add, second, a, b);
}

static void copy_out(void) /* overwritten while it is copied */
{
    MUST(cudaMemcpyAsync(pinned, a, BYTES, cudaMemcpyDeviceToHost, first));
    order_streams();
    LAUNCH(fill, second, a, 2);
}

static void copies(void) /* no kernel: the records alone tell */
{
    MUST(cudaMemsetAsync(a, 0, BYTES, first));
    if (ok) {
        MUST(cudaEventRecord(event, first));
        while (cudaEventQuery(event) == cudaErrorNotReady)
            ;
    }
    MUST(cudaMemcpyAsync(pinned, a, BYTES, cudaMemcpyDeviceToHost, second));
}

static void host_buffer(void) /* used again as a source while it is still a target */
{
    MUST(cudaMemcpyAsync(pinned, a, BYTES, cudaMemcpyDeviceToHost, first));
    order_streams();
    MUST(cudaMemcpyAsync(b, pinned, BYTES, cudaMemcpyHostToDevice, second));
}

static void default_stream(void) /* the default stream waits for blocking streams only */
{
    LAUNCH(fill, cudaStreamLegacy, a, 1);
    LAUNCH(add, ok ? blocking : second, a, b);
    LAUNCH(fill, cudaStreamLegacy, b, 2);
}

static void thread_stream(void)
{
    LAUNCH(fill, cudaStreamPerThread, a, 1);
    LAUNCH(add, ok ? cudaStreamLegacy : second, a, b);
}

static void plain_memset(void) /* cudaMemset of device memory returns at once */
{
    MUST(cudaMemset(a, 0, BYTES));
    if (ok)
        MUST(cudaDeviceSynchronize());
    LAUNCH(add, second, a, b);
}

static void plain_copy(void) /* so does cudaMemcpy within the device */
{
    MUST(cudaMemcpy(a, b, BYTES, cudaMemcpyDeviceToDevice));
    if (ok)
        while (cudaStreamQuery(cudaStreamLegacy) == cudaErrorNotReady)
            ;
    LAUNCH(fill, second, a, 1);
}

static void free_async(void)
{
    int *c;
    MUST(cudaMallocAsync(&c, BYTES, second));
    MUST(cudaStreamSynchronize(second));
    LAUNCH(fill, first, c, 1);
    order_streams();
    MUST(cudaFreeAsync(c, second));
}

static void alloc_async(void)
{
    int *c;
    MUST(cudaMallocAsync(&c, BYTES, first));
    order_streams();
    LAUNCH(fill, second, c, 1);
    MUST(cudaFreeAsync(c, second));
}

static void columns(void) /* two streams write columns of one matrix, side by side or one over */
{
    MUST(cudaMemcpy2DAsync(a, 256, pinned, 128, 128, 64, cudaMemcpyHostToDevice, first));
    MUST(cudaMemcpy2DAsync((char *)a + (ok ? 128 : 124), 256, pinned2, 128, 128, 63, cudaMemcpyHostToDevice, second));
}

static void interleaved(void) /* the even and the odd elements; or one odd one too many on both sides */
{
    LAUNCH(fill_every_second, first, a, 0, COUNT / 2);
    LAUNCH(fill_every_second, second, a, ok ? 1 : 2, COUNT / 4);
}

static void batch(void)
{
    const void *from[2] = {pinned, pinned + COUNT / 2};
    void *to[2] = {a, a + COUNT / 2};
    size_t sizes[2] = {BYTES / 2, BYTES / 2}, start = 0;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    MUST(cudaMemcpyBatchAsync(to, from, sizes, 2, &attributes, &start, 1, first));
    order_streams();
    add<<<1, 128, 0, second>>>(a + COUNT / 2 - 64, b);
}

/* ---- sound in ways that are harder to see ---- */

static std::mutex lock;
static std::condition_variable told;
static bool done;

static void CUDART_CB tell(void *)
{
    std::lock_guard<std::mutex> guard(lock);
    done = true;
    told.notify_all();
}

static void host_function(void) /* the host is told by a function in the stream */
{
    LAUNCH(fill, first, a, 1);
    MUST(cudaLaunchHostFunc(first, tell, NULL));
    std::unique_lock<std::mutex> guard(lock);
    told.wait(guard, [] { return done; });
    guard.unlock();
    LAUNCH(add, second, a, b);
}

static void CUDART_CB wait_for_tell(void *)
{
    std::unique_lock<std::mutex> guard(lock);
    told.wait(guard, [] { return done; });
}

static void host_functions(void) /* one stream waits for the other by two functions of the host, and a third one for that */
{
    MUST(cudaLaunchHostFunc(second, wait_for_tell, NULL));
    MUST(cudaEventRecord(event, second));
    MUST(cudaStreamWaitEvent(blocking, event, 0));
    LAUNCH(fill, first, a, 1);
    MUST(cudaLaunchHostFunc(first, tell, NULL));
    LAUNCH(add, blocking, a, b);
}

static void elapsed(void) /* a time between two events says that both are over */
{
    cudaEvent_t start;
    float ms;
    MUST(cudaEventCreate(&start));
    MUST(cudaEventRecord(start, first));
    LAUNCH(fill, first, a, 1);
    MUST(cudaEventRecord(event, first));
    while (cudaEventElapsedTime(&ms, start, event) == cudaErrorNotReady)
        ;
    LAUNCH(add, second, a, b);
    MUST(cudaEventDestroy(start));
}

static void flag(void) /* the second kernel waits for a word that the first one writes */
{
    int *flags;
    MUST(cudaMalloc(&flags, 4));
    MUST(cudaMemset(flags, 0, 4));
    MUST(cudaDeviceSynchronize());
    set_flag<<<1, 128, 0, first>>>(a, flags);
    wait_for_flag<<<1, 128, 0, second>>>(a, flags, b);
    MUST(cudaDeviceSynchronize());
    MUST(cudaFree(flags));
}

static void host_flag(void) /* the host waits for a word that the kernel writes */
{
    volatile int *flags;
    MUST(cudaHostAlloc((void **)&flags, 4, cudaHostAllocMapped));
    *flags = 0;
    set_flag<<<1, 128, 0, first>>>(a, flags);
    while (!*flags)
        ;
    add<<<1, 128, 0, second>>>(a, b);
    MUST(cudaDeviceSynchronize());
    MUST(cudaFreeHost((void *)flags));
}

static void counters(void) /* atomics of both streams on one word */
{
    LAUNCH(count_up, first, a);
    LAUNCH(count_up, second, a);
}

static void same_value(void)
{
    MUST(cudaMemsetAsync(a, 0, BYTES, first));
    MUST(cudaMemsetAsync(a, 0, BYTES, second));
}

static void pageable_out(void) /* a copy to pageable memory returns when it is over */
{
    MUST(cudaMemcpyAsync(pageable, a, BYTES, cudaMemcpyDeviceToHost, first));
    LAUNCH(fill, second, a, 1);
}

static void graph(void) /* fork and join while it is captured; then the graph beside the stream */
{
    cudaGraph_t g;
    cudaGraphExec_t exec;
    cudaEvent_t join;
    MUST(cudaEventCreate(&join));
    MUST(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
    MUST(cudaEventRecord(event, first));
    MUST(cudaStreamWaitEvent(second, event, 0));
    MUST(cudaMemsetAsync(a, 1, BYTES, first));
    MUST(cudaMemsetAsync(b, 2, BYTES, second));
    MUST(cudaEventRecord(join, second));
    MUST(cudaStreamWaitEvent(first, join, 0));
    LAUNCH(add, first, a, b);
    MUST(cudaStreamEndCapture(first, &g));
    MUST(cudaGraphInstantiate(&exec, g, 0));
    MUST(cudaMemsetAsync(a, 3, BYTES, blocking)); /* while nothing of the graph has run */
    MUST(cudaStreamSynchronize(blocking));
    MUST(cudaGraphLaunch(exec, first));
    MUST(cudaStreamSynchronize(first));
    LAUNCH(fill, second, a, 1);
    MUST(cudaDeviceSynchronize());
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(g));
    MUST(cudaEventDestroy(join));
}

static void threads(void) /* one thread waits, another one goes on */
{
    LAUNCH(fill, first, a, 1);
    std::thread([] { MUST(cudaStreamSynchronize(first)); }).join();
    LAUNCH(add, second, a, b);
}

static void freed(void) /* cudaFree waits for everything */
{
    int *c;
    MUST(cudaMalloc(&c, BYTES));
    LAUNCH(fill, first, c, 1);
    MUST(cudaFree(c));
    MUST(cudaMalloc(&c, BYTES));
    LAUNCH(fill, second, c, 1);
    MUST(cudaFree(c));
}

static void chain(void) /* from stream to stream to stream */
{
    LAUNCH(fill, first, a, 1);
    MUST(cudaEventRecord(event, first));
    MUST(cudaStreamWaitEvent(blocking, event, 0));
    MUST(cudaEventRecord(event, blocking));
    MUST(cudaStreamWaitEvent(second, event, 0));
    LAUNCH(add, second, a, b);
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
#define MODE(name) {#name, name}
    MODE(kernels),      MODE(event_early),   MODE(event_late),     MODE(event_again), MODE(copy_in),      MODE(copy_in_pageable),
    MODE(copy_out),     MODE(copies),        MODE(host_buffer),    MODE(default_stream), MODE(thread_stream), MODE(plain_memset),
    MODE(plain_copy),   MODE(free_async),    MODE(alloc_async),    MODE(columns),     MODE(interleaved),  MODE(batch),
    MODE(host_function), MODE(host_functions), MODE(elapsed),      MODE(flag),        MODE(host_flag),    MODE(counters),
    MODE(same_value),   MODE(pageable_out),  MODE(graph),          MODE(threads),     MODE(freed),        MODE(chain),
};

int main(int argc, char **argv)
{
    ok = argc > 2 && strcmp(argv[2], "ok") == 0;
    MUST(cudaMalloc(&a, BYTES));
    MUST(cudaMalloc(&b, BYTES + 4096));
    MUST(cudaHostAlloc((void **)&pinned, BYTES, 0));
    MUST(cudaHostAlloc((void **)&pinned2, BYTES, 0));
    MUST(cudaMemset(a, 0, BYTES));
    MUST(cudaMemset(b, 0, BYTES + 4096));
    MUST(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    MUST(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    MUST(cudaStreamCreate(&blocking));
    MUST(cudaEventCreate(&event));
    MUST(cudaDeviceSynchronize());
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            MUST(cudaDeviceSynchronize());
            MUST(cudaEventDestroy(event));
            MUST(cudaStreamDestroy(first));
            MUST(cudaStreamDestroy(second));
            MUST(cudaStreamDestroy(blocking));
            MUST(cudaFreeHost(pinned));
            MUST(cudaFreeHost(pinned2));
            MUST(cudaFree(a));
            MUST(cudaFree(b));
            puts("done");
            return 0;
        }
    fprintf(stderr, "usage: order MODE [ok]\n");
    return 2;
}
