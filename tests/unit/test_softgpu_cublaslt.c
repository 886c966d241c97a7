/* libcublasLt: layouts, orders, batches, pointer modes, epilogues, scales, the algorithm. */
#include "tests/unit/blas_kit.h"

enum { M = 9, N = 5, K = 7, BATCH = 2, ALGOS = 4 };

static cublasLtHandle_t lt;

static int setup(void **state)
{
    return use_primary_context(state) || cublasLtCreate(&lt) != CUBLAS_STATUS_SUCCESS;
}

static int teardown(void **state)
{
    return cublasLtDestroy(lt) != CUBLAS_STATUS_SUCCESS;
}

/* One multiplication under test: descriptors, arrays, and what a plain loop makes of them. */
struct matmul {
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a_layout, b_layout, c_layout, d_layout;
    cublasOperation_t ta, tb;
    struct array a, b, c, d;
};

static cublasLtMatrixLayout_t layout(cudaDataType type, int rows, int cols, int ld)
{
    cublasLtMatrixLayout_t l;
    succeeds(cublasLtMatrixLayoutCreate(&l, type, (uint64_t)rows, (uint64_t)cols, ld));
    return l;
}

static void set_op(struct matmul *mm, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    succeeds(cublasLtMatmulDescSetAttribute(mm->op, attribute, value, bytes));
}

static void set_epilogue(struct matmul *mm, cublasLtEpilogue_t epilogue)
{
    uint32_t value = epilogue;
    set_op(mm, CUBLASLT_MATMUL_DESC_EPILOGUE, &value, sizeof value);
}

static void set_pointer(struct matmul *mm, cublasLtMatmulDescAttributes_t attribute, const struct array *a)
{
    void *p = pointer(a);
    set_op(mm, attribute, &p, sizeof p);
}

static struct matmul make(cudaDataType ab, cudaDataType cd, cublasComputeType_t compute, cudaDataType scale,
                          cublasOperation_t ta, cublasOperation_t tb)
{
    struct matmul mm = {.ta = ta, .tb = tb};
    int32_t a_op = ta, b_op = tb;
    int a_rows = ta == CUBLAS_OP_N ? M : K, b_rows = tb == CUBLAS_OP_N ? K : N;
    succeeds(cublasLtMatmulDescCreate(&mm.op, compute, scale));
    set_op(&mm, CUBLASLT_MATMUL_DESC_TRANSA, &a_op, sizeof a_op);
    set_op(&mm, CUBLASLT_MATMUL_DESC_TRANSB, &b_op, sizeof b_op);
    mm.a_layout = layout(ab, a_rows, M + K - a_rows, a_rows);
    mm.b_layout = layout(ab, b_rows, K + N - b_rows, b_rows);
    mm.c_layout = layout(cd, M, N, M);
    mm.d_layout = layout(cd, M, N, M);
    mm.a = array_new(ab, M * K * BATCH, 1);
    mm.b = array_new(ab, K * N * BATCH, 2);
    mm.c = array_new(cd, M * N * BATCH, 3);
    mm.d = array_of(cd, M * N * BATCH, 0);
    return mm;
}

static void end(struct matmul *mm)
{
    succeeds(cublasLtMatmulDescDestroy(mm->op));
    succeeds(cublasLtMatrixLayoutDestroy(mm->a_layout));
    succeeds(cublasLtMatrixLayoutDestroy(mm->b_layout));
    succeeds(cublasLtMatrixLayoutDestroy(mm->c_layout));
    succeeds(cublasLtMatrixLayoutDestroy(mm->d_layout));
    array_free(&mm->a);
    array_free(&mm->b);
    array_free(&mm->c);
    array_free(&mm->d);
}

static cublasStatus_t run(struct matmul *mm, const void *alpha, const void *beta)
{
    return cublasLtMatmul(lt, mm->op, alpha, pointer(&mm->a), mm->a_layout, pointer(&mm->b), mm->b_layout, beta,
                          pointer(&mm->c), mm->c_layout, pointer(&mm->d), mm->d_layout, NULL, NULL, 0, NULL);
}

