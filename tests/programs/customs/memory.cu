/* memory.cu - what sound programs do with memory and pointers: allocators of their own, headers in
 * band, arrays that are indexed from one, pointers with a tag or in two halves, rows that end
 * early, structures with holes, probing for memory. */
#include <cstdint>

#include "cases.h"

template <class T> static T *device(size_t count)
{
    T *p;
    CHECK(cudaMalloc(&p, count * sizeof(T)));
    return p;
}

static long sum_of(const int *from, int count)
{
    static int host[8192];
    long sum = 0;
    CHECK(cudaMemcpy(host, from, count * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++)
        sum += host[i];
    return sum;
}

__global__ void fill(int *out, int count, int value)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = value;
}

__global__ void add(int *out, const int *a, const int *b, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = a[i] + b[i];
}

/* ---- allocators ---- */

static long slab(void) /* cut out of one allocation, given back, cut again */
{
    char *base = device<char>(64 << 10);
    size_t used = 0;
    auto cut = [&](size_t count) {
        int *p = (int *)(base + used);
        used += (count * sizeof(int) + 511) / 512 * 512;
        return p;
    };
    int *a = cut(100), *b = cut(257), *c = cut(100);
    fill<<<1, 128>>>(a, 100, 1);
    fill<<<3, 128>>>(b, 257, 2);
    add<<<1, 128>>>(c, a, b, 100);
    long sum = sum_of(c, 100);
    used = 0; /* all of it given back */
    int *d = cut(500), *e = cut(500);
    fill<<<4, 128>>>(d, 500, 5);
    add<<<4, 128>>>(e, d, d, 500);
    sum += sum_of(e, 500);
    CHECK(cudaFree(base));
    return sum;
}

struct header {
    int count, next;
};

__global__ void make_headers(char *arena, int blocks, int stride)
{
    if (threadIdx.x < blocks) {
        header *h = (header *)(arena + threadIdx.x * stride);
        h->count = 4 + threadIdx.x;
        h->next = (threadIdx.x + 1) * stride;
    }
}

__global__ void fill_block(int *block) /* its size stands before it */
{
    int count = ((header *)block)[-1].count;
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        block[i] = count;
}

static long headers(void)
{
    enum { BLOCKS = 8, STRIDE = 64 };
    char *arena = device<char>(BLOCKS * STRIDE);
    int out[16];
    long sum = 0;
    make_headers<<<1, 32>>>(arena, BLOCKS, STRIDE);
    for (int i = 0; i < BLOCKS; i++)
        fill_block<<<1, 32>>>((int *)(arena + i * STRIDE + sizeof(header)));
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(cudaMemcpy(out, arena + i * STRIDE + sizeof(header), (4 + i) * sizeof(int),
                         cudaMemcpyDeviceToHost));
        for (int k = 0; k < 4 + i; k++)
            sum += out[k];
    }
    CHECK(cudaFree(arena));
    return sum;
}

/* ---- pointers ---- */

__global__ void from_one_kernel(int *x, int count) /* x[1] to x[count] */
{
    int i = threadIdx.x + 1;
    if (i <= count)
        x[i] = i;
}

static long from_one(void)
{
    int *before = device<int>(128), *x = device<int>(128);
    from_one_kernel<<<1, 128>>>(x - 1, 128);
    long sum = sum_of(x, 128);
    CHECK(cudaFree(x));
    CHECK(cudaFree(before));
    return sum;
}

__global__ void backwards(int *last, int stride, int count)
{
    if (threadIdx.x < count)
        last[(int)threadIdx.x * stride] = threadIdx.x;
}

static long negative_stride(void)
{
    int *x = device<int>(100);
    backwards<<<1, 128>>>(x + 99, -1, 100);
    long sum = sum_of(x, 50);
    CHECK(cudaFree(x));
    return sum;
}

__global__ void through_tag(uint64_t tagged, int count) /* eight bits of something else on top */
{
    int *x = (int *)(tagged & 0x00ffffffffffffff);
    if (threadIdx.x < count)
        x[threadIdx.x] = (int)(tagged >> 56);
}

