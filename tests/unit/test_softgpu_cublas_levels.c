/* libcublas: the routines of levels 1 to 3 in all types against plain loops. */
#include "tests/unit/blas_kit.h"

static const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
static const cublasFillMode_t fills[] = {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER};

static number factor(cudaDataType type, double re, double im)
{
    return type_is_complex(type) ? CMPLX(re, im) : re;
}

/* Index of element i of a vector of n with increment inc. */
static int at(int i, int n, int inc)
{
    return inc < 0 ? (n - 1 - i) * -inc : i * inc;
}

static number *copy_of(const struct array *a)
{
    number *v = calloc((size_t)a->n + 1, sizeof *v);
    assert_non_null(v);
    memcpy(v, a->v, (size_t)a->n * sizeof *v);
    return v;
}

/* ---- level 1 ---------------------------------------------------------------------------------------------------- */

static void check_updates(cudaDataType type, int n, int incx, int incy)
{
    int64_t nx = (int64_t)n * abs(incx) + 1, ny = (int64_t)n * abs(incy) + 1;
    struct array x = array_new(type, nx, 1), y = array_new(type, ny, 2);
    number *wx = copy_of(&x), *wy = copy_of(&y), alpha = factor(type, 1.5, -0.5);
    succeeds(CALL(type, axpy_v2, handle, n, scalar(type, alpha), pointer(&x), incx, pointer(&y), incy));
    for (int i = 0; i < n; i++)
        wy[at(i, n, incy)] += alpha * wx[at(i, n, incx)];
    array_expect(&y, wy, tolerance_of(type), "axpy");
    succeeds(CALL(type, swap_v2, handle, n, pointer(&x), incx, pointer(&y), incy));
    for (int i = 0; i < n; i++) {
        number t = wx[at(i, n, incx)];
        wx[at(i, n, incx)] = wy[at(i, n, incy)];
        wy[at(i, n, incy)] = t;
    }
    array_expect(&x, wx, tolerance_of(type), "swap");
    array_expect(&y, wy, tolerance_of(type), "swap");
    if (incx > 0) {
        succeeds(CALL(type, scal_v2, handle, n, scalar(type, alpha), pointer(&x), incx));
        for (int i = 0; i < n; i++)
            wx[at(i, n, incx)] *= alpha;
        array_expect(&x, wx, tolerance_of(type), "scal");
    }
    succeeds(CALL(type, copy_v2, handle, n, pointer(&x), incx, pointer(&y), incy));
    for (int i = 0; i < n; i++)
        wy[at(i, n, incy)] = wx[at(i, n, incx)];
    array_expect(&y, wy, tolerance_of(type), "copy");
    free(wx);
    free(wy);
    array_free(&x);
    array_free(&y);
}

static void test_updates(void **state)
{
    for (int t = 0; t < 4; t++) {
        check_updates(real_and_complex[t], 0, 1, 1);
        check_updates(real_and_complex[t], 1, 1, 2);
        check_updates(real_and_complex[t], 17, 1, 1);
        check_updates(real_and_complex[t], 17, 2, -3);
        check_updates(real_and_complex[t], 9, -1, 1);
    }
}

static void expect_number(number got, number wanted, double tolerance)
{
    if (cabs(got - wanted) > tolerance * fmax(1, cabs(wanted)))
        fail_msg("%g%+gi, not %g%+gi", creal(got), cimag(got), creal(wanted), cimag(wanted));
}

static cublasStatus_t norm(cudaDataType type, int n, const void *x, int inc, void *result)
{
    switch ((int)type) {
    case CUDA_R_32F:
        return cublasSnrm2_v2(handle, n, x, inc, result);
    case CUDA_R_64F:
        return cublasDnrm2_v2(handle, n, x, inc, result);
    case CUDA_C_32F:
        return cublasScnrm2_v2(handle, n, x, inc, result);
    default:
        return cublasDznrm2_v2(handle, n, x, inc, result);
    }
}

static cublasStatus_t asum(cudaDataType type, int n, const void *x, int inc, void *result)
{
    switch ((int)type) {
    case CUDA_R_32F:
        return cublasSasum_v2(handle, n, x, inc, result);
    case CUDA_R_64F:
        return cublasDasum_v2(handle, n, x, inc, result);
    case CUDA_C_32F:
        return cublasScasum_v2(handle, n, x, inc, result);
    default:
        return cublasDzasum_v2(handle, n, x, inc, result);
    }
}