/* alpha op(A) op(B) + beta C of member i, into d.v. */
static void loop(struct matmul *mm, int i, number alpha, number beta)
{
    number *d = mm->d.v + (size_t)i * M * N;
    memcpy(d, mm->c.v + (size_t)i * M * N, M * N * sizeof *d);
    loop_gemm(mm->ta, mm->tb, M, N, K, alpha, mm->a.v + (size_t)i * M * K, mm->ta == CUBLAS_OP_N ? M : K,
              mm->b.v + (size_t)i * K * N, mm->tb == CUBLAS_OP_N ? K : N, beta, d, M);
}

static void test_types_and_transposes(void **state)
{
    static const struct {
        cudaDataType ab, cd, scale;
        cublasComputeType_t compute;
        double tolerance;
    } cases[] = {
        {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-6},
        {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 1e-6},
        {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 1e-14},
        {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-3},
        {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, 5e-3},
        {CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-6},
        {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 0},
        {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F, CUBLAS_COMPUTE_32F, 1e-6},
        {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F, 1e-14},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int t = 0; t < 4; t++) {
            struct matmul mm = make(cases[i].ab, cases[i].cd, cases[i].compute, cases[i].scale,
                                    t & 1 ? CUBLAS_OP_T : CUBLAS_OP_N, t & 2 ? CUBLAS_OP_C : CUBLAS_OP_N);
            succeeds(run(&mm, scalar(cases[i].scale, 2), scalar(cases[i].scale, -1)));
            loop(&mm, 0, 2, -1);
            array_expect(&mm.d, mm.d.v, cases[i].tolerance, "matmul");
            end(&mm);
        }
}

static void test_strided_batch_and_row_order(void **state)
{
    struct matmul mm = make(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_T);
    cublasLtMatrixLayout_t layouts[] = {mm.a_layout, mm.b_layout, mm.c_layout, mm.d_layout};
    const int64_t strides[] = {M * K, K * N, M * N, M * N};
    int32_t batch = BATCH, row = CUBLASLT_ORDER_ROW;
    int64_t ld = N;
    for (int i = 0; i < 4; i++) {
        succeeds(
            cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
        succeeds(cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &strides[i],
                                                  sizeof strides[i]));
    }
    float one = 1, zero = 0;
    succeeds(run(&mm, &one, &zero));
    for (int i = 0; i < BATCH; i++)
        loop(&mm, i, 1, 0);
    array_expect(&mm.d, mm.d.v, 1e-6, "batch");
    /* The same with D by rows. */
    succeeds(cublasLtMatrixLayoutSetAttribute(mm.d_layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &row, sizeof row));
    succeeds(cublasLtMatrixLayoutSetAttribute(mm.d_layout, CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld));
    succeeds(run(&mm, &one, &zero));
    number turned[M * N * BATCH];
    for (int b = 0; b < BATCH; b++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < M; i++)
                turned[b * M * N + i * N + j] = mm.d.v[b * M * N + i + j * M];
    array_expect(&mm.d, turned, 1e-6, "row order");
    end(&mm);
}

