// Copies and barriers of libcu++ inside a block: cuda::barrier, cuda::pipeline, memcpy_async.
// Made into async.ptx by scripts/make-test-ptx: nvcc -ptx -lineinfo -arch=sm_90 async.cu
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// Each thread hands its value to the next one, `rounds` times: out[i] = in[(i - rounds) mod threads].
extern "C" __global__ void relay(int *out, const int *in, int rounds)
{
    __shared__ block_barrier barrier;
    __shared__ int value[2][256];
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    int mine = in[threadIdx.x];
    for (int i = 0; i < rounds; i++) {
        value[i % 2][(threadIdx.x + 1) % blockDim.x] = mine;
        auto token = barrier.arrive();
        barrier.wait(std::move(token));
        mine = value[i % 2][threadIdx.x];
    }
    out[threadIdx.x] = mine;
}

// The same with the wait left out in round 1: a race.
extern "C" __global__ void relay_racy(int *out, const int *in, int rounds)
{
    __shared__ block_barrier barrier;
    __shared__ int value[256];
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    value[(threadIdx.x + 1) % blockDim.x] = in[threadIdx.x];
    if (rounds > 1)
        barrier.arrive_and_wait();
    out[threadIdx.x] = value[threadIdx.x];
}

// Warps 1 and up leave the barrier one after the other; who stays goes on alone. out[warp] = rounds it took part in.
extern "C" __global__ void leave(int *out)
{
    __shared__ block_barrier barrier;
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    __syncthreads();
    int warp = threadIdx.x / 32, warps = blockDim.x / 32, rounds = 0;
    for (int i = 0; i < warps; i++) {
        if (warp == warps - 1 - i && warp > 0) {
            barrier.arrive_and_drop();
            break;
        }
        barrier.arrive_and_wait();
        rounds++;
    }
    if (threadIdx.x % 32 == 0)
        out[warp] = rounds;
}

// Bulk copies where the architecture has them, else cp.async: out = in reversed, block by block.
extern "C" __global__ void reverse(int *out, const int *in)
{
    __shared__ alignas(16) int tile[512];
    __shared__ block_barrier barrier;
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0)
        init(&barrier, blockDim.x);
    block.sync();
    cuda::memcpy_async(block, tile, in + blockIdx.x * 512, cuda::aligned_size_t<16>(sizeof tile), barrier);
    barrier.arrive_and_wait();
    for (int i = threadIdx.x; i < 512; i += blockDim.x)
        out[blockIdx.x * 512 + i] = tile[511 - i];
}

// Two stages: the next tile is on its way while this one is summed.
extern "C" __global__ void stages(int *out, const int *in, int tiles)
{
    constexpr int depth = 2, size = 128;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, depth> state;
    __shared__ alignas(16) int tile[depth][size];
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int sum = 0;
    for (int next = 0, now = 0; now < tiles; now++) {
        for (; next < tiles && next < now + depth; next++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, tile[next % depth], in + next * size, cuda::aligned_size_t<16>(sizeof tile[0]), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += tile[now % depth][size - 1 - threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}

// Half of the threads produce, half consume.
extern "C" __global__ void roles(int *out, const int *in, int rounds)
{
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    __shared__ int slot[2][64];
    auto block = cg::this_thread_block();
    bool producer = threadIdx.x < 64;
    auto pipe = cuda::make_pipeline(block, &state, producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
    if (producer) {
        for (int i = 0; i < rounds; i++) {
            pipe.producer_acquire();
            slot[i % 2][threadIdx.x] = 2 * in[i * 64 + threadIdx.x];
            pipe.producer_commit();
        }
    } else {
        for (int i = 0; i < rounds; i++) {
            pipe.consumer_wait();
            out[i * 64 + threadIdx.x - 64] = slot[i % 2][127 - threadIdx.x];
            pipe.consumer_release();
        }
    }
}
