/* cancelled.c - threads that are cancelled while they make calls which are no place for a thread to end: it ends where the
 * program says. On a driver whose calls do nothing (tests/stub). */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 20, CALLS = 3000 };

static CUcontext context;
static int finished;

static void *work(void *unused)
{
    CUdeviceptr p;
    pthread_cancel(pthread_self()); /* from here on the next such place is the end */
    if (cuCtxSetCurrent(context))
        return NULL;
    for (int i = 0; i < CALLS; i++)
        if (cuMemAlloc(&p, 4096) || cuMemsetD32Async(p, 1, 16, NULL) || cuMemFree(p))
            return NULL;
    __atomic_fetch_add(&finished, 1, __ATOMIC_RELAXED);
    pthread_testcancel();
    return NULL; /* not reached */
}

int main(void)
{
    pthread_t threads[THREADS];
    int cancelled = 0;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0))
        return 2;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL))
            return 3;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        cancelled += result == PTHREAD_CANCELED;
    }
    printf("%d of %d threads did all their work, %d ended where they may\n", finished, THREADS, cancelled);
    return 0;
}
