/* sharing.cu - what else changes or holds a kernel's inputs: constants that are set again, tables
 * of pointers, functions of the host between kernels, the host beside them; arguments that are not
 * used; launches with attributes. */
#include "cases.h"

#define COUNT 256
#define BYTES (COUNT * sizeof(int))

static cudaStream_t stream, other;
static int *out;
static int host[COUNT];

__global__ void fill(int *to, int value)
{
    to[threadIdx.x] = value;
}

__global__ void add(const int *from, int *to)
{
    to[threadIdx.x] += from[threadIdx.x];
}

static void clear(void)
{
    CHECK(cudaMemset(out, 0, BYTES));
    CHECK(cudaDeviceSynchronize());
}

static long sum_of(const int *from)
{
    long sum = 0;
    DONE();
    CHECK(cudaMemcpy(host, from, BYTES, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        sum += host[i];
    return sum;
}

/* ---- variables ---- */

__constant__ int factors[4];
__device__ int counters[8];

__global__ void scale(int *to)
{
    to[threadIdx.x] += factors[threadIdx.x % 4];
}

__global__ void count(int *where)
{
    atomicAdd(&where[threadIdx.x % 4], 1);
}

static long constants(void)
{
    clear();
    for (int round = 1; round <= 3; round++) {
        int values[2] = {round, 10 * round};
        CHECK(cudaMemcpyToSymbolAsync(factors, values, sizeof values, 2 * sizeof(int),
                                      cudaMemcpyHostToDevice, stream));
        scale<<<1, COUNT, 0, stream>>>(out);
    }
    return sum_of(out);
}

static long symbols(void) /* one half of a variable by its address, the other never */
{
    int *where, got[4], sum = 0;
    CHECK(cudaGetSymbolAddress((void **)&where, counters));
    count<<<1, COUNT, 0, stream>>>(where + 4);
    count<<<2, COUNT, 0, stream>>>(where + 4);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpyFromSymbol(got, counters, sizeof got, 4 * sizeof(int)));
    for (int i = 0; i < 4; i++)
        sum += got[i];
    return sum;
}

/* ---- pointers ---- */

struct list {
    list *next;
    int *values;
};

__global__ void fill_all(int **table, int count)
{
    for (int i = 0; i < count; i++)
        table[i][threadIdx.x] = i;
}

__global__ void link(list *nodes, int **table, int count)
{
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        nodes[i].next = i + 1 < count ? &nodes[i + 1] : NULL;
        nodes[i].values = table[i];
    }
}

__global__ void walk(const list *node, int *to)
{
    for (; node; node = node->next)
        to[threadIdx.x] += node->values[threadIdx.x];
}

static long pointer_table(void)
{
    enum { BUFFERS = 5 };
    int *buffers[BUFFERS], **table;
    list *nodes;
    clear();
    for (int i = 0; i < BUFFERS; i++)
        CHECK(cudaMalloc(&buffers[i], BYTES));
    CHECK(cudaMalloc(&table, sizeof buffers));
    CHECK(cudaMalloc(&nodes, BUFFERS * sizeof *nodes));
    CHECK(cudaMemcpy(table, buffers, sizeof buffers, cudaMemcpyHostToDevice));
    for (int round = 0; round < 3; round++) {
        fill_all<<<1, COUNT>>>(table, BUFFERS);
        link<<<1, 32>>>(nodes, table, BUFFERS);
        walk<<<1, COUNT>>>(nodes, out);
        add<<<1, COUNT>>>(buffers[BUFFERS - 1], out);
    }
    long sum = sum_of(out);
    for (int i = 0; i < BUFFERS; i++)
        CHECK(cudaFree(buffers[i]));
    CHECK(cudaFree(table));
    CHECK(cudaFree(nodes));
    return sum;
}

__global__ void maybe(const int *optional, int count, int *to)
{
    to[threadIdx.x] += threadIdx.x < count ? optional[threadIdx.x] : 1;
}

static long
unused_argument(void) /* memory that is gone, no memory, or never written: nobody looks */
{
    int *p;
    clear();
    CHECK(cudaMalloc(&p, BYTES));
    maybe<<<1, COUNT>>>(p, 0, out);
    CHECK(cudaFree(p));
    maybe<<<1, COUNT>>>(p, 0, out);
    maybe<<<1, COUNT>>>(NULL, 0, out);
    maybe<<<1, COUNT>>>((int *)0x1234567890, 0, out);
    return sum_of(out);
}

/* ---- the host ---- */

static void CUDART_CB next_value(void *memory)
{
    int *values = (int *)memory;
    for (int i = 0; i < COUNT; i++)
        values[i] += 1;
}

