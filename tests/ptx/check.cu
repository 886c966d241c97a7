// Kernels for the checked mode: each *_bad does one thing wrong, each *_good is its sound twin.
// Made into check.ptx by scripts/make-test-ptx: nvcc -ptx -lineinfo -arch=sm_75 check.cu
#define KERNEL extern "C" __global__ void

KERNEL oob_write(float *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i <= n) a[i] = 1; }
KERNEL oob_read(const float *a, float *out, int n) { int i = threadIdx.x; out[i] = a[i + n]; }
// Far past its own buffer, inside another: only the pointer's origin tells.
KERNEL far_write(float *a, float *b, long distance) { a[threadIdx.x + distance] = b[threadIdx.x]; }
KERNEL far_good(float *a, float *b, long unused) { a[threadIdx.x] = b[threadIdx.x]; }
KERNEL before(float *a) { a[(int)threadIdx.x - 1] = 2; }
KERNEL misaligned(char *a) { *(int *)(a + 2) = 1; }
KERNEL misaligned_vector(float *a) { *(float4 *)(a + 1) = make_float4(1, 2, 3, 4); }

// Pointer arithmetic that is right but crosses allocations on the way.
KERNEL pointer_difference(char *p, char *q, char *r, char *out)
{
    long d = p - q;
    char *s = r + d; // r is q's twin: lands in p
    out[threadIdx.x] = s[threadIdx.x];
}
KERNEL pointer_select(const float *a, const float *b, float *out, int which)
{
    const float *p = which ? a : b;
    out[threadIdx.x] = p[threadIdx.x];
}
KERNEL pointer_table(float *const *table, float *out) { out[threadIdx.x] = table[threadIdx.x & 1][threadIdx.x]; }
KERNEL pointer_end(const float *begin, const float *end, float *out)
{
    float s = 0;
    for (const float *p = end; p-- != begin;)
        s += *p;
    out[0] = s;
}
KERNEL pointer_loop(const float *a, const float *b, float *c, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        c[i] = a[i] + b[n - 1 - i];
}
__device__ float table[4] = {1, 2, 3, 4};
KERNEL variable_good(float *out) { out[threadIdx.x] = table[threadIdx.x & 3]; }
KERNEL variable_oob(float *out) { out[threadIdx.x] = table[threadIdx.x]; }
__constant__ float constants[4] = {1, 2, 3, 4};
KERNEL constant_oob(float *out) { out[threadIdx.x] = constants[threadIdx.x]; }
KERNEL constant_write(float *out) { *(volatile float *)(out) = 1; }

KERNEL shared_oob(float *out) { __shared__ float s[32]; s[threadIdx.x] = threadIdx.x; __syncthreads(); out[threadIdx.x] = s[31 - threadIdx.x]; }
KERNEL local_oob(float *out, int n) { float l[4]; for (int i = 0; i < 4; i++) l[i] = i; l[n] = 7; out[0] = l[n & 3] + l[(n + 1) & 3]; }

// Uninitialised memory
struct padded { char c; int i; };
KERNEL uninit_sum(const float *a, float *out) { out[threadIdx.x] = a[threadIdx.x] + 1; }
KERNEL uninit_branch(const int *a, int *out) { if (a[threadIdx.x] > 3) out[threadIdx.x] = 1; }
KERNEL uninit_index(const int *a, int *out, const int *b) { out[threadIdx.x] = b[a[threadIdx.x] & 3]; }
KERNEL copy_struct(const padded *a, padded *b) { b[threadIdx.x] = a[threadIdx.x]; }
KERNEL copy_words(const int4 *a, int4 *b) { b[threadIdx.x] = a[threadIdx.x]; }
KERNEL use_part(const int4 *a, int *out) { int4 v = a[threadIdx.x]; out[threadIdx.x] = v.x + v.z; }
KERNEL use_byte(const unsigned *a, unsigned *out) { unsigned v = a[threadIdx.x]; out[threadIdx.x] = (v & 0xff) + (v >> 24); }
KERNEL write_then_read(float *a, float *out) { a[threadIdx.x] = 3; __syncthreads(); out[threadIdx.x] = a[threadIdx.x ^ 1] + 1; }
KERNEL shared_uninit(float *out) { __shared__ float s[64]; if (threadIdx.x < 16) s[threadIdx.x] = 1; __syncthreads(); out[threadIdx.x] = s[threadIdx.x] * 2; }
KERNEL shared_init(float *out) { __shared__ float s[64]; s[threadIdx.x] = 1; __syncthreads(); out[threadIdx.x] = s[threadIdx.x ^ 1] * 2; }
KERNEL local_uninit(float *out, int n) { volatile float l[8]; for (int i = 0; i < n; i++) l[i] = i; out[threadIdx.x] = l[threadIdx.x & 7] + 1; }
KERNEL atomic_uninit(int *a) { atomicAdd(a, 1); }

