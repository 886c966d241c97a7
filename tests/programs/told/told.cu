/* A program that says through opsdebug.h what it does: names and shapes, steps, a value to keep, what must be finite, and the
 * buffers that its own allocator gives out of one large one. Without the tool it says so to nobody.
 *
 * With -DFAULT_NAN a root of a negative number is taken in step 2. With -DFAULT_NEIGHBOUR a kernel stores one element behind
 * its buffer, into the neighbour in the same allocation. */
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <opsdebug/opsdebug.h>
#ifdef REGIONS_BY_NVTX
#include <nvtx3/nvToolsExtMem.h>
#endif

#include "../must.h"

constexpr int ROWS = 20, COLUMNS = 64, STEPS = 4; /* a row is 256 bytes: buffers of one row touch */

/* Buffers of multiples of 256 bytes out of one allocation, as caching allocators do it. */
class Arena
{
public:
    explicit Arena(size_t bytes)
    {
        MUST(cudaMalloc(&base_, bytes));
    }
    ~Arena()
    {
        cudaFree(base_);
    }
    float *take(const char *name, uint64_t rows, uint64_t columns)
    {
        float *buffer = (float *)(base_ + used_);
        const uint64_t shape[] = {rows, columns};
        uint64_t bytes = rows * columns * sizeof(float);
#ifdef REGIONS_BY_NVTX
        nvtxMemVirtualRangeDesc_t range = {bytes, buffer};
        nvtxMemRegionsRegisterBatch_t batch = {NVTX_EXT_COMPATID_MEM, sizeof batch, NVTX_MEM_TYPE_VIRTUAL_ADDRESS, nullptr, 1,
                                               sizeof range, &range, nullptr};
        nvtxMemRegionsRegister(nullptr, &batch);
#else
        opsdebug_region(buffer, bytes, name);
#endif
        opsdebug_name(buffer, name, OPSDEBUG_F32, 2, shape);
        used_ += (bytes + 255) / 256 * 256;
        return buffer;
    }
    void give(float *buffer)
    {
#ifdef REGIONS_BY_NVTX
        nvtxMemRegionRef_t reference;
        reference.pointer = buffer;
        nvtxMemRegionsUnregisterBatch_t batch = {NVTX_EXT_COMPATID_MEM, sizeof batch, NVTX_MEM_REGION_REF_TYPE_POINTER, 1,
                                                 sizeof reference, &reference};
        nvtxMemRegionsUnregister(nullptr, &batch);
#else
        opsdebug_region_end(buffer);
#endif
    }

private:
    char *base_ = nullptr;
    size_t used_ = 0;
};

__global__ void fill(float *x, int columns, float from)
{
    int i = blockIdx.x * columns + threadIdx.x;
    if (threadIdx.x < columns)
        x[i] = from + (float)(i % 7);
}

/* Every row divided by its root mean square; `shift` is what its author thought to be small. */
__global__ void normalise(const float *x, float *y, int columns, float shift)
{
    int row = blockIdx.x;
    float sum = -shift;
    for (int j = 0; j < columns; j++)
        sum += x[row * columns + j] * x[row * columns + j];
    float scale = rsqrtf(sum / (float)columns);
    for (int j = threadIdx.x; j < columns; j += blockDim.x)
        y[row * columns + j] = x[row * columns + j] * scale;
}

__global__ void add_rows(const float *x, float *y, int rows, int columns)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FAULT_NEIGHBOUR
    bool mine = j <= columns;
#else
    bool mine = j < columns;
#endif
    float sum = 0;
    for (int i = 0; mine && i < rows; i++)
        sum += x[i * columns + j % columns];
    if (mine)
        y[j] = sum; /* FAULT: neighbour */
}

int main()
{
    Arena arena(1 << 16);
    float *x = arena.take("x", ROWS, COLUMNS), *y = arena.take("normalised", ROWS, COLUMNS);
    float *sums = arena.take("sums", 1, COLUMNS), *next = arena.take("next", 1, COLUMNS);
    std::vector<float> host(COLUMNS);
    MUST(cudaMemset(sums, 0, COLUMNS * sizeof(float)));
    MUST(cudaMemset(next, 0, COLUMNS * sizeof(float)));
    for (int step = 0; step < STEPS; step++) {
        float shift = 0;
#ifdef FAULT_NAN
        shift = step == 2 ? 1e6f : 0;
#endif
        opsdebug_step(step);
        opsdebug_push("step");
        fill<<<ROWS, 64>>>(x, COLUMNS, (float)step);
        normalise<<<ROWS, 32>>>(x, y, COLUMNS, shift);
        opsdebug_assert_finite("normalised rows", y, ROWS * COLUMNS, OPSDEBUG_F32, nullptr); /* FAULT-OTHER: nan */
        add_rows<<<1, 96>>>(y, sums, ROWS, COLUMNS);
        opsdebug_checkpoint("sums", sums, COLUMNS, OPSDEBUG_F32, nullptr);
        opsdebug_pop();
        MUST(cudaGetLastError());
    }
    opsdebug_mark("all steps done");
    MUST(cudaMemcpy(host.data(), next, COLUMNS * sizeof(float), cudaMemcpyDeviceToHost));
    bool untouched = true;
    for (float v : host)
        untouched = untouched && v == 0;
    MUST(cudaMemcpy(host.data(), sums, COLUMNS * sizeof(float), cudaMemcpyDeviceToHost));
    arena.give(next);
    arena.give(sums);
    std::printf("first sum %.3f, neighbour %s\n", host[0], untouched ? "untouched" : "changed");
    return untouched ? 0 : 1;
}
