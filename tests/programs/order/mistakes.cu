/* mistakes.cu - one mistake of each kind, `mistakes NAME`; the line that does the damage is marked.
 * Results are not checked, and errors that follow are ignored, as by those who make such mistakes.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define COUNT 256
#define BYTES (COUNT * sizeof(int))

static int *in, *out;
static int host[COUNT];

__global__ void fill(int *to, int value)
{
    to[threadIdx.x] = value;
}

/* ---- shared memory ---- */

extern __shared__ int room[];
__global__ void reverse_block(const int *in, int *out)
{
    room[threadIdx.x] = in[threadIdx.x]; /* FAULT: shared_dynamic */
    __syncthreads();
    out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

static void shared_dynamic(void) /* bytes and elements confused */
{
    reverse_block<<<1, COUNT, COUNT>>>(in, out);
}

__global__ void smooth_block(const int *in, int *out)
{
    __shared__ int tile[128];
    tile[threadIdx.x] = in[threadIdx.x]; /* FAULT: shared_static */
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x] + tile[threadIdx.x ^ 1];
}

static void shared_static(void) /* the block has become larger than its tile */
{
    smooth_block<<<1, COUNT>>>(in, out);
}

__global__ void warp_reverse(const int *in, int *out)
{
    __shared__ int slots[COUNT];
    slots[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = slots[threadIdx.x ^ 31]; /* FAULT: warp_race */
}

static void warp_race(void) /* lanes have not run in step for a long time */
{
    warp_reverse<<<1, COUNT>>>(in, out);
}

/* ---- global memory ---- */

__global__ void pairs(const int *in, int *out)
{
    int2 pair = *(const int2 *)(in + 1 + 2 * threadIdx.x); /* FAULT: misaligned */
    out[threadIdx.x] = pair.x + pair.y;
}

static void misaligned(void) /* the data begins one element later than it used to */
{
    pairs<<<1, 64>>>(in, out);
}

__global__ void before(const int *in, unsigned count, int *out)
{
    out[threadIdx.x] = in[threadIdx.x - count]; /* FAULT: unsigned_index */
}

static void unsigned_index(void) /* below zero is far above */
{
    before<<<1, COUNT>>>(in, 4, out);
}

__global__ void count_values(const int *in, int *bins)
{
    bins[in[threadIdx.x] & 7] += 1; /* FAULT: histogram */
}

static void histogram(void)
{
    cudaMemset(out, 0, BYTES);
    count_values<<<2, COUNT / 2>>>(in, out);
}

__device__ int table[16];
__global__ void make_table(int *unused)
{
    table[threadIdx.x + 1] = threadIdx.x; /* FAULT: variable */
    if (unused)
        unused[0] = table[threadIdx.x];
}

static void variable(void)
{
    make_table<<<1, 16>>>(NULL);
}

__global__ void move(const int *from, int *to)
{
    to[threadIdx.x] = from[threadIdx.x]; /* FAULT: one_missing */
}

static void one_missing(void) /* the last element is never made, only moved, and shown */
{
    int *fresh;
    cudaMalloc(&fresh, BYTES);
    fill<<<1, COUNT - 1>>>(fresh, 3);
    move<<<1, COUNT>>>(fresh, out);
    cudaMemcpy(host, out, BYTES, cudaMemcpyDeviceToHost);
    cudaFree(fresh);
}

__global__ void keep_chosen(const bool *chosen, const int *in, int *out)
{
    if (chosen[threadIdx.x]) /* FAULT: flags_missing */
        out[threadIdx.x] = in[threadIdx.x];
}

static void flags_missing(void) /* nobody has said yet which are chosen */
{
    bool *chosen;
    cudaMalloc((void **)&chosen, COUNT);
    cudaMemset(out, 0, BYTES);
    keep_chosen<<<1, COUNT>>>(chosen, in, out);
    cudaMemcpy(host, out, BYTES, cudaMemcpyDeviceToHost);
    cudaFree(chosen);
}

__global__ void reverse_tile(const int *in, int *out)
{
    __shared__ int tile[COUNT];
    if (threadIdx.x < COUNT - 1)
        tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = tile[COUNT - 1 - threadIdx.x]; /* FAULT: tile_in_part */
}

static void tile_in_part(void) /* one too few is filled; all are shown */
{
    reverse_tile<<<1, COUNT>>>(in, out);
    cudaMemcpy(host, out, BYTES, cudaMemcpyDeviceToHost);
}

/* ---- lifetimes ---- */

__global__ void increase(int *x)
{
    x[threadIdx.x] += 1; /* FAULT: increase */
}

static void stale_async(void) /* freed in the stream's order, and used behind that */
{
    cudaStream_t stream;
    int *p;
    cudaStreamCreate(&stream);
    cudaMallocAsync(&p, BYTES, stream);
    fill<<<1, COUNT, 0, stream>>>(p, 1);
    cudaFreeAsync(p, stream);
    increase<<<1, COUNT, 0, stream>>>(p);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
}

static void stale_managed(void)
{
    int *p;
    cudaMallocManaged(&p, BYTES);
    memset(p, 0, BYTES);
    cudaFree(p);
    increase<<<1, COUNT>>>(p);
}

static void stale_graph(void) /* the graph keeps the address of a buffer that is gone */
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int *p;
    cudaStreamCreate(&stream);
    cudaMalloc(&p, BYTES);
    cudaMemset(p, 0, BYTES);
    cudaDeviceSynchronize();
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    increase<<<1, COUNT, 0, stream>>>(p);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    cudaFree(p);
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
}

static void host_pointer(void) /* memory that the device does not know */
{
    increase<<<1, COUNT>>>(host);
}

static void null_pointer(void) /* too large to be had, and nobody asked */
{
    int *p = NULL;
    cudaMalloc(&p, (size_t)1 << 50);
    increase<<<1, COUNT>>>(p);
}

static void free_kind(void) /* the wrong one of two functions; the right one is called as well */
{
    int *p;
    cudaMallocHost(&p, BYTES);
    cudaFree(p); /* FAULT: free_kind */
    cudaFreeHost(p);
}

/* ---- calls ---- */

static void too_many_threads(void)
{
    fill<<<1, 4096>>>(out, 1); /* FAULT: too_many_threads */
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } mistakes[] = {
        {"shared_dynamic", shared_dynamic},
        {"shared_static", shared_static},
        {"warp_race", warp_race},
        {"misaligned", misaligned},
        {"unsigned_index", unsigned_index},
        {"histogram", histogram},
        {"variable", variable},
        {"one_missing", one_missing},
        {"flags_missing", flags_missing},
        {"tile_in_part", tile_in_part},
        {"stale_async", stale_async},
        {"stale_managed", stale_managed},
        {"stale_graph", stale_graph},
        {"host_pointer", host_pointer},
        {"null_pointer", null_pointer},
        {"free_kind", free_kind},
        {"too_many_threads", too_many_threads},
    };
    for (int i = 0; i < COUNT; i++)
        host[i] = i;
    cudaMalloc(&in, BYTES);
    cudaMalloc(&out, BYTES);
    cudaMemcpy(in, host, BYTES, cudaMemcpyHostToDevice);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        if (argc == 2 && strcmp(mistakes[i].name, argv[1]) == 0) {
            mistakes[i].run();
            cudaDeviceSynchronize();
            cudaMemcpy(host, out, BYTES, cudaMemcpyDeviceToHost);
            cudaFree(in);
            cudaFree(out);
            return 0;
        }
    return 2;
}
