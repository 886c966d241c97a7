/* libcublas: LU, inverses, QR and least squares of batches, by what defines them: products give the matrix back. */
#include "tests/unit/blas_kit.h"

enum { N = 5, LD = 7, BATCH = 3, STEP = LD * N, TALL = 7, TALL_LD = 8, TALL_STEP = TALL_LD * N, NRHS = 2 };

/* Batches of well-conditioned matrices: a heavy diagonal, so that they have factors without pivoting too. With
 * `shuffled` the heavy elements are off the diagonal and every step must exchange rows. */
static struct array batch_new(cudaDataType type, bool shuffled)
{
    struct array a = array_new(type, STEP * BATCH, 11);
    for (int b = 0; b < BATCH; b++)
        for (int j = 0; j < N; j++)
            a.v[b * STEP + (shuffled ? (j + 2) % N : j) + j * LD] += factor(type, 9 + j, b);
    array_set(&a);
    return a;
}

static struct array integers(int64_t n)
{
    return array_of(CUDA_R_32I, n, 0);
}

static void *list_of(CUdeviceptr list)
{
    return (void *)(uintptr_t)list;
}

/* L U of member b with its rows put back where the pivots took them from, against the matrix before. */
static void expect_factors(const struct array *a, const number *lu, const number *pivots, int b, double tolerance)
{
    number product[N * N] = {0};
    lu += (size_t)b * STEP;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            for (int k = 0; k <= i && k <= j; k++)
                product[i + j * N] += (k == i ? 1 : lu[i + k * LD]) * lu[k + j * LD];
    for (int k = N - 1; k >= 0 && pivots; k--) {
        int p = (int)creal(pivots[b * N + k]) - 1;
        assert_in_range(p, k, N - 1);
        for (int j = 0; j < N; j++) {
            number t = product[k + j * N];
            product[k + j * N] = product[p + j * N];
            product[p + j * N] = t;
        }
    }
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            expect_number(product[i + j * N], a->v[b * STEP + i + j * LD], tolerance, "L U");
}

/* Partial pivoting leaves nothing in L that is larger than 1, by |re| + |im|. */
static void expect_small_multipliers(const number *lu)
{
    for (int b = 0; b < BATCH; b++)
        for (int j = 0; j < N; j++)
            for (int i = j + 1; i < N; i++) {
                number l = lu[b * STEP + i + j * LD];
                assert_true(fmax(fabs(creal(l)), fabs(cimag(l))) <= 1.0001);
            }
}

/* What lies between the columns is nobody's. */
static void expect_padding(const struct array *a, const number *now, int rows, int ld)
{
    for (int64_t i = 0; i < a->n; i++)
        if (i % ld >= rows)
            assert_true(now[i] == a->v[i]);
}

/* op(A) X - B, which is to be nothing. */
static void expect_solution(cublasOperation_t op, const struct array *a, const struct array *b, const number *x,
                            double tolerance)
{
    for (int i = 0; i < BATCH; i++)
        for (int c = 0; c < NRHS; c++)
            for (int r = 0; r < N; r++) {
                number sum = 0;
                for (int k = 0; k < N; k++)
                    sum += op_at(a->v + (size_t)i * STEP, LD, op, r, k) * x[i * LD * NRHS + k + c * LD];
                expect_number(sum, b->v[i * LD * NRHS + r + c * LD], tolerance, "getrs");
            }
}

static void expect_inverse(const struct array *a, const number *inverse, double tolerance)
{
    for (int b = 0; b < BATCH; b++)
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) {
                number sum = 0;
                for (int k = 0; k < N; k++)
                    sum += a->v[b * STEP + i + k * LD] * inverse[b * STEP + k + j * LD];
                expect_number(sum, i == j, tolerance, "inverse");
            }
}