static long host_between(void)
{
    int *pinned;
    clear();
    CHECK(cudaHostAlloc(&pinned, BYTES, cudaHostAllocMapped));
    memset(pinned, 0, BYTES);
    for (int i = 0; i < 3; i++) {
        CHECK(cudaLaunchHostFunc(stream, next_value, pinned));
        add<<<1, COUNT, 0, stream>>>(pinned, out);
    }
    long sum = sum_of(out);
    CHECK(cudaFreeHost(pinned));
    return sum;
}

static long
host_beside(void) /* the host works in its half of a buffer while the kernel works in the other */
{
    int *shared;
    clear();
    CHECK(cudaHostAlloc(&shared, 2 * BYTES, cudaHostAllocMapped));
    memset(shared, 0, 2 * BYTES);
    for (int round = 1; round <= 3; round++) {
        fill<<<1, COUNT, 0, stream>>>(shared, round);
        for (int i = 0; i < COUNT; i++)
            shared[COUNT + i] += round;
        CHECK(cudaStreamSynchronize(stream));
    }
    add<<<1, COUNT, 0, stream>>>(shared + COUNT, out);
    add<<<1, COUNT, 0, stream>>>(shared, out);
    long sum = sum_of(out);
    CHECK(cudaFreeHost(shared));
    return sum;
}

static long pinned_rows(void) /* the host's side of a rectangle ends with its last row */
{
    enum { WIDTH = 40, HEIGHT = 8, PITCH = 64 };
    char *pinned, *device;
    size_t pitch;
    CHECK(cudaMallocHost(&pinned, PITCH * (HEIGHT - 1) + WIDTH));
    CHECK(cudaMallocPitch(&device, &pitch, WIDTH, HEIGHT));
    CHECK(cudaMemset2DAsync(device, pitch, 7, WIDTH, HEIGHT, stream));
    CHECK(cudaMemcpy2DAsync(pinned, PITCH, device, pitch, WIDTH, HEIGHT, cudaMemcpyDeviceToHost,
                            stream));
    CHECK(cudaStreamSynchronize(stream));
    long last = pinned[PITCH * (HEIGHT - 1) + WIDTH - 1];
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(pinned));
    return last;
}

/* ---- streams ---- */

static long freed_elsewhere(void) /* in the default stream, which waits for the one that used it */
{
    cudaStream_t blocking;
    int *p;
    clear();
    CHECK(cudaStreamCreate(&blocking));
    CHECK(cudaMallocAsync(&p, BYTES, blocking));
    fill<<<1, COUNT, 0, blocking>>>(p, 2);
    add<<<1, COUNT, 0, blocking>>>(p, out);
    CHECK(cudaFreeAsync(p, 0));
    CHECK(cudaStreamDestroy(blocking));
    return sum_of(out);
}

static long
graph_between(void) /* a graph between two streams, ordered by events like any other work */
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t event;
    int *p;
    clear();
    CHECK(cudaMalloc(&p, BYTES));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    fill<<<1, COUNT, 0, stream>>>(p, 3);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 2; round++) {
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaEventRecord(event, stream));
        CHECK(cudaStreamWaitEvent(other, event, 0));
        add<<<1, COUNT, 0, other>>>(p, out);
        CHECK(cudaEventRecord(event, other));
        CHECK(cudaStreamWaitEvent(stream, event, 0));
    }
    long sum = sum_of(out);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaEventDestroy(event));
    CHECK(cudaFree(p));
    return sum;
}

/* ---- launches ---- */

extern __shared__ int large[];
__global__ void with_room(int *to)
{
    large[threadIdx.x * 64] = threadIdx.x;
    __syncthreads();
    to[threadIdx.x] = large[(blockDim.x - 1 - threadIdx.x) * 64];
}

static long
attributes(void) /* more shared memory than a kernel has by itself; a launch that may begin early */
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    clear();
    CHECK(cudaFuncSetAttribute(with_room, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
    with_room<<<1, COUNT, 64 << 10, stream>>>(out);
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 0;
    config.gridDim = dim3(1);
    config.blockDim = dim3(COUNT);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, add, (const int *)out, out));
    return sum_of(out);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"constants", constants, 66 * COUNT / 4},
        {"symbols", symbols, 3 * COUNT},
        {"pointer_table", pointer_table, 42 * COUNT},
        {"unused_argument", unused_argument, 4 * COUNT},
        {"host_between", host_between, 6 * COUNT},
        {"host_beside", host_beside, 9 * COUNT},
        {"pinned_rows", pinned_rows, 7},
        {"freed_elsewhere", freed_elsewhere, 2 * COUNT},
        {"graph_between", graph_between, 6 * COUNT},
        {"attributes", attributes, COUNT * (COUNT - 1)},
    };
    CHECK(cudaMalloc(&out, BYTES));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    int wrong = run_cases(cases, argc, argv);
    CHECK(cudaFree(out));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(other));
    return wrong;
}
