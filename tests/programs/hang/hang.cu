/* Programs that never go on, and sound ones that look like it for a while; the argument says which.
 *
 *   spin           a kernel that polls a flag nobody sets, after runs of the same kernel with the flag set
 *   spin_first     the same without earlier runs: by its time alone it cannot be told from a slow kernel
 *   crossed        two streams, each waits for a word that the other one writes behind its own wait
 *   never          a stream waits for a word that nobody writes
 *   function       a function of the host, in a stream, that never returns
 *   returns        functions of the host, in a stream, that take some seconds
 *   deadlock       two threads of the host, each holds a lock that the other one wants; no CUDA work
 *   polled         as spin, but the host asks again and again instead of waiting
 *   slow           kernels of half a second each, waited for one by one
 *   idle           the host does something else for a long time
 *   released       a stream waits for a word that the host writes after some seconds
 */
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != 0) {                                                                                             \
            fprintf(stderr, "%s failed\n", #call);                                                                     \
            exit(99);                                                                                                  \
        }                                                                                                              \
    } while (0)

__global__ void poll_flag(volatile int *flag, int *out, int n)
{
    while (*flag == 0) { /* HANG: spin */
    }
    if (threadIdx.x < n)
        out[threadIdx.x] = n;
}

__global__ void add(int *p, int n)
{
    if (threadIdx.x < n)
        p[threadIdx.x] += 1;
}

__global__ void busy(int *p, long long ns)
{
    long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < ns);
    *p += 1;
}

static int *flag, *out;

static void spin(int warm)
{
    for (int i = 0; i < warm; i++) {
        CHECK(cudaMemset(flag, 1, sizeof *flag));
        poll_flag<<<1, 32>>>(flag, out, 32);
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaMemset(flag, 0, sizeof *flag));
    poll_flag<<<1, 32>>>(flag, out, 32);
}

static void crossed()
{
    cudaStream_t a, b;
    CUdeviceptr words = (CUdeviceptr)flag;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cuStreamWaitValue32(a, words, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK(cuStreamWriteValue32(a, words + 4, 1, 0));
    CHECK(cuStreamWaitValue32(b, words + 4, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK(cuStreamWriteValue32(b, words, 1, 0));
    add<<<1, 32, 0, a>>>(out, 32);
    CHECK(cudaStreamSynchronize(a));
}

static void never()
{
    cudaStream_t a;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cuStreamWaitValue32(a, (CUdeviceptr)flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
    add<<<1, 32, 0, a>>>(out, 32);
    CHECK(cudaStreamSynchronize(a));
}

static void CUDART_CB never_returns(void *data)
{
    for (;;)
        pause();
}

static void function()
{
    cudaStream_t a;
    CHECK(cudaStreamCreate(&a));
    CHECK(cudaLaunchHostFunc(a, never_returns, NULL));
    add<<<1, 32, 0, a>>>(out, 32);
    CHECK(cudaStreamSynchronize(a));
}

static void CUDART_CB takes_long(void *data)
{
    sleep(5);
    *(int *)data += 1;
}

static void CUDART_CB called_back(cudaStream_t stream, cudaError_t status, void *data)
{
    *(int *)data += stream != NULL && status == cudaSuccess ? 10 : 1000;
}

static int returns()
{
    cudaStream_t a;
    int calls = 0;
    CHECK(cudaStreamCreate(&a));
    for (int i = 0; i < 3; i++)
        CHECK(cudaStreamAddCallback(a, called_back, &calls, 0));
    CHECK(cudaLaunchHostFunc(a, takes_long, &calls));
    CHECK(cudaStreamAddCallback(a, called_back, &calls, 0));
    add<<<1, 32, 0, a>>>(out, 32);
    CHECK(cudaStreamSynchronize(a));
    return calls == 41 ? 0 : 3;
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void *other_thread(void *data)
{
    pthread_mutex_lock(&second);
    sleep(1);
    pthread_mutex_lock(&first);
    return NULL;
}

static void deadlock()
{
    pthread_t thread;
    pthread_mutex_lock(&first);
    pthread_create(&thread, NULL, other_thread, NULL);
    sleep(1);
    pthread_mutex_lock(&second);
}

static void *release_later(void *word)
{
    sleep(6);
    *(volatile int *)word = 1;
    return NULL;
}

static void released()
{
    int *word;
    cudaStream_t a;
    pthread_t thread;
    CHECK(cudaHostAlloc(&word, 64, cudaHostAllocMapped));
    *word = 0;
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cuStreamWaitValue32(a, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_EQ));
    add<<<1, 32, 0, a>>>(out, 32);
    pthread_create(&thread, NULL, release_later, word);
    CHECK(cudaStreamSynchronize(a));
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    CHECK(cudaMalloc(&flag, 64));
    CHECK(cudaMalloc(&out, 128));
    CHECK(cudaMemset(flag, 0, 64));
    CHECK(cudaMemset(out, 0, 128));
    for (int i = 0; i < 10; i++)
        add<<<1, 32>>>(out, 32);
    CHECK(cudaDeviceSynchronize());
    puts("begins");
    fflush(stdout);
    if (!strcmp(what, "spin") || !strcmp(what, "spin_first")) {
        spin(what[4] ? 0 : 3);
        CHECK(cudaDeviceSynchronize());
    } else if (!strcmp(what, "polled")) {
        spin(3);
        while (cudaStreamQuery(0) == cudaErrorNotReady)
            usleep(1000);
    } else if (!strcmp(what, "slow")) {
        for (int i = 0; i < 16; i++) {
            busy<<<1, 1>>>(out, 500000000);
            CHECK(cudaDeviceSynchronize());
        }
    } else if (!strcmp(what, "idle"))
        sleep(8);
    else if (!strcmp(what, "crossed"))
        crossed();
    else if (!strcmp(what, "never"))
        never();
    else if (!strcmp(what, "function"))
        function();
    else if (!strcmp(what, "returns")) {
        if (int wrong = returns())
            return wrong;
    } else if (!strcmp(what, "deadlock"))
        deadlock();
    else if (!strcmp(what, "released"))
        released();
    else
        return 2;
    puts("the end");
    return 0;
}