static long tagged(void)
{
    int *other = device<int>(64), *x = device<int>(64);
    through_tag<<<1, 64>>>((uint64_t)x | UINT64_C(7) << 56, 64);
    long sum = sum_of(x, 64);
    CHECK(cudaFree(x));
    CHECK(cudaFree(other));
    return sum;
}

__global__ void through_halves(int count, unsigned low, unsigned high)
{
    int *x = (int *)((uint64_t)high << 32 | low);
    if (threadIdx.x < count)
        x[threadIdx.x] = 3;
}

static long halves(void)
{
    int *x = device<int>(64);
    through_halves<<<1, 64>>>(64, (unsigned)(uint64_t)x, (unsigned)((uint64_t)x >> 32));
    long sum = sum_of(x, 64);
    CHECK(cudaFree(x));
    return sum;
}

/* The last 16 bytes of an allocation belong to it. */
__global__ void copy16(const int4 *from, int4 *to, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = from[i];
}

static long wide_tail(void)
{
    int *a = device<int>(1004), *b = device<int>(1004);
    fill<<<8, 128>>>(a, 1004, 2);
    copy16<<<2, 128>>>((int4 *)a, (int4 *)b, 251);
    long sum = sum_of(b, 1004);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return sum;
}

/* ---- shapes ---- */

__global__ void row_sums(const char *image, size_t pitch, int width, int *sums)
{
    int sum = 0;
    for (int x = 0; x < width; x++)
        sum += image[threadIdx.x * pitch + x];
    sums[threadIdx.x] = sum;
}

static long short_last_row(void) /* the last row of an image needs no padding behind it */
{
    enum { WIDTH = 40, HEIGHT = 16, PITCH = 64 };
    char *image = device<char>(PITCH * (HEIGHT - 1) + WIDTH), host[HEIGHT][WIDTH];
    int *sums = device<int>(HEIGHT);
    memset(host, 3, sizeof host);
    CHECK(cudaMemset2D(image, PITCH, 1, WIDTH, HEIGHT));
    CHECK(cudaMemcpy2D(image, PITCH, host, WIDTH, WIDTH, HEIGHT / 2, cudaMemcpyHostToDevice));
    row_sums<<<1, HEIGHT>>>(image, PITCH, WIDTH, sums);
    CHECK(cudaMemcpy2D(host, WIDTH, image, PITCH, WIDTH, HEIGHT, cudaMemcpyDeviceToHost));
    long sum = sum_of(sums, HEIGHT) * 1000 + host[HEIGHT - 1][WIDTH - 1];
    CHECK(cudaFree(image));
    CHECK(cudaFree(sums));
    return sum;
}

__global__ void fill_rows(char *image, size_t pitch, int width)
{
    for (int x = threadIdx.x; x < width; x += blockDim.x)
        image[blockIdx.x * pitch + x] = x < 100;
}

static long
padding_written(void) /* what cudaMallocPitch put behind a row is the program's as well */
{
    size_t pitch;
    char *image, host[8][100];
    long sum = 0;
    CHECK(cudaMallocPitch(&image, &pitch, 100, 8));
    fill_rows<<<8, 64>>>(image, pitch, (int)pitch);
    CHECK(cudaMemset(image, 2, pitch));
    CHECK(cudaMemcpy2D(host, 100, image, pitch, 100, 8, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 100; x++)
            sum += host[y][x];
    CHECK(cudaFree(image));
    return sum;
}

static long box(void) /* cudaMemcpy3D of a part into a part */
{
    cudaExtent extent = make_cudaExtent(32, 6, 4);
    cudaPitchedPtr volume;
    static char host[4][6][32], back[2][3][16];
    long sum = 0;
    CHECK(cudaMalloc3D(&volume, extent));
    memset(host, 5, sizeof host);
    CHECK(cudaMemset3D(volume, 1, extent));
    cudaMemcpy3DParms in = {};
    in.srcPtr = make_cudaPitchedPtr(host, 32, 32, 6);
    in.dstPtr = volume;
    in.dstPos = make_cudaPos(16, 3, 2);
    in.extent = make_cudaExtent(16, 3, 2);
    in.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&in));
    cudaMemcpy3DParms out = {};
    out.srcPtr = volume;
    out.srcPos = make_cudaPos(8, 3, 2);
    out.dstPtr = make_cudaPitchedPtr(back, 16, 16, 3);
    out.extent = make_cudaExtent(16, 3, 2);
    out.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&out));
    for (size_t i = 0; i < sizeof back; i++)
        sum += ((char *)back)[i];
    CHECK(cudaFree(volume.ptr));
    return sum;
}