static cublasStatus_t extreme(cudaDataType type, bool least, int n, const void *x, int inc, int *result)
{
    switch ((int)type) {
    case CUDA_R_32F:
        return (least ? cublasIsamin_v2 : cublasIsamax_v2)(handle, n, x, inc, result);
    case CUDA_R_64F:
        return (least ? cublasIdamin_v2 : cublasIdamax_v2)(handle, n, x, inc, result);
    case CUDA_C_32F:
        return (least ? cublasIcamin_v2 : cublasIcamax_v2)(handle, n, x, inc, result);
    default:
        return (least ? cublasIzamin_v2 : cublasIzamax_v2)(handle, n, x, inc, result);
    }
}

static void test_reductions(void **state)
{
    enum { N = 11, INC = 2 };
    for (int t = 0; t < 4; t++) {
        cudaDataType type = real_and_complex[t];
        cudaDataType real = type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
        struct array x = array_new(type, N * INC, 3), y = array_new(type, N, 4);
        double squares = 0, sum = 0, high = -1, low = 1e9;
        int most = 0, least = 0, index = -1;
        number dot = 0, dotc = 0;
        char result[16];
        for (int i = 0; i < N; i++) {
            number v = x.v[i * INC];
            double size = fabs(creal(v)) + fabs(cimag(v));
            squares += creal(v * conj(v));
            sum += size;
            most = size > high ? i + 1 : most;
            high = fmax(high, size);
            least = size < low ? i + 1 : least;
            low = fmin(low, size);
            dot += v * y.v[i];
            dotc += conj(v) * y.v[i];
        }
        succeeds(norm(type, N, pointer(&x), INC, result));
        expect_number(get(result, real, 0), sqrt(squares), 1e-6);
        succeeds(asum(type, N, pointer(&x), INC, result));
        expect_number(get(result, real, 0), sum, 1e-6);
        succeeds(extreme(type, false, N, pointer(&x), INC, &index));
        assert_int_equal(index, most);
        succeeds(extreme(type, true, N, pointer(&x), INC, &index));
        assert_int_equal(index, least);
        succeeds(extreme(type, true, 0, pointer(&x), INC, &index));
        assert_int_equal(index, 0);
        if (type_is_complex(type)) {
            succeeds(CALL_COMPLEX(type, dotu_v2, handle, N, pointer(&x), INC, pointer(&y), 1, (void *)result));
            expect_number(get(result, type, 0), dot, 1e-6);
            succeeds(CALL_COMPLEX(type, dotc_v2, handle, N, pointer(&x), INC, pointer(&y), 1, (void *)result));
            expect_number(get(result, type, 0), dotc, 1e-6);
        } else {
            succeeds(CALL_REAL(type, dot_v2, handle, N, pointer(&x), INC, pointer(&y), 1, (void *)result));
            expect_number(get(result, type, 0), dot, 1e-6);
        }
        array_free(&x);
        array_free(&y);
    }
}

static void test_rotations(void **state)
{
    struct array x = array_new(CUDA_R_64F, 5, 5), y = array_new(CUDA_R_64F, 5, 6);
    number wx[5], wy[5];
    double a = 3, b = 4, c = 0, s = 0, param[5] = {-1, 2, 0.5, -0.25, 4};
    succeeds(cublasDrotg_v2(handle, &a, &b, &c, &s));
    assert_true(fabs(fabs(a) - 5) < 1e-12 && fabs(c * 3 + s * 4 - a) < 1e-12);
    succeeds(cublasDrot_v2(handle, 5, pointer(&x), 1, pointer(&y), 1, &c, &s));
    for (int i = 0; i < 5; i++) {
        wx[i] = c * x.v[i] + s * y.v[i];
        wy[i] = c * y.v[i] - s * x.v[i];
    }
    array_expect(&x, wx, 1e-14, "rot");
    array_expect(&y, wy, 1e-14, "rot");
    succeeds(
        cublasRotmEx(handle, 5, pointer(&x), CUDA_R_64F, 1, pointer(&y), CUDA_R_64F, 1, param, CUDA_R_64F, CUDA_R_64F));
    fails(CUBLAS_STATUS_NOT_SUPPORTED, cublasRotmEx(handle, 5, pointer(&x), CUDA_R_16F, 1, pointer(&y), CUDA_R_16F, 1,
                                                    param, CUDA_R_16F, CUDA_R_32F));
    for (int round = 0; round < 10; round++) {
        int i = round % 5;
        number u = wx[i], v = wy[i];
        wx[i] = param[1] * u + param[3] * v;
        wy[i] = param[2] * u + param[4] * v;
    }
    succeeds(cublasDrotm_v2(handle, 5, pointer(&x), 1, pointer(&y), 1, param));
    array_expect(&x, wx, 1e-14, "rotm");
    array_expect(&y, wy, 1e-14, "rotm");
    array_free(&x);
    array_free(&y);
}

