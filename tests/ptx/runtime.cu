// Kernels that start kernels, and other calls of the device runtime.
// Made into runtime.ptx by scripts/make-test-ptx: nvcc -ptx -lineinfo -arch=sm_80 -rdc=true runtime.cu
#include <cstdio>
#define KERNEL extern "C" __global__ void

// A log of what ran when: log[0] entries.
__device__ void note(int *log, int id)
{
    log[1 + atomicAdd(log, 1)] = id;
}

KERNEL leaf(int *log, int id) { note(log, id); }

// A binary tree of grids: log[0] counts them.
KERNEL tree(int *log, int depth)
{
    if (threadIdx.x != 0)
        return;
    atomicAdd(log, 1);
    if (depth > 1)
        for (int i = 0; i < 2; i++)
            tree<<<1, 32>>>(log, depth - 1);
}

// Ever deeper: log[1] is the error of the launch that was too deep.
KERNEL chain(int *log)
{
    atomicAdd(log, 1);
    chain<<<1, 1>>>(log);
    cudaError_t error = cudaGetLastError();
    if (error)
        log[1] = error;
}

KERNEL child_of_tail(int *log)
{
    leaf<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 11);
    leaf<<<1, 1>>>(log, 10);
    note(log, 9);
}

// Default stream in order, then what was put behind the grid, in order, each with its own.
KERNEL order(int *log)
{
    leaf<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 8);
    child_of_tail<<<1, 1, 0, cudaStreamTailLaunch>>>(log);
    leaf<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 12);
    for (int i = 1; i < 8; i++)
        leaf<<<1, 1>>>(log, i);
    note(log, 0);
}

// 5 only after 1 to 4 of the other stream; 6 whenever it likes.
KERNEL events(int *log)
{
    cudaStream_t a, b;
    cudaEvent_t event;
    cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    for (int i = 1; i < 5; i++)
        leaf<<<1, 1, 0, a>>>(log, i);
    cudaEventRecord(event, a);
    cudaStreamWaitEvent(b, event, 0);
    leaf<<<1, 1, 0, b>>>(log, 5);
    leaf<<<1, 1, 0, cudaStreamFireAndForget>>>(log, 6);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    cudaEventDestroy(event);
    note(log, cudaGetLastError());
}

struct triple {
    short v[3];
};
KERNEL take(long *out, char a, double b, triple c, float d, long e)
{
    extern __shared__ int dynamic[];
    if (threadIdx.y == 0)
        dynamic[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0) {
        out[0] = a; out[1] = (long)b; out[2] = c.v[0]; out[3] = c.v[1]; out[4] = c.v[2];
        out[5] = (long)d; out[6] = e; out[7] = gridDim.x; out[8] = blockDim.y; out[9] = dynamic[blockDim.x - 1];
    }
}
KERNEL give(long *out)
{
    take<<<dim3(3, 2), dim3(8, 4), 32>>>(out, -5, 1e6, triple{{1, -2, 3}}, 2.5f, -1L << 40);
}

// bytes: rows of 16.
KERNEL copies(unsigned char *to, const unsigned char *from)
{
    cudaMemsetAsync(to, 1, 16);
    cudaMemcpyAsync(to + 3, from, 5, cudaMemcpyDeviceToDevice);
    cudaMemcpyAsync(to + 16, to, 16, cudaMemcpyDeviceToDevice);
    cudaMemcpy2DAsync(to + 32, 16, from, 8, 8, 3, cudaMemcpyDeviceToDevice);
    cudaMemset2DAsync(to + 42, 16, 7, 3, 2);
    cudaMemcpy3DParms p = {};
    p.srcPtr = cudaPitchedPtr{(void *)from, 4, 4, 2};
    p.dstPtr = cudaPitchedPtr{to + 80, 16, 16, 2};
    p.extent = cudaExtent{4, 2, 2};
    p.kind = cudaMemcpyDeviceToDevice;
    cudaMemcpy3DAsync(&p, 0);
    cudaMemset3DAsync(cudaPitchedPtr{to + 88, 16, 16, 2}, 9, cudaExtent{2, 1, 2});
}

KERNEL facts(int *out)
{
    int v;
    size_t limit;
    cudaFuncAttributes attributes;
    void *block;
    cudaDeviceGetAttribute(&out[0], cudaDevAttrWarpSize, 0);
    cudaDeviceGetAttribute(&out[1], cudaDevAttrMultiProcessorCount, 0);
    out[2] = cudaDeviceGetAttribute(&v, (cudaDeviceAttr)99999, 0);
    cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount);
    out[3] = (int)limit;
    cudaFuncGetAttributes(&attributes, tree);
    out[4] = attributes.maxThreadsPerBlock;
    out[5] = cudaMalloc(&block, 100);
    *(int *)block = 5;
    out[6] = cudaFree(block);
    out[7] = cudaMalloc(&block, (size_t)1 << 40);
    cudaGetDevice(&out[8]);
    cudaGetDeviceCount(&out[9]);
    cudaRuntimeGetVersion(&out[10]);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&out[11], tree, 512, 0);
    out[12] = cudaPeekAtLastError();
    out[13] = cudaGetLastError();
    out[14] = cudaGetLastError();
    printf("%s: %s", cudaGetErrorName(cudaErrorMemoryAllocation), cudaGetErrorString(cudaErrorMemoryAllocation));
}

// What cannot be launched: an error each, and nothing runs.
KERNEL wrong(int *log, int *errors)
{
    leaf<<<1, 2000>>>(log, 1);
    errors[0] = cudaGetLastError();
    leaf<<<0, 1>>>(log, 1);
    errors[1] = cudaGetLastError();
    leaf<<<1, 1, 1 << 20>>>(log, 1);
    errors[2] = cudaGetLastError();
    leaf<<<1, 1, 0, (cudaStream_t)12345>>>(log, 1);
    errors[3] = cudaGetLastError();
    cudaStream_t s;
    errors[4] = cudaStreamCreateWithFlags(&s, cudaStreamDefault);
    errors[5] = cudaEventRecord((cudaEvent_t)77, 0);
    errors[6] = cudaMemcpyAsync(log, log, 4, (cudaMemcpyKind)9);
}

KERNEL sets(int *a, int n) { a[blockIdx.x * blockDim.x + threadIdx.x + n] = n; }
KERNEL adds(const int *a, int *out) { atomicAdd(out, a[threadIdx.x] + 1); }
// `n` behind the end when it is not 0; of two grids.
KERNEL outside(int *a, int n)
{
    sets<<<1, 8>>>(a, n);
    sets<<<1, 8>>>(a, n);
}
KERNEL fills(int *a, int n) { cudaMemsetAsync(a, 0, n); }
KERNEL parent_writes(int *a, int *out)
{
    a[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0)
        adds<<<1, 8>>>(a, out);
}
KERNEL child_reads(int *a, int *out) { adds<<<1, 8>>>(a, out); }

// One step behind the other, `n` times.
KERNEL steps(int *log, int n)
{
    atomicAdd(log, 1);
    if (n > 1)
        steps<<<1, 1, 0, cudaStreamTailLaunch>>>(log, n - 1);
}

// Every thread of several blocks: blocks have default streams of their own.
KERNEL many(int *log, int *failed)
{
    leaf<<<1, 1>>>(log, blockIdx.x * blockDim.x + threadIdx.x);
    if (cudaGetLastError())
        atomicAdd(failed, 1);
}

KERNEL forever() { for (;;) __threadfence(); }
KERNEL starts_forever() { forever<<<1, 1>>>(); }
KERNEL condition(cudaGraphConditionalHandle handle) { cudaGraphSetConditional(handle, 3); }
