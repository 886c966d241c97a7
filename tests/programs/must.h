/* must.h - MUST(call): a call of the driver's or the runtime's interface that has to succeed. Otherwise place, call and
 * error go to stderr, and the program ends with MUST_EXIT, which may be defined before this is included.
 *
 * For C with cuda.h (included before), and for CUDA C++. Programs that go on after an error, count errors or expect them
 * have checks of their own.
 */
#ifndef MUST_H
#define MUST_H

#include <stdio.h>
#include <stdlib.h>

#ifndef MUST_EXIT
#define MUST_EXIT 1
#endif

#define MUST(call) must_succeed((call), #call, __FILE__, __LINE__)

static inline void must_end(const char *call, const char *error, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, error);
    exit(MUST_EXIT);
}

#ifdef CUDA_VERSION /* cuda.h */
static inline void must_succeed(CUresult result, const char *call, const char *file, int line)
{
    const char *name = "unknown error";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    must_end(call, name, file, line);
}
#endif

#ifdef __CUDACC__
static inline void must_succeed(cudaError_t status, const char *call, const char *file, int line)
{
    if (status != cudaSuccess)
        must_end(call, cudaGetErrorString(status), file, line);
}
#endif

#endif
