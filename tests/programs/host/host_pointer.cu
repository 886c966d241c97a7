/* host_pointer.cu HOW - a kernel that is given an address of the host's memory.
 *
 * Wrong: stack, heap, data (read there), store (written to the heap).
 * Right: unused (given, not followed), number (an integer that looks like one), elsewhere (the kernel before it was given one and
 * did not follow it), pinned, managed, registered (the device may). elsewhere ends with another kernel's illegal address. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static float table[256] = {1};

__global__ void add(float *out, const float *in, int follow)
{
    int i = threadIdx.x;
    out[i] = follow ? in[i] + 1 : 1; /* FAULT: load */
}

__global__ void put(float *out)
{
    out[threadIdx.x] = 2; /* FAULT: store */
}

__global__ void count(float *out, unsigned long long number)
{
    out[threadIdx.x] = (float)(number & 7);
}

__global__ void far(float *out)
{
    out[threadIdx.x + ((size_t)1 << 34)] = 3;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "unused";
    float local[256], *heap = (float *)malloc(sizeof local), *out, *other = nullptr;
    if (!heap || cudaMalloc(&out, sizeof local) != cudaSuccess)
        return 2;
    memset(local, 0, sizeof local);
    memcpy(heap, table, sizeof local);
    if (strcmp(how, "stack") == 0)
        add<<<1, 32>>>(out, local, 1);
    else if (strcmp(how, "heap") == 0)
        add<<<1, 32>>>(out, heap + 8, 1);
    else if (strcmp(how, "data") == 0)
        add<<<1, 32>>>(out, table, 1);
    else if (strcmp(how, "store") == 0)
        put<<<1, 32>>>(heap);
    else if (strcmp(how, "number") == 0)
        count<<<1, 32>>>(out, (unsigned long long)(uintptr_t)heap);
    else if (strcmp(how, "elsewhere") == 0) {
        add<<<1, 32>>>(out, heap, 0);
        if (cudaDeviceSynchronize() != cudaSuccess)
            return 3;
        far<<<1, 32>>>(out);
    } else if (strcmp(how, "pinned") == 0 || strcmp(how, "managed") == 0 || strcmp(how, "registered") == 0) {
        cudaError_t made = how[0] == 'p'   ? cudaMallocHost(&other, sizeof local)
                           : how[0] == 'm' ? cudaMallocManaged(&other, sizeof local)
                                           : cudaHostRegister(other = heap, sizeof local, cudaHostRegisterMapped);
        if (made != cudaSuccess)
            return 4;
        memcpy(other, table, sizeof local);
        if (how[0] == 'r' && cudaHostGetDevicePointer(&other, heap, 0) != cudaSuccess)
            return 5;
        add<<<1, 32>>>(out, other, 1);
    } else
        add<<<1, 32>>>(out, local, 0);
    cudaError_t error = cudaMemcpy(local, out, sizeof local, cudaMemcpyDeviceToHost);
    printf("%s: %s\n", how, cudaGetErrorName(error));
    return error != cudaSuccess;
}
