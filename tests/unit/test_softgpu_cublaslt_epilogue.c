/* libcublasLt: every epilogue, in batches, with D by columns and by rows, against plain loops. */
#include "tests/unit/blas_kit.h"

enum { M = 9, N = 5, K = 4, MEMBERS = 2, AUX_LD = 16, MASK_LD = 128, EXTRA = 3 };
enum { A_STEP = M * K + EXTRA, B_STEP = K * N + EXTRA, D_STEP = M * N + EXTRA };
enum { BIAS_STEP = M + N, AUX_STEP = AUX_LD * N, MASK_STEP = MASK_LD * N };

static cublasLtHandle_t lt;

static int setup(void **state)
{
    return use_primary_context(state) || cublasLtCreate(&lt) != CUBLAS_STATUS_SUCCESS;
}

static int teardown(void **state)
{
    return cublasLtDestroy(lt) != CUBLAS_STATUS_SUCCESS;
}

/* What an epilogue is made of, said apart from the bits of its number. */
struct steps {
    cublasLtEpilogue_t epilogue;
    bool bias, relu, gelu, aux, drelu, dgelu, bgrad, bgrada, bgradb;
};
static const struct steps all[] = {
    {CUBLASLT_EPILOGUE_DEFAULT, .bias = false},
    {CUBLASLT_EPILOGUE_BIAS, .bias = true},
    {CUBLASLT_EPILOGUE_RELU, .relu = true},
    {CUBLASLT_EPILOGUE_RELU_AUX, .relu = true, .aux = true},
    {CUBLASLT_EPILOGUE_RELU_BIAS, .relu = true, .bias = true},
    {CUBLASLT_EPILOGUE_RELU_AUX_BIAS, .relu = true, .aux = true, .bias = true},
    {CUBLASLT_EPILOGUE_GELU, .gelu = true},
    {CUBLASLT_EPILOGUE_GELU_AUX, .gelu = true, .aux = true},
    {CUBLASLT_EPILOGUE_GELU_BIAS, .gelu = true, .bias = true},
    {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, .gelu = true, .aux = true, .bias = true},
    {CUBLASLT_EPILOGUE_DRELU, .drelu = true},
    {CUBLASLT_EPILOGUE_DRELU_BGRAD, .drelu = true, .bgrad = true},
    {CUBLASLT_EPILOGUE_DGELU, .dgelu = true},
    {CUBLASLT_EPILOGUE_DGELU_BGRAD, .dgelu = true, .bgrad = true},
    {CUBLASLT_EPILOGUE_BGRADA, .bgrada = true},
    {CUBLASLT_EPILOGUE_BGRADB, .bgradb = true},
};

/* One multiplication under test; `wanted_...` is what plain loops make of it. */
struct matmul {
    const struct steps *steps;
    cudaDataType type;
    bool rows; /* D by rows */
    struct array a, b, c, d, bias, aux, mask;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a_layout, b_layout, c_layout, d_layout;
};

static cublasLtMatrixLayout_t layout(cudaDataType type, int rows, int cols, int64_t step, bool by_rows)
{
    cublasLtMatrixLayout_t l;
    int32_t members = MEMBERS, order = by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    succeeds(cublasLtMatrixLayoutCreate(&l, type, (uint64_t)rows, (uint64_t)cols, by_rows ? cols : rows));
    succeeds(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
    succeeds(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &members, sizeof members));
    succeeds(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step));
    return l;
}

static void set(struct matmul *mm, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
    succeeds(cublasLtMatmulDescSetAttribute(mm->op, attribute, value, bytes));
}

static void set_long(struct matmul *mm, cublasLtMatmulDescAttributes_t attribute, int64_t value)
{
    set(mm, attribute, &value, sizeof value);
}

