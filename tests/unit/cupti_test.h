/* cupti_test.h - what the tests of softgpu's libcupti share: two kernels, and what a profiler does with buffers. */
#ifndef TESTS_UNIT_CUPTI_TEST_H
#define TESTS_UNIT_CUPTI_TEST_H

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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cuda_runtime_api.h>
#include <cupti.h>

#define good(call) assert_int_equal((call), 0)

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry add_one(.param .u64 p, .param .u32 n) {\n"
                          ".reg .pred %q; .reg .b32 %r<6>; .reg .b64 %d<3>; .shared .b32 s[4];\n"
                          "ld.param.u64 %d0, [p]; ld.param.u32 %r4, [n];\n"
                          "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
                          "mad.lo.u32 %r3, %r0, %r1, %r2; setp.ge.u32 %q, %r3, %r4; @%q bra done;\n"
                          "st.shared.b32 [s], %r3; mul.wide.u32 %d1, %r3, 4; add.u64 %d2, %d0, %d1;\n"
                          "ld.global.u32 %r5, [%d2]; add.u32 %r5, %r5, 1; st.global.u32 [%d2], %r5;\n"
                          "done: ret; }\n"
                          ".visible .entry nothing() { ret; }\n";

static cudaLibrary_t library;
static cudaKernel_t add_one, nothing;

static inline int load_kernels(void **state)
{
    return cudaLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0) != cudaSuccess ||
           cudaLibraryGetKernel(&add_one, library, "add_one") != cudaSuccess ||
           cudaLibraryGetKernel(&nothing, library, "nothing") != cudaSuccess;
}

/* ---- collecting records ----------------------------------------------------------------------------------------- */

enum { RECORDS = 65536 };
static union record {
    CUpti_ActivityKind kind;
    CUpti_ActivityKernel10 kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityMemset4 fill;
    CUpti_ActivityAPI api;
    CUpti_ActivityDevice5 device;
    CUpti_ActivityContext3 context;
    CUpti_ActivityStream stream;
    CUpti_ActivitySynchronization2 sync;
    CUpti_ActivityCudaEvent2 event;
    CUpti_ActivityExternalCorrelation external;
    CUpti_ActivityMemory4 memory;
    CUpti_ActivityModule module;
    CUpti_ActivityGraphTrace2 graph;
} * records;
static size_t count, buffers_out, bad_buffers;
static size_t buffer_bytes = 4096, buffer_records;
static bool refuse_buffers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static inline void requested(uint8_t **buffer, size_t *size, size_t *maxNumRecords)
{
    pthread_mutex_lock(&lock);
    *buffer = refuse_buffers ? NULL : aligned_alloc(8, buffer_bytes);
    *size = buffer_bytes;
    *maxNumRecords = buffer_records;
    buffers_out += *buffer != NULL;
    pthread_mutex_unlock(&lock);
}

static inline void completed(CUcontext context, uint32_t streamId, uint8_t *buffer, size_t size, size_t validSize)
{
    CUpti_Activity *record = NULL;
    CUptiResult result;
    size_t n = 0;
    pthread_mutex_lock(&lock);
    while ((result = cuptiActivityGetNextRecord(buffer, validSize, &record)) == CUPTI_SUCCESS) {
        size_t bytes = (size_t)(buffer + validSize - (uint8_t *)record);
        memcpy(&records[count], record, bytes < sizeof *records ? bytes : sizeof *records);
        count += count < RECORDS - 1;
        n++;
    }
    bad_buffers +=
        result != CUPTI_ERROR_MAX_LIMIT_REACHED || (buffer_records && n > buffer_records) || size < validSize;
    buffers_out--;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static inline void collect(CUpti_ActivityKind kind)
{
    good(cuptiActivityEnable(kind));
}

static inline void flush(void)
{
    good(cudaDeviceSynchronize());
    good(cuptiActivityFlushAll(0));
    assert_int_equal(bad_buffers, 0);
}

/* The nth record of a kind; NULL when there are not so many. */
static inline const union record *nth(CUpti_ActivityKind kind, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (records[i].kind == kind && !n--)
            return &records[i];
    return NULL;
}

static inline size_t how_many(CUpti_ActivityKind kind)
{
    size_t n = 0;
    while (nth(kind, n))
        n++;
    return n;
}

static inline const CUpti_ActivityAPI *call_of(CUpti_ActivityKind kind, uint32_t cbid)
{
    const union record *r;
    for (size_t i = 0; (r = nth(kind, i)); i++)
        if (r->api.cbid == cbid)
            return &r->api;
    return NULL;
}

static inline int begin(void **state)
{
    records = calloc(RECORDS, sizeof *records);
    count = bad_buffers = 0;
    buffer_bytes = 4096;
    buffer_records = 0;
    refuse_buffers = false;
    return cuptiActivityRegisterCallbacks(requested, completed);
}

static inline int end(void **state)
{
    int result = cuptiFinalize();
    free(records);
    return result || buffers_out;
}

static inline void launch(cudaKernel_t kernel, unsigned grid, unsigned block, void *memory, cudaStream_t stream)
{
    unsigned n = grid * block;
    void *args[] = {&memory, &n};
    good(cudaLaunchKernel((const void *)kernel, (dim3){grid, 1, 1}, (dim3){block, 1, 1}, args, 16, stream));
}

#endif
