/* libcublasLt: cublasLtMatrixTransform between memory orders, types, transposes and batches. */
#include "tests/unit/blas_kit.h"

enum { ROWS = 35, COLS = 33, MEMBERS = 2, ORDERS = 5 };

static cublasLtHandle_t lt;

static int setup(void **state)
{
    return use_primary_context(state) || cublasLtCreate(&lt) != CUBLAS_STATUS_SUCCESS;
}

static int teardown(void **state)
{
    return cublasLtDestroy(lt) != CUBLAS_STATUS_SUCCESS;
}

/* ---- the orders, out of their descriptions in cublasLt.h -------------------------------------------------------- */

/* The least leading dimension. */
static int64_t least_ld(int order, int64_t rows, int64_t cols)
{
    const int64_t all[ORDERS] = {rows, cols, 32 * rows, (rows + 7) / 8 * 256, (rows + 31) / 32 * 1024};
    return all[order];
}

static int64_t elements(int order, int64_t rows, int64_t cols, int64_t ld)
{
    return ld * (order == CUBLASLT_ORDER_COL ? cols : order == CUBLASLT_ORDER_ROW ? rows : (cols + 31) / 32);
}

static int64_t place(int order, int64_t row, int64_t col, int64_t ld)
{
    int64_t tile = col / 32 * ld, r8 = row % 8, r32 = row % 32, c = col % 32;
    switch (order) {
    case CUBLASLT_ORDER_COL:
        return col * ld + row;
    case CUBLASLT_ORDER_ROW:
        return row * ld + col;
    case CUBLASLT_ORDER_COL32:
        return tile + 32 * row + c;
    case CUBLASLT_ORDER_COL4_4R2_8C:
        return tile + row / 8 * 256 + (r8 & 1) * 128 + (c >> 3) * 32 + (c >> 2 & 1) * 16 + (r8 >> 1) * 4 + (c & 3);
    default:
        return tile + row / 32 * 1024 + (((r32 % 8) / 2 * 4 + r32 / 8) * 2 + r32 % 2) * 32 + c;
    }
}

/* ---- one transformation ----------------------------------------------------------------------------------------- */

/* A batch of matrices in some order. */
struct side {
    int order;
    int64_t rows, cols, ld, stride;
    struct array data;
    cublasLtMatrixLayout_t layout;
};

static void set_layout(struct side *s, cublasLtMatrixLayoutAttribute_t attribute, const void *value, size_t bytes)
{
    succeeds(cublasLtMatrixLayoutSetAttribute(s->layout, attribute, value, bytes));
}

static struct side side_new(cudaDataType type, int order, int64_t rows, int64_t cols, unsigned seed)
{
    struct side s = {order, rows, cols, least_ld(order, rows, cols) + (order <= CUBLASLT_ORDER_ROW ? 3 : 0),
                     0,     {0},  NULL};
    int32_t order_value = order, members = MEMBERS;
    s.stride = elements(order, rows, cols, s.ld) + 5;
    s.data = array_new(type, s.stride * MEMBERS, seed);
    succeeds(cublasLtMatrixLayoutCreate(&s.layout, type, (uint64_t)rows, (uint64_t)cols, s.ld));
    set_layout(&s, CUBLASLT_MATRIX_LAYOUT_ORDER, &order_value, sizeof order_value);
    set_layout(&s, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &members, sizeof members);
    set_layout(&s, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &s.stride, sizeof s.stride);
    return s;
}

static void side_free(struct side *s)
{
    succeeds(cublasLtMatrixLayoutDestroy(s->layout));
    array_free(&s->data);
}

static number *element(const struct side *s, int m, int64_t row, int64_t col)
{
    return &s->data.v[m * s->stride + place(s->order, row, col, s->ld)];
}

static number op_element(const struct side *s, cublasOperation_t op, int m, int64_t i, int64_t j)
{
    if (op == CUBLAS_OP_N)
        return *element(s, m, i, j);
    return op == CUBLAS_OP_T ? *element(s, m, j, i) : conj(*element(s, m, j, i));
}

static cublasLtMatrixTransformDesc_t operation(cudaDataType scale, cublasOperation_t ta, cublasOperation_t tb,
                                               cublasLtPointerMode_t mode)
{
    cublasLtMatrixTransformDesc_t op;
    int32_t a = ta, b = tb, m = mode;
    succeeds(cublasLtMatrixTransformDescCreate(&op, scale));
    succeeds(cublasLtMatrixTransformDescSetAttribute(op, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &a, sizeof a));
    succeeds(cublasLtMatrixTransformDescSetAttribute(op, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, &b, sizeof b));
    succeeds(cublasLtMatrixTransformDescSetAttribute(op, CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, &m, sizeof m));
    return op;
}

