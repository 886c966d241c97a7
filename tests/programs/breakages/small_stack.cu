/* small_stack.cu BYTES first|later [WRONG] - a thread with a stack of BYTES makes CUDA calls of many kinds, the process's first ones or
 * later ones; with WRONG a kernel writes behind an allocation, a free and a launch are refused. small_stack depth: how many KiB of stack the calls take at most. */
#include <alloca.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

enum { COUNT = 1000, ROUNDS = 12, PAINTED = 192 << 10 };

static int problems;
static int beyond;

#define MUST(call)                                                                                                      \
    do {                                                                                                                \
        const cudaError_t answer = (call);                                                                              \
        if (answer) {                                                                                                   \
            printf("line %d: %s\n", __LINE__, cudaGetErrorName(answer));                                                \
            problems++;                                                                                                 \
        }                                                                                                               \
    } while (0)

__global__ void add(int *out, int count, int at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] += 1;
    if (i == 0 && at)
        out[at] = 7; /* FAULT: beyond */
}

/* On the heap: the stack is for the calls. */
static int *host;

static void round_of_calls(cudaStream_t stream, bool wrong)
{
    int *plain, *async, *managed, *pinned, *pitched;
    size_t pitch;
    MUST(cudaMalloc(&plain, COUNT * sizeof(int)));
    MUST(cudaMallocAsync(&async, COUNT * sizeof(int), stream));
    MUST(cudaMallocManaged(&managed, COUNT * sizeof(int)));
    MUST(cudaMallocHost(&pinned, COUNT * sizeof(int)));
    MUST(cudaMallocPitch(&pitched, &pitch, 100, 10));
    MUST(cudaMemsetAsync(plain, 0, COUNT * sizeof(int), stream));
    MUST(cudaMemsetAsync(async, 0, COUNT * sizeof(int), stream));
    add<<<8, 128, 0, stream>>>(plain, COUNT, wrong ? COUNT + 2 : 0);
    add<<<8, 128, 0, stream>>>(async, COUNT, 0);
    add<<<8, 128, 0, stream>>>(plain, COUNT, 0);
    MUST(cudaMemcpyAsync(host, plain, COUNT * sizeof(int), cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    problems += host[0] != 2 || host[COUNT - 1] != 2;
    MUST(cudaMemcpy(pinned, async, COUNT * sizeof(int), cudaMemcpyDeviceToHost));
    problems += pinned[COUNT - 1] != 1;
    if (wrong) {
        problems += cudaFree(plain + 1) == cudaSuccess;
        add<<<1, 2048, 0, stream>>>(plain, COUNT, 0); /* too many threads */
        problems += cudaGetLastError() == cudaSuccess;
    }
    MUST(cudaFreeAsync(async, stream));
    MUST(cudaFree(pitched));
    MUST(cudaFree(managed));
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(plain));
    MUST(cudaDeviceSynchronize());
}

static void graph(cudaStream_t stream)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    int *p;
    MUST(cudaMalloc(&p, COUNT * sizeof(int)));
    MUST(cudaMemset(p, 0, COUNT * sizeof(int)));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    add<<<8, 128, 0, stream>>>(p, COUNT, 0);
    add<<<8, 128, 0, stream>>>(p, COUNT, 0);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    MUST(cudaGraphLaunch(executable, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(host, p, COUNT * sizeof(int), cudaMemcpyDeviceToHost));
    problems += host[COUNT - 1] != 2;
    MUST(cudaGraphExecDestroy(executable));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(p));
}

static void *calls(void *unused)
{
    cudaStream_t stream;
    cudaEvent_t event;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaEventCreate(&event));
    for (int i = 0; i < ROUNDS; i++)
        round_of_calls(stream, i == 1 && beyond);
    graph(stream);
    MUST(cudaEventRecord(event, stream));
    MUST(cudaEventSynchronize(event));
    MUST(cudaEventDestroy(event));
    MUST(cudaStreamDestroy(stream));
    return NULL;
}

/* The stack below its caller; where that begins. */
static __attribute__((noinline)) uintptr_t paint(void)
{
    uint8_t *below = (uint8_t *)alloca(PAINTED);
    memset(below, 0xa5, PAINTED);
    uintptr_t at = (uintptr_t)below;
    __asm__ volatile("" : "+r"(at) : : "memory");
    return at;
}

static void *depth(void *unused)
{
    const volatile uint8_t *below = (const volatile uint8_t *)paint();
    calls(NULL);
    int untouched = 0;
    while (untouched < PAINTED && below[untouched] == 0xa5)
        untouched++;
    printf("%d\n", (PAINTED - untouched) >> 10);
    return NULL;
}

int main(int argc, char **argv)
{
    bool measured = argc == 2 && strcmp(argv[1], "depth") == 0;
    pthread_attr_t attributes;
    pthread_t thread;
    host = (int *)malloc(COUNT * sizeof(int));
    beyond = argc > 3;
    if (!host || (argc < 3 && !measured))
        return 2;
    if (argc > 2 && strcmp(argv[2], "later") == 0)
        calls(NULL);
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, measured ? 2 * PAINTED : atoi(argv[1])) ||
        pthread_create(&thread, &attributes, measured ? depth : calls, NULL)) {
        printf("no such thread\n");
        return 3;
    }
    pthread_join(thread, NULL);
    if (!measured)
        printf("%d problems\n", problems);
    free(host);
    return problems != 0;
}
