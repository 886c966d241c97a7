/* ocean_must.cuh - every CUDA call must succeed; the first that does not ends the program. */
#ifndef OCEAN_MUST_CUH
#define OCEAN_MUST_CUH

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define MUST(call) must_succeed((call), #call, __FILE__, __LINE__)

static void must_succeed(cudaError_t status, const char *call, const char *file, int line)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(status));
    exit(1);
}

#endif
