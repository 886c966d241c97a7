/* held.c KIND COUNT [BYTES] - COUNT allocations, page-locked blocks, streams or events that all
 * live at the same time. What is written to them comes back; all are given back at the end. Prints
 * how many were right, and the process's anonymous memory in KiB while it held them. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anonymous.h"

enum { SAMPLE = 1000 }; /* of so many one is written and read */

static void *make(char kind, size_t bytes, size_t i)
{
    union {
        CUdeviceptr device;
        CUstream stream;
        CUevent event;
        void *host;
    } made = {0};
    unsigned value = (unsigned)i;
    switch (kind) {
    case 'a':
        if (cuMemAlloc(&made.device, bytes) ||
            (i % SAMPLE == 0 && cuMemcpyHtoD(made.device, &value, sizeof value)))
            return NULL;
        return (void *)made.device;
    case 'h':
        if (cuMemHostAlloc(&made.host, bytes, 0))
            return NULL;
        memcpy(made.host, &value, sizeof value);
        return made.host;
    case 's':
        return cuStreamCreate(&made.stream, CU_STREAM_NON_BLOCKING) ? NULL : made.stream;
    default:
        return cuEventCreate(&made.event, CU_EVENT_DISABLE_TIMING) ? NULL : made.event;
    }
}

static int destroy(char kind, void *what, size_t i)
{
    unsigned value = (unsigned)i;
    switch (kind) {
    case 'a':
        if (i % SAMPLE == 0 && cuMemcpyDtoH(&value, (CUdeviceptr)what, sizeof value))
            return 0;
        return value == (unsigned)i && !cuMemFree((CUdeviceptr)what);
    case 'h':
        memcpy(&value, what, sizeof value);
        return value == (unsigned)i && !cuMemFreeHost(what);
    case 's':
        return !cuStreamDestroy(what);
    default:
        return !cuEventDestroy(what);
    }
}

int main(int argc, char **argv)
{
    CUcontext context;
    char kind = argc > 2 ? argv[1][0] : 'a';
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000,
           bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : 256, right = 0;
    void **all = calloc(count, sizeof *all);
    if (!all || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 2;
    for (size_t i = 0; i < count; i++)
        if (!(all[i] = make(kind, bytes, i)))
            return 3;
    long kib = anonymous_kib();
    for (size_t i = 0; i < count; i++)
        right += (size_t)destroy(kind, all[i], i);
    free(all);
    printf("%zu right\n", right);
    fprintf(stderr, "%ld\n", kib);
    return 0;
}
