/* elsewhere.c - memory of a pool that lies on another device than the stream it is made in,
 * with and without the right of that device to reach it; memory made in a stream of a device that
 * is not current; memory that a stream of another device frees; a mapping that only one of two
 * devices has access to. With SOFTGPU_DEVICES=2. Prints how many words are right. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "../must.h"

enum { WORDS = 1000, ROUNDS = 3 };

static const char ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry number(.param .u64 out, .param .u32 value, .param .u64 unused)\n{\n"
    "\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n"
    "\tld.param.u64 %rd1, [out];\n\tld.param.u32 %r1, [value];\n\tmov.u32 %r2, %tid.x;\n"
    "\tmul.wide.u32 %rd2, %r2, 4;\n\tadd.u64 %rd3, %rd1, %rd2;\n\tadd.u32 %r3, %r1, %r2;\n"
    "\tst.global.u32 [%rd3], %r3;\n\tret;\n}\n";

static struct side {
    CUcontext context;
    CUmodule module;
    CUfunction number;
    CUstream stream;
    CUevent event;
    CUmemoryPool pool;
    CUdeviceptr own;
} sides[2];

static void open_side(int i)
{
    struct side *s = &sides[i];
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i}};
    MUST(cuDevicePrimaryCtxRetain(&s->context, i));
    MUST(cuCtxSetCurrent(s->context));
    MUST(cuModuleLoadData(&s->module, ptx));
    MUST(cuModuleGetFunction(&s->number, s->module, "number"));
    MUST(cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&s->event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemPoolCreate(&s->pool, &props));
    MUST(cuMemAlloc(&s->own, WORDS * 4));
}

static void use(int i)
{
    MUST(cuCtxSetCurrent(sides[i].context));
}

/* What `first` has in its stream so far comes before what `second` puts into its own from now on.
 */
static void order(int first, int second)
{
    use(first);
    MUST(cuEventRecord(sides[first].event, sides[first].stream));
    use(second);
    MUST(cuStreamWaitEvent(sides[second].stream, sides[first].event, 0));
}

/* `mentioned` is given to the kernel, too, which leaves it alone. */
static void launch(int i, CUdeviceptr out, unsigned value, CUdeviceptr mentioned)
{
    void *arguments[] = {&out, &value, &mentioned};
    MUST(
        cuLaunchKernel(sides[i].number, 1, 1, 1, WORDS, 1, 1, 0, sides[i].stream, arguments, NULL));
}

static unsigned right(int i, CUdeviceptr p, unsigned value)
{
    unsigned host[WORDS], count = 0;
    MUST(cuMemcpyDtoHAsync(host, p, sizeof host, sides[i].stream));
    MUST(cuStreamSynchronize(sides[i].stream));
    for (unsigned k = 0; k < WORDS; k++)
        count += host[k] == value + k;
    return count;
}

/* Made in the stream of device 0, where `pool` has it lie on device 1. */
static unsigned elsewhere(unsigned value, int reachable)
{
    CUdeviceptr p;
    unsigned count;
    use(0);
    MUST(cuMemAllocFromPoolAsync(&p, WORDS * 4, sides[1].pool, sides[0].stream));
    launch(0, sides[0].own, value, p);
    order(0, 1);
    launch(1, p, value, 0);
    count = right(1, p, value);
    order(1, 0);
    if (reachable) {
        launch(0, p, value + 1, 0);
        count += right(0, p, value + 1);
    }
    MUST(cuMemFreeAsync(p, sides[0].stream));
    MUST(cuCtxSynchronize());
    return count;
}

/* Made in a stream of device 0 while device 1 is current, freed in a stream of device 1. */
static unsigned not_current(unsigned value)
{
    CUdeviceptr p;
    unsigned count;
    use(1);
    MUST(cuMemAllocFromPoolAsync(&p, WORDS * 4, sides[0].pool, sides[0].stream));
    launch(1, sides[1].own, value, p);
    use(0);
    launch(0, p, value, 0);
    count = right(0, p, value);
    order(0, 1);
    launch(1, sides[1].own, value, p);
    MUST(cuMemFreeAsync(p, sides[1].stream));
    MUST(cuStreamSynchronize(sides[1].stream));
    return count;
}

/* Mapped for device 1 alone; the kernel of device 0 is told of it. */
static unsigned mapped(unsigned value)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
    const CUmemAccessDesc access = {.location = prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    size_t bytes;
    unsigned count;
    MUST(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    MUST(cuMemAddressReserve(&p, bytes, 0, 0, 0));
    MUST(cuMemCreate(&handle, bytes, &prop, 0));
    MUST(cuMemMap(p, bytes, 0, handle, 0));
    use(0);
    launch(0, sides[0].own, value, p); /* nobody has access yet */
    MUST(cuMemSetAccess(p, bytes, &access, 1));
    launch(0, sides[0].own, value, p);
    MUST(cuCtxSynchronize());
    use(1);
    launch(1, p, value, 0);
    count = right(1, p, value);
    MUST(cuMemUnmap(p, bytes));
    MUST(cuMemRelease(handle));
    MUST(cuMemAddressFree(p, bytes));
    return count;
}

int main(void)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    unsigned count = 0;
    int devices = 0;
    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&devices));
    if (devices < 2)
        return 77;
    for (int i = 0; i < 2; i++)
        open_side(i);
    for (unsigned round = 0; round < ROUNDS; round++)
        count +=
            elsewhere(round * 100, 0) + not_current(round * 100 + 50) + mapped(round * 100 + 70);
    MUST(cuMemPoolSetAccess(sides[1].pool, &access, 1));
    for (unsigned round = 0; round < ROUNDS; round++)
        count += elsewhere(round * 100, 1);
    for (int i = 0; i < 2; i++) {
        use(i);
        MUST(cuCtxSynchronize());
        MUST(cuMemFree(sides[i].own));
    }
    printf("%u of %u words right\n", count, WORDS * ROUNDS * 5);
    return 0;
}
