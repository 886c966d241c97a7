/* Errors of the runtime. */
#include "softgpu/rt.h"

#define DRIVER(name, text)
#define BOTH(driver, runtime, text)                                                                                    \
    _Static_assert((int)(driver) == (int)(runtime), "one number for " #driver " and " #runtime);
#define RUNTIME(name, text)
#include "softgpu/errors.def"
#undef BOTH
#undef RUNTIME

static _Thread_local cudaError_t last_error;

cudaError_t rt_fail(cudaError_t error)
{
    if (error != cudaSuccess && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

cudaError_t rt_end(CUresult result)
{
    return rt_fail((cudaError_t)result);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define RUNTIME(name, text)                                                                                            \
    case name:                                                                                                         \
        return #name;
#define BOTH(driver, runtime, text) RUNTIME(runtime, text)
#include "softgpu/errors.def"
#undef RUNTIME
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define RUNTIME(name, text)                                                                                            \
    case name:                                                                                                         \
        return text;
#include "softgpu/errors.def"
    }
    return "unrecognized error code";
}
