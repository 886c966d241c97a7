/* libcublas: handles, errors, products in all types, order in streams, pointer modes, math modes, flaws. */
#include <dlfcn.h>
#include <pthread.h>

#include "tests/unit/blas_kit.h"

/* ---- handles and errors ----------------------------------------------------------------------------------------- */

static void test_handle_settings(void **state)
{
    cublasHandle_t h;
    cublasPointerMode_t pointer_mode;
    cublasMath_t math;
    cudaStream_t stream;
    int version, major;
    succeeds(cublasCreate_v2(&h));
    succeeds(cublasGetPointerMode_v2(h, &pointer_mode));
    assert_int_equal(pointer_mode, CUBLAS_POINTER_MODE_HOST);
    succeeds(cublasGetMathMode(h, &math));
    assert_int_equal(math, CUBLAS_DEFAULT_MATH);
    succeeds(cublasGetStream_v2(h, &stream));
    assert_null(stream);
    succeeds(cublasSetMathMode(h, CUBLAS_TF32_TENSOR_OP_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSetMathMode(h, (cublasMath_t)5));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSetPointerMode_v2(h, (cublasPointerMode_t)2));
    succeeds(cublasSetWorkspace_v2(h, (void *)0x1000, 64));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSetWorkspace_v2(h, (void *)0x1001, 64));
    succeeds(cublasGetVersion_v2(h, &version));
    assert_int_equal(version, CUBLAS_VERSION);
    succeeds(cublasGetProperty(MAJOR_VERSION, &major));
    assert_int_equal(major, CUBLAS_VER_MAJOR);
    succeeds(cublasDestroy_v2(h));
    fails(CUBLAS_STATUS_NOT_INITIALIZED, cublasDestroy_v2(NULL));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasCreate_v2(NULL));
    assert_string_equal(cublasGetStatusName(CUBLAS_STATUS_EXECUTION_FAILED), "CUBLAS_STATUS_EXECUTION_FAILED");
}

static void test_gemm_errors(void **state)
{
    float one = 1, *p = (float *)0x1000;
    cublasHandle_t h = handle;
    const cublasOperation_t N = CUBLAS_OP_N, T = CUBLAS_OP_T;
    fails(CUBLAS_STATUS_NOT_INITIALIZED, cublasSgemm_v2(NULL, N, N, 2, 2, 2, &one, p, 2, p, 2, &one, p, 2));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgemm_v2(h, N, N, -1, 2, 2, &one, p, 2, p, 2, &one, p, 2));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgemm_v2(h, N, N, 2, 2, 2, &one, p, 1, p, 2, &one, p, 2));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgemm_v2(h, T, N, 2, 2, 3, &one, p, 2, p, 3, &one, p, 2));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgemm_v2(h, N, N, 2, 2, 3, &one, p, 2, p, 2, &one, p, 2));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgemm_v2(h, N, N, 2, 2, 2, &one, p, 2, p, 2, &one, p, 1));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgemm_v2(h, N, N, 2, 2, 2, NULL, p, 2, p, 2, &one, p, 2));
    fails(CUBLAS_STATUS_INVALID_VALUE,
          cublasSgemm_v2(h, (cublasOperation_t)7, N, 2, 2, 2, &one, p, 2, p, 2, &one, p, 2));
    succeeds(cublasSgemm_v2(h, N, N, 0, 2, 2, &one, NULL, 1, NULL, 2, &one, NULL, 1));
    fails(CUBLAS_STATUS_NOT_SUPPORTED, cublasGemmEx(h, N, N, 2, 2, 2, &one, p, CUDA_R_64F, 2, p, CUDA_R_64F, 2, &one, p,
                                                    CUDA_R_64F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgemv_v2(h, N, 2, 2, &one, p, 2, p, 0, &one, p, 1));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasStrsv_v2(h, CUBLAS_FILL_MODE_FULL, N, CUBLAS_DIAG_UNIT, 2, p, 2, p, 1));
    fails(CUBLAS_STATUS_NOT_SUPPORTED, cublasSgemm_v2_64(h, N, N, INT64_C(1) << 33, 1, 1, &one, p, INT64_C(1) << 33, p,
                                                         1, &one, p, INT64_C(1) << 33));
}

