/* bounds.cu - copies and memsets that leave their buffers, memory that is never freed: `bounds MODE` does it wrong, `bounds MODE ok`
 * right. What the driver answers to the wrong call is ignored; all else must succeed.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

#define MUST_EXIT 2
#include "../must.h"

#define BYTES 4096

static char host[4 * BYTES];
static char *device;
static bool ok;

/* ---- copies ---- */

static void copy_past(void)
{
    (void)cudaMemcpy(device, host, ok ? BYTES : BYTES + 16, cudaMemcpyHostToDevice);
}

static void read_past(void)
{
    (void)cudaMemcpy(host, device + 100, ok ? BYTES - 100 : BYTES, cudaMemcpyDeviceToHost);
}

static void far_past(void) /* further than any redzone: whatever the driver says */
{
    (void)cudaMemcpy(device, host, ok ? BYTES : (size_t)1 << 44, cudaMemcpyHostToDevice);
}

static void negative(void) /* a size that was computed below zero */
{
    size_t count = ok ? 8 : 0;
    (void)cudaMemcpy(device, host, count - 4, cudaMemcpyHostToDevice);
}

static void set_past(void)
{
    (void)cudaMemset(device + 8, 0, ok ? BYTES - 8 : BYTES);
}

static void start_past(void) /* all of it is behind the end */
{
    (void)cudaMemcpy(device + (ok ? BYTES - 64 : BYTES), host, 64, cudaMemcpyHostToDevice);
}

static void start_before(void)
{
    (void)cudaMemcpy(device - (ok ? 0 : 32), host, 64, cudaMemcpyHostToDevice);
}

static void rows(void) /* one row too many */
{
    char *pitched;
    size_t pitch;
    MUST(cudaMallocPitch(&pitched, &pitch, 200, 10));
    (void)cudaMemcpy2D(pitched, pitch, host, 200, 200, ok ? 10 : 11, cudaMemcpyHostToDevice);
    MUST(cudaFree(pitched));
}

static void rows_inside(void) /* a rectangle that ends with the buffer: its pitch goes beyond, it does not */
{
    (void)cudaMemcpy2D(device + 3 * 1024 + 512, 1024, host, 1024, ok ? 512 : 520, 1, cudaMemcpyHostToDevice);
}

static void box(void)
{
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(host, 64, 64, 8);
    p.dstPtr = make_cudaPitchedPtr(device, 64, 64, 8);
    p.extent = make_cudaExtent(64, 8, ok ? 8 : 9);
    p.kind = cudaMemcpyHostToDevice;
    (void)cudaMemcpy3D(&p);
}

static void pinned(void) /* the host's side */
{
    char *buffer;
    MUST(cudaMallocHost(&buffer, 1000));
    (void)cudaMemcpyAsync(buffer, device, ok ? 1000 : 1004, cudaMemcpyDeviceToHost, 0);
    MUST(cudaDeviceSynchronize());
    MUST(cudaFreeHost(buffer));
}

static void to_array(void) /* the side that is no array */
{
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    MUST(cudaMallocArray(&array, &format, 32, 33));
    (void)cudaMemcpy2DToArray(array, 0, 0, device, 128, 128, ok ? 32 : 33, cudaMemcpyDeviceToDevice);
    MUST(cudaFreeArray(array));
}

static void freed(void)
{
    char *buffer;
    MUST(cudaMalloc(&buffer, BYTES));
    if (!ok)
        MUST(cudaFree(buffer));
    (void)cudaMemset(buffer, 0, BYTES);
    if (ok)
        MUST(cudaFree(buffer));
}

static void host_pointer(void)
{
    char *buffer = (char *)malloc(BYTES);
    (void)cudaMemset(ok ? device : buffer, 0, BYTES);
    free(buffer);
}

/* ---- the end ---- */

static void leak(void)
{
    char *buffers[3], *pinned_buffer;
    for (int i = 0; i < 3; i++)
        MUST(cudaMalloc(&buffers[i], 1000));
    MUST(cudaMallocHost(&pinned_buffer, 500));
    MUST(cudaFreeHost(pinned_buffer));
    for (int i = 0; i < 3; i++)
        if (ok || i == 1)
            MUST(cudaFree(buffers[i]));
}

static void leak_reset(void) /* the context takes it along */
{
    char *buffer;
    MUST(cudaMalloc(&buffer, 1000));
    if (ok)
        MUST(cudaFree(buffer));
    MUST(cudaFree(device));
    MUST(cudaDeviceReset());
    MUST(cudaMalloc(&device, BYTES));
}

static void stale_free(void) /* after the context is gone */
{
    char *early, *late;
    MUST(cudaMalloc(&early, BYTES));
    MUST(cudaFree(early));
    MUST(cudaMalloc(&late, BYTES)); /* most likely where the other one was */
    MUST(cudaFree(device));
    if (ok)
        MUST(cudaFree(late));
    MUST(cudaDeviceReset());
    if (!ok)
        (void)cudaFree(late);
    MUST(cudaMalloc(&device, BYTES));
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
#define MODE(name) {#name, name}
    MODE(copy_past), MODE(read_past), MODE(far_past), MODE(negative),    MODE(set_past), MODE(start_past), MODE(start_before),
    MODE(rows),      MODE(rows_inside), MODE(box),    MODE(pinned),      MODE(to_array), MODE(freed),      MODE(host_pointer),
    MODE(leak),      MODE(leak_reset),  MODE(stale_free),
};

int main(int argc, char **argv)
{
    ok = argc > 2 && strcmp(argv[2], "ok") == 0;
    MUST(cudaMalloc(&device, BYTES));
    MUST(cudaMemset(device, 0, BYTES));
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
            modes[i].run();
            (void)cudaGetLastError();
            MUST(cudaFree(device));
            puts("done");
            return 0;
        }
    fprintf(stderr, "usage: bounds MODE [ok]\n");
    return 2;
}