static void check_lu(cudaDataType type, bool pivoting)
{
    double tolerance = tolerance_of(type) * 20;
    struct array a = batch_new(type, pivoting), info = array_of(CUDA_R_32I, BATCH, 77);
    struct array pivots = integers(N * BATCH), b = array_new(type, LD * NRHS * BATCH, 12), c = array_of(type, a.n, 7);
    CUdeviceptr as = address_list(&a, STEP, BATCH), bs = address_list(&b, LD * NRHS, BATCH);
    CUdeviceptr cs = address_list(&c, STEP, BATCH);
    int *p = pivoting ? pointer(&pivots) : NULL, host_info = -7;
    succeeds(CALL(type, getrfBatched, handle, N, list_of(as), LD, p, pointer(&info), BATCH));
    array_expect(&info, (number[BATCH]){0}, 0, "getrf's info");
    number *lu = array_get(&a), *exchanges = array_get(&pivots);
    for (int i = 0; i < BATCH; i++)
        expect_factors(&a, lu, pivoting ? exchanges : NULL, i, tolerance);
    if (pivoting)
        expect_small_multipliers(lu);
    expect_padding(&a, lu, N, LD);
    for (int o = 0; o < 3; o++) {
        array_set(&b);
        succeeds(
            CALL(type, getrsBatched, handle, ops[o], N, NRHS, list_of(as), LD, p, list_of(bs), LD, &host_info, BATCH));
        assert_int_equal(host_info, 0);
        number *x = array_get(&b);
        expect_solution(ops[o], &a, &b, x, tolerance);
        expect_padding(&b, x, N, LD);
        free(x);
    }
    array_set(&info);
    succeeds(CALL(type, getriBatched, handle, N, list_of(as), LD, p, list_of(cs), LD, pointer(&info), BATCH));
    array_expect(&info, (number[BATCH]){0}, 0, "getri's info");
    number *inverse = array_get(&c);
    expect_inverse(&a, inverse, tolerance);
    expect_padding(&c, inverse, N, LD);
    free(inverse);
    free(lu);
    free(exchanges);
    ok(cuMemFree_v2(as));
    ok(cuMemFree_v2(bs));
    ok(cuMemFree_v2(cs));
    array_free(&a);
    array_free(&b);
    array_free(&c);
    array_free(&pivots);
    array_free(&info);
}

static void check_matinv(cudaDataType type)
{
    struct array a = batch_new(type, true), c = array_of(type, a.n, 7), info = array_of(CUDA_R_32I, BATCH, 77);
    CUdeviceptr as = address_list(&a, STEP, BATCH), cs = address_list(&c, STEP, BATCH);
    succeeds(CALL(type, matinvBatched, handle, N, list_of(as), LD, list_of(cs), LD, pointer(&info), BATCH));
    array_expect(&info, (number[BATCH]){0}, 0, "matinv's info");
    array_expect(&a, a.v, 0, "matinv's input");
    number *inverse = array_get(&c);
    expect_inverse(&a, inverse, tolerance_of(type) * 20);
    free(inverse);
    fails(CUBLAS_STATUS_INVALID_VALUE,
          CALL(type, matinvBatched, handle, 33, list_of(as), 33, list_of(cs), 33, pointer(&info), BATCH));
    ok(cuMemFree_v2(as));
    ok(cuMemFree_v2(cs));
    array_free(&a);
    array_free(&c);
    array_free(&info);
}

/* One singular member among sound ones: its info says where, the others are solved. */
static void check_singular(cudaDataType type)
{
    struct array a = batch_new(type, false), info = array_of(CUDA_R_32I, BATCH, 77), pivots = integers(N * BATCH);
    struct array c = array_of(type, a.n, 7);
    CUdeviceptr as = address_list(&a, STEP, BATCH), cs = address_list(&c, STEP, BATCH);
    for (int i = 0; i < N; i++)
        a.v[STEP + i + 2 * LD] = a.v[STEP + 2 + i * LD] = 0; /* row and column 3 of member 1 */
    const number wanted[BATCH] = {0, 3, 0};
    for (int pivoting = 0; pivoting < 2; pivoting++) {
        int *p = pivoting ? pointer(&pivots) : NULL;
        array_set(&a);
        succeeds(CALL(type, getrfBatched, handle, N, list_of(as), LD, p, pointer(&info), BATCH));
        array_expect(&info, wanted, 0, "singular getrf");
        succeeds(CALL(type, getriBatched, handle, N, list_of(as), LD, p, list_of(cs), LD, pointer(&info), BATCH));
        array_expect(&info, wanted, 0, "singular getri");
        array_set(&a);
        succeeds(CALL(type, matinvBatched, handle, N, list_of(as), LD, list_of(cs), LD, pointer(&info), BATCH));
        array_expect(&info, wanted, 0, "singular matinv");
    }
    ok(cuMemFree_v2(as));
    ok(cuMemFree_v2(cs));
    array_free(&a);
    array_free(&c);
    array_free(&pivots);
    array_free(&info);
}