static void test_level1_ex_in_half(void **state)
{
    enum { N = 6 };
    struct array x = array_new(CUDA_R_16F, N, 7), y = array_new(CUDA_R_16F, N, 8);
    float alpha = 2, result = 0;
    number wanted[N], dot = 0;
    for (int i = 0; i < N; i++) {
        wanted[i] = 2 * x.v[i] + y.v[i];
        dot += x.v[i] * y.v[i];
    }
    succeeds(cublasDotEx(handle, N, pointer(&x), CUDA_R_16F, 1, pointer(&y), CUDA_R_16F, 1, &result, CUDA_R_32F,
                         CUDA_R_32F));
    assert_true((double)result == creal(dot));
    succeeds(cublasAxpyEx(handle, N, &alpha, CUDA_R_32F, pointer(&x), CUDA_R_16F, 1, pointer(&y), CUDA_R_16F, 1,
                          CUDA_R_32F));
    array_expect(&y, wanted, 0, "AxpyEx");
    succeeds(cublasScalEx(handle, N, &alpha, CUDA_R_32F, pointer(&x), CUDA_R_16F, 1, CUDA_R_32F));
    for (int i = 0; i < N; i++)
        wanted[i] = 2 * x.v[i];
    array_expect(&x, wanted, 0, "ScalEx");
    array_free(&x);
    array_free(&y);
}

/* ---- level 2 ---------------------------------------------------------------------------------------------------- */

/* y = alpha op(A) x + beta y with a full A of m by n. */
static void loop_gemv(cublasOperation_t op, int m, int n, number alpha, const number *a, int lda, const number *x,
                      int incx, number beta, number *y, int incy)
{
    int rows = op == CUBLAS_OP_N ? m : n, cols = op == CUBLAS_OP_N ? n : m;
    for (int i = 0; i < rows; i++) {
        number sum = 0, *to = &y[at(i, rows, incy)];
        for (int j = 0; j < cols; j++)
            sum += op_at(a, lda, op, i, j) * x[at(j, cols, incx)];
        *to = alpha * sum + (beta == 0 ? 0 : beta * *to);
    }
}

static void check_gemv(cudaDataType type, cublasOperation_t op, int m, int n, int incx, int incy, number beta)
{
    int rows = op == CUBLAS_OP_N ? m : n, cols = op == CUBLAS_OP_N ? n : m, lda = m + 1;
    struct array a = array_new(type, (int64_t)lda * n, 1), x = array_new(type, (int64_t)cols * abs(incx), 2);
    int64_t ny = (int64_t)rows * abs(incy);
    struct array y = beta == 0 ? array_of(type, ny, NAN) : array_new(type, ny, 3);
    number alpha = factor(type, -1, 0.5);
    succeeds(CALL(type, gemv_v2, handle, op, m, n, scalar(type, alpha), pointer(&a), lda, pointer(&x), incx,
                  scalar(type, beta), pointer(&y), incy));
    if (m && n)
        loop_gemv(op, m, n, alpha, a.v, lda, x.v, incx, beta, y.v, incy);
    array_expect(&y, y.v, tolerance_of(type), "gemv");
    array_free(&a);
    array_free(&x);
    array_free(&y);
}

static void test_gemv(void **state)
{
    for (int t = 0; t < 4; t++)
        for (int o = 0; o < 3; o++) {
            check_gemv(real_and_complex[t], ops[o], 0, 3, 1, 1, 2);
            check_gemv(real_and_complex[t], ops[o], 1, 1, 1, 1, 0);
            check_gemv(real_and_complex[t], ops[o], 5, 7, 1, 1, 0);
            check_gemv(real_and_complex[t], ops[o], 5, 7, 2, -2, 2);
            check_gemv(real_and_complex[t], ops[o], 9, 4, -1, 1, 1);
        }
}

static void check_gbmv(cudaDataType type, cublasOperation_t op)
{
    enum { M = 6, N = 5, KL = 2, KU = 1, LDA = KL + KU + 2 };
    struct array a = array_new(type, LDA * N, 1), x = array_new(type, M, 2), y = array_of(type, M, NAN);
    number full[M * N] = {0};
    for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++)
            if (i - j <= KL && j - i <= KU)
                full[i + j * M] = a.v[KU + i - j + j * LDA];
    succeeds(CALL(type, gbmv_v2, handle, op, M, N, KL, KU, scalar(type, 2), pointer(&a), LDA, pointer(&x), 1,
                  scalar(type, 0), pointer(&y), 1));
    loop_gemv(op, M, N, 2, full, M, x.v, 1, 0, y.v, 1);
    array_expect(&y, y.v, tolerance_of(type), "gbmv");
    array_free(&a);
    array_free(&x);
    array_free(&y);
}

/* A packed triangle out of a matrix. */
static void pack(number *to, const number *from, int n, int ld, cublasFillMode_t uplo)
{
    for (int j = 0; j < n; j++)
        for (int i = uplo == CUBLAS_FILL_MODE_UPPER ? 0 : j; i < (uplo == CUBLAS_FILL_MODE_UPPER ? j + 1 : n); i++)
            *to++ = from[i + j * ld];
}

