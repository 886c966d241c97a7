/* kernels.cu - sound kernels of odd build: threads that leave before a barrier, warps in parts,
 * barriers for some warps, waiting for other blocks, races that do no harm, memory of the device's
 * own; and numbers that look like mistakes and are meant. */
#include <cfloat>
#include <cmath>
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include "cases.h"

namespace cg = cooperative_groups;

#define COUNT 256
#define BYTES (COUNT * sizeof(int))

static int *in, *out;

static long sum_of(const int *from, int count)
{
    static int host[COUNT];
    long sum = 0;
    DONE();
    CHECK(cudaMemcpy(host, from, count * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++)
        sum += host[i];
    return sum;
}

static float sum_of_floats(const void *from, int count)
{
    static float host[COUNT];
    float sum = 0;
    DONE();
    CHECK(cudaMemcpy(host, from, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++)
        sum += host[i];
    return sum;
}

/* ---- barriers ---- */

__global__ void leave_early(const int *in, int *out, int count)
{
    __shared__ int tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return; /* the barrier does not count who has ended */
    tile[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = tile[threadIdx.x ^ 1];
}

static long early(void)
{
    leave_early<<<2, 128>>>(in, out, 200);
    return sum_of(out, 200);
}

__global__ void named_barriers(const int *in, int *out) /* two warps bring, two others take */
{
    __shared__ int slots[64];
    int warp = threadIdx.x / 32, lane = threadIdx.x & 63;
    for (int round = 0; round < 2; round++) {
        if (warp < 2) {
            slots[lane] = in[round * 64 + lane];
            asm volatile("bar.arrive 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
        } else {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            out[round * 64 + lane] = slots[63 - lane];
            asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    }
}

static long named(void)
{
    named_barriers<<<1, 128>>>(in, out);
    return sum_of(out, 128);
}

/* ---- what nobody wrote, and does not matter ---- */

__global__ void in_set(const unsigned *sparse, const unsigned *dense, unsigned count, int *out)
{
    unsigned place = sparse[threadIdx.x]; /* of members only; the set is never cleared */
    out[threadIdx.x] = place < count && dense[place] == threadIdx.x;
}

__global__ void turn_tile(const int *in, int *out, int count) /* stores whole tiles; `out` has room for them */
{
    __shared__ int tile[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < count)
        tile[threadIdx.x ^ 1] = in[i];
    __syncthreads();
    out[i] = tile[threadIdx.x];
}

struct tagged {
    char tag;
    int value;
};

__global__ void tell_one(const int *in, tagged *out)
{
    __shared__ tagged one;
    if (threadIdx.x == 0) {
        one.tag = 'x';
        one.value = in[5];
    }
    __syncthreads();
    if (threadIdx.x < sizeof one / 4) /* its hole goes along */
        ((int *)out)[threadIdx.x] = ((const int *)&one)[threadIdx.x];
}

static long unwritten(void)
{
    static const unsigned member = 7, at = 0;
    unsigned *sparse, *dense;
    tagged told;
    CHECK(cudaMalloc(&sparse, BYTES));
    CHECK(cudaMalloc(&dense, BYTES));
    CHECK(cudaMemcpy(sparse + member, &at, 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dense, &member, 4, cudaMemcpyHostToDevice));
    in_set<<<1, 64>>>(sparse, dense, 1, out);
    long sum = sum_of(out, 64);
    turn_tile<<<4, 64>>>(in, out, 200);
    sum += sum_of(out, 200);
    tell_one<<<1, 64>>>(in, (tagged *)out);
    DONE();
    CHECK(cudaMemcpy(&told, out, sizeof told, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(sparse));
    CHECK(cudaFree(dense));
    return sum + told.value + told.tag;
}

/* ---- warps ---- */

__global__ void warp_parts(const int *in, int *out)
{
    int lane = threadIdx.x & 31, value = in[threadIdx.x];
    if (lane < 20) {
        unsigned mask = __ballot_sync(0xfffff, lane % 3 == 0);
        if (lane % 3 == 0) {
            value += __shfl_sync(mask, value, 3);
            __syncwarp(mask);
        }
    } else if (lane >= 24) {
        for (int step = 4; step; step /= 2)
            value += __shfl_xor_sync(0xff000000, value, step);
    }
    __syncwarp();
    unsigned same = __match_any_sync(0xffffffff, value & 1);
    out[threadIdx.x] = value + __popc(same);
}

__global__ void
warp_slots(const int *in,
           int *out) /* a warp's own part of shared memory, no barrier of the block */
{
    __shared__ int slots[4][32];
    int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    if (lane < 16)
        slots[warp][lane] = in[threadIdx.x];
    __syncwarp();
    int value = slots[warp][lane / 2];
    __syncwarp();
    slots[warp][31 - lane] = value;
    __syncwarp();
    out[threadIdx.x] = slots[warp][lane];
}

static long warps(void)
{
    warp_parts<<<1, 64>>>(in, out);
    long sum = sum_of(out, 64) > 0;
    warp_slots<<<1, 128>>>(in, out);
    return sum + sum_of(out, 128);
}

__global__ void groups(const int *in, int *out)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int value = in[threadIdx.x];
    for (int step = 4; step; step /= 2)
        value += tile.shfl_down(value, step);
    if (threadIdx.x % 3 == 0) {
        cg::coalesced_group some = cg::coalesced_threads();
        value += some.size() > 0 ? 0 : 1;
    }
    block.sync();
    if (tile.thread_rank() == 0)
        atomicAdd(out, value);
}

__global__ void grid_phases(const int *in, int *between, int *out)
{
    cg::grid_group grid = cg::this_grid();
    int i = (int)grid.thread_rank(), count = (int)grid.size();
    between[i] = in[i] + 1;
    grid.sync();
    out[i] = between[count - 1 - i];
    grid.sync();
    between[i] = 0;
}

static long together(void)
{
    int *between;
    CHECK(cudaMalloc(&between, BYTES));
    CHECK(cudaMemset(out, 0, BYTES));
    groups<<<2, 64>>>(in, out);
    long sum = sum_of(out, 1);
    void *arguments[] = {&in, &between, &out};
    CHECK(cudaLaunchCooperativeKernel((void *)grid_phases, 4, 64, arguments, 0, 0));
    sum += sum_of(out, COUNT);
    CHECK(cudaFree(between));
    return sum;
}

/* ---- shared memory filled behind the back of the threads ---- */

__global__ void staged(const int *in, int *out)
{
    __shared__ alignas(16) int stages[2][128];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&stages[0][4 * t], &in[4 * t], 16);
    __pipeline_commit();
    for (int k = 0; k < 2; k++) {
        if (k == 0) {
            __pipeline_memcpy_async(&stages[1][4 * t], &in[128 + 4 * t], 16);
            __pipeline_commit();
        }
        __pipeline_wait_prior(1 - k);
        __syncthreads();
        for (int i = t; i < 128; i += 32)
            out[k * 128 + i] = stages[k][127 - i];
    }
}

extern __shared__ double bytes_for_all[];
__global__ void reused(const int *in, int *out) /* the same bytes as floats, then as integers */
{
    float *numbers = (float *)bytes_for_all;
    short *words = (short *)bytes_for_all;
    numbers[threadIdx.x] = (float)in[threadIdx.x];
    __syncthreads();
    float value = numbers[127 - threadIdx.x];
    __syncthreads();
    words[threadIdx.x] = (short)value;
    __syncthreads();
    out[threadIdx.x] = words[127 - threadIdx.x];
}

static long shared(void)
{
    staged<<<1, 32>>>(in, out);
    long sum = sum_of(out, 256);
    reused<<<1, 128, 512>>>(in, out);
    return sum + sum_of(out, 128);
}

/* ---- blocks that wait for blocks ---- */

__device__ int ticket, ready[8], sums[8], lock_word, last_count;

__global__ void chained(const int *in,
                        int *out) /* sums from block to block, in the order in which they came */
{
    __shared__ int mine, before;
    if (threadIdx.x == 0)
        mine = atomicAdd(&ticket, 1);
    __syncthreads();
    int value = in[mine * 32 + threadIdx.x];
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(0xffffffff, value, step);
        if (threadIdx.x >= step)
            value += other;
    }
    if (threadIdx.x == 31) {
        if (mine)
            while (__ldcg(&ready[mine - 1]) == 0)
                ;
        __threadfence();
        before = mine ? __ldcg(&sums[mine - 1]) : 0;
        sums[mine] = before + value;
        __threadfence();
        *(volatile int *)&ready[mine] = 1;
    }
    __syncthreads();
    out[mine * 32 + threadIdx.x] = before + value;
}

__global__ void locked(int *total)
{
    if (threadIdx.x == 0) {
        while (atomicCAS(&lock_word, 0, 1) != 0)
            ;
        __threadfence();
        *(volatile int *)total = *(volatile int *)total + 1;
        __threadfence();
        atomicExch(&lock_word, 0);
    }
}

__global__ void last_block(const int *in, int *parts, int *out)
{
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = in[blockIdx.x];
        __threadfence();
        last = atomicAdd(&last_count, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int sum = 0;
        __threadfence();
        for (int i = 0; i < gridDim.x; i++)
            sum += parts[i];
        *out = sum;
    }
}

static long blocks(void)
{
    chained<<<8, 32>>>(in, out);
    long sum = sum_of(out, 256);
    CHECK(cudaMemset(out, 0, BYTES));
    locked<<<6, 32>>>(out);
    sum += sum_of(out, 1);
    last_block<<<8, 32>>>(in, out + 16, out);
    return sum + sum_of(out, 1);
}

/* ---- races that do no harm ---- */

__global__ void any_negative(const int *in, int *found)
{
    __shared__ int here;
    if (threadIdx.x == 0)
        here = 0;
    __syncthreads();
    if (in[blockIdx.x * blockDim.x + threadIdx.x] % 5 == 0)
        here = 1;
    __syncthreads();
    if (here)
        *found = 1; /* by every thread of every block */
}

__global__ void set_bits(unsigned *bits, unsigned char *bytes)
{
    atomicOr(&bits[threadIdx.x / 32], 1u << threadIdx.x % 32);
    bytes[threadIdx.x] = (unsigned char)threadIdx.x; /* neighbours in one word */
}

static long harmless(void)
{
    any_negative<<<2, 128>>>(in, out);
    long sum = sum_of(out, 1);
    CHECK(cudaMemset(out, 0, BYTES));
    set_bits<<<1, 64>>>((unsigned *)out, (unsigned char *)(out + 2));
    return sum + sum_of(out, 2);
}

/* ---- the device's own ---- */

__device__ int *held[4];

__global__ void take(void)
{
    held[threadIdx.x] = (int *)malloc(16 * sizeof(int));
    if (held[threadIdx.x])
        for (int i = 0; i < 16; i++)
            held[threadIdx.x][i] = i;
}

__global__ void give_back(int *out)
{
    int sum = 0;
    for (int i = 0; i < 16 && held[threadIdx.x]; i++)
        sum += held[threadIdx.x][i];
    out[threadIdx.x] = sum;
    free(held[threadIdx.x]);
}

__global__ void speak(int from)
{
    if (threadIdx.x == 0)
        printf("kernel %d of %s: %.2f\n", from, "two", 0.5 * from);
}

struct shape {
    __device__ virtual int area(void) const
    {
        return 0;
    }
};
struct square : shape {
    int side;
    __device__ square(int side) : side(side)
    {
    }
    __device__ int area(void) const override
    {
        return side * side;
    }
};
__device__ int deep(int n)
{
    return n < 2 ? n : deep(n - 1) + deep(n - 2);
}
__device__ int twice(int n)
{
    return 2 * n;
}
__device__ int thrice(int n)
{
    return 3 * n;
}
__device__ int (*const choices[2])(int) = {twice, thrice};

__global__ void calls(const int *in, int *out)
{
    square s(in[threadIdx.x] % 7);
    const shape *some = &s;
    out[threadIdx.x] = some->area() + deep(threadIdx.x % 6) + choices[threadIdx.x % 2](1);
}

static long own(void)
{
    take<<<1, 4>>>();
    give_back<<<1, 4>>>(out);
    long sum = sum_of(out, 4);
    speak<<<1, 32>>>(1);
    speak<<<1, 32>>>(2);
    DONE();
    calls<<<1, 64>>>(in, out);
    return sum + (sum_of(out, 64) > 0);
}

/* ---- numbers ---- */

__global__ void make_numbers(float *x, int kind)
{
    int i = threadIdx.x;
    float value = 0.37f * i - 20;
    if (kind == 0 && i % 7 == 0)
        value = nanf(""); /* missing */
    if (kind == 1 && i % 3 == 0)
        value = -INFINITY; /* masked */
    if (kind == 2)
        value = i == 0 ? FLT_MAX : i == 1 ? -FLT_MAX : __int_as_float(0x7fc00000 + i);
    x[i] = value;
}

__global__ void mean_of_present(const float *x, float *y)
{
    float sum = 0;
    int present = 0;
    for (int i = 0; i < 64; i++)
        if (!isnan(x[i])) {
            sum += x[i];
            present++;
        }
    y[threadIdx.x] = isnan(x[threadIdx.x]) ? nanf("") : x[threadIdx.x] - sum / present;
}

__global__ void softmax(const float *x, float *y)
{
    float most = -INFINITY, sum = 0;
    for (int i = 0; i < 64; i++)
        most = fmaxf(most, x[i]);
    for (int i = 0; i < 64; i++)
        sum += __expf(x[i] - most);
    y[threadIdx.x] = __expf(x[threadIdx.x] - most) / sum;
}

__global__ void log_softmax(const float *p, float *y)
{
    y[threadIdx.x] = logf(p[threadIdx.x]); /* -Inf where p is 0 */
}

__global__ void smallest(const float *x, float *best) /* starts from the largest number there is */
{
    best[threadIdx.x] = FLT_MAX;
    for (int i = 0; i < 4; i++)
        best[threadIdx.x] = fminf(best[threadIdx.x], x[(threadIdx.x + i) % 64]);
}

__global__ void hit_box(const float *direction,
                        float *hits) /* 0 x Inf is taken away by fminf and fmaxf */
{
    float d = direction[threadIdx.x] > 0 ? direction[threadIdx.x] : 0.0f, near = -INFINITY,
          far = INFINITY;
    for (int axis = 0; axis < 3; axis++) {
        float step = 1.0f / (axis == threadIdx.x % 3 ? d : 1.0f), a = (0.0f - 0.0f) * step,
              b = 1.0f * step;
        near = fmaxf(near, fminf(a, b));
        far = fminf(far, fmaxf(a, b));
    }
    hits[threadIdx.x] = near <= far ? near : -1.0f;
}

__global__ void to_nearest(const float *x,
                           float *y) /* rounded by a large number that comes and goes */
{
    float sum = x[threadIdx.x] + 12582912.0f;
    y[threadIdx.x] = sum - 12582912.0f;
}

__global__ void split(const float *x, float *high,
                      float *low) /* the upper and the lower half of the digits */
{
    float c = x[threadIdx.x] * 4097.0f, big = c - x[threadIdx.x];
    high[threadIdx.x] = c - big;
    low[threadIdx.x] = x[threadIdx.x] - high[threadIdx.x];
}

__global__ void residuals(const float *x,
                          float *out) /* what rounding lost, kept for the next time */
{
    float value = x[threadIdx.x], other = x[63 - threadIdx.x], sum = value + 1000 * other,
          part = sum - value;
    out[threadIdx.x] = value - __bfloat162float(__float2bfloat16(value));
    out[64 + threadIdx.x] = value - __half2float(__float2half(value));
    out[128 + threadIdx.x] = (value - (sum - part)) + (1000 * other - part);
    out[192 + threadIdx.x] = value - rintf(value * 8) / 8;
}

__global__ void quantise(const float *x, signed char *q, float *back)
{
    float scale = 20.0f / 127;
    int n = __float2int_rn(fminf(fmaxf(x[threadIdx.x] / scale, -127.0f), 127.0f));
    q[threadIdx.x] = (signed char)n;
    back[threadIdx.x] = n * scale;
}

__global__ void noise(float *x, unsigned seed) /* numbers from bits */
{
    unsigned h = (threadIdx.x + seed) * 2654435761u;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    float r = x[threadIdx.x] + __int_as_float(0x3f800000 | h >> 9) - 1.0f;
    x[threadIdx.x] = __uint_as_float(__float_as_uint(r) + (h & 0xffff) &
                                     0xffff0000); /* rounded to bf16 by chance */
}

__global__ void compensated(const float *x, float *sums)
{
    float sum = 0, lost = 0;
    for (int i = 0; i < 64; i++) {
        float y = x[(i + threadIdx.x) % 64] - lost, t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    sums[threadIdx.x] = sum;
}

__global__ void step_down(float *x) /* until it is too small to matter */
{
    float eps = 1;
    while (1.0f + eps * 0.5f != 1.0f)
        eps *= 0.5f;
    x[threadIdx.x] = eps * 1e-30f * threadIdx.x * 1e-5f; /* subnormal */
}

static long numbers(void)
{
    float *x, *y, *z;
    CHECK(cudaMalloc(&x, 64 * sizeof(float)));
    CHECK(cudaMalloc(&y, 64 * sizeof(float)));
    CHECK(cudaMalloc(&z, 256 * sizeof(float)));
    make_numbers<<<1, 64>>>(x, 0);
    mean_of_present<<<1, 64>>>(x, y);
    make_numbers<<<1, 64>>>(x, 1);
    softmax<<<1, 64>>>(x, y);
    log_softmax<<<1, 64>>>(y, z);
    smallest<<<1, 64>>>(x, z);
    make_numbers<<<1, 64>>>(x, 2);
    make_numbers<<<1, 64>>>(x, 3);
    hit_box<<<1, 64>>>(x, y);
    quantise<<<1, 64>>>(x, (signed char *)z, y);
    noise<<<1, 64>>>(y, 7);
    compensated<<<1, 64>>>(x, y);
    step_down<<<1, 64>>>(y);
    residuals<<<1, 64>>>(x, z);
    to_nearest<<<1, 64>>>(x, y);
    long sum = lrintf(sum_of_floats(y, 64));
    split<<<1, 64>>>(x, y, z);
    sum += lrintf(sum_of_floats(y, 64) + sum_of_floats(z, 64));
    CHECK(cudaFree(x));
    CHECK(cudaFree(y));
    CHECK(cudaFree(z));
    return sum / 10; /* the last digit is the device's */
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"early", early, 19900},          {"named", named, 8128},
        {"warps", warps, 7105},           {"together", together, 36928},
        {"shared", shared, 32640 + 8128}, {"blocks", blocks, 2796194},
        {"harmless", harmless, -1},       {"own", own, 481},
        {"numbers", numbers, -106},       {"unwritten", unwritten, 20026},
    };
    static int host[COUNT];
    for (int i = 0; i < COUNT; i++)
        host[i] = i;
    CHECK(cudaMalloc(&in, BYTES));
    CHECK(cudaMalloc(&out, BYTES));
    CHECK(cudaMemcpy(in, host, BYTES, cudaMemcpyHostToDevice));
    int wrong = run_cases(cases, argc, argv);
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return wrong;
}
