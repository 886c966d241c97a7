/* churn.c ALLOCATIONS [THREADS] - many short-lived allocations, or, with THREADS, as many
 * short-lived threads with one each. Says at the end by how much the process grew in the second
 * half of its life, in KiB of anonymous memory. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "anonymous.h"

static CUcontext context;

static void *one(void *unused)
{
    CUdeviceptr p;
    if (cuCtxSetCurrent(context) || cuMemAlloc(&p, 64 + (size_t)rand() % 4096))
        exit(3);
    if (cuMemFree(p))
        exit(4);
    return NULL;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000, half = 0;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 2;
    for (long i = 0; i < count; i++) {
        pthread_t thread;
        if (i == count / 2)
            half = anonymous_kib();
        if (argc <= 2)
            one(NULL);
        else if (pthread_create(&thread, NULL, one, NULL) == 0)
            pthread_join(thread, NULL);
        else
            return 5;
    }
    printf("%ld\n", anonymous_kib() - half);
    return 0;
}