static struct matmul matmul_new(const struct steps *steps, cudaDataType type, bool rows)
{
    struct matmul mm = {.steps = steps, .type = type, .rows = rows};
    uint32_t epilogue = steps->epilogue;
    bool bits = steps->relu || steps->drelu;
    mm.a = array_new(type, A_STEP * MEMBERS, 1);
    mm.b = array_new(type, B_STEP * MEMBERS, 2);
    mm.c = array_new(type, D_STEP * MEMBERS, 3);
    mm.d = array_of(type, D_STEP * MEMBERS, 7);
    mm.bias = array_new(type, BIAS_STEP * MEMBERS, 4);
    mm.aux = array_new(type, AUX_STEP * MEMBERS, 5);
    mm.mask = array_of(CUDA_R_8U, MASK_STEP / 8 * MEMBERS, 0);
    for (int64_t i = 0; i < mm.mask.n; i++)
        mm.mask.v[i] = (double)(i * 37 & 255);
    array_set(&mm.mask);
    mm.a_layout = layout(type, M, K, A_STEP, false);
    mm.b_layout = layout(type, K, N, B_STEP, false);
    mm.c_layout = layout(type, M, N, D_STEP, false);
    mm.d_layout = layout(type, M, N, D_STEP, rows);
    succeeds(cublasLtMatmulDescCreate(&mm.op, type == CUDA_R_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                      type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F));
    set(&mm, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set_long(&mm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (int64_t)mm.bias.d);
    set_long(&mm, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, BIAS_STEP);
    set_long(&mm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, (int64_t)(bits ? mm.mask.d : mm.aux.d));
    set_long(&mm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, bits ? MASK_LD : AUX_LD);
    set_long(&mm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, bits ? MASK_STEP : AUX_STEP);
    return mm;
}

static void matmul_free(struct matmul *mm)
{
    succeeds(cublasLtMatmulDescDestroy(mm->op));
    succeeds(cublasLtMatrixLayoutDestroy(mm->a_layout));
    succeeds(cublasLtMatrixLayoutDestroy(mm->b_layout));
    succeeds(cublasLtMatrixLayoutDestroy(mm->c_layout));
    succeeds(cublasLtMatrixLayoutDestroy(mm->d_layout));
    struct array *arrays[] = {&mm->a, &mm->b, &mm->c, &mm->d, &mm->bias, &mm->aux, &mm->mask};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        array_free(arrays[i]);
}

/* ---- loops ------------------------------------------------------------------------------------------------------ */

static double gelu(double x)
{
    return x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
}

static bool flip_bit(struct matmul *mm, int m, int i, int j, bool write, bool on)
{
    int64_t bit = (int64_t)m * MASK_STEP + i + (int64_t)j * MASK_LD;
    int byte = (int)creal(mm->mask.v[bit / 8]), one = 1 << bit % 8;
    if (write)
        mm->mask.v[bit / 8] = on ? byte | one : byte & ~one;
    return byte & one;
}

/* One element through the epilogue. */
static double finish(struct matmul *mm, int m, int i, int j, double x)
{
    const struct steps *s = mm->steps;
    number *aux = &mm->aux.v[m * AUX_STEP + i + j * AUX_LD];
    if (s->bias)
        x += creal(mm->bias.v[m * BIAS_STEP + i]);
    if (s->aux && s->relu)
        flip_bit(mm, m, i, j, true, x > 0);
    if (s->aux && s->gelu)
        *aux = rounded(mm->type, x);
    if (s->drelu)
        x = flip_bit(mm, m, i, j, false, false) ? x : 0;
    if (s->dgelu)
        x *= gelu_slope(creal(*aux));
    return s->relu ? fmax(x, 0) : s->gelu ? gelu(x) : x;
}

/* What bias gradients want of member m, in place of the bias. */
static void sum_operands(struct matmul *mm, int m)
{
    number *bias = &mm->bias.v[m * BIAS_STEP];
    for (int i = 0; i < M && mm->steps->bgrada; i++) {
        bias[i] = 0;
        for (int k = 0; k < K; k++)
            bias[i] += mm->a.v[m * A_STEP + i + k * M];
    }
    for (int j = 0; j < N && mm->steps->bgradb; j++) {
        bias[j] = 0;
        for (int k = 0; k < K; k++)
            bias[j] += mm->b.v[m * B_STEP + k + j * K];
    }
}

static void loop(struct matmul *mm, double alpha, double beta)
{
    for (int m = 0; m < MEMBERS; m++) {
        number product[M * N];
        double sums[M] = {0};
        memcpy(product, mm->c.v + (size_t)m * D_STEP, sizeof product);
        loop_gemm(CUBLAS_OP_N, CUBLAS_OP_N, M, N, K, alpha, mm->a.v + (size_t)m * A_STEP, M,
                  mm->b.v + (size_t)m * B_STEP, K, beta, product, M);
        for (int j = 0; j < N; j++)
            for (int i = 0; i < M; i++) {
                double x = finish(mm, m, i, j, creal(product[i + j * M]));
                sums[i] += x;
                mm->d.v[m * D_STEP + (mm->rows ? i * N + j : i + j * M)] = rounded(mm->type, x);
            }
        for (int i = 0; i < M && mm->steps->bgrad; i++)
            mm->bias.v[m * BIAS_STEP + i] = sums[i];
        sum_operands(mm, m);
    }
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void check(const struct steps *steps, cudaDataType type, bool rows)
{
    struct matmul mm = matmul_new(steps, type, rows);
    cudaDataType scale = type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
    double tolerance = type == CUDA_R_16F ? 2e-3 : type == CUDA_R_16BF ? 2e-2 : 1e-5;
    succeeds(cublasLtMatmul(lt, mm.op, scalar(scale, 0.5), pointer(&mm.a), mm.a_layout, pointer(&mm.b), mm.b_layout,
                            scalar(scale, -1), pointer(&mm.c), mm.c_layout, pointer(&mm.d), mm.d_layout, NULL, NULL, 0,
                            NULL));
    loop(&mm, 0.5, -1);
    array_expect(&mm.d, mm.d.v, tolerance, "D");
    array_expect(&mm.bias, mm.bias.v, tolerance, "bias");
    array_expect(&mm.aux, mm.aux.v, tolerance, "auxiliary matrix");
    array_expect(&mm.mask, mm.mask.v, 0, "mask");
    array_expect(&mm.c, mm.c.v, 0, "C");
    matmul_free(&mm);
}

static void test_every_epilogue(void **state)
{
    static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_16BF};
    for (size_t e = 0; e < sizeof all / sizeof all[0]; e++)
        for (int t = 0; t < 4; t++)
            for (int rows = 0; rows < 2; rows++)
                check(&all[e], types[t], rows);
}

/* A bias of a type of its own beside half results, and D in place of C. */
static void test_bias_type_and_in_place(void **state)
{
    struct matmul mm = matmul_new(&all[1], CUDA_R_16F, false);
    struct array wide = array_new(CUDA_R_32F, BIAS_STEP * MEMBERS, 4);
    int32_t type = CUDA_R_32F;
    set(&mm, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
    set_long(&mm, CUBLASLT_MATMUL_DESC_BIAS_POINTER, (int64_t)wide.d);
    succeeds(cublasLtMatmul(lt, mm.op, scalar(CUDA_R_32F, 1), pointer(&mm.a), mm.a_layout, pointer(&mm.b), mm.b_layout,
                            scalar(CUDA_R_32F, 2), pointer(&mm.c), mm.c_layout, pointer(&mm.c), mm.c_layout, NULL, NULL,
                            0, NULL));
    memcpy(mm.bias.v, wide.v, (size_t)wide.n * sizeof *wide.v);
    loop(&mm, 1, 2);
    for (int m = 0; m < MEMBERS; m++)
        memcpy(mm.c.v + (size_t)m * D_STEP, mm.d.v + (size_t)m * D_STEP, M * N * sizeof *mm.c.v);
    array_expect(&mm.c, mm.c.v, 0, "in place");
    array_free(&wide);
    matmul_free(&mm);
}

static void test_unknown_epilogues(void **state)
{
    static const uint32_t bad[] = {0, 3, 1024, CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_GELU};
    struct matmul mm = matmul_new(&all[0], CUDA_R_32F, false);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        set(&mm, CUBLASLT_MATMUL_DESC_EPILOGUE, &bad[i], sizeof bad[i]);
        fails(CUBLAS_STATUS_INVALID_VALUE,
              cublasLtMatmul(lt, mm.op, scalar(CUDA_R_32F, 1), pointer(&mm.a), mm.a_layout, pointer(&mm.b), mm.b_layout,
                             scalar(CUDA_R_32F, 0), pointer(&mm.c), mm.c_layout, pointer(&mm.d), mm.d_layout, NULL,
                             NULL, 0, NULL));
    }
    array_expect(&mm.d, mm.d.v, 0, "untouched");
    matmul_free(&mm);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_epilogue),
        cmocka_unit_test(test_bias_type_and_in_place),
        cmocka_unit_test(test_unknown_epilogues),
    };
    return cmocka_run_group_tests_name("softgpu_cublaslt_epilogue", tests, setup, teardown);
}