// Races
KERNEL race_shared_bad(float *out) { __shared__ float s[64]; s[threadIdx.x] = threadIdx.x; out[threadIdx.x] = s[63 - threadIdx.x]; }
KERNEL race_shared_good(float *out) { __shared__ float s[64]; s[threadIdx.x] = threadIdx.x; __syncthreads(); out[threadIdx.x] = s[63 - threadIdx.x]; }
KERNEL race_reuse_bad(float *out)
{
    __shared__ float s[64];
    for (int k = 0; k < 2; k++) { s[threadIdx.x] = threadIdx.x + k; __syncthreads(); out[threadIdx.x] += s[63 - threadIdx.x]; }
}
KERNEL race_reuse_good(float *out)
{
    __shared__ float s[64];
    for (int k = 0; k < 2; k++) { s[threadIdx.x] = threadIdx.x + k; __syncthreads(); out[threadIdx.x] += s[63 - threadIdx.x]; __syncthreads(); }
}
KERNEL race_warp_good(float *out)
{
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
KERNEL race_warp_bad(float *out) // between warps a __syncwarp orders nothing
{
    __shared__ float s[64];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 32];
}
KERNEL race_same_value(int *out)
{
    __shared__ int flag[1];
    asm volatile("st.shared.u32 [%0], 1;" ::"l"(__cvta_generic_to_shared(flag)) : "memory");
    __syncthreads();
    out[threadIdx.x] = flag[0];
}
KERNEL race_atomic_good(int *out) { __shared__ int n; if (threadIdx.x == 0) n = 0; __syncthreads(); atomicAdd(&n, 1); __syncthreads(); out[threadIdx.x] = n; }
KERNEL race_bytes_good(char *out) { __shared__ char s[64]; s[threadIdx.x] = 1; out[threadIdx.x] = s[threadIdx.x]; }
KERNEL race_global_bad(int *a) { a[0] = blockIdx.x; }
KERNEL race_global_count(int *a) { a[0] += 1; }
KERNEL race_global_good(int *a) { a[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x; }
KERNEL race_volatile_reduce(volatile float *out)
{
    __shared__ volatile float s[64];
    s[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x < 32) {
        s[threadIdx.x] += s[threadIdx.x + 32];
        s[threadIdx.x] += s[threadIdx.x + 16];
    }
    if (threadIdx.x == 0)
        out[0] = s[0];
}
// The last block sums what all blocks left: fence and counter.
__device__ unsigned counter;
KERNEL last_block(float *partial, float *total)
{
    __shared__ bool last;
    partial[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        last = atomicInc(&counter, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float s = 0;
        for (unsigned i = 0; i < gridDim.x * blockDim.x; i++)
            s += partial[i];
        total[0] = s;
    }
}
__device__ int lock;
KERNEL spin_lock(int *value)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            value[0] += 1;
            __threadfence();
            atomicExch(&lock, 0);
            done = true;
        }
    }
}
// Threads of a block wait at different barriers
KERNEL barrier_bad(int *out)
{
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1;");
    else
        asm volatile("bar.sync 2;");
    out[threadIdx.x] = 1;
}
KERNEL barrier_pairs(int *out)
{
    __shared__ int s[64];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = threadIdx.x;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x - 32] = s[threadIdx.x - 32];
    }
}
KERNEL traps(int *a) { if (threadIdx.x == 5) asm volatile("trap;"); a[threadIdx.x] = 1; }