static void unpack(number *to, const number *from, int n, int ld, cublasFillMode_t uplo)
{
    for (int j = 0; j < n; j++)
        for (int i = uplo == CUBLAS_FILL_MODE_UPPER ? 0 : j; i < (uplo == CUBLAS_FILL_MODE_UPPER ? j + 1 : n); i++)
            to[i + j * ld] = *from++;
}

/* The bands within k of the diagonal; what is outside becomes zero in `full`. */
static void band(number *to, int ld, number *full, int n, int k, cublasFillMode_t uplo)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            bool stored = uplo == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j;
            if (abs(i - j) > k)
                full[i + j * n] = 0;
            else if (stored)
                to[(uplo == CUBLAS_FILL_MODE_UPPER ? k + i - j : i - j) + j * ld] = full[i + j * n];
        }
}

enum { ORDER = 6, LD = ORDER + 1, BAND = 2, BAND_LD = BAND + 2, PACKED = ORDER * (ORDER + 1) / 2 };

/* symv, hemv and their band and packed forms. */
static void check_symmetric(cudaDataType type, cublasFillMode_t uplo, bool hermitian)
{
    struct array a = array_new(type, LD * ORDER, 1), x = array_new(type, ORDER, 2), y = array_of(type, ORDER, NAN);
    struct array p = array_of(type, PACKED, 0), b = array_of(type, BAND_LD * ORDER, 0);
    number full[ORDER * ORDER], alpha = factor(type, 2, 1);
    const void *zero = scalar(type, 0), *scale = scalar(type, alpha);
    full_symmetric(full, a.v, ORDER, LD, uplo, hermitian);
    loop_gemv(CUBLAS_OP_N, ORDER, ORDER, alpha, full, ORDER, x.v, 1, 0, y.v, 1);
    if (hermitian)
        succeeds(CALL_COMPLEX(type, hemv_v2, handle, uplo, ORDER, scale, pointer(&a), LD, pointer(&x), 1, zero,
                              pointer(&y), 1));
    else
        succeeds(
            CALL(type, symv_v2, handle, uplo, ORDER, scale, pointer(&a), LD, pointer(&x), 1, zero, pointer(&y), 1));
    array_expect(&y, y.v, tolerance_of(type), "symv");
    if (hermitian == type_is_complex(type)) {
        pack(p.v, a.v, ORDER, LD, uplo);
        array_set(&p);
        ok(cuMemsetD8_v2(y.d, 0xff, ORDER * type_bytes(type)));
        if (hermitian)
            succeeds(CALL_COMPLEX(type, hpmv_v2, handle, uplo, ORDER, scale, pointer(&p), pointer(&x), 1, zero,
                                  pointer(&y), 1));
        else
            succeeds(CALL_REAL(type, spmv_v2, handle, uplo, ORDER, scale, pointer(&p), pointer(&x), 1, zero,
                               pointer(&y), 1));
        array_expect(&y, y.v, tolerance_of(type), "spmv");
        band(b.v, BAND_LD, full, ORDER, BAND, uplo);
        array_set(&b);
        loop_gemv(CUBLAS_OP_N, ORDER, ORDER, alpha, full, ORDER, x.v, 1, 0, y.v, 1);
        if (hermitian)
            succeeds(CALL_COMPLEX(type, hbmv_v2, handle, uplo, ORDER, BAND, scale, pointer(&b), BAND_LD, pointer(&x), 1,
                                  zero, pointer(&y), 1));
        else
            succeeds(CALL_REAL(type, sbmv_v2, handle, uplo, ORDER, BAND, scale, pointer(&b), BAND_LD, pointer(&x), 1,
                               zero, pointer(&y), 1));
        array_expect(&y, y.v, tolerance_of(type), "sbmv");
    }
    array_free(&a);
    array_free(&x);
    array_free(&y);
    array_free(&p);
    array_free(&b);
}