static void test_pointer_modes(void **state)
{
    struct matmul mm = make(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N);
    struct array alpha = array_new(CUDA_R_32F, M, 11), beta = array_new(CUDA_R_32F, M, 12);
    number wanted[M * N * BATCH] = {0};
    int32_t mode = CUBLASLT_POINTER_MODE_DEVICE;
    float two = 2;
    set_op(&mm, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
    succeeds(run(&mm, pointer(&alpha), pointer(&beta)));
    loop(&mm, 0, alpha.v[0], beta.v[0]);
    array_expect(&mm.d, mm.d.v, 1e-5, "device");
    loop(&mm, 0, 1, 0);
    for (mode = CUBLASLT_POINTER_MODE_DEVICE_VECTOR; mode <= CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST;
         mode++) {
        bool vector = mode == CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
        bool host = mode == CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST;
        set_op(&mm, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
        succeeds(run(&mm, pointer(&alpha), vector ? pointer(&beta) : host ? &two : NULL));
        for (int i = 0; i < M * N; i++)
            wanted[i] = alpha.v[i % M] * mm.d.v[i] + (vector ? beta.v[i % M] : host ? 2 : 0) * mm.c.v[i];
        array_expect(&mm.d, wanted, 1e-5, "vector");
    }
    end(&mm);
    array_free(&alpha);
    array_free(&beta);
}

/* ---- epilogues -------------------------------------------------------------------------------------------------- */

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
}

/* Forward with an auxiliary output, then backward with it. */
static void test_relu_and_its_gradient(void **state)
{
    enum { MASK_LD = 128 };
    struct matmul mm = make(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N);
    struct array bias = array_new(CUDA_R_32F, M, 13), mask = array_of(CUDA_R_8U, MASK_LD / 8 * N, 0);
    struct array grad = array_of(CUDA_R_32F, M, NAN);
    int64_t ld = MASK_LD;
    float one = 1, zero = 0;
    number sums[M] = {0}, x[M * N];
    set_pointer(&mm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias);
    set_pointer(&mm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &mask);
    set_epilogue(&mm, CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
    fails(CUBLAS_STATUS_INVALID_VALUE, run(&mm, &one, &zero)); /* no leading dimension yet */
    set_op(&mm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
    succeeds(run(&mm, &one, &zero));
    loop(&mm, 0, 1, 0);
    memcpy(x, mm.d.v, sizeof x);
    for (int i = 0; i < M * N; i++) {
        double y = creal(x[i] + bias.v[i % M]);
        mm.d.v[i] = fmax(y, 0);
        int bit = i % M + i / M * MASK_LD;
        if (y > 0)
            mask.v[bit / 8] = (double)((int)creal(mask.v[bit / 8]) | 1 << bit % 8);
    }
    array_expect(&mm.d, mm.d.v, 1e-6, "relu, bias");
    array_expect(&mask, mask.v, 0, "mask");
    set_pointer(&mm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &grad);
    set_epilogue(&mm, CUBLASLT_EPILOGUE_DRELU_BGRAD);
    succeeds(run(&mm, &one, &zero));
    for (int i = 0; i < M * N; i++) {
        mm.d.v[i] = creal(mm.d.v[i]) > 0 ? x[i] : 0;
        sums[i % M] += mm.d.v[i];
    }
    array_expect(&mm.d, mm.d.v, 1e-6, "drelu");
    array_expect(&grad, sums, 1e-6, "bgrad");
    set_epilogue(&mm, CUBLASLT_EPILOGUE_RELU);
    succeeds(run(&mm, &one, &zero));
    for (int i = 0; i < M * N; i++)
        mm.d.v[i] = fmax(creal(x[i]), 0);
    array_expect(&mm.d, mm.d.v, 1e-6, "relu");
    end(&mm);
    array_free(&bias);
    array_free(&mask);
    array_free(&grad);
}

static void test_gelu_and_its_gradient(void **state)
{
    enum { AUX_LD = 16 };
    struct matmul mm = make(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUBLAS_OP_T, CUBLAS_OP_N);
    struct array bias = array_new(CUDA_R_32F, M, 14), aux = array_of(CUDA_R_32F, AUX_LD * N, 0);
    int64_t ld = AUX_LD;
    float one = 1, zero = 0;
    number x[M * N];
    set_pointer(&mm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias);
    set_pointer(&mm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux);
    set_op(&mm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld);
    set_epilogue(&mm, CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
    succeeds(run(&mm, &one, &zero));
    loop(&mm, 0, 1, 0);
    memcpy(x, mm.d.v, sizeof x);
    for (int i = 0; i < M * N; i++) {
        aux.v[i % M + i / M * AUX_LD] = x[i] + bias.v[i % M];
        mm.d.v[i] = gelu(creal(x[i] + bias.v[i % M]));
    }
    array_expect(&mm.d, mm.d.v, 1e-6, "gelu");
    array_expect(&aux, aux.v, 1e-6, "gelu's input");
    set_epilogue(&mm, CUBLASLT_EPILOGUE_DGELU);
    succeeds(run(&mm, &one, &zero));
    for (int i = 0; i < M * N; i++)
        mm.d.v[i] = x[i] * gelu_slope(creal(aux.v[i % M + i / M * AUX_LD]));
    array_expect(&mm.d, mm.d.v, 1e-5, "dgelu");
    end(&mm);
    array_free(&bias);
    array_free(&aux);
}

static void test_bias_gradients_of_operands(void **state)
{
    for (int t = 0; t < 4; t++) {
        struct matmul mm = make(CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F,
                                t & 1 ? CUBLAS_OP_T : CUBLAS_OP_N, t & 2 ? CUBLAS_OP_T : CUBLAS_OP_N);
        struct array a = array_of(CUDA_R_64F, M, NAN), b = array_of(CUDA_R_64F, N, NAN);
        double one = 1, zero = 0;
        number sums_a[M] = {0}, sums_b[N] = {0};
        for (int k = 0; k < K; k++) {
            for (int i = 0; i < M; i++)
                sums_a[i] += op_at(mm.a.v, mm.ta == CUBLAS_OP_N ? M : K, mm.ta, i, k);
            for (int j = 0; j < N; j++)
                sums_b[j] += op_at(mm.b.v, mm.tb == CUBLAS_OP_N ? K : N, mm.tb, k, j);
        }
        set_pointer(&mm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &a);
        set_epilogue(&mm, CUBLASLT_EPILOGUE_BGRADA);
        succeeds(run(&mm, &one, &zero));
        set_pointer(&mm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &b);
        set_epilogue(&mm, CUBLASLT_EPILOGUE_BGRADB);
        succeeds(run(&mm, &one, &zero));
        loop(&mm, 0, 1, 0);
        array_expect(&mm.d, mm.d.v, 1e-14, "product");
        array_expect(&a, sums_a, 1e-14, "bgrada");
        array_expect(&b, sums_b, 1e-14, "bgradb");
        end(&mm);
        array_free(&a);
        array_free(&b);
    }
}

/* E4M3 operands with scale factors, and the largest magnitude of the result. */
static void test_fp8_with_scales(void **state)
{
    enum { SIDE = 16 };
    uint8_t bits[SIDE * SIDE];
    float host[SIDE * SIDE], scales[3] = {0.5f, 4, 0}, one = 1, zero = 0;
    CUdeviceptr d;
    cublasLtMatmulDesc_t op;
    int32_t t = CUBLAS_OP_T;
    for (int i = 0; i < SIDE * SIDE; i++)
        bits[i] = i % (SIDE + 1) ? 0 : 0x40; /* 2 on the diagonal */
    ok(cuMemAlloc_v2(&d, 8192));
    ok(cuMemcpyHtoD_v2(d, bits, sizeof bits));
    ok(cuMemcpyHtoD_v2(d + 1024, scales, sizeof scales));
    CUdeviceptr scale_a = d + 1024, scale_b = d + 1028, amax = d + 1032;
    succeeds(cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    succeeds(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof t));
    succeeds(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale_a, sizeof scale_a));
    succeeds(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale_b, sizeof scale_b));
    succeeds(cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, &amax, sizeof amax));
    cublasLtMatrixLayout_t in = layout(CUDA_R_8F_E4M3, SIDE, SIDE, SIDE), out = layout(CUDA_R_32F, SIDE, SIDE, SIDE);
    void *p = (void *)(uintptr_t)d, *result = (void *)(uintptr_t)(d + 4096);
    succeeds(cublasLtMatmul(lt, op, &one, p, in, p, in, &zero, result, out, result, out, NULL, NULL, 0, NULL));
    ok(cuCtxSynchronize());
    ok(cuMemcpyDtoH_v2(host, d + 4096, sizeof host));
    ok(cuMemcpyDtoH_v2(scales, d + 1024, sizeof scales));
    for (int i = 0; i < SIDE * SIDE; i++)
        assert_true(host[i] == (i % (SIDE + 1) ? 0.0f : 8.0f));
    assert_true(scales[2] == 8);
    cublasLtMatmulDescDestroy(op);
    cublasLtMatrixLayoutDestroy(in);
    cublasLtMatrixLayoutDestroy(out);
    ok(cuMemFree_v2(d));
}

/* ---- algorithms and errors -------------------------------------------------------------------------------------- */

static void test_heuristic_returns_one_algorithm(void **state)
{
    struct matmul mm = make(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N);
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t results[ALGOS], checked;
    int count = -1, ids[ALGOS];
    uint64_t workspace = 1 << 20;
    size_t written = 0;
    float one = 1, zero = 0;
    succeeds(cublasLtMatmulPreferenceCreate(&preference));
    succeeds(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                  sizeof workspace));
    fails(CUBLAS_STATUS_INVALID_VALUE,
          cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, 4));
    succeeds(cublasLtMatmulAlgoGetHeuristic(lt, mm.op, mm.a_layout, mm.b_layout, mm.c_layout, mm.d_layout, preference,
                                            ALGOS, results, &count));
    assert_int_equal(count, 1);
    succeeds(results[0].state);
    assert_int_equal(results[0].workspaceSize, 0);
    succeeds(cublasLtMatmulAlgoCheck(lt, mm.op, mm.a_layout, mm.b_layout, mm.c_layout, mm.d_layout, &results[0].algo,
                                     &checked));
    succeeds(cublasLtMatmulAlgoGetIds(lt, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
                                      CUDA_R_32F, ALGOS, ids, &count));
    succeeds(cublasLtMatmulAlgoCapGetAttribute(&results[0].algo, CUBLASLT_ALGO_CAP_EPILOGUE_MASK, NULL, 0, &written));
    assert_int_equal(written, sizeof(uint32_t));
    succeeds(cublasLtMatmul(lt, mm.op, &one, pointer(&mm.a), mm.a_layout, pointer(&mm.b), mm.b_layout, &zero,
                            pointer(&mm.c), mm.c_layout, pointer(&mm.d), mm.d_layout, &results[0].algo, NULL, 0, NULL));
    loop(&mm, 0, 1, 0);
    array_expect(&mm.d, mm.d.v, 1e-6, "with an algorithm");
    memset(&results[0].algo, 0, sizeof results[0].algo);
    fails(CUBLAS_STATUS_INVALID_VALUE,
          cublasLtMatmul(lt, mm.op, &one, pointer(&mm.a), mm.a_layout, pointer(&mm.b), mm.b_layout, &zero,
                         pointer(&mm.c), mm.c_layout, pointer(&mm.d), mm.d_layout, &results[0].algo, NULL, 0, NULL));
    succeeds(cublasLtMatmulPreferenceDestroy(preference));
    end(&mm);
}

