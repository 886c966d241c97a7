/* block_check.cuh - every CUDA call of the program is checked; the first that fails ends it. */
#ifndef BLOCK_CHECK_CUH
#define BLOCK_CHECK_CUH

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CUDA_CHECK(call) cuda_check((call), #call, __FILE__, __LINE__)

static void cuda_check(cudaError_t error, const char *call, const char *file, int line)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(error));
    exit(1);
}

#endif