/* Multiplies, and solves what was multiplied: x comes back. */
static void check_triangular(cudaDataType type, cublasFillMode_t uplo, cublasOperation_t op, cublasDiagType_t diag)
{
    struct array a = array_new(type, LD * ORDER, 1), x = array_new(type, ORDER, 2);
    struct array p = array_of(type, PACKED, 0), b = array_of(type, BAND_LD * ORDER, 0);
    number full[ORDER * ORDER], banded[ORDER * ORDER], wanted[ORDER];
    for (int i = 0; i < ORDER; i++)
        a.v[i + i * LD] = 8; /* well conditioned */
    array_set(&a);
    full_triangle(full, a.v, ORDER, LD, uplo, diag);
    loop_gemv(op, ORDER, ORDER, 1, full, ORDER, x.v, 1, 0, wanted, 1);
    succeeds(CALL(type, trmv_v2, handle, uplo, op, diag, ORDER, pointer(&a), LD, pointer(&x), 1));
    array_expect(&x, wanted, tolerance_of(type), "trmv");
    succeeds(CALL(type, trsv_v2, handle, uplo, op, diag, ORDER, pointer(&a), LD, pointer(&x), 1));
    array_expect(&x, x.v, 1e-3, "trsv");
    pack(p.v, a.v, ORDER, LD, uplo);
    array_set(&p);
    array_set(&x);
    succeeds(CALL(type, tpmv_v2, handle, uplo, op, diag, ORDER, pointer(&p), pointer(&x), 1));
    array_expect(&x, wanted, tolerance_of(type), "tpmv");
    succeeds(CALL(type, tpsv_v2, handle, uplo, op, diag, ORDER, pointer(&p), pointer(&x), 1));
    array_expect(&x, x.v, 1e-3, "tpsv");
    memcpy(banded, full, sizeof full);
    band(b.v, BAND_LD, banded, ORDER, BAND, uplo);
    array_set(&b);
    array_set(&x);
    loop_gemv(op, ORDER, ORDER, 1, banded, ORDER, x.v, 1, 0, wanted, 1);
    succeeds(CALL(type, tbmv_v2, handle, uplo, op, diag, ORDER, BAND, pointer(&b), BAND_LD, pointer(&x), 1));
    array_expect(&x, wanted, tolerance_of(type), "tbmv");
    succeeds(CALL(type, tbsv_v2, handle, uplo, op, diag, ORDER, BAND, pointer(&b), BAND_LD, pointer(&x), 1));
    array_expect(&x, x.v, 1e-3, "tbsv");
    array_free(&a);
    array_free(&x);
    array_free(&p);
    array_free(&b);
}

/* A triangle of A, and the rest as it was: rank one of x, or rank two of x and y. */
static void loop_rank(number *a, int n, int ld, cublasFillMode_t uplo, bool hermitian, number alpha, const number *x,
                      const number *y)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            if (uplo == CUBLAS_FILL_MODE_UPPER ? i > j : i < j)
                continue;
            number xj = hermitian ? conj(x[j]) : x[j], yj = hermitian ? conj(y[j]) : y[j];
            number old = hermitian && i == j ? creal(a[i + j * ld]) : a[i + j * ld];
            number second = hermitian ? conj(alpha) : alpha;
            a[i + j * ld] = old + (x == y ? alpha * x[i] * xj : alpha * x[i] * yj + second * y[i] * xj);
        }
}

static void check_rank(cudaDataType type, cublasFillMode_t uplo, bool hermitian)
{
    cudaDataType real = type == CUDA_C_32F ? CUDA_R_32F : CUDA_R_64F;
    struct array x = array_new(type, ORDER, 1), y = array_new(type, ORDER, 2), a = array_new(type, LD * ORDER, 3);
    struct array p = array_of(type, PACKED, 0);
    number alpha = factor(type, 0.5, 2), *w = copy_of(&a);
    bool packed = hermitian == type_is_complex(type);
    pack(p.v, a.v, ORDER, LD, uplo);
    array_set(&p);
    for (int two = 0; two < 2; two++) {
        const void *scale = hermitian && !two ? scalar(real, 0.5) : scalar(type, alpha);
        void *px = pointer(&x), *py = pointer(&y), *pa = pointer(&a), *pp = pointer(&p);
        loop_rank(w, ORDER, LD, uplo, hermitian, hermitian && !two ? 0.5 : alpha, x.v, two ? y.v : x.v);
        if (hermitian && two)
            succeeds(CALL_COMPLEX(type, her2_v2, handle, uplo, ORDER, scale, px, 1, py, 1, pa, LD));
        else if (hermitian)
            succeeds(CALL_COMPLEX(type, her_v2, handle, uplo, ORDER, scale, px, 1, pa, LD));
        else if (two)
            succeeds(CALL(type, syr2_v2, handle, uplo, ORDER, scale, px, 1, py, 1, pa, LD));
        else
            succeeds(CALL(type, syr_v2, handle, uplo, ORDER, scale, px, 1, pa, LD));
        array_expect(&a, w, tolerance_of(type), "syr");
        if (!packed)
            continue;
        if (hermitian && two)
            succeeds(CALL_COMPLEX(type, hpr2_v2, handle, uplo, ORDER, scale, px, 1, py, 1, pp));
        else if (hermitian)
            succeeds(CALL_COMPLEX(type, hpr_v2, handle, uplo, ORDER, scale, px, 1, pp));
        else if (two)
            succeeds(CALL_REAL(type, spr2_v2, handle, uplo, ORDER, scale, px, 1, py, 1, pp));
        else
            succeeds(CALL_REAL(type, spr_v2, handle, uplo, ORDER, scale, px, 1, pp));
        pack(p.v, w, ORDER, LD, uplo);
        array_expect(&p, p.v, tolerance_of(type), "spr");
    }
    free(w);
    array_free(&x);
    array_free(&y);
    array_free(&a);
    array_free(&p);
}

