/* softgpu_runtime.h - what the tests of softgpu's runtime library share: short checks, work that waits in a stream.
 *
 * A test that includes this may be compiled a second time with CUDA_API_PER_THREAD_DEFAULT_STREAM (softgpu/build.mk):
 * its calls are then the _ptsz and _ptds forms, and stream 0 is the thread's own. */
#ifndef TESTS_UNIT_SOFTGPU_RUNTIME_H
#define TESTS_UNIT_SOFTGPU_RUNTIME_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define CUDA_ENABLE_DEPRECATED 1
#include <cuda_runtime_api.h>

#include "tests/unit/gate.h"

#define ok(call)           assert_int_equal((call), cudaSuccess)
#define fails(error, call) assert_int_equal((call), (error))
#define LENGTH(array)      (sizeof(array) / sizeof *(array))
#define NO_STREAM          ((cudaStream_t)(uintptr_t)0x1234) /* the handle of nothing */

/* The call fails and leaves the error as the thread's last one. */
#define sets(error, call)                                                                                              \
    do {                                                                                                               \
        cudaGetLastError();                                                                                            \
        fails(error, call);                                                                                            \
        fails(error, cudaPeekAtLastError());                                                                           \
        fails(error, cudaGetLastError());                                                                              \
        ok(cudaGetLastError());                                                                                        \
    } while (0)

/* ---- order in streams ------------------------------------------------------------------------------------------- */

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
enum { OWN_STREAM = true };
#else
enum { OWN_STREAM = false };
#endif

/* Work that stays in the own stream of another thread: the legacy stream waits for it, this thread's own does not. */
struct elsewhere {
    struct gate gate;
    pthread_t thread;
};

static inline void *stay_in_own_stream(void *data)
{
    ok(cudaLaunchHostFunc(cudaStreamPerThread, wait_at, data));
    ok(cudaStreamSynchronize(cudaStreamPerThread));
    return NULL;
}

static inline void work_elsewhere(struct elsewhere *e)
{
    *e = (struct elsewhere){0};
    pthread_create(&e->thread, NULL, stay_in_own_stream, &e->gate);
    assert_true(soon(&e->gate.reached));
}

static inline void end_elsewhere(struct elsewhere *e)
{
    atomic_store(&e->gate.open, true);
    pthread_join(e->thread, NULL);
}

/* What was called last went to the stream that 0 means to this test. Ends the work elsewhere. */
static inline bool in_stream_0(struct elsewhere *e)
{
    bool right = OWN_STREAM ? cudaStreamSynchronize(NULL) == cudaSuccess : cudaStreamQuery(NULL) == cudaErrorNotReady;
    right = right && !atomic_load(&e->gate.open);
    end_elsewhere(e);
    return cudaStreamSynchronize(NULL) == cudaSuccess && right;
}

#endif
