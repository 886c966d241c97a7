/* arguments.cu - what a driver refuses, and pointers it never gave out: every answer, and the runtime's last error after it. */
#include <cstdio>
#include <cstdlib>

#define SAY(call)                                                                                                       \
    do {                                                                                                                \
        const cudaError_t answer = (call);                                                                              \
        printf("%d %d  %s\n", (int)answer, (int)cudaGetLastError(), #call);                                             \
    } while (0)

__device__ float symbol[4];

__global__ void fill(float *out, int count)
{
    if ((int)threadIdx.x < count)
        out[threadIdx.x] = 1.0f;
}

static void describe(const char *what, const void *pointer)
{
    cudaPointerAttributes a = {};
    const cudaError_t answer = cudaPointerGetAttributes(&a, pointer);

    printf("%d %d  %s: type %d, device %d, same address %d\n", (int)answer, (int)cudaGetLastError(), what, (int)a.type,
           answer ? 0 : a.device, a.devicePointer == pointer);
}

static void memory()
{
    float *p, *q, *pooled, host[4] = {1, 2, 3, 4};
    size_t pitch;
    void *gone, *pinned;

    SAY(cudaMalloc(NULL, 16));
    SAY(cudaMalloc((void **)&p, 0));
    SAY(cudaMalloc((void **)&p, (size_t)1 << 50));
    SAY(cudaMallocPitch((void **)&p, &pitch, 0, 3));
    SAY(cudaMallocPitch((void **)&p, NULL, 16, 3));
    SAY(cudaMallocManaged((void **)&p, 0, cudaMemAttachGlobal));
    SAY(cudaMallocManaged((void **)&p, 16, 77));
    SAY(cudaMalloc((void **)&p, 1000));
    SAY(cudaMallocHost(&pinned, 4096));
    SAY(cudaFree(NULL));
    SAY(cudaFree((void *)12345));
    SAY(cudaFree(host));
    SAY(cudaFree(p + 1));
    SAY(cudaFreeHost(p));
    SAY(cudaFreeHost(host));
    SAY(cudaFreeAsync((void *)12345, 0));
    SAY(cudaFreeAsync(host, 0));
    SAY(cudaMallocAsync((void **)&pooled, 1000, 0));
    SAY(cudaMemcpyAsync(pooled, host, sizeof host, cudaMemcpyHostToDevice, 0));
    SAY(cudaFree(pooled)); /* allowed */
    SAY(cudaMalloc((void **)&q, 1000));
    SAY(cudaFreeAsync(q, 0)); /* not from a pool */
    SAY(cudaStreamSynchronize(0));
    gone = p;
    SAY(cudaMemcpy(NULL, host, 16, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(p, NULL, 16, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy(p, host, 16, (cudaMemcpyKind)9));
    SAY(cudaMemcpy(p, host, 0, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2D(p, 4, host, 4, 8, 2, cudaMemcpyHostToDevice));
    SAY(cudaMemset(NULL, 0, 16));
    SAY(cudaMemset(host, 0, 16));
    SAY(cudaMemcpyToSymbol(host, host, 16));
    SAY(cudaMemcpyToSymbol(symbol, host, 16));
    SAY(cudaMemcpyToSymbol(symbol, host, 64));
    describe("device", p);
    describe("inside", p + 3);
    describe("pinned", pinned);
    describe("host", host);
    describe("garbage", (void *)12345);
    describe("null", NULL);
    SAY(cudaHostUnregister(host));
    SAY(cudaFreeHost(pinned));
    SAY(cudaFree(gone));
    SAY(cudaFree(gone));
}

static void launches()
{
    float *out;
    int count = 4;
    void *arguments[] = {&out, &count}, *none[] = {NULL, NULL};

    SAY(cudaMalloc((void **)&out, 128));
    SAY(cudaLaunchKernel(NULL, 1, 1, arguments, 0, 0));
    SAY(cudaLaunchKernel((const void *)memory, 1, 1, arguments, 0, 0));
    SAY(cudaLaunchKernel((const void *)fill, 0, 1, none, 0, 0));
    SAY(cudaLaunchKernel((const void *)fill, 1, 0, none, 0, 0));
    SAY(cudaLaunchKernel((const void *)fill, 1, 2048, none, 0, 0));
    SAY(cudaLaunchKernel((const void *)fill, dim3(1, 70000), 1, none, 0, 0));
    SAY(cudaLaunchKernel((const void *)fill, 1, 32, arguments, 1 << 24, 0));
    fill<<<1, 4096>>>(out, count);
    printf("%d %d\n", (int)cudaPeekAtLastError(), (int)cudaPeekAtLastError());
    printf("%d %d\n", (int)cudaGetLastError(), (int)cudaGetLastError());
    SAY(cudaLaunchKernel((const void *)fill, 1, 32, arguments, 0, 0));
    SAY(cudaDeviceSynchronize());
    SAY(cudaFree(out));
}

static void objects()
{
    cudaStream_t stream;
    cudaEvent_t event, other;
    cudaFuncAttributes attributes;
    float ms;

    SAY(cudaStreamCreateWithFlags(NULL, 0));
    SAY(cudaStreamCreateWithFlags(&stream, 99));
    SAY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    SAY(cudaEventCreateWithFlags(&event, 99));
    SAY(cudaEventCreate(&event));
    SAY(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
    SAY(cudaEventElapsedTime(&ms, event, other));
    SAY(cudaEventRecord(NULL, stream));
    SAY(cudaEventSynchronize(NULL));
    SAY(cudaStreamWaitEvent(stream, NULL, 0));
    SAY(cudaEventQuery(event));
    SAY(cudaFuncGetAttributes(&attributes, (const void *)objects));
    SAY(cudaSetDevice(99));
    SAY(cudaStreamDestroy(stream));
    SAY(cudaEventDestroy(event));
}

/* With two devices: memory of one is freed while the other is current. */
static void devices()
{
    int count = 0, device = -1;
    float *p, *q;

    cudaGetDeviceCount(&count);
    if (count < 2)
        return;
    SAY(cudaMalloc((void **)&p, 4096));
    SAY(cudaMallocAsync((void **)&q, 4096, 0));
    SAY(cudaStreamSynchronize(0));
    SAY(cudaSetDevice(1));
    SAY(cudaFree(p));
    SAY(cudaFree(p));
    SAY(cudaFree(q));
    cudaGetDevice(&device);
    printf("device %d\n", device);
}

int main()
{
    memory();
    launches();
    objects();
    devices();
    return 0;
}