static void test_symmetric_and_triangular(void **state)
{
    for (int t = 0; t < 4; t++)
        for (int u = 0; u < 2; u++) {
            cudaDataType type = real_and_complex[t];
            check_symmetric(type, fills[u], false);
            check_rank(type, fills[u], false);
            if (type_is_complex(type)) {
                check_symmetric(type, fills[u], true);
                check_rank(type, fills[u], true);
            }
            for (int o = 0; o < 3; o++) {
                check_triangular(type, fills[u], ops[o], CUBLAS_DIAG_NON_UNIT);
                check_triangular(type, fills[u], ops[o], CUBLAS_DIAG_UNIT);
            }
        }
    for (int t = 0; t < 4; t++)
        for (int o = 0; o < 3; o++)
            check_gbmv(real_and_complex[t], ops[o]);
}

static void test_ger(void **state)
{
    enum { M = 5, N = 4 };
    for (int t = 0; t < 4; t++)
        for (int conjugate = 0; conjugate < 2; conjugate++) {
            cudaDataType type = real_and_complex[t];
            struct array x = array_new(type, M, 1), y = array_new(type, N, 2), a = array_new(type, (M + 1) * N, 3);
            number alpha = factor(type, 2, -1);
            const void *scale = scalar(type, alpha);
            void *px = pointer(&x), *py = pointer(&y), *pa = pointer(&a);
            for (int j = 0; j < N; j++)
                for (int i = 0; i < M; i++)
                    a.v[i + j * (M + 1)] += alpha * x.v[i] * (conjugate ? conj(y.v[j]) : y.v[j]);
            if (!type_is_complex(type))
                succeeds(CALL_REAL(type, ger_v2, handle, M, N, scale, px, 1, py, 1, pa, M + 1));
            else if (conjugate)
                succeeds(CALL_COMPLEX(type, gerc_v2, handle, M, N, scale, px, 1, py, 1, pa, M + 1));
            else
                succeeds(CALL_COMPLEX(type, geru_v2, handle, M, N, scale, px, 1, py, 1, pa, M + 1));
            array_expect(&a, a.v, tolerance_of(type), "ger");
            array_free(&x);
            array_free(&y);
            array_free(&a);
        }
}

static void test_gemv_batches(void **state)
{
    enum { M = 3, N = 4, BATCH = 2 };
    struct array a = array_new(CUDA_R_32F, M * N * BATCH, 1), x = array_new(CUDA_R_32F, N * BATCH, 2);
    struct array y = array_of(CUDA_R_32F, M * BATCH, NAN);
    float one = 1, zero = 0;
    succeeds(cublasSgemvStridedBatched(handle, CUBLAS_OP_N, M, N, &one, pointer(&a), M, M * N, pointer(&x), 1, N, &zero,
                                       pointer(&y), 1, M, BATCH));
    for (int i = 0; i < BATCH; i++)
        loop_gemv(CUBLAS_OP_N, M, N, 1, a.v + (size_t)i * M * N, M, x.v + (size_t)i * N, 1, 0, y.v + (size_t)i * M, 1);
    array_expect(&y, y.v, 1e-6, "gemvStridedBatched");
    array_free(&a);
    array_free(&x);
    array_free(&y);
}

/* ---- level 3 ---------------------------------------------------------------------------------------------------- */

enum { M3 = 5, N3 = 7, K3 = 4, BIG = 9 };

static void check_symm(cudaDataType type, cublasSideMode_t side, cublasFillMode_t uplo, bool hermitian)
{
    int order = side == CUBLAS_SIDE_LEFT ? M3 : N3;
    struct array a = array_new(type, BIG * order, 1), b = array_new(type, BIG * N3, 2);
    struct array c = array_of(type, BIG * N3, NAN);
    number full[N3 * N3], alpha = factor(type, 1, 2);
    const void *scale = scalar(type, alpha), *zero = scalar(type, 0);
    full_symmetric(full, a.v, order, BIG, uplo, hermitian);
    if (side == CUBLAS_SIDE_LEFT)
        loop_gemm(CUBLAS_OP_N, CUBLAS_OP_N, M3, N3, M3, alpha, full, M3, b.v, BIG, 0, c.v, BIG);
    else
        loop_gemm(CUBLAS_OP_N, CUBLAS_OP_N, M3, N3, N3, alpha, b.v, BIG, full, N3, 0, c.v, BIG);
    if (hermitian)
        succeeds(CALL_COMPLEX(type, hemm_v2, handle, side, uplo, M3, N3, scale, pointer(&a), BIG, pointer(&b), BIG,
                              zero, pointer(&c), BIG));
    else
        succeeds(CALL(type, symm_v2, handle, side, uplo, M3, N3, scale, pointer(&a), BIG, pointer(&b), BIG, zero,
                      pointer(&c), BIG));
    array_expect(&c, c.v, tolerance_of(type), "symm");
    array_free(&a);
    array_free(&b);
    array_free(&c);
}

