/* Two ranks in one process, on one device: gradients are summed over both, parts exchanged and gathered, as data-parallel training
 * does it. Linked against a library of NCCL's name and prototypes.
 *
 * With -DFAULT_UNINIT the kernel behind the reduction by parts reads twice as much as a rank gets. */
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#include "../must.h"

extern "C" {
#include "shim/nccl_api.h"
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
}

#define CHECK_NCCL(call)                                                                                               \
    do {                                                                                                               \
        int status_ = (int)(call);                                                                                     \
        if (status_) {                                                                                                 \
            std::printf("%s: status %d\n", #call, status_);                                                            \
            std::exit(1);                                                                                              \
        }                                                                                                              \
    } while (0)

constexpr int RANKS = 2, COUNT = 500, FLOAT = 7, SUM = 0, MAX = 2;

__global__ void gradient(float *g, int count, float rank)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        g[i] = (float)(i % 13) * (rank + 1);
}

__global__ void halve(const float *part, float *out, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = part[i] * 0.5f;
}

int main()
{
    const int devices[RANKS] = {0, 0};
    ncclComm_t comm[RANKS], alone;
    cudaStream_t stream[RANKS];
    float *g[RANKS], *sum[RANKS], *part[RANKS], *all[RANKS], *out[RANKS];
    ncclUniqueId id;
    CHECK_NCCL(ncclCommInitAll(comm, RANKS, devices));
    for (int r = 0; r < RANKS; r++) {
        MUST(cudaStreamCreate(&stream[r]));
        MUST(cudaMalloc(&g[r], COUNT * sizeof(float)));
        MUST(cudaMalloc(&sum[r], COUNT * sizeof(float)));
        MUST(cudaMalloc(&part[r], COUNT * sizeof(float)));
        MUST(cudaMalloc(&all[r], COUNT * sizeof(float)));
        MUST(cudaMalloc(&out[r], COUNT * sizeof(float)));
        gradient<<<4, 128, 0, stream[r]>>>(g[r], COUNT, (float)r);
    }
    CHECK_NCCL(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        CHECK_NCCL(ncclAllReduce(g[r], sum[r], COUNT, FLOAT, SUM, comm[r], stream[r]));
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        CHECK_NCCL(ncclReduceScatter(g[r], part[r], COUNT / RANKS, FLOAT, MAX, comm[r], stream[r]));
    CHECK_NCCL(ncclGroupEnd());
    for (int r = 0; r < RANKS; r++) {
#ifdef FAULT_UNINIT
        halve<<<4, 128, 0, stream[r]>>>(part[r], out[r], COUNT); /* FAULT: uninit */
#else
        halve<<<4, 128, 0, stream[r]>>>(part[r], out[r], COUNT / RANKS);
#endif
        MUST(cudaStreamSynchronize(stream[r]));
    }
    CHECK_NCCL(ncclGroupStart());
    for (int r = 0; r < RANKS; r++)
        CHECK_NCCL(ncclAllGather(out[r], all[r], COUNT / RANKS, FLOAT, comm[r], stream[r]));
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(sum[0], COUNT, FLOAT, 1, comm[0], stream[0]));
    CHECK_NCCL(ncclRecv(g[1], COUNT, FLOAT, 0, comm[1], stream[1]));
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_NCCL(ncclCommInitRank(&alone, 1, id, 0));
    CHECK_NCCL(ncclBroadcast(sum[0], g[0], COUNT, FLOAT, 0, alone, stream[0]));
    MUST(cudaDeviceSynchronize());

    std::vector<float> host_sum(COUNT), host_all(COUNT), host_received(COUNT), host_out(COUNT);
    MUST(cudaMemcpy(host_sum.data(), sum[1], COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(host_all.data(), all[0], COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(host_received.data(), g[1], COUNT * sizeof(float), cudaMemcpyDeviceToHost));
#ifdef FAULT_UNINIT
    MUST(cudaMemcpy(host_out.data(), out[0], COUNT * sizeof(float), cudaMemcpyDeviceToHost));
#endif
    bool ok = true;
    for (int i = 0; i < COUNT; i++) {
        float x = (float)(i % 13);
        ok = ok && host_sum[i] == 3 * x && host_received[i] == 3 * x && host_all[i] == x;
    }
    for (int r = 0; r < RANKS; r++)
        CHECK_NCCL(ncclCommDestroy(comm[RANKS - 1 - r]));
    CHECK_NCCL(ncclCommDestroy(alone));
    std::printf("%s\n", ok ? "both ranks agree" : "the ranks differ");
    return ok ? 0 : 1;
}