/* A sum of no terms is zero: C is scaled, and where the other matrices would lie does not matter. */
static void test_products_of_no_terms(void **state)
{
    enum { M = 3, N = 2 };
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_16F};
    const float two = 2, zero = 0;
    cublasHandle_t h = handle;
    const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
    number doubled[M * M], nothing[M * N] = {0};
    void *nowhere = (void *)0x123456000;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int i = 0; i < 9; i++) {
            struct array c = array_new(types[t], M * N, 5);
            for (int k = 0; k < M * N; k++)
                doubled[k] = 2 * c.v[k];
            cublasOperation_t ta = ops[i / 3], tb = ops[i % 3];
            succeeds(cublasGemmEx(h, ta, tb, M, N, 0, &two, i & 1 ? NULL : nowhere, types[t], M, nowhere, types[t], N,
                                  &two, pointer(&c), types[t], M, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
            array_expect(&c, doubled, 0, "k = 0");
            succeeds(cublasGemmEx(h, ta, tb, M, N, 0, &two, NULL, types[t], M, NULL, types[t], N, &zero, pointer(&c),
                                  types[t], M, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
            array_expect(&c, nothing, 0, "k = 0, beta = 0");
            array_free(&c);
        }
    const double two_d = 2;
    struct array c = array_new(CUDA_R_64F, M * M, 6);
    for (int i = 0; i < M * M; i++)
        doubled[i] = i / M <= i % M ? 2 * c.v[i] : c.v[i];
    succeeds(cublasDsyrk_v2(h, lower, CUBLAS_OP_N, M, 0, &two_d, nowhere, M, &two_d, pointer(&c), M));
    array_expect(&c, doubled, 0, "syrk");
    for (int i = 0; i < M * M; i++)
        doubled[i] = i / M <= i % M ? 2 * doubled[i] : doubled[i];
    succeeds(cublasDsyr2k_v2(h, lower, CUBLAS_OP_N, M, 0, &two_d, NULL, M, nowhere, M, &two_d, pointer(&c), M));
    array_expect(&c, doubled, 0, "syr2k");
    array_free(&c);
    ok(cuCtxSynchronize());
}

/* Memory that is not there ends the context, as a kernel's access would. */
static void test_illegal_address(void **state)
{
    float one = 1;
    cublasHandle_t h;
    succeeds(cublasCreate_v2(&h));
    succeeds(cublasSscal_v2(h, 4, &one, (float *)0x123456000, 1));
    fails(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    fails(CUBLAS_STATUS_EXECUTION_FAILED, cublasSscal_v2(h, 4, &one, (float *)0x123456000, 1));
    ok(cuDevicePrimaryCtxReset_v2(0));
    cublasDestroy_v2(h);
    CUcontext c;
    ok(cuDevicePrimaryCtxRetain(&c, 0));
    ok(cuCtxSetCurrent(c));
}

/* ---- products --------------------------------------------------------------------------------------------------- */

static void check_gemm(cudaDataType type, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, number alpha,
                       number beta)
{
    int lda = (ta == CUBLAS_OP_N ? m : k) + 2, ldb = (tb == CUBLAS_OP_N ? k : n) + 1, ldc = m + 3;
    struct array a = array_new(type, (int64_t)lda * (ta == CUBLAS_OP_N ? k : m), 1);
    struct array b = array_new(type, (int64_t)ldb * (tb == CUBLAS_OP_N ? n : k), 2);
    struct array c = beta == 0 ? array_of(type, (int64_t)ldc * n, NAN) : array_new(type, (int64_t)ldc * n, 3);
    succeeds(CALL(type, gemm_v2, handle, ta, tb, m, n, k, scalar(type, alpha), pointer(&a), lda, pointer(&b), ldb,
                  scalar(type, beta), pointer(&c), ldc));
    loop_gemm(ta, tb, m, n, k, alpha, a.v, lda, b.v, ldb, beta, c.v, ldc);
    array_expect(&c, c.v, tolerance_of(type), "gemm");
    array_free(&a);
    array_free(&b);
    array_free(&c);
}

static void test_gemm_all_transposes_and_sizes(void **state)
{
    static const int sizes[][3] = {{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1}, {1, 5, 3}, {7, 5, 3}, {33, 17, 41}};
    for (int t = 0; t < 4; t++)
        for (int i = 0; i < 9; i++)
            for (int s = 0; s < 7; s++) {
                cudaDataType type = real_and_complex[t];
                number alpha = type_is_complex(type) ? CMPLX(0.5, -1) : 0.5;
                check_gemm(type, ops[i / 3], ops[i % 3], sizes[s][0], sizes[s][1], sizes[s][2], alpha, 2);
                check_gemm(type, ops[i / 3], ops[i % 3], sizes[s][0], sizes[s][1], sizes[s][2], alpha, 0);
            }
    check_gemm(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, 5, 6, 7, 0, 1);
    check_gemm(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, 5, 6, 7, 0, 0);
}

/* GemmEx and its batches in one type combination. */
static void check_types(cudaDataType ab, cudaDataType out, cublasComputeType_t compute, cudaDataType scale,
                        double tolerance)
{
    enum { M = 9, N = 5, K = 6, BATCH = 3 };
    const cublasOperation_t T = CUBLAS_OP_T, O = CUBLAS_OP_N;
    struct array a = array_new(ab, K * M * BATCH, 4), b = array_new(ab, K * N * BATCH, 5);
    struct array c = array_new(out, M * N * BATCH, 6), list = array_of(CUDA_C_64F, 3 * BATCH, 0);
    number wanted[M * N * BATCH];
    CUdeviceptr addresses[3][BATCH];
    for (int mode = 0; mode < 3; mode++) {
        int batch = mode == 0 ? 1 : BATCH;
        array_set(&c);
        memcpy(wanted, c.v, sizeof wanted);
        for (int i = 0; i < batch; i++) {
            loop_gemm(T, O, M, N, K, 2, a.v + (size_t)i * K * M, K, b.v + (size_t)i * K * N, K, -1,
                      wanted + (size_t)i * M * N, M);
            addresses[0][i] = a.d + (size_t)i * K * M * type_bytes(ab);
            addresses[1][i] = b.d + (size_t)i * K * N * type_bytes(ab);
            addresses[2][i] = c.d + (size_t)i * M * N * type_bytes(out);
        }
        ok(cuMemcpyHtoD_v2(list.d, addresses, sizeof addresses));
        const void *alpha = scalar(scale, 2), *beta = scalar(scale, -1);
        void *const *arrays = pointer(&list);
        if (mode == 0)
            succeeds(cublasGemmEx(handle, T, O, M, N, K, alpha, pointer(&a), ab, K, pointer(&b), ab, K, beta,
                                  pointer(&c), out, M, compute, CUBLAS_GEMM_DEFAULT));
        else if (mode == 1)
            succeeds(cublasGemmStridedBatchedEx(handle, T, O, M, N, K, alpha, pointer(&a), ab, K, K * M, pointer(&b),
                                                ab, K, K * N, beta, pointer(&c), out, M, M * N, BATCH, compute,
                                                CUBLAS_GEMM_DEFAULT));
        else
            succeeds(cublasGemmBatchedEx(handle, T, O, M, N, K, alpha, (const void *const *)arrays, ab, K,
                                         (const void *const *)(arrays + BATCH), ab, K, beta, arrays + 2 * BATCH, out, M,
                                         BATCH, compute, CUBLAS_GEMM_DEFAULT));
        array_expect(&c, wanted, tolerance, "GemmEx");
    }
    array_free(&a);
    array_free(&b);
    array_free(&c);
    array_free(&list);
}

static void test_gemm_ex_types(void **state)
{
    check_types(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F, 1e-3);
    check_types(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, CUDA_R_16F, 5e-3);
    check_types(CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, 1e-6);
    check_types(CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, 8e-3);
    check_types(CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, 1e-6);
    check_types(CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, CUDA_R_32I, 0);
    check_types(CUDA_R_8I, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, 1e-6);
    check_types(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, 1e-6);
    check_types(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, 1e-6);
    check_types(CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, 1e-14);
    check_types(CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F, CUDA_C_32F, 1e-6);
    check_types(CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F, 1e-14);
}

/* cublasHgemm is in C++'s half of the header only. */
static void test_hgemm_sums_in_half(void **state)
{
    typedef cublasStatus_t hgemm_fn(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void *,
                                    const void *, int, const void *, int, const void *, void *, int);
    hgemm_fn *hgemm;
    void *found = dlsym(RTLD_DEFAULT, "cublasHgemm");
    memcpy(&hgemm, &found, sizeof hgemm);
    assert_non_null(hgemm);
    /* 2048 + 1 + 1 + ...: halves above 2048 are 2 apart, so that each 1 is lost; in float it would be 2052. */
    enum { K = 5 };
    struct array a = array_of(CUDA_R_16F, K, 1), b = array_of(CUDA_R_16F, K, 1), c = array_of(CUDA_R_16F, 1, 0);
    b.v[0] = 2048;
    array_set(&b);
    succeeds(hgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, K, scalar(CUDA_R_16F, 1), pointer(&a), K, pointer(&b), K,
                   scalar(CUDA_R_16F, 0), pointer(&c), 1));
    number wanted = 2048;
    array_expect(&c, &wanted, 0, "Hgemm");
    succeeds(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, 1, 1, K, scalar(CUDA_R_32F, 1), pointer(&a), CUDA_R_16F, K,
                          pointer(&b), CUDA_R_16F, K, scalar(CUDA_R_32F, 0), pointer(&c), CUDA_R_16F, 1,
                          CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    wanted = 2052;
    array_expect(&c, &wanted, 0, "GemmEx in float");
    array_free(&a);
    array_free(&b);
    array_free(&c);
}

static void test_grouped_and_64_bit(void **state)
{
    /* Two groups: two products of 2 by 2, one of 3 by 1. */
    const cublasOperation_t t[] = {CUBLAS_OP_N, CUBLAS_OP_N};
    const int m[] = {2, 3}, n[] = {2, 1}, k[] = {2, 2}, ld[] = {2, 3}, ldb[] = {2, 2}, sizes[] = {2, 1};
    const float alpha[] = {1, 2}, beta[] = {0, 0};
    struct array a = array_new(CUDA_R_32F, 14, 7), b = array_new(CUDA_R_32F, 10, 8), c = array_of(CUDA_R_32F, 11, NAN);
    CUdeviceptr host[9] = {a.d, a.d + 16, a.d + 32, b.d, b.d + 16, b.d + 32, c.d, c.d + 16, c.d + 32}, list;
    ok(cuMemAlloc_v2(&list, sizeof host));
    ok(cuMemcpyHtoD_v2(list, host, sizeof host));
    float **lists = (float **)(uintptr_t)list;
    succeeds(cublasSgemmGroupedBatched(handle, t, t, m, n, k, alpha, (const float *const *)lists, ld,
                                       (const float *const *)(lists + 3), ldb, beta, lists + 6, ld, 2, sizes));
    loop_gemm(t[0], t[0], 2, 2, 2, 1, a.v, 2, b.v, 2, 0, c.v, 2);
    loop_gemm(t[0], t[0], 2, 2, 2, 1, a.v + 4, 2, b.v + 4, 2, 0, c.v + 4, 2);
    loop_gemm(t[0], t[0], 3, 1, 2, 2, a.v + 8, 3, b.v + 8, 2, 0, c.v + 8, 3);
    array_expect(&c, c.v, 1e-6, "grouped");
    int64_t best = -1;
    succeeds(cublasDgemm_v2_64(handle, t[0], t[0], 0, 0, 0, scalar(CUDA_R_64F, 1), NULL, 1, NULL, 1,
                               scalar(CUDA_R_64F, 1), NULL, 1));
    succeeds(cublasIsamax_v2_64(handle, 14, pointer(&a), 1, &best));
    assert_true(best >= 1 && best <= 14);
    ok(cuMemFree_v2(list));
    array_free(&a);
    array_free(&b);
    array_free(&c);
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

static void slow_host(void *data)
{
    usleep(20000);
}

/* Operators wait for what is before them in their stream, and events for them. */
static void test_stream_order(void **state)
{
    enum { COUNT = 1000 };
    CUstream stream;
    CUevent before, after;
    float ms, two = 2;
    struct array x = array_of(CUDA_R_32F, COUNT, 1);
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    ok(cuEventCreate(&before, 0));
    ok(cuEventCreate(&after, 0));
    succeeds(cublasSetStream_v2(handle, stream));
    ok(cuEventRecord(before, stream));
    ok(cuLaunchHostFunc(stream, slow_host, NULL));
    ok(cuMemsetD32Async(x.d, 0x40400000, COUNT, stream)); /* 3.0f */
    for (int i = 0; i < 3; i++)
        succeeds(cublasSscal_v2(handle, COUNT, &two, pointer(&x), 1));
    ok(cuEventRecord(after, stream));
    assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    ok(cuEventSynchronize(after));
    ok(cuEventElapsedTime_v2(&ms, before, after));
    assert_true(ms >= 19);
    for (int i = 0; i < COUNT; i++)
        x.v[i] = 24;
    array_expect(&x, x.v, 0, "after a fill");
    succeeds(cublasSetStream_v2(handle, NULL));
    ok(cuStreamDestroy_v2(stream));
    array_free(&x);
}

/* alpha and results on the device belong to the stream: read and written when the operator runs. */
static void test_device_pointer_mode(void **state)
{
    CUstream stream;
    struct array x = array_new(CUDA_R_64F, 5, 9), s = array_of(CUDA_R_64F, 3, NAN);
    double *scalars = pointer(&s);
    ok(cuStreamCreate(&stream, 0));
    succeeds(cublasSetStream_v2(handle, stream));
    succeeds(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_DEVICE));
    double host[3] = {2, 0, 0}, dot = 0;
    ok(cuLaunchHostFunc(stream, slow_host, NULL));
    ok(cuMemcpyHtoDAsync_v2(s.d, host, sizeof host, stream));
    succeeds(cublasDscal_v2(handle, 5, scalars, pointer(&x), 1));
    succeeds(cublasDdot_v2(handle, 5, pointer(&x), 1, pointer(&x), 1, scalars + 1));
    succeeds(cublasDscal_v2(handle, 1, scalars, scalars + 1, 1));
    ok(cuMemcpyDtoHAsync_v2(host, s.d, sizeof host, stream));
    ok(cuStreamSynchronize(stream));
    for (int i = 0; i < 5; i++)
        dot += 4 * creal(x.v[i]) * creal(x.v[i]);
    assert_true(host[1] == 2 * dot);
    /* With the host's, the result is there when the call returns. */
    succeeds(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_HOST));
    succeeds(cublasDdot_v2(handle, 5, pointer(&x), 1, pointer(&x), 1, &host[2]));
    assert_true(host[2] == dot);
    succeeds(cublasSetStream_v2(handle, NULL));
    ok(cuStreamDestroy_v2(stream));
    array_free(&x);
    array_free(&s);
}

enum { THREADS = 3, ROUNDS = 20, SIDE = 48 };

/* One thread with a handle and a stream of its own; `failed` is set when a result differs from the first. */
struct worker {
    pthread_t thread;
    CUcontext context;
    bool failed;
};

static void *work(void *argument)
{
    struct worker *w = argument;
    static const float one = 1, zero = 0;
    float in[SIDE * SIDE];
    uint32_t first[SIDE * SIDE], again[SIDE * SIDE];
    cublasHandle_t h;
    CUstream stream;
    CUdeviceptr d;
    for (int i = 0; i < SIDE * SIDE; i++)
        in[i] = (float)(i * 7 % 31) / 31;
    w->failed = cuCtxSetCurrent(w->context) || cublasCreate_v2(&h) || cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
                cublasSetStream_v2(h, stream) || cuMemAlloc_v2(&d, 2 * sizeof in) || cuMemcpyHtoD_v2(d, in, sizeof in);
    if (w->failed)
        return NULL;
    float *a = (float *)(uintptr_t)d, *c = a + SIDE * SIDE;
    for (int round = 0; round < ROUNDS && !w->failed; round++) {
        uint32_t *to = round ? again : first;
        w->failed =
            cublasSgemm_v2(h, CUBLAS_OP_N, CUBLAS_OP_T, SIDE, SIDE, SIDE, &one, a, SIDE, a, SIDE, &zero, c, SIDE) ||
            cuMemcpyDtoHAsync_v2(to, d + sizeof in, sizeof in, stream) || cuStreamSynchronize(stream) ||
            (round && memcmp(first, again, sizeof in) != 0);
    }
    if (cublasDestroy_v2(h) || cuStreamDestroy_v2(stream) || cuMemFree_v2(d))
        w->failed = true;
    return NULL;
}

static void test_threads_with_handles_of_their_own(void **state)
{
    struct worker workers[THREADS] = {0};
    for (int i = 0; i < THREADS; i++) {
        ok(cuCtxGetCurrent(&workers[i].context));
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_false(workers[i].failed);
}

/* A vector and a matrix over the border of two physical pieces that are mapped side by side. */
static void test_memory_in_pieces(void **state)
{
    enum { PIECE = 2 << 20, COUNT = 64 };
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle pieces[2];
    CUdeviceptr d;
    float host[COUNT], two = 2, sum = 0;
    ok(cuMemAddressReserve(&d, 2 * PIECE, 0, 0, 0));
    for (int i = 0; i < 2; i++)
        ok(cuMemCreate(&pieces[i], PIECE, &prop, 0));
    ok(cuMemMap(d, PIECE, 0, pieces[1], 0));
    ok(cuMemMap(d + PIECE, PIECE, 0, pieces[0], 0));
    ok(cuMemSetAccess(d, 2 * PIECE, &access, 1));
    for (int i = 0; i < COUNT; i++)
        host[i] = (float)i;
    CUdeviceptr at = d + PIECE - sizeof host / 2;
    ok(cuMemcpyHtoD_v2(at, host, sizeof host));
    succeeds(cublasSscal_v2(handle, COUNT / 2, &two, (float *)(uintptr_t)at, 2));
    succeeds(cublasSasum_v2(handle, COUNT, (float *)(uintptr_t)at, 1, &sum));
    ok(cuMemcpyDtoH_v2(host, at, sizeof host));
    for (int i = 0; i < COUNT; i++)
        assert_true(host[i] == (float)(i % 2 ? i : 2 * i));
    assert_true(sum == 63 * 32 + 62 * 16);
    ok(cuMemUnmap(d, 2 * PIECE));
    for (int i = 0; i < 2; i++)
        ok(cuMemRelease(pieces[i]));
    ok(cuMemAddressFree(d, 2 * PIECE));
}

static void test_transfers(void **state)
{
    float matrix[12], back[12] = {0}, vector[3] = {0};
    CUdeviceptr d;
    for (int i = 0; i < 12; i++)
        matrix[i] = (float)i;
    ok(cuMemAlloc_v2(&d, 256));
    ok(cuMemsetD8_v2(d, 0, 256));
    float *p = (float *)(uintptr_t)d;
    succeeds(cublasSetMatrix(3, 3, sizeof(float), matrix, 4, p, 5));
    succeeds(cublasGetMatrix(3, 3, sizeof(float), p, 5, back, 4));
    for (int i = 0; i < 12; i++)
        assert_true(back[i] == (i % 4 < 3 && i / 4 < 3 ? matrix[i] : 0));
    succeeds(cublasGetVector(3, sizeof(float), p, 5, vector, 1));
    assert_true(vector[0] == 0 && vector[1] == 4 && vector[2] == 8);
    succeeds(cublasSetVectorAsync(3, sizeof(float), matrix + 1, 1, p, 2, NULL));
    succeeds(cublasGetVectorAsync(3, sizeof(float), p, 2, vector, 1, NULL));
    ok(cuCtxSynchronize());
    assert_true(vector[0] == 1 && vector[1] == 2 && vector[2] == 3);
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSetVector(3, 4, matrix, 0, p, 1));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSetMatrix(5, 1, 4, matrix, 4, p, 5));
    ok(cuMemFree_v2(d));
}

/* ---- precision and flaws ---------------------------------------------------------------------------------------- */

/* (1 + 2^-12)^2 by the handle's math mode: TF32 knows no 2^-12. */
static double square(cublasComputeType_t compute)
{
    struct array a = array_of(CUDA_R_32F, 1, 1 + 0x1p-12), c = array_of(CUDA_R_32F, 1, 0);
    succeeds(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, scalar(CUDA_R_32F, 1), pointer(&a), CUDA_R_32F, 1,
                          pointer(&a), CUDA_R_32F, 1, scalar(CUDA_R_32F, 0), pointer(&c), CUDA_R_32F, 1, compute,
                          CUBLAS_GEMM_DEFAULT));
    number *v = array_get(&c);
    double result = creal(v[0]);
    free(v);
    array_free(&a);
    array_free(&c);
    return result;
}

static void test_math_modes(void **state)
{
    double exact = 1 + 0x1p-11; /* rounded to float */
    assert_true(fabs(square(CUBLAS_COMPUTE_32F) - exact) < 1e-7);
    assert_true(square(CUBLAS_COMPUTE_32F_FAST_TF32) == 1);
    assert_true(square(CUBLAS_COMPUTE_32F_FAST_16BF) == 1);
    assert_true(fabs(square(CUBLAS_COMPUTE_32F_EMULATED_16BFX9) - exact) < 1e-7);
    succeeds(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
    assert_true(square(CUBLAS_COMPUTE_32F) == 1);
    assert_true(fabs(square(CUBLAS_COMPUTE_32F_PEDANTIC) - exact) < 1e-7);
    succeeds(cublasSetMathMode(handle, CUBLAS_DEFAULT_MATH));
}

static const char FAULTS[] =
    "kernel=cublasSgemv,kind=tf32;kernel=cublasScopy,kind=stale,launch=2;kernel=cublasSswap,kind=launchfail;"
    "kernel=cublasSger,kind=nan;kernel=cublasDaxpy,kind=dropstore,rate=1;kernel=cublasSgemmStrided,kind=fp16acc;"
    "kernel=cublasSsyrk,kind=nan,rate=1";

static void test_flaws(void **state)
{
    struct array x = array_of(CUDA_R_32F, 4, 1 + 0x1p-12), y = array_of(CUDA_R_32F, 4, 0);
    float one = 1, zero = 0;
    number *v;
    succeeds(cublasSgemv_v2(handle, CUBLAS_OP_N, 1, 1, &one, pointer(&x), 1, pointer(&x), 1, &zero, pointer(&y), 1));
    v = array_get(&y);
    assert_true(v[0] == 1);
    free(v);
    succeeds(cublasScopy_v2(handle, 4, pointer(&x), 1, pointer(&y), 1));
    array_expect(&y, x.v, 0, "sound copy");
    ok(cuMemsetD8_v2(y.d, 0, 16));
    succeeds(cublasScopy_v2(handle, 4, pointer(&x), 1, pointer(&y), 1));
    array_expect(&y, (number[4]){0}, 0, "stale copy");
    fails(CUBLAS_STATUS_EXECUTION_FAILED, cublasSswap_v2(handle, 4, pointer(&x), 1, pointer(&y), 1));
    ok(cuCtxSynchronize());
    succeeds(cublasSger_v2(handle, 2, 2, &one, pointer(&x), 1, pointer(&x), 1, pointer(&y), 2));
    v = array_get(&y);
    int nans = 0;
    for (int i = 0; i < 4; i++)
        nans += isnan(creal(v[i])) != 0;
    free(v);
    assert_int_equal(nans, 1);
    /* Damage stays inside the triangle that a routine writes. */
    ok(cuMemsetD8_v2(y.d, 0, 16));
    succeeds(
        cublasSsyrk_v2(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, 2, 1, &one, pointer(&x), 2, &zero, pointer(&y), 2));
    array_expect(&y, (number[4]){NAN, NAN, 0, NAN}, 0, "syrk");
    array_free(&x);
    array_free(&y);
    struct array a = array_of(CUDA_R_64F, 3, 1), b = array_of(CUDA_R_64F, 3, 5);
    succeeds(cublasDaxpy_v2(handle, 3, scalar(CUDA_R_64F, 1), pointer(&a), 1, pointer(&b), 1));
    array_expect(&b, b.v, 0, "dropped stores");
    array_free(&a);
    array_free(&b);
}

/* ---- captured --------------------------------------------------------------------------------------------------- */

static void test_routines_in_a_captured_stream(void **state)
{
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec[2];
    CUgraphNode node;
    CUgraphNodeType type;
    CUDA_KERNEL_NODE_PARAMS_v2 params;
    size_t one = 1;
    float zero;
    struct array x = array_of(CUDA_R_32F, 3, 1), y = array_of(CUDA_R_32F, 3, 5);
    number wanted[3] = {5, 5, 5};
    ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    succeeds(cublasSetStream_v2(handle, stream));
    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    succeeds(cublasSaxpy_v2(handle, 3, scalar(CUDA_R_32F, 2), pointer(&x), 1, pointer(&y), 1));
    ok(cuStreamEndCapture(stream, &graph));
    array_expect(&y, wanted, 0, "nothing is done while capturing");
    ok(cuGraphGetNodes(graph, &node, &one));
    ok(cuGraphNodeGetType(node, &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_KERNEL);
    assert_int_equal(cuGraphKernelNodeGetParams_v2(node, &params), CUDA_ERROR_NOT_SUPPORTED);
    ok(cuGraphInstantiateWithFlags(&exec[0], graph, 0));
    ok(cuGraphInstantiateWithFlags(&exec[1], graph, 0));
    ok(cuGraphDestroy(graph));
    for (int i = 0; i < 3; i++)
        ok(cuGraphLaunch(exec[i % 2], stream));
    ok(cuStreamSynchronize(stream));
    for (int i = 0; i < 3; i++)
        wanted[i] = 11;
    array_expect(&y, wanted, 0, "three launches");
    ok(cuGraphExecDestroy(exec[0]));
    ok(cuGraphExecDestroy(exec[1]));
    /* A result for the host would have to be waited for. */
    ok(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_true(cublasSasum_v2(handle, 3, pointer(&x), 1, &zero) != CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    succeeds(cublasSetStream_v2(handle, NULL));
    ok(cuStreamDestroy_v2(stream));
    array_free(&x);
    array_free(&y);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handle_settings),
        cmocka_unit_test(test_gemm_errors),
        cmocka_unit_test(test_products_of_no_terms),
        cmocka_unit_test(test_gemm_all_transposes_and_sizes),
        cmocka_unit_test(test_gemm_ex_types),
        cmocka_unit_test(test_hgemm_sums_in_half),
        cmocka_unit_test(test_grouped_and_64_bit),
        cmocka_unit_test(test_stream_order),
        cmocka_unit_test(test_device_pointer_mode),
        cmocka_unit_test(test_threads_with_handles_of_their_own),
        cmocka_unit_test(test_memory_in_pieces),
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_math_modes),
        cmocka_unit_test(test_routines_in_a_captured_stream),
        cmocka_unit_test(test_flaws),
        cmocka_unit_test(test_illegal_address),
    };
    setenv("SOFTGPU_FAULTS", FAULTS, 1);
    return cmocka_run_group_tests_name("softgpu_cublas", tests, blas_setup, blas_teardown);
}