/* trmm out of place, then trsm of its result: B comes back. */
static void check_side(cudaDataType type, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t op)
{
    int order = side == CUBLAS_SIDE_LEFT ? M3 : N3;
    const cublasDiagType_t diag = CUBLAS_DIAG_NON_UNIT;
    struct array a = array_new(type, BIG * order, 1), b = array_new(type, BIG * N3, 2);
    struct array c = array_new(type, BIG * N3, 3);
    number full[N3 * N3], *back = copy_of(&c);
    for (int i = 0; i < order; i++)
        a.v[i + i * BIG] = 16;
    array_set(&a);
    full_triangle(full, a.v, order, BIG, uplo, diag);
    if (side == CUBLAS_SIDE_LEFT)
        loop_gemm(op, CUBLAS_OP_N, M3, N3, M3, 2, full, M3, b.v, BIG, 0, c.v, BIG);
    else
        loop_gemm(CUBLAS_OP_N, op, M3, N3, N3, 2, b.v, BIG, full, N3, 0, c.v, BIG);
    succeeds(CALL(type, trmm_v2, handle, side, uplo, op, diag, M3, N3, scalar(type, 2), pointer(&a), BIG, pointer(&b),
                  BIG, pointer(&c), BIG));
    array_expect(&c, c.v, tolerance_of(type), "trmm");
    succeeds(CALL(type, trsm_v2, handle, side, uplo, op, diag, M3, N3, scalar(type, 0.5), pointer(&a), BIG, pointer(&c),
                  BIG));
    for (int j = 0; j < N3; j++)
        for (int i = 0; i < M3; i++)
            back[i + j * BIG] = b.v[i + j * BIG];
    array_expect(&c, back, tolerance_of(type) * 10, "trsm");
    free(back);
    array_free(&a);
    array_free(&b);
    array_free(&c);
}

enum { WITH_A, WITH_BOTH, WITH_OTHER };

/* syrk, syr2k, syrkx, or the Hermitian ones. */
static void check_rank_k(cudaDataType type, cublasFillMode_t uplo, cublasOperation_t op, bool hermitian, int kind)
{
    cudaDataType real = type == CUDA_C_32F ? CUDA_R_32F : CUDA_R_64F;
    const cublasOperation_t turned = hermitian ? CUBLAS_OP_C : CUBLAS_OP_T;
    cublasOperation_t left = op, right = op == CUBLAS_OP_N ? turned : CUBLAS_OP_N;
    struct array a = array_new(type, BIG * N3, 1), b = array_new(type, BIG * N3, 2), c = array_of(type, BIG * N3, NAN);
    number product[N3 * N3] = {0}, alpha = hermitian && kind == WITH_A ? 2 : factor(type, 1, 0.5);
    const void *scale = hermitian && kind == WITH_A ? scalar(real, 2) : scalar(type, alpha);
    const void *zero = scalar(hermitian ? real : type, 0);
    void *pa = pointer(&a), *pb = pointer(&b), *pc = pointer(&c);
    loop_gemm(left, right, N3, N3, K3, alpha, a.v, BIG, kind == WITH_A ? a.v : b.v, BIG, 0, product, N3);
    if (kind == WITH_BOTH)
        loop_gemm(left, right, N3, N3, K3, hermitian ? conj(alpha) : alpha, b.v, BIG, a.v, BIG, 1, product, N3);
    for (int j = 0; j < N3; j++)
        for (int i = 0; i < N3; i++)
            if (uplo == CUBLAS_FILL_MODE_UPPER ? i <= j : i >= j)
                c.v[i + j * BIG] = product[i + j * N3];
    if (hermitian && kind == WITH_A)
        succeeds(CALL_COMPLEX(type, herk_v2, handle, uplo, op, N3, K3, scale, pa, BIG, zero, pc, BIG));
    else if (hermitian && kind == WITH_BOTH)
        succeeds(CALL_COMPLEX(type, her2k_v2, handle, uplo, op, N3, K3, scale, pa, BIG, pb, BIG, zero, pc, BIG));
    else if (hermitian)
        succeeds(CALL_COMPLEX(type, herkx, handle, uplo, op, N3, K3, scale, pa, BIG, pb, BIG, zero, pc, BIG));
    else if (kind == WITH_A)
        succeeds(CALL(type, syrk_v2, handle, uplo, op, N3, K3, scale, pa, BIG, zero, pc, BIG));
    else if (kind == WITH_BOTH)
        succeeds(CALL(type, syr2k_v2, handle, uplo, op, N3, K3, scale, pa, BIG, pb, BIG, zero, pc, BIG));
    else
        succeeds(CALL(type, syrkx, handle, uplo, op, N3, K3, scale, pa, BIG, pb, BIG, zero, pc, BIG));
    array_expect(&c, c.v, tolerance_of(type), "rank k");
    array_free(&a);
    array_free(&b);
    array_free(&c);
}