/* ---- holes ---- */

struct __align__(16) point
{ /* four bytes at its end are nobody's */
    float x, y, z;
};
struct record { /* seven bytes behind `kind` are nobody's */
    char kind;
    double value;
};

__global__ void make_points(point *p, record *r)
{
    int i = threadIdx.x;
    p[i].x = i;
    p[i].y = 2 * i;
    p[i].z = 1;
    r[i].kind = 1;
    r[i].value = i;
}

__global__ void reverse(const point *p, point *q, const record *r, record *s, int count)
{
    int i = threadIdx.x;
    q[i] = p[count - 1 - i];
    s[i] = r[count - 1 - i];
}

__global__ void copy_words(const unsigned *from, unsigned *to, int count)
{
    for (int i = threadIdx.x; i < count; i += blockDim.x)
        to[i] = from[i];
}

static long structure_holes(void)
{
    enum { COUNT = 64 };
    point *p = device<point>(COUNT), *q = device<point>(COUNT), host[COUNT];
    record *r = device<record>(COUNT), *s = device<record>(COUNT), records[COUNT];
    float sum = 0;
    make_points<<<1, COUNT>>>(p, r);
    reverse<<<1, COUNT>>>(p, q, r, s, COUNT);
    copy_words<<<1, 64>>>((unsigned *)s, (unsigned *)r, COUNT * sizeof(record) / 4);
    CHECK(cudaMemcpy(host, q, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(records, r, sizeof records, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++)
        sum += host[i].x + host[i].y + host[i].z + records[i].kind + records[i].value;
    CHECK(cudaFree(p));
    CHECK(cudaFree(q));
    CHECK(cudaFree(r));
    CHECK(cudaFree(s));
    return (long)sum;
}

/* ---- managed memory ---- */

__managed__ int managed_total;

__global__ void add_up(const int *in, int count)
{
    for (int i = 0; i < count; i++)
        managed_total += in[i];
}

static long managed(void)
{
    int *x;
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
    CHECK(cudaMallocManaged(&x, 256 * sizeof(int)));
    for (int i = 0; i < 256; i++)
        x[i] = i;
    CHECK(cudaMemAdvise(x, 256 * sizeof(int), cudaMemAdviseSetReadMostly, here));
    CHECK(cudaMemPrefetchAsync(x, 256 * sizeof(int), here, 0, 0));
    add_up<<<1, 1>>>(x, 256);
    CHECK(cudaMemPrefetchAsync(x, 256 * sizeof(int), host, 0, 0));
    CHECK(cudaDeviceSynchronize());
    x[0] = managed_total;
    managed_total = 1;
    add_up<<<1, 1>>>(x, 1);
    CHECK(cudaDeviceSynchronize());
    long sum = managed_total;
    CHECK(cudaFree(x));
    return sum;
}

/* ---- nothing at all, and too much ---- */

static long nothing(void)
{
    int *p = (int *)1, *q = (int *)1, *x = device<int>(1);
    CHECK(cudaMalloc(&p, 0));
    CHECK(cudaMemcpy(x + 1, x, 0, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
    CHECK(cudaMemcpyAsync(NULL, x, 0, cudaMemcpyDeviceToHost, 0));
    CHECK(cudaMemset(NULL, 0, 0));
    CHECK(cudaMemset(x + 1, 0, 0));
    CHECK(cudaMemcpy2D(x, 4, x, 4, 0, 7, cudaMemcpyDeviceToDevice));
    CHECK(cudaFree(NULL));
    CHECK(cudaFreeHost(NULL));
    CHECK(cudaMallocAsync(&q, 4, 0));
    CHECK(cudaFreeAsync(q, 0));
    CHECK(cudaFree(p));
    CHECK(cudaMemcpy(x, x, 4, cudaMemcpyDeviceToDevice)); /* onto itself */
    CHECK(cudaFree(x));
    return p == NULL;
}

static long probing(void) /* asks for what it may not get, and goes on */
{
    void *p = NULL;
    char *host = (char *)malloc(1 << 16);
    long refused = 0;
    cudaPointerAttributes attributes;
    cudaEvent_t event;
    cudaStream_t stream;
    for (size_t bytes = (size_t)1 << 50; bytes > (size_t)1 << 20; bytes >>= 10)
        if (cudaMalloc(&p, bytes) != cudaSuccess)
            refused++;
        else
            CHECK(cudaFree(p));
    refused += cudaPointerGetAttributes(&attributes, host) != cudaSuccess ||
               attributes.type != cudaMemoryTypeUnregistered;
    CHECK(cudaHostRegister(host, 1 << 16, 0));
    refused += cudaHostRegister(host, 1 << 16, 0) == cudaErrorHostMemoryAlreadyRegistered;
    CHECK(cudaHostUnregister(host));
    refused += cudaDeviceEnablePeerAccess(0, 0) != cudaSuccess;
    refused += cudaSetDevice(99) != cudaSuccess;
    CHECK(cudaEventCreate(&event));
    CHECK(cudaStreamCreate(&stream));
    while (cudaStreamQuery(stream) == cudaErrorNotReady)
        ;
    CHECK(cudaEventRecord(event, stream));
    while (cudaEventQuery(event) == cudaErrorNotReady)
        ;
    CHECK(cudaEventDestroy(event));
    CHECK(cudaStreamDestroy(stream));
    cudaGetLastError();
    free(host);
    return refused;
}

static long
balance(void) /* what is freed is there again, but for the steps in which a device takes memory */
{
    size_t before, between, after, total;
    void *p;
    CHECK(cudaMemGetInfo(&before, &total));
    CHECK(cudaMalloc(&p, 8 << 20));
    CHECK(cudaMemGetInfo(&between, &total));
    CHECK(cudaFree(p));
    CHECK(cudaMemGetInfo(&after, &total));
    return (before - after <= (4 << 20)) + 2 * (before - between >= (8 << 20));
}

static long asked_again(void) /* what the driver says of memory that was freed: it is nobody's */
{
    cudaPointerAttributes attributes;
    void *p[3];
    long known = 0;
    CHECK(cudaMalloc(&p[0], 4 << 20));
    CHECK(cudaFree(p[0]));
    CHECK(cudaMallocHost(&p[1], 1 << 16));
    CHECK(cudaFreeHost(p[1]));
    CHECK(cudaMallocManaged(&p[2], 1 << 16));
    CHECK(cudaFree(p[2]));
    for (int i = 0; i < 3; i++) {
        CHECK(cudaPointerGetAttributes(&attributes, (char *)p[i] + 100));
        known += attributes.type != cudaMemoryTypeUnregistered || attributes.devicePointer;
        known +=
            10 * (attributes.hostPointer != NULL && attributes.hostPointer != (char *)p[i] + 100);
    }
    return known;
}

/* ---- pools ---- */

static long pool(void)
{
    cudaMemPool_t pool;
    cudaStream_t stream;
    uint64_t keep = UINT64_MAX, used;
    int *a, *b;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    CHECK(cudaMallocAsync(&a, 1000 * sizeof(int), stream));
    fill<<<8, 128, 0, stream>>>(a, 1000, 1);
    CHECK(cudaFreeAsync(a, stream));
    CHECK(cudaMallocAsync(&b, 1000 * sizeof(int), stream));
    fill<<<8, 128, 0, stream>>>(b, 1000, 2);
    CHECK(cudaStreamSynchronize(stream));
    long sum = sum_of(b, 1000);
    CHECK(cudaFreeAsync(b, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    CHECK(cudaMallocAsync(&a, 1 << 20, stream));
    CHECK(cudaFree(a)); /* allowed for memory of pools */
    CHECK(cudaMemPoolTrimTo(pool, 0));
    CHECK(cudaStreamDestroy(stream));
    return sum * 2 + (used != 0);
}

/* ---- arguments ---- */

__device__ int no_arguments_total;
__global__ void no_arguments(void)
{
    atomicAdd(&no_arguments_total, (int)threadIdx.x);
}

struct many {
    int *out;
    int values[1000];
};
__global__ void four_kilobytes(many m)
{
    for (int i = threadIdx.x; i < 1000; i += blockDim.x)
        m.out[i] = m.values[i];
}

static long arguments(void)
{
    many m = {};
    int total = 0;
    m.out = device<int>(1000);
    for (int i = 0; i < 1000; i++)
        m.values[i] = i;
    no_arguments<<<2, 32>>>();
    four_kilobytes<<<1, 128>>>(m);
    CHECK(cudaMemcpyFromSymbol(&total, no_arguments_total, sizeof total));
    total += sum_of(m.out, 1000);
    CHECK(cudaFree(m.out));
    return total;
}

/* ---- fills of its own ---- */

__global__ void count_unset(const int *x, int count, int *unset)
{
    if (threadIdx.x < count && x[threadIdx.x] == -1)
        atomicAdd(unset, 1);
}

static long own_fill(void) /* bytes of 0xff for "not set", NaN to whoever takes them for numbers */
{
    int *x = device<int>(64), *unset = device<int>(1);
    CHECK(cudaMemset(x, 0xff, 64 * sizeof(int)));
    CHECK(cudaMemset(unset, 0, sizeof(int)));
    fill<<<1, 32>>>(x, 20, 4);
    count_unset<<<1, 64>>>(x, 64, unset);
    long sum = sum_of(unset, 1);
    CHECK(cudaMemset(x, 0xcd, 64 * sizeof(int)));
    CHECK(cudaFree(x));
    CHECK(cudaFree(unset));
    return sum;
}

/* ---- textures ---- */

__global__ void fetch(cudaTextureObject_t texture, int *out)
{
    out[threadIdx.x] = (int)tex2D<float>(texture, (int)threadIdx.x - 4 + 0.5f, 0.5f);
}

static long border(void) /* fetches outside give the border's value */
{
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    float host[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    cudaResourceDesc resource = {};
    cudaTextureDesc description = {};
    cudaTextureObject_t texture;
    int *out = device<int>(16);
    CHECK(cudaMallocArray(&array, &format, 8, 1));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, host, sizeof host, sizeof host, 1,
                              cudaMemcpyHostToDevice));
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    description.addressMode[0] = description.addressMode[1] = cudaAddressModeBorder;
    description.borderColor[0] = 0;
    CHECK(cudaCreateTextureObject(&texture, &resource, &description, NULL));
    fetch<<<1, 16>>>(texture, out);
    long sum = sum_of(out, 16);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
    CHECK(cudaFree(out));
    return sum;
}

int main(int argc, char **argv)
{
    static const test_case cases[] = {
        {"slab", slab, 5300},
        {"headers", headers, 492},
        {"from_one", from_one, 8256},
        {"negative_stride", negative_stride, 3725},
        {"tagged", tagged, 448},
        {"halves", halves, 192},
        {"wide_tail", wide_tail, 2008},
        {"short_last_row", short_last_row, 1280001},
        {"padding_written", padding_written, 900},
        {"box", box, 288},
        {"structure_holes", structure_holes, 8192},
        {"managed", managed, 32641},
        {"nothing", nothing, 1},
        {"probing", probing, 5},
        {"balance", balance, 3},
        {"asked_again", asked_again, 0},
        {"pool", pool, 4000},
        {"arguments", arguments, 500492},
        {"own_fill", own_fill, 44},
        {"border", border, 8},
    };
    return run_cases(cases, argc, argv);
}
