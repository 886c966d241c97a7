/* life.cu - sound ways to begin and end: `life WAY`. */
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "cases.h"

__global__ void fill(int *out, int value)
{
    out[threadIdx.x] = value;
}

static int *make(int value)
{
    int *p;
    CHECK(cudaMalloc(&p, 64 * sizeof(int)));
    fill<<<1, 64>>>(p, value);
    return p;
}

static long take(int *p)
{
    int host[64];
    long sum = 0;
    CHECK(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++)
        sum += host[i];
    return sum;
}

struct owner { /* made before main, frees behind it */
    std::vector<int *> memory;
    cudaStream_t stream = NULL;
    int *pinned = NULL;
    ~owner()
    {
        for (int *p : memory)
            CHECK(cudaFree(p));
        if (pinned)
            CHECK(cudaFreeHost(pinned));
        if (stream)
            CHECK(cudaStreamDestroy(stream));
    }
};
static owner everything;

static long destructor(void)
{
    everything.memory.push_back(make(2));
    everything.memory.push_back(make(3));
    CHECK(cudaStreamCreate(&everything.stream));
    CHECK(cudaMallocHost(&everything.pinned, 4096));
    return take(everything.memory[0]);
}

static long at_exit(void)
{
    static int *p;
    p = make(4);
    atexit([] { CHECK(cudaFree(p)); });
    return take(p);
}

static long reset(void) /* and again from the beginning */
{
    int *p = make(5);
    long sum = take(p);
    CHECK(cudaFree(p));
    CHECK(cudaDeviceReset());
    p = make(6);
    sum += take(p);
    CHECK(cudaFree(p));
    CHECK(cudaDeviceReset());
    return sum;
}

static long fork_first(void) /* a child before the first call, a child for each part of the work */
{
    long sum = 0;
    for (int part = 0; part < 2; part++) {
        int ends[2], status = 0;
        if (pipe(ends))
            return -1;
        pid_t child = fork();
        if (child == 0) {
            int *p = make(part + 1);
            long own = take(p);
            CHECK(cudaFree(p));
            if (write(ends[1], &own, sizeof own) != sizeof own)
                _exit(3);
            exit(0);
        }
        long own = 0;
        waitpid(child, &status, 0);
        if (read(ends[0], &own, sizeof own) != sizeof own || status)
            return -2;
        sum += own;
        close(ends[0]);
        close(ends[1]);
    }
    int *p = make(7);
    sum += take(p);
    CHECK(cudaFree(p));
    return sum;
}

static long
detached(void) /* a thread that is still there when main ends, with its memory freed by main */
{
    int *p = NULL;
    volatile bool done = false;
    static volatile bool go_on = true;
    std::thread worker([&] {
        p = make(8);
        CHECK(cudaDeviceSynchronize());
        done = true;
        while (go_on)
            usleep(1000);
    });
    worker.detach();
    while (!done)
        usleep(1000);
    long sum = take(p);
    CHECK(cudaFree(p));
    return sum;
}

static long nothing_left(void) /* memory of every kind, given back in every way */
{
    cudaMemPool_t pool;
    cudaMemPoolProps props = {};
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    int *p, *host = (int *)malloc(1 << 16);
    size_t pitch;
    props.allocType = cudaMemAllocationTypePinned;
    props.location = {cudaMemLocationTypeDevice, 0};
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMemPoolCreate(&pool, &props));
    CHECK(cudaMallocFromPoolAsync(&p, 1024, pool, stream));
    fill<<<1, 64, 0, stream>>>(p, 1);
    CHECK(cudaFreeAsync(p, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemPoolDestroy(pool));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMallocAsync(&p, 1024, stream));
    fill<<<1, 64, 0, stream>>>(p, 2);
    CHECK(cudaFreeAsync(p, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaMallocPitch(&p, &pitch, 100, 5));
    CHECK(cudaFree(p));
    CHECK(cudaMallocManaged(&p, 100));
    CHECK(cudaFree(p));
    CHECK(cudaHostRegister(host, 1 << 16, cudaHostRegisterMapped));
    CHECK(cudaHostUnregister(host));
    CHECK(cudaMallocArray(&array, &format, 16, 16));
    CHECK(cudaFreeArray(array));
    CHECK(cudaStreamDestroy(stream));
    free(host);
    return 1;
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"destructor", destructor, 128},   {"at_exit", at_exit, 256},
        {"fork_first", fork_first, 640},   {"detached", detached, 512},
        {"nothing_left", nothing_left, 1}, {"reset", reset, 704},
    };
    if (argc != 2)
        return 2;
    return run_cases(cases, argc, argv);
}