static void test_level3(void **state)
{
    for (int t = 0; t < 4; t++)
        for (int u = 0; u < 2; u++) {
            cudaDataType type = real_and_complex[t];
            for (int s = 0; s < 2; s++) {
                check_symm(type, (cublasSideMode_t)s, fills[u], false);
                if (type_is_complex(type))
                    check_symm(type, (cublasSideMode_t)s, fills[u], true);
                for (int o = 0; o < 3; o++)
                    check_side(type, (cublasSideMode_t)s, fills[u], ops[o]);
            }
            for (int kind = WITH_A; kind <= WITH_OTHER; kind++) {
                check_rank_k(type, fills[u], CUBLAS_OP_N, false, kind);
                check_rank_k(type, fills[u], CUBLAS_OP_T, false, kind);
                if (!type_is_complex(type))
                    continue;
                check_rank_k(type, fills[u], CUBLAS_OP_N, true, kind);
                check_rank_k(type, fills[u], CUBLAS_OP_C, true, kind);
            }
        }
}

static void check_extensions(cudaDataType type)
{
    struct array a = array_new(type, BIG * N3, 1), b = array_new(type, BIG * N3, 2), c = array_of(type, BIG * N3, NAN);
    struct array x = array_new(type, 2 * N3, 3), p = array_of(type, N3 * (N3 + 1) / 2, NAN);
    number alpha = factor(type, 2, -1), beta = factor(type, -1, 1);
    for (int i = 0; i < 9; i++) {
        cublasOperation_t ta = ops[i / 3], tb = ops[i % 3];
        succeeds(CALL(type, geam, handle, ta, tb, M3, N3, scalar(type, alpha), pointer(&a), BIG, scalar(type, beta),
                      pointer(&b), BIG, pointer(&c), BIG));
        for (int j = 0; j < N3; j++)
            for (int k = 0; k < M3; k++)
                c.v[k + j * BIG] = alpha * op_at(a.v, BIG, ta, k, j) + beta * op_at(b.v, BIG, tb, k, j);
        array_expect(&c, c.v, tolerance_of(type), "geam");
    }
    for (int side = 0; side < 2; side++) {
        succeeds(CALL(type, dgmm, handle, (cublasSideMode_t)side, M3, N3, pointer(&a), BIG, pointer(&x), 2, pointer(&c),
                      BIG));
        for (int j = 0; j < N3; j++)
            for (int k = 0; k < M3; k++)
                c.v[k + j * BIG] = a.v[k + j * BIG] * x.v[2 * (side == CUBLAS_SIDE_LEFT ? k : j)];
        array_expect(&c, c.v, tolerance_of(type), "dgmm");
    }
    for (int u = 0; u < 2; u++) {
        succeeds(CALL(type, trttp, handle, fills[u], N3, pointer(&a), BIG, pointer(&p)));
        pack(p.v, a.v, N3, BIG, fills[u]);
        array_expect(&p, p.v, 0, "trttp");
        succeeds(CALL(type, tpttr, handle, fills[u], N3, pointer(&p), pointer(&c), BIG));
        unpack(c.v, p.v, N3, BIG, fills[u]);
        array_expect(&c, c.v, tolerance_of(type), "tpttr");
    }
    array_free(&a);
    array_free(&b);
    array_free(&c);
    array_free(&x);
    array_free(&p);
}

static void test_extensions(void **state)
{
    for (int t = 0; t < 4; t++)
        check_extensions(real_and_complex[t]);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates),   cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_rotations), cmocka_unit_test(test_level1_ex_in_half),
        cmocka_unit_test(test_gemv),      cmocka_unit_test(test_symmetric_and_triangular),
        cmocka_unit_test(test_ger),       cmocka_unit_test(test_gemv_batches),
        cmocka_unit_test(test_level3),    cmocka_unit_test(test_extensions),
    };
    return cmocka_run_group_tests_name("softgpu_cublas_levels", tests, blas_setup, blas_teardown);
}