static void test_errors(void **state)
{
    struct matmul mm = make(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N);
    float one = 1, zero = 0;
    int32_t order = CUBLASLT_ORDER_COL32, type = CUDA_R_16F, back = CUDA_R_32F, column = CUBLASLT_ORDER_COL;
    uint64_t rows = M + 1;
    fails(CUBLAS_STATUS_INVALID_VALUE, run(&mm, NULL, &zero));
    fails(CUBLAS_STATUS_NOT_INITIALIZED, cublasLtMatmul(NULL, mm.op, &one, NULL, mm.a_layout, NULL, mm.b_layout, &zero,
                                                        NULL, mm.c_layout, NULL, mm.d_layout, NULL, NULL, 0, NULL));
    succeeds(cublasLtMatrixLayoutSetAttribute(mm.a_layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
    fails(CUBLAS_STATUS_NOT_SUPPORTED, run(&mm, &one, &zero));
    succeeds(cublasLtMatrixLayoutSetAttribute(mm.a_layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &column, sizeof column));
    succeeds(cublasLtMatrixLayoutSetAttribute(mm.a_layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type));
    fails(CUBLAS_STATUS_NOT_SUPPORTED, run(&mm, &one, &zero));
    succeeds(cublasLtMatrixLayoutSetAttribute(mm.a_layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &back, sizeof back));
    succeeds(cublasLtMatrixLayoutSetAttribute(mm.d_layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof rows));
    fails(CUBLAS_STATUS_INVALID_VALUE, run(&mm, &one, &zero));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasLtMatrixLayoutSetAttribute(mm.a_layout, 99, &rows, sizeof rows));
    end(&mm);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_transposes),
        cmocka_unit_test(test_strided_batch_and_row_order),
        cmocka_unit_test(test_pointer_modes),
        cmocka_unit_test(test_relu_and_its_gradient),
        cmocka_unit_test(test_gelu_and_its_gradient),
        cmocka_unit_test(test_bias_gradients_of_operands),
        cmocka_unit_test(test_fp8_with_scales),
        cmocka_unit_test(test_heuristic_returns_one_algorithm),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests_name("softgpu_cublaslt", tests, setup, teardown);
}
