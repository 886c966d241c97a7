// Control flow, calls, and what threads do together.
// Made into control.ptx by scripts/make-test-ptx: nvcc -ptx -lineinfo -arch=sm_75
#include <cassert>
#include <cstdio>
#include <cooperative_groups.h>
#define KERNEL extern "C" __global__ void

KERNEL divergence(int *out)
{
    int x = threadIdx.x, n = 0;
    while (x != 1 && n < 100) {
        if (x == 0)
            break;
        x = x & 1 ? 3 * x + 1 : x / 2;
        n++;
    }
    out[threadIdx.x] = n;
}
KERNEL early_exit(int *out)
{
    if (threadIdx.x % 3 == 0)
        return;
    __syncthreads();
    out[threadIdx.x] = 7;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
KERNEL recursion(int *out) { out[threadIdx.x] = fibonacci(threadIdx.x); }
__device__ __noinline__ int endless(int n) { volatile int a[64]; a[n & 63] = n; return endless(n + 1) + a[n & 63]; }
KERNEL deep(int *out) { out[0] = endless(0); }

struct pair { int a; double b; char c[3]; };
__device__ __noinline__ pair swap_halves(pair p, int k) { p.a += k; p.b *= 2; p.c[k % 3] = (char)k; return p; }
KERNEL by_value(int *out)
{
    pair p = {(int)threadIdx.x, 1.5, {1, 2, 3}};
    p = swap_halves(p, 5);
    out[threadIdx.x] = p.a + (int)p.b + p.c[2];
}
typedef int (*function)(int);
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ function functions[2] = {twice, square};
KERNEL indirect(int *out, int which) { out[threadIdx.x] = functions[which & 1](threadIdx.x); }
KERNEL bad_indirect(int *out, function f) { out[threadIdx.x] = f(threadIdx.x); }
KERNEL local_array(int *out, int n)
{
    int a[16];
    for (int i = 0; i < 16; i++)
        a[i] = i * i;
    int s = 0;
    for (int i = 0; i < n; i++)
        s += a[(i * 5 + threadIdx.x) & 15];
    out[threadIdx.x] = s;
}
__device__ __noinline__ void through_generic(int *p, int v) { *p += v; }
KERNEL generic_spaces(int *out)
{
    __shared__ int s[64];
    int l[2] = {1, 2};
    s[threadIdx.x] = 10;
    out[threadIdx.x] = 100;
    through_generic(&s[threadIdx.x], 1);
    through_generic(&l[threadIdx.x & 1], 2);
    through_generic(&out[threadIdx.x], 3);
    out[threadIdx.x] += s[threadIdx.x] + l[threadIdx.x & 1];
}
extern __shared__ int dynamic[];
KERNEL dynamic_shared(int *out)
{
    __shared__ int fixed[3];
    fixed[0] = 1;
    dynamic[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = dynamic[blockDim.x - 1 - threadIdx.x] + fixed[0];
}
KERNEL big_struct(int *out, pair p, int k) { out[threadIdx.x] = p.a + (int)p.b + p.c[k]; }

// Lanes
KERNEL shuffles(int *out)
{
    int lane = threadIdx.x & 31, v = lane * 10;
    out += threadIdx.x * 8;
    out[0] = __shfl_sync(0xffffffff, v, 5);
    out[1] = __shfl_sync(0xffffffff, v, lane + 1, 8);
    out[2] = __shfl_up_sync(0xffffffff, v, 3);
    out[3] = __shfl_up_sync(0xffffffff, v, 2, 16);
    out[4] = __shfl_down_sync(0xffffffff, v, 4);
    out[5] = __shfl_down_sync(0xffffffff, v, 3, 8);
    out[6] = __shfl_xor_sync(0xffffffff, v, 9);
    out[7] = __shfl_xor_sync(0xffffffff, v, 16, 16);
}
KERNEL votes(int *out)
{
    int lane = threadIdx.x & 31;
    out += threadIdx.x * 8;
    out[0] = __all_sync(0xffffffff, lane < 32);
    out[1] = __any_sync(0xffffffff, lane == 40);
    out[2] = __ballot_sync(0xffffffff, lane % 3 == 0);
    out[3] = lane < 16 ? __ballot_sync(0x0000ffff, lane & 1) : __ballot_sync(0xffff0000, 1);
    out[4] = __match_any_sync(0xffffffff, lane / 4);
    int all;
    out[5] = __match_all_sync(0xffffffff, lane < 40, &all);
    out[6] = all;
    out[7] = __match_all_sync(0xffffffff, (unsigned long long)lane / 16, &all);
}
KERNEL active(int *out)
{
    unsigned mask = 0;
    if (threadIdx.x & 1)
        mask = __activemask();
    out[threadIdx.x] = mask;
}
KERNEL block_votes(int *out)
{
    out[threadIdx.x * 3] = __syncthreads_count(threadIdx.x % 5 == 0);
    out[threadIdx.x * 3 + 1] = __syncthreads_and(threadIdx.x < 60);
    out[threadIdx.x * 3 + 2] = __syncthreads_or(threadIdx.x == 40);
}
KERNEL warp_sums(float *out)
{
    float v = threadIdx.x;
    for (int k = 16; k; k >>= 1)
        v += __shfl_down_sync(0xffffffff, v, k);
    __shared__ float partial[32];
    if ((threadIdx.x & 31) == 0)
        partial[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
        for (int k = 16; k; k >>= 1)
            v += __shfl_down_sync(0xffffffff, v, k);
        if (threadIdx.x == 0)
            out[blockIdx.x] = v;
    }
}

// Atomics
KERNEL atomics(int *a, float *f, double *d, unsigned long long *u)
{
    __shared__ int s[4];
    if (threadIdx.x < 4)
        s[threadIdx.x] = 0;
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&a[0], t);
    atomicSub(&a[1], 1);
    atomicMin(&a[2], -t);
    atomicMax((unsigned *)&a[3], (unsigned)t);
    atomicAnd(&a[4], ~(1 << (t & 15)));
    atomicOr(&a[5], 1 << (t & 15));
    atomicXor(&a[6], t);
    atomicInc((unsigned *)&a[7], 9);
    atomicDec((unsigned *)&a[8], 9);
    atomicAdd(f, 1.0f);
    atomicAdd(d, 0.5);
    atomicAdd(u, 1ull << 33);
    atomicMax(&u[1], (unsigned long long)t << 32);
    atomicAdd(&s[t & 3], 1);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&a[9], s[0] + s[1] + s[2] + s[3]);
    int old = a[10], assumed;
    do {
        assumed = old;
        old = atomicCAS(&a[10], assumed, assumed + 2);
    } while (old != assumed);
    if (atomicExch(&a[11], t) == t)
        a[11] = -1;
}
__device__ int lock;
KERNEL spin(int *out) // lanes of one warp contend for a lock
{
    while (atomicCAS(&lock, 0, 1) != 0)
        ;
    *(volatile int *)out = *(volatile int *)out + 1;
    __threadfence();
    atomicExch(&lock, 0);
}
// The first block waits for a flag that the last one sets.
__device__ volatile int flag;
KERNEL wait_for_later(int *out)
{
    if (blockIdx.x == 0)
        while (!flag)
            ;
    if (blockIdx.x == gridDim.x - 1)
        flag = 1;
    out[blockIdx.x] = blockIdx.x;
}
KERNEL grid_sync(int *a, int *out)
{
    cooperative_groups::grid_group g = cooperative_groups::this_grid();
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int k = 0; k < 3; k++) {
        a[i] = i + k;
        g.sync();
        out[i] += a[n - 1 - i];
        g.sync();
    }
}
KERNEL identity(unsigned *out)
{
    unsigned i = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y * blockDim.z +
                 (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned lane, warp, lt;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
    out[4 * i] = blockIdx.x | blockIdx.y << 8 | blockIdx.z << 16 | threadIdx.x << 24;
    out[4 * i + 1] = lane;
    out[4 * i + 2] = warp;
    out[4 * i + 3] = lt;
}
KERNEL prints(int n) { printf("%d %5.2f|%-4s|%c %llx %u%% %p\n", n, 1.5, "ab", 'x', 1ull << 40, 7u, (void *)0); printf("plain\n"); }
KERNEL asserts(int *out) { assert(threadIdx.x != 3); out[threadIdx.x] = 1; }
KERNEL endless_loop(volatile int *p) { while (!*p); }
KERNEL half_math(unsigned short *out, float x)
{
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    out[0] = h;
}
KERNEL clocks(long long *out) { long long a = clock64(); int s = 0; for (int i = 0; i < 10; i++) s += (int)out[i & 1]; out[1] = clock64() - a + (s & 0); out[0] = a >= 0; }
