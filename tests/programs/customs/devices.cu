/* devices.cu - work on two devices in turn: copies between them in the default stream, which waits
 * for both; with events; stores to the other one's memory; one host thread each. With one device it
 * uses that twice. */
#include <thread>

#include "cases.h"

#define COUNT 256
#define BYTES (COUNT * sizeof(int))

static int devices[2];
static int *memory[2];
static cudaStream_t streams[2];
static cudaEvent_t events[2];

__global__ void fill(int *out, int value)
{
    out[threadIdx.x] = value;
}

__global__ void add(const int *in, int *out)
{
    out[threadIdx.x] += in[threadIdx.x];
}

static void use(int i)
{
    CHECK(cudaSetDevice(devices[i]));
}

static long sum_of(int i)
{
    int host[COUNT];
    long sum = 0;
    for (int k = 0; k < 2; k++) {
        use(k);
        CHECK(cudaDeviceSynchronize());
    }
    use(i);
    CHECK(cudaMemcpy(host, memory[i], BYTES, cudaMemcpyDeviceToHost));
    for (int k = 0; k < COUNT; k++)
        sum += host[k];
    return sum;
}

static long
peer_copy(void) /* in no stream: behind all work of both devices, and before what comes */
{
    use(1);
    fill<<<1, COUNT>>>(memory[1], 3);
    use(0);
    fill<<<1, COUNT>>>(memory[0], 1);
    CHECK(cudaMemcpyPeer(memory[0], devices[0], memory[1], devices[1], BYTES));
    use(1);
    fill<<<1, COUNT>>>(memory[1], 4);
    use(0);
    add<<<1, COUNT>>>(memory[0], memory[0]);
    return sum_of(0);
}

static long default_copy(void) /* the same by cudaMemcpy */
{
    use(1);
    fill<<<1, COUNT>>>(memory[1], 5);
    use(0);
    CHECK(cudaMemcpy(memory[0], memory[1], BYTES, cudaMemcpyDefault));
    use(1);
    fill<<<1, COUNT>>>(memory[1], 6);
    return sum_of(0);
}

static long with_events(void)
{
    use(0);
    fill<<<1, COUNT, 0, streams[0]>>>(memory[0], 7);
    CHECK(cudaEventRecord(events[0], streams[0]));
    use(1);
    CHECK(cudaStreamWaitEvent(streams[1], events[0], 0));
    CHECK(cudaMemcpyPeerAsync(memory[1], devices[1], memory[0], devices[0], BYTES, streams[1]));
    add<<<1, COUNT, 0, streams[1]>>>(memory[1], memory[1]);
    CHECK(cudaEventRecord(events[1], streams[1]));
    use(0);
    CHECK(cudaStreamWaitEvent(streams[0], events[1], 0));
    fill<<<1, COUNT, 0, streams[0]>>>(memory[0], 0);
    return sum_of(1);
}

static long stores_to_peer(void)
{
    int possible = devices[0] == devices[1];
    use(0);
    if (!possible) {
        CHECK(cudaDeviceCanAccessPeer(&possible, devices[0], devices[1]));
        if (possible &&
            cudaDeviceEnablePeerAccess(devices[1], 0) == cudaErrorPeerAccessAlreadyEnabled)
            cudaGetLastError();
    }
    fill<<<1, COUNT, 0, streams[0]>>>(memory[possible ? 1 : 0], 2);
    CHECK(cudaStreamSynchronize(streams[0]));
    use(1);
    if (!possible)
        fill<<<1, COUNT>>>(memory[1], 2);
    add<<<1, COUNT, 0, streams[1]>>>(memory[1], memory[1]);
    return sum_of(1);
}

static long threads(void) /* a thread for each device, round after round */
{
    std::thread workers[2];
    for (int i = 0; i < 2; i++)
        workers[i] = std::thread([i] {
            use(i);
            for (int round = 0; round < 4; round++) {
                int *p;
                CHECK(cudaMalloc(&p, BYTES));
                fill<<<1, COUNT, 0, streams[i]>>>(p, round);
                fill<<<1, COUNT, 0, streams[i]>>>(memory[i], 1);
                add<<<1, COUNT, 0, streams[i]>>>(p, memory[i]);
                CHECK(cudaStreamSynchronize(streams[i]));
                CHECK(cudaFree(p));
            }
        });
    for (int i = 0; i < 2; i++)
        workers[i].join();
    return sum_of(0) + sum_of(1);
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"peer_copy", peer_copy, 6 * COUNT},      {"default_copy", default_copy, 5 * COUNT},
        {"with_events", with_events, 14 * COUNT}, {"stores_to_peer", stores_to_peer, 4 * COUNT},
        {"threads", threads, 8 * COUNT},
    };
    int count;
    CHECK(cudaGetDeviceCount(&count));
    for (int i = 0; i < 2; i++) {
        devices[i] = i % count;
        use(i);
        CHECK(cudaMalloc(&memory[i], BYTES));
        CHECK(cudaMemset(memory[i], 0, BYTES));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
    }
    int wrong = run_cases(cases, argc, argv);
    for (int i = 0; i < 2; i++) {
        use(i);
        CHECK(cudaFree(memory[i]));
        CHECK(cudaStreamDestroy(streams[i]));
        CHECK(cudaEventDestroy(events[i]));
    }
    return wrong;
}