/* Q's reflectors, I - tau v v^H, applied from the last to the first to [R; 0]: A again. */
static void expect_qr(const struct array *a, const number *qr, const number *tau, double tolerance)
{
    for (int b = 0; b < BATCH; b++) {
        number product[TALL * N] = {0};
        const number *f = qr + (size_t)b * TALL_STEP;
        for (int j = 0; j < N; j++)
            for (int i = 0; i <= j; i++)
                product[i + j * TALL] = f[i + j * TALL_LD];
        for (int k = N - 1; k >= 0; k--)
            for (int j = 0; j < N; j++) {
                number dot = product[k + j * TALL];
                for (int i = k + 1; i < TALL; i++)
                    dot += conj(f[i + k * TALL_LD]) * product[i + j * TALL];
                dot *= tau[b * N + k];
                product[k + j * TALL] -= dot;
                for (int i = k + 1; i < TALL; i++)
                    product[i + j * TALL] -= f[i + k * TALL_LD] * dot;
            }
        for (int j = 0; j < N; j++)
            for (int i = 0; i < TALL; i++)
                expect_number(product[i + j * TALL], a->v[b * TALL_STEP + i + j * TALL_LD], tolerance, "Q R");
    }
}

/* The residual of a least squares solution is orthogonal to all columns of A. */
static void expect_least_squares(const struct array *a, const struct array *c, const number *x, double tolerance)
{
    for (int b = 0; b < BATCH; b++)
        for (int r = 0; r < NRHS; r++) {
            const number *m = a->v + (size_t)b * TALL_STEP, *right = c->v + (size_t)(b * NRHS + r) * TALL_LD;
            number rest[TALL];
            for (int i = 0; i < TALL; i++) {
                rest[i] = right[i];
                for (int k = 0; k < N; k++)
                    rest[i] -= m[i + k * TALL_LD] * x[(b * NRHS + r) * TALL_LD + k];
            }
            for (int k = 0; k < N; k++) {
                number dot = 0;
                for (int i = 0; i < TALL; i++)
                    dot += conj(m[i + k * TALL_LD]) * rest[i];
                expect_number(dot, 0, tolerance, "gels");
            }
        }
}

static void check_qr(cudaDataType type)
{
    double tolerance = tolerance_of(type) * 100;
    struct array a = array_new(type, TALL_STEP * BATCH, 13), tau = array_of(type, N * BATCH, 7);
    struct array c = array_new(type, TALL_LD * NRHS * BATCH, 14), info = array_of(CUDA_R_32I, BATCH, 77);
    CUdeviceptr as = address_list(&a, TALL_STEP, BATCH), taus = address_list(&tau, N, BATCH);
    CUdeviceptr cs = address_list(&c, TALL_LD * NRHS, BATCH);
    int host_info = -7;
    succeeds(CALL(type, geqrfBatched, handle, TALL, N, list_of(as), TALL_LD, list_of(taus), &host_info, BATCH));
    assert_int_equal(host_info, 0);
    number *qr = array_get(&a), *t = array_get(&tau);
    expect_qr(&a, qr, t, tolerance);
    expect_padding(&a, qr, TALL, TALL_LD);
    array_set(&a);
    succeeds(CALL(type, gelsBatched, handle, CUBLAS_OP_N, TALL, N, NRHS, list_of(as), TALL_LD, list_of(cs), TALL_LD,
                  &host_info, pointer(&info), BATCH));
    array_expect(&info, (number[BATCH]){0}, 0, "gels's info");
    number *x = array_get(&c);
    expect_least_squares(&a, &c, x, tolerance);
    /* A column of zeros in the last member: no solution there. */
    for (int i = 0; i < TALL; i++)
        a.v[2 * TALL_STEP + i + TALL_LD] = 0;
    array_set(&a);
    succeeds(CALL(type, gelsBatched, handle, CUBLAS_OP_N, TALL, N, NRHS, list_of(as), TALL_LD, list_of(cs), TALL_LD,
                  &host_info, pointer(&info), BATCH));
    array_expect(&info, (number[BATCH]){0, 0, 2}, 0, "gels without full rank");
    succeeds(CALL(type, gelsBatched, handle, CUBLAS_OP_N, TALL, N, NRHS, list_of(as), TALL_LD, list_of(cs), TALL_LD,
                  &host_info, NULL, BATCH));
    fails(CUBLAS_STATUS_NOT_SUPPORTED, CALL(type, gelsBatched, handle, CUBLAS_OP_T, TALL, N, NRHS, list_of(as), TALL_LD,
                                            list_of(cs), TALL_LD, &host_info, NULL, BATCH));
    fails(CUBLAS_STATUS_NOT_SUPPORTED, CALL(type, gelsBatched, handle, CUBLAS_OP_N, 3, 4, NRHS, list_of(as), TALL_LD,
                                            list_of(cs), TALL_LD, &host_info, NULL, BATCH));
    free(qr);
    free(t);
    free(x);
    ok(cuMemFree_v2(as));
    ok(cuMemFree_v2(cs));
    ok(cuMemFree_v2(taus));
    array_free(&a);
    array_free(&c);
    array_free(&tau);
    array_free(&info);
}