/* Only elements of matrices: what lies in the corners of tiles is nobody's. */
static void expect(const struct side *c, double tolerance, const char *what)
{
    number *now = array_get(&c->data);
    for (int m = 0; m < MEMBERS; m++)
        for (int64_t j = 0; j < c->cols; j++)
            for (int64_t i = 0; i < c->rows; i++)
                expect_number(now[element(c, m, i, j) - c->data.v], *element(c, m, i, j), tolerance, what);
    free(now);
}

static void test_places_in_tiles(void **state)
{
    static const int known[][3] = {{0, 0, 0},  {0, 3, 3},    {2, 0, 4},   {6, 3, 15},   {0, 4, 16}, {6, 7, 31},
                                   {0, 8, 32}, {6, 31, 127}, {1, 0, 128}, {7, 31, 255}, {8, 0, 256}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(place(CUBLASLT_ORDER_COL4_4R2_8C, known[i][0], known[i][1], 1024), known[i][2]);
    for (int order = 0; order < ORDERS; order++) {
        /* No two elements share a place. */
        int64_t ld = least_ld(order, ROWS, COLS), n = elements(order, ROWS, COLS, ld);
        char *taken = calloc((size_t)n, 1);
        assert_non_null(taken);
        for (int64_t j = 0; j < COLS; j++)
            for (int64_t i = 0; i < ROWS; i++) {
                int64_t at_place = place(order, i, j, ld);
                assert_in_range(at_place, 0, n - 1);
                assert_false(taken[at_place]);
                taken[at_place] = 1;
            }
        free(taken);
    }
}

static void test_every_order_to_every_other(void **state)
{
    cublasLtMatrixTransformDesc_t op = operation(CUDA_R_32I, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_POINTER_MODE_HOST);
    int32_t one = 1, zero = 0;
    for (int from = 0; from < ORDERS; from++)
        for (int to = 0; to < ORDERS; to++) {
            struct side a = side_new(CUDA_R_8I, from, ROWS, COLS, 1), c = side_new(CUDA_R_8I, to, ROWS, COLS, 2);
            succeeds(cublasLtMatrixTransform(lt, op, &one, pointer(&a.data), a.layout, &zero, NULL, NULL,
                                             pointer(&c.data), c.layout, NULL));
            for (int m = 0; m < MEMBERS; m++)
                for (int64_t j = 0; j < COLS; j++)
                    for (int64_t i = 0; i < ROWS; i++)
                        *element(&c, m, i, j) = *element(&a, m, i, j);
            expect(&c, 0, "order");
            side_free(&a);
            side_free(&c);
        }
    succeeds(cublasLtMatrixTransformDescDestroy(op));
}

/* What lies beside the matrix in its columns stays. */
static void test_padding_stays(void **state)
{
    cublasLtMatrixTransformDesc_t op = operation(CUDA_R_32F, CUBLAS_OP_T, CUBLAS_OP_N, CUBLASLT_POINTER_MODE_HOST);
    struct side a = side_new(CUDA_R_32F, CUBLASLT_ORDER_COL, COLS, ROWS, 1);
    struct side c = side_new(CUDA_R_32F, CUBLASLT_ORDER_COL, ROWS, COLS, 2);
    float two = 2;
    succeeds(cublasLtMatrixTransform(lt, op, &two, pointer(&a.data), a.layout, NULL, NULL, NULL, pointer(&c.data),
                                     c.layout, NULL));
    for (int m = 0; m < MEMBERS; m++)
        for (int64_t j = 0; j < COLS; j++)
            for (int64_t i = 0; i < ROWS; i++)
                *element(&c, m, i, j) = 2 * *element(&a, m, j, i);
    array_expect(&c.data, c.data.v, 0, "padding");
    side_free(&a);
    side_free(&c);
    succeeds(cublasLtMatrixTransformDescDestroy(op));
}

static void check_sum(cudaDataType ab, cudaDataType out, cudaDataType scale, cublasOperation_t ta, cublasOperation_t tb,
                      bool on_device)
{
    bool ap = ta == CUBLAS_OP_N, bp = tb == CUBLAS_OP_N;
    struct side a = side_new(ab, CUBLASLT_ORDER_ROW, ap ? ROWS : COLS, ap ? COLS : ROWS, 1);
    struct side b = side_new(ab, CUBLASLT_ORDER_COL32, bp ? ROWS : COLS, bp ? COLS : ROWS, 2);
    struct side c = side_new(out, CUBLASLT_ORDER_COL, ROWS, COLS, 3);
    cublasLtMatrixTransformDesc_t op =
        operation(scale, ta, tb, on_device ? CUBLASLT_POINTER_MODE_DEVICE : CUBLASLT_POINTER_MODE_HOST);
    number alpha = factor(scale, 1.5, 1), beta = factor(scale, -0.25, 2);
    if (scale == CUDA_R_32I) {
        alpha = 3;
        beta = -2;
    }
    struct array scalars = array_of(scale, 2, alpha);
    scalars.v[1] = beta;
    array_set(&scalars);
    const char *on = pointer(&scalars);
    succeeds(cublasLtMatrixTransform(lt, op, on_device ? on : scalar(scale, alpha), pointer(&a.data), a.layout,
                                     on_device ? on + type_bytes(scale) : scalar(scale, beta), pointer(&b.data),
                                     b.layout, pointer(&c.data), c.layout, NULL));
    for (int m = 0; m < MEMBERS; m++)
        for (int64_t j = 0; j < COLS; j++)
            for (int64_t i = 0; i < ROWS; i++) {
                number sum = alpha * op_element(&a, ta, m, i, j) + beta * op_element(&b, tb, m, i, j);
                if (out == CUDA_R_8I)
                    sum = fmax(-128, fmin(127, nearbyint(creal(sum))));
                else if (out != CUDA_R_32I)
                    sum = rounded(out, rounded(scale, sum));
                *element(&c, m, i, j) = sum;
            }
    expect(&c, 0, "sum");
    array_free(&scalars);
    side_free(&a);
    side_free(&b);
    side_free(&c);
    succeeds(cublasLtMatrixTransformDescDestroy(op));
}

static void test_sums_in_all_types(void **state)
{
    static const cudaDataType types[][3] = {
        {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},  {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
        {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F},  {CUDA_R_16F, CUDA_R_16F, CUDA_R_16F},
        {CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F}, {CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F},
        {CUDA_R_8I, CUDA_R_8I, CUDA_R_32F},    {CUDA_R_8I, CUDA_R_32F, CUDA_R_32F},
        {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I},   {CUDA_R_32I, CUDA_R_8I, CUDA_R_32I},
        {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F},  {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F},
    };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int o = 0; o < 9; o++)
            check_sum(types[t][0], types[t][1], types[t][2], ops[o / 3], ops[o % 3], o % 2);
}

/* What is scaled by zero is not read, even where it is NaN or no memory. */
static void test_zero_scale_reads_nothing(void **state)
{
    cublasLtMatrixTransformDesc_t op = operation(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_POINTER_MODE_HOST);
    struct side a = side_new(CUDA_R_32F, CUBLASLT_ORDER_COL, ROWS, COLS, 1);
    struct side c = side_new(CUDA_R_32F, CUBLASLT_ORDER_COL, ROWS, COLS, 2);
    float one = 1, zero = 0;
    succeeds(cublasLtMatrixTransform(lt, op, &one, pointer(&a.data), a.layout, &zero, (void *)0x123456000, a.layout,
                                     pointer(&c.data), c.layout, NULL));
    for (int m = 0; m < MEMBERS; m++)
        for (int64_t j = 0; j < COLS; j++)
            for (int64_t i = 0; i < ROWS; i++)
                *element(&c, m, i, j) = *element(&a, m, i, j);
    expect(&c, 0, "beta of zero");
    succeeds(cublasLtMatrixTransform(lt, op, &zero, pointer(&a.data), a.layout, &one, pointer(&a.data), a.layout,
                                     pointer(&c.data), c.layout, NULL));
    expect(&c, 0, "alpha of zero");
    succeeds(cublasLtMatrixTransform(lt, op, NULL, NULL, NULL, NULL, NULL, NULL, pointer(&c.data), c.layout, NULL));
    for (int m = 0; m < MEMBERS; m++)
        for (int64_t j = 0; j < COLS; j++)
            for (int64_t i = 0; i < ROWS; i++)
                *element(&c, m, i, j) = 0;
    expect(&c, 0, "no input");
    side_free(&a);
    side_free(&c);
    succeeds(cublasLtMatrixTransformDescDestroy(op));
}

static void test_arrays_of_addresses(void **state)
{
    cublasLtMatrixTransformDesc_t op = operation(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_POINTER_MODE_HOST);
    struct side a = side_new(CUDA_R_32F, CUBLASLT_ORDER_COL, ROWS, COLS, 1);
    struct side c = side_new(CUDA_R_32F, CUBLASLT_ORDER_COL32, ROWS, COLS, 2);
    CUdeviceptr as = address_list(&a.data, a.stride, MEMBERS), cs = address_list(&c.data, c.stride, MEMBERS);
    int32_t mode = CUBLASLT_BATCH_MODE_POINTER_ARRAY;
    float one = 1;
    set_layout(&a, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, &mode, sizeof mode);
    set_layout(&c, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, &mode, sizeof mode);
    succeeds(cublasLtMatrixTransform(lt, op, &one, (void *)(uintptr_t)as, a.layout, NULL, NULL, NULL,
                                     (void *)(uintptr_t)cs, c.layout, NULL));
    for (int m = 0; m < MEMBERS; m++)
        for (int64_t j = 0; j < COLS; j++)
            for (int64_t i = 0; i < ROWS; i++)
                *element(&c, m, i, j) = *element(&a, m, i, j);
    expect(&c, 0, "arrays of addresses");
    ok(cuMemFree_v2(as));
    ok(cuMemFree_v2(cs));
    side_free(&a);
    side_free(&c);
    succeeds(cublasLtMatrixTransformDescDestroy(op));
}

static void test_arguments(void **state)
{
    cublasLtMatrixTransformDesc_t op = operation(CUDA_R_32F, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_POINTER_MODE_HOST);
    struct side a = side_new(CUDA_R_32F, CUBLASLT_ORDER_COL, ROWS, COLS, 1);
    struct side c = side_new(CUDA_R_32F, CUBLASLT_ORDER_COL, ROWS, COLS, 2);
    void *pa = pointer(&a.data), *pc = pointer(&c.data);
    float one = 1;
    int32_t value;
    int64_t ld = ROWS - 1, good = c.ld;
    const cublasStatus_t invalid = CUBLAS_STATUS_INVALID_VALUE;
    fails(CUBLAS_STATUS_NOT_INITIALIZED,
          cublasLtMatrixTransform(NULL, op, &one, pa, a.layout, NULL, NULL, NULL, pc, c.layout, NULL));
    fails(invalid, cublasLtMatrixTransform(lt, NULL, &one, pa, a.layout, NULL, NULL, NULL, pc, c.layout, NULL));
    fails(invalid, cublasLtMatrixTransform(lt, op, &one, pa, NULL, NULL, NULL, NULL, pc, c.layout, NULL));
    fails(invalid, cublasLtMatrixTransform(lt, op, NULL, pa, a.layout, NULL, NULL, NULL, pc, c.layout, NULL));
    fails(invalid, cublasLtMatrixTransform(lt, op, &one, pa, a.layout, NULL, pa, a.layout, pc, c.layout, NULL));
    fails(invalid, cublasLtMatrixTransform(lt, op, &one, pa, a.layout, NULL, NULL, NULL, NULL, c.layout, NULL));
    set_layout(&c, CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld);
    fails(invalid, cublasLtMatrixTransform(lt, op, &one, pa, a.layout, NULL, NULL, NULL, pc, c.layout, NULL));
    set_layout(&c, CUBLASLT_MATRIX_LAYOUT_LD, &good, sizeof good);
    value = MEMBERS + 1;
    set_layout(&a, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &value, sizeof value);
    fails(invalid, cublasLtMatrixTransform(lt, op, &one, pa, a.layout, NULL, NULL, NULL, pc, c.layout, NULL));
    value = MEMBERS;
    set_layout(&a, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &value, sizeof value);
    value = CUBLAS_OP_T; /* of other sizes than C */
    succeeds(cublasLtMatrixTransformDescSetAttribute(op, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &value, sizeof value));
    fails(invalid, cublasLtMatrixTransform(lt, op, &one, pa, a.layout, NULL, NULL, NULL, pc, c.layout, NULL));
    value = CUBLAS_OP_N;
    succeeds(cublasLtMatrixTransformDescSetAttribute(op, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &value, sizeof value));
    value = CUBLASLT_POINTER_MODE_DEVICE_VECTOR;
    succeeds(
        cublasLtMatrixTransformDescSetAttribute(op, CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, &value, sizeof value));
    fails(invalid, cublasLtMatrixTransform(lt, op, &one, pa, a.layout, NULL, NULL, NULL, pc, c.layout, NULL));
    value = CUBLASLT_POINTER_MODE_HOST;
    succeeds(
        cublasLtMatrixTransformDescSetAttribute(op, CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, &value, sizeof value));
    succeeds(cublasLtMatrixTransform(lt, op, &one, pa, a.layout, NULL, NULL, NULL, pc, c.layout, NULL));
    value = CUDA_C_32F; /* a complex sum of real numbers */
    succeeds(
        cublasLtMatrixTransformDescSetAttribute(op, CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, &value, sizeof value));
    fails(CUBLAS_STATUS_NOT_SUPPORTED,
          cublasLtMatrixTransform(lt, op, &one, pa, a.layout, NULL, NULL, NULL, pc, c.layout, NULL));
    side_free(&a);
    side_free(&c);
    succeeds(cublasLtMatrixTransformDescDestroy(op));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_in_tiles),
        cmocka_unit_test(test_every_order_to_every_other),
        cmocka_unit_test(test_padding_stays),
        cmocka_unit_test(test_sums_in_all_types),
        cmocka_unit_test(test_zero_scale_reads_nothing),
        cmocka_unit_test(test_arrays_of_addresses),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests_name("softgpu_cublaslt_transform", tests, setup, teardown);
}