static void test_lu(void **state)
{
    for (int t = 0; t < 4; t++) {
        check_lu(real_and_complex[t], true);
        check_lu(real_and_complex[t], false);
        check_matinv(real_and_complex[t]);
        check_singular(real_and_complex[t]);
    }
}

static void test_qr(void **state)
{
    for (int t = 0; t < 4; t++)
        check_qr(real_and_complex[t]);
}

static void test_arguments(void **state)
{
    cublasHandle_t h = handle;
    struct array info = array_of(CUDA_R_32I, 2, 77);
    int bad = 0, *d = pointer(&info);
    fails(CUBLAS_STATUS_NOT_INITIALIZED, cublasSgetrfBatched(NULL, 2, NULL, 2, NULL, d, 1));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgetrfBatched(h, -1, NULL, 2, NULL, d, 1));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgetrfBatched(h, 3, NULL, 2, NULL, d, 1));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgetrfBatched(h, 2, NULL, 2, NULL, d, -1));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasDgetriBatched(h, 3, NULL, 3, NULL, NULL, 2, d, 1));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasCmatinvBatched(h, 3, NULL, 3, NULL, 2, d, 1));
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasZgetrsBatched(h, CUBLAS_OP_N, 2, 1, NULL, 2, NULL, NULL, 1, &bad, 1));
    assert_int_equal(bad, -8);
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgeqrfBatched(h, 3, 2, NULL, 2, NULL, &bad, 1));
    assert_int_equal(bad, -4);
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgelsBatched(h, 7, 3, 2, 1, NULL, 3, NULL, 3, &bad, NULL, 1));
    assert_int_equal(bad, -1);
    fails(CUBLAS_STATUS_INVALID_VALUE, cublasSgeqrfBatched(h, 3, 2, NULL, 3, NULL, NULL, 1));
    /* Nothing to do: no array is read, and every info says so. */
    succeeds(cublasSgetrfBatched(h, 0, NULL, 1, NULL, d, 2));
    array_expect(&info, (number[2]){0}, 0, "info of empty matrices");
    succeeds(cublasSgetrfBatched(h, 2, NULL, 2, NULL, NULL, 0));
    array_free(&info);
}

/* Pivots that point out of the matrix are a wild access. */
static void test_wild_pivots(void **state)
{
    struct array a = batch_new(CUDA_R_32F, false), b = array_new(CUDA_R_32F, LD, 1), pivots = integers(N);
    CUdeviceptr as = address_list(&a, STEP, 1), bs = address_list(&b, LD, 1);
    int info = 0;
    for (int i = 0; i < N; i++)
        pivots.v[i] = i + 1;
    array_set(&pivots);
    succeeds(
        cublasSgetrsBatched(handle, CUBLAS_OP_N, N, 1, list_of(as), LD, pointer(&pivots), list_of(bs), LD, &info, 1));
    ok(cuCtxSynchronize());
    pivots.v[2] = N + 1;
    array_set(&pivots);
    succeeds(
        cublasSgetrsBatched(handle, CUBLAS_OP_N, N, 1, list_of(as), LD, pointer(&pivots), list_of(bs), LD, &info, 1));
    fails(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    ok(cuDevicePrimaryCtxReset_v2(0)); /* and with it the arrays on the device */
    free(a.v);
    free(b.v);
    free(pivots.v);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lu),
        cmocka_unit_test(test_qr),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_wild_pivots),
    };
    return cmocka_run_group_tests_name("softgpu_cublas_factor", tests, blas_setup, blas_teardown);
}
